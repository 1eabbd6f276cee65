//! Whether AF_XDP can be had, found out without a trace: nothing is attached to the interface and no queue is taken, so that a
//! running program is not disturbed.

use super::attachment::{self, QUEUES_MAX, advice};
use super::config::XdpConfig;
use super::interface::Interface;
use super::memory::Frames;
use super::reserve;
use super::socket;
use crate::error::SetupError;
use crate::link::LinkEnd;
use std::io;
use std::net::SocketAddr;

/// Tries all that an end wants of this host, but for the hook and the queue: the interface, its address, the route to the
/// peer, locked memory, and the privileges for socket and program. Gives a line for people.
///
/// # Errors
/// The first thing that cannot be had, and what to do about it.
pub fn probe(config: &XdpConfig, end: LinkEnd) -> Result<String, SetupError> {
    let name = &config.interface;
    let error = |doing: String, source, advice| SetupError::new(doing, source, advice);
    Interface::find(name).map_err(|source| {
        let advice = "configure an Ethernet interface of this machine (`ip link` lists them)";
        error(format!("looking for interface {name}"), source, advice)
    })?;
    let address = Interface::address(name).map_err(|source| {
        let advice = "give the interface an IPv4 address (`ip addr add … dev …`)";
        error(format!("looking for an IPv4 address of {name}"), source, advice)
    })?;
    if config.queue >= QUEUES_MAX {
        let source = io::ErrorKind::InvalidInput.into();
        let doing = format!("looking for queue {} of {name}", config.queue);
        return Err(error(doing, source, "queues are numbered from 0 to 255"));
    }
    reserve(name, at_any_port(end))?;
    let refused = |what: &str, source: io::Error| {
        let advice = advice(&source);
        error(format!("{what} for AF_XDP on {name}"), source, advice)
    };
    let frames = Frames::new(config.frames, config.huge_pages).map_err(|source| {
        let advice = "reserve huge pages (`sysctl vm.nr_hugepages`), leave huge_pages out, or configure fewer frames";
        error(format!("mapping the frames for {name}"), source, advice)
    })?;
    socket::unbound(&frames).map_err(|source| refused("opening a socket", source))?;
    attachment::try_load()?;
    Ok(format!(
        "AF_XDP on {name} ({address}) queue {}: interface, address, memory and privileges are there; hook and queue are tried when it is opened",
        config.queue
    ))
}

/// The port itself may be a running program's.
const fn at_any_port(end: LinkEnd) -> LinkEnd {
    match end {
        LinkEnd::Connect {
            peer,
            local: Some(local),
        } => LinkEnd::Connect {
            peer,
            local: Some(SocketAddr::new(local.ip(), 0)),
        },
        LinkEnd::Connect { .. } => end,
        LinkEnd::Listen { local } => LinkEnd::Listen {
            local: SocketAddr::new(local.ip(), 0),
        },
    }
}
