//! OrderStatusRequest (H), OrderMassCancelRequest (q) and its OrderMassCancelReport (r), OrderMassStatusRequest (AF).

use super::code::is_side;
use super::encoder::{Body, Encoder};
use super::field::Violation;
use super::message::Message;
use super::order::parse_code;
use super::{Version, msg_type, tag};
use types::Timestamp;

/// OrderStatusRequest (H).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderStatusRequest<'a> {
    /// ClOrdID (11) of the order; empty when it is asked for by its OrderID.
    pub cl_ord_id: &'a [u8],
    /// OrderID (37); empty when absent.
    pub order_id: &'a [u8],
    /// OrdStatusReqID (790); empty when absent.
    pub request_id: &'a [u8],
    /// Side (54), a code of FIX.
    pub side: u8,
    /// Symbol (55).
    pub symbol: &'a [u8],
}

/// OrderMassStatusRequest (AF).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderMassStatusRequest<'a> {
    /// MassStatusReqID (584).
    pub request_id: &'a [u8],
    /// Which orders: MassStatusReqType (585).
    pub which: &'a [u8],
    /// Symbol (55); empty when absent.
    pub symbol: &'a [u8],
}

/// OrderMassCancelRequest (q).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderMassCancelRequest<'a> {
    /// ClOrdID (11).
    pub cl_ord_id: &'a [u8],
    /// Which orders: MassCancelRequestType (530).
    pub which: u8,
    /// Symbol (55); empty when absent.
    pub symbol: &'a [u8],
    /// Whether it is for one Side (54) alone.
    pub one_side: bool,
}

/// OrderMassCancelReport (r).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderMassCancelReport<'a> {
    /// ClOrdID (11) of the request.
    pub cl_ord_id: &'a [u8],
    /// OrderID (37): the number of this report. There is no one order.
    pub order_id: &'a [u8],
    /// MassCancelRequestType (530), as it came.
    pub which: u8,
    /// MassCancelResponse (531): what was taken; `None` when nothing was.
    pub response: Option<u8>,
    /// MassCancelRejectReason (532), when nothing was taken.
    pub reject_reason: Option<u64>,
    /// Symbol (55); empty when absent.
    pub symbol: &'a [u8],
    /// Text (58): why, for people; empty when absent.
    pub text: &'a [u8],
    /// TransactTime (60).
    pub transact_time: Timestamp,
}

/// All orders of one security: MassStatusReqType (585), MassCancelRequestType (530).
pub const OF_SECURITY: u8 = b'1';
/// All orders: likewise.
pub const OF_ALL: u8 = b'7';

impl<'a> OrderStatusRequest<'a> {
    /// Reads a message of type H.
    ///
    /// # Errors
    /// What a session Reject has to say.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        let order_id = message.get(tag::ORDER_ID);
        let cl_ord_id = if order_id.is_empty() {
            message.required(tag::CL_ORD_ID)?
        } else {
            message.get(tag::CL_ORD_ID)
        };
        Ok(Self {
            cl_ord_id,
            order_id,
            request_id: message.get(tag::ORD_STATUS_REQ_ID),
            side: parse_code(message, tag::SIDE, is_side)?,
            symbol: message.required(tag::SYMBOL)?,
        })
    }
}

impl<'a> OrderMassStatusRequest<'a> {
    /// Reads a message of type AF.
    ///
    /// # Errors
    /// What a session Reject has to say.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            request_id: message.required(tag::MASS_STATUS_REQ_ID)?,
            which: message.required(tag::MASS_STATUS_REQ_TYPE)?,
            symbol: message.get(tag::SYMBOL),
        })
    }
}

impl<'a> OrderMassCancelRequest<'a> {
    /// Reads a message of type q.
    ///
    /// # Errors
    /// What a session Reject has to say.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            cl_ord_id: message.required(tag::CL_ORD_ID)?,
            which: parse_code(message, tag::MASS_CANCEL_REQUEST_TYPE, |code| {
                code.is_ascii_alphanumeric()
            })?,
            symbol: message.get(tag::SYMBOL),
            one_side: !message.get(tag::SIDE).is_empty(),
        })
    }
}

impl Body for OrderMassCancelReport<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::ORDER_MASS_CANCEL_REPORT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.text(tag::ORDER_ID, self.order_id);
        encoder.text(tag::SYMBOL, self.symbol);
        encoder.free_text(self.text);
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
        encoder.code(tag::MASS_CANCEL_REQUEST_TYPE, self.which);
        encoder.code(tag::MASS_CANCEL_RESPONSE, self.response.unwrap_or(b'0'));
        if let Some(reason) = self.reject_reason {
            // FIX 4.3 has no number for other reasons.
            let is_known = reason < OTHER || encoder.version() > Version::Fix43;
            encoder.number(tag::MASS_CANCEL_REJECT_REASON, if is_known { reason } else { 0 });
        }
        if encoder.version() >= Version::Fix50Sp1 {
            encoder.text(tag::MASS_ACTION_REPORT_ID, self.order_id);
        }
    }
}

/// Of MassCancelRejectReason (532).
const OTHER: u64 = 99;
