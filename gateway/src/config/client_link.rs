//! The links of native sessions whose clients come in over LTP, and what these sessions do without.

use super::{ConfigError, SessionConfig, raw};
use crate::limits::{MAX_CLIENT_LINKS, WINDOW_AN_OPEN_ORDER};
use net::link::{LinkConfig, LinkEnd, LtpLinkConfig};
use proto::ltp;
use proto::native::MAX_MESSAGE_LENGTH;
use std::path::Path;
use types::SessionId;

/// Most of a link's `window_messages`.
const WINDOW_MAX: usize = ltp::Config::WINDOW_MAX / 2;

/// The link of a session, if it has one.
pub(super) fn link(raw: &raw::Session, base: &Path) -> Result<Option<LinkConfig>, ConfigError> {
    let Some(link) = &raw.link else { return Ok(None) };
    let id = raw.id;
    let wrong = |what: &str| ConfigError(format!("session {id}: link: {what}"));
    if raw.protocol != raw::Protocol::Native {
        return Err(ConfigError(format!("session {id} is FIX; link is for native sessions")));
    }
    for (key, is_there) in [
        ("resend_messages", raw.resend_messages.is_some()),
        ("send_buffer_bytes", raw.send_buffer_bytes.is_some()),
        ("allow", raw.allow.is_some()),
    ] {
        if is_there {
            return Err(ConfigError(format!(
                "session {id} comes in over a link; {key} is for TCP"
            )));
        }
    }
    let window = link.link.window_messages;
    let least = WINDOW_AN_OPEN_ORDER.saturating_mul(raw.max_open_orders as usize);
    if !(least..=WINDOW_MAX).contains(&window) {
        let orders = raw.max_open_orders;
        return Err(wrong(&format!(
            "window_messages = {window} is not possible; with max_open_orders = {orders} at least {least}, at most {WINDOW_MAX}"
        )));
    }
    // See `client_links.rs`: one window of what the client may lack, one of what comes before it is there again.
    let ring = window.saturating_mul(2).next_power_of_two();
    let mut ltp = ltp::Config::new(SessionId(id), ring, MAX_MESSAGE_LENGTH);
    // One form of header, one order a datagram and no repeats: what a filter on the way reads stands at one place.
    ltp.takes_single = true;
    link.link.apply(&mut ltp, base).map_err(|what| wrong(&what))?;
    let end = LinkEnd::Listen { local: link.listen };
    let carrier = link.link.carrier(end).map_err(|what| wrong(&what))?;
    Ok(Some(LinkConfig::Ltp(LtpLinkConfig {
        end,
        ltp,
        carrier,
        second: None,
    })))
}

/// Links of one shard are looked at in every turn, one after the other.
pub(super) fn count(sessions: &[SessionConfig]) -> Result<(), ConfigError> {
    for session in sessions {
        let links = sessions
            .iter()
            .filter(|other| other.shard == session.shard && other.link.is_some())
            .count();
        if links > MAX_CLIENT_LINKS {
            return Err(ConfigError(format!(
                "shard {} has {links} sessions with a link; {MAX_CLIENT_LINKS} are possible",
                session.shard
            )));
        }
    }
    Ok(())
}
