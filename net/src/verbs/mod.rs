//! RDMA verbs, under their own names: device, protection domain, memory region, completion queue, queue pair of a reliable
//! connection; and what brings two ends together (rdma_cm). A thin layer over libibverbs and librdmacm, which are opened when
//! the program first asks for a device: one binary starts with them and without them.
//!
//! Set-up allocates, registers and calls the kernel. What is posted and polled afterwards does none of it by itself; what
//! the device's library does is its own.

mod cm;
mod device;
mod memory;
mod queue;
mod work;

pub(crate) use cm::{CmConnection, CmEvent, CmListener, CmNumbers, PRIVATE_DATA, PrivateData, forget_gone_devices};
pub(crate) use device::{Device, GidEntry};
pub(crate) use memory::{Access, Memory, MemoryRegion, ProtectionDomain};
pub(crate) use queue::{CompletionQueue, Connection, QueuePair, QueuePairSize, RETRIES_MAX, Receive, Send};
pub(crate) use work::{WORK_COMPLETIONS, WorkCompletion, opcode, status};

use std::ptr::NonNull;
use std::{io, mem};

/// What a call of libibverbs gave that returns a pointer, or null and `errno`.
fn made<T>(pointer: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(io::Error::last_os_error)
}

/// The same of one that returns the error.
fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error.abs())),
    }
}

/// A structure of libibverbs without anything in it.
///
/// # Safety
/// Zeros are a value of `T`: numbers, arrays and pointers.
const unsafe fn zeroed<T>() -> T {
    // SAFETY: as the caller says.
    unsafe { mem::zeroed() }
}
