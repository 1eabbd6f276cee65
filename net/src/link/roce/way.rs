//! What the ends of a link meet over: first a [`Hello`] each, then the last word of the connecting end. What follows is silence,
//! whose end is the news that the peer is gone.

#[cfg(feature = "verbs")]
use super::cm_meeting::CmWay;
use super::hello::{Hello, MAGIC, Ready, Verdict};
use crate::link::DownReason;
use crate::tcp::{Received, TcpStream};
use std::io;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

/// The connection of a meeting, and of the session that comes of it.
#[derive(Debug)]
#[cfg_attr(
    feature = "verbs",
    allow(clippy::large_enum_variant, reason = "a link has one, and it does not move")
)]
pub(super) enum Way {
    Tcp(TcpWay),
    /// The kernel's connection manager.
    #[cfg(feature = "verbs")]
    Cm(CmWay),
}

/// A connection over TCP.
#[derive(Debug)]
pub(super) struct TcpWay {
    stream: TcpStream,
    /// The listening end: the peer's last word so far.
    input: [u8; size_of::<Ready>()],
    received: usize,
}

impl Way {
    pub(super) const fn tcp(stream: TcpStream) -> Self {
        Self::Tcp(TcpWay {
            stream,
            input: [0; size_of::<Ready>()],
            received: 0,
        })
    }

    /// What this end told, or is to tell, with what was agreed on the way.
    #[cfg_attr(not(feature = "verbs"), allow(clippy::unused_self, reason = "TCP agrees on nothing"))]
    pub(super) const fn agreed(&self, ours: Hello) -> Hello {
        match self {
            Self::Tcp(_) => ours,
            #[cfg(feature = "verbs")]
            Self::Cm(way) => way.agreed(ours),
        }
    }

    /// The listening end answers: it goes on, or refuses.
    ///
    /// # Errors
    /// The connection is gone, or takes nothing.
    pub(super) fn answer(&mut self, ours: &Hello) -> Result<(), DownReason> {
        match self {
            Self::Tcp(way) => send(&mut way.stream, ours.as_bytes()),
            #[cfg(feature = "verbs")]
            Self::Cm(way) => way.answer(ours),
        }
    }

    /// The connecting end's last word.
    ///
    /// # Errors
    /// As above.
    pub(super) fn ready(&mut self, ours: &Hello, verdict: Verdict) -> Result<(), DownReason> {
        match self {
            Self::Tcp(way) => {
                let ready = Ready {
                    magic: ours.magic,
                    verdict: U32::new(verdict.code()),
                };
                send(&mut way.stream, ready.as_bytes())
            }
            #[cfg(feature = "verbs")]
            Self::Cm(way) => way.ready(ours, verdict),
        }
    }

    /// The peer's last word, where it has come. Behind it a peer says nothing.
    ///
    /// # Errors
    /// Why the session is over.
    pub(super) fn look(&mut self, is_up: bool) -> Result<Option<Verdict>, DownReason> {
        match self {
            Self::Tcp(way) => way.look(is_up),
            #[cfg(feature = "verbs")]
            Self::Cm(way) => way.look(),
        }
    }
}

impl TcpWay {
    fn look(&mut self, is_up: bool) -> Result<Option<Verdict>, DownReason> {
        let room = if is_up { 0 } else { self.received };
        match self.stream.recv(&mut self.input[room..]) {
            Ok(Received::Nothing) => Ok(None),
            Ok(Received::Closed) => Err(DownReason::Closed),
            Ok(Received::Bytes(_)) if is_up => Err(DownReason::Malformed),
            Ok(Received::Bytes(length)) => {
                self.received += length;
                if self.received < self.input.len() {
                    return Ok(None);
                }
                let ready = Ready::read_from_bytes(&self.input).expect("it is as long as it is");
                if ready.magic != MAGIC {
                    return Err(DownReason::Malformed);
                }
                Ok(Some(Verdict::from_code(ready.verdict.get())))
            }
            Err(error) => Err(DownReason::Io(error.kind())),
        }
    }
}

/// Sends a short message on a connection that has nothing else to send.
///
/// # Errors
/// The connection is gone, or takes nothing.
pub(super) fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), DownReason> {
    match stream.send(bytes) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(DownReason::Stalled),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Err(DownReason::Closed),
            kind => Err(DownReason::Io(kind)),
        },
    }
}
