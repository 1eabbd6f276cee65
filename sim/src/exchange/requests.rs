//! Requests of clients, and what happens to their sessions. Every request gets exactly one first answer.

use super::client_orders::{ClientOrder, SessionIndex};
use super::desk::{Cause, Event};
use super::feed;
use super::market::{Market, Outputs};
use matcher::{BookIndex, OwnerId, Priority, Replace};
use proto::native::{self, Reject};
use types::{
    CancelOrder, ClientOrderId, ExecId, ExecReport, ExecType, InstrumentId, MassCancel, NewOrder, OrderId, OrderTerms,
    OrderType, Price, Quantity, Reason, ReplaceOrder, Request, SessionId, Side, Timestamp,
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

    /// Cancels the live orders of a session, oldest first, and then lets those follow who follow others.
    pub(super) fn cancel_all(
        &mut self,
        now: Timestamp,
        session: SessionIndex,
        instrument: Option<InstrumentId>,
        reason: Reason,
        out: &mut impl Outputs,
    ) {
        let is_chosen = |order: &ClientOrder| instrument.is_none_or(|instrument| order.instrument == instrument);
        self.remove_where(now, session, is_chosen, reason, out);
        self.settle_all(now, out);
    }

    /// Cancels those of a session's live orders that `chosen` takes, oldest first.
    pub(super) fn remove_where(
        &mut self,
        now: Timestamp,
        session: SessionIndex,
        chosen: impl Fn(&ClientOrder) -> bool,
        reason: Reason,
        out: &mut impl Outputs,
    ) {
        let mut next = self.desk.orders.first(session);
        while let Some(reference) = next {
            next = self.desk.orders.after(reference);
            if self.desk.orders.get(reference).is_some_and(&chosen) {
                let mut event = Event {
                    now,
                    desk: &mut self.desk,
                    out,
                    cause: Cause::Other,
                };
                self.matcher.remove(reference, reason, &mut event);
            }
        }
    }

    /// Stops and pegged orders follow what happened in parts.
    pub(super) fn settle_all(&mut self, now: Timestamp, out: &mut impl Outputs) {
        // None waits for another's doing.
        if self.desk.orders.extra().entries == 0 {
            return;
        }
        for book in self.desk.listing.books() {
            if self.matcher.is_watched(book) {
                let mut event = Event {
                    now,
                    desk: &mut self.desk,
                    out,
                    cause: Cause::Other,
                };
                self.matcher.settle(book, &mut event);
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
        if self
            .market
            .desk
            .orders
            .by_client_id(self.session, order.client_order_id)
            .is_some()
        {
            // Of a day that is over: it is good till later.
            return self.refuse(&Request::New(*order), Reason::DuplicateClientOrderId);
        }
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
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            terms: order.terms,
            price: order.price,
            quantity: order.quantity,
            cumulative: Quantity::ZERO,
            is_resting: false,
            shown: Quantity::ZERO,
            is_triggered: false,
        };
        let Some(reference) = self.market.desk.orders.insert(record) else {
            return self.refuse(&Request::New(*order), Reason::BookFull);
        };
        let terms = order.terms;
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
        let mut event = Event {
            now: self.now,
            desk,
            out: self.out,
            cause: Cause::Other,
        };
        if terms == OrderTerms::NONE {
            matcher.add(&order, &mut event);
        } else {
            matcher.add_with_terms(&order, &terms, &mut event);
        }
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
        let terms = order.terms_of(replace);
        let same = |terms: &OrderTerms| (terms.display, terms.stop_price, terms.peg_offset);
        // On the feed a smaller order keeps its reference (X); any other change is a new order.
        let keeps_priority =
            replace.price == order.price && leaves < order.leaves() && same(&terms) == same(&order.terms);
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
        matcher.replace_with_terms(&replace, &terms, &mut event);
    }

    /// The new total has traded already: the order is done.
    fn end_by_replace(&mut self, replace: &ReplaceOrder, order: &ClientOrder) {
        let Market { matcher, desk } = &mut *self.market;
        matcher.remove(order.reference, Reason::Requested, &mut |_| {});
        if order.is_resting {
            feed::deleted(self.out, self.now, order.book, order.reference);
        }
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
        let mut event = Event {
            now: self.now,
            desk,
            out: self.out,
            cause: Cause::Other,
        };
        matcher.settle(order.book, &mut event);
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
        self.check_form(book, order.order_type, order.price, order.quantity, &order.terms)?;
        Ok(book)
    }

    fn check_replace(&self, replace: &ReplaceOrder) -> Result<ClientOrder, Reason> {
        let order = self.find(replace.orig_client_order_id, replace.instrument, replace.side)?;
        let number = replace.client_order_id;
        if self.market.desk.orders.by_client_id(self.session, number).is_some() {
            return Err(Reason::DuplicateClientOrderId);
        }
        let terms = order.terms_of(replace);
        self.check_form(order.book, order.order_type, replace.price, replace.quantity, &terms)?;
        let leaves = replace.quantity.saturating_sub(order.cumulative);
        let changed = ClientOrder {
            quantity: order.cumulative + leaves,
            terms,
            ..order
        };
        let orders = &self.market.desk.orders;
        if !orders.has_room_for(changed.extra(), orders.counted(order.reference)) {
            return Err(Reason::BookFull);
        }
        Ok(order)
    }

    /// What the market and its feed can take; what goes together, the matcher knows.
    fn check_form(
        &self,
        book: BookIndex,
        order_type: OrderType,
        price: Price,
        quantity: Quantity,
        terms: &OrderTerms,
    ) -> Result<(), Reason> {
        let listed = self.market.desk.listing.get(book);
        if !listed.takes_quantity(quantity) {
            return Err(Reason::InvalidQuantity);
        }
        let needs_price = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
        let may_have_price = needs_price || order_type.is_pegged();
        if (needs_price || may_have_price && !price.is_null()) && !listed.takes_price(price) {
            return Err(Reason::InvalidPrice);
        }
        if !terms.stop_price.is_null() && !listed.takes_price(terms.stop_price) {
            return Err(Reason::InvalidStopPrice);
        }
        if !terms.peg_offset.is_multiple_of(listed.tick_size) {
            return Err(Reason::InvalidPegOffset);
        }
        if terms.display > quantity {
            return Err(Reason::InvalidDisplay);
        }
        if terms.expires != Timestamp::NONE && terms.expires <= self.now {
            return Err(Reason::InvalidExpiry);
        }
        Ok(())
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
