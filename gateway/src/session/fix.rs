//! FIX sessions: ClOrdIDs to numbers, symbols to instruments, units to lots, and back.

use super::Incoming;
use super::cl_ord_ids::{self, ClOrdIds, Kind};
use crate::config::{Config, ProtocolConfig, SessionConfig};
use crate::effects::Effects;
use crate::instruments::Instruments;
use crate::limits::EARLY_BYTES_A_SESSION;
use orders::Report;
use proto::fix::{
    self, Application, Body, BusinessRejectReason, CancelRejectResponseTo, CloseReason, CompId, Digits,
    ExecutionReport, FixExecType, NewOrderSingle, OrdStatus, OrderCancelReject, OrderCancelReplaceRequest,
    OrderCancelRequest, Output, Recall, ResetOnLogon, Role, Scratch, Session, Violation, msg_type, tag,
};
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecType, Instrument, InstrumentId, NewOrder, OrderTerms, OrderType,
    Quantity, Reason, ReplaceOrder, Request, SequenceNumber, SessionId, Side, TimeInForce, Timestamp,
};

/// What a shard keeps for one FIX session.
#[derive(Debug)]
pub(super) struct FixSession {
    id: SessionId,
    session: Session,
    cl_ord_ids: ClOrdIds,
    /// The account of orders without one: the session's, when it has only one.
    account: AccountId,
    at_hand: AtHand,
    /// Resets of the numbers so far, as far as the world has been told.
    resets: u64,
}

/// The request that is being handled, in its own words: a refusal repeats them even where the gateway has none.
#[derive(Debug)]
struct AtHand {
    number: ClientOrderId,
    kind: Kind,
    /// Side (54) as it came.
    side: u8,
    cl_ord_id: Text,
    orig_cl_ord_id: Text,
    symbol: Text,
}

/// A short text.
#[derive(Clone, Copy, Debug)]
struct Text {
    length: usize,
    bytes: [u8; fix::MAX_VALUE_LENGTH],
}

/// CompID of the client of a template's instance that nobody has taken yet.
const NOBODY: &str = "*";

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
            account: config.only_account(session.id).unwrap_or_default(),
            at_hand: AtHand::NOTHING,
            resets: 0,
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
    pub(super) fn bind(&mut self, client_comp_id: CompId) {
        self.session.bind(client_comp_id);
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

    /// Tells the world when numbers started at 1 again.
    fn tell_resets<E: Effects>(&mut self, effects: &mut E) {
        let resets = self.session.counters().resets;
        if resets != self.resets {
            self.resets = resets;
            effects.renumbered(self.id);
        }
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.session.poll_timeout()
    }

    /// A new trading day: ClOrdIDs may come again.
    pub(super) fn new_day(&mut self) {
        self.cl_ord_ids.clear();
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
            _ => Ok(self.unsupported(now, application, effects)),
        };
        decoded.unwrap_or_else(|violation| self.reject(now, application, violation, effects))
    }

    /// Whether a possible resend (97=Y) is one: its request was handled and answered under another number.
    fn is_seen(&self, application: &Application<'_>) -> bool {
        application.poss_resend
            && matches!(
                application.msg_type,
                msg_type::NEW_ORDER_SINGLE | msg_type::ORDER_CANCEL_REQUEST | msg_type::ORDER_CANCEL_REPLACE_REQUEST
            )
            && self.cl_ord_ids.find(application.message.get(tag::CL_ORD_ID)).is_some()
    }

    fn new_order(&mut self, order: &NewOrderSingle<'_>, instruments: &Instruments) -> Incoming {
        let instrument = instruments.find(order.symbol);
        let number = self.cl_ord_ids.insert(order.cl_ord_id, Kind::Order);
        let quantity = lots(order.quantity, instrument);
        let mut new = NewOrder {
            client_order_id: number.unwrap_or_default(),
            instrument: instrument.map_or(InstrumentId(0), |instrument| instrument.id),
            account: self.account_of(order.account),
            session: self.id,
            side: Side::Buy,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price: order.price,
            quantity: quantity.unwrap_or_default(),
            trigger: order.trigger,
            terms: OrderTerms::NONE,
        };
        self.at_hand.set(
            new.client_order_id,
            Kind::Order,
            order.side,
            [order.cl_ord_id, b"", order.symbol],
        );
        let (side, order_type, time_in_force) = (
            fix::side_from_code(order.side),
            fix::ord_type_from_code(order.ord_type),
            fix::tif_from_code(order.time_in_force),
        );
        let refusal = match (number, quantity, side, order_type, time_in_force) {
            (Err(refused), ..) => Some(reason(refused)),
            (_, None, ..) => Some(Reason::InvalidQuantity),
            (_, _, Some(side), Some(order_type), Some(time_in_force)) => {
                (new.side, new.order_type, new.time_in_force) = (side, order_type, time_in_force);
                None
            }
            _ => Some(Reason::UnsupportedOrder),
        };
        match refusal {
            None => Incoming::Request(Request::New(new)),
            Some(reason) => Incoming::Refused(Request::New(new), reason),
        }
    }

    fn cancel(&mut self, cancel: &OrderCancelRequest<'_>, instruments: &Instruments) -> Incoming {
        let number = self.cl_ord_ids.insert(cancel.cl_ord_id, Kind::Cancel);
        let request = Request::Cancel(CancelOrder {
            client_order_id: number.unwrap_or_default(),
            orig_client_order_id: self.cl_ord_ids.find(cancel.orig_cl_ord_id).unwrap_or_default(),
            instrument: instruments
                .find(cancel.symbol)
                .map_or(InstrumentId(0), |instrument| instrument.id),
            session: self.id,
            side: fix::side_from_code(cancel.side).unwrap_or(Side::Buy),
        });
        self.at_hand.set(
            number.unwrap_or_default(),
            Kind::Cancel,
            cancel.side,
            [cancel.cl_ord_id, cancel.orig_cl_ord_id, cancel.symbol],
        );
        match number {
            Ok(_) => Incoming::Request(request),
            Err(refused) => Incoming::Refused(request, reason(refused)),
        }
    }

    fn replace(&mut self, replace: &OrderCancelReplaceRequest<'_>, instruments: &Instruments) -> Incoming {
        let number = self.cl_ord_ids.insert(replace.cl_ord_id, Kind::Replace);
        let instrument = instruments.find(replace.symbol);
        let quantity = lots(replace.quantity, instrument);
        let request = Request::Replace(ReplaceOrder {
            client_order_id: number.unwrap_or_default(),
            orig_client_order_id: self.cl_ord_ids.find(replace.orig_cl_ord_id).unwrap_or_default(),
            instrument: instrument.map_or(InstrumentId(0), |instrument| instrument.id),
            session: self.id,
            side: fix::side_from_code(replace.side).unwrap_or(Side::Buy),
            price: replace.price,
            quantity: quantity.unwrap_or_default(),
            terms: OrderTerms::NONE,
        });
        self.at_hand.set(
            number.unwrap_or_default(),
            Kind::Replace,
            replace.side,
            [replace.cl_ord_id, replace.orig_cl_ord_id, replace.symbol],
        );
        let is_limit = fix::ord_type_from_code(replace.ord_type) == Some(OrderType::Limit);
        let is_day = fix::tif_from_code(replace.time_in_force) == Some(TimeInForce::Day);
        match number {
            Err(refused) => Incoming::Refused(request, reason(refused)),
            Ok(_) if quantity.is_none() => Incoming::Refused(request, Reason::InvalidQuantity),
            Ok(_) if !is_limit || !is_day => Incoming::Refused(request, Reason::UnsupportedOrder),
            Ok(_) => Incoming::Request(request),
        }
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

    /// Sends a report.
    pub(super) fn report<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        let exec = &report.exec;
        let instrument = instruments.get(exec.instrument);
        let (cl_ord_id, orig_cl_ord_id) = self.ids(report);
        let order_id = Digits::new(exec.order_id.0);
        let text = if exec.reason == Reason::None {
            ""
        } else {
            exec.reason.text()
        };
        let Some(exec_type) = FixExecType::of(exec.exec_type) else {
            let reject = OrderCancelReject {
                cl_ord_id: cl_ord_id.as_bytes(),
                order_id: if exec.order_id.0 == 0 {
                    b"NONE"
                } else {
                    order_id.as_bytes()
                },
                ord_status: cancel_reject_status(report),
                orig_cl_ord_id: orig_cl_ord_id.as_bytes(),
                text: text.as_bytes(),
                transact_time: now,
                cxl_rej_reason: Some(fix::cxl_rej_reason(exec.reason)),
                response_to: self.response_to(exec.client_order_id),
            };
            return self.send(now, &reject, effects);
        };
        let is_at_hand = exec.client_order_id == self.at_hand.number && exec.exec_type == ExecType::Rejected;
        let symbol = self.at_hand.symbol;
        let units = |lots: Quantity| lots.0 * u64::from(instrument.map_or(1, |instrument| instrument.lot_size));
        let account = Digits::new(u64::from(exec.account.0));
        let exec_id = Digits::new(exec.exec_id.0);
        let message = ExecutionReport {
            account: if exec.account.0 == 0 { b"" } else { account.as_bytes() },
            avg_price: report.average_price(),
            cl_ord_id: cl_ord_id.as_bytes(),
            cumulative: units(exec.cumulative),
            exec_id: exec_id.as_bytes(),
            last_price: exec.last_price,
            last_quantity: units(exec.last_quantity),
            order_id: order_id.as_bytes(),
            quantity: units(exec.quantity),
            ord_status: OrdStatus::of(exec),
            orig_cl_ord_id: orig_cl_ord_id.as_bytes(),
            price: exec.price,
            side: if is_at_hand {
                self.at_hand.side
            } else {
                fix::side_code(exec.side)
            },
            symbol: instrument.map_or(symbol.as_bytes(), |instrument| instrument.symbol.as_bytes()),
            text: text.as_bytes(),
            transact_time: now,
            ord_rej_reason: (exec.exec_type == ExecType::Rejected).then(|| fix::ord_rej_reason(exec.reason)),
            exec_type,
            leaves: units(exec.leaves),
        };
        self.send(now, &message, effects);
    }

    /// ClOrdID and OrigClOrdID of a report. Those of a request that is being refused are the request's own, even when they
    /// were never given a number.
    fn ids(&self, report: &Report) -> (Text, Text) {
        let exec = &report.exec;
        let is_refusal = matches!(exec.exec_type, ExecType::Rejected | ExecType::RequestRejected);
        if is_refusal && exec.client_order_id == self.at_hand.number {
            return (self.at_hand.cl_ord_id, self.at_hand.orig_cl_ord_id);
        }
        let text = |number| {
            let mut text = Text::EMPTY;
            text.set(self.cl_ord_ids.text(number));
            text
        };
        (text(exec.client_order_id), text(exec.orig_client_order_id))
    }

    /// What a refused request was.
    fn response_to(&self, number: ClientOrderId) -> CancelRejectResponseTo {
        let of_number = self.cl_ord_ids.kind(number).unwrap_or(self.at_hand.kind);
        let kind = if number == self.at_hand.number {
            self.at_hand.kind
        } else {
            of_number
        };
        match kind {
            Kind::Replace => CancelRejectResponseTo::Replace,
            Kind::Order | Kind::Cancel => CancelRejectResponseTo::Cancel,
        }
    }

    fn send<E: Effects>(&mut self, now: Timestamp, body: &impl Body, effects: &mut E) {
        self.session.send(now, body, &mut Out { id: self.id, effects });
    }

    /// The account of an order: Account (1) as a number, or the session's only one. 0 is no account and gets refused.
    fn account_of(&self, text: &[u8]) -> AccountId {
        if text.is_empty() {
            return self.account;
        }
        let number = fix::parse_u64(text).and_then(|number| u32::try_from(number).ok());
        AccountId(number.unwrap_or_default())
    }
}

/// The status of an order that a cancel or replace was refused for.
fn cancel_reject_status(report: &Report) -> OrdStatus {
    match report.exec.order_id.0 {
        0 => OrdStatus::Rejected,
        _ => OrdStatus::of_quantities(report.exec.leaves, report.exec.cumulative),
    }
}

/// Units in lots; `None` when they are no whole lots. Units of an instrument that nobody knows stay as they are.
fn lots(units: u64, instrument: Option<&Instrument>) -> Option<Quantity> {
    let lot_size = u64::from(instrument.map_or(1, |instrument| instrument.lot_size));
    (units > 0 && units.is_multiple_of(lot_size)).then(|| Quantity(units / lot_size))
}

fn reason(refused: cl_ord_ids::Refused) -> Reason {
    match refused {
        cl_ord_ids::Refused::Duplicate => Reason::DuplicateClientOrderId,
        cl_ord_ids::Refused::Full => Reason::OrderTableFull,
        cl_ord_ids::Refused::Length => Reason::MalformedMessage,
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
    };

    /// The request that is now at hand, with its ClOrdID, OrigClOrdID and symbol.
    fn set(&mut self, number: ClientOrderId, kind: Kind, side: u8, texts: [&[u8]; 3]) {
        (self.number, self.kind, self.side) = (number, kind, side);
        let places = [&mut self.cl_ord_id, &mut self.orig_cl_ord_id, &mut self.symbol];
        for (place, text) in places.into_iter().zip(texts) {
            place.set(text);
        }
    }
}

impl Text {
    const EMPTY: Self = Self {
        length: 0,
        bytes: [0; fix::MAX_VALUE_LENGTH],
    };

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

    fn close(&mut self, _: CloseReason, _: &[u8]) {
        self.effects.close(self.id);
    }
}
