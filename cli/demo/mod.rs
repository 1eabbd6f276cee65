//! `tickgate demo`: the whole path in one process, on the sample feed or the user's own.

mod setup;
mod stage;

use crate::output::{self, note, say};
use crate::{Failure, exchange, recording};
use ::gateway::config::Config;
use ::gateway::executor::{self, Component, Placement, Running};
use ::gateway::feed::PriceFeed;
use ::gateway::gateway::{Gateway, PreparedShard};
use ::gateway::replay;
use clap::Args as ClapArgs;
use feeds::{Pace, Replay, ReplayConfig, UdpPublisherConfig, UdpReceiver, UdpReceiverConfig};
use latency::clock::Clock;
use latency::report::Report;
use latency::{Floor, FloorLeg, Percentiles, Protocol, Recorder, Recording};
use setup::{LinkKind, PrefilterKind, Setup};
use sim::client::{Accounting, Client, ClientConfig, Traded};
use sim::exchange::{Exchange, ExchangeConfig};
use sim::lossy::{LossSwitch, Lossy};
use stage::{Act, Outcome, Scene, Stage, Watch};
use std::io::{self, IsTerminal};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use types::{Duration, ShardId, Symbol, Timestamp};

/// Plays a feed through exchange simulator, gateway and two order clients over loopback sockets, and shows tick-to-trade
/// latency hop by hop.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Your own feed (ITCH 5.0 BinaryFILE, plain or gzipped) in place of the sample.
    #[arg(long, value_name = "FILE")]
    feed: Option<PathBuf>,

    /// Trade only these symbols.
    #[arg(long, value_delimiter = ',', value_parser = crate::replay::parse_symbol)]
    symbols: Vec<Symbol>,

    /// What the gateway reaches the exchange over.
    #[arg(long, value_enum, default_value = "ltp")]
    link: LinkKind,

    /// What judges orders before the gateway's risk checks: the RTL in simulation judges all, the program in the kernel those
    /// of the native client, which then come over LTP. It needs a build with the feature, and xdp root.
    #[arg(long, value_enum, default_value = "software")]
    prefilter: PrefilterKind,

    /// Where the report goes.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Orders of each client that the tables want, so that p99.9 has more than ten samples beyond it.
const ORDERS: u64 = 20_000;

/// Messages of the feed a second. Every second change of a best price triggers an order.
const FEED_RATE: u32 = 8_000;

/// Records that a recorder's ring holds: those of one scene.
const RING_RECORDS: usize = 1 << 18;

/// The same of the exchange, which also records every packet of its feed.
const EXCHANGE_RING_RECORDS: usize = 1 << 20;

/// Round trips that the floor is measured over.
const FLOOR_ROUND_TRIPS: usize = 20_000;

/// Packets lost in the last scene, in a million: one in a hundred, each way.
const LOSS_PER_MILLION: u32 = 10_000;

/// The CPUs of the two threads.
#[derive(Clone, Copy, Debug)]
struct Cpus {
    shard: usize,
    others: usize,
}

impl Cpus {
    /// The shard gets a CPU of its own if there are two.
    fn choose() -> Result<Self, Failure> {
        match net::cpu::permitted()[..] {
            [] => Err(Failure::new("this process may use no CPU")),
            [only] => Ok(Self {
                shard: only,
                others: only,
            }),
            [first, second, ..] => Ok(Self {
                shard: second,
                others: first,
            }),
        }
    }

    const fn are_two(self) -> bool {
        self.shard != self.others
    }
}

/// Runs the demo.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let clock = Clock::start();
    let cpus = Cpus::choose()?;
    let setup = Setup::new(args.out.join("tickgate-demo"), args.feed.as_deref(), &args.symbols)?;
    say(&format!("tickgate {}", recording::commit()));
    say(&format!(
        "{} instruments, venue link over {}",
        setup.instruments.len(),
        args.link.title()
    ));

    let config = gateway_config(args, &setup, cpus)?;
    let floors = floors(cpus, args)?;
    let (outcome, judged) = play(args, &setup, config, cpus, clock, &floors)?;
    let replayed = replayed(args, &setup, cpus)?;
    conclude(args, &setup, cpus, &outcome, &judged, &replayed)
}

fn gateway_config(args: &Args, setup: &Setup, cpus: Cpus) -> Result<Config, Failure> {
    let text = setup.gateway(
        args.link,
        args.prefilter,
        Some(cpus.shard),
        Some(cpus.others),
        cpus.are_two(),
    );
    Ok(Config::parse(&text, &setup.folder)?)
}

/// The bare round trips on the sockets of this run, before it begins.
fn floors(cpus: Cpus, args: &Args) -> Result<Vec<Floor>, Failure> {
    if !cpus.are_two() {
        return Ok(Vec::new());
    }
    say("measuring the floor: bare spinning round trips between the two CPUs");
    let percentiles = |trips: Vec<u64>| Percentiles::of_durations(&trips);
    let tcp = percentiles(net::floor::tcp_round_trip(cpus.shard, cpus.others, FLOOR_ROUND_TRIPS)?);
    let udp = percentiles(net::floor::udp_round_trip(cpus.shard, cpus.others, FLOOR_ROUND_TRIPS)?);
    let (venue, venue_name) = match args.link {
        LinkKind::Ltp | LinkKind::Roce => (&udp, "UDP loopback"),
        LinkKind::Tcp => (&tcp, "TCP loopback"),
    };
    Ok([Protocol::Fix, Protocol::Native]
        .into_iter()
        .flat_map(|protocol| {
            [
                Floor::of_round_trips(FloorLeg::Feed, protocol, "UDP loopback", &udp),
                match protocol {
                    Protocol::Native if args.prefilter.is_before_the_socket() => {
                        Floor::of_round_trips(FloorLeg::Client, protocol, "UDP loopback", &udp)
                    }
                    _ => Floor::of_round_trips(FloorLeg::Client, protocol, "TCP loopback", &tcp),
                },
                Floor::of_round_trips(FloorLeg::Venue, protocol, venue_name, venue),
            ]
        })
        .collect())
}

/// Puts everything together, lets it run, and takes it apart.
fn play(
    args: &Args,
    setup: &Setup,
    config: Config,
    cpus: Cpus,
    clock: Clock,
    floors: &[Floor],
) -> Result<(Outcome, Judged), Failure> {
    let mut recording = Recording::create(&setup.folder.join("recording"), "demo", &header(args, cpus, clock))?;
    for floor in floors {
        recording.write(*floor)?;
    }
    let gateway_recorder = recording.recorder(RING_RECORDS);
    let gateway = Gateway::prepare(config, clock)?;
    let status = Arc::clone(&gateway.statuses()[0]);
    let judged = Arc::clone(&status);
    let prices = PriceFeed::open(gateway.config(), gateway.references())?.expect("the demo's config has a feed");
    let (_door, mut shards) = gateway.open()?;
    let shard = shards.pop().expect("the demo's config has a shard");
    let watch = Arc::new(Watch::default());
    let scenes = scenes(args.link);
    let (sender, receiver) = mpsc::channel();
    let parts = StageParts {
        exchange: ExchangeConfig::parse(&setup.exchange(args.link), &setup.folder)?,
        fix: ClientConfig::parse(&setup.fix_client(), &setup.folder)?,
        native: ClientConfig::parse(&setup.native_client(args.prefilter), &setup.folder)?,
        replay: replay_config(setup),
        ticks: ticks_config(setup),
        traded: traded(setup),
    };
    let build_watch = Arc::clone(&watch);
    let build_scenes = scenes.clone();
    let build = move || {
        parts.build(
            clock,
            recording,
            prices,
            Arc::clone(&status),
            build_scenes,
            build_watch,
            sender,
        )
    };
    let running = start(shard, gateway_recorder, build, cpus, clock)?;
    follow(&watch, &scenes);
    // The shard first: what it still has to say must find its peers.
    for thread in running {
        thread.stop()?;
    }
    let outcome = receiver
        .recv()
        .map_err(|_| Failure::new("the demo ended without a result"))?;
    Ok((outcome, Judged::of(&judged, args.prefilter)))
}

/// What the pre-filter did.
struct Judged {
    /// Orders that it judged, and refused.
    counts: (u64, u64),
    unjudged: u64,
    backend: PrefilterKind,
}

impl Judged {
    fn of(status: &::gateway::status::Status, backend: PrefilterKind) -> Self {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let outside = &status.outside;
        let counts = match backend {
            PrefilterKind::Software => (load(&status.filter_received), load(&status.filter_refused)),
            PrefilterKind::Rtl | PrefilterKind::Xdp => (load(&outside.received), load(&outside.refused)),
        };
        Self {
            counts,
            unjudged: load(&outside.unjudged),
            backend,
        }
    }
}

/// What a stage is built of, on its own thread.
struct StageParts {
    exchange: ExchangeConfig,
    fix: ClientConfig,
    native: ClientConfig,
    replay: ReplayConfig,
    ticks: UdpReceiverConfig,
    traded: Vec<Traded>,
}

impl StageParts {
    #[allow(clippy::too_many_arguments, reason = "called once, where the demo is put together")]
    fn build(
        self,
        clock: Clock,
        mut recording: Recording,
        prices: PriceFeed,
        gateway: Arc<::gateway::status::Status>,
        scenes: Vec<Scene>,
        watch: Arc<Watch>,
        outcome: mpsc::Sender<Outcome>,
    ) -> io::Result<Stage> {
        let loss = LossSwitch::default();
        let switch = loss.clone();
        let instruments =
            exchange::instruments(&self.exchange).map_err(|failure| io::Error::other(failure.to_string()))?;
        let exchange = Exchange::open(
            &self.exchange,
            instruments,
            clock,
            recording.recorder(EXCHANGE_RING_RECORDS),
            |socket| Lossy::new(socket, switch.clone(), LOSS_SEED),
        )
        .map_err(io::Error::other)?;
        let client = |config: &ClientConfig, recorder| {
            Client::new(config, &self.traded, clock, recorder).map_err(io::Error::other)
        };
        Ok(Stage {
            exchange,
            replay: Replay::open(self.replay).map_err(io::Error::other)?,
            ticks: UdpReceiver::open(&self.ticks).map_err(io::Error::other)?,
            prices,
            fix: client(&self.fix, recording.recorder(RING_RECORDS))?,
            native: client(&self.native, recording.recorder(RING_RECORDS))?,
            clock,
            recording: Some(recording),
            loss,
            gateway,
            scenes,
            watch,
            outcome,
            act: Act::Waiting { since: clock.now() },
        })
    }
}

/// Seed of the lossy network.
const LOSS_SEED: u64 = 1;

/// A shard and everything else on one thread, where there is only one CPU.
struct Together<A, B>(A, B);

impl<A: Component, B: Component> Component for Together<A, B> {
    fn turn(&mut self, now: Timestamp) -> bool {
        // Both, always: `||` would starve the second.
        self.0.turn(now) | self.1.turn(now)
    }

    fn finish(&mut self) {
        self.0.finish();
        self.1.finish();
    }
}

/// Starts the threads: the shard alone on one CPU and everything else on the other, or both taking turns on the only one.
fn start<B>(
    shard: PreparedShard,
    recorder: Recorder,
    build: B,
    cpus: Cpus,
    clock: Clock,
) -> Result<Vec<Running>, Failure>
where
    B: FnOnce() -> io::Result<Stage> + Send + 'static,
{
    if cpus.are_two() {
        let place = Placement {
            name: "stage".to_owned(),
            cpu: Some(cpus.others),
            idle: ::gateway::config::Idle::Spin,
        };
        // The exchange first, so that the shard's link finds it.
        let others = executor::run(&place, clock, build)?;
        let shard = shard.run(recorder, |socket| socket)?;
        return Ok(vec![shard, others]);
    }
    let place = shard.placement();
    let together = executor::run(&place, clock, move || {
        let stage = build()?;
        let worker = shard.build(recorder, |socket| socket).map_err(io::Error::other)?;
        Ok(Together(worker, stage))
    })?;
    Ok(vec![together])
}

/// The parts of the run.
fn scenes(link: LinkKind) -> Vec<Scene> {
    let warm_up = Scene {
        name: "",
        orders: u64::MAX,
        longest: Duration::from_secs(2),
        loss_per_million: 0,
    };
    let normal = Scene {
        name: "normal",
        orders: ORDERS,
        longest: Duration::from_secs(40),
        loss_per_million: 0,
    };
    let lossy = Scene {
        name: "1 % of packets lost",
        orders: u64::MAX,
        longest: Duration::from_secs(10),
        loss_per_million: LOSS_PER_MILLION,
    };
    match link {
        LinkKind::Ltp => vec![warm_up, normal, lossy],
        // Loss is put under the datagrams of LTP; under the others it would have to be put into the kernel.
        LinkKind::Tcp | LinkKind::Roce => vec![warm_up, normal],
    }
}

/// Shows on a terminal how far it is, until it is over.
fn follow(watch: &Watch, scenes: &[Scene]) {
    let is_terminal = io::stderr().is_terminal();
    let mut last = usize::MAX;
    while !watch.is_over.load(Ordering::Acquire) {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let scene = watch.scene.load(Ordering::Relaxed);
        let (fix, native) = (
            watch.fix_sent.load(Ordering::Relaxed),
            watch.native_sent.load(Ordering::Relaxed),
        );
        let name = match scenes.get(scene) {
            Some(scene) if !scene.name.is_empty() => scene.name,
            Some(_) => "warm-up",
            None => "done",
        };
        if is_terminal {
            // A line that writes itself over.
            output::complain(format_args!(
                "\r\x1b[K{name}: {fix} FIX and {native} native orders sent"
            ));
        } else if scene != last {
            note!("{name}");
        }
        last = scene;
    }
    if is_terminal {
        output::complain(format_args!("\r\x1b[K"));
    }
}

/// What the journals gave when they were replayed.
struct Replayed {
    gateway: Result<replay::Summary, String>,
    exchange: Result<u64, String>,
}

/// Runs both journals through the same code again.
fn replayed(args: &Args, setup: &Setup, cpus: Cpus) -> Result<Replayed, Failure> {
    say("replaying the journals");
    let config = gateway_config(args, setup, cpus)?;
    let exchange_config = ExchangeConfig::parse(&setup.exchange(args.link), &setup.folder)?;
    Ok(Replayed {
        gateway: replay::verify(&config, ShardId(0)).map_err(|error| error.to_string()),
        exchange: exchange::verify(&exchange_config).map_err(|error| error.to_string()),
    })
}

/// Prints what came out, writes the report, and fails when one order is unaccounted for.
fn conclude(
    args: &Args,
    setup: &Setup,
    cpus: Cpus,
    outcome: &Outcome,
    judged: &Judged,
    replayed: &Replayed,
) -> Result<(), Failure> {
    let mut report = Report::load(&[setup.folder.join("recording")], false)?;
    if !cpus.are_two() {
        report.add_warning(
            "gateway, clients and simulator share one CPU: the figures are those of turns taken, not of the path",
        );
    } else {
        report.add_warning("clients and simulator take turns on one CPU: what one does, the other waits for");
    }
    match &replayed.gateway {
        Ok(summary) => report.add_fact(
            "gateway journal replayed",
            format!(
                "identical: {} inputs, {} outputs, hash {:016x}",
                summary.inputs, summary.outputs, summary.hash
            ),
        ),
        Err(error) => report.add_problem(format!("gateway journal: {error}")),
    }
    match &replayed.exchange {
        Ok(records) => report.add_fact("exchange journal replayed", format!("identical: {records} records")),
        Err(error) => report.add_problem(format!("exchange journal: {error}")),
    }
    let (received, refused) = judged.counts;
    report.add_fact(
        format!("pre-filter, {}", judged.backend.name()),
        format!("{received} orders judged, {refused} refused"),
    );
    if received == 0 || refused == 0 || judged.unjudged > 0 {
        report.add_problem(format!(
            "pre-filter: {received} orders judged and {refused} refused, {} not judged",
            judged.unjudged
        ));
    }
    let dropped = outcome.dropped;
    report.add_fact(
        "packets dropped on the venue link",
        format!("{} out, {} in", dropped.sent, dropped.received),
    );
    for (name, accounting) in [("FIX", &outcome.fix), ("native", &outcome.native)] {
        if let Some(problem) = unbalanced(name, accounting) {
            report.add_problem(&problem);
        }
        if let Some((reason, count)) = accounting.refusals().next() {
            report.add_fact(
                format!("{name} order refused for real"),
                format!("{reason} ({count} ×)"),
            );
        }
    }
    if let Err(error) = &outcome.recording {
        report.add_problem(format!("recording: {error}"));
    }
    report.add_next("cargo run --release -- demo --link tcp");
    say!("{}", report.text());
    for path in report.write_files(&args.out)? {
        say!("wrote {}", path.display());
    }
    if report.complete {
        Ok(())
    } else {
        Err(Failure::new(
            "not everything is accounted for; the problems are listed above",
        ))
    }
}

/// What is wrong with a client's own account, if anything is.
fn unbalanced(name: &str, accounting: &Accounting) -> Option<String> {
    let Accounting {
        sent,
        acknowledged,
        refused,
        filled,
        canceled,
        expired,
        open,
        ..
    } = *accounting;
    if sent == 0 {
        return Some(format!(
            "{name}: no order was sent; links, logons or feed did not come up within ten seconds"
        ));
    }
    if sent != acknowledged + refused {
        return Some(format!(
            "{name}: {sent} sent, but {acknowledged} acknowledged and {refused} refused"
        ));
    }
    if acknowledged != filled + canceled + expired + open {
        return Some(format!(
            "{name}: {acknowledged} acknowledged, but {filled} filled, {canceled} cancelled, {expired} expired, {open} open"
        ));
    }
    None
}

fn header(args: &Args, cpus: Cpus, clock: Clock) -> latency::Header {
    let core = |cpu: usize| u32::try_from(cpu).ok();
    let placement = vec![
        latency::Placement {
            thread: "gateway shard 0".to_owned(),
            core: core(cpus.shard),
        },
        latency::Placement {
            thread: "exchange, replay, price feed, clients".to_owned(),
            core: core(cpus.others),
        },
    ];
    let idle = if cpus.are_two() { "spin" } else { "backoff" };
    let mut header = recording::header("demo", &clock, placement, idle);
    header.transports = vec![
        if args.prefilter.is_before_the_socket() {
            "clients: FIX over TCP loopback, native over LTP loopback"
        } else {
            "clients: TCP loopback"
        }
        .to_owned(),
        format!("venue: {} loopback", args.link.title()),
        "feed: MoldUDP64 loopback".to_owned(),
    ];
    header
}

fn replay_config(setup: &Setup) -> ReplayConfig {
    ReplayConfig {
        files: vec![setup.feed.clone()],
        symbols: Some(setup.instruments.iter().map(|row| row.symbol).collect()),
        pace: Pace::Rate {
            messages_per_second: FEED_RATE,
        },
        from_ns: 0,
        until_ns: u64::MAX,
        passes: None,
        linger: Duration::from_millis(200),
        session_prefix: 0,
        publisher: UdpPublisherConfig {
            local: setup.ports.history_requests,
            destinations: vec![setup.ports.history],
            interface: Ipv4Addr::LOCALHOST,
            ring: 1 << 16,
            heartbeat: Duration::from_millis(100),
        },
    }
}

fn ticks_config(setup: &Setup) -> UdpReceiverConfig {
    UdpReceiverConfig {
        listen: setup.ports.ticks,
        interface: Ipv4Addr::LOCALHOST,
        requests: Some(setup.ports.feed),
        receiver: feeds::limits::RECEIVER,
    }
}

fn traded(setup: &Setup) -> Vec<Traded> {
    setup
        .instruments
        .iter()
        .map(|row| Traded {
            id: row.id,
            symbol: row.symbol,
            tick_size: row.tick_size,
            lot_size: row.lot_size,
            reference_price: row.reference_price,
        })
        .collect()
}

/// Tells the user what is being done, away from what a program may read.
fn say(text: &str) {
    note!("{text}");
}
