//! Positions valued anew as the market moves, without an order of their account or a trade.
//!
//! The gateway looks at one position after the other and makes an input of each whose price is another than its mark. So what
//! decides is the mark itself, not when it was looked for.

use crate::report::Sink;
use crate::risk::{Reference, fresh_price};
use crate::state::Orders;
use types::{AccountId, InstrumentId, Price, Timestamp};

/// A position is valued at this price from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Whose position.
    pub account: AccountId,
    /// In what.
    pub instrument: InstrumentId,
    /// 1e-9.
    pub price: Price,
}

impl Orders {
    /// Places of positions in use: to look at all of them a few at a time. They end with the day.
    #[must_use]
    pub fn positions(&self) -> u32 {
        u32::try_from(self.positions.entries().len()).expect("positions are bounded")
    }

    /// The mark that the position in a place should have by now, when it has another. `None` as well when its account has no
    /// limit by the value of positions, when nothing is held or open there, or when `market` has no fresh price of the
    /// instrument: the last mark stays. Nothing changes; [`mark`](Self::mark) does it.
    #[inline]
    pub fn mark_due(&self, now: Timestamp, place: u32, market: impl FnOnce(InstrumentId) -> Reference) -> Option<Mark> {
        let position = self.positions.entries().get(place as usize)?;
        let account = &self.accounts[position.account as usize];
        if !account.valued || !position.has_value() {
            return None;
        }
        let instrument = &self.instruments[position.instrument as usize];
        let reference = market(instrument.id);
        let price = fresh_price(instrument, &reference, reference.is_fresh(now, instrument))?;
        (price != position.mark).then_some(Mark {
            account: account.id,
            instrument: instrument.id,
            price,
        })
    }

    /// Values a position anew and tells the account's limits. One that there is not is left alone.
    pub fn mark<S: Sink>(&mut self, mark: &Mark, sink: &mut S) {
        let (Some(account), Some(instrument)) = (self.any_account(mark.account), self.instrument(mark.instrument))
        else {
            return;
        };
        let index = u32::try_from(account).expect("accounts are bounded");
        let position = self.positions.find(index, instrument);
        let Some(exposure) = self.positions.get_mut(position) else {
            return;
        };
        self.version += 1;
        exposure.mark = mark.price;
        self.accounts[account].restake(exposure);
        self.settle_account(index, sink);
    }
}
