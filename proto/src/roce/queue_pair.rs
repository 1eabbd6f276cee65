//! One end of a reliable connection.

use super::NEVER;
use super::config::{Attributes, Config, ConfigError};
use super::counters::Counters;
use super::rate::Rate;
use super::region::Regions;
use super::requester::Requester;
use super::responder::Responder;
use super::wire::{self, CNP_PAYLOAD, Class, Opcode, Packet};
use super::work::{Completion, Failure, PostError, ReceiveRequest, SendRequest};
use types::{Duration, Timestamp};

/// One end of a reliable connection, without socket, clock and memory of its own: packets, the time and the owner's arena
/// go in, packets and completions come out. Its packets end without their check; [`Path`](super::Path) has that.
#[derive(Debug)]
pub struct QueuePair {
    attributes: Option<Attributes>,
    requester: Requester,
    responder: Responder,
    rate: Option<Rate>,
    cnp: Notifier,
    /// Requests given out since an answer last had its turn.
    requests_in_a_row: u32,
    counters: Counters,
}

/// When the peer is told of congestion on its way here.
#[derive(Debug)]
struct Notifier {
    interval: Duration,
    is_due: bool,
    not_before: Timestamp,
}

impl QueuePair {
    /// Builds one; all its memory is allocated here. It is connected by [`connect`](Self::connect).
    ///
    /// # Errors
    /// The settings cannot work.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            attributes: None,
            requester: Requester::new(config),
            responder: Responder::new(config),
            rate: config.rate.map(Rate::new),
            cnp: Notifier {
                interval: config.cnp_interval,
                is_due: false,
                not_before: Timestamp::NONE,
            },
            requests_in_a_row: 0,
            counters: Counters::default(),
        })
    }

    /// Begins with a peer, anew if there was one: its queues are empty, and what was posted is forgotten.
    pub fn connect(&mut self, attributes: Attributes) {
        self.requester.start(attributes.send_psn);
        self.responder.start(attributes.receive_psn);
        self.cnp.is_due = false;
        self.attributes = Some(attributes);
    }

    /// Ends it: what is posted fails.
    pub fn close(&mut self) {
        self.break_down(Failure::Closed);
    }

    /// Who the peer is, and how the two began.
    #[must_use]
    pub const fn attributes(&self) -> Option<Attributes> {
        self.attributes
    }

    /// Why it is broken. Whoever wants to go on connects it anew.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        self.requester.failure()
    }

    /// The number of the packet whose turn it is.
    #[cfg(test)]
    pub(super) const fn expected(&self) -> u32 {
        self.responder.expected()
    }

    /// How many requests can be posted now.
    #[must_use]
    pub const fn send_room(&self) -> usize {
        self.requester.room()
    }

    /// How many packets may be posted now and leave at once: the window less what is in flight and what waits. Who posts more
    /// has it wait here.
    #[must_use]
    pub const fn window_room(&self) -> u64 {
        self.requester.window_room()
    }

    /// How many receives can be posted now.
    #[must_use]
    pub const fn receive_room(&self) -> usize {
        self.responder.room()
    }

    /// Counts since construction.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The rate at which packets leave, bytes a second. `None`: the rate control is off.
    #[must_use]
    pub fn rate(&self) -> Option<u64> {
        self.rate.as_ref().map(Rate::current)
    }

    /// Posts a request. Its bytes stay as they are until it has ended.
    ///
    /// # Errors
    /// It cannot be posted now, or ever.
    pub fn post_send(&mut self, request: SendRequest, regions: &Regions) -> Result<(), PostError> {
        self.check_open()?;
        self.requester.post(request, regions)
    }

    /// Posts a receive: a place for one message.
    ///
    /// # Errors
    /// It cannot be posted now, or ever.
    pub fn post_receive(&mut self, request: ReceiveRequest, regions: &Regions) -> Result<(), PostError> {
        self.check_open()?;
        self.responder.post(request, regions)
    }

    const fn check_open(&self) -> Result<(), PostError> {
        match (self.attributes, self.failure()) {
            (Some(_), None) => Ok(()),
            _ => Err(PostError::NotConnected),
        }
    }

    /// Takes in a packet for this queue pair whose check was right. `is_marked`: its IP header says that it met congestion.
    pub fn on_packet(&mut self, now: Timestamp, bytes: &[u8], is_marked: bool, regions: &Regions, memory: &mut [u8]) {
        self.counters.rcvd_pkts += 1;
        let Some(attributes) = self.attributes else { return };
        let packet = match wire::decode(bytes) {
            Ok(packet) if packet.destination == attributes.local_qpn => packet,
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        if is_marked {
            self.counters.np_ecn_marked_roce_packets += 1;
            self.cnp.is_due |= now >= self.cnp.not_before;
        }
        if self.failure().is_some() {
            return;
        }
        match (packet.opcode.shape().class, packet.acknowledgement) {
            (Class::CongestionNotification, _) => self.on_notification(now),
            (Class::ReadResponse, _) => {
                self.requester
                    .on_read_response(now, &packet, memory, &mut self.counters);
            }
            (Class::Acknowledge, Some(acknowledgement)) => {
                self.requester
                    .on_acknowledge(now, packet.psn, acknowledgement, &mut self.counters);
            }
            _ => {
                let outcome = self
                    .responder
                    .on_request(now, &packet, regions, memory, &mut self.counters);
                if let Err(code) = outcome {
                    self.break_down(Failure::RefusedPeer(code));
                }
            }
        }
        if self.failure().is_some() {
            self.responder.fail();
        }
    }

    /// A packet came whose check was wrong.
    pub const fn on_damaged(&mut self) {
        self.counters.rcvd_pkts += 1;
        self.counters.rx_icrc_encapsulated += 1;
    }

    fn on_notification(&mut self, now: Timestamp) {
        match &mut self.rate {
            Some(rate) => {
                self.counters.rp_cnp_handled += 1;
                rate.on_notification(now);
            }
            None => self.counters.rp_cnp_ignored += 1,
        }
    }

    /// Writes the next packet into `out` and gives its length; called until it gives `None`. `out` holds at least
    /// [`packet_length_max`](wire::packet_length_max) and leaves room for the check.
    ///
    /// Requests go before answers: an answer of the owner is a request, and whoever waits for it waits for that.
    pub fn poll_transmit(&mut self, now: Timestamp, memory: &[u8], out: &mut [u8]) -> Option<usize> {
        let Attributes { peer_qpn, .. } = self.attributes?;
        self.on_time(now);
        let length = self.next_packet(now, peer_qpn, memory, out)?;
        self.counters.sent_pkts += 1;
        if let Some(rate) = &mut self.rate {
            rate.on_packet(now, length);
        }
        Some(length)
    }

    fn next_packet(&mut self, now: Timestamp, peer_qpn: u32, memory: &[u8], out: &mut [u8]) -> Option<usize> {
        if core::mem::take(&mut self.cnp.is_due) {
            self.cnp.not_before = now + self.cnp.interval;
            self.counters.np_cnp_sent += 1;
            return Some(notification(peer_qpn).encode(out));
        }
        if self.rate.as_ref().is_some_and(|rate| now < rate.next_at()) {
            return None;
        }
        if self.requests_in_a_row < REQUESTS_IN_A_ROW_MAX || !self.responder.has_answer() {
            let request = self.requester.transmit(now, peer_qpn, memory, out, &mut self.counters);
            if request.is_some() {
                self.requests_in_a_row += 1;
                return request;
            }
        }
        self.requests_in_a_row = 0;
        self.responder.transmit(now, peer_qpn, memory, out)
    }

    fn on_time(&mut self, now: Timestamp) {
        self.requester.on_time(now, &mut self.counters);
        if let Some(rate) = &mut self.rate {
            rate.on_time(now);
        }
        if self.failure().is_some() {
            self.responder.fail();
        }
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something to do though nothing comes. `None`: it does not.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.cnp.is_due {
            return Some(Timestamp::NONE);
        }
        let (held_until, rate) = match &self.rate {
            Some(rate) => (rate.next_at(), rate.timer()),
            None => (Timestamp::NONE, NEVER),
        };
        let first = self.requester.timer(held_until).min(self.responder.timer(held_until));
        let first = first.min(rate);
        (first != NEVER).then_some(first)
    }

    /// The next request or receive that has ended.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.requester
            .poll_completion()
            .or_else(|| self.responder.poll_completion())
    }

    fn break_down(&mut self, failure: Failure) {
        if self.failure().is_none() {
            self.requester.fail(failure);
        }
        self.responder.fail();
    }
}

/// The packet that tells a peer of congestion on its way here.
const fn notification(peer_qpn: u32) -> Packet<'static> {
    Packet {
        opcode: Opcode::CongestionNotification,
        destination: peer_qpn,
        psn: 0,
        ack_request: false,
        is_backward_congestion: true,
        reth: None,
        acknowledgement: None,
        immediate: None,
        payload: &CNP_PAYLOAD,
    }
}

/// Requests after which a waiting answer has its turn.
const REQUESTS_IN_A_ROW_MAX: u32 = 16;
