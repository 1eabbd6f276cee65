//! `tickgate tune --check`: what on this host costs latency. It reads, and changes nothing.

mod checks;
mod cpus;
mod nic;
mod probe;
mod read;

use crate::Failure;
use crate::output::say;
use checks::{Finding, Verdict};
use clap::Args as ClapArgs;
use read::Host;
use serde_json::json;
use std::process::ExitCode;

/// Looks at this host for what costs latency: current value, wanted value, why, and how to fix it. Changes nothing.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Look, and exit with status 1 when something is not as it should be.
    #[arg(long, required = true)]
    check: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand. The status is 1 when something is not as it should be.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let host = Host::new("/");
    let mut findings = checks::host(&host, net::host::ticks_per_second());
    findings.extend(cpus::all(&host));
    findings.extend(nic::all(&host));
    findings.push(probe::jitter());
    let misses = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Miss)
        .count();
    if args.json {
        let rows = findings.iter().map(Finding::json).collect::<Vec<_>>();
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({"misses": misses, "findings": rows}))?
        );
    } else {
        for finding in &findings {
            say!("{finding}");
        }
        say!("{misses} of {} are not as they should be", findings.len());
    }
    Ok(if misses == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
