//! The near side: asks and takes the time, or sends a stream.

use super::{BURST_MAX, End, MESSAGE_LENGTH_MIN, Side, Turn};
use std::io;
use types::{Duration, Timestamp};

/// When messages are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Closed loop: the next one when the last is answered.
    PingPong,
    /// Open loop: one each so many nanoseconds, whatever comes back. Not 0.
    Every(Duration),
}

/// How long it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// So many round trips.
    Trips(u64),
    /// So long.
    Span(Duration),
}

/// The time for the other end to be there.
const UP_WITHIN: Duration = Duration::from_secs(10);

/// Round trips before those that count, and how long they may take: caches, branch predictors and the connection's
/// windows settle.
const WARM_UP_TRIPS: u64 = 1_000;
const WARM_UP_WITHIN: Duration = Duration::from_millis(500);

/// A carrier that does not repair has lost what is not answered by then.
const LOST_AFTER: Duration = Duration::from_millis(20);

/// A carrier that repairs and does not within this long is broken.
const BROKEN_AFTER: Duration = Duration::from_secs(30);

/// How far an open loop may lag behind its plan after the end of the plan before it gives up on the rest.
const OVERRUN_MAX: Duration = Duration::from_secs(2);

/// The time for what is under way to arrive when the run ends: above the longest timeout that TCP gets to in a run.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Round trips. `R` is told how long each of them took.
#[derive(Debug)]
pub struct RoundTrips<E, C, R> {
    end: E,
    clock: C,
    record: R,
    pace: Pace,
    length: Length,
    phase: Phase,
    /// When the phase ends; when measuring with a number of trips, when the plan does.
    until: Timestamp,
    message: Box<[u8]>,
    answer: Box<[u8]>,
    /// The number of the next message, from the start of the warm-up.
    next: u64,
    /// Closed loop: when the message in flight was sent.
    asked: Option<Timestamp>,
    /// The number and time of the first message that counts.
    first: u64,
    started: Timestamp,
    counts: RoundTripCounts,
}

/// What became of the messages that count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RoundTripCounts {
    /// Messages that the plan had; in a closed loop those that were sent.
    pub planned: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages answered: the round trips.
    pub answered: u64,
    /// The time from the first send to the last answer.
    pub span: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    New,
    Starting,
    WarmUp,
    Measuring,
    Draining,
    Done,
}

impl<E: End, C: Fn() -> Timestamp, R: FnMut(Duration)> RoundTrips<E, C, R> {
    /// Round trips of messages of this many bytes.
    ///
    /// # Panics
    /// When the messages are too short to carry a number, or the pace is 0 ns.
    pub fn new(end: E, clock: C, size: usize, pace: Pace, length: Length, record: R) -> Self {
        assert!(size >= MESSAGE_LENGTH_MIN, "a message carries its number");
        assert!(pace != Pace::Every(Duration(0)), "a plan has pauses");
        Self {
            end,
            clock,
            record,
            pace,
            length,
            phase: Phase::New,
            until: Timestamp::NONE,
            message: vec![0x5a; size].into(),
            answer: vec![0; size].into(),
            next: 0,
            asked: None,
            first: 0,
            started: Timestamp::NONE,
            counts: RoundTripCounts::default(),
        }
    }

    /// What became of the messages that count.
    pub const fn counts(&self) -> RoundTripCounts {
        self.counts
    }

    /// The end, when the run is over.
    pub fn into_end(self) -> E {
        self.end
    }

    /// One step of the closed loop: asks if nothing is in flight, looks for the answer once. Gives the round trip that
    /// ended, and whether one was given up.
    fn ping(&mut self, now: Timestamp) -> io::Result<Ping> {
        let asked = match self.asked {
            Some(asked) => asked,
            None => {
                self.message[..8].copy_from_slice(&self.next.to_le_bytes());
                if !self.end.send(&self.message)? {
                    self.end.flush(now)?;
                    return Ok(Ping::Waits);
                }
                self.end.flush(now)?;
                self.asked = Some(now);
                now
            }
        };
        if self.end.recv(now, &mut self.answer)? {
            if number(&self.answer) != self.next {
                // The answer to one that was taken for lost.
                return Ok(Ping::Waits);
            }
            let done = (self.clock)();
            self.asked = None;
            self.next += 1;
            return Ok(Ping::Answered(done.since(asked), done));
        }
        self.end.flush(now)?;
        let waited = now.since(asked);
        if self.end.is_reliable() && waited >= BROKEN_AFTER {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in 30 s"));
        }
        if self.end.is_reliable() || waited < LOST_AFTER {
            return Ok(Ping::Waits);
        }
        self.asked = None;
        self.next += 1;
        Ok(Ping::Lost)
    }

    fn start(&mut self, now: Timestamp) -> io::Result<Turn> {
        if self.phase == Phase::New {
            self.phase = Phase::Starting;
            self.until = now + UP_WITHIN;
        }
        if is_up(&mut self.end, now, self.until, &mut self.answer)? {
            self.phase = Phase::WarmUp;
            self.until = now + WARM_UP_WITHIN;
        }
        Ok(Turn::Idle)
    }

    fn warm_up(&mut self, now: Timestamp) -> io::Result<Turn> {
        let ping = self.ping(now)?;
        let is_warm = self.next >= WARM_UP_TRIPS || now >= self.until;
        // What is in flight would be counted from a time before the start.
        if is_warm && self.asked.is_none() {
            self.phase = Phase::Measuring;
            (self.first, self.started) = (self.next, (self.clock)());
            let span = match (self.length, self.pace) {
                (Length::Span(span), _) => span,
                (Length::Trips(_), Pace::PingPong) => Duration(0),
                (Length::Trips(trips), Pace::Every(interval)) => Duration(trips * interval.0),
            };
            self.until = self.started + span;
            if let Pace::Every(interval) = self.pace {
                self.counts.planned = span.0 / interval.0;
            }
        }
        Ok(ping.turn())
    }

    fn ping_pong(&mut self, now: Timestamp) -> io::Result<Turn> {
        let is_over = match self.length {
            Length::Trips(trips) => self.counts.answered >= trips,
            // However long this end had no processor, one is measured.
            Length::Span(_) => now >= self.until && self.counts.sent > 0,
        };
        if is_over && self.asked.is_none() {
            self.phase = Phase::Done;
            return Ok(Turn::Done);
        }
        let ping = self.ping(now)?;
        if ping != Ping::Waits {
            self.counts.planned += 1;
            self.counts.sent += 1;
        }
        if let Ping::Answered(took, done) = ping {
            (self.record)(took);
            self.counts.answered += 1;
            self.counts.span = done.since(self.started);
        }
        Ok(ping.turn())
    }

    /// One step of the open loop: sends what is due, takes what came.
    fn follow_plan(&mut self, now: Timestamp, interval: Duration) -> io::Result<Turn> {
        let mut turn = Turn::Idle;
        for _ in 0..BURST_MAX {
            let is_due = self.counts.sent < self.counts.planned && self.planned(self.counts.sent, interval) <= now;
            if !is_due {
                break;
            }
            self.message[..8].copy_from_slice(&self.next.to_le_bytes());
            if !self.end.send(&self.message)? {
                break;
            }
            self.next += 1;
            self.counts.sent += 1;
            turn = Turn::Worked;
        }
        self.end.flush(now)?;
        if self.take_answers(now, interval)? {
            turn = Turn::Worked;
        }
        let is_over = self.counts.sent == self.counts.planned || now >= self.until + OVERRUN_MAX;
        if self.phase == Phase::Measuring && is_over {
            self.phase = Phase::Draining;
            let patience = if self.end.is_reliable() {
                DRAIN_WITHIN
            } else {
                LOST_AFTER
            };
            self.until = now + patience;
        } else if self.phase == Phase::Draining && (self.counts.answered == self.counts.sent || now >= self.until) {
            self.phase = Phase::Done;
            return Ok(Turn::Done);
        }
        Ok(turn)
    }

    fn take_answers(&mut self, now: Timestamp, interval: Duration) -> io::Result<bool> {
        for index in 0..BURST_MAX {
            if !self.end.recv(now, &mut self.answer)? {
                return Ok(index > 0);
            }
            // One of the warm-up that came late does not count.
            if let Some(index) = number(&self.answer).checked_sub(self.first) {
                let (planned, done) = (self.planned(index, interval), (self.clock)());
                (self.record)(done.since(planned));
                self.counts.answered += 1;
                self.counts.span = done.since(self.started);
            }
        }
        Ok(true)
    }

    fn planned(&self, index: u64, interval: Duration) -> Timestamp {
        self.started + Duration(index * interval.0)
    }
}

impl<E: End, C: Fn() -> Timestamp, R: FnMut(Duration)> Side for RoundTrips<E, C, R> {
    fn turn(&mut self) -> io::Result<Turn> {
        let now = (self.clock)();
        match (self.phase, self.pace) {
            (Phase::New | Phase::Starting, _) => self.start(now),
            (Phase::WarmUp, _) => self.warm_up(now),
            (Phase::Measuring, Pace::PingPong) => self.ping_pong(now),
            // The last messages leave whatever the plan says.
            (Phase::Measuring | Phase::Draining, Pace::Every(interval)) => self.follow_plan(now, interval),
            (Phase::Draining | Phase::Done, _) => Ok(Turn::Done),
        }
    }
}

/// What a step of the closed loop gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ping {
    Waits,
    /// How long it took, and when it ended.
    Answered(Duration, Timestamp),
    Lost,
}

impl Ping {
    const fn turn(self) -> Turn {
        match self {
            Self::Answered(..) => Turn::Worked,
            Self::Waits | Self::Lost => Turn::Idle,
        }
    }
}

/// A stream of messages one way, each with the time at which it was handed to its end.
#[derive(Debug)]
pub struct Stream<E, C> {
    end: E,
    clock: C,
    /// As fast as the other end takes them, or one each so many nanoseconds.
    interval: Option<Duration>,
    span: Duration,
    phase: Phase,
    until: Timestamp,
    started: Timestamp,
    message: Box<[u8]>,
    sent: u64,
}

impl<E: End, C: Fn() -> Timestamp> Stream<E, C> {
    /// A stream of messages of this many bytes, for this long; with a plan, or as fast as it goes.
    ///
    /// # Panics
    /// When the messages are too short to carry a time, or the interval is 0.
    pub fn new(end: E, clock: C, size: usize, interval: Option<Duration>, span: Duration) -> Self {
        assert!(size >= MESSAGE_LENGTH_MIN, "a message carries its time");
        assert!(interval != Some(Duration(0)), "a plan has pauses");
        Self {
            end,
            clock,
            interval,
            span,
            phase: Phase::New,
            until: Timestamp::NONE,
            started: Timestamp::NONE,
            message: vec![0x5a; size].into(),
            sent: 0,
        }
    }

    /// Messages sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// The end.
    pub const fn end(&self) -> &E {
        &self.end
    }

    /// Fills the end's room with what is due.
    fn fill(&mut self, now: Timestamp) -> io::Result<Turn> {
        self.message[..8].copy_from_slice(&now.0.to_le_bytes());
        let before = self.sent;
        for _ in 0..BURST_MAX {
            let is_due = match self.interval {
                None => true,
                Some(interval) => {
                    let planned = self.started + Duration(self.sent * interval.0);
                    self.message[..8].copy_from_slice(&planned.0.to_le_bytes());
                    planned <= now
                }
            };
            if !is_due || !self.end.send(&self.message)? {
                break;
            }
            self.sent += 1;
        }
        Ok(if self.sent > before { Turn::Worked } else { Turn::Idle })
    }
}

impl<E: End, C: Fn() -> Timestamp> Side for Stream<E, C> {
    fn turn(&mut self) -> io::Result<Turn> {
        let now = (self.clock)();
        let mut turn = Turn::Idle;
        let mut unexpected = [0; super::MESSAGE_LENGTH_MAX];
        match self.phase {
            Phase::New => {
                self.phase = Phase::Starting;
                self.until = now + UP_WITHIN;
            }
            Phase::Starting => {
                if is_up(&mut self.end, now, self.until, &mut unexpected[..self.message.len()])? {
                    self.phase = Phase::Measuring;
                    (self.started, self.until) = (now, now + self.span);
                }
                return Ok(turn);
            }
            Phase::WarmUp | Phase::Measuring => {
                turn = self.fill(now)?;
                if now >= self.until {
                    self.phase = Phase::Draining;
                    self.until = now + DRAIN_WITHIN;
                }
            }
            Phase::Draining if self.end.is_drained() || now >= self.until => {
                self.phase = Phase::Done;
                return Ok(Turn::Done);
            }
            Phase::Draining => {}
            Phase::Done => return Ok(Turn::Done),
        }
        self.end.flush(now)?;
        // Nobody answers; acknowledgements come in this way.
        self.end.recv(now, &mut unexpected[..self.message.len()])?;
        Ok(turn)
    }
}

/// Lets a link come up.
fn is_up<E: End>(end: &mut E, now: Timestamp, until: Timestamp, message: &mut [u8]) -> io::Result<bool> {
    if end.is_up() {
        return Ok(true);
    }
    if now >= until {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the other end is not there"));
    }
    end.recv(now, message)?;
    end.flush(now)?;
    Ok(false)
}

/// The number that a message carries.
fn number(message: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&message[..8]);
    u64::from_le_bytes(bytes)
}

/// The time that a message carries.
pub(super) fn stamp(message: &[u8]) -> Timestamp {
    Timestamp(number(message))
}
