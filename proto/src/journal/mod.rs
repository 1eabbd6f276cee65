//! Records of a journal: what they look like in the ring and on the disk, and how to tell a good one.
//!
//! A journal is one stream of bytes. A record's place in it, its position, is in the record: what an earlier lap of the
//! ring or an earlier life of the disk's blocks left behind never passes for a record of this place. The stream is cut
//! into segments, files that begin with a [`SegmentHeader`] and then hold whole records; the rest is zeros.
//!
//! All is little-endian.

mod kind;
mod record;
mod segment;

pub use kind::Kind;
pub use record::{
    Damage, MAX_PAYLOAD_LENGTH, MAX_RECORD_LENGTH, RECORD_HEADER_LENGTH, Record, Scanned, Seal, header_words,
    record_length, scan, seal, write_record,
};
pub use segment::{SEGMENT_HEADER_LENGTH, SegmentError, SegmentHeader, WRITER_LENGTH, Writer};

/// Version of the layouts of records and segments.
pub const FORMAT_VERSION: u16 = 1;
