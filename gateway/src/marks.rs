//! Values positions anew as the market moves: rounds over the positions of a shard, some of them each turn. One whose price is
//! another than its mark becomes an input.

use crate::limits::MAX_MARKS_A_TURN;
use crate::live::Live;
use crate::record::Record;
use crate::shard::Shard;
use net::Link;
use types::{Duration, Timestamp};

/// How far the round is.
#[derive(Debug)]
pub(crate) struct Marks {
    /// From the begin of a round to that of the next, at least.
    every: Duration,
    /// When the next round may begin.
    due: Timestamp,
    /// The position that is looked at next; `None` between two rounds.
    next: Option<u32>,
}

impl Marks {
    /// The first round begins at once.
    pub(crate) const fn new(every: Duration) -> Self {
        Self {
            every,
            due: Timestamp::NONE,
            next: None,
        }
    }

    /// Looks at some positions. Returns whether the round goes on.
    #[inline]
    pub(crate) fn turn<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>) -> bool {
        let now = live.now;
        let next = match self.next {
            Some(next) => next,
            None if now < self.due => return false,
            None => {
                self.due = now + self.every;
                0
            }
        };
        self.go_on(next, shard, live)
    }

    fn go_on<L: Link>(&mut self, mut next: u32, shard: &mut Shard, live: &mut Live<L>) -> bool {
        let positions = shard.orders().positions();
        let end = positions.min(next.saturating_add(MAX_MARKS_A_TURN));
        while next < end && live.journal_has_room() {
            if let Some(mark) = shard.mark_due(live.now, next, |place| live.book(place)) {
                live.append(&Record::Marked(mark));
                shard.on_mark(live.now, &mark, live);
            }
            next += 1;
        }
        self.next = (next < positions).then_some(next);
        self.next.is_some()
    }
}
