//! The floor of this machine: round trips of 64 bytes between two spinning threads, over loopback UDP and TCP.
//!
//! `cargo bench --bench loop_floor`. Rounds alternate, because the speed of the machine changes from minute to minute:
//! compare lines of one round.

use std::process::ExitCode;

const ROUNDS: usize = 3;
const ROUND_TRIPS: usize = 100_000;
/// Enough to see that it runs, for `cargo test --benches`.
const ROUND_TRIPS_TEST: usize = 100;

fn main() -> ExitCode {
    let cpus = net::cpu::permitted();
    let [cpu_a, .., cpu_b] = cpus[..] else {
        eprintln!("loop_floor needs two CPUs, this process is permitted {cpus:?}; run it where there are more");
        return ExitCode::FAILURE;
    };
    let count = if std::env::args().any(|arg| arg == "--bench") {
        ROUND_TRIPS
    } else {
        ROUND_TRIPS_TEST
    };
    println!(
        "{} · Linux {} · CPUs {cpu_a} and {cpu_b} · {count} round trips of {} bytes, µs",
        net::host::cpu_model(),
        net::host::kernel(),
        net::floor::MESSAGE_LENGTH
    );
    println!(
        "{:>5} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "round", "transport", "p50", "p99", "p99.9", "max"
    );
    for round in 1..=ROUNDS {
        for (transport, samples) in [
            ("udp", net::floor::udp_round_trip(cpu_a, cpu_b, count)),
            ("tcp", net::floor::tcp_round_trip(cpu_a, cpu_b, count)),
        ] {
            match samples {
                Ok(samples) => print_line(round, transport, samples),
                Err(error) => {
                    eprintln!("measuring {transport} on loopback: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

fn print_line(round: usize, transport: &str, mut samples: Vec<u64>) {
    samples.sort_unstable();
    // Nearest rank; in tenths of a per cent so that no floating point decides an index.
    let at = |per_mille: usize| samples[(samples.len() * per_mille).div_ceil(1_000).max(1) - 1];
    let us = |ns: u64| format!("{}.{:02}", ns / 1_000, ns % 1_000 / 10);
    println!(
        "{round:>5} {transport:>9} {:>8} {:>8} {:>8} {:>8}",
        us(at(500)),
        us(at(990)),
        us(at(999)),
        us(at(1_000))
    );
}
