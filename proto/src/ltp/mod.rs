//! LTP, the lightweight transport protocol: numbered messages both ways over datagrams that may be lost, doubled and
//! reordered, exactly once and in order, across restarts of either end.
//!
//! [`Connection`] is one end, without socket and clock: datagrams and the time go in, events and datagrams come out.
//! docs/ltp.md has the format, the state diagram and the timers.
//!
//! Why another protocol: TCP waits 200 ms (8 ms at best on a kernel of 250 Hz) before it repairs the loss of a lone last
//! packet, and the kernel's timers can do no better. Here the owner's spinning loop is the timer, so that a loss costs
//! tens of microseconds.
//!
//! What the peer may rely on, and what the owner has to do for it:
//!
//! - An acknowledgement covers what [`Connection::poll_event`] has handed out, never what merely arrived. An owner that
//!   journals each message before its next [`Connection::poll_transmit`] acknowledges nothing that its death could lose.
//! - A message leaves only once the watermark has reached its journal position. So a number that a peer may have seen
//!   has its message in the journal, and a restarted sender can never give the number to another message.
//! - Sessions end and begin anew (a restart, silence), numbers go on. Each establishment has a higher epoch and tags of
//!   its own for the datagrams of each direction, so that whatever an earlier one left in the network is dropped.
//!
//! The integrity of a datagram is the carrier's: UDP's checksum, Ethernet's. Nonces and session tags tell apart what is
//! stale, and do not withstand somebody who can read the network; a [`Key`] does, and makes each datagram prove its origin.

mod auth;
mod config;
mod connection;
mod event;
mod receive;
mod refusal;
mod rtt;
mod send;
mod sending;
mod serials;
mod session;
pub mod wire;

#[cfg(test)]
mod model;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use auth::Key;
pub use config::{Config, ConfigError, Redundancy, Resume, Role};
pub use connection::Connection;
pub use event::{Counters, DownReason, Event, Received};
pub use refusal::Refusal;
pub use session::State;
pub use wire::HeaderForm;

use types::Timestamp;

/// A time that does not come.
const NEVER: Timestamp = Timestamp(u64::MAX);
