//! `tickgate exchange`: the exchange simulator alone.

use crate::output::say;
use crate::process::Interrupt;
use crate::{Failure, process, recording};
use ::gateway::executor::Component;
use ::journal::JournalReader;
use clap::Args as ClapArgs;
use feeds::instruments;
use latency::clock::Clock;
use latency::{Placement, Recorder, Recording};
use net::Link;
use sim::exchange::{Exchange, ExchangeConfig, Idle, Journal, Recovery};
use std::io;
use std::path::{Path, PathBuf};
use types::{Instrument, LimitClass, Timestamp, VenueId};

/// Runs the exchange simulator: orders in over venue links, history in from a replay, its real book out as a feed.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The config, such as `configs/exchange.toml`.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// Check the config and exit.
    #[arg(long)]
    check: bool,

    /// Record the stamps at the exchange's taps into this directory, for `tickgate report`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

/// Runs the subcommand until it is interrupted.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = ExchangeConfig::load(&args.config)?;
    let instruments = instruments(&config)?;
    if args.check {
        let links = config.sessions.iter();
        process::check_links(links.map(|session| (format!("link of session {}", session.rules.id), &session.link)))?;
        say!(
            "{} instruments, {} sessions: the config is fine",
            instruments.len(),
            config.sessions.len()
        );
        return Ok(());
    }
    let clock = Clock::start();
    let interrupt = Interrupt::new()?;
    let core = config.core(instruments.clone());
    say!("memory: the market takes {} bytes", core.market.memory());
    say!("memory: the links take {} bytes", config.link_memory());
    let (recorder, recording) = record(args, &config, &clock)?;
    let mut exchange = Exchange::open(&config, instruments, clock, recorder, |socket| socket)?;
    process::gather_memory();
    for session in &config.sessions {
        say!("session {} on {:?}", session.rules.id, session.link.end());
    }
    say!("market data from {}; running; interrupt to stop", exchange.feed_addr()?);
    if let Some(cpu) = config.cpu {
        net::cpu::pin(cpu)?;
    }
    process::turn_until(&interrupt, config.idle == Idle::Spin, || exchange.turn(clock.now()));
    exchange.record_open_orders(clock.now());
    if let Some(recording) = recording {
        let summary = recording.finish(&clock)?;
        say!(
            "{} records in {}, {} dropped",
            summary.records,
            summary.path.display(),
            summary.dropped
        );
    }
    let counters = exchange.counters();
    say!(
        "{} requests, {} trades of clients",
        counters.market.requests,
        counters.market.trades
    );
    for link in exchange.link_summaries() {
        say!("{link}");
    }
    if counters.market.history_foreign > 0 {
        say!(
            "{} messages of the recording were about instruments that are not in the instrument master; skipped",
            counters.market.history_foreign
        );
    }
    Ok(())
}

/// An exchange that takes turns with a shard of the gateway in one thread.
pub(crate) struct Beside {
    config: ExchangeConfig,
    instruments: Vec<Instrument>,
    clock: Clock,
}

impl Beside {
    /// Reads its config.
    pub(crate) fn load(file: &Path, clock: Clock) -> Result<Self, Failure> {
        let config = ExchangeConfig::load(file)?;
        let instruments = instruments(&config)?;
        Ok(Self {
            config,
            instruments,
            clock,
        })
    }

    /// Opens it on the thread that will turn it. Where it runs and how it waits is the shard's to say.
    pub(crate) fn open(self) -> io::Result<impl Component> {
        let Self {
            config,
            instruments,
            clock,
        } = self;
        let exchange = Exchange::open(&config, instruments, clock, Recorder::off(), |socket| socket);
        exchange
            .map(|exchange| InTurn { exchange, clock })
            .map_err(io::Error::other)
    }
}

/// The exchange reads the clock itself: its turn begins when the shard's is over.
struct InTurn<L, J> {
    exchange: Exchange<L, J>,
    clock: Clock,
}

impl<L: Link, J: Journal> Component for InTurn<L, J> {
    fn turn(&mut self, _: Timestamp) -> bool {
        self.exchange.turn(self.clock.now())
    }

    fn finish(&mut self) {
        for link in self.exchange.link_summaries() {
            say!("exchange: {link}");
        }
    }
}

/// The instruments of the config's master, as a market needs them.
pub(crate) fn instruments(config: &ExchangeConfig) -> Result<Vec<Instrument>, Failure> {
    let rows = instruments::read(&config.instruments)?;
    Ok(rows
        .into_iter()
        .map(|row| Instrument {
            id: row.id,
            symbol: row.symbol,
            tick_size: row.tick_size,
            lot_size: row.lot_size,
            reference_price: row.reference_price,
            // What only a gateway looks at.
            limit_class: LimitClass(0),
            shard: row.shard,
            venue: VenueId(0),
        })
        .collect())
}

/// Reads an exchange's journal and compares every output with what its inputs cause. Gives the number of records.
pub(crate) fn verify(config: &ExchangeConfig) -> Result<u64, Failure> {
    let Some(journal) = &config.journal else { return Ok(0) };
    let core = config.core(instruments(config)?);
    let mut recovery = Recovery::new(&core)?;
    let mut reader = JournalReader::open(&journal.directory)?;
    let mut records = 0;
    while let Some(record) = reader.next_record()? {
        records += 1;
        recovery.on_record(record.kind, record.time, record.position, record.payload)?;
    }
    Ok(records)
}

fn record(
    args: &Args,
    config: &ExchangeConfig,
    clock: &Clock,
) -> Result<(Recorder, Option<latency::RecordingThread>), Failure> {
    let Some(directory) = &args.record else {
        return Ok((Recorder::off(), None));
    };
    let placement = vec![Placement {
        thread: "exchange".to_owned(),
        core: config.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
    }];
    let idle = if config.idle == Idle::Spin { "spin" } else { "backoff" };
    let mut recording = Recording::create(
        directory,
        "exchange",
        &recording::header("exchange", clock, placement, idle),
    )?;
    let recorder = recording.recorder(recording::RING_RECORDS);
    Ok((recorder, Some(recording.spawn()?)))
}
