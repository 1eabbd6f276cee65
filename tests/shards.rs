//! Two shards in one gateway: what is asked of one and belongs to the other crosses by numbered rings, once and both ways.

use crate::market::{Market, Program};
use crate::processes::{Victim, kill};
use crate::trader::Trader;
use std::collections::BTreeSet;
use std::fs;
use types::{ExecType, Reason, Side};

/// A gateway of two shards that runs. Instruments 1 and 3 are on shard 0, 2 and 4 on shard 1.
struct Scene {
    gateway: Program,
    exchange: Program,
    /// A trader on shard 0.
    here: Trader,
    /// A trader on shard 1.
    there: Trader,
    market: Market,
}

impl Scene {
    fn new() -> Self {
        let market = Market::new(2, "ltp");
        let mut scene = Self {
            exchange: market.exchange("exchange"),
            gateway: market.gateway("gateway"),
            here: Trader::new("taker", 2, market.native[0]),
            there: Trader::new("other", 4, market.native[1]),
            market,
        };
        scene.here.connect();
        scene.there.connect();
        scene
    }

    /// Everything stops in good order, and both journals hold.
    fn end(mut self) {
        self.gateway.stop();
        self.exchange.stop();
        for shard in 0..2 {
            self.market.assert_replay_is_identical(shard);
        }
    }
}

#[test]
fn orders_cross_to_the_shard_of_their_instrument_and_reports_come_back() {
    let mut scene = Scene::new();
    // Each trades on both shards, with the other.
    for _ in 0..50 {
        scene.here.order(Side::Buy, 1, "101.37");
        scene.there.order(Side::Sell, 1, "101.37");
        scene.there.order(Side::Buy, 2, "42.18");
        scene.here.order(Side::Sell, 2, "42.18");
    }
    scene.here.wait("all of its trades", |trader| trader.traded() == 1_000);
    scene.there.wait("all of its trades", |trader| trader.traded() == 1_000);
    // The instrument's shard alone decides: this one is outside the collar there.
    let number = scene.here.order(Side::Buy, 2, "99");
    scene
        .here
        .wait("a refusal", |trader| trader.orders.contains_key(&number));
    assert_eq!(scene.here.orders[&number].refused, Reason::PriceCollar);
    let ids = |trader: &Trader| {
        let shards = trader.orders.values().map(|order| order.order_id.0 >> 56);
        (shards.clone().min(), shards.max())
    };
    assert_eq!(ids(&scene.here), (Some(0), Some(1)), "both shards numbered its orders");
    scene.end();
}

#[test]
fn a_mass_cancel_reaches_every_shard_and_is_answered_once() {
    let mut scene = Scene::new();
    for instrument in [1, 2, 1, 2] {
        scene
            .here
            .order(Side::Buy, instrument, ["101", "42"][instrument as usize - 1]);
    }
    scene.here.wait("four orders", |trader| trader.accepted() == 4);
    scene.here.mass_cancel();
    scene.here.wait("four cancels", |trader| trader.open() == 0);
    assert_eq!(scene.here.mass_cancels.len(), 1);
    scene.end();
}

#[test]
fn orders_are_told_from_every_shard_and_their_end_once() {
    let mut scene = Scene::new();
    for (instrument, price) in [(1, "101"), (2, "42"), (1, "101"), (2, "42")] {
        scene.here.order(Side::Buy, instrument, price);
    }
    scene.here.wait("four orders", |trader| trader.accepted() == 4);
    scene.here.status(Side::Buy, 2);
    scene.here.wait("one answer", |trader| trader.statuses.len() == 1);
    assert_eq!(scene.here.statuses[0].leaves.0, 10, "an order of the other shard");
    scene.here.mass_status(7);
    scene.here.wait("an end", |trader| {
        trader
            .statuses
            .last()
            .is_some_and(|last| last.exec_type == ExecType::StatusEnd)
    });
    let told = &scene.here.statuses[1..];
    let (end, told) = told.split_last().expect("an end");
    assert_eq!(
        (end.client_order_id.0, end.quantity.0, end.reason),
        (7, 4, Reason::None)
    );
    let numbers = told
        .iter()
        .map(|status| status.client_order_id)
        .collect::<BTreeSet<_>>();
    assert_eq!((told.len(), numbers.len()), (4, 4));
    // Of two at once the second is refused and does not disturb the first.
    scene.here.mass_status(8);
    scene.here.mass_status(9);
    scene.here.wait("both ends", |trader| {
        let ends = trader
            .statuses
            .iter()
            .filter(|status| status.exec_type == ExecType::StatusEnd);
        ends.count() == 3
    });
    let end_of = |trader: &Trader, request| {
        let mut statuses = trader.statuses.iter();
        let is_end = |status: &&types::ExecReport| {
            status.exec_type == ExecType::StatusEnd && status.client_order_id.0 == request
        };
        statuses.find(is_end).map(|end| (end.quantity.0, end.reason))
    };
    assert_eq!(end_of(&scene.here, 8), Some((4, Reason::None)));
    // Unless the first was done already.
    let second = end_of(&scene.here, 9);
    assert!(
        matches!(second, Some((0, Reason::RequestPending) | (4, Reason::None))),
        "{second:?}"
    );
    scene.end();
}

#[test]
fn a_lost_session_has_its_orders_cancelled_on_every_shard() {
    let mut scene = Scene::new();
    for (instrument, price) in [(1, "101"), (2, "42")] {
        scene.here.order(Side::Buy, instrument, price);
    }
    scene.here.wait("two orders", |trader| trader.accepted() == 2);
    scene.here.hang_up();
    scene.here.connect();
    scene.here.wait("two cancels", |trader| trader.open() == 0);
    scene.end();
}

#[test]
fn more_mass_cancels_than_the_ring_holds_are_refused_and_break_nothing() {
    const COUNT: usize = 3_000;
    let mut scene = Scene::new();
    for _ in 0..COUNT {
        scene.here.mass_cancel();
    }
    scene
        .here
        .wait("an answer to each", |trader| trader.mass_cancels.len() == COUNT);
    for (instrument, price) in [(1, "101"), (2, "42")] {
        // The other shard may have much in its ring still.
        loop {
            let number = scene.here.order(Side::Buy, instrument, price);
            scene.here.wait("an answer", Trader::is_answered);
            match scene.here.orders[&number].refused {
                Reason::None => break,
                refused => assert_eq!(refused, Reason::ShardRingFull),
            }
        }
    }
    scene.end();
}

/// One shard has lost its journal, as a machine that fails may cut it off anywhere; the other has not.
#[test]
fn shards_whose_journals_contradict_each_other_do_not_start() {
    const COUNT: usize = 1_100;
    /// So many at once have room in the ring between the shards, however long the other shard does not look at it.
    const AT_ONCE: usize = 100;
    const GATEWAY: [&str; 3] = ["gateway", "-c", "gateway.toml"];
    let mut scene = Scene::new();
    for sent in (AT_ONCE..=COUNT).step_by(AT_ONCE) {
        for _ in 0..AT_ONCE {
            scene.here.order(Side::Buy, 2, "42");
        }
        scene.here.wait("an answer to each", |trader| trader.accepted() == sent);
    }
    scene.gateway.stop();
    scene.exchange.stop();
    let market = &scene.market;
    let (aside, lost) = (market.path("aside"), |shard: u8| {
        market.path(&format!("gateway-journal/shard-{shard}"))
    });
    let refused = |shard: u8, why: &str| {
        fs::rename(lost(shard), &aside).expect("a journal");
        let (ended, printed) = market.run(&GATEWAY);
        assert_eq!(ended.code(), Some(1), "{printed}");
        assert!(printed.contains(why), "{printed}");
        fs::remove_dir_all(lost(shard)).expect("a new one");
        fs::rename(&aside, lost(shard)).expect("the old one");
    };
    refused(
        0,
        "shard 0 has lost with its machine messages that it had sent to shard 1: its next is 1, and shard 1 wants 1",
    );
    refused(
        1,
        "shard 1 has lost with its machine what shard 0 had sent it, from message 1 on, and shard 0 keeps those from ",
    );
}

#[test]
fn what_was_on_the_way_between_shards_when_the_gateway_was_killed_arrives_once() {
    kill(2, "ltp", Victim::Gateway);
}

#[test]
fn an_exchange_that_is_killed_loses_nothing_of_two_shards() {
    kill(2, "ltp", Victim::Exchange);
}
