//! What a gateway allocates at start, computed from its config alone.

use crate::client_output::ClientOutputs;
use crate::clients::Clients;
use crate::config::{Config, SessionConfig};
use crate::gateway::streams_of;
use crate::instruments::Instruments;
use crate::limits::RECALL_PORTION;
use crate::recall::Recalls;
use crate::references::References;
use crate::{control, crossing, door, filter, outside, session};
use journal::SentIndex;

/// All of it, named, in bytes.
#[must_use]
pub fn memory(config: &Config) -> Vec<(&'static str, usize)> {
    let sum = |of_session: &dyn Fn(&SessionConfig) -> usize| config.sessions.iter().map(of_session).sum();
    let (shards, instruments) = (config.shards.len(), config.instruments.len());
    vec![
        ("order tables", config.order_table_bytes),
        ("instruments", shards * Instruments::memory_bytes(instruments)),
        (
            "pre-filter",
            shards * filter::memory_bytes(config) + outside::memory_bytes(config),
        ),
        ("client sessions", sum(&session::memory_bytes)),
        ("client output", sum(&ClientOutputs::memory_bytes)),
        (
            "client connections",
            sum(&|session| Clients::memory_bytes(config, session)),
        ),
        ("connections that log on", door::memory_bytes(config)),
        (
            "rings between shards",
            crossing::memory_bytes(shards, config.crossing_messages, config.open_orders()),
        ),
        ("control desk", control::memory_bytes(shards)),
        (
            "reference prices",
            References::memory_bytes(instruments) + shards * instruments * size_of::<u64>(),
        ),
        (
            "resends from the journal",
            config
                .shards
                .iter()
                .map(|shard| Recalls::memory_bytes(streams_of(config, shard.id), RECALL_PORTION))
                .sum(),
        ),
        (
            "venue links",
            config
                .venues
                .iter()
                .flat_map(|venue| &venue.links)
                .map(|link| link.settings.memory() + SentIndex::MEMORY_BYTES)
                .sum(),
        ),
        ("journal rings", shards * config.journal.ring_bytes),
    ]
}

/// What one session allocates, bytes: its state, what waits for its client, and its connection.
#[must_use]
pub fn session_memory(config: &Config, session: &SessionConfig) -> usize {
    session::memory_bytes(session) + ClientOutputs::memory_bytes(session) + Clients::memory_bytes(config, session)
}
