//! Exposure: what may still trade and what traded today, by account and instrument.
//!
//! An order's claim is the worst that may still happen to it, see [`Order::claim`](crate::order::Order::claim). It is
//! entered when the order is accepted, corrected when the order changes, and taken out when it ends.

use crate::map::{Map, NIL};
use alloc::boxed::Box;
use alloc::vec;
use core::ops::{AddAssign, SubAssign};
use types::{Notional, Quantity, Side};

/// What an account has open and has traded in one instrument.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Exposure {
    /// Orders open.
    pub open_orders: u32,
    /// Lots that may still be bought.
    pub open_buy: Quantity,
    /// Lots that may still be sold.
    pub open_sell: Quantity,
    /// Notional that may still be bought, 1e-9.
    pub open_buy_notional: Notional,
    /// Notional that may still be sold, 1e-9.
    pub open_sell_notional: Notional,
    /// Lots bought this day.
    pub bought: Quantity,
    /// Lots sold this day.
    pub sold: Quantity,
}

/// What an account has open in all instruments of the shard.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AccountExposure {
    /// Orders open.
    pub open_orders: u32,
    /// Notional that may still be bought, 1e-9.
    pub open_buy_notional: Notional,
    /// Notional that may still be sold, 1e-9.
    pub open_sell_notional: Notional,
    /// What open orders hold of the limit that spans shards, 1e-4.
    pub held: i64,
    /// What ended orders used up of that limit by trading this day, 1e-4.
    pub used: i64,
}

/// What one order adds to the open side of an exposure.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Claim {
    pub(crate) quantity: u64,
    pub(crate) notional: i128,
}

/// The exposures of all (account, instrument) pairs that had an order this day.
pub(crate) struct Positions {
    /// Those in use come first.
    entries: Box<[Exposure]>,
    /// (account, instrument) to entry.
    index: Map,
}

impl Positions {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: vec![Exposure::default(); capacity].into_boxed_slice(),
            index: Map::new(capacity),
        }
    }

    /// The entry of the pair, or [`NIL`] when it had no order yet.
    #[inline]
    pub(crate) fn find(&self, account: u32, instrument: u32) -> u32 {
        self.index.find(u64::from(account), instrument)
    }

    /// Whether [`open`](Self::open) has room for one more pair.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.index.length() < self.entries.len()
    }

    /// Makes the entry of the pair; [`has_room`](Self::has_room) was seen before.
    pub(crate) fn open(&mut self, account: u32, instrument: u32) -> u32 {
        let entry = u32::try_from(self.index.length()).unwrap_or(NIL);
        self.entries[entry as usize] = Exposure::default();
        self.index.insert(u64::from(account), instrument, entry);
        entry
    }

    pub(crate) const fn entry(&self, entry: u32) -> &Exposure {
        &self.entries[entry as usize]
    }

    #[inline]
    pub(crate) const fn entry_mut(&mut self, entry: u32) -> &mut Exposure {
        &mut self.entries[entry as usize]
    }

    /// The entries in use.
    pub(crate) fn entries(&self) -> &[Exposure] {
        &self.entries[..self.index.length()]
    }

    /// Forgets all pairs; none has an open order.
    pub(crate) fn clear(&mut self) {
        self.index.clear();
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.entries) + self.index.memory()
    }
}

impl Exposure {
    /// Puts `new` in the place of the claim `old` of an order of this side.
    #[inline]
    pub(crate) fn change(&mut self, side: Side, old: Claim, new: Claim) {
        let (quantity, notional) = match side {
            Side::Buy => (&mut self.open_buy, &mut self.open_buy_notional),
            Side::Sell => (&mut self.open_sell, &mut self.open_sell_notional),
        };
        quantity.add_assign(Quantity(new.quantity));
        quantity.sub_assign(Quantity(old.quantity));
        notional.0 += new.notional - old.notional;
    }

    /// Lots held on a side if all open orders of that side trade and none of the other does.
    #[inline]
    pub(crate) const fn worst(&self, side: Side) -> u64 {
        let (traded, open, back) = match side {
            Side::Buy => (self.bought, self.open_buy, self.sold),
            Side::Sell => (self.sold, self.open_sell, self.bought),
        };
        traded.0.saturating_add(open.0).saturating_sub(back.0)
    }

    pub(crate) fn trade(&mut self, side: Side, lots: Quantity) {
        match side {
            Side::Buy => self.bought += lots,
            Side::Sell => self.sold += lots,
        }
    }
}

impl AccountExposure {
    /// As [`Exposure::change`].
    #[inline]
    pub(crate) const fn change(&mut self, side: Side, old: Claim, new: Claim) {
        let notional = match side {
            Side::Buy => &mut self.open_buy_notional,
            Side::Sell => &mut self.open_sell_notional,
        };
        notional.0 += new.notional - old.notional;
    }
}

/// Notional in the unit of limits that span shards, 1e-4, rounded against the client. `None` when it does not fit; no limit
/// has room for that.
#[inline]
pub(crate) fn shared_units(notional: i128) -> Option<i64> {
    const UNIT: u64 = 100_000;
    // Nearly always small; a division of 128 bits costs more than all the checks of an order.
    match u64::try_from(notional) {
        Ok(small) => i64::try_from(small.div_ceil(UNIT)).ok(),
        Err(_) => i64::try_from((notional + i128::from(UNIT) - 1) / i128::from(UNIT)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_units_round_up() {
        for (notional, units) in [
            (0, Some(0)),
            (1, Some(1)),
            (100_000, Some(1)),
            (100_001, Some(2)),
            (i128::from(u64::MAX), Some(184_467_440_737_096)),
            (i128::from(u64::MAX) + 1, Some(184_467_440_737_096)),
            (i128::from(i64::MAX) * 100_000, Some(i64::MAX)),
            (i128::from(i64::MAX) * 100_000 + 1, None),
        ] {
            assert_eq!(shared_units(notional), units, "{notional}");
        }
    }
}
