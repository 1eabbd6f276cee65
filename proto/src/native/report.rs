//! ExecutionReport and Reject: what a client is answered.

use types::{
    AccountId, ClientOrderId, ExecId, ExecReport, ExecType, InstrumentId, OrderId, Price, Quantity, Reason, SessionId,
    Side,
};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{claimed_template, diagnose, header_of};
use super::{DecodeError, Template, emit, view, wire_lots};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ExecutionReportLayout {
    header: U64,
    /// The receiver's number of the order or request; 0: none.
    client_order_id: U64,
    /// The sender's number of the order; 0: none.
    order_id: U64,
    /// 1e-9. Fill: the trade's; else the order's limit. [`Price::NULL`]: none.
    price: I64,
    /// 0: none.
    exec_id: U64,
    /// Lots. Fill: traded; else the order's total.
    quantity: U32,
    /// Lots.
    leaves: U32,
    /// Lots.
    cumulative: U32,
    /// 0: none.
    instrument: U32,
    /// 0: none.
    session: U16,
    /// [`Reason`]; 0: none.
    reason: U16,
    /// [`ExecType`].
    exec_type: u8,
    /// [`Side`].
    side: u8,
    reserved1: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RejectLayout {
    header: U64,
    /// 0: none.
    number: U64,
    /// 0: none.
    template: U16,
    /// [`Reason`].
    reason: U16,
    /// [`DecodeError`]; 0: none.
    detail: u8,
    reserved1: u8,
    reserved2: U16,
}

const _: () = assert!(size_of::<ExecutionReportLayout>() == 64);
const _: () = assert!(size_of::<RejectLayout>() == 24);

const EXECUTION_REPORT: u64 = Template::ExecutionReport.header();
const REJECT: u64 = Template::Reject.header();

/// A message that could not be taken: what it asked for did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reject {
    /// Template id that the message claimed; 0 when it had none of this schema.
    pub template: u16,
    /// What stood in the message's place for a client order id, or for an instrument in an InstrumentRequest; 0 when it
    /// was too short for one.
    pub number: u64,
    /// Why.
    pub reason: Reason,
    /// Which rule of form was broken; `None` when it was none.
    pub detail: Option<DecodeError>,
}

/// Decodes an execution report. `bytes` is the message and nothing else. What is not on the wire is null or 0 (account,
/// original number; of a fill the order's limit), or follows from the rest (a fill's total). A reason that is newer than
/// this list is [`Reason::Venue`]: a report is never lost for it.
///
/// # Errors
/// The bytes are no execution report, or a field has a value that it may not have.
pub fn decode_report(bytes: &[u8]) -> Result<ExecReport, DecodeError> {
    match header_of(bytes) {
        EXECUTION_REPORT => view::<ExecutionReportLayout>(bytes)?.parse(),
        _ => Err(diagnose(bytes)),
    }
}

/// Encodes an execution report; returns its length.
///
/// # Panics
/// When `out` is shorter than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH), or a quantity is above
/// [`MAX_QUANTITY`](super::MAX_QUANTITY).
pub fn encode_report(report: &ExecReport, out: &mut [u8]) -> usize {
    emit(&ExecutionReportLayout::of(report), out)
}

pub(super) fn decode_reject(bytes: &[u8]) -> Result<Reject, DecodeError> {
    match header_of(bytes) {
        REJECT => view::<RejectLayout>(bytes).map(RejectLayout::parse),
        _ => Err(diagnose(bytes)),
    }
}

/// Encodes a reject; returns its length.
///
/// # Panics
/// When `out` is shorter than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH).
pub fn encode_reject(reject: &Reject, out: &mut [u8]) -> usize {
    emit(&RejectLayout::of(reject), out)
}

impl Reject {
    /// The answer to `message`, which could not be decoded.
    #[must_use]
    pub fn new(message: &[u8], error: DecodeError) -> Self {
        let template = claimed_template(message);
        let number = match template.and_then(Template::from_u16) {
            Some(Template::InstrumentRequest) => field(message, 8).map_or(0, |id| u64::from(u32::from_le_bytes(id))),
            Some(_) => field(message, 24).map_or(0, u64::from_le_bytes),
            None => 0,
        };
        Self {
            template: template.unwrap_or(0),
            number,
            reason: error.reason(),
            detail: Some(error),
        }
    }
}

/// The `N` bytes of `message` at `offset`, if they are there.
fn field<const N: usize>(message: &[u8], offset: usize) -> Option<[u8; N]> {
    message.get(offset..)?.first_chunk().copied()
}

impl ExecutionReportLayout {
    fn parse(&self) -> Result<ExecReport, DecodeError> {
        let exec_type = ExecType::from_u8(self.exec_type).ok_or(DecodeError::InvalidExecType)?;
        let side = Side::from_u8(self.side).ok_or(DecodeError::InvalidSide)?;
        let (price, quantity) = (Price(self.price.get()), lots(self.quantity));
        let (leaves, cumulative) = (lots(self.leaves), lots(self.cumulative));
        let mut report = ExecReport {
            exec_type,
            order_id: OrderId(self.order_id.get()),
            client_order_id: ClientOrderId(self.client_order_id.get()),
            orig_client_order_id: ClientOrderId(0),
            exec_id: ExecId(self.exec_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            account: AccountId(0),
            session: SessionId(self.session.get()),
            side,
            price,
            quantity,
            last_price: Price::NULL,
            last_quantity: Quantity::ZERO,
            leaves,
            cumulative,
            reason: Reason::from_u16(self.reason.get()).unwrap_or(Reason::Venue),
        };
        if exec_type == ExecType::Fill {
            report.price = Price::NULL;
            report.quantity = leaves + cumulative;
            report.last_price = price;
            report.last_quantity = quantity;
        }
        Ok(report)
    }

    fn of(report: &ExecReport) -> Self {
        let (price, quantity) = match report.exec_type {
            ExecType::Fill => (report.last_price, report.last_quantity),
            _ => (report.price, report.quantity),
        };
        Self {
            header: U64::new(EXECUTION_REPORT),
            client_order_id: U64::new(report.client_order_id.0),
            order_id: U64::new(report.order_id.0),
            price: I64::new(price.0),
            exec_id: U64::new(report.exec_id.0),
            quantity: wire_lots(quantity),
            leaves: wire_lots(report.leaves),
            cumulative: wire_lots(report.cumulative),
            instrument: U32::new(report.instrument.0),
            session: U16::new(report.session.0),
            reason: U16::new(report.reason as u16),
            exec_type: report.exec_type as u8,
            side: report.side as u8,
            reserved1: U16::ZERO,
        }
    }
}

impl RejectLayout {
    fn parse(&self) -> Reject {
        Reject {
            template: self.template.get(),
            number: self.number.get(),
            reason: Reason::from_u16(self.reason.get()).unwrap_or(Reason::Venue),
            detail: DecodeError::from_u8(self.detail),
        }
    }

    fn of(reject: &Reject) -> Self {
        Self {
            header: U64::new(REJECT),
            number: U64::new(reject.number),
            template: U16::new(reject.template),
            reason: U16::new(reject.reason as u16),
            detail: reject.detail.map_or(0, |error| error as u8),
            reserved1: 0,
            reserved2: U16::ZERO,
        }
    }
}

fn lots(wire: U32) -> Quantity {
    Quantity(u64::from(wire.get()))
}
