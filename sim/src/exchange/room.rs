//! How much one input may cause at most, so that it is taken only when there is room for it.
//!
//! Each trade ends an order, or a slice of an iceberg, or the order that came in: so trades are no more than those. Orders
//! that come in are the client's and those that wait for what others do: stops, once, and pegged orders, a few times. How many
//! trades one of these makes is bounded by the matcher ([`matcher::MAX_TRIGGERED_TRADES`]). All of it is counted for each order
//! when it is taken ([`Extra`]), and the sum over all orders is bounded by the capacity for clients' orders.
//!
//! [`Extra`]: super::client_orders::Extra

use super::client_orders::{ClientOrder, REPRICINGS};
use super::market::{Market, MarketCapacity};
use types::{OrderTerms, OrderType, Price, Quantity, Request, SessionId, Side};

impl Market {
    /// Reports that an input about other orders may cause for a session: a trade and an end for each of its live orders,
    /// and what they or others set off.
    #[must_use]
    pub fn reports_reserved(&self, session: SessionId) -> usize {
        let orders = &self.desk.orders;
        let own = self.desk.session(session).map_or(0, |session| {
            REPORTS_PER_ORDER * orders.count(session) + orders.extra_of(session).reports
        });
        own + orders.extra().entries
    }

    /// Of these, what the session's own orders account for: it never grows but by the session's doing.
    #[must_use]
    pub fn own_reports_reserved(&self, session: SessionId) -> usize {
        self.reports_reserved(session) - self.desk.orders.extra().entries
    }

    /// Times that orders may come in by others' doing.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.desk.orders.extra().entries
    }

    /// Messages to sessions that an input may cause beside those about an order that it brings.
    #[must_use]
    pub fn reports_max(&self) -> usize {
        let extra = self.desk.orders.extra();
        self.desk.orders.len() + extra.reports + extra.entries
    }

    /// Messages that an input may publish: for each trade one, for each order that leaves or comes back one.
    #[must_use]
    pub fn published_max(&self) -> usize {
        let extra = self.desk.orders.extra();
        self.matcher.order_count() + 2 * extra.reports + 3 * extra.entries + self.desk.listing.len()
    }

    /// Reports for its own session that a request may cause, but for those about the session's other orders.
    #[must_use]
    pub fn reports_needed(&self, request: &Request) -> usize {
        let (order, instrument, quantity) = match request {
            Request::New(order) => {
                let extra = extra(order.order_type, &order.terms, order.quantity);
                (
                    Incoming::new(order.side, order.order_type, order.price, extra),
                    order.instrument,
                    order.quantity,
                )
            }
            Request::Replace(replace) => {
                let session = self.desk.session(replace.session);
                let known =
                    session.and_then(|session| self.desk.orders.by_client_id(session, replace.orig_client_order_id));
                let order_type = known.map_or(OrderType::Limit, |order| order.order_type);
                let extra = extra(order_type, &replace.terms, replace.quantity);
                (
                    Incoming::new(replace.side, order_type, replace.price, extra),
                    replace.instrument,
                    replace.quantity,
                )
            }
            Request::Cancel(_) | Request::MassCancel(_) | Request::Status(_) | Request::MassStatus(_) => {
                return FIXED_REPORTS;
            }
        };
        let Some(book) = self.desk.listing.book(instrument) else {
            return FIXED_REPORTS;
        };
        let (mut reached, mut wanted) = (0, quantity);
        for level in self.matcher.levels(book, order.side.opposite()) {
            if !order.reaches(level.price) || wanted.is_zero() {
                break;
            }
            // Each has a lot at least.
            reached += usize::try_from(wanted.0).map_or(level.orders as usize, |lots| lots.min(level.orders as usize));
            wanted = wanted.saturating_sub(level.quantity);
        }
        // Slices that are not shown yet are in no level's count.
        let slices = usize::try_from(quantity.0).map_or(usize::MAX, |lots| lots.min(self.desk.orders.extra().reports));
        FIXED_REPORTS + reached + slices + order.extra
    }
}

/// An order that a request would bring.
struct Incoming {
    side: Side,
    /// `None`: whatever the other side asks for.
    limit: Option<Price>,
    extra: usize,
}

impl Incoming {
    fn new(side: Side, order_type: OrderType, price: Price, extra: usize) -> Self {
        let limit = (!price.is_null() && !matches!(order_type, OrderType::Market | OrderType::Stop)).then_some(price);
        Self { side, limit, extra }
    }

    fn reaches(&self, price: Price) -> bool {
        self.limit.is_none_or(|limit| match self.side {
            Side::Buy => price <= limit,
            Side::Sell => price >= limit,
        })
    }
}

fn extra(order_type: OrderType, terms: &OrderTerms, quantity: Quantity) -> usize {
    ClientOrder::extra_of(order_type, terms, quantity).reports
}

/// Messages that the largest input of a market may publish.
pub(super) fn published_max(capacity: &MarketCapacity, instruments: usize) -> usize {
    capacity.orders + 2 * capacity.client_orders + 3 * entries_max(capacity) + instruments
}

/// Messages to sessions that the largest input may cause.
pub(super) const fn reports_max(capacity: &MarketCapacity) -> usize {
    2 * capacity.client_orders + entries_max(capacity)
}

/// Times that orders may come in by others' doing.
pub(super) const fn entries_max(capacity: &MarketCapacity) -> usize {
    REPRICINGS * capacity.special_orders
}

/// One for a trade, one for the end.
pub(super) const REPORTS_PER_ORDER: usize = 2;

/// A first answer, and the cancel of what may not rest.
const FIXED_REPORTS: usize = 2;
