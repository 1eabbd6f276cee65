//! What ends many orders at once.

use crate::fixture::*;
use orders::{Anomaly, ForVenue, KillScope, Orders};
use types::{
    CancelOrder, ClientOrderId, ExecReport, ExecType, InstrumentId, MassCancel, NewOrder, OrderId, Quantity, Reason,
    SessionId, TradingDay, VenueId,
};

/// Orders 1 (ALPHA) and 2 (BETA) of session 1, and order 1 (ALPHA) of session 2.
fn three() -> (Orders, [ForVenue<NewOrder>; 3]) {
    let mut orders = orders();
    let beta = NewOrder {
        instrument: BETA,
        ..new_order(2)
    };
    let other = NewOrder {
        session: SESSIONS[1],
        ..new_order(1)
    };
    let sent = [new_order(1), beta, other].map(|order| accepted(&mut orders, &order));
    (orders, sent)
}

/// The cancels that wait, of both venues.
fn cancels(orders: &mut Orders) -> Vec<ForVenue<CancelOrder>> {
    let mut cancels = Vec::new();
    for venue in [VenueId(0), VenueId(1)] {
        let waiting = orders.cancels_waiting(venue);
        let before = cancels.len();
        cancels.extend(std::iter::from_fn(|| orders.poll_cancel(NOW, venue)));
        assert_eq!(cancels.len() - before, waiting as usize);
    }
    orders.audit().unwrap();
    cancels
}

fn ids(cancels: &[ForVenue<CancelOrder>]) -> Vec<OrderId> {
    cancels.iter().map(|cancel| cancel.order_id).collect()
}

fn mass_cancel(id: u64, instrument: Option<InstrumentId>) -> MassCancel {
    MassCancel {
        client_order_id: ClientOrderId(id),
        session: SESSIONS[0],
        instrument,
    }
}

#[test]
fn a_mass_cancel_cancels_the_sessions_orders() {
    for (instrument, which) in [(None, &[0, 1][..]), (Some(BETA), &[1]), (Some(ALPHA), &[0])] {
        let (mut orders, sent) = three();
        let answer = orders.mass_cancel(&mass_cancel(3, instrument)).exec;
        assert_eq!(answer.exec_type, ExecType::MassCancelAccepted);
        assert_eq!(
            (answer.client_order_id, answer.session),
            (ClientOrderId(3), SESSIONS[0])
        );
        let expected: Vec<_> = which.iter().map(|&index| sent[index].order_id).collect();
        let cancels = cancels(&mut orders);
        assert_eq!(ids(&cancels), expected);
        let index = which[0];
        let report = venue_report(&sent[index], ExecType::Canceled, cancels[0].request.client_order_id);
        let mut outputs = Outputs::default();
        orders
            .on_venue_report(NOW, sent[index].venue, &report, &mut outputs)
            .unwrap();
        let exec = outputs.reports[0].exec;
        assert_eq!(
            (exec.exec_type, exec.reason),
            (ExecType::Canceled, Reason::MassCanceled)
        );
        assert_eq!(
            exec.orig_client_order_id,
            ClientOrderId(0),
            "no single request is answered"
        );
    }
}

#[test]
fn a_mass_cancel_that_cannot_be_is_refused() {
    let (mut orders, _) = three();
    for (request, reason) in [
        (mass_cancel(2, None), Reason::DuplicateClientOrderId),
        (mass_cancel(3, Some(InstrumentId(9))), Reason::UnknownInstrument),
        (
            MassCancel {
                session: SessionId(9),
                ..mass_cancel(4, None)
            },
            Reason::WrongSession,
        ),
    ] {
        let answer = orders.mass_cancel(&request).exec;
        assert_eq!((answer.exec_type, answer.reason), (ExecType::RequestRejected, reason));
    }
    assert_eq!(cancels(&mut orders), []);
}

#[test]
fn a_lost_session_is_cancelled_unless_it_chose_otherwise() {
    let (mut orders, sent) = three();
    orders.on_session_lost(SESSIONS[1]);
    assert_eq!(cancels(&mut orders), []);
    orders.on_session_lost(SESSIONS[0]);
    orders.on_session_lost(SESSIONS[0]);
    let cancels = cancels(&mut orders);
    assert_eq!(ids(&cancels), [sent[0].order_id, sent[1].order_id]);
    assert_eq!(orders.counters().forced_cancels, 2);
    let report = venue_report(&sent[0], ExecType::Canceled, cancels[0].request.client_order_id);
    let reports = on_report(&mut orders, &report).unwrap();
    assert_eq!(reports[0].reason, Reason::Disconnected);
    orders.on_session_lost(SessionId(9));
}

#[test]
fn a_kill_cancels_what_is_open_in_its_scope() {
    for (scope, which) in [
        (KillScope::Firm, &[0, 2, 1][..]),
        (KillScope::Account(PLAIN), &[0, 2, 1]),
        (KillScope::Account(TIGHT), &[]),
        (KillScope::Session(SESSIONS[1]), &[2]),
    ] {
        let (mut orders, sent) = three();
        orders.kill(scope).unwrap();
        let expected: Vec<_> = which.iter().map(|&index| sent[index].order_id).collect();
        assert_eq!(ids(&cancels(&mut orders)), expected, "{scope:?}");
    }
}

#[test]
fn cancels_leave_as_the_link_has_room_and_also_while_the_venue_is_down() {
    let (mut orders, sent) = three();
    orders.on_venue_down(VenueId(0));
    orders.kill(KillScope::Firm).unwrap();
    assert_eq!(orders.cancels_waiting(VenueId(0)), 2);
    assert_eq!(orders.poll_cancel(NOW, VenueId(0)).unwrap().order_id, sent[0].order_id);
    assert_eq!(orders.cancels_waiting(VenueId(0)), 1);
    // An order that ends meanwhile leaves the queue.
    let end = fill(&sent[2], sent[2].request.client_order_id, 100, 10);
    on_report(&mut orders, &end).unwrap();
    assert_eq!(orders.poll_cancel(NOW, VenueId(0)), None);
    assert_eq!(orders.poll_cancel(NOW, VenueId(9)), None);
    assert_eq!(orders.cancels_waiting(VenueId(9)), 0);
}

#[test]
fn a_clients_cancel_takes_the_place_of_one_that_waits() {
    let (mut orders, sent) = three();
    orders.mass_cancel(&mass_cancel(3, Some(ALPHA)));
    let request = cancel(&mut orders, &cancel_of(&new_order(1), 4)).unwrap();
    assert_eq!(cancels(&mut orders), []);
    let report = venue_report(&sent[0], ExecType::Canceled, request.request.client_order_id);
    let reports = on_report(&mut orders, &report).unwrap();
    assert_eq!(
        (reports[0].client_order_id, reports[0].reason),
        (ClientOrderId(4), Reason::Requested)
    );
}

/// Whether the client's cancel came before the kill or in the place of its own.
#[test]
fn an_order_whose_client_s_cancel_is_refused_is_cancelled_all_the_same_where_a_kill_wants_it() {
    for comes_first in [true, false] {
        let (mut orders, sent) = three();
        let ask = |orders: &mut Orders| cancel(orders, &cancel_of(&new_order(1), 4)).unwrap();
        let asked = if comes_first {
            let asked = ask(&mut orders);
            orders.kill(KillScope::Account(PLAIN)).unwrap();
            asked
        } else {
            orders.kill(KillScope::Account(PLAIN)).unwrap();
            ask(&mut orders)
        };
        cancels(&mut orders);
        let refused = ExecReport {
            reason: Reason::Venue,
            ..venue_report(&sent[0], ExecType::RequestRejected, asked.request.client_order_id)
        };
        let reports = on_report(&mut orders, &refused).unwrap();
        assert_eq!(
            (reports[0].exec_type, reports[0].client_order_id, reports[0].reason),
            (ExecType::RequestRejected, ClientOrderId(4), Reason::Venue)
        );
        let again = cancels(&mut orders);
        assert_eq!(ids(&again), [sent[0].order_id]);
        orders.audit().unwrap();
        let end = venue_report(&sent[0], ExecType::Canceled, again[0].request.client_order_id);
        let reports = on_report(&mut orders, &end).unwrap();
        assert_eq!(
            (reports[0].client_order_id, reports[0].reason),
            (ClientOrderId(1), Reason::Killed)
        );
    }
}

/// Who asked for nothing else than the client is not asked again.
#[test]
fn an_order_whose_client_s_cancel_is_refused_stays_where_nobody_else_wants_it_gone() {
    let (mut orders, sent) = three();
    let asked = cancel(&mut orders, &cancel_of(&new_order(1), 4)).unwrap();
    orders.kill(KillScope::Session(SESSIONS[1])).unwrap();
    assert_eq!(ids(&cancels(&mut orders)), [sent[2].order_id]);
    let refused = ExecReport {
        reason: Reason::Venue,
        ..venue_report(&sent[0], ExecType::RequestRejected, asked.request.client_order_id)
    };
    on_report(&mut orders, &refused).unwrap();
    assert_eq!(cancels(&mut orders), []);
}

#[test]
fn a_venue_that_refuses_our_own_cancel_is_counted_and_the_client_hears_nothing() {
    let (mut orders, sent) = three();
    orders.on_session_lost(SESSIONS[0]);
    let first = cancels(&mut orders);
    let refused = ExecReport {
        reason: Reason::Venue,
        ..venue_report(&sent[0], ExecType::RequestRejected, first[0].request.client_order_id)
    };
    assert_eq!(on_report(&mut orders, &refused), Err(Anomaly::CancelRefused));
    orders.on_session_lost(SESSIONS[0]);
    assert_eq!(ids(&cancels(&mut orders)), [sent[0].order_id], "it can be tried again");
}

#[test]
fn a_day_ends_its_orders_and_starts_numbers_and_limits_anew() {
    let (mut orders, _) = three();
    let shared = NewOrder {
        account: SHARED,
        ..new_order(3)
    };
    let fourth = accepted(&mut orders, &shared);
    on_report(&mut orders, &fill(&fourth, fourth.request.client_order_id, 100, 4)).unwrap();
    cancel(&mut orders, &cancel_of(&new_order(1), 4)).unwrap();

    let mut outputs = Outputs::default();
    orders.on_day_roll(NOW, TradingDay(20_260_105), &mut outputs);
    let told: Vec<_> = outputs
        .reports
        .iter()
        .map(|report| {
            (
                report.exec.exec_type,
                report.exec.session,
                report.exec.client_order_id.0,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (ExecType::Expired, SESSIONS[0], 1),
            (ExecType::RequestRejected, SESSIONS[0], 4),
            (ExecType::Expired, SESSIONS[0], 2),
            (ExecType::Expired, SESSIONS[0], 3),
            (ExecType::Expired, SESSIONS[1], 1),
        ]
    );
    assert!(
        outputs
            .reports
            .iter()
            .all(|report| report.exec.leaves == Quantity::ZERO)
    );
    // All of the shared limit is free: what was open at the end, then what had traded.
    outputs.released.retain(|&(account, _)| account == SHARED);
    assert_eq!(outputs.released, [(SHARED, 6_000_000), (SHARED, 4_000_000)]);
    assert_eq!((orders.open_orders(), orders.day()), (0, TradingDay(20_260_105)));
    assert_eq!(orders.exposure(PLAIN, ALPHA).unwrap_or_default().open_orders, 0);
    orders.audit().unwrap();

    let again = accepted(&mut orders, &new_order(1));
    assert!(again.order_id > fourth.order_id, "our numbers go on");

    let mut outputs = Outputs::default();
    orders.on_day_roll(NOW, TradingDay(20_260_105), &mut outputs);
    assert_eq!((outputs, orders.open_orders()), (Outputs::default(), 1));
}
