//! What clients and the feed see of orders with terms.

use crate::market::{ALPHA, Floor, KEEPER, ONE, TWO, cents};
use matcher::Auction;
use types::{
    ClientOrderId, Duration, ExecType, NewOrder, OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request,
    SessionId, Side, TimeInForce, Timestamp, TradingDay,
};

fn stop(floor: &mut Floor, session: SessionId, side: Side, stop: i64, lots: u64) -> NewOrder {
    NewOrder {
        order_type: OrderType::Stop,
        price: Price::NULL,
        terms: OrderTerms {
            stop_price: cents(stop),
            ..OrderTerms::NONE
        },
        ..floor.new_order(session, side, 100, lots)
    }
}

fn showing(order: NewOrder, lots: u64) -> NewOrder {
    NewOrder {
        terms: OrderTerms {
            display: Quantity(lots),
            ..order.terms
        },
        ..order
    }
}

fn good_for(time_in_force: TimeInForce, order: NewOrder) -> NewOrder {
    NewOrder { time_in_force, ..order }
}

fn add(floor: &mut Floor, order: NewOrder) -> ClientOrderId {
    floor.request(&Request::New(order));
    order.client_order_id
}

#[test]
fn a_stop_is_told_as_new_then_triggered_then_filled() {
    let mut floor = Floor::new();
    let order = stop(&mut floor, ONE, Side::Buy, 103, 5);
    let number = add(&mut floor, order);
    assert_eq!(floor.out.told(), [(ONE, ExecType::New, number, Reason::None)]);
    assert_eq!(floor.out.published(), "", "it is not in the book");
    floor.order(TWO, Side::Sell, 104, 9);
    floor.order(TWO, Side::Sell, 103, 1);
    floor.order(KEEPER, Side::Buy, 103, 1);
    let told: Vec<_> = floor.out.told().into_iter().filter(|told| told.0 == ONE).collect();
    assert_eq!(
        told,
        [
            (ONE, ExecType::Triggered, number, Reason::None),
            (ONE, ExecType::Fill, number, Reason::None),
        ]
    );
    assert_eq!(floor.out.fills().last(), Some(&(ONE, 104, 5)));
    assert_eq!(floor.out.published(), "EE");
}

#[test]
fn a_recorded_trade_triggers_stops_once_the_recording_has_been_told() {
    let mut floor = Floor::new();
    let order = stop(&mut floor, ONE, Side::Sell, 99, 5);
    let number = add(&mut floor, order);
    floor.recorded(1, Side::Buy, 99, 20);
    assert_eq!(floor.executed(1, 3).told(), []);
    let out = floor.input(|market, now, out| market.on_history_told(now, out));
    assert_eq!(out.told()[0], (ONE, ExecType::Triggered, number, Reason::None));
    assert_eq!(out.fills(), [(ONE, 99, 5)]);
}

#[test]
fn a_waiting_stop_is_replaced_and_cancelled_like_any_order() {
    let mut floor = Floor::new();
    let order = stop(&mut floor, ONE, Side::Buy, 103, 5);
    let first = add(&mut floor, order);
    let replace = ReplaceOrder {
        client_order_id: floor.number(),
        orig_client_order_id: first,
        instrument: ALPHA,
        session: ONE,
        side: Side::Buy,
        price: Price::NULL,
        quantity: Quantity(7),
        terms: OrderTerms {
            stop_price: cents(105),
            ..OrderTerms::NONE
        },
    };
    let out = floor.request(&Request::Replace(replace));
    assert_eq!(
        out.told(),
        [(ONE, ExecType::Replaced, replace.client_order_id, Reason::None)]
    );
    assert_eq!((out.reports[0].0.leaves, out.published().as_str()), (Quantity(7), ""));
    let out = floor.cancel(ONE, replace.client_order_id, Side::Buy);
    assert_eq!(out.told()[0].1, ExecType::Canceled);
    assert_eq!(out.published(), "");
}

#[test]
fn a_triggered_stop_limit_is_replaced_with_its_stop_price_said_again() {
    let mut floor = Floor::new();
    floor.order(TWO, Side::Sell, 103, 1);
    floor.order(KEEPER, Side::Buy, 103, 1);
    let order = NewOrder {
        order_type: OrderType::StopLimit,
        price: cents(102),
        ..stop(&mut floor, ONE, Side::Buy, 103, 5)
    };
    let first = add(&mut floor, order);
    assert_eq!(floor.out.told()[1].1, ExecType::Triggered, "103 was the last trade");
    let replace = ReplaceOrder {
        client_order_id: floor.number(),
        orig_client_order_id: first,
        instrument: ALPHA,
        session: ONE,
        side: Side::Buy,
        price: cents(102),
        quantity: Quantity(4),
        terms: order.terms,
    };
    let out = floor.request(&Request::Replace(replace));
    assert_eq!((out.told()[0].1, out.published().as_str()), (ExecType::Replaced, "X"));
}

#[test]
fn the_feed_shows_an_iceberg_slice_by_slice() {
    let mut floor = Floor::new();
    let order = floor.new_order(ONE, Side::Sell, 101, 25);
    let number = add(&mut floor, showing(order, 10));
    floor.order(TWO, Side::Buy, 101, 15);
    assert_eq!(
        floor.out.fills(),
        [(ONE, 101, 10), (TWO, 101, 10), (ONE, 101, 5), (TWO, 101, 5)]
    );
    assert_eq!(floor.out.published(), "EAE");
    let level = floor.market.best(ALPHA, Side::Sell).unwrap();
    assert_eq!(level.quantity, Quantity(5), "of ten that are left");
    let replace = ReplaceOrder {
        client_order_id: floor.number(),
        orig_client_order_id: number,
        instrument: ALPHA,
        session: ONE,
        side: Side::Sell,
        price: cents(101),
        quantity: Quantity(22),
        terms: OrderTerms {
            display: Quantity(10),
            ..OrderTerms::NONE
        },
    };
    assert_eq!(
        floor.request(&Request::Replace(replace)).published(),
        "",
        "only hidden lots went"
    );
}

#[test]
fn the_recording_fills_an_iceberg_as_far_as_it_goes() {
    let mut floor = Floor::new();
    let order = floor.new_order(ONE, Side::Sell, 101, 25);
    add(&mut floor, showing(order, 10));
    let out = floor.recorded(1, Side::Buy, 101, 22);
    assert_eq!(out.fills(), [(ONE, 101, 10), (ONE, 101, 10), (ONE, 101, 2)]);
    assert_eq!(out.published(), "EAEAE");
}

#[test]
fn a_pegged_order_moves_on_the_feed_and_nobody_is_told() {
    let mut floor = Floor::new();
    floor.order(TWO, Side::Buy, 100, 5);
    let peg = NewOrder {
        order_type: OrderType::PegPrimary,
        price: Price::NULL,
        ..floor.new_order(ONE, Side::Buy, 100, 7)
    };
    add(&mut floor, peg);
    assert_eq!(floor.market.best(ALPHA, Side::Buy).unwrap().quantity, Quantity(12));
    let better = floor.order(TWO, Side::Buy, 102, 5);
    assert_eq!((floor.out.reports.len(), floor.out.published().as_str()), (1, "ADA"));
    floor.cancel(TWO, better, Side::Buy);
    assert_eq!((floor.out.reports.len(), floor.out.published().as_str()), (1, "DDA"));
}

#[test]
fn a_pegged_order_follows_the_recording_once_it_has_been_told() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Buy, 100, 5);
    let peg = NewOrder {
        order_type: OrderType::PegPrimary,
        price: Price::NULL,
        ..floor.new_order(ONE, Side::Buy, 100, 7)
    };
    add(&mut floor, peg);
    floor.recorded(2, Side::Buy, 101, 5);
    assert_eq!(floor.out.published(), "A");
    let out = floor.input(|market, now, out| market.on_history_told(now, out));
    assert_eq!(out.published(), "DA");
}

#[test]
fn a_post_only_order_that_would_trade_is_rejected_and_a_replace_leaves_it() {
    let mut floor = Floor::new();
    floor.order(TWO, Side::Sell, 101, 5);
    let post_only = |order: NewOrder| NewOrder {
        terms: OrderTerms {
            post_only: true,
            ..OrderTerms::NONE
        },
        ..order
    };
    let order = post_only(floor.new_order(ONE, Side::Buy, 101, 5));
    let number = add(&mut floor, order);
    assert_eq!(floor.out.told(), [(ONE, ExecType::Rejected, number, Reason::PostOnly)]);
    let order = post_only(floor.new_order(ONE, Side::Buy, 100, 5));
    let number = add(&mut floor, order);
    let replace = ReplaceOrder {
        client_order_id: floor.number(),
        orig_client_order_id: number,
        instrument: ALPHA,
        session: ONE,
        side: Side::Buy,
        price: cents(101),
        quantity: Quantity(5),
        terms: order.terms,
    };
    let out = floor.request(&Request::Replace(replace));
    assert_eq!(
        out.told(),
        [(
            ONE,
            ExecType::RequestRejected,
            replace.client_order_id,
            Reason::PostOnly
        )]
    );
    assert_eq!(out.reports[0].0.leaves, Quantity(5));
}

#[test]
fn fill_or_kill_that_cannot_fill_is_cancelled_and_not_rejected() {
    let mut floor = Floor::new();
    floor.order(TWO, Side::Sell, 101, 5);
    let order = good_for(TimeInForce::FillOrKill, floor.new_order(ONE, Side::Buy, 101, 6));
    let number = add(&mut floor, order);
    assert_eq!(
        floor.out.told(),
        [
            (ONE, ExecType::New, number, Reason::None),
            (ONE, ExecType::Canceled, number, Reason::Unfilled),
        ]
    );
}

#[test]
fn an_order_good_till_a_time_expires_when_it_has_come() {
    let mut floor = Floor::new();
    let until = |floor: &mut Floor, time| {
        let order = good_for(TimeInForce::GoodTillDate, floor.new_order(ONE, Side::Buy, 100, 5));
        let terms = OrderTerms {
            expires: time,
            ..OrderTerms::NONE
        };
        NewOrder { terms, ..order }
    };
    let past = until(&mut floor, Timestamp(1));
    add(&mut floor, past);
    assert_eq!(floor.out.told()[0].3, Reason::InvalidExpiry);
    let time = floor.now() + Duration(2_500);
    let order = until(&mut floor, time);
    let number = add(&mut floor, order);
    assert_eq!(floor.market.next_expiry(), Some(time));
    let expire = |floor: &mut Floor| floor.input(|market, now, out| market.on_expiry(now, out)).told();
    assert_eq!(expire(&mut floor), []);
    assert_eq!(expire(&mut floor), [(ONE, ExecType::Expired, number, Reason::Expired)]);
    assert_eq!(floor.out.published(), "D");
}

#[test]
fn only_orders_that_are_good_longer_outlive_their_day() {
    let mut floor = Floor::new();
    floor.order(ONE, Side::Buy, 99, 5);
    let order = good_for(TimeInForce::GoodTillCancel, floor.new_order(ONE, Side::Buy, 100, 5));
    let number = add(&mut floor, order);
    floor.input(|market, now, out| market.on_day(now, TradingDay(20_250_304), out));
    assert_eq!(floor.out.told().len(), 1);
    assert_eq!(floor.market.open_orders(ONE), 1);
    // Its number is taken as long as it lives.
    let again = NewOrder {
        client_order_id: number,
        ..floor.new_order(ONE, Side::Buy, 98, 5)
    };
    add(&mut floor, again);
    assert_eq!(floor.out.told()[0].3, Reason::DuplicateClientOrderId);
    assert_eq!(floor.cancel(ONE, number, Side::Buy).told()[0].1, ExecType::Canceled);
}

#[test]
fn an_auction_is_on_the_feed_as_a_cross_and_each_client_is_told_once() {
    let mut floor = Floor::new();
    let at_the_opening = good_for(TimeInForce::AtTheOpening, floor.new_order(ONE, Side::Buy, 103, 10));
    let early = add(&mut floor, at_the_opening);
    floor.input(|market, now, out| market.on_call(now, Auction::Opening, out));
    assert_eq!(floor.out.published(), "A", "it joins");
    let sell = floor.order(TWO, Side::Sell, 100, 4);
    assert_eq!((floor.out.told().len(), floor.out.published().as_str()), (1, "A"));
    let more = floor.order(TWO, Side::Sell, 102, 3);
    let out = floor.input(|market, now, out| market.on_uncross(now, out));
    assert_eq!(
        out.told(),
        [
            (ONE, ExecType::Fill, early, Reason::None),
            (TWO, ExecType::Fill, sell, Reason::None),
            (TWO, ExecType::Fill, more, Reason::None),
            (ONE, ExecType::Canceled, early, Reason::Unfilled),
        ]
    );
    assert_eq!(
        out.fills(),
        [(ONE, 102, 7), (TWO, 102, 4), (TWO, 102, 3)],
        "nearest to the reference price"
    );
    assert_eq!(out.published(), "QCCCD");
}
