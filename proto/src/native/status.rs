//! OrderStatusRequest and MassStatusRequest, 48 bytes: they ask and change nothing. What they share with the requests that
//! change orders is at the same place; they have no number that is used up.

use types::{ClientOrderId, InstrumentId, MassStatusRequest, OrderId, OrderStatusRequest, SessionId};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::request::side;
use super::{DecodeError, Template};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct OrderStatusRequestLayout {
    header: U64,
    instrument: U32,
    reserved1: U32,
    /// The gateway's number for the order; 0: none.
    order_id: U64,
    /// The client's number for the order; 0: none.
    client_order_id: U64,
    reserved2: U32,
    session: U16,
    side: u8,
    reserved3: u8,
    /// 0: none.
    request: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MassStatusRequestLayout {
    header: U64,
    /// 0: all.
    instrument: U32,
    reserved1: U32,
    reserved2: U64,
    /// 0: none.
    request: U64,
    reserved3: U32,
    session: U16,
    reserved4: U16,
    reserved5: U64,
}

const _: () = assert!(size_of::<OrderStatusRequestLayout>() == 48);
const _: () = assert!(size_of::<MassStatusRequestLayout>() == 48);

pub(super) const ORDER_STATUS_REQUEST: u64 = Template::OrderStatusRequest.header();
pub(super) const MASS_STATUS_REQUEST: u64 = Template::MassStatusRequest.header();

impl OrderStatusRequestLayout {
    pub(super) fn parse(&self) -> Result<OrderStatusRequest, DecodeError> {
        Ok(OrderStatusRequest {
            client_order_id: ClientOrderId(self.client_order_id.get()),
            order_id: OrderId(self.order_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            session: SessionId(self.session.get()),
            side: side(self.side)?,
            request: self.request.get(),
        })
    }

    pub(super) fn of(status: &OrderStatusRequest) -> Self {
        Self {
            header: U64::new(ORDER_STATUS_REQUEST),
            instrument: U32::new(status.instrument.0),
            reserved1: U32::ZERO,
            order_id: U64::new(status.order_id.0),
            client_order_id: U64::new(status.client_order_id.0),
            reserved2: U32::ZERO,
            session: U16::new(status.session.0),
            side: status.side as u8,
            reserved3: 0,
            request: U64::new(status.request),
        }
    }
}

impl MassStatusRequestLayout {
    pub(super) fn parse(&self) -> MassStatusRequest {
        MassStatusRequest {
            session: SessionId(self.session.get()),
            instrument: match self.instrument.get() {
                0 => None,
                instrument => Some(InstrumentId(instrument)),
            },
            request: self.request.get(),
        }
    }

    pub(super) fn of(mass: &MassStatusRequest) -> Self {
        Self {
            header: U64::new(MASS_STATUS_REQUEST),
            instrument: U32::new(mass.instrument.unwrap_or_default().0),
            reserved1: U32::ZERO,
            reserved2: U64::ZERO,
            request: U64::new(mass.request),
            reserved3: U32::ZERO,
            session: U16::new(mass.session.0),
            reserved4: U16::ZERO,
            reserved5: U64::ZERO,
        }
    }
}
