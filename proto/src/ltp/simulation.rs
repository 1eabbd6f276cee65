//! Two ends, a bad network and virtual time: exactly once and in order, whatever happens.
//!
//! One seed makes everything: which faults, when, and what the owners do. A failure prints its seed;
//! `LTP_SEED=n cargo test -p proto ltp::simulation` repeats it alone, `LTP_SEEDS=n` runs that many.
//!
//! Safety and liveness are two runs. Safety: under faults that never end, nothing wrong is ever handed out. Liveness:
//! once the faults end, everything that was sent arrives and is acknowledged, and then the network is quiet.
//!
//! Each owner keeps a model journal: what it numbered (of which only the written part survives a crash), and how many
//! messages it was handed (which it journals at once, before it acknowledges).

use super::wire::{FLAG_RETRANSMIT, HEADER_LENGTH, Kind};
use super::{Config, Connection, Counters, DownReason, Event, Refusal, Resume, Role};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use std::{env, eprintln};
use types::{SequenceNumber, SessionId, Timestamp};

extern crate std;

/// A mistake built into one end, to see that the simulation notices.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Defect {
    #[default]
    None,
    /// Takes datagrams of any session for its own.
    AnyTag,
    /// Acknowledges what the peer has sent, whether it arrived or not.
    AckSeen,
    /// Acknowledges what has arrived, whether the owner has it or not.
    AckArrived,
    /// Lets messages leave before the journal has them.
    NoGate,
}

/// What must not happen.
#[allow(dead_code, reason = "the fields are for whoever reads a failure")]
#[derive(Debug)]
enum Violation {
    /// A message came out of turn.
    Number { end: usize, expected: u64, given: u64 },
    /// A message is not the one that was sent under its number.
    Content { end: usize, number: u64 },
    /// A message left before the sender's journal had it.
    Ungated { end: usize, number: u64 },
    /// One end believes that the other has lost messages.
    Refused { end: usize, reason: DownReason },
    /// The faults are over, and yet not everything arrives.
    Stuck {
        received: [u64; 2],
        sent: [u64; 2],
        up: [bool; 2],
    },
    /// Everything has arrived, and yet something is transmitted again.
    Restless { retransmits: u64 },
}

/// Chances in a thousand of each fault, for a datagram or a turn.
#[derive(Clone, Copy, Default, Debug)]
struct Faults {
    loss: u32,
    /// Chance that a burst of losses begins.
    burst: u32,
    duplicate: u32,
    reorder: u32,
    corrupt: u32,
    truncate: u32,
    /// A datagram comes back to its sender.
    reflect: u32,
    /// One of the past is delivered again, to either end.
    replay: u32,
    /// Foreign bytes, acknowledgements of what was never sent, requests for everything.
    forge: u32,
    /// The owner takes few events in a turn, or none.
    slow: u32,
    /// Chances in a hundred thousand, each turn.
    partition: u32,
    crash: u32,
    pause: u32,
    clock_jump: u32,
}

/// One end and its owner.
struct End {
    role: Role,
    connection: Option<Connection>,
    defect: Defect,
    /// Messages numbered, from [`Simulation::first`] on.
    journal: Vec<Vec<u8>>,
    /// How many of them are written.
    written: usize,
    /// How many messages the owner was handed.
    received: u64,
    inbox: Vec<Vec<u8>>,
    /// Messages to send in all, and when the next one comes up.
    target: usize,
    next_send_at: u64,
    /// No turn before.
    asleep_until: u64,
    wake_at: u64,
    /// Offset of its clock from true time.
    clock: u64,
}

struct Simulation {
    random: Random,
    faults: Faults,
    now: u64,
    first: u64,
    ends: [End; 2],
    /// Datagrams under way, by time of arrival and a count that keeps their order.
    network: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Until when each direction loses everything.
    cut_until: [u64; 2],
    /// Datagrams of the past; those that would establish a session apart, because they are few.
    past: [Vec<Vec<u8>>; 2],
    /// What the incarnations that crashed had counted.
    counters: Vec<Counters>,
}

impl Simulation {
    fn new(seed: u64, defect: Defect) -> Self {
        let mut random = Random(seed);
        let first = if random.chance(500, 1_000) {
            (1 << 32) - random.below(200)
        } else {
            1
        };
        let faults = Faults::random(&mut random);
        let target = 100 + random.index(3_000);
        let ends = [Role::Initiator, Role::Acceptor].map(|role| End {
            role,
            connection: None,
            defect,
            journal: Vec::new(),
            written: 0,
            received: 0,
            inbox: Vec::new(),
            target,
            next_send_at: START,
            asleep_until: START + random.below(300_000),
            wake_at: START,
            clock: 0,
        });
        Self {
            random,
            faults,
            now: START,
            first,
            ends,
            network: BTreeMap::new(),
            count: 0,
            cut_until: [0; 2],
            past: [Vec::new(), Vec::new()],
            counters: Vec::new(),
        }
    }

    /// Runs under faults for up to so many milliseconds.
    fn run_faulty(&mut self, longest_ms: u64) -> Result<(), Violation> {
        let end = self.now + 10_000_000 + self.random.below(longest_ms * 1_000_000);
        self.run(end, |_| false)
    }

    /// Ends the faults, and runs until all is quiet.
    fn run_healed(&mut self) -> Result<(), Violation> {
        self.faults = Faults::default();
        self.cut_until = [0; 2];
        let limit = self.now + 3_000_000_000;
        self.run(limit, Self::is_done)?;
        if !self.is_done() {
            return Err(Violation::Stuck {
                received: [0, 1].map(|end| self.ends[end].received),
                sent: [0, 1].map(|end| self.ends[end].journal.len() as u64),
                up: [0, 1].map(|end| self.ends[end].connection.as_ref().is_some_and(Connection::is_up)),
            });
        }
        let before = self.retransmits();
        self.run(self.now + 50_000_000, |_| false)?;
        let retransmits = self.retransmits() - before;
        if retransmits > 0 {
            return Err(Violation::Restless { retransmits });
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        [0, 1].iter().all(|&end| {
            let (this, other) = (&self.ends[end], &self.ends[1 - end]);
            let connection = this.connection.as_ref();
            this.journal.len() == this.target
                && other.received == this.target as u64
                && connection.is_some_and(|connection| connection.is_up() && connection.room() == WINDOW)
        })
    }

    fn retransmits(&self) -> u64 {
        self.counters().map(|counters| counters.retransmits).sum()
    }

    /// What all incarnations have counted.
    fn counters(&self) -> impl Iterator<Item = Counters> {
        let alive = self.ends.iter().filter_map(|end| end.connection.as_ref());
        self.counters.iter().copied().chain(alive.map(Connection::counters))
    }

    fn run(&mut self, until: u64, done: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        while !done(self) {
            let arrival = self.network.first_key_value().map_or(u64::MAX, |(&(at, _), _)| at);
            let wake = self.ends.iter().map(|end| end.wake_at.max(end.asleep_until)).min();
            let next = arrival.min(wake.unwrap_or(u64::MAX)).max(self.now);
            if next > until {
                self.now = until;
                return Ok(());
            }
            self.now = next;
            while let Some(entry) = self.network.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, datagram) = entry.remove();
                let end = &mut self.ends[to];
                if end.connection.is_some() {
                    end.inbox.push(datagram);
                    end.wake_at = self.now;
                }
            }
            for index in 0..2 {
                let end = &self.ends[index];
                if end.wake_at <= self.now && end.asleep_until <= self.now {
                    self.turn(index)?;
                }
            }
        }
        Ok(())
    }

    /// One turn of an owner: receive, take events, send, transmit; or a fault of its own.
    fn turn(&mut self, index: usize) -> Result<(), Violation> {
        if self.disturb(index) {
            return Ok(());
        }
        let now = self.now;
        let first = self.first;
        let end = &mut self.ends[index];
        let clock = Timestamp(now.wrapping_add(end.clock));
        let connection = end.connection.get_or_insert_with(|| {
            let next_send = SequenceNumber(first + end.written as u64);
            let next_receive = SequenceNumber(first + end.received);
            let resume = Resume {
                next_send,
                next_receive,
            };
            let mut connection = Connection::new(end.role, config(), now, resume);
            connection.defect = end.defect;
            let kept = end.written.saturating_sub(WINDOW);
            for (index, message) in end.journal.iter().enumerate().skip(kept) {
                connection.restore(SequenceNumber(first + index as u64), message);
            }
            connection
        });
        for datagram in end.inbox.drain(..) {
            connection.on_datagram(clock, &datagram);
        }
        let patience = if self.random.chance(self.faults.slow, 1_000) {
            self.random.index(3)
        } else {
            usize::MAX
        };
        let more = self.take_events(index, patience)?;
        self.send_messages(index);

        let end = &mut self.ends[index];
        if self.random.chance(700, 1_000) {
            end.written = end.journal.len();
        }
        let mut datagrams = Vec::new();
        let Some(connection) = &mut end.connection else {
            return Ok(());
        };
        let mut out = [0; 1_472];
        while let Some(length) = connection.poll_transmit(clock, end.written as u64, &mut out) {
            datagrams.push(out[..length].to_vec());
        }
        let timeout = connection.poll_timeout().map_or(u64::MAX, |at| now + at.since(clock).0);
        let sooner = if more || end.written < end.journal.len() {
            now + 2_000
        } else {
            u64::MAX
        };
        // With a full ring nothing is planned: an acknowledgement wakes it.
        let planned = if end.journal.len() < end.target && connection.room() > 0 {
            end.next_send_at.max(now + 1_000)
        } else {
            u64::MAX
        };
        // A turn takes time: a timer that is due at once is due a little later.
        end.wake_at = timeout.max(now + 100).min(sooner).min(planned);
        for datagram in datagrams {
            self.network_takes(1 - index, datagram);
        }
        Ok(())
    }

    /// Takes events, at most `patience`, and checks each message. `true`: there may be more.
    fn take_events(&mut self, index: usize, patience: usize) -> Result<bool, Violation> {
        let mut buffer = [0; MESSAGE_MAX];
        for _ in 0..patience {
            let end = &mut self.ends[index];
            let Some(event) = end
                .connection
                .as_mut()
                .and_then(|connection| connection.poll_event(&mut buffer))
            else {
                return Ok(false);
            };
            match event {
                Event::Message { sequence, length } => {
                    let expected = self.first + end.received;
                    if sequence.0 != expected {
                        let given = sequence.0;
                        return Err(Violation::Number {
                            end: index,
                            expected,
                            given,
                        });
                    }
                    let place = usize::try_from(end.received).unwrap();
                    end.received += 1;
                    let sender = &self.ends[1 - index];
                    let number = sequence.0;
                    if sender.journal.get(place).map(Vec::as_slice) != Some(&buffer[..length]) {
                        return Err(Violation::Content { end: index, number });
                    }
                    if place >= sender.written {
                        return Err(Violation::Ungated { end: index, number });
                    }
                }
                Event::Down { reason } => match reason {
                    DownReason::Refused(refusal) | DownReason::RefusedByPeer(refusal) if !is_transient(refusal) => {
                        return Err(Violation::Refused { end: index, reason });
                    }
                    _ => {}
                },
                Event::Up { .. } | Event::Credits { .. } => {}
            }
        }
        Ok(true)
    }

    /// Numbers and journals the messages whose time has come.
    fn send_messages(&mut self, index: usize) {
        let end = &mut self.ends[index];
        let Some(connection) = &mut end.connection else {
            return;
        };
        while end.journal.len() < end.target && end.next_send_at <= self.now && connection.room() > 0 {
            let length = 1 + self.random.index(MESSAGE_MAX);
            let message: Vec<u8> = (0..length).map(|_| self.random.next().to_le_bytes()[0]).collect();
            let number = connection.send(&message, end.journal.len() as u64 + 1);
            assert_eq!(number.0, self.first + end.journal.len() as u64);
            end.journal.push(message);
            if self.random.chance(600, 1_000) {
                end.next_send_at = self.now + self.random.below(100_000);
            }
        }
    }

    /// A fault of the end itself. `true`: it takes no turn now.
    fn disturb(&mut self, index: usize) -> bool {
        let faults = self.faults;
        if self.random.chance(faults.clock_jump, 100_000) {
            let jump = self.random.below(2_000_000_000);
            let forward = self.random.chance(500, 1_000);
            let clock = &mut self.ends[index].clock;
            *clock = if forward {
                clock.wrapping_add(jump)
            } else {
                clock.wrapping_sub(jump)
            };
        }
        if self.random.chance(faults.partition, 100_000) {
            self.cut_until[index] = self.now + self.random.below(60_000_000);
            if self.random.chance(500, 1_000) {
                self.cut_until[1 - index] = self.cut_until[index];
            }
        }
        if self.random.chance(faults.crash, 100_000) {
            self.crash(index);
            if self.random.chance(300, 1_000) {
                self.crash(1 - index);
            }
            return true;
        }
        if self.random.chance(faults.pause, 100_000) {
            self.ends[index].asleep_until = self.now + 8_000_000;
            return true;
        }
        false
    }

    /// Kills an end; its next turn starts it anew from what is written.
    fn crash(&mut self, index: usize) {
        let end = &mut self.ends[index];
        self.counters
            .extend(end.connection.take().map(|connection| connection.counters()));
        end.inbox.clear();
        end.journal.truncate(end.written);
        end.asleep_until = self.now + 1 + self.random.below(3_000_000);
        end.wake_at = end.asleep_until;
    }

    /// Takes a datagram to one end, as badly as the faults say.
    fn network_takes(&mut self, to: usize, datagram: Vec<u8>) {
        let faults = self.faults;
        let past = &mut self.past[usize::from(datagram[KIND_AT] == Kind::Establish as u8)];
        if past.len() < 1_000 {
            past.push(datagram.clone());
        }
        if self.random.chance(faults.burst, 1_000) {
            self.cut_until[to] = self.cut_until[to].max(self.now + self.random.below(200_000));
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
            let forged = self.forge(&datagram);
            self.deliver(to, forged);
        }
        if self.random.chance(faults.duplicate, 1_000) {
            self.deliver(to, datagram.clone());
        }
        if self.cut_until[to] > self.now || self.random.chance(faults.loss, 1_000) {
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
    /// the length and the unused flags.
    fn corrupt(&mut self, mut datagram: Vec<u8>) -> Option<Vec<u8>> {
        let place = self.random.index(datagram.len());
        let bits = 1 + self.random.below(255).to_le_bytes()[0] % 255;
        let before = internet_checksum(&datagram);
        datagram[place] ^= bits;
        let passes = match place {
            0..=3 | 12..=13 => true,
            15 => bits & !FLAG_RETRANSMIT != 0,
            _ => internet_checksum(&datagram) == before,
        };
        passes.then_some(datagram)
    }

    /// A datagram that no end has sent.
    fn forge(&mut self, real: &[u8]) -> Vec<u8> {
        let mut forged = real.to_vec();
        let far = (1 << 20) + u32::try_from(self.random.below(1 << 30)).unwrap();
        let add = |forged: &mut [u8], at: Range<usize>| {
            let field = &mut forged[at];
            let value = u32::from_le_bytes((&*field).try_into().unwrap());
            field.copy_from_slice(&value.wrapping_add(far).to_le_bytes());
        };
        match self.random.below(4) {
            // Acknowledges what was never sent.
            0 => add(&mut forged, 8..12),
            // Numbers far beyond the window.
            1 => add(&mut forged, 4..8),
            // Asks for everything.
            2 => {
                forged.truncate(HEADER_LENGTH);
                forged[12..16].copy_from_slice(&[32, 0, Kind::Nak as u8, 0]);
                let first = u32::from_le_bytes(forged[8..12].try_into().unwrap()).wrapping_sub(20);
                forged.extend((1 + self.random.below(10_000)).to_le_bytes());
                forged.extend(first.to_le_bytes());
                forged.extend([0; 4]);
                forged.extend([0xff; 16]);
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

impl Faults {
    /// A mix in which each fault is absent, rare or frequent.
    fn random(random: &mut Random) -> Self {
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
            partition: some(10, 50),
            crash: some(100, 500),
            pause: some(50, 200),
            clock_jump: some(50, 500),
        }
    }
}

/// Refusals that a new attempt gets over.
fn is_transient(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::StaleEpoch { .. } | Refusal::UnknownNegotiation)
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

fn config() -> Config {
    Config {
        dead_after: 4,
        ..Config::new(SessionId(7), WINDOW, MESSAGE_MAX)
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    #[allow(clippy::cast_possible_truncation, reason = "the rest is below a usize")]
    fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    fn chance(&mut self, chances: u32, of: u64) -> bool {
        chances > 0 && self.below(of) < u64::from(chances)
    }
}

/// Where a datagram has its kind.
const KIND_AT: usize = 14;

const WINDOW: usize = 64;
const MESSAGE_MAX: usize = 64;
const START: u64 = 1_700_000_000_000_000_000;

/// Seeds to run: one from the environment, or the first of all.
fn seeds(usual: u64) -> Range<u64> {
    let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
    match number("LTP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LTP_SEEDS").unwrap_or(usual),
    }
}

fn safety(seed: u64, defect: Defect) -> Result<(), Violation> {
    Simulation::new(seed, defect).run_faulty(600)
}

fn liveness(seed: u64, defect: Defect) -> Result<Simulation, Violation> {
    let mut simulation = Simulation::new(seed, defect);
    simulation.run_faulty(150)?;
    simulation.run_healed()?;
    Ok(simulation)
}

#[test]
fn nothing_wrong_is_handed_out_whatever_the_network_and_the_ends_do() {
    for seed in seeds(500) {
        if let Err(violation) = safety(seed, Defect::None) {
            panic!("LTP_SEED={seed}: {violation:?}");
        }
    }
}

#[test]
fn everything_arrives_once_the_faults_end() {
    for seed in seeds(500) {
        if let Err(violation) = liveness(seed, Defect::None) {
            panic!("LTP_SEED={seed}: {violation:?}");
        }
    }
}

#[test]
fn every_way_of_going_wrong_is_walked() {
    let mut counters = Vec::new();
    let mut interrupted = 0;
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, Defect::None);
        simulation.run_faulty(150).unwrap();
        interrupted += u32::from(!simulation.is_done());
        simulation.run_healed().unwrap();
        counters.extend(simulation.counters());
    }
    let sum = |count: fn(&Counters) -> u64| counters.iter().map(count).sum::<u64>();
    let walked = [
        ("messages", sum(|counters| counters.messages_received)),
        ("retransmits", sum(|counters| counters.retransmits)),
        ("spurious retransmits", sum(|counters| counters.retransmits_spurious)),
        ("timeouts", sum(|counters| counters.timeouts)),
        ("naks", sum(|counters| counters.naks_received)),
        ("duplicates", sum(|counters| counters.duplicates)),
        ("malformed", sum(|counters| counters.malformed)),
        ("foreign", sum(|counters| counters.foreign)),
        ("false acks", sum(|counters| counters.false_acks)),
        ("beyond the window", sum(|counters| counters.beyond_window)),
        ("stale handshakes", sum(|counters| counters.handshakes_stale)),
        ("refusals", sum(|counters| counters.refusals)),
        ("ups", sum(|counters| counters.ups) - 100),
        ("downs", sum(|counters| counters.downs)),
        ("interrupted runs", interrupted.into()),
        ("restarts", counters.len() as u64 - 200),
    ];
    eprintln!("{walked:#?}");
    for (what, times) in walked {
        assert!(times >= 20, "{what}: only {times}");
    }
}

#[test]
fn each_defect_is_noticed() {
    for defect in [Defect::AnyTag, Defect::AckSeen, Defect::AckArrived, Defect::NoGate] {
        let noticed = (0..500).find_map(|seed| liveness(seed, defect).err().map(|violation| (seed, violation)));
        match noticed {
            Some((seed, violation)) => eprintln!("{defect:?}: seed {seed}: {violation:?}"),
            None => panic!("{defect:?} goes unnoticed"),
        }
    }
}
