//! The floor: what a round trip costs on this machine when nothing but two spinning threads and the kernel takes part.
//!
//! A latency means something only beside the floor measured in the same run, because one machine has fast and slow
//! hours. So these are functions that a run calls, and not numbers in a document.

use crate::cpu;
use crate::datagram::Datagram;
use crate::options::{TcpOptions, UdpOptions};
use crate::tcp::{Received, TcpListener, TcpStream};
use crate::udp::UdpPeer;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use types::Duration;

/// Bytes of each message: about those of an order.
pub const MESSAGE_LENGTH: usize = 64;

/// Round trips before those that count: caches, branch predictors and the connection's windows settle.
const WARM_UP_MAX: usize = 1_000;

/// Turns without an answer before the peer is taken for lost: some seconds of spinning.
const TURNS_MAX: usize = 20_000_000;

/// Round trips of 64 bytes over loopback TCP without Nagle: nanoseconds each, in the order they were made. One thread
/// spins on each CPU; the two differ. The caller's thread only waits.
///
/// # Errors
/// A CPU is not permitted, or loopback fails.
pub fn tcp_round_trip(cpu_a: usize, cpu_b: usize, count: usize) -> io::Result<Vec<u64>> {
    let options = TcpOptions {
        no_delay: true,
        ..TcpOptions::default()
    };
    let listener = TcpListener::bind(localhost(), &options)?;
    let near = TcpStream::connect(listener.local_addr()?, &options, Duration::from_secs(5))?;
    let far = loop {
        if let Some((stream, _)) = listener.accept()? {
            break stream;
        }
    };
    measure(near, far, cpu_a, cpu_b, count)
}

/// Round trips of 64 bytes over loopback UDP, as [`tcp_round_trip`].
///
/// # Errors
/// A CPU is not permitted, or loopback fails.
pub fn udp_round_trip(cpu_a: usize, cpu_b: usize, count: usize) -> io::Result<Vec<u64>> {
    let options = UdpOptions::default();
    // Each end has to know the other's port before it connects: take two ports, then open them again as a pair.
    let ports = [
        UdpPeer::learn(localhost(), &options)?,
        UdpPeer::learn(localhost(), &options)?,
    ];
    let (a, b) = (ports[0].local_addr()?, ports[1].local_addr()?);
    drop(ports);
    let near = UdpPeer::connect(b, Some(a), &options)?;
    let far = UdpPeer::connect(a, Some(b), &options)?;
    measure(near, far, cpu_a, cpu_b, count)
}

/// One end that moves whole messages.
trait End: Send {
    /// Sends one message.
    fn put(&mut self, message: &[u8; MESSAGE_LENGTH]) -> io::Result<()>;
    /// Receives what is there into the message from byte `at`, and gives how much that was.
    fn take(&mut self, message: &mut [u8; MESSAGE_LENGTH], at: usize) -> io::Result<usize>;
}

impl End for TcpStream {
    fn put(&mut self, message: &[u8; MESSAGE_LENGTH]) -> io::Result<()> {
        whole(self.send(message)? == MESSAGE_LENGTH)
    }

    fn take(&mut self, message: &mut [u8; MESSAGE_LENGTH], at: usize) -> io::Result<usize> {
        match self.recv(&mut message[at..])? {
            Received::Bytes(length) => Ok(length),
            Received::Nothing => Ok(0),
            Received::Closed => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }
}

impl End for UdpPeer {
    fn put(&mut self, message: &[u8; MESSAGE_LENGTH]) -> io::Result<()> {
        whole(self.send(message)?)
    }

    fn take(&mut self, message: &mut [u8; MESSAGE_LENGTH], at: usize) -> io::Result<usize> {
        Ok(self.recv(&mut message[at..])?.unwrap_or(0))
    }
}

/// With one message in flight, the kernel always has room for it.
fn whole(taken: bool) -> io::Result<()> {
    if taken {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::WriteZero))
    }
}

fn measure<E: End>(near: E, far: E, cpu_a: usize, cpu_b: usize, count: usize) -> io::Result<Vec<u64>> {
    // Whoever ends, by finishing or by failing, ends the other.
    let done = AtomicBool::new(false);
    let ending = |result| {
        done.store(true, Ordering::Release);
        result
    };
    thread::scope(|scope| {
        let echo = scope.spawn(|| ending(echo(far, cpu_b, &done).map(|()| Vec::new())));
        let ping = scope.spawn(|| ending(ping(near, cpu_a, count, &done)));
        let samples = ping.join().expect("the pinging thread does not panic");
        echo.join().expect("the echoing thread does not panic")?;
        samples
    })
}

fn ping<E: End>(mut end: E, cpu: usize, count: usize, done: &AtomicBool) -> io::Result<Vec<u64>> {
    cpu::pin(cpu)?;
    let warm_up = count.min(WARM_UP_MAX);
    let mut message = [0x5a; MESSAGE_LENGTH];
    let mut samples = Vec::with_capacity(warm_up + count);
    for _ in 0..warm_up + count {
        let start = Instant::now();
        end.put(&message)?;
        let mut turns = 0;
        let mut at = 0;
        while at < MESSAGE_LENGTH {
            at += end.take(&mut message, at)?;
            turns += 1;
            if turns > TURNS_MAX || done.load(Ordering::Relaxed) {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
        }
        samples.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    samples.drain(..warm_up);
    Ok(samples)
}

fn echo<E: End>(mut end: E, cpu: usize, done: &AtomicBool) -> io::Result<()> {
    cpu::pin(cpu)?;
    let mut message = [0; MESSAGE_LENGTH];
    let mut at = 0;
    while !done.load(Ordering::Acquire) {
        match end.take(&mut message, at) {
            Ok(length) => at += length,
            // The other thread hangs up a moment before it says that it is done.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        if at == MESSAGE_LENGTH {
            end.put(&message)?;
            at = 0;
        }
    }
    Ok(())
}

fn localhost() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs, or one twice where there is only one: slow, but it works.
    fn cpus() -> (usize, usize) {
        let all = cpu::permitted();
        (all[0], *all.last().unwrap())
    }

    #[test]
    fn each_round_trip_is_measured() {
        let (a, b) = cpus();
        for samples in [tcp_round_trip(a, b, 10).unwrap(), udp_round_trip(a, b, 10).unwrap()] {
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
