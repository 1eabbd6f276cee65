//! What becomes of orders that come faster than a rate: queued, or the session is logged out.

use crate::cross::{buys, crossing_with, sells};
use crate::fix::{Logon, field, order};
use crate::fixture::{ALFA, Fixture, NATIVE, VENUE, buy};
use crate::held::{PARTS as HELD_PARTS, iceberg, peg, stop};
use gateway::replay;
use proptest::prelude::*;
use proto::fix::NewOrderSingle;
use std::collections::VecDeque;
use types::{
    CancelOrder, ClientOrderId, Duration, ExecType, InstrumentId, NewOrder, Price, Quantity, Reason, ReplaceOrder,
    Request, ShardId, Side,
};

/// Two at once and ten a second for the native session; three may wait for a second.
fn fixture(action: &str, wait_ms: u32) -> Fixture {
    let rate =
        format!("user = \"trader\"\nmax_orders_per_second = 10\nmax_orders_at_once = 2\nrate_action = \"{action}\"\n");
    let queue = format!("[risk.rate_queue]\norders = 3\nwait_ms = {wait_ms}\n[capacity]");
    Fixture::changed(&[("user = \"trader\"\n", &rate), ("[capacity]", &queue)])
}

fn send(fixture: &mut Fixture, number: u64, lots: u64) -> Option<Reason> {
    let order = NewOrder {
        quantity: Quantity(lots),
        ..buy(number)
    };
    fixture.native(&Request::New(order)).last().map(|report| report.reason)
}

fn cancel(number: u64, orig: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: ClientOrderId(orig),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
    })
}

fn replace(number: u64, orig: u64, lots: u64) -> Request {
    Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: ClientOrderId(orig),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
        price: buy(1).price,
        quantity: Quantity(lots),
        terms: buy(1).terms,
    })
}

/// Messages to the venue, and the lots of the last one when it is an order.
fn sent(fixture: &Fixture) -> (u64, Option<u64>) {
    let (count, last) = fixture.sent();
    let lots = match last {
        Some(Request::New(order)) => Some(order.quantity.0),
        _ => None,
    };
    (count, lots)
}

fn pass(fixture: &mut Fixture, ms: u64) {
    fixture.now = fixture.now + Duration::from_millis(ms);
    fixture.shard.set_now(fixture.now);
    while fixture.shard.turn() {}
    fixture.shard.shard().orders().audit().expect("all is counted");
}

fn open(fixture: &Fixture) -> usize {
    fixture.shard.shard().orders().open_orders()
}

fn replays(fixture: Fixture) {
    let (config, _folder) = fixture.stop();
    replay::verify(&config, ShardId(0)).expect("it replays");
}

#[test]
fn what_is_too_fast_waits_and_goes_in_its_order_when_the_rate_allows() {
    let mut fixture = fixture("queue", 1_000);
    for number in 1..=5 {
        assert_eq!(send(&mut fixture, number, number), None, "{number}");
    }
    assert_eq!((sent(&fixture), open(&fixture)), ((2, Some(2)), 5));
    assert_eq!(send(&mut fixture, 6, 6), Some(Reason::RateLimit), "no more may wait");
    pass(&mut fixture, 99);
    assert_eq!(sent(&fixture), (2, Some(2)));
    pass(&mut fixture, 1);
    assert_eq!(sent(&fixture), (3, Some(3)));
    // One that the rate would allow now stays behind those that wait.
    assert_eq!(send(&mut fixture, 7, 7), None);
    pass(&mut fixture, 100);
    assert_eq!(sent(&fixture), (4, Some(4)));
    pass(&mut fixture, 200);
    assert_eq!(sent(&fixture), (6, Some(7)));
    assert_eq!(
        (open(&fixture), fixture.shard.shard().orders().counters().queued),
        (6, 4)
    );
    assert!(!fixture.shard.turn(), "nothing is left to do");
    replays(fixture);
}

/// The rate is of one instrument; the other has none.
#[test]
fn an_order_that_no_rate_holds_back_stays_behind_those_of_its_session_that_wait_and_holds_back_no_other() {
    let rate = "[risk.instruments.ALFA]\nmax_orders_per_second = 10\nmax_orders_at_once = 1\nrate_action = \"queue\"\n";
    let queue = format!("{rate}[risk.rate_queue]\norders = 3\nwait_ms = 1_000\n[capacity]");
    let mut fixture = Fixture::changed(&[
        ("[capacity]", &queue),
        ("reference_missing = \"refuse\"", "reference_missing = \"master\""),
    ]);
    fixture.fix(&Logon);
    let beta = NewOrder {
        instrument: InstrumentId(2),
        price: Price::parse(b"50").expect("a price"),
        quantity: Quantity(3),
        ..buy(3)
    };
    assert_eq!(send(&mut fixture, 1, 1), None);
    assert_eq!(send(&mut fixture, 2, 2), None);
    assert_eq!(fixture.native(&Request::New(beta)), []);
    assert_eq!((sent(&fixture), open(&fixture)), ((1, Some(1)), 3));
    let other = NewOrderSingle {
        price: beta.price,
        quantity: 1_000,
        ..order("A-1", "BETA")
    };
    fixture.fix(&other);
    assert_eq!(
        (sent(&fixture).0, open(&fixture)),
        (2, 4),
        "another session's goes at once"
    );
    pass(&mut fixture, 100);
    assert_eq!(sent(&fixture), (4, Some(3)));
    replays(fixture);
}

#[test]
fn a_cancel_is_never_held_back_and_ends_a_queued_order_here() {
    let mut fixture = fixture("queue", 1_000);
    for number in 1..=4 {
        send(&mut fixture, number, number);
    }
    fixture.venue_about(first_at_venue(&fixture), ExecType::New, Reason::None, 0, 2, 0);
    fixture.native_reports();
    // Of the second, which works at the venue, and of the third, which waits.
    assert_eq!(fixture.native(&cancel(5, 2)), []);
    assert_eq!(sent(&fixture), (3, None), "it goes at once");
    let reports = fixture.native(&cancel(6, 3));
    let ends = reports
        .iter()
        .map(|report| (report.exec_type, report.client_order_id.0, report.reason));
    assert_eq!(ends.collect::<Vec<_>>(), [(ExecType::Canceled, 6, Reason::Requested)]);
    assert_eq!((sent(&fixture).0, open(&fixture)), (3, 3));
    pass(&mut fixture, 100);
    assert_eq!(
        sent(&fixture),
        (4, Some(4)),
        "the next of the session goes in its place"
    );
    replays(fixture);
}

/// The number of the last order that went out.
fn first_at_venue(fixture: &Fixture) -> ClientOrderId {
    let (_, Some(request)) = fixture.sent() else {
        panic!("one went out")
    };
    request.client_order_id()
}

#[test]
fn a_replace_amends_a_queued_order_and_exposure_follows() {
    let mut fixture = fixture("queue", 1_000);
    for number in 1..=4 {
        send(&mut fixture, number, 10);
    }
    let reports = fixture.native(&replace(5, 3, 25));
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].exec_type, reports[0].quantity.0), (ExecType::Replaced, 25));
    assert_eq!(sent(&fixture).0, 2, "nobody else hears of it");
    let open_lots = |fixture: &Fixture| {
        let exposure = fixture.shard.shard().orders().exposure(buy(1).account, ALFA);
        exposure.expect("it has orders").open_buy.0
    };
    assert_eq!(open_lots(&fixture), 55);
    // One of an order at the venue is too fast, and is not queued.
    let refused = fixture.native(&replace(6, 1, 11));
    assert_eq!(refused.last().map(|report| report.reason), Some(Reason::RateLimit));
    pass(&mut fixture, 100);
    assert_eq!(sent(&fixture), (3, Some(25)));
    assert_eq!(open_lots(&fixture), 55);
    replays(fixture);
}

#[test]
fn what_waited_too_long_or_lost_its_venue_is_refused() {
    let mut fixture = fixture("queue", 150);
    for number in 1..=5 {
        send(&mut fixture, number, number);
    }
    pass(&mut fixture, 100);
    pass(&mut fixture, 50);
    let reasons = |fixture: &mut Fixture| {
        let reports = fixture.native_reports();
        reports
            .iter()
            .map(|report| (report.client_order_id.0, report.reason))
            .collect::<Vec<_>>()
    };
    let late = [(4, Reason::RateLimit), (5, Reason::RateLimit)];
    assert_eq!(reasons(&mut fixture), late);
    assert_eq!((sent(&fixture), open(&fixture)), ((3, Some(3)), 3));
    send(&mut fixture, 6, 6);
    fixture.shard.set_venue_up(VENUE, false);
    assert_eq!(reasons(&mut fixture), [(6, Reason::VenueDown)]);
    assert_eq!(open(&fixture), 3);
    replays(fixture);
}

#[test]
fn what_waits_survives_a_full_link_and_a_restart() {
    let rate = "max_orders_per_second = 10\nmax_orders_at_once = 2\nrate_action = \"queue\"\n";
    let session = format!("user = \"trader\"\ncancel_on_disconnect = false\n{rate}");
    // A restart takes its time from the clock, not from the test.
    let queue = "[risk.rate_queue]\norders = 3\nwait_ms = 1_000\n[capacity]";
    let parts = [("user = \"trader\"\n", &*session), ("[capacity]", queue)];
    let mut fixture = Fixture::changed_by(&parts, |config| {
        config.orders[0].rate_queue.wait = Duration::from_millis(9_000_000_000);
    });
    for number in 1..=4 {
        send(&mut fixture, number, number);
    }
    fixture.shard.set_venue_room(VENUE, 0);
    pass(&mut fixture, 100);
    assert_eq!(sent(&fixture).0, 2);
    fixture.shard.set_venue_room(VENUE, 64);
    pass(&mut fixture, 0);
    assert_eq!(sent(&fixture), (3, Some(3)));
    // A restart takes the link down, and what waits for a venue that is down is refused.
    let mut fixture = fixture.restart();
    assert_eq!(open(&fixture), 3);
    let reports = fixture.native_reports();
    let last = reports.last().map(|report| (report.client_order_id.0, report.reason));
    assert_eq!(last, Some((4, Reason::VenueDown)));
    replays(fixture);
}

#[test]
fn a_session_that_is_too_fast_is_told_and_logged_out() {
    let mut fixture = fixture("disconnect", 1_000);
    for number in 1..=2 {
        assert_eq!(send(&mut fixture, number, number), None);
    }
    assert!(!fixture.shard.is_closing(NATIVE));
    assert_eq!(send(&mut fixture, 3, 3), Some(Reason::RateLogout));
    assert!(fixture.shard.is_closing(NATIVE));
    fixture.shard.disconnect(NATIVE);
    assert_eq!(sent(&fixture).0, 4, "its orders are cancelled, as it has it");
    replays(fixture);
}

#[test]
fn a_fix_session_that_is_too_fast_is_told_in_its_logout() {
    let rate = "cl_ord_ids = 1_000\nmax_orders_per_second = 1\nmax_orders_at_once = 1\nrate_action = \"disconnect\"\n";
    let mut fixture = Fixture::with("cl_ord_ids = 1_000\n", rate);
    fixture.fix(&Logon);
    assert_eq!(fixture.fix(&order("A-1", "ALFA")).len(), 0);
    let answer = fixture.fix(&order("A-2", "ALFA"));
    assert_eq!(
        (field(&answer[0], 35), field(&answer[0], 39)),
        (Some("8"), Some("8")),
        "{answer:?}"
    );
    assert_eq!(field(&answer[1], 35), Some("5"), "{answer:?}");
    for message in &answer {
        assert!(
            field(message, 58).is_some_and(|text| text.contains("too short a time")),
            "{answer:?}"
        );
    }
    replays(fixture);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_sessions_orders_leave_in_the_order_in_which_they_came_and_never_faster_than_the_rate(
        steps in prop::collection::vec((0..3u8, 0..120u64), 1..60),
    ) {
        let mut fixture = fixture("queue", 300);
        let (mut number, mut expected, mut seen) = (0, VecDeque::new(), 0);
        let mut times = Vec::new();
        for (what, ms) in steps {
            number += 1;
            let mut reports = Vec::new();
            match what {
                0 | 1 => {
                    let refused = send(&mut fixture, number, number);
                    if refused.is_none() {
                        expected.push_back(number);
                    }
                }
                _ => if let Some(&last) = expected.back() {
                    reports.extend(fixture.native(&cancel(number, last)));
                },
            }
            let at_once = sent(&fixture);
            let now = fixture.now.0;
            pass(&mut fixture, ms);
            reports.extend(fixture.native_reports());
            for report in reports {
                expected.retain(|&order| order != report.client_order_id.0 && order != report.orig_client_order_id.0);
            }
            for (time, (count, lots)) in [(now, at_once), (fixture.now.0, sent(&fixture))] {
                if let Some(lots) = lots.filter(|_| count > seen) {
                    // Those before it are gone or left with it.
                    while expected.front().is_some_and(|&first| first < lots) {
                        expected.pop_front();
                    }
                    prop_assert_eq!(expected.pop_front(), Some(lots));
                    times.push(time);
                }
                seen = count;
            }
        }
        for pair in times.windows(3) {
            prop_assert!(pair[2] - pair[0] >= 99_000_000, "{:?}", times);
        }
        let (config, _folder) = fixture.stop();
        prop_assert!(replay::verify(&config, ShardId(0)).is_ok());
    }
}

/// One at once for the native session; what is faster is queued.
const ONE_AT_ONCE: (&str, &str) = (
    "user = \"trader\"\n",
    "user = \"trader\"\nmax_orders_per_second = 10\nmax_orders_at_once = 1\nrate_action = \"queue\"\n",
);
const QUEUE: (&str, &str) = (
    "[capacity]",
    "[risk.rate_queue]\norders = 3\nwait_ms = 1_000\n[capacity]",
);

#[test]
fn what_would_have_to_be_queued_and_held_is_refused_and_takes_nothing() {
    for held in [stop(2), iceberg(2), peg(2)] {
        let mut fixture = Fixture::changed(&[&HELD_PARTS[..], &[ONE_AT_ONCE, QUEUE]].concat());
        assert_eq!(send(&mut fixture, 1, 1), None);
        let refused = fixture.native(&Request::New(held));
        let [report] = refused[..] else { panic!("{refused:?}") };
        assert_eq!(
            (report.exec_type, report.reason),
            (ExecType::Rejected, Reason::RateLimit)
        );
        let orders = fixture.shard.shard().orders();
        assert_eq!((open(&fixture), orders.held(), orders.counters().queued), (1, 0, 0));
        orders.audit().expect("all is counted");
        // Nothing of the rate is taken: at its time the next is held.
        pass(&mut fixture, 100);
        let taken = fixture.native(&Request::New(NewOrder {
            client_order_id: ClientOrderId(3),
            ..held
        }));
        assert_eq!(taken.last().map(|report| report.reason), Some(Reason::Held));
        replays(fixture);
    }
}

#[test]
fn what_is_queued_goes_to_its_venue_and_is_not_crossed() {
    let mut fixture = crossing_with(&[ONE_AT_ONCE, QUEUE]);
    fixture.native(&Request::New(buys(1, 1, "99.99")));
    fixture.fix(&sells("A-1", "100"));
    assert_eq!(
        fixture.native(&Request::New(buys(2, 4, "100"))),
        [],
        "it waits for its rate"
    );
    assert_eq!((fixture.sent().0, fixture.crossed()), (0, [2, 0]));
    pass(&mut fixture, 100);
    let (count, last) = fixture.sent();
    let Some(Request::New(order)) = last else {
        panic!("{last:?}")
    };
    // What rested went before, when its time was over.
    assert_eq!((count, order.quantity, fixture.crossed()), (3, Quantity(4), [2, 0]));
    replays(fixture);
}

/// What another limit refuses has taken nothing of the rate: neither a new order nor a replace.
#[test]
fn what_another_limit_refuses_takes_nothing_of_a_rate() {
    let limits = "user = \"trader\"\nmax_open_notional = \"1000\"\nmax_orders_per_second = 10\nmax_orders_at_once = 3\n\
                  rate_action = \"reject\"\n";
    let mut fixture = Fixture::with("user = \"trader\"\n", limits);
    assert_eq!(send(&mut fixture, 1, 5), None);
    fixture.venue_about(first_at_venue(&fixture), ExecType::New, Reason::None, 0, 5, 0);
    fixture.native_reports();
    for number in 2..=6 {
        assert_eq!(send(&mut fixture, number, 6), Some(Reason::SharedLimit));
    }
    for number in 7..=9 {
        let reports = fixture.native(&replace(number, 1, 11));
        assert_eq!(reports.last().map(|report| report.reason), Some(Reason::SharedLimit));
    }
    assert_eq!(fixture.native(&replace(10, 1, 6)), []);
    assert_eq!(send(&mut fixture, 11, 1), None);
    assert_eq!(send(&mut fixture, 12, 1), Some(Reason::RateLimit), "three were taken");
    replays(fixture);
}
