//! A shard with one FIX and one native session, one venue, two instruments, on a journal of its own.

use crate::fix::Logon;
use gateway::Config;
use gateway::harness::Harness;
use latency::clock::Clock;
use proto::fix::{Body, Encoder, Frame, MessageHeader, TimePrecision, Version, frame};
use proto::native;
use proto::soup;
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;
use types::{
    AccountId, Bbo, ClientOrderId, ExecReport, ExecType, InstrumentId, NewOrder, OrderId, OrderTerms, OrderType, Price,
    Quantity, Quote, Reason, Request, SequenceNumber, SessionId, Side, TimeInForce, Timestamp, Trigger, VenueId,
};

pub(crate) const FIX: SessionId = SessionId(1);
pub(crate) const NATIVE: SessionId = SessionId(2);
/// A session that watches, where the config has [`WATCHER_PARTS`].
pub(crate) const WATCHER: SessionId = SessionId(3);
pub(crate) const VENUE: VenueId = VenueId(0);
pub(crate) const ALFA: InstrumentId = InstrumentId(1);
pub(crate) const START: Timestamp = Timestamp(1_796_000_000_000_000_000);

/// What gives the config a session that gets copies of the reports of account 1, and enters no orders.
pub(crate) const WATCHER_PARTS: (&str, &str) = (
    "[risk.classes.default]",
    r#"[[sessions]]
id = 3
protocol = "fix"
shard = 0
client_comp_id = "WATCHER"
our_comp_id = "TICKGATE"
accounts = []
drop_copy = [1]
owner = 3
max_open_orders = 1
resend_messages = 4
cl_ord_ids = 100
send_buffer_bytes = 65_536
[risk.classes.default]"#,
);

/// A shard and the folder that its journal is in.
pub(crate) struct Fixture {
    pub(crate) config: Config,
    pub(crate) shard: Harness,
    pub(crate) now: Timestamp,
    venue_sequence: SequenceNumber,
    exec_id: u64,
    pub(crate) fix_sequence: u64,
    _folder: TempDir,
}

const CONFIG: &str = r#"
instruments = "instruments.csv"
trading_day = 20261130
[journal]
directory = "journal"
ring_bytes = 1_048_576
segment_bytes = 4_194_304
watermark = "appended"
[[shards]]
idle = "spin"
fix_listen = "127.0.0.1:0"
native_listen = "127.0.0.1:0"
[[venues]]
name = "sim"
[[venues.links]]
shard = 0
transport = "ltp"
session = 9
peer = "127.0.0.1:9"
window_messages = 64
cancel_reserve_messages = 8
heartbeat_ms = 10
dead_after_ms = 100
[[accounts]]
id = 1
max_quantity_lots = 1_000
max_notional = "1000000"
max_open_orders = 100
max_open_notional = "1000000"
[[sessions]]
id = 1
protocol = "fix"
shard = 0
client_comp_id = "TRADER"
our_comp_id = "TICKGATE"
accounts = [1]
owner = 1
max_open_orders = 100
resend_messages = 256
cl_ord_ids = 1_000
send_buffer_bytes = 65_536
[[sessions]]
id = 2
protocol = "native"
shard = 0
user = "trader"
accounts = [1]
owner = 2
max_open_orders = 100
resend_messages = 256
send_buffer_bytes = 65_536
[risk]
mark_every_ms = 1_000
[risk.classes.default]
max_quantity_lots = 500
max_notional = "100000"
collar = { basis_points = 1000 }
reference_max_age_ms = 60_000
reference_missing = "refuse"
market_orders = true
[capacity]
open_orders = 256
positions = 16
own_books = 16
crossing_messages = 64
"#;

pub(crate) const INSTRUMENTS: &str = "id,symbol,tick_size,lot_size,reference_price,limit_class,shard,venue
1,ALFA,0.01,1,100,default,0,sim
2,BETA,0.01,100,50,default,0,sim
";

/// The config of the fixture with its venue at an address.
pub(crate) fn config_with_venue(folder: &Path, venue: SocketAddr) -> Config {
    std::fs::write(folder.join("instruments.csv"), INSTRUMENTS).expect("the folder can be written");
    let text = CONFIG.replace("127.0.0.1:9", &venue.to_string());
    Config::parse(&text, folder).expect("the config is right")
}

/// The config of the fixture in a folder, with parts of it or of the instrument master replaced.
pub(crate) fn config_in(folder: &Path, parts: &[(&str, &str)]) -> Config {
    let [text, instruments] = texts(parts);
    std::fs::write(folder.join("instruments.csv"), instruments).expect("the folder can be written");
    Config::parse(&text, folder).expect("the config is right")
}

/// The config of the fixture and its instrument master, with parts replaced.
pub(crate) fn texts(parts: &[(&str, &str)]) -> [String; 2] {
    let texts = [CONFIG.to_owned(), INSTRUMENTS.to_owned()];
    parts.iter().fold(texts, |texts, (part, other)| {
        assert!(texts.iter().any(|text| text.contains(part)), "{part}");
        texts.map(|text| text.replace(part, other))
    })
}

/// ALFA at 99.99 to 100.01.
pub(crate) fn alfa(time: Timestamp) -> Bbo {
    let quote = |price: &str| Quote {
        price: Price::parse(price.as_bytes()).expect("a price"),
        quantity: Quantity(100),
    };
    Bbo {
        bid: quote("99.99"),
        ask: quote("100.01"),
        last: Price(0),
        time,
    }
}

impl Fixture {
    /// Everything up, both clients logged on, ALFA at 99.99 to 100.01.
    pub(crate) fn new() -> Self {
        Self::changed(&[])
    }

    /// The same, with one part of the config replaced wherever it stands.
    pub(crate) fn with(part: &str, other: &str) -> Self {
        Self::changed(&[(part, other)])
    }

    /// The same, with several parts replaced, of the config or of the instrument master.
    pub(crate) fn changed(parts: &[(&str, &str)]) -> Self {
        Self::changed_by(parts, |_| {})
    }

    /// The same, and then something that no config may say.
    pub(crate) fn changed_by(parts: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config_in(folder.path(), parts);
        change(&mut config);
        let mut fixture = Self {
            shard: Harness::open(&config, Clock::start()).expect("the shard starts"),
            config,
            now: START,
            venue_sequence: SequenceNumber(1),
            exec_id: 0,
            fix_sequence: 1,
            _folder: folder,
        };
        fixture.begin();
        fixture
    }

    /// A shard that goes on with a journal that another one began, and clients that come again. The FIX client goes on with
    /// this number.
    pub(crate) fn go_on(config: &Config, folder: TempDir, fix_sequence: u64, exec_id: u64) -> Self {
        let mut fixture = Self {
            shard: Harness::open(config, Clock::start()).expect("the shard goes on"),
            config: config.clone(),
            now: START,
            venue_sequence: SequenceNumber(exec_id + 1),
            exec_id,
            fix_sequence,
            _folder: folder,
        };
        fixture.begin();
        fixture
    }

    fn begin(&mut self) {
        self.shard.set_now(self.now);
        self.shard.price(ALFA, &alfa(self.now));
        self.shard.connect(NATIVE);
        self.shard.connect(FIX);
    }

    /// The shard ends in good order and another one goes on with its journal; both clients come again.
    pub(crate) fn restart(self) -> Self {
        self.restart_with(&[])
    }

    /// The same with a config whose parts are replaced.
    pub(crate) fn restart_with(self, parts: &[(&str, &str)]) -> Self {
        let Self {
            mut config,
            shard,
            now,
            venue_sequence,
            exec_id,
            fix_sequence,
            _folder,
        } = self;
        shard.into_journal().close().expect("the journal closes");
        if !parts.is_empty() {
            config = config_in(_folder.path(), parts);
        }
        let mut fixture = Self {
            shard: Harness::open(&config, Clock::start()).expect("the shard starts again"),
            config,
            now,
            venue_sequence,
            exec_id,
            fix_sequence,
            _folder,
        };
        fixture.begin();
        fixture
    }

    /// The folder of the journal outlives the shard.
    pub(crate) fn stop(self) -> (Config, TempDir) {
        let Self {
            config, shard, _folder, ..
        } = self;
        shard.into_journal().close().expect("the journal closes");
        (config, _folder)
    }

    /// A native request; gives the reports that came out.
    pub(crate) fn native(&mut self, request: &Request) -> Vec<ExecReport> {
        let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_request(request, &mut buffer);
        self.native_bytes(&buffer[..length])
    }

    /// Bytes of the native client; gives the reports that came out.
    pub(crate) fn native_bytes(&mut self, bytes: &[u8]) -> Vec<ExecReport> {
        self.shard.client(NATIVE, bytes);
        self.native_reports()
    }

    /// What waits for the native client.
    pub(crate) fn native_reports(&mut self) -> Vec<ExecReport> {
        self.native_messages()
            .iter()
            .filter_map(|message| match message {
                native::Message::Report(report) => Some(*report),
                _ => None,
            })
            .collect()
    }

    /// What waits for the native client, whatever it is.
    pub(crate) fn native_messages(&mut self) -> Vec<native::Message> {
        let bytes = self.shard.sent_to_client(NATIVE);
        let mut rest = &bytes[..];
        let mut messages = Vec::new();
        while let Some((packet, used)) = soup::parse(rest).expect("the gateway writes packets") {
            if let soup::Packet::Sequenced(message) = packet {
                messages.push(native::decode(message).expect("the gateway writes native messages"));
            }
            rest = &rest[used..];
        }
        messages
    }

    /// A FIX message of the client; gives what came out, `|` between fields.
    pub(crate) fn fix(&mut self, body: &impl Body) -> Vec<String> {
        let message = self.fix_bytes(body);
        self.shard.client(FIX, &message);
        self.fix_messages()
    }

    /// The bytes of the client's next FIX message.
    pub(crate) fn fix_bytes(&mut self, body: &impl Body) -> Vec<u8> {
        self.fix_sequence += 1;
        self.fix_bytes_of("TRADER", Version::Fix44, self.fix_sequence - 1, body)
    }

    /// The bytes of a FIX message of any client.
    /// The session that watches logs on.
    pub(crate) fn watch(&mut self) {
        self.shard.connect(WATCHER);
        let logon = self.fix_bytes_of("WATCHER", Version::Fix44, 1, &Logon);
        self.shard.client(WATCHER, &logon);
    }

    pub(crate) fn fix_bytes_of(&self, comp_id: &str, version: Version, sequence: u64, body: &impl Body) -> Vec<u8> {
        let mut buffer = [0; 4_096];
        let header = MessageHeader {
            version,
            sender_comp_id: comp_id.as_bytes(),
            target_comp_id: b"TICKGATE",
            sequence,
            sending_time: self.now,
            orig_sending_time: None,
        };
        let mut encoder = Encoder::start(&mut buffer, body.msg_type(), &header, TimePrecision::Milliseconds);
        body.encode(&mut encoder);
        encoder.finish().expect("it fits").to_vec()
    }

    /// The next FIX message has the number 1.
    pub(crate) const fn restart_fix_sequence(&mut self) {
        self.fix_sequence = 1;
    }

    /// What waits for the FIX client.
    pub(crate) fn fix_messages(&mut self) -> Vec<String> {
        self.messages_of(FIX)
    }

    /// What waits for any FIX client.
    pub(crate) fn messages_of(&mut self, session: SessionId) -> Vec<String> {
        let bytes = self.shard.sent_to_client(session);
        let mut rest = &bytes[..];
        let mut messages = Vec::new();
        while let Frame::Message(length) = frame(rest) {
            messages.push(String::from_utf8_lossy(&rest[..length]).replace('\u{1}', "|"));
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "the gateway writes whole messages");
        messages
    }

    /// What comes to the FIX client until nothing more does.
    pub(crate) fn all_fix_messages(&mut self) -> Vec<String> {
        let mut messages = self.fix_messages();
        while self.shard.turn() {
            messages.extend(self.fix_messages());
        }
        messages
    }

    /// The last request that went to the venue, and how many there were.
    pub(crate) fn sent(&self) -> (u64, Option<Request>) {
        let (count, last) = self.shard.sent_to_venue(VENUE);
        (count, native::decode_request(last).ok())
    }

    /// A report of the venue about the last request that was sent.
    pub(crate) fn venue(&mut self, exec_type: ExecType, last: u64, leaves: u64, cumulative: u64) {
        let (_, request) = self.sent();
        let number = request.expect("something was sent").client_order_id();
        self.venue_about(number, exec_type, Reason::None, last, leaves, cumulative);
    }

    /// A report of the venue about any number.
    pub(crate) fn venue_about(
        &mut self,
        number: ClientOrderId,
        exec_type: ExecType,
        reason: Reason,
        last: u64,
        leaves: u64,
        cumulative: u64,
    ) {
        self.exec_id += 1;
        let fill = exec_type == ExecType::Fill;
        let report = ExecReport {
            exec_type,
            order_id: OrderId(77),
            client_order_id: number,
            orig_client_order_id: ClientOrderId(0),
            exec_id: types::ExecId(self.exec_id),
            instrument: ALFA,
            account: AccountId(0),
            session: SessionId(9),
            side: Side::Buy,
            price: Price::parse(b"100").expect("a price"),
            quantity: Quantity(10),
            last_price: if fill {
                Price::parse(b"100").expect("a price")
            } else {
                Price::NULL
            },
            last_quantity: Quantity(last),
            leaves: Quantity(leaves),
            cumulative: Quantity(cumulative),
            reason,
        };
        let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_report(&report, &mut buffer);
        let sequence = self.venue_sequence;
        self.venue_sequence = sequence.next();
        self.shard.venue(VENUE, sequence, &buffer[..length]);
    }
}

/// A native buy of 10 ALFA at 100.
pub(crate) fn buy(number: u64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(number),
        instrument: ALFA,
        account: AccountId(1),
        session: NATIVE,
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        price: Price::parse(b"100").expect("a price"),
        quantity: Quantity(10),
        trigger: Trigger::NONE,
        terms: OrderTerms::NONE,
    }
}
