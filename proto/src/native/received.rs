//! RequestsReceived: how either side of a link on TCP acknowledges what came over it.
//!
//! SoupBinTCP numbers what the server sends and not what the client does, and acknowledges neither. On a link that resumes
//! out of bounded memory, both directions must be: after each login, and from time to time, each side says how many
//! messages of the other it has received in this session, on all its connections. The other frees what is acknowledged
//! and sends the rest again.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{diagnose, header_of};
use super::{DecodeError, Template, emit, view};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RequestsReceivedLayout {
    header: U64,
    /// Messages.
    count: U64,
}

const _: () = assert!(size_of::<RequestsReceivedLayout>() == 16);

const REQUESTS_RECEIVED: u64 = Template::RequestsReceived.header();

pub(super) fn decode(bytes: &[u8]) -> Result<u64, DecodeError> {
    match header_of(bytes) {
        REQUESTS_RECEIVED => view::<RequestsReceivedLayout>(bytes).map(|layout| layout.count.get()),
        _ => Err(diagnose(bytes)),
    }
}

/// Encodes the acknowledgement of the first `count` messages; returns its length.
///
/// # Panics
/// When `out` is shorter than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH).
pub fn encode_requests_received(count: u64, out: &mut [u8]) -> usize {
    let layout = RequestsReceivedLayout {
        header: U64::new(REQUESTS_RECEIVED),
        count: U64::new(count),
    };
    emit(&layout, out)
}
