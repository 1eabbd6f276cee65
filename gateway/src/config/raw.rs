//! The config file as it is written: one struct a table, unknown keys refused, units in the keys.

use super::{prefilter, risk};
use net::link::{LinkTable, VenueLinkTable};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// `gateway.toml`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Gateway {
    pub(super) instruments: PathBuf,
    pub(super) trading_day: u32,
    pub(super) credentials: Option<PathBuf>,
    #[serde(default)]
    pub(super) door: Door,
    pub(super) control: Option<Control>,
    pub(super) tls: Option<Tls>,
    #[serde(default)]
    pub(super) fix: Fix,
    pub(super) journal: Journal,
    pub(super) feed: Option<Feed>,
    pub(super) shards: Vec<Shard>,
    pub(super) venues: Vec<Venue>,
    pub(super) accounts: Vec<Account>,
    pub(super) sessions: Vec<Session>,
    #[serde(default)]
    pub(super) routes: Vec<Route>,
    pub(super) risk: Risk,
    pub(super) prefilter: Option<prefilter::Prefilter>,
    pub(super) first_stage: Option<FirstStage>,
    pub(super) capacity: Capacity,
}

/// `[fix]`: what FIX messages are checked against.
#[derive(Deserialize, Debug)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Fix {
    pub(super) validate: bool,
    pub(super) user_defined_fields: UserDefinedFields,
    /// By version, `FIXT.1.1` for the session layer of 5.0 and later. The gateway's own where none is named.
    pub(super) dictionaries: BTreeMap<String, PathBuf>,
}

impl Default for Fix {
    /// Messages are checked unless that is turned off.
    fn default() -> Self {
        Self {
            validate: true,
            user_defined_fields: UserDefinedFields::Accept,
            dictionaries: BTreeMap::new(),
        }
    }
}

/// `user_defined_fields = "…"`: those that the dictionary does not have.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum UserDefinedFields {
    /// They pass unseen.
    Accept,
    /// The dictionary decides: they are refused.
    Dictionary,
}

/// `[journal]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    pub(super) directory: PathBuf,
    pub(super) ring_bytes: usize,
    pub(super) segment_bytes: u64,
    pub(super) watermark: Watermark,
    pub(super) drainer_cpu: Option<usize>,
}

/// `watermark = "…"`.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Watermark {
    Appended,
    Written,
    Synced,
}

/// `[feed]`: where the exchange publishes its market data.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Feed {
    pub(super) listen: SocketAddr,
    pub(super) request: SocketAddr,
    pub(super) cpu: Option<usize>,
}

/// `[[shards]]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Shard {
    pub(super) cpu: Option<usize>,
    pub(super) idle: Idle,
    pub(super) fix_listen: Option<SocketAddr>,
    pub(super) fix_tls_listen: Option<SocketAddr>,
    pub(super) native_listen: Option<SocketAddr>,
}

/// `idle = "…"`.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Idle {
    Spin,
    Backoff,
}

/// `[door]`: addresses of the whole gateway, beside those of its shards, and who may come in at all.
#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Door {
    pub(super) fix_listen: Option<SocketAddr>,
    pub(super) fix_tls_listen: Option<SocketAddr>,
    pub(super) native_listen: Option<SocketAddr>,
    pub(super) allow: Option<Vec<String>>,
}

/// `[control]`: where operators come in.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Control {
    pub(super) socket: PathBuf,
}

/// `[tls]`: of every `fix_tls_listen`. Files are PEM.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) client_ca: Option<PathBuf>,
}

/// `[[venues]]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Venue {
    pub(super) name: String,
    /// Whether no order leaves before the venue has granted slots for open orders.
    #[serde(default)]
    pub(super) grants_open_orders: bool,
    /// Whether it takes from two orders of one owner what they would have traded.
    #[serde(default)]
    pub(super) decrements: bool,
    /// Who has the order types beyond market and limit orders; left out, the venue.
    pub(super) order_types: Option<OrderTypes>,
    pub(super) links: Vec<Link>,
}

/// `order_types = { … }`: who has each; nothing of it may be left out.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderTypes {
    pub(super) stop: Handling,
    pub(super) stop_limit: Handling,
    pub(super) iceberg: Handling,
    pub(super) peg_primary: Handling,
    pub(super) peg_mid: Handling,
}

/// Who has an order type.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Handling {
    /// The venue.
    Venue,
    /// The gateway, in its place.
    Emulate,
    /// Nobody.
    Refuse,
}

/// `[[venues.links]]`: the link of one shard to the venue.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) shard: u8,
    pub(super) session: u16,
    pub(super) peer: SocketAddr,
    pub(super) second_peer: Option<SocketAddr>,
    pub(super) cancel_reserve_messages: usize,
    #[serde(flatten)]
    pub(super) link: LinkTable,
    #[serde(flatten)]
    pub(super) of_venue: VenueLinkTable,
}

/// `[[accounts]]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    pub(super) id: u32,
    pub(super) max_quantity_lots: u64,
    pub(super) max_notional: String,
    pub(super) max_open_orders: u32,
    pub(super) max_open_notional: String,
    pub(super) max_position_lots: Option<u64>,
    pub(super) max_long_lots: Option<u64>,
    pub(super) max_short_lots: Option<u64>,
    pub(super) short_sales: Option<risk::ShortSaleRule>,
    pub(super) max_gross_notional: Option<String>,
    pub(super) max_net_notional: Option<String>,
    pub(super) max_loss: Option<String>,
    pub(super) max_orders_per_second: Option<u32>,
    pub(super) max_orders_at_once: Option<u32>,
    pub(super) rate_action: Option<risk::RateActionName>,
    /// Limit classes that it may not trade.
    #[serde(default)]
    pub(super) restricted_classes: Vec<String>,
    /// Symbols that it may not trade.
    #[serde(default)]
    pub(super) restricted_symbols: Vec<String>,
}

/// `[[sessions]]`.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Session {
    pub(super) id: u16,
    pub(super) protocol: Protocol,
    pub(super) shard: u8,
    pub(super) accounts: Vec<u32>,
    /// Accounts whose reports it gets copies of.
    #[serde(default)]
    pub(super) drop_copy: Vec<u32>,
    pub(super) owner: u32,
    #[serde(default)]
    pub(super) self_match: SelfMatch,
    /// Whether its orders may trade inside the gateway.
    #[serde(default)]
    pub(super) crossing: bool,
    pub(super) max_open_orders: u32,
    pub(super) max_open_notional: Option<String>,
    pub(super) max_quantity_lots: Option<u64>,
    pub(super) max_notional: Option<String>,
    pub(super) max_orders_per_second: Option<u32>,
    pub(super) max_orders_at_once: Option<u32>,
    pub(super) rate_action: Option<risk::RateActionName>,
    pub(super) max_repeats: Option<u32>,
    pub(super) repeats_within_ms: Option<u64>,
    /// Limit classes that it may not trade.
    #[serde(default)]
    pub(super) restricted_classes: Vec<String>,
    /// Symbols that it may not trade.
    #[serde(default)]
    pub(super) restricted_symbols: Vec<String>,
    #[serde(default = "on")]
    pub(super) cancel_on_disconnect: bool,
    pub(super) resend_messages: Option<usize>,
    pub(super) send_buffer_bytes: Option<usize>,
    pub(super) link: Option<ClientLink>,
    pub(super) client_comp_id: Option<String>,
    pub(super) our_comp_id: Option<String>,
    pub(super) versions: Option<Vec<String>>,
    pub(super) instances: Option<u16>,
    /// Of which template it is an instance: the id of the first. Set when a template becomes its instances.
    #[serde(skip)]
    pub(super) template: Option<u16>,
    pub(super) reset_on_logon: Option<bool>,
    pub(super) next_expected: Option<bool>,
    pub(super) resend_chunk: Option<u64>,
    pub(super) cl_ord_ids: Option<usize>,
    pub(super) user: Option<String>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) client_certificate: Option<String>,
    pub(super) schedule: Option<Schedule>,
}

/// `[sessions.link]`: where the client of a native session comes in over LTP.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientLink {
    pub(super) listen: SocketAddr,
    #[serde(flatten)]
    pub(super) link: LinkTable,
}

/// `schedule = { … }`: when a session may be used.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Schedule {
    pub(super) zone: String,
    pub(super) start: String,
    pub(super) end: String,
    pub(super) days: Option<Vec<String>>,
}

/// Cancel on disconnect is on unless turned off.
fn on() -> bool {
    true
}

/// `protocol = "…"`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Fix,
    Native,
}

/// `[[routes]]`: an exception to the venue that the instrument master gives; exactly one of symbol, account, session.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Route {
    pub(super) symbol: Option<String>,
    pub(super) account: Option<u32>,
    pub(super) session: Option<u16>,
    pub(super) venue: String,
}

/// `[first_stage]`. What a session or venue needs of it must be there.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct FirstStage {
    pub(super) own_cancel_wait_ms: Option<u64>,
    pub(super) waiting_orders: Option<u32>,
    pub(super) held_orders: Option<u32>,
    pub(super) peg_interval_ms: Option<u64>,
    pub(super) crossing: Option<Crossing>,
}

/// `[first_stage.crossing]`: what may trade inside the gateway, of sessions with `crossing = true`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Crossing {
    pub(super) symbols: Vec<String>,
    pub(super) rest_ms: u64,
}

/// `self_match = "…"`: what happens when a new order would trade with open ones of its owner.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum SelfMatch {
    #[default]
    #[serde(rename = "cancel_newest")]
    Newest,
    #[serde(rename = "cancel_oldest")]
    Oldest,
    #[serde(rename = "cancel_both")]
    Both,
    #[serde(rename = "decrement")]
    Decrement,
}

/// `[risk]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Risk {
    /// From one look at all positions for a new price to the next.
    pub(super) mark_every_ms: Option<u64>,
    pub(super) classes: BTreeMap<String, LimitClass>,
    /// By symbol: limits in the place of the class's, by name.
    #[serde(default)]
    pub(super) instruments: BTreeMap<String, toml::Table>,
    #[serde(default)]
    pub(super) firm: Firm,
    /// Of rates whose action is to queue.
    pub(super) rate_queue: Option<RateQueue>,
}

/// `[risk.rate_queue]`: orders that wait for a rate on each shard.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct RateQueue {
    pub(super) orders: u32,
    pub(super) wait_ms: u64,
}

/// `[risk.firm]`: of all orders together.
#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Firm {
    pub(super) max_quantity_lots: Option<u64>,
    pub(super) max_notional: Option<String>,
    pub(super) max_open_notional: Option<String>,
    pub(super) max_open_orders: Option<u32>,
    pub(super) max_gross_notional: Option<String>,
    pub(super) max_net_notional: Option<String>,
    pub(super) max_loss: Option<String>,
    pub(super) max_orders_per_second: Option<u32>,
    pub(super) max_orders_at_once: Option<u32>,
    pub(super) rate_action: Option<risk::RateActionName>,
}

/// `[risk.classes.NAME]`. Every limit but those of the last lines is explicit.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitClass {
    pub(super) max_quantity_lots: u64,
    pub(super) max_notional: String,
    pub(super) collar: Collar,
    pub(super) reference_max_age_ms: u64,
    pub(super) reference_missing: ReferenceMissing,
    pub(super) market_orders: bool,
    pub(super) reference: Option<risk::Reference>,
    pub(super) restricted: Option<bool>,
    pub(super) auction_max_quantity_lots: Option<u64>,
    pub(super) auction_max_notional: Option<String>,
    pub(super) auction_collar: Option<Collar>,
    pub(super) book: Option<Book>,
    pub(super) max_open_orders: Option<u32>,
    pub(super) max_open_notional: Option<String>,
    pub(super) max_position_lots: Option<u64>,
    pub(super) max_long_lots: Option<u64>,
    pub(super) max_short_lots: Option<u64>,
    pub(super) max_orders_per_second: Option<u32>,
    pub(super) max_orders_at_once: Option<u32>,
    pub(super) rate_action: Option<risk::RateActionName>,
}

/// `collar = …`: how far a limit may be from the reference price.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub(super) enum Collar {
    /// `collar = "off"`, said and not left out.
    Off(Off),
    /// `collar = { basis_points = 500, ticks = 100 }`, one or both.
    On(CollarWidth),
}

/// `"off"`.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Off {
    Off,
}

/// The two widths of a collar; when both are given, both hold.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct CollarWidth {
    pub(super) basis_points: Option<u32>,
    pub(super) ticks: Option<u32>,
}

/// `book = { ticks = 10, missing = "refuse" }`: how far a limit may reach through the book. `basis_points` as well or instead.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    pub(super) basis_points: Option<u32>,
    pub(super) ticks: Option<u32>,
    pub(super) missing: risk::BookMissing,
}

/// `reference_missing = "…"`: what the collar does without a fresh price from the feed.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReferenceMissing {
    Refuse,
    Master,
}

/// `[capacity]`: the sizes of tables, a shard.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Capacity {
    pub(super) open_orders: u32,
    pub(super) positions: u32,
    pub(super) own_books: u32,
    pub(super) crossing_messages: usize,
}
