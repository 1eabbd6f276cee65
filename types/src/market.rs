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

impl TradingDay {
    /// The day that is written so, as `yyyymmdd`; `None` where the calendar has none, before 1970 and after 9999.
    #[must_use]
    pub const fn from_yyyymmdd(number: u32) -> Option<Self> {
        let (year, month, date) = (number / 10_000, number / 100 % 100, number % 100);
        let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if is_leap_year => 29,
            2 => 28,
            _ => 0,
        };
        if year < 1_970 || year > 9_999 || date == 0 || date > length {
            return None;
        }
        Some(Self(number))
    }

    /// Days of the calendar from `earlier` to this one; negative where that is later.
    #[must_use]
    pub const fn days_since(self, earlier: Self) -> i64 {
        self.day_number() - earlier.day_number()
    }

    /// Days since one that is long past. Years are taken from March on, so that a leap day ends one; the months from then on
    /// have 153 days in each five.
    const fn day_number(self) -> i64 {
        let (year, month, date) = (self.0 / 10_000, self.0 / 100 % 100, self.0 % 100);
        let (year, month) = if month > 2 {
            (year, month - 3)
        } else {
            (year.wrapping_sub(1), month + 9)
        };
        let (year, month, date) = (year as i64, month as i64, date as i64);
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + date
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for day in [19_700_101, 20_240_229, 20_000_229, 20_261_130, 99_991_231] {
            assert_eq!(TradingDay::from_yyyymmdd(day), Some(TradingDay(day)));
        }
        for day in [
            0,
            19_691_231,
            20_260_229,
            21_000_229,
            20_261_131,
            20_261_301,
            20_260_001,
            20_261_200,
            100_000_101,
        ] {
            assert_eq!(TradingDay::from_yyyymmdd(day), None, "{day}");
        }
    }

    #[test]
    fn days_between_two_are_counted() {
        for (from, to, days) in [
            (20_261_130, 20_261_201, 1),
            (20_261_231, 20_270_101, 1),
            (20_240_228, 20_240_301, 2),
            (20_230_228, 20_230_301, 1),
            (20_000_101, 20_260_101, 9_497),
            (20_260_102, 20_260_101, -1),
        ] {
            assert_eq!(TradingDay(to).days_since(TradingDay(from)), days, "{from} to {to}");
        }
        // Every day of four centuries follows the one before it.
        let days = (19_700_101..=23_700_101).filter_map(TradingDay::from_yyyymmdd);
        assert!(
            days.clone()
                .zip(days.skip(1))
                .all(|(day, next)| next.days_since(day) == 1)
        );
    }
}
