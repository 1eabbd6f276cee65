//! A second matcher, as plain as it gets: one list of orders in the order of their coming, searched from front to end.
//! It shares no code with the first.

use matcher::{
    BookIndex, Capacity, NewOrder, OwnerId, Priority, Rejected, Replace, Report, RestingOrder, SelfMatch, Sweep, Trade,
};
use std::collections::BTreeSet;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

pub(crate) struct Model {
    /// In the order of their coming; a lower place has priority at equal prices.
    pub(crate) orders: Vec<RestingOrder>,
    capacity: Capacity,
    self_match: SelfMatch,
    pub(crate) reports: Vec<Report>,
}

impl Model {
    pub(crate) fn new(capacity: Capacity, self_match: SelfMatch) -> Self {
        Self {
            orders: Vec::new(),
            capacity,
            self_match,
            reports: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, order: &NewOrder) {
        let may_rest = order.order_type == OrderType::Limit && order.time_in_force == TimeInForce::Day;
        if let Some(reason) = self.refusal(order, may_rest) {
            return self.reject(order.id, reason);
        }
        self.reports.push(Report::Accepted { id: order.id });
        let price = (order.order_type == OrderType::Limit).then_some(order.price);
        self.trade_and_rest(order, price, may_rest);
    }

    pub(crate) fn add_without_trading(&mut self, order: &NewOrder) {
        if order.order_type == OrderType::Market {
            return self.reject(order.id, Reason::UnsupportedOrder);
        }
        if let Some(reason) = self.refusal(order, true) {
            return self.reject(order.id, reason);
        }
        self.reports.push(Report::Accepted { id: order.id });
        self.rest(order, order.quantity);
    }

    pub(crate) fn cancel(&mut self, id: OrderId, reason: Reason) {
        match self.place(id) {
            None => self.reject(id, Reason::UnknownOrder),
            Some(place) => self.remove(place, reason),
        }
    }

    pub(crate) fn reduce(&mut self, id: OrderId, quantity: Quantity) {
        let Some(place) = self.place(id) else {
            return self.reject(id, Reason::UnknownOrder);
        };
        if quantity.0 == 0 {
            return self.reject(id, Reason::InvalidQuantity);
        }
        if quantity >= self.orders[place].leaves {
            return self.remove(place, Reason::Requested);
        }
        self.orders[place].leaves -= quantity;
        self.reports.push(Report::Reduced {
            id,
            quantity,
            leaves: self.orders[place].leaves,
        });
    }

    pub(crate) fn replace(&mut self, replace: &Replace) {
        let Some(place) = self.place(replace.id) else {
            return self.reject(replace.id, Reason::UnknownOrder);
        };
        let old = self.orders[place];
        if replace.leaves.0 == 0 || replace.leaves.0 > matcher::MAX_QUANTITY {
            return self.reject(replace.id, Reason::InvalidQuantity);
        }
        if replace.price.is_null() {
            return self.reject(replace.id, Reason::InvalidPrice);
        }
        if replace.new_id != replace.id && self.place(replace.new_id).is_some() {
            return self.reject(replace.id, Reason::DuplicateClientOrderId);
        }
        let alone = !self
            .orders
            .iter()
            .any(|other| other.id != old.id && level_of(other) == level_of(&old));
        if !alone && !self.level_fits(old.book, old.side, replace.price) {
            return self.reject(replace.id, Reason::BookFull);
        }
        let kept_priority =
            replace.priority == Priority::KeptWhenReduced && replace.price == old.price && replace.leaves < old.leaves;
        self.reports.push(Report::Replaced {
            old_id: replace.id,
            id: replace.new_id,
            kept_priority,
            price: replace.price,
            leaves: replace.leaves,
        });
        if kept_priority {
            self.orders[place].id = replace.new_id;
            self.orders[place].leaves = replace.leaves;
        } else {
            self.orders.remove(place);
            let order = NewOrder {
                id: replace.new_id,
                book: old.book,
                owner: old.owner,
                side: old.side,
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::Day,
                price: replace.price,
                quantity: replace.leaves,
            };
            self.trade_and_rest(&order, Some(replace.price), true);
        }
    }

    pub(crate) fn cancel_where(&mut self, book: BookIndex, reason: Reason, owner: OwnerId) {
        for side in [Side::Buy, Side::Sell] {
            for order in self.side(book, side) {
                if order.owner == owner {
                    self.remove(self.place(order.id).unwrap(), reason);
                }
            }
        }
    }

    pub(crate) fn sweep(&mut self, sweep: &Sweep, reached: OwnerId) -> Quantity {
        let mut leaves = sweep.quantity;
        for maker in self.side(sweep.book, sweep.side.opposite()) {
            if !reaches(sweep.side, sweep.limit, maker.price) || sweep.before == Some(maker.id) {
                break;
            }
            if maker.owner == reached && leaves.0 > 0 {
                self.fill(&mut leaves, sweep.taker, sweep.owner, sweep.side, &maker);
            }
        }
        leaves
    }

    /// One side in priority.
    pub(crate) fn side(&self, book: BookIndex, side: Side) -> Vec<RestingOrder> {
        let mut orders: Vec<_> = self
            .orders
            .iter()
            .filter(|order| order.book == book && order.side == side)
            .copied()
            .collect();
        orders.sort_by_key(|order| {
            if side == Side::Buy {
                !order.price.0
            } else {
                order.price.0
            }
        });
        orders
    }

    fn trade_and_rest(&mut self, order: &NewOrder, limit: Option<Price>, may_rest: bool) {
        let mut leaves = order.quantity;
        for maker in self.side(order.book, order.side.opposite()) {
            if leaves.0 == 0 || limit.is_some_and(|limit| !reaches(order.side, limit, maker.price)) {
                break;
            }
            if self.self_match == SelfMatch::CancelNewest && order.owner.0 != 0 && order.owner == maker.owner {
                return self.cancel_rest(order, leaves, Reason::SelfMatch);
            }
            self.fill(&mut leaves, order.id, order.owner, order.side, &maker);
        }
        if leaves.0 > 0 {
            if may_rest {
                self.rest(order, leaves);
            } else {
                self.cancel_rest(order, leaves, Reason::Unfilled);
            }
        }
    }

    fn fill(&mut self, leaves: &mut Quantity, taker: OrderId, owner: OwnerId, side: Side, maker: &RestingOrder) {
        let quantity = (*leaves).min(maker.leaves);
        *leaves -= quantity;
        let place = self.place(maker.id).unwrap();
        self.orders[place].leaves -= quantity;
        let maker_leaves = self.orders[place].leaves;
        if maker_leaves.0 == 0 {
            self.orders.remove(place);
        }
        self.reports.push(Report::Trade(Trade {
            book: maker.book,
            taker,
            taker_owner: owner,
            taker_side: side,
            taker_leaves: *leaves,
            maker: maker.id,
            maker_owner: maker.owner,
            maker_leaves,
            price: maker.price,
            quantity,
        }));
    }

    fn rest(&mut self, order: &NewOrder, leaves: Quantity) {
        let NewOrder {
            id,
            book,
            owner,
            side,
            price,
            ..
        } = *order;
        let resting = RestingOrder {
            id,
            owner,
            book,
            side,
            price,
            leaves,
        };
        self.orders.push(resting);
        self.reports.push(Report::Rested(resting));
    }

    fn cancel_rest(&mut self, order: &NewOrder, quantity: Quantity, reason: Reason) {
        self.reports.push(Report::Canceled {
            id: order.id,
            owner: order.owner,
            quantity,
            reason,
        });
    }

    fn remove(&mut self, place: usize, reason: Reason) {
        let order = self.orders.remove(place);
        self.reports.push(Report::Canceled {
            id: order.id,
            owner: order.owner,
            quantity: order.leaves,
            reason,
        });
    }

    fn refusal(&self, order: &NewOrder, may_rest: bool) -> Option<Reason> {
        if order.book.0 as usize >= self.capacity.books {
            Some(Reason::UnknownInstrument)
        } else if order.quantity.0 == 0 || order.quantity.0 > matcher::MAX_QUANTITY {
            Some(Reason::InvalidQuantity)
        } else if order.order_type == OrderType::Limit && order.price.is_null() {
            Some(Reason::InvalidPrice)
        } else if self.place(order.id).is_some() {
            Some(Reason::DuplicateClientOrderId)
        } else if may_rest
            && (self.orders.len() == self.capacity.orders || !self.level_fits(order.book, order.side, order.price))
        {
            Some(Reason::BookFull)
        } else {
            None
        }
    }

    fn level_fits(&self, book: BookIndex, side: Side, price: Price) -> bool {
        let levels: BTreeSet<_> = self.orders.iter().map(level_of).collect();
        levels.len() < self.capacity.levels || levels.contains(&(book, side as u8, price))
    }

    fn place(&self, id: OrderId) -> Option<usize> {
        self.orders.iter().position(|order| order.id == id)
    }

    fn reject(&mut self, id: OrderId, reason: Reason) {
        self.reports.push(Report::Rejected(Rejected { id, reason }));
    }
}

fn level_of(order: &RestingOrder) -> (BookIndex, u8, Price) {
    (order.book, order.side as u8, order.price)
}

fn reaches(side: Side, limit: Price, resting: Price) -> bool {
    match side {
        Side::Buy => resting <= limit,
        Side::Sell => resting >= limit,
    }
}
