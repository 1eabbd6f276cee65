//! What LTP adds: to a bare UDP round trip on loopback, and in nanoseconds of its own a message.
//!
//! `cargo bench --bench ltp`. Rounds alternate, because the speed of the machine changes from minute to minute: only the
//! ratio of one round means something.

use latency::clock::Clock;
use net::link::{Link, LinkEvent, LtpLink, Resume};
use net::udp::UdpPeer;
use net::{UdpOptions, cpu, floor};
use proto::ltp::{self, Config, Connection, Role};
use std::error::Error;
use std::hint::black_box;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use types::{Duration, SessionId, Timestamp};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 3;
const ROUND_TRIPS: usize = 100_000;
/// Enough to see that it runs, for `cargo test --benches`.
const ROUND_TRIPS_TEST: usize = 100;
const WARM_UP: usize = 1_000;
const MESSAGE_LENGTH: usize = floor::MESSAGE_LENGTH;
/// Messages queued together: they fill an Ethernet frame.
const PACKED: usize = 22;

fn main() -> ExitCode {
    let cpus = cpu::permitted();
    let [cpu_a, .., cpu_b] = cpus[..] else {
        eprintln!("ltp needs two CPUs, this process is permitted {cpus:?}; run it where there are more");
        return ExitCode::FAILURE;
    };
    let bench = std::env::args().any(|arg| arg == "--bench");
    let count = if bench { ROUND_TRIPS } else { ROUND_TRIPS_TEST };
    match run(cpu_a, cpu_b, count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("measuring on loopback: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cpu_a: usize, cpu_b: usize, count: usize) -> Outcome<()> {
    let (model, kernel) = (net::host::cpu_model(), net::host::kernel());
    println!("{model} · Linux {kernel} · CPUs {cpu_a} and {cpu_b} · {MESSAGE_LENGTH} bytes");
    println!("the state machine alone, both ends, ns a message:");
    for packed in [1, PACKED] {
        // Another program on the same core makes a run longer, and none shorter.
        let best = (0..ROUNDS)
            .map(|_| state_machine(packed, count))
            .fold(f64::INFINITY, f64::min);
        println!("  {packed:>2} a datagram {best:>7.1}");
    }
    println!("round trips over loopback, {count} each, µs:");
    println!(
        "{:>5} {:>9} {:>7} {:>7} {:>7}",
        "round", "transport", "p50", "p99", "p99.9"
    );
    for round in 1..=ROUNDS {
        let udp = floor::udp_round_trip(cpu_a, cpu_b, count)?;
        let bare = print_line(round, "udp", udp);
        let (ltp, counters) = ltp_round_trip(cpu_a, cpu_b, count)?;
        let ours = print_line(round, "ltp", ltp);
        let (again, spurious) = (counters.retransmits, counters.retransmits_spurious);
        println!(
            "{round:>5} ltp to udp at p50: {:.3}; {again} retransmits, {spurious} of them spurious",
            ours / bare
        );
    }
    Ok(())
}

fn print_line(round: usize, transport: &str, mut samples: Vec<u64>) -> f64 {
    samples.sort_unstable();
    // Nearest rank.
    let at = |per_mille: usize| {
        let ns = samples[(samples.len() * per_mille).div_ceil(1_000).max(1) - 1];
        ns as f64 / 1e3
    };
    println!(
        "{round:>5} {transport:>9} {:>7.2} {:>7.2} {:>7.2}",
        at(500),
        at(990),
        at(999)
    );
    at(500)
}

fn config() -> Config {
    Config::new(SessionId(1), 1_024, MESSAGE_LENGTH)
}

/// Two connections in one thread with nothing between them: what the protocol costs a message, sent, received,
/// acknowledged, both ends together.
fn state_machine(packed: usize, count: usize) -> f64 {
    let mut sender = Connection::new(Role::Initiator, config(), 1, ltp::Resume::START);
    let mut receiver = Connection::new(Role::Acceptor, config(), 1, ltp::Resume::START);
    let mut now = Timestamp(1_000_000_000);
    let mut datagram = [0; 1_472];
    let mut message = [0x5a; MESSAGE_LENGTH];
    let mut received = 0;
    let batches = count.div_ceil(packed);
    let mut start = Instant::now();
    for batch in 0..WARM_UP + batches {
        if batch == WARM_UP {
            start = Instant::now();
            received = 0;
        }
        if sender.is_up() {
            for _ in 0..packed {
                sender.send(black_box(&message), 0);
            }
        }
        // Long enough that the acknowledgement leaves.
        for _ in 0..2 {
            now = now + Duration::from_micros(10);
            while let Some(length) = sender.poll_transmit(now, 0, &mut datagram) {
                receiver.on_datagram(now, &datagram[..length]);
            }
            while let Some(event) = receiver.poll_event(&mut message) {
                received += usize::from(matches!(event, ltp::Event::Message { .. }));
            }
            while let Some(length) = receiver.poll_transmit(now, 0, &mut datagram) {
                sender.on_datagram(now, &datagram[..length]);
            }
            while sender.poll_event(&mut message).is_some() {}
        }
    }
    let took = start.elapsed().as_nanos() as f64;
    assert_eq!(received, batches * packed, "every message arrives in its turn");
    took / received as f64
}

fn ltp_round_trip(cpu_a: usize, cpu_b: usize, count: usize) -> Outcome<(Vec<u64>, ltp::Counters)> {
    let options = UdpOptions::default();
    let far = UdpPeer::learn(SocketAddr::from(([127, 0, 0, 1], 0)), &options)?;
    let near = UdpPeer::connect(far.local_addr()?, None, &options)?;
    let near = LtpLink::new(near, Role::Initiator, &config(), 1, Resume::START)?;
    let far = LtpLink::new(far, Role::Acceptor, &config(), 1, Resume::START)?;
    let clock = Clock::start();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let echo = scope.spawn(|| echo(far, cpu_b, &clock, &done));
        let ping = scope.spawn(|| {
            let samples = ping(near, cpu_a, &clock, count);
            done.store(true, Ordering::Release);
            samples
        });
        let measured = ping.join().expect("the pinging thread does not panic");
        echo.join().expect("the echoing thread does not panic")?;
        measured
    })
}

fn ping(mut link: LtpLink<UdpPeer>, cpu: usize, clock: &Clock, count: usize) -> Outcome<(Vec<u64>, ltp::Counters)> {
    cpu::pin(cpu)?;
    let mut message = [0x5a; MESSAGE_LENGTH];
    let warm_up = count.min(WARM_UP);
    let mut samples = Vec::with_capacity(warm_up + count);
    while !link.is_up() {
        turn(&mut link, clock.now(), &mut message);
    }
    while samples.len() < warm_up + count {
        let start = Instant::now();
        link.send(&message, 0);
        link.flush(clock.now(), 0);
        while !turn(&mut link, clock.now(), &mut message) {}
        samples.push(u64::try_from(start.elapsed().as_nanos())?);
    }
    samples.drain(..warm_up);
    Ok((samples, link.ltp_counters()))
}

fn echo(mut link: LtpLink<UdpPeer>, cpu: usize, clock: &Clock, done: &AtomicBool) -> Outcome<()> {
    cpu::pin(cpu)?;
    let mut message = [0; MESSAGE_LENGTH];
    while !done.load(Ordering::Acquire) {
        if turn(&mut link, clock.now(), &mut message) {
            link.send(&message, 0);
            link.flush(clock.now(), 0);
        }
    }
    Ok(())
}

/// One turn; `true` when it brought a message.
fn turn(link: &mut LtpLink<UdpPeer>, now: Timestamp, message: &mut [u8]) -> bool {
    match link.poll(now, message) {
        Some(event) => matches!(event, LinkEvent::Message { .. }),
        None => {
            link.flush(now, 0);
            false
        }
    }
}
