//! Reject (3), for messages that broke a session rule, and BusinessMessageReject (j), for messages that are right and
//! cannot be processed.

use super::encoder::{Body, Encoder};
use super::field::{RejectReason, Violation};
use super::order::required;
use super::values::TagTable;
use super::{msg_type, tag, value};

/// Reject (3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionReject<'a> {
    /// RefSeqNum (45): the message that is refused.
    pub ref_seq_num: u64,
    /// RefMsgType (372); empty when absent.
    pub ref_msg_type: &'a [u8],
    /// RefTagID (371) and SessionRejectReason (373).
    pub violation: Violation,
    /// Text (58); empty when absent.
    pub text: &'a [u8],
}

/// BusinessRejectReason (380).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BusinessRejectReason {
    /// None of the others.
    Other = 0,
    /// An id in the message is not known.
    UnknownId = 1,
    /// The instrument is not known.
    UnknownSecurity = 2,
    /// FIX has the message type and this gateway does not take it.
    UnsupportedMessageType = 3,
    /// The order logic cannot take it now.
    ApplicationNotAvailable = 4,
    /// A field that the case needs is missing.
    ConditionallyRequiredFieldMissing = 5,
    /// The peer may not do this.
    NotAuthorized = 6,
}

/// BusinessMessageReject (j).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusinessMessageReject<'a> {
    /// RefSeqNum (45): the message that is refused; 0 when absent.
    pub ref_seq_num: u64,
    /// RefMsgType (372).
    pub ref_msg_type: &'a [u8],
    /// BusinessRejectReason (380).
    pub reason: BusinessRejectReason,
    /// Text (58); empty when absent.
    pub text: &'a [u8],
}

impl<'a> SessionReject<'a> {
    /// Reads the body of a message of type 3.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(body: &'a [u8]) -> Result<Self, Violation> {
        let [ref_seq_num, text, ref_tag_id, ref_msg_type, reason] = SESSION_REJECT.gather(body)?;
        let reason = value::parse_u64(reason).and_then(RejectReason::from_u64);
        let tag = value::parse_u64(ref_tag_id).and_then(|tag| u32::try_from(tag).ok());
        Ok(Self {
            ref_seq_num: value::parse_u64(required(tag::REF_SEQ_NUM, ref_seq_num)?)
                .ok_or(Violation::format(tag::REF_SEQ_NUM))?,
            ref_msg_type,
            violation: Violation::new(reason.unwrap_or(RejectReason::Other), tag.unwrap_or(0)),
            text,
        })
    }
}

impl Body for SessionReject<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::REJECT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::REF_SEQ_NUM, self.ref_seq_num);
        encoder.free_text(self.text);
        if self.violation.tag != 0 {
            encoder.number(tag::REF_TAG_ID, u64::from(self.violation.tag));
        }
        encoder.text(tag::REF_MSG_TYPE, self.ref_msg_type);
        encoder.number(tag::SESSION_REJECT_REASON, self.violation.reason as u64);
    }
}

impl BusinessRejectReason {
    /// From its number on the wire; what is not listed here is [`Self::Other`].
    #[must_use]
    pub const fn from_u64(value: u64) -> Self {
        match value {
            1 => Self::UnknownId,
            2 => Self::UnknownSecurity,
            3 => Self::UnsupportedMessageType,
            4 => Self::ApplicationNotAvailable,
            5 => Self::ConditionallyRequiredFieldMissing,
            6 => Self::NotAuthorized,
            _ => Self::Other,
        }
    }
}

impl<'a> BusinessMessageReject<'a> {
    /// Reads the body of a message of type j.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(body: &'a [u8]) -> Result<Self, Violation> {
        let [ref_seq_num, text, ref_msg_type, reason] = BUSINESS_REJECT.gather(body)?;
        let reason = value::parse_u64(required(tag::BUSINESS_REJECT_REASON, reason)?)
            .ok_or(Violation::format(tag::BUSINESS_REJECT_REASON))?;
        Ok(Self {
            ref_seq_num: value::parse_u64(ref_seq_num).unwrap_or(0),
            ref_msg_type: required(tag::REF_MSG_TYPE, ref_msg_type)?,
            reason: BusinessRejectReason::from_u64(reason),
            text,
        })
    }
}

impl Body for BusinessMessageReject<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::BUSINESS_MESSAGE_REJECT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        if self.ref_seq_num != 0 {
            encoder.number(tag::REF_SEQ_NUM, self.ref_seq_num);
        }
        encoder.free_text(self.text);
        encoder.text(tag::REF_MSG_TYPE, self.ref_msg_type);
        encoder.number(tag::BUSINESS_REJECT_REASON, self.reason as u64);
    }
}

/// The tags of a Reject.
static SESSION_REJECT: TagTable<5> = TagTable::new([
    tag::REF_SEQ_NUM,
    tag::TEXT,
    tag::REF_TAG_ID,
    tag::REF_MSG_TYPE,
    tag::SESSION_REJECT_REASON,
]);

/// The tags of a BusinessMessageReject.
static BUSINESS_REJECT: TagTable<4> = TagTable::new([
    tag::REF_SEQ_NUM,
    tag::TEXT,
    tag::REF_MSG_TYPE,
    tag::BUSINESS_REJECT_REASON,
]);

#[cfg(test)]
mod tests {
    use super::super::{MessageHeader, TimePrecision};
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use types::Timestamp;

    fn body_of(body: &impl Body) -> Vec<u8> {
        let mut buffer = vec![0; 1024];
        let header = MessageHeader {
            sender_comp_id: b"A",
            target_comp_id: b"B",
            sequence: 1,
            sending_time: Timestamp(0),
            orig_sending_time: None,
        };
        let mut encoder = Encoder::start(&mut buffer, body.msg_type(), &header, TimePrecision::Milliseconds);
        body.encode(&mut encoder);
        encoder.body().to_vec()
    }

    #[test]
    fn a_reject_names_message_tag_and_reason() {
        let reject = SessionReject {
            ref_seq_num: 7,
            ref_msg_type: b"D",
            violation: Violation::missing(55),
            text: b"Required tag missing",
        };
        let body = body_of(&reject);
        assert_eq!(body, b"45=7\x0158=Required tag missing\x01371=55\x01372=D\x01373=1\x01");
        assert_eq!(SessionReject::decode(&body), Ok(reject));
    }

    #[test]
    fn a_reject_without_a_tag_leaves_it_out() {
        let reject = SessionReject {
            ref_seq_num: 7,
            ref_msg_type: b"",
            violation: Violation::new(RejectReason::InvalidTagNumber, 0),
            text: b"",
        };
        let body = body_of(&reject);
        assert_eq!(body, b"45=7\x01373=0\x01");
        assert_eq!(SessionReject::decode(&body), Ok(reject));
        assert_eq!(SessionReject::decode(b"58=x\x01"), Err(Violation::missing(45)));
    }

    #[test]
    fn a_business_reject_comes_back() {
        for number in 0..=6 {
            let reject = BusinessMessageReject {
                ref_seq_num: 9,
                ref_msg_type: b"AE",
                reason: BusinessRejectReason::from_u64(number),
                text: b"not taken here",
            };
            assert_eq!(reject.reason as u64, number);
            assert_eq!(BusinessMessageReject::decode(&body_of(&reject)), Ok(reject));
        }
        assert_eq!(
            BusinessMessageReject::decode(b"380=3\x01"),
            Err(Violation::missing(372))
        );
    }
}
