//! A small firm: two instruments, three accounts, four sessions of two owners, two venues.

use orders::{
    AccountConfig, AccountLimits, AccountPlace, Anomaly, AuctionLimits, Capacity, Collar, CrossingConfig, FirmLimits,
    ForVenue, Handling, InstrumentLimits, Limit, LimitError, LimitScope, LimitValue, MissingReference, NOTIONAL_MAX,
    OrderTypes, Orders, OrdersConfig, RateLimit, RateQueueConfig, Reference, ReferenceChoice, RepeatLimit, Report,
    Restrictions, Route, RouteKey, SelfMatch, SessionConfig, SessionLimits, SessionPlace, SessionStake, ShortSales,
    Sink, Stake, TooFast, VALUE_LIMIT_MAX, VenueConfig,
};
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecId, ExecReport, ExecType, Instrument, InstrumentId,
    LimitClass, NewOrder, Notional, OrderId, OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, SessionId,
    ShardId, Side, Symbol, TimeInForce, Timestamp, Trigger, VenueId,
};

/// One cent, the tick of both instruments.
pub(crate) const TICK: i64 = 10_000_000;
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000_000);
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(5);
/// Orders that wait at a time, and how long.
pub(crate) const WAITING: u32 = 4;
/// Orders that are held at a time, and how often pegged ones follow.
pub(crate) const HELD: u32 = 5;

/// Classes and instruments that may be closed to accounts and sessions.
pub(crate) const RESTRICTIONS: u32 = 3;
pub(crate) const PEG_INTERVAL: Duration = Duration::from_millis(20);
pub(crate) const OWN_CANCEL_WAIT: Duration = Duration::from_millis(100);

/// Trades at venue 0; lots of 100 units; its account limits never bind before its own.
pub(crate) const ALPHA: InstrumentId = InstrumentId(101);
/// Trades at venue 1; lots of one unit; without a collar and without market orders.
pub(crate) const BETA: InstrumentId = InstrumentId(7);

/// Has a limit that spans shards.
pub(crate) const SHARED: AccountId = AccountId(5001);
pub(crate) const PLAIN: AccountId = AccountId(5002);
/// May have orders of at most 20 lots and 500 units of notional, and hold 25 lots of an instrument.
pub(crate) const TIGHT: AccountId = AccountId(5003);

/// Sessions 1 and 2 have one owner; 2 keeps its orders when it is lost. Session 3 is another owner's, and 4 is that owner's
/// too and goes to venue 1 with everything.
pub(crate) const SESSIONS: [SessionId; 4] = [SessionId(1), SessionId(2), SessionId(3), SessionId(40)];
pub(crate) const OWNERS: [u32; 4] = [1, 1, 2, 2];
/// Lots in an instrument.
pub(crate) const TIGHT_POSITION: u64 = 25;

/// 1.00 in ticks; also what the feed says.
pub(crate) const REFERENCE: Reference = Reference {
    price: Price(100 * TICK),
    last: Price(110 * TICK),
    bid: Price(99 * TICK),
    offer: Price(101 * TICK),
    time: NOW,
};

pub(crate) fn config() -> OrdersConfig {
    let instrument = |id, symbol: &str, lot_size, class, venue| Instrument {
        id,
        symbol: Symbol::new(symbol.as_bytes()).unwrap(),
        tick_size: Price(TICK),
        lot_size,
        reference_price: Price(100 * TICK),
        limit_class: LimitClass(class),
        shard: ShardId(3),
        venue: VenueId(venue),
    };
    let account = |id, max_quantity, units: i128, max_open_orders, has_shared_limit: bool| AccountConfig {
        id,
        limits: AccountLimits {
            max_quantity: Quantity(max_quantity),
            max_notional: Notional(units * i128::from(Price::UNIT)),
            max_open_orders,
            max_position: (id == TIGHT).then_some(Quantity(TIGHT_POSITION)),
            max_long: None,
            max_short: None,
            short_sales: ShortSales::WithLocate,
            rate: RateLimit::NONE,
            max_open_notional: has_shared_limit.then_some(NOTIONAL_MAX),
            max_gross: has_shared_limit.then_some(VALUE_LIMIT_MAX),
            max_net: None,
            max_loss: None,
        },
        restrictions: Restrictions::default(),
    };
    let session = |index: usize, accounts: &[AccountId], cancel_on_disconnect| SessionConfig {
        id: SESSIONS[index],
        accounts: accounts.to_vec(),
        owner: OWNERS[index],
        self_match: SelfMatch::CancelNewest,
        crossing: false,
        cancel_on_disconnect,
        limits: SessionLimits {
            max_open_orders: 6,
            max_open_notional: None,
            max_quantity: None,
            max_notional: None,
            rate: RateLimit::NONE,
            repeats: RepeatLimit::NONE,
        },
        restrictions: Restrictions::default(),
    };
    let limits = InstrumentLimits {
        max_quantity: Quantity(50),
        max_notional: Notional(3_000 * i128::from(Price::UNIT)),
        collar: Some(Collar {
            basis_points: Some(2_000),
            ticks: Some(30),
        }),
        book: None,
        reference: ReferenceChoice::Mid,
        stale_after: STALE_AFTER,
        missing_reference: MissingReference::Refuse,
        market_orders: true,
        restricted: false,
        max_open_orders: None,
        max_open_notional: None,
        max_position: None,
        max_long: None,
        max_short: None,
        auction: AuctionLimits::NONE,
        rate: RateLimit::NONE,
    };
    let without_collar = InstrumentLimits {
        collar: None,
        missing_reference: MissingReference::UseMaster,
        market_orders: false,
        ..limits
    };
    OrdersConfig {
        shard: ShardId(3),
        instruments: vec![instrument(ALPHA, "ALPHA", 100, 0, 0), instrument(BETA, "BETA", 1, 1, 0)],
        classes: vec![limits, without_collar],
        firm: FirmLimits::NONE,
        overrides: vec![],
        accounts: vec![
            account(SHARED, 1_000, 1_000_000, 1_000, true),
            account(PLAIN, 1_000, 1_000_000, 1_000, false),
            account(TIGHT, 20, 500, 2, false),
        ],
        sessions: vec![
            session(0, &[SHARED, PLAIN, TIGHT], true),
            session(1, &[PLAIN], false),
            session(2, &[SHARED, TIGHT], true),
            session(3, &[PLAIN], true),
        ],
        venues: vec![
            VenueConfig {
                session: SessionId(900),
                grants_slots: false,
                decrements: true,
                types: OrderTypes::AT_VENUE,
            },
            VenueConfig {
                session: SessionId(901),
                grants_slots: false,
                decrements: true,
                types: OrderTypes::all(Handling::Emulated),
            },
        ],
        routes: vec![
            Route {
                key: RouteKey::Instrument(BETA),
                venue: VenueId(1),
            },
            Route {
                key: RouteKey::Session(SESSIONS[3]),
                venue: VenueId(1),
            },
        ],
        own_cancel_wait: OWN_CANCEL_WAIT,
        rate_queue: RateQueueConfig::NONE,
        peg_interval: PEG_INTERVAL,
        crossing: CrossingConfig::NONE,
        capacity: Capacity {
            open_orders: 16,
            positions: 16,
            books: 16,
            waiting_orders: WAITING,
            held_orders: HELD,
            restrictions: RESTRICTIONS,
        },
    }
}

/// The firm with both venues up.
pub(crate) fn orders() -> Orders {
    up(Orders::new(&config()).unwrap())
}

pub(crate) fn up(mut orders: Orders) -> Orders {
    orders.on_venue_up(VenueId(0));
    orders.on_venue_up(VenueId(1));
    orders
}

/// A buy of 10 lots ALPHA at 1.00 for PLAIN by session 1.
pub(crate) fn new_order(id: u64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(id),
        instrument: ALPHA,
        account: PLAIN,
        session: SESSIONS[0],
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        price: Price(100 * TICK),
        quantity: Quantity(10),
        trigger: Trigger::new(1, 77),
        terms: OrderTerms::NONE,
    }
}

pub(crate) fn cancel_of(order: &NewOrder, id: u64) -> CancelOrder {
    CancelOrder {
        client_order_id: ClientOrderId(id),
        orig_client_order_id: order.client_order_id,
        instrument: order.instrument,
        session: order.session,
        side: order.side,
    }
}

pub(crate) fn replace_of(order: &NewOrder, id: u64, ticks: i64, lots: u64) -> ReplaceOrder {
    ReplaceOrder {
        client_order_id: ClientOrderId(id),
        orig_client_order_id: order.client_order_id,
        instrument: order.instrument,
        session: order.session,
        side: order.side,
        price: Price(ticks * TICK),
        quantity: Quantity(lots),
        terms: OrderTerms::NONE,
    }
}

/// All steps of a new order.
pub(crate) fn enter(
    orders: &mut Orders,
    order: &NewOrder,
    reference: &Reference,
) -> Result<ForVenue<NewOrder>, Reason> {
    let routed = orders
        .check_risk(NOW, order, reference)
        .and_then(|order| orders.screen(order))
        .and_then(|order| orders.route(order))?;
    if routed.must_queue() {
        // No session queues here.
        return Err(orders
            .pace(NOW, routed, &TooFast::default())
            .expect_err("nothing is queued"));
    }
    Ok(orders.accept(NOW, routed))
}

/// All steps of a new order that is accepted.
pub(crate) fn accepted(orders: &mut Orders, order: &NewOrder) -> ForVenue<NewOrder> {
    enter(orders, order, &REFERENCE).unwrap()
}

/// All steps of a cancel.
pub(crate) fn cancel(orders: &mut Orders, cancel: &CancelOrder) -> Result<ForVenue<CancelOrder>, Reason> {
    let checked = orders.check_cancel(cancel)?;
    Ok(orders.accept_cancel(NOW, checked))
}

/// All steps of a replace.
pub(crate) fn replace(orders: &mut Orders, replace: &ReplaceOrder) -> Result<ForVenue<ReplaceOrder>, Reason> {
    let checked = orders.check_replace(NOW, replace, &REFERENCE)?;
    let screened = orders.screen_replace(checked)?;
    if screened.is_limited() && orders.is_fast_replace(NOW, &screened) {
        return Err(orders.refuse_fast_replace(NOW, &screened, &TooFast::default()));
    }
    Ok(orders.accept_replace(NOW, screened))
}

/// A venue's report about an order, by the number of the order or of the request that it answers.
pub(crate) fn venue_report(order: &ForVenue<NewOrder>, exec_type: ExecType, number: ClientOrderId) -> ExecReport {
    ExecReport {
        exec_type,
        order_id: OrderId(order.order_id.0 ^ 0xffff),
        client_order_id: number,
        orig_client_order_id: ClientOrderId(0),
        exec_id: ExecId(0),
        instrument: order.request.instrument,
        account: AccountId(0),
        session: order.request.session,
        side: order.request.side,
        price: order.request.price,
        quantity: order.request.quantity,
        last_price: Price::NULL,
        last_quantity: Quantity::ZERO,
        leaves: Quantity::ZERO,
        cumulative: Quantity::ZERO,
        reason: Reason::None,
    }
}

/// What no venue can say of a trade of ten lots that it reports as `good`, and what is wrong with each.
pub(crate) fn trades_that_cannot_be(good: &ExecReport) -> [(ExecReport, Anomaly); 6] {
    let lots = |lots| ExecReport {
        last_quantity: Quantity(lots),
        ..*good
    };
    let other_side = ExecReport {
        side: good.side.opposite(),
        ..*good
    };
    let other_instrument = ExecReport {
        instrument: BETA,
        ..*good
    };
    let no_price = ExecReport {
        last_price: Price::NULL,
        ..*good
    };
    [
        (other_side, Anomaly::WrongTerms),
        (other_instrument, Anomaly::WrongTerms),
        (no_price, Anomaly::WrongTerms),
        (lots(11), Anomaly::Overfill),
        (lots(u64::MAX), Anomaly::Overfill),
        (lots(0), Anomaly::Overfill),
    ]
}

/// A trade of an order at its venue.
pub(crate) fn fill(order: &ForVenue<NewOrder>, number: ClientOrderId, ticks: i64, lots: u64) -> ExecReport {
    ExecReport {
        last_price: Price(ticks * TICK),
        last_quantity: Quantity(lots),
        ..venue_report(order, ExecType::Fill, number)
    }
}

/// Hands in a report of venue 0 and gives the reports for clients.
pub(crate) fn on_report(orders: &mut Orders, report: &ExecReport) -> Result<Vec<ExecReport>, Anomaly> {
    let mut outputs = Outputs::default();
    orders.on_venue_report(NOW, VenueId(0), report, &mut outputs)?;
    orders.audit().unwrap();
    Ok(outputs.reports.iter().map(|report| report.exec).collect())
}

/// Keeps what comes out.
#[derive(Default, PartialEq, Debug)]
pub(crate) struct Outputs {
    pub(crate) reports: Vec<Report>,
    pub(crate) released: Vec<(AccountId, i64)>,
    /// The sum of all changes, by the account's place.
    pub(crate) settled: [Stake; 3],
    /// The same by the session's place.
    pub(crate) settled_sessions: [SessionStake; 4],
    /// What was taken when the firm began to be counted.
    pub(crate) firm: Option<Stake>,
}

/// Changes one limit.
pub(crate) fn set_limit(
    orders: &mut Orders,
    scope: LimitScope,
    limit: Limit,
    value: LimitValue,
) -> Result<(), LimitError> {
    orders.set_limits(NOW, scope, &[(limit, value)], &mut Outputs::default())
}

impl Sink for Outputs {
    fn report(&mut self, report: &Report) {
        self.reports.push(*report);
    }

    fn count_firm(&mut self, taken: &Stake) {
        self.firm = Some(*taken);
    }

    fn settle_session(&mut self, session: SessionPlace, change: &SessionStake) {
        assert_ne!(*change, SessionStake::default());
        let settled = &mut self.settled_sessions[session.0 as usize];
        settled.notional += change.notional;
        settled.orders += change.orders;
    }

    fn settle(&mut self, account: AccountPlace, change: &Stake) {
        assert_ne!(*change, Stake::NONE);
        let is_late = self
            .reports
            .last()
            .is_some_and(|report| report.exec.exec_type == ExecType::Fill && report.exec.reason == Reason::DayEnded);
        assert!(
            change.notional <= 0 || is_late,
            "a report never takes more, but for a trade of the day before"
        );
        let place = account.0 as usize;
        self.settled[place] += *change;
        if change.notional != 0 {
            self.released.push(([SHARED, PLAIN, TIGHT][place], -change.notional));
        }
    }
}
