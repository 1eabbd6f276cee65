//! A fixed number of slots, given out and taken back.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// No slot: the end of a list, an empty side.
pub(crate) const NONE: u32 = u32::MAX;

/// Slots for `T`, all allocated at construction. The slot freed last is given out first, because it is warm.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T: Clone> Pool<T> {
    /// A pool of `capacity` slots. `blank` fills those not in use.
    pub(crate) fn new(capacity: usize, blank: T) -> Self {
        let count = u32::try_from(capacity).expect("capacity of a pool is below 2^32");
        assert!(count < NONE, "a pool of {capacity} slots has no number left for none");
        let slots = alloc::vec![blank; capacity];
        Self {
            slots,
            free: (0..count).rev().collect(),
        }
    }

    /// Bytes that a pool of `capacity` slots takes.
    pub(crate) const fn memory(capacity: usize) -> usize {
        capacity * (size_of::<T>() + size_of::<u32>())
    }

    /// Slots that are free.
    pub(crate) fn room(&self) -> usize {
        self.free.len()
    }

    /// Slots in use.
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Puts `value` into a free slot.
    ///
    /// # Panics
    /// When there is none: who calls has looked at [`Pool::room`].
    pub(crate) fn allocate(&mut self, value: T) -> u32 {
        let slot = self.take();
        self.slots[slot as usize] = value;
        slot
    }

    /// A free slot, with what was in it last.
    ///
    /// # Panics
    /// When there is none: who calls has looked at [`Pool::room`].
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().expect("room was looked at before")
    }

    /// What is in the slots, free ones too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter()
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!(self.free.len() < self.slots.len(), "slot {slot} was free already");
        // At most as many as at construction, so this does not allocate.
        self.free.push(slot);
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;
    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_warm() {
        let mut pool = Pool::new(2, 0_u8);
        let first = pool.allocate(1);
        let second = pool.allocate(2);
        assert_eq!((pool.room(), pool.in_use()), (0, 2));
        pool.release(first);
        assert_eq!(pool.allocate(3), first);
        assert_eq!((pool[first], pool[second]), (3, 2));
    }
}
