//! A rate that spans shards.

use crate::shared_counter::Sharers;
use orders::{Rate, RateLimit};
use std::sync::atomic::{AtomicU64, Ordering};
use types::Timestamp;

/// As [`Rate`], for orders of all shards.
#[derive(Debug)]
pub(crate) struct SharedRate {
    /// Nanoseconds that one order takes; 0 without a limit.
    interval: AtomicU64,
    ahead: AtomicU64,
    due: AtomicU64,
}

impl SharedRate {
    /// Without a limit.
    pub(crate) fn new() -> Self {
        let Rate { interval, ahead, due } = Rate::new(RateLimit::NONE);
        Self {
            interval: AtomicU64::new(interval),
            ahead: AtomicU64::new(ahead),
            due: AtomicU64::new(due.0),
        }
    }

    /// Takes one order.
    ///
    /// # Errors
    /// From when on one more may be taken; none is.
    #[inline]
    pub(crate) fn take<S: Sharers>(&self, now: Timestamp) -> Result<(), Timestamp> {
        let interval = self.interval.load(Ordering::Acquire);
        if interval == 0 {
            return Ok(());
        }
        let ahead = self.ahead.load(Ordering::Acquire);
        let of = |due| Rate {
            interval,
            ahead,
            due: Timestamp(due),
        };
        let taken = S::advance(&self.due, |due| {
            of(due).allows(now).then(|| of(due).due_with_one_more(now).0)
        });
        taken.map(drop).map_err(|due| of(due).allows_at())
    }

    /// Gives back one order that was taken.
    pub(crate) fn give_back(&self) {
        let interval = self.interval.load(Ordering::Acquire);
        if interval > 0 {
            // A limit that was set in between may have forgotten what was taken before.
            let less = |due: u64| Some(due.saturating_sub(interval));
            let _ = self.due.try_update(Ordering::AcqRel, Ordering::Acquire, less);
        }
    }

    /// Takes as many as were allowed then at most, one order among them.
    pub(crate) fn use_up(&self, then: Timestamp) {
        let interval = self.interval.load(Ordering::Acquire);
        if interval > 0 {
            let most = self.ahead.load(Ordering::Acquire).saturating_add(interval);
            self.due.fetch_max(then.0.saturating_add(most), Ordering::AcqRel);
        }
    }

    /// Puts another limit in the place of this one, see [`Rate::changed`]. One thread alone does.
    pub(crate) fn set(&self, now: Timestamp, limit: RateLimit) {
        let known = Rate {
            interval: self.interval.load(Ordering::Acquire),
            ahead: self.ahead.load(Ordering::Acquire),
            due: Timestamp(self.due.load(Ordering::Acquire)),
        };
        let new = known.changed(now, limit);
        if (known.interval, known.ahead) == (new.interval, new.ahead) {
            return;
        }
        let _ = self.due.try_update(Ordering::AcqRel, Ordering::Acquire, |due| {
            let known = Rate {
                due: Timestamp(due),
                ..known
            };
            Some(known.changed(now, limit).due.0)
        });
        self.ahead.store(new.ahead, Ordering::Release);
        self.interval.store(new.interval, Ordering::Release);
    }
}
