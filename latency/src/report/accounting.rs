//! What became of the orders, and whether every one is accounted for:
//!
//! - sent = acknowledged + refused + unanswered
//! - acknowledged = filled + cancelled + expired + open + vanished
//!
//! Unanswered and vanished orders are the lost ones: there must be none. Both sums hold by construction, since each order
//! has one status; what can fail is an order's own story, and [`check`] looks for that.

use std::collections::BTreeMap;

use serde::Serialize;
use types::Reason;

use super::join::Join;
use super::load::RecordingFacts;
use super::order::{Order, Status};

/// What became of some orders.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Accounting {
    /// Orders that clients sent (received by the gateway, where a client was not recorded).
    pub sent: u64,
    /// Orders acknowledged.
    pub acknowledged: u64,
    /// Orders refused.
    pub refused: u64,
    /// Orders without an answer.
    pub unanswered: u64,
    /// Acknowledged orders that traded in full.
    pub filled: u64,
    /// Acknowledged orders that were cancelled, some after trading in part.
    pub cancelled: u64,
    /// Acknowledged orders whose day ended.
    pub expired: u64,
    /// Acknowledged orders still open at the end.
    pub open: u64,
    /// Acknowledged orders that never ended and that neither the exchange nor the gateway has.
    pub vanished: u64,
    /// Orders of any status that traded in part.
    pub partly_filled: u64,
    /// Lots traded.
    pub lots_traded: u64,
    /// Refusals by reason and by whom.
    pub refusals: Vec<Refusals>,
    /// Cancels by reason.
    pub cancels: Vec<Cancels>,
}

/// Orders refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refusals {
    /// The reason's number on wires.
    pub code: u16,
    /// The reason.
    pub reason: &'static str,
    /// `gateway` or `venue`.
    pub by: &'static str,
    /// Orders.
    pub count: u64,
}

/// Orders cancelled for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cancels {
    /// The reason's number on wires.
    pub code: u16,
    /// The reason.
    pub reason: &'static str,
    /// Orders.
    pub count: u64,
}

impl Accounting {
    /// Of these orders.
    pub(super) fn of<'a>(orders: impl Iterator<Item = &'a Order>, open_orders_listed: bool) -> Self {
        let mut sums = Self::default();
        let mut refusals = BTreeMap::new();
        let mut cancels = BTreeMap::new();
        for order in orders {
            let status = order.status(open_orders_listed);
            let filled = order.filled().0;
            sums.count(status);
            sums.lots_traded = sums.lots_traded.saturating_add(filled);
            sums.partly_filled += u64::from(filled > 0 && status != Status::Filled);
            let reason = order.outcome.reason;
            match status {
                Status::Refused => *refusals.entry((reason as u16, refused_by(order))).or_default() += 1,
                Status::Cancelled => *cancels.entry(reason as u16).or_default() += 1,
                _ => {}
            }
        }
        sums.refusals = refusals
            .into_iter()
            .map(|((code, by), count)| Refusals {
                code,
                reason: text(code),
                by,
                count,
            })
            .collect();
        sums.cancels = cancels
            .into_iter()
            .map(|(code, count)| Cancels {
                code,
                reason: text(code),
                count,
            })
            .collect();
        sums
    }

    /// Orders that are unaccounted for.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.unanswered + self.vanished
    }

    const fn count(&mut self, status: Status) {
        self.sent += 1;
        match status {
            Status::Refused => self.refused += 1,
            Status::Unanswered => self.unanswered += 1,
            Status::Filled | Status::Cancelled | Status::Expired | Status::Open | Status::Vanished => {
                self.acknowledged += 1;
            }
        }
        match status {
            Status::Filled => self.filled += 1,
            Status::Cancelled => self.cancelled += 1,
            Status::Expired => self.expired += 1,
            Status::Open => self.open += 1,
            Status::Vanished => self.vanished += 1,
            Status::Refused | Status::Unanswered => {}
        }
    }
}

const fn refused_by(order: &Order) -> &'static str {
    if order.refused_by_gateway { "gateway" } else { "venue" }
}

fn text(code: u16) -> &'static str {
    Reason::from_u16(code).unwrap_or_default().text()
}

/// What contradicts itself, one sentence each; empty when every order's story is whole.
pub(super) fn check(join: &Join, recordings: &[RecordingFacts]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            problems.push(format!("{count} {what}"));
        }
    };
    let of = |wrong: &dyn Fn(&Order) -> bool| join.orders.iter().filter(|order| wrong(order)).count() as u64;
    let acknowledged = |order: &Order| order.outcome.acknowledgements > 0;
    say(
        of(&|order| order.outcome.acknowledgements > 1),
        "orders were acknowledged more than once",
    );
    say(
        of(&|order| order.outcome.refusals > 1),
        "orders were refused more than once",
    );
    say(
        of(&|order| acknowledged(order) && order.outcome.refusals > 0),
        "orders were both acknowledged and refused",
    );
    say(
        of(&|order| !acknowledged(order) && (order.outcome.ended.is_some() || !order.outcome.fills.is_empty())),
        "orders traded or ended without an acknowledgement",
    );
    say(
        of(&|order| order.outcome.late_reports > 0),
        "orders had reports after their end",
    );
    say(of(&overfilled), "orders traded more lots than they had");
    say(
        of(&|order| miscounted(order)),
        "filled orders traded another number of lots than they had",
    );
    let ended_but_open = |order: &Order| order.outcome.open_at_exchange && order.outcome.ended.is_some();
    say(
        of(&ended_but_open),
        "orders ended for the client and are open at the exchange",
    );
    let was_sent = |order: &Order| !order.kept || !order.children.is_empty();
    let missed =
        |order: &Order| acknowledged(order) && was_sent(order) && order.at(crate::Tap::ExchangeReceived).0 == 0;
    if join.exchange_recorded {
        say(
            of(&missed),
            "orders were acknowledged and are not in the exchange's recording",
        );
        say(
            of(&lacks_child),
            "orders have a child that is not in the exchange's recording, and a later one",
        );
    }
    say(
        join.unsent_orders,
        "orders are in the gateway's recording and not in their client's",
    );
    say(
        join.stray_exchange_orders,
        "orders are in the exchange's recording and in no other",
    );
    say(join.stray_reports, "reports to clients belong to no order");
    say(
        join.requests_sent - join.requests_answered,
        "cancels or replaces were not answered",
    );
    for recording in recordings {
        let file = recording.file.display();
        match recording.dropped {
            Some(0) => {}
            Some(dropped) => problems.push(format!(
                "{file}: {dropped} records found the ring full and are missing here"
            )),
            None => problems.push(format!("{file}: is cut off, so records are missing here")),
        }
    }
    problems
}

/// The last child may have been on its way when the recordings ended; one before it had been answered.
fn lacks_child(order: &Order) -> bool {
    let earlier = order.children.split_last().map_or(&[][..], |(_, earlier)| earlier);
    earlier.iter().any(|child| child.exchange_received.0 == 0)
}

fn overfilled(order: &Order) -> bool {
    !order.outcome.replaced && order.quantity.is_some_and(|quantity| order.filled() > quantity)
}

fn miscounted(order: &Order) -> bool {
    let filled = order.outcome.ended == Some(types::ExecType::Fill);
    filled && !order.outcome.replaced && order.quantity.is_some_and(|quantity| order.filled() < quantity)
}
