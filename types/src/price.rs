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
        write_decimal(f, self.0 < 0, self.0.unsigned_abs().into())
    }
}

impl Notional {
    /// Parses decimal text such as `250000.50`: digits, at most nine decimals, no sign. `None` for anything else, or when it
    /// does not fit.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
        let (whole, rest) = text.split_at(point);
        let mut units: i128 = 0;
        for byte in whole {
            let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
            units = units.checked_mul(10)?.checked_add(digit.into())?;
        }
        // What stands behind the point is a price below one.
        let below_one = match rest {
            [] | [b'.'] if !whole.is_empty() => Price(0),
            rest => Price::parse(rest)?,
        };
        let amount = units.checked_mul(Price::UNIT.into())?;
        amount.checked_add(below_one.0.into()).map(Self)
    }
}

impl fmt::Display for Notional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0 < 0, self.0.unsigned_abs())
    }
}

/// So many 1e-9, as decimal text.
fn write_decimal(f: &mut fmt::Formatter<'_>, is_negative: bool, magnitude: u128) -> fmt::Result {
    let unit = u128::from(Price::UNIT.unsigned_abs());
    let (whole, mut fraction) = (magnitude / unit, magnitude % unit);
    let sign = if is_negative { "-" } else { "" };
    write!(f, "{sign}{whole}")?;
    if fraction == 0 {
        return Ok(());
    }
    let mut width = 9;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        width -= 1;
    }
    write!(f, ".{fraction:0width$}")
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

    #[test]
    fn an_amount_is_read_as_a_price_is_and_may_be_larger() {
        for text in [
            "0",
            "1",
            "1.",
            ".5",
            "250000.50",
            "0.000000001",
            "1.0000000000",
            "9223372036.854775807",
        ] {
            let price = Price::parse(text.as_bytes()).expect("a price");
            assert_eq!(
                Notional::parse(text.as_bytes()),
                Some(Notional(price.0.into())),
                "{text}"
            );
        }
        for (text, value) in [
            ("9223372037", Some(9_223_372_037_000_000_000)),
            ("20000000000.01", Some(20_000_000_000_010_000_000)),
            ("79228162514264337593.543950336", Some(1 << 96)),
            ("170141183460469231731687303715.884105727", Some(i128::MAX)),
            ("170141183460469231731687303715.884105728", None),
            ("1000000000000000000000000000000000000000000", None),
        ] {
            assert_eq!(Notional::parse(text.as_bytes()), value.map(Notional), "{text}");
        }
        for text in [
            "",
            "-",
            ".",
            "-1",
            "+1",
            "1.2.3",
            "1.-5",
            "1e5",
            " 1",
            "1_000",
            "0.0000000001",
        ] {
            assert_eq!(Notional::parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_amount_parses_to_itself(value in 0..=i128::MAX) {
            let amount = Notional(value);
            prop_assert_eq!(Notional::parse(amount.to_string().as_bytes()), Some(amount));
        }

        #[test]
        fn a_printed_price_parses_to_itself(value in (i64::MIN + 1)..=i64::MAX) {
            let price = Price(value);
            prop_assert_eq!(Price::parse(price.to_string().as_bytes()), Some(price));
        }
    }
}
