//! The native protocol: orders and reports as fixed-size little-endian messages.
//!
//! The messages are laid out as Simple Binary Encoding 1.0 and described for generators by `docs/native.xml`, for people
//! by `docs/native.md`. Clients speak it to the gateway and the gateway speaks it to venues. It needs a session below
//! that keeps messages whole and in order: SoupBinTCP on TCP, LTP on UDP.
//!
//! [`decode`] takes whatever comes; [`decode_request`] and [`decode_report`] only what one side may send. A message is
//! taken when its header is exactly the one of its template and every field has a value that the field allows: what
//! comes out is a type of the vocabulary, and nobody checks its form again.

mod error;
mod header;
mod instrument;
mod long;
mod received;
mod report;
mod request;
mod status;

pub use error::DecodeError;
pub use header::{HEADER_LENGTH, SCHEMA_ID, SCHEMA_VERSION, Template};
pub use instrument::{InstrumentDefinition, encode_instrument_definition, encode_instrument_request};
pub use received::encode_requests_received;
pub use report::{Reject, decode_report, encode_reject, encode_report};
pub use request::{decode_request, encode_request};

use types::{ExecReport, InstrumentId, Quantity, Request};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Longest message, bytes. Every writer takes a buffer that is at least this long.
pub const MAX_MESSAGE_LENGTH: usize = 96;

/// Longest message of a server, bytes.
pub const MAX_ANSWER_LENGTH: usize = 64;

/// Most lots that an order may have: the value above is the null of SBE in the plain messages and the reports. An order
/// for more is to be refused before it is encoded.
pub const MAX_QUANTITY: Quantity = Quantity(u32::MAX as u64 - 1);

/// Any message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Client: what it wants of its orders.
    Request(Request),
    /// Client: define this instrument, or all.
    InstrumentRequest(Option<InstrumentId>),
    /// Server: what became of an order or request.
    Report(ExecReport),
    /// Server: a message could not be taken.
    Reject(Reject),
    /// Server: one instrument.
    InstrumentDefinition(InstrumentDefinition),
    /// Both, on a venue link: how many messages of the other side were received.
    RequestsReceived(u64),
}

/// Decodes any message. `bytes` is the message and nothing else.
///
/// # Errors
/// The bytes are no message of this schema, or a field has a value that it may not have.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    match Template::of(bytes)? {
        Template::NewOrder
        | Template::CancelOrder
        | Template::ReplaceOrder
        | Template::MassCancel
        | Template::NewOrderLong
        | Template::ReplaceOrderLong
        | Template::OrderStatusRequest
        | Template::MassStatusRequest => decode_request(bytes).map(Message::Request),
        Template::InstrumentRequest => instrument::decode_request(bytes).map(Message::InstrumentRequest),
        Template::ExecutionReport => decode_report(bytes).map(Message::Report),
        Template::Reject => report::decode_reject(bytes).map(Message::Reject),
        Template::InstrumentDefinition => instrument::decode_definition(bytes).map(Message::InstrumentDefinition),
        Template::RequestsReceived => received::decode(bytes).map(Message::RequestsReceived),
    }
}

/// Encodes any message; returns its length.
///
/// # Panics
/// When `out` is shorter than the message, or a quantity is above [`MAX_QUANTITY`].
pub fn encode(message: &Message, out: &mut [u8]) -> usize {
    match message {
        Message::Request(request) => encode_request(request, out),
        Message::InstrumentRequest(instrument) => encode_instrument_request(*instrument, out),
        Message::Report(report) => encode_report(report, out),
        Message::Reject(reject) => encode_reject(reject, out),
        Message::InstrumentDefinition(definition) => encode_instrument_definition(definition, out),
        Message::RequestsReceived(count) => encode_requests_received(*count, out),
    }
}

/// `bytes` as the layout `T`, whose header was checked: header and length must say the same.
fn view<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Result<&T, DecodeError> {
    T::ref_from_bytes(bytes).map_err(|_| DecodeError::WrongLength)
}

fn emit<T: IntoBytes + Immutable>(layout: &T, out: &mut [u8]) -> usize {
    let bytes = layout.as_bytes();
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// Lots on the wire.
///
/// # Panics
/// Above [`MAX_QUANTITY`]: an order for another quantity than was meant must never leave.
#[allow(clippy::cast_possible_truncation, reason = "asserted")]
fn wire_lots(quantity: Quantity) -> U32 {
    assert!(quantity <= MAX_QUANTITY, "quantity does not fit the message");
    U32::new(quantity.0 as u32)
}

#[cfg(test)]
mod tests;
