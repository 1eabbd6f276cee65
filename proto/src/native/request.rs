//! NewOrder, CancelOrder, ReplaceOrder, MassCancel: 48 bytes each, and what they share is at the same place in each. Orders
//! that ask for more than price, quantity and time in force are in `long.rs`.
//!
//! | offset | field | |
//! |---|---|---|
//! | 8 | instrument u32 | all |
//! | 12 | quantity u32 | new, replace |
//! | 16 | price i64 | new, replace |
//! | 24 | client order id u64 | all |
//! | 32 | account u32 | new |
//! | 36 | session u16 | all |
//! | 38 | side u8 | all but mass cancel |
//! | 39 | flags u8 | new |
//! | 40 | trigger u64 (new), original client order id u64 (cancel, replace) | |
//!
//! So a pre-filter finds instrument, number and session without knowing what the request is, and a Reject can name the
//! number of a request that could not be decoded.

use types::{
    AccountId, CancelOrder, ClientOrderId, InstrumentId, MassCancel, NewOrder, OrderTerms, OrderType, Price, Quantity,
    ReplaceOrder, Request, SessionId, Side, TimeInForce, Trigger,
};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{diagnose, header_of};
use super::long::{NEW_ORDER_LONG, NewOrderLongLayout, REPLACE_ORDER_LONG, ReplaceOrderLongLayout};
use super::status::{MASS_STATUS_REQUEST, MassStatusRequestLayout, ORDER_STATUS_REQUEST, OrderStatusRequestLayout};
use super::{DecodeError, MAX_QUANTITY, Template, emit, view, wire_lots};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NewOrderLayout {
    header: U64,
    /// 0: none.
    instrument: U32,
    /// Lots, 1 to [`MAX_QUANTITY`].
    quantity: U32,
    /// 1e-9; [`Price::NULL`] for a market order.
    price: I64,
    /// 0: none.
    client_order_id: U64,
    /// 0: none.
    account: U32,
    /// 0: none.
    session: U16,
    /// [`Side`].
    side: u8,
    /// Bits 0–3 [`TimeInForce`], bits 4–7 [`OrderType`].
    flags: u8,
    /// [`Trigger`]; 0: none.
    trigger: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct CancelOrderLayout {
    header: U64,
    instrument: U32,
    reserved1: U32,
    reserved2: U64,
    client_order_id: U64,
    reserved3: U32,
    session: U16,
    side: u8,
    reserved4: u8,
    /// 0: none.
    orig_client_order_id: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ReplaceOrderLayout {
    header: U64,
    instrument: U32,
    /// The new total, lots, 1 to [`MAX_QUANTITY`].
    quantity: U32,
    /// The new limit, 1e-9, never null.
    price: I64,
    client_order_id: U64,
    reserved1: U32,
    session: U16,
    side: u8,
    reserved2: u8,
    /// 0: none.
    orig_client_order_id: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MassCancelLayout {
    header: U64,
    /// 0: all.
    instrument: U32,
    reserved1: U32,
    reserved2: U64,
    client_order_id: U64,
    reserved3: U32,
    session: U16,
    reserved4: U16,
    reserved5: U64,
}

const _: () = assert!(size_of::<NewOrderLayout>() == 48);
const _: () = assert!(size_of::<CancelOrderLayout>() == 48);
const _: () = assert!(size_of::<ReplaceOrderLayout>() == 48);
const _: () = assert!(size_of::<MassCancelLayout>() == 48);

const NEW_ORDER: u64 = Template::NewOrder.header();
const CANCEL_ORDER: u64 = Template::CancelOrder.header();
const REPLACE_ORDER: u64 = Template::ReplaceOrder.header();
const MASS_CANCEL: u64 = Template::MassCancel.header();

/// Decodes what a client may ask for. `bytes` is the message and nothing else.
///
/// # Errors
/// The bytes are no request, or a field has a value that it may not have.
pub fn decode_request(bytes: &[u8]) -> Result<Request, DecodeError> {
    match header_of(bytes) {
        NEW_ORDER => view::<NewOrderLayout>(bytes)?.parse().map(Request::New),
        CANCEL_ORDER => view::<CancelOrderLayout>(bytes)?.parse().map(Request::Cancel),
        REPLACE_ORDER => view::<ReplaceOrderLayout>(bytes)?.parse().map(Request::Replace),
        MASS_CANCEL => view::<MassCancelLayout>(bytes)?.parse().map(Request::MassCancel),
        _ => decode_rare(bytes),
    }
}

/// Out of the way of the plain messages.
#[inline(never)]
fn decode_rare(bytes: &[u8]) -> Result<Request, DecodeError> {
    match header_of(bytes) {
        NEW_ORDER_LONG => view::<NewOrderLongLayout>(bytes)?.parse().map(Request::New),
        REPLACE_ORDER_LONG => view::<ReplaceOrderLongLayout>(bytes)?.parse().map(Request::Replace),
        ORDER_STATUS_REQUEST => view::<OrderStatusRequestLayout>(bytes)?.parse().map(Request::Status),
        MASS_STATUS_REQUEST => Ok(Request::MassStatus(view::<MassStatusRequestLayout>(bytes)?.parse())),
        _ => Err(diagnose(bytes)),
    }
}

/// Encodes a request in the shortest message that carries it; returns its length.
///
/// # Panics
/// When `out` is shorter than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH), or the quantity is above
/// [`MAX_QUANTITY`].
pub fn encode_request(request: &Request, out: &mut [u8]) -> usize {
    match request {
        Request::New(order) if is_plain(order.order_type, &order.terms) => emit(&NewOrderLayout::of(order), out),
        Request::New(order) => emit(&NewOrderLongLayout::of(order), out),
        Request::Cancel(cancel) => emit(&CancelOrderLayout::of(cancel), out),
        Request::Replace(replace) if !replace.price.is_null() && replace.terms == OrderTerms::NONE => {
            emit(&ReplaceOrderLayout::of(replace), out)
        }
        Request::Replace(replace) => emit(&ReplaceOrderLongLayout::of(replace), out),
        Request::MassCancel(mass) => emit(&MassCancelLayout::of(mass), out),
        Request::Status(status) => emit(&OrderStatusRequestLayout::of(status), out),
        Request::MassStatus(mass) => emit(&MassStatusRequestLayout::of(mass), out),
    }
}

/// Whether the plain message carries an order of this type with these terms.
fn is_plain(order_type: OrderType, terms: &OrderTerms) -> bool {
    matches!(order_type, OrderType::Market | OrderType::Limit) && *terms == OrderTerms::NONE
}

impl NewOrderLayout {
    fn parse(&self) -> Result<NewOrder, DecodeError> {
        let order_type = OrderType::from_u8(self.flags >> 4)
            .filter(|order_type| matches!(order_type, OrderType::Market | OrderType::Limit))
            .ok_or(DecodeError::UnsupportedOrderType)?;
        let price = Price(self.price.get());
        if price.is_null() != (order_type == OrderType::Market) {
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
            terms: OrderTerms::NONE,
        })
    }

    fn of(order: &NewOrder) -> Self {
        Self {
            header: U64::new(NEW_ORDER),
            instrument: U32::new(order.instrument.0),
            quantity: wire_lots(order.quantity),
            price: I64::new(order.price.0),
            client_order_id: U64::new(order.client_order_id.0),
            account: U32::new(order.account.0),
            session: U16::new(order.session.0),
            side: order.side as u8,
            flags: order.time_in_force as u8 | (order.order_type as u8) << 4,
            trigger: U64::new(order.trigger.0),
        }
    }
}

impl CancelOrderLayout {
    fn parse(&self) -> Result<CancelOrder, DecodeError> {
        Ok(CancelOrder {
            client_order_id: client_order_id(self.client_order_id)?,
            orig_client_order_id: ClientOrderId(self.orig_client_order_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            session: SessionId(self.session.get()),
            side: side(self.side)?,
        })
    }

    fn of(cancel: &CancelOrder) -> Self {
        Self {
            header: U64::new(CANCEL_ORDER),
            instrument: U32::new(cancel.instrument.0),
            reserved1: U32::ZERO,
            reserved2: U64::ZERO,
            client_order_id: U64::new(cancel.client_order_id.0),
            reserved3: U32::ZERO,
            session: U16::new(cancel.session.0),
            side: cancel.side as u8,
            reserved4: 0,
            orig_client_order_id: U64::new(cancel.orig_client_order_id.0),
        }
    }
}

impl ReplaceOrderLayout {
    fn parse(&self) -> Result<ReplaceOrder, DecodeError> {
        let price = Price(self.price.get());
        if price.is_null() {
            return Err(DecodeError::InvalidPrice);
        }
        Ok(ReplaceOrder {
            client_order_id: client_order_id(self.client_order_id)?,
            orig_client_order_id: ClientOrderId(self.orig_client_order_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            session: SessionId(self.session.get()),
            side: side(self.side)?,
            price,
            quantity: quantity(self.quantity)?,
            terms: OrderTerms::NONE,
        })
    }

    fn of(replace: &ReplaceOrder) -> Self {
        Self {
            header: U64::new(REPLACE_ORDER),
            instrument: U32::new(replace.instrument.0),
            quantity: wire_lots(replace.quantity),
            price: I64::new(replace.price.0),
            client_order_id: U64::new(replace.client_order_id.0),
            reserved1: U32::ZERO,
            session: U16::new(replace.session.0),
            side: replace.side as u8,
            reserved2: 0,
            orig_client_order_id: U64::new(replace.orig_client_order_id.0),
        }
    }
}

impl MassCancelLayout {
    fn parse(&self) -> Result<MassCancel, DecodeError> {
        Ok(MassCancel {
            client_order_id: client_order_id(self.client_order_id)?,
            session: SessionId(self.session.get()),
            instrument: match self.instrument.get() {
                0 => None,
                instrument => Some(InstrumentId(instrument)),
            },
        })
    }

    fn of(mass: &MassCancel) -> Self {
        Self {
            header: U64::new(MASS_CANCEL),
            instrument: U32::new(mass.instrument.unwrap_or_default().0),
            reserved1: U32::ZERO,
            reserved2: U64::ZERO,
            client_order_id: U64::new(mass.client_order_id.0),
            reserved3: U32::ZERO,
            session: U16::new(mass.session.0),
            reserved4: U16::ZERO,
            reserved5: U64::ZERO,
        }
    }
}

pub(super) fn client_order_id(wire: U64) -> Result<ClientOrderId, DecodeError> {
    match wire.get() {
        0 => Err(DecodeError::NoClientOrderId),
        id => Ok(ClientOrderId(id)),
    }
}

pub(super) fn side(wire: u8) -> Result<Side, DecodeError> {
    Side::from_u8(wire).ok_or(DecodeError::InvalidSide)
}

fn quantity(wire: U32) -> Result<Quantity, DecodeError> {
    let quantity = Quantity(u64::from(wire.get()));
    if quantity.is_zero() || quantity > MAX_QUANTITY {
        return Err(DecodeError::InvalidQuantity);
    }
    Ok(quantity)
}
