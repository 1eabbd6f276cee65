//! How requests name the order that they are about (FIX order state changes, chapter 2).

use super::{OF_ORDER, Trader, told};
use types::{ExecType, Reason, Request};

#[test]
fn a_request_may_follow_one_that_is_not_answered_and_names_the_order_by_it() {
    let mut trader = Trader::new();
    trader.working("A");
    let replaced = trader.replace("B", "A", 20);
    trader.cancel("C", "B");
    let Request::Cancel(cancel) = trader.sent() else {
        panic!("a cancel")
    };
    assert_eq!(cancel.orig_client_order_id, replaced);
    let pending = trader.send("G", &format!("11=D|41=C|38=5|40=2|44=100|{OF_ORDER}"));
    assert_eq!(
        told(&pending, "35 11 41 39 102 434"),
        ["35=9|11=D|41=A|39=6|102=3|434=2"]
    );
}

#[test]
fn a_request_that_was_refused_names_nothing() {
    let mut trader = Trader::new();
    trader.working("A");
    let replace = trader.replace("B", "A", 20);
    let refused = trader.venue(replace, ExecType::RequestRejected, Reason::Venue, [0, 10, 0]);
    assert_eq!(
        told(&refused, "35 11 41 39 102 434"),
        ["35=9|11=B|41=A|39=0|102=2|434=2"]
    );
    let unknown = trader.send("F", &format!("11=C|41=B|{OF_ORDER}"));
    assert_eq!(
        told(&unknown, "35 37 11 41 39 102"),
        ["35=9|37=NONE|11=C|41=B|39=8|102=1"]
    );
    trader.cancel("D", "A");
}

#[test]
fn an_id_that_was_replaced_names_nothing() {
    let mut trader = Trader::new();
    trader.working("A");
    let replace = trader.replace("B", "A", 20);
    let replaced = trader.venue(replace, ExecType::Replaced, Reason::None, [0, 20, 0]);
    assert_eq!(
        told(&replaced, "35 11 41 150 39 38 151"),
        ["35=8|11=B|41=A|150=5|39=0|38=20|151=20"]
    );
    let unknown = trader.send("F", &format!("11=C|41=A|{OF_ORDER}"));
    assert_eq!(told(&unknown, "35 11 41 39 102"), ["35=9|11=C|41=A|39=8|102=1"]);
    trader.cancel("D", "B");
}

#[test]
fn a_reject_names_the_order_by_its_last_accepted_id() {
    let mut trader = Trader::new();
    trader.working("A");
    trader.replace("B", "A", 20);
    let second = trader.send("G", &format!("11=C|41=B|38=5|40=2|44=100|{OF_ORDER}"));
    assert_eq!(
        told(&second, "35 11 41 39 102 434"),
        ["35=9|11=C|41=A|39=E|102=3|434=2"]
    );
}

#[test]
fn a_replace_may_not_change_type_or_time_in_force_and_may_leave_the_latter_out() {
    for (fields, is_taken) in [
        ("40=2|", true),
        ("40=2|59=0|", true),
        ("40=2|59=1|", false),
        ("40=1|", false),
        ("40=4|99=99|", false),
        ("40=P|18=R|", false),
    ] {
        let mut trader = Trader::new();
        trader.working("A");
        let answer = trader.send("G", &format!("11=B|41=A|38=5|44=100|{fields}{OF_ORDER}"));
        if is_taken {
            assert_eq!(answer, [""; 0], "{fields}");
        } else {
            assert_eq!(
                told(&answer, "35 11 41 39 102"),
                ["35=9|11=B|41=A|39=0|102=99"],
                "{fields}"
            );
        }
    }
}

#[test]
fn a_replace_says_all_terms_again() {
    let mut trader = Trader::new();
    trader.send("D", &format!("11=A|{}111=3|", super::ORDER));
    let order = trader.number();
    trader.venue(order, ExecType::New, Reason::None, [0, 10, 0]);
    for (id, orig, fields, display) in [("B", "A", "111=5|", 5), ("C", "B", "", 0)] {
        trader.send("G", &format!("11={id}|41={orig}|38=10|40=2|44=100|{fields}{OF_ORDER}"));
        let Request::Replace(replace) = trader.sent() else {
            panic!("a replace")
        };
        assert_eq!(replace.terms.display.0, display);
        trader.venue(replace.client_order_id, ExecType::Replaced, Reason::None, [0, 10, 0]);
    }
}

#[test]
fn the_id_of_an_accepted_cancel_names_the_order() {
    let mut trader = Trader::new();
    trader.working("A");
    let cancel = trader.cancel("C", "A");
    trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 0]);
    for id in ["A", "C"] {
        let status = trader.send("H", &format!("11={id}|54=1|55=ALFA|"));
        assert_eq!(told(&status, "35 11 150 39"), [format!("35=8|11={id}|150=I|39=4")]);
    }
    for (id, orig) in [("D", "C"), ("E", "A")] {
        let late = trader.send("F", &format!("11={id}|41={orig}|{OF_ORDER}"));
        assert_eq!(
            told(&late, "35 11 41 39 102"),
            [format!("35=9|11={id}|41=C|39=4|102=0")]
        );
    }
    let late = trader.send("G", &format!("11=F|41=C|38=5|40=2|44=100|{OF_ORDER}"));
    assert_eq!(told(&late, "35 11 41 39 102 434"), ["35=9|11=F|41=C|39=4|102=0|434=2"]);
}

#[test]
fn a_request_with_another_instrument_or_side_than_the_orders_is_refused_for_that() {
    let mut trader = Trader::new();
    trader.working("A");
    for (id, fields) in [("B", "54=2|55=ALFA|"), ("C", "54=1|55=BETA|"), ("D", "54=1|55=NOPE|")] {
        let refused = trader.send("F", &format!("11={id}|41=A|60=20261130-08:00:00|{fields}"));
        assert_eq!(
            told(&refused, "35 11 41 39 102 58"),
            [format!(
                "35=9|11={id}|41=A|39=0|102=99|58=instrument or side is not the order's"
            )],
            "{fields}"
        );
    }
    trader.cancel("E", "A");
}
