//! Most orders in a time: of an instrument here, of the firm, an account and a session wherever they are counted for all shards.

use crate::config::RateLimit;
use types::{Duration, Timestamp};

/// A limit, and how far it is used.
///
/// One time is kept, that at which the orders taken so far would be due if each took its share of a second (the generic cell
/// rate algorithm). It may run ahead of the clock by what is allowed at once. So a check costs a comparison, and there is no
/// window at whose edge twice as much passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Nanoseconds that one order takes; 0 without a limit.
    pub interval: u64,
    /// How far the time due may run ahead before an order, nanoseconds.
    pub ahead: u64,
    /// When the orders taken so far are due.
    pub due: Timestamp,
}

impl Rate {
    /// Nothing taken yet.
    #[must_use]
    pub fn new(limit: RateLimit) -> Self {
        let (interval, ahead) = match (limit.per_second, limit.at_once) {
            (Some(per_second), Some(at_once)) => {
                let interval = NANOSECONDS_A_SECOND.div_ceil(per_second.max(1).into());
                (interval, interval * u64::from(at_once.saturating_sub(1)))
            }
            _ => (0, u64::MAX),
        };
        Self {
            interval,
            ahead,
            due: Timestamp::NONE,
        }
    }

    /// The same with another limit in the place of this one. The orders that were taken and whose share is not over yet count
    /// on.
    #[must_use]
    pub fn changed(&self, now: Timestamp, limit: RateLimit) -> Self {
        let new = Self::new(limit);
        let taken = match self.interval {
            0 => 0,
            interval => self.due.since(now).0.div_ceil(interval),
        };
        let due = if taken == 0 {
            self.due.min(now)
        } else {
            now + Duration(taken.saturating_mul(new.interval))
        };
        Self { due, ..new }
    }

    /// Whether one more order may be taken now.
    #[inline]
    #[must_use]
    pub const fn allows(&self, now: Timestamp) -> bool {
        self.due.since(now).0 <= self.ahead
    }

    /// From when on one more order may be taken.
    #[must_use]
    pub const fn allows_at(&self) -> Timestamp {
        Timestamp(self.due.0.saturating_sub(self.ahead))
    }

    /// When the orders are due if one more is taken, as [`allows`](Self::allows) said it may: then they are due no later than `ahead`
    /// from now, which is 137 years at most.
    #[inline]
    #[must_use]
    pub fn due_with_one_more(&self, now: Timestamp) -> Timestamp {
        Timestamp(self.due.max(now).0 + self.interval)
    }

    /// Takes one.
    #[inline]
    pub(crate) fn take(&mut self, now: Timestamp) {
        self.due = self.due_with_one_more(now);
    }
}

/// Which of the rates that span shards an order is too fast for: of each from when on it allows one more, or nothing where it
/// allows it now.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TooFast {
    /// The firm's.
    pub firm: Option<Timestamp>,
    /// Its account's.
    pub account: Option<Timestamp>,
    /// Its session's.
    pub session: Option<Timestamp>,
}

impl TooFast {
    /// From when on all of them allow one more.
    pub(crate) fn until(&self) -> Timestamp {
        let of = |rate: Option<Timestamp>| rate.unwrap_or(Timestamp::NONE);
        of(self.firm).max(of(self.account)).max(of(self.session))
    }
}

const NANOSECONDS_A_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RateAction;
    use proptest::prelude::*;

    const fn limit(per_second: u32, at_once: u32) -> RateLimit {
        RateLimit {
            per_second: Some(per_second),
            at_once: Some(at_once),
            action: Some(RateAction::Reject),
        }
    }

    fn rate(per_second: u32, at_once: u32) -> Rate {
        Rate::new(limit(per_second, at_once))
    }

    /// How many orders pass that come at these times.
    fn passed(rate: &mut Rate, times: impl IntoIterator<Item = u64>) -> usize {
        let mut passes = |time: u64| {
            let allowed = rate.allows(Timestamp(time));
            if allowed {
                rate.take(Timestamp(time));
            }
            allowed
        };
        times.into_iter().filter(|&time| passes(time)).count()
    }

    #[test]
    fn so_many_pass_at_once_and_then_one_a_share_of_a_second() {
        let mut rate = rate(1_000, 5);
        assert_eq!(passed(&mut rate, [1_000_000_000; 10]), 5);
        assert_eq!(passed(&mut rate, [1_000_999_999; 10]), 0);
        assert_eq!(passed(&mut rate, [1_001_000_000; 10]), 1);
        assert_eq!(passed(&mut rate, [2_000_000_000; 10]), 5);
    }

    #[test]
    fn without_a_limit_everything_passes() {
        assert_eq!(passed(&mut Rate::new(RateLimit::NONE), [7; 100_000]), 100_000);
    }

    #[test]
    fn what_was_taken_under_another_limit_counts_on_and_not_for_longer_than_the_new_one_says() {
        const NOW: u64 = 1_000_000_000;
        let mut slow = rate(1, 10);
        assert_eq!(passed(&mut slow, [NOW; 20]), 10);
        slow = slow.changed(Timestamp(NOW), limit(1_000, 12));
        assert_eq!(passed(&mut slow, [NOW; 20]), 2);
        assert_eq!(passed(&mut slow, [NOW + 12_000_000; 20]), 12);
        slow = slow.changed(Timestamp(NOW + 12_000_000), limit(1, 5));
        assert_eq!(passed(&mut slow, [NOW + 12_000_000; 20]), 0);
        slow = slow.changed(Timestamp(NOW + 12_000_000), RateLimit::NONE);
        assert_eq!(passed(&mut slow, [NOW + 12_000_000; 20]), 20);
    }

    proptest! {
        #[test]
        fn no_stretch_of_time_lets_more_pass_than_its_share_and_what_is_allowed_at_once(
            gaps in prop::collection::vec(0..3_000_000u64, 1..400),
            per_second in 1..5_000u32,
            at_once in 1..20u32,
        ) {
            let mut rate = rate(per_second, at_once);
            let mut time = 1_000_000_000;
            let mut taken = alloc::vec::Vec::new();
            for gap in gaps {
                time += gap;
                if passed(&mut rate, [time]) == 1 {
                    taken.push(time);
                }
            }
            for (from, &start) in taken.iter().enumerate() {
                for (to, &end) in taken.iter().enumerate().skip(from) {
                    let share = (end - start) * u64::from(per_second) / NANOSECONDS_A_SECOND;
                    prop_assert!((to - from) as u64 <= share + u64::from(at_once));
                }
            }
        }
    }
}
