//! Pegged orders: their price follows the best prices of the orders that have a price of their own.
//!
//! They follow after the event that moved those prices, in the order of their coming, and lose their place when they do.
//! Pegged orders do not follow each other. Yet they may trade, and one that must not may have to wait for another to leave;
//! so they are looked at until none moves, but at most [`crate::MAX_REPRICINGS`] times.

use crate::MAX_TRIGGERED_TRADES;
use crate::event::{BookIndex, NewOrder};
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::{Hold, Taker, threshold};
use crate::report::{Report, Sink};
use crate::terms::Aside;
use types::{OrderTerms, OrderType, Price, Quantity, Side};

impl Matcher {
    /// A pegged order comes in, or follows: it trades with what it reaches at its price and rests there. Without a price,
    /// or when it must not trade and would, it waits outside. Whether it met an order.
    pub(crate) fn enter_peg(&mut self, order: &NewOrder, terms: &OrderTerms, sink: &mut impl Sink) -> bool {
        let Some(price) = self.peg_place(order, terms) else {
            self.hold(order, terms, Hold::Peg, sink);
            return false;
        };
        let mut taker = Taker {
            threshold: threshold(order.side, Some(price)),
            trades: MAX_TRIGGERED_TRADES,
            ..Taker::new(order)
        };
        let meets = self.would_meet(order.book, order.side, taker.threshold);
        let stopped = self.trade(&mut taker, sink);
        match stopped {
            _ if taker.leaves == 0 => {}
            Some(reason) => sink.report(taker.canceled(reason)),
            None => {
                let left = NewOrder {
                    quantity: Quantity(taker.leaves),
                    ..*order
                };
                self.rest_with_terms(&left, terms, price, sink);
            }
        }
        meets
    }

    /// Lets each pegged order of a book follow once, up to one that meets an order: prices have moved again then. Whether
    /// any moved.
    pub(crate) fn reprice(&mut self, book: BookIndex, sink: &mut impl Sink) -> bool {
        let Aside { peg_head, peg_tail, .. } = self.aside[book.0 as usize];
        let (mut place, mut has_moved) = (peg_head, false);
        while place != NONE {
            let next = self.terms[place].peg_next;
            let slot = self.terms[place].slot;
            let (order, terms) = self.description(slot);
            let current = self.book_price(slot);
            if self.peg_place(&order, &terms) != current {
                has_moved = true;
                self.take_out(slot);
                if current.is_some() {
                    sink.report(Report::Withdrawn { id: order.id });
                }
                if self.enter_peg(&order, &terms, sink) {
                    break;
                }
            }
            // Those behind the last have moved already.
            if place == peg_tail {
                break;
            }
            place = next;
        }
        has_moved
    }

    /// Where a pegged order belongs now: its price, unless it must not trade and would, or no price moves in a call.
    fn peg_place(&self, order: &NewOrder, terms: &OrderTerms) -> Option<Price> {
        if self.is_in_call(order.book) {
            return None;
        }
        let price = self.peg_price(order, terms)?;
        let would_trade = self.would_meet(order.book, order.side, threshold(order.side, Some(price)));
        (!(terms.post_only && would_trade)).then_some(price)
    }

    /// The price that a pegged order asks for now, within its limit, on its tick. `None` when there is nothing to follow.
    pub(crate) fn peg_price(&self, order: &NewOrder, terms: &OrderTerms) -> Option<Price> {
        let followed = match order.order_type {
            OrderType::PegMid => {
                let (bid, ask) = (
                    self.own_price(order.book, Side::Buy)?,
                    self.own_price(order.book, Side::Sell)?,
                );
                // Between two numbers, whose sum may not be one.
                i128::from(bid.0) + i128::from(ask.0)
            }
            _ => 2 * i128::from(self.own_price(order.book, order.side)?.0),
        };
        let rules = self.aside[order.book.0 as usize].peg_rules;
        let tick = i128::from(rules.tick.0);
        // In halves, so that a middle that is no number is rounded but once.
        let (halves, step) = (followed + 2 * i128::from(terms.peg_offset.0), 2 * tick);
        let ticks = match order.side {
            Side::Buy => halves.div_euclid(step),
            Side::Sell => -(-halves).div_euclid(step),
        };
        let mut price = ticks * tick;
        if !order.price.is_null() {
            let limit = i128::from(order.price.0);
            price = match order.side {
                Side::Buy => price.min(limit),
                Side::Sell => price.max(limit),
            };
        }
        let allowed = i128::from(rules.lowest.0)..=i128::from(rules.highest.0);
        allowed
            .contains(&price)
            .then(|| i64::try_from(price).ok().map(Price))
            .flatten()
    }

    /// The best price of a side among orders that are not pegged.
    fn own_price(&self, book: BookIndex, side: Side) -> Option<Price> {
        let is_pegged = |slot: u32| {
            let terms = self.orders[slot].terms();
            terms.is_some_and(|terms| self.terms[terms].order_type.is_pegged())
        };
        self.level_slots(book, side)
            .find(|&level| self.queue(level).any(|slot| !is_pegged(slot)))
            .map(|level| self.levels[level].price)
    }

    /// Puts terms at the end of the book's pegged orders.
    pub(crate) fn link_peg(&mut self, book: BookIndex, place: u32) {
        let aside = &mut self.aside[book.0 as usize];
        let tail = core::mem::replace(&mut aside.peg_tail, place);
        if tail == NONE {
            aside.peg_head = place;
        } else {
            self.terms[tail].peg_next = place;
        }
        let terms = &mut self.terms[place];
        (terms.peg_prev, terms.peg_next) = (tail, NONE);
    }

    /// Takes terms out of the book's pegged orders.
    pub(crate) fn unlink_peg(&mut self, book: BookIndex, place: u32) {
        let (prev, next) = (self.terms[place].peg_prev, self.terms[place].peg_next);
        let aside = &mut self.aside[book.0 as usize];
        if prev == NONE {
            aside.peg_head = next;
        } else {
            self.terms[prev].peg_next = next;
        }
        if next == NONE {
            aside.peg_tail = prev;
        } else {
            self.terms[next].peg_prev = prev;
        }
    }
}
