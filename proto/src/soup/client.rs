//! The client's end of a session.

use types::{SequenceNumber, Timestamp};

use super::packet::{
    Login, LoginRefusal, Packet, SessionName, Text, write_client_heartbeat, write_login_request, write_logout,
    write_unsequenced,
};
use super::{SoupError, Timing};

/// One connection to a server.
///
/// The owner logs in by [`login`](Self::login), feeds packets by [`on_packet`](Self::on_packet), sends by
/// [`send`](Self::send), and calls [`on_timeout`](Self::on_timeout) when [`poll_timeout`](Self::poll_timeout) is due.
/// For the next connection it remembers the session's name and [`next_sequence`](Self::next_sequence), and logs in with
/// them. After an error the connection is to be closed.
#[derive(Clone, Debug)]
pub struct ClientSession {
    timing: Timing,
    state: State,
    last_sent: Timestamp,
    /// Before the login is answered: when it was sent.
    last_received: Timestamp,
    /// The session asked for, then the one that runs.
    session: SessionName,
    /// The number asked for (0 for whatever comes), then the one that comes next.
    next: SequenceNumber,
}

/// What a packet means for the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientEvent<'a> {
    /// Logged in.
    Accepted {
        /// The session that runs.
        session: SessionName,
        /// Number of the first message that will come.
        next: SequenceNumber,
    },
    /// Not logged in; close the connection.
    Rejected(LoginRefusal),
    /// A message of the server.
    Message {
        /// Its number.
        sequence: SequenceNumber,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// Data outside the sequence: it has no number and is not sent again.
    Unsequenced(&'a [u8]),
    /// Nothing more will come in this session; close the connection.
    EndOfSession,
    /// Text for a log.
    Debug(&'a [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Connected.
    Idle,
    /// The login is sent.
    LoggingIn,
    /// Logged in.
    Established,
    /// Over.
    Closed,
}

impl ClientSession {
    /// A connection that was just made.
    #[must_use]
    pub const fn new(now: Timestamp, timing: Timing) -> Self {
        Self {
            timing,
            state: State::Idle,
            last_sent: now,
            last_received: now,
            session: Text::BLANK,
            next: SequenceNumber(0),
        }
    }

    /// Logs in; returns the length of what was written.
    ///
    /// # Panics
    /// When it was called before on this connection.
    pub fn login(&mut self, now: Timestamp, login: &Login, out: &mut [u8]) -> usize {
        assert_eq!(self.state, State::Idle, "one login a connection");
        self.state = State::LoggingIn;
        self.session = login.session;
        self.next = SequenceNumber(login.sequence);
        self.last_sent = now;
        self.last_received = now;
        write_login_request(login, out)
    }

    /// A packet came in.
    ///
    /// # Errors
    /// The server may not send this now, or logs us in to something else than we asked for.
    pub fn on_packet<'a>(&mut self, now: Timestamp, packet: Packet<'a>) -> Result<Option<ClientEvent<'a>>, SoupError> {
        // Before the login is answered, nothing else puts its deadline off.
        if self.state == State::Established {
            self.last_received = now;
        }
        match (self.state, packet) {
            (State::Established, Packet::Sequenced(payload)) => {
                let sequence = self.next;
                self.next = sequence.next();
                Ok(Some(ClientEvent::Message { sequence, payload }))
            }
            (State::Established, Packet::Unsequenced(payload)) => Ok(Some(ClientEvent::Unsequenced(payload))),
            (State::LoggingIn, Packet::LoginAccepted { session, next }) => {
                self.last_received = now;
                self.on_accepted(session, next).map(Some)
            }
            (State::LoggingIn, Packet::LoginRejected(refusal)) => {
                self.state = State::Closed;
                Ok(Some(ClientEvent::Rejected(refusal)))
            }
            (State::LoggingIn | State::Established, Packet::EndOfSession) => {
                self.state = State::Closed;
                Ok(Some(ClientEvent::EndOfSession))
            }
            (State::Idle | State::LoggingIn | State::Established, Packet::ServerHeartbeat) => Ok(None),
            (State::Idle | State::LoggingIn | State::Established, Packet::Debug(text)) => {
                Ok(Some(ClientEvent::Debug(text)))
            }
            _ => {
                self.state = State::Closed;
                Err(SoupError::Unexpected {
                    packet_type: packet.packet_type(),
                })
            }
        }
    }

    /// The login was accepted: for what we asked for?
    fn on_accepted(&mut self, session: SessionName, next: SequenceNumber) -> Result<ClientEvent<'static>, SoupError> {
        self.state = State::Closed;
        if self.session != Text::BLANK && self.session != session {
            return Err(SoupError::WrongSession);
        }
        if self.next.0 != 0 && self.next != next {
            return Err(SoupError::Gap {
                expected: self.next,
                received: next,
            });
        }
        self.state = State::Established;
        self.session = session;
        self.next = next;
        Ok(ClientEvent::Accepted { session, next })
    }

    /// Sends one message; returns the length of what was written.
    ///
    /// # Panics
    /// When not logged in: see [`is_established`](Self::is_established).
    pub fn send(&mut self, now: Timestamp, message: &[u8], out: &mut [u8]) -> usize {
        assert_eq!(self.state, State::Established, "not logged in");
        self.last_sent = now;
        write_unsequenced(message, out)
    }

    /// The owner has sent packets that it wrote itself, out of a store of its own.
    pub fn on_sent(&mut self, now: Timestamp) {
        self.last_sent = now;
    }

    /// Says goodbye; the connection is to be closed once this is sent. Returns the length of what was written.
    pub fn logout(&mut self, out: &mut [u8]) -> usize {
        self.state = State::Closed;
        write_logout(out)
    }

    /// When to call [`on_timeout`](Self::on_timeout) next; `None` while there is nothing to wait for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        match self.state {
            State::LoggingIn => Some(self.last_received + self.timing.login_within),
            State::Established => {
                let dead = self.last_received + self.timing.dead_after;
                Some(dead.min(self.last_sent + self.timing.heartbeat))
            }
            State::Idle | State::Closed => None,
        }
    }

    /// Writes a heartbeat if one is due; returns its length, 0 for none. Harmless when nothing is due.
    ///
    /// # Errors
    /// The server fell silent or never answered the login.
    pub fn on_timeout(&mut self, now: Timestamp, out: &mut [u8]) -> Result<usize, SoupError> {
        let error = match self.state {
            State::LoggingIn if now >= self.last_received + self.timing.login_within => SoupError::LoginTimeout,
            State::Established if now >= self.last_received + self.timing.dead_after => SoupError::Silence,
            State::Established if now >= self.last_sent + self.timing.heartbeat => {
                self.last_sent = now;
                return Ok(write_client_heartbeat(out));
            }
            _ => return Ok(0),
        };
        self.state = State::Closed;
        Err(error)
    }

    /// Whether we are logged in.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// The session we are logged in to.
    #[must_use]
    pub const fn session(&self) -> SessionName {
        self.session
    }

    /// Number of the message that comes next; what to ask for in the next login.
    #[must_use]
    pub const fn next_sequence(&self) -> SequenceNumber {
        self.next
    }
}
