//! Links by verbs on the kernel's software devices, and with user space at the other end. They want what
//! `tests/rocev2/guest.sh` makes: `rxe0` and `rxe1` on the two ends of a wire, and `rxe2` on one to the network namespace
//! `far`. Time is real, and decides nothing.

use super::*;
use crate::allocation::allocations;
use crate::link::{AnyLink, LinkConfig};
use proto::roce::wire::NakCode;
use proto::roce::{Operation, Remote};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use types::Duration;

const GATEWAY: usize = 0;
const VENUE: usize = 1;

/// What is at an end: a device, or user space in the network namespace `far`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Station {
    device: Option<&'static str>,
    address: [u8; 4],
}

/// Two ends, and how they meet.
type Pair = ([Station; 2], RoceMeeting);

const RXE0: Station = at(Some("rxe0"), [10, 9, 0, 1]);
const RXE1: Station = at(Some("rxe1"), [10, 9, 0, 2]);
const RXE2: Station = at(Some("rxe2"), [10, 9, 1, 1]);
const FAR: Station = at(None, [10, 9, 1, 2]);

const fn at(device: Option<&'static str>, address: [u8; 4]) -> Station {
    Station { device, address }
}

struct Bed {
    stations: [Station; 2],
    meeting: RoceMeeting,
    operation: RoceOperation,
    dead_after: Duration,
    /// Where the ends meet.
    port: u16,
    ends: [Option<AnyLink>; 2],
    events: [Vec<LinkEvent>; 2],
    messages: [Vec<Vec<u8>>; 2],
    sent: [usize; 2],
}

impl Bed {
    /// Without loss no end takes the other for gone, so that what stalls is not repaired by a new session unnoticed.
    fn new(pair: Pair, operation: RoceOperation) -> Self {
        let dead_after = if loses() { SOON } else { NEVER };
        Self::with(pair, operation, dead_after)
    }

    fn with(pair: Pair, operation: RoceOperation, dead_after: Duration) -> Self {
        Self::at(9_000, pair, operation, dead_after)
    }

    fn at(port: u16, (stations, meeting): Pair, operation: RoceOperation, dead_after: Duration) -> Self {
        let mut bed = Self {
            stations,
            meeting,
            operation,
            dead_after,
            port,
            ends: [None, None],
            events: [Vec::new(), Vec::new()],
            messages: [Vec::new(), Vec::new()],
            sent: [0, 0],
        };
        bed.start(VENUE, Resume::START);
        bed.start(GATEWAY, Resume::START);
        bed.until("up", |bed| bed.is_up());
        bed
    }

    fn start(&mut self, index: usize, resume: Resume) {
        let addresses = self.stations.map(|station| IpAddr::from(station.address));
        let venue = SocketAddr::new(addresses[VENUE], self.port);
        let end = match index {
            VENUE => LinkEnd::Listen { local: venue },
            _ => LinkEnd::Connect {
                peer: venue,
                local: None,
            },
        };
        let mut config = RoceLinkConfig::new(end, addresses[index], addresses[1 - index], 64, 64);
        config.operation = self.operation;
        config.meeting = self.meeting;
        config.allows_reads = true;
        config.dscp = 26;
        config.device = self.stations[index].device.map(|name| name.parse().unwrap());
        config = config.with_dead_after(self.dead_after);
        self.ends[index] = None;
        let station = self.stations[index];
        let build = || AnyLink::new(&LinkConfig::Roce(config), now().0, resume).unwrap();
        self.ends[index] = Some(if station == FAR { in_far(build) } else { build() });
    }

    fn end(&mut self, index: usize) -> &mut AnyLink {
        self.ends[index].as_mut().expect("it runs")
    }

    fn is_up(&self) -> bool {
        self.ends.iter().all(|end| end.as_ref().is_some_and(Link::is_up))
    }

    fn turn(&mut self) {
        for index in [GATEWAY, VENUE] {
            let Some(end) = &mut self.ends[index] else { continue };
            let mut buffer = [0; 64];
            while let Some(event) = end.poll(now(), &mut buffer) {
                match event {
                    LinkEvent::Message { length, .. } => self.messages[index].push(buffer[..length].to_vec()),
                    other => self.events[index].push(other),
                }
            }
            end.flush(now(), u64::MAX);
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(
                started.elapsed() < PATIENCE,
                "{what}: not within {PATIENCE:?}; {:?}; {:?}",
                self.events,
                self.messages.each_ref().map(Vec::len)
            );
            self.turn();
        }
    }

    /// As many as are said, each end as fast as its ring takes them.
    fn send(&mut self, index: usize, count: usize) {
        for _ in 0..count {
            self.until("room", |bed| bed.end(index).room() > 0);
            let number = self.sent[index];
            self.end(index).send(&message(index, number), 0);
            self.sent[index] += 1;
        }
    }

    /// All that was sent has come, once, in order.
    fn check(&mut self) {
        self.until("all messages", |bed| {
            (0..2).all(|index| bed.messages[index].len() >= bed.sent[1 - index])
        });
        for index in [GATEWAY, VENUE] {
            let from = 1 - index;
            assert_eq!(self.messages[index].len(), self.sent[from]);
            for (number, got) in self.messages[index].iter().enumerate() {
                assert_eq!(*got, message(from, number), "message {number} of {from}");
            }
        }
    }

    /// One message there and back, so often.
    fn ping_pong(&mut self, count: usize) {
        for _ in 0..count {
            self.send(GATEWAY, 1);
            let ordered = self.sent[GATEWAY];
            self.until("order", |bed| bed.messages[VENUE].len() == ordered);
            self.send(VENUE, 1);
            let reported = self.sent[VENUE];
            self.until("report", |bed| bed.messages[GATEWAY].len() == reported);
        }
        self.check();
    }

    /// It has told what `is_it` wants, since so many events.
    fn has_told(&self, index: usize, since: usize, is_it: impl Fn(&LinkEvent) -> bool) -> bool {
        self.events[index][since..].iter().any(is_it)
    }

    fn until_down(&mut self, index: usize, since: usize) -> DownReason {
        self.until("the end of the session", |bed| {
            bed.has_told(index, since, |event| matches!(event, LinkEvent::Down(_)))
        });
        let reasons = self.events[index][since..].iter().filter_map(|event| match event {
            LinkEvent::Down(reason) => Some(*reason),
            _ => None,
        });
        reasons.into_iter().next().expect("it was told")
    }

    /// The next session brings everything.
    fn goes_on(&mut self) {
        self.until("up again", |bed| bed.is_up());
        self.ping_pong(20);
    }

    fn stream(&mut self, count: usize) {
        for _ in 0..count {
            self.send(GATEWAY, 1);
            self.send(VENUE, 1);
        }
        self.check();
    }
}

fn message(from: usize, number: usize) -> Vec<u8> {
    let mut bytes = vec![from.to_le_bytes()[0]; 9 + number % 55];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since.as_nanos()).unwrap())
}

/// Does it in the network namespace `far`.
fn in_far<T>(what: impl FnOnce() -> T) -> T {
    let enter = |path: &str| {
        let namespace = File::open(path).unwrap();
        // SAFETY: a namespace that is open.
        let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    };
    let home = File::open("/proc/thread-self/ns/net").unwrap();
    enter("/var/run/netns/far");
    let made = what();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
    made
}

/// The guest has few processors, and little of them.
const SOON: Duration = Duration::from_millis(2_000);
/// Longer than a test waits.
const NEVER: Duration = Duration::from_millis(600_000);
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

const OVER_TCP: Pair = ([RXE0, RXE1], RoceMeeting::Tcp);
const BY_RDMA_CM: Pair = ([RXE0, RXE1], RoceMeeting::RdmaCm);
const PAIRS: [Pair; 4] = [
    OVER_TCP,
    BY_RDMA_CM,
    ([RXE2, FAR], RoceMeeting::Tcp),
    ([FAR, RXE2], RoceMeeting::Tcp),
];

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn messages_pass_between_two_ends_of_either_kind() {
    for pair in PAIRS {
        for operation in [RoceOperation::Write, RoceOperation::Send] {
            let mut bed = Bed::new(pair, operation);
            bed.ping_pong(200);
            bed.stream(1_000);
        }
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn ends_that_do_not_fit_say_so_however_they_meet() {
    for pair in [OVER_TCP, BY_RDMA_CM] {
        let mut bed = Bed::with(pair, RoceOperation::Write, SOON);
        bed.ping_pong(3);
        let since = bed.events.each_ref().map(Vec::len);
        let resume = Resume {
            next_send: SequenceNumber(4),
            next_receive: SequenceNumber(4),
        };
        bed.operation = RoceOperation::Send;
        bed.start(GATEWAY, resume);
        let misfit = LinkEvent::Down(DownReason::Mismatched(RoceMismatch::Operation));
        bed.until("the reason at both ends", |bed| {
            (0..2).all(|index| bed.has_told(index, since[index], |event| *event == misfit))
        });
        bed.operation = RoceOperation::Write;
        bed.start(GATEWAY, resume);
        bed.goes_on();
    }
}

/// Does the same with whichever kind it is.
macro_rules! of_kind {
    ($end:expr, $link:ident => $call:expr) => {
        match $end {
            AnyLink::Verbs($link) => $call,
            AnyLink::Roce($link) => $call,
            other => panic!("{other:?}"),
        }
    };
}

/// Asks for what the peer does not allow: under another key, or behind the end of its ring.
fn forge<B: Backend>(link: &mut RoceLink<B>, has_key: bool) {
    let ring = link.session.as_ref().expect("it is up").ring();
    let to = match has_key {
        true => Remote {
            address: ring.address + link.arena.reached() as u64,
            ..ring
        },
        false => Remote { key: !ring.key, ..ring },
    };
    let request = SendRequest {
        id: 0,
        operation: Operation::Write { to, immediate: None },
        offset: 0,
        length: 8,
        is_signaled: false,
    };
    link.backend.post_send(request).unwrap();
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn either_kind_reads_the_ring_of_the_other() {
    for pair in PAIRS {
        let mut bed = Bed::new(pair, RoceOperation::Write);
        // Message 64 is the first in the ring. Messages are numbered from 1 there and from 0 here.
        for _ in 0..64 {
            bed.send(GATEWAY, 1);
            bed.send(VENUE, 1);
        }
        bed.check();
        for index in [GATEWAY, VENUE] {
            let wanted = message(index, 63);
            let mut out = vec![0; PREFIX + wanted.len()];
            for _ in 0..100 {
                bed.until(
                    "room",
                    |bed| of_kind!(bed.end(index), link => link.post_read(out.len())),
                );
                out.fill(0);
                bed.until(
                    "the bytes",
                    |bed| of_kind!(bed.end(index), link => link.take_read(&mut out)),
                );
                assert_eq!(out[PREFIX..], wanted);
            }
        }
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn a_request_that_is_not_allowed_breaks_both_queue_pairs_and_nothing_is_lost() {
    for pair in PAIRS {
        for has_key in [false, true] {
            let mut bed = Bed::new(pair, RoceOperation::Write);
            bed.stream(100);
            let since = bed.events.each_ref().map(Vec::len);
            of_kind!(bed.end(GATEWAY), link => forge(link, has_key));
            // They fill the window behind it.
            bed.send(GATEWAY, 50);
            bed.send(VENUE, 50);
            let why = bed.until_down(GATEWAY, since[GATEWAY]);
            let code = NakCode::RemoteAccessError;
            let refused = DownReason::QueuePair { code, is_ours: false };
            // Where the answer is lost, the end of TCP is the news.
            let is_known = why == refused || loses() && why == DownReason::Closed;
            assert!(is_known, "{pair:?} {has_key}: {why}");
            let _ = bed.until_down(VENUE, since[VENUE]);
            bed.goes_on();
        }
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn an_end_that_vanishes_is_noticed_and_comes_back_with_nothing_lost() {
    for pair in PAIRS {
        for victim in [GATEWAY, VENUE] {
            let mut bed = Bed::new(pair, RoceOperation::Write);
            bed.stream(100);
            let other = 1 - victim;
            let since = bed.events[other].len();
            bed.ends[victim] = None;
            bed.send(other, 30);
            let why = bed.until_down(other, since);
            // Where the news of its end is lost, its silence is.
            let is_known = why == DownReason::Closed || loses() && why == DownReason::Silent;
            assert!(is_known, "{pair:?} {victim}: {why}");
            let resume = Resume {
                next_send: SequenceNumber(bed.sent[victim] as u64 + 1),
                next_receive: SequenceNumber(bed.messages[victim].len() as u64 + 1),
            };
            bed.start(victim, resume);
            bed.goes_on();
        }
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn an_interface_that_goes_down_is_silence_and_what_was_sent_comes_once_it_is_up() {
    // Not by rdma_cm, whose own queue pair at rxe may not outlive it.
    for operation in [RoceOperation::Write, RoceOperation::Send] {
        let mut bed = Bed::with(OVER_TCP, operation, SOON);
        bed.stream(100);
        let since = bed.events.each_ref().map(Vec::len);
        run("ip2 link set v1 down");
        bed.send(GATEWAY, 30);
        bed.send(VENUE, 30);
        for index in [GATEWAY, VENUE] {
            bed.until_down(index, since[index]);
        }
        run("ip2 link set v1 up");
        // It went with the interface.
        run("ip2 route add 10.9.0.1 dev v1 src 10.9.0.2 table 102");
        bed.goes_on();
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn a_device_that_is_taken_away_is_told_and_what_was_sent_comes_once_there_is_one_again() {
    let victims = [(GATEWAY, "rxe0", "v0"), (VENUE, "rxe1", "v1")];
    for (pair, (victim, device, interface)) in [OVER_TCP, BY_RDMA_CM]
        .into_iter()
        .flat_map(|pair| victims.map(|victim| (pair, victim)))
    {
        let mut bed = Bed::with(pair, RoceOperation::Write, SOON);
        bed.stream(100);
        let since = bed.events.each_ref().map(Vec::len);
        // The kernel takes it away once nobody has it open.
        let mut taking = Command::new("rdma").args(["link", "delete", device]).spawn().unwrap();
        bed.send(GATEWAY, 30);
        bed.send(VENUE, 30);
        assert_eq!(
            bed.until_down(victim, since[victim]),
            DownReason::Device(io::ErrorKind::NotFound)
        );
        bed.until("the end of the device", |_| taking.try_wait().unwrap().is_some());
        assert!(taking.wait().unwrap().success());
        bed.until_down(1 - victim, since[1 - victim]);
        // Attempts to meet fail meanwhile, and go on.
        (0..1_000).for_each(|_| bed.turn());
        assert!(!bed.is_up());
        run(&format!("rdma link add {device} type rxe netdev {interface}"));
        bed.goes_on();
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn links_of_one_device_share_its_queue_and_what_breaks_one_does_not_disturb_another() {
    let mut beds = [9_000, 9_001, 9_002].map(|port| Bed::at(port, OVER_TCP, RoceOperation::Write, SOON));
    let seats = |name: &str| seat::seats_at(name.parse().unwrap());
    for device in ["rxe0", "rxe1"] {
        assert_eq!(seats(device), [3], "{device}");
    }
    for round in 0..5 {
        let since = beds[1].events.each_ref().map(Vec::len);
        // All have messages under way when one breaks.
        for _ in 0..50 {
            for bed in &mut beds {
                bed.send(GATEWAY, 1);
                bed.send(VENUE, 1);
            }
        }
        of_kind!(beds[1].end(GATEWAY), link => forge(link, round % 2 == 0));
        while !(0..2).all(|index| beds[1].has_told(index, since[index], |event| matches!(event, LinkEvent::Down(_)))) {
            beds.iter_mut().for_each(Bed::turn);
        }
        for bed in &mut beds {
            bed.goes_on();
        }
    }
    for bed in [&beds[0], &beds[2]] {
        assert!(
            loses() || bed.events.iter().all(|events| events == &[LinkEvent::Up]),
            "{:?}",
            bed.events
        );
    }
    // What it leaves is taken by the next.
    let [first, second, third] = beds;
    drop((first, third));
    assert_eq!(seats("rxe0"), [1]);
    let mut another = Bed::at(9_003, OVER_TCP, RoceOperation::Write, SOON);
    assert_eq!(seats("rxe0"), [2]);
    another.goes_on();
    drop(second);
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn the_path_of_a_message_allocates_nothing_here() {
    for operation in [RoceOperation::Write, RoceOperation::Send] {
        let mut bed = Bed::new(OVER_TCP, operation);
        let mut received = [0; 2];
        let count = allocations(|| {
            let mut buffer = [0; 64];
            while received.iter().any(|&count| count < 1_000) {
                for index in [GATEWAY, VENUE] {
                    let end = bed.ends[index].as_mut().expect("it runs");
                    while let Some(event) = end.poll(now(), &mut buffer) {
                        received[index] += u64::from(matches!(event, LinkEvent::Message { .. }));
                    }
                    if end.room() > 0 {
                        end.send(&[1; 48], 0);
                    }
                    end.flush(now(), u64::MAX);
                }
            }
        });
        assert_eq!(count, 0, "{operation:?}");
    }
}

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn packets_have_the_code_point_of_the_config() {
    const UDP: u8 = 17;
    let wire = Socket::new(
        Domain::PACKET,
        Type::DGRAM,
        Some(Protocol::from(i32::from(ETH_P_IP.to_be()))),
    )
    .unwrap();
    wire.set_nonblocking(true).unwrap();
    let mut bed = Bed::new(OVER_TCP, RoceOperation::Write);
    bed.stream(10);
    let (mut packet, mut seen) = ([0; 4096], 0);
    while let Ok(length) = (&wire).read(&mut packet) {
        let port = u16::from_be_bytes([packet[22], packet[23]]);
        if length > 24 && packet[0] == 0x45 && packet[9] == UDP && port == 4_791 {
            assert_eq!(packet[1], 26 << 2 | port::ECN_CAPABLE);
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

const ETH_P_IP: u16 = 0x0800;

/// Whether packets are lost.
fn loses() -> bool {
    std::env::var("LOST").is_ok_and(|percent| percent != "0")
}

fn run(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(status.success(), "{command}");
}
