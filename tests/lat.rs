//! `tickgate lat`: both ends here or in two processes, every mode, as a program reads it.

use crate::market::PATIENCE;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// The far end in a process of its own; it is killed when the test ends, however it ends.
pub(crate) struct Listener {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Listener {
    pub(crate) fn start() -> Self {
        Self::at("127.0.0.1:0", &[])
    }

    /// At this address, with more arguments.
    pub(crate) fn at(address: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tickgate"))
            .args(["lat", "--listen", address, "--idle", "backoff"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let mut printed = BufReader::new(child.stdout.take().expect("it is piped"));
        printed.read_line(&mut line).expect("a line");
        let address = line
            .strip_prefix("listening on ")
            .and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // What it prints later nobody reads, and the pipe stays open.
        std::mem::forget(printed);
        Self { child, address }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn lat(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickgate"));
    command.arg("lat").args(args);
    command.output().expect("the program starts")
}

pub(crate) fn json(args: &[&str]) -> Value {
    let output = with_time(&[args, &["--json", "--idle", "backoff"]].concat(), |args| {
        let output = lat(args);
        let said = [&output.stdout[..], &output.stderr].concat();
        (output, String::from_utf8_lossy(&said).into_owned())
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Runs it with twice the seconds, and again, as long as what it said is that nothing came about in them: on a busy machine
/// an end may not have its turn for long.
pub(crate) fn with_time<T>(args: &[&str], run: impl Fn(&[&str]) -> (T, String)) -> T {
    let place = 1 + args.iter().position(|&arg| arg == "--seconds").expect("seconds");
    let mut seconds = args[place].parse::<f64>().expect("a number");
    loop {
        let text = seconds.to_string();
        let mut args = args.to_vec();
        args[place] = &text;
        let (result, said) = run(&args);
        let is_too_short = TOO_SHORT.iter().any(|why| said.contains(why));
        if !is_too_short || seconds > PATIENCE.as_secs_f64() {
            return result;
        }
        seconds *= 2.0;
    }
}

/// What a run says that had not the time for one message.
const TOO_SHORT: [&str; 2] = ["messages none arrived", "the time was over before one message was sent"];

/// The links of the ladder that can be had over loopback, in its order.
const HERE: [&str; 8] = [
    "tcp-untuned",
    "tcp-bare",
    "tcp",
    "udp",
    "ltp",
    "roce",
    "roce-send",
    "roce-read",
];

/// The figures that every run has; a percentile may be missing where there are few samples.
fn check(rung: &Value, mode: &str) {
    for text in ["link", "what", "place", "kernel", "version"] {
        assert!(rung[text].is_string(), "{text} in {rung}");
    }
    assert_eq!(rung["mode"], mode);
    assert_eq!(rung["size"], 64);
    assert!(rung["count"].as_u64() > Some(0), "{rung}");
    assert!(rung["max_ns"].as_u64() >= rung["p50_ns"].as_u64(), "{rung}");
    assert!(
        rung["retransmits_spurious"].as_u64() <= rung["retransmits"].as_u64(),
        "{rung}"
    );
    assert_eq!((&rung["partial"], &rung["failure"]), (&false.into(), &Value::Null));
    assert_eq!(rung["rounds_whole"], rung["rounds"]);
    for number in ["retransmits", "sent", "lost", "messages_per_second"] {
        assert!(rung[number].is_number(), "{number} in {rung}");
    }
    let is_roce = rung["link"].as_str().is_some_and(|link| link.starts_with("roce"));
    assert_eq!(
        rung["retransmits_spurious"].is_null(),
        is_roce,
        "RoCEv2 does not tell: {rung}"
    );
    for percentile in ["p50_ns", "p99_ns", "p999_ns"] {
        assert!(rung.get(percentile).is_some(), "{percentile} in {rung}");
    }
}

#[test]
fn a_run_that_had_no_time_is_given_more() {
    let run = |args: &[&str]| {
        let [_, seconds] = args else { panic!("{args:?}") };
        let is_short = *seconds != "0.4" && *seconds != "0.8";
        let said = if is_short {
            "udp: of 3 messages none arrived"
        } else {
            ""
        };
        ((*seconds).to_owned(), said.to_owned())
    };
    assert_eq!(with_time(&["--seconds", "0.1"], run), "0.4");
    assert_eq!(with_time(&["--seconds", "0.8"], run), "0.8");
}

#[test]
fn each_mode_gives_its_figures() {
    for link in HERE {
        check(&json(&["--link", link, "--seconds", "0.1"]), "ping-pong");
    }
    let open = json(&["--link", "ltp", "--seconds", "0.2", "--rate", "500"]);
    check(&open, "open-loop");
    assert_eq!(open["rate_offered"], 500);
    let planned = open["seconds"].as_f64().map(|seconds| seconds * 500.0);
    assert_eq!(open["planned"].as_f64(), planned);
    let stream = json(&["--link", "ltp", "--seconds", "0.1", "--one-way", "--cpu", "0"]);
    check(&stream, "one-way");
    assert_eq!(stream["lost"], 0);
    let stream = json(&["--link", "roce", "--seconds", "0.1", "--one-way", "--cpu", "0"]);
    check(&stream, "one-way");
    assert_eq!(stream["lost"], 0);
    let reads = json(&["--link", "roce-read", "--seconds", "0.2", "--rate", "500"]);
    check(&reads, "open-loop");
}

#[test]
fn the_ladder_names_every_link_and_holds_it_against_the_floor() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("lat.hlog");
    let log_name = log.to_str().expect("a name");
    let ladder = json(&["--all", "--seconds", "0.3", "--histogram", log_name]);
    let rungs = ladder["rungs"].as_array().expect("rungs");
    let skipped = ladder["skipped"].as_array().expect("skipped");
    assert!(skipped.iter().all(|rung| rung["why"].is_string()));
    let names = rungs.iter().chain(skipped).map(|rung| rung["link"].as_str());
    let names = names.map(|name| name.expect("a name")).collect::<Vec<_>>();
    assert_eq!(names, [&HERE[..], &["afxdp-bare", "afxdp"]].concat());
    for rung in rungs {
        check(rung, "ping-pong");
        assert!(rung["p50_ns"].is_null() || rung["ratio_to_floor"].is_number(), "{rung}");
    }
    let log = std::fs::read_to_string(log).expect("the log");
    assert!(log.contains("Tag=ltp,"), "{log}");
}

#[test]
fn a_link_tells_of_the_options_that_it_has_and_of_no_others() {
    let extra = [
        "--redundancy",
        "twice",
        "--header",
        "compact",
        "--key",
        "--rto-min",
        "default",
    ];
    let ladder = json(&[&["--all", "--seconds", "0.3"], &extra[..]].concat());
    for rung in ladder["rungs"].as_array().expect("rungs") {
        let of_ltp = [&rung["redundancy"], &rung["header"], &rung["key"]];
        match rung["link"].as_str().expect("a name") {
            "ltp" => {
                assert_eq!(of_ltp, [&Value::from("twice"), &"compact".into(), &true.into()]);
                // A copy comes anyway: nobody can tell.
                assert_eq!(rung["retransmits_spurious"], Value::Null);
            }
            _ => assert_eq!(of_ltp, [&Value::Null; 3], "{rung}"),
        }
        match rung["link"].as_str().expect("a name") {
            "tcp" | "tcp-bare" => assert_eq!(rung["rto_min"], "default"),
            _ => assert_eq!(rung["rto_min"], Value::Null, "{rung}"),
        }
        assert_eq!(rung["idle"], "backoff");
    }
    let text = with_time(
        &[&["--all", "--seconds", "0.3", "--idle", "backoff"], &extra[..]].concat(),
        |args| {
            let text = String::from_utf8(lat(args).stdout).expect("text");
            (text.clone(), text)
        },
    );
    let told = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        (told("each datagram twice"), told("headers of 8 bytes")),
        (1, 1),
        "{text}"
    );
    assert_eq!((told("authenticated"), told("timeout of the kernel")), (1, 2), "{text}");
}

#[test]
fn two_processes_measure_between_them_and_the_listening_one_serves_again() {
    let listener = Listener::start();
    for mode in ["ping-pong", "one-way"] {
        let one_way = ["--one-way"];
        let extra = if mode == "one-way" { &one_way[..] } else { &[] };
        let ladder = json(&[&["--all", "--connect", &listener.address, "--seconds", "0.3"], extra].concat());
        // Loopback is no Ethernet.
        for rung in ladder["skipped"].as_array().expect("skipped") {
            assert!(
                rung["link"].as_str().is_some_and(|link| link.starts_with("afxdp")),
                "{rung}"
            );
        }
        let rungs = ladder["rungs"].as_array().expect("rungs");
        // Of a read nothing goes one way.
        let here = HERE.iter().filter(|&&link| mode == "ping-pong" || link != "roce-read");
        let here = here.collect::<Vec<_>>();
        assert_eq!(rungs.iter().map(|rung| &rung["link"]).collect::<Vec<_>>(), here);
        for rung in rungs {
            check(rung, mode);
            assert_eq!(
                (&rung["idle"], &rung["far_idle"]),
                (&"backoff".into(), &"backoff".into())
            );
            // Both on one kernel: also a stream has its times.
            assert!(rung["max_ns"].is_u64(), "{rung}");
        }
    }
}

#[test]
fn a_run_that_measures_nothing_fails() {
    assert_eq!(
        lat(&["--all", "--cpu", "1023", "--seconds", "0.1"]).status.code(),
        Some(1)
    );
}

#[test]
fn a_time_that_is_over_at_once_has_one_round_trip() {
    let short = json(&["--link", "ltp", "--seconds", "0.000000001"]);
    check(&short, "ping-pong");
    assert_eq!((&short["sent"], &short["count"]), (&1.into(), &1.into()));
}

#[test]
fn wrong_use_is_told_apart_from_failure() {
    for args in [
        &[][..],
        &["--link", "carrier-pigeon"],
        &["--all", "--size", "7"],
        &["--all", "--seconds", "0"],
        &["--listen", "127.0.0.1:0", "--size", "64"],
        &["--all", "--size", "1025"],
        &["--all", "--seconds", "86401"],
        &["--all", "--rate", "0"],
        &["--all", "--rate", "10000001"],
        &["--all", "--rate", "1", "--seconds", "1"],
        &["--link", "udp", "--key"],
        &["--link", "tcp", "--redundancy", "twice"],
        &["--link", "afxdp-bare", "--header", "compact"],
        &["--link", "tcp-untuned", "--rto-min", "lowest"],
        &["--link", "ltp", "--rto-min", "default"],
        &["--all", "--connect", "localhost:7300"],
        &["--all", "--cpu", "0,1,2"],
        &["--all", "--connect", "127.0.0.1:1", "--cpu", "0,1"],
        &["--listen", "127.0.0.1:0", "--cpu", "0,1"],
    ] {
        assert_eq!(lat(args).status.code(), Some(2), "{args:?}");
    }
    let failed = lat(&["--link", "udp", "--cpu", "1023"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("1023"));
}
