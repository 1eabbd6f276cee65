//! `tickgate lat`: each transport against its floor.

mod args;
mod control;
mod ends;
mod plan;
mod print;
mod run;
mod serve;
mod tally;

pub(crate) use args::Args;

use crate::Failure;
use crate::output::{self, say};
use crate::process::{Interrupt, Progress};
use control::Control;
use latency::clock::Clock;
use net::measure::Placement;
use print::Ladder;
use run::Cut;

/// Where the near end finds the far one.
enum Peer {
    Here(Placement),
    Elsewhere { control: Box<Control>, cpu: usize },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.check_or_exit();
    // Before anything is pinned: the clock's own thread keeps all CPUs.
    let clock = Clock::start();
    match args.listen {
        Some(address) => serve::listen(args, address, clock),
        None => climb(args, clock),
    }
}

/// Measures, and prints whatever came of it.
fn climb(args: &Args, clock: Clock) -> Result<(), Failure> {
    let stream = args.connect.map(Control::connect).transpose()?;
    // Who waits for a connection wants to stop at once; who measures, to see what there is.
    let interrupt = Interrupt::new()?;
    let mut peer = match stream {
        None => Peer::Here(placement(&args.cpu)?),
        Some(stream) => Peer::Elsewhere {
            cpu: single_cpu(&args.cpu, net::cpu::permitted().first())?,
            control: Box::new(Control::new(stream, interrupt.clone())?),
        },
    };
    // Before anything is measured: a file that cannot be written costs no run.
    let histograms = args.histogram.as_deref().map(print::create).transpose()?;
    let mut ladder = Ladder::new(args, &peer);
    let ended = measure(args, &mut peer, clock, &interrupt, &mut ladder);
    if let (Some(name), Some(file)) = (&args.histogram, histograms) {
        ladder.write_histograms(name, file)?;
    }
    if !args.all && ladder.is_empty() {
        // There is nothing to print beside the reason.
        ended?;
        return ladder.failure().map_or(Ok(()), Err);
    }
    match (args.json, args.all) {
        (true, true) => say!("{:#}", ladder.json()),
        (true, false) => say!("{:#}", ladder.json_of_one()),
        (false, _) => output::print(format_args!("{}", ladder.text())),
    }
    ended?;
    if ladder.is_empty() {
        return Err(Failure::new("no link could be measured; the reasons are above"));
    }
    ladder.failure().map_or(Ok(()), Err)
}

/// Every round of every rung, until nothing more can be measured. A rung that failed has no more turns.
fn measure(
    args: &Args,
    peer: &mut Peer,
    clock: Clock,
    interrupt: &Interrupt,
    ladder: &mut Ladder,
) -> Result<(), Failure> {
    let rounds = ladder.rounds;
    let mut progress = Progress::new();
    for round in 1..=rounds {
        for rung in &mut ladder.measured {
            if rung.failure.is_some() {
                continue;
            }
            let name = rung.plan.link.name();
            let at = if rounds > 1 {
                format!("round {round} of {rounds}: ")
            } else {
                String::new()
            };
            progress.show_now(&format!("{name}, round {round} of {rounds}"));
            let (plan, tally, idle) = (&rung.plan, &mut rung.tally, args.idle.into());
            let ran = match peer {
                Peer::Here(placement) => run::here(plan, *placement, idle, clock, interrupt, tally),
                Peer::Elsewhere { control, cpu } => run::near(plan, control, *cpu, idle, clock, interrupt, tally),
            };
            progress.clear();
            match ran {
                Ok(()) => rung.rounds += 1,
                // What never worked has no rounds to tell apart.
                Err(Cut::Link(why)) if !rung.has_figures() => rung.failure = Some(why),
                Err(Cut::Link(why)) => rung.failure = Some(Failure::new(format_args!("{at}{why}"))),
                Err(Cut::Run(why)) => {
                    let why = Failure::new(format_args!("{name}: {at}{why}"));
                    ladder.end(&why);
                    return Err(why);
                }
            }
        }
    }
    Ok(())
}

/// Where both ends run: as told, else on the first and the last CPU that there is.
fn placement(cpus: &[usize]) -> Result<Placement, Failure> {
    let permitted;
    let cpus = if cpus.is_empty() {
        permitted = net::cpu::permitted();
        match permitted[..] {
            [first, .., last] => &[first, last],
            _ => &permitted[..],
        }
    } else {
        cpus
    };
    match *cpus {
        [near, far] if near != far => Ok(Placement::Two(near, far)),
        [cpu] | [cpu, _] => Ok(Placement::One(cpu)),
        _ => Err(Failure::new("give one CPU or two: --cpu NEAR,FAR")),
    }
}

/// Where one end runs: as told, else there.
fn single_cpu(cpus: &[usize], otherwise: Option<&usize>) -> Result<usize, Failure> {
    match (cpus, otherwise) {
        ([], Some(&cpu)) | (&[cpu], _) => Ok(cpu),
        _ => Err(Failure::new("give the CPU of this end: --cpu N")),
    }
}
