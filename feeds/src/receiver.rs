//! Receives a feed over MoldUDP64 on sockets: by unicast or multicast, asking for what is missing.

use crate::limits;
use crate::publisher::{UdpCounters, multicast_group};
use net::error::SetupError;
use net::options::UdpOptions;
use net::udp::UdpSocket;
use proto::mold::{Event, HEADER_LENGTH, Receiver, ReceiverConfig, ReceiverCounters};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use types::Timestamp;

/// Where a feed is received.
#[derive(Clone, Debug)]
pub struct UdpReceiverConfig {
    /// Where the feed is sent to: an address of this machine, or a multicast group with its port.
    pub listen: SocketAddr,
    /// Address of the interface that multicast comes in by, and that requests are sent from.
    pub interface: Ipv4Addr,
    /// The publisher's address for requests. `None`: nothing is asked for, and a gap is lost unless the network only
    /// changed the order.
    pub requests: Option<SocketAddr>,
    /// How gaps are dealt with.
    pub receiver: ReceiverConfig,
}

/// The receiving end of one feed. Call [`UdpReceiver::turn`].
pub struct UdpReceiver {
    /// The feed.
    socket: UdpSocket,
    /// Requests and their answers. Not the feed's socket, because one that is bound to a multicast group hears no unicast.
    asking: Option<Asking>,
    core: Receiver,
    buffer: Box<[u8; limits::MAX_DATAGRAM_BYTES]>,
    counters: UdpCounters,
}

struct Asking {
    socket: UdpSocket,
    publisher: SocketAddr,
}

impl UdpReceiver {
    /// Opens the sockets.
    ///
    /// # Errors
    /// They cannot be had.
    pub fn open(config: &UdpReceiverConfig) -> Result<Self, SetupError> {
        let options = UdpOptions {
            receive_buffer_bytes: Some(limits::RECEIVE_BUFFER_BYTES),
            ..UdpOptions::default()
        };
        let socket = match multicast_group(config.listen) {
            Some(group) => UdpSocket::bind_multicast(group, config.listen.port(), config.interface, &options)?,
            None => UdpSocket::bind(config.listen, &options)?,
        };
        let mut receiver = config.receiver;
        let asking = match config.requests {
            Some(publisher) => Some(Asking::open(publisher, config.interface, &options)?),
            None => {
                receiver.give_up = receiver.give_up.min(limits::REORDER_PATIENCE);
                None
            }
        };
        Ok(Self {
            socket,
            asking,
            core: Receiver::new(&receiver),
            buffer: Box::new([0; limits::MAX_DATAGRAM_BYTES]),
            counters: UdpCounters::default(),
        })
    }

    /// Takes what has arrived, hands on what it makes available, and asks for what is missing. `true` when something had
    /// arrived.
    pub fn turn(&mut self, now: Timestamp, deliver: &mut impl FnMut(Event<'_>)) -> bool {
        let mut received = receive(&self.socket, &mut *self.buffer, &mut self.counters, &mut |datagram| {
            self.core.on_datagram(now, datagram, deliver);
        });
        if !self.core.has_gap() {
            return received;
        }
        if let Some(asking) = &self.asking {
            received |= receive(&asking.socket, &mut *self.buffer, &mut self.counters, &mut |datagram| {
                self.core.on_datagram(now, datagram, deliver);
            });
            let mut request = [0; HEADER_LENGTH];
            if self.core.poll_request(now, &mut request).is_some() {
                match asking.socket.send_to(&request, asking.publisher) {
                    Ok(true) => {}
                    Ok(false) => self.counters.not_taken += 1,
                    Err(error) => self.counters.fail("asking for what a feed lost", &error),
                }
            }
        }
        self.core.on_timer(now, deliver);
        received
    }

    /// The address that the feed is received on.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What was received so far.
    #[must_use]
    pub const fn counters(&self) -> ReceiverCounters {
        self.core.counters()
    }

    /// What happened at the sockets so far.
    #[must_use]
    pub const fn udp_counters(&self) -> UdpCounters {
        self.counters
    }
}

impl Asking {
    fn open(publisher: SocketAddr, interface: Ipv4Addr, options: &UdpOptions) -> Result<Self, SetupError> {
        let local = match publisher {
            SocketAddr::V4(_) => SocketAddr::from((interface, 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
        };
        let socket = UdpSocket::bind(local, options)?;
        Ok(Self { socket, publisher })
    }
}

/// Takes what has arrived at a socket, up to a turn's share.
fn receive(socket: &UdpSocket, buffer: &mut [u8], counters: &mut UdpCounters, take: &mut impl FnMut(&[u8])) -> bool {
    for received in 0..limits::MAX_DATAGRAMS_PER_TURN {
        match socket.recv_from(buffer) {
            Ok(Some((length, _))) => take(&buffer[..length]),
            Ok(None) => return received > 0,
            Err(error) => {
                counters.fail("receiving a feed", &error);
                return received > 0;
            }
        }
    }
    true
}
