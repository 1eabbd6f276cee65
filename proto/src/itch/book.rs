//! The books of several instruments, built of a feed's messages: every order by its reference, price levels with their
//! shares, best bid and offer, last trade.
//!
//! All memory is allocated at construction; the limits are in [`BookLimits`]. What finds no room, refers to an order that
//! is not known, or takes more than is there, is counted and changes nothing else.

use super::levels::{Levels, SideIndex};
use super::messages::{BuySell, Header, Stock};
use super::order_table::{Order, OrderTable, Place};
use super::{Message, StockDirectory};
use alloc::vec::Vec;
use types::{Bbo, Price, Quantity, Quote, Side, Symbol, Timestamp};

/// How much [`Books`] hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookLimits {
    /// Instruments; at most [`BookLimits::MAX_INSTRUMENTS`].
    pub instruments: usize,
    /// Live orders of all instruments; at most [`BookLimits::MAX_ORDERS`].
    pub orders: usize,
    /// Price levels on each side of an instrument.
    pub levels: usize,
}

/// The books of a feed. Name the instruments with [`Books::add`], then give every message to [`Books::apply`].
pub struct Books {
    limits: BookLimits,
    instruments: Vec<Instrument>,
    /// Index into `instruments` by symbol, sorted.
    by_symbol: Vec<(Symbol, u16)>,
    /// What each stock locate of the day stands for.
    by_locate: Vec<Locate>,
    orders: OrderTable,
    levels: Levels,
    counters: BookCounters,
}

/// What a message changed for one instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Which instrument, as [`Books::add`] numbered it.
    pub index: usize,
    /// Best bid or offer, price or shares.
    pub quote: bool,
    /// There was a trade.
    pub trade: bool,
}

/// What [`Books`] could not use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BookCounters {
    /// Messages of instruments that were not added.
    pub foreign_messages: u64,
    /// Stock directory messages of instruments that were not added.
    pub foreign_stocks: u64,
    /// References to an order that is not known.
    pub unknown_orders: u64,
    /// Orders whose reference is live already, that have no shares, or that lose more shares than they have.
    pub inconsistent: u64,
    /// Orders that found no room.
    pub overflowed: u64,
}

struct Instrument {
    symbol: Symbol,
    last: Price,
}

/// Index of an instrument plus one, or one of the constants.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Locate(u16);

impl BookLimits {
    /// A stock locate has 16 bits, and two values are needed for what is not an instrument.
    pub const MAX_INSTRUMENTS: usize = u16::MAX as usize - 1;
    /// Price levels are numbered with 32 bits, and there are at most as many as orders.
    pub const MAX_ORDERS: usize = 1 << 30;

    /// Bytes that [`Books`] of these limits allocate.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.instruments * (size_of::<Instrument>() + size_of::<(Symbol, u16)>())
            + LOCATES * size_of::<Locate>()
            + OrderTable::memory_bytes(self.orders)
            + Levels::memory_bytes(self)
    }
}

impl Books {
    /// Empty books without instruments.
    #[must_use]
    pub fn new(limits: &BookLimits) -> Self {
        assert!(
            limits.instruments <= BookLimits::MAX_INSTRUMENTS,
            "too many instruments"
        );
        assert!(limits.orders <= BookLimits::MAX_ORDERS, "too many orders");
        Self {
            limits: *limits,
            instruments: Vec::with_capacity(limits.instruments),
            by_symbol: Vec::with_capacity(limits.instruments),
            by_locate: alloc::vec![Locate::UNSEEN; LOCATES],
            orders: OrderTable::new(limits.orders),
            levels: Levels::new(limits),
            counters: BookCounters::default(),
        }
    }

    /// Adds an instrument and gives its index: the first has 0, the next 1. One that is there already keeps its index.
    /// `None` when there is no room.
    pub fn add(&mut self, symbol: Symbol) -> Option<usize> {
        let place = match self.by_symbol.binary_search_by_key(&symbol, |&(symbol, _)| symbol) {
            Ok(place) => return Some(usize::from(self.by_symbol[place].1)),
            Err(place) => place,
        };
        let index = self.instruments.len();
        if index >= self.limits.instruments {
            return None;
        }
        let number = u16::try_from(index).ok()?;
        self.by_symbol.insert(place, (symbol, number));
        self.instruments.push(Instrument {
            symbol,
            last: Price::NULL,
        });
        Some(index)
    }

    /// Forgets orders, trades and what the stock locates stand for; the instruments stay. For a new session of the feed,
    /// or when so much was lost that what is left would mislead.
    pub fn clear(&mut self) {
        self.by_locate.fill(Locate::UNSEEN);
        self.clear_orders();
        for instrument in &mut self.instruments {
            instrument.last = Price::NULL;
        }
    }

    /// Forgets the orders alone.
    pub fn clear_orders(&mut self) {
        self.orders.clear();
        self.levels.clear();
    }

    /// Takes the next message of the feed. `None`: it changed no best price and was no trade.
    pub fn apply(&mut self, message: &Message<'_>) -> Option<Change> {
        match message {
            Message::AddOrder(add) => {
                let index = self.instrument(&add.header, Some(add.stock))?;
                let side = SideIndex::new(index, add.buy_sell);
                self.changing(side, |books| {
                    books.insert(side, add.reference.get(), add.shares.get(), add.price_e4.get())
                })
            }
            Message::AddOrderAttributed(attributed) => self.apply(&Message::AddOrder(&attributed.order)),
            Message::OrderDelete(delete) => {
                self.instrument(&delete.header, None)?;
                self.reduce(delete.reference.get(), None)
                    .and_then(Reduced::quote_change)
            }
            Message::OrderCancel(cancel) => {
                self.instrument(&cancel.header, None)?;
                self.reduce(cancel.reference.get(), Some(cancel.shares.get()))
                    .and_then(Reduced::quote_change)
            }
            Message::OrderReplace(replace) => {
                self.instrument(&replace.header, None)?;
                let place = self.find(replace.original.get())?;
                let side = self.levels.side(self.orders.at(place).level);
                self.changing(side, |books| {
                    books.take(place, None);
                    books.insert(
                        side,
                        replace.reference.get(),
                        replace.shares.get(),
                        replace.price_e4.get(),
                    );
                })
            }
            Message::OrderExecuted(executed) => {
                self.instrument(&executed.header, None)?;
                let reduced = self.reduce(executed.reference.get(), Some(executed.shares.get()))?;
                Some(self.trade(reduced, reduced.price))
            }
            Message::OrderExecutedWithPrice(at_price) => {
                let executed = &at_price.executed;
                self.instrument(&executed.header, None)?;
                let reduced = self.reduce(executed.reference.get(), Some(executed.shares.get()))?;
                if at_price.is_printable() {
                    return Some(self.trade(reduced, at_price.price()));
                }
                reduced.quote_change()
            }
            Message::Trade(trade) => {
                let index = self.instrument(&trade.header, Some(trade.stock))?;
                Some(self.trade_beside(index, trade.price()))
            }
            Message::CrossTrade(cross) => {
                let index = self.instrument(&cross.header, Some(cross.stock))?;
                (cross.shares.get() > 0).then(|| self.trade_beside(index, cross.price()))
            }
            Message::StockDirectory(directory) => {
                self.on_directory(directory);
                None
            }
            Message::SystemEvent(_) | Message::TradingAction(_) | Message::BrokenTrade(_) | Message::Other(_) => None,
        }
    }

    /// Instruments added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.instruments.len()
    }

    /// Whether no instrument was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.instruments.is_empty()
    }

    /// The instrument that a stock locate stands for, as far as the messages said so.
    #[must_use]
    pub fn at_locate(&self, stock_locate: u16) -> Option<usize> {
        self.by_locate[usize::from(stock_locate)].index()
    }

    /// Symbol of an instrument.
    #[must_use]
    pub fn symbol(&self, index: usize) -> Symbol {
        self.instruments[index].symbol
    }

    /// Best bid, best offer and last trade of an instrument. Quantities are shares; the time is for the caller to fill in.
    #[must_use]
    pub fn bbo(&self, index: usize) -> Bbo {
        let quote = |side| {
            let (price_e4, shares) = self.levels.best(side)?;
            Some(quote(price_e4, shares))
        };
        Bbo {
            bid: quote(SideIndex::new(index, BuySell::Buy)).unwrap_or_default(),
            ask: quote(SideIndex::new(index, BuySell::Sell)).unwrap_or_default(),
            last: self.instruments[index].last,
            time: Timestamp::NONE,
        }
    }

    /// The price levels of one side, best first, in shares.
    pub fn depth(&self, index: usize, side: Side) -> impl Iterator<Item = Quote> {
        self.levels
            .iter(SideIndex::new(index, side.into()))
            .map(|(price_e4, shares)| quote(price_e4, shares))
    }

    /// Live orders of all instruments.
    #[must_use]
    pub const fn live_orders(&self) -> usize {
        self.orders.live()
    }

    /// What could not be used so far.
    #[must_use]
    pub const fn counters(&self) -> BookCounters {
        self.counters
    }

    fn on_directory(&mut self, directory: &StockDirectory) {
        let locate = self.locate_of(directory.stock);
        if locate == Locate::FOREIGN {
            self.counters.foreign_stocks += 1;
        }
        self.by_locate[usize::from(directory.header.stock_locate.get())] = locate;
    }

    fn locate_of(&self, stock: Stock) -> Locate {
        stock
            .symbol()
            .and_then(|symbol| self.by_symbol.binary_search_by_key(&symbol, |&(symbol, _)| symbol).ok())
            .map_or(Locate::FOREIGN, |place| Locate::new(self.by_symbol[place].1))
    }

    /// The instrument that a message is about. Its stock, where the message has it, serves a locate that no stock
    /// directory named yet: the feed was joined late.
    #[inline]
    fn instrument(&mut self, header: &Header, stock: Option<Stock>) -> Option<usize> {
        let number = usize::from(header.stock_locate.get());
        let mut locate = self.by_locate[number];
        if locate == Locate::UNSEEN
            && let Some(stock) = stock
        {
            locate = self.locate_of(stock);
            self.by_locate[number] = locate;
        }
        let index = locate.index();
        if index.is_none() {
            self.counters.foreign_messages += 1;
        }
        index
    }

    fn find(&mut self, reference: u64) -> Option<usize> {
        match self.orders.find(reference) {
            Place::Taken(place) => Some(place),
            Place::Free(_) => {
                self.counters.unknown_orders += 1;
                None
            }
        }
    }

    /// Runs `operation` and tells whether the best price or its shares differ after it.
    #[inline]
    fn changing(&mut self, side: SideIndex, operation: impl FnOnce(&mut Self)) -> Option<Change> {
        let before = self.levels.best(side);
        operation(self);
        (self.levels.best(side) != before).then(|| Change {
            index: side.instrument(),
            quote: true,
            trade: false,
        })
    }

    #[inline]
    fn insert(&mut self, side: SideIndex, reference: u64, shares: u32, price_e4: u32) {
        let Place::Free(place) = self.orders.find(reference) else {
            self.counters.inconsistent += 1;
            return;
        };
        if shares == 0 {
            self.counters.inconsistent += 1;
            return;
        }
        if self.orders.is_full() {
            self.counters.overflowed += 1;
            return;
        }
        let Some(level) = self.levels.add(side, price_e4, shares) else {
            self.counters.overflowed += 1;
            return;
        };
        self.orders.insert(place, reference, Order { shares, level });
    }

    /// Takes shares off an order, all of them for `None`.
    #[inline]
    fn reduce(&mut self, reference: u64, shares: Option<u32>) -> Option<Reduced> {
        let place = self.find(reference)?;
        let level = self.orders.at(place).level;
        let side = self.levels.side(level);
        let price = price(self.levels.price_e4(level));
        let quote = self.changing(side, |books| books.take(place, shares)).is_some();
        Some(Reduced {
            index: side.instrument(),
            price,
            quote,
        })
    }

    /// Takes shares off the order at a place, all of them for `None`.
    #[inline]
    fn take(&mut self, place: usize, shares: Option<u32>) {
        let order = self.orders.at(place);
        let shares = shares.unwrap_or(order.shares);
        if shares > order.shares {
            self.counters.inconsistent += 1;
        }
        let left = order.shares.saturating_sub(shares);
        if left == 0 {
            self.orders.remove(place);
        } else {
            self.orders.set_shares(place, left);
        }
        self.levels.reduce(order.level, order.shares - left);
    }

    fn trade(&mut self, reduced: Reduced, price: Price) -> Change {
        self.instruments[reduced.index].last = price;
        Change {
            index: reduced.index,
            quote: reduced.quote,
            trade: true,
        }
    }

    /// A trade that the displayed book had no part in.
    fn trade_beside(&mut self, index: usize, price: Price) -> Change {
        self.instruments[index].last = price;
        Change {
            index,
            quote: false,
            trade: true,
        }
    }
}

/// What taking shares off an order did.
#[derive(Clone, Copy)]
struct Reduced {
    index: usize,
    /// The order's price.
    price: Price,
    quote: bool,
}

impl Reduced {
    fn quote_change(self) -> Option<Change> {
        self.quote.then_some(Change {
            index: self.index,
            quote: true,
            trade: false,
        })
    }
}

impl Locate {
    /// No message said yet what it stands for.
    const UNSEEN: Self = Self(0);
    /// It stands for an instrument that was not added.
    const FOREIGN: Self = Self(u16::MAX);

    const fn new(index: u16) -> Self {
        Self(index + 1)
    }

    fn index(self) -> Option<usize> {
        (self != Self::UNSEEN && self != Self::FOREIGN).then(|| usize::from(self.0) - 1)
    }
}

/// Stock locates that 16 bits can name.
const LOCATES: usize = 1 << 16;

fn price(price_e4: u32) -> Price {
    Price(i64::from(price_e4) * 100_000)
}

fn quote(price_e4: u32, shares: u64) -> Quote {
    Quote {
        price: price(price_e4),
        quantity: Quantity(shares),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        AddOrder, CrossTrade, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace, Stamp,
        Trade, parse,
    };
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;
    use zerocopy::{FromZeros, IntoBytes};

    const LIMITS: BookLimits = BookLimits {
        instruments: 2,
        orders: 64,
        levels: 32,
    };
    const STOCKS: [Stock; 3] = [Stock(*b"AAA     "), Stock(*b"BBB     "), Stock(*b"FOREIGN ")];

    fn stamp(index: usize) -> Stamp {
        Stamp {
            stock_locate: u16::try_from(index + 1).expect("small"),
            time_ns: 1,
        }
    }

    /// Books of AAA and BBB whose feed names FOREIGN too.
    fn books(limits: &BookLimits) -> Books {
        let mut books = Books::new(limits);
        for (index, stock) in STOCKS.iter().enumerate() {
            if index < 2 {
                assert_eq!(books.add(stock.symbol().expect("symbol")), Some(index));
            }
            apply(&mut books, &StockDirectory::new(stamp(index), *stock, 100, false));
        }
        books
    }

    fn apply(books: &mut Books, message: &(impl IntoBytes + zerocopy::Immutable)) -> Option<Change> {
        books.apply(&parse(message.as_bytes()).expect("message"))
    }

    fn add(index: usize, reference: u64, buy_sell: BuySell, shares: u32, price_e4: u32) -> AddOrder {
        AddOrder::new(stamp(index), reference, buy_sell, shares, STOCKS[index], price_e4)
    }

    fn quote_of(price_e4: u32, shares: u64) -> Quote {
        quote(price_e4, shares)
    }

    #[test]
    fn the_best_prices_follow_the_orders() {
        let mut books = books(&LIMITS);
        let change = |quote, trade| Some(Change { index: 0, quote, trade });
        assert_eq!(
            apply(&mut books, &add(0, 1, BuySell::Buy, 100, 9_900)),
            change(true, false)
        );
        assert_eq!(apply(&mut books, &add(0, 2, BuySell::Buy, 50, 9_800)), None);
        assert_eq!(
            apply(&mut books, &add(0, 3, BuySell::Buy, 10, 9_900)),
            change(true, false)
        );
        assert_eq!(
            apply(&mut books, &add(0, 4, BuySell::Sell, 70, 10_100)),
            change(true, false)
        );
        assert_eq!(apply(&mut books, &add(0, 5, BuySell::Sell, 70, 10_200)), None);
        assert_eq!(
            (books.bbo(0).bid, books.bbo(0).ask),
            (quote_of(9_900, 110), quote_of(10_100, 70))
        );

        assert_eq!(
            apply(&mut books, &OrderCancel::new(stamp(0), 1, 40)),
            change(true, false)
        );
        assert_eq!(
            apply(&mut books, &OrderExecuted::new(stamp(0), 4, 70, 1)),
            change(true, true)
        );
        assert_eq!(books.bbo(0).last, price(10_100));
        assert_eq!(
            (books.bbo(0).bid, books.bbo(0).ask),
            (quote_of(9_900, 70), quote_of(10_200, 70))
        );
        assert_eq!(apply(&mut books, &OrderDelete::new(stamp(0), 2)), None);
        assert_eq!(
            apply(&mut books, &OrderReplace::new(stamp(0), 1, 6, 5, 10_000)),
            change(true, false)
        );
        assert_eq!(books.bbo(0).bid, quote_of(10_000, 5));
        assert_eq!(
            books.counters(),
            BookCounters {
                foreign_stocks: 1,
                ..BookCounters::default()
            }
        );
        assert_eq!(
            books.bbo(1),
            Bbo {
                last: Price::NULL,
                ..Bbo::default()
            }
        );
    }

    #[test]
    fn each_kind_of_trade_has_its_own_price() {
        let mut books = books(&LIMITS);
        apply(&mut books, &add(0, 1, BuySell::Buy, 100, 9_900));
        let executed = OrderExecutedWithPrice::new(stamp(0), 1, 10, 1, true, 9_950);
        assert!(apply(&mut books, &executed).is_some_and(|change| change.trade));
        assert_eq!(books.bbo(0).last, price(9_950));
        let unprinted = OrderExecutedWithPrice::new(stamp(0), 1, 10, 2, false, 9_000);
        assert!(apply(&mut books, &unprinted).is_some_and(|change| change.quote && !change.trade));
        assert_eq!(books.bbo(0).last, price(9_950));
        assert!(apply(&mut books, &Trade::new(stamp(0), 10, STOCKS[0], 9_960, 3)).is_some());
        assert_eq!(books.bbo(0).last, price(9_960));
        let mut cross = CrossTrade::new_zeroed();
        cross.header = Trade::new(stamp(0), 1, STOCKS[0], 1, 1).header;
        cross.header.message_type = b'Q';
        cross.price_e4 = 9_970.into();
        assert_eq!(apply(&mut books, &cross), None, "nothing met");
        cross.shares = 100.into();
        assert!(apply(&mut books, &cross).is_some());
        assert_eq!(
            books.bbo(0),
            Bbo {
                bid: quote_of(9_900, 80),
                last: price(9_970),
                ..Bbo::default()
            }
        );
    }

    #[test]
    fn instruments_that_were_not_added_are_counted_and_leave_the_others_alone() {
        let mut books = books(&LIMITS);
        assert_eq!(apply(&mut books, &add(2, 1, BuySell::Buy, 100, 9_900)), None);
        assert_eq!(apply(&mut books, &OrderDelete::new(stamp(2), 1)), None);
        let counters = books.counters();
        assert_eq!(
            (
                counters.foreign_stocks,
                counters.foreign_messages,
                counters.unknown_orders
            ),
            (1, 2, 0)
        );
        assert_eq!(books.live_orders(), 0);
    }

    #[test]
    fn an_order_names_its_instrument_when_the_directory_was_missed() {
        let mut books = Books::new(&LIMITS);
        books.add(STOCKS[0].symbol().expect("symbol"));
        assert_eq!(apply(&mut books, &OrderDelete::new(stamp(0), 9)), None);
        assert!(apply(&mut books, &add(0, 1, BuySell::Buy, 100, 9_900)).is_some());
        assert!(apply(&mut books, &OrderDelete::new(stamp(0), 1)).is_some());
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_rest_stands() {
        let mut books = books(&BookLimits {
            orders: 3,
            levels: 2,
            ..LIMITS
        });
        apply(&mut books, &add(0, 1, BuySell::Buy, 1, 100));
        apply(&mut books, &add(0, 2, BuySell::Buy, 1, 200));
        assert_eq!(
            apply(&mut books, &add(0, 3, BuySell::Buy, 1, 300)),
            None,
            "no third level"
        );
        assert!(apply(&mut books, &add(0, 3, BuySell::Buy, 1, 200)).is_some());
        assert_eq!(
            apply(&mut books, &add(1, 4, BuySell::Buy, 1, 100)),
            None,
            "no fourth order"
        );
        assert_eq!(books.counters().overflowed, 2);
        assert_eq!(books.bbo(0).bid, quote_of(200, 2));
        books.clear();
        assert_eq!((books.live_orders(), books.bbo(0).bid), (0, Quote::default()));
    }

    #[test]
    fn no_more_instruments_than_there_is_room_for() {
        let mut books = books(&LIMITS);
        assert_eq!(books.add(STOCKS[2].symbol().expect("symbol")), None);
        assert_eq!(books.add(STOCKS[1].symbol().expect("symbol")), Some(1));
        assert_eq!(books.len(), 2);
    }

    /// The same as plainly as can be: orders in a map, everything else derived from them.
    #[derive(Default)]
    struct Naive {
        orders: BTreeMap<u64, (usize, BuySell, u32, u32)>,
    }

    impl Naive {
        fn depth(&self, index: usize, buy_sell: BuySell) -> Vec<Quote> {
            let mut levels = BTreeMap::<u32, u64>::new();
            for &(order_index, side, shares, price_e4) in self.orders.values() {
                if (order_index, side) == (index, buy_sell) {
                    *levels.entry(price_e4).or_default() += u64::from(shares);
                }
            }
            let mut levels: Vec<Quote> = levels
                .into_iter()
                .map(|(price_e4, shares)| quote(price_e4, shares))
                .collect();
            if buy_sell == BuySell::Buy {
                levels.reverse();
            }
            levels
        }

        fn reduce(&mut self, reference: u64, shares: u32) {
            if let Some(order) = self.orders.get_mut(&reference) {
                order.2 = order.2.saturating_sub(shares);
                if order.2 == 0 {
                    self.orders.remove(&reference);
                }
            }
        }

        fn replace(&mut self, original: u64, reference: u64, shares: u32, price_e4: u32) {
            if let Some((index, side, ..)) = self.orders.remove(&original) {
                self.orders.entry(reference).or_insert((index, side, shares, price_e4));
            }
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Add(usize, u64, bool, u32, u32),
        Cancel(u64, u32),
        Execute(u64, u32),
        Delete(u64),
        Replace(u64, u64, u32, u32),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let (reference, shares, price_e4) = (0_u64..60, 1_u32..100, 1_u32..30);
        prop_oneof![
            4 => (0_usize..2, reference.clone(), any::<bool>(), shares.clone(), price_e4.clone())
                .prop_map(|(index, reference, buy, shares, price)| Operation::Add(index, reference, buy, shares, price)),
            1 => (reference.clone(), shares.clone()).prop_map(|(reference, shares)| Operation::Cancel(reference, shares)),
            1 => (reference.clone(), shares.clone()).prop_map(|(reference, shares)| Operation::Execute(reference, shares)),
            1 => reference.clone().prop_map(Operation::Delete),
            1 => (reference.clone(), reference, shares, price_e4)
                .prop_map(|(original, reference, shares, price)| Operation::Replace(original, reference, shares, price)),
        ]
    }

    proptest! {
        #[test]
        fn books_agree_with_a_plain_one(operations in proptest::collection::vec(operation(), 0..300)) {
            let mut books = books(&LIMITS);
            let mut naive = Naive::default();
            for operation in operations {
                let before = [books.bbo(0), books.bbo(1)];
                let change = match operation {
                    Operation::Add(index, reference, buy, shares, price_e4) => {
                        let side = if buy { BuySell::Buy } else { BuySell::Sell };
                        naive.orders.entry(reference).or_insert((index, side, shares, price_e4));
                        apply(&mut books, &add(index, reference, side, shares, price_e4))
                    }
                    Operation::Cancel(reference, shares) => {
                        naive.reduce(reference, shares);
                        apply(&mut books, &OrderCancel::new(stamp(0), reference, shares))
                    }
                    Operation::Execute(reference, shares) => {
                        naive.reduce(reference, shares);
                        apply(&mut books, &OrderExecuted::new(stamp(0), reference, shares, 1))
                    }
                    Operation::Delete(reference) => {
                        naive.orders.remove(&reference);
                        apply(&mut books, &OrderDelete::new(stamp(0), reference))
                    }
                    Operation::Replace(original, reference, shares, price_e4) => {
                        naive.replace(original, reference, shares, price_e4);
                        apply(&mut books, &OrderReplace::new(stamp(0), original, reference, shares, price_e4))
                    }
                };
                for (index, before) in before.into_iter().enumerate() {
                    let bbo = books.bbo(index);
                    let quote = (bbo.bid, bbo.ask) != (before.bid, before.ask);
                    let said = change.filter(|change| change.index == index);
                    prop_assert_eq!(said.is_some_and(|change| change.quote), quote, "{:?}", operation);
                    for (side, best) in [(Side::Buy, bbo.bid), (Side::Sell, bbo.ask)] {
                        let depth: Vec<Quote> = books.depth(index, side).collect();
                        prop_assert_eq!(depth.first().copied().unwrap_or_default(), best);
                        prop_assert_eq!(depth, naive.depth(index, side.into()), "{:?}", operation);
                    }
                }
                prop_assert_eq!(books.live_orders(), naive.orders.len());
            }
        }
    }
}
