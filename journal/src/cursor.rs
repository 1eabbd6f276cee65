//! Records one after the other: in memory, and in the file of a segment.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proto::journal::{
    Damage, MAX_RECORD_LENGTH, RECORD_HEADER_LENGTH, Record, SEGMENT_HEADER_LENGTH, Scanned, Seal, SegmentHeader,
    record_length, scan,
};
use types::Timestamp;

use crate::error::JournalError;
use crate::segment::{Listed, read_header};

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A record, which is now the current one.
    Record,
    /// No record: nothing was written from here on ([`Damage::Blank`]), or something is there that is none.
    End(Damage),
}

/// Bytes of the stream, and the record among them that was read last.
#[derive(Debug)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// What comes next is here in `bytes`.
    start: usize,
    /// And here in the stream.
    position: u64,
    seal: Seal,
    current: Current,
}

/// A record of a window.
#[derive(Clone, Default, Debug)]
struct Current {
    position: u64,
    kind: u16,
    version: u16,
    time: Timestamp,
    /// In the window's bytes.
    payload: Range<usize>,
}

impl Window {
    /// The bytes of the stream from `position` on.
    pub(crate) fn new(bytes: Vec<u8>, position: u64, seal: Seal) -> Self {
        Self {
            bytes,
            start: 0,
            position,
            seal,
            current: Current::default(),
        }
    }

    /// Goes on to the next record. The bytes end where the stream does.
    pub(crate) fn advance(&mut self) -> Step {
        let rest = &self.bytes[self.start..];
        match scan(rest, self.position, self.seal) {
            Ok(Scanned::Record(record)) => {
                let payload = self.start + RECORD_HEADER_LENGTH;
                let length = record_length(record.payload.len());
                self.current = Current {
                    position: self.position,
                    kind: record.kind,
                    version: record.version,
                    time: record.time,
                    payload: payload..payload + record.payload.len(),
                };
                self.skip(length);
                Step::Record
            }
            Ok(Scanned::Partial) if rest.iter().any(|&byte| byte != 0) => Step::End(Damage::Cut),
            Ok(Scanned::Partial | Scanned::End) => Step::End(Damage::Blank),
            Err(damage) => Step::End(damage),
        }
    }

    /// The bytes that come next, all that are here.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn skip(&mut self, length: usize) {
        self.start += length;
        self.position += length as u64;
    }

    /// The record that was read last.
    pub(crate) fn record(&self) -> Record<'_> {
        Record {
            position: self.current.position,
            kind: self.current.kind,
            version: self.current.version,
            time: self.current.time,
            payload: &self.bytes[self.current.payload.clone()],
        }
    }

    /// Of the stream: what comes next.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }
}

/// Reads a segment from its beginning.
#[derive(Debug)]
pub(crate) struct Cursor {
    file: File,
    listed: Listed,
    header: SegmentHeader,
    window: Window,
    /// The window has the last of the file.
    at_end: bool,
}

/// What follows the last record of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Debris {
    /// Bytes up to the last that is not zero.
    pub(crate) bytes: u64,
    /// Whole records among them: then it was not the last.
    pub(crate) records: u64,
}

impl Cursor {
    /// At the segment's first record.
    pub(crate) fn open(listed: Listed) -> Result<Self, JournalError> {
        let first = listed.first;
        Self::open_at(listed, first)
    }

    /// At a position of the segment where a record begins, or may begin.
    pub(crate) fn open_at(listed: Listed, position: u64) -> Result<Self, JournalError> {
        let file = File::open(&listed.path).map_err(JournalError::io("opening", &listed.path))?;
        let header = read_header(&file, &listed)?;
        let metadata = file.metadata().map_err(JournalError::io("reading", &listed.path))?;
        if metadata.len() < header.length {
            return Err(JournalError::Shortened {
                path: listed.path,
                found: metadata.len(),
                expected: header.length,
            });
        }
        Ok(Self {
            file,
            listed,
            header,
            window: Window::new(Vec::with_capacity(WINDOW_LENGTH), position, Seal::Required),
            at_end: false,
        })
    }

    pub(crate) const fn header(&self) -> &SegmentHeader {
        &self.header
    }

    pub(crate) const fn listed(&self) -> &Listed {
        &self.listed
    }

    /// Goes on to the next record.
    pub(crate) fn advance(&mut self) -> Result<Step, JournalError> {
        self.refill()?;
        Ok(self.window.advance())
    }

    /// Goes on to the next record as it is in the file at this moment: it may have been written since it was read.
    pub(crate) fn advance_afresh(&mut self) -> Result<Step, JournalError> {
        self.window.start = 0;
        self.window.bytes.clear();
        self.at_end = false;
        self.advance()
    }

    /// The record that was read last.
    pub(crate) fn record(&self) -> Record<'_> {
        self.window.record()
    }

    /// Of the stream: what comes next.
    pub(crate) const fn position(&self) -> u64 {
        self.window.position()
    }

    /// What is in the rest of the segment, which should be nothing. Nothing can be read after it.
    pub(crate) fn debris(&mut self) -> Result<Debris, JournalError> {
        let from = self.position();
        let mut debris = Debris::default();
        loop {
            self.refill()?;
            let rest = self.window.rest();
            if rest.is_empty() {
                return Ok(debris);
            }
            let step = match scan(rest, self.position(), Seal::Required) {
                // Most of it is zeros, as it should be.
                Ok(Scanned::End) if rest.iter().all(|&byte| byte == 0) => rest.len(),
                Ok(Scanned::Record(record)) => {
                    debris.records += 1;
                    record_length(record.payload.len())
                }
                _ => rest.len().min(8),
            };
            if let Some(last) = rest[..step].iter().rposition(|&byte| byte != 0) {
                debris.bytes = self.position() - from + last as u64 + 1;
            }
            self.window.skip(step);
        }
    }

    /// Sees to it that the window holds a longest record, or else the last of the file.
    fn refill(&mut self) -> Result<(), JournalError> {
        if self.at_end || self.window.rest().len() >= MAX_RECORD_LENGTH {
            return Ok(());
        }
        let Window {
            bytes, start, position, ..
        } = &mut self.window;
        bytes.drain(..*start);
        *start = 0;
        let mut filled = bytes.len();
        bytes.resize(WINDOW_LENGTH, 0);
        while filled < bytes.len() && !self.at_end {
            let offset = SEGMENT_HEADER_LENGTH as u64 + (*position - self.header.first) + filled as u64;
            let count = self.file.read_at(&mut bytes[filled..], offset);
            let count = count.map_err(JournalError::io("reading", &self.listed.path))?;
            filled += count;
            self.at_end = count == 0;
        }
        bytes.truncate(filled);
        Ok(())
    }
}

/// The error for damage at a position of a segment. `is_last`: of the journal's segments.
pub(crate) fn damaged(
    path: &Path,
    header: &SegmentHeader,
    position: u64,
    damage: Damage,
    is_last: bool,
) -> JournalError {
    JournalError::Damaged {
        path: path.to_path_buf(),
        offset: SEGMENT_HEADER_LENGTH as u64 + (position - header.first),
        position,
        damage,
        is_last,
    }
}

/// Bytes of a segment that are in memory at a time.
const WINDOW_LENGTH: usize = 1 << 20;

const _: () = assert!(WINDOW_LENGTH > MAX_RECORD_LENGTH);
