//! Writes messages into a caller's buffer.
//!
//! BodyLength stands before the body and is known after it. Room for its longest form is left at the start of the buffer;
//! the prefix is then written flush against the body, so that the length carries no padding and nothing moves.

use super::frame::check_sum;
use super::message::Routing;
use super::value::{self, Digits};
use super::{MAX_MESSAGE_LENGTH, MAX_TEXT_LENGTH, SOH, Version, tag, time};
use types::{Price, Timestamp};

/// The body of one message type.
pub trait Body {
    /// MsgType (35).
    fn msg_type(&self) -> &'static [u8];

    /// Writes the body's fields. At most [`super::MAX_VALUE_LENGTH`] bytes a value, so that they fit in a message.
    fn encode(&self, encoder: &mut Encoder<'_>);
}

/// What the header of an outgoing message says.
#[derive(Clone, Copy, Debug)]
pub struct MessageHeader<'a> {
    /// The version spoken: BeginString (8), and what timestamps may have.
    pub version: Version,
    /// SenderCompID (49).
    pub sender_comp_id: &'a [u8],
    /// TargetCompID (56).
    pub target_comp_id: &'a [u8],
    /// MsgSeqNum (34).
    pub sequence: u64,
    /// SendingTime (52).
    pub sending_time: Timestamp,
    /// When the number was first sent (122); makes the message a possible duplicate (43=Y).
    pub orig_sending_time: Option<Timestamp>,
}

/// Decimals of timestamps. Versions before 4.2 have none, whatever is asked for ([`TimePrecision::of`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TimePrecision {
    /// None.
    Seconds,
    /// Three, all that FIX 4.2 to 4.4 allow.
    #[default]
    Milliseconds,
    /// Six, as later versions allow and most engines read.
    Microseconds,
    /// Nine.
    Nanoseconds,
}

/// Writes one message. A field that does not fit is left out and [`Encoder::finish`] then gives nothing.
#[derive(Debug)]
pub struct Encoder<'b> {
    buffer: &'b mut [u8],
    at: usize,
    body_at: usize,
    version: Version,
    precision: TimePrecision,
    overflowed: bool,
}

impl TimePrecision {
    /// What is written of it in a version.
    #[must_use]
    pub const fn of(self, version: Version) -> Self {
        if version.has_milliseconds() {
            self
        } else {
            Self::Seconds
        }
    }
}

impl<'b> Encoder<'b> {
    /// Starts a message of type `msg_type` and writes its header.
    #[must_use]
    pub fn start(buffer: &'b mut [u8], msg_type: &[u8], header: &MessageHeader<'_>, precision: TimePrecision) -> Self {
        let mut encoder = Self {
            buffer,
            at: HEADROOM,
            body_at: 0,
            version: header.version,
            precision: precision.of(header.version),
            overflowed: false,
        };
        encoder.text(tag::MSG_TYPE, msg_type);
        encoder.number(tag::MSG_SEQ_NUM, header.sequence);
        if header.orig_sending_time.is_some() {
            encoder.flag(tag::POSS_DUP_FLAG, true);
        }
        encoder.text(tag::SENDER_COMP_ID, header.sender_comp_id);
        encoder.time(tag::SENDING_TIME, header.sending_time);
        encoder.text(tag::TARGET_COMP_ID, header.target_comp_id);
        if let Some(time) = header.orig_sending_time {
            encoder.time(tag::ORIG_SENDING_TIME, time);
        }
        encoder.body_at = encoder.at;
        encoder
    }

    /// The version that the message is written in.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// `tag=text`. Nothing when the text is empty.
    #[inline]
    pub fn text(&mut self, tag: u32, text: &[u8]) {
        if !text.is_empty() {
            self.field(tag, text);
        }
    }

    /// Text (58), cut to its greatest length. Nothing when it is empty.
    pub fn free_text(&mut self, text: &[u8]) {
        self.text(tag::TEXT, &text[..text.len().min(MAX_TEXT_LENGTH)]);
    }

    /// `tag=c`.
    #[inline]
    pub fn code(&mut self, tag: u32, code: u8) {
        self.field_of(tag, |text: &mut [u8; 1]| {
            text[0] = code;
            1
        });
    }

    /// `tag=Y` or `tag=N`.
    #[inline]
    pub fn flag(&mut self, tag: u32, flag: bool) {
        self.code(tag, if flag { b'Y' } else { b'N' });
    }

    /// `tag=digits`.
    #[inline]
    pub fn number(&mut self, tag: u32, value: u64) {
        self.field_of(tag, |text: &mut [u8; 20]| value::write_u64(value, text));
    }

    /// `tag=digits`, with a minus sign below zero.
    pub fn integer(&mut self, tag: u32, value: i32) {
        self.field_of(tag, |text: &mut [u8; 11]| value::write_i32(value, text));
    }

    /// The third parties' fields of the header that are not empty, in the order of their tags.
    pub fn routing(&mut self, routing: &Routing<'_>) {
        self.text(tag::ON_BEHALF_OF_COMP_ID, routing.on_behalf_of_comp_id);
        self.text(tag::ON_BEHALF_OF_SUB_ID, routing.on_behalf_of_sub_id);
        self.text(tag::DELIVER_TO_COMP_ID, routing.deliver_to_comp_id);
        self.text(tag::DELIVER_TO_SUB_ID, routing.deliver_to_sub_id);
        // FIX 4.0 has no locations.
        if self.version != Version::Fix40 {
            self.text(tag::ON_BEHALF_OF_LOCATION_ID, routing.on_behalf_of_location_id);
            self.text(tag::DELIVER_TO_LOCATION_ID, routing.deliver_to_location_id);
        }
    }

    /// `tag=price` without needless zeros. Nothing when it is [`Price::NULL`].
    #[inline]
    pub fn price(&mut self, tag: u32, price: Price) {
        if !price.is_null() {
            self.field_of(tag, |text| value::write_price(price, text));
        }
    }

    /// `tag=timestamp`, with the message's precision.
    #[inline]
    pub fn time(&mut self, tag: u32, time: Timestamp) {
        let precision = self.precision;
        self.field_of(tag, |text| time::write_timestamp(time, precision, text));
    }

    /// Fields that are already encoded, delimiters included.
    pub fn raw(&mut self, fields: &[u8]) {
        match self.buffer.get_mut(self.at..self.at + fields.len()) {
            Some(slot) => {
                slot.copy_from_slice(fields);
                self.at += fields.len();
            }
            None => self.overflowed = true,
        }
    }

    /// The body's fields so far.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.buffer.get(self.body_at..self.at).unwrap_or_default()
    }

    /// Writes BeginString, BodyLength and CheckSum, and gives the whole message. `None` when it did not fit.
    #[must_use]
    pub fn finish(mut self) -> Option<&'b [u8]> {
        let length = Digits::new((self.at - HEADROOM) as u64);
        let digits = length.as_bytes();
        let prefix = prefix(self.version);
        let start = HEADROOM - prefix.len() - digits.len() - 1;
        if self.overflowed {
            return None;
        }
        self.buffer[start..start + prefix.len()].copy_from_slice(prefix);
        self.buffer[HEADROOM - 1 - digits.len()..HEADROOM - 1].copy_from_slice(digits);
        self.buffer[HEADROOM - 1] = SOH;
        let sum = check_sum(&self.buffer[start..self.at]);
        self.field(
            tag::CHECK_SUM,
            &[b'0' + sum / 100, b'0' + sum / 10 % 10, b'0' + sum % 10],
        );
        if self.overflowed || self.at - start > MAX_MESSAGE_LENGTH {
            return None;
        }
        Some(&self.buffer[start..self.at])
    }

    /// `tag=value`.
    #[inline(always)]
    fn field(&mut self, tag: u32, value: &[u8]) {
        let Some((prefix_length, room)) = self.room(tag, value.len()) else {
            return;
        };
        let end = prefix_length + value.len();
        room[prefix_length..end].copy_from_slice(value);
        room[end] = SOH;
        self.at += end + 1;
    }

    /// `tag=` and a value of at most `N` bytes that `write` puts in place, giving its length.
    #[inline(always)]
    fn field_of<const N: usize>(&mut self, tag: u32, write: impl FnOnce(&mut [u8; N]) -> usize) {
        let Some((prefix_length, room)) = self.room(tag, N) else {
            return;
        };
        let Some(text) = room[prefix_length..].first_chunk_mut() else {
            return;
        };
        let end = prefix_length + write(text);
        room[end] = SOH;
        self.at += end + 1;
    }

    /// The rest of the buffer, with `tag=` at its start, when a value of that length fits in it. Inlined so that the digits
    /// of a constant tag are constants too.
    #[inline(always)]
    fn room(&mut self, tag: u32, value_length: usize) -> Option<(usize, &mut [u8])> {
        let (prefix, prefix_length) = tag_prefix(tag);
        match self.buffer.get_mut(self.at..) {
            // Eight bytes are copied whatever the prefix's length; the value then overwrites what is too much.
            Some(room) if room.len() > PREFIX_BYTES + value_length => {
                room[..PREFIX_BYTES].copy_from_slice(&prefix);
                Some((prefix_length, room))
            }
            _ => {
                self.overflowed = true;
                None
            }
        }
    }
}

/// `tag=`, padded, and its length.
#[inline(always)]
const fn tag_prefix(tag: u32) -> ([u8; PREFIX_BYTES], usize) {
    let mut text = [0; PREFIX_BYTES];
    let mut length = if tag < 10 {
        1
    } else if tag < 100 {
        2
    } else if tag < 1_000 {
        3
    } else if tag < 10_000 {
        4
    } else {
        5
    };
    text[length] = b'=';
    let prefix_length = length + 1;
    let mut rest = tag;
    while length > 0 {
        length -= 1;
        text[length] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    (text, prefix_length)
}

/// Longest prefix: five digits and `=`, rounded up to a machine word.
const PREFIX_BYTES: usize = 8;

/// What stands before the digits of BodyLength.
const fn prefix(version: Version) -> &'static [u8] {
    match version {
        Version::Fix40 => b"8=FIX.4.0\x019=",
        Version::Fix41 => b"8=FIX.4.1\x019=",
        Version::Fix42 => b"8=FIX.4.2\x019=",
        Version::Fix43 => b"8=FIX.4.3\x019=",
        Version::Fix44 => b"8=FIX.4.4\x019=",
        Version::Fix50 | Version::Fix50Sp1 | Version::Fix50Sp2 => b"8=FIXT.1.1\x019=",
    }
}

/// Room for the longest prefix, four digits and a delimiter.
const HEADROOM: usize = prefix(Version::Fix50).len() + 4 + 1;

const _: () = assert!(MAX_MESSAGE_LENGTH < 10_000, "BodyLength has room for four digits");

#[cfg(test)]
mod tests {
    use super::super::{Fields, Frame, Scratch, frame, msg_type};
    use super::*;
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const HEADER: MessageHeader<'static> = MessageHeader {
        version: Version::Fix44,
        sender_comp_id: b"GATE",
        target_comp_id: b"CLIENT",
        sequence: 12,
        sending_time: Timestamp(1_772_323_200_123_456_789),
        orig_sending_time: None,
    };

    fn encode(header: &MessageHeader<'_>, precision: TimePrecision, fill: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut buffer = vec![0; 512];
        let mut encoder = Encoder::start(&mut buffer, msg_type::HEARTBEAT, header, precision);
        fill(&mut encoder);
        encoder.finish().unwrap().to_vec()
    }

    fn readable(message: &[u8]) -> String {
        String::from_utf8(message.to_vec()).unwrap().replace('\x01', "|")
    }

    #[test]
    fn a_message_has_header_length_and_sum() {
        let message = encode(&HEADER, TimePrecision::Milliseconds, |encoder| {
            encoder.text(112, b"ping")
        });
        // Length and sum are from a separate computation in Python.
        assert_eq!(
            readable(&message),
            "8=FIX.4.4|9=63|35=0|34=12|49=GATE|52=20260301-00:00:00.123|56=CLIENT|112=ping|10=075|"
        );
        assert_eq!(frame(&message), Frame::Message(message.len()));
    }

    #[test]
    fn a_possible_duplicate_says_when_it_was_first_sent() {
        let header = MessageHeader {
            orig_sending_time: Some(Timestamp(1_500_000_000)),
            ..HEADER
        };
        let message = encode(&header, TimePrecision::Microseconds, |_| ());
        assert!(
            readable(&message)
                .contains("|34=12|43=Y|49=GATE|52=20260301-00:00:00.123456|56=CLIENT|122=19700101-00:00:01.500000|10=")
        );
        let mut scratch = Scratch::new();
        let parsed = scratch.parse(&message);
        assert!(parsed.poss_dup() && parsed.violation().is_none());
        assert_eq!(parsed.orig_sending_time(), Timestamp(1_500_000_000));
    }

    #[test]
    fn a_version_has_its_begin_string_and_its_decimals() {
        for version in Version::ALL {
            let header = MessageHeader { version, ..HEADER };
            for (precision, decimals) in [
                (TimePrecision::Seconds, ""),
                (TimePrecision::Milliseconds, ".123"),
                (TimePrecision::Microseconds, ".123456"),
                (TimePrecision::Nanoseconds, ".123456789"),
            ] {
                let message = encode(&header, precision, |_| ());
                assert_eq!(frame(&message), Frame::Message(message.len()));
                let decimals = if version < Version::Fix42 { "" } else { decimals };
                let start = alloc::format!("8={}|9=", core::str::from_utf8(version.begin_string()).unwrap());
                assert!(readable(&message).starts_with(&start));
                assert!(readable(&message).contains(&alloc::format!("|52=20260301-00:00:00{decimals}|")));
            }
        }
    }

    #[test]
    fn what_does_not_fit_gives_nothing() {
        for size in 0..120 {
            let mut buffer = vec![0; size];
            let mut encoder = Encoder::start(&mut buffer, msg_type::HEARTBEAT, &HEADER, TimePrecision::Milliseconds);
            encoder.text(58, b"a text that takes some room");
            encoder.number(34, u64::MAX);
            assert!(encoder.finish().is_none(), "{size}");
        }
    }

    proptest! {
        #[test]
        fn fields_are_read_as_they_were_written(
            tag in 1_u32..99_999, number in any::<u64>(), price in (i64::MIN + 1)..=i64::MAX, text in "[ -~]{1,64}",
        ) {
            prop_assume!(tag::data_field(tag).is_none() && !tag::is_header(tag) && tag != tag::CHECK_SUM);
            let message = encode(&HEADER, TimePrecision::Milliseconds, |encoder| {
                encoder.number(tag, number);
                encoder.price(tag, Price(price));
                encoder.text(tag, text.as_bytes());
            });
            prop_assert_eq!(frame(&message), Frame::Message(message.len()));
            let values: Vec<&[u8]> = Fields::new(&message)
                .map(Result::unwrap)
                .filter(|field| field.tag == tag)
                .map(|field| field.value)
                .collect();
            prop_assert_eq!(super::super::parse_u64(values[0]), Some(number));
            prop_assert_eq!(Price::parse(values[1]), Some(Price(price)));
            prop_assert_eq!(values[2], text.as_bytes());
        }
    }
}
