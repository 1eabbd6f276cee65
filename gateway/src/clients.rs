//! The clients' sockets: accepts them, finds frames in what they send, knows whose connection is whose, sends what is
//! theirs.
//!
//! No decision about an order is made here. What comes out of a frame is journaled and goes to the shard; what the shard
//! answers waits in [`ClientOutputs`](crate::client_output::ClientOutputs) until the end of the turn.

use crate::config::Config;
use crate::limits::{LOGON_TIMEOUT_NS, MAX_PENDING_LOGONS, MAX_READY_SOCKETS, RECEIVE_BUFFER_BYTES};
use crate::live::Live;
use crate::logon::{Directory, refuse_fix};
use crate::record::Record;
use crate::shard::Shard;
use net::poller::{Interest, Poller};
use net::tcp::{Received, TcpListener, TcpStream};
use net::{Link, SetupError, TcpOptions};
use proto::fix;
use proto::soup::{self, Login, ServerEvent, ServerSession};
use std::net::SocketAddr;
use types::{Duration, SequenceNumber, SessionId, ShardId, Timestamp};

/// All connections of a shard, and its listeners.
#[derive(Debug)]
pub(crate) struct Clients {
    fix_listener: Option<TcpListener>,
    native_listener: Option<TcpListener>,
    poller: Poller,
    slots: Vec<Slot>,
    /// By session id: the slot of its connection.
    connected: Box<[Option<u32>]>,
    directory: Directory,
    /// When the next session heartbeat or logon timeout may be due.
    next_timeout: Timestamp,
    /// Slots that stopped reading for want of room somewhere.
    paused: usize,
    counters: ClientCounters,
}

/// What happened at the edge.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ClientCounters {
    /// Connections accepted.
    pub(crate) accepted: u64,
    /// Connections closed at once: no slot was free.
    pub(crate) no_slot: u64,
    /// Logons refused: name, password, session.
    pub(crate) logons_refused: u64,
    /// Connections closed because no logon came in time.
    pub(crate) logon_timeouts: u64,
    /// Connections closed because nothing came for too long.
    pub(crate) silent: u64,
    /// Connections closed because the client did not read what it was sent.
    pub(crate) too_slow: u64,
    /// Connections closed because what came is not the protocol.
    pub(crate) malformed: u64,
    /// FIX messages that were skipped: wrong length or checksum.
    pub(crate) garbled: u64,
    /// Connections that ended, for whatever reason.
    pub(crate) closed: u64,
}

/// A place for one connection. Its buffer is allocated at start and stays.
#[derive(Debug)]
struct Slot {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    wire: Wire,
    /// Whose it is, once logged on.
    session: Option<SessionId>,
    opened: Timestamp,
    /// Frames wait in the buffer for room somewhere.
    is_paused: bool,
    /// The socket was full; the poller tells when it is not.
    awaits_writable: bool,
}

#[derive(Debug)]
enum Wire {
    Native(ServerSession),
    Fix,
}

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The peer closed, logged out, or the session asked for it.
    Closed,
    Malformed,
    Silent,
    LogonTimeout,
    LogonRefused,
    TooSlow,
}

/// What handling one frame gave.
enum Step {
    /// So many bytes are done with.
    Used(usize),
    /// Nothing whole is in the buffer.
    Incomplete,
    /// There is no room now for what may follow from a frame.
    NoRoom,
    End(End),
}

const FIX_LISTENER: u64 = u64::MAX;
const NATIVE_LISTENER: u64 = u64::MAX - 1;

/// Heartbeats and timeouts of connections are looked at this often, at least.
const TIMEOUT_INTERVAL: Duration = Duration::from_millis(100);

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

impl Clients {
    /// Listens where the config says.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub(crate) fn new(config: &Config, shard: ShardId) -> Result<Self, SetupError> {
        let of_shard = &config.shards[usize::from(shard.0)];
        let poller = Poller::new(MAX_READY_SOCKETS)?;
        let listen = |address: Option<SocketAddr>, token| -> Result<Option<TcpListener>, SetupError> {
            let Some(address) = address else { return Ok(None) };
            let listener = TcpListener::bind(address, &CLIENT_TCP)?;
            poller
                .add(&listener, token, Interest::READ)
                .map_err(|error| SetupError::new("watching a listener", error, "raise the limit of open files"))?;
            Ok(Some(listener))
        };
        let fix_listener = listen(of_shard.fix_listen, FIX_LISTENER)?;
        let native_listener = listen(of_shard.native_listen, NATIVE_LISTENER)?;
        let slots = (0..Self::slot_count(config, shard)).map(|_| Slot::new()).collect();
        let highest = config.sessions.iter().map(|session| session.id.0).max().unwrap_or(0);
        Ok(Self {
            fix_listener,
            native_listener,
            poller,
            slots,
            connected: vec![None; usize::from(highest) + 1].into_boxed_slice(),
            directory: Directory::new(config, shard),
            next_timeout: Timestamp::NONE,
            paused: 0,
            counters: ClientCounters::default(),
        })
    }

    /// Bytes that the receive buffers of `shard` take.
    pub(crate) fn memory_bytes(config: &Config, shard: ShardId) -> usize {
        Self::slot_count(config, shard) * RECEIVE_BUFFER_BYTES
    }

    /// A slot a session, and some for connections that have not said yet who they are.
    fn slot_count(config: &Config, shard: ShardId) -> usize {
        config.sessions.iter().filter(|session| session.shard == shard).count() + MAX_PENDING_LOGONS
    }

    /// Where the shard listens: FIX, native.
    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let address =
            |listener: &Option<TcpListener>| listener.as_ref().and_then(|listener| listener.local_addr().ok());
        (address(&self.fix_listener), address(&self.native_listener))
    }

    /// Clients that are logged on.
    pub(crate) fn connected(&self) -> usize {
        self.connected.iter().flatten().count()
    }

    /// Counts since start.
    pub(crate) const fn counters(&self) -> &ClientCounters {
        &self.counters
    }

    /// Receives from whoever is ready and hands on what is whole. Returns whether anything came.
    pub(crate) fn receive<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) -> bool {
        let ready = self.poller.poll(Duration(0)).unwrap_or(0);
        for index in 0..ready {
            let ready = self.poller.ready(index);
            match ready.token {
                FIX_LISTENER | NATIVE_LISTENER => self.accept(ready.token, shard, live),
                token => {
                    let place = usize::try_from(token).unwrap_or(usize::MAX);
                    if ready.writable {
                        self.writable(place);
                    }
                    if ready.readable {
                        self.readable(place, shard, live);
                    }
                }
            }
        }
        if self.paused > 0 {
            self.resume(shard, live);
        }
        if live.now >= self.next_timeout {
            self.timeouts(shard, live);
        }
        ready > 0
    }

    /// Takes every connection that waits.
    fn accept<L: Link>(&mut self, token: u64, shard: &mut Shard, live: &mut Live<L>) {
        let now = live.now;
        loop {
            let listener = if token == FIX_LISTENER {
                &self.fix_listener
            } else {
                &self.native_listener
            };
            let Some(listener) = listener else { return };
            // A connection that failed before it was accepted is no one's business.
            let Ok(Some((stream, peer))) = listener.accept() else {
                return;
            };
            self.counters.accepted += 1;
            let free = self.slots.iter().position(|slot| slot.connection.is_none());
            let Some(place) = free.or_else(|| self.longest_silent()) else {
                self.counters.no_slot += 1;
                tracing::warn!(%peer, "connection closed: every slot has a session; add slots to the limits");
                continue;
            };
            if free.is_none() {
                // Whoever holds connections open without a word must not keep others out.
                self.end(place, End::LogonTimeout, shard, live);
            }
            if self.poller.add(&stream, place as u64, Interest::READ).is_err() {
                continue;
            }
            let wire = if token == FIX_LISTENER {
                Wire::Fix
            } else {
                Wire::Native(ServerSession::new(now, soup::Timing::default()))
            };
            self.slots[place].open(stream, wire, now);
        }
    }

    /// The slot of the connection that has waited longest without a logon.
    fn longest_silent(&self) -> Option<usize> {
        let opened = |slot: &Slot| match &slot.connection {
            Some(connection) if connection.session.is_none() => Some(connection.opened),
            _ => None,
        };
        let waiting = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(place, slot)| Some((opened(slot)?, place)));
        waiting.min().map(|(_, place)| place)
    }

    /// Takes what the socket has and handles what is whole.
    fn readable<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        let Some(connection) = &mut slot.connection else { return };
        if connection.is_paused {
            return; // The kernel keeps it; TCP tells the client to wait.
        }
        let end = match connection.stream.recv(&mut slot.buffer[slot.end..]) {
            Ok(Received::Bytes(count)) => {
                slot.end += count;
                live.received();
                self.frames(place, shard, live);
                return;
            }
            Ok(Received::Nothing) => return,
            Ok(Received::Closed) | Err(_) => End::Closed,
        };
        self.end(place, end, shard, live);
    }

    /// Handles the whole frames in a slot's buffer.
    fn frames<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) {
        loop {
            match self.frame(place, shard, live) {
                Step::Used(count) => self.slots[place].start += count,
                Step::Incomplete => break,
                Step::NoRoom => {
                    self.pause(place, true);
                    break;
                }
                Step::End(end) => return self.end(place, end, shard, live),
            }
        }
        self.slots[place].compact();
    }

    /// Handles the first frame in a slot's buffer.
    fn frame<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) -> Step {
        let Self {
            slots,
            directory,
            connected,
            counters,
            ..
        } = self;
        let slot = &mut slots[place];
        let bytes = &slot.buffer[slot.start..slot.end];
        let Some(connection) = &mut slot.connection else {
            return Step::Incomplete;
        };
        if !live.journal_has_room()
            || connection
                .session
                .is_some_and(|session| !live.clients.has_room(session))
        {
            return Step::NoRoom;
        }
        let mut desk = Desk {
            place,
            directory,
            connected,
            shard,
            live,
        };
        match connection.wire {
            Wire::Native(_) => desk.native_frame(connection, bytes),
            Wire::Fix => match fix::frame(bytes) {
                fix::Frame::Incomplete => Step::Incomplete,
                fix::Frame::Garbled(skip, _) => {
                    counters.garbled += 1;
                    Step::Used(skip)
                }
                fix::Frame::Message(length) => desk.fix_message(connection, &bytes[..length]),
            },
        }
    }

    fn pause(&mut self, place: usize, pause: bool) {
        let Some(connection) = &mut self.slots[place].connection else {
            return;
        };
        if connection.is_paused != pause {
            connection.is_paused = pause;
            if pause {
                self.paused += 1;
            } else {
                self.paused -= 1;
            }
        }
    }

    /// Goes on with connections that waited for room.
    fn resume<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) {
        for place in 0..self.slots.len() {
            if self.slots[place]
                .connection
                .as_ref()
                .is_some_and(|connection| connection.is_paused)
            {
                self.pause(place, false);
                self.frames(place, shard, live);
            }
        }
    }

    fn writable(&mut self, place: usize) {
        let Some(Slot {
            connection: Some(connection),
            ..
        }) = self.slots.get_mut(place)
        else {
            return;
        };
        connection.awaits_writable = false;
        // A failure shows at the next receive.
        drop(self.poller.modify(&connection.stream, place as u64, Interest::READ));
    }

    /// Sends what may leave, to everyone who has something waiting.
    pub(crate) fn send<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) {
        let open = live.open_position();
        for index in 0..live.clients.waiting() {
            let session = live.clients.waiting_session(index);
            let Some(place) = self.connected[usize::from(session.0)] else {
                continue;
            };
            if let Some(end) = self.send_one(place as usize, session, open, live) {
                self.end(place as usize, end, shard, live);
            }
        }
        live.clients.retain_waiting();
    }

    /// Sends what may leave on one connection. Gives why it has to end, if it has.
    fn send_one<L: Link>(&mut self, place: usize, session: SessionId, open: u64, live: &mut Live<L>) -> Option<End> {
        let output = live.clients.get_mut(session)?;
        let connection = self.slots[place].connection.as_mut()?;
        loop {
            output.fill();
            if connection.awaits_writable {
                break;
            }
            let bytes = output.outbox.sendable(open);
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len();
            match connection.stream.send(bytes) {
                Ok(count) => {
                    output.outbox.sent(count);
                    if count < length {
                        connection.awaits_writable = true;
                        drop(
                            self.poller
                                .modify(&connection.stream, place as u64, Interest::READ_WRITE),
                        );
                    }
                }
                Err(_) => return Some(End::Closed),
            }
        }
        if output.is_too_slow {
            return Some(End::TooSlow);
        }
        if output.is_closing && output.outbox.is_empty() {
            return Some(End::Closed);
        }
        None
    }

    /// Ends a connection: the shard hears of it, the slot is free again.
    fn end<L: Link>(&mut self, place: usize, end: End, shard: &mut Shard, live: &mut Live<L>) {
        self.pause(place, false);
        let slot = &mut self.slots[place];
        let Some(mut connection) = slot.connection.take() else {
            return;
        };
        slot.start = 0;
        slot.end = 0;
        connection.stream.close();
        self.counters.closed += 1;
        match end {
            End::Closed => {}
            End::Malformed => self.counters.malformed += 1,
            End::Silent => self.counters.silent += 1,
            End::LogonTimeout => self.counters.logon_timeouts += 1,
            End::LogonRefused => self.counters.logons_refused += 1,
            End::TooSlow => self.counters.too_slow += 1,
        }
        let peer = connection
            .stream
            .peer_addr()
            .map_or_else(|_| "gone".to_owned(), |peer| peer.to_string());
        tracing::info!(
            session = connection.session.map(|id| id.0),
            peer,
            reason = end.text(),
            "client connection ended"
        );
        let Some(session) = connection.session else { return };
        self.connected[usize::from(session.0)] = None;
        if let Some(output) = live.clients.get_mut(session) {
            output.disconnect();
        }
        live.append(&Record::SessionDown { session });
        shard.on_session_down(live.now, session, live);
    }

    /// Heartbeats of native sessions, silence, and logons that never came.
    fn timeouts<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) {
        self.next_timeout = live.now + TIMEOUT_INTERVAL;
        for place in 0..self.slots.len() {
            let Some(connection) = &mut self.slots[place].connection else {
                continue;
            };
            let waits_for_logon = connection.session.is_none();
            let end = match &mut connection.wire {
                _ if waits_for_logon && live.now.since(connection.opened).0 >= LOGON_TIMEOUT_NS => {
                    Some(End::LogonTimeout)
                }
                Wire::Fix => None,
                Wire::Native(server) => {
                    let mut packet = [0; soup::HEADER_LENGTH];
                    match server.on_timeout(live.now, &mut packet) {
                        Ok(0) => None,
                        Ok(length) => {
                            if let Some(output) = connection.session.and_then(|session| live.clients.wake(session)) {
                                output.push_unnumbered(&packet[..length]);
                            }
                            None
                        }
                        Err(soup::SoupError::LoginTimeout) => Some(End::LogonTimeout),
                        Err(_) => Some(End::Silent),
                    }
                }
            };
            if let Some(end) = end {
                self.end(place, end, shard, live);
            }
        }
    }
}

/// Where a frame of one connection is handled.
struct Desk<'a, L> {
    place: usize,
    directory: &'a Directory,
    connected: &'a mut [Option<u32>],
    shard: &'a mut Shard,
    live: &'a mut Live<L>,
}

impl<L: Link> Desk<'_, L> {
    fn native_frame(&mut self, connection: &mut Connection, bytes: &[u8]) -> Step {
        let Wire::Native(server) = &mut connection.wire else {
            return Step::End(End::Malformed);
        };
        let (packet, used) = match soup::parse(bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return Step::Incomplete,
            Err(_) => return Step::End(End::Malformed),
        };
        match server.on_packet(self.live.now, packet) {
            Ok(Some(ServerEvent::Message(message))) => {
                if let Some(session) = connection.session {
                    self.message(session, message);
                }
            }
            Ok(Some(ServerEvent::Login(login))) => {
                if let Err(end) = self.native_login(connection, &login) {
                    return Step::End(end);
                }
            }
            Ok(Some(ServerEvent::Logout)) => return Step::End(End::Closed),
            Ok(Some(ServerEvent::Debug(_)) | None) => {}
            Err(_) => return Step::End(End::Malformed),
        }
        Step::Used(used)
    }

    /// A FIX message. The first of a connection must be a Logon of a session that is not connected; everything else about
    /// it is the session's to judge.
    fn fix_message(&mut self, connection: &mut Connection, message: &[u8]) -> Step {
        if connection.session.is_none() {
            let header = fix::Header::parse(message);
            if header.msg_type != fix::msg_type::LOGON {
                return Step::End(End::Malformed);
            }
            match self
                .directory
                .fix(header.sender_comp_id, header.target_comp_id, &self.live.clients)
            {
                Ok(session) => self.bind(connection, session, SequenceNumber(1)),
                Err(refusal) => {
                    tracing::warn!(reason = refusal.text(), "FIX logon refused");
                    let mut logout = [0; fix::MAX_MESSAGE_LENGTH];
                    let logout = refuse_fix(self.live.now, &header, refusal, &mut logout);
                    // Best effort: the connection ends right after.
                    drop(connection.stream.send(logout));
                    return Step::End(End::LogonRefused);
                }
            }
        }
        if let Some(session) = connection.session {
            self.message(session, message);
        }
        Step::Used(message.len())
    }

    /// Answers a native login.
    fn native_login(&mut self, connection: &mut Connection, login: &Login) -> Result<(), End> {
        let Wire::Native(server) = &mut connection.wire else {
            return Err(End::Malformed);
        };
        let mut packet = [0; soup::MAX_PACKET_LENGTH];
        match self.directory.native(login, &self.live.clients) {
            Err(refusal) => {
                tracing::warn!(
                    user = login.user_name.as_str(),
                    reason = refusal.text(),
                    "native logon refused"
                );
                let length = server.reject(refusal.in_soup(), &mut packet);
                // Best effort: the connection ends right after.
                drop(connection.stream.send(&packet[..length]));
                Err(End::LogonRefused)
            }
            Ok((session, next)) => {
                let length = server.accept(self.live.now, self.directory.session_name(), next, &mut packet);
                self.bind(connection, session, next);
                if let Some(output) = self.live.clients.wake(session) {
                    output.push_unnumbered(&packet[..length]);
                }
                Ok(())
            }
        }
    }

    /// The connection is this session's from here on.
    fn bind(&mut self, connection: &mut Connection, session: SessionId, next: SequenceNumber) {
        connection.session = Some(session);
        self.connected[usize::from(session.0)] = u32::try_from(self.place).ok();
        if let Some(output) = self.live.clients.wake(session) {
            output.connect(next);
        }
        tracing::info!(session = session.0, "client logged on");
        self.live.append(&Record::SessionUp { session });
        self.shard.on_session_up(self.live.now, session, self.live);
    }

    /// A message of a client: into the journal, then to the shard.
    fn message(&mut self, session: SessionId, message: &[u8]) {
        self.live.append(&Record::ClientMessage { session, message });
        self.shard.on_client_message(self.live.now, session, message, self.live);
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            buffer: vec![0; RECEIVE_BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            connection: None,
        }
    }

    fn open(&mut self, stream: TcpStream, wire: Wire, now: Timestamp) {
        self.start = 0;
        self.end = 0;
        self.connection = Some(Connection {
            stream,
            wire,
            session: None,
            opened: now,
            is_paused: false,
            awaits_writable: false,
        });
    }

    /// Moves what is left to the front, so that there is room behind it.
    fn compact(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }
}

impl End {
    const fn text(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Malformed => "not the protocol",
            Self::Silent => "nothing came for too long",
            Self::LogonTimeout => "no logon came",
            Self::LogonRefused => "logon refused",
            Self::TooSlow => "reads too slowly",
        }
    }
}
