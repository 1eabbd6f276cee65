//! `tickgate ctl`: what an operator asks of a running gateway.

mod text;

use crate::Failure;
use crate::output::written;
use ::gateway::config::Config;
use ::gateway::control::{LimitScopeName, PartyName, Reply, Request, Scope, TradedName};
use clap::{Args as ClapArgs, Subcommand};
use orders::Limit;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use text::Table;

/// Asks a running gateway, at the `[control]` socket of its config: limits, kill switches, mass cancels, sessions, open
/// orders, the roll of the day, a recount.
/// Exit status 1 when it refused.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The gateway's config, such as `configs/gateway.toml`.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// Print the gateway's answers as they are: JSON, one a line.
    #[arg(long, global = true)]
    json: bool,

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
    /// As `kill`, but take orders that can only make smaller what their account holds.
    LetReduce {
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
    /// Show limits, and who said so: of one scope, or all but for instruments' that are their class's.
    Limits {
        #[command(subcommand)]
        scope: Option<LimitScopeArg>,
    },
    /// Change a limit: in force for the next order, over restarts too. What is open stays.
    Set {
        #[command(subcommand)]
        limit: SetArg,
    },
    /// Close a class or an instrument to an account or a session: no new orders, over restarts too, until `open`. What is open
    /// stays.
    Close {
        #[command(subcommand)]
        party: PartyArg,
    },
    /// Open to an account or a session what is closed to it, by `close` or by `restricted_classes` and `restricted_symbols`.
    Open {
        #[command(subcommand)]
        party: PartyArg,
    },
    /// List the sessions: who is connected, from where, with which numbers.
    Sessions,
    /// List the links to venues and clients: over what, since when, with which numbers and counters.
    Links,
    /// Log a session's client out and let it in no more, over restarts too, until `enable`.
    Disable {
        #[command(subcommand)]
        session: SessionArg,
    },
    /// Let a session's client in again.
    Enable {
        #[command(subcommand)]
        session: SessionArg,
    },
    /// Begin a trading day: orders of the last one end, daily limits and numbers start anew.
    Roll {
        /// The day, as 20261201. Later than the one that is.
        day: u32,
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

#[derive(Subcommand, Clone, Copy, Debug)]
enum SessionArg {
    /// One session.
    Session {
        /// Its id in the config.
        id: u16,
    },
}

#[derive(Subcommand, Clone, Debug)]
enum LimitScopeArg {
    /// Those for all orders.
    Firm,
    /// A class of instruments.
    Class {
        /// Its name in the config.
        name: String,
    },
    /// One instrument.
    Instrument {
        /// Its symbol.
        symbol: String,
    },
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

#[derive(Subcommand, Clone, Debug)]
enum PartyArg {
    /// To one account.
    Account {
        /// Its id in the config.
        id: u32,
        #[command(subcommand)]
        traded: TradedArg,
    },
    /// To one session.
    Session {
        /// Its id in the config.
        id: u16,
        #[command(subcommand)]
        traded: TradedArg,
    },
}

#[derive(Subcommand, Clone, Debug)]
enum TradedArg {
    /// The instruments of a class.
    Class {
        /// Its name in the config.
        name: String,
    },
    /// One instrument.
    Instrument {
        /// Its symbol.
        symbol: String,
    },
}

#[derive(Subcommand, Clone, Debug)]
enum SetArg {
    /// For all orders.
    Firm {
        #[command(flatten)]
        limit: LimitArg,
    },
    /// For the instruments of a class that have not their own.
    Class {
        /// Its name in the config.
        class: String,
        #[command(flatten)]
        limit: LimitArg,
    },
    /// For one instrument, in the place of its class's.
    Instrument {
        /// Its symbol.
        symbol: String,
        #[command(flatten)]
        limit: LimitArg,
    },
    /// For one account.
    Account {
        /// Its id in the config.
        id: u32,
        #[command(flatten)]
        limit: LimitArg,
    },
    /// For one session.
    Session {
        /// Its id in the config.
        id: u16,
        #[command(flatten)]
        limit: LimitArg,
    },
}

#[derive(ClapArgs, Clone, Debug)]
struct LimitArg {
    /// The limit's key in the config.
    name: String,
    /// What it is to be, in the units of the config: `1_000`, `250000.50`, `'{ ticks = 5 }'`, `off`, `true`, `master`;
    /// `none` where the limit may be absent, `class` for an instrument that is to have its class's again.
    value: String,
}

/// Asks, and prints the answers.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    ask(&args.config, &args.ask.request(), args.json)
}

/// Asks the gateway of this config, and prints its answers for people or as they are.
pub(crate) fn ask(config: &Path, request: &Request, json: bool) -> Result<(), Failure> {
    let Some(path) = Config::load(config)?.control else {
        return Err(Failure::new(format!(
            "{} has no [control] socket, so its gateway takes no orders of operators",
            config.display()
        )));
    };
    let mut stream = UnixStream::connect(&path)
        .map_err(|error| Failure::new(format!("no gateway listens at {}: {error}", path.display())))?;
    let request = serde_json::to_string(request)?;
    writeln!(stream, "{request}")?;
    stream.shutdown(Shutdown::Write)?;
    match print(BufReader::new(stream), json)? {
        Some(Reply::Done { .. }) => Ok(()),
        Some(Reply::Refused { reason }) => Err(Failure::new(format!("the gateway refused: {reason}"))),
        _ => Err(Failure::new("the gateway ended before it had answered")),
    }
}

/// Prints the answers as they come, and gives the last.
fn print(answers: impl BufRead, as_json: bool) -> Result<Option<Reply>, Failure> {
    let mut out = io::stdout().lock();
    let mut table = Table::default();
    let mut last = None;
    let mut is_read = true;
    for line in answers.lines() {
        let line = line?;
        let reply = serde_json::from_str(&line)?;
        // The last answer is the status, read or not.
        if is_read {
            is_read = written(if as_json {
                writeln!(out, "{line}")
            } else {
                table.reply(&reply, &mut out)
            })?;
        }
        last = Some(reply);
    }
    written(table.flush(&mut out))?;
    Ok(last)
}

impl Ask {
    fn request(&self) -> Request {
        match self {
            Self::Kill { scope } => Request::Kill(scope.scope()),
            Self::LetReduce { scope } => Request::LetReduce(scope.scope()),
            Self::Revive { scope } => Request::Revive(scope.scope()),
            Self::Cancel { scope } => Request::Cancel(scope.scope()),
            Self::Killed { scope } => Request::Killed(scope.scope()),
            Self::Orders { session } => Request::Orders { session: *session },
            Self::Limits { scope } => Request::Limits(scope.clone().map(LimitScopeArg::name)),
            Self::Set { limit } => limit.clone().request(),
            Self::Close { party } => party.clone().request(true),
            Self::Open { party } => party.clone().request(false),
            Self::Sessions => Request::Sessions,
            Self::Links => Request::Links,
            Self::Disable {
                session: SessionArg::Session { id },
            } => Request::Disable(*id),
            Self::Enable {
                session: SessionArg::Session { id },
            } => Request::Enable(*id),
            Self::Roll { day } => Request::Roll(*day),
            Self::Audit => Request::Audit,
        }
    }
}

impl SetArg {
    fn request(self) -> Request {
        let (scope, limit) = match self {
            Self::Firm { limit } => (LimitScopeName::Firm, limit),
            Self::Class { class, limit } => (LimitScopeName::Class(class), limit),
            Self::Instrument { symbol, limit } => (LimitScopeName::Instrument(symbol), limit),
            Self::Account { id, limit } => (LimitScopeName::Account(id), limit),
            Self::Session { id, limit } => (LimitScopeName::Session(id), limit),
        };
        Request::Set {
            scope,
            limit: limit.name,
            value: limit.value,
        }
    }
}

impl PartyArg {
    fn request(self, closes: bool) -> Request {
        let (by, traded) = match self {
            Self::Account { id, traded } => (PartyName::Account(id), traded),
            Self::Session { id, traded } => (PartyName::Session(id), traded),
        };
        let of = match traded {
            TradedArg::Class { name } => TradedName::Class(name),
            TradedArg::Instrument { symbol } => TradedName::Instrument(symbol),
        };
        Request::Set {
            scope: LimitScopeName::Trade { by, of },
            limit: Limit::Restricted.name().to_owned(),
            value: closes.to_string(),
        }
    }
}

impl LimitScopeArg {
    fn name(self) -> LimitScopeName {
        match self {
            Self::Firm => LimitScopeName::Firm,
            Self::Class { name } => LimitScopeName::Class(name),
            Self::Instrument { symbol } => LimitScopeName::Instrument(symbol),
            Self::Account { id } => LimitScopeName::Account(id),
            Self::Session { id } => LimitScopeName::Session(id),
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
