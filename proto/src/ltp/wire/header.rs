//! The two forms of a session's header, and how much of a number each carries.

use super::{FLAG_RETRANSMIT, Kind, Malformed, low_16, low_32};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes before the payload in the full form: where the first message of a [`Kind::Data`] datagram begins.
pub const HEADER_LENGTH: usize = size_of::<FullHeader>();
/// The same in the compact form.
pub const COMPACT_HEADER_LENGTH: usize = size_of::<CompactHeader>();
/// Longest payload that a compact header can tell, bytes.
pub const COMPACT_PAYLOAD_MAX: usize = (1 << LENGTH_BITS) - 1;

/// How headers look; both ends are configured alike, and the handshake sees to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum HeaderForm {
    /// [`FullHeader`]: numbers of 32 bits.
    #[default]
    Full,
    /// [`CompactHeader`]: numbers of 16 bits, for a channel that holds no datagram back while half of them pass.
    Compact,
}

/// The start of a datagram in the full form, and of every datagram of the handshake.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FullHeader {
    /// Names the session and the direction. 0: handshake, there is no session yet.
    pub tag: U32,
    /// Low 32 bits of a number: of the first message in it, or, when there is none, of the sender's next message.
    pub sequence: U32,
    /// Low 32 bits of the number that the sender of this datagram wants next: all below have been handed to its owner.
    pub ack: U32,
    /// Bytes of payload.
    pub length: U16,
    /// A [`Kind`].
    pub kind: u8,
    /// [`FLAG_RETRANSMIT`]; the other bits are 0, and a datagram with one of them is dropped.
    pub flags: u8,
}

/// The start of a datagram in the compact form.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CompactHeader {
    /// Names the session and the direction. Not 0.
    pub tag: U16,
    /// As in [`FullHeader`], 16 bits of it.
    pub sequence: U16,
    /// As in [`FullHeader`], 16 bits of it.
    pub ack: U16,
    /// Bits 0 to 10: bytes of payload. Bit 11: [`FLAG_RETRANSMIT`]. Bits 12 to 15: a [`Kind`].
    pub length_and_kind: U16,
}

const _: () = {
    assert!(size_of::<FullHeader>() == 16);
    assert!(size_of::<CompactHeader>() == 8);
};

/// What a header says, whatever its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Names the session and the direction.
    pub tag: u32,
    /// The low bits of the first message's number; [`HeaderForm::expand`] finds the rest.
    pub sequence: u32,
    /// The low bits of the number that the sender wants next.
    pub ack: u32,
    /// What the payload is.
    pub kind: Kind,
    /// [`FLAG_RETRANSMIT`] or 0.
    pub flags: u8,
}

impl HeaderForm {
    /// Bytes before the payload.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Full => HEADER_LENGTH,
            Self::Compact => COMPACT_HEADER_LENGTH,
        }
    }

    /// From its name in a config: `full` or `compact`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "compact" => Some(Self::Compact),
            _ => None,
        }
    }

    /// Its number in the handshake: the bytes it has.
    pub(in crate::ltp) const fn number(self) -> u8 {
        match self {
            Self::Full => 16,
            Self::Compact => 8,
        }
    }

    /// The tag of a datagram, before anything else of it is looked at.
    #[must_use]
    #[inline]
    pub fn tag(self, datagram: &[u8]) -> Option<u32> {
        match self {
            Self::Full => datagram.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)),
            Self::Compact => datagram.first_chunk().map(|bytes| u16::from_le_bytes(*bytes).into()),
        }
    }

    /// Splits a datagram that has `trailer` bytes behind its payload into header and payload.
    ///
    /// # Errors
    /// It is not as long as it says, or has a kind or flag that a session does not have.
    #[inline]
    pub fn read(self, datagram: &[u8], trailer: usize) -> Result<(Header, &[u8]), Malformed> {
        let (header, length, rest) = match self {
            Self::Full => read_full(datagram)?,
            Self::Compact => read_compact(datagram)?,
        };
        if rest.len() != length + trailer {
            return Err(Malformed::Length);
        }
        if header.flags & !FLAG_RETRANSMIT != 0 {
            return Err(Malformed::Flags);
        }
        Ok((header, &rest[..length]))
    }

    /// Writes a header before `length` bytes of payload that are in `out` already, and gives the length of both.
    #[inline]
    pub(in crate::ltp) fn write(self, out: &mut [u8], header: Header, length: usize) -> usize {
        match self {
            Self::Full => {
                let full = FullHeader {
                    tag: U32::new(header.tag),
                    sequence: U32::new(header.sequence),
                    ack: U32::new(header.ack),
                    length: U16::new(low_16(length)),
                    kind: header.kind as u8,
                    flags: header.flags,
                };
                out[..HEADER_LENGTH].copy_from_slice(full.as_bytes());
            }
            Self::Compact => {
                let flags = u16::from(header.flags) << LENGTH_BITS;
                let kind = (header.kind as u16) << KIND_SHIFT;
                let compact = CompactHeader {
                    tag: U16::new(low_half(header.tag)),
                    sequence: U16::new(low_half(header.sequence)),
                    ack: U16::new(low_half(header.ack)),
                    length_and_kind: U16::new(low_16(length) | flags | kind),
                };
                out[..COMPACT_HEADER_LENGTH].copy_from_slice(compact.as_bytes());
            }
        }
        self.length() + length
    }

    /// The number nearest to `reference` with these low bits. What is more than half the range away comes out wrong, and
    /// the caller's range check refuses it.
    #[must_use]
    #[inline]
    pub const fn expand(self, low: u32, reference: u64) -> u64 {
        match self {
            Self::Full => expand(low, reference),
            Self::Compact => {
                let distance = low_half(low).wrapping_sub(low_half(low_32(reference))).cast_signed();
                reference.wrapping_add_signed(distance as i64)
            }
        }
    }
}

/// The number nearest to `reference` with these low 32 bits; see [`HeaderForm::expand`].
#[inline]
pub(super) const fn expand(low: u32, reference: u64) -> u64 {
    let distance = low.wrapping_sub(low_32(reference)).cast_signed();
    reference.wrapping_add_signed(distance as i64)
}

#[inline]
fn read_full(datagram: &[u8]) -> Result<(Header, usize, &[u8]), Malformed> {
    let (full, rest) = FullHeader::ref_from_prefix(datagram).map_err(|_| Malformed::Length)?;
    let header = Header {
        tag: full.tag.get(),
        sequence: full.sequence.get(),
        ack: full.ack.get(),
        kind: Kind::from_u8(full.kind).ok_or(Malformed::Kind)?,
        flags: full.flags,
    };
    Ok((header, full.length.get().into(), rest))
}

#[inline]
fn read_compact(datagram: &[u8]) -> Result<(Header, usize, &[u8]), Malformed> {
    let (compact, rest) = CompactHeader::ref_from_prefix(datagram).map_err(|_| Malformed::Length)?;
    let word = compact.length_and_kind.get();
    let [_, high] = word.to_le_bytes();
    let header = Header {
        tag: compact.tag.get().into(),
        sequence: compact.sequence.get().into(),
        ack: compact.ack.get().into(),
        kind: Kind::from_u8(high >> (KIND_SHIFT - 8)).ok_or(Malformed::Kind)?,
        flags: high >> (LENGTH_BITS - 8) & FLAG_RETRANSMIT,
    };
    Ok((header, usize::from(word) & COMPACT_PAYLOAD_MAX, rest))
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the compact form carries the low half on purpose"
)]
const fn low_half(number: u32) -> u16 {
    number as u16
}

/// Bits of a compact header's last word that are the length; the next is the flag.
const LENGTH_BITS: u32 = 11;
/// Where the kind begins in it.
const KIND_SHIFT: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_form_gives_back_what_was_written() {
        for form in [HeaderForm::Full, HeaderForm::Compact] {
            let header = Header {
                tag: 0x8123,
                sequence: 0xfffe,
                ack: 7,
                kind: Kind::Credits,
                flags: FLAG_RETRANSMIT,
            };
            let mut datagram = [0; 64];
            let length = form.write(&mut datagram, header, 20);
            assert_eq!(length, form.length() + 20);
            let (read, payload) = form.read(&datagram[..length + 8], 8).unwrap();
            assert_eq!((read, payload.len()), (header, 20));
            assert_eq!(form.tag(&datagram), Some(header.tag));
            assert_eq!(form.read(&datagram[..length + 7], 8), Err(Malformed::Length));
        }
    }

    #[test]
    fn numbers_are_found_on_either_side_of_a_wrap() {
        for (form, bits) in [(HeaderForm::Full, 32), (HeaderForm::Compact, 16)] {
            let wrap = 5u64 << bits;
            for (number, reference) in [(wrap - 3, wrap + 4), (wrap + 4, wrap - 3), (wrap, wrap)] {
                assert_eq!(form.expand(low_32(number), reference), number);
            }
        }
    }
}
