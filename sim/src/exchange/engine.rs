//! What an input does, whether it happens or is replayed: the market, the numbers of all messages, the published feed.

use super::market::{Market, MarketConfig, Outputs};
use super::record::{Digest, Input, Published, Timer};
use super::{FeedNumbers, ListingError};
use matcher::Auction;
use proto::itch;
use proto::mold::{Publisher, PublisherConfig, Session};
use proto::native::{self, Reject};
use types::{Duration, ExecReport, OrderId, SequenceNumber, SessionId, Timestamp};

/// Takes what an input sends to sessions and says that it published.
pub(super) trait Sending {
    /// A message for a session, under its number. `place` is the session's place among the sorted ones.
    fn to_session(&mut self, place: usize, session: SessionId, sequence: SequenceNumber, message: &[u8]);

    /// What the message before was, for recordings.
    fn reported(&mut self, report: &ExecReport, number: OrderId);

    /// What the whole input published, if anything.
    fn published(&mut self, published: &Published);
}

/// Everything of the exchange that follows from its inputs.
pub(super) struct Engine {
    pub(super) market: Market,
    pub(super) publisher: Publisher,
    numbers: Vec<SessionNumbers>,
    /// Where the recording goes on.
    pub(super) history: Option<FeedNumbers>,
    /// Steps of the day's auctions that are done.
    pub(super) auction_steps: usize,
}

/// Where the numbers of a session's two directions stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SessionNumbers {
    pub(super) session: SessionId,
    /// Of the next message that we send.
    pub(super) next_send: SequenceNumber,
    /// Of the next message that we receive.
    pub(super) next_receive: SequenceNumber,
}

/// An input at work.
struct Applying<'a, S> {
    publisher: &'a mut Publisher,
    numbers: &'a mut [SessionNumbers],
    sending: &'a mut S,
    published: Published,
}

impl Engine {
    /// An empty market that publishes as `session`. `ring` messages are kept for the feed.
    pub(super) fn new(
        config: &MarketConfig,
        session: Session,
        ring: usize,
        heartbeat: Duration,
    ) -> Result<Self, ListingError> {
        let mut sessions: Vec<_> = config.sessions.iter().map(|session| session.id).collect();
        sessions.sort_unstable();
        let publisher = Publisher::new(&PublisherConfig {
            session,
            ring,
            max_message: itch::MAX_MESSAGE_LENGTH,
            heartbeat,
        });
        let first = SequenceNumber(1);
        let numbers = |session| SessionNumbers {
            session,
            next_send: first,
            next_receive: first,
        };
        Ok(Self {
            market: Market::new(config)?,
            publisher,
            numbers: sessions.into_iter().map(numbers).collect(),
            history: None,
            auction_steps: 0,
        })
    }

    /// The sessions, sorted, with their numbers.
    pub(super) fn numbers(&self) -> &[SessionNumbers] {
        &self.numbers
    }

    /// Works off one input. The publisher has room for what it may publish, see [`Market::published_max`].
    pub(super) fn apply(&mut self, now: Timestamp, input: &Input<'_>, sending: &mut impl Sending) {
        let first = self.publisher.next_sequence();
        let mut applying = Applying {
            publisher: &mut self.publisher,
            numbers: &mut self.numbers,
            sending,
            published: Published {
                first,
                count: 0,
                digest: Digest::EMPTY,
            },
        };
        let (market, out) = (&mut self.market, &mut applying);
        match *input {
            Input::Started { .. } => market.on_started(now, out),
            Input::Day(day) => {
                self.auction_steps = 0;
                market.on_day(now, day, out);
            }
            Input::HistoryStarted { session, next } => {
                self.history = Some(FeedNumbers { session, next });
                market.on_history_started(now, out);
            }
            Input::HistoryLost { count } => self.history = self.history.map(|numbers| numbers.after(count)),
            Input::History(message) => {
                self.history = self.history.map(|numbers| numbers.after(1));
                market.on_history(now, message, out);
            }
            Input::HistoryTold => market.on_history_told(now, out),
            Input::Timer(timer) => {
                self.auction_steps += usize::from(timer != Timer::Expiry);
                match timer {
                    Timer::Expiry => market.on_expiry(now, out),
                    Timer::OpeningCall => market.on_call(now, Auction::Opening, out),
                    Timer::ClosingCall => market.on_call(now, Auction::Closing, out),
                    Timer::Uncross => market.on_uncross(now, out),
                }
            }
            Input::SessionDown(session) => market.on_session_down(now, session, out),
            Input::SessionStalled(session) => market.on_session_stalled(now, session, out),
            Input::Message {
                session,
                sequence,
                admission,
                message,
            } => {
                if let Some(numbers) = out.numbers.iter_mut().find(|numbers| numbers.session == session) {
                    numbers.next_receive = sequence.next();
                }
                market.on_message(now, session, message, admission, out);
            }
        }
        let published = applying.published;
        if published.count > 0 {
            applying.sending.published(&published);
        }
    }
}

impl FeedNumbers {
    fn after(self, count: u64) -> Self {
        Self {
            next: SequenceNumber(self.next.0 + count),
            ..self
        }
    }
}

impl<S: Sending> Applying<'_, S> {
    fn send(&mut self, session: SessionId, message: &[u8]) {
        let Ok(place) = self.numbers.binary_search_by_key(&session, |numbers| numbers.session) else {
            return;
        };
        let sequence = self.numbers[place].next_send;
        self.numbers[place].next_send = sequence.next();
        self.sending.to_session(place, session, sequence, message);
    }
}

impl<S: Sending> Outputs for Applying<'_, S> {
    fn publish(&mut self, message: &[u8]) {
        self.publisher.push(message);
        self.published.count += 1;
        self.published.digest.take(message);
    }

    fn report(&mut self, report: &ExecReport, number: OrderId) {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_report(report, &mut message);
        self.send(report.session, &message[..length]);
        self.sending.reported(report, number);
    }

    fn reject(&mut self, session: SessionId, reject: &Reject) {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_reject(reject, &mut message);
        self.send(session, &message[..length]);
    }
}
