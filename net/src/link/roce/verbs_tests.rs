//! Links by verbs on the kernel's software devices, and with user space at the other end. They want what
//! `tests/rocev2/guest.sh` makes: `rxe0` and `rxe1` on the two ends of a wire, and `rxe2` on one to the network namespace
//! `far`. Time is real, and decides nothing.

use super::*;
use crate::link::{AnyLink, LinkConfig};
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
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

const RXE0: Station = at(Some("rxe0"), [10, 9, 0, 1]);
const RXE1: Station = at(Some("rxe1"), [10, 9, 0, 2]);
const RXE2: Station = at(Some("rxe2"), [10, 9, 1, 1]);
const FAR: Station = at(None, [10, 9, 1, 2]);

const fn at(device: Option<&'static str>, address: [u8; 4]) -> Station {
    Station { device, address }
}

struct Bed {
    stations: [Station; 2],
    operation: RoceOperation,
    ends: [Option<AnyLink>; 2],
    events: [Vec<LinkEvent>; 2],
    messages: [Vec<Vec<u8>>; 2],
    sent: [usize; 2],
}

impl Bed {
    fn new(stations: [Station; 2], operation: RoceOperation) -> Self {
        let mut bed = Self {
            stations,
            operation,
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
        let venue = SocketAddr::new(addresses[VENUE], 9_000);
        let end = match index {
            VENUE => LinkEnd::Listen { local: venue },
            _ => LinkEnd::Connect {
                peer: venue,
                local: None,
            },
        };
        let mut config = RoceLinkConfig::new(end, addresses[index], addresses[1 - index], 64, 64);
        config.operation = self.operation;
        config.allows_reads = true;
        config.dscp = 26;
        config.device = self.stations[index].device.map(|name| name.parse().unwrap());
        // The guest has few processors, and little of them.
        config = config.with_dead_after(Duration::from_millis(2_000));
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

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

const PAIRS: [[Station; 2]; 3] = [[RXE0, RXE1], [RXE2, FAR], [FAR, RXE2]];

#[test]
#[ignore = "wants RDMA devices: .ci/extended rocev2"]
fn messages_pass_between_two_ends_of_either_kind() {
    for stations in PAIRS {
        for operation in [RoceOperation::Write, RoceOperation::Send] {
            let mut bed = Bed::new(stations, operation);
            bed.ping_pong(200);
            bed.stream(1_000);
        }
    }
}
