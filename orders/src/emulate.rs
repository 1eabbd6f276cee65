//! Order types that a venue lacks: stop, stop limit, iceberg, pegged. The gateway holds such an order and sends the venue
//! children of it, market and limit orders, one at a time.
//!
//! A stop sends nothing until a trade meets its price. Then it is told triggered, and what goes out is the market or limit
//! order that it has become: from there on it is an order like any other. An iceberg sends a portion and, when that has
//! traded in full, the next. A pegged order sends a limit order and replaces it as the market moves.
//!
//! All of it is one order to the client and to every limit: it claims all its lots from acceptance until it ends, and what
//! children trade is its own. A cancel goes for the child, and with the child the order is over; when nothing of it is at
//! the venue it ends here. A client's replace withdraws the child first and is made when the child is gone; what the child
//! traded meanwhile counts. A child's end is thus the one place where it is decided what comes next.
//!
//! What needs room on a link is not done where it turns out to be due but put into a list, and the shard takes it out:
//! [`next_step`](Orders::next_step) says what for, [`take_step`](Orders::take_step) does it.

use crate::config::SelfMatch;
use crate::done::End;
use crate::entry::Routed;
use crate::held::{Child, NEVER, Reprice, Withdrawal};
use crate::map::NIL;
use crate::order::{Order, PendingReplace};
use crate::report::{ForVenue, Sink};
use crate::state::Orders;
use types::{
    CancelOrder, ClientOrderId, ExecReport, ExecType, NewOrder, OrderId, OrderTerms, OrderType, Price, Quantity,
    Reason, ReplaceOrder, Request, TimeInForce, Timestamp, Trigger, VenueId,
};

/// A held order that has something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due(pub(crate) u32);

/// What a held order has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeldStep {
    /// Nothing: it is in the list no more.
    Nothing,
    /// Not yet.
    Wait,
    /// To end; the journal needs room.
    End,
    /// To send an order or a replace to its venue.
    Send(VenueId),
    /// To send a cancel to its venue.
    Cancel(VenueId),
}

/// The same, with what it takes.
enum Step {
    Nothing,
    Wait,
    End(Reason),
    /// A stop whose price was met goes out, or waits for own orders to be cancelled.
    Trigger,
    Child,
    Reprice(Price),
    Withdraw,
}

impl Orders {
    /// Takes in an order whose type the gateway stands in for. From here on it is open until a report ends it. Gives the
    /// gateway's number of it.
    ///
    /// # Panics
    /// When anything changed since [`check_risk`](Self::check_risk); when the order [is not to be held](Routed::is_held).
    pub fn hold_here<S: Sink>(&mut self, now: Timestamp, order: Routed<'_>, sink: &mut S) -> OrderId {
        assert!(order.is_held(), "an order that its venue has goes there");
        let (slot, request) = self.enter(now, &order);
        let place = self.held.take(slot, order.parts);
        let entry = self.table.order_mut(slot);
        (entry.held_place, entry.venue_number) = (place, 0);
        let order_id = OrderId(entry.number);
        self.counters.held += 1;
        if order.must_wait() {
            self.wait_for_own(now, slot, request);
        } else {
            self.begin_to_hold(now, slot, sink);
        }
        order_id
    }

    /// Held orders.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held.length()
    }

    /// The first held order that has something to do. Whoever hands in anything that may change orders goes through all of
    /// them afterwards, before the cancels that wait.
    #[must_use]
    pub fn first_due(&self) -> Option<Due> {
        self.held.due.first().map(Due)
    }

    /// The one that comes next. Asked before anything is done about `due`.
    #[must_use]
    pub fn due_after(&self, due: Due) -> Option<Due> {
        self.held.due_links.after(due.0).map(Due)
    }

    /// When a held order last changed.
    #[must_use]
    pub fn due_since(&self, due: Due) -> Timestamp {
        self.table.order(self.held.entry(due.0).slot).updated
    }

    /// What a held order has to do.
    pub fn next_step(&mut self, due: Due) -> HeldStep {
        let venue = self.table.order(self.held.entry(due.0).slot).venue;
        match self.step_of(due.0) {
            Step::Nothing => {
                self.held.unmark_due(due.0);
                HeldStep::Nothing
            }
            Step::Wait => HeldStep::Wait,
            Step::End(_) => HeldStep::End,
            Step::Trigger | Step::Child | Step::Reprice(_) => HeldStep::Send(venue),
            Step::Withdraw => HeldStep::Cancel(venue),
        }
    }

    /// Does it, once there is room. Gives the request for the venue, if there is one.
    pub fn take_step<S: Sink>(&mut self, now: Timestamp, due: Due, sink: &mut S) -> Option<ForVenue<Request>> {
        self.version += 1;
        let Due(place) = due;
        let slot = self.held.entry(place).slot;
        let order = self.table.order(slot);
        let (venue, order_id) = (order.venue, OrderId(order.number));
        let step = self.step_of(place);
        self.held.unmark_due(place);
        let request = match step {
            Step::Nothing | Step::Wait => None,
            Step::End(reason) => {
                if reason == Reason::SelfMatch {
                    self.cancel_met_by(slot, SelfMatch::CancelBoth);
                }
                self.canceled(slot, None, reason, sink);
                None
            }
            Step::Trigger => self.trigger(now, slot, sink).map(Request::New),
            Step::Child => Some(Request::New(self.send_child(now, slot))),
            Step::Reprice(price) => Some(Request::Replace(self.send_reprice(now, slot, price))),
            Step::Withdraw => Some(Request::Cancel(self.send_withdrawal(now, slot))),
        };
        request.map(|request| ForVenue {
            venue,
            order_id,
            request,
        })
    }

    /// Whether any has something to do.
    #[inline]
    #[must_use]
    pub fn is_held_due(&self, now: Timestamp) -> bool {
        self.held.due.length() > 0 || self.is_held_awake(now)
    }

    /// Whether one may have something to do by the time alone.
    #[inline]
    #[must_use]
    pub fn is_held_awake(&self, now: Timestamp) -> bool {
        self.held.wakes <= now
    }

    /// Whether one may be over by its own date while nothing of it is at its venue.
    #[inline]
    #[must_use]
    pub fn is_held_expired(&self, now: Timestamp) -> bool {
        self.held.expires <= now
    }

    /// Ends the next of those, if there is one left.
    pub fn expire_held<S: Sink>(&mut self, now: Timestamp, sink: &mut S) {
        self.version += 1;
        let mut next = NEVER;
        let mut expired = None;
        for (_, held) in self.held.open() {
            let order = self.table.order(held.slot);
            if order.venue_number != 0 || order.time_in_force != TimeInForce::GoodTillDate {
                continue;
            }
            next = next.min(order.terms.expires);
            if order.terms.expires <= now && expired.is_none() {
                expired = Some(held.slot);
            }
        }
        match expired {
            Some(slot) => self.expire(slot, Reason::Expired, sink),
            None => {
                self.held.expires = next;
                self.held.note_wake();
            }
        }
    }

    /// Begins to do for an order what its venue does not: nothing stands in its way any more.
    pub(crate) fn begin_to_hold<S: Sink>(&mut self, now: Timestamp, slot: u32, sink: &mut S) {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        order.told = true;
        order.updated = now;
        let (place, status) = (order.held_place, order.status());
        let parts = self.held.entry(place).parts;
        let reason = if parts.cross { Reason::Crossing } else { Reason::Held };
        let exec = order.report(ExecType::New, exec_id, reason);
        if parts.stop || parts.peg {
            self.held.watch(place, self.table.order(slot));
        } else {
            self.held.mark_due(place);
        }
        self.note_expiry(slot);
        sink.report(&self.sent(exec, 0, status));
    }

    /// A stop whose own orders in the way are gone, or an iceberg that waited for that.
    pub(crate) fn go_on_holding<S: Sink>(&mut self, now: Timestamp, slot: u32, sink: &mut S) -> Option<NewOrder> {
        if !self.table.order(slot).told {
            self.begin_to_hold(now, slot, sink);
        }
        let place = self.table.order(slot).held_place;
        match self.step_of(place) {
            Step::Child => {
                self.held.unmark_due(place);
                Some(self.send_child(now, slot))
            }
            Step::Nothing => None,
            _ => {
                self.held.mark_due(place);
                None
            }
        }
    }

    /// What of the order may still trade at its venue.
    #[inline]
    pub(crate) fn leaves_at_venue(&self, order: &Order) -> Quantity {
        match order.held_place {
            NIL => order.leaves(),
            place => self.held.entry(place).child.leaves(),
        }
    }

    /// The number that the venue will know the order by once it has answered what was asked.
    #[inline]
    pub(crate) fn newest_number(&self, order: &Order) -> u64 {
        match order.held_place {
            NIL => order.replace.map_or(order.venue_number, |replace| replace.number),
            place => {
                let reprice = self.held.entry(place).reprice;
                reprice.map_or(order.venue_number, |reprice| reprice.number)
            }
        }
    }

    /// Counts what a child traded. When that was all of it, the next one follows.
    pub(crate) fn child_filled<S: Sink>(&mut self, now: Timestamp, slot: u32, lots: Quantity, sink: &mut S) {
        let order = self.table.order(slot);
        let is_over = order.leaves().is_zero();
        let child = &mut self.held.entry_mut(order.held_place).child;
        child.cumulative += lots;
        let is_gone = child.leaves().is_zero();
        if is_over {
            self.end(slot, End::FILLED, sink);
        } else if is_gone {
            self.child_gone(now, slot, sink);
        }
    }

    /// The venue took lots off the child. Returns whether they stay off whatever was asked about it before.
    pub(crate) fn restate_child(&mut self, place: u32, quantity: Quantity) -> bool {
        let held = self.held.entry_mut(place);
        match &mut held.reprice {
            Some(reprice) => reprice.restated = held.child.quantity - quantity,
            None => held.child.quantity = quantity,
        }
        held.reprice.is_none()
    }

    /// The venue cancelled the child.
    pub(crate) fn child_canceled<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        reason: Reason,
        sink: &mut S,
    ) {
        let order = self.table.order(slot);
        let number = report.client_order_id.0;
        let of_order = order.cancel.filter(|cancel| cancel.number == number);
        let withdrawal = self.held.entry(order.held_place).withdrawal;
        if matches!(withdrawal, Withdrawal::Asked { number: asked, .. } if asked == number) {
            self.child_gone(now, slot, sink);
        } else {
            self.canceled(slot, of_order, reason, sink);
        }
    }

    /// Whether the report answers a new price of the child; then it is seen to.
    pub(crate) fn child_replaced(&mut self, now: Timestamp, slot: u32, report: &ExecReport) -> bool {
        let order = self.table.order_mut(slot);
        let held = self.held.entry_mut(order.held_place);
        let Some(reprice) = held
            .reprice
            .filter(|reprice| reprice.number == report.client_order_id.0)
        else {
            return false;
        };
        held.reprice = None;
        held.child.price = reprice.price;
        order.acknowledge(now, report);
        order.venue_number = reprice.number;
        // The market may have moved on.
        let place = order.held_place;
        self.held.mark_due(place);
        true
    }

    /// Whether the report refuses what the gateway itself asked about the child; then it is seen to.
    pub(crate) fn child_kept<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        reason: Reason,
        sink: &mut S,
    ) -> bool {
        let order = self.table.order(slot);
        let (place, venue_number) = (order.held_place, order.venue_number);
        let held = self.held.entry_mut(place);
        let asked = report.client_order_id.0;
        if let Some(reprice) = held.reprice.filter(|reprice| reprice.number == asked) {
            held.reprice = None;
            self.child_not_repriced(now, slot, reprice.restated, sink);
            return true;
        }
        match held.withdrawal {
            Withdrawal::Asked { number, aimed_at } if number == asked => {
                if aimed_at != venue_number {
                    // It named the child by a new price that the venue refused.
                    held.withdrawal = Withdrawal::Wanted;
                    self.held.mark_due(place);
                    return true;
                }
                held.withdrawal = Withdrawal::No;
                if let Some(replace) = order.replace {
                    self.replace_failed(now, slot, replace, reason, sink);
                }
                true
            }
            _ => false,
        }
    }

    /// A new price was refused, so that the lots are off which the venue took off before.
    fn child_not_repriced<S: Sink>(&mut self, now: Timestamp, slot: u32, restated: Quantity, sink: &mut S) {
        if restated.is_zero() {
            return;
        }
        let order = self.table.order(slot);
        let (place, cancel) = (order.held_place, order.cancel);
        if order.leaves() == restated {
            self.unqueue_cancel(slot);
            return self.canceled(slot, cancel, Reason::SelfMatch, sink);
        }
        let child = &mut self.held.entry_mut(place).child;
        child.quantity -= restated;
        let is_gone = child.leaves().is_zero();
        self.take_lots_off(slot, restated, Reason::SelfMatch, sink);
        if is_gone {
            self.child_gone(now, slot, sink);
        }
    }

    /// A client's replace of a held order was accepted: it is made at once when nothing of the order is at the venue, and
    /// else when the child is gone.
    pub(crate) fn begin_replace<S: Sink>(&mut self, now: Timestamp, slot: u32, sink: &mut S) {
        let order = self.table.order(slot);
        let place = order.held_place;
        if order.venue_number == 0 {
            if let Some(replace) = order.replace {
                self.make_replace(now, slot, &replace, sink);
            }
        } else {
            self.held.entry_mut(place).withdrawal = Withdrawal::Wanted;
            self.held.mark_due(place);
        }
    }

    /// Forgets a held order that ends, or that has become one like any other.
    pub(crate) fn leave_held(&mut self, slot: u32) {
        let order = self.table.order_mut(slot);
        let (place, instrument, side) = (order.held_place, order.instrument, order.side);
        order.held_place = NIL;
        self.held.free(place, instrument, side);
    }

    /// Nothing of the order is at its venue any more, and it has lots left: what comes next?
    fn child_gone<S: Sink>(&mut self, now: Timestamp, slot: u32, sink: &mut S) {
        // As long as it is in the list of its venue.
        self.unqueue_cancel(slot);
        let order = self.table.order_mut(slot);
        order.venue_number = 0;
        let (place, cancel, replace) = (order.held_place, order.cancel, order.replace);
        let held = self.held.entry_mut(place);
        (held.reprice, held.withdrawal) = (None, Withdrawal::No);
        if let Some(cancel) = cancel {
            return self.canceled(slot, Some(cancel), Reason::None, sink);
        }
        self.note_expiry(slot);
        match replace {
            Some(replace) => self.make_replace(now, slot, &replace, sink),
            None => self.held.mark_due(place),
        }
    }

    /// Makes a client's replace of an order of which nothing is at the venue.
    fn make_replace<S: Sink>(&mut self, now: Timestamp, slot: u32, replace: &PendingReplace, sink: &mut S) {
        if self.replaced(now, slot, replace, sink) {
            return;
        }
        let order = *self.table.order(slot);
        self.held.stop_crossing(order.held_place, order.instrument, order.side);
        let types = &self.venues[usize::from(order.venue.0)].types;
        let held = self.held.entry_mut(order.held_place);
        // It was seen to be possible when the replace came.
        held.parts.slices = types
            .parts(order.type_now(), order.terms.display)
            .is_ok_and(|parts| parts.slices);
        held.is_met = false;
        if held.parts.stop || held.parts.peg {
            self.held.note_wish(order.instrument, &order);
        } else {
            self.held.mark_due(order.held_place);
        }
        self.note_expiry(slot);
    }

    /// What a held order has to do now.
    fn step_of(&self, place: u32) -> Step {
        let held = self.held.entry(place);
        let order = self.table.order(held.slot);
        let venue = &self.venues[usize::from(order.venue.0)];
        // Its end is under way, own orders are first, or it is crossed.
        if order.cancel.is_some() || order.waits() || held.parts.cross {
            return Step::Nothing;
        }
        // As other cancels: the link keeps it while the venue is down.
        if held.withdrawal == Withdrawal::Wanted {
            return Step::Withdraw;
        }
        if !venue.is_up {
            let cannot_wait = (held.parts.stop && held.is_met) || is_immediate(order);
            return if cannot_wait {
                Step::End(Reason::VenueDown)
            } else {
                Step::Wait
            };
        }
        if order.venue_number != 0 {
            return self.step_of_child(place);
        }
        let price = match (held.parts.stop, held.parts.peg) {
            (true, _) if !held.is_met => return Step::Nothing,
            (_, true) => self.peg_price(order),
            _ => Some(order.price),
        };
        if price.is_none() {
            Step::Nothing
        } else if venue.slots.is_some_and(|slots| venue.open_orders > slots) {
            Step::Wait
        } else if !self.numbers.has_room() {
            Step::End(Reason::OrderTableFull)
        } else if held.parts.stop {
            self.step_of_stop(order)
        } else {
            Step::Child
        }
    }

    fn step_of_child(&self, place: u32) -> Step {
        let held = self.held.entry(place);
        let order = self.table.order(held.slot);
        if !held.parts.peg || held.reprice.is_some() || order.replace.is_some() || !self.numbers.has_room() {
            return Step::Nothing;
        }
        match self.peg_price(order) {
            Some(price) if price != held.child.price => Step::Reprice(price),
            _ => Step::Nothing,
        }
    }

    /// A stop whose price was met meets own orders as a new order does.
    fn step_of_stop(&self, order: &Order) -> Step {
        let reach = self.reach_of(order);
        match self.sessions[order.session as usize].self_match {
            _ if !self.own.would_trade(reach) => Step::Trigger,
            SelfMatch::CancelNewest | SelfMatch::CancelBoth => Step::End(Reason::SelfMatch),
            SelfMatch::CancelOldest if self.waiting.length() >= self.most_waiting => Step::End(Reason::TooManyWaiting),
            SelfMatch::Decrement if !self.is_decremented(reach, order.account, order.venue) => {
                Step::End(Reason::SelfMatch)
            }
            SelfMatch::CancelOldest | SelfMatch::Decrement => Step::Trigger,
        }
    }

    /// Tells that a stop was triggered, and sends what it has become; unless own orders are to be cancelled first.
    fn trigger<S: Sink>(&mut self, now: Timestamp, slot: u32, sink: &mut S) -> Option<NewOrder> {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        order.updated = now;
        order.triggered = true;
        let exec = order.report(ExecType::Triggered, exec_id, Reason::Held);
        let (place, traded, status, instrument) = (order.held_place, order.traded, order.status(), order.instrument);
        sink.report(&self.sent(exec, traded, status));
        self.held.unwatch(place, instrument);
        self.held.entry_mut(place).parts.stop = false;
        let order = self.table.order(slot);
        let must_wait = self.own.would_trade(self.reach_of(order))
            && self.sessions[order.session as usize].self_match == SelfMatch::CancelOldest;
        if must_wait {
            self.cancel_met_by(slot, SelfMatch::CancelOldest);
            self.wait(now, slot);
        }
        let order = self.table.order_mut(slot);
        if order.book != NIL {
            order.in_book = true;
            self.own.insert(order.book, order.side, order.own_price(), slot);
        }
        (!must_wait).then(|| self.send_child(now, slot))
    }

    /// Cancels the own orders that an order meets, in this mode of its session.
    fn cancel_met_by(&mut self, slot: u32, mode: SelfMatch) {
        let order = self.table.order(slot);
        if self.sessions[order.session as usize].self_match == mode {
            let reach = self.reach_of(order);
            self.cancel_reach(reach);
        }
    }

    /// The next child: all that is left, or a portion.
    fn send_child(&mut self, now: Timestamp, slot: u32) -> NewOrder {
        let number = self.numbers.next(slot);
        let order = *self.table.order(slot);
        let place = order.held_place;
        let parts = self.held.entry(place).parts;
        let leaves = order.leaves();
        let quantity = if parts.slices {
            leaves.min(order.terms.display)
        } else {
            leaves
        };
        let price = if parts.peg {
            self.peg_price(&order).unwrap_or(order.price)
        } else {
            order.price
        };
        let is_first = order.last_number == order.number && !order.order_type.is_stop();
        let request = NewOrder {
            client_order_id: ClientOrderId(number),
            instrument: order.instrument_id,
            account: order.account_id,
            session: self.venues[usize::from(order.venue.0)].session,
            side: order.side,
            order_type: if price.is_null() {
                OrderType::Market
            } else {
                OrderType::Limit
            },
            time_in_force: order.time_in_force,
            price,
            quantity,
            // The tick that caused the order caused nothing that came later.
            trigger: if is_first { order.trigger } else { Trigger::NONE },
            terms: child_terms(&order.terms, parts.slices),
        };
        let entry = self.table.order_mut(slot);
        (entry.last_number, entry.venue_number) = (number, number);
        (entry.acknowledged, entry.updated) = (false, now);
        self.counters.children += 1;
        self.held.entry_mut(place).child = Child {
            number,
            price,
            quantity,
            cumulative: Quantity::ZERO,
        };
        // A replace of one that traded here says lots that its venue knows nothing of.
        if !parts.slices && !parts.peg && quantity == order.quantity {
            // The venue has from here on all that it needs.
            self.leave_held(slot);
        }
        request
    }

    fn send_reprice(&mut self, now: Timestamp, slot: u32, price: Price) -> ReplaceOrder {
        let number = self.numbers.next(slot);
        let order = self.table.order_mut(slot);
        (order.last_number, order.updated) = (number, now);
        let held = self.held.entry_mut(order.held_place);
        held.reprice = Some(Reprice {
            number,
            price,
            restated: Quantity::ZERO,
        });
        ReplaceOrder {
            client_order_id: ClientOrderId(number),
            orig_client_order_id: ClientOrderId(order.venue_number),
            instrument: order.instrument_id,
            session: self.venues[usize::from(order.venue.0)].session,
            side: order.side,
            price,
            quantity: held.child.quantity,
            terms: child_terms(&order.terms, held.parts.slices),
        }
    }

    fn send_withdrawal(&mut self, now: Timestamp, slot: u32) -> CancelOrder {
        let number = self.numbers.next(slot);
        let aimed_at = self.newest_number(self.table.order(slot));
        let order = self.table.order_mut(slot);
        (order.last_number, order.updated) = (number, now);
        self.held.entry_mut(order.held_place).withdrawal = Withdrawal::Asked { number, aimed_at };
        CancelOrder {
            client_order_id: ClientOrderId(number),
            orig_client_order_id: ClientOrderId(aimed_at),
            instrument: order.instrument_id,
            session: self.venues[usize::from(order.venue.0)].session,
            side: order.side,
        }
    }

    /// Remembers when the order ends by itself while it is here alone.
    fn note_expiry(&mut self, slot: u32) {
        let order = self.table.order(slot);
        if order.time_in_force == TimeInForce::GoodTillDate {
            self.held.expires = self.held.expires.min(order.terms.expires);
            self.held.note_wake();
        }
    }
}

/// Whether what it cannot trade at once is cancelled.
fn is_immediate(order: &Order) -> bool {
    order.order_type == OrderType::Market || order.time_in_force.is_immediate()
}

/// The terms of a child: what is left when the gateway does the rest.
fn child_terms(terms: &OrderTerms, slices: bool) -> OrderTerms {
    OrderTerms {
        stop_price: Price::NULL,
        display: if slices { Quantity::ZERO } else { terms.display },
        peg_offset: Price(0),
        ..*terms
    }
}
