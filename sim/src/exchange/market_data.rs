//! The sockets of market data: the feed that goes out, and the recording that comes in.

use super::limits::{
    DATAGRAMS_PER_TURN, GAP_REQUESTS_PER_TURN, MAX_DATAGRAM_LENGTH, MAX_DESTINATIONS, PACKETS_PER_TURN,
};
use latency::clock::Clock;
use latency::{Recorder, TickSent};
use net::SetupError;
use net::options::UdpOptions;
use net::udp::UdpSocket;
use proto::mold::{Event, HEADER_LENGTH, Header, MAX_PACKET_LENGTH, Publisher, Receiver, ReceiverConfig};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use types::{Duration, Timestamp, Trigger};
use zerocopy::FromBytes;

/// Where the feed is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedConfig {
    /// Number of the feed in triggers.
    pub id: u8,
    /// The socket's own address: packets come from it, and requests for retransmission are sent to it.
    pub local: SocketAddr,
    /// Who gets the feed: receivers' addresses, or multicast groups.
    pub destinations: Vec<SocketAddr>,
    /// Address of the interface that multicast leaves by.
    pub interface: Ipv4Addr,
}

/// Where the recording comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryConfig {
    /// Where it is sent to: an address of this machine, or a multicast group with its port.
    pub listen: SocketAddr,
    /// The publisher's address for requests. `None`: nothing is asked for, and a gap is lost.
    pub request: Option<SocketAddr>,
    /// Address of the interface that multicast comes in by.
    pub interface: Ipv4Addr,
}

/// Packets and requests that went wrong at a socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketCounters {
    /// Packets that the kernel had no room for. To a receiver they are lost, and it asks for them.
    pub not_taken: u64,
    /// Sends and receives that failed. The first was logged.
    pub failed: u64,
}

/// The outgoing side.
pub(super) struct FeedSocket {
    config: FeedConfig,
    socket: UdpSocket,
    /// When requests are looked for next.
    next_look: Timestamp,
    pub(super) counters: SocketCounters,
}

/// Requests for what was missed are looked for this often: an empty look costs a system call, and whoever asks has lost
/// far more time.
const ASKED_EVERY: Duration = Duration::from_micros(100);

/// The incoming side.
pub(super) struct HistorySocket {
    socket: UdpSocket,
    /// Requests and their answers, with the publisher's address. A socket of its own, because one that is bound to a
    /// multicast group hears no unicast.
    asking: Option<(UdpSocket, SocketAddr)>,
    receiver: Receiver,
    buffer: Box<[u8; MAX_DATAGRAM_LENGTH + 1]>,
    pub(super) counters: SocketCounters,
}

impl FeedSocket {
    pub(super) fn open(config: &FeedConfig) -> Result<Self, SetupError> {
        if !(1..=MAX_DESTINATIONS).contains(&config.destinations.len()) {
            let what = format!("{} destinations", config.destinations.len());
            let source = io::Error::new(io::ErrorKind::InvalidInput, what);
            return Err(SetupError::new(
                "publishing market data",
                source,
                "configure 1 to 16 destinations",
            ));
        }
        let socket = UdpSocket::bind(config.local, &UdpOptions::default())?;
        if config.destinations.iter().any(|to| to.ip().is_multicast()) {
            let hops = u32::from(!config.interface.is_loopback());
            socket.send_multicast_on(config.interface, hops, true)?;
        }
        Ok(Self {
            config: config.clone(),
            socket,
            next_look: Timestamp::NONE,
            counters: SocketCounters::default(),
        })
    }

    /// The address that requests are sent to.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends what is queued, or a heartbeat when it is time, up to a turn's share. Each packet is stamped as it is sent.
    pub(super) fn publish(
        &mut self,
        now: Timestamp,
        publisher: &mut Publisher,
        clock: &Clock,
        recorder: &mut Recorder,
    ) -> bool {
        let mut packet = [0; MAX_PACKET_LENGTH];
        for sent in 0..PACKETS_PER_TURN {
            let Some(length) = publisher.poll_packet(now, &mut packet) else {
                return sent > 0;
            };
            let packet = &packet[..length];
            if recorder.is_on()
                && let Some(ticks) = self.ticks(packet, clock.now())
            {
                recorder.push(ticks);
            }
            for place in 0..self.config.destinations.len() {
                self.send(packet, self.config.destinations[place]);
            }
        }
        true
    }

    /// Answers requests for retransmission, which it looks for every [`ASKED_EVERY`].
    pub(super) fn answer(&mut self, now: Timestamp, publisher: &mut Publisher) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + ASKED_EVERY;
        // One byte more than a request, so that what is longer is seen to be none.
        let mut request = [0; HEADER_LENGTH + 1];
        let mut packet = [0; MAX_PACKET_LENGTH];
        for answered in 0..GAP_REQUESTS_PER_TURN {
            match self.socket.recv_from(&mut request) {
                Ok(Some((length, from))) => {
                    if let Some(length) = publisher.on_request(&request[..length], &mut packet) {
                        self.send(&packet[..length], from);
                    }
                }
                Ok(None) => return answered > 0,
                Err(error) => {
                    self.counters.fail("receiving requests for market data", &error);
                    return answered > 0;
                }
            }
        }
        true
    }

    /// The ticks in a packet; `None` for one without messages.
    fn ticks(&self, packet: &[u8], time: Timestamp) -> Option<TickSent> {
        let (header, messages) = Header::ref_from_prefix(packet).ok()?;
        let trigger = Trigger::new(self.config.id, header.sequence.get());
        let count = u32::from(header.count.get());
        (!messages.is_empty()).then_some(TickSent { trigger, count, time })
    }

    fn send(&mut self, packet: &[u8], to: SocketAddr) {
        match self.socket.send_to(packet, to) {
            Ok(true) => {}
            Ok(false) => self.counters.not_taken += 1,
            Err(error) => self.counters.fail("sending market data", &error),
        }
    }
}

impl HistorySocket {
    /// Opens the sockets; `receiver` may have resumed already.
    pub(super) fn open(config: &HistoryConfig, receiver: Receiver) -> Result<Self, SetupError> {
        let options = UdpOptions {
            receive_buffer_bytes: Some(RECEIVE_BUFFER),
            ..UdpOptions::default()
        };
        let socket = match config.listen.ip() {
            IpAddr::V4(group) if group.is_multicast() => {
                UdpSocket::bind_multicast(group, config.listen.port(), config.interface, &options)?
            }
            _ => UdpSocket::bind(config.listen, &options)?,
        };
        let asking = match config.request {
            Some(publisher) => {
                let local = match publisher {
                    SocketAddr::V4(_) => SocketAddr::from((config.interface, 0)),
                    SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
                };
                Some((UdpSocket::bind(local, &options)?, publisher))
            }
            None => None,
        };
        let buffer = Box::new([0; MAX_DATAGRAM_LENGTH + 1]);
        Ok(Self {
            socket,
            asking,
            receiver,
            buffer,
            counters: SocketCounters::default(),
        })
    }

    /// The receiver's settings: whoever starts late asks for everything, and a recording that says nothing for long may be
    /// followed by another.
    pub(super) const fn receiver(window: usize) -> ReceiverConfig {
        ReceiverConfig {
            join: proto::mold::Join::First,
            window,
            max_message: proto::itch::MAX_MESSAGE_LENGTH,
            request_interval: Duration::from_millis(2),
            give_up: Duration::from_secs(1),
            session_timeout: Duration::from_secs(5),
        }
    }

    /// The address that the recording is received on.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes one datagram, hands on what it makes available, and asks for what is missing. Whether there was one.
    pub(super) fn receive(&mut self, now: Timestamp, deliver: &mut impl FnMut(Event<'_>)) -> bool {
        let mut taken = take(&self.socket, &mut self.buffer[..], &mut self.counters, |datagram| {
            self.receiver.on_datagram(now, datagram, deliver);
        });
        if self.receiver.poll_timeout().is_none() {
            return taken;
        }
        if let Some((socket, publisher)) = &self.asking {
            taken |= take(socket, &mut self.buffer[..], &mut self.counters, |datagram| {
                self.receiver.on_datagram(now, datagram, deliver);
            });
            let mut request = [0; HEADER_LENGTH];
            if self.receiver.poll_request(now, &mut request).is_some() {
                match socket.send_to(&request, *publisher) {
                    Ok(true) => {}
                    Ok(false) => self.counters.not_taken += 1,
                    Err(error) => self.counters.fail("asking for what a recording lost", &error),
                }
            }
        }
        self.receiver.on_timer(now, deliver);
        taken
    }

    /// Datagrams to take in a turn.
    pub(super) const PER_TURN: usize = DATAGRAMS_PER_TURN;

    /// What the receiver counted.
    pub(super) const fn receiver_counters(&self) -> proto::mold::ReceiverCounters {
        self.receiver.counters()
    }
}

/// Takes one datagram of a socket. Whether there was one.
fn take(socket: &UdpSocket, buffer: &mut [u8], counters: &mut SocketCounters, mut on: impl FnMut(&[u8])) -> bool {
    match socket.recv_from(buffer) {
        Ok(Some((length, _))) => {
            on(&buffer[..length]);
            true
        }
        Ok(None) => false,
        Err(error) => {
            counters.fail("receiving a recording", &error);
            false
        }
    }
}

impl SocketCounters {
    fn fail(&mut self, doing: &str, error: &io::Error) {
        if self.failed == 0 {
            tracing::error!("{doing}: {error}; further failures are only counted");
        }
        self.failed += 1;
    }
}

/// Receive buffer asked of the kernel for a recording, bytes: it may come in bursts of a whole opening.
const RECEIVE_BUFFER: u32 = 4 << 20;
