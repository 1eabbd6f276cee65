//! A board behind VFIO: its BAR 0 and memory that it may reach, in this process, without a driver of its own in the kernel.
//!
//! **This file has not been run.** It compiles, and follows `linux/vfio.h` and the kernel's documentation; no machine with a
//! board and an IOMMU was at hand. The rings, the doorbell and the recovery that stand on it were run against the RTL in
//! simulation.

use super::DmaMem;
use crate::driver::Bar;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::rc::Rc;

/// The registers of a board.
#[derive(Debug)]
pub struct VfioBar {
    device: Rc<Device>,
    registers: Mapping,
}

/// Memory that the board reaches.
#[derive(Debug)]
pub struct VfioMem {
    device: Rc<Device>,
    memory: Mapping,
}

/// A device, and what holds it.
#[derive(Debug)]
struct Device {
    device: File,
    _group: File,
    container: File,
}

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

/// Opens the device at a PCI address such as `0000:01:00.0` and gives it `bytes` of memory. The device is bound to the driver
/// `vfio-pci`.
///
/// # Errors
/// There is no VFIO or no such device, its group is not whole, or its BAR 0 cannot be mapped.
pub fn open(address: &str, bytes: usize) -> io::Result<(VfioBar, VfioMem)> {
    let group = group(address)?;
    let container = open_file(Path::new("/dev/vfio/vfio"))?;
    if ioctl(&container, VFIO_GET_API_VERSION, 0)? != VFIO_API_VERSION {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "another version of VFIO"));
    }
    let group = open_file(&Path::new("/dev/vfio").join(group))?;
    let mut status = GroupStatus { argsz: 8, flags: 0 };
    ioctl(&group, VFIO_GROUP_GET_STATUS, (&raw mut status) as u64)?;
    if status.flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "not all devices of the group are bound to vfio-pci",
        ));
    }
    let container_fd = container.as_raw_fd();
    ioctl(&group, VFIO_GROUP_SET_CONTAINER, (&raw const container_fd) as u64)?;
    ioctl(&container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU)?;
    let name = std::ffi::CString::new(address)?;
    let fd = ioctl(&group, VFIO_GROUP_GET_DEVICE_FD, name.as_ptr() as u64)?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    let device = unsafe { File::from_raw_fd(fd) };
    let device = Rc::new(Device {
        device,
        _group: group,
        container,
    });
    let region = device.region(VFIO_PCI_BAR0_REGION_INDEX)?;
    let length = usize::try_from(region.size).map_err(io::Error::other)?;
    let registers = Mapping::new(length, libc::MAP_SHARED, device.device.as_raw_fd(), region.offset)?;
    device.let_it_master()?;
    let memory = Mapping::new(
        bytes.next_multiple_of(PAGE),
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        -1,
        0,
    )?;
    device.map(&memory)?;
    let bar = VfioBar {
        device: Rc::clone(&device),
        registers,
    };
    Ok((bar, VfioMem { device, memory }))
}

impl Bar for VfioBar {
    fn read(&mut self, offset: u32) -> u32 {
        // SAFETY: inside the mapping and aligned; a read of a register has no other effect here.
        u32::from_le(unsafe { self.registers.at::<u32>(offset as usize).read_volatile() })
    }

    fn write(&mut self, offset: u32, value: u32) {
        // SAFETY: inside the mapping and aligned.
        unsafe { self.registers.at::<u32>(offset as usize).write_volatile(value.to_le()) };
    }

    fn reset(&mut self) {
        // A board that cannot be reset so does not read as one that was: it is not opened.
        let _: io::Result<i32> = ioctl(&self.device.device, VFIO_DEVICE_RESET, 0);
        let _: io::Result<()> = self.device.let_it_master();
    }
}

impl DmaMem for VfioMem {
    fn address(&self) -> u64 {
        IOVA
    }

    fn length(&self) -> usize {
        self.memory.length
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (place, &byte) in (offset..).zip(bytes) {
            // SAFETY: inside the mapping.
            unsafe { self.memory.at::<u8>(place).write_volatile(byte) };
        }
    }

    fn read(&mut self, offset: usize, bytes: &mut [u8]) {
        for (place, byte) in (offset..).zip(bytes) {
            // SAFETY: inside the mapping.
            *byte = unsafe { self.memory.at::<u8>(place).read_volatile() };
        }
    }
}

impl Drop for VfioMem {
    fn drop(&mut self) {
        let mut unmap = DmaUnmap {
            argsz: size_of_u32::<DmaUnmap>(),
            flags: 0,
            iova: IOVA,
            size: self.memory.length as u64,
        };
        // The board may not reach what is given back.
        let _: io::Result<i32> = ioctl(&self.device.container, VFIO_IOMMU_UNMAP_DMA, (&raw mut unmap) as u64);
    }
}

impl Device {
    fn region(&self, index: u32) -> io::Result<RegionInfo> {
        let mut info = RegionInfo {
            argsz: size_of_u32::<RegionInfo>(),
            flags: 0,
            index,
            cap_offset: 0,
            size: 0,
            offset: 0,
        };
        ioctl(&self.device, VFIO_DEVICE_GET_REGION_INFO, (&raw mut info) as u64)?;
        Ok(info)
    }

    /// Lets the board read and write memory: bit 2 of the command register in its configuration space.
    fn let_it_master(&self) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let command = self.region(VFIO_PCI_CONFIG_REGION_INDEX)?.offset + PCI_COMMAND;
        let mut word = [0; 2];
        self.device.read_exact_at(&mut word, command)?;
        let word = u16::from_le_bytes(word) | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
        self.device.write_all_at(&word.to_le_bytes(), command)
    }

    fn map(&self, memory: &Mapping) -> io::Result<()> {
        let mut map = DmaMap {
            argsz: size_of_u32::<DmaMap>(),
            flags: VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
            vaddr: memory.start.as_ptr() as u64,
            iova: IOVA,
            size: memory.length as u64,
        };
        ioctl(&self.container, VFIO_IOMMU_MAP_DMA, (&raw mut map) as u64).map(drop)
    }
}

impl Mapping {
    fn new(length: usize, flags: libc::c_int, fd: libc::c_int, offset: u64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The place of a `T` in it.
    fn at<T>(&self, offset: usize) -> *mut T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.length), "{offset} is inside");
        // SAFETY: it stays within the mapping.
        let place = unsafe { self.start.add(offset) }.cast::<T>();
        assert!(place.is_aligned(), "{offset} is aligned");
        place.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what points into it does not outlive it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The number of its IOMMU group.
fn group(address: &str) -> io::Result<OsString> {
    let link = Path::new("/sys/bus/pci/devices").join(address).join("iommu_group");
    let path = std::fs::read_link(&link)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", link.display())))?;
    path.file_name()
        .map(ToOwned::to_owned)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn ioctl(file: &File, request: libc::Ioctl, argument: u64) -> io::Result<i32> {
    // SAFETY: what `argument` points to, where it does, outlives the call and is as the request wants it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, argument) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

#[allow(clippy::cast_possible_truncation, reason = "a few dozen bytes")]
const fn size_of_u32<T>() -> u32 {
    size_of::<T>() as u32
}

/// `struct vfio_group_status`.
#[repr(C)]
struct GroupStatus {
    argsz: u32,
    flags: u32,
}

/// `struct vfio_region_info`.
#[repr(C)]
struct RegionInfo {
    argsz: u32,
    flags: u32,
    index: u32,
    cap_offset: u32,
    size: u64,
    offset: u64,
}

/// `struct vfio_iommu_type1_dma_map`.
#[repr(C)]
struct DmaMap {
    argsz: u32,
    flags: u32,
    vaddr: u64,
    iova: u64,
    size: u64,
}

/// `struct vfio_iommu_type1_dma_unmap`.
#[repr(C)]
struct DmaUnmap {
    argsz: u32,
    flags: u32,
    iova: u64,
    size: u64,
}

const _: () = assert!(size_of::<GroupStatus>() == 8);
const _: () = assert!(size_of::<RegionInfo>() == 32);
const _: () = assert!(size_of::<DmaMap>() == 32);
const _: () = assert!(size_of::<DmaUnmap>() == 24);

/// Where the board has the memory.
const IOVA: u64 = 1 << 32;
const PAGE: usize = 4_096;
const PCI_COMMAND: u64 = 4;
const PCI_COMMAND_MEMORY: u16 = 1 << 1;
const PCI_COMMAND_MASTER: u16 = 1 << 2;

/// `_IO(';', 100 + n)`.
const fn request(number: libc::Ioctl) -> libc::Ioctl {
    (0x3b << 8) | (100 + number)
}

const VFIO_API_VERSION: i32 = 0;
const VFIO_TYPE1_IOMMU: u64 = 1;
const VFIO_GET_API_VERSION: libc::Ioctl = request(0);
const VFIO_SET_IOMMU: libc::Ioctl = request(2);
const VFIO_GROUP_GET_STATUS: libc::Ioctl = request(3);
const VFIO_GROUP_SET_CONTAINER: libc::Ioctl = request(4);
const VFIO_GROUP_GET_DEVICE_FD: libc::Ioctl = request(6);
const VFIO_DEVICE_GET_REGION_INFO: libc::Ioctl = request(8);
const VFIO_DEVICE_RESET: libc::Ioctl = request(11);
const VFIO_IOMMU_MAP_DMA: libc::Ioctl = request(13);
const VFIO_IOMMU_UNMAP_DMA: libc::Ioctl = request(14);
const VFIO_GROUP_FLAGS_VIABLE: u32 = 1;
const VFIO_PCI_BAR0_REGION_INDEX: u32 = 0;
const VFIO_PCI_CONFIG_REGION_INDEX: u32 = 7;
const VFIO_DMA_MAP_FLAG_READ: u32 = 1;
const VFIO_DMA_MAP_FLAG_WRITE: u32 = 1 << 1;
