//! What one end of a RoCEv2 link is built from.

use super::outgoing::Outgoing;
use super::ring::{Arena, CONTROL_RECEIVES, Incoming, PREFIX};
use crate::carrier::CarrierConfig;
use crate::link::LinkEnd;
use crate::options::UdpOptions;
use proto::roce::{Config, ConfigError, ICRC_LENGTH, RateConfig, wire};
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use types::Duration;

/// Everything that defines one end.
#[derive(Clone, Copy, Debug)]
pub struct RoceLinkConfig {
    /// Which end it is at the meeting, and where.
    pub end: LinkEnd,
    /// How the ends meet; the same at both.
    pub meeting: RoceMeeting,
    /// The RoCEv2 address of this end, at UDP port 4791; no other end may have it.
    pub local: IpAddr,
    /// The peer's.
    pub peer: IpAddr,
    /// The session; the same at both ends.
    pub session: u32,
    /// Most unacknowledged messages of this end, and how many of the peer's its ring holds, rounded up to a power of two.
    pub window: usize,
    /// Longest message, bytes; the same at both ends.
    pub max_message: usize,
    /// What carries a message; the same at both ends.
    pub operation: RoceOperation,
    /// Without a message for this long the peer is shown that this end lives.
    pub heartbeat: Duration,
    /// A peer that shows nothing for so long is gone.
    pub dead_after: Duration,
    /// The peer may read the ring too, which no message needs: for measuring.
    pub allows_reads: bool,
    /// Differentiated services code point of the packets, 6 bits: what switches map to a lossless class.
    pub dscp: u8,
    /// Priority of the packets in a VLAN's tag, 3 bits.
    pub priority: u8,
    /// The RDMA device whose queue pair it is. `None`: it is one in user space.
    pub device: Option<DeviceName>,
    /// What carries the packets of a queue pair in user space.
    pub carrier: CarrierConfig,
    /// Of the queue pair.
    pub queue_pair: Config,
}

/// The table `[….roce]` of a link.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct RoceTable {
    /// The RoCEv2 address of this end; no other end may have it.
    pub local: IpAddr,
    /// The peer's.
    pub peer: IpAddr,
    /// `write` or `send`; `write` where nothing is said.
    pub operation: Option<RoceOperation>,
    /// Payload of a packet: 256, 512, 1024, 2048 or 4096; 1024 where nothing is said.
    pub mtu_bytes: Option<usize>,
    /// Differentiated services code point, 0 to 63; 0 where nothing is said.
    pub dscp: Option<u8>,
    /// Priority in a VLAN's tag, 0 to 7; 0 where nothing is said.
    pub priority: Option<u8>,
    /// Name of the RDMA device, as `rdma link` shows it; user space where nothing is said.
    pub device: Option<String>,
    /// How the ends meet: `tcp`, or `rdma_cm` where both have a device; `tcp` where nothing is said.
    pub meeting: Option<RoceMeeting>,
    /// Slows down when the peer reports congestion; the speed of the line, Mbit/s. Off where nothing is said.
    pub rate_control_line_mbit_s: Option<u64>,
}

/// What carries a message.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum RoceOperation {
    /// RDMA WRITE with immediate, into the receiver's ring.
    Write,
    /// SEND with immediate, into the receives that the receiver posted.
    Send,
}

/// How two ends learn of each other's queue pairs.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum RoceMeeting {
    /// Over a TCP connection between any two addresses of theirs.
    Tcp,
    /// By the kernel's connection manager, between their RoCEv2 addresses.
    RdmaCm,
}

/// Name of an RDMA device: 1 to 63 bytes without blanks and slashes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DeviceName {
    bytes: [u8; DEVICE_NAME_MAX],
    length: u8,
}

impl DeviceName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl FromStr for DeviceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "an RDMA device has a name of 1 to 63 characters, as `rdma link` shows it";
        let is_plain = |&byte: &u8| byte.is_ascii_graphic() && byte != b'/';
        if text.is_empty() || !text.as_bytes().iter().all(is_plain) {
            return Err(wrong);
        }
        let mut bytes = [0; DEVICE_NAME_MAX];
        bytes
            .get_mut(..text.len())
            .ok_or(wrong)?
            .copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).map_err(|_| wrong)?;
        Ok(Self { bytes, length })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl RoceTable {
    /// Puts the settings into `config`, whose addresses are the table's.
    pub(in crate::link) fn apply(&self, config: &mut RoceLinkConfig) -> Result<(), String> {
        if let Some(operation) = self.operation {
            config.operation = operation;
        }
        if let Some(mtu) = self.mtu_bytes {
            config.queue_pair.mtu = mtu;
        }
        if let Some(dscp) = self.dscp {
            if dscp > DSCP_MAX {
                return Err(format!("roce: dscp = {dscp} must be at most {DSCP_MAX}"));
            }
            config.dscp = dscp;
        }
        if let Some(priority) = self.priority {
            if priority > PRIORITY_MAX {
                return Err(format!("roce: priority = {priority} must be at most {PRIORITY_MAX}"));
            }
            config.priority = priority;
        }
        if let Some(device) = &self.device {
            let device = device.parse().map_err(|what| format!("roce: device: {what}"))?;
            config.device = Some(device);
        }
        if let Some(meeting) = self.meeting {
            config.meeting = meeting;
        }
        if let Some(line) = self.rate_control_line_mbit_s {
            if !(1..=LINE_MAX_MBIT_S).contains(&line) {
                return Err(format!(
                    "roce: rate_control_line_mbit_s = {line} must be from 1 to {LINE_MAX_MBIT_S}"
                ));
            }
            config.queue_pair.rate = Some(RateConfig::for_line(line * BYTES_A_MBIT));
        }
        Ok(())
    }
}

impl RoceLinkConfig {
    /// The default between two addresses, for windows up to [`WINDOW_MAX`](Self::WINDOW_MAX).
    #[must_use]
    pub fn new(end: LinkEnd, local: IpAddr, peer: IpAddr, window: usize, max_message: usize) -> Self {
        let slots = window.min(Self::WINDOW_MAX).next_power_of_two();
        // Each message, and the word now and then.
        let queue_pair = Config {
            receive_queue: slots + CONTROL_RECEIVES,
            ack_delay: ACK_DELAY,
            window: packets_in_flight(max_message + PREFIX),
            ..Config::new(2 * slots, max_message + PREFIX)
        };
        let config = Self {
            end,
            meeting: RoceMeeting::Tcp,
            local,
            peer,
            session: 0,
            window,
            max_message,
            operation: RoceOperation::Write,
            heartbeat: Duration::from_millis(10),
            dead_after: Duration(0),
            allows_reads: false,
            dscp: 0,
            priority: 0,
            device: None,
            carrier: CarrierConfig::Udp(UdpOptions::default()),
            queue_pair,
        };
        config.with_dead_after(Duration::from_millis(500))
    }

    /// The same, with a peer that shows nothing for so long taken for gone; the queue pair goes on trying until then.
    #[must_use]
    pub fn with_dead_after(mut self, dead_after: Duration) -> Self {
        self.dead_after = dead_after;
        let pair = &mut self.queue_pair;
        pair.timeout_max = Duration(pair.timeout_max.0.max(dead_after.0 / TIMEOUTS_IN_DEAD_AFTER));
        while pair.patience() < dead_after && pair.retry_limit < u8::MAX {
            pair.retry_limit += 1;
        }
        self
    }

    /// Whether these settings can work.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=Self::WINDOW_MAX).contains(&self.window) {
            return Err(format!(
                "window_messages is out of range: it must be from 1 to {}",
                Self::WINDOW_MAX
            ));
        }
        if !(1..=Self::MESSAGE_MAX).contains(&self.max_message) {
            let most = Self::MESSAGE_MAX;
            return Err(format!("the longest message must be from 1 to {most} bytes"));
        }
        if self.heartbeat.0 == 0 || self.heartbeat >= self.dead_after {
            return Err("heartbeat must be above 0 and below dead_after".to_owned());
        }
        let is_unusable = |ip: IpAddr| ip.is_unspecified() || ip.is_multicast();
        if self.local.is_ipv4() != self.peer.is_ipv4()
            || self.local == self.peer
            || [self.local, self.peer].into_iter().any(is_unusable)
        {
            return Err("local and peer must be addresses of two hosts, of one family".to_owned());
        }
        if self.meeting == RoceMeeting::RdmaCm {
            self.check_rdma_cm()?;
        }
        if let Some(device) = self.device {
            self.check_device(&device)?;
        } else if self.priority > 0 && matches!(self.carrier, CarrierConfig::Xdp(_)) {
            return Err(
                "roce: AF_XDP sends without a VLAN's tag: leave out priority, or carrier = \"afxdp\"".to_owned(),
            );
        }
        self.queue_pair.check().map_err(|error: ConfigError| error.to_string())
    }

    fn check_rdma_cm(&self) -> Result<(), String> {
        if self.device.is_none() {
            return Err("roce: meeting = \"rdma_cm\" wants a device at both ends: name it, or leave it out".to_owned());
        }
        let (key, address, wanted) = match self.end {
            LinkEnd::Connect { peer, .. } => ("peer", peer.ip(), self.peer),
            LinkEnd::Listen { local } => ("listen", local.ip(), self.local),
        };
        if address != wanted {
            return Err(format!(
                "roce: with meeting = \"rdma_cm\" the ends meet at RoCEv2 addresses: {key} is {address}, and wanted is {wanted}"
            ));
        }
        Ok(())
    }

    fn check_device(&self, device: &DeviceName) -> Result<(), String> {
        if !cfg!(feature = "verbs") {
            return Err(format!(
                "roce: device = \"{device}\" wants a program that was built with `cargo build --release --features verbs`"
            ));
        }
        if matches!(self.carrier, CarrierConfig::Xdp(_)) {
            return Err(
                "roce: a device carries its packets itself: leave out carrier = \"afxdp\", or device".to_owned(),
            );
        }
        if self.queue_pair.rate.is_some() {
            return Err("roce: a device has its own rate control: leave out rate_control_line_mbit_s".to_owned());
        }
        Ok(())
    }

    /// Bytes of memory that the link allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        let arena = self.arena().length();
        let lists = Outgoing::memory(self.slots()) + Incoming::memory(self.slots());
        let packets = match self.device {
            #[cfg(feature = "verbs")]
            Some(_) => super::verbs::Verbs::memory(&self.queue_pair),
            #[cfg(not(feature = "verbs"))]
            Some(_) => 0,
            None => self.queue_pair.memory() + self.packet_max() + 1 + self.carrier.memory(),
        };
        arena + lists + packets
    }

    /// Where things are in the link's memory.
    pub(super) const fn arena(&self) -> Arena {
        Arena::new(self.slots(), self.max_message)
    }

    /// Messages that a ring holds.
    pub(super) const fn slots(&self) -> usize {
        self.window.next_power_of_two()
    }

    /// Bytes of the longest packet.
    pub(super) const fn packet_max(&self) -> usize {
        wire::packet_length_max(self.queue_pair.mtu) + ICRC_LENGTH
    }

    /// This end as a carrier sees it: both addresses are known, whoever connects over TCP.
    pub(in crate::link) fn ports_as_end(&self) -> LinkEnd {
        let [local, peer] = self.ports();
        LinkEnd::Connect {
            peer,
            local: Some(local),
        }
    }

    /// The two RoCEv2 addresses, with the port.
    pub(super) fn ports(&self) -> [SocketAddr; 2] {
        [self.local, self.peer].map(|ip| SocketAddr::new(ip, wire::UDP_PORT))
    }

    /// Largest window: the queue pair has place for each message and as much again.
    pub const WINDOW_MAX: usize = 1 << 16;
    /// Longest message, bytes.
    pub const MESSAGE_MAX: usize = 1 << 16;
}

/// Packets that a receiver's socket holds that is not looked at for a while, with messages of so many bytes. More would be lost
/// on a line that loses nothing; fewer are enough for any line of some tens of microseconds.
fn packets_in_flight(message: usize) -> u64 {
    let memory = (message.min(MTU_MAX) + HEADERS).next_power_of_two() + PACKET_OVERHEAD;
    (SOCKET_BUFFER / memory).min(IN_FLIGHT_MAX) as u64
}

/// What Linux gives a socket for what has come, where nobody has told it otherwise (net.core.rmem_default).
const SOCKET_BUFFER: usize = 212_992;
/// What a packet takes there beside its bytes, which it rounds up to a power of two.
const PACKET_OVERHEAD: usize = 1_024;
/// Bytes of a packet before and behind its payload, from Ethernet to the check.
const HEADERS: usize = 128;
const MTU_MAX: usize = 4_096;
/// Most packets in flight.
const IN_FLIGHT_MAX: usize = 128;
/// Messages say by themselves what has come, so that acknowledgements need not hurry: half of the first timeout.
const ACK_DELAY: Duration = Duration::from_micros(100);
/// A timeout grows to at most this part of the time after which a peer is gone, where that is long.
const TIMEOUTS_IN_DEAD_AFTER: u64 = 16;
/// Largest code point: 6 bits.
const DSCP_MAX: u8 = 63;
/// Highest priority: 3 bits.
const PRIORITY_MAX: u8 = 7;
/// Longest name of a device, bytes: the kernel's, without the 0 behind it.
const DEVICE_NAME_MAX: usize = 63;
/// Fastest line.
const LINE_MAX_MBIT_S: u64 = 800_000;
const BYTES_A_MBIT: u64 = 1_000_000 / 8;
