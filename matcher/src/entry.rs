//! Orders that come in with terms, or come in again: replaced, triggered, or following a price.

use crate::MAX_QUANTITY;
use crate::event::{Auction, BookIndex, NewOrder, Priority, Replace};
use crate::matcher::{Matcher, reject};
use crate::pool::NONE;
use crate::record::{Hold, LevelRecord, Place, Queue, Taker, threshold};
use crate::report::{Report, Sink};
use crate::terms::{self, Terms};
use types::{OrderTerms, OrderType, Price, Quantity, Reason, TimeInForce};

impl Matcher {
    /// A new order of any kind.
    pub fn add_with_terms(&mut self, order: &NewOrder, terms: &OrderTerms, sink: &mut impl Sink) {
        if let Err(reason) = self.admit_with_terms(order, terms) {
            return reject(order.id, reason, sink);
        }
        sink.report(Report::Accepted { id: order.id });
        self.enter(order, terms, u32::MAX, sink);
        self.end_of_event(order.book, sink);
    }

    /// Replaces price, quantity, terms and perhaps id of a live order. Its type and time in force stay; a minimum quantity
    /// is not looked at, because it was for the order's coming. One that loses its place goes on as a new order would. One
    /// that is refused stays as it was.
    pub fn replace_with_terms(&mut self, replace: &Replace, terms: &OrderTerms, sink: &mut impl Sink) {
        let terms = &OrderTerms {
            min_quantity: Quantity::ZERO,
            ..*terms
        };
        let Some(slot) = self.find(replace.id) else {
            return reject(replace.id, Reason::UnknownOrder, sink);
        };
        let (old, old_terms) = self.description(slot);
        let new = NewOrder {
            id: replace.new_id,
            price: replace.price,
            quantity: replace.leaves,
            ..old
        };
        if let Err(reason) = self.admit_replace_with_terms(slot, &old, &new, terms) {
            return reject(replace.id, reason, sink);
        }
        let is_reduced = new.price == old.price
            && new.quantity < old.quantity
            && (terms.display, terms.stop_price, terms.peg_offset)
                == (old_terms.display, old_terms.stop_price, old_terms.peg_offset);
        let kept_priority = is_reduced && replace.priority == Priority::KeptWhenReduced;
        sink.report(Report::Replaced {
            old_id: replace.id,
            id: replace.new_id,
            kept_priority,
            price: replace.price,
            leaves: replace.leaves,
        });
        if kept_priority {
            self.rename(slot, new.id);
            self.shrink(slot, new.quantity.0);
            self.change_terms(slot, terms);
        } else {
            self.take_out(slot);
            self.enter(&new, terms, u32::MAX, sink);
        }
        self.end_of_event(old.book, sink);
    }

    /// Lets an order that is in no place find the one it has now, trading on the way. It has been admitted, or it was
    /// here before; then room that is no longer there ends it.
    pub(crate) fn enter(&mut self, order: &NewOrder, terms: &OrderTerms, trades: u32, sink: &mut impl Sink) {
        let call = self.books[order.book.0 as usize].call;
        if let Some(auction) = auction_of(order.time_in_force)
            && call != Some(auction)
        {
            return self.hold(order, terms, Hold::from(auction), sink);
        }
        if order.order_type.is_stop() {
            return self.enter_stop(order, terms, trades, sink);
        }
        if order.order_type.is_pegged() {
            self.enter_peg(order, terms, sink);
            return;
        }
        if call.is_some() {
            return self.gather(order, terms, sink);
        }
        let is_market = order.order_type == OrderType::Market;
        let mut taker = Taker {
            trades,
            ..Taker::new(order)
        };
        let minimum = minimum(order, terms);
        if self.reach(&taker, minimum) < minimum {
            return sink.report(taker.canceled(Reason::Unfilled));
        }
        let stopped = self.trade(&mut taker, sink);
        if taker.leaves == 0 {
            return;
        }
        let left = NewOrder {
            quantity: Quantity(taker.leaves),
            ..*order
        };
        match stopped {
            None if !is_market && !order.time_in_force.is_immediate() => {
                self.rest_with_terms(&left, terms, order.price, sink);
            }
            _ => sink.report(taker.canceled(stopped.unwrap_or(Reason::Unfilled))),
        }
    }

    /// An order that comes in while orders gather for an auction.
    fn gather(&mut self, order: &NewOrder, terms: &OrderTerms, sink: &mut impl Sink) {
        if order.time_in_force.is_immediate() || !terms.min_quantity.is_zero() {
            return sink.report(Taker::new(order).canceled(Reason::Unfilled));
        }
        if order.order_type == OrderType::Market {
            return self.hold(order, terms, Hold::Market, sink);
        }
        self.rest_with_terms(order, terms, order.price, sink);
        let book = &mut self.books[order.book.0 as usize];
        book.gathering = book.is_crossed();
    }

    /// Puts what is left of an order into the book at `price`.
    pub(crate) fn rest_with_terms(&mut self, order: &NewOrder, terms: &OrderTerms, price: Price, sink: &mut impl Sink) {
        let place = Place::book(order.book, order.side, price);
        match self.place(order, terms, place) {
            Some(slot) => sink.report(Report::Rested(self.resting_order(slot))),
            None => sink.report(Taker::new(order).canceled(Reason::BookFull)),
        }
    }

    /// Lets an order wait outside of the book.
    pub(crate) fn hold(&mut self, order: &NewOrder, terms: &OrderTerms, hold: Hold, sink: &mut impl Sink) {
        let place = Place {
            book: order.book,
            queue: Queue::Held,
            side: order.side,
            price: hold.price(),
        };
        self.hold_at(order, terms, place, sink);
    }

    /// The same, at a place among stops or others.
    pub(crate) fn hold_at(&mut self, order: &NewOrder, terms: &OrderTerms, place: Place, sink: &mut impl Sink) {
        match self.place(order, terms, place) {
            Some(_) => sink.report(Report::Held {
                id: order.id,
                leaves: order.quantity,
            }),
            None => sink.report(Taker::new(order).canceled(Reason::BookFull)),
        }
    }

    /// Gives an order that is in no place the one at `place`. `None` when there is no room for it.
    fn place(&mut self, order: &NewOrder, asked: &OrderTerms, place: Place) -> Option<u32> {
        let has_terms = terms::has_terms(order, asked);
        let has_room = self.orders.room() > 0 && self.has_level_room(place) && (!has_terms || self.terms.room() > 0);
        if !has_room {
            return None;
        }
        let mut lots = order.quantity.0;
        let mut terms = NONE;
        if has_terms {
            if place.queue == Queue::Book && !asked.display.is_zero() {
                lots = lots.min(asked.display.0);
            }
            terms = self.terms.allocate(Terms {
                hidden: order.quantity.0 - lots,
                ..Terms::new(order, asked)
            });
        }
        let slot = self.allocate(order.id, order.owner, lots, terms);
        self.link(slot, place, lots);
        if has_terms {
            self.terms[terms].slot = slot;
            self.count_terms(order.book, terms);
        }
        Some(slot)
    }

    /// The terms of an order that takes its place are kept, and whoever follows them knows.
    fn count_terms(&mut self, book: BookIndex, place: u32) {
        let terms = self.terms[place];
        let aside = &mut self.aside[book.0 as usize];
        aside.icebergs += u32::from(!terms.asked.display.is_zero());
        aside.auction_orders += u32::from(terms::is_for_auction(terms.time_in_force));
        if terms.order_type.is_pegged() {
            self.link_peg(book, place);
        }
        if terms.time_in_force == TimeInForce::GoodTillDate {
            self.push_expiry(place);
        }
        self.watch(book);
    }

    /// The terms of an order that is gone. It is in no level any more.
    #[cold]
    pub(crate) fn forget_terms(&mut self, book: BookIndex, place: u32) {
        let terms = self.terms[place];
        let aside = &mut self.aside[book.0 as usize];
        aside.icebergs -= u32::from(!terms.asked.display.is_zero());
        aside.auction_orders -= u32::from(terms::is_for_auction(terms.time_in_force));
        if terms.order_type.is_pegged() {
            self.unlink_peg(book, place);
        }
        if terms.expiry != NONE {
            self.remove_expiry(place);
        }
        self.terms.release(place);
        self.watch(book);
    }

    fn watch(&mut self, book: BookIndex) {
        let aside = &mut self.aside[book.0 as usize];
        let is_watched = aside.is_watched();
        if !is_watched {
            // Whoever comes later has nothing to do with what was traded before.
            aside.traded = None;
        }
        self.books[book.0 as usize].is_watched = is_watched;
    }

    /// New terms for an order that keeps its place: those that do not decide about it.
    fn change_terms(&mut self, slot: u32, asked: &OrderTerms) {
        let Some(place) = self.orders[slot].terms() else { return };
        self.terms[place].asked = *asked;
        if self.terms[place].expiry != NONE {
            self.remove_expiry(place);
            self.push_expiry(place);
        }
    }

    /// Checks everything that could refuse a new order, before anything changes.
    fn admit_with_terms(&self, order: &NewOrder, terms: &OrderTerms) -> Result<(), Reason> {
        if order.book.0 as usize >= self.books.len() {
            return Err(Reason::UnknownInstrument);
        }
        if !(1..=MAX_QUANTITY).contains(&order.quantity.0) {
            return Err(Reason::InvalidQuantity);
        }
        terms::check(order, terms)?;
        if self.find(order.id).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        self.admit_post_only(order, terms)?;
        let is_at_once = order.time_in_force.is_immediate()
            || order.order_type == OrderType::Market
                && !self.is_in_call(order.book)
                && auction_of(order.time_in_force).is_none();
        let lacks_terms = terms::has_terms(order, terms) && self.terms.room() == 0;
        if (!is_at_once || order.order_type.is_stop())
            && (self.orders.room() == 0 || lacks_terms || !self.has_room_for(order, terms))
        {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    fn admit_replace_with_terms(
        &self,
        slot: u32,
        old: &NewOrder,
        new: &NewOrder,
        terms: &OrderTerms,
    ) -> Result<(), Reason> {
        if !(1..=MAX_QUANTITY).contains(&new.quantity.0) {
            return Err(Reason::InvalidQuantity);
        }
        terms::check(new, terms)?;
        if new.id != old.id && self.find(new.id).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        self.admit_post_only(new, terms)?;
        let order = &self.orders[slot];
        let lacks_terms = order.terms().is_none() && terms::has_terms(new, terms) && self.terms.room() == 0;
        let LevelRecord { count, .. } = self.levels[order.level];
        if lacks_terms || count > 1 && !self.has_room_for(new, terms) {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    /// A post-only order must not trade as it comes in. In a call nothing does.
    fn admit_post_only(&self, order: &NewOrder, terms: &OrderTerms) -> Result<(), Reason> {
        if !terms.post_only || self.is_in_call(order.book) {
            return Ok(());
        }
        let price = match order.order_type.is_pegged() {
            true => self.peg_price(order, terms),
            false => Some(order.price),
        };
        match price {
            Some(price) if self.would_meet(order.book, order.side, threshold(order.side, Some(price))) => {
                Err(Reason::PostOnly)
            }
            _ => Ok(()),
        }
    }

    /// Whether an order that must wait finds a level where it would.
    fn has_room_for(&self, order: &NewOrder, terms: &OrderTerms) -> bool {
        let place = match order.order_type {
            OrderType::Limit if auction_of(order.time_in_force).is_none() => {
                Place::book(order.book, order.side, order.price)
            }
            OrderType::Stop | OrderType::StopLimit => Self::stop_place(order, terms),
            // One of several places, and it may change: there must be room for any.
            _ => return self.levels.room() > 0,
        };
        self.has_level_room(place)
    }
}

/// Lots that an order must trade as it comes in, or it does not trade at all.
fn minimum(order: &NewOrder, terms: &OrderTerms) -> u64 {
    match order.time_in_force {
        TimeInForce::FillOrKill => order.quantity.0,
        _ => terms.min_quantity.0,
    }
}

const fn auction_of(time_in_force: TimeInForce) -> Option<Auction> {
    match time_in_force {
        TimeInForce::AtTheOpening => Some(Auction::Opening),
        TimeInForce::AtTheClose => Some(Auction::Closing),
        _ => None,
    }
}
