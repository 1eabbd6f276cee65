//! What is there when a journal is opened: where its records end, on the disk and in the ring.
//!
//! | what happened | on the disk | in the ring | what is done |
//! |---|---|---|---|
//! | closed | all | no ring | |
//! | process killed | all up to `written`, perhaps more, perhaps a torn end | all from `written` on | the rest is written |
//! | power cut | all up to `synced`, perhaps more, perhaps a torn end | nothing | the torn end is cut off |
//! | disk damaged | a hole with records behind it, or a segment missing | | refused |
//!
//! A power cut may also lose a block in the midst of what was not synced yet. That looks like a damaged disk and is
//! treated as one: whole records are only given up by whoever says so, with [`cut`].

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::journal::{Damage, SEGMENT_HEADER_LENGTH, SegmentHeader};

use crate::buffer::{BLOCK, BlockBuffer};
use crate::cursor::{Cursor, Debris, Step, damaged};
use crate::drainer::{Drainer, Settings};
use crate::error::JournalError;
use crate::ring::Ring;
use crate::segment::{Listed, Segment, Spare, list, lock, open_for_writing};

/// What was found when a journal was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Recovery {
    /// Position after the last record. 0: the journal is new.
    pub end: u64,
    /// Bytes of records that a process which died had left in the ring.
    pub restored_bytes: u64,
    /// Bytes that were cut off: a tail that a power cut tore. There is no whole record in it.
    pub discarded_bytes: u64,
}

/// What [`cut`] gave up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Bytes from the damage on.
    pub bytes: u64,
    /// Whole records among them.
    pub records: u64,
    /// Copies of the files as they were before.
    pub copies: Vec<PathBuf>,
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
        ..Recovery::default()
    };
    if let Some(ring) = &ring {
        // The ring knows everything, so nothing is lost: what looks torn is what was being written.
        recovery.end = check_ring(ring, &tail)?;
        recovery.restored_bytes = recovery.end - tail.end;
        recovery.discarded_bytes = 0;
    } else if tail.debris.records > 0 {
        return Err(tail.damaged());
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

/// Gives up what stands behind the damage at `position` of a journal's last segment, what a dead process left in the
/// ring included. Files are copied before they are changed.
///
/// # Errors
/// The journal is not damaged there, is in use, or the operating system refuses something.
pub fn cut(directory: &Path, position: u64) -> Result<Cut, JournalError> {
    let _lock = lock(directory)?;
    let not_damaged = || JournalError::NotDamaged {
        directory: directory.to_path_buf(),
        position,
    };
    let last = list(directory)?.pop().ok_or_else(not_damaged)?;
    let tail = find_tail(last)?;
    let ring = Ring::open(directory, tail.header.journal)?;
    let is_lost = ring.as_ref().is_some_and(|ring| tail.end < ring.written());
    if tail.end != position || (tail.debris.records == 0 && !is_lost) {
        return Err(not_damaged());
    }
    let mut copies = vec![copy_aside(&tail.listed.path, directory)?];
    if let Some(ring) = &ring {
        copies.push(copy_aside(ring.path(), directory)?);
    }
    repair(&tail, false)?;
    if let Some(ring) = &ring {
        ring.remove()?;
    }
    Ok(Cut {
        bytes: tail.debris.bytes,
        records: tail.debris.records,
        copies,
    })
}

/// Copies a file into the directory, under a name that no journal looks at.
fn copy_aside(path: &Path, directory: &Path) -> Result<PathBuf, JournalError> {
    let mut name = OsString::from("before-cut-");
    name.push(path.file_name().unwrap_or_default());
    let copy = directory.join(name).with_added_extension("copy");
    fs::copy(path, &copy).map_err(JournalError::io("copying to", &copy))?;
    Ok(copy)
}

/// The end of the last segment.
struct Tail {
    listed: Listed,
    header: SegmentHeader,
    /// Of the stream.
    end: u64,
    /// What stands there.
    damage: Damage,
    debris: Debris,
}

impl Tail {
    fn damaged(&self) -> JournalError {
        damaged(&self.listed.path, &self.header, self.end, self.damage, true)
    }
}

fn find_tail(listed: Listed) -> Result<Tail, JournalError> {
    let mut cursor = Cursor::open(listed)?;
    let damage = loop {
        if let Step::End(damage) = cursor.advance()? {
            break damage;
        }
    };
    let end = cursor.position();
    Ok(Tail {
        debris: cursor.debris()?,
        header: *cursor.header(),
        listed: cursor.listed().clone(),
        end,
        damage,
    })
}

/// Holds a ring against the disk; returns where the journal ends.
fn check_ring(ring: &Ring, tail: &Tail) -> Result<u64, JournalError> {
    let marks = ring.marks();
    let what = if marks.synced > marks.written || marks.written > marks.appended {
        "its marks contradict each other"
    } else if tail.end < marks.written {
        return Err(tail.damaged());
    } else if tail.end > marks.appended {
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
            write!(f, ", a torn end of {} bytes cut off", self.discarded_bytes)?;
        }
        Ok(())
    }
}
