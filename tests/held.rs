//! A venue that has no stops, icebergs and pegged orders: the gateway stands in, with all programs running.

use crate::fix_client::{FixClient, value};
use crate::market::Market;
use crate::trader::Trader;
use std::time::Duration;
use types::{NewOrder, OrderTerms, OrderType, Price, Quantity, Reason, Side, TimeInForce};

const ALFA: u32 = 1;

/// A market whose exchange refuses every order with terms.
fn market() -> Market {
    let market = Market::new(1, "ltp");
    market.change("exchange.toml", "special_orders = 64", "special_orders = 0");
    market.change(
        "gateway.toml",
        "name = \"sim\"\n",
        "name = \"sim\"\norder_types = { stop = \"emulate\", stop_limit = \"emulate\", iceberg = \"emulate\", \
         peg_primary = \"emulate\", peg_mid = \"emulate\" }\n",
    );
    market.change(
        "gateway.toml",
        "[capacity]\n",
        "[first_stage]\nheld_orders = 64\npeg_interval_ms = 1\n[capacity]\n",
    );
    market
}

fn trader(market: &Market, user: &'static str, session: u16) -> Trader {
    let mut trader = Trader::new(user, session, market.native[0]);
    trader.connect();
    trader
}

fn pegged(order: &mut NewOrder) {
    order.order_type = OrderType::PegPrimary;
    order.price = Price::NULL;
}

#[test]
fn stops_icebergs_and_pegged_orders_trade_at_a_venue_that_has_none() {
    let market = market();
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let (mut maker, mut taker) = (trader(&market, "maker", 3), trader(&market, "taker", 2));
    let mut fix = FixClient::new("TRADER", market.fix[0]);
    fix.log_on("");

    // A stop that a trade of others sets off, and what it becomes trades.
    maker.order(Side::Sell, ALFA, "101.40");
    maker.order(Side::Sell, ALFA, "101.41");
    maker.wait("both rest", |maker| maker.accepted() == 2);
    let stop = taker.order_with(Side::Buy, ALFA, "101", |order| {
        order.order_type = OrderType::Stop;
        order.price = Price::NULL;
        order.terms.stop_price = Price::parse(b"101.40").expect("a price");
    });
    taker.wait("it is held", Trader::is_answered);
    assert_eq!(taker.traded(), 0);
    let order = |id: &str, price: &str, quantity: u32, more: &str| {
        format!("11={id}|1=1|55=ALFA|54=1|38={quantity}|40=2|44={price}|59=0|60=20261130-10:00:00|{more}")
    };
    fix.send("D", &order("A-1", "101.40", 10, ""));
    taker.wait("the stop trades", |taker| taker.traded() == 10);
    assert_eq!(taker.orders[&stop].leaves, 0);

    // An iceberg by FIX, of which the market sees five at a time.
    let mut told = vec![];
    while told.len() < 2 {
        told.push(fix.receive());
    }
    fix.send("D", &order("A-2", "101.30", 12, "111=5|"));
    let held = fix.receive();
    assert_eq!((value(&held, 150), value(&held, 39)), ("0", "0"), "{held}");
    assert_eq!(value(&held, 58), Reason::Held.text());
    maker.order_with(Side::Sell, ALFA, "101.30", |order| order.quantity = Quantity(12));
    let fills: Vec<String> = (0..3).map(|_| fix.receive()).collect();
    let seen = fills.iter().map(|fill| [32, 14, 151, 39].map(|tag| value(fill, tag)));
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [["5", "5", "7", "1"], ["5", "10", "2", "1"], ["2", "12", "0", "2"]]
    );

    // A pegged order goes where the best bid goes.
    maker.order(Side::Buy, ALFA, "101.00");
    maker.wait("it rests", Trader::is_answered);
    let peg = taker.order_with(Side::Buy, ALFA, "101", pegged);
    taker.wait("it is held", Trader::is_answered);
    fix.send("D", &order("A-3", "101.20", 10, ""));
    assert_eq!(value(&fix.receive(), 150), "0");
    // Both stand at 101.20 by now, or soon: what is sold there meets the pegged order behind the other.
    let mut sold = 0;
    while taker.orders[&peg].leaves > 0 {
        if maker.open() < 5 {
            maker.order_with(Side::Sell, ALFA, "101.20", |order| {
                order.quantity = Quantity(5);
                order.time_in_force = TimeInForce::ImmediateOrCancel;
            });
            sold += 1;
            maker.wait("an answer", Trader::is_answered);
        }
        assert!(sold < 2_000, "it does not follow");
        maker.turn();
        taker.turn();
        std::thread::sleep(Duration::from_millis(2));
    }

    drop((maker, taker, fix));
    gateway.stop();
    exchange.stop();
    let sent = market.requests_of_exchange();
    assert!(sent.iter().all(|order| order.terms == OrderTerms::NONE), "{sent:?}");
    assert!(
        sent.iter()
            .all(|order| matches!(order.order_type, OrderType::Market | OrderType::Limit))
    );
    market.assert_replay_is_identical(0);
}
