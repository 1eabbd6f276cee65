//! The standard header, read once; the body begins where it ends.

use super::field::{Fields, Violation};
use super::tag::{self, is_header};
use super::values::{Place, TagTable, set};
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
        let mut values: [&[u8]; 9] = [b""; 9];
        let mut fields = Fields::new(fields_bytes);
        loop {
            let body_at = fields.position();
            let taken = match fields.next() {
                None => break,
                Some(Ok(field)) => match HEADER.place(field.tag) {
                    Place::Value(index) => set(&mut values[index], field),
                    Place::Header => Ok(()),
                    // The table ends before some tags of the header.
                    Place::Unused if is_header(field.tag) => Ok(()),
                    Place::Unused => {
                        header.body = &fields_bytes[body_at..];
                        break;
                    }
                },
                Some(Err(violation)) => Err(violation),
            };
            header.note(taken);
        }
        header.fill(&values);
        header
    }

    /// Keeps the first violation.
    #[inline]
    fn note(&mut self, outcome: Result<(), Violation>) {
        if let Err(violation) = outcome {
            self.violation.get_or_insert(violation);
        }
    }

    /// Turns the values, in the table's order, into what they mean.
    fn fill(&mut self, values: &[&'f [u8]; 9]) {
        let [
            begin_string,
            msg_type,
            sequence,
            poss_dup,
            sender,
            time,
            target,
            poss_resend,
            orig_time,
        ] = *values;
        self.begin_string = begin_string;
        self.msg_type = msg_type;
        self.sender_comp_id = sender;
        self.target_comp_id = target;
        self.sequence = value::parse_u64(sequence).filter(|sequence| (1..=Self::MAX_SEQUENCE).contains(sequence));
        self.sending_time = self.time(tag::SENDING_TIME, time);
        self.orig_sending_time = self.time(tag::ORIG_SENDING_TIME, orig_time);
        self.poss_dup = self.flag(tag::POSS_DUP_FLAG, poss_dup);
        self.poss_resend = self.flag(tag::POSS_RESEND, poss_resend);
        if sender.is_empty() {
            self.note(Err(Violation::missing(tag::SENDER_COMP_ID)));
        } else if target.is_empty() {
            self.note(Err(Violation::missing(tag::TARGET_COMP_ID)));
        } else if sequence.is_empty() {
            self.note(Err(Violation::missing(tag::MSG_SEQ_NUM)));
        } else if self.sequence.is_none() {
            self.note(Err(Violation::incorrect(tag::MSG_SEQ_NUM)));
        } else if time.is_empty() {
            self.note(Err(Violation::missing(tag::SENDING_TIME)));
        }
    }

    #[inline]
    fn time(&mut self, tag: u32, value: &[u8]) -> Timestamp {
        if value.is_empty() {
            return Timestamp::NONE;
        }
        time::parse_timestamp(value).unwrap_or_else(|| {
            self.note(Err(Violation::format(tag)));
            Timestamp::NONE
        })
    }

    #[inline]
    fn flag(&mut self, tag: u32, value: &[u8]) -> bool {
        if value.is_empty() {
            return false;
        }
        value::parse_bool(value).unwrap_or_else(|| {
            self.note(Err(Violation::format(tag)));
            false
        })
    }
}

/// The header's tags with a use here.
static HEADER: TagTable<9> = TagTable::new([
    tag::BEGIN_STRING,
    tag::MSG_TYPE,
    tag::MSG_SEQ_NUM,
    tag::POSS_DUP_FLAG,
    tag::SENDER_COMP_ID,
    tag::SENDING_TIME,
    tag::TARGET_COMP_ID,
    tag::POSS_RESEND,
    tag::ORIG_SENDING_TIME,
]);

/// `10=nnn<SOH>`.
const CHECK_SUM_LENGTH: usize = 7;

#[cfg(test)]
mod tests {
    use super::super::RejectReason;
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
            (
                "35=0|34=x|49=A|52=19700101-00:00:01|56=B|",
                Some(Violation::incorrect(34)),
            ),
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
