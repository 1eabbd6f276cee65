//! Live orders by their reference: a hash table of fixed size.
//!
//! Open addressing with linear probing, at most half full; removal moves the followers back, so there are no tombstones
//! and a day of orders leaves no trace. The table is the one large thing that each message touches at random, so an entry
//! is 16 bytes, and references that follow each other share cache lines.

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
    slots: Vec<[u64; 2]>,
    mask: usize,
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

/// References in a block: 8 of them are 128 bytes, two cache lines that are fetched together.
const BLOCK_BITS: u32 = 3;

impl OrderTable {
    /// A table for up to `max` orders.
    pub(super) fn new(max: usize) -> Self {
        let slots = Self::slot_count(max);
        Self {
            slots: alloc::vec![[0; 2]; slots],
            mask: slots - 1,
            live: 0,
            max,
        }
    }

    /// Bytes of a table for up to `max` orders.
    pub(super) const fn memory_bytes(max: usize) -> usize {
        Self::slot_count(max) * size_of::<[u64; 2]>()
    }

    const fn slot_count(max: usize) -> usize {
        let slots = (max * 2).next_power_of_two();
        let block = 1 << BLOCK_BITS;
        if slots < block { block } else { slots }
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
            self.slots.fill([0; 2]);
            self.live = 0;
        }
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
            index = (index + 1) & self.mask;
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
            next = (next + 1) & self.mask;
            let [key, value] = self.slots[next];
            if value >> 32 == 0 {
                break;
            }
            let distance = next.wrapping_sub(self.home(key)) & self.mask;
            if distance >= next.wrapping_sub(hole) & self.mask {
                self.slots[hole] = [key, value];
                hole = next;
            }
        }
        self.slots[hole] = [0; 2];
        self.live -= 1;
    }

    /// First slot to look in: the block is spread by multiplication, the place within it is the reference's own.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked to the length of the table")]
    const fn home(&self, reference: u64) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let block = (reference >> BLOCK_BITS).wrapping_mul(GOLDEN) >> 32;
        let within = reference & ((1 << BLOCK_BITS) - 1);
        ((block << BLOCK_BITS | within) as usize) & self.mask
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

    proptest! {
        /// Few slots and near references, so that blocks collide and clusters wrap around the end.
        #[test]
        fn it_agrees_with_a_map(
            operations in proptest::collection::vec((any::<bool>(), 0_u64..200, 1_u32..5), 0..400),
        ) {
            let mut table = OrderTable::new(40);
            let mut map = BTreeMap::new();
            for (insert, reference, shares) in operations {
                match (table.find(reference), insert) {
                    (Place::Free(index), true) => {
                        prop_assert!(!map.contains_key(&reference));
                        if !table.is_full() {
                            let order = Order { shares, level: shares * 7 };
                            table.insert(index, reference, order);
                            map.insert(reference, order);
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
                for (&reference, &order) in &map {
                    match table.find(reference) {
                        Place::Taken(index) => prop_assert_eq!(table.at(index), order),
                        Place::Free(_) => prop_assert!(false, "{} is missing", reference),
                    }
                }
            }
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
}
