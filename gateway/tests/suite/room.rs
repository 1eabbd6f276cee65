//! Room and shared limits are reserved before the order logic changes its state: what is refused for want of them leaves no
//! trace but its refusal, and a replay decides the same without the links and buffers of the day.

use crate::fix::{Logon, order};
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
fn a_full_venue_window_refuses_orders_and_never_a_cancel() {
    let mut fixture = Fixture::new();
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.native_reports();
    // What is set aside for cancels is left.
    fixture.shard.set_venue_room(VENUE, 8);
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
    assert_eq!(fixture.native(&cancel(4, 1)), [], "a cancel goes out");
    assert!(matches!(fixture.sent(), (2, Some(Request::Cancel(_)))));
    assert_replays(fixture);
}

#[test]
fn a_cancel_waits_for_room_when_even_what_is_set_aside_is_used_up() {
    let mut fixture = Fixture::new();
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.native_reports();
    fixture.shard.set_venue_room(VENUE, 0);
    assert_eq!(fixture.native(&cancel(2, 1)), []);
    assert_eq!(fixture.sent().0, 1, "it waits");
    assert_refused(&mut fixture, &cancel(3, 1), Reason::RequestPending);
    // The next process has a link with room, and the first input finds it.
    let mut fixture = fixture.restart();
    assert!(matches!(fixture.sent(), (1, Some(Request::Cancel(_)))));
    fixture.venue(ExecType::Canceled, 0, 0, 0);
    let reports = fixture.native_reports();
    assert!(
        reports
            .iter()
            .any(|report| report.exec_type == ExecType::Canceled && report.client_order_id == ClientOrderId(2)),
        "{reports:?}"
    );
    assert_replays(fixture);
}

#[test]
fn a_venue_is_sent_no_more_orders_than_it_permits_also_after_a_restart() {
    let mut fixture = Fixture::with("name = \"sim\"", "name = \"sim\"\ngrants_open_orders = true");
    assert_refused(&mut fixture, &Request::New(buy(1)), Reason::NoVenueSlot);
    fixture.fix(&Logon);
    let refusals = fixture.fix(&order("A-1", "ALFA"));
    let text = format!("58={}", Reason::NoVenueSlot.text());
    assert!(
        refusals
            .iter()
            .any(|report| report.contains(&text) && report.contains("|103=3|")),
        "{refusals:?}"
    );
    fixture.shard.grant(VENUE, 1);
    assert_eq!(fixture.native(&Request::New(buy(2))), []);
    assert_refused(&mut fixture, &Request::New(buy(3)), Reason::NoVenueSlot);
    fixture.shard.grant(VENUE, 0);
    assert_eq!(fixture.native(&cancel(5, 2)), [], "cancels always pass");
    fixture.venue(ExecType::Canceled, 0, 0, 0);
    let mut fixture = fixture.restart();
    fixture.native_reports();
    assert_refused(&mut fixture, &Request::New(buy(6)), Reason::NoVenueSlot);
    fixture.shard.grant(VENUE, 1);
    assert_eq!(fixture.native(&Request::New(buy(7))), []);
    assert_replays(fixture);
}

fn cancel(number: u64, of: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: ClientOrderId(of),
        instrument: ALFA,
        session: NATIVE,
        side: buy(1).side,
    })
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
