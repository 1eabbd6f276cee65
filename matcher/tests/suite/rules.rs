//! The rules one by one, small enough to read.

use matcher::{BookIndex, Capacity, Level, Matcher, NewOrder, OwnerId, Priority, Rejected, Replace, Report, SelfMatch};
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

pub(crate) const BOOK: BookIndex = BookIndex(0);

fn matcher() -> Matcher {
    Matcher::new(
        Capacity {
            books: 1,
            orders: 8,
            levels: 4,
            special: 4,
        },
        SelfMatch::CancelNewest,
    )
}

pub(crate) fn order(id: u64, side: Side, price: i64, quantity: u64) -> NewOrder {
    NewOrder {
        id: OrderId(id),
        book: BOOK,
        owner: OwnerId::NONE,
        side,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        price: Price(price),
        quantity: Quantity(quantity),
    }
}

fn add(matcher: &mut Matcher, order: NewOrder) -> Vec<Report> {
    let mut reports = Vec::new();
    matcher.add(&order, &mut |report| reports.push(report));
    reports
}

/// Maker, price and quantity of each trade.
pub(crate) fn trades(reports: &[Report]) -> Vec<(u64, i64, u64)> {
    reports
        .iter()
        .filter_map(|report| match report {
            Report::Trade(trade) => Some((trade.maker.0, trade.price.0, trade.quantity.0)),
            _ => None,
        })
        .collect()
}

pub(crate) fn reason(reports: &[Report]) -> Reason {
    match reports.last() {
        Some(Report::Rejected(Rejected { reason, .. }) | Report::Canceled { reason, .. }) => *reason,
        _ => Reason::None,
    }
}

#[test]
fn the_best_price_comes_first_then_the_first_order() {
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Sell, 102, 10));
    add(&mut matcher, order(2, Side::Sell, 101, 10));
    add(&mut matcher, order(3, Side::Sell, 101, 10));
    let reports = add(&mut matcher, order(4, Side::Buy, 102, 25));
    assert_eq!(trades(&reports), [(2, 101, 10), (3, 101, 10), (1, 102, 5)]);
}

#[test]
fn a_partly_filled_order_keeps_its_place() {
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Sell, 101, 10));
    add(&mut matcher, order(2, Side::Sell, 101, 10));
    add(&mut matcher, order(3, Side::Buy, 101, 4));
    assert_eq!(
        trades(&add(&mut matcher, order(4, Side::Buy, 101, 8))),
        [(1, 101, 6), (2, 101, 2)]
    );
}

#[test]
fn a_remainder_sweeps_up_to_its_limit_and_rests_there() {
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Sell, 101, 5));
    add(&mut matcher, order(2, Side::Sell, 103, 5));
    let reports = add(&mut matcher, order(3, Side::Buy, 102, 12));
    assert_eq!(trades(&reports), [(1, 101, 5)]);
    assert_eq!(
        matcher.best(BOOK, Side::Buy),
        Some(Level {
            price: Price(102),
            quantity: Quantity(7),
            orders: 1
        })
    );
    matcher.audit();
}

#[test]
fn what_may_not_rest_is_cancelled() {
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Sell, 101, 5));
    let ioc = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..order(2, Side::Buy, 101, 8)
    };
    let reports = add(&mut matcher, ioc);
    assert_eq!(
        (trades(&reports), reason(&reports)),
        (vec![(1, 101, 5)], Reason::Unfilled)
    );
    let market = NewOrder {
        order_type: OrderType::Market,
        price: Price::NULL,
        ..order(3, Side::Buy, 0, 8)
    };
    assert_eq!(reason(&add(&mut matcher, market)), Reason::Unfilled);
    assert_eq!(matcher.order_count(), 0);
}

#[test]
fn a_lower_quantity_keeps_priority_and_anything_else_loses_it() {
    for (price, leaves, first) in [(101, 9, 1), (101, 10, 2), (101, 11, 2)] {
        let mut matcher = matcher();
        add(&mut matcher, order(1, Side::Sell, 101, 10));
        add(&mut matcher, order(2, Side::Sell, 101, 10));
        let replace = Replace {
            id: OrderId(1),
            new_id: OrderId(1),
            price: Price(price),
            leaves: Quantity(leaves),
            priority: Priority::KeptWhenReduced,
        };
        matcher.replace(&replace, &mut |_| {});
        assert_eq!(
            trades(&add(&mut matcher, order(3, Side::Buy, 101, 1))),
            [(first, 101, 1)],
            "{leaves}"
        );
    }
}

#[test]
fn a_replace_to_a_crossing_price_trades() {
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Sell, 105, 5));
    add(&mut matcher, order(2, Side::Buy, 100, 8));
    let mut reports = Vec::new();
    let replace = Replace {
        id: OrderId(2),
        new_id: OrderId(3),
        price: Price(105),
        leaves: Quantity(8),
        priority: Priority::KeptWhenReduced,
    };
    matcher.replace(&replace, &mut |report| reports.push(report));
    assert_eq!(trades(&reports), [(1, 105, 5)]);
    assert_eq!(
        (matcher.order(OrderId(2)), matcher.order(OrderId(3)).unwrap().leaves),
        (None, Quantity(3))
    );
}

#[test]
fn only_own_orders_that_are_reached_stop_an_order() {
    let own = |id, side, price, quantity| NewOrder {
        owner: OwnerId(7),
        ..order(id, side, price, quantity)
    };
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Sell, 101, 5));
    add(&mut matcher, own(2, Side::Sell, 102, 5));
    assert_eq!(
        reason(&add(&mut matcher, own(3, Side::Buy, 101, 5))),
        Reason::None,
        "filled before it got there"
    );
    add(&mut matcher, order(4, Side::Sell, 101, 5));
    let reports = add(&mut matcher, own(5, Side::Buy, 102, 8));
    assert_eq!(
        (trades(&reports), reason(&reports)),
        (vec![(4, 101, 5)], Reason::SelfMatch)
    );
    assert_eq!(
        matcher.order(OrderId(5)),
        None,
        "what is left does not rest against the one kept"
    );
    assert!(matcher.order(OrderId(2)).is_some());
}

#[test]
fn a_full_book_refuses_and_stays_as_it_was() {
    let mut matcher = matcher();
    for id in 1..=4 {
        add(
            &mut matcher,
            order(id, Side::Buy, 100 - id.cast_signed() * 1_000_000, 1),
        );
    }
    assert_eq!(
        reason(&add(&mut matcher, order(5, Side::Buy, 42, 1))),
        Reason::BookFull,
        "no level is left"
    );
    for id in 5..=8 {
        assert_eq!(
            reason(&add(&mut matcher, order(id, Side::Buy, 100 - 4_000_000, 1))),
            Reason::None
        );
    }
    assert_eq!(
        reason(&add(&mut matcher, order(9, Side::Buy, 100 - 4_000_000, 1))),
        Reason::BookFull,
        "no order is left"
    );
    let ioc = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..order(10, Side::Sell, 0, 1)
    };
    assert_eq!(
        reason(&add(&mut matcher, ioc)),
        Reason::Unfilled,
        "what does not rest needs no room"
    );
    assert_eq!(matcher.order_count(), 8);
    matcher.audit();
}

#[test]
fn a_live_id_is_refused_and_a_dead_one_is_free() {
    let mut matcher = matcher();
    add(&mut matcher, order(1, Side::Buy, 100, 1));
    assert_eq!(
        reason(&add(&mut matcher, order(1, Side::Buy, 100, 1))),
        Reason::DuplicateClientOrderId
    );
    matcher.cancel(OrderId(1), Reason::Requested, &mut |_| {});
    assert_eq!(reason(&add(&mut matcher, order(1, Side::Buy, 100, 1))), Reason::None);
}

#[test]
fn memory_is_known_before() {
    let capacity = Capacity {
        books: 10_000,
        orders: 1 << 20,
        levels: 1 << 17,
        special: 0,
    };
    let mib = capacity.memory() >> 20;
    assert!((60..100).contains(&mib), "{mib} MiB");
}
