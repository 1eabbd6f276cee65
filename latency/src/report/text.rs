//! The report for a terminal.

use std::fmt::{self, Write};

use super::figures::{count, micros, micros_or_none, ratio, utc};
use super::latencies::{Example, FloorRow, Row};
use super::{Accounting, CounterReport, PhaseReport, ProtocolReport, Report};

/// Lost orders that are listed one by one; the JSON has more.
const LOST_LISTED_MAX: usize = 20;

pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    write_report(&mut text, report).expect("a String takes all that is written");
    text
}

fn write_report(to: &mut String, report: &Report) -> fmt::Result {
    write_run(to, report)?;
    for (index, phase) in report.phases.iter().enumerate() {
        if phase.is_outside() {
            write_outside(to, phase)?;
            continue;
        }
        for protocol in &phase.protocols {
            write_protocol(to, phase, protocol)?;
            if index == 0 {
                write_examples(to, protocol)?;
            }
        }
    }
    write_accounting(to, report)?;
    write_counters(to, report)?;
    for fact in &report.facts {
        writeln!(to, "{}: {}", fact.name, fact.value)?;
    }
    for warning in &report.warnings {
        writeln!(to, "warning: {warning}")?;
    }
    write_verdict(to, report)?;
    for (index, command) in report.next.iter().enumerate() {
        writeln!(to, "{} {command}", if index == 0 { "try next:" } else { "         " })?;
    }
    Ok(())
}

fn write_run(to: &mut String, report: &Report) -> fmt::Result {
    let Some(first) = report.recordings.first() else {
        return Ok(());
    };
    let host = &first.header.host;
    writeln!(
        to,
        "{}, {} cores, {}, host {}",
        host.cpu, host.cores, host.kernel, host.name
    )?;
    for recording in &report.recordings {
        let header = &recording.header;
        let placed: Vec<String> = header
            .placement
            .iter()
            .map(|placement| match placement.core {
                Some(core) => format!("{} on core {core}", placement.thread),
                None => format!("{} not pinned", placement.thread),
            })
            .collect();
        writeln!(
            to,
            "{} {}, {}: {}; idle: {}; clock: {} ±{} ns",
            header.component,
            header.commit,
            utc(header.started),
            placed.join(", "),
            header.idle,
            header.clock.source,
            header.clock.error_ns
        )?;
        if !header.transports.is_empty() {
            writeln!(to, "  {}", header.transports.join("; "))?;
        }
    }
    Ok(())
}

/// One line for the orders of the warm-up and those between two phases.
fn write_outside(to: &mut String, phase: &PhaseReport) -> fmt::Result {
    let sent = phase
        .protocols
        .iter()
        .map(|protocol| format!("{} {}", count(protocol.accounting.sent), protocol.protocol))
        .collect::<Vec<_>>();
    writeln!(
        to,
        "\n{} orders of the warm-up and between phases are in no table; all that follows counts them",
        sent.join(" and ")
    )
}

fn write_protocol(to: &mut String, phase: &PhaseReport, protocol: &ProtocolReport) -> fmt::Result {
    let rate = protocol
        .orders_per_second
        .map_or_else(String::new, |rate| format!(", {rate:.0} a second"));
    writeln!(
        to,
        "\n== {} · {} · {} orders{rate} (times in µs) ==",
        phase.name,
        protocol.protocol,
        count(protocol.accounting.sent)
    )?;
    let mut table = Table::new(["", "count", "p50", "p90", "p99", "p99.9", "max", "floor", "ratio"]);
    for row in &protocol.totals {
        table.push(cells(row.title.to_owned(), row));
    }
    table.heading("hop by hop, each from the tap above");
    for row in &protocol.hops {
        table.push(cells(format!("→ {}", row.title), row));
    }
    table.write(to)?;
    for row in protocol
        .totals
        .iter()
        .chain(&protocol.hops)
        .filter(|row| row.negative > 0)
    {
        let negative = count(row.negative);
        writeln!(
            to,
            "{negative} of {} are negative: a send is stamped when the call returns, which the receiver can beat",
            row.title
        )?;
    }
    if !protocol.floors.is_empty() {
        let floors: Vec<String> = protocol.floors.iter().map(floor).collect();
        writeln!(to, "floor, bare round trips of this run at p50: {}", floors.join(", "))?;
    }
    Ok(())
}

/// Of the first phase only, for a terminal's sake; the page has those of all.
fn write_examples(to: &mut String, protocol: &ProtocolReport) -> fmt::Result {
    if let (Some(by), Some(median), Some(worst)) = (protocol.examples_by, &protocol.median, &protocol.worst) {
        writeln!(to, "\nthe median and the worst order by {by} (µs)")?;
        examples(median, worst).write(to)?;
    }
    Ok(())
}

fn cells(title: String, row: &Row) -> Vec<String> {
    let percentiles = &row.percentiles;
    vec![
        title,
        count(percentiles.count),
        short(percentiles.p50_ns),
        short(percentiles.p90_ns),
        short(percentiles.p99_ns),
        short(percentiles.p999_ns),
        short(percentiles.max_ns),
        short(row.floor_p50_ns.map(u64::cast_signed)),
        ratio(row.ratio),
    ]
}

/// Microseconds with no more digits than say something, so that a table fits into 80 columns.
fn short(ns: Option<i64>) -> String {
    match ns {
        Some(ns) if ns.unsigned_abs() >= 1_000_000 => {
            let sign = if ns < 0 { "−" } else { "" };
            format!("{sign}{}", count((ns.unsigned_abs() + 500) / 1_000))
        }
        Some(ns) if ns.unsigned_abs() >= 100_000 => {
            let text = micros(ns);
            text[..text.len() - 1].to_owned()
        }
        _ => micros_or_none(ns),
    }
}

fn floor(floor: &FloorRow) -> String {
    format!(
        "{} ({}) {} µs",
        floor.leg,
        floor.transport,
        micros_or_none(floor.percentiles.p50_ns)
    )
}

/// Both orders side by side, every tap that one of them passed.
fn examples(median: &Example, worst: &Example) -> Table {
    let mut table = Table::new(["", "median hop", "since first", "worst hop", "since first"]);
    table.push(vec![
        "order".to_owned(),
        String::new(),
        format!("{:#x}", median.order_id),
        String::new(),
        format!("{:#x}", worst.order_id),
    ]);
    for tap in crate::Tap::ALL {
        let passed = [median, worst].map(|example| example.taps.iter().find(|passed| passed.tap == tap.name()));
        if passed == [None, None] {
            continue;
        }
        let [median, worst] = passed.map(|passed| {
            [
                passed.map(|passed| passed.hop_ns),
                passed.map(|passed| passed.since_first_ns),
            ]
            .map(micros_or_none)
        });
        let [median_hop, median_since] = median;
        let [worst_hop, worst_since] = worst;
        table.push(vec![
            tap.name().to_owned(),
            median_hop,
            median_since,
            worst_hop,
            worst_since,
        ]);
    }
    table
}

fn write_accounting(to: &mut String, report: &Report) -> fmt::Result {
    writeln!(to, "\n== accounting ==")?;
    let sums = &report.accounting;
    writeln!(to, "{}", sent_equation(sums))?;
    writeln!(to, "{}", acknowledged_equation(sums))?;
    for refusals in &sums.refusals {
        writeln!(
            to,
            "refused by the {}: {} × {}",
            refusals.by,
            count(refusals.count),
            refusals.reason
        )?;
    }
    for cancels in &sums.cancels {
        writeln!(to, "cancelled: {} × {}", count(cancels.count), cancels.reason)?;
    }
    writeln!(
        to,
        "traded {} lots; {} orders traded in part; cancels and replaces: {} sent, {} answered",
        count(sums.lots_traded),
        count(sums.partly_filled),
        count(report.requests.sent),
        count(report.requests.answered)
    )
}

/// `sent 5 = acknowledged 4 + refused 1`; what must not be is told only when it is.
pub(super) fn sent_equation(sums: &Accounting) -> String {
    let lost = if sums.unanswered > 0 {
        format!(" + unanswered {}", count(sums.unanswered))
    } else {
        String::new()
    };
    let (sent, acknowledged, refused) = (count(sums.sent), count(sums.acknowledged), count(sums.refused));
    format!("sent {sent} = acknowledged {acknowledged} + refused {refused}{lost}")
}

/// `acknowledged 4 = filled 1 + cancelled 1 + expired 1 + open 1`, likewise.
pub(super) fn acknowledged_equation(sums: &Accounting) -> String {
    let lost = if sums.vanished > 0 {
        format!(" + vanished {}", count(sums.vanished))
    } else {
        String::new()
    };
    format!(
        "acknowledged {} = filled {} + cancelled {} + expired {} + open {}{lost}",
        count(sums.acknowledged),
        count(sums.filled),
        count(sums.cancelled),
        count(sums.expired),
        count(sums.open)
    )
}

fn write_counters(to: &mut String, report: &Report) -> fmt::Result {
    if report.counters.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n== counters ==")?;
    let mut columns = vec![String::new()];
    let recorded = report.phases.iter().filter(|phase| phase.end_ns > 0);
    columns.extend(recorded.map(|phase| phase.name.clone()));
    columns.push("total".to_owned());
    let mut table = Table::new(columns);
    for counter in &report.counters {
        table.push(counter_cells(counter));
    }
    table.write(to)
}

fn counter_cells(counter: &CounterReport) -> Vec<String> {
    let mut cells = vec![format!("{} {}", counter.component, counter.name)];
    cells.extend(counter.by_phase.iter().map(|&value| count(value)));
    cells.push(count(counter.total));
    cells
}

fn write_verdict(to: &mut String, report: &Report) -> fmt::Result {
    for order in report.lost_orders.iter().take(LOST_LISTED_MAX) {
        writeln!(
            to,
            "lost: session {} order {} ({:#x}) {}, last seen at {}",
            order.session,
            order.client_order_id,
            order.order_id,
            order.status,
            order.last_tap.unwrap_or("no tap")
        )?;
    }
    let more = report.accounting.lost().saturating_sub(LOST_LISTED_MAX as u64);
    if more > 0 {
        writeln!(to, "lost: and {} more", count(more))?;
    }
    for problem in &report.problems {
        writeln!(to, "problem: {problem}")?;
    }
    match (report.complete, report.accounting.lost()) {
        (true, _) => writeln!(to, "every order is accounted for"),
        (false, 0) => writeln!(
            to,
            "no order is lost, but the recordings contradict themselves (see above)"
        ),
        (false, lost) => writeln!(
            to,
            "unaccounted for: {} of {} orders",
            count(lost),
            count(report.accounting.sent)
        ),
    }
}

/// Columns as wide as their widest cell; the first one to the left, figures to the right.
struct Table {
    rows: Vec<Line>,
}

enum Line {
    Cells(Vec<String>),
    Heading(&'static str),
}

impl Table {
    fn new<T: Into<String>>(columns: impl IntoIterator<Item = T>) -> Self {
        Self {
            rows: vec![Line::Cells(columns.into_iter().map(Into::into).collect())],
        }
    }

    fn push(&mut self, cells: Vec<String>) {
        self.rows.push(Line::Cells(cells));
    }

    fn heading(&mut self, heading: &'static str) {
        self.rows.push(Line::Heading(heading));
    }

    fn write(&self, to: &mut String) -> fmt::Result {
        let mut widths: Vec<usize> = Vec::new();
        for line in &self.rows {
            let Line::Cells(cells) = line else { continue };
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for line in &self.rows {
            match line {
                Line::Heading(heading) => writeln!(to, "{heading}")?,
                Line::Cells(cells) => {
                    for (index, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                        if index == 0 {
                            write!(to, " {cell:<width$}")?;
                        } else {
                            write!(to, " {cell:>width$}")?;
                        }
                    }
                    writeln!(to)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_characters_and_not_by_bytes() {
        let mut table = Table::new(["", "µs"]);
        table.push(vec!["→ a".into(), "1.00".into()]);
        table.push(vec!["long name".into(), "–".into()]);
        let mut text = String::new();
        table.write(&mut text).unwrap();
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [15, 15, 15]);
        assert!(text.ends_with(" long name    –\n"));
    }

    #[test]
    fn long_times_have_fewer_decimals() {
        for (ns, text) in [
            (99_990, "99.99"),
            (100_000, "100.0"),
            (999_940, "999.9"),
            (1_000_000, "1,000"),
            (-41_028_550, "−41,029"),
        ] {
            assert_eq!(short(Some(ns)), text);
        }
        assert_eq!(short(None), "–");
    }

    #[test]
    fn a_lost_order_stands_in_the_equation() {
        let sums = Accounting {
            sent: 3,
            acknowledged: 1,
            refused: 1,
            unanswered: 1,
            vanished: 1,
            ..Default::default()
        };
        assert_eq!(
            sent_equation(&sums),
            "sent 3 = acknowledged 1 + refused 1 + unanswered 1"
        );
        assert_eq!(
            acknowledged_equation(&sums),
            "acknowledged 1 = filled 0 + cancelled 0 + expired 0 + open 0 + vanished 1"
        );
    }
}
