//! What carries the datagrams of LTP, chosen once at start-up by the config.

use crate::datagram::{Datagram, PathChange};
use crate::error::SetupError;
use crate::link::LinkEnd;
use crate::options::UdpOptions;
use crate::paths::Paths;
use crate::udp::UdpPeer;
use crate::xdp::{self, XdpConfig, XdpPeer, XdpTable};
use serde::Deserialize;
use std::io;
use std::net::SocketAddr;
use types::Timestamp;

/// `carrier = "…"` of a link.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum CarrierKind {
    /// A UDP socket of the kernel.
    Udp,
    /// AF_XDP, with a table `[….afxdp]` beside it.
    Afxdp,
}

/// Which carrier, and its settings.
#[derive(Clone, Copy, Debug)]
pub enum CarrierConfig {
    /// A UDP socket of the kernel.
    Udp(UdpOptions),
    /// AF_XDP: past the kernel's network stack.
    Xdp(XdpConfig),
}

/// One end of the chosen carrier. Which it is, is looked at once a call, and the branch predictor knows it beforehand.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are a handful, and none moves once it is in its link"
)]
pub enum Carrier {
    /// A UDP socket of the kernel.
    Udp(UdpPeer),
    /// AF_XDP.
    Xdp(XdpPeer),
    /// Two of them, each on a way of its own.
    Paths(Box<Paths<Self>>),
}

impl CarrierConfig {
    /// The carrier of a link by what its config says; a UDP socket where it says nothing.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn check(
        kind: Option<CarrierKind>,
        afxdp: Option<&XdpTable>,
        udp: Option<UdpOptions>,
        end: LinkEnd,
    ) -> Result<Self, String> {
        if let Some(options) = udp {
            options.check()?;
        }
        match (kind, afxdp) {
            (None | Some(CarrierKind::Udp), None) => Ok(Self::Udp(udp.unwrap_or_default())),
            (Some(CarrierKind::Afxdp), Some(table)) => {
                let config = table.check(end)?;
                if udp.is_some() && config.fallback.is_none() {
                    return Err(
                        "a table udp wants carrier = \"udp\", or fallback = true in the table afxdp".to_owned(),
                    );
                }
                let fallback = config.fallback.map(|plain| udp.unwrap_or(plain));
                Ok(Self::Xdp(XdpConfig { fallback, ..config }))
            }
            (Some(CarrierKind::Afxdp), None) => {
                Err("carrier = \"afxdp\" wants a table afxdp with interface, queue, mode, frames, fallback".to_owned())
            }
            (None | Some(CarrierKind::Udp), Some(_)) => Err("a table afxdp wants carrier = \"afxdp\"".to_owned()),
        }
    }

    /// Whether an end can be opened on this host, as far as that can be found out without opening it. Gives a line for
    /// people, if there is something to tell.
    ///
    /// # Errors
    /// AF_XDP cannot be had, and nothing may take its place.
    pub fn probe(&self, end: LinkEnd) -> Result<Option<String>, SetupError> {
        let Self::Xdp(config) = self else { return Ok(None) };
        match xdp::probe(config, end) {
            Ok(line) => Ok(Some(line)),
            Err(error) if config.fallback.is_some() => {
                Ok(Some(format!("no AF_XDP, a UDP socket would take its place: {error}")))
            }
            Err(error) => Err(error),
        }
    }

    /// Bytes of memory that the carrier allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
            Self::Xdp(config) => config.memory(),
        }
    }
}

impl Carrier {
    /// Opens one end: the connecting end knows its peer, the listening end learns it. Where AF_XDP cannot be had and the
    /// config allows it, the end is a UDP socket. Which of them it is, is in the log.
    ///
    /// # Errors
    /// The local address cannot be had, there is no way to the peer, or AF_XDP cannot be had and nothing may take its
    /// place.
    pub fn open(config: &CarrierConfig, end: LinkEnd) -> Result<Self, SetupError> {
        match config {
            CarrierConfig::Udp(options) => Self::open_udp(options, end),
            CarrierConfig::Xdp(config) => match XdpPeer::open(config, end) {
                Ok(xdp) => {
                    tracing::info!("{xdp}");
                    Ok(Self::Xdp(xdp))
                }
                Err(error) => {
                    let Some(options) = &config.fallback else {
                        return Err(error);
                    };
                    tracing::warn!("no AF_XDP, a UDP socket takes its place: {error}");
                    Self::open_udp(options, end)
                }
            },
        }
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(udp) => udp.local_addr(),
            Self::Xdp(xdp) => Ok(xdp.local_addr()),
            Self::Paths(paths) => paths.carriers()[0].local_addr(),
        }
    }

    fn open_udp(options: &UdpOptions, end: LinkEnd) -> Result<Self, SetupError> {
        let socket = match end {
            LinkEnd::Connect { peer, local } => UdpPeer::connect(peer, local, options),
            LinkEnd::Listen { local } => UdpPeer::learn(local, options),
        };
        let socket = socket?;
        let address = socket
            .local_addr()
            .map_or_else(|_| "nowhere".to_owned(), |local| local.to_string());
        tracing::info!("UDP socket at {address}: {}", socket.readback());
        Ok(Self::Udp(socket))
    }
}

/// Does the same with whichever it is.
macro_rules! with {
    ($carrier:expr, $end:ident => $call:expr) => {
        match $carrier {
            Carrier::Udp($end) => $call,
            Carrier::Xdp($end) => $call,
            Carrier::Paths($end) => $call,
        }
    };
}

impl Datagram for Carrier {
    fn send(&mut self, datagram: &[u8]) -> io::Result<bool> {
        with!(self, end => end.send(datagram))
    }

    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        with!(self, end => end.recv(buffer))
    }

    fn reply(&mut self, datagram: &[u8]) -> io::Result<bool> {
        with!(self, end => end.reply(datagram))
    }

    fn flush(&mut self) -> io::Result<()> {
        with!(self, end => end.flush())
    }

    fn is_from_peer(&self) -> bool {
        with!(self, end => end.is_from_peer())
    }

    fn accept_peer(&mut self) {
        with!(self, end => end.accept_peer());
    }

    fn name(&self) -> &'static str {
        with!(self, end => end.name())
    }

    fn peer(&self) -> Option<SocketAddr> {
        with!(self, end => end.peer())
    }

    fn source(&self) -> Option<SocketAddr> {
        with!(self, end => end.source())
    }

    fn unreachable(&self) -> u64 {
        with!(self, end => end.unreachable())
    }

    fn dropped(&self) -> u64 {
        with!(self, end => end.dropped())
    }

    fn heard(&mut self, now: Timestamp) {
        with!(self, end => end.heard(now));
    }

    fn path_change(&mut self) -> Option<PathChange> {
        with!(self, end => end.path_change())
    }

    fn paths_down(&self) -> u64 {
        with!(self, end => end.paths_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdp::Mode;

    /// AF_XDP where it cannot be had: loopback is no Ethernet.
    fn table(fallback: bool) -> XdpTable {
        XdpTable {
            interface: "lo".to_owned(),
            queue: 0,
            mode: Mode::Auto,
            neighbour: None,
            frames: 64,
            huge_pages: false,
            fallback,
        }
    }

    fn impossible(fallback: bool) -> (CarrierConfig, LinkEnd) {
        let end = LinkEnd::Listen {
            local: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        (CarrierConfig::Xdp(table(fallback).check(end).unwrap()), end)
    }

    #[test]
    fn the_table_and_the_word_for_it_stand_together() {
        let (_, end) = impossible(true);
        let table = table(true);
        let check = |kind, table| CarrierConfig::check(kind, table, None, end).map_err(|what| what.contains("afxdp"));
        assert!(matches!(check(None, None), Ok(CarrierConfig::Udp(_))));
        assert!(matches!(check(Some(CarrierKind::Udp), None), Ok(CarrierConfig::Udp(_))));
        assert!(matches!(
            check(Some(CarrierKind::Afxdp), Some(&table)),
            Ok(CarrierConfig::Xdp(_))
        ));
        assert!(matches!(check(Some(CarrierKind::Afxdp), None), Err(true)));
        assert!(matches!(check(None, Some(&table)), Err(true)));
    }

    #[test]
    fn a_udp_socket_takes_the_place_of_af_xdp_where_the_config_allows_it() {
        let (_, end) = impossible(true);
        let options = UdpOptions {
            receive_buffer_bytes: Some(40_000),
            ..UdpOptions::default()
        };
        for (udp, buffer) in [
            (None, None),
            (Some(options), Some("receive_buffer_bytes=80000 (wanted 40000)")),
        ] {
            let config = CarrierConfig::check(Some(CarrierKind::Afxdp), Some(&table(true)), udp, end).unwrap();
            let carrier = Carrier::open(&config, end).unwrap();
            assert_ne!(carrier.local_addr().unwrap().port(), 0);
            let Carrier::Udp(socket) = carrier else {
                panic!("a UDP socket");
            };
            let readback = socket.readback().to_string();
            assert!(readback.contains(buffer.unwrap_or("")), "{readback}");
        }
    }

    #[test]
    fn options_of_udp_stand_beside_af_xdp_where_sockets_may_take_its_place() {
        let (_, end) = impossible(true);
        let check = |fallback, udp| CarrierConfig::check(Some(CarrierKind::Afxdp), Some(&table(fallback)), udp, end);
        let error = check(false, Some(UdpOptions::default())).unwrap_err();
        assert_eq!(
            error,
            "a table udp wants carrier = \"udp\", or fallback = true in the table afxdp"
        );
        let wrong = UdpOptions {
            receive_buffer_bytes: Some(0),
            ..UdpOptions::default()
        };
        let error = check(true, Some(wrong)).unwrap_err();
        assert!(error.starts_with("udp: receive_buffer_bytes = 0"), "{error}");
    }

    #[test]
    fn without_leave_nothing_takes_the_place_of_af_xdp() {
        let (config, end) = impossible(false);
        let error = Carrier::open(&config, end).unwrap_err().to_string();
        assert!(error.starts_with("looking for interface lo: "), "{error}");
    }
}
