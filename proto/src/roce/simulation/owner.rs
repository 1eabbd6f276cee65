//! One end and its owner, who works through a plan.

use super::{Defect, Random, Violation};
use crate::roce::wire::UDP_PORT;
use crate::roce::{
    Access, Attributes, Completion, Config, Operation, Path, QueuePair, ReceiveRequest, Received, Region, Regions,
    Remote, SendRequest,
};
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;
use types::Timestamp;

/// See the file's head.
pub(super) struct Owner {
    index: usize,
    pub(super) pair: QueuePair,
    regions: Regions,
    memory: Vec<u8>,
    /// To the peer.
    pub(super) path: Path,
    /// What it does, in order.
    plan: Vec<Planned>,
    /// Those of the peer's plan that use up a receive here.
    awaited: Vec<Planned>,
    /// The next of the plan to be posted.
    next: usize,
    /// Requests posted in all: each has the next place for its bytes.
    outgoing: usize,
    /// Where that is, of each step.
    places: Vec<usize>,
    /// Of the plan, how many are known to be done.
    pub(super) done: usize,
    /// Messages that the peer had when the connection began: they are not sent again.
    peer_had: usize,
    /// Once some are left out, the end of each other is wanted.
    signals_all: bool,
    /// Messages of the peer that came with a receive.
    pub(super) received: usize,
    /// Receives posted since the connection began.
    posted: u64,
    /// Of those, used up.
    used: u64,
}

/// One step of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Planned {
    kind: Kind,
    length: usize,
    seed: u8,
    /// Of those that use up a receive: which, counted from 0.
    receive: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Send,
    SendImmediate,
    WriteImmediate,
    /// To the board, which the last write wins.
    Write,
    Read,
}

/// Longest message, bytes.
pub(super) const MESSAGE_MAX: usize = 900;
/// Messages that may be on their way: each has a place of its own at either end.
const PLACES: usize = 16;
const PLACE: usize = 1_024;

// The arena: what the peer may write and read, a guard, and what is this end's alone.
const SLOTS: usize = 0;
const BOARD: usize = SLOTS + PLACES * PLACE;
const FIXED: usize = BOARD + PLACE;
const REACHED: usize = FIXED + PLACE;
const GUARD: usize = REACHED;
const OUTGOING: usize = GUARD + PLACE;
const INCOMING: usize = OUTGOING + 2 * PLACES * PLACE;
const ARENA: usize = INCOMING + PLACES * PLACE;

/// The name of a request that the peer will refuse.
const WRONG: u64 = u64::MAX;
const KEY: u32 = 0x600d_600d;
const ADDRESS: u64 = 0x7000_0000;

impl Owner {
    /// Both owners are given the seed of the plans.
    pub(super) fn new(index: usize, config: Config, seed: u64, defect: Defect) -> Self {
        let mut memory = vec![0; ARENA];
        memory[FIXED..REACHED].copy_from_slice(&fixed(index));
        let mut regions = Regions::new(1, ARENA);
        let beyond = if defect == Defect::WideRegion { PLACE } else { 0 };
        let region = Region {
            remote_key: KEY,
            address: ADDRESS,
            offset: 0,
            length: REACHED + beyond,
            access: Access {
                remote_read: true,
                remote_write: true,
            },
        };
        regions.register(region).unwrap();
        let address = |index| SocketAddr::from(([10, 9, 0, [1, 2][index]], UDP_PORT));
        let plan = |index| plan(&mut Random(seed + index as u64));
        Self {
            index,
            pair: QueuePair::new(config).unwrap(),
            regions,
            memory,
            path: Path::new(address(index), address(1 - index)),
            plan: plan(index),
            awaited: plan(1 - index)
                .into_iter()
                .filter(|step| step.receive.is_some())
                .collect(),
            next: 0,
            outgoing: 0,
            places: vec![0; plan(index).len()],
            done: 0,
            peer_had: 0,
            signals_all: false,
            received: 0,
            posted: 0,
            used: 0,
        }
    }

    pub(super) fn qpn(&self) -> u32 {
        self.pair.attributes().expect("it is connected").local_qpn
    }

    pub(super) fn is_done(&self, peer_received: usize) -> bool {
        let messages = self.plan.iter().filter(|step| step.receive.is_some()).count();
        self.done == self.plan.len() && peer_received == messages
    }

    /// A new connection: goes on with what is not done, but for messages that the peer has.
    pub(super) fn connect(&mut self, number: u32, psns: [u32; 2], peer_had: usize) {
        let qpn = |index: usize| 2 * number + index as u32;
        self.pair.connect(Attributes {
            local_qpn: qpn(self.index),
            peer_qpn: qpn(1 - self.index),
            send_psn: psns[self.index],
            receive_psn: psns[1 - self.index],
        });
        self.next = self.done;
        self.peer_had = peer_had;
        self.signals_all = number > 1;
        (self.posted, self.used) = (0, 0);
    }

    /// Takes in a packet.
    pub(super) fn take(&mut self, now: Timestamp, packet: &[u8], is_marked: bool) {
        self.pair
            .on_packet(now, packet, is_marked, &self.regions, &mut self.memory);
    }

    /// Looks at what has ended, posts what there is room for, and gives what is to be sent. `peer_received`: the peer's
    /// messages are taken, and their places free.
    pub(super) fn turn(
        &mut self,
        now: Timestamp,
        peer_received: usize,
        is_slow: bool,
        is_wrong: bool,
    ) -> Result<Vec<Vec<u8>>, Violation> {
        self.complete()?;
        while !is_slow && self.posted - self.used < PLACES as u64 && self.pair.receive_room() > 0 {
            let request = ReceiveRequest {
                id: self.posted,
                offset: INCOMING + place_of(self.posted) * PLACE,
                length: MESSAGE_MAX,
            };
            if self.pair.post_receive(request, &self.regions).is_err() {
                break;
            }
            self.posted += 1;
        }
        if is_wrong && self.pair.send_room() > 0 {
            let _ = self.pair.post_send(wrong(now), &self.regions);
        }
        self.post(peer_received);
        let mut packets = Vec::new();
        let mut out = [0; 2_048];
        while let Some(length) = self.pair.poll_transmit(now, &self.memory, &mut out) {
            let length = self.path.seal(&mut out, length);
            packets.push(out[..length].to_vec());
        }
        if self.memory[GUARD..OUTGOING].iter().any(|&byte| byte != 0) {
            return Err(Violation::Guard { end: self.index });
        }
        Ok(packets)
    }

    fn post(&mut self, peer_received: usize) {
        while let Some(&step) = self.plan.get(self.next)
            && self.pair.send_room() > 0
        {
            if step.receive.is_some_and(|message| message >= peer_received + PLACES) {
                break;
            }
            if !self.is_left_out(self.next) {
                let request = self.request(step);
                if self.pair.post_send(request, &self.regions).is_err() {
                    break;
                }
            }
            self.next += 1;
        }
        while self.done < self.next && self.is_left_out(self.done) {
            self.done += 1;
        }
    }

    fn request(&mut self, step: Planned) -> SendRequest {
        let offset = OUTGOING + self.outgoing % (2 * PLACES) * PLACE;
        self.outgoing += 1;
        self.places[self.next] = offset;
        let message = step.receive.unwrap_or(0);
        let remote = |offset: usize| Remote {
            address: ADDRESS + offset as u64,
            key: KEY,
        };
        let operation = match step.kind {
            Kind::Send => Operation::Send { immediate: None },
            Kind::SendImmediate => Operation::Send {
                immediate: Some(immediate(message)),
            },
            Kind::WriteImmediate => Operation::Write {
                to: remote(SLOTS + message % PLACES * PLACE),
                immediate: Some(immediate(message)),
            },
            Kind::Write => Operation::Write {
                to: remote(BOARD),
                immediate: None,
            },
            Kind::Read => Operation::Read { from: remote(FIXED) },
        };
        let bytes = pattern(step.length, step.seed);
        self.memory[offset..offset + step.length].copy_from_slice(&bytes);
        SendRequest {
            id: self.next as u64,
            operation,
            offset,
            length: step.length,
            is_signaled: self.is_signaled(self.next),
        }
    }

    fn is_signaled(&self, number: usize) -> bool {
        self.signals_all || number % 4 == 3 || self.plan[number].kind == Kind::Read || number + 1 == self.plan.len()
    }

    /// Looks at what has ended.
    pub(super) fn complete(&mut self) -> Result<(), Violation> {
        while let Some(completion) = self.pair.poll_completion() {
            match completion {
                Completion::Send { id, status: Ok(()) } if id != WRONG => self.on_done(id)?,
                Completion::Receive {
                    id,
                    status: Ok(received),
                } => {
                    self.used += 1;
                    self.on_received(id, received)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn on_done(&mut self, id: u64) -> Result<(), Violation> {
        let number = id as usize;
        let expected = (self.done..self.next).find(|&number| self.is_signaled(number) && !self.is_left_out(number));
        if expected != Some(number) {
            return Err(Violation::Completion {
                end: self.index,
                expected: expected.unwrap_or(0) as u64,
                given: id,
            });
        }
        self.done = number + 1;
        let Planned { kind, length, .. } = self.plan[number];
        let offset = self.places[number];
        if kind == Kind::Read && self.memory[offset..offset + length] != fixed(1 - self.index)[..length] {
            return Err(Violation::Read {
                end: self.index,
                number: id,
            });
        }
        Ok(())
    }

    fn is_left_out(&self, number: usize) -> bool {
        self.plan[number].receive.is_some_and(|message| message < self.peer_had)
    }

    fn on_received(&mut self, id: u64, received: Received) -> Result<(), Violation> {
        let number = self.received;
        let is_expected = self.awaited.get(number).is_some_and(|step| {
            let is_write = step.kind == Kind::WriteImmediate;
            let offset = if is_write {
                SLOTS + number % PLACES * PLACE
            } else {
                INCOMING + place_of(id) * PLACE
            };
            let expected = Received {
                length: step.length,
                is_write,
                immediate: (step.kind != Kind::Send).then(|| immediate(number)),
            };
            received == expected && self.memory[offset..offset + step.length] == pattern(step.length, step.seed)
        });
        if !is_expected {
            return Err(Violation::Message {
                end: self.index,
                number,
            });
        }
        self.received += 1;
        Ok(())
    }

    /// What its writes without immediate leave at the peer.
    pub(super) fn board_at_the_end(&self) -> Vec<u8> {
        let mut board = vec![0; PLACE];
        for step in self.plan.iter().filter(|step| step.kind == Kind::Write) {
            board[..step.length].copy_from_slice(&pattern(step.length, step.seed));
        }
        board
    }

    pub(super) fn check_board(&self, expected: &[u8]) -> Result<(), Violation> {
        if self.memory[BOARD..FIXED] == *expected {
            Ok(())
        } else {
            Err(Violation::Board { end: self.index })
        }
    }
}

fn plan(random: &mut Random) -> Vec<Planned> {
    let mut messages = 0;
    let count = 50 + random.index(300);
    let mut step = || {
        let kinds = [
            Kind::Send,
            Kind::SendImmediate,
            Kind::WriteImmediate,
            Kind::Write,
            Kind::Read,
        ];
        let kind = kinds[random.index(5)];
        let is_message = !matches!(kind, Kind::Write | Kind::Read);
        messages += usize::from(is_message);
        Planned {
            kind,
            length: [random.index(MESSAGE_MAX), random.index(64), 1][random.index(3)],
            seed: random.below(256) as u8,
            receive: is_message.then(|| messages - 1),
        }
    };
    (0..count).map(|_| step()).collect()
}

/// A request that the peer refuses: under a key that it has not given, or past the end of its region.
fn wrong(now: Timestamp) -> SendRequest {
    let (address, key) = if now.0.is_multiple_of(2) {
        (ADDRESS, KEY + 1)
    } else {
        (ADDRESS + GUARD as u64, KEY)
    };
    SendRequest {
        id: WRONG,
        operation: Operation::Write {
            to: Remote { address, key },
            immediate: None,
        },
        offset: FIXED,
        length: 64,
        is_signaled: true,
    }
}

/// What a peer finds where nobody writes.
fn fixed(index: usize) -> Vec<u8> {
    pattern(PLACE, 200 + index as u8)
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ seed | 1).collect()
}

fn immediate(message: usize) -> u32 {
    message as u32 ^ 0x5a5a_0000
}

fn place_of(receive: u64) -> usize {
    receive as usize % PLACES
}
