//! A disk that does not hold what it was given: torn ends, lost blocks, flipped bits, missing files.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use journal::{Config, JournalError, JournalReader, JournalWriter, MIN_SEGMENT_BYTES, Watermark};
use proptest::prelude::*;
use proto::journal::{RECORD_HEADER_LENGTH, record_length};

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

/// The journal as its reader and as its writer see it, which is refused by both: gives the text.
fn refused(directory: &Path) -> String {
    let read = JournalReader::open(directory).and_then(|mut reader| {
        while reader.next_record()?.is_some() {}
        Ok(())
    });
    let read = read.expect_err("the damage went unnoticed").to_string();
    let before = contents(directory);
    let opened = JournalWriter::open(&small(directory)).expect_err("whole records stand behind the damage");
    assert_eq!(opened.to_string(), read);
    assert_eq!(contents(directory), before, "who refuses changes nothing");
    read
}

/// The files of a journal.
fn contents(directory: &Path) -> Vec<Vec<u8>> {
    segments(directory).iter().map(|path| fs::read(path).unwrap()).collect()
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
    assert_eq!(recovery.discarded_bytes, end - recovery.end);
    assert_continues(directory.path(), 59, 1 << 20);
}

#[test]
fn damage_with_whole_records_behind_it_is_refused_until_it_is_cut_by_hand() {
    let harms = [Harm::Flip(SEGMENT_HEADER + 5_000), {
        let (offset, length) = (SEGMENT_HEADER + 4_096, 4_096);
        Harm::Zero { offset, length }
    }];
    for harm in harms {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path(), 200, 1 << 20);
        let path = segments(directory.path()).remove(0);
        apply(&path, harm);
        let damaged = fs::read(&path).unwrap();
        let text = refused(directory.path());
        let command = format!("`tickgate journal cut {} ", directory.path().display());
        let (_, position) = text.split_once(&command).expect(&text);
        let position: u64 = position.strip_suffix('`').unwrap().parse().unwrap();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(
            text.contains(&format!(": at byte {}, ", position + SEGMENT_HEADER)),
            "{text}"
        );

        let elsewhere = journal::cut(directory.path(), position + 8).unwrap_err();
        assert!(matches!(elsewhere, JournalError::NotDamaged { .. }), "{elsewhere}");
        let cut = journal::cut(directory.path(), position).unwrap();
        let count = read(directory.path()).0.len() as u64;
        assert!(cut.records > 0 && cut.records < 200 - count, "{cut:?}");
        assert_eq!(fs::read(&cut.copies[0]).unwrap(), damaged, "what was given up is kept");
        assert_continues(directory.path(), count, 1 << 20);
    }
}

#[test]
fn a_shortened_segment_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 60, 1 << 20);
    let file = File::options()
        .write(true)
        .open(&segments(directory.path())[0])
        .unwrap();
    file.set_len(SEGMENT_HEADER + 6_000).unwrap();
    let text = refused(directory.path());
    assert!(text.contains("has 10096 bytes of 1048576"), "{text}");
}

/// A process that was killed left a ring, from which a reader goes on where the files end. The files beneath are looked at
/// all the same: what the disk had taken must still be there.
#[test]
fn a_ring_does_not_hide_a_damaged_file() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        segment_bytes: 1 << 20,
        ..small(directory.path())
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    let end = (0..150)
        .map(|number| append(&mut journal, &told(number)))
        .max()
        .unwrap();
    while journal.watermark(Watermark::Written) < end {
        std::thread::yield_now();
    }
    let path = &segments(directory.path())[0];
    assert_eq!(read(directory.path()).0.len(), 150);
    flip(path, SEGMENT_HEADER + 5_000);
    let mut reader = JournalReader::open(directory.path()).unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some(), "the damage went unnoticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JournalError::Damaged { is_last: true, .. }), "{error}");
    flip(path, SEGMENT_HEADER + 5_000);
    assert_eq!(read(directory.path()).0.len(), 150);
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
    assert_eq!(journal::cut(directory.path(), 4096).unwrap().records, 32);
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

/// One thing that a power cut or a disk may do to a file.
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

/// Anywhere in a file of this length, its header included.
fn harm(file_length: u64) -> impl Strategy<Value = Harm> {
    let offset = move || 0..file_length - 5_000;
    prop_oneof![
        4 => (0..file_length).prop_map(Harm::Flip),
        1 => (offset(), 1_usize..5_000).prop_map(|(offset, length)| Harm::Zero { offset, length }),
        1 => (offset(), proptest::collection::vec(any::<u8>(), 1..600))
            .prop_map(|(offset, bytes)| Harm::Fill { offset, bytes }),
        1 => (offset(), offset(), 1_usize..5_000).prop_map(|(from, to, length)| Harm::Copy { from, to, length }),
        1 => offset().prop_map(Harm::Truncate),
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

/// Where the records of a segment begin and end in its file, header and padding included.
fn places(path: &Path) -> Vec<std::ops::Range<usize>> {
    let bytes = fs::read(path).unwrap();
    let mut places = Vec::new();
    let mut start = usize::try_from(SEGMENT_HEADER).unwrap();
    while let Some(header) = bytes
        .get(start..start + RECORD_HEADER_LENGTH)
        .filter(|header| header != &[0; RECORD_HEADER_LENGTH])
    {
        let length = u32::from_le_bytes(header[4..8].try_into().unwrap());
        let end = start + record_length(length as usize);
        places.push(start..end);
        start = end;
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever happens to any of the files: a start refuses and changes nothing, or it has every record that was not
    /// itself damaged, and goes on behind the last.
    #[test]
    fn no_harm_ever_loses_a_whole_record_silently(
        harms in proptest::collection::vec((any::<prop::sample::Index>(), harm(MIN_SEGMENT_BYTES)), 1..4),
        count in 1_u64..300,
    ) {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path(), count, MIN_SEGMENT_BYTES);
        let files = segments(directory.path());
        let before = contents(directory.path());
        let places: Vec<_> = files.iter().map(|path| places(path)).collect();
        prop_assert_eq!(places.iter().map(Vec::len).sum::<usize>() as u64, count);
        for (file, harm) in harms {
            apply(&files[file.index(files.len())], harm);
        }
        let after = contents(directory.path());
        // Numbers of the records that are still what they were.
        let is_whole = places.iter().enumerate().flat_map(|(file, places)| {
            let (before, after) = (&before[file], &after[file]);
            places.iter().map(move |place| before[place.clone()] == after[place.clone()])
        });
        let last_whole = is_whole.collect::<Vec<_>>().iter().rposition(|&is_whole| is_whole);
        let whole_until = last_whole.map_or(0, |last| last as u64 + 1);

        let opened = JournalWriter::open(&small(directory.path())).and_then(JournalWriter::close);
        let read = opened.and_then(|()| {
            let mut reader = JournalReader::open(directory.path())?;
            let mut numbers = 0;
            while let Some(record) = reader.next_record()? {
                assert_eq!((record.kind, record.time.0, record.payload.to_vec()), told(numbers));
                numbers += 1;
            }
            Ok(numbers)
        });
        match read {
            // A record that is whole behind one that is not would have been refused.
            Ok(kept) => {
                prop_assert_eq!(kept, whole_until);
                assert_continues(directory.path(), kept, MIN_SEGMENT_BYTES);
            }
            Err(_) => {
                let now = contents(directory.path());
                for (file, places) in places.iter().enumerate() {
                    for place in places {
                        let was = &after[file][place.clone()];
                        let is_whole = was == &before[file][place.clone()];
                        prop_assert!(!is_whole || was == &now[file][place.clone()], "a whole record is gone");
                    }
                }
            }
        }
    }
}
