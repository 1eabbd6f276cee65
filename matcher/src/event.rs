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

/// What happens when an incoming order reaches one of its own owner, in continuous trading. What both traded before stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SelfMatch {
    /// They trade.
    Allow,
    /// What is left of the incoming order is cancelled.
    #[default]
    CancelNewest,
    /// The resting order is cancelled, and the incoming one goes on.
    CancelOldest,
    /// Both are cancelled.
    CancelBoth,
    /// Both lose what they would have traded, and the larger one goes on.
    Decrement,
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
    /// What it trades at. A market order never rests, whatever its time in force.
    pub order_type: OrderType,
    /// How long it lives. The matcher has no days: a day order stays until its owner cancels it.
    pub time_in_force: TimeInForce,
    /// Limit, 1e-9. Not looked at for market and stop orders; may be null for pegged ones.
    pub price: Price,
    /// Lots, from 1 to [`crate::MAX_QUANTITY`].
    pub quantity: Quantity,
}

/// What a replace does to the place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Kept when the quantity falls and all else stays; lost otherwise.
    KeptWhenReduced,
    /// Lost in any case (ITCH `U`).
    Lost,
}

/// A replace of a live order.
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

/// An auction of the trading day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auction {
    /// Takes in the orders at the opening.
    Opening,
    /// Takes in the orders at the close.
    Closing,
}

/// The prices that a pegged order may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PegRules {
    /// They are multiples of this, 1e-9, more than zero. Bids are rounded down, offers up.
    pub tick: Price,
    /// The lowest. An order that would be below waits outside of the book.
    pub lowest: Price,
    /// The highest.
    pub highest: Price,
}

impl PegRules {
    /// Any price.
    pub const ANY: Self = Self {
        tick: Price(1),
        lowest: Price(i64::MIN + 1),
        highest: Price(i64::MAX),
    };
}
