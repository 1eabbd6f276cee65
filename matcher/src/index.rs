//! Finds a slot by its 64-bit id: a hash table of fixed size.
//!
//! Open addressing, linear probing, at most half full, and a removal closes the gap behind it, so no tombstones
//! gather however long it runs. An entry is 8 bytes, half hash and half slot; a cache line holds eight. The low three
//! bits of the id are kept as the place in the line and only the rest is scattered: ids mostly rise by one, and orders
//! entered one after the other are mostly cancelled near each other too, so their entries are found in one line.
//! Ids that all end in the same three bits still spread over the lines.
//!
//! The table keeps no ids: the slot's owner knows its id, and a lookup asks it only when all 32 bits of the hash
//! agree. There is no seed: equal histories give equal tables, and nothing ever iterates over one.

use crate::pool::NONE;
use alloc::vec::Vec;

/// Finds `u32` slots by `u64` ids. Allocated at construction; bounded.
#[derive(Debug)]
pub struct IdIndex {
    lines: Vec<Line>,
    /// Entries minus one; a power of two minus one.
    mask: u32,
    length: usize,
    capacity: usize,
}

impl IdIndex {
    /// An index of at most `capacity` ids.
    ///
    /// # Panics
    /// When `capacity` is above [`crate::MAX_ORDERS`].
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(
            capacity <= crate::MAX_ORDERS,
            "an index of {capacity} ids is above the maximum"
        );
        let entries = Self::entries(capacity);
        let mask = u32::try_from(entries - 1).expect("twice MAX_ORDERS entries are below 2^32");
        Self {
            lines: alloc::vec![Line([EMPTY; LINE]); entries / LINE],
            mask,
            length: 0,
            capacity,
        }
    }

    /// Bytes that an index of `capacity` ids takes.
    #[must_use]
    pub const fn memory(capacity: usize) -> usize {
        Self::entries(capacity) * size_of::<u64>()
    }

    /// Ids in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether no id is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The slot of `id`. `has_id` tells whether a slot that is in the index has this id.
    #[must_use]
    pub fn find(&self, id: u64, has_id: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = hash(id);
        let mut at = hash & self.mask;
        loop {
            let entry = self.entry(at);
            if entry == EMPTY {
                return None;
            }
            if hash_of(entry) == hash && has_id(slot_of(entry)) {
                return Some(slot_of(entry));
            }
            at = at.wrapping_add(1) & self.mask;
        }
    }

    /// Puts `id` in, which must not be there.
    ///
    /// # Panics
    /// When it is full.
    pub fn insert(&mut self, id: u64, slot: u32) {
        assert!(self.length < self.capacity, "an index of {} ids is full", self.capacity);
        debug_assert!(slot != NONE);
        let hash = hash(id);
        let mut at = hash & self.mask;
        while self.entry(at) != EMPTY {
            at = at.wrapping_add(1) & self.mask;
        }
        self.set(at, (u64::from(hash) << 32) | u64::from(slot));
        self.length += 1;
    }

    /// Takes out `id`, which is at `slot`. Whether it was there.
    pub fn remove(&mut self, id: u64, slot: u32) -> bool {
        let hash = hash(id);
        let wanted = (u64::from(hash) << 32) | u64::from(slot);
        let mut gap = hash & self.mask;
        loop {
            let entry = self.entry(gap);
            if entry == wanted {
                break;
            }
            if entry == EMPTY {
                return false;
            }
            gap = gap.wrapping_add(1) & self.mask;
        }
        self.length -= 1;
        // Every entry between its home and its place must be reached without meeting a gap: those behind move up.
        let mut at = gap;
        loop {
            at = at.wrapping_add(1) & self.mask;
            let entry = self.entry(at);
            if entry == EMPTY {
                break;
            }
            let home = hash_of(entry) & self.mask;
            let from_home = at.wrapping_sub(home) & self.mask;
            let from_gap = at.wrapping_sub(gap) & self.mask;
            if from_home >= from_gap {
                self.set(gap, entry);
                gap = at;
            }
        }
        self.set(gap, EMPTY);
        true
    }

    const fn entries(capacity: usize) -> usize {
        let twice = (capacity * 2).next_power_of_two();
        if twice < LINE { LINE } else { twice }
    }

    fn entry(&self, at: u32) -> u64 {
        self.lines[at as usize / LINE].0[at as usize % LINE]
    }

    fn set(&mut self, at: u32, entry: u64) {
        self.lines[at as usize / LINE].0[at as usize % LINE] = entry;
    }
}

/// One cache line of entries.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line([u64; LINE]);

/// Entries in a cache line.
const LINE: usize = 8;
/// An entry that holds nothing: its slot is [`NONE`].
const EMPTY: u64 = u64::MAX;

/// Odd, with well-mixed bits.
const MIX: u64 = 0xD6E8_FEB8_6659_FD93;

#[allow(clippy::cast_possible_truncation, reason = "folds 64 bits into 32")]
const fn hash(id: u64) -> u32 {
    // Twice, because once leaves ids that have a counter in either half in few places: what a multiplication does to high
    // bits does not reach low ones. The second round takes the high half of the first, which every bit of the id has reached.
    let once = (id >> 3 ^ id >> 35).wrapping_mul(MIX);
    let scattered = ((once ^ once >> 32).wrapping_mul(MIX) >> 32) as u32;
    (scattered << 3) | (id as u32 & 7)
}

#[allow(clippy::cast_possible_truncation, reason = "takes the upper half")]
const fn hash_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[allow(clippy::cast_possible_truncation, reason = "takes the lower half")]
const fn slot_of(entry: u64) -> u32 {
    entry as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The longest walk from a home to an entry.
    fn longest_probe(index: &IdIndex) -> u32 {
        (0..=index.mask)
            .filter(|&at| index.entry(at) != EMPTY)
            .map(|at| at.wrapping_sub(hash_of(index.entry(at))) & index.mask)
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn ids_of_every_pattern_are_near_their_home() {
        const COUNT: u64 = 1 << 17;
        type Pattern = (&'static str, fn(u64) -> u64);
        let patterns: [Pattern; 8] = [
            ("rising", |i| i),
            ("every eighth", |i| i * 8),
            ("every 4096th", |i| i << 12),
            ("top half only", |i| i << 32),
            ("two shards", |i| ((i & 1) << 56) | (i >> 1)),
            ("two ranges", |i| ((i & 1) << 63) | i),
            ("squares", |i| i * i),
            ("two counters", |i| ((i + 1) << 32) | i),
        ];
        for (name, id) in patterns {
            let mut index = IdIndex::new(1 << 17);
            for i in 0..COUNT {
                index.insert(id(i), u32::try_from(i).unwrap());
            }
            let longest = longest_probe(&index);
            assert!(longest < 320, "{name}: {longest}");
            for i in 0..COUNT {
                assert_eq!(
                    index.find(id(i), |slot| id(u64::from(slot)) == id(i)),
                    Some(u32::try_from(i).unwrap()),
                    "{name}"
                );
            }
        }
    }

    #[test]
    #[should_panic(expected = "is full")]
    fn a_full_index_takes_no_more() {
        let mut index = IdIndex::new(1);
        index.insert(1, 0);
        index.insert(2, 1);
    }

    proptest! {
        /// Few homes and many ids, so that probes run into each other and wrap around.
        #[test]
        fn it_finds_what_a_map_finds(steps in prop::collection::vec((0_u64..40, any::<bool>()), 1..400)) {
            let mut index = IdIndex::new(40);
            let mut map: HashMap<u64, u32> = HashMap::new();
            for (id, insert) in steps {
                let id = id << 3;
                let slot = u32::try_from(id >> 3).unwrap();
                if insert && !map.contains_key(&id) {
                    index.insert(id, slot);
                    map.insert(id, slot);
                } else if !insert {
                    prop_assert_eq!(index.remove(id, slot), map.remove(&id).is_some());
                }
                for id in (0..40).map(|id| id << 3) {
                    prop_assert_eq!(index.find(id, |slot| u64::from(slot) << 3 == id), map.get(&id).copied());
                }
                prop_assert_eq!(index.len(), map.len());
            }
        }
    }
}
