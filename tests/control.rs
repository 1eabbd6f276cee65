//! What an operator asks of a running gateway: it holds on every shard, over restarts, and it is in the journal.

use crate::market::{Market, Program};
use crate::trader::Trader;
use types::Side;

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

    /// What `tickgate ctl` printed, and whether it succeeded.
    fn ctl(&self, arguments: &[&str]) -> (bool, String) {
        let (status, text) = self.market.run(&[&["ctl", "-c", "gateway.toml"], arguments].concat());
        (status.success(), text)
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (is_done, text) = self.ctl(arguments);
        assert!(is_done && text.contains(r#"{"done":{"#), "{arguments:?}: {text}");
        text
    }

    /// An order in the instrument of each shard, and the answers to both. Gives how many of them were accepted.
    fn orders(&mut self) -> usize {
        let before = self.trader.accepted();
        self.trader.order(Side::Buy, 1, "101.37");
        self.trader.order(Side::Buy, 2, "42.18");
        self.trader.wait("answers", Trader::is_answered);
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

    desk.gateway.kill();
    desk.trader
        .wait("the end of its connection", |trader| !trader.is_connected());
    desk.gateway = desk.market.gateway("gateway-again");
    desk.trader.connect();
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
