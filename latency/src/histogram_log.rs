//! Histograms as bytes: for another process of ours, and as the log that HdrHistogram's own tools read.

use crate::histogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};
use std::fmt;
use std::io::{self, Write};
use types::{Duration, Timestamp};

/// Bytes that are no histogram of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistogramError;

/// Writes histograms into one log in HdrHistogram's text format (`.hlog`), each an interval with its tag. Values are
/// nanoseconds; the column of maxima is in milliseconds, as its readers expect.
#[derive(Debug)]
pub struct HistogramLog<W> {
    writer: W,
}

/// Nanoseconds a millisecond.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// The exact maximum stands before the counts.
const MAX_LENGTH: usize = 8;

impl Histogram {
    /// The histogram as bytes for [`add_bytes`](Self::add_bytes): the exact maximum, then HdrHistogram's V2 encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.max_ns.to_le_bytes().to_vec();
        V2Serializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("a vector takes every byte");
        bytes
    }

    /// Counts what another histogram counted.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("all histograms are of one range");
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Counts what another histogram counted, perhaps in another process.
    ///
    /// # Errors
    /// The bytes are not from [`to_bytes`](Self::to_bytes). Nothing was counted.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<(), HistogramError> {
        let (max_ns, counts) = bytes.split_first_chunk::<MAX_LENGTH>().ok_or(HistogramError)?;
        let counts: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut io::Cursor::new(counts))
            .map_err(|_| HistogramError)?;
        self.counts.add(&counts).map_err(|_| HistogramError)?;
        self.max_ns = self.max_ns.max(u64::from_le_bytes(*max_ns));
        Ok(())
    }
}

impl<W: Write> HistogramLog<W> {
    /// Begins a log; `comment` says in one line what was measured.
    ///
    /// # Errors
    /// The writer fails.
    pub fn begin(mut writer: W, comment: &str) -> io::Result<Self> {
        let mut serializer = V2DeflateSerializer::new();
        IntervalLogWriterBuilder::new()
            .add_comment(comment)
            .with_max_value_divisor(MAX_VALUE_DIVISOR)
            .begin_log_with(&mut writer, &mut serializer)?;
        writeln!(
            writer,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        Ok(Self { writer })
    }

    /// Writes one histogram, from `start` on for so long. Blanks and commas in the tag become dashes.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write(&mut self, tag: &str, start: Timestamp, span: Duration, histogram: &Histogram) -> io::Result<()> {
        let tag = tag.replace([',', ' ', '\r', '\n'], "-");
        let mut serializer = V2DeflateSerializer::new();
        // A writer of its own for each line: one that lives on would borrow this one.
        let mut line = Vec::new();
        let mut lines = IntervalLogWriterBuilder::new();
        lines.with_max_value_divisor(MAX_VALUE_DIVISOR);
        lines
            .begin_log_with(&mut line, &mut serializer)?
            .write_histogram(
                &histogram.counts,
                std::time::Duration::from_nanos(start.0),
                std::time::Duration::from_nanos(span.0),
                Tag::new(&tag),
            )
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        let text = String::from_utf8_lossy(&line);
        let mut rows = text.lines().filter(|row| !row.starts_with('#'));
        rows.try_for_each(|row| writeln!(self.writer, "{row}"))
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.writer
    }
}

impl fmt::Display for HistogramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are no histogram")
    }
}

impl std::error::Error for HistogramError {}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn histogram(values: std::ops::Range<u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.for_each(|ns| histogram.record(Duration(ns * 7)));
        histogram
    }

    #[test]
    fn two_histograms_become_one_by_way_of_bytes() {
        let mut first = histogram(1..5_000);
        first.add_bytes(&histogram(5_000..20_000).to_bytes()).unwrap();
        assert_eq!(first.percentiles(), histogram(1..20_000).percentiles());
    }

    #[test]
    fn other_bytes_are_refused_and_count_nothing() {
        let mut counted = histogram(1..100);
        let before = counted.percentiles();
        let good = histogram(1..100).to_bytes();
        for bytes in [&[][..], &[0; 7], &[0xff; 60], &good[..good.len() / 2]] {
            assert_eq!(counted.add_bytes(bytes), Err(HistogramError));
        }
        assert_eq!(counted.percentiles(), before);
    }

    #[test]
    fn a_log_is_read_by_another_reader_with_its_tags() {
        let mut log = HistogramLog::begin(Vec::new(), "lat").unwrap();
        for tag in ["udp", "our tcp"] {
            log.write(tag, Timestamp(2_000_000_000), Duration(500_000_000), &histogram(1..100))
                .unwrap();
        }
        let bytes = log.into_inner();
        let rows: Vec<_> = IntervalLogIterator::new(&bytes)
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some((
                    interval.tag().unwrap().as_str().to_owned(),
                    interval.start_timestamp().as_millis(),
                    interval.duration().as_millis(),
                )),
                _ => None,
            })
            .collect();
        assert_eq!(rows, [("udp".into(), 2_000, 500), ("our-tcp".into(), 2_000, 500)]);
    }
}
