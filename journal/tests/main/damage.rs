//! A disk that does not hold what it was given: torn ends, lost blocks, flipped bits, missing files.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use journal::{Config, JournalError, JournalReader, JournalWriter, MIN_SEGMENT_BYTES};
use proptest::prelude::*;
use proto::journal::RECORD_HEADER_LENGTH;

use crate::{append, read, small, told};

const SEGMENT_HEADER: u64 = 4096;

/// A closed journal of `count` records in segments of this length: what the disk has when the power goes, since the ring
/// is gone with the machine.
fn closed(directory: &Path, count: u64, segment_bytes: u64) {
    let config = Config {
        segment_bytes,
        ..small(directory)
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    for number in 0..count {
        append(&mut journal, &told(number));
    }
    journal.close().unwrap();
}

/// The segments, in order.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "journal"))
        .collect();
    paths.sort();
    paths
}

/// Overwrites bytes of a file.
fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

fn flip(path: &Path, offset: u64) {
    let byte = fs::read(path).unwrap()[usize::try_from(offset).unwrap()];
    overwrite(path, offset, &[byte ^ 0x10]);
}

/// The journal has the first `count` records and nothing else, says so, and can be continued.
fn assert_continues(directory: &Path, count: u64, segment_bytes: u64) {
    let config = Config {
        segment_bytes,
        ..small(directory)
    };
    let (records, found) = read(directory);
    assert_eq!(records, (0..count).map(told).collect::<Vec<_>>());
    let mut journal = JournalWriter::open(&config).unwrap();
    assert_eq!(journal.facts().recovery, found);
    for number in count..count + 50 {
        append(&mut journal, &told(number));
    }
    journal.close().unwrap();
    let (records, recovery) = read(directory);
    assert_eq!(records, (0..count + 50).map(told).collect::<Vec<_>>());
    assert_eq!(recovery.discarded_bytes, 0, "nothing of the torn end is left");
}

#[test]
fn a_torn_last_record_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 60, 1 << 20);
    let path = &segments(directory.path())[0];
    let end = read(directory.path()).1.end;
    overwrite(path, SEGMENT_HEADER + end - 4, &[0xee; 4]);
    let (records, recovery) = read(directory.path());
    assert_eq!(records.len(), 59);
    assert_eq!(
        (recovery.discarded_bytes, recovery.discarded_records),
        (end - recovery.end, 0)
    );
    assert_continues(directory.path(), 59, 1 << 20);
}

#[test]
fn a_lost_block_cuts_off_what_is_behind_it_and_the_count_is_told() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 200, 1 << 20);
    let path = &segments(directory.path())[0];
    overwrite(path, SEGMENT_HEADER + 4096, &[0; 4096]);
    let (records, recovery) = read(directory.path());
    let count = records.len() as u64;
    assert!(count < 200 && recovery.discarded_records > 0 && recovery.discarded_records < 200 - count);
    assert!(recovery.discarded_bytes > 4096);
    assert_continues(directory.path(), count, 1 << 20);
}

/// The records behind a lost block are appended again, at the same places: the old ones must not come after the new. They
/// would as soon as the new ones end with a block, so these records fill blocks exactly.
#[test]
fn what_was_cut_off_never_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        segment_bytes: 1 << 20,
        ..small(directory.path())
    };
    let record = |number: u64| {
        (
            1,
            number,
            vec![number.to_le_bytes()[0]; 4096 / 16 - RECORD_HEADER_LENGTH],
        )
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    for number in 0..64 {
        append(&mut journal, &record(number));
    }
    journal.close().unwrap();
    overwrite(&segments(directory.path())[0], SEGMENT_HEADER + 4096, &[0; 4096]);
    for number in 16..64 {
        let mut journal = JournalWriter::open(&config).unwrap();
        append(&mut journal, &record(number));
        journal.close().unwrap();
        assert_eq!(read(directory.path()).0.len() as u64, number + 1);
    }
}

#[test]
fn damage_with_a_segment_behind_it_is_no_torn_end() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 500, MIN_SEGMENT_BYTES);
    let segments = segments(directory.path());
    assert!(segments.len() > 3);
    flip(&segments[1], SEGMENT_HEADER + 40);
    let mut reader = JournalReader::open(directory.path()).unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the damage went unnoticed"),
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    assert!(matches!(error, JournalError::Damaged { .. }), "{text}");
    assert!(
        text.contains(segments[1].to_str().unwrap()) && text.contains("checksum"),
        "{text}"
    );
}

#[test]
fn a_missing_segment_is_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 500, MIN_SEGMENT_BYTES);
    fs::remove_file(&segments(directory.path())[1]).unwrap();
    let mut reader = JournalReader::open(directory.path()).unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some(), "the gap went unnoticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JournalError::Gap { .. }), "{error}");
}

#[test]
fn a_segment_under_another_ones_name_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 10, MIN_SEGMENT_BYTES);
    let path = &segments(directory.path())[0];
    fs::rename(path, path.with_file_name("00000000000000000008.journal")).unwrap();
    let error = JournalReader::open(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::Misnamed { first: 0, .. }), "{error}");
}

#[test]
fn a_segment_with_a_damaged_header_or_of_another_journal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 500, MIN_SEGMENT_BYTES);
    let segments = segments(directory.path());
    let last = segments.last().unwrap();
    flip(last, 50);
    let error = JournalWriter::open(&small(directory.path())).unwrap_err();
    assert!(matches!(error, JournalError::Segment { .. }), "{error}");
    flip(last, 50);
    // The second segment of another journal begins at the same place.
    let other = tempfile::tempdir().unwrap();
    closed(other.path(), 500, MIN_SEGMENT_BYTES);
    fs::copy(other.path().join(segments[1].file_name().unwrap()), &segments[1]).unwrap();
    let mut reader = JournalReader::open(directory.path()).unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some(), "the stranger went unnoticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JournalError::Foreign(_)), "{error}");
}

/// One thing that a power cut or a disk may do to the end of a file.
#[derive(Clone, Debug)]
enum Harm {
    Flip(u64),
    Zero {
        offset: u64,
        length: usize,
    },
    Fill {
        offset: u64,
        bytes: Vec<u8>,
    },
    /// Bytes from elsewhere in the file: an old block, a block in the wrong place.
    Copy {
        from: u64,
        to: u64,
        length: usize,
    },
    Truncate(u64),
}

fn harm() -> impl Strategy<Value = Harm> {
    let offset = || SEGMENT_HEADER..SEGMENT_HEADER + 12_000;
    prop_oneof![
        offset().prop_map(Harm::Flip),
        (offset(), 1_usize..5_000).prop_map(|(offset, length)| Harm::Zero { offset, length }),
        (offset(), proptest::collection::vec(any::<u8>(), 1..600))
            .prop_map(|(offset, bytes)| Harm::Fill { offset, bytes }),
        (offset(), offset(), 1_usize..5_000).prop_map(|(from, to, length)| Harm::Copy { from, to, length }),
        offset().prop_map(Harm::Truncate),
    ]
}

fn apply(path: &Path, harm: Harm) {
    match harm {
        Harm::Flip(offset) => flip(path, offset),
        Harm::Zero { offset, length } => overwrite(path, offset, &vec![0; length]),
        Harm::Fill { offset, bytes } => overwrite(path, offset, &bytes),
        Harm::Copy { from, to, length } => {
            let from = usize::try_from(from).unwrap();
            let bytes = fs::read(path).unwrap()[from..from + length].to_vec();
            overwrite(path, to, &bytes);
        }
        // The length of the file is part of its making and does not change in a crash; the bytes may be lost.
        Harm::Truncate(offset) => {
            let length = fs::metadata(path).unwrap().len() - offset;
            overwrite(path, offset, &vec![0; usize::try_from(length).unwrap()]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever happens to the last segment, what is read is a beginning of what was appended, and the journal goes on
    /// from there.
    #[test]
    fn what_is_read_after_any_harm_is_a_beginning_of_what_was_appended(
        harms in proptest::collection::vec(harm(), 1..4), count in 1_u64..60,
    ) {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path(), count, 1 << 16);
        let path = &segments(directory.path())[0];
        for harm in harms {
            apply(path, harm);
        }
        let kept = read(directory.path()).0.len() as u64;
        prop_assert!(kept <= count);
        assert_continues(directory.path(), kept, 1 << 16);
    }
}
