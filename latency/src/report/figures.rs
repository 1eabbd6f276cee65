//! How figures look, in every form of the report.

/// What stands for a figure that there is not.
pub(super) const NONE: &str = "–";

/// Nanoseconds as microseconds with two decimals: `1,234.56`. No unit.
pub(super) fn micros(ns: i64) -> String {
    let hundredths = (ns.unsigned_abs() + 5) / 10;
    let sign = if ns < 0 && hundredths > 0 { "−" } else { "" };
    format!("{sign}{}.{:02}", count(hundredths / 100), hundredths % 100)
}

/// The same, or a dash.
pub(super) fn micros_or_none(ns: Option<i64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), micros)
}

/// A count with commas: `1,234,567`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `2.31×`, or a dash.
pub(super) fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => NONE.to_owned(),
        Some(ratio) if ratio >= 100.0 => format!("{ratio:.0}×"),
        Some(ratio) => format!("{ratio:.2}×"),
    }
}

/// UTC nanoseconds as `2026-03-01 12:34:56 UTC`.
pub(super) fn utc(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years, so that the leap day ends a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(micros(0), "0.00");
        assert_eq!(micros(4), "0.00");
        assert_eq!(micros(-4), "0.00");
        assert_eq!(micros(-1_250), "−1.25");
        assert_eq!(micros(1_234_567), "1,234.57");
        assert_eq!(micros(999_995), "1,000.00");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(12_345_678), "12,345,678");
        assert_eq!(ratio(Some(1.5)), "1.50×");
        assert_eq!(ratio(None), "–");
    }

    #[test]
    fn a_time_reads_as_its_date() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_735_689_599_999_999_999), "2024-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_400_000_000_000), "2100-03-01 00:00:00 UTC");
    }
}
