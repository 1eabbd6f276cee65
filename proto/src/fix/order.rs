//! NewOrderSingle (D), OrderCancelRequest (F) and OrderCancelReplaceRequest (G).
//!
//! A view is what is needed of a message whose form is right. Whether the gateway trades it (a symbol it knows, a stop
//! order it does not) is the order logic's to say, with an ExecutionReport and not with a Reject. So codes that FIX
//! defines pass, and what FIX leaves to conditions (OrderQty, Price) may be absent.

use super::code::{is_ord_type, is_side, is_tif};
use super::encoder::{Body, Encoder};
use super::field::Violation;
use super::message::Message;
use super::terms::OrderFields;
use super::{Version, msg_type, tag, value};
use types::{Price, Timestamp, Trigger};

/// NewOrderSingle (D).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrderSingle<'a> {
    /// Account (1); empty when absent.
    pub account: &'a [u8],
    /// ClOrdID (11).
    pub cl_ord_id: &'a [u8],
    /// OrderQty (38), units; 0 when absent, fractional or negative.
    pub quantity: u64,
    /// OrdType (40), a code of FIX; [`super::ord_type_from_code`] tells whether it is traded.
    pub ord_type: u8,
    /// Price (44), 1e-9; [`Price::NULL`] when absent.
    pub price: Price,
    /// Side (54), a code of FIX; [`super::side_from_code`] tells whether it is traded.
    pub side: u8,
    /// Symbol (55).
    pub symbol: &'a [u8],
    /// TimeInForce (59), a code of FIX, Day when absent; [`super::tif_from_code`] tells whether it is traded.
    pub time_in_force: u8,
    /// TransactTime (60); [`Timestamp::NONE`] when absent, as FIX 4.0 and 4.1 allow.
    pub transact_time: Timestamp,
    /// The tick that caused the order ([`tag::TRIGGER`]); [`Trigger::NONE`] when absent.
    pub trigger: Trigger,
    /// What else it asks for.
    pub fields: OrderFields,
}

/// OrderCancelRequest (F).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderCancelRequest<'a> {
    /// ClOrdID (11) of the request.
    pub cl_ord_id: &'a [u8],
    /// OrigClOrdID (41) of the order.
    pub orig_cl_ord_id: &'a [u8],
    /// OrderQty (38), units; 0 when absent.
    pub quantity: u64,
    /// Side (54), a code of FIX.
    pub side: u8,
    /// Symbol (55).
    pub symbol: &'a [u8],
    /// TransactTime (60); [`Timestamp::NONE`] when absent, as FIX 4.0 and 4.1 allow.
    pub transact_time: Timestamp,
}

/// OrderCancelReplaceRequest (G).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderCancelReplaceRequest<'a> {
    /// Account (1); empty when absent.
    pub account: &'a [u8],
    /// ClOrdID (11) of the request, and of the order once it is replaced.
    pub cl_ord_id: &'a [u8],
    /// OrigClOrdID (41) of the order.
    pub orig_cl_ord_id: &'a [u8],
    /// OrderQty (38), the new total in units; 0 when absent, fractional or negative.
    pub quantity: u64,
    /// OrdType (40), a code of FIX.
    pub ord_type: u8,
    /// Price (44), the new limit, 1e-9; [`Price::NULL`] when absent.
    pub price: Price,
    /// Side (54), a code of FIX.
    pub side: u8,
    /// Symbol (55).
    pub symbol: &'a [u8],
    /// TimeInForce (59), a code of FIX; 0 when absent: as it was.
    pub time_in_force: u8,
    /// TransactTime (60); [`Timestamp::NONE`] when absent, as FIX 4.0 and 4.1 allow.
    pub transact_time: Timestamp,
    /// What else it asks for: all of it, what stays included.
    pub fields: OrderFields,
}

impl<'a> NewOrderSingle<'a> {
    /// Reads a message of type D.
    ///
    /// # Errors
    /// What a session Reject has to say. What is wrong with the form of the message, [`Message::violation`] tells.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            account: message.get(tag::ACCOUNT),
            cl_ord_id: message.required(tag::CL_ORD_ID)?,
            quantity: parse_order_qty(message.get(tag::ORDER_QTY))?,
            ord_type: parse_code(message, tag::ORD_TYPE, is_ord_type)?,
            price: parse_price(message, tag::PRICE)?,
            side: parse_code(message, tag::SIDE, is_side)?,
            symbol: message.required(tag::SYMBOL)?,
            time_in_force: parse_time_in_force(message)?,
            transact_time: required_transact_time(message)?,
            trigger: parse_trigger(message.get(tag::TRIGGER))?,
            fields: OrderFields::decode(message)?,
        })
    }
}

impl Body for NewOrderSingle<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::NEW_ORDER_SINGLE
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::ACCOUNT, self.account);
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.number(tag::ORDER_QTY, self.quantity);
        encoder.code(tag::ORD_TYPE, self.ord_type);
        encoder.price(tag::PRICE, self.price);
        encoder.code(tag::SIDE, self.side);
        encoder.text(tag::SYMBOL, self.symbol);
        encoder.code(tag::TIME_IN_FORCE, self.time_in_force);
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
        self.fields.encode(encoder);
        if self.trigger != Trigger::NONE {
            encoder.number(tag::TRIGGER, self.trigger.0);
        }
    }
}

impl<'a> OrderCancelRequest<'a> {
    /// Reads a message of type F.
    ///
    /// # Errors
    /// What a session Reject has to say. What is wrong with the form of the message, [`Message::violation`] tells.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            cl_ord_id: message.required(tag::CL_ORD_ID)?,
            orig_cl_ord_id: message.required(tag::ORIG_CL_ORD_ID)?,
            quantity: parse_order_qty(message.get(tag::ORDER_QTY))?,
            side: parse_code(message, tag::SIDE, is_side)?,
            symbol: message.required(tag::SYMBOL)?,
            transact_time: required_transact_time(message)?,
        })
    }
}

impl Body for OrderCancelRequest<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::ORDER_CANCEL_REQUEST
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        if self.quantity > 0 {
            encoder.number(tag::ORDER_QTY, self.quantity);
        }
        encoder.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id);
        encoder.code(tag::SIDE, self.side);
        encoder.text(tag::SYMBOL, self.symbol);
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
    }
}

impl<'a> OrderCancelReplaceRequest<'a> {
    /// Reads a message of type G.
    ///
    /// # Errors
    /// What a session Reject has to say. What is wrong with the form of the message, [`Message::violation`] tells.
    pub fn decode(message: &Message<'a>) -> Result<Self, Violation> {
        Ok(Self {
            account: message.get(tag::ACCOUNT),
            cl_ord_id: message.required(tag::CL_ORD_ID)?,
            orig_cl_ord_id: message.required(tag::ORIG_CL_ORD_ID)?,
            quantity: parse_order_qty(message.get(tag::ORDER_QTY))?,
            ord_type: parse_code(message, tag::ORD_TYPE, is_ord_type)?,
            price: parse_price(message, tag::PRICE)?,
            side: parse_code(message, tag::SIDE, is_side)?,
            symbol: message.required(tag::SYMBOL)?,
            time_in_force: match message.get(tag::TIME_IN_FORCE) {
                b"" => 0,
                _ => parse_time_in_force(message)?,
            },
            transact_time: required_transact_time(message)?,
            fields: OrderFields::decode(message)?,
        })
    }
}

impl Body for OrderCancelReplaceRequest<'_> {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::ORDER_CANCEL_REPLACE_REQUEST
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.text(tag::ACCOUNT, self.account);
        encoder.text(tag::CL_ORD_ID, self.cl_ord_id);
        encoder.number(tag::ORDER_QTY, self.quantity);
        encoder.code(tag::ORD_TYPE, self.ord_type);
        encoder.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id);
        encoder.price(tag::PRICE, self.price);
        encoder.code(tag::SIDE, self.side);
        encoder.text(tag::SYMBOL, self.symbol);
        if self.time_in_force != 0 {
            encoder.code(tag::TIME_IN_FORCE, self.time_in_force);
        }
        encoder.time(tag::TRANSACT_TIME, self.transact_time);
        self.fields.encode(encoder);
    }
}

#[inline]
pub(super) fn parse_code(message: &Message<'_>, tag: u32, is_defined: fn(u8) -> bool) -> Result<u8, Violation> {
    match *message.required(tag)? {
        [code] if is_defined(code) => Ok(code),
        _ => Err(Violation::incorrect(tag)),
    }
}

/// [`Price::NULL`] when absent.
#[inline]
pub(super) fn parse_price(message: &Message<'_>, tag: u32) -> Result<Price, Violation> {
    let value = message.get(tag);
    if value.is_empty() {
        return Ok(Price::NULL);
    }
    value::parse_price(value).ok_or(Violation::format(tag))
}

#[inline]
pub(super) fn required_transact_time(message: &Message<'_>) -> Result<Timestamp, Violation> {
    if message.get(tag::TRANSACT_TIME).is_empty() {
        let begin_string = message.begin_string();
        let may_be_absent =
            begin_string == Version::Fix40.begin_string() || begin_string == Version::Fix41.begin_string();
        if !may_be_absent {
            return Err(Violation::missing(tag::TRANSACT_TIME));
        }
    }
    Ok(message.transact_time())
}

#[inline]
fn parse_order_qty(text: &[u8]) -> Result<u64, Violation> {
    if text.is_empty() {
        return Ok(0);
    }
    match value::parse_quantity(text) {
        Some(quantity) => Ok(quantity),
        // A number for FIX, and none that is traded: for the order logic to refuse.
        None if Price::parse(text).is_some() => Ok(0),
        None => Err(Violation::format(tag::ORDER_QTY)),
    }
}

#[inline]
fn parse_time_in_force(message: &Message<'_>) -> Result<u8, Violation> {
    if message.get(tag::TIME_IN_FORCE).is_empty() {
        return Ok(b'0');
    }
    parse_code(message, tag::TIME_IN_FORCE, is_tif)
}

#[inline]
fn parse_trigger(text: &[u8]) -> Result<Trigger, Violation> {
    if text.is_empty() {
        return Ok(Trigger::NONE);
    }
    value::parse_u64(text)
        .map(Trigger)
        .ok_or(Violation::format(tag::TRIGGER))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{encoded, frame_of, read};
    use super::super::{MAX_VALUE_LENGTH, RejectReason, Scratch, Version};
    use super::*;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;

    const ORDER: &str =
        "1=ACC|11=ORD1|38=100|40=2|44=101.25|54=1|55=INTC|59=3|60=20260301-00:00:00.123|9001=72057594037927977|";

    #[test]
    fn a_new_order_is_read() {
        assert_eq!(
            read(&mut Scratch::new(), &frame_of("D", ORDER), NewOrderSingle::decode),
            Ok(NewOrderSingle {
                account: b"ACC",
                cl_ord_id: b"ORD1",
                quantity: 100,
                ord_type: b'2',
                price: Price(101_250_000_000),
                side: b'1',
                symbol: b"INTC",
                time_in_force: b'3',
                transact_time: Timestamp(1_772_323_200_123_000_000),
                trigger: Trigger::new(1, 41),
                fields: OrderFields::NONE,
            })
        );
    }

    #[test]
    fn what_may_be_absent_has_a_null() {
        let frame = frame_of("D", "11=ORD1|40=1|54=1|55=INTC|60=20260301-00:00:00|");
        let mut scratch = Scratch::new();
        let order = read(&mut scratch, &frame, NewOrderSingle::decode).unwrap();
        assert_eq!(
            (order.quantity, order.price, order.time_in_force),
            (0, Price::NULL, b'0')
        );
        assert!(order.account.is_empty());
        assert_eq!(order.trigger, Trigger::NONE);
    }

    #[test]
    fn what_fix_defines_and_nobody_trades_passes_to_the_order_logic() {
        for (from, to) in [
            ("40=2", "40=P"),
            ("54=1", "54=5"),
            ("59=3", "59=6"),
            ("38=100", "38=1.5"),
            ("38=100", "38=-1"),
        ] {
            let frame = frame_of("D", &ORDER.replace(from, to));
            assert!(
                read(&mut Scratch::new(), &frame, NewOrderSingle::decode).is_ok(),
                "{to}"
            );
        }
    }

    #[test]
    fn what_is_wrong_with_an_order_is_told() {
        use RejectReason::{InvalidTagNumber, TagAppearsTwice, TagOutOfOrder, TagWithoutValue};
        let long = "11=".to_string() + &"x".repeat(MAX_VALUE_LENGTH + 1);
        for (from, to, violation) in [
            ("11=ORD1|", "", Violation::missing(11)),
            ("40=2|", "", Violation::missing(40)),
            ("54=1|", "", Violation::missing(54)),
            ("55=INTC|", "", Violation::missing(55)),
            ("60=20260301-00:00:00.123|", "", Violation::missing(60)),
            ("11=ORD1", "11=", Violation::new(TagWithoutValue, 11)),
            ("11=ORD1", &long, Violation::incorrect(11)),
            ("40=2", "40=Z", Violation::incorrect(40)),
            ("40=2", "40=22", Violation::incorrect(40)),
            ("54=1", "54=0", Violation::incorrect(54)),
            ("59=3", "59=x", Violation::incorrect(59)),
            ("38=100", "38=lots", Violation::format(38)),
            ("44=101.25", "44=1,2", Violation::format(44)),
            ("60=20260301-00:00:00.123", "60=20260301", Violation::format(60)),
            ("9001=72057594037927977", "9001=-1", Violation::format(9001)),
            ("54=1", "54=1|54=1", Violation::new(TagAppearsTwice, 54)),
            ("54=1", "54=1|34=5", Violation::new(TagOutOfOrder, 34)),
            ("54=1", "54=1|x=5", Violation::without_tag(InvalidTagNumber)),
        ] {
            let frame = frame_of("D", &ORDER.replace(from, to));
            assert_eq!(
                read(&mut Scratch::new(), &frame, NewOrderSingle::decode),
                Err(violation),
                "{from} -> {to}"
            );
        }
    }

    #[test]
    fn tags_without_a_use_here_are_ignored() {
        let with_more = String::from(ORDER) + "21=1|100=XNAS|5555=own|95=3|96=a\x01b|";
        assert_eq!(
            read(&mut Scratch::new(), &frame_of("D", &with_more), NewOrderSingle::decode),
            read(&mut Scratch::new(), &frame_of("D", ORDER), NewOrderSingle::decode)
        );
    }

    #[test]
    fn a_cancel_or_replace_needs_its_order() {
        let text = "11=ORD2|38=50|40=2|44=1|54=1|55=INTC|60=20260301-00:00:00|";
        let missing = Violation::missing(41);
        let (cancel, replace) = (frame_of("F", text), frame_of("G", text));
        assert_eq!(
            read(&mut Scratch::new(), &cancel, OrderCancelRequest::decode),
            Err(missing)
        );
        assert_eq!(
            read(&mut Scratch::new(), &replace, OrderCancelReplaceRequest::decode),
            Err(missing)
        );
        let text = String::from(text) + "41=ORD1|";
        let (cancel, replace) = (frame_of("F", &text), frame_of("G", &text));
        let mut scratch = Scratch::new();
        let orig = read(&mut scratch, &cancel, OrderCancelRequest::decode).map(|cancel| cancel.orig_cl_ord_id);
        assert_eq!(orig, Ok(&b"ORD1"[..]));
        let orig =
            read(&mut scratch, &replace, OrderCancelReplaceRequest::decode).map(|replace| replace.orig_cl_ord_id);
        assert_eq!(orig, Ok(&b"ORD1"[..]));
    }

    proptest! {
        #[test]
        fn requests_are_read_as_they_were_written(
            cl_ord_id in "[!-~]{1,64}", orig_cl_ord_id in "[!-~]{1,64}", account in "[!-~]{0,64}", symbol in "[!-~]{1,16}",
            quantity in 1..u64::MAX, price in (i64::MIN + 1)..i64::MAX, micros in 0..4_000_000_000_000_000_u64,
            trigger in any::<u64>(), side in prop_oneof![Just(b'1'), Just(b'2')],
        ) {
            let (cl_ord_id, orig_cl_ord_id) = (cl_ord_id.as_bytes(), orig_cl_ord_id.as_bytes());
            let (account, symbol) = (account.as_bytes(), symbol.as_bytes());
            let (price, trigger, transact_time) = (Price(price), Trigger(trigger), Timestamp(micros * 1_000));
            let (ord_type, time_in_force) = (b'2', b'3');
            let fields = OrderFields {
                stop_price: price,
                display: Some(quantity),
                min_quantity: quantity,
                expires: transact_time,
                peg_offset: price,
                post_only: side == b'1',
                located: side == b'2',
                peg: (side == b'2').then_some(types::OrderType::PegMid),
                ..OrderFields::NONE
            };
            let mut scratch = Scratch::new();
            let new = NewOrderSingle {
                account, cl_ord_id, quantity, ord_type, price, side, symbol, time_in_force, transact_time, trigger, fields,
            };
            let frame = encoded(&new, Version::Fix44);
            prop_assert_eq!(read(&mut scratch, &frame, NewOrderSingle::decode), Ok(new));
            let cancel = OrderCancelRequest { cl_ord_id, orig_cl_ord_id, quantity, side, symbol, transact_time };
            let frame = encoded(&cancel, Version::Fix44);
            prop_assert_eq!(read(&mut scratch, &frame, OrderCancelRequest::decode), Ok(cancel));
            let replace = OrderCancelReplaceRequest {
                account, cl_ord_id, orig_cl_ord_id, quantity, ord_type, price, side, symbol, time_in_force, transact_time, fields,
            };
            let frame = encoded(&replace, Version::Fix44);
            prop_assert_eq!(read(&mut scratch, &frame, OrderCancelReplaceRequest::decode), Ok(replace));
        }

        #[test]
        fn any_body_is_read_or_refused(fields in proptest::collection::vec((0_u32..70, "[\\x01-9]{0,9}"), 0..30)) {
            let text: String = fields.iter().map(|(tag, value)| alloc::format!("{tag}={value}|")).collect();
            let _ = read(&mut Scratch::new(), &frame_of("D", &text), NewOrderSingle::decode);
            let _ = read(&mut Scratch::new(), &frame_of("F", &text), OrderCancelRequest::decode);
            let _ = read(&mut Scratch::new(), &frame_of("G", &text), OrderCancelReplaceRequest::decode);
        }
    }
}
