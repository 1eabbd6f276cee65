//! How a connection becomes a session: Logon, its answer, and what is refused.

use super::admin::{self, Logon, Logout};
use super::{CloseReason, Output, Phase, ResetOnLogon, Role, Session};
use crate::fix::{Message, Version, Violation, msg_type, tag};

impl Session {
    /// Initiator: says Logon on a new connection.
    pub(super) fn say_logon(&mut self, out: &mut impl Output) {
        let reset = self.resets_on_logon();
        if reset {
            self.reset_numbers();
        }
        self.enter(Phase::LogonSent);
        let next_expected =
            (self.config.next_expected && self.version().has_next_expected()).then_some(self.inbound.next);
        let logon = Logon {
            version: self.version(),
            heartbeat: self.config.heartbeat,
            reset,
            next_expected,
            username: b"",
            password: b"",
        };
        self.say_first(&logon, out);
    }

    /// The first message of a connection: a Logon, or its answer.
    pub(super) fn on_first_message(&mut self, message: &Message<'_>, out: &mut impl Output) {
        match (message.msg_type(), self.config.role) {
            (msg_type::LOGON, _) => (),
            (msg_type::LOGOUT, Role::Initiator) => {
                let Logout { text } = Logout::decode(message);
                self.close(CloseReason::LogonRefusedByPeer, text, out);
                return;
            }
            _ => {
                self.close(CloseReason::NotLogon, b"", out);
                return;
            }
        }
        match self.judge(message) {
            Ok((logon, sequence)) => self.on_logon(&logon, sequence, out),
            Err(Refusal::BeginString) => self.refuse_logon(message, b"Incorrect BeginString", out),
            Err(Refusal::Violation(violation)) => {
                self.refuse_logon(message, admin::violation(violation).as_bytes(), out);
            }
            Err(Refusal::TooLow(sequence)) => {
                self.refuse_logon(message, admin::too_low(self.inbound.next, sequence).as_bytes(), out);
            }
            Err(Refusal::Rule(text)) => self.refuse_logon(message, text, out),
        }
    }

    /// Whether a Logon is one that this session takes. Gives it with its number.
    fn judge<'f>(&self, message: &Message<'f>) -> Result<(Logon<'f>, u64), Refusal> {
        let version = self.version_of(message)?;
        if let Some(violation) = message.violation() {
            return Err(violation.into());
        }
        if let Some((violation, _)) = self.foreign(message) {
            return Err(violation.into());
        }
        let logon = Logon::decode(message, version)?;
        let sequence = message.sequence().ok_or(Violation::incorrect(tag::MSG_SEQ_NUM))?;
        if logon.reset && sequence != 1 {
            return Err(Refusal::Rule(b"ResetSeqNumFlag with a MsgSeqNum other than 1"));
        }
        let resets = self.is_reset_by(&logon);
        if !resets && sequence < self.inbound.next {
            return Err(Refusal::TooLow(sequence));
        }
        let next_outbound = match self.config.role {
            Role::Acceptor if resets => 1,
            // Its own Logon is number 1.
            Role::Initiator if resets => 2,
            _ => self.outbound.next,
        };
        if logon.next_expected.is_some_and(|next| next > next_outbound) {
            return Err(Refusal::Rule(b"NextExpectedMsgSeqNum is higher than what was sent"));
        }
        Ok((logon, sequence))
    }

    /// The version that a Logon names, when it is one of this session's.
    fn version_of(&self, message: &Message<'_>) -> Result<Version, Refusal> {
        let (begin_string, appl_ver_id) = (message.begin_string(), message.get(tag::DEFAULT_APPL_VER_ID));
        if !self
            .config
            .versions
            .iter()
            .any(|version| version.begin_string() == begin_string)
        {
            return Err(Refusal::BeginString);
        }
        let version =
            Version::of_logon(begin_string, appl_ver_id).filter(|version| self.config.versions.contains(version));
        version.ok_or(Refusal::Violation(if appl_ver_id.is_empty() {
            Violation::missing(tag::DEFAULT_APPL_VER_ID)
        } else {
            Violation::incorrect(tag::DEFAULT_APPL_VER_ID)
        }))
    }

    /// A Logon that is taken.
    fn on_logon(&mut self, logon: &Logon<'_>, sequence: u64, out: &mut impl Output) {
        let is_acceptor = self.config.role == Role::Acceptor;
        if self.is_reset_by(logon) && is_acceptor {
            self.reset_numbers();
        } else if logon.reset && !self.resets_on_logon() {
            // The peer has reset unasked; the Logon that it answers counts as number 1.
            self.reset_numbers();
            self.outbound.skip_one();
        }
        if is_acceptor {
            self.heartbeat = logon.heartbeat;
            self.outbound.header.version = logon.version;
        }
        self.counters.logons += 1;
        self.enter(Phase::LoggedOn);
        let is_gap = sequence > self.inbound.next;
        if !is_gap {
            self.inbound.next = sequence + 1;
        }
        if is_acceptor {
            self.answer_logon(logon, out);
        }
        out.logged_on(logon);
        if let Some(next) = logon.next_expected {
            self.send_missing(next);
        }
        if is_gap {
            self.inbound.early_logon = Some(sequence);
            if logon.next_expected.is_some() && (is_acceptor || self.config.next_expected) {
                self.expect_gap(sequence);
            } else {
                self.ask_for_gap(sequence, out);
            }
        }
        self.outbound.pump(self.now, &mut self.counters, out);
    }

    /// A Logon on a session that is logged on: with 141=Y and number 1 an initiator starts the numbers again without a
    /// new connection. Says whether it was that.
    pub(super) fn on_reset_logon(&mut self, message: &Message<'_>, out: &mut impl Output) -> bool {
        if self.config.role != Role::Acceptor || self.phase != Phase::LoggedOn {
            return false;
        }
        match self.judge(message) {
            Ok((logon, 1)) if logon.reset => {
                self.reset_numbers();
                self.inbound.next = 2;
                self.heartbeat = logon.heartbeat;
                self.outbound.header.version = logon.version;
                self.answer_logon(&logon, out);
                true
            }
            _ => false,
        }
    }

    /// Acceptor: says back what the peer asked for, and which number is expected next when the peer or the config wants so.
    fn answer_logon(&mut self, logon: &Logon<'_>, out: &mut impl Output) {
        let is_wanted =
            logon.next_expected.is_some() || (self.config.next_expected && logon.version.has_next_expected());
        let answer = Logon {
            next_expected: is_wanted.then_some(self.inbound.next),
            ..*logon
        };
        self.say_first(&answer, out);
    }

    /// Sends what the peer does not have without being asked, up to the Logon that was said: a gap fill tells of that one.
    fn send_missing(&mut self, next_expected: u64) {
        let logon = self.outbound.next - 1;
        // An acceptor's Logon is on its way while the peer says what it expects; an initiator's has arrived.
        let first_sent_after = match self.config.role {
            Role::Acceptor => logon,
            Role::Initiator => logon + 1,
        };
        if next_expected < first_sent_after {
            self.outbound.start_replay(next_expected, logon);
        }
    }

    /// Whether numbers start again with this Logon.
    const fn is_reset_by(&self, logon: &Logon<'_>) -> bool {
        logon.reset || (matches!(self.config.role, Role::Acceptor) && self.resets_on_logon())
    }

    const fn resets_on_logon(&self) -> bool {
        match self.config.reset_on_logon {
            ResetOnLogon::Never => false,
            ResetOnLogon::First => self.counters.logons == 0,
            ResetOnLogon::Always => true,
        }
    }

    /// Logon goes out before anything that waits, from before the connection or an unfinished replay of the last one: the
    /// peer asks for that once it is logged on.
    fn say_first(&mut self, logon: &Logon<'_>, out: &mut impl Output) {
        self.outbound.abandon();
        self.outbound.send(self.now, logon, true, &mut self.counters, out);
    }

    /// Says why and closes, and leaves no trace: numbers are as they were and the next attempt works. It is said in the
    /// peer's version where that is one of FIX.
    pub(super) fn refuse_logon(&mut self, message: &Message<'_>, text: &[u8], out: &mut impl Output) {
        self.counters.logons_refused += 1;
        let spoken = Version::ALL
            .into_iter()
            .find(|version| version.begin_string() == message.begin_string());
        let version = spoken.unwrap_or(self.version());
        self.outbound.send_unnumbered(self.now, version, &Logout { text }, out);
        self.close(CloseReason::LogonRefused, text, out);
    }
}

/// Why a Logon is refused.
enum Refusal {
    BeginString,
    Violation(Violation),
    TooLow(u64),
    Rule(&'static [u8]),
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}
