//! What glommio costs the hot loop: the echo of a component that `gateway::executor` turns, against the echo of a bare
//! spinning thread, over loopback TCP on the same CPUs.
//!
//! `cargo bench --bench loop_echo`. Rounds alternate, because the speed of the machine changes from minute to minute: only
//! the ratio of one round means something. The last line is the median of the ratios; the aim is at most 1.10.

use gateway::config::Idle;
use gateway::executor::{self, Component, Placement};
use latency::clock::Clock;
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

/// Sends back whatever comes.
struct Echo {
    stream: TcpStream,
    message: [u8; LENGTH],
    at: usize,
}

impl Component for Echo {
    fn turn(&mut self, _: Timestamp) -> bool {
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
        "round", "loop", "p50", "p99", "p99.9", "max"
    );
    let clock = Clock::start();
    let mut ratios = Vec::with_capacity(ROUNDS);
    for round in 1..=ROUNDS {
        let bare = print_line(round, "bare", floor::tcp_round_trip(cpu_a, cpu_b, count)?);
        let ours = print_line(round, "glommio", resident_round_trip(cpu_a, cpu_b, count, clock)?);
        ratios.push(ours / bare);
        println!("{round:>5} glommio to bare at p50: {:.3}", ours / bare);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("ratio at p50, median of {ROUNDS} rounds: {:.3}", ratios[ROUNDS / 2]);
    Ok(())
}

/// Round trips to an [`Echo`] on `cpu_b`: nanoseconds each.
fn resident_round_trip(cpu_a: usize, cpu_b: usize, count: usize, clock: Clock) -> Outcome<Vec<u64>> {
    let options = TcpOptions {
        no_delay: true,
        ..TcpOptions::default()
    };
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &options)?;
    let near = TcpStream::connect(listener.local_addr()?, &options, Duration::from_secs(5))?;
    let far = loop {
        if let Some((stream, _)) = listener.accept()? {
            break stream;
        }
    };
    let place = Placement {
        name: "echo".to_owned(),
        cpu: Some(cpu_b),
        idle: Idle::Spin,
    };
    let echo = executor::run(&place, clock, move || {
        Ok(Echo {
            stream: far,
            message: [0; LENGTH],
            at: 0,
        })
    })?;
    let ping = thread::spawn(move || ping(near, cpu_a, count));
    let samples = ping.join().expect("the pinging thread does not panic");
    echo.stop()?;
    samples
}

fn ping(mut stream: TcpStream, cpu: usize, count: usize) -> Outcome<Vec<u64>> {
    cpu::pin(cpu)?;
    let mut message = [0x5a; LENGTH];
    let mut samples = Vec::with_capacity(WARM_UP + count);
    for _ in 0..WARM_UP + count {
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
