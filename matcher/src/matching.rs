//! The trades: an incoming order against the other side's queue.

use crate::event::{OwnerId, SelfMatch, Sweep};
use crate::ladder;
use crate::matcher::Matcher;
use crate::pool::NONE;
use crate::record::{Order, Taker, side_index};
use crate::report::{Report, Sink, Trade};
use types::{OrderId, Price, Quantity, Reason};

impl Matcher {
    /// Trades an incoming order until it is filled or reaches nothing more. A reason when it must not go on or rest.
    pub(crate) fn trade(&mut self, taker: &mut Taker, sink: &mut impl Sink) -> Option<Reason> {
        let opposite = side_index(taker.side.opposite());
        let guarded = self.self_match == SelfMatch::CancelNewest && taker.owner != OwnerId::NONE;
        while taker.leaves > 0 {
            let (key, level_slot) = self.books[taker.book.0 as usize].sides[opposite].best()?;
            if key < taker.threshold {
                return None;
            }
            let mut level = self.levels[level_slot];
            let mut stopped = None;
            while level.head != NONE && taker.leaves > 0 {
                let maker = &mut self.orders[level.head];
                if guarded && maker.owner == taker.owner {
                    stopped = Some(Reason::SelfMatch);
                    break;
                }
                level.volume -= fill(taker, maker, level.price, sink);
                if maker.leaves == 0 {
                    let (slot, id) = (level.head, maker.id);
                    level.head = maker.next;
                    level.count -= 1;
                    self.index.remove(id, slot);
                    self.orders.release(slot);
                }
            }
            if level.head == NONE {
                self.books[taker.book.0 as usize].sides[opposite].remove(&mut self.nodes, key);
                self.levels.release(level_slot);
            } else {
                self.orders[level.head].prev = NONE;
                self.levels[level_slot] = level;
            }
            if stopped.is_some() {
                return stopped;
            }
        }
        None
    }

    /// Trades `sweep` with those resting orders, in priority, that `reached` takes, and passes the others by.
    /// The lots that are left; nothing of it rests. Self-match prevention does not apply.
    ///
    /// The simulator lets recorded history meet live orders by it: a recorded execution must fill the live orders ahead
    /// of the recorded one, and nobody else.
    pub fn sweep(
        &mut self,
        sweep: &Sweep,
        reached: impl Fn(OrderId, OwnerId) -> bool,
        sink: &mut impl Sink,
    ) -> Quantity {
        let side = sweep.side.opposite();
        let mut taker = Taker {
            id: sweep.taker.0,
            book: sweep.book,
            owner: sweep.owner,
            side: sweep.side,
            leaves: sweep.quantity.0,
            threshold: ladder::key(side, sweep.limit),
        };
        let mut next = self.ladder(sweep.book, side).best();
        'levels: while let Some((key, level)) = next.filter(|&(key, _)| key >= taker.threshold) {
            let price = self.levels[level].price;
            let mut slot = self.levels[level].head;
            while slot != NONE {
                let maker = &mut self.orders[slot];
                if taker.leaves == 0 || sweep.before == Some(OrderId(maker.id)) {
                    break 'levels;
                }
                let after = maker.next;
                if reached(OrderId(maker.id), maker.owner) {
                    self.levels[level].volume -= fill(&mut taker, maker, price, sink);
                    if maker.leaves == 0 {
                        let id = maker.id;
                        self.unlink(slot);
                        self.index.remove(id, slot);
                        self.orders.release(slot);
                    }
                }
                slot = after;
            }
            next = self.ladder(sweep.book, side).below(&self.nodes, key);
        }
        self.end_of_event(sweep.book);
        Quantity(taker.leaves)
    }
}

/// One trade. The lots traded.
#[inline]
fn fill(taker: &mut Taker, maker: &mut Order, price: Price, sink: &mut impl Sink) -> u64 {
    let quantity = taker.leaves.min(maker.leaves);
    taker.leaves -= quantity;
    maker.leaves -= quantity;
    sink.report(Report::Trade(Trade {
        book: taker.book,
        taker: OrderId(taker.id),
        taker_owner: taker.owner,
        taker_side: taker.side,
        taker_leaves: Quantity(taker.leaves),
        maker: OrderId(maker.id),
        maker_owner: maker.owner,
        maker_leaves: Quantity(maker.leaves),
        price,
        quantity: Quantity(quantity),
    }));
    quantity
}
