//! FIX sessions: the session core, and between it and the order logic the words of both.

mod copies;
mod reports;
mod requests;

use super::Incoming;
use super::cl_ord_ids::{ClOrdIds, Kind};
use crate::config::{Config, ProtocolConfig, SessionConfig};
use crate::control::Home;
use crate::door::Binding;
use crate::effects::Effects;
use crate::instruments::Instruments;
use crate::limits::EARLY_BYTES_A_SESSION;
pub(crate) use copies::Words;
use orders::SelfMatch;
use proto::fix::{
    self, Application, Body, BusinessRejectReason, CloseReason, CompId, NewOrderSingle, OrderCancelReplaceRequest,
    OrderCancelRequest, OrderMassCancelRequest, OrderMassStatusRequest, OrderStatusRequest, Output, Recall,
    ResetOnLogon, Role, Scratch, Session, Version, Violation, msg_type, tag,
};
use reports::MassAnswer;
use types::{AccountId, ClientOrderId, ExecReport, ExecType, SequenceNumber, SessionId, Timestamp};

/// What a shard keeps for one FIX session.
#[derive(Debug)]
pub(super) struct FixSession {
    id: SessionId,
    session: Session,
    cl_ord_ids: ClOrdIds,
    /// Whose it is for the trading day, of a template's instance.
    binding: Option<Binding>,
    /// Whose it was before, when it is nobody's.
    last_binding: Option<Binding>,
    /// What was told last of its hours; `None` when it has no schedule.
    hours: Option<Option<Timestamp>>,
    /// When the last session day began.
    day: Timestamp,
    /// The account of orders without one: the session's, when it has only one.
    account: AccountId,
    /// The only self-match prevention that an order may ask for.
    self_match: SelfMatch,
    at_hand: AtHand,
    /// Resets of the numbers so far, as far as the world has been told.
    resets: u64,
    /// Session days that the session has begun, as far as the ClOrdIDs know.
    days: u64,
    requests: RequestIds,
    mass_answer: Option<MassAnswer>,
}

/// The request that is being handled, in its own words: a refusal repeats them even where the gateway has none.
#[derive(Debug)]
struct AtHand {
    number: ClientOrderId,
    kind: Kind,
    /// Side (54), or MassCancelRequestType (530), as it came.
    side: u8,
    cl_ord_id: Text,
    orig_cl_ord_id: Text,
    symbol: Text,
    /// OrdType (40) and TimeInForce (59) of an order, as they came; else 0.
    codes: [u8; 2],
    /// Text (58) of its refusal, where the reason's own says too little; else empty.
    why: &'static [u8],
}

/// A short text.
#[derive(Clone, Copy, Debug)]
struct Text {
    length: usize,
    bytes: [u8; fix::MAX_VALUE_LENGTH],
}

/// Ids of the last status requests (790, 584): their answers may come from another shard, and say them again.
#[derive(Debug)]
struct RequestIds {
    texts: [Text; REQUEST_IDS],
    /// Given to the last.
    last: u64,
}

/// Status requests that may be on their way at a time; the answer to an older one leaves its id out.
const REQUEST_IDS: usize = 16;

/// CompID of the client of a template's instance that nobody has taken yet.
pub(super) const NOBODY: &str = "*";

/// Bytes of message bodies that are kept for each message that may be asked for again.
const STORED_BYTES_A_MESSAGE: usize = 256;

impl FixSession {
    /// A session that was never connected.
    ///
    /// # Panics
    /// When the config was not checked.
    pub(super) fn new(config: &Config, session: &SessionConfig) -> Self {
        let ProtocolConfig::Fix {
            client_comp_id,
            our_comp_id,
            versions,
            reset_on_logon,
            next_expected,
            resend_chunk,
            cl_ord_ids,
            ..
        } = &session.protocol
        else {
            panic!("session {} is no FIX session", session.id)
        };
        let comp_id = |text: &str| CompId::new(text.as_bytes()).expect("CompIDs were checked with the config");
        let client = comp_id(client_comp_id.as_deref().unwrap_or(NOBODY));
        let mut settings = fix::SessionConfig::new(Role::Acceptor, comp_id(our_comp_id), client);
        settings.versions.clone_from(versions);
        settings.dictionaries = config.dictionaries.clone();
        settings.next_expected = *next_expected;
        settings.resend_chunk = *resend_chunk;
        if *reset_on_logon {
            settings.reset_on_logon = ResetOnLogon::Always;
        }
        settings.store_messages = session.resend_messages;
        settings.store_bytes = store_bytes(session);
        settings.early_bytes = EARLY_BYTES_A_SESSION;
        Self {
            id: session.id,
            session: Session::new(settings),
            cl_ord_ids: ClOrdIds::new(*cl_ord_ids),
            binding: None,
            last_binding: None,
            hours: None,
            day: Timestamp::NONE,
            account: config.only_account(session.id).unwrap_or_default(),
            self_match: config.self_match(session.id),
            at_hand: AtHand::NOTHING,
            resets: 0,
            days: 0,
            requests: RequestIds::new(),
            mass_answer: None,
        }
    }

    /// Bytes that a session takes; 0 when it is none of FIX.
    pub(super) fn memory_bytes(session: &SessionConfig) -> usize {
        match &session.protocol {
            ProtocolConfig::Fix { cl_ord_ids, .. } => {
                store_bytes(session) + EARLY_BYTES_A_SESSION + ClOrdIds::memory_bytes(*cl_ord_ids) + size_of::<Self>()
            }
            ProtocolConfig::Native { .. } => 0,
        }
    }

    /// The client is this one from now on, and has sent and received nothing.
    pub(super) fn bind<E: Effects>(&mut self, binding: &Binding, effects: &mut E) {
        if self.last_binding.is_some_and(|last| last != *binding) {
            self.cl_ord_ids.forget_ended();
        }
        self.binding = Some(*binding);
        self.session.bind(binding.comp_id);
        self.tell_resets(effects);
    }

    /// Whose it is, of a template's instance.
    pub(super) const fn binding(&self) -> Option<Binding> {
        self.binding
    }

    /// Its hours are those of the session day that began then, or over. Only a day that is new starts the numbers again:
    /// hours that were interrupted go on.
    pub(super) fn set_hours<E: Effects>(&mut self, now: Timestamp, since: Option<Timestamp>, effects: &mut E) {
        let mut out = Out { id: self.id, effects };
        match since {
            Some(day) if day != self.day => {
                self.day = day;
                self.session.on_new_session_day(now, &mut out);
            }
            Some(_) => {}
            None => self.session.logout(now, b"outside the session's hours", &mut out),
        }
        self.hours = Some(since);
        self.tell_resets(effects);
    }

    /// Whether a trade is of an order that its client may hear of: not of one that the client had who had this instance of a
    /// template the day before.
    pub(super) fn is_of_its_client(&self, exec: &ExecReport) -> bool {
        exec.exec_type != ExecType::Fill || !self.cl_ord_ids.text(exec.client_order_id).is_empty()
    }

    /// What an operator is told of it.
    pub(super) const fn home(&self, home: Home) -> Home {
        Home {
            is_logged_on: self.session.is_logged_on(),
            next_sent: Some(self.session.next_outbound()),
            next_received: Some(self.session.next_inbound()),
            ..home
        }
    }

    /// An operator wants its client to leave, and says why.
    pub(super) fn log_out<E: Effects>(&mut self, now: Timestamp, text: &[u8], effects: &mut E) {
        self.session.logout(now, text, &mut Out { id: self.id, effects });
    }

    /// What was told last of its hours.
    pub(super) const fn hours(&self) -> Option<Option<Timestamp>> {
        self.hours
    }

    pub(super) fn connected<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        self.session.on_connected(now, &mut Out { id: self.id, effects });
    }

    pub(super) fn disconnected<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        self.session.on_disconnected(now);
        self.tell_resets(effects);
    }

    pub(super) fn timer<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        self.session.on_timer(now, &mut Out { id: self.id, effects });
    }

    /// A message that the session has asked for was looked up; an empty one could not be found.
    pub(super) fn recalled<E: Effects>(
        &mut self,
        now: Timestamp,
        recall: u64,
        sequence: SequenceNumber,
        message: &[u8],
        effects: &mut E,
    ) {
        let message = (!message.is_empty()).then_some(message);
        let mut out = Out { id: self.id, effects };
        self.session.on_recalled(now, recall, sequence, message, &mut out);
    }

    /// Tells the world when numbers started at 1 again. With a session day ClOrdIDs may come again, but for those of orders
    /// that live on.
    fn tell_resets<E: Effects>(&mut self, effects: &mut E) {
        let fix::SessionCounters { resets, days, .. } = self.session.counters();
        if resets == self.resets {
            return;
        }
        self.resets = resets;
        if days != self.days {
            self.days = days;
            self.cl_ord_ids.new_day();
        }
        self.cl_ord_ids.renumbered();
        effects.renumbered(self.id);
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.session.poll_timeout()
    }

    /// A new trading day: ClOrdIDs may come again, but for those of orders that live on.
    pub(super) fn new_day(&mut self) {
        // A client that is here stays whose session it is.
        if !self.session.is_connected() && self.binding.is_some() {
            self.last_binding = self.binding.take();
        }
        self.cl_ord_ids.new_trading_day();
    }

    /// Reads a message: what it means for the session happens at once, what it means for orders comes out.
    pub(super) fn decode<E: Effects>(
        &mut self,
        now: Timestamp,
        frame: &[u8],
        scratch: &mut Scratch,
        instruments: &Instruments,
        effects: &mut E,
    ) -> Incoming {
        let mut out = Out { id: self.id, effects };
        let application = self.session.on_frame(now, frame, scratch, &mut out);
        self.tell_resets(effects);
        match application {
            Some(application) => self.request(now, &application, instruments, effects),
            None => Incoming::Nothing,
        }
    }

    /// A message passed that is longer than any that is read.
    #[cold]
    pub(super) fn too_long<E: Effects>(&mut self, now: Timestamp, head: &[u8], scratch: &mut Scratch, effects: &mut E) {
        let mut out = Out { id: self.id, effects };
        self.session.on_too_long(now, head, scratch, &mut out);
        self.tell_resets(effects);
    }

    /// Whether a message that came before ones that were missing has its turn now.
    pub(super) fn has_early(&self) -> bool {
        self.session.has_early()
    }

    /// Reads that message.
    #[cold]
    pub(super) fn decode_early<E: Effects>(
        &mut self,
        now: Timestamp,
        scratch: &mut Scratch,
        instruments: &Instruments,
        effects: &mut E,
    ) -> Incoming {
        let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
        let Some(frame) = self.session.take_early(&mut buffer) else {
            return Incoming::Nothing;
        };
        let mut out = Out { id: self.id, effects };
        match self.session.on_early(now, frame, scratch, &mut out) {
            Some(application) => self.request(now, &application, instruments, effects),
            None => Incoming::Nothing,
        }
    }

    /// What a message means for orders.
    fn request<E: Effects>(
        &mut self,
        now: Timestamp,
        application: &Application<'_>,
        instruments: &Instruments,
        effects: &mut E,
    ) -> Incoming {
        if self.is_seen(application) {
            return Incoming::Nothing;
        }
        let message = &application.message;
        if let Some(tag) = message.too_long() {
            return self.order_with_too_long(tag, message, instruments);
        }
        let decoded = match application.msg_type {
            msg_type::NEW_ORDER_SINGLE => {
                NewOrderSingle::decode(message).map(|order| self.new_order(&order, instruments))
            }
            msg_type::ORDER_CANCEL_REQUEST => {
                OrderCancelRequest::decode(message).map(|cancel| self.cancel(&cancel, instruments))
            }
            msg_type::ORDER_CANCEL_REPLACE_REQUEST => {
                OrderCancelReplaceRequest::decode(message).map(|replace| self.replace(&replace, instruments))
            }
            msg_type::ORDER_STATUS_REQUEST => {
                OrderStatusRequest::decode(message).map(|status| self.status(&status, instruments))
            }
            msg_type::ORDER_MASS_CANCEL_REQUEST if self.has_mass_requests() => {
                OrderMassCancelRequest::decode(message).map(|mass| self.mass_cancel(&mass, instruments))
            }
            msg_type::ORDER_MASS_STATUS_REQUEST if self.has_mass_requests() => {
                OrderMassStatusRequest::decode(message).map(|mass| self.mass_status(&mass, instruments))
            }
            _ => Ok(self.unsupported(now, application, effects)),
        };
        decoded.unwrap_or_else(|violation| self.reject(now, application, violation, effects))
    }

    /// Whether a possible resend (97=Y) is one: its request was handled, and its answer can be asked for. After a reset it
    /// cannot; then the client hears that it was seen.
    fn is_seen(&self, application: &Application<'_>) -> bool {
        application.poss_resend
            && matches!(
                application.msg_type,
                msg_type::NEW_ORDER_SINGLE
                    | msg_type::ORDER_CANCEL_REQUEST
                    | msg_type::ORDER_CANCEL_REPLACE_REQUEST
                    | msg_type::ORDER_MASS_CANCEL_REQUEST
            )
            && self.cl_ord_ids.is_answered(application.message.get(tag::CL_ORD_ID))
    }

    /// Whether the version has requests for many orders: since 4.3.
    const fn has_mass_requests(&self) -> bool {
        !matches!(self.session.version(), Version::Fix40 | Version::Fix41 | Version::Fix42)
    }

    /// A message of a type that an order gateway does not take.
    fn unsupported<E: Effects>(&mut self, now: Timestamp, message: &Application<'_>, effects: &mut E) -> Incoming {
        if message.is_reject() {
            return Incoming::Nothing;
        }
        let reason = BusinessRejectReason::UnsupportedMessageType;
        let mut out = Out { id: self.id, effects };
        self.session.reject_business(now, message, reason, b"", &mut out);
        Incoming::Malformed
    }

    /// A message that breaks a rule of form.
    fn reject<E: Effects>(
        &mut self,
        now: Timestamp,
        message: &Application<'_>,
        violation: Violation,
        effects: &mut E,
    ) -> Incoming {
        let mut out = Out { id: self.id, effects };
        self.session
            .reject(now, message.sequence, &message.message, violation, &mut out);
        Incoming::Malformed
    }

    /// The ClOrdID of a number, when it is a number itself; else 0.
    pub(super) fn client_number(&self, number: ClientOrderId) -> ClientOrderId {
        ClientOrderId(fix::parse_u64(self.cl_ord_ids.text(number)).unwrap_or_default())
    }

    fn send<E: Effects>(&mut self, now: Timestamp, body: &impl Body, effects: &mut E) {
        self.session.send(now, body, &mut Out { id: self.id, effects });
    }
}

fn store_bytes(session: &SessionConfig) -> usize {
    (session.resend_messages * STORED_BYTES_A_MESSAGE).max(fix::MAX_MESSAGE_LENGTH)
}

impl AtHand {
    const NOTHING: Self = Self {
        number: ClientOrderId(0),
        kind: Kind::Order,
        side: b'1',
        cl_ord_id: Text::EMPTY,
        orig_cl_ord_id: Text::EMPTY,
        symbol: Text::EMPTY,
        codes: [0; 2],
        why: b"",
    };

    /// The request that is now at hand, with its ClOrdID, OrigClOrdID and symbol.
    fn set(&mut self, number: ClientOrderId, kind: Kind, side: u8, texts: [&[u8]; 3]) {
        (self.number, self.kind, self.side) = (number, kind, side);
        (self.codes, self.why) = ([0; 2], b"");
        let places = [&mut self.cl_ord_id, &mut self.orig_cl_ord_id, &mut self.symbol];
        for (place, text) in places.into_iter().zip(texts) {
            place.set(text);
        }
    }
}

impl RequestIds {
    const fn new() -> Self {
        Self {
            texts: [Text::EMPTY; REQUEST_IDS],
            last: 0,
        }
    }

    /// Keeps an id and gives it a number.
    fn keep(&mut self, text: &[u8]) -> u64 {
        self.last += 1;
        self.texts[Self::place(self.last)].set(text);
        self.last
    }

    /// The id of a number; empty when later ones have taken its place.
    fn text(&self, number: u64) -> Text {
        if number == 0 || number > self.last || self.last - number >= REQUEST_IDS as u64 {
            return Text::EMPTY;
        }
        self.texts[Self::place(number)]
    }

    #[allow(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
    const fn place(number: u64) -> usize {
        (number % REQUEST_IDS as u64) as usize
    }
}

impl Text {
    const EMPTY: Self = Self {
        length: 0,
        bytes: [0; fix::MAX_VALUE_LENGTH],
    };

    fn of(text: &[u8]) -> Self {
        let mut of = Self::EMPTY;
        of.set(text);
        of
    }

    /// Becomes this text, cut to what a value may have. What was behind it stays: nobody reads it.
    fn set(&mut self, text: &[u8]) {
        self.length = text.len().min(fix::MAX_VALUE_LENGTH);
        self.bytes[..self.length].copy_from_slice(&text[..self.length]);
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Where a session's messages go.
struct Out<'a, E> {
    id: SessionId,
    effects: &'a mut E,
}

impl<E: Effects> Output for Out<'_, E> {
    fn transmit(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.effects.to_client(self.id, Some(sequence), message);
    }

    fn hold(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.effects.hold(self.id, sequence, message);
    }

    fn recall(&mut self, recall: Recall) -> bool {
        self.effects.recall(self.id, &recall);
        true
    }

    fn logged_on(&mut self, _: &fix::Logon<'_>) {}

    fn logged_out(&mut self, _: &[u8]) {}

    fn close(&mut self, reason: CloseReason, text: &[u8]) {
        self.effects.close(self.id, reason, text);
    }
}
