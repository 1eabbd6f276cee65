//! What an order may ask for beyond price, quantity and time in force: the fields that NewOrderSingle and
//! OrderCancelReplaceRequest share.

use super::encoder::Encoder;
use super::field::Violation;
use super::message::Message;
use super::order::parse_price;
use super::slots::{SlotSet, bits_of};
use super::{tag, time, value};
use types::{OrderType, Price, Timestamp};

/// The fields, as they stand in the message. Whether they go together is the order logic's to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderFields {
    /// StopPx (99), 1e-9; [`Price::NULL`] when absent.
    pub stop_price: Price,
    /// Units shown at a time: DisplayQty (1138), MaxFloor (111) or MaxShow (210), whichever is there first.
    pub display: Option<u64>,
    /// MinQty (110), units; 0 when absent.
    pub min_quantity: u64,
    /// ExpireTime (126), or the end of ExpireDate (432) in UTC; [`Timestamp::NONE`] when absent.
    pub expires: Timestamp,
    /// PegOffsetValue (211), 1e-9; 0 when absent.
    pub peg_offset: Price,
    /// ExecInst (18) has 6: it must not trade at once.
    pub post_only: bool,
    /// LocateReqd (114) is N: what is sold short is located.
    pub located: bool,
    /// What a pegged order follows, by ExecInst (18: R, M) or PegPriceType (1094: 5, 2).
    pub peg: Option<OrderType>,
    /// An ExecInst (18), a PegPriceType (1094), a PegOffsetType (836) or another field that changes what an order means asks
    /// for what is not traded here.
    pub unsupported: bool,
    /// SelfMatchPreventionInstruction (2964), its one digit; 0 when absent, and `?` for anything else.
    pub self_match: u8,
}

impl OrderFields {
    /// None of them.
    pub const NONE: Self = Self {
        stop_price: Price::NULL,
        display: None,
        min_quantity: 0,
        expires: Timestamp::NONE,
        peg_offset: Price(0),
        post_only: false,
        located: false,
        peg: None,
        unsupported: false,
        self_match: 0,
    };

    /// Reads the fields.
    #[inline]
    pub(super) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        if !message.has_any(SLOTS) {
            return Ok(Self::NONE);
        }
        Self::decode_any(message)
    }

    #[inline(never)]
    fn decode_any(message: &Message<'_>) -> Result<Self, Violation> {
        let mut fields = Self {
            stop_price: parse_price(message, tag::STOP_PX)?,
            display: parse_display(message)?,
            min_quantity: parse_units(message, tag::MIN_QTY)?.unwrap_or(0),
            expires: parse_expiry(message)?,
            located: message.get(tag::LOCATE_REQD) == b"N",
            self_match: match message.get(tag::SELF_MATCH_PREVENTION_INSTRUCTION) {
                b"" => 0,
                &[digit @ b'0'..=b'9'] => digit,
                _ => b'?',
            },
            ..Self::NONE
        };
        let offset = parse_price(message, tag::PEG_OFFSET_VALUE)?;
        if !offset.is_null() {
            fields.peg_offset = offset;
        }
        for instruction in message.get(tag::EXEC_INST).split(|&byte| byte == b' ') {
            fields.instruct(instruction);
        }
        match message.get(tag::PEG_PRICE_TYPE) {
            b"" => {}
            b"2" => fields.peg = Some(OrderType::PegMid),
            b"5" => fields.peg = Some(OrderType::PegPrimary),
            _ => fields.unsupported = true,
        }
        fields.unsupported |= !matches!(message.get(tag::PEG_OFFSET_TYPE), b"" | b"0") || asks_for_more(message);
        Ok(fields)
    }

    /// One ExecInst (18).
    fn instruct(&mut self, instruction: &[u8]) {
        match instruction {
            b"6" => self.post_only = true,
            b"R" => self.peg = Some(OrderType::PegPrimary),
            b"M" => self.peg = Some(OrderType::PegMid),
            // Held, not held: to brokers, and nothing to a market.
            b"" | b"1" | b"5" => {}
            _ => self.unsupported = true,
        }
    }

    /// Writes the fields that say something.
    pub(super) fn encode(&self, encoder: &mut Encoder<'_>) {
        match (self.post_only, self.peg) {
            (true, _) => encoder.code(tag::EXEC_INST, b'6'),
            (false, Some(OrderType::PegMid)) => encoder.code(tag::EXEC_INST, b'M'),
            (false, Some(_)) => encoder.code(tag::EXEC_INST, b'R'),
            (false, None) => {}
        }
        encoder.price(tag::STOP_PX, self.stop_price);
        if self.min_quantity > 0 {
            encoder.number(tag::MIN_QTY, self.min_quantity);
        }
        if let Some(display) = self.display {
            encoder.number(tag::MAX_FLOOR, display);
        }
        if self.located {
            encoder.code(tag::LOCATE_REQD, b'N');
        }
        if self.expires != Timestamp::NONE {
            encoder.time(tag::EXPIRE_TIME, self.expires);
        }
        if self.peg_offset.0 != 0 {
            encoder.price(tag::PEG_OFFSET_VALUE, self.peg_offset);
        }
    }
}

/// Whether a field changes what price, quantity or time of an order mean: an order must not go out as another than it was
/// meant.
fn asks_for_more(message: &Message<'_>) -> bool {
    let is_for_later = |text| time::parse_timestamp(text).is_none_or(|time| time > message.sending_time());
    let is_absent = |tag| message.get(tag).is_empty();
    let effective = message.get(tag::EFFECTIVE_TIME);
    // Per unit, and units.
    !matches!(message.get(tag::PRICE_TYPE), b"" | b"2")
        || !matches!(message.get(tag::QTY_TYPE), b"" | b"0")
        || !is_absent(tag::CASH_ORDER_QTY)
        || !is_absent(tag::DISCRETION_INST)
        || !is_absent(tag::DISCRETION_OFFSET_VALUE)
        || (!effective.is_empty() && is_for_later(effective))
        || (!is_absent(tag::EXPIRE_TIME) && !is_absent(tag::EXPIRE_DATE))
}

/// Those of all these fields.
const SLOTS: SlotSet = bits_of(&[
    tag::EXEC_INST,
    tag::STOP_PX,
    tag::MIN_QTY,
    tag::MAX_FLOOR,
    tag::LOCATE_REQD,
    tag::EXPIRE_TIME,
    tag::MAX_SHOW,
    tag::PEG_OFFSET_VALUE,
    tag::EXPIRE_DATE,
    tag::PEG_OFFSET_TYPE,
    tag::PEG_PRICE_TYPE,
    tag::DISPLAY_QTY,
    tag::SELF_MATCH_PREVENTION_INSTRUCTION,
    tag::CASH_ORDER_QTY,
    tag::EFFECTIVE_TIME,
    tag::DISCRETION_INST,
    tag::DISCRETION_OFFSET_VALUE,
    tag::PRICE_TYPE,
    tag::QTY_TYPE,
]);

fn parse_display(message: &Message<'_>) -> Result<Option<u64>, Violation> {
    for tag in [tag::DISPLAY_QTY, tag::MAX_FLOOR, tag::MAX_SHOW] {
        if let Some(units) = parse_units(message, tag)? {
            return Ok(Some(units));
        }
    }
    Ok(None)
}

/// `None` when absent; a number that is no number of units is more than any order has.
fn parse_units(message: &Message<'_>, tag: u32) -> Result<Option<u64>, Violation> {
    let text = message.get(tag);
    if text.is_empty() {
        return Ok(None);
    }
    match value::parse_quantity(text) {
        Some(units) => Ok(Some(units)),
        None if Price::parse(text).is_some() => Ok(Some(u64::MAX)),
        None => Err(Violation::format(tag)),
    }
}

fn parse_expiry(message: &Message<'_>) -> Result<Timestamp, Violation> {
    let (instant, date) = (message.get(tag::EXPIRE_TIME), message.get(tag::EXPIRE_DATE));
    if !instant.is_empty() {
        return time::parse_timestamp(instant).ok_or(Violation::format(tag::EXPIRE_TIME));
    }
    if date.is_empty() {
        return Ok(Timestamp::NONE);
    }
    // Good through the day: to where the next one begins. Second 60 is that.
    let mut end = *b"YYYYMMDD-23:59:60";
    let violation = Violation::format(tag::EXPIRE_DATE);
    let digits: &[u8; 8] = date.try_into().map_err(|_| violation)?;
    end[..8].copy_from_slice(digits);
    time::parse_timestamp(&end).ok_or(violation)
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::super::samples::{frame_of, read};
    use super::*;

    fn fields(text: &str) -> Result<OrderFields, Violation> {
        read(&mut Scratch::new(), &frame_of("D", text), OrderFields::decode)
    }

    #[test]
    fn each_field_is_read() {
        const NONE: OrderFields = OrderFields::NONE;
        let peg = |peg| OrderFields { peg: Some(peg), ..NONE };
        let day = Timestamp(1_772_323_200_000_000_000);
        for (text, wanted) in [
            ("21=1|", NONE),
            (
                "99=10.5|",
                OrderFields {
                    stop_price: Price(10_500_000_000),
                    ..NONE
                },
            ),
            (
                "111=100|",
                OrderFields {
                    display: Some(100),
                    ..NONE
                },
            ),
            (
                "210=0|",
                OrderFields {
                    display: Some(0),
                    ..NONE
                },
            ),
            (
                "1138=5|111=7|",
                OrderFields {
                    display: Some(5),
                    ..NONE
                },
            ),
            (
                "111=1.5|",
                OrderFields {
                    display: Some(u64::MAX),
                    ..NONE
                },
            ),
            (
                "110=3|",
                OrderFields {
                    min_quantity: 3,
                    ..NONE
                },
            ),
            ("126=20260301-00:00:00|", OrderFields { expires: day, ..NONE }),
            ("432=20260228|", OrderFields { expires: day, ..NONE }),
            (
                "211=-0.01|",
                OrderFields {
                    peg_offset: Price(-10_000_000),
                    ..NONE
                },
            ),
            (
                "18=6|",
                OrderFields {
                    post_only: true,
                    ..NONE
                },
            ),
            (
                "18=1 6|",
                OrderFields {
                    post_only: true,
                    ..NONE
                },
            ),
            ("114=N|", OrderFields { located: true, ..NONE }),
            ("114=Y|", NONE),
            ("18=R|", peg(OrderType::PegPrimary)),
            ("18=M|836=0|", peg(OrderType::PegMid)),
            ("1094=5|", peg(OrderType::PegPrimary)),
            ("1094=2|", peg(OrderType::PegMid)),
            (
                "1094=4|",
                OrderFields {
                    unsupported: true,
                    ..NONE
                },
            ),
            (
                "836=1|",
                OrderFields {
                    unsupported: true,
                    ..NONE
                },
            ),
            (
                "18=G|",
                OrderFields {
                    unsupported: true,
                    ..NONE
                },
            ),
            (
                "2964=3|",
                OrderFields {
                    self_match: b'3',
                    ..NONE
                },
            ),
            (
                "2964=13|",
                OrderFields {
                    self_match: b'?',
                    ..NONE
                },
            ),
        ] {
            assert_eq!(fields(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_none_of_these_values_is_refused() {
        for (text, tag) in [
            ("99=x|", 99),
            ("111=x|", 111),
            ("110=x|", 110),
            ("126=20260301|", 126),
            ("432=20260230|", 432),
            ("432=202602|", 432),
            ("211=x|", 211),
        ] {
            assert_eq!(fields(text), Err(Violation::format(tag)), "{text}");
        }
    }
}
