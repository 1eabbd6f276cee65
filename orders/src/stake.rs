//! What orders and positions take of the limits that span shards, of an account, of the firm and of a session.
//!
//! Every amount is a sum over orders or positions, and whatever changes one of them changes the sum by the difference: first by
//! what an order needs, reserved before it is accepted, later by what comes out of [`Sink::settle`](crate::Sink::settle) and
//! [`Sink::settle_session`](crate::Sink::settle_session). So each is given back exactly once, on whatever way an order ends.

use crate::config::{AccountLimits, FirmLimits, SessionLimits};
use crate::limits::VALUE_LIMIT_MAX;
use core::ops::{AddAssign, Sub, SubAssign};
use types::Notional;

/// What is taken, or a change of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stake {
    /// Notional of open orders and of what traded this day, 1e-4.
    pub notional: i64,
    /// Open orders.
    pub orders: i64,
    /// Value of all positions, each the larger of long and short with the open orders of its side, 1e-4.
    pub gross: i64,
    /// Value of what was bought less what was sold, and of all open buys, 1e-4.
    pub long: i64,
    /// Value of what was sold less what was bought, and of all open sells, 1e-4.
    pub short: i64,
    /// What was gained this day, what is held at its value, 1e-4; less than 0 is a loss.
    pub profit: i64,
}

/// What an order or a replace needs before it can be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Need {
    /// The change that it makes. What is above 0 but for the profit is subject to the limits.
    pub stake: Stake,
    /// Whether it can only make the account's position smaller. Then a loss is no reason to refuse it.
    pub reduces: bool,
}

/// What is taken of a session's limits, or a change of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SessionStake {
    /// Notional of open orders and of what traded this day, 1e-4.
    pub notional: i64,
    /// Open orders.
    pub orders: i64,
}

/// The account's place in [`OrdersConfig::accounts`](crate::OrdersConfig::accounts).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountPlace(pub u32);

/// The session's place in [`OrdersConfig::sessions`](crate::OrdersConfig::sessions).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionPlace(pub u32);

/// Whose an order is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// Its account.
    pub account: AccountPlace,
    /// Its session.
    pub session: SessionPlace,
}

/// The limits of a scope of which some span shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedScope {
    /// For all orders.
    Firm(FirmLimits),
    /// For those of an account.
    Account(AccountPlace, AccountLimits),
    /// For those of a session.
    Session(SessionPlace, SessionLimits),
}

impl Stake {
    /// Nothing.
    pub const NONE: Self = Self {
        notional: 0,
        orders: 0,
        gross: 0,
        long: 0,
        short: 0,
        profit: 0,
    };

    /// The change from one value of a position to another; the rest stays as it is.
    #[inline]
    pub(crate) const fn take_value(&mut self, new: &Self, old: &Self) {
        self.gross += new.gross - old.gross;
        self.long += new.long - old.long;
        self.short += new.short - old.short;
        self.profit += new.profit - old.profit;
    }

    /// Adds a change of a position's value; the rest stays as it is.
    #[inline]
    pub(crate) const fn add_value(&mut self, change: &Self) {
        self.gross += change.gross;
        self.long += change.long;
        self.short += change.short;
        self.profit += change.profit;
    }
}

impl AddAssign for Stake {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.notional += other.notional;
        self.orders += other.orders;
        self.gross += other.gross;
        self.long += other.long;
        self.short += other.short;
        self.profit += other.profit;
    }
}

impl SubAssign for Stake {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sub for Stake {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self {
            notional: self.notional - other.notional,
            orders: self.orders - other.orders,
            gross: self.gross - other.gross,
            long: self.long - other.long,
            short: self.short - other.short,
            profit: self.profit - other.profit,
        }
    }
}

/// 1e-9 in a unit of limits that span shards.
const UNIT: i64 = 100_000;

/// Bound of one position's value, 1e-4. Far above what a price and a day's lots make, far below where sums overflow.
const VALUE_MAX: i64 = 1 << 56;

/// Else a position at the bound would not be seen to be above a limit.
const _: () = assert!(VALUE_LIMIT_MAX.0 < VALUE_MAX as i128 * UNIT as i128);

/// Notional 1e-9 in 1e-4, rounded up and bounded.
pub(crate) fn units_up(notional: i128) -> i64 {
    let units = -(-notional).div_euclid(i128::from(UNIT));
    i64::try_from(units.clamp(i128::from(-VALUE_MAX), i128::from(VALUE_MAX))).unwrap_or(VALUE_MAX)
}

/// A limit in the unit of what is taken of it, rounded down as that is rounded up: never in favour of the client.
#[must_use]
pub const fn units_down(limit: Notional) -> i128 {
    limit.0.div_euclid(UNIT as i128)
}

/// As [`units_up`], of what fits in 63 bits; `None` at their edge and beyond. A position is valued with every order: lifted above
/// zero it takes one look at the sign, and one division without a correction for it.
#[inline]
pub(crate) fn small_units_up(notional: i64) -> Option<i64> {
    const LIFT_UNITS: i64 = (1 << 62) / UNIT;
    const LIFT: i64 = LIFT_UNITS * UNIT + (UNIT - 1);
    let lifted = u64::try_from(notional.wrapping_add(LIFT)).ok()?;
    Some((lifted / UNIT.cast_unsigned()).cast_signed() - LIFT_UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_against_the_client() {
        for (notional, up) in [
            (0, 0),
            (1, 1),
            (100_000, 1),
            (100_001, 2),
            (-1, 0),
            (-99_999, 0),
            (-100_000, -1),
            (-100_001, -1),
            (-200_000, -2),
            (i128::MAX / 2, VALUE_MAX),
            (i128::MIN / 2, -VALUE_MAX),
        ] {
            assert_eq!(units_up(notional), up, "{notional}");
        }
    }

    #[test]
    fn all_in_63_bits_is_rounded_alike_and_nothing_otherwise() {
        const HALF: i64 = 1 << 62;
        let middles = [
            0,
            UNIT << 24,
            -UNIT << 24,
            1 << 40,
            -(1 << 40),
            -HALF,
            HALF,
            i64::MIN,
            i64::MAX,
        ];
        let around = [-UNIT - 1, -UNIT, 1 - UNIT, -3, -1, 0, 1, 3, UNIT - 1, UNIT, UNIT + 1];
        for notional in middles
            .iter()
            .flat_map(|middle| around.map(|by| middle.saturating_add(by)))
        {
            let units = -(-i128::from(notional)).div_euclid(100_000);
            match small_units_up(notional) {
                Some(rounded) => assert_eq!(i128::from(rounded), units, "{notional}"),
                None => assert!(!(-HALF..=HALF - UNIT).contains(&notional), "{notional}"),
            }
        }
    }
}
