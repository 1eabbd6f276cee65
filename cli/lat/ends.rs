//! The ends of a rung.

use super::plan::{LtpOptions, Plan, RtoMin, Rung};
use crate::loopback;
use latency::clock::Clock;
use net::carrier::{Carrier, CarrierConfig};
use net::link::{
    AnyLink, LinkConfig, LinkEnd, LtpLinkConfig, Resume, RoceLink, RoceLinkConfig, RoceOperation, SecondPath,
    TcpLinkConfig,
};
use net::measure::{AnyEnd, BareDatagrams, BareTcp, Linked, RoceReads};
use net::tcp::{TcpListener, TcpStream};
use net::udp::UdpPeer;
use net::xdp::{Mode, XdpTable};
use net::{TcpOptions, UdpOptions};
use proto::ltp;
use proto::soup::{Password, SessionName, UserName};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, SocketAddr};
use types::{Duration, SessionId};

/// Most unacknowledged messages of a link.
const WINDOW: usize = 4_096;

/// A peer of LTP that says nothing for this many heartbeats (5 ms each) is dead: a machine with neighbours may take the
/// processor away for longer than the default of 100 ms.
const DEAD_AFTER: u32 = 400;

/// The same of RoCEv2.
const ROCE_DEAD_AFTER: Duration = Duration::from_secs(2);

/// How long to wait for a bare connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Frames of an AF_XDP queue.
const FRAMES: u32 = 4_096;

/// The key of links that are measured with one: it protects nothing, it costs what another would.
const KEY: ltp::Key = ltp::Key {
    id: 1,
    secret: *b"tickgate lat key",
};

/// Where the far end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct FarAddress {
    pub(super) first: SocketAddr,
    /// Of the second path, if there is one.
    pub(super) second: SocketAddr,
}

/// The near end, before the far one is there: a socket where the far end has to know its address first.
pub(super) struct NearEnd(Option<UdpPeer>);

/// Opens the far end on `local`, for a near end at `near`. Gives where it is.
pub(super) fn open_far(plan: &Plan, local: SocketAddr, near: IpAddr, clock: Clock) -> io::Result<(AnyEnd, FarAddress)> {
    let end = LinkEnd::Listen { local };
    let (end, first, second) = match plan.link {
        Rung::TcpUntuned | Rung::TcpBare => {
            let listener = TcpListener::bind(local, &tcp_options(plan))?;
            let local = listener.local_addr()?;
            (AnyEnd::Tcp(BareTcp::listening(listener)), local, local)
        }
        Rung::Udp => {
            let near = SocketAddr::from((near, plan.near_port));
            let socket = UdpPeer::connect(near, Some(local), &UdpOptions::default())?;
            let local = socket.local_addr()?;
            (bare(Carrier::Udp(socket)), local, local)
        }
        Rung::AfxdpBare => {
            let carrier = Carrier::open(&carrier(plan, local.ip(), end)?, end)?;
            let local = carrier.local_addr()?;
            (bare(carrier), local, local)
        }
        Rung::Roce | Rung::RoceSend | Rung::RoceRead => {
            let [near, far] = plan.roce.unwrap_or([near, local.ip()]);
            let (end, local) = roce_end(plan, &roce_config(plan, end, far, near), clock)?;
            let local = local.ok_or(io::ErrorKind::AddrNotAvailable)?;
            (end, local, local)
        }
        Rung::Tcp | Rung::Ltp | Rung::Afxdp => {
            let second = second_of(local)?;
            let link = link(plan, local.ip(), end, LinkEnd::Listen { local: second }, clock)?;
            let local = link.local_addr().ok_or(io::ErrorKind::AddrNotAvailable)?;
            (AnyEnd::Link(Linked::new(link)), local, second)
        }
    };
    Ok((end, FarAddress { first, second }))
}

impl NearEnd {
    /// Opens what the far end has to know of before it opens its own. The plan's port is set.
    pub(super) fn prepare(plan: &mut Plan, local: IpAddr) -> io::Result<Self> {
        if plan.link.is_roce() && local.is_loopback() {
            plan.roce = Some(loopback::free_for_roce()?);
        }
        if plan.link != Rung::Udp {
            return Ok(Self(None));
        }
        let socket = UdpPeer::learn(SocketAddr::from((local, 0)), &UdpOptions::default())?;
        plan.near_port = socket.local_addr()?.port();
        Ok(Self(Some(socket)))
    }

    /// Opens the end, at `local`; the far one is there.
    pub(super) fn open(self, plan: &Plan, local: IpAddr, far: FarAddress, clock: Clock) -> io::Result<AnyEnd> {
        let connect = |peer| LinkEnd::Connect { peer, local: None };
        Ok(match (self.0, plan.link) {
            (Some(socket), _) => bare(Carrier::Udp(socket.connected_to(far.first)?)),
            (_, Rung::TcpUntuned | Rung::TcpBare) => {
                let stream = TcpStream::connect(far.first, &tcp_options(plan), CONNECT_WITHIN)?;
                AnyEnd::Tcp(BareTcp::new(stream))
            }
            (_, Rung::AfxdpBare) => {
                let end = connect(far.first);
                bare(Carrier::open(&carrier(plan, local, end)?, end)?)
            }
            (_, Rung::Roce | Rung::RoceSend | Rung::RoceRead) => {
                let [near, there] = plan.roce.unwrap_or([local, far.first.ip()]);
                roce_end(plan, &roce_config(plan, connect(far.first), near, there), clock)?.0
            }
            _ => {
                let link = link(plan, local, connect(far.first), connect(far.second), clock)?;
                AnyEnd::Link(Linked::new(link))
            }
        })
    }
}

fn bare(carrier: Carrier) -> AnyEnd {
    AnyEnd::Datagrams(BareDatagrams::new(carrier))
}

/// Where the second path listens: on the next port, or on any if the first is on any.
fn second_of(local: SocketAddr) -> io::Result<SocketAddr> {
    let port = match local.port() {
        0 => UdpPeer::learn(local, &UdpOptions::default())?.local_addr()?.port(),
        port => port.checked_add(1).ok_or(io::ErrorKind::AddrNotAvailable)?,
    };
    Ok(SocketAddr::from((local.ip(), port)))
}

fn link(plan: &Plan, local: IpAddr, end: LinkEnd, second: LinkEnd, clock: Clock) -> io::Result<AnyLink> {
    let config = match plan.link {
        Rung::Tcp => LinkConfig::Tcp(tcp_config(plan, end)),
        _ => LinkConfig::Ltp(ltp_config(plan, local, end, second)?),
    };
    Ok(AnyLink::new(&config, clock.now().0, Resume::START)?)
}

fn roce_config(plan: &Plan, end: LinkEnd, local: IpAddr, peer: IpAddr) -> RoceLinkConfig {
    let config = RoceLinkConfig {
        session: 1,
        operation: match plan.link {
            Rung::RoceSend => RoceOperation::Send,
            _ => RoceOperation::Write,
        },
        allows_reads: plan.link == Rung::RoceRead,
        device: plan.device,
        ..RoceLinkConfig::new(end, local, peer, WINDOW, plan.size)
    };
    config.with_dead_after(ROCE_DEAD_AFTER)
}

/// An end over RoCEv2, and where it listens if it does.
fn roce_end(plan: &Plan, config: &RoceLinkConfig, clock: Clock) -> io::Result<(AnyEnd, Option<SocketAddr>)> {
    let seed = clock.now().0;
    #[cfg(feature = "verbs")]
    if config.device.is_some() {
        let link = RoceLink::<net::link::Verbs>::new(config, seed, Resume::START)?;
        let local = link.local_addr();
        let end = match plan.link {
            Rung::RoceRead => AnyEnd::DeviceReads(RoceReads::new(link)),
            _ => AnyEnd::Link(Linked::new(AnyLink::Verbs(Box::new(link)))),
        };
        return Ok((end, local));
    }
    let link: RoceLink = RoceLink::new(config, seed, Resume::START)?;
    let local = link.local_addr();
    let end = match plan.link {
        Rung::RoceRead => AnyEnd::Reads(RoceReads::new(link)),
        _ => AnyEnd::Link(Linked::new(AnyLink::Roce(Box::new(link)))),
    };
    Ok((end, local))
}

fn tcp_config(plan: &Plan, end: LinkEnd) -> TcpLinkConfig {
    let user_name = UserName::new(b"lat").expect("a name");
    let password = Password::new(b"lat").expect("a password");
    let session = SessionName::new(b"LAT").expect("a name");
    TcpLinkConfig {
        window: WINDOW,
        max_message: plan.size,
        tcp: tcp_options(plan),
        ..TcpLinkConfig::new(end, user_name, password, session)
    }
}

fn ltp_config(plan: &Plan, local: IpAddr, end: LinkEnd, second: LinkEnd) -> io::Result<LtpLinkConfig> {
    let LtpOptions {
        redundancy,
        header,
        has_key,
    } = plan.ltp.unwrap_or_default();
    let ltp = ltp::Config {
        dead_after: DEAD_AFTER,
        redundancy: redundancy.into(),
        header: header.into(),
        key: has_key.then_some(KEY),
        ..ltp::Config::new(SessionId(1), WINDOW, plan.size)
    };
    let second = match ltp.redundancy {
        ltp::Redundancy::Paths => Some(SecondPath {
            end: second,
            carrier: carrier(plan, local, second)?,
        }),
        _ => None,
    };
    Ok(LtpLinkConfig {
        end,
        ltp,
        carrier: carrier(plan, local, end)?,
        second,
    })
}

/// What carries datagrams at this address.
fn carrier(plan: &Plan, local: IpAddr, end: LinkEnd) -> io::Result<CarrierConfig> {
    if !matches!(plan.link, Rung::Afxdp | Rung::AfxdpBare) {
        return Ok(CarrierConfig::Udp(UdpOptions::default()));
    }
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    if local.is_loopback() {
        return Err(invalid(
            "loopback is no Ethernet: measure between two ends, with --listen and --connect on addresses of Ethernet interfaces"
                .to_owned(),
        ));
    }
    let interface = net::host::interface_of(local).ok_or_else(|| invalid(format!("no interface has {local}")))?;
    let table = XdpTable {
        interface,
        queue: 0,
        mode: Mode::Auto,
        neighbour: matches!(end, LinkEnd::Connect { .. }).then(|| "kernel".to_owned()),
        frames: FRAMES,
        huge_pages: false,
        fallback: false,
    };
    table.check(end).map(CarrierConfig::Xdp).map_err(invalid)
}

fn tcp_options(plan: &Plan) -> TcpOptions {
    match (plan.link, plan.rto_min) {
        (Rung::TcpUntuned, _) => TcpOptions::default(),
        (_, Some(RtoMin::Default)) => TcpOptions {
            rto_min_us: None,
            ..TcpOptions::tuned()
        },
        _ => TcpOptions::tuned(),
    }
}
