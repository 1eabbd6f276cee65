//! Messages that are missing: asking for them, and what was put off until they came.

use super::admin::ResendRequest;
use super::{Output, ResetOnLogon, Role, Session};
use types::{Duration, Timestamp};

/// What is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The highest number that came early: once it is reached nothing is missing.
    through: u64,
    /// The last number that was asked for.
    asked_through: u64,
    /// When it was asked for, or last grew smaller.
    progress_at: Timestamp,
}

impl Session {
    /// Asks for what is missing, once. Again only when nothing of it has come for long: peers lose requests.
    pub(super) fn ask_for_gap(&mut self, through: u64, out: &mut impl Output) {
        let through = match &mut self.inbound.gap {
            Some(gap) => {
                gap.through = gap.through.max(through);
                if self.now < gap.progress_at + GAP_PATIENCE {
                    return;
                }
                gap.through
            }
            None => through,
        };
        self.ask(through, out);
    }

    /// The peer knows which number is expected here and sends what is missing by itself.
    pub(super) const fn expect_gap(&mut self, through: u64) {
        self.inbound.gap = Some(Gap {
            through,
            asked_through: u64::MAX,
            progress_at: self.now,
        });
    }

    /// Notes that the expected number has moved, and does what waited for it.
    pub(super) fn settle_gap(&mut self, out: &mut impl Output) {
        let Some(gap) = &mut self.inbound.gap else {
            return;
        };
        gap.progress_at = self.now;
        if self.inbound.early_logon == Some(self.inbound.next) {
            self.inbound.next += 1;
        }
        self.inbound.early.forget_below(self.inbound.next);
        if self.inbound.early.has(self.inbound.next) {
            return; // It is the owner's turn to hand it in.
        }
        let gap = *gap;
        if let Some(number) = self.inbound.early_logout
            && self.inbound.next >= number
        {
            self.inbound.next = self.inbound.next.max(number + 1);
            return self.on_early_logout(out);
        }
        if self.inbound.next > gap.through {
            self.inbound.gap = None;
            self.inbound.early_logon = None;
        } else if self.inbound.next > gap.asked_through && self.is_live() {
            self.ask(gap.through, out);
        }
    }

    /// When a Logout that came early is answered although what is missing has not come.
    pub(super) fn early_logout_due(&self) -> Option<Timestamp> {
        self.inbound.early_logout?;
        Some(self.inbound.gap?.progress_at + LOGOUT_PATIENCE)
    }

    /// Answers a Logout that came early.
    pub(super) fn on_early_logout(&mut self, out: &mut impl Output) {
        self.inbound.early_logout = None;
        if self.is_live() {
            self.obey_logout(b"", out);
        }
    }

    /// Whether numbers start again with the next connection whatever happens, so that nothing is to be recovered before
    /// this one ends.
    pub(super) fn ends_with_connection(&self) -> bool {
        self.config.role == Role::Acceptor && self.config.reset_on_logon == ResetOnLogon::Always
    }

    fn ask(&mut self, through: u64, out: &mut impl Output) {
        let begin = self.inbound.next;
        let chunk = self.config.resend_chunk;
        // What follows the gap is asked for with its last part: some of it may have found no room to wait in.
        let is_last = chunk == 0 || through - begin <= chunk;
        let (end, asked_through) = if is_last {
            (self.version().no_end(), u64::MAX)
        } else {
            (begin + chunk - 1, begin + chunk - 1)
        };
        self.inbound.gap = Some(Gap {
            through,
            asked_through,
            progress_at: self.now,
        });
        self.counters.resend_requests += 1;
        self.say(&ResendRequest { begin, end }, out);
    }
}

/// How long a gap may stay as it is before it is asked for again.
const GAP_PATIENCE: Duration = Duration::from_secs(30);

/// How long a gap may stay as it is before a Logout behind it is answered.
const LOGOUT_PATIENCE: Duration = Duration::from_secs(2);
