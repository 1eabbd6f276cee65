//! The standard header, read once; the body begins where it ends.

use super::field::{Fields, RejectReason, Violation};
use super::tag::{self, is_header};
use super::{time, value};
use types::Timestamp;

/// The header fields of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'f> {
    /// BeginString (8).
    pub begin_string: &'f [u8],
    /// MsgType (35).
    pub msg_type: &'f [u8],
    /// SenderCompID (49); empty when missing.
    pub sender_comp_id: &'f [u8],
    /// TargetCompID (56); empty when missing.
    pub target_comp_id: &'f [u8],
    /// MsgSeqNum (34), 1 to [`Header::MAX_SEQUENCE`]; `None` when missing or no such number.
    pub sequence: Option<u64>,
    /// SendingTime (52); [`Timestamp::NONE`] when missing.
    pub sending_time: Timestamp,
    /// OrigSendingTime (122); [`Timestamp::NONE`] when missing.
    pub orig_sending_time: Timestamp,
    /// PossDupFlag (43).
    pub poss_dup: bool,
    /// PossResend (97).
    pub poss_resend: bool,
    /// The first thing that is wrong with the header.
    pub violation: Option<Violation>,
    /// From the first body field to before CheckSum.
    pub body: &'f [u8],
}

impl<'f> Header<'f> {
    /// Highest sequence number that is taken for one; far from where arithmetic on it could overflow.
    pub const MAX_SEQUENCE: u64 = 1 << 53;

    /// Reads the header of a message that [`super::frame`] has found. Any other bytes give a header with a violation.
    #[must_use]
    pub fn parse(frame: &'f [u8]) -> Self {
        let fields_end = frame.len().saturating_sub(CHECK_SUM_LENGTH);
        let fields_bytes = &frame[..fields_end];
        let mut header = Self {
            begin_string: b"",
            msg_type: b"",
            sender_comp_id: b"",
            target_comp_id: b"",
            sequence: None,
            sending_time: Timestamp::NONE,
            orig_sending_time: Timestamp::NONE,
            poss_dup: false,
            poss_resend: false,
            violation: None,
            body: b"",
        };
        let mut fields = Fields::new(fields_bytes);
        let mut seen = 0_u32;
        loop {
            let body_at = fields.position();
            let taken = match fields.next() {
                None => break,
                Some(Ok(field)) => header.take(field.tag, field.value, &mut seen),
                Some(Err(violation)) => Err(violation),
            };
            match taken {
                Ok(Taken::Header) => (),
                Ok(Taken::NotHeader) => {
                    header.body = &fields_bytes[body_at..];
                    break;
                }
                Err(violation) => {
                    header.violation.get_or_insert(violation);
                }
            }
        }
        header.require();
        header
    }

    /// Takes one field. `seen` has a bit for each tag kept here, so that a second one is told.
    #[inline]
    fn take(&mut self, tag: u32, value: &'f [u8], seen: &mut u32) -> Result<Taken, Violation> {
        let bit = match tag {
            tag::BEGIN_STRING => {
                self.begin_string = value;
                1
            }
            tag::BODY_LENGTH => 2,
            tag::MSG_TYPE => {
                self.msg_type = value;
                4
            }
            tag::SENDER_COMP_ID => {
                self.sender_comp_id = value;
                8
            }
            tag::TARGET_COMP_ID => {
                self.target_comp_id = value;
                16
            }
            tag::MSG_SEQ_NUM => {
                let sequence = value::parse_u64(value).ok_or(Violation::format(tag))?;
                if sequence == 0 || sequence > Self::MAX_SEQUENCE {
                    return Err(Violation::incorrect(tag));
                }
                self.sequence = Some(sequence);
                32
            }
            tag::SENDING_TIME => {
                self.sending_time = time::parse_timestamp(value).ok_or(Violation::format(tag))?;
                64
            }
            tag::ORIG_SENDING_TIME => {
                self.orig_sending_time = time::parse_timestamp(value).ok_or(Violation::format(tag))?;
                128
            }
            tag::POSS_DUP_FLAG => {
                self.poss_dup = value::parse_bool(value).ok_or(Violation::format(tag))?;
                256
            }
            tag::POSS_RESEND => {
                self.poss_resend = value::parse_bool(value).ok_or(Violation::format(tag))?;
                512
            }
            _ if is_header(tag) => return Ok(Taken::Header),
            _ => return Ok(Taken::NotHeader),
        };
        if *seen & bit != 0 {
            return Err(Violation::new(RejectReason::TagAppearsTwice, tag));
        }
        *seen |= bit;
        Ok(Taken::Header)
    }

    fn require(&mut self) {
        if self.violation.is_some() {
            return;
        }
        let missing = if self.sender_comp_id.is_empty() {
            tag::SENDER_COMP_ID
        } else if self.target_comp_id.is_empty() {
            tag::TARGET_COMP_ID
        } else if self.sequence.is_none() {
            tag::MSG_SEQ_NUM
        } else if self.sending_time == Timestamp::NONE {
            tag::SENDING_TIME
        } else {
            return;
        };
        self.violation = Some(Violation::missing(missing));
    }
}

/// What a field is.
enum Taken {
    Header,
    /// The body begins with it.
    NotHeader,
}

/// `10=nnn<SOH>`.
const CHECK_SUM_LENGTH: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    fn bytes(fields: &str) -> String {
        format!("8=FIX.4.4|9=1|{fields}10=000|").replace('|', "\x01")
    }

    #[test]
    fn the_body_begins_after_the_last_header_field() {
        let bytes = bytes("35=D|34=7|49=A|52=19700101-00:00:01|56=B|43=Y|122=19700101-00:00:00.5|97=N|11=x|1=y|");
        let header = Header::parse(bytes.as_bytes());
        assert_eq!(header.violation, Some(Violation::format(122)));
        assert_eq!(header.msg_type, b"D");
        assert_eq!((header.sender_comp_id, header.target_comp_id), (&b"A"[..], &b"B"[..]));
        assert_eq!(header.sequence, Some(7));
        assert_eq!(header.sending_time, Timestamp(1_000_000_000));
        assert!(header.poss_dup && !header.poss_resend);
        assert_eq!(header.body, b"11=x\x011=y\x01");
    }

    #[test]
    fn what_is_wrong_with_a_header_is_told() {
        for (fields, violation) in [
            ("35=0|34=1|49=A|52=19700101-00:00:01|56=B|", None),
            ("35=0|34=1|52=19700101-00:00:01|56=B|", Some(Violation::missing(49))),
            ("35=0|34=1|49=A|52=19700101-00:00:01|", Some(Violation::missing(56))),
            ("35=0|49=A|52=19700101-00:00:01|56=B|", Some(Violation::missing(34))),
            ("35=0|34=1|49=A|56=B|", Some(Violation::missing(52))),
            (
                "35=0|34=0|49=A|52=19700101-00:00:01|56=B|",
                Some(Violation::incorrect(34)),
            ),
            ("35=0|34=x|49=A|52=19700101-00:00:01|56=B|", Some(Violation::format(34))),
            ("35=0|34=1|49=A|52=19700101|56=B|", Some(Violation::format(52))),
            (
                "35=0|34=1|49=A|52=19700101-00:00:01|56=B|43=X|",
                Some(Violation::format(43)),
            ),
            (
                "35=0|34=1|49=A|52=19700101-00:00:01|56=B|49=A|",
                Some(Violation::new(RejectReason::TagAppearsTwice, 49)),
            ),
            (
                "35=0|34=1|49=|52=19700101-00:00:01|56=B|",
                Some(Violation::new(RejectReason::TagWithoutValue, 49)),
            ),
        ] {
            assert_eq!(Header::parse(bytes(fields).as_bytes()).violation, violation, "{fields}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_header(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let header = Header::parse(&bytes);
            prop_assert!(header.body.len() <= bytes.len());
        }
    }
}
