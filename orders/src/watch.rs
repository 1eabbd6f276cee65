//! What the live book of the feed does to held orders: it meets stop prices, and pegged orders follow it.
//!
//! The book is read outside. [`Orders::would_move`] says there whether it asks for anything, and only a book that does is
//! handed in by [`Orders::on_book`], as an input like any other: so a journal has one record a trigger, not one a tick. A book
//! that is missing or stale moves nothing: stops wait on, pegged orders stay where they are or wait for a price.
//!
//! A stop is met by the price of the last trade, also of one from before it came, as at the simulator. Pegged orders follow
//! the best prices that others show. What they show themselves is in the feed too, so a best price is taken for theirs, and
//! not followed, when no more lots stand at it than they have there.

use crate::held::{HeldOrders, Watch};
use crate::map::NIL;
use crate::order::Order;
use crate::state::Orders;
use types::{Bbo, InstrumentId, OrderType, Price, Quote, Side, Timestamp};

/// An instrument whose book held orders watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watched(u32);

impl Orders {
    /// Instruments whose books held orders watch.
    #[must_use]
    pub const fn watched(&self) -> u32 {
        self.held.watched.length()
    }

    /// The next instrument to look at, each in its turn. Nothing that decides changes.
    pub fn next_watched(&mut self) -> Option<(Watched, InstrumentId)> {
        let HeldOrders {
            watched, watched_links, ..
        } = &mut self.held;
        let instrument = watched.first()?;
        watched_links.remove(watched, instrument);
        watched_links.push_back(watched, instrument);
        Some((Watched(instrument), self.instruments[instrument as usize].id))
    }

    /// Whether the book asks held orders for anything now; then it is handed in by [`on_book`](Self::on_book). Nothing that
    /// decides changes.
    pub fn would_move(&mut self, now: Timestamp, watched: Watched, book: &Bbo) -> bool {
        let Watched(instrument) = watched;
        let watch = &self.held.watches[instrument as usize];
        if watch.seen == book.time || !self.is_fresh(now, instrument, book) {
            return false;
        }
        if watch.meets_stop(book.last) {
            return true;
        }
        let best = self.others_best(instrument, book);
        let has_moved = watch.pegs > 0 && best != (watch.bid, watch.offer);
        let is_fed = watch.is_hungry && best != (Price::NULL, Price::NULL);
        if is_fed || (has_moved && watch.not_before <= now) {
            return true;
        }
        if !has_moved {
            self.held.watches[instrument as usize].seen = book.time;
        }
        false
    }

    /// A book that asks held orders for something: stops that it meets and pegged orders that follow it are due from then on.
    pub fn on_book(&mut self, now: Timestamp, instrument: InstrumentId, book: &Bbo) {
        self.version += 1;
        let Some(instrument) = self.instrument(instrument) else {
            return;
        };
        let is_watched = self
            .held
            .watches
            .get(instrument as usize)
            .is_some_and(|watch| watch.orders.length() > 0);
        if !is_watched || !self.is_fresh(now, instrument, book) {
            return;
        }
        let (bid, offer) = self.others_best(instrument, book);
        let watch = &mut self.held.watches[instrument as usize];
        let may_follow = watch.pegs > 0 && watch.not_before <= now;
        if may_follow && (bid, offer) != (watch.bid, watch.offer) {
            watch.not_before = now + self.held.peg_interval;
        }
        if may_follow || watch.is_hungry {
            (watch.bid, watch.offer) = (bid, offer);
        }
        (watch.buy_stop, watch.sell_stop) = (Watch::NOBODY.buy_stop, Watch::NOBODY.sell_stop);
        watch.is_hungry = false;
        let mut next = watch.orders.first();
        while let Some(place) = next {
            next = self.held.watch_links.after(place);
            self.look_at_book(place, book.last, may_follow);
        }
    }

    /// One order that watches looks at the book.
    fn look_at_book(&mut self, place: u32, last: Price, may_follow: bool) {
        let held = self.held.entry(place);
        let order = self.table.order(held.slot);
        let is_here = order.venue_number == 0;
        if held.parts.stop {
            if is_met(order.side, order.terms.stop_price, last) {
                self.held.entry_mut(place).is_met = true;
                self.held.mark_due(place);
            } else {
                self.held.note_wish(order.instrument, order);
            }
        } else if is_here || may_follow {
            self.held.mark_due(place);
        }
    }

    /// Where a pegged order belongs now, within its limit, on its tick, as the simulator has it; `None` when there is nothing
    /// to follow.
    pub(crate) fn peg_price(&self, order: &Order) -> Option<Price> {
        let watch = &self.held.watches[order.instrument as usize];
        let known = |price: Price| (!price.is_null()).then_some(i128::from(price.0));
        let halves = match (order.order_type, order.side) {
            (OrderType::PegMid, _) => known(watch.bid)? + known(watch.offer)?,
            (_, Side::Buy) => 2 * known(watch.bid)?,
            (_, Side::Sell) => 2 * known(watch.offer)?,
        };
        let tick = i128::from(self.instruments[order.instrument as usize].tick_size.0);
        let (halves, step) = (halves + 2 * i128::from(order.terms.peg_offset.0), 2 * tick);
        // In halves, so that a middle that is no price is rounded but once, away from the market.
        let ticks = match order.side {
            Side::Buy => halves.div_euclid(step),
            Side::Sell => -(-halves).div_euclid(step),
        };
        let mut price = ticks * tick;
        if !order.price.is_null() {
            let limit = i128::from(order.price.0);
            price = match order.side {
                Side::Buy => price.min(limit),
                Side::Sell => price.max(limit),
            };
        }
        i64::try_from(price).ok().filter(|&price| price > 0).map(Price)
    }

    /// Best bid and offer as others show them; [`Price::NULL`] where nobody does.
    fn others_best(&self, instrument: u32, book: &Bbo) -> (Price, Price) {
        let watch = &self.held.watches[instrument as usize];
        let best = |side: Side, quote: Quote, known: Price| {
            if quote.quantity.is_zero() {
                return Price::NULL;
            }
            if quote.quantity.0 > self.pegged_lots(watch, side, quote.price) {
                return quote.price;
            }
            // None but ours: others are where they were, or behind.
            match side {
                _ if known.is_null() => Price::NULL,
                Side::Buy => known.min(quote.price),
                Side::Sell => known.max(quote.price),
            }
        };
        (
            best(Side::Buy, book.bid, watch.bid),
            best(Side::Sell, book.ask, watch.offer),
        )
    }

    /// Lots that pegged orders have at a price, or had: what the feed says may be older than what the venue reports.
    fn pegged_lots(&self, watch: &Watch, side: Side, price: Price) -> u64 {
        let mut lots = 0;
        let mut next = watch.orders.first();
        while let Some(place) = next {
            next = self.held.watch_links.after(place);
            let held = self.held.entry(place);
            let is_there = held.child.price == price || held.reprice.is_some_and(|reprice| reprice.price == price);
            if held.parts.peg && is_there && self.table.order(held.slot).side == side {
                lots += held.child.quantity.0;
            }
        }
        lots
    }

    fn is_fresh(&self, now: Timestamp, instrument: u32, book: &Bbo) -> bool {
        now.since(book.time) <= self.instruments[instrument as usize].limits.stale_after
    }
}

impl HeldOrders {
    /// The order in a place begins to watch its book.
    pub(crate) fn watch(&mut self, place: u32, order: &Order) {
        let held = &mut self.entry_mut(place);
        held.is_watching = true;
        let is_peg = held.parts.peg;
        let watch = &mut self.watches[order.instrument as usize];
        if watch.orders.length() == 0 {
            *watch = Watch::NOBODY;
            self.watched_links.push_back(&mut self.watched, order.instrument);
        }
        watch.pegs += u32::from(is_peg);
        self.watch_links.push_back(&mut watch.orders, place);
        self.note_wish(order.instrument, order);
    }

    /// The order in a place watches no more. Bounds of what the others wait for stay: they are looked at again with the next
    /// book.
    pub(crate) fn unwatch(&mut self, place: u32, instrument: u32) {
        let held = self.entry_mut(place);
        if !core::mem::take(&mut held.is_watching) {
            return;
        }
        let is_peg = held.parts.peg;
        let watch = &mut self.watches[instrument as usize];
        watch.pegs -= u32::from(is_peg);
        self.watch_links.remove(&mut watch.orders, place);
        if watch.orders.length() == 0 {
            self.watched_links.remove(&mut self.watched, instrument);
        }
    }

    /// Notes what an order that watches waits for.
    pub(crate) fn note_wish(&mut self, instrument: u32, order: &Order) {
        debug_assert_ne!(order.held_place, NIL);
        let is_stop = self.entry(order.held_place).parts.stop;
        let watch = &mut self.watches[instrument as usize];
        watch.seen = Timestamp::NONE;
        match (is_stop, order.side) {
            (true, Side::Buy) => watch.buy_stop = watch.buy_stop.min(order.terms.stop_price),
            (true, Side::Sell) => watch.sell_stop = watch.sell_stop.max(order.terms.stop_price),
            (false, _) => watch.is_hungry = true,
        }
    }
}

impl Watch {
    fn meets_stop(&self, last: Price) -> bool {
        is_met(Side::Buy, self.buy_stop, last) || is_met(Side::Sell, self.sell_stop, last)
    }
}

/// Whether a trade at the price `last` meets a stop price.
fn is_met(side: Side, stop: Price, last: Price) -> bool {
    last.0 > 0
        && match side {
            Side::Buy => last >= stop,
            Side::Sell => last <= stop,
        }
}
