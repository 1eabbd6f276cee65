//! Cancels and replaces of clients. An order has at most one of each on its way: a cancel may follow a replace, and is
//! never held back by one; nothing follows a cancel.

use crate::config::SelfMatch;
use crate::control::Stop;
use crate::exposure::shared_units;
use crate::map::NIL;
use crate::order::{Order, PendingCancel, PendingReplace};
use crate::report::{ForVenue, OrderStatus, Report, Sink};
use crate::risk::{self, Reference, Terms};
use crate::stake::{AccountPlace, Need, Places, SessionPlace, Stake};
use crate::state::{Named, Orders};
use crate::together::More;
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecReport, ExecType, InstrumentId, OrderId, OrderTerms, OrderType, Price,
    Quantity, Reason, ReplaceOrder, SessionId, Side, Timestamp, VenueId,
};

/// A cancel that can be sent.
#[derive(Debug)]
pub struct CancelChecked {
    cancel: CancelOrder,
    version: u64,
    slot: u32,
    venue: VenueId,
    is_here: bool,
}

/// A replace that passed the risk checks.
#[derive(Debug)]
pub struct ReplaceChecked(Replacement);

/// A replace that passed the risk checks and the first-stage screen.
#[derive(Debug)]
pub struct ReplaceScreened(Replacement);

#[derive(Debug)]
struct Replacement {
    replace: ReplaceOrder,
    version: u64,
    slot: u32,
    venue: VenueId,
    is_held: bool,
    account: u32,
    session: u32,
    /// The price at which the order would count for exposure.
    weight_price: Price,
    /// What it takes of its account's shared limits.
    need: Need,
    /// What the account's position is valued at from then on; 0 where it stays as it is.
    mark: Price,
    /// It does more than take lots off: it counts for rates.
    is_limited: bool,
    /// Its order waits for a rate.
    is_queued: bool,
}

/// What cancel and replace have in common.
struct Change {
    client_order_id: ClientOrderId,
    orig_client_order_id: ClientOrderId,
    instrument: InstrumentId,
    session: SessionId,
    side: Side,
}

impl Orders {
    /// Whether a cancel can be sent. Neither a kill switch nor a venue that is down stands in its way.
    ///
    /// # Errors
    /// Why it must be refused.
    pub fn check_cancel(&self, cancel: &CancelOrder) -> Result<CancelChecked, Reason> {
        let slot = self.find_open(&Change::from(cancel))?;
        // One of the gateway's own that waits to be sent is not in the way: the client's goes in its place.
        let is_pending = |pending: PendingCancel| pending.number != 0 || pending.client_order_id.0 != 0;
        if self.table.order(slot).cancel.is_some_and(is_pending) {
            return Err(Reason::RequestPending);
        }
        Ok(CancelChecked {
            cancel: *cancel,
            version: self.version,
            slot,
            venue: self.table.order(slot).venue,
            is_here: self.table.order(slot).venue_number == 0,
        })
    }

    /// Marks the order as being cancelled and gives the request for its venue.
    ///
    /// # Panics
    /// When anything changed since [`check_cancel`](Self::check_cancel).
    pub fn accept_cancel(&mut self, now: Timestamp, cancel: CancelChecked) -> ForVenue<CancelOrder> {
        let CancelChecked {
            cancel, version, slot, ..
        } = cancel;
        let pending = self.take_cancel(version, &cancel, slot);
        self.send_cancel(now, slot, pending)
    }

    /// Marks the order as being cancelled though the venue's link has no room: the request comes out of
    /// [`poll_cancel`](Self::poll_cancel) once it has. Of an order that [is here](CancelChecked::is_here) the end comes out
    /// of [`end_next`](Self::end_next).
    ///
    /// # Panics
    /// As [`accept_cancel`](Self::accept_cancel).
    pub fn hold_cancel(&mut self, cancel: CancelChecked) {
        let CancelChecked {
            cancel, version, slot, ..
        } = cancel;
        let pending = self.take_cancel(version, &cancel, slot);
        self.queue_cancel(slot, pending);
    }

    /// Refuses a cancel; the order stays as it is.
    pub fn refuse_cancel(&mut self, cancel: &CancelOrder, reason: Reason) -> Report {
        self.refuse_change(&Change::from(cancel), reason)
    }

    /// Form and pre-trade risk of a replace. One that only takes lots off the order passes every limit, also when it leaves
    /// no more than what is filled: then the order is over, filled at that. Others keep their order's slot at the venue, and
    /// have none when the venue permits fewer orders by now than are open there.
    ///
    /// # Errors
    /// Why it must be refused.
    pub fn check_replace(
        &self,
        now: Timestamp,
        replace: &ReplaceOrder,
        reference: &Reference,
    ) -> Result<ReplaceChecked, Reason> {
        let slot = self.find_open(&Change::from(replace))?;
        let order = self.table.order(slot);
        if order.cancel.is_some() || order.replace.is_some() || (order.waits() && !order.is_queued) {
            return Err(Reason::RequestPending);
        }
        let mut replace = *replace;
        let terms = order.replaced_by(&mut replace)?;
        let instrument = &self.instruments[order.instrument as usize];
        terms.check_form(now, instrument)?;
        let venue = &self.venues[usize::from(order.venue.0)];
        if !venue.is_up && order.venue_number != 0 {
            return Err(Reason::VenueDown);
        }
        if venue.types.parts(order.type_now(), terms.extra.display)?.slices && order.held_place == NIL {
            return Err(Reason::VenueLacksType);
        }
        let is_limited = !order.only_loses_lots(&replace);
        let mut mark = Price(0);
        let weight_price = if is_limited {
            let account = &self.accounts[order.account as usize];
            let session = &self.sessions[order.session as usize];
            let stop = self.stop_for(account, session);
            if stop != Stop::Off {
                let more = replace.quantity.0.saturating_sub(order.quantity.0);
                self.check_stop(stop, order.account, order.instrument, order.side, more)?;
            }
            if venue.slots.is_some_and(|slots| venue.open_orders > slots) {
                return Err(Reason::NoVenueSlot);
            }
            self.check_restrictions(order.instrument, order.account, order.session)?;
            terms.check_short_sale(account)?;
            let is_fresh = reference.is_fresh(now, instrument);
            let market = risk::market_price(instrument, reference, is_fresh);
            let weight = terms.check_limits(instrument, account, session, market)?;
            terms.check_book(instrument, reference, is_fresh)?;
            let more = replace.quantity.0.saturating_sub(order.quantity.0);
            if more > 0 {
                self.check_position(account, order.position, order.side, more)?;
            }
            mark = if account.valued {
                market?
            } else {
                market.unwrap_or(mark)
            };
            weight.price
        } else {
            order.weight_price
        };
        if !self.numbers.has_room() {
            return Err(Reason::OrderTableFull);
        }
        let need = self.need_beyond_held(order, &replace, weight_price, mark)?;
        if is_limited {
            let more = More {
                side: order.side,
                orders: 0,
                notional: need.stake.notional,
                lots: replace.quantity.0.saturating_sub(order.quantity.0),
            };
            instrument.together.check(&instrument.limits, &instrument.most, &more)?;
        }
        Ok(ReplaceChecked(Replacement {
            replace,
            version: self.version,
            slot,
            venue: order.venue,
            is_held: order.held_place != NIL,
            account: order.account,
            session: order.session,
            weight_price,
            need,
            mark,
            is_limited: is_limited && !order.is_queued,
            is_queued: order.is_queued,
        }))
    }

    /// First stage for a replace: one that could trade with an own order is refused, and both orders stay as they are; unless
    /// the session leaves it to the venue by [`SelfMatch::Decrement`].
    ///
    /// # Errors
    /// [`Reason::SelfMatch`].
    pub fn screen_replace(&self, replace: ReplaceChecked) -> Result<ReplaceScreened, Reason> {
        let ReplaceChecked(replacement) = replace;
        let order = self.table.order(replacement.slot);
        let price = replacement.replace.price;
        let reach = self.own.reach(order.book, order.side, order.type_now(), price);
        let is_left_to_venue = || {
            let mode = self.sessions[order.session as usize].self_match;
            mode == SelfMatch::Decrement && self.is_decremented(reach, order.account, order.venue)
        };
        if self.own.would_trade(reach) && !is_left_to_venue() {
            return Err(Reason::SelfMatch);
        }
        Ok(ReplaceScreened(replacement))
    }

    /// Marks the order as being replaced and gives the request for its venue. Until the venue answers, exposure covers
    /// the order as it was and as it would be.
    ///
    /// # Panics
    /// When anything changed since [`check_replace`](Self::check_replace).
    pub fn accept_replace(&mut self, now: Timestamp, replace: ReplaceScreened) -> ForVenue<ReplaceOrder> {
        let ReplaceScreened(replacement) = replace;
        assert!(!replacement.is_held, "a held order is replaced here");
        let (slot, replace) = (replacement.slot, replacement.replace);
        let number = self.numbers.next(slot);
        self.table.order_mut(slot).last_number = number;
        self.enter_replace(now, replacement, number);
        let order = self.table.order(slot);
        ForVenue {
            venue: order.venue,
            order_id: OrderId(order.number),
            request: ReplaceOrder {
                client_order_id: ClientOrderId(number),
                orig_client_order_id: ClientOrderId(order.venue_number),
                session: self.venues[usize::from(order.venue.0)].session,
                ..replace
            },
        }
    }

    /// Takes in the replace of a [held](ReplaceScreened::is_held) order: it is made as soon as nothing of the order is at its
    /// venue, and the client hears of it then.
    ///
    /// # Panics
    /// As [`accept_replace`](Self::accept_replace).
    pub fn replace_held<S: Sink>(&mut self, now: Timestamp, replace: ReplaceScreened, sink: &mut S) {
        let ReplaceScreened(replacement) = replace;
        assert!(replacement.is_held, "others are replaced at their venue");
        let slot = replacement.slot;
        let places = self.table.order(slot).places();
        // No venue hears of it.
        self.enter_replace(now, replacement, 0);
        self.begin_replace(now, slot, sink);
        self.settle(places, sink);
    }

    /// From here on exposure covers the order as it was and as it would be.
    fn enter_replace(&mut self, now: Timestamp, replacement: Replacement, number: u64) {
        let Replacement {
            replace,
            version,
            slot,
            weight_price,
            need,
            mark,
            is_limited,
            ..
        } = replacement;
        self.begin_change(version, replace.session, replace.client_order_id);
        self.counters.replaces += 1;
        let order = self.table.order_mut(slot);
        order.updated = now;
        order.held += need.stake.notional;
        order.replace = Some(PendingReplace {
            number,
            client_order_id: replace.client_order_id,
            price: replace.price,
            quantity: replace.quantity,
            terms: replace.terms,
            weight_price,
        });
        let (account, session, instrument) = (order.account, order.session, order.instrument);
        let position = order.position;
        self.accounts[account as usize].exposure.held += need.stake.notional;
        self.sessions[session as usize].exposure.held += need.stake.notional;
        if mark.0 != 0 {
            self.positions.entry_mut(position).mark = mark;
        }
        let instrument = &mut self.instruments[instrument as usize];
        instrument.together.held += i128::from(need.stake.notional);
        if is_limited {
            instrument.rate.take(now);
        }
        self.by_client_id.insert(replace.client_order_id.0, session, slot);
        self.follow_terms(slot);
        // Reserved already.
        self.accounts[account as usize].unsettled = Stake::NONE;
    }

    /// Whether a replace that [counts for rates](ReplaceScreened::is_limited) is too fast for its instrument's.
    #[must_use]
    pub fn is_fast_replace(&self, now: Timestamp, replace: &ReplaceScreened) -> bool {
        let order = self.table.order(replace.slot());
        !self.instruments[order.instrument as usize].rate.allows(now)
    }

    /// Refuses a replace; the order stays as it is.
    pub fn refuse_replace(&mut self, replace: &ReplaceOrder, reason: Reason) -> Report {
        self.refuse_change(&Change::from(replace), reason)
    }

    /// Gives a cancel of the order in `slot` its number and makes the request.
    pub(crate) fn send_cancel(&mut self, now: Timestamp, slot: u32, pending: PendingCancel) -> ForVenue<CancelOrder> {
        let number = self.numbers.next(slot);
        let aimed_at = self.newest_number(self.table.order(slot));
        let order = self.table.order_mut(slot);
        // A replace on its way will have been answered before the cancel gets there: most likely it was accepted. If not,
        // the cancel misses and is sent again, see `venue.rs`.
        order.last_number = number;
        order.updated = now;
        order.cancel = Some(PendingCancel {
            number,
            aimed_at,
            ..pending
        });
        ForVenue {
            venue: order.venue,
            order_id: OrderId(order.number),
            request: CancelOrder {
                client_order_id: ClientOrderId(number),
                orig_client_order_id: ClientOrderId(aimed_at),
                instrument: order.instrument_id,
                session: self.venues[usize::from(order.venue.0)].session,
                side: order.side,
            },
        }
    }

    /// A report that refuses a cancel or replace of an order.
    pub(crate) fn rejection(&mut self, order: &Order, request: ClientOrderId, reason: Reason) -> Report {
        let exec = ExecReport {
            client_order_id: request,
            orig_client_order_id: order.client_order_id,
            ..order.report(ExecType::RequestRejected, self.next_exec_id(), reason)
        };
        self.sent(exec, order.traded, order.status())
    }

    /// The open order that a cancel or replace names.
    fn find_open(&self, change: &Change) -> Result<u32, Reason> {
        let session_index = self.session(change.session).ok_or(Reason::WrongSession)?;
        let last = self.sessions[session_index as usize].last_client_order_id;
        if change.client_order_id <= last {
            return Err(Reason::DuplicateClientOrderId);
        }
        let orig = change.orig_client_order_id;
        let slot = match self.named(orig, session_index) {
            Named::Open(slot) => slot,
            Named::Done(_) => return Err(Reason::TooLate),
            // Numbers rise, so one that is not above the last was used, and what used it is over.
            Named::Nothing if ClientOrderId(0) < orig && orig <= last => return Err(Reason::TooLate),
            Named::Nothing => return Err(Reason::UnknownOrder),
        };
        let order = self.table.order(slot);
        if order.instrument_id != change.instrument || order.side != change.side {
            return Err(Reason::OrderMismatch);
        }
        Ok(slot)
    }

    /// A client's cancel counts, in place of one of the gateway's own that waits to be sent. That one is still wanted when the
    /// venue refuses the client's.
    fn take_cancel(&mut self, version: u64, cancel: &CancelOrder, slot: u32) -> PendingCancel {
        self.begin_change(version, cancel.session, cancel.client_order_id);
        self.counters.cancels += 1;
        self.unqueue_cancel(slot);
        // What comes next may name the order by the number of this request.
        let order = self.table.order(slot);
        self.by_client_id.insert(cancel.client_order_id.0, order.session, slot);
        let otherwise = order.cancel.map_or(Reason::None, |own| own.cause);
        PendingCancel::of_client(cancel.client_order_id, otherwise)
    }

    fn begin_change(&mut self, version: u64, session: SessionId, client_order_id: ClientOrderId) {
        assert!(
            version == self.version,
            "a request is accepted before anything else changes"
        );
        self.version += 1;
        self.use_client_order_id(session, client_order_id);
    }

    fn refuse_change(&mut self, change: &Change, reason: Reason) -> Report {
        self.version += 1;
        self.use_client_order_id(change.session, change.client_order_id);
        self.counters.count_refusal(reason);
        let named = match self.session(change.session) {
            Some(session) => self.named(change.orig_client_order_id, session),
            None => Named::Nothing,
        };
        match named {
            Named::Open(slot) => {
                let order = *self.table.order(slot);
                return self.rejection(&order, change.client_order_id, reason);
            }
            Named::Done(&done) => {
                let mut report = self.rejection(&done.order, change.client_order_id, reason);
                report.exec.leaves = Quantity::ZERO;
                report.status = done.end.status;
                return report;
            }
            Named::Nothing => {}
        }
        let exec = ExecReport {
            exec_type: ExecType::RequestRejected,
            order_id: OrderId(0),
            client_order_id: change.client_order_id,
            orig_client_order_id: change.orig_client_order_id,
            exec_id: self.next_exec_id(),
            instrument: change.instrument,
            account: AccountId(0),
            session: change.session,
            side: change.side,
            price: Price::NULL,
            quantity: Quantity::ZERO,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: Quantity::ZERO,
            cumulative: Quantity::ZERO,
            reason,
        };
        self.sent(exec, 0, OrderStatus::Rejected)
    }

    /// What an order with this replace pending needs beyond what it holds of its account's shared limits.
    fn need_beyond_held(
        &self,
        order: &Order,
        replace: &ReplaceOrder,
        weight_price: Price,
        mark: Price,
    ) -> Result<Need, Reason> {
        let account = &self.accounts[order.account as usize];
        let changed = Order {
            replace: Some(PendingReplace {
                number: 0,
                client_order_id: replace.client_order_id,
                price: replace.price,
                quantity: replace.quantity,
                terms: replace.terms,
                weight_price,
            }),
            ..*order
        };
        let claim = changed.claim();
        let notional = shared_units(order.used + claim.notional).ok_or(Reason::SharedLimit)?;
        let mut need = Need::default();
        need.stake.notional = (notional - order.held).max(0);
        if account.valued {
            let mut held = *self.positions.entry(order.position);
            held.change(order.side, order.claim, claim);
            if mark.0 != 0 {
                held.mark = mark;
            }
            // One that only takes lots off is no reason to look at losses.
            need.reduces = mark.0 == 0 || held.worst(order.side, 0) == 0;
            need.stake.take_value(&held.value(), &held.stake);
        }
        Ok(need)
    }
}

impl Order {
    /// What it trades at by now: a stop order that was triggered is a market or limit order.
    pub(crate) const fn type_now(&self) -> OrderType {
        match self.order_type {
            OrderType::Stop if self.triggered => OrderType::Market,
            OrderType::StopLimit if self.triggered => OrderType::Limit,
            order_type => order_type,
        }
    }

    /// Whether a replace takes lots off and changes nothing else; `replace` is as [`replaced_by`](Self::replaced_by) leaves it. What
    /// may not be above the quantity goes down with it.
    fn only_loses_lots(&self, replace: &ReplaceOrder) -> bool {
        let stop_price = if self.triggered {
            Price::NULL
        } else {
            self.terms.stop_price
        };
        let kept = OrderTerms {
            stop_price,
            display: self.terms.display.min(replace.quantity),
            min_quantity: self.terms.min_quantity.min(replace.quantity),
            ..self.terms
        };
        replace.price == self.price && replace.quantity <= self.quantity && replace.terms == kept
    }

    /// The order as a replace would make it. What the request says of a stop price that was met is left out of it.
    fn replaced_by(&self, replace: &mut ReplaceOrder) -> Result<Terms, Reason> {
        let order_type = self.type_now();
        if order_type == OrderType::Market || self.time_in_force.is_immediate() {
            return Err(Reason::UnsupportedOrder);
        }
        if (replace.terms.short_sale, replace.terms.located) != (self.terms.short_sale, self.terms.located) {
            return Err(Reason::OrderMismatch);
        }
        if self.triggered {
            replace.terms = OrderTerms {
                stop_price: Price::NULL,
                ..replace.terms
            };
        }
        Ok(Terms {
            side: self.side,
            order_type,
            time_in_force: self.time_in_force,
            price: replace.price,
            quantity: replace.quantity,
            extra: replace.terms,
        })
    }
}

impl CancelChecked {
    /// Whether nothing of the order is at its venue, so that nothing goes there: it is given to [`Orders::hold_cancel`].
    #[must_use]
    pub const fn is_here(&self) -> bool {
        self.is_here
    }

    /// Where the cancel goes.
    #[must_use]
    pub const fn venue(&self) -> VenueId {
        self.venue
    }
}

impl ReplaceScreened {
    /// Whether its order waits for a rate, so that nothing goes to its venue: it is given to [`Orders::amend_queued`].
    #[must_use]
    pub const fn is_queued(&self) -> bool {
        self.0.is_queued
    }

    pub(crate) const fn slot(&self) -> u32 {
        self.0.slot
    }

    /// Where the replace goes.
    #[must_use]
    pub const fn venue(&self) -> VenueId {
        self.0.venue
    }

    /// Whether the gateway holds the order: the replace is given to [`Orders::replace_held`].
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.0.is_held
    }

    /// Whether it counts for rates: it does more than take lots off an order that is not queued.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.0.is_limited
    }

    /// Whose order it is.
    #[must_use]
    pub const fn places(&self) -> Places {
        Places {
            account: AccountPlace(self.0.account),
            session: SessionPlace(self.0.session),
        }
    }

    /// What the replace takes of limits that span shards beyond what its order holds already, rounded against
    /// the client; see [`Routed::need`](crate::Routed::need).
    #[must_use]
    pub const fn need(&self) -> &Need {
        &self.0.need
    }
}

impl From<&CancelOrder> for Change {
    fn from(cancel: &CancelOrder) -> Self {
        Self {
            client_order_id: cancel.client_order_id,
            orig_client_order_id: cancel.orig_client_order_id,
            instrument: cancel.instrument,
            session: cancel.session,
            side: cancel.side,
        }
    }
}

impl From<&ReplaceOrder> for Change {
    fn from(replace: &ReplaceOrder) -> Self {
        Self {
            client_order_id: replace.client_order_id,
            orig_client_order_id: replace.orig_client_order_id,
            instrument: replace.instrument,
            session: replace.session,
            side: replace.side,
        }
    }
}
