//! Looking at the books: best levels, depth, single orders, queues.

use crate::event::{BookIndex, OwnerId};
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::Queue;
use types::{OrderId, Price, Quantity, Side};

/// A price level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Its price, 1e-9.
    pub price: Price,
    /// Lots that all its orders show.
    pub quantity: Quantity,
    /// Orders in it, more than zero.
    pub orders: u32,
}

/// An order that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestingOrder {
    /// The order.
    pub id: OrderId,
    /// Whose it is.
    pub owner: OwnerId,
    /// Its book.
    pub book: BookIndex,
    /// Its side.
    pub side: Side,
    /// Its price, 1e-9: its limit, but for pegged orders in the book.
    pub price: Price,
    /// Lots waiting.
    pub leaves: Quantity,
    /// Lots of these that are shown: fewer for icebergs, none for orders that wait outside of the book.
    pub shown: Quantity,
}

impl Matcher {
    /// Books there are.
    #[must_use]
    pub fn books(&self) -> usize {
        self.books.len()
    }

    /// Orders waiting in all books, and outside of them.
    #[must_use]
    pub fn order_count(&self) -> usize {
        self.orders.in_use()
    }

    /// Levels in all books.
    #[must_use]
    pub fn level_count(&self) -> usize {
        self.levels.in_use()
    }

    /// Live orders with terms.
    #[must_use]
    pub fn special_count(&self) -> usize {
        self.terms.in_use()
    }

    /// Price of a book's last trade, 1e-9; null before the first.
    #[must_use]
    pub fn last_price(&self, book: BookIndex) -> Price {
        self.books[book.0 as usize].last
    }

    /// A live order by its id.
    #[must_use]
    pub fn order(&self, id: OrderId) -> Option<RestingOrder> {
        self.find(id).map(|slot| self.resting_order(slot))
    }

    /// The best level of a side.
    ///
    /// # Panics
    /// Here and in the other views, when there is no such book.
    #[must_use]
    pub fn best(&self, book: BookIndex, side: Side) -> Option<Level> {
        self.ladder(book, side).best().map(|(_, level)| self.level(level))
    }

    /// The levels of a side, best first.
    pub fn levels(&self, book: BookIndex, side: Side) -> impl Iterator<Item = Level> {
        self.level_slots(book, side).map(|level| self.level(level))
    }

    /// The orders of a side in priority: best price first, then the order of their coming.
    pub fn orders(&self, book: BookIndex, side: Side) -> impl Iterator<Item = RestingOrder> {
        self.level_slots(book, side)
            .flat_map(|level| self.queue(level))
            .map(|slot| self.resting_order(slot))
    }

    pub(crate) fn level_slots(&self, book: BookIndex, side: Side) -> impl Iterator<Item = u32> {
        let ladder = self.ladder(book, side);
        core::iter::successors(ladder.best(), |&(key, _)| ladder.below(&self.nodes, key)).map(|(_, level)| level)
    }

    pub(crate) fn queue(&self, level: u32) -> impl Iterator<Item = u32> {
        let some = |slot: u32| (slot != NONE).then_some(slot);
        core::iter::successors(some(self.levels[level].head), move |&slot| some(self.orders[slot].next))
    }

    fn level(&self, slot: u32) -> Level {
        let level = &self.levels[slot];
        Level {
            price: level.price,
            quantity: Quantity(level.volume),
            orders: level.count,
        }
    }

    #[inline]
    pub(crate) fn resting_order(&self, slot: u32) -> RestingOrder {
        let order = &self.orders[slot];
        let level = &self.levels[order.level];
        let plain = RestingOrder {
            id: OrderId(order.id),
            owner: order.owner,
            book: level.book(),
            side: level.side(),
            price: level.price,
            leaves: Quantity(order.lots()),
            shown: Quantity(order.lots()),
        };
        match order.terms() {
            None => plain,
            Some(terms) => {
                let terms = &self.terms[terms];
                let is_in_book = level.queue() == Queue::Book;
                RestingOrder {
                    price: if is_in_book { level.price } else { terms.limit },
                    leaves: Quantity(order.lots() + terms.hidden),
                    shown: if is_in_book { plain.shown } else { Quantity::ZERO },
                    ..plain
                }
            }
        }
    }
}
