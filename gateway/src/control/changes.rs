//! Which limits are not the config's: what operators changed, who and when.

use crate::limits::MAX_CHANGED_LIMITS;
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
pub(crate) struct Changes(
    /// Sorted.
    Vec<((LimitScope, Limit), Change)>,
);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(MAX_CHANGED_LIMITS))
    }

    pub(crate) fn of(&self, scope: LimitScope, limit: Limit) -> Option<Change> {
        self.place(scope, limit).ok().map(|place| self.0[place].1)
    }

    /// Whether one more change of this limit can be remembered.
    pub(crate) fn has_room_for(&self, scope: LimitScope, limit: Limit) -> bool {
        self.0.len() < MAX_CHANGED_LIMITS || self.place(scope, limit).is_ok()
    }

    /// The limit was changed; [`has_room_for`](Self::has_room_for) it was seen before.
    pub(crate) fn note(&mut self, scope: LimitScope, limit: Limit, change: Change) {
        match self.place(scope, limit) {
            Ok(place) => self.0[place].1 = change,
            Err(place) => self.0.insert(place, ((scope, limit), change)),
        }
    }

    /// The limit is what others say again.
    pub(crate) fn forget(&mut self, scope: LimitScope, limit: Limit) {
        if let Ok(place) = self.place(scope, limit) {
            self.0.remove(place);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LimitScope, Limit, Change)> {
        self.0.iter().map(|&((scope, limit), change)| (scope, limit, change))
    }

    fn place(&self, scope: LimitScope, limit: Limit) -> Result<usize, usize> {
        self.0.binary_search_by_key(&(scope, limit), |&(key, _)| key)
    }
}

/// Bytes of one shard's, for the sum at start-up.
pub(crate) const MEMORY_BYTES: usize = MAX_CHANGED_LIMITS * size_of::<((LimitScope, Limit), Change)>();

#[cfg(test)]
mod tests {
    use super::*;
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
}
