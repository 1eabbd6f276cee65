//! The header: block length, template id, schema id, version, each u16.
//!
//! All of it is fixed by the template, so the header of a good message is one of a few numbers of 64 bits, and decoding
//! begins with one comparison. What was wrong is only asked when none of them is met.

use super::DecodeError;
use super::instrument::{InstrumentDefinitionLayout, InstrumentRequestLayout};
use super::long::{NewOrderLongLayout, ReplaceOrderLongLayout};
use super::received::RequestsReceivedLayout;
use super::report::{ExecutionReportLayout, RejectLayout};
use super::request::{CancelOrderLayout, MassCancelLayout, NewOrderLayout, ReplaceOrderLayout};
use super::status::{MassStatusRequestLayout, OrderStatusRequestLayout};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;
/// Schema id: the bytes `TG`.
pub const SCHEMA_ID: u16 = 0x4754;
/// Version of the schema.
pub const SCHEMA_VERSION: u16 = 0;

/// What a message is; its number on the wire. Requests have the numbers up to 10, answers those above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum Template {
    /// A new order.
    NewOrder = 1,
    /// Cancel one order.
    CancelOrder = 2,
    /// New price and total for one order.
    ReplaceOrder = 3,
    /// Cancel the orders of the session.
    MassCancel = 4,
    /// Ask for definitions.
    InstrumentRequest = 5,
    /// A new order with terms.
    NewOrderLong = 6,
    /// New price, total and terms for one order.
    ReplaceOrderLong = 7,
    /// How does one order stand.
    OrderStatusRequest = 8,
    /// How do the orders of the session stand.
    MassStatusRequest = 9,
    /// What became of an order or request.
    ExecutionReport = 11,
    /// A message that could not be taken.
    Reject = 12,
    /// One instrument.
    InstrumentDefinition = 13,
    /// Acknowledges the messages of a link.
    RequestsReceived = 14,
}

impl Template {
    /// All.
    pub const ALL: &'static [Self] = &[
        Self::NewOrder,
        Self::CancelOrder,
        Self::ReplaceOrder,
        Self::MassCancel,
        Self::InstrumentRequest,
        Self::NewOrderLong,
        Self::ReplaceOrderLong,
        Self::OrderStatusRequest,
        Self::MassStatusRequest,
        Self::ExecutionReport,
        Self::Reject,
        Self::InstrumentDefinition,
        Self::RequestsReceived,
    ];

    /// Bytes of the message, header included.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::NewOrder => size_of::<NewOrderLayout>(),
            Self::CancelOrder => size_of::<CancelOrderLayout>(),
            Self::ReplaceOrder => size_of::<ReplaceOrderLayout>(),
            Self::MassCancel => size_of::<MassCancelLayout>(),
            Self::InstrumentRequest => size_of::<InstrumentRequestLayout>(),
            Self::NewOrderLong => size_of::<NewOrderLongLayout>(),
            Self::ReplaceOrderLong => size_of::<ReplaceOrderLongLayout>(),
            Self::OrderStatusRequest => size_of::<OrderStatusRequestLayout>(),
            Self::MassStatusRequest => size_of::<MassStatusRequestLayout>(),
            Self::ExecutionReport => size_of::<ExecutionReportLayout>(),
            Self::Reject => size_of::<RejectLayout>(),
            Self::InstrumentDefinition => size_of::<InstrumentDefinitionLayout>(),
            Self::RequestsReceived => size_of::<RequestsReceivedLayout>(),
        }
    }

    /// From its number on the wire.
    #[must_use]
    pub const fn from_u16(value: u16) -> Option<Self> {
        Some(match value {
            1 => Self::NewOrder,
            2 => Self::CancelOrder,
            3 => Self::ReplaceOrder,
            4 => Self::MassCancel,
            5 => Self::InstrumentRequest,
            6 => Self::NewOrderLong,
            7 => Self::ReplaceOrderLong,
            8 => Self::OrderStatusRequest,
            9 => Self::MassStatusRequest,
            11 => Self::ExecutionReport,
            12 => Self::Reject,
            13 => Self::InstrumentDefinition,
            14 => Self::RequestsReceived,
            _ => return None,
        })
    }

    /// What `bytes` are, by a header that is right in every part. Their length is not looked at.
    ///
    /// # Errors
    /// The header is not right; which part of it.
    pub fn of(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = header_of(bytes);
        let claimed = from_header(header);
        match claimed {
            Some(template) if template.header() == header => Ok(template),
            _ => Err(diagnose(bytes)),
        }
    }

    /// The header as a number.
    #[allow(clippy::cast_possible_truncation, reason = "a message has at most 96 bytes")]
    pub(super) const fn header(self) -> u64 {
        let block_length = (self.length() - HEADER_LENGTH) as u64;
        block_length | (self as u64) << 16 | (SCHEMA_ID as u64) << 32 | (SCHEMA_VERSION as u64) << 48
    }
}

/// The header of `bytes`; 0, which is no template's, when they are too short.
pub(super) fn header_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |header| u64::from_le_bytes(*header))
}

/// The template id, as `bytes` give it. `None` when they are too short or of another schema, where it means nothing.
pub(super) fn claimed_template(bytes: &[u8]) -> Option<u16> {
    let [_, template, schema, _] = parts(header_of(bytes));
    (schema == SCHEMA_ID).then_some(template)
}

/// What is wrong with a message whose header is none that was looked for.
#[cold]
pub(super) fn diagnose(bytes: &[u8]) -> DecodeError {
    if bytes.len() < HEADER_LENGTH {
        return DecodeError::Truncated;
    }
    let [block_length, template, schema, version] = parts(header_of(bytes));
    if schema != SCHEMA_ID {
        return DecodeError::UnknownSchema;
    }
    if version != SCHEMA_VERSION {
        return DecodeError::UnknownVersion;
    }
    match Template::from_u16(template) {
        None => DecodeError::UnknownTemplate,
        Some(template) if template.length() != HEADER_LENGTH + usize::from(block_length) => {
            DecodeError::WrongBlockLength
        }
        Some(_) => DecodeError::UnexpectedTemplate,
    }
}

fn from_header(header: u64) -> Option<Template> {
    let [_, template, _, _] = parts(header);
    Template::from_u16(template)
}

/// Block length, template id, schema id, version.
#[allow(clippy::cast_possible_truncation, reason = "takes 16 bits at a time")]
const fn parts(header: u64) -> [u16; 4] {
    [
        header as u16,
        (header >> 16) as u16,
        (header >> 32) as u16,
        (header >> 48) as u16,
    ]
}
