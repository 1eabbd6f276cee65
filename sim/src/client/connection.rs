//! The way to the gateway, over TCP or a link.

use super::config::Login;
use super::fix::FixWire;
use super::link::LinkConnection;
use super::native::NativeWire;
use super::stream::{Stream, Wire};
use super::{ClientConfig, StartError, Traded};
use latency::Clock;
use types::{ExecReport, Request, Timestamp};

/// What the gateway says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// What became of an order or request.
    Report(ExecReport),
    /// It could not read a message, or what it sent could not be read.
    Protocol,
}

/// The connection, of whichever kind.
#[derive(Debug)]
pub(super) enum Connection {
    Stream(Box<Stream>),
    Link(Box<LinkConnection>),
}

/// Does the same with whichever it is.
macro_rules! with {
    ($any:expr, $connection:ident => $call:expr) => {
        match $any {
            Connection::Stream($connection) => $call,
            Connection::Link($connection) => $call,
        }
    };
}

impl Connection {
    /// What the link did, in a line; `None`: it is none.
    pub(super) fn link_summary(&self) -> Option<String> {
        match self {
            Self::Stream(_) => None,
            Self::Link(link) => Some(link.summary()),
        }
    }

    /// Not connected. A link needs its journal and its socket from the start.
    pub(super) fn new(config: &ClientConfig, traded: &[Traded], clock: &Clock) -> Result<Self, StartError> {
        let wire = match &config.login {
            Login::Fix {
                sender_comp_id,
                target_comp_id,
                heartbeat,
            } => Wire::Fix(Box::new(FixWire::new(
                *sender_comp_id,
                *target_comp_id,
                *heartbeat,
                config,
                traded,
            ))),
            Login::Native { user, password } => Wire::Native(Box::new(NativeWire::new(*user, *password))),
            Login::Link(link) => {
                let link = LinkConnection::open(config, link, clock)?;
                return Ok(Self::Link(Box::new(link)));
            }
        };
        Ok(Self::Stream(Box::new(Stream::new(config.gateway, config.tcp, wire))))
    }

    /// Connects, receives, keeps alive and sends. `true` when there was something to do.
    /// Answers are handed on with the time when their bytes were read.
    pub(super) fn turn(&mut self, now: Timestamp, clock: &Clock, deliver: &mut impl FnMut(Timestamp, Answer)) -> bool {
        with!(self, connection => connection.turn(now, clock, deliver))
    }

    /// Whether a request can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        with!(self, connection => connection.is_ready())
    }

    /// Writes a request; [`Connection::flush`] sends it.
    pub(super) fn write(&mut self, now: Timestamp, request: &Request, traded: &Traded) {
        match self {
            Self::Stream(stream) => stream.write(now, request, traded),
            Self::Link(link) => link.write(now, request),
        }
    }

    /// Sends what was written.
    pub(super) fn flush(&mut self, now: Timestamp) {
        with!(self, connection => connection.flush(now));
    }

    /// Says goodbye.
    pub(super) fn logout(&mut self, now: Timestamp) {
        match self {
            Self::Stream(stream) => stream.logout(now),
            // A link has no goodbye: who leaves is silent from here on.
            Self::Link(link) => link.leave(),
        }
    }

    /// The gateway will close the connection; there shall be no other.
    pub(super) const fn leave(&mut self) {
        with!(self, connection => connection.leave());
    }

    /// Whether there is no connection, and none is being made.
    pub(super) const fn is_down(&self) -> bool {
        with!(self, connection => connection.is_down())
    }

    /// Connections made so far.
    pub(super) const fn connects(&self) -> u64 {
        with!(self, connection => connection.connects())
    }
}
