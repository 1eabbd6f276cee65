//! A gateway and a venue on loopback. Sockets are real; time is made up, and moves 10 µs a turn.

use super::*;
use std::net::UdpSocket;

const GATEWAY: usize = 0;
const VENUE: usize = 1;

struct Loop {
    now: Timestamp,
    /// Of the loopback network, so that tests at the same time have addresses of their own: there is one port.
    network: u8,
    ends: [Option<RoceLink>; 2],
    events: [Vec<LinkEvent>; 2],
    messages: [Vec<Vec<u8>>; 2],
}

impl Loop {
    fn new(network: u8) -> Self {
        let mut pair = Self {
            now: Timestamp(1_000_000_000),
            network,
            ends: [None, None],
            events: [Vec::new(), Vec::new()],
            messages: [Vec::new(), Vec::new()],
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
        RoceLinkConfig::new(end, ip(index), ip(1 - index), 16, 64)
    }

    fn start(&mut self, index: usize, seed: u64, resume: Resume) {
        self.ends[index] = None;
        self.ends[index] = Some(RoceLink::new(&self.config(index), seed, resume).unwrap());
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
        for _ in 0..200_000 {
            if is_so(self) {
                return;
            }
            self.turns(1);
        }
        panic!("{what}: not within 2 s; {:?}", self.events);
    }

    fn until_up(&mut self) {
        self.until("up", |pair| (0..2).all(|index| pair.end(index).is_up()));
    }

    fn send(&mut self, index: usize, numbers: std::ops::Range<u8>) {
        for number in numbers {
            self.until("room", |pair| pair.end(index).room() > 0);
            self.end(index).send(&message(number), 0);
        }
    }

    fn until_received(&mut self, index: usize, count: usize) {
        self.until("messages", |pair| pair.messages[index].len() >= count);
    }
}

fn message(number: u8) -> Vec<u8> {
    vec![number; 1 + usize::from(number) % 64]
}

fn messages(numbers: std::ops::Range<u8>) -> Vec<Vec<u8>> {
    numbers.map(message).collect()
}

#[test]
fn messages_pass_both_ways_whatever_their_length() {
    let mut pair = Loop::new(1);
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
        pair.end(VENUE).roce_counters().send_rnr_err,
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
    for restarted in [GATEWAY, VENUE] {
        let mut pair = Loop::new(4);
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
    let patience = pair.config(GATEWAY).queue_pair.patience();
    let end = pair.now + patience + Duration::from_millis(20);
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
    let config = pair.config(GATEWAY);
    let end = pair.now + config.queue_pair.patience() + config.heartbeat + Duration::from_millis(20);
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
    pair.turns(2 * TURNS_PER_LOOK as usize);
    assert_eq!(pair.events[VENUE], [LinkEvent::Up, LinkEvent::Down(DownReason::Closed)]);
}

#[test]
fn ends_that_are_not_configured_alike_both_say_so() {
    let mut pair = Loop::new(8);
    let change = |config: RoceLinkConfig| {
        [
            (RoceLinkConfig { session: 1, ..config }, RoceMismatch::Session),
            (
                RoceLinkConfig {
                    window: 32,
                    ..RoceLinkConfig::new(config.end, config.local, config.peer, 32, 64)
                },
                RoceMismatch::Size,
            ),
            (
                RoceLinkConfig {
                    peer: IpAddr::from([127, 91, 8, 9]),
                    ..config
                },
                RoceMismatch::Address,
            ),
        ]
    };
    for (config, mismatch) in change(pair.config(GATEWAY)) {
        pair.start(VENUE, 3, Resume::START);
        pair.ends[GATEWAY] = None;
        pair.ends[GATEWAY] = Some(RoceLink::new(&config, 4, Resume::START).unwrap());
        pair.events = [Vec::new(), Vec::new()];
        pair.turns(500);
        for events in &pair.events {
            assert!(
                events.contains(&LinkEvent::Down(DownReason::Mismatched(mismatch))),
                "{events:?}"
            );
            assert!(!events.contains(&LinkEvent::Up));
        }
    }
}

#[test]
fn journals_that_contradict_each_other_are_told_with_the_numbers() {
    let mut pair = Loop::new(9);
    let resume = Resume {
        next_send: SequenceNumber(1),
        next_receive: SequenceNumber(5),
    };
    pair.start(GATEWAY, 5, resume);
    pair.turns(500);
    let reason = DownReason::Unresumable {
        wanted: SequenceNumber(5),
        oldest: SequenceNumber(1),
        next: SequenceNumber(1),
    };
    for events in &pair.events {
        assert!(events.contains(&LinkEvent::Down(reason)), "{events:?}");
        assert!(!events.contains(&LinkEvent::Up));
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
    assert_eq!(pair.end(VENUE).counters().malformed, 5);
    assert_eq!(pair.events[VENUE], [LinkEvent::Up]);
}

#[test]
fn whoever_does_not_know_how_to_meet_disturbs_nobody() {
    use std::io::Write;
    let mut pair = Loop::new(11);
    pair.until_up();
    let mut stranger = std::net::TcpStream::connect("127.91.11.2:9000").unwrap();
    stranger.write_all(&[b'x'; 200]).unwrap();
    pair.turns(3 * TURNS_PER_LOOK as usize);
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
    let to = gateway.session.as_ref().expect("it is up").ring;
    let offset = gateway.arena.outgoing(0);
    gateway.arena.put_number(offset, wanted);
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
    gateway.pair.post_send(request, &gateway.regions).unwrap();
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
    assert_eq!(venue_hears(None, 8, 2), false_ack, "wants more than was sent");
}
