//! `tickgate prefilter`: how the pre-filters of a gateway stand, and whether a backend conforms.

use crate::output::say;
use crate::{Failure, ctl};
use ::gateway::control::Request;
use ::prefilter::board::{self, Board, vfio};
use ::prefilter::conformance::{self, Outcome, Step};
use ::prefilter::{Caps, Software};
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
        /// Where the board is on the bus, such as 0000:01:00.0; it is bound to the driver vfio-pci. For `--backend vfio`.
        #[arg(long, value_name = "PCI_ADDRESS", required_if_eq("backend", "vfio"))]
        device: Option<String>,
        /// Another script, in the form of tests/vectors/prefilter.txt.
        #[arg(long)]
        script: Option<PathBuf>,
    },
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Backend {
    /// The one in every gateway.
    Software,
    /// The RTL in simulation, its streams 64 bits wide.
    Rtl64,
    /// The same, 512 bits wide.
    Rtl512,
    /// The RTL in simulation, through rings in the host's memory.
    Rings,
    /// The program in the kernel, in trials. Needs root.
    Xdp,
    /// A board of yours at `--device` that keeps the register map and the rings. It is reset first. Not tried on one yet.
    Vfio,
}

const GOLDEN: &str = include_str!("../tests/vectors/prefilter.txt");

/// Tables for the golden script, which has ids beyond them too.
const CAPS: Caps = Caps {
    symbols: 1 << 10,
    sessions: 1 << 10,
};

/// A ring has 64 entries.
const ENTRIES_LOG2: u32 = 6;
/// A board's patience, clocks: seconds, and the script takes less.
const HEARTBEAT_CYCLES: u32 = 1 << 31;

/// Runs the subcommand. The status is 1 when a backend does not conform.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Status { config, json } => {
            ctl::ask(config, &Request::Prefilter, *json)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Conform {
            backend,
            device,
            script,
        } => {
            let text = match script {
                Some(path) => std::fs::read_to_string(path)
                    .map_err(|error| Failure::new(format!("reading {}: {error}", path.display())))?,
                None => GOLDEN.to_owned(),
            };
            let name = script
                .as_ref()
                .map_or("the golden script".into(), |path| path.to_string_lossy());
            let steps = conformance::parse(&text).map_err(|error| Failure::new(format!("{name}: {error}")))?;
            let outcome = held_to(*backend, device.as_deref(), &steps)
                .map_err(|failure| Failure::new(format!("{name} on the backend: {failure}")))?;
            tell(&outcome);
            if outcome.frames == 0 {
                return Err(Failure::new(format!("{name} has no orders: it shows nothing")));
            }
            Ok(if outcome.is_clean() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}

fn held_to(backend: Backend, device: Option<&str>, steps: &[Step]) -> Result<Outcome, Failure> {
    let outcome = match (backend, device) {
        (Backend::Vfio, Some(device)) => {
            let (bar, memory) = vfio::open(device, board::memory_bytes(ENTRIES_LOG2))
                .map_err(|error| Failure::new(format!("opening {device} by VFIO: {error}")))?;
            conformance::run(&mut Board::open(bar, memory, ENTRIES_LOG2, HEARTBEAT_CYCLES)?, steps)
        }
        (_, Some(_)) => return Err(Failure::new("--device is for --backend vfio")),
        (Backend::Software, None) => conformance::run(&mut Software::new(CAPS), steps),
        #[cfg(feature = "rtl-sim")]
        (Backend::Rtl64 | Backend::Rtl512, None) => {
            use ::prefilter::rtl::{Rtl, Width};
            let width = if backend == Backend::Rtl64 {
                Width::Bits64
            } else {
                Width::Bits512
            };
            conformance::run(&mut Rtl::new(width, 0)?, steps)
        }
        #[cfg(feature = "rtl-sim")]
        (Backend::Rings, None) => {
            let (bar, memory) = board::model::board(board::memory_bytes(ENTRIES_LOG2));
            conformance::run(&mut Board::open(bar, memory, ENTRIES_LOG2, HEARTBEAT_CYCLES)?, steps)
        }
        #[cfg(feature = "xdp")]
        (Backend::Xdp, None) => conformance::run(&mut xdp()?, steps),
        (backend, None) => {
            let feature = if backend == Backend::Xdp { "xdp" } else { "rtl-sim" };
            let message = format!("this tickgate does not have it; build it with --features {feature}");
            return Err(Failure::new(message));
        }
    };
    Ok(outcome?)
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

fn tell(outcome: &Outcome) {
    for difference in &outcome.differences {
        say!("{difference}");
    }
    if let Some((expected, found)) = &outcome.counters {
        say!("counters: expected {expected:?}, found {found:?}");
    }
    say!("{} orders, {} verdicts differ", outcome.frames, outcome.different);
}
