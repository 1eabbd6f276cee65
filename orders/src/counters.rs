//! What was counted since start.

use types::{ExecType, Reason};

/// What is wrong with a report of a venue. The report changed nothing, unless its variant says so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Anomaly {
    /// Its number was never given to an order of this shard.
    UnknownOrder,
    /// Its order is over, and the report would not change that: a refusal that crossed a fill, or an end reported twice.
    /// Races make these; they are no fault.
    Late,
    /// Its order is over, and not by the roll of the day, and yet it reports a trade, which is missing in the position.
    TradeAfterEnd,
    /// It came from another venue than the order's.
    WrongVenue,
    /// Instrument or side are not the order's.
    WrongTerms,
    /// It reports a trade of no lots or of more lots than were open, which is missing in the position.
    Overfill,
    /// It answers nothing that was asked or that is still open.
    Unexpected,
    /// It refuses a known request because the number was used: the request reached the venue twice. The first counts.
    Duplicate,
    /// It refuses a cancel that the gateway sent by itself. The order goes on working and the cancel is forgotten.
    CancelRefused,
}

impl Anomaly {
    /// All of them, for counters and tables.
    pub const ALL: [Self; 9] = [
        Self::UnknownOrder,
        Self::Late,
        Self::TradeAfterEnd,
        Self::WrongVenue,
        Self::WrongTerms,
        Self::Overfill,
        Self::Unexpected,
        Self::Duplicate,
        Self::CancelRefused,
    ];
}

/// Counts since start. They only rise.
#[derive(Clone, Debug)]
pub struct Counters {
    /// New orders accepted.
    pub accepted: u64,
    /// Cancels of clients accepted.
    pub cancels: u64,
    /// Replaces accepted.
    pub replaces: u64,
    /// Mass cancels accepted.
    pub mass_cancels: u64,
    /// Cancels that the gateway sent by itself.
    pub forced_cancels: u64,
    /// Orders that waited until own ones were cancelled.
    pub waited: u64,
    /// Orders that came too fast and were queued.
    pub queued: u64,
    /// Orders taken in whose type the gateway stands in for.
    pub held: u64,
    /// Orders sent to venues for those.
    pub children: u64,
    /// Trades inside the gateway.
    pub crossed: u64,
    /// Orders that rested in the gateway for those.
    pub rested: u64,
    /// Orders that ended.
    pub ended: u64,
    /// Trades that venues reported after the roll of the day had ended their orders here. They count.
    pub late_trades: u64,
    refusals: [u64; REASON_NUMBERS],
    reports: [u64; EXEC_TYPES],
    anomalies: [u64; Anomaly::ALL.len()],
}

/// Numbers of reasons are below this.
const REASON_NUMBERS: usize = 128;
/// Numbers of execution types are below this.
const EXEC_TYPES: usize = 16;

const _: () = {
    let mut index = 0;
    while index < Reason::ALL.len() {
        assert!((Reason::ALL[index] as usize) < REASON_NUMBERS);
        index += 1;
    }
    assert!((ExecType::MassCancelAccepted as usize) < EXEC_TYPES);
};

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            accepted: 0,
            cancels: 0,
            replaces: 0,
            mass_cancels: 0,
            forced_cancels: 0,
            waited: 0,
            queued: 0,
            held: 0,
            children: 0,
            crossed: 0,
            rested: 0,
            ended: 0,
            late_trades: 0,
            refusals: [0; REASON_NUMBERS],
            reports: [0; EXEC_TYPES],
            anomalies: [0; Anomaly::ALL.len()],
        }
    }

    /// Requests that the gateway refused for this reason.
    #[must_use]
    pub const fn refused(&self, reason: Reason) -> u64 {
        self.refusals[reason as usize]
    }

    /// Reports of this type that went to clients.
    #[must_use]
    pub const fn reported(&self, exec_type: ExecType) -> u64 {
        self.reports[exec_type as usize]
    }

    /// Reports of venues with this fault.
    #[must_use]
    pub const fn anomalies(&self, anomaly: Anomaly) -> u64 {
        self.anomalies[anomaly as usize]
    }

    pub(crate) const fn count_refusal(&mut self, reason: Reason) {
        self.refusals[reason as usize] += 1;
    }

    pub(crate) const fn count_report(&mut self, exec_type: ExecType) {
        self.reports[exec_type as usize] += 1;
    }

    pub(crate) const fn count_anomaly(&mut self, anomaly: Anomaly) {
        self.anomalies[anomaly as usize] += 1;
    }
}
