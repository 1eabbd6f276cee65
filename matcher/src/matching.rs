//! The trades: an incoming order against the other side's queue.

use crate::event::{OwnerId, SelfMatch};
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::{LevelRecord, Order, Taker, side_index};
use crate::report::{Report, Sink, Trade};
use types::{OrderId, Price, Quantity, Reason};

impl Matcher {
    /// Trades an incoming order until it is filled or reaches nothing more. A reason when it must not go on or rest.
    pub(crate) fn trade(&mut self, taker: &mut Taker, sink: &mut impl Sink) -> Option<Reason> {
        let opposite = side_index(taker.side.opposite());
        let guarded = self.self_match != SelfMatch::Allow && taker.owner != OwnerId::NONE;
        let (mut first, mut last) = (Price::NULL, Price::NULL);
        let mut stopped = None;
        while taker.leaves > 0 && stopped.is_none() {
            let best = self.books[taker.book.0 as usize].sides[opposite].best();
            let Some((_, level_slot)) = best.filter(|&(key, _)| key >= taker.threshold) else {
                break;
            };
            let mut level = self.levels[level_slot];
            while level.head != NONE && taker.leaves > 0 {
                let slot = level.head;
                if guarded && self.orders[slot].owner == taker.owner {
                    stopped = self.meet_own(taker, &mut level, sink);
                    if stopped.is_some() {
                        break;
                    }
                    continue;
                }
                if taker.trades == 0 {
                    stopped = Some(Reason::Unfilled);
                    break;
                }
                let quantity = self.fill(taker, slot, level.price, sink);
                last = level.price;
                if first.is_null() {
                    first = last;
                }
                self.take_from_head(&mut level, quantity, sink);
            }
            self.put_back(level_slot, &level);
        }
        if !last.is_null() {
            self.note_trades(taker.book, first, last);
        }
        stopped
    }

    /// One trade. The lots traded.
    #[inline]
    pub(crate) fn fill(&mut self, taker: &mut Taker, slot: u32, price: Price, sink: &mut impl Sink) -> u64 {
        let maker = &self.orders[slot];
        let quantity = taker.leaves.min(maker.lots());
        taker.leaves -= quantity;
        taker.trades -= 1;
        let hidden = maker.terms().map_or(0, |terms| self.terms[terms].hidden);
        sink.report(Report::Trade(Trade {
            book: taker.book,
            taker: OrderId(taker.id),
            taker_owner: taker.owner,
            taker_side: taker.side,
            taker_leaves: Quantity(taker.leaves),
            maker: OrderId(maker.id),
            maker_owner: maker.owner,
            maker_leaves: Quantity(maker.lots() - quantity + hidden),
            price,
            quantity: Quantity(quantity),
        }));
        quantity
    }

    /// Remembers at which prices a book traded, for stops and for those who ask.
    #[inline]
    pub(crate) fn note_trades(&mut self, book: crate::BookIndex, first: Price, last: Price) {
        let touched = &mut self.books[book.0 as usize];
        touched.last = last;
        if touched.is_watched {
            self.aside[book.0 as usize].note_trades(first, last);
        }
    }

    /// Takes lots from the first order of a level that is being worked on. A plain order that has no more is gone.
    #[inline]
    fn take_from_head(&mut self, level: &mut LevelRecord, lots: u64, sink: &mut impl Sink) {
        let slot = level.head;
        let order = &mut self.orders[slot];
        order.take(lots);
        level.volume -= lots;
        if order.is_done() {
            // Its entry in the index stays until its slot is given out again: taking it out here would be a cache miss for
            // each order that a large one trades with, and the tail is made of those.
            level.head = order.next;
            level.count -= 1;
            self.orders.release(slot);
        } else if order.lots() == 0 {
            self.end_slice(level, sink);
        }
    }

    /// The first order of a level that is being worked on has terms, and nothing more that it shows: it shows more, at
    /// the end of the queue, or is gone.
    #[cold]
    fn end_slice(&mut self, level: &mut LevelRecord, sink: &mut impl Sink) {
        let slot = level.head;
        level.head = self.orders[slot].next;
        level.count -= 1;
        let lots = self.next_slice(slot);
        if lots == 0 {
            return self.forget(level.book(), slot);
        }
        let tail = if level.head == NONE { NONE } else { level.tail };
        if tail == NONE {
            level.head = slot;
        } else {
            self.orders[tail].next = slot;
        }
        level.tail = slot;
        level.count += 1;
        level.volume += lots;
        let order = &mut self.orders[slot];
        (order.prev, order.next) = (tail, NONE);
        sink.report(Report::Replenished(self.resting_order(slot)));
    }

    /// Lets an iceberg show its next lots. How many; 0 when there are no more.
    pub(crate) fn next_slice(&mut self, slot: u32) -> u64 {
        let Some(terms) = self.orders[slot].terms() else {
            return 0;
        };
        let terms = &mut self.terms[terms];
        let lots = terms.hidden.min(terms.asked.display.0);
        terms.hidden -= lots;
        self.orders[slot].set_lots(lots);
        lots
    }

    /// The first order of a level is of the incoming one's owner. A reason when the incoming one must not go on.
    #[cold]
    fn meet_own(&mut self, taker: &mut Taker, level: &mut LevelRecord, sink: &mut impl Sink) -> Option<Reason> {
        match self.self_match {
            SelfMatch::Allow => None,
            SelfMatch::CancelNewest => Some(Reason::SelfMatch),
            SelfMatch::CancelOldest => {
                self.cancel_head(level, sink);
                None
            }
            SelfMatch::CancelBoth => {
                self.cancel_head(level, sink);
                Some(Reason::SelfMatch)
            }
            SelfMatch::Decrement => {
                self.decrement(taker, level, sink);
                None
            }
        }
    }

    /// Cancels the first order of a level that is being worked on.
    fn cancel_head(&mut self, level: &mut LevelRecord, sink: &mut impl Sink) {
        let slot = level.head;
        let Order { id, owner, next, .. } = self.orders[slot];
        level.volume -= self.orders[slot].lots();
        level.head = next;
        level.count -= 1;
        let quantity = self.open_lots(slot);
        self.forget(level.book(), slot);
        sink.report(Report::Canceled {
            id: OrderId(id),
            owner,
            quantity,
            reason: Reason::SelfMatch,
        });
    }

    /// Both orders lose what they would have traded. Icebergs by what they show.
    fn decrement(&mut self, taker: &mut Taker, level: &mut LevelRecord, sink: &mut impl Sink) {
        let slot = level.head;
        let maker = self.orders[slot];
        let lots = taker.leaves.min(maker.lots());
        taker.leaves -= lots;
        let left = self.open_lots(slot).0 - lots;
        for (id, owner, left) in [(maker.id, maker.owner, left), (taker.id, taker.owner, taker.leaves)] {
            sink.report(if left > 0 {
                Report::Reduced {
                    id: OrderId(id),
                    quantity: Quantity(lots),
                    leaves: Quantity(left),
                }
            } else {
                Report::Canceled {
                    id: OrderId(id),
                    owner,
                    quantity: Quantity(lots),
                    reason: Reason::SelfMatch,
                }
            });
        }
        self.take_from_head(level, lots, sink);
    }

    /// Ends the work on a level, which was the best of its side.
    #[inline]
    fn put_back(&mut self, level_slot: u32, level: &LevelRecord) {
        if level.head == NONE {
            self.remove_level(level_slot, level.place());
        } else {
            self.orders[level.head].prev = NONE;
            self.levels[level_slot] = *level;
        }
    }
}
