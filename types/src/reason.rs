//! Why something was refused or cancelled. Every refusal has one; it reaches the peer in the peer's own protocol.

use core::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why an order or request was refused, or an order cancelled. The numbers are on wires and never change.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
        #[repr(u16)]
        pub enum Reason {
            $($(#[$doc])* $name = $number,)*
        }

        impl Reason {
            /// All reasons, for counters and tables.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// From its number on wires.
            #[must_use]
            pub const fn from_u16(value: u16) -> Option<Self> {
                match value {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// One clause for people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// Nothing was refused.
    #[default]
    None = 0, "none";
    /// Form: the message is not one this session may send, or its fields contradict each other.
    MalformedMessage = 1, "malformed message";
    /// Form: the session in the message is not the session it came in by.
    WrongSession = 2, "session field differs from the session";
    /// Form: the instrument is not in the instrument master.
    UnknownInstrument = 3, "unknown instrument";
    /// Form: the account is not one of this session's.
    UnknownAccount = 4, "account is not one of this session's";
    /// Form: the client order id is not above the last one.
    DuplicateClientOrderId = 5, "client order id was used before";
    /// Form: the order type, time in force or combination is not supported.
    UnsupportedOrder = 6, "order type or time in force is not supported";
    /// Form: quantity is zero.
    InvalidQuantity = 7, "quantity is not valid";
    /// Form: price is missing, not positive where it must be, or off the tick grid.
    InvalidPrice = 8, "price is missing or not on the tick grid";
    /// Form: a stop order has no stop price, another order has one, or it is off the tick grid.
    InvalidStopPrice = 9, "stop price is missing, not wanted or not on the tick grid";
    /// Form: more is to be shown than the order has, or the order never rests.
    InvalidDisplay = 10, "display quantity is not valid for this order";
    /// Form: the minimum is above the quantity, or the order is of a kind that has none.
    InvalidMinQuantity = 11, "minimum quantity is not valid for this order";
    /// Form: a good-till-date order has no expiry in the future, or another order has one.
    InvalidExpiry = 12, "expiry is missing, past or not wanted";
    /// Form: the offset would take the order over the price it follows, is off the tick grid, or the order is not pegged.
    InvalidPegOffset = 13, "peg offset is not valid for this order";
    /// Form: the client's id for the order is longer than the gateway keeps.
    ClientOrderIdTooLong = 14, "client order id is too long";
    /// Form: another way of self-match prevention is asked for than the session's.
    UnsupportedSelfMatch = 15, "self-match prevention is not the session's";
    /// Form: an operator has disabled the session.
    SessionDisabled = 16, "session is disabled";

    /// Risk: more lots than allowed in one order.
    MaxQuantity = 20, "quantity is above the limit for one order";
    /// Risk: more notional than allowed in one order.
    MaxNotional = 21, "notional is above the limit for one order";
    /// Risk: too far from the reference price.
    PriceCollar = 22, "price is outside the collar";
    /// Risk: there is no reference price, or it is too old.
    NoReferencePrice = 23, "no fresh reference price for the collar";
    /// Risk: the account has too many open orders.
    MaxOpenOrders = 24, "too many open orders";
    /// Risk: the kill switch is on.
    Killed = 25, "kill switch is on";
    /// Risk: a limit of the account that spans shards is used up.
    SharedLimit = 26, "limit of open and traded notional is used up";
    /// Risk: more orders in a time than the session or account may send.
    RateLimit = 27, "too many orders in too short a time";
    /// Risk: with its open orders the account could come to hold more in the instrument than it may.
    PositionLimit = 28, "position limit of the account";

    /// Risk: with its open orders the account could come to hold more long in the instrument than it may.
    LongLimit = 29, "long position limit of the account";
    /// Risk: with its open orders the account could come to hold more short in the instrument than it may.
    ShortLimit = 30, "short position limit of the account";
    /// Risk: with its open orders the account could come to hold more in all instruments together than it may.
    GrossLimit = 31, "gross position limit of the account";
    /// Risk: with its open orders the account could come to hold more on one side of the market than it may.
    NetLimit = 32, "net position limit of the account";
    /// Risk: the account has lost more this day than it may.
    LossLimit = 33, "loss limit of the account";
    /// Risk: a limit of the firm that spans shards is used up.
    FirmLimit = 34, "limit of the firm is used up";
    /// Risk: the instrument or its class is closed to the account, the session or everybody.
    Restricted = 35, "instrument is restricted";
    /// Risk: the account may not sell short.
    ShortSale = 36, "short sales are not allowed";
    /// Risk: the account may sell short only what it has located.
    NoLocate = 37, "short sale without a locate";
    /// Risk: market orders are not allowed in the instrument.
    MarketOrder = 38, "market orders are not allowed";

    /// Risk: the session sent the same order too often in a time.
    RepeatedOrder = 39, "the same order was sent too often";

    /// First stage: the order would trade with one of its own owner.
    SelfMatch = 40, "would trade with an own order";
    /// First stage: own orders that the order would trade with were not cancelled in the time that it may wait, or a venue
    /// would not cancel one.
    OwnOrderRemains = 41, "an own order that it would trade with was not cancelled in time";
    /// First stage: no more orders may wait until own ones are cancelled.
    TooManyWaiting = 42, "too many orders wait for own orders to be cancelled";
    /// First stage: no more orders may be held whose type their venue lacks.
    TooManyHeld = 43, "too many orders are held";
    /// First stage: the venue does not have the order's type, and the gateway does not stand in for it.
    VenueLacksType = 44, "venue does not have this type of order";
    /// First stage, no refusal: the gateway holds the order because its venue lacks the type; of an order that was triggered,
    /// that the gateway triggered it.
    Held = 45, "held by the gateway, for a venue without this type of order";
    /// First stage, no refusal: the order may trade with another client's inside the gateway before it goes to its venue.
    Crossing = 46, "may trade inside the gateway before it goes to its venue";
    /// First stage, no refusal: it traded inside the gateway, with an order that was there before.
    CrossedTaking = 47, "traded inside the gateway, with an order that rested there";
    /// First stage, no refusal: it traded inside the gateway, where it rested.
    CrossedResting = 48, "traded inside the gateway, where it rested";

    /// Risk: a switch lets only orders pass that reduce what the account holds.
    ReduceOnly = 50, "only orders that reduce a position are allowed";
    /// Risk: a buy too far above the best offer, or a sell too far below the best bid.
    ThroughBook = 51, "price is too far through the book";
    /// Risk: the other side of the book is empty, unknown or too old.
    NoBook = 52, "no fresh book to hold the price against";
    /// Too many orders in too short a time, and the session is logged out for it.
    RateLogout = 53, "too many orders in too short a time, the session is logged out";

    /// Room: the venue link takes no more orders now.
    VenueFull = 60, "venue link is full";
    /// Room: the venue is not connected.
    VenueDown = 61, "venue is down";
    /// Room: no free slot for one more order.
    OrderTableFull = 62, "order table is full";
    /// Room: the journal takes no more now.
    JournalFull = 63, "journal is full";
    /// Room: the other shard's ring is full.
    ShardRingFull = 64, "ring to the other shard is full";
    /// Room: the reports to this client are not being read.
    ReportRingFull = 65, "reports are not being read";
    /// Room: the venue permits no more open orders than there are.
    NoVenueSlot = 66, "venue permits no more open orders";

    /// Request: no live order has this number.
    UnknownOrder = 80, "unknown order";
    /// Request: the order is already filled or cancelled.
    TooLate = 81, "too late, the order is done";
    /// Request: an earlier cancel or replace is not answered yet.
    RequestPending = 82, "an earlier request is not answered yet";
    /// Request: it names an order by another instrument or side than the order's.
    OrderMismatch = 83, "instrument or side is not the order's";

    /// Cancel: the client asked.
    Requested = 100, "on request";
    /// Cancel: what an immediate-or-cancel or market order could not trade.
    Unfilled = 101, "could not trade at once";
    /// Cancel: the session was lost and cancel on disconnect is on.
    Disconnected = 102, "session was lost";
    /// Cancel: the client asked for all its orders.
    MassCanceled = 103, "mass cancel";
    /// Refused or cancelled by the venue, which gave no reason of this list.
    Venue = 120, "by the venue";
    /// The venue has no room for one more order or level.
    BookFull = 121, "book of the venue is full";
    /// The trading day ended.
    DayEnded = 122, "trading day ended";
    /// A post-only order would have traded at once.
    PostOnly = 123, "post-only order would trade at once";
    /// The time that the order itself gives is over.
    Expired = 124, "order has expired";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_come_back() {
        for &reason in Reason::ALL {
            assert_eq!(Reason::from_u16(reason as u16), Some(reason));
        }
    }
}
