//! The door's loop: listeners, and the connections that are not clients yet.

use super::claim::Claim;
use super::directory::{Binding, Directory};
use super::hours::AllHours;
use super::pending::{End, Heard, Pending, Protocol, Stage};
use super::pool::Pool;
use super::refusal::Refusal;
use super::{Arrival, Delivery, Queues};
use crate::config::{Config, ConfigError, Credentials, Secret};
use crate::limits::{
    CHECK_THREADS, LOGON_TIMEOUT_NS, MAX_ACCEPTS_A_TURN, MAX_PENDING_LOGONS, MAX_READY_SOCKETS, REFUSAL_DELAY_NS,
};
use crate::line_limit::LineLimit;
use crate::status::{Addresses, DoorStatus, Status};
use crate::stream::Stream;
use latency::clock::Clock;
use net::poller::{Interest, Poller};
use net::tcp::TcpListener;
use net::{QuickAck, SetupError, TcpOptions};
use std::io;
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
    slow: Pool<Done>,
    /// When the credentials file is looked at next.
    next_look: Timestamp,
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

/// What a thread for slow things has done.
enum Done {
    /// A connection's password was checked, and is the right one or not.
    Checked(Which, bool),
    /// A connection's TLS handshake went on.
    Shaken(Which, Box<Stream>, io::Result<()>),
    /// The credentials file was looked at, and has changed. Maybe something is wrong with it.
    Looked(Option<(Credentials, Option<ConfigError>)>),
}

/// A connection: its place, and its serial number.
type Which = (usize, u64);

/// Memory of the connections, for the sum at start-up.
pub(super) const MEMORY_BYTES: usize = MAX_PENDING_LOGONS * (size_of::<Option<Pending>>() + Pending::BUFFER_BYTES);

/// Tokens of listeners in the poller are from here on; those of connections are their places.
const FIRST_ENTRANCE: u64 = 1 << 32;

/// How long the thread sleeps at most, when nothing comes: how late it may see that it is to stop.
const SLEEP: Duration = Duration::from_millis(20);

/// How often the credentials file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How long it sleeps when something waits that no socket tells of.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Options of clients' sockets: never wait to fill a segment, and notice a peer that is gone.
const CLIENT_TCP: TcpOptions = TcpOptions {
    no_delay: true,
    quick_ack: QuickAck::Off,
    rto_min_us: Some(8_000),
    user_timeout_ms: Some(30_000),
    notsent_lowat_bytes: Some(128 << 10),
    busy_poll_us: None,
    prefer_busy_poll: false,
    incoming_cpu: None,
    send_buffer_bytes: None,
    receive_buffer_bytes: None,
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
            slow: Pool::new(CHECK_THREADS)?,
            next_look: Timestamp::NONE,
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
        self.do_slow();
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
            Some((!matches!(pending.stage, Stage::Refused(..)), pending.opened, place))
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
        if pending.is_shaking_hands() {
            // Not looked at until a thread has taken what is there.
            pending.stage = Stage::Greeting;
            return self.look_away(place);
        }
        match pending.receive(self.now) {
            Ok(Heard::Nothing { garbled }) => {
                self.status.garbled.fetch_add(garbled, Ordering::Relaxed);
            }
            Ok(Heard::Claim) => {
                // It is not looked at again here, whatever becomes of it.
                if let Some(stream) = pending.stream() {
                    drop(self.poller.remove(stream));
                }
                match pending.claim(self.now, &mut self.directory) {
                    Ok(stage) => pending.stage = stage,
                    Err(refusal) => self.refuse(place, refusal),
                }
            }
            Err(end) => self.end(place, end),
        }
    }

    /// The poller forgets a connection.
    fn look_away(&mut self, place: usize) {
        if let Some(stream) = self.pending[place].as_ref().and_then(Pending::stream) {
            drop(self.poller.remove(stream));
        }
    }

    /// Takes what the threads for slow things have done, and gives them more: first what is of connections that came
    /// first, and of each user one password at a time, so that guesses at one hold up nobody else.
    fn do_slow(&mut self) {
        while let Some(done) = self.slow.done() {
            match done {
                Done::Checked(which, is_right) if self.is_there(which) => self.checked(which.0, is_right),
                Done::Shaken(which, stream, outcome) if self.is_there(which) => self.shaken(which.0, *stream, outcome),
                Done::Looked(Some((credentials, error))) => self.set_credentials(credentials, error),
                _ => {}
            }
        }
        if self.now >= self.next_look && self.slow.is_free() {
            self.next_look = self.now + LOOK_INTERVAL;
            let credentials = Arc::clone(self.directory.credentials());
            self.slow.start(move || Done::Looked(credentials.reload()));
        }
        while self.slow.is_free()
            && let Some(place) = self.next_slow()
            && let Some(pending) = &mut self.pending[place]
        {
            let which = (place, pending.serial);
            if let Stage::Claiming(secret) = &pending.stage {
                let (secret, password) = (Arc::clone(secret), pending.password());
                pending.stage = Stage::Checking(Arc::clone(&secret));
                self.slow.start(move || Done::Checked(which, secret.is_of(&password)));
            } else if let Some(mut stream) = pending.start_shaking() {
                self.slow.start(move || {
                    let outcome = stream.shake_hands();
                    Done::Shaken(which, Box::new(stream), outcome)
                });
            }
        }
    }

    /// Whether a connection has not given its place to another.
    fn is_there(&self, (place, serial): Which) -> bool {
        self.pending[place]
            .as_ref()
            .is_some_and(|pending| pending.serial == serial)
    }

    /// The credentials file has changed. When it cannot be read, the users stay as they were.
    fn set_credentials(&mut self, credentials: Credentials, error: Option<ConfigError>) {
        match error {
            None => tracing::info!(users = credentials.count(), "credentials file read again"),
            Some(error) => tracing::warn!(%error, "the credentials file is wrong; users stay as they were"),
        }
        self.directory.set_credentials(credentials);
    }

    fn checked(&mut self, place: usize, is_right: bool) {
        let Some(pending) = &mut self.pending[place] else {
            return;
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

    /// A connection goes on where a thread has left its handshake.
    fn shaken(&mut self, place: usize, stream: Stream, outcome: io::Result<()>) {
        let Some(pending) = &mut self.pending[place] else {
            return;
        };
        if let Err(end) = pending.end_shaking(stream, outcome) {
            return self.end(place, end);
        }
        let Some(stream) = pending.stream() else { return };
        if self.poller.add(stream, place as u64, Interest::READ).is_err() {
            return self.end(place, End::Closed);
        }
        if !pending.is_shaking_hands() {
            // The first message may have come with the last of the handshake; no readiness tells of it.
            self.receive(place);
        }
    }

    /// The connection that a thread sees to next.
    fn next_slow(&self) -> Option<usize> {
        let is_checked = |secret: &Arc<Secret>| {
            self.pending
                .iter()
                .flatten()
                .any(|pending| matches!(&pending.stage, Stage::Checking(checked) if Arc::ptr_eq(checked, secret)))
        };
        let mut waiting = (0..self.pending.len())
            .filter_map(|place| {
                let pending = self.pending[place].as_ref()?;
                match &pending.stage {
                    Stage::Claiming(secret) => Some((pending.serial, place, Some(secret))),
                    Stage::Greeting => Some((pending.serial, place, None)),
                    _ => None,
                }
            })
            .collect::<Vec<_>>();
        waiting.sort_unstable_by_key(|&(serial, ..)| serial);
        let may_go = |secret: Option<&Arc<Secret>>| secret.is_none_or(|secret| !is_checked(secret));
        let next = waiting.into_iter().find(|&(_, _, secret)| may_go(secret))?;
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
            let Some((stream, hello, bytes)) = pending.into_parts(&destination) else {
                continue;
            };
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
                Stage::Listening | Stage::Greeting if self.now.since(pending.opened).0 >= LOGON_TIMEOUT_NS => {
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
