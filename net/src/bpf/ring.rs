//! What a program tells this process: records in memory that both see, read without a system call. The layout is that of
//! the kernel's `kernel/bpf/ringbuf.c`.

use super::{Map, MapKind};
use crate::mapping::Mapping;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The reading end. There is one reader.
#[derive(Debug)]
pub struct Ring {
    map: Map,
    /// A page with how far we have read.
    read: Mapping,
    /// A page with how far was written, and the records, twice in a row, so that none is cut at the end.
    written: Mapping,
    position: u64,
    mask: u64,
}

/// Before each record: its length with these two bits, and a number of the kernel's.
const HEADER: u32 = 8;
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

impl Ring {
    /// A ring of so many bytes, a power of two and whole pages.
    ///
    /// # Errors
    /// The kernel refuses: privileges, memory, or the size.
    pub fn new(bytes: u32) -> io::Result<Self> {
        let map = Map::new(MapKind::Ring, 0, 0, bytes)?;
        // SAFETY: takes no pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
        let read = Mapping::shared(page, map.fd.as_fd(), 0)?;
        let offset = libc::off_t::try_from(page).map_err(io::Error::other)?;
        let written = Mapping::shared_to_read(page + 2 * bytes as usize, map.fd.as_fd(), offset)?;
        Ok(Self {
            map,
            read,
            written,
            position: 0,
            mask: u64::from(bytes) - 1,
        })
    }

    /// Reads the next record into `record`: as much of it as there is room for. Gives its length, or `None` when there is
    /// none.
    ///
    /// # Panics
    /// The kernel's record reaches over the end of the ring.
    pub fn read(&mut self, record: &mut [u8]) -> Option<usize> {
        loop {
            let place = self.written.at::<AtomicU64>(0);
            // SAFETY: within the mapping and aligned; the kernel writes it, and we read it, atomically.
            let written = unsafe { place.as_ref() }.load(Ordering::Acquire);
            if written == self.position {
                return None;
            }
            let start = self.page() + usize::try_from(self.position & self.mask).expect("below the ring's size");
            // SAFETY: as above.
            let header = unsafe { self.written.at::<AtomicU32>(start).as_ref() }.load(Ordering::Acquire);
            if header & BUSY != 0 {
                return None;
            }
            let length = header & !DISCARDED;
            let is_kept = header & DISCARDED == 0;
            if is_kept {
                let copied = record.len().min(length as usize);
                let from = start + HEADER as usize;
                // The last byte is inside, too.
                self.written.at::<u8>(from + copied);
                // SAFETY: within the mapping; the kernel does not write what we have not let go of.
                unsafe { ptr::copy_nonoverlapping(self.written.at::<u8>(from).as_ptr(), record.as_mut_ptr(), copied) };
            }
            self.position += u64::from((length + HEADER).next_multiple_of(8));
            let place = self.read.at::<AtomicU64>(0);
            // SAFETY: as above, with the kernel as the reader. The record was copied before.
            unsafe { place.as_ref() }.store(self.position, Ordering::Release);
            if is_kept {
                return Some(length as usize);
            }
        }
    }

    /// Before the records.
    fn page(&self) -> usize {
        self.read.length()
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.map.as_raw_fd()
    }
}
