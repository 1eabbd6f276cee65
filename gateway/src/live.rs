//! The world of a running shard: its journal, links, clients' buffers, rings, clock and recording.

use crate::client_links::ClientLinks;
use crate::client_output::ClientOutputs;
use crate::config::{Config, VenueConfig};
use crate::crossing::{Crossing, Lane};
use crate::effects::{Destination, Effects, Purpose};
use crate::instruments::Instruments;
use crate::limits::{
    CANCEL_JOURNAL_BYTES, CANCELS_RESERVED, JOURNAL_RESERVE_BYTES, MAX_ORDERS_HELD, MAX_REPORT_LENGTH,
    NOTICES_RESERVED, RECORD_OVERHEAD_BYTES, REPORTS_HELD_A_TURN, REPORTS_RESERVED_AN_ORDER,
};
use crate::line_limit::LineLimit;
use crate::outside::Outside;
use crate::places::InstrumentPlace;
use crate::recall::{Recalls, Stream};
use crate::record::{RECORD_VERSION, Record};
use crate::references::References;
use crate::replay::Kept;
use crate::shared_limits::SharedLimits;
use journal::{JournalWriter, SentIndex, Wanted, Watermark};
use latency::clock::Clock;
use latency::{GatewayChild, GatewayOpen, GatewayOrder, GatewayReport, Recorder, Stamps, Tap};
use net::Link;
use net::link::LinkWatch;
use orders::{AccountPlace, Need, Orders, Places, SessionPlace, SessionStake, SharedScope, Stake, TooFast};
use proto::fix::{CloseReason, Recall};
use types::{
    Bbo, ClientOrderId, ExecReport, InstrumentId, NewOrder, OrderId, Reason, SequenceNumber, SessionId, ShardId,
    Timestamp, VenueId,
};

/// Everything outside a shard's decisions.
#[derive(Debug)]
pub(crate) struct Live<L> {
    pub(crate) clock: Clock,
    /// When the turn began: the time of every input and output of the turn.
    pub(crate) now: Timestamp,
    pub(crate) journal: JournalWriter,
    /// Where in the journal the input at hand stands.
    input: u64,
    /// Questions that were asked since then, see [`Record::Refused`].
    asked: u32,
    /// How safe a record must be before what it describes may leave.
    pub(crate) watermark: Watermark,
    /// By [`VenueId`].
    pub(crate) links: Vec<L>,
    /// What the log says of them.
    pub(crate) watches: Vec<LinkWatch>,
    /// By [`VenueId`].
    venues_sent: Vec<VenueSent>,
    cancel_reserve: CancelReserve,
    pub(crate) clients: ClientOutputs,
    /// Of the sessions that are not in `clients`.
    pub(crate) client_links: ClientLinks<L>,
    references: References,
    /// Of each instrument's price the version that was seen last, by [`InstrumentPlace`].
    seen_references: Box<[u64]>,
    pub(crate) shared: SharedLimits,
    pub(crate) crossings: Vec<Crossing>,
    pub(crate) recalls: Recalls,
    /// More of what the client at hand has sent follows, so messages to venues may wait for it and share a datagram.
    more_follows: bool,
    /// Messages that wait so.
    held: usize,
    recording: Recording,
    /// Of the lines that clients can cause.
    pub(crate) lines: LineLimit,
    /// The backend of the pre-filter beside the shard's own.
    pub(crate) outside: Outside,
}

/// What was sent to a venue.
#[derive(Debug)]
pub(crate) struct VenueSent {
    /// The number that the next message gets.
    next: SequenceNumber,
    /// Where in the journal messages stand.
    index: SentIndex,
}

/// What orders leave free so that cancels always pass, from the config.
#[derive(Debug)]
pub(crate) struct CancelReserve(
    /// By [`VenueId`]: places in the link's ring.
    Vec<usize>,
);

/// What is stamped on the way.
#[derive(Debug)]
struct Recording {
    recorder: Recorder,
    /// Of the order at hand.
    stamps: Stamps,
    /// When the message at hand came from its venue.
    venue_received: Timestamp,
    /// When the feed had the book at hand; `None` when no book is.
    book_time: Option<Timestamp>,
    /// Orders that wait in a link for those behind them; t6 is added when they have been handed to the socket.
    orders: Vec<GatewayOrder>,
    /// The same for orders that had been kept.
    children: Vec<GatewayChild>,
    /// Reports encoded in this turn; t8 is added when they have been handed to the socket.
    reports: Vec<GatewayReport>,
}

impl From<Kept> for VenueSent {
    fn from(kept: Kept) -> Self {
        Self {
            next: kept.next_send,
            index: kept.index,
        }
    }
}

impl CancelReserve {
    /// Of the links of `shard`.
    pub(crate) fn new(config: &Config, shard: ShardId) -> Self {
        let of_shard = |venue: &VenueConfig| venue.links[usize::from(shard.0)].cancel_reserve_messages;
        Self(config.venues.iter().map(of_shard).collect())
    }

    fn messages(&self, venue: VenueId) -> usize {
        self.0[usize::from(venue.0)]
    }

    /// What as many cancels need of the journal.
    fn journal_bytes(&self) -> usize {
        self.0.iter().sum::<usize>() * CANCEL_JOURNAL_BYTES
    }
}

impl<L: Link> Live<L> {
    /// The world of a shard.
    #[allow(clippy::too_many_arguments, reason = "called once, where a shard is put together")]
    pub(crate) fn new(
        clock: Clock,
        journal: JournalWriter,
        watermark: Watermark,
        links: Vec<(L, LinkWatch)>,
        venues_sent: Vec<VenueSent>,
        cancel_reserve: CancelReserve,
        clients: ClientOutputs,
        client_links: ClientLinks<L>,
        references: References,
        shared: SharedLimits,
        crossings: Vec<Crossing>,
        recalls: Recalls,
        recorder: Recorder,
    ) -> Self {
        let recording = Recording {
            recorder,
            stamps: Stamps::default(),
            venue_received: Timestamp::NONE,
            book_time: None,
            orders: Vec::with_capacity(MAX_ORDERS_HELD),
            children: Vec::with_capacity(MAX_ORDERS_HELD),
            reports: Vec::with_capacity(REPORTS_HELD_A_TURN),
        };
        let now = clock.now();
        let (links, watches) = links.into_iter().unzip();
        Self {
            clock,
            now,
            input: journal.position(),
            asked: 0,
            journal,
            watermark,
            links,
            watches,
            venues_sent,
            cancel_reserve,
            clients,
            client_links,
            seen_references: vec![0; references.length()].into_boxed_slice(),
            references,
            shared,
            crossings,
            recalls,
            more_follows: false,
            held: 0,
            recording,
            lines: LineLimit::default(),
            outside: Outside::None,
        }
    }

    /// Appends a record, with the time of the turn. Gives the position behind it.
    // As `Record::encode`.
    #[inline(always)]
    pub(crate) fn append(&mut self, record: &Record<'_>) -> u64 {
        let (kind, head, message) = record.encode();
        if !kind.is_output() && !kind.is_answer() {
            self.input = self.journal.position();
            self.asked = 0;
        }
        self.journal
            .append(kind as u16, RECORD_VERSION, self.now, &[head.as_slice(), message])
    }

    /// Whether the journal has room for one more input and all that follows from it.
    pub(crate) fn journal_has_room(&self) -> bool {
        self.journal.room(JOURNAL_RESERVE_BYTES)
    }

    /// The journal position up to which outputs may leave.
    pub(crate) fn open_position(&self) -> u64 {
        self.journal.watermark(self.watermark)
    }

    /// A venue has lost messages `from` up to below `to`.
    pub(crate) fn recall_for_venue(&mut self, venue: VenueId, from: SequenceNumber, to: SequenceNumber) {
        let index = &self.venues_sent[usize::from(venue.0)].index;
        let wanted = Wanted::from_index(Stream::Venue(venue), from, to, index);
        self.recalls.recall_anew(wanted);
    }

    /// Up to where the journal is written to memory, and up to where it survives the loss of the machine.
    pub(crate) fn journal_progress(&self) -> (u64, u64) {
        (self.journal.position(), self.journal.watermark(Watermark::Synced))
    }

    /// An order's bytes came in.
    pub(crate) fn received(&mut self) {
        if self.recording.recorder.is_on() {
            self.recording.stamps = Stamps::received(self.clock.now());
            self.recording.venue_received = Timestamp::NONE;
        }
    }

    /// What follows comes of a book that the feed had then, or of none any more.
    pub(crate) const fn set_book_time(&mut self, time: Option<Timestamp>) {
        self.recording.book_time = time;
        self.recording.venue_received = Timestamp::NONE;
    }

    /// Tells the recording what is open here with nothing of it at a venue.
    pub(crate) fn record_open(&mut self, orders: &Orders) {
        if self.recording.recorder.is_on() {
            for (order_id, leaves) in orders.open_here() {
                self.recording.recorder.push(GatewayOpen { order_id, leaves });
            }
        }
    }

    /// Whether the client at hand has sent more than the message that is handled next.
    pub(crate) fn expect_more(&mut self, more_follows: bool) {
        self.more_follows = more_follows;
    }

    /// Sends what waited in the links for more.
    pub(crate) fn release_held(&mut self) {
        self.more_follows = false;
        if self.held == 0 {
            return;
        }
        self.held = 0;
        let (now, open) = (self.now, self.open_position());
        for link in &mut self.links {
            link.flush(now, open);
        }
        if !self.recording.orders.is_empty() || !self.recording.children.is_empty() {
            let sent = self.clock.now();
            for mut child in self.recording.children.drain(..) {
                child.venue_sent = sent;
                self.recording.recorder.push(child);
            }
            for mut order in self.recording.orders.drain(..) {
                order.stamps.mark(Tap::VenueSent, sent);
                self.recording.recorder.push(order);
            }
        }
    }

    /// All that was encoded in this turn has been handed to the sockets.
    pub(crate) fn reports_left(&mut self) {
        if self.recording.reports.is_empty() {
            return;
        }
        let sent = self.clock.now();
        for mut report in self.recording.reports.drain(..) {
            report.report_sent = sent;
            self.recording.recorder.push(report);
        }
    }

    /// The newest best bid and offer, whatever was used before.
    pub(crate) fn book(&self, place: InstrumentPlace) -> Option<Bbo> {
        self.references.load_newer(place, &mut 0)
    }

    /// Whether a ring to another shard takes one more notice.
    pub(crate) fn has_room_for_notice(&self, shard: ShardId) -> bool {
        let mut crossings = self.crossings.iter();
        crossings.any(|crossing| crossing.peer == shard && crossing.room(Lane::Requests) > 0)
    }

    /// Whether a venue's link and the journal take an order that waited, and leave what is set aside for cancels.
    pub(crate) fn has_room_for_order(&self, venue: VenueId) -> bool {
        let set_aside = self.cancel_reserve.journal_bytes();
        self.links[usize::from(venue.0)].room() > self.cancel_reserve.messages(venue)
            && self.journal.room(JOURNAL_RESERVE_BYTES + set_aside)
    }

    /// Places of a venue's link that orders leave free for cancels.
    pub(crate) fn cancel_reserve(&self, venue: VenueId) -> usize {
        self.cancel_reserve.messages(venue)
    }

    fn crossing(&mut self, shard: ShardId) -> Option<&mut Crossing> {
        self.crossings.iter_mut().find(|crossing| crossing.peer == shard)
    }

    /// Writes down a refusal that the world decided, so that a replay decides the same.
    fn refused(&mut self, reason: Reason) -> Result<(), Reason> {
        let asked = self.asked;
        self.append(&Record::Refused { asked, reason });
        Err(reason)
    }

    /// Whether there is room; writes down that there is none.
    fn room(&mut self, has_room: bool, reason: Reason) -> bool {
        if !has_room {
            let _: Result<(), Reason> = self.refused(reason);
        }
        has_room
    }
}

impl<L: Link> Effects for Live<L> {
    #[inline]
    fn stamp(&mut self, tap: Tap) {
        if !self.recording.recorder.is_on() {
            return;
        }
        let time = self.clock.now();
        match tap {
            Tap::VenueReceived => self.recording.venue_received = time,
            _ => self.recording.stamps.mark(tap, time),
        }
    }

    #[inline]
    fn reference(&mut self, place: InstrumentPlace, instrument: InstrumentId, known: &Bbo) -> Option<Bbo> {
        self.asked += 1;
        let seen = self.seen_references.get_mut(place.0 as usize)?;
        let bbo = self.references.load_newer(place, seen).filter(|bbo| bbo != known)?;
        let asked = self.asked;
        self.append(&Record::Reference { asked, instrument, bbo });
        Some(bbo)
    }

    fn prefilter(&mut self, now: Timestamp, place: InstrumentPlace, order: &NewOrder) -> Result<(), Reason> {
        self.asked += 1;
        match self.outside.judge(now, place, order) {
            Ok(()) => Ok(()),
            Err(reason) => self.refused(reason),
        }
    }

    fn prefilter_limits(&mut self, instruments: &Instruments, orders: &Orders) {
        self.outside.load(instruments, orders);
    }

    fn reserve_room(&mut self, session: SessionId, destination: Destination, purpose: Purpose) -> Result<(), Reason> {
        self.asked += 1;
        let is_order = purpose == Purpose::Order;
        let set_aside = if is_order {
            self.cancel_reserve.journal_bytes()
        } else {
            0
        };
        if !self.journal.room(2 * JOURNAL_RESERVE_BYTES + set_aside) {
            return self.refused(Reason::JournalFull);
        }
        let link_has_room = if is_order {
            self.client_links.has_room_for_order(session)
        } else {
            self.client_links.has_room_for(session, REPORTS_RESERVED_AN_ORDER)
        };
        if !self.clients.has_room(session) || !link_has_room {
            return self.refused(Reason::ReportRingFull);
        }
        match destination {
            Destination::Venue(venue) => {
                let set_aside = if is_order {
                    self.cancel_reserve.messages(venue)
                } else {
                    0
                };
                if self.links[usize::from(venue.0)].room() <= set_aside {
                    return self.refused(Reason::VenueFull);
                }
            }
            Destination::Shard(shard) => {
                let set_aside = NOTICES_RESERVED + if is_order { CANCELS_RESERVED } else { 0 };
                let crossing = self.crossing(shard);
                if crossing.is_none_or(|crossing| crossing.room(Lane::Requests) <= set_aside) {
                    return self.refused(Reason::ShardRingFull);
                }
            }
        }
        Ok(())
    }

    fn reserve_reports(&mut self, session: SessionId, shard: Option<ShardId>, count: usize) -> Result<(), Reason> {
        self.asked += 1;
        let has_room = match shard {
            Some(shard) => self
                .crossing(shard)
                .is_some_and(|crossing| crossing.room(Lane::Reports) >= count),
            None => self.clients.has_room_for(session, count) && self.client_links.has_room_for(session, count),
        };
        if !has_room {
            return self.refused(Reason::ReportRingFull);
        }
        let bytes = count * (MAX_REPORT_LENGTH + RECORD_OVERHEAD_BYTES);
        if !self.journal.room(JOURNAL_RESERVE_BYTES + bytes) {
            return self.refused(Reason::JournalFull);
        }
        Ok(())
    }

    #[inline]
    fn take_rates(&mut self, now: Timestamp, places: Places) -> Result<(), TooFast> {
        self.asked += 1;
        let verdict = self.shared.take_rates(now, places);
        if let Err(too_fast) = verdict {
            let asked = self.asked;
            self.append(&Record::TooFast { asked, too_fast });
        }
        verdict
    }

    fn give_back_rates(&mut self, places: Places) {
        self.shared.give_back_rates(places);
    }

    fn reserve_shared(&mut self, places: Places, need: &Need) -> Result<(), Reason> {
        self.asked += 1;
        match self.shared.reserve(places, need) {
            Ok(()) => Ok(()),
            Err(reason) => self.refused(reason),
        }
    }

    fn settle_shared(&mut self, account: AccountPlace, change: &Stake) {
        self.shared.settle(account, change);
    }

    fn settle_session(&mut self, session: SessionPlace, change: &SessionStake) {
        self.shared.settle_session(session, change);
    }

    fn limit_shared(&mut self, now: Timestamp, limits: &SharedScope) {
        self.shared.set(now, limits);
    }

    fn count_firm(&mut self, taken: &Stake) {
        self.shared.count_firm(taken);
    }

    fn room_for_cancel(&mut self, venue: VenueId) -> bool {
        self.asked += 1;
        let has_room = self.links[usize::from(venue.0)].room() > 0 && self.journal_has_room();
        self.room(has_room, Reason::VenueFull)
    }

    fn room_for_order(&mut self, venue: VenueId) -> bool {
        self.asked += 1;
        let has_room = self.has_room_for_order(venue);
        self.room(has_room, Reason::VenueFull)
    }

    fn room_for_end(&mut self) -> bool {
        self.asked += 1;
        let has_room = self.journal_has_room();
        self.room(has_room, Reason::JournalFull)
    }

    fn room_for_notice(&mut self, shard: ShardId) -> bool {
        self.asked += 1;
        let has_room = self.has_room_for_notice(shard) && self.journal_has_room();
        self.room(has_room, Reason::ShardRingFull)
    }

    fn to_client(&mut self, session: SessionId, sequence: Option<SequenceNumber>, message: &[u8]) {
        let start = self.journal.position();
        let position = self.append(&Record::ClientOutput { session, message });
        if let Some(link) = self.client_links.get_mut(session) {
            link.push(message, start, position);
        } else if let Some(client) = self.clients.wake(session) {
            client.push(message, position);
            if let Some(sequence) = sequence {
                client.note(sequence, start);
            }
        }
    }

    fn hold(&mut self, session: SessionId, sequence: SequenceNumber, message: &[u8]) {
        let start = self.journal.position();
        self.append(&Record::ClientHeld { session, message });
        if let Some(client) = self.clients.get_mut(session) {
            client.note(sequence, start);
        }
    }

    fn renumbered(&mut self, session: SessionId) {
        if let Some(client) = self.clients.get_mut(session) {
            client.renumber(self.input);
        }
    }

    fn recall(&mut self, session: SessionId, recall: &Recall) {
        let place = self.clients.get(session).and_then(|client| client.before(recall.begin));
        let (number, position) = place.unwrap_or((recall.begin, self.input));
        self.recalls.recall(Wanted {
            stream: Stream::Fix(session),
            id: recall.id,
            begin: recall.begin,
            end: recall.end,
            position,
            number,
        });
    }

    fn to_venue(&mut self, venue: VenueId, message: &[u8]) {
        let link = usize::from(venue.0);
        let sequence = self.venues_sent[link].next;
        let start = self.journal.position();
        let position = self.append(&Record::VenueOutput {
            venue,
            sequence,
            message,
        });
        let given = self.links[link].send(message, position);
        debug_assert_eq!(given, sequence, "journal and link count alike");
        self.venues_sent[link].next = sequence.next();
        self.venues_sent[link].index.note(sequence, start);
        self.held += 1;
        // At once, not at the end of the turn: this is what the whole program is for. But what stands behind it in the
        // client's buffer is decided sooner than a datagram is sent.
        if !self.more_follows || self.held >= MAX_ORDERS_HELD {
            self.release_held();
        }
    }

    fn to_shard(&mut self, shard: ShardId, lane: Lane, message: &[u8]) {
        let Some(sequence) = self.crossing(shard).map(|crossing| crossing.next(lane)) else {
            return;
        };
        let position = self.append(&Record::ShardOutput {
            shard,
            lane,
            sequence,
            message,
        });
        let open = self.open_position();
        if let Some(crossing) = self.crossing(shard) {
            crossing.send(lane, message, position);
            crossing.flush(open);
        }
    }

    fn close(&mut self, session: SessionId, reason: CloseReason, text: &[u8]) {
        if let Some(client) = self.clients.wake(session) {
            client.is_closing = true;
        }
        if !self.lines.allows(self.now) {
            return;
        }
        let is_in_order = matches!(reason, CloseReason::LoggedOut | CloseReason::LogoutTimeout);
        let (session, reason, text) = (session.0, reason.text(), text.escape_ascii());
        if !is_in_order {
            tracing::warn!(session, reason, %text, "session ends its connection");
        } else {
            tracing::info!(session, reason, %text, "session ends its connection");
        }
    }

    fn is_recording(&self) -> bool {
        self.recording.recorder.is_on()
    }

    fn order_taken(&mut self, order: &NewOrder, number: ClientOrderId, order_id: OrderId, verdict: Reason) {
        let order = GatewayOrder {
            protocol: self.clients.protocol(order.session),
            reason: verdict,
            session: order.session,
            instrument: order.instrument,
            client_order_id: number,
            order_id,
            trigger: order.trigger,
            kernel_received: Timestamp::NONE,
            stamps: self.recording.stamps,
        };
        let is_sent = order.stamps.at(Tap::VenueSent) != Timestamp::NONE;
        if self.held > 0 && is_sent {
            self.recording.orders.push(order);
        } else {
            self.recording.recorder.push(order);
        }
    }

    fn kept_order_sent(&mut self, order_id: OrderId, number: ClientOrderId, held_since: Option<Timestamp>) {
        let recording = &mut self.recording;
        if !recording.recorder.is_on() {
            return;
        }
        let child = GatewayChild {
            order_id,
            child_id: OrderId(number.0),
            released: match (recording.book_time, held_since) {
                (Some(book), Some(since)) => book.max(since),
                _ => self.now,
            },
            venue_sent: self.clock.now(),
        };
        if self.held > 0 {
            recording.children.push(child);
        } else {
            recording.recorder.push(child);
        }
    }

    fn reported(&mut self, report: &ExecReport) {
        let recording = &mut self.recording;
        if recording.recorder.is_on() && recording.reports.len() < recording.reports.capacity() {
            recording.reports.push(GatewayReport {
                exec_type: report.exec_type,
                reason: report.reason,
                order_id: report.order_id,
                venue_received: recording.venue_received,
                report_encoded: self.clock.now(),
                report_sent: Timestamp::NONE,
                last_quantity: report.last_quantity,
                last_price: report.last_price,
                leaves: report.leaves,
            });
        }
    }
}
