//! All records of a journal, in order: from the files, then from the ring.

use std::fmt;
use std::path::{Path, PathBuf};

use proto::journal::{Damage, Record, SEGMENT_HEADER_LENGTH, Seal, Writer};

use crate::cursor::{Cursor, Step, Window, damaged};
use crate::error::JournalError;
use crate::recovery::Recovery;
use crate::ring::Ring;
use crate::segment::{Listed, list};

/// Reads a journal. It may be one that is being written: then it ends with what had been appended when the last file
/// had been read.
pub struct JournalReader {
    directory: PathBuf,
    source: Source,
    /// Where reading began. The record there may have been in no file yet, and may have come into a later one since.
    opened: u64,
    journal: u64,
    writer: Writer,
    recovery: Recovery,
}

enum Source {
    /// A segment.
    Segment(Cursor),
    /// What the ring held beyond the files.
    Ring(Window),
}

impl JournalReader {
    /// Opens a journal at its first record.
    ///
    /// # Errors
    /// There is no journal, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        let Some(first) = list(directory)?.into_iter().next() else {
            return Err(JournalError::Missing(directory.to_path_buf()));
        };
        Ok(Self::new(directory, Cursor::open(first)?))
    }

    /// Opens a journal at the record of this position, or at its end.
    ///
    /// # Errors
    /// There is no such place, or the journal cannot be read.
    pub fn open_at(directory: &Path, position: u64) -> Result<Self, JournalError> {
        let segments = list(directory)?.into_iter();
        let Some(segment) = segments.rev().find(|listed| listed.first <= position) else {
            return Err(JournalError::Missing(directory.to_path_buf()));
        };
        Ok(Self::new(directory, Cursor::open_at(segment, position)?))
    }

    fn new(directory: &Path, cursor: Cursor) -> Self {
        Self {
            directory: directory.to_path_buf(),
            opened: cursor.position(),
            journal: cursor.header().journal,
            writer: cursor.header().writer,
            source: Source::Segment(cursor),
            recovery: Recovery::default(),
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The journal is damaged in a way that no crash explains, or cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, JournalError> {
        loop {
            match &mut self.source {
                Source::Segment(cursor) => {
                    if cursor.advance()? == Step::Record || self.leave_segment()? == Step::Record {
                        break;
                    }
                }
                Source::Ring(window) => match window.advance() {
                    Step::Record => break,
                    Step::End(Damage::Blank) => return Ok(None),
                    Step::End(_) => {
                        let what = "it holds something that is no record";
                        return Err(JournalError::Ring {
                            path: self.directory.clone(),
                            what,
                        });
                    }
                },
            }
        }
        Ok(Some(match &self.source {
            Source::Segment(cursor) => cursor.record(),
            Source::Ring(window) => window.record(),
        }))
    }

    /// Who writes it.
    #[must_use]
    pub const fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Position after the last record that was read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        match &self.source {
            Source::Segment(cursor) => cursor.position(),
            Source::Ring(window) => window.position(),
        }
    }

    /// What opening this journal for writing would find; complete once all is read.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The records of the present segment have ended, as far as it was read: goes on to the next one or to the ring,
    /// unless there is one more record by now. Where there must be more and is not, the file is damaged.
    fn leave_segment(&mut self) -> Result<Step, JournalError> {
        let Source::Segment(cursor) = &mut self.source else {
            return Ok(Step::Record);
        };
        // What these two say is in the file was there before the file is looked at again.
        let ring = Ring::open(&self.directory, self.journal)?;
        let written = ring.as_ref().map_or(0, Ring::written);
        let position = cursor.position();
        let mut segments = list(&self.directory)?;
        segments.retain(|listed| listed.first > cursor.listed().first);
        if position == self.opened {
            // Only the last of those that begin before it can have it.
            let passed = segments.iter().filter(|listed| listed.first <= position).count();
            segments.drain(..passed.saturating_sub(1));
        }
        let later = segments.into_iter().next();
        let mut step = cursor.advance_afresh()?;
        // The page cache may be a moment behind what was written past it.
        for _ in 0..LOOKS {
            if step == Step::Record || position >= written {
                break;
            }
            std::thread::yield_now();
            step = cursor.advance_afresh()?;
        }
        let Step::End(damage) = step else {
            return Ok(Step::Record);
        };
        if let Some(next) = later {
            let end = cursor.header().first + (cursor.header().length - SEGMENT_HEADER_LENGTH as u64);
            if damage != Damage::Blank || (position < next.first && next.first <= end) {
                return Err(damaged(&cursor.listed().path, cursor.header(), position, damage, false));
            }
            self.enter_segment(next, position)?;
            return Ok(Step::End(damage));
        }
        // Also behind a clean end: a block that was lost looks like one.
        let debris = cursor.debris()?;
        if position < written || (ring.is_none() && debris.records > 0) {
            return Err(damaged(&cursor.listed().path, cursor.header(), position, damage, true));
        }
        self.recovery.end = position;
        let mut bytes = Vec::new();
        match ring {
            // What looks torn is what is being written, or was when its process ended: the ring has it whole.
            Some(ring) => {
                bytes = beyond(&ring, position)?;
                self.recovery.restored_bytes = bytes.len() as u64;
                self.recovery.end += bytes.len() as u64;
            }
            None => self.recovery.discarded_bytes = debris.bytes,
        }
        self.source = Source::Ring(Window::new(bytes, position, Seal::Absent));
        Ok(Step::End(damage))
    }

    fn enter_segment(&mut self, next: Listed, position: u64) -> Result<(), JournalError> {
        let found_later = position == self.opened && next.first < position;
        if next.first != position && !found_later {
            return Err(JournalError::Gap {
                directory: self.directory.clone(),
                expected: position,
                found: next.first,
            });
        }
        let cursor = Cursor::open_at(next, position)?;
        if cursor.header().journal != self.journal {
            return Err(JournalError::Foreign(cursor.listed().path.clone()));
        }
        self.source = Source::Segment(cursor);
        Ok(())
    }
}

/// Times that the files are read again before something that was written and is not there counts as lost.
const LOOKS: usize = 8;

/// The records of a ring from `position` on.
fn beyond(ring: &Ring, position: u64) -> Result<Vec<u8>, JournalError> {
    let appended = ring.appended();
    let Some(length) = appended.checked_sub(position) else {
        return Ok(Vec::new());
    };
    let mut bytes = vec![0; usize::try_from(length.min(ring.capacity())).unwrap_or(0)];
    ring.load(position, &mut bytes);
    // A place is used again once the disk has what stood there. The loads above come before this one.
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    if position < ring.first() || ring.appended() - position > ring.capacity() {
        return Err(JournalError::Outrun);
    }
    Ok(bytes)
}

impl fmt::Debug for JournalReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalReader")
            .field("directory", &self.directory)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}
