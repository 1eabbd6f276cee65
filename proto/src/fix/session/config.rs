//! What a session is told when it is made.

use crate::fix::{Dictionaries, MAX_VALUE_LENGTH, TimePrecision, Version};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use types::Duration;

/// Which end of the connection a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Waits for a Logon.
    Acceptor,
    /// Sends one.
    Initiator,
}

/// When a logon starts the sequence numbers again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ResetOnLogon {
    /// Numbers go on from one connection to the next, and what was missed is recovered.
    #[default]
    Never,
    /// Once, by an end that has kept no numbers from before it was started.
    First,
    /// With each connection; what was missed is lost.
    Always,
}

/// A CompID: 1 to [`MAX_VALUE_LENGTH`] printable ASCII bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CompId {
    bytes: [u8; MAX_VALUE_LENGTH],
    length: u8,
}

/// The settings of one session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Which end it is.
    pub role: Role,
    /// SenderCompID (49) of what it sends.
    pub sender_comp_id: CompId,
    /// TargetCompID (56) of what it sends. [`super::Session::bind`] sets it later, for whoever comes first.
    pub target_comp_id: CompId,
    /// Versions that the peer may speak, at least one. Its Logon says which. An initiator speaks the first.
    pub versions: Vec<Version>,
    /// What messages are checked against, by version; none in versions without.
    pub dictionaries: Dictionaries,
    /// HeartBtInt (108) that an initiator asks for, whole seconds; 0 is none. An acceptor takes what it is asked for.
    pub heartbeat: Duration,
    /// When both ends start at sequence number 1. An initiator asks for it (141=Y); an acceptor does it unasked.
    pub reset_on_logon: ResetOnLogon,
    /// Whether Logons say which number is expected next (789), so that what is missing is sent without being asked for. An
    /// acceptor always says it to a peer that did. Only versions from 4.4 on have it.
    pub next_expected: bool,
    /// How many messages are asked for at a time when some are missing; 0 is all at once.
    pub resend_chunk: u64,
    /// How far SendingTime (52) may be from the clock; 0 is any distance.
    pub sending_time_tolerance: Duration,
    /// How long a connection may take to log on.
    pub logon_timeout: Duration,
    /// How long the peer may take to answer a Logout.
    pub logout_timeout: Duration,
    /// How long the peer may take to close after its Logout was answered, or after it was told that it is wrong.
    pub close_timeout: Duration,
    /// Decimals of timestamps.
    pub time_precision: TimePrecision,
    /// How many sent messages are kept for resends.
    pub store_messages: usize,
    /// How many bytes of their bodies are kept, at least one message's.
    pub store_bytes: usize,
    /// How many bytes of messages are kept that came before ones that are missing. What does not fit is dropped, and comes
    /// again: all that follows a gap is asked for with it.
    pub early_bytes: usize,
}

impl CompId {
    /// A CompID from text. `None` when it is empty, too long or not printable ASCII.
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Self> {
        let length = u8::try_from(text.len()).ok()?;
        if text.is_empty() || text.len() > MAX_VALUE_LENGTH || !text.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut bytes = [0; MAX_VALUE_LENGTH];
        bytes[..text.len()].copy_from_slice(text);
        Some(Self { bytes, length })
    }

    /// The text.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for CompId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(core::str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

impl fmt::Debug for CompId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SessionConfig {
    /// The usual settings: FIX 4.4, heartbeats every 30 s, clocks within 120 s, 10 s to log on or out and 1 s to close,
    /// numbers that go on from one connection to the next, 1,024 messages kept, and 16 KiB of what comes early.
    #[must_use]
    pub fn new(role: Role, sender_comp_id: CompId, target_comp_id: CompId) -> Self {
        Self {
            role,
            sender_comp_id,
            target_comp_id,
            versions: vec![Version::Fix44],
            dictionaries: Dictionaries::default(),
            heartbeat: Duration::from_secs(30),
            reset_on_logon: ResetOnLogon::Never,
            next_expected: false,
            resend_chunk: 0,
            sending_time_tolerance: Duration::from_secs(120),
            logon_timeout: Duration::from_secs(10),
            logout_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(1),
            time_precision: TimePrecision::Milliseconds,
            store_messages: 1_024,
            store_bytes: 256 * 1_024,
            early_bytes: 16 * 1_024,
        }
    }
}
