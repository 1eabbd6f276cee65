//! Limits that change while orders are open.

use crate::config::InstrumentState;
use crate::limit_table::{Limit, LimitScope};
use crate::limit_value::{LimitError, LimitValue};
use crate::state::Orders;
use types::{InstrumentId, LimitClass, Timestamp};

impl Orders {
    /// A limit as it is in force; `None` when it does not stand there, or there is no such scope here.
    #[must_use]
    pub fn limit(&self, scope: LimitScope, limit: Limit) -> Option<LimitValue> {
        match scope {
            LimitScope::Firm => self.firm.value(limit),
            LimitScope::Class(class) => self.classes.get(usize::from(class.0))?.value(limit),
            LimitScope::Instrument(id) => self.instruments[self.instrument(id)? as usize].limits.value(limit),
            LimitScope::Account(id) => self.accounts[self.any_account(id)?].limits.value(limit),
            LimitScope::Session(id) => self.sessions[self.session(id)? as usize].limits.value(limit),
        }
    }

    /// The class that a limit of an instrument is of; `None` when the instrument has its own, or is not here.
    #[must_use]
    pub fn class_of_limit(&self, id: InstrumentId, limit: Limit) -> Option<LimitClass> {
        let instrument = &self.instruments[self.instrument(id)? as usize];
        (!instrument.has_own(limit)).then_some(instrument.class)
    }

    /// How many scopes have limits here: to look at all of them a few at a time.
    #[must_use]
    pub fn limit_scopes(&self) -> u32 {
        let count = 1 + self.classes.len() + self.accounts.len() + self.sessions.len() + self.instruments.len();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// One of them: the firm, then classes, accounts, sessions and instruments in the order of the config.
    #[must_use]
    pub fn limit_scope(&self, place: u32) -> Option<LimitScope> {
        let Some(place) = (place as usize).checked_sub(1) else {
            return Some(LimitScope::Firm);
        };
        let Some(place) = place.checked_sub(self.classes.len()) else {
            return Some(LimitScope::Class(LimitClass(place.try_into().ok()?)));
        };
        if let Some(account) = self.accounts.get(place) {
            return Some(LimitScope::Account(account.id));
        }
        let place = place - self.accounts.len();
        if let Some(session) = self.sessions.get(place) {
            return Some(LimitScope::Session(session.id));
        }
        let instrument = self.instruments.get(place - self.sessions.len())?;
        Some(LimitScope::Instrument(instrument.id))
    }

    /// Whether [`set_limit`](Self::set_limit) would change the limit.
    ///
    /// # Errors
    /// Why not.
    pub fn check_limit(&self, scope: LimitScope, limit: Limit, value: LimitValue) -> Result<(), LimitError> {
        match scope {
            LimitScope::Firm => {
                is_counted(self.firm_is_counted, value)?;
                self.firm.with(limit, value).map(drop)
            }
            LimitScope::Class(class) => {
                let limits = self.classes.get(usize::from(class.0)).ok_or(LimitError::UnknownScope)?;
                limits.with(limit, value)?;
                let mut followers = self.instruments.iter().filter(|one| one.follows(class, limit));
                followers.try_for_each(|instrument| instrument.limits.with(limit, value).map(drop))
            }
            LimitScope::Instrument(id) => {
                let index = self.instrument(id).ok_or(LimitError::UnknownScope)?;
                let instrument = &self.instruments[index as usize];
                let value = self.resolve(instrument, limit, value)?;
                instrument.limits.with(limit, value).map(drop)
            }
            LimitScope::Account(id) => {
                let account = self.any_account(id).ok_or(LimitError::UnknownScope)?;
                let account = &self.accounts[account];
                let counted = match limit {
                    Limit::MaxGross | Limit::MaxNet | Limit::MaxLoss => account.valued,
                    Limit::MaxOpenNotional => account.shared_limit,
                    _ => true,
                };
                is_counted(counted, value)?;
                account.limits.with(limit, value).map(drop)
            }
            LimitScope::Session(id) => {
                let session = self.session(id).ok_or(LimitError::UnknownScope)?;
                self.sessions[session as usize].limits.with(limit, value).map(drop)
            }
        }
    }

    /// Changes a limit: it is in force for the next order. What is open stays, also when there is more of it than the limit
    /// now allows. A limit of a class is changed for the instruments that have not their own.
    ///
    /// # Errors
    /// As [`check_limit`](Self::check_limit); then nothing is changed.
    pub fn set_limit(
        &mut self,
        now: Timestamp,
        scope: LimitScope,
        limit: Limit,
        value: LimitValue,
    ) -> Result<(), LimitError> {
        self.check_limit(scope, limit, value)?;
        self.version += 1;
        match scope {
            LimitScope::Firm => self.firm = self.firm.with(limit, value)?,
            LimitScope::Class(class) => {
                let limits = &mut self.classes[usize::from(class.0)];
                *limits = limits.with(limit, value)?;
                let instruments = self.instruments.iter_mut();
                for instrument in instruments.filter(|one| one.follows(class, limit)) {
                    instrument.limits = instrument.limits.with(limit, value)?;
                    instrument.rate.change(now, instrument.limits.rate);
                }
            }
            LimitScope::Instrument(id) => {
                let index = self.instrument(id).ok_or(LimitError::UnknownScope)? as usize;
                let new = self.resolve(&self.instruments[index], limit, value)?;
                let instrument = &mut self.instruments[index];
                instrument.limits = instrument.limits.with(limit, new)?;
                instrument.rate.change(now, instrument.limits.rate);
                instrument.set_own(limit, value != LimitValue::OfClass);
            }
            LimitScope::Account(id) => {
                let index = self.any_account(id).ok_or(LimitError::UnknownScope)?;
                let account = &mut self.accounts[index];
                account.limits = account.limits.with(limit, value)?;
                account.rate.change(now, account.limits.rate);
            }
            LimitScope::Session(id) => {
                let index = self.session(id).ok_or(LimitError::UnknownScope)?;
                let session = &mut self.sessions[index as usize];
                session.limits = session.limits.with(limit, value)?;
                session.rate.change(now, session.limits.rate);
                if matches!(limit, Limit::MaxRepeats | Limit::RepeatsWithin) {
                    session.repeats.change(session.limits.repeats);
                }
            }
        }
        Ok(())
    }

    /// A value for an instrument, which may be that of its class.
    fn resolve(&self, instrument: &InstrumentState, limit: Limit, value: LimitValue) -> Result<LimitValue, LimitError> {
        match value {
            LimitValue::OfClass => {
                let class = &self.classes[usize::from(instrument.class.0)];
                class.value(limit).ok_or(LimitError::NotHere)
            }
            own => Ok(own),
        }
    }
}

/// Whether a limit that spans shards can be set.
fn is_counted(counted: bool, value: LimitValue) -> Result<(), LimitError> {
    if counted || value == LimitValue::None {
        Ok(())
    } else {
        Err(LimitError::NotCounted)
    }
}

impl InstrumentState {
    /// Whether a limit is its own, and not its class's.
    pub(crate) const fn has_own(&self, limit: Limit) -> bool {
        self.own & (1 << limit as u8) != 0
    }

    /// Whether a limit is that of this class.
    fn follows(&self, class: LimitClass, limit: Limit) -> bool {
        self.class == class && !self.has_own(limit)
    }

    pub(crate) const fn set_own(&mut self, limit: Limit, is_own: bool) {
        let bit = 1 << limit as u8;
        self.own = if is_own { self.own | bit } else { self.own & !bit };
    }
}
