//! Limits that span shards, of accounts and of the firm: reserved by compare-exchange before the order logic changes
//! anything, and given back exactly once when the order needs them no more.
//!
//! Every counter is a sum over orders or positions on all shards, see [`Stake`]. What an order adds is rounded up, so that
//! rounding never lets an account exceed its limit. An order that one limit refuses holds what it took of the others for an
//! instant, so that another shard may refuse an order that would have passed a moment later; never the other way round.

use crate::shared_counter::{Counter, take_all};
use orders::{AccountLimits, AccountPlace, FirmLimits, Limit, LimitValue, Need, OrdersConfig, Stake};
use std::sync::Arc;
use types::{Notional, Reason};

/// The counters of all accounts, shared by all shards.
#[derive(Clone, Debug)]
pub struct SharedLimits {
    /// By [`AccountPlace`].
    accounts: Arc<[Account]>,
    firm: Arc<Firm>,
    /// Whether what this shard takes counts for the firm. Without limits of the firm no shards compete for its counters.
    counts_firm: bool,
}

/// One account on cache lines of its own: shards that trade for different accounts do not meet.
#[derive(Debug)]
#[repr(align(64))]
struct Account {
    notional: Counter,
    orders: Counter,
    gross: Counter,
    long: Counter,
    short: Counter,
    /// Of what was lost; below zero it was gained.
    loss: Counter,
}

/// The firm, likewise.
#[derive(Debug)]
#[repr(align(64))]
struct Firm {
    notional: Counter,
    orders: Counter,
}

impl SharedLimits {
    /// Counters of what a config has, nothing used, and nothing counted for the firm. All shards have the same accounts.
    #[must_use]
    pub fn new(config: &OrdersConfig) -> Self {
        let FirmLimits {
            max_open_notional,
            max_open_orders,
        } = config.firm;
        let firm = Arc::new(Firm {
            notional: Counter::new(max_open_notional.map(units)),
            orders: Counter::new(max_open_orders.map(i64::from)),
        });
        Self {
            accounts: config
                .accounts
                .iter()
                .map(|account| Account::new(&account.limits))
                .collect(),
            firm,
            counts_firm: false,
        }
    }

    /// Counts for the firm from now on what this shard takes; so much it has taken already.
    pub fn count_firm(&mut self, taken: &Stake) {
        self.counts_firm = true;
        self.firm.notional.add(taken.notional);
        self.firm.orders.add(taken.orders);
    }

    /// Takes what an order needs, of the account's limits and of the firm's.
    ///
    /// # Errors
    /// The reason of the first limit that has not so much left; then nothing is taken.
    pub fn reserve(&self, place: AccountPlace, need: &Need) -> Result<(), Reason> {
        let account = &self.accounts[place.0 as usize];
        let stake = &need.stake;
        if !need.reduces && !account.loss.stays_below(-stake.profit) {
            return Err(Reason::LossLimit);
        }
        take_all(|| {
            [
                (&account.notional, stake.notional, Reason::SharedLimit),
                (&account.orders, stake.orders, Reason::MaxOpenOrders),
                (&account.gross, stake.gross, Reason::GrossLimit),
                (&account.long, stake.long, Reason::NetLimit),
                (&account.short, stake.short, Reason::NetLimit),
            ]
        })?;
        if self.counts_firm {
            let firm = &*self.firm;
            let taken = take_all(|| {
                [
                    (&firm.notional, stake.notional, Reason::FirmLimit),
                    (&firm.orders, stake.orders, Reason::FirmLimit),
                ]
            });
            if let Err(reason) = taken {
                account.give_back(stake);
                return Err(reason);
            }
        }
        account.loss.add(-stake.profit);
        Ok(())
    }

    /// Adds a change whatever the limits say: what is given back, and what was decided before a restart.
    pub fn settle(&self, place: AccountPlace, change: &Stake) {
        let account = &self.accounts[place.0 as usize];
        account.notional.add(change.notional);
        account.orders.add(change.orders);
        account.gross.add(change.gross);
        account.long.add(change.long);
        account.short.add(change.short);
        account.loss.add(-change.profit);
        if self.counts_firm {
            self.firm.notional.add(change.notional);
            self.firm.orders.add(change.orders);
        }
    }

    /// Puts another limit in the place of one; what is used stays, also when it is more. `place` is `None` for the firm's.
    /// Limits that do not span shards are passed over.
    pub fn set(&self, place: Option<AccountPlace>, limit: Limit, value: LimitValue) {
        let limit_of = match value {
            LimitValue::Amount(notional) => Some(units(notional)),
            LimitValue::Count(count) => i64::try_from(count).ok(),
            _ => None,
        };
        let set = |counter: &Counter| counter.set(limit_of);
        match (place, limit) {
            (Some(place), limit) => {
                let account = &self.accounts[place.0 as usize];
                match limit {
                    Limit::MaxOpenNotional => set(&account.notional),
                    Limit::MaxOpenOrders => set(&account.orders),
                    Limit::MaxGross => set(&account.gross),
                    Limit::MaxNet => {
                        set(&account.long);
                        set(&account.short);
                    }
                    Limit::MaxLoss => set(&account.loss),
                    _ => {}
                }
            }
            (None, Limit::MaxOpenNotional) => set(&self.firm.notional),
            (None, Limit::MaxOpenOrders) => set(&self.firm.orders),
            _ => {}
        }
    }

    /// What an account takes now.
    #[must_use]
    pub fn stake(&self, place: AccountPlace) -> Stake {
        let account = &self.accounts[place.0 as usize];
        Stake {
            notional: account.notional.used(),
            orders: account.orders.used(),
            gross: account.gross.used(),
            long: account.long.used(),
            short: account.short.used(),
            profit: -account.loss.used(),
        }
    }

    /// Notional and open orders of the firm, as far as they are counted.
    #[must_use]
    pub fn firm(&self) -> (i64, i64) {
        (self.firm.notional.used(), self.firm.orders.used())
    }
}

impl Account {
    #[cold]
    fn give_back(&self, stake: &Stake) {
        self.notional.add(-stake.notional);
        self.orders.add(-stake.orders);
        self.gross.add(-stake.gross);
        self.long.add(-stake.long);
        self.short.add(-stake.short);
    }

    fn new(limits: &AccountLimits) -> Self {
        Self {
            notional: Counter::new(limits.max_open_notional.map(units)),
            orders: Counter::new(Some(limits.max_open_orders.into())),
            gross: Counter::new(limits.max_gross.map(units)),
            long: Counter::new(limits.max_net.map(units)),
            short: Counter::new(limits.max_net.map(units)),
            loss: Counter::new(limits.max_loss.map(units)),
        }
    }
}

/// A limit in the unit of reservations, rounded down as those are rounded up: never in favour of the client.
fn units(limit: Notional) -> i64 {
    i64::try_from(limit.0.div_euclid(100_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: AccountPlace = AccountPlace(0);

    /// One account, and the firm where `firm` says so: limits of notional, and of orders.
    fn limits(account: [i64; 2], firm: Option<[i64; 2]>) -> SharedLimits {
        let account = Account {
            notional: Counter::new(Some(account[0])),
            orders: Counter::new(Some(account[1])),
            gross: Counter::new(Some(100)),
            long: Counter::new(Some(50)),
            short: Counter::new(Some(50)),
            loss: Counter::new(Some(30)),
        };
        SharedLimits {
            accounts: Arc::new([account]),
            firm: Arc::new(Firm {
                notional: Counter::new(firm.map(|[notional, _]| notional)),
                orders: Counter::new(firm.map(|[_, orders]| orders)),
            }),
            counts_firm: firm.is_some(),
        }
    }

    fn need(stake: Stake) -> Need {
        Need { stake, reduces: false }
    }

    fn order(notional: i64) -> Need {
        need(Stake {
            notional,
            orders: 1,
            ..Stake::NONE
        })
    }

    #[test]
    fn each_limit_takes_as_much_as_it_has_and_refuses_one_more() {
        for (stake, reason) in [
            (
                Stake {
                    notional: 1_000,
                    ..Stake::NONE
                },
                Reason::SharedLimit,
            ),
            (
                Stake {
                    orders: 10,
                    ..Stake::NONE
                },
                Reason::MaxOpenOrders,
            ),
            (
                Stake {
                    gross: 100,
                    ..Stake::NONE
                },
                Reason::GrossLimit,
            ),
            (
                Stake {
                    long: 50,
                    ..Stake::NONE
                },
                Reason::NetLimit,
            ),
            (
                Stake {
                    short: 50,
                    ..Stake::NONE
                },
                Reason::NetLimit,
            ),
        ] {
            let limits = limits([1_000, 10], None);
            assert_eq!(limits.reserve(PLACE, &need(stake)), Ok(()));
            let one = |amount: i64| i64::from(amount > 0);
            let more = Stake {
                notional: one(stake.notional),
                orders: one(stake.orders),
                gross: one(stake.gross),
                long: one(stake.long),
                short: one(stake.short),
                profit: 0,
            };
            assert_eq!(limits.reserve(PLACE, &need(more)), Err(reason));
            assert_eq!(limits.stake(PLACE), stake, "nothing is taken by one that is refused");
        }
    }

    #[test]
    fn a_loss_refuses_what_does_not_reduce() {
        let limits = limits([1_000, 10], None);
        let lost = |profit| Stake { profit, ..Stake::NONE };
        limits.settle(PLACE, &lost(-29));
        assert_eq!(limits.reserve(PLACE, &order(1)), Ok(()));
        assert_eq!(limits.reserve(PLACE, &need(lost(-1))), Err(Reason::LossLimit));
        limits.settle(PLACE, &lost(-1));
        assert_eq!(limits.reserve(PLACE, &order(1)), Err(Reason::LossLimit));
        let reducing = Need {
            reduces: true,
            ..order(1)
        };
        assert_eq!(limits.reserve(PLACE, &reducing), Ok(()));
        limits.settle(PLACE, &lost(1));
        assert_eq!(limits.reserve(PLACE, &order(1)), Ok(()));
    }

    #[test]
    fn what_the_firm_refuses_is_not_taken_of_the_account() {
        let limits = limits([1_000, 10], Some([500, 2]));
        assert_eq!(limits.reserve(PLACE, &order(501)), Err(Reason::FirmLimit));
        assert_eq!((limits.stake(PLACE), limits.firm()), (Stake::NONE, (0, 0)));
        assert_eq!(limits.reserve(PLACE, &order(500)), Ok(()));
        assert_eq!(limits.reserve(PLACE, &order(0)), Ok(()));
        assert_eq!(
            limits.reserve(PLACE, &order(0)),
            Err(Reason::FirmLimit),
            "two orders are open"
        );
        limits.settle(
            PLACE,
            &Stake {
                notional: -500,
                orders: -2,
                ..Stake::NONE
            },
        );
        assert_eq!((limits.stake(PLACE), limits.firm()), (Stake::NONE, (0, 0)));
    }

    #[test]
    fn a_lower_limit_gives_no_more_and_takes_nothing_away() {
        let limits = limits([10, 10], None);
        assert_eq!(limits.reserve(PLACE, &order(10)), Ok(()));
        limits.set(
            Some(PLACE),
            Limit::MaxOpenNotional,
            LimitValue::Amount(Notional(599_999)),
        );
        limits.settle(
            PLACE,
            &Stake {
                notional: -5,
                ..Stake::NONE
            },
        );
        assert_eq!(limits.reserve(PLACE, &order(1)), Err(Reason::SharedLimit));
        limits.set(
            Some(PLACE),
            Limit::MaxOpenNotional,
            LimitValue::Amount(Notional(600_000)),
        );
        assert_eq!(limits.reserve(PLACE, &order(1)), Ok(()));
        assert_eq!(limits.reserve(PLACE, &order(1)), Err(Reason::SharedLimit));
        limits.set(Some(PLACE), Limit::MaxOpenNotional, LimitValue::None);
        assert_eq!(limits.reserve(PLACE, &order(1_000)), Ok(()));
    }

    /// Shards take and give back as they like; then all take one at a time until nothing is left.
    fn hammer(limits: &SharedLimits, limit: i64, used: impl Fn(&SharedLimits) -> i64 + Copy + Send + 'static) {
        let shards = (0..4)
            .map(|_| {
                let limits = limits.clone();
                std::thread::spawn(move || {
                    let mut held = 0;
                    for round in 0..20_000_i64 {
                        let amount = 1 + round % 3;
                        if limits
                            .reserve(
                                PLACE,
                                &need(Stake {
                                    notional: amount,
                                    ..Stake::NONE
                                }),
                            )
                            .is_ok()
                        {
                            held += amount;
                            assert!(used(&limits) <= limit);
                        }
                        if round % 5 == 4 && held > 0 {
                            limits.settle(
                                PLACE,
                                &Stake {
                                    notional: -1,
                                    ..Stake::NONE
                                },
                            );
                            held -= 1;
                        }
                    }
                    while limits
                        .reserve(
                            PLACE,
                            &need(Stake {
                                notional: 1,
                                ..Stake::NONE
                            }),
                        )
                        .is_ok()
                    {
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
        assert_eq!((used(limits), held), (limit, limit));
    }

    #[test]
    fn shards_that_hammer_one_account_never_exceed_it_and_use_it_fully() {
        hammer(&limits([1_000, 10], None), 1_000, |limits| limits.stake(PLACE).notional);
    }

    #[test]
    fn shards_that_hammer_the_firm_never_exceed_it_and_use_it_fully() {
        let firm = |limits: &SharedLimits| limits.firm().0;
        hammer(&limits([i64::MAX, 10], Some([1_000, 10])), 1_000, firm);
    }
}
