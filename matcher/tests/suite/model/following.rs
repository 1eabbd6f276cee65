//! Stops and pegged orders of the naive matcher.

use super::{At, Live, Model, Work, is_pegged, price_of, rank, reaches};
use matcher::{BookIndex, NewOrder, Report};
use types::{OrderTerms, OrderType, Price, Quantity, Side};

impl Model {
    pub(super) fn enter_stop(&mut self, order: NewOrder, terms: OrderTerms, trades: u32) {
        let book = self.book(order.book);
        let is_passed = book.call.is_none()
            && book.last.is_some_and(|last| match order.side {
                Side::Buy => last >= terms.stop_price,
                Side::Sell => last <= terms.stop_price,
            });
        if is_passed {
            self.enter_triggered(order, terms, trades.min(matcher::MAX_TRIGGERED_TRADES));
        } else {
            self.hold(order, terms, At::Stop(terms.stop_price));
        }
    }

    pub(super) fn enter_triggered(&mut self, order: NewOrder, terms: OrderTerms, trades: u32) {
        self.reports.push(Report::Triggered { id: order.id });
        let order_type = match order.order_type {
            OrderType::Stop => OrderType::Market,
            _ => OrderType::Limit,
        };
        let order = NewOrder { order_type, ..order };
        let terms = OrderTerms {
            stop_price: Price::NULL,
            ..terms
        };
        self.enter(order, terms, trades);
    }

    /// Stops and pegged orders, until none has anything to do.
    pub(super) fn follow(&mut self, book: BookIndex) {
        if self.book(book).call.is_some() {
            return;
        }
        let mut repricings = 0;
        loop {
            if let Some(stop) = self.first_triggered(book) {
                self.drop(self.find(stop.order.id).unwrap());
                self.enter_triggered(stop.order, stop.terms, matcher::MAX_TRIGGERED_TRADES);
            } else if repricings < matcher::MAX_REPRICINGS && self.reprice(book) {
                repricings += 1;
            } else {
                break;
            }
        }
        self.book(book).traded = None;
    }

    pub(super) fn first_triggered(&mut self, book: BookIndex) -> Option<Live> {
        let (low, high) = self.book(book).traded?;
        let is_triggered = |live: &&Live| match live.at {
            At::Stop(stop) if live.order.side == Side::Buy => stop <= high,
            At::Stop(stop) => stop >= low,
            _ => false,
        };
        let triggered = self
            .live
            .iter()
            .filter(|live| live.order.book == book)
            .filter(is_triggered);
        triggered
            .min_by_key(|live| (live.order.side as u8, rank(live.order.side, live.at), live.since))
            .copied()
    }

    pub(super) fn reprice(&mut self, book: BookIndex) -> bool {
        let mut pegs: Vec<_> = self
            .live
            .iter()
            .filter(|live| live.order.book == book && is_pegged(live))
            .collect();
        pegs.sort_by_key(|live| live.entered);
        let pegs: Vec<_> = pegs.iter().map(|live| live.order.id).collect();
        let mut has_moved = false;
        for id in pegs {
            let place = self.find(id).unwrap();
            let live = self.live[place];
            let target = self.peg_place(&live.order, &live.terms).map_or(At::Pegless, At::Book);
            if target == live.at {
                continue;
            }
            has_moved = true;
            self.drop(place);
            if live.at != At::Pegless {
                self.reports.push(Report::Withdrawn { id });
            }
            if self.enter_peg(live.order, live.terms) {
                break;
            }
        }
        has_moved
    }

    /// Whether it met an order.
    pub(super) fn enter_peg(&mut self, order: NewOrder, terms: OrderTerms) -> bool {
        let Some(price) = self.peg_place(&order, &terms) else {
            self.hold(order, terms, At::Pegless);
            return false;
        };
        let mut work = Work {
            order,
            limit: Some(price),
            leaves: order.quantity.0,
            trades: matcher::MAX_TRIGGERED_TRADES,
        };
        let meets = self.meets(&work);
        let stopped = self.trade(&mut work);
        if let (Some(reason), 1..) = (stopped, work.leaves) {
            self.cancel_rest(&order, work.leaves, reason);
        } else if work.leaves > 0 {
            let left = NewOrder {
                quantity: Quantity(work.leaves),
                ..order
            };
            self.rest(left, terms, price);
        }
        meets
    }

    pub(super) fn meets(&self, work: &Work) -> bool {
        self.side(work.order.book, work.order.side.opposite())
            .first()
            .is_some_and(|maker| reaches(work, maker))
    }

    pub(super) fn peg_place(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Price> {
        if self.book(order.book).call.is_some() {
            return None;
        }
        let price = self.peg_price(order, terms)?;
        (!terms.post_only || !self.would_meet(order, price)).then_some(price)
    }

    pub(super) fn would_meet(&self, order: &NewOrder, price: Price) -> bool {
        self.meets(&Work {
            order: *order,
            limit: Some(price),
            leaves: 1,
            trades: 1,
        })
    }

    pub(super) fn peg_price(&mut self, order: &NewOrder, terms: &OrderTerms) -> Option<Price> {
        let best = |side: Side| {
            let side = self.side(order.book, side);
            side.iter()
                .find(|live| !is_pegged(live))
                .map(|live| i128::from(price_of(live).0))
        };
        // Twice the price, so that a middle is a number.
        let mut doubled = match order.order_type {
            OrderType::PegMid => best(Side::Buy)? + best(Side::Sell)?,
            _ => 2 * best(order.side)?,
        };
        doubled += 2 * i128::from(terms.peg_offset.0);
        let rules = self.book(order.book).rules;
        let step = 2 * i128::from(rules.tick.0);
        let over = doubled.rem_euclid(step);
        if over > 0 {
            doubled += if order.side == Side::Buy { -over } else { step - over };
        }
        let mut price = doubled / 2;
        if order.price != Price::NULL {
            let limit = i128::from(order.price.0);
            price = if order.side == Side::Buy {
                price.min(limit)
            } else {
                price.max(limit)
            };
        }
        let is_allowed = price >= i128::from(rules.lowest.0) && price <= i128::from(rules.highest.0);
        is_allowed.then(|| Price(i64::try_from(price).unwrap()))
    }

    /// Trades matter only to those who wait when they happen.
    pub(super) fn forget_trades(&mut self, book: BookIndex) {
        let waits = |live: &Live| live.order.book == book && (is_pegged(live) || matches!(live.at, At::Stop(_)));
        if !self.live.iter().any(waits) {
            self.book(book).traded = None;
        }
    }
}
