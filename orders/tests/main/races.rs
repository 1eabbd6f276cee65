//! What venues answer, in every order that can happen.

use crate::fixture::*;
use orders::{Anomaly, ForVenue, OrderState, Orders};
use types::{
    AccountId, ClientOrderId, ExecReport, ExecType, NewOrder, Notional, OrderId, OrderType, Price, Quantity, Reason,
    Side, TimeInForce, VenueId,
};

/// The firm with order 1 open and acknowledged.
fn working() -> (Orders, NewOrder, ForVenue<NewOrder>) {
    let mut orders = orders();
    let order = new_order(1);
    let sent = accepted(&mut orders, &order);
    on_report(
        &mut orders,
        &venue_report(&sent, ExecType::New, sent.request.client_order_id),
    )
    .unwrap();
    (orders, order, sent)
}

/// What a test looks at of each report.
fn essence(reports: &[ExecReport]) -> Vec<(ExecType, u64, u64, Reason, u64, u64)> {
    let essence = |report: &ExecReport| {
        (
            report.exec_type,
            report.client_order_id.0,
            report.orig_client_order_id.0,
            report.reason,
            report.leaves.0,
            report.cumulative.0,
        )
    };
    reports.iter().map(essence).collect()
}

#[test]
fn an_order_lives_and_is_filled() {
    let mut orders = orders();
    let sent = accepted(&mut orders, &new_order(1));
    let number = sent.request.client_order_id;
    let view = orders.order(sent.order_id).unwrap();
    assert_eq!((view.state, view.accepted), (OrderState::PendingNew, NOW));

    let new = on_report(&mut orders, &venue_report(&sent, ExecType::New, number)).unwrap();
    assert_eq!(essence(&new), [(ExecType::New, 1, 0, Reason::None, 10, 0)]);
    assert_eq!(
        (new[0].order_id, new[0].session, new[0].account),
        (sent.order_id, SESSIONS[0], PLAIN)
    );
    assert_eq!(orders.order(sent.order_id).unwrap().state, OrderState::Working);

    let first = on_report(&mut orders, &fill(&sent, number, 99, 4)).unwrap();
    assert_eq!(essence(&first), [(ExecType::Fill, 1, 0, Reason::None, 6, 4)]);
    assert_eq!(
        (first[0].last_price, first[0].last_quantity),
        (Price(99 * TICK), Quantity(4))
    );
    assert!(first[0].exec_id > new[0].exec_id);

    let mut outputs = Outputs::default();
    orders
        .on_venue_report(NOW, VenueId(0), &fill(&sent, number, 100, 6), &mut outputs)
        .unwrap();
    let last = outputs.reports[0];
    assert_eq!(last.exec.leaves, Quantity::ZERO);
    assert_eq!(last.traded, Notional(i128::from((4 * 99 + 6 * 100) * TICK)));
    assert_eq!(last.average_price(), Price(996 * TICK / 10));
    assert_eq!(orders.order(sent.order_id), None);
    assert_eq!(orders.open_orders(), 0);
    let exposure = orders.exposure(PLAIN, ALPHA).unwrap();
    assert_eq!((exposure.bought, exposure.open_buy), (Quantity(10), Quantity::ZERO));
}

#[test]
fn a_refusal_of_the_venue_ends_the_order_with_its_reason() {
    for (given, told) in [(Reason::BookFull, Reason::BookFull), (Reason::None, Reason::Venue)] {
        let mut orders = orders();
        let sent = accepted(&mut orders, &new_order(1));
        let report = ExecReport {
            reason: given,
            ..venue_report(&sent, ExecType::Rejected, sent.request.client_order_id)
        };
        let reports = on_report(&mut orders, &report).unwrap();
        assert_eq!(essence(&reports), [(ExecType::Rejected, 1, 0, told, 0, 0)]);
        assert_eq!(orders.open_orders(), 0);
        assert_eq!(on_report(&mut orders, &report), Err(Anomaly::Late));
    }
}

#[test]
fn what_an_immediate_order_could_not_trade_is_cancelled() {
    let mut orders = orders();
    let order = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        order_type: OrderType::Market,
        price: Price::NULL,
        ..new_order(1)
    };
    let sent = accepted(&mut orders, &order);
    let number = sent.request.client_order_id;
    // A trade that comes before the acknowledgement stands for it.
    on_report(&mut orders, &fill(&sent, number, 100, 4)).unwrap();
    let late = on_report(&mut orders, &venue_report(&sent, ExecType::New, number));
    assert_eq!(late, Err(Anomaly::Unexpected));
    let canceled = ExecReport {
        reason: Reason::Unfilled,
        ..venue_report(&sent, ExecType::Canceled, number)
    };
    let reports = on_report(&mut orders, &canceled).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Canceled, 1, 0, Reason::Unfilled, 0, 4)]);
}

#[test]
fn a_cancel_is_confirmed() {
    let (mut orders, order, sent) = working();
    let request = cancel(&mut orders, &cancel_of(&order, 2)).unwrap();
    assert_eq!(request.request.orig_client_order_id, sent.request.client_order_id);
    assert!(request.request.client_order_id > sent.request.client_order_id);
    assert_eq!(orders.order(sent.order_id).unwrap().state, OrderState::PendingCancel);
    // Until it is confirmed the order is a resting one.
    let sell = NewOrder {
        side: Side::Sell,
        ..new_order(3)
    };
    assert_eq!(enter(&mut orders, &sell, &REFERENCE).err(), Some(Reason::SelfMatch));
    let canceled = venue_report(&sent, ExecType::Canceled, request.request.client_order_id);
    let reports = on_report(&mut orders, &canceled).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Canceled, 2, 1, Reason::Requested, 0, 0)]);
    accepted(&mut orders, &sell);
}

#[test]
fn a_cancel_that_crosses_a_partial_fill_cancels_the_rest() {
    let (mut orders, order, sent) = working();
    let request = cancel(&mut orders, &cancel_of(&order, 2)).unwrap();
    let filled = on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 3)).unwrap();
    assert_eq!(essence(&filled), [(ExecType::Fill, 1, 0, Reason::None, 7, 3)]);
    let canceled = venue_report(&sent, ExecType::Canceled, request.request.client_order_id);
    let reports = on_report(&mut orders, &canceled).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Canceled, 2, 1, Reason::Requested, 0, 3)]);
}

#[test]
fn a_cancel_that_crosses_the_last_fill_is_too_late_and_is_answered_once() {
    let (mut orders, order, sent) = working();
    let request = cancel(&mut orders, &cancel_of(&order, 2)).unwrap();
    let reports = on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 10)).unwrap();
    assert_eq!(
        essence(&reports),
        [
            (ExecType::Fill, 1, 0, Reason::None, 0, 10),
            (ExecType::RequestRejected, 2, 1, Reason::TooLate, 0, 10)
        ]
    );
    let refused = venue_report(&sent, ExecType::RequestRejected, request.request.client_order_id);
    assert_eq!(on_report(&mut orders, &refused), Err(Anomaly::Late));
    // Also when the slot has a new owner by then.
    accepted(&mut orders, &new_order(3));
    assert_eq!(on_report(&mut orders, &refused), Err(Anomaly::Late));
    assert_eq!(orders.counters().anomalies(Anomaly::Late), 2);
}

#[test]
fn a_refused_cancel_leaves_the_order_and_another_may_follow() {
    let (mut orders, order, sent) = working();
    let request = cancel(&mut orders, &cancel_of(&order, 2)).unwrap();
    let refused = ExecReport {
        reason: Reason::TooLate,
        ..venue_report(&sent, ExecType::RequestRejected, request.request.client_order_id)
    };
    let reports = on_report(&mut orders, &refused).unwrap();
    assert_eq!(
        essence(&reports),
        [(ExecType::RequestRejected, 2, 1, Reason::TooLate, 10, 0)]
    );
    assert_eq!(orders.order(sent.order_id).unwrap().state, OrderState::Working);
    cancel(&mut orders, &cancel_of(&order, 3)).unwrap();
}

#[test]
fn a_replace_gives_the_order_its_new_number_and_terms() {
    let (mut orders, order, sent) = working();
    let request = replace(&mut orders, &replace_of(&order, 2, 101, 12)).unwrap();
    assert_eq!(request.order_id, sent.order_id);
    assert_eq!(request.request.orig_client_order_id, sent.request.client_order_id);
    assert_eq!(orders.order(sent.order_id).unwrap().state, OrderState::PendingReplace);
    let second = replace(&mut orders, &replace_of(&order, 3, 102, 12)).err();
    assert_eq!(second, Some(Reason::RequestPending));

    let number = request.request.client_order_id;
    let reports = on_report(&mut orders, &venue_report(&sent, ExecType::Replaced, number)).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Replaced, 2, 1, Reason::None, 12, 0)]);
    assert_eq!(
        (reports[0].price, reports[0].order_id),
        (Price(101 * TICK), sent.order_id)
    );

    let reports = on_report(&mut orders, &fill(&sent, number, 101, 2)).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Fill, 2, 0, Reason::None, 10, 2)]);
    let old = cancel(&mut orders, &cancel_of(&order, 3)).err();
    assert_eq!(old, Some(Reason::TooLate), "the old number is no order's any more");
    let renamed = NewOrder {
        client_order_id: ClientOrderId(2),
        ..order
    };
    let request = cancel(&mut orders, &cancel_of(&renamed, 4)).unwrap();
    assert_eq!(request.request.orig_client_order_id, number);
}

#[test]
fn a_replace_that_crosses_a_partial_fill_counts_it() {
    let (mut orders, order, sent) = working();
    let request = replace(&mut orders, &replace_of(&order, 2, 101, 12)).unwrap();
    let exposure = orders.exposure(PLAIN, ALPHA).unwrap();
    assert_eq!(exposure.open_buy, Quantity(12));
    // 10 lots at the old price and 2 at the new are less than 12 at the new.
    assert_eq!(exposure.open_buy_notional, Notional(12 * 101 * 100 * i128::from(TICK)));
    let reports = on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 4)).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Fill, 1, 0, Reason::None, 6, 4)]);
    let replaced = venue_report(&sent, ExecType::Replaced, request.request.client_order_id);
    let reports = on_report(&mut orders, &replaced).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Replaced, 2, 1, Reason::None, 8, 4)]);
    let exposure = orders.exposure(PLAIN, ALPHA).unwrap();
    assert_eq!((exposure.open_buy, exposure.bought), (Quantity(8), Quantity(4)));
}

#[test]
fn a_replace_to_what_has_traded_by_then_ends_the_order() {
    let (mut orders, order, sent) = working();
    let request = replace(&mut orders, &replace_of(&order, 2, 100, 5)).unwrap();
    on_report(&mut orders, &fill(&sent, sent.request.client_order_id, 100, 6)).unwrap();
    let replaced = venue_report(&sent, ExecType::Replaced, request.request.client_order_id);
    let reports = on_report(&mut orders, &replaced).unwrap();
    assert_eq!(essence(&reports), [(ExecType::Replaced, 2, 1, Reason::None, 0, 6)]);
    assert_eq!(orders.open_orders(), 0);
}

#[test]
fn a_refused_replace_leaves_the_order_as_it_was() {
    let (mut orders, order, sent) = working();
    let before = orders.exposure(PLAIN, ALPHA);
    let request = replace(&mut orders, &replace_of(&order, 2, 101, 12)).unwrap();
    let refused = ExecReport {
        reason: Reason::BookFull,
        ..venue_report(&sent, ExecType::RequestRejected, request.request.client_order_id)
    };
    let reports = on_report(&mut orders, &refused).unwrap();
    assert_eq!(
        essence(&reports),
        [(ExecType::RequestRejected, 2, 1, Reason::BookFull, 10, 0)]
    );
    assert_eq!(orders.exposure(PLAIN, ALPHA), before);
    cancel(&mut orders, &cancel_of(&order, 3)).unwrap();
}

#[test]
fn a_cancel_behind_a_replace_hits_whatever_becomes_of_the_replace() {
    for names in [1, 2] {
        let (mut orders, order, sent) = working();
        let replaced = replace(&mut orders, &replace_of(&order, 2, 101, 12)).unwrap();
        // The client may name the order by its number or by the one it will have.
        let named = NewOrder {
            client_order_id: ClientOrderId(names),
            ..order
        };
        let first = cancel(&mut orders, &cancel_of(&named, 3)).unwrap();
        assert_eq!(first.request.orig_client_order_id, replaced.request.client_order_id);

        // The venue refuses the replace, and then does not know the number that the cancel names.
        let refused = venue_report(&sent, ExecType::RequestRejected, replaced.request.client_order_id);
        let reports = on_report(&mut orders, &refused).unwrap();
        assert_eq!(
            essence(&reports),
            [(ExecType::RequestRejected, 2, 1, Reason::Venue, 10, 0)]
        );
        let missed = ExecReport {
            reason: Reason::UnknownOrder,
            ..venue_report(&sent, ExecType::RequestRejected, first.request.client_order_id)
        };
        assert_eq!(on_report(&mut orders, &missed).unwrap(), []);

        let again = cancel_of(&order, 4);
        assert_eq!(cancel(&mut orders, &again).err(), Some(Reason::RequestPending));
        let second = orders.poll_cancel(NOW, VenueId(0)).unwrap();
        assert_eq!(second.request.orig_client_order_id, sent.request.client_order_id);
        let canceled = venue_report(&sent, ExecType::Canceled, second.request.client_order_id);
        let reports = on_report(&mut orders, &canceled).unwrap();
        assert_eq!(essence(&reports), [(ExecType::Canceled, 3, 1, Reason::Requested, 0, 0)]);
    }
}

#[test]
fn an_end_that_nobody_asked_for_answers_all_that_is_pending() {
    for (exec_type, given, told) in [
        (ExecType::Canceled, Reason::None, Reason::Venue),
        (ExecType::Expired, Reason::None, Reason::DayEnded),
        (ExecType::Canceled, Reason::SelfMatch, Reason::SelfMatch),
    ] {
        let (mut orders, order, sent) = working();
        replace(&mut orders, &replace_of(&order, 2, 101, 12)).unwrap();
        cancel(&mut orders, &cancel_of(&order, 3)).unwrap();
        let report = ExecReport {
            reason: given,
            ..venue_report(&sent, exec_type, sent.request.client_order_id)
        };
        let reports = on_report(&mut orders, &report).unwrap();
        assert_eq!(
            essence(&reports),
            [
                (exec_type, 1, 0, told, 0, 0),
                (ExecType::RequestRejected, 2, 1, Reason::TooLate, 0, 0),
                (ExecType::RequestRejected, 3, 1, Reason::TooLate, 0, 0),
            ]
        );
    }
}

#[test]
fn a_request_that_reached_the_venue_twice_counts_once() {
    let (mut orders, order, sent) = working();
    let number = sent.request.client_order_id;
    let twice = |exec_type, number| ExecReport {
        reason: Reason::DuplicateClientOrderId,
        ..venue_report(&sent, exec_type, number)
    };
    assert_eq!(
        on_report(&mut orders, &twice(ExecType::Rejected, number)),
        Err(Anomaly::Duplicate)
    );
    let request = replace(&mut orders, &replace_of(&order, 2, 101, 12)).unwrap();
    let refused = twice(ExecType::RequestRejected, request.request.client_order_id);
    assert_eq!(on_report(&mut orders, &refused), Err(Anomaly::Duplicate));
    assert_eq!(orders.order(sent.order_id).unwrap().state, OrderState::PendingReplace);
    assert_eq!(orders.counters().anomalies(Anomaly::Duplicate), 2);
}

#[test]
fn a_report_that_cannot_be_is_counted_and_changes_nothing() {
    let (mut orders, _, sent) = working();
    let number = sent.request.client_order_id;
    let view = orders.order(sent.order_id);
    let good = fill(&sent, number, 100, 10);
    let with = |exec_type| venue_report(&sent, exec_type, number);
    let others = [
        (
            ExecReport {
                client_order_id: ClientOrderId(0),
                ..good
            },
            Anomaly::UnknownOrder,
        ),
        (
            ExecReport {
                client_order_id: ClientOrderId(1),
                ..good
            },
            Anomaly::UnknownOrder,
        ),
        (
            ExecReport {
                client_order_id: ClientOrderId(number.0 + (1 << 30)),
                ..good
            },
            Anomaly::UnknownOrder,
        ),
        (with(ExecType::New), Anomaly::Unexpected),
        (with(ExecType::Rejected), Anomaly::Unexpected),
        (with(ExecType::Replaced), Anomaly::Unexpected),
        (with(ExecType::RequestRejected), Anomaly::Unexpected),
        (with(ExecType::MassCancelAccepted), Anomaly::Unexpected),
    ];
    for (report, anomaly) in trades_that_cannot_be(&good).into_iter().chain(others) {
        let before = orders.counters().anomalies(anomaly);
        assert_eq!(on_report(&mut orders, &report), Err(anomaly), "{report:?}");
        assert_eq!(orders.counters().anomalies(anomaly), before + 1);
        assert_eq!(orders.order(sent.order_id), view);
    }
    let elsewhere = orders.on_venue_report(NOW, VenueId(1), &good, &mut Outputs::default());
    assert_eq!(elsewhere, Err(Anomaly::WrongVenue));
    on_report(&mut orders, &good).unwrap();
    assert_eq!(on_report(&mut orders, &good), Err(Anomaly::TradeAfterEnd));
}

#[test]
fn a_shared_limit_is_given_back_once_whatever_ends_the_order() {
    // 10 lots of 100 at 1.00, in units of 1e-4.
    const NEED: i64 = 10_000_000;
    let shared = NewOrder {
        account: SHARED,
        ..new_order(1)
    };
    type End = fn(&ForVenue<NewOrder>) -> Vec<ExecReport>;
    let ends: [(End, i64); 4] = [
        (
            |sent| vec![venue_report(sent, ExecType::Rejected, sent.request.client_order_id)],
            0,
        ),
        (
            |sent| vec![venue_report(sent, ExecType::Expired, sent.request.client_order_id)],
            0,
        ),
        // Better prices use up what was reserved: the limit never has to give more than it gave.
        (|sent| vec![fill(sent, sent.request.client_order_id, 90, 10)], NEED),
        (
            |sent| {
                let number = sent.request.client_order_id;
                vec![
                    fill(sent, number, 100, 3),
                    venue_report(sent, ExecType::Canceled, number),
                ]
            },
            3 * NEED / 10,
        ),
    ];
    for (end, used) in ends {
        let mut orders = orders();
        let checked = orders.check_risk(NOW, &shared, &REFERENCE).unwrap();
        let routed = orders.route(orders.screen(checked).unwrap()).unwrap();
        assert_eq!(routed.need().stake.notional, NEED);
        let sent = orders.accept(NOW, routed);
        let mut outputs = Outputs::default();
        for report in end(&sent) {
            orders.on_venue_report(NOW, VenueId(0), &report, &mut outputs).unwrap();
        }
        let given_back = if used == NEED {
            vec![]
        } else {
            vec![(SHARED, NEED - used)]
        };
        assert_eq!(outputs.released, given_back);
        let exposure = orders.account_exposure(SHARED).unwrap();
        assert_eq!((exposure.held, exposure.used), (0, used));
    }
    assert_eq!(orders().account_exposure(AccountId(1)), None);
}

#[test]
fn a_replace_reserves_the_worst_of_old_and_new_terms() {
    const LOT: i64 = 1_000_000;
    let order = NewOrder {
        account: SHARED,
        ..new_order(1)
    };
    // 10 lots at 1.00 are held. More lots at a lower price: the old 10 may trade first, then the added 5.
    for (ticks, lots, need) in [
        (100, 12, 2 * LOT),
        (110, 10, LOT),
        (80, 15, 4 * LOT),
        (90, 10, 0),
        (100, 5, 0),
    ] {
        let mut orders = orders();
        let sent = accepted(&mut orders, &order);
        let checked = orders
            .check_replace(NOW, &replace_of(&order, 2, ticks, lots), &REFERENCE)
            .unwrap();
        let screened = orders.screen_replace(checked).unwrap();
        assert_eq!(screened.need().stake.notional, need, "{lots} at {ticks}");
        let request = orders.accept_replace(NOW, screened);
        assert_eq!(orders.account_exposure(SHARED).unwrap().held, 10 * LOT + need);
        let report = venue_report(&sent, ExecType::Replaced, request.request.client_order_id);
        on_report(&mut orders, &report).unwrap();
        let exact = lots as i64 * ticks * LOT / 100;
        assert_eq!(orders.account_exposure(SHARED).unwrap().held, exact);
    }
}

#[test]
fn the_venues_number_is_kept() {
    let (orders, _, sent) = working();
    let view = orders.order(sent.order_id).unwrap();
    assert_eq!(view.venue_order_id, OrderId(sent.order_id.0 ^ 0xffff));
    assert_eq!(orders.iter().collect::<Vec<_>>(), [view]);
    assert!(orders.memory() > 0);
}
