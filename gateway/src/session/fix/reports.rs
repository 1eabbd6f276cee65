//! Reports in the client's words: numbers become ClOrdIDs again, lots units.

use super::super::cl_ord_ids::Kind;
use super::copies::Words;
use super::requests::{codes_of, side_of};
use super::{FixSession, Text};
use crate::effects::Effects;
use crate::instruments::Instruments;
use orders::{OrderStatus, Report};
use proto::fix::{
    self, CancelRejectResponseTo, Crossed, Digits, ExecutionReport, FixExecType, OF_ALL, OF_SECURITY, OrdStatus,
    OrderCancelReject, OrderMassCancelReport, StatusAnswer, Version,
};
use types::{ClientOrderId, ExecReport, ExecType, InstrumentId, Quantity, Reason, Timestamp};

/// The answer to a mass status request, as far as it has come. The last report says that it is the last, so each waits for
/// the one behind it.
#[derive(Debug)]
pub(super) struct MassAnswer {
    request: u64,
    total: Option<u32>,
    waiting: Option<Report>,
}

/// The numbers of a report as text.
pub(super) struct Numbers {
    account: Digits,
    exec_id: Digits,
    order_id: Digits,
}

impl FixSession {
    /// The orders that a request asks for follow, in so many reports where that is known.
    pub(crate) fn begin_mass_status(&mut self, request: u64, total: Option<u32>) {
        self.mass_answer = Some(MassAnswer {
            request,
            total,
            waiting: None,
        });
    }

    /// Sends a report.
    pub(crate) fn report<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        match report.exec.exec_type {
            ExecType::Status | ExecType::StatusEnd => self.status_report(now, report, instruments, effects),
            ExecType::MassCancelAccepted => self.mass_cancel_report(now, &report.exec, instruments, effects),
            ExecType::RequestRejected if self.kind_of(report.exec.client_order_id) == Kind::MassCancel => {
                self.mass_cancel_report(now, &report.exec, instruments, effects);
            }
            ExecType::RequestRejected => self.cancel_reject(now, report, effects),
            ExecType::Triggered if !self.knows_triggered() => {}
            _ => self.execution_report(now, report, None, instruments, effects),
        }
        self.cl_ord_ids.on_report(&report.exec);
    }

    fn execution_report<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        answer_to: Option<StatusAnswer<'_>>,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        let (words, numbers) = (self.words(report, instruments), Numbers::of(report));
        if let Some(message) = numbers.report(now, report, &words, answer_to, instruments) {
            self.send(now, &message, effects);
        }
    }

    /// What a report says in the client's words.
    pub(crate) fn words(&self, report: &Report, instruments: &Instruments) -> Words {
        let exec = &report.exec;
        let (cl_ord_id, orig_cl_ord_id) = self.ids(report);
        let is_at_hand = exec.client_order_id == self.at_hand.number && self.repeats_at_hand(exec);
        Words {
            cl_ord_id,
            orig_cl_ord_id,
            symbol: instruments
                .get(exec.instrument)
                .map_or(self.at_hand.symbol, |instrument| Text::of(instrument.symbol.as_bytes())),
            side: if is_at_hand {
                self.at_hand.side
            } else {
                side_of(self.note(exec), exec.side)
            },
            codes: if is_at_hand {
                self.at_hand.codes
            } else {
                self.codes(exec)
            },
            text: self.why(exec),
        }
    }

    /// OrdType and TimeInForce of an order, as they came with it.
    fn codes(&self, exec: &ExecReport) -> [u8; 2] {
        codes_of(self.note(exec))
    }

    /// What was kept with the id of an order.
    fn note(&self, exec: &ExecReport) -> u8 {
        match self.cl_ord_ids.note(exec.client_order_id) {
            // It is the answer to a cancel.
            0 => self.cl_ord_ids.note(exec.orig_client_order_id),
            note => note,
        }
    }

    /// Text (58) of a report.
    fn why(&self, exec: &ExecReport) -> &'static [u8] {
        let is_refusal = matches!(
            exec.exec_type,
            ExecType::Rejected | ExecType::RequestRejected | ExecType::Status
        );
        let is_at_hand = is_refusal && exec.reason != Reason::None && exec.client_order_id == self.at_hand.number;
        match self.at_hand.why {
            b"" => text(exec.reason),
            _ if !is_at_hand => text(exec.reason),
            why => why,
        }
    }

    /// Whether the version has a word for an order that was triggered: 5.0 and later.
    pub(super) fn knows_triggered(&self) -> bool {
        self.session.version() >= Version::Fix50
    }

    fn cancel_reject<E: Effects>(&mut self, now: Timestamp, report: &Report, effects: &mut E) {
        let exec = &report.exec;
        let (cl_ord_id, orig_cl_ord_id) = self.ids(report);
        let order_id = Digits::new(exec.order_id.0);
        let reject = OrderCancelReject {
            cl_ord_id: cl_ord_id.as_bytes(),
            order_id: if exec.order_id.0 == 0 {
                NONE
            } else {
                order_id.as_bytes()
            },
            ord_status: ord_status(report.status),
            orig_cl_ord_id: orig_cl_ord_id.as_bytes(),
            text: text(exec.reason),
            transact_time: now,
            cxl_rej_reason: Some(fix::cxl_rej_reason(exec.reason)),
            response_to: match self.kind_of(exec.client_order_id) {
                Kind::Replace => CancelRejectResponseTo::Replace,
                Kind::Order | Kind::Cancel | Kind::MassCancel => CancelRejectResponseTo::Cancel,
            },
        };
        self.send(now, &reject, effects);
    }

    fn mass_cancel_report<E: Effects>(
        &mut self,
        now: Timestamp,
        exec: &ExecReport,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        let is_accepted = exec.exec_type == ExecType::MassCancelAccepted;
        let is_at_hand = exec.client_order_id == self.at_hand.number;
        let which = if is_at_hand {
            self.at_hand.side
        } else if exec.instrument == InstrumentId(0) {
            OF_ALL
        } else {
            OF_SECURITY
        };
        let cl_ord_id = if is_at_hand {
            self.at_hand.cl_ord_id
        } else {
            self.text_of(exec.client_order_id)
        };
        let number = Digits::new(exec.exec_id.0);
        let instrument = instruments.get(exec.instrument);
        let symbol = if is_at_hand { self.at_hand.symbol } else { Text::EMPTY };
        let message = OrderMassCancelReport {
            cl_ord_id: cl_ord_id.as_bytes(),
            order_id: number.as_bytes(),
            which,
            response: is_accepted.then_some(which),
            reject_reason: (!is_accepted).then(|| fix::mass_cancel_reject_reason(exec.reason)),
            symbol: instrument.map_or(symbol.as_bytes(), |instrument| instrument.symbol.as_bytes()),
            text: self.why(exec),
            transact_time: now,
        };
        self.send(now, &message, effects);
    }

    /// How an order stands: the answer to a request for one order, or one of the answers to one for many.
    fn status_report<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        let request = report.exec.orig_client_order_id.0;
        let is_end = report.exec.exec_type == ExecType::StatusEnd;
        let Some(mass) = self.mass_answer.as_mut().filter(|mass| mass.request == request) else {
            let request_id = self.requests.text(request);
            let answer = if is_end {
                StatusAnswer::Mass {
                    request_id: request_id.as_bytes(),
                    total: Some(0),
                    is_last: true,
                }
            } else {
                StatusAnswer::Single {
                    request_id: request_id.as_bytes(),
                }
            };
            return self.execution_report(now, &as_status(report), Some(answer), instruments, effects);
        };
        let total = mass.total;
        let before = mass.waiting.replace(*report);
        // A reason at the end says that orders are missing: that is a report of its own.
        let is_told = is_end && (before.is_none() || report.exec.reason != Reason::None);
        if let Some(before) = before {
            self.mass_report(now, &before, total, is_end && !is_told, instruments, effects);
        }
        if is_told {
            self.mass_report(now, &as_status(report), total, true, instruments, effects);
        }
        if is_end {
            self.mass_answer = None;
        }
    }

    fn mass_report<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        total: Option<u32>,
        is_last: bool,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        let request_id = self.requests.text(report.exec.orig_client_order_id.0);
        let answer = StatusAnswer::Mass {
            request_id: request_id.as_bytes(),
            total: total.map(u64::from),
            is_last,
        };
        self.execution_report(now, report, Some(answer), instruments, effects);
    }

    /// ClOrdID and OrigClOrdID of a report. Those of a request that is being refused are the request's own, even when they
    /// were never given a number; but a refused cancel or replace of an order that is known names the order by the last id
    /// that was accepted.
    fn ids(&self, report: &Report) -> (Text, Text) {
        let exec = &report.exec;
        let is_at_hand = exec.client_order_id == self.at_hand.number && self.repeats_at_hand(exec);
        // An order is told by the id that it was asked for: its own, or that of its cancel.
        let is_asked = exec.exec_type == ExecType::Status
            && exec.client_order_id == self.at_hand.number
            && !self.at_hand.cl_ord_id.as_bytes().is_empty();
        let cl_ord_id = if is_at_hand || is_asked {
            self.at_hand.cl_ord_id
        } else {
            self.text_of(exec.client_order_id)
        };
        let orig_cl_ord_id = match exec.exec_type {
            // There the field holds the number of the request.
            ExecType::Status | ExecType::StatusEnd => Text::EMPTY,
            _ if is_at_hand && exec.order_id.0 == 0 => self.at_hand.orig_cl_ord_id,
            ExecType::RequestRejected => Text::of(self.cl_ord_ids.last_accepted(exec.orig_client_order_id)),
            _ => self.text_of(exec.orig_client_order_id),
        };
        (cl_ord_id, orig_cl_ord_id)
    }

    /// Whether a report is an answer that repeats what the request said, for want of words of the gateway.
    fn repeats_at_hand(&self, exec: &ExecReport) -> bool {
        match exec.exec_type {
            ExecType::Rejected | ExecType::RequestRejected => true,
            ExecType::Status => exec.reason == Reason::UnknownOrder,
            _ => false,
        }
    }

    fn text_of(&self, number: ClientOrderId) -> Text {
        Text::of(self.cl_ord_ids.text(number))
    }

    /// What a request was.
    fn kind_of(&self, number: ClientOrderId) -> Kind {
        if number == self.at_hand.number {
            self.at_hand.kind
        } else {
            self.cl_ord_ids.kind(number).unwrap_or(self.at_hand.kind)
        }
    }
}

impl Numbers {
    pub(super) fn of(report: &Report) -> Self {
        let exec = &report.exec;
        Self {
            account: Digits::new(u64::from(exec.account.0)),
            exec_id: Digits::new(exec.exec_id.0),
            order_id: Digits::new(exec.order_id.0),
        }
    }

    /// The report in these words and numbers; `None` when FIX tells it by a message of its own.
    pub(super) fn report<'a>(
        &'a self,
        now: Timestamp,
        report: &Report,
        words: &'a Words,
        answer_to: Option<StatusAnswer<'a>>,
        instruments: &Instruments,
    ) -> Option<ExecutionReport<'a>> {
        let exec = &report.exec;
        let lot_size = instruments
            .get(exec.instrument)
            .map_or(1, |instrument| instrument.lot_size);
        let units = |lots: Quantity| lots.0 * u64::from(lot_size);
        let is_unknown = exec.exec_type == ExecType::Status && report.status == OrderStatus::Rejected;
        Some(ExecutionReport {
            account: match exec.account.0 {
                0 => b"",
                _ => self.account.as_bytes(),
            },
            avg_price: report.average_price(),
            cl_ord_id: words.cl_ord_id.as_bytes(),
            cumulative: units(exec.cumulative),
            exec_id: self.exec_id.as_bytes(),
            last_price: exec.last_price,
            last_quantity: units(exec.last_quantity),
            order_id: match exec.order_id.0 {
                0 => NONE,
                _ => self.order_id.as_bytes(),
            },
            quantity: units(exec.quantity),
            ord_status: ord_status(report.status),
            ord_type: words.codes[0],
            orig_cl_ord_id: words.orig_cl_ord_id.as_bytes(),
            price: exec.price,
            side: words.side,
            symbol: words.symbol.as_bytes(),
            text: words.text,
            time_in_force: words.codes[1],
            transact_time: now,
            ord_rej_reason: (exec.exec_type == ExecType::Rejected || is_unknown)
                .then(|| fix::ord_rej_reason(exec.reason)),
            exec_type: FixExecType::of(exec.exec_type)?,
            leaves: units(exec.leaves),
            restatement: match exec.exec_type {
                ExecType::Canceled | ExecType::Restated => fix::exec_restatement_reason(exec.reason),
                _ => None,
            },
            answer_to,
            crossed: Crossed::of(exec.reason),
        })
    }
}

/// The end of a mass status as a report of its own: of no order.
const fn as_status(report: &Report) -> Report {
    let mut report = *report;
    if matches!(report.exec.exec_type, ExecType::StatusEnd) {
        report.exec.exec_type = ExecType::Status;
        report.exec.client_order_id = ClientOrderId(0);
        report.exec.quantity = Quantity::ZERO;
        if matches!(report.exec.reason, Reason::None) {
            report.exec.reason = Reason::UnknownOrder;
        }
    }
    report
}

/// OrdStatus (39).
const fn ord_status(status: OrderStatus) -> OrdStatus {
    match status {
        OrderStatus::Rejected => OrdStatus::Rejected,
        OrderStatus::Canceled => OrdStatus::Canceled,
        OrderStatus::Expired => OrdStatus::Expired,
        OrderStatus::PendingNew => OrdStatus::PendingNew,
        OrderStatus::New => OrdStatus::New,
        OrderStatus::PartiallyFilled => OrdStatus::PartiallyFilled,
        OrderStatus::Filled => OrdStatus::Filled,
        OrderStatus::PendingReplace => OrdStatus::PendingReplace,
        OrderStatus::PendingCancel => OrdStatus::PendingCancel,
    }
}

/// Text (58).
pub(super) const fn text(reason: Reason) -> &'static [u8] {
    match reason {
        Reason::None => b"",
        reason => reason.text().as_bytes(),
    }
}

/// OrderID (37) of no order.
const NONE: &[u8] = b"NONE";
