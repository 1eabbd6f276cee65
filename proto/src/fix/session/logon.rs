//! How a connection becomes a session: Logon, its answer, and what is refused.

use super::admin::{Logon, Logout, TooLowText};
use super::{CloseReason, Output, Phase, ResetOnLogon, Role, Session};
use crate::fix::{Message, msg_type};

impl Session {
    /// Initiator: says Logon on a new connection.
    pub(super) fn say_logon(&mut self, out: &mut impl Output) {
        let reset = self.resets_on_logon();
        if reset {
            self.reset_numbers();
        }
        self.enter(Phase::LogonSent);
        let logon = Logon {
            heartbeat: self.config.heartbeat,
            reset,
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
        if message.begin_string() != self.config.version.begin_string() {
            self.refuse_logon(b"Incorrect BeginString", out);
            return;
        }
        if let Some(violation) = message.violation() {
            self.refuse_logon(violation.reason.text().as_bytes(), out);
            return;
        }
        if let Some((violation, _)) = self.foreign(message) {
            self.refuse_logon(violation.reason.text().as_bytes(), out);
            return;
        }
        match (Logon::decode(message), message.sequence()) {
            (Ok(logon), Some(sequence)) => self.on_logon(&logon, sequence, out),
            (Err(violation), _) => self.refuse_logon(violation.reason.text().as_bytes(), out),
            (_, None) => self.refuse_logon(b"MsgSeqNum missing or not valid", out),
        }
    }

    /// A Logon whose form is right.
    fn on_logon(&mut self, logon: &Logon, sequence: u64, out: &mut impl Output) {
        let is_acceptor = self.config.role == Role::Acceptor;
        if logon.reset && sequence != 1 {
            self.refuse_logon(b"ResetSeqNumFlag with a MsgSeqNum other than 1", out);
            return;
        }
        let resets = logon.reset || (is_acceptor && self.resets_on_logon());
        if !resets && sequence < self.inbound.next {
            self.refuse_logon(TooLowText::new(self.inbound.next, sequence).as_bytes(), out);
            return;
        }
        if is_acceptor {
            if resets {
                self.reset_numbers();
            }
            self.heartbeat = logon.heartbeat;
        } else if logon.reset && !self.resets_on_logon() {
            // The peer has reset unasked; the Logon that it answers counts as number 1.
            self.reset_numbers();
            self.outbound.skip_one();
        }
        self.counters.logons += 1;
        self.enter(Phase::LoggedOn);
        if is_acceptor {
            self.say_first(logon, out);
        }
        out.logged_on();
        if sequence > self.inbound.next {
            self.ask_for_gap(sequence, out);
        } else {
            self.inbound.next = sequence + 1;
        }
    }

    /// A Logon on a session that is logged on: with 141=Y and number 1 an initiator starts the numbers again without a
    /// new connection. Says whether it was that.
    pub(super) fn on_reset_logon(&mut self, sequence: u64, message: &Message<'_>, out: &mut impl Output) -> bool {
        if self.config.role != Role::Acceptor || self.phase != Phase::LoggedOn || sequence != 1 {
            return false;
        }
        let Ok(logon) = Logon::decode(message) else {
            return false;
        };
        if !logon.reset {
            return false;
        }
        self.reset_numbers();
        self.inbound.next = 2;
        self.heartbeat = logon.heartbeat;
        self.say_first(&logon, out);
        true
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
    fn say_first(&mut self, logon: &Logon, out: &mut impl Output) {
        self.outbound.abandon();
        self.outbound.send(self.now, logon, true, &mut self.counters, out);
    }

    /// Says why and closes, and leaves no trace: numbers are as they were and the next attempt works.
    fn refuse_logon(&mut self, text: &[u8], out: &mut impl Output) {
        self.counters.logons_refused += 1;
        self.outbound.send_unnumbered(self.now, &Logout { text }, out);
        self.close(CloseReason::LogonRefused, text, out);
    }
}
