//! SoupBinTCP 3.00: the session layer under the native protocol on TCP.
//!
//! One TCP connection carries packets: a big-endian length, a type byte, a payload. The server's data packets are
//! sequenced, yet no number is on the wire: both sides count. The client's are not. Whoever is silent for a second
//! sends a heartbeat; whoever hears nothing for fifteen is gone. After a reconnect the client says which number it
//! wants next and the server sends everything from there.
//!
//! [`ServerSession`] and [`ClientSession`] are the two ends. They keep the count and the time and hold no messages:
//! the server's owner keeps what it may have to send again.

mod client;
mod packet;
mod server;

pub use client::{ClientEvent, ClientSession};
pub use packet::{
    HEADER_LENGTH, Login, LoginRefusal, MAX_PACKET_LENGTH, MAX_PAYLOAD_LENGTH, Packet, Password, SessionName, Text,
    UserName, parse, write_client_heartbeat, write_debug, write_end_of_session, write_login_accepted,
    write_login_rejected, write_login_request, write_logout, write_sequenced, write_server_heartbeat,
    write_unsequenced,
};
pub use server::{ServerEvent, ServerSession};

use core::fmt;
use types::{Duration, SequenceNumber};

/// When a session speaks up, and when it gives the peer up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// A heartbeat is sent after this long without a packet of ours.
    pub heartbeat: Duration,
    /// The peer is gone after this long without a packet of its.
    pub dead_after: Duration,
    /// Server: a connection must log in within this. Client: the login must be answered within this.
    pub login_within: Duration,
}

/// Why a session cannot go on. The connection is to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SoupError {
    /// A length of zero: the type byte is missing.
    EmptyPacket,
    /// A packet longer than [`MAX_PACKET_LENGTH`]; its length field.
    TooLong {
        /// The length field.
        length: usize,
    },
    /// No such packet type.
    UnknownType(u8),
    /// The packet's length is not the one of its type.
    WrongLength {
        /// Type byte.
        packet_type: u8,
        /// The length field.
        length: usize,
    },
    /// Text that is not printable ASCII, or a number that is none.
    MalformedField {
        /// Type byte.
        packet_type: u8,
    },
    /// A packet that the peer may not send, or not now.
    Unexpected {
        /// Type byte.
        packet_type: u8,
    },
    /// There was no login, or no answer to it, in time.
    LoginTimeout,
    /// The peer fell silent.
    Silence,
    /// The server logged us in to another session than the one we asked for.
    WrongSession,
    /// The server goes on from another number than the one we asked for.
    Gap {
        /// What we asked for.
        expected: SequenceNumber,
        /// What the server will send next.
        received: SequenceNumber,
    },
}

impl Default for Timing {
    /// The figures of the specification; the time for a login is ours.
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            dead_after: Duration::from_secs(15),
            login_within: Duration::from_secs(15),
        }
    }
}

impl fmt::Display for SoupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EmptyPacket => write!(f, "packet without a type"),
            Self::TooLong { length } => write!(f, "packet of {length} bytes, at most {MAX_PACKET_LENGTH} are taken"),
            Self::UnknownType(byte) => write!(f, "unknown packet type 0x{byte:02x}"),
            Self::WrongLength { packet_type, length } => {
                write!(f, "packet '{}' of {length} bytes", packet_type.escape_ascii())
            }
            Self::MalformedField { packet_type } => {
                write!(f, "malformed field in packet '{}'", packet_type.escape_ascii())
            }
            Self::Unexpected { packet_type } => {
                write!(f, "packet '{}' does not belong here", packet_type.escape_ascii())
            }
            Self::LoginTimeout => write!(f, "no login in time"),
            Self::Silence => write!(f, "peer fell silent"),
            Self::WrongSession => write!(f, "logged in to another session than asked for"),
            Self::Gap { expected, received } => {
                write!(f, "asked for number {expected}, the server goes on from {received}")
            }
        }
    }
}

impl core::error::Error for SoupError {}

#[cfg(test)]
mod tests;
