//! Quantities in lots.

use crate::price::{Notional, Price};
use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A quantity in lots of its instrument. Arithmetic that would leave the range is a defect of the caller and panics in
/// debug builds; order entry bounds every quantity long before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Quantity(pub u64);

impl Quantity {
    /// No lots.
    pub const ZERO: Self = Self(0);

    /// Whether there are no lots.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero when `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// |price| times this many lots of `lot_size` units.
    #[must_use]
    pub const fn notional(self, price: Price, lot_size: u32) -> Notional {
        // |i64| * u64 is below 2^127; the lot size is divided off the order's quantity at the edge, so it fits for
        // every quantity below 2^32.
        Notional((price.0.unsigned_abs() as i128) * (self.0 as i128) * (lot_size as i128))
    }
}

impl Add for Quantity {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Quantity {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
