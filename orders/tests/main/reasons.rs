//! Every reason for which the order logic refuses a request, and what a refusal leaves behind.

use crate::fixture::*;
use orders::{
    Capacity, Collar, KillScope, MissingReference, Orders, QUANTITY_MAX, RateAction, RateLimit, Reference, Route,
    RouteKey, TooFast,
};
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecType, InstrumentId, NewOrder, Notional, OrderId, OrderType,
    Price, Quantity, Reason, ReplaceOrder, SessionId, ShardId, Side, TimeInForce, Timestamp, TradingDay, VenueId,
};

/// The reason for which the firm, with session 1's order 1 open (buy 10 ALPHA at 1.00), refuses an order.
fn refused(order: &NewOrder, reference: &Reference) -> Option<Reason> {
    let mut orders = orders();
    accepted(&mut orders, &new_order(1));
    enter(&mut orders, order, reference).err()
}

#[test]
fn each_defect_of_a_new_order_has_its_reason() {
    let good = new_order(2);
    let market = NewOrder {
        order_type: OrderType::Market,
        price: Price::NULL,
        ..good
    };
    let beta = NewOrder {
        instrument: BETA,
        ..good
    };
    let tight = NewOrder { account: TIGHT, ..good };
    let price = |ticks: i64| NewOrder {
        price: Price(ticks * TICK),
        ..good
    };
    let lots = |order: NewOrder, lots: u64| NewOrder {
        quantity: Quantity(lots),
        ..order
    };
    let cases = [
        (good, None),
        (market, None),
        (beta, None),
        (
            NewOrder {
                session: SessionId(5),
                ..good
            },
            Some(Reason::WrongSession),
        ),
        (
            NewOrder {
                session: SessionId(0),
                ..good
            },
            Some(Reason::WrongSession),
        ),
        (
            NewOrder {
                session: SessionId(u16::MAX),
                ..good
            },
            Some(Reason::WrongSession),
        ),
        (
            NewOrder {
                client_order_id: ClientOrderId(1),
                ..good
            },
            Some(Reason::DuplicateClientOrderId),
        ),
        (
            NewOrder {
                client_order_id: ClientOrderId(0),
                ..good
            },
            Some(Reason::DuplicateClientOrderId),
        ),
        (
            NewOrder {
                instrument: InstrumentId(8),
                ..good
            },
            Some(Reason::UnknownInstrument),
        ),
        (
            NewOrder {
                account: AccountId(1),
                ..good
            },
            Some(Reason::UnknownAccount),
        ),
        (
            NewOrder {
                account: SHARED,
                session: SESSIONS[1],
                ..good
            },
            Some(Reason::UnknownAccount),
        ),
        (lots(good, 0), Some(Reason::InvalidQuantity)),
        (price(0), Some(Reason::InvalidPrice)),
        (price(-100), Some(Reason::InvalidPrice)),
        (
            NewOrder {
                price: Price::NULL,
                ..good
            },
            Some(Reason::InvalidPrice),
        ),
        (
            NewOrder {
                price: Price(100 * TICK + 1),
                ..good
            },
            Some(Reason::InvalidPrice),
        ),
        (
            NewOrder {
                price: Price(100 * TICK),
                ..market
            },
            Some(Reason::InvalidPrice),
        ),
        (lots(good, 20), None),
        (lots(good, 30), None),
        (lots(beta, 50), None),
        (lots(beta, 51), Some(Reason::MaxQuantity)),
        (lots(good, u64::MAX), Some(Reason::MaxQuantity)),
        (lots(good, 31), Some(Reason::MaxNotional)),
        // A market order counts at the highest price of the collar, 1.20.
        (lots(market, 25), None),
        (lots(market, 26), Some(Reason::MaxNotional)),
        (lots(tight, 5), None),
        (lots(tight, 6), Some(Reason::MaxNotional)),
        (
            NewOrder {
                account: TIGHT,
                ..lots(beta, 20)
            },
            None,
        ),
        (
            NewOrder {
                account: TIGHT,
                ..lots(beta, 21)
            },
            Some(Reason::MaxQuantity),
        ),
        (price(80), None),
        (price(79), Some(Reason::PriceCollar)),
        (price(120), None),
        (price(121), Some(Reason::PriceCollar)),
        (
            NewOrder {
                side: Side::Sell,
                ..price(121)
            },
            Some(Reason::PriceCollar),
        ),
        (
            NewOrder {
                order_type: OrderType::Market,
                price: Price::NULL,
                ..beta
            },
            Some(Reason::MarketOrder),
        ),
        (
            NewOrder {
                side: Side::Sell,
                ..good
            },
            Some(Reason::SelfMatch),
        ),
        (
            NewOrder {
                side: Side::Sell,
                ..market
            },
            Some(Reason::SelfMatch),
        ),
        (
            NewOrder {
                side: Side::Sell,
                session: SESSIONS[1],
                ..good
            },
            Some(Reason::SelfMatch),
        ),
        (
            NewOrder {
                side: Side::Sell,
                ..price(101)
            },
            None,
        ),
        (
            NewOrder {
                side: Side::Sell,
                session: SESSIONS[2],
                account: SHARED,
                ..good
            },
            None,
        ),
        (
            NewOrder {
                time_in_force: TimeInForce::ImmediateOrCancel,
                ..good
            },
            None,
        ),
        (
            NewOrder {
                time_in_force: TimeInForce::ImmediateOrCancel,
                side: Side::Sell,
                ..good
            },
            Some(Reason::SelfMatch),
        ),
    ];
    for (order, reason) in cases {
        assert_eq!(refused(&order, &REFERENCE), reason, "{order:?}");
    }
}

#[test]
fn a_collar_needs_a_fresh_reference_or_the_masters() {
    let fresh_until = REFERENCE.time + STALE_AFTER;
    let at = |price: i64, time: Timestamp| Reference {
        price: Price(price * TICK),
        time,
        ..Reference::NONE
    };
    let far = at(300, NOW);
    let stale = at(300, Timestamp(NOW.0 - STALE_AFTER.0 - 1));
    let order = new_order(2);
    assert_eq!(NOW + STALE_AFTER, fresh_until);
    for (reference, refuse, use_master) in [
        (REFERENCE, None, None),
        (at(100, Timestamp(NOW.0 - STALE_AFTER.0)), None, None),
        (at(100, Timestamp(NOW.0 + 1)), None, None),
        (far, Some(Reason::PriceCollar), Some(Reason::PriceCollar)),
        (stale, Some(Reason::NoReferencePrice), None),
        (Reference::NONE, Some(Reason::NoReferencePrice), None),
        (at(0, NOW), Some(Reason::NoReferencePrice), None),
        (at(-5, NOW), Some(Reason::NoReferencePrice), None),
    ] {
        for (missing_reference, reason) in [
            (MissingReference::Refuse, refuse),
            (MissingReference::UseMaster, use_master),
        ] {
            let mut config = config();
            config.classes[0].missing_reference = missing_reference;
            let mut orders = up(Orders::new(&config).unwrap());
            assert_eq!(
                enter(&mut orders, &order, &reference).err(),
                reason,
                "{reference:?} {missing_reference:?}"
            );
        }
    }
    let mut config = config();
    config.classes[0].missing_reference = MissingReference::UseMaster;
    config.instruments[0].reference_price = Price(0);
    let mut orders = up(Orders::new(&config).unwrap());
    let reason = enter(&mut orders, &order, &Reference::NONE).err();
    assert_eq!(reason, Some(Reason::NoReferencePrice), "the master has none either");
}

#[test]
fn the_narrower_of_two_collars_holds() {
    for (basis_points, ticks, lowest) in [
        (Some(1_000), None, 90),
        (None, Some(15), 85),
        (Some(1_000), Some(5), 95),
        (Some(400), Some(5), 96),
        (Some(0), None, 100),
    ] {
        let mut config = config();
        config.classes[0].collar = Some(Collar { basis_points, ticks });
        for (price, passes) in [(lowest, true), (lowest - 1, false)] {
            let mut orders = up(Orders::new(&config).unwrap());
            let order = NewOrder {
                price: Price(price * TICK),
                ..new_order(1)
            };
            assert_eq!(enter(&mut orders, &order, &REFERENCE).is_ok(), passes, "{price}");
        }
    }
}

#[test]
fn a_position_is_limited_as_if_all_open_orders_of_its_side_traded() {
    let mut orders = orders();
    let tight = |id, lots| NewOrder {
        account: TIGHT,
        instrument: BETA,
        quantity: Quantity(lots),
        ..new_order(id)
    };
    accepted(&mut orders, &tight(1, 20));
    let refused = enter(&mut orders, &tight(2, TIGHT_POSITION - 19), &REFERENCE);
    assert_eq!(refused.err(), Some(Reason::PositionLimit));
    // The other side has all of it.
    let sell = NewOrder {
        side: Side::Sell,
        price: Price(110 * TICK),
        ..tight(3, 20)
    };
    accepted(&mut orders, &sell);
    orders.on_day_roll(NOW, TradingDay(1), &mut Outputs::default());
    accepted(&mut orders, &tight(1, 5));
    accepted(&mut orders, &tight(2, TIGHT_POSITION - 5));
}

/// Who is too fast is told from outside.
#[test]
fn of_the_rates_that_do_not_allow_an_order_the_strictest_says_what_becomes_of_it() {
    let mut config = config();
    let rate = |action| RateLimit {
        per_second: Some(10),
        at_once: Some(2),
        action: Some(action),
    };
    config.firm.rate = rate(RateAction::Reject);
    config.accounts[1].limits.rate = rate(RateAction::Queue);
    config.sessions[0].limits.rate = rate(RateAction::Disconnect);
    (config.rate_queue.orders, config.rate_queue.wait) = (1, Duration::from_millis(10));
    let mut orders = up(Orders::new(&config).unwrap());
    accepted(&mut orders, &new_order(1));
    let order = new_order(2);
    let routed = |orders: &Orders| {
        let checked = orders.check_risk(NOW, &order, &REFERENCE).unwrap();
        orders.route(orders.screen(checked).unwrap()).unwrap()
    };
    let until = Some(NOW + Duration::from_millis(100));
    for (firm, account, session, reason) in [
        (until, None, None, Reason::RateLimit),
        (None, None, until, Reason::RateLogout),
        (until, until, None, Reason::RateLimit),
        (None, until, until, Reason::RateLogout),
        (until, until, until, Reason::RateLogout),
    ] {
        let too_fast = TooFast { firm, account, session };
        let paced = orders.pace(NOW, routed(&orders), &too_fast);
        assert_eq!(paced.err(), Some(reason), "{too_fast:?}");
        let price = replace_of(&new_order(1), 4, 99, 1);
        let change = orders.check_replace(NOW, &price, &REFERENCE).unwrap();
        let change = orders.screen_replace(change).unwrap();
        assert!(change.is_limited());
        assert_eq!(orders.refuse_fast_replace(NOW, &change, &too_fast), reason);
    }
    let too_fast = TooFast {
        account: until,
        ..TooFast::default()
    };
    let change = orders.check_replace(NOW, &replace_of(&new_order(1), 4, 99, 1), &REFERENCE);
    let change = orders.screen_replace(change.unwrap()).unwrap();
    assert_eq!(
        orders.refuse_fast_replace(NOW, &change, &too_fast),
        Reason::RateLimit,
        "a replace is never queued"
    );
    let fewer = orders.check_replace(NOW, &replace_of(&new_order(1), 4, 100, 9), &REFERENCE);
    assert!(!orders.screen_replace(fewer.unwrap()).unwrap().is_limited());
    let queued = orders.pace(NOW, routed(&orders), &too_fast).unwrap();
    assert!(queued.must_queue());
    orders.enqueue(NOW, queued);
    orders.audit().unwrap();
    let third = new_order(3);
    let checked = orders.check_risk(NOW, &third, &REFERENCE).unwrap();
    let behind = orders.route(orders.screen(checked).unwrap()).unwrap();
    assert!(behind.must_queue(), "it stays behind the other of its session");
    let full = orders.pace(NOW, behind, &TooFast::default());
    assert_eq!(full.err(), Some(Reason::RateLimit), "the queue is full");
}

#[test]
fn a_full_table_refuses_and_takes_again_when_an_order_ends() {
    let only = |open_orders, positions, books| {
        let mut config = config();
        config.capacity = Capacity {
            open_orders,
            positions,
            books,
            waiting_orders: 1,
            held_orders: 1,
            restrictions: 0,
        };
        up(Orders::new(&config).unwrap())
    };
    let beta = NewOrder {
        instrument: BETA,
        ..new_order(2)
    };
    for (mut orders, what) in [
        (only(1, 9, 9), "orders"),
        (only(9, 1, 9), "positions"),
        (only(9, 9, 1), "books"),
    ] {
        let first = accepted(&mut orders, &new_order(1));
        let reason = enter(&mut orders, &beta, &REFERENCE).err();
        assert_eq!(reason, Some(Reason::OrderTableFull), "{what}");
        let number = first.request.client_order_id;
        on_report(&mut orders, &venue_report(&first, ExecType::Canceled, number)).unwrap();
        accepted(&mut orders, &new_order(2));
    }
}

#[test]
fn an_order_beyond_every_shared_limit_is_refused() {
    let mut config = config();
    let beyond = Notional(1 << 90);
    config.classes[1].max_notional = beyond;
    config.classes[1].max_quantity = Quantity(QUANTITY_MAX);
    config.accounts[0].limits.max_notional = beyond;
    config.accounts[0].limits.max_quantity = Quantity(QUANTITY_MAX);
    let mut orders = up(Orders::new(&config).unwrap());
    let order = NewOrder {
        instrument: BETA,
        account: SHARED,
        price: Price(900_000_000 * TICK * 100),
        quantity: Quantity(1 << 20),
        ..new_order(1)
    };
    let reason = enter(&mut orders, &order, &REFERENCE).err();
    assert_eq!(reason, Some(Reason::SharedLimit), "1e-4 has no room for it");
    let small = NewOrder {
        quantity: Quantity(1),
        ..order
    };
    accepted(&mut orders, &small);
    let reason = replace(&mut orders, &replace_of(&small, 2, 90_000_000_000, 1 << 20)).err();
    assert_eq!(reason, Some(Reason::SharedLimit));
}

#[test]
fn a_kill_switch_refuses_new_orders_in_its_scope_only() {
    let by_two = NewOrder {
        session: SESSIONS[1],
        ..new_order(1)
    };
    for (scope, refuses_one, refuses_two) in [
        (KillScope::Firm, true, true),
        (KillScope::Account(PLAIN), true, true),
        (KillScope::Account(TIGHT), false, false),
        (KillScope::Session(SESSIONS[0]), true, false),
    ] {
        let mut orders = orders();
        orders.kill(scope).unwrap();
        for (order, refuses) in [(new_order(1), refuses_one), (by_two, refuses_two)] {
            let reason = enter(&mut orders, &order, &REFERENCE).err();
            assert_eq!(reason, refuses.then_some(Reason::Killed), "{scope:?}");
        }
        orders.revive(scope).unwrap();
        let order = NewOrder {
            client_order_id: ClientOrderId(2),
            ..new_order(2)
        };
        accepted(&mut orders, &order);
    }
    assert_eq!(
        orders().kill(KillScope::Account(AccountId(1))),
        Err(Reason::UnknownAccount)
    );
    assert_eq!(
        orders().revive(KillScope::Session(SessionId(9))),
        Err(Reason::WrongSession)
    );
}

#[test]
fn a_venue_that_is_down_refuses_and_no_other_takes_its_place() {
    let mut orders = orders();
    let first = accepted(&mut orders, &new_order(1));
    orders.on_venue_down(VenueId(0));
    assert_eq!(
        enter(&mut orders, &new_order(2), &REFERENCE).err(),
        Some(Reason::VenueDown)
    );
    let amend = replace_of(&new_order(1), 2, 100, 5);
    assert_eq!(replace(&mut orders, &amend).err(), Some(Reason::VenueDown));
    assert!(orders.order(first.order_id).unwrap().in_doubt);
    let beta = NewOrder {
        instrument: BETA,
        ..new_order(2)
    };
    accepted(&mut orders, &beta);
    assert!(
        cancel(&mut orders, &cancel_of(&new_order(1), 3)).is_ok(),
        "cancels are not held back"
    );
    orders.on_venue_up(VenueId(0));
    assert!(!orders.order(first.order_id).unwrap().in_doubt);
    accepted(&mut orders, &new_order(4));
}

#[test]
fn a_venue_has_no_more_open_orders_than_it_permits() {
    let mut orders = orders();
    let refused = |orders: &mut Orders, id: u64| enter(orders, &new_order(id), &REFERENCE).err();
    let first = accepted(&mut orders, &new_order(1));
    assert_eq!(orders.slots(VenueId(0)), None, "it has not said, so there is no limit");
    orders.on_venue_slots(VenueId(0), 1);
    assert_eq!(orders.slots(VenueId(0)), Some(1));
    assert_eq!(
        refused(&mut orders, 2),
        Some(Reason::NoVenueSlot),
        "one on its way counts"
    );
    let raise = replace_of(&new_order(1), 2, 100, 20);
    assert!(replace(&mut orders, &raise).is_ok(), "it has its order's slot");
    orders.on_venue_slots(VenueId(0), 2);
    accepted(&mut orders, &new_order(3));
    assert_eq!(refused(&mut orders, 4), Some(Reason::NoVenueSlot));
    let beta = NewOrder {
        instrument: BETA,
        ..new_order(4)
    };
    accepted(&mut orders, &beta);

    orders.on_venue_slots(VenueId(0), 0);
    let raise = replace_of(&new_order(3), 5, 101, 10);
    assert_eq!(replace(&mut orders, &raise).err(), Some(Reason::NoVenueSlot));
    let less = replace_of(&new_order(3), 5, 100, 5);
    assert!(replace(&mut orders, &less).is_ok(), "less is always possible");
    assert!(cancel(&mut orders, &cancel_of(&new_order(3), 6)).is_ok());
    assert!(cancel(&mut orders, &cancel_of(&new_order(1), 7)).is_ok());
    let mut outputs = Outputs::default();
    let end = venue_report(&first, ExecType::Canceled, first.request.client_order_id);
    orders.on_venue_report(NOW, VenueId(0), &end, &mut outputs).unwrap();
    orders.audit().unwrap();
    orders.on_venue_slots(VenueId(0), 1);
    assert_eq!(
        refused(&mut orders, 8),
        Some(Reason::NoVenueSlot),
        "the other is not over"
    );
    orders.on_venue_slots(VenueId(0), 2);
    accepted(&mut orders, &new_order(8));
}

#[test]
fn a_venue_that_grants_slots_has_none_before_it_has() {
    let mut config = config();
    config.venues[0].grants_slots = true;
    let mut orders = up(Orders::new(&config).unwrap());
    assert_eq!(
        enter(&mut orders, &new_order(1), &REFERENCE).err(),
        Some(Reason::NoVenueSlot)
    );
    orders.on_venue_slots(VenueId(0), 1);
    orders.on_venue_down(VenueId(0));
    orders.on_venue_up(VenueId(0));
    accepted(&mut orders, &new_order(1));
}

#[test]
fn the_sessions_route_comes_before_the_accounts_and_that_before_the_instruments() {
    let mut config = config();
    config.routes = vec![];
    let venue = |routes: &[Route]| {
        let mut config = config.clone();
        config.routes = routes.to_vec();
        accepted(&mut up(Orders::new(&config).unwrap()), &new_order(1)).venue
    };
    let route = |key, venue| Route {
        key,
        venue: VenueId(venue),
    };
    let (instrument, account, session) = (
        RouteKey::Instrument(ALPHA),
        RouteKey::Account(PLAIN),
        RouteKey::Session(SESSIONS[0]),
    );
    assert_eq!(venue(&[]), VenueId(0));
    assert_eq!(venue(&[route(instrument, 1)]), VenueId(1));
    assert_eq!(venue(&[route(instrument, 1), route(account, 0)]), VenueId(0));
    assert_eq!(
        venue(&[route(session, 1), route(account, 0), route(instrument, 0)]),
        VenueId(1)
    );
}

#[test]
fn the_request_for_the_venue_is_in_the_venues_terms() {
    let mut orders = orders();
    let order = new_order(7);
    let sent = accepted(&mut orders, &order);
    assert_eq!(sent.order_id.shard(), ShardId(3));
    assert_eq!(
        sent.request,
        NewOrder {
            client_order_id: ClientOrderId(sent.order_id.0),
            session: SessionId(900),
            ..order
        }
    );
    let second = accepted(&mut orders, &new_order(8));
    assert!(second.request.client_order_id > sent.request.client_order_id);
}

#[test]
fn a_refusal_has_a_number_uses_up_the_clients_and_is_counted() {
    let mut orders = orders();
    let order = new_order(5);
    let report = orders.refuse(&order, Reason::VenueFull);
    assert_eq!(report.exec.exec_type, ExecType::Rejected);
    assert_eq!(
        (report.exec.client_order_id, report.exec.reason),
        (ClientOrderId(5), Reason::VenueFull)
    );
    assert_ne!(report.exec.order_id, OrderId(0));
    assert_eq!(report.exec.leaves, Quantity::ZERO);
    assert_eq!(orders.order(report.exec.order_id), None);
    assert_eq!(orders.counters().refused(Reason::VenueFull), 1);
    let reason = enter(&mut orders, &order, &REFERENCE).err();
    assert_eq!(reason, Some(Reason::DuplicateClientOrderId));
    let again = orders.refuse(&new_order(2), Reason::DuplicateClientOrderId);
    assert!(again.exec.order_id > report.exec.order_id);
    accepted(&mut orders, &new_order(6));
    orders.audit().unwrap();
}

#[test]
#[should_panic(expected = "before anything else changes")]
fn what_was_checked_before_a_change_is_not_accepted_after_it() {
    let mut orders = orders();
    let order = new_order(1);
    let checked = orders.check_risk(NOW, &order, &REFERENCE).unwrap();
    let routed = orders.route(orders.screen(checked).unwrap()).unwrap();
    orders.kill(KillScope::Firm).unwrap();
    orders.accept(NOW, routed);
}

#[test]
fn each_defect_of_a_cancel_has_its_reason() {
    let order = new_order(10);
    let good = cancel_of(&order, 20);
    let cases = [
        (good, None),
        (
            CancelOrder {
                session: SessionId(77),
                ..good
            },
            Some(Reason::WrongSession),
        ),
        (
            CancelOrder {
                client_order_id: ClientOrderId(10),
                ..good
            },
            Some(Reason::DuplicateClientOrderId),
        ),
        (
            CancelOrder {
                orig_client_order_id: ClientOrderId(11),
                ..good
            },
            Some(Reason::UnknownOrder),
        ),
        (
            CancelOrder {
                orig_client_order_id: ClientOrderId(0),
                ..good
            },
            Some(Reason::UnknownOrder),
        ),
        (
            CancelOrder {
                orig_client_order_id: ClientOrderId(9),
                ..good
            },
            Some(Reason::TooLate),
        ),
        (
            CancelOrder {
                session: SESSIONS[1],
                ..good
            },
            Some(Reason::UnknownOrder),
        ),
        (
            CancelOrder {
                side: Side::Sell,
                ..good
            },
            Some(Reason::OrderMismatch),
        ),
        (
            CancelOrder {
                instrument: BETA,
                ..good
            },
            Some(Reason::OrderMismatch),
        ),
    ];
    for (request, reason) in cases {
        let mut orders = orders();
        accepted(&mut orders, &order);
        assert_eq!(cancel(&mut orders, &request).err(), reason, "{request:?}");
    }
    let mut orders = orders();
    accepted(&mut orders, &order);
    cancel(&mut orders, &good).unwrap();
    let second = CancelOrder {
        client_order_id: ClientOrderId(21),
        ..good
    };
    assert_eq!(cancel(&mut orders, &second).err(), Some(Reason::RequestPending));
}

#[test]
fn each_defect_of_a_replace_has_its_reason() {
    let order = new_order(10);
    let good = replace_of(&order, 20, 101, 12);
    let cases = [
        (good, None),
        (
            ReplaceOrder {
                orig_client_order_id: ClientOrderId(11),
                ..good
            },
            Some(Reason::UnknownOrder),
        ),
        (
            ReplaceOrder {
                quantity: Quantity(0),
                ..good
            },
            Some(Reason::InvalidQuantity),
        ),
        (
            ReplaceOrder {
                price: Price(1),
                ..good
            },
            Some(Reason::InvalidPrice),
        ),
        (
            ReplaceOrder {
                price: Price::NULL,
                ..good
            },
            Some(Reason::InvalidPrice),
        ),
        (
            ReplaceOrder {
                quantity: Quantity(u64::MAX),
                ..good
            },
            Some(Reason::MaxQuantity),
        ),
        (
            ReplaceOrder {
                quantity: Quantity(30),
                ..good
            },
            Some(Reason::MaxNotional),
        ),
        (
            ReplaceOrder {
                price: Price(121 * TICK),
                ..good
            },
            Some(Reason::PriceCollar),
        ),
        (
            ReplaceOrder {
                quantity: Quantity(4),
                ..good
            },
            None,
        ),
    ];
    for (request, reason) in cases {
        let mut orders = orders();
        let sent = accepted(&mut orders, &order);
        on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 4)).unwrap();
        assert_eq!(replace(&mut orders, &request).err(), reason, "{request:?}");
    }
    let mut orders = orders();
    let ioc = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..order
    };
    accepted(&mut orders, &ioc);
    assert_eq!(replace(&mut orders, &good).err(), Some(Reason::UnsupportedOrder));
}

#[test]
fn a_replace_that_only_takes_lots_off_passes_every_limit() {
    let mut orders = orders();
    let order = new_order(1);
    accepted(&mut orders, &order);
    let stale = |request: &ReplaceOrder| orders.check_replace(NOW, request, &Reference::NONE).err();
    assert_eq!(stale(&replace_of(&order, 2, 100, 9)), None);
    assert_eq!(stale(&replace_of(&order, 2, 100, 11)), Some(Reason::NoReferencePrice));
    assert_eq!(stale(&replace_of(&order, 2, 99, 9)), Some(Reason::NoReferencePrice));
}

#[test]
fn a_replace_that_would_trade_with_an_own_order_is_refused() {
    let mut orders = orders();
    let buy = new_order(1);
    let sell = NewOrder {
        side: Side::Sell,
        price: Price(105 * TICK),
        ..new_order(2)
    };
    accepted(&mut orders, &buy);
    accepted(&mut orders, &sell);
    assert_eq!(
        replace(&mut orders, &replace_of(&buy, 3, 105, 10)).err(),
        Some(Reason::SelfMatch)
    );
    replace(&mut orders, &replace_of(&buy, 4, 104, 10)).unwrap();
    // While it is pending, both of its prices count.
    assert_eq!(
        replace(&mut orders, &replace_of(&sell, 5, 104, 10)).err(),
        Some(Reason::SelfMatch)
    );
}

#[test]
fn a_refused_change_tells_of_the_order_as_it_stays() {
    let mut orders = orders();
    let order = new_order(1);
    let sent = accepted(&mut orders, &order);
    on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 4)).unwrap();
    let report = orders.refuse_cancel(&cancel_of(&order, 2), Reason::JournalFull).exec;
    assert_eq!(report.exec_type, ExecType::RequestRejected);
    assert_eq!(
        (report.order_id, report.client_order_id, report.orig_client_order_id),
        (sent.order_id, ClientOrderId(2), ClientOrderId(1))
    );
    assert_eq!((report.leaves, report.cumulative), (Quantity(6), Quantity(4)));
    let unknown = ReplaceOrder {
        orig_client_order_id: ClientOrderId(99),
        ..replace_of(&order, 3, 100, 5)
    };
    let report = orders.refuse_replace(&unknown, Reason::UnknownOrder).exec;
    assert_eq!((report.order_id, report.leaves), (OrderId(0), Quantity::ZERO));
    let reason = cancel(&mut orders, &cancel_of(&order, 3)).err();
    assert_eq!(
        reason,
        Some(Reason::DuplicateClientOrderId),
        "the refused one used it up"
    );
}
