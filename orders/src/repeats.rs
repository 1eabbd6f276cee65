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
    limit: u32,
    within: Duration,
    hashes: [u64; ORDERS_REMEMBERED],
    /// Their places by when each was taken last, a byte a place, the newest lowest.
    recency: u64,
    /// By order, a ring of as many times as the limit allows.
    times: [[Timestamp; REPEATS_MAX as usize]; ORDERS_REMEMBERED],
    /// By order.
    rings: [Ring; ORDERS_REMEMBERED],
}

/// How far a ring of times is filled, and its oldest: where the next goes.
#[derive(Clone, Copy)]
struct Ring {
    length: u32,
    next: u32,
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
            limit: limit.orders.unwrap_or(1),
            within: limit.within.unwrap_or(Duration(0)),
            hashes: [0; ORDERS_REMEMBERED],
            recency: 0x0706_0504_0302_0100,
            times: [[Timestamp::NONE; REPEATS_MAX as usize]; ORDERS_REMEMBERED],
            rings: [Ring::EMPTY; ORDERS_REMEMBERED],
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
        // Where is asked only when it is there, which it nearly never is.
        let place = if self.hashes.contains(&hash) {
            self.place_of(hash)
        } else {
            None
        };
        Repeat { hash, place }
    }

    #[cold]
    fn place_of(&self, hash: u64) -> Option<usize> {
        self.hashes.iter().position(|&known| known == hash)
    }

    /// Whether the order may be taken once more.
    #[inline]
    pub(crate) fn allows(&self, now: Timestamp, repeat: Repeat) -> bool {
        match repeat.place {
            Some(place) => {
                let Ring { length, next } = self.rings[place];
                length < self.limit || now.since(self.times[place][next as usize]) >= self.within
            }
            None => true,
        }
    }

    /// It is taken. Nothing was since it was looked up.
    #[inline]
    pub(crate) fn take(&mut self, now: Timestamp, repeat: Repeat) {
        match repeat.place {
            Some(place) => {
                self.renew(place);
                let ring = &mut self.rings[place];
                self.times[place][ring.next as usize] = now;
                ring.next = if ring.next + 1 == self.limit { 0 } else { ring.next + 1 };
                ring.length = self.limit.min(ring.length + 1);
            }
            None => {
                let place = self.forget_one();
                self.hashes[place] = repeat.hash;
                self.times[place][0] = now;
                self.rings[place] = Ring {
                    length: 1,
                    next: u32::from(self.limit > 1),
                };
            }
        }
    }

    /// Makes the order in a place the newest.
    #[inline]
    fn renew(&mut self, place: usize) {
        let mut newer = 0;
        while self.recency >> newer & 0xff != place as u64 {
            newer += 8;
        }
        let mask = (1 << newer) - 1;
        let older = self.recency & !(mask << 8 | 0xff);
        self.recency = older | (self.recency & mask) << 8 | place as u64;
    }

    /// The order that was not sent for longest makes room, and its place is the newest one's.
    #[inline]
    fn forget_one(&mut self) -> usize {
        self.recency = self.recency.rotate_left(8);
        usize::from(self.recency.to_le_bytes()[0]) % ORDERS_REMEMBERED
    }
}

impl Ring {
    const EMPTY: Self = Self { length: 0, next: 0 };
}

/// A byte of the recency is for each.
const _: () = assert!(ORDERS_REMEMBERED == 8);

/// Of the terms that make two orders the same. Never 0, which is nobody's. A client that finds two orders with one hash is
/// held back at both: nobody else.
#[inline]
fn hash(order: &NewOrder) -> u64 {
    let who = u64::from(order.instrument.0) << 32 | u64::from(order.account.0);
    let kind = (order.side as u64) << 56 | (order.order_type as u64) << 48 | (order.time_in_force as u64) << 40;
    // Whole hashes are compared, so that nothing has to reach low bits: odd factors keep the words apart.
    let hash = who
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(order.price.0.cast_unsigned().wrapping_mul(0xd6e8_feb8_6659_fd93))
        .wrapping_add((order.quantity.0 ^ kind).wrapping_mul(0xa076_1d64_78bd_642f))
        .wrapping_add(
            order
                .terms
                .stop_price
                .0
                .cast_unsigned()
                .wrapping_mul(0xe703_7ed1_a0b4_28db),
        );
    hash | 1
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
        fn what_was_not_taken_for_longest_is_forgotten(
            sent in prop::collection::vec(1..=ORDERS_REMEMBERED as u64 + 3, 1..300),
            orders in 1..4u32,
        ) {
            let mut repeats = repeats(orders, 1_000);
            // Each with how often it was taken, the newest last. Time stands still, as it does within a turn.
            let mut known: Vec<(u64, u32)> = Vec::new();
            for hash in sent {
                let place = known.iter().position(|&(other, _)| other == hash);
                let taken = place.map_or(0, |place| known[place].1);
                prop_assert_eq!(passes(&mut repeats, 1_000, hash), taken < orders);
                if taken < orders {
                    place.map(|place| known.remove(place));
                    known.push((hash, taken + 1));
                }
                if known.len() > ORDERS_REMEMBERED {
                    known.remove(0);
                }
            }
        }

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
