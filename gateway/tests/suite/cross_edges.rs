//! Crossing at its edges: whoever watches, what finds no room, and whatever ends an order that rests or has traded in part.
//! After each of them exposure is what a recount finds, and a replay gives the same.

use crate::cross::{buys, crossing, crossing_with, fills, price, sells, told};
use crate::first_stage::{assert_replays, essence, report, say};
use crate::fix::field;
use crate::fixture::*;
use crate::resend::body;
use gateway::control::{Action, Order};
use orders::KillScope;
use proto::fix::{OrderCancelReplaceRequest, OrderCancelRequest, OrderFields};
use types::{
    AccountId, ClientOrderId, ExecReport, ExecType, MassCancel, NewOrder, Price, Quantity, Reason, Request, Side,
    TradingDay,
};

/// Nothing is wrong with what is counted, and the journal gives it again.
fn assert_counted(fixture: Fixture) {
    fixture.shard.shard().orders().audit().expect("all is counted");
    assert_replays(fixture);
}

fn operator(fixture: &mut Fixture, action: Action) {
    let order = Order {
        operator: 1,
        number: 1,
        action,
    };
    fixture.shard.control(&order);
}

fn replace<'a>(fixture: &Fixture, ids: [&'a str; 2], lots: u64) -> OrderCancelReplaceRequest<'a> {
    OrderCancelReplaceRequest {
        cl_ord_id: ids[0].as_bytes(),
        orig_cl_ord_id: ids[1].as_bytes(),
        account: b"",
        time_in_force: 0,
        symbol: b"ALFA",
        side: b'2',
        quantity: lots,
        ord_type: b'2',
        price: price("100"),
        transact_time: fixture.now,
        fields: OrderFields::NONE,
    }
}

fn cancel<'a>(fixture: &Fixture, ids: [&'a str; 2]) -> OrderCancelRequest<'a> {
    OrderCancelRequest {
        cl_ord_id: ids[0].as_bytes(),
        orig_cl_ord_id: ids[1].as_bytes(),
        quantity: 10,
        side: b'2',
        symbol: b"ALFA",
        transact_time: fixture.now,
    }
}

#[test]
fn whoever_watches_both_accounts_gets_a_copy_of_either_side() {
    let mut fixture = crossing_with(&[WATCHER_PARTS, ("drop_copy = [1]", "drop_copy = [1, 2]")]);
    fixture.watch();
    fixture.messages_of(WATCHER);
    let mut heard = fixture.fix(&sells("A-1", "100"));
    let took = fixture.native(&Request::New(buys(7, 4, "100")));
    heard.extend(fixture.fix_messages());
    let copies = fixture.messages_of(WATCHER);
    let of = |whose: &str| {
        let mine = copies.iter().filter(|copy| field(copy, 115) == Some(whose));
        mine.cloned().collect::<Vec<_>>()
    };
    let (of_fix, of_native) = (of("TRADER"), of("trader"));
    assert_eq!((heard.len(), of_fix.len(), of_native.len()), (2, 2, 2), "{copies:?}");
    for (copy, first) in of_fix.iter().zip(&heard) {
        let said = body(copy);
        let said = said
            .into_iter()
            .filter(|field| !["115=TRADER", "797=Y"].contains(field));
        assert_eq!(said.collect::<Vec<_>>(), body(first));
    }
    assert_eq!(
        told(&of_native),
        [
            ["7", "0", "0", "", "4", Reason::Crossing.text()],
            ["7", "F", "2", "4", "0", Reason::CrossedTaking.text()]
        ]
    );
    assert_eq!(
        [1, 29, 30, 31, 851].map(|tag| field(&of_native[1], tag)),
        [Some("2"), Some("2"), Some("XOFF"), Some("100"), Some("2")]
    );
    assert_eq!(field(&of_native[1], 17), Some(&*took[1].exec_id.0.to_string()));
    assert_counted(fixture);
}

#[test]
fn what_would_trade_with_one_whose_client_reads_nothing_goes_to_the_venue() {
    let mut fixture = crossing_with(&[("resend_messages = 256", "resend_messages = 8")]);
    let say_unread = |fixture: &mut Fixture, order: &NewOrder| {
        let mut buffer = [0; proto::native::MAX_MESSAGE_LENGTH];
        let length = proto::native::encode_request(&Request::New(*order), &mut buffer);
        fixture.shard.client(NATIVE, &buffer[..length]);
    };
    say_unread(&mut fixture, &buys(1, 10, "100"));
    // That is one report, and here are six more: one place is left.
    for number in 2..8 {
        say_unread(&mut fixture, &buys(number, 501, "100"));
    }
    let sold = fixture.fix(&sells("A-1", "100"));
    assert_eq!(told(&sold), [["A-1", "0", "0", "", "10", Reason::Crossing.text()]]);
    assert_eq!((fixture.crossed(), fixture.sent().0), ([1, 0], 1));
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 0, 0, 10], [0, 0, 10, 0]]);
    // It reads: nothing was lost, and the next trades.
    assert_eq!(fixture.native_reports().len(), 7);
    fixture.fix(&sells("A-2", "100"));
    assert_eq!(
        fills(&fixture.native_reports()),
        [(ExecType::Fill, 10, 0, Reason::CrossedResting)]
    );
    assert_counted(fixture);
}

#[test]
fn one_that_comes_in_trades_as_long_as_its_own_client_has_room_to_hear_it() {
    let mut fixture = crossing_with(&[("resend_messages = 256", "resend_messages = 4")]);
    for id in ["A-1", "A-2", "A-3"] {
        fixture.fix(&sells(id, "100"));
    }
    // It hears that it is taken, and of two trades; the last place is kept.
    let took = fixture.native(&Request::New(buys(1, 40, "100")));
    assert_eq!(took.len(), 3, "{took:?}");
    let (count, child) = fixture.new_at_venue();
    assert_eq!((count, child.quantity, fixture.crossed()), (1, Quantity(20), [3, 2]));
    assert_eq!(
        [fixture.held_by(1), fixture.held_by(2)],
        [[0, 20, 0, 10], [20, 0, 20, 0]]
    );
    assert_counted(fixture);
}

#[test]
fn one_that_finds_no_place_to_be_held_in_trades_with_nobody() {
    let mut fixture = crossing();
    for id in ["A-1", "A-2", "A-3", "A-4"] {
        fixture.fix(&sells(id, "100"));
    }
    assert_eq!(fixture.native(&Request::New(buys(1, 10, "100.01"))), []);
    assert_eq!((fixture.crossed(), fixture.sent().0), ([4, 0], 1));
    assert_counted(fixture);
}

/// Ten to sell at 100, of which four have traded here.
fn traded_in_part(more: &[(&str, &str)], time_in_force: u8) -> Fixture {
    let mut fixture = crossing_with(more);
    fixture.fix(&proto::fix::NewOrderSingle {
        time_in_force,
        ..sells("A-1", "100")
    });
    fixture.native(&Request::New(buys(1, 4, "100")));
    fixture.fix_messages();
    fixture.native_reports();
    fixture
}

#[test]
fn whatever_ends_one_that_traded_in_part_ends_what_is_left_of_it_and_no_more() {
    type End = (&'static str, fn(&mut Fixture), &'static str, Reason);
    let ends: [End; 9] = [
        (
            "kill firm",
            |fixture| operator(fixture, Action::Kill(KillScope::Firm)),
            "4",
            Reason::Killed,
        ),
        (
            "kill session",
            |fixture| operator(fixture, Action::Kill(KillScope::Session(FIX))),
            "4",
            Reason::Killed,
        ),
        (
            "let reduce",
            |fixture| operator(fixture, Action::LetReduce(KillScope::Account(AccountId(1)))),
            "4",
            Reason::ReduceOnly,
        ),
        (
            "an operator's mass cancel",
            |fixture| operator(fixture, Action::Cancel(KillScope::Account(AccountId(1)))),
            "4",
            Reason::MassCanceled,
        ),
        (
            "disable",
            |fixture| {
                operator(fixture, Action::Disable(FIX));
                fixture.shard.disconnect(FIX);
            },
            "",
            Reason::None,
        ),
        (
            "the roll",
            |fixture| operator(fixture, Action::Roll(TradingDay(20_261_201))),
            "C",
            Reason::DayEnded,
        ),
        (
            "a cancel",
            |fixture| {
                let bytes = fixture.fix_bytes(&cancel(fixture, ["A-2", "A-1"]));
                fixture.shard.client(FIX, &bytes);
            },
            "4",
            Reason::Requested,
        ),
        (
            "a replace to what has traded",
            |fixture| {
                let bytes = fixture.fix_bytes(&replace(fixture, ["A-2", "A-1"], 4));
                fixture.shard.client(FIX, &bytes);
            },
            "5",
            Reason::None,
        ),
        (
            "a lost session",
            |fixture| {
                fixture.shard.disconnect(FIX);
                fixture.shard.connect(FIX);
            },
            "",
            Reason::None,
        ),
    ];
    for (what, end, exec_type, reason) in ends {
        let mut fixture = traded_in_part(&[], b'0');
        end(&mut fixture);
        let messages = fixture.fix_messages();
        let reports = messages.iter().filter(|message| field(message, 35) == Some("8"));
        let said = reports.map(|message| [150, 14, 151, 58].map(|tag| field(message, tag).unwrap_or_default()));
        let text = if reason == Reason::None { "" } else { reason.text() };
        match exec_type {
            "" => assert_eq!(said.count(), 0, "{what}"),
            _ => assert_eq!(said.collect::<Vec<_>>(), [[exec_type, "4", "0", text]], "{what}"),
        }
        let orders = fixture.shard.shard().orders();
        assert_eq!(orders.open_orders(), 0, "{what}");
        let account = orders.account_exposure(AccountId(1)).expect("it is there");
        assert_eq!((account.open_orders, account.held), (0, 0), "{what}");
        // What traded is the day's until it rolls.
        let traded = if exec_type == "C" { [0; 4] } else { [0, 4, 0, 0] };
        assert_eq!(fixture.held_by(1), traded, "{what}");
        assert!(!fixture.pass(20), "{what}: nothing is left of it");
        assert_eq!((fixture.sent().0, fixture.crossed()[1]), (0, 1), "{what}");
        assert_counted(fixture);
    }
}

#[test]
fn a_client_s_mass_cancel_ends_what_rests_of_it() {
    for instrument in [None, Some(ALFA)] {
        let mut fixture = crossing();
        fixture.native(&Request::New(buys(1, 10, "100")));
        let reports = fixture.native(&Request::MassCancel(MassCancel {
            client_order_id: ClientOrderId(2),
            instrument,
            session: NATIVE,
        }));
        assert_eq!(
            essence(&reports),
            [
                (ExecType::MassCancelAccepted, 2, Reason::None),
                (ExecType::Canceled, 1, Reason::MassCanceled)
            ]
        );
        fixture.fix(&sells("A-1", "100"));
        assert_eq!((fixture.crossed(), fixture.held_by(2)), ([2, 0], [0; 4]));
        assert_counted(fixture);
    }
}

#[test]
fn one_that_is_good_till_cancelled_rests_on_over_the_roll_and_trades_in_the_new_day() {
    let mut fixture = traded_in_part(&[], b'1');
    operator(&mut fixture, Action::Roll(TradingDay(20_261_201)));
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 0, 0, 6], [0; 4]]);
    let took = fixture.native(&Request::New(buys(1, 2, "100")));
    assert_eq!(took.last().map(|report| report.reason), Some(Reason::CrossedTaking));
    let sold = fixture.fix_messages();
    assert_eq!(
        [11, 150, 32, 14, 151].map(|tag| field(&sold[0], tag).unwrap_or_default()),
        ["A-1", "F", "2", "6", "4"]
    );
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 2, 0, 4], [2, 0, 0, 0]]);
    fixture.pass(20);
    assert_eq!(fixture.new_at_venue().1.quantity, Quantity(4));
    assert_counted(fixture);
}

#[test]
fn a_venue_that_is_down_when_the_rest_is_over_gets_the_order_when_it_is_up_unless_it_ends_before() {
    let mut fixture = traded_in_part(&[], b'0');
    fixture.shard.set_venue_up(VENUE, false);
    fixture.pass(20);
    assert_eq!((fixture.sent().0, fixture.held_by(1)), (0, [0, 4, 0, 6]));
    fixture.pass(1_000);
    fixture.shard.set_venue_up(VENUE, true);
    assert_eq!(fixture.new_at_venue().1.quantity, Quantity(6));
    assert_counted(fixture);

    let mut fixture = traded_in_part(&[], b'0');
    fixture.shard.set_venue_up(VENUE, false);
    fixture.pass(20);
    let ended = fixture.fix(&cancel(&fixture, ["A-2", "A-1"]));
    assert_eq!(
        ended.iter().map(|message| field(message, 150)).collect::<Vec<_>>(),
        [Some("4")]
    );
    fixture.shard.set_venue_up(VENUE, true);
    assert_eq!((fixture.sent().0, fixture.held_by(1)), (0, [0, 4, 0, 0]));
    assert_counted(fixture);
}

#[test]
fn a_market_that_goes_stale_crosses_nothing_and_what_rests_goes_at_its_time() {
    let mut fixture = crossing_with(&[
        ("reference_max_age_ms = 60_000", "reference_max_age_ms = 10"),
        ("reference_missing = \"refuse\"", "reference_missing = \"master\""),
    ]);
    fixture.fix(&sells("A-1", "100"));
    assert!(!fixture.pass(10));
    fixture.native(&Request::New(buys(1, 4, "100")));
    assert_eq!(fixture.crossed(), [1, 1], "no older than it may be");
    assert!(!fixture.pass(1));
    assert_eq!(
        fixture.native(&Request::New(buys(2, 4, "100"))),
        [],
        "it goes to the venue"
    );
    assert_eq!((fixture.sent().0, fixture.crossed()), (1, [1, 1]));
    assert!(fixture.pass(9));
    assert_eq!(fixture.new_at_venue().1.quantity, Quantity(6));
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 4, 0, 6], [4, 0, 4, 0]]);
    assert_counted(fixture);
}

/// Four have traded here and six are at the venue. Gives the number there.
fn child_at_venue() -> (Fixture, ClientOrderId) {
    let mut fixture = traded_in_part(&[], b'0');
    fixture.pass(20);
    let number = fixture.new_at_venue().1.client_order_id;
    venue(&mut fixture, number, ExecType::New, 0, Reason::None);
    (fixture, number)
}

fn venue(fixture: &mut Fixture, number: ClientOrderId, exec_type: ExecType, last: u64, reason: Reason) {
    let report = ExecReport {
        side: Side::Sell,
        last_quantity: Quantity(last),
        last_price: if last > 0 { price("100") } else { Price::NULL },
        reason,
        ..report(number, exec_type)
    };
    say(fixture, VENUE, &report);
}

fn cancel_at_venue(fixture: &Fixture) -> ClientOrderId {
    match fixture.sent() {
        (2, Some(Request::Cancel(cancel))) => cancel.client_order_id,
        other => panic!("{other:?}"),
    }
}

fn types(messages: &[String]) -> Vec<[&str; 4]> {
    let of = |message| [11, 150, 32, 151].map(|tag| field(message, tag).unwrap_or_default());
    messages.iter().map(|message| of(message)).collect()
}

#[test]
fn a_cancel_and_the_venue_s_trade_of_what_is_left_meet() {
    // The trade was first, in full.
    let (mut fixture, number) = child_at_venue();
    fixture.fix(&cancel(&fixture, ["A-2", "A-1"]));
    let asked = cancel_at_venue(&fixture);
    venue(&mut fixture, number, ExecType::Fill, 6, Reason::None);
    let said = fixture.fix_messages();
    assert_eq!(
        said.iter().map(|message| field(message, 35)).collect::<Vec<_>>(),
        [Some("8"), Some("9")]
    );
    venue(&mut fixture, asked, ExecType::RequestRejected, 0, Reason::TooLate);
    assert_eq!(fixture.fix_messages(), [""; 0]);
    assert_eq!(
        (fixture.held_by(1), fixture.shard.shard().orders().open_orders()),
        ([0, 10, 0, 0], 0)
    );
    assert_counted(fixture);
    // In part, and the rest is cancelled.
    let (mut fixture, number) = child_at_venue();
    fixture.fix(&cancel(&fixture, ["A-2", "A-1"]));
    let asked = cancel_at_venue(&fixture);
    venue(&mut fixture, number, ExecType::Fill, 2, Reason::None);
    venue(&mut fixture, asked, ExecType::Canceled, 0, Reason::None);
    assert_eq!(
        types(&fixture.fix_messages()),
        [["A-1", "F", "2", "4"], ["A-2", "4", "", "0"]]
    );
    assert_eq!(
        (fixture.held_by(1), fixture.shard.shard().orders().open_orders()),
        ([0, 6, 0, 0], 0)
    );
    assert_counted(fixture);
}

#[test]
fn a_replace_and_the_venue_s_trade_of_what_is_left_meet() {
    // The child trades in full before it is withdrawn, and with it the order: there is nothing to replace.
    let (mut fixture, number) = child_at_venue();
    fixture.fix(&replace(&fixture, ["A-2", "A-1"], 12));
    let asked = cancel_at_venue(&fixture);
    venue(&mut fixture, number, ExecType::Fill, 6, Reason::None);
    venue(&mut fixture, asked, ExecType::RequestRejected, 0, Reason::TooLate);
    let said = fixture.fix_messages();
    let said = said
        .iter()
        .map(|message| [35, 39, 58].map(|tag| field(message, tag).unwrap_or_default()));
    assert_eq!(
        said.collect::<Vec<_>>(),
        [["8", "E", ""], ["9", "2", Reason::TooLate.text()]]
    );
    assert_eq!((fixture.sent().0, fixture.held_by(1)), (2, [0, 10, 0, 0]));
    assert_counted(fixture);
    // It trades in part, then it is gone.
    let (mut fixture, number) = child_at_venue();
    fixture.fix(&replace(&fixture, ["A-2", "A-1"], 8));
    let asked = cancel_at_venue(&fixture);
    venue(&mut fixture, number, ExecType::Fill, 3, Reason::None);
    venue(&mut fixture, asked, ExecType::Canceled, 0, Reason::None);
    assert_eq!(
        types(&fixture.fix_messages()),
        [["A-1", "F", "3", "3"], ["A-2", "5", "", "1"]]
    );
    assert_eq!(fixture.new_at_venue().1.quantity, Quantity(1));
    assert_eq!(fixture.held_by(1), [0, 7, 0, 1]);
    assert_counted(fixture);
    // The venue keeps it: the order stays as it was.
    let (mut fixture, _) = child_at_venue();
    fixture.fix(&replace(&fixture, ["A-2", "A-1"], 8));
    let asked = cancel_at_venue(&fixture);
    venue(&mut fixture, asked, ExecType::RequestRejected, 0, Reason::Venue);
    let said = fixture.fix_messages();
    assert_eq!(field(&said[0], 35), Some("9"), "{said:?}");
    assert_eq!((fixture.sent().0, fixture.held_by(1)), (2, [0, 4, 0, 6]));
    assert_counted(fixture);
}

#[test]
fn what_is_left_at_the_venue_ends_by_what_the_venue_says() {
    for (exec_type, told) in [
        (ExecType::Rejected, "4"),
        (ExecType::Canceled, "4"),
        (ExecType::Expired, "C"),
    ] {
        let mut fixture = traded_in_part(&[], b'0');
        fixture.pass(20);
        let number = fixture.new_at_venue().1.client_order_id;
        venue(&mut fixture, number, exec_type, 0, Reason::None);
        assert_eq!(
            types(&fixture.fix_messages()),
            [["A-1", told, "", "0"]],
            "{exec_type:?}"
        );
        assert_eq!(fixture.held_by(1), [0, 4, 0, 0]);
        assert_counted(fixture);
    }
}
