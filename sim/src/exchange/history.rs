//! Recorded history coming in: what each message means in a book that clients share.

use super::client_orders::ClientOrders;
use super::desk::{Cause, Event};
use super::feed;
use super::market::{Market, Outputs};
use matcher::{BookIndex, NewOrder, OwnerId, Report, RestingOrder, Sink, Sweep};
use proto::itch::{self, AddOrder, Message, OrderExecuted, OrderReplace, StockDirectory};
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce, Timestamp};

impl Market {
    /// A message of the recorded feed.
    pub fn on_history(&mut self, now: Timestamp, message: &[u8], out: &mut impl Outputs) {
        self.desk.counters.history += 1;
        let Ok(parsed) = itch::parse(message) else {
            self.desk.counters.history_invalid += 1;
            return;
        };
        let Some(book) = self.book_of(&parsed) else {
            self.desk.counters.history -= 1;
            self.desk.counters.history_foreign += 1;
            return;
        };
        let mut history = History {
            market: self,
            now,
            book: book.unwrap_or_default(),
            out,
        };
        match parsed {
            Message::AddOrder(add) => history.on_add(add, message),
            Message::AddOrderAttributed(add) => history.on_add(&add.order, message),
            Message::OrderExecuted(executed) => history.on_executed(executed, None, message),
            Message::OrderExecutedWithPrice(executed) => {
                history.on_executed(&executed.executed, Some(executed.price()), message);
            }
            Message::OrderCancel(cancel) => history.on_cancel(OrderId(cancel.reference.get()), cancel.shares.get()),
            Message::OrderDelete(delete) => history.on_delete(OrderId(delete.reference.get())),
            Message::OrderReplace(replace) => history.on_replace(replace),
            Message::Trade(trade) => {
                history.print(trade.price());
                feed::forwarded(history.out, now, book, message);
            }
            Message::CrossTrade(cross) => {
                if cross.shares.get() > 0 {
                    history.print(cross.price());
                }
                feed::forwarded(history.out, now, book, message);
            }
            Message::SystemEvent(_)
            | Message::StockDirectory(_)
            | Message::TradingAction(_)
            | Message::BrokenTrade(_)
            | Message::Other(_) => feed::forwarded(history.out, now, book, message),
        }
    }

    /// The messages of the recording that came together were told: stops and pegged orders follow.
    pub fn on_history_told(&mut self, now: Timestamp, out: &mut impl Outputs) {
        self.settle_all(now, out);
    }

    /// A new recording begins: what the last one left in the books is deleted.
    pub fn on_history_started(&mut self, now: Timestamp, out: &mut impl Outputs) {
        self.desk.listing.forget_locates();
        for book in self.desk.listing.books() {
            let is_history = |id, _| !ClientOrders::is_client(id);
            let mut event = Event {
                now,
                desk: &mut self.desk,
                out,
                cause: Cause::Other,
            };
            let deleted = &mut |report| match report {
                Report::Canceled { id, .. } if !ClientOrders::is_client(id) => feed::deleted(event.out, now, book, id),
                _ => Sink::report(&mut event, report),
            };
            self.matcher.cancel_where(book, Reason::DayEnded, is_history, deleted);
        }
    }

    /// The book that a message is about; `Some(None)` when it is about the market as a whole.
    fn book_of(&mut self, message: &Message<'_>) -> Option<Option<BookIndex>> {
        let listing = &mut self.desk.listing;
        let locate = message.header().stock_locate.get();
        match message {
            Message::StockDirectory(StockDirectory { stock, .. }) => listing.learn(locate, *stock),
            Message::AddOrder(AddOrder { stock, .. }) => listing.book_of_stock_message(locate, *stock),
            Message::AddOrderAttributed(add) => listing.book_of_stock_message(locate, add.order.stock),
            _ if locate == 0 => return Some(None),
            _ => listing.book_of_locate(locate),
        }
        .map(Some)
    }
}

/// One message of history at work.
struct History<'a, O> {
    market: &'a mut Market,
    now: Timestamp,
    book: BookIndex,
    out: &'a mut O,
}

impl<O: Outputs> History<'_, O> {
    fn on_add(&mut self, add: &AddOrder, message: &[u8]) {
        let (id, price) = (OrderId(add.reference.get()), add.price());
        let Some(quantity) = self.quantity_of_new(id, add.shares.get()) else {
            return;
        };
        let left = self.meet_clients(add.side(), price, quantity, None);
        if !left.is_zero() && self.rest(id, add.side(), price, left) {
            let shares = self.market.desk.listing.get(self.book).shares(left);
            feed::forwarded_with_shares(self.out, self.now, self.book, message, shares);
        }
    }

    /// Messages E and C: the recorded order trades, after the clients before it.
    fn on_executed(&mut self, executed: &OrderExecuted, price: Option<Price>, message: &[u8]) {
        let id = OrderId(executed.reference.get());
        let Some(order) = self.recorded(id) else { return };
        let Some(executed) = self.lots(executed.shares.get()) else {
            return;
        };
        let left = self.meet_clients(order.side.opposite(), order.price, executed, Some(id));
        let traded = left.min(order.leaves);
        let lost = (executed - left).min(order.leaves - traded);
        if !traded.is_zero() {
            self.print(price.unwrap_or(order.price));
            let shares = self.market.desk.listing.get(self.book).shares(traded);
            feed::forwarded_with_shares(self.out, self.now, self.book, message, shares);
        }
        if !lost.is_zero() {
            self.publish_reduction(id, lost, order.leaves - traded);
        }
        self.reduce(id, traded + lost);
    }

    /// The recording traded at this price.
    fn print(&mut self, price: Price) {
        self.market.matcher.print(self.book, price);
    }

    fn on_cancel(&mut self, id: OrderId, shares: u32) {
        let Some(order) = self.recorded(id) else { return };
        let Some(lots) = self.lots(shares) else { return };
        self.publish_reduction(id, lots.min(order.leaves), order.leaves);
        self.reduce(id, lots);
    }

    fn on_delete(&mut self, id: OrderId) {
        if let Some(order) = self.recorded(id) {
            feed::deleted(self.out, self.now, self.book, id);
            self.reduce(id, order.leaves);
        }
    }

    fn on_replace(&mut self, replace: &OrderReplace) {
        let original = OrderId(replace.original.get());
        let (id, price) = (OrderId(replace.reference.get()), replace.price());
        let Some(order) = self.recorded(original) else { return };
        self.reduce(original, order.leaves);
        let Some(quantity) = self.quantity_of_new(id, replace.shares.get()) else {
            return feed::deleted(self.out, self.now, self.book, original);
        };
        let is_trading = self.crosses_clients(order.side, price);
        if is_trading {
            feed::deleted(self.out, self.now, self.book, original);
            let left = self.meet_clients(order.side, price, quantity, None);
            if !left.is_zero() && self.rest(id, order.side, price, left) {
                let order = RestingOrder {
                    id,
                    price,
                    leaves: left,
                    shown: left,
                    ..order
                };
                feed::added(self.out, self.now, &self.market.desk.listing, &order);
            }
        } else if self.rest(id, order.side, price, quantity) {
            feed::replaced(self.out, self.now, self.book, replace);
        } else {
            feed::deleted(self.out, self.now, self.book, original);
        }
    }

    /// Trades what history brings with the clients that it reaches, up to `before`. What is left.
    fn meet_clients(&mut self, side: Side, limit: Price, quantity: Quantity, before: Option<OrderId>) -> Quantity {
        if !self.market.desk.has_clients(self.book, side.opposite()) {
            return quantity;
        }
        let sweep = Sweep {
            book: self.book,
            taker: OrderId(0),
            owner: OwnerId::NONE,
            side,
            limit,
            quantity,
            before,
        };
        let Market { matcher, desk } = &mut *self.market;
        let mut event = Event {
            now: self.now,
            desk,
            out: self.out,
            cause: Cause::Other,
        };
        matcher.sweep(&sweep, |id, _| ClientOrders::is_client(id), &mut event)
    }

    /// Whether a client waits at a price that an incoming order reaches.
    fn crosses_clients(&self, side: Side, limit: Price) -> bool {
        self.market.desk.has_clients(self.book, side.opposite())
            && self
                .market
                .matcher
                .orders(self.book, side.opposite())
                .take_while(|resting| match side {
                    Side::Buy => resting.price <= limit,
                    Side::Sell => resting.price >= limit,
                })
                .any(|resting| ClientOrders::is_client(resting.id))
    }

    /// Puts a recorded order into the book. Whether there was room.
    fn rest(&mut self, id: OrderId, side: Side, price: Price, quantity: Quantity) -> bool {
        let order = NewOrder {
            id,
            book: self.book,
            owner: OwnerId::NONE,
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price,
            quantity,
        };
        let mut rested = true;
        self.market.matcher.add_without_trading(&order, &mut |report| {
            if let Report::Rejected(_) = report {
                rested = false;
            }
        });
        if !rested {
            self.market.desk.counters.history_overflowed += 1;
        }
        rested
    }

    fn reduce(&mut self, id: OrderId, quantity: Quantity) {
        self.market.matcher.reduce(id, quantity, &mut |_| {});
    }

    fn publish_reduction(&mut self, id: OrderId, lots: Quantity, leaves: Quantity) {
        if lots < leaves {
            feed::reduced(self.out, self.now, &self.market.desk.listing, self.book, id, lots);
        } else {
            feed::deleted(self.out, self.now, self.book, id);
        }
    }

    /// A recorded order that is in this book; else counts.
    fn recorded(&mut self, id: OrderId) -> Option<RestingOrder> {
        let order = self
            .market
            .matcher
            .order(id)
            .filter(|order| order.book == self.book && !ClientOrders::is_client(id));
        if order.is_none() {
            self.market.desk.counters.history_unmatched += 1;
        }
        order
    }

    /// Quantity of a new recorded order, if it can be one; else counts.
    fn quantity_of_new(&mut self, id: OrderId, shares: u32) -> Option<Quantity> {
        if ClientOrders::is_client(id) || self.market.matcher.order(id).is_some() {
            self.market.desk.counters.history_invalid += 1;
            return None;
        }
        self.lots(shares)
    }

    /// Whole lots, more than none; else counts.
    fn lots(&mut self, shares: u32) -> Option<Quantity> {
        let lots = self
            .market
            .desk
            .listing
            .get(self.book)
            .lots(shares)
            .filter(|lots| !lots.is_zero());
        if lots.is_none() {
            self.market.desk.counters.history_invalid += 1;
        }
        lots
    }
}
