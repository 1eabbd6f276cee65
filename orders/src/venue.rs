//! What venues say: their reports become the client's, and exposure follows.
//!
//! A link delivers a venue's reports in the order in which they were made, each exactly once. Races are therefore only
//! those between our requests on their way out and what the venue decided before it saw them: a trade while a cancel or a
//! replace is pending, or an end of the order that leaves the pending request without anything to act on. What the venue
//! says holds. A request that outlives its order is answered here with [`Reason::TooLate`], once, and the venue's own answer
//! to it is then [`Anomaly::Late`].

use crate::counters::Anomaly;
use crate::done::End;
use crate::exposure::{Claim, shared_units};
use crate::map::NIL;
use crate::order::{Order, PendingCancel, PendingReplace};
use crate::report::{OrderStatus, Sink};
use crate::state::Orders;
use types::{ClientOrderId, ExecReport, ExecType, OrderId, Price, Quantity, Reason, Timestamp, VenueId};

impl Orders {
    /// Takes in a report of a venue and gives what clients are to know of it. Returns the gateway's number of the order.
    ///
    /// # Errors
    /// What is wrong with the report; it is counted and no client hears of it.
    pub fn on_venue_report<S: Sink>(
        &mut self,
        now: Timestamp,
        venue: VenueId,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<OrderId, Anomaly> {
        self.version += 1;
        let result = self.find(venue, report).and_then(|slot| {
            let order_id = OrderId(self.table.order(slot).number);
            let places = self.table.order(slot).places();
            let result = match report.exec_type {
                ExecType::New => self.on_new(now, slot, report, sink),
                ExecType::Fill => self.on_fill(now, slot, report, sink),
                ExecType::Canceled => self.on_canceled(now, slot, report, sink),
                ExecType::Expired => self.on_expired(slot, report, sink),
                ExecType::Rejected => self.on_rejected(slot, report, sink),
                ExecType::Replaced => self.on_replaced(now, slot, report, sink),
                ExecType::RequestRejected => self.on_request_rejected(now, slot, report, sink),
                ExecType::Triggered => self.on_triggered(now, slot, report, sink),
                ExecType::Restated => self.on_restated(now, slot, report, sink),
                ExecType::Status | ExecType::StatusEnd | ExecType::MassCancelAccepted => Err(Anomaly::Unexpected),
            };
            self.settle(places, sink);
            result.map(|()| order_id)
        });
        let result = match result {
            Err(Anomaly::TradeAfterEnd) => self.on_late_trade(venue, report, sink),
            result => result,
        };
        if let Err(anomaly) = result {
            self.counters.count_anomaly(anomaly);
        }
        result
    }

    /// The venue's link works: new orders go there again.
    pub fn on_venue_up(&mut self, venue: VenueId) {
        self.set_venue_up(venue, true);
    }

    /// The venue's link is down: new orders and replaces for it are refused. Its open orders stay as they are, in doubt:
    /// the link keeps what was sent and asks for what was missed when it is up again.
    pub fn on_venue_down(&mut self, venue: VenueId) {
        self.set_venue_up(venue, false);
    }

    /// The venue permits so many open orders from now on. When more are open they stay, and new ones are refused until
    /// enough have ended.
    pub fn on_venue_slots(&mut self, venue: VenueId, slots: u32) {
        self.version += 1;
        if let Some(venue) = self.venues.get_mut(usize::from(venue.0)) {
            venue.slots = Some(slots);
        }
    }

    fn set_venue_up(&mut self, venue: VenueId, is_up: bool) {
        self.version += 1;
        self.queue.look_again();
        if let Some(venue) = self.venues.get_mut(usize::from(venue.0)) {
            venue.is_up = is_up;
        }
    }

    /// The open order that a report is about.
    #[inline]
    fn find(&self, venue: VenueId, report: &ExecReport) -> Result<u32, Anomaly> {
        let number = report.client_order_id.0;
        let slot = self.numbers.slot(number).ok_or(Anomaly::UnknownOrder)?;
        let order = self.table.order(slot);
        if !order.has_number(number) {
            return Err(match report.exec_type {
                ExecType::Fill => Anomaly::TradeAfterEnd,
                _ => Anomaly::Late,
            });
        }
        if order.venue != venue {
            return Err(Anomaly::WrongVenue);
        }
        if !self.is_at_venue(order, number) {
            return Err(match report.exec_type {
                _ if order.waits() && !order.told => Anomaly::Unexpected,
                ExecType::Fill => Anomaly::TradeAfterEnd,
                _ => Anomaly::Late,
            });
        }
        if order.instrument_id != report.instrument || order.side != report.side {
            return Err(Anomaly::WrongTerms);
        }
        Ok(slot)
    }

    /// Whether a number is of what is at the venue: of a held order that is its child, and others came before.
    #[inline]
    fn is_at_venue(&self, order: &Order, number: u64) -> bool {
        order.venue_number != 0 && (order.held_place == NIL || number >= self.held.entry(order.held_place).child.number)
    }

    fn on_new<S: Sink>(&mut self, now: Timestamp, slot: u32, report: &ExecReport, sink: &mut S) -> Result<(), Anomaly> {
        if self.table.order(slot).acknowledged {
            return Err(Anomaly::Unexpected);
        }
        if self.table.order(slot).told {
            self.table.order_mut(slot).acknowledge(now, report);
            return Ok(());
        }
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        order.acknowledge(now, report);
        let exec = order.report(ExecType::New, exec_id, Reason::None);
        let status = order.status();
        sink.report(&self.sent(exec, 0, status));
        Ok(())
    }

    /// A stop order's price was met: from here on it may rest.
    fn on_triggered<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        if order.triggered || !order.order_type.is_stop() {
            return Err(Anomaly::Unexpected);
        }
        order.acknowledge(now, report);
        order.triggered = true;
        let exec = order.report(ExecType::Triggered, exec_id, Reason::None);
        let (traded, status) = (order.traded, order.status());
        if order.book != NIL {
            order.in_book = true;
            let (book, side, price) = (order.book, order.side, order.own_price());
            self.own.insert(book, side, price, slot);
        }
        sink.report(&self.sent(exec, traded, status));
        Ok(())
    }

    fn on_fill<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        let lots = report.last_quantity;
        let leaves = self.leaves_at_venue(self.table.order(slot));
        if lots.is_zero() || lots > leaves {
            return Err(Anomaly::Overfill);
        }
        if report.last_price.is_null() {
            return Err(Anomaly::WrongTerms);
        }
        let order = self.table.order_mut(slot);
        // A trade says as well that the order was accepted.
        order.acknowledge(now, report);
        let is_held = order.held_place != NIL;
        self.trade(slot, report.last_price, lots, Reason::None, sink);
        if is_held {
            self.child_filled(now, slot, lots, sink);
        } else if lots == leaves {
            self.end(slot, End::FILLED, sink);
        }
        Ok(())
    }

    /// Counts a trade of so many lots, which are open, and tells of it. `reason` says where it was, when not at the venue.
    #[inline]
    pub(crate) fn trade<S: Sink>(&mut self, slot: u32, price: Price, lots: Quantity, reason: Reason, sink: &mut S) {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        order.cumulative += lots;
        order.traded += i128::from(price.0) * i128::from(lots.0);
        order.used += lots.notional(order.weight_price, order.lot_size).0;
        let exec = ExecReport {
            last_price: price,
            last_quantity: lots,
            ..order.report(ExecType::Fill, exec_id, reason)
        };
        let (side, position, traded, status) = (order.side, order.position, order.traded, order.status());
        let exposure = self.positions.entry_mut(position);
        exposure.trade(side, lots, price);
        exposure.mark = price;
        self.instruments[exposure.instrument as usize]
            .together
            .trade(side, lots);
        self.update_claim(slot);
        sink.report(&self.sent(exec, traded, status));
    }

    fn on_canceled<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        if self.table.order(slot).held_place != NIL {
            self.child_canceled(now, slot, report, venue_reason(report, Reason::Venue), sink);
            return Ok(());
        }
        let cancel = self.table.order(slot).cancel;
        let answered = cancel.filter(|cancel| cancel.number == report.client_order_id.0);
        self.canceled(slot, answered, venue_reason(report, Reason::Venue), sink);
        Ok(())
    }

    /// Ends the order as cancelled: for the cause of the cancel that this answers, else for `reason`.
    pub(crate) fn canceled<S: Sink>(
        &mut self,
        slot: u32,
        answered: Option<PendingCancel>,
        reason: Reason,
        sink: &mut S,
    ) {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        let mut exec = order.report(ExecType::Canceled, exec_id, reason);
        if let Some(cancel) = answered {
            exec.reason = cancel.cause;
            if cancel.client_order_id != ClientOrderId(0) {
                exec.client_order_id = cancel.client_order_id;
                exec.orig_client_order_id = order.client_order_id;
                self.by_client_id.remove(cancel.client_order_id.0, order.session);
            }
            order.cancel = None;
        }
        let traded = order.traded;
        let end = End {
            status: OrderStatus::Canceled,
            reason: exec.reason,
        };
        sink.report(&self.sent(exec, traded, end.status));
        self.end(slot, end, sink);
    }

    fn on_expired<S: Sink>(&mut self, slot: u32, report: &ExecReport, sink: &mut S) -> Result<(), Anomaly> {
        self.expire(slot, venue_reason(report, Reason::DayEnded), sink);
        Ok(())
    }

    /// Ends the order because its time is over.
    pub(crate) fn expire<S: Sink>(&mut self, slot: u32, reason: Reason, sink: &mut S) {
        let exec_id = self.next_exec_id();
        let order = self.table.order(slot);
        let (exec, traded) = (order.report(ExecType::Expired, exec_id, reason), order.traded);
        let end = End {
            status: OrderStatus::Expired,
            reason,
        };
        sink.report(&self.sent(exec, traded, end.status));
        self.end(slot, end, sink);
    }

    fn on_rejected<S: Sink>(&mut self, slot: u32, report: &ExecReport, sink: &mut S) -> Result<(), Anomaly> {
        let order = self.table.order(slot);
        if report.reason == Reason::DuplicateClientOrderId {
            return Err(Anomaly::Duplicate);
        }
        if order.acknowledged || report.client_order_id.0 != order.venue_number {
            return Err(Anomaly::Unexpected);
        }
        self.rejected(slot, venue_reason(report, Reason::Venue), sink);
        Ok(())
    }

    /// Ends an order that never was in a book, as refused; as cancelled when its client knows that it was accepted.
    pub(crate) fn rejected<S: Sink>(&mut self, slot: u32, reason: Reason, sink: &mut S) {
        if self.table.order(slot).told {
            return self.canceled(slot, None, reason, sink);
        }
        let exec_id = self.next_exec_id();
        let exec = self.table.order(slot).report(ExecType::Rejected, exec_id, reason);
        let end = End {
            status: OrderStatus::Rejected,
            reason,
        };
        sink.report(&self.sent(exec, 0, end.status));
        self.end(slot, end, sink);
    }

    fn on_replaced<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        if self.table.order(slot).held_place != NIL && self.child_replaced(now, slot, report) {
            return Ok(());
        }
        let replace = self.pending_replace(slot, report).ok_or(Anomaly::Unexpected)?;
        let order = self.table.order_mut(slot);
        order.acknowledge(now, report);
        order.venue_number = replace.number;
        self.replaced(now, slot, &replace, sink);
        Ok(())
    }

    /// Gives an order the terms of a client's replace. Returns whether it is over: its new total is no more than what has
    /// traded.
    pub(crate) fn replaced<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        replace: &PendingReplace,
        sink: &mut S,
    ) -> bool {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        let (old_id, session) = (order.client_order_id, order.session);
        order.updated = now;
        order.replace = None;
        order.client_order_id = replace.client_order_id;
        order.price = replace.price;
        order.weight_price = replace.weight_price;
        // What traded, traded: a replace to less leaves an order that is filled.
        order.quantity = replace.quantity.max(order.cumulative);
        order.terms = replace.terms;
        let exec = ExecReport {
            orig_client_order_id: old_id,
            ..order.report(ExecType::Replaced, exec_id, Reason::None)
        };
        let (traded, status, is_over) = (order.traded, order.status(), order.leaves().is_zero());
        self.by_client_id.remove(old_id.0, session);
        self.follow_terms(slot);
        sink.report(&self.sent(exec, traded, status));
        if is_over {
            self.end(slot, End::FILLED, sink);
        } else {
            self.release_surplus(slot);
        }
        is_over
    }

    /// The venue took lots off by itself.
    fn on_restated<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        let order = self.table.order(slot);
        let (quantity, place) = (report.quantity, order.held_place);
        let (known, traded) = match place {
            NIL => (order.quantity, order.cumulative),
            place => {
                let child = &self.held.entry(place).child;
                (child.quantity, child.cumulative)
            }
        };
        if quantity >= known || quantity <= traded {
            return Err(Anomaly::Unexpected);
        }
        self.table.order_mut(slot).acknowledge(now, report);
        if place == NIL || self.restate_child(place, quantity) {
            let reason = venue_reason(report, Reason::Venue);
            self.take_lots_off(slot, known - quantity, reason, sink);
        }
        Ok(())
    }

    /// Tells that the venue took lots off the order.
    pub(crate) fn take_lots_off<S: Sink>(&mut self, slot: u32, lots: Quantity, reason: Reason, sink: &mut S) {
        let exec_id = self.next_exec_id();
        let order = self.table.order_mut(slot);
        order.quantity -= lots;
        let exec = order.report(ExecType::Restated, exec_id, reason);
        let (traded, status) = (order.traded, order.status());
        self.update_claim(slot);
        sink.report(&self.sent(exec, traded, status));
        self.release_surplus(slot);
    }

    fn on_request_rejected<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        report: &ExecReport,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        if report.reason == Reason::DuplicateClientOrderId {
            return Err(Anomaly::Duplicate);
        }
        if self.table.order(slot).held_place != NIL {
            let reason = venue_reason(report, Reason::Venue);
            if self.child_kept(now, slot, report, reason, sink) {
                return Ok(());
            }
        }
        if let Some(replace) = self.pending_replace(slot, report) {
            self.replace_failed(now, slot, replace, venue_reason(report, Reason::Venue), sink);
            return Ok(());
        }
        match self.table.order(slot).cancel {
            Some(cancel) if cancel.number == report.client_order_id.0 => {
                self.cancel_failed(now, slot, cancel, venue_reason(report, Reason::Venue), sink)
            }
            _ => Err(Anomaly::Unexpected),
        }
    }

    /// The order stays as it was before the replace.
    pub(crate) fn replace_failed<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        replace: PendingReplace,
        reason: Reason,
        sink: &mut S,
    ) {
        let order = self.table.order_mut(slot);
        order.updated = now;
        order.replace = None;
        let order = *order;
        self.by_client_id.remove(replace.client_order_id.0, order.session);
        self.follow_terms(slot);
        sink.report(&self.rejection(&order, replace.client_order_id, reason));
        self.release_surplus(slot);
    }

    fn cancel_failed<S: Sink>(
        &mut self,
        now: Timestamp,
        slot: u32,
        cancel: PendingCancel,
        reason: Reason,
        sink: &mut S,
    ) -> Result<(), Anomaly> {
        let order = self.table.order_mut(slot);
        order.updated = now;
        if cancel.aimed_at != order.venue_number {
            // It named the order by the number of a replace that the venue refused. The next one cannot miss, because
            // nothing is replaced while a cancel is pending.
            self.queue_cancel(slot, cancel);
            return Ok(());
        }
        order.cancel = None;
        if cancel.client_order_id == ClientOrderId(0) {
            return Err(Anomaly::CancelRefused);
        }
        let order = *order;
        self.by_client_id.remove(cancel.client_order_id.0, order.session);
        sink.report(&self.rejection(&order, cancel.client_order_id, reason));
        if cancel.otherwise != Reason::None {
            self.queue_cancel(slot, PendingCancel::own(cancel.otherwise));
        }
        Ok(())
    }

    /// The order's pending replace, when the report answers it.
    fn pending_replace(&self, slot: u32, report: &ExecReport) -> Option<PendingReplace> {
        let replace = self.table.order(slot).replace?;
        (replace.number == report.client_order_id.0).then_some(replace)
    }

    /// Corrects exposure after a change of the order in `slot`.
    #[inline]
    pub(crate) fn update_claim(&mut self, slot: u32) {
        let order = self.table.order_mut(slot);
        let (old, new) = (order.claim, order.claim());
        order.claim = new;
        let (side, position) = (order.side, order.position);
        let [account, _, instrument] = order.places();
        let exposure = self.positions.entry_mut(position);
        exposure.change(side, old, new);
        let account = &mut self.accounts[account as usize];
        account.exposure.change(side, old, new);
        account.restake(exposure);
        let instrument = &mut self.instruments[instrument as usize];
        instrument.together.change(side, old, new);
    }

    /// Corrects exposure and the own-order book after a change of price or quantity, real or pending.
    pub(crate) fn follow_terms(&mut self, slot: u32) {
        self.update_claim(slot);
        let order = self.table.order(slot);
        if order.in_book {
            self.own.remove(order.book, order.side, slot);
            self.own.insert(order.book, order.side, order.own_price(), slot);
        }
    }

    /// Gives back what the order holds of its account's shared limit beyond its need.
    fn release_surplus(&mut self, slot: u32) {
        let order = self.table.order_mut(slot);
        let surplus = order.held - shared_units(order.used + order.claim.notional).unwrap_or(order.held);
        order.held -= surplus;
        let places = order.places();
        self.release(places, 0, surplus, 0);
    }

    /// Ends the order in `slot`, whose last report was given: the one place where an order leaves the tables, so that
    /// whatever it claimed is released once.
    pub(crate) fn end<S: Sink>(&mut self, slot: u32, end: End, sink: &mut S) {
        self.answer_pending(slot, end, sink);
        self.keep_done(slot, end);
        let order = self.table.order(slot);
        if order.is_queued {
            self.unqueue(slot);
        } else if order.waits() {
            self.waiting_links.remove(&mut self.waiting, slot);
        }
        let order = self.table.order(slot);
        if order.in_book {
            self.own.remove(order.book, order.side, slot);
        }
        if order.held_place != NIL {
            self.leave_held(slot);
        }
        let order = self.table.order(slot);
        let session = &mut self.sessions[order.session as usize];
        self.session_links.remove(&mut session.orders, slot);

        let position = self.positions.entry_mut(order.position);
        position.open_orders -= 1;
        position.change(order.side, order.claim, Claim::default());
        let account = &mut self.accounts[order.account as usize];
        account.exposure.change(order.side, order.claim, Claim::default());
        account.restake(position);
        let instrument = &mut self.instruments[order.instrument as usize];
        instrument.together.change(order.side, order.claim, Claim::default());
        self.venues[usize::from(order.venue.0)].open_orders -= 1;
        let (places, held) = (order.places(), order.held);
        let used = shared_units(order.used).unwrap_or(held);
        self.release(places, 1, held, used);
        self.table.free(slot);
        self.counters.ended += 1;
        self.settle(places, sink);
    }

    /// Keeps an order that ends for those who ask, found by the client's number as before.
    fn keep_done(&mut self, slot: u32, end: End) {
        let order = self.table.order_mut(slot);
        (order.cancel, order.replace) = (None, None);
        let (id, session) = (order.client_order_id, order.session);
        let (place, evicted) = self.done.keep(self.table.order(slot), end);
        let value = self.table.capacity() + u32::try_from(place).expect("places are bounded by a u32");
        self.by_client_id.update(id.0, session, value);
        if let Some((id, session)) = evicted {
            self.by_client_id.remove(id.0, session);
        }
    }

    /// Answers the requests that the order's end left without anything to act on.
    fn answer_pending<S: Sink>(&mut self, slot: u32, end: End, sink: &mut S) {
        self.unqueue_cancel(slot);
        let order = *self.table.order(slot);
        if let Some(replace) = order.replace {
            self.by_client_id.remove(replace.client_order_id.0, order.session);
            self.reject_too_late(&order, replace.client_order_id, end, sink);
        }
        if let Some(cancel) = order.cancel
            && cancel.client_order_id != ClientOrderId(0)
        {
            self.by_client_id.remove(cancel.client_order_id.0, order.session);
            self.reject_too_late(&order, cancel.client_order_id, end, sink);
        }
    }

    fn reject_too_late<S: Sink>(&mut self, order: &Order, request: ClientOrderId, end: End, sink: &mut S) {
        let mut report = self.rejection(order, request, Reason::TooLate);
        report.exec.leaves = Quantity::ZERO;
        report.status = end.status;
        sink.report(&report);
    }
}

impl Order {
    /// Notes that the venue knows the order.
    pub(crate) fn acknowledge(&mut self, now: Timestamp, report: &ExecReport) {
        self.acknowledged = true;
        self.updated = now;
        self.venue_order_id = report.order_id;
    }
}

/// The venue's reason, or ours where it gave none.
fn venue_reason(report: &ExecReport, otherwise: Reason) -> Reason {
    match report.reason {
        Reason::None => otherwise,
        reason => reason,
    }
}
