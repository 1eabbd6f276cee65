//! What ends many orders at once: mass cancels, lost sessions, kill switches, the roll of the day.
//!
//! One such event may cancel more orders than a venue's link has room for. So cancels are queued by venue, and the shard
//! takes them out as there is room, oldest first. They are sent whether or not the venue is up: its link keeps them.

use crate::exposure::{Claim, shared_units};
use crate::map::NIL;
use crate::order::PendingCancel;
use crate::report::{ForVenue, OrderStatus, Report, Sink};
use crate::state::Orders;
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecReport, ExecType, InstrumentId, MassCancel, OrderId, Price, Quantity,
    Reason, SessionId, Side, TimeInForce, Timestamp, TradingDay, VenueId,
};

/// Whose orders a kill switch stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillScope {
    /// Everybody's.
    Firm,
    /// One account's.
    Account(AccountId),
    /// One session's.
    Session(SessionId),
}

/// What a kill switch lets pass. Of several that concern an order the strictest holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Stop {
    /// Everything.
    Off = 0,
    /// Orders that can only make what the account holds of the instrument smaller, whatever else of it is open.
    ReduceOnly = 1,
    /// No new orders.
    All = 2,
}

impl Orders {
    /// Takes a client's mass cancel and gives the answer. The cancels follow by [`poll_cancel`](Self::poll_cancel).
    pub fn mass_cancel(&mut self, mass: &MassCancel) -> Report {
        match self.check_mass_cancel(mass) {
            Ok(session) => {
                self.version += 1;
                self.use_client_order_id(mass.session, mass.client_order_id);
                self.counters.mass_cancels += 1;
                self.queue_session(session, mass.instrument, Reason::MassCanceled);
                self.answer_mass_cancel(mass, ExecType::MassCancelAccepted, Reason::None)
            }
            Err(reason) => self.refuse_mass_cancel(mass, reason),
        }
    }

    /// Refuses a mass cancel; no order is touched.
    pub fn refuse_mass_cancel(&mut self, mass: &MassCancel, reason: Reason) -> Report {
        self.version += 1;
        self.use_client_order_id(mass.session, mass.client_order_id);
        self.counters.count_refusal(reason);
        self.answer_mass_cancel(mass, ExecType::RequestRejected, reason)
    }

    fn answer_mass_cancel(&mut self, mass: &MassCancel, exec_type: ExecType, reason: Reason) -> Report {
        let exec = ExecReport {
            exec_type,
            order_id: OrderId(0),
            client_order_id: mass.client_order_id,
            orig_client_order_id: ClientOrderId(0),
            exec_id: self.next_exec_id(),
            instrument: mass.instrument.unwrap_or_default(),
            account: AccountId(0),
            session: mass.session,
            // Says nothing here; the report has no value for "both".
            side: Side::Buy,
            price: Price::NULL,
            quantity: Quantity::ZERO,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: Quantity::ZERO,
            cumulative: Quantity::ZERO,
            reason,
        };
        self.sent(exec, 0, OrderStatus::Rejected)
    }

    /// The next cancel that waits for this venue; `None` when none waits. The caller asks as long as the link has room, and
    /// after every event that may queue some: a mass cancel, a lost session, a kill, a report of the venue.
    pub fn poll_cancel(&mut self, now: Timestamp, venue: VenueId) -> Option<ForVenue<CancelOrder>> {
        let slot = self.venues.get(usize::from(venue.0))?.cancels.first()?;
        let pending = self.table.order(slot).cancel?;
        self.version += 1;
        self.unqueue_cancel(slot);
        if pending.client_order_id == ClientOrderId(0) {
            self.counters.forced_cancels += 1;
        }
        Some(self.send_cancel(now, slot, pending))
    }

    /// Cancels that wait for this venue.
    #[must_use]
    pub fn cancels_waiting(&self, venue: VenueId) -> u32 {
        self.venues
            .get(usize::from(venue.0))
            .map_or(0, |venue| venue.cancels.length())
    }

    /// A client's session is lost: with cancel on disconnect its orders are cancelled.
    pub fn on_session_lost(&mut self, session: SessionId) {
        self.version += 1;
        if let Some(session) = self.session(session)
            && self.sessions[session as usize].cancel_on_disconnect
        {
            self.queue_session(session, None, Reason::Disconnected);
        }
    }

    /// Turns the kill switch on: no new orders in the scope, and its open ones are cancelled.
    ///
    /// # Errors
    /// [`Reason::UnknownAccount`] or [`Reason::WrongSession`]: there is none such.
    pub fn kill(&mut self, scope: KillScope) -> Result<(), Reason> {
        self.set_stop(scope, Stop::All)?;
        self.queue_scope(scope, Reason::Killed);
        Ok(())
    }

    /// As [`kill`](Self::kill), but new orders are taken that can only make smaller what their account holds. What it held
    /// before this day is not known here and does not count.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn let_reduce(&mut self, scope: KillScope) -> Result<(), Reason> {
        self.set_stop(scope, Stop::ReduceOnly)?;
        self.queue_scope(scope, Reason::ReduceOnly);
        Ok(())
    }

    /// Cancels the open orders of a scope. New ones are taken as before.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn cancel_all(&mut self, scope: KillScope) -> Result<(), Reason> {
        self.version += 1;
        self.check_scope(scope)?;
        self.queue_scope(scope, Reason::MassCanceled);
        Ok(())
    }

    /// Whether the kill switch of exactly this scope is on, and what it lets pass.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn stop(&self, scope: KillScope) -> Result<Stop, Reason> {
        match scope {
            KillScope::Firm => Ok(self.firm_stop),
            KillScope::Account(id) => {
                let account = self.any_account(id).ok_or(Reason::UnknownAccount)?;
                Ok(self.accounts[account].stop)
            }
            KillScope::Session(id) => {
                let session = self.session(id).ok_or(Reason::WrongSession)?;
                Ok(self.sessions[session as usize].stop)
            }
        }
    }

    /// Turns the kill switch of this scope off. Those of other scopes stay as they are.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn revive(&mut self, scope: KillScope) -> Result<(), Reason> {
        self.set_stop(scope, Stop::Off)
    }

    /// A trading day begins: the orders of the last one end, but for those that are good till they are cancelled or till a
    /// date that is still to come. The positions and what was used of shared limits start anew, and the numbers of clients
    /// behind those of the orders that live on. Kill switches stay. Nothing happens when it is the day already.
    pub fn on_day_roll<S: Sink>(&mut self, now: Timestamp, day: TradingDay, sink: &mut S) {
        self.version += 1;
        if day == self.day {
            return;
        }
        self.day = day;
        self.late.clear();
        for session in 0..self.sessions.len() {
            self.end_day_orders(session, now, sink);
        }
        for (id, session) in self.done.drain() {
            self.by_client_id.remove(id.0, session);
        }
        for account in &mut self.accounts {
            account.unsettled.notional -= core::mem::take(&mut account.exposure.used);
            account.unsettled -= core::mem::take(&mut account.exposure.stake);
        }
        for session in &mut self.sessions {
            session.unsettled.notional -= core::mem::take(&mut session.exposure.used);
        }
        for instrument in &mut self.instruments {
            instrument.together.new_day();
        }
        self.positions.begin_day();
        self.open_late_positions();
        self.own.clear();
        for session in 0..self.sessions.len() {
            let mut next = self.sessions[session].orders.first();
            while let Some(slot) = next {
                next = self.session_links.after(slot);
                self.carry_over(slot);
            }
        }
        for account in (0..).take(self.accounts.len()) {
            self.settle_account(account, sink);
        }
        for session in (0..).take(self.sessions.len()) {
            self.settle_session(session, sink);
        }
    }

    /// Ends the orders of a session that do not live on.
    fn end_day_orders<S: Sink>(&mut self, session: usize, now: Timestamp, sink: &mut S) {
        let mut last = ClientOrderId(0);
        let mut next = self.sessions[session].orders.first();
        while let Some(slot) = next {
            next = self.session_links.after(slot);
            let order = self.table.order(slot);
            match order.time_in_force {
                TimeInForce::GoodTillCancel => {}
                TimeInForce::GoodTillDate if order.terms.expires > now => {}
                time_in_force => {
                    let reason = match time_in_force {
                        TimeInForce::GoodTillDate => Reason::Expired,
                        _ => Reason::DayEnded,
                    };
                    if order.venue_number != 0 {
                        self.late.keep(slot, order, reason);
                    }
                    self.expire(slot, reason, sink);
                    continue;
                }
            }
            let replaced_by = order
                .replace
                .map_or(ClientOrderId(0), |replace| replace.client_order_id);
            let canceled_by = order.cancel.map_or(ClientOrderId(0), |cancel| cancel.client_order_id);
            last = last.max(order.client_order_id).max(replaced_by).max(canceled_by);
        }
        self.sessions[session].last_client_order_id = last;
    }

    /// Enters an order that lives on in the tables of the new day. What it traded before counts no more.
    fn carry_over(&mut self, slot: u32) {
        let order = self.table.order_mut(slot);
        order.used = 0;
        let order = *order;
        let position = self.positions.find(order.account, order.instrument);
        let exposure = self.positions.entry_mut(position);
        exposure.open_orders += 1;
        exposure.change(order.side, Claim::default(), order.claim);
        let account = &mut self.accounts[order.account as usize];
        account.restake(exposure);
        let book = match order.book {
            NIL => NIL,
            _ => {
                let owner = self.sessions[order.session as usize].owner;
                match self.own.find(owner, order.instrument) {
                    NIL => self.own.open(owner, order.instrument),
                    book => book,
                }
            }
        };
        if order.in_book {
            self.own.insert(book, order.side, order.own_price(), slot);
        }
        let held = shared_units(order.claim.notional).unwrap_or(order.held);
        self.release(order.places(), 0, order.held - held, 0);
        let order = self.table.order_mut(slot);
        (order.position, order.book, order.held) = (position, book, held);
    }

    /// Lets a cancel wait to be sent.
    pub(crate) fn queue_cancel(&mut self, slot: u32, cancel: PendingCancel) {
        let order = self.table.order_mut(slot);
        order.cancel = Some(PendingCancel {
            number: 0,
            aimed_at: 0,
            ..cancel
        });
        let list = if order.venue_number == 0 {
            &mut self.ending
        } else {
            &mut self.venues[usize::from(order.venue.0)].cancels
        };
        self.cancel_links.push_back(list, slot);
    }

    /// Takes the order's cancel out of the queue, when it waits there.
    pub(crate) fn unqueue_cancel(&mut self, slot: u32) {
        let order = self.table.order(slot);
        if order.cancel.is_some_and(|cancel| cancel.number == 0) {
            let list = if order.venue_number == 0 {
                &mut self.ending
            } else {
                &mut self.venues[usize::from(order.venue.0)].cancels
            };
            self.cancel_links.remove(list, slot);
        }
    }

    fn check_mass_cancel(&self, mass: &MassCancel) -> Result<u32, Reason> {
        let session = self.session(mass.session).ok_or(Reason::WrongSession)?;
        if mass.client_order_id <= self.sessions[session as usize].last_client_order_id {
            return Err(Reason::DuplicateClientOrderId);
        }
        match mass.instrument {
            Some(id) if self.instrument(id).is_none() => Err(Reason::UnknownInstrument),
            _ => Ok(session),
        }
    }

    /// Queues cancels for a session's orders, in one instrument or all.
    fn queue_session(&mut self, session: u32, instrument: Option<InstrumentId>, cause: Reason) {
        self.queue_list(session, cause, |order| {
            instrument.is_none_or(|id| order.instrument_id == id)
        });
    }

    /// Queues cancels for those of a session's orders that are `wanted` and not being cancelled already.
    fn queue_list(&mut self, session: u32, cause: Reason, wanted: impl Fn(&crate::order::Order) -> bool) {
        let mut next = self.sessions[session as usize].orders.first();
        while let Some(slot) = next {
            next = self.session_links.after(slot);
            let order = self.table.order_mut(slot);
            if !wanted(order) {
                continue;
            }
            match &mut order.cancel {
                None => self.queue_cancel(slot, PendingCancel::own(cause)),
                Some(pending) if pending.client_order_id != ClientOrderId(0) => pending.otherwise = cause,
                Some(_) => {}
            }
        }
    }

    fn queue_scope(&mut self, scope: KillScope, cause: Reason) {
        let account = match scope {
            KillScope::Account(id) => Some(id),
            KillScope::Firm | KillScope::Session(_) => None,
        };
        for session in (0..).take(self.sessions.len()) {
            if matches!(scope, KillScope::Session(id) if self.session(id) != Some(session)) {
                continue;
            }
            self.queue_list(session, cause, |order| account.is_none_or(|id| order.account_id == id));
        }
    }

    fn check_scope(&self, scope: KillScope) -> Result<(), Reason> {
        let (is_known, reason) = match scope {
            KillScope::Firm => (true, Reason::None),
            KillScope::Account(id) => (self.any_account(id).is_some(), Reason::UnknownAccount),
            KillScope::Session(id) => (self.session(id).is_some(), Reason::WrongSession),
        };
        if is_known { Ok(()) } else { Err(reason) }
    }

    fn set_stop(&mut self, scope: KillScope, stop: Stop) -> Result<(), Reason> {
        self.version += 1;
        match scope {
            KillScope::Firm => self.firm_stop = stop,
            KillScope::Account(id) => {
                let account = self.any_account(id).ok_or(Reason::UnknownAccount)?;
                self.accounts[account].stop = stop;
            }
            KillScope::Session(id) => {
                let session = self.session(id).ok_or(Reason::WrongSession)?;
                self.sessions[session as usize].stop = stop;
            }
        }
        Ok(())
    }
}
