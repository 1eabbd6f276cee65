//! What was measured, as text, JSON and histograms.

use super::Peer;
use super::args::Args;
use super::plan::{Header, IdleMode, LtpOptions, Mode, Plan, Redundancy, RtoMin, Rung};
use super::tally::Tally;
use crate::{Failure, recording};
use latency::HistogramLog;
use net::measure::Placement;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use types::{Duration, Timestamp};

/// The rungs of one run.
pub(super) struct Ladder {
    mode: Mode,
    size: usize,
    seconds: Duration,
    /// Turns that each link has.
    pub(super) rounds: u64,
    idle: IdleMode,
    /// Where the near end is, and the far one.
    place: String,
    pub(super) measured: Vec<Measured>,
}

/// One rung, or why there is none.
pub(super) struct Measured {
    /// Of each of its rounds.
    pub(super) plan: Plan,
    pub(super) tally: Tally,
    /// Rounds that ended as planned.
    pub(super) rounds: u64,
    /// Why there are no more of them.
    pub(super) failure: Option<Failure>,
}

impl Measured {
    /// Whether there are figures.
    pub(super) fn has_figures(&self) -> bool {
        self.tally.arrived > 0
    }

    /// What was sent again without need, where that is told.
    fn spurious(&self) -> Option<u64> {
        let spurious = self.tally.retransmits.spurious;
        self.plan.tells_spurious().then_some(spurious)
    }
}

impl Ladder {
    /// What is to be measured.
    pub(super) fn new(args: &Args, peer: &Peer) -> Self {
        Self {
            mode: args.mode(),
            size: args.size,
            seconds: args.seconds,
            rounds: args.rounds(),
            idle: args.idle,
            place: match (peer, args.connect) {
                (Peer::Here(Placement::One(cpu)), _) => format!("loopback, both ends by turns on CPU {cpu}"),
                (Peer::Here(Placement::Two(near, far)), _) => format!("loopback, CPUs {near} and {far}"),
                (Peer::Elsewhere { cpu, .. }, address) => {
                    let address = address.map(|address| address.to_string()).unwrap_or_default();
                    format!("to {address}, this end on CPU {cpu}")
                }
            },
            measured: args
                .rungs()
                .into_iter()
                .map(|link| Measured {
                    plan: args.plan(link),
                    tally: Tally::default(),
                    rounds: 0,
                    failure: None,
                })
                .collect(),
        }
    }

    /// Nothing more is measured, because of this.
    pub(super) fn end(&mut self, why: &Failure) {
        let rounds = self.rounds;
        for rung in &mut self.measured {
            if rung.failure.is_none() && rung.rounds < rounds {
                rung.failure = Some(Failure::new(format_args!("the run ended: {why}")));
            }
        }
    }

    /// A table, what its rows are, and what was left out.
    pub(super) fn text(&self) -> String {
        let mut text = self.head();
        let _ = writeln!(
            text,
            "{:<12} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>8} {:>7} {:>11} {:>8} {:>8}",
            "link",
            "p50",
            "p99",
            "p99.9",
            "max",
            "count",
            "resent",
            "spurious",
            "lost",
            "messages/s",
            "MB/s",
            "to floor"
        );
        for rung in self.rungs() {
            let _ = writeln!(text, "{}", self.row(rung));
        }
        for rung in self.rungs() {
            let link = rung.plan.link;
            let _ = writeln!(text, "{:<12} {}{}", link.name(), link.what(), chosen(&rung.plan));
            if let Some(options) = &rung.tally.options {
                let _ = writeln!(text, "{:<12} {options}", "");
            }
            if let Some(failure) = &rung.failure {
                let whole = rung.rounds;
                let rounds = self.rounds;
                let _ = writeln!(
                    text,
                    "{:<12} PARTIAL, {whole} of {rounds} rounds are whole: {failure}",
                    ""
                );
            }
        }
        for (link, why) in self.skipped() {
            let _ = writeln!(text, "{:<12} skipped: {why}", link.name());
        }
        text
    }

    /// What was measured, where, in which units.
    fn head(&self) -> String {
        let rate = self.mode.rate().map(|rate| format!(", {rate} a second"));
        let rounds = if self.rounds > 1 {
            format!(" in {} rounds", self.rounds)
        } else {
            String::new()
        };
        let far = self.measured.iter().find_map(|rung| rung.tally.far);
        let far = far.map(|(cpu, idle)| format!(", that on CPU {cpu}, {}", idle.name()));
        let (times, ratio, lost) = match self.mode {
            Mode::PingPong => ("round trips", "median", "not answered"),
            Mode::OpenLoop { .. } => ("round trips from the planned time", "median", "not answered"),
            Mode::OneWay { .. } => (
                "times under way, from hand-over to the end of the turn that took it in",
                "messages/s",
                "not arrived",
            ),
        };
        format!(
            "tickgate {} · {} · Linux {}\n\
             {}, {} bytes{}, {} a link{rounds} · {}, {}{}\n\
             {times}, µs; a dash: fewer than ten samples beyond it{}\n\
             resent: messages or TCP segments sent again, by both ends; spurious: those that the other end had; \
             lost: {lost}; to floor: {ratio} by that of {}\n",
            recording::commit(),
            net::host::cpu_model(),
            net::host::kernel(),
            self.mode.name(),
            self.size,
            rate.unwrap_or_default(),
            self.seconds,
            self.place,
            self.idle.name(),
            far.unwrap_or_default(),
            if self.mode.is_one_way() {
                ", or ends with two clocks"
            } else {
                ""
            },
            Rung::FLOOR.name(),
        )
    }

    fn row(&self, rung: &Measured) -> String {
        let tally = &rung.tally;
        let percentiles = tally.histogram.percentiles();
        let us = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e3));
        let mut row = format!(
            "{:<12} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>8} {:>7} {:>11.0} {:>8.2} {:>8}",
            rung.plan.link.name(),
            us(percentiles.p50_ns),
            us(percentiles.p99_ns),
            us(percentiles.p999_ns),
            us(percentiles.max_ns),
            tally.arrived,
            tally.retransmits.total,
            rung.spurious()
                .map_or_else(|| "-".to_owned(), |count| count.to_string()),
            tally.lost(),
            tally.rate(),
            tally.rate() * self.size as f64 / 1e6,
            self.ratio(tally)
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
        );
        if rung.failure.is_some() {
            row.push_str(" PARTIAL");
        }
        row
    }

    /// All rungs.
    pub(super) fn json(&self) -> Value {
        let skipped = self
            .skipped()
            .map(|(link, why)| json!({"link": link.name(), "why": why}));
        json!({
            "floor": Rung::FLOOR.name(),
            "rungs": self.rungs().map(|rung| self.json_of(rung)).collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
        })
    }

    /// The only rung.
    pub(super) fn json_of_one(&self) -> Value {
        self.rungs().next().map_or(Value::Null, |rung| self.json_of(rung))
    }

    fn json_of(&self, rung: &Measured) -> Value {
        let Measured {
            plan,
            tally,
            rounds,
            failure,
        } = rung;
        let percentiles = tally.histogram.percentiles();
        json!({
            "link": plan.link.name(),
            "what": plan.link.what(),
            "mode": self.mode.name(),
            "size": self.size,
            "seconds": self.seconds.0 as f64 / 1e9,
            "rounds": self.rounds,
            "rounds_whole": rounds,
            "partial": failure.is_some(),
            "failure": failure.as_ref().map(ToString::to_string),
            "count": tally.arrived,
            "p50_ns": percentiles.p50_ns,
            "p90_ns": percentiles.p90_ns,
            "p99_ns": percentiles.p99_ns,
            "p999_ns": percentiles.p999_ns,
            "max_ns": percentiles.max_ns,
            "retransmits": tally.retransmits.total,
            "retransmits_spurious": rung.spurious(),
            "planned": tally.planned,
            "sent": tally.sent,
            "lost": tally.lost(),
            "rate_offered": self.mode.rate(),
            "messages_per_second": tally.rate(),
            "bytes_per_second": tally.rate() * self.size as f64,
            "ratio_to_floor": self.ratio(tally),
            "place": self.place,
            "idle": self.idle,
            "far_cpu": tally.far.map(|(cpu, _)| cpu),
            "far_idle": tally.far.map(|(_, idle)| idle),
            "rto_min": plan.rto_min,
            "redundancy": plan.ltp.map(|ltp| ltp.redundancy),
            "header": plan.ltp.map(|ltp| ltp.header),
            "key": plan.ltp.map(|ltp| ltp.has_key),
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
        for rung in self.rungs() {
            let (link, tally) = (rung.plan.link, &rung.tally);
            let started = tally.started.unwrap_or(Timestamp::NONE);
            log.write(link.name(), started, self.seconds, &tally.histogram)
                .map_err(failed)?;
        }
        io::Write::flush(&mut log.into_inner()).map_err(failed)
    }

    /// The ratio to the floor: of the medians, or of the messages a second one way.
    fn ratio(&self, tally: &Tally) -> Option<f64> {
        let floor = &self.rungs().find(|rung| rung.plan.link == Rung::FLOOR)?.tally;
        let ratio = if self.mode.is_one_way() {
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

    /// A link that failed when it had figures already; or the only one, with or without.
    pub(super) fn failure(&self) -> Option<Failure> {
        let is_only = self.measured.len() == 1;
        let failed = |rung: &&Measured| rung.failure.is_some() && (is_only || rung.has_figures());
        let rung = self.measured.iter().find(failed)?;
        let why = rung.failure.as_ref()?;
        Some(Failure::new(format_args!("{}: {why}", rung.plan.link.name())))
    }

    fn rungs(&self) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(|rung| rung.has_figures())
    }

    fn skipped(&self) -> impl Iterator<Item = (Rung, String)> {
        self.measured
            .iter()
            .filter(|rung| !rung.has_figures())
            .filter_map(|rung| Some((rung.plan.link, rung.failure.as_ref()?.to_string())))
    }
}

/// The options of a link, where they are not what they would be anyway.
fn chosen(plan: &Plan) -> String {
    let LtpOptions {
        redundancy,
        header,
        has_key,
    } = plan.ltp.unwrap_or_default();
    let redundancy = match redundancy {
        Redundancy::Off => "",
        Redundancy::Paths => "; each datagram on two paths",
        Redundancy::Twice => "; each datagram twice",
        Redundancy::Repeat => "; messages repeated",
    };
    let header = match header {
        Header::Full => "",
        Header::Compact => "; headers of 8 bytes",
    };
    let key = if has_key { "; every datagram authenticated" } else { "" };
    let rto_min = match plan.rto_min {
        Some(RtoMin::Default) => "; retransmission timeout of the kernel",
        Some(RtoMin::Lowest) | None => "",
    };
    format!("{redundancy}{header}{key}{rto_min}")
}

/// Makes the file for the histograms.
pub(super) fn create(name: &Path) -> Result<File, Failure> {
    File::create(name).map_err(|error| not_written(name, &error))
}

fn not_written(name: &Path, error: &io::Error) -> Failure {
    Failure::new(format_args!("writing {}: {error}; choose another file", name.display()))
}
