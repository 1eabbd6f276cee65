//! What a session gives its owner: bytes to send, what happened, and messages for the order logic.

use super::Logon;
use crate::fix::{Message, msg_type};
use types::{SequenceNumber, Timestamp};

/// Where a session's outputs go.
pub trait Output {
    /// Send these bytes. A number may come more than once: resends, and the answer to a failed logon, which has the number
    /// of the next message.
    fn transmit(&mut self, sequence: SequenceNumber, message: &[u8]);

    /// This message has its number and is not sent yet: nobody is logged on, or others go before it. For an owner that
    /// keeps what was numbered, to find it when it is [recalled](Self::recall). The bytes are those of a first transmission.
    fn hold(&mut self, _sequence: SequenceNumber, _message: &[u8]) {}

    /// The peer needs messages that the session's memory no longer holds. An owner that can look them up says `true` and
    /// hands them in with [`super::Session::on_recalled`], in rising order, whenever it has them. For any other they are
    /// lost, and gap fills take their place.
    fn recall(&mut self, _recall: Recall) -> bool {
        false
    }

    /// The session is logged on. `logon` is what the peer said; credentials in it are not judged here.
    fn logged_on(&mut self, logon: &Logon<'_>);

    /// The peer has sent a Logout with this Text (58). The core answers and waits for the peer to close.
    fn logged_out(&mut self, text: &[u8]);

    /// Close the connection once what was given before is sent, then say [`super::Session::on_disconnected`]. `text` is what
    /// the peer said or was told; empty when there was nothing to say.
    fn close(&mut self, reason: CloseReason, text: &[u8]);
}

/// Messages that were numbered once and are no longer in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recall {
    /// Tells one recall from another: what comes for an older one is not used.
    pub id: u64,
    /// The first number.
    pub begin: SequenceNumber,
    /// The last number, at least `begin`.
    pub end: SequenceNumber,
}

/// A message that the order logic must see. It has had its turn in the sequence and comes once.
#[derive(Clone, Copy, Debug)]
pub struct Application<'f> {
    /// MsgType (35). Also Reject (3), which is for information and never answered.
    pub msg_type: &'f [u8],
    /// MsgSeqNum (34).
    pub sequence: SequenceNumber,
    /// SendingTime (52).
    pub sending_time: Timestamp,
    /// PossResend (97): the order logic looks whether it has seen the same under another number.
    pub poss_resend: bool,
    /// The whole message.
    pub message: Message<'f>,
}

/// Why a connection is to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// The first message was no Logon.
    NotLogon,
    /// The peer's Logon was refused.
    LogonRefused,
    /// The peer refused the Logon.
    LogonRefusedByPeer,
    /// No Logon came in time.
    LogonTimeout,
    /// Both ends have said Logout.
    LoggedOut,
    /// The peer did not answer a Logout, or did not close after one, in time.
    LogoutTimeout,
    /// Nothing came, not even after a test request.
    PeerSilent,
    /// A sequence number below the expected one.
    SequenceTooLow,
    /// A message without a sequence number.
    SequenceMissing,
    /// A message of another version.
    BeginString,
    /// A message of another session.
    CompId,
    /// SendingTime too far from the clock, or before OrigSendingTime.
    SendingTime,
    /// A message that is longer than any that is read, and whose number is not known.
    TooLong,
}

/// What a session has counted since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SessionCounters {
    /// Frames received.
    pub received: u64,
    /// Messages numbered.
    pub sent: u64,
    /// Messages sent again on request.
    pub resent: u64,
    /// Messages that the peer asked for, or that waited, and that could not be found any more: gap fills took their place.
    pub lost: u64,
    /// Rejects (3) sent.
    pub rejected: u64,
    /// Resend requests sent.
    pub resend_requests: u64,
    /// Messages that came before ones that are missing.
    pub early: u64,
    /// Those of them that found no room to wait in, and have to come again.
    pub early_dropped: u64,
    /// Messages that were longer than any that is read.
    pub too_long: u64,
    /// Possible duplicates dropped because they were seen.
    pub duplicates: u64,
    /// Logons.
    pub logons: u64,
    /// Logons that failed.
    pub logons_refused: u64,
    /// Times that both numbers started at 1 again.
    pub resets: u64,
    /// Session days that have begun, each with numbers from 1.
    pub days: u64,
}

impl<'f> Application<'f> {
    pub(super) fn new(sequence: SequenceNumber, message: Message<'f>) -> Self {
        Self {
            msg_type: message.msg_type(),
            sequence,
            sending_time: message.sending_time(),
            poss_resend: message.poss_resend(),
            message,
        }
    }

    /// Whether this is a Reject (3) or BusinessMessageReject (j), which are never answered.
    #[must_use]
    pub fn is_reject(&self) -> bool {
        matches!(self.msg_type, msg_type::REJECT | msg_type::BUSINESS_MESSAGE_REJECT)
    }
}

impl CloseReason {
    /// One clause for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotLogon => "first message was no Logon",
            Self::LogonRefused => "Logon refused",
            Self::LogonRefusedByPeer => "peer refused the Logon",
            Self::LogonTimeout => "no Logon in time",
            Self::LoggedOut => "logged out",
            Self::LogoutTimeout => "Logout was not answered in time",
            Self::PeerSilent => "peer is silent",
            Self::SequenceTooLow => "sequence number too low",
            Self::SequenceMissing => "message without sequence number",
            Self::BeginString => "wrong version",
            Self::CompId => "wrong CompID",
            Self::SendingTime => "sending time out of tolerance",
            Self::TooLong => "message is too long",
        }
    }
}
