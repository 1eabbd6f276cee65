//! Orders that the shard holds because their venue lacks their type: the book that they watch, and what they send.

use super::{Shard, send_to_venue, venue_bit};
use crate::effects::Effects;
use crate::places::InstrumentPlace;
use orders::{HeldStep, Watched};
use types::{Bbo, InstrumentId, Request, Timestamp, VenueId};

impl Shard {
    /// The book of an instrument asks held orders for something.
    pub fn on_book<E: Effects>(&mut self, now: Timestamp, instrument: InstrumentId, book: &Bbo, effects: &mut E) {
        self.instruments.set_book(instrument, book);
        self.orders.on_book(now, instrument, book);
        self.send_waiting(now, effects);
    }

    /// Instruments whose books held orders watch.
    #[must_use]
    pub const fn watched(&self) -> u32 {
        self.orders.watched()
    }

    /// The next of them to look at. Nothing that decides changes.
    pub(crate) fn next_watched(&mut self) -> Option<(Watched, InstrumentPlace, InstrumentId)> {
        let (watched, instrument) = self.orders.next_watched()?;
        Some((watched, self.instruments.place(instrument), instrument))
    }

    /// Whether a book asks held orders for anything: then it is an input, see [`on_book`](Self::on_book).
    pub(crate) fn would_move(&mut self, now: Timestamp, watched: Watched, book: &Bbo) -> bool {
        self.orders.would_move(now, watched, book)
    }

    /// Held orders that have something to do: each does it, as far as there is room.
    #[cold]
    pub(super) fn look_at_held<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        while self.orders.is_held_expired(now) && effects.room_for_end() {
            let (orders, mut reports) = self.reports(now, effects);
            orders.expire_held(now, &mut reports);
        }
        let mut next = self.orders.first_due();
        while let Some(due) = next {
            next = self.orders.due_after(due);
            let has_room = match self.orders.next_step(due) {
                HeldStep::Nothing | HeldStep::Wait => continue,
                HeldStep::End => effects.room_for_end(),
                HeldStep::Send(venue) => self.room_for_order(venue, effects),
                HeldStep::Cancel(venue) => {
                    let has_room = effects.room_for_cancel(venue);
                    self.note_stalled(venue, has_room);
                    has_room
                }
            };
            if !has_room {
                continue;
            }
            let since = self.orders.due_since(due);
            let (orders, mut reports) = self.reports(now, effects);
            if let Some(out) = orders.take_step(now, due, &mut reports) {
                send_to_venue(out.venue, &out.request, effects);
                if let Request::New(child) = &out.request {
                    effects.kept_order_sent(out.order_id, child.client_order_id, Some(since));
                }
            }
        }
    }

    /// Whether the link to a venue has room for an order of ours. One that had none is not asked again before something else
    /// happens.
    pub(super) fn room_for_order<E: Effects>(&mut self, venue: VenueId, effects: &mut E) -> bool {
        let has_room = self.stalled & venue_bit(venue) == 0 && effects.room_for_order(venue);
        self.note_stalled(venue, has_room);
        has_room
    }

    const fn note_stalled(&mut self, venue: VenueId, has_room: bool) {
        if !has_room {
            self.stalled |= venue_bit(venue);
        }
    }
}
