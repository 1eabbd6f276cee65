//! Which order types a venue has, and for which of the others the gateway stands in.

use types::{OrderType, Quantity, Reason};

/// Who has an order type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handling {
    /// The venue: such orders go there as they are.
    Venue,
    /// The gateway, see [`Orders::hold_here`](crate::Orders::hold_here): the venue sees market and limit orders in their place.
    Emulated,
    /// Nobody: they are refused.
    Refused,
}

/// Who has the order types beyond market and limit orders that show all their lots, for the orders of one venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderTypes {
    /// Stop orders.
    pub stop: Handling,
    /// Stop limit orders.
    pub stop_limit: Handling,
    /// Limit orders that show some of their lots at a time.
    pub iceberg: Handling,
    /// Orders that follow the best price of their own side.
    pub peg_primary: Handling,
    /// Orders that follow the middle of the best prices.
    pub peg_mid: Handling,
}

/// What the gateway does for an order in its venue's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    /// It waits for the stop price.
    pub(crate) stop: bool,
    /// It sends one portion after the other.
    pub(crate) slices: bool,
    /// It lets the price follow the market's.
    pub(crate) peg: bool,
    /// It may trade inside the gateway before it goes to the venue.
    pub(crate) cross: bool,
}

impl OrderTypes {
    /// The venue has them all.
    pub const AT_VENUE: Self = Self::all(Handling::Venue);

    /// All of them in one hand.
    #[must_use]
    pub const fn all(handling: Handling) -> Self {
        Self {
            stop: handling,
            stop_limit: handling,
            iceberg: handling,
            peg_primary: handling,
            peg_mid: handling,
        }
    }

    /// Whether the gateway stands in for any of these.
    pub(crate) fn is_any_emulated(&self) -> bool {
        self.emulates_pegs() || [self.stop, self.stop_limit, self.iceberg].contains(&Handling::Emulated)
    }

    /// Whether the gateway lets orders follow the market.
    pub(crate) fn emulates_pegs(&self) -> bool {
        [self.peg_primary, self.peg_mid].contains(&Handling::Emulated)
    }

    /// What the gateway does for an order of this type that shows so many lots at a time.
    ///
    /// # Errors
    /// [`Reason::VenueLacksType`].
    #[inline]
    pub(crate) fn parts(&self, order_type: OrderType, display: Quantity) -> Result<Parts, Reason> {
        if matches!(order_type, OrderType::Market | OrderType::Limit) && display.is_zero() {
            Ok(Parts::NONE)
        } else {
            self.special_parts(order_type, display)
        }
    }

    #[inline(never)]
    fn special_parts(&self, order_type: OrderType, display: Quantity) -> Result<Parts, Reason> {
        let of_type = match order_type {
            OrderType::Market | OrderType::Limit => Handling::Venue,
            OrderType::Stop => self.stop,
            OrderType::StopLimit => self.stop_limit,
            OrderType::PegPrimary => self.peg_primary,
            OrderType::PegMid => self.peg_mid,
        };
        let of_display = if display.is_zero() {
            Handling::Venue
        } else {
            self.iceberg
        };
        if of_type == Handling::Refused || of_display == Handling::Refused {
            return Err(Reason::VenueLacksType);
        }
        let parts = Parts {
            stop: of_type == Handling::Emulated && order_type.is_stop(),
            slices: of_display == Handling::Emulated,
            peg: of_type == Handling::Emulated && order_type.is_pegged(),
            cross: false,
        };
        // What is triggered at the venue cannot be cut into portions here.
        if parts.slices && order_type.is_stop() && !parts.stop {
            return Err(Reason::VenueLacksType);
        }
        Ok(parts)
    }
}

impl Parts {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        stop: false,
        slices: false,
        peg: false,
        cross: false,
    };

    /// To be crossed, and nothing that its venue lacks.
    pub(crate) const CROSS: Self = Self {
        cross: true,
        ..Self::NONE
    };

    /// Whether there is anything to do.
    #[inline]
    pub(crate) const fn any(self) -> bool {
        self.stop || self.slices || self.peg || self.cross
    }
}
