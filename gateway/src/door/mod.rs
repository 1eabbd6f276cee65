//! The door: where clients come in.
//!
//! A shard must not be held up by who is not a client yet: connections that say nothing, half a message, a wrong password.
//! So a thread of its own, which may sleep, has all listeners. It accepts a connection, waits a bounded time for the first
//! message, judges it, and hands the socket and the bytes received so far to the shard of the session it names, over a
//! bounded queue. From there on the connection is the shard's alone.
//!
//! The door knows from the config who may come in. What depends on the state of a session is not its business: whether it
//! has a connection already, and which numbers it goes on with. The shard judges that.
//!
//! Since the first message names the session, it does not matter at which address a client connects: every FIX port of the
//! gateway takes every FIX session, every native port every native one.

mod claim;
mod directory;
mod hours;
mod keeper;
mod logon;
mod pending;
mod pool;
mod refusal;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::limits::{CHECK_THREADS, MAX_ARRIVALS, MAX_FRAME_LENGTH, MAX_PENDING_LOGONS};
use crate::status::{Addresses, DoorStatus, Status};
use crate::stream::Stream;
use keeper::Keeper;
use latency::clock::Clock;
use net::SetupError;
use proto::soup::{Login, ServerSession};
use rtrb::{Consumer, Producer, RingBuffer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use types::{SessionId, Timestamp};

use claim::Claim;
pub use directory::Binding;
pub(crate) use refusal::{Refusal, refuse_fix};

/// What the door tells a shard.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// A client comes in.
    Client(Box<Arrival>),
    /// A session's hours begin, with a new session day that begins at that time, or go on from before a restart.
    Open(SessionId, Timestamp),
    /// They end.
    Closed(SessionId),
}

/// A client that may come in, on its way to the shard of its session.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) stream: Stream,
    pub(crate) peer: SocketAddr,
    /// Whose session it wants.
    pub(crate) session: SessionId,
    pub(crate) hello: Hello,
    /// What was received and is not handled: of FIX from the Logon on, of the native protocol what follows the login. At
    /// most [`MAX_FRAME_LENGTH`](crate::limits::MAX_FRAME_LENGTH) bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Arrival {
    /// Who it says it is, for the log.
    pub(crate) fn claim(&self) -> Claim<'_> {
        match &self.hello {
            Hello::Fix { .. } => Claim::of_fix(&self.bytes),
            Hello::Native { login, .. } => Claim::of_native(login),
        }
    }
}

/// How a client began.
#[derive(Debug)]
pub(crate) enum Hello {
    /// With a Logon, the first message of the bytes. The session judges what else is in it. A client of a template has
    /// been given an instance.
    Fix { binding: Option<Binding> },
    /// With a login, not answered yet. Its password has been taken out.
    Native { server: ServerSession, login: Login },
}

/// The open door. It closes when this is dropped.
#[derive(Debug)]
pub struct Door {
    addresses: Addresses,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The door's ends of the queues to the shards, by [`ShardId`](types::ShardId).
pub(crate) type Queues = Vec<Producer<Delivery>>;

/// A queue to each shard.
pub(crate) fn queues(shards: usize) -> (Queues, Vec<Consumer<Delivery>>) {
    (0..shards).map(|_| RingBuffer::new(MAX_ARRIVALS)).unzip()
}

/// Bytes that the door takes at most, for the sum at start-up.
pub(crate) fn memory_bytes(config: &Config) -> usize {
    let handshakes = match config.tls {
        Some(_) => MAX_PENDING_LOGONS * Stream::HANDSHAKE_BYTES,
        None => 0,
    };
    keeper::MEMORY_BYTES
        + handshakes
        + config.shards.len() * MAX_ARRIVALS * (size_of::<Delivery>() + size_of::<Arrival>() + MAX_FRAME_LENGTH)
        + CHECK_THREADS * config.credentials.check_bytes()
}

impl Door {
    /// Listens wherever the config says, writes into the statuses where that is, and lets clients in from now on.
    /// `bindings` are those of the day so far.
    ///
    /// # Errors
    /// An address cannot be bound, or no thread can be had.
    pub(crate) fn open(
        config: &Arc<Config>,
        clock: Clock,
        bindings: &[Binding],
        queues: Queues,
        statuses: &[Arc<Status>],
        status: Arc<DoorStatus>,
    ) -> Result<Self, SetupError> {
        let mut keeper = Keeper::new(config, clock, bindings, queues, status)?;
        let addresses = keeper.listen(config, statuses)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                keeper.turn();
            }
        };
        let thread = std::thread::Builder::new()
            .name("door".to_owned())
            .spawn(run)
            .map_err(|error| SetupError::new("starting the door's thread", error, "raise the limit of processes"))?;
        Ok(Self {
            addresses,
            stop,
            thread: Some(thread),
        })
    }
}

impl Door {
    /// Its own addresses, beside those of the shards.
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there.
            drop(thread.join());
        }
    }
}
