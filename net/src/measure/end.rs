//! The ends that are measured: bare sockets, and links.

use super::read::RoceReads;
use crate::buffer::StreamBuffer;
use crate::carrier::Carrier;
use crate::datagram::Datagram;
use crate::link::{AnyLink, Link, LinkEvent};
use crate::options::Readback;
use crate::tcp::{Received, Retransmits, TcpListener, TcpStream};
use std::io;
use types::Timestamp;

/// One end that moves messages of one length to the other and back.
pub trait End {
    /// Whether what was sent arrives, sooner or later. Elsewhere what is lost stays lost.
    fn is_reliable(&self) -> bool;

    /// Whether the other end is there.
    fn is_up(&self) -> bool;

    /// Queues a message. `false`: there is no room now and it was not taken.
    ///
    /// # Errors
    /// The carrier failed.
    fn send(&mut self, message: &[u8]) -> io::Result<bool>;

    /// Sends what is queued, packed as far as the carrier packs.
    ///
    /// # Errors
    /// The carrier failed.
    fn flush(&mut self, now: Timestamp) -> io::Result<()>;

    /// Receives the next message into `message`, which has its length. `false`: there is none now.
    ///
    /// # Errors
    /// The carrier failed, or the other end went away.
    fn recv(&mut self, now: Timestamp, message: &mut [u8]) -> io::Result<bool>;

    /// Whether all that was sent has reached the other end, as far as this one can know.
    fn is_drained(&self) -> bool;

    /// Messages or segments sent again, by this end.
    fn retransmits(&self) -> Retransmits;
}

/// A bare TCP socket: messages of a fixed length and nothing around them.
#[derive(Debug)]
pub struct BareTcp {
    /// `None` while nobody has connected.
    stream: Option<TcpStream>,
    listener: Option<TcpListener>,
    input: StreamBuffer,
    output: StreamBuffer,
}

/// A bare socket for datagrams: as many whole messages in each as were queued and fit.
#[derive(Debug)]
pub struct BareDatagrams<D> {
    socket: D,
    input: Box<[u8]>,
    /// What is left of the datagram last received: from here to there.
    at: usize,
    end: usize,
    output: Box<[u8]>,
    queued: usize,
}

/// A link of the product.
#[derive(Debug)]
pub struct Linked {
    link: AnyLink,
    /// The room of the empty ring.
    window: usize,
    was_up: bool,
}

/// An end of any kind, chosen once. The kind is looked at once a call, which the branch predictor knows beforehand.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are two of them")]
pub enum AnyEnd {
    /// A bare TCP socket.
    Tcp(BareTcp),
    /// A bare carrier of datagrams.
    Datagrams(BareDatagrams<Carrier>),
    /// A link.
    Link(Linked),
    /// RDMA READs.
    Reads(RoceReads),
    /// RDMA READs by a device.
    #[cfg(feature = "verbs")]
    DeviceReads(RoceReads<crate::link::Verbs>),
}

/// Bytes that a bare TCP end queues and receives at once.
const STREAM_BYTES: usize = 64 * 1024;

/// Longest datagram: an Ethernet frame's, as LTP has it.
const DATAGRAM_MAX: usize = 1_472;

impl BareTcp {
    /// An end over a connection.
    #[must_use]
    pub fn new(stream: TcpStream) -> Self {
        Self::with(Some(stream), None)
    }

    /// An end over the first connection that comes in.
    #[must_use]
    pub fn listening(listener: TcpListener) -> Self {
        Self::with(None, Some(listener))
    }

    fn with(stream: Option<TcpStream>, listener: Option<TcpListener>) -> Self {
        Self {
            stream,
            listener,
            input: StreamBuffer::new(STREAM_BYTES),
            output: StreamBuffer::new(STREAM_BYTES),
        }
    }
}

impl End for BareTcp {
    fn is_reliable(&self) -> bool {
        true
    }

    fn is_up(&self) -> bool {
        self.stream.is_some()
    }

    fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        let Some(room) = self.output.room().get_mut(..message.len()) else {
            return Ok(false);
        };
        room.copy_from_slice(message);
        self.output.commit(message.len());
        Ok(true)
    }

    fn flush(&mut self, _: Timestamp) -> io::Result<()> {
        match &mut self.stream {
            Some(stream) => self.output.send(stream).map(|_| ()),
            None => Ok(()),
        }
    }

    fn recv(&mut self, _: Timestamp, message: &mut [u8]) -> io::Result<bool> {
        let Some(stream) = &mut self.stream else {
            if let Some(listener) = &self.listener {
                self.stream = listener.accept()?.map(|(stream, _)| stream);
            }
            return Ok(false);
        };
        if self.input.bytes().len() < message.len() && self.input.receive(stream)? == Received::Closed {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let Some(bytes) = self.input.bytes().get(..message.len()) else {
            return Ok(false);
        };
        message.copy_from_slice(bytes);
        self.input.consume(message.len());
        Ok(true)
    }

    fn is_drained(&self) -> bool {
        let stream = self.stream.as_ref();
        self.output.is_empty() && stream.is_some_and(|stream| stream.unacknowledged().is_ok_and(|bytes| bytes == 0))
    }

    fn retransmits(&self) -> Retransmits {
        let stream = self.stream.as_ref();
        stream.and_then(|stream| stream.retransmits().ok()).unwrap_or_default()
    }
}

impl<D: Datagram> BareDatagrams<D> {
    /// An end over a socket that knows its peer, or learns it from the first datagram.
    #[must_use]
    pub fn new(socket: D) -> Self {
        Self {
            socket,
            input: vec![0; DATAGRAM_MAX].into(),
            at: 0,
            end: 0,
            output: vec![0; DATAGRAM_MAX].into(),
            queued: 0,
        }
    }
}

impl<D: Datagram> End for BareDatagrams<D> {
    fn is_reliable(&self) -> bool {
        false
    }

    fn is_up(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        if self.queued + message.len() > self.output.len() {
            if !self.socket.send(&self.output[..self.queued])? {
                return Ok(false);
            }
            self.queued = 0;
        }
        self.output[self.queued..][..message.len()].copy_from_slice(message);
        self.queued += message.len();
        Ok(true)
    }

    fn flush(&mut self, _: Timestamp) -> io::Result<()> {
        if self.queued > 0 && self.socket.send(&self.output[..self.queued])? {
            self.queued = 0;
        }
        self.socket.flush()
    }

    fn recv(&mut self, _: Timestamp, message: &mut [u8]) -> io::Result<bool> {
        if self.at + message.len() > self.end {
            let Some(length) = self.socket.recv(&mut self.input)? else {
                return Ok(false);
            };
            if !self.socket.is_from_peer() {
                self.socket.accept_peer();
            }
            (self.at, self.end) = (0, length);
        }
        let Some(bytes) = self.input[..self.end].get(self.at..self.at + message.len()) else {
            // Not one of ours: too short for a message.
            return Ok(false);
        };
        message.copy_from_slice(bytes);
        self.at += message.len();
        Ok(true)
    }

    fn is_drained(&self) -> bool {
        self.queued == 0
    }

    fn retransmits(&self) -> Retransmits {
        Retransmits::default()
    }
}

impl Linked {
    /// An end over a link that nothing was sent on yet.
    #[must_use]
    pub fn new(link: AnyLink) -> Self {
        let window = link.room();
        Self {
            link,
            window,
            was_up: false,
        }
    }
}

impl End for Linked {
    fn is_reliable(&self) -> bool {
        true
    }

    fn is_up(&self) -> bool {
        self.link.is_up()
    }

    fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        let has_room = self.link.room() > 0;
        if has_room {
            self.link.send(message, 0);
        }
        Ok(has_room)
    }

    fn flush(&mut self, now: Timestamp) -> io::Result<()> {
        self.link.flush(now, 0);
        Ok(())
    }

    fn recv(&mut self, now: Timestamp, message: &mut [u8]) -> io::Result<bool> {
        while let Some(event) = self.link.poll(now, message) {
            match event {
                LinkEvent::Message { .. } => return Ok(true),
                LinkEvent::Up => self.was_up = true,
                // Nothing here grants open orders, and a path that is down is still a way.
                LinkEvent::Credits(_) | LinkEvent::Path(_) => {}
                // Nothing here is written down.
                LinkEvent::Recall { from, .. } => self.link.not_recalled(from),
                // While it comes up, the other end may not be there yet: the link tries again by itself.
                LinkEvent::Down(_) if !self.was_up => {}
                LinkEvent::Down(reason) => {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        format!("the link went down: {reason}"),
                    ));
                }
            }
        }
        Ok(false)
    }

    fn is_drained(&self) -> bool {
        self.link.room() == self.window
    }

    fn retransmits(&self) -> Retransmits {
        let counters = self.link.counters();
        self.link.kernel_retransmits()
            + Retransmits {
                total: counters.retransmitted,
                spurious: counters.retransmits_spurious,
            }
    }
}

impl AnyEnd {
    /// What the kernel gave for each option of a TCP socket; `None` while there is none.
    #[must_use]
    pub fn readback(&self) -> Option<&Readback> {
        match self {
            Self::Tcp(end) => end.stream.as_ref().map(TcpStream::readback),
            Self::Link(end) => end.link.tcp_readback(),
            _ => None,
        }
    }
}

/// Does the same with whichever it is.
macro_rules! with {
    ($any:expr, $end:ident => $call:expr) => {
        match $any {
            AnyEnd::Tcp($end) => $call,
            AnyEnd::Datagrams($end) => $call,
            AnyEnd::Link($end) => $call,
            AnyEnd::Reads($end) => $call,
            #[cfg(feature = "verbs")]
            AnyEnd::DeviceReads($end) => $call,
        }
    };
}

impl End for AnyEnd {
    fn is_reliable(&self) -> bool {
        with!(self, end => end.is_reliable())
    }

    fn is_up(&self) -> bool {
        with!(self, end => end.is_up())
    }

    fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        with!(self, end => end.send(message))
    }

    fn flush(&mut self, now: Timestamp) -> io::Result<()> {
        with!(self, end => end.flush(now))
    }

    fn recv(&mut self, now: Timestamp, message: &mut [u8]) -> io::Result<bool> {
        with!(self, end => end.recv(now, message))
    }

    fn is_drained(&self) -> bool {
        with!(self, end => end.is_drained())
    }

    fn retransmits(&self) -> Retransmits {
        with!(self, end => end.retransmits())
    }
}
