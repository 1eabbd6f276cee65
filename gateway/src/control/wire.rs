//! What goes over the control socket: one request, a line of JSON, and its replies, a line each. The last one says `done` or
//! `refused`.

use super::names::{class_name, scope_name};
use super::{Home, LimitView, LinkReply, Origin};
use crate::config::{Config, ProtocolConfig, SessionConfig};
use crate::outside::FilterView;
use orders::{AuditError, KillScope, OrderView};
use prefilter::Reasons;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use types::{AccountId, SessionId};

/// What an operator asks.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// No new orders in the scope, and cancel the open ones.
    Kill(Scope),
    /// As `kill`, but take orders that reduce what is held.
    LetReduce(Scope),
    /// Take new orders again.
    Revive(Scope),
    /// Cancel the open orders.
    Cancel(Scope),
    /// Whether the kill switch of the scope is on.
    Killed(Scope),
    /// List the open orders: of one session, or all.
    Orders {
        /// Whose.
        session: Option<u16>,
    },
    /// Recount exposure and indexes from the open orders.
    Audit,
    /// List the sessions.
    Sessions,
    /// List the links to venues and clients.
    Links,
    /// How the pre-filters stand.
    Prefilter,
    /// Log a session's client out, and let it in no more.
    Disable(u16),
    /// Let it in again.
    Enable(u16),
    /// Begin a trading day, written as 20261201.
    Roll(u32),
    /// Show limits: of one scope, or all but for instruments' that are their class's.
    Limits(Option<LimitScopeName>),
    /// Change a limit.
    Set {
        /// Where it stands.
        scope: LimitScopeName,
        /// Its key in the config.
        limit: String,
        /// What it is to be, as the config would have it.
        value: String,
    },
}

/// Where limits stand, by the names that the config gives.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum LimitScopeName {
    /// For all orders.
    Firm,
    /// A class of instruments.
    Class(String),
    /// One instrument, by its symbol.
    Instrument(String),
    /// One account.
    Account(u32),
    /// One session.
    Session(u16),
    /// What one account or session trades: whether it is `restricted`.
    Trade {
        /// Who.
        by: PartyName,
        /// What.
        of: TradedName,
    },
}

/// Whom something can be closed to.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum PartyName {
    /// One account.
    Account(u32),
    /// One session.
    Session(u16),
}

/// What can be closed to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TradedName {
    /// The instruments of a class.
    Class(String),
    /// One instrument, by its symbol.
    Instrument(String),
}

/// Whom a request concerns.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everybody.
    Firm,
    /// One account.
    Account(u32),
    /// One session.
    Session(u16),
}

/// What the gateway answers. Prices and quantities are text, so that no reader rounds them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// An open order.
    Order {
        /// Its gateway number.
        order_id: u64,
        /// Its client's number.
        client_order_id: u64,
        /// Its session.
        session: u16,
        /// Its account.
        account: u32,
        /// Its instrument.
        instrument: u32,
        /// The venue's place in the config.
        venue: u8,
        /// `Buy` or `Sell`.
        side: String,
        /// What it trades at.
        order_type: String,
        /// Limit; `null` when it has none.
        price: Option<String>,
        /// Lots in all.
        quantity: u64,
        /// Lots traded.
        cumulative: u64,
        /// How far it is.
        state: String,
        /// Its venue is down, so nobody here knows what became of it.
        in_doubt: bool,
        /// When it was accepted, ns since 1970.
        accepted: u64,
    },
    /// A kill switch.
    Killed {
        /// Whether it is on and lets nothing pass.
        killed: bool,
        /// Whether it is on and lets pass what reduces.
        reduce_only: bool,
    },
    /// A limit as it is in force.
    Limit {
        /// Where it stands.
        scope: LimitScopeName,
        /// Its key in the config.
        limit: String,
        /// What it is, as the config would have it.
        value: String,
        /// Who said so.
        from: Source,
    },
    /// A session.
    Session {
        /// Its number.
        session: u16,
        /// `fix` or `native`.
        protocol: String,
        /// Who its client is: its CompID or user.
        name: String,
        /// The gateway's CompID; `null` in native.
        our_comp_id: Option<String>,
        /// The shard that serves it.
        shard: u8,
        /// Whether its client may be here.
        enabled: bool,
        /// Whether its client is logged on.
        logged_on: bool,
        /// Where its client comes from: an address, or `link`; `null`: it is not here.
        connected: Option<String>,
        /// Since when, ns since 1970.
        since: Option<u64>,
        /// The number of the message that is sent next; `null`: the link has it.
        next_sent: Option<u64>,
        /// The number of the message that is expected next; `null`: the protocol has none, or the link has it.
        next_received: Option<u64>,
        /// Orders open on all shards.
        open_orders: u32,
        /// Requests refused.
        refused: u64,
    },
    /// A link to a venue or a client.
    Link(Box<LinkReply>),
    /// A pre-filter: the shard's own, or the backend beside it.
    Prefilter {
        /// The shard.
        shard: usize,
        /// `software`, `rtl` or `xdp`.
        backend: String,
        /// Of the limits in force.
        generation: u32,
        /// What is wrong with it; `null`: it is sound.
        fault: Option<String>,
        /// Orders judged.
        received: u64,
        /// Of those, passed.
        passed: u64,
        /// Of those, refused.
        refused: u64,
        /// Orders refused, by reason.
        reasons: BTreeMap<String, u64>,
        /// New orders refused because the backend did not judge them.
        refused_unjudged: u64,
        /// New orders that it did not judge, left to the shard's own.
        left_to_software: u64,
        /// Of both, those that came past a backend that is sound.
        unjudged: u64,
    },
    /// A shard's recount.
    Audit {
        /// The shard.
        shard: usize,
        /// Its open orders.
        open_orders: usize,
        /// What differs first; `null`: nothing.
        difference: Option<String>,
    },
    /// The request was carried out on all shards.
    Done {
        /// The number of the order that changed something.
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
    },
    /// It was not.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Who said what a limit is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The config.
    Config,
    /// The instrument's class.
    Class(String),
    /// An operator's order.
    Change {
        /// Its number.
        number: u64,
        /// The user id of who gave it.
        operator: u32,
        /// When, ns since 1970.
        time: u64,
    },
}

impl Scope {
    /// As the order logic has it.
    pub(super) const fn to_orders(self) -> KillScope {
        match self {
            Self::Firm => KillScope::Firm,
            Self::Account(id) => KillScope::Account(AccountId(id)),
            Self::Session(id) => KillScope::Session(SessionId(id)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Firm => f.write_str("firm"),
            Self::Account(id) => write!(f, "account {id}"),
            Self::Session(id) => write!(f, "session {id}"),
        }
    }
}

impl fmt::Display for LimitScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Firm => f.write_str("firm"),
            Self::Class(name) => write!(f, "class {name}"),
            Self::Instrument(symbol) => write!(f, "instrument {symbol}"),
            Self::Account(id) => write!(f, "account {id}"),
            Self::Session(id) => write!(f, "session {id}"),
            Self::Trade { by, of } => write!(f, "{by}, {of}"),
        }
    }
}

impl fmt::Display for PartyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(id) => write!(f, "account {id}"),
            Self::Session(id) => write!(f, "session {id}"),
        }
    }
}

impl fmt::Display for TradedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(name) => write!(f, "class {name}"),
            Self::Instrument(symbol) => write!(f, "instrument {symbol}"),
        }
    }
}

impl Reply {
    pub(super) fn order(order: &OrderView) -> Self {
        Self::Order {
            order_id: order.order_id.0,
            client_order_id: order.client_order_id.0,
            session: order.session.0,
            account: order.account.0,
            instrument: order.instrument.0,
            venue: order.venue.0,
            side: format!("{:?}", order.side),
            order_type: format!("{:?}", order.order_type),
            price: (order.price != types::Price::NULL).then(|| order.price.to_string()),
            quantity: order.quantity.0,
            cumulative: order.cumulative.0,
            state: format!("{:?}", order.state),
            in_doubt: order.in_doubt,
            accepted: order.accepted.0,
        }
    }

    pub(super) fn limit(view: &LimitView, config: &Config) -> Self {
        Self::Limit {
            scope: scope_name(view.scope, config),
            limit: view.limit.name().to_owned(),
            value: view.value.to_string(),
            from: match view.origin {
                Origin::Config => Source::Config,
                Origin::Class(class) => Source::Class(class_name(class, config)),
                Origin::Change(change) => Source::Change {
                    number: change.number,
                    operator: change.operator,
                    time: change.time.0,
                },
            },
        }
    }

    /// A session of the config, by what all shards know of it.
    pub(super) fn session(config: &SessionConfig, home: &Home, open_orders: u32) -> Self {
        let (protocol, our_comp_id) = match &config.protocol {
            ProtocolConfig::Fix { our_comp_id, .. } => ("fix", Some(our_comp_id.clone())),
            ProtocolConfig::Native { .. } => ("native", None),
        };
        let place = home.connection;
        Self::Session {
            session: config.id.0,
            protocol: protocol.to_owned(),
            name: String::from_utf8_lossy(home.name.as_bytes()).into_owned(),
            our_comp_id,
            shard: config.shard.0,
            enabled: !home.is_disabled,
            logged_on: home.is_logged_on,
            connected: place.map(|place| place.peer.map_or_else(|| "link".to_owned(), |peer| peer.to_string())),
            since: place.map(|place| place.since.0),
            next_sent: home.next_sent.map(|number| number.0),
            next_received: home.next_received.map(|number| number.0),
            open_orders,
            refused: home.refused,
        }
    }

    pub(super) fn prefilter(shard: usize, view: &FilterView) -> Self {
        let counters = &view.counters;
        let reasons = Reasons::NAMES.iter().zip(counters.reasons);
        Self::Prefilter {
            shard,
            backend: view.backend.to_owned(),
            generation: view.generation,
            fault: view.fault.map(|fault| fault.to_string()),
            received: counters.received,
            passed: counters.passed,
            refused: counters.refused,
            reasons: reasons.map(|(&name, count)| (name.to_owned(), count)).collect(),
            refused_unjudged: view.fallback.refused,
            left_to_software: view.fallback.to_software,
            unjudged: view.fallback.unjudged,
        }
    }

    pub(super) fn audit(shard: usize, open_orders: usize, difference: Option<AuditError>) -> Self {
        Self::Audit {
            shard,
            open_orders,
            difference: difference.map(|difference| format!("{difference:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_plain_json() {
        for (text, request) in [
            (r#"{"kill":"firm"}"#, Request::Kill(Scope::Firm)),
            (r#"{"revive":{"account":7}}"#, Request::Revive(Scope::Account(7))),
            (r#"{"cancel":{"session":3}}"#, Request::Cancel(Scope::Session(3))),
            (r#"{"orders":{"session":null}}"#, Request::Orders { session: None }),
            (r#""audit""#, Request::Audit),
            (r#""links""#, Request::Links),
            (r#"{"limits":null}"#, Request::Limits(None)),
            (
                r#"{"limits":{"class":"default"}}"#,
                Request::Limits(Some(LimitScopeName::Class("default".to_owned()))),
            ),
            (
                r#"{"set":{"scope":{"instrument":"ALFA"},"limit":"max_notional","value":"5.5"}}"#,
                Request::Set {
                    scope: LimitScopeName::Instrument("ALFA".to_owned()),
                    limit: "max_notional".to_owned(),
                    value: "5.5".to_owned(),
                },
            ),
            (
                r#"{"set":{"scope":{"trade":{"by":{"account":1},"of":{"class":"default"}}},"limit":"restricted","value":"true"}}"#,
                Request::Set {
                    scope: LimitScopeName::Trade {
                        by: PartyName::Account(1),
                        of: TradedName::Class("default".to_owned()),
                    },
                    limit: "restricted".to_owned(),
                    value: "true".to_owned(),
                },
            ),
        ] {
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
        for bad in [
            r#"{"kill":"everybody"}"#,
            r#"{"kill":{"session":65536}}"#,
            "{}",
            r#"{"stop":"firm"}"#,
        ] {
            assert!(serde_json::from_str::<Request>(bad).is_err(), "{bad}");
        }
    }
}
