//! The messages that the peer may not have: a ring keyed by sequence number.
//!
//! Each message is kept as the packet that goes on the wire, so that sending it, again or the first time, copies nothing.

use types::SequenceNumber;

/// Numbered packets, from the oldest unacknowledged one to the newest.
#[derive(Debug)]
pub(super) struct Ring {
    /// `stride` bytes a packet; the packet of a number is at the number's low bits.
    packets: Box<[u8]>,
    slots: Box<[Slot]>,
    stride: usize,
    /// Number of slots less one; the number of slots is a power of two at or above the window.
    mask: u64,
    /// Most packets kept.
    window: u64,
    /// The oldest number kept; `next` when none is.
    first: u64,
    /// The number of the next new message.
    next: u64,
    /// The number of the first message after the start: those restored end below it.
    start: u64,
    /// The number that the next restored message must have; `None` before the first.
    restoring: Option<u64>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    /// Bytes of the packet.
    length: usize,
    /// The owner's journal position; it leaves once the watermark has reached that.
    position: u64,
}

impl Ring {
    /// A ring for `window` packets of at most `packet_max` bytes, whose next message has the number `next`.
    pub(super) fn new(window: usize, packet_max: usize, next: SequenceNumber) -> Self {
        let slots = window.next_power_of_two();
        Self {
            packets: vec![0; slots * packet_max].into_boxed_slice(),
            slots: vec![Slot::default(); slots].into_boxed_slice(),
            stride: packet_max,
            mask: slots as u64 - 1,
            window: window as u64,
            first: next.0,
            next: next.0,
            start: next.0,
            restoring: None,
        }
    }

    /// Holds nothing, and goes on at `next`.
    pub(super) fn restart(&mut self, next: u64) {
        self.first = next;
        self.next = next;
        self.start = next;
        self.restoring = None;
    }

    /// Bytes of memory that a ring takes.
    pub(super) const fn memory(window: usize, packet_max: usize) -> usize {
        window.next_power_of_two() * (packet_max + size_of::<Slot>())
    }

    /// The oldest number kept, or the next one when none is.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next new message.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Packets it still takes.
    pub(super) fn room(&self) -> usize {
        self.index_of_count(self.window - (self.next - self.first))
    }

    /// Numbers and keeps a packet that `write` puts into the given memory, returning its length.
    pub(super) fn push(&mut self, position: u64, write: impl FnOnce(&mut [u8]) -> usize) -> u64 {
        assert!(
            self.next - self.first < self.window,
            "the ring is full; the owner looks at room() first"
        );
        let number = self.next;
        self.next += 1;
        self.put(number, position, write);
        number
    }

    /// Puts a packet back that was numbered before a restart; it may leave at once.
    pub(super) fn restore(&mut self, number: u64, write: impl FnOnce(&mut [u8]) -> usize) {
        let expected = self.restoring.unwrap_or(number);
        assert!(
            number == expected && number < self.start && self.next - number <= self.window,
            "restored message {number}: expected {expected}, next is {}, window is {}",
            self.start,
            self.window
        );
        if self.restoring.is_none() {
            self.first = number;
        }
        self.restoring = Some(number + 1);
        self.put(number, 0, write);
    }

    /// Whether nothing is missing between the restored messages and the first new one.
    pub(super) fn is_whole(&self) -> bool {
        self.restoring.is_none_or(|expected| expected == self.start)
    }

    /// The packet of a number that is kept, and the position that lets it leave.
    pub(super) fn packet(&self, number: u64) -> (&[u8], u64) {
        debug_assert!((self.first..self.next).contains(&number));
        let index = self.index(number);
        let slot = self.slots[index];
        let at = index * self.stride;
        (&self.packets[at..at + slot.length], slot.position)
    }

    /// Forgets all packets below a number.
    pub(super) fn release_below(&mut self, number: u64) {
        debug_assert!(number <= self.next);
        self.first = self.first.max(number);
    }

    fn put(&mut self, number: u64, position: u64, write: impl FnOnce(&mut [u8]) -> usize) {
        let index = self.index(number);
        let at = index * self.stride;
        let length = write(&mut self.packets[at..at + self.stride]);
        self.slots[index] = Slot { length, position };
    }

    fn index(&self, number: u64) -> usize {
        self.index_of_count(number & self.mask)
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most the number of slots, which is a usize"
    )]
    fn index_of_count(&self, count: u64) -> usize {
        debug_assert!(count <= self.mask + 1);
        count as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(bytes: &[u8]) -> impl FnOnce(&mut [u8]) -> usize {
        move |out| {
            out[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        }
    }

    #[test]
    fn a_packet_is_kept_until_it_is_released() {
        let mut ring = Ring::new(3, 8, SequenceNumber(1));
        for (position, packet) in (10..).zip([b"one", b"two", b"six"]) {
            ring.push(position, write(packet));
        }
        assert_eq!(ring.room(), 0);
        ring.release_below(2);
        ring.release_below(1);
        assert_eq!((ring.first(), ring.next(), ring.room()), (2, 4, 1));
        assert_eq!(ring.push(13, write(b"ten")), 4);
        assert_eq!(ring.packet(2), (&b"two"[..], 11));
        assert_eq!(ring.packet(4), (&b"ten"[..], 13));
    }

    #[test]
    #[should_panic(expected = "the ring is full")]
    fn a_full_ring_takes_no_more() {
        let mut ring = Ring::new(3, 8, SequenceNumber(1));
        for _ in 0..4 {
            ring.push(0, write(b"x"));
        }
    }

    #[test]
    fn restored_packets_keep_their_numbers() {
        let mut ring = Ring::new(4, 8, SequenceNumber(100));
        assert!(ring.is_whole());
        ring.restore(98, write(b"98"));
        assert!(!ring.is_whole());
        ring.restore(99, write(b"99"));
        assert!(ring.is_whole());
        assert_eq!((ring.first(), ring.next(), ring.room()), (98, 100, 2));
        assert_eq!(ring.packet(99), (&b"99"[..], 0));
    }

    #[test]
    #[should_panic(expected = "restored message 99: expected 98")]
    fn a_gap_among_restored_packets_is_refused() {
        let mut ring = Ring::new(4, 8, SequenceNumber(100));
        ring.restore(97, write(b"97"));
        ring.restore(99, write(b"99"));
    }
}
