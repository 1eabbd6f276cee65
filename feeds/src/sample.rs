//! Makes a feed: one minute of a small market that fits together, the same for the same seed.
//!
//! Every message is valid, refers to live orders only, and never crosses the book. Spreads stay between one tick and
//! [`MAX_SPREAD_TICKS`], both sides are always there, and the best price always has some hundred shares, so that an
//! immediate-or-cancel order at the touch fills. The prices walk because trades use levels up and new orders follow.

use proto::itch::{
    AddOrder, AddOrderAttributed, BuySell, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, Stamp, Stock, StockDirectory, SystemEvent, Trade,
};
use std::collections::{BTreeMap, VecDeque};
use zerocopy::{Immutable, IntoBytes};

/// The seed of the sample in the repository.
pub const SEED: u64 = 20_240_611;
/// Messages of the sample in the repository.
pub const MESSAGES: usize = 40_000;
/// Widest spread, ticks of a cent.
pub const MAX_SPREAD_TICKS: u32 = 5;

/// Symbol and first price in cents.
const SYMBOLS: [(&[u8; 8], u32); 8] = [
    (b"ALFA    ", 10_137),
    (b"BRVO    ", 4_215),
    (b"CHRL    ", 25_680),
    (b"DLTA    ", 1_872),
    (b"ECHO    ", 38_905),
    (b"FXTR    ", 7_350),
    (b"GOLF    ", 15_020),
    (b"HOTL    ", 2_944),
];

const OPEN_NS: u64 = 34_200_000_000_000;
/// Longest pause between two events; two in ten happen at the same time.
const MAX_PAUSE_NS: u64 = 3_600_000;
const CENT_E4: u32 = 100;
/// Price levels on each side at the opening, and orders on a side in the long run.
const OPENING_LEVELS: u32 = 8;
const USUAL_ORDERS: usize = 30;
/// Fewest shares at the best price.
const MIN_TOUCH_SHARES: u32 = 300;

/// The bytes of a BinaryFILE, not packed, with about `messages` messages.
#[must_use]
pub fn generate(seed: u64, messages: usize) -> Vec<u8> {
    let mut market = Market {
        output: Output::default(),
        random: Random(seed),
        time_ns: OPEN_NS - 1_000_000_000,
        next_reference: 1,
        next_match: 1,
    };
    let mut books = market.open();
    while market.output.messages < messages {
        market.pass_time();
        let index = market.random.index(books.len());
        market.event(&mut books[index]);
    }
    market.close()
}

/// Framed messages.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    messages: usize,
}

struct Market {
    output: Output,
    random: Random,
    time_ns: u64,
    next_reference: u64,
    next_match: u64,
}

/// One symbol's book.
struct Book {
    locate: u16,
    stock: Stock,
    bids: Side,
    asks: Side,
}

/// Orders by price in cents, oldest first.
struct Side {
    buy_sell: BuySell,
    levels: BTreeMap<u32, VecDeque<Order>>,
}

#[derive(Clone, Copy)]
struct Order {
    reference: u64,
    shares: u32,
}

impl Market {
    fn open(&mut self) -> Vec<Book> {
        self.emit(&SystemEvent::new(self.time_ns, SystemEvent::START_OF_MESSAGES));
        let mut books = Vec::new();
        for (locate, (symbol, _)) in (1..).zip(SYMBOLS) {
            let book = Book::new(locate, Stock(*symbol));
            self.emit(&StockDirectory::new(self.stamp(&book), book.stock, 100, false));
            books.push(book);
        }
        self.emit(&SystemEvent::new(self.time_ns, SystemEvent::START_OF_SYSTEM_HOURS));
        for (book, (_, cents)) in books.iter_mut().zip(SYMBOLS) {
            let spread = 1 + self.random.below(3);
            for level in 0..OPENING_LEVELS {
                for _ in 0..2 + self.random.below(2) {
                    self.add(book, BuySell::Buy, cents - level);
                    self.add(book, BuySell::Sell, cents + spread + level);
                }
            }
            self.mend(book);
        }
        self.time_ns = OPEN_NS;
        self.emit(&SystemEvent::new(self.time_ns, SystemEvent::START_OF_MARKET_HOURS));
        books
    }

    fn close(mut self) -> Vec<u8> {
        for event in [
            SystemEvent::END_OF_MARKET_HOURS,
            SystemEvent::END_OF_SYSTEM_HOURS,
            SystemEvent::END_OF_MESSAGES,
        ] {
            self.time_ns += 1_000_000;
            self.emit(&SystemEvent::new(self.time_ns, event));
        }
        self.output.bytes.extend([0, 0]);
        self.output.bytes
    }

    /// One thing that happens, and what the market makers do about it.
    fn event(&mut self, book: &mut Book) {
        let buy_sell = self.side();
        match self.random.below(100) {
            0..46 => self.add_somewhere(book, buy_sell),
            46..76 if book.side(buy_sell).orders() > USUAL_ORDERS / 2 => self.delete(book, buy_sell),
            76..84 => self.replace(book, buy_sell),
            84..90 => self.execute(book, buy_sell),
            90..95 => self.sweep(book, buy_sell),
            95..98 => self.cancel(book, buy_sell),
            98.. => self.trade_hidden(book),
            _ => self.add_somewhere(book, buy_sell),
        }
        self.mend(book);
    }

    fn add_somewhere(&mut self, book: &mut Book, buy_sell: BuySell) {
        if book.side(buy_sell).orders() >= USUAL_ORDERS * 2 {
            return self.delete(book, buy_sell);
        }
        let Some(best) = book.side(buy_sell).best() else { return };
        let depth = self.random.below(OPENING_LEVELS);
        let inside = book.spread() > 1 && self.random.below(4) == 0;
        let cents = match (inside, buy_sell) {
            (true, BuySell::Buy) => best + 1,
            (true, BuySell::Sell) => best - 1,
            (false, BuySell::Buy) => best.saturating_sub(depth).max(1),
            (false, BuySell::Sell) => best + depth,
        };
        self.add(book, buy_sell, cents);
    }

    fn add(&mut self, book: &mut Book, buy_sell: BuySell, cents: u32) {
        let shares = 100 * (1 + self.random.below(9));
        self.add_shares(book, buy_sell, cents, shares);
    }

    fn add_shares(&mut self, book: &mut Book, buy_sell: BuySell, cents: u32, shares: u32) {
        let reference = self.reference();
        let order = AddOrder::new(
            self.stamp(book),
            reference,
            buy_sell,
            shares,
            book.stock,
            cents * CENT_E4,
        );
        if self.random.below(32) == 0 {
            let mut order = order;
            order.header.message_type = b'F';
            self.emit(&AddOrderAttributed {
                order,
                attribution: *b"MAKR",
            });
        } else {
            self.emit(&order);
        }
        book.side_mut(buy_sell).insert(cents, Order { reference, shares });
    }

    fn delete(&mut self, book: &mut Book, buy_sell: BuySell) {
        let Some((cents, place)) = self.pick(book.side(buy_sell)) else {
            return;
        };
        let order = book.side_mut(buy_sell).remove(cents, place);
        self.emit(&OrderDelete::new(self.stamp(book), order.reference));
    }

    fn replace(&mut self, book: &mut Book, buy_sell: BuySell) {
        let Some((cents, place)) = self.pick(book.side(buy_sell)) else {
            return;
        };
        let new_cents = match buy_sell {
            BuySell::Buy => cents.saturating_sub(self.random.below(3)).max(1),
            BuySell::Sell => cents + self.random.below(3),
        };
        let original = book.side_mut(buy_sell).remove(cents, place).reference;
        let order = Order {
            reference: self.reference(),
            shares: 100 * (1 + self.random.below(9)),
        };
        let (reference, shares) = (order.reference, order.shares);
        self.emit(&OrderReplace::new(
            self.stamp(book),
            original,
            reference,
            shares,
            new_cents * CENT_E4,
        ));
        book.side_mut(buy_sell).insert(new_cents, order);
    }

    fn cancel(&mut self, book: &mut Book, buy_sell: BuySell) {
        let Some((cents, place)) = self.pick(book.side(buy_sell)) else {
            return;
        };
        let Some(order) = book.side_mut(buy_sell).order_mut(cents, place) else {
            return;
        };
        let shares = order.shares / 2;
        if shares > 0 {
            order.shares -= shares;
            let reference = order.reference;
            self.emit(&OrderCancel::new(self.stamp(book), reference, shares));
        }
    }

    /// The oldest order at the best price trades, in whole or in part.
    fn execute(&mut self, book: &mut Book, buy_sell: BuySell) {
        let side = book.side_mut(buy_sell);
        if side.orders() < 2 {
            return;
        }
        let Some(cents) = side.best() else { return };
        let Some(&mut order) = side.order_mut(cents, 0) else {
            return;
        };
        let all = self.random.below(3) > 0;
        let shares = if all {
            order.shares
        } else {
            1 + self.random.below(order.shares)
        };
        if shares == order.shares {
            side.remove(cents, 0);
        } else if let Some(order) = side.order_mut(cents, 0) {
            order.shares -= shares;
        }
        let (stamp, number) = (self.stamp(book), self.match_number());
        if self.random.below(25) == 0 {
            let price_e4 = cents * CENT_E4;
            self.emit(&OrderExecutedWithPrice::new(
                stamp,
                order.reference,
                shares,
                number,
                true,
                price_e4,
            ));
        } else {
            self.emit(&OrderExecuted::new(stamp, order.reference, shares, number));
        }
    }

    /// All orders at the best price trade, if enough remain behind them.
    fn sweep(&mut self, book: &mut Book, buy_sell: BuySell) {
        for order in book.side_mut(buy_sell).take_best() {
            let number = self.match_number();
            self.emit(&OrderExecuted::new(
                self.stamp(book),
                order.reference,
                order.shares,
                number,
            ));
        }
    }

    fn trade_hidden(&mut self, book: &Book) {
        let Some(cents) = book.bids.best() else { return };
        let (shares, number) = (100 * (1 + self.random.below(5)), self.match_number());
        self.emit(&Trade::new(
            self.stamp(book),
            shares,
            book.stock,
            cents * CENT_E4,
            number,
        ));
    }

    /// Keeps the market one that can be traded in: the spread narrow, the best prices with shares behind them. A best price
    /// that has become thin is given up or filled again, so that prices move and spreads change.
    fn mend(&mut self, book: &mut Book) {
        for buy_sell in [BuySell::Buy, BuySell::Sell] {
            if book.side(buy_sell).is_thin() && self.random.below(4) > 0 {
                self.give_up_best(book, buy_sell);
            }
        }
        while book.spread() > MAX_SPREAD_TICKS {
            let buy_sell = self.side();
            let Some(best) = book.side(buy_sell).best() else { return };
            let step = 1 + self.random.below(2);
            let cents = if buy_sell == BuySell::Buy {
                best + step
            } else {
                best - step
            };
            self.add(book, buy_sell, cents);
        }
        for buy_sell in [BuySell::Buy, BuySell::Sell] {
            let side = book.side(buy_sell);
            if let Some(best) = side.best()
                && side.is_thin()
            {
                let more = MIN_TOUCH_SHARES + 100 * self.random.below(4);
                self.add_shares(book, buy_sell, best, more);
            }
        }
    }

    /// Deletes the orders at the best price, if enough remain behind it.
    fn give_up_best(&mut self, book: &mut Book, buy_sell: BuySell) {
        for order in book.side_mut(buy_sell).take_best() {
            self.emit(&OrderDelete::new(self.stamp(book), order.reference));
        }
    }

    /// An order by chance: price and place in its level. Not the last of the side.
    fn pick(&mut self, side: &Side) -> Option<(u32, usize)> {
        let orders = side.orders();
        if orders < 2 {
            return None;
        }
        let mut place = self.random.index(orders);
        for (&cents, level) in &side.levels {
            if place < level.len() {
                return Some((cents, place));
            }
            place -= level.len();
        }
        None
    }

    fn side(&mut self) -> BuySell {
        if self.random.below(2) == 0 {
            BuySell::Buy
        } else {
            BuySell::Sell
        }
    }

    fn pass_time(&mut self) {
        if self.random.below(10) >= 2 {
            self.time_ns += self.random.next() % MAX_PAUSE_NS;
        }
    }

    /// References rise and have holes, as when other symbols are left out.
    fn reference(&mut self) -> u64 {
        self.next_reference += 1 + u64::from(self.random.below(4));
        self.next_reference
    }

    fn match_number(&mut self) -> u64 {
        self.next_match += 1;
        self.next_match
    }

    fn stamp(&self, book: &Book) -> Stamp {
        Stamp {
            stock_locate: book.locate,
            time_ns: self.time_ns,
        }
    }

    fn emit(&mut self, message: &(impl IntoBytes + Immutable)) {
        let bytes = message.as_bytes();
        // No message of the protocol is longer than 50 bytes.
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.output.bytes.extend(length.to_be_bytes());
        self.output.bytes.extend(bytes);
        self.output.messages += 1;
    }
}

impl Book {
    const fn new(locate: u16, stock: Stock) -> Self {
        Self {
            locate,
            stock,
            bids: Side::new(BuySell::Buy),
            asks: Side::new(BuySell::Sell),
        }
    }

    const fn side(&self, buy_sell: BuySell) -> &Side {
        match buy_sell {
            BuySell::Buy => &self.bids,
            BuySell::Sell => &self.asks,
        }
    }

    const fn side_mut(&mut self, buy_sell: BuySell) -> &mut Side {
        match buy_sell {
            BuySell::Buy => &mut self.bids,
            BuySell::Sell => &mut self.asks,
        }
    }

    /// Ticks between the best prices.
    fn spread(&self) -> u32 {
        match (self.bids.best(), self.asks.best()) {
            (Some(bid), Some(ask)) => ask - bid,
            _ => 0,
        }
    }
}

impl Side {
    const fn new(buy_sell: BuySell) -> Self {
        Self {
            buy_sell,
            levels: BTreeMap::new(),
        }
    }

    fn best(&self) -> Option<u32> {
        match self.buy_sell {
            BuySell::Buy => self.levels.last_key_value().map(|(&cents, _)| cents),
            BuySell::Sell => self.levels.first_key_value().map(|(&cents, _)| cents),
        }
    }

    fn orders(&self) -> usize {
        self.levels.values().map(VecDeque::len).sum()
    }

    /// Takes out the orders at the best price; none when too few would remain.
    fn take_best(&mut self) -> VecDeque<Order> {
        let Some(cents) = self.best() else {
            return VecDeque::new();
        };
        let remaining = self.orders() - self.levels.get(&cents).map_or(0, VecDeque::len);
        if remaining < USUAL_ORDERS / 2 {
            return VecDeque::new();
        }
        self.levels.remove(&cents).unwrap_or_default()
    }

    /// Whether the best price has too few shares.
    fn is_thin(&self) -> bool {
        let best = self.best().and_then(|cents| self.levels.get(&cents));
        best.is_some_and(|level| level.iter().map(|order| order.shares).sum::<u32>() < MIN_TOUCH_SHARES)
    }

    fn insert(&mut self, cents: u32, order: Order) {
        self.levels.entry(cents).or_default().push_back(order);
    }

    fn order_mut(&mut self, cents: u32, place: usize) -> Option<&mut Order> {
        self.levels.get_mut(&cents)?.get_mut(place)
    }

    /// Takes out an order that is there.
    fn remove(&mut self, cents: u32, place: usize) -> Order {
        let level = self.levels.get_mut(&cents).expect("a level that was picked");
        let order = level.remove(place).expect("an order that was picked");
        if level.is_empty() {
            self.levels.remove(&cents);
        }
        order
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An index into what has `length` elements.
    const fn index(&mut self, length: usize) -> usize {
        (((self.next() >> 32) * length as u64) >> 32) as usize
    }

    /// From 0 up to but not including `end`.
    #[allow(clippy::cast_possible_truncation, reason = "the result is below a u32")]
    const fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * end as u64) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BinaryFile;
    use crate::instruments;
    use proto::itch::{BookLimits, Books, Message, parse};
    use std::fs::File;
    use std::io::Read;
    use types::{Price, Symbol};

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample/sample.itch.gz");
    const MASTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/instruments.csv");

    #[test]
    fn the_sample_in_the_repository_is_what_its_seed_makes() {
        let mut bytes = Vec::new();
        let file = File::open(SAMPLE).expect("sample");
        flate2::read::GzDecoder::new(file)
            .read_to_end(&mut bytes)
            .expect("gzip");
        assert!(
            bytes == generate(SEED, MESSAGES),
            "run the example generate_feed, see feeds/sample/README.md"
        );
        assert!(generate(SEED + 1, 1_000) != generate(SEED, 1_000), "the seed matters");
    }

    #[test]
    fn the_instrument_master_in_the_repository_matches_the_sample() {
        let mut inspection = crate::Inspection::new(None);
        let mut file = BinaryFile::open(SAMPLE.as_ref()).expect("sample");
        while let Some(message) = file.next_message().expect("message") {
            inspection.on_message(message);
        }
        let (rows, left_out) = inspection.instrument_rows("default", "sim");
        assert_eq!(left_out, 0);
        assert_eq!(instruments::read(MASTER.as_ref()).expect("instrument master"), rows);
    }

    #[test]
    fn the_market_can_be_traded_in_at_every_moment() {
        let bytes = generate(SEED, MESSAGES);
        let mut file = BinaryFile::new(bytes.as_slice(), "sample");
        let mut books = Books::new(&BookLimits {
            instruments: SYMBOLS.len(),
            orders: 4096,
            levels: 256,
        });
        for (symbol, _) in SYMBOLS {
            books.add(Symbol::new(symbol).expect("symbol"));
        }
        let mut last_ns = 0;
        let mut spreads = [0_u64; MAX_SPREAD_TICKS as usize + 1];
        let (mut open, mut trades) = (false, 0);
        while let Some(bytes) = file.next_message().expect("message") {
            let message = parse(bytes).expect("valid");
            let time_ns = message.header().time_ns();
            // What the market makers mend has the time of what they mend, so the book is whole when time goes on.
            if open && time_ns > last_ns {
                for index in 0..books.len() {
                    let bbo = books.bbo(index);
                    let ticks = (bbo.ask.price.0 - bbo.bid.price.0) / Price::UNIT * 100
                        + (bbo.ask.price.0 - bbo.bid.price.0) % Price::UNIT / 10_000_000;
                    spreads[usize::try_from(ticks).expect("not crossed")] += 1;
                    assert!(bbo.bid.quantity.0 >= 300 && bbo.ask.quantity.0 >= 300, "{bbo:?}");
                }
            }
            assert!(time_ns >= last_ns);
            last_ns = time_ns;
            if let Message::SystemEvent(event) = message {
                open = event.event == SystemEvent::START_OF_MARKET_HOURS;
            }
            trades += u64::from(books.apply(&message).is_some_and(|change| change.trade));
        }
        assert_eq!(books.counters(), proto::itch::BookCounters::default());
        assert_eq!(spreads[0], 0);
        assert!(spreads[1..].iter().all(|&count| count > 1_000), "{spreads:?}");
        assert!(trades > 3_000, "{trades}");
        let seconds = (last_ns - OPEN_NS) / 1_000_000_000;
        assert!((45..90).contains(&seconds), "{seconds}");
    }
}
