//! Addresses of this host for what needs two of them.

use std::io;
use std::net::{IpAddr, UdpSocket};

/// Two addresses of this host at which nobody speaks RoCEv2: it has one port, and each end an address of its own.
pub(crate) fn free_for_roce() -> io::Result<[IpAddr; 2]> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut first = None;
    for place in 1..=u8::MAX {
        // All of 127.0.0.0/8 is this host.
        let address = IpAddr::from([127, 47, 91, place]);
        match (UdpSocket::bind((address, proto::roce::wire::UDP_PORT)), first) {
            (Ok(_), None) => first = Some(address),
            (Ok(_), Some(first)) => return Ok([first, address]),
            (Err(error), _) => last = error,
        }
    }
    Err(last)
}
