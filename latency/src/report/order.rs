//! One order, as all recordings together tell it.

use types::{
    ClientOrderId, ExecType, InstrumentId, OrderId, Price, Quantity, Reason, SessionId, Side, Timestamp, Trigger,
};

use crate::record::Protocol;
use crate::tap::Tap;

/// One order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// What its client spoke.
    pub protocol: Protocol,
    /// Its client's session.
    pub session: SessionId,
    /// The client's number for it.
    pub client_order_id: ClientOrderId,
    /// The gateway's number for it; 0 when nobody told.
    pub order_id: OrderId,
    /// The tick that caused it.
    pub trigger: Trigger,
    /// What it trades; 0 when nobody told.
    pub instrument: InstrumentId,
    /// Buy or sell; known from the client's recording.
    pub side: Option<Side>,
    /// Lots; known from the client's recording.
    pub quantity: Option<Quantity>,
    /// Limit; known from the client's recording.
    pub price: Option<Price>,
    /// When it was to be sent by plan.
    pub planned: Timestamp,
    /// The kernel's receive stamp at the gateway.
    pub kernel_received: Timestamp,
    /// When it passed each tap; [`Timestamp::NONE`] where it did not or nobody told.
    pub times: [Timestamp; Tap::COUNT],
    /// Whether its client was recorded. Otherwise what the gateway reported stands for what the client received.
    pub client_recorded: bool,
    /// Whether the gateway refused it by itself.
    pub refused_by_gateway: bool,
    /// Whether the gateway took it and kept it: it waited or was held, and what went to the venue for it are `children`.
    pub kept: bool,
    /// Lots of its fills that it traded inside the gateway.
    pub crossed: Quantity,
    /// What went to the venue for an order that was kept.
    pub children: Vec<Child>,
    /// What the reports said.
    pub outcome: Outcome,
    /// The phase of the run it was sent in, by its index; `None` when it was sent outside all phases.
    pub phase: Option<usize>,
}

/// An order at the venue for one that the gateway kept. [`Timestamp::NONE`] is a time that nobody told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Child {
    /// The number that it went to the venue by.
    pub child_id: OrderId,
    /// When what kept the order was over.
    pub released: Timestamp,
    /// Tap `venue_sent`.
    pub venue_sent: Timestamp,
    /// Tap `exchange_received`.
    pub exchange_received: Timestamp,
    /// Tap `exchange_reported`.
    pub exchange_reported: Timestamp,
}

/// What the reports said of an order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Acknowledgements; more than one is a defect.
    pub acknowledgements: u32,
    /// Refusals; more than one is a defect.
    pub refusals: u32,
    /// Reports that ended it after it was acknowledged; more than one is a defect.
    pub ends: u32,
    /// How it ended.
    pub ended: Option<ExecType>,
    /// Why it was refused or cancelled.
    pub reason: Reason,
    /// Trades.
    pub fills: Vec<(Quantity, Price)>,
    /// Lots still open by the last report.
    pub leaves: Quantity,
    /// Whether its quantity was changed by a replace.
    pub replaced: bool,
    /// Reports that came after its end.
    pub late_reports: u32,
    /// Whether the exchange listed it, or a child of it, as open at the end.
    pub open_at_exchange: bool,
    /// Whether the gateway listed it as open at the end with nothing of it at a venue.
    pub open_at_gateway: bool,
}

/// What became of an order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// Traded in full.
    Filled,
    /// Cancelled, on request or not.
    Cancelled,
    /// Its day ended.
    Expired,
    /// Acknowledged and still open.
    Open,
    /// Refused.
    Refused,
    /// No answer came.
    Unanswered,
    /// Acknowledged, never ended, and neither the exchange nor the gateway has it.
    Vanished,
}

impl Status {
    /// For files and people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Filled => "filled",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::Vanished => "vanished",
        }
    }

    /// Whether the order is unaccounted for.
    #[must_use]
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Unanswered | Self::Vanished)
    }
}

/// One report of an order, by its client or by the gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) exec_type: ExecType,
    pub(super) reason: Reason,
    pub(super) last_quantity: Quantity,
    pub(super) last_price: Price,
    pub(super) leaves: Quantity,
}

impl Order {
    /// When it passed `tap`; [`Timestamp::NONE`] when it did not or nobody told.
    #[must_use]
    pub const fn at(&self, tap: Tap) -> Timestamp {
        self.times[tap.index()]
    }

    /// Nanoseconds from one tap to another, negative when it passed the second one first; `None` when it did not pass both.
    #[must_use]
    pub const fn between(&self, from: Tap, to: Tap) -> Option<i64> {
        let (from, to) = (self.at(from), self.at(to));
        if from.0 == 0 || to.0 == 0 {
            return None;
        }
        Some(to.0.cast_signed() - from.0.cast_signed())
    }

    /// When it was sent or, when its client was not recorded, received by the gateway.
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        let sent = self.at(Tap::OrderSent);
        if sent.0 == 0 {
            self.at(Tap::GatewayReceived)
        } else {
            sent
        }
    }

    /// What became of it. `open_orders_listed`: the exchange said which orders were open at the end.
    #[must_use]
    pub const fn status(&self, open_orders_listed: bool) -> Status {
        let outcome = &self.outcome;
        if outcome.acknowledgements == 0 {
            return if outcome.refusals > 0 {
                Status::Refused
            } else {
                Status::Unanswered
            };
        }
        match outcome.ended {
            Some(ExecType::Canceled) => Status::Cancelled,
            Some(ExecType::Expired) => Status::Expired,
            Some(_) => Status::Filled,
            None if open_orders_listed && !outcome.open_at_exchange && !outcome.open_at_gateway => Status::Vanished,
            None => Status::Open,
        }
    }

    /// Its first child stands for it at the taps on the way to the venue and back.
    pub(super) fn pass_child(&mut self, child: usize, tap: Tap, time: Timestamp) {
        let known = &mut self.children[child];
        match tap {
            Tap::ExchangeReceived => known.exchange_received = time,
            Tap::ExchangeReported if known.exchange_reported == Timestamp::NONE => known.exchange_reported = time,
            _ => {}
        }
        if child == 0 {
            self.pass(tap, time);
        }
    }

    /// Lots traded.
    #[must_use]
    pub fn filled(&self) -> Quantity {
        Quantity(
            self.outcome
                .fills
                .iter()
                .map(|(quantity, _)| quantity.0)
                .fold(0, u64::saturating_add),
        )
    }

    /// A tap is passed once: the first report of an order, not a later one.
    pub(super) const fn pass(&mut self, tap: Tap, time: Timestamp) {
        if self.times[tap.index()].0 == 0 {
            self.times[tap.index()] = time;
        }
    }
}

impl Outcome {
    pub(super) fn on_report(&mut self, report: &Report) {
        if self.ended.is_some() && !matches!(report.exec_type, ExecType::RequestRejected | ExecType::Status) {
            self.late_reports += 1;
        }
        match report.exec_type {
            ExecType::New => {
                self.acknowledgements += 1;
                self.leaves = report.leaves;
            }
            ExecType::Rejected => {
                self.refusals += 1;
                self.reason = report.reason;
            }
            ExecType::Fill => {
                self.fills.push((report.last_quantity, report.last_price));
                self.leaves = report.leaves;
                if report.leaves.is_zero() {
                    self.end(ExecType::Fill);
                }
            }
            ExecType::Canceled | ExecType::Expired => {
                self.reason = report.reason;
                self.leaves = Quantity::ZERO;
                self.end(report.exec_type);
            }
            ExecType::Replaced => {
                self.replaced = true;
                self.leaves = report.leaves;
                if report.leaves.is_zero() {
                    self.end(ExecType::Fill);
                }
            }
            ExecType::Restated => self.leaves = report.leaves,
            ExecType::RequestRejected
            | ExecType::MassCancelAccepted
            | ExecType::Triggered
            | ExecType::Status
            | ExecType::StatusEnd => {}
        }
    }

    const fn end(&mut self, by: ExecType) {
        self.ends += 1;
        if self.ended.is_none() {
            self.ended = Some(by);
        }
    }
}
