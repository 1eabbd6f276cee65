//! What goes out: the ring, how far this connection has got in it, and the one system call that sends.
//!
//! A peer may want messages that it had acknowledged and lost with its machine. They go out of a second, small ring that the
//! owner fills from its journal, and leave that ring with the connection's bytes: what the connection loses, the peer asks
//! for again.

use super::ring::Ring;
use super::session::Role;
use crate::buffer::StreamBuffer;
use crate::link::{DownReason, LinkCounters};
use crate::tcp::TcpStream;
use proto::ltp::Refusal;
use std::io::{self, IoSlice};
use std::ops::Range;
use types::SequenceNumber;

/// Pieces sent in one system call, at most.
const PIECES_MAX: usize = 16;

/// Most messages that are brought back from the owner's journal ahead of what has left: a power of two.
const RECALLED_MAX: usize = 64;

/// Numbered messages on their way to the peer.
#[derive(Debug)]
pub(super) struct Outbox {
    role: Role,
    ring: Ring,
    /// Messages before those of the ring, brought back for this connection.
    recalled: Ring,
    /// The owner was asked for all of them below this number.
    asked: u64,
    /// The owner cannot bring back anything below it.
    gone_below: u64,
    /// The number below which the peer has all messages.
    acknowledged: u64,
    /// The number of the message that leaves next on this connection.
    sending: u64,
    /// Bytes of its packet that have left already.
    partial: usize,
    /// The highest number that may ever have reached the peer: it left on this connection, on an earlier one, or before
    /// a restart.
    sent: u64,
}

/// How far an outbox is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The number below which the peer has all messages.
    pub(super) acknowledged: u64,
    /// The number of the message that leaves next.
    pub(super) sending: u64,
    /// The number that the next message gets.
    pub(super) next: u64,
}

impl Outbox {
    pub(super) fn new(role: Role, window: usize, packet_max: usize, next: SequenceNumber) -> Self {
        Self {
            role,
            ring: Ring::new(window, packet_max, next),
            recalled: Ring::new(RECALLED_MAX, packet_max, next),
            asked: next.0,
            gone_below: 1,
            acknowledged: next.0,
            sending: next.0,
            partial: 0,
            sent: next.0 - 1,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) const fn memory(window: usize, packet_max: usize) -> usize {
        Ring::memory(window, packet_max) + Ring::memory(RECALLED_MAX, packet_max)
    }

    /// How far it is.
    pub(super) const fn standing(&self) -> Standing {
        Standing {
            acknowledged: self.acknowledged,
            sending: self.sending,
            next: self.ring.next(),
        }
    }

    pub(super) fn room(&self) -> usize {
        self.ring.room()
    }

    pub(super) fn push(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        let role = self.role;
        SequenceNumber(self.ring.push(position, |out| role.write_message(message, out)))
    }

    pub(super) fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        let role = self.role;
        self.ring.restore(sequence.0, |out| role.write_message(message, out));
    }

    /// A connection begins on which the peer wants `wanted` next. What is below, it has; it may have had more.
    pub(super) fn resume(&mut self, wanted: u64) -> Result<(), Refusal> {
        assert!(self.ring.is_whole(), "the messages restored end below the next number");
        if wanted < self.gone_below || wanted > self.sent + 1 {
            return Err(self.unresumable(wanted));
        }
        self.ring.release_below(wanted);
        self.recalled.restart(wanted);
        self.asked = wanted;
        self.acknowledged = wanted;
        self.sending = wanted;
        self.partial = 0;
        Ok(())
    }

    fn unresumable(&self, wanted: u64) -> Refusal {
        let next = SequenceNumber(self.sent + 1);
        let wanted = SequenceNumber(wanted);
        if wanted > next {
            return Refusal::NumbersAhead { wanted, next };
        }
        let oldest = SequenceNumber(self.ring.first());
        Refusal::MessagesGone { wanted, oldest }
    }

    /// Whether this connection still lacks messages from before the ring.
    pub(super) fn is_recalling(&self) -> bool {
        self.sending < self.ring.first()
    }

    /// What the owner is to bring back next: asked for once, when half of the ring for it is free, or the rest fits.
    pub(super) fn ask(&mut self) -> Option<Range<u64>> {
        let (next, end) = (self.recalled.next(), self.ring.first());
        if !self.is_recalling() || self.asked > next || next == end {
            return None;
        }
        let room = self.recalled.room();
        let last = end.min(next + room as u64);
        if last < end && room < RECALLED_MAX / 2 {
            return None;
        }
        self.asked = last;
        Some(next..last)
    }

    /// The owner has brought back a message. One that is not the next one asked for is of an earlier connection.
    pub(super) fn bring(&mut self, number: u64, message: &[u8]) {
        if self.is_awaited(number) {
            let role = self.role;
            self.recalled.push(0, |out| role.write_message(message, out));
        }
    }

    /// The owner cannot bring back a message. Gives why the connection ends, if it is the next one asked for.
    pub(super) fn miss(&mut self, number: u64) -> Option<Refusal> {
        self.is_awaited(number).then(|| {
            self.gone_below = number + 1;
            self.unresumable(self.acknowledged)
        })
    }

    fn is_awaited(&self, number: u64) -> bool {
        self.is_recalling() && number == self.recalled.next() && number < self.asked
    }

    /// The packet of a number from `sending` on, and the position that lets it leave. `None`: it is not brought back yet.
    fn packet(&self, number: u64) -> Option<(&[u8], u64)> {
        if number >= self.ring.first() {
            Some(self.ring.packet(number))
        } else {
            (number < self.recalled.next()).then(|| self.recalled.packet(number))
        }
    }

    /// The peer has received so many messages. Gives whether that is news.
    pub(super) fn on_ack(&mut self, count: u64) -> Result<bool, DownReason> {
        if count >= self.sending {
            return Err(DownReason::FalseAck);
        }
        let news = count >= self.acknowledged;
        self.acknowledged = self.acknowledged.max(count + 1);
        self.ring.release_below(count + 1);
        Ok(news)
    }

    /// Whether no packet has left in part: another one may follow.
    pub(super) const fn is_between_packets(&self) -> bool {
        self.partial == 0
    }

    /// Whether the peer has acknowledged everything that left on this connection.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acknowledged >= self.sending && self.partial == 0
    }

    /// Whether a message has left in part.
    #[cfg(test)]
    pub(super) const fn is_partial(&self) -> bool {
        self.partial > 0
    }

    /// Sends what the kernel takes: the rest of a message that left in part, then what the link itself says, then
    /// messages up to the watermark (none while there is no watermark). Gives how many messages have left whole.
    pub(super) fn transmit(
        &mut self,
        stream: &mut TcpStream,
        control: &mut StreamBuffer,
        watermark: Option<u64>,
        counters: &mut LinkCounters,
    ) -> io::Result<u64> {
        let before = self.sending;
        loop {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let (count, total) = self.gather(&mut pieces, control.bytes(), watermark);
            if total == 0 {
                break;
            }
            let sent = match pieces[..count] {
                [ref piece] => stream.send(piece)?,
                ref pieces => stream.send_vectored(pieces)?,
            };
            counters.bytes_sent += sent as u64;
            self.advance(sent, control, counters);
            if sent < total || count < PIECES_MAX {
                break;
            }
        }
        Ok(self.sending - before)
    }

    /// Collects what may leave, in its order. Gives the number of pieces and of bytes.
    fn gather<'a>(
        &'a self,
        pieces: &mut [IoSlice<'a>; PIECES_MAX],
        control: &'a [u8],
        watermark: Option<u64>,
    ) -> (usize, usize) {
        let (mut count, mut total) = (0, 0);
        let mut add = |bytes: &'a [u8]| {
            pieces[count] = IoSlice::new(bytes);
            total += bytes.len();
            count += 1;
            count < PIECES_MAX
        };
        let mut number = self.sending;
        if self.partial > 0
            && let Some((packet, _)) = self.packet(number)
        {
            add(&packet[self.partial..]);
            number += 1;
        }
        if !control.is_empty() {
            add(control);
        }
        let Some(watermark) = watermark else {
            return (count, total);
        };
        while number < self.ring.next()
            && let Some((packet, position)) = self.packet(number)
        {
            if position > watermark || !add(packet) {
                break;
            }
            number += 1;
        }
        (count, total)
    }

    /// Accounts for bytes that left, in the order of [`gather`](Self::gather).
    fn advance(&mut self, mut bytes: usize, control: &mut StreamBuffer, counters: &mut LinkCounters) {
        if self.partial > 0 {
            bytes = self.advance_message(bytes, counters);
        }
        let of_control = bytes.min(control.bytes().len());
        control.consume(of_control);
        bytes -= of_control;
        while bytes > 0 {
            bytes = self.advance_message(bytes, counters);
        }
    }

    /// Accounts for bytes of the message that leaves next; gives the bytes left over.
    fn advance_message(&mut self, bytes: usize, counters: &mut LinkCounters) -> usize {
        let length = self.packet(self.sending).map_or(0, |(packet, _)| packet.len());
        let missing = length - self.partial;
        if bytes < missing {
            self.partial += bytes;
            return 0;
        }
        if self.sending > self.sent {
            self.sent = self.sending;
            counters.sent += 1;
        } else {
            counters.retransmitted += 1;
        }
        self.sending += 1;
        self.partial = 0;
        if self.sending <= self.ring.first() {
            self.recalled.release_below(self.sending.min(self.recalled.next()));
        }
        bytes - missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_connection_asked_for_is_not_taken_for_something_else() {
        let mut outbox = Outbox::new(Role::Acceptor, 4, 16, SequenceNumber(10));
        assert_eq!(outbox.ask(), None);
        outbox.resume(5).unwrap();
        assert_eq!((outbox.ask(), outbox.ask()), (Some(5..10), None));
        outbox.resume(3).unwrap();
        assert_eq!(outbox.ask(), Some(3..10));
        outbox.bring(5, b"five");
        assert_eq!(outbox.miss(5), None);
        assert_eq!(outbox.packet(3), None);
        outbox.bring(3, b"three");
        assert!(outbox.packet(3).is_some_and(|(packet, _)| packet.ends_with(b"three")));
        assert!(outbox.miss(4).is_some());
    }
}
