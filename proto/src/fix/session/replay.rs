//! What is sent before anything new: messages that the peer asked for again, and those that had to wait meanwhile.
//!
//! A replay takes as long as it takes: each call sends a few messages, so that it never floods the owner's send queue. What
//! is sent meanwhile gets its number and waits in the store, so that it neither overtakes the replay nor mixes with it.
//!
//! What the store no longer holds is recalled: the owner is asked for it, and the replay stands still until it came. So the
//! memory of a session bounds what it sends again at once, not what it can send again at all.

use super::outbound::{Outbound, finish};
use super::store::is_resent;
use super::{Output, Recall, SessionCounters};
use crate::fix::session::admin::SequenceReset;
use crate::fix::time::TIMESTAMP_LENGTH;
use crate::fix::{Body, Fields, MAX_MESSAGE_LENGTH, parse_timestamp, tag};
use types::{SequenceNumber, Timestamp};

/// A run of numbers that is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replay {
    kind: Kind,
    /// The number that is next.
    next: u64,
    /// The last number.
    end: u64,
    /// The first of the numbers before `next` that a gap fill is still to tell of.
    fill_from: Option<u64>,
    /// The owner looks for messages up to a number: the recall's id, and that number.
    recall: Option<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// They were sent before: possible duplicates, and administrative ones are passed over.
    Again,
    /// They had to wait: sent as they would have been.
    First,
}

/// A message that the owner has found.
#[derive(Clone, Copy)]
struct Recalled<'a> {
    msg_type: &'a [u8],
    /// When it was first sent.
    time: Timestamp,
    /// What follows the fields that each message has.
    body: &'a [u8],
}

impl Replay {
    pub(super) const fn is_recalling(&self) -> bool {
        self.recall.is_some()
    }

    const fn new(kind: Kind, begin: u64, end: u64) -> Self {
        Self {
            kind,
            next: begin,
            end,
            fill_from: None,
            recall: None,
        }
    }

    /// Passes over all numbers up to `through`: a gap fill tells of them.
    const fn pass(&mut self, through: u64) {
        if self.fill_from.is_none() {
            self.fill_from = Some(self.next);
        }
        self.next = through + 1;
    }
}

impl Outbound {
    /// Starts to send again what has the numbers `begin` to `end`, as far as they were sent. Takes the place of a replay
    /// that is not done: the peer asks for what it misses.
    pub(super) fn start_replay(&mut self, begin: u64, end: u64) {
        let end = end.min(self.transmitted);
        self.replay = (begin <= end).then_some(Replay::new(Kind::Again, begin, end));
    }

    /// Goes on with a replay and what waits behind it, a bounded number of messages.
    pub(super) fn pump(&mut self, now: Timestamp, counters: &mut SessionCounters, out: &mut impl Output) {
        for _ in 0..REPLAY_BURST {
            if self.replay.is_none() && self.is_waiting() {
                self.replay = Some(Replay::new(Kind::First, self.transmitted + 1, self.last_to_send()));
            }
            let Some(replay) = self.replay.filter(|replay| !replay.is_recalling()) else {
                return;
            };
            self.replay = self.go_on(now, replay, counters, out);
            self.last_sent = now;
        }
    }

    /// What the owner has found, or that it has not. Numbers between the last one and `sequence` were not found either.
    pub(super) fn on_recalled(
        &mut self,
        now: Timestamp,
        id: u64,
        sequence: u64,
        message: Option<&[u8]>,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) {
        let Some(mut replay) = self.replay else { return };
        let Some((_, end)) = replay.recall.filter(|&(asked, _)| asked == id) else {
            return;
        };
        if sequence < replay.next || sequence > end {
            return;
        }
        let found = message.and_then(Recalled::read);
        let lost_through = if found.is_some() { sequence - 1 } else { sequence };
        if lost_through >= replay.next {
            counters.lost += lost_through + 1 - replay.next;
            replay.pass(lost_through);
        }
        match found {
            Some(found) if replay.kind == Kind::First || is_resent(found.msg_type) => {
                if let Some(from) = replay.fill_from.take() {
                    self.gap_fill(now, from, sequence, replay.kind, out);
                }
                self.repeat_recalled(now, sequence, &found, replay.kind, counters, out);
                replay.next = sequence + 1;
            }
            Some(_) => replay.pass(sequence),
            None => (),
        }
        if replay.next > end {
            replay.recall = None;
        }
        self.replay = Some(replay);
        self.last_sent = now;
    }

    /// Sends the next message of a replay, or the gap fill for a run of others. Gives what is left of the replay.
    fn go_on(
        &mut self,
        now: Timestamp,
        mut replay: Replay,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) -> Option<Replay> {
        while replay.next <= replay.end {
            match self.store.message(replay.next) {
                Some(sent) if replay.kind == Kind::First || is_resent(sent.msg_type) => break,
                Some(_) => replay.pass(replay.next),
                None => {
                    let through = self.store.first_held(replay.next).min(replay.end + 1) - 1;
                    if self.recall(&mut replay, through, out) {
                        return Some(replay);
                    }
                    counters.lost += through + 1 - replay.next;
                    replay.pass(through);
                }
            }
        }
        if let Some(from) = replay.fill_from.take() {
            self.gap_fill(now, from, replay.next, replay.kind, out);
        } else if replay.next <= replay.end {
            self.repeat_stored(now, replay.next, replay.kind, counters, out);
            replay.next += 1;
        }
        (replay.next <= replay.end).then_some(replay)
    }

    /// Asks the owner for messages that are no longer held. Says whether it looks for them.
    fn recall(&mut self, replay: &mut Replay, through: u64, out: &mut impl Output) -> bool {
        self.recalls += 1;
        let recall = Recall {
            id: self.recalls,
            begin: SequenceNumber(replay.next),
            end: SequenceNumber(through),
        };
        let looks = out.recall(recall);
        if looks {
            replay.recall = Some((recall.id, through));
        }
        looks
    }

    /// Sends a message of the store.
    fn repeat_stored(
        &mut self,
        now: Timestamp,
        sequence: u64,
        kind: Kind,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) {
        let Some(sent) = self.store.message(sequence) else {
            return;
        };
        let (time, orig) = kind.times(now, sent.time);
        let mut encoder = self
            .header
            .start(&mut self.scratch, sent.msg_type, sequence, time, orig);
        encoder.raw(sent.body.0);
        encoder.raw(sent.body.1);
        out.transmit(SequenceNumber(sequence), finish(encoder));
        self.repeated(sequence, kind, counters);
    }

    /// Sends a message that the owner has found.
    fn repeat_recalled(
        &mut self,
        now: Timestamp,
        sequence: u64,
        found: &Recalled<'_>,
        kind: Kind,
        counters: &mut SessionCounters,
        out: &mut impl Output,
    ) {
        let (time, orig) = kind.times(now, found.time);
        let mut encoder = self
            .header
            .start(&mut self.scratch, found.msg_type, sequence, time, orig);
        encoder.raw(found.body);
        out.transmit(SequenceNumber(sequence), finish(encoder));
        self.repeated(sequence, kind, counters);
    }

    const fn repeated(&mut self, sequence: u64, kind: Kind, counters: &mut SessionCounters) {
        match kind {
            Kind::Again => counters.resent += 1,
            Kind::First => self.transmitted = sequence,
        }
    }

    fn gap_fill(&mut self, now: Timestamp, sequence: u64, new_sequence: u64, kind: Kind, out: &mut impl Output) {
        let body = SequenceReset {
            gap_fill: true,
            new_sequence,
        };
        let (time, orig) = kind.times(now, now);
        let mut encoder = self
            .header
            .start(&mut self.scratch, body.msg_type(), sequence, time, orig);
        body.encode(&mut encoder);
        out.transmit(SequenceNumber(sequence), finish(encoder));
        if kind == Kind::First {
            self.transmitted = new_sequence - 1;
        }
    }
}

impl Kind {
    /// SendingTime and OrigSendingTime of a message that was numbered at `first`.
    const fn times(self, now: Timestamp, first: Timestamp) -> (Timestamp, Option<Timestamp>) {
        match self {
            Self::Again => (now, Some(first)),
            Self::First => (first, None),
        }
    }
}

impl<'a> Recalled<'a> {
    /// Reads a message that this session wrote once. `None` for anything else.
    fn read(message: &'a [u8]) -> Option<Self> {
        if message.len() + DUPLICATE_LENGTH > MAX_MESSAGE_LENGTH {
            return None;
        }
        let fields = message.get(..message.len().checked_sub(CHECK_SUM_LENGTH)?)?;
        let mut scan = Fields::new(fields);
        let (mut msg_type, mut sent, mut first_sent) = (None, None, None);
        loop {
            let at = scan.position();
            let field = match scan.next() {
                Some(Ok(field)) => field,
                Some(Err(_)) => return None,
                None => return Self::of(msg_type, first_sent.or(sent), b""),
            };
            match field.tag {
                tag::MSG_TYPE => msg_type = Some(field.value),
                tag::SENDING_TIME => sent = parse_timestamp(field.value),
                tag::ORIG_SENDING_TIME => first_sent = parse_timestamp(field.value),
                tag::BEGIN_STRING
                | tag::BODY_LENGTH
                | tag::MSG_SEQ_NUM
                | tag::POSS_DUP_FLAG
                | tag::SENDER_COMP_ID
                | tag::TARGET_COMP_ID => (),
                _ => return Self::of(msg_type, first_sent.or(sent), &fields[at..]),
            }
        }
    }

    fn of(msg_type: Option<&'a [u8]>, time: Option<Timestamp>, body: &'a [u8]) -> Option<Self> {
        Some(Self {
            msg_type: msg_type?,
            time: time?,
            body,
        })
    }
}

/// Messages sent in one call of a replay.
const REPLAY_BURST: usize = 32;

/// What a possible duplicate has more than the first transmission: 43=Y and a 122 with all its decimals, bytes.
const DUPLICATE_LENGTH: usize = 5 + 4 + TIMESTAMP_LENGTH + 1;

/// `10=nnn<SOH>`.
const CHECK_SUM_LENGTH: usize = 7;
