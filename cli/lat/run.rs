//! One run of one rung: builds its ends, lets them go, counts.

use super::control::Control;
use super::ends::{self, FarEnd, NearEnd};
use super::plan::{Mode, Plan, boot_id};
use crate::Failure;
use latency::Histogram;
use latency::clock::Clock;
use net::measure::{self, AnyEnd, Echo, End, Idle, Length, Pace, Placement, RoundTrips, Side, Sink, Stream};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use types::{Duration, Timestamp};

/// What was counted, over all rounds of a rung.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Round trips, or the ways of a stream where both ends have one clock.
    pub(super) histogram: Histogram,
    /// Messages that had a planned time; without a plan, those that were sent.
    pub(super) planned: u64,
    pub(super) sent: u64,
    /// Messages answered, or received at the other end of a stream.
    pub(super) arrived: u64,
    /// The time in which they arrived.
    pub(super) span: Duration,
    /// Of both ends.
    pub(super) retransmits: u64,
    /// What the kernel gave for the near socket's options.
    pub(super) options: Option<String>,
    /// When the first round began.
    pub(super) started: Option<Timestamp>,
}

/// What the far end tells after a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FarCounts {
    received: u64,
    span_ns: u64,
    retransmits: u64,
    /// The ways of a stream; empty where the ends have two clocks.
    histogram: Vec<u8>,
}

/// What the far end answers to a plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is ready; the data go here.
    Ready { port: u16 },
    /// It cannot; the reason.
    Refused(String),
}

/// What the near end says when it is done.
pub(super) const DONE: &str = "done";

/// Who lets a near side take its turns.
trait Runner {
    fn run<N: Side + Send>(&mut self, near: &mut N) -> io::Result<()>;
}

/// The far side is here too.
struct Both<'a, F> {
    far: &'a mut F,
    placement: Placement,
    idle: Idle,
}

/// The far side is elsewhere.
struct Alone {
    cpu: usize,
    idle: Idle,
}

impl<F: Side + Send> Runner for Both<'_, F> {
    fn run<N: Side + Send>(&mut self, near: &mut N) -> io::Result<()> {
        measure::both(near, self.far, self.placement, self.idle)
    }
}

impl Runner for Alone {
    fn run<N: Side + Send>(&mut self, near: &mut N) -> io::Result<()> {
        // A thread of its own: this one keeps its CPUs.
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                net::cpu::pin(self.cpu)?;
                measure::run_near(near, self.idle, || false)
            });
            asking.join().expect("the near thread does not panic")
        })
    }
}

/// Both ends in this process.
pub(super) fn here(plan: &Plan, placement: Placement, idle: Idle, clock: Clock, tally: &mut Tally) -> io::Result<()> {
    tally.started.get_or_insert(clock.now());
    let (near, far) = ends::pair(plan, clock)?;
    let now = move || clock.now();
    if plan.mode == Mode::OneWay {
        let mut histogram = std::mem::take(&mut tally.histogram);
        let mut far = Sink::new(far, now, plan.size, |took| histogram.record(took));
        let runner = Both {
            far: &mut far,
            placement,
            idle,
        };
        let ran = stream(plan, near, now, tally, runner);
        let ((received, span), retransmits) = (far.received(), far.end().retransmits());
        tally.histogram = histogram;
        tally.add_received(received, span);
        tally.retransmits += retransmits;
        ran
    } else {
        let mut far = Echo::new(far, now, plan.size);
        let runner = Both {
            far: &mut far,
            placement,
            idle,
        };
        let ran = round_trips(plan, near, now, tally, runner);
        tally.retransmits += far.end().retransmits();
        ran
    }
}

/// The near end in this process; the far one listens for us at the other side of `control`.
pub(super) fn near(
    plan: &Plan,
    control: &mut Control,
    cpu: usize,
    idle: Idle,
    clock: Clock,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut plan = plan.clone();
    let prepared = NearEnd::prepare(&mut plan, control.local()?.ip())?;
    control.send(&plan)?;
    let port = match control.receive()? {
        Answer::Ready { port } => port,
        Answer::Refused(why) => return Err(Failure::new(format_args!("the listening end: {why}"))),
    };
    let far = SocketAddr::from((control.peer()?.ip(), port));
    tally.started.get_or_insert(clock.now());
    let now = move || clock.now();
    let ran = prepared.open(&plan, far, clock).and_then(|end| {
        let runner = Alone { cpu, idle };
        match plan.mode {
            Mode::OneWay => stream(&plan, end, now, tally, runner),
            _ => round_trips(&plan, end, now, tally, runner),
        }
    });
    control.send(&DONE)?;
    let counts: FarCounts = control.receive()?;
    ran?;
    tally.retransmits += counts.retransmits;
    if plan.mode == Mode::OneWay {
        tally.add_received(counts.received, Duration(counts.span_ns));
        if !counts.histogram.is_empty() {
            tally.histogram.add_bytes(&counts.histogram)?;
        }
    }
    Ok(())
}

/// The far end in this process, for one plan of whoever is at the other side of `control`.
pub(super) fn far(
    plan: &Plan,
    control: &mut Control,
    local: SocketAddr,
    cpu: usize,
    idle: Idle,
    clock: Clock,
) -> Result<(), Failure> {
    let (end, port) = match FarEnd::open(plan, local, control.peer()?.ip(), clock) {
        Ok(opened) => opened,
        Err(error) => {
            control.send(&Answer::Refused(error.to_string()))?;
            return Ok(());
        }
    };
    control.send(&Answer::Ready { port })?;
    let end = end.wait()?;
    let is_over = AtomicBool::new(false);
    let has_one_clock = plan.boot_id == boot_id();
    let now = move || clock.now();
    let counts = thread::scope(|scope| -> Result<FarCounts, Failure> {
        let answering = scope.spawn(|| -> io::Result<FarCounts> {
            net::cpu::pin(cpu)?;
            let over = || is_over.load(Ordering::Acquire);
            if plan.mode == Mode::OneWay {
                let mut histogram = Histogram::new();
                let mut sink = Sink::new(end, now, plan.size, |took| histogram.record(took));
                measure::run_until(&mut sink, idle, over)?;
                let ((received, span), retransmits) = (sink.received(), sink.end().retransmits());
                let histogram = if has_one_clock {
                    histogram.to_bytes()
                } else {
                    Vec::new()
                };
                Ok(FarCounts {
                    received,
                    span_ns: span.0,
                    retransmits,
                    histogram,
                })
            } else {
                let mut echo = Echo::new(end, now, plan.size);
                measure::run_until(&mut echo, idle, over)?;
                let retransmits = echo.end().retransmits();
                Ok(FarCounts {
                    retransmits,
                    ..FarCounts::default()
                })
            }
        });
        let done = control.receive::<String>();
        is_over.store(true, Ordering::Release);
        let counts = answering.join().expect("the far thread does not panic");
        done?;
        Ok(counts?)
    })?;
    control.send(&counts)
}

/// Round trips from this end.
fn round_trips(
    plan: &Plan,
    end: AnyEnd,
    clock: impl Fn() -> Timestamp + Send,
    tally: &mut Tally,
    mut runner: impl Runner,
) -> io::Result<()> {
    let pace = plan.interval().map_or(Pace::PingPong, Pace::Every);
    let histogram = &mut tally.histogram;
    let record = |took| histogram.record(took);
    let mut near = RoundTrips::new(end, clock, plan.size, pace, Length::Span(plan.span()), record);
    let ran = runner.run(&mut near);
    let (counts, end) = (near.counts(), near.into_end());
    tally.planned += counts.planned;
    tally.sent += counts.sent;
    tally.add_received(counts.answered, counts.span);
    tally.add_end(&end);
    ran
}

/// A stream from this end. What arrived, the far end knows.
fn stream(
    plan: &Plan,
    end: AnyEnd,
    clock: impl Fn() -> Timestamp + Send,
    tally: &mut Tally,
    mut runner: impl Runner,
) -> io::Result<()> {
    let mut near = Stream::new(end, clock, plan.size, plan.interval(), plan.span());
    let ran = runner.run(&mut near);
    tally.planned += plan
        .interval()
        .map_or(near.sent(), |interval| plan.span().0 / interval.0);
    tally.sent += near.sent();
    tally.add_end(near.end());
    ran
}

impl Tally {
    fn add_received(&mut self, count: u64, span: Duration) {
        self.arrived += count;
        self.span = Duration(self.span.0 + span.0);
    }

    fn add_end(&mut self, near: &AnyEnd) {
        self.retransmits += near.retransmits();
        self.options = near.readback().map(ToString::to_string);
    }
}
