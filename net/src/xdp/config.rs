//! Settings of an AF_XDP carrier: the table as a config has it, and the checked form.

use super::frame::Mac;
use super::interface::InterfaceName;
use super::memory::FRAME_LENGTH;
use super::queue::Queue;
use crate::link::LinkEnd;
use crate::options::UdpOptions;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// The table `[….afxdp]` of a link.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct XdpTable {
    /// Name of the interface.
    pub interface: String,
    /// Number of its queue.
    pub queue: u16,
    /// Whether the card reads and writes the frames itself.
    pub mode: Mode,
    /// `"kernel"` or a MAC, for the connecting end.
    pub neighbour: Option<String>,
    /// Frames of memory, half for receiving and half for sending; a power of two.
    pub frames: u32,
    /// Frames lie in huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// What happens where AF_XDP cannot be had: UDP sockets, or an error.
    pub fallback: bool,
}

/// What one end is built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpConfig {
    /// The interface.
    pub interface: InterfaceName,
    /// Number of its queue. All links of a queue are of one thread.
    pub queue: u16,
    /// Whether the card reads and writes the frames itself.
    pub mode: Mode,
    /// Who the next station towards the peer is.
    pub neighbour: Neighbour,
    /// Frames of the queue: half of them receive, half of them send.
    pub frames: u32,
    /// Frames lie in huge pages.
    pub huge_pages: bool,
    /// Where AF_XDP cannot be had, UDP sockets with these options take its place.
    pub fallback: Option<UdpOptions>,
}

/// Who moves the bytes between card and frames.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The card where it can, the kernel otherwise.
    Auto,
    /// The card, or there is an error.
    ZeroCopy,
    /// The kernel.
    Copy,
}

/// The next station towards the peer: the peer itself or a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbour {
    /// Whoever the kernel's neighbour table has for the peer's address at start-up.
    Kernel,
    /// This one.
    Static(Mac),
    /// Whoever frames of the accepted peer come from: for the listening end.
    Learnt,
}

impl XdpTable {
    /// The checked form for this end.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn check(&self, end: LinkEnd) -> Result<XdpConfig, String> {
        let named = |key: &'static str| move |what: &str| format!("afxdp: {key}: {what}");
        let in_range = FRAMES_MIN..=FRAMES_MAX;
        if !self.frames.is_power_of_two() || !in_range.contains(&self.frames) {
            let frames = self.frames;
            return Err(format!(
                "afxdp: frames = {frames} must be a power of two from {FRAMES_MIN} to {FRAMES_MAX}"
            ));
        }
        let neighbour = match (end, self.neighbour.as_deref()) {
            (LinkEnd::Connect { .. }, None) => {
                return Err("afxdp: neighbour is missing: \"kernel\" or the MAC of the peer or router".to_owned());
            }
            (LinkEnd::Connect { .. }, Some("kernel")) => Neighbour::Kernel,
            (LinkEnd::Connect { .. }, Some(text)) => {
                let mac: Mac = text.parse().map_err(named("neighbour"))?;
                if !mac.is_of_one_station() {
                    return Err(format!("afxdp: neighbour = \"{text}\" must be the MAC of one station"));
                }
                Neighbour::Static(mac)
            }
            (LinkEnd::Listen { .. }, None) => Neighbour::Learnt,
            (LinkEnd::Listen { .. }, Some(_)) => {
                return Err("afxdp: neighbour: a listening end learns it from its peer; leave it out".to_owned());
            }
        };
        let config = XdpConfig {
            interface: self.interface.parse().map_err(named("interface"))?,
            queue: self.queue,
            mode: self.mode,
            neighbour,
            frames: self.frames,
            huge_pages: self.huge_pages,
            fallback: self.fallback.then(UdpOptions::default),
        };
        check_address(end).map_err(|what| format!("afxdp: {what}"))?;
        Ok(config)
    }
}

impl XdpConfig {
    /// Bytes of memory that the queue allocates: frames, and four rings with a slot for each of them, what waits in
    /// an inbox. Links of one queue share all but the last.
    #[must_use]
    pub const fn memory(&self) -> usize {
        let frames = self.frames as usize;
        let slots = 2 * size_of::<u64>() + 2 * size_of::<libc::xdp_desc>();
        frames * FRAME_LENGTH as usize + frames * slots + Queue::inbox_memory(self.frames)
    }
}

/// Frames carry IPv4 addresses, and the program looks for one of ours.
fn check_address(end: LinkEnd) -> Result<(), String> {
    let is_plain = |address: &SocketAddr| matches!(address.ip(), IpAddr::V4(ip) if !ip.is_unspecified());
    let wrong = match end {
        LinkEnd::Connect { peer, local } => [Some(peer), local].into_iter().flatten().find(|one| !is_plain(one)),
        LinkEnd::Listen { local } => Some(local).filter(|one| !is_plain(one)),
    };
    match wrong {
        Some(address) => Err(format!("{address}: the address of an interface is wanted, and IPv4")),
        None => Ok(()),
    }
}

/// A few packets of each direction.
const FRAMES_MIN: u32 = 64;
/// 128 MiB.
const FRAMES_MAX: u32 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> XdpTable {
        XdpTable {
            interface: "eth1".to_owned(),
            queue: 0,
            mode: Mode::Auto,
            neighbour: Some("02:00:5e:10:00:01".to_owned()),
            frames: 4_096,
            huge_pages: false,
            fallback: false,
        }
    }

    fn connect(peer: [u8; 4]) -> LinkEnd {
        LinkEnd::Connect {
            peer: SocketAddr::from((peer, 7201)),
            local: None,
        }
    }

    fn listen(local: [u8; 4]) -> LinkEnd {
        LinkEnd::Listen {
            local: SocketAddr::from((local, 7201)),
        }
    }

    #[test]
    fn a_connecting_end_names_its_neighbour_and_a_listening_one_learns_it() {
        let mac = "02:00:5e:10:00:01".parse().unwrap();
        let config = table().check(connect([10, 77, 0, 2])).unwrap();
        assert_eq!(config.neighbour, Neighbour::Static(mac));
        let mut table = table();
        assert!(
            table
                .check(listen([10, 77, 0, 2]))
                .unwrap_err()
                .contains("leave it out")
        );
        table.neighbour = Some("kernel".to_owned());
        assert_eq!(
            table.check(connect([10, 77, 0, 2])).unwrap().neighbour,
            Neighbour::Kernel
        );
        table.neighbour = None;
        assert!(
            table
                .check(connect([10, 77, 0, 2]))
                .unwrap_err()
                .contains("neighbour is missing")
        );
        assert_eq!(
            table.check(listen([10, 77, 0, 2])).unwrap().neighbour,
            Neighbour::Learnt
        );
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refused = |change: fn(&mut XdpTable), word: &str| {
            let mut table = table();
            change(&mut table);
            let what = table.check(connect([10, 77, 0, 2])).unwrap_err();
            assert!(what.contains(word), "{what}");
        };
        refused(|table| table.frames = 1_000, "frames = 1000");
        refused(|table| table.frames = 32, "frames = 32");
        refused(|table| table.frames = 131_072, "frames = 131072");
        refused(|table| table.interface = "an interface".to_owned(), "interface");
        refused(|table| table.neighbour = Some("02:00".to_owned()), "neighbour");
        for nobody in ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00"] {
            let wrong = XdpTable {
                neighbour: Some(nobody.to_owned()),
                ..table()
            };
            let error = wrong.check(connect([10, 77, 0, 2])).unwrap_err();
            assert!(error.ends_with("must be the MAC of one station"), "{error}");
        }
        let listening = XdpTable {
            neighbour: None,
            ..table()
        };
        assert!(listening.check(listen([0, 0, 0, 0])).unwrap_err().contains("0.0.0.0"));
    }

    #[test]
    fn memory_is_that_of_frames_and_rings() {
        let config = table().check(connect([10, 77, 0, 2])).unwrap();
        assert_eq!(config.memory(), 4_096 * 2_048 + 4_096 * (8 + 8 + 16 + 16) + 512 * 32);
    }
}
