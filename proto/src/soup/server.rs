//! The server's end of a session.

use types::{SequenceNumber, Timestamp};

use super::packet::{
    Login, LoginRefusal, Packet, SessionName, write_end_of_session, write_login_accepted, write_login_rejected,
    write_sequenced, write_server_heartbeat,
};
use super::{SoupError, Timing};

/// One connection of a client.
///
/// The owner feeds it packets by [`on_packet`](Self::on_packet), decides on the login it is told of by
/// [`accept`](Self::accept) or [`reject`](Self::reject), sends what the client missed and then all news by
/// [`send`](Self::send), and calls [`on_timeout`](Self::on_timeout) when [`poll_timeout`](Self::poll_timeout) is due.
/// Whatever they write goes out on the connection in that order. After an error the connection is to be closed.
#[derive(Clone, Debug)]
pub struct ServerSession {
    timing: Timing,
    state: State,
    /// When the connection opened; from then on a login must come in time.
    opened: Timestamp,
    last_sent: Timestamp,
    last_received: Timestamp,
    /// Number of the next sequenced packet.
    next: SequenceNumber,
}

/// What a packet means for the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerEvent<'a> {
    /// The client wants in: accept or reject it, now or later.
    Login(Login),
    /// A message of the client.
    Message(&'a [u8]),
    /// The client leaves; close the connection.
    Logout,
    /// Text for a log.
    Debug(&'a [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Connected.
    AwaitingLogin,
    /// A login came; the owner decides.
    Deciding,
    /// Logged in.
    Established,
    /// Over.
    Closed,
}

impl ServerSession {
    /// A connection that was just accepted.
    #[must_use]
    pub const fn new(now: Timestamp, timing: Timing) -> Self {
        Self {
            timing,
            state: State::AwaitingLogin,
            opened: now,
            last_sent: now,
            last_received: now,
            next: SequenceNumber(1),
        }
    }

    /// A packet came in.
    ///
    /// # Errors
    /// The client may not send this now.
    pub fn on_packet<'a>(&mut self, now: Timestamp, packet: Packet<'a>) -> Result<Option<ServerEvent<'a>>, SoupError> {
        self.last_received = now;
        match (self.state, packet) {
            (State::Established, Packet::Unsequenced(payload)) => Ok(Some(ServerEvent::Message(payload))),
            (State::AwaitingLogin, Packet::LoginRequest(login)) => {
                self.state = State::Deciding;
                Ok(Some(ServerEvent::Login(login)))
            }
            (State::Deciding | State::Established, Packet::Logout) => {
                self.state = State::Closed;
                Ok(Some(ServerEvent::Logout))
            }
            (State::AwaitingLogin | State::Deciding | State::Established, Packet::ClientHeartbeat) => Ok(None),
            (State::AwaitingLogin | State::Deciding | State::Established, Packet::Debug(text)) => {
                Ok(Some(ServerEvent::Debug(text)))
            }
            _ => {
                self.state = State::Closed;
                Err(SoupError::Unexpected {
                    packet_type: packet.packet_type(),
                })
            }
        }
    }

    /// Logs the client in to `session`; the next [`send`](Self::send) has the number `next`
    /// (see [`Login::resume_from`]). Returns the length of what was written.
    ///
    /// # Panics
    /// When no login waits for a decision: see [`is_deciding`](Self::is_deciding).
    pub fn accept(&mut self, now: Timestamp, session: SessionName, next: SequenceNumber, out: &mut [u8]) -> usize {
        assert_eq!(self.state, State::Deciding, "no login waits for a decision");
        self.state = State::Established;
        self.next = next;
        self.last_sent = now;
        write_login_accepted(session, next, out)
    }

    /// Refuses the login; the connection is to be closed once this is sent. Returns the length of what was written.
    ///
    /// # Panics
    /// When no login waits for a decision: see [`is_deciding`](Self::is_deciding).
    pub fn reject(&mut self, refusal: LoginRefusal, out: &mut [u8]) -> usize {
        assert_eq!(self.state, State::Deciding, "no login waits for a decision");
        self.state = State::Closed;
        write_login_rejected(refusal, out)
    }

    /// Sends one sequenced message; returns the length of what was written.
    ///
    /// # Panics
    /// When the client is not logged in: see [`is_established`](Self::is_established).
    pub fn send(&mut self, now: Timestamp, message: &[u8], out: &mut [u8]) -> usize {
        assert_eq!(self.state, State::Established, "the client is not logged in");
        self.next = self.next.next();
        self.last_sent = now;
        write_sequenced(message, out)
    }

    /// The owner has sent packets that it wrote itself, out of a store of its own; `sequenced` of them had a number.
    pub fn on_sent(&mut self, now: Timestamp, sequenced: u64) {
        self.next = SequenceNumber(self.next.0 + sequenced);
        self.last_sent = now;
    }

    /// Ends the session: nothing more will come in it, ever. Returns the length of what was written.
    pub fn end(&mut self, out: &mut [u8]) -> usize {
        self.state = State::Closed;
        write_end_of_session(out)
    }

    /// When to call [`on_timeout`](Self::on_timeout) next; `None` once the session is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let dead = self.last_received + self.timing.dead_after;
        match self.state {
            State::AwaitingLogin => Some(self.opened + self.timing.login_within),
            State::Deciding => Some(dead),
            State::Established => Some(dead.min(self.last_sent + self.timing.heartbeat)),
            State::Closed => None,
        }
    }

    /// Writes a heartbeat if one is due; returns its length, 0 for none. Harmless when nothing is due.
    ///
    /// # Errors
    /// The client fell silent or never logged in.
    pub fn on_timeout(&mut self, now: Timestamp, out: &mut [u8]) -> Result<usize, SoupError> {
        let silent = now >= self.last_received + self.timing.dead_after;
        let error = match self.state {
            State::AwaitingLogin if now >= self.opened + self.timing.login_within => SoupError::LoginTimeout,
            State::Deciding | State::Established if silent => SoupError::Silence,
            State::Established if now >= self.last_sent + self.timing.heartbeat => {
                self.last_sent = now;
                return Ok(write_server_heartbeat(out));
            }
            _ => return Ok(0),
        };
        self.state = State::Closed;
        Err(error)
    }

    /// Whether a login waits for a decision.
    #[must_use]
    pub fn is_deciding(&self) -> bool {
        self.state == State::Deciding
    }

    /// Whether the client is logged in.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Number of the next sequenced message.
    #[must_use]
    pub const fn next_sequence(&self) -> SequenceNumber {
        self.next
    }
}
