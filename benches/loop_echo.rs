//! What the hot loop costs: the echo of a component that `gateway::executor` turns, against the echo of a bare spinning
//! thread, over loopback TCP on the same CPUs. Once with one socket that the component reads in each turn, and once as the
//! shard has its clients: 1,000 sockets in one epoll, one in ten of them active.
//!
//! `cargo bench --bench loop_echo`. Rounds alternate, because the speed of the machine changes from minute to minute: only
//! the ratio of one round means something. The last lines are the medians of the ratios; the aims are at most 1.10 with one
//! socket and 1.15 with 1,000.

use gateway::config::Idle;
use gateway::executor::{self, Component, Placement};
use latency::clock::Clock;
use net::poller::{Interest, Poller};
use net::tcp::{Received, TcpListener, TcpStream};
use net::{TcpOptions, cpu, floor};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;
use types::{Duration, Timestamp};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 7;
const ROUND_TRIPS: usize = 100_000;
/// Enough to see that it runs, for `cargo test --benches`.
const ROUND_TRIPS_TEST: usize = 100;
const WARM_UP: usize = 1_000;
const LENGTH: usize = floor::MESSAGE_LENGTH;
/// Looks without an answer before the echo is taken for lost: some seconds of spinning.
const LOOKS_MAX: usize = 20_000_000;

/// Sockets of a shard with many sessions, and how many of them are active.
const SOCKETS: usize = 1_000;
const ACTIVE: usize = 100;
/// Sockets that the epoll tells of in one look, as a shard does.
const READY_MAX: usize = 64;

/// One end of a connection that sends back whatever comes.
struct Echo {
    stream: TcpStream,
    message: [u8; LENGTH],
    at: usize,
}

/// Many of them behind one epoll.
struct Echoes {
    poller: Poller,
    echoes: Vec<Echo>,
}

impl Echo {
    const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            message: [0; LENGTH],
            at: 0,
        }
    }

    fn turn(&mut self) -> bool {
        // The pinging end hangs up at the end of a round; then there is nothing to do until this one is stopped.
        let Ok(Received::Bytes(length)) = self.stream.recv(&mut self.message[self.at..]) else {
            return false;
        };
        self.at += length;
        if self.at == LENGTH {
            self.at = 0;
            // A message that is not sent whole is missed by the other end, which says so.
            drop(self.stream.send(&self.message));
        }
        true
    }
}

impl Component for Echo {
    fn turn(&mut self, _: Timestamp) -> bool {
        self.turn()
    }
}

impl Component for Echoes {
    fn turn(&mut self, _: Timestamp) -> bool {
        let ready = self.poller.poll(Duration(0)).unwrap_or(0);
        for index in 0..ready {
            let place = usize::try_from(self.poller.ready(index).token).expect("tokens are places");
            self.echoes[place].turn();
        }
        ready > 0
    }
}

fn main() -> ExitCode {
    let cpus = cpu::permitted();
    let [cpu_a, .., cpu_b] = cpus[..] else {
        eprintln!("loop_echo needs two CPUs, this process is permitted {cpus:?}; run it where there are more");
        return ExitCode::FAILURE;
    };
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    match run(cpu_a, cpu_b, if is_bench { ROUND_TRIPS } else { ROUND_TRIPS_TEST }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("measuring on loopback: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cpu_a: usize, cpu_b: usize, count: usize) -> Outcome<()> {
    let (model, kernel) = (net::host::cpu_model(), net::host::kernel());
    println!("{model} · Linux {kernel} · CPUs {cpu_a} and {cpu_b} · {count} round trips of {LENGTH} bytes, µs");
    println!(
        "{:>5} {:>8} {:>7} {:>7} {:>7} {:>7}",
        "round", "sockets", "p50", "p99", "p99.9", "max"
    );
    let clock = Clock::start();
    let mut ratios = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    for round in 1..=ROUNDS {
        let bare = print_line(round, "bare", floor::tcp_round_trip(cpu_a, cpu_b, count)?);
        let one = print_line(round, "1", one_socket(cpu_a, cpu_b, count, clock)?);
        let many = print_line(round, "1,000", many_sockets(cpu_a, cpu_b, count, clock)?);
        for (ratios, ours) in ratios.iter_mut().zip([one, many]) {
            ratios.push(ours / bare);
        }
    }
    for (sockets, mut ratios) in ["1 socket", "1,000 sockets, 100 active"].into_iter().zip(ratios) {
        ratios.sort_unstable_by(f64::total_cmp);
        println!(
            "ratio to the bare spin at p50, median of {ROUNDS} rounds, {sockets}: {:.3}",
            ratios[ROUNDS / 2]
        );
    }
    Ok(())
}

/// Round trips to an [`Echo`] on `cpu_b`: nanoseconds each.
fn one_socket(cpu_a: usize, cpu_b: usize, count: usize, clock: Clock) -> Outcome<Vec<u64>> {
    let (near, far) = pair()?;
    let echo = executor::run(&place(cpu_b), clock, move || Ok(Echo::new(far)))?;
    let samples = thread::spawn(move || ping(&mut [near], cpu_a, count));
    let samples = samples.join().expect("the pinging thread does not panic");
    echo.stop()?;
    samples
}

/// Round trips to [`Echoes`] on `cpu_b`, to the active ones in turn: nanoseconds each.
fn many_sockets(cpu_a: usize, cpu_b: usize, count: usize, clock: Clock) -> Outcome<Vec<u64>> {
    let poller = Poller::new(READY_MAX)?;
    let (mut nears, mut echoes) = (Vec::with_capacity(SOCKETS), Vec::with_capacity(SOCKETS));
    for place in 0..SOCKETS {
        let (near, far) = pair()?;
        poller.add(&far, place as u64, Interest::READ)?;
        nears.push(near);
        echoes.push(Echo::new(far));
    }
    let echo = executor::run(&place(cpu_b), clock, move || Ok(Echoes { poller, echoes }))?;
    let samples = thread::spawn(move || ping(&mut nears, cpu_a, count));
    let samples = samples.join().expect("the pinging thread does not panic");
    echo.stop()?;
    samples
}

/// The two ends of a connection over loopback.
fn pair() -> Outcome<(TcpStream, TcpStream)> {
    let options = TcpOptions {
        no_delay: true,
        ..TcpOptions::default()
    };
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &options)?;
    let near = TcpStream::connect(listener.local_addr()?, &options, Duration::from_secs(5))?;
    loop {
        if let Some((far, _)) = listener.accept()? {
            return Ok((near, far));
        }
    }
}

fn place(cpu: usize) -> Placement {
    Placement {
        name: "echo".to_owned(),
        cpu: Some(cpu),
        idle: Idle::Spin,
    }
}

/// One message at a time, to each active stream in turn. Those are spread over all, so that they are no neighbours in
/// memory either; the others are silent.
fn ping(streams: &mut [TcpStream], cpu: usize, count: usize) -> Outcome<Vec<u64>> {
    cpu::pin(cpu)?;
    let mut message = [0x5a; LENGTH];
    let mut samples = Vec::with_capacity(WARM_UP + count);
    let length = streams.len();
    for index in 0..WARM_UP + count {
        let stream = &mut streams[index * (SOCKETS / ACTIVE) % length];
        let start = Instant::now();
        if stream.send(&message)? != LENGTH {
            return Err("the socket took a part of a message".into());
        }
        let (mut at, mut looks) = (0, 0);
        while at < LENGTH {
            at += match stream.recv(&mut message[at..])? {
                Received::Bytes(length) => length,
                Received::Nothing => 0,
                Received::Closed => return Err("the echo hung up".into()),
            };
            looks += 1;
            if looks > LOOKS_MAX {
                return Err("the echo does not answer".into());
            }
        }
        samples.push(u64::try_from(start.elapsed().as_nanos())?);
    }
    Ok(samples.split_off(WARM_UP))
}

fn print_line(round: usize, name: &str, mut samples: Vec<u64>) -> f64 {
    samples.sort_unstable();
    // Nearest rank.
    let at = |per_mille: usize| {
        let ns = samples[(samples.len() * per_mille).div_ceil(1_000).max(1) - 1];
        ns as f64 / 1e3
    };
    println!(
        "{round:>5} {name:>8} {:>7.2} {:>7.2} {:>7.2} {:>7.2}",
        at(500),
        at(990),
        at(999),
        at(1_000)
    );
    at(500)
}
