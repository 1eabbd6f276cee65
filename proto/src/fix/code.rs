//! FIX's codes for the words of [`types`], and its reason codes for refusals.

use super::Version;
use types::{OrderType, Reason, ShortSale, Side, TimeInForce};

/// Side (54).
#[must_use]
pub const fn side_code(side: Side) -> u8 {
    match side {
        Side::Buy => b'1',
        Side::Sell => b'2',
    }
}

/// A Side (54) that the gateway trades; `None` for the others. Short sales are sells, see [`short_sale_from_code`].
#[must_use]
pub const fn side_from_code(code: u8) -> Option<Side> {
    match code {
        b'1' => Some(Side::Buy),
        b'2' | b'5' | b'6' => Some(Side::Sell),
        _ => None,
    }
}

/// Side (54) of a sell.
#[must_use]
pub const fn short_sale_code(short_sale: ShortSale) -> u8 {
    match short_sale {
        ShortSale::No => b'2',
        ShortSale::Short => b'5',
        ShortSale::Exempt => b'6',
    }
}

/// Whether a Side (54) is a short sale.
#[must_use]
pub const fn short_sale_from_code(code: u8) -> ShortSale {
    match code {
        b'5' => ShortSale::Short,
        b'6' => ShortSale::Exempt,
        _ => ShortSale::No,
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

/// An OrdType (40) that the gateway trades; `None` for the others, such as market on close. What a pegged order follows is
/// said elsewhere ([`super::OrderFields`]); here it is the best price of its own side.
#[must_use]
pub const fn ord_type_from_code(code: u8) -> Option<OrderType> {
    match code {
        b'1' => Some(OrderType::Market),
        b'2' => Some(OrderType::Limit),
        b'3' => Some(OrderType::Stop),
        b'4' => Some(OrderType::StopLimit),
        b'P' => Some(OrderType::PegPrimary),
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

/// A TimeInForce (59) that the gateway trades; `None` for the others, such as good till crossing.
#[must_use]
pub const fn tif_from_code(code: u8) -> Option<TimeInForce> {
    match code {
        b'0'..=b'9' => TimeInForce::from_u8(code - b'0'),
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
        | Reason::ThroughBook
        | Reason::MaxOpenOrders
        | Reason::PositionLimit
        | Reason::LongLimit
        | Reason::ShortLimit
        | Reason::GrossLimit
        | Reason::NetLimit
        | Reason::LossLimit
        | Reason::FirmLimit
        | Reason::RateLimit
        | Reason::RateLogout
        | Reason::SharedLimit
        | Reason::NoVenueSlot => 3,
        Reason::UnknownOrder => 5,
        Reason::DuplicateClientOrderId => 6,
        Reason::UnsupportedOrder
        | Reason::MarketOrder
        | Reason::InvalidStopPrice
        | Reason::InvalidDisplay
        | Reason::InvalidMinQuantity
        | Reason::InvalidExpiry
        | Reason::InvalidPegOffset
        | Reason::UnsupportedSelfMatch => 11,
        Reason::InvalidQuantity => 13,
        Reason::UnknownAccount => 15,
        Reason::Venue
        | Reason::VenueDown
        | Reason::VenueFull
        | Reason::Killed
        | Reason::SessionDisabled
        | Reason::ReduceOnly
        | Reason::DayEnded => 0,
        _ => OTHER,
    }
}

/// CxlRejReason (102) of a refused cancel or replace.
#[must_use]
pub const fn cxl_rej_reason(reason: Reason) -> u64 {
    match reason {
        Reason::TooLate => 0,
        Reason::UnknownOrder => 1,
        Reason::Venue
        | Reason::VenueDown
        | Reason::VenueFull
        | Reason::Killed
        | Reason::SessionDisabled
        | Reason::ReduceOnly
        | Reason::DayEnded => 2,
        Reason::RequestPending => 3,
        Reason::DuplicateClientOrderId => 6,
        _ => OTHER,
    }
}

/// ExecRestatementReason (378) of a cancel that the client did not ask for; `None` for one that it did, or that its order
/// implied.
#[must_use]
pub const fn exec_restatement_reason(reason: Reason) -> Option<u64> {
    match reason {
        Reason::None | Reason::Requested | Reason::MassCanceled | Reason::Unfilled => None,
        Reason::Disconnected => Some(CONNECTION_LOSS),
        Reason::SelfMatch => Some(SELF_MATCH_NEWEST),
        Reason::Venue | Reason::BookFull => Some(MARKET_OPTION),
        _ => Some(BROKER_OPTION),
    }
}

/// MassCancelRejectReason (532).
#[must_use]
pub const fn mass_cancel_reject_reason(reason: Reason) -> u64 {
    match reason {
        Reason::UnsupportedOrder => 0,
        Reason::UnknownInstrument => 1,
        _ => OTHER,
    }
}

/// The number of OrdRejReason (103) that a version has for it: else 0, broker's option.
pub(super) const fn ord_rej_reason_of(version: Version, number: u64) -> u64 {
    let highest = match version {
        Version::Fix40 | Version::Fix41 => 3,
        Version::Fix42 => 8,
        Version::Fix43 => 12,
        _ => OTHER,
    };
    if number <= highest { number } else { 0 }
}

/// The number of CxlRejReason (102) that a version has for it; `None` when it has none that says it.
pub(super) const fn cxl_rej_reason_of(version: Version, number: u64) -> Option<u64> {
    match (version, number) {
        (_, 0 | 1) => Some(number),
        (Version::Fix40 | Version::Fix41, _) => None,
        (Version::Fix42, 4..) | (Version::Fix43, 7..) => Some(BROKER_OPTION_102),
        _ => Some(number),
    }
}

/// The number of ExecRestatementReason (378) that a version has for it; `None` when it has no such field.
pub(super) const fn exec_restatement_reason_of(version: Version, number: u64) -> Option<u64> {
    match (version, number) {
        (Version::Fix40 | Version::Fix41, _) => None,
        (Version::Fix50Sp2, _) => Some(number),
        (Version::Fix42, MARKET_OPTION..) | (_, CONNECTION_LOSS) => Some(BROKER_OPTION),
        (_, SELF_MATCH_NEWEST..) => Some(MARKET_OPTION),
        _ => Some(number),
    }
}

/// "Other", for 102, 103 and 532.
const OTHER: u64 = 99;

/// Of 102.
const BROKER_OPTION_102: u64 = 2;

/// Of 378.
const BROKER_OPTION: u64 = 4;
/// Of 378, since 4.3.
const MARKET_OPTION: u64 = 8;
/// Of 378, in 5.0 SP2.
const CONNECTION_LOSS: u64 = 12;
/// Of 378, in 5.0 SP2.
const SELF_MATCH_NEWEST: u64 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for side in [Side::Buy, Side::Sell] {
            assert_eq!(side_from_code(side_code(side)), Some(side));
            assert!(is_side(side_code(side)));
        }
        for order_type in (1..6).filter_map(OrderType::from_u8) {
            assert_eq!(ord_type_from_code(ord_type_code(order_type)), Some(order_type));
            assert!(is_ord_type(ord_type_code(order_type)));
        }
        for tif in (0..8).filter_map(TimeInForce::from_u8) {
            assert_eq!(tif_from_code(tif_code(tif)), Some(tif));
            assert!(is_tif(tif_code(tif)));
        }
    }
}
