//! Facts of a network interface, asked once at start-up, and the kernel's neighbour table.

use super::frame::{Checksums, Mac};
use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// Name of a network interface: 1 to 15 bytes without blanks and slashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterfaceName {
    bytes: [u8; libc::IFNAMSIZ],
    length: u8,
}

/// What the kernel tells of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interface {
    pub(super) index: u32,
    pub(super) mac: Mac,
    /// Longest IP packet, bytes.
    pub(super) mtu: usize,
    /// It is one end of a veth pair: there is no card and no wire.
    pub(super) is_veth: bool,
    /// Number of the network namespace, which interface numbers belong to.
    pub(super) namespace: u64,
}

impl InterfaceName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    /// A request of ioctl(2) about this interface.
    fn request(&self) -> libc::ifreq {
        // SAFETY: made of numbers and a null pointer, of which zeros are some.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.bytes) {
            *to = from.cast_signed();
        }
        request
    }
}

impl FromStr for InterfaceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |&byte: &u8| byte.is_ascii_graphic() && byte != b'/';
        // The kernel wants a 0 behind the name.
        if !(1..libc::IFNAMSIZ).contains(&text.len()) || !text.as_bytes().iter().all(is_plain) {
            return Err("an interface has a name of 1 to 15 characters, as `ip link` shows it");
        }
        let mut bytes = [0; libc::IFNAMSIZ];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).map_err(|_| "a name that long is no interface's")?;
        Ok(Self { bytes, length })
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Interface {
    /// Asks the kernel, in the network namespace of this thread.
    pub(super) fn find(name: &InterfaceName) -> io::Result<Self> {
        // Any socket will do: it stands for the namespace that it was made in.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let mut request = name.request();
        ioctl(&socket, libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has filled this member in.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        ioctl(&socket, libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: as above.
        let hardware = unsafe { request.ifr_ifru.ifru_hwaddr };
        if hardware.sa_family != libc::ARPHRD_ETHER {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it is no Ethernet interface",
            ));
        }
        ioctl(&socket, libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: as above.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        let [a, b, c, d, e, g, ..] = hardware.sa_data.map(libc::c_char::cast_unsigned);
        Ok(Self {
            index: u32::try_from(index).map_err(io::Error::other)?,
            mac: Mac([a, b, c, d, e, g]),
            mtu: usize::try_from(mtu).map_err(io::Error::other)?,
            is_veth: is_veth(&socket, name),
            namespace: namespace(&socket)?,
        })
    }

    /// The first IPv4 address of an interface.
    pub(super) fn address(name: &InterfaceName) -> io::Result<Ipv4Addr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let mut request = name.request();
        ioctl(&socket, libc::SIOCGIFADDR, &mut request)?;
        // SAFETY: the kernel has filled this member in, as an address of IPv4: port, then address.
        let data = unsafe { request.ifr_ifru.ifru_addr }.sa_data;
        let [_, _, a, b, c, d, ..] = data.map(libc::c_char::cast_unsigned);
        Ok(Ipv4Addr::new(a, b, c, d))
    }

    /// Which UDP checksums may come in on it.
    pub(super) const fn checksums(&self) -> Checksums {
        if self.is_veth {
            Checksums::OrPartial
        } else {
            Checksums::Complete
        }
    }
}

/// The neighbour's MAC in the kernel's table. An address that is not in it is asked for by a datagram to its discard port
/// (RFC 863), before which the kernel asks for the MAC.
pub(super) fn neighbour(name: &InterfaceName, local: Ipv4Addr, address: Ipv4Addr) -> io::Result<Mac> {
    if let Some(mac) = table_entry(&neighbour_table()?, name.as_str(), address) {
        return Ok(mac);
    }
    let socket = UdpSocket::bind((local, 0))?;
    socket.send_to(&[], (address, DISCARD_PORT))?;
    let start = Instant::now();
    while start.elapsed() < NEIGHBOUR_WAIT {
        if let Some(mac) = table_entry(&neighbour_table()?, name.as_str(), address) {
            return Ok(mac);
        }
        thread::sleep(NEIGHBOUR_POLL);
    }
    Err(io::Error::new(io::ErrorKind::HostUnreachable, "it does not answer ARP"))
}

/// Of this thread's namespace; `/proc/net` would be the first thread's.
fn neighbour_table() -> io::Result<String> {
    fs::read_to_string("/proc/thread-self/net/arp")
}

/// Finds a complete entry. Columns: address, type of hardware, flags, MAC, mask, interface.
fn table_entry(table: &str, interface: &str, address: Ipv4Addr) -> Option<Mac> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace();
        let is_address = columns.next()?.parse() == Ok(address);
        let flags = columns.nth(1)?.strip_prefix("0x")?;
        let is_complete = u32::from_str_radix(flags, 16).ok()? & ENTRY_COMPLETE != 0;
        let mac = columns.next()?.parse().ok()?;
        let is_here = columns.nth(1)? == interface;
        (is_address && is_complete && is_here).then_some(mac)
    })
}

/// Whether it is one end of a veth pair. An interface that does not tell its driver is taken for a card.
fn is_veth(socket: &UdpSocket, name: &InterfaceName) -> bool {
    let mut info = DriverInfo {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        rest: [0; 160],
    };
    let mut request = name.request();
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    ioctl(socket, libc::SIOCETHTOOL, &mut request).is_ok() && info.driver.starts_with(b"veth\0")
}

fn ioctl(socket: &UdpSocket, command: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: each of the commands reads and writes one `ifreq`; for SIOCETHTOOL its pointer is to a structure that is
    // borrowed by `is_veth` until the call is over.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut *request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn namespace(socket: &UdpSocket) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut length = COOKIE_LENGTH;
    let value = (&raw mut cookie).cast();
    // SAFETY: the kernel writes at most `length` bytes to `cookie`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            value,
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(cookie)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

const _: () = assert!(size_of::<DriverInfo>() == 196);

/// `linux/ethtool.h`.
const ETHTOOL_GDRVINFO: u32 = 3;
/// `asm-generic/socket.h`.
const SO_NETNS_COOKIE: libc::c_int = 71;
/// Of a `u64`.
const COOKIE_LENGTH: libc::socklen_t = 8;
/// ATF_COM of `linux/if_arp.h`: the MAC is known.
const ENTRY_COMPLETE: u32 = 2;
const DISCARD_PORT: u16 = 9;
/// The kernel asks three times, a second apart.
const NEIGHBOUR_WAIT: Duration = Duration::from_secs(3);
const NEIGHBOUR_POLL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
IP address       HW type     Flags       HW address            Mask     Device
10.77.0.2        0x1         0x2         02:00:5e:10:00:01     *        eth1
10.77.0.3        0x1         0x0         00:00:00:00:00:00     *        eth1
10.77.0.4        0x1         0x6         02:00:5e:10:00:04     *        eth2
";

    #[test]
    fn a_neighbour_is_found_when_its_address_is_known_on_this_interface() {
        let find = |interface, last| table_entry(TABLE, interface, Ipv4Addr::new(10, 77, 0, last));
        assert_eq!(find("eth1", 2), Some("02:00:5e:10:00:01".parse().unwrap()));
        assert_eq!(find("eth1", 3), None, "it has not answered");
        assert_eq!(find("eth1", 4), None, "it is elsewhere");
        assert_eq!(find("eth2", 4), Some("02:00:5e:10:00:04".parse().unwrap()));
        assert_eq!(find("eth2", 9), None);
    }

    #[test]
    fn a_table_that_is_none_has_no_neighbours() {
        for table in ["", "IP address", "x\n10.77.0.2", "x\n10.77.0.2 0x1 two"] {
            assert_eq!(table_entry(table, "eth1", Ipv4Addr::new(10, 77, 0, 2)), None);
        }
    }

    #[test]
    fn names_are_those_of_interfaces() {
        let name: InterfaceName = "veth-of-15-byte".parse().unwrap();
        assert_eq!(name.to_string(), "veth-of-15-byte");
        for text in ["", "veth-of-16-bytes", "a b", "a/b", "straße"] {
            assert!(text.parse::<InterfaceName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_ethernet_interface_is_refused() {
        let loopback = Interface::find(&"lo".parse().unwrap()).unwrap_err();
        assert_eq!(loopback.kind(), io::ErrorKind::Unsupported);
        assert!(Interface::find(&"no-such-one".parse().unwrap()).is_err());
    }
}
