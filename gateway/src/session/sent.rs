//! The numbered messages of one native session: what was sent, what is still to be sent, and what can be sent again when
//! the client logs on and asks.

use proto::native::MAX_ANSWER_LENGTH;
use types::SequenceNumber;

/// The last `capacity` messages, each with the journal position it waits for.
#[derive(Debug)]
pub(crate) struct SentMessages {
    slots: Box<[Slot]>,
    /// The number that the next message gets; the first is 1.
    next: SequenceNumber,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    position: u64,
    length: u8,
    bytes: [u8; MAX_ANSWER_LENGTH],
}

impl SentMessages {
    /// Room for `capacity` messages, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        let empty = Slot {
            position: 0,
            length: 0,
            bytes: [0; MAX_ANSWER_LENGTH],
        };
        Self {
            slots: vec![empty; capacity.max(1)].into_boxed_slice(),
            next: SequenceNumber(1),
        }
    }

    /// Bytes that this capacity takes.
    pub(crate) const fn memory_bytes(capacity: usize) -> usize {
        capacity * size_of::<Slot>()
    }

    /// The number that the next message gets.
    pub(crate) const fn next(&self) -> SequenceNumber {
        self.next
    }

    /// The oldest number still held; the next number when there is none.
    pub(crate) fn oldest(&self) -> SequenceNumber {
        SequenceNumber(self.next.0.saturating_sub(self.slots.len() as u64).max(1))
    }

    /// How many messages can come before one that `unsent` still needs is overwritten.
    pub(crate) fn room(&self, unsent: SequenceNumber) -> usize {
        let waiting = usize::try_from(self.next.0.saturating_sub(unsent.0)).unwrap_or(usize::MAX);
        self.slots.len().saturating_sub(waiting)
    }

    /// Keeps a message that may leave once the journal's watermark has reached `position`. The oldest makes room for it.
    ///
    /// # Panics
    /// When it is longer than a native message can be.
    pub(crate) fn push(&mut self, message: &[u8], position: u64) {
        let place = self.place(self.next);
        let slot = &mut self.slots[place];
        slot.position = position;
        slot.length = u8::try_from(message.len()).expect("a native message is short");
        slot.bytes[..message.len()].copy_from_slice(message);
        self.next = self.next.next();
    }

    /// A message that is still held, and the position it waits for.
    pub(crate) fn get(&self, number: SequenceNumber) -> Option<(&[u8], u64)> {
        if number < self.oldest() || number >= self.next {
            return None;
        }
        let slot = &self.slots[self.place(number)];
        Some((&slot.bytes[..usize::from(slot.length)], slot.position))
    }

    fn place(&self, number: SequenceNumber) -> usize {
        usize::try_from(number.0 % self.slots.len() as u64).expect("it is below a length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_held_and_older_ones_are_not() {
        let mut sent = SentMessages::new(3);
        assert_eq!(sent.oldest(), SequenceNumber(1));
        for (position, text) in [b"1", b"2", b"3", b"4"].into_iter().enumerate() {
            sent.push(text, position as u64);
        }
        assert_eq!(sent.get(SequenceNumber(1)), None);
        assert_eq!(sent.oldest(), SequenceNumber(2));
        assert_eq!(sent.get(SequenceNumber(2)), Some((&b"2"[..], 1)));
        assert_eq!(sent.get(SequenceNumber(4)), Some((&b"4"[..], 3)));
        assert_eq!(sent.get(SequenceNumber(5)), None);
    }

    #[test]
    fn room_is_what_a_slow_reader_leaves() {
        let mut sent = SentMessages::new(3);
        assert_eq!(sent.room(SequenceNumber(1)), 3);
        sent.push(b"1", 0);
        sent.push(b"2", 0);
        assert_eq!(sent.room(SequenceNumber(1)), 1);
        assert_eq!(sent.room(SequenceNumber(3)), 3);
    }
}
