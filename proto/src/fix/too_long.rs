//! A message that is longer than any that is read: it passes by in pieces, and its first bytes are kept for the answer.
//!
//! Its BodyLength may be wrong: then it is garbled, and the good messages that its length claims must not be lost. So
//! bytes pass only as far as no whole message begins in them, and the claim is believed when a right CheckSum stands where
//! it says.

use super::frame::{Frame, TRAILER_LENGTH, find_start, frame, is_trailer};
use super::{SOH, value};

/// A too long message of which the first bytes have come.
#[derive(Clone, Debug)]
pub struct TooLong {
    /// As BodyLength has it, trailer included.
    length: usize,
    /// Bytes that have passed.
    passed: usize,
    /// Their sum.
    sum: u8,
    head: [u8; HEAD_LENGTH],
    head_length: usize,
}

/// What became of a too long message with the bytes that have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// So many bytes are done with, and more are to come. None means that more must be there first.
    On(usize),
    /// It has passed with these bytes.
    Whole(usize),
    /// Its length is wrong, it is garbled. These bytes are done with; the next message may start behind them.
    Garbled(usize),
}

/// First bytes of a message that are kept: room for a header, whose fields the answer needs.
const HEAD_LENGTH: usize = 512;

impl TooLong {
    /// A message of this length, as [`frame`] has found it.
    #[must_use]
    pub const fn new(length: usize) -> Self {
        Self {
            length,
            passed: 0,
            sum: 0,
            head: [0; HEAD_LENGTH],
            head_length: 0,
        }
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Its first fields: as many whole ones as are kept.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        let kept = &self.head[..self.head_length];
        let end = kept.iter().rposition(|&byte| byte == SOH).map_or(0, |at| at + 1);
        &kept[..end]
    }

    /// Takes what has come: the first call all from its start on, the others what follows the bytes that are done with.
    pub fn pass(&mut self, bytes: &[u8]) -> Passage {
        let left = self.length - self.passed;
        if let Some(rest) = bytes.get(..left) {
            return match self.ends_with(rest) {
                true => {
                    self.take(rest);
                    Passage::Whole(left)
                }
                false => Passage::Garbled(find_start(bytes, self.first()).unwrap_or(bytes.len())),
            };
        }
        let mut from = self.first();
        while let Some(at) = find_start(bytes, from) {
            match frame(&bytes[at..]) {
                Frame::Message(_) => return Passage::Garbled(at),
                Frame::Incomplete => return self.pass_on(&bytes[..at], left),
                Frame::TooLong(_) | Frame::Garbled(..) => from = at + 1,
            }
        }
        self.pass_on(bytes, left)
    }

    /// Where another message may start: not where this one does.
    fn first(&self) -> usize {
        usize::from(self.passed == 0)
    }

    /// Lets bytes pass, but for what may belong to the trailer.
    fn pass_on(&mut self, bytes: &[u8], left: usize) -> Passage {
        let before_trailer = left - TRAILER_LENGTH - 1;
        let count = bytes.len().min(before_trailer);
        self.take(&bytes[..count]);
        Passage::On(count)
    }

    /// Whether the rest of the message has a right trailer.
    fn ends_with(&self, rest: &[u8]) -> bool {
        let Some((fields, trailer)) = rest.split_last_chunk::<TRAILER_LENGTH>() else {
            return false;
        };
        let sum = fields.iter().fold(self.sum, |sum, &byte| sum.wrapping_add(byte));
        fields.last() == Some(&SOH) && is_trailer(trailer) && value::parse_u64(&trailer[3..6]) == Some(u64::from(sum))
    }

    fn take(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(HEAD_LENGTH - self.head_length);
        self.head[self.head_length..self.head_length + kept].copy_from_slice(&bytes[..kept]);
        self.head_length += kept;
        self.sum = bytes.iter().fold(self.sum, |sum, &byte| sum.wrapping_add(byte));
        self.passed += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::whole;
    use super::super::{FrameBuffer, MAX_MESSAGE_LENGTH};
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// A message with a Text of that many bytes.
    fn message(text: &str) -> Vec<u8> {
        whole(
            "FIX.4.4",
            &format!("35=B|34=7|49=A|52=20260301-10:00:00|56=B|58={text}|"),
        )
    }

    fn short() -> Vec<u8> {
        whole("FIX.4.4", "35=0|34=8|49=A|52=20260301-10:00:00|56=B|")
    }

    /// The messages of a stream, how many were too long, and how often bytes were skipped.
    fn found(stream: &[u8], piece: usize) -> (usize, u64, u64) {
        let mut buffer = FrameBuffer::new();
        let mut count = 0;
        for piece in stream.chunks(piece) {
            buffer.space()[..piece.len()].copy_from_slice(piece);
            buffer.received(piece.len());
            while buffer.next_frame().is_some() {
                count += 1;
            }
        }
        (count, buffer.too_long(), buffer.garbled())
    }

    #[test]
    fn a_message_that_is_too_long_passes_and_what_follows_is_found() {
        for length in [MAX_MESSAGE_LENGTH, 10_000, 300_000] {
            let stream = [short(), message(&"x".repeat(length)), short()].concat();
            for piece in [1, 13, 997, MAX_MESSAGE_LENGTH] {
                assert_eq!(found(&stream, piece), (2, 1, 0), "{length} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn its_head_has_the_first_fields_and_no_half_one() {
        let long = message(&"x".repeat(5_000));
        let mut passing = TooLong::new(long.len());
        let mut rest = &long[..];
        for end in [1, 40, 4_000, long.len()] {
            let seen = &rest[..end - (long.len() - rest.len())];
            match passing.pass(seen) {
                Passage::On(count) => rest = &rest[count..],
                Passage::Whole(count) => rest = &rest[count..],
                Passage::Garbled(_) => panic!("it is whole"),
            }
        }
        assert!(rest.is_empty());
        assert!(passing.head().ends_with(b"\x0156=B\x01"), "{:?}", passing.head());
    }

    #[test]
    fn a_wrong_length_that_claims_what_follows_is_garbled_and_loses_nothing() {
        let garbled = b"8=FIX.4.4\x019=70000\x0135=B\x0134=7\x0110=000\x01";
        let mut stream = garbled.to_vec();
        for _ in 0..2_000 {
            stream.extend(short());
        }
        for piece in [1, 997, MAX_MESSAGE_LENGTH] {
            assert_eq!(found(&stream, piece), (2_000, 0, 1), "in pieces of {piece}");
        }
    }

    #[test]
    fn a_too_long_message_with_a_wrong_sum_is_garbled() {
        let mut long = message(&"x".repeat(5_000));
        let last_digit = long.len() - 2;
        long[last_digit] ^= 1;
        let (count, too_long, garbled) = found(&[long, short()].concat(), 500);
        assert_eq!((count, too_long), (1, 0));
        assert!(garbled > 0);
    }

    #[test]
    fn what_looks_like_the_start_of_a_message_in_a_too_long_one_is_text() {
        for text in ["8=FIX", "8=FIX.4.4\x019=3000\x0135=D", "8=FIX.4.4\x019=90000\x0135=D"] {
            let long = message(&format!("{}{text}{}", "x".repeat(3_000), "y".repeat(9_000)));
            let stream = [long, short()].concat();
            for piece in [1, 61, MAX_MESSAGE_LENGTH] {
                assert_eq!(found(&stream, piece), (1, 1, 0), "{text:?} in pieces of {piece}");
            }
        }
    }

    proptest! {
        #[test]
        fn good_messages_around_long_and_broken_ones_arrive(
            lengths in proptest::collection::vec(0..9_000_usize, 1..5), at in any::<proptest::sample::Index>(),
            xor in any::<u8>(), piece in 1..MAX_MESSAGE_LENGTH,
        ) {
            let mut stream = Vec::new();
            for length in lengths {
                let mut one = message(&"x".repeat(length));
                let at = at.index(one.len());
                one[at] ^= xor;
                stream.extend(one);
                // A changed digit may claim more than follows: with what fills it the claim is seen to be wrong.
                for _ in 0..200 {
                    stream.extend(short());
                }
            }
            let (count, ..) = found(&stream, piece);
            prop_assert!(count >= 200, "{count}");
        }
    }
}
