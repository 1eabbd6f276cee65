//! Datagrams that prove their origin, and those that only seem to.

use super::*;
use crate::ltp::wire::MAC_LENGTH;

const KEY: Key = Key {
    id: 9,
    secret: *b"a secret of both",
};

fn with_key(key: Option<Key>) -> Config {
    Config { key, ..config() }
}

/// A pair with a session under a key.
fn authenticated() -> Pair {
    let config = with_key(Some(KEY));
    let mut pair = Pair::of(config, config, Resume::START, Resume::START);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.ends.iter().all(Connection::is_up));
    pair
}

fn datagrams(pair: &Pair, from: usize) -> Vec<Vec<u8>> {
    let sent = pair.sent.iter().filter(|(_, by, _)| *by == from);
    sent.map(|(.., datagram)| datagram.clone()).collect()
}

#[test]
fn every_datagram_is_8_bytes_longer_and_a_message_still_begins_at_byte_16() {
    let mut pair = authenticated();
    for number in 0..100u8 {
        pair.send(INITIATOR, &[number; 48]);
        pair.send(ACCEPTOR, &[number; 40]);
        pair.run_for(Duration::from_micros(30));
    }
    assert_eq!(
        (pair.messages[ACCEPTOR].len(), pair.messages[INITIATOR].len()),
        (100, 100)
    );
    for (.., datagram) in &pair.sent {
        let (header, payload) = HeaderForm::Full.read(datagram, MAC_LENGTH).unwrap();
        assert_eq!(datagram.len(), HEADER_LENGTH + payload.len() + MAC_LENGTH);
        if header.kind == Kind::Data {
            assert_eq!(payload[0], payload[payload.len() - 1]);
        }
    }
    assert_eq!(pair.counters(ACCEPTOR).forged + pair.counters(INITIATOR).forged, 0);
}

#[test]
fn what_was_changed_on_the_way_is_dropped_and_counted() {
    let mut pair = authenticated();
    pair.send(INITIATOR, b"order");
    pair.turn(INITIATOR);
    let (now, _, good) = pair.sent.last().unwrap().clone();
    let acceptor = &mut pair.ends[ACCEPTOR];
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut forged = good.clone();
            forged[at] ^= 1 << bit;
            assert_eq!(acceptor.on_datagram(now, &forged), Received::Dropped, "byte {at}");
        }
    }
    let counters = acceptor.counters();
    // The tag is looked at first, then the form, and only what has both right is hashed.
    assert_eq!(counters.foreign, 32);
    assert_eq!(
        counters.foreign + counters.malformed + counters.forged,
        8 * good.len() as u64
    );
    assert_eq!(counters.messages_received, 0);
    assert_eq!(acceptor.on_datagram(now, &good), Received::Session);
}

#[test]
fn different_keys_are_refused_by_name_whichever_end_has_one() {
    let other = Key { id: 4, ..KEY };
    for (first, second, given, held) in [
        (Some(KEY), Some(other), 9, 4),
        (Some(KEY), None, 9, 0),
        (None, Some(KEY), 0, 9),
    ] {
        let pair = Pair::of(with_key(first), with_key(second), Resume::START, Resume::START);
        let wrong = Refusal::Key { given, held };
        assert_eq!(
            refusal(pair),
            (DownReason::RefusedByPeer(wrong), DownReason::Refused(wrong))
        );
    }
}

#[test]
fn another_session_is_refused_by_name_under_a_key_too() {
    let other = Config {
        session: SessionId(8),
        ..with_key(Some(KEY))
    };
    let pair = Pair::of(with_key(Some(KEY)), other, Resume::START, Resume::START);
    let wrong = Refusal::Session { given: 7, held: 8 };
    assert_eq!(
        refusal(pair),
        (DownReason::RefusedByPeer(wrong), DownReason::Refused(wrong))
    );
}

#[test]
fn a_key_of_the_same_name_and_another_secret_establishes_nothing() {
    let wrong = Key {
        secret: *b"another secret..",
        ..KEY
    };
    let mut pair = Pair::of(with_key(Some(wrong)), with_key(Some(KEY)), Resume::START, Resume::START);
    pair.run_for(Duration::from_millis(100));
    assert!(pair.ends.iter().all(|end| !end.is_up()));
    assert!(pair.counters(ACCEPTOR).forged > 5);
    // And it is not answered.
    assert!(pair.kinds_sent(ACCEPTOR).is_empty());
}

#[test]
fn nobody_without_the_key_ends_a_session_by_talking_of_keys() {
    let mut stranger = Pair::of(with_key(None), with_key(Some(KEY)), Resume::START, Resume::START);
    stranger.run_for(Duration::from_millis(5));
    let mut pair = authenticated();
    let now = pair.now;
    for datagram in datagrams(&stranger, INITIATOR)
        .iter()
        .chain(&datagrams(&stranger, ACCEPTOR))
    {
        for end in &mut pair.ends {
            end.on_datagram(now, datagram);
        }
    }
    pair.run_for(Duration::from_millis(20));
    assert!(pair.ends.iter().all(Connection::is_up));
    assert_eq!(pair.counters(INITIATOR).downs + pair.counters(ACCEPTOR).downs, 0);
}

/// All that was ever sent, good and under the right key, comes once more.
#[test]
fn what_is_played_again_disturbs_nothing() {
    let mut pair = authenticated();
    for _ in 0..30 {
        pair.send(INITIATOR, b"order");
        pair.send(ACCEPTOR, b"report");
        pair.run_for(Duration::from_micros(50));
    }
    pair.run_for(Duration::from_millis(20));
    let recorded = [datagrams(&pair, INITIATOR), datagrams(&pair, ACCEPTOR)];
    let before = [pair.counters(INITIATOR), pair.counters(ACCEPTOR)];
    pair.events = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        let now = pair.now;
        for end in [INITIATOR, ACCEPTOR] {
            for datagram in &recorded[1 - end] {
                pair.ends[end].on_datagram(now, datagram);
            }
        }
        pair.run_for(Duration::from_micros(100));
    }
    for end in [INITIATOR, ACCEPTOR] {
        let counters = pair.counters(end);
        assert_eq!(counters.messages_received, before[end].messages_received);
        assert_eq!((counters.retransmits, counters.timeouts, counters.downs), (0, 0, 0));
        assert!(pair.events[end].is_empty() && pair.ends[end].is_up());
        assert!(counters.replayed > before[end].replayed);
        // A handshake that is asked for again is answered again; nothing else is.
        assert!(counters.datagrams_sent - before[end].datagrams_sent < 20);
    }
}

#[test]
fn what_is_played_again_keeps_no_dead_session_alive() {
    for key in [Some(KEY), None] {
        let mut pair = Pair::of(with_key(key), with_key(key), Resume::START, Resume::START);
        for _ in 0..30 {
            pair.send(INITIATOR, b"order");
            pair.run_for(Duration::from_micros(50));
        }
        pair.run_for(Duration::from_millis(20));
        let recorded = datagrams(&pair, INITIATOR);
        // The initiator dies; somebody plays all that it ever said, over and over.
        pair.asleep = Some(INITIATOR);
        pair.events[ACCEPTOR].clear();
        for _ in 0..150 {
            let now = pair.now;
            for datagram in &recorded {
                pair.ends[ACCEPTOR].on_datagram(now, datagram);
            }
            pair.run_for(Duration::from_millis(1));
        }
        assert_eq!(
            pair.events[ACCEPTOR][0],
            Event::Down {
                reason: DownReason::Silence
            }
        );
        assert!(!pair.ends[ACCEPTOR].is_up());
    }
}

#[test]
fn a_peer_that_only_transmits_again_is_not_silent() {
    let mut pair = authenticated();
    pair.send(INITIATOR, b"order");
    // No acknowledgement gets through, and each time the message is there already.
    pair.loses = |to, _| to == INITIATOR;
    pair.run_for(Duration::from_millis(90));
    pair.loses = |_, _| false;
    pair.run_for(Duration::from_millis(90));
    assert_eq!(pair.counters(ACCEPTOR).downs, 0);
    assert!(pair.counters(ACCEPTOR).duplicates > 10);
}
