//! The journal: what was appended to it is there after a crash, and the thread that appends never waits.
//!
//! [`JournalWriter::append`] copies a record into a ring in shared memory and moves one mark: no system call, no
//! allocation, no lock. What is in the ring survives the process. A thread of the journal's own takes records from the
//! ring, seals them with a checksum, and writes them to segment files with direct I/O; two further marks say what was
//! written and what was synced. Whoever must not speak before its words are safe waits for the mark it trusts
//! ([`Watermark`]). When the disk is slow the ring fills, and there is no [`room`](JournalWriter::room): the owner then
//! refuses what it could not record.
//!
//! [`JournalReader`] gives all records back in order. The format is in [`proto::journal`]; what records mean is the
//! business of whoever appends them. [`Recalls`] finds single messages again, without holding up who appends.
//!
//! Why nothing is lost between the two: a place in the ring is used again only once `written` has passed it, so what is
//! not in a file yet is always in the ring. Why nothing is seen too early: marks are stored with release and loaded with
//! acquire, so whoever sees a mark sees all that is before it.
#![forbid(unsafe_code)]

mod buffer;
mod cursor;
mod drainer;
mod error;
mod reader;
mod recall;
mod recovery;
mod ring;
mod segment;
mod sent_index;
mod writer;

pub use error::JournalError;
pub use reader::JournalReader;
pub use recall::{Found, Portion, Recalls, Seeker, Seekers, Streams, Wanted, recalls};
pub use recovery::{Cut, Recovery, cut};
pub use sent_index::SentIndex;
pub use writer::{
    Config, Facts, JournalWriter, MAX_RING_BYTES, MAX_SEGMENT_BYTES, MIN_RING_BYTES, MIN_SEGMENT_BYTES, Watermark,
    check_sizes,
};
