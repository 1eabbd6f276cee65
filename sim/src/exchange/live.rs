//! The engine wired to a journal and to its sessions' links.
//!
//! # Room
//! The market's verdict is final, so an input is taken only when there is room for whatever it may cause:
//! - On the feed: [`Market::published_max`] and a few more.
//! - In the journal: a record for each message to a session, and for what was published.
//! - In the links' rings. An input causes at most one report for each live order of a session, but for those about the
//!   order that it brought, and for what waiting orders and icebergs are known to add. A session therefore keeps two free
//!   places for each of its orders, one for a trade and one for a cancel, and that ([`Market::reports_reserved`]). When it
//!   has fewer because its peer does not read, its orders are cancelled while that is still possible.
//!   A new order must leave half the window free as well: a peer that was refused may have sent up to half a window of
//!   requests before it knew, and each needs its answer. (So a peer's own window should be at most half of ours.) When a
//!   session has no room for one answer, nothing more is taken from its link until there is, or until it breaks.
//!
//! What the room allowed is in the journal as part of the input, because a replay has no links to ask.
//!
//! [`Market::published_max`]: super::Market::published_max
//! [`Market::reports_reserved`]: super::Market::reports_reserved

use super::engine::{Engine, Sending};
use super::journal::Journal;
use super::limits::REPORTS_HELD_PER_TURN;
use super::market::MarketCapacity;
use super::recall::Recall;
use super::record::{Input, Output, Published};
use super::recovery::{PUBLISHED_EXTRA, history_burst};
use super::room::{self, REPORTS_PER_ORDER};
use journal::SentIndex;
use latency::clock::Clock;
use latency::{ExchangeReport, Recorder};
use net::Link;
use net::link::LinkWatch;
use proto::journal::{RECORD_HEADER_LENGTH, record_length};
use proto::native;
use types::{ExecReport, OrderId, Reason, Request, SequenceNumber, SessionId, Timestamp};

/// The engine and what its outputs go to.
pub(super) struct Live<L, J> {
    pub(super) clock: Clock,
    pub(super) engine: Engine,
    /// Sorted by session, as the engine's numbers are.
    pub(super) lines: Vec<Line<L>>,
    pub(super) journal: J,
    recall: Option<Recall>,
    pub(super) recorder: Recorder,
    /// Reports that were queued in this turn, to be stamped when they leave.
    reported: Vec<ExchangeReport>,
    /// The feed may leave once the journal is safe up to here.
    published_position: u64,
    history_burst: usize,
}

/// A session and its link.
pub(super) struct Line<L> {
    pub(super) session: SessionId,
    pub(super) link: L,
    /// What the log says of it.
    pub(super) watch: LinkWatch,
    /// Where in the journal the messages to it stand.
    sent: SentIndex,
    /// Messages that its ring holds.
    pub(super) window: usize,
    /// Up, or with orders from before a restart: going down means something.
    pub(super) is_engaged: bool,
    /// It was sent something since its room was last looked at.
    is_touched: bool,
}

/// Where the outputs of one input go.
struct Wires<'a, L, J> {
    now: Timestamp,
    lines: &'a mut [Line<L>],
    journal: &'a mut J,
    reported: &'a mut Vec<ExchangeReport>,
    /// `None`: nothing is recorded.
    recorder: Option<&'a mut Recorder>,
    published_position: &'a mut u64,
}

impl<L: Link, J: Journal> Live<L, J> {
    pub(super) fn new(
        clock: Clock,
        engine: Engine,
        lines: Vec<Line<L>>,
        journal: J,
        recall: Option<Recall>,
        recorder: Recorder,
        history_window: usize,
    ) -> Self {
        let ids = engine.numbers().iter().map(|numbers| numbers.session);
        assert!(
            ids.eq(lines.iter().map(|line| line.session)),
            "every session has its link"
        );
        Self {
            clock,
            engine,
            lines,
            journal,
            recall,
            recorder,
            reported: Vec::with_capacity(REPORTS_HELD_PER_TURN),
            published_position: 0,
            history_burst: history_burst(history_window),
        }
    }

    /// Writes an input down and works it off.
    pub(super) fn input(&mut self, now: Timestamp, input: &Input<'_>) {
        let entries = self.engine.market.entries();
        self.apply(now, input);
        // One more that may come in by others' doing concerns all.
        let concerns_all = self.engine.market.entries() > entries;
        for place in 0..self.lines.len() {
            let Line {
                session, is_touched, ..
            } = self.lines[place];
            if !is_touched && !concerns_all {
                continue;
            }
            self.lines[place].is_touched = false;
            if self.lines[place].link.room() < self.engine.market.reports_reserved(session)
                && self.engine.market.open_orders(session) > 0
            {
                tracing::warn!("session {session} does not read its reports: its orders are cancelled");
                self.apply(now, &Input::SessionStalled(session));
            }
        }
    }

    fn apply(&mut self, now: Timestamp, input: &Input<'_>) {
        let (kind, head, message) = input.encode();
        self.journal.append(kind, now, &[head.as_bytes(), message]);
        let mut wires = Wires {
            now,
            lines: &mut self.lines,
            journal: &mut self.journal,
            reported: &mut self.reported,
            recorder: self.recorder.is_on().then_some(&mut self.recorder),
            published_position: &mut self.published_position,
        };
        self.engine.apply(now, input, &mut wires);
    }

    /// Whether a datagram of the recording may be taken, with all that it may release.
    pub(super) fn has_room_for_history(&self) -> bool {
        let market = &self.engine.market;
        let published = market.published_max() + PUBLISHED_EXTRA + self.history_burst;
        self.engine.publisher.room() >= published && self.has_room_for_records(self.history_burst)
    }

    /// Whether the next event of a link may be taken.
    pub(super) fn has_room_for_event(&self, place: usize) -> bool {
        let line = &self.lines[place];
        let market = &self.engine.market;
        // While the link is down no message comes, and what does come may bring room.
        let can_answer = line.link.room() > market.reports_reserved(line.session) || !line.link.is_up();
        can_answer && self.has_room_for_timer()
    }

    /// Whether something may happen because its time has come.
    pub(super) fn has_room_for_timer(&self) -> bool {
        self.engine.publisher.room() >= self.engine.market.published_max() + PUBLISHED_EXTRA
            && self.has_room_for_records(0)
    }

    /// What the room says of a request of this session.
    pub(super) fn admission(&self, place: usize, request: &Request) -> Reason {
        if !matches!(request, Request::New(_) | Request::Replace(_)) {
            return Reason::None;
        }
        let (line, market) = (&self.lines[place], &self.engine.market);
        let open = market.open_orders(line.session);
        // What was granted once and is less now: the peer may not have known yet.
        if matches!(request, Request::New(_))
            && market
                .open_orders_max(line.session)
                .is_some_and(|most| open >= most as usize)
        {
            return Reason::NoVenueSlot;
        }
        let needed = market.reports_needed(request);
        let kept_free = market.reports_reserved(line.session) + REPORTS_PER_ORDER + line.window / 2;
        if line.link.room() < kept_free + needed {
            return Reason::VenueFull;
        }
        // Each report may have its counterpart at the other side of the trade.
        if !self.has_room_for_records(2 * needed) {
            return Reason::JournalFull;
        }
        Reason::None
    }

    /// Whether the journal takes `more` records beside those that any input may need.
    fn has_room_for_records(&self, more: usize) -> bool {
        let records = records(self.engine.market.reports_max(), self.lines.len());
        self.journal.room((records + more) * RECORD_MAX)
    }

    /// Lets the links send what may leave, and stamps the reports that did.
    pub(super) fn flush(&mut self, now: Timestamp) {
        let watermark = self.journal.watermark();
        let (appended, synced) = self.journal.progress();
        for line in &mut self.lines {
            line.link.journaled(appended, synced);
            line.link.flush(now, watermark);
            line.watch.turn(now, &line.link);
        }
        if !self.reported.is_empty() {
            let time = self.clock.now();
            for report in self.reported.drain(..) {
                self.recorder.push(ExchangeReport { time, ..report });
            }
        }
    }

    /// A session's peer has lost messages `from` up to below `to`.
    pub(super) fn recall(&mut self, place: usize, from: SequenceNumber, to: SequenceNumber) {
        let Line {
            session, link, sent, ..
        } = &mut self.lines[place];
        match &mut self.recall {
            Some(recall) => recall.want(*session, from, to, sent),
            None => link.not_recalled(from),
        }
    }

    /// Hands to the links what was read back from the journal. Whether there was anything.
    pub(super) fn bring_recalled(&mut self) -> bool {
        let lines = &mut self.lines;
        self.recall.as_mut().is_some_and(|recall| recall.turn(lines))
    }

    /// Whether the feed's messages may leave.
    pub(super) fn may_publish(&self) -> bool {
        self.journal.watermark() >= self.published_position
    }

    /// Outputs that the last process decided and did not come to write down.
    pub(super) fn append_unrecorded(&mut self, now: Timestamp, outputs: &[(proto::journal::Kind, Vec<u8>)]) {
        for (kind, payload) in outputs {
            self.published_position = self.journal.append(*kind, now, &[payload]);
        }
    }
}

impl<L> Line<L> {
    pub(super) fn new(session: SessionId, link: L, sent: SentIndex, window: usize, is_engaged: bool) -> Self {
        Self {
            session,
            link,
            watch: LinkWatch::new("link", format!("session {session}")),
            sent,
            window,
            is_engaged,
            is_touched: false,
        }
    }
}

impl<L: Link, J: Journal> Wires<'_, L, J> {
    fn append(&mut self, output: &Output<'_>) -> u64 {
        let (kind, head, message) = output.encode();
        self.journal.append(kind, self.now, &[head.as_bytes(), message])
    }
}

impl<L: Link, J: Journal> Sending for Wires<'_, L, J> {
    fn to_session(&mut self, place: usize, session: SessionId, sequence: SequenceNumber, message: &[u8]) {
        let output = Output::Session {
            session,
            sequence,
            message,
        };
        let position = self.append(&output);
        let line = &mut self.lines[place];
        line.sent
            .note(sequence, position.saturating_sub(output.record_length()));
        line.is_touched = true;
        let given = line.link.send(message, position);
        assert_eq!(
            given, sequence,
            "the link of session {session} counts otherwise than the journal"
        );
    }

    fn reported(&mut self, report: &ExecReport, number: OrderId) {
        let Some(recorder) = &mut self.recorder else { return };
        let record = ExchangeReport {
            exec_type: report.exec_type,
            order_id: number,
            time: self.now,
        };
        if self.reported.len() < self.reported.capacity() {
            self.reported.push(record);
        } else {
            recorder.push(record);
        }
    }

    fn published(&mut self, published: &Published) {
        *self.published_position = self.append(&Output::Feed(*published));
    }
}

/// Bytes of a journal's ring that the largest input may need.
pub(super) const fn journal_room(capacity: &MarketCapacity, sessions: usize, history_window: usize) -> usize {
    (records(room::reports_max(capacity), sessions) + history_burst(history_window)) * RECORD_MAX
}

/// Records that any input may need: `reports`; a session may turn out not to read, which is an input and publishes; and the
/// input itself, its first answer, the end of what may not rest, one order that trades in part, what was published.
const fn records(reports: usize, sessions: usize) -> usize {
    reports + 2 * sessions + 5
}

/// Longest record of the exchange, bytes: a message behind its session, number and admission.
const RECORD_MAX: usize = record_length(2 + 8 + 2 + native::MAX_MESSAGE_LENGTH);
const _: () = assert!(RECORD_MAX > RECORD_HEADER_LENGTH + proto::itch::MAX_MESSAGE_LENGTH);
