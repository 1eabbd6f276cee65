//! What the long-running subcommands share: the log, the interrupt, threads for components that need no executor.

use crate::Failure;
use crate::output::{self, say};
use ::gateway::executor::Component;
use latency::clock::Clock;
use net::link::LinkConfig;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Set when the user asks the program to stop (SIGINT, SIGTERM).
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// A component on a thread of its own.
pub(crate) struct Turning {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// How long a thread without work sleeps.
const BACKOFF: Duration = Duration::from_micros(50);

/// How often a waiting program looks whether it is to stop.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

impl Interrupt {
    /// Watches for the signals.
    pub(crate) fn new() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// One that never comes, for a loop that sees to its end itself.
    pub(crate) fn never() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Whether the user asked to stop.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until the user asks to stop.
    pub(crate) fn wait(&self) {
        while !self.is_set() {
            std::thread::sleep(INTERRUPT_POLL);
        }
    }
}

/// Puts the tables, which are built by now, into huge pages, and says how much of them lies there.
pub(crate) fn gather_memory() {
    match net::huge_pages::gather() {
        Ok(bytes) => say!("memory: {:<24} {bytes:>12}", "in huge pages"),
        Err(error) => say!("memory: none in huge pages: {error}"),
    }
}

/// Tries whether links can be opened on this host, as far as that can be found out without opening them, and says what is
/// found.
pub(crate) fn check_links<'a>(links: impl Iterator<Item = (String, &'a LinkConfig)>) -> Result<(), Failure> {
    let mut impossible = 0;
    for (which, link) in links {
        match link.probe() {
            Ok(lines) => lines.iter().for_each(|line| say!("{which}: {line}")),
            Err(error) => {
                impossible += 1;
                say!("{which}: {error}");
            }
        }
    }
    match impossible {
        0 => Ok(()),
        _ => Err(Failure::new(format!(
            "{impossible} links cannot be opened on this host"
        ))),
    }
}

/// Turns on this thread until the user interrupts.
pub(crate) fn turn_until(interrupt: &Interrupt, spins: bool, mut turn: impl FnMut() -> bool) {
    turn_while(interrupt, spins, || (turn(), true));
}

/// Turns on this thread until `turn` says that it is over, or the user interrupts. A turn gives whether there was work,
/// and whether to go on.
pub(crate) fn turn_while(interrupt: &Interrupt, spins: bool, mut turn: impl FnMut() -> (bool, bool)) {
    while !interrupt.is_set() {
        let (worked, goes_on) = turn();
        if !goes_on {
            return;
        }
        if worked || spins {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(BACKOFF);
        }
    }
}

/// Turns a component on a plain thread, on a CPU or on any; it sleeps when there is nothing to do.
pub(crate) fn spawn<C>(name: &str, cpu: Option<usize>, clock: Clock, mut component: C) -> Result<Turning, Failure>
where
    C: Component + Send + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Some(cpu) = cpu
            && let Err(error) = net::cpu::pin(cpu)
        {
            tracing::warn!(%error, "running unpinned");
        }
        while !stopped.load(Ordering::Relaxed) {
            if !component.turn(clock.now()) {
                std::thread::sleep(BACKOFF);
            }
        }
        component.finish();
    })?;
    Ok(Turning { stop, thread })
}

impl Turning {
    /// Stops the thread after its turn.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic there was printed there.
        drop(self.thread.join());
    }
}

/// One line on a terminal that is written over; nothing in a pipe.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    shown_at: Option<Instant>,
    started: Instant,
}

impl Progress {
    const INTERVAL: Duration = Duration::from_millis(250);

    pub(crate) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
            shown_at: None,
            started: Instant::now(),
        }
    }

    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        if !self.is_terminal || self.shown_at.unwrap_or(self.started).elapsed() < Self::INTERVAL {
            return;
        }
        self.show_now(&line());
    }

    /// Shows the line, however long ago the last one was.
    pub(crate) fn show_now(&mut self, line: &str) {
        if self.is_terminal {
            self.shown_at = Some(Instant::now());
            output::complain(format_args!("\r\x1b[K{line}"));
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.shown_at.take().is_some() {
            output::complain(format_args!("\r\x1b[K"));
        }
    }
}
