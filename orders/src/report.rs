//! What the order logic gives: reports for clients, requests for venues, reservations given back.

use types::{AccountId, ExecReport, Notional, OrderId, Price, VenueId};

/// A report for the client of session [`exec.session`](ExecReport::session), in the client's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The report.
    pub exec: ExecReport,
    /// The sum of price times lots of all trades so far, 1e-9.
    pub traded: Notional,
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

    /// So much of what was reserved for the account's orders is free again, 1e-4, more than zero.
    fn release(&mut self, account: AccountId, amount: i64);
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
