//! Single stories of a connection: two ends, a network that does what the story says, virtual time.

use super::wire::{self, HEADER_LENGTH, Header, Kind};
use super::*;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use types::{Duration, SequenceNumber, SessionId, Timestamp};

extern crate std;

mod auth;
mod credits;
mod decoder;
mod durable;
mod forms;
mod recall;

/// Two ends and the datagrams between them. Time jumps from one deadline to the next.
struct Pair {
    now: Timestamp,
    ends: [Connection; 2],
    /// Where the owner's journal stands, each end.
    watermark: [u64; 2],
    /// Arrival, destination, bytes; in order of arrival.
    network: VecDeque<(Timestamp, usize, Vec<u8>)>,
    /// Whether a datagram on its way to an end gets lost.
    loses: fn(usize, &[u8]) -> bool,
    /// How many of those that it could lose are still lost.
    losses: u32,
    /// Whether each datagram is sent twice.
    doubles: bool,
    /// An end that takes no turns.
    asleep: Option<usize>,
    events: [Vec<Event>; 2],
    messages: [Vec<Vec<u8>>; 2],
    /// Every datagram that was sent, lost or not.
    sent: Vec<(Timestamp, usize, Vec<u8>)>,
}

const INITIATOR: usize = 0;
const ACCEPTOR: usize = 1;
const LATENCY: Duration = Duration::from_micros(4);
const START: Timestamp = Timestamp(1_000_000_000);

impl Pair {
    fn new() -> Self {
        Self::of(config(), config(), Resume::START, Resume::START)
    }

    fn of(initiator: Config, acceptor: Config, first: Resume, second: Resume) -> Self {
        Self {
            now: START,
            ends: [
                Connection::new(Role::Initiator, initiator, 1_000, first),
                Connection::new(Role::Acceptor, acceptor, 2_000, second),
            ],
            watermark: [u64::MAX; 2],
            network: VecDeque::new(),
            loses: |_, _| false,
            losses: u32::MAX,
            doubles: false,
            asleep: None,
            events: [Vec::new(), Vec::new()],
            messages: [Vec::new(), Vec::new()],
            sent: Vec::new(),
        }
    }

    /// A pair with a session, and a round trip measured each way.
    fn up() -> Self {
        let mut pair = Self::new();
        pair.run_for(Duration::from_millis(1));
        for _ in 0..30 {
            pair.send(INITIATOR, b"warm");
            pair.send(ACCEPTOR, b"up");
            pair.run_for(Duration::from_micros(50));
        }
        assert!(pair.ends.iter().all(Connection::is_up));
        pair.messages = [Vec::new(), Vec::new()];
        pair.events = [Vec::new(), Vec::new()];
        pair.sent.clear();
        pair
    }

    fn send(&mut self, from: usize, message: &[u8]) -> SequenceNumber {
        self.ends[from].send(message, 0)
    }

    fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span, |_| false);
    }

    /// Runs until something holds, and gives how long that took; `None` when it never does.
    fn run_until(&mut self, limit: Timestamp, holds: impl Fn(&Self) -> bool) -> Option<Duration> {
        let begin = self.now;
        loop {
            for index in 0..2 {
                if self.asleep != Some(index) {
                    self.turn(index);
                }
            }
            if holds(self) {
                return Some(self.now.since(begin));
            }
            let awake = (0..2).filter(|&index| self.asleep != Some(index));
            let timers = awake.filter_map(|index| self.ends[index].poll_timeout());
            let arrivals = self.network.iter().filter(|(_, to, _)| self.asleep != Some(*to));
            let next = timers.chain(arrivals.map(|&(at, ..)| at)).min();
            match next {
                // A turn takes time, so that a deadline is passed and not only reached.
                Some(next) if next < limit => self.now = next.max(self.now + Duration(100)),
                _ => {
                    self.now = limit;
                    return None;
                }
            }
        }
    }

    fn run_until_received(&mut self, end: usize, count: usize) -> Duration {
        let limit = self.now + Duration::from_secs(1);
        self.run_until(limit, |pair| pair.messages[end].len() == count)
            .expect("everything arrives")
    }

    fn turn(&mut self, index: usize) {
        let now = self.now;
        let end = &mut self.ends[index];
        self.network.retain(|(at, to, datagram)| {
            let arrives = *to == index && *at <= now;
            if arrives {
                end.on_datagram(now, datagram);
            }
            !arrives
        });
        let mut buffer = [0; 64];
        while let Some(event) = end.poll_event(&mut buffer) {
            match event {
                Event::Message { length, .. } => self.messages[index].push(buffer[..length].to_vec()),
                other => self.events[index].push(other),
            }
        }
        let mut out = [0; 1_472];
        while let Some(length) = end.poll_transmit(now, self.watermark[index], &mut out) {
            let datagram = out[..length].to_vec();
            self.sent.push((now, index, datagram.clone()));
            for _ in 0..1 + usize::from(self.doubles) {
                if self.losses > 0 && (self.loses)(1 - index, &datagram) {
                    self.losses -= 1;
                } else {
                    self.network.push_back((now + LATENCY, 1 - index, datagram.clone()));
                }
            }
        }
    }

    fn restart(&mut self, index: usize, seed: u64, resume: Resume, unacknowledged: &[(u64, &[u8])]) {
        let role = [Role::Initiator, Role::Acceptor][index];
        self.ends[index] = Connection::new(role, config(), seed, resume);
        for (number, message) in unacknowledged {
            self.ends[index].restore(SequenceNumber(*number), message);
        }
    }

    fn kinds_sent(&self, from: usize) -> Vec<Kind> {
        let sent = self.sent.iter().filter(|(_, by, _)| *by == from);
        sent.map(|(.., datagram)| kind(datagram)).collect()
    }

    fn counters(&self, end: usize) -> Counters {
        self.ends[end].counters()
    }
}

fn config() -> Config {
    Config {
        ack_delay: Duration::from_micros(10),
        ..Config::new(SessionId(7), 64, 48)
    }
}

fn kind(datagram: &[u8]) -> Kind {
    header(datagram).kind
}

/// Of a datagram with or without a tag behind it.
fn header(datagram: &[u8]) -> Header {
    let read = |trailer| HeaderForm::Full.read(datagram, trailer);
    read(0).or_else(|_| read(wire::MAC_LENGTH)).unwrap().0
}

fn resume(next_send: u64, next_receive: u64) -> Resume {
    Resume {
        next_send: SequenceNumber(next_send),
        next_receive: SequenceNumber(next_receive),
    }
}

fn down_reasons(events: &[Event]) -> Vec<DownReason> {
    let reasons = events.iter().filter_map(|event| match event {
        Event::Down { reason } => Some(*reason),
        _ => None,
    });
    reasons.collect()
}

#[test]
fn two_ends_agree_on_an_epoch_and_pass_messages_both_ways() {
    let mut pair = Pair::new();
    pair.send(INITIATOR, b"order");
    pair.send(ACCEPTOR, b"report");
    pair.run_for(Duration::from_micros(100));
    let up = Event::Up { epoch: 1_001 };
    assert_eq!(pair.events, [[up], [up]]);
    assert_eq!(pair.messages, [[b"report".to_vec()], [b"order".to_vec()]]);
    assert_eq!((pair.ends[INITIATOR].room(), pair.ends[ACCEPTOR].room()), (64, 64));
}

#[test]
fn a_lone_message_begins_at_byte_16() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"a new order");
    pair.turn(INITIATOR);
    let (.., datagram) = &pair.sent[0];
    assert_eq!(kind(datagram), Kind::Data);
    assert_eq!(&datagram[HEADER_LENGTH..], b"a new order");
}

#[test]
fn nothing_is_transmitted_twice_on_a_clean_way() {
    let mut pair = Pair::up();
    for _ in 0..1_000 {
        pair.send(INITIATOR, b"order");
        pair.run_for(Duration::from_micros(3));
        pair.send(ACCEPTOR, b"report");
    }
    pair.run_for(Duration::from_millis(20));
    for end in [INITIATOR, ACCEPTOR] {
        let counters = pair.counters(end);
        assert_eq!(pair.messages[end].len(), 1_000);
        assert_eq!(
            (
                counters.retransmits,
                counters.naks_sent,
                counters.timeouts,
                counters.duplicates
            ),
            (0, 0, 0, 0)
        );
    }
}

#[test]
fn a_message_is_acknowledged_alone_after_10_us_and_otherwise_by_what_is_sent_anyway() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"order");
    pair.run_for(Duration::from_micros(100));
    assert_eq!(pair.kinds_sent(ACCEPTOR), [Kind::Ack]);
    assert_eq!(pair.sent[1].0.since(pair.sent[0].0), Duration(LATENCY.0 + 10_000));

    pair.sent.clear();
    pair.send(INITIATOR, b"order");
    pair.run_until_received(ACCEPTOR, 2);
    pair.send(ACCEPTOR, b"report");
    pair.run_until_received(INITIATOR, 1);
    assert_eq!(pair.kinds_sent(ACCEPTOR), [Kind::Data]);
    assert_eq!(pair.ends[INITIATOR].room(), 64);
}

#[test]
fn what_arrived_is_not_acknowledged_before_the_owner_has_it() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"order");
    pair.turn(INITIATOR);
    let (at, _, datagram) = pair.network.pop_front().unwrap();
    let acceptor = &mut pair.ends[ACCEPTOR];
    acceptor.on_datagram(at, &datagram);
    let mut out = [0; 1_472];
    let later = at + Duration::from_millis(6);
    let length = acceptor.poll_transmit(later, 0, &mut out).unwrap();
    let before = header(&out[..length]).ack;
    acceptor.poll_event(&mut [0; 64]).unwrap();
    let length = acceptor
        .poll_transmit(later + Duration::from_micros(10), 0, &mut out)
        .unwrap();
    let after = header(&out[..length]).ack;
    assert_eq!(after, before + 1);
}

#[test]
fn a_gap_is_asked_for_at_once_and_repaired_in_a_round_trip() {
    let mut pair = Pair::up();
    pair.loses = |_, datagram| datagram.ends_with(b"lost");
    pair.losses = 1;
    pair.send(INITIATOR, b"lost");
    pair.turn(INITIATOR);
    pair.send(INITIATOR, b"next");
    let took = pair.run_until_received(ACCEPTOR, 2);
    assert_eq!(pair.messages[ACCEPTOR], [b"lost", b"next"]);
    assert!(took < Duration(3 * LATENCY.0 + 1_000), "{took}");
    let counters = pair.counters(INITIATOR);
    assert_eq!(
        (counters.naks_received, counters.retransmits, counters.timeouts),
        (1, 1, 0)
    );
}

#[test]
fn a_request_that_is_lost_is_repeated() {
    let slow = Config {
        rto_floor: Duration::from_millis(2),
        ..config()
    };
    let mut pair = Pair::of(slow, config(), Resume::START, Resume::START);
    pair.send(INITIATOR, b"first");
    pair.send(ACCEPTOR, b"first");
    pair.run_for(Duration::from_millis(1));
    pair.loses = |_, datagram| datagram.ends_with(b"lost") || kind(datagram) == Kind::Nak;
    pair.losses = 2;
    pair.send(INITIATOR, b"lost");
    pair.turn(INITIATOR);
    pair.send(INITIATOR, b"next");
    let took = pair.run_until_received(ACCEPTOR, 3);
    assert!(took < Duration::from_micros(150), "{took}");
    assert_eq!(
        (pair.counters(ACCEPTOR).naks_sent, pair.counters(INITIATOR).timeouts),
        (2, 0)
    );
}

#[test]
fn a_lost_last_message_costs_the_floor_of_the_timeout() {
    let mut pair = Pair::up();
    pair.loses = |_, datagram| datagram.ends_with(b"last");
    pair.losses = 1;
    pair.send(INITIATOR, b"last");
    let took = pair.run_until_received(ACCEPTOR, 1);
    assert!(took < Duration(50_000 + LATENCY.0 + 1_000), "{took}");
    let counters = pair.counters(INITIATOR);
    assert_eq!(
        (counters.timeouts, counters.retransmits, counters.retransmits_spurious),
        (1, 1, 0)
    );
}

#[test]
fn after_a_burst_one_timeout_brings_back_everything() {
    let mut pair = Pair::up();
    pair.loses = |to, _| to == ACCEPTOR;
    for _ in 0..60 {
        pair.send(INITIATOR, &[7; 48]);
    }
    pair.losses = 3;
    let took = pair.run_until_received(ACCEPTOR, 60);
    assert!(took < Duration(50_000 + 4 * LATENCY.0), "{took}");
    assert_eq!(pair.counters(INITIATOR).timeouts, 1);
}

#[test]
fn a_lost_acknowledgement_draws_a_retransmission_that_is_counted_as_spurious() {
    let mut pair = Pair::up();
    pair.loses = |to, _| to == INITIATOR;
    pair.losses = 1;
    pair.send(INITIATOR, b"order");
    pair.run_for(Duration::from_millis(1));
    let counters = pair.counters(INITIATOR);
    assert_eq!((counters.retransmits, counters.retransmits_spurious), (1, 1));
    assert_eq!(pair.counters(ACCEPTOR).duplicates, 1);
    assert_eq!(pair.ends[INITIATOR].room(), 64);
}

#[test]
fn a_peer_that_is_descheduled_for_8_ms_draws_few_copies_and_keeps_its_session() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"order");
    pair.asleep = Some(ACCEPTOR);
    pair.run_for(Duration::from_millis(8));
    pair.asleep = None;
    pair.run_for(Duration::from_millis(1));
    let counters = pair.counters(INITIATOR);
    assert!((1..12).contains(&counters.retransmits), "{}", counters.retransmits);
    assert_eq!(counters.retransmits_spurious, counters.retransmits);
    assert_eq!((pair.messages[ACCEPTOR].len(), counters.downs), (1, 0));
    // And the pause has not spoilt the timeout.
    for _ in 0..20 {
        pair.send(INITIATOR, b"order");
        pair.run_for(Duration::from_micros(50));
    }
    pair.loses = |_, datagram| datagram.ends_with(b"last");
    pair.losses = 1;
    pair.send(INITIATOR, b"last");
    let took = pair.run_until_received(ACCEPTOR, 22);
    assert!(took < Duration::from_micros(150), "{took}");
}

#[test]
fn an_idle_session_is_kept_alive_by_heartbeats() {
    let mut pair = Pair::up();
    pair.run_for(Duration::from_millis(99));
    for end in [INITIATOR, ACCEPTOR] {
        let kinds = pair.kinds_sent(end);
        assert!((18..=20).contains(&kinds.len()), "{}", kinds.len());
        assert!(kinds.iter().all(|&kind| kind == Kind::Heartbeat));
        assert!(pair.ends[end].is_up());
    }
}

#[test]
fn a_silent_peer_ends_the_session_and_a_new_epoch_begins_when_it_is_back() {
    let mut pair = Pair::up();
    pair.loses = |_, _| true;
    pair.send(INITIATOR, b"order");
    pair.run_for(Duration::from_millis(110));
    assert_eq!(down_reasons(&pair.events[INITIATOR]), [DownReason::Silence]);
    assert_eq!(down_reasons(&pair.events[ACCEPTOR]), [DownReason::Silence]);
    pair.loses = |_, _| false;
    pair.run_until_received(ACCEPTOR, 1);
    assert_eq!(pair.events[INITIATOR][1], Event::Up { epoch: 1_002 });
    assert_eq!(pair.messages[ACCEPTOR], [b"order"]);
}

#[test]
fn ones_own_pause_is_not_the_peers_silence() {
    let mut pair = Pair::up();
    pair.asleep = Some(INITIATOR);
    pair.run_for(Duration::from_millis(90));
    pair.now = pair.now + Duration::from_secs(10);
    // Before it has looked into its socket.
    let (now, end) = (pair.now, &mut pair.ends[INITIATOR]);
    assert!(end.poll_transmit(now, 0, &mut [0; 1_472]).is_some());
    assert!(end.is_up());
}

#[test]
fn a_clock_that_goes_back_stops_no_timer() {
    let mut pair = Pair::up();
    pair.loses = |_, datagram| datagram.ends_with(b"last");
    pair.losses = 1;
    pair.send(INITIATOR, b"last");
    pair.turn(INITIATOR);
    let back = pair.now - Duration::from_millis(500);
    let mut out = [0; 1_472];
    let end = &mut pair.ends[INITIATOR];
    assert_eq!(end.poll_transmit(back, 0, &mut out), None);
    let timeout = end.poll_timeout().unwrap();
    assert!(timeout.since(back) <= Duration::from_micros(50));
    assert!(end.poll_transmit(timeout, 0, &mut out).is_some());
}

#[test]
fn a_message_waits_for_its_journal_position() {
    let mut pair = Pair::up();
    pair.watermark[INITIATOR] = 99;
    pair.ends[INITIATOR].send(b"order", 100);
    pair.run_for(Duration::from_millis(20));
    assert!(pair.messages[ACCEPTOR].is_empty());
    assert!(pair.kinds_sent(INITIATOR).iter().all(|&kind| kind == Kind::Heartbeat));
    pair.watermark[INITIATOR] = 100;
    pair.run_until_received(ACCEPTOR, 1);
}

#[test]
fn a_restarted_acceptor_goes_on_where_its_journal_ends() {
    let mut pair = Pair::new();
    pair.send(ACCEPTOR, b"report 1");
    pair.send(INITIATOR, b"order 1");
    pair.run_for(Duration::from_micros(100));
    pair.send(INITIATOR, b"order 2");
    pair.restart(ACCEPTOR, 3_000, resume(3, 2), &[(1, b"report 1"), (2, b"report 2")]);
    pair.run_for(Duration::from_millis(200));
    assert_eq!(pair.messages[ACCEPTOR], [b"order 1", b"order 2"]);
    assert_eq!(pair.messages[INITIATOR], [b"report 1", b"report 2"]);
    assert_eq!(down_reasons(&pair.events[INITIATOR]), [DownReason::Silence]);
}

#[test]
fn a_restarted_initiator_takes_the_place_of_its_old_session_at_once() {
    let mut pair = Pair::new();
    pair.send(INITIATOR, b"order 1");
    pair.run_for(Duration::from_micros(100));
    pair.send(ACCEPTOR, b"report 1");
    pair.restart(INITIATOR, 5_000, resume(3, 1), &[(1, b"order 1"), (2, b"order 2")]);
    pair.run_for(Duration::from_micros(100));
    assert_eq!(pair.messages[ACCEPTOR], [b"order 1", b"order 2"]);
    assert_eq!(pair.messages[INITIATOR], [b"report 1"]);
    // At once, and not by a timeout.
    assert_eq!(
        (pair.counters(INITIATOR).timeouts, pair.counters(ACCEPTOR).timeouts),
        (0, 0)
    );
    let (old, new) = (Event::Up { epoch: 1_001 }, Event::Up { epoch: 5_001 });
    let reason = DownReason::Superseded;
    assert_eq!(pair.events[ACCEPTOR], [old, Event::Down { reason }, new]);
}

#[test]
fn numbers_wrap_on_the_wire_and_not_in_memory() {
    let first = (1 << 32) - 3;
    let mut pair = Pair::of(config(), config(), resume(first, 1), resume(1, first));
    pair.run_for(Duration::from_millis(1));
    for number in 0..200 {
        assert_eq!(pair.send(INITIATOR, b"order"), SequenceNumber(first + number));
        pair.run_for(Duration::from_micros(20));
    }
    assert_eq!(pair.messages[ACCEPTOR].len(), 200);
    assert_eq!(pair.counters(INITIATOR).retransmits, 0);
}

/// What both ends say when the handshake fails: the initiator, the acceptor.
fn refusal(mut pair: Pair) -> (DownReason, DownReason) {
    // Refused at 0, 0.1, 0.3 and 0.7 s.
    pair.run_for(Duration::from_secs(1));
    assert!(pair.ends.iter().all(|end| !end.is_up()));
    // Attempts go on, and the owner is told once.
    let calls = pair.kinds_sent(INITIATOR).into_iter();
    assert_eq!(calls.filter(|kind| *kind == Kind::Negotiate).count(), 4);
    let [first, second] = [INITIATOR, ACCEPTOR].map(|end| down_reasons(&pair.events[end]));
    assert_eq!((first.len(), second.len()), (1, 1));
    (first[0], second[0])
}

#[test]
fn an_end_that_lost_its_journal_is_refused_by_name() {
    let behind = Refusal::NumbersBehind {
        given: SequenceNumber(1),
        wanted: SequenceNumber(5),
    };
    let pair = Pair::of(config(), config(), Resume::START, resume(1, 5));
    assert_eq!(
        refusal(pair),
        (DownReason::RefusedByPeer(behind), DownReason::Refused(behind))
    );
    let ahead = Refusal::NumbersAhead {
        wanted: SequenceNumber(5),
        next: SequenceNumber(1),
    };
    let pair = Pair::of(config(), config(), resume(1, 5), Resume::START);
    assert_eq!(
        refusal(pair),
        (DownReason::RefusedByPeer(ahead), DownReason::Refused(ahead))
    );
}

#[test]
fn another_session_or_another_message_length_is_refused_by_name() {
    let other = Config {
        session: SessionId(8),
        ..config()
    };
    let wrong = Refusal::Session { given: 7, held: 8 };
    let pair = Pair::of(config(), other, Resume::START, Resume::START);
    assert_eq!(
        refusal(pair),
        (DownReason::RefusedByPeer(wrong), DownReason::Refused(wrong))
    );
    let other = Config {
        max_message: 64,
        ..config()
    };
    let length = Refusal::MessageLength { given: 48, held: 64 };
    let pair = Pair::of(config(), other, Resume::START, Resume::START);
    assert_eq!(
        refusal(pair),
        (DownReason::RefusedByPeer(length), DownReason::Refused(length))
    );
}

#[test]
fn an_old_incarnation_cannot_take_the_session_from_a_newer_one() {
    let mut pair = Pair::up();
    let mut old = Pair::new();
    old.ends[INITIATOR] = Connection::new(Role::Initiator, config(), 500, resume(31, 31));
    std::mem::swap(&mut old.ends[ACCEPTOR], &mut pair.ends[ACCEPTOR]);
    old.run_for(Duration::from_micros(100));
    let stale = Refusal::StaleEpoch {
        given: 501,
        held: 1_001,
    };
    assert_eq!(down_reasons(&old.events[INITIATOR]), [DownReason::RefusedByPeer(stale)]);
    assert!(old.ends[ACCEPTOR].is_up());
    assert_eq!(old.counters(ACCEPTOR).refusals, 1);
}

/// Negotiate, refused for its key: what is forged in the acceptor's place, and what its good answer does then.
#[test]
fn a_forged_refusal_does_not_keep_the_good_answer_out_and_puts_the_next_call_off_once() {
    let mut pair = Pair::new();
    pair.loses = |_, _| true;
    pair.turn(INITIATOR);
    let (.., call) = pair.sent[0].clone();
    let Ok((wire::Step::Negotiate(negotiate), _)) = wire::decode_handshake(&call) else {
        panic!("the first step");
    };
    let refuse = wire::Refuse::new(negotiate.initiator_nonce.get(), 0, Refusal::Key { given: 0, held: 3 });
    let mut forged = [0; 256];
    let length = wire::emit(&mut forged, Kind::Refuse, &refuse);
    for _ in 0..50 {
        pair.ends[INITIATOR].on_datagram(pair.now, &forged[..length]);
    }
    let next = pair.ends[INITIATOR].poll_timeout().unwrap();
    assert_eq!(next.since(pair.now), Duration::from_millis(100));
    pair.loses = |_, _| false;
    pair.ends[ACCEPTOR].on_datagram(pair.now, &call);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.ends.iter().all(Connection::is_up));
}

/// Whatever reason a peer gives, an end whose session it ends goes on: the initiator calls, the acceptor listens.
#[test]
fn a_session_that_is_refused_for_any_reason_comes_up_again() {
    for number in 0..20 {
        for end in [INITIATOR, ACCEPTOR] {
            let mut pair = Pair::new();
            pair.run_for(Duration::from_millis(1));
            let established = pair
                .sent
                .iter()
                .find_map(|(.., datagram)| match wire::decode_handshake(datagram) {
                    Ok((wire::Step::Established(established), _)) => Some(*established),
                    _ => None,
                });
            let established = established.unwrap();
            let (first, second) = (established.initiator_nonce.get(), established.acceptor_nonce.get());
            let refuse = wire::Refuse::new(first, second, Refusal::from_wire(number, 1, 2));
            let mut bytes = [0; 256];
            let length = wire::emit(&mut bytes, Kind::Refuse, &refuse);
            pair.ends[end].on_datagram(pair.now, &bytes[..length]);
            assert!(!pair.ends[end].is_up());
            pair.run_for(Duration::from_secs(1));
            assert!(pair.ends.iter().all(Connection::is_up), "reason {number}");
        }
    }
}

#[test]
fn an_acceptor_is_up_with_the_first_datagram_of_the_session_and_not_before() {
    let mut pair = Pair::new();
    pair.loses = |to, datagram| to == ACCEPTOR && !wire::is_handshake(datagram);
    let up = pair.run_until(pair.now + Duration::from_millis(1), |pair| pair.ends[INITIATOR].is_up());
    assert!(up.is_some());
    pair.run_for(Duration::from_millis(1));
    assert!(!pair.ends[ACCEPTOR].is_up() && pair.events[ACCEPTOR].is_empty());
    assert_eq!(pair.ends[ACCEPTOR].state(), State::Establishing);
    // A filter before it that lets nothing else in has to know.
    assert!(pair.ends[ACCEPTOR].receive_tag().is_some());
    pair.loses = |_, _| false;
    let confirmed = pair.run_until(pair.now + Duration::from_millis(6), |pair| pair.ends[ACCEPTOR].is_up());
    assert!(confirmed.is_some(), "by a heartbeat at the latest");
    // Without a loss, it is an acknowledgement that the initiator sends at once.
    let mut pair = Pair::new();
    let took = pair.run_until(pair.now + Duration::from_millis(1), |pair| pair.ends[ACCEPTOR].is_up());
    assert!(took.is_some_and(|took| took < Duration(7 * LATENCY.0)), "{took:?}");
    assert_eq!(pair.counters(ACCEPTOR).ups, 1);
}

#[test]
fn a_recorded_handshake_played_again_changes_nothing() {
    let mut pair = Pair::new();
    pair.run_for(Duration::from_millis(1));
    let recorded: Vec<_> = pair.sent.drain(..).map(|(.., datagram)| datagram).collect();
    pair.loses = |_, _| true;
    pair.run_for(Duration::from_millis(110));
    pair.loses = |_, _| false;
    pair.run_for(Duration::from_millis(20));
    let ups = pair.counters(ACCEPTOR).ups;
    for datagram in recorded {
        let now = pair.now;
        for end in &mut pair.ends {
            end.on_datagram(now, &datagram);
        }
    }
    assert!(pair.ends.iter().all(Connection::is_up));
    assert_eq!(pair.counters(ACCEPTOR).ups, ups);
}

#[test]
fn a_flood_of_requests_draws_one_copy() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"lost");
    pair.send(INITIATOR, b"next");
    pair.turn(INITIATOR);
    let sent = header(&pair.sent[0].2);
    let request = |serial: u64| {
        let mut nak = [0; HEADER_LENGTH + 24];
        nak[16..24].copy_from_slice(&serial.to_le_bytes());
        nak[24..28].copy_from_slice(&sent.sequence.to_le_bytes());
        nak[32] = 0b11;
        let header = Header {
            tag: sent.tag | 1 << 31,
            sequence: 31,
            ack: sent.sequence,
            kind: Kind::Nak,
            flags: 0,
        };
        HeaderForm::Full.write(&mut nak, header, 24);
        nak
    };
    let later = pair.now + Duration::from_micros(20);
    let end = &mut pair.ends[INITIATOR];
    let mut out = [0; 1_472];
    for serial in 1_000..2_000 {
        assert_eq!(end.on_datagram(later, &request(serial)), Received::Session);
        while end.poll_transmit(later, 0, &mut out).is_some() {}
    }
    assert_eq!(end.counters().naks_received, 1_000);
    assert_eq!(end.counters().retransmits, 2);
}

#[test]
fn what_is_not_of_the_session_is_dropped_and_counted() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"order");
    pair.turn(INITIATOR);
    let (now, _, good) = pair.sent[0].clone();
    let changed = |at: usize, to: u8| {
        let mut datagram = good.clone();
        datagram[at] = to;
        datagram
    };
    let acceptor = &mut pair.ends[ACCEPTOR];
    for (datagram, what) in [
        (good[..good.len() - 1].to_vec(), "cut off"),
        (changed(12, 6), "wrong length"),
        (changed(14, 0), "unknown kind"),
        (changed(14, Kind::Establish as u8), "handshake under a session's tag"),
        (changed(15, 2), "unknown flag"),
        (changed(0, good[0] ^ 1), "foreign tag"),
        (changed(11, 1), "acknowledges what was never sent"),
        (changed(6, 1), "beyond the window"),
    ] {
        assert_eq!(acceptor.on_datagram(now, &datagram), Received::Dropped, "{what}");
    }
    let counters = acceptor.counters();
    assert_eq!((counters.malformed, counters.foreign), (5, 1));
    assert_eq!((counters.false_acks, counters.beyond_window), (1, 1));
    assert_eq!(acceptor.on_datagram(now, &good), Received::Session);
}

#[test]
fn ones_own_datagrams_coming_back_are_foreign() {
    let mut pair = Pair::up();
    pair.send(INITIATOR, b"order");
    pair.turn(INITIATOR);
    let (now, _, own) = pair.sent[0].clone();
    assert_eq!(pair.ends[INITIATOR].on_datagram(now, &own), Received::Dropped);
    assert_eq!(pair.counters(INITIATOR).foreign, 1);
}

#[test]
fn a_gap_may_fill_by_itself_where_the_way_reorders() {
    let patient = Config {
        reorder_allowance: Duration::from_micros(20),
        ..config()
    };
    let mut pair = Pair::of(config(), patient, Resume::START, Resume::START);
    pair.run_for(Duration::from_millis(1));
    pair.send(INITIATOR, b"first");
    pair.turn(INITIATOR);
    let (at, to, first) = pair.network.pop_back().unwrap();
    pair.send(INITIATOR, b"second");
    pair.turn(INITIATOR);
    pair.network.push_back((at + Duration::from_micros(10), to, first));
    pair.run_until_received(ACCEPTOR, 2);
    pair.run_for(Duration::from_micros(100));
    assert_eq!(pair.messages[ACCEPTOR], [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(pair.counters(ACCEPTOR).naks_sent, 0);
}

#[test]
fn without_packing_each_message_has_its_datagram() {
    let plain = Config {
        packing: false,
        ..config()
    };
    let mut pair = Pair::of(plain, config(), Resume::START, Resume::START);
    for _ in 0..10 {
        pair.send(INITIATOR, b"order");
    }
    pair.run_until_received(ACCEPTOR, 10);
    let data = pair
        .kinds_sent(INITIATOR)
        .into_iter()
        .filter(|&kind| kind == Kind::Data)
        .count();
    assert_eq!(data, 10);
}

/// The example in docs/ltp.md: a line a datagram, its direction, its kind, and its bytes in hexadecimal.
#[test]
fn the_example_of_the_document_is_what_is_sent() {
    let document = include_str!("../../../../docs/ltp.md");
    let example = document.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    let written: Vec<_> = example
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let from = if words.next() == Some("→") {
                INITIATOR
            } else {
                ACCEPTOR
            };
            let kind = words.next().unwrap();
            (from, String::from(kind), words.collect::<String>())
        })
        .collect();

    let mut pair = Pair::new();
    pair.run_for(Duration::from_micros(50));
    pair.send(INITIATOR, b"order");
    pair.run_for(Duration::from_micros(50));
    let sent: Vec<_> = pair
        .sent
        .iter()
        .map(|(_, from, datagram)| {
            let bytes: String = datagram.iter().map(|byte| std::format!("{byte:02x}")).collect();
            (*from, std::format!("{:?}", kind(datagram)), bytes)
        })
        .collect();
    assert_eq!(sent, written);
}
