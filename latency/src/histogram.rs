//! Percentiles, and the rule when there are too few samples for one.

use serde::{Deserialize, Serialize};
use types::Duration;

use crate::record::{Floor, FloorLeg, Name, Protocol};

/// A percentile, in thousandths of a percent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Percentile(u32);

impl Percentile {
    /// The median.
    pub const P50: Self = Self(50_000);
    /// 90 %.
    pub const P90: Self = Self(90_000);
    /// 99 %.
    pub const P99: Self = Self(99_000);
    /// 99.9 %.
    pub const P999: Self = Self(99_900);

    /// The rank, from 1, of this percentile among `count` sorted samples: the smallest sample that at least so many are
    /// not above. `None` when fewer than [`SAMPLES_BEYOND_MIN`] lie beyond it: then chance decides its value.
    #[must_use]
    pub const fn rank(self, count: u64) -> Option<u64> {
        let rank = (count as u128 * self.0 as u128).div_ceil(100_000);
        let beyond = count as u128 - rank;
        if beyond < SAMPLES_BEYOND_MIN as u128 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most `count`")]
        Some(rank as u64)
    }
}

/// Samples that must lie beyond a percentile for it to be told.
pub const SAMPLES_BEYOND_MIN: u64 = 10;

/// The percentiles that every table has, ns. One with fewer than [`SAMPLES_BEYOND_MIN`] samples beyond it is `None`.
/// They are signed, since a hop between two threads may end before it begins: a stamp after a send may be later than the
/// receiver's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Percentiles {
    /// Samples.
    pub count: u64,
    /// Median, ns.
    pub p50_ns: Option<i64>,
    /// 90th percentile, ns.
    pub p90_ns: Option<i64>,
    /// 99th percentile, ns.
    pub p99_ns: Option<i64>,
    /// 99.9th percentile, ns.
    pub p999_ns: Option<i64>,
    /// Longest, ns; `None` only without samples.
    pub max_ns: Option<i64>,
}

impl Percentiles {
    /// Of exact durations in any order, ns.
    #[must_use]
    pub fn of_durations(durations_ns: &[u64]) -> Self {
        let signed = durations_ns.iter().map(|&ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let mut samples: Vec<i64> = signed.collect();
        samples.sort_unstable();
        Self::of_sorted(&samples)
    }

    /// Of exact samples, sorted.
    #[must_use]
    pub fn of_sorted(samples: &[i64]) -> Self {
        let count = samples.len() as u64;
        let at = |percentile: Percentile| {
            let rank = usize::try_from(percentile.rank(count)?).ok()?;
            Some(samples[rank - 1])
        };
        Self {
            count,
            p50_ns: at(Percentile::P50),
            p90_ns: at(Percentile::P90),
            p99_ns: at(Percentile::P99),
            p999_ns: at(Percentile::P999),
            max_ns: samples.last().copied(),
        }
    }
}

/// Durations counted with three significant digits in constant memory, for measuring while a program runs. (A report,
/// which may take its time, sorts the exact samples.)
#[derive(Clone, Debug)]
pub struct Histogram {
    pub(crate) counts: hdrhistogram::Histogram<u64>,
    pub(crate) max_ns: u64,
}

/// Longest duration that a histogram tells from longer ones, ns.
const LONGEST_NS: u64 = 60_000_000_000;

impl Histogram {
    /// An empty histogram. Allocates all that it will need.
    #[must_use]
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_NS, 3);
        Self {
            counts: counts.expect("the bounds are valid"),
            max_ns: 0,
        }
    }

    /// Counts a duration. A longer one than a minute counts as a minute. Does not allocate.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.counts.saturating_record(duration.0);
        self.max_ns = self.max_ns.max(duration.0);
    }

    /// Durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The longest, exactly; zero when nothing was counted.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration(self.max_ns)
    }

    /// A percentile; `None` when there are too few samples for it.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<Duration> {
        percentile.rank(self.count())?;
        let value = self.counts.value_at_quantile(f64::from(percentile.0) / 100_000.0);
        Some(Duration(value.min(self.max_ns)))
    }

    /// The percentiles that every table has.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        let signed = |duration: Duration| i64::try_from(duration.0).unwrap_or(i64::MAX);
        let at = |percentile| self.percentile(percentile).map(signed);
        Percentiles {
            count: self.count(),
            p50_ns: at(Percentile::P50),
            p90_ns: at(Percentile::P90),
            p99_ns: at(Percentile::P99),
            p999_ns: at(Percentile::P999),
            max_ns: (self.count() > 0).then(|| signed(self.max())),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.max_ns = 0;
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Floor {
    /// The floor of a leg from the round trips measured on it.
    #[must_use]
    pub fn of_round_trips(leg: FloorLeg, protocol: Protocol, transport: &str, round_trips: &Percentiles) -> Self {
        let ns = |percentile: Option<i64>| percentile.unwrap_or(0).max(0).cast_unsigned();
        Self {
            leg,
            protocol,
            count: round_trips.count,
            p50_ns: ns(round_trips.p50_ns),
            p90_ns: ns(round_trips.p90_ns),
            p99_ns: ns(round_trips.p99_ns),
            p999_ns: ns(round_trips.p999_ns),
            max_ns: ns(round_trips.max_ns),
            transport: Name::new(transport),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        for (percentile, fewest) in [
            (Percentile::P50, 20),
            (Percentile::P90, 100),
            (Percentile::P99, 1_000),
            (Percentile::P999, 10_000),
        ] {
            assert_eq!(percentile.rank(fewest - 1), None);
            assert_eq!(percentile.rank(fewest), Some(fewest - 10));
        }
        assert_eq!(Percentile::P50.rank(0), None);
    }

    #[test]
    fn percentiles_of_known_samples_are_exact() {
        let samples: Vec<i64> = (1..=10_000).collect();
        let expected = Percentiles {
            count: 10_000,
            p50_ns: Some(5_000),
            p90_ns: Some(9_000),
            p99_ns: Some(9_900),
            p999_ns: Some(9_990),
            max_ns: Some(10_000),
        };
        assert_eq!(Percentiles::of_sorted(&samples), expected);
        let reversed: Vec<u64> = (1..=10_000).rev().collect();
        assert_eq!(Percentiles::of_durations(&reversed), expected);
        let few = Percentiles::of_sorted(&samples[..999]);
        assert_eq!(
            (few.p90_ns, few.p99_ns, few.p999_ns, few.max_ns),
            (Some(900), None, None, Some(999))
        );
        assert_eq!(Percentiles::of_sorted(&[]), Percentiles::default());
    }

    #[test]
    fn a_histogram_agrees_with_exact_samples_to_three_digits() {
        let samples: Vec<i64> = (1..=20_000).map(|n| n * n % 1_000_003).collect();
        let mut sorted = samples.clone();
        sorted.sort_unstable();
        let exact = Percentiles::of_sorted(&sorted);
        let mut histogram = Histogram::new();
        for sample in samples {
            histogram.record(Duration(sample.cast_unsigned()));
        }
        let counted = histogram.percentiles();
        assert_eq!((counted.count, counted.max_ns), (exact.count, exact.max_ns));
        for (counted, exact) in [
            (counted.p50_ns, exact.p50_ns),
            (counted.p90_ns, exact.p90_ns),
            (counted.p99_ns, exact.p99_ns),
            (counted.p999_ns, exact.p999_ns),
        ] {
            let (counted, exact) = (counted.unwrap(), exact.unwrap());
            assert!((counted - exact).abs() <= exact / 1_000 + 1, "{counted} {exact}");
        }
        histogram.clear();
        assert_eq!(histogram.percentiles(), Percentiles::default());
    }

    #[test]
    fn a_duration_beyond_the_range_counts_and_its_length_is_kept() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_secs(600));
        assert_eq!((histogram.count(), histogram.max()), (1, Duration::from_secs(600)));
    }
}
