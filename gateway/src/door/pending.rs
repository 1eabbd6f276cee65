//! A connection that is not a client yet.

use super::Hello;
use super::claim::Claim;
use super::directory::{Destination, Directory, Origin};
use super::logon::{FixLogon, first_message, without_passwords};
use super::refusal::{Refusal, refuse_fix};
use crate::config::Secret;
use crate::limits::MAX_FRAME_LENGTH;
use crate::stream::Stream;
use net::tcp::Received;
use proto::fix;
use proto::soup::{self, Login, Packet, Password, ServerSession, SessionName, UserName};
use ring::digest;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use types::Timestamp;

/// A connection at the door.
pub(super) struct Pending {
    /// `None` while a thread has it.
    stream: Option<Stream>,
    pub(super) peer: SocketAddr,
    pub(super) opened: Timestamp,
    /// Tells it from others that had its place before.
    pub(super) serial: u64,
    wire: Wire,
    bytes: Box<[u8]>,
    length: usize,
    pub(super) stage: Stage,
}

/// What a listener is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    Fix,
    FixTls,
    Native,
}

enum Wire {
    Fix,
    Native {
        server: ServerSession,
        /// What it wants in with; blank until it has said so.
        login: Login,
    },
}

/// How far a connection has come.
pub(super) enum Stage {
    /// Its first message is awaited.
    Listening,
    /// Something of its TLS handshake has come, and waits for a thread.
    Greeting,
    /// A thread goes on with the handshake.
    Shaking,
    /// It has said who it is, and its password waits to be held against this.
    Claiming(Arc<Secret>),
    /// A thread does that.
    Checking(Arc<Secret>),
    /// It may come in, as soon as there is room in the queue to its shard.
    Admitted(Destination),
    /// It is refused, and told so at that time.
    Refused(Refusal, Timestamp),
}

/// Why a connection ends at the door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The peer closed.
    Closed,
    Malformed,
    /// It broke TLS, or its certificate is not accepted.
    Tls,
    /// It has said nothing for too long.
    Silent,
    /// It has said nothing, and another wants its place.
    GaveWay,
    Refused(Refusal),
}

/// What a receive led to.
pub(super) enum Heard {
    /// Nothing whole yet. So many garbled messages were skipped.
    Nothing { garbled: u64 },
    /// Its first message is there.
    Claim,
}

/// A login that has not come.
const BLANK: Login = Login {
    user_name: UserName::BLANK,
    password: Password::BLANK,
    session: SessionName::BLANK,
    sequence: 0,
};

impl Pending {
    /// Memory of one, without its struct.
    pub(super) const BUFFER_BYTES: usize = MAX_FRAME_LENGTH;

    pub(super) fn new(stream: Stream, peer: SocketAddr, protocol: Protocol, now: Timestamp, serial: u64) -> Self {
        let wire = match protocol {
            Protocol::Fix | Protocol::FixTls => Wire::Fix,
            Protocol::Native => Wire::Native {
                server: ServerSession::new(now, soup::Timing::default()),
                login: BLANK,
            },
        };
        Self {
            stream: Some(stream),
            peer,
            opened: now,
            serial,
            wire,
            bytes: vec![0; Self::BUFFER_BYTES].into_boxed_slice(),
            length: 0,
            stage: Stage::Listening,
        }
    }

    /// Its socket; `None` while a thread has it.
    pub(super) const fn stream(&self) -> Option<&Stream> {
        self.stream.as_ref()
    }

    /// Whether its TLS handshake is not done.
    pub(super) fn is_shaking_hands(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_shaking_hands)
    }

    /// Gives its socket away for a step of the handshake.
    pub(super) fn start_shaking(&mut self) -> Option<Stream> {
        self.stage = Stage::Shaking;
        self.stream.take()
    }

    /// Has its socket back, with what became of the step.
    pub(super) fn end_shaking(&mut self, stream: Stream, outcome: io::Result<()>) -> Result<(), End> {
        self.stage = Stage::Listening;
        self.stream = Some(stream);
        outcome.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => End::Tls,
            _ => End::Closed,
        })
    }

    /// Whether another may have its place: it has not said who it is, or is refused anyway.
    pub(super) const fn may_give_way(&self) -> bool {
        matches!(self.stage, Stage::Listening | Stage::Greeting | Stage::Refused(..))
    }

    /// Receives what is there.
    pub(super) fn receive(&mut self, now: Timestamp) -> Result<Heard, End> {
        let Some(stream) = &mut self.stream else {
            return Ok(Heard::Nothing { garbled: 0 });
        };
        match stream.recv(&mut self.bytes[self.length..]) {
            Ok(Received::Bytes(count)) => self.length += count,
            Ok(Received::Nothing) => return Ok(Heard::Nothing { garbled: 0 }),
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(End::Tls),
            Ok(Received::Closed) | Err(_) => return Err(End::Closed),
        }
        match self.wire {
            Wire::Fix => self.hear_fix(),
            Wire::Native { .. } => self.hear_native(now),
        }
    }

    /// Looks for a Logon at the start of what was received. Garbled bytes before it are skipped.
    fn hear_fix(&mut self) -> Result<Heard, End> {
        let mut garbled = 0;
        loop {
            match fix::frame(&self.bytes[..self.length]) {
                fix::Frame::Incomplete if self.length == self.bytes.len() => return Err(End::Malformed),
                fix::Frame::Incomplete => return Ok(Heard::Nothing { garbled }),
                fix::Frame::Garbled(skip, _) => {
                    garbled += 1;
                    self.take(skip);
                }
                fix::Frame::Message(length) if FixLogon::parse(&self.bytes[..length]).is_logon() => {
                    return Ok(Heard::Claim);
                }
                fix::Frame::TooLong(_) if !self.has_header() => return Ok(Heard::Nothing { garbled }),
                fix::Frame::TooLong(_) => return Err(End::Refused(Refusal::TooLong)),
                fix::Frame::Message(_) => return Err(End::Malformed),
            }
        }
    }

    /// Whether the whole header of a message that is too long is there, or as much as there is room for: whom the
    /// refusal goes to stands in it.
    fn has_header(&self) -> bool {
        let logon = self.logon();
        let is_named = !logon.sender_comp_id.is_empty() && !logon.target_comp_id.is_empty();
        is_named || self.length == self.bytes.len()
    }

    /// Who it says it is.
    pub(super) fn claim_for_log(&self) -> Claim<'_> {
        match &self.wire {
            Wire::Fix => Claim::of_fix(&self.bytes[..self.length]),
            Wire::Native { login, .. } if login.user_name.as_str().is_empty() => Claim::Nothing,
            Wire::Native { login, .. } => Claim::of_native(login),
        }
    }

    /// Looks for a login at the start of what was received. Heartbeats may come before it.
    fn hear_native(&mut self, now: Timestamp) -> Result<Heard, End> {
        let Wire::Native { server, login } = &mut self.wire else {
            return Err(End::Malformed);
        };
        let mut used = 0;
        while !server.is_deciding()
            && let Some((packet, length)) = soup::parse(&self.bytes[used..self.length]).map_err(|_| End::Malformed)?
        {
            used += length;
            server.on_packet(now, packet).map_err(|_| End::Malformed)?;
            if let Packet::LoginRequest(request) = packet {
                *login = request;
            }
        }
        let heard = if server.is_deciding() {
            Heard::Claim
        } else {
            Heard::Nothing { garbled: 0 }
        };
        self.take(used);
        Ok(heard)
    }

    /// Looks who it says it is: what its password must be, or where it goes when it needs none.
    pub(super) fn claim(&self, now: Timestamp, directory: &mut Directory) -> Result<Stage, Refusal> {
        let from = self.origin();
        let secret = match &self.wire {
            Wire::Fix => directory.fix_secret(&self.logon(), &from)?,
            Wire::Native { login, .. } => directory.native(login.user_name.as_str(), &from)?.1,
        };
        match secret {
            Some(secret) => Ok(Stage::Claiming(secret)),
            None => self.destination(now, directory).map(Stage::Admitted),
        }
    }

    /// Where it goes, now that it is who it says.
    pub(super) fn destination(&self, now: Timestamp, directory: &mut Directory) -> Result<Destination, Refusal> {
        match &self.wire {
            Wire::Fix => directory.fix(now, &self.logon()),
            Wire::Native { login, .. } => Ok(directory.native(login.user_name.as_str(), &self.origin())?.0),
        }
    }

    /// The password it came with.
    pub(super) fn password(&self) -> Vec<u8> {
        match &self.wire {
            Wire::Fix => self.logon().password.to_vec(),
            Wire::Native { login, .. } => login.password.as_str().as_bytes().to_vec(),
        }
    }

    /// What its shard gets of it: socket, greeting, and the bytes that are not handled, without passwords.
    pub(super) fn into_parts(self, destination: &Destination) -> Option<(Stream, Hello, Vec<u8>)> {
        let stream = self.stream?;
        let received = &self.bytes[..self.length];
        match self.wire {
            Wire::Fix => {
                let logon = first_message(received);
                let rest = &received[logon.len()..];
                let mut bytes = without_passwords(logon).unwrap_or_else(|| logon.to_vec());
                bytes.extend_from_slice(rest);
                let binding = destination.binding;
                Some((stream, Hello::Fix { binding }, bytes))
            }
            Wire::Native { server, login } => {
                let login = Login {
                    password: Password::BLANK,
                    ..login
                };
                Some((stream, Hello::Native { server, login }, received.to_vec()))
            }
        }
    }

    /// Closes it; one that is refused is told why.
    pub(super) fn end(mut self, now: Timestamp, end: End) {
        if let End::Refused(refusal) = end {
            self.refuse(now, refusal);
        }
        if let Some(stream) = &mut self.stream {
            stream.close();
        }
    }

    /// Tells the peer that it does not come in. Best effort: the connection ends right after.
    fn refuse(&mut self, now: Timestamp, refusal: Refusal) {
        let Some(stream) = &mut self.stream else { return };
        match &mut self.wire {
            Wire::Fix => {
                let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
                let logout = refuse_fix(now, &self.bytes[..self.length], refusal, &mut buffer);
                drop(stream.send(logout));
            }
            Wire::Native { server, .. } => {
                let mut packet = [0; soup::MAX_PACKET_LENGTH];
                let length = server.reject(refusal.in_soup(), &mut packet);
                drop(stream.send(&packet[..length]));
            }
        }
    }

    fn origin(&self) -> Origin {
        let sha256 = |certificate: &[u8]| {
            let digest = digest::digest(&digest::SHA256, certificate);
            digest.as_ref().try_into().unwrap_or_default()
        };
        Origin {
            address: self.peer.ip(),
            certificate: self.stream.as_ref().and_then(Stream::certificate).map(sha256),
        }
    }

    /// The Logon at the start of what was received.
    fn logon(&self) -> FixLogon<'_> {
        FixLogon::parse(first_message(&self.bytes[..self.length]))
    }

    /// The first `count` bytes are done with.
    fn take(&mut self, count: usize) {
        self.bytes.copy_within(count..self.length, 0);
        self.length -= count;
    }
}

impl End {
    /// For the log.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Malformed => "not the protocol",
            Self::Tls => "TLS failed",
            Self::Silent => "no logon came",
            Self::GaveWay => "no logon came, and another wanted the place",
            Self::Refused(refusal) => refusal.text(),
        }
    }
}
