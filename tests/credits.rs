//! The exchange grants open orders, the gateway keeps to it, and another grant holds once the exchange says so.

use crate::market::Market;
use crate::trader::Trader;
use std::fs;
use types::{Reason, Side};

#[test]
fn the_gateway_keeps_to_what_the_exchange_grants_over_restarts_of_both() {
    let market = Market::new(1, "ltp");
    grant(&market, None, 3);
    let gateway = fs::read_to_string(market.path("gateway.toml")).expect("a config");
    let obliged = gateway.replace("name = \"sim\"", "name = \"sim\"\ngrants_open_orders = true");
    market.write("gateway.toml", &obliged);
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    gateway.wait_for("venue grants open orders");
    let mut trader = Trader::new("taker", 2, market.native[0]);
    trader.connect();
    assert_eq!(accepted(&mut trader, 5), 3);

    // Fewer than are open: they stay, and nothing new goes.
    exchange.kill();
    gateway.wait_for("venue link is down");
    grant(&market, Some(3), 1);
    let mut exchange = market.exchange("exchange-again");
    gateway.wait_for_times("venue grants open orders", 2);
    assert_eq!(accepted(&mut trader, 2), 0);

    // The gateway knows what it was granted before its link is up again.
    gateway.kill();
    let mut gateway = market.gateway("gateway-again");
    trader.hang_up();
    trader.connect();
    trader.wait("the end of all orders", |trader| trader.open() == 0);
    assert_eq!(accepted(&mut trader, 2), 1);
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
}

/// Sends so many orders that rest, and counts those that were accepted; the others have the reason.
fn accepted(trader: &mut Trader, count: usize) -> usize {
    let before = trader.accepted();
    for _ in 0..count {
        trader.order(Side::Buy, 1, "100");
    }
    trader.wait("an answer to each", |trader| {
        trader.orders.len() as u64 == trader.requests()
    });
    let mut refused = trader.orders.values().filter(|order| !order.is_accepted());
    assert!(refused.all(|order| order.refused == Reason::NoVenueSlot));
    trader.accepted() - before
}

/// What the exchange grants from its next start on.
fn grant(market: &Market, before: Option<u32>, slots: u32) {
    let config = fs::read_to_string(market.path("exchange.toml")).expect("a config");
    let line = |slots: u32| format!("open_orders_max = {slots}\n");
    let config = match before {
        Some(before) => config.replace(&line(before), &line(slots)),
        None => format!("{config}{}", line(slots)),
    };
    market.write("exchange.toml", &config);
}
