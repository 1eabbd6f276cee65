//! Our program at one interface, shared by all queues of this process that are there.
//!
//! An interface takes one program, and a program serves every queue. So the first queue attaches it, the others find it in
//! a table of this process, and the last one takes it away. Threads meet here only when a link is built or ends.

use super::interface::{Interface, InterfaceName};
use super::program::{self, FlowKey};
use crate::bpf::{Attached, Hook, Map, MapKind, Program};
use crate::error::SetupError;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A program at an interface, with its maps.
#[derive(Debug)]
pub(super) struct Attachment {
    _program: Attached,
    pub(super) hook: Hook,
    flows: Map,
    sockets: Map,
}

/// Queues that an interface may have.
pub(super) const QUEUES_MAX: u16 = 256;
/// Flows of one interface: the links of all shards of a process.
const FLOWS_MAX: u32 = 1_024;

type Key = (u64, u32);

/// What is attached now. It holds nothing alive: that is for the queues.
static ATTACHED: Mutex<Vec<(Key, Weak<Attachment>)>> = Mutex::new(Vec::new());

impl Attachment {
    /// The program at this interface; attaches it when it is the first one.
    ///
    /// # Errors
    /// The kernel refuses, or somebody else's program is there.
    pub(super) fn of(name: &InterfaceName, interface: &Interface) -> Result<Arc<Self>, SetupError> {
        let key = (interface.namespace, interface.index);
        // The table is whole after every step of what holds the lock.
        let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(|(_, attachment)| attachment.strong_count() > 0);
        let of_key = attached.iter().find(|(other, _)| *other == key);
        if let Some(attachment) = of_key.and_then(|(_, attachment)| attachment.upgrade()) {
            return Ok(attachment);
        }
        let attachment = Self::new(interface).map_err(|source| {
            let advice = advice(&source);
            SetupError::new(format!("attaching the XDP program to {name}"), source, advice)
        })?;
        let attachment = Arc::new(attachment);
        attached.push((key, Arc::downgrade(&attachment)));
        Ok(attachment)
    }

    fn new(interface: &Interface) -> io::Result<Self> {
        let (flows, sockets, program) = load()?;
        let attach = |hook| program.attach(interface.index, hook).map(|attached| (attached, hook));
        // Not every driver has the native hook, or has it with every setting of the card.
        let (program, hook) = match interface.is_veth {
            false => attach(Hook::Native).or_else(|_| attach(Hook::Generic))?,
            // Its native hook makes a frame out of the packet that the other end has just made, to make a packet again of
            // what passes: a round trip takes a third longer.
            true => attach(Hook::Generic)?,
        };
        Ok(Self {
            _program: program,
            hook,
            flows,
            sockets,
        })
    }

    /// From now on frames of flows on this queue go to this socket. It ends with the socket.
    pub(super) fn serve(&self, queue: u16, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets
            .set(&u32::from(queue).to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }

    /// From now on frames of this flow are ours.
    pub(super) fn redirect(&self, flow: FlowKey) -> io::Result<()> {
        self.flows.set(&flow.bytes(), &FLOW_VALUE)
    }

    /// Frames of this flow are the kernel's again.
    pub(super) fn release(&self, flow: FlowKey) {
        // It fails only when there is none.
        let _ = self.flows.remove(&flow.bytes());
    }
}

/// Tries whether the kernel takes the program, and attaches it nowhere.
///
/// # Errors
/// The kernel refuses.
pub(super) fn try_load() -> Result<(), SetupError> {
    let refused = |source| {
        let advice = advice(&source);
        SetupError::new("loading the XDP program".to_owned(), source, advice)
    };
    load().map(|_| ()).map_err(refused)
}

/// The maps and the program, attached nowhere.
fn load() -> io::Result<(Map, Map, Program)> {
    let flows = Map::new(MapKind::Hash, FlowKey::LENGTH, FLOW_VALUE_LENGTH, FLOWS_MAX)?;
    let sockets = Map::new(MapKind::Sockets, 4, 4, u32::from(QUEUES_MAX))?;
    let code = program::assemble(flows.as_raw_fd(), sockets.as_raw_fd());
    let program = Program::load(&code)?;
    Ok((flows, sockets, program))
}

/// Being in the map is all.
const FLOW_VALUE: [u8; FLOW_VALUE_LENGTH as usize] = [0];
const FLOW_VALUE_LENGTH: u32 = 1;

pub(super) fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run it as root, or grant CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
        Some(libc::EBUSY | libc::EEXIST) => {
            "another process or program is there (`ip link show` names it); take it away"
        }
        Some(libc::ENOSYS) => "this kernel has no bpf(2): use carrier = \"udp\"",
        _ => "AF_XDP wants Linux 5.9 or later with CONFIG_XDP_SOCKETS; check what the kernel log says",
    }
}
