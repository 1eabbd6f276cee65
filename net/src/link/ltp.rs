//! The link over LTP: a connection of `proto::ltp` with a datagram end under it.
//!
//! The acceptor learns its peer's address when a session is established, and from nothing else. Until then it replies
//! to wherever a step of the handshake came from; afterwards datagrams of the session from elsewhere are dropped, while
//! a handshake is still heard from anywhere: a gateway that restarts may come from another port.

use super::{DownReason, Link, LinkCounters, LinkEvent, LinkFlow, LinkState, LinkView, RefusedPeer, Resume};
use crate::datagram::Datagram;
use proto::ltp::{self, Config, ConfigError, Connection, Event, Received, Redundancy, Role, wire};
use std::io;
use std::net::SocketAddr;
use types::{SequenceNumber, Timestamp};

/// Datagrams received in one `poll` without an event among them, at most: a flood of nonsense cannot hold the turn.
const RECEIVES_MAX: usize = 64;

/// What the last look into the socket found.
///
/// To look once more after a datagram costs a system call, and the answer waits for it. On a quiet link that is left to
/// the next turn. On a busy one everything is taken, so that the answers share datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    /// Nothing.
    Quiet,
    /// The first datagram after nothing.
    First,
    /// One of several.
    Busy,
}

/// One end of a link over LTP.
#[derive(Debug)]
pub struct LtpLink<D> {
    datagrams: D,
    connection: Connection,
    input: Box<[u8]>,
    output: Box<[u8]>,
    /// How often a datagram is sent here.
    copies: usize,
    look: Look,
    /// Why the socket failed last.
    failure: io::ErrorKind,
    strangers: u64,
    /// Whom this end refused last.
    refused: Option<RefusedPeer>,
    bytes_sent: u64,
    bytes_received: u64,
}

impl<D: Datagram> LtpLink<D> {
    /// Builds one end over a socket; all memory is allocated here. The initiator's socket knows its peer, the acceptor's
    /// learns it. `epoch_seed` rises with each start of this end; the time will do.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub fn new(
        datagrams: D,
        role: Role,
        config: &Config,
        epoch_seed: u64,
        resume: Resume,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let resume = ltp::Resume {
            next_send: resume.next_send,
            next_receive: resume.next_receive,
        };
        Ok(Self {
            datagrams,
            connection: Connection::new(role, *config, epoch_seed, resume),
            // One byte more, so that a datagram that was cut off is longer than any good one.
            input: vec![0; config.max_datagram + 1].into(),
            output: vec![0; config.max_datagram].into(),
            copies: if config.redundancy == Redundancy::Twice { 2 } else { 1 },
            look: Look::Quiet,
            failure: io::ErrorKind::Other,
            strangers: 0,
            refused: None,
            bytes_sent: 0,
            bytes_received: 0,
        })
    }

    /// The socket, or what decorates it.
    #[must_use]
    pub const fn datagrams(&self) -> &D {
        &self.datagrams
    }

    #[cfg(test)]
    pub(crate) const fn datagrams_mut(&mut self) -> &mut D {
        &mut self.datagrams
    }

    /// The protocol's own counts, finer than [`Link::counters`].
    #[must_use]
    pub const fn ltp_counters(&self) -> ltp::Counters {
        self.connection.counters()
    }

    /// When [`Link::flush`] has something to do at the latest, for an owner that sleeps.
    #[must_use]
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.connection.poll_timeout()
    }

    /// Takes in the datagram of `length` bytes in `input`.
    fn receive(&mut self, now: Timestamp, length: usize) -> io::Result<()> {
        self.bytes_received += length as u64;
        let datagram = &self.input[..length];
        if !wire::is_handshake(datagram) && !self.datagrams.is_from_peer() {
            self.strangers += 1;
            return Ok(());
        }
        match self.connection.on_datagram(now, datagram) {
            Received::Dropped => return Ok(()),
            Received::Session => {
                self.datagrams.heard(now);
                return Ok(());
            }
            Received::Established => {
                self.datagrams.accept_peer();
                self.datagrams.heard(now);
            }
            Received::Handshake => {
                self.note_refused(self.datagrams.source());
            }
        }
        if let Some(length) = self.connection.poll_reply(&mut self.output) {
            self.bytes_sent += length as u64;
            // A reply that finds no room is a lost one: the initiator asks again.
            self.datagrams.reply(&self.output[..length])?;
            self.datagrams.flush()?;
        }
        Ok(())
    }

    /// Keeps whom this end has refused just now, if anybody.
    fn note_refused(&mut self, from: Option<SocketAddr>) {
        if let Some(reason) = self.connection.take_refused() {
            self.refused = Some(RefusedPeer {
                from,
                user: None,
                reason: reason.into(),
            });
        }
    }

    /// Receives until something happened. Without a buffer messages wait.
    fn hear(&mut self, now: Timestamp, mut buffer: Option<&mut [u8]>) -> Option<LinkEvent> {
        for _ in 0..RECEIVES_MAX {
            if let Some(event) = self.next_event(buffer.as_deref_mut()) {
                return Some(event);
            }
            if let Some(change) = self.datagrams.path_change() {
                return Some(LinkEvent::Path(change));
            }
            if self.look == Look::First {
                self.look = Look::Busy;
                return None;
            }
            let received = match self.datagrams.recv(&mut self.input) {
                Ok(None) => {
                    self.look = Look::Quiet;
                    return None;
                }
                Ok(Some(length)) => {
                    self.look = match self.look {
                        Look::Quiet => Look::First,
                        Look::First | Look::Busy => Look::Busy,
                    };
                    self.receive(now, length)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = received {
                self.fail(now, &error);
                break;
            }
        }
        self.next_event(buffer)
    }

    fn transmit(&mut self, now: Timestamp, watermark: u64) -> io::Result<()> {
        while let Some(length) = self.connection.poll_transmit(now, watermark, &mut self.output) {
            for _ in 0..self.copies {
                if !self.datagrams.send(&self.output[..length])? {
                    // The socket's buffer is full: this one is lost and will be repaired, the rest waits for the next
                    // turn.
                    return self.datagrams.flush();
                }
                self.bytes_sent += length as u64;
            }
        }
        self.datagrams.flush()
    }

    fn fail(&mut self, now: Timestamp, error: &io::Error) {
        self.failure = error.kind();
        self.connection.on_carrier_failure(now);
    }

    fn next_event(&mut self, buffer: Option<&mut [u8]>) -> Option<LinkEvent> {
        let event = match buffer {
            Some(buffer) => self.connection.poll_event(buffer)?,
            None => self.connection.poll_change()?,
        };
        Some(match event {
            Event::Message { sequence, length } => LinkEvent::Message { sequence, length },
            Event::Up { .. } => LinkEvent::Up,
            Event::Credits { slots } => LinkEvent::Credits(slots),
            Event::Recall { from, to } => LinkEvent::Recall { from, to },
            Event::Down { reason } => LinkEvent::Down(match reason {
                ltp::DownReason::Silence => DownReason::Silent,
                ltp::DownReason::Superseded => DownReason::Replaced,
                ltp::DownReason::Carrier => DownReason::Io(self.failure),
                ltp::DownReason::Refused(refusal) => DownReason::Incompatible(refusal),
                ltp::DownReason::RefusedByPeer(refusal) => DownReason::RefusedBecause(refusal),
            }),
        })
    }
}

impl<D: Datagram> Link for LtpLink<D> {
    fn room(&self) -> usize {
        self.connection.room()
    }

    fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        self.connection.send(message, position)
    }

    fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.connection.restore(sequence, message);
    }

    fn recalled(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.connection.recalled(sequence, message);
    }

    fn not_recalled(&mut self, sequence: SequenceNumber) {
        self.connection.not_recalled(sequence);
        self.note_refused(self.datagrams.peer());
    }

    fn poll(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        self.hear(now, Some(buffer))
    }

    fn poll_recall(&mut self, now: Timestamp) -> Option<LinkEvent> {
        if self.connection.is_recalling() {
            self.hear(now, None)
        } else {
            None
        }
    }

    fn flush(&mut self, now: Timestamp, watermark: u64) {
        if let Err(error) = self.transmit(now, watermark) {
            self.fail(now, &error);
        }
    }

    fn journaled(&mut self, appended: u64, synced: u64) {
        self.connection.journaled(appended, synced);
    }

    fn peer_durable(&self) -> Option<SequenceNumber> {
        self.connection.peer_durable()
    }

    fn credits(&self) -> Option<u32> {
        self.connection.credits()
    }

    fn grant(&mut self, slots: u32) {
        self.connection.grant(slots);
    }

    fn flow(&self) -> Option<LinkFlow> {
        Some(LinkFlow {
            peer: self.datagrams.peer()?,
            tag: self.connection.receive_tag()?,
            trailer: u16::try_from(self.connection.trailer_length()).ok()?,
        })
    }

    fn counters(&self) -> LinkCounters {
        let counters = self.connection.counters();
        LinkCounters {
            sent: counters.messages_sent,
            received: counters.messages_received,
            retransmitted: counters.retransmits,
            retransmits_spurious: counters.retransmits_spurious,
            duplicates: counters.duplicates,
            naks_sent: counters.naks_sent,
            naks_received: counters.naks_received,
            recalled: counters.recalled,
            heard: counters.datagrams_received + self.strangers + self.datagrams.dropped(),
            unreachable: self.datagrams.unreachable(),
            malformed: counters.malformed + self.datagrams.dropped(),
            foreign: counters.foreign + counters.handshakes_stale + self.strangers,
            forged: counters.forged,
            replayed: counters.replayed,
            impossible: counters.false_acks + counters.beyond_window,
            refused: counters.refusals,
            refused_by_peer: counters.refused_by_peer,
            ups: counters.ups,
            downs: counters.downs,
            paths_down: self.datagrams.paths_down(),
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
        }
    }

    fn view(&self) -> LinkView {
        let connection = &self.connection;
        let (queued, in_flight) = connection.waiting();
        LinkView {
            transport: "LTP",
            carrier: Some(self.datagrams.name()),
            state: match connection.state() {
                ltp::State::Listening => LinkState::Listening,
                ltp::State::Negotiating => LinkState::Calling,
                ltp::State::Establishing => LinkState::Agreeing,
                ltp::State::Up => LinkState::Up,
            },
            epoch: connection.epoch(),
            peer: self.datagrams.peer(),
            next_send: connection.next_send(),
            next_receive: connection.next_receive(),
            peer_received: connection.peer_received(),
            peer_durable: connection.peer_durable(),
            durable: connection.durable(),
            queued,
            in_flight,
            credits: connection.credits(),
            refused: self.refused,
            counters: self.counters(),
            roce: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::UdpOptions;
    use crate::udp::{UdpPeer, UdpSocket};
    use proto::ltp::Refusal;
    use types::{Duration, SessionId};

    const GATEWAY: usize = 0;
    const VENUE: usize = 1;

    /// A gateway and a venue on loopback. Sockets are real; time is made up, and moves 10 µs a turn.
    struct Loop {
        now: Timestamp,
        ends: [LtpLink<UdpPeer>; 2],
        events: [Vec<LinkEvent>; 2],
        messages: [Vec<Vec<u8>>; 2],
    }

    impl Loop {
        fn new() -> Self {
            let local = SocketAddr::from(([127, 0, 0, 1], 0));
            let learner = UdpPeer::learn(local, &UdpOptions::default()).unwrap();
            let venue = LtpLink::new(learner, Role::Acceptor, &config(), 1, Resume::START).unwrap();
            let gateway = gateway(address(&venue), 1, Resume::START);
            Self {
                now: Timestamp(1_000_000_000),
                ends: [gateway, venue],
                events: [Vec::new(), Vec::new()],
                messages: [Vec::new(), Vec::new()],
            }
        }

        fn turns(&mut self, count: usize) {
            for _ in 0..count {
                for index in [GATEWAY, VENUE] {
                    let end = &mut self.ends[index];
                    let mut buffer = [0; 64];
                    while let Some(event) = end.poll(self.now, &mut buffer) {
                        match event {
                            LinkEvent::Message { length, .. } => self.messages[index].push(buffer[..length].to_vec()),
                            other => self.events[index].push(other),
                        }
                    }
                    end.flush(self.now, u64::MAX);
                }
                self.now = self.now + Duration::from_micros(10);
            }
        }
    }

    fn config() -> Config {
        Config::new(SessionId(3), 64, 64)
    }

    fn gateway(venue: SocketAddr, seed: u64, resume: Resume) -> LtpLink<UdpPeer> {
        let socket = UdpPeer::connect(venue, None, &UdpOptions::default()).unwrap();
        LtpLink::new(socket, Role::Initiator, &config(), seed, resume).unwrap()
    }

    fn address(link: &LtpLink<UdpPeer>) -> SocketAddr {
        link.datagrams().local_addr().unwrap()
    }

    #[test]
    fn messages_pass_both_ways() {
        let mut pair = Loop::new();
        for number in 0..100u8 {
            pair.ends[GATEWAY].send(&[number; 48], 0);
            pair.ends[VENUE].send(&[number; 64], 0);
            pair.turns(10);
        }
        let expected = |length: usize| (0..100u8).map(|number| vec![number; length]).collect::<Vec<_>>();
        assert_eq!(pair.messages, [expected(64), expected(48)]);
        assert_eq!(pair.events, [[LinkEvent::Up], [LinkEvent::Up]]);
        let counters = pair.ends[VENUE].counters();
        assert_eq!((counters.sent, counters.received, counters.ups), (100, 100, 1));
        assert!(counters.bytes_received > 100 * 64);
    }

    #[test]
    fn what_the_venue_grants_reaches_the_gateway() {
        let mut pair = Loop::new();
        pair.turns(5);
        for slots in [40, 0] {
            pair.ends[VENUE].grant(slots);
            pair.turns(2);
            assert_eq!(pair.ends[GATEWAY].credits(), Some(slots));
        }
        let told = [LinkEvent::Up, LinkEvent::Credits(40), LinkEvent::Credits(0)];
        assert_eq!(pair.events[GATEWAY], told);
    }

    #[test]
    fn a_gateway_that_restarts_on_another_port_takes_the_session_over() {
        let mut pair = Loop::new();
        pair.turns(5);
        pair.ends[GATEWAY].send(b"order 1", 0);
        pair.turns(5);
        pair.ends[VENUE].send(b"report 1", 0);
        let resume = Resume {
            next_send: SequenceNumber(3),
            next_receive: SequenceNumber(1),
        };
        let mut restarted = gateway(address(&pair.ends[VENUE]), 100, resume);
        restarted.restore(SequenceNumber(1), b"order 1");
        restarted.restore(SequenceNumber(2), b"order 2");
        pair.ends[GATEWAY] = restarted;
        pair.turns(60);
        assert_eq!(pair.messages[VENUE], [b"order 1", b"order 2"]);
        assert_eq!(pair.messages[GATEWAY], [b"report 1"]);
        let events = [LinkEvent::Up, LinkEvent::Down(DownReason::Replaced), LinkEvent::Up];
        assert_eq!(pair.events[VENUE], events);
    }

    #[test]
    fn a_stranger_neither_disturbs_the_session_nor_draws_it_away() {
        let mut pair = Loop::new();
        pair.turns(5);
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let stranger = UdpSocket::bind(local, &UdpOptions::default()).unwrap();
        let venue = address(&pair.ends[VENUE]);
        // A good first step of a handshake, nonsense, and nonsense under some tag.
        let mut negotiate = [0; 32];
        negotiate[12] = 16;
        negotiate[14] = wire::Kind::Negotiate as u8;
        negotiate[28] = 3;
        negotiate[30] = wire::VERSION;
        for datagram in [&negotiate[..], b"nonsense", &[7; 40]] {
            assert!(stranger.send_to(datagram, venue).unwrap());
        }
        // The venue looks for strangers now and then.
        pair.turns(40);
        let mut reply = [0; 64];
        let (length, _) = stranger
            .recv_from(&mut reply)
            .unwrap()
            .expect("the handshake is answered");
        assert_eq!((length, reply[14]), (40, wire::Kind::Negotiated as u8));

        pair.ends[VENUE].send(b"report", 0);
        pair.turns(5);
        assert_eq!(pair.messages[GATEWAY], [b"report"]);
        assert_eq!(stranger.recv_from(&mut reply).unwrap(), None);
        assert_eq!(pair.events[VENUE], [LinkEvent::Up]);
        let counters = pair.ends[VENUE].counters();
        assert_eq!((counters.malformed, counters.foreign), (0, 2));
    }

    #[test]
    fn a_refusal_reaches_the_other_end_with_its_reason() {
        let mut pair = Loop::new();
        let resume = Resume {
            next_send: SequenceNumber(1),
            next_receive: SequenceNumber(5),
        };
        pair.ends[GATEWAY] = gateway(address(&pair.ends[VENUE]), 1, resume);
        pair.turns(5);
        let (wanted, next) = (SequenceNumber(5), SequenceNumber(1));
        let refusal = Refusal::NumbersAhead { wanted, next };
        assert_eq!(
            pair.events[GATEWAY],
            [LinkEvent::Down(DownReason::RefusedBecause(refusal))]
        );
        let reason = DownReason::Incompatible(refusal);
        assert_eq!(pair.events[VENUE], [LinkEvent::Down(reason)]);
    }

    /// A socket that fails for good.
    struct Broken;

    impl Datagram for Broken {
        fn send(&mut self, _: &[u8]) -> io::Result<bool> {
            Err(io::ErrorKind::PermissionDenied.into())
        }

        fn recv(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
            Ok(None)
        }
    }

    #[test]
    fn a_socket_that_fails_is_told_once() {
        let mut link = LtpLink::new(Broken, Role::Initiator, &config(), 1, Resume::START).unwrap();
        link.send(b"order", 0);
        let mut events = Vec::new();
        for turn in 1..1_000 {
            let now = Timestamp(turn * 1_000_000);
            events.extend(link.poll(now, &mut [0; 64]));
            link.flush(now, 0);
        }
        let reason = DownReason::Io(io::ErrorKind::PermissionDenied);
        assert_eq!(events, [LinkEvent::Down(reason)]);
        assert_eq!(link.room(), 63);
    }
}
