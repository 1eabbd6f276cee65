//! Price-time matching: limit order books of many instruments that share one bounded memory.
//!
//! The first stage of the gateway keeps its working orders in it, the exchange simulator its whole market. A call is one
//! event; what became of it goes to a [`Sink`] while it happens, and nothing is collected. Everything is allocated by
//! [`Matcher::new`]; a book that is full refuses with [`types::Reason::BookFull`] and stays as it was.
//!
//! The files: `matcher` has the events, `matching` the trades; `ladder` finds price levels (a B+ tree, so that a price far
//! from the rest costs one level and nothing else), `index` finds orders by id, `pool` holds both.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod audit;
mod event;
mod index;
mod ladder;
mod matcher;
mod matching;
mod pool;
mod record;
mod report;
mod view;

pub use event::{BookIndex, NewOrder, OwnerId, Priority, Replace, SelfMatch, Sweep};
pub use index::IdIndex;
pub use matcher::{Capacity, Matcher};
pub use report::{Rejected, Report, Sink, Trade};
pub use view::{Level, RestingOrder};

/// Most orders that one matcher may be built for.
pub const MAX_ORDERS: usize = 1 << 28;
/// Most books that one matcher may be built for.
pub const MAX_BOOKS: usize = 1 << 24;
/// Largest quantity of one order, lots. [`MAX_ORDERS`] of them still sum up in a u64.
pub const MAX_QUANTITY: u64 = (1 << 36) - 1;
