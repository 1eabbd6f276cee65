//! Limits of an account that span shards: reserved by compare-exchange before the order logic runs, given back exactly
//! once when the order needs them no more.
//!
//! Amounts are notional in 1e-4 of the currency unit, rounded up when they are reserved, so that rounding never lets an
//! account exceed its limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use types::{AccountId, Notional};

/// The counters of all accounts, shared by all shards.
#[derive(Clone, Debug)]
pub struct SharedLimits {
    accounts: Arc<[Account]>,
}

/// What is to be reserved, and what was: notional in 1e-4, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Reservation(pub i64);

/// One account on a cache line of its own: shards that trade for different accounts do not meet.
#[derive(Debug)]
#[repr(align(64))]
struct Account {
    id: AccountId,
    limit: AtomicI64,
    reserved: AtomicI64,
}

impl Reservation {
    /// The notional in 1e-4, rounded up. `None` when it does not fit: such an order exceeds any limit.
    #[must_use]
    pub fn for_notional(notional: Notional) -> Option<Self> {
        let units = notional.0.checked_add(99_999)?.div_euclid(100_000);
        i64::try_from(units).ok().filter(|&units| units >= 0).map(Self)
    }
}

impl SharedLimits {
    /// Counters for these accounts with their limits.
    #[must_use]
    pub fn new(accounts: impl IntoIterator<Item = (AccountId, Notional)>) -> Self {
        let mut accounts = accounts
            .into_iter()
            .map(|(id, limit)| Account {
                id,
                limit: AtomicI64::new(units(limit)),
                reserved: AtomicI64::new(0),
            })
            .collect::<Vec<_>>();
        accounts.sort_by_key(|account| account.id);
        Self {
            accounts: accounts.into(),
        }
    }

    /// Changes a limit. What is reserved stays, also when it is more.
    pub fn set_limit(&self, account: AccountId, limit: Notional) {
        if let Some(account) = self.account(account) {
            account.limit.store(units(limit), Ordering::Release);
        }
    }

    /// Takes the amount off what the account has left. Returns false, and takes nothing, when there is not enough, or no
    /// such account.
    #[must_use]
    pub fn reserve(&self, account: AccountId, amount: Reservation) -> bool {
        let Some(account) = self.account(account) else {
            return false;
        };
        let limit = account.limit.load(Ordering::Acquire);
        account
            .reserved
            .try_update(Ordering::AcqRel, Ordering::Acquire, |reserved| {
                reserved.checked_add(amount.0).filter(|&sum| sum <= limit)
            })
            .is_ok()
    }

    /// Takes the amount whatever the limit says: after a restart, for orders that are already out.
    pub fn restore(&self, account: AccountId, amount: Reservation) {
        if let Some(account) = self.account(account) {
            account.reserved.fetch_add(amount.0, Ordering::AcqRel);
        }
    }

    /// Gives an amount back.
    pub fn release(&self, account: AccountId, amount: Reservation) {
        if let Some(account) = self.account(account) {
            let before = account.reserved.fetch_sub(amount.0, Ordering::AcqRel);
            debug_assert!(before >= amount.0, "more was released than was reserved");
        }
    }

    /// What is reserved now.
    #[must_use]
    pub fn reserved(&self, account: AccountId) -> Option<Reservation> {
        Some(Reservation(self.account(account)?.reserved.load(Ordering::Acquire)))
    }

    fn account(&self, id: AccountId) -> Option<&Account> {
        let place = self.accounts.binary_search_by_key(&id, |account| account.id).ok()?;
        Some(&self.accounts[place])
    }
}

/// A limit in the unit of reservations, rounded down as those are rounded up: never in favour of the client.
fn units(limit: Notional) -> i64 {
    i64::try_from(limit.0.div_euclid(100_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_against_the_client() {
        assert_eq!(Reservation::for_notional(Notional(0)), Some(Reservation(0)));
        assert_eq!(Reservation::for_notional(Notional(1)), Some(Reservation(1)));
        assert_eq!(Reservation::for_notional(Notional(100_000)), Some(Reservation(1)));
        assert_eq!(Reservation::for_notional(Notional(100_001)), Some(Reservation(2)));
        assert_eq!(Reservation::for_notional(Notional(i128::MAX)), None);
    }

    #[test]
    fn an_unknown_account_gets_nothing() {
        let limits = SharedLimits::new([(AccountId(1), Notional(1_000_000))]);
        assert!(!limits.reserve(AccountId(2), Reservation(0)));
    }

    #[test]
    fn a_lower_limit_gives_no_more_and_takes_nothing_away() {
        const ACCOUNT: AccountId = AccountId(3);
        let limits = SharedLimits::new([(ACCOUNT, Notional(1_099_999))]);
        assert!(limits.reserve(ACCOUNT, Reservation(10)));
        assert!(!limits.reserve(ACCOUNT, Reservation(1)));
        limits.set_limit(ACCOUNT, Notional(500_000));
        limits.release(ACCOUNT, Reservation(5));
        assert!(!limits.reserve(ACCOUNT, Reservation(1)));
        assert_eq!(limits.reserved(ACCOUNT), Some(Reservation(5)));
        limits.set_limit(ACCOUNT, Notional(600_000));
        assert!(limits.reserve(ACCOUNT, Reservation(1)));
        assert!(!limits.reserve(ACCOUNT, Reservation(1)));
    }

    #[test]
    fn shards_that_hammer_one_account_never_exceed_it_and_use_it_fully() {
        const LIMIT: i64 = 1_000;
        let limits = SharedLimits::new([(AccountId(7), Notional(i128::from(LIMIT) * 100_000))]);
        let shards = (0..4)
            .map(|_| {
                let limits = limits.clone();
                std::thread::spawn(move || {
                    let mut held = 0;
                    for round in 0..20_000_i64 {
                        let amount = Reservation(1 + round % 3);
                        if limits.reserve(AccountId(7), amount) {
                            held += amount.0;
                            assert!(limits.reserved(AccountId(7)).is_some_and(|sum| sum.0 <= LIMIT));
                        }
                        if round % 5 == 4 && held > 0 {
                            limits.release(AccountId(7), Reservation(1));
                            held -= 1;
                        }
                    }
                    while limits.reserve(AccountId(7), Reservation(1)) {
                        held += 1;
                    }
                    held
                })
            })
            .collect::<Vec<_>>();
        let held = shards
            .into_iter()
            .map(|shard| shard.join().expect("no shard panics"))
            .sum::<i64>();
        assert_eq!(limits.reserved(AccountId(7)), Some(Reservation(held)));
        assert_eq!(held, LIMIT);
    }
}
