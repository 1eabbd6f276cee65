//! Round trips and one-way runs over any carrier, and how the two sides take turns.
//!
//! The near side asks and counts, the far side answers or drains. Each is a [`Side`] that takes turns, so that two threads
//! or two processes can run them, or one thread both. Which carrier it is shows only in the [`End`] under a side: bare
//! sockets and links of the product are measured by the same loops.
//!
//! A round trip in a closed loop has one message in flight and its time runs from the send. That hides stalls: while the
//! carrier stands still, nothing is asked. In the open loop messages have planned times, whatever comes back, and their
//! time runs from the plan.

mod end;
mod far;
mod near;
mod read;
#[cfg(test)]
mod tests;

pub use end::{AnyEnd, BareDatagrams, BareTcp, End, Linked};
pub use far::{Echo, Sink};
pub use near::{Length, Pace, RoundTripCounts, RoundTrips, Stream};
pub use read::RoceReads;

use crate::cpu;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Shortest message: it carries a number or a time.
pub const MESSAGE_LENGTH_MIN: usize = 8;

/// Longest message: the longest payload of the TCP link, which fits a datagram of LTP as well.
pub const MESSAGE_LENGTH_MAX: usize = 1_024;

/// Messages that a side takes in one turn at most, so that sends, acknowledgements and the look at the time have theirs.
const BURST_MAX: usize = 256;

/// What measures or answers, by turns.
pub trait Side {
    /// Does what there is to do and gives how it went.
    ///
    /// # Errors
    /// The carrier failed, or the other side is not there.
    fn turn(&mut self) -> io::Result<Turn>;
}

/// How a turn went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// There was something to do.
    Worked,
    /// There was nothing to do.
    Idle,
    /// The run is over. Only the near side says so.
    Done,
}

/// Where the sides run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// A thread on each of two CPUs: near, far.
    Two(usize, usize),
    /// Turn about in one thread on this CPU.
    One(usize),
}

/// What a side does that has nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// Looks again at once.
    Spin,
    /// Sleeps for 50 µs.
    Backoff,
}

/// What a thread without work sleeps when it backs off.
const BACKOFF: Duration = Duration::from_micros(50);

/// Turns without anything to do after which the far side has drained what the near side had sent when it ended.
const DRAINED_AFTER: usize = 1_000;

impl Idle {
    /// Between two turns.
    fn rest(self, turn: Turn) {
        match (self, turn) {
            (Self::Backoff, Turn::Idle) => thread::sleep(BACKOFF),
            _ => std::hint::spin_loop(),
        }
    }
}

/// One side: how it is made, and what is read off it when the run is over. Both happen on the thread that runs it, which
/// some carriers never leave.
#[derive(Debug)]
pub struct Part<M, R> {
    /// Makes it.
    pub make: M,
    /// Reads it off.
    pub read: R,
}

/// Makes and runs both sides until the near one is done, or `is_over` says to stop; the far one is made first where they
/// share a thread. The caller's thread only waits. Gives what was read off each.
///
/// # Errors
/// A CPU is not permitted, or a side cannot be made or fails.
pub fn both<N: Side, F: Side, A: Send, B: Send>(
    near: Part<impl FnOnce() -> io::Result<N> + Send, impl FnOnce(N) -> A + Send>,
    far: Part<impl FnOnce() -> io::Result<F> + Send, impl FnOnce(F) -> B + Send>,
    placement: Placement,
    idle: Idle,
    is_over: impl Fn() -> bool + Sync,
) -> io::Result<(A, B)> {
    let (near_cpu, far_cpu) = match placement {
        Placement::Two(near_cpu, far_cpu) => (near_cpu, far_cpu),
        Placement::One(cpu) => {
            return on_cpu(cpu, || {
                let (mut far_side, mut near_side) = ((far.make)()?, (near.make)()?);
                take_turns(&mut near_side, &mut far_side, idle, &is_over)?;
                Ok(((near.read)(near_side), (far.read)(far_side)))
            });
        }
    };
    // Whoever ends, by finishing or by failing, ends the other.
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let _ending = Ending(&done);
            cpu::pin(far_cpu)?;
            let mut side = (far.make)()?;
            run_until(&mut side, idle, || done.load(Ordering::Acquire))?;
            Ok((far.read)(side))
        });
        let asking = scope.spawn(|| {
            let _ending = Ending(&done);
            cpu::pin(near_cpu)?;
            let mut side = (near.make)()?;
            run_near(&mut side, idle, || done.load(Ordering::Relaxed) || is_over())?;
            Ok((near.read)(side))
        });
        let asked: io::Result<A> = asking.join().expect("the near thread does not panic");
        let answered: io::Result<B> = answering.join().expect("the far thread does not panic");
        let answered = answered?;
        Ok((asked?, answered))
    })
}

/// Does something on a thread of its own on this CPU. The caller's thread only waits, and keeps its own CPUs.
///
/// # Errors
/// The CPU is not permitted, or what is done fails.
pub fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cpu::pin(cpu)?;
            work()
        });
        thread.join().expect("the thread does not panic")
    })
}

/// Says that a thread has ended, however it ends.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs the near side until it is done, or until `is_over` says to stop where it is.
///
/// # Errors
/// The side fails.
pub fn run_near<N: Side>(near: &mut N, idle: Idle, mut is_over: impl FnMut() -> bool) -> io::Result<()> {
    while !is_over() {
        match near.turn()? {
            Turn::Done => break,
            turn => idle.rest(turn),
        }
    }
    Ok(())
}

/// Runs the far side until `is_over` says that the near side is done and nothing more comes.
///
/// # Errors
/// The side fails before that.
pub fn run_until<F: Side>(far: &mut F, idle: Idle, mut is_over: impl FnMut() -> bool) -> io::Result<()> {
    while !is_over() {
        let turn = match far.turn() {
            // The near side may hang up a moment before it says that it is done.
            Err(error) if is_hang_up(&error) => Turn::Idle,
            turn => turn?,
        };
        idle.rest(turn);
    }
    drain(far)
}

/// Takes in what is still there.
fn drain<F: Side>(far: &mut F) -> io::Result<()> {
    let mut idle_turns = 0;
    while idle_turns < DRAINED_AFTER {
        match far.turn() {
            Ok(Turn::Worked) => idle_turns = 0,
            Ok(_) => idle_turns += 1,
            Err(error) if is_hang_up(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn take_turns<N: Side, F: Side>(near: &mut N, far: &mut F, idle: Idle, is_over: impl Fn() -> bool) -> io::Result<()> {
    while !is_over() {
        let asked = near.turn()?;
        let answered = far.turn()?;
        match (asked, answered) {
            (Turn::Done, _) => break,
            (Turn::Idle, Turn::Idle) => idle.rest(Turn::Idle),
            _ => {}
        }
    }
    drain(far)
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
