//! Two ways to one peer: each datagram leaves on both, and of what arrives the protocol above takes the first copy.
//!
//! Nobody notices that one way is dead, unless somebody watches. So each way is heard by itself: one that has brought
//! nothing good for as long as ends a session, while the other has, is told as down.

use crate::datagram::{Datagram, PathChange};
use std::io;
use std::net::SocketAddr;
use types::{Duration, Timestamp};

/// Two carriers as one.
#[derive(Debug)]
pub struct Paths<D> {
    paths: [Path<D>; 2],
    /// The one that brought the last datagram.
    last: usize,
    silence_max: Duration,
    /// A session has begun, and none of its datagrams has been heard.
    begins: bool,
}

#[derive(Debug)]
struct Path<D> {
    carrier: D,
    /// A listening end knows who its peer is on this path, in this session.
    is_learnt: bool,
    heard_at: Timestamp,
    is_up: bool,
    /// That has been told.
    is_told: bool,
}

impl<D: Datagram> Paths<D> {
    /// Both carriers, first and second; `silence_max` without a good datagram on one of them means that it is down.
    #[must_use]
    pub fn new(carriers: [D; 2], silence_max: Duration) -> Self {
        Self {
            paths: carriers.map(|carrier| Path {
                carrier,
                is_learnt: false,
                heard_at: Timestamp::NONE,
                is_up: true,
                is_told: true,
            }),
            last: 0,
            silence_max,
            begins: false,
        }
    }

    /// The two carriers.
    pub fn carriers(&self) -> [&D; 2] {
        self.paths.each_ref().map(|path| &path.carrier)
    }

    /// Does the same on both paths: `true` if it worked on either.
    fn on_both(&mut self, mut act: impl FnMut(&mut D) -> io::Result<bool>) -> io::Result<bool> {
        let [first, second] = self.paths.each_mut().map(|path| act(&mut path.carrier));
        match (first, second) {
            (Ok(first), Ok(second)) => Ok(first | second),
            // One path is enough; that the other fails is seen by its silence.
            (Ok(worked), Err(_)) | (Err(_), Ok(worked)) => Ok(worked),
            (Err(error), Err(_)) => Err(error),
        }
    }
}

impl<D: Datagram> Datagram for Paths<D> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
        self.on_both(|carrier| carrier.send(datagram))
    }

    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut failure = None;
        // The other one first, so that a flood on one does not silence it.
        for index in [1 - self.last, self.last] {
            match self.paths[index].carrier.recv(buffer) {
                Ok(None) => {}
                Ok(Some(length)) => {
                    self.last = index;
                    return Ok(Some(length));
                }
                Err(error) if failure.is_some() => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        Ok(None)
    }

    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        self.paths[self.last].carrier.reply(datagram)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.on_both(|carrier| carrier.flush().map(|()| true)).map(|_| ())
    }

    /// On a path where the peer is not known yet, whoever knows the session may be it.
    fn is_from_peer(&self) -> bool {
        let path = &self.paths[self.last];
        !path.is_learnt || path.carrier.is_from_peer()
    }

    fn accept_peer(&mut self) {
        self.begins = true;
        for path in &mut self.paths {
            path.is_learnt = false;
        }
    }

    fn heard(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.begins) {
            for path in &mut self.paths {
                path.heard_at = now;
            }
        }
        let path = &mut self.paths[self.last];
        path.heard_at = now;
        if !path.is_learnt {
            path.is_learnt = true;
            path.carrier.accept_peer();
        }
        for (index, path) in self.paths.iter_mut().enumerate() {
            // Against the other path, not the clock: a pause of this end is no silence.
            let is_up = index == self.last || now.since(path.heard_at) < self.silence_max;
            if is_up != path.is_up {
                path.is_up = is_up;
                path.is_told = !path.is_told;
            }
        }
    }

    fn path_change(&mut self) -> Option<PathChange> {
        let index = self.paths.iter().position(|path| !path.is_told)?;
        let path = &mut self.paths[index];
        path.is_told = true;
        Some(PathChange {
            second: index == 1,
            is_up: path.is_up,
        })
    }

    fn name(&self) -> &'static str {
        let [first, second] = self.paths.each_ref().map(|path| path.carrier.name());
        match (first, second) {
            ("UDP", "UDP") => "two paths of UDP",
            ("AF_XDP", "AF_XDP") => "two paths of AF_XDP",
            ("UDP", "AF_XDP") => "paths of UDP and AF_XDP",
            ("AF_XDP", "UDP") => "paths of AF_XDP and UDP",
            _ => "two paths",
        }
    }

    /// On the first path that knows.
    fn peer(&self) -> Option<SocketAddr> {
        self.paths.iter().find_map(|path| path.carrier.peer())
    }

    fn source(&self) -> Option<SocketAddr> {
        self.paths[self.last].carrier.source()
    }

    fn unreachable(&self) -> u64 {
        self.paths.iter().map(|path| path.carrier.unreachable()).sum()
    }

    fn dropped(&self) -> u64 {
        self.paths.iter().map(|path| path.carrier.dropped()).sum()
    }

    fn paths_down(&self) -> u64 {
        self.paths.iter().map(|path| u64::from(!path.is_up)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Link, LinkEvent, LtpLink, Resume};
    use crate::options::UdpOptions;
    use crate::udp::UdpPeer;
    use proto::ltp::{Config, Redundancy, Role};
    use std::net::SocketAddr;
    use types::SessionId;

    /// A socket whose wire can be cut.
    #[derive(Debug)]
    struct Wire {
        socket: UdpPeer,
        is_cut: bool,
    }

    impl Datagram for Wire {
        fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
            if self.is_cut {
                Ok(true)
            } else {
                self.socket.send(datagram)
            }
        }

        fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
            let received = self.socket.recv(buffer)?;
            Ok(received.filter(|_| !self.is_cut))
        }

        fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
            if self.is_cut {
                Ok(true)
            } else {
                self.socket.reply(datagram)
            }
        }

        fn is_from_peer(&self) -> bool {
            self.socket.is_from_peer()
        }

        fn accept_peer(&mut self) {
            self.socket.accept_peer();
        }
    }

    struct Pair {
        now: Timestamp,
        ends: [LtpLink<Paths<Wire>>; 2],
        events: [Vec<LinkEvent>; 2],
        messages: [usize; 2],
    }

    const SILENCE: Duration = Duration::from_millis(20);

    impl Pair {
        fn new() -> Self {
            let config = Config {
                redundancy: Redundancy::Paths,
                heartbeat: Duration::from_millis(1),
                ..Config::new(SessionId(3), 64, 64)
            };
            let options = UdpOptions::default();
            let local = SocketAddr::from(([127, 0, 0, 1], 0));
            let venue = [0, 1].map(|_| UdpPeer::learn(local, &options).unwrap());
            let gateway = venue
                .each_ref()
                .map(|end| UdpPeer::connect(end.local_addr().unwrap(), None, &options).unwrap());
            let link = |sockets: [UdpPeer; 2], role| {
                let wires = sockets.map(|socket| Wire { socket, is_cut: false });
                LtpLink::new(Paths::new(wires, SILENCE), role, &config, 1, Resume::START).unwrap()
            };
            Self {
                now: Timestamp(1_000_000_000),
                ends: [link(gateway, Role::Initiator), link(venue, Role::Acceptor)],
                events: [Vec::new(), Vec::new()],
                messages: [0; 2],
            }
        }

        fn cut(&mut self, path: usize, is_cut: bool) {
            for end in &mut self.ends {
                end.datagrams_mut().paths[path].carrier.is_cut = is_cut;
            }
        }

        /// A message each way and some turns, so many times; time moves 20 µs a turn.
        fn exchange(&mut self, count: usize) {
            for _ in 0..count {
                for end in &mut self.ends {
                    end.send(&[7; 48], 0);
                }
                for _ in 0..5 {
                    for (index, end) in self.ends.iter_mut().enumerate() {
                        for _ in 0..8 {
                            match end.poll(self.now, &mut [0; 64]) {
                                Some(LinkEvent::Message { .. }) => self.messages[index] += 1,
                                Some(event) => self.events[index].push(event),
                                None => {}
                            }
                        }
                        end.flush(self.now, 0);
                    }
                    self.now = self.now + Duration::from_micros(20);
                }
            }
        }
    }

    #[test]
    fn either_path_may_die_and_come_back_and_nothing_is_transmitted_again() {
        let mut pair = Pair::new();
        pair.exchange(20);
        let mut sent = 20;
        for path in [0, 1] {
            let before = pair.ends[0].ltp_counters().retransmits;
            pair.cut(path, true);
            pair.exchange(500);
            for end in &pair.ends {
                assert_eq!(end.counters().paths_down, 1);
            }
            pair.cut(path, false);
            pair.exchange(100);
            sent += 600;
            assert_eq!(pair.ends[0].ltp_counters().retransmits, before);
        }
        assert_eq!(pair.messages, [sent; 2]);
        let change = |second, is_up| LinkEvent::Path(PathChange { second, is_up });
        for (end, events) in pair.ends.iter().zip(&pair.events) {
            let told = [
                LinkEvent::Up,
                change(false, false),
                change(false, true),
                change(true, false),
                change(true, true),
            ];
            assert_eq!(events[..], told);
            assert_eq!(end.counters().paths_down, 0);
            // Each came twice, and the copies were nothing to answer.
            assert!(end.counters().duplicates > 200);
            assert_eq!(end.ltp_counters().retransmits_spurious, 0);
        }
    }

    #[test]
    fn both_paths_cut_end_the_session() {
        let mut pair = Pair::new();
        pair.exchange(20);
        pair.cut(0, true);
        pair.cut(1, true);
        pair.exchange(30);
        pair.now = pair.now + Duration::from_millis(1);
        for _ in 0..30 {
            pair.exchange(1);
            pair.now = pair.now + Duration::from_millis(1);
        }
        assert!(pair.ends.iter().all(|end| !end.is_up()));
        pair.cut(1, false);
        pair.exchange(300);
        assert!(pair.ends.iter().all(LtpLink::is_up));
        assert_eq!(pair.messages[0], pair.messages[1]);
    }
}
