//! The scan over fields, `tag=value<SOH>`, and what a message can do wrong.

use super::{SOH, Version, tag, value};

/// One field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'a> {
    /// Tag number, 1 to 99999.
    pub tag: u32,
    /// The text after `=`, never empty.
    pub value: &'a [u8],
}

/// Where a field's value stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) tag: u32,
    pub(super) start: usize,
    /// Where its delimiter is; after `start`.
    pub(super) end: usize,
}

/// SessionRejectReason (373), as FIX 4.4 and FIXT.1.1 have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum RejectReason {
    /// The tag is not a number, or not one of FIX.
    InvalidTagNumber = 0,
    /// A tag that the message needs is missing.
    RequiredTagMissing = 1,
    /// A tag of FIX that this message type does not have.
    TagNotOfMessage = 2,
    /// A tag that nobody defines.
    UndefinedTag = 3,
    /// Nothing stands after `=`.
    TagWithoutValue = 4,
    /// Out of range, or not one of the values defined for the tag.
    ValueIncorrect = 5,
    /// Not of the tag's type.
    IncorrectDataFormat = 6,
    /// An encrypted part cannot be read.
    DecryptionProblem = 7,
    /// The signature is wrong.
    SignatureProblem = 8,
    /// SenderCompID or TargetCompID is not this session's.
    CompIdProblem = 9,
    /// SendingTime is too far from the clock.
    SendingTimeAccuracy = 10,
    /// No such message type.
    InvalidMsgType = 11,
    /// A part in XML is not valid.
    XmlValidation = 12,
    /// A tag stands twice.
    TagAppearsTwice = 13,
    /// A field of the header stands after the body has begun, or one of the body in the trailer.
    TagOutOfOrder = 14,
    /// The fields of a repeating group are not in their order.
    GroupOutOfOrder = 15,
    /// A repeating group has not as many instances as its count says.
    GroupCount = 16,
    /// A field other than a data field holds the delimiter.
    DelimiterInValue = 17,
    /// An application version that is not spoken here.
    InvalidApplVersion = 18,
    /// None of the others.
    Other = 99,
}

/// What is wrong with a message, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// SessionRejectReason (373).
    pub reason: RejectReason,
    /// RefTagID (371), as it came: a peer may send any number. `None` when no tag can be named.
    pub tag: Option<i32>,
}

/// The fields of a run of bytes, in order. A faulty field is an error and the scan goes on after it.
///
/// Delimiters are found 64 bytes at a time and kept as a bit set. So the search for the end of a field does not wait for
/// where the field began, which a search from field to field would: that chain of loads is most of a scan's time.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    /// Where the next field starts.
    at: usize,
    /// Where the block of 64 bytes starts whose delimiters are in `delimiters`.
    block: usize,
    /// Bit n: there is a delimiter at `block` + n that is not used yet.
    delimiters: u64,
    /// The data field that may follow, and its length.
    data: (u32, usize),
}

impl RejectReason {
    /// All of them, by their number.
    pub const ALL: [Self; 20] = [
        Self::InvalidTagNumber,
        Self::RequiredTagMissing,
        Self::TagNotOfMessage,
        Self::UndefinedTag,
        Self::TagWithoutValue,
        Self::ValueIncorrect,
        Self::IncorrectDataFormat,
        Self::DecryptionProblem,
        Self::SignatureProblem,
        Self::CompIdProblem,
        Self::SendingTimeAccuracy,
        Self::InvalidMsgType,
        Self::XmlValidation,
        Self::TagAppearsTwice,
        Self::TagOutOfOrder,
        Self::GroupOutOfOrder,
        Self::GroupCount,
        Self::DelimiterInValue,
        Self::InvalidApplVersion,
        Self::Other,
    ];

    /// The specification's words, for Text (58).
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTagNumber => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotOfMessage => "Tag not defined for this message type",
            Self::UndefinedTag => "Undefined tag",
            Self::TagWithoutValue => "Tag specified without a value",
            Self::ValueIncorrect => "Value is incorrect (out of range) for this tag",
            Self::IncorrectDataFormat => "Incorrect data format for value",
            Self::DecryptionProblem => "Decryption problem",
            Self::SignatureProblem => "Signature problem",
            Self::CompIdProblem => "CompID problem",
            Self::SendingTimeAccuracy => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::XmlValidation => "XML validation error",
            Self::TagAppearsTwice => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupOutOfOrder => "Repeating group fields out of order",
            Self::GroupCount => "Incorrect NumInGroup count for repeating group",
            Self::DelimiterInValue => "Non \"data\" value includes field delimiter (SOH character)",
            Self::InvalidApplVersion => "Invalid/Unsupported Application Version",
            Self::Other => "Other",
        }
    }

    /// From its number on the wire.
    #[must_use]
    pub fn from_u64(value: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u64 == value)
    }

    /// Whether a version's SessionRejectReason has this number: FIX 4.2 ends at 11, 4.3 at 17. Later ones have all.
    #[must_use]
    pub const fn is_of(self, version: Version) -> bool {
        match version {
            Version::Fix40 | Version::Fix41 => false,
            Version::Fix42 => self as u16 <= 11,
            Version::Fix43 => self as u16 <= 17,
            _ => true,
        }
    }
}

impl Violation {
    /// A tag that the message needs is missing.
    #[must_use]
    pub const fn missing(tag: u32) -> Self {
        Self::new(RejectReason::RequiredTagMissing, tag)
    }

    /// The value is out of range, or not one of those defined.
    #[must_use]
    pub const fn incorrect(tag: u32) -> Self {
        Self::new(RejectReason::ValueIncorrect, tag)
    }

    /// The value is not of the tag's type.
    #[must_use]
    pub const fn format(tag: u32) -> Self {
        Self::new(RejectReason::IncorrectDataFormat, tag)
    }

    /// Any reason.
    #[must_use]
    pub const fn new(reason: RejectReason, tag: u32) -> Self {
        Self {
            reason,
            tag: Some(tag.cast_signed()),
        }
    }

    /// A reason that no tag can be named for.
    #[must_use]
    pub const fn without_tag(reason: RejectReason) -> Self {
        Self { reason, tag: None }
    }
}

impl<'a> Fields<'a> {
    /// The fields of `bytes`.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            block: 0,
            delimiters: delimiters(bytes, 0),
            data: (0, 0),
        }
    }

    /// Where the next field starts.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The next field, by where its value stands.
    pub(super) fn next_place(&mut self) -> Option<Result<Place, Violation>> {
        self.next_place_inlined()
    }

    /// The same, for the one loop that all messages go through: there the result is never put together.
    #[inline(always)]
    pub(super) fn next_place_inlined(&mut self) -> Option<Result<Place, Violation>> {
        let bytes = self.bytes;
        if self.at >= bytes.len() {
            return None;
        }
        let Some((tag, start)) = tag_at(bytes, self.at) else {
            return Some(Err(self.no_tag()));
        };
        let end = if self.data.0 == tag {
            match self.data_end(start) {
                Some(end) => end,
                None => return Some(Err(self.skip(Violation::format(tag)))),
            }
        } else {
            self.next_delimiter()
        };
        self.at = end + 1;
        self.data.0 = 0;
        // Without a delimiter at its end the run of bytes was cut: take what is there.
        if end <= start {
            return Some(Err(Violation::new(RejectReason::TagWithoutValue, tag)));
        }
        if tag >= tag::FIRST_DATA_LENGTH
            && let Some(data_tag) = tag::data_field(tag)
        {
            match value::parse_u64(&bytes[start..end]).map(usize::try_from) {
                Some(Ok(length)) if length <= bytes.len() => self.data = (data_tag, length),
                _ => return Some(Err(Violation::format(tag))),
            }
        }
        Some(Ok(Place { tag, start, end }))
    }

    /// Steps over a field that does not start with a tag.
    #[cold]
    fn no_tag(&mut self) -> Violation {
        let violation = Violation {
            reason: RejectReason::InvalidTagNumber,
            tag: faulty_tag(&self.bytes[self.at..]),
        };
        self.skip(violation)
    }

    /// Where the data field ends that starts at `start`; `None` when no delimiter stands there.
    #[cold]
    fn data_end(&mut self, start: usize) -> Option<usize> {
        let end = start.saturating_add(self.data.1);
        if self.bytes.get(end) != Some(&SOH) {
            return None;
        }
        // Uses up the delimiters to the one at the end.
        while self.next_delimiter() < end {}
        Some(end)
    }

    /// Says that the next field is a data field of this tag and length.
    pub(super) const fn expect_data(&mut self, tag: u32, length: usize) {
        self.data = (tag, length);
    }

    /// Where the next delimiter stands, or the length. Uses it up.
    #[inline(always)]
    fn next_delimiter(&mut self) -> usize {
        if self.delimiters == 0 && !self.next_block() {
            return self.bytes.len();
        }
        let found = self.block + self.delimiters.trailing_zeros() as usize;
        self.delimiters &= self.delimiters.wrapping_sub(1);
        found
    }

    /// Goes on to the next block with a delimiter. Says whether there is one.
    fn next_block(&mut self) -> bool {
        while self.delimiters == 0 {
            if self.bytes.len() - self.block.min(self.bytes.len()) <= BLOCK {
                return false;
            }
            self.block += BLOCK;
            self.delimiters = delimiters(self.bytes, self.block);
        }
        true
    }

    /// Steps over the rest of a faulty field whose delimiter is not used up.
    fn skip(&mut self, violation: Violation) -> Violation {
        self.at = self.next_delimiter() + 1;
        self.data = (0, 0);
        violation
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Violation>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let place = self.next_place()?;
        Some(place.map(|place| Field {
            tag: place.tag,
            value: self.bytes.get(place.start..place.end).unwrap_or_default(),
        }))
    }
}

/// The tag that starts at `from`, and where its value starts.
#[inline(always)]
fn tag_at(bytes: &[u8], from: usize) -> Option<(u32, usize)> {
    // Nearly every tag has one to three digits, and a firm's own four. Digits are 0x30 to 0x39, `=` is 0x3d.
    if let Some(&start) = bytes.get(from..).and_then(<[u8]>::first_chunk::<4>) {
        let word = u32::from_le_bytes(start);
        let digit = |at: u32| word >> (8 * at) & 0xf;
        let are_digits = |mask: u32| ((word & mask) + (0x0606_0606 & mask)) & 0x1010_1010 == 0;
        if word & 0x00ff_f0f0 == 0x003d_3030 && are_digits(0x0f0f) {
            let tag = digit(0) * 10 + digit(1);
            return (tag > 0).then_some((tag, from + 3));
        }
        if word & 0xfff0_f0f0 == 0x3d30_3030 && are_digits(0x000f_0f0f) {
            let tag = digit(0) * 100 + digit(1) * 10 + digit(2);
            return (tag > 0).then_some((tag, from + 4));
        }
        if word & 0xfff0 == 0x3d30 && are_digits(0x0f) {
            return (digit(0) > 0).then_some((digit(0), from + 2));
        }
        if word & 0xf0f0_f0f0 == 0x3030_3030 && are_digits(0x0f0f_0f0f) && bytes.get(from + 4) == Some(&b'=') {
            let tag = digit(0) * 1_000 + digit(1) * 100 + digit(2) * 10 + digit(3);
            return (tag > 0).then_some((tag, from + 5));
        }
    }
    any_tag_at(bytes, from)
}

#[cold]
fn any_tag_at(bytes: &[u8], from: usize) -> Option<(u32, usize)> {
    let mut tag = 0;
    for (at, &byte) in bytes.iter().enumerate().skip(from) {
        if byte == b'=' {
            return (tag > 0).then_some((tag, at + 1));
        }
        tag = tag * 10 + digit(byte);
        if digit(byte) > 9 || tag > MAX_TAG {
            return None;
        }
    }
    None
}

/// The number before `=` that is no tag, when it is one that a Reject can repeat: 0, or below.
#[cold]
fn faulty_tag(field: &[u8]) -> Option<i32> {
    value::parse_i32(field.split(|&byte| byte == b'=').next()?)
}

/// The digit's value; above 9 when the byte is no digit.
#[inline]
const fn digit(byte: u8) -> u32 {
    byte.wrapping_sub(b'0') as u32
}

/// A bit for each delimiter in the block of 64 bytes from `at` on, or in as many as there are.
#[inline]
fn delimiters(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(block) = rest.first_chunk() {
        return delimiters_of_block(block);
    }
    // The last block is short: look at the last 64 bytes, and drop those that come before it.
    match bytes.last_chunk() {
        Some(block) if !rest.is_empty() => delimiters_of_block(block) >> (BLOCK - rest.len()),
        _ => delimiters_of_few(rest),
    }
}

/// Compares all bytes at once, which compilers do with vectors; a multiplication then gathers the lowest bits of eight.
#[inline]
fn delimiters_of_block(block: &[u8; BLOCK]) -> u64 {
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0_u8; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(byte == SOH);
    }
    let (words, _) = flags.as_chunks::<8>();
    words.iter().enumerate().fold(0, |bits, (index, &word)| {
        bits | u64::from_le_bytes(word).wrapping_mul(GATHER) >> 56 << (8 * index)
    })
}

/// Of a run that is shorter than a block as a whole.
#[cold]
fn delimiters_of_few(bytes: &[u8]) -> u64 {
    let mut block = [0; BLOCK];
    block[..bytes.len()].copy_from_slice(bytes);
    delimiters_of_block(&block)
}

/// Bytes whose delimiters are found at once: one for each bit of a word.
const BLOCK: usize = 64;

/// Highest tag that is taken for one.
pub(super) const MAX_TAG: u32 = 99_999;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn scan(bytes: &[u8]) -> Vec<Result<(u32, &[u8]), Violation>> {
        Fields::new(bytes)
            .map(|field| field.map(|field| (field.tag, field.value)))
            .collect()
    }

    #[test]
    fn fields_come_in_order() {
        assert_eq!(
            scan(b"35=D\x0111=a=b\x0155=INTC\x01"),
            [Ok((35, &b"D"[..])), Ok((11, b"a=b")), Ok((55, b"INTC"))]
        );
    }

    #[test]
    fn a_faulty_field_is_told_and_the_scan_goes_on() {
        for (bytes, tag) in [
            (&b"x=1\x0155=A\x01"[..], None),
            (b"=1\x0155=A\x01", None),
            (b"0=1\x0155=A\x01", Some(0)),
            (b"-1=1\x0155=A\x01", Some(-1)),
            (b"100000=1\x0155=A\x01", Some(100_000)),
            (b"99999999999=1\x0155=A\x01", None),
            (b"5\x0155=A\x01", None),
            (b"\x0155=A\x01", None),
        ] {
            let reason = RejectReason::InvalidTagNumber;
            assert_eq!(scan(bytes), [Err(Violation { reason, tag }), Ok((55, &b"A"[..]))]);
        }
        assert_eq!(
            scan(b"11=\x0155=A\x01"),
            [
                Err(Violation::new(RejectReason::TagWithoutValue, 11)),
                Ok((55, &b"A"[..]))
            ]
        );
    }

    #[test]
    fn a_data_field_may_hold_the_delimiter() {
        assert_eq!(
            scan(b"95=5\x0196=a\x01=\x01b\x0158=t\x01"),
            [Ok((95, &b"5"[..])), Ok((96, b"a\x01=\x01b")), Ok((58, b"t"))]
        );
    }

    #[test]
    fn a_data_field_with_a_wrong_length_is_refused() {
        assert_eq!(scan(b"95=3\x0196=ab\x01")[1], Err(Violation::format(96)));
        assert_eq!(scan(b"95=99999999\x0196=ab\x01")[0], Err(Violation::format(95)));
    }

    proptest! {
        #[test]
        fn a_scan_ends_and_stays_inside(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut fields = Fields::new(&bytes);
            let mut before = 0;
            while fields.next().is_some() {
                prop_assert!(fields.position() > before);
                before = fields.position();
            }
        }

        #[test]
        fn delimiters_are_found_where_a_plain_search_finds_them(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(2), Just(0x81), any::<u8>()], 0..200),
        ) {
            let mut fields = Fields::new(&bytes);
            for at in (0..bytes.len()).filter(|&at| bytes[at] == SOH) {
                prop_assert_eq!(fields.next_delimiter(), at);
            }
            prop_assert_eq!(fields.next_delimiter(), bytes.len());
        }
    }
}
