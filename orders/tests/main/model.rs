//! A naive model beside the order logic, under long random sequences of everything that can happen.
//!
//! The model keeps the live orders in a plain list, as a client would who reads the reports, and beside it venues that
//! answer requests in order, late, and as they like. It predicts the verdict on every request, and after every step it
//! counts from its list what the order logic keeps incrementally.

use crate::fixture::*;
use orders::{
    Anomaly, KillScope, Need, OrderStatus, Orders, Places, Reference, Report, SelfMatch, SessionStake, Stake, Stop,
    Waiting, WaitingVerdict,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecReport, ExecType, InstrumentId, MassCancel, NewOrder, OrderId,
    OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request, Side, TimeInForce, Timestamp, TradingDay,
    VenueId,
};

mod cross;
mod held;
mod steps;
mod value;
mod venue;
mod waiting;

use held::{Book, HeldLive};
use steps::{NewStep, Step, mode, new_step, step};
use value::Traded;
use venue::Venue;

const ACCOUNTS: [AccountId; 3] = [SHARED, PLAIN, TIGHT];
const INSTRUMENTS: [InstrumentId; 2] = [ALPHA, BETA];

/// An order as the client knows it.
#[derive(Clone, Debug)]
struct Live {
    order_id: OrderId,
    request: NewOrder,
    session: usize,
    id: ClientOrderId,
    venue: usize,
    price: Price,
    /// Of a limit its price; of a market order the highest of the collar.
    weight: i128,
    lots: u64,
    traded: u64,
    replace: Option<ReplaceOrder>,
    /// What the replace would weigh.
    replace_weight: i128,
    cancel: Cancel,
    /// Its type is one that the venue lacks; until it has become one like any other.
    held: Option<HeldLive>,
    /// Its stop price was met.
    is_triggered: bool,
    /// In the gateway, no venue knows it: until when.
    waits_until: Option<Timestamp>,
    /// How many had begun to wait then, this one included.
    waits_since: u64,
    /// What the venue knows it by, and would if it accepted the replace.
    number: ClientOrderId,
    replace_number: ClientOrderId,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Cancel {
    None,
    /// The gateway wants it and has not sent it.
    Waiting,
    Asked {
        number: ClientOrderId,
        by_client: bool,
        /// The number that it names the order by.
        aimed_at: ClientOrderId,
    },
}

struct Model {
    orders: Orders,
    /// By session.
    modes: [SelfMatch; 4],
    now: Timestamp,
    live: Vec<Live>,
    venues: [Venue; 2],
    is_up: [bool; 2],
    slots: [Option<u32>; 2],
    last: [u64; 4],
    stops: [Stop; 8],
    /// Whether each request got its first answer.
    answered: BTreeMap<(u16, u64), bool>,
    /// Lots bought and sold.
    traded: BTreeMap<(AccountId, InstrumentId), (u64, u64)>,
    /// By account: granted and not given back.
    reserved: [i64; 3],
    /// By account: all that it took and gave back of limits that span shards.
    staked: [Stake; 3],
    /// By session: the same.
    staked_sessions: [SessionStake; 4],
    /// What SHARED traded.
    values: BTreeMap<InstrumentId, Traded>,
    books: [Book; 2],
    /// What was at a venue when the day rolled last.
    late: Vec<Live>,
    /// Whether the last look at what is due changed anything.
    is_busy: bool,
    day: u32,
    transcript: Vec<Report>,
}

fn scope(index: usize) -> KillScope {
    match index {
        0 => KillScope::Firm,
        1..=3 => KillScope::Account(ACCOUNTS[index - 1]),
        _ => KillScope::Session(SESSIONS[index - 4]),
    }
}

fn lot_size(instrument: InstrumentId) -> i128 {
    if instrument == ALPHA { 100 } else { 1 }
}

impl Live {
    fn rests(&self) -> bool {
        let has_price = match self.request.order_type {
            OrderType::Limit | OrderType::PegPrimary | OrderType::PegMid => true,
            OrderType::StopLimit => self.is_triggered,
            OrderType::Market | OrderType::Stop => false,
        };
        has_price && self.request.time_in_force == TimeInForce::Day
    }

    /// Whether nothing of it is at its venue.
    fn is_here(&self) -> bool {
        self.waits_until.is_some() || self.held.as_ref().is_some_and(|held| held.child.is_none())
    }

    /// Tries every moment at which the venue may accept the replace.
    fn worst(&self) -> (u64, i128) {
        let open = self.lots - self.traded;
        let size = lot_size(self.request.instrument);
        let mut worst = (open, i128::from(open) * self.weight * size);
        if let Some(replace) = self.replace {
            for before in 0..=open {
                let after = replace.quantity.0.saturating_sub(self.traded + before);
                let notional = i128::from(before) * self.weight * size + i128::from(after) * self.replace_weight * size;
                worst = (worst.0.max(before + after), worst.1.max(notional));
            }
        }
        worst
    }

    fn crosses(&self, owner: u32, side: Side, instrument: InstrumentId, price: Option<Price>) -> bool {
        let reaches = |resting: Price| match (price, side) {
            (None, _) => true,
            _ if resting.is_null() => true,
            (Some(price), Side::Buy) => resting <= price,
            (Some(price), Side::Sell) => resting >= price,
        };
        self.rests()
            && self.request.instrument == instrument
            && self.request.side != side
            && OWNERS[self.session] == owner
            && (reaches(self.price) || self.replace.is_some_and(|replace| reaches(replace.price)))
    }
}

impl Model {
    fn new(modes: [SelfMatch; 4]) -> Self {
        let mut config = config();
        for (session, mode) in config.sessions.iter_mut().zip(modes) {
            session.self_match = mode;
        }
        Self {
            orders: up(Orders::new(&config).unwrap()),
            modes,
            now: NOW,
            live: Vec::new(),
            venues: Default::default(),
            is_up: [true; 2],
            slots: [None; 2],
            last: [0; 4],
            stops: [Stop::Off; 8],
            answered: BTreeMap::new(),
            traded: BTreeMap::new(),
            reserved: [0; 3],
            staked: [Stake::NONE; 3],
            staked_sessions: [SessionStake::default(); 4],
            values: BTreeMap::new(),
            books: [Book::default(); 2],
            late: Vec::new(),
            is_busy: false,
            day: 0,
            transcript: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::New(new) => self.new_order(new),
            &Step::Cancel { pick, reuse, held } => self.cancel(pick, reuse, held),
            &Step::Replace { pick, ticks, lots } => self.replace(pick, ticks, lots),
            &Step::MassCancel { session, instrument } => self.mass_cancel(session, instrument),
            &Step::Process { venue, mood } => self.venues[venue].process(mood),
            &Step::Trade { venue, pick, lots } => {
                let count = self.venues[venue].book.len();
                if count > 0 {
                    self.venues[venue].trade(pick % count, lots);
                }
            }
            &Step::Bust { venue, pick } => {
                let count = self.venues[venue].book.len();
                if count > 0 {
                    self.venues[venue].bust(pick % count);
                }
            }
            &Step::Restate { venue, pick, lots } => {
                let count = self.venues[venue].book.len();
                if count > 0 {
                    self.venues[venue].restate(pick % count, lots);
                }
            }
            &Step::Deliver { venue } => self.deliver(venue),
            &Step::Poll { venue } => self.poll(venue),
            Step::End => self.end_next(),
            &Step::Look { room } => self.look(room),
            &Step::Due { room } => self.do_what_is_due(room),
            &Step::Book {
                instrument,
                bid,
                spread,
                last,
                lots,
            } => self.book(instrument, [bid, bid + spread], last, lots),
            &Step::Mark {
                instrument,
                ticks,
                is_fresh,
            } => self.mark_all(INSTRUMENTS[instrument], ticks, is_fresh),
            &Step::Later { ms } => self.now = self.now + Duration::from_millis(ms),
            &Step::SessionLost { session } => {
                self.orders.on_session_lost(SESSIONS[session]);
                if session != 1 {
                    self.want_cancels(|live| live.session == session);
                }
            }
            &Step::Kill { scope: index, stop } => self.kill(index, stop),
            &Step::Venue { venue, is_up } => {
                self.is_up[venue] = is_up;
                let id = VenueId(u8::try_from(venue).unwrap());
                if is_up {
                    self.orders.on_venue_up(id)
                } else {
                    self.orders.on_venue_down(id)
                }
            }
            &Step::Slots { venue, slots } => {
                self.slots[venue] = Some(slots);
                self.orders.on_venue_slots(VenueId(u8::try_from(venue).unwrap()), slots);
            }
            Step::DayRoll => self.day_roll(),
        }
        self.compare();
    }

    fn next_id(&self, session: usize, reuse: bool) -> ClientOrderId {
        ClientOrderId(self.last[session] + u64::from(!reuse))
    }

    fn ask(&mut self, session: usize, id: ClientOrderId) {
        if id.0 > self.last[session] {
            self.last[session] = id.0;
            self.answered.insert((SESSIONS[session].0, id.0), false);
        }
    }

    fn new_order(&mut self, new: &NewStep) {
        let order = NewOrder {
            client_order_id: self.next_id(new.session, new.reuse),
            instrument: INSTRUMENTS[new.instrument],
            account: ACCOUNTS[new.account],
            session: SESSIONS[new.session],
            side: if new.buy { Side::Buy } else { Side::Sell },
            order_type: if new.market {
                OrderType::Market
            } else {
                OrderType::Limit
            },
            time_in_force: if new.immediate {
                TimeInForce::ImmediateOrCancel
            } else {
                TimeInForce::Day
            },
            price: if new.market {
                Price::NULL
            } else {
                Price(new.ticks * TICK)
            },
            quantity: Quantity(new.lots),
            trigger: types::Trigger::NONE,
            terms: OrderTerms::NONE,
        };
        let (order, held) = self.special(new, order);
        let expected = self.verdict(new.session, &order);
        let routed = self
            .orders
            .check_risk(self.now, &order, &self.reference())
            .and_then(|order| self.orders.screen(order))
            .and_then(|order| self.orders.route(order));
        assert_eq!(routed.as_ref().err().copied(), expected, "{order:?}");
        self.ask(new.session, order.client_order_id);
        match routed {
            Err(reason) => {
                let report = self.orders.refuse(&order, reason);
                if reason == Reason::SelfMatch && self.modes[new.session] == SelfMatch::CancelBoth {
                    self.want_own_cancels(new.session, &order);
                }
                if reason != Reason::DuplicateClientOrderId {
                    self.take(report);
                }
            }
            Ok(routed) => {
                self.enter_need(routed.places(), routed.need(), &order);
                self.mark(&order);
                let venue = usize::from(routed.venue().0);
                assert_eq!(venue, venue_of(new.session, order.instrument));
                let must_wait = self.own_in_reach(new.session, &order).next().is_some();
                assert_eq!(routed.must_wait(), must_wait, "{order:?}");
                assert_eq!(routed.is_held(), held.is_some(), "{order:?}");
                let mut outputs = Outputs::default();
                let order_id = if held.is_some() {
                    if must_wait {
                        self.want_own_cancels(new.session, &order);
                    }
                    self.orders.hold_here(self.now, routed, &mut outputs)
                } else if must_wait {
                    self.want_own_cancels(new.session, &order);
                    self.orders.hold(self.now, routed)
                } else {
                    let sent = self.orders.accept(self.now, routed);
                    self.venues[venue].requests.push_back(Request::New(sent.request));
                    sent.order_id
                };
                self.live.push(Live {
                    order_id,
                    request: order,
                    session: new.session,
                    id: order.client_order_id,
                    venue,
                    price: order.price,
                    weight: weight(&order),
                    lots: new.lots,
                    traded: 0,
                    replace: None,
                    replace_weight: 0,
                    cancel: Cancel::None,
                    held,
                    is_triggered: false,
                    waits_until: must_wait.then(|| self.now + OWN_CANCEL_WAIT),
                    waits_since: self.orders.counters().waited,
                    number: ClientOrderId(order_id.0),
                    replace_number: ClientOrderId(0),
                });
                self.take_all(outputs);
            }
        }
    }

    /// The rules once more, in the order in which they hold.
    fn verdict(&self, session: usize, order: &NewOrder) -> Option<Reason> {
        let may_use: &[AccountId] = [&ACCOUNTS[..], &[PLAIN], &[SHARED, TIGHT], &[PLAIN]][session];
        if order.client_order_id.0 <= self.last[session] {
            Some(Reason::DuplicateClientOrderId)
        } else if !may_use.contains(&order.account) {
            Some(Reason::UnknownAccount)
        } else if order.quantity.is_zero() {
            Some(Reason::InvalidQuantity)
        } else if let Some(reason) = self.stopped(session, order, order.quantity.0) {
            Some(reason)
        } else if let Some(reason) = limit_broken(order) {
            Some(reason)
        } else if self.exceeds_position(order, order.quantity.0) {
            Some(Reason::PositionLimit)
        } else if self.live.len() == 16 {
            Some(Reason::OrderTableFull)
        } else if self.own_in_reach(session, order).next().is_some() && self.modes[session] != SelfMatch::CancelOldest {
            Some(Reason::SelfMatch)
        } else if self.own_in_reach(session, order).next().is_some() && self.count_waiting() >= WAITING as usize {
            Some(Reason::TooManyWaiting)
        } else if !self.is_up[venue_of(session, order.instrument)] {
            Some(Reason::VenueDown)
        } else if self.has_no_slot_above(venue_of(session, order.instrument), 1) {
            Some(Reason::NoVenueSlot)
        } else if self.is_special(session, order) && self.count_held() == HELD as usize {
            Some(Reason::TooManyHeld)
        } else {
            None
        }
    }

    fn reference(&self) -> Reference {
        Reference {
            time: self.now,
            ..REFERENCE
        }
    }

    fn stopped(&self, session: usize, order: &NewOrder, more: u64) -> Option<Reason> {
        let account = ACCOUNTS.iter().position(|&id| id == order.account).unwrap();
        let stops = [self.stops[0], self.stops[1 + account], self.stops[4 + session]];
        if stops.contains(&Stop::All) {
            Some(Reason::Killed)
        } else if stops.contains(&Stop::ReduceOnly) && self.worst_position(order, more) > 0 {
            Some(Reason::ReduceOnly)
        } else {
            None
        }
    }

    /// Whether so many lots more could make the account hold too much.
    fn exceeds_position(&self, order: &NewOrder, more: u64) -> bool {
        order.account == TIGHT && self.worst_position(order, more) > TIGHT_POSITION
    }

    /// Lots held on the order's side if all that is open of it trades, and so many more, and nothing against it.
    fn worst_position(&self, order: &NewOrder, more: u64) -> u64 {
        let key = (order.account, order.instrument);
        let open = self.live.iter().filter(|live| {
            let of = &live.request;
            (of.account, of.instrument, of.side) == (order.account, order.instrument, order.side)
        });
        let open: u64 = open.map(|live| live.worst().0).sum();
        let (bought, sold) = self.traded.get(&key).copied().unwrap_or_default();
        let (gone, back) = if order.side == Side::Buy {
            (bought, sold)
        } else {
            (sold, bought)
        };
        (gone + open + more).saturating_sub(back)
    }

    /// Whether so many orders more than are open at a venue are above what it permits.
    fn has_no_slot_above(&self, venue: usize, more: usize) -> bool {
        let open = self.live.iter().filter(|live| live.venue == venue).count();
        self.slots[venue].is_some_and(|slots| open + more > slots as usize)
    }

    fn cancel(&mut self, pick: usize, reuse: bool, held: bool) {
        if self.live.is_empty() {
            return;
        }
        let pick = pick % self.live.len();
        let live = &self.live[pick];
        let request = CancelOrder {
            client_order_id: self.next_id(live.session, reuse),
            // By the number it will have, when there is one: a client that chains its requests.
            orig_client_order_id: live.replace.map_or(live.id, |replace| replace.client_order_id),
            ..cancel_of(&live.request, 0)
        };
        let session = live.session;
        let expected = match live.cancel {
            _ if reuse => Some(Reason::DuplicateClientOrderId),
            Cancel::Asked { .. } => Some(Reason::RequestPending),
            Cancel::None | Cancel::Waiting => None,
        };
        let waits = live.is_here();
        if (held || waits) && expected.is_none() {
            let checked = self.orders.check_cancel(&request).unwrap();
            assert_eq!(checked.is_here(), waits);
            self.orders.hold_cancel(checked);
            self.ask(session, request.client_order_id);
            self.live[pick].cancel = Cancel::Asked {
                number: ClientOrderId(0),
                by_client: true,
                aimed_at: ClientOrderId(0),
            };
            return;
        }
        let result = cancel(&mut self.orders, &request);
        assert_eq!(result.as_ref().err().copied(), expected);
        self.ask(session, request.client_order_id);
        match result {
            Ok(sent) => {
                self.live[pick].cancel = Cancel::Asked {
                    number: sent.request.client_order_id,
                    by_client: true,
                    aimed_at: sent.request.orig_client_order_id,
                };
                self.venues[usize::from(sent.venue.0)]
                    .requests
                    .push_back(Request::Cancel(sent.request));
            }
            Err(reason) => {
                let report = self.orders.refuse_cancel(&request, reason);
                if !reuse {
                    self.take(report);
                }
            }
        }
    }

    fn replace(&mut self, pick: usize, ticks: i64, lots: u64) {
        if self.live.is_empty() {
            return;
        }
        let pick = pick % self.live.len();
        let live = self.live[pick].clone();
        let request = ReplaceOrder {
            client_order_id: self.next_id(live.session, false),
            orig_client_order_id: live.id,
            ..replace_of(&live.request, 0, ticks, lots)
        };
        let request = live.replace_in_its_terms(request);
        let expected = self.verdict_on_replace(&live, &request);
        let result = self
            .orders
            .check_replace(self.now, &request, &self.reference())
            .and_then(|replace| self.orders.screen_replace(replace));
        assert_eq!(result.as_ref().err().copied(), expected, "{request:?} {live:?}");
        self.ask(live.session, request.client_order_id);
        match result {
            Ok(screened) => {
                self.enter_need(screened.places(), screened.need(), &live.request);
                self.live[pick].replace_weight = if live.is_raised_by(&request) {
                    self.mark(&live.request);
                    weight(&live.changed_by(&request))
                } else {
                    live.weight
                };
                if live.held.is_some() {
                    assert!(screened.is_held());
                    self.live[pick].replace = Some(request);
                    self.replace_held(pick, screened);
                    return;
                }
                let sent = self.orders.accept_replace(self.now, screened);
                self.live[pick].replace = Some(request);
                self.live[pick].replace_number = sent.request.client_order_id;
                self.venues[live.venue]
                    .requests
                    .push_back(Request::Replace(sent.request));
            }
            Err(reason) => {
                let report = self.orders.refuse_replace(&request, reason);
                self.take(report);
            }
        }
    }

    fn verdict_on_replace(&self, live: &Live, request: &ReplaceOrder) -> Option<Reason> {
        let added = request.quantity.0.saturating_sub(live.lots);
        let raises = live.is_raised_by(request);
        let changed = live.changed_by(request);
        if live.cancel != Cancel::None || live.replace.is_some() || live.waits_until.is_some() {
            Some(Reason::RequestPending)
        } else if !live.can_be_replaced() {
            Some(Reason::UnsupportedOrder)
        } else if request.quantity.is_zero() {
            Some(Reason::InvalidQuantity)
        } else if !self.is_up[live.venue] && !live.is_here() {
            Some(Reason::VenueDown)
        } else if let Some(reason) = self.stopped(live.session, &changed, added).filter(|_| raises) {
            Some(reason)
        } else if raises && self.has_no_slot_above(live.venue, 0) {
            Some(Reason::NoVenueSlot)
        } else if raises && limit_broken(&changed).is_some() {
            limit_broken(&changed)
        } else if request.quantity.0 > live.lots && self.exceeds_position(&changed, request.quantity.0 - live.lots) {
            Some(Reason::PositionLimit)
        } else if self.own_in_reach(live.session, &changed).next().is_some() {
            Some(Reason::SelfMatch)
        } else {
            None
        }
    }

    fn mass_cancel(&mut self, session: usize, instrument: Option<usize>) {
        let instrument = instrument.map(|index| INSTRUMENTS[index]);
        let request = MassCancel {
            client_order_id: self.next_id(session, false),
            session: SESSIONS[session],
            instrument,
        };
        self.ask(session, request.client_order_id);
        let report = self.orders.mass_cancel(&request);
        self.take(report);
        self.want_cancels(|live| live.session == session && instrument.is_none_or(|id| live.request.instrument == id));
    }

    fn kill(&mut self, index: usize, stop: Stop) {
        self.stops[index] = stop;
        match stop {
            Stop::Off => return self.orders.revive(scope(index)).unwrap(),
            Stop::ReduceOnly => self.orders.let_reduce(scope(index)).unwrap(),
            Stop::All => self.orders.kill(scope(index)).unwrap(),
        }
        self.want_cancels(|live| match scope(index) {
            KillScope::Firm => true,
            KillScope::Account(id) => live.request.account == id,
            KillScope::Session(id) => live.request.session == id,
        });
    }

    fn want_cancels(&mut self, wanted: impl Fn(&Live) -> bool) {
        for live in &mut self.live {
            if live.cancel == Cancel::None && wanted(live) {
                live.cancel = Cancel::Waiting;
            }
        }
    }

    fn poll(&mut self, venue: usize) {
        if let Some(sent) = self.orders.poll_cancel(self.now, VenueId(u8::try_from(venue).unwrap())) {
            let live = self
                .live
                .iter_mut()
                .find(|live| live.order_id == sent.order_id)
                .unwrap();
            live.cancel = Cancel::Asked {
                number: sent.request.client_order_id,
                by_client: matches!(live.cancel, Cancel::Asked { by_client: true, .. }),
                aimed_at: sent.request.orig_client_order_id,
            };
            self.venues[venue].requests.push_back(Request::Cancel(sent.request));
        }
    }

    fn deliver(&mut self, venue: usize) {
        let Some(report) = self.venues[venue].reports.pop_front() else {
            return;
        };
        let mut outputs = Outputs::default();
        let id = VenueId(u8::try_from(venue).unwrap());
        let result = self.orders.on_venue_report(self.now, id, &report, &mut outputs);
        match result {
            Ok(_) | Err(Anomaly::Late) => {}
            // Only a trade of a day before the last may find no order.
            Err(Anomaly::TradeAfterEnd) if self.day > 1 => {}
            Err(anomaly) => panic!("{anomaly:?}: {report:?}"),
        }
        if result.is_ok() && outputs.reports.is_empty() {
            // A cancel missed because the replace that it followed was refused; it waits to be sent again.
            for live in &mut self.live {
                match live.cancel {
                    Cancel::Asked { number, by_client, .. } if number == report.client_order_id => {
                        live.cancel = if by_client {
                            Cancel::Asked {
                                number: ClientOrderId(0),
                                by_client,
                                aimed_at: ClientOrderId(0),
                            }
                        } else {
                            Cancel::Waiting
                        };
                    }
                    _ => {}
                }
            }
        }
        if result.is_ok() {
            self.follow_child(&report);
        }
        self.take_all(outputs);
    }

    fn day_roll(&mut self) {
        self.day += 1;
        self.late = self.live.iter().filter(|live| !live.is_here()).cloned().collect();
        let mut outputs = Outputs::default();
        self.orders.on_day_roll(self.now, TradingDay(self.day), &mut outputs);
        self.take_all(outputs);
        assert!(self.live.is_empty());
        assert_eq!(self.reserved, [0; 3], "what was reserved in the day came back");
        self.traded.clear();
        self.values.clear();
        self.last = [0; 4];
        assert!(self.answered.values().all(|&answered| answered));
        self.answered.clear();
    }

    fn take_all(&mut self, outputs: Outputs) {
        for report in outputs.reports {
            self.take(report);
        }
        for (account, amount) in outputs.released {
            let place = ACCOUNTS.iter().position(|&known| known == account).unwrap();
            self.reserved[place] -= amount;
        }
        for (staked, settled) in self.staked.iter_mut().zip(outputs.settled) {
            *staked += settled;
        }
        self.settle_sessions(&outputs.settled_sessions);
    }

    fn enter_need(&mut self, places: Places, need: &Need, order: &NewOrder) {
        let (place, session) = (places.account.0 as usize, places.session.0 as usize);
        assert_eq!((ACCOUNTS[place], SESSIONS[session]), (order.account, order.session));
        self.reserved[place] += need.stake.notional;
        self.staked[place] += need.stake;
        self.staked_sessions[session].notional += need.stake.notional;
        self.staked_sessions[session].orders += need.stake.orders;
    }

    /// Reads a report as the client does.
    fn take(&mut self, report: Report) {
        self.transcript.push(report);
        let exec = report.exec;
        let request = (exec.session.0, exec.client_order_id.0);
        let found = self.live.iter().position(|live| live.order_id == exec.order_id);
        if exec.exec_type == ExecType::Fill && found.is_none() {
            return self.take_late(&report);
        }
        let is_first = match exec.exec_type {
            ExecType::Fill | ExecType::Expired | ExecType::Restated | ExecType::Triggered => false,
            ExecType::Canceled => exec.orig_client_order_id.0 != 0,
            _ => true,
        };
        let answered = self.answered.get_mut(&request).expect("a request of the client");
        assert!(!(is_first && *answered), "answered twice: {exec:?}");
        *answered = true;
        let Some(index) = found else {
            assert!(matches!(
                exec.exec_type,
                ExecType::Rejected | ExecType::RequestRejected | ExecType::MassCancelAccepted
            ));
            return;
        };
        let live = &mut self.live[index];
        if exec.exec_type != ExecType::RequestRejected {
            // Whatever happens to a new order answers it.
            let request = (exec.session.0, live.request.client_order_id.0);
            self.answered.insert(request, true);
        }
        match exec.exec_type {
            ExecType::Fill => {
                assert_eq!(exec.client_order_id, live.id);
                live.traded += exec.last_quantity.0;
                if live.request.account == SHARED {
                    let values = self.values.entry(live.request.instrument).or_default();
                    values.trade(
                        live.request.instrument,
                        live.request.side,
                        exec.last_price,
                        exec.last_quantity.0,
                    );
                }
                let traded = self
                    .traded
                    .entry((live.request.account, live.request.instrument))
                    .or_default();
                match live.request.side {
                    Side::Buy => traded.0 += exec.last_quantity.0,
                    Side::Sell => traded.1 += exec.last_quantity.0,
                }
            }
            ExecType::Replaced => {
                let replace = live.replace.take().unwrap();
                assert_eq!(
                    (exec.client_order_id, exec.orig_client_order_id),
                    (replace.client_order_id, live.id)
                );
                live.id = replace.client_order_id;
                live.number = live.replace_number;
                live.price = replace.price;
                live.weight = live.replace_weight;
                live.request.terms = replace.terms;
                live.note_replaced();
                live.lots = replace.quantity.0.max(live.traded);
            }
            ExecType::RequestRejected => match live.replace {
                Some(replace) if replace.client_order_id == exec.client_order_id => live.replace = None,
                _ if exec.reason == Reason::TooLate => live.cancel = Cancel::None,
                _ => {}
            },
            ExecType::New => assert_eq!(exec.reason == Reason::Held, live.held.is_some()),
            ExecType::Triggered => live.note_triggered(),
            ExecType::Canceled | ExecType::Rejected | ExecType::Expired => {}
            ExecType::Restated => {
                assert!(exec.quantity.0 < live.lots);
                live.lots = exec.quantity.0;
            }
            ExecType::MassCancelAccepted | ExecType::Status | ExecType::StatusEnd => {
                unreachable!()
            }
        }
        let is_peg = live.held.as_ref().is_some_and(|held| held.peg);
        let begins = exec.exec_type == ExecType::New && live.held.is_some();
        let is_over = exec.ends_order();
        let open = if is_over { 0 } else { live.lots - live.traded };
        assert_eq!((exec.leaves.0, exec.cumulative.0), (open, live.traded), "{exec:?}");
        if is_over {
            self.live.remove(index);
        } else if begins {
            self.note_begun(index);
        } else if is_peg && exec.exec_type == ExecType::Replaced {
            self.note_hungry(exec.instrument);
        }
    }

    /// A trade of an order that ended with the day before: it counts in this one.
    fn take_late(&mut self, report: &Report) {
        let exec = &report.exec;
        let late = self.late.iter_mut().find(|late| late.order_id == exec.order_id);
        let late = late.expect("it was at its venue when the day rolled");
        let (instrument, side, lots) = (late.request.instrument, late.request.side, exec.last_quantity.0);
        late.traded += lots;
        late.lots = late.lots.max(late.traded);
        assert_eq!(
            (exec.cumulative.0, exec.quantity.0, exec.leaves.0),
            (late.traded, late.lots, 0)
        );
        assert_eq!((exec.client_order_id, exec.reason), (late.id, Reason::DayEnded));
        let is_filled = late.traded == late.lots;
        assert_eq!(report.status == OrderStatus::Filled, is_filled);
        let traded = self.traded.entry((exec.account, instrument)).or_default();
        match side {
            Side::Buy => traded.0 += lots,
            Side::Sell => traded.1 += lots,
        }
        if exec.account == SHARED {
            let values = self.values.entry(instrument).or_default();
            values.trade(instrument, side, exec.last_price, lots);
        }
    }

    /// Counts everything again.
    fn compare(&self) {
        self.orders.audit().unwrap();
        self.see_that_no_own_orders_cross();
        assert_eq!(self.orders.waiting() as usize, self.count_waiting());
        assert_eq!(self.orders.held(), self.count_held());
        assert_eq!(self.orders.open_orders(), self.live.len());
        self.compare_sessions();
        for (place, account) in ACCOUNTS.into_iter().enumerate() {
            assert_eq!(self.staked[place], self.counted_stake(account, self.reserved[place]));
            let of_account = |live: &&Live| live.request.account == account;
            let kept = self.orders.account_exposure(account).unwrap();
            assert_eq!(kept.open_orders as usize, self.live.iter().filter(of_account).count());
            assert_eq!(kept.held + kept.used, self.reserved[place]);
            for instrument in INSTRUMENTS {
                let mut open = [(0, 0); 2];
                for live in self.live.iter().filter(of_account) {
                    if live.request.instrument == instrument {
                        let (lots, notional) = live.worst();
                        let side = &mut open[usize::from(live.request.side == Side::Sell)];
                        *side = (side.0 + lots, side.1 + notional);
                    }
                }
                let traded = self.traded.get(&(account, instrument)).copied().unwrap_or_default();
                let kept = self.orders.exposure(account, instrument).unwrap_or_default();
                let kept_open = [
                    (kept.open_buy.0, kept.open_buy_notional.0),
                    (kept.open_sell.0, kept.open_sell_notional.0),
                ];
                assert_eq!(kept_open, open);
                assert_eq!((kept.bought.0, kept.sold.0), traded);
            }
        }
    }

    /// Lets everything that is on its way arrive, and sees that nobody is left without an answer.
    fn finish(&mut self) {
        loop {
            for venue in 0..2 {
                self.step(&Step::Poll { venue });
                self.step(&Step::Process { venue, mood: 1 });
                self.step(&Step::Deliver { venue });
            }
            self.step(&Step::End);
            self.step(&Step::Look { room: [true; 2] });
            self.step(&Step::Due { room: [true; 2] });
            self.step(&Step::Later { ms: 10 });
            let quiet = |venue: &Venue| venue.requests.is_empty() && venue.reports.is_empty();
            let waiting = self.orders.cancels_waiting(VenueId(0)) + self.orders.cancels_waiting(VenueId(1));
            let waiting = waiting + self.orders.waiting();
            if waiting == 0 && !self.is_busy && !self.orders.is_ending() && self.venues.iter().all(quiet) {
                break;
            }
        }
        assert!(self.answered.values().all(|&answered| answered), "{:?}", self.answered);
        self.see_that_none_is_stuck();
        let counters = self.orders.counters();
        assert_eq!(counters.accepted - counters.ended, self.live.len() as u64);
        for anomaly in [Anomaly::UnknownOrder, Anomaly::Overfill, Anomaly::CancelRefused] {
            assert_eq!(counters.anomalies(anomaly), 0);
        }
    }
}

fn venue_of(session: usize, instrument: InstrumentId) -> usize {
    usize::from(session == 3 || instrument == BETA)
}

fn weight(order: &NewOrder) -> i128 {
    match order.order_type {
        OrderType::Market => held::collar_above(order.instrument, 100 * TICK),
        OrderType::Stop => held::collar_above(order.instrument, order.terms.stop_price.0.max(100 * TICK)),
        _ if order.price.is_null() => held::collar_above(order.instrument, 100 * TICK),
        _ if order.side == Side::Buy => i128::from(order.price.0),
        // It may trade where the market is.
        OrderType::PegPrimary | OrderType::PegMid => {
            held::collar_above(order.instrument, 100 * TICK).max(order.price.0.into())
        }
        OrderType::StopLimit => i128::from(order.price.0.max(order.terms.stop_price.0)),
        OrderType::Limit => i128::from(order.price.0.max(100 * TICK)),
    }
}

fn limit_broken(order: &NewOrder) -> Option<Reason> {
    let alpha = order.instrument == ALPHA;
    let (max_lots, max_units) = match order.account {
        TIGHT => (20, 500),
        _ => (50, 3_000),
    };
    let ticks = order.price.0 / TICK;
    let outside_collar = match order.order_type {
        OrderType::Limit => !(80..=120).contains(&ticks),
        OrderType::StopLimit => held::is_outside_collar(order),
        _ => false,
    };
    let notional = i128::from(order.quantity.0) * weight(order) * lot_size(order.instrument);
    if order.quantity.0 > max_lots {
        Some(Reason::MaxQuantity)
    } else if matches!(order.order_type, OrderType::Market | OrderType::Stop) && !alpha {
        Some(Reason::MarketOrder)
    } else if alpha && outside_collar {
        Some(Reason::PriceCollar)
    } else if notional > max_units * i128::from(Price::UNIT) {
        Some(Reason::MaxNotional)
    } else {
        None
    }
}

fn run(modes: [SelfMatch; 4], steps: &[Step]) -> Vec<Report> {
    let mut model = Model::new(modes);
    for step in steps {
        model.step(step);
    }
    model.finish();
    model.transcript
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_the_naive_model_does(
        modes in prop::array::uniform4(mode()),
        steps in prop::collection::vec(step(), 1..1_000),
    ) {
        let transcript = run(modes, &steps);
        prop_assert_eq!(transcript, run(modes, &steps), "the same calls give the same results");
    }

    #[test]
    fn no_report_makes_it_miscount(
        entries in prop::collection::vec((new_step(), 0..9u8, 0..40u64, 0..40u64, 0..20u64), 1..300)
    ) {
        let mut orders = orders();
        let mut numbers = vec![0, u64::MAX];
        for (index, (entry, exec_type, pick, noise, lots)) in (1..).zip(entries) {
            let Step::New(entry) = entry else { unreachable!() };
            let order = NewOrder {
                side: if entry.buy { Side::Buy } else { Side::Sell },
                instrument: INSTRUMENTS[entry.instrument],
                ..new_order(index)
            };
            match enter(&mut orders, &order, &REFERENCE) {
                Ok(sent) => numbers.push(sent.request.client_order_id.0),
                Err(reason) => drop(orders.refuse(&order, reason)),
            }
            let pick = numbers[usize::try_from(pick).unwrap() % numbers.len()];
            // Near a number that was given, now and then.
            let number = if noise < 30 { pick } else { pick.wrapping_add(noise) };
            let named = NewOrder { client_order_id: ClientOrderId(number), ..order };
            let report = ExecReport {
                last_quantity: Quantity(lots),
                last_price: Price(100 * TICK),
                reason: Reason::from_u16(u16::try_from(noise).unwrap()).unwrap_or_default(),
                ..venue_report(
                    &orders::ForVenue { venue: VenueId(0), order_id: OrderId(number), request: named },
                    ExecType::from_u8(exec_type).unwrap_or(ExecType::Fill),
                    ClientOrderId(number),
                )
            };
            let venue = VenueId(u8::try_from(noise % 3).unwrap());
            let _ = orders.on_venue_report(NOW, venue, &report, &mut Outputs::default());
            while orders.poll_cancel(NOW, VenueId(0)).is_some() {}
            prop_assert_eq!(orders.audit(), Ok(()));
            let counters = orders.counters();
            prop_assert_eq!(counters.accepted - counters.ended, orders.open_orders() as u64);
        }
    }
}
