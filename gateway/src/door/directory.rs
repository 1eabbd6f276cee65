//! Who may come in: the sessions of the config by what their clients say of themselves.
//!
//! A FIX client is known by BeginString, SenderCompID and TargetCompID. When no session is written out for it, a template
//! may take it: the first Logon of a new client binds a free instance to it, and the instance stays its own for the day.
//! The binding is an input of the instance's shard; so it is in the journal, and here again after a restart.

use super::logon::FixLogon;
use super::refusal::Refusal;
use crate::config::{AllowList, Config, Credentials, Fingerprint, ProtocolConfig, Secret, SessionConfig, User};
use crate::schedule::Schedule;
use proto::fix::CompId;
use std::net::IpAddr;
use std::sync::Arc;
use types::{SessionId, ShardId, Timestamp};

/// All sessions that may log on. Those with a link of their own do not.
#[derive(Debug)]
pub(super) struct Directory {
    native: Vec<NativeEntry>,
    fix: Vec<FixEntry>,
    config: Arc<Config>,
    credentials: Arc<Credentials>,
}

/// Where a client goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Destination {
    pub(super) session: SessionId,
    /// The shard that serves it.
    pub(super) shard: ShardId,
    /// Of a template's instance: the shard writes it down when it does not know it yet.
    pub(super) binding: Option<Binding>,
}

/// An instance of a template, and the client whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The instance.
    pub session: SessionId,
    /// BeginString (8) of the client, zeros on the right.
    pub begin_string: [u8; 8],
    /// SenderCompID (49) of the client.
    pub comp_id: CompId,
}

/// Where a client comes from, and what its connection proves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) address: IpAddr,
    pub(super) certificate: Option<Fingerprint>,
}

#[derive(Debug)]
struct NativeEntry {
    session: SessionId,
    shard: ShardId,
    user: String,
    allow: AllowList,
}

#[derive(Debug)]
struct FixEntry {
    session: SessionId,
    shard: ShardId,
    client: Client,
    our_comp_id: String,
    begin_strings: Vec<&'static [u8]>,
    user: Option<User>,
    allow: AllowList,
    certificate: Option<Fingerprint>,
    schedule: Option<Arc<Schedule>>,
}

#[derive(Debug)]
enum Client {
    /// Written out in the config.
    Named(String),
    /// Of a template's instance.
    Bound(Option<Binding>),
}

impl Directory {
    /// The sessions of a config, and whose the instances of templates are already.
    pub(super) fn new(config: &Arc<Config>, bindings: &[Binding]) -> Self {
        let mut directory = Self {
            native: Vec::new(),
            fix: Vec::new(),
            config: Arc::clone(config),
            credentials: Arc::new(config.credentials.clone()),
        };
        for session in config.sessions.iter().filter(|session| session.link.is_none()) {
            match &session.protocol {
                ProtocolConfig::Native { user } => directory.native.push(NativeEntry {
                    session: session.id,
                    shard: session.shard,
                    user: user.clone(),
                    allow: session.allow.clone(),
                }),
                ProtocolConfig::Fix { .. } => directory.fix.extend(FixEntry::new(session, bindings)),
            }
        }
        directory
    }

    /// Whose passwords are known.
    pub(super) const fn credentials(&self) -> &Arc<Credentials> {
        &self.credentials
    }

    /// From now on these are.
    pub(super) fn set_credentials(&mut self, credentials: Credentials) {
        self.credentials = Arc::new(credentials);
    }

    /// Whether anybody may come from an address.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        let mut native = self.native.iter().map(|entry| &entry.allow);
        let mut fix = self.fix.iter().map(|entry| &entry.allow);
        self.config.door.allow.allows(address)
            && (native.any(|allow| allow.allows(address)) || fix.any(|allow| allow.allows(address)))
    }

    /// Where a native client goes, and what its password must be, where it needs one.
    pub(super) fn native(&self, user: &str, from: &Origin) -> Result<(Destination, Option<Arc<Secret>>), Refusal> {
        let mut entries = self.native.iter();
        let entry = entries.find(|entry| entry.user == user).ok_or(Refusal::Unknown)?;
        if !entry.allow.allows(from.address) {
            return Err(Refusal::Address);
        }
        let destination = Destination {
            session: entry.session,
            shard: entry.shard,
            binding: None,
        };
        let secret = self.credentials.get(user).map(Arc::clone);
        // One whose line was taken out of the file since.
        if secret.is_none() && self.credentials.are_of_a_file() {
            return Err(Refusal::User);
        }
        Ok((destination, secret))
    }

    /// What the password of a FIX client must be; `None` when its session needs none.
    pub(super) fn fix_secret(&self, logon: &FixLogon<'_>, from: &Origin) -> Result<Option<Arc<Secret>>, Refusal> {
        let entry = &self.fix[self.find(logon)?];
        if !entry.allow.allows(from.address) {
            return Err(Refusal::Address);
        }
        if entry.certificate.is_some() && entry.certificate != from.certificate {
            return Err(Refusal::Certificate);
        }
        let name = std::str::from_utf8(logon.username).map_err(|_| Refusal::User)?;
        match &entry.user {
            None => return Ok(None),
            Some(User::Named(user)) if user != name => return Err(Refusal::User),
            Some(_) => {}
        }
        let secret = self.credentials.get(name).ok_or(Refusal::User)?;
        Ok(Some(Arc::clone(secret)))
    }

    /// Where a FIX client goes whose password is right. Binds an instance to a new client of a template.
    pub(super) fn fix(&mut self, now: Timestamp, logon: &FixLogon<'_>) -> Result<Destination, Refusal> {
        let place = self.find(logon)?;
        let entry = &mut self.fix[place];
        let is_closed = |schedule: &Arc<Schedule>| schedule.at(now).since.is_none();
        if entry.schedule.as_ref().is_some_and(is_closed) {
            return Err(Refusal::OutsideHours);
        }
        let binding = match &mut entry.client {
            Client::Named(_) => None,
            Client::Bound(Some(binding)) => Some(*binding),
            Client::Bound(bound @ None) => {
                *bound = Binding::new(entry.session, begin_string(logon.begin_string), logon.sender_comp_id);
                Some(bound.ok_or(Refusal::Unknown)?)
            }
        };
        Ok(Destination {
            session: entry.session,
            shard: entry.shard,
            binding,
        })
    }

    /// The session of a client: one that is written out for it, or an instance that is its own, or a free one. A client with
    /// a session of its own gets no other, or it would pass by what is asked of it there, with another version.
    fn find(&self, logon: &FixLogon<'_>) -> Result<usize, Refusal> {
        let is_meant = |entry: &FixEntry| entry.our_comp_id.as_bytes() == logon.target_comp_id;
        let rank = |entry: &FixEntry| match &entry.client {
            Client::Named(name) => (name.as_bytes() == logon.sender_comp_id).then_some(0),
            Client::Bound(Some(binding)) => binding.is_of(logon).then_some(1),
            Client::Bound(None) => Some(2),
        };
        let entries = || self.fix.iter().enumerate().filter(|(_, entry)| is_meant(entry));
        let found = entries()
            .filter(|(_, entry)| entry.speaks(logon))
            .filter_map(|(place, entry)| Some((rank(entry)?, place)))
            .min();
        match found {
            Some((1.., _)) if entries().any(|(_, entry)| rank(entry) == Some(0)) => Err(Refusal::BeginString),
            Some((_, place)) => Ok(place),
            None if entries().any(|(_, entry)| entry.is_taken_template(logon)) => Err(Refusal::TemplateFull),
            None if entries().any(|(_, entry)| rank(entry).is_some()) => Err(Refusal::BeginString),
            None => Err(Refusal::Unknown),
        }
    }
}

impl FixEntry {
    fn new(session: &SessionConfig, bindings: &[Binding]) -> Option<Self> {
        let ProtocolConfig::Fix {
            client_comp_id,
            our_comp_id,
            versions,
            ..
        } = &session.protocol
        else {
            return None;
        };
        let bound = || bindings.iter().find(|binding| binding.session == session.id).copied();
        Some(Self {
            session: session.id,
            shard: session.shard,
            client: match client_comp_id {
                Some(name) => Client::Named(name.clone()),
                None => Client::Bound(bound()),
            },
            our_comp_id: our_comp_id.clone(),
            begin_strings: versions.iter().map(|version| version.begin_string()).collect(),
            user: session.user.clone(),
            allow: session.allow.clone(),
            certificate: session.client_certificate,
            schedule: session.schedule.clone(),
        })
    }

    fn speaks(&self, logon: &FixLogon<'_>) -> bool {
        self.begin_strings.contains(&logon.begin_string)
    }

    /// Whether it is an instance that the client might have had, were it not another's.
    fn is_taken_template(&self, logon: &FixLogon<'_>) -> bool {
        matches!(self.client, Client::Bound(Some(_))) && self.speaks(logon)
    }
}

impl Binding {
    /// A binding as its record has it. `None` when the CompID is none.
    pub(crate) fn new(session: SessionId, begin_string: [u8; 8], comp_id: &[u8]) -> Option<Self> {
        Some(Self {
            session,
            begin_string,
            comp_id: CompId::new(comp_id)?,
        })
    }

    fn is_of(&self, logon: &FixLogon<'_>) -> bool {
        self.comp_id.as_bytes() == logon.sender_comp_id && self.begin_string == begin_string(logon.begin_string)
    }
}

/// A BeginString of a version that is known: at most eight bytes.
fn begin_string(text: &[u8]) -> [u8; 8] {
    let mut padded = [0; 8];
    for (to, from) in padded.iter_mut().zip(text) {
        *to = *from;
    }
    padded
}
