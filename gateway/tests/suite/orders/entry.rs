//! New orders: what they may ask for, and what is refused.

use super::{ORDER, Trader, told};
use types::{ExecType, OrderTerms, OrderType, Price, Quantity, Reason, Request, TimeInForce, Timestamp};

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).expect("a price")
}

/// The order `ORDER` with other fields in place of some and more behind.
fn order(id: &str, changes: &[(&str, &str)], more: &str) -> String {
    let mut fields = format!("11={id}|{ORDER}{more}");
    for (from, to) in changes {
        assert!(fields.contains(from), "{from} is in the order");
        fields = fields.replace(from, to);
    }
    fields
}

#[test]
fn every_type_and_term_goes_to_the_venue_as_it_was_asked() {
    const NONE: OrderTerms = OrderTerms::NONE;
    let market: &[_] = &[("40=2|44=100", "40=1")];
    let stop: &[_] = &[("40=2|44=100", "40=3")];
    let stop_limit: &[_] = &[("40=2", "40=4")];
    let peg: &[_] = &[("40=2", "40=P")];
    let limit: &[(&str, &str)] = &[];
    let midnight = Timestamp(1_796_083_200_000_000_000);
    let cases = [
        (limit, "", OrderType::Limit, TimeInForce::Day, NONE),
        (limit, "59=0|", OrderType::Limit, TimeInForce::Day, NONE),
        (limit, "59=1|", OrderType::Limit, TimeInForce::GoodTillCancel, NONE),
        (limit, "59=2|", OrderType::Limit, TimeInForce::AtTheOpening, NONE),
        (limit, "59=3|", OrderType::Limit, TimeInForce::ImmediateOrCancel, NONE),
        (limit, "59=4|", OrderType::Limit, TimeInForce::FillOrKill, NONE),
        (limit, "59=7|", OrderType::Limit, TimeInForce::AtTheClose, NONE),
        (
            limit,
            "59=6|126=20261201-00:00:00|",
            OrderType::Limit,
            TimeInForce::GoodTillDate,
            OrderTerms {
                expires: midnight,
                ..NONE
            },
        ),
        (
            limit,
            "59=6|432=20261130|",
            OrderType::Limit,
            TimeInForce::GoodTillDate,
            OrderTerms {
                expires: midnight,
                ..NONE
            },
        ),
        (market, "", OrderType::Market, TimeInForce::Day, NONE),
        (market, "59=4|", OrderType::Market, TimeInForce::FillOrKill, NONE),
        (
            stop,
            "99=101|",
            OrderType::Stop,
            TimeInForce::Day,
            OrderTerms {
                stop_price: price("101"),
                ..NONE
            },
        ),
        (
            stop_limit,
            "99=99.5|59=1|",
            OrderType::StopLimit,
            TimeInForce::GoodTillCancel,
            OrderTerms {
                stop_price: price("99.5"),
                ..NONE
            },
        ),
        (
            limit,
            "111=3|",
            OrderType::Limit,
            TimeInForce::Day,
            OrderTerms {
                display: Quantity(3),
                ..NONE
            },
        ),
        (
            limit,
            "210=3|",
            OrderType::Limit,
            TimeInForce::Day,
            OrderTerms {
                display: Quantity(3),
                ..NONE
            },
        ),
        (
            limit,
            "110=4|59=3|",
            OrderType::Limit,
            TimeInForce::ImmediateOrCancel,
            OrderTerms {
                min_quantity: Quantity(4),
                ..NONE
            },
        ),
        (
            limit,
            "110=4|",
            OrderType::Limit,
            TimeInForce::Day,
            OrderTerms {
                min_quantity: Quantity(4),
                ..NONE
            },
        ),
        (
            limit,
            "18=6|",
            OrderType::Limit,
            TimeInForce::Day,
            OrderTerms {
                post_only: true,
                ..NONE
            },
        ),
        (peg, "18=R|", OrderType::PegPrimary, TimeInForce::Day, NONE),
        (peg, "18=M|", OrderType::PegMid, TimeInForce::Day, NONE),
        (
            peg,
            "18=R|211=-0.02|",
            OrderType::PegPrimary,
            TimeInForce::Day,
            OrderTerms {
                peg_offset: price("-0.02"),
                ..NONE
            },
        ),
    ];
    for (changes, more, order_type, time_in_force, terms) in cases {
        let mut trader = Trader::new();
        assert_eq!(trader.send("D", &order("A", changes, more)), [""; 0], "{more}");
        let Request::New(sent) = trader.sent() else {
            panic!("a new order")
        };
        assert_eq!(
            (sent.order_type, sent.time_in_force, sent.terms),
            (order_type, time_in_force, terms),
            "{more}"
        );
        assert_eq!(
            sent.price.is_null(),
            matches!(order_type, OrderType::Market | OrderType::Stop)
        );
    }
}

#[test]
fn what_means_nothing_or_is_not_traded_is_refused_with_its_code() {
    let limit: &[(&str, &str)] = &[];
    let cases = [
        (&[("38=10|", "")][..], "", "13", "quantity is not valid"),
        (&[("38=10", "38=0")], "", "13", "quantity is not valid"),
        (&[("44=100|", "")], "", "99", "price is missing or not on the tick grid"),
        (
            &[("40=2", "40=1")],
            "",
            "99",
            "price is missing or not on the tick grid",
        ),
        (&[("54=1", "54=5")], "", "99", "short sales are not allowed"),
        (
            &[("40=2", "40=4")],
            "",
            "11",
            "stop price is missing, not wanted or not on the tick grid",
        ),
        (
            &[("40=2", "40=4")],
            "99=99.999|",
            "11",
            "stop price is missing, not wanted or not on the tick grid",
        ),
        (
            limit,
            "99=101|",
            "11",
            "stop price is missing, not wanted or not on the tick grid",
        ),
        (
            &[("40=2", "40=4")],
            "99=101|59=3|",
            "11",
            "order type or time in force is not supported",
        ),
        (
            &[("40=2", "40=P")],
            "",
            "11",
            "order type or time in force is not supported",
        ),
        (
            &[("40=2", "40=P")],
            "18=R|59=4|",
            "11",
            "order type or time in force is not supported",
        ),
        (
            &[("40=2", "40=P")],
            "18=R|211=0.02|",
            "11",
            "peg offset is not valid for this order",
        ),
        (limit, "211=-0.02|", "11", "peg offset is not valid for this order"),
        (limit, "18=M|", "11", "order type or time in force is not supported"),
        (limit, "18=G|", "11", "order type or time in force is not supported"),
        (limit, "423=1|", "11", "order type or time in force is not supported"),
        (limit, "854=1|", "11", "order type or time in force is not supported"),
        (limit, "152=1000|", "11", "order type or time in force is not supported"),
        (
            limit,
            "388=0|389=1|",
            "11",
            "order type or time in force is not supported",
        ),
        (
            limit,
            "168=20991231-00:00:00|",
            "11",
            "order type or time in force is not supported",
        ),
        (
            limit,
            "18=6|59=3|",
            "11",
            "order type or time in force is not supported",
        ),
        (
            &[("40=2|44=100", "40=1")],
            "18=6|",
            "11",
            "order type or time in force is not supported",
        ),
        (limit, "111=11|", "11", "display quantity is not valid for this order"),
        (limit, "111=0|", "11", "display quantity is not valid for this order"),
        (
            limit,
            "111=3|59=3|",
            "11",
            "display quantity is not valid for this order",
        ),
        (limit, "110=11|", "11", "minimum quantity is not valid for this order"),
        (
            limit,
            "110=3|111=3|",
            "11",
            "minimum quantity is not valid for this order",
        ),
        (
            limit,
            "110=3|59=4|",
            "11",
            "minimum quantity is not valid for this order",
        ),
        (limit, "59=6|", "11", "expiry is missing, past or not wanted"),
        (
            limit,
            "59=6|126=20261130-00:00:00|",
            "11",
            "expiry is missing, past or not wanted",
        ),
        (
            limit,
            "126=20261201-00:00:00|",
            "11",
            "expiry is missing, past or not wanted",
        ),
        (limit, "59=5|", "11", "order type or time in force is not supported"),
    ];
    for (changes, more, code, text) in cases {
        let mut trader = Trader::new();
        let answer = trader.send("D", &order("A", changes, more));
        assert_eq!(
            told(&answer, "35 11 150 39 103 58"),
            [format!("35=8|11=A|150=8|39=8|103={code}|58={text}")],
            "{changes:?} {more}"
        );
        assert_eq!(trader.fixture.sent().0, 0, "{changes:?} {more}: nothing of it goes out");
    }
}

#[test]
fn a_cl_ord_id_is_used_once_a_day_by_whatever_request() {
    let mut trader = Trader::new();
    trader.working("A");
    let again = trader.send("D", &order("A", &[], ""));
    assert_eq!(told(&again, "35 11 150 39 103"), ["35=8|11=A|150=8|39=8|103=6"]);
    let cancel = trader.send("F", &format!("11=A|41=A|{}", super::OF_ORDER));
    assert_eq!(
        told(&cancel, "35 11 41 102 434 39"),
        ["35=9|11=A|41=A|102=6|434=1|39=0"]
    );
    let replace = trader.send("G", &format!("11=A|41=A|38=5|40=2|44=100|{}", super::OF_ORDER));
    assert_eq!(
        told(&replace, "35 11 41 102 434 39"),
        ["35=9|11=A|41=A|102=6|434=2|39=0"]
    );
    assert_eq!(trader.fixture.sent().0, 1, "the order alone went out");
}

#[test]
fn a_cl_ord_id_that_is_too_long_is_refused_for_that() {
    let mut trader = Trader::new();
    let id = "x".repeat(39);
    let answer = trader.send("D", &order(&id, &[], ""));
    assert_eq!(
        told(&answer, "35 11 39 103 58"),
        [format!("35=8|11={id}|39=8|103=99|58=ClOrdID is longer than 38 bytes")]
    );
    let id = "x".repeat(38);
    assert_eq!(trader.send("D", &order(&id, &[], "")), [""; 0]);
}

#[test]
fn an_order_with_a_value_that_is_too_long_to_repeat_is_refused_as_an_order_and_told_the_limit() {
    let long = "x".repeat(65);
    for (change, told_back, why) in [
        (
            ("11=A", format!("11={long}")),
            "35=8|39=8|55=ALFA|54=1|38=10|40=2|44=100|103=99",
            "ClOrdID is longer than 38 bytes",
        ),
        (
            ("55=ALFA", format!("55={long}")),
            "35=8|11=A|39=8|54=1|38=10|40=2|44=100|103=1",
            "Symbol is longer than 64 bytes",
        ),
        (
            ("1=1", format!("1={long}")),
            "35=8|11=A|39=8|55=ALFA|54=1|38=10|40=2|44=100|103=15",
            "Account is longer than 64 bytes",
        ),
    ] {
        let mut trader = Trader::new();
        let fields = format!("11=A|1=1|{}", ORDER).replace(&format!("{}|", change.0), &format!("{}|", change.1));
        let answer = trader.send("D", &fields);
        assert_eq!(
            told(&answer, "35 11 39 55 54 38 40 44 103 58"),
            [format!("{told_back}|58={why}")]
        );
    }
    // Other requests have no order to refuse.
    let mut trader = Trader::new();
    let answer = trader.send("F", &format!("11={long}|41=A|{}", super::OF_ORDER));
    assert_eq!(told(&answer, "35 371 373"), ["35=3|371=11|373=5"]);
}

#[test]
fn reports_say_order_type_and_time_in_force_as_they_came() {
    let mut trader = Trader::new();
    trader.send("D", &format!("11=A|59=1|{}", ORDER));
    let order = trader.number();
    let new = trader.venue(order, ExecType::New, Reason::None, [0, 10, 0]);
    assert_eq!(told(&new, "150 40 59"), ["150=0|40=2|59=1"]);
    let replace = trader.replace("B", "A", 20);
    let replaced = trader.venue(replace, ExecType::Replaced, Reason::None, [0, 20, 0]);
    assert_eq!(told(&replaced, "150 40 59"), ["150=5|40=2|59=1"]);
    let cancel = trader.cancel("C", "B");
    let canceled = trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 0]);
    assert_eq!(told(&canceled, "150 40 59"), ["150=4|40=2|59=1"]);
    let refused = trader.send("D", &format!("11=D|59=5|{}", ORDER));
    assert_eq!(told(&refused, "39 40 59"), ["39=8|40=2|59=5"]);
}

#[test]
fn what_was_refused_has_used_up_its_cl_ord_id() {
    let mut trader = Trader::new();
    trader.send("D", &order("A", &[("55=ALFA", "55=NOPE")], ""));
    let again = trader.send("D", &order("A", &[], ""));
    assert_eq!(told(&again, "39 103"), ["39=8|103=6"]);
}
