//! The events: new order, cancel, reduce, replace, and what a simulator or an auction needs beside them.

use crate::event::{BookIndex, NewOrder, OwnerId, Priority, Replace, SelfMatch};
use crate::index::IdIndex;
use crate::ladder::{self, Ladder, Node, Nodes};
use crate::pool::{NONE, Pool};
use crate::record::{Book, LevelRecord, Order, Taker, side_index};
use crate::report::{Rejected, Report, Sink};
use crate::view::RestingOrder;
use crate::{MAX_BOOKS, MAX_ORDERS, MAX_QUANTITY};
use alloc::vec::Vec;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

/// The books and everything in them.
#[derive(Debug)]
pub struct Matcher {
    pub(crate) books: Vec<Book>,
    pub(crate) orders: Pool<Order>,
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
    /// Resting orders, at most [`MAX_ORDERS`].
    pub orders: usize,
    /// Price levels that hold an order; more than `orders` are of no use.
    pub levels: usize,
}

impl Capacity {
    /// Bytes that [`Matcher::new`] allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.books * size_of::<Book>()
            + Pool::<Order>::memory(self.orders)
            + Pool::<LevelRecord>::memory(self.levels)
            + Nodes::memory(ladder::nodes_needed(self.books * 2, self.levels))
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
        let Capacity { books, orders, levels } = capacity;
        assert!((1..=MAX_BOOKS).contains(&books), "{books} books");
        assert!((1..=MAX_ORDERS).contains(&orders), "{orders} orders");
        assert!((1..=MAX_ORDERS).contains(&levels), "{levels} levels");
        Self {
            books: alloc::vec![Book::EMPTY; books],
            orders: Pool::new(orders, Order::BLANK),
            levels: Pool::new(levels, LevelRecord::BLANK),
            nodes: Pool::new(ladder::nodes_needed(books * 2, levels), Node::BLANK),
            index: IdIndex::new(orders),
            self_match,
        }
    }

    /// A new order: trades with what it reaches; what is left rests or is cancelled.
    pub fn add(&mut self, order: &NewOrder, sink: &mut impl Sink) {
        let may_rest = order.order_type == OrderType::Limit && order.time_in_force == TimeInForce::Day;
        if let Err(reason) = self.admit(order, may_rest) {
            return reject(order.id, reason, sink);
        }
        sink.report(Report::Accepted { id: order.id });
        let mut taker = Taker::new(order);
        let stopped = self.trade(&mut taker, sink);
        if taker.leaves > 0 {
            match stopped {
                None if may_rest => {
                    let slot = self.orders.allocate(Order::new(&taker));
                    self.index.insert(taker.id, slot);
                    self.link(slot, &taker, order.price, sink);
                }
                _ => sink.report(taker.canceled(stopped.unwrap_or(Reason::Unfilled))),
            }
        }
        self.end_of_event(order.book);
    }

    /// A new limit order that rests without trading, even where it crosses: how orders gather before an auction.
    pub fn add_without_trading(&mut self, order: &NewOrder, sink: &mut impl Sink) {
        let admitted = match order.order_type {
            OrderType::Limit => self.admit(order, true),
            _ => Err(Reason::UnsupportedOrder),
        };
        if let Err(reason) = admitted {
            return reject(order.id, reason, sink);
        }
        sink.report(Report::Accepted { id: order.id });
        let taker = Taker::new(order);
        let slot = self.orders.allocate(Order::new(&taker));
        self.index.insert(taker.id, slot);
        self.link(slot, &taker, order.price, sink);
        let book = &mut self.books[order.book.0 as usize];
        book.gathering = book.is_crossed();
        self.end_of_event(order.book);
    }

    /// Cancels a resting order; `reason` is what its report says.
    pub fn cancel(&mut self, id: OrderId, reason: Reason, sink: &mut impl Sink) {
        let Some(slot) = self.find(id) else {
            return reject(id, Reason::UnknownOrder, sink);
        };
        let book = self.levels[self.orders[slot].level].book();
        self.cancel_slot(slot, reason, sink);
        self.end_of_event(book);
    }

    /// Takes `quantity` lots from a resting order, which keeps its place. An order with no more than that is cancelled.
    pub fn reduce(&mut self, id: OrderId, quantity: Quantity, sink: &mut impl Sink) {
        let Some(slot) = self.find(id) else {
            return reject(id, Reason::UnknownOrder, sink);
        };
        if quantity.is_zero() {
            return reject(id, Reason::InvalidQuantity, sink);
        }
        let order = &mut self.orders[slot];
        if order.leaves <= quantity.0 {
            return self.cancel(id, Reason::Requested, sink);
        }
        order.leaves -= quantity.0;
        let level = &mut self.levels[order.level];
        level.volume -= quantity.0;
        sink.report(Report::Reduced {
            id,
            quantity,
            leaves: Quantity(order.leaves),
        });
        let book = level.book();
        self.end_of_event(book);
    }

    /// Replaces price, quantity and perhaps id of a resting order. One that loses its place may trade. One that is
    /// refused stays as it was.
    pub fn replace(&mut self, replace: &Replace, sink: &mut impl Sink) {
        let slot = match self.admit_replace(replace) {
            Ok(slot) => slot,
            Err(reason) => return reject(replace.id, reason, sink),
        };
        let Order {
            leaves, level, owner, ..
        } = self.orders[slot];
        let LevelRecord { price, .. } = self.levels[level];
        let (book, side) = (self.levels[level].book(), self.levels[level].side());
        if replace.new_id != replace.id {
            self.index.remove(replace.id.0, slot);
            self.index.insert(replace.new_id.0, slot);
            self.orders[slot].id = replace.new_id.0;
        }
        let kept_priority =
            replace.priority == Priority::KeptWhenReduced && replace.price == price && replace.leaves.0 < leaves;
        sink.report(Report::Replaced {
            old_id: replace.id,
            id: replace.new_id,
            kept_priority,
            price: replace.price,
            leaves: replace.leaves,
        });
        if kept_priority {
            self.orders[slot].leaves = replace.leaves.0;
            self.levels[level].volume -= leaves - replace.leaves.0;
            return self.end_of_event(book);
        }
        // The order keeps its slot and its entry in the index while it is in no level and trades.
        self.unlink(slot);
        let mut taker = Taker {
            id: replace.new_id.0,
            book,
            owner,
            side,
            leaves: replace.leaves.0,
            threshold: ladder::key(side.opposite(), replace.price),
        };
        let stopped = self.trade(&mut taker, sink);
        if taker.leaves > 0 && stopped.is_none() {
            self.orders[slot].leaves = taker.leaves;
            self.link(slot, &taker, replace.price, sink);
        } else {
            self.index.remove(taker.id, slot);
            self.orders.release(slot);
            if let Some(reason) = stopped {
                sink.report(taker.canceled(reason));
            }
        }
        self.end_of_event(book);
    }

    /// Cancels every order of a book that `chosen` takes: bids before offers, each in priority.
    pub fn cancel_where(
        &mut self,
        book: BookIndex,
        reason: Reason,
        chosen: impl Fn(OrderId, OwnerId) -> bool,
        sink: &mut impl Sink,
    ) {
        for side in [Side::Buy, Side::Sell] {
            let mut next = self.ladder(book, side).best();
            while let Some((key, level)) = next {
                let mut slot = self.levels[level].head;
                while slot != NONE {
                    let Order { id, owner, next, .. } = self.orders[slot];
                    if chosen(OrderId(id), owner) {
                        self.cancel_slot(slot, reason, sink);
                    }
                    slot = next;
                }
                next = self.ladder(book, side).below(&self.nodes, key);
            }
        }
        self.end_of_event(book);
    }

    /// Checks everything that could refuse a new order, before anything changes.
    fn admit(&self, order: &NewOrder, may_rest: bool) -> Result<(), Reason> {
        if order.book.0 as usize >= self.books.len() {
            return Err(Reason::UnknownInstrument);
        }
        if !(1..=MAX_QUANTITY).contains(&order.quantity.0) {
            return Err(Reason::InvalidQuantity);
        }
        let is_supported = matches!(order.order_type, OrderType::Market | OrderType::Limit)
            && matches!(order.time_in_force, TimeInForce::Day | TimeInForce::ImmediateOrCancel);
        if !is_supported {
            return Err(Reason::UnsupportedOrder);
        }
        if order.order_type == OrderType::Limit && order.price.is_null() {
            return Err(Reason::InvalidPrice);
        }
        if self.find(order.id).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        if may_rest && (self.orders.room() == 0 || !self.has_level_room(order.book, order.side, order.price)) {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    fn admit_replace(&self, replace: &Replace) -> Result<u32, Reason> {
        let slot = self.find(replace.id).ok_or(Reason::UnknownOrder)?;
        if !(1..=MAX_QUANTITY).contains(&replace.leaves.0) {
            return Err(Reason::InvalidQuantity);
        }
        if replace.price.is_null() {
            return Err(Reason::InvalidPrice);
        }
        if replace.new_id != replace.id && self.find(replace.new_id).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        let level = &self.levels[self.orders[slot].level];
        let frees_its_level = level.count == 1;
        if !frees_its_level && !self.has_level_room(level.book(), level.side(), replace.price) {
            return Err(Reason::BookFull);
        }
        Ok(slot)
    }

    fn has_level_room(&self, book: BookIndex, side: Side, price: Price) -> bool {
        self.levels.room() > 0
            || self
                .ladder(book, side)
                .get(&self.nodes, ladder::key(side, price))
                .is_some()
    }

    pub(crate) fn find(&self, id: OrderId) -> Option<u32> {
        self.index.find(id.0, |slot| self.orders[slot].id)
    }

    pub(crate) fn ladder(&self, book: BookIndex, side: Side) -> &Ladder {
        &self.books[book.0 as usize].sides[side_index(side)]
    }

    /// Puts an order that is in no level at the end of its price's queue. There is room for a level if it needs one.
    fn link(&mut self, slot: u32, taker: &Taker, price: Price, sink: &mut impl Sink) {
        let (book, side) = (taker.book, taker.side);
        let key = ladder::key(side, price);
        let ladder = &mut self.books[book.0 as usize].sides[side_index(side)];
        let level_slot = match ladder.get(&self.nodes, key) {
            Some(level) => level,
            None => {
                let level = self.levels.allocate(LevelRecord::new(book, side, price));
                ladder.insert(&mut self.nodes, key, level);
                level
            }
        };
        let level = &mut self.levels[level_slot];
        let tail = level.tail;
        level.tail = slot;
        level.count += 1;
        level.volume += taker.leaves;
        if tail == NONE {
            level.head = slot;
        } else {
            self.orders[tail].next = slot;
        }
        let order = &mut self.orders[slot];
        (order.level, order.prev, order.next) = (level_slot, tail, NONE);
        sink.report(Report::Rested(RestingOrder {
            id: OrderId(taker.id),
            owner: taker.owner,
            book,
            side,
            price,
            leaves: Quantity(taker.leaves),
        }));
    }

    /// Takes an order out of its level, and the level out of its ladder when it is empty. Slot and index stay.
    pub(crate) fn unlink(&mut self, slot: u32) {
        let Order {
            level: level_slot,
            prev,
            next,
            leaves,
            ..
        } = self.orders[slot];
        let level = &mut self.levels[level_slot];
        level.count -= 1;
        level.volume -= leaves;
        if prev == NONE {
            level.head = next;
        } else {
            self.orders[prev].next = next;
        }
        if next == NONE {
            level.tail = prev;
        } else {
            self.orders[next].prev = prev;
        }
        if level.count == 0 {
            let (book, side, price) = (level.book(), level.side(), level.price);
            self.books[book.0 as usize].sides[side_index(side)].remove(&mut self.nodes, ladder::key(side, price));
            self.levels.release(level_slot);
        }
    }

    fn cancel_slot(&mut self, slot: u32, reason: Reason, sink: &mut impl Sink) {
        let Order { id, owner, leaves, .. } = self.orders[slot];
        self.unlink(slot);
        self.index.remove(id, slot);
        self.orders.release(slot);
        sink.report(Report::Canceled {
            id: OrderId(id),
            owner,
            quantity: Quantity(leaves),
            reason,
        });
    }
}

fn reject(id: OrderId, reason: Reason, sink: &mut impl Sink) {
    sink.report(Report::Rejected(Rejected { id, reason }));
}
