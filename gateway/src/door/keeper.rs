//! The door's loop: listeners, and the connections that are not clients yet.

use super::claim::Claim;
use super::directory::{Binding, Directory};
use super::hours::AllHours;
use super::pending::{End, Heard, Pending, Protocol, Stage};
use super::pool::Pool;
use super::refusal::Refusal;
use super::{Arrival, Delivery, Queues};
use crate::config::{Config, Secret};
use crate::limits::{
    CHECK_THREADS, LOGON_TIMEOUT_NS, MAX_ACCEPTS_A_TURN, MAX_PENDING_LOGONS, MAX_READY_SOCKETS, REFUSAL_DELAY_NS,
};
use crate::line_limit::LineLimit;
use crate::status::{Addresses, DoorStatus, Status};
use crate::stream::Stream;
use latency::clock::Clock;
use net::poller::{Interest, Poller};
use net::tcp::TcpListener;
use net::{SetupError, TcpOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Duration, Timestamp};

/// Everything that the door's thread works with.
pub(super) struct Keeper {
    clock: Clock,
    /// The time of the turn.
    now: Timestamp,
    poller: Poller,
    entrances: Vec<Entrance>,
    pending: Box<[Option<Pending>]>,
    /// Connections accepted so far.
    serial: u64,
    directory: Directory,
    tls: Option<Arc<rustls::ServerConfig>>,
    checks: Pool<Checked>,
    queues: Queues,
    hours: AllHours,
    status: Arc<DoorStatus>,
    lines: LineLimit,
    /// Nobody is accepted: every place has someone who must not be sent away.
    is_full: bool,
}

/// A listener.
struct Entrance {
    listener: TcpListener,
    protocol: Protocol,
}

/// A password that was checked.
struct Checked {
    place: usize,
    serial: u64,
    is_right: bool,
}

/// Memory of the connections, for the sum at start-up.
pub(super) const MEMORY_BYTES: usize = MAX_PENDING_LOGONS * (size_of::<Option<Pending>>() + Pending::BUFFER_BYTES);

/// Tokens of listeners in the poller are from here on; those of connections are their places.
const FIRST_ENTRANCE: u64 = 1 << 32;

/// How long the thread sleeps at most, when nothing comes: how late it may see that it is to stop.
const SLEEP: Duration = Duration::from_millis(20);

/// How long it sleeps when something waits that no socket tells of.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Options of clients' sockets: never wait to fill a segment, and notice a peer that is gone.
const CLIENT_TCP: TcpOptions = TcpOptions {
    no_delay: true,
    quick_ack: false,
    rto_min_us: Some(8_000),
    user_timeout_ms: Some(30_000),
    notsent_lowat: Some(128 << 10),
    busy_poll_us: None,
    prefer_busy_poll: false,
    incoming_cpu: None,
    send_buffer: None,
    receive_buffer: None,
};

impl Keeper {
    /// Knows who may come in, and listens nowhere yet.
    pub(super) fn new(
        config: &Arc<Config>,
        clock: Clock,
        bindings: &[Binding],
        queues: Queues,
        status: Arc<DoorStatus>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            clock,
            now: clock.now(),
            poller: Poller::new(MAX_READY_SOCKETS)?,
            entrances: Vec::new(),
            pending: (0..MAX_PENDING_LOGONS).map(|_| None).collect(),
            serial: 0,
            directory: Directory::new(config, bindings),
            tls: config.tls.clone(),
            checks: Pool::new(CHECK_THREADS)?,
            queues,
            hours: AllHours::new(config),
            status,
            lines: LineLimit::default(),
            is_full: false,
        })
    }

    /// Listens where the config says: at the door's own addresses, which are given back, and at those of each shard.
    pub(super) fn listen(&mut self, config: &Config, statuses: &[Arc<Status>]) -> Result<Addresses, SetupError> {
        for (shard, status) in config.shards.iter().zip(statuses) {
            status.set_addresses(Addresses {
                fix: self.listen_at(shard.fix_listen, Protocol::Fix)?,
                fix_tls: self.listen_at(shard.fix_tls_listen, Protocol::FixTls)?,
                native: self.listen_at(shard.native_listen, Protocol::Native)?,
            });
        }
        Ok(Addresses {
            fix: self.listen_at(config.door.fix_listen, Protocol::Fix)?,
            fix_tls: self.listen_at(config.door.fix_tls_listen, Protocol::FixTls)?,
            native: self.listen_at(config.door.native_listen, Protocol::Native)?,
        })
    }

    fn listen_at(&mut self, address: Option<SocketAddr>, protocol: Protocol) -> Result<Option<SocketAddr>, SetupError> {
        let Some(address) = address else { return Ok(None) };
        let listener = TcpListener::bind(address, &CLIENT_TCP)?;
        let token = FIRST_ENTRANCE + self.entrances.len() as u64;
        self.poller
            .add(&listener, token, Interest::READ)
            .map_err(|error| SetupError::new("watching a listener", error, "raise the limit of open files"))?;
        let bound = listener.local_addr().ok();
        self.entrances.push(Entrance { listener, protocol });
        Ok(bound)
    }

    /// Sleeps until something comes, at most for a moment, and sees to it.
    pub(super) fn turn(&mut self) {
        let is_listening = |pending: &Pending| matches!(pending.stage, Stage::Listening);
        let sleep = if self.pending.iter().flatten().all(is_listening) {
            SLEEP
        } else {
            SHORT_SLEEP
        };
        let ready = self.poller.poll(sleep).unwrap_or(0);
        self.now = self.clock.now();
        // Before any client is handed on: a shard hears of the hours first.
        self.hours.tell(self.now, &mut self.queues);
        for index in 0..ready {
            let token = self.poller.ready(index).token;
            match token.checked_sub(FIRST_ENTRANCE) {
                Some(entrance) => self.accept(usize::try_from(entrance).unwrap_or(usize::MAX)),
                None => self.receive(usize::try_from(token).unwrap_or(usize::MAX)),
            }
        }
        self.check();
        self.hand_on();
        self.time_out();
        if self.is_full && self.has_place() {
            self.set_full(false);
        }
        if let Some(count) = self.lines.left_out(self.now) {
            tracing::warn!(count, "more connections ended at the door within a second");
        }
    }

    /// Takes connections that wait at a listener. What is more than a turn's share waits for the next, so that those who
    /// came first are heard before they have to give way.
    fn accept(&mut self, entrance: usize) {
        for _ in 0..MAX_ACCEPTS_A_TURN {
            if !self.has_place() {
                return self.set_full(true);
            }
            let Some(Entrance { listener, protocol }) = self.entrances.get(entrance) else {
                return;
            };
            let protocol = *protocol;
            let (mut stream, peer) = match listener.accept() {
                Ok(Some(accepted)) => accepted,
                Ok(None) => return,
                Err(error) => {
                    if self.lines.allows(self.now) {
                        tracing::error!(%error, "accepting a connection; raise the limit of open files");
                    }
                    // It still waits at the listener, and the poller would say so at once.
                    std::thread::sleep(std::time::Duration::from_nanos(SHORT_SLEEP.0));
                    return;
                }
            };
            count(&self.status.accepted);
            if !self.directory.allows(peer.ip()) {
                stream.close();
                self.ended(peer, Claim::Nothing, End::Refused(Refusal::Address));
                continue;
            }
            let stream = match &self.tls {
                Some(tls) if protocol == Protocol::FixTls => Stream::tls(stream, tls),
                _ => Ok(Stream::Tcp(stream)),
            };
            let Ok(stream) = stream else { continue };
            let place = self.free_place();
            if self.poller.add(&stream, place as u64, Interest::READ).is_err() {
                continue;
            }
            self.serial += 1;
            self.pending[place] = Some(Pending::new(stream, peer, protocol, self.now, self.serial));
        }
    }

    /// Whether one more connection can be taken.
    fn has_place(&self) -> bool {
        self.pending
            .iter()
            .any(|place| place.as_ref().is_none_or(Pending::may_give_way))
    }

    /// A place for one more connection. Whoever holds connections open without a word must not keep others out: when all
    /// are taken, one that is refused gives way, or the silent one that has waited longest.
    fn free_place(&mut self) -> usize {
        if let Some(free) = self.pending.iter().position(Option::is_none) {
            return free;
        }
        let places = self.pending.iter().enumerate();
        let waiting = places.filter_map(|(place, pending)| {
            let pending = pending.as_ref().filter(|pending| pending.may_give_way())?;
            Some((matches!(pending.stage, Stage::Listening), pending.opened, place))
        });
        let (_, _, place) = waiting.min().expect("the caller has asked whether there is one");
        match self.pending[place].as_ref().map(|pending| &pending.stage) {
            Some(&Stage::Refused(refusal, _)) => self.end(place, End::Refused(refusal)),
            _ => self.end(place, End::GaveWay),
        }
        place
    }

    /// Looks away from the listeners, or back to them. Meanwhile connections wait in the kernel.
    fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
        let interest = Interest {
            readable: !is_full,
            writable: false,
        };
        for (index, entrance) in self.entrances.iter().enumerate() {
            let token = FIRST_ENTRANCE + index as u64;
            // It is watched, so this cannot fail.
            drop(self.poller.modify(&entrance.listener, token, interest));
        }
    }

    /// Receives what a connection has, and judges who it says it is.
    fn receive(&mut self, place: usize) {
        let Some(Some(pending)) = self.pending.get_mut(place) else {
            return;
        };
        match pending.receive(self.now) {
            Ok(Heard::Nothing { garbled }) => {
                self.status.garbled.fetch_add(garbled, Ordering::Relaxed);
            }
            Ok(Heard::Claim) => {
                // It is not looked at again here, whatever becomes of it.
                drop(self.poller.remove(pending.stream()));
                match pending.claim(self.now, &mut self.directory) {
                    Ok(stage) => pending.stage = stage,
                    Err(refusal) => self.refuse(place, refusal),
                }
            }
            Err(end) => self.end(place, end),
        }
    }

    /// Takes the passwords that were checked, and gives the threads others: first those of connections that came first,
    /// and of each user one at a time, so that guesses at one password hold up nobody else.
    fn check(&mut self) {
        while let Some(Checked {
            place,
            serial,
            is_right,
        }) = self.checks.done()
        {
            let Some(pending) = self.pending[place].as_mut().filter(|pending| pending.serial == serial) else {
                continue;
            };
            let destination = if is_right {
                pending.destination(self.now, &mut self.directory)
            } else {
                Err(Refusal::Password)
            };
            match destination {
                Ok(destination) => pending.stage = Stage::Admitted(destination),
                Err(refusal) => self.refuse(place, refusal),
            }
        }
        while self.checks.is_free()
            && let Some(place) = self.next_to_check()
            && let Some(pending) = &mut self.pending[place]
            && let Stage::Claiming(secret) = &pending.stage
        {
            let (secret, password, serial) = (Arc::clone(secret), pending.password(), pending.serial);
            pending.stage = Stage::Checking(Arc::clone(&secret));
            self.checks.start(move || Checked {
                place,
                serial,
                is_right: secret.is_of(&password),
            });
        }
    }

    /// The connection whose password is checked next.
    fn next_to_check(&self) -> Option<usize> {
        let is_checked = |secret: &Arc<Secret>| {
            self.pending
                .iter()
                .flatten()
                .any(|pending| matches!(&pending.stage, Stage::Checking(checked) if Arc::ptr_eq(checked, secret)))
        };
        let mut claims = (0..self.pending.len())
            .filter_map(|place| match self.pending[place].as_ref() {
                Some(pending) => match &pending.stage {
                    Stage::Claiming(secret) => Some((pending.serial, place, secret)),
                    _ => None,
                },
                None => None,
            })
            .collect::<Vec<_>>();
        claims.sort_unstable_by_key(|&(serial, ..)| serial);
        let next = claims.into_iter().find(|(_, _, secret)| !is_checked(secret))?;
        Some(next.1)
    }

    /// Refuses a connection. Who is not authorised hears it after a while, always the same: how long it takes says
    /// nothing about what was wrong, and guessing is slow.
    fn refuse(&mut self, place: usize, refusal: Refusal) {
        if !refusal.is_unauthorised() {
            return self.end(place, End::Refused(refusal));
        }
        if let Some(pending) = &mut self.pending[place] {
            let due = pending.opened + Duration(REFUSAL_DELAY_NS);
            pending.stage = Stage::Refused(refusal, due.max(self.now));
        }
    }

    /// Hands on whoever may come in.
    fn hand_on(&mut self) {
        for place in &mut self.pending {
            let Some(Pending {
                stage: Stage::Admitted(destination),
                ..
            }) = place
            else {
                continue;
            };
            let destination = *destination;
            let queue = &mut self.queues[usize::from(destination.shard.0)];
            if queue.is_full() {
                continue;
            }
            let Some(pending) = place.take() else { continue };
            let peer = pending.peer;
            let (stream, hello, bytes) = pending.into_parts(&destination);
            let arrival = Arrival {
                stream,
                peer,
                session: destination.session,
                hello,
                bytes,
            };
            // There was room just now, and nobody else fills the queue.
            drop(queue.push(Delivery::Client(Box::new(arrival))));
            count(&self.status.handed_on);
        }
    }

    /// Ends connections that have not logged on in time, and those whose refusal is due.
    fn time_out(&mut self) {
        for place in 0..self.pending.len() {
            let Some(pending) = &self.pending[place] else { continue };
            match pending.stage {
                Stage::Listening if self.now.since(pending.opened).0 >= LOGON_TIMEOUT_NS => {
                    self.end(place, End::Silent);
                }
                Stage::Refused(refusal, due) if self.now >= due => self.end(place, End::Refused(refusal)),
                _ => {}
            }
        }
    }

    /// Ends a connection; one that was refused is told why.
    fn end(&mut self, place: usize, end: End) {
        let Some(pending) = self.pending[place].take() else {
            return;
        };
        self.ended(pending.peer, pending.claim_for_log(), end);
        pending.end(self.now, end);
    }

    /// Counts and logs the end of a connection.
    fn ended(&mut self, peer: SocketAddr, claim: Claim<'_>, end: End) {
        count(match end {
            End::Closed => &self.status.closed,
            End::Malformed | End::Tls => &self.status.malformed,
            End::Silent => &self.status.timed_out,
            End::GaveWay => &self.status.gave_way,
            End::Refused(_) => &self.status.refused,
        });
        if !self.lines.allows(self.now) {
            return;
        }
        match end {
            End::Refused(refusal) => tracing::warn!(%peer, %claim, reason = refusal.text(), "logon refused"),
            // Whoever looks at a port and leaves, as monitors do, is no news.
            End::Closed => tracing::info!(%peer, "connection ended before a logon"),
            _ => tracing::warn!(%peer, %claim, reason = end.text(), "connection ended before a logon"),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
