//! The exchange: recorded history and live clients in one book, order sessions in, market data out.
//!
//! [`Market`] decides and does no I/O: history messages, requests, link and day events go in with their time, reports and
//! market-data messages come out through [`Outputs`]. The same inputs give the same outputs byte for byte.
//!
//! # How history and clients share a book
//! History is an ITCH feed of what once happened; it cannot react. The rules keep it whole and give clients the queue
//! position they earned:
//! - Recorded orders do not trade among themselves: history says when they trade.
//! - A recorded execution first fills the clients' orders that stand before the recorded order, at a better price or
//!   earlier at the same price, each at its own price. The recorded order gets the rest. What it lost to clients leaves
//!   the book with it, published as a cancel, because history will not mention it again.
//! - A recorded order that comes in across a client's order trades with it at the client's price. What is left rests.
//! - A client's order trades with whatever it reaches. A recorded order that a client took is gone, and what history later
//!   says of it is counted and skipped.
//! - When history starts anew, what it left in the book is deleted.

mod client_orders;
mod clock;
mod component;
mod config;
mod desk;
mod engine;
mod feed;
mod history;
mod journal;
mod limits;
mod listing;
mod live;
mod market;
mod market_data;
mod open;
mod recall;
mod record;
mod recovery;
mod requests;
mod room;
mod schedule;
#[cfg(test)]
mod tests;

pub use component::{Exchange, ExchangeCounters, Parts, StartError};
pub use config::{ConfigError, ExchangeConfig, Idle, JournalConfig, SessionConfig};
pub use journal::{Journal, NoJournal};
pub use limits::{MAX_CLIENT_ORDERS, MAX_DESTINATIONS, MAX_INSTRUMENTS, MAX_SESSIONS};
pub use listing::ListingError;
pub use market::{Market, MarketCapacity, MarketConfig, MarketCounters, Outputs, SessionRules};
pub use market_data::{FeedConfig, HistoryConfig, SocketCounters};
pub use open::AnyJournal;
pub use recall::Recall;
pub use recovery::{CoreConfig, Recovered, Recovery, RecoveryError};
pub use schedule::AuctionTimes;

use proto::mold::Session;
use types::SequenceNumber;

/// Where a numbered feed goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FeedNumbers {
    session: Session,
    next: SequenceNumber,
}
