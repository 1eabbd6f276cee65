//! The acceptor's way to a connection: accept whoever comes, wait for the login, hand it to the link to decide.

use super::refusal::{letter, write_refusal};
use crate::link::LinkCounters;
use crate::tcp::{Received, TcpListener, TcpStream};
use proto::ltp::Refusal;
use proto::soup::{Login, Packet, ServerEvent, ServerSession, Timing, parse};
use std::net::SocketAddr;
use types::{Duration, Timestamp};

/// Connections that have not logged in yet. One more pushes out the one that waited longest, so that strangers who say
/// nothing cannot keep the peer out.
const PENDING_MAX: usize = 4;

/// Bytes kept of a connection until its login is decided: a login is 49, and a client waits for the answer before it
/// sends more than heartbeats.
const PENDING_BYTES: usize = 64;

/// How often to look for new connections. A look is a system call, and a new connection is rare.
const LOOK_EVERY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Acceptor {
    listener: TcpListener,
    timing: Timing,
    pending: [Option<Pending>; PENDING_MAX],
    look_at: Timestamp,
}

/// A connection that waits to log in.
#[derive(Debug)]
struct Pending {
    from: SocketAddr,
    stream: TcpStream,
    session: ServerSession,
    since: Timestamp,
    bytes: [u8; PENDING_BYTES],
    length: usize,
}

/// A connection that wants to log in. The link adopts or refuses it.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) from: SocketAddr,
    pub(super) login: Login,
    stream: TcpStream,
    session: ServerSession,
    rest: [u8; PENDING_BYTES],
    rest_length: usize,
}

/// What a look at a pending connection gave.
enum Look {
    Wait,
    Login(Login, usize),
    Drop,
}

impl Acceptor {
    pub(super) const fn new(listener: TcpListener, timing: Timing) -> Self {
        Self {
            listener,
            timing,
            pending: [const { None }; PENDING_MAX],
            look_at: Timestamp::NONE,
        }
    }

    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Accepts and reads. Gives the next connection that wants to log in; counts those that sent something else.
    pub(super) fn turn(&mut self, now: Timestamp, counters: &mut LinkCounters) -> Option<Candidate> {
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            self.accept(now, &mut counters.heard);
        }
        for slot in &mut self.pending {
            let Some(pending) = slot else { continue };
            match pending.look(now) {
                Look::Wait => {}
                Look::Drop => {
                    counters.malformed += 1;
                    *slot = None;
                }
                Look::Login(login, length) => return slot.take().map(|pending| pending.into_candidate(login, length)),
            }
        }
        None
    }

    fn accept(&mut self, now: Timestamp, heard: &mut u64) {
        for _ in 0..PENDING_MAX {
            // Out of file descriptors: the connection waits in the backlog for a later look.
            let Ok(Some((stream, from))) = self.listener.accept() else {
                return;
            };
            *heard += 1;
            let pending = Pending {
                from,
                stream,
                session: ServerSession::new(now, self.timing),
                since: now,
                bytes: [0; PENDING_BYTES],
                length: 0,
            };
            let oldest_or_free = self
                .pending
                .iter_mut()
                .min_by_key(|slot| slot.as_ref().map(|pending| pending.since));
            if let Some(slot) = oldest_or_free {
                *slot = Some(pending);
            }
        }
    }
}

impl Pending {
    fn look(&mut self, now: Timestamp) -> Look {
        if self.session.on_timeout(now, &mut []).is_err() {
            return Look::Drop;
        }
        let room = &mut self.bytes[self.length..];
        if room.is_empty() {
            return Look::Drop;
        }
        match self.stream.recv(room) {
            Ok(Received::Bytes(length)) => self.length += length,
            Ok(Received::Nothing) => return Look::Wait,
            Ok(Received::Closed) | Err(_) => return Look::Drop,
        }
        match parse(&self.bytes[..self.length]) {
            Ok(None) => Look::Wait,
            Ok(Some((packet @ Packet::LoginRequest(_), length))) => match self.session.on_packet(now, packet) {
                Ok(Some(ServerEvent::Login(login))) => Look::Login(login, length),
                _ => Look::Drop,
            },
            Ok(Some(_)) | Err(_) => Look::Drop,
        }
    }

    fn into_candidate(self, login: Login, length: usize) -> Candidate {
        let mut rest = [0; PENDING_BYTES];
        let rest_length = self.length - length;
        rest[..rest_length].copy_from_slice(&self.bytes[length..self.length]);
        Candidate {
            from: self.from,
            login,
            stream: self.stream,
            session: self.session,
            rest,
            rest_length,
        }
    }
}

impl Candidate {
    /// What came behind the login.
    pub(super) fn rest(&self) -> &[u8] {
        &self.rest[..self.rest_length]
    }

    /// What the link goes on with.
    pub(super) fn into_parts(self) -> (Login, TcpStream, ServerSession) {
        (self.login, self.stream, self.session)
    }

    /// Answers that the login is refused and why, and closes the connection.
    pub(super) fn refuse(mut self, refusal: Refusal) {
        let mut out = [0; ANSWER_BYTES];
        let mut length = write_refusal(refusal, &mut out);
        length += self.session.reject(letter(refusal), &mut out[length..]);
        // A peer that is gone needs no answer.
        let _ = self.stream.send(&out[..length]);
        self.stream.close();
    }
}

/// Room for the answer to a login that is refused.
const ANSWER_BYTES: usize = 128;
