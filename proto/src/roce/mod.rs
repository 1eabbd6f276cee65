//! RoCEv2, RDMA over UDP, in user space: one end of a reliable connection, which exchanges SEND, RDMA WRITE and RDMA READ
//! with another like it and with RDMA devices.
//!
//! [`QueuePair`] is the end, without socket, clock and memory: packets, time and the owner's arena go in, packets and
//! completions come out. [`Regions`] says what a peer may reach of the arena, [`Path`] makes and checks the packets' CRC.
//! docs/rocev2.md has the format and the timers.
//!
//! What a peer may rely on:
//!
//! - Requests are executed once each and in order, whatever the network does. A packet whose turn it is not changes nothing.
//! - An acknowledged request is executed: what an RDMA WRITE wrote is in the arena before its immediate is told.
//! - A request that the key, the bounds or the access do not allow is refused with the reason, changes nothing, and breaks
//!   the queue pair at both ends.
//!
//! What it cannot rely on: the ICRC finds damage, not malice. Whoever can read the network can write into a region.

mod config;
mod counters;
mod crc;
mod icrc;
mod psn;
mod queue_pair;
mod rate;
mod region;
mod requester;
mod responder;
mod timeout;
pub mod wire;
mod work;

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "numbers of tests are small, and bytes of patterns are low bytes"
)]
mod simulation;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "numbers of tests are small, and bytes of patterns are low bytes"
)]
mod tests;

pub use config::{Attributes, Config, ConfigError, QUEUE_MAX, READS_MAX, RNR_RETRY_FOREVER};
pub use counters::Counters;
pub use icrc::{ICRC_LENGTH, Identification, Path};
pub use queue_pair::QueuePair;
pub use rate::RateConfig;
pub use region::{Access, Region, RegionError, Regions};
pub use work::{Completion, Failure, Operation, PostError, ReceiveRequest, Received, Remote, SendRequest};

use types::Timestamp;

/// A time that does not come.
const NEVER: Timestamp = Timestamp(u64::MAX);
