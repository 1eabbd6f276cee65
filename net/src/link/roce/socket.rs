//! Ordinary UDP sockets as a RoCEv2 port.
//!
//! The ICRC covers the IPv4 identification and the flags, so they have to be known: a socket that is not connected and
//! never fragments sends identification 0 and "do not fragment". IPv6 packets may come without a UDP checksum, as devices
//! send them, which the socket must be told.
//!
//! The kernel is faster with a connected socket, whose packets and route it need not look for. So where the peer's packets
//! come from is learnt, and a second socket on the same address is connected to it, the peer's *line*. It receives, and
//! sends where there is no identification (IPv6).

use super::port::{Arrived, ECN_BITS};
use crate::error::{SetupError, bind_advice, socket_advice};
use proto::roce::Identification;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

/// UDP on one address of this host, to one peer. RoCEv2 has one port, so each end has an address of its own.
#[derive(Debug)]
pub(super) struct RoceSocket {
    /// Hears whoever sends.
    open: Socket,
    local: SocketAddr,
    peer: SocketAddr,
    to: SockAddr,
    header: Header,
    line: Option<Line>,
    marks: Marks,
}

/// What the IP headers of its packets say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Type of service or traffic class.
    pub(super) class: u8,
    /// Priority in a VLAN's tag.
    pub(super) priority: u8,
}

/// The socket that is connected to where the peer's packets come from.
#[derive(Debug)]
struct Line {
    socket: Socket,
    from: SocketAddr,
    /// Looks that found nothing here since the open socket was last looked at.
    misses: u32,
}

/// Which packets are asked whether a router has marked them (ECN). To ask takes a tenth of a packet's way. Those that follow
/// another without a pause are all asked, and of those that come alone some: a lone packet may meet congestion, but makes
/// none.
#[derive(Debug, Default)]
struct Marks {
    /// The last look found a packet.
    is_busy: bool,
    /// Lone packets since one was asked.
    unasked: u32,
}

impl RoceSocket {
    /// Opens the sockets of an end whose peer is there.
    ///
    /// # Errors
    /// The address is taken or not of this machine, no socket can be had, or the kernel refuses an option without which
    /// the ICRC cannot be right.
    pub(super) fn bind(local: SocketAddr, peer: SocketAddr, header: Header) -> Result<Self, SetupError> {
        let doing = || format!("binding RoCEv2 to UDP {local}");
        let open = socket(local)
            .map_err(|source| SetupError::new(doing(), io::Error::from(source.kind()), socket_advice(&source)))?;
        open.bind(&local.into()).map_err(|source| {
            let advice = bind_advice(&source);
            SetupError::new(doing(), source, advice)
        })?;
        header.apply(&open, local).map_err(|source| {
            let advice = "use a kernel of 3.16 or later";
            SetupError::new(format!("setting options of UDP {local}"), source, advice)
        })?;
        Ok(Self {
            open,
            local,
            peer,
            to: peer.into(),
            header,
            line: None,
            marks: Marks::default(),
        })
    }

    /// The address that it is bound to.
    #[cfg(test)]
    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        self.open.local_addr().ok()?.as_socket()
    }

    /// Sends one packet. `false`: the socket's buffer is full and it was not taken. What cannot be delivered is lost.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<bool> {
        let outcome = match &self.line {
            Some(line) if self.local.is_ipv6() && line.from == self.peer => line.socket.send(packet),
            _ => self.open.send_to(packet, &self.to),
        };
        match outcome {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => Ok(false),
                Some(
                    libc::ECONNREFUSED
                    | libc::EHOSTUNREACH
                    | libc::ENETUNREACH
                    | libc::ENETDOWN
                    | libc::EHOSTDOWN
                    | libc::EMSGSIZE,
                ) => Ok(true),
                _ => Err(error),
            },
        }
    }

    /// Receives one packet, if there is one. What does not fit is cut off, and its ICRC wrong.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub(super) fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        let Some(line) = &mut self.line else {
            return receive(&self.open, None, true, buffer);
        };
        // Before the line has its first look, what came when it was not there is taken.
        if line.misses < LOOKS_PER_OPEN_LOOK {
            let arrived = receive(&line.socket, Some(line.from), self.marks.asks(), buffer)?;
            self.marks.on_look(arrived.is_some());
            line.misses += u32::from(arrived.is_none());
            return Ok(arrived);
        }
        let arrived = receive(&self.open, None, true, buffer)?;
        if arrived.is_none() {
            line.misses = 0;
        }
        Ok(arrived)
    }

    /// A good packet of the peer came from this address: others will.
    pub(super) fn on_heard(&mut self, from: SocketAddr) {
        if self.line.as_ref().is_none_or(|line| line.from != from) {
            // The old one has the address. Without a line the peer is served by the open socket.
            self.line = None;
            self.line = self.line_to(from).ok();
        }
    }

    /// A second socket on this address.
    fn line_to(&self, from: SocketAddr) -> io::Result<Line> {
        let second = socket(self.local)?;
        // Both must allow it, and only now: another program that is started twice by mistake is to hear of it.
        self.open.set_reuse_address(true)?;
        let outcome = second
            .set_reuse_address(true)
            .and_then(|()| second.bind(&self.open.local_addr()?))
            .and_then(|()| second.connect(&from.into()))
            .and_then(|()| second.set_reuse_address(false));
        self.open.set_reuse_address(false)?;
        outcome?;
        self.header.apply(&second, self.local)?;
        Ok(Line {
            socket: second,
            from,
            misses: LOOKS_PER_OPEN_LOOK,
        })
    }
}

impl Header {
    /// Sets what a socket's packets carry, and what is to be known of those that come.
    fn apply(self, socket: &Socket, local: SocketAddr) -> io::Result<()> {
        let class = libc::c_int::from(self.class);
        let options: &[(libc::c_int, libc::c_int, libc::c_int)] = if local.is_ipv6() {
            &[
                (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
                (libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, 1),
            ]
        } else {
            &[
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
                (libc::IPPROTO_IP, libc::IP_TOS, class),
                (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
            ]
        };
        // Behind the type of service, which sets one too.
        let priority = (libc::SOL_SOCKET, libc::SO_PRIORITY, libc::c_int::from(self.priority));
        let priority = (self.priority > 0).then_some(priority);
        options
            .iter()
            .chain(&priority)
            .try_for_each(|&(level, option, value)| set(socket, level, option, value))
    }
}

impl Marks {
    /// Whether the next packet is asked.
    const fn asks(&self) -> bool {
        self.is_busy || self.unasked + 1 >= LONE_PER_MARK
    }

    const fn on_look(&mut self, has_found: bool) {
        if has_found {
            self.unasked = if self.asks() { 0 } else { self.unasked + 1 };
        }
        self.is_busy = has_found;
    }
}

fn socket(local: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(local),
        Type::DGRAM.nonblocking(),
        Some(Protocol::UDP),
    )
}

/// Receives one packet: from `from`, where the socket is connected. Only where it is asked is the mark known.
fn receive(
    socket: &Socket,
    from: Option<SocketAddr>,
    asks_mark: bool,
    buffer: &mut [u8],
) -> io::Result<Option<Arrived>> {
    if let Some(from) = from
        && !asks_mark
    {
        // SAFETY: the kernel writes at most as many bytes as the buffer has.
        let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        return Ok(received(length)?.map(|length| Arrived {
            length,
            from,
            is_marked: false,
            identification: Identification::Hidden,
        }));
    }
    let mut source = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut control = Control([0; CONTROL_LENGTH]);
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a header of zeros is a good one; its pointers are set below.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    if from.is_none() {
        header.msg_name = source.as_mut_ptr().cast();
        header.msg_namelen = socklen::<libc::sockaddr_storage>();
    }
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_LENGTH;
    // SAFETY: the header points at memory that outlives the call, with its lengths.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let Some(length) = received(length)? else {
        return Ok(None);
    };
    Ok(Some(Arrived {
        length,
        // SAFETY: zeroed, and then written by the kernel as an address of the socket's family.
        from: from.unwrap_or_else(|| unsafe { address(source.assume_init_ref()) }),
        // SAFETY: the kernel has filled in the header that points at `control`.
        is_marked: unsafe { class_of(&header) } & ECN_BITS == ECN_BITS,
        identification: Identification::Hidden,
    }))
}

/// Sorts what a receive gave: a length, nothing, unusable.
fn received(length: isize) -> io::Result<Option<usize>> {
    if let Ok(length) = usize::try_from(length) {
        return Ok(Some(length));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => Ok(None),
        _ => Err(error),
    }
}

fn set(socket: &Socket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the value is an int that outlives the call, and its length is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            socklen::<libc::c_int>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The source of a packet.
///
/// # Safety
/// `storage` holds an address of IPv4 or IPv6.
unsafe fn address(storage: &libc::sockaddr_storage) -> SocketAddr {
    let at = &raw const *storage;
    if libc::c_int::from(storage.ss_family) == libc::AF_INET6 {
        // SAFETY: it is one; a storage is large enough and aligned for either.
        let v6 = unsafe { &*at.cast::<libc::sockaddr_in6>() };
        let ip = v6.sin6_addr.s6_addr.into();
        SocketAddr::V6(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id))
    } else {
        // SAFETY: as the caller says, then.
        let v4 = unsafe { &*at.cast::<libc::sockaddr_in>() };
        let ip = u32::from_be(v4.sin_addr.s_addr).into();
        SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)))
    }
}

/// The type of service or traffic class that came beside a packet; 0 where none did.
///
/// # Safety
/// The kernel has filled in `header`, and its control buffer is still there.
unsafe fn class_of(header: &libc::msghdr) -> u8 {
    // SAFETY: as the caller says.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: the macros give headers inside the control buffer, or null.
        let (level, kind) = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
        let is_class = (level, kind) == (libc::IPPROTO_IP, libc::IP_TOS)
            || (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_TCLASS);
        if is_class {
            // SAFETY: a byte of data follows at least; of the int that IPv6 has, the first is the low one here.
            return unsafe { libc::CMSG_DATA(message).read() };
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    0
}

#[allow(clippy::cast_possible_truncation, reason = "sizes of C structs")]
const fn socklen<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

/// As the kernel wants it aligned.
#[repr(align(8))]
struct Control([u8; CONTROL_LENGTH]);

/// Room for the class beside a packet.
const CONTROL_LENGTH: usize = 64;
/// While there is a line, the open socket is looked at once in so many looks: strangers alone are heard there, and a device
/// that begins anew from another port.
const LOOKS_PER_OPEN_LOOK: u32 = 16;
/// Of the packets that come alone one in so many is asked for its mark.
const LONE_PER_MARK: u32 = 8;
/// `linux/udp.h`: packets without a UDP checksum are taken on IPv6.
const UDP_NO_CHECK6_RX: libc::c_int = 102;

#[cfg(test)]
mod tests {
    use super::super::port::ECN_CAPABLE;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

    /// Two ends whose packets carry this class.
    fn pair(ip: IpAddr, class: u8) -> [RoceSocket; 2] {
        let bind = |peer| RoceSocket::bind(SocketAddr::new(ip, 0), peer, Header { class, priority: 0 }).unwrap();
        let mut first = bind(SocketAddr::new(ip, 1));
        let second = bind(local(&first));
        (first.peer, first.to) = (local(&second), local(&second).into());
        [first, second]
    }

    fn local(socket: &RoceSocket) -> SocketAddr {
        socket.local_addr().unwrap()
    }

    /// Receives without a clock: loopback delivers in the sender's system call.
    fn recv(socket: &mut RoceSocket) -> Option<(Vec<u8>, Arrived)> {
        let mut buffer = [0; 64];
        let arrived = socket.recv(&mut buffer).unwrap()?;
        Some((buffer[..arrived.length].to_vec(), arrived))
    }

    #[test]
    fn a_packet_comes_with_its_source_and_its_mark_on_either_family() {
        for ip in LOOPBACKS {
            for class in [ECN_CAPABLE, ECN_BITS] {
                let [first, mut second] = pair(ip, class);
                assert_eq!(recv(&mut second), None);
                assert!(first.send(b"packet").unwrap());
                let arrived = Arrived {
                    length: 6,
                    from: local(&first),
                    is_marked: class == ECN_BITS,
                    identification: Identification::Hidden,
                };
                assert_eq!(recv(&mut second), Some((b"packet".to_vec(), arrived)));
            }
        }
    }

    #[test]
    fn a_peer_that_was_heard_has_a_line_behind_what_came_before_it_and_the_address_stays_taken() {
        for ip in LOOPBACKS {
            let [mut first, mut second] = pair(ip, ECN_CAPABLE);
            for packet in [b"one", b"two"] {
                assert!(first.send(packet).unwrap());
            }
            assert_eq!(recv(&mut second).unwrap().0, b"one");
            second.on_heard(local(&first));
            first.on_heard(local(&second));
            assert!(first.send(b"three").unwrap());
            let came: Vec<_> = (0..3)
                .map(|_| recv(&mut second).map(|(packet, arrived)| (packet, arrived.from)))
                .collect();
            let from = |packet: &[u8]| Some((packet.to_vec(), local(&first)));
            assert_eq!(came, [from(b"two"), None, from(b"three")]);
            let line = second.line.as_ref().unwrap().socket.as_raw_fd();
            second.on_heard(local(&first));
            assert_eq!(second.line.as_ref().unwrap().socket.as_raw_fd(), line);
            let taken = RoceSocket::bind(local(&second), local(&first), first.header);
            assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
    }

    #[test]
    fn a_device_that_begins_anew_from_another_port_is_heard_and_has_the_line() {
        let [first, mut second] = pair(LOOPBACKS[0], ECN_CAPABLE);
        second.on_heard(local(&first));
        let anew = RoceSocket::bind(SocketAddr::new(LOOPBACKS[0], 0), local(&second), first.header).unwrap();
        while recv(&mut second).is_some() || second.line.as_ref().unwrap().misses > 0 {}
        assert!(anew.send(b"anew").unwrap());
        let (packet, arrived) = (0..=LOOKS_PER_OPEN_LOOK).find_map(|_| recv(&mut second)).unwrap();
        assert_eq!((&packet[..], arrived.from), (&b"anew"[..], local(&anew)));
        second.on_heard(arrived.from);
        assert_eq!(second.line.as_ref().unwrap().from, local(&anew));
        // What it hears goes where packets for the peer go, and not back to that port.
        assert!(second.send(b"answer").unwrap());
        let mut first = first;
        assert_eq!(recv(&mut first).unwrap().0, b"answer");
    }

    #[test]
    fn packets_in_a_row_are_asked_for_their_marks_and_of_lone_ones_some() {
        let [first, mut second] = pair(LOOPBACKS[0], ECN_BITS);
        second.on_heard(local(&first));
        assert_eq!(recv(&mut second), None);
        let mut lone = 0;
        for _ in 0..3 * LONE_PER_MARK {
            assert!(first.send(b"lone").unwrap());
            lone += u32::from(recv(&mut second).unwrap().1.is_marked);
            assert_eq!(recv(&mut second), None);
            second.line.as_mut().unwrap().misses = 0;
        }
        assert_eq!(lone, 3);
        for _ in 0..4 {
            assert!(first.send(b"busy").unwrap());
        }
        let marked = (0..4).filter(|_| recv(&mut second).unwrap().1.is_marked).count();
        assert_eq!(marked, 3, "all but the first");
    }
}
