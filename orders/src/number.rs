//! The numbers that requests carry on the venue's session.
//!
//! A number rises with every request, as the venue demands, and yet tells where its order is kept: below the shard's byte
//! come a count and, in the lowest bits, the slot of the order plus one (0: the order was refused and has no slot). So a
//! venue's report finds its order without a search. A slot's numbers go only to the order that lives in it: a number
//! between the first and the last that an order got is that order's, and one outside belongs to an order that is gone.
//!
//! Numbers go on over the roll of the day. A report that is late by a day then finds nothing, instead of a new order. When
//! they are nearly used up (2^39 with 64 Ki open orders: six days at a million a second) nothing new is accepted and
//! refusals share one number; what is open can still be cancelled.

use crate::limits::NUMBERS_KEPT_FOR_CANCELS;
use types::{OrderId, ShardId};

/// Gives the numbers of one shard.
pub(crate) struct Numbers {
    shard: ShardId,
    /// Slots are below it.
    capacity: u32,
    /// Width of the slot in a number.
    slot_bits: u32,
    /// How many were given.
    count: u64,
}

/// Bits of a number below the shard's byte.
const NUMBER_BITS: u32 = 56;

impl Numbers {
    /// Numbers for slots below `capacity`.
    pub(crate) const fn new(shard: ShardId, capacity: u32) -> Self {
        Self {
            shard,
            capacity,
            slot_bits: u32::BITS - capacity.leading_zeros(),
            count: 0,
        }
    }

    /// The next number, for the order in `slot`.
    pub(crate) fn next(&mut self, slot: u32) -> u64 {
        self.count += 1;
        OrderId::new(self.shard, (self.count << self.slot_bits) | (u64::from(slot) + 1)).0
    }

    /// The next number, for an order that is refused.
    pub(crate) fn next_refused(&mut self) -> OrderId {
        self.count += u64::from(self.has_room());
        OrderId::new(self.shard, self.count << self.slot_bits)
    }

    /// The slot in a number that was given to an order; `None` for any other number.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "masked to the slot's bits, fewer than 32"
    )]
    pub(crate) fn slot(&self, number: u64) -> Option<u32> {
        let count = (number & ((1 << NUMBER_BITS) - 1)) >> self.slot_bits;
        let given = OrderId(number).shard() == self.shard && (1..=self.count).contains(&count);
        let slot = (number & ((1 << self.slot_bits) - 1)) as u32;
        // The width has room for slots that there are not.
        slot.checked_sub(1).filter(|&slot| given && slot < self.capacity)
    }

    /// Whether enough numbers are left for one more new order or replace.
    pub(crate) const fn has_room(&self) -> bool {
        self.count + NUMBERS_KEPT_FOR_CANCELS < 1 << (NUMBER_BITS - self.slot_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_tell_their_slot() {
        let mut numbers = Numbers::new(ShardId(3), 4);
        let mut last = 0;
        for slot in [3, 0, 2, 1, 0] {
            let number = numbers.next(slot);
            assert!(number > last);
            assert_eq!(OrderId(number).shard(), ShardId(3));
            assert_eq!(numbers.slot(number), Some(slot));
            last = number;
        }
    }

    #[test]
    fn a_number_that_was_never_given_has_no_slot() {
        let mut numbers = Numbers::new(ShardId(3), 4);
        let number = numbers.next(0);
        let refused = numbers.next_refused();
        assert_eq!(numbers.slot(refused.0), None);
        assert_eq!(numbers.slot(0), None);
        assert_eq!(numbers.slot(u64::MAX), None);
        assert_eq!(numbers.slot(number + 16), None, "a later count");
        assert_eq!(numbers.slot(number + 4), None, "a slot that there is not");
        assert_eq!(Numbers::new(ShardId(2), 4).slot(number), None, "another shard's");
    }

    #[test]
    fn the_last_numbers_are_kept_for_cancels() {
        let mut numbers = Numbers::new(ShardId(0), 1 << 24);
        assert!(numbers.has_room());
        numbers.count = (1 << (NUMBER_BITS - numbers.slot_bits)) - NUMBERS_KEPT_FOR_CANCELS;
        assert!(!numbers.has_room());
        assert_eq!(numbers.next_refused(), numbers.next_refused());
        assert!(numbers.next(0) < numbers.next(0));
    }
}
