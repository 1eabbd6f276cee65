//! What of a config a journal is bound to: all that decides but the limits, which are inputs. By parts, so that a difference
//! can be named.

use super::fnv::Fnv;
use super::{Config, ProtocolConfig};
use orders::OrdersConfig;
use std::fmt::Debug;

/// A hash of each part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Structure([u64; PARTS.len()]);

/// What the parts are called, in the order of their hashes. A journal has them in this order.
const PARTS: [&str; 7] = [
    "the instrument master",
    "the names of limit classes",
    "accounts",
    "sessions",
    "venues and routes",
    "capacities, the first stage or the rate queue",
    "FIX dictionaries",
];

impl Structure {
    /// Bytes in a journal.
    pub const LENGTH: usize = PARTS.len() * size_of::<u64>();

    pub(super) fn of(config: &Config, dictionaries: u64) -> Self {
        let [mut accounts, mut sessions, mut routes, mut capacities] = [const { Fnv::new() }; 4];
        for orders in &config.orders {
            // Whatever is added to it has its place here or is a limit.
            let OrdersConfig {
                shard,
                instruments: _,
                classes: _,
                firm: _,
                overrides: _,
                accounts: of_accounts,
                sessions: of_sessions,
                venues,
                routes: of_routes,
                own_cancel_wait,
                rate_queue,
                peg_interval,
                crossing,
                capacity,
            } = orders;
            for account in of_accounts {
                add(&mut accounts, &account.id);
            }
            for session in of_sessions {
                let who = (session.id, &session.accounts, session.owner);
                let what = (session.self_match, session.crossing, session.cancel_on_disconnect);
                add(&mut sessions, &(who, what));
            }
            add(&mut routes, &(shard, venues, of_routes));
            add(
                &mut capacities,
                &(shard, own_cancel_wait, rate_queue, peg_interval, crossing, capacity),
            );
        }
        for session in &config.sessions {
            let kept = (session.resend_messages, &session.drop_copy);
            add(&mut sessions, &(session.id, session.shard, kept));
            if let ProtocolConfig::Fix { .. } = session.protocol {
                add(&mut sessions, &session.protocol);
            }
        }
        let hash = |part: &dyn Debug| {
            let mut hash = Fnv::new();
            add(&mut hash, part);
            hash.0
        };
        Self([
            hash(&config.instruments),
            hash(&config.classes),
            accounts.0,
            sessions.0,
            routes.0,
            capacities.0,
            dictionaries,
        ])
    }

    /// As a journal has it.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        for (place, hash) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *place = hash.to_le_bytes();
        }
        bytes
    }

    /// The parts that are others than those of a journal.
    #[must_use]
    pub fn differences(self, journal: &[u8; Self::LENGTH]) -> Vec<&'static str> {
        let ours = self.to_bytes();
        let parts = PARTS
            .into_iter()
            .zip(ours.as_chunks::<8>().0)
            .zip(journal.as_chunks::<8>().0);
        parts
            .filter(|((_, ours), journal)| ours != journal)
            .map(|((part, _), _)| part)
            .collect()
    }
}

fn add(hash: &mut Fnv, part: &dyn Debug) {
    hash.add(&format!("{part:?}"));
}
