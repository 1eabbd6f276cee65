//! The session core of either end: logon, sequence numbers, keepalive, resends, logout.
//!
//! Inputs are connections that come and go, whole frames, and time; outputs go to an [`Output`]. There is no clock, no
//! socket and no randomness, so the same inputs give the same outputs, byte for byte, and a session is rebuilt by feeding
//! it its inputs again. Numbers and sent messages outlive a connection; only a reset ends them.
//!
//! **In.** A message has the expected number, or a higher one (a gap), or a lower one. At a gap the core asks once for
//! everything from the expected number on (`16=0`) and drops what comes too early: the peer sends it again, in order. A
//! resend request is answered, a test request too and a logout remembered, even when they come too early, or two ends
//! with a gap each would wait for one another. A lower number is an error, unless marked as a possible duplicate: then it
//! was seen and is dropped.
//!
//! **Out.** Every message but the answer to a failed logon gets a number and is kept. A peer that asks for old numbers gets
//! application messages and rejects again and one gap fill for each run of others (`outbound`). Messages that are numbered
//! while nobody is logged on wait in the store: at the next logon the peer sees the gap and asks.
//!
//! Clauses are of the FIX session layer as in FIX 4.4, volume 2, and of its test cases.

mod admin;
mod config;
mod inbound;
mod logon;
mod outbound;
mod store;
#[cfg(test)]
mod tests;

pub use config::{CompId, ResetOnLogon, Role, SessionConfig};

use super::{
    Body, BusinessMessageReject, BusinessRejectReason, Message, RejectReason, Scratch, SessionReject, Violation,
    msg_type,
};
use admin::{Heartbeat, Logout, TestRequest};
use inbound::Inbound;
use outbound::Outbound;
use types::{Duration, SequenceNumber, Timestamp};

/// Where a session's outputs go.
pub trait Output {
    /// Send these bytes. A number may come more than once: resends, and the answer to a failed logon, which has the number
    /// of the next message.
    fn transmit(&mut self, sequence: SequenceNumber, message: &[u8]);

    /// The session is logged on.
    fn logged_on(&mut self);

    /// The peer has sent a Logout with this Text (58). The core answers and waits for the peer to close.
    fn logged_out(&mut self, text: &[u8]);

    /// Close the connection once what was given before is sent, then say [`Session::on_disconnected`]. `text` is what the
    /// peer said or was told; empty when there was nothing to say.
    fn close(&mut self, reason: CloseReason, text: &[u8]);
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
    /// Messages that the peer asked for, or that waited, and that were no longer held: gap fills took their place.
    pub lost: u64,
    /// Rejects (3) sent.
    pub rejected: u64,
    /// Resend requests sent.
    pub resend_requests: u64,
    /// Messages dropped because they came before ones that are missing.
    pub early: u64,
    /// Possible duplicates dropped because they were seen.
    pub duplicates: u64,
    /// Logons.
    pub logons: u64,
    /// Logons that failed.
    pub logons_refused: u64,
}

/// One FIX session.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    phase: Phase,
    /// When the phase began.
    since: Timestamp,
    /// The heartbeat interval agreed at logon; 0 is none.
    heartbeat: Duration,
    inbound: Inbound,
    outbound: Outbound,
    /// The latest time seen.
    now: Timestamp,
    counters: SessionCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Disconnected,
    /// Acceptor: connected, no Logon yet.
    AwaitingLogon,
    /// Initiator: connected and asked.
    LogonSent,
    LoggedOn,
    /// Logout said, the answer is awaited.
    LogoutSent,
    /// Logout answered, the peer is to close.
    LogoutAnswered,
    /// The owner was told to close.
    Closing,
}

impl Session {
    /// A session that has never been connected. Allocates all it will ever use.
    ///
    /// # Panics
    /// When the store has no room for one message of the greatest length.
    #[must_use]
    pub fn new(config: SessionConfig) -> Self {
        Self {
            phase: Phase::Disconnected,
            since: Timestamp::NONE,
            heartbeat: config.heartbeat,
            inbound: Inbound::new(),
            outbound: Outbound::new(config.clone()),
            now: Timestamp::NONE,
            counters: SessionCounters::default(),
            config,
        }
    }

    /// The peer's CompID, when it is only known now.
    ///
    /// # Panics
    /// When the session has a connection.
    pub fn bind(&mut self, target_comp_id: CompId) {
        assert!(!self.is_connected(), "a session is bound before its peer connects");
        self.config.target_comp_id = target_comp_id;
        self.outbound.bind(target_comp_id);
    }

    /// A connection was made. An initiator says Logon.
    ///
    /// # Panics
    /// When the session has a connection: the owner keeps the live one and refuses the other.
    pub fn on_connected(&mut self, now: Timestamp, out: &mut impl Output) {
        assert!(!self.is_connected(), "a session has one connection");
        self.now = now;
        self.inbound.connected(now);
        match self.config.role {
            Role::Acceptor => self.enter(Phase::AwaitingLogon),
            Role::Initiator => self.say_logon(out),
        }
    }

    /// The connection is gone. Numbers and messages stay.
    pub const fn on_disconnected(&mut self, now: Timestamp) {
        self.now = now;
        self.inbound.disconnected();
        self.phase = Phase::Disconnected;
    }

    /// A whole message came in, as [`super::frame`] finds it; it is scanned into `scratch`. Gives what the order logic must
    /// see.
    pub fn on_frame<'f>(
        &mut self,
        now: Timestamp,
        frame: &'f [u8],
        scratch: &'f mut Scratch,
        out: &mut impl Output,
    ) -> Option<Application<'f>> {
        self.now = now;
        match self.phase {
            Phase::AwaitingLogon | Phase::LogonSent => {
                self.received(now);
                self.on_first_message(&scratch.parse(frame), out);
                None
            }
            Phase::LoggedOn | Phase::LogoutSent => {
                self.received(now);
                let application = self.on_message(&scratch.parse(frame), out);
                self.outbound.pump(now, &mut self.counters, out);
                application
            }
            // After the last word nothing is heard.
            Phase::LogoutAnswered | Phase::Closing | Phase::Disconnected => None,
        }
    }

    /// The time that [`Session::poll_timeout`] named has come. Calling it early or late does no harm.
    pub fn on_timer(&mut self, now: Timestamp, out: &mut impl Output) {
        self.now = now;
        match self.phase {
            Phase::Disconnected | Phase::Closing => (),
            Phase::AwaitingLogon | Phase::LogonSent => {
                if now >= self.since + self.config.logon_timeout {
                    self.close(CloseReason::LogonTimeout, b"", out);
                }
            }
            Phase::LogoutSent | Phase::LogoutAnswered => {
                self.outbound.pump(now, &mut self.counters, out);
                if now >= self.since + self.config.logout_timeout {
                    self.close(CloseReason::LogoutTimeout, b"", out);
                }
            }
            Phase::LoggedOn => {
                self.outbound.pump(now, &mut self.counters, out);
                self.keep_alive(out);
            }
        }
    }

    /// When [`Session::on_timer`] is due. In the past while a replay goes on: the owner calls in each of its turns, as far
    /// as its send queue has room.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Disconnected | Phase::Closing => None,
            Phase::AwaitingLogon | Phase::LogonSent => Some(self.since + self.config.logon_timeout),
            _ if self.outbound.is_busy() => Some(self.now),
            Phase::LogoutSent | Phase::LogoutAnswered => Some(self.since + self.config.logout_timeout),
            Phase::LoggedOn if self.heartbeat == Duration(0) => None,
            Phase::LoggedOn => {
                let heartbeat_due = self.outbound.last_sent() + self.heartbeat;
                Some(heartbeat_due.min(self.peer_due()))
            }
        }
    }

    /// Numbers a message, keeps it, and sends it when the session is logged on. While it is not, the message waits for
    /// the peer to ask for it after the next logon.
    pub fn send(&mut self, now: Timestamp, body: &impl Body, out: &mut impl Output) -> SequenceNumber {
        self.now = now;
        self.say(body, out)
    }

    /// Sends a Reject (3) for a message with this number.
    pub fn reject(
        &mut self,
        now: Timestamp,
        sequence: SequenceNumber,
        message: &Message<'_>,
        violation: Violation,
        out: &mut impl Output,
    ) {
        self.now = now;
        self.counters.rejected += 1;
        let ref_msg_type = message.msg_type();
        let reject = SessionReject {
            routing: message.routing().reversed(),
            ref_seq_num: sequence.0,
            // A type that is longer than any real one is not worth repeating.
            ref_msg_type: if ref_msg_type.len() > 2 { b"" } else { ref_msg_type },
            violation,
            text: violation.reason.text().as_bytes(),
        };
        self.say(&reject, out);
    }

    /// Refuses an application message that is right and cannot be processed: with a BusinessMessageReject (j), or with a
    /// Reject (3) in versions that have none. `ref_id` is the refused request's own id, when it has one.
    pub fn reject_business(
        &mut self,
        now: Timestamp,
        application: &Application<'_>,
        reason: BusinessRejectReason,
        ref_id: &[u8],
        out: &mut impl Output,
    ) {
        self.now = now;
        if self.config.version.has_business_reject() {
            let reject = BusinessMessageReject {
                ref_seq_num: application.sequence.0,
                ref_msg_type: application.msg_type,
                business_reject_ref_id: ref_id,
                reason,
                text: reason.text().as_bytes(),
            };
            self.say(&reject, out);
            return;
        }
        let reject = SessionReject {
            routing: application.message.routing().reversed(),
            ref_seq_num: application.sequence.0,
            ref_msg_type: application.msg_type,
            violation: Violation::without_tag(RejectReason::Other),
            text: match reason {
                BusinessRejectReason::UnsupportedMessageType => b"Unsupported message type",
                _ => reason.text().as_bytes(),
            },
        };
        self.counters.rejected += 1;
        self.say(&reject, out);
    }

    /// Ends the session in good order: says Logout and waits for the answer. Without a logon, closes.
    pub fn logout(&mut self, now: Timestamp, text: &[u8], out: &mut impl Output) {
        self.now = now;
        match self.phase {
            Phase::LoggedOn => {
                self.say(&Logout { text }, out);
                self.enter(Phase::LogoutSent);
            }
            Phase::AwaitingLogon | Phase::LogonSent => self.close(CloseReason::LoggedOut, b"", out),
            Phase::Disconnected | Phase::LogoutSent | Phase::LogoutAnswered | Phase::Closing => (),
        }
    }

    /// Both directions start again at 1, as when a new session day begins. Only without a connection.
    ///
    /// # Panics
    /// When the session has a connection.
    pub fn reset(&mut self) {
        assert!(!self.is_connected(), "a live session is reset by its Logon only");
        self.reset_numbers();
    }

    /// Whether there is a connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Disconnected)
    }

    /// Whether the session is logged on and no Logout was said.
    #[must_use]
    pub const fn is_logged_on(&self) -> bool {
        matches!(self.phase, Phase::LoggedOn)
    }

    /// The number that the next message sent will have.
    #[must_use]
    pub const fn next_outbound(&self) -> SequenceNumber {
        SequenceNumber(self.outbound.next())
    }

    /// The number that is expected next.
    #[must_use]
    pub const fn next_inbound(&self) -> SequenceNumber {
        SequenceNumber(self.inbound.next)
    }

    /// What was counted since the session was made.
    #[must_use]
    pub const fn counters(&self) -> SessionCounters {
        self.counters
    }

    /// Bytes that the session has allocated.
    #[must_use]
    pub const fn allocated(&self) -> usize {
        self.outbound.allocated()
    }

    const fn received(&mut self, now: Timestamp) {
        self.counters.received += 1;
        self.inbound.last_received = now;
        self.inbound.tested_at = None;
    }

    /// Sends a heartbeat after silence of our own, a test request after the peer's, and gives the peer up after more.
    fn keep_alive(&mut self, out: &mut impl Output) {
        if self.heartbeat == Duration(0) {
            return;
        }
        if self.now >= self.peer_due() {
            if self.inbound.tested_at.is_some() {
                self.close(CloseReason::PeerSilent, b"", out);
                return;
            }
            let id = super::Digits::new(self.now.0);
            self.inbound.tested_at = Some(self.now);
            self.say(
                &TestRequest {
                    test_req_id: id.as_bytes(),
                },
                out,
            );
        } else if !self.outbound.is_busy() && self.now >= self.outbound.last_sent() + self.heartbeat {
            self.say(&Heartbeat { test_req_id: b"" }, out);
        }
    }

    /// When the peer's silence has lasted a heartbeat and a grace, since it was last heard or was tested.
    fn peer_due(&self) -> Timestamp {
        let grace = Duration((self.heartbeat.0 / 5).max(Duration::from_secs(1).0));
        self.inbound.tested_at.unwrap_or(self.inbound.last_received) + self.heartbeat + grace
    }

    fn say(&mut self, body: &impl Body, out: &mut impl Output) -> SequenceNumber {
        let live = matches!(self.phase, Phase::LoggedOn | Phase::LogoutSent);
        SequenceNumber(self.outbound.send(self.now, body, live, &mut self.counters, out))
    }

    /// Says why, and closes. The Logout overtakes a replay: nothing follows it.
    fn end(&mut self, reason: CloseReason, text: &[u8], out: &mut impl Output) {
        self.outbound.abandon();
        self.say(&Logout { text }, out);
        self.close(reason, text, out);
    }

    fn close(&mut self, reason: CloseReason, text: &[u8], out: &mut impl Output) {
        self.enter(Phase::Closing);
        out.close(reason, text);
    }

    const fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = self.now;
    }

    fn reset_numbers(&mut self) {
        self.inbound.reset();
        self.outbound.reset();
    }
}

impl Application<'_> {
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
        }
    }
}
