//! The AF_XDP carrier: datagrams that go past the kernel's network stack.
//!
//! A few dozen instructions at the interface's receive hook (`program`) send frames for our UDP ports, and nothing else,
//! into memory that this process shares with the kernel (`memory`, `ring`, `socket`). There the frames of one queue are
//! sorted (`queue`), and headers are read and written here ([`frame`]) instead of in the kernel. Looking for a datagram is
//! a load from memory; sending costs one system call a flush where the driver wants one.
//!
//! What the kernel does for a UDP socket beyond that is left to it: it chooses the local address and port, holds the port
//! against others (a socket that nobody reads), answers ARP, and gets every frame that is not ours. All of it hangs on file
//! descriptors: when the process ends, however it ends, nothing stays at the interface.
//!
//! What it needs and how to see it at work is in `docs/link-afxdp.md`.

mod attachment;
mod config;
pub mod frame;
mod interface;
mod memory;
mod probe;
mod program;
mod queue;
mod ring;
mod socket;

pub use config::{Mode, Neighbour, XdpConfig, XdpTable};
pub use frame::Mac;
pub use interface::InterfaceName;
pub use probe::probe;

use crate::datagram::Datagram;
use crate::error::{SetupError, bind_advice};
use crate::link::LinkEnd;
use frame::{Endpoint, Header, Origin};
use interface::Interface;
use queue::Queue;
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::rc::Rc;

/// One end of a conversation over AF_XDP; a [`Datagram`]. Ends of one queue belong to one thread.
#[derive(Debug)]
pub struct XdpPeer {
    queue: Rc<RefCell<Queue>>,
    inbox: usize,
    local: Endpoint,
    peer: Peer,
    /// Where the datagram last received came from.
    source: Option<Endpoint>,
    counters: XdpCounters,
    /// Holds the port: what comes to it on another queue waits here, where `ss -uan` shows it.
    _port: Socket,
}

/// Datagrams that were dropped, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct XdpCounters {
    /// No plain UDP in IPv4: the program lets none through.
    pub unsupported: u64,
    /// Lengths in the headers contradict each other or the frame.
    pub malformed: u64,
    /// A checksum is wrong or left out.
    pub bad_checksum: u64,
    /// For an end of this queue that is there no longer.
    pub unknown: u64,
    /// Not from the peer of an end that has one from the start.
    pub strangers: u64,
    /// For another end of this queue, whose inbox was full.
    pub overflowed: u64,
}

/// Whom an [`XdpPeer`] talks to.
#[derive(Debug)]
enum Peer {
    /// Known from the start; nobody else is heard.
    Fixed(Route),
    /// Learnt from a datagram that the protocol above approved.
    Learning(Option<Route>),
}

/// The way to a peer.
#[derive(Clone, Copy, Debug)]
struct Route {
    to: Endpoint,
    header: Header,
}

/// Frames looked at in one `recv` without a datagram among them, at most: a flood of nonsense cannot hold the turn.
const RECEIVES_MAX: usize = 64;

impl XdpCounters {
    /// All that was dropped.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.unsupported + self.malformed + self.bad_checksum + self.unknown + self.strangers + self.overflowed
    }
}

impl XdpPeer {
    /// Opens one end on the interface and queue of the config.
    ///
    /// # Errors
    /// The interface, the address or a privilege is missing, the kernel or the driver cannot do it, the neighbour does not
    /// answer, or the queue is another's.
    pub fn open(config: &XdpConfig, end: LinkEnd) -> Result<Self, SetupError> {
        let interface = Interface::find(&config.interface).map_err(|source| {
            let doing = format!("looking for interface {}", config.interface);
            SetupError::new(
                doing,
                source,
                "configure an Ethernet interface of this machine (`ip link` lists them)",
            )
        })?;
        let (port, address) = reserve(&config.interface, end)?;
        let local = Endpoint {
            mac: interface.mac,
            address: *address.ip(),
            port: address.port(),
        };
        let peer = match end {
            LinkEnd::Connect { peer, .. } => Peer::Fixed(route(config, &local, peer)?),
            LinkEnd::Listen { .. } => Peer::Learning(None),
        };
        let queue = Queue::of(config, interface)?;
        let inbox = queue.borrow_mut().open_inbox(address)?;
        Ok(Self {
            queue,
            inbox,
            local,
            peer,
            source: None,
            counters: XdpCounters::default(),
            _port: port,
        })
    }

    /// The address that it receives on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        address_of(&self.local)
    }

    /// What was dropped beneath the protocol since it was opened.
    #[must_use]
    pub const fn counters(&self) -> XdpCounters {
        self.counters
    }

    /// Gives the datagrams to a peer that was known from the start this type of service.
    pub(crate) fn set_class(&mut self, class: u8) {
        if let Peer::Fixed(route) = &mut self.peer {
            route.header = route.header.with_class(class);
        }
    }

    /// Receives the next datagram, whoever sent it: its length and origin.
    ///
    /// # Errors
    /// The socket is unusable.
    pub(crate) fn recv_from(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Origin)>> {
        self.queue.borrow_mut().recv(self.inbox, buffer, &mut self.counters)
    }

    fn send_by(&self, route: &Route, datagram: &[u8]) -> io::Result<bool> {
        self.queue.borrow_mut().send(&route.header, datagram)
    }
}

impl Datagram for XdpPeer {
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
        match &self.peer {
            Peer::Fixed(route) | Peer::Learning(Some(route)) => self.send_by(route, datagram),
            Peer::Learning(None) => Ok(false),
        }
    }

    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut queue = self.queue.borrow_mut();
        for _ in 0..RECEIVES_MAX {
            let Some((length, Origin { from, .. })) = queue.recv(self.inbox, buffer, &mut self.counters)? else {
                return Ok(None);
            };
            if let Peer::Fixed(route) = &self.peer
                && !is_same(&route.to, &from)
            {
                self.counters.strangers += 1;
                continue;
            }
            self.source = Some(from);
            return Ok(Some(length));
        }
        Ok(None)
    }

    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        match (&self.peer, &self.source) {
            (Peer::Fixed(_), _) => self.send(datagram),
            (Peer::Learning(_), Some(source)) => self.send_by(&Route::new(&self.local, *source), datagram),
            (Peer::Learning(_), None) => Ok(false),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.queue.borrow_mut().flush()
    }

    fn is_from_peer(&self) -> bool {
        match (&self.peer, &self.source) {
            (Peer::Fixed(_), _) => true,
            (Peer::Learning(Some(route)), Some(source)) => is_same(&route.to, source),
            (Peer::Learning(_), _) => false,
        }
    }

    fn accept_peer(&mut self) {
        if let (Peer::Learning(peer), Some(source)) = (&mut self.peer, self.source) {
            *peer = Some(Route::new(&self.local, source));
        }
    }

    fn name(&self) -> &'static str {
        "AF_XDP"
    }

    fn peer(&self) -> Option<SocketAddr> {
        match &self.peer {
            Peer::Fixed(route) | Peer::Learning(Some(route)) => Some(address_of(&route.to)),
            Peer::Learning(None) => None,
        }
    }

    fn source(&self) -> Option<SocketAddr> {
        self.source.as_ref().map(address_of)
    }

    fn dropped(&self) -> u64 {
        self.counters.total()
    }
}

impl Drop for XdpPeer {
    fn drop(&mut self) {
        self.queue.borrow_mut().close_inbox(self.inbox);
    }
}

/// One line for the log: where it is, how it works, between whom.
impl fmt::Display for XdpPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queue, local) = (self.queue.borrow(), &self.local);
        write!(f, "{queue}, {}:{} ({})", local.address, local.port, local.mac)?;
        match &self.peer {
            Peer::Fixed(Route { to, .. }) => write!(f, " to {}:{} ({})", to.address, to.port, to.mac),
            Peer::Learning(_) => f.write_str(" learns its peer"),
        }
    }
}

impl Route {
    fn new(from: &Endpoint, to: Endpoint) -> Self {
        let header = Header::new(from, &to);
        Self { to, header }
    }
}

const fn address_of(end: &Endpoint) -> SocketAddr {
    SocketAddr::V4(SocketAddrV4::new(end.address, end.port))
}

/// A peer is known by address and port, as a socket knows it: its card may be replaced.
fn is_same(one: &Endpoint, other: &Endpoint) -> bool {
    (one.address, one.port) == (other.address, other.port)
}

/// Has the kernel choose what the config leaves open of the local address, and hold it.
fn reserve(interface: &InterfaceName, end: LinkEnd) -> Result<(Socket, SocketAddrV4), SetupError> {
    let (local, peer) = match end {
        LinkEnd::Connect { peer, local } => (local, Some(peer)),
        LinkEnd::Listen { local } => (Some(local), None),
    };
    let at = local.or(peer).map_or_else(String::new, |address| address.to_string());
    let hold = || -> io::Result<(Socket, SocketAddrV4)> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        // So the route to the peer, and with it our address, is the interface's.
        socket.bind_device(Some(interface.as_str().as_bytes()))?;
        if let Some(local) = local {
            socket.bind(&local.into())?;
        }
        if let Some(peer) = peer {
            socket.connect(&peer.into())?;
        }
        let address = socket.local_addr()?.as_socket_ipv4();
        let address = address.filter(|address| !address.ip().is_unspecified());
        Ok((socket, address.ok_or(io::ErrorKind::AddrNotAvailable)?))
    };
    hold().map_err(|source| {
        let doing = format!("reserving a UDP port on {interface} for {at}");
        let advice = match source.raw_os_error() {
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => "check the address and the routes (`ip route get`)",
            Some(libc::EPERM) => "run it as root, or grant CAP_NET_RAW",
            _ => bind_advice(&source),
        };
        SetupError::new(doing, source, advice)
    })
}

/// The way to a peer that the config names.
fn route(config: &XdpConfig, local: &Endpoint, peer: SocketAddr) -> Result<Route, SetupError> {
    let error = |source, advice| SetupError::new(format!("looking for the neighbour towards {peer}"), source, advice);
    let SocketAddr::V4(peer) = peer else {
        let source = io::ErrorKind::Unsupported.into();
        return Err(error(source, "frames carry IPv4 addresses; configure one"));
    };
    let mac = match config.neighbour {
        Neighbour::Static(mac) => mac,
        Neighbour::Kernel => interface::neighbour(&config.interface, local.address, *peer.ip()).map_err(|source| {
            let advice =
                "configure neighbour = the MAC of the peer, or of the router before it (`ip neigh` lists them)";
            error(source, advice)
        })?,
        Neighbour::Learnt => {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(error(source, "a connecting end names its neighbour"));
        }
    };
    let to = Endpoint {
        mac,
        address: *peer.ip(),
        port: peer.port(),
    };
    Ok(Route::new(local, to))
}
