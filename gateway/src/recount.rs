//! What is counted over all shards, counted again from each shard's own state. It can be compared when nothing flows: as a
//! gateway starts, after the replay of all journals.

use orders::{AccountConfig, AccountPlace, Orders, Stake};
use types::AccountId;

/// An account of which something else is counted than its orders and positions take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Miscount {
    /// Which.
    pub account: AccountId,
    /// What is counted of its limits.
    pub counted: Stake,
    /// The sum over all shards.
    pub taken: Stake,
}

/// The first difference. `counted` is what all shards together have counted of an account's limits.
pub(crate) fn miscount(
    accounts: &[AccountConfig],
    shards: &[&Orders],
    counted: impl Fn(AccountPlace) -> Stake,
) -> Option<Miscount> {
    let mut places = (0..).map(AccountPlace).zip(accounts);
    places.find_map(|(place, account)| {
        let mut taken = Stake::NONE;
        for exposure in shards.iter().filter_map(|orders| orders.account_exposure(account.id)) {
            taken += exposure.stake;
            taken.notional += exposure.held + exposure.used;
            taken.orders += i64::from(exposure.open_orders);
        }
        let counted = counted(place);
        (counted != taken).then_some(Miscount {
            account: account.id,
            counted,
            taken,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::shard::Shard;
    use std::path::Path;
    use types::ShardId;

    #[test]
    fn an_account_of_which_more_is_counted_than_it_takes_is_found() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/gateway.toml"));
        let config = Config::load(path).expect("the example");
        let shard = Shard::new(&config, ShardId(0)).expect("the example");
        let accounts = &config.orders[0].accounts;
        let found = |counted: &dyn Fn(AccountPlace) -> Stake| miscount(accounts, &[shard.orders()], counted);
        assert_eq!(found(&|_| Stake::NONE), None);
        let last = AccountPlace(u32::try_from(accounts.len()).unwrap() - 1);
        type Amount = fn(&mut Stake) -> &mut i64;
        let amounts: [Amount; 6] = [
            |stake| &mut stake.notional,
            |stake| &mut stake.orders,
            |stake| &mut stake.gross,
            |stake| &mut stake.long,
            |stake| &mut stake.short,
            |stake| &mut stake.profit,
        ];
        for amount in amounts {
            let mut counted = Stake::NONE;
            *amount(&mut counted) = 1;
            let miscount = Miscount {
                account: accounts[last.0 as usize].id,
                counted,
                taken: Stake::NONE,
            };
            let of_last = |place| if place == last { counted } else { Stake::NONE };
            assert_eq!(found(&of_last), Some(miscount));
        }
    }
}
