//! The program in the kernel, in front of the sockets of sessions that come in over LTP on UDP: its verdict on an order is
//! there before the order.

use super::FilterView;
use super::guard::Guard;
use crate::config::{Config, XdpFilter};
use crate::filter;
use net::SetupError;
use net::link::{LinkEnd, LinkFlow};
use orders::{LimitScope, Orders};
use prefilter::xdp::{Flow, Record, Settings, Xdp};
use prefilter::{Caps, Control, Fault, PreFilter, Reasons, SessionLimits};
use std::net::{SocketAddr, SocketAddrV4};
use types::{NewOrder, Reason, SequenceNumber, SessionId};

#[derive(Debug)]
pub(crate) struct Kernel {
    xdp: Xdp,
    guard: Guard,
    generation: u32,
    /// By place of the flow.
    seats: Vec<Seat>,
    /// Of the message at hand.
    verdict: Option<Reasons>,
}

/// A session that comes by datagrams.
#[derive(Debug)]
struct Seat {
    session: SessionId,
    local: SocketAddrV4,
    /// Verdicts on messages that are on the way, by number.
    verdicts: Box<[Option<Record>]>,
}

/// Without a turn of the gateway for so long the program closes.
const HEARTBEAT_NS: u64 = 5_000_000_000;
/// Bytes of verdicts that wait for the gateway's next turn: some 13,000 of them.
const RING_BYTES: u32 = 1 << 20;

impl Kernel {
    /// At its interface and open, with the limits that `orders` has.
    pub(super) fn open(config: &Config, interface: &XdpFilter, orders: &Orders) -> Result<Self, SetupError> {
        let what = || format!("the pre-filter's program at {}", interface.interface);
        let links = links(config);
        let settings = settings(config, &links);
        let advice =
            "run it as root, or grant CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; only one program can be at an interface";
        let xdp = Xdp::new(&settings).map_err(|error| SetupError::new(what(), error, advice))?;
        let seat = |&(session, local, _): &(SessionId, SocketAddrV4, usize)| Seat {
            session,
            local,
            verdicts: vec![None; settings.window as usize].into(),
        };
        let mut kernel = Self {
            xdp,
            guard: Guard::new(config.prefilter.on_fault),
            generation: 0,
            seats: links.iter().map(seat).collect(),
            verdict: None,
        };
        kernel
            .open_with(config, orders)
            .map_err(|fault| SetupError::new(what(), std::io::Error::other(fault), advice))?;
        for place in 0..kernel.seats.len() {
            kernel.put_flow(place, None);
        }
        // Nothing passes it before it has limits and flows.
        kernel
            .xdp
            .attach(&interface.interface, interface.mode.into())
            .map_err(|error| SetupError::new(what(), error, advice))?;
        tracing::info!(
            "pre-filter in the kernel at {}, {:?} hook",
            interface.interface,
            interface.mode
        );
        Ok(kernel)
    }

    fn open_with(&mut self, config: &Config, orders: &Orders) -> Result<(), Fault> {
        for session in &config.sessions {
            self.xdp.set_session(session.id, Some(SessionLimits::UNLIMITED))?;
        }
        self.stage(orders)?;
        self.xdp.set_control(Control {
            enable: true,
            kill: false,
        })
    }

    pub(super) fn load(&mut self, orders: &Orders) {
        if self.guard.fault().is_none()
            && let Err(fault) = self.stage(orders)
        {
            self.guard.fail(fault);
        }
    }

    fn stage(&mut self, orders: &Orders) -> Result<(), Fault> {
        for scope in (0..orders.limit_scopes()).filter_map(|place| orders.limit_scope(place)) {
            if let LimitScope::Instrument(id) = scope {
                self.xdp.set_symbol(id, filter::limits(orders, id))?;
            }
        }
        self.generation = self.xdp.commit()?;
        Ok(())
    }

    pub(super) fn flow(&mut self, session: SessionId, flow: Option<LinkFlow>) {
        if let Some(place) = self.seats.iter().position(|seat| seat.session == session) {
            self.put_flow(place, flow);
        }
    }

    fn put_flow(&mut self, place: usize, flow: Option<LinkFlow>) {
        let seat = &self.seats[place];
        let flow = flow.and_then(|flow| match flow.peer {
            SocketAddr::V4(peer) => Some(Flow {
                peer,
                tag: flow.tag,
                session: seat.session,
                trailer: flow.trailer,
            }),
            SocketAddr::V6(_) => None,
        });
        let number = u16::try_from(place).expect("links are bounded by MAX_CLIENT_LINKS");
        if self.xdp.set_flow(number, seat.local, flow.as_ref()).is_err() {
            self.guard.fail(Fault::Kernel);
        }
    }

    /// Looks up the verdict on the message that is handled next. It counts only for the bytes that were judged.
    pub(super) fn arrived(&mut self, session: SessionId, sequence: SequenceNumber, message: &[u8]) {
        while let Some(record) = self.xdp.record() {
            if let Some(seat) = self.seats.get_mut(self.xdp.place(&record)) {
                let place = seat.place(record.verdict.sequence.get());
                seat.verdicts[place] = Some(record);
            }
        }
        self.verdict = None;
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.session == session) {
            #[allow(clippy::cast_possible_truncation, reason = "a datagram has the low half")]
            let sequence = sequence.0 as u32;
            let place = seat.place(sequence);
            let record = seat.verdicts[place].take_if(|record| record.verdict.sequence.get() == sequence);
            self.verdict = record
                .filter(|record| message == record.message)
                .map(|record| Reasons(record.verdict.reasons.get()));
        }
    }

    /// By the verdict that came with it. Orders of sessions that come in another way are left to the shard's own filter.
    pub(super) fn judge(&mut self, order: &NewOrder) -> Result<(), Reason> {
        if !self.seats.iter().any(|seat| seat.session == order.session) {
            return Ok(());
        }
        match self.verdict.take() {
            Some(reasons) if self.guard.fault().is_none() => match reasons.first() {
                Reason::None => Ok(()),
                reason => Err(reason),
            },
            _ => self.guard.unjudged(),
        }
    }

    pub(super) fn beat(&mut self) {
        if self.guard.fault().is_none()
            && let Err(fault) = self.xdp.health()
        {
            self.guard.fail(fault);
        }
    }

    pub(super) fn view(&mut self) -> FilterView {
        FilterView {
            backend: "xdp",
            generation: self.generation,
            counters: self.xdp.counters(),
            fault: self.guard.fault(),
            fallback: self.guard.fallback(),
        }
    }
}

impl Seat {
    fn place(&self, sequence: u32) -> usize {
        sequence as usize & (self.verdicts.len() - 1)
    }
}

/// Bytes of the program's tables, which the kernel has, and of the verdicts kept here.
pub(super) fn memory_bytes(config: &Config) -> usize {
    let links = links(config);
    let settings = settings(config, &links);
    Xdp::memory_bytes(&settings) + links.len() * settings.window as usize * size_of::<Option<Record>>()
}

fn settings(config: &Config, links: &[(SessionId, SocketAddrV4, usize)]) -> Settings {
    let windows = links.iter().map(|&(.., window)| window);
    let window = windows.max().unwrap_or(1).next_power_of_two();
    Settings {
        caps: caps(config),
        flows: u16::try_from(links.len()).expect("links are bounded by MAX_CLIENT_LINKS"),
        window: u32::try_from(window).expect("a window is bounded by WINDOW_MAX"),
        ring_bytes: RING_BYTES,
        heartbeat_ns: HEARTBEAT_NS,
    }
}

/// Sessions that come by datagrams, where, and how many messages may be under way.
fn links(config: &Config) -> Vec<(SessionId, SocketAddrV4, usize)> {
    let links = config.sessions.iter().filter_map(|session| {
        let net::link::LinkConfig::Ltp(link) = session.link.as_ref()? else {
            return None;
        };
        let LinkEnd::Listen {
            local: SocketAddr::V4(local),
        } = link.end
        else {
            return None;
        };
        Some((session.id, local, link.ltp.window))
    });
    links.collect()
}

/// Orders name instruments by id here.
fn caps(config: &Config) -> Caps {
    let symbols = config.instruments.iter().map(|instrument| instrument.id.0 + 1);
    let sessions = config.sessions.iter().map(|session| u32::from(session.id.0) + 1);
    Caps {
        symbols: symbols.max().unwrap_or(0),
        sessions: sessions.max().unwrap_or(0),
    }
}

/// At the loopback interface of a network namespace that `.ci/extended xdp` makes.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{OnFault, XdpMode};
    use proto::native::{self, MAX_MESSAGE_LENGTH};
    use std::net::UdpSocket;
    use std::path::Path;
    use std::time::Duration;
    use types::{
        AccountId, ClientOrderId, InstrumentId, OrderTerms, OrderType, Price, Quantity, Request, Side, TimeInForce,
        Trigger,
    };

    const SESSION: SessionId = SessionId(3);
    const LISTEN: &str = "127.0.0.1:7003";
    const LINK: &str = "[[sessions]]\nid = 3\nprotocol = \"native\"\nshard = 0\nuser = \"linked\"\naccounts = [2]\n\
        owner = 3\nmax_open_orders = 10\ncancel_on_disconnect = true\n[sessions.link]\nlisten = \"127.0.0.1:7003\"\n\
        window_messages = 1024\nheartbeat_ms = 10\ndead_after_ms = 100\n";

    /// What becomes of an order without a verdict.
    const CHOICES: [(OnFault, Result<(), Reason>); 2] =
        [(OnFault::Reject, Err(Reason::Killed)), (OnFault::Software, Ok(()))];

    struct Wire {
        kernel: Kernel,
        client: UdpSocket,
        gateway: UdpSocket,
        instrument: InstrumentId,
    }

    /// The example with a link more; the most lots of an order in the place of its 1,000.
    fn config(lots: &str) -> Config {
        let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs"));
        let text = std::fs::read_to_string(base.join("gateway.toml")).expect("the example");
        let text = text.replacen("[[sessions]]", &format!("{LINK}[[sessions]]"), 1);
        let limit = "max_quantity_lots = 1_000\n";
        assert!(text.contains(limit));
        let text = text.replacen(limit, &format!("max_quantity_lots = {lots}\n"), 1);
        Config::parse(&text, base).expect("sound")
    }

    fn orders(lots: &str) -> Orders {
        Orders::new(&config(lots).orders[0]).expect("sound")
    }

    impl Wire {
        fn new(interface: &str, on_fault: OnFault) -> Self {
            let mut config = config("1_000");
            config.prefilter.on_fault = on_fault;
            let interface = XdpFilter {
                interface: interface.to_owned(),
                mode: XdpMode::Generic,
            };
            let orders = orders("1_000");
            let kernel = Kernel::open(&config, &interface, &orders).expect("root, and an interface without a program");
            let gateway = UdpSocket::bind(LISTEN).expect("the port");
            gateway
                .set_read_timeout(Some(Duration::from_secs(5)))
                .expect("a timeout");
            let mut wire = Self {
                kernel,
                client: UdpSocket::bind("127.0.0.1:0").expect("a port"),
                gateway,
                instrument: config.instruments[0].id,
            };
            let peer = wire.client.local_addr().expect("bound");
            let flow = LinkFlow {
                peer,
                tag: 5,
                trailer: 0,
            };
            wire.kernel.flow(SESSION, Some(flow));
            wire
        }

        fn order(&self, lots: u64) -> (NewOrder, Vec<u8>) {
            let order = NewOrder {
                client_order_id: ClientOrderId(1),
                instrument: self.instrument,
                account: AccountId(2),
                session: SESSION,
                side: Side::Buy,
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::Day,
                price: Price(1_000_000_000),
                quantity: Quantity(lots),
                trigger: Trigger(0),
                terms: OrderTerms::NONE,
            };
            let mut bytes = [0; MAX_MESSAGE_LENGTH];
            let length = native::encode_request(&Request::New(order), &mut bytes);
            (order, bytes[..length].to_vec())
        }

        fn receive(&self) -> std::io::Result<usize> {
            self.gateway.recv(&mut [0; 128])
        }

        /// Over the wire, and what the gateway says of it.
        fn judged(&mut self, sequence: u32, lots: u64) -> Result<(), Reason> {
            let (order, message) = self.order(lots);
            self.send(sequence, &message);
            self.kernel.arrived(SESSION, SequenceNumber(sequence.into()), &message);
            self.kernel.judge(&order)
        }

        fn send(&self, sequence: u32, message: &[u8]) {
            let sent = self.send_only(sequence, message);
            assert_eq!(self.receive().expect("in time"), sent);
        }

        fn send_only(&self, sequence: u32, message: &[u8]) -> usize {
            let mut datagram = vec![0; 16];
            datagram[..4].copy_from_slice(&5_u32.to_le_bytes());
            datagram[4..8].copy_from_slice(&sequence.to_le_bytes());
            datagram[12] = 48;
            datagram[14] = 1;
            datagram.extend_from_slice(message);
            self.client.send_to(&datagram, LISTEN).expect("sent")
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn the_kernels_verdict_is_that_on_the_order_and_what_has_none_is_as_the_operator_said() {
        for (on_fault, then) in CHOICES {
            let mut wire = Wire::new("lo", on_fault);
            assert_eq!(wire.judged(1, 1_000), Ok(()));
            assert_eq!(wire.judged(2, 1_001), Err(Reason::MaxQuantity));
            assert_eq!(wire.judged(2, 1_001), then, "the verdict was used");

            let (order, message) = wire.order(5);
            wire.kernel.arrived(SESSION, SequenceNumber(3), &message);
            assert_eq!(wire.kernel.judge(&order), then, "it came past the program");
            wire.send(4, &wire.order(6).1);
            wire.kernel.arrived(SESSION, SequenceNumber(4), &message);
            assert_eq!(wire.kernel.judge(&order), then, "other bytes were judged");
            let view = wire.kernel.view();
            assert_eq!((view.counters.received, view.counters.refused), (3, 1));
            assert_eq!((view.fallback.unjudged, view.fault), (3, None));

            let elsewhere = NewOrder {
                session: SessionId(2),
                ..order
            };
            assert_eq!(wire.kernel.judge(&elsewhere), Ok(()), "it has the shard's own filter");

            wire.kernel.guard.fail(Fault::Detached);
            assert_eq!(wire.judged(5, 1), then);
            assert_eq!(wire.kernel.view().fallback.unjudged, 3, "a fault is not the order's");
        }
    }

    #[test]
    fn its_memory_is_known_before_it_is_taken() {
        let of = |window: &str| {
            let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs"));
            let text = std::fs::read_to_string(base.join("gateway.toml")).expect("the example");
            let link = LINK.replacen("1024", window, 1);
            let table = "[prefilter]\nbackend = \"xdp\"\n[prefilter.xdp]\ninterface = \"lo\"\nmode = \"generic\"\n";
            let text = text.replacen("[[sessions]]", &format!("{table}{link}[[sessions]]"), 1);
            let memory = crate::memory::memory(&Config::parse(&text, base).expect("sound"));
            memory
                .iter()
                .find(|(name, _)| *name == "pre-filter")
                .expect("its line")
                .1
        };
        // For each number a place among those judged, and one for its verdict; the numbers of trials have places too. A link
        // has more of them than its window: the next power of two.
        let of_a_number = 2 * size_of::<u64>() + size_of::<Option<Record>>();
        assert_eq!(of("2048") - of("1024"), 2_048 * of_a_number);
        assert!(of("1024") > RING_BYTES as usize);
    }

    #[test]
    #[ignore = "needs root"]
    fn it_follows_the_limits_and_drops_what_comes_when_nobody_is_there() {
        let mut wire = Wire::new("lo", OnFault::Reject);
        assert_eq!(wire.judged(1, 1_000), Ok(()));
        wire.kernel.load(&orders("900"));
        assert_eq!(wire.judged(2, 901), Err(Reason::MaxQuantity));
        assert_eq!(wire.judged(3, 900), Ok(()));
        assert_eq!(wire.kernel.view().generation, 2);

        wire.kernel.flow(SESSION, None);
        wire.gateway.set_nonblocking(true).expect("set");
        wire.send_only(4, &wire.order(1).1);
        assert!(wire.receive().is_err(), "it came to the socket");
        assert_eq!(wire.kernel.view().counters.received, 3);
    }

    #[test]
    #[ignore = "needs root"]
    fn an_interface_that_is_gone_is_a_fault_and_the_operators_choice_holds() {
        let ip = |arguments: &str| {
            let done = std::process::Command::new("ip").args(arguments.split(' ')).status();
            assert!(done.expect("iproute2").success(), "{arguments}");
        };
        for (on_fault, then) in CHOICES {
            ip("link add tgk0 type veth peer name tgk1");
            let mut wire = Wire::new("tgk0", on_fault);
            wire.kernel.beat();
            assert_eq!(wire.kernel.view().fault, None);
            ip("link del tgk0");
            wire.kernel.beat();
            assert_eq!(wire.kernel.view().fault, Some(Fault::Detached));
            wire.kernel.load(&orders("900"));
            assert_eq!(wire.judged(1, 1), then);
            let view = wire.kernel.view();
            assert_eq!((view.generation, view.fallback.unjudged), (1, 0));
            assert_eq!(view.fallback.refused + view.fallback.to_software, 1);
        }
    }
}
