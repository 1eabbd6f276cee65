//! What is counted over all shards, counted again from each shard's own state. It can be compared when nothing flows: as a
//! gateway starts, after the replay of all journals.

use crate::shared_limits::SharedLimits;
use orders::{AccountPlace, Orders, OrdersConfig, SessionPlace, SessionStake, Stake};
use std::fmt;
use types::{AccountId, SessionId};

/// Of whom something else is counted than orders and positions take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miscount {
    /// An account: what is counted of its limits, and the sum over all shards.
    Account(AccountId, [Stake; 2]),
    /// A session, likewise.
    Session(SessionId, [SessionStake; 2]),
    /// The firm, likewise.
    Firm([Stake; 2]),
}

/// The first difference between what is counted and what all shards together take. `config` has the accounts and sessions, which
/// all shards have alike; the firm is counted when it has limits.
pub(crate) fn miscount(config: &OrdersConfig, shards: &[&Orders], counted: &SharedLimits) -> Option<Miscount> {
    let mut firm = Stake::NONE;
    for (place, account) in (0..).map(AccountPlace).zip(&config.accounts) {
        let mut taken = Stake::NONE;
        for exposure in shards.iter().filter_map(|orders| orders.account_exposure(account.id)) {
            taken += exposure.stake;
            taken.notional += exposure.held + exposure.used;
            taken.orders += i64::from(exposure.open_orders);
        }
        firm += taken;
        let counted = counted.stake(place);
        if counted != taken {
            return Some(Miscount::Account(account.id, [counted, taken]));
        }
    }
    for (place, session) in (0..).map(SessionPlace).zip(&config.sessions) {
        let mut taken = SessionStake::default();
        for stake in shards.iter().filter_map(|orders| orders.session_stake(session.id)) {
            taken.notional += stake.notional;
            taken.orders += stake.orders;
        }
        let counted = counted.session_stake(place);
        if counted != taken {
            return Some(Miscount::Session(session.id, [counted, taken]));
        }
    }
    let counted = counted.firm();
    let differs = shards.iter().all(|orders| orders.counts_firm()) && counted != firm;
    differs.then_some(Miscount::Firm([counted, firm]))
}

impl fmt::Display for Miscount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(id, [counted, taken]) => {
                write!(
                    f,
                    "of account {id} {counted:?} is counted, and its orders and positions take {taken:?}"
                )
            }
            Self::Session(id, [counted, taken]) => {
                write!(
                    f,
                    "of session {id} {counted:?} is counted, and its orders take {taken:?}"
                )
            }
            Self::Firm([counted, taken]) => {
                write!(
                    f,
                    "of the firm {counted:?} is counted, and all orders and positions take {taken:?}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::shard::Shard;
    use std::path::Path;
    use types::ShardId;

    #[test]
    fn whoever_takes_less_than_is_counted_is_found() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/gateway.toml"));
        let config = Config::load(path).expect("the example");
        let shard = Shard::new(&config, ShardId(0)).expect("the example");
        let orders = &config.orders[0];
        let found = |counted: &SharedLimits| miscount(orders, &[shard.orders()], counted);
        let last = |length: usize| u32::try_from(length).expect("a few") - 1;
        let account = AccountPlace(last(orders.accounts.len()));
        let session = SessionPlace(last(orders.sessions.len()));
        assert_eq!(found(&SharedLimits::new(orders, 1)), None);
        let amounts: [fn(&mut Stake) -> &mut i64; 6] = [
            |stake| &mut stake.notional,
            |stake| &mut stake.orders,
            |stake| &mut stake.gross,
            |stake| &mut stake.long,
            |stake| &mut stake.short,
            |stake| &mut stake.profit,
        ];
        for amount in amounts {
            let counted = SharedLimits::new(orders, 1);
            let mut stake = Stake::NONE;
            *amount(&mut stake) = 1;
            counted.settle(account, &stake);
            let id = orders.accounts[account.0 as usize].id;
            assert_eq!(found(&counted), Some(Miscount::Account(id, [stake, Stake::NONE])));
        }
        for (notional, open) in [(1, 0), (0, 1)] {
            let counted = SharedLimits::new(orders, 1);
            let stake = SessionStake { notional, orders: open };
            counted.settle_session(session, &stake);
            let id = orders.sessions[session.0 as usize].id;
            assert_eq!(
                found(&counted),
                Some(Miscount::Session(id, [stake, SessionStake::default()]))
            );
        }
    }
}
