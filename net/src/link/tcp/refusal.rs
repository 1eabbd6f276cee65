//! How an end tells the other why it refuses. Soup has two letters for that, and from the server alone, so the reason goes
//! before them, or before the connection's end, in a debug packet: the text `refused`, and in decimal the number of the
//! reason, what was given and what it was measured against, as in LTP.

use proto::ltp::Refusal;
use proto::soup::{LoginRefusal, write_debug};
use std::io::Write;

/// Writes the packet; returns its length.
pub(super) fn write_refusal(refusal: Refusal, out: &mut [u8]) -> usize {
    let (given, held) = refusal.details();
    let mut text = [0; TEXT_MAX];
    let mut rest = &mut text[..];
    let written = write!(rest, "{WORD}{} {given} {held}", refusal.number());
    debug_assert!(written.is_ok(), "three numbers fit");
    let length = TEXT_MAX - rest.len();
    write_debug(&text[..length], out)
}

/// Reads the text of a debug packet. `None`: it is another one.
pub(super) fn parse_refusal(text: &[u8]) -> Option<Refusal> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix(WORD)?;
    let mut numbers = text.split(' ');
    let (reason, given, held) = (numbers.next()?, numbers.next()?, numbers.next()?);
    if numbers.next().is_some() {
        return None;
    }
    let (given, held) = (given.parse().ok()?, held.parse().ok()?);
    Some(Refusal::from_wire(reason.parse().ok()?, given, held))
}

/// The letter that stands for a reason.
pub(super) const fn letter(refusal: Refusal) -> LoginRefusal {
    match refusal {
        Refusal::Credentials => LoginRefusal::NotAuthorized,
        _ => LoginRefusal::SessionNotAvailable,
    }
}

const WORD: &str = "refused ";

/// The word, and three numbers of at most 5 and twice 20 digits with blanks between them.
const TEXT_MAX: usize = WORD.len() + 5 + 1 + 20 + 1 + 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proto::soup::{Packet, parse};
    use types::SequenceNumber;

    fn read(packet: &[u8]) -> Option<Refusal> {
        match parse(packet) {
            Ok(Some((Packet::Debug(text), length))) if length == packet.len() => parse_refusal(text),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_reason_is_a_text_for_people_and_comes_back_as_it_was() {
        let (wanted, next) = (SequenceNumber(u64::MAX), SequenceNumber(5));
        let ahead = Refusal::NumbersAhead { wanted, next };
        let mut out = [0; 128];
        let length = write_refusal(ahead, &mut out);
        assert_eq!(&out[3..length], b"refused 7 18446744073709551615 5");
        assert_eq!(read(&out[..length]), Some(ahead));
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "refused",
            "refused ",
            "refused 7",
            "refused 7 1",
            "refused 7 1 2 3",
            "refused 7 1 x",
            "refused 65536 1 2",
            "hello 7 1 2",
        ] {
            assert_eq!(parse_refusal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_refusal(b"refused 99 1 2"), Some(Refusal::Unknown(99)));
    }

    proptest! {
        #[test]
        fn every_reason_fits_and_no_bytes_make_it_panic(
            // Few of all numbers are reasons.
            number in prop_oneof![0_u16..20, any::<u16>()],
            (given, held) in any::<(u64, u64)>(),
            bytes in any::<Vec<u8>>(),
        ) {
            let refusal = Refusal::from_wire(number, given, held);
            let mut out = [0; 128];
            let length = write_refusal(refusal, &mut out);
            // Numbers that a reason cannot have make it an unknown one, which has none.
            let (given, held) = refusal.details();
            prop_assert_eq!(read(&out[..length]), Some(Refusal::from_wire(number, given, held)));
            let _ = parse_refusal(&bytes);
        }
    }
}
