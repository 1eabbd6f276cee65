//! Limits of size, price, rate and position at their edges: equal passes, one more is refused.

use crate::fixture::*;
use orders::{
    AuctionLimits, Collar, ConfigError, Limit, LimitScope, LimitValue, MissingReference, Orders, OrdersConfig,
    RateAction, RateLimit, Reference, ReferenceChoice, RepeatLimit, ShortSales,
};
use types::{
    ClientOrderId, Duration, ExecType, LimitClass, NewOrder, Notional, OrderTerms, OrderType, Price, Quantity, Reason,
    ReplaceOrder, ShortSale, Side, TimeInForce, Timestamp, TradingDay,
};

/// What the firm says to an order when its config was changed.
fn verdict(change: impl Fn(&mut OrdersConfig), order: &NewOrder) -> Option<Reason> {
    let mut config = config();
    change(&mut config);
    enter(&mut up(Orders::new(&config).unwrap()), order, &REFERENCE).err()
}

fn lots(order: NewOrder, lots: u64) -> NewOrder {
    NewOrder {
        quantity: Quantity(lots),
        ..order
    }
}

fn at(order: NewOrder, ticks: i64) -> NewOrder {
    NewOrder {
        price: Price(ticks * TICK),
        ..order
    }
}

#[test]
fn a_session_may_have_limits_of_its_own_for_one_order() {
    let order = new_order(1);
    let quantity = |config: &mut OrdersConfig| config.sessions[0].limits.max_quantity = Some(Quantity(12));
    assert_eq!(verdict(quantity, &lots(order, 12)), None);
    assert_eq!(verdict(quantity, &lots(order, 13)), Some(Reason::MaxQuantity));
    // 12 lots of 100 units at 1.00.
    let notional = |config: &mut OrdersConfig| {
        config.sessions[0].limits.max_notional = Some(Notional(1_200 * i128::from(Price::UNIT)))
    };
    assert_eq!(verdict(notional, &lots(order, 12)), None);
    assert_eq!(verdict(notional, &at(lots(order, 12), 101)), Some(Reason::MaxNotional));
    let other = NewOrder {
        session: SESSIONS[1],
        ..lots(order, 13)
    };
    assert_eq!(verdict(quantity, &other), None, "the limit is session 1's");
}

#[test]
fn the_collar_measures_from_the_price_of_choice() {
    let collar = |config: &mut OrdersConfig, reference| {
        config.classes[0].collar = Some(Collar {
            basis_points: None,
            ticks: Some(5),
        });
        config.classes[0].reference = reference;
        config.instruments[0].reference_price = Price(90 * TICK);
    };
    for (reference, middle) in [
        (ReferenceChoice::Mid, 100),
        (ReferenceChoice::Last, 110),
        (ReferenceChoice::Master, 90),
    ] {
        for (ticks, passes) in [
            (middle - 6, false),
            (middle - 5, true),
            (middle + 5, true),
            (middle + 6, false),
        ] {
            let reason = verdict(|config| collar(config, reference), &at(new_order(1), ticks));
            assert_eq!(
                reason,
                (!passes).then_some(Reason::PriceCollar),
                "{reference:?} {ticks}"
            );
        }
    }
}

#[test]
fn a_choice_that_the_feed_does_not_give_is_a_missing_reference() {
    let no_trade = Reference {
        last: Price::NULL,
        ..REFERENCE
    };
    let mut of_last = config();
    of_last.classes[0].reference = ReferenceChoice::Last;
    let mut orders = up(Orders::new(&of_last).unwrap());
    let reason = enter(&mut orders, &new_order(1), &no_trade).err();
    assert_eq!(reason, Some(Reason::NoReferencePrice));
    // The master's price needs no feed and is never stale, but it must be there.
    let mut of_master = config();
    of_master.classes[0].reference = ReferenceChoice::Master;
    let mut orders = up(Orders::new(&of_master).unwrap());
    assert!(enter(&mut orders, &new_order(1), &Reference::NONE).is_ok());
    of_master.instruments[0].reference_price = Price(0);
    let mut orders = up(Orders::new(&of_master).unwrap());
    let reason = enter(&mut orders, &new_order(1), &REFERENCE).err();
    assert_eq!(reason, Some(Reason::NoReferencePrice));
}

#[test]
fn orders_for_an_auction_have_the_limits_of_auctions() {
    let auction = |config: &mut OrdersConfig| {
        config.classes[0].auction = AuctionLimits {
            max_quantity: Some(Quantity(5)),
            max_notional: Some(Notional(1_000 * i128::from(Price::UNIT))),
            collar: Some(Some(Collar {
                basis_points: None,
                ticks: Some(150),
            })),
        };
    };
    for time_in_force in [TimeInForce::AtTheOpening, TimeInForce::AtTheClose] {
        let order = |count, ticks| NewOrder {
            time_in_force,
            ..at(lots(new_order(1), count), ticks)
        };
        for (order, reason) in [
            (order(5, 200), None),
            (order(6, 100), Some(Reason::MaxQuantity)),
            (order(5, 201), Some(Reason::MaxNotional)),
            (order(1, 250), None),
            (order(1, 251), Some(Reason::PriceCollar)),
        ] {
            assert_eq!(verdict(auction, &order), reason, "{order:?}");
        }
        assert_eq!(verdict(|_| (), &order(6, 100)), None, "without them the class's hold");
    }
    assert_eq!(verdict(auction, &new_order(1)), None, "they are not for other orders");
}

#[test]
fn market_orders_are_refused_where_they_are_not_allowed() {
    let market = NewOrder {
        order_type: OrderType::Market,
        price: Price::NULL,
        ..new_order(1)
    };
    assert_eq!(verdict(|_| (), &market), None);
    assert_eq!(
        verdict(|config| config.classes[0].market_orders = false, &market),
        Some(Reason::MarketOrder)
    );
}

#[test]
fn instruments_are_closed_to_everybody_to_accounts_and_to_sessions_by_class_or_one_by_one() {
    type Change = fn(&mut OrdersConfig);
    let closings: [(Change, [bool; 4]); 5] = [
        (|config| config.classes[0].restricted = true, [true, false, true, true]),
        (
            |config| config.accounts[1].restrictions.classes = vec![LimitClass(0)],
            [true, false, false, true],
        ),
        (
            |config| config.accounts[1].restrictions.instruments = vec![ALPHA, ALPHA],
            [true, false, false, true],
        ),
        (
            |config| config.sessions[0].restrictions.classes = vec![LimitClass(0)],
            [true, false, true, false],
        ),
        (
            |config| config.sessions[0].restrictions.instruments = vec![ALPHA],
            [true, false, true, false],
        ),
    ];
    let alpha = new_order(1);
    let others = [
        alpha,
        NewOrder {
            instrument: BETA,
            ..alpha
        },
        NewOrder {
            account: SHARED,
            ..alpha
        },
        NewOrder {
            session: SESSIONS[1],
            ..alpha
        },
    ];
    for (place, (change, closed)) in closings.into_iter().enumerate() {
        for (order, closed) in others.iter().zip(closed) {
            let reason = closed.then_some(Reason::Restricted);
            assert_eq!(verdict(change, order), reason, "closing {place}: {order:?}");
        }
    }
    let mut config = config();
    config.sessions[0].restrictions.classes = vec![LimitClass(64)];
    let error = Orders::new(&config).err();
    assert_eq!(error, Some(ConfigError::RestrictedClass(LimitClass(64))));
}

#[test]
fn what_is_restricted_may_be_cancelled_and_made_less_and_not_more() {
    let mut config = config();
    config.accounts[1].restrictions.instruments = vec![BETA];
    let mut orders = up(Orders::new(&config).unwrap());
    let beta = NewOrder {
        instrument: BETA,
        ..new_order(1)
    };
    assert_eq!(enter(&mut orders, &beta, &REFERENCE).err(), Some(Reason::Restricted));
    // One that is open when its instrument is closed.
    for id in [1, 2] {
        accepted(&mut orders, &new_order(id));
    }
    let alpha = LimitScope::Instrument(ALPHA);
    set_limit(&mut orders, alpha, Limit::Restricted, LimitValue::Switch(true)).unwrap();
    for (ticks, lots) in [(100, 11), (99, 10), (101, 9)] {
        let change = replace(&mut orders, &replace_of(&new_order(1), 3, ticks, lots));
        assert_eq!(change.err(), Some(Reason::Restricted), "{ticks} {lots}");
    }
    assert!(replace(&mut orders, &replace_of(&new_order(1), 3, 100, 9)).is_ok());
    assert!(cancel(&mut orders, &cancel_of(&new_order(2), 4)).is_ok());
}

#[test]
fn an_instrument_has_a_rate_for_all_who_trade_it() {
    let mut config = config();
    config.classes[0].rate = RateLimit {
        per_second: Some(10),
        at_once: Some(2),
        action: Some(RateAction::Reject),
    };
    let mut orders = up(Orders::new(&config).unwrap());
    let by = |session: usize, account, id| NewOrder {
        session: SESSIONS[session],
        account,
        ..new_order(id)
    };
    accepted(&mut orders, &by(0, PLAIN, 1));
    accepted(&mut orders, &by(2, SHARED, 1));
    let third = by(1, PLAIN, 1);
    assert_eq!(enter(&mut orders, &third, &REFERENCE).err(), Some(Reason::RateLimit));
    let change = replace(&mut orders, &replace_of(&new_order(1), 2, 99, 10));
    assert_eq!(change.err(), Some(Reason::RateLimit));
    let beta = NewOrder {
        instrument: BETA,
        ..third
    };
    accepted(&mut orders, &beta);
    let next = by(1, PLAIN, 2);
    let share = NOW + Duration::from_millis(100);
    for (time, is_fast) in [(Timestamp(share.0 - 1), true), (share, false)] {
        let checked = orders.check_risk(time, &next, &REFERENCE).unwrap();
        let routed = orders.route(orders.screen(checked).unwrap()).unwrap();
        assert_eq!(routed.must_queue(), is_fast);
    }
    assert!(cancel(&mut orders, &cancel_of(&new_order(1), 3)).is_ok());
}

/// Two accounts of two sessions; each limit is used fully by both, and one more is refused until something ends.
#[test]
fn all_accounts_together_have_limits_in_an_instrument() {
    let alpha = LimitScope::Instrument(ALPHA);
    let amount = |units: i128| LimitValue::Amount(Notional(units * i128::from(Price::UNIT)));
    let ticks = |side| if side == Side::Buy { 100 } else { 110 };
    let by = |session: usize, account, id, side, count| NewOrder {
        session: SESSIONS[session],
        account,
        side,
        quantity: Quantity(count),
        ..at(new_order(id), ticks(side))
    };
    let (buy, sell) = (Side::Buy, Side::Sell);
    for (limit, value, side, reason) in [
        (Limit::MaxOpenOrders, LimitValue::Count(2), buy, Reason::MaxOpenOrders),
        // A lot is 100 units at 1.00.
        (Limit::MaxOpenNotional, amount(1_000), buy, Reason::SharedLimit),
        (Limit::MaxOpenNotional, amount(1_100), sell, Reason::SharedLimit),
        (Limit::MaxLong, LimitValue::Count(10), buy, Reason::LongLimit),
        (Limit::MaxShort, LimitValue::Count(10), sell, Reason::ShortLimit),
        (Limit::MaxPosition, LimitValue::Count(10), buy, Reason::PositionLimit),
        (Limit::MaxPosition, LimitValue::Count(10), sell, Reason::PositionLimit),
    ] {
        let mut orders = orders();
        set_limit(&mut orders, alpha, limit, value).unwrap();
        let first = accepted(&mut orders, &by(0, PLAIN, 1, side, 4));
        accepted(&mut orders, &by(2, SHARED, 1, side, 6));
        let one_more = |id| by(1, PLAIN, id, side, 1);
        assert_eq!(
            enter(&mut orders, &one_more(1), &REFERENCE).err(),
            Some(reason),
            "{limit:?}"
        );
        // What traded still counts, but for open orders; what is cancelled does not.
        let reports = on_report(&mut orders, &fill(&first, first.request.client_order_id, 100, 3)).unwrap();
        assert_eq!(reports.len(), 1);
        let canceled = venue_report(&first, ExecType::Canceled, first.request.client_order_id);
        on_report(&mut orders, &canceled).unwrap();
        accepted(&mut orders, &one_more(1));
        assert_eq!(
            enter(&mut orders, &one_more(2), &REFERENCE).err(),
            Some(reason),
            "{limit:?}"
        );
        if limit != Limit::MaxOpenOrders {
            let raised = replace(&mut orders, &replace_of(&by(2, SHARED, 1, side, 6), 2, ticks(side), 7));
            assert_eq!(raised.err(), Some(reason), "{limit:?}");
        }
        let beta = NewOrder {
            instrument: BETA,
            ..by(3, PLAIN, 1, buy, 1)
        };
        accepted(&mut orders, &beta);
        orders.on_day_roll(NOW, TradingDay(1), &mut Outputs::default());
        orders.audit().unwrap();
        accepted(&mut orders, &by(0, PLAIN, 1, side, 10));
        set_limit(&mut orders, alpha, limit, LimitValue::None).unwrap();
        for id in 1..=2 {
            accepted(&mut orders, &one_more(id));
        }
    }
}

#[test]
fn a_sell_counts_where_it_may_trade_and_not_only_at_its_limit() {
    let mut config = config();
    // Without a collar, and without anything in the place of a missing price.
    config.classes[1].missing_reference = MissingReference::Refuse;
    let orders = up(Orders::new(&config).unwrap());
    let limit = OrderType::Limit;
    let stop_limit = OrderType::StopLimit;
    let (primary, mid) = (OrderType::PegPrimary, OrderType::PegMid);
    for (instrument, order_type, side, ticks, stop, counted) in [
        (ALPHA, limit, Side::Sell, 90, None, 100),
        (ALPHA, limit, Side::Sell, 110, None, 110),
        (ALPHA, limit, Side::Buy, 90, None, 90),
        (ALPHA, stop_limit, Side::Sell, 85, Some(95), 95),
        (ALPHA, stop_limit, Side::Buy, 96, Some(95), 96),
        // The collar lets a market order trade at 1.20.
        (ALPHA, primary, Side::Sell, 1, None, 120),
        (ALPHA, mid, Side::Sell, 130, None, 130),
        (ALPHA, primary, Side::Buy, 90, None, 90),
        (BETA, limit, Side::Sell, 1, None, 100),
        (BETA, limit, Side::Buy, 1, None, 1),
        (BETA, stop_limit, Side::Sell, 1, Some(95), 95),
        (BETA, mid, Side::Sell, 1, None, 100),
    ] {
        let order = NewOrder {
            instrument,
            order_type,
            side,
            price: Price(ticks * TICK),
            terms: OrderTerms {
                stop_price: stop.map_or(Price::NULL, |ticks| Price(ticks * TICK)),
                ..OrderTerms::NONE
            },
            ..new_order(1)
        };
        let need = |reference| {
            let checked = orders.check_risk(NOW, &order, reference)?;
            let routed = orders.route(orders.screen(checked)?)?;
            Ok(routed.need().stake.notional)
        };
        let lots = if instrument == ALPHA { 10 * 100 } else { 10 };
        let notional = |ticks| lots * ticks * TICK / 100_000;
        assert_eq!(need(&REFERENCE), Ok(notional(counted)), "{order:?}");
        let without = match (instrument, order_type, side) {
            (BETA, OrderType::Limit, _) => Ok(notional(ticks)),
            (_, OrderType::StopLimit, _) | (_, _, Side::Buy) if order_type != limit => Ok(notional(counted)),
            _ => Err(Reason::NoReferencePrice),
        };
        assert_eq!(need(&Reference::NONE), without, "{order:?}");
    }
}

#[test]
fn long_and_short_positions_have_limits_of_their_own() {
    let beta = |id, side, count| NewOrder {
        instrument: BETA,
        account: TIGHT,
        side,
        client_order_id: ClientOrderId(id),
        ..at(lots(new_order(1), count), if side == Side::Buy { 100 } else { 110 })
    };
    for (side, reason) in [(Side::Buy, Reason::LongLimit), (Side::Sell, Reason::ShortLimit)] {
        let mut config = config();
        let limits = &mut config.accounts[2].limits;
        (limits.max_long, limits.max_short) = match side {
            Side::Buy => (Some(Quantity(7)), Some(Quantity(15))),
            Side::Sell => (Some(Quantity(15)), Some(Quantity(7))),
        };
        let mut orders = up(Orders::new(&config).unwrap());
        let refused = |orders: &mut Orders, order| enter(orders, &order, &REFERENCE).err();
        assert_eq!(refused(&mut orders, beta(1, side, 8)), Some(reason));
        let sent = accepted(&mut orders, &beta(1, side, 7));
        let more = replace_of(&beta(1, side, 7), 2, if side == Side::Buy { 100 } else { 110 }, 8);
        assert_eq!(replace(&mut orders, &more).err(), Some(reason));
        // What is open of a side takes nothing off the other; what traded does.
        assert!(refused(&mut orders, beta(2, side.opposite(), 16)).is_some());
        let number = sent.request.client_order_id;
        let report = fill(&sent, number, 100, 7);
        orders
            .on_venue_report(NOW, sent.venue, &report, &mut Outputs::default())
            .unwrap();
        accepted(&mut orders, &beta(2, side.opposite(), 20));
    }
    let none = |config: &mut OrdersConfig| config.accounts[2].limits.max_short = Some(Quantity(0));
    assert_eq!(verdict(none, &beta(1, Side::Sell, 1)), Some(Reason::ShortLimit));
    assert_eq!(verdict(none, &beta(1, Side::Buy, 1)), None);
}

fn short(order: NewOrder, short_sale: ShortSale, located: bool) -> NewOrder {
    NewOrder {
        side: Side::Sell,
        terms: OrderTerms {
            short_sale,
            located,
            ..order.terms
        },
        ..order
    }
}

#[test]
fn short_sales_are_the_accounts_to_allow() {
    for short_sale in [ShortSale::Short, ShortSale::Exempt] {
        for (rule, with, without) in [
            (ShortSales::Never, Some(Reason::ShortSale), Some(Reason::ShortSale)),
            (ShortSales::WithLocate, None, Some(Reason::NoLocate)),
            (ShortSales::Allowed, None, None),
        ] {
            let set = |config: &mut OrdersConfig| config.accounts[1].limits.short_sales = rule;
            assert_eq!(verdict(set, &short(new_order(1), short_sale, true)), with, "{rule:?}");
            assert_eq!(
                verdict(set, &short(new_order(1), short_sale, false)),
                without,
                "{rule:?}"
            );
            assert_eq!(verdict(set, &new_order(1)), None, "it is not for others");
        }
    }
    let buy = NewOrder {
        side: Side::Buy,
        ..short(new_order(1), ShortSale::Short, true)
    };
    assert_eq!(verdict(|_| (), &buy), Some(Reason::UnsupportedOrder));
    let not_short = short(new_order(1), ShortSale::No, true);
    assert_eq!(verdict(|_| (), &not_short), Some(Reason::UnsupportedOrder));
}

#[test]
fn a_replace_leaves_a_short_sale_what_it_is() {
    let mut orders = orders();
    let order = short(new_order(1), ShortSale::Short, true);
    let sent = accepted(&mut orders, &order);
    assert_eq!(sent.request.terms, order.terms, "the venue hears of it");
    let plain = replace_of(&order, 2, 101, 10);
    assert_eq!(replace(&mut orders, &plain).err(), Some(Reason::OrderMismatch));
    let same = ReplaceOrder {
        terms: order.terms,
        ..plain
    };
    // Once the account may sell short no more, it is not made more either.
    let account = LimitScope::Account(order.account);
    let never = LimitValue::ShortSales(ShortSales::Never);
    set_limit(&mut orders, account, Limit::ShortSales, never).unwrap();
    assert_eq!(replace(&mut orders, &same).err(), Some(Reason::ShortSale));
    let allowed = LimitValue::ShortSales(ShortSales::Allowed);
    set_limit(&mut orders, account, Limit::ShortSales, allowed).unwrap();
    assert!(replace(&mut orders, &same).is_ok());
}

#[test]
fn the_same_order_passes_so_many_times_and_no_more() {
    let mut config = config();
    config.sessions[0].limits.repeats = RepeatLimit {
        orders: Some(2),
        within: Some(Duration::from_secs(1)),
    };
    let mut orders = up(Orders::new(&config).unwrap());
    for id in 1..=2 {
        accepted(&mut orders, &new_order(id));
    }
    let third = new_order(3);
    assert_eq!(
        enter(&mut orders, &third, &REFERENCE).err(),
        Some(Reason::RepeatedOrder)
    );
    let others = [
        at(third, 101),
        lots(third, 11),
        NewOrder {
            instrument: BETA,
            ..third
        },
        NewOrder {
            account: SHARED,
            ..third
        },
        NewOrder {
            time_in_force: TimeInForce::ImmediateOrCancel,
            ..third
        },
        NewOrder {
            client_order_id: ClientOrderId(1),
            session: SESSIONS[1],
            ..third
        },
    ];
    for other in others {
        assert!(orders.check_risk(NOW, &other, &REFERENCE).is_ok(), "{other:?}");
    }
    let early = orders.check_risk(Timestamp(NOW.0 + 999_999_999), &third, &REFERENCE);
    assert_eq!(early.err(), Some(Reason::RepeatedOrder));
    let later = NOW + Duration::from_secs(1);
    assert!(orders.check_risk(later, &third, &REFERENCE).is_ok());
    for (orders, within) in [(0, 1), (17, 1), (1, 0)] {
        let mut config = crate::fixture::config();
        config.sessions[0].limits.repeats = RepeatLimit {
            orders: Some(orders),
            within: Some(Duration(within)),
        };
        let error = Orders::new(&config).err();
        assert_eq!(error, Some(ConfigError::InvalidSessionLimit(SESSIONS[0])));
    }
}
