//! What LTP puts on the wire; docs/ltp.md has the same as tables.
//!
//! Every datagram is a header, a payload whose kind the header names, and, where both ends have a key, a tag of 8 bytes.
//! All integers are little-endian. A session's header has one of two forms; the handshake's is always the full one.
//! Decoding checks the whole form once: whoever holds a [`Body`] reads it without further checks. A payload longer than
//! its kind needs is accepted and the rest ignored, so that a later version can append fields.

mod header;

pub use header::{
    COMPACT_HEADER_LENGTH, COMPACT_PAYLOAD_MAX, CompactHeader, FullHeader, HEADER_LENGTH, Header, HeaderForm,
};

use super::refusal::Refusal;
use header::expand;
use types::SequenceNumber;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The version of this format, in [`Negotiate`].
pub const VERSION: u8 = 2;
/// Bytes of the tag that authenticates a datagram, behind its payload.
pub const MAC_LENGTH: usize = 8;
/// Bytes that a message costs in a [`Kind::Packed`] datagram beside its own.
pub const PACKED_PREFIX_LENGTH: usize = 2;
/// Most numbers that one [`Kind::Nak`] can ask for.
pub const NAK_SPAN_MAX: usize = 1024;

/// Flag: the messages were transmitted before, by this incarnation of the sender or perhaps by an earlier one.
pub const FLAG_RETRANSMIT: u8 = 1;

/// What a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// One message: the whole payload.
    Data = 1,
    /// Several messages with numbers in a row, each behind its length (u16).
    Packed = 2,
    /// An acknowledgement on its own ([`Status`]).
    Ack = 3,
    /// Asks for what is missing ([`Nak`]).
    Nak = 4,
    /// Nothing else was sent for one heartbeat interval ([`Status`]).
    Heartbeat = 5,
    /// Initiator to acceptor: first step of the handshake ([`Negotiate`]).
    Negotiate = 6,
    /// Acceptor to initiator: its answer ([`Negotiated`]).
    Negotiated = 7,
    /// Initiator to acceptor: second step ([`Establish`]).
    Establish = 8,
    /// Acceptor to initiator: the session is up ([`Establish`]).
    Established = 9,
    /// Either way: the handshake or session is refused ([`Refuse`]).
    Refuse = 10,
    /// Acceptor to initiator: how many orders may be open ([`Credits`]).
    Credits = 11,
}

/// Payload of [`Kind::Ack`] and [`Kind::Heartbeat`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Status {
    /// Counts the sender's datagrams without messages in this session, from 1. Each is taken once.
    pub serial: U64,
    /// The number below which all messages received are safe from the loss of the machine. 0: not told.
    pub durable: U64,
    /// How many messages came with [`FLAG_RETRANSMIT`] in this session although they had come before. Wraps.
    pub duplicates: U32,
    /// 0.
    pub reserved: U32,
}

/// Payload of [`Kind::Credits`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Credits {
    /// As in [`Status`].
    pub serial: U64,
    /// Orders that may be open at once: the whole number, not a change of it.
    pub slots: U32,
    /// 0.
    pub reserved: U32,
}

/// Fixed part of the payload of [`Kind::Nak`]; words of 64 bits follow, the lowest bit first. Bit `i` (counted over all
/// words) asks for number `first + i`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NakStart {
    /// As in [`Status`].
    pub serial: U64,
    /// Low 32 bits of the number that bit 0 stands for.
    pub first: U32,
    /// 0.
    pub reserved: U32,
}

/// Payload of [`Kind::Negotiate`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Negotiate {
    /// Names this attempt of the initiator.
    pub initiator_nonce: U64,
    /// The key that authenticates datagrams. 0: none.
    pub key_id: U32,
    /// The order session, from the configuration.
    pub session: U16,
    /// [`VERSION`].
    pub version: u8,
    /// 0.
    pub reserved: u8,
}

/// Payload of [`Kind::Negotiated`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Negotiated {
    /// As in [`Negotiate`].
    pub initiator_nonce: U64,
    /// Names the acceptor's incarnation and this attempt.
    pub acceptor_nonce: U64,
    /// As in [`Negotiate`].
    pub key_id: U32,
    /// As in [`Negotiate`].
    pub session: U16,
    /// The version that will be spoken.
    pub version: u8,
    /// 0.
    pub reserved: u8,
}

/// Payload of [`Kind::Establish`] and [`Kind::Established`]: each end tells the other where it stands.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Establish {
    /// As in [`Negotiate`].
    pub initiator_nonce: U64,
    /// As in [`Negotiated`].
    pub acceptor_nonce: U64,
    /// Rises with every establishment of the session, also over restarts of the initiator.
    pub epoch: U64,
    /// The number the sender wants next.
    pub next_expected: U64,
    /// The number of the sender's next message that was never transmitted.
    pub next_send: U64,
    /// As in [`Status`].
    pub durable: U64,
    /// Messages the sender can hold ahead of `next_expected`. Not 0.
    pub window: U32,
    /// Longest time the sender waits before it acknowledges, ns.
    pub ack_delay_ns: U32,
    /// Longest time the sender is silent, µs. Not 0.
    pub heartbeat_us: U32,
    /// Longest message, bytes; the same at both ends.
    pub max_message: U16,
    /// As in [`Negotiate`].
    pub session: U16,
    /// Bytes of the headers of the session: 16 or 8; the same at both ends.
    pub header: u8,
    /// How often the sender sends each datagram.
    pub copies: u8,
    /// 0.
    pub reserved: [u8; 6],
}

/// Payload of [`Kind::Refuse`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Refuse {
    /// Of the attempt that is refused.
    pub initiator_nonce: U64,
    /// Of the attempt that is refused; 0 when it was a [`Negotiate`].
    pub acceptor_nonce: U64,
    /// What the other end offered or wanted; the reason says which. 0: nothing.
    pub given: U64,
    /// What it was measured against. 0: nothing.
    pub held: U64,
    /// Number of the [`Refusal`].
    pub reason: U16,
    /// 0.
    pub reserved: [u8; 6],
}

const _: () = {
    assert!(size_of::<Status>() == 24);
    assert!(size_of::<Credits>() == 16);
    assert!(size_of::<NakStart>() == 16);
    assert!(size_of::<Negotiate>() == 16);
    assert!(size_of::<Negotiated>() == 24);
    assert!(size_of::<Establish>() == 72);
    assert!(size_of::<Refuse>() == 40);
};

/// A payload of a session, checked.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// One message.
    Data(&'a [u8]),
    /// Several.
    Packed(Messages<'a>),
    /// See [`Kind::Ack`].
    Ack(&'a Status),
    /// See [`Kind::Nak`].
    Nak(Nak<'a>),
    /// See [`Kind::Heartbeat`].
    Heartbeat(&'a Status),
    /// See [`Kind::Credits`].
    Credits(&'a Credits),
}

/// A step of the handshake, checked.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// See [`Kind::Negotiate`].
    Negotiate(&'a Negotiate),
    /// See [`Kind::Negotiated`].
    Negotiated(&'a Negotiated),
    /// See [`Kind::Establish`].
    Establish(&'a Establish),
    /// See [`Kind::Established`].
    Established(&'a Establish),
    /// See [`Kind::Refuse`].
    Refuse(&'a Refuse),
}

/// Why a datagram is not LTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Shorter than a header, or not as long as the header says.
    Length,
    /// The kind is unknown, or is a handshake under a session's tag or the reverse.
    Kind,
    /// A flag that this version does not know.
    Flags,
    /// The payload is not one of its kind.
    Payload,
}

/// The messages of a [`Kind::Packed`] payload.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
    count: usize,
}

/// A request for retransmission.
#[derive(Clone, Copy, Debug)]
pub struct Nak<'a> {
    serial: u64,
    first: u32,
    words: &'a [U64],
}

/// Whether a datagram belongs to the handshake, by its tag alone.
#[must_use]
pub fn is_handshake(datagram: &[u8]) -> bool {
    datagram.first_chunk() == Some(&[0; 4])
}

/// Decodes a datagram of the handshake. `true`: it has a tag behind its payload.
///
/// # Errors
/// The datagram is not one of the handshake.
pub fn decode_handshake(datagram: &[u8]) -> Result<(Step<'_>, bool), Malformed> {
    let is_tagged = FullHeader::ref_from_prefix(datagram)
        .is_ok_and(|(header, rest)| rest.len() == usize::from(header.length.get()) + MAC_LENGTH);
    let trailer = if is_tagged { MAC_LENGTH } else { 0 };
    let (header, payload) = HeaderForm::Full.read(datagram, trailer)?;
    let step = match header.kind {
        _ if header.tag != 0 => return Err(Malformed::Kind),
        Kind::Negotiate => Step::Negotiate(fixed(payload)?),
        Kind::Negotiated => Step::Negotiated(fixed(payload)?),
        Kind::Establish => Step::Establish(fixed(payload)?),
        Kind::Established => Step::Established(fixed(payload)?),
        Kind::Refuse => Step::Refuse(fixed(payload)?),
        Kind::Data | Kind::Packed | Kind::Ack | Kind::Nak | Kind::Heartbeat | Kind::Credits => {
            return Err(Malformed::Kind);
        }
    };
    Ok((step, is_tagged))
}

impl<'a> Body<'a> {
    /// Decodes the payload of a session's datagram, whose messages may have at most `max_message` bytes.
    ///
    /// # Errors
    /// The payload is not one of its kind, or the kind is one of the handshake.
    #[inline]
    pub fn read(kind: Kind, payload: &'a [u8], max_message: usize) -> Result<Self, Malformed> {
        Ok(match kind {
            Kind::Data if payload.is_empty() || payload.len() > max_message => return Err(Malformed::Payload),
            Kind::Data => Self::Data(payload),
            Kind::Packed => Self::Packed(Messages::new(payload, max_message).ok_or(Malformed::Payload)?),
            Kind::Ack => Self::Ack(fixed(payload)?),
            Kind::Nak => Self::Nak(Nak::new(payload).ok_or(Malformed::Payload)?),
            Kind::Heartbeat => Self::Heartbeat(fixed(payload)?),
            Kind::Credits => Self::Credits(fixed(payload)?),
            Kind::Negotiate | Kind::Negotiated | Kind::Establish | Kind::Established | Kind::Refuse => {
                return Err(Malformed::Kind);
            }
        })
    }

    /// How many messages it brings.
    #[must_use]
    pub fn message_count(&self) -> usize {
        match self {
            Self::Data(_) => 1,
            Self::Packed(messages) => messages.len(),
            Self::Ack(_) | Self::Nak(_) | Self::Heartbeat(_) | Self::Credits(_) => 0,
        }
    }

    /// The serial of what has no messages.
    #[must_use]
    pub fn serial(&self) -> Option<u64> {
        match self {
            Self::Data(_) | Self::Packed(_) => None,
            Self::Ack(status) | Self::Heartbeat(status) => Some(status.serial.get()),
            Self::Nak(nak) => Some(nak.serial),
            Self::Credits(credits) => Some(credits.serial.get()),
        }
    }
}

fn fixed<T: FromBytes + KnownLayout + Immutable + Unaligned>(payload: &[u8]) -> Result<&T, Malformed> {
    T::ref_from_prefix(payload)
        .map(|(value, _)| value)
        .map_err(|_| Malformed::Payload)
}

/// Writes a datagram of the handshake, and gives its length.
pub(super) fn emit<T: IntoBytes + Immutable>(out: &mut [u8], kind: Kind, payload: &T) -> usize {
    let bytes = payload.as_bytes();
    out[HEADER_LENGTH..HEADER_LENGTH + bytes.len()].copy_from_slice(bytes);
    let header = Header {
        tag: 0,
        sequence: 0,
        ack: 0,
        kind,
        flags: 0,
    };
    HeaderForm::Full.write(out, header, bytes.len())
}

/// The low half of a sequence number: all that a header carries of it.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the wire carries the low half on purpose"
)]
pub(super) const fn low_32(number: u64) -> u32 {
    number as u32
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "lengths and counts are bounded by the largest datagram, which u16 holds"
)]
pub(super) const fn low_16(length: usize) -> u16 {
    length as u16
}

impl Kind {
    /// From its number on the wire.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Data,
            2 => Self::Packed,
            3 => Self::Ack,
            4 => Self::Nak,
            5 => Self::Heartbeat,
            6 => Self::Negotiate,
            7 => Self::Negotiated,
            8 => Self::Establish,
            9 => Self::Established,
            10 => Self::Refuse,
            11 => Self::Credits,
            _ => return None,
        })
    }
}

impl<'a> Messages<'a> {
    fn new(payload: &'a [u8], max_message: usize) -> Option<Self> {
        let mut rest = payload;
        let mut count = 0;
        while !rest.is_empty() {
            let (message, after) = split_message(rest)?;
            if message.is_empty() || message.len() > max_message {
                return None;
            }
            rest = after;
            count += 1;
        }
        (count > 0).then_some(Self { rest: payload, count })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (message, rest) = split_message(self.rest)?;
        self.rest = rest;
        self.count -= 1;
        Some(message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Messages<'_> {}

fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

impl<'a> Nak<'a> {
    fn new(payload: &'a [u8]) -> Option<Self> {
        let (start, rest) = NakStart::ref_from_prefix(payload).ok()?;
        let words = <[U64]>::ref_from_bytes(rest).ok()?;
        let usable = !words.is_empty() && words.len() <= NAK_SPAN_MAX / 64;
        usable.then_some(Self {
            serial: start.serial.get(),
            first: start.first.get(),
            words,
        })
    }

    /// The numbers asked for, in memory's width; `reference` is any number of the sender's near them.
    pub fn numbers(self, reference: SequenceNumber) -> impl Iterator<Item = SequenceNumber> + use<'a> {
        let first = expand(self.first, reference.0);
        let words = (0u64..).step_by(64).zip(self.words);
        words.flat_map(move |(offset, word)| {
            (0..64)
                .filter(move |bit| word.get() >> bit & 1 == 1)
                .map(move |bit| SequenceNumber(first.wrapping_add(offset + bit)))
        })
    }
}

impl Refuse {
    pub(super) fn new(initiator_nonce: u64, acceptor_nonce: u64, refusal: Refusal) -> Self {
        let (given, held) = refusal.details();
        Self {
            initiator_nonce: U64::new(initiator_nonce),
            acceptor_nonce: U64::new(acceptor_nonce),
            given: U64::new(given),
            held: U64::new(held),
            reason: U16::new(refusal.number()),
            reserved: [0; 6],
        }
    }

    /// Why.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        Refusal::from_wire(self.reason.get(), self.given.get(), self.held.get())
    }
}
