//! `tickgate client`: an order client, against our gateway or any other.

use crate::output::{note, say};
use crate::process::{Interrupt, Progress};
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

/// How long the gateway may take to close a session that logs out.
const LOGOUT_PATIENCE: Duration = Duration::from_secs(2);

/// Runs the subcommand until all orders are answered, or it is interrupted.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = ClientConfig::load(&args.config)?;
    let clock = Clock::start();
    let interrupt = Interrupt::new()?;
    let traded = traded(&config)?;
    let mut feed = match &config.feed {
        Some(feed) => Some(UdpReceiver::open(&UdpReceiverConfig {
            listen: feed.listen,
            interface: interface(feed.listen.ip()),
            requests: Some(feed.request),
            receiver: feeds::limits::RECEIVER,
        })?),
        None => None,
    };
    // After what may fail: a recording without an end would stand in the way of a report.
    let (recorder, recording) = record(args, &clock)?;
    let mut client = Client::new(&config, &traded, clock, recorder)?;
    if let Some(cpu) = args.cpu {
        net::cpu::pin(cpu)?;
    }
    let mut run = Run {
        patience_from: clock.now(),
        stop_at: None,
        phase: Phase::Connecting,
    };
    say!("orders to {}; interrupt to stop", config.gateway);
    let mut progress = Progress::new();
    let spins = args.cpu.is_some();
    // It ends by itself also when it is interrupted: answers are awaited, and it logs out.
    process::turn_while(&Interrupt::never(), spins, || {
        let now = clock.now();
        let mut worked = client.turn(now);
        if let Some(feed) = &mut feed {
            worked |= feed.turn(now, &mut |event| client.on_feed(clock.now(), event));
        }
        progress.show(|| shown(&run, &client));
        (worked, run.step(now, &mut client, args.seconds, interrupt.is_set()))
    });
    progress.clear();
    let accounting = client.accounting();
    if let Some(recording) = recording {
        let summary = recording.finish(&clock)?;
        note!(
            "{} records in {}, {} dropped",
            summary.records,
            summary.path.display(),
            summary.dropped
        );
    }
    print(&client, &accounting);
    if let Some(link) = client.link_summary() {
        say!("{link}");
    }
    match run.phase {
        Phase::Connecting => Err(Failure::new(format!(
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
    Leaving,
    Interrupted,
}

impl Run {
    /// Goes on when it is time; whether to go on at all.
    fn step(&mut self, now: Timestamp, client: &mut Client, seconds: Option<u64>, is_interrupted: bool) -> bool {
        let waited = now.since(self.patience_from);
        match self.phase {
            Phase::Connecting if is_interrupted => {
                self.phase = Phase::Interrupted;
                return false;
            }
            Phase::Connecting if client.is_logged_on() => {
                client.start(now);
                self.stop_at = seconds.map(|seconds| now + Duration::from_secs(seconds));
                self.phase = Phase::Sending;
            }
            Phase::Connecting => return waited < PATIENCE,
            Phase::Sending if is_interrupted || client.is_done() || self.stop_at.is_some_and(|stop| now >= stop) => {
                // The gateway would cancel what is left open when the session ends, and could not tell its client.
                client.wind_down(now);
                self.enter(Phase::Settling, now);
            }
            Phase::Settling if client.is_settled() || waited >= PATIENCE => {
                client.logout(now);
                self.enter(Phase::Leaving, now);
            }
            Phase::Leaving | Phase::Interrupted => return !client.is_gone() && waited < LOGOUT_PATIENCE,
            Phase::Sending | Phase::Settling => {}
        }
        true
    }

    const fn enter(&mut self, phase: Phase, now: Timestamp) {
        (self.phase, self.patience_from) = (phase, now);
    }
}

/// How far it is, for a terminal.
fn shown(run: &Run, client: &Client) -> String {
    let progress = client.progress();
    let doing = match run.phase {
        Phase::Connecting => "connecting",
        Phase::Sending if progress.sent == 0 => "logged on, no tick yet",
        Phase::Sending => "sending",
        Phase::Settling => "waiting for the last answers",
        Phase::Leaving | Phase::Interrupted => "logging out",
    };
    format!(
        "{doing}: {} ticks, {} orders, {} unanswered",
        progress.ticks, progress.sent, progress.unanswered
    )
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
    say!("{sent} sent = {acknowledged} acknowledged + {refused} refused + {unanswered} unanswered");
    say!("{acknowledged} acknowledged = {filled} filled + {canceled} cancelled + {expired} expired + {open} open");
    say!("{fills} trades; {} cancels and replaces sent", accounting.requests.sent);
    for (reason, count) in accounting.refusals() {
        say!("refused {count}: {reason}");
    }
    let progress = client.progress();
    if progress.lag_max.0 > 0 {
        say!(
            "lag behind the plan: {} on average, {} at most",
            progress.lag_mean,
            progress.lag_max
        );
    }
}
