//! The gateway: one shard a core, each with its sessions, order logic, journal and venue links wired together.
//!
//! Where to read: [`shard`] is the way of an order, in decisions alone. `worker` is the loop that feeds it from sockets,
//! links and rings; [`door`] is where clients come in. [`effects`] is the seam between the two, `live` and [`replay`] its
//! two sides.
#![forbid(unsafe_code)]

mod books;
mod client_links;
mod client_output;
mod clients;
pub mod config;
mod config_limits;
pub mod control;
mod crossing;
pub mod dictionary;
pub mod door;
pub mod effects;
pub mod executor;
pub mod feed;
mod filter;
pub mod gateway;
pub mod harness;
mod instruments;
pub mod limits;
mod line_limit;
mod live;
mod marks;
pub mod memory;
mod outbox;
mod outside;
pub mod places;
mod recall;
pub mod record;
pub mod recount;
pub mod references;
pub mod replay;
pub mod schedule;
mod session;
pub mod shard;
mod shared_counter;
pub mod shared_limits;
mod shared_rate;
pub mod status;
pub mod stream;
mod worker;

pub use config::Config;
