//! `tickgate journal`: verify, print and replay the journal of a gateway's shard.

use crate::Failure;
use ::gateway::config::Config;
use ::gateway::record::Record;
use ::gateway::replay;
use ::journal::JournalReader;
use clap::{Args as ClapArgs, Subcommand};
use proto::native;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use types::{SessionId, ShardId};

/// Looks into a journal.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read every record, check every seal, and say what is there.
    Verify {
        /// The journal's directory, such as target/run/gateway-journal/shard-0.
        directory: PathBuf,
    },
    /// Print the records of a gateway's shard, one a line.
    Print {
        /// The journal's directory.
        directory: PathBuf,
        /// Only what concerns this session.
        #[arg(long)]
        session: Option<u16>,
    },
    /// Run every input through the order logic again and compare every output, byte for byte.
    Replay {
        /// The config that the gateway ran with.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
        /// The shard whose journal it is.
        #[arg(long, default_value_t = 0)]
        shard: u8,
    },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Verify { directory } => verify(directory),
        Command::Print { directory, session } => print(directory, session.map(SessionId)),
        Command::Replay { config, shard } => replay_shard(config, ShardId(*shard)),
    }
}

fn verify(directory: &Path) -> Result<(), Failure> {
    let mut reader = JournalReader::open(directory)?;
    let mut records = 0_u64;
    while reader.next_record()?.is_some() {
        records += 1;
    }
    let recovery = reader.recovery();
    println!("{}: written by {}", directory.display(), reader.writer());
    println!("{records} records, {} bytes", reader.position());
    if recovery.discarded_bytes > 0 {
        // What a power cut leaves, or damage: a person has to look before a start cuts it off.
        return Err(Failure::new(format!(
            "{}: torn after these: {} bytes with {} whole records would be cut off by a start",
            directory.display(),
            recovery.discarded_bytes,
            recovery.discarded_records
        )));
    }
    println!("whole to its end");
    Ok(())
}

fn print(directory: &Path, session: Option<SessionId>) -> Result<(), Failure> {
    let mut reader = JournalReader::open(directory)?;
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(entry) = reader.next_record()? {
        let Ok(record) = Record::decode(entry.kind, entry.payload) else {
            writeln!(
                out,
                "{:>12} {} kind {} of another program",
                entry.position, entry.time, entry.kind
            )?;
            continue;
        };
        if session.is_none_or(|wanted| of_session(&record) == Some(wanted)) {
            let written = writeln!(out, "{:>12} {} {}", entry.position, entry.time, shown(&record));
            if let Err(error) = written {
                // Whoever reads the pipe has seen enough.
                return if error.kind() == io::ErrorKind::BrokenPipe {
                    Ok(())
                } else {
                    Err(error.into())
                };
            }
        }
    }
    Ok(())
}

fn replay_shard(config: &Path, shard: ShardId) -> Result<(), Failure> {
    let config = Config::load(config)?;
    if usize::from(shard.0) >= config.shards.len() {
        return Err(Failure::new(format!(
            "there is no shard {shard}; the config has {}",
            config.shards.len()
        )));
    }
    let summary = replay::verify(&config, shard)?;
    println!(
        "identical: {} inputs give the same {} outputs, hash {:016x}",
        summary.inputs, summary.outputs, summary.hash
    );
    if summary.cut_off > 0 {
        println!(
            "{} outputs more, which the journal's end cut off; a start appends and sends them",
            summary.cut_off
        );
    }
    Ok(())
}

/// The client session that a record is about.
const fn of_session(record: &Record<'_>) -> Option<SessionId> {
    match record {
        Record::SessionUp { session }
        | Record::SessionDown { session }
        | Record::SessionTimer { session }
        | Record::ClientMessage { session, .. }
        | Record::ClientOutput { session, .. } => Some(*session),
        _ => None,
    }
}

/// A record for people: an arrow for its direction, FIX with `|` between fields, native messages by their fields.
fn shown(record: &Record<'_>) -> String {
    match record {
        Record::ClientMessage { session, message } => format!("session {session} > {}", text(message)),
        Record::ClientOutput { session, message } => format!("session {session} < {}", text(message)),
        Record::VenueMessage {
            venue,
            sequence,
            message,
        } => format!("venue {venue} > {sequence} {}", text(message)),
        Record::VenueOutput {
            venue,
            sequence,
            message,
        } => format!("venue {venue} < {sequence} {}", text(message)),
        other => format!("{other:?}"),
    }
}

fn text(message: &[u8]) -> String {
    if message.starts_with(b"8=FIX") {
        return String::from_utf8_lossy(message).replace('\u{1}', "|");
    }
    match native::decode(message) {
        Ok(message) => format!("{message:?}"),
        Err(error) => format!("{} bytes: {}", message.len(), error.text()),
    }
}
