//! The few commands of bpf(2) that the carrier needs: maps, a program, and the link that holds it at an interface.
//!
//! Everything is held by file descriptors and gone with them. So a process that dies, by `kill -9` too, leaves no program
//! at the interface.

use super::program::Instruction;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A map that the program and this process share.
#[derive(Debug)]
pub(super) struct Map {
    fd: OwnedFd,
    key_length: usize,
    value_length: usize,
}

/// What a map is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapKind {
    /// Keys are looked up by hash.
    Hash,
    /// Keys are numbers of queues, values are AF_XDP sockets.
    Sockets,
}

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hook {
    /// In the driver, before the kernel makes a packet of its own out of the frame.
    Native,
    /// Behind the driver: works with every driver.
    Generic,
}

/// A program at an interface, as long as this lives.
#[derive(Debug)]
pub(super) struct Attached {
    _link: OwnedFd,
}

impl Map {
    /// A map of so many entries; lengths of keys and values in bytes.
    pub(super) fn new(kind: MapKind, key_length: u32, value_length: u32, entries: u32) -> io::Result<Self> {
        let mut attributes = MapCreate {
            map_type: match kind {
                MapKind::Hash => BPF_MAP_TYPE_HASH,
                MapKind::Sockets => BPF_MAP_TYPE_XSKMAP,
            },
            key_size: key_length,
            value_size: value_length,
            max_entries: entries,
            map_flags: 0,
            inner_map_fd: 0,
            numa_node: 0,
            map_name: NAME,
        };
        Ok(Self {
            fd: bpf_fd(BPF_MAP_CREATE, &mut attributes)?,
            key_length: key_length as usize,
            value_length: value_length as usize,
        })
    }

    /// Sets the value of a key.
    pub(super) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_length, "the kernel reads as much");
        let mut attributes = self.element(key);
        attributes.value = value.as_ptr() as u64;
        bpf(BPF_MAP_UPDATE_ELEM, &mut attributes).map(drop)
    }

    /// Takes a key out.
    pub(super) fn remove(&self, key: &[u8]) -> io::Result<()> {
        bpf(BPF_MAP_DELETE_ELEM, &mut self.element(key)).map(drop)
    }

    fn element(&self, key: &[u8]) -> MapElement {
        assert_eq!(key.len(), self.key_length, "the kernel reads as much");
        MapElement {
            map_fd: self.fd.as_raw_fd(),
            pad: 0,
            key: key.as_ptr() as u64,
            value: 0,
            flags: 0,
        }
    }
}

impl AsRawFd for Map {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Attached {
    /// Loads a program and holds it at an interface.
    pub(super) fn new(code: &[Instruction], interface: u32, hook: Hook) -> io::Result<Self> {
        let mut load = ProgramLoad {
            prog_type: BPF_PROG_TYPE_XDP,
            insn_cnt: u32::try_from(code.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            insns: code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log_buf: 0,
            kern_version: 0,
            prog_flags: 0,
            prog_name: NAME,
        };
        let program = bpf_fd(BPF_PROG_LOAD, &mut load)?;
        let mut attributes = LinkCreate {
            prog_fd: program.as_raw_fd(),
            target_ifindex: interface,
            attach_type: BPF_XDP,
            flags: match hook {
                Hook::Native => XDP_FLAGS_DRV_MODE,
                Hook::Generic => XDP_FLAGS_SKB_MODE,
            },
        };
        // The link holds the program; its own descriptor may go.
        let _link = bpf_fd(BPF_LINK_CREATE, &mut attributes)?;
        Ok(Self { _link })
    }
}

/// A command's attributes: plain numbers in the kernel's layout without padding; pointers in them are valid for the
/// call.
trait Attributes {}

impl Attributes for MapCreate {}
impl Attributes for MapElement {}
impl Attributes for ProgramLoad {}
impl Attributes for LinkCreate {}

/// A command whose result is a file descriptor.
fn bpf_fd<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bpf<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<RawFd> {
    let size = size_of::<A>();
    // SAFETY: the kernel reads `size` bytes of `attributes` and takes what follows for zeros. What their pointers point
    // to is borrowed by our callers until the call is over, and as long as the lengths in them, or of the map, say.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(io::Error::other)
}

/// `union bpf_attr`, for BPF_MAP_CREATE.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

/// `union bpf_attr`, for commands on elements.
#[repr(C)]
struct MapElement {
    map_fd: i32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr`, for BPF_PROG_LOAD.
#[repr(C)]
struct ProgramLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
}

/// `union bpf_attr`, for BPF_LINK_CREATE.
#[repr(C)]
struct LinkCreate {
    prog_fd: i32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

const _: () = assert!(size_of::<MapCreate>() == 44);
const _: () = assert!(size_of::<MapElement>() == 32);
const _: () = assert!(size_of::<ProgramLoad>() == 64);
const _: () = assert!(size_of::<LinkCreate>() == 16);

/// What `bpftool` and `ip link` show.
const NAME: [u8; 16] = *b"tickgate_xdp\0\0\0\0";
/// No helper that the program calls is for GPL programs alone.
const LICENSE: &[u8] = b"MIT\0";

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
