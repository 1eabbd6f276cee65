//! kill -9, and a client that asks for everything: it gets exactly what it was sent.

use crate::fix_client::{FixClient, value};
use crate::market::Market;
use std::collections::BTreeMap;

const REPORTS: u64 = 1_000;

#[test]
fn after_kill_9_a_client_that_asks_for_everything_gets_exactly_what_was_sent() {
    let market = Market::new(1, "ltp");
    // Far fewer than it is asked for: the rest is in the journal.
    let config = market
        .gateway_config()
        .replace("resend_messages = 16_384", "resend_messages = 16");
    market.write("gateway.toml", &config);
    let _exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let mut client = FixClient::new("TRADER", market.fix[0]);
    let mut said = BTreeMap::new();
    let note = |message: String, said: &mut BTreeMap<u64, String>| {
        let number = value(&message, 34).parse().expect("a number");
        assert_eq!(value(&message, 43), "", "{message}");
        assert_eq!(said.insert(number, message), None, "no number comes twice");
    };
    note(client.log_on(""), &mut said);
    // Each is refused for its quantity, or accepted and cancelled: at least one report, and some more than are read.
    for number in 0..REPORTS {
        let quantity = if number % 2 == 0 { 10 } else { 1_000_000 };
        let order = format!("11=A-{number}|55=ALFA|54=1|60=20261130-12:00:00|40=2|38={quantity}|44=99.00|59=3|1=1|");
        client.send("D", &order);
        note(client.receive(), &mut said);
    }
    gateway.kill();
    let mut gateway = market.gateway("gateway-again");
    let answer = client.log_on("");
    let last = value(&answer, 34).parse::<u64>().expect("a number");
    assert!(!said.contains_key(&last), "{answer}");
    client.send("2", "7=1|16=0|");
    let mut next = 1;
    while next < last {
        let message = client.receive();
        if value(&message, 43) != "Y" {
            // It asks in turn for orders that it had not read when it was killed, or reports what became of one since.
            let number = value(&message, 34).parse::<u64>().expect("a number");
            assert!(number > last && ["2", "8"].contains(&value(&message, 35)), "{message}");
            continue;
        }
        assert_eq!(value(&message, 34), next.to_string(), "{message}");
        if value(&message, 35) == "4" {
            next = value(&message, 36).parse().expect("a number");
            continue;
        }
        // What the gateway made and had not sent when it was killed has a number that the client has not seen.
        if let Some(first) = said.get(&next) {
            assert_eq!(body(&message), body(first));
            assert_eq!(value(&message, 122), value(first, 52), "{message}");
        }
        said.remove(&next);
        next += 1;
    }
    let lost = said
        .values()
        .filter(|message| value(message, 35) == "8")
        .collect::<Vec<_>>();
    assert!(lost.is_empty(), "{lost:?}");
    gateway.stop();
    market.assert_replay_is_identical(0);
}

/// What a message says: its type and its body.
fn body(message: &str) -> Vec<&str> {
    let of_header = ["8", "9", "34", "43", "49", "52", "56", "122", "10", ""];
    let is_of_body = |field: &&str| !of_header.contains(&field.split('=').next().unwrap_or_default());
    message.split('|').filter(is_of_body).collect()
}
