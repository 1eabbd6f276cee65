//! A sum over all shards, and its limit.

use std::sync::atomic::{AtomicI64, Ordering};
use types::Reason;

/// What is left of a limit, so that one comparison says whether there is enough.
#[derive(Debug)]
pub(crate) struct Counter {
    left: AtomicI64,
    limit: AtomicI64,
}

/// A counter, what is taken of it, and the reason when it has not so much left.
pub(crate) type Taking<'a> = (&'a Counter, i64, Reason);

impl Counter {
    /// Nothing taken. `None`: no limit.
    pub(crate) fn new(limit: Option<i64>) -> Self {
        let limit = bounded(limit);
        Self {
            left: AtomicI64::new(limit),
            limit: AtomicI64::new(limit),
        }
    }

    /// Puts another limit in the place of this one; what is used stays, also when it is more.
    pub(crate) fn set(&self, limit: Option<i64>) {
        let limit = bounded(limit);
        let before = self.limit.swap(limit, Ordering::AcqRel);
        self.left.fetch_add(limit - before, Ordering::AcqRel);
    }

    pub(crate) fn used(&self) -> i64 {
        self.limit.load(Ordering::Acquire) - self.left.load(Ordering::Acquire)
    }

    /// Adds what is more than nothing only as far as the limit goes.
    #[inline]
    pub(crate) fn take(&self, amount: i64) -> bool {
        if amount <= 0 {
            self.add(amount);
            return true;
        }
        let less = |left: i64| (left >= amount).then(|| left - amount);
        self.left.try_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    #[inline]
    pub(crate) fn add(&self, amount: i64) {
        if amount != 0 {
            self.left.fetch_sub(amount, Ordering::AcqRel);
        }
    }

    /// Whether less than the limit is used with this change.
    #[inline]
    pub(crate) fn stays_below(&self, change: i64) -> bool {
        self.left.load(Ordering::Acquire) > change
    }
}

/// Takes all or nothing.
///
/// # Errors
/// The reason of the first that has not so much left.
#[inline(always)]
pub(crate) fn take_all<'a, const N: usize>(takings: impl Fn() -> [Taking<'a>; N]) -> Result<(), Reason> {
    let refused = takings().iter().position(|&(counter, amount, _)| !counter.take(amount));
    match refused {
        None => Ok(()),
        // Made anew here, so that an order that passes does not keep it in memory.
        Some(refused) => Err(give_back(&takings(), refused)),
    }
}

/// What stands before the one that refused; gives its reason.
#[cold]
fn give_back(takings: &[Taking<'_>], refused: usize) -> Reason {
    for &(counter, amount, _) in &takings[..refused] {
        counter.add(-amount);
    }
    takings[refused].2
}

/// The highest, and what holds where there is none: what is left of it never overflows, of sums below zero neither.
const LIMIT_MAX: i64 = 1 << 62;

fn bounded(limit: Option<i64>) -> i64 {
    limit.unwrap_or(LIMIT_MAX).min(LIMIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Take(i64),
        Add(i64),
        Set(Option<i64>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let amount = prop_oneof![4 => -20..20i64, 1 => Just(i64::MAX), 1 => Just(LIMIT_MAX)];
        let limit = prop_oneof![2 => (0..40i64).prop_map(Some), 1 => Just(None), 1 => Just(Some(i64::MAX))];
        prop_oneof![
            3 => amount.prop_map(Step::Take),
            2 => (-20..20i64).prop_map(Step::Add),
            1 => limit.prop_map(Step::Set),
        ]
    }

    proptest! {
        /// Whatever the limit was before, and also when more is used than it allows.
        #[test]
        fn it_counts_what_is_used_and_takes_no_more_than_its_limit(
            first in prop::option::of(0..40i64),
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let counter = Counter::new(first);
            let (mut used, mut limit) = (0_i128, bounded(first));
            for step in steps {
                match step {
                    Step::Take(amount) => {
                        let fits = amount <= 0 || used + i128::from(amount) <= i128::from(limit);
                        prop_assert_eq!(counter.take(amount), fits);
                        used += if fits { i128::from(amount) } else { 0 };
                    }
                    Step::Add(amount) => {
                        counter.add(amount);
                        used += i128::from(amount);
                    }
                    Step::Set(to) => {
                        counter.set(to);
                        limit = bounded(to);
                    }
                }
                prop_assert_eq!(i128::from(counter.used()), used);
                prop_assert_eq!(counter.stays_below(1), used + 1 < i128::from(limit));
            }
        }
    }
}
