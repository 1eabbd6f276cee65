//! Replays files over MoldUDP64: paced, filtered, once or again and again.
//!
//! Each pass over a file is a session of its own, so that a receiver knows to start anew. After its end the publisher
//! lingers, so that who missed the end or something before it can still have it.

use crate::binary_file::{BinaryFile, Ending, FeedError, FeedFile};
use crate::limits;
use crate::pace::{Pace, Schedule};
use crate::publisher::{UdpCounters, UdpPublisher, UdpPublisherConfig};
use crate::symbols::SymbolFilter;
use net::error::SetupError;
use proto::itch;
use proto::mold::{PublisherCounters, Session};
use std::fmt;
use std::io::{self, Cursor, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Duration, Symbol, Timestamp};

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// BinaryFILE feeds, plain or gzipped, one after the other.
    pub files: Vec<PathBuf>,
    /// Only these symbols; `None` for all.
    pub symbols: Option<Vec<Symbol>>,
    /// How fast.
    pub pace: Pace,
    /// What is earlier in the feed's day is sent without a pace, so that books are there; ns since midnight.
    pub from_ns: u64,
    /// What is later is left out; ns since midnight.
    pub until_ns: u64,
    /// How often all files are replayed; `None` for ever.
    pub passes: Option<u64>,
    /// Pause after each session, during which requests are answered.
    pub linger: Duration,
    /// First six digits of the sessions' names; the last four count them.
    pub session_prefix: u64,
    /// Where it is published.
    pub publisher: UdpPublisherConfig,
}

/// A replay. Call [`Replay::turn`] until [`Replay::is_done`].
pub struct Replay {
    sources: Vec<Source>,
    config: ReplayConfig,
    publisher: UdpPublisher,
    filter: Option<SymbolFilter>,
    /// Sessions begun, from 1 on.
    session: u64,
    state: State,
    counters: ReplayCounters,
    failure: Option<FeedError>,
}

/// What a [`Replay`] did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReplayCounters {
    /// Messages published.
    pub messages: u64,
    /// Messages skipped because their type is unknown or they are malformed.
    pub skipped: u64,
    /// Sessions begun: passes over a file.
    pub sessions: u64,
    /// How far behind its plan the last message was sent.
    pub lag: Duration,
    /// The furthest.
    pub lag_max: Duration,
}

/// A replay could not begin.
#[derive(Debug)]
pub enum ReplayError {
    /// A file cannot be read.
    Feed(FeedError),
    /// A socket cannot be had.
    Setup(SetupError),
    /// There are no files.
    NoFiles,
}

enum State {
    /// The next session begins in the next turn.
    Between,
    Publishing(Box<Pass>),
    Lingering {
        until: Timestamp,
    },
    Done,
}

/// One pass over one file.
struct Pass {
    file: BinaryFile<SourceReader>,
    schedule: Option<Schedule>,
    next: Option<Planned>,
}

/// A message and when it is to be sent.
struct Planned {
    bytes: [u8; itch::MAX_MESSAGE_LENGTH],
    length: usize,
    due: Timestamp,
}

/// A file, held in memory if it is small.
struct Source {
    path: PathBuf,
    memory: Option<Arc<[u8]>>,
}

enum SourceReader {
    Memory(Cursor<Arc<[u8]>>),
    File(FeedFile),
}

impl Replay {
    /// Reads the files that fit in memory and opens the socket.
    ///
    /// # Errors
    /// A file cannot be read, or the socket cannot be had.
    pub fn open(config: ReplayConfig) -> Result<Self, ReplayError> {
        if config.files.is_empty() {
            return Err(ReplayError::NoFiles);
        }
        let sources: Result<Vec<Source>, FeedError> = config.files.iter().map(|path| Source::open(path)).collect();
        let first = Session::numbered(config.session_prefix, 1);
        Ok(Self {
            sources: sources.map_err(ReplayError::Feed)?,
            publisher: UdpPublisher::open(&config.publisher, first).map_err(ReplayError::Setup)?,
            filter: config.symbols.as_deref().map(SymbolFilter::new),
            config,
            session: 0,
            state: State::Between,
            counters: ReplayCounters::default(),
            failure: None,
        })
    }

    /// Publishes what is due and answers requests. `true` when there was something to do.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        let worked = match &mut self.state {
            State::Between => {
                self.begin();
                true
            }
            State::Publishing(_) => self.publish(now),
            State::Lingering { until } if now >= *until => {
                self.state = State::Between;
                true
            }
            State::Lingering { .. } => false,
            State::Done => return false,
        };
        self.publisher.turn(now) || worked
    }

    /// Whether the last session is over, or a file could not be read.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The file that could not be read on the way, which ended the replay.
    #[must_use]
    pub const fn failure(&self) -> Option<&FeedError> {
        self.failure.as_ref()
    }

    /// Symbols asked for that the files did not have so far.
    pub fn missing_symbols(&self) -> impl Iterator<Item = Symbol> {
        self.filter.iter().flat_map(SymbolFilter::missing)
    }

    /// What was done so far.
    #[must_use]
    pub const fn counters(&self) -> ReplayCounters {
        self.counters
    }

    /// What was published so far.
    #[must_use]
    pub const fn publisher_counters(&self) -> PublisherCounters {
        self.publisher.counters()
    }

    /// What happened at the socket so far.
    #[must_use]
    pub const fn udp_counters(&self) -> UdpCounters {
        self.publisher.udp_counters()
    }

    /// The address that requests are sent to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.publisher.local_addr()
    }

    /// Begins the next session, or ends the replay.
    fn begin(&mut self) {
        let files = self.sources.len() as u64;
        let pass = self.session / files;
        if self.config.passes.is_some_and(|passes| pass >= passes) {
            self.state = State::Done;
            return;
        }
        let index = usize::try_from(self.session % files).unwrap_or(0);
        self.session += 1;
        self.counters.sessions = self.session;
        if self.session > 1 {
            self.publisher
                .start(Session::numbered(self.config.session_prefix, self.session));
        }
        self.state = match self.sources[index].reader() {
            Ok(file) => State::Publishing(Box::new(Pass {
                file,
                schedule: None,
                next: None,
            })),
            Err(error) => self.fail(error),
        };
    }

    /// Reads and publishes what is due, up to a turn's share.
    fn publish(&mut self, now: Timestamp) -> bool {
        let State::Publishing(pass) = &mut self.state else {
            return false;
        };
        for done in 0..limits::MAX_MESSAGES_PER_TURN {
            let Some(next) = &pass.next else {
                match pass.read(now, &self.config, self.filter.as_mut()) {
                    Ok(Found::Planned(next)) => pass.next = Some(next),
                    Ok(Found::LeftOut) => {}
                    Ok(Found::NotUnderstood) => self.counters.skipped += 1,
                    Ok(Found::End) => {
                        self.finish(now);
                        return true;
                    }
                    Err(error) => {
                        self.state = self.fail(error);
                        return true;
                    }
                }
                continue;
            };
            if next.due > now || self.publisher.room() == 0 {
                return done > 0;
            }
            self.publisher.push(&next.bytes[..next.length]);
            self.counters.messages += 1;
            self.counters.lag = now.since(next.due);
            self.counters.lag_max = self.counters.lag_max.max(self.counters.lag);
            pass.next = None;
        }
        true
    }

    /// Ends the session. On the first pass over a file it says what was odd about it.
    fn finish(&mut self, now: Timestamp) {
        if let State::Publishing(pass) = &self.state
            && self.session <= self.sources.len() as u64
        {
            pass.say_odd(self.counters.skipped);
        }
        self.publisher.end();
        self.state = State::Lingering {
            until: now + self.config.linger,
        };
    }

    fn fail(&mut self, error: FeedError) -> State {
        tracing::error!("{error}");
        self.failure = Some(error);
        State::Done
    }
}

/// What reading one message found.
enum Found {
    Planned(Planned),
    /// Not about the symbols wanted.
    LeftOut,
    /// No message of the protocol.
    NotUnderstood,
    End,
}

impl Pass {
    fn read(
        &mut self,
        now: Timestamp,
        config: &ReplayConfig,
        filter: Option<&mut SymbolFilter>,
    ) -> Result<Found, FeedError> {
        let Some(bytes) = self.file.next_message()? else {
            return Ok(Found::End);
        };
        let Ok(message) = itch::parse(bytes) else {
            return Ok(Found::NotUnderstood);
        };
        let time_ns = message.header().time_ns();
        if time_ns > config.until_ns {
            return Ok(Found::End);
        }
        if filter.is_some_and(|filter| !filter.passes(&message)) {
            return Ok(Found::LeftOut);
        }
        let due = if time_ns < config.from_ns {
            now
        } else {
            let schedule = self.schedule.get_or_insert(Schedule::new(config.pace, now, time_ns));
            schedule.plan(time_ns)
        };
        let mut planned = Planned {
            bytes: [0; itch::MAX_MESSAGE_LENGTH],
            length: bytes.len(),
            due,
        };
        planned.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(Found::Planned(planned))
    }

    fn say_odd(&self, skipped: u64) {
        let name = self.file.name();
        if self.file.has_zeroed_lengths() {
            tracing::warn!("feed {name}: its writer left the lengths 0; they follow from the types");
        }
        match self.file.ending() {
            None | Some(Ending::EndOfSession | Ending::EndOfFile) => {}
            Some(ending) => tracing::warn!("feed {name}: {ending}"),
        }
        if skipped > 0 {
            tracing::warn!("feed {name}: {skipped} messages of unknown type or length were skipped");
        }
    }
}

impl Source {
    fn open(path: &Path) -> Result<Self, FeedError> {
        let mut file = FeedFile::open(path)?.take(limits::MAX_PRELOAD_BYTES as u64 + 1);
        let mut bytes = Vec::new();
        // Whatever is wrong is met again, and told, when the file is read message by message.
        let is_whole = file.read_to_end(&mut bytes).is_ok() && bytes.len() <= limits::MAX_PRELOAD_BYTES;
        Ok(Self {
            path: path.to_owned(),
            memory: is_whole.then(|| bytes.into()),
        })
    }

    fn reader(&self) -> Result<BinaryFile<SourceReader>, FeedError> {
        let source = match &self.memory {
            Some(bytes) => SourceReader::Memory(Cursor::new(Arc::clone(bytes))),
            None => SourceReader::File(FeedFile::open(&self.path)?),
        };
        Ok(BinaryFile::new(source, &self.path.display().to_string()))
    }
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Memory(cursor) => cursor.read(buffer),
            Self::File(file) => file.read(buffer),
        }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(error) => error.fmt(f),
            Self::Setup(error) => error.fmt(f),
            Self::NoFiles => f.write_str("no feed to replay: give at least one file"),
        }
    }
}

impl std::error::Error for ReplayError {}
