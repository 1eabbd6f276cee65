//! The 48 bytes of a native request, as the filter sees them: fields at fixed offsets, found without a decoder.

use crate::abi::MESSAGE_LENGTH;
use types::{OrderType, Price, Side, TimeInForce};

/// What kind of request it is, as far as limits go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// New orders and replaces: all limits hold.
    Order,
    /// Cancels of one order or many: they take risk away.
    Cancel,
}

/// A request whose form is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// What limits hold.
    pub kind: Kind,
    /// The instrument's number.
    pub instrument: u32,
    /// Lots.
    pub quantity: u32,
    /// Limit, 1e-9; [`Price::NULL`]: it has none.
    pub price: Price,
    /// The session's number.
    pub session: u16,
    /// Buy or sell. A mass cancel has no side, and none is looked at.
    pub side: Side,
    /// It must rest first.
    pub post_only: bool,
}

impl Order {
    /// The request in `message`. `None` when its header is none of the four that are judged, or a field has a value that it
    /// may not have: exactly what the native decoder would not take either.
    #[must_use]
    pub fn parse(message: &[u8; MESSAGE_LENGTH], post_only: bool) -> Option<Self> {
        let header = u64_at(message, 0);
        let kind = match header {
            NEW_ORDER | REPLACE_ORDER => Kind::Order,
            CANCEL_ORDER | MASS_CANCEL => Kind::Cancel,
            _ => return None,
        };
        let side = match header {
            MASS_CANCEL => Side::Buy,
            _ => Side::from_u8(message[38])?,
        };
        let order = Self {
            kind,
            instrument: u32_at(message, 8),
            quantity: u32_at(message, 12),
            price: Price(u64_at(message, 16).cast_signed()),
            session: u16::from_le_bytes([message[36], message[37]]),
            side,
            post_only,
        };
        let is_formed = u64_at(message, 24) != 0 && order.has_quantity() && order.has_price(header, message[39]);
        is_formed.then_some(order)
    }

    fn has_quantity(&self) -> bool {
        self.kind == Kind::Cancel || (self.quantity != 0 && self.quantity != u32::MAX)
    }

    /// Whether there is a price where there must be one and none where there may not be.
    fn has_price(&self, header: u64, flags: u8) -> bool {
        match header {
            NEW_ORDER => {
                let may_be_null = match OrderType::from_u8(flags >> 4) {
                    Some(OrderType::Market) => true,
                    Some(OrderType::Limit) => false,
                    _ => return false,
                };
                self.price.is_null() == may_be_null && TimeInForce::from_u8(flags & 0x0f).is_some()
            }
            REPLACE_ORDER => !self.price.is_null(),
            _ => true,
        }
    }
}

/// Block length 40, template, schema id `TG`, version 0.
const fn header(template: u64) -> u64 {
    40 | template << 16 | 0x4754 << 32
}

const NEW_ORDER: u64 = header(1);
const CANCEL_ORDER: u64 = header(2);
const REPLACE_ORDER: u64 = header(3);
const MASS_CANCEL: u64 = header(4);

fn u64_at(message: &[u8; MESSAGE_LENGTH], offset: usize) -> u64 {
    u64::from_le_bytes(message[offset..offset + 8].try_into().expect("eight bytes"))
}

fn u32_at(message: &[u8; MESSAGE_LENGTH], offset: usize) -> u32 {
    u32::from_le_bytes(message[offset..offset + 4].try_into().expect("four bytes"))
}
