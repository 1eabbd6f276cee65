//! What is in a feed: messages by type, times, symbols with their trades and prices; and the instrument master that it
//! suggests.

use crate::instruments::InstrumentRow;
use crate::limits;
use crate::symbols::SymbolFilter;
use proto::itch::{self, BookCounters, Books, ItchError, Message};
use types::{Bbo, InstrumentId, Price, ShardId, Symbol};

/// Gathers what messages tell. Give it every message of a feed, in order.
pub struct Inspection {
    filter: Option<SymbolFilter>,
    books: Books,
    /// By the books' index.
    symbols: Vec<SymbolFacts>,
    /// Messages of each type, by its byte.
    counts: [u64; 256],
    unknown_types: u64,
    malformed: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    steps_back: u64,
}

/// What a feed tells of one symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolFacts {
    /// The symbol.
    pub symbol: Symbol,
    /// Messages about it.
    pub messages: u64,
    /// Trades, without those that are not to be counted.
    pub trades: u64,
    /// Shares traded.
    pub shares: u64,
    /// Price of the first trade, else the middle of the first best bid and offer; [`Price::NULL`] when there was neither.
    pub first: Price,
    /// Lowest trade price; [`Price::NULL`] without trades.
    pub low: Price,
    /// Highest trade price; [`Price::NULL`] without trades.
    pub high: Price,
    /// Shares in which its orders are counted.
    pub lot_size: u32,
    /// Whether an order had a price that is no whole cent.
    pub sub_cent: bool,
    /// Best bid and offer and last trade at the end, in shares.
    pub bbo: Bbo,
}

/// One cent, and the finest price step of the protocol.
const CENT: Price = Price(10_000_000);
const FINEST: Price = Price(100_000);

impl Inspection {
    /// Inspects the whole feed, or some symbols.
    #[must_use]
    pub fn new(symbols: Option<&[Symbol]>) -> Self {
        Self {
            filter: symbols.map(SymbolFilter::new),
            books: Books::new(&limits::INSPECTION_BOOKS),
            symbols: Vec::new(),
            counts: [0; 256],
            unknown_types: 0,
            malformed: 0,
            first_ns: None,
            last_ns: 0,
            steps_back: 0,
        }
    }

    /// Takes the next message.
    pub fn on_message(&mut self, bytes: &[u8]) {
        let message = match itch::parse(bytes) {
            Ok(message) => message,
            Err(ItchError::UnknownType { .. }) => {
                self.unknown_types += 1;
                return;
            }
            Err(_) => {
                self.malformed += 1;
                return;
            }
        };
        if self.filter.as_mut().is_some_and(|filter| !filter.passes(&message)) {
            return;
        }
        let header = message.header();
        self.counts[usize::from(header.message_type)] += 1;
        let time_ns = header.time_ns();
        self.first_ns.get_or_insert(time_ns);
        self.steps_back += u64::from(time_ns < self.last_ns);
        self.last_ns = time_ns;
        if let Some(index) = self.symbol_of(&message) {
            self.symbols[index].messages += 1;
            self.follow(index, &message);
        } else {
            self.books.apply(&message);
        }
    }

    /// Messages of each type that occurs: type, count.
    pub fn counts(&self) -> impl Iterator<Item = (u8, u64)> {
        (0..=u8::MAX).zip(self.counts).filter(|&(_, count)| count > 0)
    }

    /// Messages understood.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Messages of a type that the protocol does not have.
    #[must_use]
    pub const fn unknown_types(&self) -> u64 {
        self.unknown_types
    }

    /// Messages that are not as long as their type, or whose side is none.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Times of the first and last message, ns since midnight. `None` without messages.
    #[must_use]
    pub fn time_range(&self) -> Option<(u64, u64)> {
        self.first_ns.map(|first| (first, self.last_ns))
    }

    /// Messages that were earlier than the one before.
    #[must_use]
    pub const fn steps_back(&self) -> u64 {
        self.steps_back
    }

    /// What is known of each symbol, in the order of the feed.
    pub fn symbols(&self) -> impl Iterator<Item = SymbolFacts> {
        self.symbols.iter().enumerate().map(|(index, facts)| SymbolFacts {
            bbo: self.books.bbo(index),
            ..*facts
        })
    }

    /// Symbols asked for that the feed does not have.
    pub fn missing_symbols(&self) -> impl Iterator<Item = Symbol> {
        self.filter.iter().flat_map(SymbolFilter::missing)
    }

    /// Orders in the book at the end.
    #[must_use]
    pub const fn live_orders(&self) -> usize {
        self.books.live_orders()
    }

    /// What did not fit together in the book.
    #[must_use]
    pub const fn book_counters(&self) -> BookCounters {
        self.books.counters()
    }

    /// An instrument master for the feed's symbols, numbered from 1, and how many are left out because the feed has no
    /// price for them. The tick is a cent, or the protocol's finest step where orders were priced off it; the reference
    /// price is the feed's first.
    #[must_use]
    pub fn instrument_rows(&self, limit_class: &str, venue: &str) -> (Vec<InstrumentRow>, usize) {
        let rows: Vec<InstrumentRow> = (1..)
            .zip(self.symbols.iter().filter(|facts| !facts.first.is_null()))
            .map(|(id, facts)| InstrumentRow {
                id: InstrumentId(id),
                symbol: facts.symbol,
                tick_size: facts.tick_size(),
                lot_size: facts.lot_size,
                reference_price: facts.first,
                limit_class: limit_class.to_owned(),
                shard: ShardId(0),
                venue: venue.to_owned(),
            })
            .collect();
        let left_out = self.symbols.len() - rows.len();
        (rows, left_out)
    }

    /// The index of the message's symbol, which is added to the books when it is new.
    fn symbol_of(&mut self, message: &Message<'_>) -> Option<usize> {
        let locate = message.header().stock_locate.get();
        if let Some(index) = self.books.at_locate(locate)
            && !matches!(message, Message::StockDirectory(_))
        {
            return Some(index);
        }
        let symbol = message.stock()?.symbol()?;
        let index = self.books.add(symbol)?;
        if index == self.symbols.len() {
            self.symbols.push(SymbolFacts::new(symbol));
        }
        Some(index)
    }

    fn follow(&mut self, index: usize, message: &Message<'_>) {
        let change = self.books.apply(message);
        let facts = &mut self.symbols[index];
        match message {
            Message::StockDirectory(directory) => facts.lot_size = directory.lot_size(),
            Message::AddOrder(add) => facts.sub_cent |= !add.price().is_multiple_of(CENT),
            Message::AddOrderAttributed(add) => facts.sub_cent |= !add.order.price().is_multiple_of(CENT),
            Message::OrderReplace(replace) => facts.sub_cent |= !replace.price().is_multiple_of(CENT),
            _ => {}
        }
        let Some(change) = change else { return };
        let bbo = self.books.bbo(index);
        if change.trade {
            facts.trade(bbo.last, traded_shares(message));
        } else if facts.first.is_null() && !bbo.bid.quantity.is_zero() && !bbo.ask.quantity.is_zero() {
            let tick = facts.tick_size().0;
            let middle = i64::midpoint(bbo.bid.price.0, bbo.ask.price.0);
            facts.first = Price(middle - middle % tick);
        }
    }
}

impl SymbolFacts {
    fn new(symbol: Symbol) -> Self {
        Self {
            symbol,
            messages: 0,
            trades: 0,
            shares: 0,
            first: Price::NULL,
            low: Price::NULL,
            high: Price::NULL,
            lot_size: 1,
            sub_cent: false,
            bbo: Bbo::default(),
        }
    }

    /// Smallest price step that the feed's orders keep to.
    #[must_use]
    pub const fn tick_size(&self) -> Price {
        if self.sub_cent { FINEST } else { CENT }
    }

    fn trade(&mut self, price: Price, shares: u64) {
        if self.trades == 0 {
            self.first = price;
            self.low = price;
            self.high = price;
        }
        self.low = self.low.min(price);
        self.high = self.high.max(price);
        self.trades += 1;
        self.shares += shares;
    }
}

/// Shares of a message that is a trade.
fn traded_shares(message: &Message<'_>) -> u64 {
    match message {
        Message::OrderExecuted(executed) => u64::from(executed.shares.get()),
        Message::OrderExecutedWithPrice(at_price) => u64::from(at_price.executed.shares.get()),
        Message::Trade(trade) => u64::from(trade.shares.get()),
        Message::CrossTrade(cross) => cross.shares.get(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::itch::{AddOrder, BuySell, Stamp, Stock, StockDirectory, Trade};
    use zerocopy::IntoBytes;

    fn stamp(stock_locate: u16) -> Stamp {
        Stamp {
            stock_locate,
            time_ns: 1,
        }
    }

    #[test]
    fn an_instrument_master_follows_from_the_directory_and_the_prices() {
        let stock = |text: &[u8; 8]| Stock(*text);
        let (cents, fine, silent) = (stock(b"CENTS   "), stock(b"FINE    "), stock(b"SILENT  "));
        let mut inspection = Inspection::new(None);
        for (locate, stock, only) in [(1, cents, true), (2, fine, false), (3, silent, false)] {
            inspection.on_message(StockDirectory::new(stamp(locate), stock, 100, only).as_bytes());
        }
        // No trade: the middle of the first best prices, brought down to the tick.
        inspection.on_message(AddOrder::new(stamp(1), 1, BuySell::Buy, 100, cents, 100_000).as_bytes());
        inspection.on_message(AddOrder::new(stamp(1), 2, BuySell::Sell, 100, cents, 100_300).as_bytes());
        inspection.on_message(AddOrder::new(stamp(2), 3, BuySell::Buy, 100, fine, 5_001).as_bytes());
        inspection.on_message(Trade::new(stamp(2), 10, fine, 5_003, 1).as_bytes());
        inspection.on_message(Trade::new(stamp(2), 10, fine, 5_001, 2).as_bytes());
        inspection.on_message(b"!");

        let (rows, left_out) = inspection.instrument_rows("default", "sim");
        let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "1,CENTS,0.01,100,10.01,default,0,sim",
                "2,FINE,0.0001,1,0.5003,default,0,sim"
            ]
        );
        assert_eq!((left_out, inspection.unknown_types(), inspection.messages()), (1, 1, 8));
        let facts: Vec<SymbolFacts> = inspection.symbols().collect();
        assert_eq!(
            (facts[1].trades, facts[1].shares, facts[1].low),
            (2, 20, Price(500_100_000))
        );
    }

    #[test]
    fn only_the_symbols_asked_for_are_inspected() {
        let symbol = |text: &str| Symbol::new(text.as_bytes()).expect("symbol");
        let mut inspection = Inspection::new(Some(&[symbol("B"), symbol("C")]));
        for (locate, text) in [(1, "A"), (2, "B")] {
            let stock = Stock::new(&symbol(text)).expect("stock");
            inspection.on_message(StockDirectory::new(stamp(locate), stock, 100, false).as_bytes());
        }
        assert_eq!(
            inspection.symbols().map(|facts| facts.symbol).collect::<Vec<_>>(),
            [symbol("B")]
        );
        assert_eq!(inspection.missing_symbols().collect::<Vec<_>>(), [symbol("C")]);
    }
}
