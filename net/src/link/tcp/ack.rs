//! Acknowledgements: the native message RequestsReceived, in both directions.

use proto::native::{MAX_MESSAGE_LENGTH, Message, Template, decode, encode_requests_received};
use proto::soup::write_unsequenced;

/// Writes the packet that says how many messages of the peer were received; returns its length.
pub(super) fn write_ack(count: u64, out: &mut [u8]) -> usize {
    let mut message = [0; MAX_MESSAGE_LENGTH];
    let length = encode_requests_received(count, &mut message);
    write_unsequenced(&message[..length], out)
}

/// The count, if a message of the peer is an acknowledgement. Any other message is one to hand out.
pub(super) fn parse_ack(message: &[u8]) -> Option<u64> {
    match Template::of(message) {
        Ok(Template::RequestsReceived) => match decode(message) {
            Ok(Message::RequestsReceived(count)) => Some(count),
            _ => None,
        },
        _ => None,
    }
}
