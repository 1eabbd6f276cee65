//! The messages that were sent, kept for resends, in bounded memory: the newest stay, the oldest make room.

use crate::fix::{MAX_MESSAGE_LENGTH, msg_type};
use alloc::boxed::Box;
use alloc::vec;
use core::hint::black_box;
use types::Timestamp;

/// Bodies of sent messages by sequence number. Two rings: one of entries, one of bytes. An entry is good as long as its
/// place was not taken and its bytes were not written over, so nothing has to be evicted.
#[derive(Debug)]
pub(super) struct Store {
    entries: Box<[Entry]>,
    bytes: Box<[u8]>,
    /// Bytes written since the start, the position of the next.
    written: u64,
    /// The highest number put in; 0 when there is none.
    last: u64,
}

/// One message as it was sent first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent<'a> {
    /// MsgType (35).
    pub(super) msg_type: &'static [u8],
    /// SendingTime (52).
    pub(super) time: Timestamp,
    /// The body's fields, in two parts where they wrap around.
    pub(super) body: (&'a [u8], &'a [u8]),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// 0 when nothing was put in yet.
    sequence: u64,
    time: Timestamp,
    msg_type: &'static [u8],
    position: u64,
    length: usize,
}

impl Store {
    /// Room for `messages` messages and `bytes` bytes of their bodies, allocated here.
    pub(super) fn new(messages: usize, bytes: usize) -> Self {
        assert!(messages > 0, "a store keeps at least one message");
        assert!(
            bytes >= MAX_MESSAGE_LENGTH,
            "a store holds at least the longest message"
        );
        let empty = Entry {
            sequence: 0,
            time: Timestamp::NONE,
            msg_type: b"",
            position: 0,
            length: 0,
        };
        Self {
            entries: vec![empty; messages].into_boxed_slice(),
            bytes: resident(bytes),
            written: 0,
            last: 0,
        }
    }

    /// Keeps a message. Numbers come in order.
    pub(super) fn put(&mut self, sequence: u64, time: Timestamp, msg_type: &'static [u8], body: &[u8]) {
        let start = self.index(self.written);
        let first = body.len().min(self.bytes.len() - start);
        self.bytes[start..start + first].copy_from_slice(&body[..first]);
        self.bytes[..body.len() - first].copy_from_slice(&body[first..]);
        let slot = self.slot(sequence);
        self.entries[slot] = Entry {
            sequence,
            time,
            msg_type,
            position: self.written,
            length: body.len(),
        };
        self.written += body.len() as u64;
        self.last = sequence;
    }

    /// The message with this number, if it is still held.
    pub(super) fn message(&self, sequence: u64) -> Option<Sent<'_>> {
        let entry = &self.entries[self.slot(sequence)];
        if entry.sequence != sequence || self.written - entry.position > self.bytes.len() as u64 {
            return None;
        }
        let start = self.index(entry.position);
        let first = entry.length.min(self.bytes.len() - start);
        Some(Sent {
            msg_type: entry.msg_type,
            time: entry.time,
            body: (&self.bytes[start..start + first], &self.bytes[..entry.length - first]),
        })
    }

    /// The first number from `from` on whose message is held; the one after the last when none is.
    pub(super) fn first_held(&self, from: u64) -> u64 {
        let oldest = (self.last + 1).saturating_sub(self.entries.len() as u64);
        (oldest.max(from)..=self.last)
            .find(|&sequence| self.message(sequence).is_some())
            .unwrap_or(self.last + 1)
    }

    /// Forgets everything, for numbers that start again.
    pub(super) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.sequence = 0;
        }
        self.last = 0;
    }

    /// Bytes allocated.
    pub(super) const fn allocated(&self) -> usize {
        self.bytes.len() + size_of_val::<[Entry]>(&self.entries)
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of entries"
    )]
    const fn slot(&self, sequence: u64) -> usize {
        (sequence % self.entries.len() as u64) as usize
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of bytes"
    )]
    const fn index(&self, position: u64) -> usize {
        (position % self.bytes.len() as u64) as usize
    }
}

/// Whether a resend repeats messages of a type. Administrative ones are passed over, but for Reject
/// (FIX 4.4, volume 2, "resend request").
pub(super) const fn is_resent(msg_type: &[u8]) -> bool {
    !matches!(
        msg_type,
        msg_type::HEARTBEAT
            | msg_type::TEST_REQUEST
            | msg_type::RESEND_REQUEST
            | msg_type::SEQUENCE_RESET
            | msg_type::LOGOUT
            | msg_type::LOGON
    )
}

/// Zeros that are in memory: written, not only reserved, or a report would wait for the kernel wherever it is the first to
/// touch a page.
fn resident(length: usize) -> Box<[u8]> {
    let mut bytes = vec![0; length].into_boxed_slice();
    black_box(&mut bytes).fill(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn body(sent: &Sent<'_>) -> Vec<u8> {
        [sent.body.0, sent.body.1].concat()
    }

    #[test]
    fn the_oldest_make_room() {
        let mut store = Store::new(3, MAX_MESSAGE_LENGTH);
        for sequence in 1..=5 {
            store.put(sequence, Timestamp(sequence), msg_type::REJECT, b"58=x\x01");
        }
        assert_eq!(
            (store.first_held(1), store.first_held(4), store.first_held(6)),
            (3, 4, 6)
        );
        assert!(store.message(2).is_none() && store.message(6).is_none());
        assert_eq!(store.message(3).unwrap().time, Timestamp(3));
        store.clear();
        assert!((1..6).all(|sequence| store.message(sequence).is_none()));
    }

    proptest! {
        #[test]
        #[allow(clippy::cast_possible_truncation, reason = "the remainder is a byte")]
        fn what_is_held_is_what_was_put(lengths in proptest::collection::vec(1_usize..2_000, 1..60)) {
            let mut store = Store::new(20, MAX_MESSAGE_LENGTH);
            let mut model = Vec::new();
            for (index, length) in lengths.into_iter().enumerate() {
                let sequence = index as u64 + 1;
                let bytes: Vec<u8> = (0..length).map(|at| ((at + index) % 251) as u8).collect();
                store.put(sequence, Timestamp(sequence), msg_type::REJECT, &bytes);
                model.push(bytes);
                let held: Vec<u64> = (1..=sequence).filter(|&number| store.message(number).is_some()).collect();
                // The newest are held without a hole, as many as fit.
                prop_assert_eq!(held.last(), Some(&sequence));
                prop_assert_eq!(held.len() as u64, sequence + 1 - held[0]);
                prop_assert_eq!(store.first_held(1), held[0]);
                for number in held {
                    let put = &model[usize::try_from(number).unwrap() - 1];
                    prop_assert_eq!(&body(&store.message(number).unwrap()), put);
                }
                let fitting = model.iter().rev().take(20).scan(0, |sum, bytes| { *sum += bytes.len(); Some(*sum) });
                let expected = fitting.take_while(|&sum| sum <= MAX_MESSAGE_LENGTH).count();
                prop_assert_eq!((1..=sequence).filter(|&number| store.message(number).is_some()).count(), expected);
            }
        }
    }
}
