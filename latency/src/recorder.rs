//! Recordings: records leave the hot thread by a bounded ring, and a cold thread writes them to `DIR/NAME.rec`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};
use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::clock::{Clock, ClockFacts};
use crate::record::{End, RECORD_LENGTH, Record};

/// The hot side: one thread's way into a recording.
#[derive(Debug)]
pub struct Recorder {
    /// `None`: recording is off.
    ring: Option<Ring>,
}

#[derive(Debug)]
struct Ring {
    records: Producer<Record>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// A recorder that keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { ring: None }
    }

    /// Whether records are kept: lets a caller skip readings of the clock that only a recording needs.
    #[inline]
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.ring.is_some()
    }

    /// Keeps a record. Never blocks or allocates; a record that finds the ring full is dropped and counted.
    #[inline]
    pub fn push(&mut self, record: impl Into<Record>) {
        if let Some(ring) = &mut self.ring
            && ring.records.push(record.into()).is_err()
        {
            // One thread writes it, so a plain addition will do.
            let dropped = ring.dropped.load(Ordering::Relaxed) + 1;
            ring.dropped.store(dropped, Ordering::Relaxed);
        }
    }

    /// Records dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.ring
            .as_ref()
            .map_or(0, |ring| ring.dropped.load(Ordering::Relaxed))
    }
}

/// What a recording says of its writer, as JSON at the start of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// `gateway`, `exchange`, `client`, `demo` …
    pub component: String,
    /// Version and commit of the program.
    pub commit: String,
    /// When the recording began, UTC ns.
    pub started: u64,
    /// The machine.
    pub host: Host,
    /// Which thread ran where.
    pub placement: Vec<Placement>,
    /// What a shard without work does: `spin` or `backoff`.
    pub idle: String,
    /// The clock that made the stamps.
    pub clock: ClockFacts,
    /// Transports in use, such as `clients: TCP loopback`, `venue: LTP over UDP loopback`.
    pub transports: Vec<String>,
    /// What a reader of the figures must know, one sentence each.
    pub warnings: Vec<String>,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The processor's model.
    pub cpu: String,
    /// Cores online.
    pub cores: u32,
    /// Operating system and version of its kernel.
    pub kernel: String,
}

/// A thread and its core.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// What ran there, such as `gateway shard 0`.
    pub thread: String,
    /// The core it was pinned to; `None` when it was not pinned.
    pub core: Option<u32>,
}

/// The cold side: takes records from rings and writes the file. Owned by a thread ([`Recording::spawn`]) or given turns.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: BufWriter<File>,
    rings: Vec<(Consumer<Record>, Arc<AtomicU64>)>,
    written: u64,
}

/// What became of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordingSummary {
    /// The file.
    pub path: PathBuf,
    /// Records in it, the last one (`End`) left out.
    pub records: u64,
    /// Records that found a ring full and are lost.
    pub dropped: u64,
}

/// The thread that writes a recording.
#[derive(Debug)]
pub struct RecordingThread {
    thread: JoinHandle<io::Result<Recording>>,
    stop: Arc<AtomicBool>,
}

/// First bytes of a recording. The last two digits are the version of the layout.
pub(crate) const MAGIC: [u8; 8] = *b"TGREC 01";

/// How long the writing thread sleeps when the rings are empty. Rings must hold what comes meanwhile.
pub const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Records taken from one ring before the next ring has its turn.
const DRAIN_BATCH: usize = 4_096;

impl Recording {
    /// Creates `dir` if need be, and `dir/name.rec` with `header`. An existing recording is never overwritten.
    ///
    /// # Errors
    /// When the directory or file cannot be created, or the file exists. The error names the path.
    pub fn create(dir: &Path, name: &str, header: &Header) -> io::Result<Self> {
        let path = dir.join(format!("{name}.rec"));
        let said = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::AlreadyExists => " (one directory holds one run: choose another or remove it)",
                _ => "",
            };
            io::Error::new(
                error.kind(),
                format!("creating recording {}: {error}{hint}", path.display()),
            )
        };
        std::fs::create_dir_all(dir).map_err(said)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(said)?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        let json = serde_json::to_vec(header).map_err(io::Error::from).map_err(said)?;
        let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
        file.write_all(&MAGIC).map_err(said)?;
        file.write_all(&length.to_le_bytes()).map_err(said)?;
        file.write_all(&json).map_err(said)?;
        Ok(Self {
            path,
            file,
            rings: Vec::new(),
            written: 0,
        })
    }

    /// A way into the recording for one thread, with a ring of `capacity` records (each about [`RECORD_LENGTH`] bytes).
    /// Allocates, and touches every page so that no push meets one for the first time: for start-up.
    pub fn recorder(&mut self, capacity: usize) -> Recorder {
        let (mut producer, mut consumer) = RingBuffer::new(capacity);
        let blank = Record::from(End {
            time: Timestamp::NONE,
            records: 0,
            dropped: 0,
        });
        while producer.push(blank).is_ok() {}
        while consumer.pop().is_ok() {}
        let dropped = Arc::new(AtomicU64::new(0));
        self.rings.push((consumer, Arc::clone(&dropped)));
        Recorder {
            ring: Some(Ring {
                records: producer,
                dropped,
            }),
        }
    }

    /// Writes what the rings hold now, at most a batch of each. Whether there was anything.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn turn(&mut self) -> io::Result<bool> {
        let mut worked = false;
        let mut bytes = [0; RECORD_LENGTH];
        for (ring, _) in &mut self.rings {
            for _ in 0..DRAIN_BATCH {
                let Ok(record) = ring.pop() else { break };
                record.encode(&mut bytes);
                self.file.write_all(&bytes)?;
                self.written += 1;
                worked = true;
            }
        }
        Ok(worked)
    }

    /// Writes a record from the cold side.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, record: impl Into<Record>) -> io::Result<()> {
        let mut bytes = [0; RECORD_LENGTH];
        record.into().encode(&mut bytes);
        self.file.write_all(&bytes)?;
        self.written += 1;
        Ok(())
    }

    /// Writes what is left, the counts, and all of it to the file. What a recorder pushes later is lost.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, now: Timestamp) -> io::Result<RecordingSummary> {
        while self.turn()? {}
        let dropped = self
            .rings
            .iter()
            .map(|(_, dropped)| dropped.load(Ordering::Relaxed))
            .sum();
        let records = self.written;
        self.write(End {
            time: now,
            records,
            dropped,
        })?;
        self.file.flush()?;
        Ok(RecordingSummary {
            path: self.path,
            records,
            dropped,
        })
    }

    /// Starts a thread that writes the records as they come.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn spawn(mut self) -> io::Result<RecordingThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("recording".into()).spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                if !self.turn()? {
                    std::thread::park_timeout(DRAIN_INTERVAL);
                }
            }
            Ok(self)
        })?;
        Ok(RecordingThread { thread, stop })
    }
}

impl RecordingThread {
    /// Stops the thread and finishes the recording. Recorders should have stopped.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(self, clock: &Clock) -> io::Result<RecordingSummary> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let recording = self
            .thread
            .join()
            .map_err(|_| io::Error::other("the thread that wrote the recording panicked"))??;
        recording.finish(clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Counter;
    use crate::record::Name;

    fn counter(value: u64) -> Counter {
        Counter {
            time: Timestamp(value),
            value,
            name: Name::new("x"),
        }
    }

    fn records_of(path: &Path) -> Vec<Record> {
        let bytes = std::fs::read(path).unwrap();
        let header_length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        bytes[12 + header_length..]
            .chunks_exact(RECORD_LENGTH)
            .map(|record| Record::decode(record.try_into().unwrap()).unwrap())
            .collect()
    }

    #[test]
    fn what_is_pushed_is_in_the_file_in_order_with_the_counts_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(dir.path(), "gateway", &Header::default()).unwrap();
        let mut recorder = recording.recorder(8);
        assert!(recorder.is_on());
        for value in 0..3 {
            recorder.push(counter(value));
        }
        let summary = recording.finish(Timestamp(9)).unwrap();
        assert_eq!((summary.records, summary.dropped), (3, 0));
        let records = records_of(&summary.path);
        let mut expected: Vec<Record> = (0..3).map(|value| counter(value).into()).collect();
        expected.push(
            End {
                time: Timestamp(9),
                records: 3,
                dropped: 0,
            }
            .into(),
        );
        assert_eq!(records, expected);
    }

    #[test]
    fn a_full_ring_drops_and_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(dir.path(), "gateway", &Header::default()).unwrap();
        let mut recorder = recording.recorder(2);
        for value in 0..5 {
            recorder.push(counter(value));
        }
        assert_eq!(recorder.dropped(), 3);
        let summary = recording.finish(Timestamp(9)).unwrap();
        assert_eq!((summary.records, summary.dropped), (2, 3));
    }

    #[test]
    fn a_thread_writes_what_several_recorders_push() {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(dir.path(), "client", &Header::default()).unwrap();
        let mut recorders = [recording.recorder(20_000), recording.recorder(20_000)];
        let thread = recording.spawn().unwrap();
        for value in 0..10_000 {
            for recorder in &mut recorders {
                recorder.push(counter(value));
            }
        }
        let summary = thread.finish(&Clock::start()).unwrap();
        assert_eq!((summary.records, summary.dropped), (20_000, 0));
        assert_eq!(records_of(&summary.path).len(), 20_001);
    }

    #[test]
    fn a_recorder_that_is_off_keeps_nothing() {
        let mut recorder = Recorder::off();
        recorder.push(counter(1));
        assert!(!recorder.is_on());
        assert_eq!(recorder.dropped(), 0);
    }

    #[test]
    fn an_existing_recording_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Recording::create(dir.path(), "client", &Header::default()).unwrap();
        let error = Recording::create(dir.path(), "client", &Header::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("client.rec"), "{error}");
    }

    #[test]
    fn a_record_in_the_ring_is_little_more_than_in_the_file() {
        assert!(size_of::<Record>() <= 104, "{}", size_of::<Record>());
    }
}
