//! How long to wait for an answer: as long as the settings say, and longer where round trips are.

use super::config::Config;
use crate::rtt::RoundTrip;
use types::{Duration, Timestamp};

/// The timeout towards one peer.
#[derive(Debug)]
pub(super) struct Timeout {
    least: Duration,
    /// Of the first try: a loss is to be repaired before long, however long the peer once had no processor.
    first_max: Duration,
    max: Duration,
    /// What does not ask is answered so much later; the peer's settings are taken to be ours.
    ack_delay: Duration,
    round_trip: RoundTrip,
    /// A packet that asked for its acknowledgement, and when it first left. It may leave again before it is answered: then
    /// the round trip was shorter, but whoever answers late is waited for longer the next time.
    timed: Option<(u64, Timestamp)>,
}

impl Timeout {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            least: config.timeout,
            first_max: Duration(config.timeout.0.saturating_mul(FIRST_MAX)),
            max: config.timeout_max,
            ack_delay: config.ack_delay,
            round_trip: RoundTrip::default(),
            timed: None,
        }
    }

    /// A packet leaves for the first time, and asks.
    pub(super) fn on_asked(&mut self, now: Timestamp, packet: u64) {
        self.timed.get_or_insert((packet, now));
    }

    /// All packets below `end` are answered.
    pub(super) fn on_answered(&mut self, now: Timestamp, end: u64) {
        if let Some((_, asked)) = self.timed.take_if(|(timed, _)| *timed < end) {
            self.round_trip.sample(now.since(asked));
        }
    }

    /// The timeout after so many tries in a row.
    pub(super) fn after(&self, retries: u8) -> Duration {
        let measured = self
            .round_trip
            .timeout()
            .map_or(Duration(0), |asked| Duration(asked.0.saturating_add(self.ack_delay.0)));
        doubled(measured.min(self.first_max).max(self.least), retries).min(self.max)
    }
}

/// Doubled so many times.
pub(super) fn doubled(duration: Duration, times: u8) -> Duration {
    Duration(duration.0.saturating_mul(1 << times.min(32)))
}

/// The first try waits at most so many times as long as the settings say.
const FIRST_MAX: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn timeout() -> Timeout {
        Timeout::new(&Config::new(64, 64))
    }

    fn answer(timeout: &mut Timeout, packet: u64, after: u64) {
        timeout.on_asked(Timestamp(0), packet);
        timeout.on_answered(Timestamp(after), packet + 1);
    }

    #[test]
    fn it_is_that_of_the_settings_and_grows_with_the_round_trip_up_to_a_bound() {
        let mut timeout = timeout();
        assert_eq!(timeout.after(0), Duration(200 * US));
        answer(&mut timeout, 1, 20 * US);
        assert_eq!(timeout.after(1), Duration(400 * US));
        for packet in 2..60 {
            answer(&mut timeout, packet, 600 * US);
        }
        assert!(
            (610 * US..700 * US).contains(&timeout.after(0).0),
            "{:?}",
            timeout.after(0)
        );
        answer(&mut timeout, 60, 1_000_000 * US);
        assert_eq!(timeout.after(0), Duration(16 * 200 * US));
        assert_eq!(timeout.after(255), Duration(100_000 * US));
    }

    #[test]
    fn one_packet_at_a_time_is_timed() {
        let mut timeout = timeout();
        timeout.on_asked(Timestamp(0), 5);
        timeout.on_asked(Timestamp(300 * US), 6);
        timeout.on_answered(Timestamp(310 * US), 5);
        assert_eq!(timeout.round_trip.timeout(), None, "the one before it was answered");
        timeout.on_answered(Timestamp(400 * US), 7);
        let measured = Duration((400 + 4 * 200) * US);
        assert_eq!(timeout.round_trip.timeout(), Some(measured));
        timeout.on_answered(Timestamp(900 * US), 9);
        assert_eq!(timeout.round_trip.timeout(), Some(measured));
    }
}
