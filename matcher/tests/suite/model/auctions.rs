//! Auctions of the naive matcher.

use super::{At, Live, Model, waiting_for};
use matcher::{Auction, AuctionFill, BookIndex, Report};
use std::cmp::Reverse;
use types::{Price, Quantity, Reason, Side, TimeInForce};

impl Model {
    pub(crate) fn call_auction(&mut self, book: BookIndex, auction: Auction) {
        self.book(book).call = Some(auction);
        for side in [Side::Buy, Side::Sell] {
            while let Some(first) = self.first(book, side, waiting_for(auction)) {
                self.drop(self.find(first.order.id).unwrap());
                self.enter(first.order, first.terms, u32::MAX);
            }
        }
    }

    pub(crate) fn uncross(&mut self, book: BookIndex, reference: Price) {
        if self.book(book).call.is_none() {
            return;
        }
        if let Some((price, quantity)) = self.indicative(book, reference) {
            self.reports.push(Report::Uncrossed { book, price, quantity });
            for side in [Side::Buy, Side::Sell] {
                self.fill_side(book, side, price, quantity.0);
            }
            self.note(book, price, price);
        }
        for side in [Side::Buy, Side::Sell] {
            while let Some(first) = self.first(book, side, At::Market) {
                self.remove(self.find(first.order.id).unwrap(), Reason::Unfilled);
            }
            for live in self.side(book, side) {
                if matches!(
                    live.order.time_in_force,
                    TimeInForce::AtTheOpening | TimeInForce::AtTheClose
                ) {
                    self.remove(self.find(live.order.id).unwrap(), Reason::Unfilled);
                }
            }
        }
        self.book(book).call = None;
        self.follow(book);
    }

    /// Tries every price that could be it.
    pub(crate) fn indicative(&self, book: BookIndex, reference: Price) -> Option<(Price, Quantity)> {
        let in_auction = |side: Side, price: Price| -> u64 {
            let takes_part = |live: &&Live| {
                live.order.book == book
                    && live.order.side == side
                    && match live.at {
                        At::Market => true,
                        At::Book(limit) if side == Side::Buy => limit >= price,
                        At::Book(limit) => limit <= price,
                        _ => false,
                    }
            };
            self.live
                .iter()
                .filter(takes_part)
                .map(|live| live.order.quantity.0)
                .sum()
        };
        let limits = self
            .live
            .iter()
            .filter(|live| live.order.book == book)
            .filter_map(|live| match live.at {
                At::Book(price) => Some(price),
                _ => None,
            });
        let prices = limits.chain((!reference.is_null()).then_some(reference));
        let result = |price: Price| {
            let (buys, sells) = (in_auction(Side::Buy, price), in_auction(Side::Sell, price));
            let distance = if reference.is_null() {
                0
            } else {
                price.0.abs_diff(reference.0)
            };
            (buys.min(sells), Reverse(buys.abs_diff(sells)), Reverse(distance), price)
        };
        let (lots, _, _, price) = prices.map(result).max()?;
        (lots > 0).then_some((price, Quantity(lots)))
    }

    pub(super) fn fill_side(&mut self, book: BookIndex, side: Side, price: Price, mut lots: u64) {
        while lots > 0 {
            let first = self
                .first(book, side, At::Market)
                .or_else(|| self.side(book, side).first().copied());
            let first = first.unwrap();
            let place = self.find(first.order.id).unwrap();
            let quantity = first.order.quantity.0.min(lots);
            lots -= quantity;
            let shown = if first.at == At::Market { 0 } else { first.shown };
            self.reports.push(Report::AuctionFill(AuctionFill {
                book,
                id: first.order.id,
                owner: first.order.owner,
                side,
                price,
                quantity: Quantity(quantity),
                from_shown: Quantity(quantity.min(shown)),
                leaves: Quantity(first.order.quantity.0 - quantity),
            }));
            let from_hidden = quantity.saturating_sub(first.shown);
            self.live[place].order.quantity.0 -= from_hidden;
            self.take(place, quantity - from_hidden);
        }
    }
}
