//! What LTP costs by itself, without a network: nanoseconds a message.
//!
//! `cargo bench --bench ltp`. What it adds to a bare UDP round trip, `tickgate lat --all` shows.

use net::floor;
use proto::ltp::{self, Config, Connection, Role};
use std::hint::black_box;
use std::time::Instant;
use types::{Duration, SessionId, Timestamp};

const ROUNDS: usize = 3;
const MESSAGES: usize = 100_000;
/// Enough to see that it runs, for `cargo test --benches`.
const MESSAGES_TEST: usize = 100;
const WARM_UP: usize = 1_000;
const MESSAGE_LENGTH: usize = floor::MESSAGE_LENGTH;
/// Messages queued together: they fill an Ethernet frame.
const PACKED: usize = 22;

fn main() {
    let bench = std::env::args().any(|arg| arg == "--bench");
    let count = if bench { MESSAGES } else { MESSAGES_TEST };
    let (model, kernel) = (net::host::cpu_model(), net::host::kernel());
    println!("{model} · Linux {kernel} · {MESSAGE_LENGTH} bytes");
    println!("the state machine alone, both ends, ns a message:");
    for packed in [1, PACKED] {
        // Another program on the same core makes a run longer, and none shorter.
        let best = (0..ROUNDS)
            .map(|_| state_machine(packed, count))
            .fold(f64::INFINITY, f64::min);
        println!("  {packed:>2} a datagram {best:>7.1}");
    }
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
