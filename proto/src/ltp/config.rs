//! How one end is set up.

use super::auth::Key;
use super::sending::RECALLED_MAX;
use super::wire::{COMPACT_PAYLOAD_MAX, HeaderForm, MAC_LENGTH, PACKED_PREFIX_LENGTH};
use core::fmt;
use types::{Duration, SequenceNumber, SessionId};

/// Which end begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Knows its peer's address and calls it until there is a session.
    Initiator,
    /// Waits for the initiator.
    Acceptor,
}

/// What is sent more than once before anybody asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Redundancy {
    /// Nothing.
    #[default]
    Off,
    /// Each datagram on both of two carriers. The owner of the carriers does it.
    Paths,
    /// Each datagram twice on its carrier. The owner of the carrier does it.
    Twice,
    /// The messages of the last datagrams that are not acknowledged yet, before new ones, as far as they fit.
    Repeat,
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
    /// Whether this end, an acceptor, takes nothing but one message a datagram, each datagram once, so that something on the
    /// way can rely on it: an initiator that packs or sends copies is refused.
    pub takes_single: bool,
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
    /// This many heartbeat intervals without a new datagram from the peer end the session.
    pub dead_after: u32,
    /// How headers look; equal at both ends.
    pub header: HeaderForm,
    /// What this end sends more than once.
    pub redundancy: Redundancy,
    /// Authenticates every datagram; equal at both ends.
    pub key: Option<Key>,
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
    /// The compact header cannot count so many messages, or tell the length of so long a datagram.
    Compact,
    /// Messages are repeated only where they are packed.
    Redundancy,
    /// The key's id is 0.
    Key,
}

impl Config {
    /// Most messages in a ring: far below half the range of the wire's 32-bit numbers.
    pub const WINDOW_MAX: usize = 1 << 20;
    /// The same with compact headers: a quarter of the range of their numbers.
    pub const COMPACT_WINDOW_MAX: usize = 1 << 14;
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
            takes_single: false,
            ack_delay: Duration::from_micros(25),
            reorder_allowance: Duration(0),
            rto_floor: Duration::from_micros(50),
            rto_ceiling: Duration::from_millis(2),
            heartbeat: Duration::from_millis(5),
            dead_after: 20,
            header: HeaderForm::Full,
            redundancy: Redundancy::Off,
            key: None,
        }
    }

    /// As [`new`](Self::new), for the session of an order client: the full header and one message a datagram, so that a
    /// filter on the way finds each order at byte 16.
    #[must_use]
    pub const fn for_client(session: SessionId, window: usize, max_message: usize) -> Self {
        Self {
            packing: false,
            ..Self::new(session, window, max_message)
        }
    }

    /// So long nothing new from the peer ends a session whose ends have the same heartbeat interval.
    #[must_use]
    pub const fn silence_max(&self) -> Duration {
        Duration(self.heartbeat.0.saturating_mul(self.dead_after as u64))
    }

    /// Bytes of a session's datagram beside its payload.
    pub(super) const fn overhead(&self) -> usize {
        self.header.length() + self.trailer()
    }

    /// Bytes behind a payload.
    pub(super) const fn trailer(&self) -> usize {
        if self.key.is_some() { MAC_LENGTH } else { 0 }
    }

    /// Checks what a file may have got wrong.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let longest_message = self.max_datagram.saturating_sub(self.overhead() + PACKED_PREFIX_LENGTH);
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
        } else if self.redundancy == Redundancy::Repeat && !self.packing {
            Err(ConfigError::Redundancy)
        } else if self.key.is_some_and(|key| key.id == 0) {
            Err(ConfigError::Key)
        } else {
            self.check_compact()
        }
    }

    fn check_compact(&self) -> Result<(), ConfigError> {
        let fits =
            self.window <= Self::COMPACT_WINDOW_MAX && self.max_datagram <= self.overhead() + COMPACT_PAYLOAD_MAX;
        if self.header == HeaderForm::Full || fits {
            Ok(())
        } else {
            Err(ConfigError::Compact)
        }
    }

    /// Bytes that a connection's rings hold.
    #[must_use]
    pub const fn memory(&self) -> usize {
        let window = self.window.next_power_of_two();
        let recalled = if window < RECALLED_MAX { window } else { RECALLED_MAX };
        // The rings hold the messages; beside each a slot of at most 32 bytes.
        (2 * window + recalled) * (self.max_message + 32)
    }
}

impl Redundancy {
    /// From its name in a config: `off`, `paths`, `twice` or `repeat`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "off" => Self::Off,
            "paths" => Self::Paths,
            "twice" => Self::Twice,
            "repeat" => Self::Repeat,
            _ => return None,
        })
    }

    /// How often a datagram is sent.
    #[must_use]
    pub const fn copies(self) -> u8 {
        match self {
            Self::Off | Self::Repeat => 1,
            Self::Paths | Self::Twice => 2,
        }
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
            Self::MaxMessage => "max_message must be at least 1 byte and fit max_datagram with its header, 2 bytes and the tag beside it",
            Self::MaxDatagram => "max_datagram must be from 256 to 65507 bytes",
            Self::Rto => "rto_floor must be above 0 and at most rto_ceiling, and that at most 4 s",
            Self::Heartbeat => "heartbeat must be from 1 µs to 60 s, and dead_after at least 1",
            Self::AckDelay => "ack_delay must be at most rto_ceiling",
            Self::Compact => "compact headers want a window of at most 16384 messages and max_datagram of at most 2055 bytes",
            Self::Redundancy => "messages are repeated in later datagrams only with packing",
            Self::Key => "the id of a key must not be 0",
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
        let compact = |config: &mut Config| config.header = HeaderForm::Compact;
        assert_eq!(
            bad(|config| (config.header, config.window) = (HeaderForm::Compact, (1 << 14) + 1)),
            ConfigError::Compact
        );
        assert_eq!(
            bad(|config| (config.header, config.max_datagram) = (HeaderForm::Compact, 2_056)),
            ConfigError::Compact
        );
        let mut longest = Config {
            max_datagram: 2_055,
            window: 1 << 14,
            ..good
        };
        compact(&mut longest);
        assert_eq!(longest.check(), Ok(()));
        assert_eq!(
            bad(|config| (config.packing, config.redundancy) = (false, Redundancy::Repeat)),
            ConfigError::Redundancy
        );
        let key = Key { id: 0, secret: [0; 16] };
        longest.key = Some(key);
        assert_eq!(longest.check(), Err(ConfigError::Key));
    }
}
