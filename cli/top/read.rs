//! Reads the counters of every port of every RDMA device: files below a root, and the drivers of the interfaces.

use super::catalog::{Counter, Source};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A port of a device, in the order of the screen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Port {
    pub(super) device: String,
    pub(super) port: u32,
}

/// What a port counted at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Counts {
    /// The network interface of the port, where the kernel tells it.
    pub(super) interface: Option<String>,
    /// What there is; what is absent is not here.
    pub(super) values: BTreeMap<String, u64>,
}

/// All ports at one moment.
pub(super) type Sample = BTreeMap<Port, Counts>;

/// Where the kernel lists RDMA devices.
pub(super) const DEVICES: &str = "sys/class/infiniband";

/// Reads all ports. `ask` gives the counters of an interface, as `ethtool -S` names them.
pub(super) fn sample(root: &Path, catalog: &[Counter], ask: impl Fn(&str) -> Vec<(String, u64)>) -> Sample {
    let mut ports = Sample::new();
    let devices = root.join(DEVICES);
    for device in names(&devices) {
        let of_device = devices.join(&device);
        for number in names(&of_device.join("ports")) {
            let Ok(port) = number.parse() else { continue };
            let device = device.clone();
            let counts = counts(&of_device, &number, catalog, &ask);
            ports.insert(Port { device, port }, counts);
        }
    }
    ports
}

fn counts(device: &Path, port: &str, catalog: &[Counter], ask: impl Fn(&str) -> Vec<(String, u64)>) -> Counts {
    let folder = device.join("ports").join(port);
    let interface = interface(device, &folder);
    // A device that goes away while it is read leaves files that say nothing.
    let of_port = catalog.iter().filter(|counter| counter.source == Source::Port);
    let mut values: BTreeMap<String, u64> = of_port
        .filter_map(|counter| {
            let value = text(&folder.join("hw_counters").join(&counter.name))?.parse().ok()?;
            Some((counter.name.clone(), value))
        })
        .collect();
    let asked = interface.as_deref().map(ask).unwrap_or_default();
    let is_known = |name: &str| {
        let mut of_interface = catalog.iter().filter(|counter| counter.source == Source::Interface);
        of_interface.any(|counter| counter.name == name)
    };
    values.extend(asked.into_iter().filter(|(name, _)| is_known(name)));
    Counts { interface, values }
}

/// The interface of the port's first address; of cards, else the device's; of rxe, else its parent.
fn interface(device: &Path, port: &Path) -> Option<String> {
    text(&port.join("gid_attrs/ndevs/0"))
        .or_else(|| names(&device.join("device/net")).into_iter().next())
        .or_else(|| text(&device.join("parent")))
}

/// The text of a file without blanks around it; `None` when there is none, or nothing in it.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The names in a folder; none when there is no such folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
