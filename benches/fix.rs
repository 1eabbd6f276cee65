//! One NewOrderSingle of 181 bytes, from bytes to what the order logic reads, and its ExecutionReport back to bytes.
//!
//! `cargo bench --bench fix`. Messages come in batches, so that the clock's own cost vanishes; rounds of the measured and of
//! the peer alternate, because the speed of the machine changes from minute to minute. The peer is the crate
//! `ironfix-tagvalue`: framing, checksum and an index of fields, then the same fields read as text. It checks no session
//! and no dictionary.
//!
//! Instructions a message, without start-up and without making the messages:
//!
//! ```text
//! cargo bench --bench fix --no-run                  # prints the path of the program
//! valgrind --tool=callgrind --toggle-collect='fix::whole*' PROGRAM --messages 20000
//! ```
//!
//! and divide what it says was collected by the number of messages; likewise `fix::framing*`, `fix::scanned*` (no
//! dictionary), `fix::validated*`, `fix::encoded*` and `fix::peer*`.

use gateway::dictionary;
use ironfix_tagvalue::{Decoder, FieldIndex};
use proto::fix::{
    self, Body, CloseReason, CompId, Dictionaries, Dictionary, Encoder, ExecutionReport, FixExecType, Logon, Message,
    MessageHeader, NewOrderSingle, OrdStatus, Output, Role, Scratch, Session, SessionConfig, TimePrecision, Version,
};
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use types::{Price, SequenceNumber, Timestamp};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 7;
const BATCH: usize = 64;
const BATCHES: usize = 3_000;
/// Enough to see that it runs, for `cargo test --benches`.
const BATCHES_TEST: usize = 3;
/// 2026-03-01 10:00:00.123 UTC.
const NOW: Timestamp = Timestamp(1_772_359_200_123_000_000);
const ORDER_LENGTH: usize = 181;
/// The fields of the order that are read.
const TAGS: [u32; 13] = [34, 49, 52, 56, 11, 21, 38, 40, 44, 54, 55, 59, 60];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fix: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let mut batches = BATCHES_TEST;
    let mut rounds = 1;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => (batches, rounds) = (BATCHES, ROUNDS),
            "--messages" => batches = args.next().ok_or("--messages takes a number")?.parse::<usize>()? / BATCH,
            _ => (),
        }
    }
    let mut bench = Bench::new()?;
    println!("ns a message of {ORDER_LENGTH} bytes, median of {batches} batches of {BATCH}");
    println!(
        "{:>5} {:>6} {:>7} {:>10} {:>6} {:>9} {:>6} {:>6} {:>11} {:>7} {:>6}",
        "round", "frame", "no dict", "dictionary", "whole", "of a peer", "peer", "raw", "validation", "encode", "send"
    );
    for round in 1..=rounds {
        bench.round(round, batches);
    }
    Ok(())
}

/// What is measured, and the messages for it.
struct Bench {
    dictionary: Arc<Dictionary>,
    session: Session,
    scratch: Scratch,
    index: FieldIndex,
    orders: Vec<Vec<u8>>,
    next: u64,
    buffer: Box<[u8]>,
}

/// Nanoseconds a message in each batch.
#[derive(Default)]
struct Costs {
    frame: Vec<f64>,
    scan: Vec<f64>,
    validate: Vec<f64>,
    whole: Vec<f64>,
    peer: Vec<f64>,
    peer_raw: Vec<f64>,
    encode: Vec<f64>,
    send: Vec<f64>,
}

impl Bench {
    fn new() -> Outcome<Self> {
        let definition = dictionary::load(Version::Fix44, None)?;
        let dictionary = Arc::new(Dictionary::compile(&definition, None)?);
        let comp_id = |text: &[u8]| CompId::new(text).ok_or("no CompID");
        let mut config = SessionConfig::new(Role::Acceptor, comp_id(b"GATEWAY")?, comp_id(b"CLIENT-0001")?);
        config.dictionaries = Dictionaries::default().with(Version::Fix44, dictionary.clone());
        let mut bench = Self {
            dictionary,
            session: Session::new(config),
            scratch: Scratch::new(),
            index: FieldIndex::with_capacity(64),
            orders: Vec::new(),
            next: 1_000_000,
            buffer: vec![0; 2 * fix::MAX_MESSAGE_LENGTH].into_boxed_slice(),
        };
        bench.session.on_connected(NOW, &mut Nowhere);
        // So that all orders have numbers of seven digits, the session starts there.
        let logon = message(&format!(
            "35=A|34={}|49=CLIENT-0001|52=20260301-10:00:00.123|56=GATEWAY|98=0|108=30|",
            1
        ));
        bench.session.on_frame(NOW, &logon, &mut bench.scratch, &mut Nowhere);
        let reset = message(&format!(
            "35=4|34=2|49=CLIENT-0001|52=20260301-10:00:00.123|56=GATEWAY|36={}|",
            bench.next
        ));
        bench.session.on_frame(NOW, &reset, &mut bench.scratch, &mut Nowhere);
        if !bench.session.is_logged_on() {
            return Err("the session does not log on".into());
        }
        Ok(bench)
    }

    fn round(&mut self, round: usize, batches: usize) {
        let mut costs = Costs::default();
        for _ in 0..batches {
            self.make_orders();
            costs.frame.push(timed(|| framing(&self.orders)));
            costs.scan.push(timed(|| scanned(&self.orders, &mut self.scratch)));
            costs
                .validate
                .push(timed(|| validated(&self.orders, &mut self.scratch, &self.dictionary)));
            costs
                .whole
                .push(timed(|| whole(&self.orders, &mut self.scratch, &mut self.session)));
            costs.peer.push(timed(|| peer(&self.orders, &mut self.index)));
            costs.peer_raw.push(timed(|| peer_raw(&self.orders)));
            let reports = self.next;
            costs.encode.push(timed(|| encoded(reports, &mut self.buffer)));
            costs.send.push(timed(|| sent(reports, &mut self.session)));
        }
        let Costs {
            frame,
            scan,
            validate,
            whole,
            peer,
            peer_raw,
            encode,
            send,
        } = costs;
        let [frame, scan, validate, whole] = [frame, scan, validate, whole].map(median);
        let [peer, peer_raw, encode, send] = [peer, peer_raw, encode, send].map(median);
        println!(
            "{round:>5} {frame:>6.1} {scan:>7.1} {validate:>10.1} {whole:>6.1} {:>9.3} {peer:>6.1} {peer_raw:>6.1} {:>11.1} {encode:>7.1} {send:>6.1}",
            whole / peer,
            validate - scan,
        );
    }

    /// The next orders of the session, all of the same length.
    fn make_orders(&mut self) {
        self.orders.clear();
        for _ in 0..BATCH {
            let number = self.next;
            self.next += 1;
            let side = 1 + number % 2;
            let order = message(&format!(
                "35=D|34={number}|49=CLIENT-0001|52=20260301-10:00:00.123|56=GATEWAY|11=ORD{number:014}|21=1|38=100|40=2|\
                 44=101.25|54={side}|55=INTC|59=0|60=20260301-10:00:00.123|"
            ));
            assert_eq!(order.len(), ORDER_LENGTH);
            self.orders.push(order);
        }
    }
}

#[inline(never)]
fn framing(orders: &[Vec<u8>]) {
    for order in orders {
        black_box(framed(order));
    }
}

/// Framing with checksum, one scan, the view.
#[inline(never)]
fn scanned(orders: &[Vec<u8>], scratch: &mut Scratch) {
    for order in orders {
        view(&scratch.parse(framed(order)));
    }
}

/// The same, with the dictionary.
#[inline(never)]
fn validated(orders: &[Vec<u8>], scratch: &mut Scratch, dictionary: &Dictionary) {
    for order in orders {
        view(&scratch.parse_with(framed(order), Some(dictionary)));
    }
}

/// The same, with the session's rules.
#[inline(never)]
fn whole(orders: &[Vec<u8>], scratch: &mut Scratch, session: &mut Session) {
    for order in orders {
        let application = session.on_frame(NOW, framed(order), scratch, &mut Nowhere);
        view(&application.expect("an order is for the application").message);
    }
}

#[inline(never)]
fn peer(orders: &[Vec<u8>], index: &mut FieldIndex) {
    for order in orders {
        let message = Decoder::new(order).decode_into(index).expect("the peer reads it");
        black_box(TAGS.map(|tag| message.get_field_str(tag)));
    }
}

#[inline(never)]
fn peer_raw(orders: &[Vec<u8>]) {
    for order in orders {
        let message = Decoder::new(order).decode().expect("the peer reads it");
        black_box(TAGS.map(|tag| message.get_field_str(tag)));
    }
}

#[inline(never)]
fn encoded(number: u64, buffer: &mut [u8]) {
    for sequence in number..number + BATCH as u64 {
        let header = MessageHeader {
            version: Version::Fix44,
            sender_comp_id: b"GATEWAY",
            target_comp_id: b"CLIENT-0001",
            sequence,
            sending_time: NOW,
            orig_sending_time: None,
        };
        let body = report(&CL_ORD_ID, black_box(NOW));
        let mut encoder = Encoder::start(buffer, body.msg_type(), &header, TimePrecision::Milliseconds);
        body.encode(&mut encoder);
        black_box(encoder.finish().expect("it fits"));
    }
}

/// The same, by the session: numbered and kept for resends.
#[inline(never)]
fn sent(number: u64, session: &mut Session) {
    for _ in number..number + BATCH as u64 {
        let body = report(&CL_ORD_ID, black_box(NOW));
        black_box(session.send(NOW, &body, &mut Nowhere));
    }
}

fn framed(order: &[u8]) -> &[u8] {
    match fix::frame(order) {
        fix::Frame::Message(length) => &order[..length],
        _ => panic!("an order is a frame"),
    }
}

fn view(message: &Message<'_>) {
    assert!(message.violation().is_none());
    black_box(NewOrderSingle::decode(message).expect("an order has what it must"));
}

const CL_ORD_ID: [u8; 17] = *b"ORD00000000000001";

/// The report that the order is accepted.
fn report(cl_ord_id: &[u8], time: Timestamp) -> ExecutionReport<'_> {
    ExecutionReport {
        account: b"",
        avg_price: Price(0),
        cl_ord_id,
        cumulative: 0,
        exec_id: b"1234567",
        last_price: Price::NULL,
        last_quantity: 0,
        order_id: b"7654321",
        quantity: 100,
        ord_status: OrdStatus::New,
        ord_type: b'2',
        orig_cl_ord_id: b"",
        price: Price(101_250_000_000),
        side: b'1',
        symbol: b"INTC",
        text: b"",
        time_in_force: b'0',
        transact_time: time,
        ord_rej_reason: None,
        exec_type: FixExecType::New,
        leaves: 100,
        restatement: None,
        answer_to: None,
        crossed: None,
    }
}

/// A whole message from what stands between BodyLength and CheckSum.
fn message(fields: &str) -> Vec<u8> {
    let mut message = format!("8=FIX.4.4|9={}|{fields}", fields.len())
        .replace('|', "\x01")
        .into_bytes();
    let sum = message.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    message.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    message
}

struct Nowhere;

impl Output for Nowhere {
    fn transmit(&mut self, _: SequenceNumber, message: &[u8]) {
        black_box(message);
    }

    fn logged_on(&mut self, _: &Logon<'_>) {}

    fn logged_out(&mut self, _: &[u8]) {}

    fn close(&mut self, reason: CloseReason, _: &[u8]) {
        panic!("the session ends: {}", reason.text());
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / BATCH as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
