//! Memory of which the kernel has a part.

use crate::huge_pages::HUGE_PAGE;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// Pages mapped into this process, as long as this lives.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

const READ_AND_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

impl Mapping {
    /// Zeroed memory, present before this returns.
    pub(crate) fn anonymous(length: usize, huge: bool) -> io::Result<Self> {
        let (length, huge) = if huge {
            (length.next_multiple_of(HUGE_PAGE), libc::MAP_HUGETLB)
        } else {
            (length, 0)
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE | huge;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        unsafe { Self::map(length, READ_AND_WRITE, flags, -1, 0) }
    }

    /// Memory that the kernel shares by a descriptor.
    pub(crate) fn shared(length: usize, fd: BorrowedFd<'_>, offset: libc::off_t) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: as above; whoever reads and writes it keeps to the protocol of what is shared.
        unsafe { Self::map(length, READ_AND_WRITE, flags, fd.as_raw_fd(), offset) }
    }

    /// The same, where the kernel alone writes.
    pub(crate) fn shared_to_read(length: usize, fd: BorrowedFd<'_>, offset: libc::off_t) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: as above.
        unsafe { Self::map(length, libc::PROT_READ, flags, fd.as_raw_fd(), offset) }
    }

    /// # Safety
    /// `flags` must not make it replace a mapping that exists.
    unsafe fn map(
        length: usize,
        access: libc::c_int,
        flags: libc::c_int,
        fd: libc::c_int,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        // SAFETY: by the contract of this function.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Where it begins.
    #[cfg(feature = "verbs")]
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The place of a `T` in it.
    ///
    /// # Panics
    /// There is no room for one, or it would not be aligned: the kernel told a layout that is none.
    pub(crate) fn at<T>(&self, offset: usize) -> NonNull<T> {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.length), "{offset} is inside");
        // SAFETY: it stays within the mapping.
        let place = unsafe { self.start.add(offset) }.cast::<T>();
        assert!(place.is_aligned(), "{offset} is aligned");
        place
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what points into it does not outlive it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "is inside")]
    fn no_place_is_given_behind_the_end() {
        let mapping = Mapping::anonymous(4_096, false).unwrap();
        mapping.at::<u64>(4_092);
    }
}
