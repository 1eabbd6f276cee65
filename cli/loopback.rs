//! Addresses of this host for what needs two of them.

use std::io;
use std::net::{IpAddr, UdpSocket};

/// Two addresses of this host at which nobody speaks RoCEv2: it has one port, and each end an address of its own. No other
/// process looks at the same ones, or it might take them between the look and the use.
pub(crate) fn free_for_roce() -> io::Result<[IpAddr; 2]> {
    let [.., middle, low] = std::process::id().to_be_bytes();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut first = None;
    // All of 127.0.0.0/8 is this host; what others use of it is mostly 127.0.
    for place in 1..u8::MAX {
        let address = IpAddr::from([127, place, middle, low]);
        match (UdpSocket::bind((address, proto::roce::wire::UDP_PORT)), first) {
            (Ok(_), None) => first = Some(address),
            (Ok(_), Some(first)) => return Ok([first, address]),
            (Err(error), _) => last = error,
        }
    }
    Err(last)
}
