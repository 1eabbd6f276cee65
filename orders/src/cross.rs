//! Crossing: the orders of two clients trade with each other inside the gateway, before either goes to a venue.
//!
//! Only what was never sent to a venue is crossed, so no cancel races with a venue's trade: a plain limit order of a session
//! that wants it rests here for a while and then goes to its venue like any other. What comes in meanwhile on the other side
//! trades with it, best price first and of one price the oldest, at the price of the order that rests. Between orders of one
//! owner or one account there is no trade.
//!
//! The live book bounds it: a trade is at the best bid, at the best offer or between them, and an order rests only there.
//! Without a fresh book that has both, none above the other, nothing is crossed and nothing rests.
//!
//! An order that may cross is [held](crate::held): it is an open one in all that counts. What is left of one that has traded
//! here stays held, with a child of so many lots at its venue.

use crate::config::InstrumentState;
use crate::done::End;
use crate::emulate::Due;
use crate::held::{HeldOrders, NEVER};
use crate::list::{Links, List};
use crate::order::Order;
use crate::report::Sink;
use crate::risk::Reference;
use crate::state::Orders;
use alloc::boxed::Box;
use alloc::vec;
use types::{
    Duration, InstrumentId, NewOrder, OrderTerms, OrderType, Price, Reason, SessionId, Side, TimeInForce, Timestamp,
};

/// Two orders that can trade with each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The held place of the order that came in.
    incoming: u32,
    /// That of the one that rests.
    resting: u32,
    /// Whose they are, in this order.
    pub sessions: [SessionId; 2],
}

/// The orders that rest here, by held place.
pub(crate) struct Rests {
    /// By instrument: its buys and its sells, best price first and of one price the oldest.
    sides: Box<[[List; 2]]>,
    links: Links,
    /// All of them, oldest first.
    by_age: List,
    age_links: Links,
    /// How long each rests.
    time: Duration,
}

/// Best bid and offer of a fresh book that has both.
#[derive(Clone, Copy)]
struct Touch {
    bid: Price,
    offer: Price,
}

/// What an order looks for here.
struct Wish {
    instrument: u32,
    side: Side,
    /// [`Price::NULL`] for a market order.
    limit: Price,
    owner: u32,
    account: u32,
}

impl Orders {
    /// Whether a new order of a session and in an instrument that want it finds another here, or may rest for one.
    #[cold]
    #[inline(never)]
    pub(crate) fn may_cross(
        &self,
        now: Timestamp,
        order: &NewOrder,
        [session, account, instrument]: [u32; 3],
        reference: &Reference,
    ) -> bool {
        let is_plain = matches!(order.order_type, OrderType::Limit | OrderType::Market)
            && matches!(
                order.time_in_force,
                TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::ImmediateOrCancel
            )
            && order.terms == OrderTerms::NONE;
        let wish = Wish {
            instrument,
            side: order.side,
            limit: order.price,
            owner: self.sessions[session as usize].owner,
            account,
        };
        let Some(touch) = Touch::of(now, &self.instruments[instrument as usize], reference) else {
            return false;
        };
        let may_rest = touch.lets_rest(order.side, order.order_type, order.time_in_force, order.price);
        is_plain && (may_rest || self.best_for(&wish, touch).is_some())
    }

    /// The instrument of an order that came in and has not met yet those that rest here. Whoever takes an order in goes on with
    /// it until it has: by [`cross`](Self::cross) and then [`end_meeting`](Self::end_meeting).
    #[must_use]
    pub fn meets(&self, due: Due) -> Option<InstrumentId> {
        let held = self.held.entry(due.0);
        let order = self.table.order(held.slot);
        let meets = held.parts.cross && held.rests_until == Timestamp::NONE && order.cancel.is_none();
        meets.then_some(order.instrument_id)
    }

    /// The next order that it can trade with.
    #[must_use]
    pub fn next_meeting(&self, now: Timestamp, due: Due, reference: &Reference) -> Option<Meeting> {
        let order = self.table.order(self.held.entry(due.0).slot);
        let touch = Touch::of(now, &self.instruments[order.instrument as usize], reference)?;
        let wish = Wish {
            instrument: order.instrument,
            side: order.side,
            limit: order.price,
            owner: self.sessions[order.session as usize].owner,
            account: order.account,
        };
        let resting = self.best_for(&wish, touch)?;
        let other = self.table.order(self.held.entry(resting).slot);
        Some(Meeting {
            incoming: due.0,
            resting,
            sessions: [order.session_id, other.session_id],
        })
    }

    /// Lets two orders trade. Returns whether the one that came in has lots left.
    pub fn cross<S: Sink>(&mut self, now: Timestamp, meeting: Meeting, sink: &mut S) -> bool {
        self.version += 1;
        self.counters.crossed += 1;
        let Meeting { incoming, resting, .. } = meeting;
        let [incoming, resting] = [incoming, resting].map(|place| self.held.entry(place).slot);
        let other = self.table.order(resting);
        let (price, lots) = (other.price, other.leaves().min(self.table.order(incoming).leaves()));
        for (slot, reason) in [(resting, Reason::CrossedResting), (incoming, Reason::CrossedTaking)] {
            let order = self.table.order_mut(slot);
            order.updated = now;
            let places = order.places();
            self.trade(slot, price, lots, reason, sink);
            if self.table.order(slot).leaves().is_zero() {
                self.end(slot, End::FILLED, sink);
            }
            self.settle(places, sink);
        }
        self.table.order(incoming).is_open()
    }

    /// Nothing more is there for the order that came in: it rests here, where that may be of use, or goes to its venue.
    /// Returns whether it goes; `reference` is `None` when it is to.
    pub fn end_meeting(&mut self, now: Timestamp, due: Due, reference: Option<&Reference>) -> bool {
        self.version += 1;
        let Due(place) = due;
        let slot = self.held.entry(place).slot;
        let order = *self.table.order(slot);
        let instrument = &self.instruments[order.instrument as usize];
        let touch = reference.and_then(|reference| Touch::of(now, instrument, reference));
        let may_rest =
            touch.is_some_and(|touch| touch.lets_rest(order.side, order.order_type, order.time_in_force, order.price));
        if may_rest {
            self.counters.rested += 1;
            self.held.unmark_due(place);
            self.rest(now, place, &order);
        } else {
            self.held.entry_mut(place).parts.cross = false;
        }
        !may_rest
    }

    /// Orders whose time to rest is over go to their venues.
    pub fn end_rests(&mut self, now: Timestamp) {
        while let Some(place) = self.held.rests.by_age.first()
            && self.held.entry(place).rests_until <= now
        {
            self.version += 1;
            let &Order { instrument, side, .. } = self.table.order(self.held.entry(place).slot);
            self.held.stop_crossing(place, instrument, side);
            self.held.mark_due(place);
        }
    }

    /// The best of the orders that rest on the other side, of those that the order may trade with at their price.
    fn best_for(&self, wish: &Wish, touch: Touch) -> Option<u32> {
        let rests = &self.held.rests;
        let mut next = rests.sides[wish.instrument as usize][side_index(wish.side.opposite())].first();
        while let Some(place) = next {
            next = rests.links.after(place);
            let other = self.table.order(self.held.entry(place).slot);
            let is_reached = wish.limit.is_null()
                || match wish.side {
                    Side::Buy => other.price <= wish.limit,
                    Side::Sell => other.price >= wish.limit,
                };
            if !is_reached {
                return None;
            }
            let is_other = self.sessions[other.session as usize].owner != wish.owner && other.account != wish.account;
            if is_other && touch.has(other.price) && other.cancel.is_none() {
                return Some(place);
            }
        }
        None
    }

    /// Puts an order behind those of its side whose price is as good.
    fn rest(&mut self, now: Timestamp, place: u32, order: &Order) {
        let HeldOrders { rests, .. } = &self.held;
        let mut before = rests.sides[order.instrument as usize][side_index(order.side)].last();
        while let Some(one) = before {
            let price = self.table.order(self.held.entry(one).slot).price;
            let is_as_good = match order.side {
                Side::Buy => price >= order.price,
                Side::Sell => price <= order.price,
            };
            if is_as_good {
                break;
            }
            before = rests.links.before(one);
        }
        let until = now + rests.time;
        self.held.entry_mut(place).rests_until = until;
        let rests = &mut self.held.rests;
        let side = &mut rests.sides[order.instrument as usize][side_index(order.side)];
        rests.links.insert_behind(side, before, place);
        rests.age_links.push_back(&mut rests.by_age, place);
        self.held.note_wake();
    }

    /// Whether what rests is listed where it belongs, in its order.
    pub(crate) fn rests_are_listed(&self) -> bool {
        let rests = &self.held.rests;
        let mut listed = 0;
        for (instrument, sides) in (0..).zip(&rests.sides) {
            for (list, side) in sides.iter().zip([Side::Buy, Side::Sell]) {
                let mut last: Option<(i64, Timestamp)> = None;
                for place in core::iter::successors(list.first(), |&place| rests.links.after(place)) {
                    let held = self.held.entry(place);
                    let order = self.table.order(held.slot);
                    let price = match side {
                        Side::Buy => -order.price.0,
                        Side::Sell => order.price.0,
                    };
                    let rank = (price, held.rests_until);
                    if (order.instrument, order.side) != (instrument, side) || last.is_some_and(|last| last > rank) {
                        return false;
                    }
                    last = Some(rank);
                    listed += 1;
                }
            }
        }
        let mut resting = 0;
        for (_, held) in self.held.open().filter(|(_, held)| held.rests_until != Timestamp::NONE) {
            if !held.parts.cross || held.is_due {
                return false;
            }
            resting += 1;
        }
        (listed, rests.by_age.length()) == (resting, resting)
    }
}

impl HeldOrders {
    /// The order in a place may no longer be crossed.
    pub(crate) fn stop_crossing(&mut self, place: u32, instrument: u32, side: Side) {
        let held = self.entry_mut(place);
        held.parts.cross = false;
        if core::mem::replace(&mut held.rests_until, Timestamp::NONE) == Timestamp::NONE {
            return;
        }
        let rests = &mut self.rests;
        let list = &mut rests.sides[instrument as usize][side_index(side)];
        rests.links.remove(list, place);
        rests.age_links.remove(&mut rests.by_age, place);
        self.note_wake();
    }

    /// Notes when time alone gives one something to do.
    pub(crate) fn note_wake(&mut self) {
        let first = self.rests.by_age.first();
        let rest_ends = first.map_or(NEVER, |place| self.entry(place).rests_until);
        self.wakes = self.expires.min(rest_ends);
    }
}

impl Rests {
    /// For so many places; `instruments` is 0 where nothing is crossed.
    pub(crate) fn new(places: usize, instruments: usize, time: Duration) -> Self {
        let places = if instruments == 0 { 0 } else { places };
        Self {
            sides: vec![[List::EMPTY; 2]; instruments].into_boxed_slice(),
            links: Links::new(places),
            by_age: List::EMPTY,
            age_links: Links::new(places),
            time,
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.sides) + self.links.memory() + self.age_links.memory()
    }
}

impl Touch {
    /// `None` when the book is too old, lacks a side, or the bid is at the offer or above.
    fn of(now: Timestamp, instrument: &InstrumentState, reference: &Reference) -> Option<Self> {
        let Reference { bid, offer, time, .. } = *reference;
        let is_fresh = now.since(time) <= instrument.limits.stale_after;
        let is_whole = !bid.is_null() && !offer.is_null() && bid < offer;
        (is_fresh && is_whole).then_some(Self { bid, offer })
    }

    /// Whether a trade at this price is not worse for anybody than what the market shows.
    fn has(self, price: Price) -> bool {
        self.bid <= price && price <= self.offer
    }

    /// Whether an order may rest: it could not trade at its venue now, and nothing better is shown there.
    fn lets_rest(self, side: Side, order_type: OrderType, time_in_force: TimeInForce, price: Price) -> bool {
        let reaches = match side {
            Side::Buy => price >= self.offer,
            Side::Sell => price <= self.bid,
        };
        order_type == OrderType::Limit && !time_in_force.is_immediate() && self.has(price) && !reaches
    }
}

const fn side_index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}
