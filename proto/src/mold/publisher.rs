//! The publishing end: numbers messages, packs them into packets, keeps the latest for those who missed some.

use super::{HEADER_LENGTH, Header, PacketWriter, Request, Session};
use alloc::vec::Vec;
use types::{Duration, SequenceNumber, Timestamp};
use zerocopy::IntoBytes;

/// How a [`Publisher`] works.
#[derive(Clone, Copy, Debug)]
pub struct PublisherConfig {
    /// Name of the first session.
    pub session: Session,
    /// Messages kept for retransmission; rounded up to a power of two.
    pub ring: usize,
    /// Longest message, bytes.
    pub max_message: usize,
    /// Silence after which a heartbeat tells the next number.
    pub heartbeat: Duration,
}

/// What a [`Publisher`] did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PublisherCounters {
    /// Messages pushed.
    pub messages: u64,
    /// Packets with messages, without those that answer requests.
    pub packets: u64,
    /// Heartbeats and ends of session.
    pub heartbeats: u64,
    /// Requests answered.
    pub requests: u64,
    /// Messages sent again.
    pub retransmitted: u64,
    /// Requests for messages that the ring no longer holds.
    pub requests_too_old: u64,
    /// Requests not understood, of a foreign session, or for messages not published yet.
    pub requests_ignored: u64,
}

/// The publishing end of one feed. Push messages, then send what [`Publisher::poll_packet`] gives until it gives nothing.
///
/// Memory is the ring of `ring` messages, allocated at construction.
pub struct Publisher {
    session: Session,
    heartbeat: Duration,
    max_message: usize,
    /// Message `n` is in slot `n & mask`, `max_message` bytes each.
    slots: Vec<u8>,
    lengths: Vec<u16>,
    mask: u64,
    /// Number of the next message pushed.
    next: u64,
    /// Number of the first message not yet sent. At most `next`, and not more than the ring behind it.
    unsent: u64,
    sent_at: Timestamp,
    phase: Phase,
    counters: PublisherCounters,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The end was asked for, and is sent once all messages are.
    Ending,
    /// The end was sent, and is repeated at each heartbeat.
    Ended,
}

impl Publisher {
    /// A publisher whose first message has number 1.
    #[must_use]
    pub fn new(config: &PublisherConfig) -> Self {
        assert!(
            u16::try_from(config.max_message).is_ok(),
            "a MoldUDP64 message has at most 65,535 bytes"
        );
        let ring = config.ring.max(1).next_power_of_two();
        Self {
            session: config.session,
            heartbeat: config.heartbeat,
            max_message: config.max_message,
            slots: alloc::vec![0; ring * config.max_message],
            lengths: alloc::vec![0; ring],
            mask: ring as u64 - 1,
            next: 1,
            unsent: 1,
            sent_at: Timestamp::NONE,
            phase: Phase::Open,
            counters: PublisherCounters::default(),
        }
    }

    /// Starts a new session: numbers begin at 1, and what the last session still held is gone. The next packet announces
    /// it.
    pub fn start(&mut self, session: Session) {
        self.session = session;
        self.next = 1;
        self.unsent = 1;
        self.sent_at = Timestamp::NONE;
        self.phase = Phase::Open;
    }

    /// Messages that [`Publisher::push`] takes before some must be sent.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.phase {
            Phase::Open => self.lengths.len() - self.backlog(),
            Phase::Ending | Phase::Ended => 0,
        }
    }

    /// Messages pushed and not yet sent.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most the length of the ring")]
    pub const fn backlog(&self) -> usize {
        (self.next - self.unsent) as usize
    }

    /// Queues a message and gives its number. The caller has seen [`Publisher::room`] and keeps to `max_message`.
    pub fn push(&mut self, message: &[u8]) -> SequenceNumber {
        assert!(
            self.room() > 0,
            "no room in the MoldUDP64 ring, or the session has ended"
        );
        assert!(message.len() <= self.max_message, "message is longer than max_message");
        let sequence = self.next;
        let slot = self.slot(sequence);
        self.slots[slot * self.max_message..][..message.len()].copy_from_slice(message);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "at most max_message, which fits in 16 bits"
        )]
        let length = message.len() as u16;
        self.lengths[slot] = length;
        self.next += 1;
        self.counters.messages += 1;
        SequenceNumber(sequence)
    }

    /// Ends the session after what is queued. Requests are answered until [`Publisher::start`].
    pub fn end(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Ending;
        }
    }

    /// Whether the end of the session has been sent.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The session that is published.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.session
    }

    /// Number of the next message.
    #[must_use]
    pub const fn next_sequence(&self) -> SequenceNumber {
        SequenceNumber(self.next)
    }

    /// The next packet to send to all, written into `packet`; call until `None`. Its room bounds the packet's length and
    /// must hold the longest message.
    pub fn poll_packet(&mut self, now: Timestamp, packet: &mut [u8]) -> Option<usize> {
        if self.unsent < self.next {
            let (length, count) = self.fill(packet, self.unsent, self.next - self.unsent);
            assert!(count > 0, "packet has no room for one message");
            self.unsent += u64::from(count);
            self.counters.packets += 1;
            self.sent_at = now;
            return Some(length);
        }
        if self.phase != Phase::Ending && now.since(self.sent_at) < self.heartbeat {
            return None;
        }
        let header = if self.phase == Phase::Open {
            Header::heartbeat(self.session, self.next)
        } else {
            self.phase = Phase::Ended;
            Header::end_of_session(self.session, self.next)
        };
        packet[..HEADER_LENGTH].copy_from_slice(header.as_bytes());
        self.counters.heartbeats += 1;
        self.sent_at = now;
        Some(HEADER_LENGTH)
    }

    /// Answers a request: the packet to send to its sender, written into `packet`. One request gets one packet, so that a
    /// small datagram cannot cause a flood; who wants more asks again.
    pub fn on_request(&mut self, datagram: &[u8], packet: &mut [u8]) -> Option<usize> {
        let request = match Request::parse(datagram) {
            Ok(request) if request.session == self.session && request.sequence < self.unsent => request,
            _ => {
                self.counters.requests_ignored += 1;
                return None;
            }
        };
        let oldest = self.next.saturating_sub(self.mask + 1).max(1);
        if request.sequence < oldest {
            self.counters.requests_too_old += 1;
            return None;
        }
        let wanted = u64::from(request.count).min(self.unsent - request.sequence);
        let (length, count) = self.fill(packet, request.sequence, wanted);
        if count == 0 {
            self.counters.requests_ignored += 1;
            return None;
        }
        self.counters.requests += 1;
        self.counters.retransmitted += u64::from(count);
        Some(length)
    }

    /// What was done so far.
    #[must_use]
    pub const fn counters(&self) -> PublisherCounters {
        self.counters
    }

    /// Packs up to `wanted` messages from number `first`. Gives the packet's length and how many messages it has.
    fn fill(&self, packet: &mut [u8], first: u64, wanted: u64) -> (usize, u16) {
        let mut writer = PacketWriter::new(packet);
        for sequence in first..first + wanted {
            let slot = self.slot(sequence);
            let message = &self.slots[slot * self.max_message..][..usize::from(self.lengths[slot])];
            if !writer.push(message) {
                break;
            }
        }
        let count = writer.count();
        (writer.finish(self.session, first), count)
    }

    #[allow(clippy::cast_possible_truncation, reason = "masked to the length of the ring")]
    const fn slot(&self, sequence: u64) -> usize {
        (sequence & self.mask) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Content, MAX_PACKET_LENGTH, Packet};
    use super::*;

    const SESSION: Session = Session(*b"TEST000001");
    const HEARTBEAT: Duration = Duration::from_secs(1);

    fn publisher(ring: usize) -> Publisher {
        Publisher::new(&PublisherConfig {
            session: SESSION,
            ring,
            max_message: 50,
            heartbeat: HEARTBEAT,
        })
    }

    fn first_and_count(packet: &[u8]) -> (u64, usize) {
        let packet = Packet::parse(packet).expect("packet");
        match packet.content {
            Content::Messages(messages) => (packet.sequence, messages.len()),
            _ => (packet.sequence, 0),
        }
    }

    fn request(sequence: u64, count: u16) -> Header {
        let session = SESSION;
        Request {
            session,
            sequence,
            count,
        }
        .header()
    }

    #[test]
    fn messages_of_one_turn_share_packets() {
        let mut publisher = publisher(64);
        let mut packet = [0; MAX_PACKET_LENGTH];
        for n in 1..=40 {
            assert_eq!(publisher.push(&[n; 50]), SequenceNumber(u64::from(n)));
        }
        let now = Timestamp(1);
        let length = publisher.poll_packet(now, &mut packet).expect("packet");
        assert_eq!(first_and_count(&packet[..length]), (1, 27));
        let length = publisher.poll_packet(now, &mut packet).expect("packet");
        assert_eq!(first_and_count(&packet[..length]), (28, 13));
        assert_eq!(publisher.poll_packet(now, &mut packet), None);
    }

    #[test]
    fn silence_brings_a_heartbeat_with_the_next_number() {
        let mut publisher = publisher(4);
        let mut packet = [0; 100];
        publisher.push(b"a");
        let start = Timestamp(5_000_000_000);
        assert!(publisher.poll_packet(start, &mut packet).is_some());
        assert_eq!(
            publisher.poll_packet(start + Duration(HEARTBEAT.0 - 1), &mut packet),
            None
        );
        let length = publisher
            .poll_packet(start + HEARTBEAT, &mut packet)
            .expect("heartbeat");
        assert_eq!(
            Packet::parse(&packet[..length]).map(|p| (p.sequence, p.content)),
            Ok((2, Content::Heartbeat))
        );
        assert_eq!(publisher.poll_packet(start + HEARTBEAT, &mut packet), None);
    }

    #[test]
    fn the_end_follows_the_last_message_and_a_new_session_starts_at_1() {
        let mut publisher = publisher(4);
        let mut packet = [0; 100];
        publisher.push(b"a");
        publisher.end();
        assert_eq!(publisher.room(), 0);
        let now = Timestamp(1);
        assert!(publisher.poll_packet(now, &mut packet).is_some());
        assert!(!publisher.has_ended());
        let length = publisher.poll_packet(now, &mut packet).expect("end");
        assert_eq!(
            Packet::parse(&packet[..length]).map(|p| (p.sequence, p.content)),
            Ok((2, Content::EndOfSession))
        );
        assert!(publisher.has_ended());
        assert_eq!(publisher.poll_packet(now, &mut packet), None);
        assert!(publisher.on_request(request(1, 1).as_bytes(), &mut packet).is_some());

        publisher.start(Session(*b"TEST000002"));
        assert_eq!(publisher.push(b"b"), SequenceNumber(1));
        assert!(publisher.on_request(request(1, 1).as_bytes(), &mut packet).is_none());
    }

    #[test]
    fn a_request_gets_what_the_ring_holds_and_no_more_than_a_packet() {
        let mut publisher = publisher(8);
        let mut packet = [0; 100];
        for n in 1..=10 {
            publisher.push(&[n; 30]);
            assert!(publisher.poll_packet(Timestamp(1), &mut packet).is_some());
        }
        let mut answer = |sequence, count| {
            let length = publisher.on_request(request(sequence, count).as_bytes(), &mut packet)?;
            Some(first_and_count(&packet[..length]))
        };
        assert_eq!(answer(3, 1), Some((3, 1)));
        assert_eq!(answer(3, 8), Some((3, 2)));
        assert_eq!(answer(10, 100), Some((10, 1)));
        assert_eq!(answer(2, 1), None, "overwritten");
        assert_eq!(answer(11, 1), None, "not published yet");
        assert_eq!(answer(3, 0), None, "nothing wanted");
        let counters = publisher.counters();
        assert_eq!((counters.requests, counters.retransmitted), (3, 4));
        assert_eq!((counters.requests_too_old, counters.requests_ignored), (1, 2));
    }

    #[test]
    fn what_is_not_sent_yet_is_never_overwritten() {
        let mut publisher = publisher(4);
        for _ in 0..4 {
            publisher.push(b"x");
        }
        assert_eq!((publisher.room(), publisher.backlog()), (0, 4));
        let mut packet = [0; 100];
        assert!(publisher.poll_packet(Timestamp(1), &mut packet).is_some());
        assert_eq!(publisher.room(), 4);
    }
}
