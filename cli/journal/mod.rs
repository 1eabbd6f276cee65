//! `tickgate journal`: a session's messages; verify, print, replay and cut the journal of a gateway's shard.

mod session;
mod text;

pub(crate) use text::utc;

use crate::Failure;
use crate::output::{say, written};
use ::gateway::config::Config;
use ::gateway::record::Record;
use ::gateway::replay;
use ::journal::JournalReader;
use clap::{Args as ClapArgs, Subcommand};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use text::shown;
use types::ShardId;

/// Looks into a journal: with --session the messages of one session, in order.
#[derive(ClapArgs, Debug)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    session: session::Selection,
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
    },
    /// Give up what stands behind a damage in the last file, so that the program starts again. Copies are kept.
    Cut {
        /// The journal's directory.
        directory: PathBuf,
        /// Where the damage is, as the refusal to start says.
        position: u64,
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
        None => session::run(&args.session),
        Some(Command::Verify { directory }) => verify(directory),
        Some(Command::Print { directory }) => print(directory),
        Some(Command::Cut { directory, position }) => cut(directory, *position),
        Some(Command::Replay { config, shard }) => replay_shard(config, ShardId(*shard)),
    }
}

fn verify(directory: &Path) -> Result<(), Failure> {
    let mut reader = JournalReader::open(directory)?;
    let mut records = 0_u64;
    while reader.next_record()?.is_some() {
        records += 1;
    }
    let recovery = reader.recovery();
    say!("{}: written by {}", directory.display(), reader.writer());
    say!("{records} records, {} bytes", reader.position());
    if recovery.discarded_bytes > 0 {
        // What a power cut leaves, or damage: a person has to look before a start cuts it off.
        return Err(Failure::new(format!(
            "{}: torn after these: {} bytes, no whole record among them, would be cut off by a start",
            directory.display(),
            recovery.discarded_bytes
        )));
    }
    say!("whole to its end");
    Ok(())
}

fn print(directory: &Path) -> Result<(), Failure> {
    let mut reader = JournalReader::open(directory)?;
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(entry) = reader.next_record()? {
        let text = match Record::decode(entry.kind, entry.payload) {
            Ok(record) => shown(&record),
            Err(_) => format!("kind {} of another program", entry.kind),
        };
        if !written(writeln!(out, "{:>12} {} {text}", entry.position, utc(entry.time)))? {
            return Ok(());
        }
    }
    written(out.flush()).map(drop)
}

fn cut(directory: &Path, position: u64) -> Result<(), Failure> {
    let cut = ::journal::cut(directory, position)?;
    say!(
        "cut at position {position}: {} bytes with {} whole records given up",
        cut.bytes,
        cut.records
    );
    for copy in &cut.copies {
        say!("as it was before: {}", copy.display());
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
    say!(
        "identical: {} inputs give the same {} outputs, hash {:016x}",
        summary.inputs,
        summary.outputs,
        summary.hash
    );
    if summary.cut_off > 0 {
        say!(
            "{} outputs more, which the journal's end cut off; a start appends and sends them",
            summary.cut_off
        );
    }
    Ok(())
}
