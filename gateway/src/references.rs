//! The latest best bid and offer of every instrument, written by the feed's thread and read by the shards.
//!
//! A sequence lock an instrument, made of atomics alone: the writer makes the version odd, stores, makes it even; a
//! reader that sees an odd or changed version looks again, a bounded number of times, and otherwise keeps what it knew.
//! Shards share nothing but numbers, and these are such.

use crate::places::{InstrumentPlace, Places};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use types::{Bbo, Instrument, InstrumentId, Price, Quantity, Quote, Timestamp};

/// The table, shared by the feed's thread and all shards.
#[derive(Clone, Debug)]
pub struct References {
    places: Arc<Places>,
    /// By [`InstrumentPlace`].
    slots: Arc<[Slot]>,
}

/// One instrument. A cache line of its own, so that one instrument's ticks do not slow another's orders.
#[derive(Default, Debug)]
#[repr(align(64))]
struct Slot {
    /// Odd while a writer is at it; 0 means never written.
    version: AtomicU64,
    bid_price: AtomicI64,
    bid_quantity: AtomicU64,
    ask_price: AtomicI64,
    ask_quantity: AtomicU64,
    last: AtomicI64,
    time: AtomicU64,
}

/// How often a reader looks again when the writer is in its way. The writer needs some ten nanoseconds; after so many
/// the price known before serves.
const READ_ATTEMPTS: usize = 16;

impl References {
    /// A table for the instruments of a master, all without a price.
    #[must_use]
    pub fn new(instruments: &[Instrument]) -> Self {
        Self {
            places: Arc::new(Places::new(instruments)),
            slots: instruments.iter().map(|_| Slot::default()).collect(),
        }
    }

    /// Instruments in the table.
    pub(crate) fn length(&self) -> usize {
        self.slots.len()
    }

    /// Bytes that the table takes for so many instruments.
    pub(crate) const fn memory_bytes(instruments: usize) -> usize {
        instruments * size_of::<Slot>() + Places::memory_bytes(instruments)
    }

    /// Stores a new best bid and offer. One thread alone may call it: the feed's. An id that the master has not is ignored;
    /// the feed maps only instruments of the master.
    pub fn store(&self, instrument: InstrumentId, bbo: &Bbo) {
        let Some(slot) = self.slots.get(self.places.find(instrument).0 as usize) else {
            return;
        };
        let version = slot.version.load(Ordering::Relaxed);
        slot.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.bid_price.store(bbo.bid.price.0, Ordering::Relaxed);
        slot.bid_quantity.store(bbo.bid.quantity.0, Ordering::Relaxed);
        slot.ask_price.store(bbo.ask.price.0, Ordering::Relaxed);
        slot.ask_quantity.store(bbo.ask.quantity.0, Ordering::Relaxed);
        slot.last.store(bbo.last.0, Ordering::Relaxed);
        slot.time.store(bbo.time.0, Ordering::Relaxed);
        slot.version.store(version + 2, Ordering::Release);
    }

    /// The best bid and offer when there is one since the version `seen`, which is 0 at first and becomes its version;
    /// `None` when there is none, or the writer was in the way all the time.
    #[inline]
    pub fn load_newer(&self, place: InstrumentPlace, seen: &mut u64) -> Option<Bbo> {
        let slot = self.slots.get(place.0 as usize)?;
        if slot.version.load(Ordering::Relaxed) == *seen {
            return None;
        }
        slot.load(seen)
    }
}

impl Slot {
    #[inline(never)]
    fn load(&self, seen: &mut u64) -> Option<Bbo> {
        for _ in 0..READ_ATTEMPTS {
            let before = self.version.load(Ordering::Acquire);
            let bbo = Bbo {
                bid: Quote {
                    price: Price(self.bid_price.load(Ordering::Relaxed)),
                    quantity: Quantity(self.bid_quantity.load(Ordering::Relaxed)),
                },
                ask: Quote {
                    price: Price(self.ask_price.load(Ordering::Relaxed)),
                    quantity: Quantity(self.ask_quantity.load(Ordering::Relaxed)),
                },
                last: Price(self.last.load(Ordering::Relaxed)),
                time: Timestamp(self.time.load(Ordering::Relaxed)),
            };
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                *seen = before;
                return Some(bbo);
            }
            std::hint::spin_loop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::tests as places;

    fn bbo(value: u32) -> Bbo {
        let quote = Quote {
            price: Price(i64::from(value)),
            quantity: Quantity(u64::from(value)),
        };
        Bbo {
            bid: quote,
            ask: quote,
            last: Price(i64::from(value)),
            time: Timestamp(u64::from(value)),
        }
    }

    fn references(ids: &[u32]) -> References {
        References::new(&places::instruments(ids))
    }

    #[test]
    fn an_instrument_without_a_tick_has_no_price() {
        let references = references(&[2, u32::MAX]);
        let [first, last, none] = [InstrumentPlace(0), InstrumentPlace(1), InstrumentPlace::NONE];
        let load = |place| references.load_newer(place, &mut 0);
        assert_eq!(load(first), None);
        assert_eq!(load(none), None);
        references.store(InstrumentId(2), &bbo(7));
        references.store(InstrumentId(3), &bbo(8));
        assert_eq!((load(first), load(last)), (Some(bbo(7)), None));
        references.store(InstrumentId(u32::MAX), &bbo(9));
        assert_eq!((load(first), load(last)), (Some(bbo(7)), Some(bbo(9))));
    }

    #[test]
    fn a_price_is_loaded_once() {
        let references = references(&[1]);
        let mut seen = 0;
        let mut load = || references.load_newer(InstrumentPlace(0), &mut seen);
        for value in 1..4 {
            references.store(InstrumentId(1), &bbo(value));
            assert_eq!(load(), Some(bbo(value)));
            assert_eq!(load(), None);
        }
    }

    #[test]
    fn a_reader_never_sees_half_a_price() {
        let references = references(&[1]);
        let writer = references.clone();
        let thread = std::thread::spawn(move || {
            for value in 1..200_000 {
                writer.store(InstrumentId(1), &bbo(value));
            }
        });
        let (mut last, mut version) = (0, 0);
        while !thread.is_finished() {
            if let Some(seen) = references.load_newer(InstrumentPlace(0), &mut version) {
                let value = u32::try_from(seen.time.0).expect("it was a u32");
                assert_eq!(seen, bbo(value));
                assert!(value > last);
                last = value;
            }
        }
        thread.join().expect("the writer does not panic");
    }
}
