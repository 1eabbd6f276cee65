//! What the pools hold: orders and levels; and the small structs around them.

use crate::event::{Auction, BookIndex, NewOrder, OwnerId};
use crate::ladder::{self, Ladder};
use crate::pool::NONE;
use crate::report::Report;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side};

/// One instrument: what nearly every event looks at. One cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Book {
    pub(crate) sides: [Ladder; 2],
    /// Price of the last trade, 1e-9; null before the first.
    pub(crate) last: Price,
    /// Orders were put in that cross and did not trade. The rule that a book is never crossed rests until it is not.
    pub(crate) gathering: bool,
    /// Stops wait or pegs follow, so every event ends with a look at them.
    pub(crate) is_watched: bool,
    /// The auction that orders gather for; `None` while they trade as they come.
    pub(crate) call: Option<Auction>,
}

const _: () = assert!(size_of::<Book>() == 64);

impl Book {
    pub(crate) const EMPTY: Self = Self {
        sides: [Ladder::EMPTY; 2],
        last: Price::NULL,
        gathering: false,
        is_watched: false,
        call: None,
    };

    /// Whether the best bid is at or above the best offer.
    pub(crate) fn is_crossed(&self) -> bool {
        match (self.sides[0].best(), self.sides[1].best()) {
            (Some((bid, _)), Some((ask, _))) => ladder::price(Side::Buy, bid) >= ladder::price(Side::Sell, ask),
            _ => false,
        }
    }
}

/// A live order. Half a cache line: the cost of a large book is the misses on these.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Order {
    pub(crate) id: u64,
    /// Lots that its level counts, in the low [`LOTS_BITS`] bits; above them the place of its terms plus one, 0 for none.
    /// At zero a plain order is done, and one comparison tells.
    packed: u64,
    pub(crate) owner: OwnerId,
    pub(crate) level: u32,
    /// The one before it in its level, or [`NONE`].
    pub(crate) prev: u32,
    /// The one behind it in its level, or [`NONE`].
    pub(crate) next: u32,
}

const _: () = assert!(size_of::<Order>() == 32);

impl Order {
    /// Of a slot of which nothing is in the index: it is not done.
    pub(crate) const BLANK: Self = Self {
        id: 0,
        packed: 1,
        owner: OwnerId::NONE,
        level: NONE,
        prev: NONE,
        next: NONE,
    };

    /// An order that is in no level yet. `terms` is where its terms are, or [`NONE`].
    pub(crate) const fn new(id: OrderId, owner: OwnerId, lots: u64, terms: u32) -> Self {
        Self {
            id: id.0,
            packed: lots | (terms.wrapping_add(1) as u64) << LOTS_BITS,
            owner,
            ..Self::BLANK
        }
    }

    /// Lots that its level counts: of an iceberg those that are shown, of others all.
    #[inline]
    pub(crate) const fn lots(&self) -> u64 {
        self.packed & LOTS_MASK
    }

    /// Where its terms are.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "28 bits are left")]
    pub(crate) const fn terms(&self) -> Option<u32> {
        match self.packed >> LOTS_BITS {
            0 => None,
            place => Some(place as u32 - 1),
        }
    }

    /// Takes lots away; it has so many.
    #[inline]
    pub(crate) const fn take(&mut self, lots: u64) {
        debug_assert!(lots <= self.lots());
        self.packed -= lots;
    }

    pub(crate) const fn set_lots(&mut self, lots: u64) {
        self.packed = self.packed & !LOTS_MASK | lots;
    }

    /// Whether it has no lots and no terms that could give it more: its slot is free, and the index has it still.
    #[inline]
    pub(crate) const fn is_done(&self) -> bool {
        self.packed == 0
    }

    /// Whether it has this id, and is not done.
    #[inline]
    pub(crate) fn is_live(&self, id: OrderId) -> bool {
        self.id == id.0 && !self.is_done()
    }
}

/// Bits of a quantity in [`Order`]; those left are enough for the place of every order's terms.
const LOTS_BITS: u32 = 36;
const LOTS_MASK: u64 = (1 << LOTS_BITS) - 1;
const _: () = assert!(crate::MAX_QUANTITY <= LOTS_MASK);
const _: () = assert!((crate::MAX_SPECIAL as u64) < 1 << (u64::BITS - LOTS_BITS));

/// What orders wait in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// The book: a level is a price.
    Book = 0,
    /// Stops that are not triggered: a level is a stop price.
    Stops = 1,
    /// Out of the book for another reason: a level is a [`Hold`].
    Held = 2,
}

/// Why an order is out of the book, but for stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// Its auction has not begun.
    Opening = 1,
    /// Its auction has not begun.
    Closing = 2,
    /// Pegged, and there is no price to follow.
    Peg = 3,
    /// A market order that waits for the auction's price.
    Market = 4,
}

impl Hold {
    /// What stands for a price in a level of these.
    pub(crate) const fn price(self) -> Price {
        Price(self as i64)
    }
}

impl From<Auction> for Hold {
    fn from(auction: Auction) -> Self {
        match auction {
            Auction::Opening => Self::Opening,
            Auction::Closing => Self::Closing,
        }
    }
}

/// Where a level is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) book: BookIndex,
    pub(crate) queue: Queue,
    pub(crate) side: Side,
    /// In the book a limit, among stops a stop price, else [`Hold::price`].
    pub(crate) price: Price,
}

impl Place {
    /// In the book.
    pub(crate) const fn book(book: BookIndex, side: Side, price: Price) -> Self {
        Self {
            book,
            queue: Queue::Book,
            side,
            price,
        }
    }

    /// Its key in its ladder. The first stop to be triggered has the greatest: of buys the lowest, of sells the highest.
    pub(crate) const fn key(&self) -> i64 {
        match self.queue {
            Queue::Book => ladder::key(self.side, self.price),
            Queue::Stops => ladder::key(self.side.opposite(), self.price),
            Queue::Held => self.price.0,
        }
    }
}

/// The queue of one price.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct LevelRecord {
    pub(crate) price: Price,
    /// Lots of all its orders, hidden ones not counted.
    pub(crate) volume: u64,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// Orders in it, more than zero.
    pub(crate) count: u32,
    /// Book, then the queue in two bits, and the side in the lowest.
    at: u32,
}

const _: () = assert!(size_of::<LevelRecord>() == 32);
const _: () = assert!(crate::MAX_BOOKS <= 1 << 29);

impl LevelRecord {
    pub(crate) const BLANK: Self = Self {
        price: Price(0),
        volume: 0,
        head: NONE,
        tail: NONE,
        count: 0,
        at: 0,
    };

    pub(crate) fn new(place: Place) -> Self {
        Self {
            price: place.price,
            at: place.book.0 << 3 | (place.queue as u32) << 1 | u32::from(matches!(place.side, Side::Sell)),
            ..Self::BLANK
        }
    }

    pub(crate) const fn book(&self) -> BookIndex {
        BookIndex(self.at >> 3)
    }

    pub(crate) const fn queue(&self) -> Queue {
        match self.at >> 1 & 3 {
            0 => Queue::Book,
            1 => Queue::Stops,
            _ => Queue::Held,
        }
    }

    pub(crate) const fn side(&self) -> Side {
        if self.at & 1 == 0 { Side::Buy } else { Side::Sell }
    }

    pub(crate) const fn place(&self) -> Place {
        Place {
            book: self.book(),
            queue: self.queue(),
            side: self.side(),
            price: self.price,
        }
    }
}

/// An incoming order while it trades.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub(crate) id: u64,
    pub(crate) book: BookIndex,
    pub(crate) owner: OwnerId,
    pub(crate) side: Side,
    pub(crate) leaves: u64,
    /// Least key on the opposite side that it trades with.
    pub(crate) threshold: i64,
    /// Trades that it may still make.
    pub(crate) trades: u32,
}

impl Taker {
    /// A new order, limit or market.
    pub(crate) fn new(order: &NewOrder) -> Self {
        let limit = (order.order_type != OrderType::Market).then_some(order.price);
        Self {
            id: order.id.0,
            book: order.book,
            owner: order.owner,
            side: order.side,
            leaves: order.quantity.0,
            threshold: threshold(order.side, limit),
            trades: u32::MAX,
        }
    }

    pub(crate) const fn canceled(&self, reason: Reason) -> Report {
        Report::Canceled {
            id: OrderId(self.id),
            owner: self.owner,
            quantity: Quantity(self.leaves),
            reason,
        }
    }
}

/// Least key of the other side that an order with this limit, or without one, reaches.
pub(crate) const fn threshold(side: Side, limit: Option<Price>) -> i64 {
    match limit {
        Some(limit) => ladder::key(side.opposite(), limit),
        None => i64::MIN,
    }
}

pub(crate) const fn side_index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}
