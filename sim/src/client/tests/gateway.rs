//! A gateway of a few lines: refuses what is too large, fills immediate-or-cancel orders at once, lets others rest.

use super::super::*;
use net::link::{AnyLink, LinkConfig, LinkEnd, LinkEvent, LtpLinkConfig, Resume};
use net::options::TcpOptions;
use net::tcp::{Received, TcpListener, TcpStream};
use net::{CarrierConfig, Link, UdpOptions};
use proto::fix::{
    self, CloseReason, CompId, Digits, ExecutionReport, FixExecType, FrameBuffer, NewOrderSingle, OrdStatus,
    OrderCancelReplaceRequest, OrderCancelRequest, Output, Role, Scratch, Session, SessionConfig, msg_type,
};
use proto::ltp;
use proto::native;
use proto::soup::{self, ServerEvent, ServerSession, SessionName, Timing};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;
use types::{ExecId, ExecType, InstrumentId, OrderId, Price, Quantity, Reason, SequenceNumber, Side};

/// What the gateway knows of an order.
#[derive(Clone, Copy)]
pub(super) struct Live {
    id: u64,
    instrument: InstrumentId,
    side: Side,
    price: Price,
    quantity: u64,
}

/// Answers: refuses what is larger than a thousand lots, fills immediate-or-cancel orders at once, lets others rest, and
/// does what it is asked of them.
pub(super) struct Gateway {
    listener: Option<TcpListener>,
    stream: Option<TcpStream>,
    pub(super) speech: Speech,
    pub(super) live: HashMap<u64, Live>,
    pub(super) orders: u64,
    received: u64,
    /// Bytes to send.
    out: Vec<u8>,
    /// Trigger and price of each order.
    pub(super) seen: Vec<(Trigger, Price)>,
}

#[allow(clippy::large_enum_variant, reason = "a test has one")]
pub(super) enum Speech {
    Fix {
        session: Box<Session>,
        frames: Box<FrameBuffer>,
    },
    Native {
        session: ServerSession,
        bytes: Vec<u8>,
        /// Every report sent, to be sent again.
        reports: Vec<Vec<u8>>,
    },
    Link(Box<AnyLink>),
}

/// How the client comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Fix,
    Native,
    Link,
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl Output for Bytes<'_> {
    fn transmit(&mut self, _: SequenceNumber, message: &[u8]) {
        self.0.extend_from_slice(message);
    }

    fn logged_on(&mut self, _: &fix::Logon<'_>) {}

    fn logged_out(&mut self, _: &[u8]) {}

    fn close(&mut self, reason: CloseReason, text: &[u8]) {
        panic!("{reason:?}: {}", text.escape_ascii());
    }
}

impl Gateway {
    pub(super) fn new(way: Way) -> (Self, SocketAddr) {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let listen = || TcpListener::bind(local, &TcpOptions::tuned()).unwrap();
        let (listener, speech) = match way {
            Way::Fix => {
                let (us, client) = (CompId::new(b"TICKGATE").unwrap(), CompId::new(b"CLIENT").unwrap());
                let config = SessionConfig::new(Role::Acceptor, us, client);
                let speech = Speech::Fix {
                    session: Box::new(Session::new(config)),
                    frames: Box::new(FrameBuffer::new()),
                };
                (Some(listen()), speech)
            }
            Way::Native => {
                let speech = Speech::Native {
                    session: ServerSession::new(Timestamp::NONE, Timing::default()),
                    bytes: Vec::new(),
                    reports: Vec::new(),
                };
                (Some(listen()), speech)
            }
            Way::Link => {
                let config = LinkConfig::Ltp(LtpLinkConfig {
                    end: LinkEnd::Listen { local },
                    ltp: ltp::Config::new(SessionId(3), 1_024, native::MAX_MESSAGE_LENGTH),
                    carrier: CarrierConfig::Udp(UdpOptions::default()),
                    second: None,
                });
                (
                    None,
                    Speech::Link(Box::new(AnyLink::new(&config, 1, Resume::START).unwrap())),
                )
            }
        };
        let address = match &speech {
            Speech::Link(link) => link.local_addr(),
            _ => listener.as_ref().and_then(|listener| listener.local_addr().ok()),
        };
        let address = address.unwrap();
        let gateway = Self {
            listener,
            stream: None,
            speech,
            live: HashMap::new(),
            orders: 0,
            received: 0,
            out: Vec::new(),
            seen: Vec::new(),
        };
        (gateway, address)
    }

    pub(super) fn turn(&mut self, now: Timestamp) {
        if self.stream.is_none() {
            let Some(listener) = &self.listener else {
                return self.turn_link(now);
            };
            let Some((stream, _)) = listener.accept().unwrap() else {
                return;
            };
            self.stream = Some(stream);
            match &mut self.speech {
                Speech::Fix { session, frames } => {
                    frames.clear();
                    session.on_connected(now, &mut Bytes(&mut self.out));
                }
                Speech::Native { session, bytes, .. } => {
                    bytes.clear();
                    *session = ServerSession::new(now, Timing::default());
                }
                Speech::Link(_) => unreachable!("it has no listener"),
            }
        }
        self.receive(now);
        if let Speech::Fix { session, .. } = &mut self.speech {
            session.on_timer(now, &mut Bytes(&mut self.out));
        }
        self.send();
    }

    fn turn_link(&mut self, now: Timestamp) {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        loop {
            let Speech::Link(link) = &mut self.speech else { return };
            match link.poll(now, &mut message) {
                None => return link.flush(now, 0),
                Some(LinkEvent::Message { length, .. }) => {
                    self.received += 1;
                    self.answer(now, &native::decode_request(&message[..length]).unwrap());
                }
                Some(LinkEvent::Up | LinkEvent::Credits(_) | LinkEvent::Path(_)) => {}
                // It keeps no journal.
                Some(LinkEvent::Recall { from, .. }) => link.not_recalled(from),
                // The client left, or was started again: its orders go, as the real gateway has it.
                Some(LinkEvent::Down(_)) => self.live.clear(),
            }
        }
    }

    pub(super) fn receive(&mut self, now: Timestamp) {
        let mut buffer = [0; 8_192];
        loop {
            let Some(stream) = &mut self.stream else {
                return;
            };
            let room = match &mut self.speech {
                Speech::Fix { frames, .. } => frames.space().len().min(buffer.len()),
                Speech::Native { .. } | Speech::Link(_) => buffer.len(),
            };
            let count = match stream.recv(&mut buffer[..room]) {
                Ok(Received::Bytes(count)) => count,
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) | Err(_) => return self.disconnect(now),
            };
            self.take(now, &buffer[..count]);
        }
    }

    fn take(&mut self, now: Timestamp, received: &[u8]) {
        let requests = match &mut self.speech {
            Speech::Fix { session, frames } => {
                frames.space()[..received.len()].copy_from_slice(received);
                frames.received(received.len());
                let mut requests = Vec::new();
                let mut scratch = Scratch::new();
                while let Some(frame) = frames.next_frame() {
                    let application = session.on_frame(now, frame, &mut scratch, &mut Bytes(&mut self.out));
                    requests.extend(application.map(|application| fix_request(&application)));
                    let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
                    while let Some(early) = session.take_early(&mut buffer) {
                        let application = session.on_early(now, early, &mut scratch, &mut Bytes(&mut self.out));
                        requests.extend(application.map(|application| fix_request(&application)));
                    }
                }
                requests
            }
            Speech::Native {
                session,
                bytes,
                reports,
            } => {
                bytes.extend_from_slice(received);
                native_requests(now, session, bytes, reports, &mut self.out)
            }
            Speech::Link(_) => unreachable!("it has no stream"),
        };
        for request in requests {
            self.received += 1;
            self.answer(now, &request);
        }
    }

    fn answer(&mut self, now: Timestamp, request: &Request) {
        match *request {
            Request::New(order) => {
                self.orders += 1;
                self.seen.push((order.trigger, order.price));
                let live = Live {
                    id: self.orders,
                    instrument: order.instrument,
                    side: order.side,
                    price: order.price,
                    quantity: order.quantity.0,
                };
                let number = order.client_order_id.0;
                if order.quantity.0 > 1_000 {
                    self.report(now, ExecType::Rejected, number, 0, &live, Reason::MaxQuantity);
                    return;
                }
                self.report(now, ExecType::New, number, 0, &live, Reason::None);
                if order.time_in_force == TimeInForce::ImmediateOrCancel {
                    self.report(now, ExecType::Fill, number, 0, &live, Reason::None);
                } else {
                    self.live.insert(number, live);
                }
            }
            Request::Cancel(cancel) => {
                let (number, orig) = (cancel.client_order_id.0, cancel.orig_client_order_id.0);
                let live = self.live.remove(&orig).expect("the client cancels what is open");
                self.report(now, ExecType::Canceled, number, orig, &live, Reason::Requested);
            }
            Request::Replace(replace) => {
                let (number, orig) = (replace.client_order_id.0, replace.orig_client_order_id.0);
                let mut live = self.live.remove(&orig).expect("the client replaces what is open");
                (live.price, live.quantity) = (replace.price, replace.quantity.0);
                self.live.insert(number, live);
                self.report(now, ExecType::Replaced, number, orig, &live, Reason::None);
            }
            Request::MassCancel(_) | Request::Status(_) | Request::MassStatus(_) => {
                panic!("the client cancels one by one")
            }
        }
    }

    fn report(&mut self, now: Timestamp, exec_type: ExecType, number: u64, orig: u64, live: &Live, reason: Reason) {
        let filled = if exec_type == ExecType::Fill { live.quantity } else { 0 };
        let leaves = match exec_type {
            ExecType::New | ExecType::Replaced => live.quantity,
            _ => 0,
        };
        let report = ExecReport {
            exec_type,
            order_id: OrderId(live.id),
            client_order_id: ClientOrderId(number),
            orig_client_order_id: ClientOrderId(orig),
            exec_id: ExecId(self.received),
            instrument: live.instrument,
            account: AccountId(7),
            session: SessionId(3),
            side: live.side,
            price: live.price,
            quantity: Quantity(live.quantity),
            last_price: if filled > 0 { live.price } else { Price::NULL },
            last_quantity: Quantity(filled),
            leaves: Quantity(leaves),
            cumulative: Quantity(filled),
            reason,
        };
        match &mut self.speech {
            Speech::Fix { session, .. } => {
                fix_report(now, session, &report, &mut Bytes(&mut self.out));
            }
            Speech::Native { session, reports, .. } => {
                let mut message = [0; 64];
                let length = native::encode_report(&report, &mut message);
                reports.push(message[..length].to_vec());
                let mut packet = [0; 128];
                let length = session.send(now, &message[..length], &mut packet);
                self.out.extend_from_slice(&packet[..length]);
            }
            Speech::Link(link) => {
                let mut message = [0; 64];
                let length = native::encode_report(&report, &mut message);
                link.send(&message[..length], 0);
            }
        }
    }

    fn send(&mut self) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let sent = stream.send(&self.out).unwrap();
        self.out.drain(..sent);
    }

    /// The connection breaks; what was not sent is lost on the way.
    pub(super) fn disconnect(&mut self, now: Timestamp) {
        if let Some(mut stream) = self.stream.take() {
            stream.close();
        }
        self.out.clear();
        if let Speech::Fix { session, .. } = &mut self.speech {
            session.on_disconnected(now);
        }
    }
}

fn native_requests(
    now: Timestamp,
    session: &mut ServerSession,
    bytes: &mut Vec<u8>,
    reports: &[Vec<u8>],
    out: &mut Vec<u8>,
) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut at = 0;
    while let Some((packet, length)) = soup::parse(&bytes[at..]).unwrap() {
        at += length;
        match session.on_packet(now, packet).unwrap() {
            Some(ServerEvent::Login(login)) => {
                assert_eq!(
                    (login.user_name.as_str(), login.password.as_str()),
                    ("trader", "secret")
                );
                let next = SequenceNumber(reports.len() as u64 + 1);
                let from = login.resume_from(next).unwrap();
                let mut packet = [0; 1_100];
                let name = SessionName::new(b"DAY").unwrap();
                let length = session.accept(now, name, from, &mut packet);
                out.extend_from_slice(&packet[..length]);
                for report in &reports[usize::try_from(from.0).unwrap() - 1..] {
                    let length = session.send(now, report, &mut packet);
                    out.extend_from_slice(&packet[..length]);
                }
            }
            Some(ServerEvent::Message(message)) => requests.push(native::decode_request(message).unwrap()),
            _ => (),
        }
    }
    bytes.drain(..at);
    requests
}

fn number(text: &[u8]) -> ClientOrderId {
    ClientOrderId(fix::parse_u64(text).unwrap())
}

/// The request in a FIX message, with the lot size of [`TRADED`].
fn fix_request(application: &fix::Application<'_>) -> Request {
    let instrument = |symbol: &[u8]| {
        TRADED
            .iter()
            .find(|known| known.symbol.as_bytes() == symbol)
            .unwrap()
            .id
    };
    match application.msg_type {
        msg_type::NEW_ORDER_SINGLE => {
            let order = NewOrderSingle::decode(&application.message).unwrap();
            assert_eq!(order.account, b"7");
            assert!(order.quantity.is_multiple_of(LOT));
            Request::New(NewOrder {
                client_order_id: number(order.cl_ord_id),
                instrument: instrument(order.symbol),
                account: AccountId(7),
                session: SessionId(3),
                side: fix::side_from_code(order.side).unwrap(),
                order_type: fix::ord_type_from_code(order.ord_type).unwrap(),
                time_in_force: fix::tif_from_code(order.time_in_force).unwrap(),
                price: order.price,
                quantity: Quantity(order.quantity / LOT),
                trigger: order.trigger,
                terms: OrderTerms::NONE,
            })
        }
        msg_type::ORDER_CANCEL_REQUEST => {
            let cancel = OrderCancelRequest::decode(&application.message).unwrap();
            Request::Cancel(CancelOrder {
                client_order_id: number(cancel.cl_ord_id),
                orig_client_order_id: number(cancel.orig_cl_ord_id),
                instrument: instrument(cancel.symbol),
                session: SessionId(3),
                side: fix::side_from_code(cancel.side).unwrap(),
            })
        }
        _ => {
            let replace = OrderCancelReplaceRequest::decode(&application.message).unwrap();
            Request::Replace(ReplaceOrder {
                client_order_id: number(replace.cl_ord_id),
                orig_client_order_id: number(replace.orig_cl_ord_id),
                instrument: instrument(replace.symbol),
                session: SessionId(3),
                side: fix::side_from_code(replace.side).unwrap(),
                price: replace.price,
                quantity: Quantity(replace.quantity / LOT),
                terms: OrderTerms::NONE,
            })
        }
    }
}

fn fix_report(now: Timestamp, session: &mut Session, report: &ExecReport, out: &mut Bytes<'_>) {
    let digits = Digits::new;
    let (order, client) = (digits(report.order_id.0), digits(report.client_order_id.0));
    let (orig, exec) = (digits(report.orig_client_order_id.0), digits(report.exec_id.0));
    let symbol = TRADED
        .iter()
        .find(|known| known.id == report.instrument)
        .unwrap()
        .symbol;
    let body = ExecutionReport {
        account: b"7",
        avg_price: Price(0),
        cl_ord_id: client.as_bytes(),
        cumulative: report.cumulative.0 * LOT,
        exec_id: exec.as_bytes(),
        last_price: report.last_price,
        last_quantity: report.last_quantity.0 * LOT,
        order_id: order.as_bytes(),
        quantity: report.quantity.0 * LOT,
        ord_status: OrdStatus::of(report),
        ord_type: 0,
        orig_cl_ord_id: orig.as_bytes(),
        price: report.price,
        side: fix::side_code(report.side),
        symbol: symbol.as_bytes(),
        text: if report.reason == Reason::None {
            b""
        } else {
            report.reason.text().as_bytes()
        },
        time_in_force: 0,
        transact_time: now,
        ord_rej_reason: None,
        exec_type: FixExecType::of(report.exec_type).unwrap(),
        leaves: report.leaves.0 * LOT,
        restatement: None,
        answer_to: None,
        crossed: None,
    };
    session.send(now, &body, out);
}

const LOT: u64 = 10;

/// The instruments of the tests, two of one lot size.
pub(super) static TRADED: LazyLock<[Traded; 2]> = LazyLock::new(|| {
    [(1, b"ALFA"), (2, b"BETA")].map(|(id, symbol)| Traded {
        id: InstrumentId(id),
        symbol: Symbol::new(symbol).unwrap(),
        tick_size: Price(10_000_000),
        lot_size: 10,
        reference_price: Price(100_000_000_000),
    })
});
