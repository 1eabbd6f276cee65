//! What accounts and sessions may not trade: whole limit classes, and single instruments.

use crate::config::{ConfigError, InstrumentState, Restrictions};
use crate::limits::RESTRICTED_CLASSES_MAX;
use crate::map::{Map, NIL};
use types::LimitClass;

/// The restrictions of one account or session.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Restricted {
    /// A bit a class.
    classes: u64,
    /// Whether it has single instruments in the [`RestrictedPairs`].
    has_pairs: bool,
}

/// Single instruments that are closed to an account or a session.
pub(crate) struct RestrictedPairs {
    /// (instrument, who) to nothing.
    pairs: Map,
}

/// Whose restrictions are looked up, by its index.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Account(u32),
    Session(u32),
}

impl Restricted {
    /// # Errors
    /// A class that has no bit.
    pub(crate) fn new(restrictions: &Restrictions) -> Result<Self, ConfigError> {
        let mut classes = 0;
        for &LimitClass(class) in &restrictions.classes {
            if class >= RESTRICTED_CLASSES_MAX {
                return Err(ConfigError::RestrictedClass(LimitClass(class)));
            }
            classes |= 1 << class;
        }
        Ok(Self {
            classes,
            has_pairs: !restrictions.instruments.is_empty(),
        })
    }

    /// Whether the instrument with this index is closed to `who`, whose restrictions these are.
    #[inline]
    pub(crate) fn covers(&self, instrument: &InstrumentState, index: u32, pairs: &RestrictedPairs, who: Who) -> bool {
        let class = instrument.class.0;
        (class < RESTRICTED_CLASSES_MAX && self.classes >> class & 1 != 0)
            || (instrument.has_pairs && self.has_pairs && pairs.pairs.find(u64::from(index), who.scope()) != NIL)
    }
}

impl RestrictedPairs {
    /// Room for so many pairs.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            pairs: Map::new(capacity),
        }
    }

    /// Closes an instrument to somebody. What is closed already stays so.
    pub(crate) fn add(&mut self, instrument: u32, who: Who) {
        if self.pairs.find(u64::from(instrument), who.scope()) == NIL {
            self.pairs.insert(u64::from(instrument), who.scope(), 0);
        }
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
