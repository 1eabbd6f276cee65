//! What all accounts together have open and have traded in an instrument, and its limits. An instrument is on one shard, so this is
//! exact.

use crate::config::InstrumentLimits;
use crate::exposure::{Claim, worst_of};
use crate::stake::units_down;
use types::{Quantity, Reason, Side};

/// What they have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Together {
    /// Orders open.
    pub(crate) open_orders: u32,
    /// What open orders hold of the limit of notional, 1e-4.
    pub(crate) held: i128,
    /// What ended orders used up of it by trading this day, 1e-4.
    pub(crate) used: i128,
    /// Lots that may still be bought.
    pub(crate) open_buy: u64,
    /// Lots that may still be sold.
    pub(crate) open_sell: u64,
    /// Lots bought this day.
    pub(crate) bought: u64,
    /// Lots sold this day.
    pub(crate) sold: u64,
}

/// What they may have; the highest there is where there is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Most {
    open_orders: u32,
    /// 1e-4.
    notional: i128,
    /// Of the limits of this side and of either.
    long: u64,
    /// Likewise.
    short: u64,
}

/// What an order or a replace adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct More {
    pub(crate) side: Side,
    pub(crate) orders: u32,
    /// 1e-4.
    pub(crate) notional: i64,
    pub(crate) lots: u64,
}

impl Together {
    /// Puts `new` in the place of the claim `old` of an order of this side.
    #[inline]
    pub(crate) const fn change(&mut self, side: Side, old: Claim, new: Claim) {
        let lots = match side {
            Side::Buy => &mut self.open_buy,
            Side::Sell => &mut self.open_sell,
        };
        *lots = *lots - old.quantity + new.quantity;
    }

    pub(crate) const fn trade(&mut self, side: Side, lots: Quantity) {
        match side {
            Side::Buy => self.bought += lots.0,
            Side::Sell => self.sold += lots.0,
        }
    }

    /// A day begins: what was traded counts no more.
    pub(crate) const fn new_day(&mut self) {
        (self.used, self.bought, self.sold) = (0, 0, 0);
    }

    /// Whether so much more is within the limits.
    ///
    /// # Errors
    /// [`Reason::MaxOpenOrders`]; [`Reason::SharedLimit`]; [`Reason::LongLimit`]; [`Reason::ShortLimit`];
    /// [`Reason::PositionLimit`].
    #[inline]
    pub(crate) fn check(&self, limits: &InstrumentLimits, most: &Most, more: &More) -> Result<(), Reason> {
        let (worst, most_lots) = match more.side {
            Side::Buy => (worst_of(self.bought, self.open_buy, self.sold, more.lots), most.long),
            Side::Sell => (worst_of(self.sold, self.open_sell, self.bought, more.lots), most.short),
        };
        if self.open_orders + more.orders > most.open_orders {
            return Err(Reason::MaxOpenOrders);
        }
        if more.notional > 0 && self.held + self.used + i128::from(more.notional) > most.notional {
            return Err(Reason::SharedLimit);
        }
        if more.lots > 0 && worst > most_lots {
            return Err(limits.position_reason(more.side, worst));
        }
        Ok(())
    }
}

impl InstrumentLimits {
    /// Which limit so many lots on a side exceed.
    #[cold]
    fn position_reason(&self, side: Side, lots: u64) -> Reason {
        let exceeds = |limit: Option<Quantity>| limit.is_some_and(|limit| lots > limit.0);
        match side {
            Side::Buy if exceeds(self.max_long) => Reason::LongLimit,
            Side::Sell if exceeds(self.max_short) => Reason::ShortLimit,
            Side::Buy | Side::Sell => Reason::PositionLimit,
        }
    }
}

impl Most {
    /// Of these limits.
    pub(crate) fn of(limits: &InstrumentLimits) -> Self {
        let lots = |of_side: Option<Quantity>| {
            let both = [of_side, limits.max_position];
            both.into_iter().flatten().min().map_or(u64::MAX, |lots| lots.0)
        };
        Self {
            open_orders: limits.max_open_orders.unwrap_or(u32::MAX),
            notional: limits.max_open_notional.map_or(i128::MAX, units_down),
            long: lots(limits.max_long),
            short: lots(limits.max_short),
        }
    }
}
