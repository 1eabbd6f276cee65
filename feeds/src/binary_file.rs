//! Reads BinaryFILE, the form in which exchanges give away a day of their feed: each message behind its length as
//! big-endian u16, plain or gzipped (in one member or several).
//!
//! A length of 0 ends the session. Some writers put 0 before every message; since each ITCH type has one length, such a
//! file can still be read: a 0 that is followed by a whole message of a known type is taken for one of these.

use flate2::read::MultiGzDecoder;
use proto::itch;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// A reader of messages. See the module's head.
pub struct BinaryFile<R> {
    source: R,
    name: String,
    buffer: Vec<u8>,
    /// What is read and not yet handed out.
    unread: Range<usize>,
    source_state: SourceState,
    zeroed_lengths: bool,
    messages: u64,
    ending: Option<Ending>,
}

/// A feed's file, unpacked as it is read.
pub enum FeedFile {
    /// As it is.
    Plain(File),
    /// Gzipped. (Boxed: it is some kilobytes large.)
    Gzip(Box<MultiGzDecoder<File>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceState {
    Open,
    Ended,
    /// The gzip stream ended before its end mark.
    BrokenOff,
}

/// How a file ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With the length 0 that ends a session.
    EndOfSession,
    /// The same, and more bytes follow that are ignored.
    TrailingBytes {
        /// How many.
        count: u64,
    },
    /// After a whole message.
    EndOfFile,
    /// Within a message, or the gzip stream breaks off.
    Truncated,
    /// All lengths are 0, and this type has none by itself.
    UnknownLength {
        /// First byte of the message.
        message_type: u8,
    },
}

/// A feed's file could not be opened or read.
#[derive(Debug)]
pub struct FeedError {
    doing: &'static str,
    name: String,
    source: io::Error,
}

const LENGTH_BYTES: usize = 2;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The longest message with its length, so that each fits in the buffer whole.
const MIN_BUFFER: usize = LENGTH_BYTES + u16::MAX as usize;

impl BinaryFile<FeedFile> {
    /// Opens a file. Whether it is gzipped is told by its first bytes, not by its name.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub fn open(path: &Path) -> Result<Self, FeedError> {
        Ok(Self::new(FeedFile::open(path)?, &path.display().to_string()))
    }
}

impl<R: Read> BinaryFile<R> {
    /// Reads from `source`, which errors call `name`.
    pub fn new(source: R, name: &str) -> Self {
        Self {
            source,
            name: name.to_owned(),
            buffer: vec![0; MIN_BUFFER + crate::limits::READ_BYTES],
            unread: 0..0,
            source_state: SourceState::Open,
            zeroed_lengths: false,
            messages: 0,
            ending: None,
        }
    }

    /// The next message, without its length. `None` at the end, whichever it was: see [`Self::ending`].
    ///
    /// # Errors
    /// The source cannot be read, or its gzip stream is corrupt.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<&[u8]>, FeedError> {
        let unread = &self.buffer[self.unread.clone()];
        if let Some((length, rest)) = unread.split_first_chunk::<LENGTH_BYTES>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if length > 0 && rest.len() >= length {
                return Ok(Some(self.hand_out(length)));
            }
        }
        match self.find_message()? {
            Some(length) => Ok(Some(self.hand_out(length))),
            None => Ok(None),
        }
    }

    /// What errors call the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Messages handed out so far.
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// How the file ended, once it has.
    pub const fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Whether the writer put 0 in place of lengths, as far as was read.
    pub const fn has_zeroed_lengths(&self) -> bool {
        self.zeroed_lengths
    }

    #[inline]
    fn hand_out(&mut self, length: usize) -> &[u8] {
        let start = self.unread.start + LENGTH_BYTES;
        let end = start + length;
        self.unread.start = end;
        self.messages += 1;
        &self.buffer[start..end]
    }

    /// Reads until a whole message is there and gives its length. The less usual cases of [`Self::next_message`].
    fn find_message(&mut self) -> Result<Option<usize>, FeedError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        loop {
            let unread = &self.buffer[self.unread.clone()];
            match Framing::of(unread) {
                Framing::Message { length } if unread.len() >= LENGTH_BYTES + length => return Ok(Some(length)),
                Framing::Zero { message_type } => match itch::length(message_type) {
                    Some(length) if unread.len() >= LENGTH_BYTES + length => {
                        self.zeroed_lengths = true;
                        return Ok(Some(length));
                    }
                    Some(_) => {}
                    None if self.zeroed_lengths => {
                        self.skip_rest()?;
                        return Ok(self.end(Ending::UnknownLength { message_type }));
                    }
                    None => {
                        let count = self.skip_rest()?;
                        return Ok(self.end(Ending::TrailingBytes { count }));
                    }
                },
                Framing::Message { .. } | Framing::Incomplete => {}
            }
            if self.fill()? {
                continue;
            }
            let ending = match self.buffer[self.unread.clone()] {
                _ if self.source_state == SourceState::BrokenOff => Ending::Truncated,
                [] => Ending::EndOfFile,
                [0, 0] => Ending::EndOfSession,
                [0, 0, ref rest @ ..] if !self.zeroed_lengths => Ending::TrailingBytes {
                    count: rest.len() as u64,
                },
                _ => Ending::Truncated,
            };
            return Ok(self.end(ending));
        }
    }

    fn end(&mut self, ending: Ending) -> Option<usize> {
        self.ending = Some(ending);
        self.unread.start = self.unread.end;
        None
    }

    /// Reads the source to its end and counts what follows the unread length 0. A damaged gzip stream often looks like
    /// the end of a session first; its checksum at the end tells.
    fn skip_rest(&mut self) -> Result<u64, FeedError> {
        self.unread.start += LENGTH_BYTES;
        let mut count = 0;
        loop {
            count += self.unread.len() as u64;
            self.unread = 0..0;
            if !self.fill()? {
                return Ok(count);
            }
        }
    }

    /// Reads more. `false` at the end of the source.
    fn fill(&mut self) -> Result<bool, FeedError> {
        if self.source_state != SourceState::Open {
            return Ok(false);
        }
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        loop {
            match self.source.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => {
                    self.source_state = SourceState::Ended;
                    return Ok(false);
                }
                Ok(length) => {
                    self.unread.end += length;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.source_state = SourceState::BrokenOff;
                    return Ok(false);
                }
                Err(source) => {
                    return Err(FeedError {
                        doing: "reading",
                        name: self.name.clone(),
                        source,
                    });
                }
            }
        }
    }
}

/// What stands at the beginning of the unread bytes.
enum Framing {
    Incomplete,
    Message {
        length: usize,
    },
    /// Length 0, and what follows it.
    Zero {
        message_type: u8,
    },
}

impl Framing {
    fn of(bytes: &[u8]) -> Self {
        match *bytes {
            [0, 0, message_type, ..] => Self::Zero { message_type },
            [0, 0] | [] | [_] => Self::Incomplete,
            [high, low, ..] => Self::Message {
                length: usize::from(u16::from_be_bytes([high, low])),
            },
        }
    }
}

impl FeedFile {
    /// Opens a file. Whether it is gzipped is told by its first bytes, not by its name.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub fn open(path: &Path) -> Result<Self, FeedError> {
        let failed = |source| FeedError {
            doing: "opening",
            name: path.display().to_string(),
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut magic = [0; GZIP_MAGIC.len()];
        let is_gzip = match file.read_exact(&mut magic) {
            Ok(()) => magic == GZIP_MAGIC,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(failed(error)),
        };
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(if is_gzip {
            Self::Gzip(Box::new(MultiGzDecoder::new(file)))
        } else {
            Self::Plain(file)
        })
    }
}

impl Read for FeedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfSession => f.write_str("end of session"),
            Self::TrailingBytes { count } => write!(f, "end of session; the {count} bytes after it are ignored"),
            Self::EndOfFile => f.write_str("end of file"),
            Self::Truncated => f.write_str("the file is truncated; its last, incomplete message is ignored"),
            Self::UnknownLength { message_type } => write!(
                f,
                "the file has no lengths, and a message of unknown type '{}' cannot be skipped without; the rest is ignored",
                message_type.escape_ascii()
            ),
        }
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} feed {}: {}", self.doing, self.name, self.source)?;
        if self.source.kind() == io::ErrorKind::InvalidInput || self.source.kind() == io::ErrorKind::InvalidData {
            f.write_str("; the file is damaged, get it again")?;
        }
        Ok(())
    }
}

impl std::error::Error for FeedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proto::itch::{BuySell, OrderDelete, Stamp, Stock, SystemEvent};
    use std::io::Write;
    use zerocopy::IntoBytes;

    const STAMP: Stamp = Stamp {
        stock_locate: 1,
        time_ns: 5,
    };

    fn messages() -> Vec<Vec<u8>> {
        let add = itch::AddOrder::new(STAMP, 1, BuySell::Buy, 100, Stock(*b"AAPL    "), 10_000);
        vec![
            SystemEvent::new(1, b'O').as_bytes().to_vec(),
            add.as_bytes().to_vec(),
            OrderDelete::new(STAMP, 1).as_bytes().to_vec(),
        ]
    }

    fn framed(messages: &[Vec<u8>], with_lengths: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            let length = if with_lengths { message.len() } else { 0 };
            bytes.extend(u16::try_from(length).expect("short").to_be_bytes());
            bytes.extend(message);
        }
        bytes
    }

    fn read_all<R: Read>(source: R) -> Result<(Vec<Vec<u8>>, Ending, bool), FeedError> {
        let mut file = BinaryFile::new(source, "test");
        let mut read = Vec::new();
        while let Some(message) = file.next_message()? {
            read.push(message.to_vec());
        }
        assert_eq!(file.messages(), read.len() as u64);
        assert!(file.next_message()?.is_none(), "it stays at the end");
        Ok((read, file.ending().expect("ending"), file.has_zeroed_lengths()))
    }

    /// Gives one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("written");
        encoder.finish().expect("finished")
    }

    fn temporary(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("file");
        file.write_all(bytes).expect("written");
        file
    }

    fn read_file(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, Ending, bool), FeedError> {
        read_all(FeedFile::open(temporary(bytes).path())?)
    }

    #[test]
    fn a_plain_file_is_read_however_it_arrives() {
        let bytes = framed(&messages(), true);
        let expected = (messages(), Ending::EndOfFile, false);
        assert_eq!(read_all(bytes.as_slice()).expect("read"), expected);
        assert_eq!(read_all(Drip(&bytes)).expect("read"), expected);
        assert_eq!(read_file(&bytes).expect("read"), expected);
    }

    #[test]
    fn a_length_of_0_ends_the_session() {
        let mut bytes = framed(&messages(), true);
        bytes.extend([0, 0]);
        assert_eq!(
            read_all(Drip(&bytes)).expect("read"),
            (messages(), Ending::EndOfSession, false)
        );
        bytes.extend([0, 12]);
        assert_eq!(
            read_all(Drip(&bytes)).expect("read"),
            (messages(), Ending::TrailingBytes { count: 2 }, false)
        );
    }

    #[test]
    fn lengths_that_a_writer_left_0_follow_from_the_types() {
        let bytes = framed(&messages(), false);
        assert_eq!(
            read_all(Drip(&bytes)).expect("read"),
            (messages(), Ending::EndOfFile, true)
        );
        let with_end = [&bytes[..], &[0, 0]].concat();
        assert_eq!(
            read_all(Drip(&with_end)).expect("read"),
            (messages(), Ending::EndOfSession, true)
        );
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(
            read_all(Drip(cut)).expect("read"),
            (messages()[..2].to_vec(), Ending::Truncated, true)
        );
        let unknown = [&bytes[..], &[0, 0, b'!', 1, 2]].concat();
        let ending = Ending::UnknownLength { message_type: b'!' };
        assert_eq!(read_all(Drip(&unknown)).expect("read"), (messages(), ending, true));
    }

    #[test]
    fn a_truncated_file_gives_what_is_whole() {
        let bytes = framed(&messages(), true);
        let two = framed(&messages()[..2], true).len();
        for length in two + 1..bytes.len() {
            let read = read_all(Drip(&bytes[..length])).expect("read");
            assert_eq!(read, (messages()[..2].to_vec(), Ending::Truncated, false));
        }
        assert_eq!(read_all(Drip(&[])).expect("read"), (vec![], Ending::EndOfFile, false));
    }

    #[test]
    fn gzip_is_told_by_its_first_bytes_and_may_have_several_members() {
        let bytes = framed(&messages(), true);
        let (left, right) = bytes.split_at(bytes.len() / 2);
        let members = [gzip(left), gzip(right)].concat();
        let expected = (messages(), Ending::EndOfFile, false);
        assert_eq!(read_file(&members).expect("read"), expected);
        assert_eq!(read_file(&gzip(&bytes)).expect("read"), expected);
    }

    #[test]
    fn a_gzip_stream_that_breaks_off_is_truncated_and_a_damaged_one_an_error() {
        let bytes = framed(&messages(), true).repeat(10_000);
        let packed = gzip(&bytes);
        let (read, ending, _) = read_file(&packed[..packed.len() - 100]).expect("read");
        assert_eq!(ending, Ending::Truncated);
        assert!(read.len() > 1_000 && read.len() < 30_000, "{}", read.len());
        let mut damaged = packed;
        let middle = damaged.len() / 2;
        damaged[middle..middle + 20].fill(0xff);
        let error = read_file(&damaged).expect_err("damaged").to_string();
        assert!(
            error.contains("reading feed test") && error.contains("damaged"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = BinaryFile::open(Path::new("/nowhere/x.itch"))
            .err()
            .expect("missing")
            .to_string();
        assert!(error.starts_with("opening feed /nowhere/x.itch: "), "{error}");
        assert!(BinaryFile::open(Path::new("/tmp")).is_err(), "a directory");
    }

    #[test]
    fn the_longest_message_of_the_framing_fits() {
        let longest = vec![vec![b'!'; 65_535]; 5];
        assert_eq!(read_all(framed(&longest, true).as_slice()).expect("read").0, longest);
    }
}
