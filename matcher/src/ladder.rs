//! The price levels of one side of one book, in order.
//!
//! A B+ tree of keys. A key is the price for bids and its complement for offers (`key`), so that on either side the
//! best level has the greatest key, sits at the end of the last leaf, and comes and goes there without moving others.
//! Levels crowded around the best one share a leaf, and nearly every event touches that leaf only: searches try it
//! before they walk down from the root. A price far from the rest is one more key and costs the height of the tree.
//!
//! All ladders of a matcher take their nodes from one pool. A node other than a root is at least half full, therefore
//! the number of levels bounds the number of nodes (`nodes_needed`) and an insertion never fails.
//!
//! Leaves and inner nodes are the same struct: the value of a key in a leaf is a level; above, it is a node, all of whose
//! keys are at or above that key. An insertion below the first key of an inner node lowers that key; a removal leaves it.

use crate::pool::{NONE, Pool};
use types::{Price, Side};

/// The levels of one side: a tree, with its best level at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    /// Key of the best level; meaningless when there is none.
    best_key: i64,
    /// The best level, or [`NONE`].
    best_level: u32,
    root: u32,
    /// The leaf with the greatest keys.
    last: u32,
    /// Steps from the root to a leaf.
    height: u32,
}

/// Where the nodes of all ladders live.
pub(crate) type Nodes = Pool<Node>;

/// Key of a price: the better the price, the greater the key.
pub(crate) const fn key(side: Side, price: Price) -> i64 {
    match side {
        Side::Buy => price.0,
        Side::Sell => !price.0,
    }
}

/// Price of a key: the inverse of [`key()`].
pub(crate) const fn price(side: Side, key: i64) -> Price {
    // The complement is its own inverse.
    Price(self::key(side, Price(key)))
}

/// Nodes that `ladders` ladders with `levels` levels in all can need: one for each that is in use, and for the larger
/// ones a leaf for every `MIN` levels with the inner nodes above (less than a twelfth more, and a root).
pub(crate) const fn nodes_needed(ladders: usize, levels: usize) -> usize {
    let in_use = if ladders < levels { ladders } else { levels };
    in_use + levels / 8 + 1
}

impl Ladder {
    pub(crate) const EMPTY: Self = Self {
        best_key: i64::MIN,
        best_level: NONE,
        root: NONE,
        last: NONE,
        height: 0,
    };

    /// Key and level of the best price.
    #[inline]
    pub(crate) fn best(&self) -> Option<(i64, u32)> {
        (self.best_level != NONE).then_some((self.best_key, self.best_level))
    }

    /// The level with this key.
    pub(crate) fn get(&self, nodes: &Nodes, key: i64) -> Option<u32> {
        if self.root == NONE {
            return None;
        }
        let leaf = if self.in_last_leaf(nodes, key) {
            self.last
        } else {
            self.walk(nodes, key).0
        };
        let node = &nodes[leaf];
        let above = node.at_or_below(key);
        (above > 0 && node.keys[above - 1] == key).then(|| node.values[above - 1])
    }

    /// Key and level of the best price that is worse than `key`.
    pub(crate) fn below(&self, nodes: &Nodes, key: i64) -> Option<(i64, u32)> {
        if self.root == NONE {
            return None;
        }
        // The node to the left of the way down, as deep as there is one.
        let (mut at, mut left) = (self.root, None);
        for depth in 0..self.height {
            let node = &nodes[at];
            let child = node.below(key).saturating_sub(1);
            if child > 0 {
                left = Some((node.values[child - 1], self.height - depth - 1));
            }
            at = node.values[child];
        }
        let count = nodes[at].below(key);
        if count > 0 {
            return Some(nodes[at].entry(count - 1));
        }
        let (mut at, height) = left?;
        for _ in 0..height {
            at = nodes[at].last().1;
        }
        Some(nodes[at].last())
    }

    /// Puts in a level whose key is not there yet.
    pub(crate) fn insert(&mut self, nodes: &mut Nodes, key: i64, level: u32) {
        if self.root == NONE {
            self.root = nodes.allocate(Node::BLANK);
            self.last = self.root;
        }
        if self.in_last_leaf(nodes, key) && nodes[self.last].length() < FANOUT {
            let node = &mut nodes[self.last];
            node.insert(node.at_or_below(key), key, level);
        } else {
            self.insert_from_root(nodes, key, level);
        }
        if self.best_level == NONE || key > self.best_key {
            (self.best_key, self.best_level) = (key, level);
        }
    }

    /// Takes out the level with this key, which is there.
    pub(crate) fn remove(&mut self, nodes: &mut Nodes, key: i64) {
        if self.in_last_leaf(nodes, key) && (self.height == 0 || nodes[self.last].length() > MIN) {
            nodes[self.last].take(key);
            if nodes[self.last].length() == 0 {
                nodes.release(self.root);
                *self = Self::EMPTY;
                return;
            }
        } else {
            self.remove_from_root(nodes, key);
        }
        (self.best_key, self.best_level) = nodes[self.last].last();
    }

    /// Whether `key` belongs in the last leaf.
    #[inline]
    fn in_last_leaf(&self, nodes: &Nodes, key: i64) -> bool {
        self.height == 0 || key >= nodes[self.last].keys[0]
    }

    /// The leaf where `key` belongs, and the way to it.
    fn walk(&self, nodes: &Nodes, key: i64) -> (u32, Path) {
        let mut path = [(NONE, 0); HEIGHT_MAX];
        let mut at = self.root;
        for step in &mut path[..self.height as usize] {
            let child = nodes[at].at_or_below(key).saturating_sub(1);
            *step = (at, child);
            at = nodes[at].values[child];
        }
        (at, path)
    }

    fn insert_from_root(&mut self, nodes: &mut Nodes, key: i64, level: u32) {
        let (leaf, path) = self.walk(nodes, key);
        let way = &path[..self.height as usize];
        for &(inner, _) in way {
            nodes[inner].keys[0] = nodes[inner].keys[0].min(key);
        }
        let position = nodes[leaf].at_or_below(key);
        let mut carry = Node::insert_or_split(nodes, leaf, position, key, level);
        for &(parent, child) in way.iter().rev() {
            let Some((key, node)) = carry else { break };
            carry = Node::insert_or_split(nodes, parent, child + 1, key, node);
        }
        if let Some((key, node)) = carry {
            let mut root = Node::BLANK;
            root.insert(0, nodes[self.root].keys[0], self.root);
            root.insert(1, key, node);
            self.root = nodes.allocate(root);
            self.height += 1;
        }
        self.find_last_leaf(nodes);
    }

    fn remove_from_root(&mut self, nodes: &mut Nodes, key: i64) {
        let (leaf, path) = self.walk(nodes, key);
        nodes[leaf].take(key);
        let mut at = leaf;
        for &(parent, child) in path[..self.height as usize].iter().rev() {
            if nodes[at].length() >= MIN {
                break;
            }
            Node::refill(nodes, parent, child);
            at = parent;
        }
        if self.height > 0 && nodes[self.root].length() == 1 {
            let only = nodes[self.root].values[0];
            nodes.release(self.root);
            self.root = only;
            self.height -= 1;
        }
        self.find_last_leaf(nodes);
    }

    fn find_last_leaf(&mut self, nodes: &Nodes) {
        self.last = self.root;
        for _ in 0..self.height {
            self.last = nodes[self.last].last().1;
        }
    }
}

/// The inner nodes from the root down, each with the child that was taken.
type Path = [(u32, usize); HEIGHT_MAX];

/// Sorted keys with their values. Five cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Node {
    keys: [i64; FANOUT],
    values: [u32; FANOUT],
    length: u32,
}

impl Node {
    pub(crate) const BLANK: Self = Self {
        keys: [0; FANOUT],
        values: [0; FANOUT],
        length: 0,
    };

    const fn length(&self) -> usize {
        self.length as usize
    }

    const fn entry(&self, at: usize) -> (i64, u32) {
        (self.keys[at], self.values[at])
    }

    const fn last(&self) -> (i64, u32) {
        self.entry(self.length() - 1)
    }

    /// How many keys are `key` or less.
    #[inline]
    fn at_or_below(&self, key: i64) -> usize {
        self.keys[..self.length()].partition_point(|&other| other <= key)
    }

    /// How many keys are less than `key`.
    fn below(&self, key: i64) -> usize {
        self.keys[..self.length()].partition_point(|&other| other < key)
    }

    fn insert(&mut self, at: usize, key: i64, value: u32) {
        let length = self.length();
        self.keys.copy_within(at..length, at + 1);
        self.values.copy_within(at..length, at + 1);
        self.keys[at] = key;
        self.values[at] = value;
        self.length += 1;
    }

    fn remove(&mut self, at: usize) {
        let length = self.length();
        self.keys.copy_within(at + 1..length, at);
        self.values.copy_within(at + 1..length, at);
        self.length -= 1;
    }

    /// Removes `key` from a leaf.
    ///
    /// # Panics
    /// When it is not there: levels are removed once.
    fn take(&mut self, key: i64) {
        let count = self.at_or_below(key);
        assert!(count > 0 && self.keys[count - 1] == key, "no level has the key {key}");
        self.remove(count - 1);
    }

    /// Moves the first `count` entries of `source` to the end.
    fn append_from(&mut self, source: &mut Self, count: usize) {
        let (length, rest) = (self.length(), source.length() - count);
        self.keys[length..length + count].copy_from_slice(&source.keys[..count]);
        self.values[length..length + count].copy_from_slice(&source.values[..count]);
        source.keys.copy_within(count..count + rest, 0);
        source.values.copy_within(count..count + rest, 0);
        self.resize(length + count);
        source.resize(rest);
    }

    /// Moves all entries from `at` on to the front of `target`.
    fn prepend_to(&mut self, target: &mut Self, at: usize) {
        let (count, length) = (self.length() - at, target.length());
        target.keys.copy_within(..length, count);
        target.values.copy_within(..length, count);
        target.keys[..count].copy_from_slice(&self.keys[at..at + count]);
        target.values[..count].copy_from_slice(&self.values[at..at + count]);
        target.resize(length + count);
        self.resize(at);
    }

    #[allow(clippy::cast_possible_truncation, reason = "at most FANOUT")]
    const fn resize(&mut self, length: usize) {
        self.length = length as u32;
    }

    /// Inserts into the node at `at`. A full one is split first: the new right half is what its parent must take.
    fn insert_or_split(nodes: &mut Nodes, at: u32, position: usize, key: i64, value: u32) -> Option<(i64, u32)> {
        if nodes[at].length() < FANOUT {
            nodes[at].insert(position, key, value);
            return None;
        }
        let mut right = Self::BLANK;
        nodes[at].prepend_to(&mut right, MIN);
        if position <= MIN {
            nodes[at].insert(position, key, value);
        } else {
            right.insert(position - MIN, key, value);
        }
        Some((right.keys[0], nodes.allocate(right)))
    }

    /// Brings the `child`-th child of `parent`, which is below [`MIN`], back to it: out of a neighbour, or together
    /// with it in one node.
    fn refill(nodes: &mut Nodes, parent: u32, child: usize) {
        let right_index = child.max(1);
        let (left, right) = (nodes[parent].values[right_index - 1], nodes[parent].values[right_index]);
        let (mut left_node, mut right_node) = (nodes[left], nodes[right]);
        let total = left_node.length() + right_node.length();
        if total < 2 * MIN {
            left_node.append_from(&mut right_node, total - left_node.length());
            nodes.release(right);
            nodes[parent].remove(right_index);
        } else {
            let half = total / 2;
            if left_node.length() > half {
                left_node.prepend_to(&mut right_node, half);
            } else {
                left_node.append_from(&mut right_node, half - left_node.length());
            }
            nodes[parent].keys[right_index] = right_node.keys[0];
            nodes[right] = right_node;
        }
        nodes[left] = left_node;
    }
}

/// Entries of a node: what fills five cache lines.
const FANOUT: usize = 26;
/// Fewest entries of a node that is not a root.
const MIN: usize = FANOUT / 2;
/// Most inner nodes on a way: thirteen to the eighth is above the number of levels a `u32` can name in half.
const HEIGHT_MAX: usize = 8;

const _: () = assert!(size_of::<Node>() == 320);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    /// Every rule of the tree, from the root down.
    fn check(ladder: &Ladder, nodes: &Nodes, map: &BTreeMap<i64, u32>) {
        assert_eq!(ladder.best(), map.last_key_value().map(|(&key, &level)| (key, level)));
        let mut entries = Vec::new();
        let mut used = 0;
        if ladder.root != NONE {
            visit(ladder, nodes, ladder.root, ladder.height, None, &mut entries, &mut used);
        }
        assert_eq!(
            entries,
            map.iter().map(|(&key, &level)| (key, level)).collect::<Vec<_>>()
        );
        assert_eq!(nodes.in_use(), used, "a node was lost");
        let mut found = *ladder;
        if ladder.root != NONE {
            found.find_last_leaf(nodes);
        }
        assert_eq!(ladder.last, found.last);
        assert!(
            used <= nodes_needed(1, map.len()),
            "{used} nodes for {} levels",
            map.len()
        );
    }

    fn visit(
        ladder: &Ladder,
        nodes: &Nodes,
        at: u32,
        height: u32,
        bound: Option<i64>,
        entries: &mut Vec<(i64, u32)>,
        used: &mut usize,
    ) {
        *used += 1;
        let node = &nodes[at];
        assert!(at == ladder.root || node.length() >= MIN);
        assert!(
            bound.is_none_or(|bound| bound <= node.keys[0]),
            "a bound is above its keys"
        );
        assert!(node.keys[..node.length()].is_sorted());
        for index in 0..node.length() {
            let (key, value) = node.entry(index);
            if height == 0 {
                entries.push((key, value));
            } else {
                visit(ladder, nodes, value, height - 1, Some(key), entries, used);
            }
        }
    }

    fn run(steps: impl Iterator<Item = (i64, bool)>, check_every: usize) {
        let mut nodes = Nodes::new(nodes_needed(1, 4_096), Node::BLANK);
        let (mut ladder, mut map) = (Ladder::EMPTY, BTreeMap::new());
        for (count, (key, insert)) in steps.enumerate() {
            let level = u32::try_from(count).unwrap();
            if insert && !map.contains_key(&key) {
                ladder.insert(&mut nodes, key, level);
                map.insert(key, level);
            } else if !insert && let Some((&key, _)) = map.range(key..).next() {
                ladder.remove(&mut nodes, key);
                map.remove(&key);
            }
            assert_eq!(ladder.get(&nodes, key), map.get(&key).copied());
            let below = map.range(..key).next_back().map(|(&key, &level)| (key, level));
            assert_eq!(ladder.below(&nodes, key), below);
            if count % check_every == 0 {
                check(&ladder, &nodes, &map);
            }
        }
        for (key, _) in core::mem::take(&mut map) {
            ladder.remove(&mut nodes, key);
        }
        check(&ladder, &nodes, &map);
    }

    #[test]
    fn three_storeys_rise_and_fall_from_either_end() {
        let rising = (0..4_000).map(|key| (key, true));
        let falling = (0..4_000).map(|key| (-key, true));
        for gone in [|key| key, |key| 3_999 - key] {
            run(rising.clone().chain((0..4_000).map(|key| (gone(key), false))), 50);
            run(falling.clone().chain((0..4_000).map(|key| (-gone(key), false))), 50);
        }
    }

    #[test]
    fn the_ends_of_the_number_line_are_prices_like_others() {
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        run(ends.into_iter().map(|key| (key, true)), 1);
    }

    #[test]
    fn a_better_price_has_a_greater_key() {
        let prices = [Price(i64::MIN + 1), Price(-5), Price(0), Price(7), Price(i64::MAX)];
        for pair in prices.windows(2) {
            assert!(key(Side::Buy, pair[1]) > key(Side::Buy, pair[0]));
            assert!(key(Side::Sell, pair[1]) < key(Side::Sell, pair[0]));
            assert_eq!(price(Side::Sell, key(Side::Sell, pair[0])), pair[0]);
        }
    }

    proptest! {
        /// Dense and sparse keys mixed; inserts outweigh removals first, then removals inserts.
        #[test]
        fn it_holds_what_a_map_holds(
            steps in prop::collection::vec(
                (prop_oneof![3 => 0_i64..200, 1 => any::<i64>()], 0_u8..10), 1..1_500),
        ) {
            let half = steps.len() / 2;
            run(steps.into_iter().enumerate().map(|(at, (key, weight))| (key, weight < if at < half { 8 } else { 3 })), 7);
        }
    }
}
