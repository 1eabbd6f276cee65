//! The client's config, `configs/client-*.toml`: as written, then checked.

use super::link::LinkConnection;
use net::link::LinkTable;
use net::{CarrierConfig, TcpOptions};
use proto::fix::{CompId, MAX_HEARTBEAT_SECONDS};
use proto::ltp;
use proto::soup::{Password, UserName};
use serde::Deserialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use types::{AccountId, Duration, Quantity, SessionId, Symbol};

/// A config that was checked.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The instrument master that names the symbols' ids, tick and lot sizes.
    pub instruments: PathBuf,
    /// The gateway's address.
    pub gateway: SocketAddr,
    /// Number of the session: in native messages and in recordings.
    pub session: SessionId,
    /// Account of its orders; 0 leaves it out.
    pub account: AccountId,
    /// What it speaks, and how it logs in.
    pub login: Login,
    /// Socket options of a connection over TCP.
    pub tcp: TcpOptions,
    /// The market data it follows, if any.
    pub feed: Option<FeedConfig>,
    /// What it sends.
    pub load: LoadConfig,
}

/// What a client speaks, and how it logs in.
#[derive(Clone, Debug)]
pub enum Login {
    /// FIX 4.4.
    Fix {
        /// SenderCompID (49).
        sender_comp_id: CompId,
        /// TargetCompID (56).
        target_comp_id: CompId,
        /// HeartBtInt (108).
        heartbeat: Duration,
    },
    /// The native protocol over SoupBinTCP.
    Native {
        /// User name.
        user: UserName,
        /// Password.
        password: Password,
    },
    /// The native protocol over a link.
    Link(LinkLogin),
}

/// How a client comes in over LTP.
#[derive(Clone, Debug)]
pub struct LinkLogin {
    /// The directory of the journal that the numbers go on from.
    pub journal: PathBuf,
    /// The link's settings.
    pub ltp: ltp::Config,
    /// What carries its datagrams.
    pub carrier: CarrierConfig,
}

/// `[feed]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedConfig {
    /// Where MoldUDP64 packets arrive: an address of this machine, or a multicast group.
    pub listen: SocketAddr,
    /// Where missing messages are asked for.
    pub request: SocketAddr,
    /// The feed's id, in the trigger of an order.
    pub id: u8,
}

/// `[load]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadConfig {
    /// What it trades.
    pub symbols: Vec<Symbol>,
    /// What makes its choices; the same seed and ticks make the same orders.
    pub seed: u64,
    /// New orders until it stops.
    pub orders_max: usize,
    /// Every so-many-th change of a best bid or offer triggers an order; 0: none does.
    pub every_ticks: u64,
    /// Time between planned orders; zero: there are none.
    pub interval: Duration,
    /// Share of orders that are immediate-or-cancel at the touch; the others rest near it.
    pub ioc_percent: u8,
    /// Most lots of an order.
    pub lots_max: Quantity,
    /// How long an order rests before it is replaced or cancelled.
    pub rest: Duration,
    /// Lots of one order that is meant to be refused; zero: there is none.
    pub oversize_lots: Quantity,
}

/// Why a config does not load.
#[derive(Debug)]
pub struct ConfigError(String);

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    instruments: PathBuf,
    gateway: RawGateway,
    fix: Option<RawFix>,
    native: Option<RawNative>,
    link: Option<RawLink>,
    tcp: Option<TcpOptions>,
    feed: Option<FeedConfig>,
    load: RawLoad,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGateway {
    address: SocketAddr,
    session: u16,
    account: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFix {
    sender_comp_id: String,
    target_comp_id: String,
    heartbeat_s: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNative {
    user: String,
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    journal: PathBuf,
    #[serde(flatten)]
    link: LinkTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLoad {
    symbols: Vec<String>,
    seed: u64,
    orders_max: usize,
    #[serde(default)]
    every_ticks: u64,
    #[serde(default)]
    orders_per_s: u64,
    ioc_percent: u8,
    lots_max: u64,
    rest_ms: u64,
    #[serde(default)]
    oversize_lots: u64,
}

impl ClientConfig {
    /// Reads and checks a config. Paths in it are relative to it.
    ///
    /// # Errors
    /// The file cannot be read, a key is unknown or missing, or a value is not possible. The message names file, key and
    /// what would do.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let in_file = |what: String| ConfigError(format!("{}: {what}", path.display()));
        let text =
            std::fs::read_to_string(path).map_err(|error| in_file(format!("{error}; name the config with -c FILE")))?;
        Self::parse(&text, path.parent().unwrap_or(Path::new("."))).map_err(|error| in_file(error.0))
    }

    /// Checks a config from its text. Paths in it are relative to `base`.
    ///
    /// # Errors
    /// As for [`ClientConfig::load`].
    pub fn parse(text: &str, base: &Path) -> Result<Self, ConfigError> {
        let raw: RawConfig = toml::from_str(text).map_err(|error| ConfigError(error.to_string()))?;
        if raw.gateway.session == 0 {
            return Err(impossible("gateway.session", 0, "its number, above 0"));
        }
        let session = SessionId(raw.gateway.session);
        Ok(Self {
            instruments: base.join(&raw.instruments),
            gateway: raw.gateway.address,
            session,
            account: AccountId(raw.gateway.account),
            tcp: tcp(raw.tcp, raw.link.is_some())?,
            login: login(
                raw.fix,
                raw.native,
                raw.link
                    .map(|link| self::link(&link, raw.gateway.address, session, base)),
            )?,
            feed: raw.feed,
            load: load(&raw.load)?,
        })
    }
}

fn login(
    fix: Option<RawFix>,
    native: Option<RawNative>,
    link: Option<Result<LinkLogin, ConfigError>>,
) -> Result<Login, ConfigError> {
    match (fix, native, link) {
        (Some(fix), None, None) => Ok(Login::Fix {
            sender_comp_id: comp_id("sender_comp_id", &fix.sender_comp_id)?,
            target_comp_id: comp_id("target_comp_id", &fix.target_comp_id)?,
            heartbeat: heartbeat(fix.heartbeat_s)?,
        }),
        (None, Some(native), None) => Ok(Login::Native {
            user: UserName::new(native.user.as_bytes())
                .ok_or_else(|| impossible("native.user", &native.user, "at most 6 printable ASCII characters"))?,
            password: Password::new(native.password.as_bytes())
                .ok_or_else(|| ConfigError("native.password: at most 10 printable ASCII characters".to_owned()))?,
        }),
        (None, None, Some(link)) => link.map(Login::Link),
        _ => Err(ConfigError(
            "one of [fix], [native] and [link] is needed, and no other".to_owned(),
        )),
    }
}

fn heartbeat(seconds: u32) -> Result<Duration, ConfigError> {
    if u64::from(seconds) > MAX_HEARTBEAT_SECONDS {
        let most = format!("at most {MAX_HEARTBEAT_SECONDS}");
        return Err(impossible("fix.heartbeat_s", seconds, &most));
    }
    Ok(Duration::from_secs(u64::from(seconds)))
}

fn tcp(raw: Option<TcpOptions>, is_link: bool) -> Result<TcpOptions, ConfigError> {
    let Some(options) = raw else {
        return Ok(TcpOptions::tuned());
    };
    if is_link {
        return Err(ConfigError("[tcp] is of no use to a client over LTP".to_owned()));
    }
    options.check().map_err(ConfigError)?;
    Ok(options)
}

fn link(raw: &RawLink, gateway: SocketAddr, session: SessionId, base: &Path) -> Result<LinkLogin, ConfigError> {
    let wrong = |what| ConfigError(format!("link: {what}"));
    let mut ltp = LinkConnection::settings(session, raw.link.window_messages);
    raw.link.apply(&mut ltp, base).map_err(wrong)?;
    let carrier = raw.link.carrier(LinkConnection::end(gateway)).map_err(wrong)?;
    Ok(LinkLogin {
        journal: base.join(&raw.journal),
        ltp,
        carrier,
    })
}

fn comp_id(key: &str, text: &str) -> Result<CompId, ConfigError> {
    CompId::new(text.as_bytes()).ok_or_else(|| {
        impossible(
            &format!("fix.{key}"),
            text,
            "1 to 64 printable ASCII characters without blanks",
        )
    })
}

fn load(raw: &RawLoad) -> Result<LoadConfig, ConfigError> {
    let symbol = |text: &String| {
        Symbol::new(text.as_bytes()).ok_or_else(|| {
            impossible(
                "load.symbols",
                text,
                "1 to 16 printable ASCII characters without blanks",
            )
        })
    };
    let symbols = raw.symbols.iter().map(symbol).collect::<Result<Vec<_>, _>>()?;
    let in_range = |key: &str, value: u64, least: u64, most: u64| {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(impossible(&format!("load.{key}"), value, &format!("{least} to {most}")))
        }
    };
    in_range("symbols", symbols.len() as u64, 1, MAX_SYMBOLS)?;
    in_range("orders_max", raw.orders_max as u64, 1, MAX_ORDERS)?;
    in_range("orders_per_s", raw.orders_per_s, 0, MAX_ORDERS_PER_S)?;
    in_range("ioc_percent", u64::from(raw.ioc_percent), 0, 100)?;
    in_range("lots_max", raw.lots_max, 1, MAX_LOTS)?;
    in_range("oversize_lots", raw.oversize_lots, 0, MAX_LOTS)?;
    in_range("rest_ms", raw.rest_ms, 1, MAX_REST_MS)?;
    if raw.every_ticks == 0 && raw.orders_per_s == 0 {
        return Err(ConfigError(
            "load: one of every_ticks and orders_per_s must be above 0, or no order is ever sent".to_owned(),
        ));
    }
    Ok(LoadConfig {
        symbols,
        seed: raw.seed,
        orders_max: raw.orders_max,
        every_ticks: raw.every_ticks,
        interval: Duration(Duration::from_secs(1).0.checked_div(raw.orders_per_s).unwrap_or(0)),
        ioc_percent: raw.ioc_percent,
        lots_max: Quantity(raw.lots_max),
        rest: Duration::from_millis(raw.rest_ms),
        oversize_lots: Quantity(raw.oversize_lots),
    })
}

fn impossible(key: &str, value: impl fmt::Display, what: &str) -> ConfigError {
    ConfigError(format!("{key} = {value} is not possible: {what}"))
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// Symbols of one client.
const MAX_SYMBOLS: u64 = 1_024;

/// Orders of one client in a run.
pub(super) const MAX_ORDERS: u64 = 10_000_000;

/// Planned orders a second.
const MAX_ORDERS_PER_S: u64 = 1_000_000;

/// Lots of an order: what a native message holds.
const MAX_LOTS: u64 = 4_000_000_000;

/// A day.
const MAX_REST_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    const FIX: &str = r#"
        instruments = "instruments.csv"
        [gateway]
        address = "127.0.0.1:9878"
        session = 1
        account = 1001
        [fix]
        sender_comp_id = "CLIENT"
        target_comp_id = "TICKGATE"
        heartbeat_s = 30
        [feed]
        listen = "127.0.0.1:31001"
        request = "127.0.0.1:31000"
        id = 1
        [load]
        symbols = ["ALFA", "BRAVO"]
        seed = 7
        orders_max = 20000
        every_ticks = 5
        orders_per_s = 1000
        ioc_percent = 60
        lots_max = 10
        rest_ms = 20
        oversize_lots = 1000000
    "#;

    fn parse(text: &str) -> Result<ClientConfig, ConfigError> {
        ClientConfig::parse(text, Path::new("configs"))
    }

    #[test]
    fn a_whole_config_is_read() {
        let config = parse(FIX).unwrap();
        assert_eq!(config.instruments, Path::new("configs/instruments.csv"));
        assert!(matches!(&config.login, Login::Fix { heartbeat, .. } if *heartbeat == Duration::from_secs(30)));
        assert_eq!(config.load.interval, Duration::from_millis(1));
        assert_eq!(config.load.symbols.len(), 2);
        let native = FIX
            .replace("[fix]", "[native]")
            .replace("sender_comp_id", "user")
            .replace("target_comp_id = \"TICKGATE\"", "password = \"secret\"")
            .replace("heartbeat_s = 30", "");
        assert!(matches!(parse(&native).unwrap().login, Login::Native { .. }));
    }

    #[test]
    fn socket_options_are_chosen_where_there_is_a_socket() {
        assert_eq!(parse(FIX).unwrap().tcp, TcpOptions::tuned());
        let config = parse(&format!("{FIX}\n[tcp]\nuser_timeout_ms = 500\n")).unwrap();
        let wanted = TcpOptions {
            user_timeout_ms: Some(500),
            ..TcpOptions::tuned()
        };
        assert_eq!(config.tcp, wanted);
        let (front, rest) = FIX.split_once("[fix]").unwrap();
        let (_, rest) = rest.split_once("[feed]").unwrap();
        let link = "[link]\njournal = \"j\"\nwindow_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 500\n";
        let linked = format!("{front}{link}[feed]{rest}");
        assert!(matches!(parse(&linked).unwrap().login, Login::Link(_)));
        let error = parse(&format!("{linked}\n[tcp]\nno_delay = true\n"));
        assert!(error.unwrap_err().to_string().contains("[tcp] is of no use"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, part) in [
            (
                "[feed]",
                "[tcp]\nrto_min_us = 0\n[feed]",
                "tcp: rto_min_us = 0 must be from 1 to 200000",
            ),
            ("seed = 7", "sead = 7", "unknown field `sead`"),
            ("seed = 7", "", "missing field `seed`"),
            (
                "[fix]",
                "[native]\nuser = \"u\"\npassword = \"p\"\n[fix]",
                "one of [fix], [native] and [link]",
            ),
            ("\"CLIENT\"", "\"\"", "fix.sender_comp_id"),
            ("\"BRAVO\"", "\"FAR TOO LONG A NAME\"", "load.symbols"),
            ("[\"ALFA\", \"BRAVO\"]", "[]", "load.symbols"),
            ("ioc_percent = 60", "ioc_percent = 101", "load.ioc_percent = 101"),
            ("rest_ms = 20", "rest_ms = 0", "load.rest_ms = 0"),
            ("lots_max = 10", "lots_max = 5000000000", "load.lots_max"),
            (
                "every_ticks = 5\n        orders_per_s = 1000",
                "",
                "no order is ever sent",
            ),
            ("127.0.0.1:9878", "gateway", "invalid socket address"),
        ] {
            let error = parse(&FIX.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(part), "{to}: {error}");
        }
    }

    #[test]
    fn the_configs_of_the_repository_load() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        for name in ["client-fix.toml", "client-native.toml"] {
            let config = ClientConfig::load(&configs.join(name)).unwrap();
            assert!(config.instruments.exists(), "{name}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = ClientConfig::load(Path::new("no/such.toml")).unwrap_err().to_string();
        assert!(error.starts_with("no/such.toml: "), "{error}");
    }
}
