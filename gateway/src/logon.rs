//! Who may log on: the sessions of a shard by what their clients say of themselves.

use crate::client_output::ClientOutputs;
use crate::config::{Config, ProtocolConfig};
use proto::fix;
use proto::soup::{Login, LoginRefusal, SessionName};
use types::{SequenceNumber, SessionId, ShardId, Timestamp, TradingDay};

/// The sessions that may log on at a shard.
#[derive(Debug)]
pub(crate) struct Directory {
    native: Vec<NativeEntry>,
    fix: Vec<FixEntry>,
    session_name: SessionName,
}

#[derive(Debug)]
struct NativeEntry {
    session: SessionId,
    user: String,
    password: String,
}

#[derive(Debug)]
struct FixEntry {
    session: SessionId,
    client_comp_id: String,
    our_comp_id: String,
}

/// Why a logon is refused. The peer learns no more than its protocol's code; the log has the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Nobody by that name, or another password.
    Unknown,
    /// The session has a live connection, which is kept.
    AlreadyConnected,
    /// The client wants the session of another day.
    OtherSession,
    /// The client wants messages that are no longer held, or do not exist yet.
    NotHeld,
}

impl Directory {
    /// The sessions of `shard`.
    pub(crate) fn new(config: &Config, shard: ShardId) -> Self {
        let mut directory = Self {
            native: Vec::new(),
            fix: Vec::new(),
            session_name: session_name(config.trading_day),
        };
        for session in config.sessions.iter().filter(|session| session.shard == shard) {
            match &session.protocol {
                ProtocolConfig::Native { user, password } => directory.native.push(NativeEntry {
                    session: session.id,
                    user: user.clone(),
                    password: password.clone(),
                }),
                ProtocolConfig::Fix {
                    client_comp_id,
                    our_comp_id,
                    ..
                } => directory.fix.push(FixEntry {
                    session: session.id,
                    client_comp_id: client_comp_id.clone(),
                    our_comp_id: our_comp_id.clone(),
                }),
            }
        }
        directory
    }

    /// The name of the running session in SoupBinTCP.
    pub(crate) const fn session_name(&self) -> SessionName {
        self.session_name
    }

    /// Judges a native login: whose session it is, and the number it goes on from.
    pub(crate) fn native(
        &self,
        login: &Login,
        outputs: &ClientOutputs,
    ) -> Result<(SessionId, SequenceNumber), Refusal> {
        let entry = self
            .native
            .iter()
            .find(|entry| entry.user == login.user_name.as_str() && entry.password == login.password.as_str())
            .ok_or(Refusal::Unknown)?;
        if login.session != SessionName::BLANK && login.session != self.session_name {
            return Err(Refusal::OtherSession);
        }
        let output = outputs.get(entry.session).ok_or(Refusal::Unknown)?;
        if output.is_connected() {
            return Err(Refusal::AlreadyConnected);
        }
        let (oldest, next) = output.held().ok_or(Refusal::Unknown)?;
        let from = login
            .resume_from(next)
            .filter(|&from| from >= oldest)
            .ok_or(Refusal::NotHeld)?;
        Ok((entry.session, from))
    }

    /// Judges the CompIDs of a FIX Logon: whose session it is.
    pub(crate) fn fix(&self, sender: &[u8], target: &[u8], outputs: &ClientOutputs) -> Result<SessionId, Refusal> {
        let entry = self
            .fix
            .iter()
            .find(|entry| entry.client_comp_id.as_bytes() == sender && entry.our_comp_id.as_bytes() == target)
            .ok_or(Refusal::Unknown)?;
        match outputs.get(entry.session) {
            Some(output) if output.is_connected() => Err(Refusal::AlreadyConnected),
            Some(_) => Ok(entry.session),
            None => Err(Refusal::Unknown),
        }
    }
}

impl Refusal {
    /// In SoupBinTCP.
    pub(crate) const fn in_soup(self) -> LoginRefusal {
        match self {
            Self::Unknown => LoginRefusal::NotAuthorized,
            Self::AlreadyConnected | Self::OtherSession | Self::NotHeld => LoginRefusal::SessionNotAvailable,
        }
    }

    /// For the log, and for a FIX Logout.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "not authorised",
            Self::AlreadyConnected => "session is already logged on",
            Self::OtherSession => "session of another day",
            Self::NotHeld => "messages asked for are not held",
        }
    }
}

/// The trading day as text: numbers start anew with it.
fn session_name(day: TradingDay) -> SessionName {
    SessionName::new(day.0.to_string().as_bytes()).unwrap_or(SessionName::BLANK)
}

/// Writes the Logout that refuses a FIX Logon which is of no session here, and gives its bytes. It says back the peer's own
/// CompIDs and takes no number of any session: the next attempt finds everything as it was.
pub(crate) fn refuse_fix<'b>(
    now: Timestamp,
    logon: &fix::Header<'_>,
    refusal: Refusal,
    buffer: &'b mut [u8; fix::MAX_MESSAGE_LENGTH],
) -> &'b [u8] {
    let cut = |text| <[u8]>::split_at_checked(text, fix::MAX_VALUE_LENGTH).map_or(text, |(head, _)| head);
    let header = fix::MessageHeader {
        sender_comp_id: cut(logon.target_comp_id),
        target_comp_id: cut(logon.sender_comp_id),
        sequence: 1,
        sending_time: now,
        orig_sending_time: None,
    };
    let mut encoder = fix::Encoder::start(buffer, fix::msg_type::LOGOUT, &header, fix::TimePrecision::Milliseconds);
    encoder.free_text(refusal.text().as_bytes());
    encoder.finish().unwrap_or_default()
}
