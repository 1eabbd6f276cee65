//! What stops, pegs and orders that outlive the day mean for exposure, the own-order screen and the venue.

use crate::fixture::*;
use orders::{Anomaly, Limit, LimitScope, LimitValue, OrderStatus, Orders, Reference};
use types::{
    ClientOrderId, Duration, ExecType, MassStatusRequest, NewOrder, Notional, OrderId, OrderStatusRequest, OrderTerms,
    OrderType, Price, Quantity, Reason, ReplaceOrder, Side, TimeInForce, Timestamp, TradingDay, VenueId,
};

fn ticks(count: i64) -> Price {
    Price(count * TICK)
}

fn stop(id: u64, stop_ticks: i64, limit_ticks: Option<i64>) -> NewOrder {
    NewOrder {
        order_type: if limit_ticks.is_some() {
            OrderType::StopLimit
        } else {
            OrderType::Stop
        },
        price: limit_ticks.map_or(Price::NULL, ticks),
        terms: OrderTerms {
            stop_price: ticks(stop_ticks),
            ..OrderTerms::NONE
        },
        ..new_order(id)
    }
}

fn sell(id: u64, ticks_of_limit: i64) -> NewOrder {
    NewOrder {
        side: Side::Sell,
        price: ticks(ticks_of_limit),
        ..new_order(id)
    }
}

/// What an open buy of 10 lots of 100 counts for, in ticks a unit.
fn weight(order: &NewOrder) -> Notional {
    let mut orders = orders();
    accepted(&mut orders, order);
    let exposure = orders.exposure(PLAIN, ALPHA).unwrap();
    Notional(exposure.open_buy_notional.0 / (10 * 100 * i128::from(TICK)))
}

#[test]
fn an_order_counts_at_the_worst_price_it_may_trade_at() {
    let market = NewOrder {
        order_type: OrderType::Market,
        price: Price::NULL,
        ..new_order(1)
    };
    let peg = NewOrder {
        order_type: OrderType::PegPrimary,
        ..new_order(1)
    };
    let free_peg = NewOrder {
        price: Price::NULL,
        ..peg
    };
    for (order, at) in [
        (new_order(1), 100),
        // The collar is 20 %.
        (market, 120),
        (stop(1, 105, None), 126),
        // Met already: it trades where the market is.
        (stop(1, 90, None), 120),
        (stop(1, 105, Some(106)), 106),
        (peg, 100),
        (free_peg, 120),
    ] {
        assert_eq!(weight(&order), Notional(at), "{order:?}");
    }
}

#[test]
fn a_stop_limit_is_collared_around_its_stop_price() {
    let mut orders = orders();
    for (order, verdict) in [
        (stop(1, 200, Some(230)), None),
        (stop(2, 200, Some(231)), Some(Reason::PriceCollar)),
        (stop(3, 90, Some(100)), None),
        (stop(4, 70, Some(100)), Some(Reason::PriceCollar)),
    ] {
        assert_eq!(enter(&mut orders, &order, &Reference::NONE).err(), verdict, "{order:?}");
    }
    let market = enter(&mut orders, &stop(5, 100, None), &Reference::NONE);
    assert_eq!(market.err(), Some(Reason::NoReferencePrice));
    let beta = NewOrder {
        instrument: BETA,
        ..stop(6, 100, None)
    };
    let refused = enter(&mut orders, &beta, &REFERENCE).err();
    assert_eq!(refused, Some(Reason::MarketOrder), "it would be a market order");
}

#[test]
fn a_stop_rests_once_it_is_triggered_and_not_before() {
    let mut orders = orders();
    let sent = accepted(&mut orders, &stop(1, 105, Some(106)));
    let number = sent.request.client_order_id;
    on_report(&mut orders, &venue_report(&sent, ExecType::New, number)).unwrap();
    accepted(&mut orders, &sell(2, 106));
    let triggered = venue_report(&sent, ExecType::Triggered, number);
    let told = on_report(&mut orders, &triggered).unwrap();
    assert_eq!((told.len(), told[0].exec_type), (1, ExecType::Triggered));
    assert_eq!(on_report(&mut orders, &triggered), Err(Anomaly::Unexpected), "once");
    assert_eq!(
        enter(&mut orders, &sell(3, 106), &REFERENCE).err(),
        Some(Reason::SelfMatch)
    );
    accepted(&mut orders, &sell(4, 107));
    assert!(orders.order(sent.order_id).unwrap().is_triggered);
}

#[test]
fn an_order_that_waits_for_its_stop_price_trades_with_nobody() {
    let mut orders = orders();
    accepted(&mut orders, &sell(1, 100));
    accepted(&mut orders, &stop(2, 105, None));
    accepted(&mut orders, &stop(3, 105, Some(106)));
    assert_eq!(
        enter(&mut orders, &new_order(4), &REFERENCE).err(),
        Some(Reason::SelfMatch)
    );
}

#[test]
fn a_pegged_order_is_screened_at_its_limit_and_without_one_at_any_price() {
    for (limit, sells) in [
        (ticks(100), [(100, false), (101, true)]),
        (Price::NULL, [(100, false), (110, false)]),
    ] {
        let mut orders = orders();
        let peg = NewOrder {
            order_type: OrderType::PegMid,
            price: limit,
            ..new_order(1)
        };
        accepted(&mut orders, &peg);
        for (id, (at, passes)) in (2..).zip(sells) {
            assert_eq!(
                enter(&mut orders, &sell(id, at), &REFERENCE).is_ok(),
                passes,
                "{limit} {at}"
            );
        }
    }
}

#[test]
fn a_triggered_stop_limit_is_replaced_as_the_limit_order_that_it_is() {
    let mut orders = orders();
    let order = stop(1, 105, Some(106));
    let sent = accepted(&mut orders, &order);
    let number = sent.request.client_order_id;
    let request = |id, limit, stop_price| ReplaceOrder {
        terms: OrderTerms {
            stop_price,
            ..OrderTerms::NONE
        },
        ..replace_of(&order, id, limit, 10)
    };
    let missing = replace(&mut orders, &request(2, 106, Price::NULL)).err();
    assert_eq!(missing, Some(Reason::InvalidStopPrice));
    on_report(&mut orders, &venue_report(&sent, ExecType::Triggered, number)).unwrap();
    // The collar is around the market now, whatever the request says of a stop price.
    assert_eq!(
        replace(&mut orders, &request(3, 140, ticks(140))).err(),
        Some(Reason::PriceCollar)
    );
    for stop_price in [Price::NULL, ticks(105), ticks(90)] {
        let less = ReplaceOrder {
            quantity: Quantity(9),
            ..request(4, 106, stop_price)
        };
        let checked = orders.check_replace(NOW, &less, &Reference::NONE);
        assert!(checked.is_ok(), "what only takes lots off passes every limit");
    }
    let replaced = replace(&mut orders, &request(4, 110, ticks(105))).unwrap();
    assert_eq!(replaced.request.terms.stop_price, Price::NULL);
    orders.audit().unwrap();
}

#[test]
fn a_replace_that_changes_other_terms_passes_every_check() {
    let terms = |display, expires, post_only| OrderTerms {
        display: Quantity(display),
        expires: NOW + Duration::from_secs(expires),
        post_only,
        ..OrderTerms::NONE
    };
    let order = NewOrder {
        time_in_force: TimeInForce::GoodTillDate,
        terms: terms(5, 10, false),
        ..new_order(1)
    };
    let mut orders = orders();
    accepted(&mut orders, &order);
    let alpha = LimitScope::Instrument(ALPHA);
    set_limit(&mut orders, alpha, Limit::Restricted, LimitValue::Switch(true)).unwrap();
    for (lots, terms, reason) in [
        (10, terms(4, 10, false), Some(Reason::Restricted)),
        (9, terms(6, 10, false), Some(Reason::Restricted)),
        (9, terms(0, 10, false), Some(Reason::Restricted)),
        (9, terms(5, 11, false), Some(Reason::Restricted)),
        (9, terms(5, 10, true), Some(Reason::Restricted)),
        (9, terms(5, 10, false), None),
        // No more can be shown than there is.
        (3, terms(3, 10, false), None),
        (3, terms(2, 10, false), Some(Reason::Restricted)),
    ] {
        let request = ReplaceOrder {
            terms,
            ..replace_of(&order, 2, 100, lots)
        };
        let checked = orders.check_replace(NOW, &request, &REFERENCE);
        assert_eq!(checked.err(), reason, "{lots} {terms:?}");
    }
}

#[test]
fn a_pegged_order_comes_no_nearer_to_the_market_in_what_is_restricted() {
    let peg = |offset: i64| OrderTerms {
        peg_offset: Price(-offset * TICK),
        ..OrderTerms::NONE
    };
    let order = NewOrder {
        order_type: OrderType::PegPrimary,
        terms: peg(5),
        ..new_order(1)
    };
    let mut orders = orders();
    accepted(&mut orders, &order);
    let alpha = LimitScope::Instrument(ALPHA);
    set_limit(&mut orders, alpha, Limit::Restricted, LimitValue::Switch(true)).unwrap();
    for (lots, offset, reason) in [
        (10, 1, Some(Reason::Restricted)),
        (9, 1, Some(Reason::Restricted)),
        (9, 5, None),
    ] {
        let request = ReplaceOrder {
            terms: peg(offset),
            ..replace_of(&order, 2, 100, lots)
        };
        let checked = orders.check_replace(NOW, &request, &REFERENCE);
        assert_eq!(checked.err(), reason, "{lots} {offset}");
    }
}

#[test]
fn a_market_order_that_was_a_stop_is_not_replaced() {
    let mut orders = orders();
    let order = stop(1, 105, None);
    let sent = accepted(&mut orders, &order);
    let changed = ReplaceOrder {
        price: Price::NULL,
        terms: OrderTerms {
            stop_price: ticks(110),
            ..OrderTerms::NONE
        },
        ..replace_of(&order, 2, 0, 10)
    };
    let checked = orders.check_replace(NOW, &changed, &REFERENCE);
    assert!(checked.is_ok(), "as long as it waits");
    on_report(
        &mut orders,
        &venue_report(&sent, ExecType::Triggered, sent.request.client_order_id),
    )
    .unwrap();
    let checked = orders.check_replace(NOW, &changed, &REFERENCE);
    assert_eq!(checked.err(), Some(Reason::UnsupportedOrder));
}

fn roll(orders: &mut Orders, now: Timestamp) -> Outputs {
    let mut outputs = Outputs::default();
    orders.on_day_roll(now, TradingDay(20_260_105), &mut outputs);
    orders.audit().unwrap();
    outputs
}

fn good_for_longer(id: u64, expires: Option<u64>) -> NewOrder {
    NewOrder {
        time_in_force: if expires.is_some() {
            TimeInForce::GoodTillDate
        } else {
            TimeInForce::GoodTillCancel
        },
        terms: OrderTerms {
            expires: Timestamp(expires.map_or(0, |seconds| NOW.0 + seconds)),
            ..OrderTerms::NONE
        },
        ..new_order(id)
    }
}

#[test]
fn what_is_good_for_longer_outlives_the_day_with_all_that_hangs_on_it() {
    let mut orders = orders();
    let shared = NewOrder {
        account: SHARED,
        ..good_for_longer(1, None)
    };
    let sent = accepted(&mut orders, &shared);
    on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 4)).unwrap();
    accepted(&mut orders, &good_for_longer(2, Some(5)));
    accepted(&mut orders, &good_for_longer(3, Some(50)));
    accepted(&mut orders, &new_order(4));
    let mut outputs = roll(&mut orders, Timestamp(NOW.0 + 5));
    let ended = outputs
        .reports
        .iter()
        .map(|report| (report.exec.client_order_id.0, report.exec.reason));
    assert_eq!(ended.collect::<Vec<_>>(), [(2, Reason::Expired), (4, Reason::DayEnded)]);
    assert_eq!(orders.open_orders(), 2);
    // What was traded yesterday counts no more; what is open still does: 6 lots of 100 at 1.00.
    outputs.released.retain(|&(account, _)| account == SHARED);
    assert_eq!(outputs.released, [(SHARED, 4_000_000)]);
    let exposure = orders.exposure(SHARED, ALPHA).unwrap();
    assert_eq!((exposure.open_buy, exposure.bought), (Quantity(6), Quantity::ZERO));
    assert_eq!(orders.account_exposure(SHARED).unwrap().held, 6_000_000);
    // It still rests, and numbers go on behind those that live.
    assert_eq!(
        enter(&mut orders, &sell(9, 100), &REFERENCE).err(),
        Some(Reason::SelfMatch)
    );
    let used = enter(&mut orders, &new_order(3), &REFERENCE).err();
    assert_eq!(used, Some(Reason::DuplicateClientOrderId));
    accepted(&mut orders, &new_order(4));
    let end = fill(&sent, sent.request.client_order_id, 100, 6);
    assert_eq!(on_report(&mut orders, &end).unwrap()[0].cumulative, Quantity(10));
}

#[test]
fn a_pending_request_outlives_the_day_with_its_order() {
    let mut orders = orders();
    let order = good_for_longer(1, None);
    let sent = accepted(&mut orders, &order);
    let canceled = cancel(&mut orders, &cancel_of(&order, 7)).unwrap();
    roll(&mut orders, NOW);
    let reused = enter(&mut orders, &new_order(7), &REFERENCE).err();
    assert_eq!(reused, Some(Reason::DuplicateClientOrderId));
    let report = venue_report(&sent, ExecType::Canceled, canceled.request.client_order_id);
    let told = on_report(&mut orders, &report).unwrap();
    assert_eq!((told[0].client_order_id.0, told[0].orig_client_order_id.0), (7, 1));
}

fn status(orders: &mut Orders, id: u64) -> (ExecType, OrderStatus, Reason) {
    let report = orders.status(&OrderStatusRequest {
        client_order_id: ClientOrderId(id),
        order_id: OrderId(0),
        instrument: ALPHA,
        session: SESSIONS[0],
        side: Side::Buy,
        request: 5,
    });
    (report.exec.exec_type, report.status, report.exec.reason)
}

#[test]
fn orders_that_are_done_are_known_until_later_ones_take_their_place() {
    let mut orders = orders();
    let capacity = u64::from(config().capacity.open_orders);
    for id in 1..=capacity + 1 {
        let sent = accepted(&mut orders, &new_order(id));
        on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 10)).unwrap();
    }
    assert_eq!(
        status(&mut orders, 1),
        (ExecType::Status, OrderStatus::Rejected, Reason::UnknownOrder)
    );
    for id in 2..=capacity + 1 {
        assert_eq!(
            status(&mut orders, id),
            (ExecType::Status, OrderStatus::Filled, Reason::None)
        );
    }
    roll(&mut orders, NOW);
    assert_eq!(status(&mut orders, capacity).2, Reason::UnknownOrder, "a new day");
}

#[test]
fn a_mass_status_tells_the_orders_of_the_session_and_instrument() {
    let mut orders = orders();
    accepted(&mut orders, &new_order(1));
    let beta = NewOrder {
        instrument: BETA,
        quantity: Quantity(1),
        ..new_order(2)
    };
    accepted(&mut orders, &beta);
    let other = NewOrder {
        session: SESSIONS[1],
        ..new_order(1)
    };
    accepted(&mut orders, &other);
    for (instrument, ids) in [(None, &[1, 2][..]), (Some(BETA), &[2])] {
        let mass = MassStatusRequest {
            session: SESSIONS[0],
            instrument,
            request: 9,
        };
        let mut outputs = Outputs::default();
        orders.mass_status(&mass, &mut outputs);
        let told = outputs.reports.iter().map(|report| report.exec.client_order_id.0);
        assert_eq!(told.collect::<Vec<_>>(), ids);
        assert_eq!(orders.count_open(&mass) as usize, ids.len());
    }
    orders.on_venue_down(VenueId(0));
    assert_eq!(status(&mut orders, 1).1, OrderStatus::PendingNew);
}
