//! The cold side: takes records from the ring, seals them, writes them to segments, syncs.
//!
//! Blocks go to the disk whole. The last one is seldom full: it is written with zeros behind its records and written again
//! once there are more. What stood in it stays the same, so a power cut in between takes nothing that was there before.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use proto::journal::{
    MAX_RECORD_LENGTH, RECORD_HEADER_LENGTH, SEGMENT_HEADER_LENGTH, Scanned, Seal, SegmentHeader, Writer,
    record_length, scan, seal,
};
use types::Timestamp;

use crate::buffer::{BLOCK, BlockBuffer};
use crate::error::JournalError;
use crate::ring::Ring;
use crate::segment::{FILL_CHUNK, Segment, Spare};

/// Writes one journal to disk.
pub(crate) struct Drainer {
    settings: Settings,
    ring: Arc<Ring>,
    segment: Segment,
    spare: Option<Spare>,
    /// After a spare could not be made: when to try again.
    spare_retry: Option<Instant>,
    /// The last block that was begun, and what came since.
    batch: BlockBuffer,
    /// Where in the file the batch begins: a block.
    batch_offset: u64,
    /// Bytes of the batch.
    batch_length: usize,
    /// Of the stream: all before it is in the batch or in files.
    position: u64,
    /// When there was last something that is not synced.
    dirty_since: Option<Instant>,
}

/// How a journal is written.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) directory: PathBuf,
    pub(crate) journal: u64,
    pub(crate) writer: Writer,
    pub(crate) segment_bytes: u64,
    /// Past the page cache.
    pub(crate) direct: bool,
    /// How long the ring is left alone after a look; zero to look all the time.
    pub(crate) poll: Duration,
    /// What must have gathered meanwhile to look again at once, bytes.
    pub(crate) gather_bytes: u64,
    /// How long written records wait for company before they are synced.
    pub(crate) sync_after: Duration,
}

impl Settings {
    pub(crate) fn segment_header(&self, first: u64) -> SegmentHeader {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        SegmentHeader {
            journal: self.journal,
            first,
            length: self.segment_bytes,
            created: Timestamp(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)),
            writer: self.writer,
        }
    }
}

impl Drainer {
    /// Goes on at `position`, up to which `segment` holds records and beyond which it holds zeros.
    pub(crate) fn resume(
        settings: Settings,
        ring: Arc<Ring>,
        segment: Segment,
        position: u64,
    ) -> Result<Self, JournalError> {
        let offset = SEGMENT_HEADER_LENGTH as u64 + (position - segment.header.first);
        let batch_offset = offset / BLOCK as u64 * BLOCK as u64;
        let mut drainer = Self {
            settings,
            ring,
            segment,
            spare: None,
            spare_retry: None,
            batch: BlockBuffer::new(BATCH_LENGTH),
            batch_offset,
            batch_length: usize::try_from(offset - batch_offset).unwrap_or(0),
            position,
            dirty_since: None,
        };
        if drainer.batch_length > 0 {
            let block = &mut drainer.batch[..BLOCK];
            let read = drainer.segment.file.read_exact_at(block, batch_offset);
            read.map_err(JournalError::io("reading", &drainer.segment.path))?;
        }
        Ok(drainer)
    }

    /// Takes over another ring, which goes on where the present one was drained to.
    pub(crate) fn change_ring(&mut self, ring: Arc<Ring>) {
        self.ring = ring;
    }

    /// Drains until `stop` is set and the ring is empty. When it cannot go on, it says so in the ring and gives up: the
    /// ring then fills, and whoever appends has no room.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<(), JournalError> {
        let result = self.run_until(stop);
        if let Err(error) = &result {
            self.ring.set_failed();
            tracing::error!("{error}; nothing more is written to this journal");
        }
        result
    }

    fn run_until(&mut self, stop: &AtomicBool) -> Result<(), JournalError> {
        loop {
            // Looked at first: what was appended before it was set is then seen below.
            let stopping = stop.load(Ordering::Acquire);
            let got_on = self.turn()?;
            let gathered = self.ring.appended() - self.position;
            if got_on && (stopping || gathered >= self.settings.gather_bytes) {
                continue;
            }
            if stopping {
                return self.finish();
            }
            if self.settings.poll.is_zero() {
                std::hint::spin_loop();
            } else {
                std::thread::park_timeout(self.settings.poll);
            }
        }
    }

    /// Does what there is to do; returns whether it got on.
    pub(crate) fn turn(&mut self) -> Result<bool, JournalError> {
        let before = self.position;
        let appended = self.ring.appended();
        if before < appended {
            self.collect(appended)?;
            self.write()?;
        }
        if self
            .dirty_since
            .is_some_and(|since| since.elapsed() >= self.settings.sync_after)
        {
            self.sync()?;
        }
        let drained = self.position - before;
        let prepared = self.prepare(drained);
        Ok(drained > 0 || prepared)
    }

    /// Nothing more can be done.
    pub(crate) fn finish(&mut self) -> Result<(), JournalError> {
        self.sync()?;
        if self.position < self.ring.appended() {
            return Err(JournalError::Undrained(self.ring.path().to_path_buf()));
        }
        Ok(())
    }

    /// Moves records from the ring to the batch, until there are no more or the batch or segment is full.
    fn collect(&mut self, appended: u64) -> Result<(), JournalError> {
        while self.position < appended && self.batch.len() - self.batch_length >= MAX_RECORD_LENGTH {
            let mut header = [0; RECORD_HEADER_LENGTH];
            self.ring.load(self.position, &mut header);
            let payload_length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
            let length = record_length(payload_length as usize);
            if length > MAX_RECORD_LENGTH {
                return Err(self.damaged());
            }
            let end = self.batch_offset + (self.batch_length + length) as u64;
            if end > self.segment.header.length {
                if !self.rotate()? {
                    return Ok(());
                }
                continue;
            }
            let record = &mut self.batch[self.batch_length..self.batch_length + length];
            self.ring.load(self.position, record);
            match scan(record, self.position, Seal::Absent) {
                Ok(Scanned::Record(_)) => {}
                _ => return Err(self.damaged()),
            }
            seal(record);
            self.batch_length += length;
            self.position += length as u64;
        }
        Ok(())
    }

    fn damaged(&self) -> JournalError {
        JournalError::Ring {
            path: self.ring.path().to_path_buf(),
            what: "it holds something that is no record",
        }
    }

    /// Writes the batch, and keeps its last block if that is not full.
    fn write(&mut self) -> Result<(), JournalError> {
        if self.position == self.ring.written() {
            return Ok(());
        }
        let padded = self.batch_length.next_multiple_of(BLOCK);
        self.batch[self.batch_length..padded].fill(0);
        let written = self.segment.file.write_all_at(&self.batch[..padded], self.batch_offset);
        written.map_err(JournalError::io("writing", &self.segment.path))?;
        let full = self.batch_length / BLOCK * BLOCK;
        self.batch.copy_within(full..padded, 0);
        self.batch_offset += full as u64;
        self.batch_length -= full;
        self.ring.set_written(self.position);
        self.dirty_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if self.dirty_since.take().is_some() {
            let synced = self.segment.file.sync_data();
            synced.map_err(JournalError::io("syncing", &self.segment.path))?;
            self.ring.set_synced(self.position);
        }
        Ok(())
    }

    /// Goes on in a new segment, unless none can be made now. All of the old one is synced before.
    fn rotate(&mut self) -> Result<bool, JournalError> {
        self.write()?;
        self.sync()?;
        while self.spare.as_ref().is_none_or(|spare| spare.remaining() > 0) {
            if !self.try_prepare() {
                return Ok(false);
            }
        }
        let Some(spare) = self.spare.take() else {
            return Ok(false);
        };
        let header = self.settings.segment_header(self.position);
        self.segment = spare.finish(&self.settings.directory, header)?;
        self.batch_offset = SEGMENT_HEADER_LENGTH as u64;
        self.batch_length = 0;
        Ok(true)
    }

    /// Works on the next segment once the present one is half full: two bytes for each byte drained, so that it is ready
    /// in time, and a little when there is nothing else to do. Returns whether it did.
    fn prepare(&mut self, drained: u64) -> bool {
        let used = self.batch_offset + self.batch_length as u64;
        if used < self.segment.header.length / 2 {
            return false;
        }
        let chunks = 1 + 2 * drained / FILL_CHUNK as u64;
        (0..chunks).all(|_| self.try_prepare())
    }

    /// Fills a little of the next segment; returns whether it did. A failure is no failure yet: there is room in the
    /// present segment and in the ring, and perhaps the operator makes some on the disk.
    fn try_prepare(&mut self) -> bool {
        if self.spare_retry.is_some_and(|when| Instant::now() < when) {
            return false;
        }
        let worked = match &mut self.spare {
            Some(spare) => spare.fill_some(),
            None => self.begin_spare(),
        };
        self.spare_retry = None;
        worked.unwrap_or_else(|error| {
            tracing::warn!("{error}; trying again in {} s", SPARE_RETRY.as_secs());
            self.spare = None;
            self.spare_retry = Some(Instant::now() + SPARE_RETRY);
            false
        })
    }

    fn begin_spare(&mut self) -> Result<bool, JournalError> {
        let settings = &self.settings;
        let (spare, _) = Spare::begin(&settings.directory, settings.segment_bytes, settings.direct)?;
        self.spare = Some(spare);
        Ok(true)
    }
}

/// Bytes that are written at a time, at most.
const BATCH_LENGTH: usize = 1 << 20;
/// How long to wait after the next segment could not be made.
const SPARE_RETRY: Duration = Duration::from_secs(1);

/// Bytes of memory of a drainer.
pub(crate) const MEMORY_BYTES: usize = BATCH_LENGTH + FILL_CHUNK + 2 * BLOCK;

const _: () = assert!(BATCH_LENGTH >= BLOCK + MAX_RECORD_LENGTH);
