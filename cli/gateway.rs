//! `tickgate gateway`: the gateway alone.

use crate::output::say;
use crate::process::{self, Interrupt};
use crate::{Failure, exchange, recording};
use ::gateway::config::{Config, Idle, LeftOut};
use ::gateway::executor::Running;
use ::gateway::feed::PriceFeed;
use ::gateway::gateway::{Gateway, PreparedShard};
use ::gateway::memory::{memory, session_memory};
use ::gateway::status::Addresses;
use clap::Args as ClapArgs;
use latency::clock::Clock;
use latency::{Placement, Recorder, Recording, RecordingThread};
use net::link::LinkConfig;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Runs the gateway: FIX and native orders in, risk and first-stage match, out to the venues.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The config, such as `configs/gateway.toml`.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// Check the config and the host, print memory and placement, and exit.
    #[arg(long)]
    check: bool,

    /// Run this exchange simulator too, in turns with shard 0 in its thread: on two cores, gateway and exchange share one
    /// and the order client has the other.
    #[arg(long, value_name = "FILE")]
    exchange: Option<PathBuf>,

    /// Record the stamps at the gateway's taps into this directory, for `tickgate report`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

/// Runs the subcommand until it is interrupted.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    if args.check {
        print_config(&config);
        print_memory(&config);
        print_sessions(&config);
        Gateway::check_host(&config)?;
        process::check_links(links(&config))?;
        say!("the config and this host are fine");
        return Ok(());
    }
    // Threads that are not pinned start before those that are: a thread inherits the mask of the one that starts it.
    let clock = Clock::start();
    let interrupt = Interrupt::new()?;
    let (recorders, recording) = record(args, &config, &clock)?;
    let gateway = Gateway::prepare(config, clock)?;
    print_config(gateway.config());
    print_memory(gateway.config());
    process::gather_memory();
    print_recovered(&gateway);
    let statuses = gateway.statuses().to_vec();
    let feed = match PriceFeed::open(gateway.config(), gateway.references())? {
        Some(feed) => {
            let cpu = gateway.config().feed.and_then(|feed| feed.cpu);
            Some(process::spawn("price feed", cpu, clock, feed)?)
        }
        None => None,
    };
    let mut beside = match &args.exchange {
        Some(file) => Some(exchange::Beside::load(file, clock)?),
        None => None,
    };
    let (door, shards) = gateway.open()?;
    let running = shards
        .into_iter()
        .zip(recorders)
        .map(|(shard, recorder): (PreparedShard, Recorder)| match beside.take() {
            Some(exchange) => shard.run_beside(recorder, move || exchange.open()),
            None => shard.run(recorder, |socket| socket),
        })
        .collect::<Result<Vec<Running>, _>>()?;
    for (shard, status) in statuses.iter().enumerate() {
        say!("shard {shard}: {}", shown(&status.addresses()));
    }
    if door.addresses() != Addresses::default() {
        say!("door: {}", shown(&door.addresses()));
    }
    say!("running; interrupt to stop");
    interrupt.wait();
    drop(door);
    for shard in running {
        shard.stop()?;
    }
    if let Some(feed) = feed {
        feed.stop();
    }
    if let Some(recording) = recording {
        let summary = recording.finish(&clock)?;
        say!(
            "{} records in {}, {} dropped",
            summary.records,
            summary.path.display(),
            summary.dropped
        );
    }
    for (shard, status) in statuses.iter().enumerate() {
        let (accepted, open) = (
            status.accepted.load(Ordering::Relaxed),
            status.open_orders.load(Ordering::Relaxed),
        );
        let (judged, refused) = (
            status.filter_received.load(Ordering::Relaxed),
            status.filter_refused.load(Ordering::Relaxed),
        );
        say!("shard {shard}: {accepted} orders accepted, {open} open; the pre-filter refused {refused} of {judged}");
        let outside = &status.outside;
        let (judged, refused) = (
            outside.received.load(Ordering::Relaxed),
            outside.refused.load(Ordering::Relaxed),
        );
        let unjudged = outside.unjudged.load(Ordering::Relaxed);
        if judged + unjudged > 0 {
            say!("shard {shard}: the pre-filter's backend refused {refused} of {judged}, and did not judge {unjudged}");
        }
        for link in status.link_summaries() {
            say!("{link}");
        }
    }
    Ok(())
}

/// Every link, those to venues first, with what to call it.
fn links(config: &Config) -> impl Iterator<Item = (String, &LinkConfig)> {
    let venues = config.venues.iter().flat_map(|venue| {
        let links = venue.links.iter().enumerate();
        links.map(|(shard, link)| (format!("link to venue {}, shard {shard}", venue.name), &link.settings))
    });
    let clients = config.sessions.iter();
    let clients =
        clients.filter_map(|session| Some((format!("link of session {}", session.id), session.link.as_ref()?)));
    venues.chain(clients)
}

/// Where clients connect, as it is printed.
fn shown(addresses: &Addresses) -> String {
    let &Addresses { fix, fix_tls, native } = addresses;
    let rows = [("FIX", fix), ("FIX with TLS", fix_tls), ("native", native)];
    let rows = rows
        .into_iter()
        .filter_map(|(what, address)| Some(format!("{what} on {}", address?)))
        .collect::<Vec<_>>();
    if rows.is_empty() {
        return "no address of its own".to_owned();
    }
    rows.join(", ")
}

/// One recorder a shard, and the thread that writes what they keep.
fn record(args: &Args, config: &Config, clock: &Clock) -> Result<(Vec<Recorder>, Option<RecordingThread>), Failure> {
    let Some(directory) = &args.record else {
        return Ok((config.shards.iter().map(|_| Recorder::off()).collect(), None));
    };
    let placement = config
        .shards
        .iter()
        .map(|shard| Placement {
            thread: format!("gateway shard {}", shard.id),
            core: shard.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        })
        .collect();
    let spins = config.shards.iter().all(|shard| shard.idle == Idle::Spin);
    let mut header = recording::header("gateway", clock, placement, if spins { "spin" } else { "backoff" });
    header.transports = vec!["clients: TCP".to_owned(), format!("venue: {}", transports(config))];
    let mut recording = Recording::create(directory, "gateway", &header)?;
    let recorders = config
        .shards
        .iter()
        .map(|_| recording.recorder(recording::RING_RECORDS))
        .collect();
    Ok((recorders, Some(recording.spawn()?)))
}

fn transports(config: &Config) -> String {
    let mut names = config
        .venues
        .iter()
        .flat_map(|venue| &venue.links)
        .map(|link| link.settings.transport())
        .collect::<Vec<_>>();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn print_config(config: &Config) {
    say!(
        "{} instruments, {} sessions, {} venues",
        config.instruments.len(),
        config.sessions.len(),
        config.venues.len()
    );
    for shard in &config.shards {
        let cpu = shard
            .cpu
            .map_or_else(|| "no CPU of its own".to_owned(), |cpu| format!("CPU {cpu}"));
        let idle = match shard.idle {
            Idle::Spin => "spins",
            Idle::Backoff => "backs off",
        };
        say!("shard {}: {cpu}, {idle}", shard.id);
    }
    print_crossing(config);
    print_limits_left_out(config);
}

/// Whose orders may trade with each other inside the gateway: it should surprise nobody that this is on, or that it never can
/// happen.
fn print_crossing(config: &Config) {
    let symbols = config
        .orders
        .iter()
        .map(|shard| shard.crossing.instruments.len())
        .sum::<usize>();
    // Every shard knows all sessions.
    let sessions = config.orders.iter().take(1).flat_map(|shard| &shard.sessions);
    let sessions = sessions.filter(|session| session.crossing);
    let owners = sessions.clone().map(|session| session.owner).collect::<BTreeSet<_>>();
    if symbols > 0 || !owners.is_empty() {
        say!(
            "crossing: {symbols} instruments, {} sessions of {} owners{}",
            sessions.count(),
            owners.len(),
            if symbols == 0 || owners.len() < 2 {
                ": nothing crosses"
            } else {
                ""
            }
        );
    }
}

/// Limits that the config may leave out, and for how many it does.
fn print_limits_left_out(config: &Config) {
    for left_out in config.limits_left_out() {
        let LeftOut {
            limit,
            count,
            of,
            whose,
        } = left_out;
        say!("no {limit}: {count} of {of} {whose}");
    }
}

/// What each session takes; all instances of a template in one line.
fn print_sessions(config: &Config) {
    for session in &config.sessions {
        let bytes = session_memory(config, session);
        match session.template {
            None => say!("memory: session {:<16} {bytes:>12}", session.id),
            Some(first) if first == session.id => {
                let instances = config
                    .sessions
                    .iter()
                    .filter(|other| other.template == Some(first))
                    .count();
                say!(
                    "memory: session {:<16} {bytes:>12}",
                    format!("{first}, {instances} times")
                );
            }
            Some(_) => {}
        }
    }
}

fn print_memory(config: &Config) {
    let rows = memory(config);
    for (what, bytes) in &rows {
        say!("memory: {what:<24} {:>12}", bytes);
    }
    say!(
        "memory: {:<24} {:>12}",
        "total",
        rows.iter().map(|(_, bytes)| bytes).sum::<usize>()
    );
}

/// What the journals held.
fn print_recovered(gateway: &Gateway) {
    for (shard, summary) in gateway.summaries().iter().enumerate() {
        if summary.inputs > 0 {
            say!(
                "shard {shard}: recovered from {} inputs and {} outputs",
                summary.inputs,
                summary.outputs
            );
        }
    }
}
