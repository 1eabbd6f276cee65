//! An ordinary UDP socket as a RoCEv2 port.
//!
//! The ICRC covers the IPv4 identification and the flags, so they have to be known: a socket that is not connected and
//! never fragments sends identification 0 and "do not fragment". IPv6 packets may come without a UDP checksum, as devices
//! send them, which the socket must be told. The marks of routers (ECN) come beside each packet.

use super::port::{Arrived, ECN_BITS};
use crate::error::{SetupError, bind_advice, socket_advice};
use proto::roce::Identification;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

/// A UDP socket on one address of this host. RoCEv2 has one port, so each end has an address of its own.
#[derive(Debug)]
pub(super) struct RoceSocket {
    socket: OwnedFd,
    is_v6: bool,
}

impl RoceSocket {
    /// Opens the socket. Its packets have this type of service or traffic class, and this priority in a VLAN's tag.
    ///
    /// # Errors
    /// The address is taken or not of this machine, no socket can be had, or the kernel refuses an option without which
    /// the ICRC cannot be right.
    pub(super) fn bind(local: SocketAddr, class: u8, priority: u8) -> Result<Self, SetupError> {
        let doing = || format!("binding RoCEv2 to UDP {local}");
        let socket = Socket::new(
            Domain::for_address(local),
            Type::DGRAM.nonblocking(),
            Some(Protocol::UDP),
        )
        .map_err(|source| SetupError::new(doing(), io::Error::from(source.kind()), socket_advice(&source)))?;
        socket.bind(&local.into()).map_err(|source| {
            let advice = bind_advice(&source);
            SetupError::new(doing(), source, advice)
        })?;
        let is_v6 = local.is_ipv6();
        let class = libc::c_int::from(class);
        let options: &[(libc::c_int, libc::c_int, libc::c_int)] = if is_v6 {
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
        let priority = (libc::SOL_SOCKET, libc::SO_PRIORITY, libc::c_int::from(priority));
        let priority = (priority.2 > 0).then_some(priority);
        for &(level, option, value) in options.iter().chain(&priority) {
            set(&socket, level, option, value).map_err(|source| {
                let advice = "use a kernel of 3.16 or later";
                SetupError::new(format!("setting option {option} of UDP {local}"), source, advice)
            })?;
        }
        Ok(Self {
            socket: socket.into(),
            is_v6,
        })
    }

    /// The address that it is bound to.
    #[cfg(test)]
    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        let address = socket2::SockRef::from(&self.socket).local_addr().ok()?;
        address.as_socket()
    }

    /// Sends one packet. `false`: the socket's buffer is full and it was not taken. What cannot be delivered is lost.
    ///
    /// # Errors
    /// The socket itself is unusable.
    pub(super) fn send_to(&self, packet: &[u8], to: SocketAddr) -> io::Result<bool> {
        match socket2::SockRef::from(&self.socket).send_to(packet, &to.into()) {
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
    pub(super) fn recv(&self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        let mut source = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut control = Control([0; CONTROL_LENGTH]);
        let mut part = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        // SAFETY: a header of zeros is a good one; its pointers are set below.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = source.as_mut_ptr().cast();
        header.msg_namelen = socklen::<libc::sockaddr_storage>();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_LENGTH;
        // SAFETY: the header points at memory that outlives the call, with its lengths.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                    Ok(None)
                }
                _ => Err(error),
            };
        };
        // SAFETY: zeroed, and then written by the kernel as the address of the socket's family.
        let from = unsafe { address(source.assume_init_ref(), self.is_v6) };
        Ok(Some(Arrived {
            length,
            from,
            // SAFETY: the kernel has filled in the header that points at `control`.
            is_marked: unsafe { class_of(&header) } & ECN_BITS == ECN_BITS,
            identification: Identification::Hidden,
        }))
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
/// `storage` holds an address of the given family.
unsafe fn address(storage: &libc::sockaddr_storage, is_v6: bool) -> SocketAddr {
    let at = &raw const *storage;
    if is_v6 {
        // SAFETY: as the caller says; a storage is large enough and aligned for either.
        let v6 = unsafe { &*at.cast::<libc::sockaddr_in6>() };
        let ip = v6.sin6_addr.s6_addr.into();
        SocketAddr::V6(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id))
    } else {
        // SAFETY: as above.
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
/// `linux/udp.h`: packets without a UDP checksum are taken on IPv6.
const UDP_NO_CHECK6_RX: libc::c_int = 102;

#[cfg(test)]
mod tests {
    use super::super::port::ECN_CAPABLE;
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn a_packet_comes_with_its_source_and_its_mark_on_either_family() {
        for ip in [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])] {
            let first = RoceSocket::bind(SocketAddr::new(ip, 0), 26, 0).unwrap();
            let second = RoceSocket::bind(SocketAddr::new(ip, 0), 26, 0).unwrap();
            let local = |socket: &RoceSocket| socket.local_addr().unwrap();
            let mut buffer = [0; 64];
            assert_eq!(second.recv(&mut buffer).unwrap(), None);
            for mark in [ECN_CAPABLE, ECN_BITS] {
                let (level, option) = match ip {
                    IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                    IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
                };
                set(
                    &Socket::from(first.socket.try_clone().unwrap()),
                    level,
                    option,
                    mark.into(),
                )
                .unwrap();
                assert!(first.send_to(b"packet", local(&second)).unwrap());
                let arrived = Arrived {
                    length: 6,
                    from: local(&first),
                    is_marked: mark == ECN_BITS,
                    identification: Identification::Hidden,
                };
                assert_eq!(second.recv(&mut buffer).unwrap(), Some(arrived));
            }
        }
    }
}
