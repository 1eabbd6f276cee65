//! Which XDP program an interface has: one question to the kernel over netlink (RTM_GETLINK, `linux/rtnetlink.h`).

use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

/// Where an XDP program sits (IFLA_XDP_ATTACHED).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XdpMode {
    /// There is none.
    None,
    /// In the driver.
    Native,
    /// Behind the driver, when the kernel has already made its packet.
    Generic,
    /// In the card.
    Offloaded,
    /// In several of these places.
    Several,
}

/// Asks for the program of an interface.
///
/// # Errors
/// There is no such interface, or the kernel does not say.
pub(super) fn mode(interface: &str) -> io::Result<XdpMode> {
    let socket = Socket::new(
        Domain::from(libc::AF_NETLINK),
        Type::RAW,
        Some(Protocol::from(libc::NETLINK_ROUTE)),
    )?;
    // The kernel answers within the send.
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.send(&request(interface)?)?;
    let mut answer = [0; ANSWER_MAX];
    let length = (&socket).read(&mut answer)?;
    parse(&answer[..length])
}

/// A request for the interface of this name.
fn request(interface: &str) -> io::Result<Vec<u8>> {
    let name_length = u16::try_from(ATTRIBUTE_HEADER + interface.len() + 1).ok();
    let name_length = name_length.filter(|_| interface.len() < libc::IFNAMSIZ);
    let name_length = name_length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut message = vec![0; BODY + INTERFACE_INFO];
    message.extend(name_length.to_ne_bytes());
    message.extend(libc::IFLA_IFNAME.to_ne_bytes());
    message.extend(interface.bytes());
    message.push(0);
    message.resize(message.len().next_multiple_of(ALIGNMENT), 0);
    let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    Ok(message)
}

/// The mode in an answer.
fn parse(answer: &[u8]) -> io::Result<XdpMode> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let body = answer.get(BODY..).ok_or_else(malformed)?;
    match u16::from_ne_bytes([answer[4], answer[5]]) {
        libc::RTM_NEWLINK => {}
        NLMSG_ERROR => {
            let code = body.first_chunk().map(|&code| i32::from_ne_bytes(code));
            return Err(code.map_or_else(malformed, |code| io::Error::from_raw_os_error(code.wrapping_neg())));
        }
        _ => return Err(malformed()),
    }
    let attributes = body.get(INTERFACE_INFO..).ok_or_else(malformed)?;
    let Some(xdp) = find(attributes, IFLA_XDP) else {
        return Ok(XdpMode::None);
    };
    match find(xdp, IFLA_XDP_ATTACHED) {
        Some([0]) => Ok(XdpMode::None),
        Some([1]) => Ok(XdpMode::Native),
        Some([2]) => Ok(XdpMode::Generic),
        Some([3]) => Ok(XdpMode::Offloaded),
        Some([4]) => Ok(XdpMode::Several),
        _ => Err(malformed()),
    }
}

/// The content of the first attribute of a kind.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while let Some(&[length_low, length_high, kind_low, kind_high]) = attributes.first_chunk() {
        let length = usize::from(u16::from_ne_bytes([length_low, length_high]));
        let content = attributes.get(ATTRIBUTE_HEADER..length)?;
        if u16::from_ne_bytes([kind_low, kind_high]) & KIND_MASK == kind {
            return Some(content);
        }
        attributes = attributes.get(length.next_multiple_of(ALIGNMENT)..)?;
    }
    None
}

/// Longer than any description of one interface.
const ANSWER_MAX: usize = 32 << 10;
/// Bytes of `struct nlmsghdr`.
const BODY: usize = 16;
/// Bytes of `struct ifinfomsg`.
const INTERFACE_INFO: usize = 16;
/// Bytes of `struct rtattr`.
const ATTRIBUTE_HEADER: usize = 4;
/// Of messages and attributes.
const ALIGNMENT: usize = 4;
/// Without the bits that say how the content is to be read.
const KIND_MASK: u16 = 0x3fff;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
/// `linux/if_link.h`.
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Native => "native",
            Self::Generic => "generic",
            Self::Offloaded => "offloaded",
            Self::Several => "several",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these attributes.
    fn answer(kind: u16, attributes: &[u8]) -> Vec<u8> {
        let mut message = vec![0; BODY + INTERFACE_INFO];
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.extend(attributes);
        message
    }

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(ATTRIBUTE_HEADER + content.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn loopback_has_no_program_and_who_is_not_there_is_an_error() {
        assert_eq!(mode("lo").unwrap(), XdpMode::None);
        assert_eq!(mode("nosuchcard").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        let long = mode("a-name-that-is-longer-than-a-name").unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_mode_stands_within_an_attribute_among_others() {
        for (code, wanted) in [
            (0, XdpMode::None),
            (1, XdpMode::Native),
            (2, XdpMode::Generic),
            (3, XdpMode::Offloaded),
        ] {
            let nested = [attribute(1, &[9; 4]), attribute(IFLA_XDP_ATTACHED, &[code])].concat();
            let all = [attribute(3, b"eth0\0"), attribute(IFLA_XDP | 0x8000, &nested)].concat();
            assert_eq!(parse(&answer(libc::RTM_NEWLINK, &all)).unwrap(), wanted);
        }
        assert_eq!(parse(&answer(libc::RTM_NEWLINK, &[])).unwrap(), XdpMode::None);
    }

    #[test]
    fn an_answer_that_is_none_is_an_error() {
        let wrong = attribute(IFLA_XDP, &attribute(IFLA_XDP_ATTACHED, &[77]));
        let mut short = attribute(IFLA_XDP, &[1, 2, 3]);
        short[0] = 1;
        for bytes in [vec![], vec![0; 15], answer(7, &[]), answer(libc::RTM_NEWLINK, &wrong)] {
            assert_eq!(parse(&bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        // One whose length is less than its own head ends the search.
        assert_eq!(parse(&answer(libc::RTM_NEWLINK, &short)).unwrap(), XdpMode::None);
    }
}
