//! The receiving end: messages in order and once, gaps asked for, and given up after a time.
//!
//! What arrives in order is handed on straight from the packet. What arrives behind a gap waits in a window of fixed size;
//! what lies beyond the window is dropped, and asked for again once the window reaches it. Only one request is under way:
//! the next one goes out when the last brought something, or when it brought nothing for `request_interval`. A gap that
//! does not shrink for `give_up` is lost: the owner is told, and the messages behind it are handed on.

use super::{Content, HEADER_LENGTH, Messages, Packet, Request, Session};
use alloc::vec::Vec;
use types::{Duration, SequenceNumber, Timestamp};
use zerocopy::IntoBytes;

/// Where in a session that is already under way a receiver begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// At message 1: what was missed is asked for. For those who build a book.
    First,
    /// At the first message that arrives.
    Current,
}

/// How a [`Receiver`] works.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Where it begins.
    pub join: Join,
    /// Messages that wait behind a gap; rounded up to a power of two.
    pub window: usize,
    /// Longest message that waits, bytes. A longer one is dropped when it arrives behind a gap, and asked for again.
    pub max_message: usize,
    /// Pause before a request that brought nothing is repeated.
    pub request_interval: Duration,
    /// How long a gap may stay as it is.
    pub give_up: Duration,
    /// Silence of the session after which another may take its place without its having ended.
    pub session_timeout: Duration,
}

/// What a [`Receiver`] hands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A session begins with message `next`. Whatever an earlier one told holds no more.
    Started {
        /// Its name.
        session: Session,
        /// Number of the first message to come.
        next: SequenceNumber,
    },
    /// The next message.
    Message {
        /// Its number.
        sequence: SequenceNumber,
        /// Its bytes.
        message: &'a [u8],
    },
    /// Messages that could not be had.
    Lost {
        /// Number of the first.
        first: SequenceNumber,
        /// How many.
        count: u64,
    },
    /// The session is over and nothing of it is missing, but for what was told as lost.
    Ended,
}

/// What a [`Receiver`] saw.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiverCounters {
    /// Messages handed on.
    pub messages: u64,
    /// Packets of the session.
    pub packets: u64,
    /// Messages that arrived again.
    pub duplicates: u64,
    /// Times that a number was skipped.
    pub gaps: u64,
    /// Requests sent.
    pub requests: u64,
    /// Messages given up.
    pub lost: u64,
    /// Messages dropped because they were too long, or too far ahead of a gap, to wait.
    pub overflowed: u64,
    /// Packets of another session.
    pub foreign: u64,
    /// Datagrams that were no packet.
    pub malformed: u64,
}

/// The receiving end of one feed. It hands on [`Event`]s to a function that the caller passes.
///
/// Memory is the window of `window` messages, allocated at construction.
pub struct Receiver {
    config: ReceiverConfig,
    session: Option<Session>,
    /// The session before, whose late packets must not take its place again.
    previous: Option<Session>,
    /// Number of the next message to hand on.
    next: u64,
    /// Number after the highest that is known to exist.
    known_end: u64,
    /// Number after the last message of the session, once it is known.
    session_end: Option<u64>,
    ended: bool,
    window: Window,
    /// When the last packet of the session came.
    heard_at: Timestamp,
    /// When `next` last moved, or the gap before it opened.
    progressed_at: Timestamp,
    /// The request under way: when it was sent, and what `next` was then.
    requested: Option<(Timestamp, u64)>,
    counters: ReceiverCounters,
}

impl Receiver {
    /// A receiver that takes up the first session it hears.
    #[must_use]
    pub fn new(config: &ReceiverConfig) -> Self {
        Self {
            config: *config,
            session: None,
            previous: None,
            next: 1,
            known_end: 1,
            session_end: None,
            ended: false,
            window: Window::new(config.window, config.max_message),
            heard_at: Timestamp::NONE,
            progressed_at: Timestamp::NONE,
            requested: None,
            counters: ReceiverCounters::default(),
        }
    }

    /// Goes on in a session of which everything before `next` was handed on, by a receiver of an earlier process. Called
    /// before the first datagram.
    pub fn resume(&mut self, session: Session, next: SequenceNumber) {
        self.session = Some(session);
        self.next = next.0;
        self.known_end = next.0;
    }

    /// Takes a datagram and hands on what it makes available, in order.
    pub fn on_datagram(&mut self, now: Timestamp, datagram: &[u8], deliver: &mut impl FnMut(Event<'_>)) {
        let Ok(packet) = Packet::parse(datagram) else {
            self.counters.malformed += 1;
            return;
        };
        if self.session != Some(packet.session) && !self.adopt(now, &packet, deliver) {
            self.counters.foreign += 1;
            return;
        }
        self.heard_at = now;
        self.counters.packets += 1;
        let next_before = self.next;
        let end = match packet.content {
            Content::Heartbeat => packet.sequence,
            Content::EndOfSession => {
                self.session_end.get_or_insert(packet.sequence);
                packet.sequence
            }
            Content::Messages(messages) => {
                self.take(packet.sequence, messages, deliver);
                packet.sequence + messages.len() as u64
            }
        };
        let had_gap = next_before < self.known_end;
        self.known_end = self.known_end.max(end);
        let has_gap = self.next < self.known_end;
        if has_gap && !had_gap {
            self.counters.gaps += 1;
        }
        if self.next != next_before || has_gap != had_gap {
            self.progressed_at = now;
        }
        self.finish(deliver);
    }

    /// Gives up a gap whose time is over. Call once a turn.
    pub fn on_timer(&mut self, now: Timestamp, deliver: &mut impl FnMut(Event<'_>)) {
        if !self.has_gap() || now.since(self.progressed_at) < self.config.give_up {
            return;
        }
        let first = self.next;
        self.next = self.gap_end();
        let count = self.next - first;
        self.counters.lost += count;
        self.requested = None;
        self.progressed_at = now;
        deliver(Event::Lost {
            first: SequenceNumber(first),
            count,
        });
        self.drain(deliver);
        self.finish(deliver);
    }

    /// The request to send to the publisher now, written into `packet`.
    pub fn poll_request(&mut self, now: Timestamp, packet: &mut [u8; HEADER_LENGTH]) -> Option<usize> {
        let session = self.session?;
        if !self.has_gap() {
            return None;
        }
        if let Some((sent_at, next)) = self.requested
            && next == self.next
            && now.since(sent_at) < self.config.request_interval
        {
            return None;
        }
        let wanted = self.gap_end() - self.next;
        let request = Request {
            session,
            sequence: self.next,
            count: u16::try_from(wanted).unwrap_or(u16::MAX - 1),
        };
        packet.copy_from_slice(request.header().as_bytes());
        self.requested = Some((now, self.next));
        self.counters.requests += 1;
        Some(HEADER_LENGTH)
    }

    /// When [`Receiver::poll_request`] or [`Receiver::on_timer`] have something to do next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if !self.has_gap() {
            return None;
        }
        let give_up_at = self.progressed_at + self.config.give_up;
        let request_at = match self.requested {
            Some((sent_at, next)) if next == self.next => sent_at + self.config.request_interval,
            _ => return Some(self.progressed_at),
        };
        Some(give_up_at.min(request_at))
    }

    /// Whether messages are missing.
    #[must_use]
    pub const fn has_gap(&self) -> bool {
        self.next < self.known_end
    }

    /// The session that is received.
    #[must_use]
    pub const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Number of the next message to come.
    #[must_use]
    pub const fn next_sequence(&self) -> SequenceNumber {
        SequenceNumber(self.next)
    }

    /// What was seen so far.
    #[must_use]
    pub const fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// Begins the packet's session if the one before is over, or silent for long.
    fn adopt(&mut self, now: Timestamp, packet: &Packet<'_>, deliver: &mut impl FnMut(Event<'_>)) -> bool {
        let silent = now.since(self.heard_at) >= self.config.session_timeout;
        let over = self.session.is_none() || self.ended || silent;
        if !over || self.previous == Some(packet.session) {
            return false;
        }
        self.previous = self.session;
        self.session = Some(packet.session);
        self.next = match self.config.join {
            Join::First => 1,
            Join::Current => packet.sequence,
        };
        self.known_end = self.next;
        self.session_end = None;
        self.ended = false;
        self.requested = None;
        self.progressed_at = now;
        self.window.clear();
        deliver(Event::Started {
            session: packet.session,
            next: SequenceNumber(self.next),
        });
        true
    }

    fn take(&mut self, first: u64, messages: Messages<'_>, deliver: &mut impl FnMut(Event<'_>)) {
        for (sequence, message) in (first..).zip(messages) {
            if sequence == self.next {
                self.hand_on(message, deliver);
            } else if sequence < self.next {
                self.counters.duplicates += 1;
            } else if sequence - self.next >= self.window.capacity() || message.len() > self.config.max_message {
                self.counters.overflowed += 1;
            } else if !self.window.put(sequence, message) {
                self.counters.duplicates += 1;
            }
        }
        self.drain(deliver);
    }

    fn hand_on(&mut self, message: &[u8], deliver: &mut impl FnMut(Event<'_>)) {
        deliver(Event::Message {
            sequence: SequenceNumber(self.next),
            message,
        });
        self.next += 1;
        self.counters.messages += 1;
    }

    /// Hands on what waited for the gap to close.
    fn drain(&mut self, deliver: &mut impl FnMut(Event<'_>)) {
        while let Some(message) = self.window.at(self.next) {
            deliver(Event::Message {
                sequence: SequenceNumber(self.next),
                message,
            });
            self.next += 1;
            self.counters.messages += 1;
        }
    }

    fn finish(&mut self, deliver: &mut impl FnMut(Event<'_>)) {
        if !self.ended && self.session_end.is_some_and(|end| self.next >= end) {
            self.ended = true;
            deliver(Event::Ended);
        }
    }

    /// Number after the gap: of the first message that waits, or the end of what is known.
    fn gap_end(&self) -> u64 {
        let window_end = self.known_end.min(self.next + self.window.capacity());
        (self.next..window_end)
            .find(|&sequence| self.window.at(sequence).is_some())
            .unwrap_or(self.known_end)
    }
}

/// Messages that wait, each in the slot of its number.
struct Window {
    slots: Vec<u8>,
    /// Number of the message in the slot; 0 for none. One that is below `next` is stale and waits to be overwritten.
    sequences: Vec<u64>,
    lengths: Vec<u16>,
    max_message: usize,
    mask: u64,
}

impl Window {
    fn new(capacity: usize, max_message: usize) -> Self {
        assert!(
            u16::try_from(max_message).is_ok(),
            "a MoldUDP64 message has at most 65,535 bytes"
        );
        let capacity = capacity.max(1).next_power_of_two();
        Self {
            slots: alloc::vec![0; capacity * max_message],
            sequences: alloc::vec![0; capacity],
            lengths: alloc::vec![0; capacity],
            max_message,
            mask: capacity as u64 - 1,
        }
    }

    const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    fn clear(&mut self) {
        self.sequences.fill(0);
    }

    /// `false` when it waits already.
    fn put(&mut self, sequence: u64, message: &[u8]) -> bool {
        let slot = self.slot(sequence);
        if self.sequences[slot] == sequence {
            return false;
        }
        self.slots[slot * self.max_message..][..message.len()].copy_from_slice(message);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "at most max_message, which fits in 16 bits"
        )]
        let length = message.len() as u16;
        self.lengths[slot] = length;
        self.sequences[slot] = sequence;
        true
    }

    fn at(&self, sequence: u64) -> Option<&[u8]> {
        let slot = self.slot(sequence);
        (self.sequences[slot] == sequence)
            .then(|| &self.slots[slot * self.max_message..][..usize::from(self.lengths[slot])])
    }

    #[allow(clippy::cast_possible_truncation, reason = "masked to the length of the ring")]
    const fn slot(&self, sequence: u64) -> usize {
        (sequence & self.mask) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Header, MAX_PACKET_LENGTH, PacketWriter, Publisher, PublisherConfig};
    use super::*;
    use proptest::prelude::*;

    const SESSION: Session = Session(*b"TEST000001");
    const OTHER: Session = Session(*b"TEST000002");
    const CONFIG: ReceiverConfig = ReceiverConfig {
        join: Join::First,
        window: 64,
        max_message: 50,
        request_interval: Duration::from_millis(1),
        give_up: Duration::from_millis(100),
        session_timeout: Duration::from_secs(3),
    };

    /// An event without borrowed bytes; of a message, number and first byte.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Seen {
        Started(Session, u64),
        Message(u64, u8),
        Lost(u64, u64),
        Ended,
    }

    fn seen(event: Event<'_>) -> Seen {
        match event {
            Event::Started { session, next } => Seen::Started(session, next.0),
            Event::Message { sequence, message } => Seen::Message(sequence.0, message[0]),
            Event::Lost { first, count } => Seen::Lost(first.0, count),
            Event::Ended => Seen::Ended,
        }
    }

    /// A packet of `session` with messages `first..=last`, each the low byte of its number.
    fn packet(session: Session, first: u64, last: u64) -> Vec<u8> {
        let mut bytes = alloc::vec![0; MAX_PACKET_LENGTH];
        let mut writer = PacketWriter::new(&mut bytes);
        for sequence in first..=last {
            assert!(writer.push(&[sequence.to_le_bytes()[0]]));
        }
        let length = writer.finish(session, first);
        bytes.truncate(length);
        bytes
    }

    fn feed(receiver: &mut Receiver, now: Timestamp, datagram: &[u8]) -> Vec<Seen> {
        let mut events = Vec::new();
        receiver.on_datagram(now, datagram, &mut |event| events.push(seen(event)));
        events
    }

    fn timer(receiver: &mut Receiver, now: Timestamp) -> Vec<Seen> {
        let mut events = Vec::new();
        receiver.on_timer(now, &mut |event| events.push(seen(event)));
        events
    }

    fn request(receiver: &mut Receiver, now: Timestamp) -> Option<(u64, u16)> {
        let mut bytes = [0; HEADER_LENGTH];
        receiver.poll_request(now, &mut bytes)?;
        let request = Request::parse(&bytes).expect("request");
        assert_eq!(Some(request.session), receiver.session());
        Some((request.sequence, request.count))
    }

    fn messages(numbers: core::ops::RangeInclusive<u64>) -> Vec<Seen> {
        numbers.map(|n| Seen::Message(n, n.to_le_bytes()[0])).collect()
    }

    #[test]
    fn a_skipped_message_is_a_gap_and_is_asked_for() {
        let mut receiver = Receiver::new(&CONFIG);
        let now = Timestamp(1_000);
        let started = [Seen::Started(SESSION, 1)]
            .into_iter()
            .chain(messages(1..=2))
            .collect::<Vec<_>>();
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 1, 2)), started);
        assert_eq!(request(&mut receiver, now), None);
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 5, 6)), []);
        assert_eq!(request(&mut receiver, now), Some((3, 2)));
        assert_eq!(request(&mut receiver, now), None, "one request is under way");
        assert_eq!(
            request(&mut receiver, now + CONFIG.request_interval),
            Some((3, 2)),
            "it brought nothing"
        );
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 3, 3)), messages(3..=3));
        assert_eq!(request(&mut receiver, now), Some((4, 1)), "it brought a part");
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 3, 4)), messages(4..=6));
        assert_eq!(request(&mut receiver, now), None);
        let counters = receiver.counters();
        assert_eq!((counters.gaps, counters.duplicates, counters.messages), (1, 1, 6));
    }

    #[test]
    fn a_heartbeat_and_the_end_show_a_gap_too() {
        let mut receiver = Receiver::new(&CONFIG);
        let now = Timestamp(1_000);
        feed(&mut receiver, now, &packet(SESSION, 1, 1));
        feed(&mut receiver, now, Header::heartbeat(SESSION, 3).as_bytes());
        assert_eq!(request(&mut receiver, now), Some((2, 1)));
        assert_eq!(
            feed(&mut receiver, now, Header::end_of_session(SESSION, 4).as_bytes()),
            []
        );
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 2, 2)), messages(2..=2));
        assert_eq!(request(&mut receiver, now), Some((3, 1)));
        let last = [Seen::Message(3, 3), Seen::Ended];
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 3, 3)), last);
        assert_eq!(
            feed(&mut receiver, now, Header::end_of_session(SESSION, 4).as_bytes()),
            []
        );
    }

    #[test]
    fn a_gap_that_stays_is_given_up_and_what_waits_goes_on() {
        let mut receiver = Receiver::new(&CONFIG);
        let now = Timestamp(1_000);
        feed(&mut receiver, now, &packet(SESSION, 1, 1));
        feed(&mut receiver, now, &packet(SESSION, 4, 5));
        assert_eq!(timer(&mut receiver, now + Duration(CONFIG.give_up.0 - 1)), []);
        let rest = [Seen::Lost(2, 2), Seen::Message(4, 4), Seen::Message(5, 5)];
        assert_eq!(timer(&mut receiver, now + CONFIG.give_up), rest);
        assert_eq!(receiver.poll_timeout(), None);
        assert_eq!(receiver.counters().lost, 2);
    }

    #[test]
    fn a_gap_wider_than_the_window_is_filled_piece_by_piece() {
        let mut receiver = Receiver::new(&ReceiverConfig { window: 4, ..CONFIG });
        let now = Timestamp(1_000);
        feed(&mut receiver, now, &packet(SESSION, 1, 1));
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 10, 10)), []);
        assert_eq!(receiver.counters().overflowed, 1);
        assert_eq!(request(&mut receiver, now), Some((2, 9)));
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 2, 7)), messages(2..=7));
        assert_eq!(
            request(&mut receiver, now),
            Some((8, 3)),
            "what was dropped is asked for"
        );
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 8, 10)), messages(8..=10));
    }

    #[test]
    fn a_receiver_that_resumes_asks_for_what_was_sent_meanwhile_and_gives_way_to_a_new_session() {
        let now = Timestamp(1_000_000_000_000);
        let mut receiver = Receiver::new(&CONFIG);
        receiver.resume(SESSION, SequenceNumber(4));
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 2, 3)), [], "handed on before");
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 6, 6)), []);
        assert_eq!(request(&mut receiver, now), Some((4, 2)));
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 4, 5)), messages(4..=6));

        let other = Session(*b"OTHER00001");
        let mut receiver = Receiver::new(&CONFIG);
        receiver.resume(SESSION, SequenceNumber(4));
        let started = feed(&mut receiver, now, &packet(other, 1, 1));
        assert_eq!(started[0], Seen::Started(other, 1));
    }

    #[test]
    fn another_session_is_foreign_until_this_one_is_over_or_silent() {
        let now = Timestamp(10_000_000_000);
        let mut receiver = Receiver::new(&CONFIG);
        feed(&mut receiver, now, &packet(SESSION, 1, 2));
        assert_eq!(feed(&mut receiver, now, &packet(OTHER, 1, 1)), []);
        assert_eq!(receiver.counters().foreign, 1);
        assert_eq!(
            feed(&mut receiver, now, Header::end_of_session(SESSION, 3).as_bytes()),
            [Seen::Ended]
        );
        let started = [Seen::Started(OTHER, 1), Seen::Message(1, 1)];
        assert_eq!(feed(&mut receiver, now, &packet(OTHER, 1, 1)), started);
        feed(&mut receiver, now, Header::end_of_session(OTHER, 2).as_bytes());
        assert_eq!(
            feed(&mut receiver, now, &packet(SESSION, 2, 2)),
            [],
            "a late packet of the session before"
        );

        let mut receiver = Receiver::new(&CONFIG);
        feed(&mut receiver, now, &packet(SESSION, 1, 2));
        assert_eq!(
            feed(&mut receiver, now + CONFIG.session_timeout, &packet(OTHER, 1, 1)),
            started
        );
    }

    #[test]
    fn who_joins_late_begins_where_the_config_says() {
        let now = Timestamp(1_000);
        let mut receiver = Receiver::new(&ReceiverConfig {
            join: Join::Current,
            ..CONFIG
        });
        let started = [Seen::Started(SESSION, 9), Seen::Message(9, 9)];
        assert_eq!(feed(&mut receiver, now, &packet(SESSION, 9, 9)), started);
        assert_eq!(request(&mut receiver, now), None);
        let mut receiver = Receiver::new(&CONFIG);
        assert_eq!(
            feed(&mut receiver, now, &packet(SESSION, 9, 9)),
            [Seen::Started(SESSION, 1)]
        );
        assert_eq!(request(&mut receiver, now), Some((1, 8)));
    }

    /// What the link does with a packet.
    #[derive(Clone, Copy, Debug)]
    enum Fate {
        Pass,
        Drop,
        Twice,
        Late,
        Corrupt,
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![
            6 => Just(Fate::Pass),
            2 => Just(Fate::Drop),
            1 => Just(Fate::Twice),
            1 => Just(Fate::Late),
            1 => Just(Fate::Corrupt),
        ]
    }

    /// A one-way link under a list of fates. A late packet comes after the next one.
    struct Link<'a> {
        fates: &'a mut dyn Iterator<Item = Fate>,
        late: Option<Vec<u8>>,
    }

    impl Link<'_> {
        fn carry(&mut self, datagram: &[u8], arrive: &mut impl FnMut(&[u8])) {
            match self.fates.next().unwrap_or(Fate::Pass) {
                Fate::Drop => return,
                Fate::Late => {
                    if let Some(earlier) = self.late.replace(datagram.to_vec()) {
                        arrive(&earlier);
                    }
                    return;
                }
                Fate::Pass => arrive(datagram),
                Fate::Twice => {
                    arrive(datagram);
                    arrive(datagram);
                }
                Fate::Corrupt => arrive(&datagram[..datagram.len() - 1]),
            }
            if let Some(late) = self.late.take() {
                arrive(&late);
            }
        }
    }

    proptest! {
        /// Publisher and receiver over a link that drops, repeats, delays and cuts packets both ways.
        #[test]
        fn every_message_comes_once_and_in_order(
            bursts in proptest::collection::vec(0_usize..40, 1..30),
            fates in proptest::collection::vec(fate(), 0..300),
            window in 1_usize..64,
        ) {
            let mut publisher = Publisher::new(&PublisherConfig {
                session: SESSION,
                ring: 2048,
                max_message: 50,
                heartbeat: Duration::from_millis(10),
            });
            let mut receiver = Receiver::new(&ReceiverConfig { window, give_up: Duration::from_secs(60), ..CONFIG });
            let mut fates = fates.into_iter();
            let mut link = Link { fates: &mut fates, late: None };
            let mut received = Vec::new();
            let mut now = Timestamp(1_000_000_000);
            let mut bytes = [0; 300];
            let mut bursts = bursts.into_iter();
            for _ in 0..20_000 {
                match bursts.next() {
                    Some(burst) => for _ in 0..burst {
                        let number = publisher.next_sequence().0;
                        publisher.push(&number.to_be_bytes());
                    },
                    None => publisher.end(),
                }
                let mut deliver = |event: Event<'_>| match event {
                    Event::Message { sequence, message } => received.push((sequence.0, message.to_vec())),
                    Event::Started { .. } | Event::Ended => {}
                    Event::Lost { .. } => panic!("lost"),
                };
                while let Some(length) = publisher.poll_packet(now, &mut bytes) {
                    link.carry(&bytes[..length], &mut |d| receiver.on_datagram(now, d, &mut deliver));
                }
                let mut header = [0; HEADER_LENGTH];
                if receiver.poll_request(now, &mut header).is_some() {
                    let mut asked = Vec::new();
                    link.carry(&header, &mut |d| asked.push(d.to_vec()));
                    for request in asked {
                        if let Some(length) = publisher.on_request(&request, &mut bytes) {
                            link.carry(&bytes[..length], &mut |d| receiver.on_datagram(now, d, &mut deliver));
                        }
                    }
                }
                receiver.on_timer(now, &mut deliver);
                if receiver.ended {
                    break;
                }
                now = now + Duration::from_millis(1);
            }
            prop_assert!(receiver.ended);
            prop_assert_eq!(received.len() as u64, publisher.next_sequence().0 - 1);
            for (expected, (sequence, message)) in (1_u64..).zip(&received) {
                prop_assert_eq!(*sequence, expected);
                prop_assert_eq!(message, &expected.to_be_bytes().to_vec());
            }
        }
    }
}
