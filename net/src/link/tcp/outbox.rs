//! What goes out: the ring, how far this connection has got in it, and the one system call that sends.

use super::ring::Ring;
use super::session::Role;
use crate::buffer::StreamBuffer;
use crate::link::{DownReason, LinkCounters};
use crate::tcp::TcpStream;
use std::io::{self, IoSlice};
use types::SequenceNumber;

/// Pieces sent in one system call, at most.
const PIECES_MAX: usize = 16;

/// Numbered messages on their way to the peer.
#[derive(Debug)]
pub(super) struct Outbox {
    role: Role,
    ring: Ring,
    /// The number of the message that leaves next on this connection.
    sending: u64,
    /// Bytes of its packet that have left already.
    partial: usize,
    /// The highest number that may ever have reached the peer: it left on this connection, on an earlier one, or before
    /// a restart.
    sent: u64,
}

impl Outbox {
    pub(super) fn new(role: Role, window: usize, packet_max: usize, next: SequenceNumber) -> Self {
        Self {
            role,
            ring: Ring::new(window, packet_max, next),
            sending: next.0,
            partial: 0,
            sent: next.0 - 1,
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

    /// A connection begins on which the peer wants `wanted` next. What is below, it has.
    pub(super) fn resume(&mut self, wanted: u64) -> Result<(), DownReason> {
        assert!(self.ring.is_whole(), "the messages restored end below the next number");
        if wanted < self.ring.first() || wanted > self.sent + 1 {
            let oldest = SequenceNumber(self.ring.first());
            return Err(DownReason::Unresumable {
                wanted: SequenceNumber(wanted),
                oldest,
            });
        }
        self.ring.release_below(wanted);
        self.sending = wanted;
        self.partial = 0;
        Ok(())
    }

    /// The peer has received so many messages. Gives whether that is news.
    pub(super) fn on_ack(&mut self, count: u64) -> Result<bool, DownReason> {
        if count >= self.sending {
            return Err(DownReason::FalseAck);
        }
        let news = count >= self.ring.first();
        self.ring.release_below(count + 1);
        Ok(news)
    }

    /// Whether the peer has acknowledged everything that left on this connection.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.ring.first() >= self.sending && self.partial == 0
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
        if self.partial > 0 {
            add(&self.ring.packet(number).0[self.partial..]);
            number += 1;
        }
        if !control.is_empty() {
            add(control);
        }
        let Some(watermark) = watermark else {
            return (count, total);
        };
        while number < self.ring.next() {
            let (packet, position) = self.ring.packet(number);
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
        let missing = self.ring.packet(self.sending).0.len() - self.partial;
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
        bytes - missing
    }
}
