//! What two ends tell each other over TCP before they speak RoCEv2: queue pair, keys, place of the ring, where they stand.
//!
//! Each end sends one [`Hello`] and reads the peer's. The connection then stays open and silent: its end is the news that
//! the peer is gone.

use crate::link::DownReason;
use crate::tcp::{Received, TcpStream};
use std::fmt;
use std::io;
use std::net::IpAddr;
use types::{SequenceNumber, Timestamp};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One end's part of the meeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Hello {
    /// [`MAGIC`].
    pub(super) magic: [u8; 4],
    /// The session, agreed by configuration.
    pub(super) session: U32,
    /// The sender's queue pair.
    pub(super) qpn: U32,
    /// The first packet number that the sender sends.
    pub(super) psn: U32,
    /// The key of the sender's ring.
    pub(super) remote_key: U32,
    /// Where its ring is, bytes.
    pub(super) address: U64,
    /// Messages that the ring holds.
    pub(super) slots: U32,
    /// Longest message, bytes.
    pub(super) max_message: U32,
    /// Payload of a packet, bytes.
    pub(super) mtu: U32,
    /// The sender's RoCEv2 address; IPv4 mapped into IPv6.
    pub(super) gid: [u8; 16],
    /// The address that it was told its peer has.
    pub(super) peer_gid: [u8; 16],
    /// The number of the message that the sender wants next.
    pub(super) next_receive: U64,
    /// The oldest message that the sender can send again.
    pub(super) oldest: U64,
    /// The number of the next message that it sends.
    pub(super) next_send: U64,
}

const _: () = assert!(size_of::<Hello>() == 96);

/// Why two ends do not fit. Either sees it from the two hellos alone, so that both say the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoceMismatch {
    /// Another session.
    Session,
    /// Rings, messages or packets of another size.
    Size,
    /// One comes from another RoCEv2 address than the other was told.
    Address,
}

/// Begins every [`Hello`]; the last byte is the version.
pub(super) const MAGIC: [u8; 4] = *b"TGR1";

/// A connection on which the ends tell each other.
#[derive(Debug)]
pub(super) struct Meeting {
    stream: TcpStream,
    sent: usize,
    received: usize,
    input: [u8; size_of::<Hello>()],
    /// When the peer has taken too long.
    pub(super) until: Timestamp,
}

impl Meeting {
    pub(super) const fn new(stream: TcpStream, until: Timestamp) -> Self {
        Self {
            stream,
            sent: 0,
            received: 0,
            input: [0; size_of::<Hello>()],
            until,
        }
    }

    /// Goes on sending `ours`, and gives the peer's once both are through.
    ///
    /// # Errors
    /// The connection is gone, or the peer does not speak this.
    pub(super) fn turn(&mut self, ours: &Hello) -> io::Result<Option<Hello>> {
        let output = ours.as_bytes();
        if self.sent < output.len() {
            self.sent += self.stream.send(&output[self.sent..])?;
        }
        if self.received < self.input.len() {
            match self.stream.recv(&mut self.input[self.received..])? {
                Received::Bytes(length) => self.received += length,
                Received::Nothing => {}
                Received::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        if self.received < self.input.len() || self.sent < output.len() {
            return Ok(None);
        }
        let hello = Hello::read_from_bytes(&self.input).expect("it is as long as it is");
        if hello.magic != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Some(hello))
    }

    /// The connection, for as long as the session lasts.
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

impl Hello {
    /// Whether two ends fit.
    ///
    /// # Errors
    /// They do not.
    pub(super) fn check(&self, peer: &Self) -> Result<(), RoceMismatch> {
        let size = |hello: &Self| (hello.slots, hello.max_message, hello.mtu);
        if self.session != peer.session {
            return Err(RoceMismatch::Session);
        }
        if size(self) != size(peer) {
            return Err(RoceMismatch::Size);
        }
        if (self.gid, self.peer_gid) != (peer.peer_gid, peer.gid) {
            return Err(RoceMismatch::Address);
        }
        Ok(())
    }

    /// Whether this end can send what the other wants next.
    ///
    /// # Errors
    /// It cannot: the journals contradict each other, or the peer has lost what it had acknowledged.
    pub(super) fn can_resume(&self, peer: &Self) -> Result<(), DownReason> {
        let [wanted, oldest, next] = [peer.next_receive, self.oldest, self.next_send].map(|number| number.get());
        if (oldest..=next).contains(&wanted) {
            return Ok(());
        }
        Err(DownReason::Unresumable {
            wanted: SequenceNumber(wanted),
            oldest: SequenceNumber(oldest),
            next: SequenceNumber(next),
        })
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
            Self::Size => "another window, max_message or mtu",
            Self::Address => "another RoCEv2 address than configured",
        })
    }
}
