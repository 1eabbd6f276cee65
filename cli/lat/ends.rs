//! The ends of a rung: both in this process, or one of them.

use super::plan::{Plan, RtoMin, Rung};
use latency::clock::Clock;
use net::floor;
use net::link::{AnyLink, LinkConfig, LinkEnd, LtpLinkConfig, Resume, TcpLinkConfig};
use net::measure::{AnyEnd, BareDatagrams, BareTcp, Linked};
use net::tcp::{TcpListener, TcpStream};
use net::udp::UdpPeer;
use net::{TcpOptions, UdpOptions};
use proto::ltp;
use proto::soup::{Password, SessionName, UserName};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;
use types::{Duration, SessionId};

/// Most unacknowledged messages of a link.
const WINDOW: usize = 4_096;

/// A peer of LTP that says nothing for this many heartbeats (5 ms each) is dead: a machine with neighbours may take the
/// processor away for longer than the default of 100 ms.
const DEAD_AFTER: u32 = 400;

/// How long to wait for a bare connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The far end, before the near one is there.
pub(super) enum FarEnd {
    Ready(Box<AnyEnd>),
    Listening(TcpListener),
}

/// The near end, before the far one is there: a socket where the far end has to know its address first.
pub(super) struct NearEnd(Option<UdpPeer>);

/// Both ends over loopback.
pub(super) fn pair(plan: &Plan, clock: Clock) -> io::Result<(AnyEnd, AnyEnd)> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Ok(match plan.link {
        Rung::TcpUntuned | Rung::TcpBare => {
            let (near, far) = floor::tcp_pair(&tcp_options(plan))?;
            (AnyEnd::Tcp(BareTcp::new(near)), AnyEnd::Tcp(BareTcp::new(far)))
        }
        Rung::Udp => {
            let (near, far) = floor::udp_pair(&UdpOptions::default())?;
            let bare = |socket| AnyEnd::Udp(BareDatagrams::new(socket));
            (bare(near), bare(far))
        }
        Rung::Tcp | Rung::Ltp => {
            let far = link(plan, LinkEnd::Listen { local }, clock)?;
            let peer = far.local_addr().ok_or(io::ErrorKind::AddrNotAvailable)?;
            let near = link(plan, LinkEnd::Connect { peer, local: None }, clock)?;
            (AnyEnd::Link(Linked::new(near)), AnyEnd::Link(Linked::new(far)))
        }
    })
}

impl FarEnd {
    /// Opens the far end on `local`, for a near end at `near`. Gives the port that it has.
    pub(super) fn open(plan: &Plan, local: SocketAddr, near: IpAddr, clock: Clock) -> io::Result<(Self, u16)> {
        let ready = |end| Self::Ready(Box::new(end));
        let (end, local) = match plan.link {
            Rung::TcpUntuned | Rung::TcpBare => {
                let listener = TcpListener::bind(local, &tcp_options(plan))?;
                let local = listener.local_addr()?;
                (Self::Listening(listener), local)
            }
            Rung::Udp => {
                let near = SocketAddr::from((near, plan.near_port));
                let socket = UdpPeer::connect(near, Some(local), &UdpOptions::default())?;
                let local = socket.local_addr()?;
                (ready(AnyEnd::Udp(BareDatagrams::new(socket))), local)
            }
            Rung::Tcp | Rung::Ltp => {
                let link = link(plan, LinkEnd::Listen { local }, clock)?;
                let local = link.local_addr().ok_or(io::ErrorKind::AddrNotAvailable)?;
                (ready(AnyEnd::Link(Linked::new(link))), local)
            }
        };
        Ok((end, local.port()))
    }

    /// The end, once the near one is there, as far as it has to be.
    pub(super) fn wait(self) -> io::Result<AnyEnd> {
        let listener = match self {
            Self::Ready(end) => return Ok(*end),
            Self::Listening(listener) => listener,
        };
        let started = Instant::now();
        while started.elapsed().as_secs() < CONNECT_WITHIN.0 / 1_000_000_000 {
            if let Some((stream, _)) = listener.accept()? {
                return Ok(AnyEnd::Tcp(BareTcp::new(stream)));
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the near end did not connect"))
    }
}

impl NearEnd {
    /// Opens what the far end has to know of before it opens its own. The plan's port is set.
    pub(super) fn prepare(plan: &mut Plan, local: IpAddr) -> io::Result<Self> {
        if plan.link != Rung::Udp {
            return Ok(Self(None));
        }
        let socket = UdpPeer::learn(SocketAddr::from((local, 0)), &UdpOptions::default())?;
        plan.near_port = socket.local_addr()?.port();
        Ok(Self(Some(socket)))
    }

    /// Opens the end; the far one is there.
    pub(super) fn open(self, plan: &Plan, far: SocketAddr, clock: Clock) -> io::Result<AnyEnd> {
        Ok(match (self.0, plan.link) {
            (Some(socket), _) => AnyEnd::Udp(BareDatagrams::new(socket.connected_to(far)?)),
            (_, Rung::TcpUntuned | Rung::TcpBare) => {
                let stream = TcpStream::connect(far, &tcp_options(plan), CONNECT_WITHIN)?;
                AnyEnd::Tcp(BareTcp::new(stream))
            }
            _ => {
                let end = LinkEnd::Connect { peer: far, local: None };
                AnyEnd::Link(Linked::new(link(plan, end, clock)?))
            }
        })
    }
}

fn link(plan: &Plan, end: LinkEnd, clock: Clock) -> io::Result<AnyLink> {
    let config = match plan.link {
        Rung::Tcp => LinkConfig::Tcp(tcp_config(plan, end)),
        _ => LinkConfig::Ltp(ltp_config(plan, end)),
    };
    Ok(AnyLink::new(&config, clock.now().0, Resume::START)?)
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

fn ltp_config(plan: &Plan, end: LinkEnd) -> LtpLinkConfig {
    let ltp = ltp::Config {
        dead_after: DEAD_AFTER,
        ..ltp::Config::new(SessionId(1), WINDOW, plan.size)
    };
    let udp = UdpOptions::default();
    LtpLinkConfig { end, ltp, udp }
}

fn tcp_options(plan: &Plan) -> TcpOptions {
    match (plan.link, plan.rto_min) {
        (Rung::TcpUntuned, _) => TcpOptions::default(),
        (_, RtoMin::Lowest) => TcpOptions::tuned(),
        (_, RtoMin::Default) => TcpOptions {
            rto_min_us: None,
            ..TcpOptions::tuned()
        },
    }
}
