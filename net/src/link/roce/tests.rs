//! A gateway and a venue on loopback. Sockets are real; time is made up, and moves 10 µs a turn.

use super::*;
use crate::allocation::allocations;
use crate::link::LinkEnd;
use proto::roce::wire::{NakCode, Opcode, Packet, Reth};
use proto::roce::{Operation, Path, Remote, wire};
use socket::{Header, RoceSocket};
use std::collections::HashSet;
use std::net::{IpAddr, UdpSocket};
use types::Duration;

const GATEWAY: usize = 0;
const VENUE: usize = 1;

struct Loop {
    now: Timestamp,
    /// Of the loopback network, so that tests at the same time have addresses of their own: there is one port.
    network: u8,
    change: fn(&mut RoceLinkConfig),
    ends: [Option<RoceLink>; 2],
    events: [Vec<LinkEvent>; 2],
    messages: [Vec<Vec<u8>>; 2],
    /// What each end has sent so far: its journal. Empty: it has none.
    journals: [Vec<Vec<u8>>; 2],
}

impl Loop {
    fn new(network: u8) -> Self {
        Self::with(network, |_| {})
    }

    fn with(network: u8, change: fn(&mut RoceLinkConfig)) -> Self {
        let mut pair = Self {
            now: Timestamp(1_000_000_000),
            network,
            change,
            ends: [None, None],
            events: [Vec::new(), Vec::new()],
            messages: [Vec::new(), Vec::new()],
            journals: [Vec::new(), Vec::new()],
        };
        pair.start(VENUE, 1, Resume::START);
        pair.start(GATEWAY, 2, Resume::START);
        pair
    }

    fn config(&self, index: usize) -> RoceLinkConfig {
        let ip = |index: usize| IpAddr::from([127, 91, self.network, [1, 2][index]]);
        let venue = SocketAddr::new(ip(VENUE), 9_000);
        let end = match index {
            VENUE => LinkEnd::Listen { local: venue },
            _ => LinkEnd::Connect {
                peer: venue,
                local: None,
            },
        };
        let mut config = RoceLinkConfig::new(end, ip(index), ip(1 - index), 16, 64);
        (self.change)(&mut config);
        config
    }

    fn start(&mut self, index: usize, seed: u64, resume: Resume) {
        let config = self.config(index);
        self.start_with(index, &config, seed, resume);
    }

    fn start_with(&mut self, index: usize, config: &RoceLinkConfig, seed: u64, resume: Resume) {
        self.ends[index] = None;
        self.ends[index] = Some(RoceLink::new(config, seed, resume).unwrap());
    }

    fn end(&mut self, index: usize) -> &mut RoceLink {
        self.ends[index].as_mut().expect("it runs")
    }

    fn turn(&mut self, index: usize) {
        let Some(end) = &mut self.ends[index] else { return };
        let mut buffer = [0; 64];
        while let Some(event) = end.poll(self.now, &mut buffer) {
            match event {
                LinkEvent::Message { length, .. } => self.messages[index].push(buffer[..length].to_vec()),
                LinkEvent::Recall { from, to } => {
                    self.events[index].push(event);
                    for number in from.0..to.0 {
                        let place = usize::try_from(number - 1).unwrap();
                        match self.journals[index].get(place) {
                            Some(message) => end.recalled(SequenceNumber(number), message),
                            None => end.not_recalled(SequenceNumber(number)),
                        }
                    }
                }
                other => self.events[index].push(other),
            }
        }
        end.flush(self.now, u64::MAX);
    }

    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            self.turn(GATEWAY);
            self.turn(VENUE);
            self.now = self.now + Duration::from_micros(10);
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..400_000 {
            if is_so(self) {
                return;
            }
            self.turns(1);
        }
        panic!("{what}: not within 4 s; {:?}", self.events);
    }

    fn until_up(&mut self) {
        self.until("up", |pair| (0..2).all(|index| pair.end(index).is_up()));
    }

    fn send(&mut self, index: usize, numbers: std::ops::Range<u8>) {
        for number in numbers {
            self.until("room", |pair| pair.end(index).room() > 0);
            self.end(index).send(&message(number), 0);
            self.journals[index].push(message(number));
        }
    }

    fn until_received(&mut self, index: usize, count: usize) {
        self.until("messages", |pair| pair.messages[index].len() >= count);
    }
}

fn by_send(config: &mut RoceLinkConfig) {
    config.operation = RoceOperation::Send;
}

fn message(number: u8) -> Vec<u8> {
    vec![number; 1 + usize::from(number) % 64]
}

fn messages(numbers: std::ops::Range<u8>) -> Vec<Vec<u8>> {
    numbers.map(message).collect()
}

#[test]
fn messages_pass_both_ways_whatever_their_length() {
    pass_both_ways(Loop::new(1));
}

#[test]
fn the_same_by_send() {
    pass_both_ways(Loop::with(13, by_send));
}

fn pass_both_ways(mut pair: Loop) {
    pair.until_up();
    for number in 0..200 {
        pair.send(GATEWAY, number..number + 1);
        pair.send(VENUE, number..number + 1);
    }
    pair.until_received(VENUE, 200);
    pair.until_received(GATEWAY, 200);
    assert_eq!(pair.messages, [messages(0..200), messages(0..200)]);
    assert_eq!(pair.events, [[LinkEvent::Up], [LinkEvent::Up]]);
    pair.until("all acknowledged", |pair| pair.end(GATEWAY).room() == 16);
    let counters = pair.end(VENUE).counters();
    assert_eq!(
        (counters.sent, counters.received, counters.retransmitted),
        (200, 200, 0)
    );
    assert_eq!((counters.ups, counters.malformed), (1, 0));
    assert_eq!(
        pair.end(VENUE).view().roce.unwrap().send_rnr_err,
        0,
        "a receive is always posted"
    );
}

#[test]
fn an_end_that_takes_nothing_holds_the_other_back_and_loses_nothing() {
    let mut pair = Loop::new(2);
    pair.until_up();
    for number in 0..16 {
        pair.end(GATEWAY).send(&message(number), 0);
    }
    for _ in 0..50 {
        pair.turn(GATEWAY);
        pair.now = pair.now + Duration::from_micros(10);
    }
    assert_eq!(pair.end(GATEWAY).room(), 0);
    pair.turns(50);
    assert_eq!(pair.end(GATEWAY).room(), 16);
    pair.send(GATEWAY, 16..60);
    pair.until_received(VENUE, 60);
    assert_eq!(pair.messages[VENUE], messages(0..60));
}

fn with_a_long_ring(config: &mut RoceLinkConfig) {
    *config = RoceLinkConfig::new(config.end, config.local, config.peer, 4_096, config.max_message);
}

#[test]
fn a_flood_is_no_more_than_a_socket_holds_that_nobody_looks_at() {
    let mut pair = Loop::with(30, with_a_long_ring);
    pair.until_up();
    for index in [GATEWAY, VENUE] {
        for _ in 0..4_000 {
            pair.end(index).send(&[7; 64], 0);
        }
        let now = pair.now;
        pair.end(index).flush(now, u64::MAX);
    }
    for index in [GATEWAY, VENUE] {
        pair.until_received(index, 4_000);
        let counters = pair.end(index).counters();
        assert_eq!(
            (counters.retransmitted, counters.naks_sent, counters.duplicates),
            (0, 0, 0)
        );
    }
}

#[test]
fn what_was_received_is_told_before_a_flood_of_earlier_messages_has_left() {
    let mut pair = Loop::with(31, with_a_long_ring);
    pair.until_up();
    for _ in 0..4_000 {
        pair.end(VENUE).send(&[7; 64], 0);
    }
    let now = pair.now;
    pair.end(VENUE).flush(now, u64::MAX);
    pair.end(GATEWAY).send(b"order", 0);
    pair.until("it is acknowledged", |pair| pair.end(GATEWAY).room() == 4_096);
    let before = pair.messages[GATEWAY].len();
    assert!(before < 1_000, "{before} messages came first");
}

#[test]
fn a_ring_may_be_read_where_its_config_says_so() {
    let mut pair = Loop::with(22, |config| config.allows_reads = true);
    pair.until_up();
    let word = pair.end(VENUE).arena.slot(0);
    pair.end(VENUE).backend.put(word, b"in the ring.");
    for _ in 0..40 {
        let mut asked = 0;
        while pair.end(GATEWAY).post_read(12) {
            asked += 1;
        }
        assert_eq!(asked, pair.config(GATEWAY).queue_pair.reads);
        let mut out = [0; 12];
        for _ in 0..asked {
            pair.until("a read", |pair| pair.end(GATEWAY).take_read(&mut out));
            assert_eq!(&out, b"in the ring.");
        }
        assert!(pair.end(GATEWAY).has_read_all());
    }
    let mut pair = Loop::new(23);
    pair.until_up();
    assert!(pair.end(GATEWAY).post_read(12));
    pair.until("the session ends", |pair| pair.events[GATEWAY].len() > 1);
    let refused = DownReason::QueuePair {
        code: NakCode::RemoteAccessError,
        is_ours: false,
    };
    assert_eq!(pair.events[GATEWAY][1], LinkEvent::Down(refused));
}

#[test]
fn a_message_leaves_when_the_journal_has_reached_it() {
    let mut pair = Loop::new(3);
    pair.until_up();
    pair.end(GATEWAY).send(b"order", 100);
    for watermark in [99, 100] {
        let now = pair.now;
        pair.end(GATEWAY).flush(now, watermark);
        pair.turn(VENUE);
        assert_eq!(pair.messages[VENUE].len(), usize::from(watermark == 100));
    }
    // And is acknowledged soon, though nothing goes the other way.
    pair.turns(10);
    assert_eq!(pair.end(GATEWAY).room(), 16);
}

#[test]
fn either_end_may_restart_and_each_message_comes_once() {
    for (restarted, change) in [
        (GATEWAY, by_send as fn(&mut _)),
        (VENUE, by_send),
        (GATEWAY, |_| {}),
        (VENUE, |_| {}),
    ] {
        let mut pair = Loop::with(4, change);
        pair.until_up();
        pair.send(GATEWAY, 0..5);
        pair.send(VENUE, 0..5);
        pair.until_received(VENUE, 5);
        pair.until_received(GATEWAY, 5);
        // What was numbered and never left; what was handed out and never acknowledged.
        pair.end(restarted).send(&message(5), u64::MAX);
        pair.end(1 - restarted).send(&message(5), 0);
        let resume = Resume {
            next_send: SequenceNumber(7),
            next_receive: SequenceNumber(6),
        };
        pair.start(restarted, 50, resume);
        for number in 0..6 {
            pair.end(restarted)
                .restore(SequenceNumber(1 + u64::from(number)), &message(number));
        }
        pair.until_up();
        for index in [GATEWAY, VENUE] {
            pair.send(index, 6..40);
            pair.until_received(1 - index, 40);
        }
        assert_eq!(pair.messages, [messages(0..40), messages(0..40)]);
        let told = &pair.events[1 - restarted];
        assert_eq!((told[0], told[told.len() - 1]), (LinkEvent::Up, LinkEvent::Up));
    }
}

#[test]
fn a_peer_that_falls_silent_is_noticed_and_the_link_goes_on_where_it_was() {
    let mut pair = Loop::new(5);
    pair.until_up();
    pair.send(GATEWAY, 0..10);
    let end = pair.now + pair.config(GATEWAY).dead_after + Duration::from_millis(20);
    while pair.now < end {
        pair.turn(GATEWAY);
        pair.now = pair.now + Duration::from_micros(100);
    }
    assert_eq!(
        pair.events[GATEWAY][..2],
        [LinkEvent::Up, LinkEvent::Down(DownReason::Silent)]
    );
    pair.until_up();
    pair.send(GATEWAY, 10..30);
    pair.until_received(VENUE, 30);
    assert_eq!(pair.messages[VENUE], messages(0..30));
}

#[test]
fn without_messages_a_silent_peer_is_noticed_too() {
    let mut pair = Loop::new(6);
    pair.until_up();
    let end = pair.now + pair.config(GATEWAY).dead_after + Duration::from_millis(20);
    while pair.now < end {
        pair.turn(GATEWAY);
        pair.now = pair.now + Duration::from_micros(100);
    }
    assert_eq!(pair.events[GATEWAY][1], LinkEvent::Down(DownReason::Silent));
}

#[test]
fn a_peer_that_ends_is_noticed_at_once() {
    let mut pair = Loop::new(7);
    pair.until_up();
    pair.ends[GATEWAY] = None;
    pair.turns(200);
    assert_eq!(pair.events[VENUE], [LinkEvent::Up, LinkEvent::Down(DownReason::Closed)]);
}

#[test]
fn ends_that_are_not_configured_alike_both_say_so() {
    let mut pair = Loop::new(8);
    let config = pair.config(GATEWAY);
    let alike = [
        (RoceLinkConfig { session: 1, ..config }, RoceMismatch::Session),
        (
            RoceLinkConfig {
                max_message: 63,
                ..config
            },
            RoceMismatch::MaxMessage,
        ),
        (
            RoceLinkConfig {
                operation: RoceOperation::Send,
                ..config
            },
            RoceMismatch::Operation,
        ),
        (
            RoceLinkConfig {
                queue_pair: proto::roce::Config {
                    mtu: 256,
                    ..config.queue_pair
                },
                ..config
            },
            RoceMismatch::Mtu,
        ),
        (
            RoceLinkConfig {
                peer: IpAddr::from([127, 91, 8, 9]),
                ..config
            },
            RoceMismatch::Address,
        ),
    ];
    for (config, mismatch) in alike {
        pair.start(VENUE, 3, Resume::START);
        pair.start_with(GATEWAY, &config, 4, Resume::START);
        pair.events = [Vec::new(), Vec::new()];
        pair.turns(5_000);
        let told = [LinkEvent::Down(DownReason::Mismatched(mismatch))];
        assert_eq!(pair.events[VENUE], told);
        assert_eq!(pair.events[GATEWAY], told);
        assert!(
            pair.end(VENUE).counters().refused > 1,
            "it tries again, and says it once"
        );
    }
}

#[test]
fn rings_may_be_of_two_sizes() {
    for (gateway, venue, change) in [(5, 64, by_send as fn(&mut _)), (64, 5, |_| {}), (5, 64, |_| {})] {
        let mut pair = Loop::with(14, change);
        for (index, window) in [(GATEWAY, gateway), (VENUE, venue)] {
            let config = pair.config(index);
            let mut other = RoceLinkConfig::new(config.end, config.local, config.peer, window, 64);
            change(&mut other);
            pair.start_with(index, &other, 9 + window as u64, Resume::START);
        }
        pair.until_up();
        assert_eq!(pair.end(GATEWAY).room(), gateway);
        for index in [GATEWAY, VENUE] {
            pair.send(index, 0..200);
            pair.until_received(1 - index, 200);
        }
        assert_eq!(pair.messages, [messages(0..200), messages(0..200)]);
    }
}

#[test]
fn what_either_end_lost_comes_again_from_the_journal_and_then_what_is_new() {
    for (loser, change) in [(GATEWAY, by_send as fn(&mut _)), (GATEWAY, |_| {}), (VENUE, |_| {})] {
        let mut pair = Loop::with(15, change);
        pair.until_up();
        for index in [GATEWAY, VENUE] {
            pair.send(index, 0..200);
            pair.until_received(1 - index, 200);
        }
        // It comes back on another machine, with the first ten that it received, and all that it sent.
        pair.messages[loser].truncate(10);
        let resume = Resume {
            next_send: SequenceNumber(201),
            next_receive: SequenceNumber(11),
        };
        pair.start(loser, 77, resume);
        pair.send(1 - loser, 200..210);
        pair.until_received(loser, 210);
        assert_eq!(pair.messages[loser], messages(0..210));
        pair.send(loser, 200..210);
        pair.until_received(1 - loser, 210);
        assert_eq!(pair.messages[1 - loser], messages(0..210));
        let recalls = pair.events[1 - loser].iter();
        let recalls = recalls
            .filter(|event| matches!(event, LinkEvent::Recall { .. }))
            .count();
        assert!((2..20).contains(&recalls), "{recalls}");
    }
}

#[test]
fn what_the_journal_does_not_have_either_is_told_with_the_numbers_at_both_ends() {
    let mut pair = Loop::new(9);
    let resume = |next_send, next_receive| Resume {
        next_send: SequenceNumber(next_send),
        next_receive: SequenceNumber(next_receive),
    };
    let [wanted, oldest, next] = [5, 6, 10].map(SequenceNumber);
    let unresumable = LinkEvent::Down(DownReason::Unresumable { wanted, oldest, next });
    let gone = LinkEvent::Down(DownReason::Gone { wanted, oldest, next });
    for (holder, seed) in [(GATEWAY, 5), (VENUE, 7)] {
        pair.start(holder, seed, resume(10, 1));
        pair.start(1 - holder, seed + 1, resume(1, 5));
        pair.events = [Vec::new(), Vec::new()];
        pair.until("both have told it", |pair| {
            pair.events[holder].contains(&unresumable) && pair.events[1 - holder].contains(&gone)
        });
        let ups = |pair: &Loop| {
            pair.events[holder]
                .iter()
                .filter(|&&event| event == LinkEvent::Up)
                .count()
        };
        assert_eq!(ups(&pair), 1);
        pair.turns(10_000);
        assert_eq!(ups(&pair), 1, "from now on it is refused before it is up");
        assert_eq!(pair.events[holder].last(), Some(&unresumable));
    }
    // And what was never sent.
    pair.start(GATEWAY, 20, resume(1, 5));
    pair.start(VENUE, 21, resume(1, 1));
    pair.events = [Vec::new(), Vec::new()];
    pair.turns(5_000);
    let [wanted, oldest, next] = [5, 1, 1].map(SequenceNumber);
    assert_eq!(
        pair.events[VENUE],
        [LinkEvent::Down(DownReason::Unresumable { wanted, oldest, next })]
    );
    assert_eq!(
        pair.events[GATEWAY],
        [LinkEvent::Down(DownReason::Gone { wanted, oldest, next })]
    );
}

#[test]
fn an_owner_without_room_hears_what_makes_room_and_no_message() {
    for change in [by_send as fn(&mut RoceLinkConfig), |_| {}] {
        let mut pair = Loop::with(16, change);
        pair.until_up();
        pair.send(GATEWAY, 0..16);
        pair.send(VENUE, 0..16);
        // For longer than a silent peer is waited for.
        for _ in 0..100_000 {
            let now = pair.now;
            assert_eq!(pair.end(VENUE).poll_recall(now), None);
            pair.end(VENUE).flush(now, u64::MAX);
            pair.turn(GATEWAY);
            pair.now = pair.now + Duration::from_micros(10);
        }
        assert_eq!((pair.end(VENUE).room(), pair.end(GATEWAY).room()), (16, 0));
        assert_eq!(pair.events[GATEWAY], [LinkEvent::Up]);
        pair.until_received(VENUE, 16);
        assert_eq!(pair.messages, [messages(0..16), messages(0..16)]);
    }
}

#[test]
fn after_start_up_the_path_of_a_message_allocates_nothing() {
    for change in [by_send as fn(&mut RoceLinkConfig), |_| {}] {
        let mut pair = Loop::with(17, change);
        pair.until_up();
        let mut received = [0; 2];
        let count = allocations(|| {
            for number in 0..10_000_u64 {
                let mut buffer = [0; 64];
                for index in [GATEWAY, VENUE] {
                    let end = pair.ends[index].as_mut().expect("it runs");
                    while let Some(event) = end.poll(pair.now, &mut buffer) {
                        received[index] += u64::from(matches!(event, LinkEvent::Message { .. }));
                    }
                    if end.room() > 0 {
                        end.send(&number.to_le_bytes(), 0);
                    }
                    end.flush(pair.now, u64::MAX);
                }
                pair.now = pair.now + Duration::from_micros(10);
            }
        });
        assert_eq!(count, 0);
        assert!(received.iter().all(|&received| received > 9_000), "{received:?}");
    }
}

#[test]
fn strangers_and_damage_are_dropped_and_counted() {
    let mut pair = Loop::new(10);
    pair.until_up();
    let stranger = UdpSocket::bind("127.91.10.9:4791").unwrap();
    let venue = SocketAddr::new(pair.config(VENUE).local, wire::UDP_PORT);
    for length in [0, 3, 16, 60, 5_000] {
        stranger.send_to(&vec![7; length], venue).unwrap();
    }
    pair.send(GATEWAY, 0..3);
    pair.until_received(VENUE, 3);
    assert_eq!(pair.end(VENUE).counters().foreign, 5);
    assert_eq!(pair.events[VENUE], [LinkEvent::Up]);
}

#[test]
fn whoever_does_not_know_how_to_meet_disturbs_nobody() {
    use std::io::Write;
    let mut pair = Loop::new(11);
    pair.until_up();
    let mut stranger = std::net::TcpStream::connect("127.91.11.2:9000").unwrap();
    stranger.write_all(&[b'x'; 200]).unwrap();
    pair.turns(300);
    pair.send(GATEWAY, 0..3);
    pair.until_received(VENUE, 3);
    assert_eq!(pair.events, [[LinkEvent::Up], [LinkEvent::Up]]);
    assert_eq!(pair.end(VENUE).counters().malformed, 1);
}

/// Posts something as the gateway that its link would not, and gives what the venue says.
fn venue_hears(immediate: Option<u32>, length: usize, wanted: u64) -> LinkEvent {
    let mut pair = Loop::new(12);
    pair.until_up();
    let gateway = pair.end(GATEWAY);
    let to = gateway.session.as_ref().expect("it is up").ring();
    let offset = gateway.arena.outgoing(0);
    gateway.backend.put_number(offset, wanted);
    gateway.backend.put_number(offset + PREFIX, 99);
    let request = SendRequest {
        id: 0,
        operation: Operation::Write { to, immediate },
        offset,
        length,
        is_signaled: false,
    };
    let to_word = Remote {
        address: to.address + gateway.arena.word() as u64,
        ..to
    };
    let request = match immediate {
        Some(_) => request,
        None => SendRequest {
            operation: Operation::Write { to: to_word, immediate },
            ..request
        },
    };
    gateway.backend.post_send(request).unwrap();
    pair.until("the session ends", |pair| pair.events[VENUE].len() > 1);
    assert!(pair.messages[VENUE].is_empty());
    pair.events[VENUE][1]
}

#[test]
fn a_peer_that_breaks_the_rules_of_the_ring_ends_the_session() {
    let malformed = LinkEvent::Down(DownReason::Malformed);
    assert_eq!(venue_hears(Some(2), 20, 1), malformed, "another number than the next");
    assert_eq!(
        venue_hears(Some(1), 7, 1),
        malformed,
        "shorter than what comes before a message"
    );
    let false_ack = LinkEvent::Down(DownReason::FalseAck);
    assert_eq!(venue_hears(None, WORD, 2), false_ack, "wants more than was sent");
}

/// A packet as the gateway's end might send it next: an RDMA WRITE of eight bytes to the start of the venue's ring.
fn next_of_gateway(pair: &mut Loop) -> Packet<'static> {
    let gateway = pair.end(GATEWAY);
    let attributes = gateway.backend.pair.attributes().expect("it is connected");
    let Remote { address, key } = gateway.session.as_ref().expect("it is up").ring();
    Packet {
        opcode: Opcode::write(true, true, false),
        destination: attributes.peer_qpn,
        psn: attributes.send_psn,
        ack_request: true,
        is_backward_congestion: false,
        reth: Some(Reth {
            address: address.into(),
            remote_key: key.into(),
            length: 8.into(),
        }),
        acknowledgement: None,
        immediate: None,
        payload: &[0; 8],
    }
}

/// Sends the venue a packet from the gateway's address, as a device does: from a port of its own.
fn forge(pair: &Loop, packet: &Packet<'_>, damage: u8) {
    let config = pair.config(VENUE);
    let venue = config.ports()[0];
    let header = Header { class: 0, priority: 0 };
    let socket = RoceSocket::bind(SocketAddr::new(config.peer, 0), venue, header).unwrap();
    let mut bytes = [0; 1_200];
    let length = packet.encode(&mut bytes);
    let length = Path::new(socket.local_addr().unwrap(), venue).seal(&mut bytes, length);
    bytes[length - 1] ^= damage;
    assert!(socket.send(&bytes[..length]).unwrap());
}

#[test]
fn a_forged_packet_that_means_nothing_changes_nothing() {
    let mut pair = Loop::new(18);
    pair.until_up();
    let good = next_of_gateway(&mut pair);
    let other_queue_pair = Packet {
        destination: good.destination ^ 1,
        ..good
    };
    let of_the_past = Packet {
        psn: good.psn.wrapping_sub(1) & 0xff_ffff,
        ..good
    };
    let ahead = Packet {
        psn: (good.psn + 7) & 0xff_ffff,
        ..good
    };
    for (packet, damage) in [(good, 1), (other_queue_pair, 0), (of_the_past, 0), (ahead, 0)] {
        forge(&pair, &packet, damage);
    }
    pair.send(GATEWAY, 0..40);
    pair.until_received(VENUE, 40);
    assert_eq!(pair.messages[VENUE], messages(0..40));
    assert_eq!(pair.events, [[LinkEvent::Up], [LinkEvent::Up]]);
    let roce = pair.end(VENUE).view().roce.unwrap();
    assert_eq!(
        pair.end(VENUE).counters().malformed,
        2,
        "the damaged one and the one for nobody"
    );
    assert!(roce.duplicate_request >= 1 && roce.out_of_seq_request >= 1, "{roce:?}");
    assert_eq!(roce.rx_icrc_encapsulated, 1);
    let figures = pair.end(VENUE).view().figures();
    assert!(
        figures.contains(" malformed=2 ") && figures.contains(" rx_icrc_encapsulated=1 "),
        "{figures}"
    );
    let names: HashSet<_> = pair.end(VENUE).view().counts().map(|(name, _)| name).collect();
    assert_eq!(names.len(), pair.end(VENUE).view().counts().count(), "no name twice");
}

#[test]
fn a_forged_packet_that_asks_for_what_is_not_allowed_breaks_the_queue_pair_and_nothing_is_lost() {
    type Forge = fn(&mut Packet<'static>, &mut Reth);
    let cases: [(NakCode, Forge); 4] = [
        (NakCode::RemoteAccessError, |_, reth| {
            reth.remote_key = (reth.remote_key.get() ^ 1).into();
        }),
        (NakCode::RemoteAccessError, |_, reth| {
            reth.address = (reth.address.get() - 1).into();
        }),
        (NakCode::InvalidRequest, |_, reth| reth.length = 16.into()),
        (NakCode::InvalidRequest, |packet, _| {
            packet.opcode = Opcode::write(false, true, false);
        }),
    ];
    for (code, change) in cases {
        let mut pair = Loop::new(19);
        pair.until_up();
        let mut packet = next_of_gateway(&mut pair);
        let mut reth = packet.reth.expect("it has one");
        change(&mut packet, &mut reth);
        packet.reth = (packet.opcode == Opcode::write(true, true, false)).then_some(reth);
        forge(&pair, &packet, 0);
        for number in 0..10 {
            pair.end(GATEWAY).send(&message(number), 0);
            pair.end(VENUE).send(&message(number), 0);
        }
        pair.until_received(VENUE, 10);
        pair.until_received(GATEWAY, 10);
        assert_eq!(pair.messages, [messages(0..10), messages(0..10)]);
        let down = LinkEvent::Down(DownReason::QueuePair { code, is_ours: true });
        assert_eq!(pair.events[VENUE], [LinkEvent::Up, down, LinkEvent::Up], "{code:?}");
    }
}

#[test]
fn a_peer_whose_request_is_refused_hears_why() {
    let mut pair = Loop::new(20);
    pair.until_up();
    let gateway = pair.end(GATEWAY);
    let ring = gateway.session.as_ref().expect("it is up").ring();
    let request = SendRequest {
        id: 0,
        operation: Operation::Write {
            to: Remote { key: !ring.key, ..ring },
            immediate: None,
        },
        offset: 0,
        length: 8,
        is_signaled: false,
    };
    gateway.backend.post_send(request).unwrap();
    pair.until("they are up again", |pair| {
        pair.events.iter().all(|events| events.len() == 3)
    });
    let code = NakCode::RemoteAccessError;
    for (index, is_ours) in [(VENUE, true), (GATEWAY, false)] {
        assert_eq!(
            pair.events[index][1],
            LinkEvent::Down(DownReason::QueuePair { code, is_ours })
        );
    }
}

#[test]
fn strangers_who_say_nothing_do_not_keep_the_peer_out() {
    let mut pair = Loop::new(21);
    pair.ends[GATEWAY] = None;
    pair.start(VENUE, 5, Resume::START);
    let silent: Vec<_> = (0..20)
        .map(|_| std::net::TcpStream::connect("127.91.21.2:9000").unwrap())
        .collect();
    pair.turns(2_000);
    pair.start(GATEWAY, 6, Resume::START);
    pair.until_up();
    assert_eq!(pair.events[VENUE], [LinkEvent::Up]);
    drop(silent);
}
