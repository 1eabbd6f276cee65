//! What keeps a new order from going to its venue at once. Nearly all go, so all of it is one number to look at.

use crate::order_types::Parts;
use crate::state::Orders;
use types::Reason;

/// What is to be done about a new order first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Detour(u8);

impl Detour {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);
    /// A rate does not allow it yet.
    pub(crate) const QUEUE: Self = Self(1);
    /// Own orders are to be cancelled before it may go.
    pub(crate) const WAIT: Self = Self(2);
    /// It could trade inside the gateway, or rest there to.
    pub(crate) const CROSS: Self = Self(4);
    /// The gateway holds it, for what its venue lacks or to cross it.
    pub(crate) const HOLD: Self = Self(8);

    /// Whether there is anything.
    #[inline]
    pub(crate) const fn any(self) -> bool {
        self.0 != 0
    }

    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub(crate) const fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    #[inline]
    pub(crate) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Orders {
    /// What the gateway does for an order that does not go at once, in its venue's place or to cross it.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_detour(&self, mut detour: Detour, parts: Parts) -> Result<(Detour, Parts), Reason> {
        if parts.any() {
            if !self.held.has_room() {
                return Err(Reason::TooManyHeld);
            }
            detour.add(Detour::HOLD);
            return Ok((detour, parts));
        }
        // One that waits for anything else goes to its venue after that.
        if detour == Detour::CROSS && self.held.has_room() {
            detour.add(Detour::HOLD);
            return Ok((detour, Parts::CROSS));
        }
        detour.remove(Detour::CROSS);
        Ok((detour, parts))
    }
}
