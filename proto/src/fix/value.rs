//! Values of fields: numbers as text, both ways.

use types::Price;

/// A number as decimal text, without allocation.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    bytes: [u8; 20],
    length: usize,
}

/// A run of decimal digits, leading zeros allowed. `None` for anything else, or when it does not fit.
#[inline]
#[must_use]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    match text.len() {
        0 => None,
        1..=3 => few_digits(text),
        4..=8 => eight_digits(padded(text)?),
        _ => many_digits(text),
    }
}

#[inline]
fn few_digits(text: &[u8]) -> Option<u64> {
    let mut value = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// More than eight digits. 18 always fit; more are checked.
fn many_digits(text: &[u8]) -> Option<u64> {
    if text.len() > 18 {
        return parse_long(text);
    }
    let (eights, rest) = text.as_chunks::<8>();
    let mut value = 0;
    for &eight in eights {
        value = value * 100_000_000 + eight_digits(eight)?;
    }
    for &byte in rest {
        value = value * 10 + few_digits(&[byte])?;
    }
    Some(value)
}

/// Four to eight digits with zeros before them, from two loads that overlap.
#[inline]
fn padded(digits: &[u8]) -> Option<[u8; 8]> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let (first, last) = (digits.first_chunk::<4>()?, digits.last_chunk::<4>()?);
    let missing = 64 - 8 * u32::try_from(digits.len()).ok()?;
    let (first, last) = (
        u64::from(u32::from_le_bytes(*first)),
        u64::from(u32::from_le_bytes(*last)),
    );
    let zeros = ZEROS & !(u64::MAX.wrapping_shl(missing));
    Some((last << 32 | first << missing | zeros).to_le_bytes())
}

/// Whether a text is decimal digits and nothing else.
#[inline]
pub(super) fn is_digits(text: &[u8]) -> bool {
    match text.len() {
        4..=8 => padded(text).is_some_and(|eight| digit_pairs(eight).is_some()),
        _ => !text.is_empty() && text.iter().all(u8::is_ascii_digit),
    }
}

/// A number of eight digits: pairs of them make hundreds, pairs of those ten thousands, all at once.
#[inline]
fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    let pairs = digit_pairs(digits)?;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// Four numbers of two digits each, the first in the lowest 16 bits, by arithmetic on all eight bytes at once.
#[inline]
pub(super) fn digit_pairs(digits: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH_HALVES: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const SIXES: u64 = 0x0606_0606_0606_0606;
    let values = u64::from_le_bytes(digits) ^ ZEROS;
    // A digit leaves the upper half of its byte clear, and so does a digit plus six carry into it unless above nine.
    if (values | values.wrapping_add(SIXES)) & HIGH_HALVES != 0 {
        return None;
    }
    // The tens stand in the lower byte of each pair.
    Some((values * 10 + (values >> 8)) & 0x00ff_00ff_00ff_00ff)
}

#[cold]
fn parse_long(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A whole number with an optional minus sign. `None` for anything else, or when it does not fit.
#[must_use]
pub(super) fn parse_i32(text: &[u8]) -> Option<i32> {
    let (sign, digits) = text.strip_prefix(b"-").map_or((1, text), |digits| (-1, digits));
    let magnitude = i64::try_from(parse_u64(digits)?).ok()?;
    i32::try_from(sign * magnitude).ok()
}

/// A quantity: whole units, with or without decimals that are zero. `None` for anything else.
#[inline]
#[must_use]
pub fn parse_quantity(text: &[u8]) -> Option<u64> {
    parse_u64(text).or_else(|| {
        let point = text.iter().position(|&byte| byte == b'.')?;
        let (whole, decimals) = (text.get(..point)?, text.get(point + 1..)?);
        if decimals.iter().any(|&byte| byte != b'0') {
            return None;
        }
        parse_u64(whole)
    })
}

/// A price, as [`Price::parse`] reads it; the usual short ones without a check at each digit.
#[inline]
pub(super) fn parse_price(text: &[u8]) -> Option<Price> {
    const SCALES: [i64; 10] = [
        1_000_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
        100_000,
        10_000,
        1_000,
        100,
        10,
        1,
    ];
    if text.len() > SHORT_PRICE {
        return Price::parse(text);
    }
    let mut value = 0;
    let mut decimals = 0;
    let mut point = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + i64::from(digit);
            decimals += point;
        } else if byte == b'.' && point == 0 {
            point = 1;
        } else {
            return Price::parse(text);
        }
    }
    match SCALES.get(decimals) {
        Some(&scale) if text.len() > point => Some(Price(value.checked_mul(scale)?)),
        _ => Price::parse(text),
    }
}

/// Bytes of a price whose digits always fit.
const SHORT_PRICE: usize = 18;

/// `Y` or `N`.
#[inline]
pub(super) const fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"Y" => Some(true),
        b"N" => Some(false),
        _ => None,
    }
}

/// Writes decimal digits and says how many.
#[inline]
pub(super) fn write_u64(mut value: u64, text: &mut [u8; 20]) -> usize {
    let length = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut at = length;
    while at > 1 {
        at -= 2;
        let [tens, units] = two_digits(value % 100);
        text[at] = tens;
        text[at + 1] = units;
        value /= 100;
    }
    if at == 1 {
        text[0] = two_digits(value)[1];
    }
    length
}

/// Writes decimal digits with a minus sign below zero and says how many bytes it took.
pub(super) fn write_i32(value: i32, text: &mut [u8; 11]) -> usize {
    let mut digits = [0; 20];
    let length = write_u64(u64::from(value.unsigned_abs()), &mut digits);
    let sign = usize::from(value < 0);
    text[0] = b'-';
    text[sign..sign + length].copy_from_slice(&digits[..length]);
    sign + length
}

/// Writes a price without needless zeros and says how many bytes it took. [`Price::NULL`] is for the caller to leave out.
#[inline]
pub(super) fn write_price(price: Price, text: &mut [u8; 32]) -> usize {
    let (unit, magnitude) = (Price::UNIT.unsigned_abs(), price.0.unsigned_abs());
    let mut at = 0;
    if price.0 < 0 {
        text[0] = b'-';
        at = 1;
    }
    let mut whole = [0; 20];
    let digits = write_u64(magnitude / unit, &mut whole);
    // At most ten digits stand before the point.
    text[at..at + 20].copy_from_slice(&whole);
    at += digits;
    let mut fraction = magnitude % unit;
    if fraction == 0 {
        return at;
    }
    text[at] = b'.';
    at += 1;
    while fraction > 0 {
        let [tens, units] = two_digits(fraction / 10_000_000);
        text[at] = tens;
        text[at + 1] = units;
        at += 2;
        fraction = fraction % 10_000_000 * 100;
    }
    if text[at - 1] == b'0' { at - 1 } else { at }
}

/// Two digits of a number below 100.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "both digits are below 10")]
pub(super) const fn two_digits(value: u64) -> [u8; 2] {
    let tens = (value * 103) >> 10;
    [b'0' + tens as u8, b'0' + (value - tens * 10) as u8]
}

impl Digits {
    /// The decimal text of `value`.
    #[inline]
    #[must_use]
    pub fn new(value: u64) -> Self {
        let mut bytes = [0; 20];
        let length = write_u64(value, &mut bytes);
        Self { bytes, length }
    }

    /// The text.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_digits_only() {
        assert_eq!(parse_u64(b"007"), Some(7));
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        for text in [
            &b""[..],
            b"-1",
            b"+1",
            b"1.0",
            b" 1",
            b"18446744073709551616",
            b"0000000000000000000000x",
        ] {
            assert_eq!(parse_u64(text), None);
        }
    }

    #[test]
    fn quantities_are_whole() {
        assert_eq!(parse_quantity(b"100"), Some(100));
        assert_eq!(parse_quantity(b"100.00"), Some(100));
        assert_eq!(parse_quantity(b"100."), Some(100));
        for text in [&b""[..], b".", b".0", b"1.5", b"-1", b"1.0.0", b"1e2"] {
            assert_eq!(parse_quantity(text), None);
        }
    }

    proptest! {
        #[test]
        fn prices_are_read_as_they_are_elsewhere(text in "-?[0-9]{0,19}[.]?[0-9]{0,12}[.x]?") {
            prop_assert_eq!(parse_price(text.as_bytes()), Price::parse(text.as_bytes()));
        }

        #[test]
        fn signed_numbers_come_back(value in any::<i32>()) {
            let mut text = [0; 11];
            let length = write_i32(value, &mut text);
            prop_assert_eq!(parse_i32(&text[..length]), Some(value));
        }

        #[test]
        fn digits_parse_to_their_number(value in any::<u64>()) {
            prop_assert_eq!(parse_u64(Digits::new(value).as_bytes()), Some(value));
        }
    }
}
