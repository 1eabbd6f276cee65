//! Why bytes are no message.

use core::fmt;
use types::Reason;

/// Why a message was not taken. The numbers are on the wire (`detail` of Reject) and never change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum DecodeError {
    /// Shorter than a header.
    Truncated = 1,
    /// The schema id is not ours.
    UnknownSchema = 2,
    /// A version of the schema that is not spoken here.
    UnknownVersion = 3,
    /// No such template.
    UnknownTemplate = 4,
    /// The block length is not the one of the template.
    WrongBlockLength = 5,
    /// The message is not as long as its header says.
    WrongLength = 6,
    /// A message that this side of the session may not send.
    UnexpectedTemplate = 7,
    /// The client order id is 0.
    NoClientOrderId = 8,
    /// Neither buy nor sell.
    InvalidSide = 9,
    /// The time in force is not supported.
    UnsupportedTimeInForce = 10,
    /// The order type is not supported.
    UnsupportedOrderType = 11,
    /// The quantity is 0 or null.
    InvalidQuantity = 12,
    /// A limit order without a price, or a market order with one.
    InvalidPrice = 13,
    /// No such execution type.
    InvalidExecType = 14,
    /// Not a symbol.
    InvalidSymbol = 15,
    /// An instruction that is not known.
    UnsupportedInstruction = 16,
}

impl DecodeError {
    /// All, for counters and tables.
    pub const ALL: &'static [Self] = &[
        Self::Truncated,
        Self::UnknownSchema,
        Self::UnknownVersion,
        Self::UnknownTemplate,
        Self::WrongBlockLength,
        Self::WrongLength,
        Self::UnexpectedTemplate,
        Self::NoClientOrderId,
        Self::InvalidSide,
        Self::UnsupportedTimeInForce,
        Self::UnsupportedOrderType,
        Self::InvalidQuantity,
        Self::InvalidPrice,
        Self::InvalidExecType,
        Self::InvalidSymbol,
        Self::UnsupportedInstruction,
    ];

    /// The reason that the peer is given.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::UnsupportedTimeInForce | Self::UnsupportedOrderType | Self::UnsupportedInstruction => {
                Reason::UnsupportedOrder
            }
            Self::InvalidQuantity => Reason::InvalidQuantity,
            Self::InvalidPrice => Reason::InvalidPrice,
            _ => Reason::MalformedMessage,
        }
    }

    /// From its number on the wire.
    #[must_use]
    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|&error| error as u8 == value)
    }

    /// One clause for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Truncated => "shorter than a header",
            Self::UnknownSchema => "schema id is not ours",
            Self::UnknownVersion => "schema version is not spoken here",
            Self::UnknownTemplate => "unknown template",
            Self::WrongBlockLength => "block length is not the template's",
            Self::WrongLength => "message is not as long as its header says",
            Self::UnexpectedTemplate => "this side may not send this message",
            Self::NoClientOrderId => "client order id is 0",
            Self::InvalidSide => "neither buy nor sell",
            Self::UnsupportedTimeInForce => "time in force is not supported",
            Self::UnsupportedOrderType => "order type is not supported",
            Self::InvalidQuantity => "quantity is 0 or null",
            Self::InvalidPrice => "limit order without a price, or market order with one",
            Self::InvalidExecType => "unknown execution type",
            Self::InvalidSymbol => "not a symbol",
            Self::UnsupportedInstruction => "instruction is not supported",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for DecodeError {}
