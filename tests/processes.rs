//! The program as a user runs it, a process a part: a recording becomes a report, and whatever is killed comes back with
//! nothing lost and nothing doubled.

use crate::market::{Hosts, LINKED, Market, Program, distinct};
use crate::trader::Trader;
use std::collections::BTreeSet;
use types::{ClientOrderId, Side};

/// Orders of each trader before the kill, around it, and after it.
pub(crate) const ORDERS_A_PHASE: usize = 300;

#[test]
fn a_run_of_processes_becomes_a_report_that_accounts_for_every_order() {
    let market = Market::with_history();
    market.write("client-fix.toml", &market.client_config(true, 300));
    market.write("client-native.toml", &market.client_config(false, 300));
    let mut exchange = market.exchange_with("exchange", &["--record", "recording-exchange"]);
    let mut gateway = market.gateway_with("gateway", &["--record", "recording-gateway"]);
    let feed = concat!(env!("CARGO_MANIFEST_DIR"), "/feeds/sample/sample.itch.gz");
    let history = market.history.to_string();
    let replay = market.start(
        "replay",
        &[
            "replay",
            feed,
            "--publish",
            &history,
            "--pace",
            "10000/s",
            "--passes",
            "0",
        ],
    );
    let client = |name: &str| {
        let (config, recording) = (format!("{name}.toml"), format!("recording-{name}"));
        market.start(name, &["client", "-c", &config, "--record", &recording])
    };
    let mut clients = [client("client-fix"), client("client-native")];
    for client in &mut clients {
        let status = client.wait();
        assert!(status.success(), "{}", client.printed());
        assert!(client.printed().contains("300 sent = "), "{}", client.printed());
    }
    drop(replay);
    exchange.stop();
    gateway.stop();

    let recordings = [
        "recording-exchange",
        "recording-gateway",
        "recording-client-fix",
        "recording-client-native",
    ];
    let (status, printed) = market.run(&[&["report"][..], &recordings, &["--out", "out"]].concat());
    assert!(status.success(), "{printed}");
    for file in [
        "tickgate-report.html",
        "tickgate-report.json",
        "orders.csv",
        "children.csv",
    ] {
        assert!(market.path("out").join(file).is_file(), "{file} is written");
    }
    market.assert_replay_is_identical(0);
}

#[test]
fn gateway_and_exchange_take_turns_in_one_thread() {
    let market = Market::new(1, "ltp");
    let mut gateway = market.gateway_with("gateway", &["--exchange", "exchange.toml"]);
    let mut maker = Trader::new("maker", 3, market.native[0]);
    maker.connect();
    for _ in 0..10 {
        maker.order(Side::Sell, 1, "101.37");
    }
    maker.wait("its answers", Trader::is_answered);
    assert_eq!(maker.open(), 10, "the exchange beside the gateway accepted all");
    gateway.stop();
    market.assert_replay_is_identical(0);
}

#[test]
fn a_gateway_that_is_killed_comes_back_with_every_order_once_over_ltp() {
    kill(1, "ltp", Victim::Gateway);
}

#[test]
fn a_gateway_that_is_killed_comes_back_with_every_order_once_over_tcp() {
    kill(1, "tcp", Victim::Gateway);
}

#[test]
fn a_gateway_that_is_killed_comes_back_with_every_order_once_over_rocev2() {
    kill(1, "roce", Victim::Gateway);
}

#[test]
fn an_exchange_that_is_killed_comes_back_with_every_order_once_over_ltp() {
    kill(1, "ltp", Victim::Exchange);
}

#[test]
fn an_exchange_that_is_killed_comes_back_with_every_order_once_over_tcp() {
    kill(1, "tcp", Victim::Exchange);
}

#[test]
fn an_exchange_that_is_killed_comes_back_with_every_order_once_over_rocev2() {
    kill(1, "roce", Victim::Exchange);
}

#[test]
fn a_gateway_that_is_killed_has_every_order_of_a_client_over_a_link_once() {
    kill_linked(Victim::Gateway);
}

#[test]
fn a_client_over_a_link_that_is_killed_comes_back_with_every_order_once() {
    kill_linked(Victim::Taker);
}

#[test]
fn a_client_over_a_link_that_loses_its_machine_gets_every_report_once() {
    kill_linked(Victim::TakersMachine);
}

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Victim {
    Gateway,
    Exchange,
    /// Of a taker over a link.
    Taker,
    /// The same, and half of what it had received is lost.
    TakersMachine,
}

/// Two traders that trade with each other, and all that stands between them.
pub(crate) struct Scene {
    pub(crate) exchange: Program,
    pub(crate) gateway: Program,
    /// On shard 0.
    taker: Trader,
    /// On the last shard, as is the instrument: with two shards every order and report of the taker crosses.
    maker: Trader,
    /// Behind the programs, whose logs are in its folder when they are dropped.
    pub(crate) market: Market,
}

/// Kills one in mid-flow, brings it back, and compares what everyone knows in the end.
pub(crate) fn kill(shards: usize, transport: &'static str, victim: Victim) {
    kill_over(Market::new(shards, transport), victim);
}

/// The same in a market whose configs somebody has changed.
pub(crate) fn kill_over(market: Market, victim: Victim) {
    let taker = Trader::new("taker", 2, market.native[0]);
    Scene::new(market, taker).kill(victim);
}

/// The same, with the exchange in another network namespace.
pub(crate) fn kill_in(hosts: Hosts, transport: &'static str, victim: Victim) {
    kill_over(Market::in_namespaces(hosts, transport), victim);
}

/// The same with a taker over a link: nothing that it sends is lost, whatever happens.
fn kill_linked(victim: Victim) {
    let market = Market::new(1, "ltp");
    let taker = Trader::linked("linked", LINKED, market.client_link);
    let taker = Scene::new(market, taker).kill(victim);
    assert_eq!(
        taker.orders.len() as u64 + 1,
        taker.requests(),
        "all orders and a mass cancel"
    );
}

impl Scene {
    pub(crate) fn new(market: Market, taker: Trader) -> Self {
        let last = market.shards - 1;
        let (user, session) = [("maker", 3), ("other", 4)][last];
        Self {
            exchange: market.exchange("exchange"),
            gateway: market.gateway("gateway"),
            taker,
            maker: Trader::new(user, session, market.native[last]),
            market,
        }
    }

    /// Kills one in mid-flow, brings it back, and compares what everyone knows in the end. Gives the taker.
    fn kill(mut self, victim: Victim) -> Trader {
        let scene = &mut self;
        scene.begin();
        // In mid-flow: orders before the kill have no answer yet, and more follow it without a look at what comes back.
        scene.send(ORDERS_A_PHASE / 2);
        match victim {
            Victim::Gateway => scene.gateway.kill(),
            Victim::Exchange => scene.exchange.kill(),
            Victim::Taker => scene.taker.restart(),
            Victim::TakersMachine => scene.taker.restart_elsewhere(),
        }
        scene.send(ORDERS_A_PHASE / 2);
        scene.come_back(victim, 1);
        let traded_before = scene.maker.traded();
        scene.trade(ORDERS_A_PHASE);
        self.end(victim, traded_before)
    }

    /// The traders connect, and trade for a while.
    pub(crate) fn begin(&mut self) {
        self.taker.connect();
        self.maker.connect();
        self.trade(ORDERS_A_PHASE);
        self.taker
            .wait("some answers", |taker| taker.orders.len() > ORDERS_A_PHASE / 2);
    }

    /// Whoever was killed starts again, for the `times`-th time, and the others find it.
    pub(crate) fn come_back(&mut self, victim: Victim, times: usize) {
        let shards = self.market.shards;
        match victim {
            Victim::Gateway => {
                self.taker
                    .wait("the end of its connection", |taker| !taker.is_connected());
                self.maker
                    .wait("the end of its connection", |maker| !maker.is_connected());
                self.gateway = self.market.gateway(&format!("gateway-{times}"));
                self.taker.connect();
                self.maker.connect();
            }
            Victim::Exchange => {
                // The gateway tells the first few of many ups and downs, and then holds lines back.
                self.exchange = self.market.exchange(&format!("exchange-{times}"));
                self.exchange.wait_for_times("link is up", shards);
            }
            Victim::Taker | Victim::TakersMachine => self.taker.connect(),
        }
    }

    /// How much the maker has traded so far.
    pub(crate) fn traded(&self) -> u64 {
        self.maker.traded()
    }

    /// Each trader sends so many orders at one price, and does not look at what comes back.
    pub(crate) fn send(&mut self, count: usize) {
        let (instrument, price) = [(1, "101.37"), (2, "42.18")][self.market.shards - 1];
        for _ in 0..count {
            self.taker.order(Side::Buy, instrument, price);
            self.maker.order(Side::Sell, instrument, price);
        }
    }

    /// The same, looking now and then.
    pub(crate) fn trade(&mut self, count: usize) {
        for _ in 0..count / 10 {
            self.send(10);
            self.taker.turn();
            self.maker.turn();
        }
    }

    /// What is left is cancelled, everything stops, and all that anyone knows is compared.
    pub(crate) fn end(mut self, victim: Victim, traded_before: u64) -> Trader {
        for trader in [&mut self.taker, &mut self.maker] {
            trader.wait("an answer to its last order", Trader::is_answered);
        }
        // One that the gateway refuses is answered before those that are on their way to the exchange.
        let shards = 0..self.market.shards;
        let taken = shards.flat_map(|shard| self.market.orders_of_gateway(shard).0);
        let taken = taken.collect::<Vec<_>>();
        for trader in [&mut self.taker, &mut self.maker] {
            trader.wait("an answer to each order", |trader| {
                let mut own = taken.iter().filter(|(session, _)| *session == trader.session());
                own.all(|(_, number)| trader.orders.contains_key(number))
            });
            trader.mass_cancel();
            trader.wait("the mass cancel's answer", |trader| trader.mass_cancels.len() == 1);
        }
        // One may wait for a trade of the other, so both turn.
        for _ in 0..2 {
            self.taker.wait("the end of every order", |taker| taker.open() == 0);
            self.maker.wait("the end of every order", |maker| maker.open() == 0);
        }
        self.gateway.stop();
        self.exchange.stop();
        let Self {
            market, taker, maker, ..
        } = self;
        assert!(maker.traded() > traded_before, "they trade again after the restart");
        assert_eq!(taker.traded(), maker.traded(), "each trade has two sides");

        let (mut taken, mut sent) = (Vec::new(), Vec::new());
        for shard in 0..market.shards {
            let of_shard = market.orders_of_gateway(shard);
            taken.extend(of_shard.0);
            sent.extend(of_shard.1);
            market.assert_replay_is_identical(shard);
        }
        for trader in [&taker, &maker] {
            let of_session = taken.iter().filter(|(session, _)| *session == trader.session());
            let numbers = of_session.map(|&(_, number)| number).collect::<Vec<_>>();
            let answered = trader.orders.keys().copied().collect::<BTreeSet<_>>();
            let taken = distinct(&numbers);
            let difference = answered.symmetric_difference(&taken).collect::<Vec<_>>();
            assert_eq!(
                difference,
                [&ClientOrderId(0); 0],
                "whatever the gateway took has an answer"
            );
        }
        let accepted = [&taker, &maker]
            .iter()
            .flat_map(|trader| trader.orders.values())
            .filter(|order| order.is_accepted())
            .map(|order| ClientOrderId(order.order_id.0))
            .collect::<BTreeSet<_>>();
        let (sent, received) = (distinct(&sent), distinct(&market.orders_of_exchange()));
        let difference = sent.symmetric_difference(&received).collect::<Vec<_>>();
        assert_eq!(difference, [&ClientOrderId(0); 0], "the exchange has each order once");
        assert!(
            accepted.is_subset(&received),
            "the exchange has what traders believe it has"
        );
        match victim {
            // Nobody refuses while the gateway is away: what it did not take was never sent on. Once it is back the exchange
            // may have too many reports for it.
            Victim::Gateway | Victim::Taker | Victim::TakersMachine => {
                assert_eq!(accepted.len() + market.refused_by_exchange(), received.len());
            }
            // The exchange itself may refuse what came after its link was lost, and says so.
            Victim::Exchange => assert!(accepted.len() > ORDERS_A_PHASE),
        }
        taker
    }
}
