//! A venue that has no stops, icebergs and pegged orders: the gateway stands in, with all programs running.

use crate::fix_client::{FixClient, value};
use crate::market::{Market, PATIENCE};
use crate::trader::Trader;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
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
    // Another stands at 101.20 for a time, and the pegged order behind it once it has followed. What is sold then meets both.
    let mut pause = Duration::from_millis(2);
    for round in 3.. {
        fix.send("D", &order(&format!("A-{round}"), "101.20", 10, ""));
        assert_eq!(value(&fix.receive(), 150), "0");
        std::thread::sleep(pause);
        maker.order_with(Side::Sell, ALFA, "101.20", |order| {
            order.quantity = Quantity(20);
            order.time_in_force = TimeInForce::ImmediateOrCancel;
        });
        maker.wait("an answer", Trader::is_answered);
        assert_eq!(value(&fix.receive(), 32), "10");
        std::thread::sleep(pause);
        taker.turn();
        if taker.orders[&peg].leaves == 0 {
            break;
        }
        pause *= 2;
        assert!(pause < PATIENCE, "it does not follow");
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

#[test]
fn recordings_join_orders_that_waited_and_that_were_held() {
    const BRVO: u32 = 2;
    let market = market();
    market.change(
        "gateway.toml",
        "user = \"taker\"\n",
        "user = \"taker\"\nself_match = \"cancel_oldest\"\n",
    );
    market.change(
        "gateway.toml",
        "[first_stage]\n",
        "[first_stage]\nown_cancel_wait_ms = 10_000\nwaiting_orders = 8\n",
    );
    let mut exchange = market.exchange_with("exchange", &["--record", "recording-exchange"]);
    let mut gateway = market.gateway_with("gateway", &["--record", "recording-gateway"]);
    let (mut maker, mut taker) = (trader(&market, "maker", 3), trader(&market, "taker", 2));

    // Sold to the second, who sets off the stop of the first, who then buys what is left.
    maker.order(Side::Sell, ALFA, "101.40");
    maker.order(Side::Sell, ALFA, "101.41");
    maker.wait("both rest", |maker| maker.accepted() == 2);
    let stop_at = |taker: &mut Trader, price: &str| {
        taker.order_with(Side::Buy, ALFA, price, |order| {
            order.order_type = OrderType::Stop;
            order.terms.stop_price = order.price;
            order.price = Price::NULL;
        })
    };
    let stop = stop_at(&mut taker, "101.40");
    taker.wait("it is held", Trader::is_answered);
    maker.order(Side::Buy, BRVO, "42.00");
    let mut fix = FixClient::new("TRADER", market.fix[0]);
    fix.log_on("");
    fix.send(
        "D",
        "11=A-1|1=1|55=ALFA|54=1|38=10|40=2|44=101.40|59=0|60=20261130-10:00:00|",
    );
    taker.wait("the stop trades", |taker| taker.traded() == 10);

    let iceberg = taker.order_with(Side::Sell, ALFA, "101.50", |order| {
        order.quantity = Quantity(12);
        order.terms.display = Quantity(5);
    });
    taker.wait("it is held", Trader::is_answered);
    maker.order_with(Side::Buy, ALFA, "101.50", |order| order.quantity = Quantity(12));
    taker.wait("it trades in three portions", |taker| taker.traded() == 22);

    // The first is cancelled, so that the second may go.
    let oldest = taker.order(Side::Sell, BRVO, "42.20");
    taker.wait("it rests", Trader::is_answered);
    let waited = taker.order(Side::Buy, BRVO, "42.20");
    let never_met = stop_at(&mut taker, "109.00");
    taker.wait("both are open", Trader::is_answered);
    exchange.stop();
    gateway.stop();

    let recordings = ["recording-exchange", "recording-gateway"];
    let (status, printed) = market.run(&[&["report"][..], &recordings, &["--out", "out"]].concat());
    assert!(status.success(), "{printed}");
    let [orders, children] = ["orders.csv", "children.csv"].map(|name| Table::read(&market.path("out").join(name)));
    for (number, fate, count) in [
        (stop, "filled", 1),
        (iceberg, "filled", 3),
        (oldest, "cancelled", 0),
        (waited, "open", 1),
        (never_met, "open", 0),
    ] {
        let number = number.to_string();
        let order = orders.row(|order| order["session"] == "2" && order["client_order_id"] == number);
        assert_eq!(
            (&*order["status"], order["children"].split_terminator(';').count()),
            (fate, count),
            "{order:?}"
        );
        for child in order["children"].split_terminator(';') {
            let child = children.row(|row| row["child_id"] == child);
            assert_eq!(child["order_id"], order["order_id"]);
            let time = |column: &str| child[column].parse::<u64>().expect("a time");
            assert!(
                order["gateway_received"].parse::<u64>().expect("a time") <= time("released"),
                "{order:?} {child:?}"
            );
            assert!(time("released") <= time("venue_sent"), "{child:?}");
            assert!(time("released") <= time("exchange_received"), "{child:?}");
            assert!(time("exchange_received") <= time("exchange_reported"), "{child:?}");
        }
    }
    assert_eq!(children.rows.len(), 5);
}

/// A file of a report.
pub(crate) struct Table {
    rows: Vec<BTreeMap<String, String>>,
}

impl Table {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a file of the report");
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
        let names: Vec<String> = lines.next().expect("names").collect();
        let rows = lines.map(|line| names.iter().cloned().zip(line).collect()).collect();
        Self { rows }
    }

    /// The one row that is wanted.
    pub(crate) fn row(&self, is_wanted: impl Fn(&BTreeMap<String, String>) -> bool) -> &BTreeMap<String, String> {
        let rows: Vec<_> = self.rows.iter().filter(|row| is_wanted(row)).collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0]
    }
}
