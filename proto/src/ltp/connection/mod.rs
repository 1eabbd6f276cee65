//! One end of LTP: the rings, the handshake and the timers put together.

mod incoming;
mod outgoing;
mod peer;

use super::auth::{Authenticator, Purpose};
use super::config::{Config, Resume, Role};
use super::event::{Counters, DownReason, Event};
use super::receive::ReceiveRing;
use super::refusal::Refusal;
use super::rtt::Rtt;
use super::sending::Sending;
use super::session::{Session, Standing, State};
use super::wire::Establish;
use peer::Peer;
use types::{Duration, SequenceNumber, Timestamp};

/// One end of an LTP session.
///
/// The owner takes turns with it: all datagrams that have come go to [`on_datagram`](Self::on_datagram), events are taken
/// with [`poll_event`](Self::poll_event) until there is none, then datagrams with
/// [`poll_transmit`](Self::poll_transmit) until there is none. Everything is allocated by [`new`](Self::new).
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Config,
    elapsed: Elapsed,
    session: Session,
    /// Of the handshake; `None` without a key.
    authenticator: Option<Authenticator>,
    sending: Sending,
    receiving: ReceiveRing,
    rtt: Rtt,
    /// The other end while a session is up.
    peer: Option<Peer>,
    /// Counts sessions; 0: none yet.
    generation: u64,
    /// The session that the owner believes to be up; 0: none.
    announced: u64,
    /// What the owner has not been told.
    down: Option<DownReason>,
    /// The last failure it was told since a session was up: repeated ones are not news.
    last_failure: Option<DownReason>,
    /// Acceptor: open orders that the owner grants. Initiator: those granted last, and not forgotten between sessions.
    credits: Option<u32>,
    /// Initiator: the owner has not been told of them.
    credits_are_news: bool,
    /// The owner's: the number below which what it received is safe from the loss of the machine. 0: not told.
    durable: u64,
    /// What will be safe once the owner's journal is synced up to that position.
    awaits_sync: Option<(u64, u64)>,
    /// The peer's. 0: not told.
    peer_durable: u64,
    counters: Counters,
    /// The last one that this end refused somebody for.
    refused: Option<Refusal>,
    #[cfg(test)]
    pub(super) defect: super::simulation::Defect,
}

/// Time that never goes back: the sum of the forward steps of the owner's clock.
#[derive(Debug)]
struct Elapsed {
    last: Timestamp,
    time: Timestamp,
}

impl Connection {
    /// One end that has not sent or received anything in this incarnation. `epoch_seed` rises with each incarnation of
    /// this end: the time of its start will do. An initiator whose seed went back is refused
    /// ([`Refusal::StaleEpoch`](super::Refusal::StaleEpoch)) while the acceptor remembers.
    ///
    /// # Panics
    /// When the config does not pass [`Config::check`], which is the owner's first step.
    #[must_use]
    pub fn new(role: Role, config: Config, epoch_seed: u64, resume: Resume) -> Self {
        assert_eq!(config.check(), Ok(()), "the owner checks the config");
        let window = config.window.next_power_of_two();
        let handshake = Purpose {
            session: config.session.0,
            initiator_nonce: 0,
            acceptor_nonce: 0,
            epoch: 0,
        };
        Self {
            role,
            config,
            elapsed: Elapsed::new(),
            session: Session::new(role, &config, epoch_seed),
            authenticator: config.key.map(|key| Authenticator::new(&key, role, handshake)),
            sending: Sending::new(window, config.max_message, resume.next_send.0),
            receiving: ReceiveRing::new(window, config.max_message, resume.next_receive.0),
            rtt: Rtt::new(config.rto_floor, config.rto_ceiling),
            peer: None,
            generation: 0,
            announced: 0,
            down: None,
            last_failure: None,
            credits: None,
            credits_are_news: false,
            durable: 0,
            awaits_sync: None,
            peer_durable: 0,
            counters: Counters::default(),
            refused: None,
            #[cfg(test)]
            defect: super::simulation::Defect::None,
        }
    }

    /// Puts back a message that an earlier incarnation numbered, in the order of numbers, before the first datagram. The
    /// last one is just below [`Resume::next_send`]. When there are more than the ring holds, the newest stay: the older
    /// ones were acknowledged, or those could not have been sent.
    ///
    /// # Panics
    /// When numbers are left out, or the message is empty or too long: that is no journal of this session.
    pub fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.sending.restore(sequence.0, message);
    }

    /// How many messages [`send`](Self::send) takes.
    #[must_use]
    pub fn room(&self) -> usize {
        self.sending.room()
    }

    /// How far this end is with its handshake.
    #[must_use]
    pub const fn state(&self) -> State {
        match self.session.state() {
            State::Up if !self.is_up() => State::Establishing,
            state => state,
        }
    }

    /// The epoch of the session that is up.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.is_up().then(|| self.session.epoch())
    }

    /// Why this end refused somebody last, told once: it may have been a stranger, while a session is up.
    pub const fn take_refused(&mut self) -> Option<Refusal> {
        self.refused.take()
    }

    /// Whether a session is up: both ends agree to it.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(&self.peer, Some(peer) if peer.is_confirmed)
    }

    /// Takes a message over and gives its number. It leaves once the watermark has reached `position`, and stays in the
    /// ring until the peer has acknowledged it, whatever becomes of the session.
    ///
    /// # Panics
    /// When there is no room, or the message is empty or longer than configured.
    pub fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        SequenceNumber(self.sending.push(message, position))
    }

    /// What happened next. A message is copied to the front of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter than the longest message.
    pub fn poll_event(&mut self, buffer: &mut [u8]) -> Option<Event> {
        assert!(buffer.len() >= self.config.max_message);
        if let Some(event) = self.poll_change() {
            return Some(event);
        }
        if !self.has_told_all() {
            return None;
        }
        let (number, length) = self.receiving.take(buffer)?;
        self.counters.messages_received += 1;
        if let Some(peer) = &mut self.peer {
            peer.ack_at = peer.ack_at.min(self.elapsed.time + self.config.ack_delay);
        }
        Some(Event::Message {
            sequence: SequenceNumber(number),
            length,
        })
    }

    /// As [`poll_event`](Self::poll_event), and messages wait.
    pub fn poll_change(&mut self) -> Option<Event> {
        let current = if self.is_up() { self.generation } else { 0 };
        if self.announced != current || current == 0 {
            return self.next_change(current);
        }
        if let Some(slots) = self.credits
            && core::mem::take(&mut self.credits_are_news)
        {
            return Some(Event::Credits { slots });
        }
        let range = self.sending.ask()?;
        Some(Event::Recall {
            from: SequenceNumber(range.start),
            to: SequenceNumber(range.end),
        })
    }

    /// Whether the owner knows of the session that is up.
    const fn has_told_all(&self) -> bool {
        self.is_up() && self.announced == self.generation
    }

    /// Whether the peer gets again what it lost, and new messages wait for that.
    #[must_use]
    pub const fn is_recalling(&self) -> bool {
        self.is_up() && self.sending.is_recalling()
    }

    /// Brings back a message that [`Event::Recall`] asked for. What was asked for in an earlier session, and is not wanted
    /// any more, is dropped.
    ///
    /// # Panics
    /// When the message is empty or longer than configured: that is no journal of this session.
    pub fn recalled(&mut self, sequence: SequenceNumber, message: &[u8]) {
        let is_wanted = self.sending.bring(sequence.0, message);
        self.counters.recalled += u64::from(is_wanted);
    }

    /// The owner's journal does not have a message that [`Event::Recall`] asked for. The session ends, and the peer is
    /// refused ([`Refusal::MessagesGone`](super::Refusal::MessagesGone)) as long as it wants that message.
    pub fn not_recalled(&mut self, sequence: SequenceNumber) {
        let wanted = SequenceNumber(self.sending.base());
        if !self.sending.miss(sequence.0) {
            return;
        }
        let oldest = SequenceNumber(self.sending.oldest_kept());
        let refusal = Refusal::MessagesGone { wanted, oldest };
        self.session.give_up(self.elapsed.time, refusal);
        self.note_refused(refusal);
        self.failed(DownReason::Refused(refusal));
    }

    /// The carrier failed. A session that is up ends; the initiator goes on trying.
    pub fn on_carrier_failure(&mut self, now: Timestamp) {
        let time = self.advance(now);
        if self.peer.is_some() {
            self.session.end(time);
        }
        self.failed(DownReason::Carrier);
    }

    /// Grants the initiator so many open orders in all: a whole number, not a change of it, and 0 is one. It is told at
    /// once, and again with every heartbeat interval of every session.
    ///
    /// # Panics
    /// On the initiator's end, which is the one that opens orders.
    pub fn grant(&mut self, slots: u32) {
        assert!(self.role == Role::Acceptor, "credits are granted by the acceptor");
        if self.credits != Some(slots) {
            self.credits = Some(slots);
            if let Some(peer) = &mut self.peer {
                peer.credits_at = self.elapsed.time;
            }
        }
    }

    /// How many orders may be open, as last granted: by this end if it is the acceptor. `None`: nothing was granted, and
    /// there is no limit of this kind.
    #[must_use]
    pub const fn credits(&self) -> Option<u32> {
        self.credits
    }

    /// Tells how far the owner's journal has got: all that was handed out so far stands in it below `appended`, and the loss
    /// of the machine does not reach what stands below `synced`. The peer learns what is safe with the next Ack or
    /// Heartbeat; it lags behind by at most what is appended while one sync is under way.
    pub fn journaled(&mut self, appended: u64, synced: u64) {
        if let Some((next, position)) = self.awaits_sync {
            if synced < position {
                return;
            }
            self.durable = next;
            self.awaits_sync = None;
        }
        let next = self.receiving.next();
        if next > self.durable {
            self.awaits_sync = Some((next, appended));
        }
    }

    /// The number below which the peer has all messages. A peer that lost its machine may have fewer than before.
    #[must_use]
    pub const fn peer_received(&self) -> SequenceNumber {
        SequenceNumber(self.sending.base())
    }

    /// Messages that wait to be transmitted for the first time, and those that were and are not acknowledged.
    #[must_use]
    pub const fn waiting(&self) -> (u64, u64) {
        let never_sent = self.sending.never_sent();
        (
            self.sending.next() - never_sent,
            never_sent - self.sending.oldest_kept(),
        )
    }

    /// The number below which this end, by the word of its owner, cannot lose what it received even with its machine.
    /// `None`: the owner has not said.
    #[must_use]
    pub fn durable(&self) -> Option<SequenceNumber> {
        (self.durable > 0).then_some(SequenceNumber(self.durable))
    }

    /// The number below which the peer cannot lose messages even with its machine; never above
    /// [`peer_received`](Self::peer_received). `None`: it has not said.
    #[must_use]
    pub fn peer_durable(&self) -> Option<SequenceNumber> {
        (self.peer_durable > 0).then_some(SequenceNumber(self.peer_durable))
    }

    /// Counts since construction.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The tag that the peer's datagrams have, but for the handshake. An acceptor knows it before the session is up: the
    /// first of those datagrams is what it waits for. `None`: there is no session.
    #[must_use]
    pub fn receive_tag(&self) -> Option<u32> {
        let (_, receive_tag) = self.session.tags(self.config.header);
        self.peer.is_some().then_some(receive_tag)
    }

    /// Bytes behind a datagram's payload.
    #[must_use]
    pub const fn trailer_length(&self) -> usize {
        self.config.trailer()
    }

    /// The number of the next message that [`send`](Self::send) takes.
    #[must_use]
    pub const fn next_send(&self) -> SequenceNumber {
        SequenceNumber(self.sending.next())
    }

    /// The number of the next message that [`poll_event`](Self::poll_event) gives.
    #[must_use]
    pub const fn next_receive(&self) -> SequenceNumber {
        SequenceNumber(self.receiving.next())
    }
}

#[cfg(test)]
impl Connection {
    /// Builds a mistake in.
    pub(super) const fn set_defect(&mut self, defect: super::simulation::Defect) {
        self.defect = defect;
        self.sending.defect = defect;
    }
}

/// Sessions begin and end.
impl Connection {
    /// A session is up: the peer told where it stands.
    fn begin(&mut self, time: Timestamp, establish: &Establish) {
        assert!(
            self.sending.is_whole(),
            "the messages restored end below the next to be sent"
        );
        let key = self.config.key.as_ref();
        let authenticator = key.map(|key| Authenticator::new(key, self.role, self.session.purpose()));
        let tags = self.session.tags(self.config.header);
        let mut peer = Peer::new(&self.config, tags, authenticator, establish, time);
        if self.role == Role::Acceptor && self.credits.is_some() {
            peer.credits_at = time;
        }
        self.peer = Some(peer);
        self.generation += 1;
        self.rtt.start(Duration(establish.ack_delay_ns.get().into()));
        self.receiving.start();
        self.sending.begin(establish.next_expected.get());
        // It may be less than before: then the peer has lost its machine.
        self.peer_durable = establish.durable.get().min(self.sending.base());
        if self.role == Role::Initiator {
            self.confirm();
            // The acceptor waits for a sign of it.
            if let Some(peer) = &mut self.peer {
                peer.ack_at = time;
            }
        }
    }

    /// The other end agrees to the session.
    const fn confirm(&mut self) {
        if let Some(peer) = &mut self.peer
            && !core::mem::replace(&mut peer.is_confirmed, true)
        {
            self.last_failure = None;
            self.counters.ups += 1;
        }
    }

    fn end(&mut self, reason: DownReason) {
        if self.is_up() {
            self.down = Some(reason);
            self.counters.downs += 1;
        }
        self.peer = None;
    }

    /// This end refuses somebody.
    fn note_refused(&mut self, refusal: Refusal) {
        self.counters.refusals += 1;
        self.refused = Some(refusal);
    }

    /// A session ends, or does not come about: that is told once for each reason.
    fn failed(&mut self, reason: DownReason) {
        let was_up = self.is_up();
        self.end(reason);
        if !was_up {
            if self.down.is_some() {
                // The owner has yet to be told of what came first.
                return;
            }
            if !self.last_failure.is_some_and(|last| last.is_like(reason)) {
                self.down = Some(reason);
            }
        }
        self.last_failure = Some(reason);
    }

    /// Tells the owner of a session that ended or began: an end first, so that each beginning follows an end.
    fn next_change(&mut self, current: u64) -> Option<Event> {
        if self.announced != 0 || current == 0 {
            self.announced = 0;
            let reason = self.down.take()?;
            return Some(Event::Down { reason });
        }
        self.announced = current;
        self.down = None;
        let epoch = self.session.epoch();
        Some(Event::Up { epoch })
    }
}

impl Connection {
    /// Moves the time on. The peer is silent only as long as this end looks: a pause of this end, or a clock that jumps,
    /// counts as one heartbeat interval, and does not end a session whose datagrams wait in the socket.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        let step = self.elapsed.advance(now);
        if let Some(peer) = &mut self.peer {
            peer.silence = Duration(peer.silence.0 + step.min(self.config.heartbeat).0);
        }
        self.elapsed.time
    }

    fn standing(&self) -> Standing {
        Standing {
            gone_below: self.sending.gone_below(),
            oldest: self.sending.oldest_kept(),
            next_send: self.sending.never_sent(),
            next_receive: self.receiving.next(),
            durable: self.durable,
        }
    }
}

impl Elapsed {
    const fn new() -> Self {
        Self {
            last: Timestamp::NONE,
            time: Timestamp::NONE,
        }
    }

    fn advance(&mut self, now: Timestamp) -> Duration {
        let step = now.since(self.last);
        self.last = now;
        self.time = self.time + step;
        step
    }
}
