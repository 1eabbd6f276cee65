//! Who may come in: any port takes any session, templates, passwords, addresses; and whoever does not come in leaves no
//! trace and keeps nobody out.

use crate::market::{Market, PATIENCE, Program, free_port};
use crate::trader::Trader;
use proto::fix::{self, TimePrecision};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// A FIX client that takes every answer as it comes, a refusal too.
pub(crate) struct FixClient<S = TcpStream> {
    pub(crate) stream: S,
}

impl FixClient {
    /// Connects and says Logon, with more fields after the usual ones; `|` stands for the delimiter.
    pub(crate) fn log_on(
        address: SocketAddr,
        begin_string: &str,
        sender: &str,
        sequence: u64,
        more: &str,
    ) -> (Self, String) {
        let mut client = Self::connect(address);
        let answer = client.say_logon(begin_string, sender, sequence, more);
        (client, answer)
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self { stream }
    }
}

impl<S: Read + Write> FixClient<S> {
    /// Says Logon, and gives the answer.
    pub(crate) fn say_logon(&mut self, begin_string: &str, sender: &str, sequence: u64, more: &str) -> String {
        self.send(begin_string, "A", sender, sequence, &format!("98=0|108=30|{more}"));
        self.receive()
    }

    /// Sends a message; `|` stands for the delimiter.
    pub(crate) fn send(&mut self, begin_string: &str, msg_type: &str, sender: &str, sequence: u64, body: &str) {
        let message = message(begin_string, msg_type, sender, sequence, body);
        self.stream.write_all(&message).expect("it reads");
    }

    /// The next message, `|` for the delimiter; empty when the other end has closed.
    pub(crate) fn receive(&mut self) -> String {
        let mut message = Vec::new();
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return String::new(),
                Ok(_) => message.push(if byte[0] == 1 { b'|' } else { byte[0] }),
                Err(error) if ENDS.contains(&error.kind()) => return String::new(),
                Err(error) => panic!("{error} while a message is awaited"),
            }
            let tail = message.len().saturating_sub(8);
            if message.ends_with(b"|") && message[tail..].starts_with(b"|10=") {
                return String::from_utf8(message).expect("ASCII");
            }
        }
    }

    /// Says Logout, and waits for the answer and the end.
    pub(crate) fn log_out(mut self, begin_string: &str, sender: &str, sequence: u64) {
        self.send(begin_string, "5", sender, sequence, "");
        assert!(self.receive().contains("|35=5|"));
    }
}

/// How a connection that the other end has closed may tell.
const ENDS: [ErrorKind; 4] = [
    ErrorKind::ConnectionReset,
    ErrorKind::ConnectionAborted,
    ErrorKind::BrokenPipe,
    ErrorKind::UnexpectedEof,
];

/// A whole message to the gateway; `|` stands for the delimiter.
pub(crate) fn message(begin_string: &str, msg_type: &str, sender: &str, sequence: u64, body: &str) -> Vec<u8> {
    let time = sending_time();
    let body = format!("35={msg_type}|34={sequence}|49={sender}|52={time}|56=TICKGATE|{body}").replace('|', "\x01");
    let head = format!("8={begin_string}\x019={}\x01{body}", body.len());
    let sum = head.bytes().fold(0_u8, u8::wrapping_add);
    format!("{head}10={sum:03}\x01").into_bytes()
}

/// Now, as SendingTime (52) has it.
fn sending_time() -> String {
    let mut text = [0; fix::TIMESTAMP_LENGTH];
    let now = latency::clock::Clock::start().now();
    let length = fix::write_timestamp(now, TimePrecision::Milliseconds, &mut text);
    String::from_utf8_lossy(&text[..length]).into_owned()
}

pub(crate) fn is_logon(answer: &str) -> bool {
    answer.contains("|35=A|")
}

/// Asserts that a logon was refused with these words, by a Logout numbered 1, and that the connection is over.
pub(crate) fn assert_refused<S: Read + Write>((mut client, answer): (FixClient<S>, String), text: &str) {
    assert!(answer.contains("|35=5|34=1|"), "{answer}");
    assert!(answer.contains(&format!("|58={text}|")), "{answer}");
    assert_eq!(client.receive(), "", "the gateway closes");
}

/// A market with this in front of its gateway's config, and these sessions more.
pub(crate) fn market(shards: usize, head: &str, sessions: &str) -> Market {
    let market = Market::new(shards, "ltp");
    let config = market
        .gateway_config()
        .replacen("[journal]", &format!("{head}\n[journal]"), 1);
    market.write("gateway.toml", &format!("{config}\n{sessions}"));
    market
}

pub(crate) fn start(market: &Market) -> (Program, Program) {
    (market.exchange("exchange"), market.gateway("gateway"))
}

/// A template with two instances.
const TEMPLATE: &str = r#"[[sessions]]
id = 100
protocol = "fix"
shard = 0
client_comp_id = "*"
instances = 2
our_comp_id = "TICKGATE"
accounts = [1]
owner = 9
max_open_orders = 1_000
resend_messages = 1_024
cl_ord_ids = 1_024
send_buffer_bytes = 65_536
"#;

#[test]
fn any_port_takes_any_session() {
    let door = free_port();
    let market = market(2, "", &format!("[door]\nfix_listen = \"{door}\"\n"));
    let (mut exchange, mut gateway) = start(&market);
    // A session of shard 1 at the port of shard 0, and the other way round.
    let mut other = Trader::new("other", 4, market.native[0]);
    other.connect();
    let mut maker = Trader::new("maker", 3, market.native[1]);
    maker.connect();
    // Shard 0's FIX session at the port of shard 1, then at the door's own.
    let (client, answer) = FixClient::log_on(market.fix[1], "FIX.4.4", "TRADER", 1, "");
    assert!(is_logon(&answer), "{answer}");
    client.log_out("FIX.4.4", "TRADER", 2);
    let start = Instant::now();
    loop {
        let (_client, answer) = FixClient::log_on(door, "FIX.4.4", "TRADER", 3, "");
        if is_logon(&answer) {
            break;
        }
        assert!(answer.contains("already logged on"), "{answer}");
        assert!(start.elapsed() < PATIENCE, "the first connection does not end");
    }
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
    market.assert_replay_is_identical(1);
}

#[test]
fn a_template_takes_new_clients_until_it_is_full_and_knows_them_again_after_a_crash() {
    let market = market(1, "", TEMPLATE);
    let (mut exchange, mut gateway) = start(&market);
    let address = market.fix[0];
    let (one, answer) = FixClient::log_on(address, "FIX.4.4", "DESK1", 1, "");
    assert!(is_logon(&answer) && answer.contains("|56=DESK1|"), "{answer}");
    let (two, answer) = FixClient::log_on(address, "FIX.4.4", "DESK2", 1, "");
    assert!(is_logon(&answer) && answer.contains("|56=DESK2|"), "{answer}");
    let third = || FixClient::log_on(address, "FIX.4.4", "DESK3", 1, "");
    assert_refused(third(), "all sessions for new clients are taken");
    // A session that is written out is no instance.
    let (_named, answer) = FixClient::log_on(address, "FIX.4.4", "TRADER", 1, "");
    assert!(is_logon(&answer), "{answer}");
    one.log_out("FIX.4.4", "DESK1", 2);
    drop(two);
    gateway.kill();
    let mut gateway = market.gateway("again");
    // Its numbers go on: Logon and Logout were 1 and 2, both ways.
    let (_one, answer) = FixClient::log_on(address, "FIX.4.4", "DESK1", 3, "");
    assert!(is_logon(&answer) && answer.contains("|34=3|"), "{answer}");
    assert_refused(third(), "all sessions for new clients are taken");
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
}

#[test]
fn a_client_with_a_session_of_its_own_gets_no_instance_by_another_version() {
    let template = TEMPLATE.replace("instances = 2", "instances = 2\nversions = [\"FIX.4.2\", \"FIX.4.4\"]");
    let market = market(1, "", &template);
    let (mut exchange, mut gateway) = start(&market);
    let refused = FixClient::log_on(market.fix[0], "FIX.4.2", "TRADER", 1, "");
    assert_refused(refused, "Incorrect BeginString");
    let (_client, answer) = FixClient::log_on(market.fix[0], "FIX.4.2", "DESK1", 1, "");
    assert!(is_logon(&answer), "{answer}");
    gateway.stop();
    exchange.stop();
}

#[test]
fn a_thousand_clients_come_in_at_once() {
    const CLIENTS: usize = 1_000;
    assert!(
        net::host::raise_open_files(4_096).soft.is_none_or(|soft| soft > 2_048),
        "files for the test"
    );
    let many = TEMPLATE
        .replace("instances = 2", &format!("instances = {CLIENTS}"))
        .replace(
            "resend_messages = 1_024\ncl_ord_ids = 1_024",
            "resend_messages = 16\ncl_ord_ids = 16",
        );
    let market = market(1, "", &many);
    let (mut exchange, mut gateway) = start(&market);
    // All connect before the first says anything.
    let mut clients = (0..CLIENTS)
        .map(|_| FixClient::connect(market.fix[0]))
        .collect::<Vec<_>>();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("FIX.4.4", "A", &format!("DESK{number}"), 1, "98=0|108=30|");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = client.receive();
        assert!(
            is_logon(&answer) && answer.contains(&format!("|56=DESK{number}|")),
            "{answer}"
        );
    }
    gateway.stop();
    exchange.stop();
}

#[test]
fn a_logon_that_fails_leaves_no_trace() {
    let market = market(1, "", "");
    let (mut exchange, mut gateway) = start(&market);
    let address = market.fix[0];
    assert_refused(FixClient::log_on(address, "FIX.4.4", "NOBODY", 1, ""), "not authorised");
    assert_refused(
        FixClient::log_on(address, "FIX.4.1", "TRADER", 1, ""),
        "Incorrect BeginString",
    );
    let (_live, answer) = FixClient::log_on(address, "FIX.4.4", "TRADER", 1, "");
    assert!(is_logon(&answer) && answer.contains("|34=1|"), "{answer}");
    // The live one is kept.
    assert_refused(
        FixClient::log_on(address, "FIX.4.4", "TRADER", 2, ""),
        "session is already logged on",
    );
    gateway.stop();
    exchange.stop();
}

/// A market whose maker, and one FIX session, need passwords.
fn with_passwords() -> Market {
    let fix = TEMPLATE.replace(
        "client_comp_id = \"*\"\ninstances = 2\n",
        "client_comp_id = \"DESK7\"\nuser = \"desk7\"\n",
    );
    let market = market(1, "credentials = \"credentials.txt\"", &fix);
    let line =
        |user: &str, password: &str| gateway::config::credentials::line(user, password.as_bytes()).expect("a line");
    let file = ["maker", "taker"].map(|user| line(user, "secret")).join("\n");
    market.write("credentials.txt", &format!("{file}\n{}\n", line("desk7", OPEN_SESAME)));
    market
}

const OPEN_SESAME: &str = "open-sesame-7";

/// Whether any file below a folder holds these bytes.
fn is_anywhere(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            return is_anywhere(&path, bytes);
        }
        let held = fs::read(&path).expect("a file");
        held.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn a_password_opens_its_session_and_stands_nowhere() {
    let market = with_passwords();
    let (mut exchange, mut gateway) = start(&market);
    let log_on = |more: &str| FixClient::log_on(market.fix[0], "FIX.4.4", "DESK7", 1, more);
    for wrong in [
        "",
        "553=desk7|",
        "553=desk7|554=sesame|",
        "553=maker|554=secret|",
        "554=open-sesame-7|",
    ] {
        assert_refused(log_on(wrong), "not authorised");
    }
    let (client, answer) = log_on(&format!("553=desk7|554={OPEN_SESAME}|"));
    assert!(is_logon(&answer) && answer.contains("|34=1|"), "{answer}");
    client.log_out("FIX.4.4", "DESK7", 2);
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
    // The user is a name of the session.
    let (status, said) = market.run(&["journal", "--session", "desk7", "-c", "gateway.toml"]);
    assert!(status.success() && said.contains("|49=DESK7|"), "{said}");
    assert!(
        is_anywhere(&market.path(""), b"553=desk7"),
        "the Logon is in the journal"
    );
    assert!(
        !is_anywhere(&market.path(""), OPEN_SESAME.as_bytes()),
        "its password is nowhere"
    );
}

#[test]
fn a_credentials_file_that_changes_holds_without_a_restart() {
    let market = with_passwords();
    let (mut exchange, mut gateway) = start(&market);
    let log_on = |password: &str| {
        let more = format!("553=desk7|554={password}|");
        FixClient::log_on(market.fix[0], "FIX.4.4", "DESK7", 1, &more)
    };
    let (client, answer) = log_on(OPEN_SESAME);
    assert!(is_logon(&answer), "{answer}");
    client.log_out("FIX.4.4", "DESK7", 2);

    let good = fs::read_to_string(market.path("credentials.txt")).expect("it was written");
    market.write("credentials.txt", "desk7:none\n");
    gateway.wait_for("the credentials file is wrong; users stay as they were");
    let more = format!("141=Y|553=desk7|554={OPEN_SESAME}|");
    let (client, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK7", 1, &more);
    assert!(is_logon(&answer), "{answer}");
    client.log_out("FIX.4.4", "DESK7", 2);

    let line = gateway::config::credentials::line("desk7", b"another").expect("a line");
    market.write(
        "credentials.txt",
        &format!("{}\n{line}\n", good.lines().next().expect("maker's")),
    );
    gateway.wait_for("credentials file read again");
    assert_refused(log_on(OPEN_SESAME), "not authorised");
    let (client, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK7", 1, "141=Y|553=desk7|554=another|");
    assert!(is_logon(&answer), "{answer}");
    client.log_out("FIX.4.4", "DESK7", 2);
    // Who has no line any more stays out, on the native port too.
    let mut gone = TcpStream::connect(market.native[0]).expect("it listens");
    let mut login = [0; 64];
    let request = proto::soup::Login {
        user_name: proto::soup::UserName::new(b"taker").expect("a name"),
        password: proto::soup::Password::BLANK,
        session: proto::soup::SessionName::BLANK,
        sequence: 0,
    };
    let length = proto::soup::write_login_request(&request, &mut login);
    gone.write_all(&login[..length]).expect("it reads");
    gone.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut answer = [0; 4];
    gone.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer[2..], b"JA");
    gateway.wait_for("user taker");
    gateway.stop();
    exchange.stop();
}

#[test]
fn wrong_passwords_in_a_loop_keep_nobody_out() {
    let market = with_passwords();
    let (mut exchange, mut gateway) = start(&market);
    // Far more at a time than are checked at a time, all for one user.
    let mut guesses = (0..100)
        .map(|guess| {
            let mut client = FixClient::connect(market.fix[0]);
            let body = format!("98=0|108=30|553=desk7|554=guess{guess}|");
            client.send("FIX.4.4", "A", "DESK7", 1, &body);
            client
        })
        .collect::<Vec<_>>();
    let start = Instant::now();
    let mut maker = Trader::new("maker", 3, market.native[0]);
    maker.connect();
    assert!(start.elapsed() < PATIENCE / 2, "the maker waits for the guesses");
    for guess in &mut guesses {
        assert!(guess.receive().contains("|58=not authorised|"));
    }
    let good = format!("553=desk7|554={OPEN_SESAME}|");
    let (_client, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK7", 1, &good);
    assert!(is_logon(&answer), "{answer}");
    gateway.stop();
    exchange.stop();
    let lines = gateway.printed().matches("logon refused").count();
    assert!(lines < 100, "{lines} lines for 100 guesses");
}

#[test]
fn who_is_not_on_the_list_does_not_come_in() {
    let elsewhere = TEMPLATE.replace(
        "instances = 2",
        "instances = 2\nallow = [\"10.0.0.0/8\", \"192.0.2.1\"]",
    );
    let market = market(1, "", &elsewhere);
    let (mut exchange, mut gateway) = start(&market);
    assert_refused(
        FixClient::log_on(market.fix[0], "FIX.4.4", "DESK1", 1, ""),
        "not authorised",
    );
    let (_client, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "TRADER", 1, "");
    assert!(is_logon(&answer), "other sessions have no list: {answer}");
    gateway.stop();
    // A list of the door: nothing is read, and nothing is said.
    let config = fs::read_to_string(market.path("gateway.toml")).expect("the config");
    market.write("gateway.toml", &format!("{config}\n[door]\nallow = [\"10.0.0.0/8\"]\n"));
    let mut gateway = market.gateway("closed");
    let mut stranger = FixClient::connect(market.fix[0]);
    stranger
        .stream
        .set_read_timeout(Some(Duration::from_secs(3)))
        .expect("a socket");
    assert_eq!(stranger.receive(), "");
    gateway.wait_for("not from this address");
    gateway.stop();
    exchange.stop();
}

/// A schedule from and to so many hours after the hour that it is.
fn hours(start: u64, end: u64) -> String {
    let hour = latency::clock::Clock::start().now().0 / 3_600_000_000_000;
    let (start, end) = ((hour + start) % 24, (hour + end) % 24);
    format!("schedule = {{ zone = \"UTC\", start = \"{start:02}:00:00\", end = \"{end:02}:00:00\" }}")
}

#[test]
fn outside_its_hours_a_session_is_refused_and_a_new_session_day_starts_at_1() {
    // At one time, or the hour might end in between.
    let (open, closed, nonstop) = (hours(22, 2), hours(2, 22), hours(23, 23));
    let scheduled = TEMPLATE.replace("instances = 2", &format!("instances = 2\n{open}"));
    let market = market(1, "", &scheduled);
    let (mut exchange, mut gateway) = start(&market);
    let (client, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK1", 1, "");
    assert!(is_logon(&answer), "{answer}");
    client.log_out("FIX.4.4", "DESK1", 2);
    gateway.kill();
    // The same day: numbers go on.
    let mut gateway = market.gateway("again");
    let (live, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK1", 3, "");
    assert!(is_logon(&answer) && answer.contains("|34=3|"), "{answer}");
    gateway.kill();
    drop(live);
    let config = fs::read_to_string(market.path("gateway.toml")).expect("the config");
    market.write("gateway.toml", &config.replace(&open, &closed));
    let mut gateway = market.gateway("closed");
    let refused = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK1", 4, "");
    assert_refused(refused, "outside the session's hours");
    gateway.stop();
    // Other hours, so another day.
    market.write("gateway.toml", &config.replace(&open, &nonstop));
    let mut gateway = market.gateway("nonstop");
    let (_client, answer) = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK1", 1, "");
    assert!(is_logon(&answer) && answer.contains("|34=1|"), "{answer}");
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
}
