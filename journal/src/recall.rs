//! Numbered messages that were sent once and are no longer held anywhere else: they are read back from the journal.
//!
//! Whoever appends must not read files. So a thread that sleeps until it is asked does: the [`Seeker`] of each journal looks
//! a few messages up at a time for the other end, [`Recalls`]. One portion of a journal is under way at a time, its streams
//! take turns, and the owner says how much of a stream it has room for: nothing that was found waits for a slow reader.
//!
//! A number may stand in the journal more than once. What counts is the last message with it before the first with a higher
//! number.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};

use rtrb::{Consumer, Producer, RingBuffer};
use types::SequenceNumber;

use crate::error::JournalError;
use crate::reader::JournalReader;
use crate::sent_index::SentIndex;

/// What the records of a journal mean to whoever looks messages up in it.
pub trait Streams: Send + 'static {
    /// Names a stream of numbered messages.
    type Stream: Copy + PartialEq + Send + fmt::Debug;

    /// The message of `stream` that a record holds, if it holds one that counts, and its number. `None` in the number's
    /// place: the messages of the stream are numbered by their order.
    fn message(stream: Self::Stream, kind: u16, payload: &[u8]) -> Option<(Option<SequenceNumber>, &[u8])>;
}

/// Messages of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted<S> {
    /// Whose.
    pub stream: S,
    /// Of this recall: what is found for an earlier one is dropped.
    pub id: u64,
    /// The first.
    pub begin: SequenceNumber,
    /// The last.
    pub end: SequenceNumber,
    /// Where in the journal to begin.
    pub position: u64,
    /// The number of the first message there; it matters where messages are numbered by their order.
    pub number: SequenceNumber,
}

/// What one number turned out to be. `N`: longest message, bytes.
#[derive(Debug)]
pub struct Found<S, const N: usize> {
    /// Whose.
    pub stream: S,
    /// Of the recall.
    pub id: u64,
    /// The first that was still wanted: all from here to below `sequence` are not in the journal.
    pub first: SequenceNumber,
    /// Its number.
    pub sequence: SequenceNumber,
    /// Where what follows may stand, when this is the last of its portion.
    end: Option<u64>,
    length: usize,
    bytes: [u8; N],
}

/// How much of a stream may be looked up now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Portion {
    /// So many messages, at least one and at most as many as a portion holds.
    Of(usize),
    /// There is no room.
    Later,
    /// Nobody wants it any more.
    Never,
}

/// The end of whoever wants messages.
pub struct Recalls<T: Streams, const N: usize> {
    /// At most one a stream: in the order of their turns.
    waiting: VecDeque<Wanted<T::Stream>>,
    is_under_way: bool,
    /// Of those that got their number here.
    last_id: u64,
    wanted: Producer<Wanted<T::Stream>>,
    found: Consumer<Found<T::Stream, N>>,
    /// Who sleeps until something is wanted.
    thread: Option<Thread>,
}

/// The other end: looks into one journal.
pub struct Seeker<T: Streams, const N: usize> {
    directory: PathBuf,
    wanted: Consumer<Wanted<T::Stream>>,
    found: Producer<Found<T::Stream, N>>,
    /// The message that was found last, until it is certain that no better one comes.
    candidate: Vec<u8>,
}

/// The thread of all seekers. It ends when this is dropped.
#[derive(Debug)]
pub struct Seekers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The two ends for a journal of so many streams, of which so many messages are looked up at a time.
#[must_use]
pub fn recalls<T: Streams, const N: usize>(
    directory: PathBuf,
    streams: usize,
    portion: usize,
) -> (Recalls<T, N>, Seeker<T, N>) {
    let (wanted_in, wanted_out) = RingBuffer::new(1);
    let (found_in, found_out) = RingBuffer::new(portion);
    let recalls = Recalls {
        waiting: VecDeque::with_capacity(streams),
        is_under_way: false,
        last_id: 0,
        wanted: wanted_in,
        found: found_out,
        thread: None,
    };
    let seeker = Seeker {
        directory,
        wanted: wanted_out,
        found: found_in,
        candidate: Vec::with_capacity(N),
    };
    (recalls, seeker)
}

impl<S> Wanted<S> {
    /// Messages `from` up to below `to`, of which `sent` has the places.
    #[must_use]
    pub fn from_index(stream: S, from: SequenceNumber, to: SequenceNumber, sent: &SentIndex) -> Self {
        let (number, position) = sent.before(from).unwrap_or((SequenceNumber(1), 0));
        Self {
            stream,
            id: 0,
            begin: from,
            end: SequenceNumber(to.0 - 1),
            position,
            number,
        }
    }
}

impl<T: Streams, const N: usize> Recalls<T, N> {
    /// Bytes that both ends for so many streams take.
    #[must_use]
    pub const fn memory_bytes(streams: usize, portion: usize) -> usize {
        portion * size_of::<Found<T::Stream, N>>() + streams * size_of::<Wanted<T::Stream>>() + N
    }

    /// A stream needs messages, and of an older recall none any more.
    pub fn recall(&mut self, wanted: Wanted<T::Stream>) {
        self.waiting.retain(|other| other.stream != wanted.stream);
        self.waiting.push_back(wanted);
    }

    /// The same, under a number of its own.
    pub fn recall_anew(&mut self, wanted: Wanted<T::Stream>) {
        self.last_id += 1;
        let id = self.last_id;
        self.recall(Wanted { id, ..wanted });
    }

    /// The next message that was found and is still wanted.
    pub fn found(&mut self) -> Option<Found<T::Stream, N>> {
        while let Ok(mut found) = self.found.pop() {
            self.is_under_way &= found.end.is_none();
            let mut waiting = self.waiting.iter_mut();
            let wanted = waiting.find(|wanted| (wanted.stream, wanted.id) == (found.stream, found.id));
            if let Some(wanted) = wanted {
                found.first = wanted.begin;
                wanted.begin = found.sequence.next();
                if let Some(end) = found.end {
                    (wanted.position, wanted.number) = (end, found.sequence.next());
                }
                return Some(found);
            }
        }
        None
    }

    /// Nobody wants what follows.
    pub fn give_up(&mut self, found: &Found<T::Stream, N>) {
        self.waiting.retain(|wanted| wanted.stream != found.stream);
    }

    /// Asks for the next portion of whoever is next and has room for it. Returns whether it did.
    pub fn ask(&mut self, portion: impl Fn(T::Stream) -> Portion) -> bool {
        self.waiting
            .retain(|wanted| wanted.begin <= wanted.end && portion(wanted.stream) != Portion::Never);
        if self.is_under_way {
            return false;
        }
        let mut next = None;
        for (place, wanted) in self.waiting.iter().enumerate() {
            if let Portion::Of(count) = portion(wanted.stream) {
                next = Some((place, count));
                break;
            }
        }
        let Some((place, count)) = next else { return false };
        let Some(wanted) = self.waiting.remove(place) else {
            return false;
        };
        self.waiting.push_back(wanted);
        let last = wanted.begin.0 + count as u64 - 1;
        let end = wanted.end.min(SequenceNumber(last));
        self.is_under_way = self.wanted.push(Wanted { end, ..wanted }).is_ok();
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
        self.is_under_way
    }
}

impl<S, const N: usize> Found<S, N> {
    /// Whether the first that was still wanted is not in the journal.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.length == 0 || self.sequence != self.first
    }

    /// Its bytes. Empty: there is no such message, nor any from the first wanted one on.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl<T: Streams, const N: usize> Seeker<T, N> {
    /// Looks up what is wanted. Returns whether anything was.
    pub fn turn(&mut self) -> bool {
        let Ok(mut wanted) = self.wanted.pop() else {
            return false;
        };
        let mut outrun = 0;
        loop {
            match self.look_up(&mut wanted) {
                Ok(()) => return true,
                // The next look finds in the files what was in the ring.
                Err(JournalError::Outrun) if outrun < OUTRUN_MAX => outrun += 1,
                Err(error) => {
                    tracing::error!(stream = ?wanted.stream, "messages from the journal: {error}");
                    self.answer(&wanted, wanted.end, &[], wanted.position);
                    return true;
                }
            }
        }
    }

    /// Reads the journal until every number has its answer. `wanted` shrinks with each.
    fn look_up(&mut self, wanted: &mut Wanted<T::Stream>) -> Result<(), JournalError> {
        let mut reader = JournalReader::open_at(&self.directory, wanted.position)?;
        let mut candidate = None;
        let mut count = wanted.number;
        while let Some(entry) = reader.next_record()? {
            let Some((sequence, message)) = T::message(wanted.stream, entry.kind, entry.payload) else {
                continue;
            };
            let sequence = sequence.unwrap_or(count);
            count = sequence.next();
            if sequence < wanted.begin || message.len() > N {
                continue;
            }
            match candidate {
                Some(current) if sequence < current => continue,
                Some(current) if sequence > current => {
                    self.settle(wanted, current, entry.position);
                    if wanted.begin > wanted.end {
                        return Ok(());
                    }
                }
                _ => {}
            }
            if sequence > wanted.end {
                self.answer(wanted, wanted.end, &[], entry.position);
                return Ok(());
            }
            candidate = Some(sequence);
            self.candidate.clear();
            self.candidate.extend_from_slice(message);
        }
        let end = reader.position();
        if let Some(current) = candidate {
            self.settle(wanted, current, end);
        }
        if wanted.begin <= wanted.end {
            self.answer(wanted, wanted.end, &[], end);
        }
        Ok(())
    }

    /// The candidate is the message with this number; what follows stands at `position`.
    fn settle(&mut self, wanted: &mut Wanted<T::Stream>, sequence: SequenceNumber, position: u64) {
        let message = std::mem::take(&mut self.candidate);
        self.answer(wanted, sequence, &message, position);
        self.candidate = message;
        wanted.begin = sequence.next();
        (wanted.position, wanted.number) = (position, sequence.next());
    }

    fn answer(&mut self, wanted: &Wanted<T::Stream>, sequence: SequenceNumber, message: &[u8], position: u64) {
        let mut found = Found {
            stream: wanted.stream,
            id: wanted.id,
            first: wanted.begin,
            sequence,
            end: (sequence == wanted.end).then_some(position),
            length: message.len(),
            bytes: [0; N],
        };
        found.bytes[..message.len()].copy_from_slice(message);
        let pushed = self.found.push(found);
        assert!(pushed.is_ok(), "one portion is under way, and the ring holds one");
    }
}

impl Seekers {
    /// Starts a thread for all seekers, and tells the other ends whom to wake.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start<'r, T: Streams, const N: usize>(
        mut seekers: Vec<Seeker<T, N>>,
        recalls: impl Iterator<Item = &'r mut Recalls<T, N>>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            while !stopped.load(Ordering::Acquire) {
                let is_busy = seekers
                    .iter_mut()
                    .fold(false, |is_busy, seeker| seeker.turn() | is_busy);
                if !is_busy {
                    std::thread::park();
                }
            }
        };
        let thread = std::thread::Builder::new().name("recall".to_owned()).spawn(run)?;
        for recalls in recalls {
            recalls.thread = Some(thread.thread().clone());
        }
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Seekers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there was printed there.
            drop(thread.join());
        }
    }
}

impl<T: Streams, const N: usize> fmt::Debug for Recalls<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recalls")
            .field("waiting", &self.waiting)
            .field("is_under_way", &self.is_under_way)
            .finish_non_exhaustive()
    }
}

impl<T: Streams, const N: usize> fmt::Debug for Seeker<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seeker")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Times that the journal may be written faster than it is read.
const OUTRUN_MAX: usize = 16;
