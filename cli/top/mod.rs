//! `tickgate top --rdma`: the RDMA and pause-frame counters of this host, as rates and totals, and what they say about its
//! lossless class. It reads, and changes nothing.

mod catalog;
mod health;
mod rates;
mod read;
mod screen;
#[cfg(test)]
mod tests;

use crate::Failure;
use crate::journal::utc;
use crate::output::written;
use catalog::Counter;
use clap::Args as ClapArgs;
use rates::{Rates, Reading};
use read::Port;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use types::Timestamp;

/// Shows what this host counts, anew each interval. So far that is RDMA; a running gateway is not shown yet.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// RDMA devices and pause frames: rates, totals, and whether the lossless class works.
    #[arg(long, required = true)]
    rdma: bool,

    /// Print one line of JSON for each interval.
    #[arg(long)]
    json: bool,

    /// Seconds between two readings.
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    interval: Duration,

    /// End after so many intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Where the kernel's files are.
const ROOT: &str = "/";

/// The cursor goes home, and what it draws over does not flicker; the rest of lines and of the screen is cleared.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Runs the subcommand, until it has shown `count` intervals or nobody reads any more.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let catalog = catalog::all();
    let read = || {
        let ask = |interface: &str| net::nic::statistics(interface).unwrap_or_default();
        (Instant::now(), read::sample(Path::new(ROOT), &catalog, ask))
    };
    let mut rates = Rates::default();
    let (mut last, sample) = read();
    if sample.is_empty() {
        return Err(Failure::new(format_args!(
            "no RDMA device on this host: nothing in {ROOT}{}; `rdma link` lists devices, and with the module rdma_rxe \
             `rdma link add rxe0 type rxe netdev INTERFACE` makes one",
            read::DEVICES
        )));
    }
    rates.next(&catalog, sample);
    let mut out = io::stdout().lock();
    let redraws = out.is_terminal() && !args.json;
    if redraws {
        write!(out, "{HOME}{CLEAR_BELOW}")?;
        out.flush()?;
    }
    let mut shown = 0;
    while args.count.is_none_or(|count| shown < count) {
        std::thread::sleep(args.interval);
        let (now, sample) = read();
        let interval = now - last;
        last = now;
        let readings = rates.next(&catalog, sample);
        let text = if args.json {
            line(&readings, &catalog, interval)
        } else {
            page(&readings, &catalog, interval)
        };
        let text = if redraws {
            format!("{HOME}{}{CLEAR_BELOW}", text.replace('\n', &format!("{CLEAR_LINE}\n")))
        } else {
            text
        };
        if !written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))? {
            return Ok(());
        }
        shown += 1;
    }
    Ok(())
}

/// All ports as text.
fn page(readings: &BTreeMap<Port, Reading>, catalog: &[Counter], interval: Duration) -> String {
    let mut text = format!("RDMA {}, over {:.1} s\n", utc(now()), interval.as_secs_f64());
    for (port, reading) in readings {
        let health = health::judge(reading, interval);
        let _ = write!(text, "{}", screen::port(port, reading, &health, catalog, interval));
    }
    text
}

/// All ports as a line of JSON.
fn line(readings: &BTreeMap<Port, Reading>, catalog: &[Counter], interval: Duration) -> String {
    let ports: Vec<_> = readings
        .iter()
        .map(|(port, reading)| {
            let health = health::judge(reading, interval);
            screen::json(port, reading, &health, catalog, interval)
        })
        .collect();
    let line = json!({"time": utc(now()), "interval_s": interval.as_secs_f64(), "ports": ports});
    format!("{line}\n")
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp(u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX))
}

/// The kernel reads a card's counters anew only every 10 ms.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number from 0.1 to 3600".to_owned()),
    }
}
