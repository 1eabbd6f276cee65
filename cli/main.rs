//! The `tickgate` command: one file a subcommand.

// They panic when nobody reads: `output` has what takes their place.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod client;
mod ctl;
mod demo;
mod exchange;
mod gateway;
mod journal;
mod lat;
mod loopback;
mod output;
mod password;
mod prefilter;
mod process;
mod recording;
mod replay;
mod report;
mod top;
mod tune;

use clap::{Parser, Subcommand};
use output::note;
use std::fmt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A low-latency order gateway: FIX and native orders in, risk and first-stage match, out to the exchange, every hop
/// measured.
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Gateway(gateway::Args),
    Exchange(exchange::Args),
    Client(client::Args),
    Ctl(ctl::Args),
    Journal(journal::Args),
    Lat(lat::Args),
    Password(password::Args),
    Prefilter(prefilter::Args),
    Replay(replay::Args),
    Report(report::Args),
    Top(top::Args),
    Tune(tune::Args),
}

/// Why a command failed, as one line: what, where, what to do next.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure in these words.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    start_log();
    // Exit status 2 for wrong use (clap's own), 1 for failure.
    match run(command) {
        Ok(status) => match output::failure() {
            None => status,
            Some(failure) => failed(failure),
        },
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    note!("tickgate: {failure}");
    ExitCode::FAILURE
}

/// Runs a subcommand. A status of its own is an answer, such as a miss or a difference, and no failure to give one.
fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Exchange(args) => exchange::run(&args),
        Command::Client(args) => client::run(&args),
        Command::Ctl(args) => ctl::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Lat(args) => lat::run(&args),
        Command::Password(args) => password::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Prefilter(args) => return prefilter::run(&args),
        Command::Tune(args) => return tune::run(&args),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Sends the log of cold paths to standard error. `RUST_LOG` chooses what; without it, warnings and worse.
fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // It would print them to standard error, and panic where that is what failed.
        .log_internal_errors(false)
        .init();
}
