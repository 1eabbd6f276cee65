//! The way to a peer: the connecting end tries, the listening end takes whoever comes, and both wait for a [`Hello`]. It goes
//! over TCP, or by the kernel's connection manager.

#[cfg(feature = "verbs")]
use super::cm_meeting::{CmConnector, CmDoor};
use super::config::RoceLinkConfig;
use super::hello::Hello;
use super::way::{Way, send};
use crate::error::SetupError;
use crate::link::tcp::Connector;
use crate::link::{DownReason, LinkCounters, LinkEnd};
use crate::options::TcpOptions;
use crate::tcp::{Received, TcpListener, TcpStream};
use std::net::SocketAddr;
use types::{Duration, Timestamp};
use zerocopy::{FromBytes, IntoBytes};

/// How the ends meet.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a link has one, and it does not move")]
pub(super) enum Door {
    Connect {
        connector: Connector,
        meeting: Option<Meeting>,
    },
    Listen {
        listener: TcpListener,
        pending: [Option<Meeting>; PENDING_MAX],
        look_at: Timestamp,
    },
    #[cfg(feature = "verbs")]
    CmConnect(CmConnector),
    #[cfg(feature = "verbs")]
    CmListen(CmDoor),
}

/// A connection on which the peer's [`Hello`] is awaited.
#[derive(Debug)]
pub(super) struct Meeting {
    from: SocketAddr,
    stream: TcpStream,
    since: Timestamp,
    received: usize,
    input: [u8; size_of::<Hello>()],
}

/// Somebody who has told its part.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) from: SocketAddr,
    pub(super) way: Way,
    pub(super) hello: Hello,
}

/// What a look at a connection gave.
enum Look {
    Wait,
    Hello(Hello),
    Over(DownReason),
}

impl Door {
    pub(super) fn open(config: &RoceLinkConfig) -> Result<Self, SetupError> {
        #[cfg(feature = "verbs")]
        if let (super::config::RoceMeeting::RdmaCm, Some(device)) = (config.meeting, config.device) {
            return Ok(match config.end {
                LinkEnd::Connect { peer, .. } => {
                    let local = SocketAddr::new(config.local, 0);
                    Self::CmConnect(CmConnector::new(local, peer, device))
                }
                LinkEnd::Listen { local } => Self::CmListen(CmDoor::open(local, device)?),
            });
        }
        let options = TcpOptions::tuned();
        Ok(match config.end {
            LinkEnd::Connect { peer, local } => {
                let connector = Connector::new(peer, local, options, MEET_WITHIN, (RETRY_MIN, RETRY_MAX));
                Self::Connect {
                    connector,
                    meeting: None,
                }
            }
            LinkEnd::Listen { local } => Self::Listen {
                listener: TcpListener::bind(local, &options)?,
                pending: [const { None }; PENDING_MAX],
                look_at: Timestamp::NONE,
            },
        })
    }

    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Listen { listener, .. } => listener.local_addr().ok(),
            #[cfg(feature = "verbs")]
            Self::CmListen(door) => door.local_addr(),
            _ => None,
        }
    }

    /// Whether this is the end that connects.
    pub(super) const fn connects(&self) -> bool {
        match self {
            Self::Connect { .. } => true,
            Self::Listen { .. } => false,
            #[cfg(feature = "verbs")]
            Self::CmConnect(_) => true,
            #[cfg(feature = "verbs")]
            Self::CmListen(_) => false,
        }
    }

    /// Connecting end without a session: goes on, telling `ours`, and gives the peer's answer with its connection.
    ///
    /// # Errors
    /// Why this attempt is over.
    pub(super) fn connect(
        &mut self,
        now: Timestamp,
        ours: impl FnOnce() -> Result<Hello, DownReason>,
        counters: &mut LinkCounters,
    ) -> Result<Option<Caller>, DownReason> {
        #[cfg(feature = "verbs")]
        if let Self::CmConnect(connector) = self {
            return connector.turn(now, ours, counters);
        }
        let Self::Connect { connector, meeting } = self else {
            return Ok(None);
        };
        if meeting.is_none() {
            match connector.turn(now) {
                Ok(None) => return Ok(None),
                Ok(Some(mut stream)) => {
                    counters.heard += 1;
                    send(&mut stream, ours()?.as_bytes())?;
                    *meeting = Some(Meeting::new(connector.peer(), stream, now));
                }
                Err(error) => {
                    counters.unreachable += 1;
                    return Err(DownReason::Io(error.kind()));
                }
            }
        }
        let Some(open) = meeting else { return Ok(None) };
        match open.look(now) {
            Look::Wait => Ok(None),
            Look::Hello(hello) => Ok(meeting.take().map(|meeting| meeting.into_caller(hello))),
            Look::Over(reason) => Err(reason),
        }
    }

    /// Listening end: the next connection that has told its part. Counts those that said something else, or nothing.
    pub(super) fn accept(&mut self, now: Timestamp, counters: &mut LinkCounters) -> Option<Caller> {
        #[cfg(feature = "verbs")]
        if let Self::CmListen(door) = self {
            return door.turn(now, counters);
        }
        let Self::Listen {
            listener,
            pending,
            look_at,
        } = self
        else {
            return None;
        };
        if now >= *look_at {
            *look_at = now + LOOK_EVERY;
            for _ in 0..PENDING_MAX {
                // Out of file descriptors: the connection waits in the backlog for a later look.
                let Ok(Some((stream, from))) = listener.accept() else {
                    break;
                };
                counters.heard += 1;
                // One more pushes out the one that waited longest: strangers who say nothing keep nobody out.
                let place = pending
                    .iter_mut()
                    .min_by_key(|slot| slot.as_ref().map(|meeting| meeting.since));
                if let Some(place) = place {
                    *place = Some(Meeting::new(from, stream, now));
                }
            }
        }
        for slot in pending.iter_mut() {
            let Some(meeting) = slot else { continue };
            match meeting.look(now) {
                Look::Wait => {}
                Look::Hello(hello) => return slot.take().map(|meeting| meeting.into_caller(hello)),
                Look::Over(_) => {
                    counters.malformed += 1;
                    *slot = None;
                }
            }
        }
        None
    }

    /// The session is up: the next failure is a new one.
    pub(super) fn on_up(&mut self) {
        match self {
            Self::Connect { connector, .. } => connector.on_up(),
            #[cfg(feature = "verbs")]
            Self::CmConnect(connector) => connector.on_up(),
            _ => {}
        }
    }

    /// The session, or the attempt at one, is over: pause, then try again.
    pub(super) fn on_down(&mut self, now: Timestamp) {
        match self {
            Self::Connect { connector, meeting } => {
                *meeting = None;
                connector.on_down(now);
            }
            #[cfg(feature = "verbs")]
            Self::CmConnect(connector) => connector.on_down(now),
            _ => {}
        }
    }
}

impl Meeting {
    const fn new(from: SocketAddr, stream: TcpStream, since: Timestamp) -> Self {
        Self {
            from,
            stream,
            since,
            received: 0,
            input: [0; size_of::<Hello>()],
        }
    }

    fn into_caller(self, hello: Hello) -> Caller {
        Caller {
            from: self.from,
            way: Way::tcp(self.stream),
            hello,
        }
    }

    fn look(&mut self, now: Timestamp) -> Look {
        match self.stream.recv(&mut self.input[self.received..]) {
            Ok(Received::Bytes(length)) => self.received += length,
            Ok(Received::Nothing) if now.since(self.since) < MEET_WITHIN => return Look::Wait,
            Ok(Received::Nothing) => return Look::Over(DownReason::Silent),
            Ok(Received::Closed) => return Look::Over(DownReason::Closed),
            Err(error) => return Look::Over(DownReason::Io(error.kind())),
        }
        let magic = super::hello::MAGIC;
        let known = self.received.min(magic.len());
        if self.input[..known] != magic[..known] {
            return Look::Over(DownReason::Malformed);
        }
        if self.received < self.input.len() {
            return Look::Wait;
        }
        Look::Hello(Hello::read_from_bytes(&self.input).expect("it is as long as it is"))
    }
}

/// A meeting takes no longer.
pub(super) const MEET_WITHIN: Duration = Duration::from_secs(1);
/// How often TCP is looked at while there is a session, or nobody to meet: a system call that mostly finds nothing.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Connections that have not told their part yet.
const PENDING_MAX: usize = 4;
/// Pauses between attempts to connect: the first, and what they double up to.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(10);
pub(super) const RETRY_MAX: Duration = Duration::from_secs(1);
