//! What every recording says of the machine and the program.

use latency::clock::Clock;
use latency::{Header, Host, Placement};

/// Records that wait for the writing thread, a hot thread: some 20 ms of the heaviest load.
pub(crate) const RING_RECORDS: usize = 1 << 16;

/// The header of a component's recording.
pub(crate) fn header(component: &str, clock: &Clock, placement: Vec<Placement>, idle: &str) -> Header {
    Header {
        component: component.to_owned(),
        commit: commit(),
        started: clock.now().0,
        host: Host {
            name: net::host::name(),
            cpu: net::host::cpu_model(),
            cores: u32::try_from(net::cpu::permitted().len()).unwrap_or(u32::MAX),
            kernel: net::host::kernel(),
        },
        placement,
        idle: idle.to_owned(),
        clock: clock.facts(),
        transports: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Version and commit of this program.
pub(crate) fn commit() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), env!("TICKGATE_COMMIT"))
}
