//! The scopes of limits by the names that the config gives them.

use super::LimitScopeName;
use crate::config::Config;
use orders::LimitScope;
use types::{AccountId, LimitClass, SessionId};

/// The scope that an operator means; `None` when the config has none such.
pub(super) fn scope(name: &LimitScopeName, config: &Config) -> Option<LimitScope> {
    Some(match name {
        LimitScopeName::Firm => LimitScope::Firm,
        LimitScopeName::Class(name) => {
            let place = config.classes.iter().position(|class| class == name)?;
            LimitScope::Class(LimitClass(place.try_into().ok()?))
        }
        LimitScopeName::Instrument(symbol) => {
            let mut instruments = config.instruments.iter();
            let instrument = instruments.find(|instrument| instrument.symbol.as_str() == symbol)?;
            LimitScope::Instrument(instrument.id)
        }
        LimitScopeName::Account(id) => {
            let mut accounts = config.orders.first()?.accounts.iter();
            LimitScope::Account(accounts.find(|account| account.id == AccountId(*id))?.id)
        }
        LimitScopeName::Session(id) => {
            let mut sessions = config.sessions.iter();
            LimitScope::Session(sessions.find(|session| session.id == SessionId(*id))?.id)
        }
    })
}

/// What an operator calls a scope.
pub(crate) fn scope_name(scope: LimitScope, config: &Config) -> LimitScopeName {
    match scope {
        LimitScope::Firm => LimitScopeName::Firm,
        LimitScope::Class(class) => LimitScopeName::Class(class_name(class, config)),
        LimitScope::Instrument(id) => {
            let symbol = config.instrument(id).map(|instrument| instrument.symbol.to_string());
            LimitScopeName::Instrument(symbol.unwrap_or_default())
        }
        LimitScope::Account(id) => LimitScopeName::Account(id.0),
        LimitScope::Session(id) => LimitScopeName::Session(id.0),
    }
}

pub(super) fn class_name(class: LimitClass, config: &Config) -> String {
    config.classes.get(usize::from(class.0)).cloned().unwrap_or_default()
}
