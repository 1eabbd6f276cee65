//! What is to be sent to one client: bytes in a bounded buffer, each message held until its journal position is safe.

use std::collections::VecDeque;

/// One connection's outgoing bytes.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Box<[u8]>,
    /// Sent up to here.
    start: usize,
    /// Written up to here.
    end: usize,
    /// Bytes from `start` on that may leave.
    open: usize,
    /// Runs of bytes behind those, each with the journal position it waits for. Never grows: a full one counts as a full
    /// buffer.
    gates: VecDeque<Gate>,
}

#[derive(Clone, Copy, Debug)]
struct Gate {
    length: usize,
    position: u64,
}

/// A gate for so many bytes of buffer. Numbered messages are longer, so the gates never run out before the bytes do.
const BYTES_A_GATE: usize = 32;

impl Outbox {
    /// A buffer of `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        let gates = VecDeque::with_capacity(capacity / BYTES_A_GATE + 1);
        Self {
            bytes: vec![0; capacity].into_boxed_slice(),
            start: 0,
            end: 0,
            open: 0,
            gates,
        }
    }

    /// Bytes that one of this capacity takes, for the sum at start-up.
    pub(crate) const fn memory_bytes(capacity: usize) -> usize {
        capacity + (capacity / BYTES_A_GATE + 1) * size_of::<Gate>()
    }

    /// Bytes of the buffer.
    pub(crate) const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that can still be queued.
    pub(crate) fn room(&self) -> usize {
        if self.gates.len() == self.gates.capacity() {
            0
        } else {
            self.bytes.len() - (self.end - self.start)
        }
    }

    /// Whether nothing waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Queues one message made of parts. It leaves once the watermark has reached `position` (0: at once), and never
    /// before what is ahead of it. Returns false, and queues nothing, when there is no room.
    #[must_use]
    pub(crate) fn push(&mut self, parts: &[&[u8]], position: u64) -> bool {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        if length > self.room() {
            return false;
        }
        if self.bytes.len() - self.end < length {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        for part in parts {
            self.bytes[self.end..self.end + part.len()].copy_from_slice(part);
            self.end += part.len();
        }
        match self.gates.back_mut() {
            // A message that waits for no more than the one ahead of it shares its gate.
            Some(last) if last.position >= position => last.length += length,
            _ => self.gates.push_back(Gate { length, position }),
        }
        true
    }

    /// What may be sent now.
    pub(crate) fn sendable(&mut self, watermark: u64) -> &[u8] {
        while let Some(gate) = self.gates.front()
            && gate.position <= watermark
        {
            self.open += gate.length;
            self.gates.pop_front();
        }
        &self.bytes[self.start..self.start + self.open]
    }

    /// The first `count` bytes of what was sendable have been handed to the socket.
    pub(crate) fn sent(&mut self, count: usize) {
        self.start += count;
        self.open -= count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Forgets everything: the connection is gone. Numbered messages are kept elsewhere.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.open = 0;
        self.gates.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_waits_for_its_position() {
        let mut outbox = Outbox::new(64);
        assert!(outbox.push(&[b"one", b"!"], 10));
        assert!(outbox.push(&[b"two"], 20));
        assert!(outbox.push(&[b"free"], 0), "it waits behind the one ahead");
        assert_eq!(outbox.sendable(9), b"");
        assert_eq!(outbox.sendable(19), b"one!");
        outbox.sent(2);
        assert_eq!(outbox.sendable(19), b"e!");
        assert_eq!(outbox.sendable(20), b"e!twofree");
        outbox.sent(9);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_full_buffer_takes_nothing() {
        let mut outbox = Outbox::new(4);
        assert!(outbox.push(&[b"1234"], 0));
        assert!(!outbox.push(&[b"5"], 0));
        assert_eq!(outbox.sendable(0), b"1234");
    }

    proptest! {
        #[test]
        fn bytes_leave_in_order_and_none_is_lost(
            steps in prop::collection::vec((1_usize..9, 0_u64..4, 0_u64..6, 0_usize..12), 1..200)
        ) {
            let mut outbox = Outbox::new(64);
            let (mut position, mut watermark, mut next, mut expected) = (0, 0, 0_u8, 0_u8);
            for (length, rise, mark, take) in steps {
                position += rise;
                let message = (0..length).map(|i| next.wrapping_add(u8::try_from(i).unwrap())).collect::<Vec<_>>();
                if outbox.push(&[&message], position) {
                    next = next.wrapping_add(u8::try_from(length).unwrap());
                }
                watermark += mark;
                let sendable = outbox.sendable(watermark);
                let take = take.min(sendable.len());
                for &byte in &sendable[..take] {
                    prop_assert_eq!(byte, expected);
                    expected = expected.wrapping_add(1);
                }
                outbox.sent(take);
            }
            let rest = outbox.sendable(u64::MAX).len();
            prop_assert_eq!(expected.wrapping_add(u8::try_from(rest).unwrap()), next);
        }
    }
}
