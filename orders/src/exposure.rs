//! Exposure: what may still trade and what traded today, by account and instrument.
//!
//! An order's claim is the worst that may still happen to it, see [`Order::claim`](crate::order::Order::claim). It is
//! entered when the order is accepted, corrected when the order changes, and taken out when it ends.

use crate::map::{Map, NIL};
use crate::stake::{Stake, small_units_up, units_up};
use alloc::boxed::Box;
use alloc::vec;
use core::ops::{AddAssign, SubAssign};
use types::{Notional, Price, Quantity, Side};

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
    /// What they cost together, 1e-9.
    pub bought_notional: Notional,
    /// What they brought together, 1e-9.
    pub sold_notional: Notional,
    /// What the position is valued at, 1e-9: the reference price when the account last had an order checked here, the price of
    /// its last trade, or what it was last [marked](crate::Mark) at, whichever was latest; it outlives the day with the orders here. 0 when there was
    /// none of them.
    pub mark: Price,
    /// What it takes of the account's limits by its value.
    pub(crate) stake: Stake,
    /// Whose it is: the account's index.
    pub(crate) account: u32,
    /// What in: the instrument's index.
    pub(crate) instrument: u32,
    /// Of the instrument.
    pub(crate) lot_size: u32,
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
    /// What its positions on this shard take of limits by their value; nothing of notional and orders.
    pub stake: Stake,
}

/// What a session's orders on the shard take of limits that span shards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SessionExposure {
    /// As [`AccountExposure::held`].
    pub(crate) held: i64,
    /// As [`AccountExposure::used`].
    pub(crate) used: i64,
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
    /// Stands for a pair that had no order yet.
    nothing: Exposure,
    /// (account, instrument) to entry.
    index: Map,
}

impl Positions {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: vec![Exposure::default(); capacity].into_boxed_slice(),
            nothing: Exposure::default(),
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
    #[inline]
    pub(crate) fn open(&mut self, account: u32, instrument: u32, lot_size: u32) -> u32 {
        let entry = u32::try_from(self.index.length()).unwrap_or(NIL);
        self.entries[entry as usize] = Exposure {
            account,
            instrument,
            lot_size,
            ..Exposure::default()
        };
        self.index.insert(u64::from(account), instrument, entry);
        entry
    }

    pub(crate) const fn entry(&self, entry: u32) -> &Exposure {
        &self.entries[entry as usize]
    }

    /// The entry, or one with nothing in it for [`NIL`].
    #[inline]
    pub(crate) fn entry_or_nothing(&self, entry: u32) -> &Exposure {
        self.entries.get(entry as usize).unwrap_or(&self.nothing)
    }

    #[inline]
    pub(crate) const fn entry_mut(&mut self, entry: u32) -> &mut Exposure {
        &mut self.entries[entry as usize]
    }

    /// The entry; `None` for [`NIL`].
    pub(crate) fn get_mut(&mut self, entry: u32) -> Option<&mut Exposure> {
        self.entries.get_mut(entry as usize)
    }

    /// The entries in use.
    pub(crate) fn entries(&self) -> &[Exposure] {
        &self.entries[..self.index.length()]
    }

    /// The same, to be valued anew.
    pub(crate) fn entries_mut(&mut self) -> &mut [Exposure] {
        let length = self.index.length();
        &mut self.entries[..length]
    }

    /// A day begins: pairs with open orders keep what they are valued at and nothing else, the others are forgotten.
    pub(crate) fn begin_day(&mut self) {
        let length = self.index.length();
        self.index.clear();
        for place in 0..length {
            let old = self.entries[place];
            if old.open_orders > 0 {
                let entry = self.open(old.account, old.instrument, old.lot_size);
                self.entry_mut(entry).mark = old.mark;
            }
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.entries) + self.index.memory()
    }
}

impl Exposure {
    /// Whether anything is held or open, so that its value goes with the price.
    #[inline]
    pub(crate) fn has_value(&self) -> bool {
        self.bought != self.sold || !self.open_buy.is_zero() || !self.open_sell.is_zero()
    }

    /// What it takes of limits by its value: with all open orders of one side and none of the other.
    #[inline]
    pub(crate) fn value(&self) -> Stake {
        self.value_with(Side::Buy, 0, self.mark, self.lot_size)
    }

    /// The same with so many lots more of this size to buy or sell, at this mark.
    #[inline]
    pub(crate) fn value_with(&self, side: Side, more: u64, mark: Price, lot_size: u32) -> Stake {
        let (buy, sell) = match side {
            Side::Buy => (more, 0),
            Side::Sell => (0, more),
        };
        self.small_value(buy, sell, mark, lot_size)
            .unwrap_or_else(|| self.large_value(buy, sell, mark, lot_size))
    }

    /// What it takes more with so many lots more of this size to buy or sell, at this mark. While the price does not move, and of
    /// the first order, only the side of the order is valued.
    #[inline]
    pub(crate) fn value_more(&self, side: Side, more: u64, mark: Price, lot_size: u32) -> Stake {
        let is_first = self.lot_size == 0;
        if (mark == self.mark || is_first)
            && let Some(change) = self.side_more(side, more, mark, lot_size)
        {
            return change;
        }
        let mut change = Stake::NONE;
        change.take_value(&self.value_with(side, more, mark, lot_size), &self.stake);
        change
    }

    /// The same when the other side is worth what it was; `None` when 64 bits do not suffice.
    #[inline]
    fn side_more(&self, side: Side, more: u64, mark: Price, lot_size: u32) -> Option<Stake> {
        let Stake { long, short, gross, .. } = self.stake;
        let (open, plus, minus, own, other) = match side {
            Side::Buy => (self.open_buy, self.bought, self.sold, long, short),
            Side::Sell => (self.open_sell, self.sold, self.bought, short, long),
        };
        let lots = open.0.wrapping_add(more).wrapping_add(plus.0).wrapping_sub(minus.0);
        let unit = mark.0.checked_mul(i64::from(lot_size))?;
        let value = small_units_up(lots.cast_signed().checked_mul(unit)?)?;
        let (long, short) = match side {
            Side::Buy => (value - own, 0),
            Side::Sell => (0, value - own),
        };
        Some(Stake {
            gross: value.max(other).max(0) - gross,
            long,
            short,
            ..Stake::NONE
        })
    }

    /// In 64 bits, which nearly always suffice; `None` when they do not.
    #[inline]
    fn small_value(&self, buy: u64, sell: u64, mark: Price, lot_size: u32) -> Option<Stake> {
        let unit = mark.0.checked_mul(i64::from(lot_size))?;
        // A day's lots are far fewer than would overflow a sum: an order has 32 bits of them.
        let held = self.bought.0.wrapping_sub(self.sold.0);
        let buy = self.open_buy.0.wrapping_add(buy).wrapping_add(held).cast_signed();
        let sell = self.open_sell.0.wrapping_add(sell).wrapping_sub(held).cast_signed();
        let held = held.cast_signed();
        let (long, short) = (buy.checked_mul(unit)?, sell.checked_mul(unit)?);
        let spent = small(self.bought_notional.0 - self.sold_notional.0)?;
        let loss = spent.checked_sub(held.checked_mul(unit)?)?;
        let (long, short) = (small_units_up(long)?, small_units_up(short)?);
        Some(Stake {
            gross: long.max(short).max(0),
            long,
            short,
            profit: -small_units_up(loss)?,
            ..Stake::NONE
        })
    }

    #[cold]
    fn large_value(&self, buy: u64, sell: u64, mark: Price, lot_size: u32) -> Stake {
        let unit = i128::from(mark.0) * i128::from(lot_size);
        let lots = |quantity: Quantity| i128::from(quantity.0);
        let held = lots(self.bought) - lots(self.sold);
        let buy = held + lots(self.open_buy) + i128::from(buy);
        let sell = lots(self.open_sell) + i128::from(sell) - held;
        let (long, short) = (units_up(buy * unit), units_up(sell * unit));
        Stake {
            gross: long.max(short).max(0),
            long,
            short,
            profit: -units_up(self.bought_notional.0 - self.sold_notional.0 - held * unit),
            ..Stake::NONE
        }
    }

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

    /// Lots held on a side if all open orders of that side trade, so many `more` beside them, and none of the other does.
    #[inline]
    pub(crate) const fn worst(&self, side: Side, more: u64) -> u64 {
        let (traded, open, back) = match side {
            Side::Buy => (self.bought, self.open_buy, self.sold),
            Side::Sell => (self.sold, self.open_sell, self.bought),
        };
        worst_of(traded.0, open.0, back.0, more)
    }

    pub(crate) fn trade(&mut self, side: Side, lots: Quantity, price: Price) {
        let notional = i128::from(price.0) * i128::from(lots.0) * i128::from(self.lot_size);
        match side {
            Side::Buy => {
                self.bought += lots;
                self.bought_notional.0 += notional;
            }
            Side::Sell => {
                self.sold += lots;
                self.sold_notional.0 += notional;
            }
        }
    }
}

/// Lots held when so many traded, so many are open and so many more are to come, and so many traded the other way.
#[inline]
pub(crate) const fn worst_of(traded: u64, open: u64, back: u64, more: u64) -> u64 {
    traded.saturating_add(open).saturating_add(more).saturating_sub(back)
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

/// The number in 64 bits when it fits. `try_from` comes to three times the instructions.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "seen to be the same")]
fn small(number: i128) -> Option<i64> {
    let small = number as i64;
    (i128::from(small) == number).then_some(small)
}

/// Brings what a position takes of limits up to date, and gives the change.
#[inline]
pub(crate) fn restaked(exposure: &mut Exposure) -> Stake {
    let value = exposure.value();
    let change = value - exposure.stake;
    exposure.stake = value;
    change
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
    fn a_small_value_is_the_same_as_a_large_one_and_a_large_one_is_bounded() {
        let exposure = |bought, sold, open_buy, open_sell, mark| Exposure {
            bought: Quantity(bought),
            sold: Quantity(sold),
            open_buy: Quantity(open_buy),
            open_sell: Quantity(open_sell),
            bought_notional: Notional(i128::from(bought) * 77_777),
            sold_notional: Notional(i128::from(sold) * 88_888),
            mark: Price(mark),
            lot_size: 3,
            ..Exposure::default()
        };
        for (bought, sold, open_buy, open_sell) in
            [(0, 0, 0, 0), (5, 0, 1, 9), (0, 7, 3, 0), (9, 2, 0, 20), (1, 1, 1, 1)]
        {
            for mark in [-100_001, -100_000, -1, 0, 1, 33_333, 33_334, 100_000, 1_000_000_007] {
                let exposure = exposure(bought, sold, open_buy, open_sell, 7);
                for (buy, sell) in [(0, 0), (4, 0), (0, 5)] {
                    let large = exposure.large_value(buy, sell, Price(mark), 3);
                    assert_eq!(exposure.small_value(buy, sell, Price(mark), 3), Some(large));
                }
            }
        }
        let huge = exposure(1 << 60, 0, 1 << 60, 0, i64::MAX);
        assert_eq!(huge.small_value(0, 0, huge.mark, huge.lot_size), None);
        assert_eq!(huge.value().gross, huge.value().long);
        assert!(huge.value().long >= 1 << 56);
    }

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
