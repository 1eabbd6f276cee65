//! What an order would trade if it came in now: for all-or-nothing, minimum quantity and post-only.

use crate::event::{BookIndex, OwnerId, SelfMatch};
use crate::matcher::Matcher;
use crate::record::Taker;
use types::Side;

impl Matcher {
    /// Whether an order with this `threshold` reaches any order of the other side.
    pub(crate) fn would_meet(&self, book: BookIndex, side: Side, threshold: i64) -> bool {
        self.ladder(book, side.opposite())
            .best()
            .is_some_and(|(key, _)| key >= threshold)
    }

    /// Lots that an incoming order would trade, but no more than `wanted` are counted.
    ///
    /// Where an own order ends the incoming one, or takes lots from it without a trade, only what stands before the first
    /// of these counts.
    pub(crate) fn reach(&self, taker: &Taker, wanted: u64) -> u64 {
        let side = taker.side.opposite();
        let guarded = self.self_match != SelfMatch::Allow && taker.owner != OwnerId::NONE;
        let mut reached = 0;
        let mut next = self.ladder(taker.book, side).best();
        while let Some((key, level)) = next.filter(|&(key, _)| key >= taker.threshold) {
            if reached >= wanted {
                break;
            }
            if !guarded {
                reached += self.all_lots(level);
            } else if self.self_match == SelfMatch::CancelOldest {
                let others = self.queue(level).filter(|&slot| self.orders[slot].owner != taker.owner);
                reached += others.map(|slot| self.open_lots(slot).0).sum::<u64>();
            } else if self.queue(level).all(|slot| self.orders[slot].owner != taker.owner) {
                reached += self.all_lots(level);
            } else {
                // What icebergs do not show comes behind the own order.
                let before = self
                    .queue(level)
                    .take_while(|&slot| self.orders[slot].owner != taker.owner);
                reached += before.map(|slot| self.orders[slot].lots()).sum::<u64>();
                break;
            }
            next = self.ladder(taker.book, side).below(&self.nodes, key);
        }
        reached.min(wanted)
    }

    /// Lots of a level, hidden ones too.
    pub(crate) fn all_lots(&self, level: u32) -> u64 {
        let record = &self.levels[level];
        if self.aside[record.book().0 as usize].icebergs == 0 {
            return record.volume;
        }
        self.queue(level).map(|slot| self.open_lots(slot).0).sum()
    }
}
