//! The ring in shared memory: where records are until the disk has them.
//!
//! | word | |
//! |---|---|
//! | 0 | magic; stored last, so that a ring that was never finished is none |
//! | 1 | version of the format |
//! | 2 | the journal's number |
//! | 3 | which boot of the machine made it |
//! | 4 | capacity, bytes: a power of two |
//! | 5 | first: positions before it were never in this ring |
//! | 8 | appended: all before it is in the ring |
//! | 16 | written: all before it is in the files, and its place may be used again |
//! | 24 | synced: all before it survives a power cut |
//! | 32 | 1 when the drainer gave up |
//! | 512 | data: position p is at byte p modulo capacity |
//!
//! `appended` is stored by the thread that appends and by nobody else, the two others by the drainer; each is on a cache
//! line of its own. Data words are stored before `appended` is released, and loaded after it was acquired.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use latency::shm::SharedMemory;
use proto::journal::FORMAT_VERSION;

use crate::error::JournalError;

/// One journal's ring.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: SharedMemory,
    path: PathBuf,
    /// Words of data, less one.
    mask: usize,
}

/// The three marks, which only rise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    pub(crate) appended: u64,
    pub(crate) written: u64,
    pub(crate) synced: u64,
}

impl Ring {
    /// A new ring of `capacity` bytes, a power of two, for a journal that ends at `position`: in `/dev/shm`, or in
    /// the journal's directory when there is no room or no such place.
    pub(crate) fn create(directory: &Path, journal: u64, capacity: usize, position: u64) -> Result<Self, JournalError> {
        let length = HEADER_WORDS * 8 + capacity;
        let [first_choice, second_choice] = places(directory, journal);
        let (memory, path) = match SharedMemory::create(&first_choice, length) {
            Ok(memory) => (memory, first_choice),
            Err(refusal) => {
                tracing::warn!(
                    "no room for the journal's ring of {length} bytes at {} ({refusal}): it goes to {}, where writeback \
                     will disturb it",
                    first_choice.display(),
                    second_choice.display()
                );
                let memory = SharedMemory::create(&second_choice, length)
                    .map_err(JournalError::io("making the journal's ring at", &second_choice))?;
                (memory, second_choice)
            }
        };
        let ring = Self {
            memory,
            path,
            mask: capacity / 8 - 1,
        };
        let words = ring.memory.words();
        for (index, value) in [
            (VERSION, u64::from(FORMAT_VERSION)),
            (JOURNAL, journal),
            (BOOT, boot()),
            (CAPACITY, capacity as u64),
            (FIRST, position),
            (APPENDED, position),
            (WRITTEN, position),
            (SYNCED, position),
        ] {
            words[index].store(value, Ordering::Relaxed);
        }
        words[MAGIC].store(MAGIC_VALUE, Ordering::Release);
        Ok(ring)
    }

    /// The ring that a writer of this journal left behind, or uses at this moment. `None` when there is none, or none
    /// of this boot: what the disk kept of a ring is not what was in it.
    pub(crate) fn open(directory: &Path, journal: u64) -> Result<Option<Self>, JournalError> {
        for path in places(directory, journal) {
            match SharedMemory::open(&path) {
                Ok(memory) => {
                    if let Some(ring) = Self::check(memory, path, journal)? {
                        return Ok(Some(ring));
                    }
                }
                // A file of no length at all: its maker was killed at once.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {}
                Err(error) => return Err(JournalError::io("opening the journal's ring at", &path)(error)),
            }
        }
        Ok(None)
    }

    fn check(memory: SharedMemory, path: PathBuf, journal: u64) -> Result<Option<Self>, JournalError> {
        let length = memory.length();
        let word = |index: usize| memory.words()[index].load(Ordering::Acquire);
        if length < HEADER_WORDS * 8 || word(MAGIC) != MAGIC_VALUE || word(BOOT) != boot() {
            return Ok(None);
        }
        let capacity = length - HEADER_WORDS * 8;
        let what = if word(VERSION) != u64::from(FORMAT_VERSION) {
            "of another version of the format"
        } else if word(JOURNAL) != journal {
            "of another journal"
        } else if word(CAPACITY) != capacity as u64 || !capacity.is_power_of_two() {
            "as long as it should not be"
        } else {
            let ring = Self {
                memory,
                path,
                mask: capacity / 8 - 1,
            };
            return Ok(Some(ring));
        };
        Err(JournalError::Ring { path, what })
    }

    /// Its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes its file; the memory stays until it is dropped.
    pub(crate) fn remove(&self) -> Result<(), JournalError> {
        fs::remove_file(&self.path).map_err(JournalError::io("removing the journal's ring at", &self.path))
    }

    /// Bytes of records that it holds.
    pub(crate) const fn capacity(&self) -> u64 {
        (self.mask as u64 + 1) * 8
    }

    /// Bytes of memory.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.memory.length()
    }

    pub(crate) fn marks(&self) -> Marks {
        // The lower ones first: a mark that rises meanwhile is then never below one that was read before it.
        let synced = self.synced();
        let written = self.written();
        let appended = self.appended();
        Marks {
            appended,
            written,
            synced,
        }
    }

    /// Positions before it were never in this ring.
    pub(crate) fn first(&self) -> u64 {
        self.memory.words()[FIRST].load(Ordering::Relaxed)
    }

    pub(crate) fn appended(&self) -> u64 {
        self.memory.words()[APPENDED].load(Ordering::Acquire)
    }

    pub(crate) fn written(&self) -> u64 {
        self.memory.words()[WRITTEN].load(Ordering::Acquire)
    }

    pub(crate) fn synced(&self) -> u64 {
        self.memory.words()[SYNCED].load(Ordering::Acquire)
    }

    pub(crate) fn set_appended(&self, position: u64) {
        self.memory.words()[APPENDED].store(position, Ordering::Release);
    }

    pub(crate) fn set_written(&self, position: u64) {
        self.memory.words()[WRITTEN].store(position, Ordering::Release);
    }

    pub(crate) fn set_synced(&self, position: u64) {
        self.memory.words()[SYNCED].store(position, Ordering::Release);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.memory.words()[FAILED].load(Ordering::Acquire) != 0
    }

    pub(crate) fn set_failed(&self) {
        self.memory.words()[FAILED].store(1, Ordering::Release);
    }

    /// Stores one record from `position` on: its header, the parts of its payload, and zeros up to a whole word. Its room
    /// is free, and it is not appended until [`set_appended`](Self::set_appended) says so.
    pub(crate) fn store(&self, position: u64, header: [u64; 4], parts: &[&[u8]]) {
        let data = &self.memory.words()[HEADER_WORDS..];
        store(data, word_index(position) & self.mask, header, parts);
    }

    /// Copies from `position`, a multiple of 8, as many bytes as `out` has, also a multiple of 8.
    pub(crate) fn load(&self, position: u64, out: &mut [u8]) {
        let data = &self.memory.words()[HEADER_WORDS..];
        let first = word_index(position);
        for (index, bytes) in out.chunks_exact_mut(8).enumerate() {
            let word = data[first.wrapping_add(index) & self.mask].load(Ordering::Relaxed);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Stores a record from a word of the ring on; behind the last comes the first.
fn store(data: &[AtomicU64], first: usize, header: [u64; 4], parts: &[&[u8]]) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let length = header.len() + bytes.div_ceil(WORD);
    match data.get(first..first + length) {
        Some(places) => store_in(places.iter(), header, parts),
        None => store_in(data[first..].iter().chain(data), header, parts),
    }
}

/// Stores a record in these words, as many as it needs.
fn store_in<'a>(places: impl Iterator<Item = &'a AtomicU64>, header: [u64; 4], parts: &[&[u8]]) {
    let mut words = WordWriter {
        places,
        pending: 0,
        pending_bits: 0,
    };
    for word in header {
        words.push(word);
    }
    for part in parts {
        words.push_bytes(part);
    }
    words.finish();
}

/// Makes words of bytes that come in parts of any length.
struct WordWriter<I> {
    /// Those that come next.
    places: I,
    /// The bytes that do not fill a word yet, in its low bits.
    pending: u64,
    /// 0 to 56.
    pending_bits: usize,
}

impl<'a, I: Iterator<Item = &'a AtomicU64>> WordWriter<I> {
    #[inline]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.places.next() {
            place.store(word, Ordering::Relaxed);
        }
    }

    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) else {
            return self.push_few(bytes);
        };
        let mut rest = bytes;
        if self.pending_bits > 0 {
            // The bytes that there is no room for fall off at the top, and are the first of the rest.
            self.push(self.pending | u64::from_le_bytes(*first) << self.pending_bits);
            rest = &bytes[WORD - self.pending_bits / 8..];
        }
        // Most of a record comes through here.
        let (words, rest) = rest.as_chunks::<WORD>();
        for (&word, place) in words.iter().zip(self.places.by_ref()) {
            place.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.pending_bits = 8 * rest.len();
        self.pending = match self.pending_bits {
            0 => 0,
            bits => u64::from_le_bytes(*last) >> (u64::BITS as usize - bits),
        };
    }

    /// Fewer bytes than a word has.
    #[inline]
    fn push_few(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.pending |= u64::from(byte) << self.pending_bits;
            self.pending_bits += 8;
            if self.pending_bits == u64::BITS as usize {
                self.push(self.pending);
                (self.pending, self.pending_bits) = (0, 0);
            }
        }
    }

    fn finish(mut self) {
        if self.pending_bits > 0 {
            self.push(self.pending);
        }
    }
}

/// Where a journal's ring may be.
fn places(directory: &Path, journal: u64) -> [PathBuf; 2] {
    let shared = Path::new("/dev/shm").join(format!("tickgate-{journal:016x}.ring"));
    [shared, directory.join("ring")]
}

/// A number of this boot of the machine.
fn boot() -> u64 {
    // The file holds a UUID. Where there is none, every boot looks like this one, and the ring in `/dev/shm` is lost
    // by a power cut as it should be.
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[allow(clippy::cast_possible_truncation, reason = "only the low bits are used")]
const fn word_index(position: u64) -> usize {
    (position / 8) as usize
}

/// Bytes in a word.
const WORD: usize = 8;
/// Words before the data: one page.
const HEADER_WORDS: usize = 512;
/// `TGRING` and the layout.
const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"TGRING\x01\0");

const MAGIC: usize = 0;
const VERSION: usize = 1;
const JOURNAL: usize = 2;
const BOOT: usize = 3;
const CAPACITY: usize = 4;
const FIRST: usize = 5;
const APPENDED: usize = 8;
const WRITTEN: usize = 16;
const SYNCED: usize = 24;
const FAILED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ring_is_found_again_with_its_marks_and_never_taken_for_another_journals() {
        let directory = tempfile::tempdir().unwrap();
        let ring = Ring::create(directory.path(), 0x7e57_0001, 4096, 800).unwrap();
        ring.set_appended(880);
        let found = Ring::open(directory.path(), 0x7e57_0001).unwrap().unwrap();
        let marks = Marks {
            appended: 880,
            written: 800,
            synced: 800,
        };
        assert_eq!((found.marks(), found.first(), found.capacity()), (marks, 800, 4096));
        assert!(Ring::open(directory.path(), 0x7e57_0002).unwrap().is_none());
        ring.remove().unwrap();
        assert!(Ring::open(directory.path(), 0x7e57_0001).unwrap().is_none());
    }

    #[test]
    fn a_ring_that_was_never_finished_or_is_of_another_boot_is_none() {
        let directory = tempfile::tempdir().unwrap();
        for index in [MAGIC, BOOT] {
            let ring = Ring::create(directory.path(), 0x7e57_0003, 4096, 0).unwrap();
            ring.memory.words()[index].fetch_xor(1, Ordering::Relaxed);
            assert!(Ring::open(directory.path(), 0x7e57_0003).unwrap().is_none());
            ring.remove().unwrap();
        }
    }

    proptest! {
        #[test]
        fn parts_of_any_length_come_back_as_one(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 0..8),
            place in 0_usize..1000,
        ) {
            let data: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(u64::MAX)).collect();
            let header = [1, 2, 3, 4];
            let slices: Vec<_> = parts.iter().map(Vec::as_slice).collect();
            store(&data, place & 63, header, &slices);
            let mut wanted = parts.concat();
            wanted.resize(wanted.len().next_multiple_of(8), 0);
            let stored = |index: usize| data[(place + index) & 63].load(Ordering::Relaxed);
            prop_assert_eq!([0, 1, 2, 3].map(stored), header);
            let word = |index: usize| stored(header.len() + index);
            let found: Vec<u8> = (0..wanted.len() / 8).flat_map(|index| word(index).to_le_bytes()).collect();
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(word(parts.concat().len().div_ceil(8)), u64::MAX, "nothing behind it is touched");
        }
    }
}
