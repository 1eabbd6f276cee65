//! Reports: recordings joined into tables, pages and files. `docs/report.md` describes what they hold.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use types::Timestamp;

mod accounting;
mod chart;
mod csv;
mod figures;
mod host;
mod html;
mod join;
mod latencies;
mod load;
mod method;
mod order;
mod text;

pub use accounting::{Accounting, Cancels, Refusals};
pub use latencies::{Example, FloorRow, Part, Passed, Row};
pub use load::{RecordingFacts, ReportError};
pub use order::{Child, Order, Outcome, Status};

use crate::record::Protocol;
use join::{Join, Pass};

/// What the recordings of a run say, joined and counted.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Whether every order is accounted for and nothing contradicts itself.
    pub complete: bool,
    /// What became of all orders.
    pub accounting: Accounting,
    /// Cancels and replaces.
    pub requests: Requests,
    /// Orders that are unaccounted for.
    pub lost_orders: Vec<LostOrder>,
    /// What contradicts itself, one sentence each.
    pub problems: Vec<String>,
    /// What a reader of the figures must know, one sentence each.
    pub warnings: Vec<String>,
    /// The phases of the run in their order. Orders sent outside all of them come last, under a name of their own.
    pub phases: Vec<PhaseReport>,
    /// Counters of the components.
    pub counters: Vec<CounterReport>,
    /// What else was found, such as the outcome of replaying the journal.
    pub facts: Vec<Fact>,
    /// Commands to try next.
    pub next: Vec<String>,
    /// The recordings.
    pub recordings: Vec<RecordingFacts>,
    /// All orders, by the time they were sent.
    #[serde(skip)]
    pub orders: Vec<Order>,
    /// Whether the exchange said which orders were open at the end.
    pub open_orders_listed: bool,
}

/// Cancels and replaces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Requests {
    /// Sent by clients.
    pub sent: u64,
    /// Of them, answered.
    pub answered: u64,
}

/// An order that is unaccounted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostOrder {
    /// The gateway's number for it; 0 when nobody told.
    pub order_id: u64,
    /// The client's session.
    pub session: u16,
    /// The client's number for it.
    pub client_order_id: u64,
    /// `unanswered` or `vanished`.
    pub status: &'static str,
    /// The last tap that it passed.
    pub last_tap: Option<&'static str>,
}

/// A phase of the run.
#[derive(Debug, Serialize)]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// From when, UTC ns; 0 when it is not a phase that was recorded.
    pub start_ns: u64,
    /// Until when, UTC ns; 0 likewise.
    pub end_ns: u64,
    /// One for each protocol that was spoken in it.
    pub protocols: Vec<ProtocolReport>,
}

/// The orders of a phase that came in one protocol.
#[derive(Debug, Serialize)]
pub struct ProtocolReport {
    /// `FIX` or `native`.
    pub protocol: &'static str,
    /// Orders a second, from the first to the last sent; `None` when there is but one.
    pub orders_per_second: Option<f64>,
    /// What became of them.
    pub accounting: Accounting,
    /// From end to end.
    pub totals: Vec<Row>,
    /// From each tap to the next.
    pub hops: Vec<Row>,
    /// Bare round trips measured in the same run.
    pub floors: Vec<FloorRow>,
    /// By which total the next two were chosen.
    pub examples_by: Option<&'static str>,
    /// The order in the middle.
    pub median: Option<Example>,
    /// The slowest order.
    pub worst: Option<Example>,
}

/// A counter of a component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CounterReport {
    /// The component.
    pub component: String,
    /// Such as `link.retransmits`.
    pub name: String,
    /// By how much it rose in each phase, in their order.
    pub by_phase: Vec<u64>,
    /// Its last value.
    pub total: u64,
}

/// Something found, as a name and a value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// Such as `journal replayed`.
    pub name: String,
    /// Such as `identical, 3f9a…`.
    pub value: String,
}

impl PhaseReport {
    /// Whether it is what lies outside of the recorded phases. Its figures belong to no one condition: they are in the
    /// JSON and not shown.
    fn is_outside(&self) -> bool {
        self.end_ns == 0 && self.name == OUTSIDE
    }
}

/// Name and version of the JSON form.
pub const SCHEMA: &str = "tickgate-report 1";

/// Lost orders that are listed one by one.
const LOST_LISTED_MAX: usize = 1_000;

/// What a run without recorded phases, and what lies outside the recorded ones, is called.
const WHOLE_RUN: &str = "whole run";
const OUTSIDE: &str = "outside the phases";

impl Report {
    /// Reads the recordings in `paths` (directories, or files) and joins them. With `partial`, a recording that is cut off
    /// gives what it has, and the report says so.
    ///
    /// # Errors
    /// When a file is no recording, is cut off or damaged, or there is no order in any.
    pub fn load(paths: &[PathBuf], partial: bool) -> Result<Self, ReportError> {
        let files = load::find(paths)?;
        let mut join = Join::default();
        let mut recordings = Vec::new();
        for pass in [Pass::Orders, Pass::Reports, Pass::Exchange] {
            recordings.clear();
            for (index, file) in files.iter().enumerate() {
                recordings.push(load::read(file, partial, |record| join.on_record(pass, index, record))?);
            }
            join.end_pass(pass);
        }
        if join.orders.is_empty() {
            return Err(ReportError::NoOrders);
        }
        Ok(Self::of(join, recordings))
    }

    fn of(join: Join, recordings: Vec<RecordingFacts>) -> Self {
        let accounting = Accounting::of(join.orders.iter(), join.open_orders_listed);
        let problems = accounting::check(&join, &recordings);
        let mut warnings = host::warnings(&recordings);
        let kept = join.orders.iter().filter(|order| order.kept).count();
        if kept > 0 {
            warnings.push(format!(
                "{kept} orders waited or were held in the gateway: they count in the rows release to … and in no other"
            ));
        }
        Self {
            schema: SCHEMA,
            complete: accounting.lost() == 0 && problems.is_empty(),
            requests: Requests {
                sent: join.requests_sent,
                answered: join.requests_answered,
            },
            lost_orders: lost_orders(&join),
            problems,
            warnings,
            phases: phases(&join),
            counters: counters(&join, &recordings),
            facts: Vec::new(),
            next: Vec::new(),
            accounting,
            recordings,
            open_orders_listed: join.open_orders_listed,
            orders: join.orders,
        }
    }

    /// Adds something that was found, such as the outcome of replaying the journal.
    pub fn add_fact(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.facts.push(Fact {
            name: name.into(),
            value: value.into(),
        });
    }

    /// Adds what a reader of the figures must know, as one sentence.
    pub fn add_warning(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Adds something that contradicts itself; the report is no longer complete.
    pub fn add_problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
        self.complete = false;
    }

    /// Adds a command to try next.
    pub fn add_next(&mut self, command: impl Into<String>) {
        self.next.push(command.into());
    }

    /// The tables, for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(self)
    }

    /// The report as JSON; `docs/report.md` has the schema.
    ///
    /// # Errors
    /// None that is known; a value that JSON cannot hold would be one.
    pub fn json(&self) -> io::Result<String> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }

    /// The report as a page that needs no network.
    #[must_use]
    pub fn html(&self) -> String {
        html::render(self)
    }

    /// One line an order.
    ///
    /// # Errors
    /// When `to` cannot be written.
    pub fn write_orders_csv(&self, to: &mut impl Write) -> io::Result<()> {
        csv::write(self, to)
    }

    /// One line for each order that went to the venue for one that the gateway had kept.
    ///
    /// # Errors
    /// When `to` cannot be written.
    pub fn write_children_csv(&self, to: &mut impl Write) -> io::Result<()> {
        csv::write_children(self, to)
    }

    /// Writes `tickgate-report.html`, `tickgate-report.json`, `orders.csv` and `children.csv` to `dir`, over older ones, and
    /// gives their paths.
    ///
    /// # Errors
    /// When one of them cannot be written; the error names it.
    pub fn write_files(&self, dir: &Path) -> io::Result<[PathBuf; 4]> {
        let said = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| io::Error::new(error.kind(), format!("writing {path}: {error}"))
        };
        std::fs::create_dir_all(dir).map_err(said(dir))?;
        let names = [
            "tickgate-report.html",
            "tickgate-report.json",
            "orders.csv",
            "children.csv",
        ];
        let paths = names.map(|name| dir.join(name));
        let [html, json, orders, children] = &paths;
        std::fs::write(html, self.html()).map_err(said(html))?;
        std::fs::write(json, self.json()?).map_err(said(json))?;
        let write_orders = || {
            let mut file = BufWriter::new(std::fs::File::create(orders)?);
            self.write_orders_csv(&mut file)?;
            file.flush()
        };
        write_orders().map_err(said(orders))?;
        let write_children = || {
            let mut file = BufWriter::new(std::fs::File::create(children)?);
            self.write_children_csv(&mut file)?;
            file.flush()
        };
        write_children().map_err(said(children))?;
        Ok(paths)
    }
}

fn lost_orders(join: &Join) -> Vec<LostOrder> {
    let lost = join.orders.iter().filter_map(|order| {
        let status = order.status(join.open_orders_listed);
        status.is_lost().then(|| LostOrder {
            order_id: order.order_id.0,
            session: order.session.0,
            client_order_id: order.client_order_id.0,
            status: status.name(),
            last_tap: crate::Tap::ALL
                .iter()
                .rev()
                .find(|&&tap| order.at(tap) != Timestamp::NONE)
                .map(|tap| tap.name()),
        })
    });
    lost.take(LOST_LISTED_MAX).collect()
}

fn phases(join: &Join) -> Vec<PhaseReport> {
    let mut reports: Vec<PhaseReport> = (join.phases.iter().enumerate())
        .map(|(index, phase)| PhaseReport {
            name: phase.name.as_str().to_owned(),
            start_ns: phase.start.0,
            end_ns: phase.end.0,
            protocols: protocols(join, Some(index)),
        })
        .collect();
    let outside = protocols(join, None);
    if !outside.is_empty() {
        let name = if join.phases.is_empty() { WHOLE_RUN } else { OUTSIDE };
        reports.push(PhaseReport {
            name: name.to_owned(),
            start_ns: 0,
            end_ns: 0,
            protocols: outside,
        });
    }
    reports
}

fn protocols(join: &Join, phase: Option<usize>) -> Vec<ProtocolReport> {
    let of = |protocol| {
        let orders: Vec<&Order> = join
            .orders
            .iter()
            .filter(|order| order.phase == phase && order.protocol == protocol)
            .collect();
        (!orders.is_empty()).then(|| ProtocolReport::of(join, protocol, &orders))
    };
    Protocol::ALL.iter().filter_map(|&protocol| of(protocol)).collect()
}

impl ProtocolReport {
    fn of(join: &Join, protocol: Protocol, orders: &[&Order]) -> Self {
        let floors = latencies::floors_of(&join.floors, protocol);
        let totals = latencies::TOTALS
            .iter()
            .map(|span| latencies::row(span, orders, &floors, true));
        let hops = latencies::HOPS
            .iter()
            .map(|span| latencies::row(span, orders, &floors, false));
        let (examples_by, median, worst) = match latencies::examples(orders) {
            Some((by, median, worst)) => (Some(by), Some(median), Some(worst)),
            None => (None, None, None),
        };
        Self {
            protocol: protocol.name(),
            orders_per_second: orders_per_second(orders),
            accounting: Accounting::of(orders.iter().copied(), join.open_orders_listed),
            totals: totals.filter(|row| row.percentiles.count > 0).collect(),
            hops: hops.filter(|row| row.percentiles.count > 0).collect(),
            floors: floors.into_iter().map(FloorRow::new).collect(),
            examples_by,
            median,
            worst,
        }
    }
}

/// `orders` are sorted by their start.
#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn orders_per_second(orders: &[&Order]) -> Option<f64> {
    let span_ns = orders.last()?.start().since(orders.first()?.start()).0;
    (span_ns > 0).then(|| ((orders.len() - 1) as f64 * 1e10 / span_ns as f64).round() / 10.0)
}

/// A counter that a component read several times is one; its value at a time is the last one read until then.
fn counters(join: &Join, recordings: &[RecordingFacts]) -> Vec<CounterReport> {
    // That one is a list's length and no counter; the accounting has its figure.
    let counts = |counter: &crate::Counter| counter.name.as_str() != crate::OPEN_ORDERS;
    let mut readings: Vec<_> = join
        .counters
        .iter()
        .filter(|(_, counter)| counts(counter))
        .copied()
        .collect();
    readings.sort_by_key(|(file, counter)| (*file, counter.name, counter.time));
    let of_one = |readings: &[(usize, crate::Counter)]| {
        let (file, last) = readings.last()?;
        let value_at = |time: Timestamp| {
            let until = readings.partition_point(|(_, counter)| counter.time <= time);
            until.checked_sub(1).map_or(0, |index| readings[index].1.value)
        };
        let rise = |phase: &crate::Phase| value_at(phase.end).saturating_sub(value_at(phase.start));
        Some(CounterReport {
            component: recordings[*file].header.component.clone(),
            name: last.name.as_str().to_owned(),
            by_phase: join.phases.iter().map(rise).collect(),
            total: last.value,
        })
    };
    readings
        .chunk_by(|a, b| (a.0, a.1.name) == (b.0, b.1.name))
        .filter_map(of_one)
        .collect()
}

#[cfg(test)]
mod tests;
