//! `tickgate client`: an order client, against our gateway or any other.

use crate::process::Interrupt;
use crate::{Failure, process, recording};
use clap::Args as ClapArgs;
use feeds::{UdpReceiver, UdpReceiverConfig, instruments};
use latency::clock::Clock;
use latency::{Placement, Recorder, Recording};
use sim::client::{Accounting, Client, ClientConfig, Traded};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use types::{Duration, Timestamp};

/// Sends orders by plan or when ticks trigger them, by FIX or the native protocol, and keeps account of every one.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The config, such as `configs/client-fix.toml`.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// Record the stamps at the client's taps into this directory, for `tickgate report`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Stop after so many seconds; without it, when all orders of the config are sent.
    #[arg(long)]
    seconds: Option<u64>,

    /// The CPU to run on.
    #[arg(long)]
    cpu: Option<usize>,
}

/// How long a logon, and the last answers, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the subcommand until all orders are answered, or it is interrupted.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = ClientConfig::load(&args.config)?;
    let clock = Clock::start();
    let interrupt = Interrupt::new()?;
    let (recorder, recording) = record(args, &clock)?;
    let traded = traded(&config)?;
    let mut client = Client::new(&config, &traded, clock, recorder)?;
    let mut feed = match &config.feed {
        Some(feed) => Some(UdpReceiver::open(&UdpReceiverConfig {
            listen: feed.listen,
            interface: interface(feed.listen.ip()),
            requests: Some(feed.request),
            receiver: feeds::limits::RECEIVER,
        })?),
        None => None,
    };
    if let Some(cpu) = args.cpu {
        net::cpu::pin(cpu)?;
    }
    let mut run = Run {
        patience_from: clock.now(),
        stop_at: None,
        phase: Phase::Connecting,
    };
    let spins = args.cpu.is_some();
    process::turn_while(&interrupt, spins, || {
        let now = clock.now();
        let mut worked = client.turn(now);
        if let Some(feed) = &mut feed {
            worked |= feed.turn(now, &mut |event| client.on_feed(clock.now(), event));
        }
        (worked, run.step(now, &mut client, args.seconds))
    });
    let accounting = client.accounting();
    if let Some(recording) = recording {
        let summary = recording.finish(&clock)?;
        eprintln!(
            "{} records in {}, {} dropped",
            summary.records,
            summary.path.display(),
            summary.dropped
        );
    }
    print(&client, &accounting);
    match run.phase {
        Phase::Connecting if !interrupt.is_set() => Err(Failure::new(format!(
            "no logon at {} within ten seconds; is the gateway running?",
            config.gateway
        ))),
        _ if accounting.unanswered > 0 => Err(Failure::new(format!("{} orders have no answer", accounting.unanswered))),
        _ => Ok(()),
    }
}

/// Where the client is in its run.
struct Run {
    patience_from: Timestamp,
    stop_at: Option<Timestamp>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Sending,
    Settling,
    Done,
}

impl Run {
    /// Goes on when it is time; whether to go on at all.
    fn step(&mut self, now: Timestamp, client: &mut Client, seconds: Option<u64>) -> bool {
        let is_impatient = now.since(self.patience_from) >= PATIENCE;
        match self.phase {
            Phase::Connecting if client.is_logged_on() => {
                client.start(now);
                self.stop_at = seconds.map(|seconds| now + Duration::from_secs(seconds));
                self.phase = Phase::Sending;
            }
            Phase::Connecting => return !is_impatient,
            Phase::Sending if client.is_done() || self.stop_at.is_some_and(|stop| now >= stop) => {
                client.stop();
                self.patience_from = now;
                self.phase = Phase::Settling;
            }
            Phase::Settling if client.is_settled() || is_impatient => {
                self.phase = Phase::Done;
                return false;
            }
            Phase::Sending | Phase::Settling | Phase::Done => {}
        }
        true
    }
}

fn traded(config: &ClientConfig) -> Result<Vec<Traded>, Failure> {
    let rows = instruments::read(&config.instruments)?;
    Ok(rows
        .into_iter()
        .map(|row| Traded {
            id: row.id,
            symbol: row.symbol,
            tick_size: row.tick_size,
            lot_size: row.lot_size,
            reference_price: row.reference_price,
        })
        .collect())
}

const fn interface(listen: IpAddr) -> Ipv4Addr {
    match listen {
        IpAddr::V4(address) if !address.is_multicast() => address,
        _ => Ipv4Addr::LOCALHOST,
    }
}

fn record(args: &Args, clock: &Clock) -> Result<(Recorder, Option<latency::RecordingThread>), Failure> {
    let Some(directory) = &args.record else {
        return Ok((Recorder::off(), None));
    };
    let placement = vec![Placement {
        thread: "client".to_owned(),
        core: args.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
    }];
    let idle = if args.cpu.is_some() { "spin" } else { "backoff" };
    let mut recording = Recording::create(
        directory,
        "client",
        &recording::header("client", clock, placement, idle),
    )?;
    let recorder = recording.recorder(recording::RING_RECORDS);
    Ok((recorder, Some(recording.spawn()?)))
}

fn print(client: &Client, accounting: &Accounting) {
    let Accounting {
        sent,
        acknowledged,
        refused,
        unanswered,
        filled,
        canceled,
        expired,
        open,
        fills,
        ..
    } = *accounting;
    println!("{sent} sent = {acknowledged} acknowledged + {refused} refused + {unanswered} unanswered");
    println!("{acknowledged} acknowledged = {filled} filled + {canceled} cancelled + {expired} expired + {open} open");
    println!("{fills} trades; {} cancels and replaces sent", accounting.requests.sent);
    for (reason, count) in accounting.refusals() {
        println!("refused {count}: {reason}");
    }
    let progress = client.progress();
    if progress.lag_max.0 > 0 {
        println!(
            "lag behind the plan: {} on average, {} at most",
            progress.lag_mean, progress.lag_max
        );
    }
}
