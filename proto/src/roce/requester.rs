//! The half of a queue pair that asks: requests posted, packets in flight, what the peer said of them.
//!
//! ```text
//! requests   polled .. | oldest: in flight .. | sending .. | posted
//! packets               unacked ........ next ...... highest ...... end
//!                       acknowledged up to | sent again from | ever sent | numbered
//! ```
//!
//! A request's packets get their numbers when it is posted: an RDMA READ takes as many as its response has packets. Going
//! back is moving `next` back; what was in flight behind it goes again (go-back-N).

use super::NEVER;
use super::config::Config;
use super::counters::Counters;
use super::psn;
use super::region::Regions;
use super::timeout::Timeout;
use super::wire::{Acknowledgement, NakCode, Opcode, Packet, Reth, Syndrome, rnr_delay};
use super::work::{Completion, Failure, Operation, PostError, SendRequest};
use alloc::boxed::Box;
use alloc::vec;
use types::Timestamp;
use zerocopy::big_endian::{U32, U64};

/// See the file's head.
#[derive(Debug)]
pub(super) struct Requester {
    config: Config,
    slots: Box<[Slot]>,
    /// The oldest request whose end the owner has not heard.
    polled: u64,
    /// The oldest request that has not ended.
    oldest: u64,
    /// The request that the packet `next` is of.
    sending: u64,
    /// The next to be posted.
    posted: u64,
    /// The oldest packet that the peer has not acknowledged.
    unacked: u64,
    /// The next packet to go.
    next: u64,
    /// The one behind the last that ever went.
    highest: u64,
    /// The number that the next request begins with.
    end: u64,
    /// RDMA READs asked for and not answered whole.
    reads: usize,
    /// Messages sent since an acknowledgement was asked for.
    unasked: u32,
    /// The oldest packet unacknowledged when a lost response was last noticed: it is asked for again once.
    response_lost_at: u64,
    /// When to send all again; never, where nothing is in flight.
    retry_at: Timestamp,
    timeout: Timeout,
    retries: u8,
    /// Packets that may be in flight now: the settings' window, less after a loss. Each packet acknowledged lets one more
    /// go.
    allowed: u64,
    /// The peer has not answered in time, and the oldest packet goes again, alone, and asks. A peer that has all but was slow
    /// says so, and is not sent everything once more.
    is_probing: bool,
    /// The peer has no receive: nothing goes before.
    rnr_until: Timestamp,
    rnr_retries: u8,
    /// Why the queue pair is broken.
    failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    request: SendRequest,
    first: u64,
    /// Behind its last packet.
    end: u64,
    /// RDMA READ: its request went out at least once.
    is_asked: bool,
}

impl Requester {
    pub(super) fn new(config: Config) -> Self {
        let empty = Slot {
            request: SendRequest {
                id: 0,
                operation: Operation::Send { immediate: None },
                offset: 0,
                length: 0,
                is_signaled: false,
            },
            first: 0,
            end: 0,
            is_asked: false,
        };
        Self {
            config,
            slots: vec![empty; config.send_queue.next_power_of_two()].into(),
            polled: 0,
            oldest: 0,
            sending: 0,
            posted: 0,
            unacked: 0,
            next: 0,
            highest: 0,
            end: 0,
            reads: 0,
            unasked: 0,
            response_lost_at: 0,
            retry_at: NEVER,
            timeout: Timeout::new(&config),
            retries: 0,
            allowed: config.window,
            is_probing: false,
            rnr_until: Timestamp::NONE,
            rnr_retries: 0,
            failure: None,
        }
    }

    /// Bytes that it allocates.
    pub(super) const fn memory(config: &Config) -> usize {
        config.send_queue.next_power_of_two() * size_of::<Slot>()
    }

    /// Begins anew with an empty queue.
    pub(super) fn start(&mut self, send_psn: u32) {
        let first = psn::start(send_psn);
        (self.polled, self.oldest, self.sending, self.posted) = (0, 0, 0, 0);
        (self.unacked, self.next, self.highest, self.end) = (first, first, first, first);
        (self.reads, self.unasked, self.retries, self.rnr_retries) = (0, 0, 0, 0);
        (self.retry_at, self.rnr_until, self.response_lost_at) = (NEVER, Timestamp::NONE, 0);
        self.timeout = Timeout::new(&self.config);
        (self.allowed, self.is_probing, self.failure) = (self.config.window, false, None);
    }

    /// Requests that can be posted now.
    #[allow(clippy::cast_possible_truncation, reason = "bounded by the ring's capacity, a usize")]
    pub(super) const fn room(&self) -> usize {
        self.config.send_queue - (self.posted - self.polled) as usize
    }

    pub(super) fn post(&mut self, request: SendRequest, regions: &Regions) -> Result<(), PostError> {
        if self.room() == 0 {
            return Err(PostError::Full);
        }
        if request.length > self.config.max_message {
            return Err(PostError::TooLong);
        }
        if !regions.holds(request.offset, request.length) {
            return Err(PostError::Bounds);
        }
        if matches!(request.operation, Operation::Read { .. }) && self.config.reads == 0 {
            return Err(PostError::NoReads);
        }
        let first = self.end;
        self.end += packets_of(request.length, self.config.mtu);
        *self.slot_mut(self.posted) = Slot {
            request,
            first,
            end: self.end,
            is_asked: false,
        };
        self.posted += 1;
        Ok(())
    }

    /// The next request that has ended and whose owner wants to know.
    pub(super) fn poll_completion(&mut self) -> Option<Completion> {
        while self.polled < self.oldest {
            let SendRequest { id, is_signaled, .. } = self.slot(self.polled).request;
            self.polled += 1;
            if is_signaled {
                return Some(Completion::Send { id, status: Ok(()) });
            }
        }
        let failure = self.failure?;
        if self.polled == self.posted {
            return None;
        }
        // The one that broke the queue pair is the oldest that had not ended.
        let is_first = self.polled == self.oldest;
        let status = Err(if is_first { failure } else { Failure::Flushed });
        let id = self.slot(self.polled).request.id;
        self.polled += 1;
        Some(Completion::Send { id, status })
    }

    /// Nothing more goes, and all that has not ended fails: the oldest with the reason.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.retry_at = NEVER;
    }

    pub(super) const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// When there is something to do though nothing comes; no packet goes before `held_until`.
    pub(super) fn timer(&self, held_until: Timestamp) -> Timestamp {
        let goes_at = if self.has_packet() {
            self.rnr_until.max(held_until)
        } else {
            NEVER
        };
        self.retry_at.min(goes_at)
    }

    /// Whether the next packet may go, but for the time.
    fn has_packet(&self) -> bool {
        if self.failure.is_some() || self.next == self.end || self.next - self.unacked >= self.allowed {
            return false;
        }
        let slot = self.slot(self.sending);
        let is_new_read = matches!(slot.request.operation, Operation::Read { .. }) && !slot.is_asked;
        !is_new_read || self.reads < self.config.reads
    }

    /// Packets that may still be posted and leave at once, as far as this end knows.
    pub(super) const fn window_room(&self) -> u64 {
        self.allowed.saturating_sub(self.end - self.unacked)
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now: Timestamp, counters: &mut Counters) {
        if now >= self.retry_at {
            counters.local_ack_timeout_err += 1;
            self.allowed = 1;
            self.is_probing = true;
            self.try_again(now, self.unacked, counters);
        }
    }

    /// Writes the next packet, if one may go.
    pub(super) fn transmit(
        &mut self,
        now: Timestamp,
        destination: u32,
        memory: &[u8],
        out: &mut [u8],
        counters: &mut Counters,
    ) -> Option<usize> {
        if now < self.rnr_until || !self.has_packet() {
            return None;
        }
        self.rnr_until = Timestamp::NONE;
        let Slot {
            request,
            first,
            end,
            is_asked,
        } = *self.slot(self.sending);
        let at = place(self.next - first, self.config.mtu);
        let packet = Packet {
            opcode: Opcode::Acknowledge,
            destination,
            psn: psn::wire(self.next),
            ack_request: false,
            is_backward_congestion: false,
            reth: None,
            acknowledgement: None,
            immediate: None,
            payload: &[],
        };
        let length = if let Operation::Read { from } = request.operation {
            if !is_asked {
                self.reads += 1;
                self.slot_mut(self.sending).is_asked = true;
            }
            let packet = Packet {
                opcode: Opcode::ReadRequest,
                reth: Some(reth(
                    from.address.wrapping_add(at as u64),
                    from.key,
                    request.length - at,
                )),
                ..packet
            };
            self.count_sent(now, end, true, counters);
            packet.encode(out)
        } else {
            let is_first = self.next == first;
            let is_last = self.next + 1 == end;
            let length = (request.length - at).min(self.config.mtu);
            let (opcode, immediate, reth) = match request.operation {
                Operation::Write { to, immediate } => (
                    Opcode::write(is_first, is_last, immediate.is_some()),
                    immediate,
                    is_first.then(|| reth(to.address, to.key, request.length)),
                ),
                Operation::Send { immediate } => {
                    (Opcode::send(is_first, is_last, immediate.is_some()), immediate, None)
                }
                Operation::Read { .. } => unreachable!("is above"),
            };
            let packet = Packet {
                opcode,
                ack_request: self.asks(is_last),
                reth,
                immediate: immediate.filter(|_| is_last),
                payload: &memory[request.offset + at..][..length],
                ..packet
            };
            self.count_sent(now, self.next + 1, packet.ack_request, counters);
            packet.encode(out)
        };
        if self.next == end {
            self.sending += 1;
        }
        if self.retry_at == NEVER {
            self.retry_at = now + self.timeout.after(self.retries);
        }
        Some(length)
    }

    /// Whether the packet `next` asks for an acknowledgement: one in so many messages, all after a timeout, and the last
    /// that the window lets go.
    fn asks(&mut self, is_last: bool) -> bool {
        self.unasked += u32::from(is_last);
        let is_due = is_last && (self.unasked >= self.config.ack_every || self.retries > 0);
        let is_window_full = self.next + 1 - self.unacked >= self.allowed;
        if is_due {
            self.unasked = 0;
        }
        is_due || is_window_full
    }

    /// The packets up to `next` leave.
    fn count_sent(&mut self, now: Timestamp, next: u64, asks: bool, counters: &mut Counters) {
        if self.next < self.highest {
            counters.completer_retry_err += 1;
        } else if asks {
            self.timeout.on_asked(now, self.next);
        }
        self.next = next;
        self.highest = self.highest.max(next);
    }

    /// Takes in an acknowledgement.
    pub(super) fn on_acknowledge(
        &mut self,
        now: Timestamp,
        wire: u32,
        acknowledgement: Acknowledgement,
        counters: &mut Counters,
    ) {
        if self.failure.is_some() {
            return;
        }
        let psn = psn::expand(wire, self.unacked);
        if psn >= self.highest {
            counters.resp_false += 1;
            return;
        }
        if psn < self.unacked {
            // Of the past.
            return;
        }
        match acknowledgement.syndrome {
            Syndrome::Ack => {
                self.acknowledge(now, psn + 1, counters);
            }
            Syndrome::RnrNak(code) => {
                counters.rcvd_rnr_err += 1;
                if self.acknowledge(now, psn, counters) {
                    self.wait_for_receive(now, psn, code, counters);
                }
            }
            Syndrome::Nak(NakCode::SequenceError) => {
                counters.rcvd_seq_err += 1;
                if self.acknowledge(now, psn, counters) {
                    // What overflowed on the way there is not to overflow again.
                    self.allowed = (self.allowed / 2).max(1);
                    self.is_probing = false;
                    self.try_again(now, psn, counters);
                }
            }
            Syndrome::Nak(code) => {
                if self.acknowledge(now, psn, counters) {
                    self.fail(Failure::Refused(code));
                }
            }
        }
    }

    /// Takes in a packet of an RDMA READ's response.
    pub(super) fn on_read_response(
        &mut self,
        now: Timestamp,
        packet: &Packet<'_>,
        memory: &mut [u8],
        counters: &mut Counters,
    ) {
        if self.failure.is_some() {
            return;
        }
        let psn = psn::expand(packet.psn, self.unacked);
        if psn < self.unacked {
            return;
        }
        let mut index = self.oldest;
        while index < self.posted && self.slot(index).end <= psn {
            index += 1;
        }
        if psn >= self.highest || !self.slot(index).is_asked {
            counters.resp_false += 1;
            return;
        }
        // It acknowledges all before its request.
        let Slot {
            request, first, end, ..
        } = *self.slot(index);
        if !self.acknowledge(now, first, counters) {
            return;
        }
        if psn > self.unacked {
            self.ask_again(counters);
            return;
        }
        let at = place(psn - first, self.config.mtu);
        let length = (request.length - at).min(self.config.mtu);
        let is_last = psn + 1 == end;
        if packet.payload.len() != length || packet.opcode.shape().is_last != is_last {
            self.fail(Failure::BadResponse);
            return;
        }
        memory[request.offset + at..][..length].copy_from_slice(packet.payload);
        if is_last {
            self.reads -= 1;
            self.oldest += 1;
            counters.requests_completed += 1;
        }
        self.advance(now, psn + 1);
    }

    /// The peer has executed all packets below `end`. `false`: an RDMA READ is among them whose response has not come
    /// whole, so that it was lost, and is asked for again.
    fn acknowledge(&mut self, now: Timestamp, end: u64, counters: &mut Counters) -> bool {
        while self.oldest < self.posted {
            let slot = *self.slot(self.oldest);
            if slot.first >= end {
                break;
            }
            if let Operation::Read { .. } = slot.request.operation {
                self.advance(now, slot.first.max(self.unacked));
                self.ask_again(counters);
                return false;
            }
            if slot.end > end {
                break;
            }
            self.oldest += 1;
            counters.requests_completed += 1;
        }
        self.advance(now, end.max(self.unacked));
        true
    }

    /// All below `unacked` is acknowledged.
    fn advance(&mut self, now: Timestamp, unacked: u64) {
        if unacked == self.unacked {
            return;
        }
        self.allowed = (self.allowed + unacked - self.unacked).min(self.config.window);
        self.unacked = unacked;
        self.timeout.on_answered(now, unacked);
        self.retries = 0;
        self.rnr_retries = 0;
        self.rnr_until = Timestamp::NONE;
        let was_probing = core::mem::take(&mut self.is_probing);
        if self.next < unacked {
            // More has arrived than went again: the peer was slow, and all that went before the probe is there or under way.
            // Where something is missing in it, a NAK says so.
            self.seek(if was_probing { self.highest } else { unacked });
        }
        self.retry_at = if self.next > unacked {
            now + self.timeout.after(0)
        } else {
            NEVER
        };
    }

    /// The packet `next` is this one; it is not acknowledged.
    fn seek(&mut self, next: u64) {
        self.next = next;
        self.sending = self.oldest;
        while self.sending < self.posted && self.slot(self.sending).end <= next {
            self.sending += 1;
        }
    }

    /// All from this packet on goes again, if it went further.
    fn go_back(&mut self, to: u64) {
        if self.next > to {
            self.seek(to);
        }
    }

    /// The response that begins with the oldest packet unacknowledged was lost: what came behind it says so. Much of that
    /// may be under way, so it is heeded once.
    fn ask_again(&mut self, counters: &mut Counters) {
        if self.response_lost_at != self.unacked {
            self.response_lost_at = self.unacked;
            counters.implied_nak_seq_err += 1;
            self.go_back(self.unacked);
        }
    }

    /// As [`go_back`](Self::go_back), one try more without progress; too many break the queue pair.
    fn try_again(&mut self, now: Timestamp, from: u64, counters: &mut Counters) {
        if self.retries >= self.config.retry_limit {
            counters.retry_exceeded_err += 1;
            self.fail(Failure::RetryExceeded);
            return;
        }
        self.retries += 1;
        self.go_back(from);
        self.retry_at = now + self.timeout.after(self.retries);
    }

    fn wait_for_receive(&mut self, now: Timestamp, from: u64, code: u8, counters: &mut Counters) {
        let limit = self.config.rnr_retry_limit;
        if limit != super::config::RNR_RETRY_FOREVER && self.rnr_retries >= limit {
            counters.retry_rnr_exceeded_err += 1;
            self.fail(Failure::RnrRetryExceeded);
            return;
        }
        self.rnr_retries = self.rnr_retries.saturating_add(1);
        self.go_back(from);
        self.rnr_until = now + rnr_delay(code);
        // The peer lives. What it does not acknowledge once it is sent again has a whole timeout.
        self.retry_at = NEVER;
    }

    fn slot(&self, index: u64) -> &Slot {
        &self.slots[ring_place(index, self.slots.len())]
    }

    fn slot_mut(&mut self, index: u64) -> &mut Slot {
        &mut self.slots[ring_place(index, self.slots.len())]
    }
}

/// How many packets a message of so many bytes takes.
pub(super) fn packets_of(length: usize, mtu: usize) -> u64 {
    length.div_ceil(mtu).max(1) as u64
}

/// Where in a message a packet's payload is.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a packet of a message lies within its length, a usize"
)]
pub(super) const fn place(packet: u64, mtu: usize) -> usize {
    packet as usize * mtu
}

/// Where a number lives in a ring of `capacity`, a power of two.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are the place")]
pub(super) const fn ring_place(number: u64, capacity: usize) -> usize {
    number as usize & (capacity - 1)
}

#[allow(clippy::cast_possible_truncation, reason = "the settings bound a message")]
fn reth(address: u64, key: u32, length: usize) -> Reth {
    Reth {
        address: U64::new(address),
        remote_key: U32::new(key),
        length: U32::new(length as u32),
    }
}
