//! The compact header, and what is sent more than once.

use super::*;

fn compact() -> Config {
    Config {
        header: HeaderForm::Compact,
        ..config()
    }
}

fn with(redundancy: Redundancy) -> Config {
    Config { redundancy, ..config() }
}

fn alike(config: Config) -> Pair {
    Pair::of(config, config, Resume::START, Resume::START)
}

#[test]
fn compact_numbers_wrap_on_the_wire_and_not_in_memory() {
    let first = (3 << 16) - 5;
    let mut pair = Pair::of(compact(), compact(), resume(first, 1), resume(1, first));
    pair.run_for(Duration::from_millis(1));
    pair.sent.clear();
    for number in 0..200 {
        assert_eq!(pair.send(INITIATOR, b"a new order"), SequenceNumber(first + number));
        pair.run_for(Duration::from_micros(20));
    }
    assert_eq!(
        (pair.messages[ACCEPTOR].len(), pair.counters(INITIATOR).retransmits),
        (200, 0)
    );
    let (.., datagram) = &pair.sent[0];
    assert_eq!(&datagram[wire::COMPACT_HEADER_LENGTH..], b"a new order");
}

#[test]
fn a_gap_in_compact_numbers_is_repaired_as_any() {
    let mut pair = alike(compact());
    pair.run_for(Duration::from_millis(1));
    pair.loses = |_, datagram| datagram.ends_with(b"lost");
    pair.losses = 1;
    pair.send(INITIATOR, b"lost");
    pair.turn(INITIATOR);
    pair.send(INITIATOR, b"next");
    pair.run_until_received(ACCEPTOR, 2);
    assert_eq!(pair.messages[ACCEPTOR], [b"lost", b"next"]);
    assert_eq!(pair.counters(INITIATOR).naks_received, 1);
}

#[test]
fn ends_with_different_headers_are_refused_by_name() {
    for (first, second, given, held) in [(compact(), config(), 8, 16), (config(), compact(), 16, 8)] {
        let wrong = Refusal::Header { given, held };
        let pair = Pair::of(first, second, Resume::START, Resume::START);
        assert_eq!(
            refusal(pair),
            (DownReason::RefusedByPeer(wrong), DownReason::Refused(wrong))
        );
    }
}

/// 2^16 messages later a compact header looks the same.
#[test]
fn a_compact_header_that_comes_round_again_is_found_out_by_the_key() {
    let secret = *b"a secret of both";
    let key = Some(Key { id: 1, secret });
    let mut pair = alike(Config { key, ..compact() });
    pair.run_for(Duration::from_millis(1));
    pair.send(INITIATOR, b"old");
    pair.turn(INITIATOR);
    let (.., old) = pair.sent.last().unwrap().clone();
    pair.run_for(Duration::from_micros(100));
    for _ in 0..1 << 10 {
        for _ in 0..1 << 6 {
            pair.send(INITIATOR, b"new");
        }
        pair.run_for(Duration::from_micros(100));
        pair.sent.clear();
    }
    assert_eq!(pair.messages[ACCEPTOR].len(), (1 << 16) + 1);
    let now = pair.now;
    assert_eq!(pair.ends[ACCEPTOR].on_datagram(now, &old), Received::Dropped);
    assert_eq!(pair.counters(ACCEPTOR).forged, 1);
}

#[test]
fn a_lost_datagram_of_a_burst_comes_again_with_the_next_one() {
    let mut pair = alike(with(Redundancy::Repeat));
    pair.run_for(Duration::from_millis(1));
    for _ in 0..30 {
        pair.send(INITIATOR, b"warm");
        pair.run_for(Duration::from_micros(50));
    }
    // Nothing is in flight: nothing is repeated.
    assert_eq!(pair.counters(INITIATOR).repeats, 0);
    pair.loses = |_, datagram| datagram.ends_with(b"lost");
    pair.losses = 1;
    pair.send(INITIATOR, b"lost");
    pair.turn(INITIATOR);
    pair.send(INITIATOR, b"next");
    let took = pair.run_until_received(ACCEPTOR, 32);
    assert!(took <= Duration(LATENCY.0 + 200), "{took}");
    let counters = pair.counters(INITIATOR);
    assert_eq!(
        (counters.repeats, counters.retransmits, counters.naks_received),
        (1, 0, 0)
    );
    assert_eq!(counters.messages_sent, 32);
}

#[test]
fn repeated_messages_draw_neither_acknowledgements_nor_requests() {
    let mut pair = alike(with(Redundancy::Repeat));
    pair.run_for(Duration::from_millis(1));
    for _ in 0..1_000 {
        pair.send(INITIATOR, b"order");
        pair.run_for(Duration::from_micros(1));
    }
    pair.run_for(Duration::from_millis(1));
    let (sender, receiver) = (pair.counters(INITIATOR), pair.counters(ACCEPTOR));
    assert_eq!(pair.messages[ACCEPTOR].len(), 1_000);
    assert!(sender.repeats > 1_000 && receiver.duplicates == sender.repeats);
    assert_eq!((sender.retransmits, sender.timeouts, receiver.naks_sent), (0, 0, 0));
    assert!(receiver.datagrams_sent < 200, "{}", receiver.datagrams_sent);
}

#[test]
fn of_datagrams_that_come_twice_one_may_be_lost() {
    let mut pair = alike(with(Redundancy::Twice));
    pair.doubles = true;
    pair.run_for(Duration::from_millis(1));
    for _ in 0..100 {
        pair.loses = |_, _| true;
        pair.losses = 1;
        pair.send(INITIATOR, b"order");
        pair.run_for(Duration::from_micros(30));
    }
    let counters = pair.counters(INITIATOR);
    assert_eq!(pair.messages[ACCEPTOR].len(), 100);
    assert_eq!(
        (counters.retransmits, counters.timeouts, counters.naks_received),
        (0, 0, 0)
    );
}

#[test]
fn a_retransmission_that_comes_twice_was_not_in_vain() {
    let mut pair = alike(with(Redundancy::Twice));
    pair.doubles = true;
    pair.run_for(Duration::from_millis(1));
    pair.loses = |_, datagram| datagram.ends_with(b"lost");
    pair.losses = 2;
    pair.send(INITIATOR, b"lost");
    pair.run_for(Duration::from_millis(20));
    let counters = pair.counters(INITIATOR);
    assert_eq!((counters.retransmits, counters.retransmits_spurious), (1, 0));
}

#[test]
fn on_the_session_of_a_client_each_order_has_a_datagram_and_begins_at_byte_16() {
    let client = Config::for_client(SessionId(7), 64, 48);
    let mut pair = alike(client);
    pair.run_for(Duration::from_millis(1));
    pair.sent.clear();
    for number in 0..10u8 {
        pair.send(INITIATOR, &[number; 48]);
    }
    pair.run_until_received(ACCEPTOR, 10);
    let orders = pair.sent.iter().filter(|(_, by, _)| *by == INITIATOR);
    for ((.., datagram), number) in orders.zip(0..10u8) {
        assert_eq!(datagram[HEADER_LENGTH..], [number; 48]);
    }
    let repeating = Config {
        redundancy: Redundancy::Repeat,
        ..client
    };
    assert_eq!(repeating.check(), Err(ConfigError::Redundancy));
}

/// An acceptor that takes orders one a datagram, each datagram once.
fn takes_single() -> Config {
    Config {
        takes_single: true,
        ..config()
    }
}

#[test]
fn who_packs_orders_where_one_is_taken_is_refused_and_told_why() {
    for redundancy in [Redundancy::Off, Redundancy::Repeat] {
        let mut pair = Pair::of(with(redundancy), takes_single(), Resume::START, Resume::START);
        pair.run_for(Duration::from_millis(1));
        pair.send(INITIATOR, b"alone");
        pair.run_for(Duration::from_millis(1));
        pair.events = [Vec::new(), Vec::new()];
        for order in [&b"first"[..], b"second"] {
            pair.send(INITIATOR, order);
        }
        pair.run_for(Duration::from_millis(1));
        assert_eq!(
            down_reasons(&pair.events[ACCEPTOR]),
            [DownReason::Refused(Refusal::Packed)]
        );
        assert_eq!(
            down_reasons(&pair.events[INITIATOR]),
            [DownReason::RefusedByPeer(Refusal::Packed)]
        );
        assert_eq!(pair.counters(ACCEPTOR).refusals, 1);
        // Again and again, and never is one of them taken.
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.messages[ACCEPTOR], [b"alone"]);
        assert!(pair.counters(ACCEPTOR).refusals > 3);
    }
}

#[test]
fn a_refusal_of_packed_orders_that_is_lost_leaves_no_session_and_is_told_the_next_time() {
    let mut pair = Pair::of(config(), takes_single(), Resume::START, Resume::START);
    pair.run_for(Duration::from_millis(1));
    pair.loses = |to, datagram| to == INITIATOR && kind(datagram) == Kind::Refuse;
    pair.losses = 1;
    pair.send(INITIATOR, b"first");
    pair.send(INITIATOR, b"second");
    pair.run_for(Duration::from_secs(1));
    let told = down_reasons(&pair.events[INITIATOR]);
    assert_eq!(
        told[..2],
        [DownReason::Silence, DownReason::RefusedByPeer(Refusal::Packed)]
    );
    assert!(pair.messages[ACCEPTOR].is_empty());
}

#[test]
fn who_sends_copies_where_each_datagram_is_taken_once_is_refused_and_told_why() {
    for redundancy in [Redundancy::Twice, Redundancy::Paths] {
        let wrong = Refusal::Copies { given: 2 };
        let pair = Pair::of(with(redundancy), takes_single(), Resume::START, Resume::START);
        assert_eq!(
            refusal(pair),
            (DownReason::RefusedByPeer(wrong), DownReason::Refused(wrong))
        );
    }
}

#[test]
fn a_client_that_sends_orders_alone_is_taken_though_they_are_transmitted_again() {
    let client = Config::for_client(SessionId(7), 64, 48);
    let mut pair = Pair::of(client, takes_single(), Resume::START, Resume::START);
    pair.run_for(Duration::from_millis(1));
    pair.loses = |to, datagram| to == ACCEPTOR && kind(datagram) == Kind::Data;
    pair.losses = 5;
    for _ in 0..10 {
        pair.send(INITIATOR, b"order");
        pair.send(ACCEPTOR, b"report");
        pair.send(ACCEPTOR, b"report");
    }
    pair.run_until_received(ACCEPTOR, 10);
    pair.run_until_received(INITIATOR, 20);
    assert!(pair.counters(INITIATOR).retransmits >= 5);
    assert_eq!(pair.counters(ACCEPTOR).refusals, 0);
}
