//! What a TCP link is built from.

use super::outbox::Outbox;
use super::{CONTROL_BYTES, INPUT_BYTES};
use crate::error::SetupError;
use crate::link::LinkEnd;
use crate::options::TcpOptions;
use proto::soup::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH, Password, SessionName, Timing, UserName};
use std::io;
use types::Duration;

/// Everything that defines one end of a TCP link. Both ends have the same login, window and longest message.
#[derive(Clone, Copy, Debug)]
pub struct TcpLinkConfig {
    /// Which end it is, and where.
    pub end: LinkEnd,
    /// Who the initiator is.
    pub user_name: UserName,
    /// Its proof.
    pub password: Password,
    /// The session: one link between one gateway shard and one venue. Not blank.
    pub session: SessionName,
    /// Most unacknowledged messages, in each direction.
    pub window: usize,
    /// Longest message, bytes.
    pub max_message: usize,
    /// Heartbeats, and when a silent or stalled peer is given up.
    pub timing: Timing,
    /// Pause of the initiator after the first failed attempt to connect; it doubles with each.
    pub retry_min: Duration,
    /// Longest such pause.
    pub retry_max: Duration,
    /// Socket options.
    pub tcp: TcpOptions,
}

impl TcpLinkConfig {
    /// A link with the tuned socket options and the usual limits: a window of 4,096 messages of at most 64 bytes, a
    /// heartbeat each second, a peer dead after 15 s, reconnecting after 10 ms to 1 s.
    #[must_use]
    pub fn new(end: LinkEnd, user_name: UserName, password: Password, session: SessionName) -> Self {
        Self {
            end,
            user_name,
            password,
            session,
            window: 4_096,
            max_message: 64,
            timing: Timing::default(),
            retry_min: Duration::from_millis(10),
            retry_max: Duration::from_secs(1),
            tcp: TcpOptions::tuned(),
        }
    }

    /// Bytes of memory that the link allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        Outbox::memory(self.window, self.packet_max()) + INPUT_BYTES + CONTROL_BYTES
    }

    /// Longest packet of a message.
    pub(super) const fn packet_max(&self) -> usize {
        HEADER_LENGTH + self.max_message
    }

    /// Looks for contradictions.
    pub(in crate::link) fn check(&self) -> Result<(), SetupError> {
        let wrong = |what: &'static str, advice| {
            let doing = format!("building link {}", self.session.as_str());
            Err(SetupError::new(
                doing,
                io::Error::new(io::ErrorKind::InvalidInput, what),
                advice,
            ))
        };
        if self.session == SessionName::BLANK {
            return wrong("the session is blank", "give each link a session name of its own");
        }
        if self.window == 0 || self.window > WINDOW_MAX {
            return wrong("the window is out of range", "set it between 1 and 1,048,576 messages");
        }
        if self.max_message == 0 || self.max_message > MAX_PAYLOAD_LENGTH {
            return wrong(
                "the longest message is out of range",
                "set it between 1 and 1,024 bytes",
            );
        }
        if self.timing.heartbeat.0 == 0 || self.timing.heartbeat >= self.timing.dead_after {
            return wrong(
                "a peer would be dead before its heartbeat",
                "set the heartbeat below the time to be dead",
            );
        }
        if self.retry_min.0 == 0 || self.retry_min > self.retry_max {
            return wrong(
                "the pauses between attempts contradict",
                "set the shortest above 0 and below the longest",
            );
        }
        Ok(())
    }
}

/// Largest window, so that memory is bounded whatever a config says.
const WINDOW_MAX: usize = 1 << 20;
