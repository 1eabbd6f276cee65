//! Sessions that get copies of the reports of accounts.

use super::{ConfigError, raw};

/// Checks that each copy can be made: the reports of an account arise on the shards of the sessions that trade it, and a
/// shard tells its own sessions alone.
pub(super) fn check(sessions: &[raw::Session], accounts: &[raw::Account]) -> Result<(), ConfigError> {
    for copies in sessions.iter().filter(|session| !session.drop_copy.is_empty()) {
        let id = copies.id;
        if !copies.accounts.is_empty() {
            return Err(ConfigError(format!(
                "session {id} gets copies (drop_copy) and enters no orders: accounts must be []"
            )));
        }
        for &account in &copies.drop_copy {
            if !accounts.iter().any(|known| known.id == account) {
                return Err(ConfigError(format!(
                    "session {id}: drop_copy names account {account}, which is not in the config"
                )));
            }
            let mut traders = sessions.iter().filter(|trader| trader.accounts.contains(&account));
            if let Some(trader) = traders.find(|trader| trader.shard != copies.shard) {
                return Err(ConfigError(format!(
                    "session {id} on shard {} gets copies of account {account}, which session {} trades on shard {}; \
                     put all of them on one shard",
                    copies.shard, trader.id, trader.shard
                )));
            }
        }
    }
    Ok(())
}
