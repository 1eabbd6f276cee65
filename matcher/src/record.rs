//! What the pools hold: orders and levels; and the small structs around them.

use crate::event::{BookIndex, NewOrder, OwnerId};
use crate::ladder::{self, Ladder};
use crate::pool::NONE;
use crate::report::Report;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side};

/// One instrument: its two sides.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) sides: [Ladder; 2],
    /// Orders were put in that cross and did not trade. The rule that a book is never crossed rests until it is not.
    pub(crate) gathering: bool,
}

impl Book {
    pub(crate) const EMPTY: Self = Self {
        sides: [Ladder::EMPTY; 2],
        gathering: false,
    };

    /// Whether the best bid is at or above the best offer.
    pub(crate) fn is_crossed(&self) -> bool {
        match (self.sides[0].best(), self.sides[1].best()) {
            (Some((bid, _)), Some((ask, _))) => ladder::price(Side::Buy, bid) >= ladder::price(Side::Sell, ask),
            _ => false,
        }
    }
}

/// A resting order. Half a cache line: the cost of a large book is the misses on these.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Order {
    pub(crate) id: u64,
    /// Lots waiting, more than zero.
    pub(crate) leaves: u64,
    pub(crate) owner: OwnerId,
    pub(crate) level: u32,
    /// The one before it in its level, or [`NONE`].
    pub(crate) prev: u32,
    /// The one behind it in its level, or [`NONE`].
    pub(crate) next: u32,
}

const _: () = assert!(size_of::<Order>() == 32);

impl Order {
    pub(crate) const BLANK: Self = Self {
        id: 0,
        leaves: 0,
        owner: OwnerId::NONE,
        level: NONE,
        prev: NONE,
        next: NONE,
    };

    pub(crate) const fn new(taker: &Taker) -> Self {
        Self {
            id: taker.id,
            leaves: taker.leaves,
            owner: taker.owner,
            ..Self::BLANK
        }
    }
}

/// The queue of one price.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct LevelRecord {
    pub(crate) price: Price,
    /// Lots of all its orders.
    pub(crate) volume: u64,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// Orders in it, more than zero.
    pub(crate) count: u32,
    /// Book, and the side in the lowest bit.
    place: u32,
}

const _: () = assert!(size_of::<LevelRecord>() == 32);

impl LevelRecord {
    pub(crate) const BLANK: Self = Self {
        price: Price(0),
        volume: 0,
        head: NONE,
        tail: NONE,
        count: 0,
        place: 0,
    };

    pub(crate) fn new(book: BookIndex, side: Side, price: Price) -> Self {
        Self {
            price,
            place: book.0 << 1 | u32::from(matches!(side, Side::Sell)),
            ..Self::BLANK
        }
    }

    pub(crate) const fn book(&self) -> BookIndex {
        BookIndex(self.place >> 1)
    }

    pub(crate) const fn side(&self) -> Side {
        if self.place & 1 == 0 { Side::Buy } else { Side::Sell }
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
}

impl Taker {
    pub(crate) const fn new(order: &NewOrder) -> Self {
        let threshold = match order.order_type {
            OrderType::Market => i64::MIN,
            _ => ladder::key(order.side.opposite(), order.price),
        };
        Self {
            id: order.id.0,
            book: order.book,
            owner: order.owner,
            side: order.side,
            leaves: order.quantity.0,
            threshold,
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

pub(crate) const fn side_index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}
