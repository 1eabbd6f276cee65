//! The market: what goes in, what comes out, and who is there.

use super::client_orders::ClientOrders;
use super::desk::Desk;
use super::limits::MAX_SESSIONS;
use super::listing::{Listing, ListingError};
use matcher::{BookIndex, Capacity, Level, Matcher, RestingOrder, SelfMatch};
use proto::native::Reject;
use types::{ExecReport, Instrument, InstrumentId, OrderId, Quantity, Reason, SessionId, Side};

/// Takes what an input causes, in the order in which it happens.
pub trait Outputs {
    /// An ITCH message for the feed.
    fn publish(&mut self, message: &[u8]);

    /// A report for `report.session`. `number` is the one that the client gave the order first (for a gateway its own order
    /// id), 0 when no order is known: recordings join by it.
    fn report(&mut self, report: &ExecReport, number: OrderId);

    /// The answer to a message of a session that is no request.
    fn reject(&mut self, session: SessionId, reject: &Reject);
}

/// What a market is made of. Everything in it decides: a journal replays only with the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarketConfig {
    /// What is traded. The place in the list plus one is the stock locate on the feed.
    pub instruments: Vec<Instrument>,
    /// Who may send orders.
    pub sessions: Vec<SessionRules>,
    /// How much it holds.
    pub capacity: MarketCapacity,
    /// What happens when orders of one account meet.
    pub self_match: SelfMatch,
}

/// An order session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionRules {
    /// Its id, as requests carry it.
    pub id: SessionId,
    /// Whether its orders are cancelled when its link goes down.
    pub cancel_on_disconnect: bool,
    /// How many orders it may have open, which its link is told; `None`: as many as find room.
    pub open_orders_max: Option<u32>,
}

/// How much a market holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarketCapacity {
    /// Resting orders, history's and clients'.
    pub orders: usize,
    /// Price levels.
    pub levels: usize,
    /// Clients' orders among them.
    pub client_orders: usize,
    /// Clients' orders among those with terms: stops, icebergs, pegged, for an auction, good till a date.
    pub special_orders: usize,
}

/// What a market counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MarketCounters {
    /// History messages of the market's instruments and of the market as a whole.
    pub history: u64,
    /// History messages of instruments that are not in the master.
    pub history_foreign: u64,
    /// History messages about orders that are not in the book, most of them because clients traded with them.
    pub history_unmatched: u64,
    /// History messages that are no ITCH, or contradict themselves or the book.
    pub history_invalid: u64,
    /// History orders that found no room.
    pub history_overflowed: u64,
    /// Requests taken up, refused ones too.
    pub requests: u64,
    /// Messages of sessions that were no request.
    pub malformed: u64,
    /// Trades with a client's order on at least one side.
    pub trades: u64,
}

/// The market. See the [module](super) for its rules.
pub struct Market {
    pub(super) matcher: Matcher,
    pub(super) desk: Desk,
}

impl MarketConfig {
    /// Bytes that the market allocates, but for small change.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.matcher_capacity().memory() + ClientOrders::memory(self.capacity.client_orders, self.sessions.len())
    }

    fn matcher_capacity(&self) -> Capacity {
        Capacity {
            books: self.instruments.len(),
            orders: self.capacity.orders,
            levels: self.capacity.levels,
            special: self.capacity.special_orders,
        }
    }
}

impl Market {
    /// An empty market.
    ///
    /// # Errors
    /// When the instruments cannot be on an ITCH feed.
    ///
    /// # Panics
    /// When there are more than [`MAX_SESSIONS`] sessions, two with one id, or a capacity out of range: a config is
    /// checked before.
    pub fn new(config: &MarketConfig) -> Result<Self, ListingError> {
        let listing = Listing::new(&config.instruments)?;
        assert!(
            config.sessions.len() <= MAX_SESSIONS,
            "{} sessions",
            config.sessions.len()
        );
        let mut matcher = Matcher::new(config.matcher_capacity(), config.self_match);
        for book in listing.books() {
            matcher.set_peg_rules(book, listing.get(book).peg_rules());
        }
        Ok(Self {
            matcher,
            desk: Desk::new(listing, &config.sessions, config.capacity.client_orders),
        })
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &MarketCounters {
        &self.desk.counters
    }

    /// Requests refused, and orders cancelled, with this reason.
    #[must_use]
    pub fn reasons(&self, reason: Reason) -> u64 {
        self.desk.reasons[reason as usize]
    }

    /// Orders in the book, history's and clients'.
    #[must_use]
    pub fn order_count(&self) -> usize {
        self.matcher.order_count()
    }

    /// Live orders of all clients.
    #[must_use]
    pub fn client_order_count(&self) -> usize {
        self.desk.orders.len()
    }

    /// Live orders of a session.
    #[must_use]
    pub fn open_orders(&self, session: SessionId) -> usize {
        self.desk
            .session(session)
            .map_or(0, |session| self.desk.orders.count(session))
    }

    /// How many orders a session may have open; `None`: as many as find room.
    #[must_use]
    pub fn open_orders_max(&self, session: SessionId) -> Option<u32> {
        let index = self.desk.session(session)?;
        self.desk.sessions[usize::from(index.0)].rules.open_orders_max
    }

    /// The clients' live orders: the number each was given first, and lots still open.
    pub fn client_orders(&self) -> impl Iterator<Item = (OrderId, Quantity)> {
        self.desk
            .orders
            .iter()
            .map(|order| (OrderId(order.first_client_order_id.0), order.leaves()))
    }

    /// The best level of an instrument's side; `None` when there is none.
    #[must_use]
    pub fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.matcher.best(self.desk.listing.book(instrument)?, side)
    }

    /// The orders of an instrument's side in priority, by their reference numbers on the feed.
    pub fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = RestingOrder> {
        let book = self.desk.listing.book(instrument);
        book.into_iter()
            .flat_map(move |book: BookIndex| self.matcher.orders(book, side))
    }

    /// Walks everything and counts anew.
    ///
    /// # Panics
    /// When a rule is broken.
    pub fn audit(&self) {
        self.matcher.audit();
        for order in self.desk.orders.iter() {
            let resting = self
                .matcher
                .order(order.reference)
                .expect("a live client order is in the book");
            assert_eq!(
                (order.is_resting, order.shown, order.leaves()),
                (!resting.shown.is_zero(), resting.shown, resting.leaves),
                "order {} differs",
                order.order_id
            );
        }
    }
}
