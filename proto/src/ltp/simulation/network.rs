//! The network of the simulation, and what it does to datagrams.

use super::{Random, Simulation};
use crate::ltp::wire::{self, FLAG_RETRANSMIT, Kind};
use crate::ltp::{HeaderForm, Redundancy};
use alloc::vec::Vec;

/// Chances in a thousand of each fault, for a datagram or a turn.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Faults {
    pub(super) loss: u32,
    /// Chance that a burst of losses begins.
    pub(super) burst: u32,
    pub(super) duplicate: u32,
    pub(super) reorder: u32,
    pub(super) corrupt: u32,
    pub(super) truncate: u32,
    /// A datagram comes back to its sender.
    pub(super) reflect: u32,
    /// One of the past is delivered again, to either end.
    pub(super) replay: u32,
    /// Foreign bytes, acknowledgements of what was never sent, requests for everything, credits of nobody.
    pub(super) forge: u32,
    /// The owner takes few events in a turn, or none.
    pub(super) slow: u32,
    /// With two paths: the second carries nothing, in a run of a thousand.
    pub(super) dead_path: u32,
    /// Chances in a hundred thousand, each turn.
    pub(super) partition: u32,
    pub(super) crash: u32,
    /// An end loses its machine: its journal falls back to what is durable.
    pub(super) machine: u32,
    pub(super) pause: u32,
    pub(super) clock_jump: u32,
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
            burst: some(2, 20),
            duplicate: some(10, 200),
            reorder: some(10, 300),
            corrupt: some(10, 100),
            truncate: some(10, 100),
            reflect: some(10, 100),
            replay: some(10, 200),
            forge: some(10, 100),
            slow: some(50, 800),
            dead_path: some(0, 1_000),
            partition: some(10, 50),
            crash: some(100, 500),
            machine: some(50, 300),
            pause: some(50, 200),
            clock_jump: some(50, 500),
        }
    }
}

impl Simulation {
    /// Takes a datagram to one end, in as many copies as the sender makes.
    pub(super) fn network_takes(&mut self, to: usize, datagram: Vec<u8>) {
        let past = &mut self.past[usize::from(is_establish(&datagram))];
        if past.len() < 1_000 {
            past.push(datagram.clone());
        }
        let redundancy = self.config.redundancy;
        for copy in 1..redundancy.copies() {
            let path = if redundancy == Redundancy::Paths {
                usize::from(copy)
            } else {
                0
            };
            self.path_takes(path, to, datagram.clone());
        }
        self.path_takes(0, to, datagram);
    }

    /// One copy, as badly as the faults say.
    fn path_takes(&mut self, path: usize, to: usize, datagram: Vec<u8>) {
        let faults = self.faults;
        if self.random.chance(faults.burst, 1_000) {
            let cut_until = &mut self.cut_until[path][to];
            *cut_until = (*cut_until).max(self.now + self.random.below(200_000));
        }
        if self.random.chance(faults.reflect, 1_000) {
            self.deliver(1 - to, datagram.clone());
        }
        if self.random.chance(faults.replay, 1_000) {
            let past = &self.past[usize::from(self.random.chance(500, 1_000))];
            if !past.is_empty() {
                let old = past[self.random.index(past.len())].clone();
                self.deliver(to, old);
            }
        }
        if self.random.chance(faults.forge, 1_000) {
            let flood = if self.random.chance(50, 1_000) { 100 } else { 1 };
            for _ in 0..flood {
                let forged = self.forge(&datagram);
                self.deliver(to, forged);
            }
        }
        if self.random.chance(faults.duplicate, 1_000) {
            self.deliver(to, datagram.clone());
        }
        let is_dead = path == 1 && self.random.chance(faults.dead_path, 1_000);
        if is_dead || self.cut_until[path][to] > self.now || self.random.chance(faults.loss, 1_000) {
            return;
        }
        let datagram = if self.random.chance(faults.truncate, 1_000) {
            let length = self.random.index(datagram.len());
            datagram[..length].to_vec()
        } else if self.random.chance(faults.corrupt, 1_000) {
            match self.corrupt(datagram) {
                Some(corrupted) => corrupted,
                None => return,
            }
        } else {
            datagram
        };
        self.deliver(to, datagram);
    }

    /// Flips bits of one byte. The carrier's checksum finds them, except where the protocol itself has to: in the tag,
    /// the length and the unused flags, and anywhere when there is a key.
    fn corrupt(&mut self, mut datagram: Vec<u8>) -> Option<Vec<u8>> {
        let place = self.random.index(datagram.len());
        let bits = 1 + self.random.below(255).to_le_bytes()[0] % 255;
        let is_handshake = wire::is_handshake(&datagram);
        let before = internet_checksum(&datagram);
        datagram[place] ^= bits;
        let passes = match (self.config.header, place) {
            _ if self.config.key.is_some() => true,
            (HeaderForm::Compact, 0 | 1 | 6) if !is_handshake => true,
            (HeaderForm::Compact, 7) if !is_handshake => bits & !0x07 == 0,
            (HeaderForm::Full, 0..=3 | 12..=13) => true,
            (HeaderForm::Full, 15) => bits & !FLAG_RETRANSMIT != 0,
            _ => false,
        };
        (passes || internet_checksum(&datagram) == before).then_some(datagram)
    }

    /// A datagram that no end has sent.
    fn forge(&mut self, real: &[u8]) -> Vec<u8> {
        let form = self.config.header;
        // Behind the tag: the number, the acknowledgement, and the rest of the header.
        let (sequence, ack, rest) = match form {
            HeaderForm::Full => (4..8, 8..12, 12),
            HeaderForm::Compact => (2..4, 4..6, 6),
        };
        // Far from all that is in flight, and yet ahead of it.
        let far = match form {
            HeaderForm::Full => (1 << 20) + self.random.below(1 << 30),
            HeaderForm::Compact => (1 << 13) + self.random.below(1 << 14),
        };
        let mut forged = real.to_vec();
        let mut add = |field: core::ops::Range<usize>| {
            let field = &mut forged[field];
            let mut carry = far;
            for byte in field {
                carry += u64::from(*byte);
                [*byte, ..] = carry.to_le_bytes();
                carry >>= 8;
            }
        };
        let choice = if wire::is_handshake(real) {
            4
        } else {
            self.random.below(5)
        };
        match choice {
            // Acknowledges what was never sent.
            0 => add(ack),
            // Numbers far beyond the window.
            1 => add(sequence),
            // Asks for everything, or grants as much.
            2 | 3 => {
                let serial = 1 + self.random.below(10_000);
                forged.truncate(rest);
                if choice == 2 {
                    forged.extend(form_rest(form, Kind::Nak, 32));
                    let first = u16::from_le_bytes([forged[ack.start], forged[ack.start + 1]]);
                    forged.extend(serial.to_le_bytes());
                    forged.extend(u32::from(first.wrapping_sub(20)).to_le_bytes());
                    forged.extend([0; 4]);
                    forged.extend([0xff; 16]);
                } else {
                    forged.extend(form_rest(form, Kind::Credits, 16));
                    // Without a key, whoever knows the session can grant what he likes. Not under a serial that is spent.
                    let serial = if self.config.key.is_some() { serial } else { 0 };
                    forged.extend(serial.to_le_bytes());
                    forged.extend([0xff; 8]);
                }
                if self.config.key.is_some() {
                    forged.extend([0; wire::MAC_LENGTH]);
                }
            }
            _ => forged
                .iter_mut()
                .for_each(|byte| *byte = self.random.next().to_le_bytes()[0]),
        }
        forged
    }

    fn deliver(&mut self, to: usize, datagram: Vec<u8>) {
        let mut delay = 3_000;
        if self.random.chance(self.faults.reorder, 1_000) {
            delay += self.random.below(200_000);
        }
        self.count += 1;
        self.network.insert((self.now + delay, self.count), (to, datagram));
    }
}

/// The end of a header that says this, behind tag and numbers.
fn form_rest(form: HeaderForm, kind: Kind, length: u16) -> Vec<u8> {
    let [low, high] = length.to_le_bytes();
    match form {
        HeaderForm::Full => [low, high, kind as u8, 0].to_vec(),
        HeaderForm::Compact => [low, high | (kind as u8) << 4].to_vec(),
    }
}

fn is_establish(datagram: &[u8]) -> bool {
    wire::is_handshake(datagram) && datagram[14] == Kind::Establish as u8
}

/// The checksum of UDP (RFC 1071).
fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum = bytes.chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    });
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap()
}
