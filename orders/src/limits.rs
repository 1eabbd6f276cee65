//! The bounds that hold whatever the config says. The arithmetic of the crate is sized by them.

use types::Notional;

/// Most open orders of one shard. An order number has room for the slot of that many, see `number.rs`.
pub const OPEN_ORDERS_MAX: u32 = 1 << 24;

/// Most (account, instrument) pairs that one shard keeps exposure for.
pub const POSITIONS_MAX: u32 = 1 << 24;

/// Most (owner, instrument) pairs that one shard keeps own orders for.
pub const BOOKS_MAX: u32 = 1 << 24;

/// Highest permitted limit for the lots of one order: what the native protocol's 32 bits carry. |price| times quantity
/// times lot size then stays below 2^127.
pub const QUANTITY_MAX: u64 = u32::MAX as u64;

/// Highest permitted limit for the notional of one order, 1e-9. [`OPEN_ORDERS_MAX`] orders, each with a replace pending,
/// then add up to less than 2^122.
pub const NOTIONAL_MAX: Notional = Notional(1 << 96);

/// Highest permitted age of a reference price, and longest time that a repeated order is remembered, milliseconds: a day.
pub const AGE_MAX_MS: u64 = 86_400_000;

/// Highest permitted limit of an account's gross, net and loss, 1e-9: a position's value is bounded just above it.
pub const VALUE_LIMIT_MAX: Notional = Notional(((1 << 56) - 1) * 100_000);

/// Limit classes below this can be closed to an account or a session.
pub const RESTRICTED_CLASSES_MAX: u8 = 64;

/// Most classes and instruments that one shard keeps closed to accounts and sessions.
pub const RESTRICTIONS_MAX: u32 = 1 << 20;

/// Most times that a limit of repeated orders may allow the same order.
pub const REPEATS_MAX: u32 = 16;

/// Different orders of a session that are remembered, so that a repeated one is seen.
pub(crate) const ORDERS_REMEMBERED: usize = 8;

/// Most orders that are over and still known: for a late cancel, and for whoever asks. No more than may be open.
pub const DONE_ORDERS: u32 = 1 << 14;

/// New orders and replaces are refused when fewer request numbers than this are left, so that cancels always find one.
pub(crate) const NUMBERS_KEPT_FOR_CANCELS: u64 = 4 * OPEN_ORDERS_MAX as u64;
