//! Requests of clients, and what happens to their sessions. Every request gets exactly one first answer.

use super::client_orders::{ClientOrder, SessionIndex};
use super::desk::{Cause, Event};
use super::feed;
use super::market::{Market, Outputs};
use matcher::{BookIndex, OwnerId, Priority, Replace};
use proto::native::{self, Reject};
use types::{
    CancelOrder, ClientOrderId, ExecId, ExecReport, ExecType, InstrumentId, MassCancel, NewOrder, OrderId, OrderTerms,
    OrderType, Price, Quantity, Reason, ReplaceOrder, Request, SessionId, Side, TimeInForce, Timestamp, TradingDay,
};

impl Market {
    /// The market opens its doors, for the first time or after a restart: the feed tells what is traded.
    pub fn on_started(&mut self, now: Timestamp, out: &mut impl Outputs) {
        feed::directory(out, now, &self.desk.listing);
    }

    /// A message that came by a session's link. `admission` is what the owner says of the room for its answers.
    pub fn on_message(
        &mut self,
        now: Timestamp,
        session: SessionId,
        message: &[u8],
        admission: Reason,
        out: &mut impl Outputs,
    ) {
        match native::decode_request(message) {
            Ok(request) => self.on_request(now, session, &request, admission, out),
            Err(error) => {
                self.desk.counters.malformed += 1;
                out.reject(session, &Reject::new(message, error));
            }
        }
    }

    /// A request that came by a session's link.
    pub fn on_request(
        &mut self,
        now: Timestamp,
        session: SessionId,
        request: &Request,
        admission: Reason,
        out: &mut impl Outputs,
    ) {
        let Some(index) = self.desk.session(session) else {
            return;
        };
        self.desk.counters.requests += 1;
        let refusal = match (self.check_number(index, request), admission) {
            (Err(reason), _) => reason,
            (Ok(()), reason) => reason,
        };
        let mut work = Work {
            market: self,
            now,
            session: index,
            session_id: session,
            out,
        };
        if refusal != Reason::None {
            return work.refuse(request, refusal);
        }
        match request {
            Request::New(order) => work.on_new(order),
            Request::Cancel(cancel) => work.on_cancel(cancel),
            Request::Replace(replace) => work.on_replace(replace),
            Request::MassCancel(mass) => work.on_mass_cancel(mass),
            Request::Status(_) | Request::MassStatus(_) => work.refuse(request, Reason::UnsupportedOrder),
        }
    }

    /// Reports for its own session that a request may cause, but for those about the session's other orders.
    #[must_use]
    pub fn reports_needed(&self, request: &Request) -> usize {
        let (instrument, side, limit, quantity) = match request {
            Request::New(order) => {
                let limit = (order.order_type == OrderType::Limit).then_some(order.price);
                (order.instrument, order.side, limit, order.quantity)
            }
            Request::Replace(replace) => (replace.instrument, replace.side, Some(replace.price), replace.quantity),
            Request::Cancel(_) | Request::MassCancel(_) | Request::Status(_) | Request::MassStatus(_) => {
                return FIXED_REPORTS;
            }
        };
        let Some(book) = self.desk.listing.book(instrument) else {
            return FIXED_REPORTS;
        };
        let (mut reached, mut wanted) = (0, quantity);
        for level in self.matcher.levels(book, side.opposite()) {
            let is_reached = limit.is_none_or(|limit| match side {
                Side::Buy => level.price <= limit,
                Side::Sell => level.price >= limit,
            });
            if !is_reached || wanted.is_zero() {
                break;
            }
            // Each has a lot at least.
            reached += usize::try_from(wanted.0).map_or(level.orders as usize, |lots| lots.min(level.orders as usize));
            wanted = wanted.saturating_sub(level.quantity);
        }
        FIXED_REPORTS + reached
    }

    /// A session's link is down.
    pub fn on_session_down(&mut self, now: Timestamp, session: SessionId, out: &mut impl Outputs) {
        let Some(index) = self.desk.session(session) else {
            return;
        };
        if self.desk.session_mut(index).rules.cancel_on_disconnect {
            self.cancel_all(now, index, None, Reason::Disconnected, out);
        }
    }

    /// A session does not read its reports: while there is still room for that, its orders are cancelled.
    pub fn on_session_stalled(&mut self, now: Timestamp, session: SessionId, out: &mut impl Outputs) {
        if let Some(index) = self.desk.session(session) {
            self.cancel_all(now, index, None, Reason::ReportRingFull, out);
        }
    }

    /// A trading day begins: day orders expire, and the sessions' numbers start anew.
    pub fn on_day(&mut self, now: Timestamp, _day: TradingDay, out: &mut impl Outputs) {
        for place in 0..self.desk.sessions.len() {
            let index = SessionIndex(u16::try_from(place).expect("MAX_SESSIONS fits"));
            self.cancel_all(now, index, None, Reason::DayEnded, out);
            self.desk.session_mut(index).last = ClientOrderId(0);
        }
    }

    /// A session's numbers rise strictly within a day, refused requests included.
    fn check_number(&mut self, session: SessionIndex, request: &Request) -> Result<(), Reason> {
        let session = self.desk.session_mut(session);
        if request.session() != session.rules.id {
            return Err(Reason::WrongSession);
        }
        if request.client_order_id() <= session.last {
            return Err(Reason::DuplicateClientOrderId);
        }
        session.last = request.client_order_id();
        Ok(())
    }

    /// Cancels the live orders of a session, oldest first.
    fn cancel_all(
        &mut self,
        now: Timestamp,
        session: SessionIndex,
        instrument: Option<InstrumentId>,
        reason: Reason,
        out: &mut impl Outputs,
    ) {
        let cause = if reason == Reason::DayEnded {
            Cause::Expiry
        } else {
            Cause::Other
        };
        let mut next = self.desk.orders.first(session);
        while let Some(reference) = next {
            next = self.desk.orders.after(reference);
            let order = self.desk.orders.get(reference);
            if order.is_some_and(|order| instrument.is_none_or(|instrument| order.instrument == instrument)) {
                let mut event = Event {
                    now,
                    desk: &mut self.desk,
                    out,
                    cause,
                };
                self.matcher.cancel(reference, reason, &mut event);
            }
        }
    }
}

/// One request at work.
struct Work<'a, O> {
    market: &'a mut Market,
    now: Timestamp,
    session: SessionIndex,
    session_id: SessionId,
    out: &'a mut O,
}

impl<O: Outputs> Work<'_, O> {
    fn on_new(&mut self, order: &NewOrder) {
        let book = match self.check_new(order) {
            Ok(book) => book,
            Err(reason) => return self.refuse(&Request::New(*order), reason),
        };
        let record = ClientOrder {
            order_id: OrderId(0),
            reference: OrderId(0),
            first_client_order_id: order.client_order_id,
            client_order_id: order.client_order_id,
            session: self.session,
            session_id: self.session_id,
            book,
            instrument: order.instrument,
            account: order.account,
            side: order.side,
            price: order.price,
            quantity: order.quantity,
            cumulative: Quantity::ZERO,
            is_resting: false,
        };
        let Some(reference) = self.market.desk.orders.insert(record) else {
            return self.refuse(&Request::New(*order), Reason::BookFull);
        };
        let order = matcher::NewOrder {
            id: reference,
            book,
            owner: OwnerId(order.account.0),
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            price: order.price,
            quantity: order.quantity,
        };
        let Market { matcher, desk } = &mut *self.market;
        matcher.add(
            &order,
            &mut Event {
                now: self.now,
                desk,
                out: self.out,
                cause: Cause::Other,
            },
        );
    }

    fn on_cancel(&mut self, cancel: &CancelOrder) {
        match self.find(cancel.orig_client_order_id, cancel.instrument, cancel.side) {
            Err(reason) => self.refuse(&Request::Cancel(*cancel), reason),
            Ok(order) => {
                let Market { matcher, desk } = &mut *self.market;
                let cause = Cause::Cancel(cancel.client_order_id);
                let mut event = Event {
                    now: self.now,
                    desk,
                    out: self.out,
                    cause,
                };
                matcher.cancel(order.reference, Reason::Requested, &mut event);
            }
        }
    }

    fn on_replace(&mut self, replace: &ReplaceOrder) {
        let order = match self.check_replace(replace) {
            Ok(order) => order,
            Err(reason) => return self.refuse(&Request::Replace(*replace), reason),
        };
        if replace.quantity <= order.cumulative {
            return self.end_by_replace(replace, &order);
        }
        let leaves = replace.quantity - order.cumulative;
        // On the feed a smaller order keeps its reference (X); any other change is a new order.
        let keeps_priority = replace.price == order.price && leaves < order.leaves();
        let new_id = match keeps_priority {
            true => order.reference,
            false => self.market.desk.orders.another_reference(order.reference),
        };
        let Market { matcher, desk } = &mut *self.market;
        let mut event = Event {
            now: self.now,
            desk,
            out: self.out,
            cause: Cause::Replace(replace),
        };
        let replace = Replace {
            id: order.reference,
            new_id,
            price: replace.price,
            leaves,
            priority: Priority::KeptWhenReduced,
        };
        matcher.replace(&replace, &mut event);
    }

    /// The new total has traded already: the order is done.
    fn end_by_replace(&mut self, replace: &ReplaceOrder, order: &ClientOrder) {
        let Market { matcher, desk } = &mut *self.market;
        matcher.cancel(order.reference, Reason::Requested, &mut |_| {});
        feed::deleted(self.out, self.now, order.book, order.reference);
        desk.remove(order.reference);
        let done = ClientOrder {
            quantity: order.cumulative,
            price: replace.price,
            ..*order
        };
        let report = ExecReport {
            client_order_id: replace.client_order_id,
            orig_client_order_id: order.client_order_id,
            ..done.report(ExecType::Replaced, desk.next_exec_id(), Reason::None)
        };
        self.out.report(&report, OrderId(order.first_client_order_id.0));
    }

    fn on_mass_cancel(&mut self, mass: &MassCancel) {
        let exec_id = self.market.desk.next_exec_id();
        let accepted = ExecReport {
            instrument: mass.instrument.unwrap_or_default(),
            ..self.blank(ExecType::MassCancelAccepted, exec_id, mass.client_order_id)
        };
        self.out.report(&accepted, OrderId(0));
        self.market
            .cancel_all(self.now, self.session, mass.instrument, Reason::MassCanceled, self.out);
    }

    fn check_new(&self, order: &NewOrder) -> Result<BookIndex, Reason> {
        let listing = &self.market.desk.listing;
        let book = listing.book(order.instrument).ok_or(Reason::UnknownInstrument)?;
        if !listing.get(book).takes_quantity(order.quantity) {
            return Err(Reason::InvalidQuantity);
        }
        let is_supported = matches!(order.order_type, OrderType::Market | OrderType::Limit)
            && matches!(order.time_in_force, TimeInForce::Day | TimeInForce::ImmediateOrCancel)
            && order.terms == OrderTerms::NONE;
        if !is_supported {
            return Err(Reason::UnsupportedOrder);
        }
        if order.order_type == OrderType::Limit && !listing.get(book).takes_price(order.price) {
            return Err(Reason::InvalidPrice);
        }
        Ok(book)
    }

    fn check_replace(&self, replace: &ReplaceOrder) -> Result<ClientOrder, Reason> {
        let order = self.find(replace.orig_client_order_id, replace.instrument, replace.side)?;
        let listed = self.market.desk.listing.get(order.book);
        if !listed.takes_quantity(replace.quantity) {
            return Err(Reason::InvalidQuantity);
        }
        if replace.terms != OrderTerms::NONE {
            return Err(Reason::UnsupportedOrder);
        }
        if !listed.takes_price(replace.price) {
            return Err(Reason::InvalidPrice);
        }
        Ok(order)
    }

    /// The live order that a cancel or replace means.
    fn find(&self, id: ClientOrderId, instrument: InstrumentId, side: Side) -> Result<ClientOrder, Reason> {
        let desk = &self.market.desk;
        match desk.orders.by_client_id(self.session, id) {
            Some(order) if order.instrument == instrument && order.side == side => Ok(*order),
            Some(_) => Err(Reason::UnknownOrder),
            // Numbers rise: one that was passed belonged to an order that is done, or to nothing that counts.
            None if id <= desk.sessions[usize::from(self.session.0)].last => Err(Reason::TooLate),
            None => Err(Reason::UnknownOrder),
        }
    }

    fn refuse(&mut self, request: &Request, reason: Reason) {
        let desk = &mut self.market.desk;
        desk.count_reason(reason);
        let exec_id = desk.next_exec_id();
        let (report, number) = match request {
            Request::New(order) => {
                let report = ExecReport {
                    instrument: order.instrument,
                    account: order.account,
                    side: order.side,
                    price: order.price,
                    quantity: order.quantity,
                    ..self.blank(ExecType::Rejected, exec_id, order.client_order_id)
                };
                (report, OrderId(order.client_order_id.0))
            }
            Request::Cancel(CancelOrder {
                orig_client_order_id,
                instrument,
                side,
                ..
            })
            | Request::Replace(ReplaceOrder {
                orig_client_order_id,
                instrument,
                side,
                ..
            }) => self.request_rejected(
                exec_id,
                request.client_order_id(),
                *orig_client_order_id,
                *instrument,
                *side,
            ),
            Request::MassCancel(_) | Request::Status(_) | Request::MassStatus(_) => (
                self.blank(ExecType::RequestRejected, exec_id, request.client_order_id()),
                OrderId(0),
            ),
        };
        self.out.report(&ExecReport { reason, ..report }, number);
    }

    /// The order stays as it is, if there is one.
    fn request_rejected(
        &self,
        exec_id: ExecId,
        number: ClientOrderId,
        orig: ClientOrderId,
        instrument: InstrumentId,
        side: Side,
    ) -> (ExecReport, OrderId) {
        let answer = |report: ExecReport| ExecReport {
            client_order_id: number,
            orig_client_order_id: orig,
            ..report
        };
        match self.market.desk.orders.by_client_id(self.session, orig) {
            Some(order) => {
                let report = order.report(ExecType::RequestRejected, exec_id, Reason::None);
                (answer(report), OrderId(order.first_client_order_id.0))
            }
            None => {
                let blank = self.blank(ExecType::RequestRejected, exec_id, number);
                (
                    answer(ExecReport {
                        instrument,
                        side,
                        ..blank
                    }),
                    OrderId(0),
                )
            }
        }
    }

    /// A report about no order.
    fn blank(&self, exec_type: ExecType, exec_id: ExecId, client_order_id: ClientOrderId) -> ExecReport {
        ExecReport {
            exec_type,
            order_id: OrderId(0),
            client_order_id,
            orig_client_order_id: ClientOrderId(0),
            exec_id,
            instrument: InstrumentId(0),
            account: types::AccountId(0),
            session: self.session_id,
            side: Side::Buy,
            price: Price::NULL,
            quantity: Quantity::ZERO,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: Quantity::ZERO,
            cumulative: Quantity::ZERO,
            reason: Reason::None,
        }
    }
}

/// A first answer, and the cancel of what may not rest.
const FIXED_REPORTS: usize = 2;
