//! Order states: PendingCancel over PendingReplace over Filled over PartiallyFilled over New (FIX order state changes,
//! chapters 2 and 4).

use super::{OF_ORDER, Trader, told};
use types::{ExecType, Reason};

#[test]
fn a_fill_while_a_cancel_is_pending_has_the_orders_id_and_then_the_cancel_is_rejected() {
    let mut trader = Trader::new();
    let order = trader.working("A");
    let cancel = trader.cancel("B", "A");
    let part = trader.venue(order, ExecType::Fill, Reason::None, [4, 6, 4]);
    assert_eq!(told(&part, "35 11 150 39 14 151"), ["35=8|11=A|150=F|39=6|14=4|151=6"]);
    let rest = trader.venue(order, ExecType::Fill, Reason::None, [6, 0, 10]);
    assert_eq!(
        told(&rest, "35 11 41 150 39 14 151 102 434"),
        ["35=8|11=A|150=F|39=6|14=10|151=0", "35=9|11=B|41=A|39=2|102=0|434=1"]
    );
    let late = trader.venue(cancel, ExecType::RequestRejected, Reason::TooLate, [0, 0, 10]);
    assert_eq!(late, [""; 0], "the cancel has its answer");
}

#[test]
fn a_cancel_that_the_venue_rejects_leaves_the_order_as_it_is() {
    let mut trader = Trader::new();
    let order = trader.working("A");
    trader.venue(order, ExecType::Fill, Reason::None, [4, 6, 4]);
    let cancel = trader.cancel("B", "A");
    let rejected = trader.venue(cancel, ExecType::RequestRejected, Reason::Venue, [0, 6, 4]);
    assert_eq!(
        told(&rejected, "35 11 41 39 102 434"),
        ["35=9|11=B|41=A|39=1|102=2|434=1"]
    );
    let fill = trader.venue(order, ExecType::Fill, Reason::None, [1, 5, 5]);
    assert_eq!(told(&fill, "11 150 39"), ["11=A|150=F|39=1"]);
}

#[test]
fn a_pending_replace_shows_in_fills_and_a_pending_cancel_over_it() {
    let mut trader = Trader::new();
    let order = trader.working("A");
    let replace = trader.replace("B", "A", 20);
    let fill = trader.venue(order, ExecType::Fill, Reason::None, [4, 6, 4]);
    assert_eq!(told(&fill, "11 150 39 151"), ["11=A|150=F|39=E|151=6"]);
    let cancel = trader.cancel("C", "B");
    let replaced = trader.venue(replace, ExecType::Replaced, Reason::None, [0, 16, 4]);
    assert_eq!(
        told(&replaced, "11 41 150 39 38 151"),
        ["11=B|41=A|150=5|39=6|38=20|151=16"]
    );
    let canceled = trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 4]);
    assert_eq!(
        told(&canceled, "11 41 150 39 14 151 378"),
        ["11=C|41=B|150=4|39=4|14=4|151=0"]
    );
}

#[test]
fn a_replace_to_what_is_filled_or_less_leaves_a_filled_order() {
    for units in [4, 3] {
        let mut trader = Trader::new();
        let order = trader.working("A");
        trader.venue(order, ExecType::Fill, Reason::None, [4, 6, 4]);
        let replace = trader.replace("B", "A", units);
        let replaced = trader.venue(replace, ExecType::Replaced, Reason::None, [0, 0, 4]);
        assert_eq!(
            told(&replaced, "11 41 150 39 38 14 151"),
            ["11=B|41=A|150=5|39=2|38=4|14=4|151=0"]
        );
        let late = trader.send("F", &format!("11=C|41=B|{OF_ORDER}"));
        assert_eq!(told(&late, "35 11 41 39 102"), ["35=9|11=C|41=B|39=2|102=0"]);
    }
}

#[test]
fn a_request_for_an_order_that_is_over_is_too_late_and_says_how_it_ended() {
    for (end, leaves, status) in [
        (ExecType::Fill, [10, 0, 10], "2"),
        (ExecType::Canceled, [0, 0, 0], "4"),
        (ExecType::Expired, [0, 0, 0], "C"),
    ] {
        let mut trader = Trader::new();
        let order = trader.working("A");
        let ended = trader.venue(order, end, Reason::Venue, leaves);
        let order_id = told(&ended, "37");
        let cancel = trader.send("F", &format!("11=B|41=A|{OF_ORDER}"));
        assert_eq!(
            told(&cancel, "35 11 41 39 102 434"),
            [format!("35=9|11=B|41=A|39={status}|102=0|434=1")]
        );
        assert_eq!(told(&cancel, "37"), order_id);
        let replace = trader.send("G", &format!("11=C|41=A|38=20|40=2|44=100|{OF_ORDER}"));
        assert_eq!(
            told(&replace, "35 11 41 39 102 434"),
            [format!("35=9|11=C|41=A|39={status}|102=0|434=2")]
        );
    }
}

#[test]
fn what_cannot_trade_at_once_is_cancelled_and_not_refused() {
    for time_in_force in ["59=3|", "59=4|"] {
        let mut trader = Trader::new();
        trader.send("D", &format!("11=A|{}{time_in_force}", super::ORDER));
        let order = trader.number();
        trader.venue(order, ExecType::New, Reason::None, [0, 10, 0]);
        let canceled = trader.venue(order, ExecType::Canceled, Reason::Unfilled, [0, 0, 0]);
        assert_eq!(
            told(&canceled, "35 11 41 150 39 103 378 58"),
            ["35=8|11=A|150=4|39=4|58=could not trade at once"]
        );
    }
}

#[test]
fn a_cancel_that_nobody_asked_for_says_whose_it_was() {
    for (reason, restatement) in [
        (Reason::Venue, "378=8"),
        (Reason::BookFull, "378=8"),
        (Reason::SelfMatch, "378=8"),
        (Reason::PostOnly, "378=4"),
    ] {
        let mut trader = Trader::new();
        let order = trader.working("A");
        let canceled = trader.venue(order, ExecType::Canceled, reason, [0, 0, 0]);
        assert_eq!(
            told(&canceled, "11 41 150 378"),
            [format!("11=A|150=4|{restatement}")],
            "{reason:?}"
        );
    }
}

#[test]
fn orders_of_a_lost_session_are_cancelled_and_say_so() {
    let mut trader = Trader::new();
    trader.working("A");
    trader.lose();
    let cancel = trader.number();
    trader.fixture.shard.connect(crate::fixture::FIX);
    trader.fixture.fix(&crate::fix::Logon);
    let canceled = trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 0]);
    assert_eq!(
        told(&canceled, "11 41 150 39 378 58"),
        ["11=A|150=4|39=4|378=4|58=session was lost"]
    );
}

#[test]
fn an_order_that_the_venue_refuses_is_rejected() {
    let mut trader = Trader::new();
    let order = trader.order("A");
    let refused = trader.venue(order, ExecType::Rejected, Reason::PostOnly, [0, 0, 0]);
    assert_eq!(
        told(&refused, "35 11 150 39 103 58"),
        ["35=8|11=A|150=8|39=8|103=99|58=post-only order would trade at once"]
    );
}

#[test]
fn before_5_0_a_triggered_stop_is_known_by_its_fills() {
    let mut trader = Trader::new();
    trader.send("D", "11=A|38=10|40=4|44=100|99=100|54=1|55=ALFA|60=20261130-08:00:00|");
    let order = trader.number();
    trader.venue(order, ExecType::New, Reason::None, [0, 10, 0]);
    assert_eq!(
        trader.venue(order, ExecType::Triggered, Reason::None, [0, 10, 0]),
        [""; 0]
    );
    let fill = trader.venue(order, ExecType::Fill, Reason::None, [10, 0, 10]);
    assert_eq!(told(&fill, "11 150 39"), ["11=A|150=F|39=2"]);
}
