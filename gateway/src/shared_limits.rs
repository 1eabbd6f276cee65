//! Limits that span shards, of accounts, sessions and the firm: reserved, by compare-exchange where there are several shards,
//! before the order logic changes anything, and given back exactly once when the order needs them no more.
//!
//! Every counter is a sum over orders or positions on all shards, see [`Stake`]. What an order adds is rounded up, so that
//! rounding never lets an account exceed its limit. An order that one limit refuses holds what it took of the others for an
//! instant, so that another shard may refuse an order that would have passed a moment later; never the other way round. So it
//! is with rates.

use crate::shared_counter::{Alone, Counter, Several, Sharers, take_all};
use crate::shared_rate::SharedRate;
use orders::{
    AccountLimits, AccountPlace, FirmLimits, Need, OrdersConfig, Places, SessionLimits, SessionPlace, SessionStake,
    SharedScope, Stake, TooFast, units_down,
};
use std::sync::Arc;
use types::{Notional, Reason, Timestamp};

/// The counters of all accounts and sessions, shared by all shards.
#[derive(Clone, Debug)]
pub struct SharedLimits {
    /// By [`AccountPlace`].
    accounts: Arc<[Account]>,
    /// By [`SessionPlace`].
    sessions: Arc<[Session]>,
    firm: Arc<Account>,
    /// There is one shard.
    is_alone: bool,
    /// Whether what this shard takes counts for the firm. Without limits of the firm no shards compete for its counters.
    counts_firm: bool,
}

/// One account, or the firm, on cache lines of its own: shards that trade for different accounts do not meet.
#[derive(Debug)]
#[repr(align(64))]
struct Account {
    /// As [`amounts`] has them.
    counters: [Counter; 5],
    /// Of what was lost; below zero it was gained.
    loss: Counter,
    rate: SharedRate,
}

/// One session, likewise.
#[derive(Debug)]
#[repr(align(64))]
struct Session {
    /// Of notional and of open orders.
    counters: [Counter; 2],
    rate: SharedRate,
}

/// Why an account's counters refuse, by their places.
const OF_ACCOUNT: [Reason; 5] = [
    Reason::SharedLimit,
    Reason::MaxOpenOrders,
    Reason::GrossLimit,
    Reason::NetLimit,
    Reason::NetLimit,
];

/// Why a session's do.
const OF_SESSION: [Reason; 2] = [Reason::SharedLimit, Reason::MaxOpenOrders];

/// What is taken of an account's counters, or the firm's.
const fn amounts(stake: &Stake) -> [i64; 5] {
    [stake.notional, stake.orders, stake.gross, stake.long, stake.short]
}

impl SharedLimits {
    /// Counters of what a config has, for so many shards, nothing used, and nothing counted for the firm. All shards have the same
    /// accounts and sessions.
    #[must_use]
    pub fn new(config: &OrdersConfig, shards: usize) -> Self {
        let accounts = config.accounts.iter();
        let sessions = config.sessions.iter();
        let limits = Self {
            accounts: accounts.map(|_| Account::new()).collect(),
            sessions: sessions.map(|_| Session::new()).collect(),
            firm: Arc::new(Account::new()),
            is_alone: shards == 1,
            counts_firm: false,
        };
        let now = Timestamp::NONE;
        limits.set(now, &SharedScope::Firm(config.firm));
        for (place, account) in (0..).zip(&config.accounts) {
            limits.set(now, &SharedScope::Account(AccountPlace(place), account.limits));
        }
        for (place, session) in (0..).zip(&config.sessions) {
            limits.set(now, &SharedScope::Session(SessionPlace(place), session.limits));
        }
        limits
    }

    /// Counts for the firm from now on what this shard takes; so much it has taken already.
    pub fn count_firm(&mut self, taken: &Stake) {
        self.counts_firm = true;
        self.firm.settle::<Several>(taken);
    }

    /// Takes what an order needs, of the limits of its account and its session and of the firm's.
    ///
    /// # Errors
    /// The reason of the first limit that has not so much left; then nothing is taken.
    #[inline]
    pub fn reserve(&self, places: Places, need: &Need) -> Result<(), Reason> {
        if self.is_alone {
            self.reserve_among::<Alone>(places, need)
        } else {
            self.reserve_among::<Several>(places, need)
        }
    }

    #[inline]
    fn reserve_among<S: Sharers>(&self, places: Places, need: &Need) -> Result<(), Reason> {
        let (account, session) = (self.account(places.account), self.session(places.session));
        let Stake { notional, orders, .. } = need.stake;
        account
            .take::<S>(need)
            .map_err(|place| reason(&OF_ACCOUNT, place, Reason::LossLimit))?;
        if let Err(place) = take_all::<S, 2>(&session.counters, [notional, orders]) {
            account.give_back::<S>(&need.stake);
            return Err(OF_SESSION[place]);
        }
        if self.counts_firm && self.firm.take::<S>(need).is_err() {
            account.give_back::<S>(&need.stake);
            session.settle::<S>(-notional, -orders);
            return Err(Reason::FirmLimit);
        }
        Ok(())
    }

    /// Adds a change whatever the limits say: what is given back, and what was decided before a restart.
    pub fn settle(&self, place: AccountPlace, change: &Stake) {
        let counted = [self.account(place), &*self.firm];
        for counters in &counted[..1 + usize::from(self.counts_firm)] {
            if self.is_alone {
                counters.settle::<Alone>(change);
            } else {
                counters.settle::<Several>(change);
            }
        }
    }

    /// The same for a session.
    pub fn settle_session(&self, place: SessionPlace, change: &SessionStake) {
        let session = self.session(place);
        if self.is_alone {
            session.settle::<Alone>(change.notional, change.orders);
        } else {
            session.settle::<Several>(change.notional, change.orders);
        }
    }

    /// Takes one order of the rates of the firm, an account and a session.
    ///
    /// # Errors
    /// Those that do not allow it; then it is taken of none.
    #[inline]
    pub fn take_rates(&self, now: Timestamp, places: Places) -> Result<(), TooFast> {
        let rates = self.rates(places);
        let [firm, account, session] = if self.is_alone {
            rates.map(|rate| rate.take::<Alone>(now).err())
        } else {
            rates.map(|rate| rate.take::<Several>(now).err())
        };
        if firm.is_none() && account.is_none() && session.is_none() {
            return Ok(());
        }
        for (rate, verdict) in rates.into_iter().zip([firm, account, session]) {
            if verdict.is_none() {
                rate.give_back();
            }
        }
        Err(TooFast { firm, account, session })
    }

    /// Gives back one order that was taken of them and is not to count.
    pub fn give_back_rates(&self, places: Places) {
        for rate in self.rates(places) {
            rate.give_back();
        }
    }

    /// An order was taken of them then, as far as a journal knows: of several shards it cannot tell how many others there were.
    pub fn use_up_rates(&self, then: Timestamp, places: Places) {
        for rate in self.rates(places) {
            rate.use_up(then);
        }
    }

    /// Puts others in the place of all limits of a scope that span shards; what is used stays, also when it is more.
    pub fn set(&self, now: Timestamp, limits: &SharedScope) {
        match limits {
            SharedScope::Firm(limits) => self.firm.set_firm(now, limits),
            SharedScope::Account(place, limits) => self.account(*place).set(now, limits),
            SharedScope::Session(place, limits) => self.session(*place).set(now, limits),
        }
    }

    /// What an account takes now.
    #[must_use]
    pub fn stake(&self, place: AccountPlace) -> Stake {
        self.account(place).stake()
    }

    /// What a session takes now.
    #[must_use]
    pub fn session_stake(&self, place: SessionPlace) -> SessionStake {
        let [notional, orders] = self.session(place).counters.each_ref().map(Counter::used);
        SessionStake { notional, orders }
    }

    /// What the firm takes now, as far as it is counted.
    #[must_use]
    pub fn firm(&self) -> Stake {
        self.firm.stake()
    }

    #[inline]
    fn account(&self, place: AccountPlace) -> &Account {
        &self.accounts[place.0 as usize]
    }

    #[inline]
    fn session(&self, place: SessionPlace) -> &Session {
        &self.sessions[place.0 as usize]
    }

    #[inline]
    fn rates(&self, places: Places) -> [&SharedRate; 3] {
        let (account, session) = (self.account(places.account), self.session(places.session));
        [&self.firm.rate, &account.rate, &session.rate]
    }
}

impl Account {
    /// Without limits.
    fn new() -> Self {
        Self {
            counters: [const { Counter::new(None) }; 5],
            loss: Counter::new(None),
            rate: SharedRate::new(),
        }
    }

    fn set(&self, now: Timestamp, limits: &AccountLimits) {
        self.set_counters([
            limits.max_open_notional.map(units),
            Some(limits.max_open_orders.into()),
            limits.max_gross.map(units),
            limits.max_net.map(units),
            limits.max_net.map(units),
        ]);
        self.loss.set(limits.max_loss.map(units));
        self.rate.set(now, limits.rate);
    }

    fn set_firm(&self, now: Timestamp, limits: &FirmLimits) {
        self.set_counters([
            limits.max_open_notional.map(units),
            limits.max_open_orders.map(i64::from),
            limits.max_gross.map(units),
            limits.max_net.map(units),
            limits.max_net.map(units),
        ]);
        self.loss.set(limits.max_loss.map(units));
        self.rate.set(now, limits.rate);
    }

    fn set_counters(&self, limits: [Option<i64>; 5]) {
        for (counter, limit) in self.counters.iter().zip(limits) {
            counter.set(limit);
        }
    }

    /// Takes what an order needs, or nothing.
    ///
    /// # Errors
    /// The place of the counter that has not so much left; none of theirs for the loss.
    #[inline(always)]
    fn take<S: Sharers>(&self, need: &Need) -> Result<(), usize> {
        if !need.reduces && !self.loss.stays_below(-need.stake.profit) {
            return Err(usize::MAX);
        }
        take_all::<S, 5>(&self.counters, amounts(&need.stake))?;
        self.loss.add::<S>(-need.stake.profit);
        Ok(())
    }

    #[cold]
    fn give_back<S: Sharers>(&self, stake: &Stake) {
        self.settle::<S>(&(Stake::NONE - *stake));
    }

    fn settle<S: Sharers>(&self, change: &Stake) {
        for (counter, amount) in self.counters.iter().zip(amounts(change)) {
            counter.add::<S>(amount);
        }
        self.loss.add::<S>(-change.profit);
    }

    fn stake(&self) -> Stake {
        let [notional, orders, gross, long, short] = self.counters.each_ref().map(Counter::used);
        Stake {
            notional,
            orders,
            gross,
            long,
            short,
            profit: -self.loss.used(),
        }
    }
}

impl Session {
    /// Without limits.
    fn new() -> Self {
        Self {
            counters: [const { Counter::new(None) }; 2],
            rate: SharedRate::new(),
        }
    }

    fn set(&self, now: Timestamp, limits: &SessionLimits) {
        let [notional, orders] = &self.counters;
        notional.set(limits.max_open_notional.map(units));
        orders.set(Some(limits.max_open_orders.into()));
        self.rate.set(now, limits.rate);
    }

    fn settle<S: Sharers>(&self, notional: i64, orders: i64) {
        for (counter, amount) in self.counters.iter().zip([notional, orders]) {
            counter.add::<S>(amount);
        }
    }
}

/// Of a counter's place; of none when it is the loss.
#[cold]
fn reason(reasons: &[Reason], place: usize, of_loss: Reason) -> Reason {
    reasons.get(place).copied().unwrap_or(of_loss)
}

/// A limit in the unit of reservations.
fn units(limit: Notional) -> i64 {
    i64::try_from(units_down(limit)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orders::{RateAction, RateLimit};
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
    use types::Duration;

    const ACCOUNT: AccountPlace = AccountPlace(0);
    const SESSION: SessionPlace = SessionPlace(0);
    const PLACES: Places = Places {
        account: ACCOUNT,
        session: SESSION,
    };

    /// One account and one session, notional and orders of each limited, and the firm where `firm` says so.
    fn limits(account: [i64; 2], firm: Option<[i64; 2]>) -> SharedLimits {
        let (of_account, session, of_firm) = (Account::new(), Session::new(), Account::new());
        of_account.set_counters([account[0], account[1], 100, 50, 50].map(Some));
        of_account.loss.set(Some(30));
        for place in 0..2 {
            of_firm.counters[place].set(firm.map(|most| most[place]));
        }
        SharedLimits {
            accounts: Arc::new([of_account]),
            sessions: Arc::new([session]),
            firm: Arc::new(of_firm),
            is_alone: false,
            counts_firm: firm.is_some(),
        }
    }

    fn need(stake: Stake) -> Need {
        Need { stake, reduces: false }
    }

    fn notional(notional: i64) -> Stake {
        Stake {
            notional,
            ..Stake::NONE
        }
    }

    fn order(notional: i64) -> Need {
        need(Stake {
            notional,
            orders: 1,
            ..Stake::NONE
        })
    }

    /// Each thing that an order may take, so much of it.
    fn each(amount: i64) -> [Stake; 5] {
        [
            notional(amount),
            Stake {
                orders: amount,
                ..Stake::NONE
            },
            Stake {
                gross: amount,
                ..Stake::NONE
            },
            Stake {
                long: amount,
                ..Stake::NONE
            },
            Stake {
                short: amount,
                ..Stake::NONE
            },
        ]
    }

    #[test]
    fn each_limit_takes_as_much_as_it_has_and_refuses_one_more() {
        let full = [1_000, 10, 100, 50, 50];
        let reasons = [
            Reason::SharedLimit,
            Reason::MaxOpenOrders,
            Reason::GrossLimit,
            Reason::NetLimit,
            Reason::NetLimit,
        ];
        for (kind, (most, reason)) in full.into_iter().zip(reasons).enumerate() {
            let limits = limits([1_000, 10], None);
            let (all, more) = (each(most)[kind], each(1)[kind]);
            assert_eq!(limits.reserve(PLACES, &need(all)), Ok(()));
            assert_eq!(limits.reserve(PLACES, &need(more)), Err(reason));
            assert_eq!(limits.stake(ACCOUNT), all, "nothing is taken by one that is refused");
        }
    }

    #[test]
    fn a_session_has_its_own_limits_and_what_it_refuses_is_taken_of_no_other() {
        for (kind, reason) in [Reason::SharedLimit, Reason::MaxOpenOrders].into_iter().enumerate() {
            let limits = limits([1_000, 10], Some([1_000, 10]));
            for counter in &limits.sessions[0].counters {
                counter.set(Some(4));
            }
            assert_eq!(limits.reserve(PLACES, &need(each(4)[kind])), Ok(()));
            assert_eq!(limits.reserve(PLACES, &need(each(1)[kind])), Err(reason));
            assert_eq!((limits.stake(ACCOUNT), limits.firm()), (each(4)[kind], each(4)[kind]));
            let Stake { notional, orders, .. } = each(4)[kind];
            assert_eq!(limits.session_stake(SESSION), SessionStake { notional, orders });
            let back = SessionStake {
                notional: -notional,
                orders: -orders,
            };
            limits.settle_session(SESSION, &back);
            assert_eq!(limits.reserve(PLACES, &need(each(1)[kind])), Ok(()));
        }
    }

    #[test]
    fn a_loss_refuses_what_does_not_reduce() {
        for of_firm in [false, true] {
            let limits = limits([1_000, 10], of_firm.then_some([1_000, 10]));
            if of_firm {
                limits.accounts[0].loss.set(None);
                limits.firm.loss.set(Some(30));
            }
            let reason = if of_firm { Reason::FirmLimit } else { Reason::LossLimit };
            let lost = |profit| Stake { profit, ..Stake::NONE };
            limits.settle(ACCOUNT, &lost(-29));
            assert_eq!(limits.reserve(PLACES, &order(1)), Ok(()));
            assert_eq!(limits.reserve(PLACES, &need(lost(-1))), Err(reason));
            limits.settle(ACCOUNT, &lost(-1));
            assert_eq!(limits.reserve(PLACES, &order(1)), Err(reason));
            let reducing = Need {
                reduces: true,
                ..order(1)
            };
            assert_eq!(limits.reserve(PLACES, &reducing), Ok(()));
            limits.settle(ACCOUNT, &lost(1));
            assert_eq!(limits.reserve(PLACES, &order(1)), Ok(()));
        }
    }

    #[test]
    fn what_the_firm_refuses_is_not_taken_of_account_and_session() {
        for kind in 0..5 {
            let limits = limits([1_000, 1_000], Some([10, 10]));
            limits.accounts[0].set_counters([None; 5]);
            limits.firm.set_counters([Some(10); 5]);
            assert_eq!(limits.reserve(PLACES, &need(each(11)[kind])), Err(Reason::FirmLimit));
            assert_eq!((limits.stake(ACCOUNT), limits.firm()), (Stake::NONE, Stake::NONE));
            assert_eq!(limits.session_stake(SESSION), SessionStake::default());
            assert_eq!(limits.reserve(PLACES, &need(each(10)[kind])), Ok(()));
            assert_eq!(limits.reserve(PLACES, &need(each(1)[kind])), Err(Reason::FirmLimit));
            limits.settle(ACCOUNT, &(Stake::NONE - each(10)[kind]));
            assert_eq!((limits.stake(ACCOUNT), limits.firm()), (Stake::NONE, Stake::NONE));
        }
    }

    #[test]
    fn a_lower_limit_gives_no_more_and_takes_nothing_away() {
        let limits = limits([10, 10], None);
        let set = |limit: Option<i128>| limits.accounts[0].counters[0].set(limit.map(Notional).map(units));
        assert_eq!(limits.reserve(PLACES, &order(10)), Ok(()));
        set(Some(599_999));
        limits.settle(ACCOUNT, &notional(-5));
        assert_eq!(limits.reserve(PLACES, &order(1)), Err(Reason::SharedLimit));
        set(Some(600_000));
        assert_eq!(limits.reserve(PLACES, &order(1)), Ok(()));
        assert_eq!(limits.reserve(PLACES, &order(1)), Err(Reason::SharedLimit));
        set(None);
        assert_eq!(limits.reserve(PLACES, &order(1_000)), Ok(()));
    }

    /// Shards take and give back as they like; then all take one at a time until nothing is left.
    fn hammer(limits: &SharedLimits, limit: i64, used: impl Fn(&SharedLimits) -> i64 + Copy + Send + 'static) {
        // All of what was granted, counted before it is given back and behind what it is granted by: never more than there is.
        let granted = Arc::new(AtomicI64::new(0));
        let shards = (0..4)
            .map(|_| {
                let (limits, granted) = (limits.clone(), Arc::clone(&granted));
                let take = move |limits: &SharedLimits, amount: i64| {
                    let is_taken = limits.reserve(PLACES, &need(notional(amount))).is_ok();
                    if is_taken {
                        assert!(granted.fetch_add(amount, Ordering::SeqCst) + amount <= limit);
                    }
                    (is_taken, Arc::clone(&granted))
                };
                std::thread::spawn(move || {
                    let mut held = 0;
                    for round in 0..20_000_i64 {
                        let amount = 1 + round % 3;
                        let (is_taken, granted) = take(&limits, amount);
                        if is_taken {
                            held += amount;
                        }
                        if round % 5 == 4 && held > 0 {
                            granted.fetch_sub(1, Ordering::SeqCst);
                            limits.settle(ACCOUNT, &notional(-1));
                            let back = SessionStake {
                                notional: -1,
                                orders: 0,
                            };
                            limits.settle_session(SESSION, &back);
                            held -= 1;
                        }
                    }
                    while take(&limits, 1).0 {
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
        hammer(&limits([1_000, 10], None), 1_000, |limits| {
            limits.stake(ACCOUNT).notional
        });
    }

    #[test]
    fn shards_that_hammer_one_session_never_exceed_it_and_use_it_fully() {
        let limits = limits([i64::MAX, 10], None);
        limits.sessions[0].counters[0].set(Some(1_000));
        hammer(&limits, 1_000, |limits| limits.session_stake(SESSION).notional);
    }

    #[test]
    fn shards_that_hammer_the_firm_never_exceed_it_and_use_it_fully() {
        let firm = |limits: &SharedLimits| limits.firm().notional;
        hammer(&limits([i64::MAX, 10], Some([1_000, 10])), 1_000, firm);
    }

    /// A thousand a second, five at once.
    const RATE: RateLimit = RateLimit {
        per_second: Some(1_000),
        at_once: Some(5),
        action: Some(RateAction::Reject),
    };
    const START: Timestamp = Timestamp(1_000_000_000_000);

    /// The clock of all shards moves as they hammer; each reads it anew for every order, and so some come late with their time.
    #[test]
    fn shards_that_hammer_a_rate_never_exceed_it_and_use_it_fully() {
        const TAKEN: u64 = 20_000;
        for whose in 0..3 {
            let limits = limits([i64::MAX, i64::MAX], None);
            let rate = [&limits.firm.rate, &limits.accounts[0].rate, &limits.sessions[0].rate][whose];
            rate.set(START, RATE);
            let (clock, taken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let shards = (0..4).map(|_| {
                let (limits, clock, taken) = (limits.clone(), Arc::clone(&clock), Arc::clone(&taken));
                std::thread::spawn(move || {
                    while taken.load(Ordering::SeqCst) < TAKEN {
                        // A tenth of an order's share.
                        let passed = Duration(clock.fetch_add(100_000, Ordering::SeqCst));
                        if limits.take_rates(START + passed, PLACES).is_ok() {
                            taken.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
            });
            let shards = shards.collect::<Vec<_>>();
            for shard in shards {
                shard.join().expect("no shard panics");
            }
            let passed = clock.load(Ordering::SeqCst);
            let (taken, most) = (taken.load(Ordering::SeqCst), passed / 1_000_000 + 5);
            assert!(taken <= most, "{taken} of {most}");
            // Ten looks a share: what a shard leaves because its clock is late another takes.
            assert!(taken + 10 >= most, "{taken} of {most}");
        }
    }

    #[test]
    fn a_rate_that_does_not_allow_an_order_takes_it_of_no_other() {
        let limits = limits([i64::MAX, i64::MAX], None);
        let rates = [&limits.firm.rate, &limits.accounts[0].rate, &limits.sessions[0].rate];
        for (rate, at_once) in rates.into_iter().zip([5, 4, 3]) {
            let at_once = Some(at_once);
            rate.set(START, RateLimit { at_once, ..RATE });
        }
        for _ in 0..3 {
            assert_eq!(limits.take_rates(START, PLACES), Ok(()));
        }
        let next = Some(START + Duration(1_000_000));
        let session = TooFast {
            session: next,
            ..TooFast::default()
        };
        for _ in 0..5 {
            assert_eq!(limits.take_rates(START, PLACES), Err(session));
        }
        limits.sessions[0].rate.set(START, RateLimit::NONE);
        assert_eq!(limits.take_rates(START, PLACES), Ok(()));
        let account = TooFast {
            account: next,
            ..TooFast::default()
        };
        assert_eq!(limits.take_rates(START, PLACES), Err(account));
        limits.give_back_rates(PLACES);
        assert_eq!(limits.take_rates(START, PLACES), Ok(()));
        limits.accounts[0].rate.set(START, RateLimit::NONE);
        assert_eq!(limits.take_rates(START, PLACES), Ok(()));
        let firm = TooFast {
            firm: next,
            ..TooFast::default()
        };
        assert_eq!(limits.take_rates(START, PLACES), Err(firm));
    }

    #[test]
    fn after_a_restart_of_several_shards_a_rate_is_used_up_by_its_last_order() {
        let limits = limits([i64::MAX, i64::MAX], None);
        limits.sessions[0].rate.set(START, RATE);
        limits.use_up_rates(START, PLACES);
        limits.use_up_rates(Timestamp(START.0 - 10), PLACES);
        assert!(limits.take_rates(START + Duration(999_999), PLACES).is_err());
        assert_eq!(limits.take_rates(START + Duration(1_000_000), PLACES), Ok(()));
        let later = START + Duration(6_000_000);
        let taken = (0..9).filter(|_| limits.take_rates(later, PLACES).is_ok());
        assert_eq!(taken.count(), 5);
    }
}
