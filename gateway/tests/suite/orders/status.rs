//! OrderStatusRequest (H) and OrderMassStatusRequest (AF).

use super::{Logon, Trader, told};
use crate::fixture::Fixture;
use types::{ExecType, Reason};

/// What a status request says of the order: it has no TransactTime.
const OF_ORDER: &str = "54=1|55=ALFA|";

#[test]
fn an_order_is_told_as_it_stands() {
    let mut trader = Trader::new();
    let ask = |trader: &mut Trader| {
        let answer = trader.send("H", &format!("11=A|790=Q|{OF_ORDER}"));
        told(&answer, "35 11 790 150 39 14 151 38").join(";")
    };
    let order = trader.order("A");
    assert_eq!(ask(&mut trader), "35=8|11=A|790=Q|150=I|39=A|14=0|151=10|38=10");
    trader.venue(order, ExecType::New, Reason::None, [0, 10, 0]);
    assert_eq!(ask(&mut trader), "35=8|11=A|790=Q|150=I|39=0|14=0|151=10|38=10");
    trader.venue(order, ExecType::Fill, Reason::None, [4, 6, 4]);
    assert_eq!(ask(&mut trader), "35=8|11=A|790=Q|150=I|39=1|14=4|151=6|38=10");
    let replace = trader.replace("B", "A", 20);
    assert_eq!(ask(&mut trader), "35=8|11=A|790=Q|150=I|39=E|14=4|151=6|38=10");
    let cancel = trader.cancel("C", "B");
    assert_eq!(ask(&mut trader), "35=8|11=A|790=Q|150=I|39=6|14=4|151=6|38=10");
    trader.venue(replace, ExecType::RequestRejected, Reason::Venue, [0, 6, 4]);
    let again = trader.venue(cancel, ExecType::RequestRejected, Reason::UnknownOrder, [0, 6, 4]);
    assert_eq!(
        again, [""; 0],
        "the cancel goes out again, under the number that the order has"
    );
    let cancel = trader.number();
    trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 4]);
    assert_eq!(ask(&mut trader), "35=8|11=A|790=Q|150=I|39=4|14=4|151=0|38=10");
}

#[test]
fn an_order_that_is_done_is_still_known() {
    let mut trader = Trader::new();
    let order = trader.working("A");
    trader.venue(order, ExecType::Fill, Reason::None, [10, 0, 10]);
    let answer = trader.send("H", &format!("11=A|{OF_ORDER}"));
    assert_eq!(
        told(&answer, "35 11 41 790 150 39 14 151 6 103"),
        ["35=8|11=A|150=I|39=2|14=10|151=0|6=100"]
    );
}

#[test]
fn an_order_that_nobody_knows_is_told_as_rejected() {
    let mut trader = Trader::new();
    trader.working("A");
    for fields in [
        format!("11=NOPE|{OF_ORDER}"),
        "11=A|54=2|55=ALFA|".into(),
        "11=A|54=1|55=BETA|".into(),
    ] {
        let answer = trader.send("H", &fields);
        assert_eq!(
            told(&answer, "35 37 150 39 103"),
            ["35=8|37=NONE|150=I|39=8|103=5"],
            "{fields}"
        );
        assert_eq!(told(&answer, "11")[0], fields.split('|').next().unwrap());
    }
}

#[test]
fn an_order_is_found_by_its_order_id() {
    // Dictionaries before 5.0 SP1 require the ClOrdID.
    let mut fixture = Fixture::with("[journal]", "[fix]\nvalidate = false\n[journal]");
    fixture.fix(&Logon);
    let mut trader = Trader { fixture };
    let order = trader.order("A");
    let accepted = trader.venue(order, ExecType::New, Reason::None, [0, 10, 0]);
    let order_id = told(&accepted, "37").remove(0);
    let answer = trader.send("H", &format!("{order_id}|{OF_ORDER}"));
    assert_eq!(told(&answer, "37 11 150 39"), [format!("{order_id}|11=A|150=I|39=0")]);
}

#[test]
fn all_open_orders_are_told_and_the_last_says_that_it_is() {
    let mut trader = Trader::new();
    for id in ["A", "B", "C"] {
        trader.working(id);
    }
    trader.cancel("D", "B");
    let answer = trader.send("AF", "584=M|585=7|");
    assert_eq!(
        told(&answer, "35 584 11 150 39 911 912"),
        [
            "35=8|584=M|11=A|150=I|39=0|911=3|912=N",
            "35=8|584=M|11=B|150=I|39=6|911=3|912=N",
            "35=8|584=M|11=C|150=I|39=0|911=3|912=Y"
        ]
    );
    let of_other = trader.send("AF", "584=M2|585=1|55=BETA|");
    assert_eq!(
        told(&of_other, "35 584 150 39 911 912"),
        ["35=8|584=M2|150=I|39=8|911=0|912=Y"]
    );
    let of_one = trader.send("AF", "584=M3|585=1|55=ALFA|");
    assert_eq!(
        told(&of_one, "584 912").last().map(String::as_str),
        Some("584=M3|912=Y")
    );
}

#[test]
fn a_mass_status_that_is_not_supported_is_told_so() {
    let mut trader = Trader::new();
    trader.working("A");
    for (fields, text) in [
        ("584=M|585=1|55=NOPE|", "unknown instrument"),
        (
            "584=M|585=3|",
            "only all orders (585=7) or those of a security (585=1) are told",
        ),
        (
            "584=M|585=8|",
            "only all orders (585=7) or those of a security (585=1) are told",
        ),
    ] {
        let answer = trader.send("AF", fields);
        assert_eq!(
            told(&answer, "35 584 150 39 912 58"),
            [format!("35=8|584=M|150=I|39=8|912=Y|58={text}")]
        );
    }
}
