//! From a journal to the state that its writer had: the same inputs through the same code, and the outputs held against
//! those that were written down.

use super::engine::{Engine, Sending};
use super::limits::MAX_DATAGRAM_LENGTH;
use super::listing::ListingError;
use super::market::MarketConfig;
use super::record::{Digest, Input, Output, Published};
use super::room;
use journal::SentIndex;
use net::link::Resume;
use proto::itch::MAX_MESSAGE_LENGTH as MAX_ITCH_LENGTH;
use proto::journal::Kind;
use proto::mold::{MAX_PACKET_LENGTH, Session};
use std::collections::VecDeque;
use std::fmt;
use types::{Duration, ExecReport, OrderId, SequenceNumber, SessionId, Timestamp, TradingDay};

/// What decides, beside the inputs, and how much is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoreConfig {
    /// The market.
    pub market: MarketConfig,
    /// Messages to a session that may be unacknowledged, by the order of `market.sessions`.
    pub windows: Vec<usize>,
    /// Messages of market data that are kept for those who missed them.
    pub retransmit_messages: usize,
    /// Messages of the recording that may wait behind a gap.
    pub history_window: usize,
    /// Silence of the feed after which it tells its next number.
    pub heartbeat: Duration,
}

/// Reads a journal's records, in order.
pub struct Recovery<'a> {
    config: &'a CoreConfig,
    engine: Engine,
    /// What the feed is called; `None` before the first record.
    session: Option<Session>,
    day: Option<TradingDay>,
    replay: Replay,
    records: u64,
}

/// An exchange as its journal left it, or a new one.
pub struct Recovered {
    pub(super) engine: Engine,
    pub(super) session: Session,
    pub(super) day: Option<TradingDay>,
    pub(super) fingerprint: u64,
    pub(super) windows: Vec<usize>,
    pub(super) history_window: usize,
    kept: Vec<Kept>,
    /// Outputs of the last input that the journal does not have: its writer died between the two.
    pub(super) unrecorded: Vec<(Kind, Vec<u8>)>,
    /// Records read.
    pub records: u64,
}

/// Why a journal cannot be gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryError {
    /// It was written with another configuration.
    OtherConfig,
    /// It does not begin with a start, or is no exchange's.
    NoExchange {
        /// Number of the record.
        record: u64,
    },
    /// What was sent then is not what the inputs cause now.
    Differs {
        /// Number of the record.
        record: u64,
    },
}

/// What the input before caused, and has not been found in the journal yet; and what was sent last.
struct Replay {
    expected: VecDeque<(Kind, Vec<u8>)>,
    kept: Vec<Kept>,
}

/// The last messages to a session: as many as its link may hold.
struct Kept {
    session: SessionId,
    window: usize,
    messages: VecDeque<(SequenceNumber, Vec<u8>)>,
    /// Where in the journal all messages to it stand.
    sent: SentIndex,
}

impl CoreConfig {
    /// A number for everything that decides, and nothing else.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut digest = Digest::EMPTY;
        for instrument in &self.market.instruments {
            digest.take(instrument.symbol.as_bytes());
            digest.mix(u64::from(instrument.id.0));
            digest.mix(instrument.tick_size.0.cast_unsigned());
            digest.mix(u64::from(instrument.lot_size));
            digest.mix(instrument.reference_price.0.cast_unsigned());
        }
        for session in &self.market.sessions {
            digest.mix(u64::from(session.id.0) << 1 | u64::from(session.cancel_on_disconnect));
        }
        let capacity = self.market.capacity;
        for size in [
            capacity.orders,
            capacity.levels,
            capacity.client_orders,
            capacity.special_orders,
        ] {
            digest.mix(size as u64);
        }
        digest.mix(self.market.self_match as u64);
        digest.0
    }

    /// Bytes that the exchange allocates, but for links, journal and small change.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.market.memory() + self.feed_ring() * (MAX_ITCH_LENGTH + size_of::<u16>())
    }

    /// Messages that the feed's publisher holds: those that are kept, and what the inputs of one turn may add.
    #[must_use]
    pub fn feed_ring(&self) -> usize {
        let burst = room::published_max(&self.market.capacity, self.market.instruments.len()) + PUBLISHED_EXTRA;
        (self.retransmit_messages + burst + history_burst(self.history_window)).next_power_of_two()
    }

    /// Sessions with their windows, sorted.
    fn sessions(&self) -> Vec<(SessionId, usize)> {
        let ids = self.market.sessions.iter().map(|session| session.id);
        let mut sessions: Vec<_> = ids.zip(self.windows.iter().copied()).collect();
        sessions.sort_unstable();
        sessions
    }
}

impl<'a> Recovery<'a> {
    /// An empty market, and nothing read yet.
    ///
    /// # Errors
    /// The instruments cannot be on a feed.
    pub fn new(config: &'a CoreConfig) -> Result<Self, ListingError> {
        let kept = |(session, window)| Kept {
            session,
            window,
            messages: VecDeque::new(),
            sent: SentIndex::new(),
        };
        Ok(Self {
            engine: Engine::new(&config.market, UNNAMED, config.feed_ring(), config.heartbeat)?,
            session: None,
            day: None,
            replay: Replay {
                expected: VecDeque::new(),
                kept: config.sessions().into_iter().map(kept).collect(),
            },
            records: 0,
            config,
        })
    }

    /// The next record, which stands at `position` of the journal.
    ///
    /// # Errors
    /// The journal is not one that this configuration can go on with.
    pub fn on_record(
        &mut self,
        kind: u16,
        time: Timestamp,
        position: u64,
        payload: &[u8],
    ) -> Result<(), RecoveryError> {
        self.records += 1;
        let no_exchange = RecoveryError::NoExchange { record: self.records };
        let kind = Kind::from_u16(kind).ok_or(no_exchange)?;
        if kind.is_output() {
            let output = self.session.and(Output::decode(kind, payload)).ok_or(no_exchange)?;
            if let Output::Session { session, sequence, .. } = output
                && let Some(kept) = self.replay.kept.iter_mut().find(|kept| kept.session == session)
            {
                kept.sent.note(sequence, position);
            }
            return match self.replay.expected.pop_front() {
                Some((expected, bytes)) if expected == kind && bytes == payload => Ok(()),
                _ => Err(RecoveryError::Differs { record: self.records }),
            };
        }
        let input = Input::decode(kind, payload).ok_or(no_exchange)?;
        if let Input::Started { fingerprint, session } = input {
            self.on_start(fingerprint, session)?;
        }
        if self.session.is_none() {
            return Err(no_exchange);
        }
        if !self.replay.expected.is_empty() {
            return Err(RecoveryError::Differs { record: self.records });
        }
        self.apply(time, &input);
        Ok(())
    }

    /// The state after the last record. A new exchange publishes as `session`; another one goes on as it did.
    #[must_use]
    pub fn finish(mut self, session: Session) -> Recovered {
        if self.session.is_none() {
            self.engine.publisher.start(session);
        }
        Recovered {
            session: self.session.unwrap_or(session),
            engine: self.engine,
            day: self.day,
            fingerprint: self.config.fingerprint(),
            windows: self.config.sessions().into_iter().map(|(_, window)| window).collect(),
            history_window: self.config.history_window,
            kept: self.replay.kept,
            unrecorded: self.replay.expected.into(),
            records: self.records,
        }
    }

    fn on_start(&mut self, fingerprint: u64, session: Session) -> Result<(), RecoveryError> {
        if fingerprint != self.config.fingerprint() {
            return Err(RecoveryError::OtherConfig);
        }
        if self.session.is_none() {
            self.session = Some(session);
            self.engine.publisher.start(session);
        }
        Ok(())
    }

    fn apply(&mut self, time: Timestamp, input: &Input<'_>) {
        if let Input::Day(day) = input {
            self.day = Some(*day);
        }
        self.engine.apply(time, input, &mut self.replay);
        // It went out then, or is asked for now: either way it is not news.
        let mut packet = [0; MAX_PACKET_LENGTH];
        while self.engine.publisher.backlog() > 0 {
            self.engine.publisher.poll_packet(time, &mut packet);
        }
    }
}

impl Recovered {
    /// Where the numbers of a session's link go on.
    #[must_use]
    pub fn resume(&self, session: SessionId) -> Option<Resume> {
        let numbers = self
            .engine
            .numbers()
            .iter()
            .find(|numbers| numbers.session == session)?;
        Some(Resume {
            next_send: numbers.next_send,
            next_receive: numbers.next_receive,
        })
    }

    /// The messages that the session's peer may not have, in order: for [`net::Link::restore`]. A session's ring always
    /// has free places for what its live orders may cause. The peer has whatever does not fit beside those, unless it has lost
    /// its machine: then the journal has it.
    pub fn unacknowledged(&self, session: SessionId) -> impl Iterator<Item = (SequenceNumber, &[u8])> {
        let reserved = self.engine.market.own_reports_reserved(session);
        let kept = self.kept.iter().find(|kept| kept.session == session);
        kept.into_iter().flat_map(move |kept| {
            let surplus = kept.messages.len().saturating_sub(kept.window.saturating_sub(reserved));
            kept.messages
                .iter()
                .skip(surplus)
                .map(|(sequence, message)| (*sequence, message.as_slice()))
        })
    }

    /// Where in the journal the messages to a session stand.
    pub(super) fn take_sent(&mut self, session: SessionId) -> SentIndex {
        let kept = self.kept.iter_mut().find(|kept| kept.session == session);
        kept.map(|kept| std::mem::take(&mut kept.sent)).unwrap_or_default()
    }

    /// The trading day that the journal is in; `None` in a new one.
    #[must_use]
    pub const fn day(&self) -> Option<TradingDay> {
        self.day
    }
}

impl Sending for Replay {
    fn to_session(&mut self, place: usize, session: SessionId, sequence: SequenceNumber, message: &[u8]) {
        self.expect(&Output::Session {
            session,
            sequence,
            message,
        });
        let kept = &mut self.kept[place];
        if kept.messages.len() == kept.window {
            kept.messages.pop_front();
        }
        kept.messages.push_back((sequence, message.to_vec()));
    }

    fn reported(&mut self, _report: &ExecReport, _number: OrderId) {}

    fn published(&mut self, published: &Published) {
        self.expect(&Output::Feed(*published));
    }
}

impl Replay {
    fn expect(&mut self, output: &Output<'_>) {
        let (kind, head, message) = output.encode();
        self.expected.push_back((kind, [head.as_bytes(), message].concat()));
    }
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherConfig => f.write_str(
                "it was written with other instruments, sessions or capacities; use that configuration or an empty directory",
            ),
            Self::NoExchange { record } => write!(f, "record {record} is not one of an exchange"),
            Self::Differs { record } => write!(
                f,
                "record {record} is not what the inputs before it cause; it was written by another version, use an empty directory"
            ),
        }
    }
}

impl std::error::Error for RecoveryError {}

/// What a feed is called until its name is known.
const UNNAMED: Session = Session([b' '; 10]);

/// What an input may publish beyond [`Market::published_max`](super::Market::published_max): about the order that it brings.
pub(super) const PUBLISHED_EXTRA: usize = 4;

/// What the recording may publish in one go beyond one message for each order in the book: three messages (E, X and the E of
/// a client's order that stays) for each that waited behind a gap or is in a datagram of either socket.
pub(super) const fn history_burst(window: usize) -> usize {
    // The shortest message has 12 bytes behind a length of 2.
    3 * (window + 2 * (MAX_DATAGRAM_LENGTH / 14))
}
