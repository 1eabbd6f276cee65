//! The link over RoCEv2 in user space: messages are RDMA WRITEs with immediate into a ring that the receiver registered.
//!
//! The ends meet over TCP (`hello`) and then speak RoCEv2 between two addresses of their own. Message `n` goes into slot
//! `n` modulo the ring; its immediate is the low half of `n`. A slot begins with the number that its sender wants next,
//! so every message gives credits back; where none goes for a while, that number is written to a word behind the ring.
//! A sender never has more messages in the ring than the ring holds, so no slot is overwritten before it was handed out
//! and no receive is missing.
//!
//! When a queue pair breaks, or the TCP connection ends, the ends meet anew under new numbers and keys, and each sends
//! again from the message that the other wants.

mod hello;
mod ring;
mod socket;
#[cfg(test)]
mod tests;

pub use hello::RoceMismatch;

use super::tcp::Connector;
use super::{DownReason, Link, LinkCounters, LinkEnd, LinkEvent, Resume};
use crate::error::SetupError;
use crate::options::TcpOptions;
use crate::tcp::{self, TcpListener, TcpStream};
use hello::{Hello, MAGIC, Meeting, gid};
use proto::roce::{
    Attributes, Completion, Config, ConfigError, Failure, ICRC_LENGTH, Identification, Operation, Path, QueuePair,
    ReceiveRequest, Region, Regions, Remote, SendRequest, wire,
};
use ring::{Arena, Outgoing};
use socket::RoceSocket;
use std::io;
use std::net::{IpAddr, SocketAddr};
use types::{Duration, SequenceNumber, Timestamp};
use zerocopy::little_endian::{U32, U64};

/// What one end is built from.
#[derive(Clone, Copy, Debug)]
pub struct RoceLinkConfig {
    /// Which end it is at the meeting over TCP, and where.
    pub end: LinkEnd,
    /// The RoCEv2 address of this end, at UDP port 4791; no other end may have it.
    pub local: IpAddr,
    /// The peer's.
    pub peer: IpAddr,
    /// The session; the same at both ends.
    pub session: u32,
    /// Most unacknowledged messages, a power of two; the same at both ends.
    pub window: usize,
    /// Longest message, bytes; the same at both ends.
    pub max_message: usize,
    /// Without a message for this long the peer is shown that this end lives.
    pub heartbeat: Duration,
    /// How long a peer that stops answering is waited for is [`Config::patience`].
    pub queue_pair: Config,
}

/// One end of a link over RoCEv2.
#[derive(Debug)]
pub struct RoceLink {
    config: RoceLinkConfig,
    socket: RoceSocket,
    pair: QueuePair,
    regions: Regions,
    arena: Arena,
    outgoing: Outgoing,
    /// The first message that was numbered after the start.
    start: u64,
    /// The message that is to come next.
    next_receive: u64,
    door: Door,
    meeting: Option<(Meeting, Hello)>,
    session: Option<Session>,
    random: Random,
    /// Told once a reason, until the link was up.
    down_told: Option<DownReason>,
    event: Option<LinkEvent>,
    /// Turns until TCP is looked at again, while there is a session.
    looks: u32,
    buffer: Box<[u8]>,
    counters: LinkCounters,
}

/// How the ends meet.
#[derive(Debug)]
enum Door {
    Connect(Connector),
    Listen(TcpListener),
}

/// What there is between two meetings.
#[derive(Debug)]
struct Session {
    stream: TcpStream,
    to: Path,
    from: Path,
    ring: Remote,
    remote_key: u32,
    /// The number that the peer was told last.
    told: u64,
    /// When that is to be told anew, if no message does; never, where it is not.
    tell_at: Timestamp,
    /// When something was posted last.
    posted_at: Timestamp,
}

impl RoceLinkConfig {
    /// The default between two addresses.
    #[must_use]
    pub const fn new(end: LinkEnd, local: IpAddr, peer: IpAddr, window: usize, max_message: usize) -> Self {
        Self {
            end,
            local,
            peer,
            session: 0,
            window,
            max_message,
            heartbeat: Duration::from_millis(10),
            // Each message, and the word now and then.
            queue_pair: Config::new(2 * window, max_message + ring::PREFIX),
        }
    }

    /// Whether these settings can work.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn check(&self) -> Result<(), String> {
        if !self.window.is_power_of_two() {
            return Err(format!("window = {}: a power of two is needed", self.window));
        }
        if self.max_message == 0 || self.queue_pair.max_message < self.max_message + ring::PREFIX {
            return Err("max_message must be at least 1, and messages of the queue pair 8 bytes longer".to_owned());
        }
        if self.queue_pair.send_queue <= self.window || self.queue_pair.receive_queue < self.window {
            return Err("the queues of the queue pair must hold the window, and one more to be sent".to_owned());
        }
        if self.heartbeat.0 == 0 {
            return Err("heartbeat must be above 0".to_owned());
        }
        if self.local.is_ipv4() != self.peer.is_ipv4() || self.local == self.peer {
            return Err("local and peer must be two addresses of one family".to_owned());
        }
        self.queue_pair.check().map_err(|error: ConfigError| error.to_string())
    }

    /// Bytes of memory that the link allocates, but for the queue pair's own lists.
    #[must_use]
    pub const fn memory(&self) -> usize {
        Arena::length(self.window, self.max_message) + self.window * 16 + self.buffer()
    }

    /// Bytes of the longest packet.
    const fn buffer(&self) -> usize {
        wire::packet_length_max(self.queue_pair.mtu) + ICRC_LENGTH
    }
}

impl RoceLink {
    /// Builds one end; all memory is allocated here. `seed` differs with each start of this end; the time will do.
    ///
    /// # Errors
    /// The configuration contradicts itself, or an address cannot be had.
    pub fn new(config: &RoceLinkConfig, seed: u64, resume: Resume) -> Result<Self, SetupError> {
        let wrong = |what: String| {
            let source = io::Error::new(io::ErrorKind::InvalidInput, what);
            SetupError::new("checking a RoCEv2 link", source, "correct the configuration")
        };
        config.check().map_err(wrong)?;
        let socket = RoceSocket::bind(SocketAddr::new(config.local, wire::UDP_PORT))?;
        let options = TcpOptions::tuned();
        let door = match config.end {
            LinkEnd::Connect { peer, local } => Door::Connect(Connector::new(
                peer,
                local,
                options,
                MEET_WITHIN,
                (RETRY_MIN, RETRY_MAX),
            )),
            LinkEnd::Listen { local } => Door::Listen(TcpListener::bind(local, &options)?),
        };
        let arena = Arena::new(config.window, config.max_message);
        Ok(Self {
            config: *config,
            socket,
            pair: QueuePair::new(config.queue_pair).map_err(|error| wrong(error.to_string()))?,
            regions: Regions::new(1, arena.bytes.len()),
            arena,
            outgoing: Outgoing::new(config.window, resume.next_send.0),
            start: resume.next_send.0,
            next_receive: resume.next_receive.0,
            door,
            meeting: None,
            session: None,
            random: Random(seed),
            down_told: None,
            event: None,
            looks: 0,
            // One byte more, so that what was cut off is longer than any good packet.
            buffer: vec![0; config.buffer() + 1].into(),
            counters: LinkCounters::default(),
        })
    }

    /// Where the listening end listens.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.door {
            Door::Listen(listener) => listener.local_addr().ok(),
            Door::Connect(_) => None,
        }
    }

    /// The protocol's own counts.
    #[must_use]
    pub const fn roce_counters(&self) -> proto::roce::Counters {
        self.pair.counters()
    }

    /// Looks at TCP: the end of the session, a new peer, the next step of a meeting.
    fn meet(&mut self, now: Timestamp) {
        if let Some(session) = &mut self.session {
            self.looks = self.looks.wrapping_add(1);
            if !self.looks.is_multiple_of(TURNS_PER_LOOK) {
                return;
            }
            let outcome = session.stream.recv(&mut [0; 1]);
            match outcome {
                Ok(tcp::Received::Nothing) => {}
                Ok(tcp::Received::Closed) => self.end(now, DownReason::Closed),
                Ok(tcp::Received::Bytes(_)) => self.end(now, DownReason::Malformed),
                Err(error) => self.end(now, DownReason::Io(error.kind())),
            }
        }
        if self.meeting.is_none() {
            let found = match &mut self.door {
                Door::Connect(_) if self.session.is_some() => return,
                Door::Connect(connector) => connector.turn(now),
                Door::Listen(listener) => listener.accept().map(|accepted| accepted.map(|(stream, _)| stream)),
            };
            match found {
                Ok(Some(stream)) => {
                    let meeting = Meeting::new(stream, now + MEET_WITHIN);
                    self.meeting = Some((meeting, self.hello()));
                }
                Ok(None) => return,
                Err(error) => {
                    self.give_up(now, DownReason::Io(error.kind()));
                    return;
                }
            }
        }
        let Some((meeting, ours)) = &mut self.meeting else {
            return;
        };
        match meeting.turn(ours) {
            Ok(Some(theirs)) => self.begin(now, &theirs),
            Ok(None) if now < meeting.until => {}
            Ok(None) => self.give_up(now, DownReason::Silent),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.counters.malformed += 1;
                self.give_up(now, DownReason::Malformed);
            }
            Err(error) => self.give_up(now, DownReason::Io(error.kind())),
        }
    }

    /// What this end tells at a meeting: under new numbers and a new key each time.
    fn hello(&mut self) -> Hello {
        let size = |length: usize| U32::new(u32::try_from(length).unwrap_or(u32::MAX));
        Hello {
            magic: MAGIC,
            session: U32::new(self.config.session),
            // 0 and 1 are for management.
            qpn: U32::new(self.random.bits(24).max(2)),
            psn: U32::new(self.random.bits(24)),
            remote_key: U32::new(self.random.bits(32)),
            address: U64::new(RING_ADDRESS),
            slots: size(self.config.window),
            max_message: size(self.config.max_message),
            mtu: size(self.config.queue_pair.mtu),
            gid: gid(self.config.local),
            peer_gid: gid(self.config.peer),
            next_receive: U64::new(self.next_receive),
            oldest: U64::new(self.outgoing.base),
            next_send: U64::new(self.outgoing.next),
        }
    }

    /// Both have told: the session begins, if they fit.
    fn begin(&mut self, now: Timestamp, theirs: &Hello) {
        let Some((meeting, mut ours)) = self.meeting.take() else {
            return;
        };
        // What was acknowledged or numbered while the other end was telling its part.
        ours.oldest = U64::new(self.outgoing.base);
        ours.next_send = U64::new(self.outgoing.next);
        let misfit = match (ours.check(theirs), ours.can_resume(theirs), theirs.can_resume(&ours)) {
            (Err(mismatch), _, _) => Some(DownReason::Mismatched(mismatch)),
            (_, Err(reason), _) | (_, _, Err(reason)) => Some(reason),
            _ => None,
        };
        if let Some(reason) = misfit {
            self.counters.refused += 1;
            self.give_up(now, reason);
            return;
        }
        if self.session.is_some() {
            self.end(now, DownReason::Replaced);
        }
        if ours.next_receive.get() != self.next_receive {
            // A message of the old session came after it was told what is wanted: the ends meet once more.
            self.give_up(now, DownReason::Replaced);
            return;
        }
        self.establish(now, meeting.into_stream(), &ours, theirs);
    }

    fn establish(&mut self, now: Timestamp, stream: TcpStream, ours: &Hello, theirs: &Hello) {
        let [local, peer] = [self.config.local, self.config.peer].map(|ip| SocketAddr::new(ip, wire::UDP_PORT));
        let remote_key = ours.remote_key.get();
        let region = Region {
            remote_key,
            address: RING_ADDRESS,
            offset: 0,
            length: self.arena.reached(),
            access: proto::roce::Access {
                remote_read: false,
                remote_write: true,
            },
        };
        self.regions
            .register(region)
            .expect("it is the only one, and lies in the arena");
        let wanted = theirs.next_receive.get();
        let word = self.arena.word();
        self.arena.put_number(word, wanted);
        self.outgoing.resume(wanted);
        self.pair.connect(Attributes {
            local_qpn: ours.qpn.get(),
            peer_qpn: theirs.qpn.get(),
            send_psn: ours.psn.get(),
            receive_psn: theirs.psn.get(),
        });
        for _ in 0..self.config.window {
            self.post_receive();
        }
        self.session = Some(Session {
            stream,
            to: Path::new(local, peer),
            from: Path::new(peer, local),
            ring: Remote {
                address: theirs.address.get(),
                key: theirs.remote_key.get(),
            },
            remote_key,
            told: self.next_receive,
            tell_at: NEVER,
            posted_at: now,
        });
        if let Door::Connect(connector) = &mut self.door {
            connector.on_up();
        }
        self.counters.ups += 1;
        self.down_told = None;
        self.event = Some(LinkEvent::Up);
    }

    /// A place for one immediate; its message goes into the ring.
    fn post_receive(&mut self) {
        let request = ReceiveRequest {
            id: 0,
            offset: 0,
            length: 0,
        };
        let posted = self.pair.post_receive(request, &self.regions);
        debug_assert!(posted.is_ok(), "there are as many as the ring has slots");
    }

    /// The session is over.
    fn end(&mut self, now: Timestamp, reason: DownReason) {
        if let Some(session) = self.session.take() {
            self.regions.deregister(session.remote_key);
            self.pair.close();
            while self.pair.poll_completion().is_some() {}
            self.counters.downs += 1;
            self.event = Some(LinkEvent::Down(reason));
            self.down_told = Some(reason);
            if let Door::Connect(connector) = &mut self.door {
                connector.on_down(now);
            }
        }
    }

    /// There will be no session with whom this end was meeting.
    fn give_up(&mut self, now: Timestamp, reason: DownReason) {
        self.meeting = None;
        if self.session.is_some() {
            return;
        }
        if let Door::Connect(connector) = &mut self.door {
            connector.on_down(now);
        }
        if self.down_told != Some(reason) {
            self.down_told = Some(reason);
            self.event = self.event.or(Some(LinkEvent::Down(reason)));
        }
    }

    /// Takes in one packet. `false`: there is none.
    fn receive(&mut self, now: Timestamp) -> io::Result<bool> {
        let Some(arrived) = self.socket.recv(&mut self.buffer)? else {
            return Ok(false);
        };
        self.counters.bytes_received += arrived.length as u64;
        let Some(session) = &self.session else { return Ok(true) };
        let is_from_peer = arrived.from == SocketAddr::new(self.config.peer, wire::UDP_PORT);
        let payload = &self.buffer[..arrived.length];
        let packet = is_from_peer
            .then(|| session.from.open(payload, Identification::Hidden))
            .flatten();
        match packet {
            Some(packet) => {
                let memory = &mut self.arena.bytes;
                self.pair
                    .on_packet(now, packet, arrived.is_marked, &self.regions, memory);
            }
            None => self.counters.malformed += 1,
        }
        Ok(true)
    }

    /// The next message that has come, copied out.
    fn next_message(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        while self.session.is_some()
            && let Some(completion) = self.pair.poll_completion()
        {
            let Completion::Receive {
                status: Ok(received), ..
            } = completion
            else {
                continue;
            };
            let number = self.next_receive;
            let length = received.length.wrapping_sub(ring::PREFIX);
            if !received.is_write || received.immediate != Some(low_32(number)) || length > self.config.max_message {
                self.counters.malformed += 1;
                self.end(now, DownReason::Malformed);
                break;
            }
            let slot = self.arena.slot(number);
            if !self.outgoing.acknowledge(self.arena.number(slot)) {
                self.end(now, DownReason::FalseAck);
                break;
            }
            buffer[..length].copy_from_slice(&self.arena.bytes[slot + ring::PREFIX..][..length]);
            self.next_receive += 1;
            self.post_receive();
            if let Some(session) = &mut self.session
                && session.tell_at == NEVER
            {
                session.tell_at = now + TELL_AFTER;
            }
            self.counters.received += 1;
            return Some(LinkEvent::Message {
                sequence: SequenceNumber(number),
                length,
            });
        }
        None
    }

    /// Looks whether the session is still good, and at the peer's word.
    fn look(&mut self, now: Timestamp) {
        if self.session.is_none() {
            return;
        }
        if let Some(failure) = self.pair.failure() {
            self.end(now, down_reason(failure));
        } else if !self.outgoing.acknowledge(self.arena.number(self.arena.word())) {
            self.end(now, DownReason::FalseAck);
        }
    }

    /// Posts what may leave.
    fn post(&mut self, now: Timestamp, watermark: u64) {
        let Some(session) = &mut self.session else { return };
        // One place is the word's.
        while self.outgoing.is_sendable(watermark) && self.pair.send_room() > 1 {
            let number = self.outgoing.sent;
            let offset = self.arena.outgoing(number);
            self.arena.put_number(offset, self.next_receive);
            let request = SendRequest {
                id: number,
                operation: Operation::Write {
                    to: Remote {
                        address: session.ring.address.wrapping_add(self.arena.slot(number) as u64),
                        key: session.ring.key,
                    },
                    immediate: Some(low_32(number)),
                },
                offset,
                length: ring::PREFIX + self.outgoing.length(number),
                is_signaled: false,
            };
            if self.pair.post_send(request, &self.regions).is_err() {
                return;
            }
            self.outgoing.sent += 1;
            if number < self.outgoing.highest {
                self.counters.retransmitted += 1;
            } else {
                self.outgoing.highest = number + 1;
                self.counters.sent += 1;
            }
            (session.told, session.tell_at, session.posted_at) = (self.next_receive, NEVER, now);
        }
        let is_owed = self.next_receive - session.told >= (self.config.window / 4).max(1) as u64;
        let is_quiet = now >= session.posted_at + self.config.heartbeat;
        if (is_owed || is_quiet || now >= session.tell_at) && self.pair.send_room() > 0 {
            let offset = self.arena.outgoing_word();
            self.arena.put_number(offset, self.next_receive);
            let request = SendRequest {
                id: 0,
                operation: Operation::Write {
                    to: Remote {
                        address: session.ring.address.wrapping_add(self.arena.word() as u64),
                        key: session.ring.key,
                    },
                    immediate: None,
                },
                offset,
                length: ring::PREFIX,
                is_signaled: false,
            };
            if self.pair.post_send(request, &self.regions).is_ok() {
                (session.told, session.tell_at, session.posted_at) = (self.next_receive, NEVER, now);
            }
        }
    }

    fn transmit(&mut self, now: Timestamp) -> io::Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        let to = SocketAddr::new(self.config.peer, wire::UDP_PORT);
        while let Some(length) = self.pair.poll_transmit(now, &self.arena.bytes, &mut self.buffer) {
            let length = session.to.seal(&mut self.buffer, length);
            if !self.socket.send_to(&self.buffer[..length], to)? {
                // The socket's buffer is full: this one is lost and will be repaired, the rest waits for the next turn.
                break;
            }
            self.counters.bytes_sent += length as u64;
        }
        Ok(())
    }
}

impl Link for RoceLink {
    fn room(&self) -> usize {
        self.outgoing.room()
    }

    fn is_up(&self) -> bool {
        self.session.is_some()
    }

    fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        assert!(!message.is_empty() && message.len() <= self.config.max_message);
        let number = self.outgoing.push(message.len(), position);
        self.put(number, message);
        SequenceNumber(number)
    }

    fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        assert!(!message.is_empty() && message.len() <= self.config.max_message);
        self.outgoing.restore(sequence.0, message.len());
        self.put(sequence.0, message);
    }

    /// Not asked for: a peer that has lost what it had acknowledged is told that the session cannot resume.
    fn recalled(&mut self, _: SequenceNumber, _: &[u8]) {}

    fn not_recalled(&mut self, _: SequenceNumber) {}

    /// Takes nothing in, acknowledgements neither: an owner without room has to wait for `poll` to make some.
    fn poll_recall(&mut self, _: Timestamp) -> Option<LinkEvent> {
        None
    }

    fn poll(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        assert!(
            self.outgoing.is_whole(self.start),
            "messages are missing between those restored and the next"
        );
        if let Some(event) = self.event.take() {
            return Some(event);
        }
        for _ in 0..RECEIVES_MAX {
            if let Some(message) = self.next_message(now, buffer) {
                return Some(message);
            }
            self.look(now);
            if self.event.is_some() {
                return self.event.take();
            }
            match self.receive(now) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.end(now, DownReason::Io(error.kind()));
                    break;
                }
            }
        }
        self.meet(now);
        self.event.take()
    }

    fn flush(&mut self, now: Timestamp, watermark: u64) {
        self.post(now, watermark);
        if let Err(error) = self.transmit(now) {
            self.end(now, DownReason::Io(error.kind()));
        }
    }

    fn counters(&self) -> LinkCounters {
        let roce = self.pair.counters();
        LinkCounters {
            duplicates: roce.duplicate_request,
            naks_sent: roce.out_of_seq_request,
            naks_received: roce.rcvd_seq_err,
            malformed: self.counters.malformed + roce.malformed + roce.resp_false,
            ..self.counters
        }
    }
}

impl RoceLink {
    fn put(&mut self, number: u64, message: &[u8]) {
        let offset = self.arena.outgoing(number) + ring::PREFIX;
        self.arena.bytes[offset..offset + message.len()].copy_from_slice(message);
    }
}

/// Why a link is down whose queue pair broke.
const fn down_reason(failure: Failure) -> DownReason {
    match failure {
        Failure::RetryExceeded => DownReason::Silent,
        Failure::RnrRetryExceeded => DownReason::Stalled,
        Failure::Closed | Failure::Flushed => DownReason::Closed,
        Failure::Refused(_) => DownReason::Refused,
        Failure::RefusedPeer(_) | Failure::BadResponse => DownReason::Malformed,
    }
}

/// SplitMix64: numbers and keys that a packet of the past does not have. They are no secret.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn bits(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low_32((mixed ^ (mixed >> 31)) >> (64 - count))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low_32(number: u64) -> u32 {
    number as u32
}

/// Where a ring is in its peer's eyes: there is no address space to be shown, and any number does.
const RING_ADDRESS: u64 = 0x1000;
/// A time that does not come.
const NEVER: Timestamp = Timestamp(u64::MAX);
/// A meeting takes no longer.
const MEET_WITHIN: Duration = Duration::from_secs(1);
/// Pauses between attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(1);
const RETRY_MAX: Duration = Duration::from_millis(100);
/// How long the peer waits for the number that this end wants next, if no message tells it.
const TELL_AFTER: Duration = Duration::from_micros(50);
/// TCP is looked at once in so many turns while there is a session: a system call that finds nothing.
const TURNS_PER_LOOK: u32 = 256;
/// Packets received in one `poll` without a message among them, at most.
const RECEIVES_MAX: usize = 64;
