//! What RoCEv2 in user space costs by itself, without a network: nanoseconds a packet.
//!
//! `cargo bench --bench roce`. What the link adds to a bare UDP round trip, `tickgate lat --all` shows. A packet has one
//! order of 48 bytes behind the eight that the link puts before it, by RDMA WRITE or SEND with immediate, and its ICRC, with
//! the IPv4 identification hidden as by a socket. Packets come in batches, so that the clock's own cost vanishes. What is
//! dropped: *damaged* has the wrong ICRC, *replayed* came before.
//!
//! Instructions a packet, without start-up:
//!
//! ```text
//! cargo bench --bench roce --no-run                   # prints the path of the program
//! valgrind --tool=callgrind --toggle-collect='roce::send_all*' PROGRAM --packets 25600
//! ```
//!
//! and divide what it says was collected by the number of packets; with `--send` behind it likewise for SEND, and
//! `roce::receive_all*` for those taken, `roce::drop_damaged*` and `roce::drop_replayed*` for those dropped.

use proto::roce::{
    Access, Attributes, Completion, Config, Identification, Operation, Path, QueuePair, ReceiveRequest, Region,
    Regions, Remote, SendRequest,
};
use std::hint::black_box;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;
use types::{Duration, Timestamp};

const ROUNDS: usize = 5;
const BATCHES: usize = 400;
/// Enough to see that it runs, for `cargo test --benches`.
const BATCHES_TEST: usize = 2;
/// Packets of a batch: as many as the link has in flight.
const BATCH: usize = 128;
/// `NewOrder` of the native protocol, and the number before it.
const MESSAGE_LENGTH: usize = 48 + 8;
const PACKET_MAX: usize = 256;
const SLOTS: usize = 4_096;
const KEY: u32 = 7;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if let Some(place) = arguments.iter().position(|argument| argument == "--packets") {
        let Some(count) = arguments.get(place + 1).and_then(|count| count.parse::<usize>().ok()) else {
            eprintln!("roce: --packets wants a number");
            return ExitCode::FAILURE;
        };
        let batches = count.div_ceil(BATCH);
        // The first batch warms up, and is counted here.
        Ends::new(has("--send")).measure(batches - 1);
        println!("{} packets of each kind", batches * BATCH);
        return ExitCode::SUCCESS;
    }
    compare(if has("--bench") { BATCHES } else { BATCHES_TEST });
    ExitCode::SUCCESS
}

/// Another program on the same core makes a run longer, and none shorter: the best of some rounds counts.
fn compare(batches: usize) {
    let (model, kernel) = (net::host::cpu_model(), net::host::kernel());
    println!("{model} · Linux {kernel} · {MESSAGE_LENGTH} bytes");
    let mut best = [[f64::INFINITY; KINDS.len()]; 2];
    for _ in 0..ROUNDS {
        for (best, is_send) in best.iter_mut().zip([false, true]) {
            let costs = Ends::new(is_send).measure(batches);
            for (best, cost) in best.iter_mut().zip(costs) {
                *best = best.min(cost);
            }
        }
    }
    println!("{:>24} {:>9} {:>9}", "ns a packet", "WRITE", "SEND");
    for (what, (write, send)) in KINDS.iter().zip(best[0].iter().zip(best[1])) {
        println!("{what:>24} {write:>9.1} {send:>9.1}");
    }
}

const KINDS: [&str; 4] = ["sent", "received", "dropped as damaged", "dropped as replayed"];

/// Two queue pairs in one thread, each with its arena, and the packets of a batch between them.
struct Ends {
    sender: End,
    receiver: End,
    now: Timestamp,
    batch: Vec<Vec<u8>>,
    is_send: bool,
    next: u32,
}

struct End {
    pair: QueuePair,
    regions: Regions,
    memory: Vec<u8>,
    to: Path,
    from: Path,
}

impl End {
    fn new(qpns: [u32; 2], psns: [u32; 2], [local, peer]: [SocketAddr; 2]) -> Self {
        let config = Config {
            window: 2 * BATCH as u64,
            ..Config::new(SLOTS, MESSAGE_LENGTH)
        };
        let mut pair = QueuePair::new(config).expect("the settings work");
        pair.connect(Attributes {
            local_qpn: qpns[0],
            peer_qpn: qpns[1],
            send_psn: psns[0],
            receive_psn: psns[1],
        });
        let length = SLOTS * MESSAGE_LENGTH;
        let mut regions = Regions::new(1, length);
        let access = Access {
            remote_read: false,
            remote_write: true,
        };
        let region = Region {
            remote_key: KEY,
            address: 0,
            offset: 0,
            length,
            access,
        };
        regions.register(region).expect("it is the only one");
        let mut end = Self {
            pair,
            regions,
            memory: vec![0x5a; length],
            to: Path::new(local, peer),
            from: Path::new(peer, local),
        };
        for id in 0..SLOTS as u64 {
            end.post_receive(id);
        }
        end
    }

    fn post_receive(&mut self, id: u64) {
        let request = ReceiveRequest {
            id,
            offset: place(id),
            length: MESSAGE_LENGTH,
        };
        self.pair.post_receive(request, &self.regions).expect("there is room");
    }

    fn send(&mut self, now: Timestamp, packet: &mut [u8]) -> Option<usize> {
        let length = self.pair.poll_transmit(now, &self.memory, packet)?;
        Some(self.to.seal(packet, length))
    }

    fn receive(&mut self, now: Timestamp, bytes: &[u8]) {
        if let Some(packet) = self.from.open(bytes, Identification::Hidden) {
            self.pair.on_packet(now, packet, false, &self.regions, &mut self.memory);
        }
    }
}

impl Ends {
    fn new(is_send: bool) -> Self {
        let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|ip| SocketAddr::from((ip, 4_791)));
        let [first, second] = addresses;
        Self {
            sender: End::new([2, 3], [100, 200], [first, second]),
            receiver: End::new([3, 2], [200, 100], [second, first]),
            now: Timestamp(1_000_000_000),
            batch: vec![vec![0; PACKET_MAX]; BATCH],
            is_send,
            next: 0,
        }
    }

    /// What each kind of packet costs, nanoseconds.
    fn measure(&mut self, batches: usize) -> [f64; KINDS.len()] {
        let mut nanoseconds = [0; KINDS.len()];
        for batch in 0..=batches {
            let took = self.measure_batch();
            // The first warms up.
            if batch > 0 {
                for (sum, took) in nanoseconds.iter_mut().zip(took) {
                    *sum += took;
                }
            }
        }
        nanoseconds.map(|sum| sum as f64 / (batches * BATCH) as f64)
    }

    fn measure_batch(&mut self) -> [u128; KINDS.len()] {
        let Self {
            sender,
            receiver,
            now,
            batch,
            is_send,
            next,
        } = self;
        for packet in batch.iter_mut() {
            packet.resize(PACKET_MAX, 0);
        }
        let sent = timed(|| send_all(sender, *now, *is_send, next, batch));
        let damage = |batch: &mut [Vec<u8>]| batch.iter_mut().for_each(|packet| packet[40] ^= 1);
        damage(batch);
        let damaged = timed(|| drop_damaged(receiver, *now, batch));
        damage(batch);
        let received = timed(|| receive_all(receiver, *now, batch));
        let replayed = timed(|| drop_replayed(receiver, *now, batch));
        self.settle();
        [sent, received, damaged, replayed]
    }

    /// Lets everything pass that either end owes: acknowledgements.
    fn settle(&mut self) {
        self.now = self.now + Duration::from_micros(50);
        let mut packet = [0; PACKET_MAX];
        while let Some(length) = self.receiver.send(self.now, &mut packet) {
            self.sender.receive(self.now, &packet[..length]);
        }
        while self.sender.pair.poll_completion().is_some() {}
        assert_eq!(self.sender.pair.window_room(), 2 * BATCH as u64, "all is acknowledged");
    }
}

fn timed(act: impl FnOnce()) -> u128 {
    let start = Instant::now();
    act();
    start.elapsed().as_nanos()
}

fn place(number: u64) -> usize {
    usize::try_from(number).expect("a small number") % SLOTS * MESSAGE_LENGTH
}

#[inline(never)]
fn send_all(sender: &mut End, now: Timestamp, is_send: bool, next: &mut u32, batch: &mut [Vec<u8>]) {
    for packet in batch {
        let offset = place(u64::from(*next));
        let immediate = Some(*next);
        let to = Remote {
            address: offset as u64,
            key: KEY,
        };
        let request = SendRequest {
            id: 0,
            operation: if is_send {
                Operation::Send { immediate }
            } else {
                Operation::Write { to, immediate }
            },
            offset,
            length: MESSAGE_LENGTH,
            is_signaled: false,
        };
        *next += 1;
        sender
            .pair
            .post_send(black_box(request), &sender.regions)
            .expect("there is room");
        let length = sender.send(now, packet).expect("the packet leaves");
        packet.truncate(length);
    }
}

#[inline(never)]
fn receive_all(receiver: &mut End, now: Timestamp, batch: &[Vec<u8>]) {
    for packet in batch {
        receiver.receive(now, packet);
        let Some(Completion::Receive { id, status: Ok(_) }) = black_box(receiver.pair.poll_completion()) else {
            panic!("every message arrives in its turn");
        };
        receiver.post_receive(id);
    }
}

// Unlike each other, or the linker makes one of them, and callgrind cannot tell them apart.

#[inline(never)]
fn drop_damaged(receiver: &mut End, now: Timestamp, batch: &[Vec<u8>]) {
    black_box(1);
    drop_all(receiver, now, batch);
}

#[inline(never)]
fn drop_replayed(receiver: &mut End, now: Timestamp, batch: &[Vec<u8>]) {
    black_box(2);
    drop_all(receiver, now, batch);
}

fn drop_all(receiver: &mut End, now: Timestamp, batch: &[Vec<u8>]) {
    for packet in batch {
        receiver.receive(now, black_box(packet));
    }
    assert!(receiver.pair.poll_completion().is_none(), "nothing came of it");
}
