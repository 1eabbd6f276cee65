//! What comes in.
//!
//! The cheapest check is the first: whoever knows nothing of the session is turned away by its tag, whoever cannot
//! authenticate before anything is decoded, and what came before changes nothing.

use super::Connection;
use super::peer::Peer;
use crate::ltp::auth::Authenticator;
use crate::ltp::config::Role;
use crate::ltp::event::{DownReason, Received};
use crate::ltp::refusal::Refusal;
use crate::ltp::send::Acknowledged;
use crate::ltp::session::Outcome;
use crate::ltp::wire::{self, Body, Credits, FLAG_RETRANSMIT, Header, Malformed, Nak, Status};
use types::{Duration, SequenceNumber, Timestamp};

#[cfg(test)]
use crate::ltp::simulation::Defect;

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    Malformed,
    Foreign,
    Forged,
    FalseAck,
    BeyondWindow,
    StaleHandshake,
}

impl Connection {
    /// Takes in one datagram. What is wrong with a bad one is counted, and nothing else happens.
    pub fn on_datagram(&mut self, now: Timestamp, datagram: &[u8]) -> Received {
        let time = self.advance(now);
        self.counters.datagrams_received += 1;
        let taken = if wire::is_handshake(datagram) {
            self.on_handshake(time, datagram)
        } else {
            self.on_session(time, datagram)
        };
        taken.unwrap_or_else(|dropped| {
            self.count(dropped);
            Received::Dropped
        })
    }

    fn on_handshake(&mut self, time: Timestamp, datagram: &[u8]) -> Result<Received, Dropped> {
        let (step, is_tagged) = wire::decode_handshake(datagram)?;
        let is_authentic = match &self.authenticator {
            Some(authenticator) => is_tagged && self.is_authentic(authenticator, 0, datagram),
            None => !is_tagged,
        };
        if !is_authentic && !self.session.is_about_keys(&step) {
            return Err(Dropped::Forged);
        }
        #[cfg(test)]
        if self.defect == Defect::AnyEpoch {
            self.session.forget_epoch();
        }
        match self.session.on_step(time, step, self.standing()) {
            Outcome::Stale => return Err(Dropped::StaleHandshake),
            Outcome::Step => {}
            Outcome::Up(establish) => {
                if self.peer.is_some() {
                    self.end(DownReason::Superseded);
                }
                self.begin(time, &establish);
                return Ok(Received::Established);
            }
            Outcome::Refused(refusal) => {
                self.note_refused(refusal);
                if self.peer.is_none() {
                    self.failed(DownReason::Refused(refusal));
                }
            }
            Outcome::RefusedByPeer(refusal) => {
                self.counters.refused_by_peer += 1;
                self.failed(DownReason::RefusedByPeer(refusal));
            }
        }
        Ok(Received::Handshake)
    }

    fn on_session(&mut self, time: Timestamp, datagram: &[u8]) -> Result<Received, Dropped> {
        let (header, payload, first) = self.open(datagram)?;
        let ack = self.plausible_ack(header.ack).ok_or(Dropped::FalseAck)?;
        let body = Body::read(header.kind, payload, self.config.max_message)?;
        self.confirm();
        if self.config.takes_single && matches!(body, Body::Packed(_)) {
            return Ok(self.refuse_packed(time));
        }
        let end = first.saturating_add(body.message_count() as u64);
        if !self.receiving.has_place_below(end) {
            return Err(Dropped::BeyondWindow);
        }
        if let Some(serial) = body.serial()
            && !self.is_first(serial)
        {
            self.counters.replayed += 1;
            return Ok(Received::Session);
        }
        let mut is_news = self.on_ack(time, ack);
        match body {
            Body::Data(message) => is_news |= self.on_message(time, header.flags, first, message),
            Body::Packed(messages) => {
                for (number, message) in (first..end).zip(messages) {
                    is_news |= self.on_message(time, header.flags, number, message);
                }
            }
            Body::Nak(nak) => is_news |= self.on_nak(time, nak),
            Body::Ack(status) | Body::Heartbeat(status) => is_news |= self.on_status(status),
            Body::Credits(credits) => is_news |= self.on_credits(credits),
        }
        if is_news && let Some(peer) = &mut self.peer {
            peer.silence = Duration(0);
        }
        self.receiving.show(first, end, time, self.config.reorder_allowance);
        Ok(Received::Session)
    }

    /// Checks that a datagram is of this session, and gives its parts and the whole number that its header has part of.
    #[inline]
    fn open<'a>(&self, datagram: &'a [u8]) -> Result<(Header, &'a [u8], u64), Dropped> {
        let form = self.config.header;
        let tag = form.tag(datagram).ok_or(Dropped::Malformed)?;
        let peer = self.peer.as_ref().ok_or(Dropped::Foreign)?;
        if !self.is_of_session(peer, tag) {
            return Err(Dropped::Foreign);
        }
        let (header, payload) = form.read(datagram, self.config.trailer())?;
        let first = form.expand(header.sequence, self.receiving.contiguous());
        match &peer.authenticator {
            Some(authenticator) if !self.is_authentic(authenticator, first, datagram) => Err(Dropped::Forged),
            _ => Ok((header, payload, first)),
        }
    }

    /// Nothing of it is taken, so that it comes again once it comes alone.
    fn refuse_packed(&mut self, time: Timestamp) -> Received {
        self.session.refuse_session(time, Refusal::Packed);
        self.note_refused(Refusal::Packed);
        self.failed(DownReason::Refused(Refusal::Packed));
        Received::Handshake
    }

    fn is_authentic(&self, authenticator: &Authenticator, number: u64, datagram: &[u8]) -> bool {
        #[cfg(test)]
        if self.defect == Defect::AnyMac {
            return true;
        }
        authenticator.verifies(number, datagram)
    }

    /// Whether a datagram without messages comes for the first time.
    fn is_first(&mut self, serial: u64) -> bool {
        let Some(peer) = &mut self.peer else {
            return false;
        };
        let is_first = peer.serials.take(serial);
        #[cfg(test)]
        if self.defect == Defect::AnySerial {
            peer.credits_serial = 0;
            return true;
        }
        is_first
    }

    fn is_of_session(&self, peer: &Peer, tag: u32) -> bool {
        #[cfg(test)]
        if self.defect == Defect::AnyTag {
            return true;
        }
        peer.receive_tag == tag
    }

    /// An acknowledgement in memory's width, unless it is of what was never sent. Old ones pass: they free nothing.
    fn plausible_ack(&self, ack: u32) -> Option<u64> {
        let ack = self.config.header.expand(ack, self.sending.base());
        #[cfg(test)]
        let ack = match self.defect {
            Defect::EarlyFree => (ack + 1).min(self.sending.sent()),
            _ => ack,
        };
        (ack <= self.sending.sent()).then_some(ack)
    }

    /// `true`: it acknowledges what was not acknowledged before.
    fn on_ack(&mut self, time: Timestamp, ack: u64) -> bool {
        let acknowledged = self.sending.acknowledge(ack);
        if let Acknowledged::SentAt(sent_at) = acknowledged {
            // What took longer than the ceiling was a pause of one of the ends and says nothing of the way.
            self.rtt.sample(time.since(sent_at).min(self.config.rto_ceiling));
            self.rtt.progress();
        }
        acknowledged != Acknowledged::Nothing
    }

    /// `true`: it had not come before.
    fn on_message(&mut self, time: Timestamp, flags: u8, number: u64, message: &[u8]) -> bool {
        if self.receiving.insert(number, message) {
            return true;
        }
        self.counters.duplicates += 1;
        if flags & FLAG_RETRANSMIT != 0
            && let Some(peer) = &mut self.peer
        {
            // The acknowledgement was lost, or is late: say it again, and say that the retransmission was in vain. Not
            // more often than anything is acknowledged, or a flood of old datagrams would draw as many new ones.
            peer.ack_at = peer.ack_at.min(time.max(peer.sent_at + self.config.ack_delay));
            if !peer.sends_copies {
                peer.duplicates = peer.duplicates.wrapping_add(1);
            }
        }
        false
    }

    fn on_nak(&mut self, time: Timestamp, nak: Nak<'_>) -> bool {
        self.counters.naks_received += 1;
        #[cfg(test)]
        if self.defect == Defect::NoRepair {
            return true;
        }
        // A peer that lacks the copy too asks again when its timeout, at least the floor, has passed.
        let once_in = Duration(self.config.rto_floor.0 / 2);
        for SequenceNumber(number) in nak.numbers(SequenceNumber(self.sending.base())) {
            self.sending.mark_wanted(number, time, once_in);
        }
        true
    }

    fn on_status(&mut self, status: &Status) -> bool {
        let durable = status.durable.get().min(self.sending.base());
        self.peer_durable = self.peer_durable.max(durable);
        if let Some(peer) = &mut self.peer {
            let more = status.duplicates.get().wrapping_sub(peer.duplicates_told);
            // An older status overtaken by a newer one tells of fewer.
            if more.cast_signed() > 0 {
                peer.duplicates_told = status.duplicates.get();
                // The peer counts what somebody plays again too.
                let spurious = self.counters.retransmits_spurious + u64::from(more);
                self.counters.retransmits_spurious = spurious.min(self.counters.retransmits);
            }
        }
        true
    }

    /// The last word of the acceptor counts; of one that was overtaken, or comes from the end that is to obey, nothing.
    fn on_credits(&mut self, credits: &Credits) -> bool {
        let serial = credits.serial.get();
        let Some(peer) = &mut self.peer else {
            return false;
        };
        if self.role == Role::Acceptor || serial < peer.credits_serial {
            return false;
        }
        peer.credits_serial = serial;
        let slots = Some(credits.slots.get());
        self.credits_are_news |= self.credits != slots;
        self.credits = slots;
        true
    }

    fn count(&mut self, dropped: Dropped) {
        let counters = &mut self.counters;
        *match dropped {
            Dropped::Malformed => &mut counters.malformed,
            Dropped::Foreign => &mut counters.foreign,
            Dropped::Forged => &mut counters.forged,
            Dropped::FalseAck => &mut counters.false_acks,
            Dropped::BeyondWindow => &mut counters.beyond_window,
            Dropped::StaleHandshake => &mut counters.handshakes_stale,
        } += 1;
    }
}

impl From<Malformed> for Dropped {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}
