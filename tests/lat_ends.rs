//! `tickgate lat` between two processes when one of them is stopped, silent or gone, or sends what it should not.

use crate::lat::{Listener, json};
use crate::market::PATIENCE;
use serde_json::{Value, json as value};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A plan that every listening end takes.
fn plan() -> Value {
    value!({
        "version": 3, "link": "udp", "mode": "ping-pong", "size": 64, "span_ns": 1_000_000_000_u64,
        "rto_min": null, "ltp": null, "boot_id": "", "near_port": 9,
    })
}

/// The same with one thing changed.
fn plan_with(key: &str, value: Value) -> Value {
    let mut plan = plan();
    plan[key] = value;
    plan
}

/// Sends a line, and gives all that the listening end answers.
fn answer_to(listener: &Listener, line: &[u8]) -> String {
    let mut stream = TcpStream::connect(&listener.address).expect("it listens");
    // It may have heard enough before it has heard all.
    drop(stream.write_all(line));
    drop(stream.shutdown(Shutdown::Write));
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

/// Waits for the end; a program that does not come to one is killed.
fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it was started") {
            return status;
        }
        if start.elapsed() > PATIENCE {
            drop(child.kill());
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_plan_beyond_the_limits_is_refused_and_the_listener_serves_on() {
    let listener = Listener::start();
    let ltp = value!({"redundancy": "off", "header": "full", "has_key": false});
    let each = |interval: u64| value!({"open-loop": {"interval_ns": interval}});
    let plans = [
        (plan_with("version", value!(1)), "version 1"),
        (plan_with("size", value!(7)), "bytes a message"),
        (plan_with("span_ns", value!(0)), "of measuring"),
        (plan_with("span_ns", value!(86_400_000_000_001_u64)), "of measuring"),
        (plan_with("mode", each(0)), "a rate from"),
        (plan_with("mode", each(1_000_000_001)), "a rate from"),
        (
            {
                let mut plan = plan_with("span_ns", value!(999_999_999));
                plan["mode"] = each(1_000_000_000);
                plan
            },
            "not one is planned",
        ),
        (
            plan_with("mode", value!({"one-way": {"interval_ns": 99}})),
            "a rate from",
        ),
        (plan_with("ltp", ltp), "options that are not of udp"),
        (plan_with("rto_min", value!("lowest")), "options that are not of udp"),
        (plan_with("link", value!("ltp")), "options that are not of ltp"),
        (plan_with("link", value!("tcp")), "options that are not of tcp"),
        (plan_with("boot_id", value!("x".repeat(37))), "boot id"),
        // A mode has its interval or none; there is no such plan.
        (plan_with("mode", value!("open-loop")), "of this version"),
        (
            plan_with("mode", value!({"ping-pong": {"interval_ns": 1_000}})),
            "of this version",
        ),
        (plan_with("link", value!("carrier-pigeon")), "of this version"),
        (plan_with("size", value!(1_u64 << 60)), "bytes a message"),
    ];
    let mut taken = Vec::new();
    for (plan, reason) in plans {
        let answer = answer_to(&listener, format!("{plan}\n").as_bytes());
        if !(answer.contains("Refused") && answer.contains(reason)) {
            taken.push(format!("{reason}: {answer}"));
        }
    }
    assert!(taken.is_empty(), "{taken:#?}");
    for (line, reason) in [
        (b"{}\n".to_vec(), "of this version"),
        (b"\xff\n".to_vec(), "of this version"),
        (vec![b'x'; 1 << 20], "longer than"),
    ] {
        let answer = answer_to(&listener, &line);
        assert!(answer.contains("Refused") && answer.contains(reason), "{answer}");
    }
    // What it says of a long line is short.
    let answer = answer_to(&listener, format!("\"{}\"\n", "x".repeat(100_000)).as_bytes());
    assert!(
        answer.contains("of this version") && answer.len() < 1_000,
        "{}",
        answer.len()
    );
    json(&["--link", "udp", "--connect", &listener.address, "--seconds", "0.1"]);
}

#[test]
fn whoever_has_no_plan_in_time_loses_its_turn() {
    let listener = Listener::start();
    let mut silent = TcpStream::connect(&listener.address).expect("it listens");
    // Half a plan is none, and more of the half gains no time.
    silent.write_all(b"{\"version\":").expect("it reads");
    json(&["--link", "udp", "--connect", &listener.address, "--seconds", "0.1"]);
    let mut answer = String::new();
    silent.read_to_string(&mut answer).expect("an answer");
    assert!(
        answer.contains("Refused") && answer.contains("nothing from it for 10.0 s"),
        "{answer}"
    );
}

#[test]
fn a_listener_obeys_signals_before_and_within_a_turn() {
    let mut idle = Listener::start();
    signal(&idle.child, "-TERM");
    assert!(wait(&mut idle.child).success());

    let mut waiting = Listener::start();
    let mut stream = TcpStream::connect(&waiting.address).expect("it listens");
    signal(&waiting.child, "-INT");
    assert!(wait(&mut waiting.child).success());
    let mut answer = String::new();
    // One that had not come to this connection yet says nothing.
    drop(stream.read_to_string(&mut answer));
    assert!(answer.is_empty() || answer.contains("interrupted"), "{answer}");

    let mut serving = Listener::start();
    let stream = TcpStream::connect(&serving.address).expect("it listens");
    let (mut reader, mut writer) = (BufReader::new(&stream), &stream);
    writeln!(writer, "{}", plan_with("span_ns", value!(86_400_000_000_000_u64))).expect("it reads");
    let mut ready = String::new();
    reader.read_line(&mut ready).expect("an answer");
    assert!(ready.contains("Ready"), "{ready}");
    signal(&serving.child, "-TERM");
    assert!(wait(&mut serving.child).success());
}

/// The near end in a process of its own.
fn near(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tickgate"))
        .args(["lat", "--json", "--idle", "backoff"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn ended(mut child: Child) -> (Option<i32>, Value, String) {
    wait(&mut child);
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it has ended");
    let figures = serde_json::from_slice(&stdout).unwrap_or(Value::Null);
    (status.code(), figures, String::from_utf8_lossy(&stderr).into_owned())
}

/// Interrupts a run of an hour when it has something to show. It cannot be seen from outside when that is.
fn interrupted(args: &[&str], name: &str) -> (Value, String) {
    let mut patience = Duration::from_millis(500);
    loop {
        let child = near(args);
        thread::sleep(patience);
        signal(&child, name);
        let (status, figures, errors) = ended(child);
        assert!(status == Some(1) || status.is_none(), "{errors}");
        if !figures.is_null() {
            return (figures, errors);
        }
        assert!(patience < PATIENCE, "{errors}");
        patience *= 2;
    }
}

#[test]
fn an_interrupted_run_keeps_the_figures_that_it_has_and_says_that_they_are_partial() {
    let listener = Listener::start();
    let both = [&[][..], &["--connect", &listener.address]];
    let modes = [
        &["--link", "ltp"][..],
        &["--link", "udp", "--rate", "1000"],
        &["--link", "tcp", "--one-way"],
    ];
    for (far, mode, name) in [
        (0, 0, "-INT"),
        (1, 0, "-TERM"),
        (1, 1, "-INT"),
        (1, 2, "-TERM"),
        (0, 2, "-INT"),
    ] {
        let args = [&["--seconds", "3600"], modes[mode], both[far]].concat();
        let (rung, errors) = interrupted(&args, name);
        assert_eq!(
            (&rung["partial"], &rung["rounds_whole"]),
            (&true.into(), &0.into()),
            "{rung}"
        );
        assert!(
            rung["failure"].as_str().is_some_and(|why| why.contains("interrupted")),
            "{rung}"
        );
        assert!(
            rung["count"].as_u64() > Some(0) && rung["max_ns"].is_u64(),
            "{args:?}: {rung}"
        );
        // Nobody knows what became of what was under way.
        assert_eq!((&rung["lost"], &rung["sent"]), (&0.into(), &rung["count"]));
        assert!(errors.contains("interrupted"), "{errors}");
    }
    // It was left in good order each time.
    json(&["--link", "udp", "--connect", &listener.address, "--seconds", "0.1"]);
}

/// What a far end of these tests does in one round of the link that it serves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Hangs up in the middle, and goes on echoing: only the missing connection tells.
    HangsUp,
    /// Never says what it counted.
    IsSilent,
    /// Fails.
    Fails,
}

/// A far end that echoes UDP, refuses every other link, and behaves like that in a round of it.
fn far_end(listener: &TcpListener, fault: Fault, in_round: u64) {
    let (stream, _) = listener.accept().expect("a near end");
    let (mut reader, mut writer) = (BufReader::new(&stream), &stream);
    let mut rounds = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        let plan: Value = serde_json::from_str(&line).expect("a plan");
        line.clear();
        if plan["link"] != "udp" {
            writeln!(writer, "{}", value!({"Refused": "not here"})).expect("it reads");
            continue;
        }
        rounds += 1;
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let near = plan["near_port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .expect("a port");
        socket.connect(("127.0.0.1", near)).expect("it is there");
        socket
            .set_read_timeout(Some(Duration::from_millis(10)))
            .expect("a timeout");
        let address = socket.local_addr().expect("an address");
        let ready = value!({"Ready": {"address": {"first": address, "second": address}, "cpu": 0, "idle": "spin"}});
        writeln!(writer, "{ready}").expect("it reads");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                echo(&socket, &is_over, || {
                    if rounds == in_round && fault == Fault::HangsUp {
                        drop(stream.shutdown(Shutdown::Both));
                    }
                })
            });
            // "done", or the end.
            drop(reader.read_line(&mut line));
            if rounds == in_round && fault == Fault::HangsUp {
                // The near end is there until it has printed.
                drop(stream.set_read_timeout(Some(PATIENCE)));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        line.clear();
        let counts =
            value!({"received": 0, "span_ns": 0, "retransmits": 3, "retransmits_spurious": 1, "histogram": []});
        match (rounds == in_round, fault) {
            (true, Fault::HangsUp) => return,
            // Until the near end has had enough.
            (true, Fault::IsSilent) => {}
            (true, Fault::Fails) => writeln!(writer, "{}", value!({"Err": "it is broken"})).expect("it reads"),
            _ => writeln!(writer, "{}", value!({"Ok": counts})).expect("it reads"),
        }
    }
}

/// Sends back whatever comes; calls `then` once it has sent back more than the warm-up.
fn echo(socket: &UdpSocket, is_over: &AtomicBool, then: impl Fn()) {
    let mut message = [0; 2_048];
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut message) else {
            continue;
        };
        // The near end may be gone.
        drop(socket.send(&message[..length]));
        count += 1;
        if count == 1_500 {
            then();
        }
    }
}

#[test]
fn what_was_measured_is_printed_when_the_far_end_fails_in_the_middle() {
    for (fault, why, ends) in [
        (Fault::HangsUp, "the other end went away: it hung up", true),
        (
            Fault::IsSilent,
            "the other end went away: nothing from it for 10.0 s",
            true,
        ),
        (Fault::Fails, "the listening end: it is broken", false),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let far = thread::spawn(move || far_end(&listener, fault, 2));
        let (status, ladder, errors) = ended(near(&["--all", "--seconds", "3", "--connect", &address.to_string()]));
        far.join().expect("it does not panic");
        assert_eq!(status, Some(1), "{errors}");
        assert!(errors.contains(&format!("udp: round 2 of 3: {why}")), "{errors}");
        let [rung] = &ladder["rungs"].as_array().expect("rungs")[..] else {
            panic!("{ladder}");
        };
        assert_eq!((&rung["link"], &rung["partial"]), (&"udp".into(), &true.into()));
        assert_eq!((&rung["rounds_whole"], &rung["rounds"]), (&1.into(), &3.into()));
        assert!(rung["count"].as_u64() > Some(0), "{rung}");
        assert_eq!(
            (&rung["retransmits"], &rung["retransmits_spurious"]),
            (&3.into(), &1.into())
        );
        assert!(
            rung["failure"].as_str().is_some_and(|failure| failure.contains(why)),
            "{rung}"
        );
        let skipped = ladder["skipped"].as_array().expect("skipped");
        assert_eq!(skipped.len(), 9, "{ladder}");
        for rung in skipped {
            // Before it, or after it.
            let is_told =
                |why: &str| why.contains("not here") || (ends && why.starts_with("the run ended: udp: round 2"));
            assert!(rung["why"].as_str().is_some_and(is_told), "{rung}");
        }
    }
}

#[test]
fn a_far_end_that_goes_away_is_missed_at_once_though_the_link_is_silent_about_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let far = thread::spawn(move || far_end(&listener, Fault::HangsUp, 1));
    let (status, rung, errors) = ended(near(&["--link", "udp", "--seconds", "3600", "--connect", &address]));
    far.join().expect("it does not panic");
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("udp: the other end went away: it hung up"), "{errors}");
    assert_eq!(
        (&rung["partial"], &rung["rounds_whole"]),
        (&true.into(), &0.into()),
        "{rung}"
    );
    assert!(rung["count"].as_u64() > Some(0), "{rung}");
}
