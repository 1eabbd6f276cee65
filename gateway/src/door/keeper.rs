//! The door's loop: listeners, and the connections that have not said yet who they are.

use super::directory::{Destination, Directory};
use super::line_limit::LineLimit;
use super::logon::FixLogon;
use super::refusal::{Refusal, refuse_fix};
use super::{Arrival, Hello};
use crate::config::Config;
use crate::limits::{LOGON_TIMEOUT_NS, MAX_ACCEPTS_A_TURN, MAX_FRAME_LENGTH, MAX_PENDING_LOGONS, MAX_READY_SOCKETS};
use crate::status::{DoorStatus, Status};
use latency::clock::Clock;
use net::poller::{Interest, Poller};
use net::tcp::{Received, TcpListener, TcpStream};
use net::{SetupError, TcpOptions};
use proto::fix;
use proto::soup::{self, Login, Packet, Password, ServerSession};
use rtrb::Producer;
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
    /// Connections of which nothing whole has come, or that wait to be handed on.
    pending: Box<[Option<Pending>]>,
    directory: Directory,
    /// By [`ShardId`](types::ShardId).
    queues: Vec<Producer<Arrival>>,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Fix,
    Native,
}

/// A connection that is not a client yet.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    opened: Timestamp,
    wire: Wire,
    bytes: Box<[u8]>,
    length: usize,
    stage: Stage,
}

enum Wire {
    Fix,
    Native(ServerSession),
}

/// How far a connection has come.
#[derive(Clone, Copy)]
enum Stage {
    /// Its first message is awaited.
    Listening,
    /// It may come in, as soon as there is room in the queue to its shard.
    Admitted(Destination, Greeting),
}

/// How it began.
#[derive(Clone, Copy)]
enum Greeting {
    Fix,
    Native(Login),
}

/// Why a connection ends here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The peer closed.
    Closed,
    Malformed,
    /// It has said nothing for too long.
    Silent,
    /// It has said nothing, and another wants its place.
    GaveWay,
    Refused(Refusal),
}

/// Memory of the connections, for the sum at start-up.
pub(super) const MEMORY_BYTES: usize = MAX_PENDING_LOGONS * (size_of::<Option<Pending>>() + MAX_FRAME_LENGTH);

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
    /// Listens where the config says.
    pub(super) fn new(
        config: &Config,
        clock: Clock,
        queues: Vec<Producer<Arrival>>,
        statuses: &[Arc<Status>],
        status: Arc<DoorStatus>,
    ) -> Result<Self, SetupError> {
        let mut keeper = Self {
            clock,
            now: clock.now(),
            poller: Poller::new(MAX_READY_SOCKETS)?,
            entrances: Vec::new(),
            pending: (0..MAX_PENDING_LOGONS).map(|_| None).collect(),
            directory: Directory::new(config),
            queues,
            status,
            lines: LineLimit::default(),
            is_full: false,
        };
        for (shard, status) in config.shards.iter().zip(statuses) {
            let fix = keeper.listen(shard.fix_listen, Protocol::Fix)?;
            let native = keeper.listen(shard.native_listen, Protocol::Native)?;
            status.set_addresses(fix, native);
        }
        Ok(keeper)
    }

    fn listen(&mut self, address: Option<SocketAddr>, protocol: Protocol) -> Result<Option<SocketAddr>, SetupError> {
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
        let is_waiting = self.pending.iter().flatten().any(|pending| !pending.may_give_way());
        let sleep = if is_waiting { SHORT_SLEEP } else { SLEEP };
        let ready = self.poller.poll(sleep).unwrap_or(0);
        self.now = self.clock.now();
        for index in 0..ready {
            let token = self.poller.ready(index).token;
            match token.checked_sub(FIRST_ENTRANCE) {
                Some(entrance) => self.accept(usize::try_from(entrance).unwrap_or(usize::MAX)),
                None => self.receive(usize::try_from(token).unwrap_or(usize::MAX)),
            }
        }
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
            let (stream, peer) = match listener.accept() {
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
            let place = self.free_place();
            if self.poller.add(&stream, place as u64, Interest::READ).is_err() {
                continue;
            }
            self.pending[place] = Some(Pending {
                stream,
                peer,
                opened: self.now,
                wire: match protocol {
                    Protocol::Fix => Wire::Fix,
                    Protocol::Native => Wire::Native(ServerSession::new(self.now, soup::Timing::default())),
                },
                bytes: vec![0; MAX_FRAME_LENGTH].into_boxed_slice(),
                length: 0,
                stage: Stage::Listening,
            });
        }
    }

    /// Whether one more connection can be taken.
    fn has_place(&self) -> bool {
        self.pending
            .iter()
            .any(|place| place.as_ref().is_none_or(Pending::may_give_way))
    }

    /// A place for one more connection. Whoever holds connections open without a word must not keep others out: when all
    /// are taken, the silent one that has waited longest gives way.
    fn free_place(&mut self) -> usize {
        if let Some(free) = self.pending.iter().position(Option::is_none) {
            return free;
        }
        let places = self.pending.iter().enumerate();
        let waiting = places.filter_map(|(place, pending)| {
            let pending = pending.as_ref().filter(|pending| pending.may_give_way())?;
            Some((pending.opened, place))
        });
        let (_, place) = waiting.min().expect("the caller has asked whether there is one");
        self.end(place, End::GaveWay);
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

    /// Receives what a connection has, and looks whether its first message is whole.
    fn receive(&mut self, place: usize) {
        let Some(Some(pending)) = self.pending.get_mut(place) else {
            return;
        };
        match pending.stream.recv(&mut pending.bytes[pending.length..]) {
            Ok(Received::Bytes(count)) => pending.length += count,
            Ok(Received::Nothing) => return,
            Ok(Received::Closed) | Err(_) => return self.end(place, End::Closed),
        }
        let judged = match pending.wire {
            Wire::Fix => pending.fix(&self.directory, &self.status),
            Wire::Native(_) => pending.native(self.now, &self.directory),
        };
        match judged {
            Ok(None) => {}
            Ok(Some((destination, greeting))) => {
                pending.stage = Stage::Admitted(destination, greeting);
                // From here on the socket is the shard's to look at.
                drop(self.poller.remove(&pending.stream));
            }
            Err(end) => self.end(place, end),
        }
    }

    /// Hands on whoever may come in.
    fn hand_on(&mut self) {
        for place in &mut self.pending {
            let Some(Pending {
                stage: Stage::Admitted((session, shard), greeting),
                ..
            }) = place
            else {
                continue;
            };
            let (session, greeting) = (*session, *greeting);
            let queue = &mut self.queues[usize::from(shard.0)];
            if queue.is_full() {
                continue;
            }
            let Some(pending) = place.take() else { continue };
            let hello = match (greeting, pending.wire) {
                (Greeting::Native(login), Wire::Native(server)) => Hello::Native { server, login },
                _ => Hello::Fix,
            };
            let mut bytes = Vec::from(pending.bytes);
            bytes.truncate(pending.length);
            let arrival = Arrival {
                stream: pending.stream,
                peer: pending.peer,
                session,
                hello,
                bytes,
            };
            // There was room just now, and nobody else fills the queue.
            drop(queue.push(arrival));
            count(&self.status.handed_on);
        }
    }

    /// Ends connections that have not logged on in time.
    fn time_out(&mut self) {
        for place in 0..self.pending.len() {
            let is_late = |pending: &Pending| self.now.since(pending.opened).0 >= LOGON_TIMEOUT_NS;
            if self.pending[place].as_ref().is_some_and(is_late) {
                self.end(place, End::Silent);
            }
        }
    }

    /// Ends a connection; one that was refused is told why.
    fn end(&mut self, place: usize, end: End) {
        let Some(mut pending) = self.pending[place].take() else {
            return;
        };
        if let End::Refused(refusal) = end {
            pending.refuse(self.now, refusal);
        }
        pending.stream.close();
        count(match end {
            End::Closed => &self.status.closed,
            End::Malformed => &self.status.malformed,
            End::Silent => &self.status.timed_out,
            End::GaveWay => &self.status.gave_way,
            End::Refused(_) => &self.status.refused,
        });
        if !self.lines.allows(self.now) {
            return;
        }
        let peer = pending.peer;
        match end {
            End::Refused(refusal) => tracing::warn!(%peer, reason = refusal.text(), "logon refused"),
            _ => tracing::info!(%peer, reason = end.text(), "connection ended before a logon"),
        }
    }
}

/// What a first message led to: nothing yet, or where its client goes.
type Judged = Result<Option<(Destination, Greeting)>, End>;

impl Pending {
    /// Looks for a Logon at the start of what was received. Garbled bytes before it are skipped.
    fn fix(&mut self, directory: &Directory, status: &DoorStatus) -> Judged {
        loop {
            match fix::frame(&self.bytes[..self.length]) {
                fix::Frame::Incomplete if self.length == self.bytes.len() => return Err(End::Malformed),
                fix::Frame::Incomplete => return Ok(None),
                fix::Frame::Garbled(skip, _) => {
                    count(&status.garbled);
                    self.take(skip);
                }
                fix::Frame::Message(length) => {
                    let logon = FixLogon::parse(&self.bytes[..length]);
                    if !logon.is_logon() {
                        return Err(End::Malformed);
                    }
                    let destination = directory.fix(&logon).map_err(End::Refused)?;
                    return Ok(Some((destination, Greeting::Fix)));
                }
            }
        }
    }

    /// Looks for a login at the start of what was received. Heartbeats may come before it.
    fn native(&mut self, now: Timestamp, directory: &Directory) -> Judged {
        let Wire::Native(server) = &mut self.wire else {
            return Err(End::Malformed);
        };
        let mut used = 0;
        let login = loop {
            let bytes = &self.bytes[used..self.length];
            let Some((packet, length)) = soup::parse(bytes).map_err(|_| End::Malformed)? else {
                break None;
            };
            used += length;
            server.on_packet(now, packet).map_err(|_| End::Malformed)?;
            if let Packet::LoginRequest(login) = packet {
                break Some(login);
            }
        };
        self.take(used);
        let Some(login) = login else { return Ok(None) };
        let destination = directory.native(&login).map_err(End::Refused)?;
        let without_password = Login {
            password: Password::BLANK,
            ..login
        };
        Ok(Some((destination, Greeting::Native(without_password))))
    }

    /// Whether another may have its place.
    const fn may_give_way(&self) -> bool {
        matches!(self.stage, Stage::Listening)
    }

    /// The first `count` bytes are done with.
    fn take(&mut self, count: usize) {
        self.bytes.copy_within(count..self.length, 0);
        self.length -= count;
    }

    /// Tells the peer that it does not come in. Best effort: the connection ends right after.
    fn refuse(&mut self, now: Timestamp, refusal: Refusal) {
        match &mut self.wire {
            Wire::Fix => {
                let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
                let logout = refuse_fix(now, &self.bytes[..self.length], refusal, &mut buffer);
                drop(self.stream.send(logout));
            }
            Wire::Native(server) => {
                let mut packet = [0; soup::MAX_PACKET_LENGTH];
                let length = server.reject(refusal.in_soup(), &mut packet);
                drop(self.stream.send(&packet[..length]));
            }
        }
    }
}

impl End {
    const fn text(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Malformed => "not the protocol",
            Self::Silent => "no logon came",
            Self::GaveWay => "no logon came, and another wanted the place",
            Self::Refused(refusal) => refusal.text(),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
