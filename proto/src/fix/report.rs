//! ExecutionReport (8) and OrderCancelReject (9).

use super::code::{cxl_rej_reason_of, exec_restatement_reason_of, is_side, ord_rej_reason_of};
use super::encoder::{Body, Encoder};
use super::field::Violation;
use super::message::Message;
use super::order::{parse_code, parse_price};
use super::{Version, msg_type, tag, value};
use types::{ExecReport, ExecType, Price, Quantity, Reason, Timestamp};

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
    /// ExecType (150), as FIX 5.0 has it.
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
        /// The order's stop price was met (since 5.0).
        Triggered = b'L',
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
    /// OrdType (40), a code of FIX; 0 when absent.
    pub ord_type: u8,
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
    /// TimeInForce (59), a code of FIX; 0 when absent.
    pub time_in_force: u8,
    /// TransactTime (60); [`Timestamp::NONE`] when absent.
    pub transact_time: Timestamp,
    /// OrdRejReason (103), when refused.
    pub ord_rej_reason: Option<u64>,
    /// ExecType (150).
    pub exec_type: FixExecType,
    /// LeavesQty (151).
    pub leaves: u64,
    /// ExecRestatementReason (378): why an order was cancelled that nobody asked to cancel.
    pub restatement: Option<u64>,
    /// What was asked for, in an answer to a status request.
    pub answer_to: Option<StatusAnswer<'a>>,
    /// Of a trade inside the gateway, which side of it this is. It is written and not read.
    pub crossed: Option<Crossed>,
}

/// Which side of a trade inside the gateway an order was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossed {
    /// It rested there.
    Rested,
    /// It came to one that rested.
    Took,
}

/// Which status request a report answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusAnswer<'a> {
    /// One for one order.
    Single {
        /// OrdStatusReqID (790); empty when the request had none.
        request_id: &'a [u8],
    },
    /// One for many orders.
    Mass {
        /// MassStatusReqID (584).
        request_id: &'a [u8],
        /// TotNumReports (911), where it is known.
        total: Option<u64>,
        /// LastRptRequested (912).
        is_last: bool,
    },
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
            ExecType::Triggered => Some(Self::Triggered),
            ExecType::Status => Some(Self::OrderStatus),
            ExecType::Restated => Some(Self::Restated),
            ExecType::RequestRejected | ExecType::MassCancelAccepted | ExecType::StatusEnd => None,
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
            ord_type: optional_code(message, tag::ORD_TYPE),
            orig_cl_ord_id: message.get(tag::ORIG_CL_ORD_ID),
            price: parse_price(message, tag::PRICE)?,
            side: parse_code(message, tag::SIDE, is_side)?,
            symbol: message.get(tag::SYMBOL),
            text: message.get(tag::TEXT),
            time_in_force: optional_code(message, tag::TIME_IN_FORCE),
            transact_time: message.transact_time(),
            ord_rej_reason: parse_number(message, tag::ORD_REJ_REASON)?,
            exec_type: parse_exec_type(message)?,
            leaves: required_quantity(message, tag::LEAVES_QTY)?,
            restatement: parse_number(message, tag::EXEC_RESTATEMENT_REASON)?,
            answer_to: parse_answer(message),
            crossed: None,
        })
    }
}

/// A code of one character; 0 when absent.
fn optional_code(message: &Message<'_>, tag: u32) -> u8 {
    match *message.get(tag) {
        [code] => code,
        _ => 0,
    }
}

impl Body for ExecutionReport<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::EXECUTION_REPORT
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        let version = encoder.version();
        encoder.text(tag::ACCOUNT, self.account);
        encoder.price(tag::AVG_PX, self.avg_price);
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.number(tag::CUM_QTY, self.cumulative);
        encoder.text(tag::EXEC_ID, self.exec_id);
        if version < Version::Fix43 {
            encoder.code(tag::EXEC_TRANS_TYPE, self.exec_trans_type());
        }
        if self.last_quantity > 0 {
            encoder.price(tag::LAST_PX, self.last_price);
            encoder.number(tag::LAST_QTY, self.last_quantity);
            if let Some(crossed) = self.crossed {
                crossed.encode(encoder);
            }
        } else if version < Version::Fix42 {
            encoder.number(tag::LAST_PX, 0);
            encoder.number(tag::LAST_QTY, 0);
        }
        encoder.text(tag::ORDER_ID, self.order_id);
        encoder.number(tag::ORDER_QTY, self.quantity);
        encoder.code(tag::ORD_STATUS, self.ord_status_of(version));
        if self.ord_type != 0 {
            encoder.code(tag::ORD_TYPE, self.ord_type);
        }
        encoder.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id);
        encoder.price(tag::PRICE, self.price);
        encoder.code(tag::SIDE, self.side);
        encoder.text(tag::SYMBOL, self.symbol);
        encoder.free_text(self.text);
        if self.time_in_force != 0 {
            encoder.code(tag::TIME_IN_FORCE, self.time_in_force);
        }
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
        if let Some(reason) = self.ord_rej_reason {
            encoder.number(tag::ORD_REJ_REASON, ord_rej_reason_of(version, reason));
        }
        if version > Version::Fix40 {
            encoder.code(tag::EXEC_TYPE, self.exec_type_of(version));
            encoder.number(tag::LEAVES_QTY, self.leaves);
        }
        if let Some(reason) = self
            .restatement
            .and_then(|reason| exec_restatement_reason_of(version, reason))
        {
            encoder.number(tag::EXEC_RESTATEMENT_REASON, reason);
        }
        if let Some(answer) = &self.answer_to {
            answer.encode(encoder);
        }
    }
}

impl Crossed {
    /// The side that a reason tells of.
    #[must_use]
    pub const fn of(reason: Reason) -> Option<Self> {
        match reason {
            Reason::CrossedResting => Some(Self::Rested),
            Reason::CrossedTaking => Some(Self::Took),
            _ => None,
        }
    }

    /// LastCapacity (29), LastMkt (30) and LastLiquidityInd (851), as far as the version has them.
    #[cold]
    fn encode(self, encoder: &mut Encoder<'_>) {
        let version = encoder.version();
        encoder.code(tag::LAST_CAPACITY, CROSS_AS_AGENT);
        // Before 4.3 its values are no market codes of ISO 10383.
        if version >= Version::Fix43 {
            encoder.text(tag::LAST_MKT, OFF_EXCHANGE);
        }
        if version >= Version::Fix44 {
            let liquidity = match self {
                Self::Rested => 1,
                Self::Took => 2,
            };
            encoder.number(tag::LAST_LIQUIDITY_IND, liquidity);
        }
    }
}

/// Of 29.
const CROSS_AS_AGENT: u8 = b'2';

/// Of 30: a trade in a listed instrument off an exchange.
const OFF_EXCHANGE: &[u8] = b"XOFF";

impl ExecutionReport<'_> {
    /// ExecTransType (20), which versions before 4.3 have: new, or status.
    const fn exec_trans_type(&self) -> u8 {
        match self.exec_type {
            FixExecType::OrderStatus => b'3',
            _ => b'0',
        }
    }

    /// OrdStatus (39). Before 4.3 an order that was replaced and has not traded says so; before 4.2 one state stands for
    /// whatever is pending.
    fn ord_status_of(&self, version: Version) -> u8 {
        match (self.exec_type, self.ord_status) {
            (FixExecType::Replaced, OrdStatus::New) if version < Version::Fix43 => OrdStatus::Replaced as u8,
            (_, status) => status.of_version(version),
        }
    }

    /// ExecType (150). Before 4.3 a trade is told by the state that it leaves, and so is a status.
    fn exec_type_of(&self, version: Version) -> u8 {
        match self.exec_type {
            FixExecType::Trade if version < Version::Fix43 && self.leaves > 0 => OrdStatus::PartiallyFilled as u8,
            FixExecType::Trade if version < Version::Fix43 => OrdStatus::Filled as u8,
            FixExecType::OrderStatus if version < Version::Fix43 => self.ord_status.of_version(version),
            exec_type => exec_type as u8,
        }
    }
}

impl OrdStatus {
    /// Its code in a version.
    fn of_version(self, version: Version) -> u8 {
        match self {
            Self::PendingReplace if version < Version::Fix42 => Self::PendingCancel as u8,
            status => status as u8,
        }
    }
}

impl StatusAnswer<'_> {
    fn encode(&self, encoder: &mut Encoder<'_>) {
        let version = encoder.version();
        match self {
            Self::Single { request_id } if version >= Version::Fix44 => {
                encoder.text(tag::ORD_STATUS_REQ_ID, request_id);
            }
            Self::Mass {
                request_id,
                total,
                is_last,
            } if version >= Version::Fix43 => {
                encoder.text(tag::MASS_STATUS_REQ_ID, request_id);
                if version >= Version::Fix44 {
                    if let Some(total) = total {
                        encoder.number(tag::TOT_NUM_REPORTS, *total);
                    }
                    encoder.flag(tag::LAST_RPT_REQUESTED, *is_last);
                }
            }
            // The version has no field for it.
            Self::Single { .. } | Self::Mass { .. } => {}
        }
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
        let version = encoder.version();
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.text(tag::ORDER_ID, self.order_id);
        if version > Version::Fix40 {
            encoder.code(tag::ORD_STATUS, self.ord_status.of_version(version));
            encoder.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id);
        }
        encoder.free_text(self.text);
        if version > Version::Fix41 {
            encoder.time(tag::TRANSACT_TIME, self.transact_time);
        }
        if let Some(reason) = self
            .cxl_rej_reason
            .and_then(|reason| cxl_rej_reason_of(version, reason))
        {
            encoder.number(tag::CXL_REJ_REASON, reason);
        }
        if version > Version::Fix41 {
            encoder.code(tag::CXL_REJ_RESPONSE_TO, self.response_to as u8);
        }
    }
}

/// A value that is one code, read by `from_code`.
fn parse_enum<T>(message: &Message<'_>, tag: u32, from_code: fn(u8) -> Option<T>) -> Result<T, Violation> {
    match *message.required(tag)? {
        [code] => from_code(code).ok_or(Violation::incorrect(tag)),
        _ => Err(Violation::incorrect(tag)),
    }
}

/// ExecType (150); trades as versions before 4.3 tell them are trades.
fn parse_exec_type(message: &Message<'_>) -> Result<FixExecType, Violation> {
    match message.get(tag::EXEC_TYPE) {
        b"1" | b"2" => Ok(FixExecType::Trade),
        _ => parse_enum(message, tag::EXEC_TYPE, FixExecType::from_code),
    }
}

/// Which status request a report answers, if any.
fn parse_answer<'a>(message: &Message<'a>) -> Option<StatusAnswer<'a>> {
    let (single, mass) = (
        message.get(tag::ORD_STATUS_REQ_ID),
        message.get(tag::MASS_STATUS_REQ_ID),
    );
    if !mass.is_empty() {
        return Some(StatusAnswer::Mass {
            request_id: mass,
            total: value::parse_u64(message.get(tag::TOT_NUM_REPORTS)),
            is_last: message.get(tag::LAST_RPT_REQUESTED) == b"Y",
        });
    }
    (!single.is_empty()).then_some(StatusAnswer::Single { request_id: single })
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
    use super::super::{MAX_MESSAGE_LENGTH, MAX_VALUE_LENGTH, Scratch};
    use super::*;
    use alloc::format;
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
        ord_type: 0,
        orig_cl_ord_id: b"",
        price: Price(11_000_000_000),
        side: b'1',
        symbol: b"INTC",
        text: b"",
        time_in_force: 0,
        transact_time: Timestamp(1_772_323_200_000_000_000),
        ord_rej_reason: None,
        exec_type: FixExecType::Trade,
        leaves: 60,
        restatement: None,
        answer_to: None,
        crossed: None,
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
    fn a_trade_inside_the_gateway_says_so_as_far_as_a_version_has_words() {
        let crossed = |crossed, version| {
            let report = ExecutionReport {
                crossed: Some(crossed),
                ..REPORT
            };
            readable(&report, version)
        };
        let took = crossed(Crossed::Took, Version::Fix44);
        assert!(took.contains("|31=10.5|32=40|29=2|30=XOFF|851=2|37=77|"), "{took}");
        let rested = crossed(Crossed::Rested, Version::Fix50Sp2);
        assert!(rested.contains("|29=2|30=XOFF|851=1|"), "{rested}");
        let old = crossed(Crossed::Took, Version::Fix42);
        assert!(old.contains("|32=40|29=2|37=77|"), "{old}");
        let middle = crossed(Crossed::Took, Version::Fix43);
        assert!(middle.contains("|32=40|29=2|30=XOFF|37=77|"), "{middle}");
    }

    fn readable(body: &impl Body, version: Version) -> String {
        String::from_utf8(encoded_body(body, version))
            .unwrap()
            .replace('\x01', "|")
    }

    #[test]
    fn each_version_has_its_own_words_for_a_trade() {
        let rest = "37=77|38=100|39=1|44=11|54=1|55=INTC|60=20260301-00:00:00";
        for (version, head, tail) in [
            (Version::Fix40, "20=0|31=10.5|32=40|", "|"),
            (Version::Fix41, "20=0|31=10.5|32=40|", "|150=1|151=60|"),
            (Version::Fix42, "20=0|31=10.5|32=40|", ".000000|150=1|151=60|"),
            (Version::Fix43, "31=10.5|32=40|", ".000000|150=F|151=60|"),
            (Version::Fix50Sp2, "31=10.5|32=40|", ".000000|150=F|151=60|"),
        ] {
            let text = format!("1=ACC|6=10.5|11=ORD1|14=40|17=E1|{head}{rest}{tail}");
            assert_eq!(readable(&REPORT, version), text, "{version:?}");
        }
        let filled = ExecutionReport {
            leaves: 0,
            ord_status: OrdStatus::Filled,
            ..REPORT
        };
        assert!(readable(&filled, Version::Fix42).ends_with("|150=2|151=0|"));
    }

    #[test]
    fn each_version_has_its_own_words_for_what_is_no_trade() {
        const NEW: ExecutionReport<'static> = ExecutionReport {
            last_price: Price::NULL,
            last_quantity: 0,
            ord_status: OrdStatus::New,
            exec_type: FixExecType::New,
            ..REPORT
        };
        let replaced = ExecutionReport {
            exec_type: FixExecType::Replaced,
            ..NEW
        };
        let pending = ExecutionReport {
            ord_status: OrdStatus::PendingReplace,
            ..replaced
        };
        let status = ExecutionReport {
            exec_type: FixExecType::OrderStatus,
            answer_to: Some(StatusAnswer::Single { request_id: b"Q" }),
            ..NEW
        };
        let mass = ExecutionReport {
            answer_to: Some(StatusAnswer::Mass {
                request_id: b"M",
                total: Some(3),
                is_last: false,
            }),
            ..status
        };
        let refused = ExecutionReport {
            exec_type: FixExecType::Rejected,
            ord_status: OrdStatus::Rejected,
            ord_rej_reason: Some(11),
            ..NEW
        };
        let canceled = |restatement| ExecutionReport {
            exec_type: FixExecType::Canceled,
            ord_status: OrdStatus::Canceled,
            restatement: Some(restatement),
            ..NEW
        };
        for (report, version, wanted) in [
            (NEW, Version::Fix40, &["20=0", "31=0", "32=0", "39=0"][..]),
            (NEW, Version::Fix42, &["20=0", "39=0", "150=0"]),
            (replaced, Version::Fix42, &["20=0", "39=5", "150=5"]),
            (replaced, Version::Fix43, &["39=0", "150=5"]),
            (pending, Version::Fix41, &["20=0", "31=0", "32=0", "39=6", "150=5"]),
            (pending, Version::Fix42, &["20=0", "39=E", "150=5"]),
            (status, Version::Fix42, &["20=3", "39=0", "150=0"]),
            (status, Version::Fix43, &["39=0", "150=I"]),
            (status, Version::Fix44, &["39=0", "150=I", "790=Q"]),
            (mass, Version::Fix43, &["39=0", "150=I", "584=M"]),
            (mass, Version::Fix44, &["39=0", "150=I", "584=M", "911=3", "912=N"]),
            (
                refused,
                Version::Fix41,
                &["20=0", "31=0", "32=0", "39=8", "103=0", "150=8"],
            ),
            (refused, Version::Fix42, &["20=0", "39=8", "103=0", "150=8"]),
            (refused, Version::Fix43, &["39=8", "103=11", "150=8"]),
            (canceled(8), Version::Fix42, &["20=0", "39=4", "150=4", "378=4"]),
            (canceled(8), Version::Fix44, &["39=4", "150=4", "378=8"]),
            (canceled(12), Version::Fix44, &["39=4", "150=4", "378=4"]),
            (canceled(17), Version::Fix50, &["39=4", "150=4", "378=8"]),
            (canceled(17), Version::Fix50Sp2, &["39=4", "150=4", "378=17"]),
        ] {
            let text = readable(&report, version);
            let told: alloc::vec::Vec<_> = text
                .split('|')
                .filter(|field| {
                    let tag = field.split('=').next().unwrap_or_default();
                    ["20", "31", "32", "39", "103", "150", "378", "584", "790", "911", "912"].contains(&tag)
                })
                .collect();
            assert_eq!(told, wanted, "{version:?} {report:?}");
        }
    }

    #[test]
    fn a_status_answer_comes_back() {
        for answer in [
            StatusAnswer::Single { request_id: b"Q" },
            StatusAnswer::Mass {
                request_id: b"M",
                total: None,
                is_last: true,
            },
        ] {
            let report = ExecutionReport {
                exec_type: FixExecType::OrderStatus,
                answer_to: Some(answer),
                ..REPORT
            };
            let frame = encoded(&report, Version::Fix44);
            assert_eq!(read(&mut Scratch::new(), &frame, ExecutionReport::decode), Ok(report));
        }
    }

    #[test]
    fn each_version_has_its_own_cancel_reject() {
        let reject = OrderCancelReject {
            cl_ord_id: b"C2",
            order_id: b"77",
            ord_status: OrdStatus::New,
            orig_cl_ord_id: b"C1",
            text: b"no",
            transact_time: Timestamp(0),
            cxl_rej_reason: Some(6),
            response_to: CancelRejectResponseTo::Replace,
        };
        for (version, text) in [
            (Version::Fix40, "11=C2|37=77|58=no|"),
            (Version::Fix41, "11=C2|37=77|39=0|41=C1|58=no|"),
            (
                Version::Fix42,
                "11=C2|37=77|39=0|41=C1|58=no|60=19700101-00:00:00.000000|102=2|434=2|",
            ),
            (
                Version::Fix43,
                "11=C2|37=77|39=0|41=C1|58=no|60=19700101-00:00:00.000000|102=6|434=2|",
            ),
        ] {
            assert_eq!(readable(&reject, version), text, "{version:?}");
        }
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
            ord_type: b'2',
            time_in_force: b'0',
            text: b"quantity is above the limit for one order",
            ord_rej_reason: Some(3),
            ..REPORT
        };
        let frame = encoded(&report, Version::Fix44);
        assert_eq!(read(&mut Scratch::new(), &frame, ExecutionReport::decode), Ok(report));
        let text = String::from_utf8(frame).unwrap().replace('\x01', "|");
        assert!(text.contains("|39=8|40=2|") && text.contains("|59=0|60="), "{text}");
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
