//! The few commands of bpf(2) that we need: maps, programs at the receive hook, and the link that holds one at an interface.
//!
//! Everything is held by file descriptors and gone with them. So a process that dies, by `kill -9` too, leaves no program
//! at the interface.

mod command;
mod ring;

pub use ring::Ring;

use command::{Attributes, bpf, bpf_fd};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// One instruction as the kernel reads it: RFC 9669, 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Instruction(pub u64);

/// A map that programs and this process share.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key_length: usize,
    value_length: usize,
}

/// What a map is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapKind {
    /// Keys are looked up by hash.
    Hash,
    /// Keys are numbers from 0, all of them are there, and values are zeros at first.
    Array,
    /// Keys are numbers of queues, values are AF_XDP sockets.
    Sockets,
    /// What a program tells this process, see [`Ring`]: no keys, and as many bytes as it has entries.
    Ring,
}

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// In the driver, before the kernel makes a packet of its own out of the frame.
    Native,
    /// Behind the driver: works with every driver.
    Generic,
}

/// A program that the kernel has found sound.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// A program at an interface, as long as this lives.
#[derive(Debug)]
pub struct Attached {
    link: OwnedFd,
}

/// What a program did with a frame in a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// What it returned: [`XDP_PASS`] and so on.
    pub result: u32,
    /// Nanoseconds a run took, on average.
    pub nanoseconds: u32,
}

/// A program's result: the frame is dropped.
pub const XDP_DROP: u32 = 1;
/// A program's result: the frame goes on to the kernel.
pub const XDP_PASS: u32 = 2;

impl Map {
    /// A map of so many entries; lengths of keys and values in bytes.
    ///
    /// # Errors
    /// The kernel refuses: privileges, memory, or a kind that it does not have.
    pub fn new(kind: MapKind, key_length: u32, value_length: u32, entries: u32) -> io::Result<Self> {
        let map_type = match kind {
            MapKind::Hash => BPF_MAP_TYPE_HASH,
            MapKind::Array => BPF_MAP_TYPE_ARRAY,
            MapKind::Sockets => BPF_MAP_TYPE_XSKMAP,
            MapKind::Ring => BPF_MAP_TYPE_RINGBUF,
        };
        Self::create(map_type, key_length, value_length, entries, 0)
    }

    /// A map whose one value is another map, of the form of `inner`: what programs find there changes as one.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_map(inner: &Self) -> io::Result<Self> {
        let map = Self::create(BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, inner.as_raw_fd().cast_unsigned())?;
        map.set_map(inner)?;
        Ok(map)
    }

    /// Puts another map into a map of maps. When it returns, no program looks into the one that was there.
    ///
    /// # Errors
    /// It is not of the form of the first.
    pub fn set_map(&self, inner: &Self) -> io::Result<()> {
        self.set(&[0; 4], &inner.as_raw_fd().to_ne_bytes())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The map is full, or there is no such key.
    pub fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_length, "the kernel reads as much");
        let mut attributes = self.element(key);
        attributes.value = value.as_ptr() as u64;
        bpf(BPF_MAP_UPDATE_ELEM, &mut attributes).map(drop)
    }

    /// Reads the value of a key. Of a map of maps it is the number that the kernel has for the map there.
    ///
    /// # Errors
    /// There is no such key.
    pub fn value(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_length, "the kernel writes as much");
        let mut attributes = self.element(key);
        attributes.value = value.as_mut_ptr() as u64;
        bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes).map(drop)
    }

    /// Takes a key out.
    ///
    /// # Errors
    /// There is no such key.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        bpf(BPF_MAP_DELETE_ELEM, &mut self.element(key)).map(drop)
    }

    fn create(map_type: u32, key_size: u32, value_size: u32, max_entries: u32, inner_map_fd: u32) -> io::Result<Self> {
        let mut attributes = MapCreate {
            map_type,
            key_size,
            value_size,
            max_entries,
            map_flags: 0,
            inner_map_fd,
            numa_node: 0,
            map_name: NAME,
        };
        Ok(Self {
            fd: bpf_fd(BPF_MAP_CREATE, &mut attributes)?,
            key_length: key_size as usize,
            value_length: value_size as usize,
        })
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

impl Program {
    /// Loads a program for the receive hook.
    ///
    /// # Errors
    /// The kernel refuses; what it says of a program that it finds unsound is in the error.
    pub fn load(code: &[Instruction]) -> io::Result<Self> {
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
        let error = match bpf_fd(BPF_PROG_LOAD, &mut load) {
            Ok(fd) => return Ok(Self { fd }),
            Err(error) => error,
        };
        if !matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL)) {
            return Err(error);
        }
        let mut log = vec![0; VERIFIER_LOG_LENGTH];
        load.log_level = 1;
        load.log_size = u32::try_from(log.len()).map_err(io::Error::other)?;
        load.log_buf = log.as_mut_ptr() as u64;
        match bpf_fd(BPF_PROG_LOAD, &mut load) {
            Ok(fd) => Ok(Self { fd }),
            Err(_) => {
                let text = String::from_utf8_lossy(&log);
                let text = text.trim_end_matches('\0').trim_end();
                let end: Vec<_> = text.lines().rev().take(VERIFIER_LINES).collect();
                if end.is_empty() {
                    return Err(error);
                }
                let end: Vec<_> = end.into_iter().rev().collect();
                Err(io::Error::new(error.kind(), format!("{error}: {}", end.join("; "))))
            }
        }
    }

    /// Holds it at an interface, given by its number.
    ///
    /// # Errors
    /// The driver has no such hook, or somebody else's program is there.
    pub fn attach(&self, interface: u32, hook: Hook) -> io::Result<Attached> {
        let mut attributes = LinkCreate {
            prog_fd: self.fd.as_raw_fd(),
            target_ifindex: interface,
            attach_type: BPF_XDP,
            flags: match hook {
                Hook::Native => XDP_FLAGS_DRV_MODE,
                Hook::Generic => XDP_FLAGS_SKB_MODE,
            },
        };
        // The link holds the program; its own descriptor may go.
        let link = bpf_fd(BPF_LINK_CREATE, &mut attributes)?;
        Ok(Attached { link })
    }

    /// Runs it on a frame that no interface has seen, `repeat` times. The first `metadata` bytes of `frame` stand before
    /// the frame, where drivers put what they know of it.
    ///
    /// # Errors
    /// The frame is shorter than an Ethernet header or longer than a page.
    pub fn try_on(&self, frame: &[u8], metadata: usize, repeat: u32) -> io::Result<Trial> {
        let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
        let context = Context {
            data: u32::try_from(metadata).map_err(io::Error::other)?,
            data_end: length,
            rest: [0; 4],
        };
        let mut attributes = ProgramTest {
            prog_fd: self.fd.as_raw_fd(),
            retval: 0,
            data_size_in: length,
            data_size_out: 0,
            data_in: frame.as_ptr() as u64,
            data_out: 0,
            repeat,
            duration: 0,
            ctx_size_in: CONTEXT_LENGTH,
            ctx_size_out: 0,
            ctx_in: (&raw const context) as u64,
            ctx_out: 0,
        };
        bpf(BPF_PROG_TEST_RUN, &mut attributes)?;
        Ok(Trial {
            result: attributes.retval,
            nanoseconds: attributes.duration,
        })
    }
}

impl Attached {
    /// The number of the interface that it is at; 0: it is at none any more.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn interface(&self) -> io::Result<u32> {
        let mut info = LinkInfo::default();
        let mut attributes = ObjectInfo {
            bpf_fd: self.link.as_raw_fd(),
            info_len: LINK_INFO_LENGTH,
            info: (&raw mut info) as u64,
        };
        bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
        Ok(info.ifindex)
    }
}

/// The number of an interface, in the network namespace of this thread.
///
/// # Errors
/// There is none of this name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the kernel reads a string that ends and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(index)
}

/// The time that programs read, in nanoseconds since the machine started.
#[must_use]
pub fn ktime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in what outlives the call; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

impl Attributes for MapCreate {}
impl Attributes for MapElement {}
impl Attributes for ProgramLoad {}
impl Attributes for ProgramTest {}
impl Attributes for LinkCreate {}
impl Attributes for ObjectInfo {}

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

/// `union bpf_attr`, for BPF_PROG_TEST_RUN.
#[repr(C)]
struct ProgramTest {
    prog_fd: i32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
}

/// `struct xdp_md`, what a program is given, as a trial is told it: offsets in place of addresses.
#[repr(C)]
struct Context {
    data: u32,
    data_end: u32,
    rest: [u32; 4],
}

/// `union bpf_attr`, for BPF_LINK_CREATE.
#[repr(C)]
struct LinkCreate {
    prog_fd: i32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `union bpf_attr`, for BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct ObjectInfo {
    bpf_fd: i32,
    info_len: u32,
    info: u64,
}

/// `struct bpf_link_info`, of a link at the receive hook.
#[derive(Default)]
#[repr(C)]
struct LinkInfo {
    link_type: u32,
    id: u32,
    prog_id: u32,
    reserved: u32,
    ifindex: u32,
    reserved2: u32,
}

const _: () = assert!(size_of::<Instruction>() == 8);
const _: () = assert!(size_of::<MapCreate>() == 44);
const _: () = assert!(size_of::<MapElement>() == 32);
const _: () = assert!(size_of::<ProgramLoad>() == 64);
const _: () = assert!(size_of::<ProgramTest>() == 64);
const _: () = assert!(size_of::<Context>() == CONTEXT_LENGTH as usize);
const _: () = assert!(size_of::<LinkCreate>() == 16);
const _: () = assert!(size_of::<ObjectInfo>() == 16);
const _: () = assert!(size_of::<LinkInfo>() == LINK_INFO_LENGTH as usize);

/// What `bpftool` and `ip link` show.
const NAME: [u8; 16] = *b"tickgate_xdp\0\0\0\0";
/// No helper that the programs call is for GPL programs alone.
const LICENSE: &[u8] = b"MIT\0";
/// Bytes of what the kernel says of a program that it finds unsound.
const VERIFIER_LOG_LENGTH: usize = 1 << 20;
/// The last lines of it, which say what is wrong.
const VERIFIER_LINES: usize = 4;

const CONTEXT_LENGTH: u32 = 24;
const LINK_INFO_LENGTH: u32 = 24;
const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_MAP_TYPE_RINGBUF: u32 = 27;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
