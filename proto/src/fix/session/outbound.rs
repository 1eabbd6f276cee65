//! What leaves: numbers, and the store behind resends.

use super::replay::Replay;
use super::store::Store;
use super::{CompId, Output, SessionConfig, SessionCounters};
use crate::fix::{Body, Encoder, MAX_MESSAGE_LENGTH, MessageHeader, TimePrecision, Version};
use alloc::boxed::Box;
use alloc::vec;
use types::{SequenceNumber, Timestamp};

/// The outgoing half of a session.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) header: Header,
    /// The number of the next message.
    pub(super) next: u64,
    /// All numbers up to this one were sent in this connection, or are left to the peer to ask for.
    pub(super) transmitted: u64,
    /// The last number that is sent in this connection; all until a Logout is answered.
    last_word: u64,
    /// What goes before everything new.
    pub(super) replay: Option<Replay>,
    /// Recalls asked of the owner so far.
    pub(super) recalls: u64,
    pub(super) last_sent: Timestamp,
    pub(super) store: Store,
    /// Where messages are encoded.
    pub(super) scratch: Box<[u8]>,
}

/// What the headers of all messages have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) version: Version,
    sender_comp_id: CompId,
    target_comp_id: CompId,
    precision: TimePrecision,
}

impl Outbound {
    pub(super) fn new(config: &SessionConfig, version: Version) -> Self {
        Self {
            header: Header {
                version,
                sender_comp_id: config.sender_comp_id,
                target_comp_id: config.target_comp_id,
                precision: config.time_precision,
            },
            next: 1,
            transmitted: 0,
            last_word: u64::MAX,
            replay: None,
            recalls: 0,
            last_sent: Timestamp::NONE,
            store: Store::new(config.store_messages, config.store_bytes),
            scratch: vec![0; SCRATCH_LENGTH].into_boxed_slice(),
        }
    }

    /// The peer's name, when it is only known now.
    pub(super) const fn bind(&mut self, target_comp_id: CompId) {
        self.header.target_comp_id = target_comp_id;
    }

    /// Whether a replay, or what waits behind one, is still to be sent.
    pub(super) const fn is_busy(&self) -> bool {
        self.replay.is_some() || self.is_waiting()
    }

    /// Whether the next part of a replay can be sent: it does not wait for the owner to find it.
    pub(super) const fn is_ready(&self) -> bool {
        match &self.replay {
            Some(replay) => !replay.is_recalling(),
            None => self.is_waiting(),
        }
    }

    pub(super) const fn is_waiting(&self) -> bool {
        self.transmitted < self.last_to_send()
    }

    /// The last number that is to be sent in this connection as things are.
    pub(super) const fn last_to_send(&self) -> u64 {
        if self.last_word < self.next - 1 {
            self.last_word
        } else {
            self.next - 1
        }
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
        let mut encoder = self
            .header
            .start(&mut self.scratch, body.msg_type(), sequence, now, None);
        body.encode(&mut encoder);
        self.store.put(sequence, now, body.msg_type(), encoder.body());
        let message = finish(encoder);
        self.next += 1;
        counters.sent += 1;
        if waits {
            out.hold(SequenceNumber(sequence), message);
        } else {
            out.transmit(SequenceNumber(sequence), message);
            self.transmitted = sequence;
            self.last_sent = now;
        }
        sequence
    }

    /// Sends a message with the next number and does not use the number up: the answer to a failed logon leaves no trace.
    pub(super) fn send_unnumbered(
        &mut self,
        now: Timestamp,
        version: Version,
        body: &impl Body,
        out: &mut impl Output,
    ) {
        let header = Header { version, ..self.header };
        let mut encoder = header.start(&mut self.scratch, body.msg_type(), self.next, now, None);
        body.encode(&mut encoder);
        out.transmit(SequenceNumber(self.next), finish(encoder));
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
}

impl Header {
    /// Starts a message. With `orig` it is a possible duplicate of one that was first sent then.
    pub(super) fn start<'b>(
        &self,
        buffer: &'b mut [u8],
        msg_type: &[u8],
        sequence: u64,
        time: Timestamp,
        orig: Option<Timestamp>,
    ) -> Encoder<'b> {
        let header = MessageHeader {
            version: self.version,
            sender_comp_id: self.sender_comp_id.as_bytes(),
            target_comp_id: self.target_comp_id.as_bytes(),
            sequence,
            sending_time: time,
            orig_sending_time: orig,
        };
        Encoder::start(buffer, msg_type, &header, self.precision)
    }
}

/// Values are bounded where they are read, so a body that does not fit is a defect of whoever wrote it.
pub(super) fn finish(encoder: Encoder<'_>) -> &[u8] {
    match encoder.finish() {
        Some(message) => message,
        None => panic!("a message longer than {MAX_MESSAGE_LENGTH} bytes"),
    }
}

/// The longest message and what an encoder leaves free before it.
const SCRATCH_LENGTH: usize = MAX_MESSAGE_LENGTH + 64;
