//! Requests of a client, decoded: what left the session is one of these, and nobody checks its form again.

use crate::ids::{AccountId, ClientOrderId, InstrumentId, OrderId, SessionId, Trigger};
use crate::price::Price;
use crate::quantity::Quantity;
use crate::time::Timestamp;

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
    /// A market order once the market has traded at its stop price or beyond (FIX 40=3).
    Stop = 3,
    /// A limit order once the market has traded at its stop price or beyond (FIX 40=4).
    StopLimit = 4,
    /// Follows the best price of its own side, never past its limit (FIX 40=P, 18=R).
    PegPrimary = 5,
    /// Follows the middle of the best prices, never past its limit (FIX 40=P, 18=M).
    PegMid = 6,
}

/// How long an order lives. The numbers are FIX's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum TimeInForce {
    /// Until the end of the trading day (FIX 59=0).
    Day = 0,
    /// Until it is cancelled, over the ends of days (FIX 59=1).
    GoodTillCancel = 1,
    /// Trades in the opening auction or is cancelled (FIX 59=2).
    AtTheOpening = 2,
    /// What cannot trade at once is cancelled (FIX 59=3).
    ImmediateOrCancel = 3,
    /// Trades in full at once, or is cancelled without a trade (FIX 59=4).
    FillOrKill = 4,
    /// Until [`OrderTerms::expires`] (FIX 59=6).
    GoodTillDate = 6,
    /// Trades in the closing auction or is cancelled (FIX 59=7).
    AtTheClose = 7,
}

/// What an order may ask for beyond price, quantity and time in force.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OrderTerms {
    /// Stop orders: the trade price that triggers them, 1e-9. Else [`Price::NULL`].
    pub stop_price: Price,
    /// Lots shown at a time (FIX 111, 210, 1138); 0: all.
    pub display: Quantity,
    /// Fewest lots that it trades as it comes in; if it cannot, it is cancelled and trades nothing (FIX 110). 0: any.
    pub min_quantity: Quantity,
    /// Pegged orders: what is added to the price that is followed, 1e-9 (FIX 211). Else 0.
    pub peg_offset: Price,
    /// Good till date: when it ends (FIX 126, 432). Else [`Timestamp::NONE`].
    pub expires: Timestamp,
    /// It must rest first: refused when it would trade at once (FIX 18=6).
    pub post_only: bool,
    /// Whether a sell is of what the seller does not own.
    pub short_sale: ShortSale,
    /// Short sales: the seller has located what it will borrow (FIX 114=N). Else false.
    pub located: bool,
}

/// Whether a sell is a short sale.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ShortSale {
    /// The seller owns what it sells.
    No = 0,
    /// A short sale (FIX 54=5).
    Short = 1,
    /// A short sale that is exempt from rules on its price (FIX 54=6).
    Exempt = 2,
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
    /// What it trades at.
    pub order_type: OrderType,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Limit, 1e-9; [`Price::NULL`] for market and stop orders, and for pegged ones without a limit.
    pub price: Price,
    /// Lots, more than zero.
    pub quantity: Quantity,
    /// The tick that caused it.
    pub trigger: Trigger,
    /// What else it asks for.
    pub terms: OrderTerms,
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

/// Give an order a new price, total quantity and terms.
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
    /// New limit, 1e-9; [`Price::NULL`] when the order has none.
    pub price: Price,
    /// New total, lots, what is filled included; more than zero.
    pub quantity: Quantity,
    /// New terms, all of them: what is to stay is said again.
    pub terms: OrderTerms,
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

/// Ask how one order stands. It changes nothing and uses up no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderStatusRequest {
    /// The order's number: of the order, or of its last accepted replace; 0 when it is asked for by `order_id` alone.
    pub client_order_id: ClientOrderId,
    /// The gateway's number for the order; 0 when it is asked for by the client's.
    pub order_id: OrderId,
    /// The order's instrument.
    pub instrument: InstrumentId,
    /// The session it came in by.
    pub session: SessionId,
    /// The order's side.
    pub side: Side,
    /// The client's number for this request; the answer has it as its original client order id. 0: none.
    pub request: u64,
}

/// Ask how all open orders of a session stand, or those of one instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MassStatusRequest {
    /// The session whose orders are told.
    pub session: SessionId,
    /// Only this instrument; `None` for all.
    pub instrument: Option<InstrumentId>,
    /// The client's number for this request; the answers have it as their original client order id. 0: none.
    pub request: u64,
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
    /// How one order stands.
    Status(OrderStatusRequest),
    /// How many orders stand.
    MassStatus(MassStatusRequest),
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
            3 => Some(Self::Stop),
            4 => Some(Self::StopLimit),
            5 => Some(Self::PegPrimary),
            6 => Some(Self::PegMid),
            _ => None,
        }
    }

    /// Whether it waits for its stop price before it trades.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::StopLimit)
    }

    /// Whether its price follows the market's.
    #[must_use]
    pub const fn is_pegged(self) -> bool {
        matches!(self, Self::PegPrimary | Self::PegMid)
    }
}

impl TimeInForce {
    /// From its number on wires.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Day),
            1 => Some(Self::GoodTillCancel),
            2 => Some(Self::AtTheOpening),
            3 => Some(Self::ImmediateOrCancel),
            4 => Some(Self::FillOrKill),
            6 => Some(Self::GoodTillDate),
            7 => Some(Self::AtTheClose),
            _ => None,
        }
    }

    /// Whether what cannot trade at once is cancelled.
    #[must_use]
    pub const fn is_immediate(self) -> bool {
        matches!(self, Self::ImmediateOrCancel | Self::FillOrKill)
    }
}

impl OrderTerms {
    /// Nothing beyond price, quantity and time in force.
    pub const NONE: Self = Self {
        stop_price: Price::NULL,
        display: Quantity::ZERO,
        min_quantity: Quantity::ZERO,
        peg_offset: Price(0),
        expires: Timestamp::NONE,
        post_only: false,
        short_sale: ShortSale::No,
        located: false,
    };
}

impl Default for OrderTerms {
    fn default() -> Self {
        Self::NONE
    }
}

impl Request {
    /// The client's number that the request uses up; 0 for one that only asks.
    #[must_use]
    pub const fn client_order_id(&self) -> ClientOrderId {
        match self {
            Self::New(order) => order.client_order_id,
            Self::Cancel(cancel) => cancel.client_order_id,
            Self::Replace(replace) => replace.client_order_id,
            Self::MassCancel(mass) => mass.client_order_id,
            Self::Status(_) | Self::MassStatus(_) => ClientOrderId(0),
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
            Self::Status(status) => status.session,
            Self::MassStatus(mass) => mass.session,
        }
    }
}
