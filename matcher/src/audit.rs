//! What must be true of the books between events. Debug builds look at the touched book's best levels after every
//! event; tests look at everything.

use crate::event::BookIndex;
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::Queue;
use types::{OrderId, Side};

/// What a walk saw.
#[derive(Clone, Copy, Default)]
struct Seen {
    orders: usize,
    levels: usize,
    special: usize,
}

impl Matcher {
    /// Walks all books and counts everything anew.
    ///
    /// # Panics
    /// When a rule is broken; the message says which.
    pub fn audit(&self) {
        let mut seen = Seen::default();
        for book in 0..self.books.len() {
            let book = BookIndex(u32::try_from(book).expect("MAX_BOOKS fits"));
            self.audit_book(book, usize::MAX, usize::MAX, &mut seen);
            self.audit_pegs(book);
        }
        assert_eq!(seen.orders, self.orders.in_use(), "an order is in no queue");
        let done = self.orders.iter().filter(|order| order.is_done()).count();
        assert_eq!(
            seen.orders + done,
            self.index.len(),
            "the index does not hold the orders"
        );
        assert_eq!(seen.levels, self.levels.in_use(), "a level is in no ladder");
        assert_eq!(seen.special, self.terms.in_use(), "terms have no order");
        for (place, &terms) in self.expiries.iter().enumerate() {
            let key = |terms: u32| (self.terms[terms].asked.expires, self.orders[self.terms[terms].slot].id);
            assert_eq!(self.terms[terms].expiry as usize, place, "an expiry is misplaced");
            assert!(
                place == 0 || key(self.expiries[(place - 1) / 2]) < key(terms),
                "expiries are out of order"
            );
        }
    }

    /// Ends what changed a book: its rules, in debug builds.
    #[inline]
    pub(crate) fn check(&mut self, book: BookIndex) {
        if cfg!(debug_assertions) {
            let touched = &mut self.books[book.0 as usize];
            touched.gathering &= touched.is_crossed();
            self.audit_book(book, LEVELS_EACH_EVENT, ORDERS_EACH_LEVEL, &mut Seen::default());
        }
    }

    /// Checks up to `levels` levels of each queue and `orders` orders in each.
    fn audit_book(&self, book: BookIndex, levels: usize, orders: usize, seen: &mut Seen) {
        let touched = &self.books[book.0 as usize];
        let may_cross = touched.gathering || touched.call.is_some();
        assert!(!touched.is_crossed() || may_cross, "{book:?} is crossed");
        assert_eq!(
            touched.is_watched,
            self.aside[book.0 as usize].is_watched(),
            "{book:?} is watched wrongly"
        );
        for queue in [Queue::Book, Queue::Stops, Queue::Held] {
            for side in [Side::Buy, Side::Sell] {
                let mut last_key = None;
                let ladder = self.ladder_of(book, queue, side);
                let walk = core::iter::successors(ladder.best(), |&(key, _)| ladder.below(&self.nodes, key));
                for (key, slot) in walk.take(levels) {
                    let place = self.levels[slot].place();
                    assert_eq!(
                        (place.book, place.queue, place.side, place.key()),
                        (book, queue, side, key),
                        "a level is misplaced"
                    );
                    assert!(last_key.is_none_or(|last| key < last), "{place:?} is out of order");
                    last_key = Some(key);
                    self.audit_level(slot, orders, seen);
                    seen.levels += 1;
                }
            }
        }
    }

    fn audit_level(&self, level_slot: u32, orders: usize, seen: &mut Seen) {
        let level = &self.levels[level_slot];
        let (mut count, mut volume, mut prev) = (0, 0, NONE);
        for slot in self.queue(level_slot).take(orders) {
            self.audit_order(slot, level_slot, prev, seen);
            count += 1;
            volume += self.orders[slot].lots();
            prev = slot;
        }
        seen.orders += count;
        if count < orders {
            assert_eq!(level.tail, prev, "the tail of level {} is wrong", level.price);
            assert_eq!(
                (level.count as usize, level.volume),
                (count, volume),
                "level {} counts wrongly",
                level.price
            );
        } else {
            assert!(
                level.count as usize >= count && level.volume >= volume,
                "level {} counts wrongly",
                level.price
            );
        }
    }

    fn audit_order(&self, slot: u32, level: u32, prev: u32, seen: &mut Seen) {
        let order = &self.orders[slot];
        let id = order.id;
        assert_eq!((order.level, order.prev), (level, prev), "order {id} is linked wrongly");
        assert!(order.lots() > 0, "order {id} rests with nothing");
        assert_eq!(self.find(OrderId(id)), Some(slot), "order {id} is not found");
        let Some(terms) = order.terms() else {
            assert_eq!(self.levels[level].queue(), Queue::Book, "order {id} waits for nothing");
            return;
        };
        seen.special += 1;
        let terms = &self.terms[terms];
        assert_eq!(terms.slot, slot, "the terms of order {id} are of another");
        let is_in_book = self.levels[level].queue() == Queue::Book;
        let display = terms.asked.display.0;
        assert!(
            terms.hidden == 0 || is_in_book && display > 0,
            "order {id} hides what it should not"
        );
        assert!(
            !is_in_book || display == 0 || order.lots() <= display,
            "order {id} shows too much"
        );
    }

    fn audit_pegs(&self, book: BookIndex) {
        let aside = &self.aside[book.0 as usize];
        let (mut place, mut prev) = (aside.peg_head, NONE);
        while place != NONE {
            let terms = &self.terms[place];
            assert!(
                terms.order_type.is_pegged() && terms.peg_prev == prev,
                "a peg is linked wrongly"
            );
            prev = place;
            place = terms.peg_next;
        }
        assert_eq!(aside.peg_tail, prev, "the last peg is wrong");
    }
}

/// Best levels of each queue that a debug build checks after an event.
const LEVELS_EACH_EVENT: usize = 3;
/// Orders of each of them.
const ORDERS_EACH_LEVEL: usize = 8;
