//! Non-blocking UDP: an end with one peer, known or learnt, and an open socket for publishing, requests and multicast.

use crate::datagram::Datagram;
use crate::error::{SetupError, bind_advice, socket_advice};
use crate::options::{Readback, UdpOptions};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// An open UDP socket: sends to and receives from anybody.
#[derive(Debug)]
pub struct UdpSocket {
    socket: std::net::UdpSocket,
    options: UdpOptions,
    readback: Readback,
}

/// One end of a UDP conversation; a [`Datagram`].
#[derive(Debug)]
pub struct UdpPeer {
    socket: UdpSocket,
    peer: Peer,
    /// How often ICMP said that nobody listens at the peer's address.
    unreachable: u64,
}

/// Whom a [`UdpPeer`] talks to.
#[derive(Debug)]
enum Peer {
    /// The kernel's socket is connected: it filters by source and looks the route up once.
    Connected(SocketAddr),
    /// Learnt from a datagram that the protocol above approved. The kernel's socket stays unconnected, because a peer
    /// that restarts may come from another port and has to be heard.
    Learning {
        peer: Option<SocketAddr>,
        source: Option<SocketAddr>,
        line: Option<Line>,
    },
}

/// The learnt peer's own socket, on the same local address and connected: the kernel hands it the peer's datagrams, and
/// sends without looking the route up each time.
#[derive(Debug)]
struct Line {
    socket: std::net::UdpSocket,
    /// Looks that found nothing here since the open socket was last looked at.
    misses: u32,
}

/// While there is a line, the open socket is looked at once in so many looks: nobody is there but peers that restarted,
/// and they call for milliseconds.
const LOOKS_PER_OPEN_LOOK: u32 = 16;

impl UdpSocket {
    /// Opens a socket on a local address; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// The address is taken or not of this machine, or no socket can be had.
    pub fn bind(local: SocketAddr, options: &UdpOptions) -> Result<Self, SetupError> {
        Self::open(local, false, options)
    }

    /// Opens a socket that receives a multicast group on the interface with this address. Several processes may do so on
    /// one port.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), or the group cannot be joined.
    pub fn bind_multicast(
        group: Ipv4Addr,
        port: u16,
        interface: Ipv4Addr,
        options: &UdpOptions,
    ) -> Result<Self, SetupError> {
        // Bound to the group, not to any address: only the group's datagrams are heard.
        let socket = Self::open(SocketAddr::from((group, port)), true, options)?;
        socket.socket.join_multicast_v4(&group, &interface).map_err(|source| {
            let advice = "configure a group in 224.0.0.0/4 and the address of an interface that has multicast";
            SetupError::new(format!("joining {group} on {interface}"), source, advice)
        })?;
        Ok(socket)
    }

    fn open(local: SocketAddr, shared: bool, options: &UdpOptions) -> Result<Self, SetupError> {
        let doing = || format!("binding UDP {local}");
        let socket = Socket::new(
            Domain::for_address(local),
            Type::DGRAM.nonblocking(),
            Some(Protocol::UDP),
        )
        .map_err(|source| SetupError::new(doing(), io::Error::from(source.kind()), socket_advice(&source)))?;
        let bind = || -> io::Result<()> {
            if shared {
                socket.set_reuse_address(true)?;
            }
            socket.bind(&local.into())
        };
        bind().map_err(|source| {
            let advice = bind_advice(&source);
            SetupError::new(doing(), source, advice)
        })?;
        let readback = options.apply(socket.as_fd());
        Ok(Self {
            socket: socket.into(),
            options: *options,
            readback,
        })
    }

    /// Chooses the interface and reach of multicast sends: the interface's address, the hops (1 stays on the local
    /// network), and whether sockets of this machine hear them too.
    ///
    /// # Errors
    /// No interface has the address.
    pub fn send_multicast_on(&self, interface: Ipv4Addr, hops: u32, local_too: bool) -> Result<(), SetupError> {
        let socket = socket2::SockRef::from(&self.socket);
        socket
            .set_multicast_if_v4(&interface)
            .and_then(|()| socket.set_multicast_ttl_v4(hops))
            .and_then(|()| socket.set_multicast_loop_v4(local_too))
            .map_err(|source| {
                let advice = "configure the address of an interface of this machine (`ip addr` lists them)";
                SetupError::new(format!("sending multicast on {interface}"), source, advice)
            })
    }

    /// Sends one datagram. `false`: the socket's buffer is full and it was not taken. A peer that is not there, or a
    /// network that is down, loses the datagram as any network may.
    ///
    /// # Errors
    /// The socket itself is unusable, or the datagram is longer than UDP allows.
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<bool> {
        sent(self.socket.send_to(datagram, to))
    }

    /// Receives one datagram: its length and source, or `None` when there is none now. What does not fit is cut off.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        received(self.socket.recv_from(buffer))
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the kernel gave for each option.
    #[must_use]
    pub fn readback(&self) -> &Readback {
        &self.readback
    }
}

impl UdpPeer {
    /// An end with a known peer, from a given local address (`None`: any) so that the peer or a filter can know it.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`], or there is no route to the peer.
    pub fn connect(peer: SocketAddr, local: Option<SocketAddr>, options: &UdpOptions) -> Result<Self, SetupError> {
        let any = match peer.ip() {
            IpAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            IpAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        Self::with_peer(UdpSocket::bind(local.unwrap_or(any), options)?, peer)
    }

    /// An end that waits on a local address and learns its peer (see [`Datagram::accept_peer`]).
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub fn learn(local: SocketAddr, options: &UdpOptions) -> Result<Self, SetupError> {
        let socket = UdpSocket::bind(local, options)?;
        Ok(Self {
            socket,
            peer: Peer::Learning {
                peer: None,
                source: None,
                line: None,
            },
            unreachable: 0,
        })
    }

    /// Makes it an end with a known peer, on the address that it has: for two ends that tell each other where they are.
    ///
    /// # Errors
    /// There is no route to the peer.
    pub fn connected_to(self, peer: SocketAddr) -> Result<Self, SetupError> {
        Self::with_peer(self.socket, peer)
    }

    fn with_peer(socket: UdpSocket, peer: SocketAddr) -> Result<Self, SetupError> {
        socket.socket.connect(peer).map_err(|source| {
            let advice = "check the configured address and the routes (`ip route get`)";
            SetupError::new(format!("connecting UDP to {peer}"), source, advice)
        })?;
        Ok(Self {
            socket,
            peer: Peer::Connected(peer),
            unreachable: 0,
        })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the kernel gave for each option.
    #[must_use]
    pub fn readback(&self) -> &Readback {
        self.socket.readback()
    }
}

impl Datagram for UdpPeer {
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
        match &self.peer {
            Peer::Connected(_) => sent(counted(&mut self.unreachable, self.socket.socket.send(datagram))),
            Peer::Learning { line: Some(line), .. } => sent(counted(&mut self.unreachable, line.socket.send(datagram))),
            Peer::Learning { peer: Some(peer), .. } => self.socket.send_to(datagram, *peer),
            Peer::Learning { peer: None, .. } => Ok(false),
        }
    }

    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Peer::Learning { peer, source, line } = &mut self.peer else {
            return received(counted(&mut self.unreachable, self.socket.socket.recv(buffer)));
        };
        if let Some(line) = line {
            if let Some(length) = received(counted(&mut self.unreachable, line.socket.recv(buffer)))? {
                *source = *peer;
                return Ok(Some(length));
            }
            line.misses += 1;
            if line.misses < LOOKS_PER_OPEN_LOOK {
                return Ok(None);
            }
        }
        let found = self.socket.recv_from(buffer)?;
        match (found, line) {
            (Some((length, from)), _) => {
                *source = Some(from);
                Ok(Some(length))
            }
            (None, line) => {
                // Only an open socket that is empty may wait.
                line.iter_mut().for_each(|line| line.misses = 0);
                Ok(None)
            }
        }
    }

    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        match self.peer {
            Peer::Connected(_) => self.send(datagram),
            Peer::Learning {
                source: Some(source), ..
            } => self.socket.send_to(datagram, source),
            Peer::Learning { source: None, .. } => Ok(false),
        }
    }

    fn is_from_peer(&self) -> bool {
        match &self.peer {
            Peer::Connected(_) => true,
            Peer::Learning { peer, source, .. } => peer.is_some() && peer == source,
        }
    }

    fn accept_peer(&mut self) {
        if let Peer::Learning { peer, source, line } = &mut self.peer
            && (peer != source || line.is_none())
        {
            *peer = *source;
            // Without a line of its own the peer is served by the open socket.
            *line = peer.and_then(|peer| self.socket.connected_to(peer).ok());
        }
    }

    fn name(&self) -> &'static str {
        "UDP"
    }

    fn peer(&self) -> Option<SocketAddr> {
        match self.peer {
            Peer::Connected(peer) => Some(peer),
            Peer::Learning { peer, .. } => peer,
        }
    }

    fn source(&self) -> Option<SocketAddr> {
        match self.peer {
            Peer::Connected(peer) => Some(peer),
            Peer::Learning { source, .. } => source,
        }
    }

    fn unreachable(&self) -> u64 {
        self.unreachable
    }
}

impl UdpSocket {
    /// A second socket on this one's address, connected to a peer.
    fn connected_to(&self, peer: SocketAddr) -> io::Result<Line> {
        let local = self.socket.local_addr()?;
        let open = socket2::SockRef::from(&self.socket);
        let second = Socket::new(
            Domain::for_address(local),
            Type::DGRAM.nonblocking(),
            Some(Protocol::UDP),
        )?;
        // Both must allow it, and only now: another program that is started twice by mistake is to hear of it.
        open.set_reuse_address(true)?;
        let outcome = second
            .set_reuse_address(true)
            .and_then(|()| second.bind(&local.into()))
            .and_then(|()| second.connect(&peer.into()))
            .and_then(|()| second.set_reuse_address(false));
        open.set_reuse_address(false)?;
        outcome?;
        self.options.apply(second.as_fd());
        Ok(Line {
            socket: second.into(),
            // What came before the second socket was there is in the open one.
            misses: LOOKS_PER_OPEN_LOOK,
        })
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for UdpPeer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Counts where the peer's host says that nobody listens.
fn counted<T>(unreachable: &mut u64, result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result
        && error.raw_os_error() == Some(libc::ECONNREFUSED)
    {
        *unreachable += 1;
    }
    result
}

/// Sorts the outcomes of a send: taken (or lost on the way), not taken, unusable.
fn sent(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if is_loss(&error) => Ok(true),
        Err(error) if is_not_now(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sorts the outcomes of a receive: something, nothing, unusable.
fn received<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_loss(&error) || is_not_now(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What ICMP said about an earlier datagram, or a network that is down now: to a datagram protocol a loss.
fn is_loss(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENETDOWN | libc::EHOSTDOWN)
    )
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn localhost() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    /// Receives without a clock: loopback delivers in the sender's system call.
    fn recv<D: Datagram>(end: &mut D) -> Option<Vec<u8>> {
        let mut buffer = [0; 64];
        end.recv(&mut buffer).unwrap().map(|length| buffer[..length].to_vec())
    }

    fn pair() -> (UdpPeer, UdpPeer) {
        let learner = UdpPeer::learn(localhost(), &UdpOptions::default()).unwrap();
        let knower = UdpPeer::connect(learner.local_addr().unwrap(), None, &UdpOptions::default()).unwrap();
        (knower, learner)
    }

    #[test]
    fn nothing_to_receive_is_no_error() {
        let (mut knower, mut learner) = pair();
        assert_eq!((recv(&mut knower), recv(&mut learner)), (None, None));
    }

    #[test]
    fn a_learning_end_sends_only_once_the_peer_is_accepted() {
        let (mut knower, mut learner) = pair();
        assert!(!learner.send(b"early").unwrap());
        assert!(knower.send(b"hello").unwrap());
        assert_eq!(recv(&mut learner).unwrap(), b"hello");
        assert!(!learner.is_from_peer());
        learner.accept_peer();
        assert!(learner.is_from_peer());
        assert!(learner.send(b"welcome").unwrap());
        assert_eq!(recv(&mut knower).unwrap(), b"welcome");
    }

    #[test]
    fn a_stranger_is_told_from_the_peer_and_can_take_its_place() {
        let (mut first, mut learner) = pair();
        first.send(b"1").unwrap();
        recv(&mut learner).unwrap();
        learner.accept_peer();

        let local = learner.local_addr().unwrap();
        let mut second = UdpPeer::connect(local, None, &UdpOptions::default()).unwrap();
        second.send(b"2").unwrap();
        assert_eq!(recv(&mut learner).unwrap(), b"2");
        assert!(!learner.is_from_peer());
        learner.send(b"to the first").unwrap();
        assert_eq!(recv(&mut first).unwrap(), b"to the first");

        second.send(b"3").unwrap();
        recv(&mut learner).unwrap();
        learner.accept_peer();
        learner.send(b"to the second").unwrap();
        assert_eq!(recv(&mut second).unwrap(), b"to the second");
        assert_eq!(recv(&mut first), None);
    }

    #[test]
    fn an_accepted_peer_has_a_line_of_its_own_and_the_address_stays_taken() {
        let (mut knower, mut learner) = pair();
        for text in [&b"one"[..], b"two", b"three"] {
            knower.send(text).unwrap();
        }
        assert_eq!(recv(&mut learner).unwrap(), b"one");
        learner.accept_peer();
        // What came before the line was there is not lost.
        assert_eq!(recv(&mut learner).unwrap(), b"two");
        knower.send(b"four").unwrap();
        let rest = [recv(&mut learner).unwrap(), recv(&mut learner).unwrap()];
        assert_eq!(rest, [b"four".to_vec(), b"three".to_vec()]);
        assert!(learner.is_from_peer());
        let taken = UdpSocket::bind(learner.local_addr().unwrap(), &UdpOptions::default());
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // Somebody else is heard within some looks.
        let stranger = UdpSocket::bind(localhost(), &UdpOptions::default()).unwrap();
        stranger.send_to(b"hello", learner.local_addr().unwrap()).unwrap();
        let heard = (0..=LOOKS_PER_OPEN_LOOK).find_map(|_| recv(&mut learner));
        assert_eq!(heard.unwrap(), b"hello");
        assert!(!learner.is_from_peer());
    }

    #[test]
    fn a_reply_goes_to_whoever_asked_and_makes_nobody_the_peer() {
        let (mut knower, mut learner) = pair();
        knower.send(b"hello").unwrap();
        recv(&mut learner).unwrap();
        assert!(learner.reply(b"who are you?").unwrap());
        assert_eq!(recv(&mut knower).unwrap(), b"who are you?");
        assert!(!learner.is_from_peer());
        assert!(!learner.send(b"early").unwrap());
    }

    #[test]
    fn a_connected_end_does_not_hear_strangers() {
        let (mut knower, _learner) = pair();
        let stranger = UdpSocket::bind(localhost(), &UdpOptions::default()).unwrap();
        let port = knower.local_addr().unwrap().port();
        stranger
            .send_to(b"spoof", SocketAddr::from(([127, 0, 0, 1], port)))
            .unwrap();
        assert_eq!(recv(&mut knower), None);
    }

    #[test]
    fn a_peer_that_is_not_there_is_a_loss_and_no_error() {
        let (mut knower, learner) = pair();
        drop(learner);
        for _ in 0..3 {
            assert!(knower.send(b"anybody").unwrap());
            assert_eq!(recv(&mut knower), None);
        }
    }

    #[test]
    fn an_open_socket_answers_whoever_asks() {
        let publisher = UdpSocket::bind(localhost(), &UdpOptions::default()).unwrap();
        let address = publisher.local_addr().unwrap();
        let mut asker = UdpPeer::connect(address, None, &UdpOptions::default()).unwrap();
        asker.send(b"request").unwrap();
        let mut buffer = [0; 64];
        let (length, from) = publisher.recv_from(&mut buffer).unwrap().unwrap();
        assert!(publisher.send_to(&buffer[..length], from).unwrap());
        assert_eq!(recv(&mut asker).unwrap(), b"request");
    }

    #[test]
    fn a_multicast_group_on_loopback_reaches_two_receivers() {
        let group = Ipv4Addr::new(239, 255, 71, 1);
        let options = UdpOptions::default();
        let first = UdpSocket::bind_multicast(group, 0, Ipv4Addr::LOCALHOST, &options).unwrap();
        let port = first.local_addr().unwrap().port();
        let second = UdpSocket::bind_multicast(group, port, Ipv4Addr::LOCALHOST, &options).unwrap();
        let sender = UdpSocket::bind(localhost(), &options).unwrap();
        sender.send_multicast_on(Ipv4Addr::LOCALHOST, 0, true).unwrap();
        sender.send_to(b"tick", SocketAddr::from((group, port))).unwrap();
        let mut buffer = [0; 64];
        for receiver in [first, second] {
            let (length, _) = receiver.recv_from(&mut buffer).unwrap().unwrap();
            assert_eq!(&buffer[..length], b"tick");
        }
    }

    #[test]
    fn a_taken_address_is_an_error_that_says_what_to_do() {
        let first = UdpSocket::bind(localhost(), &UdpOptions::default()).unwrap();
        let address = first.local_addr().unwrap();
        let error = UdpSocket::bind(address, &UdpOptions::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let text = error.to_string();
        assert!(
            text.contains(&address.to_string()) && text.contains("stop the other process"),
            "{text}"
        );
    }

    #[test]
    fn a_buffer_size_is_read_back() {
        let options = UdpOptions {
            receive_buffer_bytes: Some(8192),
            ..UdpOptions::default()
        };
        let socket = UdpSocket::bind(localhost(), &options).unwrap();
        let row = socket.readback().row("receive_buffer_bytes").unwrap();
        assert_eq!(row.wanted, Some(8192));
        assert!(row.got.unwrap() >= 8192);
    }
}
