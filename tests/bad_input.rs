//! What goes wrong outside: each gets one clear line or a counter, and whoever did nothing wrong trades on.

use crate::door::{FixClient, message};
use crate::market::{Market, PATIENCE, Program};
use crate::trader::Trader;
use gateway::limits::MAX_PENDING_LOGONS;
use proto::soup;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use types::Side;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/feeds/sample/sample.itch.gz");

/// Far more orders than a client can send whose answers nobody reads.
const MOST_ORDERS: usize = 500_000;

/// A market that runs, with one well-behaved trader.
struct Scene {
    gateway: Program,
    exchange: Program,
    trader: Trader,
    market: Market,
}

impl Scene {
    fn new() -> Self {
        let market = Market::new(1, "ltp");
        let mut scene = Self {
            exchange: market.exchange("exchange"),
            gateway: market.gateway("gateway"),
            trader: Trader::new("maker", 3, market.native[0]),
            market,
        };
        scene.trader.connect();
        scene.assert_it_trades();
        scene
    }

    /// The well-behaved trader gets an order accepted.
    fn assert_it_trades(&mut self) {
        let accepted = self.trader.accepted();
        self.trader.order(Side::Sell, 1, "101.37");
        self.trader
            .wait("an accepted order", |trader| trader.accepted() == accepted + 1);
    }

    /// The trader trades on, and everything ends in good order.
    fn end(mut self) {
        self.assert_it_trades();
        self.gateway.stop();
        self.exchange.stop();
        self.market.assert_replay_is_identical(0);
    }
}

/// Bytes to an address, and whether the other end hangs up.
fn is_hung_up_on(address: SocketAddr, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(bytes).expect("it reads");
    let mut answer = Vec::new();
    // A reset is as good an end as any.
    match stream.read_to_end(&mut answer) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn clients_that_send_garbage_are_hung_up_on_and_others_trade() {
    let mut scene = Scene::new();
    let (fix, native) = (scene.market.fix[0], scene.market.native[0]);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0xff; 5_000], b"\x00\x01Z"] {
        assert!(is_hung_up_on(native, garbage), "{garbage:?}");
    }
    // A FIX message that is no logon, in a frame that is right.
    let body = "35=D\u{1}49=TRADER\u{1}56=TICKGATE\u{1}34=1\u{1}52=20261130-12:00:00\u{1}";
    let head = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
    let sum = head.bytes().fold(0_u8, u8::wrapping_add);
    assert!(is_hung_up_on(fix, format!("{head}10={sum:03}\u{1}").as_bytes()));
    scene.assert_it_trades();
    scene.gateway.wait_for_times("not the protocol", 5);
    scene.end();
}

/// More text than a message may have.
fn too_long() -> String {
    format!("58={}|", "x".repeat(70_000))
}

#[test]
fn a_fix_message_that_is_too_long_is_refused_and_the_session_goes_on() {
    let mut scene = Scene::new();
    let fix = scene.market.fix[0];
    let (mut client, answer) = FixClient::log_on(fix, "FIX.4.4", "TRADER", 1, "");
    assert!(answer.contains("|35=A|"), "{answer}");
    client.send("FIX.4.4", "D", "TRADER", 2, &too_long());
    let reject = client.receive();
    for part in ["|35=3|", "|45=2|", "|58=message is longer than 4096 bytes|", "|372=D|"] {
        assert!(reject.contains(part), "{reject}");
    }
    client.send("FIX.4.4", "1", "TRADER", 3, "112=still here|");
    let heartbeat = client.receive();
    assert!(
        heartbeat.contains("|35=0|") && heartbeat.contains("|112=still here|"),
        "{heartbeat}"
    );
    client.log_out("FIX.4.4", "TRADER", 4);
    scene.gateway.wait_for("message refused, it is too long");
    // Before a logon nobody waits for its end.
    let (mut stranger, answer) = FixClient::log_on(fix, "FIX.4.4", "TRADER", 1, &too_long());
    assert!(answer.contains("|35=5|") && answer.contains("4096 bytes"), "{answer}");
    assert_eq!(stranger.receive(), "");
    scene.gateway.wait_for("FIX.4.4 TRADER to TICKGATE");
    scene.end();
}

#[test]
fn a_native_packet_that_is_too_long_ends_the_connection_and_the_client_is_told() {
    let mut scene = Scene::new();
    let mut stream = TcpStream::connect(scene.market.native[0]).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut packet = [0; soup::MAX_PACKET_LENGTH];
    let login = soup::Login {
        user_name: soup::UserName::new(b"taker").expect("a name"),
        password: soup::Password::BLANK,
        session: soup::SessionName::BLANK,
        sequence: 0,
    };
    let length = soup::write_login_request(&login, &mut packet);
    stream.write_all(&packet[..length]).expect("it reads");
    let mut accepted = [0; 33];
    stream.read_exact(&mut accepted).expect("an answer");
    assert_eq!(accepted[2], b'A');
    stream.write_all(b"\xff\xffU").expect("it reads");
    let mut rest = Vec::new();
    // It closes with bytes of ours unread, if it is quick.
    let _: Result<_, _> = stream.read_to_end(&mut rest);
    let words = String::from_utf8_lossy(&rest).into_owned();
    assert!(words.contains("packet of 65535 bytes"), "{words:?}");
    scene.gateway.wait_for("packet of 65535 bytes");
    scene.end();
}

#[test]
fn clients_that_stall_are_hung_up_on_and_others_trade() {
    let mut scene = Scene::new();
    // Half a message, and nothing after it: on both ports, before any logon.
    let fix = TcpStream::connect(scene.market.fix[0]).expect("it listens");
    let native = TcpStream::connect(scene.market.native[0]).expect("it listens");
    (&fix).write_all(b"8=FIX.4.4\x019=100\x0135=A").expect("it reads");
    (&native).write_all(b"\x00\x2fLtak").expect("it reads");
    scene.assert_it_trades();
    let start = Instant::now();
    while scene.gateway.printed().matches("no logon came").count() < 2 {
        assert!(start.elapsed() < PATIENCE, "{}", scene.gateway.printed());
        scene.trader.turn();
    }
    scene.end();
}

#[test]
fn a_client_that_reads_nothing_disturbs_nobody() {
    let mut scene = Scene::new();
    let mut deaf = Trader::new("taker", 2, scene.market.native[0]);
    deaf.connect();
    // Every order is answered, and no answer is read: in the end the gateway takes no more from this client.
    for number in 0..MOST_ORDERS {
        deaf.order(Side::Buy, 2, "42.18");
        if number % 5_000 == 0 {
            scene.assert_it_trades();
        }
        if !deaf.is_connected() {
            break;
        }
    }
    assert!(!deaf.is_connected(), "it is held up before it has sent {MOST_ORDERS}");
    scene.assert_it_trades();
    scene.end();
}

#[test]
fn a_client_that_reads_nothing_is_disconnected_and_the_log_says_so() {
    let mut scene = Scene::new();
    let mut deaf = TcpStream::connect(scene.market.fix[0]).expect("it listens");
    deaf.set_write_timeout(Some(Duration::from_millis(200)))
        .expect("a socket");
    deaf.write_all(&message("FIX.4.4", "A", "TRADER", 1, "98=0|108=0|"))
        .expect("it reads");
    // Each is answered with a Reject, until the gateway takes no more because no answer is read.
    let mut number = 2;
    while deaf.write_all(&message("FIX.4.4", "D", "TRADER", number, "")).is_ok() {
        number += 1;
        assert!(
            number < MOST_ORDERS as u64,
            "it is held up before it has sent {MOST_ORDERS}"
        );
    }
    while !scene.gateway.printed().contains("reads too slowly") {
        scene.assert_it_trades();
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(deaf);
    scene.end();
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let mut scene = Scene::new();
    // More than the door has places for; each that comes takes the place of the one that has waited longest.
    assert!(
        net::host::raise_open_files(4_096).soft.is_none_or(|soft| soft > 2_048),
        "files for the test"
    );
    let silent = (0..MAX_PENDING_LOGONS + 200)
        .map(|_| TcpStream::connect(scene.market.native[0]).expect("it listens"))
        .collect::<Vec<_>>();
    let mut late = Trader::new("taker", 2, scene.market.native[0]);
    late.connect();
    late.order(Side::Buy, 2, "42.18");
    late.wait("the late client's order is answered", Trader::is_answered);
    scene.assert_it_trades();
    scene.gateway.wait_for("another wanted the place");
    // A flood is summed up.
    scene.gateway.wait_for("more connections ended at the door");
    drop(silent);
    late.hang_up();
    scene.end();
}

#[test]
fn a_port_in_use_is_named() {
    let market = Market::new(1, "ltp");
    let _taken = TcpListener::bind(market.native[0]).expect("a free port");
    let (status, printed) = market.run(&["gateway", "-c", "gateway.toml"]);
    assert_eq!(status.code(), Some(1), "{printed}");
    assert_one_line(&printed, &[&market.native[0].to_string(), "in use"]);
}

#[test]
fn a_journal_in_use_is_named() {
    let mut scene = Scene::new();
    let (status, printed) = scene.market.run(&["gateway", "-c", "gateway.toml"]);
    assert_eq!(status.code(), Some(1), "{printed}");
    assert_one_line(&printed, &["gateway-journal"]);
    scene.assert_it_trades();
    scene.end();
}

#[test]
fn too_little_locked_memory_is_said_with_what_to_do() {
    let market = Market::new(1, "ltp");
    let shell = format!(
        "ulimit -l 64; exec {} gateway -c gateway.toml",
        env!("CARGO_BIN_EXE_tickgate")
    );
    let mut gateway = market.start_command("gateway", Command::new("sh").args(["-c", &shell]));
    assert_eq!(gateway.wait().code(), Some(1), "{}", gateway.printed());
    assert_one_line(&gateway.printed(), &["locked memory", "ulimit -l"]);
}

#[test]
fn a_cpu_that_is_not_permitted_is_named() {
    let market = Market::new(1, "ltp");
    let permitted = net::cpu::permitted();
    let absent = permitted.iter().max().expect("a CPU") + 1;
    let pinned = market
        .gateway_config()
        .replacen("idle = ", &format!("cpu = {absent}\nidle = "), 1);
    market.write("gateway.toml", &pinned);
    let (status, printed) = market.run(&["gateway", "-c", "gateway.toml"]);
    assert_eq!(status.code(), Some(1), "{printed}");
    assert_one_line(&printed, &[&format!("CPU {absent}"), "taskset"]);
}

#[test]
fn a_feed_that_is_missing_or_no_feed_is_named() {
    let market = Market::new(1, "ltp");
    let (status, printed) = market.run(&["replay", "nowhere.itch"]);
    assert_eq!(status.code(), Some(1));
    assert_one_line(&printed, &["nowhere.itch"]);
    market.write(
        "text.itch",
        "This is no feed at all, and it does not look like one either.",
    );
    let (status, printed) = market.run(&["replay", "text.itch"]);
    assert_eq!(status.code(), Some(1));
    assert!(printed.contains("text.itch"), "{printed}");
}

#[test]
fn a_feed_that_is_cut_off_is_read_as_far_as_it_goes_and_says_so() {
    let market = Market::new(1, "ltp");
    let whole = fs::read(SAMPLE).expect("the sample");
    fs::write(market.path("cut.itch.gz"), &whole[..whole.len() / 2]).expect("the folder can be written");
    let (status, printed) = market.run(&["replay", "cut.itch.gz"]);
    assert!(status.success(), "{printed}");
    assert!(printed.contains("warning: cut.itch.gz"), "{printed}");
}

#[test]
fn messages_of_unknown_type_are_skipped_and_counted() {
    let market = Market::new(1, "ltp");
    // BinaryFILE: a length and a message, here of a type that ITCH 5.0 does not have.
    let mut file = Vec::new();
    for _ in 0..3 {
        file.extend_from_slice(&[0, 12, b'?']);
        file.extend_from_slice(&[0; 11]);
    }
    // A system event: locate, tracking, time, code.
    file.extend_from_slice(&[0, 12, b'S', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'O']);
    fs::write(market.path("odd.itch"), &file).expect("the folder can be written");
    let (_, printed) = market.run(&["replay", "odd.itch"]);
    assert!(printed.contains("3 messages of unknown type were skipped"), "{printed}");
}

#[test]
fn instruments_of_the_feed_that_are_not_in_the_master_disturb_nothing() {
    let market = Market::with_history();
    // Half of the sample's instruments are not in the market's master.
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let history = market.history.to_string();
    let mut replay = market.start(
        "replay",
        &["replay", SAMPLE, "--publish", &history, "--pace", "20000/s"],
    );
    let status = replay.wait();
    assert!(status.success(), "{}", replay.printed());
    let mut trader = Trader::new("maker", 3, market.native[0]);
    trader.connect();
    let number = trader.order(Side::Sell, 4, "18.72");
    trader.wait("an answer", |trader| trader.orders.contains_key(&number));
    gateway.stop();
    exchange.stop();
    assert!(
        exchange.printed().contains("not in the instrument master"),
        "{}",
        exchange.printed()
    );
}

/// The last thing printed is one line of ours with these words; before it nothing but the usual.
fn assert_one_line(printed: &str, words: &[&str]) {
    let ours = printed
        .lines()
        .filter(|line| line.starts_with("tickgate: "))
        .collect::<Vec<_>>();
    assert_eq!(ours.len(), 1, "{printed}");
    for word in words {
        assert!(ours[0].contains(word), "{word:?} is in {printed}");
    }
}
