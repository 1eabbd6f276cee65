//! A connection over TCP: makes it, makes it again when it breaks, and sends and receives over it.

use super::Traded;
use super::connection::Answer;
use super::fix::FixWire;
use super::native::NativeWire;
use latency::Clock;
use net::options::TcpOptions;
use net::tcp::{Received, TcpConnecting, TcpStream};
use std::net::SocketAddr;
use types::{Duration, Request, Timestamp};

/// The connection and what is spoken over it.
#[derive(Debug)]
pub(super) struct Stream {
    gateway: SocketAddr,
    options: TcpOptions,
    socket: Socket,
    wire: Wire,
    out: SendBuffer,
    retry_at: Timestamp,
    /// The last attempt to connect failed too: it was told once.
    is_failing: bool,
    /// The end of the connection is expected, and there will be no other.
    is_leaving: bool,
    connects: u64,
}

#[derive(Debug)]
enum Socket {
    Down,
    Connecting(TcpConnecting),
    Up(Box<TcpStream>),
}

/// What is spoken.
#[derive(Debug)]
pub(super) enum Wire {
    Fix(Box<FixWire>),
    Native(Box<NativeWire>),
}

/// Bytes on their way to the socket, bounded. One that overflows breaks the connection: half a stream is none.
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: Box<[u8]>,
    length: usize,
    overflowed: bool,
    /// Close once all is sent.
    closing: bool,
}

impl Stream {
    pub(super) fn new(gateway: SocketAddr, options: TcpOptions, wire: Wire) -> Self {
        Self {
            gateway,
            options,
            socket: Socket::Down,
            wire,
            out: SendBuffer {
                bytes: vec![0; SEND_BUFFER_BYTES].into_boxed_slice(),
                length: 0,
                overflowed: false,
                closing: false,
            },
            retry_at: Timestamp::NONE,
            is_failing: false,
            is_leaving: false,
            connects: 0,
        }
    }

    /// Connects, receives, keeps alive and sends. `true` when there was something to do.
    /// Answers are handed on with the time when their bytes were read.
    pub(super) fn turn(&mut self, now: Timestamp, clock: &Clock, deliver: &mut impl FnMut(Timestamp, Answer)) -> bool {
        match &mut self.socket {
            Socket::Down => self.connect(now),
            Socket::Connecting(connecting) => match connecting.poll() {
                Ok(None) => false,
                Ok(Some(stream)) => {
                    tracing::info!("connected to {}: {}", self.gateway, stream.readback());
                    self.socket = Socket::Up(Box::new(stream));
                    self.connects += 1;
                    self.is_failing = false;
                    self.wire.on_connected(now, &mut self.out);
                    self.flush(now);
                    true
                }
                Err(error) => {
                    self.lost(now, &error.to_string());
                    true
                }
            },
            Socket::Up(_) => {
                let received = self.receive(now, clock, deliver);
                if self.out.room() > SEND_BUFFER_BYTES / 2 {
                    self.wire.on_timer(now, &mut self.out);
                }
                self.flush(now);
                received
            }
        }
    }

    /// Whether a request can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.socket, Socket::Up(_)) && self.wire.is_logged_on() && self.out.room() > REQUEST_ROOM
    }

    /// Writes a request; [`Stream::flush`] sends it.
    pub(super) fn write(&mut self, now: Timestamp, request: &Request, traded: &Traded) {
        match &mut self.wire {
            Wire::Fix(wire) => wire.write(now, request, traded, &mut self.out),
            Wire::Native(wire) => wire.write(now, request, &mut self.out),
        }
    }

    /// Sends what was written.
    pub(super) fn flush(&mut self, now: Timestamp) {
        let Socket::Up(stream) = &mut self.socket else {
            return;
        };
        if self.out.overflowed {
            self.lost(now, "the gateway does not read");
            return;
        }
        if self.out.length > 0 {
            match stream.send(&self.out.bytes[..self.out.length]) {
                Ok(sent) => self.out.sent(sent),
                Err(error) => {
                    let why = error.to_string();
                    self.lost(now, &why);
                    return;
                }
            }
        }
        if self.out.closing && self.out.length == 0 {
            self.lost(now, "session ended");
        }
    }

    /// Says goodbye.
    pub(super) fn logout(&mut self, now: Timestamp) {
        self.leave();
        match &mut self.wire {
            Wire::Fix(wire) => wire.logout(now, &mut self.out),
            Wire::Native(wire) => wire.logout(&mut self.out),
        }
        self.flush(now);
    }

    /// The gateway will close the connection; there shall be no other.
    pub(super) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether there is no connection, and none is being made.
    pub(super) const fn is_down(&self) -> bool {
        matches!(self.socket, Socket::Down)
    }

    /// Connections made so far.
    pub(super) const fn connects(&self) -> u64 {
        self.connects
    }

    fn connect(&mut self, now: Timestamp) -> bool {
        if self.is_leaving || now < self.retry_at {
            return false;
        }
        match TcpConnecting::start(self.gateway, None, &self.options) {
            Ok(connecting) => self.socket = Socket::Connecting(connecting),
            Err(error) => self.lost(now, &error.to_string()),
        }
        true
    }

    fn receive(&mut self, now: Timestamp, clock: &Clock, deliver: &mut impl FnMut(Timestamp, Answer)) -> bool {
        let Socket::Up(stream) = &mut self.socket else {
            return false;
        };
        match stream.recv(self.wire.space()) {
            Ok(Received::Nothing) => false,
            Ok(Received::Bytes(count)) => {
                let read_at = clock.now();
                let mut deliver = |answer| deliver(read_at, answer);
                if let Err(why) = self.wire.received(now, count, &mut self.out, &mut deliver) {
                    self.lost(now, &why);
                }
                true
            }
            Ok(Received::Closed) => {
                self.lost(now, "the gateway closed it");
                true
            }
            Err(error) => {
                self.lost(now, &error.to_string());
                true
            }
        }
    }

    fn lost(&mut self, now: Timestamp, why: &str) {
        if self.is_failing || self.is_leaving {
            tracing::debug!("connection to {}: {why}", self.gateway);
        } else if self.connects == 0 {
            // A gateway that starts later is nothing to warn of.
            tracing::info!("connection to {}: {why}; trying again", self.gateway);
        } else {
            tracing::warn!("connection to {}: {why}; trying again", self.gateway);
        }
        self.is_failing = true;
        if let Socket::Up(stream) = &mut self.socket {
            stream.close();
        }
        self.socket = Socket::Down;
        self.out.clear();
        self.wire.on_disconnected(now);
        self.retry_at = now + RETRY_AFTER;
    }
}

impl Wire {
    fn on_connected(&mut self, now: Timestamp, out: &mut SendBuffer) {
        match self {
            Self::Fix(wire) => wire.on_connected(now, out),
            Self::Native(wire) => wire.on_connected(now, out),
        }
    }

    fn on_disconnected(&mut self, now: Timestamp) {
        match self {
            Self::Fix(wire) => wire.on_disconnected(now),
            Self::Native(wire) => wire.on_disconnected(),
        }
    }

    fn space(&mut self) -> &mut [u8] {
        match self {
            Self::Fix(wire) => wire.space(),
            Self::Native(wire) => wire.space(),
        }
    }

    /// Takes bytes that were put into the space. An error breaks the connection.
    fn received(
        &mut self,
        now: Timestamp,
        count: usize,
        out: &mut SendBuffer,
        deliver: &mut impl FnMut(Answer),
    ) -> Result<(), String> {
        match self {
            Self::Fix(wire) => {
                wire.received(now, count, out, deliver);
                Ok(())
            }
            Self::Native(wire) => wire
                .received(now, count, out, deliver)
                .map_err(|error| error.to_string()),
        }
    }

    fn on_timer(&mut self, now: Timestamp, out: &mut SendBuffer) {
        match self {
            Self::Fix(wire) => wire.on_timer(now, out),
            Self::Native(wire) => wire.on_timer(now, out),
        }
    }

    fn is_logged_on(&self) -> bool {
        match self {
            Self::Fix(wire) => wire.is_logged_on(),
            Self::Native(wire) => wire.is_logged_on(),
        }
    }
}

impl SendBuffer {
    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(slot) => {
                slot.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.overflowed = true,
        }
    }

    /// Appends what `write` puts into the free space, giving its length; at most `most` bytes.
    pub(super) fn push_with(&mut self, most: usize, write: impl FnOnce(&mut [u8]) -> usize) {
        if self.room() < most {
            self.overflowed = true;
        } else {
            self.length += write(&mut self.bytes[self.length..]);
        }
    }

    /// Close once all is sent.
    pub(super) const fn close(&mut self) {
        self.closing = true;
    }

    const fn room(&self) -> usize {
        self.bytes.len() - self.length
    }

    fn sent(&mut self, count: usize) {
        self.bytes.copy_within(count..self.length, 0);
        self.length -= count;
    }

    const fn clear(&mut self) {
        (self.length, self.overflowed, self.closing) = (0, false, false);
    }
}

/// Bytes that may wait for a gateway that does not read.
const SEND_BUFFER_BYTES: usize = 256 * 1_024;

/// Room that any request takes, and an answer of the session beside it.
const REQUEST_ROOM: usize = 2 * proto::fix::MAX_MESSAGE_LENGTH;

/// Pause before the next attempt to connect.
const RETRY_AFTER: Duration = Duration::from_millis(200);
