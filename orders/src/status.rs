//! How orders stand, for whoever asks. Nothing here changes an order or uses up a client's number.

use crate::report::Report;
use crate::state::Orders;
use types::{
    AccountId, ClientOrderId, ExecReport, ExecType, MassStatusRequest, OrderStatusRequest, Price, Quantity, Reason,
    Side,
};

impl Orders {
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
        self.sent(exec, 0)
    }

    /// Ends the answer to a mass status: so many orders were told, or none for this reason.
    pub fn end_mass_status(&mut self, mass: &MassStatusRequest, told: u32, reason: Reason) -> Report {
        let exec = ExecReport {
            exec_type: ExecType::StatusEnd,
            order_id: types::OrderId(0),
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
        self.sent(exec, 0)
    }
}
