//! Both ends together, on a virtual clock and two pipes that deliver bytes in any portions.

extern crate std;

use std::vec::Vec;

use proptest::prelude::*;
use types::Timestamp;

use super::*;

/// A client and a server on one connection, and what lives longer than the connection.
struct Pair {
    now: Timestamp,
    client: ClientSession,
    server: ServerSession,
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    /// All messages of the session: what the server's owner keeps.
    store: Vec<Vec<u8>>,
    /// What the client's owner got, in order, with the numbers it was told.
    received: Vec<(u64, Vec<u8>)>,
    /// What the server's owner got.
    requests: Vec<Vec<u8>>,
    client_result: Result<(), SoupError>,
    server_result: Result<(), SoupError>,
}

impl Pair {
    fn new() -> Self {
        let now = Timestamp(1_000_000_000_000);
        Self {
            now,
            client: ClientSession::new(now, Timing::default()),
            server: ServerSession::new(now, Timing::default()),
            to_client: Vec::new(),
            to_server: Vec::new(),
            store: Vec::new(),
            received: Vec::new(),
            requests: Vec::new(),
            client_result: Ok(()),
            server_result: Ok(()),
        }
    }

    fn established() -> Self {
        let mut pair = Self::new();
        pair.log_in(&login(1));
        pair.deliver(usize::MAX);
        assert!(pair.client.is_established() && pair.server.is_established());
        pair
    }

    fn log_in(&mut self, login: &Login) {
        let mut out = [0; MAX_PACKET_LENGTH];
        let length = self.client.login(self.now, login, &mut out);
        self.to_server.extend_from_slice(&out[..length]);
    }

    /// The connection breaks with everything on it, and the client comes back.
    fn reconnect(&mut self) {
        let login = Login {
            session: self.client.session(),
            ..login(self.received.len() as u64 + 1)
        };
        self.client = ClientSession::new(self.now, Timing::default());
        self.server = ServerSession::new(self.now, Timing::default());
        self.to_client.clear();
        self.to_server.clear();
        self.log_in(&login);
    }

    /// The server's owner has news: it goes to the store, and out when somebody is there.
    fn publish(&mut self, message: &[u8]) {
        self.store.push(message.to_vec());
        if self.server.is_established() {
            let mut out = [0; MAX_PACKET_LENGTH];
            let length = self.server.send(self.now, message, &mut out);
            self.to_client.extend_from_slice(&out[..length]);
        }
    }

    fn request(&mut self, message: &[u8]) {
        let mut out = [0; MAX_PACKET_LENGTH];
        let length = self.client.send(self.now, message, &mut out);
        self.to_server.extend_from_slice(&out[..length]);
    }

    /// At most `bytes` arrive on each side.
    fn deliver(&mut self, bytes: usize) {
        let arriving: Vec<u8> = self.to_server.drain(..self.to_server.len().min(bytes)).collect();
        let mut rest = arriving.as_slice();
        while let Ok(Some((packet, length))) = parse(rest) {
            rest = &rest[length..];
            self.on_server_packet(packet);
        }
        self.to_server.splice(..0, rest.iter().copied());

        let arriving: Vec<u8> = self.to_client.drain(..self.to_client.len().min(bytes)).collect();
        let mut rest = arriving.as_slice();
        while let Ok(Some((packet, length))) = parse(rest) {
            rest = &rest[length..];
            self.on_client_packet(packet);
        }
        self.to_client.splice(..0, rest.iter().copied());
    }

    fn on_client_packet(&mut self, packet: Packet<'_>) {
        match self.client.on_packet(self.now, packet) {
            Ok(Some(ClientEvent::Message { sequence, payload })) => {
                self.received.push((sequence.0, payload.to_vec()));
            }
            Ok(_) => {}
            Err(error) => self.client_result = Err(error),
        }
    }

    fn on_server_packet(&mut self, packet: Packet<'_>) {
        match self.server.on_packet(self.now, packet) {
            Ok(Some(ServerEvent::Login(login))) => self.decide(&login),
            Ok(Some(ServerEvent::Message(message))) => self.requests.push(message.to_vec()),
            Ok(_) => {}
            Err(error) => self.server_result = Err(error),
        }
    }

    /// The server's owner: password, then what the client missed.
    fn decide(&mut self, login: &Login) {
        let mut out = [0; MAX_PACKET_LENGTH];
        let next = SequenceNumber(self.store.len() as u64 + 1);
        let length = match login.resume_from(next) {
            _ if login.password.as_str() != "secret" => self.server.reject(LoginRefusal::NotAuthorized, &mut out),
            None => self.server.reject(LoginRefusal::SessionNotAvailable, &mut out),
            Some(from) => {
                let mut length = self.server.accept(self.now, session(), from, &mut out);
                self.to_client.extend_from_slice(&out[..length]);
                let first = usize::try_from(from.0).unwrap() - 1;
                for message in &self.store[first..] {
                    length = self.server.send(self.now, message, &mut out);
                    self.to_client.extend_from_slice(&out[..length]);
                }
                return;
            }
        };
        self.to_client.extend_from_slice(&out[..length]);
    }

    /// Time jumps to the next deadline of either end; whoever's it is acts.
    fn jump(&mut self) {
        let deadlines = [self.client.poll_timeout(), self.server.poll_timeout()];
        self.now = deadlines.into_iter().flatten().min().unwrap();
        let mut out = [0; MAX_PACKET_LENGTH];
        match self.client.on_timeout(self.now, &mut out) {
            Ok(length) => self.to_server.extend_from_slice(&out[..length]),
            Err(error) => self.client_result = Err(error),
        }
        match self.server.on_timeout(self.now, &mut out) {
            Ok(length) => self.to_client.extend_from_slice(&out[..length]),
            Err(error) => self.server_result = Err(error),
        }
    }
}

fn session() -> SessionName {
    Text::new(b"20260701A").unwrap()
}

fn login(sequence: u64) -> Login {
    Login {
        user_name: Text::new(b"trader").unwrap(),
        password: Text::new(b"secret").unwrap(),
        session: SessionName::BLANK,
        sequence,
    }
}

#[test]
fn messages_go_both_ways_and_the_servers_are_numbered_from_one() {
    let mut pair = Pair::established();
    pair.publish(b"one");
    pair.publish(b"");
    pair.request(b"order");
    pair.deliver(usize::MAX);
    assert_eq!(pair.received, [(1, b"one".to_vec()), (2, Vec::new())]);
    assert_eq!(pair.requests, [b"order".to_vec()]);
    assert_eq!(pair.client.next_sequence(), SequenceNumber(3));
    assert_eq!(pair.server.next_sequence(), SequenceNumber(3));
}

#[test]
fn heartbeats_keep_an_idle_session_alive() {
    let mut pair = Pair::established();
    let end = pair.now + Duration::from_secs(100);
    let mut jumps = 0;
    while pair.now < end {
        pair.jump();
        pair.deliver(usize::MAX);
        jumps += 1;
    }
    assert_eq!((pair.client_result, pair.server_result), (Ok(()), Ok(())));
    assert_eq!(jumps, 100, "one a second, on both sides at the same time");
}

#[test]
fn whoever_hears_nothing_for_fifteen_seconds_gives_up() {
    let mut pair = Pair::established();
    let start = pair.now;
    while pair.server_result.is_ok() || pair.client_result.is_ok() {
        pair.jump();
        // Nothing is delivered.
    }
    assert_eq!(pair.now.since(start), Duration::from_secs(15));
    assert_eq!(pair.server_result, Err(SoupError::Silence));
    assert_eq!(pair.client_result, Err(SoupError::Silence));
    assert_eq!(pair.server.poll_timeout(), None);
}

#[test]
fn data_counts_as_a_sign_of_life() {
    let mut pair = Pair::established();
    for _ in 0..40 {
        pair.now = pair.now + Duration::from_millis(900);
        pair.request(b"order");
        pair.publish(b"report");
        pair.deliver(usize::MAX);
        let mut out = [0; MAX_PACKET_LENGTH];
        assert_eq!(pair.client.on_timeout(pair.now, &mut out), Ok(0));
        assert_eq!(pair.server.on_timeout(pair.now, &mut out), Ok(0));
    }
}

#[test]
fn a_connection_that_never_logs_in_is_closed_whatever_else_it_sends() {
    let mut pair = Pair::new();
    let start = pair.now;
    while pair.server_result.is_ok() {
        let mut out = [0; MAX_PACKET_LENGTH];
        let length = write_client_heartbeat(&mut out);
        pair.to_server.extend_from_slice(&out[..length]);
        pair.deliver(usize::MAX);
        pair.now = pair.now + Duration::from_secs(1);
        pair.server_result = pair.server.on_timeout(pair.now, &mut out).map(drop);
    }
    assert_eq!(pair.server_result, Err(SoupError::LoginTimeout));
    assert_eq!(pair.now.since(start), Duration::from_secs(15));
}

#[test]
fn a_login_that_is_never_answered_times_out() {
    let mut pair = Pair::new();
    pair.log_in(&login(1));
    pair.jump();
    assert_eq!(pair.client_result, Err(SoupError::LoginTimeout));
}

#[test]
fn a_wrong_password_and_a_number_from_the_future_are_refused() {
    let wrong = Login {
        password: Text::new(b"guess").unwrap(),
        ..login(1)
    };
    for (login, refusal) in [
        (wrong, LoginRefusal::NotAuthorized),
        (login(2), LoginRefusal::SessionNotAvailable),
    ] {
        let mut pair = Pair::new();
        pair.log_in(&login);
        pair.on_server_packet(Packet::LoginRequest(login));
        let answer = std::mem::take(&mut pair.to_client);
        let (packet, _) = parse(&answer).unwrap().unwrap();
        let event = pair.client.on_packet(pair.now, packet);
        assert_eq!(event, Ok(Some(ClientEvent::Rejected(refusal))));
        assert_eq!((pair.client.poll_timeout(), pair.server.poll_timeout()), (None, None));
    }
}

#[test]
fn data_before_the_login_ends_the_connection() {
    let mut pair = Pair::new();
    let error = Err(SoupError::Unexpected { packet_type: b'U' });
    assert_eq!(pair.server.on_packet(pair.now, Packet::Unsequenced(b"order")), error);
    let mut pair = Pair::new();
    let error = Err(SoupError::Unexpected { packet_type: b'S' });
    assert_eq!(pair.client.on_packet(pair.now, Packet::Sequenced(b"report")), error);
}

#[test]
fn a_packet_of_the_wrong_side_ends_the_connection() {
    let mut pair = Pair::established();
    let error = Err(SoupError::Unexpected { packet_type: b'S' });
    assert_eq!(pair.server.on_packet(pair.now, Packet::Sequenced(b"x")), error);
    let error = Err(SoupError::Unexpected { packet_type: b'R' });
    assert_eq!(pair.client.on_packet(pair.now, Packet::ClientHeartbeat), error);
    assert!(!pair.server.is_established() && !pair.client.is_established());
}

#[test]
fn unsequenced_data_of_the_server_has_no_number() {
    let mut pair = Pair::established();
    let event = pair.client.on_packet(pair.now, Packet::Unsequenced(b"x"));
    assert_eq!(event, Ok(Some(ClientEvent::Unsequenced(b"x"))));
    assert_eq!(pair.client.next_sequence(), SequenceNumber(1));
}

#[test]
fn packets_that_the_owner_writes_itself_count_as_sent() {
    let mut pair = Pair::established();
    let (start, mut out) = (pair.now, [0; MAX_PACKET_LENGTH]);
    let later = start + Duration::from_millis(900);
    pair.server.on_sent(later, 2);
    pair.client.on_sent(later);
    assert_eq!(pair.server.next_sequence(), SequenceNumber(3));
    let due = start + Timing::default().heartbeat;
    assert_eq!(pair.server.on_timeout(due, &mut out), Ok(0));
    assert_eq!(pair.client.on_timeout(due, &mut out), Ok(0));
}

#[test]
fn a_second_login_ends_the_connection() {
    let mut pair = Pair::established();
    let error = Err(SoupError::Unexpected { packet_type: b'L' });
    assert_eq!(pair.server.on_packet(pair.now, Packet::LoginRequest(login(1))), error);
}

#[test]
fn a_server_that_goes_on_from_another_number_or_session_is_refused() {
    for (session, next, error) in [
        (
            session(),
            SequenceNumber(6),
            SoupError::Gap {
                expected: SequenceNumber(5),
                received: SequenceNumber(6),
            },
        ),
        (Text::new(b"other").unwrap(), SequenceNumber(5), SoupError::WrongSession),
    ] {
        let mut pair = Pair::new();
        pair.log_in(&Login {
            session: self::session(),
            ..login(5)
        });
        let answer = Packet::LoginAccepted { session, next };
        assert_eq!(pair.client.on_packet(pair.now, answer), Err(error));
        assert!(!pair.client.is_established());
    }
}

#[test]
fn logout_and_end_of_session_are_told_once_and_end_it() {
    let mut pair = Pair::established();
    let event = pair.server.on_packet(pair.now, Packet::Logout);
    assert_eq!(event, Ok(Some(ServerEvent::Logout)));
    assert!(pair.server.on_packet(pair.now, Packet::Unsequenced(b"late")).is_err());
    let mut pair = Pair::established();
    let mut out = [0; MAX_PACKET_LENGTH];
    assert_eq!(pair.server.end(&mut out), 3);
    let event = pair.client.on_packet(pair.now, Packet::EndOfSession);
    assert_eq!(event, Ok(Some(ClientEvent::EndOfSession)));
    assert!(pair.client.on_packet(pair.now, Packet::Sequenced(b"late")).is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Publish(Vec<u8>),
    Request(Vec<u8>),
    Deliver(usize),
    Jump,
    Reconnect,
}

fn step() -> impl Strategy<Value = Step> {
    let message = || proptest::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        4 => message().prop_map(Step::Publish),
        2 => message().prop_map(Step::Request),
        4 => (0_usize..60).prop_map(Step::Deliver),
        1 => Just(Step::Jump),
        1 => Just(Step::Reconnect),
    ]
}

proptest! {
    #[test]
    fn the_client_gets_every_message_once_and_in_order_however_often_it_reconnects(
        steps in proptest::collection::vec(step(), 0..120)
    ) {
        let mut pair = Pair::established();
        for step in steps {
            match step {
                Step::Publish(message) => pair.publish(&message),
                Step::Request(message) if pair.client.is_established() => pair.request(&message),
                Step::Request(_) => {}
                Step::Deliver(bytes) => pair.deliver(bytes),
                Step::Jump => pair.jump(),
                Step::Reconnect => pair.reconnect(),
            }
            if pair.client_result.is_err() || pair.server_result.is_err() {
                // Only silence is possible here: it takes as many jumps without a delivery.
                let silent = [SoupError::Silence, SoupError::LoginTimeout];
                for result in [pair.client_result, pair.server_result] {
                    prop_assert!(result.is_ok() || result.is_err_and(|error| silent.contains(&error)));
                }
                (pair.client_result, pair.server_result) = (Ok(()), Ok(()));
                pair.reconnect();
            }
        }
        pair.reconnect();
        pair.deliver(usize::MAX);
        let numbered: Vec<_> = (1..).zip(pair.store.iter().cloned()).collect();
        prop_assert_eq!(pair.received, numbered);
    }
}
