//! The link over RoCEv2: messages are RDMA WRITEs with immediate into a ring that the receiver registered, or
//! SENDs with immediate.
//!
//! The ends meet over TCP (`hello`), or by rdma_cm, and then speak RoCEv2 between two addresses of their own. By RDMA WRITE, message `n`
//! goes into slot `n` modulo the receiver's ring; by SEND, into the next receive. Its immediate is the low half of `n`. A
//! message begins with the number that its sender wants next, so every message gives credits back; where none goes for a
//! while, that number travels by itself, as a word. A sender never has more messages under way than the receiver's ring
//! holds, so no slot is overwritten before it was handed out and no receive is missing.
//!
//! Packets are taken in whether or not the owner has room: they wait in the ring, and what they acknowledge makes room.
//!
//! When a queue pair breaks, the TCP connection ends, or a peer shows nothing for too long, the ends meet anew under new
//! numbers and keys, and each sends again from the message that the other wants, out of its ring or its owner's journal.

mod backend;
#[cfg(feature = "verbs")]
mod card;
#[cfg(feature = "verbs")]
mod cm_meeting;
mod config;
mod hello;
mod meeting;
mod outgoing;
mod port;
mod random;
mod read;
#[cfg(feature = "verbs")]
mod requests;
mod ring;
#[cfg(feature = "verbs")]
mod seat;
mod session;
mod socket;
#[cfg(test)]
mod tests;
mod user_space;
#[cfg(feature = "verbs")]
mod verbs;
#[cfg(all(test, feature = "verbs"))]
mod verbs_tests;
mod way;

pub use backend::{Backend, Introduction};
pub use config::{DeviceName, RoceLinkConfig, RoceMeeting, RoceOperation, RoceTable};
pub use hello::RoceMismatch;
pub use user_space::UserSpace;
#[cfg(feature = "verbs")]
pub use verbs::Verbs;

use super::{DownReason, Link, LinkCounters, LinkEnd, LinkEvent, LinkState, LinkView, RefusedFor, RefusedPeer, Resume};
use crate::error::SetupError;
use hello::{Hello, MAGIC, Verdict, gid};
use meeting::{Caller, Door};
use outgoing::Outgoing;
use proto::roce::{Completion, ReceiveRequest, Received, SendRequest};
use random::Random;
use read::{READ, Reads};
use ring::{Arena, CONTROL_RECEIVES, Incoming, PREFIX, Place, WORD};
use session::Session;
use std::io;
use std::net::SocketAddr;
use types::{SequenceNumber, Timestamp};
use way::Way;
use zerocopy::little_endian::{U32, U64};

/// One end of a link over RoCEv2.
#[derive(Debug)]
pub struct RoceLink<B = UserSpace> {
    config: RoceLinkConfig,
    backend: B,
    arena: Arena,
    outgoing: Outgoing,
    incoming: Incoming,
    door: Door,
    /// What the connecting end told at the meeting under way.
    offered: Option<Hello>,
    session: Option<Session>,
    reads: Reads,
    random: Random,
    /// Why the link could not come up, as last told: one reason is told once, however many attempts fail by it.
    told: Option<DownReason>,
    event: Option<LinkEvent>,
    look: Look,
    /// Whom this end refused last.
    refused: Option<RefusedPeer>,
    counters: LinkCounters,
}

/// What the last look into the socket found. To look once more after a packet costs a system call, and the answer waits for
/// it: on a quiet link that is left to the next turn. On a busy one everything is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    /// Nothing.
    Quiet,
    /// The first packet after nothing.
    First,
    /// One of several.
    Busy,
}

impl<B: Backend> RoceLink<B> {
    /// Builds one end; all memory is allocated here. `seed` differs with each start of this end; the time will do.
    ///
    /// # Errors
    /// The configuration contradicts itself, or an address cannot be had.
    ///
    /// # Panics
    /// When a resume number is 0: numbers start at 1.
    pub fn new(config: &RoceLinkConfig, seed: u64, resume: Resume) -> Result<Self, SetupError> {
        assert!(
            resume.next_send.0 > 0 && resume.next_receive.0 > 0,
            "sequence numbers start at 1"
        );
        config.check().map_err(|what| {
            let doing = format!("building the RoCEv2 link of session {}", config.session);
            let source = io::Error::new(io::ErrorKind::InvalidInput, what);
            SetupError::new(doing, source, "correct the link's settings")
        })?;
        let slots = config.slots();
        Ok(Self {
            backend: B::open(config)?,
            arena: config.arena(),
            outgoing: Outgoing::new(config.window, resume.next_send.0),
            incoming: Incoming::new(slots, resume.next_receive.0),
            door: Door::open(config)?,
            offered: None,
            session: None,
            reads: Reads::default(),
            random: Random(seed),
            told: None,
            event: None,
            look: Look::Quiet,
            refused: None,
            counters: LinkCounters::default(),
            config: *config,
        })
    }

    /// Where the listening end listens.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.door.local_addr()
    }

    /// Looks at what the ends meet over: the end of the session, a new peer, the next step of a meeting.
    fn meet(&mut self, now: Timestamp) {
        if let Some(session) = &mut self.session {
            match session.look(now) {
                Ok(false) => {}
                Ok(true) => self.up(),
                Err(reason) => self.end(now, reason),
            }
        }
        if !self.door.connects() {
            self.meet_by_listening(now);
        } else if self.session.is_none() {
            self.meet_by_connecting(now);
        }
    }

    fn meet_by_connecting(&mut self, now: Timestamp) {
        let Self {
            config,
            backend,
            random,
            incoming,
            outgoing,
            offered,
            ..
        } = self;
        let offer = || {
            let ours = hello(config, incoming, outgoing).introducing(&backend.introduce(random)?);
            Ok(*offered.insert(ours))
        };
        match self.door.connect(now, offer, &mut self.counters) {
            Ok(None) => {}
            Ok(Some(Caller {
                from,
                mut way,
                hello: theirs,
            })) => {
                let ours = self.offered.take().expect("it was told when the connection was made");
                let ours = way.agreed(ours);
                // What the peer sends once it has heard finds a queue pair that receives.
                let outcome = ours.fits(&theirs).and_then(|()| self.establish(&ours, &theirs));
                let verdict = outcome.map_or_else(Verdict::of, |()| Verdict::GoOn);
                let sent = way.ready(&ours, verdict);
                match outcome.and(sent) {
                    Ok(()) => {
                        self.session = Some(Session::new(now, way, &self.config, &ours, &theirs));
                        self.up();
                    }
                    Err(reason) => {
                        self.backend.close();
                        self.on_misfit(from, reason, theirs.verdict.get());
                        self.give_up(now, reason);
                    }
                }
            }
            Err(reason) => self.give_up(now, reason),
        }
    }

    fn meet_by_listening(&mut self, now: Timestamp) {
        let Some(caller) = self.door.accept(now, &mut self.counters) else {
            return;
        };
        let Caller {
            from,
            mut way,
            hello: theirs,
        } = caller;
        let ours = hello(&self.config, &self.incoming, &self.outgoing);
        if let Err(reason) = ours.fits(&theirs) {
            self.on_misfit(from, reason, Verdict::GoOn.code());
            let refusal = Hello {
                verdict: U32::new(Verdict::of(reason).code()),
                ..ours
            };
            // A peer that is gone needs no answer. Nor does one that does not fit disturb a session.
            let _ = way.answer(&refusal);
            self.give_up(now, reason);
            return;
        }
        // The peer knows best that its old session is dead.
        self.end(now, DownReason::Replaced);
        match self.answer(&mut way, ours, &theirs) {
            Ok(()) => self.session = Some(Session::new(now, way, &self.config, &ours, &theirs)),
            Err(reason) => {
                self.backend.close();
                self.give_up(now, reason);
            }
        }
    }

    /// Tells a peer that fits who this end is, once its requests can come.
    fn answer(&mut self, way: &mut Way, ours: Hello, theirs: &Hello) -> Result<(), DownReason> {
        let ours = way.agreed(ours.introducing(&self.backend.introduce(&mut self.random)?));
        self.establish(&ours, theirs)?;
        way.answer(&ours)
    }

    /// This end refuses a peer, or is refused by it: whoever saw first that they do not fit.
    fn on_misfit(&mut self, from: SocketAddr, reason: DownReason, verdict: u32) {
        if Verdict::from_code(verdict) == Verdict::GoOn {
            self.counters.refused += 1;
            self.refused = Some(RefusedPeer {
                from: Some(from),
                user: None,
                reason: RefusedFor::Meeting(reason),
            });
        } else {
            self.counters.refused_by_peer += 1;
        }
    }

    /// Connects the queue pair; the peer's receives are there.
    fn establish(&mut self, ours: &Hello, theirs: &Hello) -> Result<(), DownReason> {
        let wanted = theirs.next_receive.get();
        let word = self.arena.word();
        self.backend.put_number(word, wanted);
        self.backend.put_number(word + PREFIX, 0);
        self.outgoing.resume(wanted);
        self.incoming.restart();
        self.backend.connect(&ours.introduction(), &theirs.introduction())?;
        let words = match self.config.operation {
            RoceOperation::Write => 0,
            RoceOperation::Send => CONTROL_RECEIVES,
        };
        for id in 0..self.config.slots() + words {
            self.post_receive(id as u64);
        }
        self.look = Look::Quiet;
        Ok(())
    }

    /// A place for a message or a word of the peer; what it writes goes into its ring, and its immediate alone is received.
    fn post_receive(&mut self, id: u64) {
        let (offset, length) = match self.config.operation {
            RoceOperation::Write => (0, 0),
            RoceOperation::Send => (self.arena.receive(id), self.arena.slot_length()),
        };
        let posted = self.backend.post_receive(ReceiveRequest { id, offset, length });
        debug_assert!(posted.is_ok(), "there are as many as the ring has slots");
    }

    /// Both have agreed.
    fn up(&mut self) {
        let Some(session) = &mut self.session else { return };
        session.is_up = true;
        tracing::info!(
            "RoCEv2 link of session {}: {session}, by {}",
            self.config.session,
            self.backend.name()
        );
        self.door.on_up();
        self.counters.ups += 1;
        self.told = None;
        self.event = Some(LinkEvent::Up);
    }

    /// The session is over, if there is one.
    fn end(&mut self, now: Timestamp, reason: DownReason) {
        let Some(session) = self.session.take() else { return };
        self.backend.close();
        self.incoming.restart();
        self.reads.restart();
        if session.is_up {
            self.counters.downs += 1;
            self.told = None;
        }
        self.give_up(now, reason);
    }

    /// There will be no session with whom this end was meeting.
    fn give_up(&mut self, now: Timestamp, reason: DownReason) {
        if reason == DownReason::Malformed {
            self.counters.malformed += 1;
        }
        if self.session.is_some() {
            return;
        }
        self.door.on_down(now);
        if self.told != Some(reason) {
            self.told = Some(reason);
            self.event = Some(LinkEvent::Down(reason));
        }
    }

    /// Takes in packets: until there is a message to hand out, where the owner wants one.
    fn hear(&mut self, now: Timestamp, wants_message: bool) {
        for _ in 0..RECEIVES_MAX {
            if wants_message && self.incoming.next < self.incoming.arrived || self.event.is_some() {
                return;
            }
            if self.look == Look::First {
                self.look = Look::Busy;
                return;
            }
            match self.backend.receive(now, &mut self.counters) {
                Ok(true) => {
                    self.look = match self.look {
                        Look::Quiet => Look::First,
                        Look::First | Look::Busy => Look::Busy,
                    };
                    self.take_up(now);
                }
                Ok(false) => {
                    self.look = Look::Quiet;
                    if B::WRITES_SHOW_NOWHERE_ELSE {
                        self.take_up(now);
                    }
                    self.look_at_silence(now);
                    return;
                }
                Err(error) => {
                    self.end(now, DownReason::Io(error.kind()));
                    return;
                }
            }
        }
    }

    /// Takes up what the packet brought: messages, a word, the end of the queue pair.
    fn take_up(&mut self, now: Timestamp) {
        if self.session.is_none() {
            return;
        }
        while let Some(completion) = self.backend.poll_completion() {
            let outcome = match completion {
                Completion::Receive {
                    id,
                    status: Ok(received),
                } => self.on_received(now, id, received),
                Completion::Send {
                    id: READ,
                    status: Ok(()),
                } => {
                    self.reads.done += 1;
                    Ok(())
                }
                // Of a queue pair that broke, which is told below.
                Completion::Receive { .. } | Completion::Send { .. } => Ok(()),
            };
            if let Err(reason) = outcome {
                self.end(now, reason);
                return;
            }
        }
        if let Some(reason) = self.backend.failure() {
            // What was refused is told.
            let _ = self.transmit(now);
            self.end(now, reason);
        } else if self.config.operation == RoceOperation::Write
            && let Err(reason) = self.on_word(now, self.arena.word())
        {
            self.end(now, reason);
        }
    }

    /// A receive was used up.
    fn on_received(&mut self, now: Timestamp, id: u64, received: Received) -> Result<(), DownReason> {
        let is_write = self.config.operation == RoceOperation::Write;
        let offset = if is_write {
            self.arena.slot(self.incoming.arrived)
        } else {
            self.arena.receive(id)
        };
        let is_word = !is_write && received.immediate.is_none() && received.length == WORD;
        if is_word && !received.is_write {
            self.on_word(now, offset)?;
            self.post_receive(id);
            return Ok(());
        }
        let length = received.length.wrapping_sub(PREFIX);
        let message = Place {
            offset,
            length,
            receive: id,
        };
        if received.is_write != is_write
            || received.immediate != Some(low_32(self.incoming.arrived))
            || length > self.config.max_message
            || !self.incoming.push(message)
        {
            return Err(DownReason::Malformed);
        }
        if let Some(session) = &mut self.session {
            session.heard_at = now;
        }
        if is_write {
            self.post_receive(id);
        }
        self.on_wanted(self.backend.number(offset))
    }

    /// The peer's word: what it wants next, and that it lives.
    fn on_word(&mut self, now: Timestamp, offset: usize) -> Result<(), DownReason> {
        let beat = self.backend.number(offset + PREFIX);
        if let Some(session) = &mut self.session
            && session.beat_heard != beat
        {
            (session.beat_heard, session.heard_at) = (beat, now);
            let wanted = self.backend.number(offset);
            return self.on_wanted(wanted);
        }
        Ok(())
    }

    fn on_wanted(&mut self, wanted: u64) -> Result<(), DownReason> {
        if self.outgoing.acknowledge(wanted) {
            Ok(())
        } else {
            Err(DownReason::FalseAck)
        }
    }

    /// All that has come is taken in: has the peer shown itself lately?
    fn look_at_silence(&mut self, now: Timestamp) {
        let dead_after = self.config.dead_after;
        if self
            .session
            .as_ref()
            .is_some_and(|session| now.since(session.heard_at) >= dead_after)
        {
            self.end(now, DownReason::Silent);
        }
    }

    /// The next message that has come, copied out.
    fn next_message(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        let session = self.session.as_mut().filter(|session| session.is_up)?;
        let (
            number,
            Place {
                offset,
                length,
                receive,
            },
        ) = self.incoming.pop()?;
        session.on_handed_out(now);
        self.backend.copy_out(offset + PREFIX, &mut buffer[..length]);
        self.counters.received += 1;
        if self.config.operation == RoceOperation::Send {
            self.post_receive(receive);
        }
        Some(LinkEvent::Message {
            sequence: SequenceNumber(number),
            length,
        })
    }

    /// Posts what may leave.
    fn post(&mut self, now: Timestamp, watermark: u64) {
        let Some(session) = self.session.as_mut().filter(|session| session.is_up) else {
            return;
        };
        let wanted = self.incoming.next;
        // One place is the word's.
        while self.backend.send_room() > 1
            && let Some(message) = self.outgoing.sendable(watermark, session.peer_slots)
        {
            let number = message.number;
            let offset = if message.is_recalled {
                self.arena.recalled(number)
            } else {
                self.arena.outgoing(number)
            };
            self.backend.put_number(offset, wanted);
            let at = self.arena.in_ring_of(session.peer_slots, number);
            let request = SendRequest {
                id: number,
                operation: session.operation(self.config.operation, at, Some(low_32(number))),
                offset,
                length: PREFIX + message.length,
                is_signaled: false,
            };
            if self.backend.post_send(request).is_err() {
                return;
            }
            if self.outgoing.on_sent() {
                self.counters.retransmitted += 1;
            } else {
                self.counters.sent += 1;
            }
            session.on_told(now, wanted);
        }
        if session.owes_word(now, wanted, &self.config) && self.backend.send_room() > 0 {
            let offset = self.arena.outgoing_word();
            self.backend.put_number(offset, wanted);
            self.backend.put_number(offset + PREFIX, session.beats + 1);
            let at = self.arena.word_in_ring_of(session.peer_slots);
            let request = SendRequest {
                id: 0,
                operation: session.operation(self.config.operation, at, None),
                offset,
                length: WORD,
                is_signaled: false,
            };
            if self.backend.post_send(request).is_ok() {
                session.beats += 1;
                session.on_told(now, wanted);
            }
        }
    }

    fn transmit(&mut self, now: Timestamp) -> io::Result<()> {
        if self.session.is_none() {
            return Ok(());
        }
        self.backend.transmit(now, &mut self.counters)
    }
}

impl<B: Backend> Link for RoceLink<B> {
    fn room(&self) -> usize {
        self.outgoing.room()
    }

    fn is_up(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_up)
    }

    fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        assert!(message.len() <= self.config.max_message, "the message is too long");
        let number = self.outgoing.push(message.len(), position);
        self.backend.put(self.arena.outgoing(number) + PREFIX, message);
        SequenceNumber(number)
    }

    fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        assert!(message.len() <= self.config.max_message, "the message is too long");
        self.outgoing.restore(sequence.0, message.len());
        self.backend.put(self.arena.outgoing(sequence.0) + PREFIX, message);
    }

    fn recalled(&mut self, sequence: SequenceNumber, message: &[u8]) {
        assert!(message.len() <= self.config.max_message, "the message is too long");
        if self.outgoing.bring(sequence.0, message.len()) {
            self.backend.put(self.arena.recalled(sequence.0) + PREFIX, message);
            self.counters.recalled += 1;
        }
    }

    fn not_recalled(&mut self, sequence: SequenceNumber) {
        if let Some(reason) = self.outgoing.miss(sequence.0)
            && let Some(session) = &mut self.session
        {
            session.failed = Some(reason);
        }
    }

    fn poll(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        assert!(
            self.outgoing.is_whole(),
            "the messages restored end below the next number"
        );
        assert!(
            buffer.len() >= self.config.max_message,
            "the buffer holds the longest message"
        );
        if self.event.is_none() {
            if let Some(message) = self.next_message(now, buffer) {
                return Some(message);
            }
            self.hear(now, true);
            if self.event.is_none()
                && let Some(message) = self.next_message(now, buffer)
            {
                return Some(message);
            }
        }
        self.poll_change(now)
    }

    fn poll_recall(&mut self, now: Timestamp) -> Option<LinkEvent> {
        self.hear(now, false);
        self.poll_change(now)
    }

    fn flush(&mut self, now: Timestamp, watermark: u64) {
        self.post(now, watermark);
        if let Err(error) = self.transmit(now) {
            self.end(now, DownReason::Io(error.kind()));
        }
    }

    fn counters(&self) -> LinkCounters {
        let mut counters = self.counters;
        self.backend.count(&mut counters);
        counters
    }

    fn view(&self) -> LinkView {
        let [next, sent, wanted] = self.outgoing.standing();
        LinkView {
            transport: "RoCEv2",
            carrier: Some(self.backend.name()),
            state: match (&self.session, &self.config.end) {
                (Some(session), _) if session.is_up => LinkState::Up,
                (Some(_), _) => LinkState::Agreeing,
                (None, LinkEnd::Connect { .. }) => LinkState::Calling,
                (None, LinkEnd::Listen { .. }) => LinkState::Listening,
            },
            epoch: None,
            peer: Some(self.config.ports()[1]),
            next_send: SequenceNumber(next),
            next_receive: SequenceNumber(self.incoming.next),
            peer_received: SequenceNumber(wanted),
            peer_durable: None,
            durable: None,
            // What a peer gets again is below what was sent.
            queued: next.saturating_sub(sent),
            in_flight: sent - wanted,
            credits: None,
            refused: self.refused,
            counters: self.counters(),
            roce: self.backend.roce_counters(),
        }
    }
}

impl<B: Backend> RoceLink<B> {
    /// What happened but for messages.
    fn poll_change(&mut self, now: Timestamp) -> Option<LinkEvent> {
        if self.event.is_none() {
            self.meet(now);
        }
        if self.event.is_some() {
            return self.event.take();
        }
        let range = self.is_up().then(|| self.outgoing.ask())??;
        Some(LinkEvent::Recall {
            from: SequenceNumber(range.start),
            to: SequenceNumber(range.end),
        })
    }
}

/// What this end tells at a meeting, but for who it is.
fn hello(config: &RoceLinkConfig, incoming: &Incoming, outgoing: &Outgoing) -> Hello {
    let size = |length: usize| U32::new(u32::try_from(length).unwrap_or(u32::MAX));
    Hello {
        magic: MAGIC,
        verdict: U32::new(Verdict::GoOn.code()),
        session: U32::new(config.session),
        qpn: U32::ZERO,
        psn: U32::ZERO,
        remote_key: U32::ZERO,
        address: U64::ZERO,
        slots: size(config.slots()),
        max_message: size(config.max_message),
        mtu: size(config.queue_pair.mtu),
        operation: U32::new(config.operation.code()),
        gid: gid(config.local),
        peer_gid: gid(config.peer),
        next_receive: U64::new(incoming.next),
        oldest: U64::new(outgoing.gone_below),
        never_sent: U64::new(outgoing.never_sent),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low_32(number: u64) -> u32 {
    number as u32
}

/// Packets received in one `poll` without a message among them, at most.
const RECEIVES_MAX: usize = 64;
