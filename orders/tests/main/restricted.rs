//! Classes and instruments that are closed to single accounts and sessions, and opened, while orders are open.

use crate::fixture::*;
use orders::{Limit, LimitError, LimitScope, LimitValue, Orders, Party, Traded};
use types::{AccountId, InstrumentId, LimitClass, NewOrder, Reason, SessionId};

const CLASS: Traded = Traded::Class(LimitClass(0));
const ALFA: Traded = Traded::Instrument(ALPHA);
const ACCOUNT: Party = Party::Account(PLAIN);
const SESSION: Party = Party::Session(SESSIONS[0]);

fn set(orders: &mut Orders, party: Party, traded: Traded, closes: bool) -> Result<(), LimitError> {
    let scope = LimitScope::Trade(party, traded);
    let set = set_limit(orders, scope, Limit::Restricted, LimitValue::Switch(closes));
    if set.is_ok() {
        assert_eq!(orders.limit(scope, Limit::Restricted), Some(LimitValue::Switch(closes)));
    }
    set
}

fn refusal(orders: &mut Orders, order: &NewOrder) -> Option<Reason> {
    enter(orders, order, &REFERENCE).err()
}

/// What is listed as closed.
fn closed(orders: &Orders) -> Vec<LimitScope> {
    let scopes = (0..orders.limit_scopes()).map(|place| orders.limit_scope(place).expect("a scope in each place"));
    scopes.filter(|scope| matches!(scope, LimitScope::Trade(..))).collect()
}

#[test]
fn what_is_closed_to_one_is_refused_from_the_next_order_on_until_it_is_open_again() {
    for (party, traded) in [(ACCOUNT, CLASS), (ACCOUNT, ALFA), (SESSION, CLASS), (SESSION, ALFA)] {
        let mut orders = orders();
        for id in [1, 2] {
            accepted(&mut orders, &new_order(id));
        }
        set(&mut orders, party, traded, true).unwrap();
        assert_eq!(closed(&orders), [LimitScope::Trade(party, traded)]);
        assert_eq!(refusal(&mut orders, &new_order(3)), Some(Reason::Restricted));
        let more = replace(&mut orders, &replace_of(&new_order(1), 4, 100, 11));
        assert_eq!(more.err(), Some(Reason::Restricted));
        assert!(replace(&mut orders, &replace_of(&new_order(1), 4, 100, 9)).is_ok());
        assert!(cancel(&mut orders, &cancel_of(&new_order(2), 5)).is_ok());
        // The other account by another session, and an instrument of another class.
        let other = NewOrder {
            account: SHARED,
            session: SESSIONS[2],
            ..new_order(1)
        };
        assert_eq!(refusal(&mut orders, &other), None, "{party:?} {traded:?}");
        let beta = NewOrder {
            instrument: BETA,
            ..new_order(6)
        };
        assert_eq!(refusal(&mut orders, &beta), None, "{party:?} {traded:?}");
        set(&mut orders, party, traded, false).unwrap();
        assert_eq!(closed(&orders), []);
        assert_eq!(refusal(&mut orders, &new_order(7)), None, "{party:?} {traded:?}");
        orders.audit().unwrap();
    }
}

#[test]
fn one_closing_is_not_ended_by_the_end_of_another() {
    let mut orders = orders();
    for (party, traded) in [(ACCOUNT, ALFA), (SESSION, ALFA), (ACCOUNT, CLASS)] {
        set(&mut orders, party, traded, true).unwrap();
    }
    for (number, (party, traded)) in [(ACCOUNT, CLASS), (ACCOUNT, ALFA)].into_iter().enumerate() {
        set(&mut orders, party, traded, false).unwrap();
        // A second time it changes nothing.
        set(&mut orders, party, traded, false).unwrap();
        let order = new_order(1 + number as u64);
        assert_eq!(refusal(&mut orders, &order), Some(Reason::Restricted), "{traded:?}");
    }
    assert_eq!(closed(&orders), [LimitScope::Trade(SESSION, ALFA)]);
    set(&mut orders, SESSION, ALFA, false).unwrap();
    assert_eq!(refusal(&mut orders, &new_order(9)), None);
}

#[test]
fn a_full_table_refuses_one_more_and_takes_it_when_something_is_opened() {
    let mut orders = orders();
    let all = [(ACCOUNT, ALFA), (SESSION, ALFA), (ACCOUNT, CLASS), (SESSION, CLASS)];
    for (party, traded) in &all[..RESTRICTIONS as usize] {
        set(&mut orders, *party, *traded, true).unwrap();
    }
    assert_eq!(orders.restrictions_left(), 0);
    let refused = set(&mut orders, SESSION, CLASS, true);
    assert_eq!(refused, Err(LimitError::NoRoom));
    assert!(!closed(&orders).contains(&LimitScope::Trade(SESSION, CLASS)));
    set(&mut orders, ACCOUNT, ALFA, true).expect("it is closed already");
    set(&mut orders, ACCOUNT, ALFA, false).unwrap();
    set(&mut orders, SESSION, CLASS, true).unwrap();
    assert_eq!(refusal(&mut orders, &new_order(1)), Some(Reason::Restricted));
}

#[test]
fn what_is_no_closing_is_refused_and_changes_nothing() {
    let mut orders = orders();
    let one = LimitScope::Trade(ACCOUNT, ALFA);
    let closes = (Limit::Restricted, LimitValue::Switch(true));
    for (scope, changes, error) in [
        (
            LimitScope::Trade(Party::Account(AccountId(1)), ALFA),
            &[closes][..],
            LimitError::UnknownScope,
        ),
        (
            LimitScope::Trade(Party::Session(SessionId(99)), ALFA),
            &[closes],
            LimitError::UnknownScope,
        ),
        (
            LimitScope::Trade(ACCOUNT, Traded::Instrument(InstrumentId(1))),
            &[closes],
            LimitError::UnknownScope,
        ),
        (
            LimitScope::Trade(ACCOUNT, Traded::Class(LimitClass(63))),
            &[closes],
            LimitError::UnknownScope,
        ),
        (
            LimitScope::Trade(ACCOUNT, Traded::Class(LimitClass(64))),
            &[closes],
            LimitError::ClassTooHigh,
        ),
        (one, &[(Limit::MarketOrders, closes.1)], LimitError::NotHere),
        (one, &[], LimitError::NotHere),
        (
            one,
            &[(Limit::Restricted, LimitValue::OfClass)],
            LimitError::Form {
                form: "true or false",
                or_none: false,
            },
        ),
    ] {
        let refused = orders.set_limits(NOW, scope, changes, &mut Outputs::default());
        assert_eq!(refused, Err(error), "{scope:?} {changes:?}");
    }
    assert_eq!(one.parse(Limit::Restricted, "true"), Ok(closes.1));
    assert_eq!(one.parse(Limit::MarketOrders, "true"), Err(LimitError::NotHere));
    assert_eq!(closed(&orders), []);
    assert_eq!(refusal(&mut orders, &new_order(1)), None);
}
