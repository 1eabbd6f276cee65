//! The four rings between this process and the kernel: each has one producer and one consumer, in shared memory.
//!
//! Positions count up and wrap at 2^32; a slot is the position modulo the ring's length, a power of two. Who writes a
//! slot publishes it by a release store of `producer`; who has read it gives it back by a release store of `consumer`.
//! So the other side's position is read with acquire, and only when our copy of it says that the ring is full or empty:
//! the line of memory that both sides write moves between the cores no more often than it must.
//!
//! The kernel does likewise: it hands out a received frame before it says that it took it from the ring of frames to be
//! filled. So a ring holds twice as many as there are frames to put into it, and is never full.

use crate::mapping::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring whose producer we are: frames to be filled, frames to be sent.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Position of the next slot that we write.
    next: u32,
    /// The consumer's position as last read.
    consumed: u32,
}

/// A ring whose consumer we are: frames received, frames that were sent.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Position of the next slot that we read.
    next: u32,
    /// The producer's position as last read.
    produced: u32,
}

#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    length: u32,
    /// What the pointers point into.
    _memory: Mapping,
}

impl<T: Slot> Producer<T> {
    /// Maps the ring of a socket; see [`Ring::map`].
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        place: libc::off_t,
        layout: &libc::xdp_ring_offset,
        length: u32,
    ) -> io::Result<Self> {
        let ring = Ring::map(socket, place, layout, length)?;
        Ok(Self {
            next: ring.producer().load(Ordering::Relaxed),
            consumed: ring.consumer().load(Ordering::Acquire),
            ring,
        })
    }

    /// Puts in one more; `false` when the ring is full. The kernel sees it after [`publish`](Self::publish).
    #[must_use]
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.next.wrapping_sub(self.consumed) == self.ring.length {
            self.consumed = self.ring.consumer().load(Ordering::Acquire);
            if self.next.wrapping_sub(self.consumed) == self.ring.length {
                return false;
            }
        }
        // SAFETY: the slot is inside the ring, and the consumer has read it and will not look again before we publish.
        unsafe { self.ring.slot(self.next).write(value) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Lets the kernel see what was put in.
    pub(super) fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel wants a system call before it looks at this ring.
    pub(super) fn wants_wakeup(&self) -> bool {
        // SAFETY: it points into the mapping, which lives as long as `self`; the kernel writes it atomically.
        let flags = unsafe { self.ring.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Slot> Consumer<T> {
    /// Maps the ring of a socket; see [`Ring::map`].
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        place: libc::off_t,
        layout: &libc::xdp_ring_offset,
        length: u32,
    ) -> io::Result<Self> {
        let ring = Ring::map(socket, place, layout, length)?;
        Ok(Self {
            next: ring.consumer().load(Ordering::Relaxed),
            produced: ring.producer().load(Ordering::Acquire),
            ring,
        })
    }

    /// Takes out the next one, if there is one. No system call.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.next == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.produced {
                return None;
            }
        }
        // SAFETY: the slot is inside the ring, and the producer has published it and will not touch it before we give it
        // back; every bit pattern is a `T`.
        let value = unsafe { self.ring.slot(self.next).read() };
        self.next = self.next.wrapping_add(1);
        self.ring.consumer().store(self.next, Ordering::Release);
        Some(value)
    }
}

impl<T: Slot> Ring<T> {
    /// Maps the ring that `socket` has at `place`, laid out as the kernel says, of `length` slots.
    fn map(
        socket: BorrowedFd<'_>,
        place: libc::off_t,
        layout: &libc::xdp_ring_offset,
        length: u32,
    ) -> io::Result<Self> {
        assert!(length.is_power_of_two(), "a ring of a power of two");
        let offset = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let slots = offset(layout.desc)?;
        let memory = Mapping::shared(slots + length as usize * size_of::<T>(), socket, place)?;
        Ok(Self {
            producer: memory.at(offset(layout.producer)?),
            consumer: memory.at(offset(layout.consumer)?),
            flags: memory.at(offset(layout.flags)?),
            slots: memory.at(slots),
            length,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it points into the mapping, which lives as long as `self`; the kernel uses it atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn slot(&self, position: u32) -> NonNull<T> {
        let index = position & (self.length - 1);
        // SAFETY: the index is below the length, and the mapping has that many slots.
        unsafe { self.slots.add(index as usize) }
    }
}

/// What rings hold: plain numbers, of which every bit pattern is one.
pub(super) trait Slot: Copy {}

/// An offset into the frames.
impl Slot for u64 {}
impl Slot for libc::xdp_desc {}

const _: () = assert!(size_of::<libc::xdp_desc>() == 16);
