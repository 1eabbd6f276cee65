//! What an operator asks of a running gateway: it holds on every shard, over restarts, and it is in the journal.

use crate::door::{FixClient, assert_refused};
use crate::market::{LINKED, Market, PATIENCE, Program};
use crate::trader::Trader;
use std::fs;
use std::path::Path;
use std::time::Instant;
use types::{Reason, Side};

/// Two shards: the trader's session is on the first, the second instrument on the other.
struct Desk {
    market: Market,
    _exchange: Program,
    gateway: Program,
    trader: Trader,
}

impl Desk {
    fn new() -> Self {
        let market = Market::new(2, "ltp");
        let config = format!("{}\n[control]\nsocket = \"control.sock\"\n", market.gateway_config());
        market.write("gateway.toml", &config);
        let exchange = market.exchange("exchange");
        let gateway = market.gateway("gateway");
        let mut trader = Trader::new("taker", 2, market.native[0]);
        trader.connect();
        Self {
            market,
            _exchange: exchange,
            gateway,
            trader,
        }
    }

    /// The gateway is killed, and starts again.
    fn restart(&mut self) {
        self.gateway.kill();
        self.trader
            .wait("the end of its connection", |trader| !trader.is_connected());
        self.gateway = self.market.gateway("gateway-again");
        self.trader.connect();
    }

    /// What `tickgate ctl` printed, and whether it succeeded.
    fn ctl(&self, arguments: &[&str]) -> (bool, String) {
        let (status, text) = self
            .market
            .run(&[&["ctl", "-c", "gateway.toml", "--json"], arguments].concat());
        (status.success(), text)
    }

    /// Asks until the answer is so.
    fn wait(&self, what: &str, arguments: &[&str], is_so: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let text = self.done(arguments);
            if is_so(&text) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{what} does not happen: {text}");
        }
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (is_done, text) = self.ctl(arguments);
        assert!(is_done && text.contains(r#"{"done":{"#), "{arguments:?}: {text}");
        text
    }

    /// An order in the instrument of each shard, and the answers to both. Gives how many of them were accepted.
    fn orders(&mut self) -> usize {
        let before = self.trader.accepted();
        let answered = self.trader.orders.len() + 2;
        self.trader.order(Side::Buy, 1, "101.37");
        self.trader.order(Side::Buy, 2, "42.18");
        self.trader.wait("answers", |trader| trader.orders.len() == answered);
        self.trader.accepted() - before
    }
}

#[test]
fn a_kill_switch_cancels_and_refuses_on_every_shard_until_it_is_turned_off_over_a_restart_too() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    let listed = desk.done(&["orders", "--session", "2"]);
    assert_eq!(listed.matches(r#"{"order":{"#).count(), 2, "{listed}");
    assert!(
        listed.contains(r#""instrument":2,"#) && listed.contains(r#""price":"42.18""#),
        "{listed}"
    );

    let (is_done, text) = desk.ctl(&["orders", "--session", "77"]);
    assert!(!is_done && text.contains("the config has no session 77"), "{text}");

    let killed = desk.done(&["kill", "session", "2"]);
    assert!(killed.contains(r#"{"done":{"number":1}}"#), "{killed}");
    desk.trader.wait("the end of its orders", |trader| trader.open() == 0);
    assert_eq!(desk.orders(), 0);
    let audit = desk.done(&["audit"]);
    assert_eq!(
        audit.matches(r#""open_orders":0,"difference":null"#).count(),
        2,
        "{audit}"
    );

    desk.restart();
    assert!(desk.done(&["killed", "session", "2"]).contains(r#""killed":true"#));
    assert!(desk.done(&["killed", "firm"]).contains(r#""killed":false"#));
    assert_eq!(desk.orders(), 0);

    let revived = desk.done(&["revive", "session", "2"]);
    assert!(revived.contains(r#"{"done":{"number":2}}"#), "{revived}");
    assert_eq!(desk.orders(), 2);
    desk.done(&["cancel", "firm"]);
    desk.trader.wait("the end of its orders", |trader| trader.open() == 0);
    assert_eq!(desk.orders(), 2);

    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

#[test]
fn a_limit_is_changed_for_the_next_order_on_every_shard_over_a_kill_and_a_restart_too() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    let before = desk.done(&["limits", "account", "2"]);
    let lots = r#""scope":{"account":2},"limit":"max_quantity_lots","value":"#;
    assert!(
        before.contains(&format!(r#"{lots}"10000","from":"config""#)),
        "{before}"
    );

    // The class has both instruments, one on each shard; then one of them has its own.
    let set = desk.done(&["set", "class", "default", "max_quantity_lots", "9"]);
    assert!(set.contains(r#"{"done":{"number":1}}"#), "{set}");
    assert_eq!(desk.orders(), 0);
    assert_eq!(desk.trader.open(), 2, "a change ends nothing");
    desk.done(&["set", "instrument", "BRVO", "max_quantity_lots", "1_000"]);
    assert_eq!(desk.orders(), 1);
    // Two orders of 10 lots are open and one is accepted: less than that shared by the shards is no more.
    desk.done(&["set", "class", "default", "max_quantity_lots", "1000"]);
    desk.done(&["set", "account", "2", "max_open_notional", "1"]);
    assert_eq!(desk.orders(), 0);
    let shown = desk.done(&["limits"]);
    for line in [
        r#"{"class":"default"},"limit":"max_quantity_lots","value":"1000","from":{"change":{"number":3,"operator":"#,
        r#"{"instrument":"BRVO"},"limit":"max_quantity_lots","value":"1000","from":{"change":{"number":2,"operator":"#,
        r#"{"account":2},"limit":"max_open_notional","value":"1","from":{"change":{"number":4,"operator":"#,
    ] {
        assert_eq!(shown.matches(line).count(), 1, "{line} in {shown}");
    }
    assert!(!shown.contains("ALFA"), "what is its class's is not repeated: {shown}");

    desk.restart();
    assert_eq!(desk.done(&["limits"]), shown);
    assert_eq!(desk.orders(), 0);
    desk.done(&["set", "account", "2", "max_open_notional", "500000000"]);
    assert_eq!(desk.orders(), 2);
    let own = desk.done(&["set", "instrument", "BRVO", "max_quantity_lots", "class"]);
    assert!(own.contains(r#"{"done":{"number":6}}"#), "{own}");
    let of_class = desk.done(&["limits", "instrument", "BRVO"]);
    assert!(
        of_class.contains(r#""limit":"max_quantity_lots","value":"1000","from":{"class":"default"}"#),
        "{of_class}"
    );

    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

#[test]
fn what_is_closed_to_an_account_or_a_session_is_refused_on_its_shard_over_a_restart_and_by_the_config_too() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    let closed = desk.done(&["close", "account", "2", "class", "default"]);
    assert!(closed.contains(r#"{"done":{"number":1}}"#), "{closed}");
    assert_eq!(desk.orders(), 0);
    let refused = desk.trader.orders.values().map(|order| order.refused);
    let refused = refused.filter(|&reason| reason == Reason::Restricted).count();
    assert_eq!((refused, desk.trader.open()), (2, 2), "what is open stays");
    // The second instrument is on the second shard.
    desk.done(&["close", "session", "2", "instrument", "BRVO"]);
    desk.done(&["open", "account", "2", "class", "default"]);
    assert_eq!(desk.orders(), 1);
    desk.done(&["close", "account", "3", "instrument", "ALFA"]);
    let shown = desk.done(&["limits"]);
    let brvo = r#"{"limit":{"scope":{"trade":{"by":{"session":2},"of":{"instrument":"BRVO"}}},"limit":"restricted","value":"true","from":{"change":{"number":2,"operator":"#;
    let alfa = r#"{"limit":{"scope":{"trade":{"by":{"account":3},"of":{"instrument":"ALFA"}}},"limit":"restricted","value":"true","from":{"change":{"number":4,"operator":"#;
    for (arguments, told) in [
        (&["limits"][..], [1, 1]),
        (&["limits", "session", "2"], [1, 0]),
        (&["limits", "instrument", "ALFA"], [0, 1]),
        (&["limits", "account", "2"], [0, 0]),
    ] {
        let shown = desk.done(arguments);
        let found = [brvo, alfa].map(|line| shown.matches(line).count());
        assert_eq!(found, told, "{arguments:?}: {shown}");
        assert_eq!(shown.matches("trade").count(), told[0] + told[1], "{shown}");
    }
    let (_, table) = desk
        .market
        .run(&["ctl", "-c", "gateway.toml", "limits", "account", "3"]);
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        table.contains("account 3, instrument ALFA restricted true order 4 of user "),
        "{table}"
    );

    desk.restart();
    assert_eq!(desk.done(&["limits"]), shown);
    assert_eq!(desk.orders(), 1);
    let before = desk.done(&["limits"]);
    for (change, reason) in [
        (
            "close account 99 class default",
            "the config has no account 99, class default",
        ),
        (
            "close account 2 class other",
            "the config has no account 2, class other",
        ),
        (
            "open session 2 instrument OTHR",
            "the config has no session 2, instrument OTHR",
        ),
    ] {
        let words = change.split(' ').collect::<Vec<_>>();
        let (is_done, text) = desk.ctl(&words);
        assert!(!is_done && text.contains(reason), "{change}: {text}");
    }
    assert_eq!(desk.done(&["limits"]), before);
    desk.done(&["open", "session", "2", "instrument", "BRVO"]);
    assert_eq!(desk.orders(), 2);

    // A config that closes what none closed before; an operator opens it, and that holds too.
    let config = fs::read_to_string(desk.market.path("gateway.toml")).expect("the config");
    let account = "[[accounts]]\nid = 2\n";
    assert!(config.contains(account), "{config}");
    let closes = format!("{account}restricted_symbols = [\"BRVO\"]\n");
    desk.market.write("gateway.toml", &config.replace(account, &closes));
    desk.restart();
    assert_eq!(desk.orders(), 1);
    let of_config = r#"{"trade":{"by":{"account":2},"of":{"instrument":"BRVO"}}},"limit":"restricted","value":"true","from":"config"}"#;
    let shown = desk.done(&["limits", "account", "2"]);
    assert!(shown.contains(of_config), "{shown}");
    desk.done(&["open", "account", "2", "instrument", "BRVO"]);
    desk.restart();
    assert_eq!(desk.orders(), 2);
    let of_operator = r#"{"trade":{"by":{"account":2},"of":{"instrument":"BRVO"}}},"limit":"restricted","value":"false","from":{"change":{"number":6,"#;
    let shown = desk.done(&["limits"]);
    assert_eq!(shown.matches(of_operator).count(), 1, "{shown}");

    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

#[test]
fn a_change_that_one_shard_alone_heard_of_is_made_on_the_other_at_the_next_start() {
    let mut desk = Desk::new();
    desk.done(&["set", "account", "2", "max_notional", "5000"]);
    desk.trader.hang_up();
    desk.gateway.stop();
    // What the second shard knows before the change is what it would know, had the process died between the two.
    let journal = desk.market.path("gateway-journal/shard-1");
    let before = desk.market.path("shard-1-before");
    copy(&journal, &before);
    desk.gateway = desk.market.gateway("gateway-that-changes");
    desk.done(&["set", "class", "default", "max_quantity_lots", "9"]);
    desk.gateway.stop();
    fs::remove_dir_all(&journal).expect("the journal is there");
    fs::rename(&before, &journal).expect("the journal is back");

    desk.gateway = desk.market.gateway("gateway-again");
    desk.gateway.wait_for("is given again");
    desk.trader.connect();
    assert_eq!(desk.orders(), 0);
    let set = desk.done(&["set", "class", "default", "max_quantity_lots", "10"]);
    assert!(set.contains(r#"{"done":{"number":3}}"#), "{set}");
    assert_eq!(desk.orders(), 2);
    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

/// On the shard that heard of it in its time, what the config said later holds.
#[test]
fn a_change_that_a_shard_missed_comes_before_what_the_config_says_at_the_next_start() {
    let mut desk = Desk::new();
    desk.trader.hang_up();
    desk.gateway.stop();
    let journal = desk.market.path("gateway-journal/shard-1");
    let before = desk.market.path("shard-1-before");
    copy(&journal, &before);
    desk.gateway = desk.market.gateway("gateway-that-changes");
    desk.done(&["set", "class", "default", "max_quantity_lots", "9"]);
    desk.gateway.stop();
    fs::remove_dir_all(&journal).expect("the journal is there");
    fs::rename(&before, &journal).expect("the journal is back");

    let of_class = |lots: &str| format!("[risk.classes.default]\nmax_quantity_lots = {lots}\n");
    desk.market
        .change("gateway.toml", &of_class("10_000"), &of_class("20_000"));
    desk.gateway = desk.market.gateway("gateway-again");
    desk.gateway.wait_for("is given again");
    desk.trader.connect();
    assert_eq!(desk.orders(), 2);
    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

/// Days never go back.
#[test]
fn a_day_that_a_shard_missed_is_not_left_for_an_earlier_one_of_the_config() {
    let mut desk = Desk::new();
    desk.trader.hang_up();
    desk.gateway.stop();
    let journal = desk.market.path("gateway-journal/shard-1");
    let before = desk.market.path("shard-1-before");
    copy(&journal, &before);
    desk.gateway = desk.market.gateway("gateway-that-rolls");
    desk.done(&["roll", "20261203"]);
    desk.gateway.stop();
    fs::remove_dir_all(&journal).expect("the journal is there");
    fs::rename(&before, &journal).expect("the journal is back");

    desk.market
        .change("gateway.toml", "trading_day = 20261130", "trading_day = 20261201");
    desk.gateway = desk.market.gateway("gateway-again");
    desk.gateway.wait_for("is given again");
    desk.gateway.stop();
    // Each shard tells its day when it is not the config's.
    desk.gateway = desk.market.gateway("gateway-at-last");
    desk.gateway
        .wait_for_times("the trading day is one that an operator began", 2);
    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

/// The files of a folder, into a new one.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

#[test]
fn a_change_that_is_none_is_refused_with_its_reason_and_changes_nothing() {
    let mut desk = Desk::new();
    let before = desk.done(&["limits"]);
    for (change, reason) in [
        ("account 99 max_notional 5", "the config has no account 99"),
        ("session 99 max_open_orders 5", "the config has no session 99"),
        ("class other max_notional 5", "the config has no class other"),
        ("instrument OTHR max_notional 5", "the config has no instrument OTHR"),
        ("account 2 max_notionals 5", "max_notionals is no limit"),
        (
            "account 2 collar off",
            "account 2: collar = off: there is no such limit here",
        ),
        (
            "account 2 max_quantity_lots 0",
            "account 2: max_quantity_lots = 0: it is zero",
        ),
        ("account 2 max_quantity_lots none", "it must be lots"),
        ("account 2 max_notional 1e6", "it must be an amount"),
        ("session 2 max_open_orders none", "it must be a whole number"),
        ("session 2 max_orders_per_second 5", "max_orders_at_once"),
        ("instrument BRVO max_quantity_lots 0", "it is zero or too high"),
    ] {
        let words = change.split(' ').collect::<Vec<_>>();
        let (is_done, text) = desk.ctl(&[&["set"], &words[..]].concat());
        assert!(!is_done && text.contains(reason), "{change}: {text}");
    }
    let (is_done, text) = desk.ctl(&["limits", "account", "99"]);
    assert!(!is_done && text.contains("the config has no account 99"), "{text}");
    assert_eq!(desk.done(&["limits"]), before);
    assert_eq!(desk.orders(), 2);
    // Nothing of it was given a number.
    let set = desk.done(&["set", "account", "2", "max_quantity_lots", "9"]);
    assert!(set.contains(r#"{"done":{"number":1}}"#), "{set}");
    assert_eq!(desk.orders(), 0);
}

#[test]
fn a_disabled_session_is_logged_out_and_let_in_no_more_until_it_is_enabled_over_a_restart_too() {
    let mut desk = Desk::new();
    let (mut fix, answer) = FixClient::log_on(desk.market.fix[0], "FIX.4.4", "TRADER", 1, "");
    assert!(answer.contains("|35=A|"), "{answer}");
    assert_eq!(desk.orders(), 2);
    let sessions = desk.done(&["sessions"]);
    for line in [
        r#""session":2,"protocol":"native","name":"taker","our_comp_id":null,"shard":0,"enabled":true,"logged_on":true"#,
        r#""next_received":null,"open_orders":2,"refused":0}"#,
        r#""session":1,"protocol":"fix","name":"TRADER","our_comp_id":"TICKGATE","shard":0,"enabled":true,"logged_on":true"#,
        r#""next_sent":2,"next_received":2,"open_orders":0"#,
    ] {
        assert!(sessions.contains(line), "{line} in {sessions}");
    }

    let disabled = desk.done(&["disable", "session", "2"]);
    assert!(disabled.contains(r#"{"done":{"number":1}}"#), "{disabled}");
    desk.trader.wait("its logout", |trader| !trader.is_connected());
    assert!(!desk.trader.try_connect(), "it is let in no more");
    desk.done(&["disable", "session", "1"]);
    let logout = fix.receive();
    assert!(
        logout.contains("|35=5|") && logout.contains("58=session is disabled"),
        "{logout}"
    );
    drop(fix);
    assert_refused(
        FixClient::log_on(desk.market.fix[0], "FIX.4.4", "TRADER", 2, ""),
        "session is disabled",
    );
    desk.wait("the end of its orders", &["sessions"], |sessions| {
        sessions.matches(r#""enabled":false,"logged_on":false,"#).count() == 2
            && sessions.matches(r#""open_orders":0"#).count() == sessions.matches(r#""open_orders""#).count()
    });

    desk.gateway.kill();
    desk.gateway = desk.market.gateway("gateway-again");
    assert!(!desk.trader.try_connect(), "nor after a restart");
    desk.done(&["enable", "session", "2"]);
    desk.trader.connect();
    desk.trader.wait("the end of its orders", |trader| trader.open() == 0);
    assert_eq!(desk.orders(), 2);
    let (is_done, text) = desk.ctl(&["disable", "session", "77"]);
    assert!(!is_done && text.contains("the config has no session 77"), "{text}");

    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

#[test]
fn a_disabled_session_with_a_link_hears_why_its_orders_are_refused() {
    let mut desk = Desk::new();
    desk.trader = Trader::linked("linked", LINKED, desk.market.client_link);
    desk.trader.connect();
    assert_eq!(desk.orders(), 2);
    desk.done(&["disable", "session", "5"]);
    desk.trader.wait("the end of its orders", |trader| trader.open() == 0);
    assert_eq!(desk.orders(), 0);
    let last = desk.trader.orders.values().next_back().expect("an order");
    assert_eq!(last.refused, Reason::SessionDisabled);
    let sessions = desk.done(&["sessions"]);
    assert!(
        sessions.contains(r#""enabled":false,"logged_on":true,"connected":"link","#),
        "{sessions}"
    );
    desk.done(&["enable", "session", "5"]);
    assert_eq!(desk.orders(), 2);
    desk.gateway.stop();
    let (_, journal) = desk
        .market
        .run(&["journal", "-c", "gateway.toml", "--session", "linked"]);
    let requests = journal.lines().filter(|line| line.contains("Z in "));
    let numbers = requests.map(|line| line.split_whitespace().nth(2).expect("a number").to_owned());
    assert_eq!(numbers.collect::<Vec<_>>(), ["1", "2", "3", "4", "5", "6"], "{journal}");
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

#[test]
fn a_day_that_begins_while_running_ends_orders_and_starts_numbers_anew_on_every_shard() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    for (day, reason) in [
        ("20261130", "the trading day is 20261130 already"),
        ("20261129", "the trading day is 20261130 already"),
        ("20261301", "20261301 is no day of the calendar"),
        ("20261131", "20261131 is no day of the calendar"),
        (
            "20270101",
            "the trading day is 20261130; the next one is at most 31 days later",
        ),
    ] {
        let (is_done, text) = desk.ctl(&["roll", day]);
        assert!(!is_done && text.contains(reason), "{text}");
    }
    assert_eq!(desk.trader.open(), 2);
    let rolled = desk.done(&["roll", "20261201"]);
    assert!(rolled.contains(r#"{"done":{"number":1}}"#), "{rolled}");
    desk.trader.wait("the end of its orders", |trader| trader.open() == 0);
    desk.trader.new_day();
    assert_eq!(desk.orders(), 2, "its numbers may come again");
    let audit = desk.done(&["audit"]);
    assert_eq!(
        audit.matches(r#""open_orders":1,"difference":null"#).count(),
        2,
        "{audit}"
    );

    // The config still names the day before.
    desk.restart();
    desk.gateway.wait_for("the trading day is one that an operator began");
    let (is_done, text) = desk.ctl(&["roll", "20261201"]);
    assert!(
        !is_done && text.contains("the trading day is 20261201 already"),
        "{text}"
    );
    desk.trader.wait("the end of its orders", |trader| trader.open() == 0);
    assert_eq!(desk.orders(), 2);
    desk.gateway.stop();
    for shard in 0..2 {
        desk.market.assert_replay_is_identical(shard);
    }
}

#[test]
fn how_the_prefilters_stand_is_shown_for_people_and_programs() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    let status = ["prefilter", "status", "-c", "gateway.toml"];
    let (is_done, text) = desk.market.run(&status);
    assert!(is_done.success(), "{text}");
    for shard in 0..2 {
        let lines =
            format!("shard {shard}, software: sound; limits of generation 2\n  1 judged, 1 passed, 0 refused\n");
        assert!(text.contains(&lines), "{text}");
    }
    desk.done(&["set", "class", "default", "max_quantity_lots", "900"]);
    let (_, json) = desk.market.run(&[&status[..], &["--json"]].concat());
    let of_first = r#"{"prefilter":{"shard":0,"backend":"software","generation":3,"fault":null,"received":1,"#;
    assert!(json.contains(of_first), "{json}");
    assert!(json.contains(r#""reasons":{"FIELD":0,"#), "{json}");
}

#[test]
fn answers_are_laid_out_for_people_unless_json_is_asked_for() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    let shown = |arguments: &[&str]| {
        let (status, text) = desk.market.run(&[&["ctl", "-c", "gateway.toml"], arguments].concat());
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        (status.code(), lines.collect::<Vec<_>>())
    };
    let set = shown(&["set", "account", "2", "max_open_orders", "7"]);
    assert_eq!(set, (Some(0), vec!["done: order 1 of the desk".to_owned()]));
    let (code, limits) = shown(&["limits", "account", "2"]);
    assert_eq!((code, limits[0].as_str()), (Some(0), "SCOPE LIMIT VALUE FROM"));
    assert!(
        limits
            .iter()
            .any(|line| line == "account 2 max_notional 100000000 config"),
        "{limits:?}"
    );
    let changed = "account 2 max_open_orders 7 order 1 of user ";
    assert!(limits.iter().any(|line| line.starts_with(changed)), "{limits:?}");
    let (_, sessions) = shown(&["sessions"]);
    assert!(
        sessions.contains(&"3 native maker 0 away 0 - 0 0 -".to_owned()),
        "{sessions:?}"
    );
    let taker = "2 native taker 0 logged on 2 - 2 0 127.0.0.1:";
    assert!(sessions.iter().any(|line| line.starts_with(taker)), "{sessions:?}");
    let (_, orders) = shown(&["orders"]);
    let order = " 2 2 2 2 0 Buy Limit 42.18 10 0 Working since ";
    assert!(orders.len() == 3 && orders[2].contains(order), "{orders:?}");
    let (_, audit) = shown(&["audit"]);
    assert_eq!(audit[1], "shard 1: 1 open orders, nothing differs");
    assert_eq!(shown(&["killed", "firm"]).1, ["the kill switch is off"]);
    let refused = shown(&["kill", "account", "99"]);
    let reason = "tickgate: the gateway refused: the config has no account 99".to_owned();
    assert_eq!(refused, (Some(1), vec![reason]));
    assert_eq!(shown(&["roll", "tomorrow"]).0, Some(2), "wrong use");
}

#[test]
fn what_cannot_be_done_is_refused_with_its_reason() {
    let desk = Desk::new();
    for (arguments, reason) in [
        (&["kill", "account", "99"][..], "the config has no account 99"),
        (&["killed", "session", "77"], "the config has no session 77"),
    ] {
        let (is_done, text) = desk.ctl(arguments);
        assert!(
            !is_done && text.contains(r#"{"refused":{"#) && text.contains(reason),
            "{text}"
        );
    }
    // A second gateway does not take the socket away, and a socket that a killed one left is in nobody's way.
    let mut second = desk.market.start("second", &["gateway", "-c", "gateway.toml"]);
    assert!(!second.wait().success());
    desk.done(&["audit"]);
}

#[test]
fn links_are_listed_with_what_they_run_over_their_numbers_and_counters() {
    let mut desk = Desk::new();
    assert_eq!(desk.orders(), 2);
    let links = desk.done(&["links"]);
    let rows = links
        .lines()
        .filter(|line| line.starts_with(r#"{"link":{"#))
        .collect::<Vec<_>>();
    assert_eq!(rows.len(), 3, "a venue link of each shard, and a client's: {links}");
    for (row, shard) in [(rows[0], 0), (rows[2], 1)] {
        let peer = desk.market.venue(shard);
        let session = shard + 1;
        for part in [
            format!(
                r#"{{"link":{{"shard":{shard},"venue":"sim","client":null,"session":{session},"transport":"LTP","carrier":"UDP","state":"up","since":"#
            ),
            r#""last_down":null,"last_refused":null,"epoch":"#.to_owned(),
            format!(r#""peer":"{peer}","room":"#),
            r#""credits_used":1,"cancel_reserve":256,"#.to_owned(),
            r#""credits":null,"#.to_owned(),
            r#""next_send":2,"#.to_owned(),
            r#""peer_received":2,"#.to_owned(),
            r#""sent":1,"#.to_owned(),
            r#""forged":0,"#.to_owned(),
            r#""ups":1"#.to_owned(),
        ] {
            assert!(row.contains(&part), "{part} in {row}");
        }
    }
    let client = r#"{"link":{"shard":0,"venue":null,"client":5,"session":5,"transport":"LTP","carrier":"UDP","state":"listening","#;
    assert!(rows[1].starts_with(client), "{}", rows[1]);
    assert!(rows[1].contains(r#""peer":null,"#) && rows[1].contains(r#""credits_used":null,"cancel_reserve":null,"#));

    let (status, text) = desk.market.run(&["ctl", "-c", "gateway.toml", "links"]);
    assert!(status.success(), "{text}");
    assert!(text.contains("shard 1, venue sim: up since 20"), "{text}");
    assert!(
        text.contains("shard 0, client of session 5: listening since 20"),
        "{text}"
    );
    assert!(
        text.contains(" cancel_reserve=256\n") && text.contains(" replayed=0 "),
        "{text}"
    );
}
