//! What a network card is set to: the kernel's ethtool interface and netlink, read only.

mod statistics;
mod xdp;

pub use statistics::statistics;
pub use xdp::XdpMode;

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// Commands of `linux/ethtool.h` that read.
const GET_COALESCE: u32 = 0x0e;
const GET_RINGS: u32 = 0x10;
const GET_PAUSE: u32 = 0x12;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;
const GET_CHANNELS: u32 = 0x3c;
const GET_TIMESTAMPING: u32 = 0x41;

/// SIOCETHTOOL of `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// In the flags: large receive offload.
const FLAG_LRO: u32 = 1 << 15;

/// In the timestamping modes: stamps of the card on receive (SOF_TIMESTAMPING_RX_HARDWARE).
const RX_HARDWARE: u32 = 1 << 2;

/// What a card is set to. `None`: the driver does not say.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NicSettings {
    /// Longest wait before an interrupt on receive, µs.
    pub rx_usecs: Option<u32>,
    /// The card changes that wait by itself.
    pub adaptive_rx: Option<bool>,
    /// Frames in the receive ring, and how many there could be.
    pub rx_ring: Option<(u32, u32)>,
    /// The card asks its peer to pause, or obeys.
    pub pause: Option<bool>,
    /// Generic receive offload.
    pub gro: Option<bool>,
    /// Large receive offload.
    pub lro: Option<bool>,
    /// Receive queues, between which flows are spread.
    pub rx_queues: Option<u32>,
    /// The card stamps what it receives.
    pub hardware_stamps: Option<bool>,
    /// Where an XDP program sits.
    pub xdp: Option<XdpMode>,
}

/// Asks the driver of an interface.
///
/// # Errors
/// No socket can be had to ask through.
pub fn settings(interface: &str) -> io::Result<NicSettings> {
    // Any socket will do: it stands for the network namespace.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let coalesce = ask::<23>(&socket, interface, GET_COALESCE).ok();
    let timestamping = ask::<11>(&socket, interface, GET_TIMESTAMPING).ok();
    Ok(NicSettings {
        rx_usecs: coalesce.map(|words| words[1]),
        adaptive_rx: coalesce.map(|words| words[10] != 0),
        rx_ring: ask::<9>(&socket, interface, GET_RINGS)
            .ok()
            .map(|words| (words[5], words[1])),
        pause: ask::<4>(&socket, interface, GET_PAUSE)
            .ok()
            .map(|words| words[2] != 0 || words[3] != 0),
        gro: ask::<2>(&socket, interface, GET_GRO).ok().map(|words| words[1] != 0),
        lro: ask::<2>(&socket, interface, GET_FLAGS)
            .ok()
            .map(|words| words[1] & FLAG_LRO != 0),
        // Those of their own, and those that send too.
        rx_queues: ask::<9>(&socket, interface, GET_CHANNELS)
            .ok()
            .map(|words| words[5] + words[8]),
        hardware_stamps: timestamping.map(|words| words[1] & RX_HARDWARE != 0),
        xdp: xdp::mode(interface).ok(),
    })
}

/// One command: its number comes first in a struct of 32-bit words, which the kernel fills in.
fn ask<const WORDS: usize>(socket: &UdpSocket, interface: &str, number: u32) -> io::Result<[u32; WORDS]> {
    let mut words = [0_u32; WORDS];
    words[0] = number;
    command(socket, interface, &mut words)?;
    Ok(words)
}

/// One command in a struct of 32-bit words, of which the kernel writes what the command has: the caller gives at least so many.
fn command(socket: &UdpSocket, interface: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: made of numbers and a null pointer, of which zeros are some.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The kernel wants a 0 behind the name.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the kernel reads `request` and writes the command's struct, which `words` has room for.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_what_it_can_and_has_no_card() {
        let settings = settings("lo").unwrap();
        assert_eq!((settings.rx_ring, settings.rx_usecs), (None, None));
        assert_eq!(settings.xdp, Some(XdpMode::None));
    }

    #[test]
    fn an_interface_that_is_not_there_says_nothing() {
        for name in ["nosuchcard", "a-name-that-is-longer-than-a-name"] {
            assert_eq!(settings(name).unwrap(), NicSettings::default());
        }
    }
}
