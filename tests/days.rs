//! The roll of the trading day, at the exchange and at the gateway, whichever is first.

use crate::market::{Market, Program};
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
    let config = format!("{}\n[control]\nsocket = \"control.sock\"\n", market.gateway_config());
    market.write("gateway.toml", &config);
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
