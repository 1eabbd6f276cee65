//! What operators order and ask of a shard.

use super::Shard;
use crate::config::Config;
use crate::config_limits::{ScopeLimits, closes};
use crate::control::{Action, Change, Given, LimitView, Order, Origin, Refusal, SessionView, scope_name};
use crate::crossing::Content;
use crate::effects::Effects;
use crate::limits::MAX_DAYS_AHEAD;
use orders::{KillScope, Limit, LimitError, LimitScope, LimitValue};
use std::collections::BTreeMap;
use types::{Reason, SessionId, ShardId, Timestamp};

impl Shard {
    /// Whether an order can be obeyed.
    ///
    /// # Errors
    /// Why not; then every shard says so.
    pub(crate) fn check_control(&self, action: &Action) -> Result<(), Refusal> {
        match *action {
            Action::Kill(scope) | Action::LetReduce(scope) | Action::Revive(scope) | Action::Cancel(scope) => {
                self.orders.stop(scope)?;
            }
            Action::SetLimit { scope, limit, value } => {
                if self.is_remembered(scope, value) && !self.changes.has_room_for(scope, limit) {
                    return Err(Refusal::TooManyChanges);
                }
                if !self.is_elsewhere(scope) {
                    self.orders.check_limits(scope, &[(limit, value)])?;
                }
            }
            Action::Disable(session) | Action::Enable(session) => {
                self.orders.stop(KillScope::Session(session))?;
            }
            Action::Roll(day) => {
                let today = self.orders.day();
                match day.days_since(today) {
                    ..=0 => return Err(Refusal::PastDay(today)),
                    1..=MAX_DAYS_AHEAD => {}
                    _ => return Err(Refusal::FarDay(today)),
                }
            }
        }
        Ok(())
    }

    /// An operator's order. One that `check_control` would refuse does nothing.
    pub fn on_control<E: Effects>(&mut self, now: Timestamp, order: &Order, effects: &mut E) {
        self.given.remember(*order);
        let _: Result<(), Refusal> = match order.action {
            Action::Kill(scope) => self.orders.kill(scope).map_err(Refusal::from),
            Action::LetReduce(scope) => self.orders.let_reduce(scope).map_err(Refusal::from),
            Action::Revive(scope) => self.orders.revive(scope).map_err(Refusal::from),
            Action::Cancel(scope) => self.orders.cancel_all(scope).map_err(Refusal::from),
            Action::SetLimit { scope, limit, value } => self.set_limit(now, order, scope, limit, value, effects),
            Action::Disable(session) => self.disable(now, session, effects),
            Action::Enable(session) => {
                self.sessions.set_disabled(session, false);
                Ok(())
            }
            Action::Roll(day) => self
                .check_control(&order.action)
                .map(|()| self.on_day_roll(now, day, effects)),
        };
        self.send_waiting(now, effects);
    }

    /// Its client hears why and is logged out; with that its orders go the way that the session has for it. One that comes in
    /// by a link cannot be logged out: its orders go that way at once, and new ones are refused.
    fn disable<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) -> Result<(), Refusal> {
        self.sessions.set_disabled(session, true);
        self.log_out(now, session, Reason::SessionDisabled, effects);
        Ok(())
    }

    /// Ends a session of this shard from here; with that its orders go the way that the session has for it.
    pub(super) fn log_out<E: Effects>(&mut self, now: Timestamp, session: SessionId, why: Reason, effects: &mut E) {
        if self.sessions.shard_elsewhere(session).is_none() && self.sessions.log_out(now, session, why, effects) {
            self.orders.on_session_lost(session);
            self.tell_other_shards(Content::SessionLost(session));
        }
    }

    /// What is known here of the session with this number.
    pub(crate) fn session_view(&self, session: SessionId) -> Option<SessionView> {
        let home = self.sessions.home(session)?;
        Some(SessionView {
            session,
            open_orders: self.orders.open_orders_of(session),
            home,
        })
    }

    /// The highest number of a session.
    pub(crate) fn last_session(&self) -> SessionId {
        self.sessions.last()
    }

    /// Whether an operator has disabled a session.
    pub(crate) fn is_disabled(&self, session: SessionId) -> bool {
        self.sessions.is_disabled(session)
    }

    fn set_limit<E: Effects>(
        &mut self,
        now: Timestamp,
        order: &Order,
        scope: LimitScope,
        limit: Limit,
        value: LimitValue,
        effects: &mut E,
    ) -> Result<(), Refusal> {
        self.check_control(&order.action)?;
        if !self.is_elsewhere(scope) {
            self.change_limits(now, scope, &[(limit, value)], effects)?;
        }
        if self.is_remembered(scope, value) {
            let change = Change {
                number: order.number,
                operator: order.operator,
                time: now,
            };
            self.changes.note(scope, limit, change);
        } else {
            self.changes.forget(scope, limit);
        }
        self.share_limits(now, scope, effects);
        Ok(())
    }

    /// Limits that the config has changed since the last start, or all of a first start. They are in force in the place of
    /// what operators said of them.
    pub fn on_config_limits<E: Effects>(
        &mut self,
        now: Timestamp,
        scope: LimitScope,
        changes: &[(Limit, LimitValue)],
        effects: &mut E,
    ) {
        if self.change_limits(now, scope, changes, effects).is_err() {
            // It was looked at before.
            return;
        }
        for &(limit, value) in changes {
            self.changes.follow_config(scope, limit, value);
        }
        self.share_limits(now, scope, effects);
    }

    fn change_limits<E: Effects>(
        &mut self,
        now: Timestamp,
        scope: LimitScope,
        changes: &[(Limit, LimitValue)],
        effects: &mut E,
    ) -> Result<(), LimitError> {
        let (orders, mut reports) = self.reports(now, effects);
        orders.set_limits(now, scope, changes, &mut reports)?;
        if changes.iter().any(|&(limit, _)| limit == Limit::MaxQuantity) {
            self.filter.follow(&self.instruments, &self.orders, scope);
            if matches!(scope, LimitScope::Class(_) | LimitScope::Instrument(_)) {
                effects.prefilter_limits(&self.instruments, &self.orders);
            }
        }
        Ok(())
    }

    /// Tells the limits of a scope that span shards where they are held. The first shard alone does: others that are behind
    /// would turn them back.
    fn share_limits<E: Effects>(&self, now: Timestamp, scope: LimitScope, effects: &mut E) {
        if self.id == ShardId(0)
            && let Some(limits) = self.orders.shared_scope(scope, &[])
        {
            effects.limit_shared(now, &limits);
        }
    }

    /// A limit as it is in force, and who said so; `None` when it does not stand there, or not on this shard.
    pub(crate) fn limit(&self, scope: LimitScope, limit: Limit) -> Option<LimitView> {
        let value = self.orders.limit(scope, limit)?;
        let class = match scope {
            LimitScope::Instrument(id) => self.orders.class_of_limit(id, limit),
            _ => None,
        };
        let change = self.changes.of(scope, limit).map(Origin::Change);
        let origin = class.map(Origin::Class).or(change).unwrap_or(Origin::Config);
        Some(LimitView {
            scope,
            limit,
            value,
            origin,
        })
    }

    /// Whether what the config has changed goes together with what operators have. What they ordered and this shard missed
    /// comes before it.
    ///
    /// # Errors
    /// Where it does not, and why.
    pub(crate) fn check_config_limits(
        &self,
        missed: &[Order],
        changed: &[ScopeLimits],
    ) -> Result<(), (LimitScope, LimitError)> {
        let missed = missed.iter().filter_map(|order| match order.action {
            Action::SetLimit {
                scope: scope @ LimitScope::Trade(..),
                limit,
                value,
            } if !self.is_elsewhere(scope) => Some((scope, vec![(limit, value)])),
            _ => None,
        });
        let mut left = self.orders.restrictions_left();
        let mut closed = BTreeMap::new();
        for (scope, changes) in missed.chain(changed.iter().cloned()) {
            match self.orders.check_limits(scope, &changes) {
                // What is opened before may make room.
                Ok(()) | Err(LimitError::NoRoom) => {}
                Err(error) => return Err((scope, error)),
            }
            if let LimitScope::Trade(..) = scope {
                let is_closed = self.orders.limit(scope, Limit::Restricted) == Some(LimitValue::Switch(true));
                let is_closed = closed.insert(scope, closes(scope, &changes)).unwrap_or(is_closed);
                match (is_closed, closes(scope, &changes)) {
                    (false, true) => left = left.checked_sub(1).ok_or((scope, LimitError::NoRoom))?,
                    (true, false) => left += 1,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Tells the log which limits the config has changed.
    pub(crate) fn log_config_limits(&self, changed: &[ScopeLimits], config: &Config) {
        for &(scope, ref changes) in changed {
            for &(limit, value) in changes {
                let Some(view) = self.limit(scope, limit) else { continue };
                let operators = matches!(view.origin, Origin::Change(_));
                let (scope, limit, before) = (scope_name(scope, config), limit.name(), view.value);
                tracing::warn!(%scope, limit, %value, %before, operators, "the config has changed a limit since the last start");
            }
        }
    }

    /// Tells the log which limits are not the config's.
    pub(crate) fn log_changed_limits(&self, config: &Config) {
        for (scope, limit, change) in self.changes.iter() {
            // What all shards have alike is told once.
            let is_told_here = self.id == ShardId(0) || scope.instrument().is_some();
            if let Some(value) = self.orders.limit(scope, limit).filter(|_| is_told_here) {
                let (scope, limit) = (scope_name(scope, config), limit.name());
                let Change { number, operator, .. } = change;
                tracing::warn!(%scope, limit, %value, number, operator, "a limit is an operator's and not the config's");
            }
        }
    }

    /// What operators ordered last.
    pub(crate) const fn given(&self) -> &Given {
        &self.given
    }

    /// How many places [`limit_scope`](Self::limit_scope) has, some of them empty.
    pub(crate) fn limit_scopes(&self) -> u32 {
        let changes = u32::try_from(self.changes.count()).unwrap_or(u32::MAX);
        self.orders.limit_scopes().saturating_add(changes)
    }

    /// A scope that has limits here: those that the order logic knows, then what the config closes to single accounts and
    /// sessions and an operator has opened to them.
    pub(crate) fn limit_scope(&self, place: u32) -> Option<LimitScope> {
        let Some(place) = place.checked_sub(self.orders.limit_scopes()) else {
            return self.orders.limit_scope(place);
        };
        let scope = self.changes.scope(place as usize)?;
        let is_opened = self.orders.limit(scope, Limit::Restricted) == Some(LimitValue::Switch(false));
        (matches!(scope, LimitScope::Trade(..)) && is_opened).then_some(scope)
    }

    /// Whether a change to this is one to remember. Every shard remembers every change, so that all have room or none; but for
    /// what accounts and sessions trade: it is looked for where that is traded.
    fn is_remembered(&self, scope: LimitScope, value: LimitValue) -> bool {
        let is_told_elsewhere = matches!(scope, LimitScope::Trade(..)) && self.is_elsewhere(scope);
        !is_told_elsewhere && self.changes.differs(scope, value)
    }

    /// Whether a limit is another shard's business.
    fn is_elsewhere(&self, scope: LimitScope) -> bool {
        scope.instrument().is_some_and(|id| self.shard_elsewhere(id).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orders::{AccountPlace, Party, Report, SessionPlace, SessionStake, Sink, Stake, Traded};
    use std::path::Path;

    /// Nothing is open, so nothing comes out.
    struct Nothing;

    impl Sink for Nothing {
        fn report(&mut self, _: &Report) {}

        fn settle(&mut self, _: AccountPlace, _: &Stake) {}

        fn settle_session(&mut self, _: SessionPlace, _: &SessionStake) {}

        fn count_firm(&mut self, _: &Stake) {}
    }

    /// What a config opens makes room for what it closes, and what it closes together has room or it is refused.
    #[test]
    fn a_config_closes_no_more_than_there_is_room_for() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/gateway.toml"));
        let mut config = Config::load(path).expect("the example");
        config.orders[0].capacity.restrictions = 1;
        let mut shard = Shard::new(&config, ShardId(0)).expect("the example");
        let trade = |place: usize| {
            let party = Party::Account(config.orders[0].accounts[0].id);
            LimitScope::Trade(party, Traded::Instrument(config.orders[0].instruments[place].id))
        };
        let change = |place, closes| (trade(place), vec![(Limit::Restricted, LimitValue::Switch(closes))]);
        assert_eq!(shard.check_config_limits(&[], &[change(0, true)]), Ok(()));
        let both = shard.check_config_limits(&[], &[change(0, true), change(1, true)]);
        assert_eq!(both, Err((trade(1), LimitError::NoRoom)));
        // What an operator closed and the shard missed has its room first.
        let missed = |place, closes| Order {
            number: 1,
            operator: 1,
            action: Action::SetLimit {
                scope: trade(place),
                limit: Limit::Restricted,
                value: LimitValue::Switch(closes),
            },
        };
        let beside = shard.check_config_limits(&[missed(0, true)], &[change(1, true)]);
        assert_eq!(beside, Err((trade(1), LimitError::NoRoom)));
        for (missed, changed) in [
            (vec![missed(0, true)], change(0, true)),
            (vec![missed(0, true)], change(0, false)),
            (vec![missed(0, true), missed(0, false)], change(1, true)),
        ] {
            assert_eq!(shard.check_config_limits(&missed, &[changed]), Ok(()));
        }
        let closed = [(Limit::Restricted, LimitValue::Switch(true))];
        let set = shard.orders.set_limits(Timestamp(0), trade(0), &closed, &mut Nothing);
        set.expect("there is room");
        assert_eq!(shard.check_config_limits(&[], &[change(0, true)]), Ok(()));
        assert_eq!(
            shard.check_config_limits(&[], &[change(0, false), change(1, true)]),
            Ok(())
        );
        assert_eq!(
            shard.check_config_limits(&[], &[change(1, true)]),
            Err((trade(1), LimitError::NoRoom))
        );
    }
}
