//! Bytes that nobody sends: they are refused, and break nothing.

use super::*;
use crate::ltp::wire::{Body, Malformed, Step};
use proptest::prelude::*;

/// A datagram of the corpus: a file each, whose first line says what it is, the second one how its header looks and what the
/// decoder says, and the rest are its bytes in hexadecimal.
struct Case {
    name: String,
    form: String,
    verdict: Result<(), Malformed>,
    datagram: Vec<u8>,
}

fn corpus() -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/ltp");
    let files = std::fs::read_dir(folder).expect("the corpus is part of the sources");
    files
        .map(|file| {
            let path = file.expect("a file").path();
            case(&path).unwrap_or_else(|| panic!("{} is no case", path.display()))
        })
        .collect()
}

fn case(path: &std::path::Path) -> Option<Case> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines().skip_while(|line| line.starts_with('#'));
    let (form, verdict) = lines.next()?.split_once(' ')?;
    let digits = lines.collect::<String>().replace(' ', "");
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    Some(Case {
        name: path.file_stem()?.to_string_lossy().into_owned(),
        form: form.into(),
        verdict: match verdict {
            "good" => Ok(()),
            "length" => Err(Malformed::Length),
            "kind" => Err(Malformed::Kind),
            "flags" => Err(Malformed::Flags),
            "payload" => Err(Malformed::Payload),
            _ => return None,
        },
        datagram: digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?,
    })
}

#[test]
fn each_datagram_of_the_corpus_is_what_it_was() {
    let corpus = corpus();
    assert!(corpus.len() > 40);
    for Case {
        name,
        form,
        verdict,
        datagram,
    } in &corpus
    {
        read_all(datagram);
        let body = |form: HeaderForm| {
            let (header, payload) = form.read(datagram, 0)?;
            Body::read(header.kind, payload, 48).map(|_| ())
        };
        let read = match form.as_str() {
            "full" => body(HeaderForm::Full),
            "compact" => body(HeaderForm::Compact),
            "handshake" => wire::decode_handshake(datagram).map(|_| ()),
            _ => panic!("{name} has no form {form}"),
        };
        assert_eq!(read, *verdict, "{name}");
    }
}

/// Under the session's own tag, number and acknowledgement, so that all of it is looked at.
#[test]
fn a_session_drops_what_of_the_corpus_is_malformed_and_goes_on() {
    for case in corpus().iter().filter(|case| case.verdict.is_err()) {
        let config = match case.form.as_str() {
            "compact" => Config {
                header: HeaderForm::Compact,
                ..config()
            },
            _ => config(),
        };
        let mut pair = Pair::of(config, config, Resume::START, Resume::START);
        pair.run_for(Duration::from_millis(1));
        pair.send(INITIATOR, b"before");
        pair.run_for(Duration::from_millis(1));
        let sent = pair.sent.iter().rfind(|(_, by, _)| *by == INITIATOR);
        let (.., like) = sent.expect("it has sent");
        let mut datagram = case.datagram.clone();
        let numbers = match case.form.as_str() {
            "full" => 12,
            "compact" => 6,
            _ => 0,
        };
        let numbers = numbers.min(datagram.len());
        datagram[..numbers].copy_from_slice(&like[..numbers]);
        let (now, before) = (pair.now, pair.counters(ACCEPTOR));
        let received = pair.ends[ACCEPTOR].on_datagram(now, &datagram);
        let after = pair.counters(ACCEPTOR);
        assert_eq!(received, Received::Dropped, "{}", case.name);
        assert_eq!(after.malformed, before.malformed + 1, "{}", case.name);
        pair.send(INITIATOR, b"behind");
        pair.run_for(Duration::from_millis(1));
        assert_eq!(pair.messages[ACCEPTOR], [b"before", b"behind"], "{}", case.name);
        assert_eq!(pair.counters(ACCEPTOR).downs, 0, "{}", case.name);
    }
}

proptest! {
    #[test]
    fn no_bytes_break_the_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    /// Behind a good header, so that every kind of payload is reached.
    #[test]
    fn no_payload_breaks_the_decoder(
        kind in 0u8..13,
        tag in 0u32..2,
        payload in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let datagram = behind_header(tag, kind, [0; 8], &payload);
        read_all(&datagram);
    }

    /// Whoever knows the tag can forge messages, but cannot make an end panic, or hand out numbers out of turn.
    #[test]
    fn no_datagrams_break_a_session(
        datagrams in proptest::collection::vec(
            (0u8..13, any::<[i8; 2]>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..100)),
            1..40,
        ),
    ) {
        let mut pair = Pair::up();
        pair.send(ACCEPTOR, b"report");
        pair.turn(ACCEPTOR);
        let tag = header(&pair.sent[0].2).tag ^ 1 << 31;
        let mut expected = pair.ends[ACCEPTOR].next_receive();
        for (kind, [sequence, ack], handshake, payload) in datagrams {
            let number = |near: u32, by: i8| near.wrapping_add_signed(by.into()).to_le_bytes();
            let mut numbers = [0; 8];
            numbers[..4].copy_from_slice(&number(31, sequence));
            numbers[4..].copy_from_slice(&number(31, ack));
            let datagram = behind_header(if handshake { 0 } else { tag }, kind, numbers, &payload);
            let now = pair.now;
            let end = &mut pair.ends[ACCEPTOR];
            end.on_datagram(now, &datagram);
            let mut buffer = [0; 64];
            while let Some(event) = end.poll_event(&mut buffer) {
                if let Event::Message { sequence, .. } = event {
                    prop_assert_eq!(sequence, expected);
                    expected = expected.next();
                }
            }
            pair.now = now + Duration::from_micros(5);
            while end.poll_transmit(pair.now, u64::MAX, &mut [0; 1_472]).is_some() {}
        }
    }
}

fn behind_header(tag: u32, kind: u8, numbers: [u8; 8], payload: &[u8]) -> Vec<u8> {
    let mut datagram = tag.to_le_bytes().to_vec();
    datagram.extend(numbers);
    datagram.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
    datagram.extend([kind, 0]);
    datagram.extend(payload);
    datagram
}

/// Decodes in every way there is, and reads all of what comes out.
fn read_all(datagram: &[u8]) {
    if let Ok((Step::Refuse(refuse), _)) = wire::decode_handshake(datagram) {
        let _ = std::format!("{}", refuse.refusal());
    }
    for form in [HeaderForm::Full, HeaderForm::Compact] {
        for trailer in [0, wire::MAC_LENGTH] {
            let Ok((header, payload)) = form.read(datagram, trailer) else {
                continue;
            };
            match Body::read(header.kind, payload, 48) {
                Ok(Body::Packed(messages)) => {
                    let count = messages.len();
                    assert_eq!(messages.filter(|message| !message.is_empty()).count(), count);
                }
                Ok(Body::Nak(nak)) => assert!(nak.numbers(SequenceNumber(5)).count() <= wire::NAK_SPAN_MAX),
                _ => {}
            }
        }
    }
}
