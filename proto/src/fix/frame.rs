//! Framing: finds whole messages in a stream of bytes.
//!
//! A message starts with BeginString, BodyLength and MsgType, in this order, and ends with CheckSum. Whatever breaks that
//! form, the length or the sum is garbled: it is skipped and counted, uses up no sequence number, and the search goes on
//! at the next `8=FIX` (FIX 4.4, volume 2, "message integrity" and test case 3). A wrong length never swallows the good
//! messages behind it, because the search goes on inside the bytes that it claimed.
//!
//! A message that is longer than any that is read passes by, see [`TooLong`].

use super::too_long::{Passage, TooLong};
use super::{MAX_MESSAGE_LENGTH, SOH, value};
use alloc::boxed::Box;
use alloc::vec;

/// What stands at the start of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A whole message of this many bytes.
    Message(usize),
    /// The start of a message, or nothing: more bytes are needed.
    Incomplete,
    /// The start of a message of this many bytes, more than [`MAX_MESSAGE_LENGTH`]: it passes by as a [`TooLong`].
    TooLong(usize),
    /// Skip this many bytes, at least one.
    Garbled(usize, GarbledReason),
}

/// Why bytes are garbled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GarbledReason {
    /// They do not start with `8=FIX` and a version.
    BeginString,
    /// BodyLength is not second, no number, or not where the message ends.
    BodyLength,
    /// MsgType is not third.
    MsgType,
    /// CheckSum is not last, no number, or wrong.
    CheckSum,
}

/// The received bytes of one connection that are not handled yet, of bounded size.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    garbled: u64,
    too_long: u64,
    /// The too long message that passes by.
    passing: Option<TooLong>,
}

/// Looks for a message at the start of `bytes`.
#[must_use]
pub fn frame(bytes: &[u8]) -> Frame {
    match parse(bytes) {
        Ok(Some(length)) if length > MAX_MESSAGE_LENGTH => Frame::TooLong(length),
        Ok(Some(length)) => Frame::Message(length),
        Ok(None) => Frame::Incomplete,
        Err(reason) => Frame::Garbled(next_start(bytes), reason),
    }
}

/// The length of the message, or `None` when it is not all there. One that is too long need not be.
fn parse(bytes: &[u8]) -> Result<Option<usize>, GarbledReason> {
    let Some(after_begin) = expect(bytes, START, GarbledReason::BeginString)? else {
        return Ok(None);
    };
    let Some(version) = until_delimiter(after_begin, MAX_VERSION_LENGTH, GarbledReason::BeginString)? else {
        return Ok(None);
    };
    let Some(after_tag) = expect(&after_begin[version + 1..], b"9=", GarbledReason::BodyLength)? else {
        return Ok(None);
    };
    let Some(digits) = until_delimiter(after_tag, MAX_LENGTH_DIGITS, GarbledReason::BodyLength)? else {
        return Ok(None);
    };
    let body_length = value::parse_u64(&after_tag[..digits]).ok_or(GarbledReason::BodyLength)?;
    let body = &after_tag[digits + 1..];
    let body_at = bytes.len() - body.len();
    let body_length = usize::try_from(body_length).map_err(|_| GarbledReason::BodyLength)?;
    if expect(body, b"35=", GarbledReason::MsgType)?.is_none() {
        return Ok(None);
    }
    let end = body_at + body_length;
    if end + TRAILER_LENGTH > MAX_MESSAGE_LENGTH {
        return Ok(Some(end + TRAILER_LENGTH));
    }
    let Some(trailer) = bytes.get(end..end + TRAILER_LENGTH) else {
        return Ok(None);
    };
    if bytes[end - 1] != SOH || !trailer.starts_with(b"10=") {
        return Err(GarbledReason::BodyLength);
    }
    let sum = value::parse_u64(&trailer[3..6]).ok_or(GarbledReason::CheckSum)?;
    if !is_trailer(trailer) || sum != u64::from(check_sum(&bytes[..end])) {
        return Err(GarbledReason::CheckSum);
    }
    Ok(Some(end + TRAILER_LENGTH))
}

/// The sum of all bytes modulo 256.
#[inline]
pub(super) fn check_sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum: u8, &byte| sum.wrapping_add(byte))
}

/// Whether these bytes have the form of a CheckSum field.
pub(super) fn is_trailer(trailer: &[u8]) -> bool {
    trailer.starts_with(b"10=") && trailer.ends_with(&[SOH])
}

/// What follows `prefix`; `None` when the bytes end within it.
fn expect<'a>(bytes: &'a [u8], prefix: &[u8], reason: GarbledReason) -> Result<Option<&'a [u8]>, GarbledReason> {
    if let Some(rest) = bytes.strip_prefix(prefix) {
        return Ok(Some(rest));
    }
    if prefix.starts_with(bytes) {
        Ok(None)
    } else {
        Err(reason)
    }
}

/// The length of the value at the start, 1 to `max`; `None` when its delimiter is not there yet.
fn until_delimiter(bytes: &[u8], max: usize, reason: GarbledReason) -> Result<Option<usize>, GarbledReason> {
    match bytes.iter().take(max + 1).position(|&byte| byte == SOH) {
        Some(0) => Err(reason),
        Some(length) => Ok(Some(length)),
        None if bytes.len() > max => Err(reason),
        None => Ok(None),
    }
}

/// Where, after the first byte, the next message may start.
#[cold]
fn next_start(bytes: &[u8]) -> usize {
    find_start(bytes, 1).unwrap_or(bytes.len())
}

/// The first place from `from` on where a message may start: at `8=FIX`, or at an end that may become it.
pub(super) fn find_start(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let whole = rest.windows(START.len()).position(|window| window == START);
    let at = whole.or_else(|| {
        let first_tail = rest.len().saturating_sub(START.len() - 1);
        (first_tail..rest.len()).find(|&at| START.starts_with(&rest[at..]))
    });
    at.map(|at| from + at)
}

impl FrameBuffer {
    /// A buffer that holds at least two of the longest messages; allocated here and never grown.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; 2 * MAX_MESSAGE_LENGTH].into_boxed_slice(),
            start: 0,
            end: 0,
            garbled: 0,
            too_long: 0,
            passing: None,
        }
    }

    /// Where received bytes go. Never empty once [`FrameBuffer::next_frame`] has returned `None`.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.bytes.len() - self.end < MAX_MESSAGE_LENGTH {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// Says that `count` bytes were put at the start of the space.
    pub fn received(&mut self, count: usize) {
        self.end += count;
        assert!(self.end <= self.bytes.len(), "more bytes received than there was space");
    }

    /// The next whole message. Garbled bytes and too long messages before it are skipped and counted.
    pub fn next_frame(&mut self) -> Option<&[u8]> {
        loop {
            if self.passing.is_some() && !self.pass() {
                return None;
            }
            match frame(&self.bytes[self.start..self.end]) {
                Frame::Message(length) => {
                    let start = self.start;
                    self.start += length;
                    return Some(&self.bytes[start..start + length]);
                }
                Frame::Incomplete => return None,
                Frame::TooLong(length) => self.passing = Some(TooLong::new(length)),
                Frame::Garbled(length, _) => {
                    self.start += length;
                    self.garbled += 1;
                }
            }
        }
    }

    /// Lets a too long message go on. Returns whether it has passed.
    #[cold]
    fn pass(&mut self) -> bool {
        let Some(passing) = &mut self.passing else { return true };
        match passing.pass(&self.bytes[self.start..self.end]) {
            Passage::On(count) => {
                self.start += count;
                return false;
            }
            Passage::Whole(count) => {
                self.start += count;
                self.too_long += 1;
            }
            Passage::Garbled(count) => {
                self.start += count;
                self.garbled += 1;
            }
        }
        self.passing = None;
        true
    }

    /// How many times bytes were skipped.
    #[must_use]
    pub const fn garbled(&self) -> u64 {
        self.garbled
    }

    /// How many messages were longer than [`MAX_MESSAGE_LENGTH`].
    #[must_use]
    pub const fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Forgets what was received, for a new connection. The counts stay.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        self.passing = None;
    }
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// How every message starts.
const START: &[u8] = b"8=FIX";

/// Longest version after `8=FIX`: `T.1.1`.
const MAX_VERSION_LENGTH: usize = 5;

/// Digits of BodyLength, leading zeros included. A length that no message has is told from one that is too long.
const MAX_LENGTH_DIGITS: usize = 9;

/// `10=nnn<SOH>`.
pub(super) const TRAILER_LENGTH: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// A message from a body such as `35=0|`.
    fn message(body: &str) -> Vec<u8> {
        let mut bytes = format!("8=FIX.4.4|9={}|{body}", body.len())
            .replace('|', "\x01")
            .into_bytes();
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        bytes
    }

    fn frames(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
        let mut buffer = FrameBuffer::new();
        let mut found = Vec::new();
        for chunk in bytes.chunks(997) {
            buffer.space()[..chunk.len()].copy_from_slice(chunk);
            buffer.received(chunk.len());
            while let Some(frame) = buffer.next_frame() {
                found.push(frame.to_vec());
            }
        }
        (found, buffer.garbled())
    }

    #[test]
    fn a_message_is_found_byte_by_byte() {
        let message = message("35=0|34=2|49=A|56=B|");
        for length in 0..message.len() {
            assert_eq!(frame(&message[..length]), Frame::Incomplete, "{length}");
        }
        assert_eq!(frame(&message), Frame::Message(message.len()));
    }

    #[test]
    fn what_is_garbled_is_told_why() {
        for (bytes, reason) in [
            ("8=FIX.4.4|9=5|35=0|10=162|", GarbledReason::CheckSum),
            ("8=FIX.4.4|9=5|35=0|10=16x|", GarbledReason::CheckSum),
            ("8=FIX.4.4|9=4|35=0|10=163|", GarbledReason::BodyLength),
            ("8=FIX.4.4|9=6|35=0|10=163|x", GarbledReason::BodyLength),
            ("8=FIX.4.4|9=x|35=0|10=163|", GarbledReason::BodyLength),
            ("8=FIX.4.4|9=|35=0|10=163|", GarbledReason::BodyLength),
            ("8=FIX.4.4|35=0|9=5|10=163|", GarbledReason::BodyLength),
            ("8=FIX.4.4|9=0000000005|", GarbledReason::BodyLength),
            ("8=FIX.4.4|9=5|34=0|10=163|", GarbledReason::MsgType),
            ("8=FIX.4.4.4|9=5|35=0|10=163|", GarbledReason::BeginString),
            ("8=FIX|9=5|35=0|10=163|", GarbledReason::BeginString),
            ("8=FUX.4.4|9=5|35=0|10=163|", GarbledReason::BeginString),
            ("8=FIX.4.4|9=5000|34=0|", GarbledReason::MsgType),
            ("8=FIX.4.4|9=0|35=0|10=163|", GarbledReason::BodyLength),
        ] {
            let bytes = bytes.replace('|', "\x01");
            assert!(
                matches!(frame(bytes.as_bytes()), Frame::Garbled(_, why) if why == reason),
                "{bytes}"
            );
        }
        assert_eq!(
            frame("8=FIX.4.4|9=5|35=0|10=163|".replace('|', "\x01").as_bytes()),
            Frame::Message(26)
        );
    }

    #[test]
    fn good_messages_behind_garbled_bytes_are_found() {
        let good = message("35=0|34=2|");
        for bad in [
            &b"junk"[..],
            b"8=FIX.4.4\x019=20\x0135=0\x0110=000\x01",
            b"8=FIX.4.4\x019=4000\x0135=0\x0110=000\x01",
            b"8=FIX8=FIX8=FIX",
            b"8=FI",
            b"\x01\x01\x01",
        ] {
            let mut bytes = bad.to_vec();
            for _ in 0..500 {
                bytes.extend_from_slice(&good);
            }
            let (found, garbled) = frames(&bytes);
            assert_eq!(found.len(), 500, "{bad:?}");
            assert!(garbled > 0);
        }
    }

    #[test]
    fn a_message_of_the_longest_kind_fits() {
        let body = format!("35=0|58={}|", "x".repeat(MAX_MESSAGE_LENGTH - 7 - 17 - 9));
        let longest = message(&body);
        assert_eq!(longest.len(), MAX_MESSAGE_LENGTH);
        let stream: Vec<u8> = longest.iter().chain(&longest).chain(&longest).copied().collect();
        assert_eq!(frames(&stream).0.len(), 3);
        assert_eq!(
            frame(&message(&format!("{body}1=1|"))),
            Frame::TooLong(MAX_MESSAGE_LENGTH + 4)
        );
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(message("35=0|34=2|")),
            Just(message("35=D|34=3|58=8=FIX.4.4|")),
            Just(b"8=FIX.4.4\x019=4000\x0135=".to_vec()),
            Just(b"8=FIX".to_vec()),
            Just(b"10=000\x01".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..30),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes_are_consumed_within_bounds(pieces in proptest::collection::vec(piece(), 0..60)) {
            let bytes = pieces.concat();
            let mut buffer = FrameBuffer::new();
            for chunk in bytes.chunks(61) {
                let space = buffer.space();
                prop_assert!(space.len() >= chunk.len());
                space[..chunk.len()].copy_from_slice(chunk);
                buffer.received(chunk.len());
                while let Some(found) = buffer.next_frame() {
                    prop_assert_eq!(frame(found), Frame::Message(found.len()));
                }
            }
        }

        #[test]
        fn one_changed_byte_never_passes(at in 0_usize..40, xor in 1_u8..=255) {
            let mut bytes = message("35=0|34=2|49=CLIENT|56=GATE|");
            bytes[at] ^= xor;
            // A byte that claims a longer message leaves it incomplete; none makes it pass.
            prop_assert!(!matches!(frame(&bytes), Frame::Message(_)));
        }
    }
}
