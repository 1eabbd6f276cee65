//! The instrument master as a shard uses it: by id, by symbol, and the price of each that was used last.

use crate::effects::Effects;
use crate::places::{InstrumentPlace, Places};
use orders::Reference;
use std::collections::HashMap;
use types::{Bbo, Instrument, InstrumentId, Price, Quote, Symbol};

/// All instruments, those of other shards included.
#[derive(Debug)]
pub struct Instruments {
    places: Places,
    /// By [`InstrumentPlace`].
    entries: Vec<Entry>,
    by_symbol: HashMap<Symbol, InstrumentPlace>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    instrument: Instrument,
    /// As it was used last, and as the journal has it.
    bbo: Bbo,
    /// What orders are measured from by it.
    reference: Reference,
}

impl Instruments {
    /// The instruments of a master.
    pub(crate) fn new(instruments: &[Instrument]) -> Self {
        let entry = |&instrument: &Instrument| Entry {
            instrument,
            bbo: Bbo::default(),
            reference: Reference::NONE,
        };
        Self {
            places: Places::new(instruments),
            entries: instruments.iter().map(entry).collect(),
            by_symbol: (0..)
                .map(InstrumentPlace)
                .zip(instruments)
                .map(|(place, instrument)| (instrument.symbol, place))
                .collect(),
        }
    }

    /// Bytes that it takes for so many instruments, but for what its map of symbols keeps beside them.
    pub(crate) const fn memory_bytes(instruments: usize) -> usize {
        Places::memory_bytes(instruments) + instruments * (size_of::<Entry>() + size_of::<(Symbol, InstrumentPlace)>())
    }

    /// Where an instrument stands in all tables; [`InstrumentPlace::NONE`] when there is none such.
    #[inline]
    pub(crate) fn place(&self, id: InstrumentId) -> InstrumentPlace {
        self.places.find(id)
    }

    /// An instrument by its place.
    #[inline]
    pub(crate) fn at(&self, place: InstrumentPlace) -> Option<&Instrument> {
        self.entries.get(place.0 as usize).map(|entry| &entry.instrument)
    }

    /// An instrument by its id.
    pub(crate) fn get(&self, id: InstrumentId) -> Option<&Instrument> {
        self.at(self.place(id))
    }

    /// An instrument by its symbol.
    pub(crate) fn find(&self, symbol: &[u8]) -> Option<&Instrument> {
        self.at(*self.by_symbol.get(&Symbol::new(symbol)?)?)
    }

    /// All instruments, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Instrument> {
        self.entries.iter().map(|entry| &entry.instrument)
    }

    /// The best bid and offer of an instrument that came as an input.
    pub(crate) fn set_book(&mut self, id: InstrumentId, bbo: &Bbo) {
        let place = self.place(id);
        if let Some(entry) = self.entries.get_mut(place.0 as usize) {
            entry.bbo = *bbo;
            entry.reference = reference(bbo);
        }
    }

    /// The prices that an order is measured from: the middle of best bid and offer, else the side there is, else the last
    /// trade; the last trade; best bid and offer.
    #[inline]
    pub(crate) fn reference<E: Effects>(&mut self, place: InstrumentPlace, effects: &mut E) -> &Reference {
        let Some(entry) = self.entries.get_mut(place.0 as usize) else {
            return &Reference::NONE;
        };
        if let Some(newer) = effects.reference(place, entry.instrument.id, &entry.bbo) {
            entry.bbo = newer;
            entry.reference = reference(&newer);
        }
        &entry.reference
    }
}

/// The prices of a book, see [`Instruments::reference`].
pub(crate) fn reference(bbo: &Bbo) -> Reference {
    let (bid, ask) = (bbo.bid, bbo.ask);
    let price = match (bid.quantity.is_zero(), ask.quantity.is_zero()) {
        (false, false) => Price(bid.price.0.midpoint(ask.price.0)),
        (false, true) => bid.price,
        (true, false) => ask.price,
        (true, true) if bbo.last.0 != 0 => bbo.last,
        (true, true) => Price::NULL,
    };
    let last = if bbo.last.0 > 0 { bbo.last } else { Price::NULL };
    let best = |quote: Quote| {
        if quote.quantity.is_zero() {
            Price::NULL
        } else {
            quote.price
        }
    };
    Reference {
        price,
        last,
        bid: best(bid),
        offer: best(ask),
        time: bbo.time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Quantity, Timestamp};

    #[test]
    fn the_reference_is_the_middle_then_a_side_then_the_last_trade() {
        let quote = |price, lots| Quote {
            price: Price(price),
            quantity: Quantity(lots),
        };
        let of = |bid, ask, last| {
            reference(&Bbo {
                bid,
                ask,
                last: Price(last),
                time: Timestamp(1),
            })
        };
        let price = |bid, ask, last| of(bid, ask, last).price;
        let book = |bid, ask| {
            let reference = of(bid, ask, 7);
            (reference.bid, reference.offer)
        };
        assert_eq!(book(quote(10, 1), quote(20, 1)), (Price(10), Price(20)));
        assert_eq!(book(quote(10, 1), quote(20, 0)), (Price(10), Price::NULL));
        assert_eq!(book(quote(10, 0), quote(20, 1)), (Price::NULL, Price(20)));
        assert_eq!(price(quote(10, 1), quote(20, 1), 7), Price(15));
        assert_eq!(price(quote(10, 1), quote(20, 0), 7), Price(10));
        assert_eq!(price(quote(10, 0), quote(20, 1), 7), Price(20));
        assert_eq!(price(quote(10, 0), quote(20, 0), 7), Price(7));
        assert_eq!(price(quote(0, 0), quote(0, 0), 0), Price::NULL);
    }
}
