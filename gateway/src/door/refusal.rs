//! Why a client does not come in, and how it is told.

use super::logon::FixLogon;
use proto::fix;
use proto::soup::LoginRefusal;
use types::Timestamp;

/// Why a logon is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Nobody by that name.
    Unknown,
    /// Another password.
    Password,
    /// The session has a live connection, which is kept.
    AlreadyConnected,
    /// The client wants the session of another day.
    OtherSession,
    /// The client wants messages that are no longer held, or do not exist yet.
    NotHeld,
}

impl Refusal {
    /// In SoupBinTCP.
    pub(crate) const fn in_soup(self) -> LoginRefusal {
        match self {
            Self::Unknown | Self::Password => LoginRefusal::NotAuthorized,
            Self::AlreadyConnected | Self::OtherSession | Self::NotHeld => LoginRefusal::SessionNotAvailable,
        }
    }

    /// For the peer: no more than it may know.
    const fn said(self) -> &'static str {
        match self {
            Self::Unknown | Self::Password => "not authorised",
            _ => self.text(),
        }
    }

    /// For the log.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "unknown name",
            Self::Password => "wrong password",
            Self::AlreadyConnected => "session is already logged on",
            Self::OtherSession => "session of another day",
            Self::NotHeld => "messages asked for are not held",
        }
    }
}

/// Writes the Logout that refuses a FIX Logon, and gives its bytes. It says back the peer's own CompIDs, has the number 1,
/// and takes no number of any session: the next attempt finds everything as it was. `received` starts with the Logon.
pub(crate) fn refuse_fix<'b>(
    now: Timestamp,
    received: &[u8],
    refusal: Refusal,
    buffer: &'b mut [u8; fix::MAX_MESSAGE_LENGTH],
) -> &'b [u8] {
    let message = match fix::frame(received) {
        fix::Frame::Message(length) => &received[..length],
        _ => received,
    };
    let logon = FixLogon::parse(message);
    let cut = |text| <[u8]>::split_at_checked(text, fix::MAX_VALUE_LENGTH).map_or(text, |(head, _)| head);
    let header = fix::MessageHeader {
        version: fix::Version::default(),
        sender_comp_id: cut(logon.target_comp_id),
        target_comp_id: cut(logon.sender_comp_id),
        sequence: 1,
        sending_time: now,
        orig_sending_time: None,
    };
    let mut encoder = fix::Encoder::start(buffer, fix::msg_type::LOGOUT, &header, fix::TimePrecision::Milliseconds);
    encoder.free_text(refusal.said().as_bytes());
    encoder.finish().unwrap_or_default()
}
