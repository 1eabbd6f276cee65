//! The clients' live orders: by reference number, by the client's number, and in a list for each session.

use super::limits::{MAX_CLIENT_ORDERS, SLOT_BITS};
use matcher::{BookIndex, IdIndex, MAX_REPRICINGS, MAX_TRIGGERED_TRADES};
use types::{
    AccountId, ClientOrderId, ExecId, ExecReport, ExecType, InstrumentId, OrderId, OrderTerms, OrderType, Price,
    Quantity, Reason, ReplaceOrder, SessionId, Side, TimeInForce,
};

/// One order of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClientOrder {
    /// Our number for it, which stays: the first reference it had.
    pub(crate) order_id: OrderId,
    /// Its number in the matcher and on the feed; a replace that loses priority gives a new one.
    pub(crate) reference: OrderId,
    /// The number the client gave it first: by it recordings join, because for a gateway it is its own order id.
    pub(crate) first_client_order_id: ClientOrderId,
    /// The number the client gave it last.
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) session: SessionIndex,
    pub(crate) session_id: SessionId,
    pub(crate) book: BookIndex,
    pub(crate) instrument: InstrumentId,
    pub(crate) account: AccountId,
    pub(crate) side: Side,
    /// What it is now: a stop becomes another when it is triggered.
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) terms: OrderTerms,
    /// Limit, 1e-9; null when it has none.
    pub(crate) price: Price,
    /// Total, lots.
    pub(crate) quantity: Quantity,
    /// Traded, lots.
    pub(crate) cumulative: Quantity,
    /// In the book, and so on the feed.
    pub(crate) is_resting: bool,
    /// Lots that the feed shows of it.
    pub(crate) shown: Quantity,
    /// It was a stop, and its price was met.
    pub(crate) is_triggered: bool,
}

/// How much of what an input may cause orders account for, beyond one trade and one end for each. Orders that wait may come
/// into the book by what others do, and icebergs may trade slice by slice.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Extra {
    /// Reports about the orders themselves.
    pub(crate) reports: usize,
    /// Times that they may come in and end a trade of somebody else's order in part.
    pub(crate) entries: usize,
}

/// A session by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionIndex(pub(crate) u16);

/// All live orders. Bounded; allocated at construction.
pub(crate) struct ClientOrders {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Orders that got a reference so far.
    count: u64,
    sessions: Vec<SessionOrders>,
    /// Of all orders.
    extra: Extra,
}

struct Slot {
    /// `None`: free.
    order: Option<ClientOrder>,
    /// What the sums count for it.
    extra: Extra,
    /// Whether it is in its session's list and index: from when it first waits to its end.
    is_listed: bool,
    prev: u32,
    next: u32,
}

/// The listed orders of a session.
struct SessionOrders {
    by_client_id: IdIndex,
    head: u32,
    tail: u32,
    count: usize,
    /// Of its orders, listed or not.
    extra: Extra,
}

impl Extra {
    fn add(&mut self, other: Self) {
        self.reports += other.reports;
        self.entries += other.entries;
    }

    fn subtract(&mut self, other: Self) {
        self.reports -= other.reports;
        self.entries -= other.entries;
    }
}

impl ClientOrder {
    /// What it may cause beyond one trade and one end.
    pub(crate) fn extra(&self) -> Extra {
        Self::extra_of(self.order_type, &self.terms, self.leaves())
    }

    /// The same of an order with these lots open.
    pub(crate) fn extra_of(order_type: OrderType, terms: &OrderTerms, leaves: Quantity) -> Extra {
        let lots = usize::try_from(leaves.0).unwrap_or(usize::MAX);
        let slices = match terms.display.0 {
            0 => 0,
            // The first may have been cut short.
            display => usize::try_from(leaves.0.div_ceil(display) + 1).unwrap_or(usize::MAX),
        };
        let (trades, entries) = match order_type {
            OrderType::Market | OrderType::Limit => (0, 0),
            // The trigger is a report of its own.
            OrderType::Stop | OrderType::StopLimit => (1 + lots.min(TRIGGERED_TRADES), 1),
            OrderType::PegPrimary | OrderType::PegMid => (lots.min(TRIGGERED_TRADES * REPRICINGS), REPRICINGS),
        };
        Extra {
            reports: slices + trades,
            entries,
        }
    }

    /// The terms that a replace gives it. A stop that was triggered is none any more, whatever the client says again.
    pub(crate) fn terms_of(&self, replace: &ReplaceOrder) -> OrderTerms {
        let stop_price = if self.is_triggered {
            Price::NULL
        } else {
            replace.terms.stop_price
        };
        OrderTerms {
            stop_price,
            ..replace.terms
        }
    }

    /// Lots still open.
    pub(crate) fn leaves(&self) -> Quantity {
        self.quantity.saturating_sub(self.cumulative)
    }

    /// A report about it as it is now.
    pub(crate) fn report(&self, exec_type: ExecType, exec_id: ExecId, reason: Reason) -> ExecReport {
        let is_dead = matches!(exec_type, ExecType::Canceled | ExecType::Expired | ExecType::Rejected);
        ExecReport {
            exec_type,
            order_id: self.order_id,
            client_order_id: self.client_order_id,
            orig_client_order_id: ClientOrderId(0),
            exec_id,
            instrument: self.instrument,
            account: self.account,
            session: self.session_id,
            side: self.side,
            price: self.price,
            quantity: self.quantity,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: if is_dead { Quantity::ZERO } else { self.leaves() },
            cumulative: self.cumulative,
            reason,
        }
    }
}

impl ClientOrders {
    /// Room for `capacity` orders of `sessions` sessions.
    pub(crate) fn new(capacity: usize, sessions: usize) -> Self {
        assert!((1..=MAX_CLIENT_ORDERS).contains(&capacity), "{capacity} client orders");
        let count = u32::try_from(capacity).expect("MAX_CLIENT_ORDERS fits");
        Self {
            slots: (0..count)
                .map(|_| Slot {
                    order: None,
                    extra: Extra::default(),
                    is_listed: false,
                    prev: NONE,
                    next: NONE,
                })
                .collect(),
            free: (0..count).rev().collect(),
            count: 0,
            sessions: (0..sessions)
                .map(|_| SessionOrders {
                    by_client_id: IdIndex::new(capacity),
                    head: NONE,
                    tail: NONE,
                    count: 0,
                    extra: Extra::default(),
                })
                .collect(),
            extra: Extra::default(),
        }
    }

    /// Bytes that room for `capacity` orders of `sessions` sessions takes.
    pub(crate) const fn memory(capacity: usize, sessions: usize) -> usize {
        capacity * (size_of::<Slot>() + size_of::<u32>()) + sessions * IdIndex::memory(capacity)
    }

    /// Whether a reference number is of the clients' range.
    pub(crate) const fn is_client(reference: OrderId) -> bool {
        reference.0 >= CLIENT_RANGE
    }

    /// Live orders.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Listed orders of a session.
    pub(crate) fn count(&self, session: SessionIndex) -> usize {
        self.sessions[usize::from(session.0)].count
    }

    /// What all orders may cause beyond one trade and one end each.
    pub(crate) const fn extra(&self) -> Extra {
        self.extra
    }

    /// The same of a session's orders.
    pub(crate) fn extra_of(&self, session: SessionIndex) -> Extra {
        self.sessions[usize::from(session.0)].extra
    }

    /// What an order counts for.
    pub(crate) fn counted(&self, reference: OrderId) -> Extra {
        self.slots[slot_of(reference) as usize].extra
    }

    /// Counts an order as it is now.
    pub(crate) fn recount(&mut self, reference: OrderId) {
        let Some(order) = self.get(reference) else { return };
        let (extra, session) = (order.extra(), usize::from(order.session.0));
        let counted = core::mem::replace(&mut self.slots[slot_of(reference) as usize].extra, extra);
        for sum in [&mut self.extra, &mut self.sessions[session].extra] {
            sum.subtract(counted);
            sum.add(extra);
        }
    }

    /// Takes an order and gives it its number and reference. `None` when there is no room, for it or for what it may cause.
    pub(crate) fn insert(&mut self, order: ClientOrder) -> Option<OrderId> {
        if !self.has_room_for(order.extra(), Extra::default()) {
            return None;
        }
        let slot = self.free.pop()?;
        let reference = self.next_reference(slot);
        self.slots[slot as usize] = Slot {
            order: Some(ClientOrder {
                order_id: reference,
                reference,
                is_resting: false,
                shown: Quantity::ZERO,
                is_triggered: false,
                ..order
            }),
            extra: Extra::default(),
            is_listed: false,
            prev: NONE,
            next: NONE,
        };
        self.recount(reference);
        Some(reference)
    }

    /// Whether what all orders may cause stays within its bound when one comes, or one changes that counted for `counted`.
    pub(crate) fn has_room_for(&self, extra: Extra, counted: Extra) -> bool {
        extra.reports <= counted.reports || self.extra.reports - counted.reports + extra.reports <= self.slots.len()
    }

    /// A reference that the order may get in place of the one it has.
    pub(crate) fn another_reference(&mut self, reference: OrderId) -> OrderId {
        self.next_reference(slot_of(reference))
    }

    pub(crate) fn get(&self, reference: OrderId) -> Option<&ClientOrder> {
        self.slots
            .get(slot_of(reference) as usize)?
            .order
            .as_ref()
            .filter(|order| order.reference == reference)
    }

    pub(crate) fn get_mut(&mut self, reference: OrderId) -> Option<&mut ClientOrder> {
        self.slots
            .get_mut(slot_of(reference) as usize)?
            .order
            .as_mut()
            .filter(|order| order.reference == reference)
    }

    /// The listed order that the client means by its number.
    pub(crate) fn by_client_id(&self, session: SessionIndex, id: ClientOrderId) -> Option<&ClientOrder> {
        let index = &self.sessions[usize::from(session.0)].by_client_id;
        let slot = index.find(id.0, |slot| self.client_id_at(slot) == id.0)?;
        self.slots[slot as usize].order.as_ref()
    }

    /// Puts the order into its session's list and index, unless it is there.
    pub(crate) fn list(&mut self, reference: OrderId) {
        let slot = slot_of(reference);
        let Some(order) = self.get(reference).copied() else {
            return;
        };
        if self.slots[slot as usize].is_listed {
            return;
        }
        let session = &mut self.sessions[usize::from(order.session.0)];
        session.by_client_id.insert(order.client_order_id.0, slot);
        session.count += 1;
        let tail = core::mem::replace(&mut session.tail, slot);
        if tail == NONE {
            session.head = slot;
        } else {
            self.slots[tail as usize].next = slot;
        }
        let listed = &mut self.slots[slot as usize];
        (listed.is_listed, listed.prev, listed.next) = (true, tail, NONE);
    }

    /// Gives the order a new number of the client and a new reference, which may be the old one.
    pub(crate) fn renumber(&mut self, old: OrderId, client_order_id: ClientOrderId, reference: OrderId) {
        let slot = slot_of(old);
        let is_listed = self.slots[slot as usize].is_listed;
        let Some(order) = self.get_mut(old) else { return };
        let (session, old_id) = (order.session, order.client_order_id);
        order.client_order_id = client_order_id;
        order.reference = reference;
        if is_listed {
            let index = &mut self.sessions[usize::from(session.0)].by_client_id;
            index.remove(old_id.0, slot);
            index.insert(client_order_id.0, slot);
        }
    }

    /// Takes the order out; it is done.
    pub(crate) fn remove(&mut self, reference: OrderId) -> Option<ClientOrder> {
        let slot = slot_of(reference);
        let order = *self.get(reference)?;
        let Slot {
            is_listed, prev, next, ..
        } = self.slots[slot as usize];
        if is_listed {
            let session = &mut self.sessions[usize::from(order.session.0)];
            session.by_client_id.remove(order.client_order_id.0, slot);
            session.count -= 1;
            if prev == NONE {
                session.head = next;
            } else {
                self.slots[prev as usize].next = next;
            }
            if next == NONE {
                self.sessions[usize::from(order.session.0)].tail = prev;
            } else {
                self.slots[next as usize].prev = prev;
            }
        }
        let counted = core::mem::take(&mut self.slots[slot as usize].extra);
        self.extra.subtract(counted);
        self.sessions[usize::from(order.session.0)].extra.subtract(counted);
        self.slots[slot as usize].order = None;
        self.free.push(slot);
        Some(order)
    }

    /// The listed orders of a session, oldest first. Removing the order that was given last is allowed meanwhile: take
    /// [`Self::after`] first.
    pub(crate) fn first(&self, session: SessionIndex) -> Option<OrderId> {
        self.reference_at(self.sessions[usize::from(session.0)].head)
    }

    /// The one behind it in its session's list.
    pub(crate) fn after(&self, reference: OrderId) -> Option<OrderId> {
        self.reference_at(self.slots[slot_of(reference) as usize].next)
    }

    /// All live orders, in no order that means anything, yet the same for equal histories.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ClientOrder> {
        self.slots.iter().filter_map(|slot| slot.order.as_ref())
    }

    fn reference_at(&self, slot: u32) -> Option<OrderId> {
        self.slots
            .get(slot as usize)?
            .order
            .as_ref()
            .map(|order| order.reference)
    }

    fn client_id_at(&self, slot: u32) -> u64 {
        self.slots[slot as usize]
            .order
            .as_ref()
            .map_or(0, |order| order.client_order_id.0)
    }

    fn next_reference(&mut self, slot: u32) -> OrderId {
        self.count += 1;
        OrderId(CLIENT_RANGE | (self.count << SLOT_BITS & (CLIENT_RANGE - 1)) | u64::from(slot))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "SLOT_BITS are left")]
const fn slot_of(reference: OrderId) -> u32 {
    (reference.0 & ((1 << SLOT_BITS) - 1)) as u32
}

/// No slot.
const NONE: u32 = u32::MAX;
const TRIGGERED_TRADES: usize = MAX_TRIGGERED_TRADES as usize;
/// Times that a pegged order may come in by one input.
pub(super) const REPRICINGS: usize = MAX_REPRICINGS as usize;
/// Reference numbers from here on are of clients' orders; history's are below. Within the range: a count, then the slot.
const CLIENT_RANGE: u64 = 1 << 63;
