//! The loops over a carrier in memory with virtual time, and over real sockets.

use super::*;
use crate::carrier::{Carrier, CarrierConfig};
use crate::link::{AnyLink, LinkConfig, LinkEnd, LtpLinkConfig, Resume, TcpLinkConfig};
use crate::options::{TcpOptions, UdpOptions};
use crate::tcp::Retransmits;
use crate::{cpu, floor};
use proto::ltp;
use proto::soup::{Password, SessionName, UserName};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Instant;
use types::{Duration, SessionId, Timestamp};

const SIZE: usize = 16;

/// Answers each message by itself, unless it stands still or loses.
#[derive(Default)]
struct Mirror {
    is_reliable: bool,
    /// Nothing comes out before this time.
    stalled_until: Cell<u64>,
    /// Loses the message with this index, counted from the first that was sent.
    loses: Option<usize>,
    sent: Cell<usize>,
    messages: RefCell<VecDeque<Vec<u8>>>,
}

impl End for &Mirror {
    fn is_reliable(&self) -> bool {
        self.is_reliable
    }

    fn is_up(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        if self.loses != Some(self.sent.get()) {
            self.messages.borrow_mut().push_back(message.to_vec());
        }
        self.sent.set(self.sent.get() + 1);
        Ok(true)
    }

    fn flush(&mut self, _: Timestamp) -> io::Result<()> {
        Ok(())
    }

    fn recv(&mut self, now: Timestamp, message: &mut [u8]) -> io::Result<bool> {
        if now.0 < self.stalled_until.get() {
            return Ok(false);
        }
        let next = self.messages.borrow_mut().pop_front();
        Ok(next.is_some_and(|bytes| {
            message.copy_from_slice(&bytes);
            true
        }))
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn retransmits(&self) -> Retransmits {
        Retransmits::default()
    }
}

/// Runs round trips until they are done; each look at the clock takes a microsecond. `at` is told the time before each
/// turn.
fn run(mirror: &Mirror, pace: Pace, length: Length, at: impl Fn(u64)) -> (Vec<u64>, RoundTripCounts) {
    let time = Cell::new(1_000_000_000);
    let clock = || {
        time.set(time.get() + 1_000);
        Timestamp(time.get())
    };
    let mut samples = Vec::new();
    let mut near = RoundTrips::new(mirror, clock, SIZE, pace, length, |took: Duration| samples.push(took.0));
    for _ in 0..10_000_000 {
        at(time.get());
        if near.turn().unwrap() == Turn::Done {
            let counts = near.counts();
            return (samples, counts);
        }
    }
    panic!("the run does not end");
}

#[test]
fn a_span_that_is_over_before_it_began_has_one_round_trip() {
    let mirror = Mirror {
        is_reliable: true,
        ..Mirror::default()
    };
    let (samples, counts) = run(&mirror, Pace::PingPong, Length::Span(Duration(1)), |_| {});
    assert_eq!((samples.len(), counts.sent, counts.answered), (1, 1, 1));
}

#[test]
fn a_stall_counts_against_every_message_that_the_plan_had_in_it() {
    const MS: u64 = 1_000_000;
    let mirror = Mirror {
        is_reliable: true,
        ..Mirror::default()
    };
    let stalls_once = |now: u64| {
        // Long after the warm-up, and once.
        if now >= 1_100 * MS && mirror.stalled_until.get() == 0 {
            mirror.stalled_until.set(now + 10 * MS);
        }
    };
    let every = Pace::Every(Duration(100_000));
    let (samples, counts) = run(&mirror, every, Length::Span(Duration(1_000 * MS)), stalls_once);
    assert_eq!((counts.planned, counts.sent, counts.answered), (10_000, 10_000, 10_000));
    let late = samples.iter().filter(|&&ns| ns > MS).count();
    // 10 ms of a plan with 10 a millisecond; those of its last millisecond waited for less than one.
    assert!((85..=95).contains(&late), "{late} waited for more than a millisecond");

    let mirror = Mirror {
        is_reliable: true,
        ..Mirror::default()
    };
    let stalls_once = |now: u64| {
        if now >= 1_100 * MS && mirror.stalled_until.get() == 0 {
            mirror.stalled_until.set(now + 10 * MS);
        }
    };
    let (samples, _) = run(&mirror, Pace::PingPong, Length::Span(Duration(1_000 * MS)), stalls_once);
    let late = samples.iter().filter(|&&ns| ns > MS).count();
    assert_eq!(late, 1, "the closed loop hides the stall from all but one");
}

#[test]
fn what_a_carrier_loses_for_good_is_counted_and_the_loop_goes_on() {
    for pace in [Pace::PingPong, Pace::Every(Duration(100_000))] {
        let mirror = Mirror {
            loses: Some(1_500),
            ..Mirror::default()
        };
        let (samples, counts) = run(&mirror, pace, Length::Trips(1_000), |_| ());
        assert_eq!(samples.len() as u64, counts.answered);
        assert_eq!(counts.sent - counts.answered, 1, "{counts:?}");
    }
}

#[test]
fn a_carrier_that_repairs_and_does_not_is_an_error() {
    let mirror = Mirror {
        is_reliable: true,
        stalled_until: Cell::new(u64::MAX),
        ..Mirror::default()
    };
    let time = Cell::new(1_000_000_000);
    let clock = || {
        time.set(time.get() + 1_000_000);
        Timestamp(time.get())
    };
    let mut near = RoundTrips::new(&mirror, clock, SIZE, Pace::PingPong, Length::Trips(1), |_: Duration| ());
    let error = (0..1_000_000).find_map(|_| near.turn().err()).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

fn linked(is_tcp: bool, end: LinkEnd) -> AnyLink {
    let config = if is_tcp {
        let (user, password) = (UserName::new(b"lat").unwrap(), Password::new(b"lat").unwrap());
        let session = SessionName::new(b"LAT").unwrap();
        LinkConfig::Tcp(TcpLinkConfig {
            max_message: SIZE,
            ..TcpLinkConfig::new(end, user, password, session)
        })
    } else {
        let mut ltp = ltp::Config::new(SessionId(1), 64, SIZE);
        // Neighbours take the processor away.
        ltp.dead_after = 2_000;
        let carrier = CarrierConfig::Udp(UdpOptions::default());
        LinkConfig::Ltp(LtpLinkConfig {
            end,
            ltp,
            carrier,
            second: None,
        })
    };
    AnyLink::new(&config, 1, Resume::START).unwrap()
}

/// The kinds of ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tcp,
    Udp,
    TcpLink,
    Ltp,
}

const KINDS: [Kind; 4] = [Kind::Tcp, Kind::Udp, Kind::TcpLink, Kind::Ltp];

/// How to make both ends of a kind over loopback, each on its thread.
fn makers(kind: Kind) -> [Box<dyn FnOnce() -> AnyEnd + Send>; 2] {
    match kind {
        Kind::Tcp => {
            let (near, far) = floor::tcp_pair(&TcpOptions::tuned()).unwrap();
            [near, far].map(|stream| Box::new(move || AnyEnd::Tcp(BareTcp::new(stream))) as _)
        }
        Kind::Udp => {
            let (near, far) = floor::udp_pair(&UdpOptions::default()).unwrap();
            let bare = |socket| AnyEnd::Datagrams(BareDatagrams::new(Carrier::Udp(socket)));
            [near, far].map(|socket| Box::new(move || bare(socket)) as _)
        }
        Kind::TcpLink | Kind::Ltp => {
            let is_tcp = kind == Kind::TcpLink;
            let (tell, told) = mpsc::channel();
            let far = move || {
                let local = SocketAddr::from(([127, 0, 0, 1], 0));
                let far = linked(is_tcp, LinkEnd::Listen { local });
                tell.send(far.local_addr().unwrap()).unwrap();
                AnyEnd::Link(Linked::new(far))
            };
            let near = move || {
                let peer = told.recv().unwrap();
                AnyEnd::Link(Linked::new(linked(is_tcp, LinkEnd::Connect { peer, local: None })))
            };
            [Box::new(near), Box::new(far)]
        }
    }
}

/// A clock that all threads share.
fn clock() -> impl Fn() -> Timestamp + Copy + Send {
    let start = Instant::now();
    move || Timestamp(1 + u64::try_from(start.elapsed().as_nanos()).unwrap())
}

#[test]
fn every_end_goes_round_by_turns_and_in_two_threads() {
    let cpus = cpu::permitted();
    let placements = [Placement::One(cpus[0]), Placement::Two(cpus[0], *cpus.last().unwrap())];
    let clock = clock();
    for (placement, kind) in placements
        .iter()
        .flat_map(|&placement| KINDS.map(|kind| (placement, kind)))
    {
        let [near, far] = makers(kind);
        let mut samples = 0;
        let record = |_: Duration| samples += 1;
        let near = Part {
            make: || {
                Ok(RoundTrips::new(
                    near(),
                    clock,
                    SIZE,
                    Pace::PingPong,
                    Length::Trips(50),
                    record,
                ))
            },
            read: |near: RoundTrips<_, _, _>| near.counts(),
        };
        let far = Part {
            make: || Ok(Echo::new(far(), clock, SIZE)),
            read: drop,
        };
        let (counts, ()) = both(near, far, placement, Idle::Backoff, || false).unwrap();
        assert_eq!((counts.answered, samples), (50, 50), "{kind:?} {placement:?}");
    }
}

#[test]
fn a_stream_arrives_whole_where_the_carrier_repairs() {
    let clock = clock();
    for kind in KINDS {
        let [near, far] = makers(kind);
        let mut ways = 0;
        let near = Part {
            make: || Ok(Stream::new(near(), clock, SIZE, None, Duration::from_millis(20))),
            read: |near: Stream<_, _>| near.sent(),
        };
        let far = Part {
            make: || Ok(Sink::new(far(), clock, SIZE, |_: Duration| ways += 1)),
            read: |far: Sink<_, _, _>| far.received().0,
        };
        let (sent, received) = both(near, far, Placement::One(cpu::permitted()[0]), Idle::Spin, || false).unwrap();
        assert!(received > 0);
        assert!(kind == Kind::Udp || received == sent, "{kind:?}: {received} of {sent}");
        assert_eq!(ways, received);
    }
}
