//! The journal as its owner sees it, and as it is found after every kind of end.

mod damage;
mod hot_path;
mod lifecycle;
mod survival;

use std::path::Path;
use std::time::Duration;

use journal::{Config, JournalReader, JournalWriter, MIN_RING_BYTES, MIN_SEGMENT_BYTES, Recovery};
use proto::journal::record_length;
use types::Timestamp;

/// The smallest journal there is: rings turn and segments change often.
fn small(directory: &Path) -> Config {
    Config {
        ring_bytes: MIN_RING_BYTES,
        segment_bytes: MIN_SEGMENT_BYTES,
        poll: Duration::from_micros(50),
        ..Config::new(directory, "test")
    }
}

/// A record as tests compare it: kind, time, payload.
type Told = (u16, u64, Vec<u8>);

/// The `number`-th record of a stream that every test knows: its number, then bytes that follow from it.
fn told(number: u64) -> Told {
    let length = (number * 37 + number / 7 * 131) % 300;
    let filler = (0..length).map(|index| (number ^ index).to_le_bytes()[0]);
    let payload = number.to_le_bytes().into_iter().chain(filler).collect();
    let kind = u16::try_from(number % 900).unwrap() + 1;
    (kind, 1_000_000 + number, payload)
}

/// Appends it in two parts, once there is room.
fn append(journal: &mut JournalWriter, (kind, time, payload): &Told) -> u64 {
    while !journal.room(record_length(payload.len())) {
        assert!(!journal.has_failed());
        std::thread::yield_now();
    }
    let (number, filler) = payload.split_at(payload.len().min(8));
    journal.append(*kind, 1, Timestamp(*time), &[number, filler])
}

/// All records of a journal, and what opening it would find.
fn read(directory: &Path) -> (Vec<Told>, Recovery) {
    let mut reader = JournalReader::open(directory).unwrap();
    let mut records = Vec::new();
    let mut position = None;
    while let Some(record) = reader.next_record().unwrap() {
        assert_eq!(
            position.unwrap_or(record.position),
            record.position,
            "one record begins where the last one ended"
        );
        position = Some(record.position + record_length(record.payload.len()) as u64);
        records.push((record.kind, record.time.0, record.payload.to_vec()));
    }
    assert_eq!(reader.next_record().unwrap(), None);
    (records, *reader.recovery())
}
