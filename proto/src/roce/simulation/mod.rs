//! Two ends, a bad network and virtual time: every message once and in order, whatever happens.
//!
//! One seed makes everything: which faults, when, and what the owners do. A failure prints its seed;
//! `ROCE_SEED=n cargo test -p proto roce::simulation` repeats it alone, `ROCE_SEEDS=n` runs that many.
//!
//! The faults end after a while. Until then nothing wrong may happen; afterwards all that was planned has to.
//!
//! An owner works through a plan: SENDs, RDMA WRITEs with and without immediate, RDMA READs. Where a queue pair breaks,
//! the owners connect anew and go on behind what the other has received, as a link does.

mod network;
mod owner;

use super::{Config, Counters, Failure, RateConfig};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use network::Faults;
use owner::Owner;
use std::{env, eprintln};
use types::{Duration, Timestamp};

/// A mistake built into the way of packets, as an end with that mistake would behave, to see that the simulation notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Defect {
    None,
    /// Packets are taken whatever their check says.
    AnyIcrc,
    /// The immediate is told before the data is there.
    ImmediateFirst,
    /// Acknowledgements cover one packet more than was executed.
    AckAhead,
    /// A request of the past is executed again.
    TwiceExecuted,
    /// A request ahead of its turn is executed.
    AheadExecuted,
    /// A region reaches further than it should.
    WideRegion,
    /// A new connection goes under the old one's numbers.
    SameNumbers,
    /// A response of an RDMA READ is taken for another's.
    AnyResponse,
}

/// What must not happen.
#[allow(dead_code, reason = "the fields are for whoever reads a failure")]
#[derive(Debug)]
enum Violation {
    /// A message is not the next one that was sent.
    Message { end: usize, number: usize },
    /// What was read is not what the peer has.
    Read { end: usize, number: u64 },
    /// Memory that no peer may reach has changed.
    Guard { end: usize },
    /// What the writes without immediate have left is not what they should.
    Board { end: usize },
    /// A completion came out of turn.
    Completion { end: usize, expected: u64, given: u64 },
    /// The faults are over, and yet not everything arrives.
    Stuck { done: [usize; 2], received: [usize; 2] },
    /// The faults are over, and yet a new connection breaks.
    Broken { failures: [Option<Failure>; 2] },
}

struct Simulation {
    random: Random,
    defect: Defect,
    faults: Faults,
    now: u64,
    owners: [Owner; 2],
    /// Packets under way, by time of arrival and a count that keeps their order: to whom, what, marked or not.
    network: BTreeMap<(u64, u64), (usize, Vec<u8>, bool)>,
    count: u64,
    cut_until: [u64; 2],
    /// Packets of the past.
    past: Vec<(usize, Vec<u8>)>,
    connections: u32,
    /// When the last of them began.
    connected_at: u64,
}

impl Simulation {
    fn new(seed: u64, defect: Defect) -> Self {
        let mut random = Random(seed);
        let config = config(&mut random);
        let faults = Faults::random(&mut random);
        let plans = random.next();
        let owners = [0, 1].map(|index| Owner::new(index, config, plans, defect));
        let mut simulation = Self {
            random,
            defect,
            faults,
            now: START,
            owners,
            network: BTreeMap::new(),
            count: 0,
            cut_until: [0; 2],
            past: Vec::new(),
            connections: 0,
            connected_at: 0,
        };
        simulation.connect();
        simulation
    }

    fn run(&mut self) -> Result<(), Violation> {
        let healed_at = self.now + 1_000_000 + self.random.below(60_000_000);
        while !self.is_done() {
            if self.now >= healed_at {
                self.faults = Faults::default();
                self.cut_until = [0; 2];
            }
            let failures = [0, 1].map(|index| self.owners[index].pair.failure());
            if failures != [None, None] {
                if self.connected_at > healed_at + LAST_DELAY {
                    return Err(Violation::Broken { failures });
                }
                self.connect_anew()?;
            }
            if self.now > healed_at + 1_000_000_000 {
                let done = [0, 1].map(|index| self.owners[index].done);
                let received = [0, 1].map(|index| self.owners[index].received);
                return Err(Violation::Stuck { done, received });
            }
            self.step()?;
        }
        for index in [0, 1] {
            let board = self.owners[1 - index].board_at_the_end();
            self.owners[index].check_board(&board)?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        (0..2).all(|index| self.owners[index].is_done(self.owners[1 - index].received))
    }

    /// Goes to the next moment at which something happens.
    fn step(&mut self) -> Result<(), Violation> {
        let mut next = self.now + 50_000;
        if let Some(&(at, _)) = self.network.keys().next() {
            next = next.min(at);
        }
        for owner in &self.owners {
            if let Some(Timestamp(at)) = owner.pair.poll_timeout() {
                next = next.min(at);
            }
        }
        self.now = next.max(self.now + 1);
        if self.random.chance(self.faults.partition, 10_000) {
            let to = self.random.index(2);
            self.cut_until[to] = self.now + self.random.below(4_000_000);
        }
        while let Some(entry) = self.network.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, bytes, is_marked) = entry.remove();
            self.arrive(to, &bytes, is_marked);
        }
        for index in [0, 1] {
            let credit = self.owners[1 - index].received;
            let is_slow = self.random.chance(self.faults.slow, 1_000);
            let is_wrong = self.random.chance(self.faults.wrong_request, 10_000);
            let now = Timestamp(self.now);
            let packets = self.owners[index].turn(now, credit, is_slow, is_wrong)?;
            for packet in packets {
                self.network_takes(1 - index, packet);
            }
        }
        Ok(())
    }

    /// Both hear of a failure, the one that only waits by the bring-up of the next connection.
    fn connect_anew(&mut self) -> Result<(), Violation> {
        for owner in &mut self.owners {
            owner.pair.close();
            owner.complete()?;
        }
        self.connect();
        Ok(())
    }

    fn connect(&mut self) {
        if self.defect != Defect::SameNumbers || self.connections == 0 {
            self.connections += 1;
        }
        // Near the end of the numbers, so that they wrap.
        let mut psn = || {
            let spread = self.random.below(2_000);
            if self.defect == Defect::SameNumbers {
                77
            } else {
                (0x00ff_ffff - spread) as u32
            }
        };
        let psns = [psn(), psn()];
        let received = [self.owners[0].received, self.owners[1].received];
        for index in [0, 1] {
            self.owners[index].connect(self.connections, psns, received[1 - index]);
        }
        self.connected_at = self.now;
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

    fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    fn chance(&mut self, chances: u32, of: u64) -> bool {
        chances > 0 && self.below(of) < u64::from(chances)
    }
}

/// Every form that a queue pair may have.
fn config(random: &mut Random) -> Config {
    let rate = RateConfig {
        recovery_period: Duration::from_micros(100),
        ..RateConfig::for_line(1_250_000_000)
    };
    Config {
        mtu: [256, 512][random.index(2)],
        reads: [1, 4][random.index(2)],
        window: [3, 16, 1_024][random.index(3)],
        ack_every: [1, 4, 16][random.index(3)],
        retry_limit: [5, 8][random.index(2)],
        rnr_retry_limit: [6, 7][random.index(2)],
        timeout_max: Duration::from_micros(800),
        rate: [None, Some(rate)][random.index(2)],
        ..Config::new(32, owner::MESSAGE_MAX)
    }
}

/// The longest that a packet is under way, ns.
const LAST_DELAY: u64 = 300_000;
const SEEDS: u64 = 1_000;
const START: u64 = 1_700_000_000_000_000_000;

/// Seeds to run: one from the environment, or the first of all.
fn seeds() -> Range<u64> {
    let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
    match number("ROCE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROCE_SEEDS").unwrap_or(SEEDS),
    }
}

fn run(seed: u64, defect: Defect) -> Result<Simulation, Violation> {
    let mut simulation = Simulation::new(seed, defect);
    simulation.run()?;
    Ok(simulation)
}

#[test]
fn every_message_arrives_once_and_in_order_and_every_fault_is_walked() {
    let seeds = seeds();
    let is_whole = seeds == (0..SEEDS);
    let mut all: Vec<Counters> = Vec::new();
    let (mut messages, mut breaks) = (0, 0);
    for seed in seeds {
        match run(seed, Defect::None) {
            Ok(simulation) => {
                breaks += u64::from(simulation.connections) - 1;
                for owner in &simulation.owners {
                    messages += owner.received;
                    all.push(owner.pair.counters());
                }
            }
            Err(violation) => panic!("ROCE_SEED={seed} cargo test -p proto roce::simulation: {violation:?}"),
        }
    }
    let sum = |count: fn(&Counters) -> u64| all.iter().map(count).sum::<u64>();
    let walked = [
        ("messages", messages as u64),
        ("broken pairs", breaks),
        ("malformed", sum(|counters| counters.malformed)),
        ("duplicates", sum(|counters| counters.duplicate_request)),
        ("out of turn", sum(|counters| counters.out_of_seq_request)),
        ("rnr naks", sum(|counters| counters.rcvd_rnr_err)),
        ("naks", sum(|counters| counters.rcvd_seq_err)),
        ("lost responses", sum(|counters| counters.implied_nak_seq_err)),
        ("sent again", sum(|counters| counters.completer_retry_err)),
        ("timeouts", sum(|counters| counters.local_ack_timeout_err)),
        ("false answers", sum(|counters| counters.resp_false)),
        ("refusals", sum(|counters| counters.resp_remote_access_errors)),
        ("given up", sum(|counters| counters.retry_exceeded_err)),
        (
            "given up without receive",
            sum(|counters| counters.retry_rnr_exceeded_err),
        ),
        ("marks", sum(|counters| counters.np_ecn_marked_roce_packets)),
        ("notifications", sum(|counters| counters.rp_cnp_handled)),
        ("ignored notifications", sum(|counters| counters.rp_cnp_ignored)),
    ];
    eprintln!("{walked:#?}");
    for (what, times) in walked {
        assert!(!is_whole || times >= 20, "{what}: only {times}");
    }
}

#[test]
fn each_defect_is_noticed() {
    let defects = [
        Defect::AnyIcrc,
        Defect::ImmediateFirst,
        Defect::AckAhead,
        Defect::TwiceExecuted,
        Defect::AheadExecuted,
        Defect::WideRegion,
        Defect::SameNumbers,
        Defect::AnyResponse,
    ];
    for defect in defects {
        let noticed = (0..300).find_map(|seed| run(seed, defect).err().map(|violation| (seed, violation)));
        match noticed {
            Some((seed, violation)) => eprintln!("{defect:?}: seed {seed}: {violation:?}"),
            None => panic!("{defect:?} goes unnoticed"),
        }
    }
}
