//! What a user reads in a journal, while the gateway runs and afterwards.

use crate::fix_client::{FixClient, value};
use crate::market::Market;
use crate::trader::Trader;
use types::Side;

/// An order of ten ALFA.
fn order(number: u32) -> String {
    format!("11=order-{number}|55=ALFA|54=1|60=20261130-12:00:00|40=2|38=10|44=101.37|59=0|1=1|")
}

#[test]
fn the_messages_of_a_session_are_printed_in_order_while_it_runs_and_afterwards() {
    let market = Market::new(1, "ltp");
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let mut fix = FixClient::new("TRADER", market.fix[0]);
    let mut heard = vec![fix.log_on("553=TRADER|554=sesame|925=open|")];
    for number in 0..3 {
        fix.send("D", &order(number));
        heard.push(fix.receive());
    }
    let mut native = Trader::new("taker", 2, market.native[0]);
    native.connect();
    native.order(Side::Buy, 1, "101.37");
    native.wait("an answer", |trader| trader.accepted() == 1);

    let running = read(&market, &["--session", "TRADER"]);
    assert_eq!(running, read(&market, &["--session", "1"]), "by CompID or by id");
    let is_out = |line: &&String| line.split(' ').nth(1) == Some("out");
    let sent = running
        .iter()
        .filter(is_out)
        .map(|line| line.split_whitespace().nth(3).expect("a message"));
    assert_eq!(sent.collect::<Vec<_>>(), heard, "what was sent is what was heard");
    let is_in = |line: &&String| line.split(' ').nth(1) == Some("in");
    let received = running.iter().filter(is_in).collect::<Vec<_>>();
    assert_eq!(received.len(), 4);
    for (number, line) in received.iter().enumerate() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        assert_eq!((words[0].len(), words[2]), (27, &*(number + 1).to_string()), "{line}");
        assert_eq!(value(words[3], 34), words[2], "{line}");
    }
    assert!(received[0].contains("|553=TRADER|"), "{}", received[0]);
    assert!(
        !received[0].contains("|554=") && !received[0].contains("|925="),
        "{}",
        received[0]
    );
    let times = running.iter().map(|line| &line[..27]).collect::<Vec<_>>();
    assert!(times.is_sorted() && times[0].ends_with('Z'), "{times:?}");

    let natives = read(&market, &["--session", "taker"]);
    assert_eq!(natives, read(&market, &["--session", "2"]), "by user or by id");
    assert!(natives[0].contains(" in       - Request(New("), "{}", natives[0]);
    assert!(natives[1].contains(" out      1 Report("), "{}", natives[1]);

    gateway.stop();
    exchange.stop();
    assert_eq!(
        read(&market, &["--session", "TRADER"]),
        running,
        "and afterwards the same"
    );
    let since = ["--session", "1", "--from", times[2], "--to", times[4]];
    let within = running
        .iter()
        .filter(|line| line[..27] >= *times[2] && line[..27] < *times[4]);
    assert_eq!(read(&market, &since), within.cloned().collect::<Vec<_>>());
    assert_is_json(&market, &running);
    let (status, printed) = market.run(&["journal", "-c", "gateway.toml", "--session", "nobody"]);
    assert!(
        !status.success() && printed.contains("nothing is known of a session \"nobody\""),
        "{printed}"
    );
}

/// The lines of `tickgate journal` with these arguments.
fn read(market: &Market, arguments: &[&str]) -> Vec<String> {
    let (status, printed) = market.run(&[&["journal", "-c", "gateway.toml"], arguments].concat());
    assert!(status.success(), "{printed}");
    printed.lines().map(str::to_owned).collect()
}

/// As JSON, and without a config, it says the same.
fn assert_is_json(market: &Market, lines: &[String]) {
    let directory = market.path("gateway-journal/shard-0");
    let directory = directory.to_str().expect("a path of UTF-8");
    let (status, printed) = market.run(&["journal", "--session", "TRADER", "--directory", directory, "--json"]);
    assert!(status.success(), "{printed}");
    assert_eq!(printed.lines().count(), lines.len());
    for (object, line) in printed.lines().zip(lines) {
        let object: serde_json::Value = serde_json::from_str(object).expect("an object a line");
        let text = format!(
            "{} {:3} {:>6} {}",
            object["time"].as_str().expect("a time"),
            object["direction"].as_str().expect("a direction"),
            object["sequence"].to_string(),
            object["message"].as_str().expect("a message"),
        );
        assert_eq!((&text, &object["session"]), (line, &1.into()));
    }
}
