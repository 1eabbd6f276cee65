//! The tables behind the order logic, how they are built, and what can be asked of them.

use crate::config::{
    AccountLimits, ConfigError, FirmLimits, InstrumentLimits, InstrumentState, OrdersConfig, RateAction, RouteKey,
    SelfMatch, SessionLimits,
};
use crate::control::Stop;
use crate::counters::Counters;
use crate::cross::Rests;
use crate::done::{DoneOrder, DoneOrders};
use crate::exposure::{AccountExposure, Exposure, Positions, SessionExposure, restaked};
use crate::held::HeldOrders;
use crate::late::LateOrders;
use crate::limit_table::LimitScope;
use crate::limit_value::{LimitError, LimitValue};
use crate::limits::DONE_ORDERS;
use crate::list::{Links, List};
use crate::map::{Map, NIL};
use crate::number::Numbers;
use crate::order::{Order, OrderTable, OrderView};
use crate::order_types::OrderTypes;
use crate::own::OwnBooks;
use crate::queue::RateQueue;
use crate::rate::Rate;
use crate::repeats::Repeats;
use crate::report::{OrderStatus, Report, Sink};
use crate::restricted::{Restricted, RestrictionTable};
use crate::risk::Sizes;
use crate::stake::{AccountPlace, SessionPlace, SessionStake, Stake};
use crate::together::{Most, Together};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;
use types::{
    AccountId, ClientOrderId, Duration, ExecId, ExecReport, InstrumentId, Notional, OrderId, SessionId, ShardId,
    Timestamp, TradingDay, VenueId,
};

/// The orders of one shard. See the crate's page for how it is used.
pub struct Orders {
    pub(crate) shard: ShardId,
    pub(crate) day: TradingDay,
    /// Rises with every change, so that what was checked before a change is not accepted after it.
    pub(crate) version: u64,
    pub(crate) firm_stop: Stop,
    pub(crate) firm: FirmLimits,
    /// Whether the firm has or had limits this far.
    pub(crate) firm_is_counted: bool,
    /// By the index in [`LimitClass`](types::LimitClass).
    pub(crate) classes: Vec<InstrumentLimits>,
    pub(crate) numbers: Numbers,
    pub(crate) exec_count: u64,
    pub(crate) instruments: Vec<InstrumentState>,
    instrument_index: Map,
    pub(crate) accounts: Vec<AccountState>,
    /// (account, session that may use it) to account; with [`ANY_SESSION`] all accounts.
    account_index: Map,
    pub(crate) restrictions: RestrictionTable,
    pub(crate) sessions: Vec<SessionState>,
    /// By session id; [`NIL`] where there is none.
    session_index: Box<[u32]>,
    pub(crate) venues: Vec<VenueState>,
    pub(crate) table: OrderTable,
    pub(crate) done: DoneOrders,
    /// What the last roll of the day ended here and not at its venue.
    pub(crate) late: LateOrders,
    /// (client order id, session) to slot: of open orders and of pending replaces and cancels. Those of orders that are over have their
    /// place among those, counted on from the last slot.
    pub(crate) by_client_id: Map,
    pub(crate) positions: Positions,
    pub(crate) own: OwnBooks,
    /// Links of the lists in [`SessionState`].
    pub(crate) session_links: Links,
    /// Links of the lists in [`VenueState`], and of `ending`.
    pub(crate) cancel_links: Links,
    /// Orders that wait in the gateway and whose cancel is to be told, oldest first.
    pub(crate) ending: List,
    /// Links of `waiting`.
    pub(crate) waiting_links: Links,
    /// Orders that wait until own ones are cancelled, oldest first.
    pub(crate) waiting: List,
    pub(crate) most_waiting: u32,
    pub(crate) own_cancel_wait: Duration,
    /// Orders that wait for a rate.
    pub(crate) queue: RateQueue,
    pub(crate) held: HeldOrders,
    pub(crate) counters: Counters,
}

/// In this order, so that all that an order reads and changes of it lies in its first four cache lines: of one account among
/// many each of them comes from memory.
#[repr(C, align(64))]
pub(crate) struct AccountState {
    pub(crate) restricted: Restricted,
    pub(crate) id: AccountId,
    pub(crate) route: Option<VenueId>,
    /// Whether one of its limits or of the firm's is, or was, on the value of positions.
    pub(crate) valued: bool,
    pub(crate) stop: Stop,
    pub(crate) exposure: AccountExposure,
    pub(crate) limits: AccountLimits,
    /// What its limits that span shards have not been told of yet; nothing between two calls.
    pub(crate) unsettled: Stake,
}

pub(crate) struct SessionState {
    pub(crate) id: SessionId,
    pub(crate) owner: u32,
    pub(crate) self_match: SelfMatch,
    /// Whether its orders may trade inside the gateway.
    pub(crate) crosses: bool,
    pub(crate) limits: SessionLimits,
    /// Of these and the firm's.
    pub(crate) sizes: Sizes,
    pub(crate) cancel_on_disconnect: bool,
    pub(crate) stop: Stop,
    pub(crate) repeats: Box<Repeats>,
    pub(crate) restricted: Restricted,
    pub(crate) route: Option<VenueId>,
    /// The highest number that a request of the session had this day.
    pub(crate) last_client_order_id: ClientOrderId,
    pub(crate) exposure: SessionExposure,
    /// What its limits that span shards have not been told of yet; nothing between two calls.
    pub(crate) unsettled: SessionStake,
    /// Its open orders, oldest first.
    pub(crate) orders: List,
    /// Those of them that wait for a rate, oldest first.
    pub(crate) queued: List,
    /// Whether the queue looks at it.
    pub(crate) is_queueing: bool,
}

pub(crate) struct VenueState {
    pub(crate) session: SessionId,
    pub(crate) types: OrderTypes,
    pub(crate) is_up: bool,
    /// Orders that it may have open: those that it has, those on their way, and those whose end is not told yet.
    pub(crate) open_orders: u32,
    /// How many it permits; `None`: it has not said.
    pub(crate) slots: Option<u32>,
    /// Orders whose cancel waits to be sent, oldest first.
    pub(crate) cancels: List,
}

/// What a client's number names.
pub(crate) enum Named<'a> {
    /// Nothing that is known.
    Nothing,
    /// The open order in this slot.
    Open(u32),
    /// An order that is over.
    Done(&'a DoneOrder),
}

impl AccountState {
    /// Reads a word of each cache line that an order looks at, so that all that come from memory come at once. They are used in
    /// places far apart, one behind the other.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "nobody uses it")]
    pub(crate) fn ask_for(&self) {
        black_box(self.exposure.open_sell_notional.0 as u64);
        black_box(self.limits.max_quantity);
        black_box(self.limits.max_short);
    }

    /// Brings what a position of its takes of limits up to date.
    #[inline]
    pub(crate) fn restake(&mut self, exposure: &mut Exposure) {
        if self.valued {
            self.value_anew(exposure);
        }
    }

    /// The same of one whose positions are valued from now on.
    #[inline]
    pub(crate) fn value_anew(&mut self, exposure: &mut Exposure) {
        let change = restaked(exposure);
        self.exposure.stake += change;
        self.unsettled += change;
    }
}

/// The scope of the account index that is no session's.
const ANY_SESSION: u32 = NIL;

impl Orders {
    /// The order logic with nothing open, everything allocated. All venues are down until
    /// [`on_venue_up`](Self::on_venue_up); the day is 0 until [`on_day_roll`](Self::on_day_roll).
    ///
    /// # Errors
    /// The first thing in `config` that contradicts itself or leaves the bounds of the crate.
    pub fn new(config: &OrdersConfig) -> Result<Self, ConfigError> {
        if !config.capacity.is_valid() {
            return Err(ConfigError::Capacity);
        }
        let queue = config.rate_queue;
        let queues = |(_, value)| value == LimitValue::RateAction(RateAction::Queue);
        if config.limits().any(queues) && (queue.orders == 0 || queue.wait.0 == 0) {
            return Err(ConfigError::NoRateQueue);
        }
        if !config.firm.are_valid() {
            return Err(ConfigError::InvalidFirmLimit);
        }
        let open_orders = config.capacity.open_orders as usize;
        let done_orders = config.capacity.open_orders.min(DONE_ORDERS);
        let (instruments, instrument_index) = build_instruments(config)?;
        let (accounts, account_index) = build_accounts(config)?;
        let (sessions, session_index) = build_sessions(config)?;
        let venues = config.venues.iter().map(|venue| VenueState {
            session: venue.session,
            types: venue.types,
            is_up: false,
            open_orders: 0,
            slots: venue.grants_slots.then_some(0),
            cancels: List::EMPTY,
        });
        let mut orders = Self {
            shard: config.shard,
            day: TradingDay(0),
            version: 0,
            firm_stop: Stop::Off,
            firm: config.firm,
            firm_is_counted: config.firm.are_counted(),
            classes: config.classes.clone(),
            numbers: Numbers::new(config.shard, config.capacity.open_orders),
            exec_count: 0,
            instruments,
            instrument_index,
            accounts,
            account_index,
            restrictions: RestrictionTable::new(config.capacity.restrictions as usize),
            sessions,
            session_index,
            venues: venues.collect(),
            table: OrderTable::new(config.capacity.open_orders),
            // An order has its own number and those of a pending replace and cancel; one that is over has its own.
            by_client_id: Map::new(3 * open_orders + done_orders as usize),
            done: DoneOrders::new(done_orders),
            late: LateOrders::new(config.capacity.open_orders),
            positions: Positions::new(config.capacity.positions as usize),
            own: OwnBooks::new(open_orders, config.capacity.books as usize),
            session_links: Links::new(open_orders),
            cancel_links: Links::new(open_orders),
            ending: List::EMPTY,
            waiting_links: Links::new(open_orders),
            waiting: List::EMPTY,
            most_waiting: config.capacity.waiting_orders,
            own_cancel_wait: config.own_cancel_wait,
            queue: RateQueue::new(config.rate_queue, open_orders, config.sessions.len()),
            held: HeldOrders::new(
                config.capacity.held_orders,
                config.instruments.len(),
                config.peg_interval,
                rests(config),
            ),
            counters: Counters::new(),
        };
        orders.add_overrides(config)?;
        orders.add_session_accounts(config)?;
        orders.add_restrictions(config)?;
        orders.add_routes(config)?;
        for &id in &config.crossing.instruments {
            let instrument = orders.instrument(id).ok_or(ConfigError::UnknownInstrument(id))?;
            orders.instruments[instrument as usize].crosses = true;
        }
        orders.check_modes(config)?;
        Ok(orders)
    }

    /// The trading day.
    #[must_use]
    pub const fn day(&self) -> TradingDay {
        self.day
    }

    /// Orders open now.
    #[must_use]
    pub const fn open_orders(&self) -> usize {
        self.table.length()
    }

    /// Orders that a session has open here.
    #[must_use]
    pub fn open_orders_of(&self, session: SessionId) -> u32 {
        self.session(session)
            .map_or(0, |session| self.sessions[session as usize].orders.length())
    }

    /// An open order by the gateway's number.
    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<OrderView> {
        let slot = self.numbers.slot(order_id.0)?;
        let order = self.table.order(slot);
        order.has_number(order_id.0).then(|| self.view(order))
    }

    /// All open orders, in no order of meaning but the same in every run.
    pub fn iter(&self) -> impl Iterator<Item = OrderView> {
        self.table.open().map(|(_, order)| self.view(order))
    }

    /// Places for open orders: to look at all of them a few at a time.
    #[must_use]
    pub const fn places(&self) -> u32 {
        self.table.capacity()
    }

    /// The open order in a place, if there is one.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn in_place(&self, place: u32) -> Option<OrderView> {
        let order = self.table.order(place);
        order.is_open().then(|| self.view(order))
    }

    /// What an account has open and has traded in an instrument; `None` when it had no order there this day.
    #[must_use]
    pub fn exposure(&self, account: AccountId, instrument: InstrumentId) -> Option<Exposure> {
        let account = self.account_index.find(u64::from(account.0), ANY_SESSION);
        let instrument = self.instrument_index.find(u64::from(instrument.0), 0);
        match self.positions.find(account, instrument) {
            NIL => None,
            entry => Some(*self.positions.entry(entry)),
        }
    }

    /// What an account has open in all instruments of the shard; `None` when there is no such account.
    #[must_use]
    pub fn account_exposure(&self, account: AccountId) -> Option<AccountExposure> {
        Some(self.accounts[self.any_account(account)?].exposure)
    }

    /// What a session takes on the shard of its limits that span shards; `None` when there is no such session.
    #[must_use]
    pub fn session_stake(&self, session: SessionId) -> Option<SessionStake> {
        let session = &self.sessions[self.session(session)? as usize];
        Some(SessionStake {
            notional: session.exposure.held + session.exposure.used,
            orders: session.orders.length().into(),
        })
    }

    /// An account's place in the config.
    #[must_use]
    pub fn account_place(&self, id: AccountId) -> Option<AccountPlace> {
        self.account(id, ANY_SESSION).map(AccountPlace)
    }

    /// How many open orders a venue permits; `None`: it has not said, or there is none such.
    #[must_use]
    pub fn slots(&self, venue: VenueId) -> Option<u32> {
        self.venues.get(usize::from(venue.0))?.slots
    }

    /// How many orders of a venue are open, as they count against [`slots`](Self::slots).
    #[must_use]
    pub fn open_at(&self, venue: VenueId) -> u32 {
        self.venues
            .get(usize::from(venue.0))
            .map_or(0, |venue| venue.open_orders)
    }

    /// What was counted since start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes allocated at start for tables that grow with the capacities.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.table.memory()
            + self.done.memory()
            + self.late.memory()
            + self.by_client_id.memory()
            + self.positions.memory()
            + self.own.memory()
            + self.session_links.memory()
            + self.cancel_links.memory()
            + self.waiting_links.memory()
            + self.queue.memory()
            + self.held.memory()
            + self.restrictions.memory()
    }

    #[inline]
    pub(crate) fn instrument(&self, id: InstrumentId) -> Option<u32> {
        match self.instrument_index.find(u64::from(id.0), 0) {
            NIL => None,
            index => Some(index),
        }
    }

    #[inline]
    pub(crate) fn session(&self, id: SessionId) -> Option<u32> {
        match self.session_index.get(usize::from(id.0)) {
            None | Some(&NIL) => None,
            Some(&index) => Some(index),
        }
    }

    /// The account, when the session may use it.
    #[inline]
    pub(crate) fn account(&self, id: AccountId, session: u32) -> Option<u32> {
        match self.account_index.find(u64::from(id.0), session) {
            NIL => None,
            index => Some(index),
        }
    }

    pub(crate) fn any_account(&self, id: AccountId) -> Option<usize> {
        self.account(id, ANY_SESSION).map(|index| index as usize)
    }

    /// Counts that so many orders of an account, a session and an instrument end, that so much is held for orders no longer, and that so much
    /// is used up by trades.
    pub(crate) fn release(&mut self, [account, session, instrument]: [u32; 3], orders: u32, held: i64, used: i64) {
        let account = &mut self.accounts[account as usize];
        account.exposure.open_orders -= orders;
        account.exposure.held -= held;
        account.exposure.used += used;
        account.unsettled.orders -= i64::from(orders);
        account.unsettled.notional -= held - used;
        let session = &mut self.sessions[session as usize];
        session.exposure.held -= held;
        session.exposure.used += used;
        session.unsettled.orders -= i64::from(orders);
        session.unsettled.notional -= held - used;
        let together = &mut self.instruments[instrument as usize].together;
        together.open_orders -= orders;
        together.held -= i128::from(held);
        together.used += i128::from(used);
    }

    /// Tells the limits of an account and a session that span shards what has changed.
    pub(crate) fn settle<S: Sink>(&mut self, [account, session, _]: [u32; 3], sink: &mut S) {
        self.settle_account(account, sink);
        self.settle_session(session, sink);
    }

    /// Those of an account alone.
    pub(crate) fn settle_account<S: Sink>(&mut self, account: u32, sink: &mut S) {
        let change = core::mem::take(&mut self.accounts[account as usize].unsettled);
        if change != Stake::NONE {
            sink.settle(AccountPlace(account), &change);
        }
    }

    /// Those of a session alone.
    pub(crate) fn settle_session<S: Sink>(&mut self, session: u32, sink: &mut S) {
        let change = core::mem::take(&mut self.sessions[session as usize].unsettled);
        if change != SessionStake::default() {
            sink.settle_session(SessionPlace(session), &change);
        }
    }

    /// A number for the next report to a client.
    pub(crate) const fn next_exec_id(&mut self) -> ExecId {
        self.exec_count += 1;
        ExecId(OrderId::new(self.shard, self.exec_count).0)
    }

    /// Counts a report on its way to a client.
    pub(crate) const fn sent(&mut self, exec: ExecReport, traded: i128, status: OrderStatus) -> Report {
        self.counters.count_report(exec.exec_type);
        Report {
            exec,
            traded: Notional(traded),
            status,
        }
    }

    /// The order that a client's number names.
    pub(crate) fn named(&self, id: ClientOrderId, session: u32) -> Named<'_> {
        match self.by_client_id.find(id.0, session) {
            NIL => Named::Nothing,
            slot if slot < self.table.capacity() => Named::Open(slot),
            place => Named::Done(self.done.get((place - self.table.capacity()) as usize)),
        }
    }

    fn view(&self, order: &Order) -> OrderView {
        order.view(!self.venues[usize::from(order.venue.0)].is_up)
    }

    fn add_overrides(&mut self, config: &OrdersConfig) -> Result<(), ConfigError> {
        for of_one in config.overrides.chunk_by(|a, b| a.0 == b.0) {
            let (id, limit, _) = of_one[0];
            let changes: Vec<_> = of_one.iter().map(|&(_, limit, value)| (limit, value)).collect();
            let scope = LimitScope::Instrument(id);
            self.set_limits(Timestamp::NONE, scope, &changes, &mut Nothing)
                .map_err(|error| match error {
                    LimitError::UnknownScope => ConfigError::UnknownInstrument(id),
                    error => {
                        let is_wrong = |&&one: &&_| self.check_limits(scope, &[one]).is_err();
                        let wrong = changes.iter().find(is_wrong).map_or(limit, |&(limit, _)| limit);
                        ConfigError::Override(id, wrong, error)
                    }
                })?;
        }
        Ok(())
    }

    fn add_session_accounts(&mut self, config: &OrdersConfig) -> Result<(), ConfigError> {
        for session in &config.sessions {
            let index = self.session(session.id).unwrap_or(NIL);
            for &id in &session.accounts {
                let Some(account) = self.account(id, ANY_SESSION) else {
                    return Err(ConfigError::UnknownAccount(id));
                };
                if self.account(id, index).is_some() {
                    return Err(ConfigError::RepeatedAccount(session.id, id));
                }
                self.account_index.insert(u64::from(id.0), index, account);
            }
        }
        Ok(())
    }

    fn add_routes(&mut self, config: &OrdersConfig) -> Result<(), ConfigError> {
        let is_venue = |venue: VenueId| usize::from(venue.0) < config.venues.len();
        if let Some(instrument) = self.instruments.iter().find(|instrument| !is_venue(instrument.venue)) {
            return Err(ConfigError::UnknownVenue(instrument.venue));
        }
        for (index, route) in config.routes.iter().enumerate() {
            if !is_venue(route.venue) {
                return Err(ConfigError::UnknownVenue(route.venue));
            }
            if config.routes[..index].iter().any(|earlier| earlier.key == route.key) {
                return Err(ConfigError::DuplicateRoute(route.key));
            }
            match route.key {
                RouteKey::Instrument(id) => {
                    let instrument = self.instrument(id).ok_or(ConfigError::UnknownInstrument(id))?;
                    self.instruments[instrument as usize].venue = route.venue;
                }
                RouteKey::Account(id) => {
                    let account = self.any_account(id).ok_or(ConfigError::UnknownAccount(id))?;
                    self.accounts[account].route = Some(route.venue);
                }
                RouteKey::Session(id) => {
                    let session = self.session(id).ok_or(ConfigError::UnknownSession(id))?;
                    self.sessions[session as usize].route = Some(route.venue);
                }
            }
        }
        Ok(())
    }
}

/// Before the start nothing is open, so nothing comes out.
struct Nothing;

impl Sink for Nothing {
    fn report(&mut self, _: &Report) {}

    fn settle(&mut self, _: AccountPlace, _: &Stake) {}

    fn settle_session(&mut self, _: SessionPlace, _: &SessionStake) {}

    fn count_firm(&mut self, _: &Stake) {}
}

/// Nothing where nothing is crossed.
fn rests(config: &OrdersConfig) -> Rests {
    let instruments = match config.crossing.instruments.len() {
        0 => 0,
        _ => config.instruments.len(),
    };
    Rests::new(config.capacity.held_orders as usize, instruments, config.crossing.rest)
}

fn build_instruments(config: &OrdersConfig) -> Result<(Vec<InstrumentState>, Map), ConfigError> {
    let mut index = Map::new(config.instruments.len());
    let mut states = Vec::with_capacity(config.instruments.len());
    for (position, instrument) in (0..).zip(&config.instruments) {
        let id = instrument.id;
        if index.find(u64::from(id.0), 0) != NIL {
            return Err(ConfigError::DuplicateInstrument(id));
        }
        if instrument.tick_size.0 <= 0 || instrument.lot_size == 0 {
            return Err(ConfigError::InvalidInstrument(id));
        }
        let class = instrument.limit_class;
        let Some(&limits) = config.classes.get(usize::from(class.0)) else {
            return Err(ConfigError::UnknownClass(id, class));
        };
        index.insert(u64::from(id.0), 0, position);
        states.push(InstrumentState {
            id,
            tick_size: instrument.tick_size,
            reference_price: instrument.reference_price,
            lot_size: instrument.lot_size,
            venue: instrument.venue,
            class,
            limits,
            crosses: false,
            own: 0,
            closed_to: 0,
            rate: Rate::new(limits.rate),
            together: Together::default(),
            most: Most::of(&limits),
        });
    }
    match states.iter().find(|state| !state.limits.are_valid()) {
        Some(state) => Err(ConfigError::InvalidInstrumentLimit(state.id)),
        None => Ok((states, index)),
    }
}

fn build_accounts(config: &OrdersConfig) -> Result<(Vec<AccountState>, Map), ConfigError> {
    let permissions: usize = config.sessions.iter().map(|session| session.accounts.len()).sum();
    let mut index = Map::new(config.accounts.len() + permissions);
    let mut states = Vec::with_capacity(config.accounts.len());
    for (position, account) in (0..).zip(&config.accounts) {
        if index.find(u64::from(account.id.0), ANY_SESSION) != NIL {
            return Err(ConfigError::DuplicateAccount(account.id));
        }
        if !account.limits.are_valid() {
            return Err(ConfigError::InvalidAccountLimit(account.id));
        }
        index.insert(u64::from(account.id.0), ANY_SESSION, position);
        states.push(AccountState {
            id: account.id,
            limits: account.limits,
            valued: account.limits.are_valued() || config.firm.are_valued(),
            stop: Stop::Off,
            restricted: Restricted::default(),
            route: None,
            exposure: AccountExposure::default(),
            unsettled: Stake::NONE,
        });
    }
    Ok((states, index))
}

fn build_sessions(config: &OrdersConfig) -> Result<(Vec<SessionState>, Box<[u32]>), ConfigError> {
    let highest = config.sessions.iter().map(|session| session.id.0).max().unwrap_or(0);
    let mut index = vec![NIL; usize::from(highest) + 1].into_boxed_slice();
    let mut states = Vec::with_capacity(config.sessions.len());
    for (position, session) in (0..).zip(&config.sessions) {
        if session.id.0 == 0 || index[usize::from(session.id.0)] != NIL {
            return Err(ConfigError::DuplicateSession(session.id));
        }
        if !session.limits.are_valid() {
            return Err(ConfigError::InvalidSessionLimit(session.id));
        }
        index[usize::from(session.id.0)] = position;
        states.push(SessionState {
            id: session.id,
            owner: session.owner,
            self_match: session.self_match,
            crosses: session.crossing,
            limits: session.limits,
            sizes: Sizes::of(&session.limits, &config.firm),
            cancel_on_disconnect: session.cancel_on_disconnect,
            stop: Stop::Off,
            repeats: Box::new(Repeats::new(session.limits.repeats)),
            restricted: Restricted::default(),
            route: None,
            last_client_order_id: ClientOrderId(0),
            exposure: SessionExposure::default(),
            unsettled: SessionStake::default(),
            orders: List::EMPTY,
            queued: List::EMPTY,
            is_queueing: false,
        });
    }
    Ok((states, index))
}
