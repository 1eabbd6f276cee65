//! Trades that venues report after the roll of the day has ended their orders here.

use crate::fixture::*;
use orders::{Anomaly, ForVenue, OrderStatus, Orders, Report};
use types::{ExecReport, ExecType, NewOrder, Price, Quantity, Reason, TimeInForce, TradingDay, VenueId};

const DAYS: [TradingDay; 2] = [TradingDay(20_260_105), TradingDay(20_260_106)];

fn roll(orders: &mut Orders, day: TradingDay) -> Vec<Report> {
    let mut outputs = Outputs::default();
    orders.on_day_roll(NOW, day, &mut outputs);
    outputs.reports
}

fn late(orders: &mut Orders, sent: &ForVenue<NewOrder>, lots: u64) -> Result<Vec<Report>, Anomaly> {
    let mut outputs = Outputs::default();
    let report = fill(sent, sent.request.client_order_id, 100, lots);
    let result = orders.on_venue_report(NOW, sent.venue, &report, &mut outputs);
    orders.audit().unwrap();
    result.map(|_| outputs.reports)
}

/// What one report says: type, reason, lots of the trade, of all, open; and how the order stands.
fn essence(report: &Report) -> (ExecType, Reason, [u64; 3], OrderStatus) {
    let ExecReport {
        last_quantity,
        cumulative,
        leaves,
        ..
    } = report.exec;
    let lots = [last_quantity, cumulative, leaves].map(|lots| lots.0);
    (report.exec.exec_type, report.exec.reason, lots, report.status)
}

#[test]
fn a_trade_that_is_told_after_the_roll_counts_in_the_new_day_and_its_client_hears_of_it() {
    let mut orders = orders();
    let order = NewOrder {
        account: SHARED,
        ..new_order(7)
    };
    let sent = accepted(&mut orders, &order);
    let [first] = &late(&mut orders, &sent, 2).unwrap()[..] else {
        panic!("one report")
    };
    assert_eq!(first.exec.reason, Reason::None);
    let expired = roll(&mut orders, DAYS[0]);
    assert_eq!(
        essence(&expired[0]),
        (ExecType::Expired, Reason::DayEnded, [0, 2, 0], OrderStatus::Expired)
    );
    let told = late(&mut orders, &sent, 5).unwrap();
    assert_eq!(
        essence(&told[0]),
        (ExecType::Fill, Reason::DayEnded, [5, 7, 0], OrderStatus::Expired)
    );
    assert_eq!(
        (told[0].exec.order_id, told[0].exec.client_order_id),
        (sent.order_id, order.client_order_id)
    );
    assert_eq!(told[0].average_price(), Price(100 * TICK));
    let told = late(&mut orders, &sent, 3).unwrap();
    assert_eq!(
        essence(&told[0]),
        (ExecType::Fill, Reason::DayEnded, [3, 10, 0], OrderStatus::Filled)
    );
    // What was told before the roll is of the day before.
    let exposure = orders.exposure(SHARED, ALPHA).unwrap();
    assert_eq!((exposure.bought, exposure.open_orders), (Quantity(8), 0));
    // Eight lots of 100 at 1.00, in units of 1e-4.
    let account = orders.account_exposure(SHARED).unwrap();
    assert_eq!((account.used, account.held, account.open_orders), (8_000_000, 0, 0));
    assert_eq!(orders.counters().late_trades, 2);
    assert_eq!(
        late(&mut orders, &sent, 1),
        Err(Anomaly::Overfill),
        "there were no more lots"
    );
    roll(&mut orders, DAYS[1]);
    assert_eq!(orders.account_exposure(SHARED).unwrap().used, 0);
    assert_eq!(
        late(&mut orders, &sent, 1),
        Err(Anomaly::TradeAfterEnd),
        "two rolls are too many"
    );
}

#[test]
fn what_traded_late_counts_for_the_limit_of_a_position() {
    let mut orders = orders();
    let order = NewOrder {
        account: TIGHT,
        quantity: Quantity(20),
        price: Price(20 * TICK),
        instrument: BETA,
        ..new_order(1)
    };
    let sent = accepted(&mut orders, &order);
    roll(&mut orders, DAYS[0]);
    let price = Price(20 * TICK);
    let report = ExecReport {
        last_price: price,
        ..fill(&sent, sent.request.client_order_id, 100, 20)
    };
    on_report_of(&mut orders, sent.venue, &report).unwrap();
    let refusal = |lots| {
        let more = NewOrder {
            quantity: Quantity(lots),
            ..order
        };
        orders.check_risk(NOW, &more, &REFERENCE).err()
    };
    let left = TIGHT_POSITION - 20;
    assert_eq!([left + 1, left].map(refusal), [Some(Reason::PositionLimit), None]);
}

#[test]
fn a_replace_that_the_venue_took_before_the_roll_may_have_made_it_more() {
    let mut orders = orders();
    let order = new_order(1);
    let sent = accepted(&mut orders, &order);
    on_report(
        &mut orders,
        &venue_report(&sent, ExecType::New, sent.request.client_order_id),
    )
    .unwrap();
    let replace = replace(&mut orders, &replace_of(&order, 2, 100, 12)).unwrap();
    roll(&mut orders, DAYS[0]);
    let report = fill(&sent, replace.request.client_order_id, 100, 12);
    let told = on_report(&mut orders, &report).unwrap();
    assert_eq!((told[0].cumulative, told[0].quantity), (Quantity(12), Quantity(12)));
    assert_eq!(on_report(&mut orders, &report), Err(Anomaly::Overfill));
    orders.audit().unwrap();
}

#[test]
fn what_is_wrong_with_a_late_trade_is_counted_and_changes_nothing() {
    let mut orders = orders();
    let sent = accepted(&mut orders, &new_order(1));
    let till_cancelled = NewOrder {
        time_in_force: TimeInForce::GoodTillCancel,
        ..new_order(2)
    };
    let lives = accepted(&mut orders, &till_cancelled);
    roll(&mut orders, DAYS[0]);
    let good = fill(&sent, sent.request.client_order_id, 100, 10);
    let wrong = trades_that_cannot_be(&good).into_iter().chain([(
        venue_report(&sent, ExecType::Expired, sent.request.client_order_id),
        Anomaly::Late,
    )]);
    for (report, anomaly) in wrong {
        assert_eq!(on_report(&mut orders, &report), Err(anomaly), "{report:?}");
    }
    assert_eq!(on_report_of(&mut orders, VenueId(1), &good), Err(Anomaly::WrongVenue));
    assert_eq!(orders.exposure(PLAIN, ALPHA).unwrap().bought, Quantity(0));
    // One that lives on is an order as before.
    let told = late(&mut orders, &lives, 10).unwrap();
    assert_eq!(
        essence(&told[0]),
        (ExecType::Fill, Reason::None, [10, 10, 0], OrderStatus::Filled)
    );
    assert_eq!(
        late(&mut orders, &lives, 1),
        Err(Anomaly::TradeAfterEnd),
        "its end was told by the venue"
    );
    assert_eq!(orders.counters().late_trades, 0);
}

fn on_report_of(orders: &mut Orders, venue: VenueId, report: &ExecReport) -> Result<(), Anomaly> {
    orders
        .on_venue_report(NOW, venue, report, &mut Outputs::default())
        .map(|_| ())
}
