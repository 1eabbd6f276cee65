//! One type for links of all kinds, so that a shard can hold one of each and a config line chooses.
//!
//! The kind is looked at once a call, which the branch predictor knows beforehand.

#[cfg(feature = "verbs")]
use super::Verbs;
use super::{
    Link, LinkCounters, LinkEnd, LinkEvent, LinkFlow, LinkView, LtpLink, Resume, RoceLink, RoceLinkConfig, TcpLink,
    TcpLinkConfig,
};
use crate::carrier::{Carrier, CarrierConfig, CarrierKind};
use crate::datagram::Datagram;
use crate::error::SetupError;
use crate::options::{Readback, UdpOptions};
use crate::paths::Paths;
use crate::tcp::Retransmits;
use crate::xdp::XdpTable;
use proto::ltp::{Config, Redundancy, Role};
use std::io;
use std::net::SocketAddr;
use types::{SequenceNumber, Timestamp};

/// What a link is built from.
#[derive(Clone, Copy, Debug)]
pub enum LinkConfig {
    /// Over tuned TCP.
    Tcp(TcpLinkConfig),
    /// Over LTP.
    Ltp(LtpLinkConfig),
    /// Over RoCEv2.
    Roce(RoceLinkConfig),
}

/// What one end of an LTP link is built from.
#[derive(Clone, Copy, Debug)]
pub struct LtpLinkConfig {
    /// Which end it is, and where.
    pub end: LinkEnd,
    /// The protocol's settings; session and longest message are the same at both ends.
    pub ltp: Config,
    /// What carries its datagrams.
    pub carrier: CarrierConfig,
    /// With [`Redundancy::Paths`], and only then: the second way to the peer.
    pub second: Option<SecondPath>,
}

/// The second way to a peer; it connects or listens as the first one does.
#[derive(Clone, Copy, Debug)]
pub struct SecondPath {
    /// Where.
    pub end: LinkEnd,
    /// What carries the datagrams there.
    pub carrier: CarrierConfig,
}

/// A link of any kind. `D` is the carrier under LTP, or what decorates it.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are a handful of links, and the smaller kind is the faster one"
)]
pub enum AnyLink<D = Carrier> {
    /// Over tuned TCP.
    Tcp(TcpLink),
    /// Over LTP.
    Ltp(LtpLink<D>),
    /// Over RoCEv2.
    Roce(Box<RoceLink>),
    /// Over RoCEv2 by an RDMA device.
    #[cfg(feature = "verbs")]
    Verbs(Box<RoceLink<Verbs>>),
}

impl SecondPath {
    /// The second path of a link by what its config says: the carrier is that of the first, with a table of its own.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn check(
        end: Option<LinkEnd>,
        carrier: Option<CarrierKind>,
        afxdp: Option<&XdpTable>,
        udp: Option<UdpOptions>,
    ) -> Result<Option<Self>, String> {
        match (end, afxdp) {
            (Some(end), _) => match CarrierConfig::check(carrier, afxdp, udp, end) {
                Ok(carrier) => Ok(Some(Self { end, carrier })),
                Err(what) => Err(format!("second path (second_afxdp): {what}")),
            },
            (None, Some(_)) => Err("second_afxdp is for a second path".to_owned()),
            (None, None) => Ok(None),
        }
    }
}

impl LinkConfig {
    /// Bytes of memory that the link allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        match self {
            Self::Tcp(config) => config.memory(),
            Self::Ltp(config) => {
                let second = match &config.second {
                    Some(second) => second.carrier.memory(),
                    None => 0,
                };
                config.ltp.memory() + 2 * config.ltp.max_datagram + config.carrier.memory() + second
            }
            Self::Roce(config) => config.memory(),
        }
    }

    /// Longest message, bytes: the buffer that [`Link::poll`] wants.
    #[must_use]
    pub const fn max_message(&self) -> usize {
        match self {
            Self::Tcp(config) => config.max_message,
            Self::Ltp(config) => config.ltp.max_message,
            Self::Roce(config) => config.max_message,
        }
    }

    /// Most unacknowledged messages.
    #[must_use]
    pub const fn window(&self) -> usize {
        match self {
            Self::Tcp(config) => config.window,
            Self::Ltp(config) => config.ltp.window,
            Self::Roce(config) => config.window,
        }
    }

    /// What it runs over, for people.
    #[must_use]
    pub const fn transport(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tuned TCP",
            Self::Ltp(config) => match config.carrier {
                CarrierConfig::Udp(_) => "LTP over UDP",
                CarrierConfig::Xdp(_) => "LTP over AF_XDP",
            },
            Self::Roce(config) => match (config.device, config.carrier) {
                (Some(_), _) => "RoCEv2 by verbs",
                (None, CarrierConfig::Udp(_)) => "RoCEv2 over UDP",
                (None, CarrierConfig::Xdp(_)) => "RoCEv2 over AF_XDP",
            },
        }
    }

    /// Whether its carriers or its device can be opened on this host, as [`CarrierConfig::probe`] says of each.
    ///
    /// # Errors
    /// One cannot, and nothing may take its place.
    pub fn probe(&self) -> Result<Vec<String>, SetupError> {
        #[cfg(feature = "verbs")]
        if let Self::Roce(config) = self
            && config.device.is_some()
        {
            return Verbs::probe(config).map(|line| vec![line]);
        }
        let ways = match self {
            Self::Tcp(_) => [None, None],
            Self::Ltp(config) => {
                let second = config.second.map(|second| (second.carrier, second.end));
                [Some((config.carrier, config.end)), second]
            }
            Self::Roce(config) => [Some((config.carrier, config.ports_as_end())), None],
        };
        let mut lines = Vec::new();
        for (carrier, end) in ways.into_iter().flatten() {
            lines.extend(carrier.probe(end)?);
        }
        Ok(lines)
    }

    /// Which end it is, and where.
    #[must_use]
    pub const fn end(&self) -> LinkEnd {
        match self {
            Self::Tcp(config) => config.end,
            Self::Ltp(config) => config.end,
            Self::Roce(config) => config.end,
        }
    }
}

impl AnyLink {
    /// Builds one end of the configured kind. `epoch_seed` rises with each start of this end; the time will do.
    ///
    /// # Errors
    /// The configuration contradicts itself, or the local address cannot be had.
    pub fn new(config: &LinkConfig, epoch_seed: u64, resume: Resume) -> Result<Self, SetupError> {
        Self::with_datagrams(config, epoch_seed, resume, |carrier| carrier)
    }
}

impl<D: Datagram> AnyLink<D> {
    /// As [`AnyLink::new`], with something around the carrier of LTP: a network that loses, in a simulation.
    ///
    /// # Errors
    /// As there.
    pub fn with_datagrams(
        config: &LinkConfig,
        epoch_seed: u64,
        resume: Resume,
        decorate: impl FnOnce(Carrier) -> D,
    ) -> Result<Self, SetupError> {
        match config {
            LinkConfig::Tcp(config) => TcpLink::new(config, resume).map(Self::Tcp),
            LinkConfig::Ltp(config) => config.build(epoch_seed, resume, decorate).map(Self::Ltp),
            #[cfg(feature = "verbs")]
            LinkConfig::Roce(config) if config.device.is_some() => {
                RoceLink::new(config, epoch_seed, resume).map(Box::new).map(Self::Verbs)
            }
            LinkConfig::Roce(config) => RoceLink::new(config, epoch_seed, resume).map(Box::new).map(Self::Roce),
        }
    }

    /// What the kernel gave for each socket option; `None` while a TCP link has no connection.
    #[must_use]
    pub fn tcp_readback(&self) -> Option<&Readback> {
        match self {
            Self::Tcp(link) => link.readback(),
            _ => None,
        }
    }
}

impl<D: Datagram> AnyLink<D> {
    /// Segments that the kernel sent again on the connection that a TCP link has now: a system call. None for the
    /// others, which repair by themselves and count it.
    #[must_use]
    pub fn kernel_retransmits(&self) -> Retransmits {
        match self {
            Self::Tcp(link) => link.kernel_retransmits(),
            _ => Retransmits::default(),
        }
    }
}

impl AnyLink<Carrier> {
    /// The address that a listening end is bound to, once port 0 has become one.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(link) => link.local_addr(),
            Self::Ltp(link) => link.datagrams().local_addr().ok(),
            Self::Roce(link) => link.local_addr(),
            #[cfg(feature = "verbs")]
            Self::Verbs(link) => link.local_addr(),
        }
    }
}

impl LtpLinkConfig {
    /// Opens the carrier and builds the end over it.
    fn build<D: Datagram>(
        &self,
        epoch_seed: u64,
        resume: Resume,
        decorate: impl FnOnce(Carrier) -> D,
    ) -> Result<LtpLink<D>, SetupError> {
        let role = match self.end {
            LinkEnd::Connect { .. } => Role::Initiator,
            LinkEnd::Listen { .. } => Role::Acceptor,
        };
        let wrong = |what: String| {
            let doing = format!("building the link of session {}", self.ltp.session);
            let source = io::Error::new(io::ErrorKind::InvalidInput, what);
            SetupError::new(doing, source, "correct the link's settings")
        };
        if self.second.is_some() != (self.ltp.redundancy == Redundancy::Paths) {
            return Err(wrong(
                "redundancy by paths and a second path belong together".to_owned(),
            ));
        }
        self.ltp.check().map_err(|error| wrong(error.to_string()))?;
        let mut carrier = Carrier::open(&self.carrier, self.end)?;
        if let Some(second) = &self.second {
            let second = Carrier::open(&second.carrier, second.end)?;
            carrier = Carrier::Paths(Box::new(Paths::new([carrier, second], self.ltp.silence_max())));
        }
        LtpLink::new(decorate(carrier), role, &self.ltp, epoch_seed, resume).map_err(|error| wrong(error.to_string()))
    }
}

/// Does the same with whichever it is.
macro_rules! with {
    ($any:expr, $link:ident => $call:expr) => {
        match $any {
            AnyLink::Tcp($link) => $call,
            AnyLink::Ltp($link) => $call,
            AnyLink::Roce($link) => $call,
            #[cfg(feature = "verbs")]
            AnyLink::Verbs($link) => $call,
        }
    };
}

impl<D: Datagram> Link for AnyLink<D> {
    fn room(&self) -> usize {
        with!(self, link => link.room())
    }

    fn is_up(&self) -> bool {
        with!(self, link => link.is_up())
    }

    fn send(&mut self, message: &[u8], position: u64) -> SequenceNumber {
        with!(self, link => link.send(message, position))
    }

    fn restore(&mut self, sequence: SequenceNumber, message: &[u8]) {
        with!(self, link => link.restore(sequence, message));
    }

    fn recalled(&mut self, sequence: SequenceNumber, message: &[u8]) {
        with!(self, link => link.recalled(sequence, message));
    }

    fn not_recalled(&mut self, sequence: SequenceNumber) {
        with!(self, link => link.not_recalled(sequence));
    }

    fn poll(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<LinkEvent> {
        with!(self, link => link.poll(now, buffer))
    }

    fn poll_recall(&mut self, now: Timestamp) -> Option<LinkEvent> {
        with!(self, link => link.poll_recall(now))
    }

    fn flush(&mut self, now: Timestamp, watermark: u64) {
        with!(self, link => link.flush(now, watermark));
    }

    fn journaled(&mut self, appended: u64, synced: u64) {
        with!(self, link => link.journaled(appended, synced));
    }

    fn peer_durable(&self) -> Option<SequenceNumber> {
        with!(self, link => link.peer_durable())
    }

    fn credits(&self) -> Option<u32> {
        with!(self, link => link.credits())
    }

    fn grant(&mut self, slots: u32) {
        with!(self, link => link.grant(slots));
    }

    fn flow(&self) -> Option<LinkFlow> {
        with!(self, link => link.flow())
    }

    fn counters(&self) -> LinkCounters {
        with!(self, link => link.counters())
    }

    fn view(&self) -> LinkView {
        with!(self, link => link.view())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::soup::{Password, SessionName, UserName};
    use types::{Duration, SessionId};

    fn config(is_tcp: bool, end: LinkEnd) -> LinkConfig {
        if is_tcp {
            let user_name = UserName::new(b"gate1").unwrap();
            let password = Password::new(b"secret").unwrap();
            let session = SessionName::new(b"LINK1").unwrap();
            return LinkConfig::Tcp(TcpLinkConfig::new(end, user_name, password, session));
        }
        let ltp = Config::new(SessionId(1), 64, 64);
        let carrier = CarrierConfig::Udp(UdpOptions::default());
        LinkConfig::Ltp(LtpLinkConfig {
            end,
            ltp,
            carrier,
            second: None,
        })
    }

    /// Takes turns with both ends until the first message has come to the second.
    fn first_message(ends: &mut [AnyLink; 2]) -> Vec<u8> {
        let mut now = Timestamp(1_000_000_000);
        let mut buffer = [0; 64];
        for _ in 0..1_000_000 {
            now = now + Duration::from_micros(10);
            for index in [0, 1] {
                while let Some(event) = ends[index].poll(now, &mut buffer) {
                    if let (1, LinkEvent::Message { length, .. }) = (index, event) {
                        return buffer[..length].to_vec();
                    }
                }
                ends[index].flush(now, 0);
            }
        }
        panic!("hung: {ends:?}");
    }

    #[test]
    fn either_kind_carries_messages_by_one_config() {
        let listen = LinkEnd::Listen {
            local: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        for is_tcp in [true, false] {
            let acceptor = AnyLink::new(&config(is_tcp, listen), 1, Resume::START).unwrap();
            let connect = LinkEnd::Connect {
                peer: acceptor.local_addr().unwrap(),
                local: None,
            };
            let config = config(is_tcp, connect);
            let mut initiator = AnyLink::new(&config, 1, Resume::START).unwrap();
            assert_eq!(initiator.room(), config.window());
            assert_eq!(initiator.send(b"order", 0), SequenceNumber(1));
            assert_eq!(first_message(&mut [initiator, acceptor]), b"order");
        }
    }

    #[test]
    fn a_contradiction_is_told_with_the_session() {
        let mut wrong = Config::new(SessionId(7), 64, 64);
        wrong.window = 0;
        let end = LinkEnd::Listen {
            local: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let config = LinkConfig::Ltp(LtpLinkConfig {
            end,
            ltp: wrong,
            carrier: CarrierConfig::Udp(UdpOptions::default()),
            second: None,
        });
        let text = AnyLink::new(&config, 1, Resume::START).unwrap_err().to_string();
        assert!(text.starts_with("building the link of session 7: window"), "{text}");
    }
}
