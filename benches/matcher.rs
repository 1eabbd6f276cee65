//! What an event costs the matcher as its books grow: with the number of resting orders, and with the number of symbols.
//!
//! `cargo bench --bench matcher`. Each line is a matcher filled with orders, then kept at that number: half of the events
//! are new orders, one of ten takes what is best in a symbol drawn evenly from all, the rest cancel a resting order drawn
//! evenly from all of them. So the larger the books, the colder every order that is touched: a worse case than a real
//! market's, where what is cancelled was entered lately. Half of the new orders are near the best price, half anywhere in
//! a thousand ticks.
//!
//! The memory lies in huge pages where there are any, as that of gateway and exchange does. Events come in batches, so that the clock's own cost vanishes; drawing them and keeping count is between the batches.

use matcher::{BookIndex, Capacity, Matcher, NewOrder, OwnerId, Report, SelfMatch};
use std::hint::black_box;
use std::time::Instant;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

/// Resting orders of one symbol.
const ORDERS: [u32; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Symbols that share [`SHARED`] orders.
const SYMBOLS: [u32; 5] = [1, 10, 100, 1_000, 10_000];
const SHARED: u32 = 1_000_000;
/// Enough to see that it runs, for `cargo test --benches`.
const TEST_ORDERS: u32 = 1_000;
const BATCH: usize = 200;
const BATCHES: usize = 5_000;
const TEST_BATCHES: usize = 10;
/// In the middle of the prices, 1e-9.
const MIDDLE: i64 = 1_000_000;
/// Ticks on each side of the middle that have orders.
const DEPTH: i64 = 1_000;
const LOTS: u64 = 100;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let batches = if is_bench { BATCHES } else { TEST_BATCHES };
    println!("ns an event, medians of {batches} batches of {BATCH} events");
    println!(
        "{:>8} {:>10} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "symbols", "orders", "MiB", "event", "new", "cancel", "take"
    );
    let by_orders = ORDERS.map(|orders| (1, orders));
    let by_symbols = SYMBOLS.map(|symbols| (symbols, SHARED));
    for (symbols, orders) in by_orders.into_iter().chain(by_symbols) {
        if is_bench || orders == TEST_ORDERS {
            println!("{}", Market::new(symbols, orders).measure(batches));
        }
    }
}

/// A matcher with its orders, and where each of them is.
struct Market {
    matcher: Matcher,
    symbols: u32,
    /// MiB the matcher took when it was built.
    memory: usize,
    random: u64,
    /// Ids of resting orders. The low half of an id is a place, the high half tells those apart that had the same one.
    resting: Vec<OrderId>,
    /// By place, the index in `resting`.
    position: Vec<usize>,
    free: Vec<u32>,
    entered: u64,
}

impl Market {
    fn new(symbols: u32, orders: u32) -> Self {
        let places = orders + u32::try_from(2 * BATCH).expect("a batch is small");
        let capacity = Capacity {
            books: symbols as usize,
            orders: places as usize,
            levels: places as usize,
            special: 0,
        };
        let mut market = Self {
            matcher: Matcher::new(capacity, SelfMatch::Allow),
            symbols,
            memory: capacity.memory() >> 20,
            random: 1,
            resting: Vec::with_capacity(places as usize),
            position: vec![0; places as usize],
            free: (0..places).rev().collect(),
            entered: 0,
        };
        if let Err(error) = net::huge_pages::gather() {
            eprintln!("no huge pages: {error}");
        }
        while market.resting.len() < orders as usize {
            let order = market.order();
            market.matcher.add(&order, &mut |_| {});
            market.rests(order.id);
        }
        market
    }

    /// Runs the batches; a line of figures.
    fn measure(&mut self, batches: usize) -> String {
        let orders = self.resting.len();
        let [mut all, mut new, mut cancel, mut take] = [const { Vec::new() }; 4];
        let mut gone = Vec::with_capacity(BATCH);
        for _ in 0..batches {
            let orders_new: Vec<_> = (0..BATCH / 2).map(|_| self.order()).collect();
            let new_ns = timed(|| {
                for order in &orders_new {
                    self.matcher.add(order, &mut |report| _ = black_box(report));
                }
            });
            for order in &orders_new {
                self.rests(order.id);
            }

            let orders_taken: Vec<_> = (0..BATCH / 10).map(|_| self.taker()).collect();
            let take_ns = timed(|| {
                for order in &orders_taken {
                    self.matcher.add(order, &mut |report| {
                        if let Report::Trade(trade) = report
                            && trade.maker_leaves.0 == 0
                        {
                            gone.push(trade.maker);
                        }
                    });
                }
            });
            for id in gone.drain(..) {
                self.is_gone(id);
            }

            // As many as it takes to have the same number again: four of ten events, but for what trades.
            let cancels: Vec<_> = (orders..self.resting.len()).map(|_| self.any_resting()).collect();
            let cancel_ns = timed(|| {
                for &id in &cancels {
                    self.matcher
                        .cancel(id, Reason::Requested, &mut |report| _ = black_box(report));
                }
            });
            all.push((new_ns + take_ns + cancel_ns) / count(orders_new.len() + orders_taken.len() + cancels.len()));
            new.push(new_ns / count(orders_new.len()));
            take.push(take_ns / count(orders_taken.len()));
            if !cancels.is_empty() {
                cancel.push(cancel_ns / count(cancels.len()));
            }
        }
        assert_eq!(self.matcher.order_count(), self.resting.len());
        format!(
            "{:>8} {:>10} {:>7} {:>7.0} {:>7.0} {:>7.0} {:>7.0}",
            self.symbols,
            orders,
            self.memory,
            median(&mut all),
            median(&mut new),
            median(&mut cancel),
            median(&mut take),
        )
    }

    /// A new order that trades with nothing.
    fn order(&mut self) -> NewOrder {
        let place = self.free.pop().expect("no more orders than places");
        self.entered += 1;
        let (book, side) = self.somewhere();
        let ticks = if self.below(2) == 0 {
            // Each tick further from the middle has half the orders of the one before.
            i64::from(self.next().trailing_zeros().min(30))
        } else {
            self.below(DEPTH)
        };
        NewOrder {
            id: OrderId((self.entered << 32) | u64::from(place)),
            book,
            owner: OwnerId::NONE,
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price: match side {
                Side::Buy => Price(MIDDLE - 1 - ticks),
                Side::Sell => Price(MIDDLE + ticks),
            },
            quantity: Quantity(LOTS),
        }
    }

    /// An order that takes what is best, as much as one order has.
    fn taker(&mut self) -> NewOrder {
        let (book, side) = self.somewhere();
        self.entered += 1;
        NewOrder {
            id: OrderId((self.entered << 32) | u64::from(u32::MAX)),
            book,
            owner: OwnerId::NONE,
            side,
            order_type: OrderType::Market,
            time_in_force: TimeInForce::ImmediateOrCancel,
            price: Price::NULL,
            quantity: Quantity(LOTS),
        }
    }

    fn somewhere(&mut self) -> (BookIndex, Side) {
        let book = BookIndex(u32::try_from(self.below(i64::from(self.symbols))).expect("below a u32"));
        (book, if self.below(2) == 0 { Side::Buy } else { Side::Sell })
    }

    /// Takes a resting order from the list.
    fn any_resting(&mut self) -> OrderId {
        let length = i64::try_from(self.resting.len()).expect("a length");
        let at = usize::try_from(self.below(length)).expect("an index");
        let id = self.resting[at];
        self.is_gone(id);
        id
    }

    fn rests(&mut self, id: OrderId) {
        self.position[place(id)] = self.resting.len();
        self.resting.push(id);
    }

    fn is_gone(&mut self, id: OrderId) {
        let at = self.position[place(id)];
        self.resting.swap_remove(at);
        if let Some(&moved) = self.resting.get(at) {
            self.position[place(moved)] = at;
        }
        self.free.push(u32::try_from(place(id)).expect("a place is a u32"));
    }

    /// Evenly from zero to below `bound`.
    fn below(&mut self, bound: i64) -> i64 {
        let product = u128::from(self.next()) * u128::from(bound.unsigned_abs());
        i64::try_from(product >> 64).expect("below the bound")
    }

    /// Splitmix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

fn place(id: OrderId) -> usize {
    usize::try_from(id.0 & u64::from(u32::MAX)).expect("32 bits")
}

/// Nanoseconds that `work` takes.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
const fn count(events: usize) -> f64 {
    events as f64
}

fn median(costs: &mut [f64]) -> f64 {
    costs.sort_unstable_by(f64::total_cmp);
    costs.get(costs.len() / 2).copied().unwrap_or(f64::NAN)
}
