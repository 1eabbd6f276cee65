//! The link over tuned TCP: SoupBinTCP, numbered and acknowledged in both directions.
//!
//! Soup numbers the acceptor's messages (S packets, by counting) and lets a login ask for them from a number on. It does
//! nothing for the initiator's messages (U packets), and it has no acknowledgement, so that a server would have to keep
//! everything. This link adds both with one message, the native protocol's RequestsReceived: "I have received so many of
//! your messages". It travels as a U packet in either direction and is not counted itself.
//!
//! ```text
//! initiator                                    acceptor
//!   L  login, next S number wanted     ──────▶   checks the name, the password, and that its ring reaches back
//!                                      ◀──────   A  accepted from that number
//!                                      ◀──────   U  RequestsReceived: how many U messages it has
//!   up; U  RequestsReceived            ──────▶   up
//!   U messages from there on           ──────▶
//!                                      ◀──────   S messages from the number asked for
//!   U  RequestsReceived                ◀─────▶   U  RequestsReceived: after a quarter window, and with heartbeats
//! ```
//!
//! What an end counts as received is what its `poll` has handed out. Bytes that a broken connection had delivered
//! but nobody had polled are thrown away and come again.
//!
//! A new login takes the place of a connection that is up: the peer knows best that its old connection is dead. A peer
//! that acknowledges nothing for as long as a silent one may be silent is given up like it.

mod acceptor;
mod ack;
mod config;
mod connector;
mod outbox;
mod refusal;
mod ring;
mod session;
#[cfg(test)]
mod tests;

pub use config::TcpLinkConfig;

use super::{DownReason, Link, LinkCounters, LinkEnd, LinkEvent, LinkState, LinkView, RefusedPeer, Resume};
use crate::buffer::StreamBuffer;
use crate::error::SetupError;
use crate::options::Readback;
use crate::tcp::{Received, Retransmits, TcpListener, TcpStream};
use acceptor::{Acceptor, Candidate};
use ack::{parse_ack, write_ack};
pub(super) use connector::Connector;
use outbox::Outbox;
use proto::ltp::Refusal;
use proto::soup::{ClientSession, HEADER_LENGTH, Login, SessionName, parse};
use refusal::write_refusal;
use session::{Incoming, Role, Session};
use std::io;
use std::net::SocketAddr;
use types::{Duration, SequenceNumber, Timestamp};

/// Bytes received at once, at most.
const INPUT_BYTES: usize = 64 * 1024;

/// Receives in one `poll`, at most: a peer that sends faster than it is read cannot hold the turn.
const RECEIVES_MAX: usize = 4;

/// Room for what the link itself says: a login, or an acceptance with an acknowledgement. It is written only when what
/// was there has left, so it does not pile up behind a slow peer.
const CONTROL_BYTES: usize = 256;

/// The window divided by this is how many messages are received before they are acknowledged.
const ACKS_PER_WINDOW: u64 = 4;

/// One end of a link over TCP.
#[derive(Debug)]
pub struct TcpLink {
    config: TcpLinkConfig,
    opener: Opener,
    live: Option<Live>,
    input: StreamBuffer,
    control: StreamBuffer,
    outbox: Outbox,
    inbox: Inbox,
    /// What `flush` found and the next `poll` tells.
    failed: Option<DownReason>,
    /// Why the link could not come up, as last told: one reason is told once, however many attempts fail by it.
    told: Option<DownReason>,
    /// Whom this end refused last.
    refused: Option<RefusedPeer>,
    counters: LinkCounters,
}

/// How a connection comes about.
#[derive(Debug)]
enum Opener {
    Initiator(Box<Connector>),
    Acceptor(Box<Acceptor>),
}

/// A connection.
#[derive(Debug)]
struct Live {
    peer: SocketAddr,
    stream: TcpStream,
    session: Session,
    state: State,
    /// The last receive took all there was: the next one can wait for the next turn.
    drained: bool,
    /// When the peer last showed that it takes what it is sent.
    progress: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Initiator: the login is not answered yet.
    LoggingIn,
    /// Initiator: accepted; the acceptor has not said yet where to go on.
    Accepted,
    /// Acceptor: has said where to go on; the initiator has not shown yet that it does.
    Answered,
    /// Numbers are agreed.
    Up,
}

/// What comes in.
#[derive(Debug)]
struct Inbox {
    /// Messages handed out, counted from the first.
    received: u64,
    /// How many of them the peer was told of, and when.
    acknowledged: u64,
    acknowledged_at: Timestamp,
    /// Acknowledge after so many, or after this long.
    ack_every: u64,
    ack_after: Duration,
}

impl TcpLink {
    /// Builds one end; all memory is allocated here. The initiator begins to connect with the first `poll`, the acceptor
    /// listens from now on.
    ///
    /// # Errors
    /// The configuration contradicts itself, or the acceptor's address cannot be had.
    ///
    /// # Panics
    /// When a resume number is 0: numbers start at 1.
    pub fn new(config: &TcpLinkConfig, resume: Resume) -> Result<Self, SetupError> {
        assert!(
            resume.next_send.0 > 0 && resume.next_receive.0 > 0,
            "sequence numbers start at 1"
        );
        config.check()?;
        let (role, opener) = match config.end {
            LinkEnd::Connect { peer, local } => {
                let retry = (config.retry_min, config.retry_max);
                let connector = Connector::new(peer, local, config.tcp, config.timing.login_within, retry);
                (Role::Initiator, Opener::Initiator(Box::new(connector)))
            }
            LinkEnd::Listen { local } => {
                let listener = TcpListener::bind(local, &config.tcp)?;
                (
                    Role::Acceptor,
                    Opener::Acceptor(Box::new(Acceptor::new(listener, config.timing))),
                )
            }
        };
        Ok(Self {
            opener,
            live: None,
            input: StreamBuffer::new(INPUT_BYTES),
            control: StreamBuffer::new(CONTROL_BYTES),
            outbox: Outbox::new(role, config.window, config.packet_max(), resume.next_send),
            inbox: Inbox {
                received: resume.next_receive.0 - 1,
                acknowledged: resume.next_receive.0 - 1,
                acknowledged_at: Timestamp::NONE,
                ack_every: (config.window as u64 / ACKS_PER_WINDOW).max(1),
                ack_after: config.timing.heartbeat,
            },
            failed: None,
            told: None,
            refused: None,
            counters: LinkCounters::default(),
            config: *config,
        })
    }

    /// The acceptor's address, once port 0 has become one; `None` for an initiator.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.opener {
            Opener::Acceptor(acceptor) => acceptor.local_addr(),
            Opener::Initiator(_) => None,
        }
    }

    /// What the kernel gave for each socket option of the connection there is.
    #[must_use]
    pub fn readback(&self) -> Option<&Readback> {
        self.live.as_ref().map(|live| live.stream.readback())
    }

    /// Segments that the kernel sent again on the connection there is; none without one. A system call.
    #[must_use]
    pub fn kernel_retransmits(&self) -> Retransmits {
        let live = self.live.as_ref();
        live.and_then(|live| live.stream.retransmits().ok()).unwrap_or_default()
    }

    /// What happened but for messages.
    fn poll_change(&mut self, now: Timestamp) -> Option<LinkEvent> {
        if let Some(reason) = self.failed.take() {
            return self.down(now, reason);
        }
        if let Some(event) = self.open(now) {
            return Some(event);
        }
        let range = self.is_up().then(|| self.outbox.ask())??;
        Some(LinkEvent::Recall {
            from: SequenceNumber(range.start),
            to: SequenceNumber(range.end),
        })
    }

    /// Makes a connection if there is none, or takes a new one in the place of the old.
    fn open(&mut self, now: Timestamp) -> Option<LinkEvent> {
        match &mut self.opener {
            Opener::Initiator(_) if self.live.is_some() => None,
            Opener::Initiator(connector) => match connector.turn(now) {
                Ok(None) => None,
                Ok(Some(stream)) => {
                    let peer = connector.peer();
                    self.log_in(now, peer, stream);
                    None
                }
                Err(error) => {
                    self.counters.unreachable += 1;
                    self.down(now, io_reason(&error))
                }
            },
            Opener::Acceptor(acceptor) => {
                let candidate = acceptor.turn(now, &mut self.counters)?;
                self.decide(now, candidate)
            }
        }
    }

    /// Initiator: the connection is there.
    fn log_in(&mut self, now: Timestamp, peer: SocketAddr, stream: TcpStream) {
        self.counters.heard += 1;
        let mut session = ClientSession::new(now, self.config.timing);
        let login = Login {
            user_name: self.config.user_name,
            password: self.config.password,
            session: self.config.session,
            sequence: self.inbox.received + 1,
        };
        let length = session.login(now, &login, self.control.room());
        self.control.commit(length);
        self.inbox.acknowledged = self.inbox.received;
        self.inbox.acknowledged_at = now;
        self.live = Some(Live::new(now, peer, stream, Session::Client(session), State::LoggingIn));
    }

    /// Acceptor: somebody wants to log in.
    fn decide(&mut self, now: Timestamp, candidate: Candidate) -> Option<LinkEvent> {
        let login = candidate.login;
        if let Err(refusal) = self.check(&login) {
            self.refuse(candidate, refusal);
            return None;
        }
        if let Err(refusal) = self.outbox.resume(login.sequence) {
            // It is the peer, so its old connection is dead; but it cannot go on.
            self.refuse(candidate, refusal);
            return self.down(now, DownReason::Incompatible(refusal));
        }
        let replaces = self.disconnect(now);
        self.adopt(now, candidate);
        if replaces {
            self.counters.downs += 1;
            return Some(LinkEvent::Down(DownReason::Replaced));
        }
        None
    }

    /// Acceptor: whether it is the peer that wants to log in, for this session.
    fn check(&self, login: &Login) -> Result<(), Refusal> {
        if login.user_name != self.config.user_name || login.password != self.config.password {
            return Err(Refusal::Credentials);
        }
        if login.session != self.config.session {
            // A link's session is a number; what is none is 0, which no session has.
            let number = |name: SessionName| name.as_str().parse().unwrap_or(0);
            let (given, held) = (number(login.session), number(self.config.session));
            return Err(Refusal::Session { given, held });
        }
        Ok(())
    }

    /// Acceptor: answers that the login is refused, and why.
    fn refuse(&mut self, candidate: Candidate, reason: Refusal) {
        self.counters.refused += 1;
        self.refused = Some(RefusedPeer {
            from: Some(candidate.from),
            user: Some(candidate.login.user_name),
            reason: reason.into(),
        });
        candidate.refuse(reason);
    }

    /// Acceptor: this connection is the link's from now on.
    fn adopt(&mut self, now: Timestamp, candidate: Candidate) {
        let rest = candidate.rest();
        self.input.room()[..rest.len()].copy_from_slice(rest);
        self.input.commit(rest.len());
        let peer = candidate.from;
        let (login, stream, mut session) = candidate.into_parts();
        let next = SequenceNumber(login.sequence);
        let length = session.accept(now, self.config.session, next, self.control.room());
        self.control.commit(length);
        self.live = Some(Live::new(now, peer, stream, Session::Server(session), State::Answered));
        self.acknowledge(now);
    }

    /// Numbers are agreed.
    fn up(&mut self) -> LinkEvent {
        self.counters.ups += 1;
        self.told = None;
        if let Some(readback) = self.readback() {
            tracing::info!("TCP link of session {}: {readback}", self.config.session.as_str());
        }
        if let Opener::Initiator(connector) = &mut self.opener {
            connector.on_up();
        }
        LinkEvent::Up
    }

    /// The connection, or the attempt at one, is over. Gives the event if the owner has not heard it yet.
    fn down(&mut self, now: Timestamp, reason: DownReason) -> Option<LinkEvent> {
        match reason {
            DownReason::Malformed => self.counters.malformed += 1,
            DownReason::Incompatible(refusal) => self.tell(refusal),
            DownReason::RefusedBecause(_) | DownReason::Refused => self.counters.refused_by_peer += 1,
            _ => {}
        }
        if is_refusal(reason)
            && let Opener::Initiator(connector) = &mut self.opener
        {
            connector.on_refusal();
        }
        if self.disconnect(now) {
            self.counters.downs += 1;
        } else if self.told == Some(reason) {
            return None;
        }
        self.told = Some(reason);
        Some(LinkEvent::Down(reason))
    }

    /// Tells the peer of the connection there is why this end refuses it.
    fn tell(&mut self, reason: Refusal) {
        let Some(live) = &mut self.live else { return };
        self.counters.refused += 1;
        self.refused = Some(RefusedPeer {
            from: Some(live.peer),
            user: None,
            reason: reason.into(),
        });
        if self.control.is_empty() && self.outbox.is_between_packets() {
            let mut packet = [0; CONTROL_BYTES];
            let length = write_refusal(reason, &mut packet);
            // A peer that is gone needs no answer.
            let _ = live.stream.send(&packet[..length]);
        }
    }

    /// Drops the connection and everything half done on it. Gives whether it was up.
    fn disconnect(&mut self, now: Timestamp) -> bool {
        self.input.clear();
        self.control.clear();
        self.failed = None;
        if let Opener::Initiator(connector) = &mut self.opener {
            connector.on_down(now);
        }
        self.live.take().is_some_and(|live| live.state == State::Up)
    }

    /// The peer has hung up, as a send found out. What it had sent before may say why.
    fn last_words(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        if let Some(live) = &mut self.live {
            live.drained = false;
        }
        match self.receive(now, buffer) {
            Ok(event) => event,
            Err(reason) => {
                self.failed = Some(reason);
                None
            }
        }
    }

    /// Handles packets until one gives an event, receiving when none is left.
    fn receive(&mut self, now: Timestamp, buffer: &mut [u8]) -> Result<Option<LinkEvent>, DownReason> {
        for _ in 0..RECEIVES_MAX {
            if let Some(event) = self.next_event(now, buffer)? {
                return Ok(Some(event));
            }
            let Some(live) = &mut self.live else { return Ok(None) };
            if live.drained {
                live.drained = false;
                return Ok(None);
            }
            let room = self.input.room().len();
            match self
                .input
                .receive(&mut live.stream)
                .map_err(|error| io_reason(&error))?
            {
                Received::Bytes(length) => {
                    live.drained = length < room;
                    self.counters.bytes_received += length as u64;
                }
                Received::Nothing => return Ok(None),
                Received::Closed => return Err(DownReason::Closed),
            }
        }
        Ok(None)
    }

    /// Handles packets that are there until one gives an event.
    fn next_event(&mut self, now: Timestamp, buffer: &mut [u8]) -> Result<Option<LinkEvent>, DownReason> {
        let Some(live) = &mut self.live else { return Ok(None) };
        while let Some((packet, length)) = parse(self.input.bytes()).map_err(|_| DownReason::Malformed)? {
            let event = match (live.state, live.session.on_packet(now, packet)?) {
                (State::LoggingIn | State::Accepted | State::Up, Incoming::Nothing) => None,
                (State::LoggingIn, Incoming::Accepted) => {
                    live.state = State::Accepted;
                    None
                }
                (State::Accepted, Incoming::Ack(count)) => {
                    let resumed = self.outbox.resume(count.saturating_add(1));
                    resumed.map_err(DownReason::Incompatible)?;
                    live.state = State::Up;
                    live.progress = now;
                    Some(LinkEvent::Up)
                }
                // The packet itself is for the next call.
                (State::Answered, _) => {
                    live.state = State::Up;
                    live.progress = now;
                    return Ok(Some(self.up()));
                }
                (State::Up, Incoming::Ack(count)) => {
                    if self.outbox.on_ack(count)? {
                        live.progress = now;
                    }
                    None
                }
                (State::Up, Incoming::Message(payload)) if payload.len() <= self.config.max_message => {
                    buffer[..payload.len()].copy_from_slice(payload);
                    self.inbox.received += 1;
                    self.counters.received += 1;
                    let sequence = SequenceNumber(self.inbox.received);
                    Some(LinkEvent::Message {
                        sequence,
                        length: payload.len(),
                    })
                }
                _ => return Err(DownReason::Malformed),
            };
            self.input.consume(length);
            match event {
                None => {}
                Some(LinkEvent::Up) => {
                    // The acceptor waits for a sign of it.
                    self.acknowledge(now);
                    return Ok(Some(self.up()));
                }
                Some(event) => return Ok(Some(event)),
            }
        }
        Ok(None)
    }

    /// Says what is due and sends what may leave.
    fn transmit(&mut self, now: Timestamp, watermark: u64) -> Result<(), DownReason> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let up = live.state == State::Up;
        let mut heartbeat = [0; HEADER_LENGTH];
        let heartbeat_length = live.session.on_timeout(now, &mut heartbeat)?;
        if !up || self.outbox.is_acknowledged() {
            live.progress = now;
        } else if now.since(live.progress) >= self.config.timing.dead_after {
            return Err(DownReason::Stalled);
        }
        // What waits to leave is as good as a heartbeat, and a later acknowledgement says more.
        if self.control.is_empty() {
            if up && self.inbox.is_ack_due(now) {
                self.acknowledge(now);
            } else {
                self.control.room()[..heartbeat_length].copy_from_slice(&heartbeat[..heartbeat_length]);
                self.control.commit(heartbeat_length);
            }
        }
        let Some(live) = &mut self.live else { return Ok(()) };
        let watermark = up.then_some(watermark);
        let messages = self
            .outbox
            .transmit(&mut live.stream, &mut self.control, watermark, &mut self.counters)
            .map_err(|error| io_reason(&error))?;
        if messages > 0 {
            live.session.on_sent(now, messages);
        }
        Ok(())
    }

    /// Queues an acknowledgement of everything handed out.
    fn acknowledge(&mut self, now: Timestamp) {
        let length = write_ack(self.inbox.received, self.control.room());
        self.control.commit(length);
        self.inbox.acknowledged = self.inbox.received;
        self.inbox.acknowledged_at = now;
        if let Some(live) = &mut self.live {
            live.session.on_sent(now, 0);
        }
    }
}

impl Link for TcpLink {
    fn room(&self) -> usize {
        self.outbox.room()
    }

    fn is_up(&self) -> bool {
        self.failed.is_none() && self.live.as_ref().is_some_and(|live| live.state == State::Up)
    }

    fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        assert!(
            message.len() <= self.config.max_message,
            "message of {} bytes is too long",
            message.len()
        );
        assert!(
            parse_ack(message).is_none(),
            "RequestsReceived is the link's own message"
        );
        self.outbox.push(message, position)
    }

    fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        assert!(
            message.len() <= self.config.max_message,
            "message of {} bytes is too long",
            message.len()
        );
        self.outbox.restore(sequence, message);
    }

    fn recalled(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.outbox.bring(sequence.0, message);
    }

    fn not_recalled(&mut self, sequence: SequenceNumber) {
        if let Some(refusal) = self.outbox.miss(sequence.0) {
            self.failed = Some(DownReason::Incompatible(refusal));
        }
    }

    fn poll(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        assert!(
            buffer.len() >= self.config.max_message,
            "the buffer holds the longest message"
        );
        if self.failed == Some(DownReason::Closed)
            && let Some(event) = self.last_words(now, buffer)
        {
            return Some(event);
        }
        if let Some(event) = self.poll_change(now) {
            return Some(event);
        }
        match self.receive(now, buffer) {
            Ok(event) => event,
            Err(reason) => self.down(now, reason),
        }
    }

    fn poll_recall(&mut self, now: Timestamp) -> Option<LinkEvent> {
        // What is sent again needs no acknowledgement to make room: it comes from the journal for each connection anew.
        if self.outbox.is_recalling() {
            self.poll_change(now)
        } else {
            None
        }
    }

    fn flush(&mut self, now: Timestamp, watermark: u64) {
        if self.failed.is_none()
            && let Err(reason) = self.transmit(now, watermark)
        {
            self.failed = Some(reason);
        }
    }

    fn counters(&self) -> LinkCounters {
        self.counters
    }

    fn view(&self) -> LinkView {
        let state = match (&self.live, &self.opener) {
            (Some(live), _) if live.state == State::Up => LinkState::Up,
            (Some(_), _) => LinkState::Agreeing,
            (None, Opener::Initiator(_)) => LinkState::Calling,
            (None, Opener::Acceptor(_)) => LinkState::Listening,
        };
        let peer = match (&self.live, self.config.end) {
            (Some(live), _) => Some(live.peer),
            (None, LinkEnd::Connect { peer, .. }) => Some(peer),
            (None, LinkEnd::Listen { .. }) => None,
        };
        let outgoing = self.outbox.standing();
        LinkView {
            transport: "TCP",
            carrier: None,
            state,
            epoch: None,
            peer,
            next_send: SequenceNumber(outgoing.next),
            next_receive: SequenceNumber(self.inbox.received + 1),
            peer_received: SequenceNumber(outgoing.acknowledged),
            peer_durable: None,
            durable: None,
            queued: outgoing.next - outgoing.sending,
            in_flight: outgoing.sending - outgoing.acknowledged,
            credits: None,
            refused: self.refused,
            counters: self.counters,
            roce: None,
        }
    }
}

impl Live {
    const fn new(now: Timestamp, peer: SocketAddr, stream: TcpStream, session: Session, state: State) -> Self {
        Self {
            peer,
            stream,
            session,
            state,
            drained: false,
            progress: now,
        }
    }
}

impl Inbox {
    /// Whether the peer should hear how far we are.
    fn is_ack_due(&self, now: Timestamp) -> bool {
        let waiting = self.received - self.acknowledged;
        waiting >= self.ack_every || (waiting > 0 && now.since(self.acknowledged_at) >= self.ack_after)
    }
}

/// Whether a person has to look before it can be otherwise.
const fn is_refusal(reason: DownReason) -> bool {
    matches!(
        reason,
        DownReason::Incompatible(_) | DownReason::RefusedBecause(_) | DownReason::Refused
    )
}

fn io_reason(error: &io::Error) -> DownReason {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            DownReason::Closed
        }
        kind => DownReason::Io(kind),
    }
}
