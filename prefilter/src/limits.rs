//! What a backend is told, what it tells, and what can be wrong with it.

use crate::abi::Reasons;
use core::fmt;
use types::{InstrumentId, Price, SessionId};

/// The limits of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolLimits {
    /// Most lots in one order; at least 1.
    pub max_quantity: u32,
    /// Lowest price of an order, 1e-9. [`Price::NULL`]: no bound. Orders without a price are not held to the bounds.
    pub lowest: Price,
    /// Highest price of an order, 1e-9.
    pub highest: Price,
    /// Where its orders go; verdicts repeat it. 0: none.
    pub route: u8,
}

/// The limits of a session: one order each `interval_ns` on average, as the generic cell rate algorithm counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionLimits {
    /// Nanoseconds that one order takes; at least 1.
    pub interval_ns: u32,
    /// How far the time at which the orders taken are due may run ahead of the clock before an order, nanoseconds; at
    /// most [`MAX_AHEAD_NS`].
    pub ahead_ns: u64,
}

/// Largest [`SessionLimits::ahead_ns`]: 78 hours.
pub const MAX_AHEAD_NS: u64 = (1 << 48) - 1;

impl SessionLimits {
    /// As good as no limit: an order a nanosecond, and 78 hours' worth of them at once.
    pub const UNLIMITED: Self = Self {
        interval_ns: 1,
        ahead_ns: MAX_AHEAD_NS,
    };

    /// So many orders a second, of which `at_once` may come together. `None` when a number is 0 or the time that they
    /// take is beyond [`MAX_AHEAD_NS`].
    #[must_use]
    pub fn rate(per_second: u32, at_once: u32) -> Option<Self> {
        if per_second == 0 {
            return None;
        }
        let interval_ns = 1_000_000_000_u32.div_ceil(per_second);
        let ahead_ns = u64::from(interval_ns) * u64::from(at_once.checked_sub(1)?);
        (ahead_ns <= MAX_AHEAD_NS).then_some(Self { interval_ns, ahead_ns })
    }
}

/// Whether orders pass at all. Both are off at reset, and so nothing passes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Control {
    /// Off: everything is refused, cancels too.
    pub enable: bool,
    /// On: everything but cancels is refused.
    pub kill: bool,
}

/// What a backend can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Instruments: their ids are below it.
    pub symbols: u32,
    /// Sessions: their ids are below it.
    pub sessions: u32,
}

/// What a backend has counted since its reset. A board's counters have 32 bits and turn over.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Messages judged.
    pub received: u64,
    /// Messages without a reason.
    pub passed: u64,
    /// Messages with at least one.
    pub refused: u64,
    /// By bit of [`Reasons`]: messages that had it.
    pub reasons: [u64; Reasons::COUNT],
}

impl Counters {
    /// Counts one message.
    pub(crate) fn count(&mut self, reasons: Reasons) {
        self.received += 1;
        if reasons == Reasons::NONE {
            self.passed += 1;
            return;
        }
        self.refused += 1;
        for (bit, count) in self.reasons.iter_mut().enumerate() {
            *count += u64::from(reasons.0 >> bit & 1);
        }
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            received: self.received - earlier.received,
            passed: self.passed - earlier.passed,
            refused: self.refused - earlier.refused,
            reasons: core::array::from_fn(|bit| self.reasons[bit] - earlier.reasons[bit]),
        }
    }
}

/// What a backend that has its limits twice was told since the last commit: it is said to one, and then to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Staged {
    Symbol(InstrumentId, Option<SymbolLimits>),
    Session(SessionId, Option<SessionLimits>),
}

/// What is wrong with a backend, or with what it was asked. After any of these it is to be taken as closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// There is no pre-filter behind these registers; what was read in place of its id.
    NotAPreFilter(u32),
    /// It speaks another version of the ABI.
    WrongAbi(u32),
    /// Its tables are larger or smaller than a board's can be; its caps register.
    WrongCaps(u32),
    /// An instrument's or session's id is beyond the table.
    BeyondTable {
        /// The id.
        id: u32,
        /// Entries of the table.
        entries: u32,
    },
    /// A limit is 0 where it may not be, or too large.
    InvalidLimit,
    /// More was staged than there is room for.
    StageFull,
    /// After a commit the board is at another generation.
    WrongGeneration {
        /// What was committed.
        committed: u32,
        /// What the board says.
        found: u32,
    },
    /// The board closed itself: nobody wrote its heartbeat in time.
    HeartbeatLost,
    /// The board was reset behind the host's back.
    Reset,
    /// A verdict did not come in time.
    Overdue {
        /// The number whose verdict is missing.
        sequence: u32,
    },
    /// The program is not at its interface any more.
    Detached,
    /// The kernel refused what the program's tables should hold.
    Kernel,
    /// A verdict has not the number that was next.
    SequenceGap {
        /// The number that was next.
        expected: u32,
        /// The number that came.
        found: u32,
    },
}

impl Fault {
    /// Whether the backend is not well; otherwise what it was asked was not possible.
    #[must_use]
    pub const fn is_of_the_backend(self) -> bool {
        !matches!(self, Self::BeyondTable { .. } | Self::InvalidLimit | Self::StageFull)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPreFilter(id) => write!(f, "no pre-filter there: its id reads {id:#010x}"),
            Self::WrongAbi(version) => write!(f, "speaks version {version} of the ABI"),
            Self::WrongCaps(caps) => write!(f, "capabilities are not possible: {caps:#010x}"),
            Self::BeyondTable { id, entries } => write!(f, "id {id} is beyond the table of {entries}"),
            Self::InvalidLimit => f.write_str("a limit is 0 or too large"),
            Self::StageFull => f.write_str("more was staged than there is room for"),
            Self::WrongGeneration { committed, found } => {
                write!(f, "generation {committed} was committed, {found} is in force")
            }
            Self::HeartbeatLost => f.write_str("closed itself without a heartbeat"),
            Self::Reset => f.write_str("was reset"),
            Self::Overdue { sequence } => write!(f, "the verdict on {sequence} is overdue"),
            Self::Detached => f.write_str("is not at its interface any more"),
            Self::Kernel => f.write_str("the kernel refused what its tables should hold"),
            Self::SequenceGap { expected, found } => write!(f, "verdict on {found} where {expected} was next"),
        }
    }
}

impl core::error::Error for Fault {}
