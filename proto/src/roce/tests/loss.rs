//! A network that loses, doubles and reorders, and peers that are slow or gone.

use super::*;
use crate::roce::wire::{NakCode, Opcode, Syndrome};

/// Posts `count` SENDs of `length` bytes from A to B.
fn sends(pair: &mut Pair, count: u64, length: usize) {
    for id in 0..count {
        pair.ends[B].receive(receive(id, length));
        pair.ends[A].post(send(id, length));
    }
}

fn all_arrived(pair: &Pair, count: u64) {
    let ids = |told: Vec<u64>| assert_eq!(told, (0..count).collect::<Vec<_>>());
    ids(receives(&pair.ends[B])
        .into_iter()
        .filter(|told| told.1.is_ok())
        .map(|told| told.0)
        .collect());
    ids(requests(&pair.ends[A])
        .into_iter()
        .filter(|told| told.1.is_ok())
        .map(|told| told.0)
        .collect());
    assert_eq!(pair.failures(), [None, None]);
}

/// Loses the packets of one end whose turn is in `lost`.
fn losing(from: usize, lost: impl Fn(usize) -> bool) -> impl FnMut(usize, &Packet<'_>) -> Fate {
    let mut count = 0;
    move |sender, _| {
        count += usize::from(sender == from);
        if sender == from && lost(count - 1) {
            Fate::Lose
        } else {
            Fate::Arrive
        }
    }
}

#[test]
fn a_lost_packet_is_asked_for_once_and_all_behind_it_goes_again() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 5, 20);
    pair.settle_with(losing(A, |packet| packet == 1));
    let naks = pair.sent.iter().filter(|sent| {
        let acknowledgement = decoded(&sent.bytes).acknowledgement;
        acknowledgement.is_some_and(|ack| ack.syndrome == Syndrome::Nak(NakCode::SequenceError))
    });
    assert_eq!(naks.count(), 1);
    assert_eq!(pair.opcodes(A).len(), 5 + 4);
    pair.finish();
    all_arrived(&pair, 5);
    assert_eq!(pair.now, Timestamp(1_000_000), "no timeout was needed");
    let [asking, serving] = [A, B].map(|index| pair.ends[index].pair.counters());
    assert_eq!((asking.rcvd_seq_err, asking.completer_retry_err), (1, 4));
    assert_eq!(serving.out_of_seq_request, 3);
}

#[test]
fn a_lost_last_packet_goes_again_after_the_timeout() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 3, 600);
    pair.finish_with(losing(A, |packet| packet == 8));
    all_arrived(&pair, 3);
    assert_eq!(pair.ends[A].pair.counters().local_ack_timeout_err, 1);
    assert!(pair.now >= Timestamp(1_000_000) + config().timeout);
}

#[test]
fn a_peer_that_is_slow_and_lost_nothing_is_sent_one_packet_a_timeout_and_not_everything_again() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 20, 20);
    let packets = pair.ends[A].transmit(pair.now);
    assert_eq!(packets.len(), 20);
    for retries in 0..3 {
        pair.now = pair.now + config().timeout_after(retries);
        let again = pair.ends[A].transmit(pair.now);
        assert_eq!(again.len(), 1);
        assert!(decoded(&again[0]).ack_request, "it asks how far the peer is");
    }
    let from = pair.ends[A].path;
    for bytes in &packets {
        pair.ends[B].take(pair.now, from, bytes, false);
    }
    pair.finish();
    all_arrived(&pair, 20);
    let asking = pair.ends[A].pair.counters();
    assert_eq!((asking.local_ack_timeout_err, asking.completer_retry_err), (3, 3));
}

#[test]
fn a_peer_that_always_takes_longer_than_the_timeout_is_sent_something_again_once() {
    let mut pair = Pair::new(Config {
        ack_every: 1,
        ..config()
    });
    for id in 0..40 {
        pair.ends[B].receive(receive(id, 20));
        pair.ends[A].post(send(id, 20));
        let due = pair.now + Duration::from_micros(400);
        let mut packets = pair.ends[A].transmit(pair.now);
        while let Some(at) = pair.ends[A].pair.poll_timeout()
            && at < due
        {
            pair.now = at;
            packets.extend(pair.ends[A].transmit(pair.now));
        }
        pair.now = due;
        for (from, packets) in [(A, packets), (B, Vec::new())] {
            let late = pair.ends[from].transmit(pair.now);
            for bytes in packets.into_iter().chain(late) {
                pair.deliver(&Sent { from, bytes }, false);
            }
        }
    }
    all_arrived(&pair, 40);
    assert_eq!(pair.ends[A].pair.counters().local_ack_timeout_err, 1);
}

#[test]
fn a_peer_that_is_slow_and_says_piece_by_piece_how_far_it_is_is_sent_nothing_more_again() {
    let mut pair = Pair::new(Config {
        ack_every: 4,
        ..config()
    });
    sends(&mut pair, 20, 20);
    let mut packets = pair.ends[A].transmit(pair.now);
    pair.now = pair.now + config().timeout;
    packets.extend(pair.ends[A].transmit(pair.now));
    assert_eq!(packets.len(), 21);
    for piece in packets.chunks(4) {
        for bytes in piece {
            let bytes = bytes.clone();
            pair.deliver(&Sent { from: A, bytes }, false);
        }
        for bytes in pair.ends[B].transmit(pair.now) {
            pair.deliver(&Sent { from: B, bytes }, false);
        }
        assert_eq!(pair.ends[A].transmit(pair.now), [[0; 0]; 0]);
    }
    pair.finish();
    all_arrived(&pair, 20);
    assert_eq!(pair.ends[A].pair.counters().completer_retry_err, 1);
}

#[test]
fn after_a_loss_half_as_many_packets_are_in_flight_and_soon_as_many_as_before() {
    let mut pair = Pair::new(Config {
        window: 16,
        ack_every: 1,
        ..config()
    });
    sends(&mut pair, 60, 20);
    let flight = pair.ends[A].transmit(pair.now);
    let fly = |pair: &mut Pair, flight: Vec<Vec<u8>>| {
        for bytes in flight {
            pair.deliver(&Sent { from: A, bytes }, false);
        }
        for bytes in pair.ends[B].transmit(pair.now) {
            pair.deliver(&Sent { from: B, bytes }, false);
        }
        pair.ends[A].transmit(pair.now)
    };
    assert_eq!(flight.len(), 16);
    let mut flight = fly(&mut pair, flight[1..].to_vec());
    let mut flights = Vec::new();
    while !flight.is_empty() {
        flights.push(flight.len());
        flight = fly(&mut pair, flight);
    }
    assert_eq!(flights, [8, 16, 16, 16, 4]);
    pair.finish();
    all_arrived(&pair, 60);
}

#[test]
fn whoever_posts_no_more_than_the_window_has_room_for_sees_all_of_it_leave() {
    let mut pair = Pair::new(Config { window: 10, ..config() });
    for room in (1..=10).rev() {
        assert_eq!(pair.ends[A].pair.window_room(), room);
        pair.ends[B].receive(receive(room, 20));
        pair.ends[A].post(send(room, 20));
    }
    assert_eq!(pair.ends[A].pair.window_room(), 0);
    assert_eq!(pair.ends[A].transmit(pair.now).len(), 10);
    pair.finish();
    assert_eq!(pair.ends[A].pair.window_room(), 10);
    pair.ends[A].post(send(11, 2 * 256 + 1));
    assert_eq!(pair.ends[A].pair.window_room(), 7);
}

#[test]
fn a_lost_acknowledgement_is_given_again_and_nothing_is_executed_twice() {
    let mut pair = Pair::new(Config {
        ack_every: 1,
        ..config()
    });
    sends(&mut pair, 1, 20);
    pair.finish_with(losing(B, |packet| packet == 0));
    all_arrived(&pair, 1);
    let serving = pair.ends[B].pair.counters();
    assert_eq!((serving.duplicate_request, serving.messages_executed), (1, 1));
}

#[test]
fn a_lost_nak_costs_a_timeout_and_no_more() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 5, 20);
    let mut lose = losing(A, |packet| packet == 1);
    let mut is_first = true;
    pair.finish_with(|from, packet| {
        if from == B && core::mem::take(&mut is_first) {
            return Fate::Lose;
        }
        lose(from, packet)
    });
    all_arrived(&pair, 5);
    assert_eq!(pair.ends[A].pair.counters().local_ack_timeout_err, 1);
}

#[test]
fn numbers_wrap_in_the_middle_of_messages_and_of_losses() {
    for first in [0xff_ffff, 0xff_fffe, 0xff_fff0] {
        let mut pair = Pair::with_psns(config(), [first, 0xff_fff8]);
        sends(&mut pair, 30, 600);
        for id in 0..30 {
            pair.ends[B].post(read(B, id, 0, 1_000));
        }
        pair.finish_with(losing(A, |packet| packet % 11 == 10));
        all_arrived(&pair, 30);
        assert_eq!(requests(&pair.ends[B]).len(), 30);
    }
}

#[test]
fn packets_in_any_order_and_twice_are_executed_in_order_and_once() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 8, 300);
    let mut packets = pair.ends[A].transmit(pair.now);
    packets.reverse();
    for bytes in packets.iter().chain(&packets) {
        let bytes = bytes.clone();
        pair.deliver(&Sent { from: A, bytes }, false);
    }
    pair.finish();
    all_arrived(&pair, 8);
    assert_eq!(pair.ends[B].pair.counters().messages_executed, 8);
}

#[test]
fn a_damaged_packet_is_as_good_as_lost() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 1, 50);
    let good = pair.ends[A].transmit(pair.now).remove(0);
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // Routers may change the byte of congestion marks.
        if bit / 8 != 4 {
            pair.deliver(&Sent { from: A, bytes }, false);
        }
    }
    assert_eq!(pair.ends[B].pair.counters().rcvd_pkts, 0);
    pair.finish();
    all_arrived(&pair, 1);
}

#[test]
fn without_a_receive_the_peer_is_told_to_wait_and_comes_again() {
    let mut pair = Pair::new(config());
    for id in 0..4 {
        pair.ends[A].post(write(A, id, 64 * id as usize, 64, Some(1)));
    }
    pair.settle();
    let rnr = |syndrome| matches!(syndrome, Syndrome::RnrNak(1));
    let answers = pair.sent.iter().filter_map(|sent| decoded(&sent.bytes).acknowledgement);
    assert_eq!(answers.filter(|answer| rnr(answer.syndrome)).count(), 1);
    assert_eq!(requests(&pair.ends[A]), []);
    let asked = pair.opcodes(A).len();
    assert!(pair.wait());
    assert_eq!(pair.now, Timestamp(1_000_000) + config().rnr_delay());
    for id in 0..4 {
        pair.ends[B].receive(receive(id, 0));
    }
    pair.finish();
    all_arrived(&pair, 4);
    assert_eq!(pair.opcodes(A).len(), asked + 4);
    let counters = [A, B].map(|index| pair.ends[index].pair.counters());
    assert_eq!((counters[A].rcvd_rnr_err, counters[B].send_rnr_err), (1, 1));
}

#[test]
fn a_peer_without_a_receive_for_too_long_breaks_the_pair() {
    let mut pair = Pair::new(Config {
        rnr_retry_limit: 3,
        ..config()
    });
    pair.ends[A].post(send(1, 10));
    pair.ends[A].post(send(2, 10));
    pair.finish();
    let expected = [(1, Err(Failure::RnrRetryExceeded)), (2, Err(Failure::Flushed))];
    assert_eq!(requests(&pair.ends[A]), expected);
    assert_eq!(pair.ends[A].pair.counters().rcvd_rnr_err, 4);
}

#[test]
fn a_peer_that_vanishes_breaks_the_pair_after_all_tries() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 3, 10);
    pair.ends[A].receive(receive(9, 10));
    pair.finish_with(|_, _| Fate::Lose);
    let flushed = Err(Failure::Flushed);
    let expected = [(0, Err(Failure::RetryExceeded)), (1, flushed), (2, flushed)];
    assert_eq!(requests(&pair.ends[A]), expected);
    assert_eq!(receives(&pair.ends[A]), [(9, Err(Failure::Flushed))]);
    let counters = pair.ends[A].pair.counters();
    assert_eq!(counters.local_ack_timeout_err, u64::from(config().retry_limit) + 1);
    assert_eq!(pair.now, Timestamp(1_000_000) + config().patience());
    let regions = &pair.ends[A].regions;
    assert_eq!(
        pair.ends[A].pair.post_send(send(4, 1), regions),
        Err(PostError::NotConnected)
    );
}

#[test]
fn a_pair_that_broke_begins_anew_and_takes_nothing_of_the_past() {
    let mut pair = Pair::new(config());
    sends(&mut pair, 3, 10);
    let old = pair.ends[A].transmit(pair.now);
    pair.finish_with(|_, _| Fate::Lose);
    pair.ends[B].pair.close();
    let psns = [0x70_0000, 0x10_0000];
    for index in [A, B] {
        pair.ends[index].pair.connect(attributes(index, psns));
        pair.ends[index].completions.clear();
    }
    sends(&mut pair, 2, 10);
    for bytes in old {
        pair.deliver(&Sent { from: A, bytes }, false);
    }
    pair.finish();
    all_arrived(&pair, 2);
}

#[test]
fn a_window_that_is_full_asks_for_an_acknowledgement() {
    let mut pair = Pair::new(Config { window: 3, ..config() });
    sends(&mut pair, 1, 5_000);
    pair.settle();
    assert_eq!(receives(&pair.ends[B]).len(), 1);
    assert_eq!(pair.opcodes(B), [Opcode::Acknowledge; 6]);
    pair.finish();
    all_arrived(&pair, 1);
    assert_eq!(pair.ends[A].pair.counters().local_ack_timeout_err, 0);
}
