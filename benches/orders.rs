//! What the order logic costs: an order's checks, all four steps of it, and the venue's reports about it.
//!
//! `cargo bench --bench orders`. Orders come in batches, so that the clock's own cost vanishes; what a batch entered is
//! filled before the next one. One line for each size of the firm: cost must not grow with the number of accounts and
//! instruments, only with the cache misses that their tables bring. `even` draws accounts and instruments evenly, so that
//! with many of them nearly every table is touched where it is cold; `hot` draws nine of ten from a few, as a market does.
//! The firm has no limits but those that must be there (`none`), or every one there is (`all`): what all cost more is in the
//! last columns, taken in turns with none. The tables lie in huge pages where there are any, as the gateway's do. On a machine
//! that is not idle `chrt -f 50` in front of it gives it its CPU; what it gave last is in docs/measure.md.
//!
//! Instructions are counted with callgrind, of what is between an order and its acceptance, shared limits included:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*counted_orders*' \
//!     target/release/deps/orders-… --count all 100000
//! ```
//!
//! gives those of the number of orders that it prints. With ten accounts each order meets a position that traded last at another
//! price than the reference, and is valued anew as a whole; with many most orders are the first of their account in the instrument.

use gateway::shared_limits::SharedLimits;
use orders::{
    AccountConfig, AccountLimits, AccountPlace, AuctionLimits, BookLimit, Capacity, Collar, CrossingConfig, FirmLimits,
    InstrumentLimits, MissingBook, MissingReference, OrderTypes, Orders, OrdersConfig, RateAction, RateLimit,
    RateQueueConfig, Reference, ReferenceChoice, RepeatLimit, Report, Restrictions, Routed, SelfMatch, SessionConfig,
    SessionLimits, SessionPlace, SessionStake, ShortSales, Sink, Stake, VALUE_LIMIT_MAX, VenueConfig,
};
use std::hint::black_box;
use std::time::Instant;
use types::{
    AccountId, ClientOrderId, Duration, ExecId, ExecReport, ExecType, Instrument, InstrumentId, LimitClass, NewOrder,
    Notional, OrderId, OrderTerms, OrderType, Price, Quantity, Reason, SessionId, ShardId, Side, Symbol, TimeInForce,
    Timestamp, Trigger, VenueId,
};

const ROUNDS: usize = 3;
const BATCH: u32 = 100;
const BATCHES: usize = 4_000;
/// Enough to see that it runs, for `cargo test`.
const BATCHES_TEST: usize = STEPS * TURNS;
const BATCHES_COUNTED: usize = 100;
/// The firms with and without limits are timed so many times in turns.
const TURNS: usize = 20;
/// What is timed alternates between batches.
const STEPS: usize = 2;
/// Accounts, and as many instruments.
const SIZES: [u32; 3] = [10, 1_000, 100_000];
/// The accounts, and the instruments, that are busy when the draw is not even.
const BUSY: u32 = 30;
/// Orders that rest all the time.
const RESTING: u32 = 20_000;
const SESSIONS: u32 = 16;
const TICK: i64 = 10_000_000;
/// So that it is checked and holds nothing back.
const RATE: RateLimit = RateLimit {
    per_second: Some(1_000_000_000),
    at_once: Some(u32::MAX),
    action: Some(RateAction::Reject),
};
const NOW: Timestamp = Timestamp(1_000_000_000);
const REFERENCE: Reference = Reference {
    price: Price(100 * TICK),
    last: Price(100 * TICK),
    bid: Price(99 * TICK),
    offer: Price(101 * TICK),
    time: NOW,
};

fn main() {
    let args = std::env::args().collect::<Vec<_>>();
    if let Some(place) = args.iter().position(|arg| arg == "--count") {
        return count(&args[place + 1..]);
    }
    // Else it is a test that it runs.
    let (rounds, batches, sizes) = if args.iter().any(|arg| arg == "--bench") {
        (ROUNDS, BATCHES, &SIZES[..])
    } else {
        (1, BATCHES_TEST, &SIZES[..2])
    };
    println!("ns an order, median of {batches} batches of {BATCH}; {RESTING} orders resting, {SESSIONS} sessions");
    println!(
        "{:>5} {:>9} {:>5} {:>6} {:>7} {:>7} {:>6} {:>9} {:>6} {:>6} {:>6}",
        "round", "accounts", "draw", "limits", "checks", "order", "ack", "last fill", "MiB", "more", "ratio"
    );
    for round in 1..=rounds {
        for (size, draw) in sizes.iter().flat_map(|&size| [(size, "hot"), (size, "even")]) {
            let mut firms = [Limits::None, Limits::All].map(|limits| Firm::new(size, draw == "even", limits));
            let mut costs = [Costs::default(), Costs::default()];
            for _ in 0..TURNS {
                for (firm, costs) in firms.iter_mut().zip(&mut costs) {
                    firm.measure(batches / TURNS, costs);
                }
            }
            let mut none = 0;
            for (firm, costs) in firms.iter().zip(costs) {
                let [checks, order, ack, fill] = [costs.checks, costs.order, costs.ack, costs.fill].map(median);
                let (limits, more, ratio) = match firm.limits {
                    Limits::None => ("none", String::new(), String::new()),
                    Limits::All => (
                        "all",
                        (i128::from(order) - i128::from(none)).to_string(),
                        format!("{:.2}", order as f64 / none.max(1) as f64),
                    ),
                };
                none = order;
                println!(
                    "{round:>5} {size:>9} {draw:>5} {limits:>6} {checks:>7} {order:>7} {ack:>6} {fill:>9} {:>6} {more:>6} \
                     {ratio:>6}",
                    firm.orders.memory() >> 20
                );
            }
        }
    }
}

/// For callgrind: takes orders in, of a firm with these limits and so many accounts and instruments.
fn count(args: &[String]) {
    let (limits, size) = match args {
        [limits, size] => (limits.as_str(), size.parse().expect("a number of accounts")),
        _ => panic!("--count needs none or all, and a number of accounts"),
    };
    let limits = if limits == "all" { Limits::All } else { Limits::None };
    let mut firm = Firm::new(size, true, limits);
    let mut orders = 0;
    for _ in 0..BATCHES_COUNTED {
        let batch: Vec<_> = (0..BATCH).map(|_| firm.next_order()).collect();
        let mut sent = Vec::with_capacity(BATCH as usize);
        firm.counted_orders(&batch, &mut sent);
        orders += sent.len();
        for exec_type in [ExecType::New, ExecType::Fill] {
            let reports: Vec<_> = sent.iter().map(|order| report(order, exec_type)).collect();
            firm.report(&reports);
        }
    }
    println!("orders {orders}");
}

/// Which limits the firm has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limits {
    /// Those that must be there.
    None,
    /// All there are.
    All,
}

/// Nanoseconds an order in each batch: risk, screen and route; these and acceptance; each report.
#[derive(Default)]
struct Costs {
    checks: Vec<u64>,
    order: Vec<u64>,
    ack: Vec<u64>,
    fill: Vec<u64>,
}

struct Firm {
    orders: Orders,
    shared: SharedLimits,
    limits: Limits,
    size: u32,
    even: bool,
    reference: Reference,
    random: u64,
    last: [u64; SESSIONS as usize],
}

impl Firm {
    fn new(size: u32, even: bool, limits: Limits) -> Self {
        let config = config(size, limits);
        let mut shared = SharedLimits::new(&config, 1);
        if limits == Limits::All {
            shared.count_firm(&Stake::NONE);
        }
        let mut orders = Orders::new(&config).expect("the config is sound");
        if let Err(error) = net::huge_pages::gather() {
            eprintln!("no huge pages: {error}");
        }
        orders.on_venue_up(VenueId(0));
        let mut firm = Self {
            orders,
            shared,
            limits,
            size,
            even,
            reference: REFERENCE,
            random: 0x2545_f491_4f6c_dd1d,
            last: [0; SESSIONS as usize],
        };
        for _ in 0..RESTING {
            let order = firm.next_order();
            firm.enter(&order);
        }
        firm
    }

    fn measure(&mut self, batches: usize, costs: &mut Costs) {
        let mut sent = Vec::with_capacity(BATCH as usize);
        for index in 0..batches {
            let batch: Vec<_> = (0..BATCH).map(|_| self.next_order()).collect();
            // Each batch is new to the caches, so it is timed either up to the last check or as a whole.
            let only_checks = index % STEPS == 0;
            if only_checks {
                costs.checks.push(timed(|| {
                    for order in &batch {
                        black_box(self.check(order));
                    }
                }));
            }
            let whole = timed(|| sent.extend(batch.iter().map(|order| self.enter(order))));
            if !only_checks {
                costs.order.push(whole);
            }
            let acks: Vec<_> = sent.iter().map(|order| report(order, ExecType::New)).collect();
            costs.ack.push(timed(|| self.report(&acks)));
            let fills: Vec<_> = sent.drain(..).map(|order| report(&order, ExecType::Fill)).collect();
            costs.fill.push(timed(|| self.report(&fills)));
        }
    }

    /// All that callgrind is to count.
    #[inline(never)]
    fn counted_orders(&mut self, batch: &[NewOrder], sent: &mut Vec<NewOrder>) {
        for order in batch {
            sent.push(self.enter(order));
        }
    }

    fn check<'a>(&self, order: &'a NewOrder) -> Routed<'a> {
        let order = self.orders.check_risk(NOW, order, &self.reference).expect("passes");
        let order = self.orders.screen(order).expect("passes");
        self.orders.route(order).expect("passes")
    }

    fn enter(&mut self, order: &NewOrder) -> NewOrder {
        let order = self.check(order);
        self.shared.take_rates(NOW, order.places()).expect("the rates are wide");
        self.shared
            .reserve(order.places(), order.need())
            .expect("the limits are wide");
        self.orders.accept(NOW, order).request
    }

    fn report(&mut self, reports: &[ExecReport]) {
        for report in reports {
            let mut sink = Settle(&self.shared);
            self.orders
                .on_venue_report(NOW, VenueId(0), report, &mut sink)
                .expect("a report that fits");
        }
    }

    /// Buys below 1.00 and sells above, so that none crosses.
    fn next_order(&mut self) -> NewOrder {
        let session = self.below(SESSIONS);
        let last = &mut self.last[session as usize];
        *last += 1;
        let id = *last;
        let (side, offset) = match self.below(2) {
            0 => (Side::Buy, -1),
            _ => (Side::Sell, 1),
        };
        NewOrder {
            client_order_id: ClientOrderId(id),
            instrument: InstrumentId(1 + self.draw()),
            account: AccountId(1 + self.draw()),
            session: session_id(session),
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price: Price((100 + offset * i64::from(1 + self.below(15))) * TICK),
            quantity: Quantity(u64::from(1 + self.below(100))),
            trigger: Trigger::NONE,
            terms: OrderTerms::NONE,
        }
    }

    /// An account or an instrument.
    fn draw(&mut self) -> u32 {
        if self.even || self.below(10) == 0 {
            self.below(self.size)
        } else {
            self.below(self.size.min(BUSY))
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let high = self.random >> 32;
        u32::try_from((high * u64::from(bound)) >> 32).expect("below a u32")
    }
}

struct Settle<'a>(&'a SharedLimits);

impl Sink for Settle<'_> {
    fn report(&mut self, report: &Report) {
        black_box(report);
    }

    fn settle(&mut self, account: AccountPlace, change: &Stake) {
        self.0.settle(account, change);
    }

    fn settle_session(&mut self, session: SessionPlace, change: &SessionStake) {
        self.0.settle_session(session, change);
    }

    fn count_firm(&mut self, _: &Stake) {}
}

/// Nanoseconds of one of a batch.
fn timed(work: impl FnOnce()) -> u64 {
    let start = Instant::now();
    work();
    let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    ns / u64::from(BATCH)
}

fn median(mut samples: Vec<u64>) -> u64 {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or(0)
}

fn session_id(session: u32) -> SessionId {
    SessionId(u16::try_from(session + 1).expect("few sessions"))
}

fn report(order: &NewOrder, exec_type: ExecType) -> ExecReport {
    ExecReport {
        exec_type,
        order_id: OrderId(order.client_order_id.0),
        client_order_id: order.client_order_id,
        orig_client_order_id: ClientOrderId(0),
        exec_id: ExecId(0),
        instrument: order.instrument,
        account: AccountId(0),
        session: order.session,
        side: order.side,
        price: order.price,
        quantity: order.quantity,
        last_price: order.price,
        last_quantity: order.quantity,
        leaves: Quantity::ZERO,
        cumulative: order.quantity,
        reason: Reason::None,
    }
}

fn config(size: u32, limits: Limits) -> OrdersConfig {
    let all = limits == Limits::All;
    let notional = Notional(1 << 80);
    let amount = all.then_some(notional);
    let value = all.then_some(VALUE_LIMIT_MAX);
    let lots = all.then_some(Quantity(u64::MAX));
    let rate = if all { RATE } else { RateLimit::NONE };
    // Everybody has some, and one account that does not trade has every tenth instrument: those are looked up.
    let restrictions = Restrictions {
        classes: vec![],
        instruments: if all { vec![InstrumentId(size + 1)] } else { vec![] },
    };
    let of_class = InstrumentLimits {
        max_quantity: Quantity(10_000),
        max_notional: notional,
        collar: all.then_some(Collar {
            basis_points: Some(2_000),
            ticks: Some(30),
        }),
        book: all.then_some(BookLimit {
            width: Collar {
                basis_points: Some(2_000),
                ticks: Some(30),
            },
            missing: MissingBook::Refuse,
        }),
        reference: ReferenceChoice::Mid,
        stale_after: Duration::from_secs(1),
        missing_reference: MissingReference::Refuse,
        market_orders: true,
        restricted: false,
        max_open_orders: all.then_some(u32::MAX),
        max_open_notional: amount,
        max_position: lots,
        max_long: lots,
        max_short: lots,
        auction: AuctionLimits::NONE,
        rate,
    };
    let instrument = |id: u32| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(b"BENCH").expect("a symbol"),
        tick_size: Price(TICK),
        lot_size: 100,
        reference_price: Price(100 * TICK),
        limit_class: LimitClass(0),
        shard: ShardId(0),
        venue: VenueId(0),
    };
    let account = |id: u32| AccountConfig {
        id: AccountId(id),
        limits: AccountLimits {
            max_quantity: Quantity(10_000),
            max_notional: notional,
            max_open_orders: u32::MAX,
            max_position: lots,
            max_long: lots,
            max_short: lots,
            short_sales: ShortSales::WithLocate,
            rate,
            max_open_notional: amount,
            max_gross: value,
            max_net: value,
            max_loss: value,
        },
        restrictions: restrictions.clone(),
    };
    let closed = if all { size } else { 0 };
    let idle = AccountConfig {
        restrictions: Restrictions {
            classes: vec![],
            instruments: (1..=closed).step_by(10).map(InstrumentId).collect(),
        },
        ..account(size + 1)
    };
    let session = |session: u32| SessionConfig {
        id: session_id(session),
        accounts: (1..=size).map(AccountId).collect(),
        owner: session,
        self_match: SelfMatch::CancelNewest,
        crossing: false,
        cancel_on_disconnect: true,
        limits: SessionLimits {
            max_open_orders: u32::MAX,
            max_open_notional: amount,
            max_quantity: all.then_some(Quantity(10_000)),
            max_notional: amount,
            rate,
            repeats: RepeatLimit {
                orders: all.then_some(16),
                within: Some(Duration(1)),
            },
        },
        restrictions: restrictions.clone(),
    };
    OrdersConfig {
        shard: ShardId(0),
        instruments: (1..=size + 1).map(instrument).collect(),
        classes: vec![of_class],
        firm: FirmLimits {
            max_quantity: all.then_some(Quantity(10_000)),
            max_notional: amount,
            max_open_notional: amount,
            max_open_orders: all.then_some(u32::MAX),
            max_gross: value,
            max_net: value,
            max_loss: value,
            rate,
        },
        overrides: vec![],
        accounts: (1..=size).map(account).chain([idle]).collect(),
        sessions: (0..SESSIONS).map(session).collect(),
        venues: vec![VenueConfig {
            session: SessionId(1),
            grants_slots: false,
            decrements: false,
            types: OrderTypes::AT_VENUE,
        }],
        routes: vec![],
        own_cancel_wait: Duration(0),
        rate_queue: RateQueueConfig::NONE,
        peg_interval: Duration(0),
        crossing: CrossingConfig::NONE,
        capacity: Capacity {
            waiting_orders: 0,
            held_orders: 0,
            open_orders: RESTING + BATCH,
            positions: 1_000_000,
            books: 1_000_000,
            restrictions: size + closed.div_ceil(10) + SESSIONS,
        },
    }
}
