//! An operator's order in a record: number, operator, what is to be done, to whom, and for a limit which and
//! how much.

use super::{Fields, Head};
use crate::control::{Action, Order};
use orders::{KillScope, Limit, LimitScope, LimitValue};
use types::{AccountId, InstrumentId, LimitClass, SessionId, TradingDay};

/// What is to be done.
const KILL: u8 = 1;
const REVIVE: u8 = 2;
const CANCEL: u8 = 3;
const SET_LIMIT: u8 = 4;
const DISABLE: u8 = 5;
const ENABLE: u8 = 6;
const ROLL: u8 = 7;
const LET_REDUCE: u8 = 8;

/// To whom.
const FIRM: u8 = 0;
const ACCOUNT: u8 = 1;
const SESSION: u8 = 2;
const CLASS: u8 = 3;
const INSTRUMENT: u8 = 4;

pub(super) fn decode(fields: &mut Fields<'_>) -> Option<Order> {
    let (number, operator) = (fields.u64()?, fields.u32()?);
    let (action, scope) = (fields.u8()?, scope(fields.u8()?, fields.u32()?)?);
    let action = match action {
        KILL => Action::Kill(kill_scope(scope)?),
        LET_REDUCE => Action::LetReduce(kill_scope(scope)?),
        REVIVE => Action::Revive(kill_scope(scope)?),
        CANCEL => Action::Cancel(kill_scope(scope)?),
        SET_LIMIT => Action::SetLimit {
            scope,
            limit: Limit::from_u8(fields.u8()?)?,
            value: LimitValue::from_parts(fields.u8()?, i128::from_le_bytes(fields.take()?))?,
        },
        DISABLE => Action::Disable(session(scope)?),
        ENABLE => Action::Enable(session(scope)?),
        ROLL => Action::Roll(TradingDay(fields.u32()?)),
        _ => return None,
    };
    Some(Order {
        number,
        operator,
        action,
    })
}

pub(super) fn encode(order: &Order, head: Head) -> Head {
    let head = head.u64(order.number).u32(order.operator);
    let to = |head: Head, action, scope| put_scope(scope, head.u8(action));
    match order.action {
        Action::Kill(scope) => to(head, KILL, scope.into()),
        Action::LetReduce(scope) => to(head, LET_REDUCE, scope.into()),
        Action::Revive(scope) => to(head, REVIVE, scope.into()),
        Action::Cancel(scope) => to(head, CANCEL, scope.into()),
        Action::SetLimit { scope, limit, value } => {
            let (kind, amount) = value.to_parts();
            let head = to(head, SET_LIMIT, scope).u8(limit as u8);
            head.u8(kind).put(amount.to_le_bytes())
        }
        Action::Disable(session) => to(head, DISABLE, LimitScope::Session(session)),
        Action::Enable(session) => to(head, ENABLE, LimitScope::Session(session)),
        Action::Roll(day) => to(head, ROLL, LimitScope::Firm).u32(day.0),
    }
}

pub(super) fn scope(scope: u8, id: u32) -> Option<LimitScope> {
    Some(match scope {
        FIRM => LimitScope::Firm,
        ACCOUNT => LimitScope::Account(AccountId(id)),
        SESSION => LimitScope::Session(SessionId(id.try_into().ok()?)),
        CLASS => LimitScope::Class(LimitClass(id.try_into().ok()?)),
        INSTRUMENT => LimitScope::Instrument(InstrumentId(id)),
        _ => return None,
    })
}

pub(super) fn put_scope(scope: LimitScope, head: Head) -> Head {
    let (scope, id) = scope_parts(scope);
    head.u8(scope).u32(id)
}

const fn scope_parts(scope: LimitScope) -> (u8, u32) {
    match scope {
        LimitScope::Firm => (FIRM, 0),
        LimitScope::Account(id) => (ACCOUNT, id.0),
        LimitScope::Session(id) => (SESSION, id.0 as u32),
        LimitScope::Class(class) => (CLASS, class.0 as u32),
        LimitScope::Instrument(id) => (INSTRUMENT, id.0),
    }
}

const fn session(scope: LimitScope) -> Option<SessionId> {
    match scope {
        LimitScope::Session(id) => Some(id),
        _ => None,
    }
}

const fn kill_scope(scope: LimitScope) -> Option<KillScope> {
    match scope {
        LimitScope::Firm => Some(KillScope::Firm),
        LimitScope::Account(id) => Some(KillScope::Account(id)),
        LimitScope::Session(id) => Some(KillScope::Session(id)),
        LimitScope::Class(_) | LimitScope::Instrument(_) => None,
    }
}
