//! AF_XDP between two network namespaces joined by a veth pair.
//!
//! Needs root, so `cargo test` leaves it out; `.ci/extended afxdp` runs it. The namespaces have no names: they, and what is
//! in them, are gone with the thread that made them.

#[path = "../src/allocation.rs"]
mod allocation;
mod namespaces;

use allocation::allocations;
use namespaces::{FAR, NEAR, Namespaces, ip};
use net::link::{Link, LinkCounters, LinkEnd, LinkEvent, LtpLink, Resume, RoceLink, RoceLinkConfig};
use net::udp::{UdpPeer, UdpSocket};
use net::xdp::{Mode, XdpPeer, XdpTable};
use net::{CarrierConfig, Datagram, SetupError, UdpOptions};
use proto::ltp::{Config, Role};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use types::{SessionId, Timestamp};

const VENUE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(FAR, 7_201));

fn table(interface: &str) -> XdpTable {
    XdpTable {
        interface: interface.to_owned(),
        queue: 0,
        mode: Mode::Auto,
        neighbour: None,
        frames: 128,
        huge_pages: false,
        fallback: false,
    }
}

/// An end in the near namespace that knows its peer.
fn connect(peer: SocketAddr, local: Option<SocketAddr>) -> Result<XdpPeer, SetupError> {
    let end = LinkEnd::Connect { peer, local };
    let table = XdpTable {
        neighbour: Some("kernel".to_owned()),
        ..table("tgv0")
    };
    XdpPeer::open(&table.check(end).unwrap(), end)
}

/// An end in the far namespace that learns its peer.
fn listen(local: SocketAddr) -> Result<XdpPeer, SetupError> {
    let end = LinkEnd::Listen { local };
    XdpPeer::open(&table("tgv1").check(end).unwrap(), end)
}

/// Looks until something is there. A veth delivers in the sender's call or soon after, on another CPU.
fn wait<D: Datagram>(end: &mut D) -> Vec<u8> {
    let (start, mut buffer) = (Instant::now(), [0; 2_000]);
    loop {
        if let Some(length) = end.recv(&mut buffer).unwrap() {
            return buffer[..length].to_vec();
        }
        assert!(start.elapsed() < PATIENCE, "nothing comes");
    }
}

fn send<D: Datagram>(end: &mut D, datagram: &[u8]) {
    assert!(end.send(datagram).unwrap());
    end.flush().unwrap();
}

/// A bound on what hangs, not a measure of anything.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn datagrams_of_every_length_pass_both_ways() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let mut far = namespaces.in_far(|| listen(VENUE)).unwrap();
    let mut near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
    println!("{near}\n{far}");
    assert!(!far.send(b"to nobody yet").unwrap());
    for (number, length) in (0..=u8::MAX).zip((0..=1_472).step_by(16)) {
        let payload = vec![number; length];
        send(&mut near, &payload);
        assert_eq!(wait(&mut far), payload);
        assert!(far.reply(&payload).unwrap());
        far.flush().unwrap();
        assert_eq!(wait(&mut near), payload);
    }
    assert!(!far.is_from_peer());
    far.accept_peer();
    assert!(far.is_from_peer());
    send(&mut far, b"welcome");
    assert_eq!(wait(&mut near), b"welcome");
    assert!(near.send(&[0; 1_473]).is_err(), "longer than the MTU");
    assert_eq!((near.dropped(), far.dropped()), (0, 0));
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn two_cpus_bounce_a_datagram_and_the_rings_always_have_room() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    const ROUND_TRIPS: u32 = 50_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            Namespaces::enter(&namespaces.far);
            let mut far = listen(VENUE).unwrap();
            let mut seen = 0;
            while seen < ROUND_TRIPS {
                seen = u32::from_le_bytes(wait(&mut far).try_into().unwrap()) + 1;
                // Lost or not: the other side asks again.
                let _ = far.reply(&seen.to_le_bytes()).unwrap();
                far.flush().unwrap();
            }
        });
        let mut near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
        let start = Instant::now();
        for number in 0..ROUND_TRIPS {
            send(&mut near, &number.to_le_bytes());
            let mut answer = [0; 4];
            // It asks again until the far end is open.
            for turn in 1_u64.. {
                if near.recv(&mut answer).unwrap().is_some() && u32::from_le_bytes(answer) > number {
                    break;
                }
                if turn % 1_000_000 == 0 {
                    send(&mut near, &number.to_le_bytes());
                }
                assert!(start.elapsed() < PATIENCE, "{number} is not answered");
            }
        }
    });
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn many_sends_leave_in_one_flush_and_frames_come_back() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let mut far = namespaces.in_far(|| listen(VENUE)).unwrap();
    let mut near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
    let mut number = 0_u32;
    for _ in 0..50 {
        let first = number;
        // As many frames as there are to send.
        while near.send(&number.to_le_bytes()).unwrap() {
            number += 1;
        }
        assert_eq!(number - first, 64);
        near.flush().unwrap();
        for expected in first..number {
            assert_eq!(wait(&mut far), expected.to_le_bytes());
        }
    }
    assert_eq!(far.dropped(), 0);
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn the_kernels_udp_and_ours_understand_each_other() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let options = UdpOptions::default();
    let mut far = namespaces.in_far(|| UdpPeer::learn(VENUE, &options)).unwrap();
    let mut near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
    for length in [0, 1, 5, 18, 19, 64, 1_472] {
        let payload = vec![0xa5; length];
        send(&mut near, &payload);
        // The kernel has looked at our checksums.
        assert_eq!(wait(&mut far), payload);
        assert!(far.reply(&payload).unwrap());
        assert_eq!(wait(&mut near), payload);
    }
    assert_eq!(near.counters().total(), 0);
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn what_is_for_another_port_still_reaches_the_kernel() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let options = UdpOptions::default();
    let _ours = namespaces.in_far(|| listen(VENUE)).unwrap();
    let other = SocketAddr::from((FAR, 7_202));
    let mut kernels = namespaces.in_far(|| UdpPeer::learn(other, &options)).unwrap();
    let mut near = namespaces.in_near(|| UdpPeer::connect(other, None, &options)).unwrap();
    send(&mut near, b"for the kernel");
    assert_eq!(wait(&mut kernels), b"for the kernel");
    // TCP and ICMP too.
    let listener = namespaces.in_far(|| std::net::TcpListener::bind(VENUE)).unwrap();
    let mut client = namespaces.in_near(|| std::net::TcpStream::connect(VENUE)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    std::io::Write::write_all(&mut server, b"hello").unwrap();
    let mut greeting = [0; 5];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"hello");
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn a_closed_end_gives_its_port_back_to_the_kernel() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let options = UdpOptions::default();
    // Another end keeps the program at the interface.
    let _kept = namespaces.in_far(|| listen(SocketAddr::from((FAR, 7_202)))).unwrap();
    let mut near = namespaces.in_near(|| UdpPeer::connect(VENUE, None, &options)).unwrap();
    let mut ours = namespaces.in_far(|| listen(VENUE)).unwrap();
    send(&mut near, b"first");
    assert_eq!(wait(&mut ours), b"first");
    drop(ours);
    let mut kernels = namespaces.in_far(|| UdpPeer::learn(VENUE, &options)).unwrap();
    send(&mut near, b"second");
    assert_eq!(wait(&mut kernels), b"second");
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn strangers_and_damaged_datagrams_are_dropped_and_counted() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let options = UdpOptions::default();
    let ours = SocketAddr::from((NEAR, 7_300));
    let mut venue = namespaces
        .in_far(|| UdpPeer::connect(ours, Some(VENUE), &options))
        .unwrap();
    let mut near = namespaces.in_near(|| connect(VENUE, Some(ours))).unwrap();
    let stranger = namespaces
        .in_far(|| UdpSocket::bind(SocketAddr::from((FAR, 0)), &options))
        .unwrap();
    assert!(stranger.send_to(b"spoof", ours).unwrap());
    // UDP of our own making: right but for its checksum.
    let raw = namespaces
        .in_far(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)))
        .unwrap();
    let datagram = [&[0x1c, 0x21, 0x1c, 0x84, 0, 13, 0xde, 0xad], &b"order"[..]].concat();
    raw.send_to(&datagram, &SocketAddr::from((NEAR, 0)).into()).unwrap();
    send(&mut venue, b"report");
    assert_eq!(wait(&mut near), b"report");
    let counters = near.counters();
    assert_eq!((counters.strangers, counters.bad_checksum, counters.total()), (1, 1, 2));
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn ends_share_a_queue_and_none_starves_another() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let options = UdpOptions::default();
    let other = SocketAddr::from((FAR, 7_202));
    let (mut first, mut second) = namespaces.in_far(|| (listen(VENUE).unwrap(), listen(other).unwrap()));
    let senders = [VENUE, other].map(|peer| namespaces.in_near(|| UdpPeer::connect(peer, None, &options)).unwrap());
    let [mut to_first, mut to_second] = senders;
    // More than the queue has frames to receive, for an end that does not look.
    for _ in 0..100 {
        send(&mut to_second, b"flood");
        send(&mut to_first, b"order");
        assert_eq!(wait(&mut first), b"order");
    }
    let overflowed = first.counters().overflowed;
    assert!((80..=84).contains(&overflowed), "{overflowed} of 100 found no room");
    assert_eq!(wait(&mut second), b"flood");

    let end = LinkEnd::Listen {
        local: SocketAddr::from((FAR, 7_203)),
    };
    let unlike = XdpTable {
        frames: 256,
        ..table("tgv1")
    };
    let refused = namespaces
        .in_far(|| XdpPeer::open(&unlike.check(end).unwrap(), end))
        .unwrap_err();
    assert!(refused.to_string().contains("same mode, frames"), "{refused}");
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn each_queue_is_of_one_thread_and_the_program_of_all() {
    let Some(namespaces) = Namespaces::new(2) else { return };
    let _first = namespaces.in_far(|| listen(VENUE)).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            Namespaces::enter(&namespaces.far);
            let refused = listen(SocketAddr::from((FAR, 7_202))).unwrap_err();
            assert!(refused.to_string().contains("give each shard its own"), "{refused}");
            let end = LinkEnd::Listen {
                local: SocketAddr::from((FAR, 7_203)),
            };
            let second = XdpTable {
                queue: 1,
                ..table("tgv1")
            };
            XdpPeer::open(&second.check(end).unwrap(), end).unwrap();
        });
        other.join().unwrap();
    });
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn an_interface_without_zero_copy_says_so() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let end = LinkEnd::Listen { local: VENUE };
    let wanted = XdpTable {
        mode: Mode::ZeroCopy,
        ..table("tgv1")
    };
    let refused = namespaces
        .in_far(|| XdpPeer::open(&wanted.check(end).unwrap(), end))
        .unwrap_err();
    assert!(
        refused.to_string().contains("this driver has no zero copy"),
        "{refused}"
    );
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn a_probe_finds_what_there_is_disturbs_nobody_and_leaves_no_trace() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let probe = |interface: &str, end: LinkEnd| {
        let neighbour = matches!(end, LinkEnd::Connect { .. }).then(|| "kernel".to_owned());
        let table = XdpTable {
            neighbour,
            ..table(interface)
        };
        let found = CarrierConfig::Xdp(table.check(end).unwrap()).probe(end);
        found
            .map(|line| line.expect("a line"))
            .map_err(|error| error.to_string())
    };
    let to = |peer| LinkEnd::Connect { peer, local: None };
    let all_is_there = || {
        let near = namespaces.in_near(|| probe("tgv0", to(VENUE))).unwrap();
        let far = namespaces
            .in_far(|| probe("tgv1", LinkEnd::Listen { local: VENUE }))
            .unwrap();
        for (line, which) in [(near, "tgv0 (10.77.0.1)"), (far, "tgv1 (10.77.0.2)")] {
            let wanted = format!("AF_XDP on {which} queue 0: interface, address, memory and privileges are there");
            assert!(line.starts_with(&wanted), "{line}");
        }
    };
    all_is_there();
    let attached = namespaces.in_near(|| ip(&["link", "show", "tgv0"]));
    assert!(!attached.contains("xdp"), "{attached}");
    // While a link has hook, queue and port.
    let mut far = namespaces.in_far(|| listen(VENUE)).unwrap();
    let mut near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
    all_is_there();
    send(&mut near, b"order");
    assert_eq!(wait(&mut far), b"order");
    for (interface, why) in [
        ("none0", "looking for interface none0: "),
        ("lo", "looking for interface lo: "),
    ] {
        let error = namespaces.in_near(|| probe(interface, to(VENUE))).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
    namespaces.in_near(|| ip(&["link", "set", "tgv0", "down"]));
    let error = namespaces.in_near(|| probe("tgv0", to(VENUE))).unwrap_err();
    let why = "reserving a UDP port on tgv0 for 10.77.0.2:7201: ";
    assert!(error.starts_with(why), "{error}");
    namespaces.in_near(|| ip(&["addr", "flush", "dev", "tgv0"]));
    let error = namespaces.in_near(|| probe("tgv0", to(VENUE))).unwrap_err();
    assert!(error.starts_with("looking for an IPv4 address of tgv0: "), "{error}");
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn a_neighbour_that_does_not_answer_is_an_error_that_says_so() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let nobody = SocketAddr::from((Ipv4Addr::new(10, 77, 0, 99), 7_201));
    let refused = namespaces.in_near(|| connect(nobody, None)).unwrap_err();
    assert!(refused.to_string().contains("does not answer ARP"), "{refused}");
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn a_process_that_is_killed_leaves_no_program() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let has_program = || namespaces.in_far(|| ip(&["link", "show", "tgv1"])).contains("xdp");
    assert!(!has_program());
    let mut child = namespaces.in_far(|| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "holds_an_end_until_it_is_killed"])
            .env("TICKGATE_HOLDS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    });
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        said.any(|line| line.unwrap().contains("holding")),
        "the child has an end"
    );
    assert!(has_program());
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while has_program() {
        assert!(start.elapsed() < PATIENCE, "the program is still there");
    }
    namespaces.in_far(|| listen(VENUE)).unwrap();
}

/// The child of the test above; alone it does nothing.
#[test]
#[ignore = "part of a_process_that_is_killed_leaves_no_program"]
fn holds_an_end_until_it_is_killed() {
    if std::env::var_os("TICKGATE_HOLDS").is_none() {
        return;
    }
    let _end = listen(VENUE).unwrap();
    println!("holding");
    // Until it is killed, or its parent is gone.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn ltp_carries_its_messages_over_it() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let config = Config::new(SessionId(1), 64, 64);
    let far = namespaces.in_far(|| listen(VENUE)).unwrap();
    let near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
    let mut far = LtpLink::new(far, Role::Acceptor, &config, 1, Resume::START).unwrap();
    let mut near = LtpLink::new(near, Role::Initiator, &config, 1, Resume::START).unwrap();
    let (start, mut buffer, mut received) = (Instant::now(), [0; 64], 0_u32);
    let mut now = Timestamp(1_000_000_000);
    let mut sent = 0_u32;
    while received < 10_000 {
        assert!(start.elapsed() < PATIENCE, "{:?} {:?}", near.counters(), far.counters());
        now = now + types::Duration::from_micros(10);
        while sent < 10_000 && near.room() > 0 {
            near.send(&sent.to_le_bytes(), 0);
            sent += 1;
        }
        near.flush(now, 0);
        while let Some(event) = far.poll(now, &mut buffer) {
            if let LinkEvent::Message { length, .. } = event {
                assert_eq!(buffer[..length], received.to_le_bytes());
                received += 1;
            }
        }
        far.flush(now, 0);
        while near.poll(now, &mut buffer).is_some() {}
    }
    let LinkCounters { malformed, downs, .. } = far.counters();
    assert_eq!((malformed, downs), (0, 0));
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn a_message_over_it_allocates_nothing_at_either_end() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let config = Config::new(SessionId(1), 64, 64);
    let far = namespaces.in_far(|| listen(VENUE)).unwrap();
    let near = namespaces.in_near(|| connect(VENUE, None)).unwrap();
    let mut far = LtpLink::new(far, Role::Acceptor, &config, 1, Resume::START).unwrap();
    let mut near = LtpLink::new(near, Role::Initiator, &config, 1, Resume::START).unwrap();
    let (start, mut now, mut received) = (Instant::now(), Timestamp(1_000_000_000), 0);
    let mut turn = |near: &mut LtpLink<XdpPeer>, far: &mut LtpLink<XdpPeer>| {
        assert!(start.elapsed() < PATIENCE, "{:?} {:?}", near.counters(), far.counters());
        now = now + types::Duration::from_micros(10);
        let (mut buffer, mut count) = ([0; 64], 0);
        for link in [near, far] {
            while let Some(event) = link.poll(now, &mut buffer) {
                count += usize::from(matches!(event, LinkEvent::Message { .. }));
            }
            link.flush(now, 0);
        }
        count
    };
    while !(near.is_up() && far.is_up()) {
        turn(&mut near, &mut far);
    }
    let count = allocations(|| {
        for number in 1_usize..=1_000 {
            near.send(&[7; 48], 0);
            far.send(&[8; 64], 0);
            while received < 2 * number {
                received += turn(&mut near, &mut far);
            }
        }
    });
    assert_eq!((received, count), (2_000, 0));
}

/// One end of a link over RoCEv2; both ends of the packets know each other.
fn roce(carrier: CarrierConfig, end: LinkEnd, addresses: [IpAddr; 2]) -> RoceLink {
    let [local, peer] = addresses;
    let config = RoceLinkConfig {
        carrier,
        dscp: 26,
        ..RoceLinkConfig::new(end, local, peer, 64, 64)
    };
    RoceLink::new(&config, 1, Resume::START).unwrap()
}

fn roce_over_xdp(interface: &str, local: Ipv4Addr, peer: Ipv4Addr) -> CarrierConfig {
    let port = |ip| SocketAddr::from((ip, proto::roce::wire::UDP_PORT));
    let table = XdpTable {
        neighbour: Some("kernel".to_owned()),
        ..table(interface)
    };
    let end = LinkEnd::Connect {
        peer: port(peer),
        local: Some(port(local)),
    };
    CarrierConfig::Xdp(table.check(end).unwrap())
}

/// Two ends, each in its namespace, and all that they have told.
struct RocePair<'a> {
    namespaces: &'a Namespaces,
    near: RoceLink,
    far: RoceLink,
    now: Timestamp,
    start: Instant,
    sent: u32,
    received: u32,
    events: Vec<LinkEvent>,
}

impl<'a> RocePair<'a> {
    fn new(namespaces: &'a Namespaces, carriers: [CarrierConfig; 2], [near, far]: [IpAddr; 2]) -> Self {
        let venue = SocketAddr::new(far, 7_201);
        let connect = LinkEnd::Connect {
            peer: venue,
            local: None,
        };
        Self {
            far: namespaces.in_far(|| roce(carriers[1], LinkEnd::Listen { local: venue }, [far, near])),
            near: namespaces.in_near(|| roce(carriers[0], connect, [near, far])),
            namespaces,
            now: Timestamp(1_000_000_000),
            start: Instant::now(),
            sent: 0,
            received: 0,
            events: Vec::new(),
        }
    }

    fn turn(&mut self) {
        assert!(self.start.elapsed() < PATIENCE, "{:?}", self.events);
        self.now = self.now + types::Duration::from_micros(10);
        let (now, mut buffer) = (self.now, [0; 64]);
        self.namespaces.in_near(|| {
            while let Some(event) = self.near.poll(now, &mut buffer) {
                self.events.push(event);
            }
            self.near.flush(now, 0);
        });
        self.namespaces.in_far(|| {
            while let Some(event) = self.far.poll(now, &mut buffer) {
                if let LinkEvent::Message { length, .. } = event {
                    assert_eq!(buffer[..length], self.received.to_le_bytes());
                    self.received += 1;
                }
            }
            self.far.flush(now, 0);
        });
    }

    fn pass(&mut self, count: u32) {
        while self.received < count {
            while self.sent < count && self.near.room() > 0 {
                self.near.send(&self.sent.to_le_bytes(), 0);
                self.sent += 1;
            }
            self.turn();
        }
    }
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn rocev2_carries_its_messages_over_it_and_to_a_socket_of_the_kernel() {
    let socket = || CarrierConfig::Udp(UdpOptions::default());
    let cases = [
        [roce_over_xdp("tgv0", NEAR, FAR), roce_over_xdp("tgv1", FAR, NEAR)],
        [roce_over_xdp("tgv0", NEAR, FAR), socket()],
        [socket(), roce_over_xdp("tgv1", FAR, NEAR)],
    ];
    for carriers in cases {
        let Some(namespaces) = Namespaces::new(1) else { return };
        let mut pair = RocePair::new(&namespaces, carriers, [NEAR.into(), FAR.into()]);
        pair.pass(10_000);
        assert_eq!(pair.events, [LinkEvent::Up]);
        for link in [&pair.near, &pair.far] {
            let LinkCounters { malformed, foreign, .. } = link.counters();
            assert_eq!((malformed, foreign), (0, 0));
        }
    }
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn rocev2_speaks_ipv6() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let add = |address: &str, interface| ip(&["addr", "add", address, "dev", interface, "nodad"]);
    namespaces.in_near(|| add("fd00:77::1/64", "tgv0"));
    namespaces.in_far(|| add("fd00:77::2/64", "tgv1"));
    let socket = CarrierConfig::Udp(UdpOptions::default());
    let addresses = ["fd00:77::1", "fd00:77::2"].map(|ip| ip.parse().unwrap());
    let mut pair = RocePair::new(&namespaces, [socket, socket], addresses);
    pair.pass(10_000);
    assert_eq!(pair.events, [LinkEvent::Up]);
    assert_eq!(pair.far.counters().malformed, 0);
}

#[test]
#[ignore = "makes network namespaces: run by .ci/extended afxdp"]
fn rocev2_loses_nothing_when_an_interface_goes_away_for_a_while() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    let socket = CarrierConfig::Udp(UdpOptions::default());
    let mut pair = RocePair::new(&namespaces, [socket, socket], [NEAR.into(), FAR.into()]);
    pair.pass(1_000);
    namespaces.in_far(|| ip(&["link", "set", "tgv1", "down"]));
    while pair.near.room() > 0 {
        pair.near.send(&pair.sent.to_le_bytes(), 0);
        pair.sent += 1;
    }
    while pair.events.len() < 2 {
        pair.turn();
    }
    assert!(matches!(pair.events[1], LinkEvent::Down(_)));
    namespaces.in_far(|| ip(&["link", "set", "tgv1", "up"]));
    pair.start = Instant::now();
    pair.pass(3_000);
    assert_eq!(pair.events.last(), Some(&LinkEvent::Up));
}
