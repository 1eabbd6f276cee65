//! Counter trees as the kernel lays them out, of mlx5 and of rxe, read and judged. The names are written out here, apart from
//! those that the program knows.

use super::catalog::{self, Counter};
use super::health::{self, Health, Lossless, Severity};
use super::rates::{Rates, Reading};
use super::read::{self, Port};
use super::screen;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

const MLX5: [&str; 17] = [
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "out_of_sequence",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "duplicate_request",
    "out_of_buffer",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "req_cqe_error",
    "resp_cqe_error",
    "rx_icrc_encapsulated",
];

const RXE: [&str; 15] = [
    "sent_pkts",
    "rcvd_pkts",
    "duplicate_request",
    "out_of_seq_request",
    "rcvd_rnr_err",
    "send_rnr_err",
    "rcvd_seq_err",
    "ack_deferred",
    "retry_exceeded_err",
    "retry_rnr_exceeded_err",
    "completer_retry_err",
    "send_err",
    "link_downed",
    "rdma_sends",
    "rdma_recvs",
];

/// Of the interface of an mlx5 with PFC on priority 3 alone, as its driver names them; `rx_bytes` is none of ours.
fn interface_of_mlx5() -> Vec<String> {
    let mut names: Vec<String> = (0..8)
        .flat_map(|p| ["rx_prioN_discards", "rx_prioN_cong_discard", "rx_prioN_marked"].map(|name| (p, name)))
        .map(|(p, name)| name.replace('N', &p.to_string()))
        .collect();
    names.extend(
        [
            "rx_prio3_pause",
            "rx_prio3_pause_duration",
            "tx_prio3_pause",
            "tx_prio3_pause_duration",
            "tx_pause_storm_warning_events",
            "tx_pause_storm_error_events",
            "rx_discards_phy",
            "tx_discards_phy",
            "rx_bytes",
        ]
        .map(str::to_owned),
    );
    names
}

const SECOND: Duration = Duration::from_secs(1);

/// A host with devices that a test changes.
struct Host {
    root: tempfile::TempDir,
    /// What the driver of `eth0` counts.
    interface: BTreeMap<String, u64>,
    catalog: Vec<Counter>,
    rates: Rates,
}

impl Host {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            interface: BTreeMap::new(),
            catalog: catalog::all(),
            rates: Rates::default(),
        }
    }

    fn with_mlx5() -> Self {
        let mut host = Self::new();
        host.add("mlx5_0", &MLX5);
        host.write("mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n");
        host.interface = interface_of_mlx5().into_iter().map(|name| (name, 0)).collect();
        host
    }

    fn with_rxe() -> Self {
        let host = Self::new();
        host.add("rxe0", &RXE);
        host.write("rxe0/parent", "veth0\n");
        host
    }

    fn add(&self, device: &str, counters: &[&str]) {
        for name in counters {
            self.set(device, name, 0);
        }
    }

    fn set(&self, device: &str, counter: &str, value: u64) {
        self.write(
            &format!("{device}/ports/1/hw_counters/{counter}"),
            &format!("{value}\n"),
        );
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(read::DEVICES).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_dir_all(self.root.path().join(read::DEVICES).join(path)).unwrap();
    }

    fn read(&mut self) -> BTreeMap<Port, Reading> {
        let ask = |interface: &str| {
            let counted = self.interface.iter().filter(|_| interface == "eth0");
            counted.map(|(name, &value)| (name.clone(), value)).collect()
        };
        let sample = read::sample(self.root.path(), &self.catalog, ask);
        self.rates.next(&self.catalog, sample)
    }

    /// The only port there is.
    fn one(&mut self) -> Reading {
        let readings = self.read();
        assert_eq!(readings.len(), 1);
        readings.into_values().next().unwrap()
    }

    /// What is found when these counters rise, by one second.
    fn health(mut self, device: &str, rises: &[(&str, u64)]) -> Health {
        self.one();
        for &(name, rise) in rises {
            if self.interface.contains_key(name) {
                self.interface.insert(name.to_owned(), rise);
            } else {
                self.set(device, name, rise);
            }
        }
        health::judge(&self.one(), SECOND)
    }
}

fn found(health: &Health) -> Vec<(Severity, &str)> {
    let findings = health.findings.iter();
    findings
        .map(|finding| (finding.severity, finding.counter.as_str()))
        .collect()
}

#[test]
fn every_counter_of_both_drivers_is_read_and_none_that_is_not_ours() {
    let reading = Host::with_mlx5().one();
    let expected = MLX5.len() + interface_of_mlx5().len() - 1;
    assert_eq!(reading.values.len(), expected);
    assert_eq!(reading.interface.as_deref(), Some("eth0"));
    for name in MLX5 {
        assert!(reading.has(name), "{name}");
    }
    let reading = Host::with_rxe().one();
    assert_eq!(reading.values.len(), RXE.len());
    assert_eq!(reading.interface.as_deref(), Some("veth0"));
    let names = catalog::all();
    let mut unique: Vec<_> = names.iter().map(|counter| &counter.name).collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "each has its name to itself");
    assert_eq!(names.len(), MLX5.len() + RXE.len() - 1 + 8 * 7 + 4);
}

#[test]
fn a_counter_of_32_bits_goes_on_over_its_end_and_its_total_too() {
    let mut host = Host::with_mlx5();
    let end = u64::from(u32::MAX);
    host.set("mlx5_0", "out_of_sequence", end - 2);
    let first = host.one().values["out_of_sequence"];
    assert_eq!((first.total, first.rise), (end - 2, None), "nothing is known of before");
    host.set("mlx5_0", "out_of_sequence", 7);
    let wrapped = host.one().values["out_of_sequence"];
    assert_eq!((wrapped.total, wrapped.rise), (end + 8, Some(10)));
    host.set("mlx5_0", "out_of_sequence", 9);
    let next = host.one().values["out_of_sequence"];
    assert_eq!((next.total, next.rise), (end + 10, Some(2)));
    // A driver that is loaded anew begins at 0: no rise is known, and the total begins with it.
    host.set("mlx5_0", "out_of_sequence", 1);
    let reset = host.one().values["out_of_sequence"];
    assert_eq!((reset.total, reset.rise), (1, None));
}

#[test]
fn what_is_absent_is_neither_zero_nor_there() {
    let mut host = Host::with_rxe();
    host.write("rxe0/ports/1/hw_counters/send_err", "no number\n");
    let port = Port {
        device: "rxe0".to_owned(),
        port: 1,
    };
    host.read();
    let reading = host.one();
    let health = health::judge(&reading, SECOND);
    let json = screen::json(&port, &reading, &health, &host.catalog, SECOND);
    for absent in ["np_cnp_sent", "rx_prio3_pause", "out_of_buffer", "send_err"] {
        assert!(!reading.has(absent));
        assert!(json["counters"].as_object().unwrap().contains_key(absent));
        assert!(json["counters"][absent].is_null(), "{absent}");
    }
    assert_eq!(json["counters"]["rcvd_seq_err"]["total"], 0);
    assert_eq!(json["counters"]["rcvd_seq_err"]["per_second"], 0.0);
    assert_eq!(json["health"]["verdict"], "unknown");
    let text = screen::port(&port, &reading, &health, &host.catalog, SECOND);
    let row = |title: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(title))
            .expect(title);
        line.trim_start()
            .trim_start_matches(title)
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    for title in ["pause frames", "ECN marks", "CNPs", "out of buffer"] {
        assert_eq!(row(title), ["-", "-", "-"], "{title} in {text}");
    }
    assert!(row("0:").contains(&"rcvd_seq_err"), "{text}");
    let (_, absent) = text.split_once("  -:").expect("a list of what is absent");
    assert!(absent.split_whitespace().any(|name| name == "send_err"), "{text}");
}

#[test]
fn a_screen_shows_rates_totals_and_the_worst_first() {
    let mut host = Host::with_mlx5();
    host.one();
    host.set("mlx5_0", "rp_cnp_handled", 10);
    host.interface.insert("rx_prio3_discards".to_owned(), 12);
    let reading = host.one();
    let interval = SECOND * 2;
    let health = health::judge(&reading, interval);
    let port = Port {
        device: "mlx5_0".to_owned(),
        port: 1,
    };
    let text = screen::port(&port, &reading, &health, &host.catalog, interval);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "mlx5_0/1 on eth0");
    assert!(
        lines[1].starts_with("  lossless class not working: rx_prio3_discards +12: "),
        "{text}"
    );
    let row = lines.iter().find(|line| line.contains("rp_cnp_handled")).unwrap();
    assert!(row.contains(" 5.0 ") && row.ends_with(" 10"), "{row}");
    assert!(
        text.contains("rx_prioN_pause[0124567]"),
        "absent where PFC is off: {text}"
    );
}

#[test]
fn a_device_may_go_and_come() {
    let mut host = Host::with_mlx5();
    host.add("rxe0", &RXE);
    host.set("rxe0", "sent_pkts", 1_000);
    assert_eq!(host.read().len(), 2);
    host.remove("rxe0");
    let readings = host.read();
    let gone = readings.iter().find(|(port, _)| port.device == "rxe0").unwrap();
    assert!(gone.1.is_gone && gone.1.values.is_empty());
    assert!(
        host.read().values().any(|reading| reading.is_gone),
        "it is not forgotten"
    );
    host.add("rxe0", &RXE);
    host.set("rxe0", "sent_pkts", 3_000);
    let readings = host.read();
    let back = readings.iter().find(|(port, _)| port.device == "rxe0").unwrap().1;
    let sent = back.values["sent_pkts"];
    assert!(!back.is_gone);
    assert_eq!(
        (sent.total, sent.rise),
        (3_000, None),
        "another device under the same name"
    );
    let health = health::judge(back, SECOND);
    assert_eq!(health.lines(), ["nothing to judge by yet: no counter was read twice"]);
    host.add("mlx5_1", &MLX5);
    assert_eq!(host.read().len(), 3);
    for device in ["mlx5_0", "mlx5_1", "rxe0"] {
        host.remove(device);
    }
    assert!(host.read().values().all(|reading| reading.is_gone));
}

#[test]
fn a_host_without_devices_has_no_ports() {
    assert!(Host::new().read().is_empty());
    assert!(read::sample(Path::new("/nosuch"), &catalog::all(), |_| Vec::new()).is_empty());
}

#[test]
fn a_class_that_loses_frames_is_not_working() {
    for counter in [
        "rx_prio3_discards",
        "rx_prio3_cong_discard",
        "tx_pause_storm_error_events",
        "out_of_sequence",
        "packet_seq_err",
        "implied_nak_seq_err",
        "local_ack_timeout_err",
        "roce_adp_retrans",
        "roce_adp_retrans_to",
    ] {
        let health = Host::with_mlx5().health("mlx5_0", &[(counter, 4)]);
        assert_eq!(found(&health), [(Severity::Broken, counter)]);
        let line = &health.lines()[0];
        assert!(
            line.starts_with(&format!("lossless class not working: {counter} +4: ")),
            "{line}"
        );
    }
}

#[test]
fn where_no_class_is_lossless_the_same_is_a_warning_and_other_priorities_may_lose() {
    let health = Host::with_mlx5().health("mlx5_0", &[("rx_prio0_discards", 5)]);
    assert_eq!(found(&health), []);
    assert_eq!(health.lossless, Lossless::On(vec![3]));
    let mut host = Host::with_mlx5();
    host.interface.retain(|name, _| !name.contains("3_pause"));
    let health = host.health("mlx5_0", &[("out_of_sequence", 5), ("rx_prio3_discards", 5)]);
    assert_eq!(found(&health), [(Severity::Warning, "out_of_sequence")]);
    assert_eq!(health.lossless, Lossless::Off);
    let health = Host::with_rxe().health("rxe0", &[("completer_retry_err", 2), ("rcvd_seq_err", 1)]);
    assert_eq!(
        found(&health),
        [
            (Severity::Warning, "rcvd_seq_err"),
            (Severity::Warning, "completer_retry_err")
        ]
    );
    assert_eq!(health.lossless, Lossless::Unknown);
}

#[test]
fn discards_of_the_port_count_where_the_priorities_are_silent() {
    let health = Host::with_mlx5().health("mlx5_0", &[("rx_discards_phy", 5)]);
    assert_eq!(found(&health), [(Severity::Warning, "rx_discards_phy")]);
    let mut host = Host::with_mlx5();
    host.interface.remove("rx_prio3_discards");
    let health = host.health("mlx5_0", &[("rx_discards_phy", 5)]);
    assert_eq!(found(&health), [(Severity::Broken, "rx_discards_phy")]);
}

#[test]
fn slow_receivers_long_pauses_and_cnps_that_do_not_fit_are_warnings() {
    let warned = |rises: &[(&str, u64)]| {
        let health = Host::with_mlx5().health("mlx5_0", rises);
        assert!(
            health
                .findings
                .iter()
                .all(|finding| finding.severity == Severity::Warning)
        );
        let names: Vec<_> = health.findings.into_iter().map(|finding| finding.counter).collect();
        names.join(" ")
    };
    assert_eq!(warned(&[("rx_prio3_pause_duration", 99_999)]), "", "below a tenth");
    assert_eq!(
        warned(&[("rx_prio3_pause_duration", 100_000)]),
        "rx_prio3_pause_duration"
    );
    assert_eq!(
        warned(&[("tx_prio3_pause_duration", 100_000)]),
        "tx_prio3_pause_duration"
    );
    assert_eq!(warned(&[("np_cnp_sent", 3)]), "np_cnp_sent", "CNPs without marks");
    assert_eq!(
        warned(&[("np_ecn_marked_roce_packets", 3)]),
        "np_ecn_marked_roce_packets"
    );
    assert_eq!(warned(&[("np_cnp_sent", 1), ("np_ecn_marked_roce_packets", 3)]), "");
    for counter in [
        "tx_pause_storm_warning_events",
        "rp_cnp_ignored",
        "out_of_buffer",
        "rnr_nak_retry_err",
        "req_cqe_error",
    ] {
        assert_eq!(warned(&[(counter, 1)]), counter);
    }
    let health = Host::with_mlx5().health("mlx5_0", &[("rp_cnp_handled", 9), ("rx_prio3_pause", 9)]);
    assert_eq!(health.severity(), Severity::Fine, "that is how it works");
    assert_eq!(
        health.lines(),
        ["fine: PFC is on for priority 3, and nothing of it was lost"]
    );
}
