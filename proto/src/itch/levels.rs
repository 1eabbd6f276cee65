//! Price levels: for each side of each instrument a sorted array of fixed room, the best price last, where most of the
//! changes are.
//!
//! A level has a number that stays while it lives, so that an order finds its level without a search.

use super::BookLimits;
use super::messages::BuySell;
use alloc::vec::Vec;

/// One side of one instrument: twice the instrument's index, plus one for offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SideIndex(u32);

/// See the module's head.
pub(super) struct Levels {
    /// Of each side, room for `room` levels: rank (high half) and number, ascending. (Plain u64, so that the allocator
    /// gives zero pages that cost nothing until they are touched.)
    sorted: Vec<u64>,
    /// Levels of each side.
    counts: Vec<u32>,
    room: usize,
    stride: usize,
    /// By number: shares, then rank (high half) and side.
    levels: Vec<[u64; 2]>,
    /// Numbers that were used and are free.
    free: Vec<u32>,
    /// Numbers from here on were never used.
    unused: u32,
}

impl SideIndex {
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "instruments are numbered with 16 bits")]
    pub(super) const fn new(instrument: usize, buy_sell: BuySell) -> Self {
        let offer = matches!(buy_sell, BuySell::Sell) as u32;
        Self(instrument as u32 * 2 + offer)
    }

    #[inline]
    pub(super) const fn instrument(self) -> usize {
        (self.0 / 2) as usize
    }

    const fn index(self) -> usize {
        self.0 as usize
    }

    /// What is higher the better a price is; turns into the price when applied again.
    #[inline]
    const fn rank(self, price_e4: u32) -> u32 {
        // All bits flip on an offer: the lowest price becomes the highest rank.
        price_e4 ^ (self.0 & 1).wrapping_neg()
    }
}

impl Levels {
    pub(super) fn new(limits: &BookLimits) -> Self {
        let sides = limits.instruments * 2;
        let levels = Self::level_count(limits);
        Self {
            sorted: alloc::vec![0; sides * Self::stride(limits)],
            counts: alloc::vec![0; sides],
            room: limits.levels,
            stride: Self::stride(limits),
            levels: alloc::vec![[0; 2]; levels],
            free: Vec::with_capacity(levels),
            unused: 0,
        }
    }

    pub(super) const fn memory_bytes(limits: &BookLimits) -> usize {
        let sides = limits.instruments * 2;
        let level = size_of::<[u64; 2]>() + size_of::<u32>();
        sides * (Self::stride(limits) * size_of::<u64>() + size_of::<u32>()) + Self::level_count(limits) * level
    }

    /// Distance between the arrays of two sides, entries: an odd number of cache lines, since distances that are powers of
    /// two would put the best prices of all instruments into the same few sets of the processor's caches.
    const fn stride(limits: &BookLimits) -> usize {
        const LINE: usize = 8;
        (limits.levels.div_ceil(LINE) | 1) * LINE
    }

    /// A level has at least one order.
    const fn level_count(limits: &BookLimits) -> usize {
        let by_sides = limits.instruments * 2 * limits.levels;
        if by_sides < limits.orders {
            by_sides
        } else {
            limits.orders
        }
    }

    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.free.clear();
        self.unused = 0;
    }

    /// Price (4 decimals) and shares of the best level.
    #[inline]
    pub(super) fn best(&self, side: SideIndex) -> Option<(u32, u64)> {
        let &entry = self.side_levels(side).last()?;
        Some(self.price_and_shares(side, entry))
    }

    /// Price (4 decimals) and shares of every level, best first.
    pub(super) fn iter(&self, side: SideIndex) -> impl Iterator<Item = (u32, u64)> {
        let levels = self.side_levels(side).iter().rev();
        levels.map(move |&entry| self.price_and_shares(side, entry))
    }

    /// Adds shares at a price and gives the level's number. `None` when there is no room for one more level.
    #[inline]
    pub(super) fn add(&mut self, side: SideIndex, price_e4: u32, shares: u32) -> Option<u32> {
        let rank = side.rank(price_e4);
        let levels = self.side_levels(side);
        let count = levels.len();
        let place = place_of(levels, rank);
        if let Some(&entry) = levels.get(place)
            && rank_of(entry) == rank
        {
            let number = number_of(entry);
            self.levels[number as usize][0] += u64::from(shares);
            return Some(number);
        }
        if count == self.room {
            return None;
        }
        let number = self.allocate()?;
        self.levels[number as usize] = [u64::from(shares), join(rank, side.0)];
        let start = side.index() * self.stride;
        let room = &mut self.sorted[start..=start + count];
        room.copy_within(place..count, place + 1);
        room[place] = join(rank, number);
        self.counts[side.index()] += 1;
        Some(number)
    }

    /// Takes shares off a level that has them, and the level away with the last.
    #[inline]
    pub(super) fn reduce(&mut self, number: u32, shares: u32) {
        let [left, rank_and_side] = &mut self.levels[number as usize];
        *left -= u64::from(shares);
        if *left > 0 {
            return;
        }
        let rank = rank_of(*rank_and_side);
        let side = SideIndex(number_of(*rank_and_side));
        let levels = self.side_levels(side);
        let count = levels.len();
        let place = place_of(levels, rank);
        let start = side.index() * self.stride;
        self.sorted[start..start + count].copy_within(place + 1.., place);
        self.counts[side.index()] -= 1;
        self.free.push(number);
    }

    /// The side that a level belongs to.
    #[inline]
    pub(super) fn side(&self, number: u32) -> SideIndex {
        SideIndex(number_of(self.levels[number as usize][1]))
    }

    /// A level's price, 4 decimals.
    #[inline]
    pub(super) fn price_e4(&self, number: u32) -> u32 {
        self.side(number).rank(rank_of(self.levels[number as usize][1]))
    }

    #[inline]
    fn side_levels(&self, side: SideIndex) -> &[u64] {
        let start = side.index() * self.stride;
        &self.sorted[start..start + self.counts[side.index()] as usize]
    }

    fn price_and_shares(&self, side: SideIndex, entry: u64) -> (u32, u64) {
        (side.rank(rank_of(entry)), self.levels[number_of(entry) as usize][0])
    }

    fn allocate(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let number = self.unused;
            ((number as usize) < self.levels.len()).then(|| {
                self.unused += 1;
                number
            })
        })
    }
}

/// Levels looked at one by one from the best on, before the rest is searched by halves.
const NEAR: usize = 8;

/// Where a rank is, or would belong.
#[inline]
fn place_of(levels: &[u64], rank: u32) -> usize {
    let near = levels.len().saturating_sub(NEAR);
    let mut place = levels.len();
    while place > near && rank_of(levels[place - 1]) >= rank {
        place -= 1;
    }
    if place > near || near == 0 {
        return place;
    }
    levels[..near].partition_point(|&entry| rank_of(entry) < rank)
}

#[allow(clippy::cast_possible_truncation, reason = "the high half of a u64")]
const fn rank_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[allow(clippy::cast_possible_truncation, reason = "the low half of a u64")]
const fn number_of(entry: u64) -> u32 {
    entry as u32
}

const fn join(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}
