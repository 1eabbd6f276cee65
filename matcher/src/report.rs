//! What the matcher tells while it works.

use crate::event::{BookIndex, OwnerId};
use crate::view::RestingOrder;
use types::{OrderId, Price, Quantity, Reason, Side};

/// Takes the reports of an event, in the order in which things happen. Closures are sinks.
pub trait Sink {
    /// Takes one report. The matcher is in the middle of its event; it cannot be asked.
    fn report(&mut self, report: Report);
}

impl<F: FnMut(Report)> Sink for F {
    #[inline]
    fn report(&mut self, report: Report) {
        self(report);
    }
}

/// One thing that happened to an order.
///
/// A new order gives `Accepted`, then its trades, then `Rested`, `Held` or `Canceled` for what is left; or `Rejected` alone.
/// A replace gives `Replaced` and goes on like a new order when it lost its priority. So does a stop that is `Triggered`,
/// and a pegged order that was `Withdrawn`, in the same event as the trade or quote that caused it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// A new order was taken.
    Accepted {
        /// The order.
        id: OrderId,
    },
    /// Two orders traded.
    Trade(Trade),
    /// What is left of an incoming order now waits in the book.
    Rested(RestingOrder),
    /// What is left of an incoming order waits outside of the book: for its stop price, its auction, a price to follow.
    Held {
        /// The order.
        id: OrderId,
        /// Lots waiting.
        leaves: Quantity,
    },
    /// A stop's price was met: from here on it is a market or limit order.
    Triggered {
        /// The order.
        id: OrderId,
    },
    /// What an iceberg showed is traded. It shows more, at the end of its price's queue.
    Replenished(RestingOrder),
    /// A pegged order left its place, because the price that it follows moved.
    Withdrawn {
        /// The order.
        id: OrderId,
    },
    /// An order left the book, or what was left of an incoming one never got in.
    Canceled {
        /// The order.
        id: OrderId,
        /// Whose it was.
        owner: OwnerId,
        /// Lots that were taken away.
        quantity: Quantity,
        /// Why.
        reason: Reason,
    },
    /// An order got smaller; a resting one kept its place.
    Reduced {
        /// The order.
        id: OrderId,
        /// Lots that were taken away.
        quantity: Quantity,
        /// Lots still open.
        leaves: Quantity,
    },
    /// An order has a new price or quantity or terms, and perhaps a new id.
    Replaced {
        /// The id it had.
        old_id: OrderId,
        /// The id it has.
        id: OrderId,
        /// Whether it kept its place in the queue. If not, what follows is as for a new order.
        kept_priority: bool,
        /// Its limit, 1e-9.
        price: Price,
        /// Lots open.
        leaves: Quantity,
    },
    /// An auction found its price. An [`AuctionFill`] for each order that trades follows, bids first.
    Uncrossed {
        /// The book.
        book: BookIndex,
        /// The price of all trades, 1e-9.
        price: Price,
        /// Lots bought, and sold.
        quantity: Quantity,
    },
    /// An order traded in an auction.
    AuctionFill(AuctionFill),
    /// The event was refused and changed nothing.
    Rejected(Rejected),
}

/// A trade, with both sides. The price is the maker's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trade {
    /// The book.
    pub book: BookIndex,
    /// The incoming order.
    pub taker: OrderId,
    /// Whose the incoming order is.
    pub taker_owner: OwnerId,
    /// The incoming order's side.
    pub taker_side: Side,
    /// Lots the incoming order still has.
    pub taker_leaves: Quantity,
    /// The resting order.
    pub maker: OrderId,
    /// Whose the resting order is.
    pub maker_owner: OwnerId,
    /// Lots the resting order still has; at zero it is gone.
    pub maker_leaves: Quantity,
    /// The resting order's limit, 1e-9.
    pub price: Price,
    /// Lots traded, more than zero.
    pub quantity: Quantity,
}

/// What an order traded in an auction, all at one price, with nobody in particular.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuctionFill {
    /// The book.
    pub book: BookIndex,
    /// The order.
    pub id: OrderId,
    /// Whose it is.
    pub owner: OwnerId,
    /// Its side.
    pub side: Side,
    /// The auction's price, 1e-9.
    pub price: Price,
    /// Lots traded, more than zero.
    pub quantity: Quantity,
    /// Lots of these that it showed in the book.
    pub from_shown: Quantity,
    /// Lots the order still has; at zero it is gone.
    pub leaves: Quantity,
}

/// A refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// The order that the event named.
    pub id: OrderId,
    /// Why: one of `UnknownInstrument`, `InvalidQuantity`, `InvalidPrice`, `InvalidStopPrice`, `InvalidDisplay`,
    /// `InvalidMinQuantity`, `InvalidExpiry`, `UnsupportedOrder`, `DuplicateClientOrderId` (an order with this id is live),
    /// `UnknownOrder`, `BookFull`, `PostOnly`.
    pub reason: Reason,
}
