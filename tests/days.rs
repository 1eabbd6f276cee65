//! The roll of the trading day, at the exchange and at the gateway, whichever is first.

use crate::market::{Market, PATIENCE, Program};
use crate::trader::Trader;
use types::{ClientOrderId, Quantity, Reason, Side, TimeInForce, Timestamp};

const ALFA: u32 = 1;

/// The exchange begins a day, as it does when it starts with one.
fn roll_exchange(market: &Market, exchange: &mut Program, from: &str, to: &str) -> Program {
    exchange.stop();
    market.change(
        "exchange.toml",
        &format!("trading_day = {from}"),
        &format!("trading_day = {to}"),
    );
    market.exchange(&format!("exchange-{to}"))
}

fn roll_gateway(market: &Market, day: &str) {
    let (status, printed) = market.run(&["ctl", "-c", "gateway.toml", "roll", day]);
    assert!(status.success(), "{printed}");
}

fn with_control(market: &Market) {
    let config = format!("{}\n[control]\nsocket = \"control.sock\"\n", market.gateway_config());
    market.write("gateway.toml", &config);
}

/// One order of each time in force that rests: for the day, till it is cancelled, and till the end of time.
fn rest(maker: &mut Trader) -> [ClientOrderId; 3] {
    let numbers = [TimeInForce::Day, TimeInForce::GoodTillCancel, TimeInForce::GoodTillDate].map(|time_in_force| {
        maker.order_with(Side::Sell, ALFA, "101.40", |order| {
            order.time_in_force = time_in_force;
            if time_in_force == TimeInForce::GoodTillDate {
                order.terms.expires = Timestamp(1 << 62);
            }
        })
    });
    maker.wait("answers", |maker| {
        numbers.iter().all(|number| maker.orders.contains_key(number))
    });
    numbers
}

/// The two that live on trade what they have, and nothing else does.
fn trade_what_lives(maker: &mut Trader, taker: &mut Trader, [day, lives @ ..]: [ClientOrderId; 3]) {
    // The exchange may have come back a moment ago.
    let bought = loop {
        let number = taker.order_with(Side::Buy, ALFA, "101.40", |order| order.quantity = Quantity(30));
        taker.wait("an answer", Trader::is_answered);
        if taker.orders[&number].refused != Reason::VenueDown {
            break number;
        }
    };
    maker.wait("what lives on trades", |maker| {
        lives.iter().all(|number| maker.orders[number].leaves == 0)
    });
    assert_eq!(maker.orders[&day].traded, 0);
    assert!(lives.iter().all(|number| maker.orders[number].traded == 10));
    taker.wait("all that there was", |taker| taker.orders[&bought].traded == 20);
    taker.mass_cancel();
    taker.wait("nothing is left", |taker| taker.open() == 0);
}

#[test]
fn a_day_ends_at_exchange_and_gateway_in_either_order_with_every_order_told_once() {
    let market = Market::new(1, "ltp");
    with_control(&market);
    // However long the exchange is away.
    market.change(
        "exchange.toml",
        "dead_after_ms = 500\n",
        "dead_after_ms = 500\ncancel_on_disconnect = false\n",
    );
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let (mut maker, mut taker) = (
        Trader::new("maker", 3, market.native[0]),
        Trader::new("taker", 2, market.native[0]),
    );
    maker.connect();
    taker.connect();

    // The exchange is first: it says itself what ended.
    let orders = rest(&mut maker);
    let mut exchange = roll_exchange(&market, &mut exchange, "20261130", "20261201");
    maker.wait("the day order is over", |maker| maker.open() == 2);
    roll_gateway(&market, "20261201");
    trade_what_lives(&mut maker, &mut taker, orders);

    // The gateway is first: it sends nothing, and what the exchange says later of the order reaches no client.
    let orders = rest(&mut maker);
    roll_gateway(&market, "20261202");
    maker.wait("the day order is over", |maker| maker.open() == 2);
    let mut exchange = roll_exchange(&market, &mut exchange, "20261201", "20261202");
    trade_what_lives(&mut maker, &mut taker, orders);

    drop((maker, taker));
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
}

/// It says at logon which session it goes on with, as SoupBinTCP has it.
#[test]
fn the_order_client_goes_on_over_a_roll_and_a_restart_of_the_gateway() {
    /// More than it sends: it is stopped.
    const ORDERS_MAX: usize = 1_000_000;
    const ORDERS: usize = 50;
    let market = Market::with_history();
    with_control(&market);
    market.write("client-native.toml", &market.client_config(false, ORDERS_MAX));
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let feed = concat!(env!("CARGO_MANIFEST_DIR"), "/feeds/sample/sample.itch.gz");
    let history = market.history.to_string();
    let pace = ["--pace", "10000/s", "--passes", "0"];
    let replay = market.start(
        "replay",
        &[&["replay", feed, "--publish", &history][..], &pace].concat(),
    );
    let mut client = market.start("client", &["client", "-c", "client-native.toml"]);
    let mut orders = 0;
    let mut some_more = |client: &mut Program, market: &Market| {
        let start = std::time::Instant::now();
        let before = std::mem::replace(&mut orders, usize::MAX);
        while orders == usize::MAX {
            assert!(start.elapsed() < PATIENCE, "no orders come:\n{}", client.printed());
            std::thread::sleep(std::time::Duration::from_millis(50));
            let sent = market.orders_of_gateway(0).0.len();
            if sent >= before + ORDERS {
                orders = sent;
            }
        }
    };
    some_more(&mut client, &market);
    roll_gateway(&market, "20261201");
    some_more(&mut client, &market);
    gateway.stop();
    let mut gateway = market.gateway("gateway-again");
    some_more(&mut client, &market);
    // What it sent while the gateway went may have no answer.
    drop((client, replay));
    exchange.stop();
    gateway.stop();
    market.assert_replay_is_identical(0);
}
