//! What few orders have and most do without: the terms of stops, icebergs, pegs, auction orders and those with an expiry.
//!
//! They are in a pool of their own, so that a plain order stays half a cache line and its events never look here.

use crate::event::{NewOrder, PegRules};
use crate::ladder::Ladder;
use crate::pool::NONE;
use types::{OrderTerms, OrderType, Price, Reason, TimeInForce};

/// The terms of one live order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) asked: OrderTerms,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    /// Its limit, 1e-9. Its level has another price where it is pegged or out of the book.
    pub(crate) limit: Price,
    /// Lots beside those in the order itself: what an iceberg does not show.
    pub(crate) hidden: u64,
    /// The order.
    pub(crate) slot: u32,
    /// Its place in the heap of expiries, or [`NONE`].
    pub(crate) expiry: u32,
    /// The pegged orders of its book before and behind it, or [`NONE`].
    pub(crate) peg_prev: u32,
    pub(crate) peg_next: u32,
}

impl Terms {
    pub(crate) const BLANK: Self = Self {
        asked: OrderTerms::NONE,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        limit: Price::NULL,
        hidden: 0,
        slot: NONE,
        expiry: NONE,
        peg_prev: NONE,
        peg_next: NONE,
    };

    pub(crate) const fn new(order: &NewOrder, asked: &OrderTerms) -> Self {
        Self {
            asked: *asked,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            limit: order.price,
            ..Self::BLANK
        }
    }
}

/// What a book has beside its prices: orders out of the book, and those whose price is not their own.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    pub(crate) stops: [Ladder; 2],
    pub(crate) held: [Ladder; 2],
    /// The pegged orders, in the order of their coming.
    pub(crate) peg_head: u32,
    pub(crate) peg_tail: u32,
    /// Orders with a display quantity.
    pub(crate) icebergs: u32,
    /// Orders for an auction.
    pub(crate) auction_orders: u32,
    /// Lowest and highest price of the trades that stops have not been held against.
    pub(crate) traded: Option<(Price, Price)>,
    pub(crate) peg_rules: PegRules,
}

impl Aside {
    pub(crate) const EMPTY: Self = Self {
        stops: [Ladder::EMPTY; 2],
        held: [Ladder::EMPTY; 2],
        peg_head: NONE,
        peg_tail: NONE,
        icebergs: 0,
        auction_orders: 0,
        traded: None,
        peg_rules: PegRules::ANY,
    };

    /// Whether events of the book can cause more.
    pub(crate) fn is_watched(&self) -> bool {
        self.peg_head != NONE || self.stops.iter().any(|ladder| ladder.best().is_some())
    }

    /// There were trades at these prices.
    pub(crate) fn note_trades(&mut self, first: Price, last: Price) {
        let (low, high) = self.traded.unwrap_or((first, first));
        self.traded = Some((low.min(first).min(last), high.max(first).max(last)));
    }
}

/// Whether an order has something that must be kept beside it while it lives.
pub(crate) const fn has_terms(order: &NewOrder, terms: &OrderTerms) -> bool {
    terms.display.0 > 0
        || is_for_auction(order.time_in_force)
        || matches!(order.time_in_force, TimeInForce::GoodTillDate)
        || !matches!(order.order_type, OrderType::Limit)
}

pub(crate) const fn is_for_auction(time_in_force: TimeInForce) -> bool {
    matches!(time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose)
}

/// Whether the parts of an order go together. `Err` says which does not.
pub(crate) fn check(order: &NewOrder, terms: &OrderTerms) -> Result<(), Reason> {
    let (order_type, time_in_force) = (order.order_type, order.time_in_force);
    let may_rest = !matches!(order_type, OrderType::Market | OrderType::Stop) && !time_in_force.is_immediate();
    let is_plain = matches!(order_type, OrderType::Limit | OrderType::Market);
    let is_for_auction = is_for_auction(time_in_force);
    if matches!(order_type, OrderType::Limit | OrderType::StopLimit) && order.price.is_null() {
        return Err(Reason::InvalidPrice);
    }
    if order_type.is_stop() == terms.stop_price.is_null() {
        return Err(Reason::InvalidStopPrice);
    }
    if terms.peg_offset.0 != 0 && !order_type.is_pegged() {
        return Err(Reason::InvalidPegOffset);
    }
    if order_type.is_pegged() && !may_rest {
        return Err(Reason::UnsupportedOrder);
    }
    // A stop is let trade with a bounded number of orders, and so cannot promise how much it fills.
    if !is_plain && (is_for_auction || time_in_force == TimeInForce::FillOrKill) {
        return Err(Reason::UnsupportedOrder);
    }
    // It may be more than is left of an order.
    let shows_too_little = terms.display.0.saturating_mul(crate::MAX_SLICES) < order.quantity.0;
    if !terms.display.is_zero() && (!may_rest || is_for_auction || shows_too_little) {
        return Err(Reason::InvalidDisplay);
    }
    if terms.min_quantity > order.quantity || !terms.min_quantity.is_zero() && (!is_plain || is_for_auction) {
        return Err(Reason::InvalidMinQuantity);
    }
    if (time_in_force == TimeInForce::GoodTillDate) != (terms.expires.0 != 0) {
        return Err(Reason::InvalidExpiry);
    }
    let is_passive = may_rest && !is_for_auction && !order_type.is_stop() && terms.min_quantity.is_zero();
    if terms.post_only && !is_passive {
        return Err(Reason::UnsupportedOrder);
    }
    Ok(())
}
