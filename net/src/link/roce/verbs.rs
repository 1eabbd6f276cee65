//! A device's queue pair, by verbs: the device sends, repairs, and writes into the ring by itself.
//!
//! Few requests are signalled (`requests`); short ones go inline. Links of a thread share the device's completion queue (`seat`).
//!
//! A queue pair is made anew for each meeting. Where that fails the device is taken for gone, and opened anew with the
//! next meeting. While a session is up it is asked now and then whether it is still there: a device may be waiting for us to
//! let go of it before it goes.

use super::backend::{Backend, Introduction};
use super::config::{DeviceName, RoceLinkConfig};
use super::hello::gid;
use super::port::ECN_CAPABLE;
use super::random::Random;
use super::requests::{RECEIVE, Requests};
use super::seat::Seat;
use crate::error::SetupError;
use crate::link::{DownReason, LinkCounters};
use crate::verbs::{
    Access, Connection, GidEntry, Memory, MemoryRegion, ProtectionDomain, QueuePair, QueuePairSize, Receive, Send,
    WorkCompletion, opcode, status,
};
use proto::roce::wire::NakCode;
use proto::roce::{Completion, Config, Failure, Operation, PostError, ReceiveRequest, Received, Remote, SendRequest};
use std::io;
use std::sync::Arc;
use types::{Duration, Timestamp};

/// See the file's head.
#[derive(Debug)]
pub struct Verbs {
    config: RoceLinkConfig,
    name: DeviceName,
    /// Before `opened`, so that it goes before it.
    pair: Option<QueuePair>,
    opened: Option<Opened>,
    memory: Arc<Memory>,
    requests: Requests,
    /// Receives posted and not ended.
    receives: usize,
    /// Completions.
    heard: u64,
    failure: Option<DownReason>,
    /// Of messages, in both directions.
    bytes_sent: u64,
    bytes_received: u64,
    /// When the device is to be asked next whether it is there.
    look_at: Timestamp,
    /// What kept the device from serving, as told last.
    told: Option<io::ErrorKind>,
}

/// What there is of a device as long as it is there.
#[derive(Debug)]
struct Opened {
    /// All memory, for the device itself.
    local: MemoryRegion,
    /// What the peer may reach.
    exposed: MemoryRegion,
    domain: Arc<ProtectionDomain>,
    seat: Seat,
    gid: GidEntry,
    reads: u8,
}

impl Opened {
    fn new(name: &DeviceName, config: &RoceLinkConfig, memory: &Arc<Memory>) -> Result<Self, SetupError> {
        let failed = |doing: &str, advice| {
            let doing = format!("RDMA device {name}: {doing}");
            move |source: io::Error| SetupError::new(doing, source, advice)
        };
        let seat = Seat::take(*name, entries(&config.queue_pair)).map_err(|source| {
            let advice = match source.raw_os_error() {
                _ if source.kind() == io::ErrorKind::InvalidInput => "lower window_messages",
                Some(libc::EOPNOTSUPP) => "install libibverbs (Debian: ibverbs-providers)",
                Some(libc::ENOSYS) => "load the driver of the card, or rdma_rxe and ib_uverbs",
                _ => "`rdma link` shows the devices",
            };
            failed("opening it", advice)(source)
        })?;
        let device = seat.device();
        let gid = device.gid(config.local).map_err(failed(
            "looking for the link's address",
            "set `local` to an address of its interface",
        ))?;
        let mtu = device
            .mtu(gid.port)
            .map_err(failed("asking for its port", "`rdma link` shows its state"))?;
        if mtu < config.queue_pair.mtu {
            let what = format!("its port takes {mtu} bytes, mtu_bytes is {}", config.queue_pair.mtu);
            let source = io::Error::new(io::ErrorKind::InvalidInput, what);
            let advice = "raise the interface's MTU, or lower mtu_bytes at both ends";
            return Err(failed("comparing packets", advice)(source));
        }
        let limits = device
            .limits()
            .map_err(failed("asking what it can", "look into the kernel's log"))?;
        let locked = "raise the limit of locked memory (`ulimit -l`), or lower window_messages";
        let make = || -> io::Result<_> {
            let domain = Arc::new(ProtectionDomain::new(device)?);
            let access = |remote_write, remote_read| Access {
                remote_read,
                remote_write,
            };
            let local = MemoryRegion::new(&domain, memory, memory.length(), access(false, false))?;
            let reached = config.arena().reached();
            let exposed = MemoryRegion::new(&domain, memory, reached, access(true, config.allows_reads))?;
            Ok((domain, local, exposed))
        };
        let (domain, local, exposed) = make().map_err(failed("registering memory", locked))?;
        Ok(Self {
            local,
            exposed,
            domain,
            seat,
            gid,
            reads: u8::try_from(limits.reads.min(config.queue_pair.reads)).unwrap_or(u8::MAX),
        })
    }

    fn queue_pair(&self, config: &RoceLinkConfig) -> io::Result<QueuePair> {
        let size = QueuePairSize {
            sends: config.queue_pair.send_queue,
            receives: config.queue_pair.receive_queue,
            inline: config.arena().slot_length().min(INLINE_MAX),
        };
        QueuePair::new(&self.domain, self.seat.queue(), size)
    }
}

impl Verbs {
    /// Whether the device can be had, with all that the link asks of it: one line of it, for people.
    pub(in crate::link) fn probe(config: &RoceLinkConfig) -> Result<String, SetupError> {
        let verbs = Self::open(config)?;
        let opened = verbs.opened.as_ref().expect("it is open");
        let GidEntry { port, index } = opened.gid;
        Ok(format!(
            "RDMA device {}: port {port}, address {} at index {index}",
            verbs.name, config.local
        ))
    }

    /// Bytes that it allocates beside the arena.
    pub(super) const fn memory(queue_pair: &Config) -> usize {
        Requests::memory(queue_pair.send_queue) + Seat::memory(entries(queue_pair))
    }

    fn start(&mut self, random: &mut Random) -> io::Result<Introduction> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => Opened::new(&self.name, &self.config, &self.memory)?,
        };
        // Where it is not put back, the device is closed.
        let pair = opened.queue_pair(&self.config)?;
        opened.seat.attach(pair.number());
        let introduction = Introduction {
            qpn: pair.number(),
            psn: random.bits(24),
            remote_key: opened.exposed.remote_key(),
            address: self.memory.address(0),
        };
        (self.pair, self.opened) = (Some(pair), Some(opened));
        Ok(introduction)
    }

    /// The device does not serve. It is told once.
    fn refused(&mut self, doing: &str, error: &io::Error) -> DownReason {
        let kind = error.kind();
        if self.told.replace(kind) != Some(kind) {
            tracing::warn!("RDMA device {}: {doing}: {error}", self.name);
        }
        DownReason::Device(kind)
    }

    /// Lets go of a device that is gone.
    fn look_at_device(&mut self, now: Timestamp) {
        let Some(opened) = self.opened.as_ref().filter(|_| now >= self.look_at) else {
            return;
        };
        self.look_at = now + LOOK_AT_DEVICE_EVERY;
        let mut is_there = !opened.seat.is_gone() && opened.seat.device().is_there();
        while let Some(event) = opened.seat.device().poll_event() {
            tracing::warn!("RDMA device {}: {event}", self.name);
            is_there &= !event.is_end();
        }
        if !is_there {
            let gone = io::ErrorKind::NotFound;
            tracing::warn!(
                "RDMA device {} is gone; its orders wait until there is one of this name",
                self.name
            );
            opened.seat.set_gone();
            (self.pair, self.opened) = (None, None);
            (self.told, self.failure) = (Some(gone), Some(DownReason::Device(gone)));
        }
    }

    /// The bytes of a request or receive lie in the arena.
    fn is_inside(&self, offset: usize, length: usize) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.memory.length())
    }

    /// What a work completion says.
    fn outcome(&mut self, completion: &WorkCompletion) -> Result<(), Failure> {
        let refused = |code, is_ours| DownReason::QueuePair { code, is_ours };
        let is_receive = completion.id() & RECEIVE != 0;
        let reason = match completion.status() {
            status::SUCCESS => return Ok(()),
            // It was only waiting: the queue pair broke for another reason, or for one that the device keeps to itself.
            status::WR_FLUSH_ERR => DownReason::Device(io::ErrorKind::ConnectionAborted),
            status::RETRY_EXC_ERR => DownReason::Silent,
            status::RNR_RETRY_EXC_ERR => DownReason::Stalled,
            status::BAD_RESP_ERR => DownReason::Malformed,
            status::REM_ACCESS_ERR | status::LOC_ACCESS_ERR => refused(NakCode::RemoteAccessError, is_receive),
            status::REM_INV_REQ_ERR => refused(NakCode::InvalidRequest, is_receive),
            status::LOC_LEN_ERR if is_receive => refused(NakCode::InvalidRequest, true),
            status::REM_OP_ERR => refused(NakCode::RemoteOperationalError, false),
            _ => DownReason::Device(io::ErrorKind::Other),
        };
        if self.failure.is_none() {
            tracing::warn!("RDMA device {}: {}", self.name, completion.status_text());
            self.failure = Some(reason);
        }
        Err(Failure::Flushed)
    }
}

impl Backend for Verbs {
    const WRITES_SHOW_NOWHERE_ELSE: bool = true;

    fn open(config: &RoceLinkConfig) -> Result<Self, SetupError> {
        let name = config.device.expect("the config names one");
        let memory = Memory::new(config.arena().length()).map_err(|source| {
            let advice = "lower window_messages";
            SetupError::new("allocating the link's memory", source, advice)
        })?;
        let memory = Arc::new(memory);
        let opened = Opened::new(&name, config, &memory)?;
        opened.queue_pair(config).map_err(|source| {
            let doing = format!("RDMA device {name}: making a queue pair");
            SetupError::new(
                doing,
                source,
                "lower window_messages (`ibv_devinfo -v` shows max_qp_wr)",
            )
        })?;
        Ok(Self {
            config: *config,
            name,
            pair: None,
            opened: Some(opened),
            memory,
            requests: Requests::new(config.queue_pair.send_queue),
            receives: 0,
            heard: 0,
            failure: None,
            bytes_sent: 0,
            bytes_received: 0,
            look_at: Timestamp::NONE,
            told: None,
        })
    }

    fn name(&self) -> &'static str {
        "verbs"
    }

    fn introduce(&mut self, random: &mut Random) -> Result<Introduction, DownReason> {
        // An attempt to meet that failed has left one.
        self.close();
        self.start(random)
            .map_err(|error| self.refused("making a queue pair", &error))
    }

    fn connect(&mut self, ours: &Introduction, theirs: &Introduction) -> Result<(), DownReason> {
        let (Some(pair), Some(opened)) = (&mut self.pair, &self.opened) else {
            return Err(DownReason::Device(io::ErrorKind::NotConnected));
        };
        let connection = Connection {
            gid: opened.gid,
            peer_gid: gid(self.config.peer),
            peer_qpn: theirs.qpn,
            send_psn: ours.psn,
            receive_psn: theirs.psn,
            mtu: self.config.queue_pair.mtu,
            traffic_class: self.config.dscp << 2 | ECN_CAPABLE,
            service_level: self.config.priority,
            timeout: timeout_code(self.config.dead_after),
            reads: opened.reads,
            allows_reads: self.config.allows_reads,
        };
        match pair.connect(&connection) {
            Ok(()) => {
                self.told = None;
                Ok(())
            }
            Err(error) => {
                // The address may have another index by now: all is asked anew.
                self.close();
                self.opened = None;
                Err(self.refused("connecting the queue pair", &error))
            }
        }
    }

    fn close(&mut self) {
        self.failure = None;
        self.pair = None;
        if let Some(opened) = &self.opened {
            opened.seat.detach();
        }
        self.requests.clear();
        self.receives = 0;
    }

    fn failure(&self) -> Option<DownReason> {
        self.failure
    }

    fn send_room(&self) -> usize {
        self.requests.room()
    }

    fn post_send(&mut self, request: SendRequest) -> Result<(), PostError> {
        if self.send_room() == 0 {
            return Err(PostError::Full);
        }
        if !self.is_inside(request.offset, request.length) {
            return Err(PostError::Bounds);
        }
        let (Some(pair), Some(opened)) = (&mut self.pair, &self.opened) else {
            return Err(PostError::NotConnected);
        };
        let (opcode, remote, immediate) = match request.operation {
            Operation::Write { to, immediate: None } => (opcode::WRITE, to, 0),
            Operation::Write {
                to,
                immediate: Some(given),
            } => (opcode::WRITE_WITH_IMM, to, given),
            Operation::Send { immediate: None } => (opcode::SEND, Remote { address: 0, key: 0 }, 0),
            Operation::Send { immediate: Some(given) } => (opcode::SEND_WITH_IMM, Remote { address: 0, key: 0 }, given),
            Operation::Read { from } => (opcode::READ, from, 0),
        };
        let name = self.requests.name(request.is_signaled);
        let send = Send {
            id: name.wr_id,
            opcode,
            address: self.memory.address(request.offset),
            length: request.length,
            local_key: opened.local.local_key(),
            immediate,
            remote_address: remote.address,
            remote_key: remote.key,
            is_signaled: name.is_signaled,
        };
        // SAFETY: inside the memory that is registered under this key as a whole; it stays mapped as long as the region
        // is, and that as long as the queue pair.
        if unsafe { pair.post_send(&send) }.is_err() {
            return Err(PostError::NotConnected);
        }
        self.requests.on_posted(request.id);
        self.bytes_sent += request.length as u64;
        Ok(())
    }

    fn post_receive(&mut self, request: ReceiveRequest) -> Result<(), PostError> {
        if self.receives == self.config.queue_pair.receive_queue {
            return Err(PostError::Full);
        }
        if !self.is_inside(request.offset, request.length) {
            return Err(PostError::Bounds);
        }
        let (Some(pair), Some(opened)) = (&mut self.pair, &self.opened) else {
            return Err(PostError::NotConnected);
        };
        let receive = Receive {
            id: request.id | RECEIVE,
            address: self.memory.address(request.offset),
            length: request.length,
            local_key: opened.local.local_key(),
        };
        // SAFETY: as above.
        if unsafe { pair.post_receive(&receive) }.is_err() {
            return Err(PostError::NotConnected);
        }
        self.receives += 1;
        Ok(())
    }

    fn receive(&mut self, now: Timestamp, _: &mut LinkCounters) -> io::Result<bool> {
        self.look_at_device(now);
        let (Some(_), Some(opened)) = (&self.pair, &self.opened) else {
            return Ok(false);
        };
        opened.seat.poll(now)?;
        Ok(opened.seat.has_more())
    }

    fn poll_completion(&mut self) -> Option<Completion> {
        while let Some(completion) = self.opened.as_ref()?.seat.next() {
            self.heard += 1;
            let outcome = self.outcome(&completion);
            if completion.id() & RECEIVE == 0 {
                if let Some(id) = self.requests.on_ended(completion.id(), outcome.is_ok()) {
                    return Some(Completion::Send { id, status: outcome });
                }
                continue;
            }
            self.receives -= 1;
            if outcome.is_ok() {
                self.bytes_received += completion.length() as u64;
            }
            return Some(Completion::Receive {
                id: completion.id() & !RECEIVE,
                status: outcome.map(|()| Received {
                    length: completion.length(),
                    is_write: completion.is_write(),
                    immediate: completion.immediate(),
                }),
            });
        }
        None
    }

    fn transmit(&mut self, _: Timestamp, _: &mut LinkCounters) -> io::Result<()> {
        Ok(())
    }

    fn count(&self, counters: &mut LinkCounters) {
        counters.heard += self.heard;
        counters.bytes_sent += self.bytes_sent;
        counters.bytes_received += self.bytes_received;
    }

    fn number(&self, at: usize) -> u64 {
        self.memory.number(at)
    }

    fn put_number(&mut self, at: usize, number: u64) {
        self.memory.put(at, &number.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.memory.put(at, bytes);
    }

    fn copy_out(&self, at: usize, out: &mut [u8]) {
        self.memory.copy_out(at, out);
    }
}

/// A queue pair that breaks tells of all that was posted.
const fn entries(queue_pair: &Config) -> usize {
    queue_pair.send_queue + queue_pair.receive_queue
}

/// The least timeout with which a queue pair goes on trying for so long: 4.096 µs times two to this power, for each try.
fn timeout_code(patience: Duration) -> u8 {
    (1..TIMEOUT_MAX)
        .find(|&code| TRIES * (TIMEOUT_UNIT_NS << code) >= patience.0)
        .unwrap_or(TIMEOUT_MAX)
}

/// Longest request, bytes, that a device is asked to take inline: an order with its prefix, and room to spare.
const INLINE_MAX: usize = 128;
/// A session's device is asked so seldom, by two system calls.
const LOOK_AT_DEVICE_EVERY: Duration = Duration::from_secs(1);
/// Tries until a queue pair breaks: the first, and what `QueuePair` repeats.
const TRIES: u64 = crate::verbs::RETRIES_MAX as u64 + 1;
const TIMEOUT_UNIT_NS: u64 = 4_096;
/// 5 bits.
const TIMEOUT_MAX: u8 = 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_pair_is_as_patient_as_its_link() {
        for (ms, code) in [(1, 6), (500, 15), (2_000, 17)] {
            let patience = Duration::from_millis(ms);
            assert_eq!(timeout_code(patience), code, "{ms} ms");
            assert!(TRIES * (TIMEOUT_UNIT_NS << (code - 1)) < patience.0);
        }
        assert_eq!(timeout_code(Duration(u64::MAX)), TIMEOUT_MAX);
    }
}
