//! Two venues on two links: what one of them is holds up nothing on the other, and no order goes to another than its own.

use crate::first_stage::{OTHER, assert_replays, essence, report, say, sent_to_other, two_venues};
use crate::fix::{field, order};
use crate::fixture::{ALFA, Fixture, NATIVE, VENUE, buy};
use types::{CancelOrder, ClientOrderId, ExecType, Reason, Request};

/// How many messages each venue was sent.
fn sent(fixture: &Fixture) -> [u64; 2] {
    [VENUE, OTHER].map(|venue| fixture.shard.sent_to_venue(venue).0)
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
fn a_venue_that_is_down_refuses_its_orders_takes_cancels_and_is_not_replaced() {
    let mut fixture = two_venues();
    fixture.native(&Request::New(buy(1)));
    fixture.shard.set_venue_up(VENUE, false);
    assert_eq!(
        essence(&fixture.native(&Request::New(buy(2)))),
        [(ExecType::Rejected, 2, Reason::VenueDown)]
    );
    assert_eq!(fixture.native(&cancel(3, 1)), [], "the link keeps it");
    assert_eq!(sent(&fixture), [2, 0]);
    // Orders by FIX go to the other venue, and go on.
    assert_eq!(fixture.fix(&order("A-1", "ALFA")), Vec::<String>::new());
    assert_eq!(sent(&fixture), [2, 1]);
    fixture.shard.set_venue_up(OTHER, false);
    fixture.shard.set_venue_up(VENUE, true);
    let told = fixture.fix(&order("A-2", "ALFA"));
    assert_eq!(
        [150, 103, 58].map(|tag| field(&told[0], tag).unwrap_or_default()),
        ["8", "0", Reason::VenueDown.text()]
    );
    assert_eq!(fixture.native(&Request::New(buy(4))), []);
    assert_eq!(sent(&fixture), [3, 1]);
    assert_replays(fixture);
}

#[test]
fn a_venue_whose_window_is_full_refuses_its_orders_and_no_others() {
    let mut fixture = two_venues();
    fixture.shard.set_venue_room(VENUE, 8);
    assert_eq!(
        essence(&fixture.native(&Request::New(buy(1)))),
        [(ExecType::Rejected, 1, Reason::VenueFull)]
    );
    assert_eq!(fixture.fix(&order("A-1", "ALFA")), Vec::<String>::new());
    assert_eq!(sent(&fixture), [0, 1]);
    fixture.shard.set_venue_room(VENUE, 9);
    assert_eq!(fixture.native(&Request::New(buy(2))), []);
    assert_eq!(sent(&fixture), [1, 1]);
    assert_replays(fixture);
}

#[test]
fn a_venue_that_does_not_answer_holds_up_nobody() {
    let mut fixture = two_venues();
    for number in 1..=20 {
        assert_eq!(fixture.native(&Request::New(buy(number))), []);
    }
    for number in 1..=3 {
        let cl_ord_id = format!("A-{number}");
        assert_eq!(fixture.fix(&order(&cl_ord_id, "ALFA")), Vec::<String>::new());
        let (_, request) = sent_to_other(&fixture);
        let number = request.expect("it went out").client_order_id();
        say(&mut fixture, OTHER, &report(number, ExecType::New));
        let told = fixture.fix_messages();
        assert_eq!(field(&told[0], 11), Some(&cl_ord_id[..]));
    }
    assert_eq!(sent(&fixture), [20, 3]);
    assert_eq!(fixture.native_reports(), []);
    assert_eq!(fixture.shard.shard().orders().open_orders(), 23);
    assert_replays(fixture);
}
