//! When a session may be used, in a time zone of its own.
//!
//! A schedule has a start and an end, local times, and the days on which it begins; a session that ends before it starts
//! goes over midnight. Equal start and end mean that one session day follows the other without a pause. Time zones are
//! those of the tz database that is built in, so they are the same on every host. A time that a clock change skips is taken
//! as much later as the clock is put forward; of one that comes twice, the first is meant.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant};
use types::Timestamp;

/// The schedule of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    zone: TimeZone,
    start: Time,
    end: Time,
    /// From Monday on: whether a session day begins.
    days: [bool; 7],
}

/// Where a time stands in a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hours {
    /// When the session day that runs began; `None` outside the hours.
    pub since: Option<Timestamp>,
    /// When this changes.
    pub until: Timestamp,
}

/// Days around a time among which the session day that runs, or the next one, is: a week, and one either way.
const DAYS_AROUND: std::ops::RangeInclusive<i64> = -2..=8;

impl Schedule {
    /// A schedule from words: a zone such as `Europe/London`, times such as `08:00:00`, days such as `Mon`; without days,
    /// every day.
    ///
    /// # Errors
    /// What is none of these.
    pub fn parse(zone: &str, start: &str, end: &str, days: Option<&[String]>) -> Result<Self, String> {
        let zone = TimeZone::get(zone).map_err(|_| format!("\"{zone}\" is no time zone, such as Europe/London"))?;
        let time = |text: &str| {
            text.parse::<Time>()
                .map_err(|_| format!("\"{text}\" is no time, such as 08:00:00"))
        };
        let days = match days {
            None => [true; 7],
            Some([]) => return Err("days is empty".to_owned()),
            Some(names) => {
                let mut days = [false; 7];
                for name in names {
                    let place = DAY_NAMES.iter().position(|known| known == name);
                    let place = place.ok_or_else(|| format!("\"{name}\" is no day: {}", DAY_NAMES.join(", ")))?;
                    days[place] = true;
                }
                days
            }
        };
        Ok(Self {
            zone,
            start: time(start)?,
            end: time(end)?,
            days,
        })
    }

    /// Where `now` stands.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Hours {
        let mut since = None;
        // Only a date that no calendar has leaves this as it is: looked at again soon.
        let mut until = now + types::Duration::from_secs(3_600);
        let Some(today) = self.date(now) else {
            return Hours { since, until };
        };
        let days = DAYS_AROUND.filter_map(|days| today.checked_add(Span::new().days(days)).ok());
        for (begin, end) in days.filter_map(|date| self.session_day(date)) {
            if begin <= now && now < end {
                since = Some(begin);
                until = end;
            } else if begin > now {
                if since.is_none() {
                    until = begin;
                }
                break;
            }
        }
        Hours { since, until }
    }

    fn date(&self, now: Timestamp) -> Option<Date> {
        let instant = Instant::from_nanosecond(i128::from(now.0)).ok()?;
        Some(self.zone.to_datetime(instant).date())
    }

    /// The session day that begins on a date, if one does.
    fn session_day(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days[usize::try_from(date.weekday().to_monday_zero_offset()).ok()?] {
            return None;
        }
        let last = if self.start < self.end {
            date
        } else {
            date.tomorrow().ok()?
        };
        Some((self.instant(date, self.start)?, self.instant(last, self.end)?))
    }

    fn instant(&self, date: Date, time: Time) -> Option<Timestamp> {
        let instant = self.zone.to_timestamp(date.to_datetime(time)).ok()?;
        u64::try_from(instant.as_nanosecond()).ok().map(Timestamp)
    }
}

const DAY_NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(zone: &str, start: &str, end: &str, days: Option<&[&str]>) -> Schedule {
        let days = days.map(|days| days.iter().map(|&day| day.to_owned()).collect::<Vec<_>>());
        Schedule::parse(zone, start, end, days.as_deref()).expect("a schedule")
    }

    fn utc(text: &str) -> Timestamp {
        let instant = text.parse::<Instant>().expect("a time");
        Timestamp(u64::try_from(instant.as_nanosecond()).expect("after 1970"))
    }

    fn hours(since: &str, until: &str) -> Hours {
        Hours {
            since: (!since.is_empty()).then(|| utc(since)),
            until: utc(until),
        }
    }

    #[test]
    fn hours_are_local_and_follow_the_clock_change() {
        let london = schedule("Europe/London", "08:00:00", "17:00:00", None);
        // The clock goes forward on 29 March 2026: the next morning begins an hour earlier in UTC.
        assert_eq!(
            london.at(utc("2026-03-28T12:00:00Z")),
            hours("2026-03-28T08:00:00Z", "2026-03-28T17:00:00Z")
        );
        assert_eq!(
            london.at(utc("2026-03-28T17:00:00Z")),
            hours("", "2026-03-29T07:00:00Z")
        );
        assert_eq!(
            london.at(utc("2026-03-29T07:00:00Z")),
            hours("2026-03-29T07:00:00Z", "2026-03-29T16:00:00Z")
        );
    }

    #[test]
    fn equal_start_and_end_go_on_without_a_pause() {
        let nonstop = schedule("America/New_York", "17:00:00", "17:00:00", None);
        assert_eq!(
            nonstop.at(utc("2026-11-30T21:59:59Z")),
            hours("2026-11-29T22:00:00Z", "2026-11-30T22:00:00Z")
        );
        assert_eq!(
            nonstop.at(utc("2026-11-30T22:00:00Z")),
            hours("2026-11-30T22:00:00Z", "2026-12-01T22:00:00Z")
        );
    }

    #[test]
    fn a_session_over_midnight_belongs_to_the_day_it_began_on() {
        let night = schedule("UTC", "22:00:00", "06:00:00", Some(&["Fri"]));
        // 27 November 2026 is a Friday.
        assert_eq!(
            night.at(utc("2026-11-28T05:59:59Z")),
            hours("2026-11-27T22:00:00Z", "2026-11-28T06:00:00Z")
        );
        assert_eq!(night.at(utc("2026-11-28T06:00:00Z")), hours("", "2026-12-04T22:00:00Z"));
    }

    #[test]
    fn a_weekend_is_outside_the_hours() {
        let week = schedule(
            "Europe/Zurich",
            "00:00:00",
            "00:00:00",
            Some(&["Mon", "Tue", "Wed", "Thu", "Fri"]),
        );
        assert_eq!(week.at(utc("2026-11-28T12:00:00Z")), hours("", "2026-11-29T23:00:00Z"));
    }

    #[test]
    fn what_is_no_schedule_is_named() {
        for (zone, start, end, days, word) in [
            ("Mars/Base", "08:00:00", "17:00:00", None, "Mars/Base"),
            ("UTC", "25:00:00", "17:00:00", None, "25:00:00"),
            ("UTC", "08:00:00", "five", None, "five"),
            ("UTC", "08:00:00", "17:00:00", Some("Funday"), "Funday"),
        ] {
            let days = days.map(|day| vec![day.to_owned()]);
            let error = Schedule::parse(zone, start, end, days.as_deref()).expect_err("none");
            assert!(error.contains(word), "{error}");
        }
        assert!(Schedule::parse("UTC", "08:00:00", "17:00:00", Some(&[])).is_err());
    }

    proptest! {
        #[test]
        fn a_change_is_always_ahead_and_nothing_changes_before_it(
            seconds in 1_700_000_000_u64..2_000_000_000,
            zone in prop::sample::select(vec!["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe"]),
            start in 0_u32..24,
            end in 0_u32..24,
            days in prop::collection::vec(any::<bool>(), 7),
        ) {
            let names = (0..7).filter(|&day| days[day] || day == 3).map(|day| DAY_NAMES[day]).collect::<Vec<_>>();
            let schedule = schedule(zone, &format!("{start:02}:30:00"), &format!("{end:02}:30:00"), Some(&names));
            let now = Timestamp(seconds * 1_000_000_000);
            let hours = schedule.at(now);
            prop_assert!(hours.until > now);
            prop_assert!(hours.since.is_none_or(|since| since <= now));
            let between = Timestamp(now.0 + (hours.until.0 - now.0) / 2);
            prop_assert_eq!(schedule.at(between), hours);
            prop_assert_ne!(schedule.at(hours.until), hours);
        }
    }
}
