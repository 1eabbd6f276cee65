//! Pre-trade risk: form, size and price of one order against the limits of its instrument and account.
//!
//! Nothing here changes or keeps anything. A check that cannot be evaluated refuses.

use crate::config::{
    Collar, FirmLimits, InstrumentState, MissingReference, ReferenceChoice, SessionLimits, ShortSales,
};
use crate::state::{AccountState, SessionState};
use types::{Notional, OrderTerms, OrderType, Price, Quantity, Reason, ShortSale, Side, TimeInForce, Timestamp};

/// The prices that an order is measured from, and when the feed gave them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The middle of the market or what comes nearest to it, 1e-9; [`Price::NULL`] when the feed gave none.
    pub price: Price,
    /// Of the last trade, 1e-9; [`Price::NULL`] when the feed gave none.
    pub last: Price,
    /// The best bid, 1e-9; [`Price::NULL`] when the feed gave none.
    pub bid: Price,
    /// The best offer, 1e-9; [`Price::NULL`] when the feed gave none.
    pub offer: Price,
    /// When the feed gave the newest of them, by the gateway's clock.
    pub time: Timestamp,
}

impl Reference {
    /// No feed gave a price.
    pub const NONE: Self = Self {
        price: Price::NULL,
        last: Price::NULL,
        bid: Price::NULL,
        offer: Price::NULL,
        time: Timestamp::NONE,
    };
}

/// What the checks look at, of a new order or of an order as a replace would make it.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) price: Price,
    pub(crate) quantity: Quantity,
    pub(crate) extra: OrderTerms,
}

/// What an order may have by its session and the firm; the highest there is where neither has a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    max_quantity: Quantity,
    max_notional: Notional,
}

impl Sizes {
    /// Of these limits.
    pub(crate) fn of(session: &SessionLimits, firm: &FirmLimits) -> Self {
        let quantities = [session.max_quantity, firm.max_quantity];
        let notionals = [session.max_notional, firm.max_notional];
        Self {
            max_quantity: quantities.into_iter().flatten().min().unwrap_or(Quantity(u64::MAX)),
            max_notional: notionals.into_iter().flatten().min().unwrap_or(Notional(i128::MAX)),
        }
    }
}

/// What passed, and at which price it counts for exposure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Weight {
    /// The limit, of a sell that reaches the market the market's price; without one the worst price that the collar lets pass.
    pub(crate) price: Price,
    /// |price| times quantity times lot size.
    pub(crate) notional: Notional,
}

impl Terms {
    /// What the order says, by itself.
    #[inline]
    pub(crate) fn check_form(&self, now: Timestamp, instrument: &InstrumentState) -> Result<(), Reason> {
        if self.quantity.is_zero() {
            return Err(Reason::InvalidQuantity);
        }
        let price_is_valid = match self.order_type {
            OrderType::Market | OrderType::Stop => self.price.is_null(),
            OrderType::PegPrimary | OrderType::PegMid if self.price.is_null() => true,
            _ => self.price.0 > 0 && self.price.is_multiple_of(instrument.tick_size),
        };
        if !price_is_valid {
            return Err(Reason::InvalidPrice);
        }
        if self.are_plain() {
            Ok(())
        } else {
            self.check_terms(now, instrument)
        }
    }

    /// Whether the account may sell short, when this is a short sale.
    #[inline]
    pub(crate) fn check_short_sale(&self, account: &AccountState) -> Result<(), Reason> {
        if self.extra.short_sale == ShortSale::No {
            return Ok(());
        }
        match account.limits.short_sales {
            ShortSales::Never => Err(Reason::ShortSale),
            ShortSales::WithLocate if !self.extra.located => Err(Reason::NoLocate),
            ShortSales::WithLocate | ShortSales::Allowed => Ok(()),
        }
    }

    /// Size and price against the limits; `market` is from [`market_price`].
    #[inline]
    pub(crate) fn check_limits(
        &self,
        instrument: &InstrumentState,
        account: &AccountState,
        session: &SessionState,
        market: Result<Price, Reason>,
    ) -> Result<Weight, Reason> {
        let limits = &instrument.limits;
        let (mut max_quantity, mut max_notional, mut collar) =
            (limits.max_quantity, limits.max_notional, limits.collar);
        if self.is_for_auction() {
            max_quantity = limits.auction.max_quantity.unwrap_or(max_quantity);
            max_notional = limits.auction.max_notional.unwrap_or(max_notional);
            collar = limits.auction.collar.unwrap_or(collar);
        }
        // First, because the product below has room for no more lots than a limit may allow.
        if self.quantity > max_quantity
            || self.quantity > account.limits.max_quantity
            || self.quantity > session.sizes.max_quantity
        {
            return Err(Reason::MaxQuantity);
        }
        let price = self.weight_price(instrument, collar, market)?;
        let notional = self.quantity.notional(price, instrument.lot_size);
        if notional > max_notional || notional > account.limits.max_notional || notional > session.sizes.max_notional {
            return Err(Reason::MaxNotional);
        }
        Ok(Weight { price, notional })
    }

    /// Whether it trades in an auction or not at all.
    pub(crate) const fn is_for_auction(&self) -> bool {
        matches!(self.time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose)
    }

    /// The price at which the order counts, once the collar let it pass.
    #[inline]
    fn weight_price(
        &self,
        instrument: &InstrumentState,
        collar: Option<Collar>,
        market: Result<Price, Reason>,
    ) -> Result<Price, Reason> {
        match (self.order_type, collar) {
            (OrderType::Limit, None) => Ok(market.map_or(self.price, |market| self.price_with(market))),
            (OrderType::Limit, Some(collar)) => self.within(collar, market?, instrument),
            // When it becomes an order the market is at its stop price.
            (OrderType::StopLimit, None) => Ok(self.price_with(self.extra.stop_price)),
            (OrderType::StopLimit, Some(collar)) => self.within(collar, self.extra.stop_price, instrument),
            (OrderType::Market | OrderType::Stop, _) if !instrument.limits.market_orders => Err(Reason::MarketOrder),
            (OrderType::Market, _) => Ok(worst(collar, market?, instrument)),
            (OrderType::Stop, _) => {
                // The stop price may be met already, so that it trades where the market is.
                Ok(worst(collar, market?.max(self.extra.stop_price), instrument))
            }
            // Its limit bounds what a buy may cost; a sell's is only the least that it may bring.
            (OrderType::PegPrimary | OrderType::PegMid, _) if !self.price.is_null() && self.side == Side::Buy => {
                Ok(self.price)
            }
            (OrderType::PegPrimary | OrderType::PegMid, _) => Ok(worst(collar, market?, instrument).max(self.price)),
        }
    }

    /// What a limit counts at while the market is there: a sell trades at its limit or above.
    #[inline]
    fn price_with(&self, market: Price) -> Price {
        match self.side {
            Side::Buy => self.price,
            Side::Sell => self.price.max(market),
        }
    }

    #[inline]
    fn within(&self, collar: Collar, reference: Price, instrument: &InstrumentState) -> Result<Price, Reason> {
        if collar.lets_pass(self.price, reference, instrument.tick_size) {
            Ok(self.price_with(reference))
        } else {
            Err(Reason::PriceCollar)
        }
    }
}

/// The worst price that an order without a limit can trade at.
#[inline]
fn worst(collar: Option<Collar>, reference: Price, instrument: &InstrumentState) -> Price {
    collar.map_or(reference, |collar| collar.highest(reference, instrument.tick_size))
}

impl Reference {
    /// Whether it is no older than the instrument's limits say.
    #[inline]
    pub(crate) fn is_fresh(&self, now: Timestamp, instrument: &InstrumentState) -> bool {
        now.since(self.time) <= instrument.limits.stale_after
    }
}

/// Where the market is, for collars and for what positions are valued at: the price that the limits choose while it is fresh,
/// else what they say stands in for it.
#[inline]
pub(crate) fn market_price(
    instrument: &InstrumentState,
    reference: &Reference,
    is_fresh: bool,
) -> Result<Price, Reason> {
    if let Some(price) = fresh_price(instrument, reference, is_fresh) {
        return Ok(price);
    }
    let may_use_master = instrument.limits.missing_reference == MissingReference::UseMaster;
    if may_use_master && instrument.reference_price.0 > 0 {
        Ok(instrument.reference_price)
    } else {
        Err(Reason::NoReferencePrice)
    }
}

/// The price that the limits choose, while it is fresh; the master's always is.
#[inline]
pub(crate) fn fresh_price(instrument: &InstrumentState, reference: &Reference, is_fresh: bool) -> Option<Price> {
    let (price, is_fresh) = match instrument.limits.reference {
        ReferenceChoice::Mid => (reference.price, is_fresh),
        ReferenceChoice::Last => (reference.last, is_fresh),
        ReferenceChoice::Master => (instrument.reference_price, true),
    };
    (price.0 > 0 && is_fresh).then_some(price)
}

/// Basis points in one.
const BASIS_POINTS: i128 = 10_000;

impl Collar {
    /// Whether `price` is near enough to `reference`; both are positive.
    #[inline]
    pub(crate) fn lets_pass(self, price: Price, reference: Price, tick_size: Price) -> bool {
        let distance = price.0.abs_diff(reference.0);
        let within_points = match self.basis_points {
            Some(points) => i128::from(distance) * BASIS_POINTS <= i128::from(points) * i128::from(reference.0),
            None => true,
        };
        let within_ticks = match self.ticks {
            Some(ticks) => distance <= u64::from(ticks).saturating_mul(tick_size.0.unsigned_abs()),
            None => true,
        };
        within_points && within_ticks
    }

    /// The highest price that passes.
    fn highest(self, reference: Price, tick_size: Price) -> Price {
        let width = |collar: Option<u32>, unit: i64, per: i128| {
            collar.map_or(i128::MAX, |count| i128::from(count) * i128::from(unit) / per)
        };
        let width = width(self.basis_points, reference.0, BASIS_POINTS).min(width(self.ticks, tick_size.0, 1));
        Price(i64::try_from(width.saturating_add(i128::from(reference.0))).unwrap_or(i64::MAX))
    }
}
