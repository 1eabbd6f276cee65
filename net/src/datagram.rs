//! The device under a datagram protocol, so that a simulation can decorate it with faults.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use types::Timestamp;

/// One end that sends and receives whole datagrams and never blocks.
///
/// There are two kinds of end. One knows its peer from the start and hears nobody else. The other *learns* its peer: it
/// hears everybody, and after each datagram the protocol above may say [`accept_peer`](Self::accept_peer), once it has
/// checked that the datagram is a good one. From then on the end sends there. A peer that restarts may come from another
/// port, so the learning end goes on hearing strangers; [`is_from_peer`](Self::is_from_peer) tells which datagram is whose.
pub trait Datagram {
    /// Sends one datagram to the peer, at the latest with the next [`flush`](Self::flush). `false`: not now (the socket's
    /// buffer is full, or no peer is known yet) and the datagram was not taken. A network that loses datagrams, or a peer
    /// that is not there, is no error.
    ///
    /// # Errors
    /// The socket itself is unusable.
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool>;

    /// Receives one datagram into `buffer` and gives its length, or `None` when there is none now. What does not fit is
    /// cut off, as UDP does.
    ///
    /// # Errors
    /// The socket itself is unusable.
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends one datagram to the source of the datagram last received, which need not be the peer, as [`send`](Self::send)
    /// does. For the steps of a handshake, before the protocol above knows whether the source will be the peer.
    ///
    /// # Errors
    /// The socket itself is unusable.
    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        self.send(datagram)
    }

    /// Lets go of what was sent and still waits. Called after one or several sends; an end whose `send` is a system call
    /// has nothing to do.
    ///
    /// # Errors
    /// The socket itself is unusable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether the datagram last received came from the peer.
    fn is_from_peer(&self) -> bool {
        true
    }

    /// A session has begun: makes the source of the datagram last received the peer. An end with a fixed peer has nothing
    /// to do.
    fn accept_peer(&mut self) {}

    /// What carries the datagrams, for people.
    fn name(&self) -> &'static str {
        "datagrams"
    }

    /// Where the peer is, as far as it is known.
    fn peer(&self) -> Option<SocketAddr> {
        None
    }

    /// Where the datagram last received came from.
    fn source(&self) -> Option<SocketAddr> {
        self.peer()
    }

    /// How often the peer's host said that nobody listens there, where somebody tells.
    fn unreachable(&self) -> u64 {
        0
    }

    /// How many datagrams the end dropped itself because they were damaged or not for it, where no kernel does so for it.
    fn dropped(&self) -> u64 {
        0
    }

    /// The datagram last received is a good one of the session.
    fn heard(&mut self, _now: Timestamp) {}

    /// Where there are several paths to the peer: which has gone down or come back, once each.
    fn path_change(&mut self) -> Option<PathChange> {
        None
    }

    /// Where there are several paths to the peer: how many are down.
    fn paths_down(&self) -> u64 {
        0
    }
}

/// One of two paths has gone down or come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathChange {
    /// It is the second one.
    pub second: bool,
    /// It brings datagrams again.
    pub is_up: bool,
}

impl fmt::Display for PathChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.second { "second" } else { "first" };
        let state = if self.is_up { "up" } else { "down" };
        write!(f, "{path} path is {state}")
    }
}
