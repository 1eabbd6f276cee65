//! What clients get for their requests.

use crate::market::{ALPHA, Floor, KEEPER, ONE, TWO, cents};
use proto::native;
use types::{
    ClientOrderId, ExecType, InstrumentId, NewOrder, OrderType, Price, Quantity, Reason, Request, SessionId, Side,
    TimeInForce, TradingDay,
};

#[test]
fn a_trade_is_told_to_both_sides_and_on_the_feed() {
    let mut floor = Floor::new();
    let sell = floor.order(ONE, Side::Sell, 101, 30);
    assert_eq!(floor.out.told(), [(ONE, ExecType::New, sell, Reason::None)]);
    assert_eq!(floor.out.published(), "A");
    let buy = floor.order(TWO, Side::Buy, 102, 50);
    assert_eq!(
        floor.out.told(),
        [
            (TWO, ExecType::New, buy, Reason::None),
            (ONE, ExecType::Fill, sell, Reason::None),
            (TWO, ExecType::Fill, buy, Reason::None),
        ]
    );
    let (fill, number) = floor.out.reports[2];
    assert_eq!(
        (fill.last_price, fill.last_quantity, fill.leaves),
        (cents(101), Quantity(30), Quantity(20))
    );
    assert_eq!(
        (fill.price, fill.cumulative, number.0),
        (cents(102), Quantity(30), buy.0)
    );
    assert_eq!(floor.out.published(), "EA");
}

#[test]
fn what_may_not_rest_is_cancelled_and_never_on_the_feed() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Sell, 101, 10);
    let ioc = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..floor.new_order(ONE, Side::Buy, 101, 25)
    };
    let out = floor.request(&Request::New(ioc));
    assert_eq!((out.fills(), out.published().as_str()), (vec![(ONE, 101, 10)], "E"));
    assert_eq!(
        out.told().last(),
        Some(&(ONE, ExecType::Canceled, ioc.client_order_id, Reason::Unfilled))
    );
    let market = NewOrder {
        order_type: OrderType::Market,
        price: Price::NULL,
        ..floor.new_order(ONE, Side::Buy, 1, 5)
    };
    assert_eq!(floor.request(&Request::New(market)).told().len(), 2);
    assert_eq!(floor.market.client_order_count(), 0);
}

#[test]
fn a_cancel_names_both_numbers() {
    let mut floor = Floor::new();
    let order = floor.order(ONE, Side::Buy, 99, 10);
    let out = floor.cancel(ONE, order, Side::Buy);
    let (report, number) = out.reports[0];
    assert_eq!(
        (report.exec_type, report.reason, report.leaves),
        (ExecType::Canceled, Reason::Requested, Quantity(0))
    );
    assert_eq!((report.orig_client_order_id, number.0), (order, order.0));
    assert_ne!(report.client_order_id, order);
    assert_eq!(out.published(), "D");
}

#[test]
fn a_smaller_order_keeps_its_place_and_another_price_is_a_new_order_on_the_feed() {
    let mut floor = Floor::new();
    let order = floor.order(ONE, Side::Buy, 99, 10);
    let order_id = floor.out.reports[0].0.order_id;
    floor.order(TWO, Side::Buy, 99, 10);
    let smaller = floor.replace(ONE, order, Side::Buy, 99, 6);
    assert_eq!(floor.out.published(), "X");
    assert_eq!(
        floor.market.orders(ALPHA, Side::Buy).next().unwrap().leaves,
        Quantity(6)
    );
    let reference = floor.market.orders(ALPHA, Side::Buy).next().unwrap().id;
    let smaller = floor.replace(ONE, smaller, Side::Buy, 99, 6);
    assert_eq!(floor.out.published(), "DA", "what does not get smaller loses its place");
    assert_ne!(floor.market.orders(ALPHA, Side::Buy).nth(1).unwrap().id, reference);
    let moved = floor.replace(ONE, smaller, Side::Buy, 98, 6);
    assert_eq!(floor.out.published(), "DA");
    let (report, number) = floor.out.reports[0];
    assert_eq!(
        (report.client_order_id, report.orig_client_order_id, number.0),
        (moved, smaller, order.0)
    );
    assert_eq!(report.order_id, order_id, "our number stays");
    assert_eq!(
        floor.cancel(ONE, smaller, Side::Buy).told()[0].3,
        Reason::TooLate,
        "the old number is no more"
    );
    assert_eq!(floor.cancel(ONE, moved, Side::Buy).told()[0].1, ExecType::Canceled);
}

#[test]
fn a_replace_counts_what_has_traded() {
    let mut floor = Floor::new();
    let order = floor.order(ONE, Side::Buy, 99, 10);
    floor.recorded(1, Side::Sell, 99, 4);
    let replaced = floor.replace(ONE, order, Side::Buy, 99, 7);
    let report = floor.out.reports[0].0;
    assert_eq!(
        (report.quantity, report.leaves, report.cumulative),
        (Quantity(7), Quantity(3), Quantity(4))
    );
    let done = floor.replace(ONE, replaced, Side::Buy, 99, 3);
    let report = floor.out.reports[0].0;
    assert_eq!((report.exec_type, report.client_order_id), (ExecType::Replaced, done));
    assert_eq!((report.quantity, report.leaves), (Quantity(4), Quantity(0)));
    assert_eq!(
        (floor.out.published().as_str(), floor.market.client_order_count()),
        ("D", 0)
    );
}

#[test]
fn own_orders_do_not_trade_with_each_other() {
    let mut floor = Floor::new();
    floor.order(ONE, Side::Sell, 101, 10);
    let buy = floor.order(ONE, Side::Buy, 101, 10);
    assert_eq!(floor.out.told()[1], (ONE, ExecType::Canceled, buy, Reason::SelfMatch));
    let below = floor.order(ONE, Side::Buy, 100, 10);
    floor.replace(ONE, below, Side::Buy, 101, 10);
    let told = floor.out.told();
    assert_eq!(
        (told[0].1, told[1].1, told[1].3),
        (ExecType::Replaced, ExecType::Canceled, Reason::SelfMatch)
    );
    assert_eq!(floor.market.client_order_count(), 1);
}

#[test]
fn every_refusal_says_why() {
    let mut floor = Floor::new();
    let order = floor.new_order(ONE, Side::Buy, 99, 10);
    let refused = [
        (
            NewOrder {
                instrument: InstrumentId(11),
                ..order
            },
            Reason::UnknownInstrument,
        ),
        (
            NewOrder {
                quantity: Quantity(0),
                ..order
            },
            Reason::InvalidQuantity,
        ),
        (
            NewOrder {
                quantity: Quantity(1 << 32),
                ..order
            },
            Reason::InvalidQuantity,
        ),
        (
            NewOrder {
                price: Price(cents(99).0 + 1),
                ..order
            },
            Reason::InvalidPrice,
        ),
        (
            NewOrder {
                price: cents(-1),
                ..order
            },
            Reason::InvalidPrice,
        ),
        (
            NewOrder {
                price: cents(20_000_001),
                ..order
            },
            Reason::InvalidPrice,
        ),
    ];
    for (order, reason) in refused {
        let order = NewOrder {
            client_order_id: floor.number(),
            ..order
        };
        let out = floor.request(&Request::New(order));
        assert_eq!(out.told(), [(ONE, ExecType::Rejected, order.client_order_id, reason)]);
        assert!(floor.market.reasons(reason) > 0);
    }
    let used = floor.order(ONE, Side::Buy, 99, 10);
    let again = NewOrder {
        client_order_id: used,
        ..order
    };
    assert_eq!(
        floor.request(&Request::New(again)).told()[0].3,
        Reason::DuplicateClientOrderId
    );
    let other = NewOrder {
        client_order_id: floor.number(),
        session: TWO,
        ..order
    };
    let out = floor.input(|market, now, out| market.on_request(now, ONE, &Request::New(other), Reason::None, out));
    assert_eq!((out.told()[0].0, out.told()[0].3), (ONE, Reason::WrongSession));
    assert_eq!(
        floor.cancel(ONE, used, Side::Sell).told()[0].1,
        ExecType::RequestRejected
    );
    assert_eq!(
        floor.cancel(ONE, ClientOrderId(1 << 40), Side::Buy).told()[0].3,
        Reason::UnknownOrder
    );
    assert_eq!(
        floor.cancel(TWO, used, Side::Buy).told()[0].3,
        Reason::TooLate,
        "it is another session's"
    );
}

#[test]
fn what_the_owner_has_no_room_for_is_refused_with_its_reason() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Sell, 101, 10);
    floor.recorded(2, Side::Sell, 101, 10);
    let order = floor.new_order(ONE, Side::Buy, 101, 15);
    assert_eq!(floor.market.reports_needed(&Request::New(order)), 4);
    let out = floor.input(|market, now, out| market.on_request(now, ONE, &Request::New(order), Reason::VenueFull, out));
    assert_eq!(
        out.told(),
        [(ONE, ExecType::Rejected, order.client_order_id, Reason::VenueFull)]
    );
}

#[test]
fn a_book_without_room_refuses_and_a_replace_leaves_the_order_as_it_was() {
    let mut floor = Floor::new();
    let order = floor.order(ONE, Side::Buy, 50, 1);
    floor.order(ONE, Side::Buy, 50, 1);
    for price in 1..32 {
        floor.recorded(u64::from(price), Side::Buy, 50 + price, 1);
    }
    let replaced = floor.replace(ONE, order, Side::Buy, 40, 1);
    assert_eq!(
        floor.out.told(),
        [(ONE, ExecType::RequestRejected, replaced, Reason::BookFull)]
    );
    floor.order(ONE, Side::Buy, 40, 1);
    assert_eq!(floor.out.told()[0].3, Reason::BookFull);
    assert_eq!(floor.cancel(ONE, order, Side::Buy).told()[0].1, ExecType::Canceled);
}

#[test]
fn too_many_client_orders_are_refused() {
    let mut floor = Floor::new();
    for _ in 0..32 {
        floor.order(ONE, Side::Buy, 50, 1);
    }
    floor.order(TWO, Side::Buy, 50, 1);
    assert_eq!(floor.out.told()[0].3, Reason::BookFull);
}

#[test]
fn a_lost_session_loses_its_orders_unless_its_config_says_otherwise() {
    let mut floor = Floor::new();
    let first = floor.order(ONE, Side::Buy, 99, 10);
    let second = floor.order(ONE, Side::Sell, 105, 10);
    floor.order(KEEPER, Side::Buy, 98, 10);
    let out = floor.input(|market, now, out| market.on_session_down(now, ONE, out));
    let canceled = |number| (ONE, ExecType::Canceled, number, Reason::Disconnected);
    assert_eq!(
        (out.told(), out.published().as_str()),
        (vec![canceled(first), canceled(second)], "DD")
    );
    let out = floor.input(|market, now, out| market.on_session_down(now, KEEPER, out));
    assert_eq!((out.told().len(), floor.market.client_order_count()), (0, 1));
}

#[test]
fn a_mass_cancel_is_answered_before_its_cancels() {
    let mut floor = Floor::new();
    let order = floor.order(ONE, Side::Buy, 99, 10);
    floor.order(TWO, Side::Buy, 99, 10);
    assert_eq!(
        floor.mass_cancel(ONE, Some(InstrumentId(20))).told().len(),
        1,
        "nothing of that instrument"
    );
    let told = floor.mass_cancel(ONE, None).told();
    assert_eq!(
        (told[0].1, told[1]),
        (
            ExecType::MassCancelAccepted,
            (ONE, ExecType::Canceled, order, Reason::MassCanceled)
        )
    );
    assert_eq!(floor.market.client_order_count(), 1);
}

#[test]
fn a_new_day_expires_orders_and_frees_numbers() {
    let mut floor = Floor::new();
    let order = floor.new_order(ONE, Side::Buy, 99, 10);
    floor.request(&Request::New(order));
    floor.recorded(1, Side::Sell, 105, 10);
    let out = floor.input(|market, now, out| market.on_day(now, TradingDay(20_250_303), out));
    assert_eq!(
        out.told(),
        [(ONE, ExecType::Expired, order.client_order_id, Reason::DayEnded)]
    );
    assert_eq!(floor.market.order_count(), 1, "history stays");
    assert_eq!(floor.request(&Request::New(order)).told()[0].1, ExecType::New);
}

#[test]
fn what_is_no_request_is_rejected_and_counted() {
    let mut floor = Floor::new();
    let out = floor.input(|market, now, out| market.on_message(now, TWO, b"garbage", Reason::None, out));
    assert_eq!((out.rejects.len(), out.rejects[0].0, out.reports.len()), (1, TWO, 0));
    let mut bytes = [0; native::MAX_MESSAGE_LENGTH];
    let order = floor.new_order(TWO, Side::Buy, 99, 10);
    let length = native::encode_request(&Request::New(order), &mut bytes);
    let out = floor.input(|market, now, out| market.on_message(now, TWO, &bytes[..length], Reason::None, out));
    assert_eq!(out.told()[0].1, ExecType::New);
    assert_eq!(floor.market.counters().malformed, 1);
    // A session that the market does not know can do nothing.
    let out = floor.input(|market, now, out| market.on_session_down(now, SessionId(99), out));
    assert_eq!(out.reports.len(), 0);
}

#[test]
fn the_directory_tells_what_is_traded() {
    let mut floor = Floor::new();
    let out = floor.input(|market, now, out| market.on_started(now, out));
    assert_eq!(out.published(), "RR");
    assert_eq!(&out.feed[1][11..19], b"BETA    ");
}
