//! Both ends together, over a link that loses messages and breaks, and any bytes at all.

use super::*;
use crate::fix::{MAX_MESSAGE_LENGTH, MAX_SEQUENCE};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use proptest::prelude::*;

/// An acceptor and an initiator, and what is on its way between them.
struct Pair {
    ends: [Side; 2],
    now: Timestamp,
    connected: bool,
}

/// How two ends differ from the usual settings.
#[derive(Clone, Copy, Debug)]
struct Settings {
    store_messages: usize,
    early_bytes: usize,
    resend_chunk: u64,
    next_expected: bool,
    version: Version,
}

struct Side {
    session: Session,
    out: Wire,
    /// Numbers given to `send`, and numbers that arrived.
    sent: Vec<u64>,
    arrived: Vec<u64>,
    /// Everything that was done to the session, as a journal would hold it.
    inputs: Vec<(Timestamp, Input)>,
}

#[derive(Clone, Debug)]
enum Input {
    Connected,
    Disconnected,
    Frame(Vec<u8>),
    Timer,
    Send(u64),
    Logout,
    Recalled(u64, u64, Option<Vec<u8>>),
}

#[derive(Default)]
struct Wire {
    messages: VecDeque<Vec<u8>>,
    closing: bool,
    last_close: Option<CloseReason>,
    log: Vec<Vec<u8>>,
    /// What each number was given to.
    journal: BTreeMap<u64, Vec<u8>>,
    recalls: VecDeque<Recall>,
}

impl Wire {
    /// No number means two things: what has it once has it for ever.
    fn note(&mut self, sequence: SequenceNumber, message: &[u8]) {
        let known = self.journal.entry(sequence.0).or_insert_with(|| message.to_vec());
        assert_eq!(readable(known), readable(message));
    }
}

impl Output for Wire {
    fn transmit(&mut self, sequence: SequenceNumber, message: &[u8]) {
        assert_eq!(frame(message), Frame::Message(message.len()));
        let mut scratch = Scratch::new();
        let parsed = scratch.parse(message);
        let is_gap_fill = parsed.msg_type() == crate::fix::msg_type::SEQUENCE_RESET;
        if !parsed.poss_dup() {
            self.note(sequence, message);
        } else if !is_gap_fill {
            // The body is what it was, byte for byte.
            let mut first = Scratch::new();
            assert_eq!(first.parse(&self.journal[&sequence.0]).body(), parsed.body());
        }
        self.messages.push_back(message.to_vec());
        self.log.push(message.to_vec());
    }

    fn hold(&mut self, sequence: SequenceNumber, message: &[u8]) {
        self.note(sequence, message);
    }

    fn recall(&mut self, recall: Recall) -> bool {
        self.recalls.push_back(recall);
        true
    }

    fn logged_on(&mut self, _: &Logon<'_>) {}

    fn logged_out(&mut self, _: &[u8]) {}

    fn close(&mut self, reason: CloseReason, _: &[u8]) {
        self.closing = true;
        self.last_close = Some(reason);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Connect,
    /// The connection breaks; what is on its way from each side is lost beyond so many messages.
    Break([usize; 2]),
    Send(usize),
    /// So many messages arrive at a side.
    Deliver(usize, usize),
    /// The next message to a side is garbled on its way.
    Garble(usize),
    /// A side receives a message that its peer never sent, and that ends the connection.
    Wrong(usize, usize),
    /// A side's owner finds so many of the messages that were recalled.
    Recall(usize, usize),
    Wait(u64),
    Logout(usize),
}

impl Side {
    fn new(role: Role, settings: Settings) -> Self {
        let (gate, client) = (CompId::new(b"GATE").unwrap(), CompId::new(b"CLIENT").unwrap());
        let (us, peer) = if role == Role::Acceptor {
            (gate, client)
        } else {
            (client, gate)
        };
        let mut config = SessionConfig::new(role, us, peer);
        config.heartbeat = Duration::from_secs(5);
        config.versions = vec![settings.version];
        config.store_messages = settings.store_messages;
        config.early_bytes = settings.early_bytes;
        config.resend_chunk = settings.resend_chunk;
        config.next_expected = settings.next_expected;
        Self {
            session: Session::new(config),
            out: Wire::default(),
            sent: Vec::new(),
            arrived: Vec::new(),
            inputs: Vec::new(),
        }
    }

    fn takes(&mut self, now: Timestamp, input: Input) {
        let out = &mut self.out;
        match &input {
            Input::Connected => self.session.on_connected(now, out),
            Input::Disconnected => self.session.on_disconnected(now),
            Input::Timer => self.session.on_timer(now, out),
            Input::Logout => self.session.logout(now, b"", out),
            Input::Send(number) => {
                self.session.send(now, &News(number.to_string()), out);
            }
            Input::Frame(bytes) => self.takes_frame(now, bytes),
            Input::Recalled(id, sequence, message) => {
                let sequence = SequenceNumber(*sequence);
                self.session.on_recalled(now, *id, sequence, message.as_deref(), out);
            }
        }
        self.inputs.push((now, input));
    }

    fn takes_frame(&mut self, now: Timestamp, bytes: &[u8]) {
        let mut scratch = Scratch::new();
        if let Some(application) = self.session.on_frame(now, bytes, &mut scratch, &mut self.out) {
            self.arrived.push(number_of(&application));
        }
        let mut buffer = [0; MAX_MESSAGE_LENGTH];
        while let Some(early) = self.session.take_early(&mut buffer) {
            if let Some(application) = self.session.on_early(now, early, &mut scratch, &mut self.out) {
                self.arrived.push(number_of(&application));
            }
        }
    }

    /// The owner looks up to `count` recalled messages up in its journal.
    fn finds(&mut self, now: Timestamp, count: usize) {
        for _ in 0..count {
            let Some(recall) = self.out.recalls.front_mut() else {
                return;
            };
            let (id, sequence) = (recall.id, recall.begin.0);
            recall.begin = SequenceNumber(sequence + 1);
            if recall.begin > recall.end {
                self.out.recalls.pop_front();
            }
            let message = self.out.journal.get(&sequence).cloned();
            self.takes(now, Input::Recalled(id, sequence, message));
        }
    }

    /// A new session that is given the same inputs says the same and is in the same state.
    fn check_rebuilt(&self, role: Role, settings: Settings) {
        let mut again = Self::new(role, settings);
        for (now, input) in &self.inputs {
            again.takes(*now, input.clone());
        }
        assert_eq!(again.out.log, self.out.log);
        assert_eq!(again.arrived, self.arrived);
        let state = |session: &Session| {
            let numbers = (session.next_inbound(), session.next_outbound());
            (numbers, session.phase, session.poll_timeout(), session.counters())
        };
        assert_eq!(state(&again.session), state(&self.session));
    }
}

fn number_of(application: &Application<'_>) -> u64 {
    assert_eq!(application.message.msg_type(), b"B", "only what was sent arrives");
    let field = Fields::new(application.message.body()).next().unwrap().unwrap();
    crate::fix::parse_u64(field.value).unwrap()
}

impl Pair {
    fn new(settings: Settings) -> Self {
        Self {
            ends: [
                Side::new(Role::Acceptor, settings),
                Side::new(Role::Initiator, settings),
            ],
            now: START,
            connected: false,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Connect if !self.connected => {
                self.connected = true;
                for side in &mut self.ends {
                    side.takes(self.now, Input::Connected);
                }
            }
            Step::Break(arriving) if self.connected => {
                for (from, count) in arriving.into_iter().enumerate() {
                    self.deliver(1 - from, count);
                }
                self.disconnect();
            }
            Step::Send(index) => {
                let side = &mut self.ends[index];
                let number = side.sent.len() as u64;
                side.sent.push(number);
                side.takes(self.now, Input::Send(number));
            }
            Step::Deliver(to, count) if self.connected => self.deliver(to, count),
            Step::Garble(to) if self.connected => {
                self.ends[1 - to].out.messages.pop_front();
            }
            Step::Wrong(index, kind) if self.connected => self.wrong(index, kind),
            Step::Recall(index, count) => self.ends[index].finds(self.now, count),
            Step::Wait(millis) => self.wait(Duration::from_millis(millis)),
            Step::Logout(index) => {
                self.ends[index].takes(self.now, Input::Logout);
            }
            _ => (),
        }
    }

    fn wrong(&mut self, index: usize, kind: usize) {
        let side = &mut self.ends[index];
        // With number 1 a session that has seen nothing yet would take it for its first.
        if side.session.next_inbound() == SequenceNumber(1) {
            return;
        }
        let names = ["49=CLIENT|56=GATE|", "49=GATE|56=CLIENT|"][index];
        let message = [
            format!("8=FIX.4.1|35=0|34=1|{names}"),
            format!("35=0|34=0|{names}"),
            format!("35=0|34=1|{names}"),
        ];
        let bytes = wire(&message[kind], side.session.version(), self.now);
        side.takes(self.now, Input::Frame(bytes));
    }

    fn deliver(&mut self, to: usize, count: usize) {
        for _ in 0..count {
            let Some(message) = self.ends[1 - to].out.messages.pop_front() else {
                break;
            };
            self.ends[to].takes(self.now, Input::Frame(message));
        }
        // Whoever closes has its last words delivered first.
        if self.ends.iter().any(|side| side.out.closing) && self.ends.iter().all(|side| side.out.messages.is_empty()) {
            self.disconnect();
        }
    }

    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(due) = self.ends.iter().filter_map(|side| side.session.poll_timeout()).min() {
            if due > until {
                break;
            }
            self.now = self.now.max(due);
            for side in &mut self.ends {
                side.takes(self.now, Input::Timer);
            }
            self.talk();
        }
        self.now = until;
    }

    /// Everything on its way arrives, and everything looked for is found.
    fn talk(&mut self) {
        for side in 0..2 {
            self.deliver(side, usize::MAX);
            self.ends[side].finds(self.now, usize::MAX);
        }
    }

    fn disconnect(&mut self) {
        self.connected = false;
        for side in &mut self.ends {
            side.takes(self.now, Input::Disconnected);
            side.out.closing = false;
            side.out.messages.clear();
        }
    }

    /// A quiet time in which everything may be made good.
    fn settle(&mut self) {
        for _ in 0..8 {
            self.step(&Step::Connect);
            for _ in 0..20 {
                self.talk();
            }
            self.wait(Duration::from_secs(20));
        }
    }

    fn check(&self) {
        for (from, to) in [(0, 1), (1, 0)] {
            assert_eq!(self.ends[to].arrived, self.ends[from].sent, "from {from}");
            assert_eq!(
                self.ends[to].session.next_inbound(),
                self.ends[from].session.next_outbound()
            );
        }
        for side in &self.ends {
            assert!(side.session.is_logged_on());
            assert_eq!(side.session.counters().lost, 0);
            assert_eq!(side.session.counters().rejected, 0);
        }
    }
}

#[test]
fn both_ends_log_on_talk_and_log_out() {
    let mut pair = Pair::new(USUAL);
    pair.settle();
    for _ in 0..10 {
        pair.step(&Step::Send(0));
        pair.step(&Step::Send(1));
    }
    pair.settle();
    pair.check();
    pair.step(&Step::Logout(1));
    pair.talk();
    assert!(!pair.connected);
    assert_eq!(pair.ends[1].out.last_close, Some(CloseReason::LoggedOut));
}

#[test]
fn an_idle_pair_stays_logged_on() {
    let mut pair = Pair::new(USUAL);
    pair.settle();
    pair.wait(Duration::from_secs(3_600));
    pair.check();
    assert!(pair.ends[0].session.counters().received > 700);
}

const USUAL: Settings = Settings {
    store_messages: 1_024,
    early_bytes: 16 * 1_024,
    resend_chunk: 0,
    next_expected: false,
    version: Version::Fix44,
};

fn settings() -> impl Strategy<Value = Settings> {
    let store_messages = prop_oneof![Just(1_usize), Just(4), Just(1_024)];
    let early_bytes = prop_oneof![Just(0_usize), Just(250), Just(16 * 1_024)];
    let resend_chunk = prop_oneof![Just(0_u64), Just(3), Just(10)];
    let version = prop_oneof![Just(Version::Fix40), Just(Version::Fix44), Just(Version::Fix50Sp2)];
    (store_messages, early_bytes, resend_chunk, any::<bool>(), version).prop_map(
        |(store_messages, early_bytes, resend_chunk, next_expected, version)| Settings {
            store_messages,
            early_bytes,
            resend_chunk,
            next_expected,
            version,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Connect),
        2 => [0_usize..4, 0_usize..4].prop_map(Step::Break),
        8 => (0_usize..2).prop_map(Step::Send),
        8 => (0_usize..2, 1_usize..8).prop_map(|(to, count)| Step::Deliver(to, count)),
        1 => (0_usize..2).prop_map(Step::Garble),
        1 => (0_usize..2, 0_usize..3).prop_map(|(index, kind)| Step::Wrong(index, kind)),
        2 => (0_usize..2, 1_usize..4).prop_map(|(index, count)| Step::Recall(index, count)),
        1 => (0_u64..12_000).prop_map(Step::Wait),
        1 => (0_usize..2).prop_map(Step::Logout),
    ]
}

/// Messages that make a session think, and bytes that are none.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0_u64..12, Just(u64::MAX), Just(MAX_SEQUENCE)];
    let kind = prop_oneof![
        Just("A"),
        Just("0"),
        Just("1"),
        Just("2"),
        Just("3"),
        Just("4"),
        Just("5"),
        Just("D"),
        Just("ZZ"),
        Just("")
    ];
    let tag = prop_oneof![
        Just(7_u32),
        Just(16),
        Just(36),
        Just(34),
        Just(43),
        Just(49),
        Just(58),
        Just(97),
        Just(98),
        Just(108),
        Just(112),
        Just(122),
        Just(123),
        Just(141),
        Just(789),
        0_u32..1_200
    ];
    let value = prop_oneof![
        Just("Y".to_string()),
        Just("N".to_string()),
        Just(String::new()),
        (0_u64..12).prop_map(|value| value.to_string()),
        Just("20260301-00:00:00".to_string()),
        Just(u64::MAX.to_string()),
        "[ -~]{0,80}"
    ];
    let fields = proptest::collection::vec((tag, value), 0..6);
    prop_oneof![
        9 => (kind, number, fields).prop_map(|(kind, number, fields)| {
            let fields: String = fields.iter().map(|(tag, value)| format!("{tag}={value}|")).collect();
            wire(&format!("35={kind}|34={number}|{fields}"), Version::Fix44, START)
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..100),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn whatever_breaks_everything_arrives_once_and_in_order_and_inputs_rebuild_it(
        settings in settings(),
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let mut pair = Pair::new(settings);
        for step in &steps {
            pair.step(step);
        }
        pair.settle();
        pair.check();
        pair.ends[0].check_rebuilt(Role::Acceptor, settings);
        pair.ends[1].check_rebuilt(Role::Initiator, settings);
    }

    #[test]
    fn any_messages_are_survived(
        acceptor in any::<bool>(),
        inputs in proptest::collection::vec((any_message(), 0_u64..20_000), 0..40),
    ) {
        let role = if acceptor { Role::Acceptor } else { Role::Initiator };
        let mut end = End::new(role, |config| {
            config.store_messages = 3;
            config.store_bytes = MAX_MESSAGE_LENGTH;
            config.early_bytes = 300;
        });
        end.did.recalls = Some(Vec::new());
        end.connect();
        if acceptor {
            end.receives("35=A|34=1|98=0|108=5|");
        } else {
            end.receives("35=A|34=1|98=0|108=30|");
        }
        for (bytes, millis) in inputs {
            let before = end.numbers();
            prop_assert!(end.takes(&bytes).len() < 100);
            let after = end.numbers();
            prop_assert!(after.0 >= before.0 || after == (2, 2), "numbers fall only by a reset: {before:?} {after:?}");
            end.sends("news");
            end.finds(millis % 2 == 0);
            end.now = end.now + Duration::from_millis(millis);
            end.session.on_timer(end.now, &mut end.did);
            end.done();
            if matches!(end.session.phase, Phase::Closing) {
                end.drop_connection();
                end.connect();
            }
        }
    }
}
