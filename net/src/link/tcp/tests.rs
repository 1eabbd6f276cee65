//! Both ends over loopback, with virtual time and a proxy between them that cuts, delays and splits.

mod recall;

use super::*;
use crate::allocation::allocations;
use crate::options::{QuickAck, TcpOptions};
use proto::soup::{
    LoginRefusal, MAX_PACKET_LENGTH, MAX_PAYLOAD_LENGTH, Packet, Password, SessionName, Timing, UserName,
    write_client_heartbeat, write_login_rejected, write_login_request, write_unsequenced,
};
use std::collections::VecDeque;
use std::io::Write;

/// Turns after which a test has hung. Loopback needs a handful; a busy machine may need thousands.
const TURNS_MAX: usize = 3_000_000;

/// Schedules run. More were run by hand.
const SEEDS: u64 = 24;

/// Time that passes in a turn.
const TURN: Duration = Duration::from_micros(100);

/// Kernel buffers that a few long messages fill.
const SHORT_BUFFERS: TcpOptions = TcpOptions {
    no_delay: true,
    quick_ack: QuickAck::Once,
    rto_min_us: None,
    user_timeout_ms: None,
    notsent_lowat_bytes: None,
    busy_poll_us: None,
    prefer_busy_poll: false,
    incoming_cpu: None,
    send_buffer_bytes: Some(4_096),
    receive_buffer_bytes: Some(4_096),
};

const WINDOW: usize = 32;
const RECALLS_A_TURN: usize = 7;
const MESSAGE_MAX: usize = 64;

fn config(end: LinkEnd) -> TcpLinkConfig {
    TcpLinkConfig {
        window: WINDOW,
        max_message: MESSAGE_MAX,
        timing: Timing {
            heartbeat: Duration::from_millis(10),
            dead_after: Duration::from_millis(500),
            login_within: Duration::from_millis(500),
        },
        retry_min: Duration::from_millis(1),
        retry_max: Duration::from_millis(8),
        ..TcpLinkConfig::new(
            end,
            UserName::new(b"gate1").unwrap(),
            Password::new(b"secret").unwrap(),
            SessionName::new(b"1").unwrap(),
        )
    }
}

fn listen() -> TcpLinkConfig {
    config(LinkEnd::Listen {
        local: SocketAddr::from(([127, 0, 0, 1], 0)),
    })
}

fn connect(peer: SocketAddr) -> TcpLinkConfig {
    config(LinkEnd::Connect { peer, local: None })
}

/// One end with its owner, who journals.
struct End {
    link: TcpLink,
    now: Timestamp,
    /// All messages sent, by number.
    sent: Vec<Vec<u8>>,
    /// All messages received, by number.
    received: Vec<Vec<u8>>,
    /// How many of them were there at the last flush: a crash loses the others.
    received_durable: usize,
    /// How many of those were there when the disk had them all: the loss of the machine takes the others.
    received_synced: usize,
    /// Numbers that the link wants back from the journal. `None`: the journal has none of them.
    recalls: Option<VecDeque<u64>>,
    /// Positions are numbers here, so this is how many sent messages a crash keeps.
    watermark: usize,
    /// Ups and downs.
    events: Vec<LinkEvent>,
    /// Events taken in a turn, at most.
    polls: usize,
}

impl End {
    fn new(config: &TcpLinkConfig) -> Self {
        Self {
            link: TcpLink::new(config, Resume::START).unwrap(),
            now: Timestamp(1_000_000_000),
            sent: Vec::new(),
            received: Vec::new(),
            received_durable: 0,
            received_synced: 0,
            recalls: Some(VecDeque::new()),
            watermark: 0,
            events: Vec::new(),
            polls: usize::MAX,
        }
    }

    fn pair() -> (Self, Self) {
        let acceptor = Self::new(&listen());
        let initiator = Self::new(&connect(acceptor.link.local_addr().unwrap()));
        (initiator, acceptor)
    }

    /// The machine is lost: a start with what the disk kept.
    fn restart_elsewhere(&mut self, config: &TcpLinkConfig) {
        self.received_durable = self.received_synced;
        self.restart(config);
    }

    /// A crash, and a start with what the journal kept.
    fn restart(&mut self, config: &TcpLinkConfig) {
        self.sent.truncate(self.watermark);
        self.received.truncate(self.received_durable);
        self.received_synced = self.received_synced.min(self.received_durable);
        self.recalls = Some(VecDeque::new());
        let resume = Resume {
            next_send: SequenceNumber(self.sent.len() as u64 + 1),
            next_receive: SequenceNumber(self.received.len() as u64 + 1),
        };
        self.link = TcpLink::new(config, resume).unwrap();
        let unacknowledged = self.sent.len().saturating_sub(WINDOW);
        for (number, message) in (1..).zip(&self.sent).skip(unacknowledged) {
            self.link.restore(SequenceNumber(number), message);
        }
    }

    fn send(&mut self, message: &[u8]) {
        self.sent.push(message.to_vec());
        let position = self.sent.len() as u64;
        assert_eq!(self.link.send(message, position), SequenceNumber(position));
    }

    /// Makes all messages durable, so that they may leave.
    fn sync(&mut self) {
        self.watermark = self.sent.len();
    }

    fn turn(&mut self) {
        self.now = self.now + TURN;
        let mut buffer = [0; MAX_PAYLOAD_LENGTH];
        for _ in 0..self.polls {
            let Some(event) = self.link.poll(self.now, &mut buffer) else {
                break;
            };
            match event {
                LinkEvent::Message { sequence, length } => {
                    self.received.push(buffer[..length].to_vec());
                    assert_eq!(sequence.0, self.received.len() as u64);
                }
                LinkEvent::Recall { from, to } => match &mut self.recalls {
                    Some(recalls) => recalls.extend(from.0..to.0),
                    None => self.link.not_recalled(from),
                },
                event => self.events.push(event),
            }
        }
        // Reading the journal takes a while.
        let recalls = self.recalls.iter_mut().flat_map(|recalls| {
            let count = recalls.len().min(RECALLS_A_TURN);
            recalls.drain(..count)
        });
        for number in recalls {
            let place = usize::try_from(number - 1).unwrap();
            self.link.recalled(SequenceNumber(number), &self.sent[place]);
        }
        self.received_durable = self.received.len();
        self.link.flush(self.now, self.watermark as u64);
    }
}

/// Takes turns with both until something is true.
fn turns_until(a: &mut End, b: &mut End, done: impl Fn(&End, &End) -> bool) {
    for _ in 0..TURNS_MAX {
        if done(a, b) {
            return;
        }
        a.turn();
        b.turn();
    }
    panic!("hung: {:?} {:?}", a.link, b.link);
}

fn turns(end: &mut End, count: u64) {
    for _ in 0..count {
        end.turn();
    }
}

fn up_pair() -> (End, End) {
    let (mut initiator, mut acceptor) = End::pair();
    turns_until(&mut initiator, &mut acceptor, |a, b| a.link.is_up() && b.link.is_up());
    (initiator, acceptor)
}

/// A peer of an acceptor that we write by hand.
struct Raw {
    stream: TcpStream,
}

impl Raw {
    fn connect(acceptor: &End) -> Self {
        let address = acceptor.link.local_addr().unwrap();
        let stream = TcpStream::connect(address, &SHORT_BUFFERS, Duration::from_secs(5)).unwrap();
        Self { stream }
    }

    fn write(&mut self, bytes: &[u8]) {
        assert_eq!(self.stream.send(bytes).unwrap(), bytes.len());
    }

    /// The next bytes; none when the peer has hung up.
    fn read(&mut self) -> Vec<u8> {
        let mut buffer = [0; MAX_PACKET_LENGTH];
        for _ in 0..TURNS_MAX {
            match self.stream.recv(&mut buffer) {
                Ok(Received::Bytes(length)) => return buffer[..length].to_vec(),
                Ok(Received::Nothing) => {}
                Ok(Received::Closed) | Err(_) => return Vec::new(),
            }
        }
        panic!("nothing came");
    }

    fn is_hung_up(&mut self) -> bool {
        self.read().is_empty()
    }

    fn log_in(acceptor: &mut End) -> Self {
        let mut raw = Self::connect(acceptor);
        let config = listen();
        let login = Login {
            user_name: config.user_name,
            password: config.password,
            session: config.session,
            sequence: acceptor.sent.len() as u64 + 1,
        };
        let mut out = [0; MAX_PACKET_LENGTH];
        let length = write_login_request(&login, &mut out);
        raw.write(&out[..length]);
        // The first sign that it goes on.
        let length = write_client_heartbeat(&mut out);
        raw.write(&out[..length]);
        let ups = acceptor.link.counters().ups;
        for _ in 0..TURNS_MAX {
            acceptor.turn();
            if acceptor.link.counters().ups > ups {
                return raw;
            }
        }
        panic!("hung: {:?}", acceptor.link);
    }
}

/// Takes turns until the last event is a `Down`, and gives its reason.
fn down_reason(end: &mut End) -> DownReason {
    for _ in 0..TURNS_MAX {
        if let Some(LinkEvent::Down(reason)) = end.events.last() {
            return *reason;
        }
        end.turn();
    }
    panic!("hung: {:?}", end.link);
}

#[test]
fn messages_go_both_ways_and_acknowledgements_free_the_ring() {
    let (mut initiator, mut acceptor) = up_pair();
    for number in 0..WINDOW {
        initiator.send(format!("order {number}").as_bytes());
        acceptor.send(format!("report {number}").as_bytes());
    }
    assert_eq!((initiator.link.room(), acceptor.link.room()), (0, 0));
    initiator.sync();
    acceptor.sync();
    turns_until(&mut initiator, &mut acceptor, |a, b| {
        a.link.room() == WINDOW && b.link.room() == WINDOW
    });
    assert_eq!(
        (&initiator.received, &acceptor.received),
        (&acceptor.sent, &initiator.sent)
    );
    assert_eq!(initiator.link.counters().sent, WINDOW as u64);
    assert_eq!(initiator.link.counters().retransmitted, 0);
    assert_eq!(initiator.events, [LinkEvent::Up]);
}

#[test]
fn a_message_leaves_when_the_watermark_has_reached_its_position_and_not_before() {
    let (mut initiator, mut acceptor) = up_pair();
    initiator.send(b"one");
    initiator.send(b"two");
    for _ in 0..1_000 {
        initiator.turn();
        acceptor.turn();
    }
    assert!(acceptor.received.is_empty());
    initiator.watermark = 1;
    turns_until(&mut initiator, &mut acceptor, |_, b| !b.received.is_empty());
    for _ in 0..1_000 {
        initiator.turn();
        acceptor.turn();
    }
    assert_eq!(acceptor.received, [b"one"]);
}

#[test]
fn messages_queued_while_the_link_is_down_leave_when_it_is_up() {
    let (mut initiator, mut acceptor) = End::pair();
    initiator.send(b"order");
    initiator.sync();
    turns_until(&mut initiator, &mut acceptor, |_, b| !b.received.is_empty());
}

#[test]
fn an_idle_link_stays_up_by_heartbeats() {
    let (mut initiator, mut acceptor) = up_pair();
    let end = initiator.now + Duration::from_secs(5);
    while initiator.now < end {
        initiator.turn();
        acceptor.turn();
    }
    assert_eq!((initiator.events.len(), acceptor.events.len()), (1, 1));
}

#[test]
fn a_peer_that_is_not_there_is_told_once_and_tried_again() {
    let acceptor = End::new(&listen());
    let address = acceptor.link.local_addr().unwrap();
    drop(acceptor);
    let mut initiator = End::new(&connect(address));
    turns(&mut initiator, 1_000);
    assert_eq!(
        initiator.events,
        [LinkEvent::Down(DownReason::Io(io::ErrorKind::ConnectionRefused))]
    );
}

#[test]
fn a_silent_peer_is_given_up() {
    let (mut initiator, mut acceptor) = up_pair();
    assert_eq!(down_reason(&mut initiator), DownReason::Silent);
    assert!(!initiator.link.is_up());
    turns_until(&mut initiator, &mut acceptor, |a, b| a.link.is_up() && b.link.is_up());
}

#[test]
fn half_a_message_and_then_silence_is_silence() {
    let mut acceptor = End::new(&listen());
    let mut raw = Raw::log_in(&mut acceptor);
    raw.write(&[0, 9, b'U', 1, 2]);
    assert_eq!(down_reason(&mut acceptor), DownReason::Silent);
    assert!(acceptor.received.is_empty());
}

#[test]
fn a_peer_that_reads_nothing_is_given_up_and_costs_bounded_memory() {
    let mut acceptor = End::new(&listen());
    let mut raw = Raw::log_in(&mut acceptor);
    let mut heartbeat = [0; HEADER_LENGTH];
    write_client_heartbeat(&mut heartbeat);
    let mut now_of_beat = acceptor.now;
    for _ in 0..TURNS_MAX {
        if matches!(acceptor.events.last(), Some(LinkEvent::Down(_))) {
            break;
        }
        while acceptor.link.room() > 0 {
            acceptor.send(&[7; MESSAGE_MAX]);
        }
        acceptor.sync();
        acceptor.turn();
        if acceptor.now.since(now_of_beat) > Duration::from_millis(10) {
            now_of_beat = acceptor.now;
            raw.write(&heartbeat);
        }
    }
    assert_eq!(acceptor.events.last(), Some(&LinkEvent::Down(DownReason::Stalled)));
    assert_eq!(acceptor.sent.len(), WINDOW);
}

#[test]
fn what_one_connection_left_unsent_does_not_leave_on_the_next() {
    let mut config = listen();
    (config.tcp, config.max_message) = (SHORT_BUFFERS, MAX_PAYLOAD_LENGTH);
    let mut acceptor = End::new(&config);
    let mut raw = Raw::log_in(&mut acceptor);
    // A full kernel buffer, a message that left in part, and behind it an acknowledgement.
    while acceptor.link.room() > 0 {
        acceptor.send(&[7; MAX_PAYLOAD_LENGTH]);
    }
    acceptor.sync();
    let mut out = [0; MAX_PACKET_LENGTH];
    let length = write_unsequenced(b"order", &mut out);
    for count in 1..=WINDOW {
        raw.write(&out[..length]);
        while acceptor.received.len() < count {
            acceptor.turn();
        }
    }
    assert!(!acceptor.link.control.is_empty() && acceptor.link.outbox.is_partial());

    acceptor.sent.clear();
    let mut next = Raw::log_in(&mut acceptor);
    let answer = next.read();
    let (packet, _) = parse(&answer).unwrap().unwrap();
    assert!(
        matches!(
            packet,
            Packet::LoginAccepted {
                next: SequenceNumber(1),
                ..
            }
        ),
        "{packet:?}"
    );
}

#[test]
fn garbage_from_the_peer_ends_the_connection() {
    let mut acceptor = End::new(&listen());
    let mut raw = Raw::log_in(&mut acceptor);
    raw.write(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(down_reason(&mut acceptor), DownReason::Malformed);
    assert_eq!(acceptor.link.counters().malformed, 1);
}

#[test]
fn a_message_longer_than_agreed_ends_the_connection() {
    let mut acceptor = End::new(&listen());
    let mut raw = Raw::log_in(&mut acceptor);
    let mut out = [0; MAX_PACKET_LENGTH];
    let length = write_unsequenced(&[0; MESSAGE_MAX + 1], &mut out);
    raw.write(&out[..length]);
    assert_eq!(down_reason(&mut acceptor), DownReason::Malformed);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_the_connection() {
    for count in [1, u64::MAX] {
        let mut acceptor = End::new(&listen());
        let mut raw = Raw::log_in(&mut acceptor);
        let mut out = [0; MAX_PACKET_LENGTH];
        let length = write_ack(count, &mut out);
        raw.write(&out[..length]);
        assert_eq!(down_reason(&mut acceptor), DownReason::FalseAck);
    }
}

#[test]
fn strangers_do_not_disturb_the_link_nor_keep_the_peer_out() {
    let mut acceptor = End::new(&listen());
    let silent: Vec<_> = (0..10).map(|_| Raw::connect(&acceptor)).collect();
    let mut initiator = End::new(&connect(acceptor.link.local_addr().unwrap()));
    turns_until(&mut initiator, &mut acceptor, |a, b| a.link.is_up() && b.link.is_up());
    let mut noisy = Raw::connect(&acceptor);
    noisy.write(b"\xff\xff garbage before a login");
    turns_until(&mut initiator, &mut acceptor, |_, b| b.link.counters().malformed > 0);
    assert!(noisy.is_hung_up());
    let end = initiator.now + Duration::from_secs(2);
    while initiator.now < end {
        initiator.turn();
        acceptor.turn();
    }
    assert_eq!(acceptor.events, [LinkEvent::Up]);
    // Each stranger is counted once: the noisy one, and those that were silent for too long.
    assert!(acceptor.link.counters().malformed <= 11);
    drop(silent);
}

#[test]
fn a_wrong_login_is_refused_told_once_and_counted() {
    type Change = fn(&mut TcpLinkConfig);
    let session = Refusal::Session { given: 2, held: 1 };
    let cases: [(Change, Refusal); 3] = [
        (
            |config| config.password = Password::new(b"guess").unwrap(),
            Refusal::Credentials,
        ),
        (
            |config| config.user_name = UserName::new(b"other").unwrap(),
            Refusal::Credentials,
        ),
        (|config| config.session = SessionName::new(b"2").unwrap(), session),
    ];
    for (wrong, reason) in cases {
        let mut acceptor = End::new(&listen());
        let mut config = connect(acceptor.link.local_addr().unwrap());
        wrong(&mut config);
        let mut initiator = End::new(&config);
        turns_until(&mut initiator, &mut acceptor, |_, b| b.link.counters().refused > 2);
        assert_eq!(initiator.events, [LinkEvent::Down(DownReason::RefusedBecause(reason))]);
        assert!(initiator.link.counters().refused_by_peer >= 2);
        // A stranger's doing, and nothing that happens to the link.
        assert!(acceptor.events.is_empty());
        let refused = acceptor.link.view().refused.unwrap();
        assert_eq!((refused.user, refused.reason), (Some(config.user_name), reason.into()));
        assert!(refused.from.is_some());
    }
}

/// What a server of Soup says that gives no reasons of ours.
#[test]
fn a_letter_alone_is_a_reason_too() {
    for (letter, reason) in [
        (
            LoginRefusal::NotAuthorized,
            DownReason::RefusedBecause(Refusal::Credentials),
        ),
        (LoginRefusal::SessionNotAvailable, DownReason::Refused),
    ] {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut initiator = End::new(&connect(server.local_addr().unwrap()));
        let mut packet = [0; 8];
        let length = write_login_rejected(letter, &mut packet);
        server.set_nonblocking(true).unwrap();
        let mut connection = None;
        for _ in 0..TURNS_MAX {
            initiator.turn();
            if connection.is_none()
                && let Ok((mut stream, _)) = server.accept()
            {
                stream.write_all(&packet[..length]).unwrap();
                connection = Some(stream);
            }
            if !initiator.events.is_empty() {
                break;
            }
        }
        assert_eq!(initiator.events, [LinkEvent::Down(reason)]);
    }
}

#[test]
fn a_new_login_takes_the_place_of_a_connection_that_is_up() {
    let (mut initiator, mut acceptor) = up_pair();
    initiator.send(b"first");
    initiator.sync();
    turns_until(&mut initiator, &mut acceptor, |_, b| b.received.len() == 1);
    // The initiator's machine died; nobody told the acceptor. Its successor knows the journal.
    let mut successor = End::new(&connect(acceptor.link.local_addr().unwrap()));
    (successor.sent, successor.watermark) = (initiator.sent.clone(), 1);
    successor.restart(&connect(acceptor.link.local_addr().unwrap()));
    successor.send(b"second");
    successor.sync();
    turns_until(&mut successor, &mut acceptor, |_, b| b.received.len() == 2);
    let replaced = LinkEvent::Down(DownReason::Replaced);
    assert_eq!(acceptor.events, [LinkEvent::Up, replaced, LinkEvent::Up]);
    assert_eq!(acceptor.received, [&b"first"[..], b"second"]);
}

#[test]
fn an_acceptor_is_up_with_the_first_packet_after_the_login_and_not_before() {
    let (mut initiator, mut acceptor) = End::pair();
    acceptor.send(b"report");
    acceptor.sync();
    turns_until(&mut initiator, &mut acceptor, |_, b| b.link.live.is_some());
    turns(&mut acceptor, 20);
    assert_eq!(acceptor.link.view().state, LinkState::Agreeing);
    assert!(acceptor.events.is_empty() && acceptor.link.counters().sent == 0);
    // Time stands still, so that no heartbeat is due: the initiator says at once that it is up.
    let (at, there) = (initiator.now, acceptor.now);
    for _ in 0..TURNS_MAX {
        (initiator.now, acceptor.now) = (at, there);
        initiator.turn();
        acceptor.turn();
        if !initiator.received.is_empty() {
            break;
        }
    }
    assert_eq!(initiator.received, [b"report"]);
    for end in [&initiator, &acceptor] {
        assert_eq!(end.events, [LinkEvent::Up]);
    }
}

#[test]
fn a_config_that_contradicts_itself_is_refused_with_its_session() {
    for wrong in [
        |config: &mut TcpLinkConfig| config.window = 0,
        |config: &mut TcpLinkConfig| config.window = usize::MAX,
        |config: &mut TcpLinkConfig| config.max_message = 2_000,
        |config: &mut TcpLinkConfig| config.timing.heartbeat = config.timing.dead_after,
        |config: &mut TcpLinkConfig| config.retry_min = Duration(0),
    ] {
        let mut config = listen();
        wrong(&mut config);
        let text = TcpLink::new(&config, Resume::START).unwrap_err().to_string();
        assert!(text.starts_with("building link 1: "), "{text}");
    }
}

#[test]
fn nothing_is_allocated_after_construction_even_by_a_reconnect() {
    let (mut initiator, mut acceptor) = up_pair();
    for end in [&mut initiator, &mut acceptor] {
        end.events.reserve(100);
    }
    let mut buffer = [0; MESSAGE_MAX];
    let allocated = allocations(|| {
        for round in 1..=1_000_u64 {
            if round % 100 == 0 {
                // As after a broken connection; the peer sees a close.
                initiator.link.disconnect(initiator.now);
            }
            for end in [&mut initiator, &mut acceptor] {
                end.now = end.now + TURN;
                while end.link.room() > 0 {
                    end.link.send(b"message", 0);
                }
                while end.link.poll(end.now, &mut buffer).is_some() {}
                end.link.flush(end.now, 0);
            }
        }
    });
    assert_eq!(allocated, 0);
    assert!(initiator.link.counters().ups > 5 && initiator.link.counters().received > 1_000);
}

/// A small generator: one seed makes a whole schedule.
struct Random(u64);

impl Random {
    /// A number below `bound` (xorshift64*, Vigna 2016).
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn once_in(&mut self, turns: u64) -> bool {
        self.below(turns) == 0
    }
}

#[test]
fn whatever_a_peer_sends_the_link_takes_the_next_login() {
    let mut acceptor = End::new(&listen());
    for seed in 1..200 {
        let mut random = Random(seed);
        let mut raw = Raw::log_in(&mut acceptor);
        // Packets that frame well and say anything, now and then with a length that does not hold.
        let mut bytes = Vec::new();
        for _ in 0..random.below(8) {
            let longest = if random.once_in(10) { 1_100 } else { 70 };
            let length = 1 + random.below(longest);
            let packet_type = b"ULROASJHZ+U"[usize::try_from(random.below(11)).unwrap()];
            bytes.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
            bytes.push(packet_type);
            bytes.extend((1..length).map(|_| u8::try_from(random.below(256)).unwrap()));
        }
        raw.write(&bytes);
        turns(&mut acceptor, 20);
    }
    assert_eq!(acceptor.link.counters().ups, 199);
}

/// The network: forwards some bytes a turn each way, and breaks connections wherever they are.
struct Proxy {
    tcp: TcpOptions,
    listener: TcpListener,
    target: SocketAddr,
    connection: Option<[(TcpStream, StreamBuffer); 2]>,
}

impl Proxy {
    fn new(target: SocketAddr, tcp: TcpOptions) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &tcp).unwrap();
        Self {
            tcp,
            listener,
            target,
            connection: None,
        }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Forwards at most `limit` bytes each way.
    fn turn(&mut self, limit: usize) {
        if let Some((near, _)) = self.listener.accept().unwrap() {
            let far = TcpStream::connect(self.target, &self.tcp, Duration::from_secs(5));
            self.connection = far
                .ok()
                .map(|far| [near, far].map(|stream| (stream, StreamBuffer::new(4_096))));
        }
        let Some([near, far]) = &mut self.connection else {
            return;
        };
        if !(forward(near, &mut far.0, limit) && forward(far, &mut near.0, limit)) {
            self.connection = None;
        }
    }

    fn cut(&mut self) {
        self.connection = None;
    }
}

/// Gives whether the connection is still whole.
fn forward((from, bytes): &mut (TcpStream, StreamBuffer), to: &mut TcpStream, limit: usize) -> bool {
    let length = bytes.bytes().len().min(limit);
    if length > 0 {
        match to.send(&bytes.bytes()[..length]) {
            Ok(sent) => bytes.consume(sent),
            Err(_) => return false,
        }
    }
    !matches!(bytes.receive(from), Ok(Received::Closed) | Err(_)) || !bytes.is_empty()
}

/// Sends a random number of random messages of at most `max_message` bytes.
fn send_some(end: &mut End, random: &mut Random, max_message: u64) {
    for _ in 0..random.below(4) {
        if end.link.room() > 0 {
            let length = usize::try_from(random.below(max_message + 1)).unwrap();
            let message: Vec<u8> = (0..length).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            end.send(&message);
        }
    }
    if random.once_in(3) {
        let durable = end.watermark as u64;
        let behind = end.sent.len() as u64 - durable;
        end.watermark = usize::try_from(durable + random.below(behind + 1)).unwrap();
    }
}

/// Runs one schedule of sends, cuts, delays, restarts and pauses; then lets it settle and compares. Every other schedule
/// has long messages and short kernel buffers, so that packets leave in parts.
fn run(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let long = seed % 2 == 1;
    let adapt = |mut config: TcpLinkConfig| {
        if long {
            config.max_message = MAX_PAYLOAD_LENGTH;
            config.tcp = SHORT_BUFFERS;
        }
        config
    };
    let mut acceptor = End::new(&adapt(listen()));
    let tcp = if long { SHORT_BUFFERS } else { TcpOptions::default() };
    let mut proxy = Proxy::new(acceptor.link.local_addr().unwrap(), tcp);
    let config = adapt(connect(proxy.address()));
    let mut initiator = End::new(&config);
    let (max_message, bytes_per_turn) = if long {
        (MAX_PAYLOAD_LENGTH as u64, 3_000)
    } else {
        (MESSAGE_MAX as u64, 300)
    };
    for _ in 0..1_500 {
        for end in [&mut initiator, &mut acceptor] {
            send_some(end, &mut random, max_message);
            end.polls = usize::try_from(random.below(6)).unwrap();
        }
        if random.once_in(60) {
            proxy.cut();
        }
        if random.once_in(150) {
            initiator.restart(&config);
        }
        if random.once_in(150) {
            acceptor.restart(&adapt(listen()));
            proxy.target = acceptor.link.local_addr().unwrap();
        }
        for end in [&mut initiator, &mut acceptor] {
            if random.once_in(40) {
                end.received_synced = end.received_durable;
            }
        }
        if random.once_in(300) {
            initiator.restart_elsewhere(&config);
        }
        if random.once_in(300) {
            acceptor.restart_elsewhere(&adapt(listen()));
            proxy.target = acceptor.link.local_addr().unwrap();
        }
        if random.once_in(400) {
            initiator.now = initiator.now + Duration::from_secs(1);
        }
        initiator.turn();
        proxy.turn(usize::try_from(random.below(bytes_per_turn)).unwrap());
        acceptor.turn();
    }
    for end in [&mut initiator, &mut acceptor] {
        end.sync();
        end.polls = usize::MAX;
    }
    for _ in 0..TURNS_MAX {
        if initiator.received.len() == acceptor.sent.len() && acceptor.received.len() == initiator.sent.len() {
            break;
        }
        initiator.turn();
        proxy.turn(usize::MAX);
        acceptor.turn();
    }
    assert!(
        initiator.received == acceptor.sent,
        "seed {seed}: acceptor to initiator"
    );
    assert!(
        acceptor.received == initiator.sent,
        "seed {seed}: initiator to acceptor"
    );
    assert!(
        initiator.sent.len() > 300,
        "seed {seed}: only {} messages",
        initiator.sent.len()
    );
    let is_down = |event: &&LinkEvent| matches!(event, LinkEvent::Down(_));
    let breaks = acceptor.events.iter().filter(is_down).count();
    assert!(breaks > 5, "seed {seed}: only {breaks} connections broke");
}

#[test]
fn every_message_arrives_once_and_in_order_whatever_breaks_or_restarts() {
    for seed in 0..SEEDS {
        run(seed);
    }
}
