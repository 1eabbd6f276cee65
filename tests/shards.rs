//! Two shards in one gateway: what is asked of one and belongs to the other crosses by numbered rings, once and both ways.

use crate::market::{Market, Program};
use crate::processes::{Victim, kill};
use crate::trader::Trader;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};
use types::{ExecType, Quantity, Reason, Side};

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
        Self::of(Market::new(2, "ltp"))
    }

    fn of(market: Market) -> Self {
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

/// Each shard alone would take nearly all of it.
#[test]
fn limits_of_a_session_hold_over_both_shards_and_are_used_fully() {
    let of_taker = "user = \"taker\"\naccounts = [2]\nowner = 2\nmax_open_orders = 2_000\n";
    let scene_with = |limits: &str| {
        let market = Market::new(2, "ltp");
        let limits = format!("user = \"taker\"\naccounts = [2]\nowner = 2\n{limits}");
        market.change("gateway.toml", of_taker, &limits);
        Scene::of(market)
    };
    let hammer = |scene: &mut Scene| {
        for _ in 0..10 {
            scene.here.order(Side::Buy, 1, "100");
            scene.here.order(Side::Buy, 2, "41");
        }
        scene.here.wait("all answers", |trader| trader.orders.len() == 20);
    };
    let mut scene = scene_with("max_open_orders = 12\n");
    hammer(&mut scene);
    let refused = scene
        .here
        .orders
        .values()
        .filter(|order| order.refused == Reason::MaxOpenOrders);
    assert_eq!((scene.here.open(), refused.count()), (12, 8));
    scene.end();

    let rate =
        "max_open_orders = 2_000\nmax_orders_per_second = 1\nmax_orders_at_once = 12\nrate_action = \"reject\"\n";
    let mut scene = scene_with(rate);
    let start = Instant::now();
    hammer(&mut scene);
    let more = usize::try_from(start.elapsed().as_secs()).expect("seconds");
    let refused = scene
        .here
        .orders
        .values()
        .filter(|order| order.refused == Reason::RateLimit);
    let (open, refused) = (scene.here.open(), refused.count());
    assert_eq!(open + refused, 20);
    assert!((12..=12 + more).contains(&open), "{open} in {more} s");
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

/// The instrument is on shard 1. Both clients that cross in it are on shard 0; the one on shard 1 makes the book and does not.
#[test]
fn two_clients_of_one_shard_trade_inside_on_another_and_what_is_left_goes_to_its_venue() {
    const BRVO: u32 = 2;
    let market = Market::new(2, "ltp");
    for user in ["taker", "maker"] {
        let user = format!("user = \"{user}\"\n");
        market.change("gateway.toml", &user, &format!("{user}crossing = true\n"));
    }
    market.change(
        "gateway.toml",
        "[capacity]\n",
        // Longer than the test, so that nothing goes to the exchange because it has rested.
        "[first_stage]\nheld_orders = 64\n[first_stage.crossing]\nsymbols = [\"BRVO\"]\nrest_ms = 600_000\n\
         [control]\nsocket = \"control.sock\"\n[capacity]\n",
    );
    let mut scene = Scene::of(market);
    let mut maker = Trader::new("maker", 3, scene.market.native[0]);
    maker.connect();
    let Scene {
        here, there, market, ..
    } = &mut scene;
    let bid = there.order(Side::Buy, BRVO, "42.10");
    there.order(Side::Sell, BRVO, "42.30");
    there.wait("the book", |there| there.accepted() == 2);
    let sell = |maker: &mut Trader| {
        let number = maker.order(Side::Sell, BRVO, "42.20");
        maker.wait("an answer", Trader::is_answered);
        number
    };
    // Until the gateway has the book of the feed an order goes to the exchange.
    let mut sold = sell(&mut maker);
    while !maker.orders[&sold].is_crossing {
        assert!(maker.requests() < 1_000, "the gateway hears no feed");
        maker.mass_cancel();
        maker.wait("its end", |maker| maker.open() == 0);
        std::thread::sleep(Duration::from_millis(10));
        sold = sell(&mut maker);
    }
    let went = market.orders_of_exchange().len();

    // Four of ten, then more than is left: what is left of that rests in its turn.
    let buy =
        |here: &mut Trader, lots| here.order_with(Side::Buy, BRVO, "42.20", |order| order.quantity = Quantity(lots));
    let bought = [4, 10].map(|lots| buy(here, lots));
    here.wait("ten inside", |here| here.traded() == 10);
    maker.wait("ten inside", |maker| maker.orders[&sold].leaves == 0);
    assert_eq!(maker.orders[&sold].crossed, 10);
    // One that reaches the best bid trades with what rests, and then at the exchange.
    let reaches = maker.order(Side::Sell, BRVO, "42.10");
    maker.wait("all of it", |maker| {
        maker.orders.get(&reaches).is_some_and(|order| order.leaves == 0)
    });
    here.wait("the rest", |here| here.orders[&bought[1]].leaves == 0);
    there.wait("six", |there| there.orders[&bid].traded == 6);
    let inside = |trader: &Trader, number| (trader.orders[&number].crossed, trader.orders[&number].traded);
    assert_eq!(inside(&maker, reaches), (4, 10));
    assert_eq!(bought.map(|number| inside(here, number)), [(4, 4), (10, 10)]);
    assert_eq!(market.orders_of_exchange().len(), went + 1);

    // One that rests goes with its session, and trades with nobody then.
    let rests = sell(&mut maker);
    assert!(maker.orders[&rests].is_crossing);
    maker.hang_up();
    maker.connect();
    maker.wait("its end", |maker| maker.open() == 0);
    buy(here, 10);
    here.wait("it rests alone", |here| here.is_answered() && here.open() == 1);
    let (status, audit) = market.run(&["ctl", "-c", "gateway.toml", "--json", "audit"]);
    assert!(status.success(), "{audit}");
    for open in [0, 3] {
        let line = format!(r#""open_orders":{open},"difference":null"#);
        assert!(audit.contains(&line), "{audit}");
    }
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
