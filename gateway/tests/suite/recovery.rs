//! Replay: the same inputs give the same outputs, and a change is found.

use crate::fix::{Logon, field, order};
use crate::fixture::{FIX, Fixture, buy};
use crate::resend::{ResendRequest, Said, body, number};
use gateway::Config;
use gateway::record::{RECORD_VERSION, Record};
use gateway::replay::{self, ReplayError};
use journal::{JournalReader, JournalWriter};
use proto::journal::Kind;
use std::path::Path;
use types::{ExecType, NewOrder, Quantity, Request, ShardId, Timestamp};

fn busy(fixture: &mut Fixture) {
    for number in 1..=20 {
        fixture.native(&Request::New(buy(number)));
        fixture.venue(ExecType::New, 0, 10, 0);
        if number % 3 == 0 {
            fixture.venue(ExecType::Fill, 10, 0, 10);
        }
    }
    fixture.native(&Request::New(NewOrder {
        quantity: Quantity(501),
        ..buy(21)
    }));
}

#[test]
fn a_journal_replays_to_the_same_bytes() {
    let mut fixture = Fixture::new();
    busy(&mut fixture);
    let (config, _folder) = fixture.stop();
    let first = replay::verify(&config, ShardId(0)).expect("it replays");
    let second = replay::verify(&config, ShardId(0)).expect("it replays");
    assert_eq!(first, second);
    assert!(first.outputs > 40, "{first:?}");
    assert_eq!(first.cut_off, 0);
}

#[test]
fn another_structure_is_another_config_and_what_differs_is_named() {
    let mut fixture = Fixture::new();
    busy(&mut fixture);
    let (_, folder) = fixture.stop();
    let instruments = crate::fixture::INSTRUMENTS;
    for (changed, text, difference) in [
        ("1,ALFA", "9,ALFA", "the instrument master"),
        ("2,BETA,0.01,100,50,default,0,sim\n", "", "the instrument master"),
        ("owner = 1", "owner = 7", "sessions"),
        (
            "open_orders = 256",
            "open_orders = 128",
            "capacities, the first stage or the rate queue",
        ),
    ] {
        let config = crate::fixture::config_in(folder.path(), &[(changed, text)]);
        let error = replay::verify(&config, ShardId(0)).expect_err("it differs");
        assert!(
            matches!(&error, ReplayError::OtherConfig { differences } if differences == &[difference]),
            "{error}"
        );
        assert!(error.to_string().contains(difference), "{error}");
    }
    std::fs::write(folder.path().join("instruments.csv"), instruments).expect("the folder can be written");
}

#[test]
fn records_of_another_version_are_refused() {
    let (config, _folder) = Fixture::new().stop();
    let mut journal = JournalWriter::open(&config.journal.of_shard(ShardId(0))).expect("the journal goes on");
    journal.append(Kind::Timer as u16, RECORD_VERSION + 1, Timestamp(1), &[&[0; 2]]);
    journal.close().expect("the journal is written");
    let error = replay::verify(&config, ShardId(0)).expect_err("nobody here knows that layout");
    assert!(
        matches!(error, ReplayError::Version { version, .. } if version == RECORD_VERSION + 1),
        "{error}"
    );
}

#[test]
fn a_replay_that_decides_otherwise_is_found() {
    let mut fixture = Fixture::new();
    busy(&mut fixture);
    let (mut config, _folder) = fixture.stop();
    // The same structure, another tick size: as if the code had changed.
    config.orders[0].instruments[0].tick_size.0 *= 7;
    let error = replay::verify(&config, ShardId(0)).expect_err("every order is refused now");
    assert!(matches!(error, ReplayError::Diverged(_)), "{error}");
}

/// A record as the journal has it: kind, version, time, payload.
pub(crate) type Entry = (u16, u16, Timestamp, Vec<u8>);

/// A FIX client's day with everything that gives a message its number: reports, a refusal, reports while it is away, a
/// replay from memory and from the journal.
fn day_of_a_client() -> (Config, Vec<Entry>, tempfile::TempDir) {
    let mut fixture = Fixture::with("resend_messages = 256", "resend_messages = 4");
    fixture.fix(&Logon);
    for id in 0..4 {
        fixture.fix(&order(&format!("A-{id}"), "ALFA"));
        fixture.venue(ExecType::New, 0, 10, 0);
        fixture.venue(ExecType::Fill, 4, 6, 4);
    }
    fixture.fix(&order("A-0", "ALFA"));
    fixture.fix(&order("A-4", "ALFA"));
    let (_, open) = fixture.sent();
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.shard.disconnect(FIX);
    let number = open.expect("it went out").client_order_id();
    for filled in 1..=6 {
        fixture.venue_about(number, ExecType::Fill, types::Reason::None, 1, 10 - filled, filled);
    }
    fixture.shard.connect(FIX);
    fixture.fix(&Logon);
    fixture.fix(&ResendRequest(2));
    fixture.all_fix_messages();
    fixture.fix(&order("A-5", "NONE"));
    let (config, folder) = fixture.stop();
    let entries = entries(&config.journal.of_shard(ShardId(0)).directory);
    (config, entries, folder)
}

pub(crate) fn entries(directory: &Path) -> Vec<Entry> {
    let mut reader = JournalReader::open(directory).expect("a journal");
    let mut entries = Vec::new();
    while let Some(record) = reader.next_record().expect("a whole journal") {
        entries.push((record.kind, record.version, record.time, record.payload.to_vec()));
    }
    entries
}

/// The config with a journal of its own that has these records alone.
pub(crate) fn cut(config: &Config, entries: &[Entry]) -> (Config, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config.clone();
    config.journal.directory = folder.path().to_path_buf();
    let mut journal = JournalWriter::open(&config.journal.of_shard(ShardId(0))).expect("a journal");
    for (kind, version, time, payload) in entries {
        journal.append(*kind, *version, *time, &[payload]);
    }
    journal.close().expect("it closes");
    (config, folder)
}

/// What the client may have been told by these records: a message leaves once its record has passed the watermark, and
/// what has passed a watermark is never cut off.
fn told(entries: &[Entry]) -> Said {
    let mut said = Said::new();
    for (kind, _, _, payload) in entries {
        if let Ok(Record::ClientOutput { session: FIX, message }) = Record::decode(*kind, payload) {
            let message = String::from_utf8_lossy(message).replace('\u{1}', "|");
            if field(&message, 43).is_none() {
                said.insert(number(&message), message);
            }
        }
    }
    said
}

/// Messages that the client has sent, and reports that the venue has.
pub(crate) fn came_in(entries: &[Entry]) -> (u64, u64) {
    let decoded = || {
        entries
            .iter()
            .map(|(kind, _, _, payload)| Record::decode(*kind, payload))
    };
    let of_client = |record: &Result<Record<'_>, _>| matches!(record, Ok(Record::ClientMessage { session: FIX, .. }));
    let of_venue = |record: &Result<Record<'_>, _>| matches!(record, Ok(Record::VenueMessage { .. }));
    let count = |count: usize| u64::try_from(count).expect("few");
    (
        count(decoded().filter(of_client).count()),
        count(decoded().filter(of_venue).count()),
    )
}

/// A process may die between any two records. Whatever it had said to a client keeps its number, its type and its body; what
/// it says afterwards has other numbers, even when something else happens than the first time.
#[test]
fn wherever_the_journal_ends_what_was_said_stays_said_and_no_number_means_two_things() {
    let (config, entries, _folder) = day_of_a_client();
    let whole = told(&entries);
    assert!(whole.len() >= 12, "{whole:?}");
    for end in 2..=entries.len() {
        let (config, folder) = cut(&config, &entries[..end]);
        let said = told(&entries[..end]);
        let (messages, reports) = came_in(&entries[..end]);
        let mut fixture = Fixture::go_on(&config, folder, messages + 1, reports);
        let mut heard = fixture.fix(&Logon);
        heard.extend(fixture.fix(&order("other", "NONE")));
        heard.extend(fixture.fix(&ResendRequest(1)));
        heard.extend(fixture.all_fix_messages());
        let mut repeated = Said::new();
        for message in heard {
            let number = number(&message);
            if field(&message, 43) == Some("Y") {
                repeated.insert(number, message);
            } else {
                assert_eq!(said.get(&number), None, "at {end}: {message}");
            }
        }
        for (number, first) in said.iter().filter(|(_, first)| field(first, 35) == Some("8")) {
            let again = repeated
                .get(number)
                .unwrap_or_else(|| panic!("at {end}: {first} is lost"));
            assert_eq!(
                (field(again, 35), body(again)),
                (field(first, 35), body(first)),
                "at {end}"
            );
        }
        let (config, _folder) = fixture.stop();
        replay::verify(&config, ShardId(0)).unwrap_or_else(|error| panic!("at {end}: {error}"));
    }
}
