//! Stops: orders that wait for a trade at their price or beyond it, and what such a trade sets off.
//!
//! A stop is triggered in the event of the trade, after the order that traded has come to rest. Its own trades may trigger
//! more, and move the prices that pegged orders follow; whatever is set off goes on until nothing is left to do. It comes to
//! an end because each step uses up a stop, or one of a counted number of repricings.

use crate::MAX_REPRICINGS;
use crate::MAX_TRIGGERED_TRADES;
use crate::event::{BookIndex, NewOrder};
use crate::matcher::Matcher;
use crate::record::{Place, Queue, side_index};
use crate::report::{Report, Sink};
use types::{OrderTerms, OrderType, Price, Side};

impl Matcher {
    /// Stops and pegged orders follow what happened. Buys are triggered before sells, the stop price that was passed first
    /// before the others, and at one stop price the order that came first.
    #[cold]
    pub(crate) fn follow(&mut self, book: BookIndex, sink: &mut impl Sink) {
        if self.is_in_call(book) {
            return;
        }
        let mut repricings = 0;
        loop {
            if let Some(slot) = self.first_triggered(book) {
                self.trigger(slot, sink);
            } else if repricings < MAX_REPRICINGS && self.reprice(book, sink) {
                repricings += 1;
            } else {
                break;
            }
        }
        self.aside[book.0 as usize].traded = None;
    }

    /// A stop order comes in: it waits, or is triggered already.
    pub(crate) fn enter_stop(&mut self, order: &NewOrder, terms: &OrderTerms, trades: u32, sink: &mut impl Sink) {
        let last = self.books[order.book.0 as usize].last;
        let is_passed = !last.is_null() && is_passed(order.side, terms.stop_price, last, last);
        if is_passed && !self.is_in_call(order.book) {
            self.enter_triggered(order, terms, trades.min(MAX_TRIGGERED_TRADES), sink);
        } else {
            self.hold_at(order, terms, Self::stop_place(order, terms), sink);
        }
    }

    /// Where a stop waits.
    pub(crate) const fn stop_place(order: &NewOrder, terms: &OrderTerms) -> Place {
        Place {
            book: order.book,
            queue: Queue::Stops,
            side: order.side,
            price: terms.stop_price,
        }
    }

    /// The first stop whose price the trades of this event reached.
    fn first_triggered(&self, book: BookIndex) -> Option<u32> {
        let aside = &self.aside[book.0 as usize];
        let (low, high) = aside.traded?;
        [Side::Buy, Side::Sell].into_iter().find_map(|side| {
            let (_, level) = aside.stops[side_index(side)].best()?;
            let level = &self.levels[level];
            is_passed(side, level.price, low, high).then_some(level.head)
        })
    }

    fn trigger(&mut self, slot: u32, sink: &mut impl Sink) {
        let (order, terms) = self.take_out(slot);
        self.enter_triggered(&order, &terms, MAX_TRIGGERED_TRADES, sink);
    }

    fn enter_triggered(&mut self, order: &NewOrder, terms: &OrderTerms, trades: u32, sink: &mut impl Sink) {
        sink.report(Report::Triggered { id: order.id });
        let order = NewOrder {
            order_type: match order.order_type {
                OrderType::StopLimit => OrderType::Limit,
                _ => OrderType::Market,
            },
            ..*order
        };
        let terms = OrderTerms {
            stop_price: Price::NULL,
            ..*terms
        };
        self.enter(&order, &terms, trades, sink);
    }
}

/// Whether trades between `low` and `high` trigger a stop.
fn is_passed(side: Side, stop: Price, low: Price, high: Price) -> bool {
    match side {
        Side::Buy => high >= stop,
        Side::Sell => low <= stop,
    }
}
