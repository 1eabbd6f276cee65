//! Reject (3), for messages that broke a session rule, and BusinessMessageReject (j), for messages that are right and
//! cannot be processed.

use super::encoder::{Body, Encoder};
use super::field::{RejectReason, Violation};
use super::message::{Message, Routing};
use super::value::Digits;
use super::{MAX_TEXT_LENGTH, Version, msg_type, tag, value};

/// Reject (3). Versions before 4.2 have its number and text only; there the text names the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionReject<'a> {
    /// Where the answer goes, when third parties carry it: the refused message's way, reversed.
    pub routing: Routing<'a>,
    /// RefSeqNum (45): the message that is refused.
    pub ref_seq_num: u64,
    /// RefMsgType (372); empty when absent.
    pub ref_msg_type: &'a [u8],
    /// RefTagID (371) and SessionRejectReason (373), the latter where the version has its number.
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
    /// The firm that a third party is to deliver to cannot be reached.
    DeliverToFirmNotAvailable = 7,
    /// More messages than are allowed in a time.
    ThrottleLimitExceeded = 8,
}

/// BusinessMessageReject (j). Versions before 4.2 have none: see [`Version::has_business_reject`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusinessMessageReject<'a> {
    /// RefSeqNum (45): the message that is refused; 0 when absent.
    pub ref_seq_num: u64,
    /// RefMsgType (372).
    pub ref_msg_type: &'a [u8],
    /// BusinessRejectRefID (379): the refused request's own id; empty when absent.
    pub business_reject_ref_id: &'a [u8],
    /// BusinessRejectReason (380).
    pub reason: BusinessRejectReason,
    /// Text (58); empty when absent.
    pub text: &'a [u8],
}

impl<'a> SessionReject<'a> {
    /// Reads a message of type 3.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        let reason = value::parse_u64(message.get(tag::SESSION_REJECT_REASON)).and_then(RejectReason::from_u64);
        Ok(Self {
            routing: message.routing(),
            ref_seq_num: value::parse_u64(message.required(tag::REF_SEQ_NUM)?)
                .ok_or(Violation::format(tag::REF_SEQ_NUM))?,
            ref_msg_type: message.get(tag::REF_MSG_TYPE),
            violation: Violation {
                reason: reason.unwrap_or(RejectReason::Other),
                tag: value::parse_i32(message.get(tag::REF_TAG_ID)),
            },
            text: message.get(tag::TEXT),
        })
    }
}

impl Body for SessionReject<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::REJECT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.routing(&self.routing);
        encoder.number(tag::REF_SEQ_NUM, self.ref_seq_num);
        if !encoder.version().rejects_name_the_tag() {
            return encode_text_with_tag(encoder, self.text, self.violation.tag);
        }
        encoder.free_text(self.text);
        if let Some(tag) = self.violation.tag {
            encoder.integer(tag::REF_TAG_ID, tag);
        }
        encoder.text(tag::REF_MSG_TYPE, self.ref_msg_type);
        if self.violation.reason.is_of(encoder.version()) {
            encoder.number(tag::SESSION_REJECT_REASON, self.violation.reason as u64);
        }
    }
}

/// `58=text (tag)`, for versions that have no field for the tag.
fn encode_text_with_tag(encoder: &mut Encoder<'_>, text: &[u8], tag: Option<i32>) {
    let Some(tag) = tag else {
        return encoder.free_text(text);
    };
    let digits = Digits::new(u64::from(tag.unsigned_abs()));
    let sign: &[u8] = if tag < 0 { b"-" } else { b"" };
    let mut joined = [0; MAX_TEXT_LENGTH];
    let mut length = 0;
    for part in [text, b" (", sign, digits.as_bytes(), b")"] {
        let room = &mut joined[length..];
        let taken = part.len().min(room.len());
        room[..taken].copy_from_slice(&part[..taken]);
        length += taken;
    }
    encoder.free_text(&joined[..length]);
}

impl BusinessRejectReason {
    /// Words for Text (58).
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Other => "Other",
            Self::UnknownId => "Unknown ID",
            Self::UnknownSecurity => "Unknown Security",
            Self::UnsupportedMessageType => "Unsupported Message Type",
            Self::ApplicationNotAvailable => "Application not available",
            Self::ConditionallyRequiredFieldMissing => "Conditionally Required Field Missing",
            Self::NotAuthorized => "Not authorized",
            Self::DeliverToFirmNotAvailable => "DeliverTo firm not available at this time",
            Self::ThrottleLimitExceeded => "Throttle limit exceeded",
        }
    }

    /// Whether a version's BusinessRejectReason has this number: FIX 4.2 ends at 5, 4.3 at 7. An extension pack of FIX 5.0
    /// SP2 added 8, which venues use in 4.4 and 5.0 too.
    #[must_use]
    pub const fn is_of(self, version: Version) -> bool {
        match version {
            Version::Fix40 | Version::Fix41 => false,
            Version::Fix42 => self as u8 <= 5,
            Version::Fix43 => self as u8 <= 7,
            _ => true,
        }
    }

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
            7 => Self::DeliverToFirmNotAvailable,
            8 => Self::ThrottleLimitExceeded,
            _ => Self::Other,
        }
    }
}

impl<'a> BusinessMessageReject<'a> {
    /// Reads a message of type j.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        let reason = value::parse_u64(message.required(tag::BUSINESS_REJECT_REASON)?)
            .ok_or(Violation::format(tag::BUSINESS_REJECT_REASON))?;
        Ok(Self {
            ref_seq_num: value::parse_u64(message.get(tag::REF_SEQ_NUM)).unwrap_or(0),
            ref_msg_type: message.required(tag::REF_MSG_TYPE)?,
            business_reject_ref_id: message.get(tag::BUSINESS_REJECT_REF_ID),
            reason: BusinessRejectReason::from_u64(reason),
            text: message.get(tag::TEXT),
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
        encoder.text(tag::BUSINESS_REJECT_REF_ID, self.business_reject_ref_id);
        // The field is required: a version that lacks the number hears "other", and the text.
        let reason = if self.reason.is_of(encoder.version()) {
            self.reason
        } else {
            BusinessRejectReason::Other
        };
        encoder.number(tag::BUSINESS_REJECT_REASON, reason as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::super::samples::{encoded, encoded_body, frame_of, read};
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    const REJECT: SessionReject<'static> = SessionReject {
        routing: NOWHERE,
        ref_seq_num: 7,
        ref_msg_type: b"D",
        violation: Violation::missing(55),
        text: b"Required tag missing",
    };

    const NOWHERE: Routing<'static> = Routing {
        on_behalf_of_comp_id: b"",
        on_behalf_of_sub_id: b"",
        on_behalf_of_location_id: b"",
        deliver_to_comp_id: b"",
        deliver_to_sub_id: b"",
        deliver_to_location_id: b"",
    };

    fn readable(body: &impl Body, version: Version) -> String {
        let bytes: Vec<u8> = encoded_body(body, version);
        String::from_utf8(bytes).unwrap().replace('\x01', "|")
    }

    #[test]
    fn a_reject_names_message_tag_and_reason() {
        let text = "45=7|58=Required tag missing|371=55|372=D|373=1|";
        for version in [Version::Fix42, Version::Fix44, Version::Fix50Sp2] {
            assert_eq!(readable(&REJECT, version), text);
        }
        let frame = encoded(&REJECT, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, SessionReject::decode), Ok(REJECT));
    }

    #[test]
    fn before_4_2_the_text_names_the_tag() {
        for version in [Version::Fix40, Version::Fix41] {
            assert_eq!(readable(&REJECT, version), "45=7|58=Required tag missing (55)|");
        }
        for (tag, text) in [
            (Some(0), "45=7|58=Invalid tag number (0)|"),
            (Some(-1), "45=7|58=Invalid tag number (-1)|"),
            (None, "45=7|58=Invalid tag number|"),
        ] {
            let reject = SessionReject {
                violation: Violation {
                    reason: RejectReason::InvalidTagNumber,
                    tag,
                },
                text: b"Invalid tag number",
                ..REJECT
            };
            assert_eq!(readable(&reject, Version::Fix40), text);
        }
        let reject = SessionReject {
            text: &[b'x'; 2 * MAX_TEXT_LENGTH],
            ..REJECT
        };
        assert_eq!(
            readable(&reject, Version::Fix40).len(),
            "45=7|58=|".len() + MAX_TEXT_LENGTH
        );
    }

    #[test]
    fn a_reason_that_a_version_does_not_have_is_left_out() {
        let reject = |reason| SessionReject {
            violation: Violation::new(reason, 386),
            text: b"",
            ..REJECT
        };
        let count = reject(RejectReason::GroupCount);
        assert_eq!(readable(&count, Version::Fix42), "45=7|371=386|372=D|");
        assert_eq!(readable(&count, Version::Fix43), "45=7|371=386|372=D|373=16|");
        let other = reject(RejectReason::Other);
        assert_eq!(readable(&other, Version::Fix43), "45=7|371=386|372=D|");
        assert_eq!(readable(&other, Version::Fix44), "45=7|371=386|372=D|373=99|");
    }

    #[test]
    fn a_reject_without_a_tag_leaves_it_out() {
        let reject = SessionReject {
            ref_msg_type: b"",
            violation: Violation::without_tag(RejectReason::InvalidTagNumber),
            text: b"",
            ..REJECT
        };
        assert_eq!(readable(&reject, Version::Fix44), "45=7|373=0|");
        let frame = encoded(&reject, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, SessionReject::decode), Ok(reject));
        assert_eq!(
            read(&mut Scratch::new(), &frame_of("3", "58=x|"), SessionReject::decode),
            Err(Violation::missing(45))
        );
    }

    #[test]
    fn a_reject_goes_back_by_the_way_the_message_came() {
        let routing = Routing {
            on_behalf_of_comp_id: b"F",
            on_behalf_of_sub_id: b"S",
            on_behalf_of_location_id: b"L",
            ..NOWHERE
        };
        let reject = SessionReject {
            routing: routing.reversed(),
            violation: Violation {
                reason: RejectReason::InvalidTagNumber,
                tag: Some(-1),
            },
            ..REJECT
        };
        assert_eq!(
            readable(&reject, Version::Fix44),
            "128=F|129=S|145=L|45=7|58=Required tag missing|371=-1|372=D|373=0|"
        );
        let frame = encoded(&reject, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, SessionReject::decode), Ok(reject));
    }

    #[test]
    fn a_business_reject_comes_back() {
        for number in 0..=8 {
            let reject = BusinessMessageReject {
                ref_seq_num: 9,
                ref_msg_type: b"AE",
                business_reject_ref_id: b"ID",
                reason: BusinessRejectReason::from_u64(number),
                text: b"not taken here",
            };
            assert_eq!(reject.reason as u64, number);
            let frame = encoded(&reject, Version::Fix50Sp2);
            assert_eq!(
                read(&mut Scratch::new(), &frame, BusinessMessageReject::decode),
                Ok(reject)
            );
        }
        assert_eq!(
            read(
                &mut Scratch::new(),
                &frame_of("j", "380=3|"),
                BusinessMessageReject::decode
            ),
            Err(Violation::missing(372))
        );
    }

    #[test]
    fn a_throttle_is_another_reason_where_the_version_has_no_number_for_it() {
        let reject = BusinessMessageReject {
            ref_seq_num: 9,
            ref_msg_type: b"D",
            business_reject_ref_id: b"",
            reason: BusinessRejectReason::ThrottleLimitExceeded,
            text: b"slow down",
        };
        assert_eq!(readable(&reject, Version::Fix43), "45=9|58=slow down|372=D|380=0|");
        assert_eq!(readable(&reject, Version::Fix44), "45=9|58=slow down|372=D|380=8|");
    }
}
