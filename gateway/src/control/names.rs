//! The scopes of limits by the names that the config gives them.

use super::{LimitScopeName, PartyName, TradedName};
use crate::config::Config;
use orders::{LimitScope, Party, Traded};
use types::{AccountId, InstrumentId, LimitClass, SessionId};

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
        LimitScopeName::Trade { by, of } => {
            let party = match *by {
                PartyName::Account(id) => LimitScopeName::Account(id),
                PartyName::Session(id) => LimitScopeName::Session(id),
            };
            let traded = match of.clone() {
                TradedName::Class(name) => LimitScopeName::Class(name),
                TradedName::Instrument(symbol) => LimitScopeName::Instrument(symbol),
            };
            let party = match scope(&party, config)? {
                LimitScope::Account(id) => Party::Account(id),
                LimitScope::Session(id) => Party::Session(id),
                _ => return None,
            };
            let traded = match scope(&traded, config)? {
                LimitScope::Class(class) => Traded::Class(class),
                LimitScope::Instrument(id) => Traded::Instrument(id),
                _ => return None,
            };
            LimitScope::Trade(party, traded)
        }
    })
}

/// What an operator calls a scope.
pub(crate) fn scope_name(scope: LimitScope, config: &Config) -> LimitScopeName {
    match scope {
        LimitScope::Firm => LimitScopeName::Firm,
        LimitScope::Class(class) => LimitScopeName::Class(class_name(class, config)),
        LimitScope::Instrument(id) => LimitScopeName::Instrument(symbol(id, config)),
        LimitScope::Account(id) => LimitScopeName::Account(id.0),
        LimitScope::Session(id) => LimitScopeName::Session(id.0),
        LimitScope::Trade(party, traded) => LimitScopeName::Trade {
            by: match party {
                Party::Account(id) => PartyName::Account(id.0),
                Party::Session(id) => PartyName::Session(id.0),
            },
            of: match traded {
                Traded::Class(class) => TradedName::Class(class_name(class, config)),
                Traded::Instrument(id) => TradedName::Instrument(symbol(id, config)),
            },
        },
    }
}

fn symbol(id: InstrumentId, config: &Config) -> String {
    let symbol = config.instrument(id).map(|instrument| instrument.symbol.to_string());
    symbol.unwrap_or_default()
}

pub(super) fn class_name(class: LimitClass, config: &Config) -> String {
    config.classes.get(usize::from(class.0)).cloned().unwrap_or_default()
}
