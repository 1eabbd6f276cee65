//! `tickgate tune --check`, on whatever host this is: its form, and that its status says what it found.

use serde_json::Value;
use std::process::Command;

#[test]
fn what_costs_latency_is_listed_and_the_status_says_whether_something_does() {
    let tune = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickgate"));
        command.arg("tune").args(args).output().expect("the program starts")
    };
    let output = tune(&["--check", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    for name in [
        "isolcpus",
        "clocksource",
        "smt",
        "tcp_rto_min_us",
        "memlock_bytes",
        "steal",
        "os_jitter",
    ] {
        assert!(findings.iter().any(|finding| finding["name"] == name), "{name}");
    }
    for finding in findings {
        for key in ["wanted", "why", "fix", "verdict"] {
            assert!(
                finding[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key} of {finding}"
            );
        }
        let is_unknown = finding["verdict"] == "unknown";
        assert_eq!(finding["current"].is_null(), is_unknown, "{finding}");
    }
    let misses = findings.iter().filter(|finding| finding["verdict"] == "miss").count();
    assert_eq!(report["misses"], misses);
    assert_eq!(output.status.code(), Some(i32::from(misses > 0)));
    assert_eq!(
        tune(&[]).status.code(),
        Some(2),
        "it does nothing that it was not asked for"
    );
}
