//! Which terms of an order go together. Whatever is refused here would mean nothing at a venue, or not the same at each.
//!
//! | term | goes with | not with |
//! |---|---|---|
//! | stop price | stop, stop limit: always | the others |
//! | at the opening, at the close | market, limit | display, minimum, post-only |
//! | immediate or cancel, fill or kill | market, limit | display, post-only |
//! | expiry | good till date: always, in the future | the others |
//! | display | limit, stop limit | more than the quantity |
//! | minimum | market, limit; day, immediate or cancel | more than the quantity, display, post-only |
//! | peg offset | pegged; away from the market: down for a buy, up for a sell | the others |
//! | post-only | limit | |
//! | short sale | sells | |
//! | located | short sales | the others |

use crate::config::InstrumentState;
use crate::risk::Terms;
use types::{OrderTerms, OrderType, Price, Reason, ShortSale, Side, TimeInForce, Timestamp};

impl Terms {
    /// Whether there is nothing to check: a market or limit order that asks for nothing else.
    #[inline]
    pub(crate) fn are_plain(&self) -> bool {
        matches!(self.order_type, OrderType::Market | OrderType::Limit)
            && matches!(self.time_in_force, TimeInForce::Day | TimeInForce::ImmediateOrCancel)
            && self.extra == OrderTerms::NONE
    }

    /// The table of this page. Price and quantity by themselves were checked.
    #[inline(never)]
    pub(crate) fn check_terms(&self, now: Timestamp, instrument: &InstrumentState) -> Result<(), Reason> {
        let terms = &self.extra;
        let is_plain_type = matches!(self.order_type, OrderType::Market | OrderType::Limit);
        if !is_plain_type && !self.may_wait() {
            return Err(Reason::UnsupportedOrder);
        }
        let is_short_sale = terms.short_sale != ShortSale::No;
        if (is_short_sale && self.side == Side::Buy) || (terms.located && !is_short_sale) {
            return Err(Reason::UnsupportedOrder);
        }
        let stop_is_valid = if self.order_type.is_stop() {
            terms.stop_price.0 > 0 && terms.stop_price.is_multiple_of(instrument.tick_size)
        } else {
            terms.stop_price.is_null()
        };
        if !stop_is_valid {
            return Err(Reason::InvalidStopPrice);
        }
        let expiry_is_valid = match self.time_in_force {
            TimeInForce::GoodTillDate => terms.expires > now,
            _ => terms.expires == Timestamp::NONE,
        };
        if !expiry_is_valid {
            return Err(Reason::InvalidExpiry);
        }
        let takes_display = matches!(self.order_type, OrderType::Limit | OrderType::StopLimit) && self.may_wait();
        if !terms.display.is_zero() && (!takes_display || terms.display > self.quantity) {
            return Err(Reason::InvalidDisplay);
        }
        let takes_minimum = is_plain_type
            && matches!(self.time_in_force, TimeInForce::Day | TimeInForce::ImmediateOrCancel)
            && !terms.post_only
            && terms.display.is_zero();
        if !terms.min_quantity.is_zero() && (!takes_minimum || terms.min_quantity > self.quantity) {
            return Err(Reason::InvalidMinQuantity);
        }
        if !self.offset_is_valid(instrument.tick_size) {
            return Err(Reason::InvalidPegOffset);
        }
        if terms.post_only && (self.order_type != OrderType::Limit || !self.may_wait()) {
            return Err(Reason::UnsupportedOrder);
        }
        Ok(())
    }

    /// Whether its time in force lets it wait in the book.
    const fn may_wait(&self) -> bool {
        matches!(
            self.time_in_force,
            TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::GoodTillDate
        )
    }

    /// An order that is pegged over the price it follows would trade with it.
    const fn offset_is_valid(&self, tick_size: Price) -> bool {
        let offset = self.extra.peg_offset;
        if offset.0 == 0 {
            return true;
        }
        let is_away = match self.side {
            Side::Buy => offset.0 < 0,
            Side::Sell => offset.0 > 0,
        };
        self.order_type.is_pegged() && is_away && !offset.is_null() && offset.is_multiple_of(tick_size)
    }
}
