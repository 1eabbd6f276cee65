//! Limits that are changed while orders are open: by name, for the next order, and nothing else.

use crate::fixture::*;
use orders::{Limit, LimitError, LimitScope, LimitValue, MissingReference, Orders, Reference};
use proptest::prelude::*;
use types::{AccountId, InstrumentId, LimitClass, Quantity, Reason, SessionId};

const CLASS: LimitScope = LimitScope::Class(LimitClass(0));

fn set(orders: &mut Orders, scope: LimitScope, name: &str, text: &str) -> Result<(), LimitError> {
    let limit = Limit::from_name(name).expect("a limit");
    let value = scope.parse(limit, text)?;
    set_limit(orders, scope, limit, value)
}

fn refusal(orders: &mut Orders, id: u64) -> Option<Reason> {
    enter(orders, &new_order(id), &REFERENCE).err()
}

#[test]
fn a_change_is_in_force_for_the_next_order_and_ends_none() {
    let account = LimitScope::Account(PLAIN);
    let session = LimitScope::Session(SESSIONS[0]);
    let instrument = LimitScope::Instrument(ALPHA);
    for (scope, name, tight, reason) in [
        (account, "max_quantity_lots", "9", Reason::MaxQuantity),
        (CLASS, "max_quantity_lots", "9", Reason::MaxQuantity),
        (instrument, "max_quantity_lots", "9", Reason::MaxQuantity),
        (account, "max_notional", "999.99", Reason::MaxNotional),
        (CLASS, "max_notional", "\"999.99\"", Reason::MaxNotional),
        (session, "max_quantity_lots", "9", Reason::MaxQuantity),
        (LimitScope::Firm, "max_quantity_lots", "9", Reason::MaxQuantity),
        (LimitScope::Firm, "max_notional", "999.99", Reason::MaxNotional),
        (instrument, "max_open_orders", "1", Reason::MaxOpenOrders),
        (CLASS, "max_open_orders", "1", Reason::MaxOpenOrders),
        (account, "max_position_lots", "19", Reason::PositionLimit),
    ] {
        let mut orders = orders();
        accepted(&mut orders, &new_order(1));
        let limit = Limit::from_name(name).unwrap();
        let before = orders.limit(scope, limit).unwrap();
        set(&mut orders, scope, name, tight).unwrap();
        assert_eq!(refusal(&mut orders, 2), Some(reason), "{scope:?} {name}");
        assert_eq!(orders.open_orders(), 1);
        orders.audit().unwrap();
        set_limit(&mut orders, scope, limit, before).unwrap();
        assert_eq!(refusal(&mut orders, 3), None, "{scope:?} {name}");
        assert_eq!(orders.limit(scope, limit), Some(before));
    }
}

#[test]
fn a_collar_and_what_stands_in_for_a_price_can_be_changed() {
    let mut orders = orders();
    let far = Reference {
        price: types::Price(70 * TICK),
        time: NOW,
        ..Reference::NONE
    };
    let refused = |orders: &mut Orders, id, reference| enter(orders, &new_order(id), reference).err();
    assert_eq!(refused(&mut orders, 1, &far), Some(Reason::PriceCollar));
    set(&mut orders, CLASS, "collar", "{ ticks = 31 }").unwrap();
    assert_eq!(refused(&mut orders, 2, &far), None);
    set(&mut orders, CLASS, "collar", "{ basis_points = 1, ticks = 31 }").unwrap();
    assert_eq!(refused(&mut orders, 3, &far), Some(Reason::PriceCollar));
    set(&mut orders, CLASS, "collar", "off").unwrap();
    assert_eq!(refused(&mut orders, 4, &far), None);
    set(&mut orders, CLASS, "collar", "{ ticks = 50 }").unwrap();
    assert_eq!(
        refused(&mut orders, 5, &Reference::NONE),
        Some(Reason::NoReferencePrice)
    );
    set(&mut orders, CLASS, "reference_missing", "\"master\"").unwrap();
    assert_eq!(refused(&mut orders, 6, &Reference::NONE), None);
}

#[test]
fn a_rate_comes_into_force_with_its_average_and_goes_with_it() {
    let mut orders = orders();
    let alpha = LimitScope::Instrument(ALPHA);
    for scope in [
        LimitScope::Firm,
        LimitScope::Account(PLAIN),
        LimitScope::Session(SESSIONS[0]),
        alpha,
    ] {
        let wrong = set(&mut orders, scope, "max_orders_per_second", "1");
        assert_eq!(wrong, Err(LimitError::Invalid), "what may come at once is not said");
        set(&mut orders, scope, "max_orders_at_once", "2").unwrap();
        set(&mut orders, scope, "rate_action", "reject").unwrap();
        set(&mut orders, scope, "max_orders_per_second", "1").unwrap();
        let half = set(&mut orders, scope, "max_orders_at_once", "none");
        assert_eq!(half, Err(LimitError::Invalid));
        set(&mut orders, scope, "max_orders_per_second", "none").unwrap();
    }
    assert_eq!((refusal(&mut orders, 1), refusal(&mut orders, 2)), (None, None));
    set(&mut orders, alpha, "max_orders_per_second", "1").unwrap();
    assert_eq!((refusal(&mut orders, 3), refusal(&mut orders, 4)), (None, None));
    assert_eq!(refusal(&mut orders, 5), Some(Reason::RateLimit));
    set(&mut orders, alpha, "max_orders_per_second", "none").unwrap();
    assert_eq!(refusal(&mut orders, 6), None);
}

#[test]
fn a_class_changes_the_instruments_that_have_not_their_own() {
    let mut orders = orders();
    let instrument = LimitScope::Instrument(ALPHA);
    let value = |orders: &Orders| orders.limit(instrument, Limit::MaxQuantity);
    set(&mut orders, CLASS, "max_quantity_lots", "40").unwrap();
    assert_eq!(value(&orders), Some(LimitValue::Count(40)));
    assert_eq!(orders.class_of_limit(ALPHA, Limit::MaxQuantity), Some(LimitClass(0)));
    set(&mut orders, instrument, "max_quantity_lots", "7").unwrap();
    set(&mut orders, CLASS, "max_quantity_lots", "30").unwrap();
    assert_eq!(value(&orders), Some(LimitValue::Count(7)));
    assert_eq!(orders.class_of_limit(ALPHA, Limit::MaxQuantity), None);
    assert_eq!(refusal(&mut orders, 1), Some(Reason::MaxQuantity));
    set(&mut orders, instrument, "max_quantity_lots", "class").unwrap();
    assert_eq!(value(&orders), Some(LimitValue::Count(30)));
    assert_eq!(refusal(&mut orders, 2), None);
    set(&mut orders, CLASS, "max_quantity_lots", "9").unwrap();
    assert_eq!(refusal(&mut orders, 3), Some(Reason::MaxQuantity));
    // The other class is another.
    let other = orders.limit(LimitScope::Instrument(BETA), Limit::MaxQuantity);
    assert_eq!(other, Some(LimitValue::Count(50)));
}

#[test]
fn what_is_no_limit_or_no_value_is_refused_and_changes_nothing() {
    let account = LimitScope::Account(PLAIN);
    let mut orders = orders();
    let all = |orders: &Orders| {
        let scopes = [
            LimitScope::Firm,
            CLASS,
            LimitScope::Instrument(ALPHA),
            account,
            LimitScope::Session(SESSIONS[0]),
        ];
        let values = |scope| Limit::ALL.iter().map(move |&limit| (scope, limit));
        let values = scopes.into_iter().flat_map(values);
        values
            .map(|(scope, limit)| orders.limit(scope, limit))
            .collect::<Vec<_>>()
    };
    let before = all(&orders);
    for (scope, name, text) in [
        (LimitScope::Account(AccountId(1)), "max_quantity_lots", "1"),
        (LimitScope::Session(SessionId(9)), "max_open_orders", "1"),
        (LimitScope::Instrument(InstrumentId(1)), "max_quantity_lots", "1"),
        (LimitScope::Class(LimitClass(2)), "max_quantity_lots", "1"),
        (LimitScope::Firm, "max_position_lots", "1"),
        (CLASS, "max_repeats", "1"),
        (account, "collar", "off"),
        (account, "max_quantity_lots", "0"),
        (account, "max_quantity_lots", "4294967296"),
        (account, "max_quantity_lots", "none"),
        (account, "max_quantity_lots", "-1"),
        (account, "max_quantity_lots", "1_"),
        (account, "max_quantity_lots", ""),
        (account, "max_notional", "0"),
        (account, "max_notional", "-5"),
        (account, "max_notional", "1e6"),
        (account, "max_open_orders", "4294967296"),
        (account, "max_open_orders", "class"),
        (CLASS, "max_quantity_lots", "class"),
        (CLASS, "collar", "{}"),
        (CLASS, "collar", "{ ticks = 1, ticks = 2 }"),
        (CLASS, "collar", "{ tick = 1 }"),
        (CLASS, "collar", "none"),
        (CLASS, "market_orders", "yes"),
        (CLASS, "reference_missing", "none"),
        (CLASS, "reference_max_age_ms", "99999999999999999999"),
    ] {
        let refused = set(&mut orders, scope, name, text);
        assert!(refused.is_err(), "{scope:?} {name} = {text}");
        assert!(!refused.unwrap_err().to_string().is_empty());
        assert_eq!(all(&orders), before, "{scope:?} {name} = {text}");
    }
    // A value of another kind than the limit's, which no text gives.
    let amount = LimitValue::Amount(types::Notional(1));
    let refused = set_limit(&mut orders, account, Limit::MaxQuantity, amount);
    assert!(matches!(refused, Err(LimitError::Form { .. })));
}

#[test]
fn an_order_that_was_checked_before_a_change_is_not_accepted_after_it() {
    let mut orders = orders();
    let order = new_order(1);
    let checked = orders.check_risk(NOW, &order, &REFERENCE).unwrap();
    let routed = orders.screen(checked).and_then(|order| orders.route(order)).unwrap();
    set(&mut orders, CLASS, "max_quantity_lots", "9").unwrap();
    let accept = std::panic::AssertUnwindSafe(|| orders.accept(NOW, routed));
    assert!(std::panic::catch_unwind(accept).is_err());
}

fn value() -> impl Strategy<Value = LimitValue> {
    let collar = (any::<Option<u32>>(), any::<Option<u32>>())
        .prop_map(|(basis_points, ticks)| Some(orders::Collar { basis_points, ticks }));
    prop_oneof![
        Just(LimitValue::None),
        Just(LimitValue::OfClass),
        any::<u64>().prop_map(LimitValue::Count),
        any::<i64>().prop_map(|amount| LimitValue::Amount(types::Notional(amount.into()))),
        any::<u64>().prop_map(|age| LimitValue::Age(types::Duration(age))),
        any::<bool>().prop_map(LimitValue::Switch),
        Just(LimitValue::MissingReference(MissingReference::Refuse)),
        Just(LimitValue::MissingReference(MissingReference::UseMaster)),
        Just(LimitValue::Collar(None)),
        collar.prop_map(LimitValue::Collar),
    ]
}

proptest! {
    #[test]
    fn a_value_comes_back_from_its_parts(value in value()) {
        let (kind, amount) = value.to_parts();
        prop_assert_eq!(LimitValue::from_parts(kind, amount), Some(value));
    }

    #[test]
    fn parts_are_a_value_or_none(kind in 0..10_u8, amount in any::<i128>()) {
        if let Some(value) = LimitValue::from_parts(kind, amount) {
            prop_assert_eq!(value.to_parts(), (kind, amount));
        }
    }

    #[test]
    fn whatever_stands_somewhere_reads_as_it_is_printed(
        lots in 1..=u64::from(u32::MAX),
        amount in 1..i64::MAX,
        points in any::<Option<u32>>(),
        ticks in any::<u32>(),
    ) {
        let mut orders = orders();
        let account = LimitScope::Account(PLAIN);
        let collar = orders::Collar { basis_points: points, ticks: Some(ticks) };
        for (scope, limit, value) in [
            (account, Limit::MaxQuantity, LimitValue::Count(lots)),
            (account, Limit::MaxNotional, LimitValue::Amount(types::Notional(amount.into()))),
            (account, Limit::MaxPosition, LimitValue::None),
            (CLASS, Limit::Collar, LimitValue::Collar(Some(collar))),
        ] {
            set_limit(&mut orders, scope, limit, value).unwrap();
            let text = orders.limit(scope, limit).unwrap().to_string();
            prop_assert_eq!(scope.parse(limit, &text), Ok(value));
        }
        prop_assert_eq!(orders.limit(account, Limit::MaxQuantity), Some(LimitValue::Count(Quantity(lots).0)));
    }
}
