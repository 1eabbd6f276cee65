//! The limits of the config as inputs: a shard is built without limits of its own, and is told those of the config at the first
//! start, and at each later one those that the config has changed since. So a journal replays by the limits that held, and
//! what an operator changed stays until the config says something new about it.

use orders::{Limit, LimitScope, LimitValue, OrdersConfig};
use std::collections::BTreeMap;

/// Some limits of a scope.
pub(crate) type ScopeLimits = (LimitScope, Vec<(Limit, LimitValue)>);

/// What configs have said so far in a journal.
#[derive(Default, Debug)]
pub(crate) struct SaidLimits(BTreeMap<(LimitScope, Limit), LimitValue>);

impl SaidLimits {
    /// A config said so.
    pub(crate) fn note(&mut self, scope: LimitScope, changes: &[(Limit, LimitValue)]) {
        for &(limit, value) in changes {
            self.0.insert((scope, limit), value);
        }
    }

    /// Whether no config has said anything yet.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// What this config says otherwise. Limits of instruments come behind those of their classes, and what is closed to accounts
    /// and sessions behind what is open to them again, whose room it may need.
    pub(crate) fn changed_by(&self, config: &OrdersConfig) -> Vec<ScopeLimits> {
        let mut wanted: BTreeMap<_, _> = config.limits().collect();
        for &(scope, limit) in self.0.keys() {
            wanted.entry((scope, limit)).or_insert(match scope {
                // No longer closed.
                LimitScope::Trade(..) => LimitValue::Switch(false),
                // An instrument that has no longer its own.
                _ => LimitValue::OfClass,
            });
        }
        wanted.retain(|key, value| self.0.get(key) != Some(value));
        let mut changed: Vec<ScopeLimits> = Vec::new();
        for ((scope, limit), value) in wanted {
            match changed.last_mut() {
                Some((last, values)) if *last == scope => values.push((limit, value)),
                _ => changed.push((scope, vec![(limit, value)])),
            }
        }
        changed.sort_by_key(|(scope, changes)| closes(*scope, changes));
        changed
    }
}

/// Whether something is closed to an account or a session.
pub(crate) fn closes(scope: LimitScope, changes: &[(Limit, LimitValue)]) -> bool {
    matches!(scope, LimitScope::Trade(..)) && changes.iter().any(|&(_, value)| value == LimitValue::Switch(true))
}

/// In a record: which limit u8, the kind of its value u8, and how much i128.
const LENGTH: usize = 1 + 1 + 16;

/// For a journal.
pub(crate) fn encode(changes: &[(Limit, LimitValue)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(changes.len() * LENGTH);
    for &(limit, value) in changes {
        let (kind, amount) = value.to_parts();
        bytes.extend_from_slice(&[limit as u8, kind]);
        bytes.extend_from_slice(&amount.to_le_bytes());
    }
    bytes
}

/// From a journal; `None` when nobody has written that.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Vec<(Limit, LimitValue)>> {
    let (changes, rest) = bytes.as_chunks::<LENGTH>();
    let change = |change: &[u8; LENGTH]| {
        let [limit, kind, amount @ ..] = *change;
        let value = LimitValue::from_parts(kind, i128::from_le_bytes(amount))?;
        Some((Limit::from_u8(limit)?, value))
    };
    rest.is_empty().then(|| changes.iter().map(change).collect())?
}
