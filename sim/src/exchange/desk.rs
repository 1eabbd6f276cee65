//! Everything of the market but the books: who has which order, and what a report of the matcher means for the feed and
//! for the clients.

use super::client_orders::{ClientOrder, ClientOrders, SessionIndex};
use super::feed;
use super::listing::Listing;
use super::market::{MarketCounters, Outputs, SessionRules};
use matcher::{BookIndex, Report, RestingOrder, Sink, Trade};
use types::{
    ClientOrderId, ExecId, ExecReport, ExecType, OrderId, Price, Quantity, Reason, ReplaceOrder, SessionId, Side,
    Timestamp,
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
    /// The day ended.
    Expiry,
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

    fn set_resting(&mut self, reference: OrderId, is_resting: bool) {
        let Some(order) = self.orders.get_mut(reference) else {
            return;
        };
        if order.is_resting != is_resting {
            order.is_resting = is_resting;
            let count = &mut self.resting[order.book.0 as usize][side_index(order.side)];
            *count = if is_resting { *count + 1 } else { *count - 1 };
        }
    }

    /// Forgets an order that is done, and gives it as it last was.
    pub(super) fn remove(&mut self, reference: OrderId) -> Option<ClientOrder> {
        self.set_resting(reference, false);
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
        self.on_fill(trade.maker, trade);
        self.on_fill(trade.taker, trade);
    }

    /// One side of a trade, when it is a client's.
    fn on_fill(&mut self, reference: OrderId, trade: &Trade) {
        let Some(order) = self.desk.orders.get_mut(reference) else {
            return;
        };
        order.cumulative += trade.quantity;
        let order = *order;
        let exec_id = self.desk.next_exec_id();
        let report = ExecReport {
            last_price: trade.price,
            last_quantity: trade.quantity,
            ..order.report(ExecType::Fill, exec_id, Reason::None)
        };
        if order.leaves().is_zero() {
            self.desk.remove(reference);
        }
        self.report(&order, &report);
    }

    fn on_rested(&mut self, order: &RestingOrder) {
        self.desk.orders.list(order.id);
        self.desk.set_resting(order.id, true);
        feed::added(self.out, self.now, &self.desk.listing, order);
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
            Cause::Cancel(number) => ExecReport {
                client_order_id: number,
                orig_client_order_id: order.client_order_id,
                ..order.report(ExecType::Canceled, exec_id, reason)
            },
            Cause::Expiry => order.report(ExecType::Expired, exec_id, reason),
            Cause::Other | Cause::Replace(_) => order.report(ExecType::Canceled, exec_id, reason),
        };
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
        if kept_priority {
            feed::reduced(
                self.out,
                self.now,
                &self.desk.listing,
                book,
                old,
                before.leaves() - leaves,
            );
        } else {
            feed::deleted(self.out, self.now, book, old);
            self.desk.set_resting(old, false);
        }
        self.desk.orders.renumber(old, replace.client_order_id, new);
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

    /// The book has no room: the form was checked before.
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
            // Clients reduce by a replace.
            Report::Reduced { .. } => {}
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
