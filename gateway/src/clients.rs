//! The clients' sockets: takes those that the door hands on, finds frames in what they send, sends what is theirs.
//!
//! No decision about an order is made here. What comes out of a frame is journaled and goes to the shard; what the shard
//! answers waits in [`ClientOutputs`](crate::client_output::ClientOutputs) until the end of the turn.

use crate::client_output::ClientOutput;
use crate::config::{Config, ProtocolConfig, SessionConfig};
use crate::door::{Arrival, Delivery, Hello, Refusal, refuse_fix};
use crate::limits::{MAX_READY_SOCKETS, MAX_SEND_STALL_NS, MAX_SOCKETS_LOOKED_AT, RECEIVE_BUFFER_BYTES};
use crate::live::Live;
use crate::record::Record;
use crate::shard::Shard;
use crate::stream::Stream;
use net::poller::{Interest, Poller};
use net::tcp::Received;
use net::{Link, SetupError};
use proto::fix;
use proto::fix::{Passage, TooLong};
use proto::soup::{self, Login, ServerEvent, ServerSession, SessionName, SoupError};
use rtrb::Consumer;
use std::net::SocketAddr;
use types::{Duration, SequenceNumber, SessionId, ShardId, Timestamp};

/// All connections of a shard.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Clients that the door hands on, and the hours of sessions.
    arrivals: Consumer<Delivery>,
    poller: Poller,
    /// One a session of this shard.
    slots: Vec<Slot>,
    /// By session id: its slot.
    places: Box<[Option<u32>]>,
    /// Slots that have a connection.
    connected: Vec<usize>,
    /// When the next heartbeat of a native session may be due.
    next_timeout: Timestamp,
    /// Slots that stopped reading for want of room somewhere.
    paused: usize,
    counters: ClientCounters,
}

/// What happened at the edge.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ClientCounters {
    /// Logons refused, for what the state of a session does not allow.
    pub(crate) logons_refused: u64,
    /// Connections closed because nothing came for too long.
    pub(crate) silent: u64,
    /// Connections closed because the client did not read what it was sent.
    pub(crate) too_slow: u64,
    /// Connections closed because what came is not the protocol.
    pub(crate) malformed: u64,
    /// FIX messages that were longer than any that is read.
    pub(crate) too_long: u64,
    /// FIX messages that were skipped: wrong length or checksum.
    pub(crate) garbled: u64,
    /// System calls that sent something, or found the socket full.
    pub(crate) sends: u64,
    /// Connections that ended, for whatever reason.
    pub(crate) closed: u64,
}

/// A place for the connection of one session. Its buffer is allocated at start and stays.
#[derive(Debug)]
struct Slot {
    session: SessionId,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// A FIX message that is too long and passes by.
    passing: Option<TooLong>,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    peer: SocketAddr,
    since: Timestamp,
    wire: Wire,
    /// Frames wait in the buffer for room somewhere.
    is_paused: bool,
    /// Since when the socket is full; the poller tells when it is not.
    full_since: Option<Timestamp>,
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
    Malformed(SoupError),
    Silent,
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

/// Heartbeats and timeouts of connections are looked at this often, at least.
const TIMEOUT_INTERVAL: Duration = Duration::from_millis(100);

impl Clients {
    /// For the sessions of `shard` whose clients come in by the door, nobody connected.
    ///
    /// # Errors
    /// Out of file descriptors.
    pub(crate) fn new(config: &Config, shard: ShardId, arrivals: Consumer<Delivery>) -> Result<Self, SetupError> {
        let highest = config.sessions.iter().map(|session| session.id.0).max().unwrap_or(0);
        let mut places = vec![None; usize::from(highest) + 1].into_boxed_slice();
        let mut slots = Vec::new();
        let of_door = |session: &&SessionConfig| session.shard == shard && session.link.is_none();
        for session in config.sessions.iter().filter(of_door) {
            places[usize::from(session.id.0)] = u32::try_from(slots.len()).ok();
            slots.push(Slot::new(session.id));
        }
        Ok(Self {
            arrivals,
            poller: Poller::new(MAX_READY_SOCKETS)?,
            connected: Vec::with_capacity(slots.len()),
            slots,
            places,
            next_timeout: Timestamp::NONE,
            paused: 0,
            counters: ClientCounters::default(),
        })
    }

    /// Bytes that the connection of a session takes: its receive buffer, and TLS where there is any.
    pub(crate) fn memory_bytes(config: &Config, session: &SessionConfig) -> usize {
        match session.protocol {
            _ if session.link.is_some() => 0,
            ProtocolConfig::Fix { .. } if config.tls.is_some() => RECEIVE_BUFFER_BYTES + Stream::TLS_BYTES,
            _ => RECEIVE_BUFFER_BYTES,
        }
    }

    /// Clients that are logged on.
    pub(crate) const fn connected(&self) -> usize {
        self.connected.len()
    }

    /// Where a session's client comes from, and since when it is here.
    pub(crate) fn connection(&self, session: SessionId) -> Option<(SocketAddr, Timestamp)> {
        let place = self.places.get(usize::from(session.0)).copied().flatten()?;
        let connection = self.slots[place as usize].connection.as_ref()?;
        Some((connection.peer, connection.since))
    }

    /// Counts since start.
    pub(crate) const fn counters(&self) -> &ClientCounters {
        &self.counters
    }

    /// Receives from whoever is ready and hands on what is whole. Returns whether anything came.
    pub(crate) fn receive<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) -> bool {
        // Counted before the poll: a client that comes back has closed its old connection before, so the poll tells of
        // that first.
        let arrived = self.arrivals.slots();
        let came = if self.are_few() {
            self.receive_from_each(shard, live)
        } else {
            self.receive_from_ready(shard, live)
        };
        if arrived > 0 {
            self.welcome(arrived, shard, live);
        }
        if self.paused > 0 {
            self.resume(shard, live);
        }
        if live.now >= self.next_timeout {
            self.timeouts(shard, live);
        }
        came || arrived > 0
    }

    /// Whether to look at each socket is cheaper than to ask which is ready, and no socket is waited for to take more.
    fn are_few(&self) -> bool {
        let is_full = |&place: &usize| {
            let connection = self.slots[place].connection.as_ref();
            connection.is_some_and(|connection| connection.full_since.is_some())
        };
        self.connected.len() <= MAX_SOCKETS_LOOKED_AT && !self.connected.iter().any(is_full)
    }

    fn receive_from_each<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) -> bool {
        let mut came = false;
        // From the end, because a connection that ends leaves the list.
        for index in (0..self.connected.len()).rev() {
            if let Some(&place) = self.connected.get(index) {
                came |= self.readable(place, shard, live);
            }
        }
        came
    }

    fn receive_from_ready<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) -> bool {
        let ready = self.poller.poll(Duration(0)).unwrap_or(0);
        for index in 0..ready {
            let ready = self.poller.ready(index);
            let place = usize::try_from(ready.token).unwrap_or(usize::MAX);
            if ready.writable {
                self.writable(place);
            }
            if ready.readable {
                self.readable(place, shard, live);
            }
        }
        ready > 0
    }

    /// Takes so many things from the door, as far as the journal has room for what comes of them.
    fn welcome<L: Link>(&mut self, count: usize, shard: &mut Shard, live: &mut Live<L>) {
        for _ in 0..count {
            if !live.journal_has_room() {
                return;
            }
            match self.arrivals.pop() {
                Ok(Delivery::Client(arrival)) => match self.judge(&arrival, shard, live) {
                    Ok((place, next)) => self.admit(place, next, *arrival, shard, live),
                    Err(refusal) => self.refuse(*arrival, refusal, live),
                },
                Ok(Delivery::Open(session, since)) => hours(session, Some(since), shard, live),
                Ok(Delivery::Closed(session)) => hours(session, None, shard, live),
                Err(_) => return,
            }
        }
    }

    /// What the door cannot know: whether the session has a connection, and which number it goes on from. Gives that and
    /// the session's slot.
    fn judge<L: Link>(
        &self,
        arrival: &Arrival,
        shard: &Shard,
        live: &Live<L>,
    ) -> Result<(usize, SequenceNumber), Refusal> {
        let session = arrival.session;
        let place = self.places.get(usize::from(session.0)).copied().flatten();
        let place = place.ok_or(Refusal::Unknown)? as usize;
        let output = live.clients.get(session).ok_or(Refusal::Unknown)?;
        if self.slots[place].connection.is_some() {
            return Err(Refusal::AlreadyConnected);
        }
        if shard.is_disabled(session) {
            return Err(Refusal::Disabled);
        }
        if shard.session_hours(session) == Some(None) {
            return Err(Refusal::OutsideHours);
        }
        let next = match &arrival.hello {
            Hello::Fix { .. } => SequenceNumber(1),
            Hello::Native { login, .. } => resumes_from(login, session_name(shard), output)?,
        };
        Ok((place, next))
    }

    /// Gives a client the slot of its session, and handles what it has sent so far as if it came now.
    fn admit<L: Link>(
        &mut self,
        place: usize,
        next: SequenceNumber,
        arrival: Arrival,
        shard: &mut Shard,
        live: &mut Live<L>,
    ) {
        let Arrival {
            stream,
            peer,
            session,
            hello,
            bytes,
        } = arrival;
        if let Err(error) = self.poller.add(&stream, place as u64, Interest::READ) {
            tracing::error!(%error, session = session.0, "watching a client's socket");
            return;
        }
        let mut answer = [0; soup::MAX_PACKET_LENGTH];
        let (wire, length) = match hello {
            Hello::Fix { binding } => {
                // One that a crash or a refusal kept from being written down comes again.
                if let Some(binding) = binding.filter(|binding| !shard.is_bound(binding)) {
                    live.append(&Record::SessionBound(binding));
                    shard.on_session_bound(&binding, live);
                }
                (Wire::Fix, 0)
            }
            Hello::Native { mut server, .. } => {
                let length = server.accept(live.now, session_name(shard), next, &mut answer);
                (Wire::Native(server), length)
            }
        };
        self.slots[place].open(Connection::new(stream, peer, live.now, wire), &bytes);
        self.connected.push(place);
        if let Some(output) = live.clients.wake(session) {
            output.connect(next);
            output.push_unnumbered(&answer[..length]);
        }
        tracing::info!(session = session.0, %peer, "client connected");
        live.append(&Record::SessionUp { session });
        shard.on_session_up(live.now, session, live);
        live.received();
        self.frames(place, shard, live);
    }

    /// Tells a client that it does not come in. Best effort: its connection ends here.
    fn refuse<L: Link>(&mut self, arrival: Arrival, refusal: Refusal, live: &mut Live<L>) {
        self.counters.logons_refused += 1;
        if live.lines.allows(live.now) {
            let (session, peer, claim) = (arrival.session.0, arrival.peer, arrival.claim());
            tracing::warn!(session, %peer, %claim, reason = refusal.text(), "logon refused");
        }
        let mut stream = arrival.stream;
        match arrival.hello {
            Hello::Fix { .. } => {
                let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
                drop(stream.send(refuse_fix(live.now, &arrival.bytes, refusal, &mut buffer)));
            }
            Hello::Native { mut server, .. } => {
                let mut packet = [0; soup::MAX_PACKET_LENGTH];
                let length = server.reject(refusal.in_soup(), &mut packet);
                drop(stream.send(&packet[..length]));
            }
        }
        stream.close();
    }

    /// Takes what the socket has and handles what is whole. Whether anything came.
    fn readable<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) -> bool {
        let Some(slot) = self.slots.get_mut(place) else {
            return false;
        };
        let Some(connection) = &mut slot.connection else {
            return false;
        };
        if connection.is_paused {
            return false; // The kernel keeps it; TCP tells the client to wait.
        }
        let end = match connection.stream.recv(&mut slot.buffer[slot.end..]) {
            Ok(Received::Bytes(count)) => {
                slot.end += count;
                live.received();
                self.frames(place, shard, live);
                return true;
            }
            Ok(Received::Nothing) => return false,
            Ok(Received::Closed) | Err(_) => End::Closed,
        };
        self.end(place, end, shard, live);
        true
    }

    /// Handles the whole frames in a slot's buffer, and sends what of it had to wait for more.
    fn frames<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) {
        self.each_frame(place, shard, live);
        live.release_held();
    }

    /// Handles the whole frames in a slot's buffer, and what TLS has decrypted and could not give for want of room there:
    /// no readiness tells of that.
    fn each_frame<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) {
        loop {
            match self.frame(place, shard, live) {
                Step::Used(count) => self.slots[place].start += count,
                Step::Incomplete => {
                    self.slots[place].compact();
                    if !self.slots[place].receive_more() {
                        return;
                    }
                }
                Step::NoRoom => {
                    self.pause(place, true);
                    return self.slots[place].compact();
                }
                Step::End(end) => return self.end(place, end, shard, live),
            }
        }
    }

    /// Handles the first frame in a slot's buffer.
    fn frame<L: Link>(&mut self, place: usize, shard: &mut Shard, live: &mut Live<L>) -> Step {
        let Self { slots, counters, .. } = self;
        let slot = &mut slots[place];
        let bytes = &slot.buffer[slot.start..slot.end];
        let Some(connection) = &mut slot.connection else {
            return Step::Incomplete;
        };
        if !live.journal_has_room() || !live.clients.has_room(slot.session) {
            return Step::NoRoom;
        }
        let mut desk = Desk {
            session: slot.session,
            shard,
            live,
        };
        match &mut connection.wire {
            Wire::Native(server) => desk.native_frame(server, bytes),
            Wire::Fix => desk.fix_frame(&mut slot.passing, bytes, connection.peer, counters),
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
        // A failure shows at the next receive.
        drop(connection.stream.flush());
        if connection.stream.is_backed_up() {
            return;
        }
        connection.full_since = None;
        drop(self.poller.modify(&connection.stream, place as u64, Interest::READ));
    }

    /// Sends what may leave, to everyone who has something waiting.
    pub(crate) fn send<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) {
        let open = live.open_position();
        for index in 0..live.clients.waiting() {
            let session = live.clients.waiting_session(index);
            let Some(place) = self.places[usize::from(session.0)] else {
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
            if connection.full_since.is_some() {
                break;
            }
            let bytes = output.outbox.sendable(open);
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len();
            self.counters.sends += 1;
            match connection.stream.send(bytes) {
                Ok(count) => {
                    output.outbox.sent(count);
                    if count < length || connection.stream.is_backed_up() {
                        connection.full_since = Some(live.now);
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
        if output.is_closing && output.outbox.is_empty() && !connection.stream.is_backed_up() {
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
        slot.passing = None;
        let session = slot.session;
        self.connected.retain(|&other| other != place);
        if let End::Malformed(error) = end {
            connection.tell(error);
        }
        connection.stream.close();
        self.counters.closed += 1;
        match end {
            End::Closed => {}
            End::Malformed(_) => self.counters.malformed += 1,
            End::Silent => self.counters.silent += 1,
            End::TooSlow => self.counters.too_slow += 1,
        }
        let (id, peer, reason) = (session.0, connection.peer, end.text());
        match end {
            End::Malformed(error) => tracing::warn!(session = id, %peer, reason, %error, "client connection ended"),
            End::TooSlow => tracing::warn!(session = id, %peer, reason, "client connection ended"),
            _ => tracing::info!(session = id, %peer, reason, "client connection ended"),
        }
        if let Some(output) = live.clients.get_mut(session) {
            output.disconnect();
        }
        live.append(&Record::SessionDown { session });
        shard.on_session_down(live.now, session, live);
    }

    /// Clients that read nothing, heartbeats of native sessions, and their silence.
    fn timeouts<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) {
        self.next_timeout = live.now + TIMEOUT_INTERVAL;
        if let Some(count) = live.lines.left_out(live.now) {
            tracing::warn!(count, "more lines about clients within a second");
        }
        for place in 0..self.slots.len() {
            let slot = &mut self.slots[place];
            let Some(connection) = &mut slot.connection else {
                continue;
            };
            let is_stuck = |since: Timestamp| live.now.since(since).0 >= MAX_SEND_STALL_NS;
            if connection.full_since.is_some_and(is_stuck) {
                self.end(place, End::TooSlow, shard, live);
                continue;
            }
            let Wire::Native(server) = &mut connection.wire else {
                continue;
            };
            let mut packet = [0; soup::HEADER_LENGTH];
            match server.on_timeout(live.now, &mut packet) {
                Ok(0) => {}
                Ok(length) => {
                    if let Some(output) = live.clients.wake(slot.session) {
                        output.push_unnumbered(&packet[..length]);
                    }
                }
                Err(_) => self.end(place, End::Silent, shard, live),
            }
        }
    }
}

/// Where the frames of one session are handled.
struct Desk<'a, L> {
    session: SessionId,
    shard: &'a mut Shard,
    live: &'a mut Live<L>,
}

impl<L: Link> Desk<'_, L> {
    fn native_frame(&mut self, server: &mut ServerSession, bytes: &[u8]) -> Step {
        let (packet, used) = match soup::parse(bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return Step::Incomplete,
            Err(error) => return Step::End(End::Malformed(error)),
        };
        match server.on_packet(self.live.now, packet) {
            Ok(Some(ServerEvent::Message(message))) => self.message(message, used < bytes.len()),
            Ok(Some(ServerEvent::Logout)) => return Step::End(End::Closed),
            Ok(Some(ServerEvent::Debug(_)) | None) => {}
            // It takes one login, and this was not the first.
            Ok(Some(ServerEvent::Login(_))) => {}
            Err(error) => return Step::End(End::Malformed(error)),
        }
        Step::Used(used)
    }

    fn fix_frame(
        &mut self,
        passing: &mut Option<TooLong>,
        bytes: &[u8],
        peer: SocketAddr,
        counters: &mut ClientCounters,
    ) -> Step {
        if let Some(long) = passing {
            let passage = self.pass(long, bytes, peer, counters);
            if !matches!(passage, Passage::On(_)) {
                *passing = None;
            }
            return passage.into();
        }
        match fix::frame(bytes) {
            fix::Frame::Incomplete => Step::Incomplete,
            fix::Frame::TooLong(length) => {
                *passing = Some(TooLong::new(length));
                Step::Used(0)
            }
            fix::Frame::Garbled(skip, _) => {
                counters.garbled += 1;
                Step::Used(skip)
            }
            fix::Frame::Message(length) => {
                self.message(&bytes[..length], length < bytes.len());
                Step::Used(length)
            }
        }
    }

    /// More of a FIX message that is too long. Once it has passed, its session refuses it.
    #[cold]
    fn pass(
        &mut self,
        passing: &mut TooLong,
        bytes: &[u8],
        peer: SocketAddr,
        counters: &mut ClientCounters,
    ) -> Passage {
        let passage = passing.pass(bytes);
        match passage {
            Passage::On(_) => {}
            Passage::Garbled(_) => counters.garbled += 1,
            Passage::Whole(_) => {
                counters.too_long += 1;
                let (session, head, length) = (self.session, passing.head(), passing.length());
                if self.live.lines.allows(self.live.now) {
                    tracing::warn!(session = session.0, %peer, length, "message refused, it is too long");
                }
                // Nine digits, see `fix::frame`.
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                self.live.expect_more(false);
                self.live.append(&Record::ClientTooLong { session, length, head });
                self.shard.on_client_too_long(self.live.now, session, head, self.live);
            }
        }
        passage
    }

    /// A message of a client: into the journal, then to the shard. More may follow it in the buffer.
    fn message(&mut self, message: &[u8], more_follows: bool) {
        let session = self.session;
        self.live.expect_more(more_follows);
        self.live.append(&Record::ClientMessage { session, message });
        self.shard.on_client_message(self.live.now, session, message, self.live);
    }
}

impl Connection {
    const fn new(stream: Stream, peer: SocketAddr, since: Timestamp, wire: Wire) -> Self {
        Self {
            stream,
            peer,
            since,
            wire,
            is_paused: false,
            full_since: None,
        }
    }

    /// Tells a native client what was wrong with what it sent, in words for people: SoupBinTCP has nothing else for it.
    fn tell(&mut self, error: SoupError) {
        // Half a packet may have been sent; nothing can follow that.
        if self.full_since.is_none() {
            let mut packet = [0; soup::MAX_PACKET_LENGTH];
            let length = soup::write_debug(error.to_string().as_bytes(), &mut packet);
            drop(self.stream.send(&packet[..length]));
        }
    }
}

impl From<Passage> for Step {
    fn from(passage: Passage) -> Self {
        match passage {
            Passage::On(0) => Self::Incomplete,
            Passage::On(count) | Passage::Whole(count) | Passage::Garbled(count) => Self::Used(count),
        }
    }
}

impl Slot {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            buffer: vec![0; RECEIVE_BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            passing: None,
            connection: None,
        }
    }

    /// A connection of which these bytes have been received.
    fn open(&mut self, connection: Connection, bytes: &[u8]) {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        self.start = 0;
        self.end = bytes.len();
        self.connection = Some(connection);
    }

    /// Takes what its connection has decrypted. Returns whether there was anything.
    fn receive_more(&mut self) -> bool {
        let Some(connection) = self
            .connection
            .as_mut()
            .filter(|connection| connection.stream.has_more())
        else {
            return false;
        };
        match connection.stream.recv(&mut self.buffer[self.end..]) {
            Ok(Received::Bytes(count)) => {
                self.end += count;
                true
            }
            // The end of the connection shows at the next receive.
            Ok(Received::Nothing | Received::Closed) | Err(_) => false,
        }
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
            Self::Malformed(_) => "not the protocol",
            Self::Silent => "nothing came for too long",
            Self::TooSlow => "reads too slowly",
        }
    }
}

/// The name of the running session in SoupBinTCP: the trading day that its numbers began in, as text. They go on over days, and
/// begin anew with an empty journal.
fn session_name(shard: &Shard) -> SessionName {
    let day = shard.first_day();
    SessionName::new(day.0.to_string().as_bytes()).unwrap_or(SessionName::BLANK)
}

/// The number that a native client goes on from.
fn resumes_from(login: &Login, running: SessionName, output: &ClientOutput) -> Result<SequenceNumber, Refusal> {
    if login.session != SessionName::BLANK && login.session != running {
        return Err(Refusal::OtherSession);
    }
    let (oldest, next) = output.held().ok_or(Refusal::Unknown)?;
    login
        .resume_from(next)
        .filter(|&from| from >= oldest)
        .ok_or(Refusal::NotHeld)
}

/// Hours that are not news are no input: after a restart the shard knows them from its journal.
pub(crate) fn hours<L: Link>(session: SessionId, since: Option<Timestamp>, shard: &mut Shard, live: &mut Live<L>) {
    if shard.session_hours(session) != Some(since) {
        tracing::info!(session = session.0, is_open = since.is_some(), "session hours");
        live.append(&Record::SessionHours { session, since });
        shard.on_session_hours(live.now, session, since, live);
    }
}
