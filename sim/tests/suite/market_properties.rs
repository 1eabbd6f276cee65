//! Whatever clients and history do: quantities add up, and the feed shows the book. ([`Floor::input`] compares the market
//! with a book that was built of the feed alone, after every input.)

use crate::market::{ALPHA, BETA, Collected, Floor, KEEPER, LOCATES, ONE, TWO, cents, cents_e4, config, stamp};
use matcher::{Auction, SelfMatch};
use proptest::prelude::*;
use proto::itch::{
    self, AddOrder, AddOrderAttributed, Message, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, Stock,
};
use sim::exchange::MarketCapacity;
use std::collections::BTreeMap;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecReport, ExecType, InstrumentId, MassCancel, NewOrder, OrderId,
    OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request, SessionId, Side, TimeInForce, Timestamp,
    TradingDay, Trigger,
};
use zerocopy::IntoBytes;

/// An input, with choices that [`Run::apply`] turns into what fits the moment.
#[derive(Clone, Debug)]
enum Input {
    Add {
        instrument: usize,
        reference: u64,
        side: Side,
        price: u32,
        lots: u32,
        attributed: bool,
    },
    Execute {
        reference: u64,
        lots: u32,
        at: Option<u32>,
    },
    Reduce {
        reference: u64,
        lots: u32,
    },
    Delete {
        reference: u64,
    },
    ReplaceRecorded {
        original: u64,
        reference: u64,
        lots: u32,
        price: u32,
    },
    Restart,
    New {
        session: SessionId,
        instrument: usize,
        side: Side,
        price: u32,
        lots: u64,
        order_type: OrderType,
        time_in_force: TimeInForce,
        terms: OrderTerms,
    },
    Cancel {
        session: SessionId,
        which: usize,
    },
    Replace {
        session: SessionId,
        which: usize,
        price: u32,
        lots: u64,
        terms: OrderTerms,
    },
    MassCancel {
        session: SessionId,
        instrument: Option<usize>,
    },
    Down {
        session: SessionId,
    },
    Stalled {
        session: SessionId,
    },
    Day,
    HistoryTold,
    /// Time goes on, and orders expire.
    Later,
    Call(Auction),
    Uncross,
}

fn session() -> impl Strategy<Value = SessionId> {
    prop::sample::select(vec![ONE, TWO, KEEPER])
}

fn side() -> impl Strategy<Value = Side> {
    prop::sample::select(vec![Side::Buy, Side::Sell])
}

fn order_type() -> impl Strategy<Value = OrderType> {
    prop_oneof![
        12 => Just(OrderType::Limit),
        2 => Just(OrderType::Market),
        2 => prop::sample::select(vec![OrderType::Stop, OrderType::StopLimit]),
        2 => prop::sample::select(vec![OrderType::PegPrimary, OrderType::PegMid]),
    ]
}

fn time_in_force() -> impl Strategy<Value = TimeInForce> {
    use TimeInForce::{AtTheClose, AtTheOpening, Day, FillOrKill, GoodTillCancel, GoodTillDate, ImmediateOrCancel};
    prop_oneof![
        12 => Just(Day),
        3 => prop::sample::select(vec![ImmediateOrCancel, FillOrKill]),
        2 => prop::sample::select(vec![GoodTillCancel, GoodTillDate]),
        1 => prop::sample::select(vec![AtTheOpening, AtTheClose]),
    ]
}

/// More than any order may have; [`fitting`] takes away what does not belong.
fn terms() -> impl Strategy<Value = OrderTerms> {
    let lots = || prop_oneof![3 => Just(0_u64), 1 => 1_u64..6];
    (
        95_i64..106,
        lots(),
        lots(),
        -2_i64..3,
        1_u64..40,
        prop::bool::weighted(0.2),
    )
        .prop_map(|(stop, display, min_quantity, offset, after, post_only)| OrderTerms {
            stop_price: cents(stop),
            display: Quantity(display),
            min_quantity: Quantity(min_quantity),
            peg_offset: cents(offset),
            expires: START + Duration(after * STEP),
            post_only,
            ..OrderTerms::NONE
        })
}

fn fitting(order_type: OrderType, time_in_force: TimeInForce, terms: OrderTerms) -> OrderTerms {
    let stop = order_type.is_stop();
    let rests = order_type != OrderType::Market && !time_in_force.is_immediate();
    OrderTerms {
        stop_price: if stop { terms.stop_price } else { Price::NULL },
        peg_offset: if order_type.is_pegged() {
            terms.peg_offset
        } else {
            Price(0)
        },
        display: if rests { terms.display } else { Quantity::ZERO },
        min_quantity: if rests { Quantity::ZERO } else { terms.min_quantity },
        expires: if time_in_force == TimeInForce::GoodTillDate {
            terms.expires
        } else {
            Timestamp::NONE
        },
        post_only: rests && !stop && terms.post_only,
        ..OrderTerms::NONE
    }
}

fn input() -> impl Strategy<Value = Input> {
    let instrument = 0_usize..2;
    let reference = 1_u64..30;
    let price = 95_u32..106;
    let lots = 1_u32..9;
    let client_lots = 1_u64..15;
    prop_oneof![
        8 => (instrument.clone(), reference.clone(), side(), price.clone(), lots.clone(), any::<bool>()).prop_map(
            |(instrument, reference, side, price, lots, attributed)| {
                Input::Add { instrument, reference, side, price, lots, attributed }
            }
        ),
        6 => (reference.clone(), lots.clone(), prop::option::weighted(0.3, price.clone()))
            .prop_map(|(reference, lots, at)| Input::Execute { reference, lots, at }),
        2 => (reference.clone(), lots.clone()).prop_map(|(reference, lots)| Input::Reduce { reference, lots }),
        2 => reference.clone().prop_map(|reference| Input::Delete { reference }),
        3 => (reference.clone(), reference, lots, price.clone()).prop_map(|(original, reference, lots, price)| {
            Input::ReplaceRecorded { original, reference, lots, price }
        }),
        1 => prop_oneof![1 => Just(Input::Restart), 1 => Just(Input::Day)],
        2 => Just(Input::HistoryTold),
        2 => Just(Input::Later),
        1 => prop::sample::select(vec![Auction::Opening, Auction::Closing]).prop_map(Input::Call),
        2 => Just(Input::Uncross),
        16 => (
            (session(), instrument.clone(), side(), price.clone(), client_lots.clone()),
            (order_type(), time_in_force(), terms()),
        )
            .prop_map(|((session, instrument, side, price, lots), (order_type, time_in_force, terms))| {
                Input::New { session, instrument, side, price, lots, order_type, time_in_force, terms }
            }),
        4 => (session(), any::<usize>()).prop_map(|(session, which)| Input::Cancel { session, which }),
        6 => (session(), any::<usize>(), price, client_lots, terms()).prop_map(|(session, which, price, lots, terms)| {
            Input::Replace { session, which, price, lots, terms }
        }),
        1 => (session(), prop::option::of(instrument)).prop_map(|(session, instrument)| {
            Input::MassCancel { session, instrument }
        }),
        1 => session().prop_map(|session| Input::Down { session }),
        1 => session().prop_map(|session| Input::Stalled { session }),
    ]
}

/// A client's order as the reports alone tell of it.
#[derive(Clone, Copy, Debug)]
struct Told {
    session: SessionId,
    instrument: InstrumentId,
    side: Side,
    number: ClientOrderId,
    quantity: Quantity,
    cumulative: Quantity,
    order_type: OrderType,
    time_in_force: TimeInForce,
}

/// What an input may cause, as it was said before.
struct Bounds {
    published: usize,
    reports: usize,
    /// Each session's.
    sessions: [usize; 3],
}

struct Run {
    floor: Floor,
    /// Live orders by our number.
    told: BTreeMap<OrderId, Told>,
    /// All numbers that the clients gave to orders, for requests that come too late as well.
    numbers: Vec<(SessionId, ClientOrderId)>,
    /// Of the order that the input brings.
    kind: (OrderType, TimeInForce),
}

impl Run {
    fn new(self_match: SelfMatch) -> Self {
        let capacity = MarketCapacity {
            orders: 40,
            levels: 20,
            client_orders: 20,
            special_orders: 10,
        };
        Self {
            floor: Floor::with(&config(capacity, self_match)),
            told: BTreeMap::new(),
            numbers: Vec::new(),
            kind: (OrderType::Limit, TimeInForce::Day),
        }
    }

    fn apply(&mut self, input: &Input) {
        self.floor.out = Collected::default();
        match self.request_of(input) {
            Some(request) => {
                let bounds = self.bounds(Some(&request));
                self.floor.request(&request);
                self.check_bounds(&bounds);
                self.check_request(&request);
            }
            None => {
                let bounds = self.bounds(None);
                self.history_of(input);
                self.check_bounds(&bounds);
                let is_recorded = matches!(
                    input,
                    Input::Add { .. }
                        | Input::Execute { .. }
                        | Input::Reduce { .. }
                        | Input::Delete { .. }
                        | Input::ReplaceRecorded { .. }
                );
                self.check_fills(!is_recorded);
            }
        }
        let reports = std::mem::take(&mut self.floor.out.reports);
        for (report, number) in &reports {
            self.check_report(report, *number);
        }
        let open: u64 = self.told.values().map(|told| told.quantity.0 - told.cumulative.0).sum();
        let market: u64 = self.floor.market.client_orders().map(|(_, leaves)| leaves.0).sum();
        assert_eq!(open, market, "lots open by the reports and in the market");
        assert_eq!(self.told.len(), self.floor.market.client_order_count());
    }

    fn bounds(&self, request: Option<&Request>) -> Bounds {
        let market = &self.floor.market;
        let needed = request.map_or(0, |request| market.reports_needed(request));
        let of = |session: SessionId| {
            let needed = if request.is_some_and(|request| request.session() == session) {
                needed
            } else {
                0
            };
            market.reports_reserved(session) + needed
        };
        Bounds {
            published: market.published_max() + 4,
            // Each may have its counterpart at the other side of the trade.
            reports: market.reports_max() + 2 * needed + 3,
            sessions: [of(ONE), of(TWO), of(KEEPER)],
        }
    }

    /// No input causes more than was said.
    fn check_bounds(&self, bounds: &Bounds) {
        let out = &self.floor.out;
        assert!(out.feed.len() <= bounds.published, "{} published", out.feed.len());
        assert!(out.reports.len() <= bounds.reports, "{} reports", out.reports.len());
        for (session, most) in [ONE, TWO, KEEPER].into_iter().zip(bounds.sessions) {
            let told = out
                .reports
                .iter()
                .filter(|(report, _)| report.session == session)
                .count();
            assert!(
                told <= most,
                "{told} reports for session {session}, {most} expected: {:?}",
                out.told()
            );
        }
    }

    fn request_of(&mut self, input: &Input) -> Option<Request> {
        let number = self.floor.number();
        Some(match *input {
            Input::New {
                session,
                instrument,
                side,
                price,
                lots,
                order_type,
                time_in_force,
                terms,
            } => {
                self.numbers.push((session, number));
                self.kind = (order_type, time_in_force);
                let has_price = !matches!(order_type, OrderType::Market | OrderType::Stop);
                Request::New(NewOrder {
                    client_order_id: number,
                    instrument: [ALPHA, BETA][instrument],
                    account: AccountId(u32::from(session.0)),
                    session,
                    side,
                    order_type,
                    time_in_force,
                    price: if has_price {
                        cents(i64::from(price))
                    } else {
                        Price::NULL
                    },
                    quantity: Quantity(lots),
                    trigger: Trigger::NONE,
                    terms: fitting(order_type, time_in_force, terms),
                })
            }
            Input::Cancel { session, which } => {
                let (orig_client_order_id, instrument, side) = self.pick(session, which)?;
                Request::Cancel(CancelOrder {
                    client_order_id: number,
                    orig_client_order_id,
                    instrument,
                    session,
                    side,
                })
            }
            Input::Replace {
                session,
                which,
                price,
                lots,
                terms,
            } => {
                let (orig_client_order_id, instrument, side) = self.pick(session, which)?;
                let live = self
                    .told
                    .values()
                    .find(|told| (told.session, told.number) == (session, orig_client_order_id));
                let (order_type, time_in_force) = live.map_or((OrderType::Limit, TimeInForce::Day), |told| {
                    (told.order_type, told.time_in_force)
                });
                let has_price = order_type != OrderType::Stop;
                self.numbers.push((session, number));
                Request::Replace(ReplaceOrder {
                    client_order_id: number,
                    orig_client_order_id,
                    instrument,
                    session,
                    side,
                    price: if has_price {
                        cents(i64::from(price))
                    } else {
                        Price::NULL
                    },
                    quantity: Quantity(lots),
                    terms: fitting(order_type, time_in_force, terms),
                })
            }
            Input::MassCancel { session, instrument } => Request::MassCancel(MassCancel {
                client_order_id: number,
                session,
                instrument: instrument.map(|instrument| [ALPHA, BETA][instrument]),
            }),
            _ => return None,
        })
    }

    /// Any order that the session ever had, mostly a live one.
    fn pick(&self, session: SessionId, which: usize) -> Option<(ClientOrderId, InstrumentId, Side)> {
        let live: Vec<_> = self.told.values().filter(|told| told.session == session).collect();
        if !live.is_empty() && !which.is_multiple_of(8) {
            let told = live[which / 8 % live.len()];
            return Some((told.number, told.instrument, told.side));
        }
        let mine: Vec<_> = self.numbers.iter().filter(|(owner, _)| *owner == session).collect();
        (!mine.is_empty()).then(|| (mine[which / 8 % mine.len()].1, ALPHA, Side::Buy))
    }

    fn history_of(&mut self, input: &Input) {
        let floor = &mut self.floor;
        let locate = |floor: &Floor, reference: u64| {
            let is_beta = floor
                .market
                .orders(BETA, Side::Buy)
                .chain(floor.market.orders(BETA, Side::Sell));
            if is_beta.map(|order| order.id.0).any(|id| id == reference) {
                (8, 100)
            } else {
                (7, 1)
            }
        };
        match *input {
            Input::Add {
                instrument,
                reference,
                side,
                price,
                lots,
                attributed,
            } => {
                let (locate, stock) = LOCATES[instrument];
                let shares = lots * [1, 100][instrument];
                let order = AddOrder::new(
                    stamp(locate),
                    reference,
                    side.into(),
                    shares,
                    Stock(*stock),
                    cents_e4(price),
                );
                if attributed {
                    let mut order = AddOrderAttributed {
                        order,
                        attribution: *b"MPID",
                    };
                    order.order.header.message_type = b'F';
                    floor.history(order.as_bytes());
                } else {
                    floor.history(order.as_bytes());
                }
            }
            Input::Execute { reference, lots, at } => {
                let (locate, lot) = locate(floor, reference);
                let before = leaves(floor, reference);
                match at {
                    None => floor.history(OrderExecuted::new(stamp(locate), reference, lots * lot, 1).as_bytes()),
                    Some(price) => {
                        let stamp = stamp(locate);
                        let price = cents_e4(price);
                        let message = OrderExecutedWithPrice::new(stamp, reference, lots * lot, 1, true, price);
                        floor.history(message.as_bytes())
                    }
                };
                // Whoever got it, history is short of it.
                assert_eq!(leaves(floor, reference), before.saturating_sub(u64::from(lots)));
            }
            Input::Reduce { reference, lots } => {
                let (locate, lot) = locate(floor, reference);
                floor.history(OrderCancel::new(stamp(locate), reference, lots * lot).as_bytes());
            }
            Input::Delete { reference } => {
                let (locate, _) = locate(floor, reference);
                floor.history(OrderDelete::new(stamp(locate), reference).as_bytes());
            }
            Input::ReplaceRecorded {
                original,
                reference,
                lots,
                price,
            } => {
                let (locate, lot) = locate(floor, original);
                let message = OrderReplace::new(stamp(locate), original, reference, lots * lot, cents_e4(price));
                floor.history(message.as_bytes());
            }
            Input::Restart => {
                floor.input(|market, now, out| market.on_history_started(now, out));
                let started = std::mem::take(&mut floor.out);
                for (locate, stock) in LOCATES {
                    let directory = itch::StockDirectory::new(stamp(locate), Stock(*stock), 100, false);
                    floor.input(|market, now, out| market.on_history(now, directory.as_bytes(), out));
                }
                floor.out = started;
            }
            Input::Down { session } => {
                floor.input(|market, now, out| market.on_session_down(now, session, out));
                if session != KEEPER {
                    assert_eq!(floor.market.open_orders(session), 0);
                }
            }
            Input::Stalled { session } => {
                floor.input(|market, now, out| market.on_session_stalled(now, session, out));
                assert_eq!(floor.market.open_orders(session), 0);
            }
            Input::Day => {
                floor.input(|market, now, out| market.on_day(now, TradingDay(20_250_303), out));
                let lasting = self.told.values().filter(|told| {
                    matches!(
                        told.time_in_force,
                        TimeInForce::GoodTillCancel | TimeInForce::GoodTillDate
                    )
                });
                assert!(floor.market.client_order_count() <= lasting.count());
            }
            Input::HistoryTold => {
                floor.input(|market, now, out| market.on_history_told(now, out));
            }
            Input::Later => {
                floor.input(|market, now, out| market.on_expiry(now, out));
            }
            Input::Call(auction) => {
                floor.input(|market, now, out| market.on_call(now, auction, out));
            }
            Input::Uncross => {
                floor.input(|market, now, out| market.on_uncross(now, out));
            }
            _ => {}
        }
    }

    /// One first answer; what the incoming order traded is what the feed executed, and what makers were told.
    fn check_request(&self, request: &Request) {
        let out = &self.floor.out;
        let is_answer = |report: &ExecReport| {
            report.session == request.session()
                && report.client_order_id == request.client_order_id()
                && !matches!(
                    report.exec_type,
                    ExecType::Fill | ExecType::Triggered | ExecType::Restated
                )
                && !(report.exec_type == ExecType::Canceled && report.reason != Reason::Requested)
        };
        assert_eq!(
            out.reports.iter().filter(|(report, _)| is_answer(report)).count(),
            1,
            "{request:?}: {:?}",
            out.reports
        );
        self.check_fills(true);
    }

    /// What was filled is what the feed tells: executions of what rests, by clients' orders or by the recording, and
    /// auctions.
    fn check_fills(&self, by_clients: bool) {
        let out = &self.floor.out;
        let fills = out
            .reports
            .iter()
            .filter(|(report, _)| report.exec_type == ExecType::Fill);
        let filled: u64 = fills
            .map(|(report, _)| report.last_quantity.0 * lot(report.instrument))
            .sum();
        let made = executed(out, |reference| reference >> 63 == 1);
        let taken = if by_clients { executed(out, |_| true) } else { 0 };
        let crossed: u64 = out.feed.iter().map(|message| shares_crossed(message)).sum();
        let recorded: u64 = out
            .feed
            .iter()
            .map(|message| shares_of_history_in_auction(message))
            .sum();
        assert_eq!(filled, made + taken + 2 * crossed - recorded);
    }

    /// Each report fits what was told of the order before.
    fn check_report(&mut self, report: &ExecReport, number: OrderId) {
        let id = report.order_id;
        match report.exec_type {
            ExecType::New => {
                assert_eq!(number.0, report.client_order_id.0);
                let told = Told {
                    session: report.session,
                    instrument: report.instrument,
                    side: report.side,
                    number: report.client_order_id,
                    quantity: report.quantity,
                    cumulative: Quantity::ZERO,
                    order_type: self.kind.0,
                    time_in_force: self.kind.1,
                };
                assert!(self.told.insert(id, told).is_none(), "one order is new twice");
            }
            ExecType::Fill => {
                let told = self.told.get_mut(&id).expect("a fill of a live order");
                told.cumulative += report.last_quantity;
                assert!(!report.last_quantity.is_zero());
                assert_eq!(
                    (report.cumulative, report.client_order_id),
                    (told.cumulative, told.number)
                );
            }
            ExecType::Replaced => {
                let told = self.told.get_mut(&id).expect("a replace of a live order");
                assert_eq!(report.orig_client_order_id, told.number);
                told.number = report.client_order_id;
                told.quantity = report.quantity;
            }
            ExecType::Restated => {
                let told = self.told.get_mut(&id).expect("a restated live order");
                assert_eq!(
                    (report.client_order_id, report.reason),
                    (told.number, Reason::SelfMatch)
                );
                assert!(report.quantity < told.quantity && told.cumulative < report.quantity);
                told.quantity = report.quantity;
            }
            ExecType::Canceled | ExecType::Expired => {
                assert!(self.told.remove(&id).is_some(), "an order ends twice");
            }
            ExecType::Triggered => {
                let told = self.told.get_mut(&id).expect("a trigger of a live order");
                told.order_type = match told.order_type {
                    OrderType::Stop => OrderType::Market,
                    OrderType::StopLimit => OrderType::Limit,
                    other => panic!("{other:?} is no stop"),
                };
            }
            ExecType::Rejected
            | ExecType::RequestRejected
            | ExecType::MassCancelAccepted
            | ExecType::Status
            | ExecType::StatusEnd => return,
        }
        if let Some(told) = self.told.get(&id) {
            assert_eq!(report.leaves, told.quantity - told.cumulative);
            if report.ends_order() {
                self.told.remove(&id);
            }
        }
    }
}

/// Lots of an order in the book, 0 when it is not there.
fn leaves(floor: &Floor, reference: u64) -> u64 {
    let sides = [
        (ALPHA, Side::Buy),
        (ALPHA, Side::Sell),
        (BETA, Side::Buy),
        (BETA, Side::Sell),
    ];
    let mut orders = sides
        .into_iter()
        .flat_map(|(instrument, side)| floor.market.orders(instrument, side));
    orders
        .find(|order| order.id.0 == reference)
        .map_or(0, |order| order.leaves.0)
}

fn lot(instrument: InstrumentId) -> u64 {
    if instrument == BETA { 100 } else { 1 }
}

/// Shares that the feed says were executed by our own trades, of the orders that `counts` takes.
fn executed(out: &Collected, counts: impl Fn(u64) -> bool) -> u64 {
    let field = |message: &[u8], at: usize| u64::from_be_bytes(message[at..at + 8].try_into().unwrap());
    let ours = out
        .feed
        .iter()
        .filter(|message| message[0] == b'E' && field(message, 23) >> 63 == 1);
    let counted = ours.filter(|message| counts(field(message, 11)));
    counted
        .map(|message| u64::from(u32::from_be_bytes(message[19..23].try_into().unwrap())))
        .sum()
}

/// Shares that an auction traded.
fn shares_crossed(message: &[u8]) -> u64 {
    match itch::parse(message) {
        Ok(Message::CrossTrade(cross)) => cross.shares.get(),
        _ => 0,
    }
}

/// Shares that a recorded order traded in an auction.
fn shares_of_history_in_auction(message: &[u8]) -> u64 {
    match itch::parse(message) {
        Ok(Message::OrderExecutedWithPrice(executed)) if !executed.is_printable() => {
            let is_recorded = executed.executed.reference.get() >> 63 == 0;
            if is_recorded {
                executed.executed.shares.get().into()
            } else {
                0
            }
        }
        _ => 0,
    }
}

/// When a [`Floor`] begins, and the time between two of its inputs.
const START: Timestamp = Timestamp(1_700_000_000_000_000_000);
const STEP: u64 = 1_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn quantities_add_up_and_the_feed_shows_the_book(
        inputs in prop::collection::vec(input(), 1..150),
        self_match in prop::sample::select(vec![
            SelfMatch::Allow,
            SelfMatch::CancelNewest,
            SelfMatch::CancelOldest,
            SelfMatch::CancelBoth,
            SelfMatch::Decrement,
        ]),
    ) {
        let mut run = Run::new(self_match);
        for input in &inputs {
            run.apply(input);
        }
    }
}
