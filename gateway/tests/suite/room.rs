//! Room and shared limits are reserved before the order logic changes its state: what is refused for want of them leaves no
//! trace but its refusal, and a replay decides the same without the links and buffers of the day.

use crate::fixture::{ALFA, Fixture, NATIVE, VENUE, buy};
use gateway::replay;
use types::{
    CancelOrder, ClientOrderId, ExecReport, ExecType, NewOrder, OrderTerms, Quantity, Reason, ReplaceOrder, Request,
    ShardId,
};

/// What an order may change.
fn state(fixture: &Fixture) -> (u64, usize, u64) {
    let orders = fixture.shard.shard().orders();
    (fixture.sent().0, orders.open_orders(), orders.counters().accepted)
}

/// The request is refused for this reason, and nothing else has changed.
fn assert_refused(fixture: &mut Fixture, request: &Request, reason: Reason) {
    let before = state(fixture);
    let reports = fixture.native(request);
    let [ExecReport { reason: given, .. }] = reports[..] else {
        panic!("{reports:?}")
    };
    assert_eq!(given, reason);
    assert_eq!(state(fixture), before);
}

fn assert_replays(fixture: Fixture) {
    let (config, _folder) = fixture.stop();
    let summary = replay::verify(&config, ShardId(0)).expect("it replays");
    assert_eq!(summary.cut_off, 0);
}

#[test]
fn a_full_venue_window_refuses_and_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.native_reports();
    fixture.shard.set_venue_room(VENUE, 0);
    assert_refused(&mut fixture, &Request::New(buy(2)), Reason::VenueFull);
    let replace = Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(3),
        orig_client_order_id: ClientOrderId(1),
        instrument: ALFA,
        session: NATIVE,
        side: buy(1).side,
        price: buy(1).price,
        quantity: Quantity(8),
        terms: OrderTerms::NONE,
    });
    assert_refused(&mut fixture, &replace, Reason::VenueFull);
    let cancel = |number| {
        Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(number),
            orig_client_order_id: ClientOrderId(1),
            instrument: ALFA,
            session: NATIVE,
            side: buy(1).side,
        })
    };
    assert_refused(&mut fixture, &cancel(4), Reason::VenueFull);
    fixture.shard.set_venue_room(VENUE, 1);
    assert_eq!(
        fixture.native(&cancel(5)),
        [],
        "the order is as it was, and its cancel goes out"
    );
    assert!(matches!(fixture.sent(), (2, Some(Request::Cancel(_)))));
    assert_replays(fixture);
}

#[test]
fn a_full_report_ring_refuses_and_changes_nothing() {
    let mut fixture = Fixture::new();
    // Refusals that the client does not read, as many as the ring keeps.
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    for _ in 0..255 {
        let mut buffer = [0; proto::native::MAX_MESSAGE_LENGTH];
        let too_many = NewOrder {
            quantity: Quantity(501),
            ..buy(next())
        };
        let length = proto::native::encode_request(&Request::New(too_many), &mut buffer);
        fixture.shard.client(NATIVE, &buffer[..length]);
    }
    let before = state(&fixture);
    let reports = fixture.native(&Request::New(buy(next())));
    assert_eq!(reports.last().map(|report| report.reason), Some(Reason::ReportRingFull));
    assert_eq!(state(&fixture), before);
    assert_eq!(
        fixture.native(&Request::New(buy(next()))),
        [],
        "it has read them: there is room"
    );
    assert_eq!(fixture.sent().0, before.0 + 1);
    assert_replays(fixture);
}

#[test]
fn a_shared_limit_that_is_used_up_refuses_and_changes_nothing_and_comes_back() {
    let mut fixture = Fixture::new();
    // 50,000 each of the account's 1,000,000.
    let large = |number| {
        Request::New(NewOrder {
            quantity: Quantity(500),
            ..buy(number)
        })
    };
    for number in 1..=20 {
        assert_eq!(fixture.native(&large(number)), []);
        fixture.venue(ExecType::New, 0, 500, 0);
        fixture.native_reports();
    }
    assert_refused(&mut fixture, &large(21), Reason::SharedLimit);
    let (_, last) = fixture.sent();
    let venue_number = last.expect("an order went out").client_order_id();
    fixture.venue_about(venue_number, ExecType::Canceled, Reason::None, 0, 0, 0);
    fixture.native_reports();
    assert_eq!(fixture.native(&large(22)), [], "one is gone, one fits");
    assert_replays(fixture);
}
