//! Orders that come faster than a rate whose action is to queue: they wait in the gateway and go once the rate allows, those of
//! a session in their order.
//!
//! A queued order is an open one in all that counts: exposure, limits, own orders, the venue's slots. So what was checked when
//! it came in still holds when it goes, and what it takes is taken once. It takes its share of the rates when it goes. No venue
//! knows it: it ends here when it is cancelled or its time is over, and is amended here when it is replaced.
//!
//! Each session has its list; what is looked at is the first order of each, session by session, so that the work is bounded by
//! the sessions that have any, and one that waits for a slow rate holds back no other session.

use crate::config::{RateAction, RateQueueConfig};
use crate::detour::Detour;
use crate::list::Links;
use crate::order_types::Parts;
use crate::rate::TooFast;
use crate::report::{ForVenue, Sink};
use crate::stake::{AccountPlace, Places, SessionPlace};
use crate::state::{Orders, SessionState};
use crate::{ReplaceScreened, Routed};
use alloc::collections::VecDeque;
use types::{Duration, NewOrder, OrderId, Reason, Timestamp, VenueId};

/// What sessions have queued.
pub(crate) struct RateQueue {
    config: RateQueueConfig,
    /// Links of the lists in [`SessionState`].
    pub(crate) links: Links,
    /// Sessions that have queued orders, each once, and some that no longer have; those to be looked at next first.
    sessions: VecDeque<u32>,
    /// Queued orders.
    pub(crate) length: u32,
    /// When it is worth looking again.
    due: Timestamp,
}

/// A queued order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued(u32);

/// What can be done about a queued order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueuedVerdict {
    /// Nothing yet.
    Wait,
    /// It goes as soon as its venue's link has room and the rates that span shards allow it.
    Send(VenueId),
    /// It is refused.
    Refuse(Reason),
}

impl RateQueue {
    pub(crate) fn new(config: RateQueueConfig, slots: usize, sessions: usize) -> Self {
        // Without a queue nothing is allocated.
        let (slots, sessions) = if config.orders > 0 { (slots, sessions) } else { (0, 0) };
        Self {
            config,
            links: Links::new(slots),
            sessions: VecDeque::with_capacity(sessions),
            length: 0,
            due: Timestamp(u64::MAX),
        }
    }

    /// Whether the config has one.
    pub(crate) const fn is_there(&self) -> bool {
        self.config.orders > 0
    }

    /// Something changed that queued orders wait for.
    pub(crate) const fn look_again(&mut self) {
        self.due = Timestamp::NONE;
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.links.memory() + self.sessions.capacity() * size_of::<u32>()
    }
}

impl Orders {
    /// What becomes of an order that comes too fast, `too_fast` for rates that span shards or for its instrument's, or that has
    /// queued ones of its session before it: it is to be queued, or refused.
    ///
    /// # Errors
    /// [`Reason::RateLogout`] or [`Reason::RateLimit`], by the strictest action of the rates that do not allow it;
    /// [`Reason::RateLimit`] when the queue is full, and for one that would have to wait for own orders or be held as well.
    #[cold]
    pub fn pace<'a>(&self, now: Timestamp, mut order: Routed<'a>, too_fast: &TooFast) -> Result<Routed<'a>, Reason> {
        let candidate = &mut order.candidate;
        self.check_actions(
            now,
            [candidate.account, candidate.session, candidate.instrument],
            too_fast,
        )?;
        if self.queue.length >= self.queue.config.orders {
            return Err(Reason::RateLimit);
        }
        if order.parts == Parts::CROSS {
            // What is queued goes to its venue.
            order.parts = Parts::NONE;
            candidate.detour.remove(Detour::HOLD);
        }
        candidate.detour.remove(Detour::CROSS);
        // One that waited for both could wait for own orders that came behind it.
        if candidate.detour.has(Detour::WAIT) || candidate.detour.has(Detour::HOLD) {
            return Err(Reason::RateLimit);
        }
        candidate.detour.add(Detour::QUEUE);
        Ok(order)
    }

    /// What the strictest of the rates that do not allow one more order says; nothing where all that do not let it be queued.
    ///
    /// # Errors
    /// [`Reason::RateLogout`]; [`Reason::RateLimit`].
    fn check_actions(
        &self,
        now: Timestamp,
        [account, session, instrument]: [u32; 3],
        too_fast: &TooFast,
    ) -> Result<(), Reason> {
        let instrument = &self.instruments[instrument as usize];
        let rates = [
            (too_fast.firm.is_some(), self.firm.rate),
            (too_fast.account.is_some(), self.accounts[account as usize].limits.rate),
            (too_fast.session.is_some(), self.sessions[session as usize].limits.rate),
            (!instrument.rate.allows(now), instrument.limits.rate),
        ];
        let exceeded = rates.into_iter().filter(|&(is_exceeded, _)| is_exceeded);
        match exceeded.filter_map(|(_, limit)| limit.action).max() {
            None | Some(RateAction::Queue) => Ok(()),
            Some(RateAction::Reject) => Err(Reason::RateLimit),
            Some(RateAction::Disconnect) => Err(Reason::RateLogout),
        }
    }

    /// Why a replace that comes too fast is refused: it is never queued.
    #[cold]
    pub fn refuse_fast_replace(&self, now: Timestamp, replace: &ReplaceScreened, too_fast: &TooFast) -> Reason {
        let order = self.table.order(replace.slot());
        let verdict = self.check_actions(now, order.places(), too_fast);
        verdict.err().unwrap_or(Reason::RateLimit)
    }

    /// Takes in an order that is to be queued. Gives the gateway's number of it.
    ///
    /// # Panics
    /// When anything changed since [`check_risk`](Self::check_risk).
    pub fn enqueue(&mut self, now: Timestamp, order: Routed<'_>) -> OrderId {
        let (slot, _) = self.enter(now, &order);
        let order = self.table.order_mut(slot);
        order.is_queued = true;
        (order.waits_until, order.venue_number) = (now + self.queue.config.wait, 0);
        let (number, index) = (order.number, order.session);
        let session = &mut self.sessions[index as usize];
        if !session.has_queued() {
            self.queue.look_again();
        }
        if !session.is_queueing {
            session.is_queueing = true;
            self.queue.sessions.push_back(index);
        }
        self.queue.links.push_back(&mut session.queued, slot);
        self.queue.length += 1;
        self.counters.queued += 1;
        OrderId(number)
    }

    /// Whether [`next_queued`](Self::next_queued) may have something to do.
    #[must_use]
    pub fn is_queue_due(&self, now: Timestamp) -> bool {
        self.queue.length > 0 && self.queue.due <= now
    }

    /// Sessions that are looked at: more than so many orders in a row that wait are all that do.
    #[must_use]
    pub fn queueing_sessions(&self) -> usize {
        self.queue.sessions.len()
    }

    /// Begins to look at the queue.
    pub const fn begin_queue(&mut self) {
        self.queue.due = Timestamp(u64::MAX);
    }

    /// What was begun is not at its end.
    pub const fn leave_queue(&mut self) {
        self.queue.look_again();
    }

    /// The first order of the next session, and what can be done about it; `None` when no session has any.
    pub fn next_queued(&mut self, now: Timestamp) -> Option<(Queued, QueuedVerdict)> {
        while let Some(index) = self.queue.sessions.pop_front() {
            let session = &mut self.sessions[index as usize];
            let Some(slot) = session.queued.first() else {
                session.is_queueing = false;
                continue;
            };
            self.queue.sessions.push_back(index);
            return Some((Queued(slot), self.queued_verdict(now, slot)));
        }
        None
    }

    fn queued_verdict(&mut self, now: Timestamp, slot: u32) -> QueuedVerdict {
        let order = self.table.order(slot);
        let venue = &self.venues[usize::from(order.venue.0)];
        if order.cancel.is_some() {
            return QueuedVerdict::Wait;
        }
        if !venue.is_up {
            return QueuedVerdict::Refuse(Reason::VenueDown);
        }
        if order.waits_until <= now {
            return QueuedVerdict::Refuse(Reason::RateLimit);
        }
        let allowed = self.instruments[order.instrument as usize].rate.allows_at();
        let until = if venue.slots.is_some_and(|slots| venue.open_orders > slots) {
            allowed.max(now + SLOT_LOOK)
        } else {
            allowed
        };
        if until <= now {
            return QueuedVerdict::Send(order.venue);
        }
        self.queue.due = self.queue.due.min(until).min(order.waits_until);
        QueuedVerdict::Wait
    }

    /// Whose order a queued one is.
    #[must_use]
    pub fn queued_places(&self, queued: Queued) -> Places {
        let [account, session, _] = self.table.order(queued.0).places();
        Places {
            account: AccountPlace(account),
            session: SessionPlace(session),
        }
    }

    /// The rates that span shards do not allow a queued order yet.
    pub fn keep_queued(&mut self, queued: Queued, too_fast: &TooFast) {
        let until = self.table.order(queued.0).waits_until;
        self.queue.due = self.queue.due.min(too_fast.until()).min(until);
    }

    /// Gives the request for the venue of an order that was queued.
    pub fn send_queued(&mut self, now: Timestamp, queued: Queued) -> ForVenue<NewOrder> {
        let Queued(slot) = queued;
        self.version += 1;
        self.unqueue(slot);
        let order = self.table.order_mut(slot);
        (order.is_queued, order.waits_until) = (false, Timestamp::NONE);
        self.instruments[order.instrument as usize].rate.take(now);
        self.send_anew(now, slot)
    }

    /// Refuses an order that was queued.
    pub fn refuse_queued<S: Sink>(&mut self, queued: Queued, reason: Reason, sink: &mut S) {
        self.version += 1;
        self.counters.count_refusal(reason);
        self.rejected(queued.0, reason, sink);
    }

    /// Amends a queued order: it keeps its place.
    ///
    /// # Panics
    /// When anything changed since [`check_replace`](Self::check_replace).
    pub fn amend_queued<S: Sink>(&mut self, now: Timestamp, replace: ReplaceScreened, sink: &mut S) {
        let slot = replace.slot();
        let _: ForVenue<_> = self.accept_replace(now, replace);
        let places = self.table.order(slot).places();
        if let Some(replace) = self.table.order(slot).replace {
            self.replaced(now, slot, &replace, sink);
        }
        self.settle(places, sink);
    }

    /// Takes an order out of its session's list.
    pub(crate) fn unqueue(&mut self, slot: u32) {
        let session = &mut self.sessions[self.table.order(slot).session as usize];
        self.queue.links.remove(&mut session.queued, slot);
        self.queue.length -= 1;
        // The next of the session may go.
        self.queue.look_again();
    }
}

impl SessionState {
    /// Whether it has orders that wait for a rate.
    #[inline]
    pub(crate) const fn has_queued(&self) -> bool {
        self.queued.length() > 0
    }
}

/// How soon an order is looked at again whose venue permits no more open ones.
const SLOT_LOOK: Duration = Duration(1_000_000);
