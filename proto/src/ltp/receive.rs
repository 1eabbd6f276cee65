//! The ring of messages received and not yet handed to the owner, and what is missing between them.
//!
//! ```text
//!                next          contiguous              known
//!   handed out .. | received .. | missing, some received | not sent yet, as far as is known
//! ```

use super::NEVER;
use super::send::place;
use super::wire;
use alloc::boxed::Box;
use alloc::vec;
use core::ops::Range;
use types::{Duration, Timestamp};

/// See the file's head.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    /// Bytes of each message; 0: not received.
    lengths: Box<[u16]>,
    bytes: Box<[u8]>,
    max_message: usize,
    /// The next to hand out.
    next: u64,
    /// The first not received.
    contiguous: u64,
    /// The peer's next number, as far as its datagrams have shown.
    known: u64,
    gaps: Gaps,
}

/// When to ask for what is missing.
#[derive(Debug)]
struct Gaps {
    /// The first number of gaps that were never asked for, if `fresh_at` is set.
    fresh_from: u64,
    /// When to ask for those.
    fresh_at: Timestamp,
    /// When to ask again for all that is missing.
    again_at: Timestamp,
    /// How often in a row that was in vain.
    attempts: u32,
}

impl ReceiveRing {
    /// `window` is a power of two.
    pub(super) fn new(window: usize, max_message: usize, next: u64) -> Self {
        assert!(window.is_power_of_two());
        Self {
            lengths: vec![0; window].into(),
            bytes: vec![0; window * max_message].into(),
            max_message,
            next,
            contiguous: next,
            known: next,
            gaps: Gaps::NONE,
        }
    }

    /// A new session: whatever was not handed out comes again.
    pub(super) fn start(&mut self) {
        self.lengths.fill(0);
        self.contiguous = self.next;
        self.known = self.next;
        self.gaps = Gaps::NONE;
    }

    /// The next number to hand out: all below are the owner's, and are what is acknowledged.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The first number not received.
    pub(super) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    #[cfg(test)]
    pub(super) const fn known(&self) -> u64 {
        self.known
    }

    /// Whether the ring has a place for all numbers below `end`.
    pub(super) fn has_place_below(&self, end: u64) -> bool {
        end <= self.next.saturating_add(self.lengths.len() as u64)
    }

    /// Takes in one message that the ring has a place for. `false`: it had come before.
    pub(super) fn insert(&mut self, number: u64, message: &[u8]) -> bool {
        let place = place(number, self.lengths.len());
        if number < self.contiguous || self.lengths[place] != 0 {
            return false;
        }
        let start = place * self.max_message;
        self.bytes[start..start + message.len()].copy_from_slice(message);
        self.lengths[place] = wire::low_16(message.len());
        if number == self.contiguous {
            self.advance();
        }
        true
    }

    /// Moves `contiguous` over all that is received.
    fn advance(&mut self) {
        let window = self.lengths.len();
        let end = self.next + window as u64;
        self.contiguous += 1;
        while self.contiguous < end && self.lengths[place(self.contiguous, window)] != 0 {
            self.contiguous += 1;
        }
        self.gaps.attempts = 0;
    }

    /// Copies the next message out, if it is there, and gives its number and length.
    pub(super) fn take(&mut self, out: &mut [u8]) -> Option<(u64, usize)> {
        if self.next == self.contiguous {
            return None;
        }
        let number = self.next;
        let place = place(number, self.lengths.len());
        let length = usize::from(core::mem::take(&mut self.lengths[place]));
        let start = place * self.max_message;
        out[..length].copy_from_slice(&self.bytes[start..start + length]);
        self.next += 1;
        Some((number, length))
    }

    /// A datagram has shown that the peer sent all below `end`; `first..end` came with it. What lies between it and all
    /// that was known is a gap, to be asked for at once or, where a network may reorder, after `allowance`.
    #[inline]
    pub(super) fn show(&mut self, first: u64, end: u64, now: Timestamp, allowance: Duration) {
        if first > self.known && self.gaps.fresh_at == NEVER {
            self.gaps.fresh_from = self.known;
            self.gaps.fresh_at = now + allowance;
        }
        self.known = self.known.max(end);
        if self.contiguous >= self.known {
            self.gaps = Gaps::NONE;
        }
    }

    /// When [`wanted`](Self::wanted) has something to ask for.
    pub(super) fn ask_at(&self) -> Timestamp {
        self.gaps.fresh_at.min(self.gaps.again_at)
    }

    /// What to ask for now: at most `span` numbers from the first missing one to the end of what is known.
    pub(super) fn wanted(&mut self, now: Timestamp, span: u64) -> Option<Range<u64>> {
        let from = if now >= self.gaps.fresh_at {
            self.gaps.fresh_from
        } else if now >= self.gaps.again_at {
            self.gaps.attempts += 1;
            self.contiguous
        } else {
            return None;
        };
        let missing = (from.max(self.contiguous)..self.known).find(|&number| self.is_missing(number));
        let Some(first) = missing else {
            // It came in the meantime.
            self.gaps.fresh_at = NEVER;
            return None;
        };
        Some(first..self.known.min(first + span))
    }

    /// How often in a row asking was in vain.
    pub(super) const fn attempts(&self) -> u32 {
        self.gaps.attempts
    }

    /// What [`wanted`](Self::wanted) gave has been asked for; ask again at `again_at`.
    pub(super) fn asked(&mut self, range: &Range<u64>, again_at: Timestamp) {
        self.gaps.again_at = again_at;
        if range.end < self.known {
            self.gaps.fresh_from = range.end;
            self.gaps.fresh_at = Timestamp::NONE;
        } else {
            self.gaps.fresh_at = NEVER;
        }
    }

    /// Whether a number of the ring has not been received.
    pub(super) fn is_missing(&self, number: u64) -> bool {
        number >= self.contiguous && self.lengths[place(number, self.lengths.len())] == 0
    }
}

impl Gaps {
    const NONE: Self = Self {
        fresh_from: 0,
        fresh_at: NEVER,
        again_at: NEVER,
        attempts: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);
    const SOON: Duration = Duration(100);

    /// A ring that has received these numbers, each in a datagram of its own.
    fn ring(numbers: &[u64]) -> ReceiveRing {
        let mut ring = ReceiveRing::new(8, 4, 1);
        for &number in numbers {
            assert!(ring.insert(number, b"abcd"));
            ring.show(number, number + 1, NOW, Duration(0));
        }
        ring
    }

    #[test]
    fn messages_are_handed_out_in_order_and_once() {
        let mut ring = ring(&[2, 1, 4]);
        let mut out = [0; 4];
        assert_eq!(ring.take(&mut out), Some((1, 4)));
        assert_eq!(ring.take(&mut out), Some((2, 4)));
        assert_eq!(ring.take(&mut out), None);
        for number in [1, 2, 4] {
            assert!(!ring.insert(number, b"abcd"));
        }
        assert_eq!((ring.next(), ring.contiguous()), (3, 3));
    }

    #[test]
    fn the_window_moves_with_what_is_handed_out() {
        let mut ring = ring(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(ring.has_place_below(9) && !ring.has_place_below(10));
        ring.take(&mut [0; 4]);
        assert!(ring.has_place_below(10));
        assert!(ring.insert(9, b"abcd"));
    }

    #[test]
    fn a_gap_is_wanted_at_once_and_again_until_it_is_closed() {
        let mut ring = ring(&[1, 4]);
        let range = ring.wanted(NOW, 64).unwrap();
        assert_eq!(range, 2..5);
        assert!(ring.is_missing(2) && ring.is_missing(3) && !ring.is_missing(4));
        ring.asked(&range, NOW + SOON);
        assert_eq!((ring.wanted(NOW, 64), ring.ask_at()), (None, NOW + SOON));
        assert_eq!(ring.wanted(NOW + SOON, 64), Some(2..5));
        assert_eq!(ring.attempts(), 1);
        for number in [2, 3] {
            ring.insert(number, b"abcd");
            ring.show(number, number + 1, NOW, Duration(0));
        }
        assert_eq!((ring.ask_at(), ring.attempts()), (NEVER, 0));
    }

    #[test]
    fn a_new_gap_does_not_ask_for_the_old_one_again() {
        let mut ring = ring(&[1, 3]);
        let range = ring.wanted(NOW, 64).unwrap();
        ring.asked(&range, NOW + SOON);
        ring.insert(6, b"abcd");
        ring.show(6, 7, NOW, Duration(0));
        assert_eq!(ring.wanted(NOW, 64), Some(4..7));
    }

    #[test]
    fn a_long_gap_is_asked_for_in_parts() {
        let mut ring = ring(&[1, 8]);
        let range = ring.wanted(NOW, 4).unwrap();
        assert_eq!(range, 2..6);
        ring.asked(&range, NOW + SOON);
        assert_eq!(ring.wanted(NOW, 4), Some(6..9));
    }

    #[test]
    fn a_gap_that_fills_within_the_allowance_is_not_asked_for() {
        let mut ring = ring(&[1]);
        ring.insert(3, b"abcd");
        ring.show(3, 4, NOW, SOON);
        assert_eq!(ring.ask_at(), NOW + SOON);
        ring.insert(2, b"abcd");
        ring.show(2, 3, NOW, SOON);
        assert_eq!(ring.ask_at(), NEVER);
    }

    #[test]
    fn a_new_session_forgets_what_was_not_handed_out() {
        let mut ring = ring(&[1, 2, 4]);
        ring.take(&mut [0; 4]);
        ring.start();
        assert_eq!((ring.next(), ring.contiguous(), ring.ask_at()), (2, 2, NEVER));
        assert!(ring.insert(4, b"abcd"));
    }
}
