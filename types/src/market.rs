//! What a feed tells of an instrument's market.

use crate::price::Price;
use crate::quantity::Quantity;
use crate::time::Timestamp;

/// One side of the best bid and offer. A quantity of zero means that the side is empty.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Quote {
    /// Best price, 1e-9; meaningless when the side is empty.
    pub price: Price,
    /// Lots shown at it.
    pub quantity: Quantity,
}

/// Best bid and offer, and the last trade.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bbo {
    /// Highest bid.
    pub bid: Quote,
    /// Lowest offer.
    pub ask: Quote,
    /// Price of the last trade, 1e-9; [`Price::NULL`] or 0 when there was none.
    pub last: Price,
    /// When the feed said so, by the gateway's clock.
    pub time: Timestamp,
}

/// A trading day, as `yyyymmdd`. Numbers and daily limits start anew with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TradingDay(pub u32);
