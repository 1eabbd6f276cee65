//! What is for the peer: the ring of messages that it has not acknowledged, and before it, for a peer that has lost
//! acknowledged messages with its machine, a smaller ring of those that the owner brings back from its journal.
//!
//! ```text
//!            base        sent        next        asked                       base
//!   peer has | in flight | queued ... | asked for . | to be asked for ........ | kept, and held back
//!            '------------------ recalled ring ---------------------------' '----- kept ring ------
//! ```
//!
//! The two never mix: while messages are recalled, nothing leaves of the other ring, and every number that the session
//! speaks of is one of the recalled ring. So the peer's window, its requests and its acknowledgements mean what they mean
//! without a recall, and the last acknowledgement of a recalled message begins the rest as a new session begins.

use super::send::{Acknowledged, Leave, Run, SendRing};
use super::wire::FLAG_RETRANSMIT;
use core::ops::Range;
use types::{Duration, Timestamp};

#[cfg(test)]
use super::simulation::Defect;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Sending {
    kept: SendRing,
    recalled: SendRing,
    /// Whether the peer lacks messages below those that are kept.
    is_recalling: bool,
    /// The owner was asked for all recalled messages below it.
    asked: u64,
    /// The owner cannot bring back anything below it.
    gone_below: u64,
    #[cfg(test)]
    pub(super) defect: Defect,
}

impl Sending {
    /// `window` is a power of two.
    pub(super) fn new(window: usize, max_message: usize, next: u64) -> Self {
        Self {
            kept: SendRing::new(window, max_message, next),
            recalled: SendRing::new(RECALLED_MAX.min(window), max_message, next),
            is_recalling: false,
            asked: next,
            gone_below: 0,
            #[cfg(test)]
            defect: Defect::None,
        }
    }

    /// The ring that the session is about.
    const fn current(&self) -> &SendRing {
        if self.is_recalling { &self.recalled } else { &self.kept }
    }

    const fn current_mut(&mut self) -> &mut SendRing {
        if self.is_recalling {
            &mut self.recalled
        } else {
            &mut self.kept
        }
    }

    /// A session begins, and the peer wants this number next.
    pub(super) fn begin(&mut self, wanted: u64) {
        self.is_recalling = wanted < self.kept.base();
        #[cfg(test)]
        if self.defect == Defect::NoRecall {
            self.is_recalling = false;
        }
        if self.is_recalling {
            self.recalled.restart(wanted);
            self.asked = wanted;
        } else {
            self.kept.acknowledge(wanted);
        }
        self.kept.mark_all();
    }

    /// What the owner is to bring back next: asked for once, when half of the ring is free, or the rest fits.
    pub(super) fn ask(&mut self) -> Option<Range<u64>> {
        let (next, end) = (self.recalled.next(), self.kept.base());
        if !self.is_recalling || self.asked > next || next == end {
            return None;
        }
        let room = self.recalled.room();
        let last = end.min(next + room as u64);
        if last < end && room < self.recalled.capacity() / 2 {
            return None;
        }
        self.asked = last;
        Some(next..last)
    }

    /// The owner has brought back a message. `false`: it is not the next one asked for, but of an earlier recall.
    pub(super) fn bring(&mut self, number: u64, message: &[u8]) -> bool {
        let is_next = number == self.recalled.next();
        #[cfg(test)]
        let is_next = is_next || self.defect == Defect::AnyRecall;
        let is_wanted = self.is_recalling && is_next && self.recalled.next() < self.asked;
        if is_wanted {
            self.recalled.push(message, 0);
        }
        is_wanted
    }

    /// The owner cannot bring back a message. `true`: it is the next one asked for, so the session cannot go on.
    pub(super) fn miss(&mut self, number: u64) -> bool {
        let is_wanted = self.is_recalling && number == self.recalled.next() && number < self.asked;
        if is_wanted {
            self.gone_below = number + 1;
        }
        is_wanted
    }

    /// Whether the peer is brought back to where it was.
    pub(super) const fn is_recalling(&self) -> bool {
        self.is_recalling
    }

    /// What the peer may not ask for any more: all below it.
    pub(super) const fn gone_below(&self) -> u64 {
        self.gone_below
    }

    /// The oldest message that is kept.
    pub(super) const fn oldest_kept(&self) -> u64 {
        self.kept.base()
    }

    /// The next number that was never transmitted, in any session.
    pub(super) const fn never_sent(&self) -> u64 {
        self.kept.sent()
    }

    /// See [`SendRing::room`].
    pub(super) fn room(&self) -> usize {
        self.kept.room()
    }

    /// The number of the next message from the owner.
    pub(super) const fn next(&self) -> u64 {
        self.kept.next()
    }

    /// See [`SendRing::push`].
    pub(super) fn push(&mut self, message: &[u8], position: u64) -> u64 {
        self.kept.push(message, position)
    }

    /// See [`SendRing::restore`].
    pub(super) fn restore(&mut self, number: u64, message: &[u8]) {
        self.kept.restore(number, message);
    }

    /// See [`SendRing::is_whole`].
    pub(super) const fn is_whole(&self) -> bool {
        self.kept.is_whole()
    }

    /// The number below which the peer has all messages.
    pub(super) const fn base(&self) -> u64 {
        self.current().base()
    }

    /// The next number that this session has not transmitted.
    pub(super) const fn sent(&self) -> u64 {
        self.current().sent()
    }

    /// Frees all below `ack`, which lies between base and sent.
    pub(super) fn acknowledge(&mut self, ack: u64) -> Acknowledged {
        let acknowledged = self.current_mut().acknowledge(ack);
        if self.is_recalling && self.recalled.base() == self.kept.base() {
            self.is_recalling = false;
        }
        acknowledged
    }

    /// See [`SendRing::has_marked`].
    pub(super) const fn has_marked(&self) -> bool {
        self.current().has_marked()
    }

    /// See [`SendRing::oldest_sent_at`].
    pub(super) fn oldest_sent_at(&self) -> Option<Timestamp> {
        self.current().oldest_sent_at()
    }

    /// See [`SendRing::mark_wanted`].
    pub(super) fn mark_wanted(&mut self, number: u64, now: Timestamp, once_in: Duration) {
        self.current_mut().mark_wanted(number, now, once_in);
    }

    /// See [`SendRing::mark_oldest`].
    pub(super) fn mark_oldest(&mut self) -> u64 {
        self.current_mut().mark_oldest()
    }

    /// Writes what is to be transmitted again as a payload, if anything is: by this session, or by an earlier one.
    pub(super) fn retransmit(&mut self, now: Timestamp, leave: Leave, payload: &mut [u8]) -> Option<Run> {
        let run = self.current_mut().retransmit(now, leave.packing, payload);
        if run.is_some() || !self.is_recalling {
            return run;
        }
        let leave = Leave {
            repeating: false,
            ..leave
        };
        let run = self.recalled.transmit(now, leave, payload)?;
        Some(Run {
            flags: FLAG_RETRANSMIT,
            ..run
        })
    }

    /// Writes the next first transmission as a payload, see [`SendRing::transmit`].
    pub(super) fn transmit(&mut self, now: Timestamp, leave: Leave, payload: &mut [u8]) -> Option<Run> {
        if self.is_recalling {
            return None;
        }
        self.kept.transmit(now, leave, payload)
    }
}

/// Most messages that are recalled and not acknowledged: so many are brought back from the journal ahead of what the peer
/// has taken.
pub(super) const RECALLED_MAX: usize = 64;
