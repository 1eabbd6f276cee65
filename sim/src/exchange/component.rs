//! The exchange as a component: sessions' links, the recording, the feed; one turn at a time.

use super::journal::Journal;
use super::limits::{EXPIRIES_PER_TURN, REQUESTS_PER_TURN};
use super::listing::ListingError;
use super::live::{Line, Live};
use super::market::MarketCounters;
use super::market_data::{FeedConfig, FeedSocket, HistoryConfig, HistorySocket, SocketCounters};
use super::recall::Recall;
use super::record::{Input, Timer};
use super::recovery::{Recovered, RecoveryError};
use super::schedule::AuctionTimes;
use super::{FeedNumbers, Market};
use journal::JournalError;
use latency::clock::Clock;
use latency::{Counter, ExchangeOpen, ExchangeOrder, Name, OPEN_ORDERS, Recorder};
use net::link::{LinkCounters, LinkEvent};
use net::{Link, SetupError};
use proto::mold::{Event, PublisherCounters, Receiver, ReceiverCounters};
use proto::native;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use types::{OrderId, Reason, Request, SequenceNumber, SessionId, Timestamp, TradingDay};

/// The exchange. Its owner calls [`Exchange::turn`] in a loop.
pub struct Exchange<L, J> {
    live: Live<L, J>,
    feed: FeedSocket,
    history: Option<HistorySocket>,
    auctions: Option<AuctionTimes>,
}

/// What an [`Exchange`] is put together from.
pub struct Parts<L, J> {
    /// The state to go on from.
    pub recovered: Recovered,
    /// A link for each session, built where [`Recovered::resume`] says, and not polled yet.
    pub links: Vec<(SessionId, L)>,
    /// Where inputs and outputs are written down.
    pub journal: J,
    /// Who reads back from there what a session's peer has lost; `None`: nobody can.
    pub recall: Option<Recall>,
    /// The trading day.
    pub day: TradingDay,
    /// When its auctions are; `None`: there is none.
    pub auctions: Option<AuctionTimes>,
    /// Where the feed goes.
    pub feed: FeedConfig,
    /// Where the recording comes from, if there is one.
    pub history: Option<HistoryConfig>,
    /// The clock of the taps.
    pub clock: Clock,
    /// Where the taps go.
    pub recorder: Recorder,
}

/// Why an exchange does not start.
#[derive(Debug)]
pub enum StartError {
    /// The journal is in a later trading day.
    PastDay {
        /// Of the config.
        config: TradingDay,
        /// Of the journal.
        journal: TradingDay,
    },
    /// The instruments cannot be a market.
    Listing(ListingError),
    /// The journal cannot be opened or read.
    Journal(JournalError),
    /// The journal is not one that this configuration can go on with.
    Replay {
        /// The journal.
        directory: PathBuf,
        /// Why.
        error: RecoveryError,
    },
    /// A socket cannot be had.
    Setup(SetupError),
}

/// What an exchange counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExchangeCounters {
    /// The market.
    pub market: MarketCounters,
    /// The feed.
    pub feed: PublisherCounters,
    /// The feed's socket.
    pub feed_socket: SocketCounters,
    /// The recording.
    pub history: ReceiverCounters,
    /// The recording's sockets.
    pub history_socket: SocketCounters,
}

impl<L: Link, J: Journal> Exchange<L, J> {
    /// Goes on where the journal ended, and opens the sockets of market data. The first packets of the feed tell what is
    /// traded.
    ///
    /// # Errors
    /// A socket cannot be had, or the journal is ahead of the day.
    ///
    /// # Panics
    /// When `links` are not those of the market's sessions.
    pub fn new(parts: Parts<L, J>, now: Timestamp) -> Result<Self, StartError> {
        let Parts {
            mut recovered,
            mut links,
            journal,
            recall,
            day,
            auctions,
            feed,
            history,
            clock,
            recorder,
        } = parts;
        if let Some(journal) = recovered.day().filter(|&journal| journal > day) {
            return Err(StartError::PastDay { config: day, journal });
        }
        let feed = FeedSocket::open(&feed).map_err(StartError::Setup)?;
        let history = match history {
            Some(config) => Some(open_history(&config, &recovered).map_err(StartError::Setup)?),
            None => None,
        };
        links.sort_by_key(|(session, _)| *session);
        let mut lines = Vec::with_capacity(links.len());
        let windows = std::mem::take(&mut recovered.windows);
        for ((session, mut link), window) in links.into_iter().zip(windows) {
            for (sequence, message) in recovered.unacknowledged(session) {
                link.restore(sequence, message);
            }
            if let Some(slots) = recovered.engine.market.open_orders_max(session) {
                link.grant(slots);
            }
            let is_engaged = recovered.engine.market.open_orders(session) > 0;
            let sent = recovered.take_sent(session);
            lines.push(Line::new(session, link, sent, window, is_engaged));
        }
        let unrecorded = std::mem::take(&mut recovered.unrecorded);
        let Recovered {
            engine,
            session,
            day: journal_day,
            fingerprint,
            history_window,
            ..
        } = recovered;
        let mut live = Live::new(clock, engine, lines, journal, recall, recorder, history_window);
        live.append_unrecorded(now, &unrecorded);
        live.input(now, &Input::Started { fingerprint, session });
        if journal_day != Some(day) {
            live.input(now, &Input::Day(day));
        }
        Ok(Self {
            live,
            feed,
            history,
            auctions,
        })
    }

    /// Does what there is to do at `now` and never blocks. Whether there was anything.
    ///
    /// What requests changed in the market is published in the next turn: so no report waits for the feed, neither here
    /// nor at a gateway that takes turns with this in one thread.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        let mut worked = self.publish(now);
        worked |= self.feed.answer(now, &mut self.live.engine.publisher);
        worked |= self.take_timers(now);
        worked |= self.take_requests(now);
        worked |= self.live.bring_recalled();
        self.live.flush(now);
        for _ in 0..HistorySocket::PER_TURN {
            if !self.take_history(now) {
                break;
            }
            worked = true;
            self.publish(now);
        }
        if worked {
            self.live.flush(now);
        }
        worked
    }

    /// A trading day begins: day orders expire.
    pub fn roll_day(&mut self, now: Timestamp, day: TradingDay) {
        self.live.input(now, &Input::Day(day));
    }

    /// The market as it stands.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.live.engine.market
    }

    /// The links, by session.
    pub fn links(&self) -> impl Iterator<Item = (SessionId, &L)> {
        self.live.lines.iter().map(|line| (line.session, &line.link))
    }

    /// What each session's link counted.
    pub fn link_counters(&self) -> impl Iterator<Item = (SessionId, LinkCounters)> {
        self.links().map(|(session, link)| (session, link.counters()))
    }

    /// What each session's link did, a line each.
    pub fn link_summaries(&self) -> impl Iterator<Item = String> {
        self.live.lines.iter().map(|line| line.watch.summary(&line.link))
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> ExchangeCounters {
        let history = self.history.as_ref();
        ExchangeCounters {
            market: *self.live.engine.market.counters(),
            feed: self.live.engine.publisher.counters(),
            feed_socket: self.feed.counters,
            history: history.map(HistorySocket::receiver_counters).unwrap_or_default(),
            history_socket: history.map(|history| history.counters).unwrap_or_default(),
        }
    }

    /// The address that requests for market data are sent to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn feed_addr(&self) -> io::Result<SocketAddr> {
        self.feed.local_addr()
    }

    /// The address that the recording is received on; `None` without one.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn history_addr(&self) -> io::Result<Option<SocketAddr>> {
        self.history.as_ref().map(HistorySocket::local_addr).transpose()
    }

    /// Writes the orders that are still open into the recording, at its end.
    pub fn record_open_orders(&mut self, now: Timestamp) {
        let Live { engine, recorder, .. } = &mut self.live;
        let mut count = 0;
        for (order_id, leaves) in engine.market.client_orders() {
            recorder.push(ExchangeOpen { order_id, leaves });
            count += 1;
        }
        recorder.push(Counter {
            time: now,
            value: count,
            name: Name::new(OPEN_ORDERS),
        });
    }

    fn take_requests(&mut self, now: Timestamp) -> bool {
        let mut worked = false;
        let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
        for place in 0..self.live.lines.len() {
            for _ in 0..REQUESTS_PER_TURN {
                let has_room = self.live.has_room_for_event(place);
                let link = &mut self.live.lines[place].link;
                let event = if has_room {
                    link.poll(now, &mut buffer)
                } else {
                    link.poll_recall(now)
                };
                let Some(event) = event else { break };
                worked = true;
                let line = &mut self.live.lines[place];
                line.watch.on_event(now, &event, &line.link);
                self.on_link_event(now, place, event, &buffer);
            }
        }
        worked
    }

    fn on_link_event(&mut self, now: Timestamp, place: usize, event: LinkEvent, buffer: &[u8]) {
        let line = &mut self.live.lines[place];
        let session = line.session;
        match event {
            LinkEvent::Up => line.is_engaged = true,
            LinkEvent::Down(_) => {
                // A link that could not come up says so too, and then there is nothing to cancel.
                if std::mem::take(&mut line.is_engaged) {
                    self.live.input(now, &Input::SessionDown(session));
                }
            }
            LinkEvent::Path(_) => {}
            LinkEvent::Recall { from, to } => self.live.recall(place, from, to),
            // Credits are the exchange's to grant.
            LinkEvent::Credits(_) => {}
            LinkEvent::Message { sequence, length } => self.on_message(now, place, sequence, &buffer[..length]),
        }
    }

    fn on_message(&mut self, now: Timestamp, place: usize, sequence: SequenceNumber, message: &[u8]) {
        let received = if self.live.recorder.is_on() {
            self.live.clock.now()
        } else {
            now
        };
        let admission = match native::decode_request(message) {
            Ok(request) => {
                if let Request::New(order) = &request {
                    let order_id = OrderId(order.client_order_id.0);
                    self.live.recorder.push(ExchangeOrder {
                        order_id,
                        time: received,
                    });
                }
                self.live.admission(place, &request)
            }
            Err(_) => Reason::None,
        };
        let session = self.live.lines[place].session;
        self.live.input(
            now,
            &Input::Message {
                session,
                sequence,
                admission,
                message,
            },
        );
    }

    fn take_history(&mut self, now: Timestamp) -> bool {
        let Some(history) = &mut self.history else { return false };
        if !self.live.has_room_for_history() {
            return false;
        }
        let live = &mut self.live;
        let worked = history.receive(now, &mut |event| match event {
            Event::Started { session, next } => {
                tracing::info!("recording {session} begins at message {next}");
                live.input(now, &Input::HistoryStarted { session, next });
            }
            Event::Message { message, .. } => live.input(now, &Input::History(message)),
            Event::Lost { first, count } => {
                tracing::warn!("{count} messages of the recording from {first} on are lost: its orders may be wrong");
                live.input(now, &Input::HistoryLost { count });
            }
            Event::Ended => tracing::info!("the recording is over"),
        });
        if worked && live.engine.market.entries() > 0 {
            live.input(now, &Input::HistoryTold);
        }
        worked
    }

    /// Does what the time has come for.
    fn take_timers(&mut self, now: Timestamp) -> bool {
        let mut worked = false;
        let steps_done = self.live.engine.auction_steps;
        if let Some(timer) = self.auctions.and_then(|auctions| auctions.due(steps_done, now))
            && self.live.has_room_for_timer()
        {
            self.live.input(now, &Input::Timer(timer));
            worked = true;
        }
        for _ in 0..EXPIRIES_PER_TURN {
            let is_due = self
                .live
                .engine
                .market
                .next_expiry()
                .is_some_and(|expiry| expiry <= now);
            if !is_due || !self.live.has_room_for_timer() {
                break;
            }
            self.live.input(now, &Input::Timer(Timer::Expiry));
            worked = true;
        }
        worked
    }

    fn publish(&mut self, now: Timestamp) -> bool {
        if !self.live.may_publish() {
            return false;
        }
        let Live {
            engine,
            clock,
            recorder,
            ..
        } = &mut self.live;
        self.feed.publish(now, &mut engine.publisher, clock, recorder)
    }
}

fn open_history(config: &HistoryConfig, recovered: &Recovered) -> Result<HistorySocket, SetupError> {
    let mut receiver = Receiver::new(&HistorySocket::receiver(recovered.history_window));
    if let Some(FeedNumbers { session, next }) = recovered.engine.history {
        receiver.resume(session, next);
    }
    HistorySocket::open(config, receiver)
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PastDay { config, journal } => write!(
                f,
                "trading_day = {} of the config is before the journal's day {}; name the current day, or another journal",
                config.0, journal.0
            ),
            Self::Listing(error) => write!(f, "instruments: {error}"),
            Self::Journal(error) => write!(f, "{error}"),
            Self::Replay { directory, error } => write!(f, "journal {}: {error}", directory.display()),
            Self::Setup(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {}
