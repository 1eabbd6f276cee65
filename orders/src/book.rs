//! The live book: how far a limit may reach through the best price of the other side.
//!
//! The collar holds a price against one reference; this holds it against what the order would trade with. The prices are those
//! that the order's reference came with, so a journal has them like it.

use crate::config::{InstrumentState, MissingBook};
use crate::risk::{Reference, Terms};
use types::{OrderType, Reason, Side};

impl Terms {
    /// A limit order that may trade when it arrives, against the book. Stops, pegs and orders for an auction do not.
    #[inline]
    pub(crate) fn check_book(
        &self,
        instrument: &InstrumentState,
        reference: &Reference,
        is_fresh: bool,
    ) -> Result<(), Reason> {
        let Some(book) = &instrument.limits.book else {
            return Ok(());
        };
        if self.order_type != OrderType::Limit || self.is_for_auction() {
            return Ok(());
        }
        let best = match self.side {
            Side::Buy => reference.offer,
            Side::Sell => reference.bid,
        };
        if best.0 <= 0 || !is_fresh {
            return match book.missing {
                MissingBook::Refuse => Err(Reason::NoBook),
                MissingBook::Skip => Ok(()),
            };
        }
        let is_through = match self.side {
            Side::Buy => self.price > best,
            Side::Sell => self.price < best,
        };
        if is_through && !book.width.lets_pass(self.price, best, instrument.tick_size) {
            return Err(Reason::ThroughBook);
        }
        Ok(())
    }
}
