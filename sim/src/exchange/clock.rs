//! What the market does because of the time: orders expire, auctions begin and end, days begin.

use super::client_orders::{ClientOrder, SessionIndex};
use super::desk::{Cause, Event};
use super::market::{Market, Outputs};
use matcher::{Auction, BookIndex};
use types::{ClientOrderId, Price, Reason, TimeInForce, Timestamp, TradingDay};

impl Market {
    /// When the next order expires; `None` when none does.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.matcher.next_expiry()
    }

    /// The first order whose time has come expires.
    pub fn on_expiry(&mut self, now: Timestamp, out: &mut impl Outputs) {
        let mut event = Event {
            now,
            desk: &mut self.desk,
            out,
            cause: Cause::Other,
        };
        self.matcher.expire(now, &mut event);
    }

    /// The call of an auction begins: orders gather and do not trade.
    pub fn on_call(&mut self, now: Timestamp, auction: Auction, out: &mut impl Outputs) {
        for book in self.desk.listing.books() {
            let mut event = Event {
                now,
                desk: &mut self.desk,
                out,
                cause: Cause::Auction(auction),
            };
            self.matcher.call_auction(book, auction, &mut event);
        }
    }

    /// The call ends: what crosses trades at one price, and orders trade as they come from then on. Among prices that are
    /// equally good, the nearest to the last trade is taken, or to the instrument's reference price before the first.
    pub fn on_uncross(&mut self, now: Timestamp, out: &mut impl Outputs) {
        for book in self.desk.listing.books() {
            let Some(auction) = self.matcher.call(book) else {
                continue;
            };
            let reference = self.auction_reference(book);
            let mut event = Event {
                now,
                desk: &mut self.desk,
                out,
                cause: Cause::Auction(auction),
            };
            self.matcher.uncross(book, reference, &mut event);
        }
    }

    /// A trading day begins: orders that are good for a day or an auction of it expire, and the sessions' numbers start
    /// anew.
    pub fn on_day(&mut self, now: Timestamp, _day: TradingDay, out: &mut impl Outputs) {
        let ends = |order: &ClientOrder| {
            !matches!(
                order.time_in_force,
                TimeInForce::GoodTillCancel | TimeInForce::GoodTillDate
            )
        };
        for place in 0..self.desk.sessions.len() {
            let index = SessionIndex(u16::try_from(place).expect("MAX_SESSIONS fits"));
            self.remove_where(now, index, ends, Reason::DayEnded, out);
            self.desk.session_mut(index).last = ClientOrderId(0);
        }
        self.settle_all(now, out);
    }

    fn auction_reference(&self, book: BookIndex) -> Price {
        let listed = self.desk.listing.get(book);
        let last = self.matcher.last_price(book);
        let reference = if last.is_null() { listed.reference_price } else { last };
        // It may become a price of trades.
        if listed.takes_price(reference) {
            reference
        } else {
            Price::NULL
        }
    }
}
