//! The world of the past: answers come from the journal, outputs are compared with it.
//!
//! A replay runs every input through the same code that handled it first. It finds a shard's state after a restart, and it
//! checks a journal: the same inputs must give the same outputs, byte for byte.

use crate::client_output::ClientOutputs;
use crate::config::{Config, SessionConfig, ShardConfig, VenueConfig};
use crate::config_limits::{self, SaidLimits, ScopeLimits};
use crate::control::Order;
use crate::crossing::{CrossingMessage, Lane};
use crate::effects::{Destination, Effects, Purpose};
use crate::instruments::Instruments;
use crate::places::InstrumentPlace;
use crate::record::{RECORD_VERSION, Record};
use crate::shard::Shard;
use crate::shared_limits::SharedLimits;
use journal::{JournalError, JournalReader, SentIndex};
use latency::Tap;
use orders::{AccountPlace, Need, Orders, Places, SessionPlace, SessionStake, SharedScope, Stake, TooFast};
use proto::fix::{CloseReason, Recall};
use proto::journal::Kind;
use std::collections::VecDeque;
use std::fmt;
use types::{
    Bbo, ClientOrderId, ExecReport, InstrumentId, NewOrder, OrderId, Reason, SequenceNumber, SessionId, ShardId,
    Timestamp, TradingDay, VenueId,
};

/// What a replay found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Inputs replayed.
    pub inputs: u64,
    /// Outputs made again, and found equal.
    pub outputs: u64,
    /// A hash of all outputs, kinds, addressees and bytes.
    pub hash: u64,
    /// Outputs that the journal's end cut off.
    pub cut_off: u64,
}

/// Why a replay stopped.
#[derive(Debug)]
pub enum ReplayError {
    /// The journal cannot be read.
    Read(JournalError),
    /// A record that this version does not know.
    Unknown { position: u64, kind: u16 },
    /// A record whose payload another version laid out.
    Version { position: u64, version: u16 },
    /// The journal was written under a config that decides otherwise.
    OtherConfig { differences: Vec<&'static str> },
    /// The first output that came out differently.
    Diverged(Divergence),
}

/// Where a replay and its journal part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Position of the record in the journal.
    pub position: u64,
    /// What the journal has there.
    pub recorded: String,
    /// What came out.
    pub replayed: String,
}

/// A shard as its journal left it, and what the world needs to go on.
pub(crate) struct Recovered {
    pub(crate) shard: Shard,
    pub(crate) clients: ClientOutputs,
    /// By [`VenueId`].
    pub(crate) venues: Vec<Kept>,
    pub(crate) client_links: Vec<KeptClient>,
    pub(crate) crossings: Vec<KeptCrossing>,
    /// The limits that configs have said.
    pub(crate) said_limits: SaidLimits,
    /// What the config says otherwise now; all of it where no config has said anything.
    pub(crate) changed_limits: Vec<ScopeLimits>,
    /// Operators' orders that other shards were given and this one was not.
    pub(crate) missed: Vec<Order>,
    /// The last trading day that a config named. An operator may have begun later ones.
    pub(crate) day: TradingDay,
    /// Sessions that were connected when the process ended.
    pub(crate) connected: Vec<SessionId>,
    /// Venues whose link was up when the process ended.
    pub(crate) up: Vec<VenueId>,
    /// Outputs and answers that the journal's end cut off: to be appended, and what is for a venue or a shard sent.
    pub(crate) tail: Vec<(u16, Vec<u8>)>,
    pub(crate) summary: Summary,
}

/// The last messages sent on a numbered way, and the next numbers of both directions.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) next_send: SequenceNumber,
    pub(crate) next_receive: SequenceNumber,
    pub(crate) messages: VecDeque<(SequenceNumber, Vec<u8>)>,
    /// Where in the journal messages stand.
    pub(crate) index: SentIndex,
    capacity: usize,
}

/// Both lanes to another shard.
#[derive(Debug)]
pub(crate) struct KeptCrossing {
    pub(crate) peer: ShardId,
    pub(crate) lanes: [Kept; 2],
}

/// The link of a session whose client comes in by one. Its numbers are not in the records: all messages of the session
/// count, in their order.
#[derive(Debug)]
pub(crate) struct KeptClient {
    pub(crate) session: SessionId,
    pub(crate) kept: Kept,
}

/// The effects of a replay.
struct Replay<'a> {
    tape: Tape<'a>,
    /// Where in the journal the input at hand stands.
    input: u64,
    /// Questions that were asked since then, see [`Record::Refused`].
    asked: u32,
    shared: &'a mut SharedLimits,
    /// No other shard takes of the rates.
    is_alone: bool,
    clients: ClientOutputs,
    venues: Vec<Kept>,
    client_links: Vec<KeptClient>,
    crossings: Vec<KeptCrossing>,
    tail: Vec<(u16, Vec<u8>)>,
    divergence: Option<Divergence>,
    summary: Summary,
    /// A backend stands beside the shard's own pre-filter, and what it did not judge is refused.
    refuses_unjudged: bool,
}

/// The journal, read one record ahead.
struct Tape<'a> {
    reader: &'a mut JournalReader,
    kind: u16,
    time: Timestamp,
    position: u64,
    payload: Vec<u8>,
    at_end: bool,
}

/// Replays a shard's journal from its start to its end, and compares every output.
///
/// # Errors
/// The journal cannot be read, belongs to another config, or an output came out differently.
pub fn verify(config: &Config, shard: ShardId) -> Result<Summary, ReplayError> {
    let directory = config.journal.of_shard(shard).directory;
    let mut reader = JournalReader::open(&directory).map_err(ReplayError::Read)?;
    let mut shared = SharedLimits::new(&config.orders[0], config.shards.len());
    Recovered::replay(config, shard, &mut reader, &mut shared).map(|recovered| recovered.summary)
}

impl Recovered {
    /// Replays a journal from its start to its end.
    ///
    /// # Errors
    /// The journal cannot be read, belongs to another config, or an output came out differently.
    pub(crate) fn replay(
        config: &Config,
        shard: ShardId,
        reader: &mut JournalReader,
        shared: &mut SharedLimits,
    ) -> Result<Self, ReplayError> {
        let logic = Shard::new(config, shard).expect("the config was checked");
        let mut recovered = Self {
            shard: logic,
            clients: ClientOutputs::new(config, shard),
            venues: Vec::new(),
            client_links: Vec::new(),
            crossings: Vec::new(),
            said_limits: SaidLimits::default(),
            changed_limits: Vec::new(),
            missed: Vec::new(),
            day: TradingDay(0),
            connected: Vec::new(),
            up: Vec::new(),
            tail: Vec::new(),
            summary: Summary::default(),
        };
        let mut replay = Replay::new(config, shard, reader, shared)?;
        while !replay.tape.at_end {
            recovered.input(config, &mut replay)?;
            if let Some(divergence) = replay.divergence.take() {
                return Err(ReplayError::Diverged(divergence));
            }
        }
        recovered.clients = replay.clients;
        recovered.venues = replay.venues;
        recovered.client_links = replay.client_links;
        recovered.crossings = replay.crossings;
        recovered.tail = replay.tail;
        recovered.summary = replay.summary;
        let wanted = &config.orders[usize::from(shard.0)];
        recovered.changed_limits = recovered.said_limits.changed_by(wanted);
        Ok(recovered)
    }

    /// What was kept of the lanes to another shard.
    ///
    /// # Panics
    /// When there is no such shard.
    pub(crate) fn crossing(&self, peer: ShardId) -> &KeptCrossing {
        self.crossings
            .iter()
            .find(|crossing| crossing.peer == peer)
            .expect("every other shard has a crossing")
    }

    /// Runs one input, with all the answers and outputs that stand behind it.
    fn input(&mut self, config: &Config, replay: &mut Replay<'_>) -> Result<(), ReplayError> {
        let (position, kind, now) = (replay.tape.position, replay.tape.kind, replay.tape.time);
        let payload = replay.tape.take()?;
        let record = Record::decode(kind, &payload).map_err(|_| ReplayError::Unknown { position, kind })?;
        replay.summary.inputs += 1;
        (replay.input, replay.asked) = (position, 0);
        let shard = &mut self.shard;
        match record {
            Record::Started { structure } => {
                let differences = config.structure.differences(structure);
                if !differences.is_empty() {
                    return Err(ReplayError::OtherConfig { differences });
                }
            }
            Record::ConfigLimits { scope, changes } => {
                let changes = config_limits::decode(changes).unwrap_or_default();
                self.said_limits.note(scope, &changes);
                shard.on_config_limits(now, scope, &changes, replay);
            }
            Record::SessionBound(binding) => shard.on_session_bound(&binding, replay),
            Record::SessionHours { session, since } => shard.on_session_hours(now, session, since, replay),
            Record::SessionUp { session } => {
                self.connected.push(session);
                shard.on_session_up(now, session, replay);
            }
            Record::SessionDown { session } => {
                self.connected.retain(|&connected| connected != session);
                shard.on_session_down(now, session, replay);
            }
            Record::ClientTooLong { session, head, .. } => shard.on_client_too_long(now, session, head, replay),
            Record::ClientMessage { session, message } => {
                if let Some(kept) = replay.client_link(session) {
                    kept.next_receive = kept.next_receive.next();
                }
                shard.on_client_message(now, session, message, replay);
            }
            Record::Recalled {
                session,
                id,
                sequence,
                message,
            } => shard.on_recalled(now, session, id, sequence, message, replay),
            Record::SessionTimer { session } => shard.on_session_timer(now, session, replay),
            Record::RoomAgain => shard.on_room(now, replay),
            Record::VenueUp { venue } => {
                self.up.push(venue);
                shard.on_venue_up(now, venue, replay);
            }
            Record::VenueDown { venue } => {
                self.up.retain(|&up| up != venue);
                shard.on_venue_down(now, venue, replay);
            }
            Record::VenueSlots { venue, slots } => shard.on_venue_slots(now, venue, slots, replay),
            Record::VenueMessage {
                venue,
                sequence,
                message,
            } => {
                replay.venues[usize::from(venue.0)].next_receive = sequence.next();
                shard.on_venue_message(now, venue, message, replay);
            }
            Record::ShardMessage {
                shard: peer,
                lane,
                sequence,
                message,
            } => {
                if let Some(kept) = replay.crossing(peer, lane) {
                    kept.next_receive = sequence.next();
                }
                shard.on_shard_message(now, message, replay);
            }
            Record::BookMoved { instrument, bbo } => shard.on_book(now, instrument, &bbo, replay),
            Record::Marked(mark) => shard.on_mark(now, &mark, replay),
            Record::Controlled(order) => shard.on_control(now, &order, replay),
            Record::DayRolled { day } => {
                self.day = day;
                shard.on_day_roll(now, day, replay);
            }
            // An answer or output that nothing asked for: the inputs before it gave less than they did.
            Record::Reference { .. }
            | Record::Refused { .. }
            | Record::TooFast { .. }
            | Record::ClientOutput { .. }
            | Record::ClientHeld { .. }
            | Record::VenueOutput { .. }
            | Record::ShardOutput { .. } => {
                let divergence = Divergence {
                    position,
                    recorded: format!("{record:?}"),
                    replayed: "nothing".to_owned(),
                };
                return Err(ReplayError::Diverged(divergence));
            }
        }
        Ok(())
    }
}

impl<'a> Replay<'a> {
    fn new(
        config: &Config,
        shard: ShardId,
        reader: &'a mut JournalReader,
        shared: &'a mut SharedLimits,
    ) -> Result<Self, ReplayError> {
        let window = |venue: &VenueConfig| venue.links[usize::from(shard.0)].settings.window();
        let crossing = |peer: &ShardConfig| KeptCrossing {
            peer: peer.id,
            lanes: [
                Kept::new(config.crossing_messages),
                Kept::new(config.crossing_messages + config.open_orders()),
            ],
        };
        Ok(Self {
            tape: Tape::new(reader)?,
            input: 0,
            asked: 0,
            shared,
            is_alone: config.shards.len() == 1,
            clients: ClientOutputs::new(config, shard),
            venues: config.venues.iter().map(|venue| Kept::new(window(venue))).collect(),
            client_links: config
                .sessions
                .iter()
                .filter_map(|session| KeptClient::of(session, shard))
                .collect(),
            crossings: config
                .shards
                .iter()
                .filter(|peer| peer.id != shard)
                .map(crossing)
                .collect(),
            tail: Vec::new(),
            divergence: None,
            summary: Summary {
                hash: FNV_OFFSET,
                ..Summary::default()
            },
            refuses_unjudged: config.prefilter.refuses_unjudged(),
        })
    }

    fn client_link(&mut self, session: SessionId) -> Option<&mut Kept> {
        let mut links = self.client_links.iter_mut();
        links.find(|link| link.session == session).map(|link| &mut link.kept)
    }

    fn crossing(&mut self, peer: ShardId, lane: Lane) -> Option<&mut Kept> {
        let crossing = self.crossings.iter_mut().find(|crossing| crossing.peer == peer)?;
        Some(&mut crossing.lanes[lane as usize])
    }

    /// Asks what is answered by a record of this kind or by none, and reads the next one if it is that.
    fn answer(&mut self, kind: Kind) -> Option<Vec<u8>> {
        self.asked += 1;
        if self.tape.at_end || self.tape.kind != kind as u16 || self.divergence.is_some() {
            return None;
        }
        if self.tape.payload.first_chunk() != Some(&self.asked.to_le_bytes()) {
            return None;
        }
        match self.tape.take() {
            Ok(payload) => Some(payload),
            Err(error) => {
                self.diverge("an answer", &error.to_string());
                None
            }
        }
    }

    /// Reads a refusal that the world decided, if one stands here.
    fn refusal(&mut self) -> Option<Reason> {
        let payload = self.answer(Kind::Refusal)?;
        match Record::decode(Kind::Refusal as u16, &payload) {
            Ok(Record::Refused { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// Whether there was room for what the shard says by itself. Past the end there was no answer: it waits, and is asked for
    /// again by the first input to come. That it waited is then an answer like any other, or the next replay would send it.
    fn has_room(&mut self, reason: Reason) -> bool {
        if self.tape.at_end {
            self.asked += 1;
            self.keep_refusal(reason);
            return false;
        }
        self.refusal().is_none()
    }

    /// Reads that an order was too fast, if that stands here.
    fn too_fast(&mut self) -> Option<TooFast> {
        let payload = self.answer(Kind::TooFast)?;
        match Record::decode(Kind::TooFast as u16, &payload) {
            Ok(Record::TooFast { too_fast, .. }) => Some(too_fast),
            _ => None,
        }
    }

    /// What was refused now, and the journal is still to have it.
    fn keep_refusal(&mut self, reason: Reason) {
        let asked = self.asked;
        self.keep_answer(&Record::Refused { asked, reason });
    }

    /// What was answered now, likewise.
    fn keep_answer(&mut self, answer: &Record<'_>) {
        let (kind, head, _) = answer.encode();
        self.tail.push((kind as u16, head.as_slice().to_vec()));
    }

    /// An output came out: the journal has the same, or has ended.
    fn output(&mut self, record: &Record<'_>) {
        if self.divergence.is_some() {
            return;
        }
        let (kind, head, message) = record.encode();
        let payload = [head.as_slice(), message].concat();
        self.summary.hash = hash(self.summary.hash, kind as u16, &payload);
        if self.tape.at_end {
            self.summary.cut_off += 1;
            self.tail.push((kind as u16, payload));
            return;
        }
        if self.tape.kind != kind as u16 || self.tape.payload != payload {
            self.diverge_at_tape(&format!("{record:?}"));
            return;
        }
        self.summary.outputs += 1;
        if let Err(error) = self.tape.advance() {
            self.diverge("an output", &error.to_string());
        }
    }

    fn diverge_at_tape(&mut self, replayed: &str) {
        let recorded = match Record::decode(self.tape.kind, &self.tape.payload) {
            Ok(record) => format!("{record:?}"),
            Err(_) => format!("record of kind {}", self.tape.kind),
        };
        self.diverge(&recorded, replayed);
    }

    fn diverge(&mut self, recorded: &str, replayed: &str) {
        self.divergence = Some(Divergence {
            position: self.tape.position,
            recorded: recorded.to_owned(),
            replayed: replayed.to_owned(),
        });
    }
}

impl Effects for Replay<'_> {
    fn stamp(&mut self, _: Tap) {}

    fn reference(&mut self, _: InstrumentPlace, instrument: InstrumentId, _: &Bbo) -> Option<Bbo> {
        let payload = self.answer(Kind::ReferencePrice)?;
        match Record::decode(Kind::ReferencePrice as u16, &payload) {
            Ok(Record::Reference {
                instrument: recorded,
                bbo,
                ..
            }) if recorded == instrument => Some(bbo),
            other => {
                self.diverge(
                    &format!("{other:?}"),
                    &format!("a reference of instrument {instrument}"),
                );
                None
            }
        }
    }

    fn prefilter(&mut self, _: Timestamp, _: InstrumentPlace, _: &NewOrder) -> Result<(), Reason> {
        // Past the end nobody knows what the backend said: what was to be refused then is.
        if self.tape.at_end && self.refuses_unjudged {
            let reason = Reason::Killed;
            self.asked += 1;
            self.keep_refusal(reason);
            return Err(reason);
        }
        self.refusal().map_or(Ok(()), Err)
    }

    fn prefilter_limits(&mut self, _: &Instruments, _: &Orders) {}

    fn reserve_room(&mut self, _: SessionId, _: Destination, _: Purpose) -> Result<(), Reason> {
        self.refusal().map_or(Ok(()), Err)
    }

    fn reserve_reports(&mut self, _: SessionId, _: Option<ShardId>, _: usize) -> Result<(), Reason> {
        self.refusal().map_or(Ok(()), Err)
    }

    fn take_rates(&mut self, now: Timestamp, places: Places) -> Result<(), TooFast> {
        if self.tape.at_end {
            // Nobody was told yet: it is decided now.
            self.asked += 1;
            let verdict = self.shared.take_rates(now, places);
            if let Err(too_fast) = verdict {
                let asked = self.asked;
                self.keep_answer(&Record::TooFast { asked, too_fast });
            }
            return verdict;
        }
        if let Some(too_fast) = self.too_fast() {
            return Err(too_fast);
        }
        if self.is_alone {
            // As it was then.
            let _: Result<(), TooFast> = self.shared.take_rates(now, places);
        } else {
            self.shared.use_up_rates(now, places);
        }
        Ok(())
    }

    fn give_back_rates(&mut self, places: Places) {
        if self.is_alone || self.tape.at_end {
            self.shared.give_back_rates(places);
        }
    }

    fn reserve_shared(&mut self, places: Places, need: &Need) -> Result<(), Reason> {
        if self.tape.at_end {
            // As above; it sees what all shards took whose journals were replayed before this one.
            self.asked += 1;
            let verdict = self.shared.reserve(places, need);
            if let Err(reason) = verdict {
                self.keep_refusal(reason);
            }
            return verdict;
        }
        if let Some(reason) = self.refusal() {
            return Err(reason);
        }
        self.shared.settle(places.account, &need.stake);
        let Stake { notional, orders, .. } = need.stake;
        self.shared
            .settle_session(places.session, &SessionStake { notional, orders });
        Ok(())
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

    fn room_for_cancel(&mut self, _: VenueId) -> bool {
        self.has_room(Reason::VenueFull)
    }

    fn room_for_order(&mut self, _: VenueId) -> bool {
        self.has_room(Reason::VenueFull)
    }

    fn room_for_end(&mut self) -> bool {
        self.has_room(Reason::JournalFull)
    }

    fn room_for_notice(&mut self, _: ShardId) -> bool {
        self.has_room(Reason::ShardRingFull)
    }

    fn to_client(&mut self, session: SessionId, sequence: Option<SequenceNumber>, message: &[u8]) {
        let position = self.tape.next_position();
        self.output(&Record::ClientOutput { session, message });
        if let Some(kept) = self.client_link(session) {
            kept.push(message, position);
        } else if let Some(output) = self.clients.get_mut(session) {
            output.push(message, 0);
            if let Some(sequence) = sequence {
                output.note(sequence, position);
            }
        }
    }

    fn hold(&mut self, session: SessionId, sequence: SequenceNumber, message: &[u8]) {
        let position = self.tape.next_position();
        self.output(&Record::ClientHeld { session, message });
        if let Some(output) = self.clients.get_mut(session) {
            output.note(sequence, position);
        }
    }

    fn renumbered(&mut self, session: SessionId) {
        if let Some(output) = self.clients.get_mut(session) {
            output.renumber(self.input);
        }
    }

    /// What was found is in the journal; what was not found yet is asked for again by the client, who has gone.
    fn recall(&mut self, _: SessionId, _: &Recall) {}

    fn to_venue(&mut self, venue: VenueId, message: &[u8]) {
        let position = self.tape.next_position();
        let sequence = self.venues[usize::from(venue.0)].push(message, position);
        self.output(&Record::VenueOutput {
            venue,
            sequence,
            message,
        });
    }

    fn to_shard(&mut self, shard: ShardId, lane: Lane, message: &[u8]) {
        let position = self.tape.next_position();
        let Some(kept) = self.crossing(shard, lane) else { return };
        let sequence = kept.push(message, position);
        self.output(&Record::ShardOutput {
            shard,
            lane,
            sequence,
            message,
        });
    }

    fn close(&mut self, _: SessionId, _: CloseReason, _: &[u8]) {}

    fn is_recording(&self) -> bool {
        false
    }

    fn order_taken(&mut self, _: &NewOrder, _: ClientOrderId, _: OrderId, _: Reason) {}

    fn kept_order_sent(&mut self, _: OrderId, _: ClientOrderId, _: Option<Timestamp>) {}

    fn reported(&mut self, _: &ExecReport) {}
}

impl Kept {
    fn new(capacity: usize) -> Self {
        let first = SequenceNumber(1);
        Self {
            next_send: first,
            next_receive: first,
            messages: VecDeque::with_capacity(capacity),
            index: SentIndex::new(),
            capacity,
        }
    }

    /// A message that stands at `position` of the journal.
    fn push(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        let sequence = self.next_send;
        self.index.note(sequence, position);
        if self.messages.len() == self.capacity {
            self.messages.pop_front();
        }
        self.messages.push_back((sequence, message.to_vec()));
        self.next_send = sequence.next();
        sequence
    }

    /// The oldest message that is kept; the next one, when none is.
    pub(crate) fn oldest(&self) -> SequenceNumber {
        self.messages.front().map_or(self.next_send, |(sequence, _)| *sequence)
    }

    /// What the peer did not take: everything from `next` on.
    pub(crate) fn from(&self, next: SequenceNumber) -> impl Iterator<Item = CrossingMessage> {
        self.messages
            .iter()
            .filter(move |(sequence, _)| *sequence >= next)
            .map(|(sequence, bytes)| CrossingMessage::new(*sequence, bytes))
    }
}

impl KeptClient {
    /// Of a session of `shard` that has a link, nothing sent and nothing received.
    fn of(session: &SessionConfig, shard: ShardId) -> Option<Self> {
        (session.shard == shard && session.link.is_some()).then(|| Self {
            session: session.id,
            kept: Kept::new(session.resend_messages),
        })
    }
}

impl<'a> Tape<'a> {
    fn new(reader: &'a mut JournalReader) -> Result<Self, ReplayError> {
        let mut tape = Self {
            reader,
            kind: 0,
            time: Timestamp::NONE,
            position: 0,
            payload: Vec::new(),
            at_end: false,
        };
        tape.advance()?;
        Ok(tape)
    }

    /// Where the record at hand stands, or the next one will.
    const fn next_position(&self) -> u64 {
        if self.at_end {
            self.reader.position()
        } else {
            self.position
        }
    }

    /// Gives the payload of the record at hand and reads the next.
    fn take(&mut self) -> Result<Vec<u8>, ReplayError> {
        let payload = std::mem::take(&mut self.payload);
        self.advance()?;
        Ok(payload)
    }

    fn advance(&mut self) -> Result<(), ReplayError> {
        match self.reader.next_record().map_err(ReplayError::Read)? {
            Some(record) if record.version != RECORD_VERSION => {
                return Err(ReplayError::Version {
                    position: record.position,
                    version: record.version,
                });
            }
            Some(record) => {
                self.kind = record.kind;
                self.time = record.time;
                self.position = record.position;
                self.payload.clear();
                self.payload.extend_from_slice(record.payload);
            }
            None => self.at_end = true,
        }
        Ok(())
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over an output.
fn hash(mut hash: u64, kind: u16, payload: &[u8]) -> u64 {
    for &byte in kind.to_le_bytes().iter().chain(payload) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::Unknown { position, kind } => {
                write!(
                    f,
                    "record at {position} has kind {kind}, which this version does not know"
                )
            }
            Self::Version { position, version } => write!(
                f,
                "record at {position} is of record version {version}, this program writes {RECORD_VERSION}; replay it with \
                 the program that wrote it, or begin an empty directory"
            ),
            Self::OtherConfig { differences } => write!(
                f,
                "the journal began with a config that differs in {}; only limits may change: restore what differs, or begin an \
                 empty directory",
                differences.join(", ")
            ),
            Self::Diverged(Divergence {
                position,
                recorded,
                replayed,
            }) => {
                write!(
                    f,
                    "replay differs from the journal at {position}: recorded {recorded}, replayed {replayed}"
                )
            }
        }
    }
}

impl std::error::Error for ReplayError {}
