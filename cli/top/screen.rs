//! Readings as a screen for people, and as lines of JSON for programs.

use super::catalog::{Counter, Group};
use super::health::{Health, Severity};
use super::rates::{Reading, Value};
use super::read::Port;
use serde_json::{Map, json};
use std::fmt::Write;
use std::time::Duration;

/// Characters of a line with many names.
const WIDTH: usize = 100;

/// One port as text: its health first, then what counted, then by name what is 0 and what is absent.
pub(super) fn port(port: &Port, reading: &Reading, health: &Health, catalog: &[Counter], interval: Duration) -> String {
    let mut text = String::new();
    let interface = reading.interface.as_deref().unwrap_or("-");
    let _ = writeln!(text, "{}/{} on {interface}", port.device, port.port);
    if reading.is_gone {
        text.push_str("  gone: the device was here, and is not now\n\n");
        return text;
    }
    for line in health.lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(
        text,
        "  {:<16} {:<32} {:>14} {:>20}",
        "", "COUNTER", "PER SECOND", "TOTAL"
    );
    for group in Group::ALL {
        let of_group = || catalog.iter().filter(|counter| counter.group == group);
        let mut title = group.title();
        if !of_group().any(|counter| reading.has(&counter.name)) {
            let _ = writeln!(text, "  {title:<16} {:<32} {:>14} {:>20}", "-", "-", "-");
            continue;
        }
        for counter in of_group() {
            let Some(value) = reading.values.get(&counter.name).filter(|value| value.total > 0) else {
                continue;
            };
            let rate = rate(value, interval).map_or("-".to_owned(), |rate| format!("{rate:.1}"));
            let _ = writeln!(
                text,
                "  {title:<16} {:<32} {rate:>14} {:>20}",
                counter.name, value.total
            );
            title = "";
        }
    }
    let is_zero = |name: &str| reading.values.get(name).is_some_and(|value| value.total == 0);
    names(
        &mut text,
        "  0:",
        catalog.iter().filter(|counter| is_zero(&counter.name)),
    );
    // Of a group that is there: one that is not has its row.
    let is_absent = |counter: &&Counter| {
        let mut group = catalog.iter().filter(|other| other.group == counter.group);
        !reading.has(&counter.name) && group.any(|other| reading.has(&other.name))
    };
    names(&mut text, "  -:", catalog.iter().filter(is_absent));
    text.push('\n');
    text
}

/// A list of names; of priorities with the same counter, their numbers behind its name.
fn names<'a>(text: &mut String, title: &str, counters: impl Iterator<Item = &'a Counter>) {
    let mut words: Vec<(String, String)> = Vec::new();
    for counter in counters {
        let (name, priority) = without_priority(&counter.name);
        match words.iter_mut().find(|(word, _)| *word == name) {
            Some((_, priorities)) => priorities.push_str(priority),
            None => words.push((name, priority.to_owned())),
        }
    }
    let mut line = title.to_owned();
    for (name, priorities) in &words {
        let word = if priorities.is_empty() {
            name.clone()
        } else {
            format!("{name}[{priorities}]")
        };
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = "    ".to_owned();
        }
        line.push(' ');
        line.push_str(&word);
    }
    if !words.is_empty() {
        let _ = writeln!(text, "{line}");
    }
}

/// `rx_prio3_pause` as `rx_prioN_pause` and `3`; another name as it is.
fn without_priority(name: &str) -> (String, &str) {
    match name.split_once("_prio") {
        Some((way, rest)) if rest.starts_with(|digit: char| digit.is_ascii_digit()) => {
            (format!("{way}_prioN{}", &rest[1..]), &rest[..1])
        }
        _ => (name.to_owned(), ""),
    }
}

/// One port as JSON. Every name that is known is there; what is absent is null.
pub(super) fn json(
    port: &Port,
    reading: &Reading,
    health: &Health,
    catalog: &[Counter],
    interval: Duration,
) -> serde_json::Value {
    let counters: Map<String, serde_json::Value> = catalog
        .iter()
        .map(|counter| {
            let value = reading.values.get(&counter.name);
            let json = value.map_or(
                serde_json::Value::Null,
                |value| json!({"total": value.total, "rise": value.rise, "per_second": rate(value, interval)}),
            );
            (counter.name.clone(), json)
        })
        .collect();
    let health = (!reading.is_gone).then(|| {
        let verdict = match health.severity() {
            Severity::Fine => "fine",
            Severity::Unknown => "unknown",
            Severity::Warning => "warning",
            Severity::Broken => "broken",
        };
        json!({"verdict": verdict, "lines": health.lines()})
    });
    json!({
        "device": port.device,
        "port": port.port,
        "interface": reading.interface,
        "gone": reading.is_gone,
        "health": health,
        "counters": counters,
    })
}

/// How fast a counter rises.
fn rate(value: &Value, interval: Duration) -> Option<f64> {
    Some(value.rise? as f64 / interval.as_secs_f64())
}
