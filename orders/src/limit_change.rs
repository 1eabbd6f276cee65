//! Limits that change while orders are open.

use crate::config::{InstrumentLimits, InstrumentState, RateAction};
use crate::limit_table::{Limit, LimitScope};
use crate::limit_value::{LimitError, LimitValue};
use crate::report::Sink;
use crate::risk::Sizes;
use crate::stake::{SessionPlace, SharedScope, Stake};
use crate::state::{AccountState, Orders};
use crate::together::Most;
use core::ops::Range;
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

    /// The limits of a scope of which some span shards, with some of them changed as [`set_limits`](Self::set_limits) would;
    /// `None` of a scope that has none such, or when they could not be changed so.
    #[must_use]
    pub fn shared_scope(&self, scope: LimitScope, changes: &[(Limit, LimitValue)]) -> Option<SharedScope> {
        let all = changes.iter().copied();
        match scope {
            LimitScope::Firm => self.firm.with(all).ok().map(SharedScope::Firm),
            LimitScope::Account(id) => {
                let place = self.account_place(id)?;
                let limits = self.accounts[place.0 as usize].limits.with(all).ok()?;
                Some(SharedScope::Account(place, limits))
            }
            LimitScope::Session(id) => {
                let place = SessionPlace(self.session(id)?);
                let limits = self.sessions[place.0 as usize].limits.with(all).ok()?;
                Some(SharedScope::Session(place, limits))
            }
            LimitScope::Class(_) | LimitScope::Instrument(_) | LimitScope::Trade(..) => None,
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
                for session in &mut self.sessions {
                    session.sizes = Sizes::of(&session.limits, &self.firm);
                }
                self.count_for_firm(sink);
                self.value_positions(0..self.accounts.len(), sink);
            }
            LimitScope::Class(class) => {
                let limits = &mut self.classes[usize::from(class.0)];
                *limits = limits.with(all)?;
                for instrument in self.instruments.iter_mut().filter(|one| one.class == class) {
                    instrument.limits = instrument.limits.with(instrument.following(class, changes))?;
                    instrument.follow_limits(now);
                }
            }
            LimitScope::Instrument(id) => {
                let index = self.instrument(id).ok_or(LimitError::UnknownScope)? as usize;
                let new = self.instrument_with(&self.instruments[index], changes)?;
                let instrument = &mut self.instruments[index];
                instrument.limits = new;
                instrument.follow_limits(now);
                for &(limit, value) in changes {
                    instrument.set_own(limit, value != LimitValue::OfClass);
                }
            }
            LimitScope::Account(id) => {
                let index = self.any_account(id).ok_or(LimitError::UnknownScope)?;
                let account = &mut self.accounts[index];
                account.limits = account.limits.with(all)?;
                self.value_positions(index..index + 1, sink);
            }
            LimitScope::Session(id) => {
                let index = self.session(id).ok_or(LimitError::UnknownScope)?;
                let session = &mut self.sessions[index as usize];
                session.limits = session.limits.with(all)?;
                session.sizes = Sizes::of(&session.limits, &self.firm);
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

    /// Begins to value the positions of those of these accounts for which there is a limit by their value for the first time.
    fn value_positions<S: Sink>(&mut self, accounts: Range<usize>, sink: &mut S) {
        let by_firm = self.firm.are_valued();
        let begins = |account: &AccountState| !account.valued && (by_firm || account.limits.are_valued());
        if !self.accounts[accounts.clone()].iter().any(begins) {
            return;
        }
        for position in self.positions.entries_mut() {
            let account = &mut self.accounts[position.account as usize];
            if accounts.contains(&(position.account as usize)) && begins(account) {
                account.value_anew(position);
            }
        }
        for index in accounts {
            let account = &mut self.accounts[index];
            account.valued |= begins(account);
            self.settle_account(u32::try_from(index).expect("accounts are bounded"), sink);
        }
    }

    /// Whether what accounts take here counts for the firm, as it has, or had, limits that span shards.
    #[must_use]
    pub const fn counts_firm(&self) -> bool {
        self.firm_is_counted
    }

    /// Begins to count for the firm, when it has a limit for the first time.
    fn count_for_firm<S: Sink>(&mut self, sink: &mut S) {
        if self.firm_is_counted || !self.firm.are_counted() {
            return;
        }
        self.firm_is_counted = true;
        let mut taken = Stake::NONE;
        for account in &self.accounts {
            taken += account.exposure.stake;
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
    /// Brings what is made of its limits up to date.
    fn follow_limits(&mut self, now: Timestamp) {
        self.rate = self.rate.changed(now, self.limits.rate);
        self.most = Most::of(&self.limits);
    }

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
