//! What a config can choose for a link, in the programs as a user runs them: whatever carries the orders, each comes once.

use crate::market::{LINKED, Market, PATIENCE, free_port};
use crate::processes::{Victim, kill_over};
use crate::trader::Trader;
use net::link::{AnyLink, DownReason, LinkConfig, LinkEnd, LinkEvent, LtpLinkConfig, Resume};
use net::{CarrierConfig, Link, UdpOptions};
use proto::ltp::{self, HeaderForm, Key, Redundancy, Refusal};
use proto::native;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;
use types::{SessionId, Side};

/// A market with these lines in the link's table of the gateway and of the exchange.
fn market(transport: &'static str, gateway: &str, exchange: &str) -> Market {
    let market = Market::new(1, transport);
    add(&market, "gateway.toml", gateway);
    add(&market, "exchange.toml", exchange);
    market
}

/// Adds lines to the end of a link's table.
fn add(market: &Market, file: &str, lines: &str) {
    let config = fs::read_to_string(market.path(file)).expect("a config");
    let ends = ["user = \"gate1\"\npassword = \"secret\"\n", "dead_after_ms = 500\n"];
    let end = ends
        .into_iter()
        .find(|end| config.contains(end))
        .expect("a link's table");
    market.write(file, &config.replacen(end, &format!("{end}{lines}"), 1));
}

const KEY: &str = "key_id = 7\nkey_file = \"keys.txt\"\n";
const COMPACT: &str = "header = \"compact\"\n";
const TWICE: &str = "redundancy = \"twice\"\n";
const PATHS: &str = "redundancy = \"paths\"\n";

#[test]
fn every_order_is_there_once_where_each_datagram_is_authenticated() {
    kill_over(market("ltp", KEY, KEY), Victim::Exchange);
}

#[test]
fn every_order_is_there_once_behind_compact_headers() {
    let lines = format!("{COMPACT}{KEY}");
    kill_over(market("ltp", &lines, &lines), Victim::Gateway);
}

#[test]
fn every_order_is_there_once_where_each_datagram_is_sent_twice() {
    kill_over(market("ltp", TWICE, TWICE), Victim::Gateway);
}

#[test]
fn every_order_is_there_once_over_two_paths() {
    let second = free_port();
    let market = market(
        "ltp",
        &format!("{PATHS}second_peer = \"{second}\"\n"),
        &format!("{PATHS}second_listen = \"{second}\"\n"),
    );
    kill_over(market, Victim::Exchange);
}

#[test]
fn every_order_is_there_once_over_rocev2_by_send_in_large_packets_under_rate_control() {
    for victim in [Victim::Exchange, Victim::Gateway] {
        let market = Market::new(1, "roce");
        for file in ["gateway.toml", "exchange.toml"] {
            let more = "operation = \"send\", mtu_bytes = 4_096, dscp = 26, rate_control_line_mbit_s = 10_000 }";
            market.change(file, "\" }\n", &format!("\", {more}\n"));
        }
        kill_over(market, victim);
    }
}

#[test]
fn orders_cross_shards_once_over_two_links_of_rocev2() {
    kill_over(Market::new(2, "roce"), Victim::Exchange);
}

#[test]
fn orders_flow_though_the_first_of_two_paths_leads_nowhere() {
    let (second, nowhere) = (free_port(), free_port());
    let market = market(
        "ltp",
        &format!("{PATHS}second_peer = \"{second}\"\n"),
        &format!("{PATHS}second_listen = \"{second}\"\n"),
    );
    let config = fs::read_to_string(market.path("gateway.toml")).expect("a config");
    let (front, rest) = config.split_once("\npeer = \"").expect("a peer");
    let (_, rest) = rest.split_once('"').expect("an address");
    market.write("gateway.toml", &format!("{front}\npeer = \"{nowhere}\"{rest}"));
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    gateway.wait_for("a path of the venue link is down");
    let mut trader = Trader::new("taker", 2, market.native[0]);
    trader.connect();
    for _ in 0..100 {
        trader.order(Side::Buy, 1, "100");
    }
    trader.wait("an answer to each", |trader| trader.orders.len() == 100);
    assert_eq!(trader.open(), 100);
    gateway.stop();
    exchange.stop();
    assert_eq!(market.orders_of_exchange().len(), 100);
    market.assert_replay_is_identical(0);
}

/// Both ends say it, once, however often they meet.
#[test]
fn ends_of_rocev2_that_do_not_agree_both_say_why() {
    let cases = [
        ("\", operation = \"send\" }\n", "another operation"),
        ("\", mtu_bytes = 256 }\n", "another mtu_bytes"),
        ("\" }\n", "another RoCEv2 address than configured"),
    ];
    for (end, reason) in cases {
        let market = Market::new(1, "roce");
        let there = market.roce[0][1];
        let peer = if reason.contains("address") {
            IpAddr::from([127, 1, 2, 3])
        } else {
            there
        };
        market.change("gateway.toml", &format!("{there}\" }}\n"), &format!("{peer}{end}"));
        let mut exchange = market.exchange("exchange");
        let mut gateway = market.start("gateway", &["gateway", "-c", "gateway.toml"]);
        for program in [&mut gateway, &mut exchange] {
            program.wait_for(&format!("the ends are not configured alike: {reason}"));
        }
        assert!(!gateway.printed().contains("venue link is up"), "{reason}");
    }
}

#[test]
fn ends_that_do_not_agree_say_why() {
    let cases = [
        ("", KEY, "refused by the peer: no key offered, key 7 configured"),
        (
            COMPACT,
            "",
            "refused by the peer: headers of 8 bytes offered, 16 configured",
        ),
    ];
    for (at_gateway, at_exchange, reason) in cases {
        let market = market("ltp", at_gateway, at_exchange);
        let _exchange = market.exchange("exchange");
        let mut gateway = market.start("gateway", &["gateway", "-c", "gateway.toml"]);
        gateway.wait_for(reason);
        assert!(!gateway.printed().contains("venue link is up"), "{reason}");
    }
}

/// The exchange's table comes with its keys after the session's, as the gateway's after the link's.
#[test]
fn socket_options_of_tcp_are_chosen_by_the_config_and_the_kernels_answer_is_in_the_log() {
    let gateway = "[venues.links.tcp]\nno_delay = false\nquick_ack = \"off\"\nrto_min_us = 160_000\nuser_timeout_ms = 7_000\n\
        notsent_lowat_bytes = 3_000\nsend_buffer_bytes = 30_000\nreceive_buffer_bytes = 30_000\n";
    let exchange = "[sessions.tcp]\nquick_ack = \"rearmed\"\nuser_timeout_ms = 6_000\n";
    let market = market("tcp", gateway, exchange);
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    gateway.wait_for("TCP link of session 1: no_delay=0 quick_ack=1 rto_min_us=");
    gateway.wait_for(" user_timeout_ms=7000 notsent_lowat_bytes=3000 ");
    gateway.wait_for(" send_buffer_bytes=60000 (wanted 30000) receive_buffer_bytes=60000 (wanted 30000)");
    // Linux 6.11 or later takes it as it is; 160 ms are whole ticks at any speed of its clock.
    let printed = gateway.printed();
    assert!(
        ["rto_min_us=160000 ", "rto_min_us=refused (wanted 160000) "]
            .iter()
            .any(|text| printed.contains(text)),
        "{printed}"
    );
    exchange.wait_for("TCP link of session 1: no_delay=1 quick_ack=1 rto_min_us=");
    exchange.wait_for("user_timeout_ms=6000");
    gateway.stop();
    exchange.stop();
}

/// The links of clients take orders one a datagram, each datagram once, behind the full header: else a filter on the way
/// would read past them.
#[test]
fn a_client_whose_orders_a_filter_could_not_read_is_refused_and_told_why() {
    let market = Market::new(1, "ltp");
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let good = ltp::Config {
        key: Some(Key {
            id: 7,
            secret: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        }),
        ..ltp::Config::for_client(SessionId(LINKED), 4_096, native::MAX_MESSAGE_LENGTH)
    };
    let packs = ltp::Config { packing: true, ..good };
    let copies = ltp::Config {
        redundancy: Redundancy::Twice,
        ..good
    };
    let compact = ltp::Config {
        header: HeaderForm::Compact,
        ..good
    };
    let cases = [
        (packs, Refusal::Packed),
        (copies, Refusal::Copies { given: 2 }),
        (compact, Refusal::Header { given: 8, held: 16 }),
    ];
    for (times, (config, refusal)) in (1..).zip(cases) {
        assert_eq!(refused(market.client_link, config), refusal);
        gateway.wait_for_times("peer cannot be served", times);
        gateway.wait_for(&format!("peer cannot be served: {refusal}"));
    }
    gateway.stop();
    exchange.stop();
    assert!(market.orders_of_gateway(0).0.is_empty(), "no order was taken");
}

/// Sends two orders at once over a link to the gateway, and gives the reason that it is refused with.
fn refused(gateway: SocketAddr, ltp: ltp::Config) -> Refusal {
    let config = LinkConfig::Ltp(LtpLinkConfig {
        end: LinkEnd::Connect {
            peer: gateway,
            local: None,
        },
        ltp,
        carrier: CarrierConfig::Udp(UdpOptions::default()),
        second: None,
    });
    let clock = latency::Clock::start();
    let mut link = AnyLink::new(&config, clock.now().0, Resume::START).expect("a link");
    for _ in 0..2 {
        link.send(&[0; 48], 0);
    }
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < PATIENCE, "nobody refuses");
        match link.poll(clock.now(), &mut [0; native::MAX_MESSAGE_LENGTH]) {
            Some(LinkEvent::Down(DownReason::RefusedBecause(refusal))) => return refusal,
            // What the gateway of the case before still believes.
            Some(_) => {}
            None => link.flush(clock.now(), u64::MAX),
        }
    }
}

/// What stands between two ends that do not find each other, and what each of them says of it; "" where it says nothing.
#[test]
fn a_link_that_does_not_come_up_says_what_it_sees_instead() {
    const OTHER_SECRET: &str = "key_id = 7\nkey_file = \"others.txt\"\n";
    const OTHER_ID: &str = "key_id = 8\nkey_file = \"others.txt\"\n";
    let cases = [
        (
            "another secret",
            OTHER_SECRET,
            KEY,
            1,
            "nothing heard",
            "forged (another secret under the same key id",
        ),
        (
            "another key",
            OTHER_ID,
            KEY,
            1,
            "refused by the peer: key 8 offered, key 7 configured",
            "link refuses",
        ),
        (
            "another session",
            KEY,
            KEY,
            9,
            "refused by the peer: session 9 asked for, 1 configured",
            ": session 9 asked for, 1 configured",
        ),
    ];
    for (what, at_gateway, at_exchange, session, gateway_says, exchange_says) in cases {
        let market = market("ltp", at_gateway, at_exchange);
        let others = market.write(
            "others.txt",
            "7 ffeeddccbbaa99887766554433221100\n8 000102030405060708090a0b0c0d0e0f\n",
        );
        fs::set_permissions(others, fs::Permissions::from_mode(0o600)).expect("its own file");
        if session != 1 {
            market.change("gateway.toml", "session = 1\n", &format!("session = {session}\n"));
        }
        let mut exchange = market.exchange("exchange");
        let mut gateway = market.start("gateway", &["gateway", "-c", "gateway.toml"]);
        gateway.wait_for("venue link is not up for 1 s: venue sim, shard 0: LTP over UDP, peer 127.0.0.1:");
        gateway.wait_for(gateway_says);
        exchange.wait_for("link is not up for 1 s: session 1: LTP over UDP");
        exchange.wait_for(exchange_says);
        assert!(!gateway.printed().contains("venue link is up"), "{what}");
    }
}

#[test]
fn a_gateway_without_an_exchange_and_one_with_an_exchange_of_another_transport_say_that_nobody_listens() {
    let market = Market::new(1, "ltp");
    let mut gateway = market.start("gateway", &["gateway", "-c", "gateway.toml"]);
    gateway.wait_for("times nobody listened there");
    gateway.stop();
    let others = Market::new(1, "tcp");
    market.write(
        "exchange.toml",
        &fs::read_to_string(others.path("exchange.toml"))
            .expect("a config")
            .replace(&others.venue(0).to_string(), &market.venue(0).to_string()),
    );
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.start("gateway-again", &["gateway", "-c", "gateway.toml"]);
    gateway.wait_for("times nobody listened there");
    exchange.wait_for("link is not up for 1 s: session 1: TCP: nothing heard");
    gateway.stop();
    exchange.stop();
}

#[test]
fn a_login_over_tcp_that_is_refused_names_who_and_why_at_both_ends() {
    let market = Market::new(1, "tcp");
    market.change("gateway.toml", "password = \"secret\"", "password = \"guess\"");
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.start("gateway", &["gateway", "-c", "gateway.toml"]);
    let why = "user or password are others than those configured";
    gateway.wait_for(&format!(
        "venue link does not come up: venue sim, shard 0: refused by the peer: {why}"
    ));
    gateway.wait_for("refused by the peer; last refused by the peer");
    exchange.wait_for("link refuses");
    exchange.wait_for(&format!("(user gate1): {why}"));
    gateway.stop();
    exchange.stop();
}

/// The exchange has lost its journal, and the gateway has not: neither can go on, and both say the numbers.
#[test]
fn journals_that_contradict_each_other_are_told_apart_from_a_wrong_login() {
    for transport in ["ltp", "tcp"] {
        let market = Market::new(1, transport);
        let mut exchange = market.exchange("exchange");
        let mut gateway = market.gateway("gateway");
        let mut trader = Trader::new("taker", 2, market.native[0]);
        trader.connect();
        for _ in 0..10 {
            trader.order(Side::Buy, 1, "100");
        }
        trader.wait("an answer to each", |trader| trader.orders.len() == 10);
        gateway.stop();
        exchange.stop();
        fs::remove_dir_all(market.path("exchange-journal")).expect("a journal");
        let mut exchange = market.exchange("exchange-again");
        let mut gateway = market.start("gateway-again", &["gateway", "-c", "gateway.toml"]);
        let why = "message 11 wanted, the next to be sent is 1: the refusing end has lost messages that it had sent";
        gateway.wait_for(&format!("refused by the peer: {why}"));
        exchange.wait_for(&format!("peer cannot be served: {why}"));
        gateway.stop();
        exchange.stop();
    }
}

#[test]
fn the_check_says_whether_af_xdp_can_be_had() {
    for (transport, interface, fallback, status, text) in [
        (
            "ltp",
            "lo",
            false,
            1,
            "looking for interface lo: it is no Ethernet interface",
        ),
        (
            "ltp",
            "lo",
            true,
            0,
            "no AF_XDP, a UDP socket would take its place: looking for interface lo",
        ),
        ("ltp", "none0", false, 1, "looking for interface none0: "),
        ("roce", "none0", false, 1, "looking for interface none0: "),
    ] {
        let lines = |neighbour: &str| {
            format!(
                "carrier = \"afxdp\"\nafxdp = {{ interface = \"{interface}\", queue = 0, mode = \"auto\", {neighbour}\
                 frames = 64, fallback = {fallback} }}\n"
            )
        };
        let knows = "neighbour = \"kernel\", ";
        // A listening end of LTP learns its neighbour.
        let of_exchange = if transport == "roce" { knows } else { "" };
        let market = market(transport, &lines(knows), &lines(of_exchange));
        for (program, which) in [
            ("gateway", "link to venue sim, shard 0: "),
            ("exchange", "link of session 1: "),
        ] {
            let (ended, printed) = market.run(&[program, "-c", &format!("{program}.toml"), "--check"]);
            assert_eq!(ended.code(), Some(status), "{printed}");
            assert!(printed.contains(&format!("{which}{text}")), "{printed}");
            let fine = printed.contains("fine");
            assert_eq!(fine, status == 0, "{printed}");
        }
    }
}

#[test]
fn buffers_of_udp_sockets_are_chosen_by_the_config_and_the_kernels_answer_is_in_the_log() {
    let gateway = "[venues.links.udp]\nsend_buffer_bytes = 30_000\nreceive_buffer_bytes = 40_000\n";
    let exchange = "[sessions.udp]\nreceive_buffer_bytes = 50_000\n";
    let market = market("ltp", gateway, exchange);
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    gateway.wait_for("send_buffer_bytes=60000 (wanted 30000) receive_buffer_bytes=80000 (wanted 40000)");
    exchange.wait_for("receive_buffer_bytes=100000 (wanted 50000)");
    gateway.stop();
    exchange.stop();
    for (program, link) in [
        (gateway, "venue link venue sim, shard 0: "),
        (exchange, "link session 1: "),
    ] {
        let printed = program.printed();
        let line = printed.lines().find(|line| line.starts_with(link));
        let line = line.unwrap_or_else(|| panic!("no line of the link: {printed}"));
        for figure in [
            ", LTP over UDP, peer 127.0.0.1:",
            " next_send=1 ",
            " ups=1 ",
            " forged=0 ",
            " credits=-",
        ] {
            assert!(line.contains(figure), "{figure} in {line}");
        }
    }
}
