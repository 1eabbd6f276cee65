//! One order through the shard without sockets: a client's bytes in, the venue's bytes out, both in the journal. And one
//! report back: the venue's bytes in, the client's bytes out.
//!
//! `cargo bench --bench shard`. Messages come in batches, so that the clock's own cost vanishes; rounds of both protocols
//! alternate with the floor, because the speed of the machine changes from minute to minute. The floor is what no gateway
//! with a journal can be without: appending an order's bytes in and its bytes out. `fix*` is FIX with 1,000 sessions logged
//! on, of which 100 send orders in turn; the aim is at most 1.5 times the cost with one.
//!
//! Instructions an order, of the shard's thread alone, without start-up and without encoding the client's messages:
//!
//! ```text
//! cargo bench --bench shard --no-run                  # prints the path of the program
//! valgrind --tool=callgrind --toggle-collect='shard::enter*' PROGRAM --orders 20000 --protocol fix
//! ```
//!
//! and divide what it says was collected by the number of orders; `--protocol native` likewise, and `shard::answer*` for
//! the reports, two an order.

use gateway::Config;
use gateway::harness::Harness;
use journal::{JournalWriter, Watermark};
use latency::clock::Clock;
use proto::fix::{
    self, Body, Encoder, MessageHeader, NewOrderSingle, OrderFields, TimePrecision, Version, msg_type, tag,
};
use proto::{native, soup};
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use types::{
    AccountId, Bbo, ClientOrderId, Duration, ExecId, ExecReport, ExecType, InstrumentId, NewOrder, OrderId, OrderTerms,
    OrderType, Price, Quantity, Quote, Reason, Request, SequenceNumber, SessionId, Side, TimeInForce, Timestamp,
    Trigger, VenueId,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 5;
const BATCH: usize = 64;
const BATCHES: usize = 2_000;
/// Enough to see that it runs, for `cargo test --benches`.
const BATCHES_TEST: usize = 4;

const VENUE: VenueId = VenueId(0);
const ALFA: InstrumentId = InstrumentId(1);
const START: Timestamp = Timestamp(1_796_000_000_000_000_000);
const LOTS: Quantity = Quantity(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Fix,
    Native,
}

/// Who sends orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Clients {
    name: &'static str,
    protocol: Protocol,
    /// Sessions that are logged on.
    sessions: u16,
    /// Sessions that send, in turn.
    active: u16,
}

const FIX: Clients = Clients {
    name: "fix",
    protocol: Protocol::Fix,
    sessions: 1,
    active: 1,
};

const NATIVE: Clients = Clients {
    name: "native",
    protocol: Protocol::Native,
    sessions: 1,
    active: 1,
};

const MANY: Clients = Clients {
    name: "fix*",
    protocol: Protocol::Fix,
    sessions: 1_000,
    active: 100,
};

/// A session that sends.
struct Sender {
    session: SessionId,
    comp_id: String,
    next_message: u64,
    next_order: u64,
}

/// A shard with its clients logged on, and what the bench must count for them.
struct Bench {
    shard: Harness,
    protocol: Protocol,
    now: Timestamp,
    senders: Vec<Sender>,
    /// Orders sent so far: whose turn it is.
    turn: usize,
    venue_sequence: SequenceNumber,
    exec_id: u64,
    price: Price,
    /// Of the batch: whose order it is, its bytes, the numbers that went to the venue, the venue's bytes.
    sessions: Vec<SessionId>,
    orders: Vec<Vec<u8>>,
    sent: Vec<ClientOrderId>,
    reports: Vec<Vec<u8>>,
    _folder: tempfile::TempDir,
}

/// Nanoseconds a message, one number a batch.
#[derive(Default)]
struct Costs {
    order: Vec<f64>,
    report: Vec<f64>,
}

fn main() -> ExitCode {
    let args = std::env::args().skip(1).collect::<Vec<_>>();
    let after = |name: &str| {
        let place = args.iter().position(|arg| arg == name)?;
        args.get(place + 1).map(String::as_str)
    };
    let result = match (after("--orders"), after("--protocol")) {
        (None, None) => compare(if args.iter().any(|arg| arg == "--bench") {
            BATCHES
        } else {
            BATCHES_TEST
        }),
        (Some(orders), Some("fix")) => count(orders, FIX),
        (Some(orders), Some("native")) => count(orders, NATIVE),
        _ => Err("usage: shard [--orders NUMBER --protocol fix|native]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A fixed number of orders, for callgrind.
fn count(orders: &str, clients: Clients) -> Outcome<()> {
    let orders: usize = orders.parse()?;
    let mut bench = Bench::new(clients)?;
    for _ in 0..orders.div_ceil(BATCH) {
        bench.batch(&mut Costs::default())?;
    }
    println!(
        "{} orders, {} reports",
        orders.div_ceil(BATCH) * BATCH,
        orders.div_ceil(BATCH) * BATCH * 2
    );
    Ok(())
}

fn compare(batches: usize) -> Outcome<()> {
    println!(
        "{} · Linux {} · {batches} batches of {BATCH} a round, ns a message",
        net::host::cpu_model(),
        net::host::kernel()
    );
    println!(
        "{:>5} {:>8} {:>14} {:>7} {:>7} {:>8}",
        "round", "protocol", "what", "p50", "p99", "to floor"
    );
    let mut ratios = Vec::with_capacity(ROUNDS);
    for round in 1..=ROUNDS {
        let mut orders_p50 = Vec::new();
        let (floor, floor_p99) = percentiles(&mut floor(batches)?);
        println!(
            "{round:>5} {:>8} {:>14} {floor:>7.0} {floor_p99:>7.0} {:>8}",
            "", "floor", ""
        );
        for clients in [FIX, MANY, NATIVE] {
            let mut bench = Bench::new(clients)?;
            let mut costs = Costs::default();
            // The first tenth warms caches, branch predictors and the pages of tables.
            for _ in 0..batches / 10 {
                bench.batch(&mut Costs::default())?;
            }
            for _ in 0..batches {
                bench.batch(&mut costs)?;
            }
            for (what, samples) in [("order", &mut costs.order), ("report", &mut costs.report)] {
                let (p50, p99) = percentiles(samples);
                println!(
                    "{round:>5} {:>8} {what:>14} {p50:>7.0} {p99:>7.0} {:>8.2}",
                    clients.name,
                    p50 / floor
                );
                if what == "order" {
                    orders_p50.push(p50);
                }
            }
        }
        ratios.push(orders_p50[1] / orders_p50[0]);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!(
        "an order with {} sessions to one with 1, median of {ROUNDS} rounds: {:.3}",
        MANY.sessions,
        ratios[ROUNDS / 2]
    );
    Ok(())
}

/// Two records of an order's length into a journal, nothing else.
fn floor(batches: usize) -> Outcome<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let mut config = journal::Config::new(folder.path().join("floor"), "floor");
    config.ring_bytes = RING_BYTES;
    config.poll = Watermark::Appended.drainer_poll();
    config.gather_bytes = Watermark::Appended.drainer_gather_bytes();
    let mut journal = JournalWriter::open(&config)?;
    let message = [0x5a; 48];
    let mut samples = Vec::with_capacity(batches);
    for _ in 0..batches {
        while !journal.room(BATCH * 1_024) {
            std::thread::yield_now();
        }
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(journal.append(1, 1, START, &[&[1, 2], black_box(&message)]));
            black_box(journal.append(2, 1, START, &[&[1, 2], black_box(&message)]));
        }
        samples.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    journal.close()?;
    Ok(samples)
}

impl Bench {
    fn new(clients: Clients) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let config = config(folder.path(), clients)?;
        let price = Price::parse(b"100").ok_or("a price")?;
        let mut bench = Self {
            shard: Harness::open(&config, Clock::start())?,
            protocol: clients.protocol,
            now: START,
            senders: Vec::new(),
            turn: 0,
            venue_sequence: SequenceNumber(1),
            exec_id: 0,
            price,
            sessions: vec![SessionId(0); BATCH],
            orders: vec![Vec::new(); BATCH],
            sent: vec![ClientOrderId(0); BATCH],
            reports: vec![Vec::new(); 2 * BATCH],
            _folder: folder,
        };
        bench.shard.set_now(START);
        let quote = Quote {
            price,
            quantity: Quantity(100),
        };
        bench.shard.price(
            ALFA,
            &Bbo {
                bid: quote,
                ask: quote,
                last: Price(0),
                time: START,
            },
        );
        for number in 0..clients.sessions {
            bench.log_on(number);
        }
        // Those that send are spread over all, so that they are no neighbours in memory.
        let stride = usize::from(clients.sessions / clients.active);
        bench.senders = bench.senders.into_iter().step_by(stride).collect();
        Ok(bench)
    }

    fn log_on(&mut self, number: u16) {
        let session = session(number);
        self.senders.push(Sender {
            session,
            comp_id: comp_id(number),
            next_message: 1,
            next_order: 1,
        });
        self.shard.connect(session);
        if self.protocol == Protocol::Fix {
            let mut logon = Vec::new();
            let sender = self.senders.last_mut().expect("it was pushed");
            encode_fix(sender, self.now, &Logon, &mut logon);
            self.shard.client(session, &logon);
        }
        self.shard.discard_client_output(session);
    }

    /// Orders in, then their reports back: accepted, and filled whole, so that nothing stays open.
    fn batch(&mut self, costs: &mut Costs) -> Outcome<()> {
        self.now = self.now + Duration::from_micros(100);
        self.shard.set_now(self.now);
        self.encode_orders();
        while !self.shard.has_room() {
            // Not the shard's cost: the disk is behind.
            std::thread::yield_now();
        }
        let (before, _) = self.shard.sent_to_venue(VENUE);
        let start = Instant::now();
        enter(
            &mut self.shard,
            self.protocol,
            &self.sessions,
            &self.orders,
            &mut self.sent,
        );
        costs.order.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        let (after, _) = self.shard.sent_to_venue(VENUE);
        if after - before != BATCH as u64 {
            return Err(format!("{} of {BATCH} orders reached the venue", after - before).into());
        }
        self.encode_reports();
        let start = Instant::now();
        answer(&mut self.shard, &self.sessions, &self.reports, &mut self.venue_sequence);
        costs
            .report
            .push(start.elapsed().as_nanos() as f64 / (2 * BATCH) as f64);
        let open = self.shard.shard().orders().open_orders();
        if open == 0 {
            Ok(())
        } else {
            Err(format!("{open} orders are open after their fills").into())
        }
    }

    fn encode_orders(&mut self) {
        let places = self.orders.iter_mut().zip(&mut self.sessions);
        for (index, (bytes, session)) in places.enumerate() {
            bytes.clear();
            let count = self.senders.len();
            let sender = &mut self.senders[(self.turn + index) % count];
            *session = sender.session;
            let number = sender.next_order;
            sender.next_order += 1;
            match self.protocol {
                Protocol::Fix => {
                    let cl_ord_id = number.to_string();
                    let order = NewOrderSingle {
                        account: b"1",
                        cl_ord_id: cl_ord_id.as_bytes(),
                        quantity: LOTS.0,
                        ord_type: b'2',
                        price: self.price,
                        side: b'1',
                        symbol: b"ALFA",
                        time_in_force: b'0',
                        transact_time: self.now,
                        trigger: Trigger::new(1, number),
                        fields: OrderFields::NONE,
                    };
                    encode_fix(sender, self.now, &order, bytes);
                }
                Protocol::Native => {
                    let order = NewOrder {
                        client_order_id: ClientOrderId(number),
                        instrument: ALFA,
                        account: AccountId(1),
                        session: sender.session,
                        side: Side::Buy,
                        order_type: OrderType::Limit,
                        time_in_force: TimeInForce::Day,
                        price: self.price,
                        quantity: LOTS,
                        trigger: Trigger::new(1, number),
                        terms: OrderTerms::NONE,
                    };
                    let mut message = [0; native::MAX_MESSAGE_LENGTH];
                    let length = native::encode_request(&Request::New(order), &mut message);
                    bytes.resize(soup::MAX_PACKET_LENGTH, 0);
                    let length = soup::write_unsequenced(&message[..length], bytes);
                    bytes.truncate(length);
                }
            }
        }
        self.turn += BATCH;
    }

    fn encode_reports(&mut self) {
        let mut reports = self.reports.iter_mut();
        for &number in &self.sent {
            for (exec_type, last, leaves) in [(ExecType::New, 0, LOTS.0), (ExecType::Fill, LOTS.0, 0)] {
                self.exec_id += 1;
                let report = ExecReport {
                    exec_type,
                    order_id: OrderId(number.0),
                    client_order_id: number,
                    orig_client_order_id: ClientOrderId(0),
                    exec_id: ExecId(self.exec_id),
                    instrument: ALFA,
                    account: AccountId(0),
                    session: SessionId(9),
                    side: Side::Buy,
                    price: self.price,
                    quantity: LOTS,
                    last_price: if last > 0 { self.price } else { Price::NULL },
                    last_quantity: Quantity(last),
                    leaves: Quantity(leaves),
                    cumulative: Quantity(last),
                    reason: Reason::None,
                };
                let mut message = [0; native::MAX_MESSAGE_LENGTH];
                let length = native::encode_report(&report, &mut message);
                let bytes = reports.next().expect("two an order");
                bytes.clear();
                bytes.extend_from_slice(&message[..length]);
            }
        }
    }
}

/// A batch of orders: framed, journaled, decided, sent. Notes the number that each went to the venue with.
#[inline(never)]
fn enter(
    shard: &mut Harness,
    protocol: Protocol,
    sessions: &[SessionId],
    orders: &[Vec<u8>],
    sent: &mut [ClientOrderId],
) {
    for ((&session, bytes), sent) in sessions.iter().zip(orders).zip(sent) {
        match protocol {
            Protocol::Fix => {
                if let fix::Frame::Message(length) = fix::frame(bytes) {
                    shard.client(session, &bytes[..length]);
                }
            }
            Protocol::Native => {
                if let Ok(Some((soup::Packet::Unsequenced(message), _))) = soup::parse(bytes) {
                    shard.client(session, message);
                }
            }
        }
        // The venue's bytes hold it; the report about the order must repeat it.
        let (_, message) = shard.sent_to_venue(VENUE);
        *sent = native::decode_request(message).map_or(ClientOrderId(0), |request| request.client_order_id());
    }
}

/// A batch of reports: journaled, decided, put into the client's protocol and its frame.
#[inline(never)]
fn answer(shard: &mut Harness, sessions: &[SessionId], reports: &[Vec<u8>], sequence: &mut SequenceNumber) {
    // Two an order.
    let of_reports = sessions.iter().flat_map(|&session| [session; 2]);
    for (session, report) in of_reports.zip(reports) {
        shard.venue(VENUE, *sequence, report);
        *sequence = sequence.next();
        shard.discard_client_output(session);
    }
}

fn encode_fix(sender: &mut Sender, now: Timestamp, body: &impl Body, out: &mut Vec<u8>) {
    let header = MessageHeader {
        version: Version::Fix44,
        sender_comp_id: sender.comp_id.as_bytes(),
        target_comp_id: b"TICKGATE",
        sequence: sender.next_message,
        sending_time: now,
        orig_sending_time: None,
    };
    sender.next_message += 1;
    let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
    let mut encoder = Encoder::start(&mut buffer, body.msg_type(), &header, TimePrecision::Milliseconds);
    body.encode(&mut encoder);
    out.extend_from_slice(encoder.finish().expect("an order fits"));
}

/// Logon with heartbeats every 30 s.
struct Logon;

impl Body for Logon {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::LOGON
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::ENCRYPT_METHOD, 0);
        encoder.number(tag::HEART_BT_INT, 30);
    }
}

/// p50 and p99, nearest rank.
fn percentiles(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_unstable_by(f64::total_cmp);
    let at = |per_cent: usize| samples[(samples.len() * per_cent).div_ceil(100).max(1) - 1];
    (at(50), at(99))
}

fn session(number: u16) -> SessionId {
    SessionId(number + 1)
}

fn comp_id(number: u16) -> String {
    format!("TRADER{number}")
}

fn config(folder: &Path, clients: Clients) -> Outcome<Config> {
    std::fs::write(
        folder.join("instruments.csv"),
        "id,symbol,tick_size,lot_size,reference_price,limit_class,shard,venue\n1,ALFA,0.01,1,100,default,0,sim\n",
    )?;
    let mut text = CONFIG.to_owned();
    // Tables as in `configs/gateway.toml`, so that they miss caches as they do there; smaller ones where there are many.
    let (resend, ids) = if clients.sessions == 1 {
        (262_144, 1_048_576)
    } else {
        (4_096, 16_384)
    };
    for number in 0..clients.sessions {
        let (id, comp_id) = (session(number), comp_id(number));
        let of_protocol = match clients.protocol {
            Protocol::Fix => format!(
                "protocol = \"fix\"\nclient_comp_id = \"{comp_id}\"\nour_comp_id = \"TICKGATE\"\ncl_ord_ids = {ids}"
            ),
            Protocol::Native => "protocol = \"native\"\nuser = \"trader\"".to_owned(),
        };
        write!(
            text,
            "[[sessions]]\nid = {id}\n{of_protocol}\nshard = 0\naccounts = [1]\nowner = {id}\nmax_open_orders = 10_000\n\
             resend_messages = {resend}\nsend_buffer_bytes = 65_536\n"
        )?;
    }
    Ok(Config::parse(&text, folder)?)
}

/// Bytes of the journals' rings.
const RING_BYTES: usize = 64 << 20;

/// All but the sessions.
const CONFIG: &str = r#"
instruments = "instruments.csv"
trading_day = 20261130
[journal]
directory = "journal"
ring_bytes = 67_108_864
segment_bytes = 268_435_456
watermark = "appended"
[[shards]]
idle = "spin"
fix_listen = "127.0.0.1:0"
native_listen = "127.0.0.1:0"
[[venues]]
name = "sim"
[[venues.links]]
shard = 0
transport = "ltp"
session = 9
peer = "127.0.0.1:9"
window_messages = 4096
cancel_reserve_messages = 512
heartbeat_ms = 10
dead_after_ms = 100
[[accounts]]
id = 1
max_quantity_lots = 10_000
max_notional = "5000000"
max_open_orders = 10_000
max_open_notional = "500000000"
[risk]
mark_every_ms = 1_000
[risk.classes.default]
max_quantity_lots = 1_000
max_notional = "1000000"
collar = { basis_points = 1000 }
reference_max_age_ms = 60_000
reference_missing = "master"
market_orders = true
[capacity]
open_orders = 65_536
positions = 1_024
own_books = 1_024
crossing_messages = 1_024
"#;
