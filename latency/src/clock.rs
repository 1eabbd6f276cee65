//! UTC nanoseconds from the processor's time-stamp counter.
//!
//! # What it promises
//! - One process has one clock: every [`Clock`] is a handle to it, so all threads agree.
//! - It never turns back within a run, also while it is being recalibrated.
//! - Processes of one host agree. Each measures the counter against `CLOCK_MONOTONIC` and adds the distance to
//!   `CLOCK_REALTIME` that it saw at its start. Each of the two distances is the best of many bracketed readings; the true
//!   one lies within half the shortest bracket, which [`ClockFacts::error_ns`] gives (a few tens of nanoseconds). Between
//!   calibrations the rate is off by that error over the interval, so two processes agree within about twice `error_ns`.
//! - A step of `CLOCK_REALTIME` (an operator, a leap second) is not followed within a run. Processes that started on
//!   different sides of a step disagree by it; [`ClockFacts::realtime_offset_ns`] is in every recording, and the report
//!   warns when they differ.
//!
//! # How it stays monotonic without a lock
//! Time is a line of nanoseconds over ticks; recalibration bends it. A bend must lie where nobody has looked yet, or a
//! thread that read the old line further out than the new one would see time turn back. So each line is promised up to a
//! limit in ticks, and a new line starts exactly at the limit of the old one. One word holds the limit and which of two
//! slots has the line. A reader that finds itself past the limit moves it by compare-exchange; the calibrating thread
//! publishes a new line by compare-exchange of the same word: whoever comes second sees what the first did and starts
//! over. The reader's cost is two loads of that word, four of the line, and the counter itself: about 10 ns in all.
//!
//! The counter is read without a fence, since a fenced read costs as much as the stages that it would time. So the
//! processor may take the reading while loads before it are still under way: a thread that learns a stamp from another
//! thread and takes its own at once may get one a few nanoseconds lower. On one thread stamps never turn back.

#![allow(
    unsafe_code,
    reason = "the counter is an intrinsic and CLOCK_MONOTONIC has no safe absolute reading"
)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration as StdDuration;

use serde::{Deserialize, Serialize};
use types::Timestamp;

/// A handle to the clock of this process. Copy it to every thread.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// `None`: the counter is of no use and the system is asked.
    counter: Option<&'static Lines>,
    realtime_offset_ns: i64,
}

/// What the clock is and how good it is, for a recording's header.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockFacts {
    /// `tsc` or `clock_gettime`.
    pub source: String,
    /// Why the counter is not used, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_reason: Option<String>,
    /// Ticks of the counter in a second; 0 without it.
    pub ticks_per_second: u64,
    /// Half the shortest bracket of the last calibration: how far the clock may be from `CLOCK_MONOTONIC`, ns.
    pub error_ns: u64,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` at the start of the process, ns: the same in all processes of a host
    /// that were started on the same side of a clock step.
    pub realtime_offset_ns: i64,
    /// How far `CLOCK_REALTIME` has been stepped since the start of the process, ns.
    pub stepped_ns: i64,
}

impl Clock {
    /// The clock of this process. The first call measures for [`FIRST_CALIBRATION`] and starts the thread that
    /// recalibrates: call it before pinning threads, since threads inherit the mask.
    #[must_use]
    pub fn start() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| {
            let realtime_offset_ns = realtime_offset_ns();
            if let Some(reason) = why_not_counter() {
                tracing::warn!("clock: using clock_gettime, which is slower: {reason}");
                return Self {
                    counter: None,
                    realtime_offset_ns,
                };
            }
            let lines: &'static Lines = Box::leak(Box::new(Lines::calibrated(realtime_offset_ns)));
            let spawned = std::thread::Builder::new().name("clock".into()).spawn(move || {
                loop {
                    std::thread::sleep(RECALIBRATION_INTERVAL);
                    lines.recalibrate();
                }
            });
            if let Err(error) = spawned {
                tracing::warn!("clock: no thread to recalibrate it ({error}): it will drift by up to 1 µs a second");
            }
            Self {
                counter: Some(lines),
                realtime_offset_ns,
            }
        })
    }

    /// Now, UTC.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self.counter {
            Some(lines) => Timestamp(lines.now()),
            None => Timestamp(monotonic_ns().wrapping_add_signed(self.realtime_offset_ns)),
        }
    }

    /// What the clock is and how good it is. Reads files: a cold path.
    #[must_use]
    pub fn facts(&self) -> ClockFacts {
        let stepped_ns = realtime_offset_ns() - self.realtime_offset_ns;
        let facts = ClockFacts {
            realtime_offset_ns: self.realtime_offset_ns,
            // Two readings of one distance differ by their errors; a step is far larger.
            stepped_ns: if stepped_ns.unsigned_abs() < STEP_NS_MIN {
                0
            } else {
                stepped_ns
            },
            ..ClockFacts::default()
        };
        match self.counter {
            Some(lines) => ClockFacts {
                source: "tsc".into(),
                ticks_per_second: lines.ticks_per_second(),
                error_ns: lines.error_ns.load(Ordering::Relaxed),
                ..facts
            },
            None => ClockFacts {
                source: "clock_gettime".into(),
                fallback_reason: why_not_counter(),
                ..facts
            },
        }
    }
}

/// How long the first calibration takes. The rate is off by the bracket's error over this.
pub const FIRST_CALIBRATION: StdDuration = StdDuration::from_millis(20);

/// How often the clock is measured again.
pub const RECALIBRATION_INTERVAL: StdDuration = StdDuration::from_millis(250);

/// Furthest that the rate is bent to make up for a distance, in parts per million: what the kernel's own clock allows.
const SLEW_PPM_MAX: i128 = 500;

/// Bracketed readings of which the shortest is taken.
const BRACKETS: usize = 50;

/// A change of the distance between the system's two clocks that is a step and no error of reading.
const STEP_NS_MIN: u64 = 10_000;

/// How far ahead a line is promised, in 1/`PROMISES_PER_SECOND` of a second: so late does a new calibration take effect.
const PROMISES_PER_SECOND: u64 = 50;

/// Lines that map ticks to nanoseconds: the current one and the slot for the next.
#[derive(Debug)]
struct Lines {
    /// Ticks up to which the current line is promised; the lowest bit is its slot. It only grows, so a value never
    /// comes back, and an unchanged value means that the slot was not written meanwhile.
    state: AtomicU64,
    slots: [Line; 2],
    /// How far a promise reaches, ticks; even.
    promise: u64,
    realtime_offset_ns: i64,
    error_ns: AtomicU64,
    /// The last measurement, as the calibrating thread left it.
    measured_ticks: AtomicU64,
    measured_ns: AtomicU64,
}

/// From `start_ticks` on time runs at `rate`; before it, where readers may still be, at `rate_before`.
#[derive(Debug, Default)]
struct Line {
    start_ticks: AtomicU64,
    start_ns: AtomicU64,
    /// Nanoseconds a tick, times 2^32.
    rate: AtomicU64,
    rate_before: AtomicU64,
}

/// One reading of the counter against the system's clock.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    ticks: u64,
    /// UTC by the offset at the start.
    ns: u64,
    error_ns: u64,
}

impl Lines {
    fn calibrated(realtime_offset_ns: i64) -> Self {
        let first = measure(realtime_offset_ns);
        std::thread::sleep(FIRST_CALIBRATION);
        let second = measure(realtime_offset_ns);
        let rate = rate(&first, &second);
        Self::starting(second, rate, realtime_offset_ns)
    }

    fn starting(at: Measurement, rate: u64, realtime_offset_ns: i64) -> Self {
        let ticks_per_second = ticks_per_second(rate);
        let promise = (ticks_per_second / PROMISES_PER_SECOND).max(2) & !1;
        let line = Line::default();
        line.set(at.ticks, at.ns, rate, rate);
        Self {
            state: AtomicU64::new((at.ticks + promise) & !1),
            slots: [line, Line::default()],
            promise,
            realtime_offset_ns,
            error_ns: AtomicU64::new(at.error_ns),
            measured_ticks: AtomicU64::new(at.ticks),
            measured_ns: AtomicU64::new(at.ns),
        }
    }

    #[inline]
    fn now(&self) -> u64 {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let line = self.line(state);
            let start_ticks = line.start_ticks.load(Ordering::Relaxed);
            let start_ns = line.start_ns.load(Ordering::Relaxed);
            let rate = line.rate.load(Ordering::Relaxed);
            let rate_before = line.rate_before.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) != state {
                continue;
            }
            let ticks = ticks();
            if ticks >= (state & !1) {
                self.promise_further(state, ticks);
                continue;
            }
            return if ticks >= start_ticks {
                start_ns + scale(ticks - start_ticks, rate)
            } else {
                start_ns - scale(start_ticks - ticks, rate_before)
            };
        }
    }

    /// The line of the slot that the lowest bit of `state` names.
    #[inline]
    const fn line(&self, state: u64) -> &Line {
        if state & 1 == 0 { &self.slots[0] } else { &self.slots[1] }
    }

    #[cold]
    fn promise_further(&self, state: u64, ticks: u64) {
        let further = ((ticks + self.promise) & !1) | (state & 1);
        // Failure: somebody else has moved it, which is as good.
        let _ = self
            .state
            .compare_exchange(state, further, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Measures again and bends the line. Only the calibrating thread calls this.
    fn recalibrate(&self) {
        let before = Measurement {
            ticks: self.measured_ticks.load(Ordering::Relaxed),
            ns: self.measured_ns.load(Ordering::Relaxed),
            error_ns: 0,
        };
        let measured = measure(self.realtime_offset_ns);
        if measured.ticks <= before.ticks || measured.ns <= before.ns {
            return;
        }
        self.measured_ticks.store(measured.ticks, Ordering::Relaxed);
        self.measured_ns.store(measured.ns, Ordering::Relaxed);
        self.error_ns.store(measured.error_ns, Ordering::Relaxed);
        self.bend(&measured, rate(&before, &measured));
    }

    /// Publishes a line that begins where the current one's promise ends and meets the measured one an interval later.
    fn bend(&self, measured: &Measurement, rate: u64) {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let limit = state & !1;
            let current = self.line(state);
            let current_rate = current.rate.load(Ordering::Relaxed);
            let start_ticks = current.start_ticks.load(Ordering::Relaxed);
            if ticks() < start_ticks {
                return; // A reader may still be before this line, and the next one only knows the rate of this.
            }
            let start_ns = current.start_ns.load(Ordering::Relaxed) + scale(limit - start_ticks, current_rate);
            let wanted_ns =
                i128::from(measured.ns) + (((i128::from(limit) - i128::from(measured.ticks)) * i128::from(rate)) >> 32);
            let new_rate = slewed(rate, wanted_ns - i128::from(start_ns));

            // A reader of the other slot must see that the state has moved on since.
            fence(Ordering::Release);
            let next = (state & 1) ^ 1;
            self.line(next).set(limit, start_ns, new_rate, current_rate);
            let published = (limit + self.promise) | next;
            if self
                .state
                .compare_exchange(state, published, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }

    fn ticks_per_second(&self) -> u64 {
        let state = self.state.load(Ordering::Acquire);
        ticks_per_second(self.line(state).rate.load(Ordering::Relaxed))
    }
}

impl Line {
    fn set(&self, start_ticks: u64, start_ns: u64, rate: u64, rate_before: u64) {
        self.start_ticks.store(start_ticks, Ordering::Relaxed);
        self.start_ns.store(start_ns, Ordering::Relaxed);
        self.rate.store(rate, Ordering::Relaxed);
        self.rate_before.store(rate_before, Ordering::Relaxed);
    }
}

/// `ticks` in nanoseconds.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "2^64 ticks at any real rate are below 2^64 ns"
)]
const fn scale(ticks: u64, rate: u64) -> u64 {
    ((ticks as u128 * rate as u128) >> 32) as u64
}

/// Nanoseconds a tick times 2^32, between two measurements.
fn rate(first: &Measurement, second: &Measurement) -> u64 {
    let ns = u128::from(second.ns - first.ns);
    let ticks = u128::from(second.ticks - first.ticks).max(1);
    u64::try_from((ns << 32) / ticks).unwrap_or(u64::MAX)
}

fn ticks_per_second(rate: u64) -> u64 {
    u64::try_from((1_000_000_000_u128 << 32) / u128::from(rate.max(1))).unwrap_or(u64::MAX)
}

/// `rate`, bent so that a lag of `lag_ns` is made up within a recalibration interval, as far as that is allowed.
fn slewed(rate: u64, lag_ns: i128) -> u64 {
    let rate = i128::from(rate);
    let interval_ns = i128::try_from(RECALIBRATION_INTERVAL.as_nanos()).unwrap_or(i128::MAX);
    let most = rate * SLEW_PPM_MAX / 1_000_000;
    let bend = (rate * lag_ns / interval_ns).clamp(-most, most);
    u64::try_from(rate + bend).unwrap_or(1)
}

/// The counter between two readings of `CLOCK_MONOTONIC`, the tightest of several.
fn measure(realtime_offset_ns: i64) -> Measurement {
    let mut best = Measurement {
        ticks: 0,
        ns: 0,
        error_ns: u64::MAX,
    };
    for _ in 0..BRACKETS {
        let before = monotonic_ns();
        let ticks = ticks();
        let after = monotonic_ns();
        let error_ns = (after - before).div_ceil(2);
        if error_ns < best.error_ns {
            let ns = (before + (after - before) / 2).wrapping_add_signed(realtime_offset_ns);
            best = Measurement { ticks, ns, error_ns };
        }
    }
    best
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, from the tightest of several readings.
fn realtime_offset_ns() -> i64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..BRACKETS {
        let before = monotonic_ns();
        let realtime = system_ns(libc::CLOCK_REALTIME);
        let after = monotonic_ns();
        let width = after - before;
        if width < best.0 {
            best = (width, realtime.cast_signed() - (before + width / 2).cast_signed());
        }
    }
    best.1
}

fn monotonic_ns() -> u64 {
    system_ns(libc::CLOCK_MONOTONIC)
}

fn system_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill, and both clocks exist on every Linux.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(status, 0, "clock_gettime({clock}) failed");
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux leaves it to user programs.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    monotonic_ns()
}

/// Why the counter cannot be trusted; `None` when it can.
fn why_not_counter() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("this processor has no time-stamp counter that is known here".into());
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let sources = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    why_not(&cpuinfo, sources.ok().as_deref())
}

/// The same, given what `/proc/cpuinfo` and the kernel's list of clock sources say.
fn why_not(cpuinfo: &str, clock_sources: Option<&str>) -> Option<String> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or("");
    for needed in ["constant_tsc", "nonstop_tsc"] {
        if !flags.split_whitespace().any(|flag| flag == needed) {
            return Some(format!("/proc/cpuinfo does not list {needed}"));
        }
    }
    // The kernel takes the counter off its list when it finds it unstable or out of step between cores.
    match clock_sources {
        Some(list) if !list.split_whitespace().any(|name| name == "tsc") => Some(format!(
            "the kernel does not trust it (its clock sources: {})",
            list.trim()
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_654_000_000; // 2.597 GHz

    /// Keeps the processor from reading the counter before the loads above have their values.
    fn await_loads() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has the instruction.
        unsafe {
            core::arch::x86_64::_mm_lfence();
        }
    }

    fn lines_from_now() -> Lines {
        Lines::starting(measure(0), RATE, 0)
    }

    #[test]
    fn a_handle_agrees_with_the_system_clock() {
        let clock = Clock::start();
        let system = system_ns(libc::CLOCK_REALTIME);
        let now = clock.now().0;
        // Loose, since the machine is shared and the test may be descheduled between the readings.
        assert!(now.abs_diff(system) < 1_000_000_000, "{now} {system}");
        assert_eq!(clock.facts().stepped_ns, 0);
    }

    #[test]
    fn time_never_turns_back_while_the_line_is_bent_up_and_down() {
        let mut lines = lines_from_now();
        lines.promise = 20_000; // some microseconds, so that bends come soon
        let stop = std::sync::atomic::AtomicBool::new(false);
        let shared_last = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let seen = shared_last.load(Ordering::Acquire);
                        await_loads();
                        let now = lines.now();
                        assert!(now >= seen, "{now} came after {seen}");
                        shared_last.fetch_max(now, Ordering::AcqRel);
                    }
                });
            }
            // Far sharper bends than any calibration makes, or the counter's own noise would hide a defect.
            for round in 0..20_000_u64 {
                let rate = if round % 2 == 0 { RATE * 2 } else { RATE / 2 };
                lines.bend(&measure(0), rate);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_new_line_meets_the_measured_one_an_interval_later() {
        let second = ticks_per_second(RATE);
        let at = Measurement {
            ticks: 1_000_000,
            ns: 5_000_000_000,
            error_ns: 10,
        };
        let lines = Lines::starting(at, RATE, 0);
        // A second later the system's clock is 2 µs ahead of the line.
        let later = Measurement {
            ticks: at.ticks + second,
            ns: at.ns + scale(second, RATE) + 2_000,
            error_ns: 10,
        };
        lines.promise_further(lines.state.load(Ordering::Relaxed), later.ticks);
        lines.bend(&later, RATE);
        let line = &lines.slots[1];
        let start = line.start_ticks.load(Ordering::Relaxed);
        let interval = second / 4;
        let reached = line.start_ns.load(Ordering::Relaxed) + scale(interval, line.rate.load(Ordering::Relaxed));
        let wanted = later.ns + scale(start + interval - later.ticks, RATE);
        assert!(reached.abs_diff(wanted) <= 2, "{reached} {wanted}");
    }

    #[test]
    fn a_large_lag_is_made_up_at_the_permitted_rate() {
        assert_eq!(slewed(1_000_000_000, i128::from(u32::MAX) * 1000), 1_000_500_000);
        assert_eq!(slewed(1_000_000_000, -i128::from(u32::MAX) * 1000), 999_500_000);
        assert_eq!(slewed(1_000_000_000, 0), 1_000_000_000);
    }

    #[test]
    fn a_reader_past_the_promise_extends_it() {
        let lines = lines_from_now();
        let state = lines.state.load(Ordering::Relaxed);
        lines.state.store(2, Ordering::Relaxed);
        let _ = lines.now();
        assert!(lines.state.load(Ordering::Relaxed) >= state);
    }

    #[test]
    fn a_counter_that_may_stop_or_that_the_kernel_distrusts_is_not_used() {
        let good = "flags\t\t: fpu tsc constant_tsc nonstop_tsc\n";
        assert_eq!(why_not(good, Some("tsc kvm-clock\n")), None);
        assert_eq!(why_not(good, None), None);
        assert!(why_not("flags\t\t: fpu tsc nonstop_tsc", None).is_some_and(|why| why.contains("constant_tsc")));
        assert!(why_not("flags\t\t: fpu tsc constant_tsc", None).is_some_and(|why| why.contains("nonstop_tsc")));
        assert!(why_not(good, Some("hpet acpi_pm\n")).is_some_and(|why| why.contains("hpet")));
    }
}
