//! What the order logic gives: reports for clients, requests for venues, reservations given back.

use crate::stake::{AccountPlace, SessionPlace, SessionStake, Stake};
use types::{ExecReport, Notional, OrderId, Price, VenueId};

/// A report for the client of session [`exec.session`](ExecReport::session), in the client's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The report.
    pub exec: ExecReport,
    /// The sum of price times lots of all trades so far, 1e-9.
    pub traded: Notional,
    /// How the order stands after it.
    pub status: OrderStatus,
}

/// How an order stands (FIX OrdStatus, tag 39). Of those that are true of an order the one that comes last here is told,
/// but for the three that end it: nothing is told in their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum OrderStatus {
    /// There is no order: it was refused, or nobody knows it.
    Rejected = 0,
    /// Cancelled.
    Canceled = 1,
    /// Its time is over.
    Expired = 2,
    /// The venue has not answered yet.
    PendingNew = 3,
    /// It works and has not traded.
    New = 4,
    /// It has traded in part.
    PartiallyFilled = 5,
    /// It has traded in full.
    Filled = 6,
    /// A replace is not answered yet.
    PendingReplace = 7,
    /// A cancel is not answered yet.
    PendingCancel = 8,
}

/// A request for a venue, in the venue's terms: its client order id is the gateway's number for the request, its session
/// the link's session at the venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForVenue<T> {
    /// Where it goes.
    pub venue: VenueId,
    /// The order it is about.
    pub order_id: OrderId,
    /// The request.
    pub request: T,
}

/// Takes what an event gives, one after the other.
pub trait Sink {
    /// A report for a client.
    fn report(&mut self, report: &Report);

    /// What the account takes of its limits that span shards has changed: mostly, something is free again.
    fn settle(&mut self, account: AccountPlace, change: &Stake);

    /// The same of the limits of the session.
    fn settle_session(&mut self, session: SessionPlace, change: &SessionStake);

    /// From now on whatever accounts take counts for the firm too, and so much is taken here already.
    fn count_firm(&mut self, taken: &Stake);
}

impl OrderStatus {
    /// From its number between shards.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Rejected,
            1 => Self::Canceled,
            2 => Self::Expired,
            3 => Self::PendingNew,
            4 => Self::New,
            5 => Self::PartiallyFilled,
            6 => Self::Filled,
            7 => Self::PendingReplace,
            8 => Self::PendingCancel,
            _ => return None,
        })
    }
}

impl Report {
    /// Average price of the trades so far, 1e-9, rounded towards zero; 0 before the first (FIX AvgPx, tag 6).
    #[must_use]
    pub fn average_price(&self) -> Price {
        let lots = i128::from(self.exec.cumulative.0).max(1);
        // An average of i64 prices is one itself.
        Price(i64::try_from(self.traded.0 / lots).unwrap_or(i64::MAX))
    }
}
