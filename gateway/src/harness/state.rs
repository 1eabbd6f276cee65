//! All that a shard has come to, in words: two that are in the same state say the same, whichever way they came there.

use super::Harness;
use crate::config::Config;
use crate::replay::{Recovered, ReplayError};
use crate::shard::Shard;
use crate::shared_limits::SharedLimits;
use journal::JournalReader;
use orders::{KillScope, Limit};
use std::fmt::Debug;
use types::{ShardId, VenueId};

impl Harness {
    /// The state that the shard is in.
    #[must_use]
    pub fn state(&self, config: &Config) -> Vec<String> {
        state(&self.shard, &self.live.shared, config)
    }

    /// The state that shard 0's journal leads to.
    ///
    /// # Errors
    /// The journal cannot be read or replayed.
    pub fn replayed_state(config: &Config) -> Result<Vec<String>, ReplayError> {
        let directory = config.journal.of_shard(ShardId(0)).directory;
        let mut reader = JournalReader::open(&directory).map_err(ReplayError::Read)?;
        let mut shared = SharedLimits::new(&config.orders[0], config.shards.len());
        let recovered = Recovered::replay(config, ShardId(0), &mut reader, &mut shared)?;
        Ok(state(&recovered.shard, &shared, config))
    }
}

fn state(shard: &Shard, shared: &SharedLimits, config: &Config) -> Vec<String> {
    let (orders, of_config) = (shard.orders(), &config.orders[0]);
    let mut lines = Vec::new();
    let mut say = |what: &dyn Debug| lines.push(format!("{what:?}"));
    say(&orders.day());
    say(orders.counters());
    say(shard.filter_counters());
    say(shared);
    say(&orders.stop(KillScope::Firm));
    for account in &of_config.accounts {
        say(&(account.id, orders.stop(KillScope::Account(account.id))));
        say(&orders.account_exposure(account.id));
        for instrument in &config.instruments {
            say(&(account.id, instrument.id, orders.exposure(account.id, instrument.id)));
        }
    }
    for session in &of_config.sessions {
        let id = session.id;
        say(&(id, orders.stop(KillScope::Session(id)), shard.is_disabled(id)));
    }
    for (venue, _) in (0..).map(VenueId).zip(&config.venues) {
        let waiting = orders.cancels_waiting(venue);
        say(&(venue, orders.slots(venue), orders.open_at(venue), waiting));
    }
    orders.iter().for_each(|order| say(&order));
    for scope in (0..shard.limit_scopes()).filter_map(|place| shard.limit_scope(place)) {
        let views = Limit::ALL.iter().filter_map(|&limit| shard.limit(scope, limit));
        views.for_each(|view| say(&view));
    }
    lines
}
