//! Memory that the disk can take without a copy: it begins on a block.

use std::ops::{Deref, DerefMut};

/// What direct I/O wants lengths, places in files and addresses to be multiples of, bytes. Disks with larger blocks
/// refuse and are written through the page cache.
pub(crate) const BLOCK: usize = 4_096;

/// A buffer that begins on a block and is whole blocks long.
pub(crate) struct BlockBuffer {
    bytes: Vec<u8>,
    /// Where the first block begins.
    offset: usize,
    length: usize,
}

impl BlockBuffer {
    /// `length` zeros, a multiple of [`BLOCK`].
    pub(crate) fn new(length: usize) -> Self {
        assert!(length.is_multiple_of(BLOCK), "whole blocks");
        let bytes = vec![0; length + BLOCK];
        let offset = bytes.as_ptr().align_offset(BLOCK);
        // The bytes stay where they are: the vector never grows.
        Self { bytes, offset, length }
    }
}

impl Deref for BlockBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.offset..self.offset + self.length]
    }
}

impl DerefMut for BlockBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.offset..self.offset + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_on_a_block_wherever_it_moves() {
        let mut buffers: Vec<BlockBuffer> = Vec::new();
        for blocks in 1..20 {
            buffers.push(BlockBuffer::new(blocks * BLOCK));
        }
        for buffer in &buffers {
            assert_eq!((buffer.as_ptr() as usize % BLOCK, buffer.len() % BLOCK), (0, 0));
        }
    }
}
