//! What two ends tell each other over TCP before they speak RoCEv2: queue pair, keys, place of the ring, where they stand.
//!
//! ```text
//! connecting end                          listening end
//!   Hello                         ──────▶   its queue pair can receive
//!   its queue pair can send       ◀──────   Hello, or one with a refusal
//!   Ready, or a refusal; up       ──────▶   up
//! ```
//!
//! The connection then stays open and silent: its end is the news that the peer is gone.

use super::backend::Introduction;
use super::config::RoceOperation;
use crate::link::DownReason;
use std::fmt;
use std::net::IpAddr;
use types::SequenceNumber;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One end's part of the meeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Hello {
    /// [`MAGIC`].
    pub(super) magic: [u8; 4],
    /// Of the listening end, whether it goes on: a [`Verdict`].
    pub(super) verdict: U32,
    /// The session, agreed by configuration.
    pub(super) session: U32,
    /// The sender's queue pair, 24 bits.
    pub(super) qpn: U32,
    /// The first packet number that the sender sends, 24 bits.
    pub(super) psn: U32,
    /// The key of the sender's ring.
    pub(super) remote_key: U32,
    /// Where its ring is, bytes.
    pub(super) address: U64,
    /// Messages that the ring holds, a power of two.
    pub(super) slots: U32,
    /// Longest message, bytes.
    pub(super) max_message: U32,
    /// Payload of a packet, bytes.
    pub(super) mtu: U32,
    /// What carries messages: 1 RDMA WRITE with immediate, 2 SEND with immediate.
    pub(super) operation: U32,
    /// The sender's RoCEv2 address; IPv4 mapped into IPv6.
    pub(super) gid: [u8; 16],
    /// The address that it was told its peer has.
    pub(super) peer_gid: [u8; 16],
    /// The number of the message that the sender wants next.
    pub(super) next_receive: U64,
    /// The oldest message that the sender can send again, out of its ring or its journal.
    pub(super) oldest: U64,
    /// The next message that it has never sent.
    pub(super) never_sent: U64,
}

/// The last word of the connecting end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Ready {
    /// [`MAGIC`].
    pub(super) magic: [u8; 4],
    /// Whether it goes on: a [`Verdict`].
    pub(super) verdict: U32,
}

const _: () = {
    assert!(size_of::<Hello>() == 104);
    assert!(size_of::<Ready>() == 8);
};

/// Why two ends do not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoceMismatch {
    /// Another session.
    Session,
    /// Messages of another length.
    MaxMessage,
    /// Packets of another length.
    Mtu,
    /// Messages by another operation.
    Operation,
    /// One comes from another RoCEv2 address than the other was told.
    Address,
    /// The ring is none: its size is no power of two, or above the limit.
    Ring,
}

/// What an end says of the other's [`Hello`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The link comes up.
    GoOn,
    /// It does not.
    Mismatch(RoceMismatch),
    /// One cannot send what the other wants next.
    Unresumable,
    /// For a reason that this end does not know.
    Other,
}

/// Begins each message; the last byte is the version.
pub(super) const MAGIC: [u8; 4] = *b"TGR1";

/// Largest ring of a peer.
const SLOTS_MAX: u32 = 1 << 20;

impl Verdict {
    pub(super) const fn code(self) -> u32 {
        match self {
            Self::GoOn => 0,
            Self::Mismatch(RoceMismatch::Session) => 1,
            Self::Mismatch(RoceMismatch::MaxMessage) => 2,
            Self::Mismatch(RoceMismatch::Mtu) => 3,
            Self::Mismatch(RoceMismatch::Operation) => 4,
            Self::Mismatch(RoceMismatch::Address) => 5,
            Self::Mismatch(RoceMismatch::Ring) => 6,
            Self::Unresumable => 7,
            Self::Other => 8,
        }
    }

    pub(super) const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::GoOn,
            1 => Self::Mismatch(RoceMismatch::Session),
            2 => Self::Mismatch(RoceMismatch::MaxMessage),
            3 => Self::Mismatch(RoceMismatch::Mtu),
            4 => Self::Mismatch(RoceMismatch::Operation),
            5 => Self::Mismatch(RoceMismatch::Address),
            6 => Self::Mismatch(RoceMismatch::Ring),
            7 => Self::Unresumable,
            _ => Self::Other,
        }
    }

    /// What an end says that does not go on for this reason.
    pub(super) const fn of(reason: DownReason) -> Self {
        match reason {
            DownReason::Mismatched(mismatch) => Self::Mismatch(mismatch),
            DownReason::Unresumable { .. } | DownReason::Gone { .. } => Self::Unresumable,
            _ => Self::Other,
        }
    }

    /// Why the link does not come up with a peer that says this. `None`: it does.
    pub(super) const fn reason(self) -> Option<DownReason> {
        match self {
            Self::GoOn => None,
            Self::Mismatch(mismatch) => Some(DownReason::Mismatched(mismatch)),
            Self::Unresumable | Self::Other => Some(DownReason::Refused),
        }
    }
}

impl Hello {
    /// The same of an end that is to be known so.
    pub(super) const fn introducing(self, names: &Introduction) -> Self {
        Self {
            qpn: U32::new(names.qpn),
            psn: U32::new(names.psn),
            remote_key: U32::new(names.remote_key),
            address: U64::new(names.address),
            ..self
        }
    }

    /// How the sender is to be known.
    pub(super) const fn introduction(&self) -> Introduction {
        Introduction {
            qpn: self.qpn.get(),
            psn: self.psn.get(),
            remote_key: self.remote_key.get(),
            address: self.address.get(),
        }
    }

    /// Whether this end can go on with a peer: they are configured alike, and each can send what the other wants next.
    ///
    /// # Errors
    /// It cannot.
    pub(super) fn fits(&self, peer: &Self) -> Result<(), DownReason> {
        if peer.magic != MAGIC {
            return Err(DownReason::Malformed);
        }
        self.is_alike(peer).map_err(DownReason::Mismatched)?;
        if let Some((wanted, oldest, next)) = self.lacks(peer) {
            return Err(DownReason::Unresumable { wanted, oldest, next });
        }
        if let Some((wanted, oldest, next)) = peer.lacks(self) {
            return Err(DownReason::Gone { wanted, oldest, next });
        }
        match Verdict::from_code(peer.verdict.get()).reason() {
            None => Ok(()),
            Some(reason) => Err(reason),
        }
    }

    fn is_alike(&self, peer: &Self) -> Result<(), RoceMismatch> {
        let slots = peer.slots.get();
        for (is_alike, mismatch) in [
            (self.session == peer.session, RoceMismatch::Session),
            (self.max_message == peer.max_message, RoceMismatch::MaxMessage),
            (self.mtu == peer.mtu, RoceMismatch::Mtu),
            (self.operation == peer.operation, RoceMismatch::Operation),
            (
                (self.gid, self.peer_gid) == (peer.peer_gid, peer.gid),
                RoceMismatch::Address,
            ),
            (slots.is_power_of_two() && slots <= SLOTS_MAX, RoceMismatch::Ring),
        ] {
            if !is_alike {
                return Err(mismatch);
            }
        }
        Ok(())
    }

    /// What the peer wants next, the oldest and the next message of this end, if it cannot send from there on.
    fn lacks(&self, peer: &Self) -> Option<(SequenceNumber, SequenceNumber, SequenceNumber)> {
        let [wanted, oldest, next] = [peer.next_receive, self.oldest, self.never_sent].map(|number| number.get());
        let numbers = (SequenceNumber(wanted), SequenceNumber(oldest), SequenceNumber(next));
        (!(oldest..=next).contains(&wanted)).then_some(numbers)
    }
}

impl RoceOperation {
    /// As a [`Hello`] has it.
    pub(super) const fn code(self) -> u32 {
        match self {
            Self::Write => 1,
            Self::Send => 2,
        }
    }
}

/// An address as a GID has it.
pub(super) fn gid(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

impl fmt::Display for RoceMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "another session",
            Self::MaxMessage => "another longest message",
            Self::Mtu => "another mtu_bytes",
            Self::Operation => "another operation",
            Self::Address => "another RoCEv2 address than configured",
            Self::Ring => "a ring of no power of two, or above 1048576 messages",
        })
    }
}
