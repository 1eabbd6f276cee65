//! Memory that a device reads and writes.

use super::device::Device;
use super::made;
use crate::mapping::Mapping;
use rdma_mummy_sys as sys;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Zeroed memory, in huge pages where there are any. A device may write it at any time: it is copied from and to, and
/// never lent.
#[derive(Debug)]
pub(crate) struct Memory {
    mapping: Mapping,
    length: usize,
}

/// What belongs together at a device.
#[derive(Debug)]
pub(crate) struct ProtectionDomain {
    domain: NonNull<sys::ibv_pd>,
    _device: Arc<Device>,
}

/// A part of memory that a device may reach, and its peers as far as they are allowed to.
#[derive(Debug)]
pub(crate) struct MemoryRegion {
    region: NonNull<sys::ibv_mr>,
    _domain: Arc<ProtectionDomain>,
    _memory: Arc<Memory>,
}

/// Who may do what to a region, beside the device's own writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) remote_read: bool,
    pub(crate) remote_write: bool,
}

// SAFETY: libibverbs serves any thread, and nothing of it is bound to the one that made it.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as above; its own locks guard what calls change.
unsafe impl Sync for ProtectionDomain {}
// SAFETY: as above.
unsafe impl Send for MemoryRegion {}
// SAFETY: memory without structure: whatever is read is some bytes. The one owner writes.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        let mapping = Mapping::anonymous(length, true).or_else(|_| Mapping::anonymous(length, false))?;
        Ok(Self { mapping, length })
    }

    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Where it is in this process, which is where it is to peers.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        self.place(offset, 0) as u64
    }

    /// The number at `at`, which is a multiple of 8, as it stands now; what is read behind it is at least as new.
    pub(crate) fn number(&self, at: usize) -> u64 {
        assert!(
            at.is_multiple_of(8) && at + 8 <= self.length,
            "{at} is the place of a number"
        );
        // SAFETY: inside and aligned. A device may write it at this time: it is read once, as a whole.
        let number = unsafe { self.mapping.at::<u64>(at).read_volatile() };
        fence(Ordering::Acquire);
        u64::from_le(number)
    }

    /// Puts bytes there.
    pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
        let place = self.place(at, bytes.len());
        // SAFETY: inside, and no reference to it is ever given.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }

    /// Copies out the bytes there.
    pub(crate) fn copy_out(&self, at: usize, out: &mut [u8]) {
        let place = self.place(at, out.len());
        // SAFETY: inside, and no reference to it is ever given. A peer that writes out of turn makes garbage of it.
        unsafe { ptr::copy_nonoverlapping(place, out.as_mut_ptr(), out.len()) };
    }

    fn place(&self, at: usize, length: usize) -> *mut u8 {
        let end = at.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "{at} is inside");
        self.mapping.start().as_ptr().wrapping_add(at)
    }
}

impl ProtectionDomain {
    pub(crate) fn new(device: &Arc<Device>) -> io::Result<Self> {
        // SAFETY: the device is open.
        let domain = made(unsafe { sys::ibv_alloc_pd(device.context()) })?;
        Ok(Self {
            domain,
            _device: Arc::clone(device),
        })
    }

    pub(super) const fn domain(&self) -> *mut sys::ibv_pd {
        self.domain.as_ptr()
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: made by us, and what was made of it is gone.
        unsafe { sys::ibv_dealloc_pd(self.domain()) };
    }
}

impl MemoryRegion {
    /// Registers the first `length` bytes.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        memory: &Arc<Memory>,
        length: usize,
        access: Access,
    ) -> io::Result<Self> {
        let flag = |is_set: bool, flag: sys::ibv_access_flags| if is_set { flag.0 } else { 0 };
        let flags = sys::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0
            | flag(access.remote_read, sys::ibv_access_flags::IBV_ACCESS_REMOTE_READ)
            | flag(access.remote_write, sys::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE);
        let start = memory.place(0, length).cast();
        // SAFETY: the memory is mapped, and outlives the region.
        let region = made(unsafe { sys::ibv_reg_mr(domain.domain(), start, length, flags.cast_signed()) })?;
        Ok(Self {
            region,
            _domain: Arc::clone(domain),
            _memory: Arc::clone(memory),
        })
    }

    /// The key by which this end's own requests name it.
    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: registered.
        unsafe { self.region.as_ref() }.lkey
    }

    /// The key by which a peer names it.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: registered.
        unsafe { self.region.as_ref() }.rkey
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: registered by us.
        unsafe { sys::ibv_dereg_mr(self.region.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_copied_out_and_nothing_outside_is_reached() {
        let memory = Memory::new(100).unwrap();
        memory.put(8, &7_u64.to_le_bytes());
        assert_eq!(memory.number(8), 7);
        let mut out = [1; 8];
        memory.copy_out(92, &mut out);
        assert_eq!(out, [0; 8]);
        for outside in [93, 100, usize::MAX] {
            let wrong = std::panic::catch_unwind(|| memory.put(outside, &[0; 8]));
            assert!(wrong.is_err(), "{outside}");
        }
    }
}
