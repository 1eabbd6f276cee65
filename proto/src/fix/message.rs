//! A received message, scanned once: the values that have a use, by slot, and the first thing that is wrong with it.
//!
//! Values are kept as their place in the frame, in a [`Scratch`] that is used for one message after the other. Nothing of
//! it is cleared in between: a set of bits says which slots this message has filled.

use super::field::{Fields, Place, RejectReason, Violation};
use super::slots::{HEADER_SLOTS, HEADER_WITHOUT_SLOT, SLOTS, SlotSet, bit_of, slot_of};
use super::time::KnownDate;
use super::{MAX_MESSAGE_LENGTH, MAX_SEQUENCE, MAX_VALUE_LENGTH, msg_type, tag, value};
use core::fmt;
use types::Timestamp;

/// Room for the places of one message's values. One serves all sessions of a thread, one message at a time.
#[derive(Clone, Debug)]
pub struct Scratch {
    pub(super) spans: [Span; SLOTS],
    pub(super) date: KnownDate,
}

/// One message. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Message<'f> {
    /// All fields but CheckSum.
    bytes: &'f [u8],
    spans: &'f [Span; SLOTS],
    /// Which slots are filled.
    filled: SlotSet,
    /// Where the body begins.
    body_at: usize,
    sequence: Option<u64>,
    times: Times,
    poss_dup: bool,
    poss_resend: bool,
    violation: Option<Violation>,
}

/// Where a message came from and where it goes when third parties carry it: 115, 116, 144 and 128, 129, 145. Empty where
/// absent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Routing<'a> {
    /// OnBehalfOfCompID (115).
    pub on_behalf_of_comp_id: &'a [u8],
    /// OnBehalfOfSubID (116).
    pub on_behalf_of_sub_id: &'a [u8],
    /// OnBehalfOfLocationID (144).
    pub on_behalf_of_location_id: &'a [u8],
    /// DeliverToCompID (128).
    pub deliver_to_comp_id: &'a [u8],
    /// DeliverToSubID (129).
    pub deliver_to_sub_id: &'a [u8],
    /// DeliverToLocationID (145).
    pub deliver_to_location_id: &'a [u8],
}

/// Where a value stands in the frame: from and to.
pub(super) type Span = [u16; 2];

impl Scratch {
    /// Room for one message.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            spans: [[0; 2]; SLOTS],
            date: KnownDate::NONE,
        }
    }

    /// Scans a message that [`super::frame`] has found, without a dictionary: fields that are no fields, tags that stand
    /// twice, header fields in the body. Any other bytes give a message with a violation.
    #[must_use]
    pub fn parse<'a>(&'a mut self, frame: &'a [u8]) -> Message<'a> {
        self.parse_head(fields_of(frame))
    }

    /// Scans the first fields of a message, none of them CheckSum.
    pub(super) fn parse_head<'a>(&'a mut self, bytes: &'a [u8]) -> Message<'a> {
        let mut scan = Scan::new(self);
        let mut body = Body::NotBegun;
        let mut body_at = bytes.len();
        let mut fields = Fields::new(bytes);
        loop {
            let field_at = fields.position();
            let place = match fields.next_place_inlined() {
                None => break,
                Some(Err(violation)) => {
                    scan.note(violation);
                    continue;
                }
                Some(Ok(place)) => place,
            };
            let slot = slot_of(place.tag);
            if slot < HEADER_SLOTS || slot == HEADER_WITHOUT_SLOT {
                if body != Body::NotBegun {
                    scan.note(Violation::new(RejectReason::TagOutOfOrder, place.tag));
                }
                scan.fill_once(slot, place);
                continue;
            }
            if body == Body::NotBegun {
                body_at = field_at;
                body = scan.body_of(bytes);
            }
            if body == Body::Kept {
                scan.fill_once(slot, place);
            }
        }
        scan.read_times(bytes);
        scan.message(bytes, body_at)
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl<'f> Message<'f> {
    /// The value of a tag; empty when the message has none.
    ///
    /// # Panics
    /// When the tag is none of those that are kept: a defect of whoever asks.
    #[inline]
    #[must_use]
    pub fn get(&self, tag: u32) -> &'f [u8] {
        let slot = slot_of(tag);
        assert!(slot < HEADER_WITHOUT_SLOT, "no slot for this tag");
        if !is_filled(self.filled, slot) {
            return b"";
        }
        let [start, end] = self.spans[usize::from(slot)];
        self.bytes.get(usize::from(start)..usize::from(end)).unwrap_or_default()
    }

    /// The value of a tag that must be there.
    ///
    /// # Errors
    /// A required tag is missing.
    ///
    /// # Panics
    /// As [`Message::get`].
    #[inline]
    pub fn required(&self, tag: u32) -> Result<&'f [u8], Violation> {
        let value = self.get(tag);
        if value.is_empty() {
            return Err(Violation::missing(tag));
        }
        Ok(value)
    }

    /// Whether the message has a value in any of these slots, see [`bits_of`](super::slots::bits_of).
    #[inline]
    pub(super) const fn has_any(&self, slots: SlotSet) -> bool {
        self.filled & slots != 0
    }

    /// BeginString (8).
    #[must_use]
    pub fn begin_string(&self) -> &'f [u8] {
        self.get(tag::BEGIN_STRING)
    }

    /// MsgType (35).
    #[inline]
    #[must_use]
    pub fn msg_type(&self) -> &'f [u8] {
        self.get(tag::MSG_TYPE)
    }

    /// SenderCompID (49); empty when missing.
    #[must_use]
    pub fn sender_comp_id(&self) -> &'f [u8] {
        self.get(tag::SENDER_COMP_ID)
    }

    /// TargetCompID (56); empty when missing.
    #[must_use]
    pub fn target_comp_id(&self) -> &'f [u8] {
        self.get(tag::TARGET_COMP_ID)
    }

    /// ApplVerID (1128); empty when the session's own version holds.
    #[must_use]
    pub fn appl_ver_id(&self) -> &'f [u8] {
        self.get(tag::APPL_VER_ID)
    }

    /// MsgSeqNum (34), 1 to [`MAX_SEQUENCE`]; `None` when missing or no such number.
    #[must_use]
    pub const fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    /// SendingTime (52); [`Timestamp::NONE`] when missing.
    #[must_use]
    pub const fn sending_time(&self) -> Timestamp {
        self.times.sending
    }

    /// OrigSendingTime (122); [`Timestamp::NONE`] when missing.
    #[must_use]
    pub const fn orig_sending_time(&self) -> Timestamp {
        self.times.orig_sending
    }

    /// TransactTime (60); [`Timestamp::NONE`] when missing.
    #[must_use]
    pub const fn transact_time(&self) -> Timestamp {
        self.times.transact
    }

    /// PossDupFlag (43).
    #[must_use]
    pub const fn poss_dup(&self) -> bool {
        self.poss_dup
    }

    /// PossResend (97).
    #[must_use]
    pub const fn poss_resend(&self) -> bool {
        self.poss_resend
    }

    /// The third parties' fields of the header.
    #[must_use]
    pub fn routing(&self) -> Routing<'f> {
        Routing {
            on_behalf_of_comp_id: self.get(tag::ON_BEHALF_OF_COMP_ID),
            on_behalf_of_sub_id: self.get(tag::ON_BEHALF_OF_SUB_ID),
            on_behalf_of_location_id: self.get(tag::ON_BEHALF_OF_LOCATION_ID),
            deliver_to_comp_id: self.get(tag::DELIVER_TO_COMP_ID),
            deliver_to_sub_id: self.get(tag::DELIVER_TO_SUB_ID),
            deliver_to_location_id: self.get(tag::DELIVER_TO_LOCATION_ID),
        }
    }

    /// The first thing that is wrong with the form of the message.
    #[must_use]
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Which of a new order's ClOrdID, Account and Symbol is longer than [`MAX_VALUE_LENGTH`], when that is what is wrong
    /// with the message. Its value is not kept.
    #[must_use]
    pub fn too_long(&self) -> Option<u32> {
        const OF_AN_ORDER: [u32; 3] = [tag::CL_ORD_ID, tag::ACCOUNT, tag::SYMBOL];
        let is_one = |&tag: &u32| self.violation == Some(Violation::incorrect(tag)) && self.get(tag).is_empty();
        let is_order = self.msg_type() == msg_type::NEW_ORDER_SINGLE;
        OF_AN_ORDER.into_iter().find(is_one).filter(|_| is_order)
    }

    /// From the first field after the header to before CheckSum.
    #[must_use]
    pub fn body(&self) -> &'f [u8] {
        self.bytes.get(self.body_at..).unwrap_or_default()
    }

    /// Says what is wrong with it before all else.
    pub(super) const fn refuse(&mut self, violation: Violation) {
        self.violation = Some(violation);
    }

    /// Turns the header's values into what they mean, and looks for those that are missing.
    ///
    /// Inlined, so that the message is put together once: a copy right behind the writes of its parts waits for them.
    #[inline(always)]
    fn read_header(&mut self) {
        let sequence = self.get(tag::MSG_SEQ_NUM);
        self.sequence = value::parse_u64(sequence).filter(|sequence| (1..=MAX_SEQUENCE).contains(sequence));
        self.poss_dup = self.flag(tag::POSS_DUP_FLAG);
        self.poss_resend = self.flag(tag::POSS_RESEND);
        if self.violation.is_some() {
            return;
        }
        // A value that is there is not empty.
        let missing = REQUIRED.into_iter().find(|&tag| !is_filled(self.filled, slot_of(tag)));
        self.violation = match (missing, self.sequence) {
            (Some(tag), _) => Some(Violation::missing(tag)),
            (None, None) => Some(Violation::incorrect(tag::MSG_SEQ_NUM)),
            (None, Some(_)) => None,
        };
    }

    #[inline]
    fn flag(&mut self, tag: u32) -> bool {
        let value = self.get(tag);
        if value.is_empty() {
            return false;
        }
        value::parse_bool(value).unwrap_or_else(|| {
            self.violation.get_or_insert(Violation::format(tag));
            false
        })
    }
}

/// Without the values: they may be long, and one of them is a password.
impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("msg_type", &format_args!("{}", self.msg_type().escape_ascii()))
            .field("sequence", &self.sequence)
            .field("violation", &self.violation)
            .finish_non_exhaustive()
    }
}

impl Routing<'_> {
    /// The way back: what came on behalf of a firm is delivered to it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            on_behalf_of_comp_id: self.deliver_to_comp_id,
            on_behalf_of_sub_id: self.deliver_to_sub_id,
            on_behalf_of_location_id: self.deliver_to_location_id,
            deliver_to_comp_id: self.on_behalf_of_comp_id,
            deliver_to_sub_id: self.on_behalf_of_sub_id,
            deliver_to_location_id: self.on_behalf_of_location_id,
        }
    }
}

/// The times of a message, read once.
#[derive(Clone, Copy)]
struct Times {
    sending: Timestamp,
    orig_sending: Timestamp,
    transact: Timestamp,
}

/// A scan as far as it has come.
pub(super) struct Scan<'s> {
    spans: &'s mut [Span; SLOTS],
    date: &'s mut KnownDate,
    filled: SlotSet,
    times: Times,
    violation: Option<Violation>,
}

/// What is done with the fields after the header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    NotBegun,
    /// Their values are kept.
    Kept,
    /// They are of a message that nobody here reads: without a dictionary, what stands twice in it may be a group.
    Unread,
}

impl<'s> Scan<'s> {
    #[inline]
    pub(super) fn new(scratch: &'s mut Scratch) -> Self {
        Self {
            spans: &mut scratch.spans,
            date: &mut scratch.date,
            filled: 0,
            times: Times {
                sending: Timestamp::NONE,
                orig_sending: Timestamp::NONE,
                transact: Timestamp::NONE,
            },
            violation: None,
        }
    }

    /// Keeps the first violation.
    #[cold]
    pub(super) fn note(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// Keeps a value, unless its tag has no slot or was seen.
    #[inline]
    fn fill_once(&mut self, slot: u8, place: Place) {
        if slot >= HEADER_WITHOUT_SLOT {
            return;
        }
        if is_filled(self.filled, slot) {
            return self.note(Violation::new(RejectReason::TagAppearsTwice, place.tag));
        }
        self.fill(slot, place);
    }

    /// Keeps a value, unless it is too long.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a message is shorter than 64 KiB")]
    pub(super) fn fill(&mut self, slot: u8, place: Place) {
        if place.end - place.start > MAX_VALUE_LENGTH && !may_be_long(place.tag) {
            self.note(Violation::incorrect(place.tag));
            return;
        }
        self.filled |= bit_of(slot);
        self.spans[usize::from(slot)] = [place.start as u16, place.end as u16];
    }

    /// Keeps the time that a field tells, if a message has a place for it. Says whether it tells one.
    #[inline]
    pub(super) fn fill_time(&mut self, tag: u32, value: &[u8]) -> bool {
        let Some(time) = self.date.parse_timestamp(value) else {
            return false;
        };
        match tag {
            tag::SENDING_TIME => self.times.sending = time,
            tag::ORIG_SENDING_TIME => self.times.orig_sending = time,
            tag::TRANSACT_TIME => self.times.transact = time,
            _ => (),
        }
        true
    }

    /// Reads the times of a message that was scanned without looking at its values.
    fn read_times(&mut self, bytes: &[u8]) {
        for tag in [tag::SENDING_TIME, tag::ORIG_SENDING_TIME, tag::TRANSACT_TIME] {
            let slot = slot_of(tag);
            if !is_filled(self.filled, slot) {
                continue;
            }
            let [start, end] = self.spans[usize::from(slot)];
            if !self.fill_time(tag, &bytes[usize::from(start)..usize::from(end)]) {
                self.note(Violation::format(tag));
            }
        }
    }

    fn body_of(&self, bytes: &[u8]) -> Body {
        const MSG_TYPE: u8 = slot_of(tag::MSG_TYPE);
        if !is_filled(self.filled, MSG_TYPE) {
            return Body::Unread;
        }
        let [start, end] = self.spans[usize::from(MSG_TYPE)];
        if msg_type::is_read(&bytes[usize::from(start)..usize::from(end)]) {
            Body::Kept
        } else {
            Body::Unread
        }
    }

    /// The message, once all of it is scanned.
    #[inline]
    pub(super) fn message<'f>(self, bytes: &'f [u8], body_at: usize) -> Message<'f>
    where
        's: 'f,
    {
        let mut message = Message {
            bytes,
            spans: self.spans,
            filled: self.filled,
            body_at,
            sequence: None,
            times: self.times,
            poss_dup: false,
            poss_resend: false,
            violation: self.violation,
        };
        message.read_header();
        message
    }
}

#[inline]
const fn is_filled(filled: SlotSet, slot: u8) -> bool {
    filled & bit_of(slot) != 0
}

/// The bytes of a message's fields but CheckSum.
#[inline]
pub(super) fn fields_of(frame: &[u8]) -> &[u8] {
    let length = frame.len().min(MAX_MESSAGE_LENGTH).saturating_sub(CHECK_SUM_LENGTH);
    &frame[..length]
}

/// Values that nobody keeps or sends back.
const fn may_be_long(tag: u32) -> bool {
    matches!(tag, tag::TEXT | tag::RAW_DATA)
}

/// What a header must have besides what [`super::frame`] looks for.
const REQUIRED: [u32; 4] = [
    tag::MSG_SEQ_NUM,
    tag::SENDER_COMP_ID,
    tag::SENDING_TIME,
    tag::TARGET_COMP_ID,
];

/// `10=nnn<SOH>`.
const CHECK_SUM_LENGTH: usize = 7;

#[cfg(test)]
mod tests {
    use super::super::samples::bytes;
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    fn frame(fields: &str) -> alloc::vec::Vec<u8> {
        bytes(&format!("8=FIX.4.4|9=1|{fields}10=000|"))
    }

    #[test]
    fn the_header_is_read_and_the_body_begins_after_it() {
        let frame = frame("35=D|34=7|49=A|52=19700101-00:00:01|56=B|43=Y|122=19700101-00:00:00.5|97=N|11=x|1=y|");
        let mut scratch = Scratch::new();
        let message = scratch.parse(&frame);
        assert_eq!(message.violation(), Some(Violation::format(122)));
        assert_eq!(message.msg_type(), b"D");
        assert_eq!(message.begin_string(), b"FIX.4.4");
        assert_eq!(
            (message.sender_comp_id(), message.target_comp_id()),
            (&b"A"[..], &b"B"[..])
        );
        assert_eq!(message.sequence(), Some(7));
        assert_eq!(message.sending_time(), Timestamp(1_000_000_000));
        assert!(message.poss_dup() && !message.poss_resend());
        assert_eq!(message.body(), b"11=x\x011=y\x01");
        assert_eq!(
            (message.get(11), message.get(1), message.get(55)),
            (&b"x"[..], &b"y"[..], &b""[..])
        );
        assert_eq!(message.required(55), Err(Violation::missing(55)));
    }

    #[test]
    fn what_is_wrong_with_a_message_is_told() {
        use RejectReason::{InvalidTagNumber, TagAppearsTwice, TagOutOfOrder, TagWithoutValue};
        const REST: &str = "34=1|49=A|52=19700101-00:00:01|56=B|";
        let long = format!("35=D|{REST}11={}|", "x".repeat(MAX_VALUE_LENGTH + 1));
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
            (&format!("35=0|{REST}49=A|"), Some(Violation::new(TagAppearsTwice, 49))),
            (
                "35=0|34=1|49=|52=19700101-00:00:01|56=B|",
                Some(Violation::new(TagWithoutValue, 49)),
            ),
            (
                &format!("35=D|{REST}55=A|55=B|"),
                Some(Violation::new(TagAppearsTwice, 55)),
            ),
            (
                &format!("35=D|{REST}55=A|50=B|"),
                Some(Violation::new(TagOutOfOrder, 50)),
            ),
            (
                &format!("35=D|{REST}55=A|627=1|"),
                Some(Violation::new(TagOutOfOrder, 627)),
            ),
            (
                &format!("35=D|{REST}x=A|"),
                Some(Violation::without_tag(InvalidTagNumber)),
            ),
            (
                &format!("35=D|{REST}9001=|"),
                Some(Violation::new(TagWithoutValue, 9001)),
            ),
            (&long, Some(Violation::incorrect(11))),
            (&long.replace("|11=", "|58="), None),
        ] {
            let frame = frame(fields);
            assert_eq!(Scratch::new().parse(&frame).violation(), violation, "{fields}");
        }
    }

    #[test]
    fn header_fields_behind_the_body_are_read_and_refused() {
        let frame = frame("35=D|55=A|34=5|49=A|52=19700101-00:00:01|56=B|");
        let mut scratch = Scratch::new();
        let message = scratch.parse(&frame);
        assert_eq!(message.sequence(), Some(5));
        assert_eq!(
            message.violation(),
            Some(Violation::new(RejectReason::TagOutOfOrder, 34))
        );
    }

    #[test]
    fn what_stands_twice_in_a_message_that_nobody_reads_may_be_a_group() {
        let frame = frame("35=i|34=1|49=A|52=19700101-00:00:01|56=B|55=A|55=B|");
        assert_eq!(Scratch::new().parse(&frame).violation(), None);
    }

    #[test]
    fn nothing_of_one_message_is_left_in_the_next() {
        let (first, second) = (
            frame("35=D|34=1|49=A|52=19700101-00:00:01|56=B|11=x|55=y|9001=7|"),
            frame("35=D|34=1|49=A|52=19700101-00:00:01|56=B|11=z|"),
        );
        let mut scratch = Scratch::new();
        let values = |message: Message<'_>| [11, 55, 9001].map(|tag| message.get(tag).to_vec());
        assert_eq!(values(scratch.parse(&first)), [&b"x"[..], b"y", b"7"]);
        assert_eq!(values(scratch.parse(&second)), [&b"z"[..], b"", b""]);
    }

    #[test]
    fn the_way_back_is_the_way_reversed() {
        let frame = frame("35=0|34=1|49=A|52=19700101-00:00:01|56=B|115=a|116=b|144=c|128=d|129=e|145=f|");
        let mut scratch = Scratch::new();
        let routing = scratch.parse(&frame).routing();
        let back = routing.reversed();
        assert_eq!(
            [
                back.deliver_to_comp_id,
                back.deliver_to_sub_id,
                back.deliver_to_location_id
            ],
            [&b"a"[..], b"b", b"c"]
        );
        assert_eq!(back.reversed(), routing);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut scratch = Scratch::new();
            let message = scratch.parse(&bytes);
            prop_assert!(message.violation().is_some());
        }
    }
}
