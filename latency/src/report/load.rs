//! Reads recordings. What is no recording, or is cut off, gives one error that says which file and what to do.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::record::{RECORD_LENGTH, Record, RecordError};
use crate::recorder::{Header, MAGIC};

/// Longest header of a recording, bytes.
const HEADER_LENGTH_MAX: u32 = 1 << 20;

/// Why there is no report.
#[derive(Debug)]
pub enum ReportError {
    /// A file or directory could not be read.
    Io(PathBuf, io::Error),
    /// A directory has no file that ends in `.rec`.
    NoRecordings(PathBuf),
    /// The file is something else.
    NotARecording(PathBuf),
    /// The file's header is not what this version writes.
    BadHeader(PathBuf, String),
    /// The file is cut off: it ends within a record or without the last one.
    Truncated {
        /// The file.
        path: PathBuf,
        /// Whole records in it.
        records: u64,
    },
    /// A record is damaged.
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Its place, from 0.
        index: u64,
        /// What is wrong with it.
        error: RecordError,
    },
    /// Two orders have one number: the recordings are of different runs.
    SeveralRuns {
        /// The client's session.
        session: u16,
        /// The client's number for the order.
        client_order_id: u64,
    },
    /// No recording has an order.
    NoOrders,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "reading {}: {error}", path.display()),
            Self::NoRecordings(path) => write!(
                f,
                "{}: no file ends in .rec; give the directory that a run was started with (--record DIR)",
                path.display()
            ),
            Self::NotARecording(path) => {
                write!(
                    f,
                    "{}: not a recording of this version; give directories that hold recordings only",
                    path.display()
                )
            }
            Self::BadHeader(path, error) => {
                write!(
                    f,
                    "{}: its header cannot be read ({error}); record again with this version",
                    path.display()
                )
            }
            Self::Truncated { path, records } => write!(
                f,
                "{}: cut off after {records} records, its program was stopped too early or the disk was full; \
                 --partial reports what is there",
                path.display()
            ),
            Self::BadRecord { path, index, error } => {
                write!(
                    f,
                    "{}: record number {index} is damaged: {error}; record again",
                    path.display()
                )
            }
            Self::SeveralRuns {
                session,
                client_order_id,
            } => write!(
                f,
                "two orders of session {session} have the number {client_order_id}: these recordings are of several runs; \
                 give those of one"
            ),
            Self::NoOrders => write!(f, "no order in these recordings; was a client or a gateway recorded?"),
        }
    }
}

impl std::error::Error for ReportError {}

/// A recording's writer and counts.
#[derive(Clone, Debug, Serialize)]
pub struct RecordingFacts {
    /// The file.
    pub file: PathBuf,
    /// What its writer says of itself.
    pub header: Header,
    /// Records in it, the last one (`End`) left out.
    pub records: u64,
    /// Records that its writer had to drop; `None` when the file is cut off.
    pub dropped: Option<u64>,
}

/// The recordings in `paths`, directories or files, in the order of their names.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ReportError> {
    let mut files = Vec::new();
    for path in paths {
        let said = |error| ReportError::Io(path.clone(), error);
        if !std::fs::metadata(path).map_err(said)?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        for entry in std::fs::read_dir(path).map_err(said)? {
            let file = entry.map_err(said)?.path();
            if file.extension().is_some_and(|extension| extension == "rec") {
                files.push(file);
            }
        }
        if files.len() == before {
            return Err(ReportError::NoRecordings(path.clone()));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Reads one recording from start to end, each record to `each`.
pub(super) fn read(
    path: &Path,
    partial: bool,
    mut each: impl FnMut(&Record) -> Result<(), ReportError>,
) -> Result<RecordingFacts, ReportError> {
    let said = |error| ReportError::Io(path.to_owned(), error);
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(said)?);
    let header = read_header(path, &mut file)?;
    let mut facts = RecordingFacts {
        file: path.to_owned(),
        header,
        records: 0,
        dropped: None,
    };
    let mut bytes = [0; RECORD_LENGTH];
    loop {
        let whole = fill(&mut file, &mut bytes).map_err(said)? == RECORD_LENGTH;
        if !whole && partial {
            return Ok(facts);
        }
        if !whole {
            return Err(ReportError::Truncated {
                path: path.to_owned(),
                records: facts.records,
            });
        }
        let index = facts.records;
        let record = Record::decode(&bytes).map_err(|error| ReportError::BadRecord {
            path: path.to_owned(),
            index,
            error,
        })?;
        if let Record::End(end) = record {
            facts.dropped = Some(end.dropped);
            return Ok(facts);
        }
        each(&record)?;
        facts.records += 1;
    }
}

fn read_header(path: &Path, file: &mut impl Read) -> Result<Header, ReportError> {
    let said = |error| ReportError::Io(path.to_owned(), error);
    let mut fixed = [0; MAGIC.len() + 4];
    let read = fill(file, &mut fixed).map_err(said)?;
    let (magic, length) = fixed.split_at(MAGIC.len());
    if read < fixed.len() || magic != MAGIC {
        return Err(ReportError::NotARecording(path.to_owned()));
    }
    let length = length.try_into().map_or(u32::MAX, u32::from_le_bytes);
    if length > HEADER_LENGTH_MAX {
        return Err(ReportError::BadHeader(
            path.to_owned(),
            format!("it claims to be {length} bytes long"),
        ));
    }
    let mut json = vec![0; length as usize];
    if fill(file, &mut json).map_err(said)? < json.len() {
        return Err(ReportError::Truncated {
            path: path.to_owned(),
            records: 0,
        });
    }
    serde_json::from_slice(&json).map_err(|error| ReportError::BadHeader(path.to_owned(), error.to_string()))
}

/// Reads until `to` is full or the file ends; how many bytes came.
fn fill(file: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < to.len() {
        match file.read(&mut to[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Counter, Name};
    use crate::recorder::Recording;
    use types::Timestamp;

    fn counter(value: u64) -> Counter {
        Counter {
            time: Timestamp(1),
            value,
            name: Name::new("x"),
        }
    }

    /// A recording of two records, and its directory.
    fn recording() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let header = Header {
            component: "gateway".into(),
            ..Header::default()
        };
        let mut recording = Recording::create(dir.path(), "gateway", &header).unwrap();
        recording.write(counter(1)).unwrap();
        recording.write(counter(2)).unwrap();
        let path = recording.finish(Timestamp(3)).unwrap().path;
        (dir, path)
    }

    fn count(path: &Path, partial: bool) -> Result<(u64, Option<u64>), ReportError> {
        let mut seen = 0;
        let facts = read(path, partial, |_| {
            seen += 1;
            Ok(())
        })?;
        assert_eq!(facts.records, seen);
        Ok((seen, facts.dropped))
    }

    #[test]
    fn a_whole_recording_is_read_to_its_end() {
        let (dir, path) = recording();
        assert_eq!(find(&[dir.path().to_owned()]).unwrap(), std::slice::from_ref(&path));
        assert_eq!(count(&path, false).unwrap(), (2, Some(0)));
    }

    #[test]
    fn a_recording_cut_off_anywhere_is_one_error_and_partial_reads_the_whole_records() {
        let (_dir, path) = recording();
        let whole = std::fs::read(&path).unwrap();
        let records_start = whole.len() - 3 * RECORD_LENGTH;
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = count(&path, false).unwrap_err();
            assert!(
                matches!(error, ReportError::Truncated { .. } | ReportError::NotARecording(_)),
                "{length}: {error}"
            );
            if length >= records_start {
                let records = ((length - records_start) / RECORD_LENGTH) as u64;
                assert_eq!(count(&path, true).unwrap(), (records, None));
            }
        }
    }

    #[test]
    fn a_foreign_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            find(&[dir.path().to_owned()]),
            Err(ReportError::NoRecordings(_))
        ));
        let path = dir.path().join("x.rec");
        std::fs::write(&path, "hello, this is a text and no recording").unwrap();
        let error = count(&path, true).unwrap_err();
        assert!(matches!(error, ReportError::NotARecording(_)));
        assert!(error.to_string().contains("x.rec"), "{error}");
        assert!(matches!(find(&[dir.path().join("none")]), Err(ReportError::Io(..))));
    }

    #[test]
    fn a_header_of_a_monstrous_length_or_another_form_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.rec");
        for (length, json) in [(u32::MAX, "{}"), (2, "[]"), (9, "{\"no\": 1}")] {
            let mut bytes = MAGIC.to_vec();
            bytes.extend(length.to_le_bytes());
            bytes.extend(json.as_bytes());
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(count(&path, true), Err(ReportError::BadHeader(..))), "{json}");
        }
    }

    #[test]
    fn a_damaged_record_is_named_by_its_place() {
        let (_dir, path) = recording();
        let mut bytes = std::fs::read(&path).unwrap();
        let second = bytes.len() - 2 * RECORD_LENGTH;
        bytes[second] = 0xee;
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(
            count(&path, false),
            Err(ReportError::BadRecord { index: 1, .. })
        ));
    }
}
