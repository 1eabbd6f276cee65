//! When the auctions of a trading day are.

use super::record::Timer;
use types::Timestamp;

/// Times of day, UTC, each later than the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuctionTimes {
    /// Nanoseconds since midnight of each of [`STEPS`].
    times_ns: [u64; STEPS.len()],
}

impl AuctionTimes {
    /// From times of day as `hh:mm:ss`: when the opening call begins, when it ends, when the closing call begins, when it
    /// ends.
    ///
    /// # Errors
    /// One is no time of day, or they are out of order.
    pub fn parse(times: [&str; STEPS.len()]) -> Result<Self, String> {
        let mut times_ns = [0; STEPS.len()];
        for (ns, text) in times_ns.iter_mut().zip(times) {
            *ns = time_of_day_ns(text).ok_or_else(|| format!("{text:?} is no time of day; write it as hh:mm:ss"))?;
        }
        if times_ns.is_sorted_by(|one, next| one < next) {
            Ok(Self { times_ns })
        } else {
            Err("each time must be later than the one before".to_owned())
        }
    }

    /// What the time has come for, after so many steps of the day.
    pub(super) fn due(&self, steps_done: usize, now: Timestamp) -> Option<Timer> {
        let time_ns = self.times_ns.get(steps_done)?;
        (now.0 % DAY_NS >= *time_ns).then(|| STEPS[steps_done])
    }
}

fn time_of_day_ns(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let mut part = |below: u64| -> Option<u64> {
        let digits = parts
            .next()
            .filter(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok().filter(|&number: &u64| number < below)
    };
    let (hour, minute, second) = (part(24)?, part(60)?, part(60)?);
    parts
        .next()
        .is_none()
        .then_some(((hour * 60 + minute) * 60 + second) * 1_000_000_000)
}

/// The steps of a day, in order.
const STEPS: [Timer; 4] = [Timer::OpeningCall, Timer::Uncross, Timer::ClosingCall, Timer::Uncross];
/// Nanoseconds in a day.
const DAY_NS: u64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_due_from_its_time_on_and_after_those_before() {
        let times = AuctionTimes::parse(["09:25:00", "09:30:00", "15:55:00", "16:00:00"]).unwrap();
        let at = |hour: u64, minute: u64| Timestamp(20_000 * DAY_NS + (hour * 60 + minute) * 60_000_000_000);
        assert_eq!(times.due(0, at(9, 24)), None);
        assert_eq!(times.due(0, at(9, 25)), Some(Timer::OpeningCall));
        assert_eq!(times.due(1, at(9, 29)), None);
        assert_eq!(times.due(1, at(20, 0)), Some(Timer::Uncross));
        assert_eq!(times.due(2, at(20, 0)), Some(Timer::ClosingCall));
        assert_eq!(times.due(4, at(20, 0)), None);
    }

    #[test]
    fn times_are_times_of_day_in_order() {
        for wrong in ["9:25:00", "09:25", "09:25:00:00", "24:00:00", "09:60:00", "+9:25:00"] {
            assert!(
                AuctionTimes::parse([wrong, "09:30:00", "15:55:00", "16:00:00"]).is_err(),
                "{wrong}"
            );
        }
        assert!(AuctionTimes::parse(["09:25:00", "09:25:00", "15:55:00", "16:00:00"]).is_err());
    }
}
