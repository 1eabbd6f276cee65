//! The command line, and the plans that follow from it.

use super::plan::{self, Header, IdleMode, LtpOptions, Mode, Plan, Redundancy, RtoMin, Rung};
use clap::error::ErrorKind;
use clap::{Args as ClapArgs, Command};
use net::link::DeviceName;
use net::measure;
use std::net::SocketAddr;
use std::path::PathBuf;
use types::Duration;

/// Measures the links: round trips, round trips by plan, or one way; each against the bare UDP socket's.
///
/// Both ends run in this process over loopback, or in two processes, hosts or network namespaces: `--listen` in one,
/// `--connect` in the other. AF_XDP wants an Ethernet interface at both ends, which loopback is not.
///
/// Interrupted, or left by the other end, it prints what it has measured until then. Exit status 1 when a link that was
/// begun failed, or none could be measured; 2 for wrong use. A link of --all that cannot be had here is left out, with the
/// reason.
#[derive(ClapArgs, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["link", "all", "listen"]))]
pub(crate) struct Args {
    /// The link to measure.
    #[arg(long, value_enum)]
    pub(super) link: Option<Rung>,

    /// Measure every link, by turns in three rounds, as a ladder with the ratio of each to the bare UDP socket's.
    #[arg(long)]
    pub(super) all: bool,

    /// Be the far end for whoever connects here, one after the other, until interrupted. The data go to the next port
    /// (and, for a second path, the one after it).
    #[arg(long, value_name = "IP:PORT", value_parser = address, conflicts_with_all = [
        "connect", "one_way", "rate", "json", "histogram", "size", "seconds", "redundancy", "header", "key", "rto_min",
    ])]
    pub(super) listen: Option<SocketAddr>,

    /// Measure against the far end that listens here.
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(super) connect: Option<SocketAddr>,

    /// Open loop: send so many messages a second, from 1 to 10,000,000, whatever comes back, and count each from its
    /// planned time. The time between two is rounded to a nanosecond. Without it, the next message waits for the answer to
    /// the last (ping-pong).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=plan::RATE_MAX))]
    pub(super) rate: Option<u64>,

    /// A stream that nobody answers, packed; with --rate by plan, else as fast as it is taken. What counts is how many
    /// arrive a second; the time each was under way, too, where both ends run on one kernel and so have one clock.
    #[arg(long)]
    pub(super) one_way: bool,

    /// Bytes of a message, from 8 to 1,024.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = size)]
    pub(super) size: usize,

    /// Seconds of each link, above 0 and at most 86,400; --all divides them among its rounds.
    #[arg(long, value_name = "S", default_value = "6", value_parser = seconds)]
    pub(super) seconds: Duration,

    /// The CPU of this end; of both (NEAR,FAR) when both are here. One for both: they take turns in one thread. Without it the
    /// first of this process's CPUs for the near end and the last for the far one.
    #[arg(long, value_name = "CPU", value_delimiter = ',', num_args = 1)]
    pub(super) cpu: Vec<usize>,

    /// What this end does when it has nothing to do; both, when both are here.
    #[arg(long, value_enum, default_value = "spin")]
    pub(super) idle: IdleMode,

    /// The shortest retransmission timeout of the TCP links with our options, tcp and tcp-bare. Without it the lowest.
    #[arg(long, value_enum)]
    pub(super) rto_min: Option<RtoMin>,

    /// What LTP (ltp, afxdp) sends more than once. Without it nothing (off).
    #[arg(long, value_enum)]
    pub(super) redundancy: Option<Redundancy>,

    /// How the headers of LTP (ltp, afxdp) look. Without it full.
    #[arg(long, value_enum)]
    pub(super) header: Option<Header>,

    /// Authenticate every datagram of LTP (ltp, afxdp).
    #[arg(long)]
    pub(super) key: bool,

    /// The RDMA device of this end, for roce, roce-send and roce-read by verbs; the address of --listen or --connect is one of
    /// its. Without it user space. The other end says for itself.
    #[arg(long, value_name = "NAME", value_parser = device)]
    pub(super) device: Option<DeviceName>,

    /// Write the histograms to this file, as a log that HdrHistogram's tools read.
    #[arg(long, value_name = "FILE")]
    pub(super) histogram: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Rounds of a ladder: the speed of a machine changes from minute to minute, so the links take turns.
const ROUNDS: u64 = 3;

impl Args {
    /// Ends the program with status 2 where the options make no sense together.
    pub(super) fn check_or_exit(&self) {
        let why = match self.listen {
            Some(_) => self.too_many_cpus(),
            None => self
                .foreign_option()
                .or_else(|| self.lonely_device())
                .or_else(|| self.too_many_cpus())
                .or_else(|| self.rungs().iter().find_map(|rung| self.plan(*rung).check().err())),
        };
        if let Some(why) = why {
            let mut command = Self::augment_args(Command::new("tickgate lat"));
            command.error(ErrorKind::ArgumentConflict, why).exit();
        }
    }

    /// A device has an address of its own, and loopback's are none of it.
    fn lonely_device(&self) -> Option<String> {
        let is_alone = self.device.is_some() && self.connect.is_none();
        is_alone.then(|| "--device wants the other end in another process: --connect here, --listen there".to_owned())
    }

    /// An option that the only link does not have.
    fn foreign_option(&self) -> Option<String> {
        let link = self.link?;
        let (tcp, ltp) = (!link.is_tuned_tcp(), !link.is_ltp());
        [
            (self.rto_min.is_some() && tcp, "--rto-min", "tcp and tcp-bare"),
            (self.redundancy.is_some() && ltp, "--redundancy", "ltp and afxdp"),
            (self.header.is_some() && ltp, "--header", "ltp and afxdp"),
            (self.key && ltp, "--key", "ltp and afxdp"),
            (
                self.device.is_some() && !link.is_roce(),
                "--device",
                "roce, roce-send and roce-read",
            ),
        ]
        .into_iter()
        .find(|(is_foreign, ..)| *is_foreign)
        .map(|(_, option, links)| format!("{option} is of {links}: {} has no such option", link.name()))
    }

    /// More CPUs than this process has ends.
    fn too_many_cpus(&self) -> Option<String> {
        let ends = if self.listen.or(self.connect).is_some() { 1 } else { 2 };
        let how = [
            "give the CPU of this end: --cpu N",
            "give one CPU or two: --cpu NEAR,FAR",
        ];
        (self.cpu.len() > ends).then(|| how[ends - 1].to_owned())
    }

    /// What is measured, in the order of the ladder.
    pub(super) fn rungs(&self) -> Vec<Rung> {
        let all = || Rung::ALL.into_iter().filter(|rung| rung.has_stream() || !self.one_way);
        self.link.map_or_else(|| all().collect(), |link| vec![link])
    }

    /// How often each link has its turn.
    pub(super) const fn rounds(&self) -> u64 {
        if self.all { ROUNDS } else { 1 }
    }

    /// One round of a link.
    pub(super) fn plan(&self, link: Rung) -> Plan {
        Plan {
            version: plan::VERSION,
            link,
            mode: self.mode(),
            size: self.size,
            span_ns: self.seconds.0 / self.rounds(),
            rto_min: link.is_tuned_tcp().then_some(self.rto_min.unwrap_or(RtoMin::Lowest)),
            ltp: link.is_ltp().then(|| LtpOptions {
                redundancy: self.redundancy.unwrap_or_default(),
                header: self.header.unwrap_or_default(),
                has_key: self.key,
            }),
            boot_id: plan::boot_id(),
            near_port: 0,
            roce: None,
            device: self.device,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        let interval_ns = self.rate.map(|rate| (1_000_000_000 + rate / 2) / rate);
        match (self.one_way, interval_ns) {
            (true, interval_ns) => Mode::OneWay { interval_ns },
            (false, Some(interval_ns)) => Mode::OpenLoop { interval_ns },
            (false, None) => Mode::PingPong,
        }
    }
}

fn size(text: &str) -> Result<usize, String> {
    let (least, most) = (measure::MESSAGE_LENGTH_MIN, measure::MESSAGE_LENGTH_MAX);
    match text.parse() {
        Ok(size) if (least..=most).contains(&size) => Ok(size),
        _ => Err(format!("a number from {least} to {most}")),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "wanted is IP:PORT, as in 10.0.0.2:7300".to_owned())
}

fn device(text: &str) -> Result<DeviceName, &'static str> {
    text.parse()
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= plan::SPAN_MAX.0 as f64 / 1e9 => {
            let span = std::time::Duration::from_secs_f64(seconds);
            Ok(Duration(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
        }
        _ => Err("a number above 0, at most 86400".to_owned()),
    }
}
