//! Bytes that nobody sends: they are refused, and break nothing.

use super::*;
use crate::ltp::wire::{Body, Step};
use proptest::prelude::*;

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
