//! Execution reports: what became of an order, or of a request.

use crate::ids::{AccountId, ClientOrderId, ExecId, InstrumentId, OrderId, SessionId};
use crate::order::Side;
use crate::price::Price;
use crate::quantity::Quantity;
use crate::reason::Reason;

/// What a report tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ExecType {
    /// The order was accepted (FIX 150=0).
    New = 1,
    /// It traded, in part or in full (FIX 150=F).
    Fill = 2,
    /// It was cancelled; `reason` says why (FIX 150=4).
    Canceled = 3,
    /// It was replaced (FIX 150=5).
    Replaced = 4,
    /// The new order was refused; `reason` says why (FIX 150=8).
    Rejected = 5,
    /// Its day ended (FIX 150=C).
    Expired = 6,
    /// A cancel or replace was refused and the order stays as it was; `reason` says why (FIX 35=9).
    RequestRejected = 7,
    /// A mass cancel was taken; the cancels follow one by one (FIX 35=r).
    MassCancelAccepted = 8,
    /// The stop price of the order was met: from here on it is a market or limit order (FIX 150=L).
    Triggered = 9,
    /// How the order stands, because somebody asked; nothing happened (FIX 150=I).
    Status = 10,
    /// All orders of a mass status were told: `quantity` is how many. In FIX it is the last of them that says so (912).
    StatusEnd = 11,
    /// Its venue made it smaller by itself: `quantity` is the new total, `reason` says why (FIX 150=D).
    Restated = 12,
}

/// One report, in the terms of whoever receives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecReport {
    /// What happened.
    pub exec_type: ExecType,
    /// The sender's number for the order; stays through replaces.
    pub order_id: OrderId,
    /// The receiver's number: of the order (Fill, Expired, unsolicited Canceled, New, Rejected), or of the request that is
    /// answered (Replaced, Canceled on request, RequestRejected).
    pub client_order_id: ClientOrderId,
    /// Of an answered cancel or replace: the number the order had. Else 0.
    pub orig_client_order_id: ClientOrderId,
    /// The report's number, unique within its sender and day.
    pub exec_id: ExecId,
    /// The order's instrument.
    pub instrument: InstrumentId,
    /// The order's account.
    pub account: AccountId,
    /// The receiver's session.
    pub session: SessionId,
    /// The order's side.
    pub side: Side,
    /// The order's limit, 1e-9; [`Price::NULL`] for a market order.
    pub price: Price,
    /// The order's total, lots.
    pub quantity: Quantity,
    /// Fill: the trade's price, 1e-9. Else [`Price::NULL`].
    pub last_price: Price,
    /// Fill: lots traded. Else 0.
    pub last_quantity: Quantity,
    /// Lots still open; 0 once the order is dead.
    pub leaves: Quantity,
    /// Lots traded so far.
    pub cumulative: Quantity,
    /// Why, for refusals and cancels; [`Reason::None`] else.
    pub reason: Reason,
}

impl ExecType {
    /// From its number on wires.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::New,
            2 => Self::Fill,
            3 => Self::Canceled,
            4 => Self::Replaced,
            5 => Self::Rejected,
            6 => Self::Expired,
            7 => Self::RequestRejected,
            8 => Self::MassCancelAccepted,
            9 => Self::Triggered,
            10 => Self::Status,
            11 => Self::StatusEnd,
            12 => Self::Restated,
            _ => return None,
        })
    }
}

impl ExecReport {
    /// Whether the order is dead after this report.
    #[must_use]
    pub const fn ends_order(&self) -> bool {
        match self.exec_type {
            ExecType::Canceled | ExecType::Rejected | ExecType::Expired => true,
            ExecType::Fill | ExecType::Replaced => self.leaves.is_zero(),
            ExecType::New
            | ExecType::RequestRejected
            | ExecType::MassCancelAccepted
            | ExecType::Triggered
            | ExecType::Status
            | ExecType::StatusEnd
            | ExecType::Restated => false,
        }
    }
}
