//! Identifiers. Each is a newtype, so that one is never passed for another.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// An instrument of the instrument master (`configs/instruments.csv`). 0 is none.
    InstrumentId(u32)
);
id!(
    /// A trading account. 0 is none.
    AccountId(u32)
);
id!(
    /// An order session: one client's FIX or native session, or one link to a venue. 0 is none.
    SessionId(u16)
);
id!(
    /// A shard of the gateway: one thread on one core.
    ShardId(u8)
);
id!(
    /// A venue of the config: the order of its `[[venues]]`.
    VenueId(u8)
);
id!(
    /// The number a client gives to a request (new, cancel, replace). It rises strictly within a session and trading day,
    /// so that one comparison tells a duplicate. 0 is none.
    ClientOrderId(u64)
);
id!(
    /// The number the gateway gives to an order: shard in the top byte, then a count that rises for the day. It is the
    /// client order id on the venue's session, and OrderID (37) in FIX. 0 is none.
    OrderId(u64)
);
id!(
    /// The number of an execution report, unique within its sender and day.
    ExecId(u64)
);
id!(
    /// A session's sequence number: the first message is 1. Wires truncate it; memory never does.
    SequenceNumber(u64)
);

impl SequenceNumber {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl OrderId {
    /// The `count`-th order of `shard`. The count has 56 bits.
    #[must_use]
    pub const fn new(shard: ShardId, count: u64) -> Self {
        Self(((shard.0 as u64) << 56) | (count & ((1 << 56) - 1)))
    }

    /// The shard that gave the number.
    #[must_use]
    pub const fn shard(self) -> ShardId {
        ShardId((self.0 >> 56) as u8)
    }
}

/// The tick that caused an order, as the exchange published it: feed id in the top 8 bits, MoldUDP64 sequence number in
/// the lower 56. 0 is none. Tick-to-trade is joined by it, by identity and never by nearness in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Trigger(pub u64);

impl Trigger {
    /// No tick caused the order.
    pub const NONE: Self = Self(0);

    /// The tick with this sequence number on this feed. The sequence number has 56 bits.
    #[must_use]
    pub const fn new(feed: u8, sequence: u64) -> Self {
        Self(((feed as u64) << 56) | (sequence & ((1 << 56) - 1)))
    }

    /// Feed id.
    #[must_use]
    pub const fn feed(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// MoldUDP64 sequence number.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0 & ((1 << 56) - 1)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.feed(), self.sequence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_id_keeps_its_shard() {
        let id = OrderId::new(ShardId(7), 123);
        assert_eq!(id.shard(), ShardId(7));
        assert_eq!(id.0 & 0xff_ffff, 123);
    }

    #[test]
    fn a_trigger_keeps_feed_and_sequence() {
        let trigger = Trigger::new(3, 1 << 50);
        assert_eq!((trigger.feed(), trigger.sequence()), (3, 1 << 50));
    }
}
