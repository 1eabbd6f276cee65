//! The network of the simulation, and what it does to packets.

use super::{Defect, Random, Simulation};
use crate::roce::wire::{self, Class, Packet};
use crate::roce::{ICRC_LENGTH, Identification};
use alloc::vec;
use alloc::vec::Vec;
use types::Timestamp;

/// Chances in a thousand of each fault, for a packet or a turn.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Faults {
    loss: u32,
    duplicate: u32,
    reorder: u32,
    corrupt: u32,
    truncate: u32,
    mark: u32,
    /// One of the past is delivered again.
    replay: u32,
    /// A packet that no end has sent, with a good check.
    forge: u32,
    /// The owner does not look after its receives.
    pub(super) slow: u32,
    /// Chances in ten thousand, each turn.
    pub(super) partition: u32,
    /// The owner asks for what it may not have, in ten thousand.
    pub(super) wrong_request: u32,
}

impl Faults {
    /// A mix in which each fault is absent, rare or frequent.
    pub(super) fn random(random: &mut Random) -> Self {
        let mut some = |rare: u32, frequent: u32| match random.below(4) {
            0 => frequent,
            1 => rare,
            _ => 0,
        };
        Self {
            loss: some(10, 200),
            duplicate: some(10, 200),
            reorder: some(10, 300),
            corrupt: some(10, 100),
            truncate: some(10, 100),
            mark: some(10, 300),
            replay: some(10, 200),
            forge: some(10, 100),
            slow: some(200, 950),
            partition: some(1, 20),
            wrong_request: some(1, 10),
        }
    }
}

impl Simulation {
    /// Takes a packet to one end, as badly as the faults say.
    pub(super) fn network_takes(&mut self, to: usize, bytes: Vec<u8>) {
        let faults = self.faults;
        if self.past.len() < 1_000 {
            self.past.push((to, bytes.clone()));
        }
        if self.random.chance(faults.replay, 1_000) {
            let (to, old) = self.past[self.random.index(self.past.len())].clone();
            self.deliver(to, old);
        }
        if self.random.chance(faults.forge, 1_000) {
            let forged = self.forge(to, &bytes);
            self.deliver(to, forged);
        }
        if self.random.chance(faults.duplicate, 1_000) {
            self.deliver(to, bytes.clone());
        }
        if self.cut_until[to] > self.now || self.random.chance(faults.loss, 1_000) {
            return;
        }
        let mut bytes = bytes;
        if self.random.chance(faults.truncate, 1_000) {
            let length = self.random.index(bytes.len());
            bytes.truncate(length);
        } else if self.random.chance(faults.corrupt, 1_000) {
            let place = self.random.index(bytes.len());
            bytes[place] ^= 1 + (self.random.below(255) as u8);
        }
        self.deliver(to, bytes);
    }

    fn deliver(&mut self, to: usize, bytes: Vec<u8>) {
        let mut delay = 3_000;
        if self.random.chance(self.faults.reorder, 1_000) {
            delay += self.random.below(200_000);
        }
        let is_marked = self.random.chance(self.faults.mark, 1_000);
        self.count += 1;
        self.network
            .insert((self.now + delay, self.count), (to, bytes, is_marked));
    }

    /// A packet that no end has sent, and that has to be harmless: for another queue pair, far ahead, far behind, an
    /// answer to nothing, or of no known kind.
    fn forge(&mut self, to: usize, real: &[u8]) -> Vec<u8> {
        let mut bytes = real[..real.len() - ICRC_LENGTH].to_vec();
        // What answers a forged packet must not be turned into an answer to a real one.
        let is_forged = bytes[9] & 0x60 != 0 && bytes[9] & 0x60 != 0x60;
        let choice = if is_forged { 0 } else { self.random.below(4) };
        match choice {
            0 => bytes[7] ^= 0x40,
            1 => bytes[9] ^= 0x20,
            2 => bytes[9] ^= 0x40,
            _ => bytes[0] = 0x60 + (self.random.below(0x20) as u8),
        }
        self.seal(to, &bytes)
    }

    fn seal(&self, to: usize, packet: &[u8]) -> Vec<u8> {
        let mut bytes = packet.to_vec();
        bytes.extend([0; ICRC_LENGTH]);
        self.owners[1 - to].path.seal(&mut bytes, packet.len());
        bytes
    }

    /// A packet reaches an end.
    pub(super) fn arrive(&mut self, to: usize, bytes: &[u8], is_marked: bool) {
        let path = self.owners[1 - to].path;
        let packet = match path.open(bytes, Identification::Known(0)) {
            Some(packet) => packet,
            None if self.defect == Defect::AnyIcrc && bytes.len() > 16 => &bytes[..bytes.len() - ICRC_LENGTH],
            None => return,
        };
        let packet = match wire::decode(packet) {
            Ok(decoded) if self.defect != Defect::None => self.spoil(to, decoded),
            _ => packet.to_vec(),
        };
        self.owners[to].take(Timestamp(self.now), &packet, is_marked);
    }

    /// A packet as an end takes it that has the defect.
    fn spoil(&self, to: usize, mut packet: Packet<'_>) -> Vec<u8> {
        let shape = packet.opcode.shape();
        let is_ours = packet.destination == self.owners[to].qpn();
        let expected = self.owners[to].pair.expected();
        let ahead = packet.psn.wrapping_sub(expected) & 0x00ff_ffff;
        let is_whole_send = shape.class == Class::Send && shape.is_first && shape.is_last;
        let zeros = &ZEROS[..packet.payload.len()];
        match self.defect {
            Defect::ImmediateFirst if shape.class == Class::Write && shape.has_immediate => packet.payload = zeros,
            Defect::AckAhead if shape.class == Class::Acknowledge => packet.psn = (packet.psn + 1) & 0x00ff_ffff,
            Defect::TwiceExecuted if is_ours && is_whole_send && ahead > 0x0080_0000 => packet.psn = expected,
            Defect::AheadExecuted if is_ours && is_whole_send && ahead < 100 => packet.psn = expected,
            Defect::AnyResponse if shape.class == Class::ReadResponse && shape.is_first && shape.is_last => {
                packet.payload = zeros;
            }
            _ => {}
        }
        let mut bytes = vec![0; 8_192];
        let length = packet.encode(&mut bytes);
        bytes.truncate(length);
        bytes
    }
}

/// In place of a payload.
static ZEROS: [u8; 512] = [0; 512];
