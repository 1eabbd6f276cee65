//! Everything of the market but the books: who has which order, and what a report of the matcher means for the feed and
//! for the clients.

use super::client_orders::{ClientOrder, ClientOrders, SessionIndex};
use super::feed::{self, Cross};
use super::listing::Listing;
use super::market::{MarketCounters, Outputs, SessionRules};
use matcher::{Auction, AuctionFill, BookIndex, Report, RestingOrder, Sink, Trade};
use types::{
    ClientOrderId, ExecId, ExecReport, ExecType, OrderId, OrderType, Price, Quantity, Reason, ReplaceOrder, SessionId,
    Side, Timestamp,
};

/// The market but for its books.
pub(super) struct Desk {
    pub(super) listing: Listing,
    pub(super) orders: ClientOrders,
    pub(super) sessions: Vec<Session>,
    /// Clients' resting orders in each book, bids and offers: history need not look for clients where there are none.
    pub(super) resting: Vec<[u32; 2]>,
    pub(super) counters: MarketCounters,
    pub(super) reasons: [u64; REASONS],
    last_exec: u64,
    last_match: u64,
}

/// What is known of a session.
pub(super) struct Session {
    pub(super) rules: SessionRules,
    /// The highest number it used today.
    pub(super) last: ClientOrderId,
}

/// One input while it is worked off: gives meaning to what the matcher reports.
pub(super) struct Event<'a, O> {
    pub(super) now: Timestamp,
    pub(super) desk: &'a mut Desk,
    pub(super) out: &'a mut O,
    pub(super) cause: Cause<'a>,
}

/// What the client asked that the matcher works on.
#[derive(Clone, Copy)]
pub(super) enum Cause<'a> {
    /// A new order, or nothing of a client.
    Other,
    /// A cancel with this number.
    Cancel(ClientOrderId),
    Replace(&'a ReplaceOrder),
    /// An auction ends.
    Auction(Auction),
}

impl Desk {
    pub(super) fn new(listing: Listing, rules: &[SessionRules], client_orders: usize) -> Self {
        let mut sessions: Vec<_> = rules
            .iter()
            .map(|&rules| Session {
                rules,
                last: ClientOrderId(0),
            })
            .collect();
        sessions.sort_by_key(|session| session.rules.id);
        assert!(
            sessions.windows(2).all(|pair| pair[0].rules.id != pair[1].rules.id),
            "a session is there twice"
        );
        Self {
            orders: ClientOrders::new(client_orders, sessions.len()),
            resting: vec![[0; 2]; listing.len()],
            listing,
            sessions,
            counters: MarketCounters::default(),
            reasons: [0; REASONS],
            last_exec: 0,
            last_match: 0,
        }
    }

    pub(super) fn session(&self, id: SessionId) -> Option<SessionIndex> {
        let place = self
            .sessions
            .binary_search_by_key(&id, |session| session.rules.id)
            .ok()?;
        u16::try_from(place).ok().map(SessionIndex)
    }

    pub(super) fn session_mut(&mut self, session: SessionIndex) -> &mut Session {
        &mut self.sessions[usize::from(session.0)]
    }

    pub(super) fn next_exec_id(&mut self) -> ExecId {
        self.last_exec += 1;
        ExecId(self.last_exec)
    }

    pub(super) fn count_reason(&mut self, reason: Reason) {
        self.reasons[reason as usize] += 1;
    }

    /// Whether clients wait on a side of a book.
    pub(super) fn has_clients(&self, book: BookIndex, side: Side) -> bool {
        self.resting[book.0 as usize][side_index(side)] > 0
    }

    fn next_match(&mut self) -> u64 {
        self.last_match += 1;
        MATCH_RANGE | self.last_match
    }

    /// What the feed shows of an order now: nothing once it is out of the book.
    fn set_shown(&mut self, reference: OrderId, shown: Quantity) {
        let Some(order) = self.orders.get_mut(reference) else {
            return;
        };
        order.shown = shown;
        let is_resting = !shown.is_zero();
        if order.is_resting != is_resting {
            order.is_resting = is_resting;
            let count = &mut self.resting[order.book.0 as usize][side_index(order.side)];
            *count = if is_resting { *count + 1 } else { *count - 1 };
        }
    }

    /// Forgets an order that is done, and gives it as it last was.
    pub(super) fn remove(&mut self, reference: OrderId) -> Option<ClientOrder> {
        self.set_shown(reference, Quantity::ZERO);
        self.orders.remove(reference)
    }
}

impl<O: Outputs> Event<'_, O> {
    pub(super) fn report(&mut self, order: &ClientOrder, report: &ExecReport) {
        self.out.report(report, OrderId(order.first_client_order_id.0));
    }

    fn on_accepted(&mut self, id: OrderId) {
        let Some(order) = self.desk.orders.get(id).copied() else {
            return;
        };
        let report = order.report(ExecType::New, self.desk.next_exec_id(), Reason::None);
        self.report(&order, &report);
    }

    fn on_trade(&mut self, trade: &Trade) {
        self.desk.counters.trades += 1;
        let match_number = self.desk.next_match();
        feed::executed(self.out, self.now, &self.desk.listing, trade, match_number);
        if let Some(maker) = self.desk.orders.get_mut(trade.maker) {
            // It counts as resting till it is gone, or shows its next slice.
            maker.shown -= trade.quantity;
        }
        self.on_fill(trade.maker, trade.price, trade.quantity);
        self.on_fill(trade.taker, trade.price, trade.quantity);
    }

    fn on_auction_fill(&mut self, fill: &AuctionFill) {
        self.desk.counters.trades += 1;
        let match_number = self.desk.next_match();
        if !fill.from_shown.is_zero() {
            feed::executed_in_auction(self.out, self.now, &self.desk.listing, fill, match_number);
        }
        if let Some(order) = self.desk.orders.get_mut(fill.id) {
            order.shown -= fill.from_shown;
        }
        self.on_fill(fill.id, fill.price, fill.quantity);
    }

    fn on_uncrossed(&mut self, book: BookIndex, price: Price, quantity: Quantity) {
        let Cause::Auction(auction) = self.cause else { return };
        let match_number = self.desk.next_match();
        let cross = Cross {
            book,
            auction,
            price,
            quantity,
        };
        feed::crossed(self.out, self.now, &self.desk.listing, &cross, match_number);
    }

    /// An order traded, if it is a client's.
    fn on_fill(&mut self, reference: OrderId, price: Price, quantity: Quantity) {
        let Some(order) = self.desk.orders.get_mut(reference) else {
            return;
        };
        order.cumulative += quantity;
        let order = *order;
        let exec_id = self.desk.next_exec_id();
        let report = ExecReport {
            last_price: price,
            last_quantity: quantity,
            ..order.report(ExecType::Fill, exec_id, Reason::None)
        };
        if order.leaves().is_zero() {
            self.desk.remove(reference);
        }
        self.report(&order, &report);
    }

    fn on_rested(&mut self, order: &RestingOrder) {
        self.desk.orders.list(order.id);
        self.on_shown(order);
    }

    /// An order shows lots in the book, for the first time or again.
    fn on_shown(&mut self, order: &RestingOrder) {
        self.desk.set_shown(order.id, order.shown);
        feed::added(self.out, self.now, &self.desk.listing, order);
    }

    /// A pegged order leaves the book for another place.
    fn on_withdrawn(&mut self, reference: OrderId) {
        let Some(order) = self.desk.orders.get(reference).copied() else {
            return;
        };
        self.desk.set_shown(reference, Quantity::ZERO);
        feed::deleted(self.out, self.now, order.book, reference);
    }

    /// A stop's price was met.
    fn on_triggered(&mut self, reference: OrderId) {
        let Some(order) = self.desk.orders.get_mut(reference) else {
            return;
        };
        order.order_type = match order.order_type {
            OrderType::StopLimit => OrderType::Limit,
            _ => OrderType::Market,
        };
        order.terms.stop_price = Price::NULL;
        order.is_triggered = true;
        let order = *order;
        self.desk.orders.recount(reference);
        let report = order.report(ExecType::Triggered, self.desk.next_exec_id(), Reason::None);
        self.report(&order, &report);
    }

    fn on_canceled(&mut self, reference: OrderId, reason: Reason) {
        let Some(order) = self.desk.orders.get(reference).copied() else {
            return;
        };
        self.desk.remove(reference);
        if order.is_resting {
            feed::deleted(self.out, self.now, order.book, reference);
        }
        self.desk.count_reason(reason);
        let exec_id = self.desk.next_exec_id();
        let report = match self.cause {
            _ if matches!(reason, Reason::DayEnded | Reason::Expired) => {
                order.report(ExecType::Expired, exec_id, reason)
            }
            Cause::Cancel(number) if reason == Reason::Requested => ExecReport {
                client_order_id: number,
                orig_client_order_id: order.client_order_id,
                ..order.report(ExecType::Canceled, exec_id, reason)
            },
            Cause::Cancel(_) | Cause::Other | Cause::Replace(_) | Cause::Auction(_) => {
                order.report(ExecType::Canceled, exec_id, reason)
            }
        };
        self.report(&order, &report);
    }

    /// Lots were taken off an order that would have traded with another of its account. Of a recorded order the history tells.
    fn on_reduced(&mut self, reference: OrderId, lots: Quantity) {
        let Some(order) = self.desk.orders.get_mut(reference) else {
            return;
        };
        order.quantity -= lots;
        let (book, shown) = (order.book, order.shown);
        if lots < shown {
            feed::reduced(self.out, self.now, &self.desk.listing, book, reference, lots);
            self.desk.set_shown(reference, shown - lots);
        } else if !shown.is_zero() {
            // An iceberg shows its next slice at once.
            feed::deleted(self.out, self.now, book, reference);
            self.desk.set_shown(reference, Quantity::ZERO);
        }
        self.desk.orders.recount(reference);
        let exec_id = self.desk.next_exec_id();
        let Some(order) = self.desk.orders.get(reference).copied() else {
            return;
        };
        let report = order.report(ExecType::Restated, exec_id, Reason::SelfMatch);
        self.report(&order, &report);
    }

    fn on_replaced(&mut self, old: OrderId, new: OrderId, kept_priority: bool, price: Price, leaves: Quantity) {
        let Cause::Replace(replace) = self.cause else { return };
        let Some(order) = self.desk.orders.get_mut(old) else {
            return;
        };
        let (before, book) = (*order, order.book);
        order.price = price;
        order.quantity = order.cumulative + leaves;
        order.terms = order.terms_of(replace);
        let shown = if kept_priority {
            before.shown.min(leaves)
        } else {
            Quantity::ZERO
        };
        if before.is_resting && !kept_priority {
            feed::deleted(self.out, self.now, book, old);
        } else if shown < before.shown {
            let lots = before.shown - shown;
            feed::reduced(self.out, self.now, &self.desk.listing, book, old, lots);
        }
        self.desk.set_shown(old, shown);
        self.desk.orders.renumber(old, replace.client_order_id, new);
        self.desk.orders.recount(new);
        let exec_id = self.desk.next_exec_id();
        let Some(order) = self.desk.orders.get(new).copied() else {
            return;
        };
        let report = ExecReport {
            orig_client_order_id: before.client_order_id,
            ..order.report(ExecType::Replaced, exec_id, Reason::None)
        };
        self.report(&order, &report);
    }

    /// The book has no room, or the order must not trade and would, or asks for what does not go together.
    fn on_rejected(&mut self, reference: OrderId, reason: Reason) {
        let Some(order) = self.desk.orders.get(reference).copied() else {
            return;
        };
        self.desk.count_reason(reason);
        let exec_id = self.desk.next_exec_id();
        let report = match self.cause {
            Cause::Replace(replace) => ExecReport {
                client_order_id: replace.client_order_id,
                orig_client_order_id: order.client_order_id,
                ..order.report(ExecType::RequestRejected, exec_id, reason)
            },
            _ => {
                self.desk.remove(reference);
                order.report(ExecType::Rejected, exec_id, reason)
            }
        };
        self.report(&order, &report);
    }
}

impl<O: Outputs> Sink for Event<'_, O> {
    /// What happens to recorded orders is published by who handles the history; here only the clients' side of it counts.
    fn report(&mut self, report: Report) {
        match report {
            Report::Trade(trade) => self.on_trade(&trade),
            Report::Accepted { id } => self.on_accepted(id),
            Report::Rested(order) => self.on_rested(&order),
            Report::Replenished(order) => self.on_shown(&order),
            Report::Held { id, .. } => self.desk.orders.list(id),
            Report::Triggered { id } => self.on_triggered(id),
            Report::Withdrawn { id } => self.on_withdrawn(id),
            Report::AuctionFill(fill) => self.on_auction_fill(&fill),
            Report::Uncrossed { book, price, quantity } => self.on_uncrossed(book, price, quantity),
            Report::Canceled { id, reason, .. } => self.on_canceled(id, reason),
            Report::Replaced {
                old_id,
                id,
                kept_priority,
                price,
                leaves,
            } => {
                self.on_replaced(old_id, id, kept_priority, price, leaves);
            }
            Report::Rejected(rejected) => self.on_rejected(rejected.id, rejected.reason),
            Report::Reduced { id, quantity, .. } => self.on_reduced(id, quantity),
        }
    }
}

const fn side_index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}

/// Counters for every reason.
const REASONS: usize = 128;
const _: () = {
    let mut i = 0;
    while i < Reason::ALL.len() {
        assert!((Reason::ALL[i] as usize) < REASONS);
        i += 1;
    }
};

/// Match numbers from here on are of our trades; history's are below.
const MATCH_RANGE: u64 = 1 << 63;
