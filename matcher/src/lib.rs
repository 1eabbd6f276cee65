//! Price-time matching: limit order books of many instruments that share one bounded memory.
//!
//! The first stage of the gateway keeps its working orders in it, the exchange simulator its whole market. A call is one
//! event; what became of it goes to a [`Sink`] while it happens, and nothing is collected. Everything is allocated by
//! [`Matcher::new`]; a book that is full refuses with [`types::Reason::BookFull`] and stays as it was.
//!
//! # What an order may be
//! Plain orders, limit or market, are what nearly all events are about, and take the short way: `matcher` has their events,
//! `matching` the trades. Whatever has [`types::OrderTerms`] goes by `entry`, which decides where an order waits: in the book,
//! or outside of it for a stop price, an auction, or a price to follow. `stops` and `pegs` are what an event causes beyond
//! itself; both end within the event, because each step uses up an order or is counted. `auction` finds one price for all.
//!
//! # What holds them
//! `ladder` finds levels (a B+ tree, so that a price far from the rest costs one level and nothing else), `index` finds orders
//! by id, `queues` puts orders into levels and takes them out, `terms` and `expiry` have what only few orders need, and `pool`
//! is the memory of all.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod auction;
mod audit;
mod entry;
mod event;
mod expiry;
mod index;
mod ladder;
mod matcher;
mod matching;
mod outside;
mod pegs;
mod pool;
mod queues;
mod reach;
mod record;
mod report;
mod stops;
mod terms;
mod view;

pub use event::{Auction, BookIndex, NewOrder, OwnerId, PegRules, Priority, Replace, SelfMatch, Sweep};
pub use index::IdIndex;
pub use matcher::{Capacity, Matcher};
pub use report::{AuctionFill, Rejected, Report, Sink, Trade};
pub use view::{Level, RestingOrder};

/// Most orders that one matcher may be built for.
pub const MAX_ORDERS: usize = 1 << 28;
/// Most orders with terms that one matcher may be built for.
pub const MAX_SPECIAL: usize = MAX_ORDERS - 1;
/// Most books that one matcher may be built for.
pub const MAX_BOOKS: usize = 1 << 24;
/// Largest quantity of one order, lots. [`MAX_ORDERS`] of them still sum up in a u64.
pub const MAX_QUANTITY: u64 = (1 << 36) - 1;
/// Most slices of an iceberg: its display quantity is at least this part of it.
pub const MAX_SLICES: u64 = 1_024;
/// Most trades of a stop after it is triggered, and of a pegged order each time its price moves. What is left of it then is
/// cancelled. So what a waiting order may cause one day has a bound that is known when it is taken.
pub const MAX_TRIGGERED_TRADES: u32 = 64;
/// How often the pegged orders of a book are looked at in one event, until none moves. Those that still would follow later.
pub const MAX_REPRICINGS: u32 = 4;
