//! What comes in once the session is logged on: sequence rules and administrative messages.

use super::admin::{Heartbeat, Logout, ResendRequest, SequenceReset, TestRequest, TooLowText};
use super::{Application, CloseReason, Output, Phase, Session};
use crate::fix::field::{RejectReason, Violation};
use crate::fix::{Message, msg_type, tag};
use core::cmp::Ordering;
use types::{Duration, SequenceNumber, Timestamp};

/// The incoming half of a session.
#[derive(Debug)]
pub(super) struct Inbound {
    /// The number that is expected next.
    pub(super) next: u64,
    /// Messages that are missing and were asked for.
    gap: Option<Gap>,
    /// A Logout came while others were missing.
    logout_pending: bool,
    pub(super) last_received: Timestamp,
    /// When a test request was sent that nothing has followed.
    pub(super) tested_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Gap {
    /// The number that revealed it: once it is reached nothing is missing.
    through: u64,
    /// When it was asked for, or last grew smaller.
    progress_at: Timestamp,
}

impl Inbound {
    pub(super) const fn new() -> Self {
        Self {
            next: 1,
            gap: None,
            logout_pending: false,
            last_received: Timestamp::NONE,
            tested_at: None,
        }
    }

    pub(super) const fn connected(&mut self, now: Timestamp) {
        self.last_received = now;
    }

    pub(super) const fn disconnected(&mut self) {
        self.gap = None;
        self.logout_pending = false;
        self.tested_at = None;
    }

    pub(super) const fn reset(&mut self) {
        self.next = 1;
        self.gap = None;
        self.logout_pending = false;
    }
}

impl Session {
    /// A message of a session that is logged on.
    pub(super) fn on_message<'f>(&mut self, message: &Message<'f>, out: &mut impl Output) -> Option<Application<'f>> {
        if message.begin_string() != self.config.version.begin_string() {
            self.end(CloseReason::BeginString, b"Incorrect BeginString", out);
            return None;
        }
        let Some(sequence) = message.sequence() else {
            self.end(CloseReason::SequenceMissing, b"MsgSeqNum missing or not valid", out);
            return None;
        };
        if let Some((violation, reason)) = self.foreign(message) {
            if sequence == self.inbound.next {
                self.inbound.next += 1;
            }
            self.refuse(sequence, message, violation, out);
            self.end(reason, violation.reason.text().as_bytes(), out);
            return None;
        }
        if self.on_outside_sequence(sequence, message, out) {
            return None;
        }
        match sequence.cmp(&self.inbound.next) {
            Ordering::Greater => {
                self.on_early(sequence, message, out);
                None
            }
            Ordering::Less => {
                self.on_late(sequence, message, out);
                None
            }
            Ordering::Equal => {
                self.inbound.next += 1;
                let application = self.on_expected(sequence, message, out);
                self.settle_gap(out);
                application
            }
        }
    }

    /// What tells that a message is not of this session, or not of this time.
    pub(super) fn foreign(&self, message: &Message<'_>) -> Option<(Violation, CloseReason)> {
        let comp_id = |tag| (Violation::new(RejectReason::CompIdProblem, tag), CloseReason::CompId);
        // What is missing is told as a violation later.
        if !message.sender_comp_id().is_empty() && message.sender_comp_id() != self.config.target_comp_id.as_bytes() {
            return Some(comp_id(tag::SENDER_COMP_ID));
        }
        if !message.target_comp_id().is_empty() && message.target_comp_id() != self.config.sender_comp_id.as_bytes() {
            return Some(comp_id(tag::TARGET_COMP_ID));
        }
        let tolerance = self.config.sending_time_tolerance;
        let distance = Duration(message.sending_time().0.abs_diff(self.now.0));
        if tolerance > Duration(0) && message.sending_time() != Timestamp::NONE && distance > tolerance {
            let violation = Violation::new(RejectReason::SendingTimeAccuracy, tag::SENDING_TIME);
            return Some((violation, CloseReason::SendingTime));
        }
        None
    }

    /// Messages whose number does not matter: a reset, and a Logon that resets a session that goes on.
    fn on_outside_sequence(&mut self, sequence: u64, message: &Message<'_>, out: &mut impl Output) -> bool {
        match message.msg_type() {
            msg_type::SEQUENCE_RESET if message.violation().is_none() => match SequenceReset::decode(message) {
                Ok(reset) if !reset.gap_fill => {
                    self.on_reset(sequence, message, &reset, out);
                    true
                }
                _ => false,
            },
            msg_type::LOGON if message.violation().is_none() => self.on_reset_logon(sequence, message, out),
            _ => false,
        }
    }

    /// The message after ones that are missing.
    fn on_early(&mut self, sequence: u64, message: &Message<'_>, out: &mut impl Output) {
        self.counters.early += 1;
        match message.msg_type() {
            msg_type::RESEND_REQUEST => {
                if let Ok(request) = ResendRequest::decode(message) {
                    self.answer_resend_request(&request);
                }
            }
            msg_type::TEST_REQUEST => {
                if let Ok(request) = TestRequest::decode(message) {
                    self.say(
                        &Heartbeat {
                            test_req_id: request.test_req_id,
                        },
                        out,
                    );
                }
            }
            msg_type::LOGOUT => self.inbound.logout_pending = true,
            _ => (),
        }
        self.ask_for_gap(sequence, out);
    }

    /// Asks for what is missing, once. Again only when nothing of it has come for long: peers lose requests.
    pub(super) fn ask_for_gap(&mut self, through: u64, out: &mut impl Output) {
        if let Some(gap) = &self.inbound.gap
            && self.now < gap.progress_at + GAP_PATIENCE
        {
            return;
        }
        self.inbound.gap = Some(Gap {
            through,
            progress_at: self.now,
        });
        self.counters.resend_requests += 1;
        let request = ResendRequest {
            begin: self.inbound.next,
            end: 0,
        };
        self.say(&request, out);
    }

    /// A number that was seen.
    fn on_late(&mut self, sequence: u64, message: &Message<'_>, out: &mut impl Output) {
        if !message.poss_dup() {
            let text = TooLowText::new(self.inbound.next, sequence);
            self.end(CloseReason::SequenceTooLow, text.as_bytes(), out);
            return;
        }
        if self.accepts_orig_sending_time(sequence, message, out) {
            self.counters.duplicates += 1;
        }
    }

    /// Whether OrigSendingTime of a possible duplicate is as it must be. Gap fills are exempt: many engines leave it out.
    fn accepts_orig_sending_time(&mut self, sequence: u64, message: &Message<'_>, out: &mut impl Output) -> bool {
        if !message.poss_dup() || message.msg_type() == msg_type::SEQUENCE_RESET {
            return true;
        }
        if message.orig_sending_time() == Timestamp::NONE {
            let violation = Violation::missing(tag::ORIG_SENDING_TIME);
            self.refuse(sequence, message, violation, out);
            return false;
        }
        if message.orig_sending_time() > message.sending_time() {
            let violation = Violation::new(RejectReason::SendingTimeAccuracy, tag::ORIG_SENDING_TIME);
            self.refuse(sequence, message, violation, out);
            self.end(CloseReason::SendingTime, violation.reason.text().as_bytes(), out);
            return false;
        }
        true
    }

    /// The number that was expected; it is used up.
    fn on_expected<'f>(
        &mut self,
        sequence: u64,
        message: &Message<'f>,
        out: &mut impl Output,
    ) -> Option<Application<'f>> {
        if let Some(violation) = message.violation() {
            self.refuse(sequence, message, violation, out);
            return None;
        }
        if !self.accepts_orig_sending_time(sequence, message, out) {
            return None;
        }
        let outcome = match message.msg_type() {
            msg_type::HEARTBEAT => Ok(()),
            msg_type::TEST_REQUEST => TestRequest::decode(message).map(|request| {
                self.say(
                    &Heartbeat {
                        test_req_id: request.test_req_id,
                    },
                    out,
                );
            }),
            msg_type::RESEND_REQUEST => self.on_resend_request(message),
            msg_type::SEQUENCE_RESET => self.on_gap_fill(sequence, message),
            msg_type::LOGOUT => {
                self.on_logout(message, out);
                Ok(())
            }
            msg_type::LOGON => Err(Violation::new(RejectReason::Other, tag::MSG_TYPE)),
            _ => {
                return Some(Application {
                    msg_type: message.msg_type(),
                    sequence: SequenceNumber(sequence),
                    sending_time: message.sending_time(),
                    poss_resend: message.poss_resend(),
                    message: *message,
                });
            }
        };
        if let Err(violation) = outcome {
            self.refuse(sequence, message, violation, out);
        }
        None
    }

    fn on_resend_request(&mut self, message: &Message<'_>) -> Result<(), Violation> {
        let request = ResendRequest::decode(message)?;
        if request.begin >= self.outbound.next() {
            return Err(Violation::incorrect(tag::BEGIN_SEQ_NO));
        }
        if request.end != 0 && request.end < request.begin {
            return Err(Violation::incorrect(tag::END_SEQ_NO));
        }
        self.answer_resend_request(&request);
        Ok(())
    }

    /// What is asked for leaves with the next pump.
    fn answer_resend_request(&mut self, request: &ResendRequest) {
        let end = if request.end == 0 { u64::MAX } else { request.end };
        self.outbound.start_replay(request.begin, end);
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
    fn on_reset(&mut self, sequence: u64, message: &Message<'_>, reset: &SequenceReset, out: &mut impl Output) {
        if reset.new_sequence < self.inbound.next {
            self.refuse(sequence, message, Violation::incorrect(tag::NEW_SEQ_NO), out);
            return;
        }
        self.inbound.next = reset.new_sequence;
        self.settle_gap(out);
    }

    fn on_logout(&mut self, message: &Message<'_>, out: &mut impl Output) {
        let Logout { text } = Logout::decode(message);
        if self.phase == Phase::LogoutSent {
            self.close(CloseReason::LoggedOut, text, out);
            return;
        }
        out.logged_out(text);
        self.answer_logout(out);
    }

    fn answer_logout(&mut self, out: &mut impl Output) {
        self.say(&Logout { text: b"" }, out);
        self.outbound.seal();
        self.enter(Phase::LogoutAnswered);
    }

    /// Notes progress in a gap. Once it is filled, a Logout that came too early is answered.
    fn settle_gap(&mut self, out: &mut impl Output) {
        let Some(gap) = &mut self.inbound.gap else {
            return;
        };
        gap.progress_at = self.now;
        if self.inbound.next <= gap.through {
            return;
        }
        self.inbound.gap = None;
        if self.inbound.logout_pending && matches!(self.phase, Phase::LoggedOn | Phase::LogoutSent) {
            self.inbound.logout_pending = false;
            if self.phase == Phase::LogoutSent {
                self.close(CloseReason::LoggedOut, b"", out);
            } else {
                out.logged_out(b"");
                self.answer_logout(out);
            }
        }
    }

    fn refuse(&mut self, sequence: u64, message: &Message<'_>, violation: Violation, out: &mut impl Output) {
        self.reject(self.now, SequenceNumber(sequence), message, violation, out);
    }
}

/// How long a gap may stay as it is before it is asked for again.
const GAP_PATIENCE: Duration = Duration::from_secs(30);
