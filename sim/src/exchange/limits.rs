//! The maxima of the exchange. What a config asks for is checked against them.

/// Most instruments: a stock locate has 16 bits and 0 is taken.
pub const MAX_INSTRUMENTS: usize = u16::MAX as usize;

/// Most order sessions.
pub const MAX_SESSIONS: usize = 256;

/// Bits of a client order's reference number that tell its place in the table.
pub(crate) const SLOT_BITS: u32 = 24;

/// Most live client orders.
pub const MAX_CLIENT_ORDERS: usize = 1 << SLOT_BITS;

/// Highest price that ITCH 5.0 allows, 4 decimals.
pub(crate) const MAX_PRICE_E4: i64 = 2_000_000_000;
