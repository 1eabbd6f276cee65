//! When a replay sends which message: planned from one fixed moment, so that a late message never delays those after it.

use std::fmt;
use std::str::FromStr;
use types::{Duration, Timestamp};

/// How fast a feed is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// As the feed's own times say, this many thousandths as fast: 1000 is real time.
    Speed {
        /// More than 0.
        permille: u32,
    },
    /// So many messages a second, evenly, whatever their times.
    Rate {
        /// More than 0.
        messages_per_second: u32,
    },
    /// As fast as it can.
    Unpaced,
}

/// A pace with its fixed moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pace: Pace,
    start: Timestamp,
    /// Time of the first paced message, ns since midnight.
    first_ns: u64,
    /// Messages planned so far.
    planned: u64,
}

/// Text that is no pace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaceError(String);

impl Pace {
    /// Real time.
    pub const REAL_TIME: Self = Self::Speed { permille: 1000 };
}

impl Schedule {
    /// Starts now with a message whose own time is `first_ns`.
    pub(crate) const fn new(pace: Pace, start: Timestamp, first_ns: u64) -> Self {
        Self {
            pace,
            start,
            first_ns,
            planned: 0,
        }
    }

    /// When the next message, whose own time is `time_ns`, is to be sent. Ask once a message.
    pub(crate) fn plan(&mut self, time_ns: u64) -> Timestamp {
        let offset = match self.pace {
            Pace::Speed { permille } => scale(time_ns.saturating_sub(self.first_ns), 1000, permille),
            Pace::Rate { messages_per_second } => scale(self.planned, 1_000_000_000, messages_per_second),
            Pace::Unpaced => 0,
        };
        self.planned += 1;
        self.start + Duration(offset)
    }
}

/// `value * multiplier / divisor` without losing bits on the way.
fn scale(value: u64, multiplier: u64, divisor: u32) -> u64 {
    let scaled = u128::from(value) * u128::from(multiplier) / u128::from(divisor.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl FromStr for Pace {
    type Err = PaceError;

    /// `1x`, `2.5x`, `unpaced`, or `5000/s`.
    fn from_str(text: &str) -> Result<Self, PaceError> {
        let error = || PaceError(text.to_owned());
        if text == "unpaced" {
            return Ok(Self::Unpaced);
        }
        if let Some(rate) = text.strip_suffix("/s") {
            return match rate.parse() {
                Ok(messages_per_second @ 1..) => Ok(Self::Rate { messages_per_second }),
                _ => Err(error()),
            };
        }
        // A decimal with 9 places is at hand; three of them are kept.
        let speed = text
            .strip_suffix('x')
            .and_then(|speed| types::Price::parse(speed.as_bytes()));
        let permille = speed.and_then(|speed| u32::try_from(speed.0 / 1_000_000).ok());
        match permille {
            Some(permille @ 1..) => Ok(Self::Speed { permille }),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Speed { permille } => write!(f, "{}x", types::Price(i64::from(permille) * 1_000_000)),
            Self::Rate { messages_per_second } => write!(f, "{messages_per_second}/s"),
            Self::Unpaced => f.write_str("unpaced"),
        }
    }
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no pace: write 1x, 2.5x, unpaced, or 5000/s", self.0)
    }
}

impl std::error::Error for PaceError {}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000);

    #[test]
    fn a_pace_comes_back_from_its_text() {
        for text in ["1x", "2.5x", "0.001x", "unpaced", "5000/s"] {
            assert_eq!(text.parse::<Pace>().map(|pace| pace.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "x", "0x", "-1x", "0.0001x", "1", "0/s", "-5/s", "1.5/s", "fast"] {
            assert!(text.parse::<Pace>().is_err(), "{text}");
        }
    }

    #[test]
    fn speed_scales_the_distance_from_the_first_message() {
        let mut schedule = Schedule::new(Pace::Speed { permille: 2500 }, START, 500);
        let planned: Vec<u64> = [500, 3_000, 3_000, 100]
            .map(|ns| schedule.plan(ns).since(START).0)
            .to_vec();
        assert_eq!(planned, [0, 1_000, 1_000, 0]);
    }

    #[test]
    fn a_rate_spaces_messages_evenly_and_without_drift() {
        let mut schedule = Schedule::new(Pace::Rate { messages_per_second: 3 }, START, 0);
        let planned: Vec<u64> = (0..7).map(|_| schedule.plan(9).since(START).0).collect();
        assert_eq!(planned[..4], [0, 333_333_333, 666_666_666, 1_000_000_000]);
        assert_eq!(planned[6], 2_000_000_000);
    }

    #[test]
    fn a_whole_day_at_a_crawl_does_not_overflow() {
        let mut schedule = Schedule::new(Pace::Speed { permille: 1 }, START, 0);
        assert_eq!(
            schedule.plan(86_400_000_000_000),
            START + Duration(86_400_000_000_000_000)
        );
        assert_eq!(schedule.plan(u64::MAX), Timestamp(u64::MAX));
    }
}
