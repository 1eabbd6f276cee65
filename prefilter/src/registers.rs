//! The register map of a board: 32 bits each, at byte offsets into its BAR 0. No register is read or written on the way of
//! an order, but for one doorbell a batch.

/// Read: the bytes `PFLT`, [`ID_VALUE`].
pub const ID: u32 = 0x00;
/// Read: [`ABI_VERSION`](crate::abi::ABI_VERSION).
pub const ABI: u32 = 0x04;
/// Read: bits 0–7 log2 of the instruments, 8–15 log2 of the sessions, 16 rings, 24–31 log2 of the stream's width in bits.
pub const CAPS: u32 = 0x08;
/// Write and read: bit 0 enable, bit 1 kill. Enable is 0 after a reset and when the heartbeat was lost; it
/// stays 0 unless the heartbeat was written before it.
pub const CONTROL: u32 = 0x0C;
/// Read: bit 0 the tables are cleared after a reset, bit 1 open, bit 2 the heartbeat was lost, bit 3 a swap is pending.
pub const STATUS: u32 = 0x10;
/// Write: swaps the banks at the start of a frame and names the new limits so. Read: the generation in force.
pub const GENERATION: u32 = 0x14;
/// Write: the clock cycles within which it is to be written again, else the board closes. 0 closes at once.
pub const HEARTBEAT: u32 = 0x18;

/// Write: most lots in one order; 0: the instrument has no limits.
pub const SYMBOL_MAX_QUANTITY: u32 = 0x24;
/// Write: lowest price, low half.
pub const SYMBOL_LOWEST_LOW: u32 = 0x28;
/// Write: lowest price, high half.
pub const SYMBOL_LOWEST_HIGH: u32 = 0x2C;
/// Write: highest price, low half.
pub const SYMBOL_HIGHEST_LOW: u32 = 0x30;
/// Write: highest price, high half.
pub const SYMBOL_HIGHEST_HIGH: u32 = 0x34;
/// Write: bits 0–23 the instrument, 24–31 its route. Puts what was staged into the bank that is not in force.
pub const SYMBOL_COMMIT: u32 = 0x3C;

/// Write: nanoseconds that one order of a session takes; 0: the session has no limits.
pub const SESSION_INTERVAL: u32 = 0x44;
/// Write: how far ahead of the clock the session may be, nanoseconds, low half.
pub const SESSION_AHEAD_LOW: u32 = 0x48;
/// Write: the same, bits 32–47.
pub const SESSION_AHEAD_HIGH: u32 = 0x4C;
/// Write: bits 0–15 the session. Puts what was staged into the bank that is not in force.
pub const SESSION_COMMIT: u32 = 0x50;

/// Write: best price of a side, low half.
pub const TOUCH_LOW: u32 = 0x54;
/// Write: the same, high half.
pub const TOUCH_HIGH: u32 = 0x58;
/// Write: bits 0–23 the instrument, bit 24 the side (0 bid, 1 ask). In force at once.
pub const TOUCH_COMMIT: u32 = 0x5C;

/// Read: messages judged.
pub const RECEIVED: u32 = 0x80;
/// Read: messages passed.
pub const PASSED: u32 = 0x84;
/// Read: messages refused.
pub const REFUSED: u32 = 0x88;
/// Read: messages that had the reason of bit 0; the eight others follow.
pub const REASONS: u32 = 0xA0;

/// Write: where the submission ring is in the host's memory, low half.
pub const SUBMISSION_LOW: u32 = 0x100;
/// Write: the same, high half.
pub const SUBMISSION_HIGH: u32 = 0x104;
/// Write: where the completion ring is, low half.
pub const COMPLETION_LOW: u32 = 0x108;
/// Write: the same, high half.
pub const COMPLETION_HIGH: u32 = 0x10C;
/// Write: bits 0–4 log2 of the entries of both rings, bit 31 on. After a reset both begin at entry 0, with phase 1.
pub const RING_CONTROL: u32 = 0x110;
/// Write: how many slots were ever put into the submission ring, modulo 2^32. The doorbell.
pub const SUBMISSION_TAIL: u32 = 0x114;
/// What [`ID`] reads: `PFLT`, first byte lowest.
pub const ID_VALUE: u32 = u32::from_le_bytes(*b"PFLT");
/// [`CAPS`]: it has rings.
pub const CAPS_RINGS: u32 = 1 << 16;
/// [`CONTROL`]: orders may pass.
pub const CONTROL_ENABLE: u32 = 1;
/// [`CONTROL`]: only cancels pass.
pub const CONTROL_KILL: u32 = 1 << 1;
/// [`STATUS`]: the tables are cleared after a reset; frames are taken from here on.
pub const STATUS_READY: u32 = 1;
/// [`STATUS`]: enabled and alive.
pub const STATUS_OPEN: u32 = 1 << 1;
/// [`STATUS`]: closed, because the heartbeat was not written in time.
pub const STATUS_HEARTBEAT_LOST: u32 = 1 << 2;
/// [`STATUS`]: a swap waits for the start of a frame.
pub const STATUS_SWAPPING: u32 = 1 << 3;
/// [`RING_CONTROL`]: the rings are on.
pub const RING_ON: u32 = 1 << 31;
