//! A peer that lost its machine gets again what it had acknowledged, from this end's journal.

use super::*;

/// A pair of which the acceptor had received 200 messages, and comes back with those below `wanted`.
fn fallen_back(wanted: u64) -> Pair {
    let mut pair = Pair::new();
    pair.run_for(Duration::from_millis(1));
    for number in 1..=200_u64 {
        pair.send(INITIATOR, &message(number));
        pair.run_for(Duration::from_micros(10));
    }
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.messages[ACCEPTOR].len(), 200);
    pair.messages = [Vec::new(), Vec::new()];
    pair.events = [Vec::new(), Vec::new()];
    pair.restart(ACCEPTOR, 3_000, resume(1, wanted), &[]);
    pair.run_for(Duration::from_millis(200));
    pair
}

fn message(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// What the initiator's owner is asked for and has not been before.
fn asked(pair: &mut Pair) -> Vec<(u64, u64)> {
    let events = std::mem::take(&mut pair.events[INITIATOR]);
    let ranges = events.iter().filter_map(|event| match event {
        Event::Recall { from, to } => Some((from.0, to.0)),
        _ => None,
    });
    ranges.collect()
}

fn bring(pair: &mut Pair, numbers: core::ops::Range<u64>) {
    for number in numbers {
        pair.ends[INITIATOR].recalled(SequenceNumber(number), &message(number));
    }
}

#[test]
fn what_a_peer_lost_comes_again_from_the_journal_and_then_what_is_new() {
    let mut pair = fallen_back(51);
    assert!(pair.ends.iter().all(Connection::is_up));
    assert_eq!(pair.send(INITIATOR, &message(201)), SequenceNumber(201));
    // As many at a time as are held for it, and no new one before them.
    let mut next = 51;
    loop {
        let ranges = asked(&mut pair);
        let Some(&(from, to)) = ranges.first() else { break };
        assert_eq!((ranges.len(), from), (1, next));
        assert!(to - from <= 64);
        pair.run_for(Duration::from_millis(1));
        assert_eq!(pair.messages[ACCEPTOR].len() as u64, from - 51);
        bring(&mut pair, from..to);
        pair.run_for(Duration::from_millis(1));
        next = to;
    }
    assert_eq!(next, 201);
    let expected = (51..=201).map(message).collect::<Vec<_>>();
    assert_eq!(pair.messages[ACCEPTOR], expected);
    let counters = pair.counters(INITIATOR);
    assert_eq!((counters.recalled, counters.retransmits), (150, 150));
    let again = pair.sent.iter().filter(|(_, from, datagram)| {
        *from == INITIATOR && matches!(kind(datagram), Kind::Data | Kind::Packed) && header(datagram).flags == 1
    });
    assert!(again.count() > 0, "they are marked");
    // The session goes on as if nothing had been.
    pair.send(INITIATOR, b"next");
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.ends[INITIATOR].room(), 64);
    assert_eq!(pair.counters(INITIATOR).retransmits, 150);
}

#[test]
fn a_recall_that_is_lost_on_the_way_is_repaired_like_anything_else() {
    let mut pair = fallen_back(199);
    pair.loses = |to, datagram| to == ACCEPTOR && header(datagram).flags == 1;
    pair.losses = 1;
    assert_eq!(asked(&mut pair), [(199, 201)]);
    bring(&mut pair, 199..201);
    pair.send(INITIATOR, &message(201));
    pair.run_until_received(ACCEPTOR, 3);
    assert_eq!(pair.messages[ACCEPTOR], [199, 200, 201].map(message));
    assert_eq!(pair.losses, 0);
}

#[test]
fn what_an_earlier_session_asked_for_is_not_taken_for_something_else() {
    let mut pair = fallen_back(151);
    assert_eq!(asked(&mut pair), [(151, 201)]);
    // Before the journal is read, the peer loses its machine again, and more than the first time.
    pair.restart(ACCEPTOR, 4_000, resume(1, 149), &[]);
    pair.run_for(Duration::from_millis(200));
    assert_eq!(asked(&mut pair), [(149, 201)]);
    bring(&mut pair, 151..201);
    pair.ends[INITIATOR].not_recalled(SequenceNumber(151));
    pair.run_for(Duration::from_millis(1));
    assert!(pair.messages[ACCEPTOR].is_empty() && pair.ends[INITIATOR].is_up());
    bring(&mut pair, 149..201);
    pair.run_for(Duration::from_millis(1));
    let expected = (149..=200).map(message).collect::<Vec<_>>();
    assert_eq!(pair.messages[ACCEPTOR], expected);
}

/// What both ends are told when a journal does not have what the other end lost, and all they are told.
fn gone(mut pair: Pair, holder: usize) -> [Vec<DownReason>; 2] {
    pair.run_for(Duration::from_millis(5));
    assert!(pair.ends.iter().all(Connection::is_up));
    pair.ends[holder].not_recalled(SequenceNumber(4));
    pair.run_for(Duration::from_millis(500));
    assert!(pair.ends.iter().all(|end| !end.is_up()));
    // Attempts go on, and are refused at once.
    let recalls = |event: &&Event| matches!(event, Event::Recall { .. });
    assert_eq!(pair.events[holder].iter().filter(recalls).count(), 1);
    assert!(pair.kinds_sent(INITIATOR).len() >= 4);
    [INITIATOR, ACCEPTOR].map(|end| down_reasons(&pair.events[end]))
}

#[test]
fn a_message_that_the_journal_does_not_have_is_refused_by_name() {
    let wanted = SequenceNumber(4);
    let oldest = SequenceNumber(9);
    let reason = Refusal::MessagesGone { wanted, oldest };
    let (here, there) = (DownReason::Refused(reason), DownReason::RefusedByPeer(reason));
    let pair = Pair::of(config(), config(), resume(1, 4), resume(9, 1));
    assert_eq!(gone(pair, ACCEPTOR), [[there], [here]]);
    let pair = Pair::of(config(), config(), resume(9, 1), resume(1, 4));
    // An initiator looks at the numbers last: the acceptor has agreed, and yet is not up before the initiator is.
    assert_eq!(gone(pair, INITIATOR), [[here], [there]]);
}

#[test]
fn an_initiator_that_refuses_calls_at_growing_intervals_and_its_peer_is_never_up() {
    let mut pair = Pair::of(config(), config(), resume(9, 1), resume(1, 4));
    pair.run_for(Duration::from_millis(5));
    pair.ends[INITIATOR].not_recalled(SequenceNumber(4));
    let mut refused = Vec::new();
    for _ in 0..30 {
        let before = pair.counters(ACCEPTOR).refused_by_peer;
        pair.run_for(Duration::from_secs(1));
        refused.push(pair.counters(ACCEPTOR).refused_by_peer - before);
        assert!(!pair.ends[ACCEPTOR].is_up());
    }
    // At 0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, and then every five seconds.
    assert_eq!(refused[..7], [4, 1, 0, 1, 0, 0, 1]);
    assert_eq!(refused.iter().sum::<u64>(), 11);
    assert_eq!(pair.counters(ACCEPTOR).ups, 1);
}

#[test]
fn an_end_that_lost_what_it_had_sent_is_refused() {
    let mut pair = Pair::up();
    // It had sent and received 30 messages, and its journal has 20 of each.
    pair.restart(ACCEPTOR, 3_000, resume(21, 21), &[]);
    pair.run_for(Duration::from_millis(300));
    let (wanted, next) = (SequenceNumber(31), SequenceNumber(21));
    let ahead = DownReason::Refused(Refusal::NumbersAhead { wanted, next });
    assert_eq!(down_reasons(&pair.events[ACCEPTOR]), [ahead]);
    let mut pair = Pair::up();
    pair.restart(INITIATOR, 3_000, resume(21, 21), &[]);
    pair.run_for(Duration::from_millis(300));
    let (given, wanted) = (SequenceNumber(21), SequenceNumber(31));
    let behind = DownReason::RefusedByPeer(Refusal::NumbersBehind { given, wanted });
    assert_eq!(down_reasons(&pair.events[INITIATOR]), [behind]);
}
