//! Why a client does not come in, and how it is told.

use super::logon::{FixLogon, first_message};
use proto::fix;
use proto::soup::LoginRefusal;
use types::{Reason, Timestamp};

/// Why a logon is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Nobody by that name.
    Unknown,
    /// Not from that address.
    Address,
    /// Without the certificate that its session needs.
    Certificate,
    /// Not that user, or nobody by that name.
    User,
    /// Another password.
    Password,
    /// A version that the client's session does not speak.
    BeginString,
    /// The session's schedule has it closed.
    OutsideHours,
    /// An operator has disabled the session.
    Disabled,
    /// Every instance of the template is another client's.
    TemplateFull,
    /// The session has a live connection, which is kept.
    AlreadyConnected,
    /// The client wants a session whose numbers began another day.
    OtherSession,
    /// Its first message is longer than any that is read.
    TooLong,
    /// The client wants messages that are no longer held, or do not exist yet.
    NotHeld,
}

impl Refusal {
    /// In SoupBinTCP.
    pub(crate) const fn in_soup(self) -> LoginRefusal {
        match self {
            _ if self.is_unauthorised() => LoginRefusal::NotAuthorized,
            _ => LoginRefusal::SessionNotAvailable,
        }
    }

    /// Whether the client did not prove to be one that may come in. It is not told more than that.
    pub(crate) const fn is_unauthorised(self) -> bool {
        matches!(
            self,
            Self::Unknown | Self::Address | Self::Certificate | Self::User | Self::Password
        )
    }

    /// For the peer: no more than it may know.
    const fn said(self) -> &'static str {
        if self.is_unauthorised() {
            "not authorised"
        } else {
            self.text()
        }
    }

    /// For the log.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "unknown name",
            Self::Address => "not from this address",
            Self::Certificate => "without the certificate that the session needs",
            Self::User => "another user's session, or an unknown user",
            Self::Password => "wrong password",
            Self::BeginString => "Incorrect BeginString",
            Self::OutsideHours => "outside the session's hours",
            Self::Disabled => Reason::SessionDisabled.text(),
            Self::TemplateFull => "all sessions for new clients are taken",
            Self::AlreadyConnected => "session is already logged on",
            Self::OtherSession => "session of another journal",
            Self::TooLong => "message is longer than 4096 bytes",
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
    let logon = FixLogon::parse(first_message(received));
    let cut = |text| <[u8]>::split_at_checked(text, fix::MAX_VALUE_LENGTH).map_or(text, |(head, _)| head);
    let mut versions = fix::Version::ALL.into_iter();
    let spoken = versions.find(|version| version.begin_string() == logon.begin_string);
    let header = fix::MessageHeader {
        version: spoken.unwrap_or_default(),
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
