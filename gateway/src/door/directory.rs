//! Who may come in: the sessions of the config by what their clients say of themselves.

use super::logon::FixLogon;
use super::refusal::Refusal;
use crate::config::{Config, ProtocolConfig};
use proto::soup::Login;
use types::{SessionId, ShardId};

/// All sessions that may log on.
#[derive(Debug)]
pub(super) struct Directory {
    native: Vec<NativeEntry>,
    fix: Vec<FixEntry>,
}

/// Where a client goes: its session, and the shard that serves it.
pub(super) type Destination = (SessionId, ShardId);

#[derive(Debug)]
struct NativeEntry {
    destination: Destination,
    user: String,
    password: String,
}

#[derive(Debug)]
struct FixEntry {
    destination: Destination,
    /// `None` for an instance of a template.
    client_comp_id: Option<String>,
    our_comp_id: String,
}

impl Directory {
    /// The sessions of a config.
    pub(super) fn new(config: &Config) -> Self {
        let mut directory = Self {
            native: Vec::new(),
            fix: Vec::new(),
        };
        for session in &config.sessions {
            let destination = (session.id, session.shard);
            match &session.protocol {
                ProtocolConfig::Native { user, password } => directory.native.push(NativeEntry {
                    destination,
                    user: user.clone(),
                    password: password.clone(),
                }),
                ProtocolConfig::Fix {
                    client_comp_id,
                    our_comp_id,
                    ..
                } => directory.fix.push(FixEntry {
                    destination,
                    client_comp_id: client_comp_id.clone(),
                    our_comp_id: our_comp_id.clone(),
                }),
            }
        }
        directory
    }

    /// Whose session a native client wants.
    pub(super) fn native(&self, login: &Login) -> Result<Destination, Refusal> {
        let mut entries = self.native.iter();
        let entry = entries
            .find(|entry| entry.user == login.user_name.as_str())
            .ok_or(Refusal::Unknown)?;
        if entry.password != login.password.as_str() {
            return Err(Refusal::Password);
        }
        Ok(entry.destination)
    }

    /// Whose session a FIX client wants.
    pub(super) fn fix(&self, logon: &FixLogon<'_>) -> Result<Destination, Refusal> {
        let is_meant = |entry: &&FixEntry| {
            entry.client_comp_id.as_deref().map(str::as_bytes) == Some(logon.sender_comp_id)
                && entry.our_comp_id.as_bytes() == logon.target_comp_id
        };
        let entry = self.fix.iter().find(is_meant).ok_or(Refusal::Unknown)?;
        Ok(entry.destination)
    }
}
