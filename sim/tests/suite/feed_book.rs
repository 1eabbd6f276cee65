//! A book built of published messages alone, as plain as it gets: one map of orders.

use proto::itch::{self, Message};
use std::collections::BTreeMap;
use types::{Price, Side};

/// An order as the feed tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FeedOrder {
    pub(crate) reference: u64,
    pub(crate) price: Price,
    pub(crate) shares: u32,
    locate: u16,
    side: Side,
    /// Its place in the order of their coming.
    coming: usize,
}

/// All orders of a feed.
#[derive(Default)]
pub(crate) struct FeedBook {
    orders: BTreeMap<u64, FeedOrder>,
    messages: usize,
}

impl FeedBook {
    pub(crate) fn apply(&mut self, bytes: &[u8]) {
        self.messages += 1;
        let message = itch::parse(bytes).expect("what is published is ITCH");
        let locate = message.header().stock_locate.get();
        match message {
            Message::AddOrder(add) => self.add(locate, add),
            Message::AddOrderAttributed(add) => self.add(locate, &add.order),
            Message::OrderExecuted(executed) => self.take(executed.reference.get(), executed.shares.get()),
            Message::OrderExecutedWithPrice(executed) => {
                self.take(executed.executed.reference.get(), executed.executed.shares.get());
            }
            Message::OrderCancel(cancel) => {
                let reference = cancel.reference.get();
                self.take(reference, cancel.shares.get());
                assert!(
                    self.orders.contains_key(&reference),
                    "a cancel of all shares is a delete"
                );
            }
            Message::OrderDelete(delete) => {
                let order = self
                    .orders
                    .remove(&delete.reference.get())
                    .expect("a delete of a live order");
                assert_eq!(order.locate, locate);
            }
            Message::OrderReplace(replace) => {
                let old = self
                    .orders
                    .remove(&replace.original.get())
                    .expect("a replace of a live order");
                assert_eq!(old.locate, locate);
                self.put(FeedOrder {
                    reference: replace.reference.get(),
                    price: replace.price(),
                    shares: replace.shares.get(),
                    coming: self.messages,
                    ..old
                });
            }
            _ => {}
        }
    }

    /// One side in priority.
    pub(crate) fn side(&self, locate: u16, side: Side) -> Vec<FeedOrder> {
        let mut orders: Vec<_> = self
            .orders
            .values()
            .filter(|order| order.locate == locate && order.side == side)
            .copied()
            .collect();
        let rank = |price: Price| if side == Side::Buy { -price.0 } else { price.0 };
        orders.sort_by_key(|order| (rank(order.price), order.coming));
        orders
    }

    fn add(&mut self, locate: u16, add: &itch::AddOrder) {
        self.put(FeedOrder {
            reference: add.reference.get(),
            price: add.price(),
            shares: add.shares.get(),
            locate,
            side: add.side(),
            coming: self.messages,
        });
    }

    fn put(&mut self, order: FeedOrder) {
        assert!(order.shares > 0, "an order of nothing");
        assert!(
            self.orders.insert(order.reference, order).is_none(),
            "reference {} is live",
            order.reference
        );
    }

    fn take(&mut self, reference: u64, shares: u32) {
        let order = self
            .orders
            .get_mut(&reference)
            .expect("an execution or cancel of a live order");
        assert!(
            shares > 0 && shares <= order.shares,
            "more shares than the order has, or none"
        );
        order.shares -= shares;
        if order.shares == 0 {
            self.orders.remove(&reference);
        }
    }
}
