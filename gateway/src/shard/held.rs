//! Orders that the shard holds because their venue lacks their type, or to cross them: the book that they watch, what they
//! send, and what they trade with each other.

use super::{Shard, send_to_venue, venue_bit};
use crate::effects::Effects;
use crate::places::InstrumentPlace;
use orders::{Due, HeldStep, Watched};
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
        self.orders.end_rests(now);
        let mut next = self.orders.first_due();
        while let Some(due) = next {
            next = self.orders.due_after(due);
            if let Some(instrument) = self.orders.meets(due)
                && !self.meet(now, due, instrument, effects)
            {
                continue;
            }
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

    /// Lets an order that came in trade with those that rest here. Returns whether it goes on to its venue.
    fn meet<E: Effects>(&mut self, now: Timestamp, due: Due, instrument: InstrumentId, effects: &mut E) -> bool {
        let place = self.instruments.place(instrument);
        loop {
            // The newest: a trade is never through what the market shows by now.
            let reference = *self.instruments.reference(place, effects);
            let Some(meeting) = self.orders.next_meeting(now, due, &reference) else {
                return self.orders.end_meeting(now, due, Some(&reference));
            };
            let has_room = |session| {
                effects
                    .reserve_reports(session, self.sessions.shard_elsewhere(session), 2)
                    .is_ok()
            };
            if !meeting.sessions.into_iter().all(has_room) {
                return self.orders.end_meeting(now, due, None);
            }
            let (orders, mut reports) = self.reports(now, effects);
            if !orders.cross(now, meeting, &mut reports) {
                return false;
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
