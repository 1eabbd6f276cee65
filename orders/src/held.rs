//! The orders that the gateway holds because their venue lacks their type, or to be crossed: what it knows of each beyond its
//! record among the open ones, which instruments' books they watch, and which of them have something to do.
//!
//! An order that is held is an open one in all that counts. What goes to the venue for it is a child: a market or limit order
//! of some of its lots, one at a time. `emulate.rs` has what happens to it, `watch.rs` what the book does, `cross.rs` how two
//! trade with each other.

use crate::cross::Rests;
use crate::list::{Links, List};
use crate::map::NIL;
use crate::order_types::Parts;
use alloc::boxed::Box;
use alloc::vec;
use types::{Duration, Price, Quantity, Side, Timestamp};

/// All held orders of a shard, by place.
pub(crate) struct HeldOrders {
    entries: Box<[Held]>,
    free: Box<[u32]>,
    free_count: usize,
    /// By instrument.
    pub(crate) watches: Box<[Watch]>,
    /// Links of [`Watch::orders`], by place.
    pub(crate) watch_links: Links,
    /// Links of `watched`, by instrument.
    pub(crate) watched_links: Links,
    /// Instruments whose book some order watches.
    pub(crate) watched: List,
    /// Links of `due`, by place.
    pub(crate) due_links: Links,
    /// Orders that have something to do, oldest first.
    pub(crate) due: List,
    /// Nothing that is here alone ends by its own date before then.
    pub(crate) expires: Timestamp,
    /// Nothing here has anything to do by the time alone before then.
    pub(crate) wakes: Timestamp,
    /// Those that rest to be crossed.
    pub(crate) rests: Rests,
    /// Pegged orders of an instrument do not follow its book sooner after they did.
    pub(crate) peg_interval: Duration,
}

/// What is known of a held order.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// Its slot among the open orders; [`NIL`] marks a free place.
    pub(crate) slot: u32,
    /// What is still to be done for it: no stop once it was triggered.
    pub(crate) parts: Parts,
    /// Its stop price was met, and it has not gone out yet.
    pub(crate) is_met: bool,
    pub(crate) is_watching: bool,
    pub(crate) is_due: bool,
    /// While it rests to be crossed: until when. Else [`Timestamp::NONE`].
    pub(crate) rests_until: Timestamp,
    /// What of it is at the venue; nothing while the order's venue number is 0.
    pub(crate) child: Child,
    /// A new price of the child that the venue has not answered.
    pub(crate) reprice: Option<Reprice>,
    pub(crate) withdrawal: Withdrawal,
}

/// The part of a held order that is at its venue.
#[derive(Clone, Copy)]
pub(crate) struct Child {
    /// The number that it went out by. Those of what is asked about it are above.
    pub(crate) number: u64,
    pub(crate) price: Price,
    pub(crate) quantity: Quantity,
    pub(crate) cumulative: Quantity,
}

/// A replace of the child that the venue has not answered.
#[derive(Clone, Copy)]
pub(crate) struct Reprice {
    pub(crate) number: u64,
    pub(crate) price: Price,
    /// Lots that the venue took off by itself before it saw this, and that it puts back if it accepts.
    pub(crate) restated: Quantity,
}

/// Whether the child is to go, so that the client's replace can be made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    No,
    /// The cancel is to be sent.
    Wanted,
    /// The venue has not answered the cancel.
    Asked {
        number: u64,
        /// The number it names the child by.
        aimed_at: u64,
    },
}

/// The book of an instrument as held orders watch it.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    /// Places of the held orders that watch, oldest first.
    pub(crate) orders: List,
    /// No buy stop waits for a lower price.
    pub(crate) buy_stop: Price,
    /// No sell stop waits for a higher price.
    pub(crate) sell_stop: Price,
    /// Pegged orders among them.
    pub(crate) pegs: u32,
    /// One of those has no child yet.
    pub(crate) is_hungry: bool,
    /// The best prices that others showed when pegged orders followed last; [`Price::NULL`]: none.
    pub(crate) bid: Price,
    pub(crate) offer: Price,
    /// Pegged orders that have a child do not follow sooner.
    pub(crate) not_before: Timestamp,
    /// The newest book that was looked at and asked for nothing. It decides nothing, it only saves work.
    pub(crate) seen: Timestamp,
}

impl HeldOrders {
    /// For so many orders in so many instruments.
    pub(crate) fn new(capacity: u32, instruments: usize, peg_interval: Duration, rests: Rests) -> Self {
        let (places, instruments) = match capacity {
            0 => (0, 0),
            capacity => (capacity as usize, instruments),
        };
        Self {
            entries: vec![Held::VACANT; places].into_boxed_slice(),
            free: (0..capacity).rev().collect(),
            free_count: places,
            watches: vec![Watch::NOBODY; instruments].into_boxed_slice(),
            watch_links: Links::new(places),
            watched_links: Links::new(instruments),
            watched: List::EMPTY,
            due_links: Links::new(places),
            due: List::EMPTY,
            expires: NEVER,
            wakes: NEVER,
            rests,
            peg_interval,
        }
    }

    pub(crate) const fn has_room(&self) -> bool {
        self.free_count > 0
    }

    /// A place for the order in `slot`; [`has_room`](Self::has_room) was seen before.
    pub(crate) fn take(&mut self, slot: u32, parts: Parts) -> u32 {
        self.free_count -= 1;
        let place = self.free[self.free_count];
        self.entries[place as usize] = Held {
            slot,
            parts,
            ..Held::VACANT
        };
        place
    }

    /// Gives a place back.
    pub(crate) fn free(&mut self, place: u32, instrument: u32, side: Side) {
        self.unmark_due(place);
        self.stop_crossing(place, instrument, side);
        self.unwatch(place, instrument);
        self.entries[place as usize].slot = NIL;
        self.free[self.free_count] = place;
        self.free_count += 1;
    }

    #[inline]
    pub(crate) const fn entry(&self, place: u32) -> &Held {
        &self.entries[place as usize]
    }

    #[inline]
    pub(crate) const fn entry_mut(&mut self, place: u32) -> &mut Held {
        &mut self.entries[place as usize]
    }

    /// The held orders and their places.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, &Held)> {
        (0..).zip(&self.entries).filter(|(_, held)| held.slot != NIL)
    }

    pub(crate) const fn length(&self) -> usize {
        self.entries.len() - self.free_count
    }

    /// It has something to do.
    pub(crate) fn mark_due(&mut self, place: u32) {
        if !core::mem::replace(&mut self.entries[place as usize].is_due, true) {
            self.due_links.push_back(&mut self.due, place);
        }
    }

    /// It has nothing to do.
    pub(crate) fn unmark_due(&mut self, place: u32) {
        if core::mem::take(&mut self.entries[place as usize].is_due) {
            self.due_links.remove(&mut self.due, place);
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.entries)
            + size_of_val(&*self.free)
            + size_of_val(&*self.watches)
            + self.watch_links.memory()
            + self.watched_links.memory()
            + self.due_links.memory()
            + self.rests.memory()
    }
}

impl Held {
    const VACANT: Self = Self {
        slot: NIL,
        parts: Parts::NONE,
        is_met: false,
        is_watching: false,
        is_due: false,
        rests_until: Timestamp::NONE,
        child: Child::NONE,
        reprice: None,
        withdrawal: Withdrawal::No,
    };
}

impl Child {
    /// Nothing is there.
    pub(crate) const NONE: Self = Self {
        number: 0,
        price: Price::NULL,
        quantity: Quantity::ZERO,
        cumulative: Quantity::ZERO,
    };

    /// Lots still open at the venue.
    pub(crate) const fn leaves(&self) -> Quantity {
        self.quantity.saturating_sub(self.cumulative)
    }
}

impl Watch {
    pub(crate) const NOBODY: Self = Self {
        orders: List::EMPTY,
        buy_stop: Price(i64::MAX),
        sell_stop: Price(i64::MIN),
        pegs: 0,
        is_hungry: false,
        bid: Price::NULL,
        offer: Price::NULL,
        not_before: Timestamp::NONE,
        seen: Timestamp::NONE,
    };
}

/// Later than any date.
pub(crate) const NEVER: Timestamp = Timestamp(u64::MAX);
