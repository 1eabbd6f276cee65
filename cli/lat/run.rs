//! One run of one rung: builds its ends, lets them go, counts.

use super::control::Control;
use super::ends::{self, FarAddress, NearEnd};
use super::plan::{Mode, Plan, boot_id};
use crate::Failure;
use latency::Histogram;
use latency::clock::Clock;
use net::measure::{self, AnyEnd, Echo, End, Idle, Length, Pace, Part, Placement, RoundTrips, Sink, Stream};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
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
    /// It is ready, and there.
    Ready(FarAddress),
    /// It cannot; the reason.
    Refused(String),
}

/// What the near end says when it is done.
pub(super) const DONE: &str = "done";

/// How long the other end may be silent, beyond the planned time: a carrier may take that long to come up, or to be given
/// up for broken.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// What was read off the near side.
struct NearCounts {
    planned: u64,
    sent: u64,
    answered: u64,
    span: Duration,
    retransmits: u64,
    options: Option<String>,
}

/// Both ends in this process.
pub(super) fn here(plan: &Plan, placement: Placement, idle: Idle, clock: Clock, tally: &mut Tally) -> io::Result<()> {
    let local = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut plan = plan.clone();
    let prepared = NearEnd::prepare(&mut plan, local)?;
    tally.started.get_or_insert(clock.now());
    let plan = &plan;
    let (tell, told) = mpsc::channel();
    // `tell` goes with the call, whatever comes of it: a far end that fails is not waited for.
    let open_far = move || -> io::Result<AnyEnd> {
        let tell = tell;
        let (end, address) = ends::open_far(plan, SocketAddr::from((local, 0)), local, clock)?;
        // Nobody waits for it when the near end has failed.
        let _ = tell.send(address);
        Ok(end)
    };
    let open_near = move || -> io::Result<AnyEnd> {
        let address = told.recv().map_err(|_| io::ErrorKind::NotConnected)?;
        prepared.open(plan, local, address, clock)
    };
    let now = move || clock.now();
    if plan.mode == Mode::OneWay {
        let histogram = &mut tally.histogram;
        let record = |took| histogram.record(took);
        let far = Part {
            make: || Ok(Sink::new(open_far()?, now, plan.size, record)),
            read: |far: Sink<AnyEnd, _, _>| far_counts(far.received(), far.end()),
        };
        let near = Part {
            make: || Ok(stream(plan, open_near()?, now)),
            read: |near: Stream<AnyEnd, _>| near_counts_of_stream(plan, &near),
        };
        let (near, far) = measure::both(near, far, placement, idle)?;
        tally.add(near);
        tally.add_stream(&far);
    } else {
        let histogram = &mut tally.histogram;
        let record = |took| histogram.record(took);
        let far = Part {
            make: || Ok(Echo::new(open_far()?, now, plan.size)),
            read: |far: Echo<AnyEnd, _>| far.end().retransmits(),
        };
        let near = Part {
            make: || Ok(round_trips(plan, open_near()?, now, record)),
            read: |near: RoundTrips<AnyEnd, _, _>| near_counts(near),
        };
        let (near, retransmits) = measure::both(near, far, placement, idle)?;
        tally.add(near);
        tally.retransmits += retransmits;
    }
    Ok(())
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
    let local = control.local()?.ip();
    let mut plan = plan.clone();
    let prepared = NearEnd::prepare(&mut plan, local)?;
    control.send(&plan)?;
    let far = match control.receive(ANSWER_WITHIN)? {
        Answer::Ready(address) => address,
        Answer::Refused(why) => return Err(Failure::new(format_args!("the listening end: {why}"))),
    };
    tally.started.get_or_insert(clock.now());
    let now = move || clock.now();
    let histogram = &mut tally.histogram;
    let ran = measure::on_cpu(cpu, || {
        let end = prepared.open(&plan, local, far, clock)?;
        if plan.mode == Mode::OneWay {
            let mut near = stream(&plan, end, now);
            measure::run_near(&mut near, idle, || false)?;
            Ok(near_counts_of_stream(&plan, &near))
        } else {
            let mut near = round_trips(&plan, end, now, |took| histogram.record(took));
            measure::run_near(&mut near, idle, || false)?;
            Ok(near_counts(near))
        }
    });
    control.send(&DONE)?;
    let counts = control.receive::<Result<FarCounts, String>>(within(&plan))?;
    tally.add(ran?);
    let counts = counts.map_err(|why| Failure::new(format_args!("the listening end: {why}")))?;
    tally.add_stream(&counts);
    if !counts.histogram.is_empty() {
        tally.histogram.add_bytes(&counts.histogram)?;
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
    let near = control.peer()?.ip();
    let is_over = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    let counts = thread::scope(|scope| -> Result<Option<io::Result<FarCounts>>, Failure> {
        let is_over = &is_over;
        let answering = scope.spawn(move || {
            measure::on_cpu(cpu, || {
                let (end, address) = match ends::open_far(plan, local, near, clock) {
                    Ok(opened) => opened,
                    Err(error) => {
                        let _ = tell.send(Answer::Refused(error.to_string()));
                        return Err(error);
                    }
                };
                let _ = tell.send(Answer::Ready(address));
                answer(plan, end, idle, clock, is_over)
            })
        });
        let told = told
            .recv()
            .unwrap_or_else(|_| Answer::Refused(format!("CPU {cpu} is not permitted")));
        let answered = control.send(&told);
        let is_ready = matches!(told, Answer::Ready(_));
        let done = match answered {
            Ok(()) if is_ready => control.receive::<String>(within(plan)).map(drop),
            other => other,
        };
        is_over.store(true, Ordering::Release);
        let counts = answering.join().expect("the far thread does not panic");
        done?;
        Ok(is_ready.then_some(counts))
    })?;
    match counts {
        Some(counts) => control.send(&counts.map_err(|error| error.to_string())),
        // It was told already.
        None => Ok(()),
    }
}

/// Echoes or drains until the near end is done.
fn answer(plan: &Plan, end: AnyEnd, idle: Idle, clock: Clock, is_over: &AtomicBool) -> io::Result<FarCounts> {
    let now = move || clock.now();
    let over = || is_over.load(Ordering::Acquire);
    if plan.mode != Mode::OneWay {
        let mut echo = Echo::new(end, now, plan.size);
        measure::run_until(&mut echo, idle, over)?;
        let retransmits = echo.end().retransmits();
        return Ok(FarCounts {
            retransmits,
            ..FarCounts::default()
        });
    }
    let mut histogram = Histogram::new();
    let mut sink = Sink::new(end, now, plan.size, |took| histogram.record(took));
    measure::run_until(&mut sink, idle, over)?;
    let mut counts = far_counts(sink.received(), sink.end());
    // Ends on one kernel have one clock.
    if plan.boot_id == boot_id() {
        counts.histogram = histogram.to_bytes();
    }
    Ok(counts)
}

const fn within(plan: &Plan) -> Duration {
    Duration(ANSWER_WITHIN.0.saturating_add(plan.span_ns))
}

fn stream<C: Fn() -> Timestamp>(plan: &Plan, end: AnyEnd, clock: C) -> Stream<AnyEnd, C> {
    Stream::new(end, clock, plan.size, plan.interval(), plan.span())
}

fn round_trips<C: Fn() -> Timestamp, R: FnMut(Duration)>(
    plan: &Plan,
    end: AnyEnd,
    clock: C,
    record: R,
) -> RoundTrips<AnyEnd, C, R> {
    let pace = plan.interval().map_or(Pace::PingPong, Pace::Every);
    RoundTrips::new(end, clock, plan.size, pace, Length::Span(plan.span()), record)
}

fn near_counts<C: Fn() -> Timestamp, R: FnMut(Duration)>(near: RoundTrips<AnyEnd, C, R>) -> NearCounts {
    let (counts, end) = (near.counts(), near.into_end());
    NearCounts {
        planned: counts.planned,
        sent: counts.sent,
        answered: counts.answered,
        span: counts.span,
        retransmits: end.retransmits(),
        options: end.readback().map(ToString::to_string),
    }
}

/// What arrived of a stream, the far end knows.
fn near_counts_of_stream<C: Fn() -> Timestamp>(plan: &Plan, near: &Stream<AnyEnd, C>) -> NearCounts {
    let planned = plan.interval().map(|interval| plan.span().0 / interval.0);
    NearCounts {
        planned: planned.unwrap_or(near.sent()),
        sent: near.sent(),
        answered: 0,
        span: Duration(0),
        retransmits: near.end().retransmits(),
        options: near.end().readback().map(ToString::to_string),
    }
}

fn far_counts((received, span): (u64, Duration), end: &AnyEnd) -> FarCounts {
    FarCounts {
        received,
        span_ns: span.0,
        retransmits: end.retransmits(),
        histogram: Vec::new(),
    }
}

impl Tally {
    fn add(&mut self, near: NearCounts) {
        self.planned += near.planned;
        self.sent += near.sent;
        self.arrived += near.answered;
        self.span = Duration(self.span.0 + near.span.0);
        self.retransmits += near.retransmits;
        self.options = near.options;
    }

    /// What the far end counted; nothing but retransmits unless it was a stream.
    fn add_stream(&mut self, far: &FarCounts) {
        self.arrived += far.received;
        self.span = Duration(self.span.0 + far.span_ns);
        self.retransmits += far.retransmits;
    }
}
