//! What was measured, as text, JSON and histograms.

use super::plan::{Header, LtpOptions, Mode, Redundancy, RtoMin, Rung};
use super::run::Tally;
use crate::output::say;
use crate::{Failure, recording};
use latency::HistogramLog;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use types::{Duration, Timestamp};

/// The rungs of one run.
pub(super) struct Ladder {
    pub(super) mode: Mode,
    pub(super) size: usize,
    pub(super) seconds: Duration,
    pub(super) rate: Option<u64>,
    pub(super) rto_min: RtoMin,
    pub(super) ltp: LtpOptions,
    pub(super) idle: &'static str,
    /// Where both ends were.
    pub(super) place: String,
    pub(super) measured: Vec<Measured>,
}

/// One rung, or why there is none.
pub(super) struct Measured {
    pub(super) link: Rung,
    pub(super) tally: Result<Tally, Failure>,
}

impl Ladder {
    /// A table, what its rows are, and what was left out.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "tickgate {} · {} · Linux {}\n{}, {} bytes{}, {} a link · {} · {}\n",
            recording::commit(),
            net::host::cpu_model(),
            net::host::kernel(),
            self.mode.name(),
            self.size,
            self.rate.map(|rate| format!(", {rate} a second")).unwrap_or_default(),
            self.seconds,
            self.place,
            self.idle
        );
        let unit = match self.mode {
            Mode::PingPong => "round trips, µs",
            Mode::OpenLoop => "round trips from the planned send, µs",
            Mode::OneWay => "ways from the send to the end of the turn that received it, µs (one clock only)",
        };
        let _ = writeln!(text, "{unit}");
        let _ = writeln!(
            text,
            "{:<12} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>7} {:>11} {:>8} {:>8}",
            "link", "p50", "p99", "p99.9", "max", "count", "resent", "lost", "messages/s", "MB/s", "to floor"
        );
        for (link, tally) in self.rungs() {
            let _ = writeln!(text, "{}", self.row(link, tally));
        }
        for (link, tally) in self.rungs() {
            let _ = writeln!(text, "{:<12} {}{}", link.name(), link.what(), self.chosen(link));
            if let Some(options) = &tally.options {
                let _ = writeln!(text, "{:<12} {options}", "");
            }
        }
        for (link, why) in self.skipped() {
            let _ = writeln!(text, "{:<12} skipped: {why}", link.name());
        }
        text
    }

    /// What was chosen of LTP, where it is not the default.
    fn chosen(&self, link: Rung) -> String {
        if !matches!(link, Rung::Ltp | Rung::Afxdp) {
            return String::new();
        }
        let redundancy = match self.ltp.redundancy {
            Redundancy::Off => "",
            Redundancy::Paths => "; each datagram on two paths",
            Redundancy::Twice => "; each datagram twice",
            Redundancy::Repeat => "; messages repeated",
        };
        let header = match self.ltp.header {
            Header::Full => "",
            Header::Compact => "; headers of 8 bytes",
        };
        let key = if self.ltp.has_key {
            "; every datagram authenticated"
        } else {
            ""
        };
        format!("{redundancy}{header}{key}")
    }

    fn row(&self, link: Rung, tally: &Tally) -> String {
        let percentiles = tally.histogram.percentiles();
        let us = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e3));
        format!(
            "{:<12} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>7} {:>11.0} {:>8.2} {:>8}",
            link.name(),
            us(percentiles.p50_ns),
            us(percentiles.p99_ns),
            us(percentiles.p999_ns),
            us(percentiles.max_ns),
            tally.arrived,
            tally.retransmits,
            tally.lost(),
            tally.rate(),
            tally.rate() * self.size as f64 / 1e6,
            self.ratio(tally)
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
        )
    }

    /// All rungs.
    pub(super) fn json(&self) -> Value {
        let skipped = self
            .skipped()
            .map(|(link, why)| json!({"link": link.name(), "why": why}));
        json!({
            "floor": Rung::FLOOR.name(),
            "rungs": self.rungs().map(|(link, tally)| self.json_of(link, tally)).collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
        })
    }

    /// The only rung.
    pub(super) fn json_of_one(&self) -> Value {
        self.rungs()
            .next()
            .map_or(Value::Null, |(link, tally)| self.json_of(link, tally))
    }

    fn json_of(&self, link: Rung, tally: &Tally) -> Value {
        let percentiles = tally.histogram.percentiles();
        json!({
            "link": link.name(),
            "what": link.what(),
            "mode": self.mode.name(),
            "size": self.size,
            "seconds": self.seconds.0 as f64 / 1e9,
            "count": tally.arrived,
            "p50_ns": percentiles.p50_ns,
            "p90_ns": percentiles.p90_ns,
            "p99_ns": percentiles.p99_ns,
            "p999_ns": percentiles.p999_ns,
            "max_ns": percentiles.max_ns,
            "retransmits": tally.retransmits,
            "planned": tally.planned,
            "sent": tally.sent,
            "lost": tally.lost(),
            "rate_offered": self.rate,
            "messages_per_second": tally.rate(),
            "bytes_per_second": tally.rate() * self.size as f64,
            "ratio_to_floor": self.ratio(tally),
            "place": self.place,
            "idle": self.idle,
            "rto_min": self.rto_min,
            "redundancy": self.ltp.redundancy,
            "header": self.ltp.header,
            "key": self.ltp.has_key,
            "options": tally.options,
            "cpu": net::host::cpu_model(),
            "kernel": net::host::kernel(),
            "version": recording::commit(),
        })
    }

    /// One log with an interval a rung, the name of the link its tag.
    pub(super) fn write_histograms(&self, name: &Path, file: File) -> Result<(), Failure> {
        let failed = |error| not_written(name, &error);
        let writer = BufWriter::new(file);
        let comment = format!(
            "tickgate lat, {}, {} bytes, {}; ns",
            self.mode.name(),
            self.size,
            self.place
        );
        let mut log = HistogramLog::begin(writer, &comment).map_err(failed)?;
        for (link, tally) in self.rungs() {
            let started = tally.started.unwrap_or(Timestamp::NONE);
            log.write(link.name(), started, self.seconds, &tally.histogram)
                .map_err(failed)?;
        }
        io::Write::flush(&mut log.into_inner()).map_err(failed)
    }

    /// The ratio to the floor: of the medians, or of the messages a second one way.
    fn ratio(&self, tally: &Tally) -> Option<f64> {
        let (_, floor) = self.rungs().find(|(link, _)| *link == Rung::FLOOR)?;
        let ratio = if self.mode == Mode::OneWay {
            tally.rate() / floor.rate()
        } else {
            let median = |tally: &Tally| tally.histogram.percentiles().p50_ns;
            median(tally)? as f64 / median(floor)? as f64
        };
        ratio.is_finite().then_some(ratio)
    }

    /// Whether nothing could be measured.
    pub(super) fn is_empty(&self) -> bool {
        self.rungs().next().is_none()
    }

    fn rungs(&self) -> impl Iterator<Item = (Rung, &Tally)> {
        self.measured
            .iter()
            .filter_map(|measured| Some((measured.link, measured.tally.as_ref().ok()?)))
    }

    fn skipped(&self) -> impl Iterator<Item = (Rung, String)> {
        self.measured
            .iter()
            .filter_map(|measured| Some((measured.link, measured.tally.as_ref().err()?.to_string())))
    }
}

impl Tally {
    /// Messages that were sent and came to nothing.
    fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Messages a second, as they arrived.
    fn rate(&self) -> f64 {
        if self.span.0 == 0 {
            return 0.0;
        }
        self.arrived as f64 / (self.span.0 as f64 / 1e9)
    }
}

/// Makes the file for the histograms.
pub(super) fn create(name: &Path) -> Result<File, Failure> {
    File::create(name).map_err(|error| not_written(name, &error))
}

fn not_written(name: &Path, error: &io::Error) -> Failure {
    Failure::new(format_args!("writing {}: {error}; choose another file", name.display()))
}

/// Prints a value.
pub(super) fn json(value: &Value) -> Result<(), Failure> {
    say!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}
