//! The rate at which packets leave, after DCQCN (Zhu and others, "Congestion control for large-scale RDMA deployments",
//! SIGCOMM 2015): a congestion notification cuts it, time without one lets it recover.
//!
//! `alpha` estimates how congested the way is. A notification cuts the rate by `alpha / 2`; five recovery steps halve the
//! distance to where it was, and steps after those raise that target too.

use super::NEVER;
use types::{Duration, Timestamp};

/// Settings of the rate control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateConfig {
    /// Of the line, bytes a second. At this rate nothing is held back.
    pub line: u64,
    /// The lowest, bytes a second.
    pub lowest: u64,
    /// What a recovery step adds to the target once it has been reached, bytes a second.
    pub step: u64,
    /// Time without a notification after which `alpha` falls.
    pub alpha_period: Duration,
    /// Time between recovery steps.
    pub recovery_period: Duration,
}

/// The rate and its timers.
#[derive(Debug)]
pub(super) struct Rate {
    config: RateConfig,
    /// Bytes a second.
    current: u64,
    target: u64,
    /// In 1 / [`ONE`].
    alpha: u64,
    alpha_at: Timestamp,
    recovery_at: Timestamp,
    /// Recovery steps since the last notification.
    steps: u32,
    /// No packet leaves before.
    next_at: Timestamp,
}

impl RateConfig {
    /// The periods of the paper for a line of so many bytes a second.
    #[must_use]
    pub const fn for_line(line: u64) -> Self {
        Self {
            line,
            lowest: line / 1_000,
            step: line / 1_000,
            alpha_period: Duration::from_micros(55),
            recovery_period: Duration::from_micros(300),
        }
    }

    pub(super) const fn is_sound(&self) -> bool {
        let periods = self.alpha_period.0 > 0 && self.recovery_period.0 > 0;
        self.lowest > 0 && self.lowest <= self.line && self.line <= LINE_MAX && self.step > 0 && periods
    }
}

impl Rate {
    pub(super) const fn new(config: RateConfig) -> Self {
        Self {
            config,
            current: config.line,
            target: config.line,
            alpha: ONE,
            alpha_at: NEVER,
            recovery_at: NEVER,
            steps: 0,
            next_at: Timestamp::NONE,
        }
    }

    /// Bytes a second.
    pub(super) const fn current(&self) -> u64 {
        self.current
    }

    /// When the next packet may leave.
    pub(super) const fn next_at(&self) -> Timestamp {
        self.next_at
    }

    /// When a timer of its own fires.
    pub(super) fn timer(&self) -> Timestamp {
        self.alpha_at.min(self.recovery_at)
    }

    /// The peer reports congestion.
    pub(super) fn on_notification(&mut self, now: Timestamp) {
        self.target = self.current;
        self.current = (self.current - self.current * self.alpha / (2 * ONE)).max(self.config.lowest);
        self.alpha += (ONE - self.alpha) >> GAIN_SHIFT;
        self.alpha_at = now + self.config.alpha_period;
        self.recovery_at = now + self.config.recovery_period;
        self.steps = 0;
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now: Timestamp) {
        if now >= self.alpha_at {
            self.alpha -= self.alpha >> GAIN_SHIFT;
            self.alpha_at = now + self.config.alpha_period;
        }
        if now >= self.recovery_at {
            self.recover();
            self.recovery_at = now + self.config.recovery_period;
        }
        if self.current == self.config.line {
            // Recovered: nothing more to do until the next notification.
            self.recovery_at = NEVER;
            self.alpha_at = NEVER;
        }
    }

    fn recover(&mut self) {
        self.steps += 1;
        if self.steps > FAST_STEPS {
            self.target = (self.target + self.config.step).min(self.config.line);
        }
        self.current = self.current.midpoint(self.target);
        // Halves never arrive.
        if self.target - self.current < self.config.step {
            self.current = self.target;
        }
    }

    /// A packet of so many bytes leaves.
    pub(super) fn on_packet(&mut self, now: Timestamp, length: usize) {
        if self.current < self.config.line {
            let span = length as u64 * 1_000_000_000 / self.current;
            self.next_at = self.next_at.max(now) + Duration(span);
        }
    }
}

/// `alpha` of one.
const ONE: u64 = 1 << 10;
/// A notification moves `alpha` by a sixteenth.
const GAIN_SHIFT: u32 = 4;
/// Recovery steps that only halve the distance.
const FAST_STEPS: u32 = 5;
/// So that a rate times `ONE` has room.
const LINE_MAX: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 1_000_000_000;

    #[test]
    fn a_notification_cuts_the_rate_and_time_brings_it_back() {
        let config = RateConfig::for_line(LINE);
        let mut rate = Rate::new(config);
        let mut now = Timestamp(1_000);
        rate.on_packet(now, 1_000);
        assert_eq!(rate.next_at(), Timestamp::NONE, "at the rate of the line nothing waits");
        rate.on_notification(now);
        assert_eq!(rate.current(), LINE / 2);
        rate.on_packet(now, 1_000);
        assert_eq!(rate.next_at(), now + Duration(2_000));
        let mut steps = 0;
        while rate.timer() != NEVER {
            now = rate.timer();
            let before = rate.current();
            rate.on_time(now);
            assert!(rate.current() >= before);
            steps += 1;
            assert!(steps < 10_000);
        }
        assert_eq!(rate.current(), LINE);
    }

    #[test]
    fn under_lasting_congestion_the_rate_stays_above_its_lowest() {
        let config = RateConfig::for_line(LINE);
        let mut rate = Rate::new(config);
        for turn in 0..1_000 {
            rate.on_notification(Timestamp(turn));
            assert!(rate.current() >= config.lowest && rate.current() < LINE);
        }
        assert_eq!(rate.current(), config.lowest);
    }

    #[test]
    fn a_lone_notification_long_after_another_cuts_less() {
        let config = RateConfig {
            recovery_period: Duration::from_millis(100),
            ..RateConfig::for_line(LINE)
        };
        let mut rate = Rate::new(config);
        rate.on_notification(Timestamp(0));
        let mut now = Timestamp(0);
        for _ in 0..20 {
            now = rate.timer();
            rate.on_time(now);
        }
        let before = rate.current();
        rate.on_notification(now);
        assert!(rate.current() > before * 3 / 4, "{} of {before}", rate.current());
    }
}
