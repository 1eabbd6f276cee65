//! An operator's order in a record: number, operator, what is to be done, to whom, and for a limit which and
//! how much.

use super::{Fields, Head};
use crate::control::{Action, Order};
use orders::{KillScope, Limit, LimitScope, LimitValue, Party, Traded};
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
/// And what of: a second id.
const ACCOUNT_CLASS: u8 = 5;
const ACCOUNT_INSTRUMENT: u8 = 6;
const SESSION_CLASS: u8 = 7;
const SESSION_INSTRUMENT: u8 = 8;

pub(super) fn decode(fields: &mut Fields<'_>) -> Option<Order> {
    let (number, operator) = (fields.u64()?, fields.u32()?);
    let (action, scope) = (fields.u8()?, scope(fields)?);
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

pub(super) fn scope(fields: &mut Fields<'_>) -> Option<LimitScope> {
    let (scope, id) = (fields.u8()?, fields.u32()?);
    let account = Party::Account(AccountId(id));
    let session = || Some(SessionId(id.try_into().ok()?));
    let class = |id: u32| Some(LimitClass(id.try_into().ok()?));
    Some(match scope {
        FIRM => LimitScope::Firm,
        ACCOUNT => LimitScope::Account(AccountId(id)),
        SESSION => LimitScope::Session(session()?),
        CLASS => LimitScope::Class(class(id)?),
        INSTRUMENT => LimitScope::Instrument(InstrumentId(id)),
        ACCOUNT_CLASS => LimitScope::Trade(account, Traded::Class(class(fields.u32()?)?)),
        ACCOUNT_INSTRUMENT => LimitScope::Trade(account, Traded::Instrument(InstrumentId(fields.u32()?))),
        SESSION_CLASS => LimitScope::Trade(Party::Session(session()?), Traded::Class(class(fields.u32()?)?)),
        SESSION_INSTRUMENT => LimitScope::Trade(
            Party::Session(session()?),
            Traded::Instrument(InstrumentId(fields.u32()?)),
        ),
        _ => return None,
    })
}

pub(super) fn put_scope(scope: LimitScope, head: Head) -> Head {
    match scope {
        LimitScope::Firm => head.u8(FIRM).u32(0),
        LimitScope::Account(id) => head.u8(ACCOUNT).u32(id.0),
        LimitScope::Session(id) => head.u8(SESSION).u32(id.0.into()),
        LimitScope::Class(class) => head.u8(CLASS).u32(class.0.into()),
        LimitScope::Instrument(id) => head.u8(INSTRUMENT).u32(id.0),
        LimitScope::Trade(party, traded) => {
            let (scope, of) = match (party, traded) {
                (Party::Account(_), Traded::Class(class)) => (ACCOUNT_CLASS, class.0.into()),
                (Party::Account(_), Traded::Instrument(id)) => (ACCOUNT_INSTRUMENT, id.0),
                (Party::Session(_), Traded::Class(class)) => (SESSION_CLASS, class.0.into()),
                (Party::Session(_), Traded::Instrument(id)) => (SESSION_INSTRUMENT, id.0),
            };
            let id = match party {
                Party::Account(id) => id.0,
                Party::Session(id) => id.0.into(),
            };
            head.u8(scope).u32(id).u32(of)
        }
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
        LimitScope::Class(_) | LimitScope::Instrument(_) | LimitScope::Trade(..) => None,
    }
}
