//! Mutated messages through framing and decode: nothing panics, nothing loops, and good messages behind bad ones arrive.

use super::dictionary::tests::dictionary;
use super::samples::{bytes, whole};
use super::{
    BusinessMessageReject, Dictionary, ExecutionReport, Frame, FrameBuffer, Message, NewOrderSingle, OrderCancelReject,
    OrderCancelReplaceRequest, OrderCancelRequest, Scratch, SessionReject, frame,
};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Messages as they come from engines, what stands between BodyLength and CheckSum.
const SEEDS: [&str; 8] = [
    "35=A|34=1|49=A|52=20260301-10:00:00|56=B|98=0|108=30|141=Y|553=u|554=p|",
    "35=D|34=2|49=A|52=20260301-10:00:00.123|56=B|11=O1|21=1|38=100|40=2|44=101.25|54=1|55=INTC|59=0|60=20260301-10:00:00|",
    "35=D|34=2|49=A|52=20260301-10:00:00.123|56=B|11=O1|453=2|448=x|447=D|452=1|448=y|452=3|802=1|523=m|55=I|54=1|40=1|",
    "35=F|34=3|49=A|52=20260301-10:00:00.123456|56=B|115=F|11=O2|41=O1|54=1|55=INTC|60=20260301-10:00:00.123456789|",
    "35=G|34=4|43=Y|49=A|52=20260301-10:00:00|56=B|122=20260301-09:00:00|11=O3|38=50|40=2|41=O1|44=1|54=1|55=I|60=20260301-10:00:00|",
    "35=8|34=5|49=A|52=20260301-10:00:00|56=B|6=0|11=O1|14=0|17=E|37=1|38=1|39=0|54=1|55=I|150=0|151=1|",
    "35=3|34=6|49=A|52=20260301-10:00:00|56=B|45=2|58=t|371=-1|372=D|373=0|",
    "35=B|34=7|49=A|52=20260301-10:00:00|56=B|95=5|96=a|=|b|148=h|6001=3|6002=|=||",
];

/// Inputs that were once read wrongly, or that a careless change would: a file each, `|` for the delimiter.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/fix");
    let files = std::fs::read_dir(folder).expect("the corpus is part of the sources");
    files
        .map(|file| {
            let file = file.expect("a file");
            let text = std::fs::read_to_string(file.path()).expect("ASCII");
            (file.file_name().to_string_lossy().into_owned(), bytes(&text))
        })
        .collect()
}

/// What happens to a message on its way.
#[derive(Clone, Debug)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let byte = prop_oneof![
        Just(b'\x01'),
        Just(b'='),
        Just(b'0'),
        Just(b'9'),
        Just(b'-'),
        Just(b'.'),
        any::<u8>()
    ];
    let piece = prop::sample::select(vec![
        &b"\x01"[..],
        b"=",
        b"10=",
        b"8=FIX.4.4\x01",
        b"34=9\x01",
        b"11=\x01",
        b"453=9\x01",
        b"99999=x\x01",
    ]);
    prop_oneof![
        3 => (any::<Index>(), byte).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (any::<Index>(), piece).prop_map(|(at, piece)| Mutation::Insert(at, piece.to_vec())),
        1 => (any::<Index>(), 1..12_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
    ]
}

fn mutate(message: &mut Vec<u8>, mutation: &Mutation) {
    if message.is_empty() {
        return;
    }
    match mutation {
        Mutation::Replace(at, byte) => *at.get_mut(message) = *byte,
        Mutation::Insert(at, piece) => {
            let at = at.index(message.len());
            message.splice(at..at, piece.iter().copied());
        }
        Mutation::Remove(at, length) => {
            let at = at.index(message.len());
            message.drain(at..(at + length).min(message.len()));
        }
        Mutation::Repeat(at, length) => {
            let at = at.index(message.len());
            let piece = message[at..(at + length).min(message.len())].to_vec();
            message.splice(at..at, piece);
        }
    }
}

/// Reads a message in every way there is.
fn read_all(message: &Message<'_>) {
    let _ = NewOrderSingle::decode(message);
    let _ = OrderCancelRequest::decode(message);
    let _ = OrderCancelReplaceRequest::decode(message);
    let _ = ExecutionReport::decode(message);
    let _ = OrderCancelReject::decode(message);
    let _ = SessionReject::decode(message);
    let _ = BusinessMessageReject::decode(message);
    let _ = (message.body(), message.routing(), alloc::format!("{message:?}"));
}

/// Scans a frame with and without a dictionary. What is wrong without one is not right with one.
fn scan(frame: &[u8], dictionary: &Dictionary) {
    let mut scratch = Scratch::new();
    read_all(&scratch.parse(frame));
    read_all(&scratch.parse_with(frame, Some(dictionary)));
}

/// The frames of a stream that comes in pieces of this size.
fn frames(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut buffer = FrameBuffer::new();
    let mut found = Vec::new();
    for piece in stream.chunks(piece) {
        buffer.space()[..piece.len()].copy_from_slice(piece);
        buffer.received(piece.len());
        while let Some(frame) = buffer.next_frame() {
            found.push(frame.to_vec());
        }
    }
    found
}

#[test]
fn what_was_read_wrongly_once_is_not_again() {
    let dictionary = dictionary();
    let good = whole("FIX.4.4", "35=0|34=9|49=GOOD|52=20260301-10:00:00|56=B|");
    let corpus = corpus();
    assert!(corpus.len() > 10);
    for (name, input) in corpus {
        scan(&input, &dictionary);
        // Whatever it is, good messages behind it arrive once it is certain that they are none of it.
        let stream = [input.as_slice(), &good.repeat(100)].concat();
        for piece in [1, 7, 600] {
            let found = frames(&stream, piece);
            assert!(found.last() == Some(&good), "{name} in pieces of {piece}");
            let count = found.iter().filter(|frame| **frame == good).count();
            assert!(count >= 25, "{name} in pieces of {piece}: {count}");
        }
    }
}

proptest! {
    #[test]
    fn a_mutated_body_with_a_good_frame_is_read_or_refused(
        seed in prop::sample::select(SEEDS.to_vec()), mutations in prop::collection::vec(mutation(), 0..5),
    ) {
        let mut fields = bytes(seed);
        for mutation in &mutations {
            mutate(&mut fields, mutation);
        }
        let text = String::from_utf8_lossy(&fields).into_owned();
        scan(&whole("FIX.4.4", &text), &dictionary());
    }

    #[test]
    fn good_messages_between_mutated_ones_arrive(
        seeds in prop::collection::vec(prop::sample::select(SEEDS.to_vec()), 1..4),
        mutations in prop::collection::vec(mutation(), 1..4), piece in 1..600_usize,
    ) {
        let good = whole("FIX.4.4", "35=0|34=9|49=GOOD|52=20260301-10:00:00|56=B|");
        let mut stream = good.clone();
        for seed in seeds {
            let mut message = whole("FIX.4.4", seed);
            for mutation in &mutations {
                mutate(&mut message, mutation);
            }
            stream.extend(message);
            // A length that is too long may claim some of what follows, and no more than the longest message.
            for _ in 0..60 {
                stream.extend(&good);
            }
        }
        let found = frames(&stream, piece);
        prop_assert!(found.last() == Some(&good));
        prop_assert!(found.iter().filter(|frame| **frame == good).count() > 1);
        for frame in &found {
            scan(frame, &dictionary());
        }
    }

    #[test]
    fn a_frame_is_found_at_any_split(seed in prop::sample::select(SEEDS.to_vec()), split in any::<Index>()) {
        let message = whole("FIX.4.4", seed);
        let split = split.index(message.len());
        prop_assert_eq!(frame(&message[..split]), Frame::Incomplete);
        prop_assert_eq!(frame(&message), Frame::Message(message.len()));
    }
}
