//! The live books of instruments in which a shard holds orders. Each turn some of them are looked at, and one that asks an order
//! for anything becomes an input; the ticks between leave no trace.

use crate::limits::MAX_BOOKS_A_TURN;
use crate::live::Live;
use crate::record::Record;
use crate::shard::Shard;
use net::Link;

/// Looks at some of them. Returns whether there was anything to do.
pub(crate) fn turn<L: Link>(shard: &mut Shard, live: &mut Live<L>) -> bool {
    let mut is_busy = false;
    for _ in 0..shard.watched().min(MAX_BOOKS_A_TURN) {
        if !live.journal_has_room() {
            break;
        }
        let Some((watched, place, instrument)) = shard.next_watched() else {
            break;
        };
        let Some(bbo) = live.book(place) else {
            continue;
        };
        if shard.would_move(live.now, watched, &bbo) {
            live.append(&Record::BookMoved { instrument, bbo });
            live.set_book_time(Some(bbo.time));
            shard.on_book(live.now, instrument, &bbo, live);
            live.set_book_time(None);
            is_busy = true;
        }
    }
    is_busy
}
