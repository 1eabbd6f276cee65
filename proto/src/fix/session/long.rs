//! Messages that are longer than any that is read: what their first fields say decides, and the peer hears of it.

use super::{CloseReason, Output, Phase, Session};
use crate::fix::{Message, RejectReason, Scratch, SessionReject, Violation, parse_u64, tag};
use core::cmp::Ordering;
use types::Timestamp;

impl Session {
    /// A message has passed that is longer than [`crate::fix::MAX_MESSAGE_LENGTH`]; `head` has its first whole fields, see
    /// [`crate::fix::TooLong`]. One whose number is readable is refused with a Reject and its number is used up, or the peer
    /// would send it again for ever; else the session ends with a Logout. Then the owner asks [`Session::has_early`].
    pub fn on_too_long(&mut self, now: Timestamp, head: &[u8], scratch: &mut Scratch, out: &mut impl Output) {
        self.now = now;
        let message = scratch.parse_head(head);
        match self.phase {
            Phase::AwaitingLogon | Phase::LogonSent => self.refuse_logon(&message, TEXT, out),
            Phase::LoggedOn | Phase::LogoutSent => {
                self.received(now);
                self.counters.too_long += 1;
                self.refuse_too_long(&message, out);
                self.outbound.pump(now, &mut self.counters, out);
            }
            Phase::TurnedAway(_) | Phase::LogoutAnswered | Phase::Closing | Phase::Disconnected => (),
        }
    }

    fn refuse_too_long(&mut self, message: &Message<'_>, out: &mut impl Output) {
        if message.begin_string() != self.version().begin_string() {
            return self.turn_away(CloseReason::BeginString, b"Incorrect BeginString", out);
        }
        let Some(sequence) = message.sequence().filter(|_| self.foreign(message).is_none()) else {
            return self.end(CloseReason::TooLong, TEXT, out);
        };
        match sequence.cmp(&self.inbound.next) {
            Ordering::Greater => {
                // It finds no room to wait in, and is refused when it comes again.
                self.counters.early += 1;
                self.counters.early_dropped += 1;
                self.ask_for_gap(sequence, out);
            }
            Ordering::Less => self.on_too_low(sequence, message, out),
            Ordering::Equal => {
                self.inbound.next += 1;
                self.reject_too_long(message, out);
                self.settle_gap(out);
            }
        }
    }

    fn reject_too_long(&mut self, message: &Message<'_>, out: &mut impl Output) {
        self.counters.rejected += 1;
        let reject = SessionReject {
            routing: message.routing().reversed(),
            ref_seq_num: parse_u64(message.get(tag::MSG_SEQ_NUM)).unwrap_or(0),
            ref_msg_type: message.msg_type(),
            violation: Violation::without_tag(RejectReason::Other),
            text: TEXT,
        };
        self.say(&reject, out);
    }
}

/// For the peer.
const TEXT: &[u8] = b"message is longer than 4096 bytes";
