//! What LTP costs by itself, without a network: nanoseconds a message, and a datagram of each kind.
//!
//! `cargo bench --bench ltp`. What it adds to a bare UDP round trip, `tickgate lat --all` shows. Datagrams have one order
//! of 48 bytes and come in batches, so that the clock's own cost vanishes. *With a tag* both ends have a key. What is
//! dropped is to cost less than what is taken: *foreign* has another session's tag, *forged* the right one and a changed
//! payload, *replayed* came before.
//!
//! Instructions a datagram, without start-up:
//!
//! ```text
//! cargo bench --bench ltp --no-run                    # prints the path of the program
//! valgrind --tool=callgrind --toggle-collect='ltp::send_all*' PROGRAM --datagrams 25600 --key
//! ```
//!
//! and divide what it says was collected by the number of datagrams; without `--key` likewise, and `ltp::receive_all*` for
//! those taken, `ltp::drop_foreign*`, `ltp::drop_forged*` and `ltp::drop_replayed*` for those dropped.

use proto::ltp::{self, Config, Connection, Event, Key, Role};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;
use types::{Duration, SessionId, Timestamp};

const ROUNDS: usize = 5;
const BATCHES: usize = 400;
/// Enough to see that it runs, for `cargo test --benches`.
const BATCHES_TEST: usize = 2;
/// Datagrams of a batch; a quarter of the window.
const BATCH: usize = 256;
/// `NewOrder` of the native protocol.
const MESSAGE_LENGTH: usize = 48;
/// Messages queued together: they fill an Ethernet frame.
const PACKED: usize = 29;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if let Some(place) = arguments.iter().position(|argument| argument == "--datagrams") {
        let Some(count) = arguments.get(place + 1).and_then(|count| count.parse::<usize>().ok()) else {
            eprintln!("ltp: --datagrams wants a number");
            return ExitCode::FAILURE;
        };
        let batches = count.div_ceil(BATCH);
        Ends::new(has("--key")).measure(batches);
        println!("{} datagrams of each kind", batches * BATCH);
        return ExitCode::SUCCESS;
    }
    compare(if has("--bench") { BATCHES } else { BATCHES_TEST });
    ExitCode::SUCCESS
}

/// Another program on the same core makes a run longer, and none shorter: the best of some rounds counts.
fn compare(batches: usize) {
    let (model, kernel) = (net::host::cpu_model(), net::host::kernel());
    println!("{model} · Linux {kernel} · {MESSAGE_LENGTH} bytes");
    let mut best = [Costs::WORST; 2];
    let mut packed = f64::INFINITY;
    for _ in 0..ROUNDS {
        for (best, has_key) in best.iter_mut().zip([false, true]) {
            *best = best.min(Ends::new(has_key).measure(batches));
        }
        packed = packed.min(Ends::new(false).packed(batches));
    }
    let [bare, tagged] = best;
    println!("{:>24} {:>9} {:>9} {:>7}", "ns a datagram", "no tag", "with tag", "tag");
    for (what, bare, tagged) in [
        ("sent", bare.sent, tagged.sent),
        ("received", bare.received, tagged.received),
        ("dropped as foreign", bare.foreign, tagged.foreign),
        ("dropped as replayed", bare.replayed, tagged.replayed),
    ] {
        println!("{what:>24} {bare:>9.1} {tagged:>9.1} {:>7.1}", tagged - bare);
    }
    println!("{:>24} {:>9} {:>9.1}", "dropped as forged", "", tagged.forged);
    println!("{PACKED} messages a datagram, both ends: {packed:.1} ns a message");
}

/// Nanoseconds a datagram.
#[derive(Clone, Copy)]
struct Costs {
    sent: f64,
    received: f64,
    foreign: f64,
    forged: f64,
    replayed: f64,
}

/// Two connections in one thread, and the datagrams of a batch between them.
struct Ends {
    sender: Connection,
    receiver: Connection,
    now: Timestamp,
    batch: Vec<Vec<u8>>,
    has_key: bool,
}

impl Costs {
    const WORST: Self = Self {
        sent: f64::INFINITY,
        received: f64::INFINITY,
        foreign: f64::INFINITY,
        forged: f64::INFINITY,
        replayed: f64::INFINITY,
    };

    fn min(self, other: Self) -> Self {
        Self {
            sent: self.sent.min(other.sent),
            received: self.received.min(other.received),
            foreign: self.foreign.min(other.foreign),
            forged: self.forged.min(other.forged),
            replayed: self.replayed.min(other.replayed),
        }
    }
}

impl Ends {
    /// Two ends with a session.
    fn new(has_key: bool) -> Self {
        let secret = *b"a secret of both";
        let config = Config {
            key: has_key.then_some(Key { id: 1, secret }),
            ..Config::new(SessionId(1), 4 * BATCH, MESSAGE_LENGTH)
        };
        let mut ends = Self {
            sender: Connection::new(Role::Initiator, config, 1, ltp::Resume::START),
            receiver: Connection::new(Role::Acceptor, config, 1, ltp::Resume::START),
            now: Timestamp(1_000_000_000),
            batch: Vec::new(),
            has_key,
        };
        while !ends.sender.is_up() {
            ends.settle();
        }
        ends.settle();
        ends.batch = vec![vec![0; 1_472]; BATCH];
        ends
    }

    /// Lets everything pass that either end owes: acknowledgements above all.
    fn settle(&mut self) {
        self.now = self.now + Duration::from_micros(10);
        let mut datagram = [0; 1_472];
        for _ in 0..2 {
            exchange(&mut self.sender, &mut self.receiver, self.now, &mut datagram);
            exchange(&mut self.receiver, &mut self.sender, self.now, &mut datagram);
        }
    }

    /// What each kind of datagram costs.
    fn measure(&mut self, batches: usize) -> Costs {
        let mut nanoseconds = [0; 5];
        for batch in 0..=batches {
            let took = self.measure_batch();
            // The first warms up.
            if batch > 0 {
                for (sum, took) in nanoseconds.iter_mut().zip(took) {
                    *sum += took;
                }
            }
        }
        let [sent, received, foreign, forged, replayed] = nanoseconds.map(|sum| sum as f64 / (batches * BATCH) as f64);
        Costs {
            sent,
            received,
            foreign,
            forged,
            replayed,
        }
    }

    fn measure_batch(&mut self) -> [u128; 5] {
        let Self {
            sender,
            receiver,
            now,
            batch,
            has_key,
        } = self;
        for datagram in batch.iter_mut() {
            datagram.resize(1_472, 0);
        }
        let sent = timed(|| send_all(sender, *now, batch));
        let change = |batch: &mut [Vec<u8>], at: fn(usize) -> usize| {
            batch.iter_mut().for_each(|datagram| {
                let place = at(datagram.len());
                datagram[place] ^= 1;
            });
        };
        change(batch, |_| 0);
        let foreign = timed(|| drop_foreign(receiver, *now, batch));
        change(batch, |_| 0);
        let mut forged = 0;
        if *has_key {
            change(batch, |length| length - 20);
            forged = timed(|| drop_forged(receiver, *now, batch));
            change(batch, |length| length - 20);
        }
        let received = timed(|| receive_all(receiver, *now, batch));
        let replayed = timed(|| drop_replayed(receiver, *now, batch));
        self.settle();
        self.settle();
        [sent, received, foreign, forged, replayed]
    }

    /// A message when many share a datagram: sent, received and acknowledged, both ends together.
    fn packed(&mut self, batches: usize) -> f64 {
        let message = [0x5a; MESSAGE_LENGTH];
        let start = Instant::now();
        for _ in 0..batches {
            for _ in 0..PACKED {
                self.sender.send(black_box(&message), 0);
            }
            self.settle();
        }
        start.elapsed().as_nanos() as f64 / (batches * PACKED) as f64
    }
}

fn timed(act: impl FnOnce()) -> u128 {
    let start = Instant::now();
    act();
    start.elapsed().as_nanos()
}

fn exchange(from: &mut Connection, to: &mut Connection, now: Timestamp, datagram: &mut [u8]) {
    while let Some(length) = from.poll_transmit(now, 0, datagram) {
        to.on_datagram(now, &datagram[..length]);
    }
    while to.poll_event(&mut [0; MESSAGE_LENGTH]).is_some() {}
}

#[inline(never)]
fn send_all(sender: &mut Connection, now: Timestamp, batch: &mut [Vec<u8>]) {
    let message = [0x5a; MESSAGE_LENGTH];
    for datagram in batch {
        sender.send(black_box(&message), 0);
        let length = sender.poll_transmit(now, 0, datagram).expect("the message leaves");
        datagram.truncate(length);
    }
}

#[inline(never)]
fn receive_all(receiver: &mut Connection, now: Timestamp, batch: &[Vec<u8>]) {
    let mut message = [0; MESSAGE_LENGTH];
    for datagram in batch {
        receiver.on_datagram(now, datagram);
        let event = receiver.poll_event(black_box(&mut message));
        assert!(
            matches!(event, Some(Event::Message { .. })),
            "every message arrives in its turn"
        );
    }
}

// Unlike each other, or the linker makes one of them, and callgrind cannot tell them apart.

#[inline(never)]
fn drop_foreign(receiver: &mut Connection, now: Timestamp, batch: &[Vec<u8>]) {
    black_box(1);
    drop_all(receiver, now, batch);
}

#[inline(never)]
fn drop_forged(receiver: &mut Connection, now: Timestamp, batch: &[Vec<u8>]) {
    black_box(2);
    drop_all(receiver, now, batch);
}

#[inline(never)]
fn drop_replayed(receiver: &mut Connection, now: Timestamp, batch: &[Vec<u8>]) {
    black_box(3);
    drop_all(receiver, now, batch);
}

fn drop_all(receiver: &mut Connection, now: Timestamp, batch: &[Vec<u8>]) {
    for datagram in batch {
        receiver.on_datagram(now, black_box(datagram));
    }
}
