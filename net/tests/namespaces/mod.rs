//! Two network namespaces joined by a veth pair. They have no names: they, and what is in them, are gone with the thread that
//! made them.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::Command;

pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Two namespaces: `tgv0` with [`NEAR`] in the first, `tgv1` with [`FAR`] in the second. This thread goes between them.
pub(crate) struct Namespaces {
    pub(crate) near: File,
    pub(crate) far: File,
}

impl Namespaces {
    /// Each interface has so many queues. `None`, and a line that says so, without the privileges that it takes.
    pub(crate) fn new(queues: u8) -> Option<Self> {
        let mut places = Vec::new();
        for _ in 0..2 {
            // SAFETY: takes no pointers; this thread alone gets into a namespace of its own.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                println!(
                    "skipped: no network namespace: {}; run it as root",
                    std::io::Error::last_os_error()
                );
                return None;
            }
            places.push(File::open("/proc/thread-self/ns/net").unwrap());
        }
        let (far, near) = (places.pop()?, places.pop()?);
        let namespaces = Self { near, far };
        namespaces.in_near(|| {
            let path = format!("/proc/{}/fd/{}", std::process::id(), namespaces.far.as_raw_fd());
            let count = queues.to_string();
            let queues = ["numtxqueues", &count, "numrxqueues", &count];
            let veth = [
                &["link", "add", "tgv0"][..],
                &queues,
                &["type", "veth", "peer", "name", "tgv1"],
                &queues,
            ];
            ip(&veth.concat());
            ip(&["link", "set", "tgv1", "netns", &path]);
            bring_up("tgv0", NEAR);
        });
        namespaces.in_far(|| bring_up("tgv1", FAR));
        Some(namespaces)
    }

    pub(crate) fn in_near<R>(&self, act: impl FnOnce() -> R) -> R {
        Self::enter(&self.near);
        act()
    }

    pub(crate) fn in_far<R>(&self, act: impl FnOnce() -> R) -> R {
        Self::enter(&self.far);
        act()
    }

    pub(crate) fn enter(namespace: &File) {
        // SAFETY: takes no pointers; it changes this thread's namespace alone.
        let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }
}

fn bring_up(interface: &str, address: Ipv4Addr) {
    ip(&["addr", "add", &format!("{address}/24"), "dev", interface]);
    ip(&["link", "set", interface, "up"]);
}

pub(crate) fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("iproute2");
    let (said, wrong) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "ip {arguments:?}: {wrong}");
    said.into_owned()
}
