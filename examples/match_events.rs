//! Runs the matcher over recorded workloads and prints one JSON line a file: what came out, as hashes that an independent
//! model's can be compared with, and how long an event took.
//!
//! `cargo run --release --example match_events -- FILE.bin…`
//!
//! A file is a header of 32 bytes (`LOBEVT01`, version u32 = 1, symbols u32, events u64, seed u64) and records of 32 bytes:
//! order id u64, symbol u32, type u8 (`N` new, `C` cancel, `R` replace that loses priority), side u8 (`B`, `S`), time in
//! force u8 (0 day, 1 immediate or cancel), a byte of padding, price i64 in ticks, quantity u32, four bytes of padding;
//! all little-endian.
//!
//! `ns_per_event` is one pass over the decoded events, reports delivered and hashed, divided by their number. The
//! percentiles are from a pass of their own, each event between two clock reads, the cost of a read taken off. Both passes
//! have a matcher that is built for one more than the orders and levels that the workload reaches, rounded up to a power of two;
//! a first pass that is not timed finds them.

use matcher::{
    BookIndex, Capacity, MAX_BOOKS, MAX_ORDERS, Matcher, NewOrder, OwnerId, Priority, Replace, Report, SelfMatch,
};
use std::error::Error;
use std::time::Instant;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: match_events FILE.bin…");
        std::process::exit(2);
    }
    for file in files {
        let bytes = std::fs::read(&file).map_err(|error| format!("reading {file}: {error}"))?;
        let workload = Workload::parse(&bytes).ok_or_else(|| format!("{file} is not a workload of this format"))?;
        println!("{}", run(&workload));
    }
    Ok(())
}

/// A decoded file.
struct Workload {
    books: usize,
    events: Vec<Event>,
}

#[derive(Clone, Copy)]
enum Event {
    New(NewOrder),
    Cancel(OrderId),
    Replace(Replace),
}

impl Workload {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (header, records) = bytes.split_at_checked(32)?;
        let books = u32::from_le_bytes(header[12..16].try_into().ok()?) as usize;
        let count = u64::from_le_bytes(header[16..24].try_into().ok()?);
        // What is cut off between two records shows in the count alone.
        let whole = records.len() % 32 == 0 && (records.len() / 32) as u64 == count && count > 0;
        if header[..12] != *b"LOBEVT01\x01\0\0\0" || !(1..=MAX_BOOKS).contains(&books) || !whole {
            return None;
        }
        let events = records.chunks_exact(32).map(Event::parse).collect::<Option<_>>()?;
        Some(Self { books, events })
    }
}

impl Event {
    fn parse(record: &[u8]) -> Option<Self> {
        let id = OrderId(u64::from_le_bytes(record[..8].try_into().ok()?));
        let price = Price(i64::from_le_bytes(record[16..24].try_into().ok()?));
        let quantity = Quantity(u64::from(u32::from_le_bytes(record[24..28].try_into().ok()?)));
        Some(match record[12] {
            b'N' => Self::New(NewOrder {
                id,
                book: BookIndex(u32::from_le_bytes(record[8..12].try_into().ok()?)),
                owner: OwnerId::NONE,
                side: match record[13] {
                    b'B' => Side::Buy,
                    b'S' => Side::Sell,
                    _ => return None,
                },
                order_type: OrderType::Limit,
                time_in_force: match record[14] {
                    0 => TimeInForce::Day,
                    1 => TimeInForce::ImmediateOrCancel,
                    _ => return None,
                },
                price,
                quantity,
            }),
            b'C' => Self::Cancel(id),
            b'R' => Self::Replace(Replace {
                id,
                new_id: id,
                price,
                leaves: quantity,
                priority: Priority::Lost,
            }),
            _ => return None,
        })
    }
}

/// What the reports add up to.
struct Tally {
    trades: u64,
    traded: u64,
    rejects: u64,
    hash: u64,
}

impl Tally {
    const fn new() -> Self {
        Self {
            trades: 0,
            traded: 0,
            rejects: 0,
            hash: HASH_START,
        }
    }

    #[inline]
    fn take(&mut self, report: Report) {
        match report {
            Report::Trade(trade) => {
                self.trades += 1;
                self.traded += trade.quantity.0;
                for word in [
                    trade.taker.0,
                    trade.maker.0,
                    trade.price.0.cast_unsigned(),
                    trade.quantity.0,
                ] {
                    self.hash = hash(self.hash, word);
                }
            }
            Report::Rejected(_) => self.rejects += 1,
            _ => {}
        }
    }
}

/// What the workload needs: one pass with room for every order there is.
fn capacity(workload: &Workload) -> Capacity {
    let new = workload
        .events
        .iter()
        .filter(|event| matches!(event, Event::New(_)))
        .count()
        .clamp(1, MAX_ORDERS);
    let books = workload.books;
    let mut matcher = Matcher::new(
        Capacity {
            books,
            orders: new,
            levels: new,
            special: 0,
        },
        SelfMatch::Allow,
    );
    let (mut orders, mut levels) = (1, 1);
    for event in &workload.events {
        apply(&mut matcher, event, &mut Tally::new());
        orders = orders.max(matcher.order_count());
        levels = levels.max(matcher.level_count());
    }
    // An order that comes in is given room to rest before it trades, though it may not need it.
    Capacity {
        books,
        orders: (orders + 1).next_power_of_two().min(MAX_ORDERS),
        levels: (levels + 1).next_power_of_two().min(MAX_ORDERS),
        special: 0,
    }
}

#[inline]
fn apply(matcher: &mut Matcher, event: &Event, tally: &mut Tally) {
    let sink = &mut |report| tally.take(report);
    match event {
        Event::New(order) => matcher.add(order, sink),
        Event::Cancel(id) => matcher.cancel(*id, Reason::Requested, sink),
        Event::Replace(replace) => matcher.replace(replace, sink),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn run(workload: &Workload) -> String {
    let capacity = capacity(workload);
    let (mut matcher, mut tally) = (ready(capacity), Tally::new());
    let start = Instant::now();
    for event in &workload.events {
        apply(&mut matcher, event, &mut tally);
    }
    let ns_per_event = start.elapsed().as_nanos() as f64 / workload.events.len() as f64;
    let latencies = latencies_ns(workload, capacity);
    let percentile = |hundredths: usize| latencies.get(latencies.len() * hundredths / 100).copied().unwrap_or(0);
    format!(
        "{{\"events\":{},\"trades\":{},\"traded_qty\":{},\"rejects\":{},\"trade_hash\":\"{:016x}\",\"book_hash\":\"{:016x}\",\
         \"ns_per_event\":{ns_per_event:.1},\"p50_ns\":{},\"p99_ns\":{}}}",
        workload.events.len(),
        tally.trades,
        tally.traded,
        tally.rejects,
        tally.hash,
        book_hash(&matcher),
        percentile(50),
        percentile(99),
    )
}

/// A matcher in the memory that gateway and exchange give theirs.
fn ready(capacity: Capacity) -> Matcher {
    let matcher = Matcher::new(capacity, SelfMatch::Allow);
    if let Err(error) = net::huge_pages::gather() {
        eprintln!("no huge pages: {error}");
    }
    matcher
}

/// Nanoseconds of each event, sorted.
fn latencies_ns(workload: &Workload, capacity: Capacity) -> Vec<u64> {
    let (mut matcher, mut tally) = (ready(capacity), Tally::new());
    let clock_ns = clock_cost_ns();
    let mut latencies = Vec::with_capacity(workload.events.len());
    for event in &workload.events {
        let start = Instant::now();
        apply(&mut matcher, event, &mut tally);
        let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        latencies.push(elapsed.saturating_sub(clock_ns));
    }
    latencies.sort_unstable();
    latencies
}

/// Median time between two clock reads with nothing between them.
fn clock_cost_ns() -> u64 {
    let mut costs: Vec<u64> = (0..10_001)
        .map(|_| {
            let start = Instant::now();
            u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

/// Every resting order by symbol, bids then offers, in priority.
fn book_hash(matcher: &Matcher) -> u64 {
    let mut state = HASH_START;
    for book in (0..).map(BookIndex).take(matcher.books()) {
        for side in [Side::Buy, Side::Sell] {
            for order in matcher.orders(book, side) {
                for word in [order.id.0, order.price.0.cast_unsigned(), order.leaves.0] {
                    state = hash(state, word);
                }
            }
        }
    }
    state
}

/// FNV-1a over words, with a shift so that high bits reach low ones.
const fn hash(state: u64, word: u64) -> u64 {
    let mixed = (state ^ word).wrapping_mul(0x0100_0000_01b3);
    mixed ^ (mixed >> 29)
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

#[cfg(test)]
mod tests {
    use super::*;

    /// A workload of one book.
    fn workload(events: &[(u64, u8, i64)]) -> Workload {
        let mut bytes = b"LOBEVT01\x01\0\0\0\x01\0\0\0".to_vec();
        bytes.extend_from_slice(&(events.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        for &(id, side, price) in events {
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&[0, 0, 0, 0, b'N', side, 0, 0]);
            bytes.extend_from_slice(&price.to_le_bytes());
            bytes.extend_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0]);
        }
        Workload::parse(&bytes).expect("a workload")
    }

    #[test]
    fn an_order_that_trades_when_the_most_are_open_has_room() {
        for resting in 1..20u64 {
            let mut events: Vec<_> = (0..resting).map(|id| (id, b'S', 100 + id.cast_signed())).collect();
            events.push((u64::MAX, b'B', 100));
            let line = run(&workload(&events));
            assert!(
                line.contains("\"trades\":1,\"traded_qty\":5,\"rejects\":0"),
                "{resting}: {line}"
            );
        }
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for length in [0, 16, 31, 32] {
            assert!(Workload::parse(&[0; 32][..length]).is_none(), "{length}");
        }
    }
}
