//! FIX's codes for the words of [`types`], and its reason codes for refusals.

use types::{OrderType, Reason, Side, TimeInForce};

/// Side (54).
#[must_use]
pub const fn side_code(side: Side) -> u8 {
    match side {
        Side::Buy => b'1',
        Side::Sell => b'2',
    }
}

/// A Side (54) that the gateway trades; `None` for the others, such as short sales.
#[must_use]
pub const fn side_from_code(code: u8) -> Option<Side> {
    match code {
        b'1' => Some(Side::Buy),
        b'2' => Some(Side::Sell),
        _ => None,
    }
}

/// OrdType (40).
#[must_use]
pub const fn ord_type_code(order_type: OrderType) -> u8 {
    match order_type {
        OrderType::Market => b'1',
        OrderType::Limit => b'2',
        OrderType::Stop => b'3',
        OrderType::StopLimit => b'4',
        OrderType::PegPrimary | OrderType::PegMid => b'P',
    }
}

/// An OrdType (40) that the gateway trades; `None` for the others, such as stops.
#[must_use]
pub const fn ord_type_from_code(code: u8) -> Option<OrderType> {
    match code {
        b'1' => Some(OrderType::Market),
        b'2' => Some(OrderType::Limit),
        _ => None,
    }
}

/// TimeInForce (59).
#[must_use]
pub const fn tif_code(time_in_force: TimeInForce) -> u8 {
    match time_in_force {
        TimeInForce::Day => b'0',
        TimeInForce::GoodTillCancel => b'1',
        TimeInForce::AtTheOpening => b'2',
        TimeInForce::ImmediateOrCancel => b'3',
        TimeInForce::FillOrKill => b'4',
        TimeInForce::GoodTillDate => b'6',
        TimeInForce::AtTheClose => b'7',
    }
}

/// A TimeInForce (59) that the gateway trades; `None` for the others, such as good till cancel.
#[must_use]
pub const fn tif_from_code(code: u8) -> Option<TimeInForce> {
    match code {
        b'0' => Some(TimeInForce::Day),
        b'3' => Some(TimeInForce::ImmediateOrCancel),
        _ => None,
    }
}

/// Whether FIX 4.4 defines the Side (54).
pub(super) const fn is_side(code: u8) -> bool {
    matches!(code, b'1'..=b'9' | b'A'..=b'G')
}

/// Whether FIX 4.4 defines the OrdType (40), deprecated ones included.
pub(super) const fn is_ord_type(code: u8) -> bool {
    matches!(code, b'1'..=b'9' | b'A'..=b'M' | b'P')
}

/// Whether FIX 4.4 defines the TimeInForce (59).
pub(super) const fn is_tif(code: u8) -> bool {
    matches!(code, b'0'..=b'7')
}

/// OrdRejReason (103) of a refused order.
#[must_use]
pub const fn ord_rej_reason(reason: Reason) -> u64 {
    match reason {
        Reason::UnknownInstrument => 1,
        Reason::MaxQuantity
        | Reason::MaxNotional
        | Reason::PriceCollar
        | Reason::MaxOpenOrders
        | Reason::SharedLimit => 3,
        Reason::UnknownOrder => 5,
        Reason::DuplicateClientOrderId => 6,
        Reason::UnsupportedOrder => 11,
        Reason::InvalidQuantity => 13,
        Reason::UnknownAccount => 15,
        Reason::Venue | Reason::VenueDown | Reason::VenueFull | Reason::Killed | Reason::DayEnded => 0,
        _ => OTHER,
    }
}

/// CxlRejReason (102) of a refused cancel or replace.
#[must_use]
pub const fn cxl_rej_reason(reason: Reason) -> u64 {
    match reason {
        Reason::TooLate => 0,
        Reason::UnknownOrder => 1,
        Reason::Venue | Reason::VenueDown | Reason::VenueFull | Reason::Killed | Reason::DayEnded => 2,
        Reason::RequestPending => 3,
        Reason::DuplicateClientOrderId => 6,
        _ => OTHER,
    }
}

/// "Other", for 102 and 103.
const OTHER: u64 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for side in [Side::Buy, Side::Sell] {
            assert_eq!(side_from_code(side_code(side)), Some(side));
            assert!(is_side(side_code(side)));
        }
        for order_type in [OrderType::Market, OrderType::Limit] {
            assert_eq!(ord_type_from_code(ord_type_code(order_type)), Some(order_type));
            assert!(is_ord_type(ord_type_code(order_type)));
        }
        for tif in [TimeInForce::Day, TimeInForce::ImmediateOrCancel] {
            assert_eq!(tif_from_code(tif_code(tif)), Some(tif));
            assert!(is_tif(tif_code(tif)));
        }
    }
}
