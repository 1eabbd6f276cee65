//! The frames: memory that is shared with the kernel.

use crate::mapping::Mapping;
use std::io;

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

impl Frames {
    /// So many frames, from huge pages when asked for.
    pub(super) fn new(count: u32, huge: bool) -> io::Result<Self> {
        let memory = Mapping::anonymous(count as usize * FRAME_LENGTH as usize, huge)?;
        Ok(Self { memory })
    }

    /// Where it is and how long, for registering it with a socket.
    pub(super) fn region(&self) -> (u64, u64) {
        (self.memory.at::<u8>(0).as_ptr() as u64, self.memory.length() as u64)
    }

    /// What the kernel received at `offset`. The frame is ours.
    ///
    /// # Panics
    /// It reaches over the end of the frames.
    pub(super) fn received(&self, offset: u64, length: usize) -> &[u8] {
        let (offset, length) = self.range(offset, length);
        // SAFETY: within the mapping, which lives as long as `self`. The kernel does not write what is ours, and only
        // `empty`, which wants `self` exclusively, gives a mutable view.
        unsafe { std::slice::from_raw_parts(self.memory.at::<u8>(offset).as_ptr(), length) }
    }

    /// A frame to be written, in full length. The frame is ours.
    ///
    /// # Panics
    /// It reaches over the end of the frames.
    pub(super) fn empty(&mut self, offset: u64) -> &mut [u8] {
        let (offset, length) = self.range(offset, FRAME_LENGTH as usize);
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.at::<u8>(offset).as_ptr(), length) }
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
}
