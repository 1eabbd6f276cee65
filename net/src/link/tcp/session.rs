//! The Soup session of either end, in the words of the link.

use super::ack::parse_ack;
use super::refusal::parse_refusal;
use crate::link::DownReason;
use proto::ltp::Refusal;
use proto::soup::{
    ClientEvent, ClientSession, LoginRefusal, Packet, ServerEvent, ServerSession, SoupError, write_sequenced,
    write_unsequenced,
};
use types::Timestamp;

/// Which end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Connects and logs in; its messages are unsequenced packets, numbered by counting on both sides.
    Initiator,
    /// Listens; its messages are sequenced packets.
    Acceptor,
}

/// The session of one connection.
#[derive(Debug)]
pub(super) enum Session {
    /// The initiator's.
    Client(ClientSession),
    /// The acceptor's, logged in.
    Server(ServerSession),
}

/// What a packet means for the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Incoming<'a> {
    /// A sign of life.
    Nothing,
    /// The login was accepted.
    Accepted,
    /// The next message.
    Message(&'a [u8]),
    /// The peer has received so many messages of ours, counted from the first.
    Ack(u64),
}

impl Role {
    /// Writes one message as this end sends it; returns the packet's length.
    pub(super) fn write_message(self, message: &[u8], out: &mut [u8]) -> usize {
        match self {
            Self::Initiator => write_unsequenced(message, out),
            Self::Acceptor => write_sequenced(message, out),
        }
    }
}

impl Session {
    pub(super) fn on_packet<'a>(&mut self, now: Timestamp, packet: Packet<'a>) -> Result<Incoming<'a>, DownReason> {
        match self {
            Self::Client(session) => match session.on_packet(now, packet).map_err(reason)? {
                None => Ok(Incoming::Nothing),
                Some(ClientEvent::Debug(text)) => on_text(text),
                Some(ClientEvent::Accepted { .. }) => Ok(Incoming::Accepted),
                // A server that gives no better reason before.
                Some(ClientEvent::Rejected(LoginRefusal::NotAuthorized)) => {
                    Err(DownReason::RefusedBecause(Refusal::Credentials))
                }
                Some(ClientEvent::Rejected(LoginRefusal::SessionNotAvailable)) => Err(DownReason::Refused),
                Some(ClientEvent::Message { payload, .. }) => Ok(Incoming::Message(payload)),
                Some(ClientEvent::Unsequenced(payload)) => {
                    parse_ack(payload).map(Incoming::Ack).ok_or(DownReason::Malformed)
                }
                Some(ClientEvent::EndOfSession) => Err(DownReason::Closed),
            },
            Self::Server(session) => match session.on_packet(now, packet).map_err(reason)? {
                None => Ok(Incoming::Nothing),
                Some(ServerEvent::Debug(text)) => on_text(text),
                // The session allows one login, and that was before the link took it over.
                Some(ServerEvent::Login(_)) => Err(DownReason::Malformed),
                Some(ServerEvent::Message(payload)) => {
                    Ok(parse_ack(payload).map_or(Incoming::Message(payload), Incoming::Ack))
                }
                Some(ServerEvent::Logout) => Err(DownReason::Closed),
            },
        }
    }

    /// Writes a heartbeat if one is due; returns its length, 0 for none.
    pub(super) fn on_timeout(&mut self, now: Timestamp, out: &mut [u8]) -> Result<usize, DownReason> {
        match self {
            Self::Client(session) => session.on_timeout(now, out),
            Self::Server(session) => session.on_timeout(now, out),
        }
        .map_err(reason)
    }

    /// So many messages were sent, or other packets.
    pub(super) fn on_sent(&mut self, now: Timestamp, messages: u64) {
        match self {
            Self::Client(session) => session.on_sent(now),
            Self::Server(session) => session.on_sent(now, messages),
        }
    }
}

/// A text that is no reason is for people.
fn on_text<'a>(text: &[u8]) -> Result<Incoming<'a>, DownReason> {
    match parse_refusal(text) {
        Some(refusal) => Err(DownReason::RefusedBecause(refusal)),
        None => Ok(Incoming::Nothing),
    }
}

fn reason(error: SoupError) -> DownReason {
    match error {
        SoupError::Silence | SoupError::LoginTimeout => DownReason::Silent,
        SoupError::WrongSession => DownReason::Refused,
        _ => DownReason::Malformed,
    }
}
