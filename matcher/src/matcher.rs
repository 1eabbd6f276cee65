//! The events of plain orders: new, cancel, replace.

use crate::event::{BookIndex, NewOrder, OwnerId, PegRules, Priority, Replace, SelfMatch};
use crate::index::IdIndex;
use crate::ladder::{self, Node, Nodes};
use crate::pool::{NONE, Pool};
use crate::record::{Book, LevelRecord, Order, Place, Queue, Taker, threshold};
use crate::report::{Rejected, Report, Sink};
use crate::terms::{Aside, Terms};
use crate::view::RestingOrder;
use crate::{MAX_BOOKS, MAX_ORDERS, MAX_QUANTITY, MAX_SPECIAL};
use alloc::vec::Vec;
use types::{OrderId, OrderTerms, OrderType, Price, Quantity, Reason, Side, TimeInForce};

/// The books and everything in them.
#[derive(Debug)]
pub struct Matcher {
    pub(crate) books: Vec<Book>,
    /// What each book has beside its prices.
    pub(crate) aside: Vec<Aside>,
    pub(crate) orders: Pool<Order>,
    pub(crate) terms: Pool<Terms>,
    /// A heap of the terms whose orders expire.
    pub(crate) expiries: Vec<u32>,
    pub(crate) levels: Pool<LevelRecord>,
    pub(crate) nodes: Nodes,
    pub(crate) index: IdIndex,
    pub(crate) self_match: SelfMatch,
}

/// How much a matcher can hold, all books together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Books, at most [`MAX_BOOKS`].
    pub books: usize,
    /// Live orders, at most [`MAX_ORDERS`].
    pub orders: usize,
    /// Levels that hold an order: prices, stop prices, and a few for each book with other orders out of it; more than
    /// `orders` are of no use.
    pub levels: usize,
    /// Live orders with terms ([`Matcher::add_with_terms`]), at most [`MAX_SPECIAL`]; may be 0.
    pub special: usize,
}

impl Capacity {
    /// Bytes that [`Matcher::new`] allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.books * (size_of::<Book>() + size_of::<Aside>())
            + Pool::<Order>::memory(self.orders)
            + Pool::<Terms>::memory(self.special)
            + self.special * size_of::<u32>()
            + Pool::<LevelRecord>::memory(self.levels)
            + Nodes::memory(ladder::nodes_needed(self.books * LADDERS, self.levels))
            + IdIndex::memory(self.orders)
    }
}

impl Matcher {
    /// Empty books. All memory is allocated here ([`Capacity::memory`]).
    ///
    /// # Panics
    /// When the capacity is zero somewhere or above the crate's maxima.
    #[must_use]
    pub fn new(capacity: Capacity, self_match: SelfMatch) -> Self {
        let Capacity {
            books,
            orders,
            levels,
            special,
        } = capacity;
        assert!((1..=MAX_BOOKS).contains(&books), "{books} books");
        assert!((1..=MAX_ORDERS).contains(&orders), "{orders} orders");
        assert!((1..=MAX_ORDERS).contains(&levels), "{levels} levels");
        assert!(special <= MAX_SPECIAL, "{special} orders with terms");
        Self {
            books: alloc::vec![Book::EMPTY; books],
            aside: alloc::vec![Aside::EMPTY; books],
            orders: Pool::new(orders, Order::BLANK),
            terms: Pool::new(special, Terms::BLANK),
            expiries: Vec::with_capacity(special),
            levels: Pool::new(levels, LevelRecord::BLANK),
            nodes: Pool::new(ladder::nodes_needed(books * LADDERS, levels), Node::BLANK),
            index: IdIndex::new(orders),
            self_match,
        }
    }

    /// Says which prices pegged orders of a book may have; until then any ([`PegRules::ANY`]).
    ///
    /// # Panics
    /// When there is no such book, or the tick is not above zero.
    pub fn set_peg_rules(&mut self, book: BookIndex, rules: PegRules) {
        assert!(rules.tick.0 > 0, "a tick of {}", rules.tick);
        self.aside[book.0 as usize].peg_rules = rules;
    }

    /// A new order without terms: trades with what it reaches; what is left rests or is cancelled. In an auction's call it
    /// waits for the auction's price.
    pub fn add(&mut self, order: &NewOrder, sink: &mut impl Sink) {
        let is_market = match (order.order_type, order.time_in_force) {
            (OrderType::Market, TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::ImmediateOrCancel) => {
                true
            }
            (OrderType::Limit, TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::ImmediateOrCancel) => {
                false
            }
            _ => return self.add_with_terms(order, &OrderTerms::NONE, sink),
        };
        if self.is_in_call(order.book) {
            return self.add_with_terms(order, &OrderTerms::NONE, sink);
        }
        let may_rest = !is_market && order.time_in_force != TimeInForce::ImmediateOrCancel;
        if let Err(reason) = self.admit(order, may_rest) {
            return reject(order.id, reason, sink);
        }
        sink.report(Report::Accepted { id: order.id });
        let mut taker = Taker::new(order);
        let stopped = self.trade(&mut taker, sink);
        if taker.leaves > 0 {
            match stopped {
                None if may_rest => {
                    let slot = self.allocate(order.id, order.owner, taker.leaves, NONE);
                    self.rest(slot, &taker, order.price, sink);
                }
                _ => sink.report(taker.canceled(stopped.unwrap_or(Reason::Unfilled))),
            }
        }
        self.end_of_event(order.book, sink);
    }

    /// Cancels a live order; `reason` is what its report says.
    pub fn cancel(&mut self, id: OrderId, reason: Reason, sink: &mut impl Sink) {
        let Some(slot) = self.find(id) else {
            return reject(id, Reason::UnknownOrder, sink);
        };
        let book = self.levels[self.orders[slot].level].book();
        self.cancel_slot(slot, reason, sink);
        self.end_of_event(book, sink);
    }

    /// Replaces price, quantity and perhaps id of a live order, and takes its terms away if it has any. One that loses its
    /// place may trade. One that is refused stays as it was.
    pub fn replace(&mut self, replace: &Replace, sink: &mut impl Sink) {
        let Some(slot) = self.find(replace.id) else {
            return reject(replace.id, Reason::UnknownOrder, sink);
        };
        let order = self.orders[slot];
        let LevelRecord { price, .. } = self.levels[order.level];
        let (book, side) = (self.levels[order.level].book(), self.levels[order.level].side());
        if order.terms().is_some() || self.is_in_call(book) {
            return self.replace_with_terms(replace, &OrderTerms::NONE, sink);
        }
        if let Err(reason) = self.admit_replace(replace, order.level) {
            return reject(replace.id, reason, sink);
        }
        self.rename(slot, replace.new_id);
        let kept_priority =
            replace.priority == Priority::KeptWhenReduced && replace.price == price && replace.leaves.0 < order.lots();
        sink.report(Report::Replaced {
            old_id: replace.id,
            id: replace.new_id,
            kept_priority,
            price: replace.price,
            leaves: replace.leaves,
        });
        if kept_priority {
            self.orders[slot].set_lots(replace.leaves.0);
            self.levels[order.level].volume -= order.lots() - replace.leaves.0;
            return self.end_of_event(book, sink);
        }
        // The order keeps its slot and its entry in the index while it is in no level and trades.
        self.unlink(slot);
        let mut taker = Taker {
            id: replace.new_id.0,
            book,
            owner: order.owner,
            side,
            leaves: replace.leaves.0,
            threshold: threshold(side, Some(replace.price)),
            trades: u32::MAX,
        };
        let stopped = self.trade(&mut taker, sink);
        if taker.leaves > 0 && stopped.is_none() {
            self.orders[slot].set_lots(taker.leaves);
            self.rest(slot, &taker, replace.price, sink);
        } else {
            self.forget(book, slot);
            if let Some(reason) = stopped.filter(|_| taker.leaves > 0) {
                sink.report(taker.canceled(reason));
            }
        }
        self.end_of_event(book, sink);
    }

    /// Cancels every order of a book that `chosen` takes: those in the book first, then those out of it; bids before
    /// offers, each in priority.
    pub fn cancel_where(
        &mut self,
        book: BookIndex,
        reason: Reason,
        chosen: impl Fn(OrderId, OwnerId) -> bool,
        sink: &mut impl Sink,
    ) {
        for queue in [Queue::Book, Queue::Stops, Queue::Held] {
            for side in [Side::Buy, Side::Sell] {
                let mut next = self.ladder_of(book, queue, side).best();
                while let Some((key, level)) = next {
                    let mut slot = self.levels[level].head;
                    while slot != NONE {
                        let Order { id, owner, next, .. } = self.orders[slot];
                        if chosen(OrderId(id), owner) {
                            self.cancel_slot(slot, reason, sink);
                        }
                        slot = next;
                    }
                    next = self.ladder_of(book, queue, side).below(&self.nodes, key);
                }
            }
        }
        self.end_of_event(book, sink);
    }

    /// Checks everything that could refuse a new plain order, before anything changes.
    pub(crate) fn admit(&self, order: &NewOrder, may_rest: bool) -> Result<(), Reason> {
        if order.book.0 as usize >= self.books.len() {
            return Err(Reason::UnknownInstrument);
        }
        if !(1..=MAX_QUANTITY).contains(&order.quantity.0) {
            return Err(Reason::InvalidQuantity);
        }
        if order.order_type == OrderType::Limit && order.price.is_null() {
            return Err(Reason::InvalidPrice);
        }
        if self.find(order.id).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        let place = Place::book(order.book, order.side, order.price);
        if may_rest && (self.orders.room() == 0 || !self.has_level_room(place)) {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    /// The same for a replace of a plain order in `level`.
    fn admit_replace(&self, replace: &Replace, level: u32) -> Result<(), Reason> {
        if !(1..=MAX_QUANTITY).contains(&replace.leaves.0) {
            return Err(Reason::InvalidQuantity);
        }
        if replace.price.is_null() {
            return Err(Reason::InvalidPrice);
        }
        if replace.new_id != replace.id && self.find(replace.new_id).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        let level = &self.levels[level];
        let frees_its_level = level.count == 1;
        if !frees_its_level && !self.has_level_room(Place::book(level.book(), level.side(), replace.price)) {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn is_in_call(&self, book: BookIndex) -> bool {
        self.books.get(book.0 as usize).is_some_and(|book| book.call.is_some())
    }

    /// Gives a live order another id.
    pub(crate) fn rename(&mut self, slot: u32, id: OrderId) {
        let old = self.orders[slot].id;
        if old != id.0 {
            self.index.remove(old, slot);
            self.index.insert(id.0, slot);
            self.orders[slot].id = id.0;
        }
    }

    /// Puts what is left of a plain order into the book.
    #[inline]
    pub(crate) fn rest(&mut self, slot: u32, taker: &Taker, price: Price, sink: &mut impl Sink) {
        let &Taker { book, side, leaves, .. } = taker;
        self.link(slot, Place::book(book, side, price), leaves);
        sink.report(Report::Rested(RestingOrder {
            id: OrderId(taker.id),
            owner: taker.owner,
            book,
            side,
            price,
            leaves: Quantity(leaves),
            shown: Quantity(leaves),
        }));
    }

    /// Ends every event that may cause more: stops and pegged orders follow.
    #[inline]
    pub(crate) fn end_of_event(&mut self, book: BookIndex, sink: &mut impl Sink) {
        if self.books[book.0 as usize].is_watched {
            self.follow(book, sink);
        }
        self.check(book);
    }
}

#[cold]
pub(crate) fn reject(id: OrderId, reason: Reason, sink: &mut impl Sink) {
    sink.report(Report::Rejected(Rejected { id, reason }));
}

/// Ladders of a book: each side's prices, stop prices, and orders held.
const LADDERS: usize = 6;
