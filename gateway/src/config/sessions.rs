//! The sessions of a config: templates become their instances, and each session is checked.

use super::check::some_notional;
use super::range::{if_there, in_range};
use super::risk::RateActionName;
use super::{
    AllowList, ConfigError, Credentials, DoorConfig, Fingerprint, ProtocolConfig, SessionConfig, ShardConfig, User,
    client_link, raw, risk, tls,
};
use crate::limits::{MAX_FRAME_LENGTH, MAX_SESSIONS};
use crate::schedule::Schedule;
use crate::session::CL_ORD_IDS_MAX;
use orders::{AGE_MAX_MS, REPEATS_MAX, RateLimit, RepeatLimit, SelfMatch, SessionLimits};
use proto::fix::{CompId, Version};
use proto::soup::UserName;
use std::path::Path;
use std::sync::Arc;
use types::{AccountId, Duration, Instrument, SessionId, ShardId};

/// Most of a session's `send_buffer_bytes`: what is above is a slip of the pen, and would end in a panic.
const SEND_BUFFER_BYTES_MAX: usize = 1 << 30;

/// Most of a session's `resend_messages`.
const RESEND_MESSAGES_MAX: usize = 1 << 26;

/// As `client_comp_id`: any client, each with an instance of the template.
const ANY: &str = "*";

/// Each template becomes its instances, with the ids from the template's own on.
pub(super) fn instances(sessions: Vec<raw::Session>) -> Result<Vec<raw::Session>, ConfigError> {
    let mut all = Vec::with_capacity(sessions.len());
    for session in sessions {
        let id = session.id;
        let is_template = session.client_comp_id.as_deref() == Some(ANY);
        match (is_template, session.instances) {
            (false, None) => all.push(session),
            (true, Some(count @ 1..)) if usize::from(count) <= MAX_SESSIONS && id.checked_add(count).is_some() => {
                all.extend((id..id + count).map(|instance| raw::Session {
                    id: instance,
                    template: Some(id),
                    ..session.clone()
                }));
            }
            (true, Some(count)) => {
                return Err(ConfigError(format!(
                    "session {id}: instances = {count} is not possible; 1 to {MAX_SESSIONS}"
                )));
            }
            (true, None) => {
                return Err(ConfigError(format!(
                    "session {id}: client_comp_id = \"{ANY}\" needs instances, the clients that it is for at most"
                )));
            }
            (false, Some(_)) => {
                return Err(ConfigError(format!(
                    "session {id}: instances needs client_comp_id = \"{ANY}\""
                )));
            }
        }
    }
    Ok(all)
}

/// Checks sessions that are no templates any more, each and all together.
pub(super) fn check(
    gateway: &raw::Gateway,
    shards: &[ShardConfig],
    door: &DoorConfig,
    credentials: Option<&Credentials>,
    base: &Path,
) -> Result<Vec<SessionConfig>, ConfigError> {
    let certificates = gateway.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    let checked = gateway
        .sessions
        .iter()
        .map(|raw| {
            Ok(SessionConfig {
                client_certificate: client_certificate(raw, certificates)?,
                schedule: schedule(raw)?.map(Arc::new),
                ..session(raw, shards, credentials, base)?
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    for session in checked.iter().filter(|session| session.link.is_none()) {
        is_reachable(session, shards, door)?;
    }
    client_link::count(&checked)?;
    for (place, one) in checked.iter().enumerate() {
        if let Some(other) = checked[..place].iter().find(|other| is_ambiguous(one, other)) {
            return Err(ConfigError(format!(
                "sessions {} and {} cannot be told apart: a client that logs on would be both",
                other.id, one.id
            )));
        }
    }
    Ok(checked)
}

/// What the order logic is told of a session.
pub(super) fn orders(
    raw: &raw::Session,
    raw_risk: &raw::Risk,
    instruments: &[Instrument],
    shard: ShardId,
) -> Result<orders::SessionConfig, ConfigError> {
    let of = format!("session {}", raw.id);
    let amount = |key: &str, text| some_notional(&format!("{of}: {key}"), text);
    let (classes, symbols) = (&raw.restricted_classes, &raw.restricted_symbols);
    Ok(orders::SessionConfig {
        id: SessionId(raw.id),
        accounts: raw.accounts.iter().copied().map(AccountId).collect(),
        owner: raw.owner,
        self_match: match raw.self_match {
            raw::SelfMatch::Newest => SelfMatch::CancelNewest,
            raw::SelfMatch::Oldest => SelfMatch::CancelOldest,
            raw::SelfMatch::Both => SelfMatch::CancelBoth,
            raw::SelfMatch::Decrement => SelfMatch::Decrement,
        },
        crossing: raw.crossing,
        cancel_on_disconnect: raw.cancel_on_disconnect,
        limits: SessionLimits {
            max_open_orders: in_range(format!("{of}: max_open_orders"), raw.max_open_orders, 1, u32::MAX)?,
            max_open_notional: amount("max_open_notional", raw.max_open_notional.as_ref())?,
            max_quantity: risk::some_lots(&format!("{of}: max_quantity_lots"), raw.max_quantity_lots)?,
            max_notional: amount("max_notional", raw.max_notional.as_ref())?,
            rate: rate(&of, raw.max_orders_per_second, raw.max_orders_at_once, raw.rate_action)?,
            repeats: repeats(&of, raw.max_repeats, raw.repeats_within_ms)?,
        },
        restrictions: risk::restrictions(&of, classes, symbols, &raw_risk.classes, instruments, shard)?,
    })
}

/// All of a rate, or nothing: then there is no limit.
pub(super) fn rate(
    of: &str,
    per_second: Option<u32>,
    at_once: Option<u32>,
    action: Option<RateActionName>,
) -> Result<RateLimit, ConfigError> {
    if_there(format!("{of}: max_orders_per_second"), per_second, 1, u32::MAX)?;
    if_there(format!("{of}: max_orders_at_once"), at_once, 1, u32::MAX)?;
    match (per_second, at_once, action) {
        (None, None, None) | (Some(_), Some(_), Some(_)) => Ok(RateLimit {
            per_second,
            at_once,
            action: action.map(Into::into),
        }),
        _ => Err(ConfigError(format!(
            "{of}: max_orders_per_second, max_orders_at_once and rate_action belong together"
        ))),
    }
}

fn repeats(of: &str, orders: Option<u32>, within_ms: Option<u64>) -> Result<RepeatLimit, ConfigError> {
    if_there(format!("{of}: max_repeats"), orders, 1, REPEATS_MAX)?;
    if_there(format!("{of}: repeats_within_ms"), within_ms, 1, AGE_MAX_MS)?;
    match (orders, within_ms) {
        (None, None) | (Some(_), Some(_)) => Ok(RepeatLimit {
            orders,
            within: within_ms.map(Duration::from_millis),
        }),
        _ => Err(ConfigError(format!(
            "{of}: max_repeats and repeats_within_ms belong together"
        ))),
    }
}

fn session(
    raw: &raw::Session,
    shards: &[ShardConfig],
    credentials: Option<&Credentials>,
    base: &Path,
) -> Result<SessionConfig, ConfigError> {
    let id = raw.id;
    let Some(shard) = shards.get(usize::from(raw.shard)) else {
        return Err(ConfigError(format!(
            "session {id} is on shard {}, which is not in the config",
            raw.shard
        )));
    };
    let link = client_link::link(raw, base)?;
    let (resend_messages, send_buffer_bytes) = match &raw.link {
        Some(link) => (link.link.window_messages, 0),
        None => buffers(raw)?,
    };
    let protocol = match raw.protocol {
        raw::Protocol::Fix => fix(raw)?,
        raw::Protocol::Native => native(raw)?,
    };
    Ok(SessionConfig {
        id: SessionId(id),
        template: raw.template.map(SessionId),
        shard: shard.id,
        user: if link.is_some() { None } else { user(raw, credentials)? },
        allow: AllowList::parse(&format!("session {id}: allow"), raw.allow.as_deref())?,
        client_certificate: None,
        schedule: None,
        drop_copy: raw.drop_copy.iter().copied().map(AccountId).collect(),
        resend_messages,
        send_buffer_bytes,
        link,
        protocol,
    })
}

/// Messages kept and bytes that wait for a client that comes in over TCP.
fn buffers(raw: &raw::Session) -> Result<(usize, usize), ConfigError> {
    let id = raw.id;
    let resend_messages = raw.resend_messages.ok_or_else(|| missing(id, "resend_messages"))?;
    let send_buffer_bytes = raw.send_buffer_bytes.ok_or_else(|| missing(id, "send_buffer_bytes"))?;
    if send_buffer_bytes < 2 * MAX_FRAME_LENGTH {
        let least = 2 * MAX_FRAME_LENGTH;
        return Err(ConfigError(format!(
            "session {id}: send_buffer_bytes must be at least {least}"
        )));
    }
    for (key, count, most) in [
        ("send_buffer_bytes", send_buffer_bytes, SEND_BUFFER_BYTES_MAX),
        ("resend_messages", resend_messages, RESEND_MESSAGES_MAX),
        ("cl_ord_ids", raw.cl_ord_ids.unwrap_or(0), CL_ORD_IDS_MAX),
    ] {
        if count > most {
            return Err(ConfigError(format!(
                "session {id}: {key} = {count} is too much; at most {most}"
            )));
        }
    }
    Ok((resend_messages.max(1), send_buffer_bytes))
}

fn fix(raw: &raw::Session) -> Result<ProtocolConfig, ConfigError> {
    let id = raw.id;
    let client_comp_id = match raw.template {
        Some(_) => None,
        None => Some(comp_id(id, "client_comp_id", raw.client_comp_id.as_ref())?),
    };
    Ok(ProtocolConfig::Fix {
        client_comp_id,
        our_comp_id: comp_id(id, "our_comp_id", raw.our_comp_id.as_ref())?,
        versions: versions(id, raw.versions.as_deref())?,
        reset_on_logon: raw.reset_on_logon.unwrap_or(false),
        next_expected: raw.next_expected.unwrap_or(false),
        resend_chunk: raw.resend_chunk.unwrap_or(0),
        cl_ord_ids: raw.cl_ord_ids.ok_or_else(|| missing(id, "cl_ord_ids"))?,
    })
}

fn native(raw: &raw::Session) -> Result<ProtocolConfig, ConfigError> {
    let id = raw.id;
    for (key, is_there) in [
        ("client_comp_id", raw.client_comp_id.is_some()),
        ("our_comp_id", raw.our_comp_id.is_some()),
        ("versions", raw.versions.is_some()),
        ("reset_on_logon", raw.reset_on_logon.is_some()),
        ("next_expected", raw.next_expected.is_some()),
        ("resend_chunk", raw.resend_chunk.is_some()),
        ("cl_ord_ids", raw.cl_ord_ids.is_some()),
        ("client_certificate", raw.client_certificate.is_some()),
        ("schedule", raw.schedule.is_some()),
        ("drop_copy", !raw.drop_copy.is_empty()),
    ] {
        if is_there {
            return Err(ConfigError(format!("session {id} is native; {key} is for FIX")));
        }
    }
    Ok(ProtocolConfig::Native {
        user: native_user(raw)?,
    })
}

/// The user of a native session: over SoupBinTCP what the login has room for.
fn native_user(raw: &raw::Session) -> Result<String, ConfigError> {
    let id = raw.id;
    let user = raw.user.clone().ok_or_else(|| missing(id, "user"))?;
    let (has_room, most) = match raw.link {
        Some(_) => (true, 64),
        None => (UserName::new(user.as_bytes()).is_some(), 6),
    };
    if !has_room || CompId::new(user.as_bytes()).is_none() {
        return Err(ConfigError(format!(
            "session {id}: user = \"{user}\" is no user of a native session (printable ASCII without blanks, at most {most})"
        )));
    }
    Ok(user)
}

/// Which user the client has to be. A native client names one in any case, and needs a password where there are any.
fn user(raw: &raw::Session, credentials: Option<&Credentials>) -> Result<Option<User>, ConfigError> {
    let id = raw.id;
    let Some(user) = &raw.user else { return Ok(None) };
    let is_fix = raw.protocol == raw::Protocol::Fix;
    match credentials {
        Some(_) if is_fix && user == ANY => Ok(Some(User::Any)),
        Some(credentials) if credentials.get(user).is_some() => Ok(Some(User::Named(user.clone()))),
        Some(_) => Err(ConfigError(format!(
            "session {id}: user \"{user}\" is not in the credentials file; `tickgate password USER` makes its line"
        ))),
        None if is_fix => Err(ConfigError(format!(
            "session {id} names a user; its password needs `credentials = \"FILE\"`"
        ))),
        None => Ok(None),
    }
}

fn schedule(raw: &raw::Session) -> Result<Option<Schedule>, ConfigError> {
    let Some(schedule) = &raw.schedule else { return Ok(None) };
    Schedule::parse(&schedule.zone, &schedule.start, &schedule.end, schedule.days.as_deref())
        .map(Some)
        .map_err(|what| ConfigError(format!("session {}: schedule: {what}", raw.id)))
}

/// The certificate that the client has to have, where certificates are asked for.
fn client_certificate(raw: &raw::Session, are_asked_for: bool) -> Result<Option<Fingerprint>, ConfigError> {
    let id = raw.id;
    match &raw.client_certificate {
        None => Ok(None),
        Some(_) if !are_asked_for => Err(ConfigError(format!(
            "session {id}: client_certificate needs [tls] with client_ca"
        ))),
        Some(text) => tls::fingerprint(text).map(Some).ok_or_else(|| {
            ConfigError(format!(
                "session {id}: client_certificate is no SHA-256 fingerprint, as `openssl x509 -fingerprint -sha256` prints it"
            ))
        }),
    }
}

/// Any address takes any session of its protocol, whatever the shard.
fn is_reachable(session: &SessionConfig, shards: &[ShardConfig], door: &DoorConfig) -> Result<(), ConfigError> {
    let (protocol, key, of_door, of_shards) = match session.protocol {
        ProtocolConfig::Fix { .. } => (
            "FIX",
            "fix_listen",
            door.fix_listen.or(door.fix_tls_listen),
            shards
                .iter()
                .find_map(|shard| shard.fix_listen.or(shard.fix_tls_listen)),
        ),
        ProtocolConfig::Native { .. } => (
            "native",
            "native_listen",
            door.native_listen,
            shards.iter().find_map(|shard| shard.native_listen),
        ),
    };
    if of_door.or(of_shards).is_none() {
        return Err(ConfigError(format!(
            "session {} is {protocol}, and nothing listens for that; give its shard or the door a {key}",
            session.id
        )));
    }
    Ok(())
}

/// The versions that a client may speak: FIX 4.4 unless others are named.
fn versions(session: u16, names: Option<&[String]>) -> Result<Vec<Version>, ConfigError> {
    let Some(names) = names else {
        return Ok(vec![Version::default()]);
    };
    if names.is_empty() {
        return Err(ConfigError(format!("session {session}: versions is empty")));
    }
    let version = |name: &String| {
        Version::from_name(name).ok_or_else(|| {
            let known = Version::ALL.map(Version::name).join(", ");
            ConfigError(format!("session {session}: version \"{name}\" is none of {known}"))
        })
    };
    names.iter().map(version).collect()
}

fn comp_id(session: u16, key: &str, text: Option<&String>) -> Result<String, ConfigError> {
    match text {
        Some(text) if CompId::new(text.as_bytes()).is_some() => Ok(text.clone()),
        Some(text) => Err(ConfigError(format!(
            "session {session}: {key} = \"{text}\" is no CompID (printable ASCII, at most 64)"
        ))),
        None => Err(missing(session, key)),
    }
}

fn missing(session: u16, key: &str) -> ConfigError {
    ConfigError(format!("session {session} needs {key}"))
}

/// Whether what a client says at logon may name either of two sessions. Instances of one template are told apart by who
/// came first; a session that is written out goes before a template.
fn is_ambiguous(one: &SessionConfig, other: &SessionConfig) -> bool {
    match (&one.protocol, &other.protocol) {
        (
            ProtocolConfig::Fix {
                client_comp_id,
                our_comp_id,
                versions,
                ..
            },
            ProtocolConfig::Fix {
                client_comp_id: other_client,
                our_comp_id: other_our,
                versions: other_versions,
                ..
            },
        ) => {
            let is_same_template = one.template.is_some() && one.template == other.template;
            let begins_alike = |version: &Version| {
                let mut others = other_versions.iter();
                others.any(|other| other.begin_string() == version.begin_string())
            };
            !is_same_template
                && client_comp_id == other_client
                && our_comp_id == other_our
                && versions.iter().any(begins_alike)
        }
        (ProtocolConfig::Native { user }, ProtocolConfig::Native { user: other }) => user == other,
        _ => false,
    }
}
