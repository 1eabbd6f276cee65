//! Live orders by their reference: a hash table in memory of fixed size.
//!
//! Open addressing with linear probing, at most half full; removal moves the followers back, so there are no tombstones
//! and a day of orders leaves no trace. The table is the one large thing that each message touches at random, so it is
//! kept dense: an entry is 16 bytes, references that follow each other share cache lines, and only as much of the memory
//! is in use as the live orders need. When they outgrow it they move to the next part, twice as large. That takes some
//! milliseconds for 100,000 orders, once for each doubling.

use alloc::vec::Vec;

/// One live order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// Shares left; never 0.
    pub(super) shares: u32,
    /// The price level it rests in.
    pub(super) level: u32,
}

/// See the module's head.
pub(super) struct OrderTable {
    /// Reference, then shares (high half) and level. No shares: the slot is free. (Arrays of u64, so that the allocator
    /// gives zero pages that cost nothing until they are touched.)
    ///
    /// With n slots in use, they are those from index n up to 2n; all others are free.
    slots: Vec<[u64; 2]>,
    /// n: a power of two.
    in_use: usize,
    live: usize,
    max: usize,
}

/// Where a reference is.
pub(super) enum Place {
    /// Here.
    Taken(usize),
    /// It is not in the table and would belong here.
    Free(usize),
}

/// References in a block: 32 of them are 512 bytes. Larger blocks keep more neighbours together, and collide as a whole.
const BLOCK_BITS: u32 = 5;
/// Slots in use at first.
const MIN_SLOTS: usize = 1 << 12;

impl OrderTable {
    /// A table for up to `max` orders.
    pub(super) fn new(max: usize) -> Self {
        Self {
            slots: alloc::vec![[0; 2]; 2 * Self::max_slots(max)],
            in_use: MIN_SLOTS,
            live: 0,
            max,
        }
    }

    /// Bytes of a table for up to `max` orders.
    pub(super) const fn memory_bytes(max: usize) -> usize {
        2 * Self::max_slots(max) * size_of::<[u64; 2]>()
    }

    const fn max_slots(max: usize) -> usize {
        let slots = (max * 2).next_power_of_two();
        if slots < MIN_SLOTS { MIN_SLOTS } else { slots }
    }

    /// Orders in the table.
    pub(super) const fn live(&self) -> usize {
        self.live
    }

    /// Whether it takes no more.
    pub(super) const fn is_full(&self) -> bool {
        self.live >= self.max
    }

    pub(super) fn clear(&mut self) {
        if self.live > 0 {
            self.slots[self.in_use..2 * self.in_use].fill([0; 2]);
            self.live = 0;
        }
        self.in_use = MIN_SLOTS;
    }

    /// Finds a reference. Ends, because half of the slots are free.
    #[inline]
    pub(super) fn find(&self, reference: u64) -> Place {
        let mut index = self.home(reference);
        loop {
            let [key, value] = self.slots[index];
            if value >> 32 == 0 {
                return Place::Free(index);
            }
            if key == reference {
                return Place::Taken(index);
            }
            index = self.after(index);
        }
    }

    /// The order at a place that [`Self::find`] called taken.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a u64")]
    pub(super) fn at(&self, index: usize) -> Order {
        let value = self.slots[index][1];
        Order {
            shares: (value >> 32) as u32,
            level: value as u32,
        }
    }

    /// Puts an order where [`Self::find`] found a free place; the table is not full.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, reference: u64, order: Order) {
        debug_assert!(order.shares > 0 && !self.is_full());
        self.slots[index] = [reference, pack(order)];
        self.live += 1;
        if self.live * 2 > self.in_use && self.in_use * 2 < self.slots.len() {
            self.grow();
        }
    }

    /// Leaves an order with `shares`, more than 0.
    #[inline]
    pub(super) fn set_shares(&mut self, index: usize, shares: u32) {
        let level = self.at(index).level;
        self.slots[index][1] = pack(Order { shares, level });
    }

    /// Takes an order out, and moves those back that stand behind it only because their own place was taken.
    #[inline]
    pub(super) fn remove(&mut self, index: usize) {
        let mut hole = index;
        let mut next = index;
        loop {
            next = self.after(next);
            let [key, value] = self.slots[next];
            if value >> 32 == 0 {
                break;
            }
            if self.distance(self.home(key), next) >= self.distance(hole, next) {
                self.slots[hole] = [key, value];
                hole = next;
            }
        }
        self.slots[hole] = [0; 2];
        self.live -= 1;
    }

    /// Moves all orders to the next part of the memory.
    #[cold]
    fn grow(&mut self) {
        let old = self.in_use..2 * self.in_use;
        self.in_use *= 2;
        for index in old {
            let [reference, value] = core::mem::take(&mut self.slots[index]);
            if value != 0
                && let Place::Free(place) = self.find(reference)
            {
                self.slots[place] = [reference, value];
            }
        }
    }

    /// First slot to look in: the block is spread by multiplication, the place within it is the reference's own.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "cut to the slots in use")]
    const fn home(&self, reference: u64) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let block = (reference >> BLOCK_BITS).wrapping_mul(GOLDEN) >> 32;
        let within = reference & ((1 << BLOCK_BITS) - 1);
        self.wrap((block << BLOCK_BITS | within) as usize)
    }

    #[inline]
    const fn after(&self, index: usize) -> usize {
        self.wrap(index + 1)
    }

    /// Steps from one slot in use to another.
    #[inline]
    const fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.in_use - 1)
    }

    /// Brings an index among those in use.
    #[inline]
    const fn wrap(&self, index: usize) -> usize {
        (index & (self.in_use - 1)) | self.in_use
    }
}

const fn pack(order: Order) -> u64 {
    (order.shares as u64) << 32 | order.level as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    fn check(operations: Vec<(bool, u64, u32)>, max: usize) -> Result<(), TestCaseError> {
        let mut table = OrderTable::new(max);
        let mut map = BTreeMap::new();
        for (insert, reference, shares) in operations {
            match (table.find(reference), insert) {
                (Place::Free(index), true) => {
                    prop_assert!(!map.contains_key(&reference));
                    if !table.is_full() {
                        let level = shares * 7;
                        table.insert(index, reference, Order { shares, level });
                        map.insert(reference, Order { shares, level });
                    }
                }
                (Place::Taken(index), true) => {
                    table.set_shares(index, shares);
                    if let Some(order) = map.get_mut(&reference) {
                        order.shares = shares;
                    }
                }
                (Place::Taken(index), false) => {
                    table.remove(index);
                    prop_assert!(map.remove(&reference).is_some());
                }
                (Place::Free(_), false) => prop_assert!(!map.contains_key(&reference)),
            }
            prop_assert_eq!(table.live(), map.len());
        }
        for (&reference, &order) in &map {
            match table.find(reference) {
                Place::Taken(index) => prop_assert_eq!(table.at(index), order),
                Place::Free(_) => prop_assert!(false, "{} is missing", reference),
            }
        }
        Ok(())
    }

    /// References whose homes are among the last slots of the smallest table and thus of all: clusters wrap around.
    fn crowded() -> Vec<u64> {
        let table = OrderTable::new(1);
        let end = 2 * MIN_SLOTS;
        (0..1 << 20)
            .filter(|&reference| table.home(reference) >= end - 6)
            .take(200)
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn clusters_that_collide_and_wrap_agree_with_a_map(
            operations in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 1_u32..5), 0..600),
        ) {
            let references = crowded();
            let operations = operations.into_iter().map(|(insert, i, shares)| (insert, *i.get(&references), shares));
            check(operations.collect(), 100)?;
        }

        #[test]
        fn orders_survive_that_the_table_grows(
            removed in proptest::collection::vec(0_u64..6_000, 0..2_000),
            step in 1_u64..5,
        ) {
            let added = (0..6_000).map(|n| (true, n * step, 3));
            check(added.chain(removed.into_iter().map(|n| (false, n * step, 1))).collect(), 5_000)?;
        }
    }

    #[test]
    fn references_a_table_apart_do_not_share_a_place() {
        let table = OrderTable::new(1 << 10);
        let homes = (0..64_u64)
            .map(|n| table.home(n << 32))
            .collect::<alloc::collections::BTreeSet<_>>();
        assert!(homes.len() > 32, "{}", homes.len());
    }

    #[test]
    fn a_cleared_table_is_empty_and_small_again() {
        let mut table = OrderTable::new(10_000);
        for reference in 0..10_000 {
            if let Place::Free(index) = table.find(reference) {
                table.insert(index, reference, Order { shares: 1, level: 0 });
            }
        }
        assert!(table.is_full());
        table.clear();
        assert_eq!((table.live(), table.in_use), (0, MIN_SLOTS));
        assert!(table.slots.iter().all(|&slot| slot == [0; 2]));
    }
}
