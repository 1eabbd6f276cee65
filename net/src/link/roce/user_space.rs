//! RoCEv2 in user space: a queue pair of [`proto::roce`], whose packets a UDP socket or AF_XDP carries.

use super::backend::{Backend, Introduction};
use super::config::RoceLinkConfig;
use super::port::RocePort;
use super::random::Random;
use super::ring::PREFIX;
use crate::error::SetupError;
use crate::link::{DownReason, LinkCounters};
use proto::roce::{
    Access, Attributes, Completion, Counters, Failure, Identification, Path, PostError, QueuePair, ReceiveRequest,
    Region, Regions, SendRequest,
};
use std::io;
use std::net::SocketAddr;
use types::Timestamp;

/// See the file's head.
#[derive(Debug)]
pub struct UserSpace {
    pub(super) pair: QueuePair,
    pub(super) regions: Regions,
    pub(super) memory: Box<[u8]>,
    port: RocePort,
    paths: Paths,
    /// What a peer may reach.
    exposed: Region,
    buffer: Box<[u8]>,
}

/// Where packets come from and go to, with what their check covers.
#[derive(Debug)]
struct Paths {
    local: SocketAddr,
    peer: SocketAddr,
    to: Path,
    /// Devices send from a port of their own.
    from: Path,
    from_port: u16,
}

impl Backend for UserSpace {
    const WRITES_SHOW_NOWHERE_ELSE: bool = false;

    fn open(config: &RoceLinkConfig) -> Result<Self, SetupError> {
        let wrong = |what: String| {
            let doing = format!("building the RoCEv2 link of session {}", config.session);
            let source = io::Error::new(io::ErrorKind::InvalidInput, what);
            SetupError::new(doing, source, "correct the link's settings")
        };
        let pair = QueuePair::new(config.queue_pair).map_err(|error| wrong(error.to_string()))?;
        let arena = config.arena();
        Ok(Self {
            pair,
            regions: Regions::new(1, arena.length()),
            memory: vec![0; arena.length()].into(),
            port: RocePort::open(config)?,
            paths: Paths::new(config.ports()),
            exposed: Region {
                remote_key: 0,
                address: RING_ADDRESS,
                offset: 0,
                length: arena.reached(),
                access: Access {
                    remote_read: config.allows_reads,
                    remote_write: true,
                },
            },
            // One byte more, so that what was cut off is longer than any good packet.
            buffer: vec![0; config.packet_max() + 1].into(),
        })
    }

    fn name(&self) -> &'static str {
        self.port.name()
    }

    fn introduce(&mut self, random: &mut Random) -> Result<Introduction, DownReason> {
        Ok(Introduction {
            // 0 and 1 are for management.
            qpn: random.bits(24).max(2),
            psn: random.bits(24),
            remote_key: random.bits(32),
            address: RING_ADDRESS,
        })
    }

    fn connect(&mut self, ours: &Introduction, theirs: &Introduction) -> Result<(), DownReason> {
        self.exposed.remote_key = ours.remote_key;
        self.regions
            .register(self.exposed)
            .expect("it is the only one, and lies in the arena");
        self.pair.connect(Attributes {
            local_qpn: ours.qpn,
            peer_qpn: theirs.qpn,
            send_psn: ours.psn,
            receive_psn: theirs.psn,
        });
        Ok(())
    }

    fn close(&mut self) {
        self.regions.deregister(self.exposed.remote_key);
        self.pair.close();
        while self.pair.poll_completion().is_some() {}
    }

    fn failure(&self) -> Option<DownReason> {
        self.pair.failure().map(down_reason)
    }

    fn send_room(&self) -> usize {
        let window = usize::try_from(self.pair.window_room()).unwrap_or(usize::MAX);
        self.pair.send_room().min(window)
    }

    fn post_send(&mut self, request: SendRequest) -> Result<(), PostError> {
        self.pair.post_send(request, &self.regions)
    }

    fn post_receive(&mut self, request: ReceiveRequest) -> Result<(), PostError> {
        self.pair.post_receive(request, &self.regions)
    }

    fn receive(&mut self, now: Timestamp, counters: &mut LinkCounters) -> io::Result<bool> {
        let Some(arrived) = self.port.recv(&mut self.buffer)? else {
            return Ok(false);
        };
        counters.heard += 1;
        counters.bytes_received += arrived.length as u64;
        if arrived.from.ip() != self.paths.peer.ip() {
            counters.foreign += 1;
            return Ok(true);
        }
        if self.pair.attributes().is_none() || self.pair.failure().is_some() {
            return Ok(true);
        }
        let payload = &self.buffer[..arrived.length];
        match self.paths.open(arrived.from, payload, arrived.identification) {
            Some(packet) => {
                self.port.on_heard(arrived.from);
                self.pair
                    .on_packet(now, packet, arrived.is_marked, &self.regions, &mut self.memory);
            }
            None => self.pair.on_damaged(),
        }
        Ok(true)
    }

    fn poll_completion(&mut self) -> Option<Completion> {
        self.pair.poll_completion()
    }

    fn transmit(&mut self, now: Timestamp, counters: &mut LinkCounters) -> io::Result<()> {
        while let Some(length) = self.pair.poll_transmit(now, &self.memory, &mut self.buffer) {
            let length = self.paths.to.seal(&mut self.buffer, length);
            if !self.port.send(&self.buffer[..length])? {
                // The socket's buffer is full: this one is lost and will be repaired, the rest waits for the next turn.
                break;
            }
            counters.bytes_sent += length as u64;
        }
        self.port.flush()
    }

    fn count(&self, counters: &mut LinkCounters) {
        let roce = self.pair.counters();
        counters.retransmitted += roce.completer_retry_err;
        counters.duplicates = roce.duplicate_request;
        counters.naks_sent = roce.out_of_seq_request;
        counters.naks_received = roce.rcvd_seq_err;
        counters.malformed += roce.malformed + roce.rx_icrc_encapsulated + self.port.dropped();
        counters.impossible = roce.resp_false + roce.resp_invalid_request + roce.resp_remote_access_errors;
    }

    fn roce_counters(&self) -> Option<Counters> {
        Some(self.pair.counters())
    }

    fn number(&self, at: usize) -> u64 {
        let bytes = self.memory[at..at + PREFIX].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

    fn put_number(&mut self, at: usize, number: u64) {
        self.put(at, &number.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn copy_out(&self, at: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.memory[at..][..out.len()]);
    }
}

impl Paths {
    fn new([local, peer]: [SocketAddr; 2]) -> Self {
        Self {
            local,
            peer,
            to: Path::new(local, peer),
            from: Path::new(peer, local),
            from_port: peer.port(),
        }
    }

    /// The packet in a payload of the peer's whose check is right.
    fn open<'a>(&mut self, from: SocketAddr, payload: &'a [u8], identification: Identification) -> Option<&'a [u8]> {
        if from.port() != self.from_port {
            self.from_port = from.port();
            self.from = Path::new(SocketAddr::new(self.peer.ip(), from.port()), self.local);
        }
        self.from.open(payload, identification)
    }
}

/// Why a link is down whose queue pair broke.
const fn down_reason(failure: Failure) -> DownReason {
    match failure {
        Failure::RetryExceeded => DownReason::Silent,
        Failure::RnrRetryExceeded => DownReason::Stalled,
        Failure::Closed | Failure::Flushed => DownReason::Closed,
        Failure::Refused(code) => DownReason::QueuePair { code, is_ours: false },
        Failure::RefusedPeer(code) => DownReason::QueuePair { code, is_ours: true },
        Failure::BadResponse => DownReason::Malformed,
    }
}

/// Where a ring is in its peer's eyes: there is no address space to be shown, and any number does.
const RING_ADDRESS: u64 = 0x1000;
