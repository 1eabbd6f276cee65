//! Parts of an event: stops and pegged orders do not follow until [`Matcher::settle`].
//!
//! They are for owners who do many things at once, and for a market that partly happens elsewhere: recorded orders that rest
//! whatever they cross, shrink when the record says so, and trade with those whom the record does not know.

use crate::event::{BookIndex, NewOrder, OwnerId, Sweep};
use crate::matcher::{Matcher, reject};
use crate::pool::NONE;
use crate::record::{Taker, threshold};
use crate::report::{Report, Sink};
use types::{OrderId, OrderType, Price, Quantity, Reason};

impl Matcher {
    /// Cancels a live order; `reason` is what its report says.
    pub fn remove(&mut self, id: OrderId, reason: Reason, sink: &mut impl Sink) {
        let Some(slot) = self.find(id) else {
            return reject(id, Reason::UnknownOrder, sink);
        };
        let book = self.levels[self.orders[slot].level].book();
        self.cancel_slot(slot, reason, sink);
        self.check(book);
    }

    /// A new limit order that rests without trading, even where it crosses.
    pub fn add_without_trading(&mut self, order: &NewOrder, sink: &mut impl Sink) {
        let admitted = match order.order_type {
            OrderType::Limit => self.admit(order, true),
            _ => Err(Reason::UnsupportedOrder),
        };
        if let Err(reason) = admitted {
            return reject(order.id, reason, sink);
        }
        sink.report(Report::Accepted { id: order.id });
        let slot = self.allocate(order.id, order.owner, order.quantity.0, NONE);
        self.rest(slot, &Taker::new(order), order.price, sink);
        let book = &mut self.books[order.book.0 as usize];
        book.gathering = book.is_crossed();
        self.check(order.book);
    }

    /// Takes `quantity` lots from a live order, which keeps its place. An order with no more than that is cancelled.
    pub fn reduce(&mut self, id: OrderId, quantity: Quantity, sink: &mut impl Sink) {
        let Some(slot) = self.find(id) else {
            return reject(id, Reason::UnknownOrder, sink);
        };
        if quantity.is_zero() {
            return reject(id, Reason::InvalidQuantity, sink);
        }
        let book = self.levels[self.orders[slot].level].book();
        let open = self.open_lots(slot);
        if open <= quantity {
            self.cancel_slot(slot, Reason::Requested, sink);
        } else {
            self.shrink(slot, (open - quantity).0);
            sink.report(Report::Reduced {
                id,
                quantity,
                leaves: open - quantity,
            });
        }
        self.check(book);
    }

    /// Trades `sweep` with those resting orders, in priority, that `reached` takes, and passes the others by.
    /// The lots that are left; nothing of it rests. Self-match prevention does not apply.
    ///
    /// The simulator lets recorded history meet live orders by it: a recorded execution must fill the live orders ahead
    /// of the recorded one, and nobody else.
    pub fn sweep(
        &mut self,
        sweep: &Sweep,
        reached: impl Fn(OrderId, OwnerId) -> bool,
        sink: &mut impl Sink,
    ) -> Quantity {
        let side = sweep.side.opposite();
        let mut taker = Taker {
            id: sweep.taker.0,
            book: sweep.book,
            owner: sweep.owner,
            side: sweep.side,
            leaves: sweep.quantity.0,
            threshold: threshold(sweep.side, Some(sweep.limit)),
            trades: u32::MAX,
        };
        let mut next = self.ladder(sweep.book, side).best();
        'levels: while let Some((key, level)) = next.filter(|&(key, _)| key >= taker.threshold) {
            let price = self.levels[level].price;
            let mut slot = self.levels[level].head;
            while slot != NONE {
                let order = &self.orders[slot];
                if taker.leaves == 0 || sweep.before == Some(OrderId(order.id)) {
                    break 'levels;
                }
                let mut after = order.next;
                if reached(OrderId(order.id), order.owner) {
                    let quantity = self.fill(&mut taker, slot, price, sink);
                    self.note_trades(sweep.book, price, price);
                    // An iceberg that shows more is met again at the end of the queue.
                    if self.take_anywhere(slot, quantity, sink) && after == NONE {
                        after = slot;
                    }
                }
                slot = after;
            }
            next = self.ladder(sweep.book, side).below(&self.nodes, key);
        }
        self.check(sweep.book);
        Quantity(taker.leaves)
    }

    /// Ends an event that was told in parts: stops and pegged orders follow.
    pub fn settle(&mut self, book: BookIndex, sink: &mut impl Sink) {
        self.end_of_event(book, sink);
    }

    /// A trade that the matcher did not make, as part of an event.
    pub fn print(&mut self, book: BookIndex, price: Price) {
        self.note_trades(book, price, price);
    }

    /// Whether an event of the book could cause more: stops wait or pegged orders follow.
    #[must_use]
    pub fn is_watched(&self, book: BookIndex) -> bool {
        self.books[book.0 as usize].is_watched
    }

    /// Leaves so many lots of a live order, which keeps its place: hidden ones go first.
    pub(crate) fn shrink(&mut self, slot: u32, leaves: u64) {
        let order = &mut self.orders[slot];
        let shown = order.lots().min(leaves);
        let gone = order.lots() - shown;
        order.set_lots(shown);
        self.levels[order.level].volume -= gone;
        if let Some(terms) = order.terms() {
            self.terms[terms].hidden = leaves - shown;
        }
    }

    /// Takes traded lots from an order anywhere in its level. Whether it is an iceberg that shows more at the end of it now.
    pub(crate) fn take_anywhere(&mut self, slot: u32, lots: u64, sink: &mut impl Sink) -> bool {
        let order = &mut self.orders[slot];
        order.take(lots);
        let is_empty = order.lots() == 0;
        let level = order.level;
        self.levels[level].volume -= lots;
        if !is_empty {
            return false;
        }
        let place = self.levels[level].place();
        self.unlink(slot);
        if self.next_slice(slot) == 0 {
            self.forget(place.book, slot);
            return false;
        }
        self.link(slot, place, self.orders[slot].lots());
        sink.report(Report::Replenished(self.resting_order(slot)));
        true
    }
}
