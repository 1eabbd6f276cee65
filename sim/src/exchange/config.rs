//! The exchange's config: TOML as it is written ([`raw`]), and the checked form that the program uses.
//!
//! Keys carry their units, and a key that nobody knows is refused. Nothing that decides has a default.

use super::limits::{MAX_CLIENT_ORDERS, MAX_DESTINATIONS, MAX_SESSIONS};
use super::live::journal_room;
use super::market::{MarketCapacity, MarketConfig, SessionRules};
use super::market_data::{FeedConfig, HistoryConfig};
use super::recovery::CoreConfig;
use super::room;
use super::schedule::AuctionTimes;
use journal::SentIndex;
use matcher::SelfMatch;
use net::cpu::CPUS_MAX;
use net::link::{LinkConfig, LinkEnd};
use proto::native::MAX_MESSAGE_LENGTH;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use types::{Duration, Instrument, SessionId, TradingDay};

/// A config that was checked.
#[derive(Clone, Debug)]
pub struct ExchangeConfig {
    /// The instrument master.
    pub instruments: PathBuf,
    /// The trading day that it begins or goes on with.
    pub trading_day: TradingDay,
    /// When its auctions are; `None`: orders trade as they come, all day.
    pub auctions: Option<AuctionTimes>,
    /// The CPU its thread is pinned to; `None` leaves it unpinned.
    pub cpu: Option<usize>,
    /// What its thread does when there is nothing to do.
    pub idle: Idle,
    /// How much the market holds.
    pub capacity: MarketCapacity,
    /// What happens when orders of one account meet.
    pub self_match: SelfMatch,
    /// Where the feed goes.
    pub feed: FeedConfig,
    /// Messages of the feed that are kept for those who missed them.
    pub retransmit_messages: usize,
    /// Silence of the feed after which it tells its next number.
    pub feed_heartbeat: Duration,
    /// Where the recording comes from; `None`: the market is its clients'.
    pub history: Option<HistoryConfig>,
    /// Messages of the recording that may wait behind a gap.
    pub history_window: usize,
    /// Where everything is written down; `None`: nothing outlives the process.
    pub journal: Option<JournalConfig>,
    /// The order sessions.
    pub sessions: Vec<SessionConfig>,
}

/// What a thread without work does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// It looks again at once: lowest latency, a whole core.
    Spin,
    /// It sleeps some ten microseconds at a time: for cores that are shared.
    Backoff,
}

/// `[journal]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalConfig {
    /// Where its files are.
    pub directory: PathBuf,
    /// Bytes of its ring in shared memory.
    pub ring_bytes: usize,
    /// Bytes of a file on disk.
    pub segment_bytes: u64,
    /// How safe the record of an output must be before the output leaves.
    pub watermark: journal::Watermark,
    /// The CPU of the thread that writes to disk; `None` lets the system choose.
    pub drainer_cpu: Option<usize>,
}

/// `[[sessions]]`.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// What the market must know of it.
    pub rules: SessionRules,
    /// Its link, the listening end.
    pub link: LinkConfig,
}

/// What is wrong with a config, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError(String);

impl ExchangeConfig {
    /// Reads and checks a file. Paths in it are relative to it.
    ///
    /// # Errors
    /// It cannot be read, is no TOML of this form, or contradicts itself.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let in_file = |what: String| ConfigError(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| in_file(error.to_string()))?;
        let base = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, base).map_err(|ConfigError(what)| in_file(what))
    }

    /// Checks the text of a file in `base`.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, base: &Path) -> Result<Self, ConfigError> {
        let raw: raw::Exchange = toml::from_str(text).map_err(|error| ConfigError(error.to_string()))?;
        raw.check(base).map_err(ConfigError)
    }

    /// Bytes that an exchange with this `core` allocates, but for small change.
    #[must_use]
    pub fn memory(&self, core: &CoreConfig) -> usize {
        let links: usize = self.sessions.iter().map(|session| session.link.memory()).sum();
        core.memory() + links + self.journal.as_ref().map_or(0, |journal| journal.ring_bytes)
    }

    /// Bytes that the sessions' links allocate, with where in the journal their messages stand.
    #[must_use]
    pub fn link_memory(&self) -> usize {
        let links = self.sessions.iter();
        links
            .map(|session| session.link.memory() + SentIndex::MEMORY_BYTES)
            .sum()
    }

    /// What decides, for a market of these instruments.
    #[must_use]
    pub fn core(&self, instruments: Vec<Instrument>) -> CoreConfig {
        CoreConfig {
            market: MarketConfig {
                instruments,
                sessions: self.sessions.iter().map(|session| session.rules).collect(),
                capacity: self.capacity,
                self_match: self.self_match,
            },
            windows: self.sessions.iter().map(|session| session.link.window()).collect(),
            retransmit_messages: self.retransmit_messages,
            history_window: self.history_window,
            heartbeat: self.feed_heartbeat,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The file as it is written: one struct a table.
mod raw {
    use net::link::{LinkTable, VenueLinkTable};
    use serde::Deserialize;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::path::PathBuf;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Exchange {
        pub(super) instruments: PathBuf,
        pub(super) trading_day: u32,
        pub(super) self_match: SelfMatch,
        pub(super) cpu: Option<usize>,
        pub(super) idle: Idle,
        pub(super) capacity: Capacity,
        pub(super) auctions: Option<Auctions>,
        pub(super) feed: Feed,
        pub(super) history: Option<History>,
        pub(super) journal: Option<Journal>,
        pub(super) sessions: Vec<Session>,
    }

    #[derive(Deserialize, Clone, Copy)]
    #[serde(rename_all = "snake_case")]
    pub(super) enum SelfMatch {
        Allow,
        CancelNewest,
        CancelOldest,
        CancelBoth,
        Decrement,
    }

    #[derive(Deserialize, Clone, Copy)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Idle {
        Spin,
        Backoff,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Capacity {
        pub(super) orders: usize,
        pub(super) levels: usize,
        pub(super) client_orders: usize,
        pub(super) special_orders: usize,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Auctions {
        pub(super) opening_call: String,
        pub(super) opening: String,
        pub(super) closing_call: String,
        pub(super) closing: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Feed {
        pub(super) id: u8,
        pub(super) local: SocketAddr,
        pub(super) destinations: Vec<SocketAddr>,
        pub(super) interface: Option<Ipv4Addr>,
        pub(super) retransmit_messages: usize,
        pub(super) heartbeat_ms: u64,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct History {
        pub(super) listen: SocketAddr,
        pub(super) request: Option<SocketAddr>,
        pub(super) interface: Option<Ipv4Addr>,
        pub(super) window_messages: usize,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Journal {
        pub(super) directory: PathBuf,
        pub(super) ring_bytes: usize,
        pub(super) segment_bytes: u64,
        pub(super) watermark: Watermark,
        pub(super) drainer_cpu: Option<usize>,
    }

    #[derive(Deserialize, Clone, Copy)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Watermark {
        Appended,
        Written,
        Synced,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Session {
        pub(super) id: u16,
        pub(super) listen: SocketAddr,
        pub(super) second_listen: Option<SocketAddr>,
        pub(super) cancel_on_disconnect: Option<bool>,
        pub(super) open_orders_max: Option<u32>,
        #[serde(flatten)]
        pub(super) link: LinkTable,
        #[serde(flatten)]
        pub(super) of_venue: VenueLinkTable,
    }
}

impl raw::Exchange {
    fn check(self, base: &Path) -> Result<ExchangeConfig, String> {
        let capacity = self.capacity.check()?;
        if !(1..=MAX_SESSIONS).contains(&self.sessions.len()) {
            return Err(format!("[[sessions]]: 1 to {MAX_SESSIONS} are possible"));
        }
        let mut ids: Vec<u16> = self.sessions.iter().map(|session| session.id).collect();
        ids.sort_unstable();
        if ids[0] == 0 || ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("[[sessions]]: every session has an id of its own, above 0".to_owned());
        }
        let sessions = self
            .sessions
            .iter()
            .map(|session| session.check(base))
            .collect::<Result<Vec<_>, _>>()?;
        check_special_orders(&capacity, &sessions)?;
        let auctions = self.auctions.as_ref().map(raw::Auctions::check).transpose()?;
        if auctions.is_some() && self.history.is_some() {
            return Err(
                "[auctions] and [history] exclude each other: recorded orders do not trade among themselves".to_owned(),
            );
        }
        let history_window = self.history.as_ref().map_or(0, |history| history.window_messages);
        in_range("[history] window_messages", history_window, 0, WINDOW_MAX)?;
        in_range("[feed] heartbeat_ms", self.feed.heartbeat_ms, 1, HEARTBEAT_MAX_MS)?;
        check_cpu("cpu", self.cpu)?;
        in_range("[feed] destinations", self.feed.destinations.len(), 1, MAX_DESTINATIONS)?;
        in_range(
            "[feed] retransmit_messages",
            self.feed.retransmit_messages,
            1,
            WINDOW_MAX,
        )?;
        Ok(ExchangeConfig {
            instruments: base.join(self.instruments),
            trading_day: trading_day(self.trading_day)?,
            auctions,
            cpu: self.cpu,
            idle: match self.idle {
                raw::Idle::Spin => Idle::Spin,
                raw::Idle::Backoff => Idle::Backoff,
            },
            capacity,
            self_match: match self.self_match {
                raw::SelfMatch::Allow => SelfMatch::Allow,
                raw::SelfMatch::CancelNewest => SelfMatch::CancelNewest,
                raw::SelfMatch::CancelOldest => SelfMatch::CancelOldest,
                raw::SelfMatch::CancelBoth => SelfMatch::CancelBoth,
                raw::SelfMatch::Decrement => SelfMatch::Decrement,
            },
            retransmit_messages: self.feed.retransmit_messages,
            feed_heartbeat: Duration::from_millis(self.feed.heartbeat_ms),
            feed: FeedConfig {
                id: self.feed.id,
                local: self.feed.local,
                destinations: self.feed.destinations,
                interface: self.feed.interface.unwrap_or(Ipv4Addr::LOCALHOST),
            },
            history: self.history.map(|history| HistoryConfig {
                listen: history.listen,
                request: history.request,
                interface: history.interface.unwrap_or(Ipv4Addr::LOCALHOST),
            }),
            history_window,
            journal: self
                .journal
                .map(|journal| journal.check(base, journal_room(&capacity, sessions.len(), history_window)))
                .transpose()?,
            sessions,
        })
    }
}

impl raw::Capacity {
    fn check(&self) -> Result<MarketCapacity, String> {
        in_range("[capacity] orders", self.orders, 1, matcher::MAX_ORDERS)?;
        in_range("[capacity] levels", self.levels, 1, self.orders)?;
        in_range(
            "[capacity] client_orders",
            self.client_orders,
            1,
            MAX_CLIENT_ORDERS.min(self.orders),
        )?;
        Ok(MarketCapacity {
            special_orders: self.special_orders,
            orders: self.orders,
            levels: self.levels,
            client_orders: self.client_orders,
        })
    }
}

impl raw::Auctions {
    fn check(&self) -> Result<AuctionTimes, String> {
        AuctionTimes::parse([&self.opening_call, &self.opening, &self.closing_call, &self.closing])
            .map_err(|what| format!("[auctions]: {what}"))
    }
}

impl raw::Journal {
    /// `least` bytes are what the largest input may need.
    fn check(self, base: &Path, least: usize) -> Result<JournalConfig, String> {
        if self.ring_bytes < least {
            return Err(format!(
                "[journal] ring_bytes = {} must be at least {least} for these capacities",
                self.ring_bytes
            ));
        }
        journal::check_sizes(self.ring_bytes, self.segment_bytes).map_err(|what| format!("[journal] {what}"))?;
        check_cpu("[journal] drainer_cpu", self.drainer_cpu)?;
        Ok(JournalConfig {
            directory: base.join(self.directory),
            ring_bytes: self.ring_bytes,
            segment_bytes: self.segment_bytes,
            watermark: match self.watermark {
                raw::Watermark::Appended => journal::Watermark::Appended,
                raw::Watermark::Written => journal::Watermark::Written,
                raw::Watermark::Synced => journal::Watermark::Synced,
            },
            drainer_cpu: self.drainer_cpu,
        })
    }
}

impl raw::Session {
    fn check(&self, base: &Path) -> Result<SessionConfig, String> {
        let at = |local| LinkEnd::Listen { local };
        let (end, second, id) = (at(self.listen), self.second_listen.map(at), SessionId(self.id));
        let link = self
            .of_venue
            .check(&self.link, id, MAX_MESSAGE_LENGTH, end, second, base);
        Ok(SessionConfig {
            rules: SessionRules {
                id,
                cancel_on_disconnect: self.cancel_on_disconnect.unwrap_or(true),
                open_orders_max: self.open_orders_max,
            },
            link: link.map_err(|what| format!("session {}: {what}", self.id))?,
        })
    }
}

fn check_cpu(key: &str, cpu: Option<usize>) -> Result<(), String> {
    cpu.map_or(Ok(()), |cpu| in_range(key, cpu, 0, CPUS_MAX - 1))
}

fn in_range<N: PartialOrd + fmt::Display>(what: &str, value: N, least: N, most: N) -> Result<(), String> {
    if (&least..=&most).contains(&&value) {
        Ok(())
    } else {
        Err(format!("{what} = {value} must be from {least} to {most}"))
    }
}

/// What waiting orders set off must not fill a session's window: each session keeps room for all of it.
fn check_special_orders(capacity: &MarketCapacity, sessions: &[SessionConfig]) -> Result<(), String> {
    let smallest = sessions.iter().min_by_key(|session| session.link.window());
    let (session, window) = smallest.map_or((0, 0), |session| (session.rules.id.0, session.link.window()));
    let one = MarketCapacity {
        special_orders: 1,
        ..*capacity
    };
    let a_place = 4 * room::entries_max(&one);
    let most = window / a_place;
    in_range(
        "[capacity] special_orders",
        capacity.special_orders,
        0,
        capacity.client_orders,
    )?;
    in_range("[capacity] special_orders", capacity.special_orders, 0, most).map_err(|what| {
        format!(
            "{what}, with window_messages = {window} of session {session}: each session's window has {a_place} messages for each of them"
        )
    })
}

fn trading_day(day: u32) -> Result<TradingDay, String> {
    TradingDay::from_yyyymmdd(day)
        .ok_or_else(|| format!("trading_day = {day} is no day of the calendar; write it as yyyymmdd"))
}

/// Most messages kept for retransmission or waiting behind a gap.
const WINDOW_MAX: usize = 1 << 22;

/// Longest silence of the feed, ms.
const HEARTBEAT_MAX_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/exchange.toml");

    fn changed(from: &str, to: &str) -> Result<ExchangeConfig, ConfigError> {
        let text = std::fs::read_to_string(PATH).unwrap();
        assert!(text.contains(from), "{from}");
        ExchangeConfig::parse(&text.replacen(from, to, 1), Path::new("/base"))
    }

    #[test]
    fn a_feed_that_goes_nowhere_is_refused() {
        let error = changed(
            "destinations = [\"127.0.0.1:7101\", \"127.0.0.1:7102\", \"127.0.0.1:7103\"]",
            "destinations = []",
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("[feed] destinations = 0 must be from 1 to 16"),
            "{error}"
        );
    }

    #[test]
    fn the_example_loads() {
        let config = ExchangeConfig::load(Path::new(PATH)).unwrap();
        assert!(config.instruments.ends_with("instruments.csv"));
        assert!(config.journal.is_some() && config.history.is_some());
        assert!(config.sessions.iter().all(|session| session.rules.cancel_on_disconnect));
        assert!(matches!(config.sessions[0].link, LinkConfig::Ltp(_)));
        let mib = config.memory(&config.core(Vec::new())) >> 20;
        assert!((100..300).contains(&mib), "{mib} MiB");
    }

    #[test]
    fn a_session_may_be_over_tcp() {
        let config = changed(
            "transport = \"ltp\"",
            "transport = \"tcp\"\nuser = \"gate\"\npassword = \"secret\"",
        )
        .unwrap();
        assert!(matches!(config.sessions[0].link, LinkConfig::Tcp(_)));
        let error = changed("transport = \"ltp\"", "transport = \"tcp\"").unwrap_err();
        assert!(error.to_string().contains("TCP needs user"), "{error}");
    }

    #[test]
    fn a_market_without_a_recording_may_have_auctions() {
        let auctions = "[auctions]\nopening_call = \"09:25:00\"\nopening = \"09:30:00\"\nclosing_call = \"15:55:00\"\n\
                        closing = \"16:00:00\"\n";
        let error = changed("[capacity]", &format!("{auctions}[capacity]")).unwrap_err();
        assert!(error.to_string().contains("exclude each other"), "{error}");
        let text = std::fs::read_to_string(PATH).unwrap();
        let (before, history) = text.split_once("\n[history]").unwrap();
        let (_, after) = history.split_once("\n[journal]").unwrap();
        let with = |auctions: &str| {
            ExchangeConfig::parse(&format!("{before}\n{auctions}[journal]{after}"), Path::new("/base"))
        };
        assert!(with(auctions).unwrap().auctions.is_some());
        assert!(with("").unwrap().auctions.is_none());
        let error = with(&auctions.replace("16:00:00", "15:00:00")).unwrap_err();
        assert!(error.to_string().contains("[auctions]: each time"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = [
            ("idle =", "idel = \"spin\"\nidle =", "idel"),
            ("20261130", "20261330", "trading_day"),
            ("ring_bytes = 67_108_864", "ring_bytes = 4_096", "ring_bytes"),
            ("self_match = \"cancel_newest\"", "", "self_match"),
            ("client_orders = ", "client_orders = 9", "client_orders"),
            (
                "special_orders = 4_096",
                "special_orders = 4_097",
                "special_orders = 4097 must be from 0 to 4096, with window_messages = 65536 of session 1: each session's window",
            ),
            (
                "special_orders = 4_096",
                "special_orders = 16_777_216",
                "special_orders = 16777216 must be from 0 to ",
            ),
            ("window_messages = 65_536", "window_messages = 0", "session 1: window"),
            ("id = 1\ntransport", "id = 0\ntransport", "above 0"),
        ];
        for (from, to, expected) in wrong {
            let error = changed(from, to).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
