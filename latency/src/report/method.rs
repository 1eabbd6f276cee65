//! The part of the page that lets a sceptic judge the figures: what was measured, how, where and with what.

use std::fmt::{self, Write};

use super::figures::{count, micros_or_none, utc};
use super::html::escape;
use super::latencies::{FloorRow, HOPS, Part};
use super::{RecordingFacts, Report};
use crate::tap::Tap;

/// Whose time the hop that ends at this tap is.
pub(super) fn part_before(tap: &str) -> Part {
    HOPS.iter()
        .find(|hop| hop.key == tap)
        .map_or(Part::Whole, |hop| hop.part)
}

pub(super) fn write(to: &mut String, report: &Report) -> fmt::Result {
    to.write_str("<section>\n<h2>Method</h2>\n")?;
    to.write_str(RULES)?;
    write_floors(to, report)?;
    write_taps(to)?;
    to.write_str("</section>\n<section>\n<h2>The run</h2>\n")?;
    for recording in &report.recordings {
        write_recording(to, recording)?;
    }
    to.write_str("</section>\n")
}

/// What holds for every report.
const RULES: &str = "\
<ul>
<li>A tick and the order that it caused are joined by identity: the order carries the tick’s feed and sequence number. \
An order, its fate at the gateway and at the exchange, and its reports are joined by the gateway’s number for it.</li>
<li>Percentiles are of exact samples, by nearest rank. One with fewer than ten samples beyond it is “–”; \
the maximum is always told. A curve ends where ten samples are left; the mark at its right is the maximum.</li>
<li>A hop’s percentiles are its own. They belong to different orders, so they do not add up to those of the whole; \
the taps of one order do.</li>
<li>Orders of a plan have a planned time, and “plan to acknowledgement” counts from it, so an order that \
had to wait behind others is not excused.</li>
<li>Stamps are taken by the programs themselves: before a send for <code>tick_sent</code>, <code>order_sent</code> and \
<code>exchange_reported</code>, after it for <code>venue_sent</code> and <code>report_sent</code>. On one host the receiver \
may have the bytes before the sender’s call returns, so a hop that begins after a send can be negative; it is counted as it \
is, and it has no floor, since the send is behind it.</li>
<li>The floor of a hop or total is made of bare round trips on the same kind of sockets between the same cores in the same \
run, spinning and doing nothing else: half of one for each way that it cannot do without. It is told at the median, where halves \
and sums mean something. The ratio is the measured median over the floor’s.</li>
</ul>
";

fn write_floors(to: &mut String, report: &Report) -> fmt::Result {
    let mut rows: Vec<(&str, &FloorRow)> = Vec::new();
    for protocol in report.phases.iter().flat_map(|phase| &phase.protocols) {
        if rows.iter().all(|(name, _)| *name != protocol.protocol) {
            rows.extend(protocol.floors.iter().map(|floor| (protocol.protocol, floor)));
        }
    }
    if rows.is_empty() {
        return to.write_str("<p>No floor was measured in this run, so there are no ratios.</p>\n");
    }
    to.write_str(
        "<h3>Floor: bare round trips of this run, µs</h3>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">leg</th>\
         <th class=\"text\" scope=\"col\">clients</th><th class=\"text\" scope=\"col\">transport</th><th scope=\"col\">count</th>\
         <th scope=\"col\">p50</th><th scope=\"col\">p90</th><th scope=\"col\">p99</th><th scope=\"col\">p99.9</th>\
         <th scope=\"col\">max</th></tr></thead><tbody>\n",
    )?;
    for (protocol, floor) in rows {
        let percentiles = &floor.percentiles;
        write!(
            to,
            "<tr><th scope=\"row\">{}</th><td class=\"text\">{protocol}</td><td class=\"text\">{}</td><td>{}</td>",
            floor.leg,
            escape(&floor.transport),
            count(percentiles.count)
        )?;
        let told = [
            percentiles.p50_ns,
            percentiles.p90_ns,
            percentiles.p99_ns,
            percentiles.p999_ns,
            percentiles.max_ns,
        ];
        for ns in told {
            write!(to, "<td>{}</td>", micros_or_none(ns))?;
        }
        to.write_str("</tr>\n")?;
    }
    to.write_str("</tbody></table></div>\n")
}

fn write_taps(to: &mut String) -> fmt::Result {
    to.write_str(
        "<h3>Taps: when the times are taken</h3>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">tap</th>\
         <th class=\"text\" scope=\"col\">taken when</th><th class=\"text\" scope=\"col\">the hop before it</th></tr></thead><tbody>\n",
    )?;
    for tap in Tap::ALL {
        let hop = HOPS.iter().find(|hop| hop.key == tap.name());
        let before = hop.map_or_else(String::new, |hop| format!("{} ({})", hop.what, hop.part.name()));
        writeln!(
            to,
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"text\">{}</td><td class=\"text\">{before}</td></tr>",
            tap.name(),
            tap.meaning()
        )?;
    }
    to.write_str("</tbody></table></div>\n")
}

fn write_recording(to: &mut String, recording: &RecordingFacts) -> fmt::Result {
    let header = &recording.header;
    let clock = &header.clock;
    writeln!(
        to,
        "<h3>{}</h3>\n<div class=\"scroll\"><table><tbody>",
        escape(&header.component)
    )?;
    let mut fact = |name: &str, value: &str| {
        writeln!(
            to,
            "<tr><th scope=\"row\">{name}</th><td class=\"text\">{}</td></tr>",
            escape(value)
        )
    };
    fact("program", &header.commit)?;
    fact("started", &utc(header.started))?;
    fact(
        "host",
        &format!(
            "{}: {}, {} cores, {}",
            header.host.name, header.host.cpu, header.host.cores, header.host.kernel
        ),
    )?;
    for placement in &header.placement {
        let core = placement
            .core
            .map_or_else(|| "not pinned".to_owned(), |core| format!("core {core}"));
        fact("placement", &format!("{}: {core}", placement.thread))?;
    }
    fact("without work", &header.idle)?;
    for transport in &header.transports {
        fact("transport", transport)?;
    }
    let source = match clock.ticks_per_second {
        0 => clock.source.clone(),
        ticks => format!("{} at {} MHz", clock.source, count(ticks / 1_000_000)),
    };
    fact(
        "clock",
        &format!(
            "{source}, within {} ns of the system's clock at the last calibration",
            clock.error_ns
        ),
    )?;
    let dropped = match recording.dropped {
        Some(dropped) => format!("{} dropped", count(dropped)),
        None => "cut off".to_owned(),
    };
    fact(
        "recording",
        &format!(
            "{}: {} records, {dropped}",
            recording.file.display(),
            count(recording.records)
        ),
    )?;
    to.write_str("</tbody></table></div>\n")
}
