//! What becomes of a subcommand whose output nobody reads: it ends or goes on as it would, with the same status.

use crate::lat::with_time;
use crate::market::{Market, PATIENCE};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A pipe that its reader has closed.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// As [`run`], with as much time as the machine needs where that is asked for.
fn run_in_time(folder: &Path, arguments: &[&str], output: impl Fn() -> Stdio) -> (Option<i32>, String) {
    if !arguments.contains(&"--seconds") {
        return run(folder, arguments, output());
    }
    with_time(arguments, |arguments| {
        let (status, errors) = run(folder, arguments, output());
        ((status, errors.clone()), errors)
    })
}

/// Runs it with this for standard output. Gives the status, and what it said on standard error.
fn run(folder: &Path, arguments: &[&str], output: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickgate"));
    command.args(arguments).current_dir(folder);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // One that does not ask for it has ended already.
    drop(child.stdin.take().expect("it is piped").write_all(b"secret\n"));
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

/// Subcommands that end by themselves; each prints something to standard output.
fn each() -> Vec<Vec<&'static str>> {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/feeds/sample/sample.itch.gz");
    let lat = ["lat", "--link", "udp", "--seconds", "0.05", "--idle", "backoff"];
    vec![
        lat.to_vec(),
        [&lat[..], &["--json"]].concat(),
        vec!["gateway", "-c", "gateway.toml", "--check"],
        vec!["exchange", "-c", "exchange.toml", "--check"],
        vec!["replay", sample],
        vec!["prefilter", "conform"],
        vec!["password", "trader"],
        vec!["lat", "--help"],
    ]
}

#[test]
fn a_pipe_that_nobody_reads_is_no_failure() {
    let market = Market::new(1, "ltp");
    for arguments in each() {
        let (status, errors) = run_in_time(&market.path(""), &arguments, closed);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // Its status is an answer, whoever reads the rest.
    for arguments in [&["tune", "--check"][..], &["tune", "--check", "--json"]] {
        let (status, errors) = run(&market.path(""), arguments, closed());
        assert!(
            matches!(status, Some(0 | 1)) && errors.is_empty(),
            "{arguments:?}: {errors}"
        );
    }
}

#[test]
fn a_full_disk_is_told_and_fails() {
    let market = Market::new(1, "ltp");
    for arguments in each().into_iter().filter(|arguments| !arguments.contains(&"--help")) {
        let full = || File::create("/dev/full").expect("a device of Linux").into();
        let (status, errors) = run_in_time(&market.path(""), &arguments, full);
        assert_eq!(status, Some(1), "{arguments:?}: {errors}");
        assert!(
            errors.starts_with("tickgate: writing to standard output: "),
            "{arguments:?}: {errors}"
        );
    }
}

#[test]
fn what_fails_fails_in_silence_where_nobody_reads_the_errors() {
    let ran = Command::new(env!("CARGO_BIN_EXE_tickgate"))
        .args(["lat", "--link", "udp", "--cpu", "1023"])
        .stdout(closed())
        .stderr(closed())
        .status();
    assert_eq!(ran.expect("the program starts").code(), Some(1));
}

#[test]
fn the_gateways_last_answer_is_the_status_of_ctl_whoever_reads_the_others() {
    let market = Market::new(1, "ltp");
    let config = format!("{}\n[control]\nsocket = \"control.sock\"\n", market.gateway_config());
    market.write("gateway.toml", &config);
    let gateway = UnixListener::bind(market.path("control.sock")).expect("a socket");
    for (last, expected) in [
        (r#"{"done":{"number":null}}"#, (Some(0), "")),
        (
            r#"{"refused":{"reason":"it is so"}}"#,
            (Some(1), "tickgate: the gateway refused: it is so\n"),
        ),
    ] {
        for form in [&[][..], &["--json"]] {
            let (status, errors) = thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = gateway.accept().expect("a connection");
                    let mut request = String::new();
                    BufReader::new(&stream).read_line(&mut request).expect("a request");
                    let killed = r#"{"killed":{"killed":true,"reduce_only":false}}"#;
                    let answers = format!("{killed}\n{killed}\n{last}\n");
                    stream.write_all(answers.as_bytes()).expect("it is read");
                });
                let ctl = ["ctl", "-c", "gateway.toml", "killed", "firm"];
                run(&market.path(""), &[&ctl, form].concat(), closed())
            });
            assert_eq!((status, errors.as_str()), expected, "{form:?}");
        }
    }
}

#[test]
fn a_gateway_runs_on_when_nobody_reads_what_it_says() {
    let market = Market::new(1, "ltp");
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_tickgate"))
        .args(["gateway", "-c", "gateway.toml"])
        .env("RUST_LOG", "info")
        .current_dir(market.path(""))
        .stdout(closed())
        .stderr(closed())
        .spawn()
        .expect("the program starts");
    let start = Instant::now();
    while TcpStream::connect(market.native[0]).is_err() {
        assert!(start.elapsed() < PATIENCE, "it does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    let stopped = Command::new("kill").arg(gateway.id().to_string()).status();
    assert!(stopped.expect("kill is there").success());
    assert_eq!(gateway.wait().expect("it ends").code(), Some(0));
}
