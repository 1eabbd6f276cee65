//! Gateway and exchange with the venue link over RoCEv2 by RDMA devices: whatever is killed comes back with nothing lost and
//! nothing doubled. What `tickgate lat` measures between two of them. `.ci/extended rocev2` makes the devices, in a guest, and
//! loses packets between them.

use crate::lat::{Listener, json};
use crate::market::Market;
use crate::processes::{ORDERS_A_PHASE, Scene, Victim, kill_over};
use crate::trader::Trader;
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

/// The same, whose ends meet by rdma_cm, at the devices' addresses.
fn market_by_rdma_cm() -> Market {
    let market = market();
    let venue = market.venue(0);
    for (file, key) in [("gateway.toml", "peer"), ("exchange.toml", "listen")] {
        let at = |ip: &str| format!("{key} = \"{ip}:{}\"", venue.port());
        market.change(file, &at("127.0.0.1"), &at("10.9.0.2"));
        market.change(file, ", device", ", meeting = \"rdma_cm\", device");
    }
    market
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn a_gateway_that_is_killed_comes_back_with_every_order_once_by_rdma_cm() {
    kill_over(market_by_rdma_cm(), Victim::Gateway);
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn an_exchange_that_is_killed_comes_back_with_every_order_once_by_rdma_cm() {
    kill_over(market_by_rdma_cm(), Victim::Exchange);
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn a_gateway_whose_device_is_taken_away_has_every_order_once_when_there_is_one_again() {
    take_away(Victim::Gateway, "rxe0", "v0");
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn an_exchange_whose_device_is_taken_away_has_every_order_once_when_there_is_one_again() {
    take_away(Victim::Exchange, "rxe1", "v1");
}

/// Takes away the device of one in mid-flow, and brings it back.
fn take_away(whose: Victim, device: &str, interface: &str) {
    let market = market();
    let taker = Trader::new("taker", 2, market.native[0]);
    let mut scene = Scene::new(market, taker);
    scene.begin();
    scene.send(ORDERS_A_PHASE / 2);
    // It is gone once nobody has it open.
    rdma(&format!("link delete {device}"));
    let owner = match whose {
        Victim::Gateway => &mut scene.gateway,
        _ => &mut scene.exchange,
    };
    owner.wait_for(&format!("RDMA device {device} is gone"));
    scene.gateway.wait_for("venue link is down");
    scene.send(ORDERS_A_PHASE / 2);
    rdma(&format!("link add {device} type rxe netdev {interface}"));
    scene.gateway.wait_for_times("venue link is up", 2);
    let traded_before = scene.traded();
    scene.trade(ORDERS_A_PHASE);
    // Neither has forgotten what it knew: to the traders it is as if the exchange had been away.
    scene.end(Victim::Exchange, traded_before);
}

fn rdma(arguments: &str) {
    let status = Command::new("rdma")
        .args(arguments.split(' '))
        .status()
        .expect("it is there");
    assert!(status.success(), "rdma {arguments}");
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
            let known = counted(name, counter);
            assert_eq!(port["counters"][counter]["total"], known, "{name}: {counter}");
        }
        assert!(port["counters"]["np_cnp_sent"].is_null(), "rxe counts none: {last}");
    }
}

#[test]
#[ignore = "wants the RDMA devices of `.ci/extended rocev2`"]
fn lat_measures_every_operation_between_two_devices_and_loses_nothing() {
    let listener = Listener::at("10.9.0.2:0", &["--device", "rxe1"]);
    let near = ["--connect", &listener.address, "--device", "rxe0", "--seconds", "2"];
    for (link, more) in [
        ("roce", &[][..]),
        ("roce-send", &[]),
        ("roce-read", &[]),
        ("roce", &["--rate", "100"]),
        ("roce", &["--one-way"]),
        ("roce-send", &["--one-way"]),
    ] {
        // Of a stream on a wire that loses, the last messages may still be under way when nobody waits for them any more.
        let loses = std::env::var("LOST").is_ok_and(|percent| percent != "0");
        if loses && more == ["--one-way"] {
            continue;
        }
        let before = ["rxe0", "rxe1"].map(|device| counted(device, "sent_pkts"));
        let rung = json(&[&near[..], &["--link", link], more].concat());
        let after = ["rxe0", "rxe1"].map(|device| counted(device, "sent_pkts"));
        let sent = rung["sent"].as_u64().expect("a number");
        assert_eq!(
            (&rung["lost"], &rung["failure"], &rung["partial"]),
            (&0.into(), &serde_json::Value::Null, &false.into()),
            "{link} {more:?}: {rung}"
        );
        assert!(sent > 0, "{link} {more:?}: {rung}");
        // Each is a packet at least of the device of this end, and draws one of the other's: an answer, or an
        // acknowledgement, of which one may cover many where nobody answers.
        assert!(
            after[0] - before[0] >= sent,
            "{link} {more:?}: {before:?} {after:?} {rung}"
        );
        let is_answered = after[1] - before[1] >= sent || more == ["--one-way"] && after[1] > before[1];
        assert!(is_answered, "{link} {more:?}: {before:?} {after:?} {rung}");
    }
}

/// What a device has counted.
fn counted(device: &str, counter: &str) -> u64 {
    let path = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/{counter}");
    let text = std::fs::read_to_string(&path).expect(&path);
    text.trim().parse().expect("a number")
}
