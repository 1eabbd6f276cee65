//! What was counted, over the rounds of a rung.

use super::plan::IdleMode;
use latency::Histogram;
use net::tcp::Retransmits;
use serde::{Deserialize, Serialize};
use types::{Duration, Timestamp};

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Round trips, or the ways of a stream where both ends have one clock.
    pub(super) histogram: Histogram,
    /// Messages that had a planned time; without a plan, those that were sent.
    pub(super) planned: u64,
    pub(super) sent: u64,
    /// Messages answered, or received at the other end of a stream.
    pub(super) arrived: u64,
    /// The time in which they arrived.
    pub(super) span: Duration,
    /// Of both ends.
    pub(super) retransmits: Retransmits,
    /// What the kernel gave for the near socket's options.
    pub(super) options: Option<String>,
    /// When the first round began.
    pub(super) started: Option<Timestamp>,
    /// The far end's CPU, and what it does that has nothing to do.
    pub(super) far: Option<(usize, IdleMode)>,
}

/// What was read off the near side after a round.
#[derive(Debug)]
pub(super) struct NearCounts {
    pub(super) planned: u64,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) span: Duration,
    pub(super) retransmits: Retransmits,
    pub(super) options: Option<String>,
}

/// What the far end tells after a round. What arrived and when is of a stream alone: the near end knows of its answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FarCounts {
    pub(super) received: u64,
    pub(super) span_ns: u64,
    pub(super) retransmits: u64,
    pub(super) retransmits_spurious: u64,
    /// The ways of a stream; empty where the ends have two clocks.
    pub(super) histogram: Vec<u8>,
}

impl Tally {
    /// Adds a round. Of one that was cut off only what arrived counts: nobody knows what became of the rest.
    pub(super) fn add(&mut self, near: NearCounts, far: &FarCounts, is_whole: bool) {
        let arrived = near.answered + far.received;
        let (planned, sent) = if is_whole {
            (near.planned, near.sent)
        } else {
            (arrived, arrived)
        };
        self.planned += planned;
        self.sent += sent;
        self.arrived += arrived;
        self.span = Duration(self.span.0 + near.span.0 + far.span_ns);
        self.retransmits = self.retransmits + near.retransmits + far.retransmits();
        self.options = near.options;
    }

    /// Messages that were sent and came to nothing.
    pub(super) const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Messages a second, as they arrived.
    pub(super) fn rate(&self) -> f64 {
        if self.span.0 == 0 {
            return 0.0;
        }
        self.arrived as f64 / (self.span.0 as f64 / 1e9)
    }
}

impl FarCounts {
    /// What arrived, in which time, and what was sent again.
    pub(super) const fn new((received, span): (u64, Duration), retransmits: Retransmits) -> Self {
        Self {
            received,
            span_ns: span.0,
            retransmits: retransmits.total,
            retransmits_spurious: retransmits.spurious,
            histogram: Vec::new(),
        }
    }

    const fn retransmits(&self) -> Retransmits {
        Retransmits {
            total: self.retransmits,
            spurious: self.retransmits_spurious,
        }
    }
}
