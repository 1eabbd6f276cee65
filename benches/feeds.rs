//! How fast a feed is read and its books are built, beside the crate itch5 and a plain book in the same run.
//!
//! `cargo bench --bench feeds`, or `TICKGATE_FEED=FILE cargo bench --bench feeds` for a feed of one's own (plain or gzipped
//! BinaryFILE). The whole feed is in memory; each figure is processor time of one thread, the best of [`ROUNDS`] rounds.

use feeds::{BinaryFile, FeedFile, sample};
use itch5::{MessageHandler, Parser, messages as theirs};
use proto::itch::{BookLimits, Books, Message, parse};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const ROUNDS: usize = 5;
const GENERATED_MESSAGES: usize = 2_000_000;
const LIMITS: BookLimits = BookLimits {
    instruments: 16_384,
    orders: 1 << 21,
    levels: 1024,
};

fn main() {
    let bytes = match std::env::var_os("TICKGATE_FEED") {
        Some(path) => load(Path::new(&path)),
        None => sample::generate(sample::SEED, GENERATED_MESSAGES),
    };
    // itch5 does not know the length 0 that ends a session.
    let bytes = bytes.strip_suffix(&[0, 0]).unwrap_or(&bytes);
    let count = each_message(bytes, |_| {});
    println!("{count} messages, {} bytes", bytes.len());
    println!(
        "{:<44} {:>12} {:>12} {:>8}",
        "", "ns a message", "M messages/s", "ratio"
    );

    let framing = row("framing (BinaryFile)", count, None, || each_message(bytes, |_| {}));
    let parsing = row("parsing, fields touched", count, Some(framing), || parse_all(bytes));
    row("  the same by itch5, whole slice", count, Some(parsing), || {
        let mut touch = Touch(0);
        Parser::new(bytes).parse_stream(&mut touch).expect("valid feed");
        touch.0
    });
    let books = row(
        "books (Books), framing and parsing included",
        count,
        Some(parsing),
        || {
            let mut books = Books::new(&LIMITS);
            let mut changes = 0;
            each_message(bytes, |bytes| {
                let Ok(message) = parse(bytes) else { return };
                if let Message::StockDirectory(directory) = message
                    && let Some(symbol) = directory.stock.symbol()
                {
                    books.add(symbol);
                }
                changes += u64::from(books.apply(&message).is_some());
            });
            assert_eq!(books.counters(), proto::itch::BookCounters::default());
            changes
        },
    );
    row(
        "  the same by a hash map and sorted vectors",
        count,
        Some(books),
        || {
            let mut plain = PlainBooks::default();
            each_message(bytes, |bytes| {
                if let Ok(message) = parse(bytes) {
                    plain.apply(&message);
                }
            });
            plain.orders.len() as u64
        },
    );
}

fn load(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = FeedFile::open(path).unwrap_or_else(|error| panic!("{error}"));
    file.read_to_end(&mut bytes).expect("readable");
    bytes
}

/// Runs and prints one line: figures of the best round, and time relative to `base`.
fn row(name: &str, count: u64, base: Option<Duration>, mut run: impl FnMut() -> u64) -> Duration {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = cpu_time();
            black_box(run());
            cpu_time() - start
        })
        .min()
        .unwrap_or_default();
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    let ns = best.as_nanos() as f64 / count as f64;
    let ratio = base.map_or(String::new(), |base| {
        format!("{:.2}", best.as_secs_f64() / base.as_secs_f64())
    });
    println!("{name:<44} {ns:>12.1} {:>12.1} {ratio:>8}", 1e3 / ns);
    best
}

/// Time that this thread was on a processor, so that neighbours on the same machine count for less.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with schedstat");
    let ns = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("a number"))
}

fn each_message(bytes: &[u8], mut take: impl FnMut(&[u8])) -> u64 {
    let mut file = BinaryFile::new(bytes, "bench");
    while let Some(message) = file.next_message().expect("readable") {
        take(message);
    }
    file.messages()
}

fn parse_all(bytes: &[u8]) -> u64 {
    let mut touched = 0_u64;
    each_message(bytes, |bytes| {
        let Ok(message) = parse(bytes) else { return };
        touched = touched.wrapping_add(match message {
            Message::AddOrder(m) => m.reference.get() ^ u64::from(m.shares.get()) ^ u64::from(m.price_e4.get()),
            Message::OrderDelete(m) => m.reference.get(),
            Message::OrderReplace(m) => m.original.get() ^ m.reference.get() ^ u64::from(m.price_e4.get()),
            Message::OrderExecuted(m) => m.reference.get() ^ u64::from(m.shares.get()),
            Message::OrderCancel(m) => m.reference.get() ^ u64::from(m.shares.get()),
            other => other.header().time_ns(),
        });
    });
    touched
}

/// Reads the same fields by itch5.
struct Touch(u64);

impl Touch {
    fn add(&mut self, value: u64) -> ControlFlow<()> {
        self.0 = self.0.wrapping_add(value);
        ControlFlow::Continue(())
    }
}

impl MessageHandler for Touch {
    fn on_add_order_no_mpid_attribution(&mut self, m: &theirs::AddOrderNoMPIDAttribution) -> ControlFlow<()> {
        self.add(m.order_reference_number() ^ u64::from(m.shares()) ^ u64::from(m.price().into_u32()))
    }
    fn on_order_delete(&mut self, m: &theirs::OrderDelete) -> ControlFlow<()> {
        self.add(m.order_reference_number())
    }
    fn on_order_replace(&mut self, m: &theirs::OrderReplace) -> ControlFlow<()> {
        let numbers = m.original_order_reference_number() ^ m.new_order_reference_number();
        self.add(numbers ^ u64::from(m.price().into_u32()))
    }
    fn on_order_executed(&mut self, m: &theirs::OrderExecuted) -> ControlFlow<()> {
        self.add(m.order_reference_number() ^ u64::from(m.executed_shares()))
    }
    fn on_order_cancel(&mut self, m: &theirs::OrderCancel) -> ControlFlow<()> {
        self.add(m.order_reference_number() ^ u64::from(m.cancelled_shares()))
    }
}

/// A book as one would write it first.
#[derive(Default)]
struct PlainBooks {
    orders: HashMap<u64, PlainOrder>,
    /// Price and shares by (locate, is buy), ascending.
    sides: HashMap<(u16, bool), Vec<(u32, u64)>>,
}

#[derive(Clone, Copy)]
struct PlainOrder {
    side: (u16, bool),
    price_e4: u32,
    shares: u32,
}

impl PlainBooks {
    fn apply(&mut self, message: &Message<'_>) {
        match message {
            Message::AddOrder(m) => self.add_order(m),
            Message::AddOrderAttributed(m) => self.add_order(&m.order),
            Message::OrderDelete(m) => self.reduce(m.reference.get(), u32::MAX),
            Message::OrderCancel(m) => self.reduce(m.reference.get(), m.shares.get()),
            Message::OrderExecuted(m) => self.reduce(m.reference.get(), m.shares.get()),
            Message::OrderExecutedWithPrice(m) => self.reduce(m.executed.reference.get(), m.executed.shares.get()),
            Message::OrderReplace(m) => {
                let Some(&PlainOrder { side, .. }) = self.orders.get(&m.original.get()) else {
                    return;
                };
                self.reduce(m.original.get(), u32::MAX);
                let (price_e4, shares) = (m.price_e4.get(), m.shares.get());
                self.insert(m.reference.get(), PlainOrder { side, price_e4, shares });
            }
            _ => {}
        }
    }

    fn add_order(&mut self, m: &proto::itch::AddOrder) {
        let side = (m.header.stock_locate.get(), m.side() == types::Side::Buy);
        let (price_e4, shares) = (m.price_e4.get(), m.shares.get());
        self.insert(m.reference.get(), PlainOrder { side, price_e4, shares });
    }

    fn insert(&mut self, reference: u64, order: PlainOrder) {
        let levels = self.sides.entry(order.side).or_default();
        match levels.binary_search_by_key(&order.price_e4, |&(price_e4, _)| price_e4) {
            Ok(place) => levels[place].1 += u64::from(order.shares),
            Err(place) => levels.insert(place, (order.price_e4, u64::from(order.shares))),
        }
        self.orders.insert(reference, order);
    }

    fn reduce(&mut self, reference: u64, shares: u32) {
        let Some(order) = self.orders.get_mut(&reference) else {
            return;
        };
        let shares = shares.min(order.shares);
        order.shares -= shares;
        let PlainOrder {
            side,
            price_e4,
            shares: left,
        } = *order;
        if left == 0 {
            self.orders.remove(&reference);
        }
        let Some(levels) = self.sides.get_mut(&side) else {
            return;
        };
        if let Ok(place) = levels.binary_search_by_key(&price_e4, |&(price_e4, _)| price_e4) {
            levels[place].1 -= u64::from(shares);
            if levels[place].1 == 0 {
                levels.remove(place);
            }
        }
    }
}
