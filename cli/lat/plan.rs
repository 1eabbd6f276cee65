//! What is measured and how: agreed between the two ends before each run.

use clap::ValueEnum;
use net::link::DeviceName;
use net::measure;
use proto::ltp;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use types::Duration;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rung {
    /// A bare TCP socket as the kernel makes it
    TcpUntuned,
    /// A bare TCP socket with the options of our link
    TcpBare,
    /// Our TCP link: SoupBinTCP framing, numbered and acknowledged both ways
    Tcp,
    /// A bare UDP socket: the floor of the others
    Udp,
    /// Our LTP link over UDP: numbered, acknowledged, repaired
    Ltp,
    /// Bare frames over AF_XDP
    AfxdpBare,
    /// Our LTP link over AF_XDP
    Afxdp,
    /// Our RoCEv2 link over UDP, by RDMA WRITE with immediate, as ib_write_lat measures it
    Roce,
    /// The same by SEND, as ib_send_lat measures it
    RoceSend,
    /// RDMA READ over it, as ib_read_lat measures it: the far end's program has no part in it
    RoceRead,
}

/// How messages follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Mode {
    /// Round trips, the next when the last is over.
    PingPong,
    /// Round trips by plan, one each so many nanoseconds; each counts from its planned time.
    OpenLoop { interval_ns: u64 },
    /// A stream that nobody answers: as fast as it is taken, or one each so many nanoseconds.
    OneWay { interval_ns: Option<u64> },
}

/// What an end does that has nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum IdleMode {
    /// Looks again at once
    Spin,
    /// Sleeps for 50 µs
    Backoff,
}

/// The shortest retransmission timeout of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RtoMin {
    /// The kernel's: 200 ms
    Default,
    /// The lowest that the kernel takes, as our link asks for
    Lowest,
}

/// What LTP sends more than once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Redundancy {
    /// Nothing
    #[default]
    Off,
    /// Each datagram on two paths, here two ports
    Paths,
    /// Each datagram twice
    Twice,
    /// Messages that are not acknowledged yet, with the next ones
    Repeat,
}

/// How LTP's headers look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Header {
    /// 16 bytes
    #[default]
    Full,
    /// 8 bytes
    Compact,
}

/// What is chosen of LTP.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct LtpOptions {
    pub(super) redundancy: Redundancy,
    pub(super) header: Header,
    /// Every datagram carries the tag that authenticates it.
    pub(super) has_key: bool,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The version of this exchange between the ends.
    pub(super) version: u32,
    pub(super) link: Rung,
    pub(super) mode: Mode,
    /// Bytes of a message.
    pub(super) size: usize,
    /// How long it measures, ns.
    pub(super) span_ns: u64,
    /// Of the TCP links with our options, and of no other.
    pub(super) rto_min: Option<RtoMin>,
    /// Of the links over LTP, and of no other.
    pub(super) ltp: Option<LtpOptions>,
    /// The kernel that the near end runs on: ends on one kernel have one clock.
    pub(super) boot_id: String,
    /// Where the near end's bare UDP socket is.
    pub(super) near_port: u16,
    /// Of RoCEv2, where both ends are on one host: the near end's address and the far one's.
    pub(super) roce: Option<[IpAddr; 2]>,
    /// Of RoCEv2: the RDMA device of this end. The other end has its own.
    #[serde(skip)]
    pub(super) device: Option<DeviceName>,
}

/// Of [`Plan`]; changes with it.
pub(super) const VERSION: u32 = 3;

/// Longest run: a day.
pub(super) const SPAN_MAX: Duration = Duration::from_secs(86_400);

/// Most messages a second by plan.
pub(super) const RATE_MAX: u64 = 10_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Longest [`Plan::boot_id`]: a UUID.
const BOOT_ID_LENGTH_MAX: usize = 36;

impl Rung {
    /// From the plainest to the fastest, as the ladder shows them.
    pub(super) const ALL: [Self; 10] = [
        Self::TcpUntuned,
        Self::TcpBare,
        Self::Tcp,
        Self::Udp,
        Self::Ltp,
        Self::Roce,
        Self::RoceSend,
        Self::RoceRead,
        Self::AfxdpBare,
        Self::Afxdp,
    ];

    /// What the others are held against.
    pub(super) const FLOOR: Self = Self::Udp;

    /// Whether LTP's options are of it.
    pub(super) const fn is_ltp(self) -> bool {
        matches!(self, Self::Ltp | Self::Afxdp)
    }

    /// Whether our socket options for TCP are of it.
    pub(super) const fn is_tuned_tcp(self) -> bool {
        matches!(self, Self::TcpBare | Self::Tcp)
    }

    /// Whether it runs over RoCEv2.
    pub(super) const fn is_roce(self) -> bool {
        matches!(self, Self::Roce | Self::RoceSend | Self::RoceRead)
    }

    /// Whether messages go one way over it: of a read, the far end's program sends nothing and takes nothing in.
    pub(super) const fn has_stream(self) -> bool {
        !matches!(self, Self::RoceRead)
    }

    /// Its name on the command line and in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TcpUntuned => "tcp-untuned",
            Self::TcpBare => "tcp-bare",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Ltp => "ltp",
            Self::AfxdpBare => "afxdp-bare",
            Self::Afxdp => "afxdp",
            Self::Roce => "roce",
            Self::RoceSend => "roce-send",
            Self::RoceRead => "roce-read",
        }
    }

    /// What it is, for a person.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::TcpUntuned => "a bare TCP socket as the kernel makes it",
            Self::TcpBare => "a bare TCP socket with the options of our link",
            Self::Tcp => "our TCP link: SoupBinTCP framing, numbered and acknowledged both ways",
            Self::Udp => "a bare UDP socket; the floor",
            Self::Ltp => "our LTP link over UDP: numbered, acknowledged, repaired",
            Self::AfxdpBare => "bare frames over AF_XDP",
            Self::Afxdp => "our LTP link over AF_XDP",
            Self::Roce => "our RoCEv2 link over UDP: RDMA WRITE with immediate",
            Self::RoceSend => "our RoCEv2 link over UDP: SEND with immediate",
            Self::RoceRead => "RDMA READ over RoCEv2 over UDP: the far program has no part in it",
        }
    }
}

impl From<Redundancy> for ltp::Redundancy {
    fn from(redundancy: Redundancy) -> Self {
        match redundancy {
            Redundancy::Off => Self::Off,
            Redundancy::Paths => Self::Paths,
            Redundancy::Twice => Self::Twice,
            Redundancy::Repeat => Self::Repeat,
        }
    }
}

impl From<Header> for ltp::HeaderForm {
    fn from(header: Header) -> Self {
        match header {
            Header::Full => Self::Full,
            Header::Compact => Self::Compact,
        }
    }
}

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PingPong => "ping-pong",
            Self::OpenLoop { .. } => "open-loop",
            Self::OneWay { .. } => "one-way",
        }
    }

    pub(super) const fn is_one_way(self) -> bool {
        matches!(self, Self::OneWay { .. })
    }

    /// Between two messages of a plan.
    pub(super) fn interval(self) -> Option<Duration> {
        match self {
            Self::PingPong => None,
            Self::OpenLoop { interval_ns } => Some(Duration(interval_ns)),
            Self::OneWay { interval_ns } => interval_ns.map(Duration),
        }
    }

    /// Messages a second of a plan, rounded: intervals are whole nanoseconds.
    pub(super) fn rate(self) -> Option<u64> {
        let interval = self.interval()?.0;
        Some((SECOND_NS + interval / 2) / interval)
    }
}

impl IdleMode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Backoff => "backoff",
        }
    }
}

impl From<IdleMode> for measure::Idle {
    fn from(mode: IdleMode) -> Self {
        match mode {
            IdleMode::Spin => Self::Spin,
            IdleMode::Backoff => Self::Backoff,
        }
    }
}

impl Plan {
    pub(super) const fn span(&self) -> Duration {
        Duration(self.span_ns)
    }

    /// Whether the other end tells which retransmissions it had no need of: not over RoCEv2, and not where each datagram has
    /// a copy anyway.
    pub(super) fn tells_spurious(&self) -> bool {
        let redundancy = self.ltp.unwrap_or_default().redundancy;
        !self.link.is_roce() && !matches!(redundancy, Redundancy::Paths | Redundancy::Twice)
    }

    /// Whether it is one that the command line would take.
    ///
    /// # Errors
    /// Why not, for the other end.
    pub(super) fn check(&self) -> Result<(), String> {
        let (least, most) = (measure::MESSAGE_LENGTH_MIN, measure::MESSAGE_LENGTH_MAX);
        if self.version != VERSION {
            return Err(format!(
                "version {} of the exchange, here it is {VERSION}",
                self.version
            ));
        }
        if !(least..=most).contains(&self.size) {
            return Err(format!(
                "{} bytes a message, a number from {least} to {most}",
                self.size
            ));
        }
        if !(1..=SPAN_MAX.0).contains(&self.span_ns) {
            return Err(format!("{} ns of measuring, from 1 to {}", self.span_ns, SPAN_MAX.0));
        }
        if let Some(Duration(interval)) = self.mode.interval() {
            if !(SECOND_NS / RATE_MAX..=SECOND_NS).contains(&interval) {
                return Err(format!(
                    "a message each {interval} ns, a rate from 1 to {RATE_MAX} a second"
                ));
            }
            if interval > self.span_ns {
                return Err(format!(
                    "a message each {} and {} of measuring: not one is planned; a higher rate or more seconds",
                    Duration(interval),
                    self.span()
                ));
            }
        }
        if self.ltp.is_some() != self.link.is_ltp() || self.rto_min.is_some() != self.link.is_tuned_tcp() {
            return Err(format!(
                "options that are not of {}, or its own are missing",
                self.link.name()
            ));
        }
        if matches!(self.mode, Mode::OneWay { .. }) && !self.link.has_stream() {
            return Err(format!("{} has no stream: nobody sends", self.link.name()));
        }
        if self.roce.is_some_and(|ends| !ends.iter().all(IpAddr::is_loopback)) {
            return Err("addresses of RoCEv2 that are not this host's own".to_owned());
        }
        if self.boot_id.len() > BOOT_ID_LENGTH_MAX {
            return Err(format!("a boot id longer than {BOOT_ID_LENGTH_MAX} bytes"));
        }
        Ok(())
    }
}

/// Names the boot of this kernel.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}
