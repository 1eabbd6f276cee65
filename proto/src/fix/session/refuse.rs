//! What a message is refused with.

use super::{Application, Output, Session};
use crate::fix::{
    BusinessMessageReject, BusinessRejectReason, Message, RejectReason, SessionReject, Violation, parse_u64, tag,
};
use types::{SequenceNumber, Timestamp};

impl Session {
    /// Sends a Reject (3) for a message with this number.
    pub fn reject(
        &mut self,
        now: Timestamp,
        sequence: SequenceNumber,
        message: &Message<'_>,
        violation: Violation,
        out: &mut impl Output,
    ) {
        self.now = now;
        self.counters.rejected += 1;
        let ref_msg_type = message.msg_type();
        let reject = SessionReject {
            routing: message.routing().reversed(),
            ref_seq_num: sequence.0,
            // A type that is longer than any real one is not worth repeating.
            ref_msg_type: if ref_msg_type.len() > 2 { b"" } else { ref_msg_type },
            violation,
            text: violation.reason.text().as_bytes(),
        };
        self.say(&reject, out);
    }

    /// Refuses an application message that is right and cannot be processed: with a BusinessMessageReject (j), or with a
    /// Reject (3) in versions that have none. `ref_id` is the refused request's own id, when it has one.
    pub fn reject_business(
        &mut self,
        now: Timestamp,
        application: &Application<'_>,
        reason: BusinessRejectReason,
        ref_id: &[u8],
        out: &mut impl Output,
    ) {
        self.now = now;
        if self.version().has_business_reject() {
            let reject = BusinessMessageReject {
                ref_seq_num: application.sequence.0,
                ref_msg_type: application.msg_type,
                business_reject_ref_id: ref_id,
                reason,
                text: reason.text().as_bytes(),
            };
            self.say(&reject, out);
            return;
        }
        let reject = SessionReject {
            routing: application.message.routing().reversed(),
            ref_seq_num: application.sequence.0,
            ref_msg_type: application.msg_type,
            violation: Violation::without_tag(RejectReason::Other),
            text: match reason {
                BusinessRejectReason::UnsupportedMessageType => b"Unsupported message type",
                _ => reason.text().as_bytes(),
            },
        };
        self.counters.rejected += 1;
        self.say(&reject, out);
    }

    /// Rejects a message by its own number, 0 when it has none.
    pub(super) fn refuse(&mut self, message: &Message<'_>, violation: Violation, out: &mut impl Output) {
        let sequence = parse_u64(message.get(tag::MSG_SEQ_NUM)).unwrap_or(0);
        self.reject(self.now, SequenceNumber(sequence), message, violation, out);
    }
}
