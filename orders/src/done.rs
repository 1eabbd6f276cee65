//! Orders that are over, as far back as there is room: so that a late cancel, or whoever asks how an order stands, hears
//! how it ended.

use crate::order::Order;
use crate::report::OrderStatus;
use alloc::boxed::Box;
use alloc::vec;
use types::{ClientOrderId, Reason};

/// How an order ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) status: OrderStatus,
    pub(crate) reason: Reason,
}

/// An order that is over.
#[derive(Clone, Copy)]
pub(crate) struct DoneOrder {
    /// As it was last: without a pending request, nothing open.
    pub(crate) order: Order,
    pub(crate) end: End,
}

/// A ring of them: the oldest makes room for the newest.
pub(crate) struct DoneOrders {
    ring: Box<[DoneOrder]>,
    /// The place of the next one.
    next: usize,
    count: usize,
}

impl End {
    pub(crate) const FILLED: Self = Self {
        status: OrderStatus::Filled,
        reason: Reason::None,
    };
}

impl DoneOrder {
    pub(crate) const VACANT: Self = Self {
        order: Order::VACANT,
        end: End::FILLED,
    };
}

impl DoneOrders {
    /// A ring of `capacity` orders.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            ring: vec![DoneOrder::VACANT; capacity as usize].into_boxed_slice(),
            next: 0,
            count: 0,
        }
    }

    /// Keeps an order and gives its place, and the order that made room for it.
    pub(crate) fn keep(&mut self, order: &Order, end: End) -> (usize, Option<(ClientOrderId, u32)>) {
        let place = self.next;
        let full = self.count == self.ring.len();
        let done = &mut self.ring[place];
        let evicted = full.then_some((done.order.client_order_id, done.order.session));
        *done = DoneOrder { order: *order, end };
        self.next = if place + 1 == self.ring.len() { 0 } else { place + 1 };
        self.count += usize::from(!full);
        (place, evicted)
    }

    /// The order in a place that [`keep`](Self::keep) gave.
    pub(crate) fn get(&self, place: usize) -> &DoneOrder {
        &self.ring[place]
    }

    /// Forgets all of them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (ClientOrderId, u32)> {
        let count = core::mem::take(&mut self.count);
        self.next = 0;
        self.ring[..count]
            .iter()
            .map(|done| (done.order.client_order_id, done.order.session))
    }

    /// Orders kept.
    pub(crate) const fn length(&self) -> usize {
        self.count
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.ring)
    }
}
