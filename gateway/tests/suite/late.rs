//! A venue's trade that is told after the roll of the day has ended its order: the client and whoever watches hear of it, also
//! when the roll was at a start of the gateway.

use crate::first_stage::assert_replays;
use crate::fix::{Logon, field, order};
use crate::fixture::*;
use gateway::control::{Action, Order};
use types::{ClientOrderId, ExecType, Quantity, Reason, Request, TradingDay};

/// Order A-1 of the FIX client and 1 of the native one at the venue, four lots of each traded.
fn two_orders() -> (Fixture, [ClientOrderId; 2]) {
    let mut fixture = Fixture::changed(&[WATCHER_PARTS]);
    fixture.fix(&Logon);
    fixture.watch();
    let number = |fixture: &Fixture| fixture.sent().1.expect("it went out").client_order_id();
    fixture.fix(&order("A-1", "ALFA"));
    let of_fix = number(&fixture);
    fixture.native(&Request::New(buy(1)));
    let of_native = number(&fixture);
    for number in [of_fix, of_native] {
        fixture.venue_about(number, ExecType::Fill, Reason::None, 4, 6, 4);
    }
    (fixture, [of_fix, of_native])
}

fn hush(fixture: &mut Fixture) {
    fixture.fix_messages();
    fixture.native_reports();
    fixture.messages_of(WATCHER);
}

/// 11, 150, 39, 32, 14, 151 and 58 of each execution report.
fn told(messages: &[String]) -> Vec<[&str; 7]> {
    let reports = messages.iter().filter(|message| field(message, 35) == Some("8"));
    let of = |message| [11, 150, 39, 32, 14, 151, 58].map(|tag| field(message, tag).unwrap_or_default());
    reports.map(|message| of(message)).collect()
}

#[test]
fn clients_and_whoever_watches_hear_of_it_and_the_new_day_counts_it() {
    let (mut fixture, [of_fix, of_native]) = two_orders();
    let roll = Order {
        operator: 1,
        number: 1,
        action: Action::Roll(TradingDay(20_261_201)),
    };
    fixture.shard.control(&roll);
    hush(&mut fixture);
    // Both numbers come again, for orders of the new day.
    fixture.fix(&order("A-1", "ALFA"));
    fixture.native(&Request::New(buy(1)));
    fixture.venue_about(of_fix, ExecType::Fill, Reason::None, 2, 4, 6);
    fixture.venue_about(of_fix, ExecType::Fill, Reason::None, 4, 0, 10);
    let text = Reason::DayEnded.text();
    let heard = [
        ["A-1", "F", "C", "2", "6", "0", text],
        ["A-1", "F", "2", "4", "10", "0", text],
    ];
    assert_eq!(told(&fixture.fix_messages()), heard);
    assert_eq!(told(&fixture.messages_of(WATCHER)), heard);
    fixture.venue_about(of_native, ExecType::Fill, Reason::None, 6, 0, 10);
    let [report] = fixture.native_reports()[..] else {
        panic!("one report")
    };
    assert_eq!(
        (report.exec_type, report.client_order_id, report.reason),
        (ExecType::Fill, ClientOrderId(1), Reason::DayEnded)
    );
    assert_eq!(
        [report.last_quantity, report.cumulative, report.leaves].map(|lots| lots.0),
        [6, 10, 0]
    );
    let orders = fixture.shard.shard().orders();
    let exposure = orders.exposure(types::AccountId(1), ALFA).expect("it traded");
    assert_eq!((exposure.bought, exposure.open_buy), (Quantity(12), Quantity(20)));
    orders.audit().expect("all is counted");
    assert_replays(fixture);
}

#[test]
fn what_a_venue_traded_while_the_gateway_was_away_is_told_after_a_start_with_the_next_day() {
    let (fixture, [of_fix, of_native]) = two_orders();
    let mut fixture = fixture.restart_with(&[WATCHER_PARTS, ("trading_day = 20261130", "trading_day = 20261201")]);
    fixture.fix(&Logon);
    hush(&mut fixture);
    fixture.venue_about(of_fix, ExecType::Fill, Reason::None, 6, 0, 10);
    fixture.venue_about(of_native, ExecType::Fill, Reason::None, 6, 0, 10);
    let text = Reason::DayEnded.text();
    assert_eq!(told(&fixture.fix_messages()), [["A-1", "F", "2", "6", "10", "0", text]]);
    let reports = fixture.native_reports();
    assert_eq!(
        reports.iter().map(|report| report.last_quantity.0).collect::<Vec<_>>(),
        [6]
    );
    let orders = fixture.shard.shard().orders();
    assert_eq!(
        orders.exposure(types::AccountId(1), ALFA).expect("it traded").bought,
        Quantity(12)
    );
    // A second roll is too late for it.
    fixture.shard.roll(TradingDay(20_261_202));
    fixture.venue_about(of_fix, ExecType::Fill, Reason::None, 1, 0, 11);
    assert_eq!(told(&fixture.fix_messages()), [[""; 7]; 0]);
    let anomalies = fixture
        .shard
        .shard()
        .orders()
        .counters()
        .anomalies(orders::Anomaly::TradeAfterEnd);
    assert_eq!(anomalies, 1);
    assert_replays(fixture);
}
