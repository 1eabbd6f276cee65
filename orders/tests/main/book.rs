//! Limits held against the live book: at the edge, and where there is no book.

use crate::fixture::*;
use orders::{BookLimit, Collar, LimitScope, LimitValue, MissingBook, Orders, Reference};
use types::{LimitClass, NewOrder, OrderType, Price, Reason, Side, TimeInForce, Timestamp};

/// Without a collar, and with two ticks through the book.
fn held(missing: MissingBook) -> Orders {
    with_width(None, Some(2), missing)
}

fn with_width(basis_points: Option<u32>, ticks: Option<u32>, missing: MissingBook) -> Orders {
    let mut config = config();
    config.classes[0].collar = None;
    config.classes[0].book = Some(BookLimit {
        width: Collar { basis_points, ticks },
        missing,
    });
    up(Orders::new(&config).unwrap())
}

fn order(side: Side, ticks: i64) -> NewOrder {
    NewOrder {
        side,
        price: Price(ticks * TICK),
        ..new_order(1)
    }
}

#[test]
fn a_limit_may_reach_through_the_best_price_of_the_other_side_so_far() {
    // The book is 99 to 101.
    for (basis_points, ticks, highest_buy, lowest_sell) in [
        (None, Some(2), 103, 97),
        (None, Some(0), 101, 99),
        (Some(200), None, 103, 98),
        (Some(200), Some(1), 102, 98),
        (Some(100), Some(9), 102, 99),
    ] {
        for (side, last, next) in [
            (Side::Buy, highest_buy, highest_buy + 1),
            (Side::Sell, lowest_sell, lowest_sell - 1),
        ] {
            let verdict = |ticks_of_order| {
                let mut orders = with_width(basis_points, ticks, MissingBook::Refuse);
                enter(&mut orders, &order(side, ticks_of_order), &REFERENCE).err()
            };
            assert_eq!(verdict(last), None, "{side:?} {last} {basis_points:?} {ticks:?}");
            assert_eq!(verdict(next), Some(Reason::ThroughBook), "{side:?} {next}");
        }
    }
    // What does not reach the other side may stand wherever it likes.
    for (side, ticks) in [(Side::Buy, 1), (Side::Sell, 250)] {
        assert!(enter(&mut held(MissingBook::Refuse), &order(side, ticks), &REFERENCE).is_ok());
    }
}

#[test]
fn a_missing_or_stale_book_refuses_or_is_skipped_as_written() {
    let aged = |nanoseconds| Reference {
        time: Timestamp(NOW.0 - nanoseconds),
        ..REFERENCE
    };
    let no_offer = Reference {
        offer: Price::NULL,
        ..REFERENCE
    };
    let (far_buy, far_sell) = (order(Side::Buy, 104), order(Side::Sell, 96));
    let through = Some(Reason::ThroughBook);
    for (order, reference, refuse, skip) in [
        (far_buy, aged(STALE_AFTER.0), through, through),
        (far_buy, aged(STALE_AFTER.0 + 1), Some(Reason::NoBook), None),
        (far_sell, aged(STALE_AFTER.0 + 1), Some(Reason::NoBook), None),
        (new_order(1), aged(STALE_AFTER.0 + 1), Some(Reason::NoBook), None),
        (far_buy, Reference::NONE, Some(Reason::NoBook), None),
        (far_buy, no_offer, Some(Reason::NoBook), None),
        (far_sell, no_offer, through, through),
    ] {
        for (missing, reason) in [(MissingBook::Refuse, refuse), (MissingBook::Skip, skip)] {
            let verdict = enter(&mut held(missing), &order, &reference).err();
            assert_eq!(verdict, reason, "{order:?} {reference:?} {missing:?}");
        }
    }
}

#[test]
fn orders_that_do_not_meet_the_book_with_a_limit_are_not_held_against_it() {
    let far = order(Side::Buy, 110);
    let market = NewOrder {
        order_type: OrderType::Market,
        time_in_force: TimeInForce::ImmediateOrCancel,
        price: Price::NULL,
        ..far
    };
    let auction = NewOrder {
        time_in_force: TimeInForce::AtTheOpening,
        ..far
    };
    let at_once = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..far
    };
    for (order, reason) in [(market, None), (auction, None), (at_once, Some(Reason::ThroughBook))] {
        let verdict = enter(&mut held(MissingBook::Refuse), &order, &REFERENCE).err();
        assert_eq!(verdict, reason, "{order:?}");
    }
}

#[test]
fn a_replace_is_held_against_the_book_too() {
    let mut orders = held(MissingBook::Refuse);
    let order = order(Side::Buy, 100);
    accepted(&mut orders, &order);
    let verdict = |ticks| {
        orders
            .check_replace(NOW, &replace_of(&order, 2, ticks, 10), &REFERENCE)
            .err()
    };
    assert_eq!(verdict(103), None);
    assert_eq!(verdict(104), Some(Reason::ThroughBook));
}

#[test]
fn it_is_read_and_changed_by_name_and_comes_back_from_a_journal() {
    let class = LimitScope::Class(LimitClass(0));
    let limit = orders::Limit::from_name("book").unwrap();
    let mut orders = held(MissingBook::Refuse);
    assert_eq!(
        enter(&mut orders, &order(Side::Buy, 104), &REFERENCE).err(),
        Some(Reason::ThroughBook)
    );
    for (scope, text) in [
        (class, "{ ticks = 3, missing = \"refuse\" }"),
        (class, "{ basis_points = 400, ticks = 3, missing = \"skip\" }"),
        (
            LimitScope::Instrument(ALPHA),
            "{ basis_points = 400, missing = \"skip\" }",
        ),
        (class, "none"),
    ] {
        let value = scope.parse(limit, text).unwrap();
        let (kind, amount) = value.to_parts();
        assert_eq!(LimitValue::from_parts(kind, amount), Some(value));
        assert_eq!(value.to_string(), text);
        set_limit(&mut orders, scope, limit, value).unwrap();
        assert_eq!(orders.limit(scope, limit), Some(value));
        let order = order(Side::Buy, 104);
        let verdict = orders.check_risk(NOW, &order, &REFERENCE);
        assert_eq!(verdict.err(), None, "{text}");
    }
    for text in [
        "off",
        "{ ticks = 3 }",
        "{ ticks = 3, missing = \"master\" }",
        "{ missing = \"skip\", missing = \"skip\", ticks = 3 }",
        "{ ticks = 3, ticks = 3, missing = \"skip\" }",
        "{ ticks = 3, missing = \"skip\", more }",
    ] {
        assert!(class.parse(limit, text).is_err(), "{text}");
    }
    let no_width = class.parse(limit, "{ missing = \"skip\" }").unwrap();
    assert!(set_limit(&mut orders, class, limit, no_width).is_err());
}
