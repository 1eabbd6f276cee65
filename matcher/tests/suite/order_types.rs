//! The rules of orders with terms one by one, small enough to read.

use crate::rules::{BOOK, order, reason, trades};
use Side::{Buy, Sell};
use matcher::{
    Auction, Capacity, Matcher, NewOrder, OwnerId, PegRules, Priority, Replace, Report, RestingOrder, SelfMatch,
};
use types::{OrderId, OrderTerms, OrderType, Price, Quantity, Reason, Side, TimeInForce, Timestamp};

/// A matcher, and the reports of its last event.
struct Floor {
    matcher: Matcher,
    reports: Vec<Report>,
}

impl Floor {
    fn new() -> Self {
        Self::with(SelfMatch::CancelNewest)
    }

    fn with(self_match: SelfMatch) -> Self {
        let capacity = Capacity {
            books: 1,
            orders: 256,
            levels: 256,
            special: 256,
        };
        Self {
            matcher: Matcher::new(capacity, self_match),
            reports: Vec::new(),
        }
    }

    fn event(&mut self, event: impl FnOnce(&mut Matcher, &mut dyn FnMut(Report))) -> &[Report] {
        self.reports.clear();
        let reports = &mut self.reports;
        event(&mut self.matcher, &mut |report| reports.push(report));
        self.matcher.audit();
        &self.reports
    }

    fn add(&mut self, order: NewOrder) -> &[Report] {
        self.add_with(order, OrderTerms::NONE)
    }

    fn add_with(&mut self, order: NewOrder, terms: OrderTerms) -> &[Report] {
        self.event(|matcher, mut sink| matcher.add_with_terms(&order, &terms, &mut sink))
    }

    fn replace(&mut self, id: u64, price: i64, leaves: u64, terms: OrderTerms) -> &[Report] {
        let replace = Replace {
            id: OrderId(id),
            new_id: OrderId(id),
            price: Price(price),
            leaves: Quantity(leaves),
            priority: Priority::KeptWhenReduced,
        };
        self.event(|matcher, mut sink| matcher.replace_with_terms(&replace, &terms, &mut sink))
    }

    fn cancel(&mut self, id: u64) -> &[Report] {
        self.event(|matcher, mut sink| matcher.cancel(OrderId(id), Reason::Requested, &mut sink))
    }

    /// Price, lots open and lots shown of a live order.
    fn order(&self, id: u64) -> Option<(i64, u64, u64)> {
        self.matcher.order(OrderId(id)).map(
            |RestingOrder {
                 price, leaves, shown, ..
             }| (price.0, leaves.0, shown.0),
        )
    }

    fn best(&self, side: Side) -> Option<(i64, u64)> {
        self.matcher
            .best(BOOK, side)
            .map(|level| (level.price.0, level.quantity.0))
    }

    /// Lets a trade happen at a price, between two orders that are gone afterwards.
    fn trade_at(&mut self, price: i64) -> &[Report] {
        self.add(order(901, Buy, price, 1));
        self.add(order(902, Sell, price, 1))
    }
}

fn of_type(order_type: OrderType, order: NewOrder) -> NewOrder {
    NewOrder { order_type, ..order }
}

fn good_for(time_in_force: TimeInForce, order: NewOrder) -> NewOrder {
    NewOrder { time_in_force, ..order }
}

fn owned(owner: u32, order: NewOrder) -> NewOrder {
    NewOrder {
        owner: OwnerId(owner),
        ..order
    }
}

fn stop(id: u64, side: Side, quantity: u64) -> NewOrder {
    of_type(OrderType::Stop, order(id, side, 0, quantity))
}

fn stop_at(price: i64) -> OrderTerms {
    OrderTerms {
        stop_price: Price(price),
        ..OrderTerms::NONE
    }
}

fn showing(lots: u64) -> OrderTerms {
    OrderTerms {
        display: Quantity(lots),
        ..OrderTerms::NONE
    }
}

fn at_least(lots: u64) -> OrderTerms {
    OrderTerms {
        min_quantity: Quantity(lots),
        ..OrderTerms::NONE
    }
}

fn offset(ticks: i64) -> OrderTerms {
    OrderTerms {
        peg_offset: Price(ticks),
        ..OrderTerms::NONE
    }
}

const POST_ONLY: OrderTerms = OrderTerms {
    post_only: true,
    ..OrderTerms::NONE
};

fn peg(order_type: OrderType, id: u64, side: Side, quantity: u64) -> NewOrder {
    NewOrder {
        order_type,
        price: Price::NULL,
        ..order(id, side, 0, quantity)
    }
}

fn triggered(reports: &[Report]) -> Vec<u64> {
    reports
        .iter()
        .filter_map(|report| match report {
            Report::Triggered { id } => Some(id.0),
            _ => None,
        })
        .collect()
}

#[test]
fn a_stop_waits_for_its_price_and_takes_the_market_in_the_event_of_the_trade() {
    let mut floor = Floor::new();
    floor.add_with(stop(1, Buy, 5), stop_at(103));
    floor.add(order(2, Sell, 105, 9));
    assert_eq!(triggered(floor.trade_at(102)), []);
    assert_eq!(floor.order(1), Some((0, 5, 0)), "it is live, and shows nothing");
    let reports = floor.trade_at(103);
    assert_eq!(triggered(reports), [1]);
    assert_eq!(trades(reports).last(), Some(&(2, 105, 5)));
    assert_eq!(floor.order(1), None);
}

#[test]
fn a_sell_stop_is_triggered_from_above() {
    let mut floor = Floor::new();
    floor.trade_at(103);
    floor.add_with(stop(1, Sell, 5), stop_at(100));
    assert_eq!(triggered(floor.trade_at(101)), []);
    assert_eq!(triggered(floor.trade_at(99)), [1]);
}

#[test]
fn stops_trigger_each_other_until_none_is_left_to_trigger() {
    let mut floor = Floor::new();
    for (id, price) in [(1, 103), (2, 104), (3, 107)] {
        floor.add_with(stop(id, Buy, 1), stop_at(price));
    }
    for (id, price) in [(11, 104), (12, 105)] {
        floor.add(order(id, Sell, price, 1));
    }
    // 103 triggers 1, which trades at 104 and triggers 2, which trades at 105. 107 is not reached.
    let reports = floor.trade_at(103);
    assert_eq!(triggered(reports), [1, 2]);
    assert_eq!(trades(reports), [(901, 103, 1), (11, 104, 1), (12, 105, 1)]);
    assert!(floor.order(3).is_some());
}

#[test]
fn the_stop_price_passed_first_is_triggered_first_and_at_one_price_the_first_order() {
    let mut floor = Floor::new();
    for (id, price) in [(1, 102), (2, 101), (3, 102), (4, 103)] {
        floor.add_with(stop(id, Buy, 1), stop_at(price));
    }
    assert_eq!(triggered(floor.trade_at(103)), [2, 1, 3, 4]);
}

#[test]
fn a_sweep_triggers_by_every_price_it_trades_at() {
    let mut floor = Floor::new();
    floor.trade_at(105);
    floor.add_with(stop(1, Sell, 1), stop_at(101));
    floor.add(order(2, Sell, 101, 1));
    floor.add(order(3, Sell, 104, 1));
    // The last trade is at 104, but there was one at 101.
    assert_eq!(triggered(floor.add(order(4, Buy, 104, 2))), [1]);
}

#[test]
fn a_stop_whose_price_has_been_passed_is_triggered_as_it_comes() {
    let mut floor = Floor::new();
    floor.trade_at(105);
    floor.add(order(2, Sell, 106, 9));
    let reports = floor.add_with(stop(1, Buy, 5), stop_at(104));
    assert_eq!((triggered(reports), trades(reports)), (vec![1], vec![(2, 106, 5)]));
}

#[test]
fn a_stop_limit_rests_at_its_limit_once_triggered() {
    let mut floor = Floor::new();
    let stop_limit = of_type(OrderType::StopLimit, order(1, Buy, 104, 5));
    floor.add_with(stop_limit, stop_at(103));
    floor.add(order(2, Sell, 104, 2));
    floor.add(order(3, Sell, 105, 2));
    floor.trade_at(103);
    assert_eq!(floor.best(Buy), Some((104, 3)));
    assert_eq!(floor.order(1), Some((104, 3, 3)));
}

#[test]
fn an_untriggered_stop_is_cancelled_and_replaced_like_any_order() {
    let mut floor = Floor::new();
    floor.add_with(stop(1, Buy, 5), stop_at(103));
    floor.replace(1, 0, 5, stop_at(106));
    assert_eq!(triggered(floor.trade_at(104)), []);
    assert_eq!(
        reason(floor.replace(1, 0, 5, OrderTerms::NONE)),
        Reason::InvalidStopPrice
    );
    assert_eq!(reason(floor.cancel(1)), Reason::Requested);
    assert_eq!(triggered(floor.trade_at(107)), []);
}

#[test]
fn a_smaller_stop_keeps_its_turn_and_another_price_loses_it() {
    for (price, quantity, expected) in [(103, 4, [1, 2]), (103, 6, [2, 1])] {
        let mut floor = Floor::new();
        floor.add_with(stop(1, Buy, 5), stop_at(103));
        floor.add_with(stop(2, Buy, 5), stop_at(103));
        floor.replace(1, 0, quantity, stop_at(price));
        assert_eq!(triggered(floor.trade_at(103)), expected);
    }
}

#[test]
fn a_triggered_stop_makes_a_bounded_number_of_trades() {
    let mut floor = Floor::new();
    let most = u64::from(matcher::MAX_TRIGGERED_TRADES);
    for id in 1..=most + 1 {
        floor.add(order(id, Sell, 110, 1));
    }
    floor.add_with(stop(500, Buy, most + 1), stop_at(103));
    let reports = floor.trade_at(103);
    assert_eq!(trades(reports).len() as u64, most + 1, "and the one that triggered it");
    assert_eq!(reason(reports), Reason::Unfilled);
}

#[test]
fn an_iceberg_shows_a_slice_and_waits_at_the_end_for_the_next() {
    let mut floor = Floor::new();
    floor.add_with(order(1, Sell, 101, 25), showing(10));
    floor.add(order(2, Sell, 101, 10));
    assert_eq!(floor.best(Sell), Some((101, 20)), "15 are hidden");
    let reports = floor.add(order(3, Buy, 101, 12));
    assert_eq!(trades(reports), [(1, 101, 10), (2, 101, 2)]);
    assert!(matches!(reports[2], Report::Replenished(slice) if (slice.shown.0, slice.leaves.0) == (10, 15)));
    assert_eq!(
        trades(floor.add(order(4, Buy, 101, 30))),
        [(2, 101, 8), (1, 101, 10), (1, 101, 5)]
    );
    assert_eq!(floor.order(1), None);
}

#[test]
fn an_iceberg_loses_hidden_lots_first_and_keeps_its_place() {
    let mut floor = Floor::new();
    floor.add_with(order(1, Sell, 101, 25), showing(10));
    floor.add(order(2, Sell, 101, 10));
    floor.replace(1, 101, 12, showing(10));
    assert_eq!(floor.order(1), Some((101, 12, 10)));
    assert_eq!(trades(floor.add(order(3, Buy, 101, 1))), [(1, 101, 1)]);
    floor.replace(1, 101, 11, showing(5));
    assert_eq!(
        trades(floor.add(order(4, Buy, 101, 1))),
        [(2, 101, 1)],
        "it shows less, and is behind"
    );
}

#[test]
fn an_iceberg_of_too_many_slices_is_refused() {
    let mut floor = Floor::new();
    let lots = 10 * matcher::MAX_SLICES;
    assert_eq!(
        reason(floor.add_with(order(1, Sell, 101, lots + 1), showing(10))),
        Reason::InvalidDisplay
    );
    assert_eq!(
        reason(floor.add_with(order(1, Sell, 101, lots), showing(10))),
        Reason::None
    );
}

#[test]
fn a_primary_peg_follows_its_own_side_up_to_its_limit_and_loses_its_place() {
    let mut floor = Floor::new();
    floor.add(order(1, Buy, 100, 5));
    let limited = NewOrder {
        price: Price(102),
        ..peg(OrderType::PegPrimary, 2, Buy, 7)
    };
    floor.add_with(limited, offset(-1));
    assert_eq!(floor.order(2), Some((99, 7, 7)));
    let reports = floor.add(order(3, Buy, 102, 5));
    assert!(matches!(reports[2..], [Report::Withdrawn { .. }, Report::Rested(rested)] if rested.price.0 == 101));
    floor.add(order(4, Buy, 105, 5));
    assert_eq!(floor.order(2), Some((102, 7, 7)), "its limit");
    assert_eq!(
        trades(floor.add(order(5, Sell, 102, 11)))[1..],
        [(3, 102, 5), (2, 102, 1)],
        "behind order 3"
    );
}

#[test]
fn pegged_orders_do_not_follow_each_other() {
    let mut floor = Floor::new();
    floor.add(order(1, Buy, 100, 5));
    floor.add_with(peg(OrderType::PegPrimary, 2, Buy, 5), offset(1));
    floor.add_with(peg(OrderType::PegPrimary, 3, Buy, 5), offset(1));
    assert_eq!((floor.order(2), floor.order(3)), (Some((101, 5, 5)), Some((101, 5, 5))));
}

#[test]
fn a_peg_without_a_price_to_follow_waits_outside_of_the_book() {
    let mut floor = Floor::new();
    let reports = floor.add(peg(OrderType::PegMid, 1, Buy, 5));
    assert!(matches!(reports[1], Report::Held { .. }));
    floor.add(order(2, Buy, 100, 1));
    assert_eq!(floor.best(Buy), Some((100, 1)));
    floor.add(order(3, Sell, 104, 1));
    assert_eq!(floor.best(Buy), Some((102, 5)));
    floor.cancel(3);
    assert_eq!(floor.best(Buy), Some((100, 1)));
}

#[test]
fn pegs_to_the_middle_meet_there_and_round_away_from_each_other() {
    let mut floor = Floor::new();
    floor.add(order(1, Buy, 100, 1));
    floor.add(order(2, Sell, 103, 1));
    floor.add(peg(OrderType::PegMid, 3, Buy, 5));
    floor.add(peg(OrderType::PegMid, 4, Sell, 5));
    assert_eq!((floor.best(Buy), floor.best(Sell)), (Some((101, 5)), Some((102, 5))));
    // Now the middle is a price.
    let reports = floor.add(order(5, Buy, 101, 1));
    assert_eq!(trades(reports), [(4, 102, 5)], "the first to follow comes to the other");
}

#[test]
fn a_peg_outside_of_the_allowed_prices_waits() {
    let mut floor = Floor::new();
    let rules = PegRules {
        tick: Price(5),
        lowest: Price(5),
        highest: Price(1_000),
    };
    floor.matcher.set_peg_rules(BOOK, rules);
    floor.add(order(1, Buy, 14, 1));
    floor.add_with(peg(OrderType::PegPrimary, 2, Buy, 5), offset(-5));
    assert_eq!(floor.order(2), Some((5, 5, 5)), "9, rounded down to a tick");
    floor.cancel(1);
    floor.add(order(3, Buy, 7, 1));
    assert_eq!(floor.best(Buy), Some((7, 1)));
}

#[test]
fn a_post_only_order_that_would_trade_is_refused() {
    let mut floor = Floor::new();
    floor.add(order(1, Sell, 101, 5));
    assert_eq!(
        reason(floor.add_with(order(2, Buy, 101, 5), POST_ONLY)),
        Reason::PostOnly
    );
    assert_eq!(reason(floor.add_with(order(2, Buy, 100, 5), POST_ONLY)), Reason::None);
    assert_eq!(reason(floor.replace(2, 101, 5, POST_ONLY)), Reason::PostOnly);
    assert_eq!(
        floor.order(2),
        Some((100, 5, 5)),
        "a replace that fails changes nothing"
    );
}

#[test]
fn a_post_only_peg_that_would_trade_waits_until_it_would_not() {
    let mut floor = Floor::new();
    floor.add(order(1, Buy, 100, 5));
    let terms = OrderTerms {
        post_only: true,
        ..offset(1)
    };
    floor.add_with(peg(OrderType::PegPrimary, 2, Buy, 5), terms);
    assert_eq!(floor.order(2), Some((101, 5, 5)));
    floor.add(order(3, Sell, 102, 1));
    floor.add(order(4, Buy, 101, 1));
    assert_eq!(floor.best(Buy), Some((101, 1)), "at 102 it would trade");
    floor.cancel(3);
    assert_eq!(floor.best(Buy), Some((102, 5)));
}

#[test]
fn fill_or_kill_fills_completely_or_trades_nothing() {
    let kill = |id, quantity| good_for(TimeInForce::FillOrKill, order(id, Buy, 102, quantity));
    let mut floor = Floor::new();
    floor.add_with(order(1, Sell, 101, 20), showing(5));
    floor.add(order(2, Sell, 102, 5));
    floor.add(order(3, Sell, 103, 5));
    let reports = floor.add(kill(4, 26));
    assert_eq!((trades(reports), reason(reports)), (vec![], Reason::Unfilled));
    let reports = floor.add(kill(5, 25));
    assert_eq!(
        (trades(reports).len(), reason(reports)),
        (5, Reason::None),
        "hidden lots count"
    );
}

#[test]
fn a_minimum_is_traded_at_once_or_nothing_is() {
    let mut floor = Floor::new();
    floor.add(order(1, Sell, 101, 5));
    let reports = floor.add_with(order(2, Buy, 101, 10), at_least(6));
    assert_eq!((trades(reports), reason(reports)), (vec![], Reason::Unfilled));
    let reports = floor.add_with(order(3, Buy, 101, 10), at_least(5));
    assert_eq!((trades(reports), reason(reports)), (vec![(1, 101, 5)], Reason::None));
    assert_eq!(floor.order(3), Some((101, 5, 5)), "what is left rests");
}

#[test]
fn orders_expire_when_their_time_has_come_in_the_order_of_their_times() {
    let mut floor = Floor::new();
    let until = |time| OrderTerms {
        expires: Timestamp(time),
        ..OrderTerms::NONE
    };
    for (id, time) in [(1, 30), (2, 10), (3, 20)] {
        floor.add_with(good_for(TimeInForce::GoodTillDate, order(id, Buy, 100, 5)), until(time));
    }
    floor.replace(3, 100, 5, until(40));
    assert_eq!(floor.matcher.next_expiry(), Some(Timestamp(10)));
    let mut expired = Vec::new();
    while floor.matcher.expire(Timestamp(30), &mut |report| expired.push(report)) {}
    let ids: Vec<_> = expired
        .iter()
        .map(|report| match report {
            Report::Canceled { id, reason, .. } => (id.0, *reason),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [(2, Reason::Expired), (1, Reason::Expired)]);
    assert_eq!(floor.matcher.next_expiry(), Some(Timestamp(40)));
}

#[test]
fn cancel_oldest_takes_the_resting_order_away_and_goes_on() {
    let mut floor = Floor::with(SelfMatch::CancelOldest);
    floor.add_with(owned(7, order(1, Sell, 101, 20)), showing(5));
    floor.add(owned(8, order(2, Sell, 101, 5)));
    let reports = floor.add(owned(7, order(3, Buy, 101, 8)));
    assert!(matches!(
        reports[1],
        Report::Canceled {
            id: OrderId(1),
            quantity: Quantity(20),
            reason: Reason::SelfMatch,
            ..
        }
    ));
    assert_eq!(trades(reports), [(2, 101, 5)]);
    assert_eq!(floor.best(Buy), Some((101, 3)));
}

#[test]
fn cancel_both_ends_both() {
    let mut floor = Floor::with(SelfMatch::CancelBoth);
    floor.add(owned(7, order(1, Sell, 101, 5)));
    floor.add(owned(7, order(2, Sell, 102, 5)));
    let reports = floor.add(owned(7, order(3, Buy, 102, 8)));
    assert_eq!(trades(reports), []);
    assert_eq!((floor.order(1), floor.order(3)), (None, None));
    assert!(floor.order(2).is_some(), "it was not reached");
}

#[test]
fn decrement_takes_from_both_what_they_would_have_traded() {
    let mut floor = Floor::with(SelfMatch::Decrement);
    floor.add(owned(7, order(1, Sell, 101, 5)));
    let reports = floor.add(owned(7, order(2, Buy, 101, 8)));
    assert_eq!(trades(reports), []);
    assert_eq!((floor.order(1), floor.order(2)), (None, Some((101, 3, 3))));
    floor.add(owned(7, order(3, Sell, 101, 2)));
    assert_eq!((floor.order(2), floor.order(3)), (Some((101, 1, 1)), None));
}

#[test]
fn what_own_orders_keep_from_trading_does_not_count_for_fill_or_kill() {
    let kill = good_for(TimeInForce::FillOrKill, owned(7, order(3, Buy, 101, 6)));
    for (self_match, fills) in [
        (SelfMatch::Allow, true),
        (SelfMatch::CancelNewest, false),
        (SelfMatch::CancelOldest, true),
        (SelfMatch::Decrement, false),
    ] {
        let mut floor = Floor::with(self_match);
        floor.add(owned(8, order(1, Sell, 101, 3)));
        floor.add(owned(7, order(2, Sell, 101, 5)));
        floor.add(owned(8, order(4, Sell, 101, 3)));
        assert_eq!(!trades(floor.add(kill)).is_empty(), fills, "{self_match:?}");
    }
}

#[test]
fn orders_gather_in_a_call_and_trade_at_one_price() {
    let mut floor = Floor::new();
    floor.event(|matcher, mut sink| matcher.call_auction(BOOK, Auction::Opening, &mut sink));
    floor.add(order(1, Buy, 103, 10));
    floor.add(order(2, Buy, 102, 10));
    floor.add(order(3, Sell, 100, 8));
    floor.add(order(4, Sell, 102, 7));
    let market = NewOrder {
        price: Price::NULL,
        ..of_type(OrderType::Market, order(5, Sell, 0, 2))
    };
    floor.add(market);
    assert_eq!(
        floor.matcher.indicative(BOOK, Price::NULL),
        Some((Price(102), Quantity(17)))
    );
    let reports = floor.event(|matcher, mut sink| matcher.uncross(BOOK, Price::NULL, &mut sink));
    let fills: Vec<_> = reports
        .iter()
        .filter_map(|report| match report {
            Report::AuctionFill(fill) => Some((fill.id.0, fill.price.0, fill.quantity.0)),
            _ => None,
        })
        .collect();
    assert_eq!(
        fills,
        [(1, 102, 10), (2, 102, 7), (5, 102, 2), (3, 102, 8), (4, 102, 7)]
    );
    assert_eq!((floor.best(Buy), floor.best(Sell)), (Some((102, 3)), None));
    assert_eq!(
        trades(floor.add(order(6, Sell, 102, 1))),
        [(2, 102, 1)],
        "trading goes on"
    );
}

#[test]
fn of_prices_with_equal_volume_the_least_is_left_over_then_the_nearest_to_the_reference() {
    let price = |orders: &[(Side, i64, u64)], reference| {
        let mut floor = Floor::new();
        floor.event(|matcher, mut sink| matcher.call_auction(BOOK, Auction::Closing, &mut sink));
        for (id, &(side, price, quantity)) in (1..).zip(orders) {
            floor.add(order(id, side, price, quantity));
        }
        floor
            .matcher
            .indicative(BOOK, Price(reference))
            .map(|(price, _)| price.0)
    };
    // At 100 five are left on the buying side, at 104 none.
    assert_eq!(price(&[(Buy, 104, 5), (Buy, 100, 5), (Sell, 100, 5)], 100), Some(104));
    // Anything from 100 to 104 leaves nothing.
    assert_eq!(price(&[(Buy, 104, 5), (Sell, 100, 5)], 101), Some(101));
    assert_eq!(price(&[(Buy, 104, 5), (Sell, 100, 5)], 90), Some(100));
    assert_eq!(price(&[(Buy, 104, 5), (Sell, 100, 5)], 120), Some(104));
    assert_eq!(price(&[(Buy, 99, 5), (Sell, 100, 5)], 100), None, "nothing crosses");
}

#[test]
fn an_order_at_the_close_waits_for_it_and_does_not_stay_after_it() {
    let mut floor = Floor::new();
    floor.add(good_for(TimeInForce::AtTheClose, order(1, Buy, 101, 10)));
    assert_eq!(
        reason(floor.add(good_for(TimeInForce::ImmediateOrCancel, order(2, Sell, 90, 1)))),
        Reason::Unfilled
    );
    floor.event(|matcher, mut sink| matcher.call_auction(BOOK, Auction::Opening, &mut sink));
    assert_eq!(floor.best(Buy), None, "it is not its auction");
    floor.event(|matcher, mut sink| matcher.uncross(BOOK, Price::NULL, &mut sink));
    floor.event(|matcher, mut sink| matcher.call_auction(BOOK, Auction::Closing, &mut sink));
    floor.add(order(3, Sell, 101, 4));
    let reports = floor.event(|matcher, mut sink| matcher.uncross(BOOK, Price::NULL, &mut sink));
    assert_eq!(reason(reports), Reason::Unfilled);
    assert_eq!(floor.matcher.order_count(), 0);
}

#[test]
fn what_cannot_wait_is_cancelled_in_a_call_and_stops_follow_the_auction() {
    let mut floor = Floor::new();
    floor.add_with(stop(1, Buy, 1), stop_at(100));
    floor.event(|matcher, mut sink| matcher.call_auction(BOOK, Auction::Opening, &mut sink));
    floor.add(order(2, Sell, 100, 5));
    let ioc = good_for(TimeInForce::ImmediateOrCancel, order(3, Buy, 100, 5));
    assert_eq!(reason(floor.add(ioc)), Reason::Unfilled);
    floor.add(order(4, Buy, 100, 4));
    let reports = floor.event(|matcher, mut sink| matcher.uncross(BOOK, Price::NULL, &mut sink));
    assert_eq!((triggered(reports), trades(reports)), (vec![1], vec![(2, 100, 1)]));
}

#[test]
fn terms_that_do_not_go_together_are_refused() {
    let pegged = peg(OrderType::PegPrimary, 1, Buy, 5);
    let limit = order(1, Buy, 100, 5);
    let ioc = good_for(TimeInForce::ImmediateOrCancel, limit);
    for (order, terms, expected) in [
        (limit, stop_at(90), Reason::InvalidStopPrice),
        (stop(1, Buy, 5), OrderTerms::NONE, Reason::InvalidStopPrice),
        (limit, offset(1), Reason::InvalidPegOffset),
        (
            good_for(TimeInForce::ImmediateOrCancel, pegged),
            OrderTerms::NONE,
            Reason::UnsupportedOrder,
        ),
        (
            good_for(TimeInForce::FillOrKill, stop(1, Buy, 5)),
            stop_at(90),
            Reason::UnsupportedOrder,
        ),
        (ioc, showing(1), Reason::InvalidDisplay),
        (limit, at_least(6), Reason::InvalidMinQuantity),
        (pegged, at_least(1), Reason::InvalidMinQuantity),
        (
            good_for(TimeInForce::GoodTillDate, limit),
            OrderTerms::NONE,
            Reason::InvalidExpiry,
        ),
        (ioc, POST_ONLY, Reason::UnsupportedOrder),
    ] {
        let mut floor = Floor::new();
        assert_eq!(reason(floor.add_with(order, terms)), expected, "{order:?} {terms:?}");
        assert_eq!(floor.reports.len(), 1);
    }
}

#[test]
fn without_room_for_terms_an_order_with_terms_is_refused_and_a_plain_one_is_not() {
    let capacity = Capacity {
        books: 1,
        orders: 8,
        levels: 8,
        special: 1,
    };
    let mut floor = Floor {
        matcher: Matcher::new(capacity, SelfMatch::Allow),
        reports: Vec::new(),
    };
    floor.add_with(stop(1, Buy, 5), stop_at(103));
    assert_eq!(reason(floor.add_with(stop(2, Buy, 5), stop_at(103))), Reason::BookFull);
    assert_eq!(reason(floor.add(order(3, Buy, 100, 5))), Reason::None);
    assert_eq!(reason(floor.replace(3, 100, 5, showing(1))), Reason::BookFull);
    assert_eq!(floor.order(3), Some((100, 5, 5)));
}
