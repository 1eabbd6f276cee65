//! `tickgate ctl`: what an operator asks of a running gateway.

use crate::Failure;
use ::gateway::config::Config;
use ::gateway::control::{Request, Scope};
use clap::{Args as ClapArgs, Subcommand};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Asks a running gateway, at the `[control]` socket of its config: kill switches, mass cancels, open orders, a recount.
/// Answers are lines of JSON; exit status 1 when it refused.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The gateway's config, such as `configs/gateway.toml`.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    #[command(subcommand)]
    ask: Ask,
}

#[derive(Subcommand, Debug)]
enum Ask {
    /// Take no new orders, and cancel the open ones. It holds over restarts, until `revive`.
    Kill {
        #[command(subcommand)]
        scope: ScopeArg,
    },
    /// Take new orders again. Kill switches of other scopes stay as they are.
    Revive {
        #[command(subcommand)]
        scope: ScopeArg,
    },
    /// Cancel the open orders; new ones are taken as before.
    Cancel {
        #[command(subcommand)]
        scope: ScopeArg,
    },
    /// Whether the kill switch of exactly this scope is on.
    Killed {
        #[command(subcommand)]
        scope: ScopeArg,
    },
    /// List the open orders.
    Orders {
        /// Only of this session.
        #[arg(long, value_name = "ID")]
        session: Option<u16>,
    },
    /// Recount exposure, lists and indexes from the open orders. A shard with many stands still meanwhile.
    Audit,
}

#[derive(Subcommand, Clone, Copy, Debug)]
enum ScopeArg {
    /// Everybody.
    Firm,
    /// One account.
    Account {
        /// Its id in the config.
        id: u32,
    },
    /// One session.
    Session {
        /// Its id in the config.
        id: u16,
    },
}

/// Asks, and prints the answers.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let Some(path) = config.control else {
        return Err(Failure::new(format!(
            "{} has no [control] socket, so its gateway takes no orders of operators",
            args.config.display()
        )));
    };
    let mut stream = UnixStream::connect(&path)
        .map_err(|error| Failure::new(format!("no gateway listens at {}: {error}", path.display())))?;
    let request = serde_json::to_string(&args.ask.request())?;
    writeln!(stream, "{request}")?;
    stream.shutdown(Shutdown::Write)?;
    let mut last = String::new();
    for line in BufReader::new(stream).lines() {
        last = line?;
        match writeln!(std::io::stdout(), "{last}") {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
    }
    if last.starts_with("{\"done\"") {
        return Ok(());
    }
    Err(Failure::new("the gateway refused, or ended before it had answered"))
}

impl Ask {
    const fn request(&self) -> Request {
        match *self {
            Self::Kill { scope } => Request::Kill(scope.scope()),
            Self::Revive { scope } => Request::Revive(scope.scope()),
            Self::Cancel { scope } => Request::Cancel(scope.scope()),
            Self::Killed { scope } => Request::Killed(scope.scope()),
            Self::Orders { session } => Request::Orders { session },
            Self::Audit => Request::Audit,
        }
    }
}

impl ScopeArg {
    const fn scope(self) -> Scope {
        match self {
            Self::Firm => Scope::Firm,
            Self::Account { id } => Scope::Account(id),
            Self::Session { id } => Scope::Session(id),
        }
    }
}
