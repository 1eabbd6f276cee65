//! The way to a peer by the kernel's connection manager: what a [`Hello`] has goes with its three messages.
//!
//! ```text
//! connecting end                          listening end
//!   request, with a Card          ──────▶   its queue pair can receive
//!   its queue pair can send       ◀──────   reply, with a Card, or a reject
//!   ready to use, or a reject; up ──────▶   up
//! ```

use super::card::{Card, Known};
use super::config::DeviceName;
use super::hello::{Hello, Verdict, gid};
use super::meeting::{Caller, LOOK_EVERY, MEET_WITHIN, RETRY_MAX, RETRY_MIN};
use super::way::Way;
use crate::error::SetupError;
use crate::link::{DownReason, LinkCounters};
use crate::verbs::{CmConnection, CmEvent, CmListener, CmNumbers, PrivateData, forget_gone_devices};
use std::io;
use std::net::SocketAddr;
use types::{Duration, Timestamp};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

/// The connecting end: tries, and waits longer after each failure.
#[derive(Debug)]
pub(super) struct CmConnector {
    local: SocketAddr,
    peer: SocketAddr,
    device: DeviceName,
    attempt: Option<Attempt>,
    /// When the next attempt begins, or is looked at.
    next_at: Timestamp,
    /// The pause after the next failure.
    retry_after: Duration,
}

#[derive(Debug)]
struct Attempt {
    connection: CmConnection,
    since: Timestamp,
}

/// The listening end.
#[derive(Debug)]
pub(super) struct CmDoor {
    local: SocketAddr,
    device: DeviceName,
    /// `None`: its device is gone.
    listener: Option<CmListener>,
    look_at: Timestamp,
}

/// A connection whose peer is known.
#[derive(Debug)]
pub(super) struct CmWay {
    connection: CmConnection,
    numbers: CmNumbers,
    /// The peer does not want it: it needs no answer.
    is_over: bool,
}

impl CmConnector {
    pub(super) const fn new(local: SocketAddr, peer: SocketAddr, device: DeviceName) -> Self {
        Self {
            local,
            peer,
            device,
            attempt: None,
            next_at: Timestamp::NONE,
            retry_after: RETRY_MIN,
        }
    }

    /// As [`Door::connect`](super::meeting::Door::connect).
    pub(super) fn turn(
        &mut self,
        now: Timestamp,
        ours: impl FnOnce() -> Result<Hello, DownReason>,
        counters: &mut LinkCounters,
    ) -> Result<Option<Caller>, DownReason> {
        if now < self.next_at {
            return Ok(None);
        }
        self.next_at = now + LOOK_EVERY;
        let Some(attempt) = &mut self.attempt else {
            let connection = CmConnection::resolve(self.local, self.peer).map_err(|error| {
                forget_gone_devices();
                of_manager(error)
            })?;
            self.attempt = Some(Attempt { connection, since: now });
            return Ok(None);
        };
        match attempt.connection.poll().map_err(of_manager)? {
            None if now.since(attempt.since) < MEET_WITHIN => Ok(None),
            None => {
                counters.unreachable += 1;
                Err(DownReason::Silent)
            }
            Some(CmEvent::Routed) => {
                is_on(&attempt.connection, self.device)?;
                let ours = ours()?;
                let card = Card::of(&ours);
                attempt
                    .connection
                    .connect(ours.qpn.get(), card.as_bytes())
                    .map_err(of_manager)?;
                Ok(None)
            }
            Some(event @ (CmEvent::Answered(data) | CmEvent::Rejected(data))) => {
                counters.heard += 1;
                let is_over = matches!(event, CmEvent::Rejected(_));
                let Some(attempt) = self.attempt.take() else {
                    return Ok(None);
                };
                caller(attempt.connection, &data, is_over)
                    .map(Some)
                    .inspect_err(|_| counters.unreachable += u64::from(is_over))
            }
            Some(event) => {
                counters.unreachable += 1;
                Err(end(event))
            }
        }
    }

    pub(super) const fn on_up(&mut self) {
        self.retry_after = RETRY_MIN;
    }

    pub(super) fn on_down(&mut self, now: Timestamp) {
        self.attempt = None;
        self.next_at = now + self.retry_after;
        self.retry_after = Duration((2 * self.retry_after.0).min(RETRY_MAX.0));
    }
}

impl CmDoor {
    pub(super) fn open(local: SocketAddr, device: DeviceName) -> Result<Self, SetupError> {
        let listener = CmListener::bind(local).map_err(|source| {
            let advice = match source.raw_os_error() {
                Some(libc::EOPNOTSUPP) => "install librdmacm (Debian: librdmacm1)",
                Some(libc::ENOENT | libc::ENODEV) => "load rdma_ucm; `rdma link` shows the devices",
                _ => "it must be an address of the device, at which nobody listens",
            };
            SetupError::new(format!("RDMA device {device}: listening at {local}"), source, advice)
        })?;
        Ok(Self {
            local,
            device,
            listener: Some(listener),
            look_at: Timestamp::NONE,
        })
    }

    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr()
    }

    /// As [`Door::accept`](super::meeting::Door::accept).
    pub(super) fn turn(&mut self, now: Timestamp, counters: &mut LinkCounters) -> Option<Caller> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now + LOOK_EVERY;
        let Some(listener) = &self.listener else {
            self.look_at = now + RETRY_MAX;
            forget_gone_devices();
            self.listener = CmListener::bind(self.local).ok();
            return None;
        };
        match listener.accept() {
            Ok(None) => None,
            Ok(Some((connection, data))) => {
                counters.heard += 1;
                let told = is_on(&connection, self.device).and_then(|()| caller(connection, &data, false));
                counters.malformed += u64::from(told.is_err());
                told.ok()
            }
            Err(_) => {
                self.listener = None;
                None
            }
        }
    }
}

impl CmWay {
    pub(super) const fn agreed(&self, ours: Hello) -> Hello {
        Hello {
            psn: U32::new(self.numbers.send_psn),
            ..ours
        }
    }

    pub(super) fn answer(&mut self, ours: &Hello) -> Result<(), DownReason> {
        let card = Card::of(ours);
        if Verdict::from_code(ours.verdict.get()) == Verdict::GoOn {
            self.connection
                .accept(ours.qpn.get(), card.as_bytes())
                .map_err(of_manager)
        } else {
            self.connection.reject(card.as_bytes()).map_err(of_manager)
        }
    }

    pub(super) fn ready(&mut self, ours: &Hello, verdict: Verdict) -> Result<(), DownReason> {
        if self.is_over {
            return Err(DownReason::Refused);
        }
        if verdict == Verdict::GoOn {
            return self.connection.establish().map_err(of_manager);
        }
        let card = Card::of(&Hello {
            verdict: U32::new(verdict.code()),
            ..*ours
        });
        self.connection.reject(card.as_bytes()).map_err(of_manager)
    }

    pub(super) fn look(&mut self) -> Result<Option<Verdict>, DownReason> {
        match self.connection.poll().map_err(of_manager)? {
            None => Ok(None),
            Some(CmEvent::Established) => Ok(Some(Verdict::GoOn)),
            Some(CmEvent::Rejected(data)) => match Card::read(&data) {
                Some(card) => Ok(Some(Verdict::from_code(card.verdict()))),
                None => Err(DownReason::Closed),
            },
            Some(event) => Err(end(event)),
        }
    }
}

/// Who asks or answers, if it says who it is.
fn caller(connection: CmConnection, data: &PrivateData, is_over: bool) -> Result<Caller, DownReason> {
    let card = Card::read(data).ok_or(if is_over {
        DownReason::Io(io::ErrorKind::ConnectionRefused)
    } else {
        DownReason::Malformed
    })?;
    let (Some(local), Some(from)) = connection.addresses() else {
        return Err(DownReason::Malformed);
    };
    // Of one who refuses nothing is to be known.
    let numbers = if is_over {
        CmNumbers::default()
    } else {
        connection.numbers().map_err(of_manager)?
    };
    let known = Known {
        qpn: numbers.peer_qpn,
        psn: numbers.receive_psn,
        gid: gid(from.ip()),
        peer_gid: gid(local.ip()),
    };
    let way = CmWay {
        connection,
        numbers,
        is_over,
    };
    Ok(Caller {
        from,
        way: Way::Cm(way),
        hello: card.hello(&known),
    })
}

/// The addresses may be those of another device than the link's.
fn is_on(connection: &CmConnection, device: DeviceName) -> Result<(), DownReason> {
    match connection.device() {
        Some(name) if name == device.as_str() => Ok(()),
        _ => Err(DownReason::Device(io::ErrorKind::AddrNotAvailable)),
    }
}

/// What ends a connection.
const fn end(event: CmEvent) -> DownReason {
    match event {
        CmEvent::Unreachable => DownReason::Io(io::ErrorKind::HostUnreachable),
        CmEvent::Disconnected => DownReason::Closed,
        CmEvent::DeviceGone => DownReason::Device(io::ErrorKind::NotFound),
        CmEvent::Routed | CmEvent::Answered(_) | CmEvent::Rejected(_) | CmEvent::Established => DownReason::Malformed,
    }
}

fn of_manager(error: io::Error) -> DownReason {
    DownReason::Device(error.kind())
}
