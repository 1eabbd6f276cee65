//! What the matcher is asked to do.

use types::{OrderId, OrderType, Price, Quantity, Side, TimeInForce};

/// A book by its place in the matcher, from 0. The owner maps instruments to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct BookIndex(pub u32);

/// Whose an order is, for self-match prevention: an account, a group of them, a firm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct OwnerId(pub u32);

impl OwnerId {
    /// Nobody in particular: trades with everybody.
    pub const NONE: Self = Self(0);
}

/// What happens when an incoming order reaches one of its own owner.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SelfMatch {
    /// They trade.
    Allow,
    /// What is left of the incoming order is cancelled; what it traded before stands.
    #[default]
    CancelNewest,
}

/// A new order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// Its id: any number that no live order has.
    pub id: OrderId,
    /// Its book.
    pub book: BookIndex,
    /// Whose it is.
    pub owner: OwnerId,
    /// Buy or sell.
    pub side: Side,
    /// Limit or market. A market order never rests, whatever its time in force.
    pub order_type: OrderType,
    /// Whether what is left may rest.
    pub time_in_force: TimeInForce,
    /// Limit, 1e-9; not looked at for a market order.
    pub price: Price,
    /// Lots, from 1 to [`crate::MAX_QUANTITY`].
    pub quantity: Quantity,
}

/// What a replace does to the place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Kept when the price stays and the quantity falls; lost otherwise.
    KeptWhenReduced,
    /// Lost in any case (ITCH `U`).
    Lost,
}

/// A replace of a resting order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replace {
    /// The order.
    pub id: OrderId,
    /// The id it has from now on; may be the one it has.
    pub new_id: OrderId,
    /// New limit, 1e-9.
    pub price: Price,
    /// Lots that are open from now on, without what has traded.
    pub leaves: Quantity,
    /// What happens to its place.
    pub priority: Priority,
}

/// Part of a market that comes from outside and meets only some of the resting orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sweep {
    /// The book.
    pub book: BookIndex,
    /// Id that the trades name as the taker's.
    pub taker: OrderId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The taker's side.
    pub side: Side,
    /// Worst price to trade at, 1e-9.
    pub limit: Price,
    /// Lots to trade.
    pub quantity: Quantity,
    /// Stop before this resting order: only what is ahead of it trades.
    pub before: Option<OrderId>,
}
