//! The ring of messages that the peer has not acknowledged, keyed by sequence number.
//!
//! ```text
//!            base            sent            next
//!   freed  ... | in flight .... | queued ...... | free
//! ```

use super::wire::{self, FLAG_RETRANSMIT, Kind, PACKED_PREFIX_LENGTH};
use alloc::boxed::Box;
use alloc::vec;
use types::{Duration, Timestamp};

/// See the file's head.
#[derive(Debug)]
pub(super) struct SendRing {
    slots: Box<[Slot]>,
    bytes: Box<[u8]>,
    max_message: usize,
    /// The oldest message held.
    base: u64,
    /// The next that was never transmitted.
    sent: u64,
    /// The number of the next message from the owner.
    next: u64,
    /// What that was at the start.
    start: u64,
    /// Of the messages put back, the next.
    restored: u64,
    /// Messages marked for retransmission.
    marked: usize,
    /// No message below this one is marked.
    marked_from: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    /// The message's place in the owner's journal.
    position: u64,
    /// When it was last transmitted.
    sent_at: Timestamp,
    length: u16,
    /// Or perhaps: an earlier incarnation may have done so.
    transmitted_twice: bool,
    /// To be transmitted again.
    marked: bool,
}

/// What goes into one datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) count: usize,
    /// How many of them are only repeated: they come first.
    pub(super) repeats: usize,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    /// Bytes of payload.
    pub(super) length: usize,
}

/// What lets a message leave, and with whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// Of the owner's journal.
    pub(super) watermark: u64,
    /// Messages in flight that the peer has room for.
    pub(super) peer_window: u64,
    /// Whether those that are queued already go along.
    pub(super) packing: bool,
    /// Whether those in flight are repeated.
    pub(super) repeating: bool,
}

/// Messages for one datagram, packed.
#[derive(Clone, Copy, Debug)]
struct Plan {
    first: u64,
    end: u64,
    length: usize,
}

/// What an acknowledgement freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Acknowledged {
    Nothing,
    /// The newest of the freed messages was transmitted then, and all of them once: a round trip can be measured.
    SentAt(Timestamp),
    /// One of them was transmitted twice: its acknowledgement may be that of either copy.
    Ambiguous,
}

impl SendRing {
    /// `window` is a power of two.
    pub(super) fn new(window: usize, max_message: usize, next: u64) -> Self {
        assert!(window.is_power_of_two());
        Self {
            slots: vec![Slot::default(); window].into(),
            bytes: vec![0; window * max_message].into(),
            max_message,
            base: next,
            sent: next,
            next,
            start: next,
            restored: next,
            marked: 0,
            marked_from: next,
        }
    }

    /// Holds nothing, and goes on at `next`.
    pub(super) fn restart(&mut self, next: u64) {
        self.base = next;
        self.sent = next;
        self.next = next;
        self.start = next;
        self.restored = next;
        self.marked = 0;
        self.marked_from = next;
    }

    pub(super) const fn capacity(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn room(&self) -> usize {
        self.slots.len() - distance(self.base, self.next)
    }

    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// The next number that was never transmitted.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn push(&mut self, message: &[u8], position: u64) -> u64 {
        assert!(self.room() > 0, "the owner reserves room before it decides");
        let number = self.next;
        self.put(number, message, position);
        self.next += 1;
        number
    }

    fn put(&mut self, number: u64, message: &[u8], position: u64) {
        assert!(!message.is_empty() && message.len() <= self.max_message);
        let start = self.start_of(number);
        self.bytes[start..start + message.len()].copy_from_slice(message);
        *self.slot_mut(number) = Slot {
            position,
            length: wire::low_16(message.len()),
            ..Slot::default()
        };
    }

    /// Puts back a message of an earlier incarnation. The peer may have it, so it counts as transmitted. A full ring
    /// drops its oldest.
    pub(super) fn restore(&mut self, number: u64, message: &[u8]) {
        if self.base == self.next {
            (self.base, self.restored) = (number, number);
        }
        assert!(
            number == self.restored && number < self.next,
            "message {number} restored, expected {}, the next to be sent is {}",
            self.restored,
            self.next
        );
        self.restored += 1;
        if distance(self.base, self.restored) > self.slots.len() {
            self.base += 1;
        }
        self.put(number, message, 0);
        self.slot_mut(number).transmitted_twice = true;
    }

    /// Whether nothing is missing between the messages restored and the first new one.
    pub(super) const fn is_whole(&self) -> bool {
        self.restored == self.start
    }

    /// Frees all below `ack`, which lies between base and sent.
    pub(super) fn acknowledge(&mut self, ack: u64) -> Acknowledged {
        if ack <= self.base {
            return Acknowledged::Nothing;
        }
        let mut ambiguous = false;
        for number in self.base..ack {
            let slot = self.slot_mut(number);
            ambiguous |= slot.transmitted_twice;
            if slot.marked {
                slot.marked = false;
                self.marked -= 1;
            }
        }
        self.base = ack;
        if ambiguous {
            Acknowledged::Ambiguous
        } else {
            Acknowledged::SentAt(self.slot(ack - 1).sent_at)
        }
    }

    /// Whether something is to be transmitted again.
    pub(super) const fn has_marked(&self) -> bool {
        self.marked > 0
    }

    /// When the oldest message in flight was last transmitted; `None` when there is none, or it is about to be again.
    pub(super) fn oldest_sent_at(&self) -> Option<Timestamp> {
        let oldest = self.slot(self.base);
        (self.base < self.sent && !oldest.marked).then_some(oldest.sent_at)
    }

    /// Marks a message that the peer asked for, unless it is not in flight, or was transmitted again less than
    /// `once_in` ago: then the peer cannot know yet, and a flood of requests draws few copies.
    pub(super) fn mark_wanted(&mut self, number: u64, now: Timestamp, once_in: Duration) {
        if number < self.base || number >= self.sent {
            return;
        }
        let slot = self.slot(number);
        if !slot.transmitted_twice || now.since(slot.sent_at) >= once_in {
            self.mark(number);
        }
    }

    /// Marks all in flight: a new session begins, and nothing of the old one counts.
    pub(super) fn mark_all(&mut self) {
        for number in self.base..self.sent {
            self.mark(number);
        }
    }

    /// Marks the oldest message in flight, if there is one, and gives the number behind it.
    pub(super) fn mark_oldest(&mut self) -> u64 {
        if self.base == self.sent {
            return self.base;
        }
        self.mark(self.base);
        self.base + 1
    }

    fn mark(&mut self, number: u64) {
        let slot = self.slot_mut(number);
        if !slot.marked {
            slot.marked = true;
            self.marked_from = if self.marked == 0 {
                number
            } else {
                self.marked_from.min(number)
            };
            self.marked += 1;
        }
    }

    /// Writes the next retransmission as a payload, if one is due.
    pub(super) fn retransmit(&mut self, now: Timestamp, packing: bool, payload: &mut [u8]) -> Option<Run> {
        if self.marked == 0 {
            return None;
        }
        let mut first = self.marked_from.max(self.base);
        while !self.slot(first).marked {
            first += 1;
        }
        let end = self.sent;
        let plan = self.plan(first, packing, payload.len(), |number, slot| {
            number < end && slot.marked
        });
        for number in first..plan.end {
            let slot = self.slot_mut(number);
            slot.marked = false;
            slot.transmitted_twice = true;
            slot.sent_at = now;
        }
        let run = self.write(&plan, first, payload);
        self.marked -= run.count;
        self.marked_from = plan.end;
        Some(Run {
            flags: FLAG_RETRANSMIT,
            ..run
        })
    }

    /// Writes the next first transmission as a payload, if there is one that the watermark and the peer's window let go.
    pub(super) fn transmit(&mut self, now: Timestamp, leave: Leave, payload: &mut [u8]) -> Option<Run> {
        let first = self.sent;
        let end = self.next.min(self.base.saturating_add(leave.peer_window));
        if first >= end || self.slot(first).position > leave.watermark {
            return None;
        }
        let mut plan = self.plan(first, leave.packing, payload.len(), |number, slot| {
            number < end && slot.position <= leave.watermark
        });
        if leave.repeating && first > self.base {
            self.repeat(&mut plan, payload.len());
        }
        for number in first..plan.end {
            self.slot_mut(number).sent_at = now;
        }
        self.sent = plan.end;
        Some(self.write(&plan, first, payload))
    }

    /// A message, and those behind it that may go along and fit into `space`.
    fn plan(&self, first: u64, packing: bool, space: usize, goes: impl Fn(u64, &Slot) -> bool) -> Plan {
        let mut length = self.packed_length(first);
        let mut end = first + 1;
        if packing {
            // Not more than a whole ring: its places come round again.
            let last = first + self.slots.len() as u64;
            while end < last && goes(end, self.slot(end)) && length + self.packed_length(end) <= space {
                length += self.packed_length(end);
                end += 1;
            }
        }
        Plan { first, end, length }
    }

    /// Puts the newest messages in flight before those of a plan, as far as they fit.
    fn repeat(&self, plan: &mut Plan, space: usize) {
        let oldest = self.base.max(plan.first.saturating_sub(REPEATS_MAX));
        while plan.first > oldest && plan.length + self.packed_length(plan.first - 1) <= space {
            plan.first -= 1;
            plan.length += self.packed_length(plan.first);
        }
    }

    fn write(&self, plan: &Plan, new_from: u64, payload: &mut [u8]) -> Run {
        let Plan { first, end, length } = *plan;
        let run = Run {
            first,
            count: distance(first, end),
            repeats: distance(first, new_from),
            kind: Kind::Packed,
            flags: 0,
            length,
        };
        if run.count == 1 {
            let message = self.message(first);
            payload[..message.len()].copy_from_slice(message);
            return Run {
                kind: Kind::Data,
                length: message.len(),
                ..run
            };
        }
        let mut at = 0;
        for number in first..end {
            let message = self.message(number);
            let (prefix, rest) = payload[at..].split_at_mut(PACKED_PREFIX_LENGTH);
            prefix.copy_from_slice(&wire::low_16(message.len()).to_le_bytes());
            rest[..message.len()].copy_from_slice(message);
            at += PACKED_PREFIX_LENGTH + message.len();
        }
        run
    }

    fn packed_length(&self, number: u64) -> usize {
        PACKED_PREFIX_LENGTH + usize::from(self.slot(number).length)
    }

    fn message(&self, number: u64) -> &[u8] {
        let start = self.start_of(number);
        &self.bytes[start..start + usize::from(self.slot(number).length)]
    }

    fn start_of(&self, number: u64) -> usize {
        place(number, self.slots.len()) * self.max_message
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[place(number, self.slots.len())]
    }

    fn slot_mut(&mut self, number: u64) -> &mut Slot {
        &mut self.slots[place(number, self.slots.len())]
    }
}

/// Most messages in flight that are repeated before new ones. A burst that takes more datagrams in a row than these came
/// in is repaired as usual.
const REPEATS_MAX: u64 = 8;

/// Where a number lives in a ring of `capacity`, a power of two.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the low bits are the place; a pointer's width holds any capacity"
)]
pub(super) const fn place(number: u64, capacity: usize) -> usize {
    number as usize & (capacity - 1)
}

/// How many numbers lie from `from` up to `to`; both are of one ring, so it is no more than its capacity.
#[allow(clippy::cast_possible_truncation, reason = "bounded by a ring's capacity, a usize")]
pub(super) const fn distance(from: u64, to: u64) -> usize {
    (to - from) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    fn ring(next: u64) -> SendRing {
        SendRing::new(4, 8, next)
    }

    fn leave(watermark: u64, peer_window: u64) -> Leave {
        Leave {
            watermark,
            peer_window,
            packing: true,
            repeating: false,
        }
    }

    fn transmit(ring: &mut SendRing, watermark: u64, window: u64) -> Option<(u64, usize)> {
        ring.transmit(NOW, leave(watermark, window), &mut [0; 48])
            .map(|run| (run.first, run.count))
    }

    #[test]
    fn a_message_leaves_only_when_the_watermark_has_reached_it() {
        let mut ring = ring(1);
        ring.push(b"a", 10);
        ring.push(b"b", 20);
        assert_eq!(transmit(&mut ring, 9, 4), None);
        assert_eq!(transmit(&mut ring, 10, 4), Some((1, 1)));
        assert_eq!(transmit(&mut ring, 19, 4), None);
        assert_eq!(transmit(&mut ring, 20, 4), Some((2, 1)));
    }

    #[test]
    fn what_is_queued_is_packed_until_the_datagram_or_the_peers_window_is_full() {
        let mut ring = ring(1);
        for _ in 0..4 {
            ring.push(b"12345678", 0);
        }
        assert_eq!(ring.transmit(NOW, leave(0, 4), &mut [0; 25]).unwrap().count, 2);
        assert_eq!(transmit(&mut ring, 0, 3), Some((3, 1)));
        assert_eq!(transmit(&mut ring, 0, 3), None);
        assert_eq!(transmit(&mut ring, 0, 4), Some((4, 1)));
    }

    #[test]
    fn marked_messages_go_in_runs_without_what_was_not_asked_for() {
        let mut ring = ring(1);
        for _ in 0..4 {
            ring.push(b"x", 0);
        }
        transmit(&mut ring, 0, 4);
        for number in [4, 1, 2, 9] {
            ring.mark_wanted(number, NOW, Duration(0));
        }
        let mut out = [0; 64];
        let run = |run: Run| (run.first, run.count, run.flags);
        assert_eq!(ring.retransmit(NOW, true, &mut out).map(run), Some((1, 2, 1)));
        assert_eq!(ring.retransmit(NOW, true, &mut out).map(run), Some((4, 1, 1)));
        assert!(ring.retransmit(NOW, true, &mut out).is_none());
    }

    #[test]
    fn what_was_just_transmitted_again_is_not_transmitted_once_more_on_request() {
        let mut ring = ring(1);
        ring.push(b"x", 0);
        transmit(&mut ring, 0, 4);
        ring.mark_wanted(1, NOW, Duration(5));
        assert!(ring.retransmit(NOW, true, &mut [0; 64]).is_some());
        ring.mark_wanted(1, Timestamp(1_004), Duration(5));
        assert!(ring.retransmit(NOW, true, &mut [0; 64]).is_none());
        ring.mark_wanted(1, Timestamp(1_005), Duration(5));
        assert!(ring.retransmit(NOW, true, &mut [0; 64]).is_some());
    }

    #[test]
    fn only_messages_transmitted_once_give_a_round_trip() {
        let mut ring = ring(1);
        ring.push(b"x", 0);
        ring.push(b"y", 0);
        transmit(&mut ring, 0, 4);
        ring.mark_wanted(2, NOW, Duration(0));
        ring.retransmit(NOW, true, &mut [0; 64]);
        assert_eq!(ring.acknowledge(2), Acknowledged::SentAt(NOW));
        assert_eq!(ring.acknowledge(2), Acknowledged::Nothing);
        assert_eq!(ring.acknowledge(3), Acknowledged::Ambiguous);
        assert_eq!(ring.room(), 4);
    }

    #[test]
    fn messages_in_flight_are_repeated_before_new_ones_as_far_as_they_fit() {
        let mut ring = ring(1);
        let repeating = Leave {
            repeating: true,
            ..leave(0, 4)
        };
        let mut transmit = |message: &[u8], space: usize| {
            ring.push(message, 0);
            let run = ring.transmit(NOW, repeating, &mut [0; 48][..space]).unwrap();
            (run.first, run.count, run.repeats)
        };
        assert_eq!(transmit(b"a", 48), (1, 1, 0));
        assert_eq!(transmit(b"b", 48), (1, 2, 1));
        assert_eq!(transmit(b"c", 8), (2, 2, 1));
        assert_eq!(transmit(b"d", 3), (4, 1, 0));
        ring.acknowledge(5);
        ring.push(b"e", 0);
        let run = ring.transmit(NOW, repeating, &mut [0; 48]).unwrap();
        assert_eq!((run.first, run.count, run.repeats), (5, 1, 0));
    }

    #[test]
    fn an_acknowledged_message_is_not_retransmitted() {
        let mut ring = ring(1);
        for _ in 0..3 {
            ring.push(b"x", 0);
        }
        transmit(&mut ring, 0, 4);
        ring.mark_all();
        ring.acknowledge(3);
        assert_eq!(ring.retransmit(NOW, true, &mut [0; 64]).map(|run| run.first), Some(3));
        assert!(ring.retransmit(NOW, true, &mut [0; 64]).is_none());
    }

    #[test]
    fn a_restored_ring_holds_the_newest_and_goes_on_counting() {
        let mut ring = ring(100);
        assert!(ring.is_whole());
        for number in 90..100 {
            ring.restore(number, b"old");
            assert_eq!(ring.is_whole(), number == 99);
        }
        assert_eq!((ring.base(), ring.sent(), ring.next(), ring.room()), (96, 100, 100, 0));
        ring.acknowledge(98);
        assert_eq!(ring.push(b"new", 0), 100);
        ring.mark_all();
        assert_eq!(
            ring.retransmit(NOW, true, &mut [0; 64])
                .map(|run| (run.first, run.count)),
            Some((98, 2))
        );
    }

    #[test]
    #[should_panic(expected = "message 98 restored, expected 97")]
    fn a_gap_among_restored_messages_is_a_mistake_of_the_owner() {
        let mut ring = ring(100);
        ring.restore(96, b"old");
        ring.restore(98, b"old");
    }
}
