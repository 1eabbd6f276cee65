//! The system call itself.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// A command's attributes: plain numbers in the kernel's layout without padding; pointers in them are valid for the
/// call.
pub(super) trait Attributes {}

/// A command whose result is a file descriptor.
pub(super) fn bpf_fd<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn bpf<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<RawFd> {
    let size = size_of::<A>();
    // SAFETY: the kernel reads `size` bytes of `attributes` and takes what follows for zeros. What their pointers point
    // to is borrowed by our callers until the call is over, and as long as the lengths in them, or of the map, say.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(io::Error::other)
}
