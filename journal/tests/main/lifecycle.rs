//! Open, append, close, open again; what is refused.

use std::fs;
use std::time::Duration;

use journal::{Config, JournalError, JournalReader, JournalWriter, MIN_SEGMENT_BYTES, Watermark};
use proptest::prelude::*;
use proto::journal::{MAX_PAYLOAD_LENGTH, MAX_RECORD_LENGTH, record_length};
use types::Timestamp;

use crate::{append, read, small, told};

#[test]
fn what_was_appended_is_read_in_order_whoever_wrote_it_when() {
    let directory = tempfile::tempdir().unwrap();
    let mut number = 0;
    for round in 0..4 {
        let mut journal = JournalWriter::open(&small(directory.path())).unwrap();
        assert_eq!(journal.facts().recovery.end, journal.position());
        assert_eq!(journal.facts().recovery.restored_bytes, 0);
        for _ in 0..500 {
            append(&mut journal, &told(number));
            number += 1;
        }
        let end = journal.position();
        journal.close().unwrap();
        let (records, recovery) = read(directory.path());
        assert_eq!(records, (0..number).map(told).collect::<Vec<_>>(), "round {round}");
        assert_eq!((recovery.end, recovery.restored_bytes), (end, 0));
    }
    let files = fs::read_dir(directory.path()).unwrap().count();
    assert!(files > 10, "many segments: {files}");
}

#[test]
fn a_journal_is_read_while_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = JournalWriter::open(&small(directory.path())).unwrap();
    for number in 0..300 {
        append(&mut journal, &told(number));
        if number % 50 == 0 {
            let (records, recovery) = read(directory.path());
            assert_eq!(records, (0..=number).map(told).collect::<Vec<_>>());
            assert_eq!(recovery.end, journal.position());
        }
    }
}

#[test]
fn it_is_read_from_any_record_on_while_it_is_written_and_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = JournalWriter::open(&small(directory.path())).unwrap();
    let mut starts = vec![0];
    let from = |start: u64| {
        let mut reader = JournalReader::open_at(directory.path(), start).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            records.push((record.kind, record.time.0, record.payload.to_vec()));
        }
        records
    };
    for number in 0..300 {
        starts.push(append(&mut journal, &told(number)));
        let first = number / 2;
        let wanted = (first..=number).map(told).collect::<Vec<_>>();
        assert_eq!(from(starts[usize::try_from(first).unwrap()]), wanted);
    }
    journal.close().unwrap();
    for (first, start) in starts.iter().enumerate() {
        assert_eq!(from(*start), (first as u64..300).map(told).collect::<Vec<_>>());
    }
}

#[test]
fn a_record_that_was_in_no_file_when_reading_began_is_found_in_the_segment_begun_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = JournalWriter::open(&Config {
        // Longer than it takes to append all and to open the reader.
        poll: Duration::from_millis(300),
        ..small(directory.path())
    })
    .unwrap();
    let mut starts = Vec::new();
    while starts.last().is_none_or(|&start| start < MIN_SEGMENT_BYTES) {
        let (number, before) = (starts.len() as u64, journal.position());
        append(&mut journal, &told(number));
        starts.push(before);
    }
    let first = starts.len() - 1;
    let mut reader = JournalReader::open_at(directory.path(), starts[first]).unwrap();
    while journal.watermark(Watermark::Written) < journal.position() {
        std::thread::yield_now();
    }
    let record = reader.next_record().unwrap().expect("it was appended");
    assert_eq!(record.payload, told(first as u64).2);
    assert_eq!(record.position, starts[first]);
    assert_eq!(reader.next_record().unwrap(), None);
}

#[test]
fn the_marks_follow_each_other_and_reach_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = JournalWriter::open(&small(directory.path())).unwrap();
    let mut end = 0;
    for number in 0..400 {
        end = append(&mut journal, &told(number));
        let synced = journal.watermark(Watermark::Synced);
        let written = journal.watermark(Watermark::Written);
        assert!(synced <= written && written <= end);
        assert_eq!(journal.watermark(Watermark::Appended), end);
    }
    while journal.watermark(Watermark::Synced) < end {
        assert!(!journal.has_failed());
        std::thread::yield_now();
    }
}

#[test]
fn a_full_ring_has_no_room_until_the_disk_took_some() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        // The drainer sleeps until it is told to stop.
        poll: Duration::from_secs(3600),
        ..small(directory.path())
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    let payload = [7; 100];
    let mut count = 0;
    // It may find some before it falls asleep for the first time.
    while journal.room(record_length(payload.len())) {
        journal.append(1, 1, Timestamp(count), &[&payload]);
        count += 1;
    }
    assert!(count >= (config.ring_bytes / record_length(payload.len())) as u64);
    assert!(journal.room(0) && !journal.room(config.ring_bytes + 8));
    journal.close().unwrap();
    assert_eq!(read(directory.path()).0.len() as u64, count);
}

#[test]
#[should_panic(expected = "no room in the journal")]
fn appending_without_room_is_a_defect_of_the_owner() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        poll: Duration::from_secs(3600),
        ..small(directory.path())
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    for _ in 0..1_000 {
        journal.append(1, 1, Timestamp(0), &[&[7; 1000]]);
    }
}

#[test]
fn the_longest_and_the_shortest_record_fit() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = JournalWriter::open(&small(directory.path())).unwrap();
    let longest = vec![0xab; MAX_PAYLOAD_LENGTH];
    let records = [
        (1, 1, longest.clone()),
        (2, 2, Vec::new()),
        (3, 3, longest),
        (4, 4, Vec::new()),
    ];
    for record in &records {
        append(&mut journal, record);
    }
    assert_eq!(record_length(MAX_PAYLOAD_LENGTH), MAX_RECORD_LENGTH);
    journal.close().unwrap();
    assert_eq!(read(directory.path()).0, records);
}

#[test]
fn it_works_through_the_page_cache_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        direct_io: false,
        ..small(directory.path())
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    assert!(!journal.facts().direct_io);
    for number in 0..500 {
        append(&mut journal, &told(number));
    }
    journal.close().unwrap();
    assert_eq!(read(directory.path()).0.len(), 500);
}

#[test]
fn the_facts_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(&small(directory.path())).unwrap();
    let facts = journal.facts().to_string();
    for part in [": new; 1.1 MiB of memory, ring /", "; segments of 0.0 MiB, "] {
        assert!(facts.contains(part), "{facts}");
    }
}

#[test]
fn a_second_writer_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = small(directory.path());
    let journal = JournalWriter::open(&config).unwrap();
    assert!(matches!(JournalWriter::open(&config), Err(JournalError::InUse(_))));
    drop(journal);
    drop(JournalWriter::open(&config).unwrap());
    let other = Config {
        writer: "other".into(),
        ..config
    };
    let error = JournalWriter::open(&other).unwrap_err();
    assert!(matches!(error, JournalError::OtherWriter { .. }), "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let good = small(directory.path());
    let bad = [
        (
            Config {
                ring_bytes: 3 << 20,
                ..good.clone()
            },
            "ring_bytes",
        ),
        (
            Config {
                ring_bytes: 4096,
                ..good.clone()
            },
            "ring_bytes",
        ),
        (
            Config {
                segment_bytes: 1_000_000,
                ..good.clone()
            },
            "segment_bytes",
        ),
        (
            Config {
                segment_bytes: 4096,
                ..good.clone()
            },
            "segment_bytes",
        ),
        (
            Config {
                writer: String::new(),
                ..good.clone()
            },
            "name for a writer",
        ),
        (
            Config {
                cpus: vec![1000],
                ..good.clone()
            },
            "CPU [1000]",
        ),
    ];
    for (config, what) in bad {
        let error = JournalWriter::open(&config).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_directory_without_a_journal_is_no_empty_journal() {
    let directory = tempfile::tempdir().unwrap();
    let error = JournalReader::open(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::Missing(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn records_of_any_length_in_any_parts_come_back(
        records in proptest::collection::vec(
            (1_u16.., any::<u64>(), proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..5)),
            0..200,
        ),
        direct_io: bool,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { direct_io, ..small(directory.path()) };
        let mut journal = JournalWriter::open(&config).unwrap();
        for (kind, time, parts) in &records {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let length = record_length(parts.iter().map(|part| part.len()).sum());
            while !journal.room(length) {
                std::thread::yield_now();
            }
            journal.append(*kind, 1, Timestamp(*time), &parts);
        }
        journal.close().unwrap();
        let wanted: Vec<_> = records.into_iter().map(|(kind, time, parts)| (kind, time, parts.concat())).collect();
        prop_assert_eq!(read(directory.path()).0, wanted);
    }
}
