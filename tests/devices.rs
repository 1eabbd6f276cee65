//! Gateway and exchange with the venue link over RoCEv2 by RDMA devices: whatever is killed comes back with nothing lost and
//! nothing doubled. `.ci/extended rocev2` makes the devices, in a guest, and loses packets between them.

use crate::market::Market;
use crate::processes::{Victim, kill_over};
use std::net::IpAddr;
use std::process::Command;

fn market() -> Market {
    let device = |name, last| (name, IpAddr::from([10, 9, 0, last]));
    let market = Market::on_devices([device("rxe0", 1), device("rxe1", 2)]);
    // rxe's completion queues hold no more: its max_cqe is 32,767.
    market.change("exchange.toml", "window_messages = 16_384", "window_messages = 8_192");
    for file in ["gateway.toml", "exchange.toml"] {
        // The guest's processors are few, and slow.
        market.change(file, "dead_after_ms = 500", "dead_after_ms = 2_000");
    }
    market
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn a_gateway_that_is_killed_comes_back_with_every_order_once_over_rdma_devices() {
    kill_over(market(), Victim::Gateway);
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn an_exchange_that_is_killed_comes_back_with_every_order_once_over_rdma_devices() {
    kill_over(market(), Victim::Exchange);
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn the_monitor_shows_what_a_device_counts() {
    let output = Command::new(env!("CARGO_BIN_EXE_tickgate"))
        .args(["top", "--rdma", "--json", "--interval", "0.2", "--count", "2"])
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let last = text.lines().last().expect("an interval");
    let page: serde_json::Value = serde_json::from_str(last).expect("JSON");
    let ports = page["ports"].as_array().expect("ports");
    assert_eq!(ports.len(), 3, "{last}");
    for (port, name) in ports.iter().zip(["rxe0", "rxe1", "rxe2"]) {
        assert_eq!(port["device"], name);
        for counter in ["sent_pkts", "rcvd_pkts", "completer_retry_err", "rdma_sends"] {
            let path = format!("/sys/class/infiniband/{name}/ports/1/hw_counters/{counter}");
            let known: u64 = std::fs::read_to_string(&path)
                .expect(&path)
                .trim()
                .parse()
                .expect("a number");
            assert_eq!(port["counters"][counter]["total"], known, "{path}");
        }
        assert!(port["counters"]["np_cnp_sent"].is_null(), "rxe counts none: {last}");
    }
}
