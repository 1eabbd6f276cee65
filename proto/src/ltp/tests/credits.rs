//! Open orders that the acceptor grants.

use super::*;

fn told(pair: &Pair) -> Vec<u32> {
    let events = pair.events[INITIATOR].iter().filter_map(|event| match event {
        Event::Credits { slots } => Some(*slots),
        _ => None,
    });
    events.collect()
}

#[test]
fn credits_are_unset_until_they_are_granted_and_0_is_a_grant() {
    let mut pair = Pair::up();
    assert_eq!(
        (pair.ends[INITIATOR].credits(), pair.ends[ACCEPTOR].credits()),
        (None, None)
    );
    for slots in [100, 0, 0, 7] {
        pair.ends[ACCEPTOR].grant(slots);
        pair.run_for(Duration::from_micros(10));
        assert_eq!(pair.ends[INITIATOR].credits(), Some(slots));
    }
    pair.run_for(Duration::from_millis(50));
    assert_eq!(told(&pair), [100, 0, 7]);
}

#[test]
fn credits_that_are_lost_come_again_also_while_messages_flow() {
    let mut pair = Pair::up();
    pair.loses = |_, datagram| kind(datagram) == Kind::Credits;
    pair.losses = 1;
    pair.ends[ACCEPTOR].grant(3);
    for _ in 0..60 {
        pair.send(ACCEPTOR, b"report");
        pair.run_for(Duration::from_micros(100));
    }
    assert_eq!(told(&pair), [3]);
}

#[test]
fn a_new_session_tells_them_anew_and_only_what_changed_is_news() {
    let mut pair = Pair::up();
    pair.ends[ACCEPTOR].grant(5);
    pair.run_for(Duration::from_millis(1));
    pair.loses = |_, _| true;
    pair.run_for(Duration::from_millis(110));
    assert!(!pair.ends[INITIATOR].is_up());
    // What was granted last holds until something else is.
    assert_eq!(pair.ends[INITIATOR].credits(), Some(5));
    pair.loses = |_, _| false;
    pair.run_for(Duration::from_millis(20));
    assert_eq!(told(&pair), [5]);
    pair.loses = |_, _| true;
    pair.run_for(Duration::from_millis(110));
    pair.ends[ACCEPTOR].grant(2);
    pair.loses = |_, _| false;
    pair.run_for(Duration::from_millis(20));
    assert_eq!(told(&pair), [5, 2]);
    pair.restart(INITIATOR, 5_000, resume(31, 31), &[]);
    pair.run_for(Duration::from_millis(20));
    assert_eq!(told(&pair), [5, 2, 2]);
}

#[test]
fn an_older_grant_that_comes_late_or_again_is_dropped() {
    let mut pair = Pair::up();
    pair.ends[ACCEPTOR].grant(5);
    pair.turn(ACCEPTOR);
    let (now, _, first) = pair.sent.last().unwrap().clone();
    pair.network.clear();
    pair.ends[ACCEPTOR].grant(9);
    pair.run_for(Duration::from_micros(10));
    assert_eq!(kind(&first), Kind::Credits);
    for _ in 0..2 {
        // Late, and then once more.
        pair.ends[INITIATOR].on_datagram(now, &first);
        pair.run_for(Duration::from_micros(10));
    }
    assert_eq!((told(&pair), pair.counters(INITIATOR).replayed), ([9].to_vec(), 1));
}

#[test]
fn the_initiator_grants_nothing() {
    let mut pair = Pair::up();
    pair.ends[ACCEPTOR].grant(5);
    pair.turn(ACCEPTOR);
    let (now, _, mut forged) = pair.sent.last().unwrap().clone();
    // Turned round: the direction is the top bit of the tag.
    forged[3] ^= 0x80;
    forged[24] = 77;
    pair.ends[ACCEPTOR].on_datagram(now, &forged);
    assert_eq!(pair.ends[ACCEPTOR].credits(), Some(5));
}

#[test]
#[should_panic(expected = "credits are granted by the acceptor")]
fn granting_on_the_initiators_end_is_a_mistake_of_the_owner() {
    Pair::up().ends[INITIATOR].grant(1);
}
