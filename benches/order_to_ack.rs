//! From a client's order to its acknowledgement, through gateway and exchange simulator over loopback, one native order at
//! a time: TCP to the gateway, LTP over UDP to the exchange, and back.
//!
//! `cargo bench --bench order_to_ack`. The gateway's shard has one CPU; client and exchange take turns in one thread on the
//! other, as in the demo on two cores. The floor does the same with bare sockets and nothing else: bytes go by TCP to a
//! spinning thread, by UDP back to the thread that takes turns, and the same way back. Rounds alternate, because the speed
//! of the machine changes from minute to minute: only the ratio of one round means something. The last line is the median
//! of the ratios; the aim is at most 1.5.

use gateway::Config;
use gateway::gateway::Gateway;
use latency::Recorder;
use latency::clock::Clock;
use net::link::AnyLink;
use net::tcp::{Received, TcpListener, TcpStream};
use net::udp::UdpPeer;
use net::{Datagram, TcpOptions, UdpOptions, cpu};
use proto::native::{self, Message};
use proto::soup::{self, ClientEvent, ClientSession, Login, Password, SessionName, UserName};
use sim::exchange::{AnyJournal, Exchange, ExchangeConfig};
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use types::{
    AccountId, ClientOrderId, Duration, ExecType, Instrument, InstrumentId, LimitClass, NewOrder, OrderTerms,
    OrderType, Price, Quantity, Request, SessionId, ShardId, Side, Symbol, TimeInForce, Trigger, VenueId,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
type BenchExchange = Exchange<AnyLink, AnyJournal>;

const ROUNDS: usize = 5;
const ORDERS: usize = 20_000;
/// Enough to see that it runs, for `cargo test --benches`.
const ORDERS_TEST: usize = 50;
const WARM_UP: usize = 1_000;
/// Bytes of an order in its packet, near enough; of the datagram too.
const LENGTH: usize = 64;
/// How long anything may take before the other side is taken for lost.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

fn main() -> ExitCode {
    let cpus = cpu::permitted();
    let [cpu_a, .., cpu_b] = cpus[..] else {
        eprintln!("order_to_ack needs two CPUs, this process is permitted {cpus:?}; run it where there are more");
        return ExitCode::FAILURE;
    };
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    match run(cpu_a, cpu_b, if is_bench { ORDERS } else { ORDERS_TEST }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("order_to_ack: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cpu_a: usize, cpu_b: usize, count: usize) -> Outcome<()> {
    let (model, kernel) = (net::host::cpu_model(), net::host::kernel());
    println!("{model} · Linux {kernel} · gateway on CPU {cpu_a}, client and exchange on {cpu_b} · {count} orders, µs");
    println!(
        "{:>5} {:>8} {:>7} {:>7} {:>7} {:>7}",
        "round", "what", "p50", "p99", "p99.9", "max"
    );
    let mut ratios = Vec::with_capacity(ROUNDS);
    for round in 1..=ROUNDS {
        let bare = print_line(round, "floor", bare_chain(cpu_a, cpu_b, count)?);
        let (samples, again) = orders(cpu_a, cpu_b, count)?;
        let ours = print_line(round, "order", samples);
        ratios.push(ours / bare);
        println!(
            "{round:>5} order to floor at p50: {:.3}; {again} retransmits",
            ours / bare
        );
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("ratio at p50, median of {ROUNDS} rounds: {:.3}", ratios[ROUNDS / 2]);
    Ok(())
}

/// The way of an order on bare sockets.
fn bare_chain(cpu_a: usize, cpu_b: usize, count: usize) -> Outcome<Vec<u64>> {
    let (client, gateway) = tcp_pair()?;
    let (exchange, venue) = udp_pair()?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let relay = scope.spawn(|| relay(gateway, venue, cpu_a, &done));
        let turns = scope.spawn(|| {
            let samples = turns(client, exchange, cpu_b, count);
            done.store(true, Ordering::Release);
            samples
        });
        let samples = turns.join().expect("the thread that takes turns does not panic");
        relay.join().expect("the relay does not panic")?;
        samples
    })
}

/// In the gateway's place: TCP to UDP and back.
fn relay(mut client: TcpStream, mut venue: UdpPeer, cpu: usize, done: &AtomicBool) -> Outcome<()> {
    cpu::pin(cpu)?;
    let mut message = [0; LENGTH];
    let mut at = 0;
    while !done.load(Ordering::Relaxed) {
        if let Some(length) = venue.recv(&mut message)? {
            client.send(&message[..length])?;
        }
        if let Received::Bytes(length) = client.recv(&mut message[at..])? {
            at += length;
            if at == LENGTH {
                at = 0;
                venue.send(&message)?;
            }
        }
    }
    Ok(())
}

/// In the place of client and exchange: whatever comes by UDP goes back, and the client waits for it by TCP.
fn turns(mut client: TcpStream, mut exchange: UdpPeer, cpu: usize, count: usize) -> Outcome<Vec<u64>> {
    cpu::pin(cpu)?;
    let mut message = [0x5a; LENGTH];
    let mut samples = Vec::with_capacity(WARM_UP + count);
    for _ in 0..WARM_UP + count {
        let start = Instant::now();
        client.send(&message)?;
        let mut at = 0;
        while at < LENGTH {
            if let Some(length) = exchange.recv(&mut message)? {
                exchange.send(&message[..length])?;
            }
            if let Received::Bytes(length) = client.recv(&mut message[at..])? {
                at += length;
            }
            if start.elapsed() > PATIENCE {
                return Err("bytes were lost on loopback".into());
            }
        }
        samples.push(u64::try_from(start.elapsed().as_nanos())?);
    }
    Ok(samples.split_off(WARM_UP))
}

/// Orders through gateway and exchange; and how many messages of their link were transmitted again.
fn orders(cpu_a: usize, cpu_b: usize, count: usize) -> Outcome<(Vec<u64>, u64)> {
    let folder = tempfile::tempdir()?;
    let clock = Clock::start();
    let (venue_sender, venue) = mpsc::channel();
    let (gateway_sender, gateway) = mpsc::channel();
    let path = folder.path().to_owned();
    let others = thread::spawn(move || -> Outcome<_> {
        cpu::pin(cpu_b)?;
        let (mut exchange, address) = exchange(&path, clock)?;
        venue_sender.send(address)?;
        let address = loop {
            exchange.turn(clock.now());
            match gateway.try_recv() {
                Ok(address) => break address,
                Err(mpsc::TryRecvError::Empty) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let samples = Trader::log_on(address, clock, &mut exchange)?.trade(count, &mut exchange)?;
        let again = exchange
            .link_counters()
            .map(|(_, link)| link.retransmitted)
            .sum::<u64>();
        Ok((samples, again))
    });
    let venue = venue.recv()?;
    let prepared = Gateway::prepare(gateway_config(folder.path(), venue, cpu_a, cpu_b)?, clock)?;
    let status = std::sync::Arc::clone(&prepared.statuses()[0]);
    let (_door, mut shards) = prepared.open()?;
    let shard = shards.pop().ok_or("the config has a shard")?;
    let running = shard.run(Recorder::off(), |socket| socket)?;
    let start = Instant::now();
    while !status.all_links_up() {
        if start.elapsed() > PATIENCE {
            return Err("the venue link did not come up".into());
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    gateway_sender.send(status.addresses().native.ok_or("the gateway listens")?)?;
    let outcome = others.join().expect("the other thread does not panic");
    running.stop()?;
    let (samples, again) = outcome?;
    Ok((samples, again + status.links[0].retransmitted.load(Ordering::Relaxed)))
}

/// A client that has one order out at a time.
struct Trader {
    stream: TcpStream,
    session: ClientSession,
    clock: Clock,
    buffer: [u8; 1_024],
    end: usize,
}

impl Trader {
    fn log_on(gateway: SocketAddr, clock: Clock, exchange: &mut BenchExchange) -> Outcome<Self> {
        let now = clock.now();
        let mut trader = Self {
            stream: TcpStream::connect(gateway, &TcpOptions::tuned(), Duration::from_secs(5))?,
            session: ClientSession::new(now, soup::Timing::default()),
            clock,
            buffer: [0; 1_024],
            end: 0,
        };
        let login = Login {
            user_name: UserName::new(b"trader").ok_or("a user")?,
            password: Password::new(b"secret").ok_or("a password")?,
            session: SessionName::BLANK,
            sequence: 0,
        };
        let mut packet = [0; soup::MAX_PACKET_LENGTH];
        let length = trader.session.login(now, &login, &mut packet);
        trader.stream.send(&packet[..length])?;
        let start = Instant::now();
        while !trader.session.is_established() {
            exchange.turn(clock.now());
            trader.receive(|_| {})?;
            if start.elapsed() > PATIENCE {
                return Err("the gateway does not answer the login".into());
            }
        }
        Ok(trader)
    }

    /// Nanoseconds from each order's send to its acknowledgement. Orders are immediate-or-cancel and find nobody, so that
    /// each is over before the next.
    fn trade(mut self, count: usize, exchange: &mut BenchExchange) -> Outcome<Vec<u64>> {
        let mut samples = Vec::with_capacity(WARM_UP + count);
        for number in 1..=(WARM_UP + count) as u64 {
            let order = order(ClientOrderId(number))?;
            let start = Instant::now();
            let (mut message, mut packet) = ([0; native::MAX_MESSAGE_LENGTH], [0; soup::MAX_PACKET_LENGTH]);
            let length = native::encode_request(&Request::New(order), &mut message);
            let length = self.session.send(self.clock.now(), &message[..length], &mut packet);
            self.stream.send(&packet[..length])?;
            let (mut acknowledged, mut refused, mut is_over) = (None, None, false);
            while !is_over {
                exchange.turn(self.clock.now());
                self.receive(|message| match message {
                    Message::Report(report) if report.exec_type == ExecType::New => {
                        acknowledged = Some(start.elapsed());
                    }
                    Message::Report(report) if report.exec_type == ExecType::Canceled => is_over = true,
                    other => refused = Some(*other),
                })?;
                if let Some(refused) = refused {
                    return Err(format!("the order was answered with {refused:?}").into());
                }
                if start.elapsed() > PATIENCE {
                    return Err("an order was not answered".into());
                }
            }
            let acknowledged = acknowledged.ok_or("an order ended without an acknowledgement")?;
            samples.push(u64::try_from(acknowledged.as_nanos())?);
        }
        Ok(samples.split_off(WARM_UP))
    }

    fn receive(&mut self, mut on_message: impl FnMut(&Message)) -> Outcome<()> {
        match self.stream.recv(&mut self.buffer[self.end..])? {
            Received::Nothing => return Ok(()),
            Received::Bytes(length) => self.end += length,
            Received::Closed => return Err("the gateway hung up".into()),
        }
        let mut start = 0;
        while let Some((packet, used)) =
            soup::parse(&self.buffer[start..self.end]).map_err(|error| format!("{error:?}"))?
        {
            let event = self.session.on_packet(self.clock.now(), packet);
            match event.map_err(|error| format!("{error:?}"))? {
                Some(ClientEvent::Message { payload, .. }) => {
                    on_message(&native::decode(payload).map_err(|error| format!("{error:?}"))?);
                }
                Some(ClientEvent::Rejected(refusal)) => {
                    return Err(format!("the login was refused: {refusal:?}").into());
                }
                _ => {}
            }
            start += used;
        }
        self.buffer.copy_within(start..self.end, 0);
        self.end -= start;
        Ok(())
    }
}

fn order(number: ClientOrderId) -> Outcome<NewOrder> {
    Ok(NewOrder {
        client_order_id: number,
        instrument: InstrumentId(1),
        account: AccountId(1),
        session: SessionId(1),
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::ImmediateOrCancel,
        price: price()?,
        quantity: Quantity(10),
        trigger: Trigger::NONE,
        terms: OrderTerms::NONE,
    })
}

fn price() -> Outcome<Price> {
    Ok(Price::parse(b"100").ok_or("a price")?)
}

/// An exchange whose market is its clients' alone, and where its link listens.
fn exchange(folder: &Path, clock: Clock) -> Outcome<(BenchExchange, SocketAddr)> {
    let config = ExchangeConfig::parse(EXCHANGE, folder)?;
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol: Symbol::new(b"ALFA").ok_or("a symbol")?,
        tick_size: Price::parse(b"0.01").ok_or("a tick")?,
        lot_size: 1,
        reference_price: price()?,
        limit_class: LimitClass(0),
        shard: ShardId(0),
        venue: VenueId(0),
    };
    let exchange = Exchange::open(&config, vec![instrument], clock, Recorder::off(), |socket| socket)
        .map_err(|error| error.to_string())?;
    let address = exchange.links().find_map(|(_, link)| match link {
        AnyLink::Ltp(link) => link.datagrams().local_addr().ok(),
        _ => None,
    });
    let address = address.ok_or("the link listens")?;
    Ok((exchange, address))
}

fn gateway_config(folder: &Path, venue: SocketAddr, cpu: usize, drainer_cpu: usize) -> Outcome<Config> {
    std::fs::write(folder.join("instruments.csv"), INSTRUMENTS)?;
    let text = GATEWAY
        .replace("VENUE", &venue.to_string())
        .replace("DRAINER_CPU", &drainer_cpu.to_string())
        .replace("SHARD_CPU", &cpu.to_string());
    Ok(Config::parse(&text, folder).map_err(|error| error.to_string())?)
}

fn tcp_pair() -> Outcome<(TcpStream, TcpStream)> {
    let options = TcpOptions::tuned();
    let listener = TcpListener::bind(localhost(), &options)?;
    let near = TcpStream::connect(listener.local_addr()?, &options, Duration::from_secs(5))?;
    loop {
        if let Some((far, _)) = listener.accept()? {
            return Ok((near, far));
        }
    }
}

fn udp_pair() -> Outcome<(UdpPeer, UdpPeer)> {
    let options = UdpOptions::default();
    // Each end has to know the other's port before it connects: take two ports, then open them again as a pair.
    let ports = [
        UdpPeer::learn(localhost(), &options)?,
        UdpPeer::learn(localhost(), &options)?,
    ];
    let (a, b) = (ports[0].local_addr()?, ports[1].local_addr()?);
    drop(ports);
    Ok((
        UdpPeer::connect(b, Some(a), &options)?,
        UdpPeer::connect(a, Some(b), &options)?,
    ))
}

fn localhost() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn print_line(round: usize, name: &str, mut samples: Vec<u64>) -> f64 {
    samples.sort_unstable();
    // Nearest rank.
    let at = |per_mille: usize| {
        let ns = samples[(samples.len() * per_mille).div_ceil(1_000).max(1) - 1];
        ns as f64 / 1e3
    };
    println!(
        "{round:>5} {name:>8} {:>7.2} {:>7.2} {:>7.2} {:>7.2}",
        at(500),
        at(990),
        at(999),
        at(1_000)
    );
    at(500)
}

const INSTRUMENTS: &str = "id,symbol,tick_size,lot_size,reference_price,limit_class,shard,venue
1,ALFA,0.01,1,100,default,0,sim
";

/// The feed goes nowhere: an order that finds nobody changes no book.
const EXCHANGE: &str = r#"
instruments = "instruments.csv"
trading_day = 20261130
self_match = "allow"
idle = "spin"
[capacity]
orders = 65_536
levels = 8_192
client_orders = 8_192
special_orders = 64
[feed]
id = 1
local = "127.0.0.1:0"
destinations = ["127.0.0.1:9"]
retransmit_messages = 131_072
heartbeat_ms = 100
[journal]
directory = "exchange-journal"
ring_bytes = 67_108_864
segment_bytes = 268_435_456
watermark = "appended"
[[sessions]]
id = 1
transport = "ltp"
listen = "127.0.0.1:0"
window_messages = 65_536
heartbeat_ms = 10
dead_after_ms = 1000
"#;

const GATEWAY: &str = r#"
instruments = "instruments.csv"
trading_day = 20261130
[journal]
directory = "gateway-journal"
ring_bytes = 67_108_864
segment_bytes = 268_435_456
watermark = "appended"
drainer_cpu = DRAINER_CPU
[[shards]]
cpu = SHARD_CPU
idle = "spin"
fix_listen = "127.0.0.1:0"
native_listen = "127.0.0.1:0"
[[venues]]
name = "sim"
[[venues.links]]
shard = 0
transport = "ltp"
session = 1
peer = "VENUE"
window_messages = 4096
cancel_reserve_messages = 512
heartbeat_ms = 10
dead_after_ms = 1000
[[accounts]]
id = 1
max_quantity_lots = 1_000
max_notional = "1000000"
max_open_orders = 1_000
max_open_notional = "100000000"
[[sessions]]
id = 1
protocol = "native"
shard = 0
user = "trader"
accounts = [1]
owner = 1
max_open_orders = 1_000
resend_messages = 65_536
send_buffer_bytes = 1_048_576
[risk]
mark_every_ms = 1_000
[risk.classes.default]
max_quantity_lots = 1_000
max_notional = "1000000"
collar = { basis_points = 1000 }
reference_max_age_ms = 60_000
reference_missing = "master"
market_orders = true
[capacity]
open_orders = 4_096
positions = 16
own_books = 16
crossing_messages = 64
"#;
