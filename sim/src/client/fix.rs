//! The FIX side of the connection: requests become messages, messages become reports.
//!
//! ClOrdIDs are the client's numbers in decimal. Quantities are units on the wire and lots here.

use super::connection::Answer;
use super::stream::SendBuffer;
use super::{ClientConfig, Traded};
use proto::fix::{
    Application, BusinessMessageReject, CloseReason, CompId, Digits, ExecutionReport, FixExecType, FrameBuffer, Logon,
    MAX_MESSAGE_LENGTH, NewOrderSingle, OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, OrderFields,
    Output, ResetOnLogon, Role, Scratch, Session, SessionConfig, SessionReject, msg_type, ord_type_code, parse_u64,
    side_code, side_from_code, tif_code,
};
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecId, ExecReport, ExecType, InstrumentId, NewOrder, OrderId,
    OrderType, Price, Quantity, Reason, ReplaceOrder, Request, SequenceNumber, SessionId, Side, Timestamp,
};

/// A FIX session with its received bytes.
#[derive(Debug)]
pub(super) struct FixWire {
    session: Session,
    frames: FrameBuffer,
    scratch: Scratch,
    account: AccountId,
    session_id: SessionId,
    traded: Box<[Traded]>,
}

/// Takes what the session wants sent.
struct Out<'a>(&'a mut SendBuffer);

impl Output for Out<'_> {
    fn transmit(&mut self, _: SequenceNumber, message: &[u8]) {
        self.0.push(message);
    }

    fn logged_on(&mut self, _: &Logon<'_>) {
        tracing::debug!("logged on");
    }

    fn logged_out(&mut self, text: &[u8]) {
        tracing::info!("the gateway logs us out: {}", text.escape_ascii());
    }

    fn close(&mut self, reason: CloseReason, text: &[u8]) {
        if reason != CloseReason::LoggedOut {
            tracing::warn!("session ends: {}; {}", reason.text(), text.escape_ascii());
        }
        self.0.close();
    }
}

impl FixWire {
    pub(super) fn new(
        sender_comp_id: CompId,
        target_comp_id: CompId,
        heartbeat: Duration,
        config: &ClientConfig,
        traded: &[Traded],
    ) -> Self {
        let mut session = SessionConfig::new(Role::Initiator, sender_comp_id, target_comp_id);
        session.heartbeat = heartbeat;
        // Numbers are kept in memory only: they start again with the process, and go on from connection to connection.
        session.reset_on_logon = ResetOnLogon::First;
        session.store_messages = STORE_MESSAGES;
        session.store_bytes = STORE_BYTES;
        Self {
            session: Session::new(session),
            frames: FrameBuffer::new(),
            scratch: Scratch::new(),
            account: config.account,
            session_id: config.session,
            traded: traded.into(),
        }
    }

    pub(super) fn on_connected(&mut self, now: Timestamp, out: &mut SendBuffer) {
        self.frames.clear();
        self.session.on_connected(now, &mut Out(out));
    }

    pub(super) fn on_disconnected(&mut self, now: Timestamp) {
        self.session.on_disconnected(now);
    }

    pub(super) fn is_logged_on(&self) -> bool {
        self.session.is_logged_on()
    }

    pub(super) fn space(&mut self) -> &mut [u8] {
        self.frames.space()
    }

    pub(super) fn received(
        &mut self,
        now: Timestamp,
        count: usize,
        out: &mut SendBuffer,
        deliver: &mut impl FnMut(Answer),
    ) {
        self.frames.received(count);
        while let Some(frame) = self.frames.next_frame() {
            let mut answered = |application: &Application<'_>| {
                if let Some(answer) = answer(application, self.session_id, &self.traded) {
                    deliver(answer);
                }
            };
            if let Some(application) = self.session.on_frame(now, frame, &mut self.scratch, &mut Out(out)) {
                answered(&application);
            }
            while self.session.has_early() {
                let mut buffer = [0; MAX_MESSAGE_LENGTH];
                let Some(early) = self.session.take_early(&mut buffer) else {
                    break;
                };
                if let Some(application) = self.session.on_early(now, early, &mut self.scratch, &mut Out(out)) {
                    answered(&application);
                }
            }
        }
    }

    pub(super) fn on_timer(&mut self, now: Timestamp, out: &mut SendBuffer) {
        if self.session.poll_timeout().is_some_and(|due| due <= now) {
            self.session.on_timer(now, &mut Out(out));
        }
    }

    pub(super) fn logout(&mut self, now: Timestamp, out: &mut SendBuffer) {
        self.session.logout(now, b"", &mut Out(out));
    }

    pub(super) fn write(&mut self, now: Timestamp, request: &Request, traded: &Traded, out: &mut SendBuffer) {
        match request {
            Request::New(order) => self.write_new(now, order, traded, out),
            Request::Cancel(cancel) => self.write_cancel(now, cancel, traded, out),
            Request::Replace(replace) => self.write_replace(now, replace, traded, out),
            // The client cancels one by one, and knows how its orders stand.
            Request::MassCancel(_) | Request::Status(_) | Request::MassStatus(_) => (),
        }
    }

    fn write_new(&mut self, now: Timestamp, order: &NewOrder, traded: &Traded, out: &mut SendBuffer) {
        let (number, account) = (Digits::new(order.client_order_id.0), self.account_text());
        let body = NewOrderSingle {
            account: account.as_ref().map_or(b"", Digits::as_bytes),
            cl_ord_id: number.as_bytes(),
            quantity: units(order.quantity, traded),
            ord_type: ord_type_code(order.order_type),
            price: order.price,
            side: side_code(order.side),
            symbol: traded.symbol.as_bytes(),
            time_in_force: tif_code(order.time_in_force),
            transact_time: now,
            trigger: order.trigger,
            fields: OrderFields::NONE,
        };
        self.session.send(now, &body, &mut Out(out));
    }

    fn write_cancel(&mut self, now: Timestamp, cancel: &CancelOrder, traded: &Traded, out: &mut SendBuffer) {
        let (number, orig) = (
            Digits::new(cancel.client_order_id.0),
            Digits::new(cancel.orig_client_order_id.0),
        );
        let body = OrderCancelRequest {
            cl_ord_id: number.as_bytes(),
            orig_cl_ord_id: orig.as_bytes(),
            quantity: 0,
            side: side_code(cancel.side),
            symbol: traded.symbol.as_bytes(),
            transact_time: now,
        };
        self.session.send(now, &body, &mut Out(out));
    }

    fn write_replace(&mut self, now: Timestamp, replace: &ReplaceOrder, traded: &Traded, out: &mut SendBuffer) {
        let (number, orig, account) = (
            Digits::new(replace.client_order_id.0),
            Digits::new(replace.orig_client_order_id.0),
            self.account_text(),
        );
        let body = OrderCancelReplaceRequest {
            account: account.as_ref().map_or(b"", Digits::as_bytes),
            cl_ord_id: number.as_bytes(),
            orig_cl_ord_id: orig.as_bytes(),
            quantity: units(replace.quantity, traded),
            ord_type: ord_type_code(OrderType::Limit),
            price: replace.price,
            side: side_code(replace.side),
            symbol: traded.symbol.as_bytes(),
            time_in_force: b'0',
            transact_time: now,
            fields: OrderFields::NONE,
        };
        self.session.send(now, &body, &mut Out(out));
    }

    fn account_text(&self) -> Option<Digits> {
        (self.account.0 != 0).then(|| Digits::new(u64::from(self.account.0)))
    }
}

/// What a message says of an order; `None` when it says nothing that counts.
fn answer(application: &Application<'_>, session: SessionId, traded: &[Traded]) -> Option<Answer> {
    let report = match application.msg_type {
        msg_type::EXECUTION_REPORT => match ExecutionReport::decode(&application.message) {
            Ok(report) => execution(&report, session, traded)?,
            Err(violation) => {
                tracing::warn!("an ExecutionReport cannot be read: {violation:?}");
                return Some(Answer::Protocol);
            }
        },
        msg_type::ORDER_CANCEL_REJECT => match OrderCancelReject::decode(&application.message) {
            Ok(reject) => cancel_reject(&reject, session),
            Err(violation) => {
                tracing::warn!("an OrderCancelReject cannot be read: {violation:?}");
                return Some(Answer::Protocol);
            }
        },
        msg_type::REJECT => {
            tracing::warn!(
                "the gateway rejects a message: {:?}",
                SessionReject::decode(&application.message)
            );
            return Some(Answer::Protocol);
        }
        msg_type::BUSINESS_MESSAGE_REJECT => {
            let reject = BusinessMessageReject::decode(&application.message);
            tracing::warn!("the gateway rejects a message: {reject:?}");
            return Some(Answer::Protocol);
        }
        _ => return None,
    };
    Some(Answer::Report(report))
}

/// A report; `None` when it tells of a step on the way that another report ends.
fn execution(report: &ExecutionReport<'_>, session: SessionId, traded: &[Traded]) -> Option<ExecReport> {
    let exec_type = match report.exec_type {
        FixExecType::New => ExecType::New,
        FixExecType::Trade => ExecType::Fill,
        FixExecType::Canceled => ExecType::Canceled,
        FixExecType::Replaced => ExecType::Replaced,
        FixExecType::Rejected => ExecType::Rejected,
        FixExecType::Expired => ExecType::Expired,
        _ => return None,
    };
    let known = traded.iter().find(|traded| traded.symbol.as_bytes() == report.symbol);
    let lots = |units: u64| Quantity(units / known.map_or(1, |traded| u64::from(traded.lot_size)));
    Some(ExecReport {
        exec_type,
        order_id: OrderId(parse_u64(report.order_id).unwrap_or(0)),
        client_order_id: ClientOrderId(parse_u64(report.cl_ord_id).unwrap_or(0)),
        orig_client_order_id: ClientOrderId(parse_u64(report.orig_cl_ord_id).unwrap_or(0)),
        exec_id: ExecId(parse_u64(report.exec_id).unwrap_or(0)),
        instrument: known.map_or(InstrumentId(0), |traded| traded.id),
        account: AccountId(0),
        session,
        side: side_from_code(report.side).unwrap_or(Side::Buy),
        price: report.price,
        quantity: lots(report.quantity),
        last_price: report.last_price,
        last_quantity: lots(report.last_quantity),
        leaves: lots(report.leaves),
        cumulative: lots(report.cumulative),
        reason: reason(report.text),
    })
}

fn cancel_reject(reject: &OrderCancelReject<'_>, session: SessionId) -> ExecReport {
    ExecReport {
        exec_type: ExecType::RequestRejected,
        order_id: OrderId(parse_u64(reject.order_id).unwrap_or(0)),
        client_order_id: ClientOrderId(parse_u64(reject.cl_ord_id).unwrap_or(0)),
        orig_client_order_id: ClientOrderId(parse_u64(reject.orig_cl_ord_id).unwrap_or(0)),
        exec_id: ExecId(0),
        instrument: InstrumentId(0),
        account: AccountId(0),
        session,
        side: Side::Buy,
        price: Price::NULL,
        quantity: Quantity::ZERO,
        last_price: Price::NULL,
        last_quantity: Quantity::ZERO,
        leaves: Quantity::ZERO,
        cumulative: Quantity::ZERO,
        reason: reason(reject.text),
    }
}

/// The reason that the gateway gave in words; [`Reason::Venue`] for words that are not ours.
fn reason(text: &[u8]) -> Reason {
    if text.is_empty() {
        return Reason::None;
    }
    let known = Reason::ALL.iter().find(|reason| reason.text().as_bytes() == text);
    known.copied().unwrap_or(Reason::Venue)
}

fn units(lots: Quantity, traded: &Traded) -> u64 {
    lots.0.saturating_mul(u64::from(traded.lot_size))
}

/// Sent messages kept for a gateway that asks for them again.
const STORE_MESSAGES: usize = 65_536;

/// Bytes of their bodies.
const STORE_BYTES: usize = 16 * 1_024 * 1_024;
