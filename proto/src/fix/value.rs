//! Values of fields: numbers as text, both ways.

/// A number as decimal text, without allocation.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    bytes: [u8; 20],
    start: u8,
}

/// A run of decimal digits, leading zeros allowed. `None` for anything else, or when it does not fit.
#[inline]
#[must_use]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    // 18 digits always fit; more are checked.
    if text.len() > 18 {
        return parse_long(text);
    }
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

/// A quantity: whole units, with or without decimals that are zero. `None` for anything else.
#[inline]
#[must_use]
pub fn parse_quantity(text: &[u8]) -> Option<u64> {
    match text.iter().position(|&byte| byte == b'.') {
        None => parse_u64(text),
        Some(point) => {
            let decimals = text.get(point + 1..)?;
            if decimals.iter().any(|&byte| byte != b'0') {
                return None;
            }
            parse_u64(text.get(..point)?)
        }
    }
}

/// `Y` or `N`.
#[inline]
pub(super) const fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"Y" => Some(true),
        b"N" => Some(false),
        _ => None,
    }
}

impl Digits {
    /// The decimal text of `value`.
    #[inline]
    #[must_use]
    pub const fn new(mut value: u64) -> Self {
        let mut bytes = [b'0'; 20];
        let mut start = 20_u8;
        loop {
            start -= 1;
            bytes[start as usize] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                return Self { bytes, start };
            }
        }
    }

    /// The text.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
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
        fn digits_parse_to_their_number(value in any::<u64>()) {
            prop_assert_eq!(parse_u64(Digits::new(value).as_bytes()), Some(value));
        }
    }
}
