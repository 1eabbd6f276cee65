//! The hot side: appends records, and knows how far they have got.

use std::cell::Cell;
use std::fmt;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use proto::journal::{MAX_RECORD_LENGTH, SEGMENT_HEADER_LENGTH, Writer, header_words, record_length};
use types::Timestamp;

use crate::buffer::BLOCK;
use crate::drainer::{Drainer, MEMORY_BYTES, Settings};
use crate::error::JournalError;
use crate::recovery::{self, Recovery};
use crate::ring::Ring;
use crate::segment::lock;

/// Where a journal is and how it is written.
#[derive(Clone, Debug)]
pub struct Config {
    /// The journal's directory, which is made when it is not there. One writer, one directory.
    pub directory: PathBuf,
    /// Who writes it: 1 to 64 printable ASCII bytes. A journal is only continued under the name it was begun with.
    pub writer: String,
    /// Records that wait for the disk, bytes: a power of two, from [`MIN_RING_BYTES`] to [`MAX_RING_BYTES`].
    pub ring_bytes: usize,
    /// Length of a file, bytes: whole blocks of 4,096, from [`MIN_SEGMENT_BYTES`] to [`MAX_SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// Whether to write past the page cache where the file system can. Where it cannot, a warning is logged.
    pub direct_io: bool,
    /// How long the drainer sleeps when it finds the ring empty. It adds to the age of `Written`. Zero: it spins, on a
    /// core that it should have for itself.
    pub poll: Duration,
    /// Records that have gathered meanwhile, bytes, for the drainer not to sleep after it wrote some. Zero: it sleeps only
    /// when there are none.
    pub gather_bytes: u64,
    /// How long written records wait for company before they are synced. It adds to the age of `Synced`, and while a sync
    /// is under way (40 to 140 µs) nothing is written.
    pub sync_after: Duration,
    /// CPUs that the drainer may run on; empty for those of the thread that opens the journal.
    pub cpus: Vec<usize>,
}

impl Config {
    /// A journal with a ring of 16 MiB and segments of 64 MiB, direct I/O, a look at the ring every millisecond, and a sync
    /// after each write.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, writer: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            writer: writer.into(),
            ring_bytes: 16 << 20,
            segment_bytes: 64 << 20,
            direct_io: true,
            poll: Duration::from_millis(1),
            gather_bytes: 0,
            sync_after: Duration::ZERO,
            cpus: Vec::new(),
        }
    }
}

/// How far a record has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watermark {
    /// In shared memory: survives the process.
    Appended,
    /// Given to the disk: survives the process and, on most disks, the machine's crash.
    Written,
    /// Kept by the disk: survives a power cut.
    Synced,
}

impl Watermark {
    /// How long the drainer should sleep ([`Config::poll`]) where outputs wait for this. Where none waits for the drainer,
    /// it is lazy: it often shares a core with a thread that spins, and each look takes the core from that thread twice.
    #[must_use]
    pub const fn drainer_poll(self) -> Duration {
        match self {
            Self::Appended => Duration::from_millis(2),
            Self::Written | Self::Synced => Duration::from_micros(50),
        }
    }

    /// What should gather before the drainer goes on without a pause ([`Config::gather_bytes`]) where outputs wait for this.
    #[must_use]
    pub const fn drainer_gather_bytes(self) -> u64 {
        match self {
            // A small part of any ring in use, and many blocks.
            Self::Appended => 512 << 10,
            Self::Written | Self::Synced => 0,
        }
    }
}

/// What a journal found and runs with, for the owner to print.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The journal.
    pub directory: PathBuf,
    /// The ring's file.
    pub ring: PathBuf,
    /// Memory of the ring and the drainer, bytes.
    pub memory_bytes: usize,
    /// Length of a file, bytes.
    pub segment_bytes: u64,
    /// Whether the page cache is bypassed.
    pub direct_io: bool,
    /// What was found.
    pub recovery: Recovery,
}

/// Appends to a journal. One thread has it; another one, which it owns, drains to the disk.
///
/// Dropping it waits until all is on the disk. A process that dies leaves the rest in the ring, and the next
/// [`open`](Self::open) writes it.
#[derive(Debug)]
pub struct JournalWriter {
    ring: Arc<Ring>,
    /// Of the stream: its end.
    position: u64,
    /// The ring's capacity, bytes.
    capacity: u64,
    /// `written` when it was last looked at: the line it is on belongs to another core.
    written: Cell<u64>,
    stop: Arc<AtomicBool>,
    drainer: Option<JoinHandle<Result<(), JournalError>>>,
    facts: Facts,
    /// Holds the directory for this process.
    _lock: File,
}

impl JournalWriter {
    /// Opens a journal, or begins one. What a dead process left in the ring is on the disk when this returns, and a tail
    /// that a power cut tore is cut off: see [`Facts::recovery`]. To return to the state it recorded, read it with
    /// [`JournalReader`](crate::JournalReader) before the first append.
    ///
    /// # Errors
    /// A setting is impossible; another process or another writer has the directory; what is there is damaged in a way
    /// that no crash explains; or the operating system refuses something.
    pub fn open(config: &Config) -> Result<Self, JournalError> {
        let writer = check(config)?;
        let directory = &config.directory;
        fs::create_dir_all(directory).map_err(JournalError::io("making the journal's directory", directory))?;
        let lock = lock(directory)?;

        let settings = Settings {
            directory: directory.clone(),
            journal: RandomState::new().build_hasher().finish(),
            writer,
            segment_bytes: config.segment_bytes,
            direct: config.direct_io,
            poll: config.poll,
            gather_bytes: config.gather_bytes.min(config.ring_bytes as u64 / 8),
            sync_after: config.sync_after,
        };
        let recovered = recovery::recover(settings, config.ring_bytes)?;
        let recovery::Recovered {
            drainer,
            ring,
            direct_io,
            recovery,
        } = recovered;

        let stop = Arc::new(AtomicBool::new(false));
        let thread = match spawn(drainer, Arc::clone(&stop), config.cpus.clone(), directory) {
            Ok(thread) => thread,
            Err(error) => {
                // Nothing is in it yet.
                ring.remove()?;
                return Err(error);
            }
        };
        Ok(Self {
            position: recovery.end,
            capacity: ring.capacity(),
            written: Cell::new(recovery.end),
            facts: Facts {
                directory: directory.clone(),
                ring: ring.path().to_path_buf(),
                memory_bytes: ring.memory_bytes() + MEMORY_BYTES,
                segment_bytes: config.segment_bytes,
                direct_io,
                recovery,
            },
            ring,
            stop,
            drainer: Some(thread),
            _lock: lock,
        })
    }

    /// Whether `bytes` more fit the ring: the sum of [`record_length`] over the records that are to be appended.
    #[must_use]
    pub fn room(&self, bytes: usize) -> bool {
        let end = self.position + bytes as u64;
        if end - self.written.get() <= self.capacity {
            return true;
        }
        self.written.set(self.ring.written());
        end - self.written.get() <= self.capacity
    }

    /// Appends a record, whose payload is the parts one after the other; returns the position after it. The record is
    /// complete once the watermark has reached that. Allocates nothing and makes no system call.
    ///
    /// # Panics
    /// When there is no [`room`](Self::room) for it, when the payload is longer than
    /// [`MAX_PAYLOAD_LENGTH`](proto::journal::MAX_PAYLOAD_LENGTH), or when `kind` is 0.
    #[inline]
    pub fn append(&mut self, kind: u16, version: u16, time: Timestamp, parts: &[&[u8]]) -> u64 {
        let payload_length = parts.iter().map(|part| part.len()).sum();
        let header = header_words(kind, version, time, self.position, payload_length);
        let length = record_length(payload_length);
        assert!(self.room(length), "no room in the journal: ask before appending");
        self.ring.store(self.position, header, parts);
        self.position += length as u64;
        self.ring.set_appended(self.position);
        self.position
    }

    /// Position up to which all records have got so far.
    #[must_use]
    pub fn watermark(&self, watermark: Watermark) -> u64 {
        match watermark {
            Watermark::Appended => self.position,
            Watermark::Written => self.ring.written(),
            Watermark::Synced => self.ring.synced(),
        }
    }

    /// Position after the last record.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Whether the drainer gave up: the disk refused something, the log says what. Nothing reaches the disk any more, and
    /// there is no [`room`](Self::room) once the ring is full.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.ring.has_failed()
    }

    /// What the journal found and runs with.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Writes and syncs everything, and stops.
    ///
    /// # Errors
    /// Not everything is on the disk; the rest stays in the ring for the next [`open`](Self::open).
    pub fn close(mut self) -> Result<(), JournalError> {
        self.stop_drainer()
    }

    fn stop_drainer(&mut self) -> Result<(), JournalError> {
        let Some(drainer) = self.drainer.take() else {
            return Ok(());
        };
        self.stop.store(true, Ordering::Release);
        drainer.thread().unpark();
        drainer.join().unwrap_or(Err(JournalError::DrainerGone))?;
        self.ring.remove()
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        if let Err(error) = self.stop_drainer() {
            tracing::error!("{error}");
        }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.direct_io { "direct I/O" } else { "page cache" };
        write!(
            f,
            "journal {}: {}; {:.1} MiB of memory, ring {}; segments of {:.1} MiB, {how}",
            self.directory.display(),
            self.recovery,
            mebibytes(self.memory_bytes as u64),
            self.ring.display(),
            mebibytes(self.segment_bytes),
        )
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Whether a journal can have a ring and files of these sizes, bytes.
///
/// # Errors
/// What would do, for people.
pub fn check_sizes(ring_bytes: usize, segment_bytes: u64) -> Result<(), String> {
    if !ring_bytes.is_power_of_two() || !(MIN_RING_BYTES..=MAX_RING_BYTES).contains(&ring_bytes) {
        return Err(format!(
            "ring_bytes is {ring_bytes}; it must be a power of two, from {MIN_RING_BYTES} to {MAX_RING_BYTES}"
        ));
    }
    let is_possible = (MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&segment_bytes);
    if !segment_bytes.is_multiple_of(BLOCK as u64) || !is_possible {
        return Err(format!(
            "segment_bytes is {segment_bytes}; it must be a multiple of {BLOCK}, from {MIN_SEGMENT_BYTES} to \
             {MAX_SEGMENT_BYTES}"
        ));
    }
    Ok(())
}

/// The settings that a journal cannot run with.
fn check(config: &Config) -> Result<Writer, JournalError> {
    check_sizes(config.ring_bytes, config.segment_bytes).map_err(JournalError::Config)?;
    let name = &config.writer;
    let writer = Writer::new(name);
    writer.ok_or_else(|| JournalError::Config(format!("\"{name}\" is no name for a writer: 1 to 64 ASCII characters")))
}

/// Starts the drainer's thread; returns once it runs where it should.
fn spawn(
    drainer: Drainer,
    stop: Arc<AtomicBool>,
    cpus: Vec<usize>,
    directory: &Path,
) -> Result<JoinHandle<Result<(), JournalError>>, JournalError> {
    let (started, start) = mpsc::sync_channel(1);
    let body = move || {
        let allowed = if cpus.is_empty() {
            Ok(())
        } else {
            net::cpu::allow(&cpus)
        };
        let refused = allowed.is_err();
        // The receiver waits for exactly this.
        let _ = started.send(allowed);
        if refused { Ok(()) } else { drainer.run(&stop) }
    };
    let thread = std::thread::Builder::new().name("journal".into()).spawn(body);
    let thread = thread.map_err(JournalError::io("starting the thread that writes", directory))?;
    match start.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(refusal)) => Err(JournalError::io("starting the thread that writes", directory)(
            refusal.into(),
        )),
        Err(mpsc::RecvError) => Err(JournalError::DrainerGone),
    }
}

/// Smallest ring, bytes: two of the longest records.
pub const MIN_RING_BYTES: usize = 2 * MAX_RECORD_LENGTH;
/// Smallest file, bytes: one of the longest records.
pub const MIN_SEGMENT_BYTES: u64 = (SEGMENT_HEADER_LENGTH + MAX_RECORD_LENGTH) as u64;

/// Largest ring, bytes: 64 GiB.
pub const MAX_RING_BYTES: usize = 1 << 36;
/// Longest file, bytes: 1 TiB.
pub const MAX_SEGMENT_BYTES: u64 = 1 << 40;
const _: () = assert!(MIN_RING_BYTES.is_power_of_two());
