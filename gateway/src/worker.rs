//! A shard at work: looks at its links, rings, clients and timers in turn, writes each input into the journal, hands it to
//! the shard, and sends what came of it.

use crate::books;
use crate::client_links;
use crate::clients::Clients;
use crate::control;
use crate::crossing::Lane;
use crate::executor::Component;
use crate::limits::{MAX_CROSSINGS_A_TURN, MAX_VENUE_MESSAGES_A_TURN, REPORTS_RESERVED_AN_INPUT};
use crate::live::Live;
use crate::marks::Marks;
use crate::recall;
use crate::record::Record;
use crate::shard::Shard;
use crate::status::{Schedule, Status};
use journal::Seekers;
use net::Link;
use net::link::LinkEvent;
use proto::native::MAX_MESSAGE_LENGTH;
use std::sync::Arc;
use types::{Timestamp, VenueId};

/// One shard with its world.
pub(crate) struct Worker<L> {
    pub(crate) shard: Shard,
    pub(crate) live: Live<L>,
    pub(crate) clients: Clients,
    pub(crate) control: control::Desk,
    pub(crate) marks: Marks,
    pub(crate) status: Arc<Status>,
    pub(crate) schedule: Schedule,
    /// Looks up for all shards what sessions no longer hold; kept as long as one of them runs.
    pub(crate) _seekers: Arc<Seekers>,
}

impl<L: Link> Component for Worker<L> {
    fn turn(&mut self, now: Timestamp) -> bool {
        self.live.now = now;
        let mut is_busy = false;
        if self.may_take_inputs() {
            if self.venues() {
                // Reports leave before anyone else is looked at: a new order's way to the venue would be theirs to wait.
                self.send_to_clients();
                is_busy = true;
            }
            is_busy |= self.crossings();
            is_busy |= books::turn(&mut self.shard, &mut self.live);
            is_busy |= self.marks.turn(&mut self.shard, &mut self.live);
            is_busy |= self.timers();
            is_busy |= self.waiting();
            is_busy |= recall::turn(&mut self.shard, &mut self.live);
            is_busy |= self.control.turn(&mut self.shard, &mut self.live, &self.clients);
            is_busy |= client_links::receive(&mut self.shard, &mut self.live);
            is_busy |= self.clients.receive(&mut self.shard, &mut self.live);
        }
        self.send();
        if self.schedule.is_due(now) {
            self.live.outside.beat();
            self.write_status();
        }
        is_busy
    }

    fn finish(&mut self) {
        self.live.record_open(self.shard.orders());
        self.write_status();
        self.status.summarize(&self.live);
    }
}

impl<L: Link> Worker<L> {
    fn write_status(&mut self) {
        self.status.write(&self.live, &self.shard, &self.clients);
        if let Some(view) = self.live.outside.view() {
            self.status.outside.write(&view);
        }
    }

    /// Whether whatever an input may cause has room: in the journal, and on the way to every other shard.
    fn may_take_inputs(&self) -> bool {
        let has_room = |crossing: &crate::crossing::Crossing| crossing.room(Lane::Reports) >= REPORTS_RESERVED_AN_INPUT;
        self.live.journal_has_room() && self.live.crossings.iter().all(has_room)
    }

    /// What the venues sent.
    fn venues(&mut self) -> bool {
        let mut is_busy = false;
        let mut message = [0; MAX_MESSAGE_LENGTH];
        for index in 0..self.live.links.len() {
            let venue = VenueId(u8::try_from(index).expect("venues are bounded by MAX_VENUES"));
            for _ in 0..MAX_VENUE_MESSAGES_A_TURN {
                if !self.may_take_inputs() {
                    return true;
                }
                let now = self.live.now;
                let link = &mut self.live.links[index];
                let Some(event) = link.poll(now, &mut message) else {
                    break;
                };
                self.live.watches[index].on_event(now, &event, link);
                match event {
                    LinkEvent::Message { sequence, length } => {
                        let message = &message[..length];
                        self.live.append(&Record::VenueMessage {
                            venue,
                            sequence,
                            message,
                        });
                        self.shard.on_venue_message(now, venue, message, &mut self.live);
                    }
                    LinkEvent::Credits(slots) => {
                        tracing::info!(venue = venue.0, slots, "venue grants open orders");
                        self.live.append(&Record::VenueSlots { venue, slots });
                        self.shard.on_venue_slots(now, venue, slots, &mut self.live);
                    }
                    LinkEvent::Recall { from, to } => self.live.recall_for_venue(venue, from, to),
                    LinkEvent::Path(_) => {}
                    LinkEvent::Up => {
                        self.live.append(&Record::VenueUp { venue });
                        self.shard.on_venue_up(now, venue, &mut self.live);
                    }
                    LinkEvent::Down(_) => {
                        self.live.append(&Record::VenueDown { venue });
                        self.shard.on_venue_down(now, venue, &mut self.live);
                    }
                }
                is_busy = true;
            }
        }
        is_busy
    }

    /// What the other shards sent. Reports first: they free what requests wait for.
    fn crossings(&mut self) -> bool {
        let mut is_busy = false;
        for index in 0..self.live.crossings.len() {
            for lane in [Lane::Reports, Lane::Requests] {
                for _ in 0..MAX_CROSSINGS_A_TURN {
                    if lane == Lane::Requests && !self.may_take_inputs() {
                        break;
                    }
                    let crossing = &mut self.live.crossings[index];
                    let peer = crossing.peer;
                    let Some(message) = crossing.receive(lane) else { break };
                    let (sequence, bytes) = (message.sequence, message.bytes());
                    self.live.append(&Record::ShardMessage {
                        shard: peer,
                        lane,
                        sequence,
                        message: bytes,
                    });
                    self.live.received();
                    self.shard.on_shard_message(self.live.now, bytes, &mut self.live);
                    is_busy = true;
                }
            }
        }
        is_busy
    }

    /// Session timers that are due.
    fn timers(&mut self) -> bool {
        let mut is_busy = false;
        while let Some((due, session)) = self.shard.next_timer()
            && due <= self.live.now
            && self.live.clients.has_room(session)
        {
            self.live.append(&Record::SessionTimer { session });
            self.shard.on_session_timer(self.live.now, session, &mut self.live);
            is_busy = true;
            if self.shard.next_timer().is_some_and(|(next, _)| next <= due) {
                break; // A replay goes on, or nothing moved: once a turn is enough.
            }
        }
        is_busy
    }

    /// What the shard has to say by itself and found no room for, once there is some.
    fn waiting(&mut self) -> bool {
        let Self { shard, live, .. } = self;
        let is_notice = shard
            .notice_waiting()
            .is_some_and(|peer| live.has_room_for_notice(peer));
        let mut links = live.links.iter().enumerate();
        let is_cancel = links.any(|(index, link)| {
            let venue = VenueId(u8::try_from(index).expect("venues are bounded by MAX_VENUES"));
            shard.orders().cancels_waiting(venue) > 0 && link.room() > 0
        });
        let is_order = shard.is_waiting_due(live.now, |venue| live.has_room_for_order(venue));
        let is_due = is_notice || is_cancel || is_order;
        if is_due {
            live.append(&Record::RoomAgain);
            shard.on_room(live.now, live);
        }
        is_due
    }

    /// Sends what the turn made, and what links owe: acknowledgements, retransmissions, heartbeats.
    fn send(&mut self) {
        self.send_to_clients();
        let (now, open) = (self.live.now, self.live.open_position());
        let (appended, synced) = self.live.journal_progress();
        for (link, watch) in self.live.links.iter_mut().zip(&mut self.live.watches) {
            link.journaled(appended, synced);
            link.flush(now, open);
            watch.turn(now, link);
        }
        for crossing in &mut self.live.crossings {
            crossing.flush(open);
        }
    }

    fn send_to_clients(&mut self) {
        let (open, progress) = (self.live.open_position(), self.live.journal_progress());
        self.live.client_links.flush(self.live.now, open, progress);
        self.clients.send(&mut self.shard, &mut self.live);
        self.live.reports_left();
    }
}
