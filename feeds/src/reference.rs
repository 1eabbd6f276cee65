//! Reference prices: receives an exchange's feed, keeps the books of the instruments in the instrument master, and tells
//! every change of a best price and every trade.

use crate::instruments::InstrumentRow;
use crate::publisher::UdpCounters;
use crate::receiver::{UdpReceiver, UdpReceiverConfig};
use net::error::SetupError;
use proto::itch::{self, BookCounters, BookLimits, Books, ItchError, Message};
use proto::mold::{Event, ReceiverCounters};
use types::{Bbo, Instrument, InstrumentId, Quantity, Quote, Symbol, Timestamp};

/// An instrument as a feed needs to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedInstrument {
    /// Identifies it inside.
    pub id: InstrumentId,
    /// Its symbol on the feed.
    pub symbol: Symbol,
    /// Shares in a lot, more than 0.
    pub lot_size: u32,
}

/// How a [`ReferenceFeed`] works.
#[derive(Clone, Debug)]
pub struct ReferenceFeedConfig {
    /// Where the feed is received.
    pub receiver: UdpReceiverConfig,
    /// Most live orders of all instruments.
    pub max_orders: usize,
    /// Most price levels on a side of an instrument.
    pub max_levels: usize,
}

/// Reference prices of a feed. Call [`ReferenceFeed::turn`].
pub struct ReferenceFeed {
    receiver: UdpReceiver,
    market: Market,
}

/// What a [`ReferenceFeed`] could not use of the messages it received.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReferenceCounters {
    /// Messages of a type that the protocol does not have. The first was logged.
    pub unknown_types: u64,
    /// Messages that are not as long as their type, or whose side is none. The first was logged.
    pub malformed: u64,
    /// What did not fit in the books. The first instrument that is not in the master was logged.
    pub books: BookCounters,
}

/// Books and whose they are.
struct Market {
    books: Books,
    /// By the books' index.
    instruments: Vec<FeedInstrument>,
    unknown_types: u64,
    malformed: u64,
}

impl ReferenceFeedConfig {
    /// Bytes that the books of so many instruments allocate.
    #[must_use]
    pub const fn memory_bytes(&self, instruments: usize) -> usize {
        self.book_limits(instruments).memory_bytes()
    }

    const fn book_limits(&self, instruments: usize) -> BookLimits {
        BookLimits {
            instruments,
            orders: self.max_orders,
            levels: self.max_levels,
        }
    }
}

impl ReferenceFeed {
    /// Opens the sockets and makes a book for each instrument, of which there are at most
    /// [`MAX_INSTRUMENTS`](crate::limits::MAX_INSTRUMENTS).
    ///
    /// # Errors
    /// The sockets cannot be had.
    pub fn open(config: &ReferenceFeedConfig, instruments: &[FeedInstrument]) -> Result<Self, SetupError> {
        Ok(Self {
            receiver: UdpReceiver::open(&config.receiver)?,
            market: Market::new(&config.book_limits(instruments.len()), instruments),
        })
    }

    /// Takes what has arrived and calls `sink` with each new state of an instrument: quantities in lots, the time `now`.
    /// `true` when something had arrived.
    pub fn turn(&mut self, now: Timestamp, sink: &mut impl FnMut(InstrumentId, Bbo)) -> bool {
        let Self { receiver, market } = self;
        receiver.turn(now, &mut |event| market.on_event(now, event, sink))
    }

    /// What was received so far.
    #[must_use]
    pub const fn receiver_counters(&self) -> ReceiverCounters {
        self.receiver.counters()
    }

    /// What happened at the sockets so far.
    #[must_use]
    pub const fn udp_counters(&self) -> UdpCounters {
        self.receiver.udp_counters()
    }

    /// What could not be used so far.
    #[must_use]
    pub const fn counters(&self) -> ReferenceCounters {
        ReferenceCounters {
            unknown_types: self.market.unknown_types,
            malformed: self.market.malformed,
            books: self.market.books.counters(),
        }
    }

    /// The address that the feed is received on.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> std::io::Result<std::net::SocketAddr> {
        self.receiver.local_addr()
    }
}

impl Market {
    fn new(limits: &BookLimits, instruments: &[FeedInstrument]) -> Self {
        let mut books = Books::new(limits);
        let mut known = Vec::with_capacity(instruments.len());
        for &instrument in instruments {
            // A symbol that comes twice keeps its first instrument; the instrument master has none.
            if books.add(instrument.symbol) == Some(known.len()) {
                known.push(instrument);
            }
        }
        Self {
            books,
            instruments: known,
            unknown_types: 0,
            malformed: 0,
        }
    }

    fn on_event(&mut self, now: Timestamp, event: Event<'_>, sink: &mut impl FnMut(InstrumentId, Bbo)) {
        match event {
            Event::Message { message, .. } => self.on_message(now, message, sink),
            Event::Started { session, next } => {
                tracing::info!("feed session {session} starts at message {next}");
                self.books.clear();
                self.tell_all(now, sink);
            }
            Event::Lost { first, count } => {
                // Orders may be gone that the books would go on showing; those that come from now on are real.
                tracing::warn!("feed lost {count} messages from number {first}: books start anew");
                self.books.clear_orders();
                self.tell_all(now, sink);
            }
            Event::Ended => tracing::info!("feed session ended"),
        }
    }

    fn on_message(&mut self, now: Timestamp, bytes: &[u8], sink: &mut impl FnMut(InstrumentId, Bbo)) {
        let message = match itch::parse(bytes) {
            Ok(message) => message,
            Err(error) => return self.count_error(error),
        };
        let foreign = self.books.counters().foreign_stocks;
        let change = self.books.apply(&message);
        if let Some(change) = change {
            self.tell(change.index, now, sink);
        } else if foreign == 0
            && self.books.counters().foreign_stocks > 0
            && let Message::StockDirectory(directory) = message
        {
            let stock = directory.stock;
            tracing::warn!("feed has instruments that are not in the instrument master, such as {stock}: ignored");
        }
    }

    fn count_error(&mut self, error: ItchError) {
        let counter = match error {
            ItchError::UnknownType { .. } => &mut self.unknown_types,
            _ => &mut self.malformed,
        };
        if *counter == 0 {
            tracing::warn!("feed: {error}: skipped, further ones are only counted");
        }
        *counter += 1;
    }

    fn tell_all(&self, now: Timestamp, sink: &mut impl FnMut(InstrumentId, Bbo)) {
        for index in 0..self.instruments.len() {
            self.tell(index, now, sink);
        }
    }

    fn tell(&self, index: usize, now: Timestamp, sink: &mut impl FnMut(InstrumentId, Bbo)) {
        let FeedInstrument { id, lot_size, .. } = self.instruments[index];
        let bbo = self.books.bbo(index);
        let in_lots = |quote: Quote| Quote {
            price: quote.price,
            quantity: Quantity(quote.quantity.0 / u64::from(lot_size.max(1))),
        };
        let bbo = Bbo {
            bid: in_lots(bbo.bid),
            ask: in_lots(bbo.ask),
            last: bbo.last,
            time: now,
        };
        sink(id, bbo);
    }
}

impl From<&InstrumentRow> for FeedInstrument {
    fn from(row: &InstrumentRow) -> Self {
        Self {
            id: row.id,
            symbol: row.symbol,
            lot_size: row.lot_size,
        }
    }
}

impl From<&Instrument> for FeedInstrument {
    fn from(instrument: &Instrument) -> Self {
        Self {
            id: instrument.id,
            symbol: instrument.symbol,
            lot_size: instrument.lot_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::itch::{AddOrder, BuySell, OrderExecuted, Stamp, Stock};
    use types::{Price, SequenceNumber};
    use zerocopy::IntoBytes;

    const NOW: Timestamp = Timestamp(7);
    const STAMP: Stamp = Stamp {
        stock_locate: 1,
        time_ns: 1,
    };

    fn message(bytes: &[u8]) -> Event<'_> {
        Event::Message {
            sequence: SequenceNumber(1),
            message: bytes,
        }
    }

    #[test]
    fn a_loss_clears_the_books_and_tells_everyone() {
        let limits = BookLimits {
            instruments: 1,
            orders: 8,
            levels: 8,
        };
        let symbol = Symbol::new(b"ALFA").expect("symbol");
        let instrument = FeedInstrument {
            id: InstrumentId(9),
            symbol,
            lot_size: 100,
        };
        let mut market = Market::new(&limits, &[instrument]);
        let mut told = Vec::new();
        let mut take = |market: &mut Market, event: Event<'_>| {
            market.on_event(NOW, event, &mut |id, bbo| told.push((id, bbo)));
            told.pop()
        };
        let stock = Stock::new(&symbol).expect("stock");
        let add = AddOrder::new(STAMP, 1, BuySell::Buy, 350, stock, 10_000);
        let (id, bbo) = take(&mut market, message(add.as_bytes())).expect("a best bid");
        assert_eq!((id, bbo.bid.quantity, bbo.time), (InstrumentId(9), Quantity(3), NOW));
        let (_, bbo) = take(&mut market, message(OrderExecuted::new(STAMP, 1, 50, 1).as_bytes())).expect("a trade");
        assert_eq!(bbo.last, Price(Price::UNIT));

        let lost = Event::Lost {
            first: SequenceNumber(3),
            count: 2,
        };
        let (_, bbo) = take(&mut market, lost).expect("an empty book");
        assert_eq!((bbo.bid, bbo.last), (Quote::default(), Price(Price::UNIT)));
        assert_eq!(
            take(&mut market, message(OrderExecuted::new(STAMP, 1, 50, 2).as_bytes())),
            None
        );
        assert_eq!(market.books.counters().unknown_orders, 1);
    }
}
