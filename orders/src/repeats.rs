//! The same order, sent again and again: what a client does that has lost its head.
//!
//! A session's last few different orders are remembered, each by a hash of its terms and with the times at which it was
//! taken. So a check looks at one cache line of hashes, whatever the limit, and the count is exact: no stretch of time as
//! long as the limit's has more. A client that hides its repeats between more different orders than are remembered is held
//! back by its rate alone.

use crate::config::RepeatLimit;
use crate::limits::{ORDERS_REMEMBERED, REPEATS_MAX};
use types::{Duration, NewOrder, Timestamp};

/// The limit of one session, and what is remembered of it.
pub(crate) struct Repeats {
    limit: usize,
    within: Duration,
    hashes: [u64; ORDERS_REMEMBERED],
    /// When each was taken last.
    last: [Timestamp; ORDERS_REMEMBERED],
    /// By order, a ring of as many times as the limit allows; [`Timestamp::NONE`] where there was none yet.
    times: [[Timestamp; REPEATS_MAX as usize]; ORDERS_REMEMBERED],
    /// By order, the oldest of its times.
    oldest: [usize; ORDERS_REMEMBERED],
}

/// An order that was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    hash: u64,
    /// Where it is remembered.
    place: Option<usize>,
}

impl Repeats {
    /// Nothing sent yet.
    pub(crate) fn new(limit: RepeatLimit) -> Self {
        Self {
            limit: limit.orders.unwrap_or(1) as usize,
            within: limit.within.unwrap_or(Duration(0)),
            hashes: [0; ORDERS_REMEMBERED],
            last: [Timestamp::NONE; ORDERS_REMEMBERED],
            times: [[Timestamp::NONE; REPEATS_MAX as usize]; ORDERS_REMEMBERED],
            oldest: [0; ORDERS_REMEMBERED],
        }
    }

    /// Another limit holds from now on; what was sent before is forgotten.
    pub(crate) fn change(&mut self, limit: RepeatLimit) {
        *self = Self::new(limit);
    }

    /// Looks an order up.
    #[inline]
    pub(crate) fn find(&self, order: &NewOrder) -> Repeat {
        self.find_hash(hash(order))
    }

    #[inline]
    fn find_hash(&self, hash: u64) -> Repeat {
        let place = self.hashes.iter().position(|&known| known == hash);
        Repeat { hash, place }
    }

    /// Whether the order may be taken once more.
    #[inline]
    pub(crate) fn allows(&self, now: Timestamp, repeat: Repeat) -> bool {
        match repeat.place {
            Some(place) => {
                let oldest = self.times[place][self.oldest[place]];
                oldest == Timestamp::NONE || now.since(oldest) >= self.within
            }
            None => true,
        }
    }

    /// It is taken. Nothing was since it was looked up.
    #[inline]
    pub(crate) fn take(&mut self, now: Timestamp, repeat: Repeat) {
        let place = match repeat.place {
            Some(place) => place,
            None => self.forget_one(repeat.hash),
        };
        let oldest = &mut self.oldest[place];
        self.times[place][*oldest] = now;
        *oldest = if *oldest + 1 == self.limit { 0 } else { *oldest + 1 };
        self.last[place] = now;
    }

    /// The order that was not sent for longest makes room.
    #[inline]
    fn forget_one(&mut self, hash: u64) -> usize {
        let (mut place, mut longest) = (0, self.last[0].0);
        for other in 1..ORDERS_REMEMBERED {
            let last = self.last[other].0;
            place = if last < longest { other } else { place };
            longest = longest.min(last);
        }
        self.times[place] = [Timestamp::NONE; REPEATS_MAX as usize];
        self.hashes[place] = hash;
        self.oldest[place] = 0;
        place
    }
}

/// Of the terms that make two orders the same. Never 0, which is nobody's. A client that finds two orders with one hash is
/// held back at both: nobody else.
#[inline]
fn hash(order: &NewOrder) -> u64 {
    let who = u64::from(order.instrument.0) << 32 | u64::from(order.account.0);
    let kind = (order.side as u64) << 56 | (order.order_type as u64) << 48 | (order.time_in_force as u64) << 40;
    // Each bit of each word reaches the high bits, and those the low ones.
    let hash = who.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ order
            .price
            .0
            .cast_unsigned()
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .rotate_left(21)
        ^ (order.quantity.0 ^ kind)
            .wrapping_mul(0xa076_1d64_78bd_642f)
            .rotate_left(42)
        ^ order.terms.stop_price.0.cast_unsigned().rotate_left(13);
    (hash ^ hash >> 32).wrapping_mul(0xe703_7ed1_a0b4_28db) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn passes(repeats: &mut Repeats, time: u64, hash: u64) -> bool {
        let now = Timestamp(time);
        let found = repeats.find_hash(hash);
        let allowed = repeats.allows(now, found);
        if allowed {
            repeats.take(now, found);
        }
        allowed
    }

    fn repeats(orders: u32, within: u64) -> Repeats {
        Repeats::new(RepeatLimit {
            orders: Some(orders),
            within: Some(Duration(within)),
        })
    }

    #[test]
    fn so_many_pass_in_the_time_and_one_more_when_it_is_over() {
        let mut repeats = repeats(3, 100);
        let times = [1_000, 1_010, 1_020, 1_030, 1_099, 1_100, 1_109, 1_110];
        let passed = times.map(|time| passes(&mut repeats, time, 7));
        assert_eq!(passed, [true, true, true, false, false, true, false, true]);
        assert!(passes(&mut repeats, 1_110, 9), "another order is another");
    }

    #[test]
    fn the_last_different_orders_are_remembered() {
        let mut repeats = repeats(1, 1_000);
        for hash in 1..=ORDERS_REMEMBERED as u64 {
            assert!(passes(&mut repeats, 1_000 + hash, hash));
        }
        for hash in 1..=ORDERS_REMEMBERED as u64 {
            assert!(!passes(&mut repeats, 1_100, hash), "{hash}");
        }
        assert!(passes(&mut repeats, 1_200, 99), "the first makes room");
        assert!(!passes(&mut repeats, 1_200, 2));
        assert!(passes(&mut repeats, 1_200, 1));
    }

    proptest! {
        #[test]
        fn no_stretch_of_the_time_has_more_than_the_limit_and_none_is_refused_below_it(
            sent in prop::collection::vec((0..60u64, 1..=ORDERS_REMEMBERED as u64), 1..300),
            orders in 1..6u32,
            within in 1..500u64,
        ) {
            let mut repeats = repeats(orders, within);
            let mut time = 1_000;
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (gap, hash) in sent {
                time += gap;
                let in_the_time = taken.iter().filter(|&&(at, other)| other == hash && time - at < within).count();
                let passed = passes(&mut repeats, time, hash);
                prop_assert_eq!(passed, in_the_time < orders as usize);
                if passed {
                    taken.push((time, hash));
                }
            }
        }
    }
}
