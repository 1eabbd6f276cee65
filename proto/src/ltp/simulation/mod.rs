//! Two ends, a bad network and virtual time: exactly once and in order, whatever happens.
//!
//! One seed makes everything: which faults, when, and what the owners do. A failure prints its seed;
//! `LTP_SEED=n cargo test -p proto ltp::simulation` repeats it alone, `LTP_SEEDS=n` runs that many.
//!
//! Safety and liveness are two runs. Safety: under faults that never end, nothing wrong is ever handed out. Liveness:
//! once the faults end, everything that was sent arrives and is acknowledged, and then the network is quiet.
//!
//! Each owner keeps a model journal: what it numbered (of which only the written part survives a crash), and how many
//! messages it was handed (which it journals at once, before it acknowledges). When its machine is lost, the journal falls
//! back to what was there at the last write, and the other end brings back from its own what it had sent since.

mod network;

use super::{Config, Connection, Counters, DownReason, Event, HeaderForm, Key, Redundancy, Refusal, Resume, Role};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use network::Faults;
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
    /// Takes datagrams for the peer's whose tag does not prove it.
    AnyMac,
    /// Takes a datagram without messages as often as it comes.
    AnySerial,
    /// Establishes a session whatever its epoch.
    AnyEpoch,
    /// Frees one message more than is acknowledged.
    EarlyFree,
    /// Never transmits anything again.
    NoRepair,
    /// Goes on with what it still has, whatever the peer has lost.
    NoRecall,
    /// Takes a message of an earlier recall for the next one.
    AnyRecall,
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
    /// An end believes that its peer has more than it ever was handed, or that more of that is safe than is.
    Told { end: usize, received: u64, durable: u64 },
    /// Credits that were not granted, or that were told after later ones.
    Credits { granted: u32, last: u32, told: u32 },
    /// The faults are over, and yet not everything arrives.
    Stuck {
        received: [u64; 2],
        sent: [u64; 2],
        up: [bool; 2],
    },
    /// Everything has arrived, and yet something is transmitted again.
    Restless { retransmits: u64 },
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
    /// The same before a machine was lost with some of them.
    most_received: u64,
    /// How many of them were handed to it when the journal was written last.
    durable: u64,
    /// Chances in a thousand that the journal is written, each turn.
    writes: u32,
    /// Numbers that the peer is to be sent again from the journal.
    recalls: VecDeque<u64>,
    /// When the journal has the next of them.
    recall_at: u64,
    inbox: Vec<Vec<u8>>,
    /// Acceptor: granted last, and journaled. Each grant is one more than the one before. Initiator: told last.
    credits: Option<u32>,
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
    config: Config,
    faults: Faults,
    now: u64,
    first: u64,
    ends: [End; 2],
    /// Datagrams under way, by time of arrival and a count that keeps their order.
    network: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Until when each direction of each path loses everything.
    cut_until: [[u64; 2]; 2],
    /// Datagrams of the past; those that would establish a session apart, because they are few.
    past: [Vec<Vec<u8>>; 2],
    /// What the incarnations that crashed had counted.
    counters: Vec<Counters>,
}

impl Simulation {
    fn new(seed: u64, defect: Defect) -> Self {
        let mut random = Random(seed);
        let config = config(&mut random);
        let first = match (random.below(2), config.header) {
            (0, _) => 1,
            (_, HeaderForm::Full) => (1 << 32) - random.below(200),
            (_, HeaderForm::Compact) => (7 << 16) - random.below(200),
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
            most_received: 0,
            durable: 0,
            writes: [700, 700, 50, 5][random.index(4)],
            recalls: VecDeque::new(),
            recall_at: START,
            inbox: Vec::new(),
            credits: None,
            target,
            next_send_at: START,
            asleep_until: START + random.below(300_000),
            wake_at: START,
            clock: 0,
        });
        Self {
            random,
            config,
            faults,
            now: START,
            first,
            ends,
            network: BTreeMap::new(),
            count: 0,
            cut_until: [[0; 2]; 2],
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
        self.cut_until = [[0; 2]; 2];
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
        let [initiator, acceptor] = &self.ends;
        initiator.credits == acceptor.credits
            && [0, 1].iter().all(|&end| {
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
        let config = self.config;
        let end = &mut self.ends[index];
        let clock = Timestamp(now.wrapping_add(end.clock));
        let connection = end.connection.get_or_insert_with(|| {
            let next_send = SequenceNumber(first + end.written as u64);
            let next_receive = SequenceNumber(first + end.received);
            let resume = Resume {
                next_send,
                next_receive,
            };
            let mut connection = Connection::new(end.role, config, now, resume);
            connection.set_defect(end.defect);
            if let (Role::Acceptor, Some(slots)) = (end.role, end.credits) {
                connection.grant(slots);
            }
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
        self.recall_messages(index);
        self.send_messages(index);

        let end = &mut self.ends[index];
        if end.role == Role::Acceptor && self.random.chance(20, 1_000) {
            let slots = end.credits.map_or(0, |slots| slots + 1);
            end.credits = Some(slots);
            if let Some(connection) = &mut end.connection {
                connection.grant(slots);
            }
        }
        if self.random.chance(end.writes, 1_000) {
            (end.written, end.durable) = (end.journal.len(), end.received);
        }
        let mut datagrams = Vec::new();
        let Some(connection) = &mut end.connection else {
            return Ok(());
        };
        connection.journaled(
            end.journal.len() as u64 + end.received,
            end.written as u64 + end.durable,
        );
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
        let recall = if end.recalls.is_empty() {
            u64::MAX
        } else {
            end.recall_at.max(now + 1_000)
        };
        end.wake_at = timeout.max(now + 100).min(sooner).min(planned).min(recall);
        let received = connection.peer_received().0.saturating_sub(first);
        let durable = connection.peer_durable().map_or(0, |told| told.0 - first);
        let peer = &self.ends[1 - index];
        if received > peer.most_received || durable > peer.durable {
            return Err(Violation::Told {
                end: index,
                received,
                durable,
            });
        }
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
                    end.most_received = end.most_received.max(end.received);
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
                Event::Credits { slots: told } => {
                    let last = self.ends[index].credits.replace(told).unwrap_or(0);
                    let granted = self.ends[1 - index].credits.unwrap_or(0);
                    if told < last || told > granted {
                        return Err(Violation::Credits { granted, last, told });
                    }
                }
                Event::Recall { from, to } => self.ends[index].recalls.extend(from.0..to.0),
                Event::Up { .. } => {}
            }
        }
        Ok(true)
    }

    /// Brings back some of what the peer has lost. That takes as long as it takes: the session may be another one by then.
    fn recall_messages(&mut self, index: usize) {
        let end = &mut self.ends[index];
        let Some(connection) = &mut end.connection else {
            return;
        };
        if end.recall_at > self.now {
            return;
        }
        let slow = self.random.below(2_000_000);
        end.recall_at = self.now + [0, 10_000, slow][self.random.index(3)];
        let count = self.random.index(20);
        for number in end.recalls.drain(..count.min(end.recalls.len())) {
            let place = usize::try_from(number - self.first).unwrap();
            connection.recalled(SequenceNumber(number), &end.journal[place]);
        }
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
            let until = self.now + self.random.below(60_000_000);
            let both_ways = self.random.chance(500, 1_000);
            for path in &mut self.cut_until {
                path[index] = until;
                if both_ways {
                    path[1 - index] = until;
                }
            }
        }
        if self.random.chance(faults.crash, 100_000) {
            self.crash(index);
            if self.random.chance(300, 1_000) {
                self.crash(1 - index);
            }
            return true;
        }
        if self.random.chance(faults.machine, 100_000) {
            self.lose_machine(index);
            if self.random.chance(100, 1_000) {
                self.lose_machine(1 - index);
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
        end.recalls.clear();
        end.journal.truncate(end.written);
        end.asleep_until = self.now + 1 + self.random.below(3_000_000);
        end.wake_at = end.asleep_until;
    }
}

impl Simulation {
    /// As a crash, and what the end was handed since its last write is lost with it.
    fn lose_machine(&mut self, index: usize) {
        self.crash(index);
        let end = &mut self.ends[index];
        end.received = end.durable;
    }
}

/// Refusals that a new attempt gets over, and those that nobody's word may draw.
fn is_transient(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::StaleEpoch { .. } | Refusal::UnknownNegotiation | Refusal::Key { .. } | Refusal::Session { .. }
    )
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

/// Every form that a session may have.
fn config(random: &mut Random) -> Config {
    let secret = *b"of the two alone";
    Config {
        dead_after: 4,
        header: [HeaderForm::Full, HeaderForm::Compact][random.index(2)],
        key: [None, Some(Key { id: 1, secret })][random.index(2)],
        redundancy: [
            Redundancy::Off,
            Redundancy::Paths,
            Redundancy::Twice,
            Redundancy::Repeat,
        ][random.index(4)],
        ..Config::new(SessionId(7), WINDOW, MESSAGE_MAX)
    }
}

/// Of each of the two kinds of run.
const SEEDS: u64 = 2_000;
/// Of the runs in which machines are lost and nothing else happens.
const MACHINE_SEEDS: u64 = 300;
const WINDOW: usize = 64;
const MESSAGE_MAX: usize = 64;
const START: u64 = 1_700_000_000_000_000_000;

/// Seeds to run: one from the environment, or the first of all. A value that is no number must not pass for none.
fn seeds(usual: u64) -> RangeInclusive<u64> {
    let number = |name| {
        let text = env::var_os(name)?;
        let number = text.to_str().and_then(|text| text.parse::<u64>().ok());
        Some(number.unwrap_or_else(|| panic!("{name} is no number: {text:?}")))
    };
    match number("LTP_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("LTP_SEEDS").unwrap_or(usual),
    }
}

/// The command that repeats a seed alone.
fn again(seed: u64) -> alloc::string::String {
    alloc::format!("LTP_SEED={seed} cargo test -p proto ltp::simulation")
}

/// As [`liveness`], and nothing happens but that ends lose their machines.
fn machines(seed: u64, defect: Defect) -> Result<Simulation, Violation> {
    let mut simulation = Simulation::new(seed, defect);
    simulation.faults = Faults {
        machine: 300,
        ..Faults::default()
    };
    simulation.run_faulty(150)?;
    simulation.run_healed()?;
    Ok(simulation)
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
    for seed in seeds(SEEDS) {
        if let Err(violation) = safety(seed, Defect::None) {
            panic!("{}: {violation:?}", again(seed));
        }
    }
}

#[test]
fn everything_arrives_once_the_faults_end() {
    let seeds = seeds(SEEDS);
    let is_whole = seeds == (1..=SEEDS);
    let mut messages = 0;
    for seed in seeds {
        match liveness(seed, Defect::None) {
            Ok(simulation) => messages += simulation.ends.iter().map(|end| end.received).sum::<u64>(),
            Err(violation) => panic!("{}: {violation:?}", again(seed)),
        }
    }
    eprintln!("{messages} messages");
    assert!(!is_whole || messages > 5_000_000);
}

#[test]
fn a_machine_that_is_lost_takes_no_message_with_it() {
    let seeds = seeds(MACHINE_SEEDS);
    let is_whole = seeds == (1..=MACHINE_SEEDS);
    let (mut recalled, mut losses) = (0, 0);
    for seed in seeds {
        match machines(seed, Defect::None) {
            Ok(simulation) => {
                recalled += simulation.counters().map(|counters| counters.recalled).sum::<u64>();
                losses += simulation.counters.len();
            }
            Err(violation) => panic!("{}: {violation:?}", again(seed)),
        }
    }
    eprintln!("{losses} machines lost, {recalled} messages recalled");
    assert!(!is_whole || recalled > 10_000);
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
        ("forged", sum(|counters| counters.forged)),
        ("replayed", sum(|counters| counters.replayed)),
        ("repeats", sum(|counters| counters.repeats)),
        ("recalled", sum(|counters| counters.recalled)),
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
    let defects = [
        Defect::AnyTag,
        Defect::AckSeen,
        Defect::AckArrived,
        Defect::NoGate,
        Defect::AnyMac,
        Defect::AnySerial,
        Defect::AnyEpoch,
        Defect::EarlyFree,
        Defect::NoRepair,
        Defect::NoRecall,
        Defect::AnyRecall,
    ];
    for defect in defects {
        let noticed = (0..500).find_map(|seed| liveness(seed, defect).err().map(|violation| (seed, violation)));
        match noticed {
            Some((seed, violation)) => eprintln!("{defect:?}: seed {seed}: {violation:?}"),
            None => panic!("{defect:?} goes unnoticed"),
        }
    }
}
