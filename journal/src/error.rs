//! What can go wrong with a journal, told so that whoever reads it knows what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use proto::journal::{Damage, SegmentError};

/// Why a journal cannot be opened, read or written.
#[derive(Debug)]
pub enum JournalError {
    /// A setting that no journal can run with.
    Config(String),
    /// The operating system refused something.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another process writes this journal.
    InUse(PathBuf),
    /// The journal belongs to another writer.
    OtherWriter {
        /// The journal.
        directory: PathBuf,
        /// Whose it is.
        found: String,
        /// Who wanted to open it.
        expected: String,
    },
    /// There is no journal in the directory.
    Missing(PathBuf),
    /// A segment of another journal is among this one's.
    Foreign(PathBuf),
    /// A segment has the name of another one.
    Misnamed {
        /// The file.
        path: PathBuf,
        /// Position of its first record, by its header.
        first: u64,
    },
    /// A file with the name of a segment is none.
    Segment {
        /// The file.
        path: PathBuf,
        /// Why.
        error: SegmentError,
    },
    /// A record is damaged, and there are records behind it: this is no torn tail.
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// Where in the stream.
        position: u64,
        /// What is there.
        damage: Damage,
        /// Whether it is the journal's last segment, which can be [`cut`](crate::cut).
        is_last: bool,
    },
    /// A segment is shorter than it was made.
    Shortened {
        /// The segment.
        path: PathBuf,
        /// Its length, bytes.
        found: u64,
        /// What it should be.
        expected: u64,
    },
    /// A journal is not damaged where it was to be cut.
    NotDamaged {
        /// The journal.
        directory: PathBuf,
        /// Where it was to be cut.
        position: u64,
    },
    /// A segment is missing.
    Gap {
        /// The journal.
        directory: PathBuf,
        /// Where in the stream the records end.
        expected: u64,
        /// Where they go on.
        found: u64,
    },
    /// The ring contradicts itself or the disk.
    Ring {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// The journal is being written faster than it is read.
    Outrun,
    /// The disk took no more, and not everything is written: the rest is in the ring.
    Undrained(PathBuf),
    /// The drainer's thread is gone.
    DrainerGone,
}

impl JournalError {
    /// For `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what) => f.write_str(what),
            Self::Io { doing, path, source } => {
                write!(f, "{doing} {}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::StorageFull => f.write_str("; make room"),
                    io::ErrorKind::PermissionDenied => f.write_str("; let this user write there"),
                    _ => Ok(()),
                }
            }
            Self::InUse(directory) => write!(
                f,
                "journal {} is in use by another process; stop that one or configure another directory",
                directory.display()
            ),
            Self::OtherWriter {
                directory,
                found,
                expected,
            } => write!(
                f,
                "journal {} belongs to \"{found}\", not to \"{expected}\"; configure another directory",
                directory.display()
            ),
            Self::Missing(directory) => write!(f, "{} holds no journal", directory.display()),
            Self::Foreign(path) => write!(f, "{} belongs to another journal; move it away", path.display()),
            Self::Misnamed { path, first } => write!(
                f,
                "{} has the name of another segment; by its header it is {first:020}",
                path.display()
            ),
            Self::Segment { path, error } => {
                write!(f, "{}: {error}; move it away or restore it", path.display())
            }
            Self::Damaged {
                path,
                offset,
                position,
                damage,
                is_last,
            } => {
                write!(
                    f,
                    "{}: at byte {offset}, position {position}, there is {damage}, and whole records stand behind it: \
                     the file is damaged; restore it from a copy",
                    path.display()
                )?;
                match path.parent() {
                    Some(directory) if *is_last => write!(
                        f,
                        ", or give up all from there on with `tickgate journal cut {} {position}`",
                        directory.display()
                    ),
                    _ => Ok(()),
                }
            }
            Self::Shortened { path, found, expected } => write!(
                f,
                "{} has {found} bytes of {expected}: its end is missing; restore it from a copy",
                path.display()
            ),
            Self::NotDamaged { directory, position } => write!(
                f,
                "journal {} is not damaged at position {position}; `tickgate journal verify` says where it is",
                directory.display()
            ),
            Self::Gap {
                directory,
                expected,
                found,
            } => write!(
                f,
                "journal {}: the records end at position {expected} and go on at {found}; restore the missing segment",
                directory.display()
            ),
            Self::Ring { path, what } => write!(
                f,
                "journal ring {}: {what}; what it held last is lost once you remove it",
                path.display()
            ),
            Self::Outrun => f.write_str("the journal is being written faster than it is read; read again"),
            Self::Undrained(ring) => write!(
                f,
                "the end of the journal could not be written and is in its ring {}; make room on the disk and start again",
                ring.display()
            ),
            Self::DrainerGone => f.write_str("the thread that writes the journal to disk is gone"),
        }
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
