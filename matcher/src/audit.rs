//! What must be true of the books between events. Debug builds look at the touched book's best levels after every
//! event; tests look at everything.

use crate::event::BookIndex;
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::side_index;
use types::{OrderId, Side};

impl Matcher {
    /// Walks all books and counts everything anew.
    ///
    /// # Panics
    /// When a rule is broken; the message says which.
    pub fn audit(&self) {
        let (mut orders, mut levels) = (0, 0);
        for book in 0..self.books.len() {
            let book = BookIndex(u32::try_from(book).expect("MAX_BOOKS fits"));
            let (book_orders, book_levels) = self.audit_book(book, usize::MAX, usize::MAX);
            orders += book_orders;
            levels += book_levels;
        }
        assert_eq!(orders, self.orders.in_use(), "an order is in no queue");
        assert_eq!(orders, self.index.len(), "the index does not hold the orders");
        assert_eq!(levels, self.levels.in_use(), "a level is in no ladder");
    }

    /// Ends every event: the rules of the touched book, in debug builds.
    #[inline]
    pub(crate) fn end_of_event(&mut self, book: BookIndex) {
        if cfg!(debug_assertions) {
            let touched = &mut self.books[book.0 as usize];
            touched.gathering &= touched.is_crossed();
            self.audit_book(book, LEVELS_EACH_EVENT, ORDERS_EACH_LEVEL);
        }
    }

    /// Checks up to `levels` levels a side and `orders` orders in each. How many orders and levels it saw.
    fn audit_book(&self, book: BookIndex, levels: usize, orders: usize) -> (usize, usize) {
        let touched = &self.books[book.0 as usize];
        assert!(!touched.is_crossed() || touched.gathering, "{book:?} is crossed");
        let (mut order_count, mut level_count) = (0, 0);
        for side in [Side::Buy, Side::Sell] {
            let mut last_price = None;
            for slot in self.level_slots(book, side).take(levels) {
                let level = &self.levels[slot];
                assert_eq!(
                    (level.book(), side_index(level.side())),
                    (book, side_index(side)),
                    "a level is misplaced"
                );
                if let Some(last) = last_price {
                    let worse = if side == Side::Buy {
                        level.price < last
                    } else {
                        level.price > last
                    };
                    assert!(worse, "{book:?} {side:?}: {} after {last}", level.price);
                }
                last_price = Some(level.price);
                order_count += self.audit_level(slot, orders);
                level_count += 1;
            }
        }
        (order_count, level_count)
    }

    fn audit_level(&self, level_slot: u32, orders: usize) -> usize {
        let level = &self.levels[level_slot];
        let (mut count, mut volume, mut prev) = (0, 0, NONE);
        for slot in self.queue(level_slot).take(orders) {
            let order = &self.orders[slot];
            assert_eq!(
                (order.level, order.prev),
                (level_slot, prev),
                "order {} is linked wrongly",
                order.id
            );
            assert!(order.leaves > 0, "order {} rests with nothing", order.id);
            assert_eq!(
                self.find(OrderId(order.id)),
                Some(slot),
                "order {} is not found",
                order.id
            );
            count += 1;
            volume += order.leaves;
            prev = slot;
        }
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
        count
    }
}

/// Best levels of each side that a debug build checks after an event.
const LEVELS_EACH_EVENT: usize = 3;
/// Orders of each of them.
const ORDERS_EACH_LEVEL: usize = 8;
