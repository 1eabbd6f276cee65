//! An order client: sends orders by plan or when ticks trigger them, over FIX or the native protocol, and keeps account of
//! every one. The native protocol comes over TCP or over a link.
//!
//! The owner gives it turns, and the feed's events as they come. Load is open-loop: a planned order has its time before
//! the run starts, and when the client is late its lag shows, instead of the load becoming less.

mod config;
mod connection;
mod fix;
mod ledger;
mod link;
mod native;
mod strategy;
mod stream;
#[cfg(test)]
mod tests;

pub use config::{ClientConfig, ConfigError, FeedConfig, LinkLogin, LoadConfig, Login};
pub use ledger::{Accounting, Requests};
pub use strategy::Traded;

use connection::{Answer, Connection};
use journal::JournalError;
use latency::{ClientOrder, ClientReport, ClientRequest, Clock, Protocol, Recorder, RequestKind};
use ledger::Ledger;
use net::SetupError;
use proto::itch::{self, BookLimits, Books};
use proto::mold::Event;
use std::fmt;
use strategy::{Change, Strategy};
use types::{
    AccountId, Bbo, CancelOrder, ClientOrderId, Duration, ExecReport, NewOrder, OrderTerms, ReplaceOrder, Request,
    SessionId, Symbol, TimeInForce, Timestamp, Trigger,
};

/// The order client.
pub struct Client {
    /// Books of the feed, with the instruments of `desk` in the same order. `None` when the config has no feed.
    books: Option<Books>,
    feed_id: u8,
    every_ticks: u64,
    ticks: u64,
    feed_lost: u64,
    desk: Desk,
}

/// Everything but the feed.
struct Desk {
    clock: Clock,
    recorder: Recorder,
    connection: Connection,
    ledger: Ledger,
    strategy: Strategy,
    traded: Box<[Traded]>,
    /// Best prices, by the place of the instrument.
    bbos: Box<[Bbo]>,
    session: SessionId,
    account: AccountId,
    protocol: Protocol,
    plan: Plan,
    sending: bool,
    protocol_errors: u64,
    last_report: Timestamp,
}

/// Planned orders: the n-th is due at `start` + n times `interval`.
#[derive(Debug)]
struct Plan {
    interval: Duration,
    start: Timestamp,
    sent: u64,
    lag_total: u64,
    lag_max: Duration,
}

/// How a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// New orders sent.
    pub sent: u64,
    /// Orders and requests without an answer.
    pub unanswered: u64,
    /// Changes of a best bid or offer seen.
    pub ticks: u64,
    /// Messages of the feed that could not be had.
    pub feed_lost: u64,
    /// Connections made.
    pub connects: u64,
    /// Messages that one side could not take from the other.
    pub protocol_errors: u64,
    /// How late planned orders left, on average.
    pub lag_mean: Duration,
    /// How late the latest planned order left.
    pub lag_max: Duration,
}

/// Why a client cannot be made of its config.
#[derive(Debug)]
pub enum StartError {
    /// A symbol is not in the instrument master.
    UnknownSymbol(Symbol),
    /// The journal of its link cannot be opened or read.
    Journal(JournalError),
    /// The journal of its link has a record that is none of a client's.
    OtherJournal {
        /// Where it stands.
        position: u64,
    },
    /// The socket of its link cannot be had.
    Socket(SetupError),
}

impl Client {
    /// A client that trades the config's symbols, which must be among `instruments`. It connects with its first turn and
    /// sends its first order after [`Client::start`].
    ///
    /// # Errors
    /// A symbol is not among the instruments, or a link's journal or socket cannot be had.
    pub fn new(
        config: &ClientConfig,
        instruments: &[Traded],
        clock: Clock,
        recorder: Recorder,
    ) -> Result<Self, StartError> {
        let find = |symbol: &Symbol| instruments.iter().find(|known| known.symbol == *symbol).copied();
        let traded = config
            .load
            .symbols
            .iter()
            .map(|symbol| find(symbol).ok_or(StartError::UnknownSymbol(*symbol)))
            .collect::<Result<Box<[_]>, _>>()?;
        Ok(Self {
            books: config.feed.map(|_| books(&traded)),
            feed_id: config.feed.map_or(0, |feed| feed.id),
            every_ticks: config.load.every_ticks,
            ticks: 0,
            feed_lost: 0,
            desk: Desk::new(config, traded, clock, recorder)?,
        })
    }

    /// Connects, receives reports, changes what has rested and sends what is planned. `true` when there was something to
    /// do.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        self.desk.turn(now)
    }

    /// Takes an event of the feed; `received` is when its packet was read. A tick may send an order at once.
    pub fn on_feed(&mut self, received: Timestamp, event: Event<'_>) {
        let Some(books) = &mut self.books else {
            return;
        };
        let (sequence, message) = match event {
            Event::Message { sequence, message } => (sequence, message),
            // What an earlier session told holds no more.
            Event::Started { .. } => return books.clear(),
            Event::Lost { count, .. } => {
                self.feed_lost += count;
                return;
            }
            Event::Ended => return,
        };
        let Ok(message) = itch::parse(message) else {
            return;
        };
        let Some(change) = books.apply(&message).filter(|change| change.quote) else {
            return;
        };
        let bbo = books.bbo(change.index);
        let trigger = Trigger::new(self.feed_id, sequence.0);
        self.on_tick(received, change.index, bbo, trigger);
    }

    /// Takes new best prices of the instrument at a place of the config's list. Every so-many-th sends an order at once.
    pub fn on_tick(&mut self, received: Timestamp, index: usize, bbo: Bbo, trigger: Trigger) {
        let Some(known) = self.desk.bbos.get_mut(index) else {
            return;
        };
        *known = bbo;
        self.ticks += 1;
        if self.every_ticks > 0 && self.ticks.is_multiple_of(self.every_ticks) {
            self.desk.send_order(
                received,
                index,
                &Cause {
                    trigger,
                    tick_received: received,
                    planned: Timestamp::NONE,
                },
            );
        }
    }

    /// From now on orders are sent; the plan starts now.
    pub fn start(&mut self, now: Timestamp) {
        self.desk.sending = true;
        self.desk.plan.start = now;
        self.desk.plan.sent = 0;
    }

    /// From now on no new order is sent. What rests is still cancelled in its time.
    pub fn stop(&mut self) {
        self.desk.sending = false;
    }

    /// From now on no new order is sent, and all that rests is cancelled.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.stop();
        self.desk.strategy.wind_down(now, &self.desk.ledger);
    }

    /// Whether all orders are sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.desk.ledger.has_room()
    }

    /// Whether every order and request is answered, every order that does not rest has ended, and none is still to be
    /// changed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let ledger = &self.desk.ledger;
        ledger.unanswered() == 0 && ledger.ending() == 0 && self.desk.strategy.resting() == 0
    }

    /// Whether the session works.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.desk.connection.is_ready()
    }

    /// Logs out; the gateway cancels what is open unless told otherwise. Give it turns until it is gone.
    pub fn logout(&mut self, now: Timestamp) {
        self.desk.sending = false;
        self.desk.connection.logout(now);
    }

    /// Takes the end of the connection as the end, whoever closes it: no warning, no further attempt.
    pub fn expect_close(&mut self) {
        self.desk.connection.leave();
    }

    /// Whether the connection is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.desk.connection.is_down()
    }

    /// What the link to the gateway did, in a line; `None`: it is none.
    #[must_use]
    pub fn link_summary(&self) -> Option<String> {
        self.desk.connection.link_summary()
    }

    /// What became of every order.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        self.desk.ledger.accounting()
    }

    /// How it is doing; cheap enough to be shown while it runs.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let plan = &self.desk.plan;
        Progress {
            sent: self.desk.ledger.sent() as u64,
            unanswered: self.desk.ledger.unanswered() as u64,
            ticks: self.ticks,
            feed_lost: self.feed_lost,
            connects: self.desk.connection.connects(),
            protocol_errors: self.desk.protocol_errors,
            lag_mean: Duration(plan.lag_total.checked_div(plan.sent).unwrap_or(0)),
            lag_max: plan.lag_max,
        }
    }

    /// When the last report came.
    #[must_use]
    pub const fn last_report(&self) -> Timestamp {
        self.desk.last_report
    }

    /// What it speaks.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.desk.protocol
    }
}

fn books(traded: &[Traded]) -> Books {
    let mut books = Books::new(&BookLimits {
        instruments: traded.len(),
        orders: MAX_BOOK_ORDERS,
        levels: MAX_BOOK_LEVELS,
    });
    for instrument in traded {
        books.add(instrument.symbol);
    }
    books
}

/// Why an order is sent.
struct Cause {
    trigger: Trigger,
    tick_received: Timestamp,
    planned: Timestamp,
}

impl Desk {
    fn new(config: &ClientConfig, traded: Box<[Traded]>, clock: Clock, recorder: Recorder) -> Result<Self, StartError> {
        // Numbers rise over a day. A client sends less than one a microsecond, so a later start begins above.
        let first = ClientOrderId(clock.now().0 / 1_000);
        Ok(Self {
            connection: Connection::new(config, &traded, &clock)?,
            ledger: Ledger::new(config.load.orders_max, first),
            strategy: Strategy::new(&config.load),
            bbos: vec![Bbo::default(); traded.len()].into_boxed_slice(),
            traded,
            session: config.session,
            account: config.account,
            protocol: match config.login {
                Login::Fix { .. } => Protocol::Fix,
                Login::Native { .. } | Login::Link(_) => Protocol::Native,
            },
            plan: Plan {
                interval: config.load.interval,
                start: Timestamp::NONE,
                sent: 0,
                lag_total: 0,
                lag_max: Duration(0),
            },
            sending: false,
            protocol_errors: 0,
            last_report: Timestamp::NONE,
            clock,
            recorder,
        })
    }

    fn turn(&mut self, now: Timestamp) -> bool {
        let received = self.receive(now);
        let changed = self.change_resting(now);
        let planned = self.send_planned(now);
        received || changed || planned
    }

    fn receive(&mut self, now: Timestamp) -> bool {
        let Self {
            clock,
            recorder,
            connection,
            ledger,
            protocol_errors,
            last_report,
            session,
            ..
        } = self;
        connection.turn(now, clock, &mut |received, answer| match answer {
            Answer::Report(report) => {
                *last_report = now;
                recorder.push(report_record(&report, *session, received));
                ledger.on_report(&report);
            }
            Answer::Protocol => *protocol_errors += 1,
        })
    }

    /// Cancels and replaces what has rested long enough.
    fn change_resting(&mut self, now: Timestamp) -> bool {
        for done in 0..CHANGES_PER_TURN {
            if !self.connection.is_ready() {
                return done > 0;
            }
            let Some((place, change)) = self.strategy.change(now, &self.ledger, &self.traded) else {
                return done > 0;
            };
            self.send_change(now, place, change);
        }
        true
    }

    fn send_change(&mut self, now: Timestamp, place: usize, change: Change) {
        let order = *self.ledger.order(place);
        let Some(client_order_id) = self.ledger.request(place) else {
            return;
        };
        let traded = self.traded[order.instrument];
        let (session, instrument, side) = (self.session, traded.id, order.side);
        let (request, kind) = match change {
            Change::Cancel => (
                Request::Cancel(CancelOrder {
                    client_order_id,
                    orig_client_order_id: order.number,
                    instrument,
                    session,
                    side,
                }),
                RequestKind::Cancel,
            ),
            Change::Replace { price, quantity } => (
                Request::Replace(ReplaceOrder {
                    client_order_id,
                    orig_client_order_id: order.number,
                    instrument,
                    session,
                    side,
                    price,
                    quantity,
                    terms: OrderTerms::NONE,
                }),
                RequestKind::Replace,
            ),
        };
        self.connection.write(now, &request, &traded);
        let time = self.clock.now();
        self.connection.flush(now);
        self.recorder.push(ClientRequest {
            protocol: self.protocol,
            request: kind,
            session,
            client_order_id,
            orig_client_order_id: order.number,
            time,
        });
    }

    /// Sends orders whose planned time has come, in turn over the instruments.
    fn send_planned(&mut self, now: Timestamp) -> bool {
        if !self.sending || self.plan.interval == Duration(0) {
            return false;
        }
        for done in 0..PLANNED_PER_TURN {
            let planned = self.plan.next();
            if planned > now || !self.connection.is_ready() || !self.ledger.has_room() {
                return done > 0;
            }
            let index = usize::try_from(self.plan.sent).unwrap_or(0) % self.traded.len();
            let cause = Cause {
                trigger: Trigger::NONE,
                tick_received: Timestamp::NONE,
                planned,
            };
            let sent_at = self.send_order(now, index, &cause);
            self.plan.count(sent_at.unwrap_or(now));
        }
        true
    }

    /// Sends a new order in an instrument, if it may. Gives when it left.
    fn send_order(&mut self, now: Timestamp, index: usize, cause: &Cause) -> Option<Timestamp> {
        if !self.sending || !self.ledger.has_room() || !self.connection.is_ready() {
            return None;
        }
        let traded = self.traded[index];
        let idea = self.strategy.order(index, &traded, &self.bbos[index])?;
        let (place, client_order_id) = self.ledger.add(index, idea.side, idea.price, idea.quantity);
        let order = NewOrder {
            client_order_id,
            instrument: traded.id,
            account: self.account,
            session: self.session,
            side: idea.side,
            order_type: idea.order_type,
            time_in_force: idea.time_in_force,
            price: idea.price,
            quantity: idea.quantity,
            trigger: cause.trigger,
            terms: OrderTerms::NONE,
        };
        self.connection.write(now, &Request::New(order), &traded);
        let order_sent = self.clock.now();
        self.connection.flush(now);
        self.recorder.push(ClientOrder {
            protocol: self.protocol,
            side: order.side,
            session: order.session,
            instrument: order.instrument,
            client_order_id,
            trigger: cause.trigger,
            planned: cause.planned,
            tick_received: cause.tick_received,
            order_sent,
            quantity: order.quantity,
            price: order.price,
        });
        if idea.time_in_force == TimeInForce::Day {
            self.strategy.on_resting(now, place);
        } else {
            self.ledger.ends_at_once(place);
        }
        Some(order_sent)
    }
}

impl Plan {
    const fn next(&self) -> Timestamp {
        Timestamp(self.start.0.saturating_add(self.sent.saturating_mul(self.interval.0)))
    }

    /// The next order has left.
    fn count(&mut self, sent_at: Timestamp) {
        let lag = sent_at.since(self.next());
        self.lag_total = self.lag_total.saturating_add(lag.0);
        self.lag_max = self.lag_max.max(lag);
        self.sent += 1;
    }
}

fn report_record(report: &ExecReport, session: SessionId, time: Timestamp) -> ClientReport {
    ClientReport {
        exec_type: report.exec_type,
        reason: report.reason,
        session,
        client_order_id: report.client_order_id,
        order_id: report.order_id,
        time,
        last_quantity: report.last_quantity,
        last_price: report.last_price,
        leaves: report.leaves,
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSymbol(symbol) => write!(f, "symbol {symbol} is not in the instrument master"),
            Self::Journal(error) => write!(f, "{error}"),
            Self::OtherJournal { position } => write!(
                f,
                "the record at {position} of the link's journal is none of a client's; name another directory"
            ),
            Self::Socket(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Live orders of all instruments that the books hold.
const MAX_BOOK_ORDERS: usize = 1 << 20;

/// Price levels on a side of an instrument.
const MAX_BOOK_LEVELS: usize = 4_096;

/// Cancels and replaces sent in one turn.
const CHANGES_PER_TURN: usize = 8;

/// Planned orders sent in one turn.
const PLANNED_PER_TURN: usize = 16;
