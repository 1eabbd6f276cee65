//! What a shard has to say by itself: notices to other shards, cancels, and orders that waited for those or for a rate. It goes
//! as far as there is room.

use super::{Shard, send_to_shard, send_to_venue, venue_bit};
use crate::effects::Effects;
use crate::limits::MAX_QUEUED_A_TURN;
use orders::{ForVenue, QueuedVerdict, WaitingVerdict};
use types::{NewOrder, Reason, Request, ShardId, Timestamp, VenueId};

impl Shard {
    /// The shard that the next waiting notice is for.
    #[must_use]
    pub fn notice_waiting(&self) -> Option<ShardId> {
        self.notices.front().map(|&(shard, _)| shard)
    }

    /// Whether an order that waits has something to do: its time is over, or `has_room` says that a link has room for one.
    /// [`on_room`](Self::on_room) does it.
    #[must_use]
    pub fn is_waiting_due(&self, now: Timestamp, has_room: impl Fn(VenueId) -> bool) -> bool {
        let is_late = self.orders.waiting_until().is_some_and(|until| until <= now);
        let mut venues = (0..self.venues).map(VenueId);
        is_late
            || self.orders.is_ending()
            || self.orders.is_queue_due(now)
            || self.orders.is_held_awake(now)
            || (self.stalled != 0 && venues.any(|venue| self.stalled & venue_bit(venue) != 0 && has_room(venue)))
    }

    /// Sends what the shard has to say by itself, as far as there is room: notices to other shards, what held orders have to
    /// do, the cancels of mass cancels, lost sessions and the first stage, and the orders that waited for those.
    pub(super) fn send_waiting<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        self.send_notices(effects);
        let was_stalled = self.stalled != 0;
        self.stalled = 0;
        if self.orders.is_held_due(now) {
            self.look_at_held(now, effects);
        }
        for venue in (0..self.venues).map(VenueId) {
            while self.orders.cancels_waiting(venue) > 0 && effects.room_for_cancel(venue) {
                let Some(out) = self.orders.poll_cancel(now, venue) else {
                    break;
                };
                send_to_venue(venue, &Request::Cancel(out.request), effects);
            }
        }
        while self.orders.is_ending() && effects.room_for_end() {
            let (orders, mut reports) = self.reports(now, effects);
            orders.end_next(&mut reports);
        }
        if self.orders.waiting() > 0 {
            self.look_at_waiting(now, effects);
        }
        if self.orders.is_queue_due(now) || was_stalled {
            self.look_at_queue(now, effects);
        }
    }

    /// Tells other shards what they are still to be told, as far as there is room.
    pub(super) fn send_notices<E: Effects>(&mut self, effects: &mut E) {
        while let Some(&(shard, content)) = self.notices.front()
            && effects.room_for_notice(shard)
        {
            send_to_shard(shard, &content, effects);
            self.notices.pop_front();
        }
    }

    /// Orders that wait until own ones are cancelled: each goes, is refused or waits on.
    #[cold]
    fn look_at_waiting<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        let mut next = self.orders.first_waiting();
        while let Some(waiting) = next {
            next = self.orders.waiting_after(waiting);
            let refusal = match self.orders.waiting_verdict(now, waiting) {
                WaitingVerdict::Wait => continue,
                WaitingVerdict::Refuse(reason) => reason,
                WaitingVerdict::Send { venue, is_late } => {
                    if self.room_for_order(venue, effects) {
                        let (orders, mut reports) = self.reports(now, effects);
                        if let Some(out) = orders.send_waiting(now, waiting, &mut reports) {
                            send_kept(&out, effects);
                        }
                        continue;
                    }
                    if !is_late {
                        continue;
                    }
                    Reason::VenueFull
                }
            };
            if !effects.room_for_end() {
                return;
            }
            let (orders, mut reports) = self.reports(now, effects);
            orders.refuse_waiting(waiting, refusal, &mut reports);
        }
    }

    /// Orders that wait for a rate: each goes, is refused or waits on.
    #[cold]
    fn look_at_queue<E: Effects>(&mut self, now: Timestamp, effects: &mut E) {
        self.orders.begin_queue();
        let mut in_a_row = 0;
        for _ in 0..MAX_QUEUED_A_TURN {
            if in_a_row > self.orders.queueing_sessions() {
                return;
            }
            let Some((queued, verdict)) = self.orders.next_queued(now) else {
                return;
            };
            in_a_row += 1;
            match verdict {
                QueuedVerdict::Wait => continue,
                QueuedVerdict::Send(venue) => {
                    if self.stalled & venue_bit(venue) != 0 || !effects.room_for_order(venue) {
                        self.stalled |= venue_bit(venue);
                        continue;
                    }
                    if let Err(too_fast) = effects.take_rates(now, self.orders.queued_places(queued)) {
                        self.orders.keep_queued(queued, &too_fast);
                        continue;
                    }
                    let out = self.orders.send_queued(now, queued);
                    send_kept(&out, effects);
                }
                QueuedVerdict::Refuse(reason) => {
                    if !effects.room_for_end() {
                        break;
                    }
                    let (orders, mut reports) = self.reports(now, effects);
                    orders.refuse_queued(queued, reason, &mut reports);
                }
            }
            in_a_row = 0;
        }
        self.orders.leave_queue();
    }
}

/// Sends an order for one that was taken before and kept until now.
fn send_kept<E: Effects>(out: &ForVenue<NewOrder>, effects: &mut E) {
    send_to_venue(out.venue, &Request::New(out.request), effects);
    effects.kept_order_sent(out.order_id, out.request.client_order_id, None);
}
