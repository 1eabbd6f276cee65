//! The messages of one session, in order.

use super::text::{parse_utc, text, utc, value};
use crate::Failure;
use crate::output::written;
use ::gateway::config::{Config, ProtocolConfig, User};
use ::gateway::record::Record;
use ::journal::JournalReader;
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use types::{SessionId, Timestamp};

/// Which session, and where.
#[derive(Args, Debug)]
pub(super) struct Selection {
    /// The session whose messages are printed: its id, the CompID (49) of its client, or its user name.
    #[arg(long, required = true)]
    session: Option<String>,
    /// The config that the gateway runs with: it says where the journals are, and knows the user names.
    #[arg(short, long, value_name = "FILE", default_value = "configs/gateway.toml")]
    config: PathBuf,
    /// The journal of one shard, when there is no config.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    directory: Option<PathBuf>,
    /// Only what came or left at this time (UTC, such as 2026-11-30T09:30:00) or later.
    #[arg(long, value_name = "TIME", value_parser = parse_utc)]
    from: Option<Timestamp>,
    /// Only what came or left before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_utc)]
    to: Option<Timestamp>,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// One message of the session.
#[derive(Serialize)]
struct Line {
    time: String,
    session: u16,
    direction: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// Who is meant.
struct Wanted {
    name: String,
    /// Sessions that are meant whatever the journal says.
    ids: BTreeSet<SessionId>,
    /// Sessions that the client with this CompID logged on to.
    bound: BTreeSet<SessionId>,
    /// Sessions over links: each of their requests has a number, by their order in the journal.
    linked: BTreeSet<SessionId>,
    was_found: bool,
}

/// Prints the messages of the session.
pub(super) fn run(selection: &Selection) -> Result<(), Failure> {
    let name = selection.session.clone().unwrap_or_default();
    let (directories, mut wanted) = match &selection.directory {
        Some(directory) => (vec![directory.clone()], Wanted::of(name, None)),
        None => {
            let config = Config::load(&selection.config)?;
            let of_shard = config
                .shards
                .iter()
                .map(|shard| config.journal.of_shard(shard.id).directory);
            (of_shard.collect(), Wanted::of(name, Some(&config)))
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut is_there = false;
    for directory in directories.iter().filter(|directory| directory.exists()) {
        is_there = true;
        if !print(directory, selection, &mut wanted, &mut out)? {
            return Ok(());
        }
    }
    written(out.flush())?;
    if !is_there {
        return Err(Failure::new(format!(
            "there is no journal at {}",
            directories[0].display()
        )));
    }
    if !wanted.was_found {
        return Err(Failure::new(format!(
            "nothing is known of a session \"{}\": name its id, the CompID of a client that logged on, or a user of the config",
            wanted.name
        )));
    }
    Ok(())
}

/// Prints what one journal has of the session. Says whether anyone still reads.
fn print(directory: &Path, selection: &Selection, wanted: &mut Wanted, out: &mut impl Write) -> Result<bool, Failure> {
    let mut reader = JournalReader::open(directory)?;
    // Numbered messages sent so far: a native message does not say its number.
    let mut sent = BTreeMap::<SessionId, u64>::new();
    let mut received = BTreeMap::<SessionId, u64>::new();
    while let Some(entry) = reader.next_record()? {
        let (session, direction, message) = match Record::decode(entry.kind, entry.payload) {
            Ok(Record::ClientMessage { session, message }) => (session, Direction::In, message),
            Ok(Record::ClientOutput { session, message }) => (session, Direction::Out, message),
            _ => continue,
        };
        let number = match (value(message, SEQUENCE), direction) {
            (Some(digits), _) => proto::fix::parse_u64(digits),
            (None, Direction::In) if !wanted.linked.contains(&session) => None,
            (None, direction) => {
                let counts = match direction {
                    Direction::In => &mut received,
                    Direction::Out => &mut sent,
                };
                let count = counts.entry(session).or_default();
                *count += 1;
                Some(*count)
            }
        };
        let is_in_time =
            selection.from.is_none_or(|from| entry.time >= from) && selection.to.is_none_or(|to| entry.time < to);
        if !wanted.is_meant(session, direction, message) || !is_in_time {
            continue;
        }
        let line = Line {
            time: utc(entry.time),
            session: session.0,
            direction,
            sequence: number,
            message: text(message),
        };
        if !written(line.print(selection.json, out))? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Wanted {
    /// The session that a user calls so. A config knows ids and user names; without one any number is an id.
    fn of(name: String, config: Option<&Config>) -> Self {
        let number = name.parse().ok().map(SessionId);
        let mut ids = BTreeSet::new();
        let sessions = config.iter().flat_map(|config| &config.sessions);
        let linked = sessions.filter(|session| session.link.is_some());
        let linked = linked.map(|session| session.id).collect();
        match config {
            None => ids.extend(number),
            Some(config) => {
                for session in &config.sessions {
                    let is_user = match &session.protocol {
                        ProtocolConfig::Native { user, .. } => *user == name,
                        ProtocolConfig::Fix { .. } => session.user == Some(User::Named(name.clone())),
                    };
                    if is_user || number == Some(session.id) {
                        ids.insert(session.id);
                    }
                }
            }
        }
        Self {
            was_found: !ids.is_empty(),
            name,
            ids,
            bound: BTreeSet::new(),
            linked,
        }
    }

    /// Whether a message is of the session. A Logon says whose the session is from there on.
    fn is_meant(&mut self, session: SessionId, direction: Direction, message: &[u8]) -> bool {
        if direction == Direction::In && value(message, MSG_TYPE) == Some(b"A") {
            if value(message, SENDER_COMP_ID) == Some(self.name.as_bytes()) {
                self.bound.insert(session);
                self.was_found = true;
            } else {
                self.bound.remove(&session);
            }
        }
        self.ids.contains(&session) || self.bound.contains(&session)
    }
}

impl Line {
    fn print(&self, as_json: bool, out: &mut impl Write) -> io::Result<()> {
        if as_json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let direction = match self.direction {
            Direction::In => "in ",
            Direction::Out => "out",
        };
        let number = self
            .sequence
            .map_or_else(|| "-".to_owned(), |number| number.to_string());
        writeln!(out, "{} {direction} {number:>6} {}", self.time, self.message)
    }
}

/// MsgSeqNum (34).
const SEQUENCE: u32 = 34;
/// MsgType (35).
const MSG_TYPE: u32 = 35;
/// SenderCompID (49).
const SENDER_COMP_ID: u32 = 49;
