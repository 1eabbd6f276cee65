//! A device that loses datagrams: a decorator for the socket under a datagram protocol.

use net::Datagram;
use net::datagram::PathChange;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use types::Timestamp;

/// How many datagrams in a million are lost; turned while the device is in use, from any thread. Clones turn the same.
#[derive(Clone, Default, Debug)]
pub struct LossSwitch(Arc<AtomicU32>);

/// Loses datagrams of the device beneath it, each way independently of the other and of those before.
///
/// One decorated end loses both ways: what it sends, and what it would receive. So decorate one end of a link, not both.
#[derive(Debug)]
pub struct Lossy<D> {
    device: D,
    switch: LossSwitch,
    /// State of SplitMix64.
    random: u64,
    dropped: Dropped,
}

/// Datagrams lost so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// On their way out.
    pub sent: u64,
    /// On their way in.
    pub received: u64,
}

impl LossSwitch {
    /// All datagrams.
    pub const ALL: u32 = 1_000_000;

    /// Loses so many datagrams in a million from now on.
    pub fn set(&self, parts_per_million: u32) {
        self.0.store(parts_per_million, Ordering::Relaxed);
    }

    /// What is lost now, in a million.
    #[must_use]
    pub fn parts_per_million(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<D> Lossy<D> {
    /// Decorates a device. The seed fixes which datagrams are lost, counted from when the switch is on.
    pub const fn new(device: D, switch: LossSwitch, seed: u64) -> Self {
        Self {
            device,
            switch,
            random: seed,
            dropped: Dropped { sent: 0, received: 0 },
        }
    }

    /// The device beneath.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// What was lost so far.
    pub const fn dropped(&self) -> Dropped {
        self.dropped
    }

    fn loses(&mut self) -> bool {
        let chance = self.switch.parts_per_million();
        // The high half of the product scales 64 random bits down to below a million.
        chance > 0 && (u128::from(self.next_random()) * u128::from(LossSwitch::ALL)) >> 64 < u128::from(chance)
    }

    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl<D: Datagram> Datagram for Lossy<D> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
        if self.loses() {
            self.dropped.sent += 1;
            return Ok(true);
        }
        self.device.send(datagram)
    }

    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        for _ in 0..RECEIVES_MAX {
            let received = self.device.recv(buffer)?;
            if received.is_none() || !self.loses() {
                return Ok(received);
            }
            self.dropped.received += 1;
        }
        Ok(None)
    }

    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        if self.loses() {
            self.dropped.sent += 1;
            return Ok(true);
        }
        self.device.reply(datagram)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }

    fn is_from_peer(&self) -> bool {
        self.device.is_from_peer()
    }

    fn accept_peer(&mut self) {
        self.device.accept_peer();
    }

    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.device.peer()
    }

    fn source(&self) -> Option<SocketAddr> {
        self.device.source()
    }

    fn unreachable(&self) -> u64 {
        self.device.unreachable()
    }

    fn dropped(&self) -> u64 {
        self.device.dropped()
    }

    fn heard(&mut self, now: Timestamp) {
        self.device.heard(now);
    }

    fn path_change(&mut self) -> Option<PathChange> {
        self.device.path_change()
    }

    fn paths_down(&self) -> u64 {
        self.device.paths_down()
    }
}

/// Datagrams lost in one `recv`, at most: whoever takes turns gets its turn back.
const RECEIVES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use net::link::{LinkEvent, LtpLink, Resume};
    use net::udp::UdpPeer;
    use net::{Link, UdpOptions};
    use proto::ltp::{Config, Role};
    use std::net::SocketAddr;
    use types::{Duration, SessionId, Timestamp};

    /// Takes everything, and always has one more datagram.
    struct Endless;

    impl Datagram for Endless {
        fn send(&mut self, _: &[u8]) -> io::Result<bool> {
            Ok(true)
        }

        fn recv(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
            Ok(Some(1))
        }
    }

    fn dropped(parts_per_million: u32, seed: u64) -> Dropped {
        let switch = LossSwitch::default();
        let mut device = Lossy::new(Endless, switch.clone(), seed);
        for loss in [0, parts_per_million, 0] {
            switch.set(loss);
            for _ in 0..100_000 {
                device.send(&[0]).unwrap();
                device.recv(&mut [0]).unwrap();
            }
        }
        device.dropped()
    }

    #[test]
    fn it_loses_what_the_switch_says_each_way_and_only_while_it_is_on() {
        assert_eq!(dropped(0, 1), Dropped::default());
        let one_per_cent = dropped(10_000, 1);
        for count in [one_per_cent.sent, one_per_cent.received] {
            assert!((850..1_150).contains(&count), "{count}");
        }
        assert_eq!(dropped(10_000, 1), one_per_cent);
        assert_ne!(dropped(10_000, 2), one_per_cent);
    }

    #[test]
    fn a_link_over_it_loses_nothing() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = UdpOptions::default();
        let learner = UdpPeer::learn(local, &options).unwrap();
        let knower = UdpPeer::connect(learner.local_addr().unwrap(), None, &options).unwrap();
        let switch = LossSwitch::default();
        let config = Config::new(SessionId(1), 64, 64);
        let lossy = Lossy::new(knower, switch.clone(), 7);
        let mut gateway = LtpLink::new(lossy, Role::Initiator, &config, 1, Resume::START).unwrap();
        let mut venue = LtpLink::new(learner, Role::Acceptor, &config, 1, Resume::START).unwrap();

        let mut now = Timestamp(1_000_000_000);
        let mut received = [0u32; 2];
        let mut sent = [0u32; 2];
        for turn in 0..100_000 {
            // A tenth of all datagrams is lost for a while.
            switch.set(if (5_000..20_000).contains(&turn) { 100_000 } else { 0 });
            now = now + Duration::from_micros(10);
            exchange(&mut gateway, now, &mut sent[0], &mut received[0]);
            exchange(&mut venue, now, &mut sent[1], &mut received[1]);
        }
        assert_eq!((sent, received), ([COUNT; 2], [COUNT; 2]));
        let Dropped { sent, received } = gateway.datagrams().dropped();
        assert!(sent > 100 && received > 100, "{sent} {received}");
        assert!(gateway.counters().retransmitted > 50 && venue.counters().retransmitted > 50);
    }

    const COUNT: u32 = 20_000;

    /// A turn of one end, which sends one message and checks that those it receives come in order.
    fn exchange<D: Datagram>(link: &mut LtpLink<D>, now: Timestamp, sent: &mut u32, received: &mut u32) {
        let mut buffer = [0; 64];
        while let Some(event) = link.poll(now, &mut buffer) {
            if let LinkEvent::Message { length, .. } = event {
                assert_eq!(buffer[..length], received.to_le_bytes());
                *received += 1;
            }
        }
        if *sent < COUNT && link.room() > 0 {
            link.send(&sent.to_le_bytes(), 0);
            *sent += 1;
        }
        link.flush(now, 0);
    }
}
