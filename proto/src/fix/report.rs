//! ExecutionReport (8) and OrderCancelReject (9).

use super::code::is_side;
use super::encoder::{Body, Encoder};
use super::field::Violation;
use super::message::Message;
use super::order::{parse_code, parse_price};
use super::{msg_type, tag, value};
use types::{ExecReport, ExecType, Price, Quantity, Timestamp};

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $code,)*
        }

        impl $name {
            /// From its code on the wire.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// ExecType (150), as FIX 4.4 has it.
    FixExecType {
        /// The order was accepted.
        New = b'0',
        /// No more trades today.
        DoneForDay = b'3',
        /// The order was cancelled.
        Canceled = b'4',
        /// The order was replaced.
        Replaced = b'5',
        /// A cancel is on its way.
        PendingCancel = b'6',
        /// A price is guaranteed.
        Stopped = b'7',
        /// The order was refused.
        Rejected = b'8',
        /// The order rests out of the market.
        Suspended = b'9',
        /// The order is on its way.
        PendingNew = b'A',
        /// Trades are being computed.
        Calculated = b'B',
        /// The order's time ended.
        Expired = b'C',
        /// The order was changed without a request.
        Restated = b'D',
        /// A replace is on its way.
        PendingReplace = b'E',
        /// The order traded.
        Trade = b'F',
        /// A trade was corrected.
        TradeCorrect = b'G',
        /// A trade was cancelled.
        TradeCancel = b'H',
        /// The answer to a status request.
        OrderStatus = b'I',
    }
}

codes! {
    /// OrdStatus (39), as FIX 4.4 has it.
    OrdStatus {
        /// Accepted, nothing traded.
        New = b'0',
        /// Traded in part.
        PartiallyFilled = b'1',
        /// Traded in full.
        Filled = b'2',
        /// No more trades today.
        DoneForDay = b'3',
        /// Cancelled.
        Canceled = b'4',
        /// Replaced (versions before 4.3).
        Replaced = b'5',
        /// A cancel is on its way.
        PendingCancel = b'6',
        /// A price is guaranteed.
        Stopped = b'7',
        /// Refused.
        Rejected = b'8',
        /// Rests out of the market.
        Suspended = b'9',
        /// On its way.
        PendingNew = b'A',
        /// Trades are being computed.
        Calculated = b'B',
        /// Its time ended.
        Expired = b'C',
        /// Accepted for bidding.
        AcceptedForBidding = b'D',
        /// A replace is on its way.
        PendingReplace = b'E',
    }
}

codes! {
    /// CxlRejResponseTo (434).
    CancelRejectResponseTo {
        /// OrderCancelRequest (F).
        Cancel = b'1',
        /// OrderCancelReplaceRequest (G).
        Replace = b'2',
    }
}

/// ExecutionReport (8). Quantities are in units, prices in 1e-9.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecutionReport<'a> {
    /// Account (1); empty when absent.
    pub account: &'a [u8],
    /// AvgPx (6): average price of the fills so far; 0 when there is none.
    pub avg_price: Price,
    /// ClOrdID (11); empty when absent.
    pub cl_ord_id: &'a [u8],
    /// CumQty (14).
    pub cumulative: u64,
    /// ExecID (17).
    pub exec_id: &'a [u8],
    /// LastPx (31), of a trade; else [`Price::NULL`].
    pub last_price: Price,
    /// LastQty (32), of a trade; else 0.
    pub last_quantity: u64,
    /// OrderID (37).
    pub order_id: &'a [u8],
    /// OrderQty (38); 0 when absent.
    pub quantity: u64,
    /// OrdStatus (39).
    pub ord_status: OrdStatus,
    /// OrigClOrdID (41), in the answer to a cancel or replace; else empty.
    pub orig_cl_ord_id: &'a [u8],
    /// Price (44); [`Price::NULL`] when absent.
    pub price: Price,
    /// Side (54), a code of FIX.
    pub side: u8,
    /// Symbol (55); empty when absent.
    pub symbol: &'a [u8],
    /// Text (58): why, for people; empty when absent.
    pub text: &'a [u8],
    /// TransactTime (60); [`Timestamp::NONE`] when absent.
    pub transact_time: Timestamp,
    /// OrdRejReason (103), when refused.
    pub ord_rej_reason: Option<u64>,
    /// ExecType (150).
    pub exec_type: FixExecType,
    /// LeavesQty (151).
    pub leaves: u64,
}

/// OrderCancelReject (9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderCancelReject<'a> {
    /// ClOrdID (11) of the request.
    pub cl_ord_id: &'a [u8],
    /// OrderID (37) of the order, `NONE` when it is not known.
    pub order_id: &'a [u8],
    /// OrdStatus (39) of the order, [`OrdStatus::Rejected`] when it is not known.
    pub ord_status: OrdStatus,
    /// OrigClOrdID (41): the order's last accepted id.
    pub orig_cl_ord_id: &'a [u8],
    /// Text (58): why, for people; empty when absent.
    pub text: &'a [u8],
    /// TransactTime (60); [`Timestamp::NONE`] when absent.
    pub transact_time: Timestamp,
    /// CxlRejReason (102).
    pub cxl_rej_reason: Option<u64>,
    /// CxlRejResponseTo (434).
    pub response_to: CancelRejectResponseTo,
}

impl FixExecType {
    /// The code of a report; `None` when FIX tells it by a message of its own.
    #[must_use]
    pub const fn of(exec_type: ExecType) -> Option<Self> {
        match exec_type {
            ExecType::New => Some(Self::New),
            ExecType::Fill => Some(Self::Trade),
            ExecType::Canceled => Some(Self::Canceled),
            ExecType::Replaced => Some(Self::Replaced),
            ExecType::Rejected => Some(Self::Rejected),
            ExecType::Expired => Some(Self::Expired),
            ExecType::Status => Some(Self::OrderStatus),
            ExecType::RequestRejected | ExecType::MassCancelAccepted | ExecType::Triggered | ExecType::StatusEnd => {
                None
            }
        }
    }
}

impl OrdStatus {
    /// The order's state after a report. For a refused request: the state of an order that lives.
    #[must_use]
    pub const fn of(report: &ExecReport) -> Self {
        match report.exec_type {
            ExecType::Canceled => Self::Canceled,
            ExecType::Rejected => Self::Rejected,
            ExecType::Expired => Self::Expired,
            _ => Self::of_quantities(report.leaves, report.cumulative),
        }
    }

    /// The state of an order that was not ended otherwise.
    #[must_use]
    pub const fn of_quantities(leaves: Quantity, cumulative: Quantity) -> Self {
        if cumulative.is_zero() {
            Self::New
        } else if leaves.is_zero() {
            Self::Filled
        } else {
            Self::PartiallyFilled
        }
    }
}

impl<'a> ExecutionReport<'a> {
    /// Reads a message of type 8.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        message.required(tag::AVG_PX)?;
        Ok(Self {
            account: message.get(tag::ACCOUNT),
            avg_price: parse_price(message, tag::AVG_PX)?,
            cl_ord_id: message.get(tag::CL_ORD_ID),
            cumulative: required_quantity(message, tag::CUM_QTY)?,
            exec_id: message.required(tag::EXEC_ID)?,
            last_price: parse_price(message, tag::LAST_PX)?,
            last_quantity: parse_quantity(message, tag::LAST_QTY)?,
            order_id: message.required(tag::ORDER_ID)?,
            quantity: parse_quantity(message, tag::ORDER_QTY)?,
            ord_status: parse_enum(message, tag::ORD_STATUS, OrdStatus::from_code)?,
            orig_cl_ord_id: message.get(tag::ORIG_CL_ORD_ID),
            price: parse_price(message, tag::PRICE)?,
            side: parse_code(message, tag::SIDE, is_side)?,
            symbol: message.get(tag::SYMBOL),
            text: message.get(tag::TEXT),
            transact_time: message.transact_time(),
            ord_rej_reason: parse_number(message, tag::ORD_REJ_REASON)?,
            exec_type: parse_enum(message, tag::EXEC_TYPE, FixExecType::from_code)?,
            leaves: required_quantity(message, tag::LEAVES_QTY)?,
        })
    }
}

impl Body for ExecutionReport<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::EXECUTION_REPORT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::ACCOUNT, self.account);
        encoder.price(tag::AVG_PX, self.avg_price);
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.number(tag::CUM_QTY, self.cumulative);
        encoder.text(tag::EXEC_ID, self.exec_id);
        if self.last_quantity > 0 {
            encoder.price(tag::LAST_PX, self.last_price);
            encoder.number(tag::LAST_QTY, self.last_quantity);
        }
        encoder.text(tag::ORDER_ID, self.order_id);
        encoder.number(tag::ORDER_QTY, self.quantity);
        encoder.code(tag::ORD_STATUS, self.ord_status as u8);
        encoder.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id);
        encoder.price(tag::PRICE, self.price);
        encoder.code(tag::SIDE, self.side);
        encoder.text(tag::SYMBOL, self.symbol);
        encoder.free_text(self.text);
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
        if let Some(reason) = self.ord_rej_reason {
            encoder.number(tag::ORD_REJ_REASON, reason);
        }
        encoder.code(tag::EXEC_TYPE, self.exec_type as u8);
        encoder.number(tag::LEAVES_QTY, self.leaves);
    }
}

impl<'a> OrderCancelReject<'a> {
    /// Reads a message of type 9.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            cl_ord_id: message.required(tag::CL_ORD_ID)?,
            order_id: message.required(tag::ORDER_ID)?,
            ord_status: parse_enum(message, tag::ORD_STATUS, OrdStatus::from_code)?,
            orig_cl_ord_id: message.required(tag::ORIG_CL_ORD_ID)?,
            text: message.get(tag::TEXT),
            transact_time: message.transact_time(),
            cxl_rej_reason: parse_number(message, tag::CXL_REJ_REASON)?,
            response_to: parse_enum(message, tag::CXL_REJ_RESPONSE_TO, CancelRejectResponseTo::from_code)?,
        })
    }
}

impl Body for OrderCancelReject<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::ORDER_CANCEL_REJECT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.text(tag::ORDER_ID, self.order_id);
        encoder.code(tag::ORD_STATUS, self.ord_status as u8);
        encoder.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id);
        encoder.free_text(self.text);
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
        if let Some(reason) = self.cxl_rej_reason {
            encoder.number(tag::CXL_REJ_REASON, reason);
        }
        encoder.code(tag::CXL_REJ_RESPONSE_TO, self.response_to as u8);
    }
}

/// A value that is one code, read by `from_code`.
fn parse_enum<T>(message: &Message<'_>, tag: u32, from_code: fn(u8) -> Option<T>) -> Result<T, Violation> {
    match *message.required(tag)? {
        [code] => from_code(code).ok_or(Violation::incorrect(tag)),
        _ => Err(Violation::incorrect(tag)),
    }
}

fn required_quantity(message: &Message<'_>, tag: u32) -> Result<u64, Violation> {
    message.required(tag)?;
    parse_quantity(message, tag)
}

/// 0 when absent.
fn parse_quantity(message: &Message<'_>, tag: u32) -> Result<u64, Violation> {
    let text = message.get(tag);
    if text.is_empty() {
        return Ok(0);
    }
    value::parse_quantity(text).ok_or(Violation::format(tag))
}

fn parse_number(message: &Message<'_>, tag: u32) -> Result<Option<u64>, Violation> {
    let text = message.get(tag);
    if text.is_empty() {
        return Ok(None);
    }
    value::parse_u64(text).map(Some).ok_or(Violation::format(tag))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{encoded, encoded_body, frame_of, read};
    use super::super::{MAX_MESSAGE_LENGTH, MAX_VALUE_LENGTH, Scratch, Version};
    use super::*;
    use alloc::string::String;

    const REPORT: ExecutionReport<'static> = ExecutionReport {
        account: b"ACC",
        avg_price: Price(10_500_000_000),
        cl_ord_id: b"ORD1",
        cumulative: 40,
        exec_id: b"E1",
        last_price: Price(10_500_000_000),
        last_quantity: 40,
        order_id: b"77",
        quantity: 100,
        ord_status: OrdStatus::PartiallyFilled,
        orig_cl_ord_id: b"",
        price: Price(11_000_000_000),
        side: b'1',
        symbol: b"INTC",
        text: b"",
        transact_time: Timestamp(1_772_323_200_000_000_000),
        ord_rej_reason: None,
        exec_type: FixExecType::Trade,
        leaves: 60,
    };

    #[test]
    fn a_trade_is_written_in_full() {
        let body = encoded_body(&REPORT, Version::Fix44);
        assert_eq!(
            String::from_utf8(body).unwrap().replace('\x01', "|"),
            "1=ACC|6=10.5|11=ORD1|14=40|17=E1|31=10.5|32=40|37=77|38=100|39=1|44=11|54=1|55=INTC|\
             60=20260301-00:00:00.000000|150=F|151=60|"
        );
        let frame = encoded(&REPORT, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, ExecutionReport::decode), Ok(REPORT));
    }

    #[test]
    fn a_refusal_says_why() {
        let report = ExecutionReport {
            avg_price: Price(0),
            cumulative: 0,
            last_price: Price::NULL,
            last_quantity: 0,
            ord_status: OrdStatus::Rejected,
            exec_type: FixExecType::Rejected,
            leaves: 0,
            text: b"quantity is above the limit for one order",
            ord_rej_reason: Some(3),
            ..REPORT
        };
        let frame = encoded(&report, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, ExecutionReport::decode), Ok(report));
    }

    #[test]
    fn a_cancel_reject_comes_back() {
        let reject = OrderCancelReject {
            cl_ord_id: b"ORD3",
            order_id: b"NONE",
            ord_status: OrdStatus::Rejected,
            orig_cl_ord_id: b"ORD2",
            text: b"unknown order",
            transact_time: Timestamp(1_772_323_200_000_000_000),
            cxl_rej_reason: Some(1),
            response_to: CancelRejectResponseTo::Cancel,
        };
        let frame = encoded(&reject, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, OrderCancelReject::decode), Ok(reject));
        let frame = frame_of("9", "11=A|37=1|39=0|41=B|434=3|");
        assert_eq!(
            read(&mut Scratch::new(), &frame, OrderCancelReject::decode),
            Err(Violation::incorrect(434))
        );
    }

    #[test]
    fn the_longest_report_fits_in_a_message() {
        let long = [b'x'; MAX_VALUE_LENGTH];
        let text = [b'x'; 1_000];
        let price = Price(i64::MIN + 1);
        let report = ExecutionReport {
            account: &long,
            avg_price: price,
            cl_ord_id: &long,
            cumulative: u64::MAX,
            exec_id: &long,
            last_price: price,
            last_quantity: u64::MAX,
            order_id: &long,
            quantity: u64::MAX,
            orig_cl_ord_id: &long,
            price,
            symbol: &long,
            text: &text,
            ord_rej_reason: Some(u64::MAX),
            leaves: u64::MAX,
            ..REPORT
        };
        let length = encoded(&report, Version::Fix50Sp2).len() + 2 * MAX_VALUE_LENGTH;
        assert!(length < MAX_MESSAGE_LENGTH / 2, "{length}");
    }

    #[test]
    fn what_an_initiator_cannot_read_is_told() {
        let text = String::from_utf8(encoded_body(&REPORT, Version::Fix44)).unwrap();
        for (from, to, violation) in [
            ("17=E1\x01", "", Violation::missing(17)),
            ("37=77\x01", "", Violation::missing(37)),
            ("\x01150=F", "", Violation::missing(150)),
            ("150=F", "150=?", Violation::incorrect(150)),
            ("39=1", "39=?", Violation::incorrect(39)),
            ("14=40", "14=x", Violation::format(14)),
            ("151=60", "151=1.5", Violation::format(151)),
        ] {
            let frame = frame_of("8", &text.replace(from, to));
            assert_eq!(
                read(&mut Scratch::new(), &frame, ExecutionReport::decode),
                Err(violation),
                "{from} -> {to}"
            );
        }
    }
}
