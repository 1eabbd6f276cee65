//! `[prefilter]`: which backend stands beside the shard's own filter, and what becomes of orders after a fault of it.

use super::{ConfigError, SessionConfig};
use net::CarrierConfig;
use net::link::{LinkConfig, LinkEnd};
use serde::Deserialize;
use std::net::SocketAddr;
use types::Instrument;

/// `[prefilter]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Prefilter {
    backend: Kind,
    on_fault: Option<OnFault>,
    xdp: Option<XdpFilter>,
}

/// `backend = "…"`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Software,
    Rtl,
    Xdp,
}

/// The pre-filter of a gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefilterConfig {
    /// What stands beside the shard's own.
    pub backend: PrefilterBackend,
    /// What becomes of new orders that it did not judge.
    pub on_fault: OnFault,
}

/// What stands beside the shard's own filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrefilterBackend {
    /// Nothing.
    Software,
    /// The RTL in simulation.
    Rtl,
    /// The program in the kernel.
    Xdp(XdpFilter),
}

/// `on_fault = "…"`: what becomes of new orders that the backend did not judge.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum OnFault {
    /// They are refused.
    Reject,
    /// The shard's own filter alone judges them.
    Software,
}

/// `[prefilter.xdp]`: where the program is.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct XdpFilter {
    /// The interface that clients' datagrams come in by.
    pub interface: String,
    /// Which hook of it.
    pub mode: XdpMode,
}

/// `mode = "…"`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// Behind the driver: works with every driver.
    Generic,
}

impl PrefilterConfig {
    /// Whether new orders wait for a verdict of something else than the shard.
    pub(crate) fn refuses_unjudged(&self) -> bool {
        self.backend != PrefilterBackend::Software && self.on_fault == OnFault::Reject
    }
}

/// Ids of instruments are below it with `backend = "xdp"`: orders name them by id there, and its table has a place for each.
const XDP_INSTRUMENT_IDS: u32 = 1 << 16;

/// The config's pre-filter; without the table the shard's own.
pub(super) fn check(
    raw: Option<&Prefilter>,
    instruments: &[Instrument],
    sessions: &[SessionConfig],
    shards: usize,
) -> Result<PrefilterConfig, ConfigError> {
    let Some(raw) = raw else {
        return Ok(PrefilterConfig {
            backend: PrefilterBackend::Software,
            on_fault: OnFault::Reject,
        });
    };
    let wrong = |what: String| ConfigError(format!("prefilter: {what}"));
    if raw.backend == Kind::Software && raw.on_fault.is_some() {
        return Err(wrong(
            "on_fault is for the other backends: software has no faults".to_owned(),
        ));
    }
    if raw.backend != Kind::Xdp && raw.xdp.is_some() {
        return Err(wrong("a table xdp wants backend = \"xdp\"".to_owned()));
    }
    let backend = match raw.backend {
        Kind::Software => PrefilterBackend::Software,
        Kind::Rtl if cfg!(feature = "rtl-sim") => PrefilterBackend::Rtl,
        Kind::Rtl => return Err(wrong(not_built("rtl", "rtl-sim"))),
        Kind::Xdp if !cfg!(feature = "xdp") => return Err(wrong(not_built("xdp", "xdp"))),
        Kind::Xdp => match &raw.xdp {
            Some(xdp) => {
                check_xdp(instruments, sessions, shards).map_err(wrong)?;
                PrefilterBackend::Xdp(xdp.clone())
            }
            None => {
                return Err(wrong(
                    "backend = \"xdp\" wants a table xdp with interface and mode".to_owned(),
                ));
            }
        },
    };
    Ok(PrefilterConfig {
        backend,
        on_fault: raw.on_fault.unwrap_or(OnFault::Reject),
    })
}

fn not_built(backend: &str, feature: &str) -> String {
    format!("this tickgate has no backend \"{backend}\"; build it with --features {feature}")
}

/// The program judges what comes to the kernel's UDP sockets over IPv4, by the ids that orders name.
fn check_xdp(instruments: &[Instrument], sessions: &[SessionConfig], shards: usize) -> Result<(), String> {
    if shards != 1 {
        return Err(format!("backend = \"xdp\" serves one shard; this config has {shards}"));
    }
    let highest = instruments.iter().map(|instrument| instrument.id.0).max();
    if highest.is_some_and(|highest| highest >= XDP_INSTRUMENT_IDS) {
        return Err(format!(
            "backend = \"xdp\" has instruments by their ids, which must be below {XDP_INSTRUMENT_IDS}"
        ));
    }
    let mut has_link = false;
    for session in sessions {
        let Some(LinkConfig::Ltp(link)) = &session.link else {
            continue;
        };
        has_link = true;
        let is_v4 = matches!(link.end, LinkEnd::Listen { local: SocketAddr::V4(local) } if local.port() != 0);
        if !is_v4 || !matches!(link.carrier, CarrierConfig::Udp(_)) {
            return Err(format!(
                "backend = \"xdp\" wants session {} at an IPv4 address with a port, and carrier = \"udp\"",
                session.id
            ));
        }
    }
    if has_link {
        Ok(())
    } else {
        Err("backend = \"xdp\" judges orders of sessions with a link; this config has none".to_owned())
    }
}

#[cfg(feature = "xdp")]
impl From<XdpMode> for prefilter::xdp::Hook {
    fn from(mode: XdpMode) -> Self {
        match mode {
            XdpMode::Native => Self::Native,
            XdpMode::Generic => Self::Generic,
        }
    }
}
