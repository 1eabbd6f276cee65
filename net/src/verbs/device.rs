//! A device that is open, and its port.

use super::{done, made, zeroed};
use rdma_mummy_sys as sys;
use std::ffi::CStr;
use std::net::IpAddr;
use std::ptr::NonNull;
use std::{fmt, io};

/// An open RDMA device.
pub(crate) struct Device {
    context: NonNull<sys::ibv_context>,
}

/// Under which index of which port a device has an address of RoCEv2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GidEntry {
    pub(crate) port: u8,
    pub(crate) index: u8,
}

/// What a device has at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// RDMA READs under way that a queue pair can serve and ask for.
    pub(crate) reads: usize,
    /// Entries of a completion queue.
    pub(crate) completions: usize,
}

// SAFETY: libibverbs serves any thread; a context is not bound to the one that opened it.
unsafe impl Send for Device {}
// SAFETY: as above; its own locks guard what calls change.
unsafe impl Sync for Device {}

impl Device {
    /// Opens the device of this name, as `rdma link` shows it.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let mut count = 0;
        // SAFETY: the count is an int that outlives the call.
        let list = made(unsafe { sys::ibv_get_device_list(&raw mut count) })?;
        let mut found = None;
        let mut names = Vec::new();
        for index in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the list has `count` devices, each with a name that ends with 0.
            let (device, its) = unsafe {
                let device = *list.as_ptr().add(index);
                (device, CStr::from_ptr(sys::ibv_get_device_name(device)))
            };
            names.push(its.to_string_lossy().into_owned());
            if its.to_bytes() == name.as_bytes() {
                // SAFETY: a device of the list, which is not freed yet.
                found = Some(made(unsafe { sys::ibv_open_device(device) }));
            }
        }
        // SAFETY: it came from there, and is not used any more; an open device does not need it.
        unsafe { sys::ibv_free_device_list(list.as_ptr()) };
        let missing = || {
            let what = format!("no such device; there are: {}", names.join(" "));
            io::Error::new(io::ErrorKind::NotFound, what)
        };
        let device = Self {
            context: found.ok_or_else(missing)??,
        };
        device.make_events_nonblocking()?;
        Ok(device)
    }

    /// The index of an address among those of RoCEv2.
    pub(crate) fn gid(&self, address: IpAddr) -> io::Result<GidEntry> {
        let wanted = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        // SAFETY: numbers.
        let mut entries: [sys::ibv_gid_entry; GIDS_MAX] = unsafe { zeroed() };
        // SAFETY: there is room for as many entries as are said.
        let count = unsafe { sys::ibv_query_gid_table(self.context(), entries.as_mut_ptr(), entries.len(), 0) };
        let Ok(count) = usize::try_from(count) else {
            return done(i32::try_from(count).unwrap_or(libc::EIO)).map(|()| unreachable!("it is negative"));
        };
        let is_it = |entry: &&sys::ibv_gid_entry| {
            // SAFETY: both parts of the union are 16 bytes of numbers.
            entry.gid_type == GID_TYPE_ROCE_V2 && unsafe { entry.gid.raw } == wanted
        };
        let narrow = |number: u32| u8::try_from(number).ok();
        entries[..count]
            .iter()
            .find(is_it)
            .and_then(|entry| {
                Some(GidEntry {
                    port: narrow(entry.port_num)?,
                    index: narrow(entry.gid_index)?,
                })
            })
            .ok_or_else(|| {
                let what = format!("it has no address {address} of RoCEv2");
                io::Error::new(io::ErrorKind::AddrNotAvailable, what)
            })
    }

    /// Most payload of a packet that the port takes, bytes.
    pub(crate) fn mtu(&self, port: u8) -> io::Result<usize> {
        // SAFETY: numbers.
        let mut attributes: sys::ibv_port_attr = unsafe { zeroed() };
        // SAFETY: the attributes outlive the call.
        done(unsafe { sys::ibv_query_port(self.context(), port, &raw mut attributes) })?;
        Ok(128 << attributes.active_mtu)
    }

    /// What it has at most.
    pub(crate) fn limits(&self) -> io::Result<Limits> {
        // SAFETY: numbers.
        let mut attributes: sys::ibv_device_attr = unsafe { zeroed() };
        // SAFETY: the attributes outlive the call.
        done(unsafe { sys::ibv_query_device(self.context(), &raw mut attributes) })?;
        let least = attributes.max_qp_rd_atom.min(attributes.max_qp_init_rd_atom);
        Ok(Limits {
            reads: usize::try_from(least).unwrap_or(0),
            completions: usize::try_from(attributes.max_cqe).unwrap_or(0),
        })
    }

    /// What the device tells of itself or of a queue pair, for people, once. `None`: nothing more.
    pub(crate) fn poll_event(&self) -> Option<Event> {
        // SAFETY: a number and pointers.
        let mut event: sys::ibv_async_event = unsafe { zeroed() };
        // SAFETY: the event outlives the call, which does not wait.
        if unsafe { sys::ibv_get_async_event(self.context(), &raw mut event) } != 0 {
            return None;
        }
        let kind = event.event_type;
        // SAFETY: it was got just now, and is not acknowledged yet.
        unsafe { sys::ibv_ack_async_event(&raw mut event) };
        Some(Event(kind))
    }

    /// Whether the kernel still has it for programs. One that is taken away may go on working, and be waiting for those that
    /// have it open.
    pub(crate) fn is_there(&self) -> bool {
        // SAFETY: the context is open, and has its device; the path ends with 0.
        unsafe {
            let device = self.context.as_ref().device;
            libc::access((&raw const (*device).dev_path).cast(), libc::F_OK) == 0
        }
    }

    fn make_events_nonblocking(&self) -> io::Result<()> {
        // SAFETY: the context is open.
        let fd = unsafe { self.context.as_ref() }.async_fd;
        // SAFETY: flags of a descriptor that is open.
        let result = unsafe { libc::fcntl(fd, libc::F_SETFL, libc::fcntl(fd, libc::F_GETFL) | libc::O_NONBLOCK) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub(super) const fn context(&self) -> *mut sys::ibv_context {
        self.context.as_ptr()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: opened by us, and what was made of it is gone. A device that is gone has nothing to be closed.
        unsafe { sys::ibv_close_device(self.context()) };
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

/// What a device tells by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event(sys::ibv_event_type);

impl Event {
    /// The device serves nobody any more.
    pub(crate) fn is_end(self) -> bool {
        self.0 == sys::ibv_event_type::IBV_EVENT_DEVICE_FATAL
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the library's own number; its text is there for good, or null.
        let text = unsafe { sys::ibv_event_type_str(self.0) };
        if text.is_null() {
            return f.write_str("an event without a name");
        }
        // SAFETY: it ends with 0.
        f.write_str(&unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }
}

/// Addresses of a device that are looked through: what cards have at most.
const GIDS_MAX: usize = 256;
/// `enum ibv_gid_type`: RoCE version 2.
const GID_TYPE_ROCE_V2: u32 = 2;
