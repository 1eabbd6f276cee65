//! A whole market as processes: configs in a folder of their own, free ports, the programs that run on them, and what their
//! journals say afterwards.

use gateway::record::Record;
use journal::{JournalError, JournalReader};
use proto::native;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use types::{ClientOrderId, NewOrder, Request, SessionId};

/// The session of the client that comes in over a link, and its account.
pub(crate) const LINKED: u16 = 5;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How far the disk should be behind when a machine fails, bytes of the journal, and how long that is waited for.
const LOST_BYTES: u64 = 2_048;
const MOMENT: Duration = Duration::from_millis(500);

/// Pause between two looks at something that is awaited.
const LOOK: Duration = Duration::from_millis(5);

/// The folder, the ports and the shape of one market.
pub(crate) struct Market {
    folder: TempDir,
    /// Shards of the gateway.
    pub(crate) shards: usize,
    /// `ltp`, `tcp` or `roce`.
    pub(crate) transport: &'static str,
    /// Whether the exchange plays a recording.
    pub(crate) has_history: bool,
    /// By shard.
    pub(crate) fix: Vec<SocketAddr>,
    /// By shard.
    pub(crate) native: Vec<SocketAddr>,
    /// Where the native client of [`LINKED`] comes in over LTP.
    pub(crate) client_link: SocketAddr,
    /// By shard: the exchange's end of the venue link.
    venues: Vec<SocketAddr>,
    /// By shard: the addresses of gateway and exchange where the venue link is over RoCEv2.
    pub(crate) roce: Vec<[IpAddr; 2]>,
    /// The RDMA devices that have these addresses, where it is by verbs.
    devices: Option<[&'static str; 2]>,
    feed: SocketAddr,
    prices: SocketAddr,
    /// Where the two order clients hear the feed.
    ticks: [SocketAddr; 2],
    pub(crate) history: SocketAddr,
    history_requests: SocketAddr,
    /// `None`: all on this host.
    hosts: Option<Hosts>,
}

/// Where the exchange runs when it is not beside the rest.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// The network namespace of the exchange.
    pub(crate) namespace: String,
    /// The address of everything else on the wire between them.
    pub(crate) here: IpAddr,
    /// The address of the exchange.
    pub(crate) there: IpAddr,
}

/// A running program, and what it has printed. It is killed when the test ends, however it ends.
pub(crate) struct Program {
    name: String,
    child: Child,
    log: PathBuf,
}

/// An address of this host that nobody has, for TCP or UDP, and that nobody is given by chance: a program that is away for a
/// moment finds its port free again. (The kernel gives each socket without a port one of its own range, and the port of a
/// program that restarts would be as good as any.)
pub(crate) fn free_port() -> SocketAddr {
    /// Below the range of any kernel that is not told otherwise (net.ipv4.ip_local_port_range).
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Tests of other processes begin elsewhere.
    let start = std::process::id().wrapping_mul(2_654_435_761) % COUNT;
    for _ in 0..COUNT {
        let place = (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + place).expect("below 32,000");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port is free");
}

/// An address of this host at which nobody speaks RoCEv2: it has one port, so each end has an address of its own.
pub(crate) fn free_address() -> IpAddr {
    /// All of 127.0.0.0/8 is this host; these begin with 127.64.
    const FIRST: u32 = 0x7f40_0000;
    const COUNT: u32 = 1 << 22;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(2_654_435_761) % COUNT;
    for _ in 0..COUNT {
        let place = (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let address = IpAddr::from((FIRST + place).to_be_bytes());
        if UdpSocket::bind((address, 4_791)).is_ok() {
            return address;
        }
    }
    panic!("no address is free");
}

impl Market {
    /// A market of `shards` shards with the venue link over `transport`, its configs written.
    pub(crate) fn new(shards: usize, transport: &'static str) -> Self {
        Self::with(shards, transport, false, None, None)
    }

    /// One with a recording.
    pub(crate) fn with_history() -> Self {
        Self::with(1, "ltp", true, None, None)
    }

    /// One of a single shard, with the exchange in another network namespace.
    pub(crate) fn in_namespaces(hosts: Hosts, transport: &'static str) -> Self {
        Self::with(1, transport, false, Some(hosts), None)
    }

    /// One of a single shard, with the venue link over RoCEv2 by these RDMA devices of gateway and exchange.
    pub(crate) fn on_devices(devices: [(&'static str, IpAddr); 2]) -> Self {
        Self::with(1, "roce", false, None, Some(devices))
    }

    fn with(
        shards: usize,
        transport: &'static str,
        has_history: bool,
        hosts: Option<Hosts>,
        devices: Option<[(&'static str, IpAddr); 2]>,
    ) -> Self {
        let fix = (0..shards).map(|_| free_port()).collect();
        let native = (0..shards).map(|_| free_port()).collect();
        let venues = (0..shards).map(|_| free_port()).collect::<Vec<_>>();
        // A port that is free on this host is taken for free on the other.
        let on = |ip: Option<IpAddr>, address: SocketAddr| ip.map_or(address, |ip| SocketAddr::new(ip, address.port()));
        let (here, there) = (
            hosts.as_ref().map(|hosts| hosts.here),
            hosts.as_ref().map(|hosts| hosts.there),
        );
        let market = Self {
            folder: tempfile::tempdir().expect("a folder"),
            shards,
            transport,
            has_history,
            fix,
            native,
            client_link: free_port(),
            venues: venues.into_iter().map(|venue| on(there, venue)).collect(),
            roce: match devices {
                Some(devices) => vec![devices.map(|(_, address)| address)],
                None => (0..shards)
                    .map(|_| [here, there].map(|ip| ip.unwrap_or_else(free_address)))
                    .collect(),
            },
            devices: devices.map(|devices| devices.map(|(name, _)| name)),
            feed: on(there, free_port()),
            prices: on(here, free_port()),
            ticks: [on(here, free_port()), on(here, free_port())],
            history: free_port(),
            history_requests: free_port(),
            hosts,
        };
        market.write("instruments.csv", &market.instruments());
        let keys = market.write("keys.txt", "7 000102030405060708090a0b0c0d0e0f\n");
        fs::set_permissions(keys, Permissions::from_mode(0o600)).expect("its own file");
        market.write("gateway.toml", &market.gateway_config());
        market.write("exchange.toml", &market.exchange_config());
        market
    }

    /// The exchange's end of a shard's venue link.
    pub(crate) fn venue(&self, shard: usize) -> SocketAddr {
        self.venues[shard]
    }

    /// A file of the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// Starts the program with a file as its log.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Program {
        self.start_command(name, Command::new(env!("CARGO_BIN_EXE_tickgate")).args(arguments))
    }

    /// Starts any command with a file as its log.
    pub(crate) fn start_command(&self, name: &str, command: &mut Command) -> Program {
        let log = self.path(&format!("{name}.log"));
        let file = File::create(&log).expect("the log can be written");
        let child = command
            .current_dir(self.folder.path())
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .spawn()
            .expect("the program starts");
        Program {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// Changes a config before its program starts.
    pub(crate) fn change(&self, config: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(config)).expect("a config");
        let changed = text.replace(from, to);
        assert_ne!(text, changed);
        self.write(config, &changed);
    }

    /// The exchange, once it runs.
    pub(crate) fn exchange(&self, log: &str) -> Program {
        self.exchange_with(log, &[])
    }

    /// The exchange with more arguments, once it runs.
    pub(crate) fn exchange_with(&self, log: &str, arguments: &[&str]) -> Program {
        let arguments = [&["exchange", "-c", "exchange.toml"], arguments].concat();
        let mut exchange = match &self.hosts {
            None => self.start(log, &arguments),
            Some(hosts) => {
                // `ip` becomes the program, so that a kill reaches it.
                let enter = ["netns", "exec", &hosts.namespace, env!("CARGO_BIN_EXE_tickgate")];
                self.start_command(log, Command::new("ip").args(enter).args(arguments))
            }
        };
        exchange.wait_for("running; interrupt to stop");
        exchange
    }

    /// The gateway, once it runs and its venue links are up.
    pub(crate) fn gateway(&self, log: &str) -> Program {
        self.gateway_with(log, &[])
    }

    /// The gateway with more arguments, once it runs and its venue links are up.
    pub(crate) fn gateway_with(&self, log: &str, arguments: &[&str]) -> Program {
        let mut gateway = self.start(log, &[&["gateway", "-c", "gateway.toml"], arguments].concat());
        gateway.wait_for("running; interrupt to stop");
        gateway.wait_for_times("venue link is up", self.shards);
        gateway
    }

    /// New orders that the gateway's shard took out of its clients' messages, and those that it sent to its venue.
    pub(crate) fn orders_of_gateway(&self, shard: usize) -> (Vec<(SessionId, ClientOrderId)>, Vec<ClientOrderId>) {
        let directory = self.path(&format!("gateway-journal/shard-{shard}"));
        let (mut taken, mut sent) = (Vec::new(), Vec::new());
        read(&directory, |kind, payload| {
            match Record::decode(kind, payload).expect("a record of the gateway") {
                Record::ClientMessage { session, message } => {
                    if let Ok(Request::New(order)) = native::decode_request(message) {
                        taken.push((session, order.client_order_id));
                    }
                }
                Record::VenueOutput { message, .. } => {
                    if let Ok(Request::New(order)) = native::decode_request(message) {
                        sent.push(order.client_order_id);
                    }
                }
                _ => {}
            }
        });
        (taken, sent)
    }

    /// The numbers of the new orders that the exchange received.
    pub(crate) fn orders_of_exchange(&self) -> Vec<ClientOrderId> {
        let orders = self.requests_of_exchange().into_iter();
        orders.map(|order| order.client_order_id).collect()
    }

    /// The new orders that the exchange received.
    pub(crate) fn requests_of_exchange(&self) -> Vec<NewOrder> {
        let orders = self.taken_by_exchange().into_iter();
        orders.map(|(order, _)| order).collect()
    }

    /// How many of them it had no room for.
    pub(crate) fn refused_by_exchange(&self) -> usize {
        let orders = self.taken_by_exchange().into_iter();
        orders.filter(|(_, has_room)| !has_room).count()
    }

    /// The new orders that the exchange received, each with whether there was room for what may come of it.
    fn taken_by_exchange(&self) -> Vec<(NewOrder, bool)> {
        /// Before the message: session u16, number u64, reason u16.
        const HEAD: usize = 12;
        const REASON: usize = 10;
        let mut received = Vec::new();
        read(&self.path("exchange-journal"), |kind, payload| {
            if kind == proto::journal::Kind::ClientMessage as u16
                && let Some((head, message)) = payload.split_first_chunk::<HEAD>()
                && let Ok(Request::New(order)) = native::decode_request(message)
            {
                received.push((order, head[REASON..] == [0; HEAD - REASON]));
            }
        });
        received
    }

    /// Replays the journal of a shard with the user's command.
    pub(crate) fn assert_replay_is_identical(&self, shard: usize) {
        let shard = shard.to_string();
        let output = self.run(&["journal", "replay", "-c", "gateway.toml", "--shard", &shard]);
        assert!(output.0.success(), "{}", output.1);
        assert!(output.1.starts_with("identical: "), "{}", output.1);
    }

    /// Runs the program to its end; gives its status and all that it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> (ExitStatus, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_tickgate"))
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("the program starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status, String::from_utf8_lossy(&text).into_owned())
    }

    fn instruments(&self) -> String {
        let mut text = "id,symbol,tick_size,lot_size,reference_price,limit_class,shard,venue\n".to_owned();
        for (id, symbol, price) in [
            (1, "ALFA", "101.37"),
            (2, "BRVO", "42.18"),
            (3, "CHRL", "256.8"),
            (4, "DLTA", "18.72"),
        ] {
            // Writing to a String does not fail.
            let _: Result<_, _> = writeln!(
                text,
                "{id},{symbol},0.01,1,{price},default,{},sim",
                (id - 1) % self.shards
            );
        }
        text
    }

    /// `gateway.toml`: a native maker and taker and a FIX client on shard 0; no two shards pinned, none spinning.
    pub(crate) fn gateway_config(&self) -> String {
        let Self {
            prices,
            feed,
            transport,
            ..
        } = self;
        let mut text = format!(
            r#"instruments = "instruments.csv"
trading_day = 20261130
[journal]
directory = "gateway-journal"
ring_bytes = 8_388_608
segment_bytes = 16_777_216
watermark = "appended"
[feed]
listen = "{prices}"
request = "{feed}"
"#
        );
        for (fix, native) in self.fix.iter().zip(&self.native) {
            let _: Result<_, _> = write!(
                text,
                "[[shards]]\nidle = \"backoff\"\nfix_listen = \"{fix}\"\nnative_listen = \"{native}\"\n"
            );
        }
        text.push_str("[[venues]]\nname = \"sim\"\n");
        for (shard, venue) in self.venues.iter().enumerate() {
            let session = shard + 1;
            let _: Result<_, _> = write!(
                text,
                r#"[[venues.links]]
shard = {shard}
transport = "{transport}"
session = {session}
peer = "{venue}"
window_messages = 4_096
cancel_reserve_messages = 256
heartbeat_ms = 10
dead_after_ms = 500
{more}"#,
                more = self.link_more(shard, 0),
            );
        }
        for id in 1..=LINKED {
            let _: Result<_, _> = write!(
                text,
                r#"[[accounts]]
id = {id}
max_quantity_lots = 10_000
max_notional = "100000000"
max_open_orders = 20_000
max_open_notional = "9000000000"
"#
            );
        }
        text.push_str(SESSIONS);
        let _: Result<_, _> = write!(
            text,
            r#"[[sessions]]
id = {LINKED}
protocol = "native"
shard = 0
user = "linked"
accounts = [{LINKED}]
owner = {LINKED}
max_open_orders = 2_000
[sessions.link]
listen = "{}"
window_messages = 16_384
heartbeat_ms = 10
dead_after_ms = 500
key_id = 7
key_file = "keys.txt"
"#,
            self.client_link
        );
        if self.shards > 1 {
            text.push_str(SESSION_OF_SHARD_1);
        }
        text.push_str(RISK);
        text
    }

    fn exchange_config(&self) -> String {
        let Self {
            feed,
            prices,
            ticks: [one, two],
            transport,
            history,
            history_requests,
            ..
        } = self;
        let mut text = format!(
            r#"instruments = "instruments.csv"
trading_day = 20261130
self_match = "allow"
idle = "backoff"
[capacity]
orders = 262_144
levels = 65_536
client_orders = 16_384
special_orders = 64
[feed]
id = 1
local = "{feed}"
destinations = ["{prices}", "{one}", "{two}"]
retransmit_messages = 65_536
heartbeat_ms = 100
[journal]
directory = "exchange-journal"
ring_bytes = 8_388_608
segment_bytes = 16_777_216
watermark = "appended"
"#
        );
        if self.has_history {
            let _: Result<_, _> = write!(
                text,
                "[history]\nlisten = \"{history}\"\nrequest = \"{history_requests}\"\nwindow_messages = 4_096\n"
            );
        }
        for (shard, venue) in self.venues.iter().enumerate() {
            let session = shard + 1;
            let _: Result<_, _> = write!(
                text,
                r#"[[sessions]]
id = {session}
transport = "{transport}"
listen = "{venue}"
window_messages = 16_384
heartbeat_ms = 10
dead_after_ms = 500
{more}"#,
                more = self.link_more(shard, 1),
            );
        }
        text
    }

    /// What a link has over this transport alone: at the gateway (0) or at the exchange (1).
    fn link_more(&self, shard: usize, end: usize) -> String {
        let session = shard + 1;
        let [local, peer] = [self.roce[shard][end], self.roce[shard][1 - end]];
        match self.transport {
            "tcp" => format!("user = \"gate{session}\"\npassword = \"secret\"\n"),
            "roce" => {
                let device = self.devices.map(|devices| format!(", device = \"{}\"", devices[end]));
                let device = device.unwrap_or_default();
                format!("roce = {{ local = \"{local}\", peer = \"{peer}\"{device} }}\n")
            }
            _ => String::new(),
        }
    }

    /// The config of an order client of the program: FIX or native, each on two instruments of its own.
    pub(crate) fn client_config(&self, is_fix: bool, orders: usize) -> String {
        let (address, session, login, symbols, ticks) = if is_fix {
            let login = "[fix]\nsender_comp_id = \"TRADER\"\ntarget_comp_id = \"TICKGATE\"\nheartbeat_s = 30";
            (self.fix[0], 1, login, r#""ALFA", "BRVO""#, self.ticks[0])
        } else {
            let login = "[native]\nuser = \"taker\"\npassword = \"secret\"";
            (self.native[0], 2, login, r#""CHRL", "DLTA""#, self.ticks[1])
        };
        let feed = self.feed;
        format!(
            r#"instruments = "instruments.csv"
[gateway]
address = "{address}"
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
orders_max = {orders}
every_ticks = 10
ioc_percent = 60
lots_max = 5
rest_ms = 20
oversize_lots = 1_000_000
"#
        )
    }
}

const SESSIONS: &str = r#"[[sessions]]
id = 1
protocol = "fix"
shard = 0
client_comp_id = "TRADER"
our_comp_id = "TICKGATE"
accounts = [1]
owner = 1
max_open_orders = 2_000
resend_messages = 16_384
cl_ord_ids = 65_536
send_buffer_bytes = 1_048_576
[[sessions]]
id = 2
protocol = "native"
shard = 0
user = "taker"
accounts = [2]
owner = 2
max_open_orders = 2_000
resend_messages = 4_096
send_buffer_bytes = 1_048_576
[[sessions]]
id = 3
protocol = "native"
shard = 0
user = "maker"
accounts = [3]
owner = 3
max_open_orders = 2_000
resend_messages = 65_536
send_buffer_bytes = 1_048_576
"#;

const SESSION_OF_SHARD_1: &str = r#"[[sessions]]
id = 4
protocol = "native"
shard = 1
user = "other"
accounts = [4]
owner = 4
max_open_orders = 2_000
resend_messages = 65_536
send_buffer_bytes = 1_048_576
"#;

const RISK: &str = r#"[risk]
mark_every_ms = 1_000
[risk.classes.default]
max_quantity_lots = 10_000
max_notional = "100000000"
collar = { basis_points = 1000 }
reference_max_age_ms = 60_000
reference_missing = "master"
market_orders = true
[capacity]
open_orders = 8_192
positions = 256
own_books = 256
crossing_messages = 1_024
"#;

impl Program {
    /// All that it has printed so far.
    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.log).expect("the log can be read")
    }

    /// Waits until it has printed something.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_for_times(text, 1);
    }

    /// Waits until it has printed something so many times.
    pub(crate) fn wait_for_times(&mut self, text: &str, times: usize) {
        let start = Instant::now();
        loop {
            let printed = self.printed();
            if printed.matches(text).count() >= times {
                return;
            }
            let ended = self.child.try_wait().expect("a child");
            assert!(
                ended.is_none() && start.elapsed() < PATIENCE,
                "{} ({ended:?}) has not printed {text:?}:\n{printed}",
                self.name
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for its end by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{} does not end:\n{}",
                self.name,
                self.printed()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Ends it as a machine that fails would: no last words.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
    }

    /// The machine fails in mid-flow, after some while, and takes with it what the journal's ring has and the disk has not.
    /// Gives how many bytes of the journal that was.
    pub(crate) fn lose_machine(&mut self, after: Duration) -> u64 {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id())).expect("it runs");
        let mut paths = maps.lines().filter_map(|line| line.split_whitespace().last());
        let ring = paths
            .find(|path| path.starts_with("/dev/shm/tickgate-"))
            .expect("a ring");
        let file = File::open(ring).expect("the ring");
        // See `journal/src/ring.rs`: what is appended is told at word 8, what is written at word 16.
        let mark = |word: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, 8 * word).expect("the ring's head");
            u64::from_le_bytes(bytes)
        };
        let behind = || mark(8).saturating_sub(mark(16));
        let start = Instant::now();
        while start.elapsed() < after || (behind() < LOST_BYTES && start.elapsed() < MOMENT) {}
        self.kill();
        let lost = behind();
        fs::remove_file(ring).expect("the ring");
        lost
    }

    /// Asks it to end, as a user does, and sees that it does so in good order.
    pub(crate) fn stop(&mut self) {
        let asked = Command::new("sh")
            .args(["-c", &format!("kill -TERM {}", self.child.id())])
            .status()
            .expect("a shell");
        assert!(asked.success());
        let status = self.wait();
        assert!(status.success(), "{}: {status}\n{}", self.name, self.printed());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // In good order if it can: a program that is killed leaves its journal's ring in memory for the next start.
        self.interrupt();
        // It may have ended long ago.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            // The folder may be gone before it.
            let printed = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("{} had printed:\n{printed}", self.name);
        }
    }
}

impl Program {
    /// Asks it to end, and gives it two seconds.
    fn interrupt(&mut self) {
        let asked = Command::new("kill")
            .arg("-INT")
            .arg(self.child.id().to_string())
            .stderr(Stdio::null())
            .status();
        let deadline = Instant::now() + Duration::from_secs(2);
        while asked.is_ok() && Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Reads a journal, also while it is written.
fn read(directory: &Path, mut on_record: impl FnMut(u16, &[u8])) {
    let mut reader = JournalReader::open(directory).expect("a journal");
    loop {
        match reader.next_record() {
            Ok(Some(record)) => on_record(record.kind, record.payload),
            Ok(None) => break,
            // It was written faster than it was read.
            Err(JournalError::Outrun) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The numbers as a set; a test fails when one is there twice.
pub(crate) fn distinct<T: Ord + Copy + std::fmt::Debug>(numbers: &[T]) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for &number in numbers {
        assert!(set.insert(number), "{number:?} is there twice");
    }
    set
}
