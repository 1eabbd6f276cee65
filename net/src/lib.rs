//! The only sockets: tuned TCP, UDP, AF_XDP, the links between gateway and venue, readiness, core pinning and facts of the host.
//!
//! Everything here is non-blocking and takes turns: whoever owns a thread calls `poll`, `recv`, `flush` in a loop.
//! Set-up (binding, connecting, tuning) returns [`SetupError`], which says what failed, where, and what to do about it;
//! the hot calls (`recv`, `send`) return plain [`std::io::Result`] and treat "nothing now" as a value, not an error.

#[cfg(test)]
mod allocation;
pub mod bpf;
pub mod buffer;
pub mod carrier;
pub mod cpu;
pub mod datagram;
pub mod error;
pub mod floor;
pub mod host;
pub mod huge_pages;
pub mod link;
mod mapping;
pub mod measure;
pub mod nic;
pub mod options;
pub mod paths;
pub mod poller;
pub mod tcp;
pub mod udp;
#[cfg(feature = "verbs")]
mod verbs;
pub mod xdp;

pub use buffer::StreamBuffer;
pub use carrier::{Carrier, CarrierConfig, CarrierKind};
pub use datagram::Datagram;
pub use error::SetupError;
pub use link::Link;
pub use options::{QuickAck, Readback, TcpOptions, UdpOptions};
pub use paths::Paths;
pub use poller::Poller;
