//! The retransmission timeout that measured round trips give, within our bounds.

use crate::rtt::RoundTrip;
use types::Duration;

/// Smoothed round trip and timeout towards one peer.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    floor: Duration,
    ceiling: Duration,
    /// How long the peer may hold back an acknowledgement.
    ack_delay: Duration,
    round_trip: RoundTrip,
    /// Timeouts in a row.
    backoff: u32,
}

impl Rtt {
    pub(super) fn new(floor: Duration, ceiling: Duration) -> Self {
        Self {
            floor,
            ceiling,
            ack_delay: Duration(0),
            round_trip: RoundTrip::default(),
            backoff: 0,
        }
    }

    /// A new session: the peer says how long it holds back acknowledgements. Measurements stay, the way is the same.
    pub(super) fn start(&mut self, ack_delay: Duration) {
        self.ack_delay = ack_delay;
        self.backoff = 0;
    }

    /// Takes in a round trip. Never one of a message that was transmitted twice: nobody knows which one was acknowledged.
    pub(super) fn sample(&mut self, round_trip: Duration) {
        self.round_trip.sample(round_trip);
    }

    /// Something was acknowledged: the peer is there, so the timeout need not back off.
    pub(super) fn progress(&mut self) {
        self.backoff = 0;
    }

    pub(super) fn timed_out(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// The timeout, backed off.
    pub(super) fn timeout(&self) -> Duration {
        self.backed_off(self.backoff)
    }

    /// The timeout after a number of vain attempts.
    pub(super) fn backed_off(&self, attempts: u32) -> Duration {
        let once = match self.round_trip.timeout() {
            None => self.ceiling.0.div_ceil(2),
            Some(measured) => measured.0 + self.ack_delay.0,
        };
        let once = once.clamp(self.floor.0, self.ceiling.0);
        Duration((once << attempts.min(BACKOFF_MAX)).min(self.ceiling.0))
    }
}

/// Doublings of the timeout; the ceiling ends them earlier.
const BACKOFF_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt() -> Rtt {
        let mut rtt = Rtt::new(Duration::from_micros(50), Duration::from_millis(2));
        rtt.start(Duration::from_micros(10));
        rtt
    }

    #[test]
    fn the_timeout_follows_the_round_trip_between_its_bounds() {
        let mut rtt = rtt();
        assert_eq!(rtt.timeout(), Duration::from_millis(1));
        for _ in 0..100 {
            rtt.sample(Duration::from_micros(8));
        }
        assert_eq!(rtt.timeout(), Duration::from_micros(50));
        for _ in 0..100 {
            rtt.sample(Duration::from_micros(400));
        }
        let timeout = rtt.timeout();
        assert!((400_000..450_000).contains(&timeout.0), "{timeout}");
        rtt.sample(Duration::from_secs(1));
        assert_eq!(rtt.timeout(), Duration::from_millis(2));
    }

    #[test]
    fn timeouts_in_a_row_double_and_progress_ends_that() {
        let mut rtt = rtt();
        for _ in 0..100 {
            rtt.sample(Duration::from_micros(8));
        }
        rtt.timed_out();
        assert_eq!(rtt.timeout(), Duration::from_micros(100));
        for _ in 0..100 {
            rtt.timed_out();
        }
        assert_eq!(rtt.timeout(), Duration::from_millis(2));
        rtt.progress();
        assert_eq!(rtt.timeout(), Duration::from_micros(50));
    }
}
