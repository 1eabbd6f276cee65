//! One shard: the way of an order, from a client's message to the venue and from the venue's report to the client.
//!
//! A shard decides, and does nothing else. It is a function of its inputs: each comes with its time, is in the journal
//! before it is handled, and whatever the shard needs to know of the world it asks through [`Effects`], whose answers are
//! in the journal too. So the same inputs give the same outputs, byte for byte: that is how a restart finds its state
//! again, and how a journal is checked.

mod held;
mod operator;
mod waiting;

use crate::config::Config;
use crate::control::{Changes, Given};
use crate::crossing::{self, Content};
use crate::door::Binding;
use crate::effects::{Destination, Effects, Purpose};
use crate::filter::Filter;
use crate::instruments::{self, Instruments};
use crate::limits::MAX_VENUES;
use crate::outside::Outside;
use crate::places::InstrumentPlace;
use crate::session::{self, Incoming, Sessions};
use latency::Tap;
use net::SetupError;
use orders::{
    AccountPlace, Mark, Orders, Reference, ReplaceScreened, Report, Routed, SessionPlace, SessionStake, Sink, Stake,
};
use proto::native::{self, InstrumentDefinition};
use std::collections::VecDeque;
use types::{
    Bbo, CancelOrder, ExecType, InstrumentId, MassCancel, MassStatusRequest, NewOrder, OrderId, OrderStatusRequest,
    Reason, ReplaceOrder, Request, SequenceNumber, SessionId, ShardId, Timestamp, TradingDay, VenueId,
};

/// The state of one shard.
pub struct Shard {
    id: ShardId,
    filter: Filter,
    orders: Orders,
    sessions: Sessions,
    instruments: Instruments,
    /// What other shards are still to be told, in order. Each lost session is in it at most once a shard, and mass cancels
    /// are refused when it is full, so it never grows.
    notices: VecDeque<(ShardId, Content)>,
    /// Venues of the config.
    venues: u8,
    /// Shards of the config.
    shards: u8,
    /// Venues whose link had no room for an order that waited or was held, one bit each: it goes once there is some.
    stalled: u16,
    /// The day that its journal began with; 0 before that.
    first_day: TradingDay,
    /// What operators ordered last.
    given: Given,
    /// Limits that are not the config's.
    changes: Changes,
    counters: Counters,
}

/// Counts of what the order logic does not count itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Messages of clients that could not be decoded.
    pub malformed_requests: u64,
    /// Messages of venues that could not be decoded.
    pub malformed_reports: u64,
    /// Messages of other shards that could not be decoded.
    pub malformed_crossings: u64,
    /// Requests that went to the shard of their instrument.
    pub crossed: u64,
}

impl Shard {
    /// The shard `id` of a config, with nothing open. Its limits are told it by [`on_config_limits`](Self::on_config_limits).
    ///
    /// # Errors
    /// What the order logic finds wrong in its part of the config.
    pub fn new(config: &Config, id: ShardId) -> Result<Self, orders::ConfigError> {
        let orders = Orders::new(&config.orders[usize::from(id.0)].clone().without_limits())?;
        let instruments = Instruments::new(&config.instruments);
        Ok(Self {
            id,
            filter: Filter::new(config, &instruments, &orders),
            orders,
            sessions: Sessions::new(config, id),
            instruments,
            notices: VecDeque::with_capacity(NOTICES_A_SESSION * config.sessions.len() * config.shards.len()),
            venues: u8::try_from(config.venues.len()).expect("venues are bounded by MAX_VENUES"),
            shards: u8::try_from(config.shards.len()).expect("shards are bounded by MAX_SHARDS"),
            stalled: 0,
            first_day: TradingDay(0),
            given: Given::new(),
            changes: Changes::new(),
            counters: Counters::default(),
        })
    }

    /// A message of a client, out of its frame.
    pub fn on_client_message<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        message: &[u8],
        effects: &mut E,
    ) {
        let incoming = self.sessions.decode(now, session, message, &self.instruments, effects);
        self.on_incoming(now, session, incoming, effects);
        self.take_early(now, session, effects);
        self.send_waiting(now, effects);
    }

    /// A FIX message of a client passed that is longer than any that is read; `head` has its first fields.
    pub fn on_client_too_long<E: Effects>(&mut self, now: Timestamp, session: SessionId, head: &[u8], effects: &mut E) {
        self.sessions.too_long(now, session, head, effects);
        self.take_early(now, session, effects);
        self.send_waiting(now, effects);
    }

    /// Messages that a session has put off and that have their turn now.
    fn take_early<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        while self.sessions.has_early(session) {
            let incoming = self.sessions.decode_early(now, session, &self.instruments, effects);
            self.on_incoming(now, session, incoming, effects);
        }
    }

    /// What a client's message turned out to be.
    fn on_incoming<E: Effects>(&mut self, now: Timestamp, session: SessionId, incoming: Incoming, effects: &mut E) {
        match incoming {
            Incoming::Nothing => {}
            Incoming::Malformed => self.counters.malformed_requests += 1,
            Incoming::InstrumentMap(wanted) => self.send_instruments(session, wanted, effects),
            Incoming::Request(request) => {
                effects.stamp(Tap::Decoded);
                if self.sessions.is_repeat(&request) {
                    self.refuse(now, &request, Reason::DuplicateClientOrderId, effects);
                } else if self.sessions.is_disabled(session) && matches!(request, Request::New(_) | Request::Replace(_))
                {
                    self.refuse(now, &request, Reason::SessionDisabled, effects);
                } else {
                    self.on_request(now, &request, effects);
                }
            }
            Incoming::Refused(request, reason) => self.refuse(now, &request, reason, effects),
        }
    }

    /// A request, wherever it came in: each gets exactly one first answer.
    fn on_request<E: Effects>(&mut self, now: Timestamp, request: &Request, effects: &mut E) {
        match request {
            Request::New(order) => self.on_new_order(now, order, effects),
            Request::Cancel(cancel) => self.on_cancel(now, cancel, effects),
            Request::Replace(replace) => self.on_replace(now, replace, effects),
            Request::MassCancel(mass) => self.on_mass_cancel(now, mass, effects),
            Request::Status(status) => self.on_status(now, status, effects),
            Request::MassStatus(mass) => self.on_mass_status(now, mass, effects),
        }
    }

    /// The way of one order.
    fn on_new_order<E: Effects>(&mut self, now: Timestamp, order: &NewOrder, effects: &mut E) {
        let place = self.instruments.place(order.instrument);
        if let Some(shard) = self.elsewhere(place) {
            return self.cross(now, shard, &Request::New(*order), effects);
        }
        match self.take(now, place, order, effects) {
            Ok(order_id) => self.record(order, order_id, Reason::None, effects),
            Err(reason) => self.refuse(now, &Request::New(*order), reason, effects),
        }
    }

    /// Tells a recording what became of an order, by the number that its client knows it by.
    fn record<E: Effects>(&self, order: &NewOrder, order_id: OrderId, verdict: Reason, effects: &mut E) {
        if effects.is_recording() {
            let number = self.sessions.client_number(order.session, order.client_order_id);
            effects.order_taken(order, number, order_id, verdict);
        }
    }

    /// Every step of a new order that is this shard's. The checks change nothing; room and shared limits are reserved
    /// when they all have passed and before the first change; after that nothing can fail.
    fn take<E: Effects>(
        &mut self,
        now: Timestamp,
        place: InstrumentPlace,
        order: &NewOrder,
        effects: &mut E,
    ) -> Result<OrderId, Reason> {
        effects.prefilter(now, place, order)?;
        self.filter.judge(now, place, order)?;
        let reference = self.instruments.reference(place, effects);
        let checked = self.orders.check_risk(now, order, reference)?;
        effects.stamp(Tap::RiskChecked);

        let screened = self.orders.screen(checked)?;
        effects.stamp(Tap::Matched);

        let routed = self.orders.route(screened)?;
        let venue = routed.venue();
        effects.reserve_room(order.session, Destination::Venue(venue), Purpose::Order)?;
        let routed = self.reserve(now, routed, effects)?;
        if !routed.goes_at_once() {
            return Ok(self.keep(now, routed, effects));
        }
        let out = self.orders.accept(now, routed);
        effects.stamp(Tap::Routed);

        send_to_venue(venue, &Request::New(out.request), effects);
        effects.stamp(Tap::VenueSent);
        Ok(out.order_id)
    }

    /// Takes what an order needs of rates and limits that span shards, or nothing.
    fn reserve<'a, E: Effects>(
        &self,
        now: Timestamp,
        routed: Routed<'a>,
        effects: &mut E,
    ) -> Result<Routed<'a>, Reason> {
        let places = routed.places();
        let rates = effects.take_rates(now, places);
        if rates.is_ok() && !routed.must_queue() {
            let reserved = effects.reserve_shared(places, routed.need());
            return match reserved {
                Ok(()) => Ok(routed),
                Err(reason) => {
                    effects.give_back_rates(places);
                    Err(reason)
                }
            };
        }
        if rates.is_ok() {
            effects.give_back_rates(places);
        }
        let queued = self.orders.pace(now, routed, &rates.err().unwrap_or_default())?;
        effects.reserve_shared(places, queued.need())?;
        Ok(queued)
    }

    /// Takes in an order that does not go at once. What becomes of it follows, see `send_waiting`.
    #[cold]
    fn keep<E: Effects>(&mut self, now: Timestamp, routed: Routed<'_>, effects: &mut E) -> OrderId {
        if routed.must_queue() {
            return self.orders.enqueue(now, routed);
        }
        if routed.is_held() {
            let (orders, mut reports) = self.reports(now, effects);
            return orders.hold_here(now, routed, &mut reports);
        }
        self.orders.hold(now, routed)
    }

    fn on_cancel<E: Effects>(&mut self, now: Timestamp, cancel: &CancelOrder, effects: &mut E) {
        if let Some(shard) = self.shard_elsewhere(cancel.instrument) {
            return self.cross(now, shard, &Request::Cancel(*cancel), effects);
        }
        if let Err(reason) = self.take_cancel(now, cancel, effects) {
            self.refuse(now, &Request::Cancel(*cancel), reason, effects);
        }
    }

    fn take_cancel<E: Effects>(&mut self, now: Timestamp, cancel: &CancelOrder, effects: &mut E) -> Result<(), Reason> {
        let checked = self.orders.check_cancel(cancel)?;
        if checked.is_here() {
            effects.reserve_reports(cancel.session, self.sessions.shard_elsewhere(cancel.session), 1)?;
            self.orders.hold_cancel(checked);
            return Ok(());
        }
        match effects.reserve_room(cancel.session, Destination::Venue(checked.venue()), Purpose::Cancel) {
            Ok(()) => {}
            Err(Reason::VenueFull) => {
                // Even what is set aside for cancels is used up: it goes as soon as there is room.
                self.orders.hold_cancel(checked);
                return Ok(());
            }
            Err(reason) => return Err(reason),
        }
        let out = self.orders.accept_cancel(now, checked);
        send_to_venue(out.venue, &Request::Cancel(out.request), effects);
        Ok(())
    }

    fn on_replace<E: Effects>(&mut self, now: Timestamp, replace: &ReplaceOrder, effects: &mut E) {
        let place = self.instruments.place(replace.instrument);
        if let Some(shard) = self.elsewhere(place) {
            return self.cross(now, shard, &Request::Replace(*replace), effects);
        }
        if let Err(reason) = self.take_replace(now, place, replace, effects) {
            self.refuse(now, &Request::Replace(*replace), reason, effects);
        }
    }

    fn take_replace<E: Effects>(
        &mut self,
        now: Timestamp,
        place: InstrumentPlace,
        replace: &ReplaceOrder,
        effects: &mut E,
    ) -> Result<(), Reason> {
        let reference = self.instruments.reference(place, effects);
        let checked = self.orders.check_replace(now, replace, reference)?;
        let screened = self.orders.screen_replace(checked)?;
        effects.reserve_room(replace.session, Destination::Venue(screened.venue()), Purpose::Order)?;
        self.reserve_replace(now, &screened, effects)?;
        if screened.is_queued() {
            let (orders, mut reports) = self.reports(now, effects);
            orders.amend_queued(now, screened, &mut reports);
            return Ok(());
        }
        if screened.is_held() {
            let (orders, mut reports) = self.reports(now, effects);
            orders.replace_held(now, screened, &mut reports);
            return Ok(());
        }
        let out = self.orders.accept_replace(now, screened);
        send_to_venue(out.venue, &Request::Replace(out.request), effects);
        Ok(())
    }

    /// As `reserve`, for a replace; it is never queued.
    fn reserve_replace<E: Effects>(
        &self,
        now: Timestamp,
        replace: &ReplaceScreened,
        effects: &mut E,
    ) -> Result<(), Reason> {
        let places = replace.places();
        if !replace.is_limited() {
            return effects.reserve_shared(places, replace.need());
        }
        let rates = effects.take_rates(now, places);
        let verdict = if rates.is_err() || self.orders.is_fast_replace(now, replace) {
            let too_fast = rates.err().unwrap_or_default();
            Err(self.orders.refuse_fast_replace(now, replace, &too_fast))
        } else {
            effects.reserve_shared(places, replace.need())
        };
        if verdict.is_err() && rates.is_ok() {
            effects.give_back_rates(places);
        }
        verdict
    }

    /// All orders of a session, or those of one instrument. All of a session may be on every shard; the session's own
    /// shard tells the others, and it alone answers.
    fn on_mass_cancel<E: Effects>(&mut self, now: Timestamp, mass: &MassCancel, effects: &mut E) {
        if let Some(shard) = mass.instrument.and_then(|instrument| self.shard_elsewhere(instrument)) {
            return self.cross(now, shard, &Request::MassCancel(*mass), effects);
        }
        let is_ours = self.sessions.shard_elsewhere(mass.session).is_none();
        let is_for_all = is_ours && mass.instrument.is_none();
        if is_for_all && self.notices.len() + usize::from(self.shards) > self.notices.capacity() / 2 {
            return self.refuse(now, &Request::MassCancel(*mass), Reason::ShardRingFull, effects);
        }
        let report = self.orders.mass_cancel(mass);
        if is_for_all && report.exec.exec_type == ExecType::MassCancelAccepted {
            self.tell_other_shards(Content::Request(Request::MassCancel(*mass)));
        }
        if is_ours || mass.instrument.is_some() {
            self.report(now, &report, effects);
        }
    }

    fn on_status<E: Effects>(&mut self, now: Timestamp, status: &OrderStatusRequest, effects: &mut E) {
        if let Some(shard) = self.shard_elsewhere(status.instrument) {
            return self.cross(now, shard, &Request::Status(*status), effects);
        }
        let report = self.orders.status(status);
        self.report(now, &report, effects);
    }

    /// How the orders of a session stand. Those of other shards come from there, each shard's with an end of its own; the
    /// session's shard tells the client of the last end alone.
    fn on_mass_status<E: Effects>(&mut self, now: Timestamp, mass: &MassStatusRequest, effects: &mut E) {
        let home = self.sessions.shard_elsewhere(mass.session);
        let spans = home.is_none() && mass.instrument.is_none() && self.shards > 1;
        let of_other = mass.instrument.and_then(|instrument| self.shard_elsewhere(instrument));
        let count = self.orders.count_open(mass);
        if spans && self.notices.len() + usize::from(self.shards) > self.notices.capacity() / 2 {
            return self.refuse(now, &Request::MassStatus(*mass), Reason::ShardRingFull, effects);
        }
        if home.is_none() {
            let total = (!spans && of_other.is_none()).then_some(count);
            let shards = if spans { self.shards } else { 1 };
            if !self.sessions.begin_mass_status(mass, shards, total) {
                return self.refuse(now, &Request::MassStatus(*mass), Reason::RequestPending, effects);
            }
        }
        if let Some(shard) = of_other {
            return self.cross(now, shard, &Request::MassStatus(*mass), effects);
        }
        if spans {
            self.tell_other_shards(Content::Request(Request::MassStatus(*mass)));
        }
        if let Err(reason) = effects.reserve_reports(mass.session, home, count as usize + 1) {
            return self.refuse(now, &Request::MassStatus(*mass), reason, effects);
        }
        let (orders, mut reports) = self.reports(now, effects);
        orders.mass_status(mass, &mut reports);
        let end = self.orders.end_mass_status(mass, count, Reason::None);
        self.report(now, &end, effects);
    }

    /// Tells every other shard what concerns all of them, as soon as there is room.
    fn tell_other_shards(&mut self, content: Content) {
        for shard in (0..self.shards).map(ShardId).filter(|&shard| shard != self.id) {
            if !self.notices.contains(&(shard, content)) {
                self.notices.push_back((shard, content));
            }
        }
    }

    /// A numbered message of a venue.
    pub fn on_venue_message<E: Effects>(&mut self, now: Timestamp, venue: VenueId, message: &[u8], effects: &mut E) {
        effects.stamp(Tap::VenueReceived);
        match native::decode_report(message) {
            Ok(report) => {
                let (orders, mut reports) = self.reports(now, effects);
                // What is wrong with it is counted there, and nothing of it reaches a client.
                let _: Result<_, _> = orders.on_venue_report(now, venue, &report, &mut reports);
            }
            Err(_) => self.counters.malformed_reports += 1,
        }
        self.send_waiting(now, effects);
    }

    /// The link to a venue came up.
    pub fn on_venue_up<E: Effects>(&mut self, now: Timestamp, venue: VenueId, effects: &mut E) {
        self.orders.on_venue_up(venue);
        self.send_waiting(now, effects);
    }

    /// A venue permits so many open orders from now on.
    pub fn on_venue_slots<E: Effects>(&mut self, now: Timestamp, venue: VenueId, slots: u32, effects: &mut E) {
        self.orders.on_venue_slots(venue, slots);
        self.send_waiting(now, effects);
    }

    /// The link to a venue went down: new orders are refused, also those that wait to go there; those out there are in doubt
    /// until it is up again.
    pub fn on_venue_down<E: Effects>(&mut self, now: Timestamp, venue: VenueId, effects: &mut E) {
        self.orders.on_venue_down(venue);
        self.send_waiting(now, effects);
    }

    /// An instance of a template is this client's for the day.
    pub fn on_session_bound<E: Effects>(&mut self, binding: &Binding, effects: &mut E) {
        self.sessions.bind(binding, effects);
    }

    /// Whether that is known.
    #[must_use]
    pub fn is_bound(&self, binding: &Binding) -> bool {
        self.sessions.bindings().any(|known| known == *binding)
    }

    /// The clients of templates' instances, of the trading day so far.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = Binding> + '_ {
        self.sessions.bindings()
    }

    /// A session's hours: those of the session day that began then, in which its numbers start at 1; or none.
    pub fn on_session_hours<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        since: Option<Timestamp>,
        effects: &mut E,
    ) {
        self.sessions.hours(now, session, since, effects);
    }

    /// What was told last by [`on_session_hours`](Self::on_session_hours); `None` when nothing was.
    #[must_use]
    pub fn session_hours(&self, session: SessionId) -> Option<Option<Timestamp>> {
        self.sessions.known_hours(session)
    }

    /// A client logged on.
    pub fn on_session_up<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        self.sessions.connected(now, session, effects);
    }

    /// A client's connection ended: cancel on disconnect, unless the session has it turned off.
    pub fn on_session_down<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        self.sessions.disconnected(now, session, effects);
        self.orders.on_session_lost(session);
        self.tell_other_shards(Content::SessionLost(session));
        self.send_waiting(now, effects);
    }

    /// A message that a session had sent once and needs again; an empty one could not be found.
    pub fn on_recalled<E: Effects>(
        &mut self,
        now: Timestamp,
        session: SessionId,
        recall: u64,
        sequence: SequenceNumber,
        message: &[u8],
        effects: &mut E,
    ) {
        self.sessions.recalled(now, session, recall, sequence, message, effects);
    }

    /// A session's timer is due.
    pub fn on_session_timer<E: Effects>(&mut self, now: Timestamp, session: SessionId, effects: &mut E) {
        self.sessions.timer(now, session, effects);
    }

    /// There is room again for what waits for it.
    pub fn on_room<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        self.send_waiting(now, effects);
    }

    /// When the next session timer is due, and whose it is.
    #[must_use]
    pub fn next_timer(&self) -> Option<(Timestamp, SessionId)> {
        self.sessions.next_timer()
    }

    /// A numbered message of another shard: a request for one of our instruments, or a report for one of our clients.
    pub fn on_shard_message<E: Effects>(&mut self, now: Timestamp, message: &[u8], effects: &mut E) {
        match Content::decode(message) {
            Some(Content::Request(request)) => self.on_request(now, &request, effects),
            Some(Content::SessionLost(session)) => self.orders.on_session_lost(session),
            Some(Content::Report(report)) => {
                self.report(now, &report, effects);
                if report.exec.reason == Reason::RateLogout {
                    self.log_out(now, report.exec.session, Reason::RateLogout, effects);
                }
            }
            None => self.counters.malformed_crossings += 1,
        }
        self.send_waiting(now, effects);
    }

    /// The mark that the position in a place should have by now, when it has another; see [`Orders::mark_due`]. `book` has the
    /// newest book of an instrument.
    pub(crate) fn mark_due(
        &self,
        now: Timestamp,
        place: u32,
        book: impl FnOnce(InstrumentPlace) -> Option<Bbo>,
    ) -> Option<Mark> {
        self.orders.mark_due(now, place, |instrument| {
            book(self.instruments.place(instrument)).map_or(Reference::NONE, |bbo| instruments::reference(&bbo))
        })
    }

    /// A position is valued at another price.
    pub fn on_mark<E: Effects>(&mut self, now: Timestamp, mark: &Mark, effects: &mut E) {
        let (orders, mut reports) = self.reports(now, effects);
        orders.mark(mark, &mut reports);
    }

    /// A new trading day: day orders end, numbers and daily limits start anew.
    pub fn on_day_roll<E: Effects>(&mut self, now: Timestamp, day: TradingDay, effects: &mut E) {
        let (orders, mut reports) = self.reports(now, effects);
        orders.on_day_roll(now, day, &mut reports);
        self.sessions.new_day();
        if self.first_day == TradingDay(0) {
            self.first_day = day;
        }
    }

    /// The day that its journal began with: from there on the numbers of native clients' messages go on.
    pub(crate) const fn first_day(&self) -> TradingDay {
        self.first_day
    }

    /// The order logic, to look at.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The shard's own pre-filter.
    pub(crate) const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Builds the backend of the pre-filter that the config chose, with the limits in force.
    ///
    /// # Errors
    /// It cannot be had, or does not do as it is told.
    pub(crate) fn open_outside(&self, config: &Config) -> Result<Outside, SetupError> {
        Outside::open(config, &self.instruments, &self.orders)
    }

    /// What the pre-filter has counted.
    #[must_use]
    pub const fn filter_counters(&self) -> &prefilter::Counters {
        self.filter.counters()
    }

    /// Counts since start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Shard {
    /// The other shard that owns an instrument; `None` when it is this one, or nobody's.
    fn elsewhere(&self, place: InstrumentPlace) -> Option<ShardId> {
        let instrument = self.instruments.at(place)?;
        (instrument.shard != self.id).then_some(instrument.shard)
    }

    fn shard_elsewhere(&self, instrument: InstrumentId) -> Option<ShardId> {
        self.elsewhere(self.instruments.place(instrument))
    }

    /// A request for an instrument of another shard: that shard alone accepts or refuses it, unless it cannot even be
    /// told. It does not overtake what that shard is still to be told, or an order that came behind a mass cancel would be
    /// cancelled by it; a cancel may.
    fn cross<E: Effects>(&mut self, now: Timestamp, shard: ShardId, request: &Request, effects: &mut E) {
        self.send_notices(effects);
        let purpose = Purpose::of(request);
        let room = if purpose == Purpose::Order && self.notices.iter().any(|&(waiting, _)| waiting == shard) {
            Err(Reason::ShardRingFull)
        } else {
            effects.reserve_room(request.session(), Destination::Shard(shard), purpose)
        };
        match room {
            Ok(()) => {
                self.counters.crossed += 1;
                send_to_shard(shard, &Content::Request(*request), effects);
            }
            Err(reason) => self.refuse(now, request, reason, effects),
        }
    }

    /// Refuses a request: its client hears why.
    fn refuse<E: Effects>(&mut self, now: Timestamp, request: &Request, reason: Reason, effects: &mut E) {
        let report = match request {
            Request::New(order) => {
                let report = self.orders.refuse(order, reason);
                self.record(order, report.exec.order_id, reason, effects);
                report
            }
            Request::Cancel(cancel) => self.orders.refuse_cancel(cancel, reason),
            Request::Replace(replace) => self.orders.refuse_replace(replace, reason),
            Request::MassCancel(mass) => self.orders.refuse_mass_cancel(mass, reason),
            Request::Status(status) => self.orders.refuse_status(status, reason),
            Request::MassStatus(mass) => self.orders.end_mass_status(mass, 0, reason),
        };
        self.report(now, &report, effects);
        if reason == Reason::RateLogout {
            // Where another shard has the session, that one does when it has the report.
            self.log_out(now, request.session(), reason, effects);
        }
    }

    fn report<E: Effects>(&mut self, now: Timestamp, report: &Report, effects: &mut E) {
        Reports {
            now,
            sessions: &mut self.sessions,
            instruments: &self.instruments,
            effects,
        }
        .report(report);
    }

    /// The order logic, and where its reports go.
    fn reports<'a, E: Effects>(&'a mut self, now: Timestamp, effects: &'a mut E) -> (&'a mut Orders, Reports<'a, E>) {
        let Self {
            orders,
            sessions,
            instruments,
            ..
        } = self;
        let reports = Reports {
            now,
            sessions,
            instruments,
            effects,
        };
        (orders, reports)
    }

    /// Tells a native client an instrument, or all.
    fn send_instruments<E: Effects>(&mut self, session: SessionId, wanted: Option<InstrumentId>, effects: &mut E) {
        let is_wanted = |id: InstrumentId| wanted.is_none_or(|wanted| wanted == id);
        let count = self
            .instruments
            .iter()
            .filter(|instrument| is_wanted(instrument.id))
            .count();
        let verdict = if count == 0 {
            Err(Reason::UnknownInstrument)
        } else {
            effects.reserve_reports(session, None, count)
        };
        if let Err(reason) = verdict {
            return session::refuse_instruments(session, wanted, reason, effects);
        }
        let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
        let mut remaining = u32::try_from(count).unwrap_or(u32::MAX);
        for instrument in self.instruments.iter().filter(|instrument| is_wanted(instrument.id)) {
            remaining -= 1;
            let definition = InstrumentDefinition {
                instrument: instrument.id,
                symbol: instrument.symbol,
                tick_size: instrument.tick_size,
                lot_size: instrument.lot_size,
                reference_price: instrument.reference_price,
                remaining,
            };
            let length = native::encode_instrument_definition(&definition, &mut buffer);
            effects.to_client(session, None, &buffer[..length]);
        }
    }
}

/// Where reports of the order logic go: to the client in its protocol, or to the shard that has the client.
struct Reports<'a, E> {
    now: Timestamp,
    sessions: &'a mut Sessions,
    instruments: &'a Instruments,
    effects: &'a mut E,
}

impl<E: Effects> Sink for Reports<'_, E> {
    fn report(&mut self, report: &Report) {
        match self.sessions.shard_elsewhere(report.exec.session) {
            Some(shard) => send_to_shard(shard, &Content::Report(*report), self.effects),
            None => {
                self.sessions.report(self.now, report, self.instruments, self.effects);
                self.effects.reported(&report.exec);
            }
        }
    }

    fn settle(&mut self, account: AccountPlace, change: &Stake) {
        self.effects.settle_shared(account, change);
    }

    fn settle_session(&mut self, session: SessionPlace, change: &SessionStake) {
        self.effects.settle_session(session, change);
    }

    fn count_firm(&mut self, taken: &Stake) {
        self.effects.count_firm(taken);
    }
}

const fn venue_bit(venue: VenueId) -> u16 {
    const { assert!(MAX_VENUES <= 16, "one bit each") };
    1 << venue.0
}

/// Notices that may wait, for each session and shard: its loss, and room for mass cancels.
const NOTICES_A_SESSION: usize = 4;

fn send_to_venue<E: Effects>(venue: VenueId, request: &Request, effects: &mut E) {
    let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
    let length = native::encode_request(request, &mut buffer);
    effects.to_venue(venue, &buffer[..length]);
}

fn send_to_shard<E: Effects>(shard: ShardId, content: &Content, effects: &mut E) {
    let mut buffer = [0; crossing::MAX_LENGTH];
    let length = content.encode(&mut buffer);
    effects.to_shard(shard, content.lane(), &buffer[..length]);
}
