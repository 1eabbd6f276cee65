//! What leaves: numbers, the store behind resends, and replays.
//!
//! A replay takes as long as it takes: each call sends a few messages, so that it never floods the owner's send queue. What
//! is sent meanwhile gets its number and waits in the store, so that it neither overtakes the replay nor mixes with it.

use super::admin::SequenceReset;
use super::store::Store;
use super::{Output, SessionConfig, SessionCounters};
use crate::fix::{Body, Encoder, MAX_MESSAGE_LENGTH, MessageHeader};
use alloc::boxed::Box;
use alloc::vec;
use types::{SequenceNumber, Timestamp};

/// The outgoing half of a session.
#[derive(Debug)]
pub(super) struct Outbound {
    config: SessionConfig,
    /// The number of the next message.
    next: u64,
    /// All numbers up to this one were sent in this connection, or are left to the peer to ask for.
    transmitted: u64,
    /// The last number that is sent in this connection; all until a Logout is answered.
    last_word: u64,
    /// The numbers still to be sent again, first and last.
    replay: Option<(u64, u64)>,
    last_sent: Timestamp,
    store: Store,
    /// Where messages are encoded.
    scratch: Box<[u8]>,
}

impl Outbound {
    pub(super) fn new(config: SessionConfig) -> Self {
        Self {
            next: 1,
            transmitted: 0,
            last_word: u64::MAX,
            replay: None,
            last_sent: Timestamp::NONE,
            store: Store::new(config.store_messages, config.store_bytes),
            scratch: vec![0; SCRATCH_LENGTH].into_boxed_slice(),
            config,
        }
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn last_sent(&self) -> Timestamp {
        self.last_sent
    }

    /// The peer's CompID, when it is only known now.
    pub(super) const fn bind(&mut self, target_comp_id: crate::fix::CompId) {
        self.config.target_comp_id = target_comp_id;
    }

    /// Whether a replay, or what waits behind one, is still to be sent.
    pub(super) const fn is_busy(&self) -> bool {
        self.replay.is_some() || self.is_waiting()
    }

    const fn is_waiting(&self) -> bool {
        self.transmitted + 1 < self.next && self.transmitted < self.last_word
    }

    pub(super) const fn allocated(&self) -> usize {
        self.store.allocated() + self.scratch.len()
    }

    /// Numbers a message and keeps it. It is sent now when `live`, unless others wait before it.
    pub(super) fn send(
        &mut self,
        now: Timestamp,
        body: &impl Body,
        live: bool,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) -> u64 {
        let sequence = self.next;
        let waits = !live || self.is_busy();
        let header = header(&self.config, sequence, now, None);
        let mut encoder = Encoder::start(&mut self.scratch, body.msg_type(), &header, self.config.time_precision);
        body.encode(&mut encoder);
        self.store.put(sequence, now, body.msg_type(), encoder.body());
        let message = finish(encoder);
        self.next += 1;
        counters.sent += 1;
        if !waits {
            out.transmit(SequenceNumber(sequence), message);
            self.transmitted = sequence;
            self.last_sent = now;
        }
        sequence
    }

    /// Sends a message with the next number and does not use the number up: the answer to a failed logon leaves no trace.
    pub(super) fn send_unnumbered(&mut self, now: Timestamp, body: &impl Body, out: &mut impl Output) {
        let header = header(&self.config, self.next, now, None);
        let mut encoder = Encoder::start(&mut self.scratch, body.msg_type(), &header, self.config.time_precision);
        body.encode(&mut encoder);
        out.transmit(SequenceNumber(self.next), finish(encoder));
    }

    /// Starts to send again what has the numbers `begin` to `end`, as far as they were sent. Takes the place of a replay
    /// that is not done: the peer asks for what it misses.
    pub(super) fn start_replay(&mut self, begin: u64, end: u64) {
        let end = end.min(self.transmitted);
        self.replay = (begin <= end).then_some((begin, end));
    }

    /// Goes on with a replay and what waits behind it, a bounded number of messages.
    pub(super) fn pump(&mut self, now: Timestamp, counters: &mut SessionCounters, out: &mut impl Output) {
        for _ in 0..REPLAY_BURST {
            if let Some((begin, end)) = self.replay {
                let next = self.replay_next(now, begin, end, counters, out);
                self.replay = (next <= end).then_some((next, end));
            } else if self.is_waiting() {
                self.transmitted = self.transmit_waiting(now, self.transmitted + 1, counters, out);
            } else {
                return;
            }
            self.last_sent = now;
        }
    }

    /// Leaves what was not sent yet to the peer to ask for.
    pub(super) const fn abandon(&mut self) {
        self.replay = None;
        self.transmitted = self.next - 1;
        self.last_word = u64::MAX;
    }

    /// Sends nothing in this connection beyond what has a number now.
    pub(super) const fn seal(&mut self) {
        self.last_word = self.next - 1;
    }

    /// Starts again at 1 and forgets what was sent.
    pub(super) fn reset(&mut self) {
        self.store.clear();
        self.next = 1;
        self.abandon();
    }

    /// Counts a message as sent that has the number 1 on both sides' books since a reset.
    pub(super) const fn skip_one(&mut self) {
        self.next += 1;
        self.abandon();
    }

    /// Sends the message `begin` again, or one gap fill for the run from there that is not repeated. Returns the number
    /// that is next.
    fn replay_next(
        &mut self,
        now: Timestamp,
        begin: u64,
        end: u64,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) -> u64 {
        let next = self.first_resent(begin, end, counters);
        if next > begin {
            self.gap_fill(now, begin, next, Some(now), out);
            return next;
        }
        let Some(sent) = self.store.message(begin) else {
            return begin + 1;
        };
        let header = header(&self.config, begin, now, Some(sent.time));
        let mut encoder = Encoder::start(&mut self.scratch, sent.msg_type, &header, self.config.time_precision);
        encoder.raw(sent.body.0);
        encoder.raw(sent.body.1);
        out.transmit(SequenceNumber(begin), finish(encoder));
        counters.resent += 1;
        begin + 1
    }

    /// The first number from `begin` to `end` whose message is to be repeated, or the one after `end`. What is no longer
    /// held is counted.
    fn first_resent(&self, begin: u64, end: u64, counters: &mut SessionCounters) -> u64 {
        let held = self.store.oldest().max(begin).min(end + 1);
        counters.lost += held - begin;
        for sequence in held..=end {
            match self.store.message(sequence) {
                Some(sent) if sent.is_resent() => return sequence,
                Some(_) => (),
                None => counters.lost += 1,
            }
        }
        end + 1
    }

    /// Sends for the first time what waited behind a replay, byte for byte as it would have left. Returns the last number
    /// that is settled.
    fn transmit_waiting(
        &mut self,
        now: Timestamp,
        sequence: u64,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) -> u64 {
        let Some(sent) = self.store.message(sequence) else {
            // So much was sent during the replay that the store could not hold it.
            let next = (sequence + 1..self.next)
                .find(|&next| self.store.message(next).is_some())
                .unwrap_or(self.next);
            counters.lost += next - sequence;
            self.gap_fill(now, sequence, next, None, out);
            return next - 1;
        };
        let header = header(&self.config, sequence, sent.time, None);
        let mut encoder = Encoder::start(&mut self.scratch, sent.msg_type, &header, self.config.time_precision);
        encoder.raw(sent.body.0);
        encoder.raw(sent.body.1);
        out.transmit(SequenceNumber(sequence), finish(encoder));
        sequence
    }

    fn gap_fill(
        &mut self,
        now: Timestamp,
        sequence: u64,
        new_sequence: u64,
        orig_sending_time: Option<Timestamp>,
        out: &mut impl Output,
    ) {
        let body = SequenceReset {
            gap_fill: true,
            new_sequence,
        };
        let header = header(&self.config, sequence, now, orig_sending_time);
        let mut encoder = Encoder::start(&mut self.scratch, body.msg_type(), &header, self.config.time_precision);
        body.encode(&mut encoder);
        out.transmit(SequenceNumber(sequence), finish(encoder));
    }
}

fn header(config: &SessionConfig, sequence: u64, time: Timestamp, orig: Option<Timestamp>) -> MessageHeader<'_> {
    MessageHeader {
        version: config.version,
        sender_comp_id: config.sender_comp_id.as_bytes(),
        target_comp_id: config.target_comp_id.as_bytes(),
        sequence,
        sending_time: time,
        orig_sending_time: orig,
    }
}

/// Values are bounded where they are read, so a body that does not fit is a defect of whoever wrote it.
fn finish(encoder: Encoder<'_>) -> &[u8] {
    match encoder.finish() {
        Some(message) => message,
        None => panic!("a message longer than {MAX_MESSAGE_LENGTH} bytes"),
    }
}

/// Messages sent in one call of a replay.
const REPLAY_BURST: usize = 64;

/// The longest message and what an encoder leaves free before it.
const SCRATCH_LENGTH: usize = MAX_MESSAGE_LENGTH + 64;
