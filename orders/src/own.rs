//! Own resting orders: for each owner and instrument the best buy and the best sell price that may rest at a venue.
//!
//! Orders count from acceptance until their end is reported, pending ones too, whatever venue they went to; while a replace
//! is pending the more aggressive of both prices counts. So an order that passes cannot trade with one of its own owner,
//! however the venue's answers race.
//!
//! Only the best price is ever asked for. Each side is therefore a leftist heap whose nodes are the order slots: the best
//! is at the root, and entering or leaving takes at most a logarithm of the resting orders, never a walk over them.

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

#[derive(Clone, Copy)]
struct Node {
    /// Lower is more aggressive.
    key: i64,
    left: u32,
    right: u32,
    parent: u32,
    /// Nodes on the way down the right side, this one included. Never more than the right child's plus one.
    rank: u32,
}

impl OwnBooks {
    /// For orders in slots below `orders`, and at most `books` (owner, instrument) pairs a day.
    pub(crate) fn new(orders: usize, books: usize) -> Self {
        Self {
            nodes: vec![Node::single(0); orders].into_boxed_slice(),
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

    /// Whether an incoming order could trade with an order of this book.
    #[inline]
    pub(crate) fn would_trade(&self, book: u32, side: Side, order_type: OrderType, price: Price) -> bool {
        if book == NIL {
            return false;
        }
        let best = self.roots[book as usize][side_index(side.opposite())];
        if best == NIL {
            return false;
        }
        let best_key = self.nodes[best as usize].key;
        match (order_type, side) {
            (OrderType::Market, _) => true,
            (OrderType::Limit, Side::Buy) => best_key <= price.0,
            // The key of a resting buy is its price with all bits turned.
            (OrderType::Limit, Side::Sell) => !best_key >= price.0,
        }
    }

    /// Enters the order in `slot`, which is in no book.
    #[inline]
    pub(crate) fn insert(&mut self, book: u32, side: Side, price: Price, slot: u32) {
        self.nodes[slot as usize] = Node::single(key(side, price));
        let root = &mut self.roots[book as usize][side_index(side)];
        let merged = merge(&mut self.nodes, *root, slot);
        *root = merged;
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
            return;
        }
        let above = &mut self.nodes[parent as usize];
        if above.left == slot {
            above.left = rest;
        } else {
            above.right = rest;
        }
        // Ranks above change at most along one path, and the walk ends where nothing changes.
        let mut up = parent;
        while up != NIL && settle(&mut self.nodes, up) {
            up = self.nodes[up as usize].parent;
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

impl Node {
    const fn single(key: i64) -> Self {
        Self {
            key,
            left: NIL,
            right: NIL,
            parent: NIL,
            rank: 1,
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

const fn rank(nodes: &[Node], slot: u32) -> u32 {
    if slot == NIL { 0 } else { nodes[slot as usize].rank }
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
    let right = merge(nodes, nodes[top as usize].right, below);
    nodes[right as usize].parent = top;
    nodes[top as usize].right = right;
    settle(nodes, top);
    top
}

/// Puts the child of the lower rank on the right of `slot`, corrects its rank, and tells whether the rank changed.
fn settle(nodes: &mut [Node], slot: u32) -> bool {
    let Node { left, right, .. } = nodes[slot as usize];
    let (left_rank, right_rank) = (rank(nodes, left), rank(nodes, right));
    let node = &mut nodes[slot as usize];
    if left_rank < right_rank {
        node.left = right;
        node.right = left;
    }
    let rank = left_rank.min(right_rank) + 1;
    let changed = rank != node.rank;
    node.rank = rank;
    changed
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn assert_leftist(nodes: &[Node], slot: u32) {
        if slot == NIL {
            return;
        }
        let node = nodes[slot as usize];
        assert!(rank(nodes, node.left) >= rank(nodes, node.right));
        assert_eq!(node.rank, rank(nodes, node.right) + 1);
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
            assert_eq!(
                own.would_trade(book, side, OrderType::Limit, Price(price)),
                trades,
                "{side:?} {price}"
            );
        }
        assert!(own.would_trade(book, Side::Buy, OrderType::Market, Price::NULL));
        assert!(!own.would_trade(NIL, Side::Buy, OrderType::Market, Price::NULL));
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
                    let trades = model.values().any(|&resting| match side {
                        Side::Buy => resting >= price,
                        Side::Sell => resting <= price,
                    });
                    prop_assert_eq!(own.would_trade(book, side.opposite(), OrderType::Limit, Price(price)), trades);
                }
            }
        }
    }
}
