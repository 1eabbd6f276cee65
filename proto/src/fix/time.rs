//! UTC timestamps as text, `YYYYMMDD-HH:MM:SS` with 0, 3, 6 or 9 decimals.
//!
//! The calendar is the proleptic Gregorian one, by arithmetic on days since 1970: years are counted from March, so that
//! the leap day is the last day of a year and month lengths follow one formula.

use super::TimePrecision;
use super::value::{digit_pairs, two_digits};
use types::Timestamp;

/// The longest timestamp, with nanoseconds: bytes.
pub const TIMESTAMP_LENGTH: usize = 27;

/// The time that a text tells. Days are checked against the length of their month; second 60 is a leap second and counts
/// as the first of the next minute.
///
/// `None` when the text is no timestamp, before 1970, or after what 64 bits of nanoseconds hold (the year 2554).
#[must_use]
pub fn parse_timestamp(text: &[u8]) -> Option<Timestamp> {
    let mut date = KnownDate::NONE;
    date.parse_timestamp(text)
}

/// A date that was read before, and what it means. Times that come one after the other are nearly always of the same day.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownDate {
    text: [u8; 8],
    days: u64,
}

impl KnownDate {
    /// No date.
    pub(super) const NONE: Self = Self { text: [0; 8], days: 0 };

    /// The time that a text tells, as [`parse_timestamp`]. Its date is known from now on.
    #[inline]
    pub(super) fn parse_timestamp(&mut self, text: &[u8]) -> Option<Timestamp> {
        let (date, rest) = text.split_first_chunk::<8>()?;
        let (dash, rest) = rest.split_first()?;
        let (clock, fraction) = rest.split_first_chunk::<8>()?;
        let &[h1, h0, colon1, m1, m0, colon2, s1, s0] = clock;
        if *dash != b'-' || colon1 != b':' || colon2 != b':' {
            return None;
        }
        let [_, hour, minute, second] = four_pairs([b'0', b'0', h1, h0, m1, m0, s1, s0])?;
        if *date != self.text {
            *self = Self {
                text: *date,
                days: days_of(*date)?,
            };
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let seconds = (self.days * 24 + hour) * 3_600 + minute * 60 + second;
        let nanos = seconds.checked_mul(NANOS)?.checked_add(parse_fraction(fraction)?)?;
        Some(Timestamp(nanos))
    }
}

/// Days since 1970-01-01 of a date, `YYYYMMDD`.
fn days_of(date: [u8; 8]) -> Option<u64> {
    let [century, year, month, day] = four_pairs(date)?;
    let year = century * 100 + year;
    if year < 1970 || !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

/// Whether a text is a time of day, `HH:MM:SS` with 0, 3, 6 or 9 decimals.
pub(super) fn is_clock(text: &[u8]) -> bool {
    let mut time = *b"19700101-00:00:00.000000000";
    match time.get_mut(9..9 + text.len()) {
        Some(place) => {
            place.copy_from_slice(text);
            parse_timestamp(&time[..9 + text.len()]).is_some()
        }
        None => false,
    }
}

/// Whether a text is a date, `YYYYMMDD`.
pub(super) fn is_date(text: &[u8]) -> bool {
    let mut time = *b"00000000-00:00:00";
    time[..8].copy_from_slice(match text.first_chunk::<8>() {
        Some(date) if text.len() == 8 => date,
        _ => return false,
    });
    parse_timestamp(&time).is_some()
}

/// Writes a timestamp and returns how many bytes of `text` it took.
pub fn write_timestamp(time: Timestamp, precision: TimePrecision, text: &mut [u8; TIMESTAMP_LENGTH]) -> usize {
    let seconds = time.0 / NANOS;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    put_two(text, 0, year / 100);
    put_two(text, 2, year % 100);
    put_two(text, 4, month);
    put_two(text, 6, day);
    text[8] = b'-';
    put_two(text, 9, of_day / 3_600);
    text[11] = b':';
    put_two(text, 12, of_day / 60 % 60);
    text[14] = b':';
    put_two(text, 15, of_day % 60);
    if precision == TimePrecision::Seconds {
        return 17;
    }
    text[17] = b'.';
    // Pairs of digits, as many as are asked for; what is written beyond them is not counted.
    let fraction = time.0 % NANOS;
    put_two(text, 18, fraction / 10_000_000);
    put_two(text, 20, fraction / 100_000 % 100);
    if precision == TimePrecision::Milliseconds {
        return 21;
    }
    put_two(text, 22, fraction / 1_000 % 100);
    if precision == TimePrecision::Microseconds {
        return 24;
    }
    put_two(text, 24, fraction / 10 % 100);
    text[26] = two_digits(fraction % 10)[1];
    TIMESTAMP_LENGTH
}

/// Nanoseconds of `.sss`, `.ssssss` or `.sssssssss`, or of nothing.
fn parse_fraction(text: &[u8]) -> Option<u64> {
    let (digits, scale) = match text {
        [] => return Some(0),
        // The usual case, without a loop.
        &[b'.', hundreds, tens, units] => {
            let digits = [hundreds, tens, units].map(|byte| u64::from(byte.wrapping_sub(b'0')));
            let [hundreds, tens, units] = digits;
            let millis = hundreds * 100 + tens * 10 + units;
            return digits.iter().all(|&digit| digit <= 9).then_some(millis * 1_000_000);
        }
        [b'.', digits @ ..] => match digits.len() {
            6 => (digits, 1_000),
            9 => (digits, 1),
            _ => return None,
        },
        _ => return None,
    };
    Some(super::parse_u64(digits)? * scale)
}

/// Four numbers of two digits each.
fn four_pairs(digits: [u8; 8]) -> Option<[u64; 4]> {
    let pairs = digit_pairs(digits)?;
    Some([pairs & 0xff, pairs >> 16 & 0xff, pairs >> 32 & 0xff, pairs >> 48])
}

/// `value` is below 100.
fn put_two(text: &mut [u8; TIMESTAMP_LENGTH], at: usize, value: u64) {
    [text[at], text[at + 1]] = two_digits(value);
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date from then on.
const fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year_from_march = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year_from_march / 4 - year_from_march / 100 + year_from_march / 400;
    year_from_march * 365 + leap_days + day_of_year - MARCH_0_TO_1970
}

/// Year, month and day of a count of days since 1970-01-01.
const fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + MARCH_0_TO_1970;
    let era = days / DAYS_IN_ERA;
    let day_of_era = days % DAYS_IN_ERA;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

const NANOS: u64 = 1_000_000_000;

/// Days from 0000-03-01 to 1970-01-01.
const MARCH_0_TO_1970: u64 = 719_468;

/// Days in 400 years.
const DAYS_IN_ERA: u64 = 146_097;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(time: u64, precision: TimePrecision) -> alloc::string::String {
        let mut bytes = [0; TIMESTAMP_LENGTH];
        let length = write_timestamp(Timestamp(time), precision, &mut bytes);
        alloc::string::String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn known_times_are_written_and_read() {
        // Seconds from `date -u -d … +%s`.
        for (seconds, expected) in [
            (0, "19700101-00:00:00"),
            (951_782_400, "20000229-00:00:00"),
            (1_709_251_199, "20240229-23:59:59"),
            (1_772_323_200, "20260301-00:00:00"),
            (4_107_542_399, "21000228-23:59:59"),
            (4_107_542_400, "21000301-00:00:00"),
        ] {
            let time = seconds * NANOS + 123_456_789;
            for (precision, decimals) in [
                (TimePrecision::Seconds, ""),
                (TimePrecision::Milliseconds, ".123"),
                (TimePrecision::Microseconds, ".123456"),
                (TimePrecision::Nanoseconds, ".123456789"),
            ] {
                assert_eq!(text(time, precision), alloc::format!("{expected}{decimals}"));
            }
            assert_eq!(parse_timestamp(expected.as_bytes()), Some(Timestamp(seconds * NANOS)));
        }
    }

    #[test]
    fn decimals_are_three_six_or_nine() {
        let parse = |text: &str| parse_timestamp(text.as_bytes());
        assert_eq!(parse("19700101-00:00:01.250"), Some(Timestamp(1_250_000_000)));
        assert_eq!(parse("19700101-00:00:01.250001"), Some(Timestamp(1_250_001_000)));
        assert_eq!(parse("19700101-00:00:01.250000001"), Some(Timestamp(1_250_000_001)));
        assert_eq!(parse("19700101-00:00:60"), Some(Timestamp(60 * NANOS)));
    }

    #[test]
    fn text_that_is_no_time_is_refused() {
        for text in [
            "",
            "19700101",
            "19700101-00:00",
            "19691231-23:59:59",
            "20230229-00:00:00",
            "20240230-00:00:00",
            "20240431-00:00:00",
            "20240100-00:00:00",
            "20241301-00:00:00",
            "20240101-24:00:00",
            "20240101-00:60:00",
            "20240101-00:00:61",
            "20240101 00:00:00",
            "20240101-00:00:00.",
            "20240101-00:00:00.1",
            "20240101-00:00:00.12x",
            "20240101-00:00:00Z",
            "2024x101-00:00:00",
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_time_reads_as_itself(time in any::<u64>()) {
            for (precision, unit) in [
                (TimePrecision::Seconds, NANOS),
                (TimePrecision::Milliseconds, 1_000_000),
                (TimePrecision::Microseconds, 1_000),
                (TimePrecision::Nanoseconds, 1),
            ] {
                let read = parse_timestamp(text(time, precision).as_bytes());
                prop_assert_eq!(read, Some(Timestamp(time - time % unit)));
            }
        }
    }
}
