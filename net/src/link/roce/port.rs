//! What carries the packets: an ordinary UDP socket, or AF_XDP, which sees the whole IP header.

use super::config::RoceLinkConfig;
use super::socket::{Header, RoceSocket};
use crate::carrier::CarrierConfig;
use crate::datagram::Datagram;
use crate::error::SetupError;
use crate::xdp::XdpPeer;
use proto::roce::Identification;
use std::io;
use std::net::SocketAddr;

/// One end of the chosen carrier.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a link has one")]
pub(super) enum RocePort {
    Socket(RoceSocket),
    Xdp(Box<XdpPeer>),
}

/// A packet that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrived {
    /// Bytes of it.
    pub(super) length: usize,
    pub(super) from: SocketAddr,
    /// A router on the way was congested.
    pub(super) is_marked: bool,
    /// What the packet's check covers of the IP header.
    pub(super) identification: Identification,
}

impl RocePort {
    /// Opens one end. Where AF_XDP cannot be had and the config allows it, it is a UDP socket.
    pub(super) fn open(config: &RoceLinkConfig) -> Result<Self, SetupError> {
        let class = config.dscp << 2 | ECN_CAPABLE;
        let header = Header {
            class,
            priority: config.priority,
        };
        let [local, peer] = config.ports();
        let socket = || RoceSocket::bind(local, peer, header).map(Self::Socket);
        match &config.carrier {
            CarrierConfig::Udp(_) => socket(),
            CarrierConfig::Xdp(xdp) => match XdpPeer::open(xdp, config.ports_as_end()) {
                Ok(mut peer) => {
                    tracing::info!("{peer}");
                    peer.set_class(class);
                    Ok(Self::Xdp(Box::new(peer)))
                }
                Err(error) if xdp.fallback.is_some() => {
                    tracing::warn!("no AF_XDP, a UDP socket takes its place: {error}");
                    socket()
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Sends the peer one packet, at the latest with the next [`flush`](Self::flush). `false`: not now, and it was not taken. What
    /// cannot be delivered is lost.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub(super) fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        match self {
            Self::Socket(socket) => socket.send(packet),
            Self::Xdp(peer) => peer.send(packet),
        }
    }

    /// Receives one packet, if there is one. What does not fit is cut off, and its check wrong.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub(super) fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        match self {
            Self::Socket(socket) => socket.recv(buffer),
            Self::Xdp(peer) => Ok(peer.recv_from(buffer)?.map(|(length, origin)| Arrived {
                length,
                from: SocketAddr::from((origin.from.address, origin.from.port)),
                is_marked: origin.class & ECN_BITS == ECN_BITS,
                identification: Identification::Known(origin.identification),
            })),
        }
    }

    /// A good packet of the peer came from this address.
    pub(super) fn on_heard(&mut self, from: SocketAddr) {
        match self {
            Self::Socket(socket) => socket.on_heard(from),
            Self::Xdp(_) => {}
        }
    }

    /// Lets go of what was sent and still waits.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(_) => Ok(()),
            Self::Xdp(peer) => peer.flush(),
        }
    }

    /// What it is, for people.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Socket(_) => "UDP",
            Self::Xdp(_) => "AF_XDP",
        }
    }

    /// Packets that it dropped itself because they were damaged or not for it.
    pub(super) fn dropped(&self) -> u64 {
        match self {
            Self::Socket(_) => 0,
            Self::Xdp(peer) => peer.dropped(),
        }
    }
}

/// ECT(0): routers mark such packets instead of dropping them.
pub(super) const ECN_CAPABLE: u8 = 0b10;
/// Both bits: congestion was met.
pub(super) const ECN_BITS: u8 = 0b11;
