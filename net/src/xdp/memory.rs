//! Memory that is shared with the kernel: the frames, and the mapping that they and the rings live in.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// Pages mapped into this process, as long as this lives.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

/// Frames of a fixed size in one piece of memory, which the kernel calls a UMEM. Frames are named by their offset.
///
/// Whose a frame is, goes round: ours until its offset is put into a ring towards the kernel, the kernel's until the
/// offset comes back. We touch only what is ours.
#[derive(Debug)]
pub(super) struct Frames {
    memory: Mapping,
}

/// Bytes of a frame. The kernel keeps 256 of a received one for itself, which leaves room for an Ethernet frame.
pub(super) const FRAME_LENGTH: u32 = 2_048;

/// Bytes of a huge page, of the size that every x86-64 and most arm64 kernels have.
const HUGE_PAGE: usize = 2 << 20;

impl Mapping {
    /// Zeroed memory, present before this returns.
    fn anonymous(length: usize, huge: bool) -> io::Result<Self> {
        let (length, huge) = if huge {
            (length.next_multiple_of(HUGE_PAGE), libc::MAP_HUGETLB)
        } else {
            (length, 0)
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE | huge;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        unsafe { Self::map(length, flags, -1, 0) }
    }

    /// Memory that the kernel shares by a descriptor.
    pub(super) fn shared(length: usize, fd: BorrowedFd<'_>, offset: libc::off_t) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: as above; whoever reads and writes it keeps to the protocol of what is shared.
        unsafe { Self::map(length, flags, fd.as_raw_fd(), offset) }
    }

    /// # Safety
    /// `flags` must not make it replace a mapping that exists.
    unsafe fn map(length: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: by the contract of this function.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The place of a `T` in it.
    ///
    /// # Panics
    /// There is no room for one, or it would not be aligned: the kernel told a layout that is none.
    pub(super) fn at<T>(&self, offset: usize) -> NonNull<T> {
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

impl Frames {
    /// So many frames, from huge pages when asked for.
    pub(super) fn new(count: u32, huge: bool) -> io::Result<Self> {
        let memory = Mapping::anonymous(count as usize * FRAME_LENGTH as usize, huge)?;
        Ok(Self { memory })
    }

    /// Where it is and how long, for registering it with a socket.
    pub(super) fn region(&self) -> (u64, u64) {
        (self.memory.start.as_ptr() as u64, self.memory.length() as u64)
    }

    /// What the kernel received at `offset`. The frame is ours.
    ///
    /// # Panics
    /// It reaches over the end of the frames.
    pub(super) fn received(&self, offset: u64, length: usize) -> &[u8] {
        let (offset, length) = self.range(offset, length);
        // SAFETY: within the mapping, which lives as long as `self`. The kernel does not write what is ours, and only
        // `empty`, which wants `self` exclusively, gives a mutable view.
        unsafe { std::slice::from_raw_parts(self.memory.start.add(offset).as_ptr(), length) }
    }

    /// A frame to be written, in full length. The frame is ours.
    ///
    /// # Panics
    /// It reaches over the end of the frames.
    pub(super) fn empty(&mut self, offset: u64) -> &mut [u8] {
        let (offset, length) = self.range(offset, FRAME_LENGTH as usize);
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.add(offset).as_ptr(), length) }
    }

    fn range(&self, offset: u64, length: usize) -> (usize, usize) {
        let place = usize::try_from(offset).ok();
        let end = place.and_then(|place| place.checked_add(length));
        assert!(end.is_some_and(|end| end <= self.memory.length()), "a frame of ours");
        (place.unwrap_or(0), length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_a_frame_is_read_there() {
        let mut frames = Frames::new(4, false).unwrap();
        let second = u64::from(FRAME_LENGTH);
        frames.empty(second)[..5].copy_from_slice(b"order");
        assert_eq!(frames.received(second, 5), b"order");
        assert_eq!(frames.received(0, 5), [0; 5]);
    }

    #[test]
    #[should_panic(expected = "a frame of ours")]
    fn nothing_is_read_behind_the_last_frame() {
        let frames = Frames::new(1, false).unwrap();
        frames.received(0, FRAME_LENGTH as usize + 1);
    }

    #[test]
    #[should_panic(expected = "is inside")]
    fn no_place_is_given_behind_the_end() {
        let mapping = Mapping::anonymous(4_096, false).unwrap();
        mapping.at::<u64>(4_092);
    }
}
