//! The taps: the points on the way of an order where a time is taken, and the times that the gateway took of one order.

use types::Timestamp;

macro_rules! taps {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $meaning:literal;)*) => {
        /// A point on the way of an order, in the order in which an order passes them.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Tap {
            $($(#[$doc])* $name,)*
        }

        impl Tap {
            /// All taps, in the order in which an order passes them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in reports and files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// When the time is taken, for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

taps! {
    /// Outside: the exchange's publisher.
    TickSent = "tick_sent", "the exchange is about to send the packet with the tick";
    /// Outside: the client.
    TickReceived = "tick_received", "the client has read the packet with the tick";
    /// Outside: the client.
    OrderSent = "order_sent", "the client is about to send the order";
    /// t0.
    GatewayReceived = "gateway_received", "the gateway has read the order's bytes from the socket";
    /// t1.
    Decoded = "decoded", "session and sequence are checked and the bytes are an order";
    /// t2.
    RiskChecked = "risk_checked", "every risk limit is checked";
    /// t3.
    Matched = "matched", "the order is screened against the owner's own orders";
    /// t4.
    Routed = "routed", "the venue is chosen, room and shared limits are reserved, the order's state is changed";
    /// t5.
    VenueSent = "venue_sent", "the order is journaled and the venue link has handed it to the socket";
    /// Outside: the exchange.
    ExchangeReceived = "exchange_received", "the exchange has read the order from its link";
    /// Outside: the exchange.
    ExchangeReported = "exchange_reported", "the exchange is about to send its first report of the order";
    /// t6.
    VenueReceived = "venue_received", "the gateway has read the report from the venue link";
    /// t7.
    ReportEncoded = "report_encoded", "the order's state is changed and the report is in the client's protocol";
    /// t8.
    ReportSent = "report_sent", "the report is handed to the client's socket";
    /// Outside: the client.
    ReportReceived = "report_received", "the client has read the report";
}

impl Tap {
    /// How many taps there are.
    pub const COUNT: usize = Self::ALL.len();
    /// The first that the gateway takes, t0.
    const GATEWAY_FIRST: Self = Self::GatewayReceived;

    /// From its name in reports and files.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tap| tap.name() == name)
    }

    /// Its place among all taps.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The times that the gateway took of one order on its way to the venue, t0 to t5. A tap that it did not reach is
/// [`Timestamp::NONE`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stamps {
    times: [Timestamp; Self::COUNT],
}

impl Stamps {
    /// Taps on the way to the venue.
    pub const COUNT: usize = Tap::VenueSent.index() - Tap::GATEWAY_FIRST.index() + 1;

    /// Stamps of an order that arrived at `received` (t0).
    #[inline]
    #[must_use]
    pub const fn received(received: Timestamp) -> Self {
        let mut times = [Timestamp::NONE; Self::COUNT];
        times[0] = received;
        Self { times }
    }

    /// The order passed `tap` at `time`.
    ///
    /// # Panics
    /// When `tap` is not one of t0 to t5.
    #[inline]
    pub const fn mark(&mut self, tap: Tap, time: Timestamp) {
        self.times[tap.index() - Tap::GATEWAY_FIRST.index()] = time;
    }

    /// When the order passed `tap`; [`Timestamp::NONE`] when it did not, or the tap is elsewhere.
    #[must_use]
    pub const fn at(&self, tap: Tap) -> Timestamp {
        let index = tap.index().wrapping_sub(Tap::GATEWAY_FIRST.index());
        if index < Self::COUNT {
            self.times[index]
        } else {
            Timestamp::NONE
        }
    }

    /// The times, t0 first.
    #[must_use]
    pub const fn times(&self) -> [Timestamp; Self::COUNT] {
        self.times
    }
}

impl From<[Timestamp; Self::COUNT]> for Stamps {
    fn from(times: [Timestamp; Self::COUNT]) -> Self {
        Self { times }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_comes_back_from_its_name() {
        for &tap in Tap::ALL {
            assert_eq!(Tap::from_name(tap.name()), Some(tap));
            assert_eq!(Tap::ALL[tap.index()], tap);
        }
        assert_eq!(Tap::from_name("t0"), None);
    }

    #[test]
    fn stamps_keep_what_was_marked_and_nothing_else() {
        let mut stamps = Stamps::received(Timestamp(10));
        stamps.mark(Tap::Decoded, Timestamp(11));
        stamps.mark(Tap::VenueSent, Timestamp(15));
        assert_eq!(stamps.at(Tap::GatewayReceived), Timestamp(10));
        assert_eq!(stamps.at(Tap::Decoded), Timestamp(11));
        assert_eq!(stamps.at(Tap::RiskChecked), Timestamp::NONE);
        assert_eq!(stamps.at(Tap::VenueSent), Timestamp(15));
        assert_eq!(stamps.at(Tap::TickSent), Timestamp::NONE);
        assert_eq!(stamps.at(Tap::ExchangeReceived), Timestamp::NONE);
    }
}
