//! The exchange over real sockets of this machine: links, feed, recording, journal. Time is the test's own.

use crate::market::instrument;
use latency::clock::Clock;
use latency::{Header, Record, Recorder, Recording};
use net::Link;
use net::link::{AnyLink, LinkConfig, LinkEnd, LinkEvent, LtpLinkConfig, Resume};
use net::udp::UdpSocket;
use net::{CarrierConfig, UdpOptions};
use proto::itch::{AddOrder, BuySell, OrderExecuted, Stamp, Stock};
use proto::ltp;
use proto::mold::{Content, MAX_PACKET_LENGTH, Packet, PacketWriter, Request as GapRequest, Session};
use proto::native::{self, MAX_MESSAGE_LENGTH};
use sim::exchange::{AnyJournal, Exchange, ExchangeConfig, StartError};
use std::net::SocketAddr;
use std::path::Path;
use types::{
    AccountId, ClientOrderId, Duration, ExecReport, ExecType, InstrumentId, NewOrder, OrderTerms, OrderType, Price,
    Quantity, Request, SessionId, Side, TimeInForce, Timestamp, Trigger,
};
use zerocopy::IntoBytes;

const SESSION: SessionId = SessionId(1);
const START: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// An exchange and everybody around it.
struct World {
    exchange: Exchange<AnyLink, AnyJournal>,
    gateway: AnyLink,
    /// Receives the feed.
    listener: UdpSocket,
    /// Publishes the recording, and asks for gaps.
    other: UdpSocket,
    now: Timestamp,
    recorded: u64,
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn config(directory: &Path, listener: SocketAddr, link: SocketAddr, day: u32) -> ExchangeConfig {
    let text = format!(
        r#"
        instruments = "unused"
        trading_day = {day}
        self_match = "cancel_newest"
        idle = "spin"
        [capacity]
        orders = 1_000
        levels = 500
        client_orders = 500
        special_orders = 8
        [feed]
        id = 3
        local = "127.0.0.1:0"
        destinations = ["{listener}"]
        retransmit_messages = 1_000
        heartbeat_ms = 1_000
        [history]
        listen = "127.0.0.1:0"
        window_messages = 64
        [journal]
        directory = "{}"
        ring_bytes = 1_048_576
        segment_bytes = 1_048_576
        watermark = "appended"
        [[sessions]]
        id = 1
        transport = "ltp"
        listen = "{link}"
        window_messages = 256
        heartbeat_ms = 5
        dead_after_ms = 100
        "#,
        directory.display()
    );
    ExchangeConfig::parse(&text, Path::new("/")).expect("a fine config")
}

fn gateway(peer: SocketAddr, epoch: u64, resume: Resume) -> AnyLink {
    let config = LtpLinkConfig {
        end: LinkEnd::Connect { peer, local: None },
        ltp: ltp::Config::new(SESSION, 256, MAX_MESSAGE_LENGTH),
        carrier: CarrierConfig::Udp(UdpOptions::default()),
        second: None,
    };
    AnyLink::new(&LinkConfig::Ltp(config), epoch, resume).expect("a link")
}

fn open(config: &ExchangeConfig, recorder: Recorder) -> Result<Exchange<AnyLink, AnyJournal>, StartError> {
    Exchange::open(
        config,
        vec![instrument(10, "ALPHA", 1)],
        Clock::start(),
        recorder,
        |socket| socket,
    )
}

impl World {
    fn new(directory: &Path, recorder: Recorder) -> Self {
        let listener = UdpSocket::bind(any_port(), &UdpOptions::default()).unwrap();
        let config = config(directory, listener.local_addr().unwrap(), any_port(), 20_250_303);
        let exchange = open(&config, recorder).expect("a new exchange");
        let peer = exchange.links().next().unwrap().1.local_addr().unwrap();
        let other = UdpSocket::bind(any_port(), &UdpOptions::default()).unwrap();
        Self {
            exchange,
            gateway: gateway(peer, 1, Resume::START),
            listener,
            other,
            now: START,
            recorded: 1,
        }
    }

    /// Gives turns to all until `done` finds what it waits for. Reports and feed messages are collected.
    fn run(&mut self, mut done: impl FnMut(&Seen) -> bool) -> Seen {
        let mut seen = Seen::default();
        let mut buffer = [0; MAX_PACKET_LENGTH];
        for _ in 0..1_000_000 {
            self.now = self.now + Duration::from_micros(10);
            self.exchange.turn(self.now);
            while let Some(event) = self.gateway.poll(self.now, &mut buffer) {
                if let LinkEvent::Message { length, .. } = event {
                    seen.reports
                        .push(native::decode_report(&buffer[..length]).expect("a report"));
                }
            }
            self.gateway.flush(self.now, 0);
            while let Some((length, _)) = self.listener.recv_from(&mut buffer).unwrap() {
                seen.packet(&buffer[..length]);
            }
            if done(&seen) {
                return seen;
            }
        }
        panic!("it never came: {seen:?}");
    }

    fn order(&mut self, number: u64, side: Side, price: i64, lots: u64) {
        let order = NewOrder {
            client_order_id: ClientOrderId(number),
            instrument: InstrumentId(10),
            account: AccountId(u32::try_from(number).unwrap()),
            session: SESSION,
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Day,
            price: Price(price * Price::UNIT),
            quantity: Quantity(lots),
            trigger: Trigger::NONE,
            terms: OrderTerms::NONE,
        };
        let mut message = [0; MAX_MESSAGE_LENGTH];
        let length = native::encode_request(&Request::New(order), &mut message);
        self.gateway.send(&message[..length], 0);
    }

    /// Publishes messages of the recording, in one packet.
    fn record(&mut self, messages: &[&[u8]]) {
        let mut packet = [0; MAX_PACKET_LENGTH];
        let mut writer = PacketWriter::new(&mut packet);
        assert!(messages.iter().all(|message| writer.push(message)));
        let length = writer.finish(Session(*b"RECORDING1"), self.recorded);
        self.recorded += messages.len() as u64;
        let to = self.exchange.history_addr().unwrap().unwrap();
        assert!(self.other.send_to(&packet[..length], to).unwrap());
    }
}

/// What came.
#[derive(Default, Debug)]
struct Seen {
    reports: Vec<ExecReport>,
    /// Sequence number and message.
    feed: Vec<(u64, Vec<u8>)>,
}

impl Seen {
    fn packet(&mut self, datagram: &[u8]) {
        let packet = Packet::parse(datagram).expect("a packet");
        if let Content::Messages(messages) = packet.content {
            self.feed.extend((packet.sequence..).zip(messages.map(<[u8]>::to_vec)));
        }
    }

    fn types(&self) -> String {
        self.feed.iter().map(|(_, message)| char::from(message[0])).collect()
    }

    fn told(&self) -> Vec<(ExecType, u64)> {
        self.reports
            .iter()
            .map(|report| (report.exec_type, report.client_order_id.0))
            .collect()
    }
}

fn add(reference: u64, side: BuySell, shares: u32, price: u32) -> AddOrder {
    let stamp = Stamp {
        stock_locate: 1,
        time_ns: 0,
    };
    AddOrder::new(stamp, reference, side, shares, Stock(*b"ALPHA   "), price * 10_000)
}

#[test]
fn orders_history_and_the_feed_meet_over_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let mut recording = Recording::create(directory.path(), "exchange", &Header::default()).unwrap();
    let mut world = World::new(&directory.path().join("journal"), recording.recorder(1_000));
    assert_eq!(world.run(|seen| !seen.feed.is_empty()).types(), "R");

    world.record(&[add(1, BuySell::Sell, 100, 101).as_bytes()]);
    world.run(|seen| seen.types() == "A");
    world.order(1, Side::Buy, 101, 30);
    world.order(2, Side::Buy, 100, 5);
    let seen = world.run(|seen| seen.reports.len() == 3 && seen.feed.len() == 2);
    assert_eq!(
        seen.told(),
        [(ExecType::New, 1), (ExecType::Fill, 1), (ExecType::New, 2)]
    );
    assert_eq!(seen.types(), "EA");
    let stamp = Stamp {
        stock_locate: 1,
        time_ns: 0,
    };
    world.record(&[
        add(2, BuySell::Buy, 50, 100).as_bytes(),
        OrderExecuted::new(stamp, 2, 20, 7).as_bytes(),
    ]);
    let seen = world.run(|seen| !seen.reports.is_empty() && seen.feed.len() == 4);
    assert_eq!(
        (seen.told(), seen.types().as_str()),
        (vec![(ExecType::Fill, 2)], "AEEX")
    );

    // Someone who missed the first messages gets them again, from the exchange's own address.
    let session = Packet::parse(&feed_packet(&mut world)).unwrap().session;
    let request = GapRequest {
        session,
        sequence: 1,
        count: 3,
    };
    let to = world.exchange.feed_addr().unwrap();
    assert!(world.other.send_to(request.header().as_bytes(), to).unwrap());
    world.exchange.turn(world.now + Duration::from_millis(1));
    let mut packet = [0; MAX_PACKET_LENGTH];
    let (length, _) = world.other.recv_from(&mut packet).unwrap().expect("an answer");
    let mut again = Seen::default();
    again.packet(&packet[..length]);
    assert_eq!((again.types().as_str(), again.feed[0].0), ("RAE", 1));

    world.exchange.record_open_orders(world.now);
    drop(world);
    assert_recorded(recording, directory.path());
}

/// The next packet of the feed: a heartbeat.
fn feed_packet(world: &mut World) -> Vec<u8> {
    world.now = world.now + Duration::from_secs(2);
    world.exchange.turn(world.now);
    let mut packet = [0; MAX_PACKET_LENGTH];
    let (length, _) = world.listener.recv_from(&mut packet).unwrap().expect("a heartbeat");
    packet[..length].to_vec()
}

/// Every order, report and packet was stamped.
fn assert_recorded(mut recording: Recording, directory: &Path) {
    recording.turn().unwrap();
    recording.finish(START).unwrap();
    let bytes = std::fs::read(directory.join("exchange.rec")).unwrap();
    let header = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let records: Vec<Record> = bytes[12 + header..]
        .as_chunks()
        .0
        .iter()
        .map(|record| Record::decode(record).unwrap())
        .collect();
    let count = |wanted: fn(&Record) -> bool| records.iter().filter(|record| wanted(record)).count();
    assert_eq!(count(|record| matches!(record, Record::ExchangeOrder(_))), 2);
    assert_eq!(count(|record| matches!(record, Record::ExchangeReport(_))), 4);
    assert_eq!(count(|record| matches!(record, Record::ExchangeOpen(_))), 0);
    let ticks: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::TickSent(tick) => Some(*tick),
            _ => None,
        })
        .collect();
    assert_eq!(ticks.iter().map(|tick| tick.count).sum::<u32>(), 8);
    assert_eq!(ticks[0].trigger, Trigger::new(3, 1));
    assert!(
        ticks
            .windows(2)
            .all(|pair| pair[0].trigger.sequence() + u64::from(pair[0].count) == pair[1].trigger.sequence())
    );
}

#[test]
fn a_restarted_exchange_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path(), Recorder::off());
    world.record(&[add(1, BuySell::Sell, 100, 101).as_bytes()]);
    world.order(1, Side::Buy, 101, 30);
    world.order(2, Side::Buy, 100, 5);
    let before = world.run(|seen| seen.reports.len() == 3 && seen.feed.len() == 4);
    // An order that the exchange takes and whose answer nobody reads before the end.
    world.order(3, Side::Buy, 99, 7);
    world.gateway.flush(world.now, 0);
    while world.exchange.market().client_order_count() < 2 {
        world.now = world.now + Duration::from_micros(10);
        world.exchange.turn(world.now);
    }
    // The feed hears of it in the next turn.
    world.exchange.turn(world.now);

    let World {
        exchange,
        mut gateway,
        listener,
        other,
        now,
        recorded,
    } = world;
    let link = exchange.links().next().unwrap().1.local_addr().unwrap();
    drop(exchange);
    let config = config(directory.path(), listener.local_addr().unwrap(), link, 20_250_303);
    let exchange = open(&config, Recorder::off()).expect("an exchange on its journal");
    assert_eq!(
        (exchange.market().order_count(), exchange.market().client_order_count()),
        (3, 2)
    );
    exchange.market().audit();
    gateway.flush(now, 0);
    let mut world = World {
        exchange,
        gateway,
        listener,
        other,
        now,
        recorded,
    };
    // The answer comes once the link is up again; the feed goes on with the next numbers and says anew what is traded.
    let seen = world.run(|seen| !seen.reports.is_empty() && seen.types().ends_with('R'));
    assert_eq!(seen.told(), [(ExecType::New, 3)]);
    let last = before.feed.last().unwrap().0;
    let numbers: Vec<u64> = seen.feed.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(numbers, (last + 1..=last + numbers.len() as u64).collect::<Vec<_>>());
    // The recording goes on too: nothing is asked for again, and its order is still known.
    let stamp = Stamp {
        stock_locate: 1,
        time_ns: 0,
    };
    world.record(&[OrderExecuted::new(stamp, 1, 70, 7).as_bytes()]);
    world.order(4, Side::Sell, 99, 12);
    let seen = world.run(|seen| seen.reports.len() == 5);
    assert_eq!(seen.told()[0], (ExecType::New, 4));
    assert_eq!(world.exchange.market().counters().history_unmatched, 0);
}

#[test]
fn a_new_day_expires_orders_and_an_old_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path(), Recorder::off());
    world.order(1, Side::Buy, 101, 30);
    world.run(|seen| !seen.reports.is_empty());
    let listener = world.listener.local_addr().unwrap();
    drop(world);
    let old = config(directory.path(), listener, any_port(), 20_250_302);
    assert!(matches!(open(&old, Recorder::off()), Err(StartError::PastDay { .. })));
    let next = open(
        &config(directory.path(), listener, any_port(), 20_250_304),
        Recorder::off(),
    )
    .unwrap();
    assert_eq!(next.market().order_count(), 0);
}

#[test]
fn a_journal_of_another_market_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(directory.path(), Recorder::off());
    let listener = world.listener.local_addr().unwrap();
    drop(world);
    let config = config(directory.path(), listener, any_port(), 20_250_303);
    let other = Exchange::open(
        &config,
        vec![instrument(11, "BETA", 1)],
        Clock::start(),
        Recorder::off(),
        |socket| socket,
    );
    let error = other.err().expect("another market").to_string();
    assert!(
        error.contains(&directory.path().display().to_string()) && error.contains("other instruments"),
        "{error}"
    );
}
