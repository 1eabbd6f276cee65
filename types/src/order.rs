//! Requests of a client, decoded: what left the session is one of these, and nobody checks its form again.

use crate::ids::{AccountId, ClientOrderId, InstrumentId, SessionId, Trigger};
use crate::price::Price;
use crate::quantity::Quantity;

/// Side of an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Side {
    /// Buy (FIX 54=1).
    Buy = 1,
    /// Sell (FIX 54=2).
    Sell = 2,
}

/// Type of an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum OrderType {
    /// At any price (FIX 40=1). What cannot trade at once is cancelled.
    Market = 1,
    /// At its price or better (FIX 40=2).
    Limit = 2,
}

/// How long an order lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum TimeInForce {
    /// Until the end of the trading day (FIX 59=0).
    Day = 0,
    /// What cannot trade at once is cancelled (FIX 59=3).
    ImmediateOrCancel = 3,
}

/// A new order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// The client's number for it.
    pub client_order_id: ClientOrderId,
    /// What to trade.
    pub instrument: InstrumentId,
    /// For whom.
    pub account: AccountId,
    /// The session it came in by.
    pub session: SessionId,
    /// Buy or sell.
    pub side: Side,
    /// Limit or market.
    pub order_type: OrderType,
    /// Day or immediate-or-cancel.
    pub time_in_force: TimeInForce,
    /// Limit, 1e-9; [`Price::NULL`] for a market order.
    pub price: Price,
    /// Lots, more than zero.
    pub quantity: Quantity,
    /// The tick that caused it.
    pub trigger: Trigger,
}

/// Cancel one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CancelOrder {
    /// The client's number for this request.
    pub client_order_id: ClientOrderId,
    /// The order's number: of the order, or of its last accepted replace.
    pub orig_client_order_id: ClientOrderId,
    /// The order's instrument.
    pub instrument: InstrumentId,
    /// The session it came in by.
    pub session: SessionId,
    /// The order's side.
    pub side: Side,
}

/// Give an order a new price and total quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplaceOrder {
    /// The client's number for this request, and for the order when it is accepted.
    pub client_order_id: ClientOrderId,
    /// The order's number: of the order, or of its last accepted replace.
    pub orig_client_order_id: ClientOrderId,
    /// The order's instrument.
    pub instrument: InstrumentId,
    /// The session it came in by.
    pub session: SessionId,
    /// The order's side.
    pub side: Side,
    /// New limit, 1e-9.
    pub price: Price,
    /// New total, lots, what is filled included; more than zero.
    pub quantity: Quantity,
}

/// Cancel all orders of a session, or those of one instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MassCancel {
    /// The client's number for this request.
    pub client_order_id: ClientOrderId,
    /// The session whose orders are cancelled.
    pub session: SessionId,
    /// Only this instrument; `None` for all.
    pub instrument: Option<InstrumentId>,
}

/// Whatever a client may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// A new order.
    New(NewOrder),
    /// Cancel one order.
    Cancel(CancelOrder),
    /// Replace one order.
    Replace(ReplaceOrder),
    /// Cancel many orders.
    MassCancel(MassCancel),
}

impl Side {
    /// The other side.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }

    /// From its number on wires.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            1 => Some(Self::Buy),
            2 => Some(Self::Sell),
            _ => None,
        }
    }
}

impl OrderType {
    /// From its number on wires.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            1 => Some(Self::Market),
            2 => Some(Self::Limit),
            _ => None,
        }
    }
}

impl TimeInForce {
    /// From its number on wires.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Day),
            3 => Some(Self::ImmediateOrCancel),
            _ => None,
        }
    }
}

impl Request {
    /// The client's number for the request.
    #[must_use]
    pub const fn client_order_id(&self) -> ClientOrderId {
        match self {
            Self::New(order) => order.client_order_id,
            Self::Cancel(cancel) => cancel.client_order_id,
            Self::Replace(replace) => replace.client_order_id,
            Self::MassCancel(mass) => mass.client_order_id,
        }
    }

    /// The session it came in by.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        match self {
            Self::New(order) => order.session,
            Self::Cancel(cancel) => cancel.session,
            Self::Replace(replace) => replace.session,
            Self::MassCancel(mass) => mass.session,
        }
    }
}
