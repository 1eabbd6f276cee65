//! Limits that change while orders are open.

use crate::config::{InstrumentLimits, InstrumentState, RateAction};
use crate::limit_table::{Limit, LimitScope};
use crate::limit_value::{LimitError, LimitValue};
use crate::report::Sink;
use crate::stake::Stake;
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
            LimitScope::Trade(party, traded) if limit == Limit::Restricted => {
                self.is_restricted(party, traded).map(LimitValue::Switch)
            }
            LimitScope::Trade(..) => None,
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
        u32::try_from(count + self.restriction_count()).unwrap_or(u32::MAX)
    }

    /// One of them: the firm, then classes, accounts, sessions and instruments in the order of the config, then what is closed
    /// to single accounts and sessions.
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
        let place = place - self.sessions.len();
        match self.instruments.get(place) {
            Some(instrument) => Some(LimitScope::Instrument(instrument.id)),
            None => self.restriction_scope(place - self.instruments.len()),
        }
    }

    /// Whether [`set_limits`](Self::set_limits) would change the limits.
    ///
    /// # Errors
    /// Why not.
    pub fn check_limits(&self, scope: LimitScope, changes: &[(Limit, LimitValue)]) -> Result<(), LimitError> {
        let all = changes.iter().copied();
        let queues = |&(_, value): &_| value == LimitValue::RateAction(RateAction::Queue);
        if changes.iter().any(queues) && !self.queue.is_there() {
            return Err(LimitError::NoRateQueue);
        }
        match scope {
            LimitScope::Firm => self.firm.with(all).map(drop),
            LimitScope::Class(class) => {
                let limits = self.classes.get(usize::from(class.0)).ok_or(LimitError::UnknownScope)?;
                limits.with(all)?;
                let mut instruments = self.instruments.iter();
                instruments.try_for_each(|one| one.limits.with(one.following(class, changes)).map(drop))
            }
            LimitScope::Instrument(id) => {
                let index = self.instrument(id).ok_or(LimitError::UnknownScope)?;
                self.instrument_with(&self.instruments[index as usize], changes)
                    .map(drop)
            }
            LimitScope::Account(id) => {
                let account = self.any_account(id).ok_or(LimitError::UnknownScope)?;
                self.accounts[account].limits.with(all).map(drop)
            }
            LimitScope::Session(id) => {
                let session = self.session(id).ok_or(LimitError::UnknownScope)?;
                self.sessions[session as usize].limits.with(all).map(drop)
            }
            LimitScope::Trade(party, traded) => self.check_restriction(party, traded, changes).map(drop),
        }
    }

    /// Changes limits of a scope, together: they are in force for the next order. What is open stays, also when there is more
    /// of it than a limit now allows. A limit of a class is changed for the instruments that have not their own. What was not
    /// counted because no limit asked for it is counted from the start of the day.
    ///
    /// # Errors
    /// As [`check_limits`](Self::check_limits); then nothing is changed.
    pub fn set_limits<S: Sink>(
        &mut self,
        now: Timestamp,
        scope: LimitScope,
        changes: &[(Limit, LimitValue)],
        sink: &mut S,
    ) -> Result<(), LimitError> {
        self.check_limits(scope, changes)?;
        self.version += 1;
        self.queue.look_again();
        let all = changes.iter().copied();
        match scope {
            LimitScope::Firm => {
                self.firm = self.firm.with(all)?;
                self.count_for_firm(sink);
            }
            LimitScope::Class(class) => {
                let limits = &mut self.classes[usize::from(class.0)];
                *limits = limits.with(all)?;
                for instrument in self.instruments.iter_mut().filter(|one| one.class == class) {
                    instrument.limits = instrument.limits.with(instrument.following(class, changes))?;
                    instrument.rate.change(now, instrument.limits.rate);
                }
            }
            LimitScope::Instrument(id) => {
                let index = self.instrument(id).ok_or(LimitError::UnknownScope)? as usize;
                let new = self.instrument_with(&self.instruments[index], changes)?;
                let instrument = &mut self.instruments[index];
                instrument.limits = new;
                instrument.rate.change(now, instrument.limits.rate);
                for &(limit, value) in changes {
                    instrument.set_own(limit, value != LimitValue::OfClass);
                }
            }
            LimitScope::Account(id) => {
                let index = self.any_account(id).ok_or(LimitError::UnknownScope)?;
                let account = &mut self.accounts[index];
                account.limits = account.limits.with(all)?;
                account.rate.change(now, account.limits.rate);
                self.value_positions(index, sink);
            }
            LimitScope::Session(id) => {
                let index = self.session(id).ok_or(LimitError::UnknownScope)?;
                let session = &mut self.sessions[index as usize];
                session.limits = session.limits.with(all)?;
                session.rate.change(now, session.limits.rate);
                let is_of_repeats = |&(limit, _): &_| matches!(limit, Limit::MaxRepeats | Limit::RepeatsWithin);
                if changes.iter().any(is_of_repeats) {
                    session.repeats.change(session.limits.repeats);
                }
            }
            LimitScope::Trade(party, traded) => {
                let (restriction, closes) = self.check_restriction(party, traded, changes)?;
                self.restrict(restriction, closes);
            }
        }
        Ok(())
    }

    /// Begins to value the positions of an account that has a limit by their value for the first time.
    fn value_positions<S: Sink>(&mut self, account: usize, sink: &mut S) {
        let state = &mut self.accounts[account];
        if state.valued || !state.limits.are_valued() {
            return;
        }
        state.valued = true;
        let index = u32::try_from(account).expect("accounts are bounded");
        for position in self
            .positions
            .entries_mut()
            .iter_mut()
            .filter(|one| one.account == index)
        {
            state.restake(position);
        }
        self.settle(index, sink);
    }

    /// Begins to count for the firm, when it has a limit for the first time.
    fn count_for_firm<S: Sink>(&mut self, sink: &mut S) {
        let has_limit = self.firm.max_open_notional.is_some() || self.firm.max_open_orders.is_some();
        if self.firm_is_counted || !has_limit {
            return;
        }
        self.firm_is_counted = true;
        let mut taken = Stake::NONE;
        for account in &self.accounts {
            taken.notional += account.exposure.held + account.exposure.used;
            taken.orders += i64::from(account.exposure.open_orders);
        }
        sink.count_firm(&taken);
    }

    /// An instrument's limits with some changed, each of which may be that of its class.
    fn instrument_with(
        &self,
        instrument: &InstrumentState,
        changes: &[(Limit, LimitValue)],
    ) -> Result<InstrumentLimits, LimitError> {
        let class = &self.classes[usize::from(instrument.class.0)];
        let values = changes.iter().map(|&(limit, value)| match value {
            // What the class has not is no limit of an instrument, which is found where it is put in.
            LimitValue::OfClass => (limit, class.value(limit).unwrap_or(value)),
            own => (limit, own),
        });
        instrument.limits.with(values)
    }
}

impl InstrumentState {
    /// Whether a limit is its own, and not its class's.
    pub(crate) const fn has_own(&self, limit: Limit) -> bool {
        self.own & (1 << limit as u8) != 0
    }

    /// Those changes of this class's limits that are changes of its own.
    fn following(
        &self,
        class: LimitClass,
        changes: &[(Limit, LimitValue)],
    ) -> impl Iterator<Item = (Limit, LimitValue)> {
        let (own, is_of_class) = (self.own, self.class == class);
        changes
            .iter()
            .copied()
            .filter(move |&(limit, _)| is_of_class && own & (1 << limit as u8) == 0)
    }

    pub(crate) const fn set_own(&mut self, limit: Limit, is_own: bool) {
        let bit = 1 << limit as u8;
        self.own = if is_own { self.own | bit } else { self.own & !bit };
    }
}
