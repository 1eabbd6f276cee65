//! One end of LTP: the rings, the handshake and the timers put together.

use super::NEVER;
use super::config::{Config, Resume, Role};
use super::event::{Counters, DownReason, Event, Received};
use super::receive::ReceiveRing;
use super::rtt::Rtt;
use super::send::{Acknowledged, Run, SendRing};
use super::session::{Outcome, Session, Standing};
use super::wire::{self, Body, Establish, FLAG_RETRANSMIT, HEADER_LENGTH, Kind, NAK_SPAN_MAX, Nak, NakStart, Status};
use types::{Duration, SequenceNumber, Timestamp};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// One end of an LTP session.
///
/// The owner takes turns with it: all datagrams that have come go to [`on_datagram`](Self::on_datagram), events are taken
/// with [`poll_event`](Self::poll_event) until there is none, then datagrams with
/// [`poll_transmit`](Self::poll_transmit) until there is none. Everything is allocated by [`new`](Self::new).
#[derive(Debug)]
pub struct Connection {
    config: Config,
    elapsed: Elapsed,
    session: Session,
    sending: SendRing,
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
    counters: Counters,
    #[cfg(test)]
    pub(super) defect: super::simulation::Defect,
}

/// What concerns one session.
#[derive(Debug)]
struct Peer {
    send_tag: u32,
    receive_tag: u32,
    /// Messages in flight that the peer has room for.
    window: u64,
    /// Observed silence that ends the session.
    silence_max: Duration,
    /// How long the peer has been silent while this end was looking.
    silence: Duration,
    /// When this end last sent.
    sent_at: Timestamp,
    /// When an acknowledgement leaves by itself.
    ack_at: Timestamp,
    /// The peer is to learn the next number at once: a timeout has not retransmitted everything.
    probe: bool,
    /// Retransmitted messages that were here already.
    duplicates: u32,
    /// The peer's count of the same.
    duplicates_told: u32,
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
        Self {
            config,
            elapsed: Elapsed::new(),
            session: Session::new(role, &config, epoch_seed),
            sending: SendRing::new(window, config.max_message, resume.next_send.0),
            receiving: ReceiveRing::new(window, config.max_message, resume.next_receive.0),
            rtt: Rtt::new(config.rto_floor, config.rto_ceiling),
            peer: None,
            generation: 0,
            announced: 0,
            down: None,
            last_failure: None,
            counters: Counters::default(),
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

    /// Whether a session is up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.peer.is_some()
    }

    /// Takes a message over and gives its number. It leaves once the watermark has reached `position`, and stays in the
    /// ring until the peer has acknowledged it, whatever becomes of the session.
    ///
    /// # Panics
    /// When there is no room, or the message is empty or longer than configured.
    pub fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        SequenceNumber(self.sending.push(message, position))
    }

    /// Takes in one datagram. What is wrong with a bad one is counted, and nothing else happens.
    pub fn on_datagram(&mut self, now: Timestamp, datagram: &[u8]) -> Received {
        let time = self.advance(now);
        self.counters.datagrams_received += 1;
        let Ok((header, body)) = wire::decode(datagram, self.config.max_message) else {
            self.counters.malformed += 1;
            return Received::Dropped;
        };
        let tag = header.tag.get();
        if tag == 0 {
            return self.on_handshake(time, body);
        }
        if !self.is_of_session(tag) {
            self.counters.foreign += 1;
            return Received::Dropped;
        }
        let Some(ack) = self.plausible_ack(header.ack.get()) else {
            self.counters.false_acks += 1;
            return Received::Dropped;
        };
        let first = wire::expand(header.sequence.get(), self.receiving.contiguous());
        let end = first.saturating_add(match body {
            Body::Data(_) => 1,
            Body::Packed(messages) => messages.len() as u64,
            _ => 0,
        });
        if !self.receiving.has_place_below(end) {
            self.counters.beyond_window += 1;
            return Received::Dropped;
        }
        self.on_ack(time, ack);
        match body {
            Body::Data(message) => self.on_message(time, header.flags, first, message),
            Body::Packed(messages) => {
                for (number, message) in (first..end).zip(messages) {
                    self.on_message(time, header.flags, number, message);
                }
            }
            Body::Nak(nak) => self.on_nak(time, nak),
            Body::Ack(status) | Body::Heartbeat(status) => self.on_status(status),
            // Decoding has refused these under a session's tag.
            Body::Negotiate(_) | Body::Negotiated(_) | Body::Establish(_) | Body::Established(_) | Body::Refuse(_) => {}
        }
        self.receiving.show(first, end, time, self.config.reorder_allowance);
        Received::Session
    }

    /// What happened next. A message is copied to the front of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter than the longest message.
    pub fn poll_event(&mut self, buffer: &mut [u8]) -> Option<Event> {
        assert!(buffer.len() >= self.config.max_message);
        let current = if self.peer.is_some() { self.generation } else { 0 };
        if self.announced != current || current == 0 {
            return self.next_change(current);
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

    /// Writes the next datagram to be sent into `out` and gives its length. Messages leave up to `watermark`.
    ///
    /// # Panics
    /// When `out` is shorter than the longest datagram.
    pub fn poll_transmit(&mut self, now: Timestamp, watermark: u64, out: &mut [u8]) -> Option<usize> {
        let time = self.advance(now);
        let out = &mut out[..self.config.max_datagram];
        if let Some(length) = self.poll_reply(out) {
            return Some(length);
        }
        if self.peer.as_ref().is_some_and(|peer| peer.silence >= peer.silence_max) {
            self.session.end(time);
            self.end(DownReason::Silence);
        }
        let length = if self.peer.is_some() {
            self.poll_session(time, watermark, out)
        } else {
            self.session.poll(time, self.standing(), out)
        };
        self.counters.datagrams_sent += u64::from(length.is_some());
        length
    }

    /// Writes the reply to the last datagram of the handshake into `out`, if there is one, and gives its length.
    /// [`poll_transmit`](Self::poll_transmit) gives it too; this is for an owner who has yet to learn its peer's address,
    /// and replies to wherever the datagram came from.
    pub fn poll_reply(&mut self, out: &mut [u8]) -> Option<usize> {
        let length = self.session.poll_reply(self.standing(), out)?;
        self.counters.datagrams_sent += 1;
        Some(length)
    }

    /// The carrier failed. A session that is up ends; the initiator goes on trying.
    pub fn on_carrier_failure(&mut self, now: Timestamp) {
        let time = self.advance(now);
        if self.peer.is_some() {
            self.session.end(time);
        }
        self.failed(DownReason::Carrier);
    }

    /// When [`poll_transmit`](Self::poll_transmit) will have something to send, as far as is known now: before that, only
    /// a datagram, a message or a watermark can change it. `None`: never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let at = match &self.peer {
            None => self.session.next_at(self.elapsed.time),
            Some(peer) => self.next_timer(peer),
        };
        (at != NEVER).then(|| self.elapsed.last + at.since(self.elapsed.time))
    }

    /// Counts since construction.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
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

/// What comes in.
impl Connection {
    fn on_handshake(&mut self, time: Timestamp, body: Body<'_>) -> Received {
        match self.session.on_datagram(time, body, self.standing()) {
            Outcome::Stale => {
                self.counters.handshakes_stale += 1;
                return Received::Dropped;
            }
            Outcome::Step => {}
            Outcome::Up(establish) => {
                if self.peer.is_some() {
                    self.end(DownReason::Superseded);
                }
                self.begin(time, &establish);
                return Received::Established;
            }
            Outcome::Refused(refusal) => {
                self.counters.refusals += 1;
                if self.peer.is_none() {
                    self.failed(DownReason::Refused(refusal));
                }
            }
            Outcome::RefusedByPeer(refusal) => self.failed(DownReason::RefusedByPeer(refusal)),
        }
        Received::Handshake
    }

    /// A session is up: the peer told where it stands.
    fn begin(&mut self, time: Timestamp, establish: &Establish) {
        assert!(
            self.sending.is_whole(),
            "the messages restored end below the next to be sent"
        );
        let (send_tag, receive_tag) = self.session.tags();
        let peer_heartbeat = Duration::from_micros(establish.heartbeat_us.get().into());
        let interval = peer_heartbeat.max(self.config.heartbeat).min(Config::HEARTBEAT_MAX);
        self.peer = Some(Peer {
            send_tag,
            receive_tag,
            window: establish.window.get().into(),
            silence_max: Duration(interval.0.saturating_mul(self.config.dead_after.into())),
            silence: Duration(0),
            sent_at: time,
            ack_at: NEVER,
            probe: false,
            duplicates: 0,
            duplicates_told: 0,
        });
        self.generation += 1;
        self.last_failure = None;
        self.counters.ups += 1;
        self.rtt.start(Duration(establish.ack_delay_ns.get().into()));
        self.receiving.start();
        self.sending.acknowledge(establish.next_expected.get());
        self.sending.mark_all();
    }

    fn end(&mut self, reason: DownReason) {
        self.peer = None;
        self.down = Some(reason);
        self.counters.downs += 1;
    }

    /// A session ends, or does not come about: that is told once for each reason.
    fn failed(&mut self, reason: DownReason) {
        if self.peer.is_some() {
            self.end(reason);
        } else if !self.last_failure.is_some_and(|last| last.is_like(reason)) {
            self.down = Some(reason);
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

    fn is_of_session(&self, tag: u32) -> bool {
        #[cfg(test)]
        if self.defect == super::simulation::Defect::AnyTag {
            return self.peer.is_some();
        }
        self.peer.as_ref().is_some_and(|peer| peer.receive_tag == tag)
    }

    /// An acknowledgement in memory's width, unless it is of what was never sent. Old ones pass: they free nothing.
    fn plausible_ack(&self, ack: u32) -> Option<u64> {
        let ack = wire::expand(ack, self.sending.base());
        (ack <= self.sending.sent()).then_some(ack)
    }

    fn on_ack(&mut self, time: Timestamp, ack: u64) {
        if let Some(peer) = &mut self.peer {
            peer.silence = Duration(0);
        }
        if let Acknowledged::SentAt(sent_at) = self.sending.acknowledge(ack) {
            // What took longer than the ceiling was a pause of one of the ends and says nothing of the way.
            self.rtt.sample(time.since(sent_at).min(self.config.rto_ceiling));
            self.rtt.progress();
        }
    }

    fn on_message(&mut self, time: Timestamp, flags: u8, number: u64, message: &[u8]) {
        if self.receiving.insert(number, message) {
            return;
        }
        self.counters.duplicates += 1;
        if let Some(peer) = &mut self.peer {
            // The acknowledgement was lost, or is late: say it again, and say that the retransmission was in vain.
            peer.ack_at = time;
            if flags & FLAG_RETRANSMIT != 0 {
                peer.duplicates = peer.duplicates.wrapping_add(1);
            }
        }
    }

    fn on_nak(&mut self, time: Timestamp, nak: Nak<'_>) {
        self.counters.naks_received += 1;
        // A peer that lacks the copy too asks again when its timeout, at least the floor, has passed.
        let once_in = Duration(self.config.rto_floor.0 / 2);
        for SequenceNumber(number) in nak.numbers(SequenceNumber(self.sending.base())) {
            self.sending.mark_wanted(number, time, once_in);
        }
    }

    fn on_status(&mut self, status: &Status) {
        let Some(peer) = &mut self.peer else {
            return;
        };
        let more = status.duplicates.get().wrapping_sub(peer.duplicates_told);
        // An older status overtaken by a newer one tells of fewer.
        if more.cast_signed() > 0 {
            peer.duplicates_told = status.duplicates.get();
            self.counters.retransmits_spurious += u64::from(more);
        }
    }
}

/// What goes out.
impl Connection {
    /// The next datagram of a session that is up. What repairs a gap goes before what is new: the peer can use nothing
    /// behind the gap.
    fn poll_session(&mut self, time: Timestamp, watermark: u64, out: &mut [u8]) -> Option<usize> {
        if time >= self.receiving.ask_at()
            && let Some(length) = self.ask(time, out)
        {
            return Some(self.finish(time, out, Kind::Nak, 0, self.sending.sent(), length));
        }
        self.check_timeout(time);
        let packing = self.config.packing;
        if let Some(run) = self.sending.retransmit(time, packing, out) {
            self.counters.retransmits += run.count as u64;
            return Some(self.finish_run(time, out, run));
        }
        let window = self.peer.as_ref()?.window;
        let watermark = self.effective(watermark);
        if let Some(run) = self.sending.transmit(time, watermark, window, packing, out) {
            self.counters.messages_sent += run.count as u64;
            return Some(self.finish_run(time, out, run));
        }
        let peer = self.peer.as_mut()?;
        let kind = if peer.probe || time >= peer.sent_at + self.config.heartbeat {
            Kind::Heartbeat
        } else if time >= peer.ack_at {
            Kind::Ack
        } else {
            return None;
        };
        peer.probe = false;
        let status = Status {
            duplicates: U32::new(peer.duplicates),
            reserved: U32::ZERO,
        };
        let bytes = status.as_bytes();
        out[HEADER_LENGTH..HEADER_LENGTH + bytes.len()].copy_from_slice(bytes);
        Some(self.finish(time, out, kind, 0, self.sending.sent(), bytes.len()))
    }

    /// Writes the payload of a request for what is missing, if anything is, and gives its length.
    fn ask(&mut self, time: Timestamp, out: &mut [u8]) -> Option<usize> {
        let range = self.receiving.wanted(time, NAK_SPAN_MAX as u64)?;
        let start = NakStart {
            first: U32::new(wire::low_32(range.start)),
            reserved: U32::ZERO,
        };
        let (head, rest) = out[HEADER_LENGTH..].split_at_mut(size_of::<NakStart>());
        head.copy_from_slice(start.as_bytes());
        let mut length = head.len();
        for (first, out) in range.clone().step_by(64).zip(rest.chunks_exact_mut(8)) {
            let word = (0..64)
                .take_while(|bit| first + bit < range.end)
                .filter(|bit| self.receiving.is_missing(first + bit))
                .fold(0, |word, bit| word | 1 << bit);
            out.copy_from_slice(U64::new(word).as_bytes());
            length += out.len();
        }
        let again_at = time + self.rtt.backed_off(self.receiving.attempts());
        self.receiving.asked(&range, again_at);
        self.counters.naks_sent += 1;
        Some(length)
    }

    /// Marks the oldest message for retransmission when it has waited too long for its acknowledgement. Of the rest the
    /// peer learns from the next number, and asks for what it lacks. A peer that only lost its core for some milliseconds
    /// lacks nothing: all that were transmitted again would be its work when it is back.
    fn check_timeout(&mut self, time: Timestamp) {
        let Some(sent_at) = self.sending.oldest_sent_at() else {
            return;
        };
        if time < sent_at + self.rtt.timeout() {
            return;
        }
        self.counters.timeouts += 1;
        self.rtt.timed_out();
        let end = self.sending.mark_oldest();
        if let Some(peer) = &mut self.peer {
            peer.probe = end < self.sending.sent();
        }
    }

    fn finish_run(&mut self, time: Timestamp, out: &mut [u8], run: Run) -> usize {
        self.finish(time, out, run.kind, run.flags, run.first, run.length)
    }

    /// Puts the header before the payload. Whatever leaves carries the acknowledgement and ends this end's silence.
    fn finish(
        &mut self,
        time: Timestamp,
        out: &mut [u8],
        kind: Kind,
        flags: u8,
        sequence: u64,
        length: usize,
    ) -> usize {
        let ack = self.ack();
        let mut tag = 0;
        if let Some(peer) = &mut self.peer {
            tag = peer.send_tag;
            peer.ack_at = NEVER;
            peer.sent_at = time;
        }
        wire::finish(out, kind, flags, wire::Numbers { tag, sequence, ack }, length)
    }

    /// The number to acknowledge up to: what the owner has.
    fn ack(&self) -> u64 {
        #[cfg(test)]
        match self.defect {
            super::simulation::Defect::AckSeen => return self.receiving.known(),
            super::simulation::Defect::AckArrived => return self.receiving.contiguous(),
            _ => {}
        }
        self.receiving.next()
    }

    fn effective(&self, watermark: u64) -> u64 {
        #[cfg(test)]
        if self.defect == super::simulation::Defect::NoGate {
            return u64::MAX;
        }
        watermark
    }

    fn next_timer(&self, peer: &Peer) -> Timestamp {
        if peer.probe || self.sending.has_marked() || self.session.has_reply() {
            return self.elapsed.time;
        }
        let timeout = self
            .sending
            .oldest_sent_at()
            .map_or(NEVER, |sent_at| sent_at + self.rtt.timeout());
        let silence_left = Duration(peer.silence_max.0.saturating_sub(peer.silence.0));
        (peer.sent_at + self.config.heartbeat)
            .min(peer.ack_at)
            .min(timeout)
            .min(self.receiving.ask_at())
            .min(self.elapsed.time + silence_left)
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
            oldest: self.sending.base(),
            next_send: self.sending.sent(),
            next_receive: self.receiving.next(),
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
