//! Why one end refuses to talk to the other. The reason travels in a datagram of its own and reaches the peer's owner.

use core::fmt;
use types::SequenceNumber;

/// Why a handshake or session was refused, as seen by whoever refuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The peer speaks a version of the format that this end does not.
    Version {
        /// The peer's.
        given: u8,
        /// This end's.
        held: u8,
    },
    /// The peer wants another session than the one configured here.
    Session {
        /// The peer's.
        given: u16,
        /// This end's.
        held: u16,
    },
    /// The ends have different keys, or only one has any.
    Key {
        /// The peer's. 0: none.
        given: u32,
        /// This end's. 0: none.
        held: u32,
    },
    /// The handshake was begun with another incarnation of this end. A new one can succeed.
    UnknownNegotiation,
    /// A later epoch was established before: the peer is an old incarnation, or its clock went back.
    StaleEpoch {
        /// The peer's.
        given: u64,
        /// The highest so far.
        held: u64,
    },
    /// The peer wants a message that is neither in the ring nor in the owner's journal, so it could never go on in order.
    MessagesGone {
        /// The number the peer wants next.
        wanted: SequenceNumber,
        /// The oldest still in the ring, or the next when the ring is empty.
        oldest: SequenceNumber,
    },
    /// The peer claims to have messages that were never sent from here: this end has lost its journal or the end of it, or
    /// the peer talks to the wrong end.
    NumbersAhead {
        /// The number the peer wants next.
        wanted: SequenceNumber,
        /// The next to be sent from here.
        next: SequenceNumber,
    },
    /// The peer would use numbers again under which other messages have been received: it has lost its journal or the end of it.
    NumbersBehind {
        /// The peer's next number.
        given: SequenceNumber,
        /// The number wanted next here.
        wanted: SequenceNumber,
    },
    /// The two ends are configured for messages of different lengths.
    MessageLength {
        /// The peer's, bytes.
        given: u16,
        /// This end's, bytes.
        held: u16,
    },
    /// A window or heartbeat interval of zero, or no copy of a datagram at all.
    Parameters,
    /// The two ends are configured for headers of different lengths.
    Header {
        /// The peer's, bytes.
        given: u8,
        /// This end's, bytes.
        held: u8,
    },
    /// The peer sends each datagram more than once, and this end takes it once.
    Copies {
        /// How often the peer sends it.
        given: u8,
    },
    /// The peer has put several messages into a datagram, and this end takes one.
    Packed,
    /// User or password are others than this end's: of links over TCP, which give LTP's reasons too.
    Credentials,
    /// A reason that this version does not know.
    Unknown(u16),
}

impl Refusal {
    /// Its number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Version { .. } => 1,
            Self::Session { .. } => 2,
            Self::Key { .. } => 3,
            Self::UnknownNegotiation => 4,
            Self::StaleEpoch { .. } => 5,
            Self::MessagesGone { .. } => 6,
            Self::NumbersAhead { .. } => 7,
            Self::NumbersBehind { .. } => 8,
            Self::MessageLength { .. } => 9,
            Self::Parameters => 10,
            Self::Header { .. } => 11,
            Self::Copies { .. } => 12,
            Self::Packed => 13,
            Self::Credentials => 14,
            Self::Unknown(number) => number,
        }
    }

    /// What was given and what it was measured against, on the wire.
    #[must_use]
    pub fn details(self) -> (u64, u64) {
        match self {
            Self::Version { given, held } | Self::Header { given, held } => (given.into(), held.into()),
            Self::Session { given, held } | Self::MessageLength { given, held } => (given.into(), held.into()),
            Self::Key { given, held } => (given.into(), held.into()),
            Self::StaleEpoch { given, held } => (given, held),
            Self::MessagesGone { wanted, oldest } => (wanted.0, oldest.0),
            Self::NumbersAhead { wanted, next } => (wanted.0, next.0),
            Self::NumbersBehind { given, wanted } => (given.0, wanted.0),
            Self::Copies { given } => (given.into(), 1),
            Self::Packed => (0, 1),
            Self::UnknownNegotiation | Self::Parameters | Self::Credentials | Self::Unknown(_) => (0, 0),
        }
    }

    /// From its parts on the wire. A detail that cannot be one of its reason makes the reason unknown.
    #[must_use]
    pub fn from_wire(number: u16, given: u64, held: u64) -> Self {
        Self::known(number, given, held).unwrap_or(Self::Unknown(number))
    }

    fn known(number: u16, given: u64, held: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Version {
                given: given.try_into().ok()?,
                held: held.try_into().ok()?,
            },
            2 => Self::Session {
                given: given.try_into().ok()?,
                held: held.try_into().ok()?,
            },
            3 => Self::Key {
                given: given.try_into().ok()?,
                held: held.try_into().ok()?,
            },
            4 => Self::UnknownNegotiation,
            5 => Self::StaleEpoch { given, held },
            6 => Self::MessagesGone {
                wanted: SequenceNumber(given),
                oldest: SequenceNumber(held),
            },
            7 => Self::NumbersAhead {
                wanted: SequenceNumber(given),
                next: SequenceNumber(held),
            },
            8 => Self::NumbersBehind {
                given: SequenceNumber(given),
                wanted: SequenceNumber(held),
            },
            9 => Self::MessageLength {
                given: given.try_into().ok()?,
                held: held.try_into().ok()?,
            },
            10 => Self::Parameters,
            11 => Self::Header {
                given: given.try_into().ok()?,
                held: held.try_into().ok()?,
            },
            12 => Self::Copies {
                given: given.try_into().ok()?,
            },
            13 => Self::Packed,
            14 => Self::Credentials,
            _ => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { given, held } => write!(f, "LTP version {given} offered, {held} spoken"),
            Self::Session { given, held } => write!(f, "session {given} asked for, {held} configured"),
            Self::Key { given, held: 0 } => write!(f, "key {given} offered, no key configured"),
            Self::Key { given: 0, held } => write!(f, "no key offered, key {held} configured"),
            Self::Key { given, held } => write!(f, "key {given} offered, key {held} configured"),
            Self::UnknownNegotiation => f.write_str("handshake was begun with an earlier incarnation"),
            Self::StaleEpoch { given, held } => write!(f, "epoch {given} is not above {held}, established before"),
            Self::MessagesGone { wanted, oldest } => write!(
                f,
                "message {wanted} wanted, not all before {oldest} can be had any more"
            ),
            Self::NumbersAhead { wanted, next } => write!(
                f,
                "message {wanted} wanted, the next to be sent is {next}: the refusing end has lost messages that it had sent"
            ),
            Self::NumbersBehind { given, wanted } => write!(
                f,
                "message {given} would be sent, {wanted} is expected: the refused end has lost messages that it had sent"
            ),
            Self::MessageLength { given, held } => write!(f, "messages of {given} bytes offered, {held} configured"),
            Self::Parameters => f.write_str("a window, heartbeat interval or number of copies of zero"),
            Self::Header { given, held } => write!(f, "headers of {given} bytes offered, {held} configured"),
            Self::Copies { given } => write!(f, "each datagram is sent {given} times, and taken once"),
            Self::Packed => f.write_str("several messages in a datagram, where one is taken"),
            Self::Credentials => f.write_str("user or password are others than those configured"),
            Self::Unknown(number) => write!(f, "reason {number}, which this version does not know"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_from_the_wire() {
        let (low, high) = (SequenceNumber(7), SequenceNumber(1 << 40));
        for refusal in [
            Refusal::Version { given: 2, held: 1 },
            Refusal::Session { given: 7, held: 8 },
            Refusal::Key { given: 9, held: 0 },
            Refusal::UnknownNegotiation,
            Refusal::StaleEpoch {
                given: 3,
                held: 1 << 60,
            },
            Refusal::MessagesGone {
                wanted: low,
                oldest: high,
            },
            Refusal::NumbersAhead {
                wanted: high,
                next: low,
            },
            Refusal::NumbersBehind {
                given: low,
                wanted: high,
            },
            Refusal::MessageLength { given: 64, held: 128 },
            Refusal::Parameters,
            Refusal::Header { given: 8, held: 16 },
            Refusal::Copies { given: 2 },
            Refusal::Packed,
            Refusal::Credentials,
            Refusal::Unknown(999),
        ] {
            let (given, held) = refusal.details();
            assert_eq!(Refusal::from_wire(refusal.number(), given, held), refusal);
        }
    }

    #[test]
    fn a_detail_out_of_range_makes_the_reason_unknown() {
        assert_eq!(Refusal::from_wire(2, 1 << 20, 0), Refusal::Unknown(2));
    }
}
