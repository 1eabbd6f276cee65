//! What accounts and sessions may not trade: whole limit classes, and single instruments. Both are opened and closed while orders
//! are open.

use crate::config::{ConfigError, InstrumentState, OrdersConfig};
use crate::limit_table::{Limit, LimitScope};
use crate::limit_value::{Field, LimitError, LimitValue};
use crate::limits::RESTRICTED_CLASSES_MAX;
use crate::map::{Map, NIL};
use crate::state::Orders;
use alloc::vec::Vec;
use types::{AccountId, InstrumentId, LimitClass, SessionId};

/// Whom something is closed to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Party {
    /// One account.
    Account(AccountId),
    /// One session.
    Session(SessionId),
}

/// What is closed to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Traded {
    /// All instruments of a class; below [`RESTRICTED_CLASSES_MAX`].
    Class(LimitClass),
    /// One instrument.
    Instrument(InstrumentId),
}

/// What an order looks at of its account and of its session, so that few look into the [`RestrictionTable`].
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Restricted {
    /// A bit a class.
    classes: u64,
    /// How many single instruments are closed to it.
    instruments: u32,
}

/// Everything that is closed to an account or a session.
pub(crate) struct RestrictionTable {
    /// Without holes; allocated at the start.
    all: Vec<Restriction>,
    /// From what and whom to the place in `all`.
    places: Map,
    capacity: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Restriction {
    who: Who,
    what: What,
}

/// Whose restrictions are looked up, by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Account(u32),
    Session(u32),
}

/// What is looked up; an instrument by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Class(u8),
    Instrument(u32),
}

impl Orders {
    /// Whether something is closed to somebody; `None` when one of them is not here.
    pub(crate) fn is_restricted(&self, party: Party, traded: Traded) -> Option<bool> {
        let restriction = self.restriction(party, traded).ok()?;
        Some(self.restrictions.place(restriction) != NIL)
    }

    /// What changes at a [`LimitScope::Trade`] come to: what is closed from then on, or open.
    ///
    /// # Errors
    /// Why they are not made.
    pub(crate) fn check_restriction(
        &self,
        party: Party,
        traded: Traded,
        changes: &[(Limit, LimitValue)],
    ) -> Result<(Restriction, bool), LimitError> {
        let restriction = self.restriction(party, traded)?;
        let &[(Limit::Restricted, value)] = changes else {
            return Err(LimitError::NotHere);
        };
        let closes = bool::from_value(value).ok_or(bool::WRONG)?;
        if closes && !self.restrictions.has_room_for(restriction) {
            return Err(LimitError::NoRoom);
        }
        Ok((restriction, closes))
    }

    /// Closes or opens something that [`check_restriction`](Self::check_restriction) passed.
    pub(crate) fn restrict(&mut self, restriction: Restriction, closes: bool) {
        let is_changed = match closes {
            true => self.restrictions.add(restriction),
            false => self.restrictions.remove(restriction),
        };
        if !is_changed {
            return;
        }
        let restricted = match restriction.who {
            Who::Account(account) => &mut self.accounts[account as usize].restricted,
            Who::Session(session) => &mut self.sessions[session as usize].restricted,
        };
        match restriction.what {
            What::Class(class) => restricted.classes ^= 1 << class,
            What::Instrument(instrument) => {
                let closed_to = &mut self.instruments[instrument as usize].closed_to;
                for count in [&mut restricted.instruments, closed_to] {
                    *count = if closes { *count + 1 } else { *count - 1 };
                }
            }
        }
    }

    /// How many more classes and instruments can be closed to accounts and sessions.
    #[must_use]
    pub fn restrictions_left(&self) -> usize {
        self.restrictions.capacity - self.restrictions.all.len()
    }

    /// How many are closed.
    pub(crate) const fn restriction_count(&self) -> usize {
        self.restrictions.all.len()
    }

    /// The scope of one that is closed.
    pub(crate) fn restriction_scope(&self, place: usize) -> Option<LimitScope> {
        let Restriction { who, what } = *self.restrictions.all.get(place)?;
        let party = match who {
            Who::Account(account) => Party::Account(self.accounts[account as usize].id),
            Who::Session(session) => Party::Session(self.sessions[session as usize].id),
        };
        let traded = match what {
            What::Class(class) => Traded::Class(LimitClass(class)),
            What::Instrument(instrument) => Traded::Instrument(self.instruments[instrument as usize].id),
        };
        Some(LimitScope::Trade(party, traded))
    }

    /// Those of the config.
    pub(crate) fn add_restrictions(&mut self, config: &OrdersConfig) -> Result<(), ConfigError> {
        for (party, traded) in config.restrictions() {
            let change = [(Limit::Restricted, LimitValue::Switch(true))];
            let checked = self.check_restriction(party, traded, &change);
            let (restriction, closes) = checked.map_err(|error| match (error, traded) {
                (LimitError::NoRoom, _) => ConfigError::TooManyRestrictions(config.capacity.restrictions),
                (_, Traded::Class(class)) => ConfigError::RestrictedClass(class),
                (_, Traded::Instrument(id)) => ConfigError::UnknownInstrument(id),
            })?;
            self.restrict(restriction, closes);
        }
        Ok(())
    }

    fn restriction(&self, party: Party, traded: Traded) -> Result<Restriction, LimitError> {
        let who = match party {
            Party::Account(id) => self
                .any_account(id)
                .and_then(|account| Some(Who::Account(u32::try_from(account).ok()?))),
            Party::Session(id) => self.session(id).map(Who::Session),
        };
        let what = match traded {
            Traded::Class(LimitClass(class)) if class >= RESTRICTED_CLASSES_MAX => {
                return Err(LimitError::ClassTooHigh);
            }
            Traded::Class(LimitClass(class)) => (usize::from(class) < self.classes.len()).then_some(What::Class(class)),
            Traded::Instrument(id) => self.instrument(id).map(What::Instrument),
        };
        match (who, what) {
            (Some(who), Some(what)) => Ok(Restriction { who, what }),
            _ => Err(LimitError::UnknownScope),
        }
    }
}

impl Restricted {
    /// Whether the instrument with this index is closed to `who`, whose restrictions these are.
    #[inline]
    pub(crate) fn covers(&self, instrument: &InstrumentState, index: u32, table: &RestrictionTable, who: Who) -> bool {
        let class = instrument.class.0;
        (class < RESTRICTED_CLASSES_MAX && self.classes >> class & 1 != 0)
            || (instrument.closed_to > 0
                && self.instruments > 0
                && table.places.find(What::Instrument(index).id(), who.scope()) != NIL)
    }
}

impl RestrictionTable {
    /// Room for so many.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            all: Vec::with_capacity(capacity),
            places: Map::new(capacity),
            capacity,
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.capacity * size_of::<Restriction>() + self.places.memory()
    }

    fn place(&self, Restriction { who, what }: Restriction) -> u32 {
        self.places.find(what.id(), who.scope())
    }

    /// What is there already takes none.
    fn has_room_for(&self, restriction: Restriction) -> bool {
        self.all.len() < self.capacity || self.place(restriction) != NIL
    }

    /// Whether it was not there yet.
    fn add(&mut self, restriction: Restriction) -> bool {
        if self.place(restriction) != NIL {
            return false;
        }
        let place = u32::try_from(self.all.len()).expect("the capacity is a u32");
        self.places
            .insert(restriction.what.id(), restriction.who.scope(), place);
        self.all.push(restriction);
        true
    }

    /// Whether it was there. The last one moves into its place.
    fn remove(&mut self, restriction: Restriction) -> bool {
        let place = self.place(restriction);
        if place == NIL {
            return false;
        }
        self.places.remove(restriction.what.id(), restriction.who.scope());
        self.all.swap_remove(place as usize);
        if let Some(moved) = self.all.get(place as usize) {
            self.places.update(moved.what.id(), moved.who.scope(), place);
        }
        true
    }
}

impl Who {
    /// Accounts and sessions are fewer than half of a u32.
    const fn scope(self) -> u32 {
        match self {
            Self::Account(index) => index << 1,
            Self::Session(index) => index << 1 | 1,
        }
    }
}

impl What {
    /// Classes stand behind all indexes of instruments.
    fn id(self) -> u64 {
        match self {
            Self::Class(class) => 1 << 32 | u64::from(class),
            Self::Instrument(index) => u64::from(index),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::vec::Vec;

    const CAPACITY: usize = 12;

    fn restriction() -> impl Strategy<Value = Restriction> {
        let what = prop_oneof![(0u8..3).prop_map(What::Class), (0u32..4).prop_map(What::Instrument)];
        let who = prop_oneof![(0u32..3).prop_map(Who::Account), (0u32..3).prop_map(Who::Session)];
        (who, what).prop_map(|(who, what)| Restriction { who, what })
    }

    proptest! {
        /// Opened and closed in any order, up to a full table: it has what a set has, each once, and each is found in its place.
        #[test]
        fn it_has_what_a_set_has(steps in prop::collection::vec((restriction(), any::<bool>()), 0..300)) {
            let mut table = RestrictionTable::new(CAPACITY);
            let mut set: HashSet<(u64, u32)> = HashSet::new();
            let key = |one: Restriction| (one.what.id(), one.who.scope());
            for (restriction, closes) in steps {
                if closes {
                    let has_room = set.contains(&key(restriction)) || set.len() < CAPACITY;
                    prop_assert_eq!(table.has_room_for(restriction), has_room);
                    if has_room {
                        prop_assert_eq!(table.add(restriction), set.insert(key(restriction)));
                    }
                } else {
                    prop_assert_eq!(table.remove(restriction), set.remove(&key(restriction)));
                }
                prop_assert_eq!(table.all.len(), set.len());
                prop_assert!(table.all.iter().all(|&one| set.contains(&key(one))));
                let found: Vec<_> = table.all.iter().map(|&one| table.place(one)).collect();
                prop_assert!(found.iter().zip(0u32..).all(|(&found, place)| found == place));
            }
            prop_assert_eq!(table.all.capacity(), CAPACITY);
        }
    }
}
