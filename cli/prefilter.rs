//! `tickgate prefilter`: how the pre-filters of a gateway stand, and whether a backend conforms.

use crate::output::say;
use crate::{Failure, ctl};
use ::gateway::control::Request;
use ::prefilter::conformance::{self, Step};
use ::prefilter::{Caps, PreFilter, Software};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Backends of the order pre-filter.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// How the pre-filters of a running gateway stand, asked at the `[control]` socket of its config: generation of the
    /// limits, counters, health.
    Status {
        /// The gateway's config, such as `configs/gateway.toml`.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
        /// Print the gateway's answers as they are: JSON, one a line.
        #[arg(long)]
        json: bool,
    },
    /// Run a script of orders against a backend that holds no limits, and print what differs. The golden script without
    /// `--script`. Exits with status 1 when anything differs.
    Conform {
        /// What is held to it.
        #[arg(long, value_enum, default_value = "software")]
        backend: Backend,
        /// Another script, in the form of tests/vectors/prefilter.txt.
        #[arg(long)]
        script: Option<PathBuf>,
    },
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Backend {
    /// The one in every gateway.
    Software,
    /// The RTL in simulation, its streams 64 bits wide.
    #[cfg(feature = "rtl-sim")]
    Rtl64,
    /// The same, 512 bits wide.
    #[cfg(feature = "rtl-sim")]
    Rtl512,
    /// The program in the kernel, in trials. Needs root.
    #[cfg(feature = "xdp")]
    Xdp,
}

const GOLDEN: &str = include_str!("../tests/vectors/prefilter.txt");

/// Tables for the golden script, which has ids beyond them too.
const CAPS: Caps = Caps {
    symbols: 1 << 10,
    sessions: 1 << 10,
};

/// Runs the subcommand. The status is 1 when a backend does not conform.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Status { config, json } => {
            ctl::ask(config, &Request::Prefilter, *json)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Conform { backend, script } => {
            let text = match script {
                Some(path) => std::fs::read_to_string(path)
                    .map_err(|error| Failure::new(format!("reading {}: {error}", path.display())))?,
                None => GOLDEN.to_owned(),
            };
            let steps = conformance::parse(&text)?;
            match backend {
                Backend::Software => conform(&mut Software::new(CAPS), &steps),
                #[cfg(feature = "rtl-sim")]
                Backend::Rtl64 => conform(&mut rtl(::prefilter::rtl::Width::Bits64)?, &steps),
                #[cfg(feature = "rtl-sim")]
                Backend::Rtl512 => conform(&mut rtl(::prefilter::rtl::Width::Bits512)?, &steps),
                #[cfg(feature = "xdp")]
                Backend::Xdp => conform(&mut xdp()?, &steps),
            }
        }
    }
}

#[cfg(feature = "rtl-sim")]
fn rtl(width: ::prefilter::rtl::Width) -> Result<::prefilter::rtl::Rtl, Failure> {
    Ok(::prefilter::rtl::Rtl::new(width, 0)?)
}

#[cfg(feature = "xdp")]
fn xdp() -> Result<::prefilter::xdp::Xdp, Failure> {
    let settings = ::prefilter::xdp::Settings {
        caps: CAPS,
        flows: 1,
        window: 1 << 12,
        ring_bytes: 1 << 16,
        heartbeat_ns: 60_000_000_000,
    };
    ::prefilter::xdp::Xdp::new(&settings).map_err(|error| {
        Failure::new(format!(
            "loading the program into the kernel: {error}; it takes root, or CAP_BPF and CAP_NET_ADMIN"
        ))
    })
}

fn conform<P: PreFilter>(backend: &mut P, steps: &[Step]) -> Result<ExitCode, Failure> {
    let outcome = conformance::run(backend, steps)?;
    for difference in &outcome.differences {
        say!("{difference}");
    }
    if let Some((expected, found)) = &outcome.counters {
        say!("counters: expected {expected:?}, found {found:?}");
    }
    say!("{} orders, {} verdicts differ", outcome.frames, outcome.different);
    Ok(if outcome.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
