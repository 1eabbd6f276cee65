//! Own resting orders: for each owner and instrument the best buy and the best sell price that may rest at a venue.
//!
//! Orders count from acceptance until their end is reported, pending ones too, whatever venue they went to; while a replace
//! is pending the more aggressive of both prices counts. A pegged order counts at its limit, and without one at any price:
//! where it stands in the market is not known here. A stop order counts from when the venue says that it was triggered. So an
//! order that passes cannot trade with one of its own owner, however the venue's answers race.
//!
//! What is asked is whether the best price is in reach of an incoming order, and at times which orders are. Each side is
//! therefore a leftist heap whose nodes are the order slots: the best is at the root, and entering or leaving takes at most a
//! logarithm of the resting orders, never a walk over them.

use crate::map::{Map, NIL};
use alloc::boxed::Box;
use alloc::vec;
use types::{OrderType, Price, Side};

/// The own orders of all owners and instruments.
pub(crate) struct OwnBooks {
    /// By order slot.
    nodes: Box<[Node]>,
    /// By book: root of the buys, root of the sells. Books in use come first.
    roots: Box<[[u32; 2]]>,
    /// (owner, instrument) to book. An entry stays until the day's roll.
    books: Map,
}

/// The orders of a book that an incoming one could trade with: at the root those of the best price.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    root: u32,
    /// The highest key that is in reach.
    highest: i64,
}

#[derive(Clone, Copy)]
struct Node {
    /// Lower is more aggressive.
    key: i64,
    left: u32,
    right: u32,
    parent: u32,
    /// Ranks of the children. A node's rank is the number of nodes on the way down its right side, itself included; kept
    /// with the parent, so that a merge touches no node beside its way.
    left_rank: u8,
    /// Never more than the left one.
    right_rank: u8,
}

impl OwnBooks {
    /// For orders in slots below `orders`, and at most `books` (owner, instrument) pairs a day.
    pub(crate) fn new(orders: usize, books: usize) -> Self {
        Self {
            nodes: vec![Node::ALONE; orders].into_boxed_slice(),
            roots: vec![[NIL; 2]; books].into_boxed_slice(),
            books: Map::new(books),
        }
    }

    /// The book of `owner` in `instrument`, or [`NIL`] when there was no order yet.
    #[inline]
    pub(crate) fn find(&self, owner: u32, instrument: u32) -> u32 {
        self.books.find(u64::from(owner), instrument)
    }

    /// Whether [`open`](Self::open) has room for one more book.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.books.length() < self.roots.len()
    }

    /// Makes the book of `owner` in `instrument`; [`has_room`](Self::has_room) was seen before.
    pub(crate) fn open(&mut self, owner: u32, instrument: u32) -> u32 {
        let book = u32::try_from(self.books.length()).unwrap_or(NIL);
        self.roots[book as usize] = [NIL; 2];
        self.books.insert(u64::from(owner), instrument, book);
        book
    }

    /// What an incoming order could trade with in this book.
    #[inline]
    pub(crate) fn reach(&self, book: u32, side: Side, order_type: OrderType, price: Price) -> Reach {
        let root = match (book, order_type) {
            // A stop waits; what it meets when it is triggered is the venue's to say.
            (NIL, _) | (_, OrderType::Stop | OrderType::StopLimit) => NIL,
            _ => self.roots[book as usize][side_index(side.opposite())],
        };
        let highest = match order_type {
            OrderType::Market => i64::MAX,
            OrderType::PegPrimary | OrderType::PegMid if price.is_null() => i64::MAX,
            _ => key(side.opposite(), price),
        };
        Reach { root, highest }
    }

    /// Whether there is anything in reach.
    #[inline]
    pub(crate) fn would_trade(&self, reach: Reach) -> bool {
        reach.holds(&self.nodes, reach.root)
    }

    /// The first order in reach, in no order of meaning.
    pub(crate) fn first(&self, reach: Reach) -> Option<u32> {
        self.would_trade(reach).then_some(reach.root)
    }

    /// The order in reach after the one in `slot`. Each costs a step down and at times some up, all together no more steps
    /// than there are orders in reach, twice.
    pub(crate) fn after(&self, reach: Reach, slot: u32) -> Option<u32> {
        let node = &self.nodes[slot as usize];
        // Below a node that is out of reach nothing is in reach.
        if let Some(&child) = [node.left, node.right]
            .iter()
            .find(|&&child| reach.holds(&self.nodes, child))
        {
            return Some(child);
        }
        let mut below = slot;
        while below != reach.root {
            let above = self.nodes[below as usize].parent;
            let Node { left, right, .. } = self.nodes[above as usize];
            if below == left && reach.holds(&self.nodes, right) {
                return Some(right);
            }
            below = above;
        }
        None
    }

    /// Enters the order in `slot`, which is in no book.
    #[inline]
    pub(crate) fn insert(&mut self, book: u32, side: Side, price: Price, slot: u32) {
        let key = key(side, price);
        let root = &mut self.roots[book as usize][side_index(side)];
        // The slot takes the place of the first node on the right side that is no better, which becomes its child.
        let (mut above, mut below) = (NIL, *root);
        while below != NIL {
            let node = self.nodes[below as usize];
            if key <= node.key {
                break;
            }
            (above, below) = (below, node.right);
        }
        let left_rank = rank(&self.nodes, below);
        if below != NIL {
            self.nodes[below as usize].parent = slot;
        }
        self.nodes[slot as usize] = Node {
            key,
            left: below,
            right: NIL,
            parent: above,
            left_rank,
            right_rank: 0,
        };
        if above == NIL {
            *root = slot;
        } else {
            replace_child(&mut self.nodes, above, below, slot);
        }
    }

    /// Takes the order in `slot` out of the book that it is in.
    pub(crate) fn remove(&mut self, book: u32, side: Side, slot: u32) {
        let Node {
            left, right, parent, ..
        } = self.nodes[slot as usize];
        let rest = merge(&mut self.nodes, left, right);
        if rest != NIL {
            self.nodes[rest as usize].parent = parent;
        }
        if parent == NIL {
            self.roots[book as usize][side_index(side)] = rest;
        } else {
            replace_child(&mut self.nodes, parent, slot, rest);
        }
    }

    /// Forgets all books; no order is in one.
    pub(crate) fn clear(&mut self) {
        self.books.clear();
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.roots) + self.books.memory()
    }
}

impl Reach {
    #[inline]
    fn holds(self, nodes: &[Node], slot: u32) -> bool {
        slot != NIL && nodes[slot as usize].key <= self.highest
    }
}

impl Node {
    const ALONE: Self = Self {
        key: 0,
        left: NIL,
        right: NIL,
        parent: NIL,
        left_rank: 0,
        right_rank: 0,
    };

    const fn rank(&self) -> u8 {
        self.right_rank + 1
    }

    /// Puts `new`, which has this rank, in the place of the child `old`, and the child of the lower rank on the right.
    #[inline]
    const fn set_child(&mut self, old: u32, new: u32, rank: u8) {
        if self.left == old {
            (self.left, self.left_rank) = (new, rank);
        } else {
            (self.right, self.right_rank) = (new, rank);
        }
        if self.left_rank < self.right_rank {
            (self.left, self.right) = (self.right, self.left);
            (self.left_rank, self.right_rank) = (self.right_rank, self.left_rank);
        }
    }
}

const fn side_index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}

const fn key(side: Side, price: Price) -> i64 {
    match side {
        Side::Buy => !price.0,
        Side::Sell => price.0,
    }
}

const fn rank(nodes: &[Node], slot: u32) -> u8 {
    if slot == NIL { 0 } else { nodes[slot as usize].rank() }
}

/// Puts `new` in the place of the child `old` of `above`. Ranks further up change at most along one path, up to where one
/// stays as it was.
fn replace_child(nodes: &mut [Node], mut above: u32, mut old: u32, mut new: u32) {
    while above != NIL {
        let new_rank = rank(nodes, new);
        let node = &mut nodes[above as usize];
        let rank_before = node.rank();
        node.set_child(old, new, new_rank);
        if node.rank() == rank_before {
            return;
        }
        (old, new, above) = (above, above, node.parent);
    }
}

/// One heap out of two, and its root. Goes down both right sides, each at most a logarithm long.
fn merge(nodes: &mut [Node], one: u32, other: u32) -> u32 {
    if one == NIL {
        return other;
    }
    if other == NIL {
        return one;
    }
    let (top, below) = if nodes[one as usize].key <= nodes[other as usize].key {
        (one, other)
    } else {
        (other, one)
    };
    let right = nodes[top as usize].right;
    let merged = merge(nodes, right, below);
    nodes[merged as usize].parent = top;
    let rank = nodes[merged as usize].rank();
    nodes[top as usize].set_child(right, merged, rank);
    top
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    fn assert_leftist(nodes: &[Node], slot: u32) {
        if slot == NIL {
            return;
        }
        let node = nodes[slot as usize];
        assert_eq!(
            (node.left_rank, node.right_rank),
            (rank(nodes, node.left), rank(nodes, node.right))
        );
        assert!(node.left_rank >= node.right_rank);
        for child in [node.left, node.right] {
            if child != NIL {
                assert_eq!(nodes[child as usize].parent, slot);
                assert!(nodes[child as usize].key >= node.key);
                assert_leftist(nodes, child);
            }
        }
    }

    #[test]
    fn equal_prices_trade_and_better_ones_do_not() {
        let mut own = OwnBooks::new(2, 1);
        let book = own.open(0, 0);
        own.insert(book, Side::Sell, Price(100), 0);
        own.insert(book, Side::Buy, Price(90), 1);
        for (side, price, trades) in [
            (Side::Buy, 99, false),
            (Side::Buy, 100, true),
            (Side::Sell, 91, false),
            (Side::Sell, 90, true),
        ] {
            let reach = own.reach(book, side, OrderType::Limit, Price(price));
            assert_eq!(own.would_trade(reach), trades, "{side:?} {price}");
        }
        let market = |book| own.would_trade(own.reach(book, Side::Buy, OrderType::Market, Price::NULL));
        assert!(market(book));
        assert!(!market(NIL));
    }

    proptest! {
        #[test]
        fn the_best_own_price_is_the_best_of_all(operations in prop::collection::vec((0u32..64, -20i64..20), 1..400), side in prop::sample::select(&[Side::Buy, Side::Sell][..])) {
            let mut own = OwnBooks::new(64, 1);
            let book = own.open(0, 0);
            let mut model = BTreeMap::new();
            for (slot, price) in operations {
                if model.remove(&slot).is_some() {
                    own.remove(book, side, slot);
                } else {
                    own.insert(book, side, Price(price), slot);
                    model.insert(slot, price);
                }
                let root = own.roots[book as usize][side_index(side)];
                assert_leftist(&own.nodes, root);
                for price in -21..21 {
                    let trades = |&resting: &i64| match side {
                        Side::Buy => resting >= price,
                        Side::Sell => resting <= price,
                    };
                    let reach = own.reach(book, side.opposite(), OrderType::Limit, Price(price));
                    prop_assert_eq!(own.would_trade(reach), model.values().any(trades));
                    let mut found: Vec<u32> = core::iter::successors(own.first(reach), |&slot| own.after(reach, slot)).collect();
                    found.sort_unstable();
                    let expected = model.iter().filter(|&(_, resting)| trades(resting)).map(|(&slot, _)| slot);
                    prop_assert_eq!(found, expected.collect::<Vec<_>>());
                }
            }
        }
    }
}
