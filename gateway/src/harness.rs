//! A shard without sockets: messages in by call, messages out by look. For benchmarks and tests; the shard, its journal and
//! its sessions are the real ones.

mod state;

use crate::books;
use crate::client_links::ClientLinks;
use crate::clients;
use crate::config::Config;
use crate::control::{Action, Order, Refusal};
use crate::crossing::{self, Content, Crossing, Lane};
use crate::gateway::Begin;
use crate::limits::{JOURNAL_RESERVE_BYTES, RECALL_PORTION};
use crate::live::{CancelReserve, Live, VenueSent};
use crate::marks::Marks;
use crate::recall::{self, Seeker};
use crate::record::Record;
use crate::references::References;
use crate::replay::{Kept, Recovered};
use crate::shard::Shard;
use crate::shared_limits::SharedLimits;
use journal::{JournalReader, JournalWriter};
use latency::Recorder;
use latency::clock::Clock;
use net::Link;
use net::link::{LinkCounters, LinkEvent, LinkWatch};
use types::{
    Bbo, ExecReport, InstrumentId, Request, SequenceNumber, SessionId, ShardId, Timestamp, TradingDay, VenueId,
};

/// Shard 0 of a config, every venue up. Of the other shards there are only their ends of the rings, empty at the start.
pub struct Harness {
    shard: Shard,
    live: Live<Held>,
    marks: Marks,
    references: References,
    seeker: Seeker,
    /// From the second shard on.
    others: Vec<Crossing>,
}

/// What shard 0 told another shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A request of a client of shard 0.
    Request(Request),
    /// A client of shard 0 is lost.
    SessionLost(SessionId),
    /// A report for a client of the other shard.
    Report(ExecReport),
}

/// A link that keeps what it is given.
#[derive(Debug)]
struct Held {
    next: SequenceNumber,
    last: Vec<u8>,
    count: u64,
    room: usize,
}

impl Harness {
    /// A shard on the journal of the config: a new one, or one that it goes on with.
    ///
    /// # Errors
    /// The journal cannot be opened or replayed, or the order logic finds something wrong in the config.
    pub fn open(config: &Config, clock: Clock) -> Result<Self, Box<dyn std::error::Error>> {
        let settings = config.journal.of_shard(ShardId(0));
        let journal = JournalWriter::open(&settings)?;
        let references = References::new(&config.instruments);
        let mut shared = SharedLimits::new(&config.orders[0], config.shards.len());
        let mut reader = JournalReader::open(&settings.directory)?;
        let mut recovered = Recovered::replay(config, ShardId(0), &mut reader, &mut shared)?;
        let begin = Begin::of(config, &mut recovered);
        let (recalls, seeker) = journal::recalls(settings.directory, config.sessions.len(), RECALL_PORTION);
        let mut ends = crossing::connect(config.shards.len(), config.crossing_messages, config.open_orders());
        let others = ends.drain(1..).map(|mut ends| ends.swap_remove(0)).collect();
        let live = Live::new(
            clock,
            journal,
            config.journal.watermark,
            recovered.venues.iter().map(Held::watched).collect(),
            std::mem::take(&mut recovered.venues)
                .into_iter()
                .map(VenueSent::from)
                .collect(),
            CancelReserve::new(config, ShardId(0)),
            recovered.clients,
            ClientLinks::new(Vec::new()),
            references.clone(),
            shared,
            ends.remove(0),
            recalls,
            Recorder::off(),
        );
        let mut harness = Self {
            shard: recovered.shard,
            live,
            marks: Marks::new(config.mark_every),
            references,
            seeker,
            others,
        };
        begin.apply(&mut harness.shard, &mut harness.live);
        for venue in &config.venues {
            harness.live.append(&Record::VenueUp { venue: venue.id });
            harness.shard.on_venue_up(harness.live.now, venue.id, &mut harness.live);
        }
        harness.live.outside = harness.shard.open_outside(config)?;
        Ok(harness)
    }

    /// The time of what follows.
    pub const fn set_now(&mut self, now: Timestamp) {
        self.live.now = now;
    }

    /// A client logs on.
    pub fn connect(&mut self, session: SessionId) {
        if let Some(output) = self.live.clients.wake(session) {
            output.connect(SequenceNumber(1));
        }
        self.live.append(&Record::SessionUp { session });
        self.shard.on_session_up(self.live.now, session, &mut self.live);
    }

    /// Whether an operator's order can be obeyed.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, action: &Action) -> Result<(), Refusal> {
        self.shard.check_control(action)
    }

    /// An operator's order.
    pub fn control(&mut self, order: &Order) {
        self.live.append(&Record::Controlled(*order));
        self.shard.on_control(self.live.now, order, &mut self.live);
    }

    /// What the pre-filter has counted.
    #[must_use]
    pub const fn filter_counters(&self) -> &prefilter::Counters {
        self.shard.filter_counters()
    }

    /// A client's connection ends.
    pub fn disconnect(&mut self, session: SessionId) {
        if let Some(output) = self.live.clients.get_mut(session) {
            output.disconnect();
        }
        self.live.append(&Record::SessionDown { session });
        self.shard.on_session_down(self.live.now, session, &mut self.live);
    }

    /// Whether the connection of a session is to be closed once all has left.
    #[must_use]
    pub fn is_closing(&mut self, session: SessionId) -> bool {
        self.live
            .clients
            .get_mut(session)
            .is_some_and(|output| output.is_closing)
    }

    /// What a turn does besides messages: books that held orders watch, marks of positions, timers and waiting orders that are due, and what is
    /// looked up in the journal. Returns whether there was anything.
    pub fn turn(&mut self) -> bool {
        let mut is_busy = self.seeker.turn();
        is_busy |= recall::turn(&mut self.shard, &mut self.live);
        is_busy |= books::turn(&mut self.shard, &mut self.live);
        is_busy |= self.marks.turn(&mut self.shard, &mut self.live);
        if let Some((due, session)) = self.shard.next_timer()
            && due <= self.live.now
            && self.live.clients.has_room(session)
        {
            self.live.append(&Record::SessionTimer { session });
            self.shard.on_session_timer(self.live.now, session, &mut self.live);
            is_busy = true;
        }
        let is_notice = self
            .shard
            .notice_waiting()
            .is_some_and(|shard| self.live.has_room_for_notice(shard));
        let is_due = is_notice
            || self
                .shard
                .is_waiting_due(self.live.now, |venue| self.live.has_room_for_order(venue));
        if is_due {
            self.live.append(&Record::RoomAgain);
            self.shard.on_room(self.live.now, &mut self.live);
        }
        is_busy | is_due
    }

    /// The link to a venue comes up or goes down.
    pub fn set_venue_up(&mut self, venue: VenueId, is_up: bool) {
        if is_up {
            self.live.append(&Record::VenueUp { venue });
            self.shard.on_venue_up(self.live.now, venue, &mut self.live);
        } else {
            self.live.append(&Record::VenueDown { venue });
            self.shard.on_venue_down(self.live.now, venue, &mut self.live);
        }
    }

    /// A new trading day.
    pub fn roll(&mut self, day: TradingDay) {
        self.live.append(&Record::DayRolled { day });
        self.shard.on_day_roll(self.live.now, day, &mut self.live);
    }

    /// The door tells a session's hours: those of the session day that began then, or none.
    pub fn hours(&mut self, session: SessionId, since: Option<Timestamp>) {
        clients::hours(session, since, &mut self.shard, &mut self.live);
    }

    /// Whether the journal has room for a good many inputs and all that follows from them, so that none is refused.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.live.journal.room(4 * JOURNAL_RESERVE_BYTES)
    }

    /// A message of a client, out of its frame: into the journal and through the shard, as the worker does it.
    pub fn client(&mut self, session: SessionId, message: &[u8]) {
        self.live.received();
        self.live.append(&Record::ClientMessage { session, message });
        self.shard
            .on_client_message(self.live.now, session, message, &mut self.live);
    }

    /// A message of a venue.
    pub fn venue(&mut self, venue: VenueId, sequence: SequenceNumber, message: &[u8]) {
        self.live.append(&Record::VenueMessage {
            venue,
            sequence,
            message,
        });
        self.shard
            .on_venue_message(self.live.now, venue, message, &mut self.live);
    }

    /// A request that another shard passes on for a client of its own.
    pub fn from_shard(&mut self, shard: ShardId, request: &Request) {
        let content = Content::Request(*request);
        let mut buffer = [0; crossing::MAX_LENGTH];
        let length = content.encode(&mut buffer);
        let lane = content.lane();
        if let Some(other) = self.other(shard) {
            other.send(lane, &buffer[..length], 0);
            other.flush(0);
        }
        let mut ours = self.live.crossings.iter_mut();
        let Some(message) = ours.find(|ours| ours.peer == shard).and_then(|ours| ours.receive(lane)) else {
            return;
        };
        self.live.append(&Record::ShardMessage {
            shard,
            lane,
            sequence: message.sequence,
            message: message.bytes(),
        });
        self.shard
            .on_shard_message(self.live.now, message.bytes(), &mut self.live);
    }

    /// Another shard takes the next message out of its ring, reports first.
    pub fn taken_by(&mut self, shard: ShardId) -> Option<Told> {
        let other = self.other(shard)?;
        let message = other.receive(Lane::Reports).or_else(|| other.receive(Lane::Requests))?;
        Some(match Content::decode(message.bytes())? {
            Content::Request(request) => Told::Request(request),
            Content::SessionLost(session) => Told::SessionLost(session),
            Content::Report(report) => Told::Report(report.exec),
        })
    }

    fn other(&mut self, shard: ShardId) -> Option<&mut Crossing> {
        self.others.get_mut(usize::from(shard.0).checked_sub(1)?)
    }

    /// What all shards take of limits together: to be another shard that takes of them.
    #[must_use]
    pub const fn shared(&self) -> &SharedLimits {
        &self.live.shared
    }

    /// Messages that the link to a venue takes from now on; none, when its window is full.
    pub fn set_venue_room(&mut self, venue: VenueId, messages: usize) {
        self.live.links[usize::from(venue.0)].room = messages;
    }

    /// A venue permits so many open orders from now on.
    pub fn grant(&mut self, venue: VenueId, slots: u32) {
        self.live.append(&Record::VenueSlots { venue, slots });
        self.shard.on_venue_slots(self.live.now, venue, slots, &mut self.live);
    }

    /// A price of the feed.
    pub fn price(&mut self, instrument: InstrumentId, bbo: &Bbo) {
        self.references.store(instrument, bbo);
    }

    /// Messages sent to a venue so far, and the last one.
    #[must_use]
    pub fn sent_to_venue(&self, venue: VenueId) -> (u64, &[u8]) {
        let link = &self.live.links[usize::from(venue.0)];
        (link.count, &link.last)
    }

    /// Bytes that wait for a client; they are gone after that.
    pub fn sent_to_client(&mut self, session: SessionId) -> Vec<u8> {
        let Some(output) = self.live.clients.get_mut(session) else {
            return Vec::new();
        };
        output.fill();
        let bytes = output.outbox.sendable(u64::MAX).to_vec();
        output.outbox.sent(bytes.len());
        bytes
    }

    /// Throws away what waits for a client, without a copy.
    pub fn discard_client_output(&mut self, session: SessionId) {
        if let Some(output) = self.live.clients.get_mut(session) {
            output.fill();
            let length = output.outbox.sendable(u64::MAX).len();
            output.outbox.sent(length);
        }
    }

    /// The shard.
    #[must_use]
    pub const fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Ends the harness; the journal stays.
    #[must_use]
    pub fn into_journal(self) -> JournalWriter {
        self.live.journal
    }
}

impl Held {
    fn watched(kept: &Kept) -> (Self, LinkWatch) {
        let link = Self {
            next: kept.next_send,
            last: Vec::with_capacity(256),
            count: 0,
            room: usize::MAX,
        };
        (link, LinkWatch::new("venue link", String::new()))
    }
}

impl Link for Held {
    fn room(&self) -> usize {
        self.room
    }

    fn is_up(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8], _: u64) -> SequenceNumber {
        self.last.clear();
        self.last.extend_from_slice(message);
        self.count += 1;
        let sequence = self.next;
        self.next = sequence.next();
        sequence
    }

    fn restore(&mut self, _: SequenceNumber, _: &[u8]) {}

    fn recalled(&mut self, _: SequenceNumber, _: &[u8]) {}

    fn not_recalled(&mut self, _: SequenceNumber) {}

    fn poll_recall(&mut self, _: Timestamp) -> Option<LinkEvent> {
        None
    }

    fn poll(&mut self, _: Timestamp, _: &mut [u8]) -> Option<LinkEvent> {
        None
    }

    fn flush(&mut self, _: Timestamp, _: u64) {}

    fn counters(&self) -> LinkCounters {
        LinkCounters::default()
    }
}
