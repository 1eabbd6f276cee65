//! The listening end: answers whoever connects, one after the other.

use super::args::Args;
use super::control::Control;
use super::plan::Plan;
use super::{run, single_cpu};
use crate::Failure;
use crate::output::{note, say};
use crate::process::Interrupt;
use latency::clock::Clock;
use net::TcpOptions;
use net::poller::{Interest, Poller};
use net::tcp::{TcpListener, TcpStream};
use std::net::SocketAddr;
use types::Duration;

/// How often a listening end looks whether it is to stop.
const INTERRUPT_POLL: Duration = Duration::from_millis(200);

/// How long a connection may go without a plan: others wait for their turn.
const PLAN_WITHIN: Duration = Duration::from_secs(10);

/// Serves until it is interrupted.
pub(super) fn listen(args: &Args, address: SocketAddr, clock: Clock) -> Result<(), Failure> {
    let interrupt = Interrupt::new()?;
    let cpu = single_cpu(&args.cpu, net::cpu::permitted().last())?;
    let listener = TcpListener::bind(
        address,
        &TcpOptions {
            no_delay: true,
            ..TcpOptions::default()
        },
    )?;
    let local = listener.local_addr()?;
    // The kernel chooses both ports or none.
    let port = match address.port() {
        0 => 0,
        port => port
            .checked_add(1)
            .ok_or_else(|| Failure::new("listen below port 65535: the data take the next one"))?,
    };
    let mut poller = Poller::new(1)?;
    poller.add(&listener, 0, Interest::READ)?;
    say!(
        "listening on {local}, CPU {cpu}, {}; interrupt to stop",
        args.idle.name()
    );
    while !interrupt.is_set() {
        poller.poll(INTERRUPT_POLL)?;
        while let Some((stream, from)) = listener.accept()? {
            say!("serving {from}");
            if let Err(error) = serve(args, stream, &interrupt, port, cpu, clock) {
                note!("tickgate: {from}: {error}");
            }
        }
    }
    Ok(())
}

/// Every plan of one connection.
fn serve(
    args: &Args,
    stream: TcpStream,
    interrupt: &Interrupt,
    port: u16,
    cpu: usize,
    clock: Clock,
) -> Result<(), Failure> {
    let mut control = Control::new(stream, interrupt.clone())?;
    let ip = control.local()?.ip();
    loop {
        let mut plan = match control.next::<Plan>(PLAN_WITHIN) {
            Ok(Some(plan)) => plan,
            Ok(None) => return Ok(()),
            Err(failure) => {
                // It may be gone; what is reported is the first failure.
                let _ = control.send(&run::Answer::Refused(failure.to_string()));
                return Err(failure);
            }
        };
        plan.device = args.device;
        if let Err(why) = plan.check() {
            control.send(&run::Answer::Refused(why))?;
            continue;
        }
        let local = SocketAddr::from((ip, port));
        run::far(&plan, &mut control, local, cpu, args.idle, clock)?;
    }
}
