//! Orders of two clients that trade with each other inside the gateway, with all programs running.

use crate::fix_client::{FixClient, value};
use crate::held::Table;
use crate::market::Market;
use crate::trader::Trader;
use std::time::Duration;
use types::{Quantity, Reason, Side};

const ALFA: u32 = 1;

/// The FIX trader and the native taker cross; the maker does not.
fn market() -> Market {
    let market = Market::new(1, "ltp");
    for session in ["user = \"taker\"\n", "client_comp_id = \"TRADER\"\n"] {
        market.change("gateway.toml", session, &format!("{session}crossing = true\n"));
    }
    market.change(
        "gateway.toml",
        "[capacity]\n",
        // Longer than the test: what is to go to the exchange goes because it reaches the market, or by a replace.
        "[first_stage]\nheld_orders = 64\n[first_stage.crossing]\nsymbols = [\"ALFA\"]\nrest_ms = 600_000\n[capacity]\n",
    );
    market
}

fn trader(market: &Market, user: &'static str, session: u16) -> Trader {
    let mut trader = Trader::new(user, session, market.native[0]);
    trader.connect();
    trader
}

/// What a report says: 150, 32, 31, 151, and the fields of a trade inside.
fn told(message: &str) -> [&str; 7] {
    [150, 32, 31, 151, 29, 30, 851].map(|tag| value(message, tag))
}

#[test]
fn who_crosses_is_printed_and_that_nobody_can() {
    let market = market();
    let printed = || market.run(&["gateway", "-c", "gateway.toml", "--check"]);
    let (ended, text) = printed();
    assert!(
        ended.success() && text.contains("crossing: 1 instruments, 2 sessions of 2 owners\n"),
        "{text}"
    );
    market.change("gateway.toml", "symbols = [\"ALFA\"]", "symbols = []");
    let (ended, text) = printed();
    assert!(
        ended.success() && text.contains("crossing: 0 instruments, 2 sessions of 2 owners: nothing crosses"),
        "{text}"
    );
}

#[test]
fn two_clients_trade_inside_and_what_is_left_trades_at_the_exchange() {
    let market = market();
    let mut exchange = market.exchange_with("exchange", &["--record", "recording-exchange"]);
    let mut gateway = market.gateway_with("gateway", &["--record", "recording-gateway"]);
    let (mut maker, mut taker) = (trader(&market, "maker", 3), trader(&market, "taker", 2));
    let mut fix = FixClient::new("TRADER", market.fix[0]);
    fix.log_on("");
    maker.order(Side::Buy, ALFA, "100.50");
    maker.order(Side::Sell, ALFA, "101.50");
    maker.wait("both rest", |maker| maker.accepted() == 2);

    // Until the gateway has the book of the feed an order goes to the exchange.
    let sell =
        |id: u32, price: &str| format!("11={id}|1=1|55=ALFA|54=2|38=10|40=2|44={price}|59=0|60=20261130-10:00:00|");
    let mut id = 1;
    loop {
        fix.send("D", &sell(id, "101.00"));
        let new = fix.receive();
        assert_eq!(value(&new, 150), "0", "{new}");
        if value(&new, 58) == Reason::Crossing.text() {
            break;
        }
        assert!(id < 1_000, "the gateway hears no feed");
        fix.send(
            "F",
            &format!("11=9{id}|41={id}|55=ALFA|54=2|38=10|60=20261130-10:00:00|"),
        );
        assert_eq!(value(&fix.receive(), 150), "4");
        id += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    let went = id - 1;
    let buy = |taker: &mut Trader, lots: u64| {
        taker.order_with(Side::Buy, ALFA, "101.00", |order| order.quantity = Quantity(lots))
    };
    let first = buy(&mut taker, 4);
    taker.wait("it trades", |taker| taker.traded() == 4);
    assert_eq!(told(&fix.receive()), ["F", "4", "101", "6", "2", "XOFF", "1"]);
    // More than rests: what is left rests in its turn.
    let second = buy(&mut taker, 10);
    taker.wait("it trades", |taker| taker.traded() == 10);
    assert_eq!(told(&fix.receive()), ["F", "6", "101", "0", "2", "XOFF", "1"]);
    // This one reaches the best bid: four here, and six with the maker at the exchange.
    fix.send("D", &sell(id + 1, "100.40"));
    assert_eq!(value(&fix.receive(), 58), Reason::Crossing.text());
    assert_eq!(told(&fix.receive()), ["F", "4", "101", "6", "2", "XOFF", "2"]);
    assert_eq!(told(&fix.receive()), ["F", "6", "100.5", "0", "", "", ""]);
    taker.wait("it is filled", |taker| taker.traded() == 14);
    maker.wait("it trades", |maker| maker.traded() == 6);
    assert_eq!([first, second].map(|number| taker.orders[&number].leaves), [0, 0]);

    drop((maker, taker, fix));
    exchange.stop();
    gateway.stop();
    market.assert_replay_is_identical(0);
    let sent = market.requests_of_exchange();
    assert_eq!(sent.len(), 2 + went as usize + 1, "{sent:?}");
    assert_eq!(sent.last().map(|order| order.quantity), Some(Quantity(6)));

    let recordings = ["recording-exchange", "recording-gateway"];
    let (status, printed) = market.run(&[&["report"][..], &recordings, &["--out", "out"]].concat());
    assert!(status.success(), "{printed}");
    let orders = Table::read(&market.path("out").join("orders.csv"));
    for (number, fills, crossed) in [(first, "4@101", "4"), (second, "6@101;4@101", "10")] {
        let number = number.to_string();
        let order = orders.row(|order| order["session"] == "2" && order["client_order_id"] == number);
        let seen = ["status", "fills", "crossed_quantity", "children"].map(|column| &*order[column]);
        assert_eq!(seen, ["filled", fills, crossed, ""], "{order:?}");
    }
    let sold = |crossed: &str| orders.row(|order| order["session"] == "1" && order["crossed_quantity"] == crossed);
    assert_eq!(sold("10")["fills"], "4@101;6@101");
    assert_eq!(sold("4")["fills"], "4@101;6@100.5");
    assert_ne!(sold("4")["children"], "", "six lots went to the exchange");
}
