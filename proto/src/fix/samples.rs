//! Messages for tests.

use super::frame::check_sum;
use super::{Body, Encoder, Message, MessageHeader, Scratch, TimePrecision, Version, Violation};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use types::Timestamp;

/// Bytes from text in which `|` stands for the delimiter.
pub(super) fn bytes(text: &str) -> Vec<u8> {
    text.replace('|', "\x01").into_bytes()
}

/// A whole message with a good header, from its type and its body's fields.
pub(super) fn frame_of(msg_type: &str, body: &str) -> Vec<u8> {
    whole(
        "FIX.4.4",
        &format!("35={msg_type}|34=2|49=A|52=20260301-00:00:00.123|56=B|{body}"),
    )
}

/// A whole message from what stands between BodyLength and CheckSum.
pub(super) fn whole(begin_string: &str, fields: &str) -> Vec<u8> {
    let fields = bytes(fields);
    let mut message = bytes(&format!("8={begin_string}|9={}|", fields.len()));
    message.extend_from_slice(&fields);
    let sum = check_sum(&message);
    message.extend_from_slice(&bytes(&format!("10={sum:03}|")));
    message
}

/// A body as it is written in a version: the whole message.
pub(super) fn encoded(body: &impl Body, version: Version) -> Vec<u8> {
    encode(body, version, |encoder| encoder.finish().unwrap().to_vec())
}

/// A body as it is written in a version: its fields.
pub(super) fn encoded_body(body: &impl Body, version: Version) -> Vec<u8> {
    encode(body, version, |encoder| encoder.body().to_vec())
}

fn encode(body: &impl Body, version: Version, finish: impl FnOnce(Encoder<'_>) -> Vec<u8>) -> Vec<u8> {
    let mut buffer = vec![0; 4_096];
    let header = MessageHeader {
        version,
        sender_comp_id: b"A",
        target_comp_id: b"B",
        sequence: 1,
        sending_time: Timestamp(0),
        orig_sending_time: None,
    };
    let mut encoder = Encoder::start(&mut buffer, body.msg_type(), &header, TimePrecision::Microseconds);
    body.encode(&mut encoder);
    finish(encoder)
}

/// Reads a view of a message, whose form must be right.
pub(super) fn read<'a, T>(
    scratch: &'a mut Scratch,
    frame: &'a [u8],
    decode: fn(&Message<'a>) -> Result<T, Violation>,
) -> Result<T, Violation> {
    let message = scratch.parse(frame);
    message.violation().map_or_else(|| decode(&message), Err)
}
