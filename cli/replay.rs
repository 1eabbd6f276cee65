//! `tickgate replay`: read, inspect, filter, pace and publish a historical feed; write the instrument file of a feed.

use crate::Failure;
use crate::output::{note, say, written};
use crate::process::{Interrupt, Progress};
use clap::Args as ClapArgs;
use feeds::{
    BinaryFile, Ending, FeedFile, Inspection, Pace, Replay, ReplayConfig, SymbolFacts, UdpPublisherConfig, instruments,
    limits,
};
use latency::Clock;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;
use types::{Duration, Price, Symbol};

/// Reads ITCH 5.0 feeds (BinaryFILE, plain or gzipped): shows what is in them, writes the instrument file they suggest, or
/// publishes them over MoldUDP64.
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  tickgate replay feeds/sample/sample.itch.gz
  tickgate replay day.itch.gz --symbols AAPL,MSFT --instruments instruments.csv
  tickgate replay day.itch.gz --publish 127.0.0.1:26400 --pace 2x --from 09:30:00")]
pub(crate) struct Args {
    /// Feeds, one after the other.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Only these symbols.
    #[arg(long, value_delimiter = ',', value_parser = parse_symbol)]
    symbols: Option<Vec<Symbol>>,

    /// Print what is in the feed as JSON.
    #[arg(long, conflicts_with = "publish")]
    json: bool,

    /// Write the instrument file of the feed.
    #[arg(long, value_name = "FILE", conflicts_with = "publish")]
    instruments: Option<PathBuf>,

    /// Limit class of the instruments written.
    #[arg(long, default_value = "default", requires = "instruments")]
    limit_class: String,

    /// Venue of the instruments written.
    #[arg(long, default_value = "sim", requires = "instruments")]
    venue: String,

    /// Publish to these addresses: receivers, or multicast groups.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    publish: Vec<SocketAddr>,

    /// Send from this address; requests for retransmission come to it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", requires = "publish")]
    local: SocketAddr,

    /// Address of the interface that multicast leaves by.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", requires = "publish")]
    interface: Ipv4Addr,

    /// How fast: 1x, 2.5x, unpaced, or so many messages a second: 5000/s.
    #[arg(long, default_value = "1x", requires = "publish")]
    pace: Pace,

    /// Send what is earlier at once, and keep the pace from here on.
    #[arg(long, value_name = "HH:MM:SS", value_parser = parse_time, requires = "publish")]
    from: Option<u64>,

    /// Leave out what is later.
    #[arg(long, value_name = "HH:MM:SS", value_parser = parse_time, requires = "publish")]
    until: Option<u64>,

    /// How often to publish all of it; each time is a session of its own. 0: for ever.
    #[arg(long, default_value_t = 1, requires = "publish")]
    passes: u64,
}

/// How long requests are answered after a session has ended, and how often the end is told meanwhile.
const LINGER: Duration = Duration::from_millis(500);
const HEARTBEAT: Duration = Duration::from_millis(100);
/// Pause when there is nothing to do: short beside the pace of a feed, long beside a turn.
const IDLE: StdDuration = StdDuration::from_micros(50);
/// Messages between two looks at the clock for progress while reading.
const PROGRESS_MESSAGES: u64 = 1 << 16;

/// Runs the subcommand.
///
/// # Errors
/// A file cannot be read or written, a symbol is in none of them, or the feed cannot be published.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.publish.is_empty() {
        inspect(args)
    } else {
        publish(args)
    }
}

fn inspect(args: &Args) -> Result<(), Failure> {
    let mut inspection = Inspection::new(args.symbols.as_deref());
    let mut progress = Progress::new();
    for path in &args.files {
        read(path, &mut inspection, &mut progress)?;
    }
    progress.clear();
    if inspection.messages() == 0 {
        let files: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
        let files = files.join(", ");
        return Err(Failure::new(format!(
            "no ITCH 5.0 message in {files}; is it BinaryFILE?"
        )));
    }
    refuse_missing(inspection.missing_symbols())?;
    if let Some(path) = &args.instruments {
        return write_instruments(path, &inspection, args);
    }
    let mut output = Vec::new();
    if args.json {
        serde_json::to_writer_pretty(&mut output, &Summary::of(&inspection))?;
        output.push(b'\n');
    } else {
        print_table(&mut output, &inspection)?;
    }
    written(io::stdout().write_all(&output)).map(drop)
}

/// Reads one file to its end and says what is odd about it.
fn read(path: &Path, inspection: &mut Inspection, progress: &mut Progress) -> Result<(), Failure> {
    let mut file: BinaryFile<FeedFile> = BinaryFile::open(path)?;
    let (unknown, malformed) = (inspection.unknown_types(), inspection.malformed());
    while let Some(message) = file.next_message()? {
        inspection.on_message(message);
        if file.messages().is_multiple_of(PROGRESS_MESSAGES) {
            progress.show(|| format!("{}: {} messages", path.display(), file.messages()));
        }
    }
    progress.clear();
    let warn = |what: String| note!("tickgate: warning: {}: {what}", path.display());
    if file.has_zeroed_lengths() {
        warn("its writer left the lengths 0; they follow from the types".to_owned());
    }
    match file.ending() {
        None | Some(Ending::EndOfSession | Ending::EndOfFile) => {}
        Some(ending) => warn(ending.to_string()),
    }
    match inspection.unknown_types() - unknown {
        0 => {}
        count => warn(format!("{count} messages of unknown type were skipped")),
    }
    match inspection.malformed() - malformed {
        0 => {}
        count => warn(format!(
            "{count} messages of wrong length or without a side were skipped"
        )),
    }
    Ok(())
}

fn write_instruments(path: &Path, inspection: &Inspection, args: &Args) -> Result<(), Failure> {
    let (rows, left_out) = inspection.instrument_rows(&args.limit_class, &args.venue);
    let failed = |error: io::Error| Failure::new(format!("writing {}: {error}", path.display()));
    let mut output = BufWriter::new(File::create(path).map_err(failed)?);
    instruments::write(&rows, &mut output).map_err(failed)?;
    output.flush().map_err(failed)?;
    if left_out > 0 {
        note!("tickgate: warning: {left_out} instruments are left out, because the feed has no price for them");
    }
    say!("wrote {} instruments to {}", rows.len(), path.display());
    Ok(())
}

fn publish(args: &Args) -> Result<(), Failure> {
    let clock = Clock::start();
    let mut replay = Replay::open(ReplayConfig {
        files: args.files.clone(),
        symbols: args.symbols.clone(),
        pace: args.pace,
        from_ns: args.from.unwrap_or(0),
        until_ns: args.until.unwrap_or(u64::MAX),
        passes: (args.passes > 0).then_some(args.passes),
        linger: LINGER,
        session_prefix: clock.now().0 / Duration::from_secs(1).0,
        publisher: UdpPublisherConfig {
            local: args.local,
            destinations: args.publish.clone(),
            interface: args.interface,
            ring: limits::PUBLISHER_RING,
            heartbeat: HEARTBEAT,
        },
    })?;
    note!(
        "tickgate: requests for retransmission are answered on {}",
        replay.local_addr()?
    );
    let interrupt = Interrupt::new()?;
    let mut progress = Progress::new();
    while !replay.is_done() && !interrupt.is_set() {
        if !replay.turn(clock.now()) {
            std::thread::sleep(IDLE);
        }
        progress.show(|| {
            let counters = replay.counters();
            format!(
                "{} messages, session {}, {} late",
                counters.messages, counters.sessions, counters.lag
            )
        });
    }
    progress.clear();
    if let Some(failure) = replay.failure() {
        return Err(Failure::new(failure));
    }
    let (counters, publisher) = (replay.counters(), replay.publisher_counters());
    say!(
        "published: messages {}, packets {}, sessions {}, at most {} late; requests answered {}, messages sent again {}",
        counters.messages,
        publisher.packets,
        counters.sessions,
        counters.lag_max,
        publisher.requests,
        publisher.retransmitted
    );
    if interrupt.is_set() {
        // What it did not come to is not missing.
        return Ok(());
    }
    refuse_missing(replay.missing_symbols())
}

fn refuse_missing(missing: impl Iterator<Item = Symbol>) -> Result<(), Failure> {
    let missing: Vec<String> = missing.map(|symbol| symbol.to_string()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(Failure::new(format!(
        "not in the feed: {missing}; without --symbols, replay lists what is"
    )))
}

fn print_table(output: &mut impl Write, inspection: &Inspection) -> io::Result<()> {
    let (first, last) = inspection.time_range().unwrap_or_default();
    writeln!(
        output,
        "{} messages from {} to {}",
        inspection.messages(),
        time(first),
        time(last)
    )?;
    write!(output, "by type:")?;
    for (message_type, count) in inspection.counts() {
        write!(output, " {} {count}", char::from(message_type))?;
    }
    let books = inspection.book_counters();
    writeln!(
        output,
        "\nbook at the end: {} live orders; {} references to unknown orders, {} inconsistent, {} without room",
        inspection.live_orders(),
        books.unknown_orders,
        books.inconsistent,
        books.overflowed
    )?;
    if inspection.steps_back() > 0 {
        writeln!(
            output,
            "{} messages are earlier than the one before",
            inspection.steps_back()
        )?;
    }
    writeln!(
        output,
        "\n{:<8} {:>10} {:>8} {:>12} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7}",
        "symbol", "messages", "trades", "shares", "first", "low", "high", "bid", "ask", "tick"
    )?;
    for facts in inspection.symbols() {
        let quote = |quote: types::Quote| match quote.quantity.is_zero() {
            true => "–".to_owned(),
            false => quote.price.to_string(),
        };
        writeln!(
            output,
            "{:<8} {:>10} {:>8} {:>12} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7}",
            facts.symbol,
            facts.messages,
            facts.trades,
            facts.shares,
            price(facts.first),
            price(facts.low),
            price(facts.high),
            quote(facts.bbo.bid),
            quote(facts.bbo.ask),
            facts.tick_size().to_string()
        )?;
    }
    Ok(())
}

fn price(price: Price) -> String {
    if price.is_null() {
        return "–".to_owned();
    }
    price.to_string()
}

/// What is in a feed, for programs. Prices are decimal text; a price that does not exist is null.
#[derive(Serialize)]
struct Summary {
    messages: u64,
    messages_by_type: BTreeMap<char, u64>,
    messages_of_unknown_type: u64,
    messages_malformed: u64,
    first_ns_since_midnight: Option<u64>,
    last_ns_since_midnight: Option<u64>,
    steps_back: u64,
    live_orders: usize,
    unknown_order_references: u64,
    inconsistent: u64,
    overflowed: u64,
    symbols: Vec<SymbolSummary>,
}

/// What is known of one symbol.
#[derive(Serialize)]
struct SymbolSummary {
    symbol: String,
    messages: u64,
    trades: u64,
    shares: u64,
    first_price: Option<String>,
    low_price: Option<String>,
    high_price: Option<String>,
    bid_price: Option<String>,
    bid_shares: u64,
    ask_price: Option<String>,
    ask_shares: u64,
    tick_size: String,
    lot_size: u32,
}

impl Summary {
    fn of(inspection: &Inspection) -> Self {
        let (range, books) = (inspection.time_range(), inspection.book_counters());
        Self {
            messages: inspection.messages(),
            messages_by_type: inspection
                .counts()
                .map(|(message_type, count)| (char::from(message_type), count))
                .collect(),
            messages_of_unknown_type: inspection.unknown_types(),
            messages_malformed: inspection.malformed(),
            first_ns_since_midnight: range.map(|(first, _)| first),
            last_ns_since_midnight: range.map(|(_, last)| last),
            steps_back: inspection.steps_back(),
            live_orders: inspection.live_orders(),
            unknown_order_references: books.unknown_orders,
            inconsistent: books.inconsistent,
            overflowed: books.overflowed,
            symbols: inspection.symbols().map(SymbolSummary::of).collect(),
        }
    }
}

impl SymbolSummary {
    fn of(facts: SymbolFacts) -> Self {
        let price = |price: Price| (!price.is_null()).then(|| price.to_string());
        let quote = |quote: types::Quote| (!quote.quantity.is_zero()).then(|| quote.price.to_string());
        Self {
            symbol: facts.symbol.to_string(),
            messages: facts.messages,
            trades: facts.trades,
            shares: facts.shares,
            first_price: price(facts.first),
            low_price: price(facts.low),
            high_price: price(facts.high),
            bid_price: quote(facts.bbo.bid),
            bid_shares: facts.bbo.bid.quantity.0,
            ask_price: quote(facts.bbo.ask),
            ask_shares: facts.bbo.ask.quantity.0,
            tick_size: facts.tick_size().to_string(),
            lot_size: facts.lot_size,
        }
    }
}

pub(crate) fn parse_symbol(text: &str) -> Result<Symbol, String> {
    Symbol::new(text.as_bytes()).ok_or_else(|| format!("'{text}' is no symbol"))
}

/// Nanoseconds since midnight of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`.
fn parse_time(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no time of day: write 09:30, 09:30:00 or 09:30:00.5");
    let mut parts = text.splitn(3, ':');
    let mut number = |end: u64| {
        let value: u64 = parts.next()?.parse().ok()?;
        (value < end).then_some(value)
    };
    let (hours, minutes) = (number(24).ok_or_else(wrong)?, number(60).ok_or_else(wrong)?);
    // Seconds are a decimal with up to nine places, which is what a price is.
    let seconds = match parts.next() {
        None => 0,
        Some(text) => match Price::parse(text.as_bytes()).map(|seconds| u64::try_from(seconds.0)) {
            Some(Ok(nanoseconds)) if nanoseconds < Duration::from_secs(60).0 => nanoseconds,
            _ => return Err(wrong()),
        },
    };
    Ok(Duration::from_secs(hours * 3600 + minutes * 60).0 + seconds)
}

/// `HH:MM:SS.nnnnnnnnn` of nanoseconds since midnight.
fn time(ns: u64) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{fraction:09}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_comes_back_from_its_text() {
        for (text, printed) in [
            ("09:30", "09:30:00.000000000"),
            ("23:59:59.999999999", "23:59:59.999999999"),
            ("00:00:01.5", "00:00:01.500000000"),
        ] {
            assert_eq!(parse_time(text).map(time), Ok(printed.to_owned()));
        }
        for text in ["", "9", "24:00", "09:60", "09:30:60", "09:30:-1", "09:30:00:00", "x:30"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
