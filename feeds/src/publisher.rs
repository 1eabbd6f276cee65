//! Publishes a feed over MoldUDP64 on a socket: sends to every destination, answers requests by unicast.

use crate::limits;
use net::error::SetupError;
use net::options::UdpOptions;
use net::udp::UdpSocket;
use proto::itch;
use proto::mold::{HEADER_LENGTH, MAX_PACKET_LENGTH, Publisher, PublisherConfig, PublisherCounters, Session};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use types::{Duration, SequenceNumber, Timestamp};

/// Where a feed is published.
#[derive(Clone, Debug)]
pub struct UdpPublisherConfig {
    /// The socket's own address: packets come from it, and requests for retransmission are sent to it.
    pub local: SocketAddr,
    /// Who gets the feed: addresses of receivers, or multicast groups.
    pub destinations: Vec<SocketAddr>,
    /// Address of the interface that multicast leaves by.
    pub interface: Ipv4Addr,
    /// Messages kept for retransmission; rounded up to a power of two.
    pub ring: usize,
    /// Silence after which a heartbeat tells the next number.
    pub heartbeat: Duration,
}

/// The publishing end of one feed. Push messages and call [`UdpPublisher::turn`].
pub struct UdpPublisher {
    socket: UdpSocket,
    destinations: Vec<SocketAddr>,
    core: Publisher,
    counters: UdpCounters,
}

/// What happened at a feed's socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UdpCounters {
    /// Packets that the kernel had no room for. To a receiver they are lost, and it asks for them.
    pub not_taken: u64,
    /// Sends and receives that failed. The first was logged.
    pub failed: u64,
}

/// Hops of multicast: it stays on the local network.
const MULTICAST_HOPS: u32 = 1;

impl UdpPublisher {
    /// Opens the socket and a session whose first message will have number 1.
    ///
    /// # Errors
    /// There are no destinations or too many, or the socket cannot be had.
    pub fn open(config: &UdpPublisherConfig, session: Session) -> Result<Self, SetupError> {
        if config.destinations.is_empty() || config.destinations.len() > limits::MAX_DESTINATIONS {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} destinations", config.destinations.len()),
            );
            return Err(SetupError::new(
                "publishing a feed",
                source,
                "configure 1 to 16 destinations",
            ));
        }
        let socket = UdpSocket::bind(config.local, &UdpOptions::default())?;
        if config.destinations.iter().any(|to| to.ip().is_multicast()) {
            // Loopback delivers only what may go nowhere else.
            let hops = if config.interface.is_loopback() {
                0
            } else {
                MULTICAST_HOPS
            };
            socket.send_multicast_on(config.interface, hops, true)?;
        }
        Ok(Self {
            socket,
            destinations: config.destinations.clone(),
            core: Publisher::new(&PublisherConfig {
                session,
                ring: config.ring,
                max_message: itch::MAX_MESSAGE_LENGTH,
                heartbeat: config.heartbeat,
            }),
            counters: UdpCounters::default(),
        })
    }

    /// Messages that [`UdpPublisher::push`] takes before the next turn.
    #[must_use]
    pub fn room(&self) -> usize {
        self.core.room()
    }

    /// Queues an ITCH message and gives its number. The caller has seen [`UdpPublisher::room`].
    pub fn push(&mut self, message: &[u8]) -> SequenceNumber {
        self.core.push(message)
    }

    /// Ends the session after what is queued. Requests are answered until [`UdpPublisher::start`].
    pub fn end(&mut self) {
        self.core.end();
    }

    /// Starts a new session, whose first message will have number 1.
    pub fn start(&mut self, session: Session) {
        self.core.start(session);
    }

    /// Sends what is queued, a heartbeat when it is time, and answers to requests. `true` when there was something to do.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        let answered = self.answer();
        let mut packet = [0; MAX_PACKET_LENGTH];
        let mut sent = false;
        while let Some(length) = self.core.poll_packet(now, &mut packet) {
            for index in 0..self.destinations.len() {
                self.send(&packet[..length], self.destinations[index]);
            }
            sent = true;
        }
        answered || sent
    }

    /// The address that requests are sent to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether the end of the session has been sent.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.core.has_ended()
    }

    /// The session that is published.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.core.session()
    }

    /// What was published so far.
    #[must_use]
    pub const fn counters(&self) -> PublisherCounters {
        self.core.counters()
    }

    /// What happened at the socket so far.
    #[must_use]
    pub const fn udp_counters(&self) -> UdpCounters {
        self.counters
    }

    fn answer(&mut self) -> bool {
        // One byte more than a request, so that what is longer is seen to be none.
        let mut request = [0; HEADER_LENGTH + 1];
        let mut packet = [0; MAX_PACKET_LENGTH];
        for answered in 0..limits::MAX_REQUESTS_PER_TURN {
            match self.socket.recv_from(&mut request) {
                Ok(Some((length, from))) => {
                    if let Some(length) = self.core.on_request(&request[..length], &mut packet) {
                        self.send(&packet[..length], from);
                    }
                }
                Ok(None) => return answered > 0,
                Err(error) => {
                    self.counters.fail("receiving requests of a feed", &error);
                    return answered > 0;
                }
            }
        }
        true
    }

    fn send(&mut self, packet: &[u8], to: SocketAddr) {
        match self.socket.send_to(packet, to) {
            Ok(true) => {}
            Ok(false) => self.counters.not_taken += 1,
            Err(error) => self.counters.fail(&format!("sending a feed to {to}"), &error),
        }
    }
}

impl UdpCounters {
    /// Counts a failure; the first is logged.
    pub(crate) fn fail(&mut self, doing: &str, error: &io::Error) {
        if self.failed == 0 {
            tracing::error!("{doing}: {error}; further failures are only counted");
        }
        self.failed += 1;
    }
}

/// Whether an address is an IPv4 multicast group.
pub(crate) const fn multicast_group(address: SocketAddr) -> Option<Ipv4Addr> {
    match address.ip() {
        IpAddr::V4(group) if group.is_multicast() => Some(group),
        _ => None,
    }
}
