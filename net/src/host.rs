//! Facts of this host that decide whether a program can run, and that a recording carries.

use crate::options;
use socket2::{Domain, Protocol, Socket, Type};
use std::ffi::CStr;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// A resource limit of this process. `None` is unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// How far the process may raise it.
    pub hard: Option<u64>,
}

/// Why io_uring cannot be had.
#[derive(Debug)]
pub struct IoUringRefused {
    /// What `io_uring_setup` said.
    pub source: io::Error,
    /// kernel.io_uring_disabled: 0 allowed, 1 only to a group, 2 to nobody; `None` when the kernel has no such setting.
    pub disabled: Option<u8>,
}

/// The user who is at the other end of a Unix socket (SO_PEERCRED).
///
/// # Errors
/// It is no connected Unix socket.
pub fn peer_user(socket: &impl AsFd) -> io::Result<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes into `credentials`, which has its layout.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(credentials.uid)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Bytes of memory this process may lock (RLIMIT_MEMLOCK).
#[must_use]
pub fn memlock() -> Limit {
    limit(libc::RLIMIT_MEMLOCK)
}

/// Files this process may have open (RLIMIT_NOFILE).
#[must_use]
pub fn open_files() -> Limit {
    limit(libc::RLIMIT_NOFILE)
}

/// Raises the soft limit of open files to `wanted`, or as far as the hard limit lets it, and gives what holds then. Never
/// lowers it.
pub fn raise_open_files(wanted: u64) -> Limit {
    let now = open_files();
    let Some(soft) = now.soft.filter(|&soft| soft < wanted) else {
        return now;
    };
    let raised = libc::rlimit {
        rlim_cur: now.hard.map_or(wanted, |hard| wanted.min(hard)).max(soft),
        rlim_max: now.hard.unwrap_or(libc::RLIM_INFINITY),
    };
    // SAFETY: the kernel reads `raised`, which has its layout. When it refuses, the limit is as it was.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    open_files()
}

/// Release of the running kernel, as `uname -r` has it.
#[must_use]
pub fn kernel() -> String {
    first_line("/proc/sys/kernel/osrelease")
}

/// Ticks a second of the kernel's clock (CONFIG_HZ), measured; `None` before Linux 6.11.
#[must_use]
pub fn ticks_per_second() -> Option<u32> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).ok()?;
    options::ticks_per_second(socket.as_fd())
}

/// Name of this host.
#[must_use]
pub fn name() -> String {
    first_line("/proc/sys/kernel/hostname")
}

/// Name of the interface that has this address; `None` when none has.
#[must_use]
pub fn interface_of(address: IpAddr) -> Option<String> {
    let mut first = ptr::null_mut();
    // SAFETY: the kernel's list is written to `first`, and freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = first;
    // SAFETY: a list of `ifaddrs`, each of which lives until `freeifaddrs`; the last one's successor is null.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if found.is_none() && ip_of(entry.ifa_addr) == Some(address) {
            // SAFETY: a string that ends with a zero.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            found = Some(name.to_string_lossy().into_owned());
        }
    }
    // SAFETY: the list that `getifaddrs` gave, once.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// The address in a `sockaddr`, if it is one of IP.
fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null or a `sockaddr`, as `getifaddrs` has it.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one. It may not be aligned as one.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Model of the first CPU.
#[must_use]
pub fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown".into(), |(_, model)| model.trim().into())
}

/// Whether this process can have an io_uring: makes a small one and closes it.
///
/// # Errors
/// The kernel, its settings or the container refuse; the error says which and what to do.
pub fn io_uring() -> Result<(), IoUringRefused> {
    /// `struct io_uring_params` is 120 bytes.
    const PARAMS_WORDS: usize = 30;
    let mut params = [0_u32; PARAMS_WORDS];
    let entries: libc::c_uint = 4;
    // SAFETY: the kernel reads and writes `params`, which has the size of its struct; all zeros asks for nothing special.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, params.as_mut_ptr()) };
    match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => {
            // SAFETY: the kernel has just given this descriptor and nobody else owns it.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            Ok(())
        }
        _ => Err(IoUringRefused {
            source: io::Error::last_os_error(),
            disabled: first_line("/proc/sys/kernel/io_uring_disabled").parse().ok(),
        }),
    }
}

impl fmt::Display for IoUringRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "io_uring_setup: {}; ", self.source)?;
        match (self.source.raw_os_error(), self.disabled) {
            (Some(libc::EPERM), Some(level @ 1..)) => {
                write!(
                    f,
                    "kernel.io_uring_disabled is {level}: run `sysctl kernel.io_uring_disabled=0` as root"
                )
            }
            (Some(libc::EPERM), _) => f.write_str(
                "a seccomp filter of the container forbids it: allow the io_uring_* system calls in its profile \
                 (docker: --security-opt seccomp=unconfined)",
            ),
            (Some(libc::ENOSYS), _) => f.write_str(
                "the kernel is built without CONFIG_IO_URING, or a seccomp filter hides it: use another kernel, or \
                 allow the io_uring_* system calls in the container's profile",
            ),
            (Some(libc::ENOMEM), _) => {
                f.write_str("locked memory is used up: raise `ulimit -l` to 512 KiB or more a shard")
            }
            _ => f.write_str("check what the kernel log says"),
        }
    }
}

impl std::error::Error for IoUringRefused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.soft {
            Some(soft) => write!(f, "{soft}"),
            None => f.write_str("unlimited"),
        }
    }
}

fn limit(resource: libc::__rlimit_resource_t) -> Limit {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes to `limit`, which has its layout. It fails only for a resource that does not exist.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    let finite = |value| (value != libc::RLIM_INFINITY).then_some(value);
    Limit {
        soft: finite(limit.rlim_cur),
        hard: finite(limit.rlim_max),
    }
}

/// The first line of a file under /proc, or nothing when there is no such file.
fn first_line(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_says_what_it_is() {
        assert!(kernel().starts_with(|first: char| first.is_ascii_digit()));
        assert!(!cpu_model().is_empty());
        assert!(open_files().soft.is_none_or(|files| files > 3));
        assert!(
            memlock()
                .soft
                .is_none_or(|soft| memlock().hard.is_none_or(|hard| soft <= hard))
        );
    }

    #[test]
    fn the_clock_ticks_as_fast_as_kernels_do() {
        let release = kernel();
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || {
            numbers
                .next()
                .and_then(|number| number.parse::<u32>().ok())
                .unwrap_or(0)
        };
        let has_option = (number(), number()) >= (6, 11);
        let ticks = ticks_per_second();
        assert_eq!(ticks.is_some(), has_option, "{release}");
        assert!(
            ticks.is_none_or(|ticks| [100, 250, 300, 1_000].contains(&ticks)),
            "{ticks:?}"
        );
    }

    #[test]
    fn loopback_has_its_address_and_nobody_has_another() {
        assert_eq!(interface_of(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 1).into()), None);
    }

    #[test]
    fn the_limit_of_open_files_is_raised_as_far_as_it_goes_and_never_lowered() {
        let before = open_files();
        assert_eq!(raise_open_files(1), before);
        let wanted = before.soft.unwrap_or(u64::MAX).saturating_add(1);
        let after = raise_open_files(wanted);
        assert_eq!(after.hard, before.hard);
        assert!(after.soft >= before.soft && after.soft <= Some(wanted).max(before.soft));
        assert!(after.soft == before.hard || after.soft.is_none_or(|soft| soft >= wanted));
    }

    #[test]
    fn a_refused_io_uring_says_who_refuses_and_what_to_do() {
        let text = |errno, disabled| {
            IoUringRefused {
                source: io::Error::from_raw_os_error(errno),
                disabled,
            }
            .to_string()
        };
        assert!(text(libc::EPERM, Some(2)).contains("sysctl kernel.io_uring_disabled=0"));
        assert!(text(libc::EPERM, Some(0)).contains("seccomp"));
        assert!(text(libc::ENOSYS, None).contains("CONFIG_IO_URING"));
        assert!(text(libc::ENOMEM, None).contains("ulimit -l"));
    }

    #[test]
    fn the_probe_leaves_no_descriptor_behind() {
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        if io_uring().is_ok() {
            // Tests of other files open sockets meanwhile, but not thousands.
            let before = open();
            for _ in 0..200 {
                io_uring().unwrap();
            }
            assert!(open() < before + 100);
        }
    }
}
