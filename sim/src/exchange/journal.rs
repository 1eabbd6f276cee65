//! What the exchange wants of a journal. It does not care which one it is.

use proto::journal::Kind;
use types::Timestamp;

/// Takes records in order.
pub trait Journal {
    /// Whether records of so many bytes, headers included, can be appended now.
    fn room(&self, bytes: usize) -> bool;

    /// Appends a record; the payload is `parts` one after the other. The position after it. There is room.
    fn append(&mut self, kind: Kind, time: Timestamp, parts: &[&[u8]]) -> u64;

    /// Up to which position records are as safe as an output wants its record to be.
    fn watermark(&self) -> u64;

    /// Up to where it is written to memory, and up to where it survives the loss of the machine.
    fn progress(&self) -> (u64, u64);
}

/// Keeps nothing: an exchange that forgets everything when it ends.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn room(&self, _bytes: usize) -> bool {
        true
    }

    fn append(&mut self, _kind: Kind, _time: Timestamp, _parts: &[&[u8]]) -> u64 {
        0
    }

    fn watermark(&self) -> u64 {
        0
    }

    /// Nothing survives.
    fn progress(&self) -> (u64, u64) {
        (u64::MAX, 0)
    }
}
