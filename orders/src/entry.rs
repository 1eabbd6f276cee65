//! A new order on its way in: checked, screened, routed, accepted; or refused.

use crate::config::SelfMatch;
use crate::control::Stop;
use crate::detour::Detour;
use crate::exposure::{Claim, shared_units};
use crate::map::NIL;
use crate::order::{Order, own_price};
use crate::order_types::Parts;
use crate::own::Reach;
use crate::repeats::Repeat;
use crate::report::{ForVenue, OrderStatus, Report};
use crate::restricted::Who;
use crate::risk::{self, Reference, Terms, Weight};
use crate::stake::{AccountPlace, Need, Places, SessionPlace};
use crate::state::{AccountState, Orders, SessionState};
use crate::together::More;
use types::{
    ClientOrderId, ExecReport, ExecType, NewOrder, OrderId, OrderType, Price, Quantity, Reason, SessionId, Side,
    Timestamp, VenueId,
};

/// A new order that passed the risk checks.
#[derive(Debug)]
pub struct RiskChecked<'a>(Candidate<'a>);

/// A new order that passed the risk checks and the first-stage screen.
#[derive(Debug)]
pub struct Screened<'a>(Candidate<'a>);

/// A new order that passed all checks and has a venue.
#[derive(Debug)]
pub struct Routed<'a> {
    pub(crate) candidate: Candidate<'a>,
    venue: VenueId,
    /// What the gateway does for it in the venue's place.
    pub(crate) parts: Parts,
}

/// A new order with what the checks looked up.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    order: &'a NewOrder,
    /// Of the state that it was checked against.
    version: u64,
    pub(crate) instrument: u32,
    pub(crate) account: u32,
    pub(crate) session: u32,
    /// [`NIL`] when the account had no order in the instrument yet.
    position: u32,
    /// [`NIL`] when the owner had no order in the instrument yet.
    book: u32,
    weight: Weight,
    /// For a session whose repeated orders are limited.
    repeat: Option<Repeat>,
    /// What it takes of the limits that span shards.
    need: Need,
    /// What the account's position is valued at from then on; 0 where there is no reference price.
    mark: Price,
    /// What keeps it from its venue.
    pub(crate) detour: Detour,
}

impl Orders {
    /// Form and pre-trade risk of a new order.
    ///
    /// # Errors
    /// Why it must be refused.
    #[inline]
    pub fn check_risk<'a>(
        &self,
        now: Timestamp,
        order: &'a NewOrder,
        reference: &Reference,
    ) -> Result<RiskChecked<'a>, Reason> {
        let session_index = self.session(order.session).ok_or(Reason::WrongSession)?;
        let session = &self.sessions[session_index as usize];
        if order.client_order_id <= session.last_client_order_id {
            return Err(Reason::DuplicateClientOrderId);
        }
        let instrument_index = self.instrument(order.instrument).ok_or(Reason::UnknownInstrument)?;
        let instrument = &self.instruments[instrument_index as usize];
        let account_index = self
            .account(order.account, session_index)
            .ok_or(Reason::UnknownAccount)?;
        let account = &self.accounts[account_index as usize];
        account.ask_for();
        // Long before they are used: what may have to come from memory is asked for at once, not one after the other.
        let position = self.positions.find(account_index, instrument_index);
        let book = self.own.find(session.owner, instrument_index);
        let terms = Terms::of(order);
        terms.check_form(now, instrument)?;
        let stop = self.stop_for(account, session);
        if stop != Stop::Off {
            self.check_stop(stop, account_index, instrument_index, order.side, order.quantity.0)?;
        }
        self.check_restrictions(instrument_index, account_index, session_index)?;
        terms.check_short_sale(account)?;
        let mut detour = Detour::NONE;
        if !instrument.rate.allows(now) || session.has_queued() {
            detour = Detour::QUEUE;
        }
        let mut repeat = None;
        if session.limits.repeats.orders.is_some() {
            let found = session.repeats.find(order);
            if !session.repeats.allows(now, found) {
                return Err(Reason::RepeatedOrder);
            }
            repeat = Some(found);
        }
        let is_fresh = reference.is_fresh(now, instrument);
        let market = risk::market_price(instrument, reference, is_fresh);
        let weight = terms.check_limits(instrument, account, session, market)?;
        terms.check_book(instrument, reference, is_fresh)?;
        let worst = self.check_position(account, position, order.side, order.quantity.0)?;
        let has_room =
            self.table.has_room() && self.numbers.has_room() && (position != NIL || self.positions.has_room());
        if !has_room {
            return Err(Reason::OrderTableFull);
        }
        let mut need = Need::default();
        need.stake.notional = shared_units(weight.notional.0).ok_or(Reason::SharedLimit)?;
        need.stake.orders = 1;
        let more = More {
            side: order.side,
            orders: 1,
            notional: need.stake.notional,
            lots: order.quantity.0,
        };
        instrument.together.check(&instrument.limits, &instrument.most, &more)?;
        let mut mark = market.unwrap_or(Price(0));
        if account.valued {
            mark = market?;
            let held = self.positions.entry_or_nothing(position);
            need.reduces = worst == 0;
            let value = held.value_more(order.side, order.quantity.0, mark, instrument.lot_size);
            need.stake.add_value(&value);
        }
        if session.crosses
            && instrument.crosses
            && self.may_cross(now, order, [session_index, account_index, instrument_index], reference)
        {
            detour.add(Detour::CROSS);
        }
        Ok(RiskChecked(Candidate {
            order,
            version: self.version,
            instrument: instrument_index,
            account: account_index,
            session: session_index,
            position,
            book,
            weight,
            repeat,
            need,
            mark,
            detour,
        }))
    }

    /// The strictest of the switches that concern an order.
    #[inline]
    pub(crate) fn stop_for(&self, account: &AccountState, session: &SessionState) -> Stop {
        self.firm_stop.max(account.stop).max(session.stop)
    }

    /// Whether a switch lets an order pass that buys or sells so many lots more.
    #[cold]
    pub(crate) fn check_stop(
        &self,
        stop: Stop,
        account: u32,
        instrument: u32,
        side: Side,
        more: u64,
    ) -> Result<(), Reason> {
        let reduces = || match self.positions.find(account, instrument) {
            NIL => false,
            entry => self.positions.entry(entry).worst(side, more) == 0,
        };
        match stop {
            Stop::Off => Ok(()),
            Stop::ReduceOnly if reduces() => Ok(()),
            Stop::ReduceOnly => Err(Reason::ReduceOnly),
            Stop::All => Err(Reason::Killed),
        }
    }

    /// Whether everybody, the account and the session may send orders in the instrument.
    #[inline]
    pub(crate) fn check_restrictions(&self, instrument: u32, account: u32, session: u32) -> Result<(), Reason> {
        let state = &self.instruments[instrument as usize];
        let of_account = &self.accounts[account as usize].restricted;
        let of_session = &self.sessions[session as usize].restricted;
        let is_closed = state.limits.restricted
            || of_account.covers(state, instrument, &self.restrictions, Who::Account(account))
            || of_session.covers(state, instrument, &self.restrictions, Who::Session(session));
        if is_closed { Err(Reason::Restricted) } else { Ok(()) }
    }

    /// Whether the account may come to hold so many lots more on a side, and how many it could then hold there. `position`
    /// may be [`NIL`].
    #[inline]
    pub(crate) fn check_position(
        &self,
        account: &AccountState,
        position: u32,
        side: Side,
        more: u64,
    ) -> Result<u64, Reason> {
        let limits = &account.limits;
        let (of_side, reason) = match side {
            Side::Buy => (limits.max_long, Reason::LongLimit),
            Side::Sell => (limits.max_short, Reason::ShortLimit),
        };
        let worst = self.positions.entry_or_nothing(position).worst(side, more);
        if of_side.is_some_and(|limit| worst > limit.0) {
            return Err(reason);
        }
        if limits.max_position.is_some_and(|limit| worst > limit.0) {
            return Err(Reason::PositionLimit);
        }
        Ok(worst)
    }

    /// First stage: whether the order could trade with open ones of its owner, and what its session wants then.
    ///
    /// # Errors
    /// [`Reason::SelfMatch`]; [`Reason::TooManyWaiting`] when it would have to wait until they are cancelled;
    /// [`Reason::OrderTableFull`] when there is no room to remember one more owner's orders.
    #[inline(always)]
    pub fn screen<'a>(&self, order: RiskChecked<'a>) -> Result<Screened<'a>, Reason> {
        let mut candidate = order.0;
        let order = candidate.order;
        let reach = self
            .own
            .reach(candidate.book, order.side, order.order_type, order.price);
        if self.own.would_trade(reach) {
            self.screen_own(&mut candidate, reach)?;
        }
        if candidate.book == NIL && rests(candidate.order) && !self.own.has_room() {
            return Err(Reason::OrderTableFull);
        }
        Ok(Screened(candidate))
    }

    #[cold]
    fn screen_own(&self, candidate: &mut Candidate<'_>, reach: Reach) -> Result<(), Reason> {
        match self.sessions[candidate.session as usize].self_match {
            SelfMatch::CancelNewest | SelfMatch::CancelBoth => Err(Reason::SelfMatch),
            SelfMatch::CancelOldest if self.waiting.length() >= self.most_waiting => Err(Reason::TooManyWaiting),
            SelfMatch::CancelOldest => {
                candidate.detour.add(Detour::WAIT);
                Ok(())
            }
            SelfMatch::Decrement if self.is_decremented(reach, candidate.account, self.venue_of(candidate)) => Ok(()),
            SelfMatch::Decrement => Err(Reason::SelfMatch),
        }
    }

    /// The venue for an order: its session's route, else its account's, else its instrument's.
    ///
    /// # Errors
    /// [`Reason::VenueDown`]; [`Reason::NoVenueSlot`]; [`Reason::VenueLacksType`], [`Reason::TooManyHeld`]. No other venue is
    /// taken in its place.
    #[inline(always)]
    pub fn route<'a>(&self, order: Screened<'a>) -> Result<Routed<'a>, Reason> {
        let mut candidate = order.0;
        let venue = self.venue_of(&candidate);
        let state = &self.venues[usize::from(venue.0)];
        if !state.is_up {
            return Err(Reason::VenueDown);
        }
        if state.slots.is_some_and(|slots| state.open_orders >= slots) {
            return Err(Reason::NoVenueSlot);
        }
        let mut parts = state
            .types
            .parts(candidate.order.order_type, candidate.order.terms.display)?;
        if parts.any() || candidate.detour.any() {
            (candidate.detour, parts) = self.check_detour(candidate.detour, parts)?;
        }
        Ok(Routed {
            candidate,
            venue,
            parts,
        })
    }

    /// Where an order goes: by its session's route, else by its account's, else by its instrument's.
    #[inline(always)]
    fn venue_of(&self, candidate: &Candidate<'_>) -> VenueId {
        self.sessions[candidate.session as usize]
            .route
            .or(self.accounts[candidate.account as usize].route)
            .unwrap_or(self.instruments[candidate.instrument as usize].venue)
    }

    /// Takes the order in: from here on it is open until a report ends it. Gives the request for its venue.
    ///
    /// # Panics
    /// When anything changed since [`check_risk`](Self::check_risk), what was checked then might not hold now; when the order
    /// does not [go at once](Routed::goes_at_once).
    #[inline]
    pub fn accept(&mut self, now: Timestamp, order: Routed<'_>) -> ForVenue<NewOrder> {
        assert!(order.goes_at_once(), "others wait, are queued or held");
        let (slot, request) = self.enter(now, &order);
        let order_id = OrderId(self.table.order(slot).number);
        ForVenue {
            venue: order.venue,
            order_id,
            request: NewOrder {
                client_order_id: ClientOrderId(order_id.0),
                session: self.venues[usize::from(order.venue.0)].session,
                ..*request
            },
        }
    }

    /// Takes in an order that must wait, and cancels the own orders that it would trade with. From here on it is open until a
    /// report ends it; [`first_waiting`](Self::first_waiting) leads to what becomes of it. Gives the gateway's number of it.
    ///
    /// # Panics
    /// When anything changed since [`check_risk`](Self::check_risk).
    pub fn hold(&mut self, now: Timestamp, order: Routed<'_>) -> OrderId {
        let (slot, request) = self.enter(now, &order);
        self.wait_for_own(now, slot, request);
        OrderId(self.table.order(slot).number)
    }

    /// Makes the order an open one. Gives its slot, and the order as the client wrote it.
    #[inline]
    pub(crate) fn enter<'a>(&mut self, now: Timestamp, order: &Routed<'a>) -> (u32, &'a NewOrder) {
        let &Routed {
            ref candidate, venue, ..
        } = order;
        assert!(
            candidate.version == self.version,
            "an order is accepted before anything else changes"
        );
        self.version += 1;
        let order = candidate.order;
        let slot = self.table.take();
        let number = self.numbers.next(slot);
        let claim = Claim {
            quantity: order.quantity.0,
            notional: candidate.weight.notional.0,
        };
        let position = self.enter_exposure(candidate, claim);
        let book = if rests(order) { self.open_book(candidate) } else { NIL };
        let in_book = book != NIL && !order.order_type.is_stop();
        if in_book {
            self.own
                .insert(book, order.side, own_price(order.side, order.price), slot);
        }
        let lot_size = self.instruments[candidate.instrument as usize].lot_size;
        *self.table.order_mut(slot) = Order {
            number,
            last_number: number,
            venue_number: number,
            client_order_id: order.client_order_id,
            price: order.price,
            weight_price: candidate.weight.price,
            quantity: order.quantity,
            terms: order.terms,
            claim,
            held: candidate.need.stake.notional,
            accepted: now,
            updated: now,
            trigger: order.trigger,
            instrument: candidate.instrument,
            account: candidate.account,
            session: candidate.session,
            position,
            book,
            in_book,
            lot_size,
            instrument_id: order.instrument,
            account_id: order.account,
            session_id: order.session,
            venue,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            ..Order::VACANT
        };
        self.by_client_id
            .insert(order.client_order_id.0, candidate.session, slot);
        let instrument = &mut self.instruments[candidate.instrument as usize];
        instrument.together.open_orders += 1;
        instrument.together.held += i128::from(candidate.need.stake.notional);
        instrument.together.change(order.side, Claim::default(), claim);
        if !candidate.detour.has(Detour::QUEUE) {
            instrument.rate.take(now);
        }
        let session = &mut self.sessions[candidate.session as usize];
        session.exposure.held += candidate.need.stake.notional;
        if let Some(repeat) = candidate.repeat {
            session.repeats.take(now, repeat);
        }
        session.last_client_order_id = order.client_order_id;
        self.venues[usize::from(venue.0)].open_orders += 1;
        self.session_links.push_back(&mut session.orders, slot);
        self.counters.accepted += 1;
        (slot, order)
    }

    /// Refuses a new order, for a reason that a step gave or that the caller found. Uses up the client's number unless it
    /// was used before, and gives the refusal a number of ours, so that it can be found again everywhere. With
    /// [`SelfMatch::CancelBoth`] the own orders that it would have traded with are cancelled too.
    pub fn refuse(&mut self, order: &NewOrder, reason: Reason) -> Report {
        self.version += 1;
        if reason == Reason::SelfMatch {
            self.cancel_both(order);
        }
        self.use_client_order_id(order.session, order.client_order_id);
        self.counters.count_refusal(reason);
        let order_id = self.numbers.next_refused();
        let exec = ExecReport {
            exec_type: ExecType::Rejected,
            order_id,
            client_order_id: order.client_order_id,
            orig_client_order_id: ClientOrderId(0),
            exec_id: self.next_exec_id(),
            instrument: order.instrument,
            account: order.account,
            session: order.session,
            side: order.side,
            price: order.price,
            quantity: order.quantity,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves: Quantity::ZERO,
            cumulative: Quantity::ZERO,
            reason,
        };
        self.sent(exec, 0, OrderStatus::Rejected)
    }

    fn cancel_both(&mut self, order: &NewOrder) {
        let (Some(session), Some(instrument)) = (self.session(order.session), self.instrument(order.instrument)) else {
            return;
        };
        let session = &self.sessions[session as usize];
        if session.self_match == SelfMatch::CancelBoth {
            let book = self.own.find(session.owner, instrument);
            self.cancel_reach(self.own.reach(book, order.side, order.order_type, order.price));
        }
    }

    /// Remembers the number of a request, accepted or not, so that it is not taken again this day.
    pub(crate) fn use_client_order_id(&mut self, session: SessionId, id: ClientOrderId) {
        if let Some(session) = self.session(session) {
            let last = &mut self.sessions[session as usize].last_client_order_id;
            *last = (*last).max(id);
        }
    }

    /// Enters the order's claim, and gives its entry in the positions.
    #[inline]
    fn enter_exposure(&mut self, candidate: &Candidate<'_>, claim: Claim) -> u32 {
        let side = candidate.order.side;
        let position = match candidate.position {
            NIL => {
                let lot_size = self.instruments[candidate.instrument as usize].lot_size;
                self.positions.open(candidate.account, candidate.instrument, lot_size)
            }
            position => position,
        };
        let account = &mut self.accounts[candidate.account as usize];
        account.exposure.open_orders += 1;
        account.exposure.held += candidate.need.stake.notional;
        account.exposure.change(side, Claim::default(), claim);
        let exposure = self.positions.entry_mut(position);
        exposure.open_orders += 1;
        exposure.change(side, Claim::default(), claim);
        if candidate.mark.0 != 0 {
            exposure.mark = candidate.mark;
        }
        if account.valued {
            account.exposure.stake.add_value(&candidate.need.stake);
            exposure.stake.add_value(&candidate.need.stake);
        }
        position
    }

    /// The book that the order rests in.
    #[inline]
    fn open_book(&mut self, candidate: &Candidate<'_>) -> u32 {
        match candidate.book {
            NIL => {
                let owner = self.sessions[candidate.session as usize].owner;
                self.own.open(owner, candidate.instrument)
            }
            book => book,
        }
    }
}

impl Routed<'_> {
    /// Where the order goes, so that the caller can see that the venue's link has room before it accepts.
    #[must_use]
    pub const fn venue(&self) -> VenueId {
        self.venue
    }

    /// Whether nothing of the following keeps it from its venue.
    #[inline]
    #[must_use]
    pub const fn goes_at_once(&self) -> bool {
        !self.candidate.detour.any()
    }

    /// Whether own orders are to be cancelled before the order may go: it is given to [`Orders::hold`].
    #[must_use]
    pub const fn must_wait(&self) -> bool {
        self.candidate.detour.has(Detour::WAIT)
    }

    /// Whether it is too fast for the rate of its instrument, or behind others of its session that are queued:
    /// [`Orders::pace`] says what becomes of it. When that lets it pass it is given to [`Orders::enqueue`].
    #[must_use]
    pub const fn must_queue(&self) -> bool {
        self.candidate.detour.has(Detour::QUEUE)
    }

    /// Whether the venue lacks its type and the gateway stands in for it, or it may be crossed: it is given to [`Orders::hold_here`], also when it
    /// [must wait](Self::must_wait).
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.candidate.detour.has(Detour::HOLD)
    }

    /// What the order takes of the limits that span shards, its account's, its session's and the firm's, rounded against the
    /// client.
    ///
    /// The caller reserves that much before it accepts the order, and refuses it with the limit's reason when it cannot.
    /// From acceptance on [`Sink::settle`](crate::Sink::settle) tells every change. Notional that traded stays reserved until
    /// the day's roll, so that its limit bounds open and traded notional together.
    #[must_use]
    pub const fn need(&self) -> &Need {
        &self.candidate.need
    }

    /// Whose order it is.
    #[inline]
    #[must_use]
    pub const fn places(&self) -> Places {
        Places {
            account: AccountPlace(self.candidate.account),
            session: SessionPlace(self.candidate.session),
        }
    }
}

impl Terms {
    pub(crate) const fn of(order: &NewOrder) -> Self {
        Self {
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            price: order.price,
            quantity: order.quantity,
            extra: order.terms,
        }
    }
}

/// Whether the order can rest in the venue's book, now or later.
const fn rests(order: &NewOrder) -> bool {
    !matches!(order.order_type, OrderType::Market | OrderType::Stop) && !order.time_in_force.is_immediate()
}
