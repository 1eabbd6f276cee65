//! Messages that a session was asked to send again and no longer has: they are read back from the journal.
//!
//! A shard must not read files. So a thread that sleeps until it is asked does: the [`Seeker`] of each shard looks a few
//! messages up at a time, and what it finds comes to the shard as an input, which is journaled like any other. One portion
//! a shard is under way at a time, sessions take turns, and a portion is only asked for when all of it has room in its
//! client's buffer: nothing that was found ever waits for a client who reads slowly.
//!
//! A number stands in the journal as often as its message was held, sent and sent again. What counts is the last that is no
//! possible duplicate before the first with a higher number: an answer to a failed logon has the number of the message
//! that comes next, and does not use it up.

use crate::client_output::ClientOutputs;
use crate::limits::{MAX_FRAME_LENGTH, MAX_REPORT_LENGTH, RECALL_PORTION};
use crate::live::Live;
use crate::record::Record;
use crate::shard::Shard;
use journal::{JournalError, JournalReader};
use net::Link;
use proto::fix::{self, Fields, Recall, tag};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};
use types::{SequenceNumber, SessionId};

/// The shard's end: what its sessions wait for.
#[derive(Debug)]
pub(crate) struct Recalls {
    /// At most one a session: in the order of their turns.
    waiting: VecDeque<Wanted>,
    is_under_way: bool,
    wanted: Producer<Wanted>,
    found: Consumer<Found>,
    /// Who sleeps until something is wanted.
    thread: Option<Thread>,
}

/// The other end: looks into the journal of one shard.
#[derive(Debug)]
pub(crate) struct Seeker {
    directory: PathBuf,
    wanted: Consumer<Wanted>,
    found: Producer<Found>,
    /// The message that was found last, until it is certain that no better one comes.
    candidate: Vec<u8>,
}

/// The thread of all seekers. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Seekers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Messages of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wanted {
    session: SessionId,
    /// Of the session's recall.
    id: u64,
    begin: SequenceNumber,
    end: SequenceNumber,
    /// Where in the journal to begin.
    position: u64,
}

/// What one number turned out to be.
#[derive(Debug)]
struct Found {
    session: SessionId,
    id: u64,
    sequence: SequenceNumber,
    /// Where what follows may stand, when this is the last of its portion.
    end: Option<u64>,
    /// 0: there is no such message.
    length: usize,
    bytes: [u8; MAX_FRAME_LENGTH],
}

/// The two ends for a shard whose journal is in `directory` and which has so many sessions.
pub(crate) fn connect(directory: PathBuf, sessions: usize) -> (Recalls, Seeker) {
    let (wanted_in, wanted_out) = RingBuffer::new(1);
    let (found_in, found_out) = RingBuffer::new(RECALL_PORTION);
    let recalls = Recalls {
        waiting: VecDeque::with_capacity(sessions),
        is_under_way: false,
        wanted: wanted_in,
        found: found_out,
        thread: None,
    };
    let seeker = Seeker {
        directory,
        wanted: wanted_out,
        found: found_in,
        candidate: Vec::with_capacity(MAX_FRAME_LENGTH),
    };
    (recalls, seeker)
}

/// Bytes that both ends for so many sessions take.
pub(crate) const fn memory_bytes(sessions: usize) -> usize {
    RECALL_PORTION * size_of::<Found>() + sessions * size_of::<Wanted>() + MAX_FRAME_LENGTH
}

/// Hands to the shard what was found, as far as there is room, and asks for more. Returns whether there was anything.
pub(crate) fn turn<L: Link>(shard: &mut Shard, live: &mut Live<L>) -> bool {
    let mut is_busy = false;
    while live.journal_has_room()
        && let Ok(found) = live.recalls.found.pop()
    {
        is_busy = true;
        if !live.recalls.is_wanted(&found) {
            continue;
        }
        let Found {
            session, id, sequence, ..
        } = found;
        let message = &found.bytes[..found.length];
        live.append(&Record::Recalled {
            session,
            id,
            sequence,
            message,
        });
        shard.on_recalled(live.now, session, id, sequence, message, live);
    }
    let Live { recalls, clients, .. } = live;
    is_busy | recalls.want_more(clients)
}

impl Recalls {
    /// A session needs messages, and of an older recall none any more. Nothing of them stands before `position`.
    pub(crate) fn recall(&mut self, session: SessionId, recall: &Recall, position: u64) {
        self.waiting.retain(|wanted| wanted.session != session);
        self.waiting.push_back(Wanted {
            session,
            id: recall.id,
            begin: recall.begin,
            end: recall.end,
            position,
        });
    }

    /// Whether someone still waits for it. Takes note of how far the recall has come.
    fn is_wanted(&mut self, found: &Found) -> bool {
        self.is_under_way &= found.end.is_none();
        let mut waiting = self.waiting.iter_mut();
        let wanted = waiting.find(|wanted| (wanted.session, wanted.id) == (found.session, found.id));
        let Some(wanted) = wanted else { return false };
        wanted.begin = found.sequence.next();
        wanted.position = found.end.unwrap_or(wanted.position);
        true
    }

    /// Asks for the next portion of whoever is next and has room for it. Returns whether it did.
    fn want_more(&mut self, clients: &ClientOutputs) -> bool {
        self.waiting
            .retain(|wanted| wanted.begin <= wanted.end && clients.is_connected(wanted.session));
        if self.is_under_way {
            return false;
        }
        let next = self.waiting.iter().position(|wanted| {
            let portion = portion(clients, wanted.session);
            clients.has_room_for(wanted.session, portion)
        });
        let Some(wanted) = next.and_then(|next| self.waiting.remove(next)) else {
            return false;
        };
        self.waiting.push_back(wanted);
        let last = wanted.begin.0 + portion(clients, wanted.session) as u64 - 1;
        let end = wanted.end.min(SequenceNumber(last));
        self.is_under_way = self.wanted.push(Wanted { end, ..wanted }).is_ok();
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
        self.is_under_way
    }
}

/// Messages that are looked up at a time for a session: they fill at most half of its buffer.
fn portion(clients: &ClientOutputs, session: SessionId) -> usize {
    let half = clients.capacity(session) / (2 * MAX_REPORT_LENGTH);
    half.clamp(1, RECALL_PORTION)
}

impl Seeker {
    /// Looks up what is wanted. Returns whether anything was.
    pub(crate) fn turn(&mut self) -> bool {
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
                    tracing::error!(session = wanted.session.0, "resend from the journal: {error}");
                    self.answer(&wanted, wanted.end, &[], wanted.position);
                    return true;
                }
            }
        }
    }

    /// Reads the journal until every number has its answer. `wanted` shrinks with each.
    fn look_up(&mut self, wanted: &mut Wanted) -> Result<(), JournalError> {
        let mut reader = JournalReader::open_at(&self.directory, wanted.position)?;
        let mut candidate = None;
        while let Some(entry) = reader.next_record()? {
            let message = match Record::decode(entry.kind, entry.payload) {
                Ok(Record::ClientOutput { session, message } | Record::ClientHeld { session, message })
                    if session == wanted.session =>
                {
                    message
                }
                _ => continue,
            };
            let Some(sequence) = first_number(message).filter(|&sequence| sequence >= wanted.begin) else {
                continue;
            };
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

    /// The candidate is the message with this number.
    fn settle(&mut self, wanted: &mut Wanted, sequence: SequenceNumber, position: u64) {
        let message = std::mem::take(&mut self.candidate);
        self.answer(wanted, sequence, &message, position);
        self.candidate = message;
        (wanted.begin, wanted.position) = (sequence.next(), position);
    }

    fn answer(&mut self, wanted: &Wanted, sequence: SequenceNumber, message: &[u8], position: u64) {
        let mut found = Found {
            session: wanted.session,
            id: wanted.id,
            sequence,
            end: (sequence == wanted.end).then_some(position),
            length: message.len(),
            bytes: [0; MAX_FRAME_LENGTH],
        };
        found.bytes[..message.len()].copy_from_slice(message);
        let pushed = self.found.push(found);
        assert!(pushed.is_ok(), "one portion is under way, and the ring holds one");
    }
}

impl Seekers {
    /// Starts a thread for all seekers, and tells the shards' ends whom to wake.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start<'r>(
        mut seekers: Vec<Seeker>,
        recalls: impl Iterator<Item = &'r mut Recalls>,
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

/// MsgSeqNum of a message that is no possible duplicate.
fn first_number(message: &[u8]) -> Option<SequenceNumber> {
    let mut sequence = None;
    for field in Fields::new(message).take(HEADER_FIELDS).flatten() {
        match field.tag {
            tag::MSG_SEQ_NUM => sequence = fix::parse_u64(field.value),
            tag::POSS_DUP_FLAG if field.value == b"Y" => return None,
            _ => {}
        }
    }
    sequence.map(SequenceNumber)
}

/// Fields of a message that is sent again, from its beginning to its PossDupFlag and its number.
const HEADER_FIELDS: usize = 12;

/// Times that the journal may be written faster than it is read.
const OUTRUN_MAX: usize = 16;
