//! One record: header, payload, padding.
//!
//! | offset | field | |
//! |---|---|---|
//! | 0 | checksum u32 | CRC-32 of all that follows, padding included; 0 until the record is sealed |
//! | 4 | length u32 | bytes of payload |
//! | 8 | kind u16 | what the payload is; never 0 |
//! | 10 | version u16 | of the payload's layout |
//! | 12 | reserved u32 | 0 |
//! | 16 | time u64 | UTC ns |
//! | 24 | position u64 | of this record's first byte in the stream |
//! | 32 | payload | |
//! | | padding | zeros, up to a multiple of 8 |
//!
//! The thread that appends does not compute the checksum, which is half of what an append would cost: shared memory is
//! not torn when a process dies, and the drainer seals each record on its way to the disk.

use core::fmt;
use types::Timestamp;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a record before its payload.
pub const RECORD_HEADER_LENGTH: usize = 32;
/// Longest record, bytes.
pub const MAX_RECORD_LENGTH: usize = 16 * 1024;
/// Longest payload, bytes.
pub const MAX_PAYLOAD_LENGTH: usize = MAX_RECORD_LENGTH - RECORD_HEADER_LENGTH;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RecordHeader {
    checksum: U32,
    /// Bytes of payload.
    length: U32,
    /// 0: none.
    kind: U16,
    version: U16,
    reserved: U32,
    /// UTC ns.
    time: U64,
    /// Bytes from the stream's beginning.
    position: U64,
}

const _: () = assert!(size_of::<RecordHeader>() == RECORD_HEADER_LENGTH);

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Its first byte in the stream.
    pub position: u64,
    /// What it is: a [`Kind`](super::Kind), or a number of a later version.
    pub kind: u16,
    /// Version of the payload's layout.
    pub version: u16,
    /// When it was appended, by the clock of whoever appended it.
    pub time: Timestamp,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

/// What stands at a place of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scanned<'a> {
    /// A good record.
    Record(Record<'a>),
    /// The bytes end within the record, if it is one: look again with more.
    Partial,
    /// Nothing was written here.
    End,
}

/// Why the bytes at a place of the stream are no record of this place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The length is beyond [`MAX_PAYLOAD_LENGTH`].
    Length(u32),
    /// The kind is 0.
    Kind,
    /// It is the record of another place.
    Position(u64),
    /// The checksum is not the bytes'.
    Checksum,
    /// It is [`Scanned::Partial`], and there are no more bytes.
    Cut,
    /// It is [`Scanned::End`], and there are records behind it.
    Blank,
}

/// Whether records must carry their checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seal {
    /// They must: on a disk.
    Required,
    /// They do not: in the ring.
    Absent,
}

/// What stands at the beginning of `bytes`, which is place `position` of the stream.
///
/// # Errors
/// Something was written there, and it is no record of this place.
pub fn scan(bytes: &[u8], position: u64, seal: Seal) -> Result<Scanned<'_>, Damage> {
    let Ok((header, rest)) = RecordHeader::ref_from_prefix(bytes) else {
        return Ok(Scanned::Partial);
    };
    if header.as_bytes() == [0; RECORD_HEADER_LENGTH] {
        return Ok(Scanned::End);
    }
    let payload_length = header.length.get() as usize;
    if payload_length > MAX_PAYLOAD_LENGTH {
        return Err(Damage::Length(header.length.get()));
    }
    if header.position.get() != position {
        return Err(Damage::Position(header.position.get()));
    }
    if header.kind.get() == 0 {
        return Err(Damage::Kind);
    }
    let Some(record) = bytes.get(..record_length(payload_length)) else {
        return Ok(Scanned::Partial);
    };
    if seal == Seal::Required && header.checksum.get() != crc32fast::hash(&record[4..]) {
        return Err(Damage::Checksum);
    }
    Ok(Scanned::Record(Record {
        position,
        kind: header.kind.get(),
        version: header.version.get(),
        time: Timestamp(header.time.get()),
        payload: &rest[..payload_length],
    }))
}

/// Bytes of a record with a payload of `payload_length` bytes.
#[must_use]
pub const fn record_length(payload_length: usize) -> usize {
    RECORD_HEADER_LENGTH + payload_length.next_multiple_of(8)
}

/// The header of a record that is not sealed, as the four little-endian words in which it goes to the ring.
///
/// # Panics
/// When the payload is longer than [`MAX_PAYLOAD_LENGTH`], or `kind` is 0.
#[must_use]
pub fn header_words(kind: u16, version: u16, time: Timestamp, position: u64, payload_length: usize) -> [u64; 4] {
    assert!(payload_length <= MAX_PAYLOAD_LENGTH, "payload too long for a record");
    assert!(kind != 0, "kind 0 is no kind");
    let length = (payload_length as u64) << 32;
    let kind = u64::from(kind) | u64::from(version) << 16;
    [length, kind, time.0, position]
}

/// Writes a whole record, sealed; returns its length.
///
/// # Panics
/// When `out` is too short, the payload is longer than [`MAX_PAYLOAD_LENGTH`], or the kind is 0.
pub fn write_record(record: &Record<'_>, out: &mut [u8]) -> usize {
    let payload_length = record.payload.len();
    let words = header_words(
        record.kind,
        record.version,
        record.time,
        record.position,
        payload_length,
    );
    let length = record_length(payload_length);
    let out = &mut out[..length];
    let (header, body) = out.split_at_mut(RECORD_HEADER_LENGTH);
    for (bytes, word) in header.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let (payload, padding) = body.split_at_mut(payload_length);
    payload.copy_from_slice(record.payload);
    padding.fill(0);
    seal(out);
    length
}

/// Puts the checksum into `record`, which is one whole record.
///
/// # Panics
/// When it is shorter than a header.
pub fn seal(record: &mut [u8]) {
    let (checksum, rest) = record.split_at_mut(4);
    checksum.copy_from_slice(&crc32fast::hash(rest).to_le_bytes());
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "a payload of {length} bytes, longer than any"),
            Self::Kind => write!(f, "a record without a kind"),
            Self::Position(position) => write!(f, "the record of position {position}"),
            Self::Checksum => write!(f, "a checksum that is not the record's"),
            Self::Cut => write!(f, "a record that is cut"),
            Self::Blank => write!(f, "nothing"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn written(record: &Record<'_>) -> Vec<u8> {
        let mut out = [0xff; MAX_RECORD_LENGTH];
        let length = write_record(record, &mut out);
        out[..length].to_vec()
    }

    const RECORD: Record<'_> = Record {
        position: 0x0102_0304_0506_0708,
        kind: 17,
        version: 1,
        time: Timestamp(0x1112_1314_1516_1718),
        payload: b"hello",
    };

    #[test]
    fn a_record_is_these_bytes() {
        // The checksum is zlib's crc32 of what follows it, by Python.
        let bytes = b"\x0B\x6D\x02\x6B\x05\0\0\0\x11\0\x01\0\0\0\0\0\
            \x18\x17\x16\x15\x14\x13\x12\x11\x08\x07\x06\x05\x04\x03\x02\x01hello\0\0\0";
        assert_eq!(written(&RECORD), bytes);
        assert_eq!(
            scan(bytes, RECORD.position, Seal::Required),
            Ok(Scanned::Record(RECORD))
        );
    }

    #[test]
    fn the_record_of_another_place_is_damage() {
        let bytes = written(&RECORD);
        let found = scan(&bytes, 8, Seal::Required);
        assert_eq!(found, Err(Damage::Position(RECORD.position)));
    }

    #[test]
    fn zeros_are_the_end() {
        assert_eq!(scan(&[0; 64], 8, Seal::Required), Ok(Scanned::End));
        assert_eq!(scan(&[0; 31], 8, Seal::Required), Ok(Scanned::Partial));
    }

    #[test]
    fn a_record_that_is_not_sealed_is_only_good_where_none_is() {
        let words = header_words(
            RECORD.kind,
            RECORD.version,
            RECORD.time,
            RECORD.position,
            RECORD.payload.len(),
        );
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.extend_from_slice(b"hello\0\0\0");
        let position = RECORD.position;
        assert_eq!(scan(&bytes, position, Seal::Absent), Ok(Scanned::Record(RECORD)));
        assert_eq!(scan(&bytes, position, Seal::Required), Err(Damage::Checksum));
        seal(&mut bytes);
        assert_eq!(bytes, written(&RECORD));
    }

    prop_compose! {
        fn parts()(
            position: u64, kind in 1_u16.., version: u16, time: u64,
            payload in proptest::collection::vec(any::<u8>(), 0..300),
        ) -> (u64, u16, u16, u64, Vec<u8>) {
            (position, kind, version, time, payload)
        }
    }

    proptest! {
        #[test]
        fn every_record_comes_back_whole_and_no_part_of_it_does((position, kind, version, time, payload) in parts()) {
            let record = Record { position, kind, version, time: Timestamp(time), payload: &payload };
            let bytes = written(&record);
            prop_assert_eq!(bytes.len(), record_length(payload.len()));
            prop_assert_eq!(scan(&bytes, position, Seal::Required), Ok(Scanned::Record(record)));
            for length in 0..bytes.len() {
                prop_assert_eq!(scan(&bytes[..length], position, Seal::Required), Ok(Scanned::Partial));
            }
        }

        #[test]
        fn no_flipped_bit_goes_unnoticed((position, kind, version, time, payload) in parts(), bit: usize) {
            let record = Record { position, kind, version, time: Timestamp(time), payload: &payload };
            let mut bytes = written(&record);
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            match scan(&bytes, position, Seal::Required) {
                Err(_) => {}
                // The length grew beyond the bytes: with more bytes the checksum will tell.
                Ok(Scanned::Partial) => prop_assert!((32..64).contains(&bit)),
                Ok(other) => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), length: u8, position: u64) {
            let mut bytes = bytes;
            let _ = scan(&bytes, position, Seal::Absent);
            // Again with a position that is right and a length that may be.
            if bytes.len() >= RECORD_HEADER_LENGTH {
                bytes[4..8].copy_from_slice(&u32::from(length).to_le_bytes());
                bytes[24..32].copy_from_slice(&position.to_le_bytes());
                let _ = scan(&bytes, position, Seal::Absent);
                let _ = scan(&bytes, position, Seal::Required);
            }
        }
    }
}
