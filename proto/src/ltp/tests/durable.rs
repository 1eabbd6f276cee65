//! Received is not durable: the peer learns both.

use super::*;

/// The acceptor's journal has got so far, and the initiator hears of it.
fn journaled(pair: &mut Pair, appended: u64, synced: u64) -> Option<SequenceNumber> {
    pair.ends[ACCEPTOR].journaled(appended, synced);
    pair.run_for(Duration::from_millis(6));
    pair.ends[INITIATOR].peer_durable()
}

#[test]
fn what_is_received_is_durable_once_the_journal_is_synced_beyond_it() {
    let mut pair = Pair::new();
    pair.run_for(Duration::from_millis(1));
    pair.send(INITIATOR, b"order 1");
    pair.run_for(Duration::from_micros(100));
    let received = SequenceNumber(2);
    assert_eq!(pair.ends[INITIATOR].peer_received(), received);
    assert_eq!(journaled(&mut pair, 100, 0), None);
    // More is appended while the sync is under way.
    pair.send(INITIATOR, b"order 2");
    pair.run_for(Duration::from_micros(100));
    assert_eq!(journaled(&mut pair, 200, 99), None);
    assert_eq!(journaled(&mut pair, 200, 100), Some(received));
    assert_eq!(journaled(&mut pair, 200, 199), Some(received));
    assert_eq!(journaled(&mut pair, 200, 200), Some(SequenceNumber(3)));
}

#[test]
fn an_end_that_says_nothing_of_its_journal_has_nothing_durable() {
    let mut pair = Pair::up();
    pair.run_for(Duration::from_millis(20));
    assert_eq!(pair.ends[INITIATOR].peer_durable(), None);
}

#[test]
fn a_new_session_begins_with_what_the_peer_says_then() {
    let mut pair = Pair::new();
    pair.run_for(Duration::from_millis(1));
    pair.send(INITIATOR, b"order 1");
    pair.run_for(Duration::from_micros(100));
    journaled(&mut pair, 100, 0);
    assert_eq!(journaled(&mut pair, 100, 100), Some(SequenceNumber(2)));
    // It restarts, and cannot tell yet what of its journal is safe.
    pair.restart(ACCEPTOR, 3_000, resume(1, 2), &[]);
    pair.run_for(Duration::from_millis(200));
    assert!(pair.ends[INITIATOR].is_up());
    assert_eq!(pair.ends[INITIATOR].peer_durable(), None);
}
