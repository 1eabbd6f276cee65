//! What is there when a journal is opened: where its records end, on the disk and in the ring.
//!
//! | what happened | on the disk | in the ring | what is done |
//! |---|---|---|---|
//! | closed | all | no ring | |
//! | process killed | all up to `written`, perhaps more, perhaps a torn end | all from `written` on | the rest is written |
//! | power cut | all up to `synced`, perhaps more, perhaps a torn end | nothing | the torn end is cut off |
//! | disk damaged | a hole with records behind it, or a segment missing | | refused |

use std::fmt;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use proto::journal::{SEGMENT_HEADER_LENGTH, SegmentHeader};

use crate::buffer::{BLOCK, BlockBuffer};
use crate::cursor::{Cursor, Debris, Step};
use crate::drainer::{Drainer, Settings};
use crate::error::JournalError;
use crate::ring::Ring;
use crate::segment::{Listed, Segment, Spare, list, open_for_writing};

/// What was found when a journal was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Recovery {
    /// Position after the last record. 0: the journal is new.
    pub end: u64,
    /// Bytes of records that a process which died had left in the ring.
    pub restored_bytes: u64,
    /// Bytes that were cut off: a tail that a power cut tore.
    pub discarded_bytes: u64,
    /// Whole records in the bytes that were cut off. They came behind a torn one, and had not been synced.
    pub discarded_records: u64,
}

/// A journal that is ready to go on.
pub(crate) struct Recovered {
    pub(crate) drainer: Drainer,
    pub(crate) ring: Arc<Ring>,
    pub(crate) direct_io: bool,
    pub(crate) recovery: Recovery,
}

/// Finds the end, writes what the ring has beyond it, and makes a new ring.
pub(crate) fn recover(mut settings: Settings, ring_bytes: usize) -> Result<Recovered, JournalError> {
    let wants_direct = settings.direct;
    let Some(last) = list(&settings.directory)?.pop() else {
        let (spare, direct) = Spare::begin(&settings.directory, settings.segment_bytes, wants_direct)?;
        settings.direct = direct;
        let segment = spare.finish(&settings.directory, settings.segment_header(0))?;
        return ready(settings, segment, None, Recovery::default(), ring_bytes, wants_direct);
    };

    let tail = find_tail(last)?;
    if tail.header.writer != settings.writer {
        return Err(JournalError::OtherWriter {
            directory: settings.directory,
            found: tail.header.writer.to_string(),
            expected: settings.writer.to_string(),
        });
    }
    settings.journal = tail.header.journal;
    let ring = Ring::open(&settings.directory, settings.journal)?;
    let mut recovery = Recovery {
        end: tail.end,
        discarded_bytes: tail.debris.bytes,
        discarded_records: tail.debris.records,
        ..Recovery::default()
    };
    if let Some(ring) = &ring {
        // The ring knows everything, so nothing is lost: what looks torn is what was being written.
        recovery.end = check_ring(ring, tail.end)?;
        recovery.restored_bytes = recovery.end - tail.end;
        recovery.discarded_bytes = 0;
        recovery.discarded_records = 0;
    }
    let (segment, direct) = repair(&tail, wants_direct)?;
    settings.direct = direct;
    ready(
        settings,
        segment,
        ring.map(|ring| (ring, tail.end)),
        recovery,
        ring_bytes,
        wants_direct,
    )
}

/// The end of the last segment.
struct Tail {
    listed: Listed,
    header: SegmentHeader,
    /// Of the stream.
    end: u64,
    debris: Debris,
}

fn find_tail(listed: Listed) -> Result<Tail, JournalError> {
    let mut cursor = Cursor::open(listed)?;
    while cursor.advance()? == Step::Record {}
    let end = cursor.position();
    Ok(Tail {
        debris: cursor.debris()?,
        header: *cursor.header(),
        listed: cursor.listed().clone(),
        end,
    })
}

/// Holds a ring against a disk whose records end at `disk_end`; returns where the journal ends.
fn check_ring(ring: &Ring, disk_end: u64) -> Result<u64, JournalError> {
    let marks = ring.marks();
    let oldest = ring.first().max(marks.appended.saturating_sub(ring.capacity()));
    let what = if marks.synced > marks.written || marks.written > marks.appended {
        "its marks contradict each other"
    } else if disk_end < marks.written || disk_end < oldest {
        "the disk has lost what it had taken"
    } else if disk_end > marks.appended {
        "it ends before the disk does"
    } else {
        return Ok(marks.appended);
    };
    Err(JournalError::Ring {
        path: ring.path().to_path_buf(),
        what,
    })
}

/// Opens the last segment for writing, with nothing but zeros behind its records: what is there could pass for records
/// once others were written up to it.
fn repair(tail: &Tail, direct: bool) -> Result<(Segment, bool), JournalError> {
    let path = &tail.listed.path;
    let (file, direct) = open_for_writing(path, false, direct).map_err(JournalError::io("opening", path))?;
    if tail.debris.bytes > 0 {
        let mut block = BlockBuffer::new(BLOCK);
        let offset = SEGMENT_HEADER_LENGTH as u64 + (tail.end - tail.header.first);
        let mut block_offset = offset / BLOCK as u64 * BLOCK as u64;
        let kept = usize::try_from(offset - block_offset).unwrap_or(0);
        let mut write = || {
            file.read_exact_at(&mut block, block_offset)?;
            block[kept..].fill(0);
            while block_offset < offset + tail.debris.bytes {
                file.write_all_at(&block, block_offset)?;
                block.fill(0);
                block_offset += BLOCK as u64;
            }
            file.sync_data()
        };
        write().map_err(JournalError::io("cutting the torn end off", path))?;
    }
    let segment = Segment {
        file,
        path: path.clone(),
        header: tail.header,
    };
    Ok((segment, direct))
}

/// Writes what the old ring has beyond the disk's end, then changes to a new ring.
fn ready(
    settings: Settings,
    segment: Segment,
    old: Option<(Ring, u64)>,
    recovery: Recovery,
    ring_bytes: usize,
    wants_direct: bool,
) -> Result<Recovered, JournalError> {
    if wants_direct && !settings.direct {
        tracing::warn!(
            "no direct I/O in {}: the journal goes through the page cache, and its syncs take longer",
            settings.directory.display()
        );
    }
    let direct_io = settings.direct;
    let (directory, journal) = (settings.directory.clone(), settings.journal);
    let new_ring = || Ring::create(&directory, journal, ring_bytes, recovery.end).map(Arc::new);
    let (drainer, ring) = match old {
        None => {
            let ring = new_ring()?;
            (
                Drainer::resume(settings, Arc::clone(&ring), segment, recovery.end)?,
                ring,
            )
        }
        Some((old, disk_end)) => {
            let mut drainer = Drainer::resume(settings, Arc::new(old), segment, disk_end)?;
            while drainer.turn()? {}
            drainer.finish()?;
            let ring = new_ring()?;
            drainer.change_ring(Arc::clone(&ring));
            (drainer, ring)
        }
    };
    Ok(Recovered {
        drainer,
        ring,
        direct_io,
        recovery,
    })
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.end == 0 {
            return f.write_str("new");
        }
        write!(f, "continued at position {}", self.end)?;
        if self.restored_bytes > 0 {
            write!(f, ", {} bytes of it restored from the ring", self.restored_bytes)?;
        }
        if self.discarded_bytes > 0 {
            write!(
                f,
                ", a torn end of {} bytes with {} whole records cut off",
                self.discarded_bytes, self.discarded_records
            )?;
        }
        Ok(())
    }
}
