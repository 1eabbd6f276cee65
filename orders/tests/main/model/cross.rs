//! Crossing under long random sequences: orders that trade with each other in the gateway and at venues, cancels, replaces,
//! lost sessions, kills and books that move, go stale or lose a side.
//!
//! The model knows what rests by the rules alone, matches it naively, and counts what each account holds from the reports.

use super::venue::Venue;
use crate::fixture::*;
use orders::{CrossingConfig, Due, Exposure, HeldStep, KillScope, Orders, Reference, Report};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::BTreeMap;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecType, InstrumentId, NewOrder, OrderId, OrderTerms, OrderType,
    Price, Quantity, Reason, ReplaceOrder, Request, SessionId, Side, TimeInForce, Timestamp, Trigger, VenueId,
};

const REST: Duration = Duration::from_millis(20);
/// Orders that the gateway holds at a time.
const PLACES: u32 = 8;
/// Session 2 does not want it. Each is another owner's.
const CROSSES: [bool; 4] = [true, false, true, true];
const ACCOUNTS: [AccountId; 3] = [SHARED, PLAIN, TIGHT];
/// By session.
const USED: [&[AccountId]; 4] = [&ACCOUNTS, &[PLAIN], &[SHARED, TIGHT], &[PLAIN]];

#[derive(Clone, Debug)]
enum Step {
    New {
        session: usize,
        account: usize,
        beta: bool,
        buy: bool,
        kind: u8,
        ticks: i64,
        lots: u64,
    },
    Cancel(usize),
    Replace {
        pick: usize,
        ticks: i64,
        lots: u64,
    },
    Process {
        venue: usize,
        mood: u64,
    },
    Trade {
        venue: usize,
        pick: usize,
        lots: u64,
    },
    Deliver(usize),
    Book {
        bid: i64,
        spread: i64,
        sides: u8,
    },
    Later(u64),
    Lost(usize),
    Kill {
        session: usize,
        on: bool,
    },
    Venue {
        venue: usize,
        is_up: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let venue = 0usize..2;
    prop_oneof![
        30 => (0usize..4, 0usize..3, prop::bool::weighted(0.1), any::<bool>(), 0u8..12, 98i64..103, 1u64..15).prop_map(
            |(session, account, beta, buy, kind, ticks, lots)| Step::New { session, account, beta, buy, kind, ticks, lots }
        ),
        10 => (0usize..24).prop_map(Step::Cancel),
        3 => (0usize..24, 97i64..104, 1u64..20).prop_map(|(pick, ticks, lots)| Step::Replace { pick, ticks, lots }),
        12 => (venue.clone(), any::<u64>()).prop_map(|(venue, mood)| Step::Process { venue, mood }),
        12 => (venue.clone(), 0usize..16, 1u64..15).prop_map(|(venue, pick, lots)| Step::Trade { venue, pick, lots }),
        20 => venue.clone().prop_map(Step::Deliver),
        6 => (98i64..101, prop_oneof![1 => -1i64..1, 9 => 2i64..6], 0u8..20).prop_map(|(bid, spread, sides)| Step::Book { bid, spread, sides }),
        10 => prop_oneof![60 => 1u64..8, 1 => Just(6_000)].prop_map(Step::Later),
        1 => (0usize..4).prop_map(Step::Lost),
        1 => (0usize..4, prop::bool::weighted(0.1)).prop_map(|(session, on)| Step::Kill { session, on }),
        1 => (venue, prop::bool::weighted(0.9)).prop_map(|(venue, is_up)| Step::Venue { venue, is_up }),
    ]
}

/// An open order as its client knows it.
#[derive(Clone, Debug)]
struct Live {
    order_id: OrderId,
    request: NewOrder,
    id: ClientOrderId,
    session: usize,
    price: Price,
    lots: u64,
    traded: u64,
    replace: Option<ReplaceOrder>,
    /// Something of it went to its venue, ever.
    was_sent: bool,
    /// It rests in the gateway: until when, and how many had begun to before.
    rests: Option<(Timestamp, u64)>,
}

#[derive(Default)]
struct Counts {
    bought: u64,
    sold: u64,
    cost: i128,
}

struct World {
    orders: Orders,
    now: Timestamp,
    book: Reference,
    venues: [Venue; 2],
    is_up: [bool; 2],
    live: Vec<Live>,
    last: [u64; 4],
    begun: u64,
    counts: BTreeMap<(AccountId, InstrumentId), Counts>,
    /// Bought and sold inside.
    crossed: [u64; 2],
    crosses: u64,
}

fn side(buy: bool) -> Side {
    if buy { Side::Buy } else { Side::Sell }
}

impl Live {
    fn leaves(&self) -> u64 {
        self.lots - self.traded
    }

    /// The worst that may be open.
    fn claim(&self) -> u64 {
        let replaced = self
            .replace
            .map_or(0, |replace| replace.quantity.0.saturating_sub(self.traded));
        self.leaves().max(replaced)
    }
}

impl World {
    fn new() -> Self {
        let mut config = config();
        config.crossing = CrossingConfig {
            instruments: vec![ALPHA],
            rest: REST,
        };
        for (session, crosses) in config.sessions.iter_mut().zip(CROSSES) {
            session.crossing = crosses;
            session.limits.max_open_orders = 20;
            session.owner = u32::from(session.id.0);
        }
        (config.capacity.open_orders, config.capacity.held_orders) = (64, PLACES);
        Self {
            orders: up(Orders::new(&config).unwrap()),
            now: NOW,
            book: REFERENCE,
            venues: Default::default(),
            is_up: [true; 2],
            live: vec![],
            last: [0; 4],
            begun: 0,
            counts: BTreeMap::new(),
            crossed: [0; 2],
            crosses: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::New { .. } => self.new_order(step),
            Step::Cancel(pick) => self.cancel(pick),
            Step::Replace { pick, ticks, lots } => self.replace(pick, ticks, lots),
            Step::Process { venue, mood } => {
                for request in 0..1 + mood % 4 {
                    self.venues[venue].process(mood >> request);
                }
            }
            Step::Trade { venue, pick, lots } => {
                let count = self.venues[venue].book.len();
                if count > 0 {
                    self.venues[venue].trade(pick % count, lots);
                }
            }
            Step::Deliver(venue) => (0..4).for_each(|_| self.deliver(venue)),
            Step::Book { bid, spread, sides } => {
                let of = |bit: u8, ticks: i64| if sides == bit { Price::NULL } else { Price(ticks * TICK) };
                self.book = Reference {
                    bid: of(0, bid),
                    offer: of(1, bid + spread),
                    time: self.now,
                    ..REFERENCE
                };
            }
            Step::Later(ms) => self.now = self.now + Duration::from_millis(ms),
            Step::Lost(session) => self.orders.on_session_lost(SESSIONS[session]),
            Step::Kill { session, on } => {
                let scope = KillScope::Session(SESSIONS[session]);
                let done = if on {
                    self.orders.kill(scope)
                } else {
                    self.orders.revive(scope)
                };
                done.unwrap();
            }
            Step::Venue { venue, is_up } => {
                self.is_up[venue] = is_up;
                let id = VenueId(u8::try_from(venue).unwrap());
                if is_up {
                    self.orders.on_venue_up(id);
                } else {
                    self.orders.on_venue_down(id);
                }
            }
        }
        self.turn(None);
        self.compare();
    }

    fn new_order(&mut self, step: &Step) {
        let &Step::New {
            session,
            account,
            beta,
            buy,
            kind,
            ticks,
            lots,
        } = step
        else {
            return;
        };
        self.last[session] += 1;
        let order = NewOrder {
            client_order_id: ClientOrderId(self.last[session]),
            instrument: if beta { BETA } else { ALPHA },
            account: USED[session][account % USED[session].len()],
            session: SESSIONS[session],
            side: side(buy),
            order_type: if kind == 0 { OrderType::Market } else { OrderType::Limit },
            time_in_force: match kind {
                1 => TimeInForce::ImmediateOrCancel,
                2 => TimeInForce::GoodTillCancel,
                3 => TimeInForce::FillOrKill,
                _ => TimeInForce::Day,
            },
            price: if kind == 0 { Price::NULL } else { Price(ticks * TICK) },
            quantity: Quantity(lots),
            trigger: Trigger::NONE,
            terms: OrderTerms {
                post_only: kind == 4,
                ..OrderTerms::NONE
            },
        };
        // Rests that are over are out of it before anything comes in: the shard looks at the clock first in a turn.
        self.turn(None);
        let reference = self.book;
        let routed = self
            .orders
            .check_risk(self.now, &order, &reference)
            .and_then(|order| self.orders.screen(order))
            .and_then(|order| self.orders.route(order));
        let routed = match routed {
            Ok(routed) => routed,
            Err(reason) => {
                let report = self.orders.refuse(&order, reason);
                assert_eq!(report.exec.exec_type, ExecType::Rejected);
                return;
            }
        };
        let may_be_held = self.may_cross(session, &order) && self.orders.held() < PLACES as usize;
        assert_eq!(routed.is_held(), may_be_held, "{order:?} {reference:?}");
        let venue = usize::from(routed.venue().0);
        let mut live = Live {
            order_id: OrderId(0),
            request: order,
            id: order.client_order_id,
            session,
            price: order.price,
            lots,
            traded: 0,
            replace: None,
            was_sent: false,
            rests: None,
        };
        if !may_be_held {
            let sent = self.orders.accept(self.now, routed);
            live.order_id = sent.order_id;
            live.was_sent = true;
            self.venues[venue].requests.push_back(Request::New(sent.request));
            return self.live.push(live);
        }
        let mut outputs = Outputs::default();
        live.order_id = self.orders.hold_here(self.now, routed, &mut outputs);
        let [new] = &outputs.reports[..] else {
            panic!("it is told that it was accepted")
        };
        assert_eq!((new.exec.exec_type, new.exec.reason), (ExecType::New, Reason::Crossing));
        let order_id = live.order_id;
        self.live.push(live);
        self.turn(Some(order_id));
    }

    /// Lots are traded at the best prices first; of one price with the oldest.
    fn naive_best(&self, session: usize, order: &NewOrder) -> Option<&Live> {
        let (bid, offer) = self.touch()?;
        let reaches = |price: Price| match order.side {
            _ if order.price.is_null() => true,
            Side::Buy => price <= order.price,
            Side::Sell => price >= order.price,
        };
        let candidates = self.live.iter().filter(|live| {
            live.rests.is_some()
                && live.request.side != order.side
                && live.request.instrument == order.instrument
                && live.session != session
                && live.request.account != order.account
                && reaches(live.price)
                && bid <= live.price
                && live.price <= offer
        });
        candidates.min_by_key(|live| {
            let price = match order.side {
                Side::Buy => live.price.0,
                Side::Sell => -live.price.0,
            };
            (price, live.rests.unwrap().1)
        })
    }

    fn touch(&self) -> Option<(Price, Price)> {
        let Reference { bid, offer, time, .. } = self.book;
        let is_good = !bid.is_null() && !offer.is_null() && bid < offer && self.now.since(time) <= STALE_AFTER;
        is_good.then_some((bid, offer))
    }

    fn may_rest(&self, order: &NewOrder) -> bool {
        let waits = matches!(order.time_in_force, TimeInForce::Day | TimeInForce::GoodTillCancel);
        order.order_type == OrderType::Limit
            && waits
            && self.touch().is_some_and(|(bid, offer)| match order.side {
                Side::Buy => bid <= order.price && order.price < offer,
                Side::Sell => bid < order.price && order.price <= offer,
            })
    }

    fn may_cross(&self, session: usize, order: &NewOrder) -> bool {
        CROSSES[session]
            && order.instrument == ALPHA
            && order.terms == OrderTerms::NONE
            && order.time_in_force != TimeInForce::FillOrKill
            && self.touch().is_some()
            && (self.may_rest(order) || self.naive_best(session, order).is_some())
    }

    /// What a shard does after each input. `incoming`: the order that has not met those that rest.
    fn turn(&mut self, mut incoming: Option<OrderId>) {
        for live in &mut self.live {
            live.rests = live.rests.filter(|&(until, _)| until > self.now);
        }
        self.orders.end_rests(self.now);
        let mut next = self.orders.first_due();
        while let Some(due) = next {
            next = self.orders.due_after(due);
            if self.orders.meets(due).is_some() {
                let order_id = incoming.take().expect("one order comes in at a time");
                if !self.meet(due, order_id) {
                    continue;
                }
            }
            match self.orders.next_step(due) {
                HeldStep::Nothing | HeldStep::Wait => {}
                HeldStep::End | HeldStep::Send(_) | HeldStep::Cancel(_) => {
                    let mut outputs = Outputs::default();
                    let sent = self.orders.take_step(self.now, due, &mut outputs);
                    self.take(&outputs.reports);
                    if let Some(sent) = sent {
                        self.note_sent(sent.order_id, &sent.request);
                        self.venues[usize::from(sent.venue.0)].requests.push_back(sent.request);
                    }
                }
            }
        }
        assert_eq!(incoming, None, "it met those that rest");
        for venue in [VenueId(0), VenueId(1)] {
            while let Some(sent) = self.orders.poll_cancel(self.now, venue) {
                self.venues[usize::from(venue.0)]
                    .requests
                    .push_back(Request::Cancel(sent.request));
            }
        }
        while self.orders.is_ending() {
            let mut outputs = Outputs::default();
            self.orders.end_next(&mut outputs);
            self.take(&outputs.reports);
        }
    }

    /// Returns whether the order goes on to its venue.
    fn meet(&mut self, due: Due, order_id: OrderId) -> bool {
        loop {
            let me = self.index(order_id).expect("it is open");
            let (session, request) = (self.live[me].session, self.live[me].request);
            let expected = self.naive_best(session, &request).cloned();
            let meeting = self.orders.next_meeting(self.now, due, &self.book);
            let Some(other) = expected else {
                assert_eq!(meeting, None, "{request:?}");
                let goes = self.orders.end_meeting(self.now, due, Some(&self.book));
                assert_eq!(goes, !self.may_rest(&request), "{request:?}");
                if !goes {
                    self.begun += 1;
                    self.live[me].rests = Some((self.now + REST, self.begun));
                }
                return goes;
            };
            let meeting = meeting.expect("it trades");
            let sessions: [SessionId; 2] = [SESSIONS[session], SESSIONS[other.session]];
            assert_eq!(meeting.sessions, sessions);
            assert!(!other.was_sent && !self.live[me].was_sent, "no venue has either");
            let lots = other.leaves().min(self.live[me].leaves());
            let mut outputs = Outputs::default();
            let is_left = self.orders.cross(self.now, meeting, &mut outputs);
            let told: Vec<_> = outputs
                .reports
                .iter()
                .map(|report| {
                    let exec = &report.exec;
                    (exec.order_id, exec.reason, exec.last_price, exec.last_quantity.0)
                })
                .collect();
            let at = other.price;
            assert_eq!(
                told,
                [
                    (other.order_id, Reason::CrossedResting, at, lots),
                    (order_id, Reason::CrossedTaking, at, lots)
                ]
            );
            let (bid, offer) = self.touch().expect("a fresh book");
            assert!(bid <= at && at <= offer, "through the book");
            self.crosses += 1;
            self.take(&outputs.reports);
            assert_eq!(is_left, self.index(order_id).is_some());
            if !is_left {
                return false;
            }
        }
    }

    fn note_sent(&mut self, order_id: OrderId, request: &Request) {
        let Some(index) = self.index(order_id) else { return };
        let live = &mut self.live[index];
        if let Request::New(child) = request {
            assert_eq!(child.quantity.0, live.leaves(), "all that is left, and nothing twice");
            assert_eq!((child.price, child.side), (live.price, live.request.side));
            assert_eq!(live.rests, None);
            live.was_sent = true;
        }
    }

    fn cancel(&mut self, pick: usize) {
        let Some(live) = self.live.get(pick).cloned() else {
            return;
        };
        self.last[live.session] += 1;
        let cancel = CancelOrder {
            client_order_id: ClientOrderId(self.last[live.session]),
            orig_client_order_id: live.id,
            instrument: live.request.instrument,
            session: live.request.session,
            side: live.request.side,
        };
        match self.orders.check_cancel(&cancel) {
            Ok(checked) if checked.is_here() => self.orders.hold_cancel(checked),
            Ok(checked) => {
                let sent = self.orders.accept_cancel(self.now, checked);
                self.venues[usize::from(sent.venue.0)]
                    .requests
                    .push_back(Request::Cancel(sent.request));
            }
            Err(reason) => {
                self.orders.refuse_cancel(&cancel, reason);
            }
        }
    }

    fn replace(&mut self, pick: usize, ticks: i64, lots: u64) {
        let Some(live) = self.live.get(pick).cloned() else {
            return;
        };
        self.last[live.session] += 1;
        let replace = ReplaceOrder {
            client_order_id: ClientOrderId(self.last[live.session]),
            orig_client_order_id: live.id,
            instrument: live.request.instrument,
            session: live.request.session,
            side: live.request.side,
            price: Price(ticks * TICK),
            quantity: Quantity(lots),
            terms: live.request.terms,
        };
        let checked = self.orders.check_replace(self.now, &replace, &self.book);
        match checked.and_then(|checked| self.orders.screen_replace(checked)) {
            Err(reason) => {
                self.orders.refuse_replace(&replace, reason);
            }
            Ok(screened) => {
                self.live[pick].replace = Some(replace);
                if screened.is_held() {
                    let mut outputs = Outputs::default();
                    self.orders.replace_held(self.now, screened, &mut outputs);
                    self.take(&outputs.reports);
                } else {
                    let sent = self.orders.accept_replace(self.now, screened);
                    self.venues[usize::from(sent.venue.0)]
                        .requests
                        .push_back(Request::Replace(sent.request));
                }
            }
        }
    }

    fn deliver(&mut self, venue: usize) {
        let Some(report) = self.venues[venue].reports.pop_front() else {
            return;
        };
        let mut outputs = Outputs::default();
        let id = VenueId(u8::try_from(venue).unwrap());
        // Races are the other model's; here what reaches clients counts.
        let _anomaly = self.orders.on_venue_report(self.now, id, &report, &mut outputs);
        for report in &outputs.reports {
            assert!(report.exec.exec_type != ExecType::Fill || report.exec.reason == Reason::None);
        }
        self.take(&outputs.reports);
    }

    fn index(&self, order_id: OrderId) -> Option<usize> {
        self.live.iter().position(|live| live.order_id == order_id)
    }

    fn take(&mut self, reports: &[Report]) {
        for Report { exec, .. } in reports {
            let Some(index) = self.index(exec.order_id) else {
                assert_eq!(exec.reason, Reason::TooLate, "other reports are of open orders");
                continue;
            };
            let live = &mut self.live[index];
            match exec.exec_type {
                ExecType::Fill => {
                    let lots = exec.last_quantity.0;
                    live.traded += lots;
                    assert_eq!((exec.cumulative.0, exec.leaves.0), (live.traded, live.leaves()));
                    let counts = self.counts.entry((exec.account, exec.instrument)).or_default();
                    let cost = i128::from(exec.last_price.0) * i128::from(lots);
                    let (of_side, cost) = match exec.side {
                        Side::Buy => (&mut counts.bought, cost),
                        Side::Sell => (&mut counts.sold, -cost),
                    };
                    *of_side += lots;
                    counts.cost += cost;
                    if exec.reason != Reason::None {
                        self.crossed[usize::from(exec.side == Side::Sell)] += lots;
                    }
                }
                ExecType::Replaced => {
                    live.replace = None;
                    live.rests = None;
                    (live.id, live.price, live.lots) = (exec.client_order_id, exec.price, exec.quantity.0);
                    assert_eq!(exec.leaves.0, live.leaves());
                }
                ExecType::RequestRejected => {
                    live.replace
                        .take_if(|replace| replace.client_order_id == exec.client_order_id);
                }
                _ => {}
            }
            if exec.ends_order() {
                self.live.remove(index);
            }
        }
    }

    /// Everything that is kept incrementally, counted again from the reports.
    fn compare(&self) {
        self.orders.audit().unwrap();
        assert_eq!(self.crossed[0], self.crossed[1], "what one buys another sells");
        assert_eq!(self.orders.counters().crossed, self.crosses);
        assert_eq!(self.orders.open_orders(), self.live.len());
        for (&(account, instrument), counts) in &self.counts {
            let kept = self.orders.exposure(account, instrument).unwrap();
            let lot_size = if instrument == ALPHA { 100 } else { 1 };
            assert_eq!((kept.bought.0, kept.sold.0), (counts.bought, counts.sold));
            assert_eq!(kept.bought_notional.0 - kept.sold_notional.0, counts.cost * lot_size);
        }
        for account in ACCOUNTS {
            for instrument in [ALPHA, BETA] {
                let of = |side: Side| {
                    let orders = self.live.iter().filter(|live| {
                        let NewOrder {
                            account: whose,
                            instrument: what,
                            side: which,
                            ..
                        } = live.request;
                        (whose, what, which) == (account, instrument, side)
                    });
                    orders.map(Live::claim).sum::<u64>()
                };
                let kept = self.orders.exposure(account, instrument);
                let Exposure {
                    open_buy, open_sell, ..
                } = kept.unwrap_or_default();
                assert_eq!(
                    (open_buy.0, open_sell.0),
                    (of(Side::Buy), of(Side::Sell)),
                    "{account} {instrument}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn what_is_crossed_is_what_a_naive_book_would_and_all_of_it_is_counted(steps in prop::collection::vec(step(), 1..400)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
    }
}

/// The random steps do cross, or they would prove little.
#[test]
fn the_steps_cross_often() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop::collection::vec(step(), 4_000);
    let steps = strategy.new_tree(&mut runner).unwrap().current();
    let mut world = World::new();
    for step in &steps {
        world.step(step);
    }
    assert!(world.crosses > 10, "{}", world.crosses);
}
