//! What crosses between host and filter: a slot of 64 bytes each order, a verdict of 16 bytes each slot. Little-endian.

use core::fmt;
use types::Reason;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version of slot, verdict and register map. A board with another one is refused.
pub const ABI_VERSION: u32 = 1;

/// Bytes of a message that is judged.
pub const MESSAGE_LENGTH: usize = 48;

/// Bit of [`Slot::flags`]: the order must rest first. The 48 bytes have no place for it.
pub const POST_ONLY: u8 = 1;

/// One order for the filter.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Slot {
    /// The message; what is beyond its length is ignored.
    pub message: [u8; MESSAGE_LENGTH],
    /// UTC nanoseconds since 1970.
    pub now: U64,
    /// The submitter's number; the verdict repeats it.
    pub sequence: U32,
    /// Bytes of the message, which may be more than there is room for.
    pub length: U16,
    /// [`POST_ONLY`]; the other bits are 0.
    pub flags: u8,
    /// 0.
    pub reserved: u8,
}

/// What became of one order.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Verdict {
    /// The slot's number.
    pub sequence: U32,
    /// The limits that were in force when the order came.
    pub generation: U32,
    /// Why it is refused, see [`Reasons`]; 0: it passes.
    pub reasons: U16,
    /// See [`Action`].
    pub action: u8,
    /// The route of the instrument; 0: none.
    pub route: u8,
    /// 0.
    pub reserved: [u8; 3],
    /// In a completion ring: turns over with each round, so that the host sees a new entry without a read of the board.
    pub phase: u8,
}

const _: () = assert!(size_of::<Slot>() == 64);
const _: () = assert!(size_of::<Verdict>() == 16);

/// Why an order is refused: a set, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Reasons(pub u16);

impl Reasons {
    /// None: the order passes.
    pub const NONE: Self = Self(0);
    /// The message is not 48 bytes long. No other bit stands beside it.
    pub const LEN: Self = Self(1);
    /// The header is none of the four that are judged, or a field has a value that it may not have. Nothing that the order
    /// asks for is looked at.
    pub const FIELD: Self = Self(1 << 1);
    /// The kill switch is on, or the filter is closed.
    pub const KILL: Self = Self(1 << 2);
    /// The session has no limits.
    pub const SESSION: Self = Self(1 << 3);
    /// The instrument has no limits. Quantity, price and touch are not looked at.
    pub const SYMBOL: Self = Self(1 << 4);
    /// More lots than allowed in one order.
    pub const QTY: Self = Self(1 << 5);
    /// The price is outside the instrument's bounds.
    pub const PRICE: Self = Self(1 << 6);
    /// More orders in a time than the session may send.
    pub const RATE: Self = Self(1 << 7);
    /// A post-only order that would trade.
    pub const TOUCH: Self = Self(1 << 8);

    /// How many there are.
    pub const COUNT: usize = 9;
    /// Their names, by bit.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "LEN", "FIELD", "KILL", "SESSION", "SYMBOL", "QTY", "PRICE", "RATE", "TOUCH",
    ];

    /// The reason by which a peer is told: that of the lowest bit.
    #[must_use]
    pub const fn first(self) -> Reason {
        match self.0.trailing_zeros() {
            0 | 1 => Reason::MalformedMessage,
            2 => Reason::Killed,
            3 => Reason::WrongSession,
            4 => Reason::UnknownInstrument,
            5 => Reason::MaxQuantity,
            6 => Reason::PriceCollar,
            7 => Reason::RateLimit,
            8 => Reason::PostOnly,
            _ => Reason::None,
        }
    }
}

impl fmt::Debug for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("pass");
        }
        let mut separator = "";
        for (bit, name) in Self::NAMES.iter().enumerate() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        if self.0 >> Self::COUNT != 0 {
            write!(f, "{separator}{:#x}", self.0 >> Self::COUNT << Self::COUNT)?;
        }
        Ok(())
    }
}

/// What is to be done with an order, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
pub struct Action(pub u8);

impl Action {
    /// It is refused.
    pub const REFUSE: u8 = 1;
    /// It would trade at once, as far as the touch is known.
    pub const MARKETABLE: u8 = 1 << 1;
    /// The filter is closed, which is why [`Reasons::KILL`] stands there for a cancel too.
    pub const CLOSED: u8 = 1 << 2;
}
