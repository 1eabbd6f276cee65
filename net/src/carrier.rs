//! What carries the datagrams of LTP, chosen once at start-up by the config.

use crate::datagram::Datagram;
use crate::error::SetupError;
use crate::link::LinkEnd;
use crate::options::UdpOptions;
use crate::udp::UdpPeer;
use std::io;
use std::net::SocketAddr;

/// Which carrier, and its settings.
#[derive(Clone, Copy, Debug)]
pub enum CarrierConfig {
    /// A UDP socket of the kernel.
    Udp(UdpOptions),
}

/// One end of the chosen carrier. Which it is, is looked at once a call, and the branch predictor knows it beforehand.
#[derive(Debug)]
pub enum Carrier {
    /// A UDP socket of the kernel.
    Udp(UdpPeer),
}

impl CarrierConfig {
    /// Bytes of memory that the carrier allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
        }
    }
}

impl Carrier {
    /// Opens one end: the connecting end knows its peer, the listening end learns it.
    ///
    /// # Errors
    /// The local address cannot be had, or there is no way to the peer.
    pub fn open(config: &CarrierConfig, end: LinkEnd) -> Result<Self, SetupError> {
        match config {
            CarrierConfig::Udp(options) => Self::open_udp(options, end),
        }
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(udp) => udp.local_addr(),
        }
    }

    fn open_udp(options: &UdpOptions, end: LinkEnd) -> Result<Self, SetupError> {
        let socket = match end {
            LinkEnd::Connect { peer, local } => UdpPeer::connect(peer, local, options),
            LinkEnd::Listen { local } => UdpPeer::learn(local, options),
        };
        socket.map(Self::Udp)
    }
}

/// Does the same with whichever it is.
macro_rules! with {
    ($carrier:expr, $end:ident => $call:expr) => {
        match $carrier {
            Carrier::Udp($end) => $call,
        }
    };
}

impl Datagram for Carrier {
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
        with!(self, end => end.send(datagram))
    }

    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        with!(self, end => end.recv(buffer))
    }

    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        with!(self, end => end.reply(datagram))
    }

    fn flush(&mut self) -> io::Result<()> {
        with!(self, end => end.flush())
    }

    fn is_from_peer(&self) -> bool {
        with!(self, end => end.is_from_peer())
    }

    fn accept_peer(&mut self) {
        with!(self, end => end.accept_peer());
    }
}
