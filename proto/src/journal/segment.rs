//! The beginning of a segment: what the file is, whose, and which part of the stream.
//!
//! | offset | field | |
//! |---|---|---|
//! | 0 | magic | `TGJOURNL` |
//! | 8 | version u16 | of the format |
//! | 16 | journal u64 | the journal's number |
//! | 24 | first u64 | position of the first record |
//! | 32 | length u64 | bytes of the file |
//! | 40 | created u64 | UTC ns |
//! | 48 | writer, 64 bytes | ASCII, zeros on the right |
//! | 112 | checksum u32 | CRC-32 of all before it |
//! | 4096 | records | |
//!
//! The record at position p is at offset 4096 + p - first. What is not listed is zeros.

use core::fmt;
use types::Timestamp;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::FORMAT_VERSION;

/// Bytes of a segment before its first record: one block of any disk.
pub const SEGMENT_HEADER_LENGTH: usize = 4_096;
/// Longest name of a writer, bytes.
pub const WRITER_LENGTH: usize = 64;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SegmentLayout {
    magic: [u8; 8],
    version: U16,
    reserved1: U16,
    reserved2: U32,
    journal: U64,
    /// Bytes from the stream's beginning.
    first: U64,
    /// Bytes.
    length: U64,
    /// UTC ns.
    created: U64,
    /// Zeros on the right.
    writer: [u8; WRITER_LENGTH],
    /// CRC-32 of all before it.
    checksum: U32,
    reserved3: U32,
}

const _: () = assert!(size_of::<SegmentLayout>() == 120);

const MAGIC: [u8; 8] = *b"TGJOURNL";
const CHECKSUM_OFFSET: usize = 112;

/// What a segment says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// The journal's number: the same in all its segments and in its ring, and in no other journal's.
    pub journal: u64,
    /// Position of the first record.
    pub first: u64,
    /// Bytes of the file.
    pub length: u64,
    /// When the segment was made.
    pub created: Timestamp,
    /// Who writes the journal.
    pub writer: Writer,
}

/// Who writes a journal: 1 to [`WRITER_LENGTH`] printable ASCII bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// Zeros on the right.
    bytes: [u8; WRITER_LENGTH],
}

/// Why a file is no segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentError {
    /// Shorter than its header.
    Truncated,
    /// It begins with something else.
    Magic,
    /// Another version of the format.
    Version(u16),
    /// The checksum is not the bytes'.
    Checksum,
    /// The writer's name is no name.
    Writer,
}

impl SegmentHeader {
    /// Reads the header at the beginning of `bytes`.
    ///
    /// # Errors
    /// The bytes are no segment of this format.
    pub fn parse(bytes: &[u8]) -> Result<Self, SegmentError> {
        let Ok((layout, _)) = SegmentLayout::ref_from_prefix(bytes) else {
            return Err(SegmentError::Truncated);
        };
        if layout.magic != MAGIC {
            return Err(SegmentError::Magic);
        }
        if layout.version.get() != FORMAT_VERSION {
            return Err(SegmentError::Version(layout.version.get()));
        }
        if layout.checksum.get() != layout.computed_checksum() {
            return Err(SegmentError::Checksum);
        }
        Ok(Self {
            journal: layout.journal.get(),
            first: layout.first.get(),
            length: layout.length.get(),
            created: Timestamp(layout.created.get()),
            writer: Writer::from_padded(layout.writer).ok_or(SegmentError::Writer)?,
        })
    }

    /// The header as it stands in front of the records.
    #[must_use]
    pub fn to_block(&self) -> [u8; SEGMENT_HEADER_LENGTH] {
        let mut layout = SegmentLayout {
            magic: MAGIC,
            version: U16::new(FORMAT_VERSION),
            reserved1: U16::ZERO,
            reserved2: U32::ZERO,
            journal: U64::new(self.journal),
            first: U64::new(self.first),
            length: U64::new(self.length),
            created: U64::new(self.created.0),
            writer: self.writer.bytes,
            checksum: U32::ZERO,
            reserved3: U32::ZERO,
        };
        layout.checksum = U32::new(layout.computed_checksum());
        let mut block = [0; SEGMENT_HEADER_LENGTH];
        block[..size_of::<SegmentLayout>()].copy_from_slice(layout.as_bytes());
        block
    }
}

impl SegmentLayout {
    fn computed_checksum(&self) -> u32 {
        crc32fast::hash(&self.as_bytes()[..CHECKSUM_OFFSET])
    }
}

impl Writer {
    /// A writer of this name. `None` when it is empty, too long or not printable ASCII.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let printable = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if name.is_empty() || name.len() > WRITER_LENGTH || !printable {
            return None;
        }
        let mut bytes = [0; WRITER_LENGTH];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { bytes })
    }

    fn from_padded(bytes: [u8; WRITER_LENGTH]) -> Option<Self> {
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(WRITER_LENGTH);
        let writer = Self::new(core::str::from_utf8(&bytes[..length]).ok()?)?;
        (writer.bytes == bytes).then_some(writer)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(WRITER_LENGTH);
        core::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "shorter than the header of a journal segment"),
            Self::Magic => write!(f, "not a journal segment"),
            Self::Version(version) => write!(f, "format version {version}, this program reads {FORMAT_VERSION}"),
            Self::Checksum => write!(f, "header with a wrong checksum"),
            Self::Writer => write!(f, "header with a malformed writer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            journal: 7,
            first: 4_096,
            length: 65_536,
            created: Timestamp(9),
            writer: Writer::new("gateway shard 0").unwrap(),
        }
    }

    #[test]
    fn a_header_comes_back() {
        assert_eq!(SegmentHeader::parse(&header().to_block()), Ok(header()));
    }

    #[test]
    fn a_header_that_is_damaged_anywhere_is_refused() {
        let good = header().to_block();
        for offset in 0..116 {
            let mut block = good;
            block[offset] ^= 1;
            let error = match offset {
                0..8 => SegmentError::Magic,
                8 => SegmentError::Version(0),
                9 => SegmentError::Version(257),
                _ => SegmentError::Checksum,
            };
            assert_eq!(SegmentHeader::parse(&block), Err(error), "{offset}");
        }
        assert_eq!(SegmentHeader::parse(&good[..119]), Err(SegmentError::Truncated));
    }

    #[test]
    fn a_writer_has_a_printable_name_that_fits() {
        assert_eq!(Writer::new("exchange").map(|writer| writer.as_str().len()), Some(8));
        let long = [b'x'; WRITER_LENGTH + 1];
        for name in ["", "a\nb", "ü", core::str::from_utf8(&long).unwrap()] {
            assert_eq!(Writer::new(name), None);
        }
        assert!(Writer::new(core::str::from_utf8(&long[1..]).unwrap()).is_some());
    }
}
