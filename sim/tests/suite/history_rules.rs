//! How history and clients share a book, rule by rule.

use crate::market::{ALPHA, Floor, KEEPER, LOCATES, ONE, TWO, cents, cents_e4, stamp};
use proto::itch::{AddOrder, BuySell, OrderExecutedWithPrice, Stock, SystemEvent, Trade};
use types::{OrderId, Quantity, Side};
use zerocopy::IntoBytes;

#[test]
fn a_recorded_execution_fills_the_clients_before_it_first() {
    let mut floor = Floor::new();
    floor.order(ONE, Side::Sell, 101, 30);
    floor.recorded(1, Side::Sell, 101, 100);
    floor.order(TWO, Side::Sell, 101, 50);
    floor.order(TWO, Side::Sell, 100, 20);
    let out = floor.executed(1, 80);
    // Better price first, then earlier at the same price; the one behind the recorded order waits on.
    assert_eq!(out.fills(), [(TWO, 100, 20), (ONE, 101, 30)]);
    // Two executions of clients, the recorded order's own 30, and the 50 that it lost leave the book.
    assert_eq!(out.published(), "EEEX");
    assert_eq!(
        floor.market.orders(ALPHA, Side::Sell).next().unwrap().leaves,
        Quantity(20)
    );
}

#[test]
fn a_recorded_order_that_lost_its_execution_to_clients_is_deleted() {
    let mut floor = Floor::new();
    floor.order(ONE, Side::Buy, 99, 500);
    floor.recorded(1, Side::Buy, 99, 100);
    let out = floor.executed(1, 100);
    assert_eq!((out.fills(), out.published().as_str()), (vec![(ONE, 99, 100)], "ED"));
    assert_eq!(floor.market.order_count(), 1);
}

#[test]
fn an_execution_without_clients_goes_on_as_it_is() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Buy, 99, 100);
    assert_eq!(floor.executed(1, 60).published(), "E");
    let price = OrderExecutedWithPrice::new(stamp(7), 1, 40, 5, false, cents_e4(98));
    let out = floor.history(price.as_bytes());
    assert_eq!(out.published(), "C");
    assert_eq!(out.feed[0][31..], price.as_bytes()[31..], "printable and price stay");
    assert_eq!(floor.market.order_count(), 0);
}

#[test]
fn a_recorded_order_across_a_client_trades_at_the_clients_price() {
    let mut floor = Floor::new();
    floor.order(ONE, Side::Buy, 103, 30);
    floor.recorded(1, Side::Buy, 102, 10);
    let out = floor.recorded(2, Side::Sell, 102, 100);
    assert_eq!((out.fills(), out.published().as_str()), (vec![(ONE, 103, 30)], "EA"));
    // Recorded orders do not trade among themselves, even where they cross.
    assert_eq!(floor.market.best(ALPHA, Side::Buy).unwrap().price, cents(102));
    assert_eq!(floor.market.best(ALPHA, Side::Sell).unwrap().quantity, Quantity(70));
}

#[test]
fn what_a_client_took_is_gone_from_history() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Sell, 100, 100);
    floor.recorded(2, Side::Sell, 100, 100);
    floor.order(ONE, Side::Buy, 100, 130);
    assert_eq!(floor.out.fills(), [(ONE, 100, 100), (ONE, 100, 30)]);
    assert_eq!(floor.executed(1, 100).published(), "");
    assert_eq!(floor.market.counters().history_unmatched, 1);
    // History cancels 60 of 100 where 70 are left, and then executes 40 where 10 are left.
    assert_eq!(floor.cancelled(2, 60).published(), "X");
    assert_eq!(floor.executed(2, 40).published(), "E");
    assert_eq!(floor.market.order_count(), 0);
}

#[test]
fn a_recorded_replace_loses_its_place_and_may_meet_clients() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Sell, 105, 100);
    floor.order(ONE, Side::Sell, 105, 10);
    assert_eq!(floor.replaced(1, 2, 50, 105).published(), "U");
    assert_eq!(floor.market.orders(ALPHA, Side::Sell).nth(1).unwrap().id, OrderId(2));
    floor.order(ONE, Side::Buy, 100, 20);
    let out = floor.replaced(2, 3, 50, 100);
    assert_eq!((out.fills(), out.published().as_str()), (vec![(ONE, 100, 20)], "DEA"));
    assert_eq!(floor.deleted(3).published(), "D");
}

#[test]
fn a_new_recording_starts_from_a_book_of_clients_only() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Buy, 99, 100);
    floor.order(KEEPER, Side::Buy, 98, 5);
    floor.recorded(2, Side::Sell, 101, 100);
    let out = floor.input(|market, now, out| market.on_history_started(now, out));
    assert_eq!(out.published(), "DD");
    assert_eq!(floor.market.order_count(), 1);
    assert_eq!(
        floor.recorded(1, Side::Buy, 99, 100).published(),
        "A",
        "its references are free again"
    );
}

#[test]
fn the_rest_of_a_feed_passes_with_our_locate_and_time() {
    let mut floor = Floor::new();
    let trade = Trade::new(stamp(8), 100, Stock(*LOCATES[1].1), cents_e4(100), 3);
    let out = floor.history(trade.as_bytes());
    assert_eq!(out.feed[0][1..3], [0, 2]);
    assert_eq!(out.feed[0][11..], trade.as_bytes()[11..]);
    assert_eq!(
        floor
            .history(SystemEvent::new(1, SystemEvent::START_OF_MARKET_HOURS).as_bytes())
            .published(),
        "S"
    );
    let foreign = Trade::new(stamp(9), 100, Stock(*LOCATES[2].1), cents_e4(100), 3);
    assert_eq!(floor.history(foreign.as_bytes()).published(), "");
    // The directory of the stock that we do not have was foreign too.
    assert_eq!(floor.market.counters().history_foreign, 2);
}

#[test]
fn nonsense_from_history_is_counted_and_changes_nothing() {
    let mut floor = Floor::new();
    floor.recorded(1, Side::Buy, 99, 100);
    let stock = Stock(*LOCATES[1].1);
    let odd_lot = AddOrder::new(stamp(8), 5, BuySell::Buy, 150, stock, cents_e4(99));
    let ours = AddOrder::new(stamp(8), 1 << 63, BuySell::Buy, 100, stock, cents_e4(99));
    for message in [b"".as_slice(), b"A", b"?????", odd_lot.as_bytes(), ours.as_bytes()] {
        assert_eq!(floor.history(message).published(), "");
    }
    assert_eq!(
        floor.recorded(1, Side::Sell, 105, 1).published(),
        "",
        "the reference is live"
    );
    assert_eq!(floor.cancelled(1, 0).published(), "");
    assert_eq!(floor.market.counters().history_invalid, 7);
    assert_eq!(floor.market.order_count(), 1);
}

#[test]
fn history_that_finds_no_room_is_counted() {
    let mut floor = Floor::new();
    for reference in 0..70 {
        floor.recorded(reference, Side::Buy, 99, 100);
    }
    assert_eq!(
        (floor.market.order_count(), floor.market.counters().history_overflowed),
        (64, 6)
    );
}
