//! How orders stand, for whoever asks. Nothing here changes an order or uses up a client's number.

use crate::order::Order;
use crate::report::{OrderStatus, Report, Sink};
use crate::state::{Named, Orders};
use types::{
    AccountId, ClientOrderId, ExecReport, ExecType, MassStatusRequest, OrderId, OrderStatusRequest, Price, Quantity,
    Reason, Side,
};

impl Orders {
    /// How an order stands: one that is open, or one that ended this day and is still known.
    pub fn status(&mut self, status: &OrderStatusRequest) -> Report {
        let named = match self.session(status.session) {
            Some(session) if status.client_order_id != ClientOrderId(0) => self.named(status.client_order_id, session),
            Some(session) => match self.numbers.slot(status.order_id.0) {
                Some(slot) if self.is_of(slot, status.order_id, session) => Named::Open(slot),
                _ => Named::Nothing,
            },
            None => Named::Nothing,
        };
        let (order, end) = match named {
            Named::Open(slot) => (*self.table.order(slot), None),
            Named::Done(done) => (done.order, Some(done.end)),
            Named::Nothing => return self.refuse_status(status, Reason::UnknownOrder),
        };
        if order.instrument_id != status.instrument || order.side != status.side {
            return self.refuse_status(status, Reason::UnknownOrder);
        }
        let mut report = self.stands(&order, status.request);
        if let Some(end) = end {
            report.exec.leaves = Quantity::ZERO;
            report.exec.reason = end.reason;
            report.status = end.status;
        }
        report
    }

    /// Open orders of a session, in one instrument or all.
    #[must_use]
    pub fn count_open(&self, mass: &MassStatusRequest) -> u32 {
        let Some(session) = self.session(mass.session) else {
            return 0;
        };
        let mut count = 0;
        let mut next = self.sessions[session as usize].orders.first();
        while let Some(slot) = next {
            next = self.session_links.after(slot);
            count += u32::from(is_wanted(self.table.order(slot), mass));
        }
        count
    }

    /// The open orders of which nothing is at a venue, and their open lots. Looks at every slot.
    pub fn open_here(&self) -> impl Iterator<Item = (OrderId, Quantity)> {
        let here = self.table.open().filter(|(_, order)| order.venue_number == 0);
        here.map(|(_, order)| (OrderId(order.number), order.leaves()))
    }

    /// How the open orders of a session stand, oldest first. Room for [`count_open`](Self::count_open) reports was seen
    /// before; [`end_mass_status`](Self::end_mass_status) follows.
    pub fn mass_status<S: Sink>(&mut self, mass: &MassStatusRequest, sink: &mut S) {
        let Some(session) = self.session(mass.session) else {
            return;
        };
        let mut next = self.sessions[session as usize].orders.first();
        while let Some(slot) = next {
            next = self.session_links.after(slot);
            let order = *self.table.order(slot);
            if is_wanted(&order, mass) {
                sink.report(&self.stands(&order, mass.request));
            }
        }
    }

    fn is_of(&self, slot: u32, order_id: OrderId, session: u32) -> bool {
        let order = self.table.order(slot);
        order.has_number(order_id.0) && order.session == session
    }

    fn stands(&mut self, order: &Order, request: u64) -> Report {
        let exec = ExecReport {
            orig_client_order_id: ClientOrderId(request),
            ..order.report(ExecType::Status, self.next_exec_id(), Reason::None)
        };
        self.sent(exec, order.traded, order.status())
    }

    /// Answers that an order cannot be told.
    pub fn refuse_status(&mut self, status: &OrderStatusRequest, reason: Reason) -> Report {
        let exec = ExecReport {
            exec_type: ExecType::Status,
            order_id: status.order_id,
            client_order_id: status.client_order_id,
            orig_client_order_id: ClientOrderId(status.request),
            exec_id: self.next_exec_id(),
            instrument: status.instrument,
            account: AccountId(0),
            session: status.session,
            side: status.side,
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

    /// Ends the answer to a mass status: so many orders were told, or none for this reason.
    pub fn end_mass_status(&mut self, mass: &MassStatusRequest, told: u32, reason: Reason) -> Report {
        let exec = ExecReport {
            exec_type: ExecType::StatusEnd,
            order_id: OrderId(0),
            client_order_id: ClientOrderId(mass.request),
            orig_client_order_id: ClientOrderId(mass.request),
            exec_id: self.next_exec_id(),
            instrument: mass.instrument.unwrap_or_default(),
            account: AccountId(0),
            session: mass.session,
            // Says nothing here; the report has no value for "both".
            side: Side::Buy,
            price: Price::NULL,
            quantity: Quantity(u64::from(told)),
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: Quantity::ZERO,
            cumulative: Quantity::ZERO,
            reason,
        };
        self.sent(exec, 0, OrderStatus::Rejected)
    }
}

fn is_wanted(order: &Order, mass: &MassStatusRequest) -> bool {
    mass.instrument
        .is_none_or(|instrument| order.instrument_id == instrument)
}
