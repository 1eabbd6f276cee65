//! The native side of the connection: SoupBinTCP packets with native messages.

use super::connection::Answer;
use super::stream::SendBuffer;
use proto::native::{self, Message};
use proto::soup::{
    self, ClientEvent, ClientSession, HEADER_LENGTH, Login, MAX_PACKET_LENGTH, Password, SessionName, SoupError,
    Timing, UserName,
};
use types::{Request, Timestamp};

/// A SoupBinTCP session with its received bytes.
#[derive(Debug)]
pub(super) struct NativeWire {
    session: ClientSession,
    user: UserName,
    password: Password,
    /// Where to go on after a reconnect: session and number. The first login takes what is new.
    resume: (SessionName, u64),
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl NativeWire {
    pub(super) fn new(user: UserName, password: Password) -> Self {
        Self {
            session: ClientSession::new(Timestamp::NONE, Timing::default()),
            user,
            password,
            resume: (SessionName::BLANK, 0),
            bytes: vec![0; RECEIVE_BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    pub(super) fn on_connected(&mut self, now: Timestamp, out: &mut SendBuffer) {
        (self.start, self.end) = (0, 0);
        self.session = ClientSession::new(now, Timing::default());
        let login = Login {
            user_name: self.user,
            password: self.password,
            session: self.resume.0,
            sequence: self.resume.1,
        };
        out.push_with(MAX_PACKET_LENGTH, |space| self.session.login(now, &login, space));
    }

    pub(super) fn on_disconnected(&mut self) {
        if self.session.is_established() {
            self.resume = (self.session.session(), self.session.next_sequence().0);
        }
        self.session = ClientSession::new(Timestamp::NONE, Timing::default());
    }

    pub(super) fn is_logged_on(&self) -> bool {
        self.session.is_established()
    }

    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.bytes.len() - self.end < MAX_PACKET_LENGTH {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    pub(super) fn received(
        &mut self,
        now: Timestamp,
        count: usize,
        out: &mut SendBuffer,
        deliver: &mut impl FnMut(Answer),
    ) -> Result<(), SoupError> {
        self.end += count;
        while let Some((packet, length)) = soup::parse(&self.bytes[self.start..self.end])? {
            self.start += length;
            match self.session.on_packet(now, packet)? {
                Some(ClientEvent::Message { payload, .. } | ClientEvent::Unsequenced(payload)) => {
                    deliver(answer(payload));
                }
                Some(ClientEvent::Rejected(refusal)) => {
                    tracing::warn!("the gateway refuses the login: {refusal:?}");
                    out.close();
                }
                Some(ClientEvent::EndOfSession) => out.close(),
                Some(ClientEvent::Debug(text)) => tracing::debug!("the gateway says: {}", text.escape_ascii()),
                Some(ClientEvent::Accepted { .. }) | None => (),
            }
        }
        Ok(())
    }

    pub(super) fn on_timer(&mut self, now: Timestamp, out: &mut SendBuffer) {
        if self.session.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        out.push_with(MAX_PACKET_LENGTH, |space| match self.session.on_timeout(now, space) {
            Ok(length) => length,
            Err(error) => {
                tracing::warn!("session ends: {error}");
                0
            }
        });
        if !self.session.is_established() && self.session.poll_timeout().is_none() {
            out.close();
        }
    }

    pub(super) fn logout(&mut self, out: &mut SendBuffer) {
        if self.session.is_established() {
            out.push_with(MAX_PACKET_LENGTH, |space| self.session.logout(space));
        }
        out.close();
    }

    pub(super) fn write(&mut self, now: Timestamp, request: &Request, out: &mut SendBuffer) {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_request(request, &mut message);
        out.push_with(HEADER_LENGTH + length, |space| {
            self.session.send(now, &message[..length], space)
        });
    }
}

/// What a message of the gateway says.
pub(super) fn answer(payload: &[u8]) -> Answer {
    match native::decode(payload) {
        Ok(Message::Report(report)) => Answer::Report(report),
        Ok(Message::Reject(reject)) => {
            tracing::warn!("the gateway cannot take a message: {reject:?}");
            Answer::Protocol
        }
        Ok(other) => {
            tracing::warn!("a message that clients do not get: {other:?}");
            Answer::Protocol
        }
        Err(error) => {
            tracing::warn!("a message cannot be read: {}", error.text());
            Answer::Protocol
        }
    }
}

/// Received bytes that are not handled yet.
const RECEIVE_BUFFER_BYTES: usize = 64 * 1_024;
