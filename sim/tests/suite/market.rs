//! A market under test, with everything that it put out, and short ways to say what happens.

use crate::feed_book::FeedBook;
use matcher::SelfMatch;
use proto::itch::{AddOrder, OrderCancel, OrderDelete, OrderExecuted, OrderReplace, Stamp, Stock, StockDirectory};
use proto::native::Reject;
use sim::exchange::{Market, MarketCapacity, MarketConfig, Outputs, SessionRules};
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecReport, ExecType, Instrument, InstrumentId, LimitClass, MassCancel,
    NewOrder, OrderId, OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request, SessionId, ShardId, Side,
    Symbol, TimeInForce, Timestamp, Trigger, VenueId,
};
use zerocopy::IntoBytes;

pub(crate) const ONE: SessionId = SessionId(1);
pub(crate) const TWO: SessionId = SessionId(2);
/// Keeps its orders when its link goes down.
pub(crate) const KEEPER: SessionId = SessionId(3);

/// What came out.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) feed: Vec<Vec<u8>>,
    pub(crate) reports: Vec<(ExecReport, OrderId)>,
    pub(crate) rejects: Vec<(SessionId, Reject)>,
}

impl Outputs for Collected {
    fn publish(&mut self, message: &[u8]) {
        self.feed.push(message.to_vec());
    }

    fn report(&mut self, report: &ExecReport, number: OrderId) {
        self.reports.push((*report, number));
    }

    fn reject(&mut self, session: SessionId, reject: &Reject) {
        self.rejects.push((session, *reject));
    }
}

/// A market of two instruments, the second in lots of 100 shares, and the book that its feed shows.
pub(crate) struct Floor {
    pub(crate) market: Market,
    pub(crate) feed_book: FeedBook,
    /// What the last input put out.
    pub(crate) out: Collected,
    now: Timestamp,
    next_number: u64,
}

pub(crate) fn instrument(id: u32, symbol: &str, lot_size: u32) -> Instrument {
    Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(symbol.as_bytes()).unwrap(),
        tick_size: cents(1),
        lot_size,
        reference_price: cents(100),
        limit_class: LimitClass(0),
        shard: ShardId(0),
        venue: VenueId(0),
    }
}

pub(crate) fn config(capacity: MarketCapacity, self_match: SelfMatch) -> MarketConfig {
    let session = |id, cancel_on_disconnect| SessionRules {
        id,
        cancel_on_disconnect,
        open_orders_max: None,
    };
    MarketConfig {
        instruments: vec![instrument(10, "ALPHA", 1), instrument(20, "BETA", 100)],
        sessions: vec![session(ONE, true), session(TWO, true), session(KEEPER, false)],
        capacity,
        self_match,
    }
}

pub(crate) const ALPHA: InstrumentId = InstrumentId(10);
pub(crate) const BETA: InstrumentId = InstrumentId(20);

/// The history's locates are not ours: 7 is ALPHA, 8 is BETA, 9 is a stock that the market does not have.
pub(crate) const LOCATES: [(u16, &[u8; 8]); 3] = [(7, b"ALPHA   "), (8, b"BETA    "), (9, b"GAMMA   ")];

pub(crate) fn cents(cents: i64) -> Price {
    Price(cents * 10_000_000)
}

pub(crate) fn cents_e4(cents: u32) -> u32 {
    cents * 100
}

pub(crate) fn stamp(locate: u16) -> Stamp {
    Stamp {
        stock_locate: locate,
        time_ns: 1,
    }
}

impl Floor {
    pub(crate) fn new() -> Self {
        let capacity = MarketCapacity {
            orders: 64,
            levels: 32,
            client_orders: 32,
            special_orders: 16,
        };
        Self::with(&config(capacity, SelfMatch::CancelNewest))
    }

    pub(crate) fn with(config: &MarketConfig) -> Self {
        let market = Market::new(config).expect("a fine list of instruments");
        let mut floor = Self {
            market,
            feed_book: FeedBook::default(),
            out: Collected::default(),
            now: Timestamp(1_700_000_000_000_000_000),
            next_number: 1,
        };
        for (locate, stock) in LOCATES {
            floor.history(StockDirectory::new(stamp(locate), Stock(*stock), 100, false).as_bytes());
        }
        floor
    }

    /// Runs one input, rebuilds the book of the feed, and compares.
    pub(crate) fn input(&mut self, input: impl FnOnce(&mut Market, Timestamp, &mut Collected)) -> &Collected {
        self.now.0 += 1_000;
        self.out = Collected::default();
        input(&mut self.market, self.now, &mut self.out);
        for message in &self.out.feed {
            self.feed_book.apply(message);
        }
        self.market.audit();
        for (locate, id, lot) in [(1, ALPHA, 1), (2, BETA, 100)] {
            for side in [Side::Buy, Side::Sell] {
                let market = self
                    .market
                    .orders(id, side)
                    .map(|order| (order.id.0, order.price, order.shown.0 * lot));
                let feed = self.feed_book.side(locate, side);
                let feed = feed
                    .iter()
                    .map(|order| (order.reference, order.price, u64::from(order.shares)));
                assert_eq!(market.collect::<Vec<_>>(), feed.collect::<Vec<_>>());
            }
        }
        &self.out
    }

    pub(crate) fn history(&mut self, message: &[u8]) -> &Collected {
        self.input(|market, now, out| market.on_history(now, message, out))
    }

    /// A recorded order of ALPHA.
    pub(crate) fn recorded(&mut self, reference: u64, side: Side, price: u32, shares: u32) -> &Collected {
        let stock = Stock(*LOCATES[0].1);
        let add = AddOrder::new(stamp(7), reference, side.into(), shares, stock, cents_e4(price));
        self.history(add.as_bytes())
    }

    pub(crate) fn executed(&mut self, reference: u64, shares: u32) -> &Collected {
        self.history(OrderExecuted::new(stamp(7), reference, shares, 99).as_bytes())
    }

    pub(crate) fn cancelled(&mut self, reference: u64, shares: u32) -> &Collected {
        self.history(OrderCancel::new(stamp(7), reference, shares).as_bytes())
    }

    pub(crate) fn deleted(&mut self, reference: u64) -> &Collected {
        self.history(OrderDelete::new(stamp(7), reference).as_bytes())
    }

    pub(crate) fn replaced(&mut self, original: u64, reference: u64, shares: u32, price: u32) -> &Collected {
        self.history(OrderReplace::new(stamp(7), original, reference, shares, cents_e4(price)).as_bytes())
    }

    /// A day limit order of ALPHA; its number.
    pub(crate) fn order(&mut self, session: SessionId, side: Side, price: i64, lots: u64) -> ClientOrderId {
        let order = self.new_order(session, side, price, lots);
        self.request(&Request::New(order));
        order.client_order_id
    }

    pub(crate) fn new_order(&mut self, session: SessionId, side: Side, price: i64, lots: u64) -> NewOrder {
        NewOrder {
            client_order_id: self.number(),
            instrument: ALPHA,
            account: AccountId(u32::from(session.0)),
            session,
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price: cents(price),
            quantity: Quantity(lots),
            trigger: Trigger::NONE,
            terms: OrderTerms::NONE,
        }
    }

    pub(crate) fn cancel(&mut self, session: SessionId, orig: ClientOrderId, side: Side) -> &Collected {
        let client_order_id = self.number();
        let cancel = CancelOrder {
            client_order_id,
            orig_client_order_id: orig,
            instrument: ALPHA,
            session,
            side,
        };
        self.request(&Request::Cancel(cancel))
    }

    pub(crate) fn replace(
        &mut self,
        session: SessionId,
        orig: ClientOrderId,
        side: Side,
        price: i64,
        lots: u64,
    ) -> ClientOrderId {
        let client_order_id = self.number();
        self.request(&Request::Replace(ReplaceOrder {
            client_order_id,
            orig_client_order_id: orig,
            instrument: ALPHA,
            session,
            side,
            price: cents(price),
            quantity: Quantity(lots),
            terms: OrderTerms::NONE,
        }));
        client_order_id
    }

    pub(crate) fn mass_cancel(&mut self, session: SessionId, instrument: Option<InstrumentId>) -> &Collected {
        let client_order_id = self.number();
        self.request(&Request::MassCancel(MassCancel {
            client_order_id,
            session,
            instrument,
        }))
    }

    pub(crate) fn request(&mut self, request: &Request) -> &Collected {
        self.input(|market, now, out| market.on_request(now, request.session(), request, Reason::None, out))
    }

    /// Time of the last input.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn number(&mut self) -> ClientOrderId {
        self.next_number += 1;
        ClientOrderId(self.next_number)
    }
}

impl Collected {
    /// Session, type, number and reason of each report.
    pub(crate) fn told(&self) -> Vec<(SessionId, ExecType, ClientOrderId, Reason)> {
        let told = |(report, _): &(ExecReport, OrderId)| {
            (report.session, report.exec_type, report.client_order_id, report.reason)
        };
        self.reports.iter().map(told).collect()
    }

    /// Session, price in cents and lots of each fill.
    pub(crate) fn fills(&self) -> Vec<(SessionId, i64, u64)> {
        let fills = self
            .reports
            .iter()
            .filter(|(report, _)| report.exec_type == ExecType::Fill);
        fills
            .map(|(report, _)| (report.session, report.last_price.0 / cents(1).0, report.last_quantity.0))
            .collect()
    }

    /// Types of the messages published.
    pub(crate) fn published(&self) -> String {
        self.feed.iter().map(|message| char::from(message[0])).collect()
    }
}
