//! What comes in once the session is logged on: sequence rules and administrative messages.

use super::admin::{Heartbeat, ResendRequest, SequenceReset, TestRequest, too_low};
use super::gap::Gap;
use super::{Application, CloseReason, Early, Output, Session};
use crate::fix::{MAX_MESSAGE_LENGTH, Message, RejectReason, Scratch, Violation, msg_type, tag};
use core::cmp::Ordering;
use types::{Duration, SequenceNumber, Timestamp};

/// The incoming half of a session.
#[derive(Debug)]
pub(super) struct Inbound {
    /// The number that is expected next.
    pub(super) next: u64,
    /// Messages that are missing and were asked for.
    pub(super) gap: Option<Gap>,
    /// Messages that came while others are missing.
    pub(super) early: Early,
    /// The number of a Logout that came while others are missing.
    pub(super) early_logout: Option<u64>,
    /// The number of this connection's Logon, when it came while others are missing.
    pub(super) early_logon: Option<u64>,
    pub(super) last_received: Timestamp,
    /// When a test request was sent that nothing has followed.
    pub(super) tested_at: Option<Timestamp>,
}

impl Inbound {
    pub(super) fn new(early_bytes: usize) -> Self {
        Self {
            next: 1,
            gap: None,
            early: Early::new(early_bytes),
            early_logout: None,
            early_logon: None,
            last_received: Timestamp::NONE,
            tested_at: None,
        }
    }

    pub(super) const fn connected(&mut self, now: Timestamp) {
        self.last_received = now;
    }

    pub(super) fn disconnected(&mut self) {
        self.tested_at = None;
        self.forget_gap();
    }

    pub(super) fn reset(&mut self) {
        self.next = 1;
        self.forget_gap();
    }

    /// What was early comes again once it is asked for.
    fn forget_gap(&mut self) {
        self.gap = None;
        self.early.clear();
        self.early_logout = None;
        self.early_logon = None;
    }
}

impl Session {
    /// Whether a message that came early has its turn now. The owner then calls [`Session::take_early`].
    #[must_use]
    pub fn has_early(&self) -> bool {
        self.is_live() && self.inbound.early.has(self.inbound.next)
    }

    /// Takes out the message that came early and has its turn now, for [`Session::on_early`]. So it is handled as it would
    /// have been, only later; the owner goes on until there is none.
    pub fn take_early<'b>(&mut self, buffer: &'b mut [u8; MAX_MESSAGE_LENGTH]) -> Option<&'b [u8]> {
        if !self.has_early() {
            return None;
        }
        let length = self.inbound.early.take(self.inbound.next, buffer)?;
        Some(&buffer[..length])
    }

    /// A message that [`Session::take_early`] gave. Gives what the order logic must see.
    pub fn on_early<'f>(
        &mut self,
        now: Timestamp,
        frame: &'f [u8],
        scratch: &'f mut Scratch,
        out: &mut impl Output,
    ) -> Option<Application<'f>> {
        self.now = now;
        let message = self.scan(self.version(), frame, scratch);
        if message.sequence() != Some(self.inbound.next) {
            return None;
        }
        self.on_turn(self.inbound.next, &message, Turn::Waited, out)
    }

    /// A message of a session that is logged on.
    #[inline]
    pub(super) fn on_message<'f>(
        &mut self,
        frame: &[u8],
        message: &Message<'f>,
        out: &mut impl Output,
    ) -> Option<Application<'f>> {
        if message.begin_string() != self.version().begin_string() {
            self.turn_away(CloseReason::BeginString, b"Incorrect BeginString", out);
            return None;
        }
        if let Some((violation, reason)) = self.foreign(message) {
            if message.sequence() == Some(self.inbound.next) {
                self.inbound.next += 1;
            }
            self.refuse(message, violation, out);
            self.turn_away(reason, b"", out);
            return None;
        }
        if self.on_outside_sequence(message, out) {
            return None;
        }
        let Some(sequence) = message.sequence() else {
            self.end(CloseReason::SequenceMissing, b"MsgSeqNum missing or not valid", out);
            return None;
        };
        match sequence.cmp(&self.inbound.next) {
            Ordering::Greater => {
                self.on_too_high(sequence, frame, message, out);
                None
            }
            Ordering::Less => {
                self.on_too_low(sequence, message, out);
                None
            }
            Ordering::Equal => self.on_turn(sequence, message, Turn::Now, out),
        }
    }

    /// What tells that a message is not of this session, or not of this time.
    #[inline]
    pub(super) fn foreign(&self, message: &Message<'_>) -> Option<(Violation, CloseReason)> {
        let (sender, target) = (message.sender_comp_id(), message.target_comp_id());
        // What is missing is told as a violation later.
        if (!sender.is_empty() && sender != self.config.target_comp_id.as_bytes())
            || (!target.is_empty() && target != self.config.sender_comp_id.as_bytes())
        {
            let violation = Violation::without_tag(RejectReason::CompIdProblem);
            return Some((violation, CloseReason::CompId));
        }
        let tolerance = self.config.sending_time_tolerance;
        let distance = Duration(message.sending_time().0.abs_diff(self.now.0));
        if tolerance > Duration(0) && message.sending_time() != Timestamp::NONE && distance > tolerance {
            let violation = Violation::without_tag(RejectReason::SendingTimeAccuracy);
            return Some((violation, CloseReason::SendingTime));
        }
        None
    }

    /// Messages whose number does not matter: a reset, and a Logon that resets a session that goes on.
    fn on_outside_sequence(&mut self, message: &Message<'_>, out: &mut impl Output) -> bool {
        match message.msg_type() {
            msg_type::SEQUENCE_RESET if is_whole_but_for_number(message) => match SequenceReset::decode(message) {
                Ok(reset) if !reset.gap_fill => {
                    self.on_reset(message, &reset, out);
                    true
                }
                _ => false,
            },
            msg_type::LOGON if message.violation().is_none() => self.on_reset_logon(message, out),
            _ => false,
        }
    }

    /// A message after ones that are missing. A resend request is answered at once, or two ends with a gap each would wait
    /// for one another; whatever else it is waits for its turn.
    fn on_too_high(&mut self, sequence: u64, frame: &[u8], message: &Message<'_>, out: &mut impl Output) {
        self.counters.early += 1;
        match message.msg_type() {
            msg_type::LOGOUT if self.ends_with_connection() => return self.on_logout(message, out),
            msg_type::LOGOUT => self.inbound.early_logout = Some(sequence),
            msg_type::RESEND_REQUEST if message.violation().is_none() => {
                if let Ok(request) = ResendRequest::decode(message) {
                    self.outbound.start_replay(request.begin, request.last());
                }
            }
            _ => (),
        }
        if message.msg_type() != msg_type::LOGOUT && !self.inbound.early.put(sequence, frame) {
            self.counters.early_dropped += 1;
        }
        self.ask_for_gap(sequence, out);
    }

    /// A number that was seen.
    pub(super) fn on_too_low(&mut self, sequence: u64, message: &Message<'_>, out: &mut impl Output) {
        if message.poss_dup() {
            if self.accepts_orig_sending_time(message, out) {
                self.counters.duplicates += 1;
            }
            return;
        }
        match message.msg_type() {
            // Neither changes what the peer's numbers mean, and answering helps it more than a quarrel about its number.
            msg_type::LOGOUT => self.on_logout(message, out),
            msg_type::RESEND_REQUEST if message.violation().is_none() => {
                if let Err(violation) = self.on_resend_request(message) {
                    self.refuse(message, violation, out);
                }
            }
            _ => {
                let text = too_low(self.inbound.next, sequence);
                self.end(CloseReason::SequenceTooLow, text.as_bytes(), out);
            }
        }
    }

    /// Whether OrigSendingTime of a possible duplicate is as it must be. Gap fills are exempt: many engines leave it out.
    fn accepts_orig_sending_time(&mut self, message: &Message<'_>, out: &mut impl Output) -> bool {
        if !message.poss_dup() || message.msg_type() == msg_type::SEQUENCE_RESET {
            return true;
        }
        if message.orig_sending_time() == Timestamp::NONE {
            self.refuse(message, Violation::missing(tag::ORIG_SENDING_TIME), out);
            return false;
        }
        if message.orig_sending_time() > message.sending_time() {
            let violation = Violation::without_tag(RejectReason::SendingTimeAccuracy);
            self.refuse(message, violation, out);
            self.turn_away(CloseReason::SendingTime, b"", out);
            return false;
        }
        true
    }

    /// The number that was expected; it is used up.
    #[inline]
    fn on_turn<'f>(
        &mut self,
        sequence: u64,
        message: &Message<'f>,
        turn: Turn,
        out: &mut impl Output,
    ) -> Option<Application<'f>> {
        self.inbound.next = sequence + 1;
        let mut application = None;
        match self.take_turn(sequence, message, turn, out) {
            Ok(true) => application = Some(Application::new(SequenceNumber(sequence), *message)),
            Ok(false) => (),
            Err(violation) => self.refuse(message, violation, out),
        }
        self.settle_gap(out);
        application
    }

    /// Does what an administrative message asks for. Says whether the message is for the order logic.
    fn take_turn(
        &mut self,
        sequence: u64,
        message: &Message<'_>,
        turn: Turn,
        out: &mut impl Output,
    ) -> Result<bool, Violation> {
        // An order whose id is too long is refused as an order is.
        if let Some(violation) = message.violation().filter(|_| message.too_long().is_none()) {
            return Err(violation);
        }
        if !self.accepts_orig_sending_time(message, out) {
            return Ok(false);
        }
        match message.msg_type() {
            msg_type::HEARTBEAT => (),
            msg_type::TEST_REQUEST => {
                let TestRequest { test_req_id } = TestRequest::decode(message)?;
                self.say(&Heartbeat { test_req_id }, out);
            }
            // One that waited was answered when it came, unless there is something wrong with it.
            msg_type::RESEND_REQUEST if turn == Turn::Waited => {
                ResendRequest::decode(message)?;
            }
            msg_type::RESEND_REQUEST => self.on_resend_request(message)?,
            msg_type::SEQUENCE_RESET => self.on_gap_fill(sequence, message)?,
            msg_type::LOGOUT => self.on_logout(message, out),
            msg_type::LOGON => return Err(Violation::new(RejectReason::Other, tag::MSG_TYPE)),
            _ => return Ok(true),
        }
        Ok(false)
    }

    /// What is asked for leaves with the next pump.
    fn on_resend_request(&mut self, message: &Message<'_>) -> Result<(), Violation> {
        let request = ResendRequest::decode(message)?;
        if request.begin >= self.outbound.next {
            return Err(Violation::incorrect(tag::BEGIN_SEQ_NO));
        }
        if request.last() < request.begin {
            return Err(Violation::incorrect(tag::END_SEQ_NO));
        }
        self.outbound.start_replay(request.begin, request.last());
        Ok(())
    }

    fn on_gap_fill(&mut self, sequence: u64, message: &Message<'_>) -> Result<(), Violation> {
        let fill = SequenceReset::decode(message)?;
        if fill.new_sequence <= sequence {
            return Err(Violation::incorrect(tag::NEW_SEQ_NO));
        }
        self.inbound.next = fill.new_sequence;
        Ok(())
    }

    /// SequenceReset-Reset: a way out of disaster. It never lowers the number.
    fn on_reset(&mut self, message: &Message<'_>, reset: &SequenceReset, out: &mut impl Output) {
        if reset.new_sequence < self.inbound.next {
            let violation = Violation::without_tag(RejectReason::ValueIncorrect);
            self.refuse(message, violation, out);
            return;
        }
        self.inbound.next = reset.new_sequence;
        self.settle_gap(out);
    }
}

/// When a message has its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// As it came.
    Now,
    /// It came before ones that were missing.
    Waited,
}

/// Whether nothing is wrong with a message, or only its number, which a reset may leave at 0.
fn is_whole_but_for_number(message: &Message<'_>) -> bool {
    message
        .violation()
        .is_none_or(|violation| violation == Violation::incorrect(tag::MSG_SEQ_NUM))
}
