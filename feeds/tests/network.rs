//! Replay, publisher and receivers over sockets of this machine. Time is the test's own; loopback delivers at once.

use feeds::{
    FeedInstrument, Inspection, Pace, ReferenceFeed, ReferenceFeedConfig, Replay, ReplayConfig, UdpPublisherConfig,
    UdpReceiver, UdpReceiverConfig, limits, sample,
};
use net::options::UdpOptions;
use net::udp::UdpSocket;
use proto::itch::OrderDelete;
use proto::mold::Event;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tempfile::NamedTempFile;
use types::{Bbo, Duration, InstrumentId, Symbol, Timestamp};
use zerocopy::IntoBytes;

const START: Timestamp = Timestamp(1_700_000_000_000_000_000);
const STEP: Duration = Duration::from_millis(1);
/// More turns than any of these tests needs.
const MAX_TURNS: u64 = 200_000;

fn localhost() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn feed_file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("file");
    file.write_all(bytes).expect("written");
    file
}

fn replay(files: Vec<PathBuf>, destination: SocketAddr) -> ReplayConfig {
    ReplayConfig {
        files,
        symbols: None,
        pace: Pace::Unpaced,
        from_ns: 0,
        until_ns: u64::MAX,
        passes: Some(1),
        linger: Duration::from_millis(50),
        session_prefix: 42,
        publisher: UdpPublisherConfig {
            local: localhost(),
            destinations: vec![destination],
            interface: Ipv4Addr::LOCALHOST,
            ring: 1 << 16,
            heartbeat: Duration::from_millis(10),
        },
    }
}

fn receiver(listen: SocketAddr, requests: Option<SocketAddr>) -> UdpReceiverConfig {
    UdpReceiverConfig {
        listen,
        interface: Ipv4Addr::LOCALHOST,
        requests,
        receiver: limits::RECEIVER,
    }
}

/// What a receiver was told.
#[derive(Default, PartialEq, Eq, Debug)]
struct Told {
    started: u64,
    messages: u64,
    lost: u64,
    ended: u64,
}

impl Told {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Started { .. } => self.started += 1,
            Event::Message { .. } => self.messages += 1,
            Event::Lost { count, .. } => self.lost += count,
            Event::Ended => self.ended += 1,
        }
    }
}

/// Forwards datagrams and drops one in `every`.
struct LossyRelay {
    socket: UdpSocket,
    to: SocketAddr,
    every: u64,
    seen: u64,
}

impl LossyRelay {
    fn new(to: SocketAddr, every: u64) -> Self {
        let options = UdpOptions {
            receive_buffer_bytes: Some(limits::RECEIVE_BUFFER_BYTES),
            ..UdpOptions::default()
        };
        Self {
            socket: UdpSocket::bind(localhost(), &options).expect("socket"),
            to,
            every,
            seen: 0,
        }
    }

    fn turn(&mut self) {
        let mut buffer = [0; 2048];
        while let Some((length, _)) = self.socket.recv_from(&mut buffer).expect("received") {
            self.seen += 1;
            if !self.seen.is_multiple_of(self.every) {
                self.socket.send_to(&buffer[..length], self.to).expect("sent");
            }
        }
    }
}

#[test]
fn each_pass_is_a_session_that_arrives_whole() {
    let bytes = sample::generate(1, 3_000);
    let files = [feed_file(&bytes), feed_file(&sample::generate(2, 1_000))];
    let mut told = Told::default();
    let socket = UdpReceiver::open(&receiver(localhost(), None)).expect("receiver");
    let destination = socket.local_addr().expect("address");
    let mut socket = socket;
    let paths = files.iter().map(|file| file.path().to_owned()).collect();
    let mut replay = Replay::open(ReplayConfig {
        passes: Some(2),
        ..replay(paths, destination)
    })
    .expect("replay");
    let mut now = START;
    for _ in 0..MAX_TURNS {
        replay.turn(now);
        socket.turn(now, &mut |event| told.on_event(event));
        if replay.is_done() {
            break;
        }
        now = now + STEP;
    }
    assert!(replay.is_done());
    let messages = replay.counters().messages;
    assert!(messages > 8_000, "{messages}");
    let expected = Told {
        started: 4,
        messages,
        lost: 0,
        ended: 4,
    };
    assert_eq!(told, expected);
}

#[test]
fn a_network_that_loses_packets_loses_no_message() {
    let file = feed_file(&sample::generate(1, 5_000));
    let mut told = Told::default();
    // The publisher's address is known only once it is open, and so is the receiver's: the relay comes between.
    let mut relay = LossyRelay::new(localhost(), 5);
    let relayed = relay.socket.local_addr().expect("address");
    let mut replay = Replay::open(replay(vec![file.path().to_owned()], relayed)).expect("replay");
    let requests = replay.local_addr().expect("address");
    let mut receiver = UdpReceiver::open(&receiver(localhost(), Some(requests))).expect("receiver");
    relay.to = receiver.local_addr().expect("address");
    let mut now = START;
    for _ in 0..MAX_TURNS {
        replay.turn(now);
        relay.turn();
        receiver.turn(now, &mut |event| told.on_event(event));
        if replay.is_done() {
            break;
        }
        now = now + STEP;
    }
    assert_eq!(
        (told.messages, told.lost, told.ended),
        (replay.counters().messages, 0, 1)
    );
    assert!(receiver.counters().gaps > 10, "{:?}", receiver.counters());
    assert!(
        replay.publisher_counters().retransmitted > 100,
        "{:?}",
        replay.publisher_counters()
    );
}

#[test]
fn what_cannot_be_had_again_is_told_as_lost() {
    let file = feed_file(&sample::generate(1, 5_000));
    let mut told = Told::default();
    let mut relay = LossyRelay::new(localhost(), 20);
    let relayed = relay.socket.local_addr().expect("address");
    let mut config = replay(vec![file.path().to_owned()], relayed);
    config.linger = Duration::from_secs(1);
    let mut replay = Replay::open(config).expect("replay");
    let mut receiver = UdpReceiver::open(&receiver(localhost(), None)).expect("receiver");
    relay.to = receiver.local_addr().expect("address");
    let mut now = START;
    for _ in 0..MAX_TURNS {
        replay.turn(now);
        relay.turn();
        receiver.turn(now, &mut |event| told.on_event(event));
        if replay.is_done() || told.ended > 0 {
            break;
        }
        now = now + STEP;
    }
    assert!(told.lost > 0);
    assert_eq!(told.messages + told.lost, replay.counters().messages);
    assert_eq!(told.ended, 1);
}

fn instruments(symbols: &[&str]) -> Vec<FeedInstrument> {
    (1..)
        .zip(symbols)
        .map(|(id, symbol)| FeedInstrument {
            id: InstrumentId(id),
            symbol: Symbol::new(symbol.as_bytes()).expect("symbol"),
            lot_size: 100,
        })
        .collect()
}

fn reference_feed(listen: SocketAddr, symbols: &[&str]) -> ReferenceFeed {
    let config = ReferenceFeedConfig {
        receiver: receiver(listen, None),
        max_orders: 4096,
        max_levels: 256,
    };
    ReferenceFeed::open(&config, &instruments(symbols)).expect("feed")
}

/// Replays to a reference feed until the replay is done, and gives the last state of each instrument.
fn follow(replay: &mut Replay, feed: &mut ReferenceFeed) -> BTreeMap<u32, Bbo> {
    let mut last = BTreeMap::new();
    let mut now = START;
    for _ in 0..MAX_TURNS {
        replay.turn(now);
        feed.turn(now, &mut |id, bbo| {
            assert_eq!(bbo.time, now);
            last.insert(id.0, bbo);
        });
        if replay.is_done() {
            break;
        }
        now = now + STEP;
    }
    last
}

#[test]
fn reference_prices_are_those_of_the_file() {
    let bytes = sample::generate(1, 5_000);
    let file = feed_file(&bytes);
    let mut feed = reference_feed(localhost(), &["GOLF", "ALFA", "NONE"]);
    let destination = feed.local_addr().expect("address");
    let mut replay = Replay::open(replay(vec![file.path().to_owned()], destination)).expect("replay");
    let last = follow(&mut replay, &mut feed);

    let mut inspection = Inspection::new(None);
    let mut file = feeds::BinaryFile::new(bytes.as_slice(), "sample");
    while let Some(message) = file.next_message().expect("message") {
        inspection.on_message(message);
    }
    for (id, symbol) in [(1, "GOLF"), (2, "ALFA")] {
        let facts = inspection
            .symbols()
            .find(|facts| facts.symbol.as_str() == symbol)
            .expect(symbol);
        let bbo = last[&id];
        assert_eq!(
            (bbo.bid.price, bbo.ask.price, bbo.last),
            (facts.bbo.bid.price, facts.bbo.ask.price, facts.bbo.last)
        );
        assert_eq!(bbo.bid.quantity.0, facts.bbo.bid.quantity.0 / 100, "lots");
    }
    assert!(
        last[&3].bid.quantity.is_zero() && last[&3].last.is_null(),
        "it is not in the feed"
    );
    let counters = feed.counters();
    assert_eq!((counters.unknown_types, counters.malformed), (0, 0));
    assert_eq!((counters.books.foreign_stocks, counters.books.unknown_orders), (6, 0));
    assert!(counters.books.foreign_messages > 3_000);
}

#[test]
fn a_multicast_feed_is_received() {
    let file = feed_file(&sample::generate(1, 500));
    let group = Ipv4Addr::new(239, 255, 71, 2);
    let mut feed = reference_feed(SocketAddr::from((group, 0)), &["ALFA"]);
    let port = feed.local_addr().expect("address").port();
    let destination = SocketAddr::from((group, port));
    let mut replay = Replay::open(replay(vec![file.path().to_owned()], destination)).expect("replay");
    let last = follow(&mut replay, &mut feed);
    assert_eq!(feed.receiver_counters().messages, replay.counters().messages);
    assert!(!last[&1].bid.quantity.is_zero());
}

#[test]
fn symbols_that_are_not_wanted_are_not_published() {
    let file = feed_file(&sample::generate(1, 3_000));
    let mut feed = reference_feed(localhost(), &["ALFA", "BRVO"]);
    let destination = feed.local_addr().expect("address");
    let wanted = ["ALFA", "NONE"].map(|symbol| Symbol::new(symbol.as_bytes()).expect("symbol"));
    let mut replay = Replay::open(ReplayConfig {
        symbols: Some(wanted.to_vec()),
        ..replay(vec![file.path().to_owned()], destination)
    })
    .expect("replay");
    let last = follow(&mut replay, &mut feed);
    assert!(!last[&1].bid.quantity.is_zero() && last[&2].bid.quantity.is_zero());
    assert_eq!(replay.missing_symbols().collect::<Vec<_>>(), wanted[1..]);
    assert!(replay.counters().messages < 1_000);
    assert_eq!(feed.counters().books.foreign_stocks, 0);
}

#[test]
fn what_is_no_message_is_skipped_and_counted() {
    let mut bytes = sample::generate(1, 200);
    bytes.truncate(bytes.len() - 2);
    let delete = OrderDelete::new(
        proto::itch::Stamp {
            stock_locate: 1,
            time_ns: 1,
        },
        1,
    );
    for odd in [b"!odd".as_slice(), &delete.as_bytes()[..18]] {
        bytes.extend(u16::try_from(odd.len()).expect("short").to_be_bytes());
        bytes.extend(odd);
    }
    let file = feed_file(&bytes);
    let mut feed = reference_feed(localhost(), &["ALFA"]);
    let destination = feed.local_addr().expect("address");
    let mut replay = Replay::open(replay(vec![file.path().to_owned()], destination)).expect("replay");
    follow(&mut replay, &mut feed);
    let counters = replay.counters();
    assert_eq!(
        (counters.skipped, counters.messages),
        (2, feed.receiver_counters().messages)
    );
    assert_eq!(feed.counters().malformed, 0);
}

#[test]
fn a_pace_is_kept_from_its_moment_on() {
    let file = feed_file(&sample::generate(1, 4_000));
    let mut feed = reference_feed(localhost(), &["ALFA"]);
    let destination = feed.local_addr().expect("address");
    // The sample's market opens at 09:30 and a message comes every 1.3 ms or so.
    let open_ns = 34_200_000_000_000;
    let mut replay = Replay::open(ReplayConfig {
        pace: Pace::Speed { permille: 2_000 },
        from_ns: open_ns,
        until_ns: open_ns + 4_000_000_000,
        ..replay(vec![file.path().to_owned()], destination)
    })
    .expect("replay");
    let mut now = START;
    let mut at = Vec::new();
    for _ in 0..3_000 {
        replay.turn(now);
        feed.turn(now, &mut |_, _| {});
        at.push(replay.counters().messages);
        now = now + STEP;
    }
    let total = replay.counters().messages;
    assert!(replay.is_done());
    assert!(at[50] > 200, "what is earlier comes at once: {}", at[50]);
    let (before, half) = (at[50], at[1_000]);
    let share = (half - before) * 100 / (total - before);
    assert!(
        (40..60).contains(&share),
        "half of four seconds at twice the speed takes one second: {share} %"
    );
    assert!(
        replay.counters().lag_max < Duration::from_millis(2),
        "{}",
        replay.counters().lag_max
    );
}

#[test]
fn a_late_receiver_gets_the_whole_session() {
    let file = feed_file(&sample::generate(1, 3_000));
    // Nothing passes at first, as if nobody were there.
    let mut relay = LossyRelay::new(localhost(), 1);
    let relayed = relay.socket.local_addr().expect("address");
    let mut config = replay(vec![file.path().to_owned()], relayed);
    config.linger = Duration::from_secs(2);
    let mut replay = Replay::open(config).expect("replay");
    let mut now = START;
    for _ in 0..200 {
        replay.turn(now);
        relay.turn();
        now = now + STEP;
    }
    let requests = replay.local_addr().expect("address");
    let mut receiver = UdpReceiver::open(&receiver(localhost(), Some(requests))).expect("receiver");
    relay.to = receiver.local_addr().expect("address");
    relay.every = u64::MAX;
    let mut told = Told::default();
    for _ in 0..MAX_TURNS {
        replay.turn(now);
        relay.turn();
        receiver.turn(now, &mut |event| told.on_event(event));
        if told.ended > 0 || replay.is_done() {
            break;
        }
        now = now + STEP;
    }
    assert_eq!(
        (told.messages, told.lost, told.ended),
        (replay.counters().messages, 0, 1)
    );
}
