//! The exchange without sockets: room, recovery, and what is written down.

use super::engine::Engine;
use super::journal::Journal;
use super::live::{Line, Live};
use super::record::{Input, Output, Timer};
use super::recovery::{CoreConfig, Recovered, Recovery, RecoveryError};
use super::{MarketCapacity, MarketConfig, SessionRules};
use ::journal::SentIndex;
use latency::Recorder;
use latency::clock::Clock;
use matcher::{RestingOrder, SelfMatch};
use net::Link;
use net::link::{LinkCounters, LinkEvent};
use proptest::prelude::*;
use proto::itch::{AddOrder, OrderDelete, OrderExecuted, Stamp, Stock};
use proto::journal::Kind;
use proto::mold::Session;
use proto::native;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecType, Instrument, InstrumentId, LimitClass, MassCancel,
    NewOrder, OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request, SequenceNumber, SessionId,
    ShardId, Side, Symbol, TimeInForce, Timestamp, TradingDay, Trigger, VenueId,
};
use zerocopy::IntoBytes;

/// Kind, time and payload.
type OwnedRecord = (Kind, Timestamp, Vec<u8>);

/// A journal in memory.
#[derive(Clone, Default)]
struct Memory {
    records: Rc<RefCell<Vec<OwnedRecord>>>,
    is_full: bool,
}

impl Journal for Memory {
    fn room(&self, _bytes: usize) -> bool {
        !self.is_full
    }

    fn append(&mut self, kind: Kind, time: Timestamp, parts: &[&[u8]]) -> u64 {
        self.records.borrow_mut().push((kind, time, parts.concat()));
        self.records.borrow().len() as u64
    }

    fn watermark(&self) -> u64 {
        u64::MAX
    }

    fn progress(&self) -> (u64, u64) {
        (0, u64::MAX)
    }
}

/// A link whose peer acknowledges when the test says so.
#[derive(Clone)]
struct Held {
    window: usize,
    unacknowledged: usize,
    next: u64,
    sent: Vec<Vec<u8>>,
}

impl Held {
    fn new(window: usize, next: u64) -> Self {
        Self {
            window,
            unacknowledged: 0,
            next,
            sent: Vec::new(),
        }
    }
}

impl Link for Held {
    fn room(&self) -> usize {
        self.window - self.unacknowledged
    }

    fn is_up(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8], _position: u64) -> SequenceNumber {
        assert!(self.room() > 0, "no room for a message");
        self.unacknowledged += 1;
        self.sent.push(message.to_vec());
        self.next += 1;
        SequenceNumber(self.next - 1)
    }

    fn restore(&mut self, _sequence: SequenceNumber, _message: &[u8]) {
        self.unacknowledged += 1;
    }

    fn recalled(&mut self, _sequence: SequenceNumber, _message: &[u8]) {}

    fn not_recalled(&mut self, _sequence: SequenceNumber) {}

    fn poll_recall(&mut self, _now: Timestamp) -> Option<LinkEvent> {
        None
    }

    fn poll(&mut self, _now: Timestamp, _buffer: &mut [u8]) -> Option<LinkEvent> {
        None
    }

    fn flush(&mut self, _now: Timestamp, _watermark: u64) {}

    fn counters(&self) -> LinkCounters {
        LinkCounters::default()
    }
}

const SESSIONS: [SessionId; 2] = [SessionId(5), SessionId(9)];
const NAME: Session = Session(*b"EXCHANGE01");
const WINDOW: usize = 64;

fn config() -> CoreConfig {
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol: Symbol::new(b"ALPHA").unwrap(),
        tick_size: Price(10_000_000),
        lot_size: 1,
        reference_price: Price(Price::UNIT),
        limit_class: LimitClass(0),
        shard: ShardId(0),
        venue: VenueId(0),
    };
    CoreConfig {
        market: MarketConfig {
            instruments: vec![instrument],
            sessions: SESSIONS
                .map(|id| SessionRules {
                    id,
                    cancel_on_disconnect: true,
                    open_orders_max: None,
                })
                .to_vec(),
            capacity: MarketCapacity {
                special_orders: 4,
                orders: 100,
                levels: 50,
                client_orders: 50,
            },
            self_match: SelfMatch::CancelNewest,
        },
        windows: vec![WINDOW; SESSIONS.len()],
        retransmit_messages: 64,
        history_window: 16,
        heartbeat: Duration::from_secs(1),
    }
}

fn live(engine: Engine, journal: Memory) -> Live<Held, Memory> {
    let lines = engine.numbers().iter().map(|numbers| {
        let link = Held::new(WINDOW, numbers.next_send.0);
        Line::new(numbers.session, link, SentIndex::new(), WINDOW, false)
    });
    let lines = lines.collect();
    Live::new(Clock::start(), engine, lines, journal, None, Recorder::off(), 16)
}

/// A new exchange that has started.
fn started(journal: Memory) -> Live<Held, Memory> {
    let recovered = Recovery::new(&config()).unwrap().finish(NAME);
    let mut live = live(recovered.engine, journal);
    live.input(
        TIME,
        &Input::Started {
            fingerprint: config().fingerprint(),
            session: NAME,
        },
    );
    live
}

const TIME: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn recover(config: &CoreConfig, records: &[OwnedRecord]) -> Result<Recovered, RecoveryError> {
    let mut recovery = Recovery::new(config).unwrap();
    for (kind, time, payload) in records {
        recovery.on_record(*kind as u16, *time, 0, payload)?;
    }
    Ok(recovery.finish(NAME))
}

/// An input that owns its message.
#[derive(Clone, Debug)]
enum Step {
    Request(usize, Request),
    History(Vec<u8>),
    HistoryStarted,
    HistoryTold,
    Timer(Timer),
    Down(usize),
    Day,
    Garbage(usize),
}

struct Script {
    steps: Vec<Step>,
    number: u64,
}

impl Script {
    /// Turns small choices into inputs that mostly make sense.
    fn new(choices: &[(u8, u8, u8, u8)]) -> Self {
        let mut script = Self {
            steps: Vec::new(),
            number: 0,
        };
        choices.iter().for_each(|&choice| script.add(choice));
        script
    }

    fn add(&mut self, (kind, a, b, c): (u8, u8, u8, u8)) {
        self.number += 1;
        let place = usize::from(a % 2);
        let session = SESSIONS[place];
        let side = if b.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        let price = Price((95 + i64::from(c % 10)) * Price::UNIT);
        let quantity = Quantity(u64::from(b / 2 % 9) + 1);
        let (client_order_id, instrument) = (ClientOrderId(self.number), InstrumentId(1));
        let orig_client_order_id = ClientOrderId(self.number.saturating_sub(u64::from(c % 16)).max(1));
        let stamp = Stamp {
            stock_locate: 3,
            time_ns: 0,
        };
        let reference = u64::from(c % 20) + 1;
        let step = match kind % 16 {
            0..=5 => Step::Request(
                place,
                Request::New(NewOrder {
                    client_order_id,
                    instrument,
                    account: AccountId(u32::from(session.0)),
                    session,
                    side,
                    price: if a / 16 == 8 { Price::NULL } else { price },
                    quantity,
                    ..of_kind(a / 16, price)
                }),
            ),
            6 => Step::Request(
                place,
                Request::Cancel(CancelOrder {
                    client_order_id,
                    orig_client_order_id,
                    instrument,
                    session,
                    side,
                }),
            ),
            7 => Step::Request(
                place,
                Request::Replace(ReplaceOrder {
                    client_order_id,
                    orig_client_order_id,
                    instrument,
                    session,
                    side,
                    price,
                    quantity,
                    terms: OrderTerms::NONE,
                }),
            ),
            8..=11 => {
                let (shares, price) = (u32::from(b % 30) + 1, 9_500 + u32::from(a % 10) * 100);
                let stock = Stock(*b"ALPHA   ");
                Step::History(
                    AddOrder::new(stamp, reference, side.into(), shares, stock, price * 100)
                        .as_bytes()
                        .to_vec(),
                )
            }
            12 | 13 => Step::History(
                OrderExecuted::new(stamp, reference, u32::from(b % 9) + 1, 1)
                    .as_bytes()
                    .to_vec(),
            ),
            14 => Step::History(OrderDelete::new(stamp, reference).as_bytes().to_vec()),
            _ => match b % 10 {
                0 => Step::HistoryStarted,
                1 => Step::Down(place),
                2 => Step::Day,
                3 => Step::Request(
                    place,
                    Request::MassCancel(MassCancel {
                        client_order_id,
                        session,
                        instrument: None,
                    }),
                ),
                6 => Step::HistoryTold,
                7 => Step::Timer(Timer::Expiry),
                8 => Step::Timer(if c % 2 == 0 {
                    Timer::OpeningCall
                } else {
                    Timer::ClosingCall
                }),
                9 => Step::Timer(Timer::Uncross),
                _ => Step::Garbage(place),
            },
        };
        self.steps.push(step);
    }
}

/// Type, time in force and terms of an order by a small number: half of them plain.
fn of_kind(kind: u8, price: Price) -> NewOrder {
    let (order_type, time_in_force) = match kind {
        8 => (OrderType::Stop, TimeInForce::Day),
        9 => (OrderType::StopLimit, TimeInForce::GoodTillCancel),
        10 => (OrderType::PegPrimary, TimeInForce::Day),
        11 => (OrderType::PegMid, TimeInForce::Day),
        12 => (OrderType::Limit, TimeInForce::Day),
        13 => (OrderType::Limit, TimeInForce::GoodTillDate),
        14 => (OrderType::Limit, TimeInForce::AtTheClose),
        15 => (OrderType::Limit, TimeInForce::ImmediateOrCancel),
        _ => (OrderType::Limit, TimeInForce::Day),
    };
    NewOrder {
        client_order_id: ClientOrderId(0),
        instrument: InstrumentId(0),
        account: AccountId(0),
        session: SessionId(0),
        side: Side::Buy,
        order_type,
        time_in_force,
        price,
        quantity: Quantity(0),
        trigger: Trigger::NONE,
        terms: OrderTerms {
            stop_price: if order_type.is_stop() { price } else { Price::NULL },
            display: Quantity(if kind == 12 { 2 } else { 0 }),
            expires: if kind == 13 {
                TIME + Duration(50)
            } else {
                Timestamp::NONE
            },
            ..OrderTerms::NONE
        },
    }
}

/// Runs one step as the component would.
fn run(live: &mut Live<Held, Memory>, now: Timestamp, step: &Step) {
    match step {
        Step::Request(place, request) => {
            let mut message = [0; native::MAX_MESSAGE_LENGTH];
            let length = native::encode_request(request, &mut message);
            let admission = live.admission(*place, request);
            send(live, now, *place, admission, &message[..length]);
        }
        Step::Garbage(place) => send(live, now, *place, Reason::None, b"nonsense"),
        Step::History(message) => live.input(now, &Input::History(message)),
        Step::HistoryStarted => {
            live.input(
                now,
                &Input::HistoryStarted {
                    session: Session(*b"RECORDING1"),
                    next: SequenceNumber(1),
                },
            );
        }
        Step::HistoryTold => live.input(now, &Input::HistoryTold),
        Step::Timer(timer) => live.input(now, &Input::Timer(*timer)),
        Step::Down(place) => live.input(now, &Input::SessionDown(SESSIONS[*place])),
        Step::Day => live.input(now, &Input::Day(TradingDay(20_250_303))),
    }
}

fn send(live: &mut Live<Held, Memory>, now: Timestamp, place: usize, admission: Reason, message: &[u8]) {
    let (session, sequence) = (SESSIONS[place], live.engine.numbers()[place].next_receive);
    live.input(
        now,
        &Input::Message {
            session,
            sequence,
            admission,
            message,
        },
    );
}

fn books(engine: &Engine) -> Vec<RestingOrder> {
    let id = InstrumentId(1);
    engine
        .market
        .orders(id, Side::Buy)
        .chain(engine.market.orders(id, Side::Sell))
        .collect()
}

/// Types of the reports that a link was given.
fn told(link: &Held) -> Vec<ExecType> {
    link.sent
        .iter()
        .filter_map(|message| native::decode_report(message).ok())
        .map(|report| report.exec_type)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Killed after any record, also between an input and its outputs, and started again: the journal of both processes
    /// is that of a process that never died, and so are the books and all numbers.
    #[test]
    fn a_restart_is_as_if_nothing_had_happened(
        choices in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..120),
        cut: prop::sample::Index,
    ) {
        let journal = Memory::default();
        let mut whole = started(journal.clone());
        let script = Script::new(&choices);
        for (count, step) in script.steps.iter().enumerate() {
            // A peer that reads.
            whole.lines.iter_mut().for_each(|line| line.link.unacknowledged = 0);
            run(&mut whole, Timestamp(TIME.0 + count as u64), step);
        }
        let records = journal.records.borrow().clone();
        let (kept, _) = records.split_at(cut.index(records.len()) + 1);
        let inputs = kept.iter().filter(|(kind, ..)| !kind.is_output()).count();

        let mut recovered = recover(&config(), kept).unwrap();
        let unrecorded = std::mem::take(&mut recovered.unrecorded);
        let second = Memory::default();
        let mut again = live(recovered.engine, second.clone());
        again.append_unrecorded(kept.last().unwrap().1, &unrecorded);
        for (count, step) in script.steps.iter().enumerate().skip(inputs - 1) {
            again.lines.iter_mut().for_each(|line| line.link.unacknowledged = 0);
            run(&mut again, Timestamp(TIME.0 + count as u64), step);
        }

        let joined: Vec<_> = kept.iter().cloned().chain(second.records.borrow().iter().cloned()).collect();
        prop_assert_eq!(joined, records);
        prop_assert_eq!(books(&again.engine), books(&whole.engine));
        prop_assert_eq!(again.engine.numbers(), whole.engine.numbers());
        prop_assert_eq!(again.engine.publisher.next_sequence(), whole.engine.publisher.next_sequence());
        again.engine.market.audit();
    }

    /// A peer that reads little or nothing: whatever happens, no message meets a full ring (the link would panic), and a
    /// session keeps two places for each order.
    #[test]
    fn there_is_always_room_for_what_must_be_said(
        choices in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..250),
        reads in prop::collection::vec(0_usize..4, 16),
    ) {
        let mut live = started(Memory::default());
        for (count, step) in Script::new(&choices).steps.iter().enumerate() {
            let from = match step {
                Step::Request(place, _) | Step::Down(place) | Step::Garbage(place) => Some(*place),
                Step::History(_) | Step::HistoryStarted | Step::HistoryTold | Step::Timer(_) | Step::Day => None,
            };
            if from.is_none_or(|place| live.has_room_for_event(place)) {
                run(&mut live, TIME, step);
            }
            for line in &mut live.lines {
                line.link.unacknowledged = line.link.unacknowledged.saturating_sub(reads[count % reads.len()]);
                let market = &live.engine.market;
                prop_assert!(
                    line.link.room() >= market.reports_reserved(line.session) || market.open_orders(line.session) == 0
                );
            }
        }
    }
}

#[test]
fn a_session_that_does_not_read_loses_its_orders_while_that_can_still_be_said() {
    let mut live = started(Memory::default());
    for step in &Script::new(&[(0, 0, 4, 0); 3]).steps {
        run(&mut live, TIME, step);
    }
    // Three orders of three lots, and two places for each.
    live.lines[0].link.unacknowledged = WINDOW - 6;
    let stamp = Stamp {
        stock_locate: 3,
        time_ns: 0,
    };
    let sell = AddOrder::new(stamp, 7, Side::Sell.into(), 4, Stock(*b"ALPHA   "), 950_000);
    run(&mut live, TIME, &Step::History(sell.as_bytes().to_vec()));
    // The first is filled and gives back its places; the second traded in part and keeps only one.
    let told = told(&live.lines[0].link);
    let end = [ExecType::Fill, ExecType::Fill];
    assert_eq!(told[3..], end);
    let sell = AddOrder::new(stamp, 8, Side::Sell.into(), 1, Stock(*b"ALPHA   "), 950_000);
    run(&mut live, TIME, &Step::History(sell.as_bytes().to_vec()));
    let told = self::told(&live.lines[0].link);
    assert_eq!(told[5..], [ExecType::Fill, ExecType::Canceled, ExecType::Canceled]);
    assert_eq!(live.engine.market.open_orders(SESSIONS[0]), 0);
    assert_eq!(live.engine.market.reasons(Reason::ReportRingFull), 2);
}

#[test]
fn without_room_in_the_link_new_orders_are_refused_and_cancels_are_not() {
    let mut live = started(Memory::default());
    let orders = Script::new(&[(0, 0, 0, 0), (0, 0, 0, 0), (6, 0, 0, 2)]);
    run(&mut live, TIME, &orders.steps[0]);
    live.lines[0].link.unacknowledged = WINDOW / 2;
    run(&mut live, TIME, &orders.steps[1]);
    run(&mut live, TIME, &orders.steps[2]);
    assert_eq!(
        told(&live.lines[0].link),
        [ExecType::New, ExecType::Rejected, ExecType::Canceled]
    );
    assert_eq!(live.engine.market.reasons(Reason::VenueFull), 1);
}

#[test]
fn a_session_has_no_more_open_orders_than_it_may() {
    let mut live = started(Memory::default());
    live.engine.market.desk.sessions[0].rules.open_orders_max = Some(1);
    let orders = Script::new(&[(0, 0, 0, 0), (0, 0, 0, 0), (6, 0, 0, 2), (0, 0, 0, 0)]);
    for step in &orders.steps {
        run(&mut live, TIME, step);
    }
    let told = told(&live.lines[0].link);
    assert_eq!(
        told,
        [ExecType::New, ExecType::Rejected, ExecType::Canceled, ExecType::New]
    );
    assert_eq!(live.engine.market.reasons(Reason::NoVenueSlot), 1);
}

#[test]
fn an_order_that_may_trade_more_often_than_can_be_told_is_refused() {
    let mut live = started(Memory::default());
    let stamp = Stamp {
        stock_locate: 3,
        time_ns: 0,
    };
    for reference in 0..40 {
        let sell = AddOrder::new(stamp, reference, Side::Sell.into(), 1, Stock(*b"ALPHA   "), 950_000);
        run(&mut live, TIME, &Step::History(sell.as_bytes().to_vec()));
    }
    let Step::Request(place, Request::New(order)) = Script::new(&[(0, 0, 0, 0)]).steps[0].clone() else {
        unreachable!()
    };
    let order = NewOrder {
        quantity: Quantity(28),
        ..order
    };
    assert_eq!(
        live.admission(place, &Request::New(order)),
        Reason::None,
        "2 + 28 reports, 2 + 32 places kept free"
    );
    let order = NewOrder {
        quantity: Quantity(29),
        ..order
    };
    assert_eq!(live.admission(place, &Request::New(order)), Reason::VenueFull);
}

#[test]
fn without_room_in_the_journal_nothing_is_taken() {
    let mut live = started(Memory::default());
    assert!(live.has_room_for_event(0) && live.has_room_for_history());
    live.journal.is_full = true;
    assert!(!live.has_room_for_event(0) && !live.has_room_for_history());
    let Step::Request(_, request) = Script::new(&[(0, 0, 0, 0)]).steps[0].clone() else {
        unreachable!()
    };
    assert_eq!(live.admission(0, &request), Reason::JournalFull);
}

#[test]
fn a_full_feed_waits_until_it_has_left() {
    let mut live = started(Memory::default());
    while live.has_room_for_history() {
        live.input(TIME, &Input::History(proto::itch::SystemEvent::new(1, b'Q').as_bytes()));
    }
    let mut packet = [0; proto::mold::MAX_PACKET_LENGTH];
    while live.engine.publisher.backlog() > 0 {
        live.engine.publisher.poll_packet(TIME, &mut packet);
    }
    assert!(live.has_room_for_history());
}

#[test]
fn what_a_peer_may_lack_is_restored_beside_the_room_for_its_orders() {
    let journal = Memory::default();
    let mut whole = started(journal.clone());
    for (count, step) in Script::new(&[(0, 0, 0, 0); 100]).steps.iter().enumerate() {
        whole.lines[0].link.unacknowledged = 0;
        run(&mut whole, TIME, step);
        // All but the last five are cancelled again.
        if count < 95 {
            whole.lines[0].link.unacknowledged = 0;
            whole.input(TIME, &Input::SessionDown(SESSIONS[0]));
        }
    }
    let recovered = recover(&config(), &journal.records.borrow()).unwrap();
    let restored: Vec<_> = recovered
        .unacknowledged(SESSIONS[0])
        .map(|(sequence, _)| sequence.0)
        .collect();
    let resume = recovered.resume(SESSIONS[0]).unwrap();
    assert_eq!(resume.next_receive, SequenceNumber(101));
    let next = resume.next_send.0;
    assert_eq!(recovered.engine.market.open_orders(SESSIONS[0]), 5);
    assert_eq!(
        restored,
        (next - 54..next).collect::<Vec<_>>(),
        "64 places, 10 kept free"
    );
}

#[test]
fn a_journal_of_something_else_is_refused() {
    let journal = Memory::default();
    let mut whole = started(journal.clone());
    for step in &Script::new(&[(0, 0, 0, 0), (0, 1, 1, 0)]).steps {
        run(&mut whole, TIME, step);
    }
    let records = journal.records.borrow().clone();
    let error = |config: &CoreConfig, records: &[_]| recover(config, records).err();

    let mut other = config();
    other.market.instruments[0].lot_size = 100;
    assert_eq!(error(&other, &records), Some(RecoveryError::OtherConfig));
    assert_eq!(
        error(&config(), &records[1..]),
        Some(RecoveryError::NoExchange { record: 1 })
    );
    let strange = [(Kind::ShardMessage, TIME, vec![1, 2, 3])];
    assert_eq!(
        error(&config(), &strange),
        Some(RecoveryError::NoExchange { record: 1 })
    );

    let at = records
        .iter()
        .position(|(kind, ..)| *kind == Kind::ClientOutput)
        .unwrap();
    let mut changed = records.clone();
    *changed[at].2.last_mut().unwrap() ^= 1;
    assert_eq!(
        error(&config(), &changed),
        Some(RecoveryError::Differs { record: at as u64 + 1 })
    );
    let mut missing = records;
    missing.remove(at);
    assert!(matches!(
        error(&config(), &missing),
        Some(RecoveryError::Differs { .. })
    ));
}

#[test]
fn the_journal_has_every_message_and_the_numbers_of_market_data() {
    let journal = Memory::default();
    let mut live = started(journal.clone());
    for step in &Script::new(&[(0, 0, 0, 0), (0, 1, 1, 0)]).steps {
        run(&mut live, TIME, step);
    }
    let records = journal.records.borrow();
    let outputs: Vec<_> = records
        .iter()
        .filter_map(|(kind, _, payload)| Output::decode(*kind, payload))
        .collect();
    let to_sessions = outputs
        .iter()
        .filter(|output| matches!(output, Output::Session { .. }))
        .count();
    assert_eq!(
        to_sessions,
        live.lines.iter().map(|line| line.link.sent.len()).sum::<usize>()
    );
    let published: u64 = outputs
        .iter()
        .map(|output| match output {
            Output::Feed(published) => u64::from(published.count),
            Output::Session { .. } => 0,
        })
        .sum();
    assert_eq!(published + 1, live.engine.publisher.next_sequence().0);
}

#[test]
fn links_of_other_sessions_are_a_programmers_error() {
    let recovered = Recovery::new(&config()).unwrap().finish(NAME);
    let lines: VecDeque<Line<Held>> = VecDeque::new();
    let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Live::new(
            Clock::start(),
            recovered.engine,
            lines.into(),
            Memory::default(),
            None,
            Recorder::off(),
            16,
        )
    }));
    assert!(built.is_err());
}
