//! Which limits are not the config's: what operators changed, who and when.

use crate::limits::{MAX_CHANGED_LIMITS, MAX_RESTRICTIONS};
use orders::{Limit, LimitScope, LimitValue};
use types::{LimitClass, Timestamp};

/// A limit as it is in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LimitView {
    pub(crate) scope: LimitScope,
    pub(crate) limit: Limit,
    pub(crate) value: LimitValue,
    pub(crate) origin: Origin,
}

/// Who said what a limit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The config.
    Config,
    /// The instrument's class.
    Class(LimitClass),
    /// An operator.
    Change(Change),
}

/// An operator's change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// The number of the order.
    pub(crate) number: u64,
    /// The user id of who gave it.
    pub(crate) operator: u32,
    pub(crate) time: Timestamp,
}

/// The last change of each limit that was changed.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Sorted.
    all: Vec<((LimitScope, Limit), Change)>,
    /// What the config closes to single accounts and sessions, sorted. A config cannot say that something is open to one: so
    /// what an operator has opened and it does not close is no difference, and takes no place for ever.
    closed_by_config: Vec<LimitScope>,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self {
            all: Vec::with_capacity(MAX_CHANGED_LIMITS),
            closed_by_config: Vec::with_capacity(MAX_RESTRICTIONS as usize),
        }
    }

    /// Whether a limit that is so is not the config's.
    pub(crate) fn differs(&self, scope: LimitScope, value: LimitValue) -> bool {
        match (scope, value) {
            (LimitScope::Trade(..), value) => {
                value != LimitValue::Switch(self.closed_by_config.binary_search(&scope).is_ok())
            }
            (_, value) => value != LimitValue::OfClass,
        }
    }

    /// The config says so of a limit.
    pub(crate) fn follow_config(&mut self, scope: LimitScope, limit: Limit, value: LimitValue) {
        self.forget(scope, limit);
        if !matches!(scope, LimitScope::Trade(..)) {
            return;
        }
        match (self.closed_by_config.binary_search(&scope), value) {
            (Err(place), LimitValue::Switch(true)) => self.closed_by_config.insert(place, scope),
            (Ok(place), LimitValue::Switch(false)) => drop(self.closed_by_config.remove(place)),
            _ => {}
        }
    }

    pub(crate) fn of(&self, scope: LimitScope, limit: Limit) -> Option<Change> {
        self.place(scope, limit).ok().map(|place| self.all[place].1)
    }

    /// Whether one more change of this limit can be remembered.
    pub(crate) fn has_room_for(&self, scope: LimitScope, limit: Limit) -> bool {
        self.all.len() < MAX_CHANGED_LIMITS || self.place(scope, limit).is_ok()
    }

    /// The limit was changed; [`has_room_for`](Self::has_room_for) it was seen before.
    pub(crate) fn note(&mut self, scope: LimitScope, limit: Limit, change: Change) {
        match self.place(scope, limit) {
            Ok(place) => self.all[place].1 = change,
            Err(place) => self.all.insert(place, ((scope, limit), change)),
        }
    }

    /// The limit is what others say again.
    pub(crate) fn forget(&mut self, scope: LimitScope, limit: Limit) {
        if let Ok(place) = self.place(scope, limit) {
            self.all.remove(place);
        }
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.all.len()
    }

    /// The scope of one of them.
    pub(crate) fn scope(&self, place: usize) -> Option<LimitScope> {
        Some(self.all.get(place)?.0.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LimitScope, Limit, Change)> {
        self.all.iter().map(|&((scope, limit), change)| (scope, limit, change))
    }

    fn place(&self, scope: LimitScope, limit: Limit) -> Result<usize, usize> {
        self.all.binary_search_by_key(&(scope, limit), |&(key, _)| key)
    }
}

/// Bytes of one shard's, for the sum at start-up.
pub(crate) const MEMORY_BYTES: usize = MAX_CHANGED_LIMITS * size_of::<((LimitScope, Limit), Change)>()
    + MAX_RESTRICTIONS as usize * size_of::<LimitScope>();

#[cfg(test)]
mod tests {
    use super::*;
    use orders::{Party, Traded};
    use types::AccountId;

    #[test]
    fn each_limit_has_its_last_change_and_there_is_an_end_to_them() {
        let mut changes = Changes::new();
        let change = |number| Change {
            number,
            operator: 7,
            time: Timestamp(number),
        };
        let scope = |id| LimitScope::Account(AccountId(id));
        let most = u32::try_from(MAX_CHANGED_LIMITS).unwrap();
        for id in (0..most).rev() {
            assert!(changes.has_room_for(scope(id), Limit::MaxQuantity));
            changes.note(scope(id), Limit::MaxQuantity, change(id.into()));
        }
        assert!(!changes.has_room_for(scope(0), Limit::MaxNotional));
        assert!(changes.has_room_for(scope(0), Limit::MaxQuantity));
        changes.note(scope(0), Limit::MaxQuantity, change(9));
        assert_eq!(changes.of(scope(0), Limit::MaxQuantity), Some(change(9)));
        assert_eq!(changes.of(scope(3), Limit::MaxQuantity), Some(change(3)));
        changes.forget(scope(3), Limit::MaxQuantity);
        assert_eq!(changes.of(scope(3), Limit::MaxQuantity), None);
        assert!(changes.has_room_for(scope(0), Limit::MaxNotional));
        assert_eq!(changes.iter().count(), MAX_CHANGED_LIMITS - 1);
    }

    #[test]
    fn what_the_config_says_too_takes_no_place() {
        let mut changes = Changes::new();
        let trade = LimitScope::Trade(Party::Account(AccountId(1)), Traded::Class(LimitClass(0)));
        let [closed, open] = [true, false].map(LimitValue::Switch);
        assert_eq!([closed, open].map(|value| changes.differs(trade, value)), [true, false]);
        let change = Change {
            number: 1,
            operator: 7,
            time: Timestamp(1),
        };
        changes.note(trade, Limit::Restricted, change);
        changes.follow_config(trade, Limit::Restricted, closed);
        assert_eq!(changes.count(), 0);
        assert_eq!([closed, open].map(|value| changes.differs(trade, value)), [false, true]);
        changes.follow_config(trade, Limit::Restricted, open);
        assert_eq!([closed, open].map(|value| changes.differs(trade, value)), [true, false]);
        // Of all others any value is an operator's.
        let account = LimitScope::Account(AccountId(1));
        changes.follow_config(account, Limit::MaxQuantity, LimitValue::Count(5));
        assert!(changes.differs(account, LimitValue::Count(5)));
        assert!(!changes.differs(account, LimitValue::OfClass));
    }
}
