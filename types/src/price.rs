//! Prices in 1e-9 of the currency unit, and what price times quantity gives.

use core::fmt;

/// A price in 1e-9 of the currency unit. May be negative (spreads).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Price(pub i64);

/// Price times quantity, in 1e-9 of the currency unit. i128, so that no product of an i64 and a u64 overflows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Notional(pub i128);

impl Price {
    /// No price, on wires and for market orders.
    pub const NULL: Self = Self(i64::MIN);
    /// One currency unit.
    pub const UNIT: i64 = 1_000_000_000;

    /// A price from a feed or protocol with 4 decimals. `None` when it does not fit.
    #[must_use]
    pub const fn from_e4(value: i64) -> Option<Self> {
        match value.checked_mul(100_000) {
            Some(e9) => Some(Self(e9)),
            None => None,
        }
    }

    /// This price with 4 decimals, rounded towards negative infinity.
    #[must_use]
    pub const fn to_e4(self) -> i64 {
        self.0.div_euclid(100_000)
    }

    /// Whether this is [`Price::NULL`].
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == i64::MIN
    }

    /// Whether the price lies on the grid of `tick`.
    #[must_use]
    pub const fn is_multiple_of(self, tick: Self) -> bool {
        tick.0 > 0 && self.0 % tick.0 == 0
    }

    /// Parses decimal text such as `-12.5`: an optional sign, digits, at most nine decimals. `None` for anything else,
    /// or when it does not fit.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut value: i64 = 0;
        let mut decimals: Option<u32> = None;
        let mut any = false;
        for &byte in digits {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    if let Some(count) = &mut decimals {
                        *count += 1;
                        if *count > 9 {
                            if byte == b'0' {
                                continue;
                            }
                            return None;
                        }
                    }
                    value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                }
                b'.' if decimals.is_none() => decimals = Some(0),
                _ => return None,
            }
        }
        if !any {
            return None;
        }
        let scale = 10_i64.pow(9 - decimals.unwrap_or(0).min(9));
        let value = value.checked_mul(scale)?;
        Some(Self(if negative { -value } else { value }))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() {
            return f.write_str("none");
        }
        let magnitude = self.0.unsigned_abs();
        let unit = Self::UNIT.unsigned_abs();
        let (whole, mut fraction) = (magnitude / unit, magnitude % unit);
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{whole}")?;
        if fraction == 0 {
            return Ok(());
        }
        let mut width = 9;
        while fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn text_and_price_agree() {
        for (text, value) in [
            ("0", 0),
            ("1", 1_000_000_000),
            ("-12.5", -12_500_000_000),
            ("0.000000001", 1),
            ("100.2500", 100_250_000_000),
            ("1.0000000000", 1_000_000_000),
        ] {
            assert_eq!(Price::parse(text.as_bytes()), Some(Price(value)), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_price_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e5",
            " 1",
            "0.0000000001",
            "9223372036854775807",
            "+1",
        ] {
            assert_eq!(Price::parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_price_parses_to_itself(value in (i64::MIN + 1)..=i64::MAX) {
            let price = Price(value);
            prop_assert_eq!(Price::parse(price.to_string().as_bytes()), Some(price));
        }
    }
}
