//! What records are: the numbers in use.

/// What a record is. The journal itself gives no meaning to the number; it is here so that no two users take the same.
///
/// Bit 15 tells outputs from inputs. A number, once used, keeps its meaning; a new layout of a payload gets a new version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Kind {
    /// The writer started (again): what it runs with.
    Start = 1,
    /// The trading day ended and the next began.
    DayRoll = 2,
    /// An operator changed something.
    Control = 3,
    /// Limits that the config has changed since the last start.
    ConfigLimits = 4,
    /// A client session's connection: logon, logout, loss.
    ClientEvent = 16,
    /// A frame of a client.
    ClientMessage = 17,
    /// A message to a client that was looked up in this journal, because the session no longer had it.
    ClientRecall = 19,
    /// A venue link: up, down, why.
    VenueEvent = 32,
    /// A message of a venue.
    VenueMessage = 33,
    /// A message of another shard.
    ShardMessage = 48,
    /// A reference price that was used.
    ReferencePrice = 64,
    /// A backend of the pre-filter refused a request, there was no room for it, or a shared limit was used up. No record means
    /// that none of these was so.
    Refusal = 65,
    /// Best bid and offer that orders held by the gateway have waited for.
    BookMove = 66,
    /// A timer that fired.
    Timer = 67,
    /// A message of a historical feed.
    FeedMessage = 68,
    /// A historical feed began, or messages of it were lost.
    FeedEvent = 69,
    /// A position is valued at another price.
    Mark = 70,
    /// Rates that span shards did not allow an order.
    TooFast = 71,
    /// A numbered message to a client.
    ClientOutput = Self::OUTPUT | 17,
    /// A message to a client that has its number and is not sent yet.
    ClientHeld = Self::OUTPUT | 18,
    /// A numbered message to a venue.
    VenueOutput = Self::OUTPUT | 33,
    /// A numbered message to another shard.
    ShardOutput = Self::OUTPUT | 48,
    /// A numbered message of market data.
    FeedOutput = Self::OUTPUT | 68,
}

impl Kind {
    /// Set in outputs: what was decided, and can be made again by replaying the inputs.
    pub const OUTPUT: u16 = 0x8000;

    /// All, for tables.
    pub const ALL: &'static [Self] = &[
        Self::Start,
        Self::DayRoll,
        Self::Control,
        Self::ConfigLimits,
        Self::ClientEvent,
        Self::ClientMessage,
        Self::ClientRecall,
        Self::VenueEvent,
        Self::VenueMessage,
        Self::ShardMessage,
        Self::ReferencePrice,
        Self::Refusal,
        Self::BookMove,
        Self::Timer,
        Self::FeedMessage,
        Self::FeedEvent,
        Self::Mark,
        Self::TooFast,
        Self::ClientOutput,
        Self::ClientHeld,
        Self::VenueOutput,
        Self::ShardOutput,
        Self::FeedOutput,
    ];

    /// From its number in a record.
    #[must_use]
    pub fn from_u16(value: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|&kind| kind as u16 == value)
    }

    /// Whether it answers what was asked of the world while an input was handled.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::ReferencePrice | Self::Refusal | Self::TooFast)
    }

    /// Whether it is an output.
    #[must_use]
    pub const fn is_output(self) -> bool {
        self as u16 & Self::OUTPUT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_outputs_are_told_from_inputs() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_u16(kind as u16), Some(kind));
        }
        assert_eq!(Kind::from_u16(0), None);
        assert!(Kind::ClientOutput.is_output() && !Kind::ClientMessage.is_output());
    }
}
