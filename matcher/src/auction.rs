//! Auctions: orders gather without trading, then one price is found at which most of them trade.
//!
//! During the call, limit orders rest where they will, even across each other; market orders wait without a price; what
//! cannot wait is cancelled. Pegged orders keep the price they had, stops are not triggered, and own orders may meet, because
//! none of them comes to the other.

use crate::event::{Auction, BookIndex};
use crate::ladder;
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::{Hold, Place, Queue, side_index};
use crate::report::{AuctionFill, Report, Sink};
use crate::terms;
use types::{OrderId, Price, Quantity, Reason, Side};

/// What an auction comes to at one price.
#[derive(Clone, Copy)]
struct Crossing {
    price: Price,
    lots: u64,
    /// Lots that one side would still trade.
    imbalance: u64,
    /// From the reference price.
    distance: u64,
}

impl Matcher {
    /// Begins the call of an auction: orders gather, and those that waited for this auction join.
    pub fn call_auction(&mut self, book: BookIndex, auction: Auction, sink: &mut impl Sink) {
        self.books[book.0 as usize].call = Some(auction);
        for side in [Side::Buy, Side::Sell] {
            let waiting = held(book, side, Hold::from(auction));
            while let Some(slot) = self.first_at(waiting) {
                let (order, terms) = self.take_out(slot);
                self.enter(&order, &terms, u32::MAX, sink);
            }
        }
        self.check(book);
    }

    /// Whether orders gather for an auction.
    #[must_use]
    pub fn call(&self, book: BookIndex) -> Option<Auction> {
        self.books[book.0 as usize].call
    }

    /// Price and quantity that the auction would come to now. The price is one of a limit, or the reference: of those at
    /// which most trades, that with the least left on one side, then the nearest to the reference, then the highest.
    /// `reference` may be null.
    #[must_use]
    pub fn indicative(&self, book: BookIndex, reference: Price) -> Option<(Price, Quantity)> {
        let market = [Side::Buy, Side::Sell].map(|side| self.market_lots(book, side));
        let limits = [Side::Buy, Side::Sell]
            .into_iter()
            .flat_map(|side| self.crossing_prices(book, side, market));
        let prices = limits.chain((!reference.is_null()).then_some(reference));
        let crossings = prices.map(|price| self.crossing(book, price, reference, market));
        let best = crossings.filter(|crossing| crossing.lots > 0).max_by(|one, other| {
            let key = |crossing: &Crossing| {
                (
                    crossing.lots,
                    core::cmp::Reverse((crossing.imbalance, crossing.distance)),
                    crossing.price,
                )
            };
            key(one).cmp(&key(other))
        })?;
        Some((best.price, Quantity(best.lots)))
    }

    /// Ends a call: trades what crosses at one price, in priority, and goes over to continuous trading. Market orders come
    /// first and limits after them, best first; an iceberg takes part with all it has. Market orders and orders for this
    /// auction that are left are cancelled.
    pub fn uncross(&mut self, book: BookIndex, reference: Price, sink: &mut impl Sink) {
        if self.books[book.0 as usize].call.is_none() {
            return;
        }
        if let Some((price, quantity)) = self.indicative(book, reference) {
            sink.report(Report::Uncrossed { book, price, quantity });
            for side in [Side::Buy, Side::Sell] {
                self.fill_side(book, side, price, quantity.0, sink);
            }
            self.note_trades(book, price, price);
        }
        for side in [Side::Buy, Side::Sell] {
            while let Some(slot) = self.first_at(held(book, side, Hold::Market)) {
                self.cancel_slot(slot, Reason::Unfilled, sink);
            }
            self.cancel_auction_orders(book, side, sink);
        }
        let touched = &mut self.books[book.0 as usize];
        touched.call = None;
        self.end_of_event(book, sink);
    }

    /// Fills the first `lots` of a side.
    fn fill_side(&mut self, book: BookIndex, side: Side, price: Price, mut lots: u64, sink: &mut impl Sink) {
        while lots > 0 {
            let market = self.first_at(held(book, side, Hold::Market));
            let first = market.or_else(|| {
                let (_, level) = self.ladder(book, side).best()?;
                Some(self.levels[level].head)
            });
            let Some(slot) = first else { return };
            lots -= self.fill_in_auction(slot, book, side, price, lots, sink);
        }
    }

    /// Fills an order with up to `lots`. How many.
    fn fill_in_auction(
        &mut self,
        slot: u32,
        book: BookIndex,
        side: Side,
        price: Price,
        lots: u64,
        sink: &mut impl Sink,
    ) -> u64 {
        let order = self.orders[slot];
        let is_in_book = self.book_price(slot).is_some();
        let open = self.open_lots(slot).0;
        let quantity = open.min(lots);
        let from_shown = if is_in_book { quantity.min(order.lots()) } else { 0 };
        sink.report(Report::AuctionFill(AuctionFill {
            book,
            id: OrderId(order.id),
            owner: order.owner,
            side,
            price,
            quantity: Quantity(quantity),
            from_shown: Quantity(from_shown),
            leaves: Quantity(open - quantity),
        }));
        if let Some(terms) = order.terms() {
            let hidden = &mut self.terms[terms].hidden;
            *hidden -= quantity.saturating_sub(order.lots());
        }
        self.take_anywhere(slot, quantity.min(order.lots()), sink);
        quantity
    }

    /// Cancels the orders of a side that were for an auction.
    fn cancel_auction_orders(&mut self, book: BookIndex, side: Side, sink: &mut impl Sink) {
        let mut next = self.ladder(book, side).best();
        while let Some((key, level)) = next.filter(|_| self.aside[book.0 as usize].auction_orders > 0) {
            let mut slot = self.levels[level].head;
            while slot != NONE {
                let order = self.orders[slot];
                let is_for_auction = |terms: u32| terms::is_for_auction(self.terms[terms].time_in_force);
                if order.terms().is_some_and(is_for_auction) {
                    self.cancel_slot(slot, Reason::Unfilled, sink);
                }
                slot = order.next;
            }
            next = self.ladder(book, side).below(&self.nodes, key);
        }
    }

    fn market_lots(&self, book: BookIndex, side: Side) -> u64 {
        let place = held(book, side, Hold::Market);
        let level = self.ladder_of(book, Queue::Held, side).get(&self.nodes, place.key());
        level.map_or(0, |level| self.levels[level].volume)
    }

    /// The limits of a side that the other side reaches. Without an order on the other side there is none.
    fn crossing_prices(&self, book: BookIndex, side: Side, market: [u64; 2]) -> impl Iterator<Item = Price> {
        let other = side.opposite();
        let other_market = market[side_index(other)] > 0;
        let threshold = match self.ladder(book, other).best() {
            _ if other_market => i64::MIN,
            Some((_, level)) => ladder::key(side, self.levels[level].price),
            None => i64::MAX,
        };
        self.level_slots(book, side)
            .map(|level| self.levels[level].price)
            .take_while(move |&price| ladder::key(side, price) >= threshold)
    }

    /// What trades at `price`. Walks the crossing part of both sides: an auction is no matter of nanoseconds.
    fn crossing(&self, book: BookIndex, price: Price, reference: Price, market: [u64; 2]) -> Crossing {
        let [buys, sells] = [Side::Buy, Side::Sell].map(|side| {
            let threshold = ladder::key(side, price);
            let limits = self
                .level_slots(book, side)
                .take_while(|&level| ladder::key(side, self.levels[level].price) >= threshold);
            market[side_index(side)] + limits.map(|level| self.all_lots(level)).sum::<u64>()
        });
        Crossing {
            price,
            lots: buys.min(sells),
            imbalance: buys.abs_diff(sells),
            distance: if reference.is_null() {
                0
            } else {
                price.0.abs_diff(reference.0)
            },
        }
    }
}

/// Where orders of a side wait for this reason.
const fn held(book: BookIndex, side: Side, hold: Hold) -> Place {
    Place {
        book,
        queue: Queue::Held,
        side,
        price: hold.price(),
    }
}
