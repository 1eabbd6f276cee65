//! What an operator orders, and why an order is not given.

use crate::limits::MAX_DAYS_AHEAD;
use orders::{KillScope, Limit, LimitError, LimitScope, LimitValue};
use std::fmt;
use types::{Reason, SessionId, TradingDay};

/// An operator's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Rises with every order to this gateway.
    pub number: u64,
    /// The user id of who gave it, as the kernel tells it.
    pub operator: u32,
    /// What is to be done.
    pub action: Action,
}

/// What an operator can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// No new orders, and the open ones are cancelled.
    Kill(KillScope),
    /// No new orders but those that reduce what is held, and the open ones are cancelled.
    LetReduce(KillScope),
    /// New orders are taken again.
    Revive(KillScope),
    /// The open orders are cancelled; new ones are taken as before.
    Cancel(KillScope),
    /// A limit has another value from now on.
    SetLimit {
        /// Where it stands.
        scope: LimitScope,
        /// Which.
        limit: Limit,
        /// What it is then.
        value: LimitValue,
    },
    /// The client of a session is logged out and not let in again, and its orders are refused.
    Disable(SessionId),
    /// The client is let in again.
    Enable(SessionId),
    /// A trading day begins.
    Roll(TradingDay),
}

impl Action {
    /// Whom it concerns.
    pub(crate) fn scope(&self) -> LimitScope {
        match *self {
            Self::Kill(scope) | Self::LetReduce(scope) | Self::Revive(scope) | Self::Cancel(scope) => scope.into(),
            Self::SetLimit { scope, .. } => scope,
            Self::Disable(session) | Self::Enable(session) => LimitScope::Session(session),
            Self::Roll(_) => LimitScope::Firm,
        }
    }
}

/// Why an order is not obeyed. All shards say the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The scope does not exist.
    UnknownScope,
    /// The limit cannot be so.
    Limit(LimitError),
    /// More limits would differ from the config than are remembered.
    TooManyChanges,
    /// The trading day is that one already, or a later one.
    PastDay(TradingDay),
    /// The trading day is this one, and the other further off than [`MAX_DAYS_AHEAD`]: there would be no way back.
    FarDay(TradingDay),
}

impl From<Reason> for Refusal {
    /// Of a scope that the order logic does not know.
    fn from(_: Reason) -> Self {
        Self::UnknownScope
    }
}

impl From<LimitError> for Refusal {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::UnknownScope => Self::UnknownScope,
            error => Self::Limit(error),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScope => f.write_str("the config has none such"),
            Self::Limit(error) => write!(f, "{error}"),
            Self::PastDay(day) => write!(f, "the trading day is {} already; a later one can begin", day.0),
            Self::FarDay(day) => write!(
                f,
                "the trading day is {}; the next one is at most {MAX_DAYS_AHEAD} days later",
                day.0
            ),
            Self::TooManyChanges => f.write_str("too many limits differ from the config; write some into it"),
        }
    }
}
