//! The instruments of the market: which book each has, what history calls it, and how its prices and quantities go on the
//! feed.

use super::limits::{MAX_INSTRUMENTS, MAX_PRICE_E4};
use matcher::{BookIndex, PegRules};
use proto::itch::{Stamp, Stock};
use std::fmt;
use types::{Instrument, InstrumentId, Price, Quantity, Symbol, Timestamp};

/// Why a list of instruments cannot be a market.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListingError {
    /// There is none.
    Empty,
    /// More than [`MAX_INSTRUMENTS`].
    TooMany(usize),
    /// ITCH has 8 characters for a symbol.
    SymbolTooLong(Symbol),
    /// Two instruments have this symbol.
    SymbolTwice(Symbol),
    /// Two instruments have this id.
    IdTwice(InstrumentId),
    /// ITCH has 4 decimals for a price, and the tick size needs more, or is not above zero.
    TickSize(Symbol),
    /// The lot size is zero.
    LotSize(Symbol),
}

/// All instruments; a book's index is the place in the list.
pub(crate) struct Listing {
    instruments: Vec<Listed>,
    by_id: Vec<(InstrumentId, BookIndex)>,
    by_stock: Vec<(Stock, BookIndex)>,
    /// What each stock locate of the history stands for.
    locates: Vec<Locate>,
}

/// One instrument.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) id: InstrumentId,
    pub(crate) stock: Stock,
    pub(crate) tick_size: Price,
    pub(crate) lot_size: u32,
    pub(crate) reference_price: Price,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Locate {
    /// History has not said yet.
    Unseen,
    /// An instrument that the market does not have.
    Foreign,
    Book(BookIndex),
}

impl Listing {
    pub(crate) fn new(instruments: &[Instrument]) -> Result<Self, ListingError> {
        if instruments.is_empty() {
            return Err(ListingError::Empty);
        }
        if instruments.len() > MAX_INSTRUMENTS {
            return Err(ListingError::TooMany(instruments.len()));
        }
        let listed = instruments.iter().map(Listed::new).collect::<Result<Vec<_>, _>>()?;
        let books = || (0..).map(BookIndex);
        let mut by_id: Vec<_> = listed.iter().map(|listed| listed.id).zip(books()).collect();
        by_id.sort_unstable();
        let mut by_stock: Vec<_> = listed.iter().map(|listed| listed.stock).zip(books()).collect();
        by_stock.sort_unstable();
        if let Some(pair) = by_id.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ListingError::IdTwice(pair[0].0));
        }
        if let Some(pair) = by_stock.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ListingError::SymbolTwice(instruments[pair[0].1.0 as usize].symbol));
        }
        Ok(Self {
            instruments: listed,
            by_id,
            by_stock,
            locates: vec![Locate::Unseen; LOCATES],
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.instruments.len()
    }

    /// Every book.
    pub(crate) fn books(&self) -> impl Iterator<Item = BookIndex> + use<> {
        (0..).map(BookIndex).take(self.instruments.len())
    }

    pub(crate) fn get(&self, book: BookIndex) -> &Listed {
        &self.instruments[book.0 as usize]
    }

    /// The book of an instrument.
    pub(crate) fn book(&self, id: InstrumentId) -> Option<BookIndex> {
        self.by_id
            .binary_search_by_key(&id, |&(id, _)| id)
            .ok()
            .map(|place| self.by_id[place].1)
    }

    /// The book of a symbol.
    fn book_of_stock(&self, stock: Stock) -> Option<BookIndex> {
        self.by_stock
            .binary_search_by_key(&stock, |&(stock, _)| stock)
            .ok()
            .map(|place| self.by_stock[place].1)
    }

    /// The book that history means by a stock locate.
    pub(crate) fn book_of_locate(&self, locate: u16) -> Option<BookIndex> {
        match self.locates[usize::from(locate)] {
            Locate::Book(book) => Some(book),
            Locate::Unseen | Locate::Foreign => None,
        }
    }

    /// The same for a message that names the symbol too: a feed that was cut out of a day may lack the directory.
    pub(crate) fn book_of_stock_message(&mut self, locate: u16, stock: Stock) -> Option<BookIndex> {
        if self.locates[usize::from(locate)] == Locate::Unseen {
            self.learn(locate, stock);
        }
        self.book_of_locate(locate)
    }

    /// History says what a locate stands for.
    pub(crate) fn learn(&mut self, locate: u16, stock: Stock) -> Option<BookIndex> {
        let book = self.book_of_stock(stock);
        self.locates[usize::from(locate)] = book.map_or(Locate::Foreign, Locate::Book);
        book
    }

    /// A new history has its own locates.
    pub(crate) fn forget_locates(&mut self) {
        self.locates.fill(Locate::Unseen);
    }
}

impl Listed {
    fn new(instrument: &Instrument) -> Result<Self, ListingError> {
        let symbol = instrument.symbol;
        let stock = Stock::new(&symbol).ok_or(ListingError::SymbolTooLong(symbol))?;
        if instrument.tick_size.0 <= 0 || instrument.tick_size.0 % PRICE_STEP != 0 {
            return Err(ListingError::TickSize(symbol));
        }
        if instrument.lot_size == 0 {
            return Err(ListingError::LotSize(symbol));
        }
        Ok(Self {
            id: instrument.id,
            stock,
            tick_size: instrument.tick_size,
            lot_size: instrument.lot_size,
            reference_price: instrument.reference_price,
        })
    }

    /// Whether a client may give this limit: above zero, on the tick grid, and not too high for the feed.
    pub(crate) const fn takes_price(&self, price: Price) -> bool {
        price.0 > 0 && price.is_multiple_of(self.tick_size) && price.to_e4() <= MAX_PRICE_E4
    }

    /// The prices that pegged orders may have: those that a client could give.
    pub(crate) fn peg_rules(&self) -> PegRules {
        let highest = Price::from_e4(MAX_PRICE_E4).unwrap_or(Price(i64::MAX));
        PegRules {
            tick: self.tick_size,
            lowest: self.tick_size,
            highest,
        }
    }

    /// Whether a client may give this quantity: above zero, and its shares fit in the feed's 32 bits.
    pub(crate) const fn takes_quantity(&self, quantity: Quantity) -> bool {
        !quantity.is_zero() && quantity.0 <= (u32::MAX / self.lot_size) as u64
    }

    /// Shares of so many lots, which fit because [`Self::takes_quantity`] or [`Self::lots`] said so.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "quantities are bounded where they come in"
    )]
    pub(crate) const fn shares(&self, lots: Quantity) -> u32 {
        (lots.0 * self.lot_size as u64) as u32
    }

    /// Lots of so many shares; `None` when they are not whole lots.
    pub(crate) fn lots(&self, shares: u32) -> Option<Quantity> {
        shares
            .is_multiple_of(self.lot_size)
            .then(|| Quantity(u64::from(shares / self.lot_size)))
    }
}

/// Header of a message about a book, or about the market, that is published at `now`.
#[allow(clippy::cast_possible_truncation, reason = "at most MAX_INSTRUMENTS books")]
pub(crate) const fn stamp(now: Timestamp, book: Option<BookIndex>) -> Stamp {
    let stock_locate = match book {
        Some(book) => (book.0 + 1) as u16,
        None => 0,
    };
    Stamp {
        stock_locate,
        time_ns: now.0 % DAY_NS,
    }
}

/// A price in the feed's 4 decimals. Resting prices are of the feed or were checked by [`Listed::takes_price`].
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "prices are bounded where they come in"
)]
pub(crate) const fn price_e4(price: Price) -> u32 {
    price.to_e4() as u32
}

impl fmt::Display for ListingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no instrument"),
            Self::TooMany(count) => write!(f, "{count} instruments are more than {MAX_INSTRUMENTS}"),
            Self::SymbolTooLong(symbol) => write!(f, "symbol {symbol} has more than the 8 characters of an ITCH feed"),
            Self::SymbolTwice(symbol) => write!(f, "symbol {symbol} is there twice"),
            Self::IdTwice(id) => write!(f, "instrument id {id} is there twice"),
            Self::TickSize(symbol) => {
                write!(
                    f,
                    "tick size of {symbol} must be a multiple of 0.0001, as an ITCH feed has 4 decimals"
                )
            }
            Self::LotSize(symbol) => write!(f, "lot size of {symbol} is zero"),
        }
    }
}

impl std::error::Error for ListingError {}

/// Values of a stock locate.
const LOCATES: usize = 1 << 16;
/// One step of the feed's 4 decimals, 1e-9.
const PRICE_STEP: i64 = 100_000;
/// Nanoseconds in a day.
const DAY_NS: u64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use types::{LimitClass, ShardId, VenueId};

    fn instrument(id: u32, symbol: &str) -> Instrument {
        Instrument {
            id: InstrumentId(id),
            symbol: Symbol::new(symbol.as_bytes()).unwrap(),
            tick_size: Price(10_000_000),
            lot_size: 1,
            reference_price: Price(Price::UNIT),
            limit_class: LimitClass(0),
            shard: ShardId(0),
            venue: VenueId(0),
        }
    }

    #[test]
    fn what_the_feed_cannot_say_is_no_market() {
        let error = |instruments: &[Instrument]| Listing::new(instruments).err();
        assert_eq!(error(&[]), Some(ListingError::Empty));
        let long = instrument(1, "NINECHARS");
        assert_eq!(error(&[long]), Some(ListingError::SymbolTooLong(long.symbol)));
        let fine = Instrument {
            tick_size: Price(10_000),
            ..instrument(1, "A")
        };
        assert_eq!(error(&[fine]), Some(ListingError::TickSize(fine.symbol)));
        assert_eq!(
            error(&[instrument(1, "A"), instrument(1, "B")]),
            Some(ListingError::IdTwice(InstrumentId(1)))
        );
        let twice = instrument(2, "A");
        assert_eq!(
            error(&[instrument(1, "A"), twice]),
            Some(ListingError::SymbolTwice(twice.symbol))
        );
    }

    #[test]
    fn a_locate_is_learnt_from_the_directory_or_an_order() {
        let mut listing = Listing::new(&[instrument(7, "A"), instrument(3, "B")]).ok().unwrap();
        let stock = |symbol: &str| Stock::new(&Symbol::new(symbol.as_bytes()).unwrap()).unwrap();
        assert_eq!(listing.book_of_locate(9), None);
        assert_eq!(listing.learn(9, stock("B")), Some(BookIndex(1)));
        assert_eq!(listing.book_of_stock_message(10, stock("A")), Some(BookIndex(0)));
        assert_eq!(listing.book_of_stock_message(11, stock("C")), None);
        assert_eq!(listing.book_of_locate(9), listing.book(InstrumentId(3)));
        listing.forget_locates();
        assert_eq!(listing.book_of_locate(9), None);
    }
}
