//! What the order logic is told at start: instruments, sessions, accounts, venues, routes, limits, capacities.
//!
//! Every limit is stated; there is no `Default` here on purpose. Whoever reads a config file gives each value or refuses
//! to start.

use crate::limit_table::{Limit, LimitScope};
use crate::limit_value::{LimitError, LimitValue};
use crate::limits::{
    BOOKS_MAX, NOTIONAL_MAX, OPEN_ORDERS_MAX, POSITIONS_MAX, QUANTITY_MAX, REPEATS_MAX, RESTRICTED_CLASSES_MAX,
    RESTRICTIONS_MAX, VALUE_LIMIT_MAX,
};
use crate::order_types::OrderTypes;
use crate::rate::Rate;
use crate::restricted::{Party, Traded};
use crate::together::{Most, Together};
use alloc::vec::Vec;
use core::fmt;
use types::{
    AccountId, Duration, Instrument, InstrumentId, LimitClass, Notional, Price, Quantity, SessionId, ShardId, VenueId,
};

/// Everything that [`Orders::new`](crate::Orders::new) is told.
#[derive(Clone, Debug)]
pub struct OrdersConfig {
    /// The shard whose orders these are; the top byte of every order number.
    pub shard: ShardId,
    /// The instruments of this shard.
    pub instruments: Vec<Instrument>,
    /// The limits of each class, by the index in [`LimitClass`].
    pub classes: Vec<InstrumentLimits>,
    /// Limits for all orders.
    pub firm: FirmLimits,
    /// Limits that instruments have in the place of their class's.
    pub overrides: Vec<(InstrumentId, Limit, LimitValue)>,
    /// The accounts of all sessions.
    pub accounts: Vec<AccountConfig>,
    /// All client sessions that may trade these instruments, those of other shards included.
    pub sessions: Vec<SessionConfig>,
    /// The venues, by the index in [`VenueId`].
    pub venues: Vec<VenueConfig>,
    /// Where orders go that do not go to their instrument's venue.
    pub routes: Vec<Route>,
    /// How long an order waits until own orders that it would trade with are cancelled. Zero where no session has
    /// [`SelfMatch::CancelOldest`].
    pub own_cancel_wait: Duration,
    /// Orders that wait for a rate.
    pub rate_queue: RateQueueConfig,
    /// Pegged orders that the gateway stands in for follow the book of their instrument at most once in this time. Zero where
    /// it stands in for none.
    pub peg_interval: Duration,
    /// Trades inside the gateway.
    pub crossing: CrossingConfig,
    /// How much is allocated.
    pub capacity: Capacity,
}

impl OrdersConfig {
    /// All its limits: of the firm, of each class, account and session, those that instruments have in the place of their
    /// class's, and what is closed to single accounts and sessions.
    pub fn limits(&self) -> impl Iterator<Item = ((LimitScope, Limit), LimitValue)> {
        let classes = (0..).map(LimitClass).zip(&self.classes);
        let classes = classes.flat_map(|(class, of)| all(LimitScope::Class(class), |limit| of.value(limit)));
        let accounts = self.accounts.iter();
        let accounts = accounts.flat_map(|one| all(LimitScope::Account(one.id), |limit| one.limits.value(limit)));
        let sessions = self.sessions.iter();
        let sessions = sessions.flat_map(|one| all(LimitScope::Session(one.id), |limit| one.limits.value(limit)));
        let instruments = self.overrides.iter();
        let instruments = instruments.map(|&(id, limit, value)| ((LimitScope::Instrument(id), limit), value));
        all(LimitScope::Firm, |limit| self.firm.value(limit))
            .chain(classes)
            .chain(accounts)
            .chain(sessions)
            .chain(instruments)
            .chain(self.restrictions().map(|(party, traded)| {
                let scope = LimitScope::Trade(party, traded);
                ((scope, Limit::Restricted), LimitValue::Switch(true))
            }))
    }

    /// What is closed to whom.
    pub(crate) fn restrictions(&self) -> impl Iterator<Item = (Party, Traded)> {
        let accounts = self.accounts.iter();
        let accounts = accounts.map(|one| (Party::Account(one.id), &one.restrictions));
        let sessions = self.sessions.iter();
        let sessions = sessions.map(|one| (Party::Session(one.id), &one.restrictions));
        accounts.chain(sessions).flat_map(|(party, restrictions)| {
            let classes = restrictions.classes.iter().copied().map(Traded::Class);
            let instruments = restrictions.instruments.iter().copied().map(Traded::Instrument);
            classes.chain(instruments).map(move |traded| (party, traded))
        })
    }

    /// The same without what [`set_limits`](crate::Orders::set_limits) could not set later as if it had been there from the
    /// start: overrides, limits that span shards, and what is closed to single accounts and sessions.
    #[must_use]
    pub fn without_limits(mut self) -> Self {
        self.overrides.clear();
        self.firm = FirmLimits::NONE;
        for account in &mut self.accounts {
            (
                account.limits.max_gross,
                account.limits.max_net,
                account.limits.max_loss,
            ) = (None, None, None);
            account.restrictions = Restrictions::default();
        }
        for session in &mut self.sessions {
            session.restrictions = Restrictions::default();
        }
        self
    }
}

/// Those limits that stand at a scope.
fn all(
    scope: LimitScope,
    value: impl Fn(Limit) -> Option<LimitValue>,
) -> impl Iterator<Item = ((LimitScope, Limit), LimitValue)> {
    let limits = Limit::ALL.iter();
    limits.filter_map(move |&limit| Some(((scope, limit), value(limit)?)))
}

/// Limits for all orders of all shards. What spans shards is held outside, see [`Routed::need`](crate::Routed::need) and
/// [`Orders::pace`](crate::Orders::pace).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirmLimits {
    /// Most lots in one order; `None`: what instrument, account and session allow.
    pub max_quantity: Option<Quantity>,
    /// Most notional in one order, 1e-9; `None`: what instrument, account and session allow.
    pub max_notional: Option<Notional>,
    /// Most notional of open orders and of what traded this day, 1e-9.
    pub max_open_notional: Option<Notional>,
    /// Most orders open at a time.
    pub max_open_orders: Option<u32>,
    /// As [`AccountLimits::max_gross`], over all accounts.
    pub max_gross: Option<Notional>,
    /// As [`AccountLimits::max_net`], of what all accounts hold together.
    pub max_net: Option<Notional>,
    /// As [`AccountLimits::max_loss`], of all accounts together.
    pub max_loss: Option<Notional>,
    /// Most new orders and replaces in a time.
    pub rate: RateLimit,
}

/// Limits for the orders in an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstrumentLimits {
    /// Most lots in one order.
    pub max_quantity: Quantity,
    /// Most notional in one order, 1e-9.
    pub max_notional: Notional,
    /// How far a limit may be from the reference price, either way; `None` lets every price pass.
    pub collar: Option<Collar>,
    /// How far a limit may reach through the book; `None` lets every price pass.
    pub book: Option<BookLimit>,
    /// Which price is the reference.
    pub reference: ReferenceChoice,
    /// A reference price or a book older than this is stale.
    pub stale_after: Duration,
    /// What holds when the reference price is missing or stale.
    pub missing_reference: MissingReference,
    /// Whether market orders are allowed.
    pub market_orders: bool,
    /// Whether nobody may send new orders.
    pub restricted: bool,
    /// What holds for orders at the opening and at the close in the place of the above.
    pub auction: AuctionLimits,
    /// Most orders of all accounts open at a time.
    pub max_open_orders: Option<u32>,
    /// Most notional of their open orders and of what they traded this day, 1e-9.
    pub max_open_notional: Option<Notional>,
    /// As [`AccountLimits::max_position`], of what all accounts hold together.
    pub max_position: Option<Quantity>,
    /// As [`AccountLimits::max_long`], likewise.
    pub max_long: Option<Quantity>,
    /// As [`AccountLimits::max_short`], likewise.
    pub max_short: Option<Quantity>,
    /// Most new orders and replaces of all accounts in a time.
    pub rate: RateLimit,
}

/// Limits for orders that trade in an auction alone: those whose time in force is at the opening or at the close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuctionLimits {
    /// Most lots in one order; `None`: as for other orders.
    pub max_quantity: Option<Quantity>,
    /// Most notional in one order, 1e-9; `None`: as for other orders.
    pub max_notional: Option<Notional>,
    /// As [`InstrumentLimits::collar`]; `None`: as for other orders.
    pub collar: Option<Option<Collar>>,
}

/// Which price of the market collars measure from, and market orders count at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferenceChoice {
    /// [`Reference::price`](crate::Reference::price).
    Mid,
    /// [`Reference::last`](crate::Reference::last).
    Last,
    /// The reference price of the instrument master; it is never stale.
    Master,
}

/// The greatest distance of a limit from the reference price. When both are given, both hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collar {
    /// In hundredths of a percent of the reference price.
    pub basis_points: Option<u32>,
    /// In ticks of the instrument.
    pub ticks: Option<u32>,
}

/// How far a buy may be above the best offer, and a sell below the best bid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookLimit {
    /// From the best price of the other side.
    pub width: Collar,
    /// What holds when that side is empty, unknown or stale.
    pub missing: MissingBook,
}

/// What a missing or stale book does to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingBook {
    /// It is refused.
    Refuse,
    /// It is not held against the book; the other checks hold.
    Skip,
}

/// What holds when no fresh reference price is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingReference {
    /// The order is refused.
    Refuse,
    /// The reference price of the instrument master stands in.
    UseMaster,
}

/// A trading account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountConfig {
    /// Its number.
    pub id: AccountId,
    /// Its limits.
    pub limits: AccountLimits,
    /// What it may not trade.
    pub restrictions: Restrictions,
}

/// Instruments that an account or a session may send no new orders in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Restrictions {
    /// All instruments of these classes; each below [`RESTRICTED_CLASSES_MAX`].
    pub classes: Vec<LimitClass>,
    /// These instruments, of this shard.
    pub instruments: Vec<InstrumentId>,
}

/// Limits for the orders of an account. Those of the instrument hold as well.
// In this order: those that the checks of an order look at stand together, in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct AccountLimits {
    /// Most lots in one order.
    pub max_quantity: Quantity,
    /// Most notional in one order, 1e-9.
    pub max_notional: Notional,
    /// Most orders open at a time, over all shards.
    pub max_open_orders: u32,
    /// Most lots that the account may come to hold in an instrument, long or short, if all its open orders trade. Counted
    /// from the start of the day. `None`: any number.
    pub max_position: Option<Quantity>,
    /// The same for what it holds long alone.
    pub max_long: Option<Quantity>,
    /// The same for what it holds short alone.
    pub max_short: Option<Quantity>,
    /// Whether it may sell short.
    pub short_sales: ShortSales,
    /// Most new orders and replaces in a time, over all shards.
    pub rate: RateLimit,
    /// Most notional of open orders and of what traded this day, 1e-9, over all shards. Limits that span shards are held
    /// outside: every order needs a reservation, see [`Routed::need`](crate::Routed::need).
    pub max_open_notional: Option<Notional>,
    /// Most value of all positions together, each the larger of long and short with its open orders, 1e-9, over all shards.
    pub max_gross: Option<Notional>,
    /// Most value of what was bought less what was sold, or the other way round, each with the open orders of its side, 1e-9,
    /// over all shards.
    pub max_net: Option<Notional>,
    /// Most that it may lose in a day, what is held at its value, 1e-9, over all shards.
    pub max_loss: Option<Notional>,
}

/// Whether an account may sell short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShortSales {
    /// It may not.
    Never,
    /// Only what it has located.
    WithLocate,
    /// It may.
    Allowed,
}

/// How often a session may send the same order: the same instrument, account, side, type, time in force, price, stop price
/// and quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepeatLimit {
    /// So many times, the first included: 1 to [`REPEATS_MAX`]. `None`: any number.
    pub orders: Option<u32>,
    /// In any time as long as this. Not 0, and there with `orders`.
    pub within: Option<Duration>,
}

/// Most new orders and replaces in a time. Cancels are never held back, nor replaces that only take lots off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// On average. Not 0. `None`: any number.
    pub per_second: Option<u32>,
    /// At once, after a time without any. Not 0, and there with `per_second`.
    pub at_once: Option<u32>,
    /// What happens to an order that comes faster. There with `per_second`.
    pub action: Option<RateAction>,
}

/// What happens to an order that comes faster than a rate; the last is the strictest. A replace is never queued.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RateAction {
    /// It waits in the gateway until the rate allows it.
    Queue,
    /// It is refused.
    Reject,
    /// It is refused, and its session is logged out.
    Disconnect,
}

/// Orders that wait for a rate. Zeros where no rate has [`RateAction::Queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateQueueConfig {
    /// How many may at a time.
    pub orders: u32,
    /// How long each may before it is refused.
    pub wait: Duration,
}

/// What may trade inside the gateway, of sessions that want it: [`SessionConfig::crossing`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrossingConfig {
    /// In these instruments of the shard.
    pub instruments: Vec<InstrumentId>,
    /// How long an order rests here for others before it goes to its venue. Zero where no session wants it.
    pub rest: Duration,
}

impl CrossingConfig {
    /// Nothing.
    pub const NONE: Self = Self {
        instruments: Vec::new(),
        rest: Duration(0),
    };
}

/// A client session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionConfig {
    /// Its number.
    pub id: SessionId,
    /// The accounts it may use.
    pub accounts: Vec<AccountId>,
    /// Orders of sessions with the same owner never trade with each other.
    pub owner: u32,
    /// What happens when an order of this session would trade with one of its own owner.
    pub self_match: SelfMatch,
    /// Whether its orders may trade inside the gateway, in the instruments of [`CrossingConfig`].
    pub crossing: bool,
    /// Whether its orders are cancelled when it is lost.
    pub cancel_on_disconnect: bool,
    /// Its limits.
    pub limits: SessionLimits,
    /// What it may not trade.
    pub restrictions: Restrictions,
}

/// Limits for the orders of a session. Those of the account and the instrument hold as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionLimits {
    /// Most orders open at a time, over all shards.
    pub max_open_orders: u32,
    /// Most notional of open orders and of what traded this day, 1e-9, over all shards.
    pub max_open_notional: Option<Notional>,
    /// Most lots in one order; `None`: what instrument and account allow.
    pub max_quantity: Option<Quantity>,
    /// Most notional in one order, 1e-9; `None`: what instrument and account allow.
    pub max_notional: Option<Notional>,
    /// Most new orders and replaces in a time, over all shards.
    pub rate: RateLimit,
    /// How often it may send the same order.
    pub repeats: RepeatLimit,
}

/// Self-match prevention: what happens when a new order could trade with open ones of its own owner. The mode of the new
/// order's session holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SelfMatch {
    /// The new order is refused.
    #[default]
    CancelNewest,
    /// The open ones are cancelled, and the new order follows once it cannot meet them.
    CancelOldest,
    /// The open ones are cancelled, and the new order is refused.
    CancelBoth,
    /// Nothing here: the venue takes from both what they would have traded.
    Decrement,
}

/// A venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VenueConfig {
    /// The session that this shard's link has at the venue.
    pub session: SessionId,
    /// Whether the venue grants slots for open orders: then there is none before it has. Otherwise there is no such limit
    /// before it has.
    pub grants_slots: bool,
    /// Whether the venue takes from two orders of one owner what they would have traded, see [`SelfMatch::Decrement`].
    pub decrements: bool,
    /// Who has the order types beyond market and limit orders.
    pub types: OrderTypes,
}

/// Sends some orders to another venue than their instrument's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Which orders.
    pub key: RouteKey,
    /// Where they go.
    pub venue: VenueId,
}

/// Which orders a route is for. Where several match an order, the session's is taken before the account's, and that before
/// the instrument's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteKey {
    /// All in this instrument.
    Instrument(InstrumentId),
    /// All of this account.
    Account(AccountId),
    /// All of this session.
    Session(SessionId),
}

/// How much is allocated at start. What does not fit is refused with [`OrderTableFull`](types::Reason::OrderTableFull).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Orders open at a time.
    pub open_orders: u32,
    /// Different (account, instrument) pairs in a day.
    pub positions: u32,
    /// Different (owner, instrument) pairs with resting orders in a day.
    pub books: u32,
    /// Orders that wait at a time until own ones are cancelled. Zero where no session has [`SelfMatch::CancelOldest`].
    pub waiting_orders: u32,
    /// Orders that are held at a time because their venue lacks their type, or to be crossed. Zero where there are none.
    pub held_orders: u32,
    /// Classes and instruments that are closed to an account or a session at a time, each for each of them.
    pub restrictions: u32,
}

/// Why a config is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A capacity is zero or above its limit.
    Capacity,
    /// Two instruments have this number.
    DuplicateInstrument(InstrumentId),
    /// The instrument's tick size or lot size is not positive.
    InvalidInstrument(InstrumentId),
    /// The instrument's class is not in the list of classes.
    UnknownClass(InstrumentId, LimitClass),
    /// An override or a route names an instrument that is not there.
    UnknownInstrument(InstrumentId),
    /// An instrument's own limit is not possible.
    Override(InstrumentId, Limit, LimitError),
    /// A limit of the instrument is zero or above what the arithmetic has room for, or its collar has no width.
    InvalidInstrumentLimit(InstrumentId),
    /// Two accounts have this number.
    DuplicateAccount(AccountId),
    /// A session or a route names an account that is not there.
    UnknownAccount(AccountId),
    /// A limit of the account is zero or above what the arithmetic has room for.
    InvalidAccountLimit(AccountId),
    /// Two sessions have this number, or it is 0.
    DuplicateSession(SessionId),
    /// A route names a session that is not there.
    UnknownSession(SessionId),
    /// The session names an account twice.
    RepeatedAccount(SessionId, AccountId),
    /// A limit of the session is zero or too high, or lacks its other half.
    InvalidSessionLimit(SessionId),
    /// An account or a session is restricted in a class above [`RESTRICTED_CLASSES_MAX`].
    RestrictedClass(LimitClass),
    /// More is closed to accounts and sessions than this [`Capacity::restrictions`].
    TooManyRestrictions(u32),
    /// An instrument or a route names a venue that is not there.
    UnknownVenue(VenueId),
    /// Two routes have the same key.
    DuplicateRoute(RouteKey),
    /// The orders of the session may have to wait for own ones to be cancelled, and the time or the number of those that wait
    /// is zero.
    NoWaiting(SessionId),
    /// A limit of the firm is zero or above what the crate can hold.
    InvalidFirmLimit,
    /// A rate queues orders, and the number of those that wait or their time is zero.
    NoRateQueue,
    /// The gateway is to stand in for order types of the venue, and the number of orders that it may hold or the time between
    /// two prices of a pegged order is zero.
    NoHolding(VenueId),
    /// Orders in some instruments may trade inside the gateway, and the time to rest or the number of orders that may be held is
    /// zero.
    NoCrossing,
    /// The session leaves self-match prevention to venues that decrement, and its orders may go to one that does not.
    NoDecrement(SessionId, VenueId),
}

impl FirmLimits {
    /// None.
    pub const NONE: Self = Self {
        max_quantity: None,
        max_notional: None,
        max_open_notional: None,
        max_open_orders: None,
        max_gross: None,
        max_net: None,
        max_loss: None,
        rate: RateLimit::NONE,
    };

    pub(crate) fn are_valid(&self) -> bool {
        amounts_are_valid([self.max_open_notional])
            && values_are_valid([self.max_gross, self.max_net, self.max_loss])
            && some_sizes_are_valid(self.max_quantity, self.max_notional)
            && self.max_open_orders != Some(0)
            && self.rate.is_valid()
    }

    /// Whether one of them is on sums over orders or positions of all shards.
    pub(crate) const fn are_counted(&self) -> bool {
        self.max_open_notional.is_some() || self.max_open_orders.is_some() || self.are_valued()
    }

    /// Whether all positions are valued, so that there must be a reference price for each order.
    pub(crate) const fn are_valued(&self) -> bool {
        self.max_gross.is_some() || self.max_net.is_some() || self.max_loss.is_some()
    }
}

impl InstrumentLimits {
    pub(crate) fn are_valid(&self) -> bool {
        let auction = &self.auction;
        Collar::is_valid(self.collar)
            && Collar::is_valid(self.book.map(|book| book.width))
            && self.rate.is_valid()
            && self.max_open_orders != Some(0)
            && amounts_are_valid([self.max_open_notional])
            && positions_are_valid([self.max_position, self.max_long])
            && auction.collar.is_none_or(Collar::is_valid)
            && sizes_are_valid(
                auction.max_quantity.unwrap_or(self.max_quantity),
                auction.max_notional.unwrap_or(self.max_notional),
            )
            && sizes_are_valid(self.max_quantity, self.max_notional)
    }
}

impl Collar {
    const fn is_valid(collar: Option<Self>) -> bool {
        match collar {
            Some(collar) => collar.basis_points.is_some() || collar.ticks.is_some(),
            None => true,
        }
    }
}

impl AccountLimits {
    pub(crate) fn are_valid(&self) -> bool {
        sizes_are_valid(self.max_quantity, self.max_notional)
            && self.max_open_orders > 0
            && positions_are_valid([self.max_position, self.max_long])
            && amounts_are_valid([self.max_open_notional])
            && values_are_valid([self.max_gross, self.max_net, self.max_loss])
            && self.rate.is_valid()
    }

    /// Whether its positions are valued, so that there must be a reference price for each of its orders.
    pub(crate) const fn are_valued(&self) -> bool {
        self.max_gross.is_some() || self.max_net.is_some() || self.max_loss.is_some()
    }
}

impl SessionLimits {
    pub(crate) fn are_valid(&self) -> bool {
        self.max_open_orders > 0
            && amounts_are_valid([self.max_open_notional])
            && some_sizes_are_valid(self.max_quantity, self.max_notional)
            && self.rate.is_valid()
            && self.repeats.is_valid()
    }
}

impl ReferenceChoice {
    /// All, in their order.
    pub(crate) const ALL: [Self; 3] = [Self::Mid, Self::Last, Self::Master];

    /// As a config has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mid => "mid",
            Self::Last => "last",
            Self::Master => "master",
        }
    }
}

impl RateQueueConfig {
    /// There is none.
    pub const NONE: Self = Self {
        orders: 0,
        wait: Duration(0),
    };
}

impl RateAction {
    /// All, in their order.
    pub(crate) const ALL: [Self; 3] = [Self::Queue, Self::Reject, Self::Disconnect];

    /// As a config has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Reject => "reject",
            Self::Disconnect => "disconnect",
        }
    }
}

impl MissingBook {
    /// All, in their order.
    pub(crate) const ALL: [Self; 2] = [Self::Refuse, Self::Skip];

    /// As a config has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Skip => "skip",
        }
    }
}

impl ShortSales {
    /// All, in their order.
    pub(crate) const ALL: [Self; 3] = [Self::Never, Self::WithLocate, Self::Allowed];

    /// As a config has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::WithLocate => "with_locate",
            Self::Allowed => "allowed",
        }
    }
}

impl RepeatLimit {
    /// Any number of times.
    pub const NONE: Self = Self {
        orders: None,
        within: None,
    };

    fn is_valid(&self) -> bool {
        match (self.orders, self.within) {
            (None, None) => true,
            (Some(orders), Some(within)) => (1..=REPEATS_MAX).contains(&orders) && within.0 > 0,
            // A session that may repeat what it likes keeps the time that it had.
            (None, Some(_)) => true,
            (Some(_), None) => false,
        }
    }
}

impl AuctionLimits {
    /// As for other orders.
    pub const NONE: Self = Self {
        max_quantity: None,
        max_notional: None,
        collar: None,
    };
}

impl RateLimit {
    /// Any number.
    pub const NONE: Self = Self {
        per_second: None,
        at_once: None,
        action: None,
    };

    const fn is_valid(self) -> bool {
        let lacks_half = self.per_second.is_some() && (self.at_once.is_none() || self.action.is_none());
        !lacks_half && !matches!((self.per_second, self.at_once), (Some(0), _) | (_, Some(0)))
    }
}

impl Capacity {
    pub(crate) const fn is_valid(&self) -> bool {
        self.open_orders > 0
            && self.open_orders <= OPEN_ORDERS_MAX
            && self.positions > 0
            && self.positions <= POSITIONS_MAX
            && self.books > 0
            && self.books <= BOOKS_MAX
            && self.waiting_orders <= self.open_orders
            && self.held_orders <= self.open_orders
            && self.restrictions <= RESTRICTIONS_MAX
    }
}

const fn sizes_are_valid(max_quantity: Quantity, max_notional: Notional) -> bool {
    max_quantity.0 > 0 && max_quantity.0 <= QUANTITY_MAX && max_notional.0 > 0 && max_notional.0 <= NOTIONAL_MAX.0
}

fn some_sizes_are_valid(max_quantity: Option<Quantity>, max_notional: Option<Notional>) -> bool {
    sizes_are_valid(max_quantity.unwrap_or(Quantity(1)), max_notional.unwrap_or(Notional(1)))
}

/// Short positions may be limited to none.
fn positions_are_valid(positions: [Option<Quantity>; 2]) -> bool {
    let mut positions = positions.into_iter().flatten();
    positions.all(|position| !position.is_zero())
}

fn amounts_are_valid<const N: usize>(amounts: [Option<Notional>; N]) -> bool {
    let mut amounts = amounts.into_iter().flatten();
    amounts.all(|amount| amount.0 > 0 && amount <= NOTIONAL_MAX)
}

fn values_are_valid(values: [Option<Notional>; 3]) -> bool {
    let mut values = values.into_iter().flatten();
    values.all(|value| value.0 > 0 && value <= VALUE_LIMIT_MAX)
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity => write!(f, "a capacity is zero or above its maximum"),
            Self::DuplicateInstrument(id) => write!(f, "instrument {id} is there twice"),
            Self::InvalidInstrument(id) => write!(f, "instrument {id} has no tick size or no lot size"),
            Self::UnknownClass(id, class) => write!(f, "instrument {id} has the unknown limit class {}", class.0),
            Self::UnknownInstrument(id) => write!(f, "instrument {id} is not in the instrument master"),
            Self::Override(id, limit, error) => write!(f, "{} of instrument {id}: {error}", limit.name()),
            Self::InvalidInstrumentLimit(id) => write!(f, "a limit of instrument {id} is zero or too high"),
            Self::DuplicateAccount(id) => write!(f, "account {id} is there twice"),
            Self::UnknownAccount(id) => write!(f, "account {id} is not among the accounts"),
            Self::InvalidAccountLimit(id) => write!(f, "a limit of account {id} is zero or too high"),
            Self::DuplicateSession(id) => write!(f, "session {id} is there twice, or is 0"),
            Self::UnknownSession(id) => write!(f, "session {id} is not among the sessions"),
            Self::RepeatedAccount(session, id) => write!(f, "session {session} has account {id} twice"),
            Self::InvalidFirmLimit => f.write_str("a limit of the firm is zero or too high, or lacks its other half"),
            Self::InvalidSessionLimit(id) => {
                write!(
                    f,
                    "a limit of session {id} is zero or too high, or lacks its other half"
                )
            }
            Self::RestrictedClass(class) => write!(
                f,
                "limit class {} cannot be restricted, only the first {RESTRICTED_CLASSES_MAX} can",
                class.0
            ),
            Self::TooManyRestrictions(most) => write!(
                f,
                "more than {most} classes and symbols are closed to accounts and sessions"
            ),
            Self::UnknownVenue(id) => write!(f, "venue {id} is not among the venues"),
            Self::DuplicateRoute(key) => write!(f, "two routes for {key:?}"),
            Self::NoDecrement(session, venue) => write!(
                f,
                "session {session} wants decrement, and its orders may go to venue {venue}, which has none"
            ),
            Self::NoRateQueue => {
                f.write_str("a rate queues orders, which needs orders and wait_ms above 0 in [risk.rate_queue]")
            }
            Self::NoHolding(id) => write!(
                f,
                "order types of venue {id} are emulated, which needs held_orders, and for pegged ones peg_interval_ms, above 0 in \
                 [first_stage]"
            ),
            Self::NoCrossing => f.write_str("crossing needs rest_ms, and held_orders of [first_stage], above 0"),
            Self::NoWaiting(id) => write!(
                f,
                "session {id} cancels its oldest orders, which needs own_cancel_wait_ms and waiting_orders above 0 in [first_stage]"
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

/// What the order logic keeps of an instrument.
pub(crate) struct InstrumentState {
    pub(crate) id: InstrumentId,
    pub(crate) tick_size: Price,
    pub(crate) reference_price: Price,
    pub(crate) lot_size: u32,
    /// Where its orders go unless account or session say otherwise.
    pub(crate) venue: VenueId,
    pub(crate) class: LimitClass,
    pub(crate) limits: InstrumentLimits,
    /// Whether its orders may trade inside the gateway.
    pub(crate) crosses: bool,
    /// Which of its limits are its own and not its class's: a bit for each, by their numbers.
    pub(crate) own: u64,
    /// To how many accounts and sessions it is closed by itself. Few are, and only those are looked up.
    pub(crate) closed_to: u32,
    pub(crate) rate: Rate,
    /// What all accounts have here.
    pub(crate) together: Together,
    /// What they may have, of `limits`.
    pub(crate) most: Most,
}
