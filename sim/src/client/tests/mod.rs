//! The client against a gateway of a few lines, over real sockets on the loopback interface and in virtual time.

mod gateway;

use super::*;
use ::journal::JournalWriter;
use gateway::{Gateway, Speech, TRADED, Way};
use latency::{Header, Recording};
use proto::itch::{AddOrder, BuySell, Stamp, Stock, StockDirectory};
use proto::journal::Kind;
use proto::mold::Session;
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;
use types::{Price, Quantity, Quote, Reason, SequenceNumber, Side};
use zerocopy::IntoBytes;

fn config(way: Way, gateway: SocketAddr, load: &str, folder: &Path) -> ClientConfig {
    let login = match way {
        Way::Fix => "[fix]\nsender_comp_id = \"CLIENT\"\ntarget_comp_id = \"TICKGATE\"\nheartbeat_s = 30",
        Way::Native => "[native]\nuser = \"trader\"\npassword = \"secret\"",
        Way::Link => "[link]\njournal = \"journal\"\nwindow_messages = 512\nheartbeat_ms = 10\ndead_after_ms = 500",
    };
    let text = format!(
        "instruments = \"instruments.csv\"\n[gateway]\naddress = \"{gateway}\"\nsession = 3\naccount = 7\n{login}\n\
         [load]\nsymbols = [\"ALFA\", \"BETA\"]\nseed = 1\nioc_percent = 50\nlots_max = 5\nrest_ms = 20\n\
         oversize_lots = 5000\n{load}"
    );
    ClientConfig::parse(&text, folder).unwrap()
}

/// Client and gateway, turn by turn, a millisecond each.
struct World {
    client: Client,
    gateway: Gateway,
    now: Timestamp,
    config: ClientConfig,
    /// Of a link's journal.
    _folder: TempDir,
}

impl World {
    fn new(way: Way, load: &str, recorder: Recorder) -> Self {
        let (gateway, address) = Gateway::new(way);
        let folder = tempfile::tempdir().unwrap();
        let config = config(way, address, load, folder.path());
        let client = Client::new(&config, &*TRADED, Clock::start(), recorder).unwrap();
        Self {
            client,
            gateway,
            now: Timestamp(1_772_323_200_000_000_000),
            config,
            _folder: folder,
        }
    }

    /// The client's process dies without a word, and another one begins.
    fn restart(&mut self) {
        // Its journal has one writer at a time.
        self.client = Client::new(&nobody(), &*TRADED, Clock::start(), Recorder::off()).unwrap();
        self.client = Client::new(&self.config, &*TRADED, Clock::start(), Recorder::off()).unwrap();
    }

    fn turn(&mut self) {
        self.now = self.now + Duration::from_millis(1);
        self.client.turn(self.now);
        self.gateway.turn(self.now);
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Client) -> bool) {
        for _ in 0..20_000 {
            if done(&self.client) {
                return;
            }
            self.turn();
        }
        panic!(
            "never {what}: {:?} {:?}",
            self.client.progress(),
            self.client.accounting()
        );
    }

    fn log_on(&mut self) {
        self.run_until("logged on", Client::is_logged_on);
    }

    fn quote(&mut self, sequence: u64) {
        let quote = |price| Quote {
            price: Price(price),
            quantity: Quantity(100),
        };
        let bbo = Bbo {
            bid: quote(99_990_000_000),
            ask: quote(100_010_000_000),
            ..Bbo::default()
        };
        let index = usize::try_from(sequence % 2).unwrap();
        self.client.on_tick(self.now, index, bbo, Trigger::new(4, sequence));
    }
}

/// The config of a client without a gateway.
fn nobody() -> ClientConfig {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    config(Way::Fix, address, "orders_max = 1\norders_per_s = 1\n", Path::new(""))
}

const WAYS: [Way; 3] = [Way::Fix, Way::Native, Way::Link];

#[test]
fn planned_orders_are_all_accounted_for() {
    for way in WAYS {
        let mut world = World::new(way, "orders_max = 300\norders_per_s = 4000\n", Recorder::off());
        world.log_on();
        world.quote(0);
        world.quote(1);
        let now = world.now;
        world.client.start(now);
        world.run_until("done", |client| client.is_done() && client.is_settled());
        let accounting = world.client.accounting();
        assert!(accounting.is_balanced(), "{accounting:?}");
        assert_eq!(accounting.sent, 300);
        assert_eq!(accounting.refusals().collect::<Vec<_>>(), [(Reason::MaxQuantity, 1)]);
        assert!(accounting.filled > 100 && accounting.canceled > 100, "{accounting:?}");
        assert_eq!(accounting.open, world.gateway.live.len() as u64);
        assert!(
            accounting.requests.accepted > accounting.canceled,
            "some were replaced first"
        );
        assert_eq!(world.client.progress().protocol_errors, 0);
    }
}

#[test]
fn planned_times_hold_while_the_client_cannot_send() {
    let mut world = World::new(Way::Native, "orders_max = 100\norders_per_s = 1000\n", Recorder::off());
    // The plan starts a second before anybody can send.
    let now = world.now;
    world.client.start(now);
    world.now = now + Duration::from_secs(1);
    world.run_until("done", |client| client.is_done() && client.is_settled());
    assert!(world.client.accounting().is_balanced());
    assert!(world.client.progress().lag_max >= Duration::from_millis(900));
}

#[test]
fn every_so_many_th_tick_sends_an_order_with_its_trigger() {
    for way in WAYS {
        let mut world = World::new(way, "orders_max = 300\nevery_ticks = 5\n", Recorder::off());
        world.log_on();
        world.quote(1);
        assert_eq!(world.client.progress().sent, 0, "not before the start");
        let now = world.now;
        world.client.start(now);
        for sequence in 2..=50 {
            world.quote(sequence);
            world.turn();
        }
        world.client.stop();
        for sequence in 51..60 {
            world.quote(sequence);
        }
        world.run_until("settled", Client::is_settled);
        let triggers: Vec<u64> = world
            .gateway
            .seen
            .iter()
            .map(|(trigger, _)| trigger.sequence())
            .collect();
        assert_eq!(triggers, [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]);
        assert!(world.gateway.seen.iter().all(|(trigger, _)| trigger.feed() == 4));
        assert!(world.client.accounting().is_balanced());
    }
}

#[test]
fn a_feed_makes_the_ticks() {
    let feed =
        "orders_max = 10\nevery_ticks = 2\n[feed]\nlisten = \"127.0.0.1:1\"\nrequest = \"127.0.0.1:2\"\nid = 9\n";
    let mut world = World::new(Way::Native, feed, Recorder::off());
    world.log_on();
    let now = world.now;
    world.client.start(now);
    let stock = Stock::new(&TRADED[0].symbol).unwrap();
    let foreign = Stock::new(&Symbol::new(b"OTHER").unwrap()).unwrap();
    let stamp = |stock_locate| Stamp {
        stock_locate,
        time_ns: 1,
    };
    let add = |reference, side, price_e4| AddOrder::new(stamp(3), reference, BuySell::from(side), 500, stock, price_e4);
    let messages: [Vec<u8>; 7] = [
        StockDirectory::new(stamp(3), stock, 100, false).as_bytes().to_vec(),
        StockDirectory::new(stamp(4), foreign, 100, false).as_bytes().to_vec(),
        add(1, Side::Buy, 999_900).as_bytes().to_vec(),
        AddOrder::new(stamp(4), 2, BuySell::Buy, 500, foreign, 10_000)
            .as_bytes()
            .to_vec(),
        b"no message".to_vec(),
        // Behind the best: no best price changes.
        add(3, Side::Buy, 999_800).as_bytes().to_vec(),
        add(4, Side::Sell, 1_000_100).as_bytes().to_vec(),
    ];
    let (session, next) = (Session::numbered(1, 1), SequenceNumber(1));
    world.client.on_feed(now, Event::Started { session, next });
    for (sequence, message) in (1..).zip(&messages) {
        let sequence = SequenceNumber(sequence);
        world.client.on_feed(now, Event::Message { sequence, message });
    }
    world.client.on_feed(
        now,
        Event::Lost {
            first: SequenceNumber(8),
            count: 2,
        },
    );
    world.run_until("settled", Client::is_settled);
    let (trigger, price) = world.gateway.seen[0];
    assert_eq!(world.gateway.seen.len(), 1);
    assert_eq!(trigger, Trigger::new(9, 7));
    assert!(
        [999_900, 999_800, 999_700, 1_000_100]
            .map(|e4| Price::from_e4(e4).unwrap())
            .contains(&price)
    );
    assert_eq!(
        (world.client.progress().ticks, world.client.progress().feed_lost),
        (2, 2)
    );
}

#[test]
fn reports_that_a_broken_connection_lost_come_after_the_next_logon() {
    for way in [Way::Fix, Way::Native] {
        let mut world = World::new(way, "orders_max = 200\norders_per_s = 1000\n", Recorder::off());
        world.log_on();
        let now = world.now;
        world.client.start(now);
        for broken in 1..=3 {
            world.run_until("sent", |client| client.progress().sent > broken * 40);
            // The gateway has taken and answered all, and none of the answers leaves.
            world.now = world.now + Duration::from_millis(1);
            world.client.turn(world.now);
            world.gateway.receive(world.now);
            let now = world.now;
            world.gateway.disconnect(now);
        }
        world.run_until("done", |client| client.is_done() && client.is_settled());
        let accounting = world.client.accounting();
        assert!(accounting.is_balanced(), "{accounting:?}");
        assert_eq!(world.client.progress().connects, 4);
    }
}

#[test]
fn fix_orders_that_a_broken_connection_lost_are_sent_again() {
    let mut world = World::new(Way::Fix, "orders_max = 200\norders_per_s = 1000\n", Recorder::off());
    world.log_on();
    let now = world.now;
    world.client.start(now);
    world.run_until("sent", |client| client.progress().sent > 50);
    // Orders leave the client and never reach the gateway.
    for _ in 0..3 {
        world.now = world.now + Duration::from_millis(1);
        world.client.turn(world.now);
    }
    let now = world.now;
    world.gateway.disconnect(now);
    world.run_until("done", |client| client.is_done() && client.is_settled());
    let accounting = world.client.accounting();
    assert!(accounting.is_balanced(), "{accounting:?}");
    assert_eq!(world.gateway.orders, 200);
}

#[test]
fn a_client_over_a_link_that_starts_again_goes_on_with_its_journal() {
    let load = "orders_max = 400\norders_per_s = 1000\n";
    let mut world = World::new(Way::Link, load, Recorder::off());
    world.log_on();
    let now = world.now;
    world.client.start(now);
    world.run_until("sent", |client| client.progress().sent > 60);
    // The last orders leave, and the client dies before it has their answers.
    world.now = world.now + Duration::from_millis(1);
    world.client.turn(world.now);
    let sent_before = world.client.progress().sent;
    world.restart();
    world.log_on();
    assert_eq!(world.gateway.orders, sent_before, "each once, whatever died");
    let now = world.now;
    world.client.start(now);
    world.run_until("done", |client| client.is_done() && client.is_settled());
    let accounting = world.client.accounting();
    assert_eq!((accounting.sent, accounting.unanswered), (400, 0));
    assert!(
        accounting.unknown_reports > 0,
        "the answers that the first one missed came too"
    );
    assert_eq!(world.gateway.orders, sent_before + 400);
}

#[test]
fn a_journal_of_something_else_is_none_of_a_client() {
    let world = World::new(Way::Link, "orders_max = 1\norders_per_s = 1\n", Recorder::off());
    let World {
        client,
        config,
        _folder,
        ..
    } = world;
    drop(client);
    let Login::Link(link) = &config.login else {
        panic!("it has a link")
    };
    let mut journal = JournalWriter::open(&journal::Config::new(&link.journal, "client-session-3")).unwrap();
    journal.append(Kind::Timer as u16, 1, Timestamp(1), &[&[0; 8]]);
    journal.close().unwrap();
    let error = Client::new(&config, &*TRADED, Clock::start(), Recorder::off())
        .err()
        .unwrap();
    assert!(matches!(error, StartError::OtherJournal { position: 0 }), "{error}");
}

#[test]
fn a_client_waits_for_a_gateway_that_is_not_there() {
    let (gateway, address) = Gateway::new(Way::Fix);
    drop(gateway);
    let config = config(Way::Fix, address, "orders_max = 1\norders_per_s = 1\n", Path::new(""));
    let mut client = Client::new(&config, &*TRADED, Clock::start(), Recorder::off()).unwrap();
    let mut now = Timestamp(1_772_323_200_000_000_000);
    client.start(now);
    for _ in 0..2_000 {
        now = now + Duration::from_millis(1);
        client.turn(now);
    }
    assert_eq!(client.progress(), Progress::default());
}

#[test]
fn a_logout_is_said() {
    for way in WAYS {
        let mut world = World::new(way, "orders_max = 1\norders_per_s = 1\n", Recorder::off());
        world.log_on();
        let now = world.now;
        world.client.logout(now);
        for _ in 0..50 {
            world.turn();
        }
        if let Speech::Fix { session, .. } = &world.gateway.speech {
            assert!(!session.is_logged_on());
        }
        assert!(world.client.is_gone());
        assert_eq!(world.client.progress().connects, 1, "it stays away");
    }
}

#[test]
fn what_was_done_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let mut recording = Recording::create(directory.path(), "client", &Header::default()).unwrap();
    let recorder = recording.recorder(4_096);
    let mut world = World::new(Way::Fix, "orders_max = 50\norders_per_s = 1000\n", recorder);
    world.log_on();
    let now = world.now;
    world.client.start(now);
    world.run_until("done", |client| client.is_done() && client.is_settled());
    let accounting = world.client.accounting();
    assert!(accounting.is_balanced());
    // An order's own report, its fills, and an answer to each request.
    let reports = accounting.sent + accounting.fills + accounting.requests.sent;
    let summary = recording.finish(world.now).unwrap();
    assert_eq!(
        (summary.records, summary.dropped),
        (accounting.sent + accounting.requests.sent + reports, 0)
    );
}

#[test]
fn a_symbol_without_an_instrument_is_told() {
    let error = Client::new(&nobody(), &TRADED[..1], Clock::start(), Recorder::off())
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "symbol BETA is not in the instrument master");
}
