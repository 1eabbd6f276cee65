//! The far side: answers each message, or drains a stream and counts it.

use super::near::stamp;
use super::{BURST_MAX, End, Side, Turn};
use std::io;
use types::{Duration, Timestamp};

/// Sends each message back by itself, at once.
#[derive(Debug)]
pub struct Echo<E, C> {
    end: E,
    clock: C,
    message: Box<[u8]>,
    /// A message that found no room to go back yet.
    is_waiting: bool,
}

/// Takes in a stream. `R` is told how long each message was under way; it means something only where both sides have one
/// clock.
#[derive(Debug)]
pub struct Sink<E, C, R> {
    end: E,
    clock: C,
    record: R,
    message: Box<[u8]>,
    /// When the messages of this turn were sent.
    stamps: Box<[Timestamp]>,
    received: u64,
    first: Timestamp,
    last: Timestamp,
}

impl<E: End, C: Fn() -> Timestamp> Echo<E, C> {
    /// An echo of messages of this many bytes.
    pub fn new(end: E, clock: C, size: usize) -> Self {
        Self {
            end,
            clock,
            message: vec![0; size].into(),
            is_waiting: false,
        }
    }

    /// The end.
    pub const fn end(&self) -> &E {
        &self.end
    }
}

impl<E: End, C: Fn() -> Timestamp> Side for Echo<E, C> {
    fn turn(&mut self) -> io::Result<Turn> {
        let now = (self.clock)();
        let mut turn = Turn::Idle;
        for _ in 0..BURST_MAX {
            if !self.is_waiting && !self.end.recv(now, &mut self.message)? {
                break;
            }
            self.is_waiting = !self.end.send(&self.message)?;
            self.end.flush(now)?;
            if self.is_waiting {
                return Ok(turn);
            }
            turn = Turn::Worked;
        }
        if turn == Turn::Idle {
            self.end.flush(now)?;
        }
        Ok(turn)
    }
}

impl<E: End, C: Fn() -> Timestamp, R: FnMut(Duration)> Sink<E, C, R> {
    /// A sink of messages of this many bytes.
    pub fn new(end: E, clock: C, size: usize, record: R) -> Self {
        Self {
            end,
            clock,
            record,
            message: vec![0; size].into(),
            stamps: vec![Timestamp::NONE; BURST_MAX].into(),
            received: 0,
            first: Timestamp::NONE,
            last: Timestamp::NONE,
        }
    }

    /// Messages received, and the time from the first to the last.
    pub const fn received(&self) -> (u64, Duration) {
        (self.received, self.last.since(self.first))
    }

    /// The end.
    pub const fn end(&self) -> &E {
        &self.end
    }
}

impl<E: End, C: Fn() -> Timestamp, R: FnMut(Duration)> Side for Sink<E, C, R> {
    fn turn(&mut self) -> io::Result<Turn> {
        let now = (self.clock)();
        let mut count = 0;
        while count < BURST_MAX && self.end.recv(now, &mut self.message)? {
            self.stamps[count] = stamp(&self.message);
            count += 1;
        }
        self.end.flush(now)?;
        if count == 0 {
            return Ok(Turn::Idle);
        }
        // The clock is read once for all of a turn: what came first was there a little earlier than it counts.
        let done = (self.clock)();
        for stamp in &self.stamps[..count] {
            (self.record)(done.since(*stamp));
        }
        if self.received == 0 {
            self.first = done;
        }
        self.received += count as u64;
        self.last = done;
        Ok(Turn::Worked)
    }
}
