//! What goes out, and when.

use super::Connection;
use super::peer::Peer;
use crate::ltp::NEVER;
use crate::ltp::config::Redundancy;
use crate::ltp::event::DownReason;
use crate::ltp::send::{Leave, Run};
use crate::ltp::wire::{self, Credits, FLAG_RETRANSMIT, Header, Kind, NAK_SPAN_MAX, NakStart, Status};
use types::{Duration, Timestamp};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{Immutable, IntoBytes};

impl Connection {
    /// Writes the next datagram to be sent into `out` and gives its length. Messages leave up to `watermark`.
    ///
    /// # Panics
    /// When `out` is shorter than the longest datagram.
    pub fn poll_transmit(&mut self, now: Timestamp, watermark: u64, out: &mut [u8]) -> Option<usize> {
        let time = self.advance(now);
        let out = &mut out[..self.config.max_datagram];
        if let Some(length) = self.poll_reply(out) {
            return Some(length);
        }
        if self.peer.as_ref().is_some_and(|peer| peer.silence >= peer.silence_max) {
            self.session.end(time);
            self.failed(DownReason::Silence);
        }
        let length = if self.peer.is_some() {
            self.poll_session(time, watermark, out)
        } else {
            let call = self.session.poll(time, self.standing(), out);
            call.map(|length| self.sign_handshake(out, length))
        };
        self.counters.datagrams_sent += u64::from(length.is_some());
        length
    }

    /// Writes the reply to the last datagram of the handshake into `out`, if there is one, and gives its length.
    /// [`poll_transmit`](Self::poll_transmit) gives it too; this is for an owner who has yet to learn its peer's address,
    /// and replies to wherever the datagram came from.
    #[inline]
    pub fn poll_reply(&mut self, out: &mut [u8]) -> Option<usize> {
        // Nearly always; each datagram asks.
        if !self.session.has_reply() {
            return None;
        }
        let length = self.session.poll_reply(self.standing(), out)?;
        self.counters.datagrams_sent += 1;
        Some(self.sign_handshake(out, length))
    }

    fn sign_handshake(&self, out: &mut [u8], length: usize) -> usize {
        match &self.authenticator {
            Some(authenticator) => authenticator.sign(0, out, length),
            None => length,
        }
    }

    /// When [`poll_transmit`](Self::poll_transmit) will have something to send, as far as is known now: before that, only
    /// a datagram, a message or a watermark can change it. `None`: never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let at = match &self.peer {
            None => self.session.next_at(self.elapsed.time),
            Some(peer) => self.next_timer(peer),
        };
        (at != NEVER).then(|| self.elapsed.last + at.since(self.elapsed.time))
    }

    fn next_timer(&self, peer: &Peer) -> Timestamp {
        if peer.probe || self.sending.has_marked() || self.session.has_reply() {
            return self.elapsed.time;
        }
        let timeout = self
            .sending
            .oldest_sent_at()
            .map_or(NEVER, |sent_at| sent_at + self.rtt.timeout());
        let silence_left = Duration(peer.silence_max.0.saturating_sub(peer.silence.0));
        (peer.news_at + self.config.heartbeat)
            .min(peer.ack_at)
            .min(peer.credits_at)
            .min(timeout)
            .min(self.receiving.ask_at())
            .min(self.elapsed.time + silence_left)
    }

    /// The next datagram of a session that is up. What repairs a gap goes before what is new: the peer can use nothing
    /// behind the gap.
    fn poll_session(&mut self, time: Timestamp, watermark: u64, out: &mut [u8]) -> Option<usize> {
        let header_length = self.config.header.length();
        let end = out.len() - self.config.trailer();
        let payload = &mut out[header_length..end];
        let run = self.poll_payload(time, watermark, payload)?;
        Some(self.finish(time, out, run))
    }

    fn poll_payload(&mut self, time: Timestamp, watermark: u64, payload: &mut [u8]) -> Option<Run> {
        if time >= self.receiving.ask_at()
            && let Some(run) = self.ask(time, payload)
        {
            return Some(run);
        }
        self.check_timeout(time);
        let leave = Leave {
            watermark: self.effective(watermark),
            peer_window: self.peer.as_ref()?.window,
            packing: self.config.packing,
            repeating: self.config.redundancy == Redundancy::Repeat,
        };
        if let Some(run) = self.sending.retransmit(time, leave, payload) {
            self.counters.retransmits += run.count as u64;
            return Some(run);
        }
        if let Some(run) = self.sending.transmit(time, leave, payload) {
            self.counters.messages_sent += (run.count - run.repeats) as u64;
            self.counters.repeats += run.repeats as u64;
            return Some(run);
        }
        self.poll_control(time, payload)
    }

    /// What leaves when there is no message that may: credits, and a sign of life.
    fn poll_control(&mut self, time: Timestamp, payload: &mut [u8]) -> Option<Run> {
        let number = self.sending.sent();
        let peer = self.peer.as_mut()?;
        if time >= peer.credits_at {
            // Loss does not matter, because it is said again.
            peer.credits_at = time + self.config.heartbeat;
            let credits = Credits {
                serial: U64::new(peer.next_serial()),
                slots: U32::new(self.credits.unwrap_or(0)),
                reserved: U32::ZERO,
            };
            return Some(control(Kind::Credits, number, payload, &credits));
        }
        let kind = if peer.probe || time >= peer.news_at + self.config.heartbeat {
            Kind::Heartbeat
        } else if time >= peer.ack_at {
            Kind::Ack
        } else {
            return None;
        };
        peer.probe = false;
        let status = Status {
            serial: U64::new(peer.next_serial()),
            durable: U64::new(self.durable),
            duplicates: U32::new(peer.duplicates),
            reserved: U32::ZERO,
        };
        Some(control(kind, number, payload, &status))
    }

    /// Writes a request for what is missing, if anything is.
    fn ask(&mut self, time: Timestamp, payload: &mut [u8]) -> Option<Run> {
        let range = self.receiving.wanted(time, NAK_SPAN_MAX as u64)?;
        let start = NakStart {
            serial: U64::new(self.peer.as_mut()?.next_serial()),
            first: U32::new(wire::low_32(range.start)),
            reserved: U32::ZERO,
        };
        let mut run = control(Kind::Nak, self.sending.sent(), payload, &start);
        let words = &mut payload[run.length..];
        for (first, out) in range.clone().step_by(64).zip(words.chunks_exact_mut(8)) {
            let word = (0..64)
                .take_while(|bit| first + bit < range.end)
                .filter(|bit| self.receiving.is_missing(first + bit))
                .fold(0, |word, bit| word | 1 << bit);
            out.copy_from_slice(U64::new(word).as_bytes());
            run.length += out.len();
        }
        let again_at = time + self.rtt.backed_off(self.receiving.attempts());
        self.receiving.asked(&range, again_at);
        self.counters.naks_sent += 1;
        Some(run)
    }

    /// Marks the oldest message for retransmission when it has waited too long for its acknowledgement. Of the rest the
    /// peer learns from the next number, and asks for what it lacks. A peer that only lost its core for some milliseconds
    /// lacks nothing: all that were transmitted again would be its work when it is back.
    fn check_timeout(&mut self, time: Timestamp) {
        let Some(sent_at) = self.sending.oldest_sent_at() else {
            return;
        };
        if time < sent_at + self.rtt.timeout() {
            return;
        }
        #[cfg(test)]
        if self.defect == crate::ltp::simulation::Defect::NoRepair {
            return;
        }
        self.counters.timeouts += 1;
        self.rtt.timed_out();
        let end = self.sending.mark_oldest();
        if let Some(peer) = &mut self.peer {
            peer.probe = end < self.sending.sent();
        }
    }

    /// Puts the header before the payload, and the tag behind it. Whatever leaves carries the acknowledgement.
    fn finish(&mut self, time: Timestamp, out: &mut [u8], run: Run) -> usize {
        let ack = self.ack();
        let form = self.config.header;
        let mut header = Header {
            tag: 0,
            sequence: wire::low_32(run.first),
            ack: wire::low_32(ack),
            kind: run.kind,
            flags: run.flags,
        };
        let Some(peer) = &mut self.peer else {
            return form.write(out, header, run.length);
        };
        header.tag = peer.send_tag;
        peer.ack_at = NEVER;
        peer.sent_at = time;
        // Neither what is transmitted again nor credits end this end's silence: the one may be nothing new to the peer,
        // and where there are credits, the rest of its state is to be told as often.
        if run.flags & FLAG_RETRANSMIT == 0 && run.kind != Kind::Credits {
            peer.news_at = time;
        }
        let length = form.write(out, header, run.length);
        match &peer.authenticator {
            Some(authenticator) => authenticator.sign(run.first, out, length),
            None => length,
        }
    }

    /// The number to acknowledge up to: what the owner has.
    fn ack(&self) -> u64 {
        #[cfg(test)]
        match self.defect {
            crate::ltp::simulation::Defect::AckSeen => return self.receiving.known(),
            crate::ltp::simulation::Defect::AckArrived => return self.receiving.contiguous(),
            _ => {}
        }
        self.receiving.next()
    }

    fn effective(&self, watermark: u64) -> u64 {
        #[cfg(test)]
        if self.defect == crate::ltp::simulation::Defect::NoGate {
            return u64::MAX;
        }
        watermark
    }
}

/// Writes a payload that is one struct. `number` is the next message's.
fn control<T: IntoBytes + Immutable>(kind: Kind, number: u64, payload: &mut [u8], content: &T) -> Run {
    let bytes = content.as_bytes();
    payload[..bytes.len()].copy_from_slice(bytes);
    Run {
        first: number,
        count: 0,
        repeats: 0,
        kind,
        flags: 0,
        length: bytes.len(),
    }
}
