//! The one place that knows glommio: a pinned executor whose resident task turns one component for ever.
//!
//! A task that spins beside glommio's own sockets starves them, and every await on the path of an order would cost a
//! round through the io_uring. So the resident task owns all hot sources, polls them itself without ever awaiting, and
//! yields only when `need_preempt()` says so: every `PREEMPT_TIMER`. Nothing hot or durable depends on the yield. A
//! different runtime needs to replace this file and nothing else.

use crate::config::Idle;
use latency::clock::Clock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use types::Timestamp;

/// Something that a thread turns in a loop: it looks at all its sources once, never blocks, and says whether it found work.
pub trait Component {
    /// One turn at time `now`. Returns whether there was anything to do.
    fn turn(&mut self, now: Timestamp) -> bool;

    /// Called once when the executor stops, after the last turn.
    fn finish(&mut self) {}
}

/// Two that take turns in one thread, for a machine with fewer cores than components.
impl<A: Component, B: Component> Component for (A, B) {
    fn turn(&mut self, now: Timestamp) -> bool {
        self.0.turn(now) | self.1.turn(now)
    }

    fn finish(&mut self) {
        self.0.finish();
        self.1.finish();
    }
}

/// Where and how a component runs.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Name of the thread, at most 15 bytes show in tools.
    pub name: String,
    /// The CPU it is pinned to; `None` leaves it unpinned.
    pub cpu: Option<usize>,
    /// What it does when there is nothing to do.
    pub idle: Idle,
}

/// A running component. Dropping it without [`Running::stop`] leaves the thread running until the process ends.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    handle: glommio::ExecutorJoinHandle<io::Result<()>>,
}

/// Interval of glommio's preempt timer. A yield costs some 11 µs, and nothing waits for one: there is no other task but
/// [`wake_up`].
///
/// It must be far longer than the kernel ever keeps the CPU from a thread that is ready. glommio 0.9 takes a timer that
/// fired before any task had run for "nothing to run", and parks although the resident task is ready: at 10 ms, on a
/// machine with more work than CPUs, a shard slept for ever within minutes.
const PREEMPT_TIMER: Duration = Duration::from_secs(1);

/// If it parks all the same, this long.
const PARKED_MAX: Duration = Duration::from_millis(10);

/// Memory that glommio registers for storage I/O. The resident task does none, so this is glommio's own minimum.
const IO_MEMORY_BYTES: usize = 64 << 10;

/// Entries of glommio's submission ring. Only timers and the yield use it.
const RING_DEPTH: usize = 16;

/// Turns without work before a component that may back off sleeps.
const IDLE_TURNS_BEFORE_SLEEP: u32 = 64;

/// How long it then sleeps: the latency that `idle = "backoff"` costs.
const BACKOFF_SLEEP: Duration = Duration::from_micros(50);

/// Starts a thread with an executor, builds the component on it (so that its memory is local to the core) and turns it
/// until stopped.
///
/// # Errors
/// When the executor cannot start (too little locked memory, io_uring refused, CPU not permitted) or `build` fails; the
/// message says what to do.
pub fn run<C, F>(placement: &Placement, clock: Clock, build: F) -> io::Result<Running>
where
    C: Component + 'static,
    F: FnOnce() -> io::Result<C> + Send + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (started, wait_for_start) = std::sync::mpsc::sync_channel::<io::Result<()>>(1);
    let idle = placement.idle;
    let handle = builder(placement)
        .spawn(move || async move {
            let mut component = match build() {
                Ok(component) => component,
                Err(error) => {
                    let copy = io::Error::new(error.kind(), error.to_string());
                    drop(started.send(Err(error)));
                    return Err(copy);
                }
            };
            drop(started.send(Ok(())));
            glommio::spawn_local(wake_up()).detach();
            resident(&mut component, clock, idle, &stopped).await;
            component.finish();
            Ok(())
        })
        .map_err(|error| explain(&error.into()))?;
    match wait_for_start.recv() {
        Ok(Ok(())) => Ok(Running { stop, handle }),
        Ok(Err(error)) => Err(error),
        // The thread ended before it could build anything: the executor itself did not start.
        Err(_) => match handle.join() {
            Err(error) => Err(explain(&error.into())),
            Ok(_) => Err(io::Error::other("the executor's thread ended before it started")),
        },
    }
}

impl Running {
    /// Asks the component to stop, waits for its last turn and gives back what went wrong, if anything did.
    ///
    /// # Errors
    /// When the thread panicked.
    pub fn stop(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Release);
        self.handle.join().map_err(io::Error::from)?
    }

    /// Whether somebody asked it to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

fn builder(placement: &Placement) -> glommio::LocalExecutorBuilder {
    let cpu = placement
        .cpu
        .map_or(glommio::Placement::Unbound, glommio::Placement::Fixed);
    glommio::LocalExecutorBuilder::new(cpu)
        .name(&placement.name)
        .preempt_timer(PREEMPT_TIMER)
        .io_memory(IO_MEMORY_BYTES)
        .ring_depth(RING_DEPTH)
}

/// Keeps the executor from parking for good: it wakes up for its next timer, so there always is one. See
/// `PREEMPT_TIMER`.
async fn wake_up() {
    loop {
        glommio::timer::sleep(PARKED_MAX).await;
    }
}

/// The resident task: turns until glommio wants the thread, yields, and goes on.
async fn resident<C: Component>(component: &mut C, clock: Clock, idle: Idle, stop: &AtomicBool) {
    let executor = glommio::executor();
    let mut idle_turns = 0;
    while !stop.load(Ordering::Relaxed) {
        while !executor.need_preempt() && !stop.load(Ordering::Relaxed) {
            if component.turn(clock.now()) {
                idle_turns = 0;
                continue;
            }
            idle_turns += 1;
            if idle == Idle::Backoff && idle_turns >= IDLE_TURNS_BEFORE_SLEEP {
                // The thread has nothing else to run, so it sleeps itself: a timer of the ring would cost more.
                std::thread::sleep(BACKOFF_SLEEP);
            } else {
                std::hint::spin_loop();
            }
        }
        glommio::yield_if_needed().await;
    }
}

/// Says what to do about the two things that keep an executor from starting in practice.
fn explain(error: &io::Error) -> io::Error {
    let advice = match error.raw_os_error() {
        Some(libc::ENOMEM) => {
            ": too little locked memory; raise it with `ulimit -l 512` or LimitMEMLOCK (512 KiB a shard are needed)"
        }
        Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => {
            ": io_uring is refused here; allow it (sysctl kernel.io_uring_disabled=0, container seccomp profile) or use a kernel from 5.8 on"
        }
        _ => "",
    };
    io::Error::new(error.kind(), format!("starting the shard's executor: {error}{advice}"))
}
