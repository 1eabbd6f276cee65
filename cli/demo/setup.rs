//! The configs of the demo: the same files that the processes read, with free ports and the user's instruments filled in.

use crate::Failure;
use crate::output::note;
use feeds::instruments::{self, InstrumentRow};
use feeds::{BinaryFile, Inspection};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use types::Symbol;

/// Where everything is for one run.
pub(super) struct Setup {
    /// Journals, recordings and configs of the run.
    pub(super) folder: PathBuf,
    /// The feed that is replayed.
    pub(super) feed: PathBuf,
    /// The instruments, as `instruments.csv` has them.
    pub(super) instruments: Vec<InstrumentRow>,
    pub(super) ports: Ports,
}

/// Addresses of one run, all on loopback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) fix: SocketAddr,
    pub(super) native: SocketAddr,
    pub(super) native_link: SocketAddr,
    pub(super) feed: SocketAddr,
    pub(super) prices: SocketAddr,
    pub(super) ticks: SocketAddr,
    pub(super) history: SocketAddr,
    pub(super) history_requests: SocketAddr,
    pub(super) venue: SocketAddr,
    /// Of gateway and exchange, for a link over RoCEv2: it has one port, and each end an address of its own.
    pub(super) roce: [IpAddr; 2],
}

/// The link between gateway and exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum LinkKind {
    /// LTP over UDP.
    Ltp,
    /// Tuned TCP.
    Tcp,
    /// RoCEv2 over UDP, in user space.
    Roce,
}

/// What judges orders before the gateway's risk checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum PrefilterKind {
    /// The shard's own filter alone.
    Software,
    /// The RTL in simulation before it.
    Rtl,
    /// The program in the kernel before it.
    Xdp,
}

/// The sample feed, part of the program: the demo needs no other file.
const SAMPLE: &[u8] = include_bytes!("../../feeds/sample/sample.itch.gz");
const SAMPLE_INSTRUMENTS: &str = include_str!("../../configs/instruments.csv");

/// Orders that one client may send in a run.
pub(super) const MAX_ORDERS: usize = 100_000;

/// Lots of the one order that is meant to be refused.
const OVERSIZE_LOTS: u64 = 1_000_000;

impl Setup {
    /// A folder with the feed and the instruments of a run.
    pub(super) fn new(folder: PathBuf, feed: Option<&Path>, symbols: &[Symbol]) -> Result<Self, Failure> {
        // One run, one folder: what an earlier run left would be recovered, and counted twice.
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::new(format!("clearing {}: {error}", folder.display())));
            }
            _ => {}
        }
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::new(format!("making {}: {error}", folder.display())))?;
        let path = folder.join("instruments.csv");
        let (feed, rows) = match feed {
            None => {
                let feed = folder.join("sample.itch.gz");
                std::fs::write(&feed, SAMPLE)?;
                (feed, instruments::parse(SAMPLE_INSTRUMENTS, "configs/instruments.csv")?)
            }
            Some(feed) => (feed.to_owned(), of_feed(feed)?),
        };
        let rows = chosen(rows, symbols)?;
        instruments::write(&rows, std::fs::File::create(&path)?)?;
        Ok(Self {
            folder,
            feed,
            instruments: rows,
            ports: Ports::find()?,
        })
    }

    /// `gateway.toml`.
    pub(super) fn gateway(
        &self,
        link: LinkKind,
        prefilter: PrefilterKind,
        shard_cpu: Option<usize>,
        other_cpu: Option<usize>,
        spins: bool,
    ) -> String {
        let Ports {
            fix,
            native,
            native_link,
            feed,
            prices,
            venue,
            roce: [here, there],
            ..
        } = self.ports;
        let cpu = shard_cpu.map_or_else(String::new, |cpu| format!("cpu = {cpu}"));
        let drainer = other_cpu.map_or_else(String::new, |cpu| format!("drainer_cpu = {cpu}"));
        let idle = if spins { "spin" } else { "backoff" };
        let mut text = format!(
            r#"instruments = "instruments.csv"
trading_day = 20261130
[journal]
directory = "gateway-journal"
ring_bytes = 67_108_864
segment_bytes = 268_435_456
watermark = "appended"
{drainer}
[feed]
listen = "{prices}"
request = "{feed}"
[[shards]]
{cpu}
idle = "{idle}"
fix_listen = "{fix}"
native_listen = "{native}"
[[venues]]
name = "sim"
[[venues.links]]
shard = 0
transport = "{transport}"
session = 1
peer = "{venue}"
window_messages = 4096
cancel_reserve_messages = 512
heartbeat_ms = 10
dead_after_ms = 1000
{more}[risk]
mark_every_ms = 1_000
[risk.classes.default]
max_quantity_lots = 10_000
max_notional = "100000000"
collar = {{ basis_points = 1000 }}
reference_max_age_ms = 60_000
reference_missing = "master"
market_orders = true
[capacity]
open_orders = 65_536
positions = 4_096
own_books = 4_096
crossing_messages = 1_024
[prefilter]
{prefilter}"#,
            prefilter = prefilter.table(),
            transport = link.name(),
            more = link.more([here, there]),
        );
        let native_session = if prefilter.is_before_the_socket() {
            format!("{LINK_SESSION}listen = \"{native_link}\"\n")
        } else {
            NATIVE_SESSION.to_owned()
        };
        for (id, session) in [(1, FIX_SESSION), (2, &native_session)] {
            // Writing to a String does not fail.
            let _: Result<_, _> = write!(
                text,
                "[[accounts]]\nid = {id}\nmax_quantity_lots = 10_000\nmax_notional = \"100000000\"\n\
                 max_open_orders = 20_000\nmax_open_notional = \"9000000000\"\n{session}"
            );
        }
        text
    }

    /// `exchange.toml`.
    pub(super) fn exchange(&self, link: LinkKind) -> String {
        let Ports {
            feed,
            prices,
            ticks,
            history,
            history_requests,
            venue,
            roce: [here, there],
            ..
        } = self.ports;
        format!(
            r#"instruments = "instruments.csv"
trading_day = 20261130
self_match = "allow"
idle = "spin"
[capacity]
orders = 524_288
levels = 131_072
client_orders = 65_536
special_orders = 4_096
[feed]
id = 1
local = "{feed}"
destinations = ["{prices}", "{ticks}"]
retransmit_messages = 262_144
heartbeat_ms = 100
[history]
listen = "{history}"
request = "{history_requests}"
window_messages = 4_096
[journal]
directory = "exchange-journal"
ring_bytes = 67_108_864
segment_bytes = 268_435_456
watermark = "appended"
[[sessions]]
id = 1
transport = "{transport}"
listen = "{venue}"
window_messages = 65_536
heartbeat_ms = 10
dead_after_ms = 1000
{more}"#,
            transport = link.name(),
            more = link.more([there, here]),
        )
    }

    /// `client-fix.toml`: it trades the first half of the instruments.
    pub(super) fn fix_client(&self) -> String {
        let login = "[fix]\nsender_comp_id = \"TRADER\"\ntarget_comp_id = \"TICKGATE\"\nheartbeat_s = 30";
        self.client(self.ports.fix, 1, login, &self.instruments[..self.half()])
    }

    /// `client-native.toml`: it trades the second half, so that no tick triggers both.
    pub(super) fn native_client(&self, prefilter: PrefilterKind) -> String {
        let (gateway, login) = if prefilter.is_before_the_socket() {
            (self.ports.native_link, CLIENT_LINK)
        } else {
            (self.ports.native, "[native]\nuser = \"trader\"\npassword = \"secret\"")
        };
        let rows = if self.instruments.len() == 1 {
            &self.instruments[..]
        } else {
            &self.instruments[self.half()..]
        };
        self.client(gateway, 2, login, rows)
    }

    fn half(&self) -> usize {
        self.instruments.len().div_ceil(2)
    }

    fn client(&self, gateway: SocketAddr, session: u16, login: &str, rows: &[InstrumentRow]) -> String {
        let Ports { ticks, feed, .. } = self.ports;
        let symbols = rows
            .iter()
            .map(|row| format!("\"{}\"", row.symbol))
            .collect::<Vec<_>>()
            .join(", ");
        format!(
            r#"instruments = "instruments.csv"
[gateway]
address = "{gateway}"
session = {session}
account = {session}
{login}
[feed]
listen = "{ticks}"
request = "{feed}"
id = 1
[load]
symbols = [{symbols}]
seed = {session}
orders_max = {MAX_ORDERS}
every_ticks = 2
ioc_percent = 60
lots_max = 5
rest_ms = 200
oversize_lots = {OVERSIZE_LOTS}
"#
        )
    }
}

const FIX_SESSION: &str = r#"[[sessions]]
id = 1
protocol = "fix"
shard = 0
client_comp_id = "TRADER"
our_comp_id = "TICKGATE"
accounts = [1]
owner = 1
max_open_orders = 20_000
resend_messages = 65_536
cl_ord_ids = 524_288
send_buffer_bytes = 4_194_304
"#;

const NATIVE_SESSION: &str = r#"[[sessions]]
id = 2
protocol = "native"
shard = 0
user = "trader"
accounts = [2]
owner = 2
max_open_orders = 20_000
resend_messages = 65_536
send_buffer_bytes = 4_194_304
"#;

/// The native session when its orders come by datagrams. Its client may leave a window unacknowledged, of which each open
/// order has eight.
const LINK_SESSION: &str = r#"[[sessions]]
id = 2
protocol = "native"
shard = 0
user = "trader"
accounts = [2]
owner = 2
max_open_orders = 4_096
[sessions.link]
window_messages = 32_768
heartbeat_ms = 10
dead_after_ms = 1000
"#;

const CLIENT_LINK: &str = r#"[link]
journal = "client-journal"
window_messages = 32_768
heartbeat_ms = 10
dead_after_ms = 1000
"#;

impl PrefilterKind {
    /// Whether it judges datagrams, so that the native client must send some.
    pub(super) fn is_before_the_socket(self) -> bool {
        self == Self::Xdp
    }

    /// As the config names it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Software => "software",
            Self::Rtl => "rtl",
            Self::Xdp => "xdp",
        }
    }

    /// `[prefilter]`, without its head.
    const fn table(self) -> &'static str {
        match self {
            Self::Software => "backend = \"software\"\n",
            Self::Rtl => "backend = \"rtl\"\non_fault = \"reject\"\n",
            Self::Xdp => {
                "backend = \"xdp\"\non_fault = \"reject\"\n[prefilter.xdp]\ninterface = \"lo\"\nmode = \"generic\"\n"
            }
        }
    }
}

impl LinkKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Ltp => "ltp",
            Self::Tcp => "tcp",
            Self::Roce => "roce",
        }
    }

    /// What a link has over this transport alone.
    fn more(self, [local, peer]: [IpAddr; 2]) -> String {
        match self {
            Self::Ltp => String::new(),
            Self::Tcp => "user = \"gate\"\npassword = \"secret\"\n".to_owned(),
            Self::Roce => format!("roce = {{ local = \"{local}\", peer = \"{peer}\" }}\n"),
        }
    }

    /// For people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Ltp => "LTP over UDP",
            Self::Tcp => "tuned TCP",
            Self::Roce => "RoCEv2 over UDP",
        }
    }
}

impl Ports {
    /// Ports that are free now. Each is held until all are found, so that none is found twice.
    fn find() -> Result<Self, Failure> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let no_port = |error| Failure::new(format!("finding free ports on 127.0.0.1: {error}"));
        let tcp = (0..2)
            .map(|_| TcpListener::bind(any))
            .collect::<Result<Vec<_>, _>>()
            .map_err(no_port)?;
        let udp = (0..7)
            .map(|_| UdpSocket::bind(any))
            .collect::<Result<Vec<_>, _>>()
            .map_err(no_port)?;
        let tcp = tcp
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<Vec<_>, _>>()
            .map_err(no_port)?;
        let udp = udp
            .iter()
            .map(UdpSocket::local_addr)
            .collect::<Result<Vec<_>, _>>()
            .map_err(no_port)?;
        Ok(Self {
            fix: tcp[0],
            native: tcp[1],
            feed: udp[0],
            prices: udp[1],
            ticks: udp[2],
            history: udp[3],
            history_requests: udp[4],
            venue: udp[5],
            native_link: udp[6],
            roce: crate::loopback::free_for_roce().map_err(no_port)?,
        })
    }
}

/// The instruments of a user's feed.
fn of_feed(path: &Path) -> Result<Vec<InstrumentRow>, Failure> {
    let mut feed = BinaryFile::open(path)?;
    let mut inspection = Inspection::new(None);
    while let Some(message) = feed.next_message()? {
        inspection.on_message(message);
    }
    let (rows, left_out) = inspection.instrument_rows("default", "sim");
    if rows.is_empty() {
        return Err(Failure::new(format!(
            "{}: no instrument with a price is in it",
            path.display()
        )));
    }
    if left_out > 0 {
        note!("tickgate: {left_out} instruments of the feed have no price and are left out");
    }
    Ok(rows)
}

/// The rows of the symbols asked for; all, when none was named.
fn chosen(rows: Vec<InstrumentRow>, symbols: &[Symbol]) -> Result<Vec<InstrumentRow>, Failure> {
    if symbols.is_empty() {
        return Ok(rows);
    }
    if let Some(missing) = symbols
        .iter()
        .find(|symbol| rows.iter().all(|row| row.symbol != **symbol))
    {
        return Err(Failure::new(format!(
            "{missing} is not in the feed; `tickgate replay FILE` lists what is"
        )));
    }
    Ok(rows.into_iter().filter(|row| symbols.contains(&row.symbol)).collect())
}
