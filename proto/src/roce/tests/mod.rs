//! Two queue pairs, virtual time, and a test that decides about each packet.

mod capture;
mod congestion;
mod decoder;
mod hostile;
mod loss;
mod messages;
mod reads;
mod vectors;

use super::wire::{self, Packet};
use super::*;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;
use types::Duration;

const A: usize = 0;
const B: usize = 1;

/// Bytes of each end's arena: what the peer may write and read, what is sent, what receives are for.
const ARENA: usize = 4 * PART;
const PART: usize = 16 * 1_024;
const REACHED: usize = 0;
const OWN: usize = PART;
const RECEIVES: usize = 2 * PART;

/// The key and address of an end's reachable part.
const KEYS: [u32; 2] = [0x0a11_0a11, 0x0b22_0b22];
const ADDRESSES: [u64; 2] = [0x7f00_0000_1000, 0xffff_0000_0000];

/// One end.
pub(super) struct End {
    pub(super) pair: QueuePair,
    pub(super) regions: Regions,
    pub(super) memory: Vec<u8>,
    /// To the peer.
    path: Path,
    pub(super) completions: Vec<Completion>,
}

/// A packet under way.
#[derive(Clone)]
struct Sent {
    from: usize,
    bytes: Vec<u8>,
}

/// Both ends.
struct Pair {
    now: Timestamp,
    ends: [End; 2],
    /// All that was ever sent.
    sent: Vec<Sent>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrive,
    /// Marked by a router on the way.
    ArriveMarked,
    Lose,
}

impl End {
    pub(super) fn new(index: usize, config: Config, psns: [u32; 2]) -> Self {
        let mut regions = Regions::new(2, ARENA);
        let region = Region {
            remote_key: KEYS[index],
            address: ADDRESSES[index],
            offset: REACHED,
            length: PART,
            access: Access {
                remote_read: true,
                remote_write: true,
            },
        };
        regions.register(region).unwrap();
        let mut pair = QueuePair::new(config).unwrap();
        pair.connect(attributes(index, psns));
        Self {
            pair,
            regions,
            memory: vec![0; ARENA],
            path: Path::new(address(index), address(1 - index)),
            completions: Vec::new(),
        }
    }

    /// All that it has to send now.
    pub(super) fn transmit(&mut self, now: Timestamp) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut out = [0; 8_192];
        while let Some(length) = self.pair.poll_transmit(now, &self.memory, &mut out) {
            let length = self.path.seal(&mut out, length);
            packets.push(out[..length].to_vec());
        }
        packets
    }

    /// Takes in what its peer sent, if the check is right.
    pub(super) fn take(&mut self, now: Timestamp, from: Path, bytes: &[u8], is_marked: bool) {
        let Some(packet) = from.open(bytes, Identification::Known(0)) else {
            return;
        };
        self.pair
            .on_packet(now, packet, is_marked, &self.regions, &mut self.memory);
        self.completions
            .extend(core::iter::from_fn(|| self.pair.poll_completion()));
    }

    pub(super) fn post(&mut self, request: SendRequest) {
        self.pair.post_send(request, &self.regions).unwrap();
    }

    pub(super) fn receive(&mut self, request: ReceiveRequest) {
        self.pair.post_receive(request, &self.regions).unwrap();
    }

    fn fill(&mut self, offset: usize, length: usize, seed: u8) -> Vec<u8> {
        let bytes = pattern(length, seed);
        self.memory[offset..offset + length].copy_from_slice(&bytes);
        bytes
    }
}

impl Pair {
    fn new(config: Config) -> Self {
        Self::with_psns(config, [0x12_3456, 0xab_cdef])
    }

    fn with_psns(config: Config, psns: [u32; 2]) -> Self {
        Self {
            now: Timestamp(1_000_000),
            ends: [A, B].map(|index| End::new(index, config, psns)),
            sent: Vec::new(),
        }
    }

    /// Lets all go that can go now, until nothing is left; time stands still.
    fn settle_with(&mut self, mut fate: impl FnMut(usize, &Packet<'_>) -> Fate) {
        for _ in 0..10_000 {
            let mut flying = Vec::new();
            for (from, end) in self.ends.iter_mut().enumerate() {
                flying.extend(end.transmit(self.now).into_iter().map(|bytes| Sent { from, bytes }));
            }
            if flying.is_empty() {
                for end in &mut self.ends {
                    end.completions
                        .extend(core::iter::from_fn(|| end.pair.poll_completion()));
                }
                return;
            }
            for sent in flying {
                let packet = decoded(&sent.bytes);
                match fate(sent.from, &packet) {
                    Fate::Arrive => self.deliver(&sent, false),
                    Fate::ArriveMarked => self.deliver(&sent, true),
                    Fate::Lose => {}
                }
                self.sent.push(sent);
            }
        }
        panic!("the ends go on for ever");
    }

    fn settle(&mut self) {
        self.settle_with(|_, _| Fate::Arrive);
    }

    fn deliver(&mut self, sent: &Sent, is_marked: bool) {
        let path = self.ends[sent.from].path;
        self.ends[1 - sent.from].take(self.now, path, &sent.bytes, is_marked);
    }

    /// Waits for the next timer of either end. `false`: there is none.
    fn wait(&mut self) -> bool {
        let timers = self.ends.iter().filter_map(|end| end.pair.poll_timeout());
        let Some(first) = timers.min() else { return false };
        self.now = self.now.max(first);
        true
    }

    /// Until nothing is left to do.
    fn finish_with(&mut self, mut fate: impl FnMut(usize, &Packet<'_>) -> Fate) {
        for _ in 0..10_000 {
            self.settle_with(&mut fate);
            if !self.wait() {
                return;
            }
        }
        panic!("the ends go on for ever");
    }

    fn finish(&mut self) {
        self.finish_with(|_, _| Fate::Arrive);
    }

    /// The opcodes that an end has sent.
    fn opcodes(&self, from: usize) -> Vec<wire::Opcode> {
        let sent = self.sent.iter().filter(|sent| sent.from == from);
        sent.map(|sent| decoded(&sent.bytes).opcode).collect()
    }

    fn failures(&self) -> [Option<Failure>; 2] {
        [A, B].map(|index| self.ends[index].pair.failure())
    }
}

/// What an end has been told of its requests.
fn requests(end: &End) -> Vec<(u64, Result<(), Failure>)> {
    let sends = end.completions.iter().filter_map(|completion| match *completion {
        Completion::Send { id, status } => Some((id, status)),
        Completion::Receive { .. } => None,
    });
    sends.collect()
}

/// What an end has been told of its receives.
fn receives(end: &End) -> Vec<(u64, Result<Received, Failure>)> {
    let receives = end.completions.iter().filter_map(|completion| match *completion {
        Completion::Receive { id, status } => Some((id, status)),
        Completion::Send { .. } => None,
    });
    receives.collect()
}

fn decoded(bytes: &[u8]) -> Packet<'_> {
    wire::decode(&bytes[..bytes.len() - ICRC_LENGTH]).expect("an end sends good packets")
}

fn attributes(index: usize, psns: [u32; 2]) -> Attributes {
    let qpns = [0x11, 0x22];
    Attributes {
        local_qpn: qpns[index],
        peer_qpn: qpns[1 - index],
        send_psn: psns[index],
        receive_psn: psns[1 - index],
    }
}

fn address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 9, 0, [1, 2][index]], wire::UDP_PORT))
}

/// Bytes that tell where they belong.
fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u32 * 31 + (at as u32 >> 8)).to_le_bytes()[0] ^ seed)
        .collect()
}

fn send(id: u64, length: usize) -> SendRequest {
    SendRequest {
        id,
        operation: Operation::Send { immediate: None },
        offset: OWN,
        length,
        is_signaled: true,
    }
}

/// Into the peer of `from`, `at` bytes into its reachable part.
fn write(from: usize, id: u64, at: usize, length: usize, immediate: Option<u32>) -> SendRequest {
    let to = remote(1 - from, at);
    SendRequest {
        operation: Operation::Write { to, immediate },
        ..send(id, length)
    }
}

fn read(from: usize, id: u64, at: usize, length: usize) -> SendRequest {
    let from = remote(1 - from, at);
    SendRequest {
        operation: Operation::Read { from },
        ..send(id, length)
    }
}

fn remote(index: usize, at: usize) -> Remote {
    Remote {
        address: ADDRESSES[index] + at as u64,
        key: KEYS[index],
    }
}

fn receive(id: u64, length: usize) -> ReceiveRequest {
    ReceiveRequest {
        id,
        offset: RECEIVES,
        length,
    }
}

/// Small packets, so that messages have several.
fn config() -> Config {
    Config {
        mtu: 256,
        ..Config::new(64, PART)
    }
}
