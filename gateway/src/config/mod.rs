//! The gateway's config: TOML as it is written (`raw`), and the checked form that the program uses.
//!
//! Limits have no silent defaults: a config without a risk limit does not load, and neither does one with a key that
//! nobody knows.

mod check;
mod client_link;
pub mod credentials;
mod drop_copy;
mod fix;
mod fnv;
mod left_out;
mod networks;
mod prefilter;
mod range;
mod raw;
mod risk;
mod sessions;
mod structure;
mod tls;

use crate::schedule::Schedule;
pub(crate) use check::trading_day;
pub use credentials::Credentials;
pub(crate) use credentials::Secret;
pub use left_out::LeftOut;
pub use networks::AllowList;
use orders::{OrdersConfig, SelfMatch};
pub use prefilter::{OnFault, PrefilterBackend, PrefilterConfig, XdpFilter, XdpMode};
use proto::fix::Version;
use proto::fix::dictionary::Dictionaries;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use structure::Structure;
pub(crate) use tls::Fingerprint;

use types::{AccountId, Duration, Instrument, InstrumentId, SessionId, ShardId, TradingDay, VenueId};

/// A config that was checked: every name is resolved, every number is in its range.
#[derive(Clone, Debug)]
pub struct Config {
    /// The instrument master, sorted by id.
    pub instruments: Vec<Instrument>,
    /// The names of the limit classes, by [`LimitClass`](types::LimitClass).
    pub classes: Vec<String>,
    /// The trading day that a new journal begins with.
    pub trading_day: TradingDay,
    /// The journal of each shard.
    pub journal: JournalConfig,
    /// The market-data feed for reference prices, if there is one.
    pub feed: Option<FeedConfig>,
    /// Passwords of users; empty when no file is named.
    pub credentials: Credentials,
    /// The door's own addresses, and who may come in at all.
    pub door: DoorConfig,
    /// Where operators come in; `None`: nowhere.
    pub control: Option<PathBuf>,
    /// Of TLS connections, where there are any.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The shards, by [`ShardId`].
    pub shards: Vec<ShardConfig>,
    /// The venues, by [`VenueId`].
    pub venues: Vec<VenueConfig>,
    /// The client sessions.
    pub sessions: Vec<SessionConfig>,
    /// The backend of the pre-filter.
    pub prefilter: PrefilterConfig,
    /// What messages of FIX sessions are checked against.
    pub dictionaries: Dictionaries,
    /// Messages that a ring between two shards holds.
    pub crossing_messages: usize,
    /// How often positions are valued anew: from the begin of one round over those of a shard to that of the next.
    pub mark_every: Duration,
    /// What the order logic of each shard is told, by [`ShardId`].
    pub orders: Vec<OrdersConfig>,
    /// Bytes that the order logic of all shards allocates for its tables.
    pub order_table_bytes: usize,
    /// All that decides but the limits: a journal is replayed only by a config with the same.
    pub structure: Structure,
}

/// `[journal]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalConfig {
    /// Where the shards' journals are: `shard-N` below it.
    pub directory: PathBuf,
    /// Bytes of the ring in shared memory, a shard.
    pub ring_bytes: usize,
    /// Bytes of a file on disk.
    pub segment_bytes: u64,
    /// How safe an output's record must be before it leaves.
    pub watermark: journal::Watermark,
    /// The CPU of the threads that write to disk; `None` lets the system choose.
    pub drainer_cpu: Option<usize>,
}

/// `[feed]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedConfig {
    /// Where MoldUDP64 packets arrive.
    pub listen: SocketAddr,
    /// Where gaps are asked for.
    pub request: SocketAddr,
    /// The CPU of the feed's thread; `None` lets the system choose.
    pub cpu: Option<usize>,
}

/// `[[shards]]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShardConfig {
    /// Its number: its place in the config.
    pub id: ShardId,
    /// The CPU it is pinned to; `None` leaves it unpinned.
    pub cpu: Option<usize>,
    /// What it does without work.
    pub idle: Idle,
    /// Where FIX clients connect.
    pub fix_listen: Option<SocketAddr>,
    /// Where FIX clients connect with TLS.
    pub fix_tls_listen: Option<SocketAddr>,
    /// Where native clients connect.
    pub native_listen: Option<SocketAddr>,
}

/// `[door]`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DoorConfig {
    /// Where FIX clients of any shard connect.
    pub fix_listen: Option<SocketAddr>,
    /// Where FIX clients of any shard connect with TLS.
    pub fix_tls_listen: Option<SocketAddr>,
    /// Where native clients of any shard connect.
    pub native_listen: Option<SocketAddr>,
    /// Addresses that clients may come from.
    pub allow: AllowList,
}

/// What a thread without work does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// It looks again at once: lowest latency, a whole core.
    Spin,
    /// It sleeps some ten microseconds at a time: for cores that are shared.
    Backoff,
}

/// `[[venues]]`.
#[derive(Clone, Debug)]
pub struct VenueConfig {
    /// Its number: its place in the config.
    pub id: VenueId,
    /// Its name in the instrument master and in routes.
    pub name: String,
    /// Whether the config says who has which order type; else the venue has all.
    pub states_order_types: bool,
    /// The link of each shard, by [`ShardId`].
    pub links: Vec<LinkConfig>,
}

/// `[[venues.links]]`.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The session the venue knows this shard by.
    pub session: SessionId,
    /// Places in its ring that orders leave free for cancels.
    pub cancel_reserve_messages: usize,
    /// What it runs over, and with which settings.
    pub settings: net::link::LinkConfig,
}

/// `[[sessions]]`; a template gives as many as it has instances.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Its number, the `session` of native messages.
    pub id: SessionId,
    /// The first instance of its template; `None` for a session that is written out.
    pub template: Option<SessionId>,
    /// The shard that serves it.
    pub shard: ShardId,
    /// The user that its client has to be, with a password; `None` when the client needs none.
    pub user: Option<User>,
    /// Addresses that its client may come from.
    pub allow: AllowList,
    /// SHA-256 of the certificate that its client has to have; `None` when it needs none of its own.
    pub client_certificate: Option<[u8; 32]>,
    /// When it may be used; `None` is always, and its numbers go on from day to day.
    pub schedule: Option<Arc<Schedule>>,
    /// Accounts whose reports it gets copies of; then it enters no orders.
    pub drop_copy: Vec<AccountId>,
    /// Numbered messages that are held in memory to be sent again. Of a link: those that its client may leave
    /// unacknowledged.
    pub resend_messages: usize,
    /// Bytes that may wait for a slow client. One that lets it fill is disconnected. 0 with a link, whose window it is.
    pub send_buffer_bytes: usize,
    /// The link of its own that its client comes in by; `None`: it comes in by the door, over TCP.
    pub link: Option<net::link::LinkConfig>,
    /// What its client speaks.
    pub protocol: ProtocolConfig,
}

/// The part of a session's config that depends on what its client speaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolConfig {
    /// FIX.
    Fix {
        /// CompID of the client: 49 of what it sends. `None` for an instance of a template: the first Logon of a new
        /// client says it, and the instance is that client's for the day.
        client_comp_id: Option<String>,
        /// CompID of the gateway: 56 of what the client sends.
        our_comp_id: String,
        /// Versions that the client may speak, at least one.
        versions: Vec<Version>,
        /// Whether each logon starts both numbers at 1, unasked.
        reset_on_logon: bool,
        /// Whether each Logon says which number is expected next (789), also to a client that does not say it.
        next_expected: bool,
        /// How many messages a client is asked for at a time when some are missing; 0 is all at once.
        resend_chunk: u64,
        /// ClOrdIDs that may be used in a day.
        cl_ord_ids: usize,
    },
    /// The native protocol, over SoupBinTCP or a link.
    Native {
        /// Whose session it is. Over SoupBinTCP the user name of the login, at most 6 bytes.
        user: String,
    },
}

/// Which users may log on to a session: Username (553) of a FIX Logon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum User {
    /// This one.
    Named(String),
    /// Every one of the credentials file.
    Any,
}

/// How long written records wait for company before they are synced, where outputs wait for the sync.
const DRAINER_SYNC_AFTER: std::time::Duration = std::time::Duration::from_millis(1);

/// Why a config does not load: the file, and what is wrong in it.
#[derive(Debug)]
pub struct ConfigError(String);

impl Config {
    /// Reads and checks a config. Paths in it are relative to it.
    ///
    /// # Errors
    /// The file cannot be read, a key is unknown or missing, or a value is not possible. The message names the file, the
    /// key and what would do.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::new(path, format!("{error}; name the config with -c FILE")))?;
        let base = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, base).map_err(|error| ConfigError::new(path, error.0))
    }

    /// Checks a config from its text. Paths in it are relative to `base`.
    ///
    /// # Errors
    /// As for [`Config::load`].
    pub fn parse(text: &str, base: &Path) -> Result<Self, ConfigError> {
        let raw = toml::from_str(text).map_err(|error| ConfigError(error.to_string()))?;
        check::check(raw, base)
    }

    /// The account of a session that has only one.
    #[must_use]
    pub fn only_account(&self, session: SessionId) -> Option<AccountId> {
        let sessions = &self.orders.first()?.sessions;
        match sessions.iter().find(|known| known.id == session)?.accounts[..] {
            [account] => Some(account),
            _ => None,
        }
    }

    /// The self-match prevention of a session.
    #[must_use]
    pub fn self_match(&self, session: SessionId) -> SelfMatch {
        let of_first = self.orders.first().map_or(&[][..], |orders| &orders.sessions);
        let found = of_first.iter().find(|known| known.id == session);
        found.map_or_else(SelfMatch::default, |session| session.self_match)
    }

    /// Orders that a shard may have open.
    #[must_use]
    pub fn open_orders(&self) -> usize {
        self.orders
            .first()
            .map_or(0, |orders| orders.capacity.open_orders as usize)
    }

    /// An instrument by its id.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        let place = self
            .instruments
            .binary_search_by_key(&id, |instrument| instrument.id)
            .ok()?;
        Some(&self.instruments[place])
    }
}

impl JournalConfig {
    /// The settings of a shard's journal.
    #[must_use]
    pub fn of_shard(&self, shard: ShardId) -> journal::Config {
        journal::Config {
            directory: self.directory.join(format!("shard-{shard}")),
            writer: format!("gateway-shard-{shard}"),
            ring_bytes: self.ring_bytes,
            segment_bytes: self.segment_bytes,
            direct_io: true,
            poll: self.watermark.drainer_poll(),
            gather_bytes: self.watermark.drainer_gather_bytes(),
            sync_after: DRAINER_SYNC_AFTER,
            cpus: self.drainer_cpu.into_iter().collect(),
        }
    }
}

impl ConfigError {
    fn new(path: &Path, what: impl std::fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
