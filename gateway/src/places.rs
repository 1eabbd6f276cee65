//! Where each instrument stands in the tables of the gateway: ids are any number, places are those from 0 on.
//!
//! Open addressing, at most half full, linear probing: as fast with a hundred thousand instruments as with one, but for the
//! cache, and as large as their number wants it, whatever their ids are.

use types::{Instrument, InstrumentId};

/// The places of a master's instruments, in the master's order. Nothing changes after start.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// A power of two.
    entries: Box<[Entry]>,
    /// How far a hash is shifted to become an index.
    shift: u32,
}

/// An instrument's index in all tables of instruments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstrumentPlace(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: InstrumentId,
    place: InstrumentPlace,
}

impl InstrumentPlace {
    /// Of an instrument that there is not.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

impl Places {
    /// Of instruments that are fewer than [`InstrumentPlace::NONE`], each with an id of its own.
    pub(crate) fn new(instruments: &[Instrument]) -> Self {
        let size = entries(instruments.len());
        let vacant = Entry {
            id: InstrumentId(0),
            place: InstrumentPlace::NONE,
        };
        let mut places = Self {
            entries: vec![vacant; size].into_boxed_slice(),
            shift: u64::BITS - size.trailing_zeros(),
        };
        for (place, instrument) in (0..).map(InstrumentPlace).zip(instruments) {
            let mut index = places.home(instrument.id);
            while places.entries[index].place != InstrumentPlace::NONE {
                index = places.after(index);
            }
            places.entries[index] = Entry {
                id: instrument.id,
                place,
            };
        }
        places
    }

    /// Bytes that it takes for so many instruments.
    pub(crate) const fn memory_bytes(instruments: usize) -> usize {
        entries(instruments) * size_of::<Entry>()
    }

    /// [`InstrumentPlace::NONE`] when there is no such instrument.
    #[inline]
    pub(crate) fn find(&self, id: InstrumentId) -> InstrumentPlace {
        let mut index = self.home(id);
        loop {
            let entry = self.entries[index];
            if entry.id == id || entry.place == InstrumentPlace::NONE {
                return entry.place;
            }
            index = self.after(index);
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "shifted to the width of an index")]
    fn home(&self, id: InstrumentId) -> usize {
        (u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    const fn after(&self, index: usize) -> usize {
        (index + 1) & (self.entries.len() - 1)
    }
}

/// At least two, so that a hash is shifted by less than its width and one is always vacant.
const fn entries(instruments: usize) -> usize {
    let most = if instruments == 0 { 1 } else { instruments };
    (2 * most).next_power_of_two()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use types::{LimitClass, Price, ShardId, Symbol, VenueId};

    /// With these ids, and nothing else of note.
    pub(crate) fn instruments(ids: &[u32]) -> Vec<Instrument> {
        let of = |&id: &u32| Instrument {
            id: InstrumentId(id),
            symbol: Symbol::new(b"A").expect("a symbol"),
            tick_size: Price(1),
            lot_size: 1,
            reference_price: Price(1),
            limit_class: LimitClass(0),
            shard: ShardId(0),
            venue: VenueId(0),
        };
        ids.iter().map(of).collect()
    }

    #[test]
    fn no_id_is_too_large_and_the_table_is_as_large_as_their_number_wants() {
        let ids = [0, 1, 4_000_000_000, u32::MAX - 1, u32::MAX];
        let places = Places::new(&instruments(&ids));
        assert_eq!(size_of_val(&*places.entries), Places::memory_bytes(ids.len()));
        assert_eq!(Places::memory_bytes(ids.len()), 16 * 8);
        for (place, id) in (0..).zip(ids) {
            assert_eq!(places.find(InstrumentId(id)), InstrumentPlace(place));
        }
        assert_eq!(places.find(InstrumentId(2)), InstrumentPlace::NONE);
        let none = Places::new(&[]);
        assert_eq!(none.find(InstrumentId(0)), InstrumentPlace::NONE);
    }

    proptest! {
        #[test]
        fn what_is_there_is_found_and_nothing_else(
            ids in prop::collection::btree_set(prop_oneof![0..64u32, any::<u32>()], 0..200),
            others in prop::collection::vec(prop_oneof![0..64u32, any::<u32>()], 100),
        ) {
            let ids: Vec<_> = ids.into_iter().collect();
            let places = Places::new(&instruments(&ids));
            let known: BTreeMap<_, _> = ids.iter().copied().zip(0..).collect();
            for id in ids.into_iter().chain(others) {
                let place = known.get(&id).map_or(InstrumentPlace::NONE, |&place| InstrumentPlace(place));
                prop_assert_eq!(places.find(InstrumentId(id)), place);
            }
        }
    }
}
