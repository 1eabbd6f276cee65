//! Copies of reports, for sessions that watch what others trade.

use super::reports::{Numbers, text};
use super::{FixSession, Text};
use crate::effects::Effects;
use crate::instruments::Instruments;
use orders::Report;
use proto::fix::{self, Body, CompId, Digits, Encoder, ExecutionReport, Version, tag};
use types::{ClientOrderId, ExecType, Timestamp};

/// What a report says in the words of the client whose order it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(super) cl_ord_id: Text,
    pub(super) orig_cl_ord_id: Text,
    pub(super) symbol: Text,
    /// Side (54).
    pub(super) side: u8,
    /// OrdType (40) and TimeInForce (59), where they are known; else 0.
    pub(super) codes: [u8; 2],
    /// Text (58).
    pub(super) text: &'static [u8],
}

/// A report as others than the order's client get it.
struct Copied<'a> {
    report: &'a ExecutionReport<'a>,
    on_behalf_of: CompId,
}

impl Words {
    /// Of a native client, whose order ids are numbers.
    pub(crate) fn of_native(report: &Report, instruments: &Instruments) -> Self {
        let exec = &report.exec;
        let number = |number: ClientOrderId| match number.0 {
            0 => Text::EMPTY,
            number => Text::of(Digits::new(number).as_bytes()),
        };
        Self {
            cl_ord_id: number(exec.client_order_id),
            orig_cl_ord_id: number(exec.orig_client_order_id),
            symbol: instruments
                .get(exec.instrument)
                .map_or(Text::EMPTY, |instrument| Text::of(instrument.symbol.as_bytes())),
            side: fix::side_code(exec.side),
            codes: [0; 2],
            text: text(exec.reason),
        }
    }
}

impl FixSession {
    /// Sends a copy of an execution report about an order of another session's client.
    pub(crate) fn copy<E: Effects>(
        &mut self,
        now: Timestamp,
        report: &Report,
        words: &Words,
        on_behalf_of: CompId,
        instruments: &Instruments,
        effects: &mut E,
    ) {
        if report.exec.exec_type == ExecType::Triggered && !self.knows_triggered() {
            return;
        }
        let numbers = Numbers::of(report);
        let Some(report) = numbers.report(now, report, words, None, instruments) else {
            return;
        };
        let copied = Copied {
            report: &report,
            on_behalf_of,
        };
        self.send(now, &copied, effects);
    }
}

impl Body for Copied<'_> {
    fn msg_type(&self) -> &'static [u8] {
        self.report.msg_type()
    }

    /// The first field is the last of the header: where the header's own fields end, the store's copy of a body begins, so
    /// that it is sent again with the rest.
    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::ON_BEHALF_OF_COMP_ID, self.on_behalf_of.as_bytes());
        self.report.encode(encoder);
        if encoder.version() >= Version::Fix44 {
            encoder.flag(tag::COPY_MSG_INDICATOR, true);
        }
    }
}
