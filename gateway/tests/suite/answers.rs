//! What a shard asks of the world is answered in its journal only where the answer is no. Each no belongs to one question, also
//! when others before it were answered yes and left no record.

use crate::first_stage::{OTHER, assert_replays, rest, two_venues};
use crate::fixture::*;
use crate::held::{cancel, plain_venue, price, stop};
use types::{ExecType, NewOrder, OrderTerms, Request};

#[test]
fn a_cancel_is_not_refused_in_a_replay_for_the_room_that_another_order_lacked() {
    let mut fixture = plain_venue();
    let far = OrderTerms {
        stop_price: price("101"),
        ..OrderTerms::NONE
    };
    fixture.native(&Request::New(stop(1)));
    fixture.native(&Request::New(NewOrder { terms: far, ..stop(2) }));
    fixture.shard.set_venue_room(VENUE, 8);
    fixture.trade_at("100.03");
    assert_eq!(fixture.sent().0, 0, "it is met and finds no room");
    let ended = fixture.native(&cancel(3, 2));
    assert_eq!(
        ended.iter().map(|report| report.exec_type).collect::<Vec<_>>(),
        [ExecType::Canceled]
    );
    fixture.shard.set_venue_room(VENUE, 64);
    assert!(fixture.shard.turn());
    assert_eq!(fixture.sent().0, 1);
    assert_replays(fixture);
}

#[test]
fn an_order_is_not_refused_in_a_replay_for_the_room_that_the_cancel_before_it_lacked() {
    let mut fixture = two_venues();
    rest(&mut fixture, "A-1");
    fixture.shard.set_venue_room(OTHER, 0);
    assert_eq!(fixture.native(&Request::New(buy(1))), []);
    assert_eq!(
        fixture.shard.shard().orders().waiting(),
        1,
        "it waits, and the cancel for room"
    );
    assert_replays(fixture);
}
