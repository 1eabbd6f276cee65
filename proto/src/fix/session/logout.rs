//! How a session ends: in good order, or by telling the peer that it is wrong.

use super::admin::Logout;
use super::{CloseReason, Output, Phase, Session};
use crate::fix::Message;
use types::Timestamp;

impl Session {
    /// Ends the session in good order: says Logout and waits for the answer. Without a logon, closes.
    pub fn logout(&mut self, now: Timestamp, text: &[u8], out: &mut impl Output) {
        self.now = now;
        match self.phase {
            Phase::LoggedOn => {
                self.say(&Logout { text }, out);
                self.enter(Phase::LogoutSent);
            }
            Phase::AwaitingLogon | Phase::LogonSent => self.close(CloseReason::LoggedOut, b"", out),
            Phase::Disconnected | Phase::LogoutSent | Phase::LogoutAnswered | Phase::TurnedAway(_) | Phase::Closing => {
            }
        }
    }

    /// A Logout that has its turn, or whose number does not matter.
    pub(super) fn on_logout(&mut self, message: &Message<'_>, out: &mut impl Output) {
        self.obey_logout(Logout::decode(message).text, out);
    }

    pub(super) fn obey_logout(&mut self, text: &[u8], out: &mut impl Output) {
        if self.phase == Phase::LogoutSent {
            self.close(CloseReason::LoggedOut, text, out);
            return;
        }
        out.logged_out(text);
        self.say(&Logout { text: b"" }, out);
        self.outbound.seal();
        self.enter(Phase::LogoutAnswered);
    }

    /// Says Logout to a peer that has broken a rule, and waits a while for its answer. Nothing else is heard from it. The
    /// Logout overtakes a replay: nothing follows it.
    pub(super) fn turn_away(&mut self, reason: CloseReason, text: &[u8], out: &mut impl Output) {
        self.outbound.abandon();
        self.say(&Logout { text }, out);
        self.enter(Phase::TurnedAway(reason));
    }

    /// A message of a peer that was turned away. Only its Logout is heard, whatever its number.
    pub(super) fn on_last_words(&mut self, reason: CloseReason, message: &Message<'_>, out: &mut impl Output) {
        if message.msg_type() != crate::fix::msg_type::LOGOUT {
            return;
        }
        if message.sequence() == Some(self.inbound.next) {
            self.inbound.next += 1;
        }
        self.close(reason, Logout::decode(message).text, out);
    }

    /// Says why, and closes at once: what the peer would say now cannot be told from what it said before.
    pub(super) fn end(&mut self, reason: CloseReason, text: &[u8], out: &mut impl Output) {
        self.outbound.abandon();
        self.say(&Logout { text }, out);
        self.close(reason, text, out);
    }

    pub(super) fn close(&mut self, reason: CloseReason, text: &[u8], out: &mut impl Output) {
        self.enter(Phase::Closing);
        out.close(reason, text);
    }
}
