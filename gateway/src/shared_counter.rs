//! A sum over all shards, and its limit.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How many shards change what they share.
pub(crate) trait Sharers {
    /// Subtracts.
    fn subtract(value: &AtomicI64, amount: i64);

    /// Subtracts when there is so much. Returns whether there was.
    fn subtract_up_to_all(value: &AtomicI64, amount: i64) -> bool;

    /// Puts another value in the place of one, or leaves it.
    ///
    /// # Errors
    /// The value that was left.
    fn advance(value: &AtomicU64, to: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64>;
}

/// One alone, which needs no compare-exchange.
pub(crate) struct Alone;

/// Several at a time.
pub(crate) struct Several;

impl Sharers for Alone {
    #[inline]
    fn subtract(value: &AtomicI64, amount: i64) {
        value.store(value.load(Ordering::Relaxed) - amount, Ordering::Relaxed);
    }

    #[inline]
    fn subtract_up_to_all(value: &AtomicI64, amount: i64) -> bool {
        let left = value.load(Ordering::Relaxed);
        let is_enough = left >= amount;
        if is_enough {
            value.store(left - amount, Ordering::Relaxed);
        }
        is_enough
    }

    #[inline]
    fn advance(value: &AtomicU64, mut to: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        let before = value.load(Ordering::Relaxed);
        let after = to(before).ok_or(before)?;
        value.store(after, Ordering::Relaxed);
        Ok(before)
    }
}

impl Sharers for Several {
    #[inline]
    fn subtract(value: &AtomicI64, amount: i64) {
        value.fetch_sub(amount, Ordering::AcqRel);
    }

    #[inline]
    fn subtract_up_to_all(value: &AtomicI64, amount: i64) -> bool {
        let less = |left: i64| (left >= amount).then(|| left - amount);
        value.try_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    #[inline]
    fn advance(value: &AtomicU64, to: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        value.try_update(Ordering::AcqRel, Ordering::Acquire, to)
    }
}

/// What is left of a limit, so that one comparison says whether there is enough.
#[derive(Debug)]
pub(crate) struct Counter {
    left: AtomicI64,
    limit: AtomicI64,
}

impl Counter {
    /// Nothing taken. `None`: no limit.
    pub(crate) const fn new(limit: Option<i64>) -> Self {
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
    pub(crate) fn take<S: Sharers>(&self, amount: i64) -> bool {
        if amount <= 0 {
            self.add::<S>(amount);
            return true;
        }
        S::subtract_up_to_all(&self.left, amount)
    }

    #[inline]
    pub(crate) fn add<S: Sharers>(&self, amount: i64) {
        if amount != 0 {
            S::subtract(&self.left, amount);
        }
    }

    /// Whether less than the limit is used with this change.
    #[inline]
    pub(crate) fn stays_below(&self, change: i64) -> bool {
        self.left.load(Ordering::Acquire) > change
    }
}

/// Takes so much of each, or nothing of any.
///
/// # Errors
/// The place of the first that has not so much left.
#[inline]
pub(crate) fn take_all<S: Sharers, const N: usize>(counters: &[Counter; N], amounts: [i64; N]) -> Result<(), usize> {
    for place in 0..N {
        if !counters[place].take::<S>(amounts[place]) {
            give_back::<S>(&counters[..place], &amounts);
            return Err(place);
        }
    }
    Ok(())
}

/// What was taken of the first ones.
#[cold]
fn give_back<S: Sharers>(counters: &[Counter], amounts: &[i64]) {
    for (counter, amount) in counters.iter().zip(amounts) {
        counter.add::<S>(-amount);
    }
}

/// The highest, and what holds where there is none: what is left of it never overflows, of sums below zero neither.
const LIMIT_MAX: i64 = 1 << 62;

const fn bounded(limit: Option<i64>) -> i64 {
    match limit {
        Some(limit) if limit < LIMIT_MAX => limit,
        _ => LIMIT_MAX,
    }
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
            is_alone in any::<bool>(),
            first in prop::option::of(0..40i64),
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let counter = Counter::new(first);
            let (mut used, mut limit) = (0_i128, bounded(first));
            for step in steps {
                match step {
                    Step::Take(amount) => {
                        let fits = amount <= 0 || used + i128::from(amount) <= i128::from(limit);
                        let taken = if is_alone {
                            counter.take::<Alone>(amount)
                        } else {
                            counter.take::<Several>(amount)
                        };
                        prop_assert_eq!(taken, fits);
                        used += if fits { i128::from(amount) } else { 0 };
                    }
                    Step::Add(amount) => {
                        if is_alone {
                            counter.add::<Alone>(amount);
                        } else {
                            counter.add::<Several>(amount);
                        }
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
