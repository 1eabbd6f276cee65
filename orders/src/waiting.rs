//! Orders that wait in the gateway until own ones that they would trade with are cancelled: cancel oldest.
//!
//! The cancels go out first. On the link that the order goes out by as well the venue sees them first, so the order follows
//! them at once. An own order at another venue has to be gone before: its venue says so, by a cancel, a trade or whatever
//! else ended it. How they race is the venue's to say; this order goes, or is refused, by what the own ones have become.
//!
//! A waiting order is an open one in all that counts: exposure, limits, own orders, the venue's slots. So what was checked
//! when it came in still holds when it goes. No venue knows it, so it ends here when it is cancelled.

use crate::map::NIL;
use crate::order::{Order, PendingCancel};
use crate::own::Reach;
use crate::report::{ForVenue, Sink};
use crate::state::Orders;
use types::{ClientOrderId, NewOrder, OrderId, OrderType, Reason, Timestamp, VenueId};

/// An order that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting(u32);

/// What can be done about an order that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitingVerdict {
    /// Nothing yet.
    Wait,
    /// It goes as soon as its venue's link has room, and is refused when it has none once its time is over.
    Send {
        /// Where to.
        venue: VenueId,
        /// Its time is over.
        is_late: bool,
    },
    /// It is refused.
    Refuse(Reason),
}

/// What an own order is to one that would trade with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InTheWay {
    /// The venue ends it before it sees the other.
    Not,
    /// Its end is under way.
    Yet,
    /// Nobody asked its venue to end it, or the venue would not.
    Still,
}

impl Orders {
    /// The order that has waited longest. Whoever accepts, cancels or hands in a report goes through all of them afterwards.
    #[must_use]
    pub fn first_waiting(&self) -> Option<Waiting> {
        self.waiting.first().map(Waiting)
    }

    /// The one that came next. Asked before anything is done about `waiting`.
    #[must_use]
    pub fn waiting_after(&self, waiting: Waiting) -> Option<Waiting> {
        self.waiting_links.after(waiting.0).map(Waiting)
    }

    /// When the first of them has waited long enough.
    #[must_use]
    pub fn waiting_until(&self) -> Option<Timestamp> {
        Some(self.table.order(self.waiting.first()?).waits_until)
    }

    /// Orders that wait.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting.length()
    }

    /// What can be done about an order that waits.
    #[must_use]
    pub fn waiting_verdict(&self, now: Timestamp, waiting: Waiting) -> WaitingVerdict {
        let order = self.table.order(waiting.0);
        let venue = &self.venues[usize::from(order.venue.0)];
        let is_late = order.waits_until <= now;
        let refuse_late = |reason| match is_late {
            true => WaitingVerdict::Refuse(reason),
            false => WaitingVerdict::Wait,
        };
        if order.cancel.is_some() {
            return WaitingVerdict::Wait;
        }
        if !venue.is_up {
            return WaitingVerdict::Refuse(Reason::VenueDown);
        }
        match self.own_in_the_way(waiting.0) {
            InTheWay::Still => WaitingVerdict::Refuse(Reason::OwnOrderRemains),
            InTheWay::Yet => refuse_late(Reason::OwnOrderRemains),
            InTheWay::Not if venue.slots.is_some_and(|slots| venue.open_orders > slots) => {
                refuse_late(Reason::NoVenueSlot)
            }
            InTheWay::Not => WaitingVerdict::Send {
                venue: order.venue,
                is_late,
            },
        }
    }

    /// Gives the request for the venue of an order that waited. Its number at the venue is a new one, as numbers there rise.
    /// One whose venue lacks its type is held from then on, and its first child goes, if it has one to send.
    pub fn send_waiting<S: Sink>(
        &mut self,
        now: Timestamp,
        waiting: Waiting,
        sink: &mut S,
    ) -> Option<ForVenue<NewOrder>> {
        let Waiting(slot) = waiting;
        self.version += 1;
        self.waiting_links.remove(&mut self.waiting, slot);
        let order = self.table.order_mut(slot);
        order.waits_until = Timestamp::NONE;
        if order.held_place != NIL {
            let (venue, order_id) = (order.venue, OrderId(order.number));
            let request = self.go_on_holding(now, slot, sink)?;
            return Some(ForVenue {
                venue,
                order_id,
                request,
            });
        }
        Some(self.send_anew(now, slot))
    }

    /// Gives the request for the venue of an order that was kept here. Its number there is a new one, as numbers there rise.
    pub(crate) fn send_anew(&mut self, now: Timestamp, slot: u32) -> ForVenue<NewOrder> {
        let number = self.numbers.next(slot);
        let order = self.table.order_mut(slot);
        (order.last_number, order.venue_number, order.updated) = (number, number, now);
        ForVenue {
            venue: order.venue,
            order_id: OrderId(order.number),
            request: NewOrder {
                client_order_id: ClientOrderId(number),
                instrument: order.instrument_id,
                account: order.account_id,
                session: self.venues[usize::from(order.venue.0)].session,
                side: order.side,
                order_type: order.order_type,
                time_in_force: order.time_in_force,
                price: order.price,
                quantity: order.quantity,
                trigger: order.trigger,
                terms: order.terms,
            },
        }
    }

    /// Refuses an order that waited.
    pub fn refuse_waiting<S: Sink>(&mut self, waiting: Waiting, reason: Reason, sink: &mut S) {
        self.version += 1;
        self.counters.count_refusal(reason);
        self.rejected(waiting.0, reason, sink);
    }

    /// Whether [`end_next`](Self::end_next) has anything to tell.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.ending.length() > 0
    }

    /// Tells of the next order that was cancelled while it waited.
    pub fn end_next<S: Sink>(&mut self, sink: &mut S) {
        let Some(slot) = self.ending.first() else { return };
        self.version += 1;
        self.unqueue_cancel(slot);
        let cancel = self.table.order(slot).cancel;
        self.canceled(slot, cancel, Reason::None, sink);
    }

    /// Lets an order that was just taken in wait.
    pub(crate) fn wait(&mut self, now: Timestamp, slot: u32) {
        let order = self.table.order_mut(slot);
        (order.waits_until, order.venue_number) = (now + self.own_cancel_wait, 0);
        self.waiting_links.push_back(&mut self.waiting, slot);
        self.counters.waited += 1;
    }

    /// Cancels all orders in reach that are not being cancelled.
    pub(crate) fn cancel_reach(&mut self, reach: Reach) {
        let mut next = self.own.first(reach);
        while let Some(slot) = next {
            next = self.own.after(reach, slot);
            if self.table.order(slot).cancel.is_none() {
                self.queue_cancel(slot, PendingCancel::own(Reason::SelfMatch));
            }
        }
    }

    /// Lets a new order wait, and cancels the own orders that it would trade with.
    pub(crate) fn wait_for_own(&mut self, now: Timestamp, slot: u32, request: &NewOrder) {
        self.wait(now, slot);
        let order = self.table.order(slot);
        let owner = self.sessions[order.session as usize].owner;
        let book = self.own.find(owner, order.instrument);
        self.cancel_reach(self.own.reach(book, request.side, request.order_type, request.price));
    }

    /// The own orders that an order meets; a stop, that it will meet once it is triggered.
    pub(crate) fn reach_of(&self, order: &Order) -> Reach {
        let owner = self.sessions[order.session as usize].owner;
        let book = self.own.find(owner, order.instrument);
        let order_type = match order.order_type {
            OrderType::Stop => OrderType::Market,
            OrderType::StopLimit => OrderType::Limit,
            order_type => order_type,
        };
        self.own.reach(book, order.side, order_type, order.price)
    }

    /// Whether the order in `slot` could still trade with an own one if it went now.
    fn own_in_the_way(&self, slot: u32) -> InTheWay {
        let order = self.table.order(slot);
        let reach = self.reach_of(order);
        let mut worst = InTheWay::Not;
        let mut next = self.own.first(reach);
        while let Some(own) = next {
            next = self.own.after(reach, own);
            match self.is_in_the_way(own, order.venue) {
                InTheWay::Still => return InTheWay::Still,
                InTheWay::Yet => worst = InTheWay::Yet,
                InTheWay::Not => {}
            }
        }
        worst
    }

    fn is_in_the_way(&self, slot: u32, venue: VenueId) -> InTheWay {
        let own = self.table.order(slot);
        let Some(cancel) = own.cancel else {
            return InTheWay::Still;
        };
        // A cancel that names the order by a pending replace misses when the venue refuses that.
        let is_certain = cancel.number != 0 && own.replace.is_none() && cancel.aimed_at == own.venue_number;
        if is_certain && own.venue == venue {
            InTheWay::Not
        } else {
            InTheWay::Yet
        }
    }
}
