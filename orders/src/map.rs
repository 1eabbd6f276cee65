//! A hash table from a pair of numbers to an index: open addressing, fixed size, deterministic.
//!
//! Linear probing at a load of at most three quarters; a removal shifts the entries behind it back, so there are no
//! tombstones and a table that has run all day is as fast as a new one. It cannot be iterated, so its order can decide
//! nothing. Ids that follow each other share cache lines: clients count their orders, and a miss costs more than all the
//! rest of a search.

use alloc::boxed::Box;
use alloc::vec;

/// A table of at most the number of entries it was made for.
pub(crate) struct Map {
    /// A power of two of entries; [`VACANT`] marks a free one.
    entries: Box<[Entry]>,
    /// How far a 64-bit hash is shifted to become the index of a line.
    shift: u32,
    capacity: usize,
    length: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    id: u64,
    scope: u32,
    value: u32,
}

/// No index: what a search gives that found nothing, and what free entries hold. Never a value.
pub(crate) const NIL: u32 = u32::MAX;

/// Entries in a cache line.
const LINE: usize = 4;

const VACANT: Entry = Entry {
    id: 0,
    scope: 0,
    value: NIL,
};

impl Map {
    /// A table for at most `capacity` entries.
    pub(crate) fn new(capacity: usize) -> Self {
        let size = (capacity.max(3) * 4 / 3).next_power_of_two().max(2 * LINE);
        Self {
            entries: vec![VACANT; size].into_boxed_slice(),
            shift: 64 - (size / LINE).trailing_zeros(),
            capacity,
            length: 0,
        }
    }

    /// The value of `(id, scope)`, or [`NIL`].
    #[inline]
    pub(crate) fn find(&self, id: u64, scope: u32) -> u32 {
        let mut position = self.home(id, scope);
        loop {
            let entry = self.entries[position];
            if entry.value == NIL || (entry.id == id && entry.scope == scope) {
                return entry.value;
            }
            position = self.after(position);
        }
    }

    /// Adds `(id, scope)`, which is not there yet. More entries than the table was made for are a defect of the caller.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, scope: u32, value: u32) {
        assert!(
            self.length < self.capacity && value != NIL,
            "map is full or value is the null value"
        );
        let mut position = self.home(id, scope);
        while self.entries[position].value != NIL {
            debug_assert!((self.entries[position].id, self.entries[position].scope) != (id, scope));
            position = self.after(position);
        }
        self.entries[position] = Entry { id, scope, value };
        self.length += 1;
    }

    /// Gives `(id, scope)`, which is there, another value.
    pub(crate) fn update(&mut self, id: u64, scope: u32, value: u32) {
        let mut position = self.home(id, scope);
        loop {
            let entry = &mut self.entries[position];
            assert!(entry.value != NIL, "only what is there is updated");
            if entry.id == id && entry.scope == scope {
                entry.value = value;
                return;
            }
            position = self.after(position);
        }
    }

    /// Removes `(id, scope)`; nothing happens when it is not there.
    pub(crate) fn remove(&mut self, id: u64, scope: u32) {
        let mut hole = self.home(id, scope);
        loop {
            let entry = self.entries[hole];
            if entry.value == NIL {
                return;
            }
            if entry.id == id && entry.scope == scope {
                break;
            }
            hole = self.after(hole);
        }
        self.length -= 1;
        // Entries behind the hole move into it when their own probe would pass over it.
        let mut next = self.after(hole);
        while self.entries[next].value != NIL {
            let home = self.home(self.entries[next].id, self.entries[next].scope);
            let mask = self.entries.len() - 1;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.entries[hole] = self.entries[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.entries[hole] = VACANT;
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(VACANT);
        self.length = 0;
    }

    /// Entries in use.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.entries)
    }

    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "shifted and masked to the width of an index"
    )]
    fn home(&self, id: u64, scope: u32) -> usize {
        // The high bits of a product depend on all bits of its factors. Client order ids are chosen by clients; how many
        // of them one client can make collide is bounded by the open orders of its session.
        let hash = (id / LINE as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(u64::from(scope).wrapping_mul(0xd6e8_feb8_6659_fd93));
        let line = (hash >> self.shift) as usize;
        line * LINE + id as usize % LINE
    }

    #[inline]
    fn after(&self, position: usize) -> usize {
        (position + 1) & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn a_table_that_was_full_and_emptied_finds_nothing() {
        let mut map = Map::new(100);
        for id in 0..100 {
            map.insert(id, 7, 1);
        }
        for id in 0..100 {
            map.remove(id, 7);
        }
        assert_eq!(map.length(), 0);
        assert!((0..100).all(|id| map.find(id, 7) == NIL));
    }

    proptest! {
        #[test]
        fn it_does_what_the_standard_map_does(operations in prop::collection::vec((0u64..40, 0u32..3, any::<bool>()), 0..400)) {
            let mut map = Map::new(120);
            let mut model = HashMap::new();
            for (count, (id, scope, add)) in operations.into_iter().enumerate() {
                let value = u32::try_from(count).unwrap();
                if add && !model.contains_key(&(id, scope)) {
                    map.insert(id, scope, value);
                    model.insert((id, scope), value);
                } else if !add {
                    map.remove(id, scope);
                    model.remove(&(id, scope));
                }
                prop_assert_eq!(map.length(), model.len());
                for id in 0..40 {
                    for scope in 0..3 {
                        prop_assert_eq!(map.find(id, scope), model.get(&(id, scope)).copied().unwrap_or(NIL));
                    }
                }
            }
        }
    }
}
