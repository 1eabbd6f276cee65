//! Putting orders into their levels and taking them out, wherever they wait.

use crate::event::{BookIndex, NewOrder, OwnerId};
use crate::ladder::Ladder;
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::{Book, LevelRecord, Order, Place, Queue, side_index};
use crate::report::{Report, Sink};
use crate::terms::Aside;
use types::{OrderId, OrderTerms, OrderType, Price, Quantity, Reason, Side, TimeInForce};

impl Matcher {
    pub(crate) fn find(&self, id: OrderId) -> Option<u32> {
        self.index.find(id.0, |slot| self.orders[slot].is_live(id))
    }

    /// The prices of a side.
    pub(crate) fn ladder(&self, book: BookIndex, side: Side) -> &Ladder {
        &self.books[book.0 as usize].sides[side_index(side)]
    }

    /// The levels of one kind on one side.
    pub(crate) fn ladder_of(&self, book: BookIndex, queue: Queue, side: Side) -> &Ladder {
        let (book, side) = (book.0 as usize, side_index(side));
        match queue {
            Queue::Book => &self.books[book].sides[side],
            Queue::Stops => &self.aside[book].stops[side],
            Queue::Held => &self.aside[book].held[side],
        }
    }

    /// Whether an order at `place` finds a level, or room for one.
    pub(crate) fn has_level_room(&self, place: Place) -> bool {
        self.levels.room() > 0
            || self
                .ladder_of(place.book, place.queue, place.side)
                .get(&self.nodes, place.key())
                .is_some()
    }

    /// Puts an order of `lots` that is in no level at the end of the queue at `place`. There is room for a level if it needs
    /// one.
    pub(crate) fn link(&mut self, slot: u32, place: Place, lots: u64) {
        let key = place.key();
        let known = self
            .ladder_of(place.book, place.queue, place.side)
            .get(&self.nodes, key);
        let level_slot = match known {
            Some(level) => level,
            None => {
                let level = self.levels.allocate(LevelRecord::new(place));
                ladder_mut(&mut self.books, &mut self.aside, place).insert(&mut self.nodes, key, level);
                level
            }
        };
        let level = &mut self.levels[level_slot];
        let tail = level.tail;
        level.tail = slot;
        level.count += 1;
        level.volume += lots;
        if tail == NONE {
            level.head = slot;
        } else {
            self.orders[tail].next = slot;
        }
        let order = &mut self.orders[slot];
        (order.level, order.prev, order.next) = (level_slot, tail, NONE);
    }

    /// Takes an order out of its level, and the level out of its ladder when it is empty. Slot and index stay.
    pub(crate) fn unlink(&mut self, slot: u32) {
        let order = self.orders[slot];
        let level = &mut self.levels[order.level];
        level.count -= 1;
        level.volume -= order.lots();
        if order.prev == NONE {
            level.head = order.next;
        } else {
            self.orders[order.prev].next = order.next;
        }
        if order.next == NONE {
            level.tail = order.prev;
        } else {
            self.orders[order.next].prev = order.prev;
        }
        if level.count == 0 {
            let place = level.place();
            self.remove_level(order.level, place);
        }
    }

    /// Takes an empty level out of its ladder.
    pub(crate) fn remove_level(&mut self, level: u32, place: Place) {
        ladder_mut(&mut self.books, &mut self.aside, place).remove(&mut self.nodes, place.key());
        self.levels.release(level);
    }

    /// Forgets an order of a book that is in no level: index, terms, slot.
    #[inline]
    pub(crate) fn forget(&mut self, book: BookIndex, slot: u32) {
        let order = self.orders[slot];
        let terms = order.terms();
        self.index.remove(order.id, slot);
        self.orders[slot] = Order::BLANK;
        self.orders.release(slot);
        if let Some(terms) = terms {
            self.forget_terms(book, terms);
        }
    }

    /// Ends a live order.
    pub(crate) fn cancel_slot(&mut self, slot: u32, reason: Reason, sink: &mut impl Sink) {
        let Order { id, owner, level, .. } = self.orders[slot];
        let quantity = self.open_lots(slot);
        let book = self.levels[level].book();
        self.unlink(slot);
        self.forget(book, slot);
        sink.report(Report::Canceled {
            id: OrderId(id),
            owner,
            quantity,
            reason,
        });
    }

    /// Lots of a live order, hidden ones too.
    pub(crate) fn open_lots(&self, slot: u32) -> Quantity {
        let order = &self.orders[slot];
        Quantity(order.lots() + order.terms().map_or(0, |terms| self.terms[terms].hidden))
    }

    /// What a live order asks for, as it would be entered anew.
    pub(crate) fn description(&self, slot: u32) -> (NewOrder, OrderTerms) {
        let order = &self.orders[slot];
        let level = &self.levels[order.level];
        let plain = NewOrder {
            id: OrderId(order.id),
            book: level.book(),
            owner: order.owner,
            side: level.side(),
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::GoodTillCancel,
            price: level.price,
            quantity: self.open_lots(slot),
        };
        match order.terms() {
            None => (plain, OrderTerms::NONE),
            Some(terms) => {
                let terms = &self.terms[terms];
                let order = NewOrder {
                    order_type: terms.order_type,
                    time_in_force: terms.time_in_force,
                    price: terms.limit,
                    ..plain
                };
                (order, terms.asked)
            }
        }
    }

    /// Takes an order out altogether, to enter it anew.
    pub(crate) fn take_out(&mut self, slot: u32) -> (NewOrder, OrderTerms) {
        let description = self.description(slot);
        self.unlink(slot);
        self.forget(description.0.book, slot);
        description
    }

    /// Slot and index entry of an order that is in no level yet.
    #[inline]
    pub(crate) fn allocate(&mut self, id: OrderId, owner: OwnerId, lots: u64, terms: u32) -> u32 {
        let slot = self.orders.take();
        let before = self.orders[slot];
        if before.is_done() {
            self.index.remove(before.id, slot);
        }
        self.orders[slot] = Order::new(id, owner, lots, terms);
        self.index.insert(id.0, slot);
        slot
    }

    /// The first order at a price that stands for no price, or a stop price.
    pub(crate) fn first_at(&self, place: Place) -> Option<u32> {
        let level = self
            .ladder_of(place.book, place.queue, place.side)
            .get(&self.nodes, place.key())?;
        Some(self.levels[level].head)
    }

    /// Whether an order is in the book, and at which price.
    pub(crate) fn book_price(&self, slot: u32) -> Option<Price> {
        let level = &self.levels[self.orders[slot].level];
        (level.queue() == Queue::Book).then_some(level.price)
    }
}

/// The ladder of a place, apart from the nodes that it needs to change.
fn ladder_mut<'a>(books: &'a mut [Book], aside: &'a mut [Aside], place: Place) -> &'a mut Ladder {
    let (book, side) = (place.book.0 as usize, side_index(place.side));
    match place.queue {
        Queue::Book => &mut books[book].sides[side],
        Queue::Stops => &mut aside[book].stops[side],
        Queue::Held => &mut aside[book].held[side],
    }
}
