//! A client's messages about orders in the gateway's words: ClOrdIDs become numbers, symbols instruments, units lots.

use super::super::Incoming;
use super::super::cl_ord_ids::{Kind, Refused};
use super::FixSession;
use crate::instruments::Instruments;
use orders::SelfMatch;
use proto::fix::{
    self, Message, NewOrderSingle, OF_ALL, OF_SECURITY, OrderCancelReplaceRequest, OrderCancelRequest, OrderFields,
    OrderMassCancelRequest, OrderMassStatusRequest, OrderStatusRequest, tag,
};
use types::{
    AccountId, CancelOrder, ClientOrderId, Instrument, InstrumentId, MassCancel, MassStatusRequest, NewOrder, OrderId,
    OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request, ShortSale, Side, TimeInForce, Trigger,
};

/// The parts of an order that have codes, as far as the gateway trades them.
type Codes = (Side, OrderType, TimeInForce);

impl FixSession {
    pub(super) fn new_order(&mut self, order: &NewOrderSingle<'_>, instruments: &Instruments) -> Incoming {
        let instrument = instruments.find(order.symbol);
        let codes = codes(order);
        let number = self.cl_ord_ids.insert(
            order.cl_ord_id,
            Kind::Order,
            codes.map_or(0, |codes| kept(codes, order.side)),
        );
        let quantity = lots(order.quantity, instrument);
        let terms = self.terms(order.side, &order.fields, instrument);
        let (side, order_type, time_in_force) = codes.unwrap_or((Side::Buy, OrderType::Limit, TimeInForce::Day));
        let new = NewOrder {
            client_order_id: number.unwrap_or_default(),
            instrument: instrument.map_or(InstrumentId(0), |instrument| instrument.id),
            account: self.account_of(order.account),
            session: self.id,
            side,
            order_type,
            time_in_force,
            price: order.price,
            quantity: quantity.unwrap_or_default(),
            trigger: order.trigger,
            terms: terms.unwrap_or_default(),
        };
        let texts = [order.cl_ord_id, b"", order.symbol];
        self.at_hand.set(new.client_order_id, Kind::Order, order.side, texts);
        self.at_hand.codes = [order.ord_type, order.time_in_force];
        if number == Err(Refused::Length) {
            self.at_hand.why = CL_ORD_ID_TOO_LONG;
        }
        let refusal = match (number, quantity, codes, terms) {
            (Err(refused), ..) => Some(reason(refused)),
            (_, None, ..) => Some(Reason::InvalidQuantity),
            (_, _, None, _) => Some(Reason::UnsupportedOrder),
            (_, _, _, Err(reason)) => Some(reason),
            _ => None,
        };
        answer(Request::New(new), refusal)
    }

    /// A new order with a value that is too long to be repeated: it is refused, with the others as they are.
    pub(super) fn order_with_too_long(
        &mut self,
        tag: u32,
        message: &Message<'_>,
        instruments: &Instruments,
    ) -> Incoming {
        let code = |tag, absent| match *message.get(tag) {
            [code] => code,
            _ => absent,
        };
        let order = NewOrderSingle {
            account: message.get(tag::ACCOUNT),
            cl_ord_id: message.get(tag::CL_ORD_ID),
            quantity: fix::parse_quantity(message.get(tag::ORDER_QTY)).unwrap_or(0),
            ord_type: code(tag::ORD_TYPE, 0),
            price: Price::parse(message.get(tag::PRICE)).unwrap_or(Price::NULL),
            side: code(tag::SIDE, b'1'),
            symbol: message.get(tag::SYMBOL),
            time_in_force: code(tag::TIME_IN_FORCE, 0),
            transact_time: message.transact_time(),
            trigger: Trigger::NONE,
            fields: OrderFields::NONE,
        };
        let (Incoming::Request(mut request) | Incoming::Refused(mut request, _)) = self.new_order(&order, instruments)
        else {
            return Incoming::Nothing;
        };
        let (reason, why) = match tag {
            tag::SYMBOL => (Reason::UnknownInstrument, &b"Symbol is longer than 64 bytes"[..]),
            tag::ACCOUNT => (Reason::UnknownAccount, &b"Account is longer than 64 bytes"[..]),
            _ => (Reason::ClientOrderIdTooLong, CL_ORD_ID_TOO_LONG),
        };
        if let (Request::New(new), tag::ACCOUNT) = (&mut request, tag) {
            new.account = AccountId(0);
        }
        self.at_hand.why = why;
        Incoming::Refused(request, reason)
    }

    pub(super) fn cancel(&mut self, cancel: &OrderCancelRequest<'_>, instruments: &Instruments) -> Incoming {
        let number = self.cl_ord_ids.insert(cancel.cl_ord_id, Kind::Cancel, 0);
        let request = Request::Cancel(CancelOrder {
            client_order_id: number.unwrap_or_default(),
            orig_client_order_id: self.cl_ord_ids.find_valid(cancel.orig_cl_ord_id).unwrap_or_default(),
            instrument: instruments
                .find(cancel.symbol)
                .map_or(InstrumentId(0), |instrument| instrument.id),
            session: self.id,
            side: fix::side_from_code(cancel.side).unwrap_or(Side::Buy),
        });
        let texts = [cancel.cl_ord_id, cancel.orig_cl_ord_id, cancel.symbol];
        self.at_hand
            .set(number.unwrap_or_default(), Kind::Cancel, cancel.side, texts);
        answer(request, number.err().map(reason))
    }

    pub(super) fn replace(&mut self, replace: &OrderCancelReplaceRequest<'_>, instruments: &Instruments) -> Incoming {
        let orig = self.cl_ord_ids.find_valid(replace.orig_cl_ord_id);
        let was = orig.map_or(0, |orig| self.cl_ord_ids.note(orig));
        let number = self.cl_ord_ids.insert(replace.cl_ord_id, Kind::Replace, was);
        let instrument = instruments.find(replace.symbol);
        let quantity = lots(replace.quantity, instrument);
        let terms = self.terms(replace.side, &replace.fields, instrument);
        let request = Request::Replace(ReplaceOrder {
            client_order_id: number.unwrap_or_default(),
            orig_client_order_id: orig.unwrap_or_default(),
            instrument: instrument.map_or(InstrumentId(0), |instrument| instrument.id),
            session: self.id,
            side: fix::side_from_code(replace.side).unwrap_or(Side::Buy),
            price: replace.price,
            quantity: quantity.unwrap_or_default(),
            terms: terms.unwrap_or_default(),
        });
        let texts = [replace.cl_ord_id, replace.orig_cl_ord_id, replace.symbol];
        self.at_hand
            .set(number.unwrap_or_default(), Kind::Replace, replace.side, texts);
        let refusal = match (number, quantity, terms) {
            (Err(refused), ..) => Some(reason(refused)),
            (_, None, _) => Some(Reason::InvalidQuantity),
            (_, _, Err(reason)) => Some(reason),
            // What names no order is for the order logic to refuse.
            _ if was != 0 && !stays(replace, was) => Some(Reason::UnsupportedOrder),
            _ => None,
        };
        answer(request, refusal)
    }

    pub(super) fn status(&mut self, status: &OrderStatusRequest<'_>, instruments: &Instruments) -> Incoming {
        let number = self.cl_ord_ids.find(status.cl_ord_id).unwrap_or_default();
        let order_id = fix::parse_u64(status.order_id).unwrap_or_default();
        let request = Request::Status(types::OrderStatusRequest {
            client_order_id: number,
            // An id that is not known is not looked for by the other one.
            order_id: OrderId(if status.cl_ord_id.is_empty() { order_id } else { 0 }),
            instrument: instruments
                .find(status.symbol)
                .map_or(InstrumentId(0), |instrument| instrument.id),
            session: self.id,
            side: fix::side_from_code(status.side).unwrap_or(Side::Buy),
            request: self.requests.keep(status.request_id),
        });
        let texts = [status.cl_ord_id, b"", status.symbol];
        self.at_hand.set(number, Kind::Order, status.side, texts);
        // One that was never seen is answered here, in its own words: nobody else has them.
        let is_unknown = number == ClientOrderId(0) && !status.cl_ord_id.is_empty();
        answer(request, is_unknown.then_some(Reason::UnknownOrder))
    }

    pub(super) fn mass_status(&mut self, mass: &OrderMassStatusRequest<'_>, instruments: &Instruments) -> Incoming {
        let instrument = instruments.find(mass.symbol).map(|instrument| instrument.id);
        let refusal = match (mass.which, instrument) {
            ([OF_ALL], _) | ([OF_SECURITY], Some(_)) => None,
            ([OF_SECURITY], None) => Some(Reason::UnknownInstrument),
            _ => Some(Reason::UnsupportedOrder),
        };
        let request = Request::MassStatus(MassStatusRequest {
            session: self.id,
            instrument: instrument.filter(|_| mass.which == [OF_SECURITY]),
            request: self.requests.keep(mass.request_id),
        });
        self.at_hand
            .set(ClientOrderId(0), Kind::Order, b'1', [b"", b"", mass.symbol]);
        if refusal == Some(Reason::UnsupportedOrder) {
            self.at_hand.why = b"only all orders (585=7) or those of a security (585=1) are told";
        }
        answer(request, refusal)
    }

    pub(super) fn mass_cancel(&mut self, mass: &OrderMassCancelRequest<'_>, instruments: &Instruments) -> Incoming {
        let number = self.cl_ord_ids.insert(mass.cl_ord_id, Kind::MassCancel, mass.which);
        let instrument = instruments.find(mass.symbol).map(|instrument| instrument.id);
        let refusal = match (number, mass.which, instrument) {
            (Err(refused), ..) => Some(reason(refused)),
            _ if mass.one_side => Some(Reason::UnsupportedOrder),
            (_, OF_ALL, _) | (_, OF_SECURITY, Some(_)) => None,
            (_, OF_SECURITY, None) => Some(Reason::UnknownInstrument),
            _ => Some(Reason::UnsupportedOrder),
        };
        let request = Request::MassCancel(MassCancel {
            client_order_id: number.unwrap_or_default(),
            session: self.id,
            instrument: instrument.filter(|_| mass.which == OF_SECURITY),
        });
        let texts = [mass.cl_ord_id, b"", mass.symbol];
        self.at_hand
            .set(number.unwrap_or_default(), Kind::MassCancel, mass.which, texts);
        if refusal == Some(Reason::UnsupportedOrder) {
            self.at_hand.why = b"only all orders (530=7) or those of a security (530=1) are cancelled, of both sides";
        }
        answer(request, refusal)
    }

    /// The terms in the gateway's words.
    fn terms(&self, side: u8, fields: &OrderFields, instrument: Option<&Instrument>) -> Result<OrderTerms, Reason> {
        let short_sale = fix::short_sale_from_code(side);
        if *fields == OrderFields::NONE {
            return Ok(OrderTerms {
                short_sale,
                ..OrderTerms::NONE
            });
        }
        if fields.self_match != 0 && fields.self_match != self_match_code(self.self_match) {
            return Err(Reason::UnsupportedSelfMatch);
        }
        let display = match fields.display {
            None => Quantity::ZERO,
            Some(units) => lots(units, instrument).ok_or(Reason::InvalidDisplay)?,
        };
        let min_quantity = match fields.min_quantity {
            0 => Quantity::ZERO,
            units => lots(units, instrument).ok_or(Reason::InvalidMinQuantity)?,
        };
        Ok(OrderTerms {
            stop_price: fields.stop_price,
            display,
            min_quantity,
            peg_offset: Price(fields.peg_offset.0),
            expires: fields.expires,
            post_only: fields.post_only,
            short_sale,
            // Of what is not sold short it says nothing.
            located: fields.located && short_sale != ShortSale::No,
        })
    }

    /// The account of an order: Account (1) as a number, or the session's only one. 0 is no account and gets refused.
    fn account_of(&self, text: &[u8]) -> AccountId {
        if text.is_empty() {
            return self.account;
        }
        let number = fix::parse_u64(text).and_then(|number| u32::try_from(number).ok());
        AccountId(number.unwrap_or_default())
    }
}

/// SelfMatchPreventionInstruction (2964); 0 where it has no number.
const fn self_match_code(self_match: SelfMatch) -> u8 {
    match self_match {
        SelfMatch::CancelNewest => b'1',
        SelfMatch::CancelOldest => b'2',
        SelfMatch::CancelBoth => b'3',
        SelfMatch::Decrement => 0,
    }
}

const fn answer(request: Request, refusal: Option<Reason>) -> Incoming {
    match refusal {
        None => Incoming::Request(request),
        Some(reason) => Incoming::Refused(request, reason),
    }
}

/// `None` when the gateway does not trade one of them, or an instruction of the order.
fn codes(order: &NewOrderSingle<'_>) -> Option<Codes> {
    let side = fix::side_from_code(order.side)?;
    let order_type = order_type(order.ord_type, &order.fields)?;
    let time_in_force = fix::tif_from_code(order.time_in_force)?;
    let peg_is_wanted = order.fields.peg.is_none() || order_type.is_pegged();
    (peg_is_wanted && !order.fields.unsupported).then_some((side, order_type, time_in_force))
}

/// A pegged order must say what it follows.
fn order_type(code: u8, fields: &OrderFields) -> Option<OrderType> {
    match fix::ord_type_from_code(code)? {
        OrderType::PegPrimary => fields.peg,
        order_type => Some(order_type),
    }
}

/// What is kept with a ClOrdID, so that a replace can be seen to leave type and time in force as they are, and reports say
/// that an order is a short sale.
const fn kept((_, order_type, time_in_force): Codes, side: u8) -> u8 {
    let short = match fix::short_sale_from_code(side) {
        ShortSale::No => 0,
        ShortSale::Short => SHORT,
        ShortSale::Exempt => SHORT_EXEMPT,
    };
    (order_type as u8) << 4 | time_in_force as u8 | short
}

/// Bits of what is kept that neither type nor time in force needs.
const SHORT: u8 = 1 << 3;
const SHORT_EXEMPT: u8 = 1 << 7;

const fn kept_type(kept: u8) -> u8 {
    kept >> 4 & 0x07
}

const fn kept_time_in_force(kept: u8) -> u8 {
    kept & 0x07
}

/// Side (54) of an order of which this was kept.
pub(super) const fn side_of(kept: u8, side: Side) -> u8 {
    match side {
        Side::Sell if kept & SHORT != 0 => fix::short_sale_code(ShortSale::Short),
        Side::Sell if kept & SHORT_EXEMPT != 0 => fix::short_sale_code(ShortSale::Exempt),
        side => fix::side_code(side),
    }
}

/// OrdType (40) and TimeInForce (59) of what was kept; 0 where nothing was.
pub(super) fn codes_of(kept: u8) -> [u8; 2] {
    let (order_type, time_in_force) = (kept_type(kept), kept_time_in_force(kept));
    match (OrderType::from_u8(order_type), TimeInForce::from_u8(time_in_force)) {
        (Some(order_type), Some(time_in_force)) if kept != 0 => {
            [fix::ord_type_code(order_type), fix::tif_code(time_in_force)]
        }
        _ => [0; 2],
    }
}

/// Text (58) for an id that is longer than is kept.
const CL_ORD_ID_TOO_LONG: &[u8] = b"ClOrdID is longer than 38 bytes";

/// Whether a replace leaves type and time in force as they were. What it does not say stays.
fn stays(replace: &OrderCancelReplaceRequest<'_>, was: u8) -> bool {
    let order_type = match fix::ord_type_from_code(replace.ord_type) {
        Some(OrderType::PegPrimary) if replace.fields.peg.is_none() && kept_type(was) == OrderType::PegMid as u8 => {
            Some(OrderType::PegMid)
        }
        Some(OrderType::PegPrimary) => Some(replace.fields.peg.unwrap_or(OrderType::PegPrimary)),
        order_type => order_type,
    };
    let time_in_force = match replace.time_in_force {
        0 => TimeInForce::from_u8(kept_time_in_force(was)),
        code => fix::tif_from_code(code),
    };
    let same_type = order_type.is_some_and(|order_type| order_type as u8 == kept_type(was));
    let same_time = time_in_force.is_some_and(|time_in_force| time_in_force as u8 == kept_time_in_force(was));
    same_type && same_time && !replace.fields.unsupported
}

/// Units in lots; `None` when they are no whole lots. Units of an instrument that nobody knows stay as they are.
fn lots(units: u64, instrument: Option<&Instrument>) -> Option<Quantity> {
    let lot_size = u64::from(instrument.map_or(1, |instrument| instrument.lot_size));
    (units > 0 && units.is_multiple_of(lot_size)).then(|| Quantity(units / lot_size))
}

const fn reason(refused: Refused) -> Reason {
    match refused {
        Refused::Duplicate => Reason::DuplicateClientOrderId,
        Refused::Full => Reason::OrderTableFull,
        Refused::Length => Reason::ClientOrderIdTooLong,
    }
}
