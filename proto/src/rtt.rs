//! Round trips measured, and how long to wait for an answer by them (the estimator of RFC 6298, section 2).

use types::Duration;

/// Smoothed round trip towards one peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    /// `None` until the first sample.
    smoothed: Option<Duration>,
    variation: Duration,
}

impl RoundTrip {
    /// Takes in a round trip.
    pub(crate) fn sample(&mut self, round_trip: Duration) {
        let sample = round_trip.0;
        match self.smoothed {
            None => {
                self.smoothed = Some(round_trip);
                self.variation = Duration(sample / 2);
            }
            Some(Duration(smoothed)) => {
                // 1/4 and 1/8 are the weights of RFC 6298.
                self.variation = Duration(self.variation.0 - self.variation.0 / 4 + smoothed.abs_diff(sample) / 4);
                self.smoothed = Some(Duration(smoothed - smoothed / 8 + sample / 8));
            }
        }
    }

    /// After so long without an answer there will be none. `None`: no round trip was measured.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.smoothed
            .map(|smoothed| Duration(smoothed.0 + 4 * self.variation.0))
    }
}
