//! Where things are in a link's arena, and which messages are in its ring.
//!
//! ```text
//! arena   slots that the peer writes | the number that the peer wants | slots to be sent | the number we want
//! slot    number that the sender wants next, 8 | message
//! ```

/// The memory of a link, and places in it.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) bytes: Box<[u8]>,
    window: usize,
    slot: usize,
}

/// Messages of this end that the peer has not acknowledged; their bytes are in the arena.
#[derive(Debug)]
pub(super) struct Outgoing {
    slots: Box<[Slot]>,
    /// The oldest held: the one that the peer wants next.
    pub(super) base: u64,
    /// The next to be sent.
    pub(super) sent: u64,
    /// The next of the owner's.
    pub(super) next: u64,
    /// Behind the last that was ever sent.
    pub(super) highest: u64,
    /// Of the messages put back, the next.
    restored: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    length: usize,
    position: u64,
}

/// Bytes before a message in its slot.
pub(super) const PREFIX: usize = 8;

impl Arena {
    /// `window` is a power of two.
    pub(super) fn new(window: usize, max_message: usize) -> Self {
        let slot = (PREFIX + max_message).next_multiple_of(8);
        Self {
            bytes: vec![0; Self::length(window, max_message)].into(),
            window,
            slot,
        }
    }

    pub(super) const fn length(window: usize, max_message: usize) -> usize {
        2 * (window * (PREFIX + max_message).next_multiple_of(8) + PREFIX)
    }

    /// Bytes that the peer may write: its slots and its word.
    pub(super) const fn reached(&self) -> usize {
        self.window * self.slot + PREFIX
    }

    /// Where in what the peer may write a message goes; the same at both ends.
    pub(super) const fn slot(&self, number: u64) -> usize {
        place(number, self.window) * self.slot
    }

    /// Where in what the peer may write its word is.
    pub(super) const fn word(&self) -> usize {
        self.window * self.slot
    }

    /// Where a message of our own stands that is to be sent.
    pub(super) const fn outgoing(&self, number: u64) -> usize {
        self.reached() + self.slot(number)
    }

    /// Where our own word stands.
    pub(super) const fn outgoing_word(&self) -> usize {
        self.reached() + self.word()
    }

    pub(super) fn number(&self, at: usize) -> u64 {
        let bytes = self.bytes[at..at + PREFIX].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

    pub(super) fn put_number(&mut self, at: usize, number: u64) {
        self.bytes[at..at + PREFIX].copy_from_slice(&number.to_le_bytes());
    }
}

impl Outgoing {
    pub(super) fn new(window: usize, next: u64) -> Self {
        Self {
            slots: vec![Slot::default(); window].into(),
            base: next,
            sent: next,
            next,
            highest: next,
            restored: next,
        }
    }

    pub(super) fn room(&self) -> usize {
        self.slots.len() - usize::try_from(self.next - self.base).expect("no more than the ring holds")
    }

    /// Whether the peer's ring has a place for the next to be sent.
    pub(super) fn is_sendable(&self, watermark: u64) -> bool {
        let is_there = self.sent < self.next && self.sent - self.base < self.slots.len() as u64;
        is_there && self.slots[place(self.sent, self.slots.len())].position <= watermark
    }

    pub(super) fn length(&self, number: u64) -> usize {
        self.slots[place(number, self.slots.len())].length
    }

    /// Takes up the owner's next message and gives its number.
    pub(super) fn push(&mut self, length: usize, position: u64) -> u64 {
        assert!(self.room() > 0, "the owner reserves room before it decides");
        let number = self.next;
        self.slots[place(number, self.slots.len())] = Slot { length, position };
        self.next += 1;
        number
    }

    /// Takes up a message of before a restart.
    pub(super) fn restore(&mut self, number: u64, length: usize) {
        if self.base == self.next {
            (self.base, self.sent, self.restored) = (number, number, number);
        }
        assert!(
            number == self.restored && number < self.next,
            "message {number} restored, expected {}, the next to be sent is {}",
            self.restored,
            self.next
        );
        self.restored += 1;
        if self.restored - self.base > self.slots.len() as u64 {
            self.base += 1;
        }
        self.sent = self.sent.max(self.base);
        self.slots[place(number, self.slots.len())] = Slot { length, position: 0 };
    }

    /// Whether nothing is missing between what was put back and the first new message.
    pub(super) fn is_whole(&self, first: u64) -> bool {
        self.base >= first || self.restored >= first
    }

    /// The peer wants this one next. `false`: it was never sent.
    pub(super) fn acknowledge(&mut self, wanted: u64) -> bool {
        self.base = self.base.max(wanted.min(self.sent));
        wanted <= self.sent
    }

    /// A new session: the peer wants this one next, and what is behind it goes again.
    pub(super) fn resume(&mut self, wanted: u64) {
        self.base = wanted;
        self.sent = wanted;
    }
}

/// Where a number lives in a ring of `capacity`, a power of two.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are the place")]
const fn place(number: u64, capacity: usize) -> usize {
    number as usize & (capacity - 1)
}
