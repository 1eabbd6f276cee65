//! NewOrderLong and ReplaceOrderLong, 96 bytes: orders with terms that the plain 48 bytes have no room for.
//!
//! What the plain messages have is at the same place, but for the quantity, which is wider here:
//!
//! | offset | field | |
//! |---|---|---|
//! | 12 | instructions u32 | |
//! | 39 | flags u8 | new |
//! | 48 | quantity u64 | |
//! | 56 | stop price i64 | |
//! | 64 | display u64 | |
//! | 72 | minimum quantity u64 | |
//! | 80 | expiry u64 | |
//! | 88 | peg offset i64 | |

use types::{
    AccountId, ClientOrderId, InstrumentId, NewOrder, OrderTerms, OrderType, Price, Quantity, ReplaceOrder, SessionId,
    ShortSale, TimeInForce, Timestamp, Trigger,
};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::request::{client_order_id, side};
use super::{DecodeError, MAX_QUANTITY, Template};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NewOrderLongLayout {
    header: U64,
    /// 0: none.
    instrument: U32,
    /// Bit 0: post-only. Bit 1: short sale. Bit 2, with bit 1: exempt. Bit 3: located. The others are 0.
    instructions: U32,
    /// 1e-9; [`Price::NULL`]: none.
    price: I64,
    /// 0: none.
    client_order_id: U64,
    /// 0: none.
    account: U32,
    /// 0: none.
    session: U16,
    /// [`Side`](types::Side).
    side: u8,
    /// Bits 0–3 [`TimeInForce`], bits 4–7 [`OrderType`].
    flags: u8,
    /// [`Trigger`]; 0: none.
    trigger: U64,
    /// Lots, 1 to [`MAX_QUANTITY`].
    quantity: U64,
    terms: TermsLayout,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ReplaceOrderLongLayout {
    header: U64,
    instrument: U32,
    /// As in a new order.
    instructions: U32,
    /// The new limit, 1e-9; [`Price::NULL`]: none.
    price: I64,
    client_order_id: U64,
    reserved1: U32,
    session: U16,
    side: u8,
    reserved2: u8,
    /// 0: none.
    orig_client_order_id: U64,
    /// The new total, lots, 1 to [`MAX_QUANTITY`].
    quantity: U64,
    terms: TermsLayout,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TermsLayout {
    /// 1e-9; [`Price::NULL`]: none.
    stop_price: I64,
    /// Lots; 0: all.
    display: U64,
    /// Lots; 0: any.
    min_quantity: U64,
    /// UTC nanoseconds since 1970; 0: none.
    expires: U64,
    /// 1e-9.
    peg_offset: I64,
}

const _: () = assert!(size_of::<NewOrderLongLayout>() == 96);
const _: () = assert!(size_of::<ReplaceOrderLongLayout>() == 96);
const _: () = assert!(size_of::<TermsLayout>() == 40);

pub(super) const NEW_ORDER_LONG: u64 = Template::NewOrderLong.header();
pub(super) const REPLACE_ORDER_LONG: u64 = Template::ReplaceOrderLong.header();

/// The bits of the instructions.
const POST_ONLY: u32 = 1;
const SHORT_SALE: u32 = 1 << 1;
const SHORT_EXEMPT: u32 = 1 << 2;
const LOCATED: u32 = 1 << 3;

impl NewOrderLongLayout {
    pub(super) fn parse(&self) -> Result<NewOrder, DecodeError> {
        let order_type = OrderType::from_u8(self.flags >> 4).ok_or(DecodeError::UnsupportedOrderType)?;
        let price = Price(self.price.get());
        let may_be_null = !matches!(order_type, OrderType::Limit | OrderType::StopLimit);
        let may_be_given = !matches!(order_type, OrderType::Market | OrderType::Stop);
        if !(if price.is_null() { may_be_null } else { may_be_given }) {
            return Err(DecodeError::InvalidPrice);
        }
        Ok(NewOrder {
            client_order_id: client_order_id(self.client_order_id)?,
            instrument: InstrumentId(self.instrument.get()),
            account: AccountId(self.account.get()),
            session: SessionId(self.session.get()),
            side: side(self.side)?,
            order_type,
            time_in_force: TimeInForce::from_u8(self.flags & 0x0f).ok_or(DecodeError::UnsupportedTimeInForce)?,
            price,
            quantity: quantity(self.quantity)?,
            trigger: Trigger(self.trigger.get()),
            terms: self.terms.parse(self.instructions)?,
        })
    }

    pub(super) fn of(order: &NewOrder) -> Self {
        Self {
            header: U64::new(NEW_ORDER_LONG),
            instrument: U32::new(order.instrument.0),
            instructions: instructions(&order.terms),
            price: I64::new(order.price.0),
            client_order_id: U64::new(order.client_order_id.0),
            account: U32::new(order.account.0),
            session: U16::new(order.session.0),
            side: order.side as u8,
            flags: order.time_in_force as u8 | (order.order_type as u8) << 4,
            trigger: U64::new(order.trigger.0),
            quantity: wire_lots(order.quantity),
            terms: TermsLayout::of(&order.terms),
        }
    }
}

impl ReplaceOrderLongLayout {
    pub(super) fn parse(&self) -> Result<ReplaceOrder, DecodeError> {
        Ok(ReplaceOrder {
            client_order_id: client_order_id(self.client_order_id)?,
            orig_client_order_id: ClientOrderId(self.orig_client_order_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            session: SessionId(self.session.get()),
            side: side(self.side)?,
            price: Price(self.price.get()),
            quantity: quantity(self.quantity)?,
            terms: self.terms.parse(self.instructions)?,
        })
    }

    pub(super) fn of(replace: &ReplaceOrder) -> Self {
        Self {
            header: U64::new(REPLACE_ORDER_LONG),
            instrument: U32::new(replace.instrument.0),
            instructions: instructions(&replace.terms),
            price: I64::new(replace.price.0),
            client_order_id: U64::new(replace.client_order_id.0),
            reserved1: U32::ZERO,
            session: U16::new(replace.session.0),
            side: replace.side as u8,
            reserved2: 0,
            orig_client_order_id: U64::new(replace.orig_client_order_id.0),
            quantity: wire_lots(replace.quantity),
            terms: TermsLayout::of(&replace.terms),
        }
    }
}

impl TermsLayout {
    fn parse(&self, instructions: U32) -> Result<OrderTerms, DecodeError> {
        let instructions = instructions.get();
        let short_sale = match instructions & (SHORT_SALE | SHORT_EXEMPT) {
            0 => ShortSale::No,
            SHORT_SALE => ShortSale::Short,
            SHORT_EXEMPT => return Err(DecodeError::UnsupportedInstruction),
            _ => ShortSale::Exempt,
        };
        if instructions & !(POST_ONLY | SHORT_SALE | SHORT_EXEMPT | LOCATED) != 0 {
            return Err(DecodeError::UnsupportedInstruction);
        }
        Ok(OrderTerms {
            stop_price: Price(self.stop_price.get()),
            display: Quantity(self.display.get()),
            min_quantity: Quantity(self.min_quantity.get()),
            peg_offset: Price(self.peg_offset.get()),
            expires: Timestamp(self.expires.get()),
            post_only: instructions & POST_ONLY != 0,
            short_sale,
            located: instructions & LOCATED != 0,
        })
    }

    fn of(terms: &OrderTerms) -> Self {
        Self {
            stop_price: I64::new(terms.stop_price.0),
            display: U64::new(terms.display.0),
            min_quantity: U64::new(terms.min_quantity.0),
            expires: U64::new(terms.expires.0),
            peg_offset: I64::new(terms.peg_offset.0),
        }
    }
}

fn instructions(terms: &OrderTerms) -> U32 {
    let short_sale = match terms.short_sale {
        ShortSale::No => 0,
        ShortSale::Short => SHORT_SALE,
        ShortSale::Exempt => SHORT_SALE | SHORT_EXEMPT,
    };
    U32::new(if terms.post_only { POST_ONLY } else { 0 } | short_sale | if terms.located { LOCATED } else { 0 })
}

/// Lots on the wire. There is room for more than [`MAX_QUANTITY`]; the reports have none.
fn wire_lots(quantity: Quantity) -> U64 {
    assert!(quantity <= MAX_QUANTITY, "quantity does not fit the message");
    U64::new(quantity.0)
}

fn quantity(wire: U64) -> Result<Quantity, DecodeError> {
    let quantity = Quantity(wire.get());
    if quantity.is_zero() || quantity > MAX_QUANTITY {
        return Err(DecodeError::InvalidQuantity);
    }
    Ok(quantity)
}
