//! ITCH 5.0 (Nasdaq TotalView-ITCH): the messages of a market-data feed that shows every order.
//!
//! Big-endian. Text is ASCII, padded with blanks on the right. Prices are unsigned with 4 decimals, times are nanoseconds
//! since midnight of the exchange's day, the shares of one order fit in 32 bits. Each type has one length, see [`length`].
//! The messages that build a book are typed views over the bytes, checked once in [`parse`]; the others pass as
//! [`Message::Other`]. The same structs write the messages: fill one with its `new` and send its `as_bytes()`.

mod book;
mod levels;
mod messages;
mod order_table;

pub use book::{BookCounters, BookLimits, Books, Change};
pub use messages::{
    AddOrder, AddOrderAttributed, BrokenTrade, BuySell, CrossTrade, Header, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, Stamp, Stock, StockDirectory, SystemEvent, Trade, TradingAction,
};

use core::fmt;
use zerocopy::{FromBytes, TryFromBytes};

/// Longest message of the protocol (type I), bytes.
pub const MAX_MESSAGE_LENGTH: usize = 50;

/// One message, checked: its length is that of its type and its side is B or S.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// S: start and end of the day's phases.
    SystemEvent(&'a SystemEvent),
    /// R: which symbol a stock locate stands for today.
    StockDirectory(&'a StockDirectory),
    /// H: trading halts and goes on.
    TradingAction(&'a TradingAction),
    /// A: an order joins the book.
    AddOrder(&'a AddOrder),
    /// F: an order joins the book, with its market participant's name.
    AddOrderAttributed(&'a AddOrderAttributed),
    /// E: a resting order trades at its own price.
    OrderExecuted(&'a OrderExecuted),
    /// C: a resting order trades at another price.
    OrderExecutedWithPrice(&'a OrderExecutedWithPrice),
    /// X: a resting order becomes smaller.
    OrderCancel(&'a OrderCancel),
    /// D: a resting order leaves the book.
    OrderDelete(&'a OrderDelete),
    /// U: a resting order gets a new reference, size and price, and loses its priority.
    OrderReplace(&'a OrderReplace),
    /// P: a trade against an order that the book never showed.
    Trade(&'a Trade),
    /// Q: the trade of an auction.
    CrossTrade(&'a CrossTrade),
    /// B: an earlier trade is void.
    BrokenTrade(&'a BrokenTrade),
    /// A type of the protocol that does not change the book.
    Other(&'a Header),
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItchError {
    /// There are no bytes.
    Empty,
    /// The protocol has no such type. Skip the message; it is no reason to stop.
    UnknownType {
        /// First byte of the message.
        message_type: u8,
    },
    /// The message is not as long as its type.
    WrongLength {
        /// First byte of the message.
        message_type: u8,
        /// Length of that type, bytes.
        expected: usize,
        /// Length of the message, bytes.
        actual: usize,
    },
    /// The side is neither B nor S.
    UnknownSide {
        /// First byte of the message.
        message_type: u8,
    },
}

/// Length of each type, bytes; 0 for a byte that is no type.
const LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let known = b"SRHYLVWKJhAFECXDUPQBINO";
    let length = [
        12, 39, 25, 20, 26, 35, 12, 28, 35, 21, 36, 40, 31, 36, 23, 19, 35, 44, 40, 19, 50, 20, 48,
    ];
    let mut i = 0;
    while i < known.len() {
        lengths[known[i] as usize] = length[i];
        i += 1;
    }
    lengths
};

/// Length of a message of this type, type byte included. `None` when the protocol has no such type.
#[must_use]
pub const fn length(message_type: u8) -> Option<usize> {
    match LENGTHS[message_type as usize] {
        0 => None,
        length => Some(length as usize),
    }
}

/// Makes a message of its bytes, without framing.
///
/// # Errors
/// Any other bytes than one whole message of the protocol.
#[inline(always)]
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, ItchError> {
    let Some(&message_type) = bytes.first() else {
        return Err(ItchError::Empty);
    };
    let wrong_length = || match length(message_type) {
        None => ItchError::UnknownType { message_type },
        Some(expected) => ItchError::WrongLength {
            message_type,
            expected,
            actual: bytes.len(),
        },
    };
    if length(message_type) != Some(bytes.len()) {
        return Err(wrong_length());
    }
    // Types with a side are checked for it; for the others the one condition is the length, which holds already.
    let unknown_side = ItchError::UnknownSide { message_type };
    macro_rules! view {
        ($variant:ident) => {
            FromBytes::ref_from_bytes(bytes)
                .map(Message::$variant)
                .map_err(|_| wrong_length())
        };
    }
    macro_rules! view_with_side {
        ($variant:ident) => {
            TryFromBytes::try_ref_from_bytes(bytes)
                .map(Message::$variant)
                .map_err(|_| unknown_side)
        };
    }
    match message_type {
        b'A' => view_with_side!(AddOrder),
        b'D' => view!(OrderDelete),
        b'U' => view!(OrderReplace),
        b'E' => view!(OrderExecuted),
        b'X' => view!(OrderCancel),
        b'F' => view_with_side!(AddOrderAttributed),
        b'C' => view!(OrderExecutedWithPrice),
        b'P' => view_with_side!(Trade),
        b'Q' => view!(CrossTrade),
        b'B' => view!(BrokenTrade),
        b'R' => view!(StockDirectory),
        b'H' => view!(TradingAction),
        b'S' => view!(SystemEvent),
        _ => Header::ref_from_prefix(bytes)
            .map(|(header, _)| Message::Other(header))
            .map_err(|_| wrong_length()),
    }
}

impl Message<'_> {
    /// What every message starts with.
    #[must_use]
    pub const fn header(&self) -> &Header {
        match self {
            Self::SystemEvent(message) => &message.header,
            Self::StockDirectory(message) => &message.header,
            Self::TradingAction(message) => &message.header,
            Self::AddOrder(message) => &message.header,
            Self::AddOrderAttributed(message) => &message.order.header,
            Self::OrderExecuted(message) => &message.header,
            Self::OrderExecutedWithPrice(message) => &message.executed.header,
            Self::OrderCancel(message) => &message.header,
            Self::OrderDelete(message) => &message.header,
            Self::OrderReplace(message) => &message.header,
            Self::Trade(message) => &message.header,
            Self::CrossTrade(message) => &message.header,
            Self::BrokenTrade(message) => &message.header,
            Self::Other(header) => header,
        }
    }

    /// The symbol, in the messages that have it and are not [`Message::Other`].
    #[must_use]
    pub const fn stock(&self) -> Option<Stock> {
        match self {
            Self::StockDirectory(message) => Some(message.stock),
            Self::TradingAction(message) => Some(message.stock),
            Self::AddOrder(message) => Some(message.stock),
            Self::AddOrderAttributed(message) => Some(message.order.stock),
            Self::Trade(message) => Some(message.stock),
            Self::CrossTrade(message) => Some(message.stock),
            _ => None,
        }
    }
}

impl fmt::Display for ItchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("empty message"),
            Self::UnknownType { message_type } => {
                write!(f, "unknown message type '{}'", message_type.escape_ascii())
            }
            Self::WrongLength {
                message_type,
                expected,
                actual,
            } => write!(
                f,
                "message of type {} has {actual} bytes in place of {expected}",
                char::from(message_type)
            ),
            Self::UnknownSide { message_type } => {
                write!(
                    f,
                    "message of type {} has neither side B nor S",
                    char::from(message_type)
                )
            }
        }
    }
}

impl core::error::Error for ItchError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use types::{Price, Side};

    /// Messages that Nasdaq sent, taken from captures of its multicast.
    const ADD: &[u8] =
        b"A\x15\x98\0\0\x1f\x1a\xce\xd8\x53\x06\0\0\0\0\x01\x66\xb5\x3eB\0\0\x06\x40IVOO    \0\x0d\x55\xac";
    const REPLACE: &[u8] =
        b"U\x1d\xb3\0\0\x1f\x1a\xce\xd7\x71\xe9\0\0\0\0\0\xe6\x89\x7f\0\0\0\0\x01\x45\xf2\xc7\0\0\0\x64\0\x10\x36\xc8";
    const EXECUTED: &[u8] =
        b"E\x09\x29\0\x02\x1f\x1a\xce\xd8\xf0\x61\0\0\0\0\x01\x66\x92\x9a\0\0\0\x19\0\0\0\0\0\x03\xe6\x3b";

    #[test]
    fn an_add_order_of_the_exchange_is_read() {
        let Ok(Message::AddOrder(order)) = parse(ADD) else {
            panic!("not an add order");
        };
        assert_eq!(order.header.stock_locate.get(), 0x1598);
        assert_eq!(order.header.time_ns(), 0x1f1a_ced8_5306);
        assert_eq!(order.reference.get(), 0x166_b53e);
        assert_eq!(order.side(), Side::Buy);
        assert_eq!(order.shares.get(), 1600);
        assert_eq!(
            order.stock.symbol().map(|s| s.as_bytes().to_vec()),
            Some(b"IVOO".to_vec())
        );
        assert_eq!(order.price(), Price(87_390_000_000));
    }

    #[test]
    fn a_replace_and_an_execution_of_the_exchange_are_read() {
        let Ok(Message::OrderReplace(replace)) = parse(REPLACE) else {
            panic!("not a replace");
        };
        assert_eq!(
            (replace.original.get(), replace.reference.get()),
            (0xe6_897f, 0x145_f2c7)
        );
        assert_eq!((replace.shares.get(), replace.price()), (100, Price(106_260_000_000)));
        let Ok(Message::OrderExecuted(executed)) = parse(EXECUTED) else {
            panic!("not an execution");
        };
        assert_eq!(executed.header.tracking_number.get(), 2);
        assert_eq!(
            (
                executed.reference.get(),
                executed.shares.get(),
                executed.match_number.get()
            ),
            (0x166_929a, 25, 0x3e63b)
        );
    }

    #[test]
    fn every_type_has_its_length_and_no_other() {
        let mut known = 0;
        for message_type in 0..=u8::MAX {
            let Some(expected) = length(message_type) else {
                assert_eq!(
                    parse(&[message_type]).err(),
                    Some(ItchError::UnknownType { message_type })
                );
                continue;
            };
            known += 1;
            assert!(expected <= MAX_MESSAGE_LENGTH);
            for actual in [1, expected - 1, expected + 1] {
                let mut bytes = vec![b'B'; actual];
                bytes[0] = message_type;
                assert_eq!(
                    parse(&bytes).err(),
                    Some(ItchError::WrongLength {
                        message_type,
                        expected,
                        actual
                    })
                );
            }
            // 'B' is the side Buy, wherever the type has one.
            let mut bytes = vec![b'B'; expected];
            bytes[0] = message_type;
            let message = parse(&bytes).expect("whole message");
            assert_eq!(message.header().message_type, message_type);
        }
        assert_eq!(known, 23);
    }

    #[test]
    fn an_order_without_a_side_is_refused() {
        let mut bytes = ADD.to_vec();
        bytes[19] = b'X';
        assert_eq!(parse(&bytes).err(), Some(ItchError::UnknownSide { message_type: b'A' }));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(message) = parse(&bytes) {
                prop_assert_eq!(message.header().message_type, bytes[0]);
            }
        }
    }
}
