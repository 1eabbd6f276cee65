//! The program in the kernel. Needs root, so `cargo test` leaves it out; `.ci/extended xdp` runs it.

use crate::model;
use crate::namespaces::{FAR, NEAR, Namespaces, ip};
use crate::software::{clean, golden};
use prefilter::conformance::{Frame, Step, run};
use prefilter::xdp::{Flow, Hook, Record, Settings, Unjudged, Xdp};
use prefilter::{
    Action, Caps, Control, Counters, Fault, PreFilter, Reasons, SessionLimits, Slot, Software, SymbolLimits, Verdict,
};
use std::net::{SocketAddrV4, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use types::{InstrumentId, Price, SessionId};

const SETTINGS: Settings = Settings {
    caps: Caps {
        symbols: 1 << 10,
        sessions: 1 << 10,
    },
    flows: 2,
    window: 1 << 10,
    ring_bytes: 1 << 20,
    heartbeat_ns: 60_000_000_000,
};
const OPEN: Control = Control {
    enable: true,
    kill: false,
};
const TAG: u32 = 0x1234_5678;
const SESSION: SessionId = SessionId(3);
const GATEWAY: SocketAddrV4 = SocketAddrV4::new(FAR, 7_201);

fn xdp() -> Xdp {
    Xdp::new(&SETTINGS).expect("root, and a kernel with BPF")
}

/// The frames of a script that have all their bytes.
fn orders(script: &[Step]) -> impl Iterator<Item = &Frame> {
    script.iter().filter_map(|step| match step {
        Step::Frame(frame) if frame.slot.length.get() == 48 => Some(frame),
        _ => None,
    })
}

fn any_order() -> Slot {
    orders(&golden())
        .find(|frame| frame.reasons == Reasons::NONE)
        .expect("one that passes")
        .slot
}

#[test]
#[ignore = "needs root"]
fn the_golden_script_gives_its_verdicts() {
    clean(&run(&mut xdp(), &golden()).expect("sound"));
}

#[test]
#[ignore = "needs root"]
fn a_hundred_thousand_orders_are_judged_as_the_model_does() {
    for seed in 0..50 {
        let script = model::script(2_000 + seed, 2_000);
        let (mut xdp, mut software) = (xdp(), Software::new(SETTINGS.caps));
        let outcome = run(&mut xdp, &script).expect("sound");
        clean(&outcome);
        assert_eq!(outcome.frames, 2_000);
        run(&mut software, &script).expect("sound");
        assert_eq!(xdp.counters(), software.counters());
    }
}

/// A filter that takes what `slot` asks for, so many times at once.
fn allowing(at_once: u32) -> (Xdp, Slot) {
    let slot = any_order();
    let mut xdp = xdp();
    open_for(&mut xdp, &slot, SessionLimits::rate(1, at_once).expect("possible"));
    (xdp, slot)
}

fn open_for(filter: &mut impl PreFilter, slot: &Slot, limits: SessionLimits) {
    let instrument = u32::from_le_bytes(slot.message[8..12].try_into().expect("four bytes"));
    let session = u16::from_le_bytes([slot.message[36], slot.message[37]]);
    filter
        .set_symbol(InstrumentId(instrument), Some(wide(u32::MAX)))
        .expect("a place");
    filter.set_session(SessionId(session), Some(limits)).expect("a place");
    filter.commit().expect("confirmed");
    filter.set_control(OPEN).expect("open");
}

fn wide(max_quantity: u32) -> SymbolLimits {
    SymbolLimits {
        max_quantity,
        lowest: Price::NULL,
        highest: Price(i64::MAX),
        route: 0,
    }
}

fn judged(xdp: &mut Xdp, slot: &Slot, sequence: u32) -> Option<Verdict> {
    let mut slot = *slot;
    slot.sequence = sequence.into();
    assert_eq!(xdp.submit(&[slot]), 1);
    let mut verdict = [Verdict::default()];
    (xdp.poll(&mut verdict) == 1).then(|| verdict[0])
}

#[test]
#[ignore = "needs root"]
fn a_number_that_was_judged_is_neither_judged_nor_charged_again() {
    let (mut xdp, slot) = allowing(2);
    let reasons = |verdict: Option<Verdict>| verdict.map(|verdict| Reasons(verdict.reasons.get()));
    assert_eq!(reasons(judged(&mut xdp, &slot, 1)), Some(Reasons::NONE));
    for _ in 0..5 {
        assert_eq!(judged(&mut xdp, &slot, 1), None);
    }
    assert_eq!(reasons(judged(&mut xdp, &slot, 2)), Some(Reasons::NONE));
    assert_eq!(reasons(judged(&mut xdp, &slot, 3)), Some(Reasons::RATE));
    assert_eq!(judged(&mut xdp, &slot, 3), None);
    assert_eq!(xdp.unjudged().repeats, 6);
    assert_eq!(xdp.counters().received, 3);
}

#[test]
#[ignore = "needs root"]
fn an_order_for_whose_verdict_there_is_no_room_is_dropped_and_judged_when_it_comes_again() {
    let mut small = Xdp::new(&Settings {
        ring_bytes: 4_096,
        ..SETTINGS
    })
    .expect("root");
    let slot = any_order();
    open_for(&mut small, &slot, SessionLimits::UNLIMITED);
    let mut sequence = 0;
    while small.unjudged().lost == 0 {
        sequence += 1;
        let mut slot = slot;
        slot.sequence = sequence.into();
        small.submit(&[slot]);
        assert!(sequence < 100, "the ring is never full");
    }
    let mut verdicts = [Verdict::default(); 100];
    assert_eq!(small.poll(&mut verdicts), sequence as usize - 1);
    let verdict = judged(&mut small, &slot, sequence).expect("judged now");
    assert_eq!(verdict.sequence.get(), sequence);
    assert_eq!(small.counters().received, u64::from(sequence));
}

#[test]
#[ignore = "needs root"]
fn without_a_heartbeat_it_closes_and_stays_closed_until_it_is_enabled_anew() {
    let mut xdp = Xdp::new(&Settings {
        heartbeat_ns: 1_000_000,
        ..SETTINGS
    })
    .expect("root");
    let slot = any_order();
    open_for(&mut xdp, &slot, SessionLimits::UNLIMITED);
    std::thread::sleep(Duration::from_millis(3));
    let verdict = judged(&mut xdp, &slot, 1).expect("a verdict");
    assert_eq!(verdict.action & Action::CLOSED, Action::CLOSED);
    assert_eq!(verdict.reasons.get(), Reasons::KILL.0);
    assert_eq!(xdp.health(), Err(Fault::HeartbeatLost));
    assert_eq!(
        judged(&mut xdp, &slot, 2).expect("a verdict").reasons.get(),
        Reasons::KILL.0
    );
}

/// An order in a datagram of LTP.
fn datagram(tag: u32, sequence: u32, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[..4].copy_from_slice(&tag.to_le_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[12..14].copy_from_slice(&u16::try_from(message.len()).expect("short").to_le_bytes());
    bytes[14] = 1;
    bytes.extend_from_slice(message);
    bytes
}

/// A client in the near namespace, a gateway with the program at its interface in the far one.
struct Wire {
    _namespaces: Namespaces,
    client: UdpSocket,
    other: UdpSocket,
    gateway: UdpSocket,
    xdp: Xdp,
}

impl Wire {
    fn new(hook: Hook) -> Option<Self> {
        let namespaces = Namespaces::new(1)?;
        let bind = || UdpSocket::bind((NEAR, 0)).expect("a port");
        let (client, other) = namespaces.in_near(|| (bind(), bind()));
        let (gateway, xdp) = namespaces.in_far(|| {
            let mut xdp = xdp();
            xdp.attach("tgv1", hook).expect("attached");
            (UdpSocket::bind(GATEWAY).expect("the port"), xdp)
        });
        gateway
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("a timeout");
        let mut wire = Self {
            _namespaces: namespaces,
            client,
            other,
            gateway,
            xdp,
        };
        let std::net::SocketAddr::V4(peer) = wire.client.local_addr().expect("bound") else {
            panic!("IPv4");
        };
        let flow = Flow {
            peer,
            tag: TAG,
            session: SESSION,
            trailer: 0,
        };
        wire.xdp.set_flow(1, GATEWAY, Some(&flow)).expect("a flow");
        Some(wire)
    }

    fn send(&self, datagram: &[u8]) {
        self.client.send_to(datagram, GATEWAY).expect("sent");
    }

    fn receive(&self) -> Vec<u8> {
        let mut bytes = [0; 2_048];
        let length = self.gateway.recv(&mut bytes).expect("a datagram in time");
        bytes[..length].to_vec()
    }

    /// Nothing more has come to the socket.
    fn is_silent(&self) -> bool {
        self.gateway.set_nonblocking(true).expect("set");
        let is_silent = self.gateway.recv(&mut [0; 2_048]).is_err();
        self.gateway.set_nonblocking(false).expect("set");
        is_silent
    }

    /// So many orders in a row, and what the software says of each. Each comes to the socket, and its verdict before it.
    fn orders(&mut self, script: &[Step], software: &mut Software, first: u32) -> u32 {
        let mut sequence = first;
        for frame in orders(script) {
            self.send(&datagram(TAG, sequence, &frame.slot.message));
            let came = self.receive();
            let record = self.xdp.record().expect("its verdict is there before it");
            assert_eq!(came[16..], record.message, "the order that was judged");
            assert_eq!(self.xdp.place(&record), 1);
            let mut slot = frame.slot;
            slot.sequence = sequence.into();
            slot.flags = 0;
            assert_eq!(software.submit(&[slot]), 1);
            let mut expected = [Verdict::default()];
            assert_eq!(software.poll(&mut expected), 1);
            compare(&expected[0], &record, &slot);
            sequence += 1;
        }
        sequence
    }
}

/// But for what names another session than its flow, which software cannot know.
fn compare(expected: &Verdict, record: &Record, slot: &Slot) {
    let session = u16::from_le_bytes([slot.message[36], slot.message[37]]);
    let mut found = record.verdict;
    if session != SESSION.0 {
        assert_ne!(found.reasons.get() & Reasons::SESSION.0, 0);
        found.reasons = expected.reasons;
        found.action = expected.action;
    }
    assert_eq!(found, *expected);
}

fn limits_of(script: &[Step], filter: &mut impl PreFilter) {
    for step in script {
        if let Step::Symbol(id, limits @ Some(_)) = step {
            filter.set_symbol(*id, *limits).expect("a place");
        }
    }
    filter
        .set_session(SESSION, Some(SessionLimits::UNLIMITED))
        .expect("a place");
    filter.commit().expect("confirmed");
    filter.set_control(OPEN).expect("open");
}

/// Twenty thousand orders over the wire, between them what no session sent.
fn orders_over_a_wire(hook: Hook) {
    let Some(mut wire) = Wire::new(hook) else { return };
    let mut software = Software::new(SETTINGS.caps);
    let script = model::script(77, 500);
    limits_of(&script, &mut wire.xdp);
    limits_of(&script, &mut software);
    let (mut sequence, mut rounds) = (1, 0);
    let order = any_order();
    while sequence <= 20_000 {
        let next = wire.orders(&script, &mut software, sequence);
        // The last one again, a stranger, another tag, and the first step of a handshake.
        wire.send(&datagram(TAG, next - 1, &order.message));
        wire.other
            .send_to(&datagram(TAG, next, &order.message), GATEWAY)
            .expect("sent");
        wire.send(&datagram(TAG + 1, next, &order.message));
        wire.send(&[7; 3]);
        wire.send(&datagram(0, 0, &[0; 16]));
        assert_eq!(wire.receive()[4..8], (next - 1).to_le_bytes(), "the repeat");
        assert_eq!(wire.receive()[..4], [0; 4], "the handshake");
        assert!(wire.is_silent(), "what no session sent came through");
        sequence = next;
        rounds += 1;
    }
    assert_eq!(wire.xdp.record(), None);
    let unjudged = Unjudged {
        strangers: 3 * rounds,
        repeats: rounds,
        lost: 0,
    };
    assert_eq!(wire.xdp.unjudged(), unjudged);
    let (found, expected) = (wire.xdp.counters(), software.counters());
    assert_eq!(found.received, u64::from(sequence - 1));
    assert_eq!(
        (
            found.received,
            found.reasons[1],
            found.reasons[4],
            found.reasons[5],
            found.reasons[6]
        ),
        (
            expected.received,
            expected.reasons[1],
            expected.reasons[4],
            expected.reasons[5],
            expected.reasons[6]
        )
    );
    assert!(found.passed > 500 && found.refused > 5_000, "{found:?}");
    println!(
        "{hook:?}: {} received, {} passed, {} refused",
        found.received, found.passed, found.refused
    );
}

#[test]
#[ignore = "needs root"]
fn orders_over_a_wire_are_judged_as_software_does_in_native_mode() {
    orders_over_a_wire(Hook::Native);
}

#[test]
#[ignore = "needs root"]
fn orders_over_a_wire_are_judged_as_software_does_in_generic_mode() {
    orders_over_a_wire(Hook::Generic);
}

/// With each swap an instrument's and a session's limits turn over together; no order finds one of each.
#[test]
#[ignore = "needs root"]
fn limits_change_as_one_while_orders_come() {
    let Some(mut wire) = Wire::new(Hook::Native) else {
        return;
    };
    let mut order = any_order();
    order.message[12..16].copy_from_slice(&7_u32.to_le_bytes());
    order.message[36..38].copy_from_slice(&SESSION.0.to_le_bytes());
    let instrument = InstrumentId(u32::from_le_bytes(order.message[8..12].try_into().expect("four bytes")));
    let client = wire.client.try_clone().expect("a socket");
    let done = AtomicBool::new(false);
    let (mut judged, mut seen) = (0_u32, Counters::default());
    wire.xdp.set_control(OPEN).expect("open");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sequence = 0;
            while !done.load(Ordering::Relaxed) {
                sequence += 1;
                client
                    .send_to(&datagram(TAG, sequence, &order.message), GATEWAY)
                    .expect("sent");
            }
        });
        let mut generation = 0;
        while generation < 1_000 || judged < 10_000 {
            let is_odd = generation % 2 == 0;
            let limits = SymbolLimits {
                route: if is_odd { 1 } else { 2 },
                ..wide(if is_odd { 5 } else { 10 })
            };
            let session = if is_odd { None } else { Some(SessionLimits::UNLIMITED) };
            wire.xdp.set_symbol(instrument, Some(limits)).expect("a place");
            wire.xdp.set_session(SESSION, session).expect("a place");
            generation = wire.xdp.commit().expect("confirmed");
            while let Some(record) = wire.xdp.record() {
                let verdict = record.verdict;
                let expected = match verdict.generation.get() {
                    0 => (Reasons::SESSION.0 | Reasons::SYMBOL.0, 0),
                    odd if odd % 2 == 1 => (Reasons::SESSION.0 | Reasons::QTY.0, 1),
                    _ => (0, 2),
                };
                assert_eq!((verdict.reasons.get(), verdict.route), expected);
                judged += 1;
                seen.refused += u64::from(expected.0 != 0);
                seen.passed += u64::from(expected.0 == 0);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(seen.refused > 100 && seen.passed > 100, "{seen:?}");
}

#[test]
#[ignore = "needs root"]
fn an_interface_that_is_gone_is_a_fault_and_closes() {
    let Some(mut wire) = Wire::new(Hook::Generic) else {
        return;
    };
    wire.xdp.set_control(OPEN).expect("open");
    assert_eq!(wire.xdp.health(), Ok(()));
    ip(&["link", "del", "tgv1"]);
    assert_eq!(wire.xdp.health(), Err(Fault::Detached));
    assert_eq!(wire.xdp.set_control(OPEN), Err(Fault::Detached));
}

#[test]
#[ignore = "needs root"]
fn another_program_is_not_put_in_the_place_of_one_that_is_there() {
    let Some(wire) = Wire::new(Hook::Native) else { return };
    assert!(xdp().attach("tgv1", Hook::Native).is_err());
    assert!(has_program());
    drop(wire.xdp);
    assert!(!has_program());
}

fn has_program() -> bool {
    ip(&["link", "show", "dev", "tgv1"]).contains("xdp")
}

/// Child of the test below.
#[test]
#[ignore = "child of another test"]
fn holds_a_program_until_it_is_killed() {
    if std::env::var_os("PREFILTER_HOLD").is_none() {
        return;
    }
    let mut xdp = xdp();
    xdp.attach("tgv1", Hook::Native).expect("attached");
    println!("attached");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "needs root"]
fn a_process_that_is_killed_leaves_no_program() {
    let Some(namespaces) = Namespaces::new(1) else { return };
    namespaces.in_far(|| {
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "xdp::holds_a_program_until_it_is_killed",
            ])
            .env("PREFILTER_HOLD", "1")
            .stdout(Stdio::null())
            .spawn()
            .expect("a child");
        for _ in 0..1_000 {
            if has_program() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(has_program());
        child.kill().expect("killed");
        child.wait().expect("gone");
        for _ in 0..1_000 {
            if !has_program() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!has_program());
    });
}

/// The figure of docs/prefilter.md; it decides nothing.
#[test]
#[ignore = "needs root"]
fn the_cost_of_a_verdict_is_told() {
    let slot = any_order();
    let mut least = u32::MAX;
    for _ in 0..10 {
        let mut xdp = xdp();
        open_for(&mut xdp, &slot, SessionLimits::UNLIMITED);
        least = least.min(xdp.time(&slot, 10_000).expect("a trial"));
        assert_eq!(xdp.counters().passed, 10_000);
    }
    println!("an order that passes: {least} ns");
}
