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
    for name in ROWS {
        let rows = findings.iter().filter(|finding| finding["name"] == name).count();
        assert_eq!(rows, 1, "{name}");
    }
    // Each card that there is has all of its rows.
    let names = findings.iter().filter_map(|finding| finding["name"].as_str());
    let of_cards = names.filter_map(|name| name.split_once('.')).collect::<Vec<_>>();
    for (card, _) in &of_cards {
        for row in ROWS_OF_A_CARD {
            let rows = of_cards.iter().filter(|found| **found == (*card, row)).count();
            assert_eq!(rows, 1, "{card}.{row}");
        }
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

/// What of a host costs latency.
const ROWS: [&str; 29] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "mitigations",
    "hz",
    "preemption",
    "sched_autogroup",
    "rt_throttling",
    "clocksource",
    "governor",
    "c_state_exit_us",
    "smt",
    "transparent_hugepages",
    "numa_balancing",
    "numa_nodes",
    "steal",
    "irqs_on_isolated_cpus",
    "irqbalance",
    "tcp_congestion_control",
    "tcp_rto_min_us",
    "tcp_slow_start_after_idle",
    "tcp_autocorking",
    "busy_read",
    "busy_poll",
    "rmem_max",
    "wmem_max",
    "memlock_bytes",
    "open_files",
    "os_jitter",
];

/// What of a network card does.
const ROWS_OF_A_CARD: [&str; 12] = [
    "rx_usecs",
    "adaptive_rx",
    "gro",
    "lro",
    "pause",
    "rx_ring",
    "rx_queues",
    "napi_defer_hard_irqs",
    "gro_flush_timeout",
    "numa_node",
    "xdp",
    "hardware_stamps",
];
