//! One round of one rung: builds its ends, lets them go, counts.

use super::control::Control;
use super::ends::{self, FarAddress, NearEnd};
use super::plan::{IdleMode, Plan, boot_id};
use super::tally::{FarCounts, NearCounts, Tally};
use crate::Failure;
use crate::process::Interrupt;
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

/// Why a round did not end as planned.
#[derive(Debug)]
pub(super) enum Cut {
    /// This link failed; others may not.
    Link(Failure),
    /// Nothing more can be measured.
    Run(Failure),
}

/// What the far end answers to a plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is ready.
    Ready {
        /// Where it is.
        address: FarAddress,
        cpu: usize,
        idle: IdleMode,
    },
    /// It cannot; the reason.
    Refused(String),
}

/// What the near end says when it is done.
pub(super) const DONE: &str = "done";

/// How long the other end may be silent, beyond the planned time: a carrier may take that long to come up, or to be given
/// up for broken, and a listening end may be serving another.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// How long the other end may take to count what there was.
const COUNTS_WITHIN: Duration = Duration::from_secs(10);

/// Both ends in this process.
pub(super) fn here(
    plan: &Plan,
    placement: Placement,
    idle: Idle,
    clock: Clock,
    interrupt: &Interrupt,
    tally: &mut Tally,
) -> Result<(), Cut> {
    tally.started.get_or_insert(clock.now());
    let mut histogram = Histogram::new();
    let (near, far) =
        both_here(plan, placement, idle, clock, interrupt, &mut histogram).map_err(|error| Cut::Link(error.into()))?;
    let is_whole = !interrupt.is_set();
    tally.histogram.add(&histogram);
    add(tally, near, &far, is_whole)?;
    if is_whole { Ok(()) } else { Err(interrupted()) }
}

fn both_here(
    plan: &Plan,
    placement: Placement,
    idle: Idle,
    clock: Clock,
    interrupt: &Interrupt,
    histogram: &mut Histogram,
) -> io::Result<(NearCounts, FarCounts)> {
    let local = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut plan = plan.clone();
    let prepared = NearEnd::prepare(&mut plan, local)?;
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
    let is_over = || interrupt.is_set();
    let record = |took| histogram.record(took);
    if plan.mode.is_one_way() {
        let far = Part {
            make: || Ok(Sink::new(open_far()?, now, plan.size, record)),
            read: |far: Sink<AnyEnd, _, _>| FarCounts::new(far.received(), far.end().retransmits()),
        };
        let near = Part {
            make: || Ok(stream(plan, open_near()?, now)),
            read: |near: Stream<AnyEnd, _>| near_counts_of_stream(plan, &near),
        };
        measure::both(near, far, placement, idle, is_over)
    } else {
        let far = Part {
            make: || Ok(Echo::new(open_far()?, now, plan.size)),
            read: |far: Echo<AnyEnd, _>| FarCounts::new((0, Duration(0)), far.end().retransmits()),
        };
        let near = Part {
            make: || Ok(round_trips(plan, open_near()?, now, record)),
            read: |near: RoundTrips<AnyEnd, _, _>| near_counts(near),
        };
        measure::both(near, far, placement, idle, is_over)
    }
}

/// The near end in this process; the far one listens for us at the other side of `control`.
pub(super) fn near(
    plan: &Plan,
    control: &mut Control,
    cpu: usize,
    idle: Idle,
    clock: Clock,
    interrupt: &Interrupt,
    tally: &mut Tally,
) -> Result<(), Cut> {
    let local = control.local().map_err(Cut::Run)?.ip();
    let mut plan = plan.clone();
    let prepared = NearEnd::prepare(&mut plan, local).map_err(|error| Cut::Link(error.into()))?;
    control.send(&plan).map_err(Cut::Run)?;
    let far = match control.receive(ANSWER_WITHIN).map_err(Cut::Run)? {
        Answer::Ready { address, cpu, idle } => {
            tally.far = Some((cpu, idle));
            address
        }
        Answer::Refused(why) => return Err(Cut::Link(of_listener(&why))),
    };
    tally.started.get_or_insert(clock.now());
    let mut histogram = Histogram::new();
    let is_gone = AtomicBool::new(false);
    let is_over = || is_gone.load(Ordering::Relaxed) || interrupt.is_set();
    let now = move || clock.now();
    let measure = || {
        measure::on_cpu(cpu, || {
            let end = prepared.open(&plan, local, far, clock)?;
            Ok(if plan.mode.is_one_way() {
                let mut near = stream(&plan, end, now);
                let ran = measure::run_near(&mut near, idle, is_over);
                (near_counts_of_stream(&plan, &near), ran)
            } else {
                let mut near = round_trips(&plan, end, now, |took| histogram.record(took));
                let ran = measure::run_near(&mut near, idle, is_over);
                (near_counts(near), ran)
            })
        })
    };
    let (watched, measured) = thread::scope(|scope| {
        let (ended, ends) = io::pipe()?;
        let measuring = scope.spawn(move || {
            let _ends = ends;
            measure()
        });
        // Meanwhile this thread sleeps, and tells the other when there is nobody left to measure against.
        let watched = control.watch(&ended);
        is_gone.store(watched.is_err(), Ordering::Relaxed);
        io::Result::Ok((watched, measuring.join().expect("the near thread does not panic")))
    })
    .map_err(|error| Cut::Run(error.into()))?;
    let is_interrupted = interrupt.is_set();
    if is_interrupted {
        control.be_patient();
    }
    let counts = watched
        .and_then(|()| control.send(&DONE))
        .and_then(|()| control.receive::<Result<FarCounts, String>>(COUNTS_WITHIN));
    let (near, ran) = match measured {
        Ok((near, ran)) => (Some(near), ran),
        Err(error) => (None, Err(error)),
    };
    let is_whole = ran.is_ok() && matches!(counts, Ok(Ok(_))) && !is_interrupted;
    let none = FarCounts::default();
    let far = match &counts {
        Ok(Ok(far)) => far,
        _ => &none,
    };
    tally.histogram.add(&histogram);
    if !far.histogram.is_empty() {
        let added = tally.histogram.add_bytes(&far.histogram);
        added.map_err(|error| Cut::Run(error.into()))?;
    }
    let brought = near.map_or(Ok(()), |near| add(tally, near, far, is_whole));
    // The first reason that there is, from those that explain most.
    let counts = counts.map_err(Cut::Run)?;
    ran.map_err(|error| Cut::Link(error.into()))?;
    counts.map_err(|why| Cut::Link(of_listener(&why)))?;
    if is_interrupted { Err(interrupted()) } else { brought }
}

/// Adds a round; one of which nothing arrived has failed.
fn add(tally: &mut Tally, near: NearCounts, far: &FarCounts, is_whole: bool) -> Result<(), Cut> {
    let before = tally.arrived;
    let sent = near.sent;
    tally.add(near, far, is_whole);
    if is_whole && sent == 0 {
        return Err(Cut::Link(Failure::new(
            "the time was over before one message was sent; more seconds",
        )));
    }
    if is_whole && tally.arrived == before {
        return Err(Cut::Link(Failure::new(format_args!(
            "of {sent} messages none arrived; do firewalls let them through?"
        ))));
    }
    Ok(())
}

fn interrupted() -> Cut {
    Cut::Run(Failure::new("interrupted"))
}

fn of_listener(why: &str) -> Failure {
    Failure::new(format_args!("the listening end: {why}"))
}

/// The far end in this process, for one plan of whoever is at the other side of `control`.
pub(super) fn far(
    plan: &Plan,
    control: &mut Control,
    local: SocketAddr,
    cpu: usize,
    idle: IdleMode,
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
                let _ = tell.send(Answer::Ready { address, cpu, idle });
                answer(plan, end, idle.into(), clock, is_over)
            })
        });
        let told = told
            .recv()
            .unwrap_or_else(|_| Answer::Refused(format!("CPU {cpu} is not permitted")));
        let answered = control.send(&told);
        let is_ready = matches!(told, Answer::Ready { .. });
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
    if !plan.mode.is_one_way() {
        let mut echo = Echo::new(end, now, plan.size);
        measure::run_until(&mut echo, idle, over)?;
        return Ok(FarCounts::new((0, Duration(0)), echo.end().retransmits()));
    }
    let mut histogram = Histogram::new();
    let mut sink = Sink::new(end, now, plan.size, |took| histogram.record(took));
    measure::run_until(&mut sink, idle, over)?;
    let mut counts = FarCounts::new(sink.received(), sink.end().retransmits());
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
    Stream::new(end, clock, plan.size, plan.mode.interval(), plan.span())
}

fn round_trips<C: Fn() -> Timestamp, R: FnMut(Duration)>(
    plan: &Plan,
    end: AnyEnd,
    clock: C,
    record: R,
) -> RoundTrips<AnyEnd, C, R> {
    let pace = plan.mode.interval().map_or(Pace::PingPong, Pace::Every);
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
    let planned = plan.mode.interval().map(|interval| plan.span().0 / interval.0);
    NearCounts {
        planned: planned.unwrap_or(near.sent()),
        sent: near.sent(),
        answered: 0,
        span: Duration(0),
        retransmits: near.end().retransmits(),
        options: near.end().readback().map(ToString::to_string),
    }
}
