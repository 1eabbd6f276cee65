//! Marks of routers, notifications, and the rate.

use super::*;
use crate::roce::wire::Opcode;

fn rated() -> Config {
    Config {
        rate: Some(RateConfig::for_line(1_250_000_000)),
        ..config()
    }
}

fn marked(pair: &mut Pair, count: u64) {
    for id in 0..count {
        pair.ends[A].post(write(A, id, 0, 200, None));
    }
    pair.settle_with(|from, _| if from == A { Fate::ArriveMarked } else { Fate::Arrive });
}

#[test]
fn marks_are_counted_and_the_sender_is_told_once_an_interval() {
    let mut pair = Pair::new(config());
    marked(&mut pair, 10);
    let counters = [A, B].map(|index| pair.ends[index].pair.counters());
    assert_eq!(counters[B].np_ecn_marked_roce_packets, 10);
    assert_eq!((counters[B].np_cnp_sent, counters[A].rp_cnp_ignored), (1, 1));
    let told = pair.sent.iter().map(|sent| decoded(&sent.bytes));
    let told: Vec<_> = told
        .filter(|packet| packet.opcode == Opcode::CongestionNotification)
        .collect();
    assert_eq!(
        (told.len(), told[0].is_backward_congestion, told[0].payload),
        (1, true, &[0; 16][..])
    );
    pair.now = pair.now + config().cnp_interval;
    marked(&mut pair, 10);
    assert_eq!(pair.ends[B].pair.counters().np_cnp_sent, 2);
}

#[test]
fn a_notified_sender_slows_down_and_everything_arrives_all_the_same() {
    let mut pair = Pair::new(rated());
    marked(&mut pair, 1);
    assert_eq!(pair.ends[A].pair.counters().rp_cnp_handled, 1);
    assert_eq!(pair.ends[A].pair.rate(), Some(1_250_000_000 / 2));
    for id in 0..10 {
        pair.ends[A].post(write(A, id, 0, 200, None));
    }
    assert_eq!(
        pair.ends[A].transmit(pair.now).len(),
        1,
        "the others wait for their time"
    );
    let start = pair.now;
    pair.finish();
    assert_eq!(requests(&pair.ends[A]).len(), 11);
    let whole = Duration(9 * 228 * 1_000_000_000 / (1_250_000_000 / 2));
    assert!(pair.now.since(start) >= whole);
    assert_eq!(pair.ends[A].pair.rate(), Some(1_250_000_000), "it recovers");
}

#[test]
fn without_marks_the_rate_holds_nothing_back() {
    let mut pair = Pair::new(rated());
    for id in 0..16 {
        pair.ends[A].post(write(A, id, 0, 200, None));
    }
    pair.settle();
    assert_eq!((requests(&pair.ends[A]).len(), pair.now), (16, Timestamp(1_000_000)));
}
