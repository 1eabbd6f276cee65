//! Set-up of one AF_XDP socket: frames registered, rings made and mapped, bound to a queue of an interface.

use super::memory::{FRAME_LENGTH, Frames};
use super::ring::{Consumer, Producer};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An AF_XDP socket with its rings.
#[derive(Debug)]
pub(super) struct XdpSocket {
    fd: OwnedFd,
    /// To the kernel: frames it may receive into.
    pub(super) fill: Producer<u64>,
    /// From the kernel: frames received.
    pub(super) receive: Consumer<libc::xdp_desc>,
    /// To the kernel: frames to be sent.
    pub(super) transmit: Producer<libc::xdp_desc>,
    /// From the kernel: frames that were sent.
    pub(super) completion: Consumer<u64>,
}

/// Who moves the bytes between card and frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copying {
    /// The card itself.
    Zero,
    /// The kernel.
    Kernel,
}

impl XdpSocket {
    /// Opens a socket on a queue, each ring of `length` slots.
    pub(super) fn open(frames: &Frames, length: u32, interface: u32, queue: u16, copying: Copying) -> io::Result<Self> {
        let fd = unbound(frames)?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(&fd, ring, &length)?;
        }
        let layout = layout(&fd)?;
        let (socket, far) = (fd.as_fd(), |place: libc::c_ulonglong| {
            libc::off_t::try_from(place).map_err(io::Error::other)
        });
        let fill = Producer::map(socket, far(libc::XDP_UMEM_PGOFF_FILL_RING)?, &layout.fr, length)?;
        let completion = Consumer::map(socket, far(libc::XDP_UMEM_PGOFF_COMPLETION_RING)?, &layout.cr, length)?;
        let receive = Consumer::map(socket, libc::XDP_PGOFF_RX_RING, &layout.rx, length)?;
        let transmit = Producer::map(socket, libc::XDP_PGOFF_TX_RING, &layout.tx, length)?;
        bind(&fd, interface, queue, copying)?;
        Ok(Self {
            fd,
            fill,
            receive,
            transmit,
            completion,
        })
    }

    /// Has the kernel send what is in the ring. `false`: it has not sent all of it yet.
    pub(super) fn kick_transmit(&self) -> io::Result<bool> {
        // SAFETY: no buffer and no address are passed.
        let result = unsafe {
            let nothing = std::ptr::null();
            libc::sendto(self.fd.as_raw_fd(), nothing, 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
        };
        done(result)
    }

    /// Has the driver look at the ring of frames to be filled.
    pub(super) fn kick_fill(&self) -> io::Result<bool> {
        // SAFETY: no buffer and no address are passed.
        let result = unsafe {
            let (fd, nothing) = (self.fd.as_raw_fd(), std::ptr::null_mut());
            libc::recvfrom(
                fd,
                nothing,
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        done(result)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sorts the outcomes of a wakeup: all done, not all yet, unusable.
fn done(result: libc::ssize_t) -> io::Result<bool> {
    if result >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // The kernel sends a few dozen frames a call; the card's queue, or memory for packets, may be short.
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(false),
        // A network that is down loses datagrams, as it does under a UDP socket.
        Some(libc::ENETDOWN) => Ok(true),
        _ => Err(error),
    }
}

/// A socket that has the frames and is on no queue.
pub(super) fn unbound(frames: &Frames) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    register(&fd, frames)?;
    Ok(fd)
}

/// Registers the frames with the socket.
fn register(fd: &OwnedFd, frames: &Frames) -> io::Result<()> {
    let (addr, len) = frames.region();
    let region = libc::xdp_umem_reg {
        addr,
        len,
        chunk_size: FRAME_LENGTH,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &region)
}

fn set<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = length_of::<T>();
    // SAFETY: the kernel reads `length` bytes of `value`.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            (&raw const *value).cast(),
            length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The length of a value, as calls on sockets want it.
const fn length_of<T>() -> libc::socklen_t {
    let length = size_of::<T>();
    assert!(length < 1_000, "a handful of numbers");
    #[allow(clippy::cast_possible_truncation, reason = "it was just looked at")]
    let length = length as libc::socklen_t;
    length
}

/// Where positions and slots are in each ring's mapping.
fn layout(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: made of numbers, of which zeros are some.
    let mut layout: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = length_of::<libc::xdp_mmap_offsets>();
    let (option, value) = (libc::XDP_MMAP_OFFSETS, (&raw mut layout).cast());
    // SAFETY: the kernel writes at most `length` bytes to `layout`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, value, &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // Kernels before 5.4 have no flags there.
    if length != length_of::<libc::xdp_mmap_offsets>() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(layout)
}

fn bind(fd: &OwnedFd, interface: u32, queue: u16, copying: Copying) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: FAMILY,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP
            | match copying {
                Copying::Zero => libc::XDP_ZEROCOPY,
                Copying::Kernel => libc::XDP_COPY,
            },
        sxdp_ifindex: interface,
        sxdp_queue_id: u32::from(queue),
        sxdp_shared_umem_fd: 0,
    };
    let length = length_of::<libc::sockaddr_xdp>();
    // SAFETY: the kernel reads `length` bytes of `address`.
    let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// AF_XDP in the type of the address's field.
const FAMILY: u16 = 44;
const _: () = assert!(FAMILY as libc::c_int == libc::AF_XDP);
