//! The floor: what a round trip costs on this machine when nothing but two spinning threads and the kernel takes part.
//!
//! A latency means something only beside the floor measured in the same run, because one machine has fast and slow
//! hours. So these are functions that a run calls, and not numbers in a document.

use crate::measure::{self, BareDatagrams, BareTcp, Echo, End, Idle, Length, Pace, Part, Placement, RoundTrips};
use crate::options::{TcpOptions, UdpOptions};
use crate::tcp::{TcpListener, TcpStream};
use crate::udp::UdpPeer;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;
use types::{Duration, Timestamp};

/// Bytes of each message: about those of an order.
pub const MESSAGE_LENGTH: usize = 64;

/// Round trips of 64 bytes over loopback TCP without Nagle: nanoseconds each, in the order they were made. One thread
/// spins on each CPU; where both are one, both ends take turns in one thread. The caller's thread only waits.
///
/// # Errors
/// A CPU is not permitted, or loopback fails.
pub fn tcp_round_trip(cpu_a: usize, cpu_b: usize, count: usize) -> io::Result<Vec<u64>> {
    let options = TcpOptions {
        no_delay: true,
        ..TcpOptions::default()
    };
    let (near, far) = tcp_pair(&options)?;
    round_trips(BareTcp::new(near), BareTcp::new(far), cpu_a, cpu_b, count)
}

/// Round trips of 64 bytes over loopback UDP, as [`tcp_round_trip`].
///
/// # Errors
/// A CPU is not permitted, or loopback fails.
pub fn udp_round_trip(cpu_a: usize, cpu_b: usize, count: usize) -> io::Result<Vec<u64>> {
    let (near, far) = udp_pair(&UdpOptions::default())?;
    round_trips(BareDatagrams::new(near), BareDatagrams::new(far), cpu_a, cpu_b, count)
}

/// The two ends of a connection over loopback.
pub(crate) fn tcp_pair(options: &TcpOptions) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(localhost(), options)?;
    let near = TcpStream::connect(listener.local_addr()?, options, Duration::from_secs(5))?;
    loop {
        if let Some((far, _)) = listener.accept()? {
            return Ok((near, far));
        }
    }
}

/// Two sockets on loopback that are connected to each other.
pub(crate) fn udp_pair(options: &UdpOptions) -> io::Result<(UdpPeer, UdpPeer)> {
    let near = UdpPeer::learn(localhost(), options)?;
    let far = UdpPeer::learn(localhost(), options)?;
    let (near_address, far_address) = (near.local_addr()?, far.local_addr()?);
    Ok((near.connected_to(far_address)?, far.connected_to(near_address)?))
}

fn round_trips<E: End + Send>(near: E, far: E, cpu_a: usize, cpu_b: usize, count: usize) -> io::Result<Vec<u64>> {
    let start = Instant::now();
    let clock = || Timestamp(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let placement = if cpu_a == cpu_b {
        Placement::One(cpu_a)
    } else {
        Placement::Two(cpu_a, cpu_b)
    };
    let mut samples = Vec::with_capacity(count);
    let record = |took: Duration| samples.push(took.0);
    let length = Length::Trips(count as u64);
    let near = Part {
        make: || {
            Ok(RoundTrips::new(
                near,
                clock,
                MESSAGE_LENGTH,
                Pace::PingPong,
                length,
                record,
            ))
        },
        read: drop,
    };
    let far = Part {
        make: || Ok(Echo::new(far, clock, MESSAGE_LENGTH)),
        read: drop,
    };
    measure::both(near, far, placement, Idle::Spin, || false)?;
    Ok(samples)
}

fn localhost() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;

    /// Two CPUs, or one twice where there is only one: slow, but it works.
    fn cpus() -> (usize, usize) {
        let all = cpu::permitted();
        (all[0], *all.last().unwrap())
    }

    #[test]
    fn each_round_trip_is_measured() {
        let (a, b) = cpus();
        for samples in [
            tcp_round_trip(a, b, 10).unwrap(),
            udp_round_trip(a, b, 10).unwrap(),
            udp_round_trip(a, a, 10).unwrap(),
        ] {
            assert_eq!(samples.len(), 10);
            assert!(samples.iter().all(|&ns| ns > 0));
        }
    }

    #[test]
    fn a_cpu_that_is_not_permitted_is_an_error() {
        let (a, _) = cpus();
        assert!(tcp_round_trip(cpu::CPUS_MAX, a, 1).is_err());
        assert!(udp_round_trip(a, cpu::CPUS_MAX, 1).is_err());
    }
}
