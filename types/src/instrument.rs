//! What the instrument master says of an instrument.

use crate::ids::{InstrumentId, ShardId, VenueId};
use crate::price::Price;
use core::fmt;

/// A symbol of at most [`Symbol::MAX_LENGTH`] printable ASCII bytes without blanks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    /// Padded on the right with zeros.
    bytes: [u8; Self::MAX_LENGTH],
}

/// The name of a set of risk limits that instruments share (`[risk.classes.NAME]` of the gateway's config), by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct LimitClass(pub u8);

/// One instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instrument {
    /// Identifies the instrument everywhere inside.
    pub id: InstrumentId,
    /// Symbol on FIX, OUCH and feeds.
    pub symbol: Symbol,
    /// Smallest price step, 1e-9.
    pub tick_size: Price,
    /// Units in a lot. Quantities are counted in lots.
    pub lot_size: u32,
    /// Price that stands in where no feed gives one, 1e-9.
    pub reference_price: Price,
    /// Which limits hold.
    pub limit_class: LimitClass,
    /// The one shard that owns its order state.
    pub shard: ShardId,
    /// The venue orders go to unless a route says otherwise.
    pub venue: VenueId,
}

impl Symbol {
    /// Longest symbol, bytes.
    pub const MAX_LENGTH: usize = 16;

    /// A symbol from text; trailing blanks are dropped. `None` when it is empty, too long or not printable ASCII.
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii_end();
        if text.is_empty() || text.len() > Self::MAX_LENGTH || !text.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut bytes = [0; Self::MAX_LENGTH];
        bytes[..text.len()].copy_from_slice(text);
        Some(Self { bytes })
    }

    /// The text, without padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let length = self
            .bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(Self::MAX_LENGTH);
        &self.bytes[..length]
    }

    /// The text, without padding.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
