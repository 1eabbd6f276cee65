//! kill -9: what was appended is there afterwards.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use journal::{Config, JournalWriter};

use crate::{append, read, small, told};

/// Set in the process that is to be killed: the journal's directory.
const VICTIM: &str = "TICKGATE_JOURNAL_VICTIM";

/// The parent starts this test again as a process of its own, which appends until it is killed, and says after each
/// record how many there are. What it said must be there: several times over, each time with what was there before.
#[test]
fn what_was_appended_survives_kill_9() {
    if let Some(directory) = std::env::var_os(VICTIM) {
        append_until_killed(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let mut restored = 0;
    for round in 0..6 {
        let said = kill_one_after(directory.path(), 400 + 777 * round);
        let (records, recovery) = read(directory.path());
        let count = records.len() as u64;
        assert!(count >= said, "{said} records were appended, {count} are there");
        assert_eq!(records, (0..count).map(told).collect::<Vec<_>>());
        assert_eq!(recovery.discarded_bytes, 0);
        restored += recovery.restored_bytes;

        // Opening it finds the same, and leaves all of it on the disk.
        let journal = JournalWriter::open(&small(directory.path())).unwrap();
        assert_eq!(journal.facts().recovery, recovery);
        journal.close().unwrap();
        let (records, recovery) = read(directory.path());
        assert_eq!((records.len() as u64, recovery.restored_bytes), (count, 0));
    }
    assert!(restored > 0, "the ring was never needed: nothing was tested");
}

/// Starts the victim and kills it once it has appended about so many records; returns how many it said.
fn kill_one_after(directory: &Path, records: u64) -> u64 {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "survival::what_was_appended_survives_kill_9", "--nocapture"])
        .env(VICTIM, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let counts = lines
        .by_ref()
        .filter_map(|line| line.strip_prefix("appended ")?.parse::<u64>().ok());
    let mut said = 0;
    let mut seen = 0;
    for count in counts {
        (said, seen) = (count, seen + 1);
        if seen >= records {
            break;
        }
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    // What was in the pipe when it died was said as well.
    let rest = lines.filter_map(|line| line.strip_prefix("appended ")?.parse().ok());
    rest.last().unwrap_or(said)
}

fn append_until_killed(directory: &Path) -> ! {
    let config = Config {
        // Slow enough that the ring has something at every moment.
        poll: Duration::from_millis(3),
        ..small(directory)
    };
    let mut journal = JournalWriter::open(&config).unwrap();
    let mut number = read(directory).0.len() as u64;
    let mut out = std::io::stdout().lock();
    loop {
        append(&mut journal, &told(number));
        number += 1;
        writeln!(out, "appended {number}").unwrap();
    }
}
