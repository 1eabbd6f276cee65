//! The first stage: what becomes of orders that would trade with open ones of their owner, on one link and on two.

use crate::fix::{Logon, field, order};
use crate::fixture::{ALFA, FIX, Fixture, NATIVE, VENUE, buy};
use gateway::replay;
use proto::fix::NewOrderSingle;
use proto::native;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecId, ExecReport, ExecType, NewOrder, OrderId, Price, Quantity,
    Reason, ReplaceOrder, Request, SequenceNumber, SessionId, ShardId, Side, TradingDay, VenueId,
};

pub(crate) const OTHER: VenueId = VenueId(1);

pub(crate) const OTHER_VENUE: &str = r#"[[venues]]
name = "other"
[[venues.links]]
shard = 0
transport = "ltp"
session = 8
peer = "127.0.0.1:9"
window_messages = 64
cancel_reserve_messages = 8
heartbeat_ms = 10
dead_after_ms = 100
[[accounts]]
"#;

const ROUTE: &str = r#"[[routes]]
session = 1
venue = "other"
[first_stage]
own_cancel_wait_ms = 100
waiting_orders = 2
[capacity]"#;

/// Both sessions have one owner. What comes by FIX goes to the other venue; native orders, to the first, cancel the oldest.
pub(crate) fn two_venues() -> Fixture {
    let mut fixture = Fixture::changed(&[
        ("[[accounts]]\n", OTHER_VENUE),
        ("owner = 2\n", "owner = 1\nself_match = \"cancel_oldest\"\n"),
        ("[capacity]", ROUTE),
    ]);
    fixture.fix(&Logon);
    fixture
}

/// Two venues, a FIX order that sells at 100 at the other one, and a native one that would buy it and waits. Gives the
/// numbers of the FIX order and of its cancel.
fn waiting() -> (Fixture, [ClientOrderId; 2]) {
    let mut fixture = two_venues();
    let resting = rest(&mut fixture, "A-1");
    assert_eq!(fixture.native(&Request::New(buy(1))), [], "it waits");
    let (count, Some(Request::Cancel(cancel))) = sent_to_other(&fixture) else {
        panic!("the own order is cancelled first")
    };
    assert_eq!((count, cancel.orig_client_order_id), (2, resting));
    assert_eq!(fixture.sent().0, 0, "and nothing went to the venue of the new one");
    assert_eq!(fixture.shard.shard().orders().waiting(), 1);
    (fixture, [resting, cancel.client_order_id])
}

/// A FIX order that sells at 100 and rests. Gives its number at the venue.
pub(crate) fn rest(fixture: &mut Fixture, cl_ord_id: &str) -> ClientOrderId {
    fixture.fix(&NewOrderSingle {
        side: b'2',
        ..order(cl_ord_id, "ALFA")
    });
    let (_, Some(Request::New(new))) = sent_to_other(fixture) else {
        panic!("it went out")
    };
    other(fixture, new.client_order_id, ExecType::New, 0);
    fixture.fix_messages();
    new.client_order_id
}

pub(crate) fn sent_to_other(fixture: &Fixture) -> (u64, Option<Request>) {
    let (count, last) = fixture.shard.sent_to_venue(OTHER);
    (count, native::decode_request(last).ok())
}

/// A report of the other venue about a sell order.
pub(crate) fn other(fixture: &mut Fixture, number: ClientOrderId, exec_type: ExecType, last: u64) {
    say(
        fixture,
        OTHER,
        &ExecReport {
            side: Side::Sell,
            last_price: if last > 0 { buy(1).price } else { Price::NULL },
            last_quantity: Quantity(last),
            ..report(number, exec_type)
        },
    );
}

/// A report about a buy of 10 ALFA.
pub(crate) fn report(number: ClientOrderId, exec_type: ExecType) -> ExecReport {
    ExecReport {
        exec_type,
        order_id: OrderId(5),
        client_order_id: number,
        orig_client_order_id: ClientOrderId(0),
        exec_id: ExecId(number.0),
        instrument: ALFA,
        account: AccountId(0),
        session: SessionId(8),
        side: Side::Buy,
        price: buy(1).price,
        quantity: Quantity(10),
        last_price: Price::NULL,
        last_quantity: Quantity::ZERO,
        leaves: Quantity::ZERO,
        cumulative: Quantity::ZERO,
        reason: Reason::None,
    }
}

pub(crate) fn say(fixture: &mut Fixture, venue: VenueId, report: &ExecReport) {
    let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
    let length = native::encode_report(report, &mut buffer);
    fixture.shard.venue(venue, SequenceNumber(1), &buffer[..length]);
}

pub(crate) fn essence(reports: &[ExecReport]) -> Vec<(ExecType, u64, Reason)> {
    let essence = |report: &ExecReport| (report.exec_type, report.client_order_id.0, report.reason);
    reports.iter().map(essence).collect()
}

pub(crate) fn assert_replays(fixture: Fixture) {
    fixture.shard.shard().orders().audit().expect("it counts right");
    let (config, _folder) = fixture.stop();
    let summary = replay::verify(&config, ShardId(0)).expect("it replays");
    assert_eq!(summary.cut_off, 0);
}

fn sell(number: u64) -> NewOrder {
    NewOrder {
        side: Side::Sell,
        ..buy(number)
    }
}

#[test]
fn on_one_link_the_cancel_goes_first_and_the_order_follows_at_once() {
    let mut fixture = Fixture::changed(&[
        ("owner = 2\n", "owner = 2\nself_match = \"cancel_oldest\"\n"),
        (
            "[capacity]",
            "[first_stage]\nown_cancel_wait_ms = 100\nwaiting_orders = 2\n[capacity]",
        ),
    ]);
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.native_reports();
    // The last place that orders may take.
    fixture.shard.set_venue_room(VENUE, 9);
    assert_eq!(fixture.native(&Request::New(sell(2))), []);
    let (count, Some(Request::New(new))) = fixture.sent() else {
        panic!("the order is the last")
    };
    assert_eq!((count, new.side), (3, Side::Sell));
    let counters = fixture.shard.shard().orders().counters();
    assert_eq!((counters.forced_cancels, counters.waited), (1, 1));
    assert_replays(fixture);
}

#[test]
fn on_two_links_the_order_waits_for_the_venue_and_its_own_order_is_told_why() {
    let (mut fixture, [_, cancel]) = waiting();
    other(&mut fixture, cancel, ExecType::Canceled, 0);
    let told = fixture.fix_messages();
    assert_eq!(
        [11, 150, 58].map(|tag| field(&told[0], tag).unwrap_or_default()),
        ["A-1", "4", Reason::SelfMatch.text()]
    );
    let (count, Some(Request::New(new))) = fixture.sent() else {
        panic!("it goes")
    };
    assert_eq!((count, new.side, new.trigger), (1, Side::Buy, buy(1).trigger));
    fixture.venue(ExecType::New, 0, 10, 0);
    assert_eq!(essence(&fixture.native_reports()), [(ExecType::New, 1, Reason::None)]);
    assert_replays(fixture);
}

#[test]
fn what_the_venue_says_holds_when_a_trade_was_faster_than_the_cancel() {
    let (mut fixture, [resting, _]) = waiting();
    other(&mut fixture, resting, ExecType::Fill, 4);
    assert_eq!(fixture.sent().0, 0, "six lots may still trade");
    other(&mut fixture, resting, ExecType::Fill, 6);
    assert_eq!(fixture.fix_messages().len(), 2);
    assert_eq!(fixture.sent().0, 1);
    let exposure = fixture.shard.shard().orders().exposure(AccountId(1), ALFA);
    assert_eq!(
        exposure.map(|exposure| (exposure.sold, exposure.open_sell, exposure.open_buy)),
        Some((Quantity(10), Quantity(0), Quantity(10)))
    );
    assert_replays(fixture);
}

#[test]
fn an_order_that_waited_too_long_is_refused() {
    let (mut fixture, _) = waiting();
    fixture.shard.set_now(fixture.now + Duration::from_millis(99));
    assert!(!fixture.shard.turn());
    assert_eq!(fixture.native_reports(), []);
    fixture.shard.set_now(fixture.now + Duration::from_millis(100));
    assert!(fixture.shard.turn());
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Rejected, 1, Reason::OwnOrderRemains)]
    );
    assert!(!fixture.shard.turn());
    assert_eq!(fixture.shard.shard().orders().open_orders(), 1);
    assert_replays(fixture);
}

#[test]
fn a_venue_that_will_not_cancel_the_own_order_refuses_the_new_one() {
    let (mut fixture, [_, cancel]) = waiting();
    other(&mut fixture, cancel, ExecType::RequestRejected, 0);
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Rejected, 1, Reason::OwnOrderRemains)]
    );
    assert_replays(fixture);
}

#[test]
fn an_order_that_waits_can_be_cancelled_and_not_replaced() {
    let (mut fixture, [_, cancel]) = waiting();
    let replace = Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(2),
        orig_client_order_id: ClientOrderId(1),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
        price: buy(1).price,
        quantity: Quantity(8),
        terms: buy(1).terms,
    });
    assert_eq!(
        essence(&fixture.native(&replace)),
        [(ExecType::RequestRejected, 2, Reason::RequestPending)]
    );
    let wanted = Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(3),
        orig_client_order_id: ClientOrderId(1),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
    });
    assert_eq!(
        essence(&fixture.native(&wanted)),
        [(ExecType::Canceled, 3, Reason::Requested)]
    );
    other(&mut fixture, cancel, ExecType::Canceled, 0);
    assert_eq!(fixture.sent().0, 0, "it never went out");
    assert_replays(fixture);
}

#[test]
fn a_lost_session_a_day_and_a_venue_that_goes_down_end_an_order_that_waits() {
    let (mut fixture, _) = waiting();
    fixture.shard.disconnect(NATIVE);
    fixture.shard.connect(NATIVE);
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Canceled, 1, Reason::Disconnected)]
    );
    assert_replays(fixture);

    let (mut fixture, _) = waiting();
    fixture.shard.roll(TradingDay(20_261_201));
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Expired, 1, Reason::DayEnded)]
    );
    assert_replays(fixture);

    let (mut fixture, [_, cancel]) = waiting();
    fixture.shard.set_venue_up(OTHER, false);
    assert_eq!(fixture.native_reports(), [], "its own venue is up");
    fixture.shard.set_venue_up(VENUE, false);
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Rejected, 1, Reason::VenueDown)]
    );
    other(&mut fixture, cancel, ExecType::Canceled, 0);
    assert_replays(fixture);
}

#[test]
fn no_more_wait_than_may_and_a_restart_refuses_those_that_do() {
    let (mut fixture, _) = waiting();
    assert_eq!(fixture.native(&Request::New(buy(2))), []);
    assert_eq!(
        essence(&fixture.native(&Request::New(buy(3)))),
        [(ExecType::Rejected, 3, Reason::TooManyWaiting)]
    );
    let mut fixture = fixture.restart();
    let told = fixture.native_reports();
    assert_eq!(
        essence(&told[told.len() - 2..]),
        [
            (ExecType::Rejected, 1, Reason::VenueDown),
            (ExecType::Rejected, 2, Reason::VenueDown)
        ]
    );
    assert_replays(fixture);
}

#[test]
fn an_order_that_waited_goes_when_its_link_has_room_and_is_refused_when_that_comes_too_late() {
    for in_time in [true, false] {
        let (mut fixture, [_, cancel]) = waiting();
        fixture.shard.set_venue_room(VENUE, 8);
        other(&mut fixture, cancel, ExecType::Canceled, 0);
        assert!(!fixture.shard.turn(), "what is left is for cancels");
        assert_eq!(fixture.sent().0, 0);
        if in_time {
            fixture.shard.set_venue_room(VENUE, 9);
            assert!(fixture.shard.turn());
            assert_eq!(fixture.sent().0, 1);
        } else {
            fixture.shard.set_now(fixture.now + Duration::from_millis(100));
            assert!(fixture.shard.turn());
            assert_eq!(
                essence(&fixture.native_reports()),
                [(ExecType::Rejected, 1, Reason::VenueFull)]
            );
        }
        assert_replays(fixture);
    }
}

#[test]
fn cancel_both_refuses_the_new_order_and_cancels_the_own_one() {
    let mut fixture = Fixture::with("owner = 2\n", "owner = 2\nself_match = \"cancel_both\"\n");
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.native_reports();
    assert_eq!(
        essence(&fixture.native(&Request::New(sell(2)))),
        [(ExecType::Rejected, 2, Reason::SelfMatch)]
    );
    assert!(matches!(fixture.sent(), (2, Some(Request::Cancel(_)))));
    fixture.venue(ExecType::Canceled, 0, 0, 0);
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Canceled, 1, Reason::SelfMatch)]
    );
    assert_replays(fixture);
}

#[test]
fn what_the_venue_takes_off_by_decrement_is_told_in_both_protocols() {
    let mut fixture = Fixture::changed(&[
        ("name = \"sim\"", "name = \"sim\"\ndecrements = true"),
        ("owner = 1\n", "owner = 2\nself_match = \"decrement\"\n"),
        ("owner = 2\nmax", "owner = 2\nself_match = \"decrement\"\nmax"),
    ]);
    fixture.fix(&Logon);
    fixture.native(&Request::New(buy(1)));
    let (_, Some(Request::New(resting))) = fixture.sent() else {
        panic!("it went out")
    };
    let sell = NewOrderSingle {
        side: b'2',
        quantity: 14,
        ..order("A-1", "ALFA")
    };
    assert_eq!(fixture.fix(&sell), Vec::<String>::new());
    let (2, Some(Request::New(new))) = fixture.sent() else {
        panic!("it goes at once")
    };
    let number = new.client_order_id;
    // Four of it trade with somebody else first, and four are left at the end.
    let sold = |exec_type| ExecReport {
        side: Side::Sell,
        quantity: Quantity(14),
        ..report(number, exec_type)
    };
    say(&mut fixture, VENUE, &sold(ExecType::New));
    let traded = ExecReport {
        last_price: buy(1).price,
        last_quantity: Quantity(3),
        ..sold(ExecType::Fill)
    };
    say(&mut fixture, VENUE, &traded);
    let restated = ExecReport {
        quantity: Quantity(7),
        reason: Reason::SelfMatch,
        ..sold(ExecType::Restated)
    };
    say(&mut fixture, VENUE, &restated);
    let told = fixture.fix_messages();
    assert_eq!(
        [11, 150, 39, 38, 14, 151, 58, 378].map(|tag| field(&told[2], tag).unwrap_or_default()),
        ["A-1", "D", "1", "7", "3", "4", Reason::SelfMatch.text(), "8"]
    );
    let restated = ExecReport {
        quantity: Quantity(3),
        reason: Reason::SelfMatch,
        ..report(resting.client_order_id, ExecType::Restated)
    };
    say(&mut fixture, VENUE, &restated);
    let told = fixture.native_reports();
    let [told] = told[..] else { panic!("{told:?}") };
    assert_eq!(
        (told.exec_type, told.quantity, told.leaves, told.reason),
        (ExecType::Restated, Quantity(3), Quantity(3), Reason::SelfMatch)
    );
    let exposure = fixture.shard.shard().orders().exposure(AccountId(1), ALFA);
    assert_eq!(
        exposure.map(|exposure| (exposure.open_buy, exposure.open_sell, exposure.sold)),
        Some((Quantity(3), Quantity(4), Quantity(3)))
    );
    assert_replays(fixture);
}

#[test]
fn an_order_may_ask_for_its_sessions_mode_and_no_other() {
    // The dictionary of the session's version does not have the field.
    let mut fixture = Fixture::changed(&[
        ("owner = 1\n", "owner = 1\nself_match = \"cancel_both\"\n"),
        ("[journal]", "[fix]\nvalidate = false\n[journal]"),
    ]);
    fixture.fix(&Logon);
    for (number, (asked, passes)) in (1..).zip([(b'1', false), (b'2', false), (b'3', true), (b'?', false)]) {
        let cl_ord_id = format!("A-{number}");
        let message = fixture.fix_bytes(&order(&cl_ord_id, "ALFA"));
        // The encoder writes no instruction: a client's own does.
        fixture.shard.client(FIX, &with_instruction(&message, asked));
        let told = fixture.fix_messages();
        assert_eq!(told.is_empty(), passes, "{told:?}");
        if !passes {
            assert_eq!(field(&told[0], 58), Some(Reason::UnsupportedSelfMatch.text()));
        }
    }
    assert_replays(fixture);
}

/// The message with SelfMatchPreventionInstruction (2964) before its checksum.
fn with_instruction(message: &[u8], asked: u8) -> Vec<u8> {
    let text = String::from_utf8(message.to_vec()).expect("FIX is text");
    let body_start = text.match_indices('\u{1}').nth(1).expect("two fields").0 + 1;
    let body_end = text.rfind("10=").expect("a checksum");
    let version = &text[..text.find('\u{1}').expect("a field")];
    let body = format!("{}2964={}\u{1}", &text[body_start..body_end], char::from(asked));
    let head = format!("{version}\u{1}9={}\u{1}{body}", body.len());
    let sum = head.bytes().fold(0u8, u8::wrapping_add);
    format!("{head}10={sum:03}\u{1}").into_bytes()
}
