//! The named maxima of this crate.

use proto::itch::{self, BookLimits};
use proto::mold::{Join, ReceiverConfig};
use types::Duration;

/// Instruments that one feed or one instrument master may have.
pub const MAX_INSTRUMENTS: usize = 16_384;

/// Books while a file is inspected: a day of a large exchange. The memory is reserved, and used as far as the file needs it.
pub const INSPECTION_BOOKS: BookLimits = BookLimits {
    instruments: MAX_INSTRUMENTS,
    orders: 1 << 23,
    levels: 1024,
};

/// A feed of at most this many bytes (unpacked) is held in memory for its replay, so that neither disk nor unpacking holds
/// up the thread that others take turns on. Of a larger one this much is held and the rest is read on the way.
pub const MAX_PRELOAD_BYTES: usize = 64 << 20;

/// Bytes read at once from a file on the way.
pub const READ_BYTES: usize = 128 << 10;

/// Messages that a replay reads or publishes in one turn. Some eight packets: a socket's usual buffer holds ten times as
/// many.
pub const MAX_MESSAGES_PER_TURN: usize = 256;

/// Datagrams that a receiver takes in one turn.
pub const MAX_DATAGRAMS_PER_TURN: usize = 64;

/// Requests that a publisher answers in one turn.
pub const MAX_REQUESTS_PER_TURN: usize = 16;

/// Addresses that one feed is sent to.
pub const MAX_DESTINATIONS: usize = 16;

/// Longest datagram that is received whole, bytes: an Ethernet jumbo frame.
pub const MAX_DATAGRAM_BYTES: usize = 9216;

/// Kernel buffer of a receiving socket, bytes, so that a burst waits rather than being lost. (Linux may give less.)
pub const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;

/// How a receiver of an ITCH feed works unless told otherwise: it wants everything from the first message on, holds 16,384
/// messages behind a gap, and has given a gap up after a second.
pub const RECEIVER: ReceiverConfig = ReceiverConfig {
    join: Join::First,
    window: 16_384,
    max_message: itch::MAX_MESSAGE_LENGTH,
    request_interval: Duration::from_millis(2),
    give_up: Duration::from_secs(1),
    session_timeout: Duration::from_secs(3),
};

/// How long a receiver that cannot ask for what is missing waits for packets that the network put into another order.
pub const REORDER_PATIENCE: Duration = Duration::from_millis(10);

/// Messages that a publisher of an ITCH feed keeps for retransmission unless told otherwise.
pub const PUBLISHER_RING: usize = 1 << 18;
