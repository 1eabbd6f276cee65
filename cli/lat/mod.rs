//! `tickgate lat`: each transport against its floor.

mod control;
mod ends;
mod plan;
mod print;
mod run;

use crate::Failure;
use crate::output::{self, note, say};
use crate::process::Interrupt;
use clap::{Args as ClapArgs, ValueEnum};
use control::Control;
use latency::clock::Clock;
use net::TcpOptions;
use net::measure::{self, Placement};
use net::poller::{Interest, Poller};
use net::tcp::{TcpListener, TcpStream};
use plan::{Header, LtpOptions, Mode, Plan, Redundancy, RtoMin, Rung};
use print::{Ladder, Measured};
use run::Tally;
use std::net::SocketAddr;
use std::path::PathBuf;
use types::Duration;

/// Measures the links: round trips, round trips by plan, or one way; each against the bare socket's.
///
/// Both ends run in this process over loopback, or in two processes: `--listen` in one, `--connect` in the other.
#[derive(ClapArgs, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["link", "all", "listen"]))]
pub(crate) struct Args {
    /// The link to measure.
    #[arg(long, value_enum)]
    link: Option<Rung>,

    /// Measure every link, by turns, as a ladder with the ratio of each to the bare UDP socket's.
    #[arg(long)]
    all: bool,

    /// Be the far end for whoever connects here, until interrupted. The data go to the next port.
    #[arg(long, value_name = "IP:PORT", value_parser = address, conflicts_with_all = [
        "connect", "one_way", "rate", "json", "histogram", "size", "seconds", "redundancy", "header", "key", "rto_min",
    ])]
    listen: Option<SocketAddr>,

    /// Measure against the far end that listens here.
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    connect: Option<SocketAddr>,

    /// Send so many messages a second, whatever comes back, and count each from its planned time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=plan::RATE_MAX))]
    rate: Option<u64>,

    /// A stream that nobody answers, packed; with --rate by plan, else as fast as it is taken.
    #[arg(long)]
    one_way: bool,

    /// Bytes of a message.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = size)]
    size: usize,

    /// Seconds of each link.
    #[arg(long, value_name = "S", default_value = "6", value_parser = seconds)]
    seconds: Duration,

    /// The CPU of this end; of both (near,far) when both are here. One for both: they take turns in one thread.
    #[arg(long, value_name = "CPU", value_delimiter = ',', num_args = 1)]
    cpu: Vec<usize>,

    /// What an end does that has nothing to do.
    #[arg(long, value_enum, default_value = "spin")]
    idle: IdleMode,

    /// The shortest retransmission timeout of the tuned TCP links.
    #[arg(long, value_enum, default_value = "lowest")]
    rto_min: RtoMin,

    /// What LTP sends more than once.
    #[arg(long, value_enum, default_value = "off")]
    redundancy: Redundancy,

    /// How LTP's headers look.
    #[arg(long, value_enum, default_value = "full")]
    header: Header,

    /// Authenticate every datagram of LTP.
    #[arg(long)]
    key: bool,

    /// Write the histograms to this file, as a log that HdrHistogram's tools read.
    #[arg(long, value_name = "FILE")]
    histogram: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What an end does that has nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum IdleMode {
    /// Looks again at once
    Spin,
    /// Sleeps for 50 µs
    Backoff,
}

/// Rounds of a ladder: the speed of a machine changes from minute to minute, so the links take turns.
const ROUNDS: u64 = 3;

/// How often a listening end looks whether it is to stop.
const INTERRUPT_POLL: Duration = Duration::from_millis(200);

/// How long a connection may go without a plan: others wait for their turn.
const PLAN_WITHIN: Duration = Duration::from_secs(10);

/// Where the near end finds the far one.
enum Peer {
    Here(Placement),
    Elsewhere { control: Box<Control>, cpu: usize },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // Before anything is pinned: the clock's own thread keeps all CPUs.
    let clock = Clock::start();
    if let Some(address) = args.listen {
        return listen(args, address, clock);
    }
    let mut peer = match args.connect {
        None => Peer::Here(placement(&args.cpu)?),
        Some(address) => Peer::Elsewhere {
            cpu: single_cpu(&args.cpu, net::cpu::permitted().first())?,
            control: Box::new(Control::connect(address)?),
        },
    };
    // Before anything is measured: a file that cannot be written costs no run.
    let histograms = args.histogram.as_deref().map(print::create).transpose()?;
    let rungs: Vec<Rung> = match args.link {
        Some(link) => vec![link],
        None => Rung::ALL.to_vec(),
    };
    let rounds = if args.all { ROUNDS } else { 1 };
    let mut tallies: Vec<(Rung, Result<Tally, Failure>)> =
        rungs.into_iter().map(|rung| (rung, Ok(Tally::default()))).collect();
    for _ in 0..rounds {
        for (rung, outcome) in &mut tallies {
            let plan = args.plan(*rung, rounds);
            let Ok(tally) = outcome else { continue };
            let ran = match &mut peer {
                Peer::Here(placement) => {
                    run::here(&plan, *placement, args.idle.into(), clock, tally).map_err(Failure::from)
                }
                Peer::Elsewhere { control, cpu } => run::near(&plan, control, *cpu, args.idle.into(), clock, tally),
            };
            if let Err(error) = ran {
                if !args.all {
                    return Err(error);
                }
                *outcome = Err(error);
            }
        }
    }
    let ladder = Ladder {
        mode: args.mode(),
        size: args.size,
        seconds: args.seconds,
        rate: args.rate,
        rto_min: args.rto_min,
        ltp: args.ltp(),
        idle: args.idle.name(),
        place: args.place(&peer),
        measured: tallies
            .into_iter()
            .map(|(link, tally)| Measured { link, tally })
            .collect(),
    };
    if let (Some(name), Some(file)) = (&args.histogram, histograms) {
        ladder.write_histograms(name, file)?;
    }
    match (args.json, args.all) {
        (true, true) => print::json(&ladder.json())?,
        (true, false) => print::json(&ladder.json_of_one())?,
        (false, _) => output::print(format_args!("{}", ladder.text())),
    }
    if ladder.is_empty() {
        return Err(Failure::new("no link could be measured; the reasons are above"));
    }
    Ok(())
}

/// Answers whoever connects, one after the other.
fn listen(args: &Args, address: SocketAddr, clock: Clock) -> Result<(), Failure> {
    let interrupt = Interrupt::new()?;
    let cpu = single_cpu(&args.cpu, net::cpu::permitted().last())?;
    let listener = TcpListener::bind(
        address,
        &TcpOptions {
            no_delay: true,
            ..TcpOptions::default()
        },
    )?;
    let local = listener.local_addr()?;
    // The kernel chooses both ports or none.
    let port = match address.port() {
        0 => 0,
        port => port
            .checked_add(1)
            .ok_or_else(|| Failure::new("listen below port 65535: the data take the next one"))?,
    };
    let mut poller = Poller::new(1)?;
    poller.add(&listener, 0, Interest::READ)?;
    say!("listening on {local}, CPU {cpu}; interrupt to stop");
    while !interrupt.is_set() {
        poller.poll(INTERRUPT_POLL)?;
        while let Some((stream, from)) = listener.accept()? {
            say!("serving {from}");
            if let Err(error) = serve(args, stream, &interrupt, port, cpu, clock) {
                note!("tickgate: {from}: {error}");
            }
        }
    }
    Ok(())
}

/// Every plan of one connection.
fn serve(
    args: &Args,
    stream: TcpStream,
    interrupt: &Interrupt,
    port: u16,
    cpu: usize,
    clock: Clock,
) -> Result<(), Failure> {
    let mut control = Control::new(stream, interrupt.clone())?;
    let ip = control.local()?.ip();
    loop {
        let plan = match control.next::<Plan>(PLAN_WITHIN) {
            Ok(Some(plan)) => plan,
            Ok(None) => return Ok(()),
            Err(failure) => {
                // It may be gone; what is reported is the first failure.
                let _ = control.send(&run::Answer::Refused(failure.to_string()));
                return Err(failure);
            }
        };
        if let Err(why) = plan.check() {
            control.send(&run::Answer::Refused(why))?;
            continue;
        }
        run::far(
            &plan,
            &mut control,
            SocketAddr::from((ip, port)),
            cpu,
            args.idle.into(),
            clock,
        )?;
    }
}

impl Args {
    fn plan(&self, link: Rung, rounds: u64) -> Plan {
        Plan {
            version: plan::VERSION,
            link,
            mode: self.mode(),
            size: self.size,
            span_ns: self.seconds.0 / rounds,
            interval_ns: self.rate.map(|rate| 1_000_000_000 / rate),
            rto_min: self.rto_min,
            ltp: self.ltp(),
            boot_id: plan::boot_id(),
            near_port: 0,
        }
    }

    const fn ltp(&self) -> LtpOptions {
        LtpOptions {
            redundancy: self.redundancy,
            header: self.header,
            has_key: self.key,
        }
    }

    const fn mode(&self) -> Mode {
        match (self.one_way, self.rate) {
            (true, _) => Mode::OneWay,
            (false, Some(_)) => Mode::OpenLoop,
            (false, None) => Mode::PingPong,
        }
    }

    /// Where it was measured, for a person.
    fn place(&self, peer: &Peer) -> String {
        match (peer, self.connect) {
            (Peer::Here(Placement::One(cpu)), _) => format!("loopback, both ends by turns on CPU {cpu}"),
            (Peer::Here(Placement::Two(near, far)), _) => format!("loopback, CPUs {near} and {far}"),
            (Peer::Elsewhere { cpu, .. }, address) => {
                format!(
                    "to {}, this end on CPU {cpu}",
                    address.map(|address| address.to_string()).unwrap_or_default()
                )
            }
        }
    }
}

impl IdleMode {
    const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Backoff => "backoff",
        }
    }
}

impl From<IdleMode> for measure::Idle {
    fn from(mode: IdleMode) -> Self {
        match mode {
            IdleMode::Spin => Self::Spin,
            IdleMode::Backoff => Self::Backoff,
        }
    }
}

/// Where both ends run: as told, else on the first and the last CPU that there is.
fn placement(cpus: &[usize]) -> Result<Placement, Failure> {
    let permitted;
    let cpus = if cpus.is_empty() {
        permitted = net::cpu::permitted();
        match permitted[..] {
            [first, .., last] => &[first, last],
            _ => &permitted[..],
        }
    } else {
        cpus
    };
    match *cpus {
        [near, far] if near != far => Ok(Placement::Two(near, far)),
        [cpu] | [cpu, _] => Ok(Placement::One(cpu)),
        _ => Err(Failure::new("give one CPU or two: --cpu NEAR,FAR")),
    }
}

/// Where one end runs: as told, else there.
fn single_cpu(cpus: &[usize], otherwise: Option<&usize>) -> Result<usize, Failure> {
    match (cpus, otherwise) {
        ([], Some(&cpu)) | (&[cpu], _) => Ok(cpu),
        _ => Err(Failure::new("give the CPU of this end: --cpu N")),
    }
}

fn size(text: &str) -> Result<usize, String> {
    let (least, most) = (measure::MESSAGE_LENGTH_MIN, measure::MESSAGE_LENGTH_MAX);
    match text.parse() {
        Ok(size) if (least..=most).contains(&size) => Ok(size),
        _ => Err(format!("a number from {least} to {most}")),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "wanted is IP:PORT, as in 10.0.0.2:7300".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= plan::SPAN_MAX.0 as f64 / 1e9 => {
            let span = std::time::Duration::from_secs_f64(seconds);
            Ok(Duration(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
        }
        _ => Err("a number above 0, at most 86400".to_owned()),
    }
}
