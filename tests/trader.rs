//! A native client made of a plain socket or of a link: it goes on from the number it wants, and holds every report
//! against what it knows.

use crate::market::PATIENCE;
use net::link::{AnyLink, LinkConfig, LinkEnd, LinkEvent, LtpLinkConfig, Resume};
use net::{CarrierConfig, Link, UdpOptions};
use proto::ltp::{self, Key};
use proto::native;
use proto::soup::{self, Login, Packet, Password, SessionName, UserName};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use types::{
    AccountId, ClientOrderId, ExecReport, ExecType, InstrumentId, MassCancel, MassStatusRequest, NewOrder, OrderId,
    OrderStatusRequest, OrderTerms, OrderType, Price, Quantity, Reason, Request, SequenceNumber, SessionId, Side,
    TimeInForce, Timestamp, Trigger,
};

/// One native session, over as many connections as it takes.
pub(crate) struct Trader {
    user: &'static str,
    session: SessionId,
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// In place of a stream.
    line: Option<Box<Line>>,
    /// Received and not yet a whole packet.
    bytes: Vec<u8>,
    last_sent: Instant,
    /// Number of the sequenced message that comes next.
    next: SequenceNumber,
    /// The number of its next request.
    next_number: u64,
    /// The number of its last order.
    last_order: ClientOrderId,
    /// Every order it has an answer to.
    pub(crate) orders: BTreeMap<ClientOrderId, Order>,
    /// The answers to its mass cancels.
    pub(crate) mass_cancels: Vec<ExecReport>,
    /// The answers to its questions how orders stand.
    pub(crate) statuses: Vec<ExecReport>,
}

/// A link, and all that was ever sent over it: what a client's journal would have.
struct Line {
    link: AnyLink,
    sent: Vec<Vec<u8>>,
    /// All that was received over it.
    received: Vec<Vec<u8>>,
}

/// What the reports say about one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) order_id: OrderId,
    /// Why it was refused; none for an order that was accepted.
    pub(crate) refused: Reason,
    /// Whether the gateway took it to trade inside, and lots that it traded there; they are among those traded.
    pub(crate) is_crossing: bool,
    pub(crate) crossed: u64,
    pub(crate) traded: u64,
    pub(crate) leaves: u64,
    is_over: bool,
}

/// How long the gateway may take no bytes before the client hangs up.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

/// Silence after which a heartbeat is due.
const HEARTBEAT: Duration = Duration::from_secs(1);

impl Trader {
    /// The client of a session of the market, not connected.
    pub(crate) fn new(user: &'static str, session: u16, address: SocketAddr) -> Self {
        Self {
            user,
            session: SessionId(session),
            address,
            stream: None,
            line: None,
            bytes: Vec::new(),
            last_sent: Instant::now(),
            next: SequenceNumber(1),
            next_number: 1,
            last_order: ClientOrderId(0),
            orders: BTreeMap::new(),
            mass_cancels: Vec::new(),
            statuses: Vec::new(),
        }
    }

    /// One that comes in over a link to this address.
    pub(crate) fn linked(user: &'static str, session: u16, address: SocketAddr) -> Self {
        let session_id = SessionId(session);
        Self {
            line: Some(Box::new(Line::new(session_id, address, Vec::new(), SequenceNumber(1)))),
            ..Self::new(user, session, address)
        }
    }

    /// The client's process dies and comes back with what its journal has.
    pub(crate) fn restart(&mut self) {
        let line = self.line.take().expect("it has a link");
        let received = line.received;
        self.line = Some(Box::new(Line::new(self.session, self.address, line.sent, self.next)));
        self.line.as_mut().expect("it has a link").received = received;
    }

    /// As [`restart`](Self::restart), with all that was sent and half of what was received: the machine is lost, and its disk
    /// is as far behind.
    pub(crate) fn restart_elsewhere(&mut self) {
        let line = self.line.as_mut().expect("it has a link");
        let mut received = std::mem::take(&mut line.received);
        received.truncate(received.len() / 2);
        self.orders.clear();
        self.mass_cancels.clear();
        self.statuses.clear();
        self.next = SequenceNumber(1);
        for message in &received {
            self.on_message(message);
        }
        self.restart();
        self.line.as_mut().expect("it has a link").received = received;
    }

    /// Connects and asks for what it has not received. Tries again as long as there is patience.
    pub(crate) fn connect(&mut self) {
        if self.line.is_some() {
            return self.wait("its link", Self::is_connected);
        }
        let start = Instant::now();
        while !self.try_connect() {
            assert!(start.elapsed() < PATIENCE, "{} cannot log on", self.user);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Connects and logs on, if the gateway lets it.
    pub(crate) fn try_connect(&mut self) -> bool {
        let Ok(stream) = TcpStream::connect(self.address) else {
            return false;
        };
        stream.set_nodelay(true).expect("a socket");
        stream
            .set_read_timeout(Some(Duration::from_millis(2)))
            .expect("a socket");
        stream.set_write_timeout(Some(WRITE_PATIENCE)).expect("a socket");
        self.stream = Some(stream);
        self.bytes.clear();
        let login = Login {
            user_name: UserName::new(self.user.as_bytes()).expect("a name"),
            password: Password::new(b"secret").expect("a password"),
            session: SessionName::BLANK,
            sequence: self.next.0,
        };
        let mut packet = [0; soup::MAX_PACKET_LENGTH];
        let length = soup::write_login_request(&login, &mut packet);
        if !self.write(&packet[..length]) {
            return false;
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if !self.read() {
                return false;
            }
            let Some((packet, used)) = soup::parse(&self.bytes).expect("packets") else {
                continue;
            };
            // A session whose old connection is not gone yet is refused; then again.
            let is_in = match packet {
                Packet::LoginAccepted { next, .. } => {
                    assert_eq!(next, self.next, "{} gets what it asked for", self.user);
                    true
                }
                Packet::LoginRejected(_) => false,
                other => panic!("{other:?} in place of an answer to the login"),
            };
            self.bytes.drain(..used);
            return is_in;
        }
        false
    }

    /// Whether the connection stands, as far as it knows.
    pub(crate) fn is_connected(&self) -> bool {
        self.stream.is_some() || self.line.as_ref().is_some_and(|line| line.link.is_up())
    }

    /// Requests sent so far.
    pub(crate) const fn requests(&self) -> u64 {
        self.next_number - 1
    }

    /// Its session.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// Its numbers start anew, and it forgets the orders of the last day.
    pub(crate) fn new_day(&mut self) {
        self.next_number = 1;
        self.orders.clear();
    }

    /// Closes the connection without a word.
    pub(crate) fn hang_up(&mut self) {
        self.stream = None;
    }

    /// Sends an order of 10 lots and gives its number.
    pub(crate) fn order(&mut self, side: Side, instrument: u32, price: &str) -> ClientOrderId {
        self.order_with(side, instrument, price, |_| {})
    }

    /// The same, with something changed.
    pub(crate) fn order_with(
        &mut self,
        side: Side,
        instrument: u32,
        price: &str,
        change: impl FnOnce(&mut NewOrder),
    ) -> ClientOrderId {
        let number = self.number();
        self.last_order = number;
        let mut order = NewOrder {
            client_order_id: number,
            instrument: InstrumentId(instrument),
            account: AccountId(u32::from(self.session.0)),
            session: self.session,
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price: Price::parse(price.as_bytes()).expect("a price"),
            quantity: Quantity(10),
            trigger: Trigger::NONE,
            terms: OrderTerms::NONE,
        };
        change(&mut order);
        self.send(&Request::New(order));
        number
    }

    /// Asks for all its orders to be cancelled.
    pub(crate) fn mass_cancel(&mut self) -> ClientOrderId {
        let number = self.number();
        self.send(&Request::MassCancel(MassCancel {
            client_order_id: number,
            session: self.session,
            instrument: None,
        }));
        number
    }

    /// Asks how its last order stands.
    pub(crate) fn status(&mut self, side: Side, instrument: u32) {
        self.send(&Request::Status(OrderStatusRequest {
            client_order_id: self.last_order,
            order_id: OrderId(0),
            instrument: InstrumentId(instrument),
            session: self.session,
            side,
            request: 0,
        }));
    }

    /// Asks how all its orders stand.
    pub(crate) fn mass_status(&mut self, request: u64) {
        self.send(&Request::MassStatus(MassStatusRequest {
            session: self.session,
            instrument: None,
            request,
        }));
    }

    /// The number of its next request.
    const fn number(&mut self) -> ClientOrderId {
        let number = ClientOrderId(self.next_number);
        self.next_number += 1;
        number
    }

    fn send(&mut self, request: &Request) {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_request(request, &mut message);
        if let Some(line) = &mut self.line {
            return line.send(&message[..length]);
        }
        let mut packet = [0; soup::MAX_PACKET_LENGTH];
        let length = soup::write_unsequenced(&message[..length], &mut packet);
        self.write(&packet[..length]);
    }

    /// Sends bytes, whatever they are. A connection that is gone takes none, and that is noticed.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        self.last_sent = Instant::now();
        if stream.write_all(bytes).is_err() {
            self.stream = None;
        }
        self.stream.is_some()
    }

    /// Takes what has come. Returns whether the connection stands.
    fn read(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let mut chunk = [0; 16_384];
        match stream.read(&mut chunk) {
            Ok(0) => self.stream = None,
            Ok(count) => self.bytes.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => self.stream = None,
        }
        self.stream.is_some()
    }

    /// Receives what there is, and keeps the connection alive.
    pub(crate) fn turn(&mut self) {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        while let Some((sequence, length)) = self.line.as_mut().and_then(|line| line.receive(&mut message)) {
            assert_eq!(sequence, self.next, "{}: in order, each once", self.user);
            if let Some(line) = &mut self.line {
                line.received.push(message[..length].to_vec());
            }
            self.on_message(&message[..length]);
        }
        if self.stream.is_some() && self.last_sent.elapsed() > HEARTBEAT {
            let mut packet = [0; soup::MAX_PACKET_LENGTH];
            let length = soup::write_client_heartbeat(&mut packet);
            self.write(&packet[..length]);
        }
        self.read();
        let bytes = std::mem::take(&mut self.bytes);
        let mut rest = &bytes[..];
        while let Some((packet, used)) = soup::parse(rest).expect("the gateway sends packets") {
            if let Packet::Sequenced(message) = packet {
                self.on_message(message);
            }
            rest = &rest[used..];
        }
        self.bytes = rest.to_vec();
    }

    /// A numbered message.
    fn on_message(&mut self, message: &[u8]) {
        self.next = self.next.next();
        match native::decode(message).expect("the gateway sends native messages") {
            native::Message::Report(report) => self.on_report(&report),
            other => panic!("{other:?}"),
        }
    }

    /// One report: the first answer comes first and once, trades add up, an end comes once.
    fn on_report(&mut self, report: &ExecReport) {
        let number = report.client_order_id;
        let known = self.orders.get_mut(&number);
        match (report.exec_type, known) {
            (ExecType::New | ExecType::Rejected, None) => {
                let is_refused = report.exec_type == ExecType::Rejected;
                assert_eq!(
                    is_refused,
                    !matches!(report.reason, Reason::None | Reason::Held | Reason::Crossing),
                    "{report:?}"
                );
                let order = Order {
                    order_id: report.order_id,
                    refused: if is_refused { report.reason } else { Reason::None },
                    is_crossing: report.reason == Reason::Crossing,
                    crossed: 0,
                    traded: 0,
                    leaves: report.leaves.0,
                    is_over: is_refused,
                };
                self.orders.insert(number, order);
            }
            (ExecType::Fill, Some(order)) if !order.is_over => {
                order.traded += report.last_quantity.0;
                if matches!(report.reason, Reason::CrossedResting | Reason::CrossedTaking) {
                    order.crossed += report.last_quantity.0;
                }
                order.leaves = report.leaves.0;
                order.is_over = report.leaves.0 == 0;
                assert_eq!(order.traded, report.cumulative.0, "{report:?}");
            }
            (ExecType::Triggered, Some(order)) if !order.is_over => {}
            (ExecType::Restated, Some(order)) if !order.is_over => order.leaves = report.leaves.0,
            (ExecType::Canceled | ExecType::Expired, Some(order)) if !order.is_over => {
                order.is_over = true;
                order.leaves = 0;
            }
            // A refused request about no order: a mass cancel.
            (ExecType::MassCancelAccepted | ExecType::RequestRejected, None) => self.mass_cancels.push(*report),
            (ExecType::Status | ExecType::StatusEnd, _) => self.statuses.push(*report),
            (_, known) => panic!("{report:?} about {known:?}"),
        }
    }

    /// Turns until something is so.
    pub(crate) fn wait(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(
                start.elapsed() < PATIENCE,
                "{}: {what} does not happen; connected: {}, {} requests sent, {} orders answered, {} open, the last {:?}",
                self.user,
                self.is_connected(),
                self.requests(),
                self.orders.len(),
                self.open(),
                self.orders.last_key_value()
            );
            self.turn();
        }
    }

    /// Whether its last order has an answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.orders.contains_key(&self.last_order)
    }

    /// Orders that live.
    pub(crate) fn open(&self) -> usize {
        self.orders.values().filter(|order| !order.is_over).count()
    }

    /// Orders that were accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.orders.values().filter(|order| order.is_accepted()).count()
    }

    /// Lots traded.
    pub(crate) fn traded(&self) -> u64 {
        self.orders.values().map(|order| order.traded).sum()
    }
}

impl Line {
    fn new(session: SessionId, address: SocketAddr, sent: Vec<Vec<u8>>, next_receive: SequenceNumber) -> Self {
        let end = LinkEnd::Connect {
            peer: address,
            local: None,
        };
        let mut ltp = ltp::Config::for_client(session, WINDOW, native::MAX_MESSAGE_LENGTH);
        // What `keys.txt` of the market says.
        ltp.key = Some(Key {
            id: 7,
            secret: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        });
        ltp.heartbeat = types::Duration::from_millis(10);
        ltp.dead_after = 50;
        let carrier = CarrierConfig::Udp(UdpOptions::default());
        let resume = Resume {
            next_send: SequenceNumber(sent.len() as u64 + 1),
            next_receive,
        };
        let config = LinkConfig::Ltp(LtpLinkConfig {
            end,
            ltp,
            carrier,
            second: None,
        });
        let mut link = AnyLink::new(&config, now().0, resume).expect("a link");
        for (number, message) in (1..).zip(&sent) {
            link.restore(SequenceNumber(number), message);
        }
        let received = Vec::new();
        Self { link, sent, received }
    }

    fn send(&mut self, message: &[u8]) {
        self.link.send(message, 0);
        self.sent.push(message.to_vec());
        self.link.flush(now(), u64::MAX);
    }

    /// The next message, its number and length.
    fn receive(&mut self, message: &mut [u8]) -> Option<(SequenceNumber, usize)> {
        loop {
            match self.link.poll(now(), message) {
                Some(LinkEvent::Message { sequence, length }) => return Some((sequence, length)),
                Some(LinkEvent::Recall { from, to }) => {
                    for number in from.0..to.0 {
                        let place = usize::try_from(number - 1).expect("few");
                        self.link.recalled(SequenceNumber(number), &self.sent[place]);
                    }
                }
                Some(LinkEvent::Up | LinkEvent::Down(_) | LinkEvent::Credits(_) | LinkEvent::Path(_)) => {}
                None => {
                    self.link.flush(now(), u64::MAX);
                    return None;
                }
            }
        }
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    Timestamp(u64::try_from(since.as_nanos()).expect("this century"))
}

/// Messages that a trader's link holds.
const WINDOW: usize = 4_096;

impl Order {
    /// Whether the venue took it.
    pub(crate) fn is_accepted(&self) -> bool {
        self.refused == Reason::None
    }
}
