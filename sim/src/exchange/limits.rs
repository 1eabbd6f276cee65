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

/// Longest datagram of a recording, bytes: an Ethernet jumbo frame's.
pub(crate) const MAX_DATAGRAM_LENGTH: usize = 9_000;

/// Destinations of the feed, at most.
pub const MAX_DESTINATIONS: usize = 16;

/// Messages taken from one session's link in a turn.
pub(crate) const REQUESTS_PER_TURN: usize = 32;

/// Orders that expire in a turn.
pub(crate) const EXPIRIES_PER_TURN: usize = 32;

/// Datagrams of the recording taken in a turn: few, so that a session's request does not wait long.
pub(crate) const DATAGRAMS_PER_TURN: usize = 4;

/// Packets of the feed sent in a turn.
pub(crate) const PACKETS_PER_TURN: usize = 64;

/// Requests for retransmission answered in a turn.
pub(crate) const GAP_REQUESTS_PER_TURN: usize = 16;

/// Reports of a turn that wait for their stamp; more are stamped at once.
pub(crate) const REPORTS_HELD_PER_TURN: usize = 4_096;
