//! How one end is set up.

use super::wire::{HEADER_LENGTH, PACKED_PREFIX_LENGTH};
use core::fmt;
use types::{Duration, SequenceNumber, SessionId};

/// Which end begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Knows its peer's address and calls it until there is a session.
    Initiator,
    /// Waits for the initiator.
    Acceptor,
}

/// Settings of one end. Those without a remark may differ from the peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Names the order session; equal at both ends.
    pub session: SessionId,
    /// Messages in each ring, rounded up to a power of two: sent and not acknowledged, received and not handed out.
    pub window: usize,
    /// Longest message, bytes; equal at both ends.
    pub max_message: usize,
    /// Longest datagram, bytes: what the carrier takes in one piece. [`Connection`](super::Connection) wants buffers of
    /// this length.
    pub max_datagram: usize,
    /// Whether messages that are queued already share a datagram. Off where something on the way reads one message a
    /// datagram at a fixed place.
    pub packing: bool,
    /// Longest time before a message is acknowledged, if nothing else is sent that carries the acknowledgement.
    pub ack_delay: Duration,
    /// How long a gap may fill by itself before it is asked for; 0 on a way that does not reorder.
    pub reorder_allowance: Duration,
    /// Shortest retransmission timeout.
    pub rto_floor: Duration,
    /// Longest retransmission timeout.
    pub rto_ceiling: Duration,
    /// Longest time this end is silent.
    pub heartbeat: Duration,
    /// This many heartbeat intervals without a datagram from the peer end the session.
    pub dead_after: u32,
}

/// Where the numbers go on after a restart, from the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resume {
    /// The number of the next message to the peer.
    pub next_send: SequenceNumber,
    /// The number of the next message from the peer.
    pub next_receive: SequenceNumber,
}

/// What is wrong with a [`Config`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// The window is 0 or above [`Config::WINDOW_MAX`].
    Window,
    /// A message of zero bytes, or one that does not fit a datagram.
    MaxMessage,
    /// A datagram that UDP over IPv4 does not carry.
    MaxDatagram,
    /// The floor of the retransmission timeout is 0 or above its ceiling.
    Rto,
    /// The heartbeat interval is shorter than 1 µs or longer than [`Config::HEARTBEAT_MAX`], or `dead_after` is 0.
    Heartbeat,
    /// The acknowledgement's delay is longer than the ceiling of the retransmission timeout.
    AckDelay,
}

impl Config {
    /// Most messages in a ring: far below half the range of the wire's 32-bit numbers.
    pub const WINDOW_MAX: usize = 1 << 20;
    /// Longest heartbeat interval.
    pub const HEARTBEAT_MAX: Duration = Duration::from_secs(60);
    /// Longest payload of a UDP datagram over IPv4, bytes.
    pub const DATAGRAM_MAX: usize = 65_507;

    /// The defaults of docs/ltp.md: an Ethernet frame a datagram, timers for a peer tens of microseconds away.
    #[must_use]
    pub const fn new(session: SessionId, window: usize, max_message: usize) -> Self {
        Self {
            session,
            window,
            max_message,
            max_datagram: 1_472,
            packing: true,
            ack_delay: Duration::from_micros(25),
            reorder_allowance: Duration(0),
            rto_floor: Duration::from_micros(50),
            rto_ceiling: Duration::from_millis(2),
            heartbeat: Duration::from_millis(5),
            dead_after: 20,
        }
    }

    /// Checks what a file may have got wrong.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let longest_message = self.max_datagram.saturating_sub(HEADER_LENGTH + PACKED_PREFIX_LENGTH);
        if self.window == 0 || self.window > Self::WINDOW_MAX {
            Err(ConfigError::Window)
        } else if self.max_datagram < MAX_DATAGRAM_LEAST || self.max_datagram > Self::DATAGRAM_MAX {
            Err(ConfigError::MaxDatagram)
        } else if self.max_message == 0 || self.max_message > longest_message {
            Err(ConfigError::MaxMessage)
        } else if self.rto_floor.0 == 0 || self.rto_floor > self.rto_ceiling || self.rto_ceiling > RTO_CEILING_MAX {
            Err(ConfigError::Rto)
        } else if self.heartbeat.0 < 1_000 || self.heartbeat > Self::HEARTBEAT_MAX || self.dead_after == 0 {
            Err(ConfigError::Heartbeat)
        } else if self.ack_delay > self.rto_ceiling {
            Err(ConfigError::AckDelay)
        } else {
            Ok(())
        }
    }

    /// Bytes that a connection's rings hold.
    #[must_use]
    pub const fn memory(&self) -> usize {
        // Both rings hold the messages; beside each a slot of at most 32 bytes.
        2 * self.window.next_power_of_two() * (self.max_message + 32)
    }
}

impl Resume {
    /// Nothing was sent or received before.
    pub const START: Self = Self {
        next_send: SequenceNumber(1),
        next_receive: SequenceNumber(1),
    };
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Window => "window must be from 1 to 1048576 messages",
            Self::MaxMessage => "max_message must be at least 1 byte and fit max_datagram with 18 bytes beside it",
            Self::MaxDatagram => "max_datagram must be from 256 to 65507 bytes",
            Self::Rto => "rto_floor must be above 0 and at most rto_ceiling, and that at most 4 s",
            Self::Heartbeat => "heartbeat must be from 1 µs to 60 s, and dead_after at least 1",
            Self::AckDelay => "ack_delay must be at most rto_ceiling",
        })
    }
}

impl core::error::Error for ConfigError {}

/// Shortest `max_datagram`: a NAK of the longest kind and every handshake fit.
const MAX_DATAGRAM_LEAST: usize = 256;

/// Longest retransmission timeout; it bounds `ack_delay` too, which the wire has in 32 bits of nanoseconds' range.
const RTO_CEILING_MAX: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_work_and_what_cannot_work_is_named() {
        let good = Config::new(SessionId(1), 1024, 64);
        assert_eq!(good.check(), Ok(()));
        let bad = |change: fn(&mut Config)| {
            let mut config = good;
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(bad(|config| config.window = 0), ConfigError::Window);
        assert_eq!(bad(|config| config.max_message = 1_455), ConfigError::MaxMessage);
        assert_eq!(bad(|config| config.max_datagram = 255), ConfigError::MaxDatagram);
        assert_eq!(bad(|config| config.rto_floor = Duration(0)), ConfigError::Rto);
        assert_eq!(bad(|config| config.dead_after = 0), ConfigError::Heartbeat);
        assert_eq!(
            bad(|config| config.ack_delay = Duration::from_secs(1)),
            ConfigError::AckDelay
        );
    }
}
