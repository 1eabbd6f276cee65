//! What is for the peer: the ring of messages that it has not acknowledged, and before it, for a peer that has lost
//! acknowledged messages with its machine, a few of those that the owner brings back from its journal.
//!
//! ```text
//! wanted ......... sent ........... next brought back ..... asked ......... base ............. next
//! peer has not yet | to be sent     | to be brought back | to be asked for | kept, not acknowledged
//! ```
//!
//! Without a recall `base` is `wanted`. Messages leave in the order of their numbers, from either ring. Their bytes are in
//! the arena.

use super::ring::{RECALLED_MAX, place};
use crate::link::DownReason;
use std::ops::Range;
use types::SequenceNumber;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Outgoing {
    kept: Box<[Slot]>,
    recalled: Box<[usize]>,
    /// Most messages kept.
    window: u64,
    /// The oldest kept; `next` when none is.
    base: u64,
    /// The next of the owner's.
    next: u64,
    /// The next that was never sent, in any session.
    pub(super) never_sent: u64,
    /// The first that was numbered after the start.
    start: u64,
    /// The number that the next restored message must have.
    restoring: Option<u64>,
    /// The owner cannot bring back anything below it.
    pub(super) gone_below: u64,
    /// What the peer wants next, in this session.
    wanted: u64,
    /// The next to be sent in this session.
    sent: u64,
    /// The next to be brought back.
    next_recalled: u64,
    /// The owner was asked for all below it.
    asked: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    length: usize,
    position: u64,
}

/// A message that may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sendable {
    pub(super) number: u64,
    pub(super) length: usize,
    /// It was brought back.
    pub(super) is_recalled: bool,
}

impl Outgoing {
    pub(super) fn new(window: usize, next: u64) -> Self {
        Self {
            kept: vec![Slot::default(); window.next_power_of_two()].into(),
            recalled: vec![0; RECALLED_MAX].into(),
            window: window as u64,
            base: next,
            next,
            never_sent: next,
            start: next,
            restoring: None,
            gone_below: 1,
            wanted: next,
            sent: next,
            next_recalled: next,
            asked: next,
        }
    }

    /// Bytes that it allocates.
    pub(super) const fn memory(slots: usize) -> usize {
        slots * size_of::<Slot>() + RECALLED_MAX * size_of::<usize>()
    }

    /// The number of the next message, of the next to be sent, and of the one that the peer wants next.
    pub(super) const fn standing(&self) -> [u64; 3] {
        [self.next, self.sent, self.wanted]
    }

    /// Messages that it still takes.
    pub(super) fn room(&self) -> usize {
        usize::try_from(self.window - (self.next - self.base)).expect("no more than the ring holds")
    }

    /// Takes up the owner's next message and gives its number.
    pub(super) fn push(&mut self, length: usize, position: u64) -> u64 {
        assert!(self.room() > 0, "the ring is full; the owner looks at room() first");
        let number = self.next;
        self.kept[place(number, self.kept.len())] = Slot { length, position };
        self.next += 1;
        number
    }

    /// Takes up a message of before a restart.
    pub(super) fn restore(&mut self, number: u64, length: usize) {
        let expected = self.restoring.unwrap_or(number);
        assert!(
            number == expected && number < self.start && self.next - number <= self.window,
            "restored message {number}: expected {expected}, next is {}, window is {}",
            self.start,
            self.window
        );
        if self.restoring.is_none() {
            self.base = number;
        }
        self.restoring = Some(number + 1);
        self.kept[place(number, self.kept.len())] = Slot { length, position: 0 };
    }

    /// Whether nothing is missing between the restored messages and the first new one.
    pub(super) fn is_whole(&self) -> bool {
        self.restoring.is_none_or(|expected| expected == self.start)
    }

    /// A session begins on which the peer wants this one next; it lies between `gone_below` and `never_sent`.
    pub(super) fn resume(&mut self, wanted: u64) {
        self.base = self.base.max(wanted);
        (self.wanted, self.sent) = (wanted, wanted);
        (self.next_recalled, self.asked) = (wanted, wanted);
    }

    /// The peer wants this one next. `false`: the one before it was never sent in this session.
    pub(super) fn acknowledge(&mut self, wanted: u64) -> bool {
        let is_sent = wanted <= self.sent;
        if is_sent && wanted > self.wanted {
            self.wanted = wanted;
            self.base = self.base.max(wanted);
        }
        is_sent
    }

    /// The next that may leave, if the peer's ring of so many slots has a place for it.
    pub(super) fn sendable(&self, watermark: u64, peer_slots: usize) -> Option<Sendable> {
        let number = self.sent;
        if number - self.wanted >= peer_slots as u64 {
            return None;
        }
        if number < self.base {
            let length = self.recalled[place(number, RECALLED_MAX)];
            return (number < self.next_recalled).then_some(Sendable {
                number,
                length,
                is_recalled: true,
            });
        }
        let Slot { length, position } = self.kept[place(number, self.kept.len())];
        (number < self.next && position <= watermark).then_some(Sendable {
            number,
            length,
            is_recalled: false,
        })
    }

    /// It left. Gives whether it had left before.
    pub(super) fn on_sent(&mut self) -> bool {
        let again = self.sent < self.never_sent;
        self.sent += 1;
        self.never_sent = self.never_sent.max(self.sent);
        again
    }

    /// Whether the session still lacks messages from before the ring.
    pub(super) const fn is_recalling(&self) -> bool {
        self.sent < self.base
    }

    /// What the owner is to bring back next: asked for once, when half of the places for it are free, or the rest fits.
    pub(super) fn ask(&mut self) -> Option<Range<u64>> {
        let (next, end) = (self.next_recalled, self.base);
        if !self.is_recalling() || self.asked > next || next == end {
            return None;
        }
        let room = RECALLED_MAX as u64 - (next - self.wanted);
        let last = end.min(next + room);
        if last < end && room < RECALLED_MAX as u64 / 2 {
            return None;
        }
        self.asked = last;
        Some(next..last)
    }

    /// The owner has brought back a message. `false`: it is not the next one asked for, but of an earlier session.
    pub(super) fn bring(&mut self, number: u64, length: usize) -> bool {
        let is_awaited = self.is_awaited(number);
        if is_awaited {
            self.recalled[place(number, RECALLED_MAX)] = length;
            self.next_recalled += 1;
        }
        is_awaited
    }

    /// The owner cannot bring back a message. Gives why the session ends, if it is the next one asked for.
    pub(super) fn miss(&mut self, number: u64) -> Option<DownReason> {
        self.is_awaited(number).then(|| {
            self.gone_below = number + 1;
            DownReason::Unresumable {
                wanted: SequenceNumber(self.wanted),
                oldest: SequenceNumber(self.gone_below),
                next: SequenceNumber(self.never_sent),
            }
        })
    }

    const fn is_awaited(&self, number: u64) -> bool {
        self.is_recalling() && number == self.next_recalled && number < self.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_session_asked_for_is_not_taken_for_something_else() {
        let mut outgoing = Outgoing::new(4, 10);
        assert_eq!(outgoing.ask(), None);
        outgoing.resume(5);
        assert_eq!((outgoing.ask(), outgoing.ask()), (Some(5..10), None));
        outgoing.resume(3);
        assert_eq!(outgoing.ask(), Some(3..10));
        assert!(!outgoing.bring(5, 7));
        assert_eq!(outgoing.miss(5), None);
        assert_eq!(outgoing.sendable(0, 4), None);
        assert!(outgoing.bring(3, 7));
        let sendable = Sendable {
            number: 3,
            length: 7,
            is_recalled: true,
        };
        assert_eq!(outgoing.sendable(0, 4), Some(sendable));
        assert!(outgoing.miss(4).is_some());
        assert_eq!(outgoing.gone_below, 5);
    }

    #[test]
    fn a_place_is_used_again_once_the_peer_has_what_was_in_it() {
        let mut outgoing = Outgoing::new(4, 200);
        outgoing.resume(1);
        assert_eq!(outgoing.ask(), Some(1..65));
        for number in 1..65 {
            assert!(outgoing.bring(number, 1));
            assert!(outgoing.sendable(0, 1_024).is_some() && outgoing.on_sent());
        }
        assert!(outgoing.acknowledge(20) && !outgoing.acknowledge(66));
        assert_eq!(outgoing.ask(), None);
        assert!(outgoing.acknowledge(33));
        assert_eq!(outgoing.ask(), Some(65..97));
        assert_eq!(outgoing.room(), 4);
    }

    #[test]
    #[should_panic(expected = "restored message 99: expected 98")]
    fn a_gap_among_restored_messages_is_refused() {
        let mut outgoing = Outgoing::new(4, 100);
        outgoing.restore(97, 1);
        outgoing.restore(99, 1);
    }
}
