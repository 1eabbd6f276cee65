//! Positions at their value, gross, net and lost; and the switch that lets only reducing orders pass.

use crate::fixture::*;
use orders::{AccountPlace, KillScope, Mark, MissingReference, Need, Orders, Reference, ReferenceChoice, Stake, Stop};
use proptest::prelude::*;
use types::{
    AccountId, ClientOrderId, ExecType, NewOrder, Price, Quantity, Reason, Side, TimeInForce, Timestamp, TradingDay,
    VenueId,
};

/// One lot of ALPHA at 1.00, 1e-4.
const LOT: i64 = 1_000_000;

fn of_shared(id: u64, side: Side, ticks: i64, lots: u64) -> NewOrder {
    NewOrder {
        account: SHARED,
        side,
        price: Price(ticks * TICK),
        quantity: Quantity(lots),
        ..new_order(id)
    }
}

fn need(orders: &Orders, order: &NewOrder, reference: &Reference) -> Result<Need, Reason> {
    let checked = orders.check_risk(NOW, order, reference)?;
    let routed = orders.route(orders.screen(checked)?)?;
    assert_eq!(routed.places().account, AccountPlace(0));
    Ok(*routed.need())
}

/// Takes an order in and trades all of it at a price.
fn traded(orders: &mut Orders, order: &NewOrder, ticks: i64, outputs: &mut Outputs) {
    let sent = accepted(orders, order);
    let report = fill(&sent, sent.request.client_order_id, ticks, order.quantity.0);
    orders.on_venue_report(NOW, sent.venue, &report, outputs).unwrap();
    orders.audit().unwrap();
}

#[test]
fn an_order_needs_what_it_adds_at_the_reference_price() {
    let orders = orders();
    for (side, ticks) in [(Side::Buy, 95), (Side::Sell, 105)] {
        let Need { stake, reduces } = need(&orders, &of_shared(1, side, ticks, 10), &REFERENCE).unwrap();
        let (long, short) = if side == Side::Buy {
            (10 * LOT, 0)
        } else {
            (0, 10 * LOT)
        };
        let notional = ticks * LOT / 10;
        let wanted = Stake {
            notional,
            orders: 1,
            gross: 10 * LOT,
            long,
            short,
            profit: 0,
        };
        assert_eq!(stake, wanted, "{side:?}");
        assert!(!reduces);
    }
    let stale = need(&orders, &of_shared(1, Side::Buy, 95, 10), &Reference::NONE);
    assert_eq!(stale.err(), Some(Reason::NoReferencePrice));
}

#[test]
fn an_account_without_such_a_limit_needs_no_reference_price() {
    let mut orders = orders();
    let beta = NewOrder {
        instrument: BETA,
        ..new_order(1)
    };
    let mut without = config();
    without.instruments[1].reference_price = Price(0);
    let mut no_price = up(Orders::new(&without).unwrap());
    assert!(enter(&mut no_price, &beta, &Reference::NONE).is_ok());
    let shared = NewOrder {
        account: SHARED,
        client_order_id: ClientOrderId(2),
        ..beta
    };
    let reason = enter(&mut no_price, &shared, &Reference::NONE).err();
    assert_eq!(reason, Some(Reason::NoReferencePrice));
    assert!(
        enter(&mut orders, &shared, &Reference::NONE).is_ok(),
        "the master has one"
    );
}

#[test]
fn what_is_held_against_an_order_is_not_counted_twice() {
    let mut orders = orders();
    let mut outputs = Outputs::default();
    traded(&mut orders, &of_shared(1, Side::Buy, 100, 10), 100, &mut outputs);
    // Half of it back: gross stays what is held, the other side has nothing yet.
    let sell = need(&orders, &of_shared(2, Side::Sell, 110, 5), &REFERENCE).unwrap();
    assert!(sell.reduces);
    assert_eq!((sell.stake.gross, sell.stake.long, sell.stake.short), (0, 0, 5 * LOT));
    let whole = need(&orders, &of_shared(2, Side::Sell, 110, 10), &REFERENCE).unwrap();
    assert!(whole.reduces);
    let beyond = need(&orders, &of_shared(2, Side::Sell, 110, 11), &REFERENCE).unwrap();
    assert!(!beyond.reduces);
    let through = need(&orders, &of_shared(2, Side::Sell, 110, 25), &REFERENCE).unwrap();
    assert_eq!(through.stake.gross, 5 * LOT, "15 short are 5 more than 10 long");
    // Open orders of its side count before it.
    accepted(&mut orders, &of_shared(2, Side::Sell, 110, 8));
    assert!(
        !need(&orders, &of_shared(3, Side::Sell, 110, 3), &REFERENCE)
            .unwrap()
            .reduces
    );
    assert!(
        need(&orders, &of_shared(3, Side::Sell, 110, 2), &REFERENCE)
            .unwrap()
            .reduces
    );
}

#[test]
fn gains_and_losses_of_the_day_are_told_and_end_with_it() {
    let mut orders = orders();
    let mut outputs = Outputs::default();
    traded(&mut orders, &of_shared(1, Side::Buy, 110, 10), 110, &mut outputs);
    assert_eq!(outputs.settled[0].profit, 0, "it is held at what it cost");
    // The next order values it at the reference, 1.00.
    let sell = of_shared(2, Side::Sell, 102, 4);
    assert_eq!(need(&orders, &sell, &REFERENCE).unwrap().stake.profit, -LOT);
    traded(&mut orders, &sell, 102, &mut outputs);
    // 4 lots lost 0.08, 6 are valued at the last trade, 0.08 below their price.
    let kept = orders.account_exposure(SHARED).unwrap().stake;
    assert_eq!(
        (kept.profit, kept.gross, kept.long),
        (-8 * LOT / 10, 6 * 102 * LOT / 100, 6 * 102 * LOT / 100)
    );
    orders.on_day_roll(NOW, TradingDay(1), &mut outputs);
    assert_eq!(orders.account_exposure(SHARED).unwrap().stake, Stake::NONE);
}

/// Orders that live on are valued at the mark that their position had, whatever they are limited to.
#[test]
fn a_mark_outlives_the_day_with_the_orders() {
    let mut orders = orders();
    let mut outputs = Outputs::default();
    // In front of it there is a position that ends with the day.
    accepted(
        &mut orders,
        &NewOrder {
            instrument: BETA,
            ..of_shared(1, Side::Buy, 100, 1)
        },
    );
    let lasting = |id, ticks, lots| NewOrder {
        time_in_force: TimeInForce::GoodTillCancel,
        ..of_shared(id, Side::Buy, ticks, lots)
    };
    accepted(&mut orders, &lasting(2, 95, 5));
    accepted(&mut orders, &lasting(3, 85, 4));
    orders.mark(
        &Mark {
            account: SHARED,
            instrument: ALPHA,
            price: Price(104 * TICK),
        },
        &mut outputs,
    );
    let day = |orders: &mut Orders, day| {
        orders.on_day_roll(NOW, TradingDay(day), &mut Outputs::default());
        orders.audit().unwrap();
        (orders.positions(), orders.account_exposure(SHARED).unwrap().stake.gross)
    };
    let gross = 9 * 104 * LOT / 100;
    assert_eq!(day(&mut orders, 1), (2, gross), "of BETA a trade may still be told");
    assert_eq!(day(&mut orders, 2), (1, gross));
}

/// What the position in the first place is to be marked at, when the feed says this of its instrument.
fn mark_due(orders: &Orders, reference: Reference) -> Option<Price> {
    orders.mark_due(NOW, 0, |_| reference).map(|mark| mark.price)
}

/// The feed with another price.
fn at(ticks: i64) -> Reference {
    Reference {
        price: Price(ticks * TICK),
        ..REFERENCE
    }
}

#[test]
fn a_mark_values_what_is_held_and_open_and_tells_the_limits() {
    let mut orders = orders();
    let mut outputs = Outputs::default();
    traded(&mut orders, &of_shared(1, Side::Buy, 100, 10), 100, &mut outputs);
    accepted(&mut orders, &of_shared(2, Side::Buy, 95, 5));
    let before = outputs.settled[0];
    assert_eq!(mark_due(&orders, at(100)), None, "it is valued so");
    let mark = Mark {
        account: SHARED,
        instrument: ALPHA,
        price: Price(90 * TICK),
    };
    assert_eq!(orders.mark_due(NOW, 0, |_| at(90)), Some(mark));
    orders.mark(&mark, &mut outputs);
    orders.audit().unwrap();
    // 15 lots fell by 0.10, and 10 of them are held.
    let wanted = Stake {
        gross: -15 * LOT / 10,
        long: -15 * LOT / 10,
        short: LOT,
        profit: -LOT,
        ..Stake::NONE
    };
    assert_eq!(outputs.settled[0] - before, wanted);
    assert_eq!(mark_due(&orders, at(90)), None);
    // What nobody has is left alone.
    let unknown = Mark { account: TIGHT, ..mark };
    orders.mark(&unknown, &mut outputs);
    assert_eq!((outputs.settled[0] - before, orders.positions()), (wanted, 1));
    assert_eq!(orders.mark_due(NOW, 1, |_| at(80)), None, "there is no such place");
}

#[test]
fn without_a_fresh_price_the_last_mark_stays() {
    let stale = Reference {
        time: Timestamp(1),
        ..at(90)
    };
    let none = Reference {
        price: Price::NULL,
        ..REFERENCE
    };
    for (choice, missing, with_stale, with_none) in [
        (ReferenceChoice::Mid, MissingReference::Refuse, None, None),
        (ReferenceChoice::Mid, MissingReference::UseMaster, None, None),
        (ReferenceChoice::Last, MissingReference::Refuse, None, Some(110)),
        (ReferenceChoice::Master, MissingReference::Refuse, Some(100), Some(100)),
    ] {
        let mut config = config();
        config.classes[0].reference = choice;
        config.classes[0].missing_reference = missing;
        let mut orders = up(Orders::new(&config).unwrap());
        // It trades at another price than any of these.
        traded(
            &mut orders,
            &of_shared(1, Side::Buy, 101, 10),
            99,
            &mut Outputs::default(),
        );
        let price = |ticks: Option<i64>| ticks.map(|ticks| Price(ticks * TICK));
        assert_eq!(mark_due(&orders, stale), price(with_stale), "{choice:?} {missing:?}");
        assert_eq!(mark_due(&orders, none), price(with_none), "{choice:?} {missing:?}");
        assert_eq!(
            mark_due(&orders, Reference::NONE),
            price(with_stale),
            "{choice:?} {missing:?}"
        );
    }
}

#[test]
fn nothing_is_marked_for_who_has_no_such_limit_or_holds_nothing() {
    let mut orders = orders();
    accepted(&mut orders, &new_order(1));
    assert_eq!(
        (orders.positions(), mark_due(&orders, at(90))),
        (1, None),
        "PLAIN has none"
    );
    let mut orders = self::orders();
    let mut outputs = Outputs::default();
    traded(&mut orders, &of_shared(1, Side::Buy, 100, 10), 100, &mut outputs);
    traded(&mut orders, &of_shared(2, Side::Sell, 100, 10), 100, &mut outputs);
    assert_eq!(mark_due(&orders, at(90)), None, "it holds nothing any more");
    accepted(&mut orders, &of_shared(3, Side::Sell, 100, 10));
    assert_eq!(mark_due(&orders, at(90)), Some(Price(90 * TICK)));
}

#[test]
fn on_every_way_that_an_order_ends_all_that_it_took_comes_back_once() {
    let order = of_shared(1, Side::Buy, 100, 10);
    for end in [ExecType::Rejected, ExecType::Canceled, ExecType::Expired] {
        let mut orders = orders();
        let taken = need(&orders, &order, &REFERENCE).unwrap().stake;
        let sent = accepted(&mut orders, &order);
        let mut outputs = Outputs::default();
        let report = venue_report(&sent, end, sent.request.client_order_id);
        orders.on_venue_report(NOW, VenueId(0), &report, &mut outputs).unwrap();
        assert_eq!(outputs.settled[0], Stake::NONE - taken, "{end:?}");
        let again = orders.on_venue_report(NOW, VenueId(0), &report, &mut outputs);
        assert!(again.is_err());
        assert_eq!(outputs.settled[0], Stake::NONE - taken, "{end:?}");
    }
    let mut orders = orders();
    let taken = need(&orders, &order, &REFERENCE).unwrap().stake;
    accepted(&mut orders, &order);
    let mut outputs = Outputs::default();
    orders.on_day_roll(NOW, TradingDay(1), &mut outputs);
    assert_eq!(outputs.settled[0], Stake::NONE - taken);
}

#[test]
fn a_day_order_ends_with_the_day_and_one_that_lives_on_is_counted_anew() {
    let mut orders = orders();
    let order = NewOrder {
        time_in_force: TimeInForce::GoodTillCancel,
        ..of_shared(1, Side::Buy, 90, 10)
    };
    let sent = accepted(&mut orders, &order);
    let number = sent.request.client_order_id;
    let mut outputs = Outputs::default();
    let report = fill(&sent, number, 90, 4);
    orders.on_venue_report(NOW, VenueId(0), &report, &mut outputs).unwrap();
    orders.on_day_roll(NOW, TradingDay(1), &mut outputs);
    orders.audit().unwrap();
    let kept = orders.account_exposure(SHARED).unwrap().stake;
    // 6 lots at its limit, which values it until there is a reference price.
    assert_eq!(
        (kept.gross, kept.long, kept.profit),
        (540 * LOT / 100, 540 * LOT / 100, 0)
    );
}

#[test]
fn a_switch_may_let_pass_what_reduces() {
    for scope in [
        KillScope::Firm,
        KillScope::Account(PLAIN),
        KillScope::Session(SESSIONS[0]),
    ] {
        let mut orders = orders();
        let plain = |id, side, ticks, lots| NewOrder {
            account: PLAIN,
            ..of_shared(id, side, ticks, lots)
        };
        let mut outputs = Outputs::default();
        traded(&mut orders, &plain(1, Side::Buy, 100, 10), 100, &mut outputs);
        accepted(&mut orders, &plain(2, Side::Buy, 99, 5));
        orders.let_reduce(scope).unwrap();
        assert_eq!(orders.stop(scope), Ok(Stop::ReduceOnly));
        assert_eq!(orders.cancels_waiting(VenueId(0)), 1, "open orders are cancelled");
        let refused = |orders: &mut Orders, order: NewOrder| enter(orders, &order, &REFERENCE).err();
        let buy = plain(3, Side::Buy, 99, 1);
        assert_eq!(refused(&mut orders, buy), Some(Reason::ReduceOnly));
        let beyond = plain(3, Side::Sell, 110, 11);
        assert_eq!(refused(&mut orders, beyond), Some(Reason::ReduceOnly));
        let elsewhere = NewOrder {
            instrument: BETA,
            ..plain(3, Side::Sell, 110, 1)
        };
        assert_eq!(refused(&mut orders, elsewhere), Some(Reason::ReduceOnly));
        assert_eq!(refused(&mut orders, plain(3, Side::Sell, 110, 7)), None);
        assert_eq!(
            refused(&mut orders, plain(4, Side::Sell, 110, 4)),
            Some(Reason::ReduceOnly)
        );
        let more = replace_of(&plain(3, Side::Sell, 110, 7), 5, 110, 11);
        assert_eq!(replace(&mut orders, &more).err(), Some(Reason::ReduceOnly));
        let as_much = replace_of(&plain(3, Side::Sell, 110, 7), 6, 110, 10);
        assert!(replace(&mut orders, &as_much).is_ok());
        // Where another switch lets nothing pass, nothing does.
        orders.kill(KillScope::Session(SESSIONS[0])).unwrap();
        assert_eq!(refused(&mut orders, plain(8, Side::Sell, 110, 1)), Some(Reason::Killed));
    }
    let nobody = KillScope::Account(AccountId(1));
    assert_eq!(orders().let_reduce(nobody), Err(Reason::UnknownAccount));
    assert_eq!(orders().stop(nobody), Err(Reason::UnknownAccount));
}

/// What became of a firm and an account, whether their limits were there from the start or are set at the end.
fn day(steps: &[(bool, u64, i64, u64)], from_start: bool) -> (Outputs, Stake, Vec<Stake>) {
    use orders::{Limit, LimitScope, LimitValue};
    let wide = LimitValue::Amount(orders::VALUE_LIMIT_MAX);
    let limits = [
        (LimitScope::Account(PLAIN), Limit::MaxLoss),
        (LimitScope::Firm, Limit::MaxOpenNotional),
        // Values SHARED, and everybody else, if they are not yet.
        (LimitScope::Firm, Limit::MaxGross),
    ];
    let mut outputs = Outputs::default();
    let mut orders = orders();
    let set = |orders: &mut Orders, outputs: &mut Outputs| {
        for (scope, limit) in limits {
            orders.set_limits(NOW, scope, &[(limit, wide)], outputs).unwrap();
            orders.audit().unwrap();
        }
    };
    if from_start {
        set(&mut orders, &mut outputs);
    }
    // What orders took, by the account's place.
    let mut taken = vec![Stake::NONE; 3];
    let mut id = 0;
    for &(is_shared, lots, ticks, traded) in steps {
        id += 1;
        let order = NewOrder {
            account: if is_shared { SHARED } else { PLAIN },
            side: if ticks < 100 { Side::Buy } else { Side::Sell },
            price: Price(ticks * TICK),
            quantity: Quantity(lots),
            ..new_order(id)
        };
        let Ok(checked) = orders.check_risk(NOW, &order, &REFERENCE) else {
            continue;
        };
        let Ok(routed) = orders.screen(checked).and_then(|order| orders.route(order)) else {
            continue;
        };
        taken[routed.places().account.0 as usize] += routed.need().stake;
        let sent = orders.accept(NOW, routed);
        if traded > 0 {
            let report = fill(&sent, sent.request.client_order_id, ticks, traded.min(lots));
            orders.on_venue_report(NOW, sent.venue, &report, &mut outputs).unwrap();
        }
        orders.audit().unwrap();
    }
    if !from_start {
        set(&mut orders, &mut outputs);
    }
    for (taken, settled) in taken.iter_mut().zip(outputs.settled) {
        *taken += settled;
    }
    let mut firm = Stake::NONE;
    for of_account in &taken {
        firm += *of_account;
    }
    (outputs, firm, taken)
}

proptest! {
    #[test]
    fn a_limit_that_was_left_out_counts_from_the_start_of_the_day_once_it_is_set(
        steps in prop::collection::vec((any::<bool>(), 1..20u64, 90..110i64, 0..20u64), 0..60),
    ) {
        let (with, _, taken) = day(&steps, true);
        let (later, firm, taken_later) = day(&steps, false);
        prop_assert_eq!(taken, taken_later);
        prop_assert_eq!(with.firm, Some(Stake::NONE));
        prop_assert_eq!(later.firm, Some(firm));
    }
}

#[test]
fn no_limit_by_value_is_higher_than_a_position_is_valued() {
    let mut orders = orders();
    let most = orders::VALUE_LIMIT_MAX;
    for limit in [orders::Limit::MaxGross, orders::Limit::MaxNet, orders::Limit::MaxLoss] {
        let mut set = |amount| {
            let value = orders::LimitValue::Amount(types::Notional(amount));
            set_limit(&mut orders, orders::LimitScope::Account(SHARED), limit, value)
        };
        assert_eq!(set(most.0 + 1), Err(orders::LimitError::Invalid));
        assert_eq!(set(most.0), Ok(()));
    }
}
