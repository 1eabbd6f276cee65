//! The report as one page: no network, no script, light and dark, wide and narrow.

use std::fmt::{self, Write};

use super::chart::{self, Series, Size};
use super::figures::{NONE, count, micros, micros_or_none, ratio, utc};
use super::latencies::{Example, Part, Row};
use super::method;
use super::text::{acknowledged_equation, sent_equation};
use super::{PhaseReport, ProtocolReport, Report};

/// Where the pictures are drawn for a desk and for a phone: letters keep their size on both.
const WIDE: Size = Size {
    width: 520.0,
    height: 300.0,
};
const NARROW: Size = Size {
    width: 340.0,
    height: 270.0,
};

/// Lost orders that are listed one by one; the JSON has more.
const LOST_LISTED_MAX: usize = 100;

/// Of a bar in thousandths of its cell: a hop too short to see is still there.
const BAR_WIDTH_MIN: f64 = 6.0;

const STYLE: &str = include_str!("style.css");

pub(super) fn render(report: &Report) -> String {
    let mut page = String::with_capacity(1 << 17);
    write_page(&mut page, report).expect("a String takes all that is written");
    page
}

/// Text as HTML shows it, in elements and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn write_page(to: &mut String, report: &Report) -> fmt::Result {
    let headline = headline(report);
    writeln!(
        to,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} · tickgate report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
        escape(&headline)
    )?;
    write_head(to, report, &headline)?;
    if let Some(phase) = report.phases.first() {
        write_curves(to, phase)?;
    }
    for phase in report.phases.iter().filter(|phase| !phase.is_outside()) {
        write_phase(to, phase)?;
    }
    write_accounting(to, report)?;
    write_counters(to, report)?;
    method::write(to, report)?;
    write_next(to, report)?;
    to.write_str("</body>\n</html>\n")
}

/// What the page says first: the median tick-to-trade of the first phase, or the first total that there is.
fn headline(report: &Report) -> String {
    let protocols = report.phases.first().map_or(&[][..], |phase| &phase.protocols);
    let Some(first) = protocols.first().and_then(|protocol| protocol.totals.first()) else {
        return "No latency was measured".to_owned();
    };
    let medians: Vec<String> = protocols
        .iter()
        .filter_map(|protocol| {
            let row = protocol.totals.iter().find(|row| row.key == first.key)?;
            Some(format!(
                "{} {} µs",
                protocol.protocol,
                micros_or_none(row.percentiles.p50_ns)
            ))
        })
        .collect();
    let mut title = first.title.to_owned();
    if let Some(letter) = title.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    format!("{title}: {}", medians.join(", "))
}

fn write_head(to: &mut String, report: &Report, headline: &str) -> fmt::Result {
    writeln!(
        to,
        "<header>\n<p class=\"over\">tickgate report</p>\n<h1>{}</h1>",
        escape(headline)
    )?;
    if let Some(first) = report.recordings.first() {
        let host = &first.header.host;
        let medians = report.phases.first().map_or_else(String::new, |phase| {
            let sent: u64 = phase.protocols.iter().map(|protocol| protocol.accounting.sent).sum();
            format!(
                "Medians of the {} orders of the phase “{}”. ",
                count(sent),
                escape(&phase.name)
            )
        });
        writeln!(
            to,
            "<p class=\"lead\">{medians}{} orders in the whole run. Measured on {} ({} cores, {}, host {}), {}.</p>",
            count(report.accounting.sent),
            escape(&host.cpu),
            host.cores,
            escape(&host.kernel),
            escape(&host.name),
            utc(first.header.started)
        )?;
    }
    let (class, verdict) = match (report.complete, report.accounting.lost()) {
        (true, _) => ("good", "✓ Every order is accounted for.".to_owned()),
        (false, 0) => (
            "bad",
            "✗ No order is lost, but the recordings contradict themselves.".to_owned(),
        ),
        (false, lost) => (
            "bad",
            format!(
                "✗ Unaccounted for: {} of {} orders.",
                count(lost),
                count(report.accounting.sent)
            ),
        ),
    };
    writeln!(to, "<p class=\"verdict {class}\">{verdict}</p>")?;
    for warning in &report.warnings {
        writeln!(to, "<p class=\"warning\">{}</p>", escape(warning))?;
    }
    for fact in &report.facts {
        writeln!(to, "<p>{}: {}</p>", escape(&fact.name), escape(&fact.value))?;
    }
    if let Some(phase) = report.phases.first() {
        write_glance(to, phase)?;
    }
    to.write_str("</header>\n")
}

/// The totals that matter most, the protocols under one another.
fn write_glance(to: &mut String, phase: &PhaseReport) -> fmt::Result {
    to.write_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">µs</th>")?;
    for column in ["p50", "p99", "p99.9", "max", "floor", "ratio"] {
        write!(to, "<th scope=\"col\">{column}</th>")?;
    }
    to.write_str("</tr></thead><tbody>\n")?;
    for key in ["tick_to_trade", "order_to_acknowledgement", "gateway_share"] {
        for protocol in &phase.protocols {
            let Some(row) = protocol.totals.iter().find(|row| row.key == key) else {
                continue;
            };
            let percentiles = &row.percentiles;
            write!(to, "<tr><th scope=\"row\">{}, {}</th>", row.title, protocol.protocol)?;
            write!(to, "<td class=\"total\">{}</td>", micros_or_none(percentiles.p50_ns))?;
            let floor_ns = row.floor_p50_ns.map(u64::cast_signed);
            for ns in [percentiles.p99_ns, percentiles.p999_ns, percentiles.max_ns, floor_ns] {
                write!(to, "<td>{}</td>", micros_or_none(ns))?;
            }
            writeln!(to, "<td>{}</td></tr>", ratio(row.ratio))?;
        }
    }
    to.write_str("</tbody></table></div>\n")
}

fn write_curves(to: &mut String, phase: &PhaseReport) -> fmt::Result {
    to.write_str("<div class=\"figures\">\n")?;
    for key in ["tick_to_trade", "order_to_acknowledgement"] {
        let rows: Vec<(&ProtocolReport, &Row)> = phase
            .protocols
            .iter()
            .filter_map(|protocol| Some((protocol, protocol.totals.iter().find(|row| row.key == key)?)))
            .filter(|(_, row)| !row.curve.is_empty())
            .collect();
        let Some((_, first)) = rows.first() else { continue };
        let series: Vec<Series<'_>> = rows
            .iter()
            .map(|(protocol, row)| Series {
                name: protocol.protocol,
                points: &row.curve,
                max_ns: row.percentiles.max_ns.unwrap_or(0),
                floor_p50_ns: row.floor_p50_ns,
            })
            .collect();
        to.write_str("<figure>\n")?;
        for (class, size) in [("wide", WIDE), ("narrow", NARROW)] {
            let mut picture = String::new();
            chart::write(&mut picture, &format!("{} by percentile", first.title), &series, size)?;
            writeln!(
                to,
                "{}",
                picture.replacen("<svg ", &format!("<svg class=\"{class}\" "), 1)
            )?;
        }
        writeln!(
            to,
            "<figcaption><strong>{}</strong>: {}. Both axes are logarithmic.</figcaption>",
            first.title, first.what
        )?;
        write_series_key(to, &series)?;
        to.write_str("</figure>\n")?;
    }
    to.write_str("</div>\n")
}

fn write_series_key(to: &mut String, series: &[Series<'_>]) -> fmt::Result {
    to.write_str("<ul class=\"key\">\n")?;
    for (index, one) in series.iter().enumerate() {
        let mark = match index {
            0 => "<circle class=\"series0 mark\" cx=\"6\" cy=\"6\" r=\"5\"/>",
            _ => "<rect class=\"series1 mark\" x=\"1\" y=\"1\" width=\"10\" height=\"10\"/>",
        };
        writeln!(
            to,
            "<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\">{mark}</svg>{}</li>",
            one.name
        )?;
    }
    if series.iter().any(|one| one.floor_p50_ns.is_some()) {
        to.write_str("<li>dashed: the floor, bare round trips of the same run</li>\n")?;
    }
    to.write_str("</ul>\n")
}

fn write_phase(to: &mut String, phase: &PhaseReport) -> fmt::Result {
    let mut name = phase.name.clone();
    if let Some(letter) = name.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    writeln!(to, "<section>\n<h2>{}</h2>", escape(&name))?;
    if phase.protocols.is_empty() {
        to.write_str("<p>No order was sent in this phase.</p>\n")?;
    }
    for protocol in &phase.protocols {
        write_protocol(to, protocol)?;
    }
    to.write_str("</section>\n")
}

fn write_protocol(to: &mut String, protocol: &ProtocolReport) -> fmt::Result {
    let sums = &protocol.accounting;
    let rate = protocol
        .orders_per_second
        .map_or_else(String::new, |rate| format!(", {rate:.0} a second"));
    writeln!(
        to,
        "<h3>{}: {} orders{rate}</h3>\n<p class=\"quiet\">{}; {}. Times in µs.</p>",
        protocol.protocol,
        count(sums.sent),
        sent_equation(sums),
        acknowledged_equation(sums)
    )?;
    write_rows_head(to, "", false)?;
    for row in &protocol.totals {
        write_row(to, row, row.title, None)?;
    }
    to.write_str("</tbody></table></div>\n")?;
    writeln!(
        to,
        "<h4>{}, hop by hop, each from the tap above</h4>",
        protocol.protocol
    )?;
    write_parts_key(to)?;
    write_rows_head(to, "medians", true)?;
    let longest = protocol
        .hops
        .iter()
        .filter_map(|row| row.percentiles.p50_ns)
        .max()
        .unwrap_or(0);
    for row in &protocol.hops {
        write_row(to, row, &format!("→ <code>{}</code>", row.title), Some(longest))?;
    }
    to.write_str("</tbody></table></div>\n")?;
    for row in protocol
        .totals
        .iter()
        .chain(&protocol.hops)
        .filter(|row| row.negative > 0)
    {
        writeln!(
            to,
            "<p class=\"quiet note\">{} of {} are negative: a send is stamped when the call returns, which the receiver can beat.</p>",
            count(row.negative),
            row.title
        )?;
    }
    if let (Some(by), Some(median), Some(worst)) = (protocol.examples_by, &protocol.median, &protocol.worst) {
        to.write_str("<div class=\"figures\">\n")?;
        write_example(to, &format!("{}: the median order by {by}", protocol.protocol), median)?;
        write_example(to, &format!("{}: the worst order by {by}", protocol.protocol), worst)?;
        to.write_str("</div>\n")?;
    }
    Ok(())
}

fn write_rows_head(to: &mut String, bars: &str, with_bars: bool) -> fmt::Result {
    let bar = if with_bars {
        format!("<th class=\"bar\" scope=\"col\">{bars}</th>")
    } else {
        String::new()
    };
    to.write_str("<div class=\"scroll\"><table><thead><tr><th></th>")?;
    for column in ["count", "p50", "p90", "p99", "p99.9", "max", "floor", "ratio"] {
        write!(to, "<th scope=\"col\">{column}</th>")?;
    }
    writeln!(to, "{bar}</tr></thead><tbody>")
}

/// `title` is HTML already.
fn write_row(to: &mut String, row: &Row, title: &str, longest_ns: Option<i64>) -> fmt::Result {
    let percentiles = &row.percentiles;
    write!(
        to,
        "<tr><th scope=\"row\">{title}<span class=\"what\">{}</span></th>",
        row.what
    )?;
    write!(
        to,
        "<td>{}</td><td class=\"total\">{}</td>",
        count(percentiles.count),
        micros_or_none(percentiles.p50_ns)
    )?;
    for ns in [
        percentiles.p90_ns,
        percentiles.p99_ns,
        percentiles.p999_ns,
        percentiles.max_ns,
    ] {
        write!(to, "<td>{}</td>", micros_or_none(ns))?;
    }
    let floor = micros_or_none(row.floor_p50_ns.map(u64::cast_signed));
    write!(to, "<td>{floor}</td><td>{}</td>", ratio(row.ratio))?;
    if let Some(longest_ns) = longest_ns {
        let p50_ns = percentiles.p50_ns.unwrap_or(0);
        write!(to, "<td class=\"bar\">{}</td>", bar(row.part, 0, p50_ns, longest_ns))?;
    }
    to.write_str("</tr>\n")
}

/// A bar from `from_ns` to `to_ns` on an axis from 0 to `whole_ns`, as wide as its cell.
#[allow(clippy::cast_precision_loss, reason = "a picture")]
fn bar(part: Part, from_ns: i64, to_ns: i64, whole_ns: i64) -> String {
    let at = |ns: i64| (ns.max(0) as f64 / whole_ns.max(1) as f64 * 1_000.0).min(1_000.0);
    let (from, to) = (at(from_ns.min(to_ns)), at(from_ns.max(to_ns)));
    let width = (to - from).max(BAR_WIDTH_MIN);
    let from = from.min(1_000.0 - width);
    format!(
        "<svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"{}\" x=\"{from:.0}\" y=\"0\" width=\"{width:.0}\" height=\"10\"/></svg>",
        part.name()
    )
}

fn write_parts_key(to: &mut String) -> fmt::Result {
    to.write_str("<ul class=\"key\">\n")?;
    for part in [Part::Network, Part::Client, Part::Gateway, Part::Exchange] {
        let name = part.name();
        writeln!(
            to,
            "<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"{name}\" width=\"12\" height=\"12\"/></svg>\
             {name}</li>"
        )?;
    }
    to.write_str("</ul>\n")
}

/// One order as a staircase: when each hop began and how long it took.
fn write_example(to: &mut String, title: &str, example: &Example) -> fmt::Result {
    writeln!(
        to,
        "<div class=\"orders\"><h4>{title}</h4>\n<p class=\"quiet\">session {}, order {}, gateway’s number {:#x}, tick {}</p>\n\
         <div class=\"scroll\"><table><thead><tr><th></th><th class=\"bar\"></th><th scope=\"col\">hop, µs</th>\
         <th class=\"since\" scope=\"col\">since first</th></tr></thead><tbody>",
        example.session, example.client_order_id, example.order_id, example.trigger
    )?;
    let whole_ns = example
        .taps
        .iter()
        .map(|passed| passed.since_first_ns)
        .max()
        .unwrap_or(0);
    for (index, passed) in example.taps.iter().enumerate() {
        let part = method::part_before(passed.tap);
        let before_ns = passed.since_first_ns - passed.hop_ns;
        let (bar, hop) = match index {
            0 => (String::new(), NONE.to_owned()),
            _ => (
                bar(part, before_ns, passed.since_first_ns, whole_ns),
                micros(passed.hop_ns),
            ),
        };
        writeln!(
            to,
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"bar\">{bar}</td><td>{hop}</td><td class=\"since\">{}</td></tr>",
            passed.tap,
            micros(passed.since_first_ns)
        )?;
    }
    to.write_str("</tbody></table></div></div>\n")
}

fn write_accounting(to: &mut String, report: &Report) -> fmt::Result {
    let sums = &report.accounting;
    writeln!(
        to,
        "<section>\n<h2>Accounting</h2>\n<p class=\"sum\">{}</p>\n<p class=\"sum\">{}</p>\n\
         <p>{} lots traded; {} orders traded in part. Cancels and replaces: {} sent, {} answered.</p>",
        bold_figures(&sent_equation(sums)),
        bold_figures(&acknowledged_equation(sums)),
        count(sums.lots_traded),
        count(sums.partly_filled),
        count(report.requests.sent),
        count(report.requests.answered)
    )?;
    let open = if report.open_orders_listed {
        "Open orders were held against the exchange’s own list at the end of the run."
    } else {
        "Open orders are open by the client’s reports; the exchange gave no list to hold them against."
    };
    writeln!(to, "<p class=\"quiet\">{open}</p>")?;
    if !(sums.refusals.is_empty() && sums.cancels.is_empty()) {
        to.write_str(
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">reason</th><th class=\"text\" scope=\"col\">what</th>\
             <th scope=\"col\">orders</th></tr></thead><tbody>\n",
        )?;
        for refusals in &sums.refusals {
            let what = format!("refused by the {}", refusals.by);
            write_reason(to, refusals.reason, &what, refusals.count)?;
        }
        for cancels in &sums.cancels {
            write_reason(to, cancels.reason, "cancelled", cancels.count)?;
        }
        to.write_str("</tbody></table></div>\n")?;
    }
    for problem in &report.problems {
        writeln!(to, "<p class=\"bad\">{}</p>", escape(problem))?;
    }
    write_lost_orders(to, report)?;
    to.write_str("</section>\n")
}

fn write_reason(to: &mut String, reason: &str, what: &str, orders: u64) -> fmt::Result {
    let (reason, orders) = (escape(reason), count(orders));
    writeln!(
        to,
        "<tr><th scope=\"row\">{reason}</th><td class=\"text\">{what}</td><td>{orders}</td></tr>"
    )
}

fn write_lost_orders(to: &mut String, report: &Report) -> fmt::Result {
    if report.lost_orders.is_empty() {
        return Ok(());
    }
    to.write_str(
        "<h3 class=\"bad\">Orders that are unaccounted for</h3>\n<div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">session</th><th scope=\"col\">order</th><th scope=\"col\">gateway’s number</th>\
         <th class=\"text\" scope=\"col\">status</th><th class=\"text\" scope=\"col\">last seen at</th></tr></thead><tbody>\n",
    )?;
    for order in report.lost_orders.iter().take(LOST_LISTED_MAX) {
        writeln!(
            to,
            "<tr><td>{}</td><td>{}</td><td>{:#x}</td><td class=\"text\">{}</td><td class=\"text\"><code>{}</code></td></tr>",
            order.session,
            order.client_order_id,
            order.order_id,
            order.status,
            order.last_tap.unwrap_or(NONE)
        )?;
    }
    to.write_str("</tbody></table></div>\n")?;
    if report.lost_orders.len() > LOST_LISTED_MAX {
        to.write_str("<p>The others are in <code>tickgate-report.json</code> and <code>orders.csv</code>.</p>\n")?;
    }
    Ok(())
}

/// The figures of an equation in bold.
fn bold_figures(equation: &str) -> String {
    let words = equation.split(' ').map(|word| match word.chars().next() {
        Some('0'..='9') => format!("<b>{word}</b>"),
        _ => escape(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn write_counters(to: &mut String, report: &Report) -> fmt::Result {
    if report.counters.is_empty() {
        return Ok(());
    }
    to.write_str(
        "<section>\n<h2>Counters</h2>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">counter</th>\
         <th class=\"text\" scope=\"col\">component</th>",
    )?;
    for phase in report.phases.iter().filter(|phase| phase.end_ns > 0) {
        write!(to, "<th scope=\"col\">{}</th>", escape(&phase.name))?;
    }
    to.write_str("<th scope=\"col\">total</th></tr></thead><tbody>\n")?;
    for counter in &report.counters {
        write!(
            to,
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"text\">{}</td>",
            escape(&counter.name),
            escape(&counter.component)
        )?;
        for &value in &counter.by_phase {
            write!(to, "<td>{}</td>", count(value))?;
        }
        writeln!(to, "<td>{}</td></tr>", count(counter.total))?;
    }
    to.write_str("</tbody></table></div>\n</section>\n")
}

fn write_next(to: &mut String, report: &Report) -> fmt::Result {
    if report.next.is_empty() {
        return Ok(());
    }
    writeln!(
        to,
        "<section>\n<h2>Try next</h2>\n<pre>{}</pre>\n</section>",
        escape(&report.next.join("\n"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_html_is_escaped() {
        assert_eq!(escape("<b class=\"x\">&'"), "&lt;b class=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn a_bar_stays_within_its_cell_and_can_be_seen() {
        assert!(bar(Part::Gateway, 0, 0, 0).contains("x=\"0\" y=\"0\" width=\"6\""));
        assert!(bar(Part::Gateway, 1_000, 1_000, 1_000).contains("x=\"994\" y=\"0\" width=\"6\""));
        assert!(bar(Part::Gateway, 500, 250, 1_000).contains("x=\"250\" y=\"0\" width=\"250\""));
    }
}
