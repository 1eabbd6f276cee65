//! Whether a value is of a field's type.

use super::FieldType;
use crate::fix::time::{is_clock, is_date, parse_timestamp};
use crate::fix::value::is_digits;

impl FieldType {
    /// Whether a value that is not empty is of this type.
    #[inline]
    pub(super) fn holds(self, value: &[u8]) -> bool {
        match self {
            Self::Text | Self::Codes | Self::Data => true,
            Self::Unsigned | Self::NumInGroup => is_digits(value),
            Self::Int => is_digits(value.strip_prefix(b"-").unwrap_or(value)),
            Self::Decimal => is_decimal(value),
            Self::Char => value.len() == 1,
            Self::Boolean => matches!(value, b"Y" | b"N"),
            Self::UtcTimestamp => parse_timestamp(value).is_some(),
            Self::UtcTimeOnly => is_clock(value),
            Self::Date => is_date(value),
            Self::MonthYear => is_month_year(value),
        }
    }
}

/// Digits with at most one point and at least one digit, after an optional minus sign.
#[inline]
fn is_decimal(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let mut has_point = false;
    for &byte in text {
        if !byte.is_ascii_digit() {
            if byte != b'.' || has_point {
                return false;
            }
            has_point = true;
        }
    }
    text.len() > usize::from(has_point)
}

/// A month, with a day of it or a week: `w1` to `w5`.
fn is_month_year(text: &[u8]) -> bool {
    match *text {
        [ref month @ .., b'w', b'1'..=b'5'] if month.len() == 6 => is_month(month),
        _ if text.len() == 6 => is_month(text),
        _ => is_date(text),
    }
}

/// `YYYYMM`.
fn is_month(text: &[u8]) -> bool {
    let mut date = *b"00000001";
    date[..6].copy_from_slice(text);
    is_date(&date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_holds_its_values_and_no_others() {
        use FieldType::{
            Boolean, Char, Codes, Data, Date, Decimal, Int, MonthYear, NumInGroup, Text, Unsigned, UtcTimeOnly,
            UtcTimestamp,
        };
        for (field_type, good, bad) in [
            (Int, &["0", "-5", "007"][..], &["-", "+1", "1.0", "x", "--1"][..]),
            (Unsigned, &["0", "12345678901234567890123"], &["-1", "1 ", "1.0"]),
            (NumInGroup, &["0", "2"], &["-1", "two"]),
            (
                Decimal,
                &["0", "1.", ".5", "-1.25", "002000.00"],
                &["+200.00", ".", "-", "1.2.3", "1,5", "1e5", "--1"],
            ),
            (Char, &["A", " "], &["AB"]),
            (Boolean, &["Y", "N"], &["y", "1", "YN"]),
            (Text, &["anything at all"], &[]),
            (Codes, &["G 6"], &[]),
            (Data, &["a\x01b"], &[]),
            (
                UtcTimestamp,
                &["20260301-10:00:00", "20260301-10:00:00.123456789"],
                &["20260301", "20261301-10:00:00"],
            ),
            (
                UtcTimeOnly,
                &["10:00:00", "23:59:60.250"],
                &["10:00", "24:00:00", "10:00:00.1"],
            ),
            (Date, &["20260301", "20240229"], &["20260230", "2026-03-01", "202603"]),
            (
                MonthYear,
                &["202603", "20260331", "202603w5"],
                &["202613", "202603w6", "2026", "20260332"],
            ),
        ] {
            for value in good {
                assert!(field_type.holds(value.as_bytes()), "{field_type:?} {value}");
            }
            for value in bad {
                assert!(!field_type.holds(value.as_bytes()), "{field_type:?} {value}");
            }
        }
    }
}
