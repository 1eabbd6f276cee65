//! One shard of two, the other shard's ends of the rings in the test's hands: what is told it, and in which order.

use crate::cross::{ACCOUNTS, buys, crossing_with, sells, told};
use crate::first_stage::assert_replays;
use crate::fix::field;
use crate::fixture::*;
use gateway::harness::Told;
use orders::{AccountPlace, Need, Places, SessionPlace, SessionStake, Stake};
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecType, InstrumentId, MassCancel, NewOrder, Price, Quantity,
    Reason, ReplaceOrder, Request, SessionId, ShardId, Side,
};

const OTHER: ShardId = ShardId(1);
const BETA: InstrumentId = InstrumentId(2);
/// Native sessions of the other shard, with account 2 and account 1.
const AWAY: SessionId = SessionId(3);
const AWAY_TOO: SessionId = SessionId(4);

/// A second shard, with BETA and native clients of its own.
const PARTS_OF_TWO: [(&str, &str); 5] = [
    (
        "[[venues]]\n",
        "[[shards]]\nidle = \"spin\"\nfix_listen = \"127.0.0.1:0\"\nnative_listen = \"127.0.0.1:0\"\n[[venues]]\n",
    ),
    (
        "[[accounts]]\nid = 2\n",
        "[[venues.links]]\nshard = 1\ntransport = \"ltp\"\nsession = 10\npeer = \"127.0.0.1:9\"\nwindow_messages = 64\n\
         cancel_reserve_messages = 8\nheartbeat_ms = 10\ndead_after_ms = 100\n[[accounts]]\nid = 2\n",
    ),
    (
        "[risk.classes.default]",
        "[[sessions]]\nid = 3\nprotocol = \"native\"\nshard = 1\nuser = \"away\"\naccounts = [2]\nowner = 3\n\
         crossing = true\nmax_open_orders = 100\nresend_messages = 256\nsend_buffer_bytes = 65_536\n\
         [[sessions]]\nid = 4\nprotocol = \"native\"\nshard = 1\nuser = \"away2\"\naccounts = [1]\nowner = 4\n\
         crossing = true\nmax_open_orders = 100\nresend_messages = 256\nsend_buffer_bytes = 65_536\n\
         [risk.classes.default]",
    ),
    ("crossing_messages = 64", "crossing_messages = 256"),
    (
        "default,0,sim\n2,BETA,0.01,100,50,default,0,sim",
        "default,0,sim\n2,BETA,0.01,100,50,default,1,sim",
    ),
];

fn two_shards() -> Fixture {
    crossing_with(&PARTS_OF_TWO)
}

/// A native order for an instrument of the other shard.
fn beta(number: u64) -> NewOrder {
    NewOrder {
        instrument: BETA,
        price: Price::parse(b"50").expect("a price"),
        ..buy(number)
    }
}

fn mass_cancel(number: u64) -> Request {
    Request::MassCancel(MassCancel {
        client_order_id: ClientOrderId(number),
        instrument: None,
        session: NATIVE,
    })
}

/// All that the other shard finds in its ring.
fn taken(fixture: &mut Fixture) -> Vec<Told> {
    std::iter::from_fn(|| fixture.shard.taken_by(OTHER)).collect()
}

/// Requests until the ring has no place left, nor one of those that are set aside. Gives the last number.
fn fill(fixture: &mut Fixture) -> u64 {
    let mut number = 0;
    let mut until_full = |fixture: &mut Fixture, request: &dyn Fn(u64) -> Request| {
        loop {
            number += 1;
            let reports = fixture.native(&request(number));
            if reports.iter().any(|report| report.reason == Reason::ShardRingFull) {
                return number;
            }
        }
    };
    until_full(fixture, &|number| Request::New(beta(number)));
    until_full(fixture, &|number| cancel(number, 1));
    loop {
        number += 1;
        fixture.native(&mass_cancel(number));
        if fixture.shard.shard().notice_waiting().is_some() {
            return number;
        }
    }
}

fn cancel(number: u64, orig: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: ClientOrderId(orig),
        instrument: BETA,
        session: NATIVE,
        side: Side::Buy,
    })
}

fn position(told: &[Told], wanted: impl Fn(&Told) -> bool) -> Option<usize> {
    told.iter().position(wanted)
}

#[test]
fn an_order_does_not_overtake_the_mass_cancel_that_came_before_it() {
    let mut fixture = two_shards();
    let mass = fill(&mut fixture);
    // The other shard makes room before this one has seen to what waits.
    for _ in 0..200 {
        fixture.shard.taken_by(OTHER);
    }
    assert_eq!(fixture.native(&Request::New(beta(mass + 1))), [], "there is room");
    let told = taken(&mut fixture);
    let of_mass = position(&told, |told| *told == Told::Request(mass_cancel(mass)));
    let of_order = position(&told, |told| *told == Told::Request(Request::New(beta(mass + 1))));
    assert!(of_mass.is_some() && of_mass < of_order, "{of_mass:?} {of_order:?}");
    assert_replays(fixture);
}

#[test]
fn an_order_does_not_overtake_the_loss_of_its_session() {
    let mut fixture = two_shards();
    let last = fill(&mut fixture);
    fixture.shard.disconnect(NATIVE);
    fixture.shard.connect(NATIVE);
    for _ in 0..200 {
        fixture.shard.taken_by(OTHER);
    }
    fixture.native(&Request::New(beta(last + 1)));
    let told = taken(&mut fixture);
    let of_loss = position(&told, |told| *told == Told::SessionLost(NATIVE));
    let of_order = position(&told, |told| *told == Told::Request(Request::New(beta(last + 1))));
    assert!(of_loss.is_some() && of_loss < of_order, "{of_loss:?} {of_order:?}");
    assert_replays(fixture);
}

#[test]
fn while_what_came_before_finds_no_room_orders_are_refused_and_cancels_pass() {
    let mut fixture = two_shards();
    let last = fill(&mut fixture);
    let refused = fixture.native(&Request::New(beta(last + 1)));
    assert_eq!(refused.last().map(|report| report.reason), Some(Reason::ShardRingFull));
    let replace = ReplaceOrder {
        client_order_id: ClientOrderId(last + 2),
        orig_client_order_id: ClientOrderId(1),
        instrument: BETA,
        session: NATIVE,
        side: Side::Buy,
        price: beta(1).price,
        quantity: Quantity(3),
        terms: beta(1).terms,
    };
    let refused = fixture.native(&Request::Replace(replace));
    assert_eq!(refused.last().map(|report| report.reason), Some(Reason::ShardRingFull));
    while fixture.shard.taken_by(OTHER).is_some() {}
    assert_eq!(fixture.native(&cancel(last + 3, 1)), []);
    let told = taken(&mut fixture);
    assert!(told.contains(&Told::Request(mass_cancel(last))), "{told:?}");
    assert!(told.contains(&Told::Request(cancel(last + 3, 1))), "{told:?}");
    assert_replays(fixture);
}

/// The order of a client of the other shard.
fn away(number: u64, lots: u64, at: &str) -> Request {
    Request::New(NewOrder {
        session: AWAY,
        ..buys(number, lots, at)
    })
}

#[test]
fn clients_of_two_shards_trade_inside_and_each_hears_it_where_it_is() {
    let mut fixture = two_shards();
    fixture.fix(&sells("A-1", "100"));
    fixture.shard.from_shard(OTHER, &away(1, 4, "100"));
    let reports = taken(&mut fixture);
    let essence = reports.iter().map(|told| match told {
        Told::Report(report) => (
            report.session,
            report.exec_type,
            report.last_quantity.0,
            report.leaves.0,
            report.reason,
        ),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        essence.collect::<Vec<_>>(),
        [
            (AWAY, ExecType::New, 0, 4, Reason::Crossing),
            (AWAY, ExecType::Fill, 4, 0, Reason::CrossedTaking)
        ]
    );
    let sold = fixture.fix_messages();
    assert_eq!(
        told(&sold),
        [["A-1", "F", "1", "4", "6", Reason::CrossedResting.text()]]
    );
    // It rests, and the client that is here takes it.
    fixture.shard.from_shard(OTHER, &away(2, 10, "100"));
    assert_eq!(
        told(&fixture.fix_messages()),
        [["A-1", "F", "2", "6", "0", Reason::CrossedResting.text()]]
    );
    taken(&mut fixture);
    let took = fixture.fix(&sells("A-2", "100"));
    assert_eq!(
        took.iter().map(|message| field(message, 150)).collect::<Vec<_>>(),
        [Some("0"), Some("F")]
    );
    assert!(matches!(
        taken(&mut fixture)[..],
        [Told::Report(report)] if report.reason == Reason::CrossedResting && report.last_quantity == Quantity(4)
    ));
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 14, 0, 6], [14, 0, 0, 0]]);
    fixture.shard.shard().orders().audit().expect("all is counted");
    assert_replays(fixture);
}

/// What a shard was told of trades: whose, how many lots, why.
fn trades(told: &[Told]) -> Vec<(SessionId, u64, Reason)> {
    let trades = told.iter().filter_map(|told| match told {
        Told::Report(report) if report.exec_type == ExecType::Fill => {
            Some((report.session, report.last_quantity.0, report.reason))
        }
        _ => None,
    });
    trades.collect()
}

/// A sell of the second client of the other shard.
fn away_sells(number: u64, lots: u64) -> Request {
    Request::New(NewOrder {
        session: AWAY_TOO,
        account: AccountId(1),
        side: Side::Sell,
        ..buys(number, lots, "100")
    })
}

#[test]
fn two_clients_of_another_shard_trade_here_and_each_hears_it_there() {
    let mut fixture = two_shards();
    fixture.shard.from_shard(OTHER, &away_sells(1, 10));
    fixture.shard.from_shard(OTHER, &away(1, 4, "100"));
    assert_eq!(
        trades(&taken(&mut fixture)),
        [(AWAY_TOO, 4, Reason::CrossedResting), (AWAY, 4, Reason::CrossedTaking)]
    );
    fixture.shard.from_shard(OTHER, &away(2, 6, "100"));
    assert_eq!(
        trades(&taken(&mut fixture)),
        [(AWAY_TOO, 6, Reason::CrossedResting), (AWAY, 6, Reason::CrossedTaking)]
    );
    assert_eq!((fixture.crossed(), fixture.sent().0), ([1, 2], 0));
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 10, 0, 0], [10, 0, 0, 0]]);
    fixture.shard.shard().orders().audit().expect("all is counted");
    assert_replays(fixture);
}

#[test]
fn two_clients_of_another_shard_trade_only_where_its_ring_has_room_for_both() {
    /// Places of the ring.
    const PLACES: u64 = 256;
    for (left, crossed) in [(1, 0), (2, 1)] {
        let mut fixture = two_shards();
        fixture.shard.from_shard(OTHER, &away(1, 10, "100"));
        // With the answer to that and to the one that is to trade so many places are left.
        for number in 2..=PLACES - 1 - left {
            fixture.shard.from_shard(OTHER, &away(number, 501, "100"));
        }
        fixture.shard.from_shard(OTHER, &away_sells(1, 10));
        assert_eq!(fixture.crossed(), [1, crossed], "{left} places left");
        assert_eq!(trades(&taken(&mut fixture)).len() as u64, 2 * crossed);
        fixture.shard.shard().orders().audit().expect("all is counted");
        assert_replays(fixture);
    }
}

#[test]
fn a_ring_without_room_for_the_reports_of_a_trade_lets_none_happen() {
    let mut fixture = two_shards();
    fixture.shard.from_shard(OTHER, &away(1, 10, "100"));
    // Reports that the other shard does not take, until one place is left.
    for number in 2..256 {
        fixture.shard.from_shard(OTHER, &away(number, 501, "100"));
    }
    fixture.fix(&sells("A-1", "100"));
    assert_eq!((fixture.crossed(), fixture.sent().0), ([1, 0], 1));
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 0, 0, 10], [0, 0, 10, 0]]);
    taken(&mut fixture);
    fixture.fix(&sells("A-2", "100"));
    assert_eq!(fixture.crossed(), [1, 1]);
    assert_eq!(
        [fixture.held_by(1), fixture.held_by(2)],
        [[0, 10, 0, 10], [10, 0, 0, 0]]
    );
    fixture.shard.shard().orders().audit().expect("all is counted");
    assert_replays(fixture);
}

/// Two shards, and nothing is crossed.
fn plain_two_shards(more: &[(&str, &str)]) -> Fixture {
    let session = PARTS_OF_TWO[2].1.replace("crossing = true\n", "");
    let mut parts = vec![("[[accounts]]\nid = 1\n", ACCOUNTS)];
    parts.extend(PARTS_OF_TWO);
    parts[3].1 = &session;
    parts.extend(more);
    Fixture::changed(&parts)
}

/// Of the native session and its account.
fn places(fixture: &Fixture) -> Places {
    let orders = &fixture.config.orders[0];
    let account = orders.accounts.iter().position(|account| account.id == buy(1).account);
    let session = orders.sessions.iter().position(|session| session.id == NATIVE);
    let place = |place: Option<usize>| u32::try_from(place.expect("it is there")).expect("a few");
    Places {
        account: AccountPlace(place(account)),
        session: SessionPlace(place(session)),
    }
}

fn pass(fixture: &mut Fixture, ms: u64) {
    fixture.now = fixture.now + Duration::from_millis(ms);
    fixture.shard.set_now(fixture.now);
    while fixture.shard.turn() {}
}

fn reasons(fixture: &mut Fixture, order: NewOrder) -> Vec<Reason> {
    let reports = fixture.native(&Request::New(order));
    reports.iter().map(|report| report.reason).collect()
}

/// What the other shard sends for the session, or for another one of its account, counts here.
#[test]
fn rates_are_of_all_shards_together() {
    const QUEUE: &str = "[risk.rate_queue]\norders = 3\nwait_ms = 9_000\n[capacity]";
    let of_session = "user = \"trader\"\n";
    let of_account = "max_open_notional = \"1000000\"\n";
    for before in [of_session, of_account] {
        for action in ["reject", "queue"] {
            let rate =
                format!("{before}max_orders_per_second = 10\nmax_orders_at_once = 3\nrate_action = \"{action}\"\n");
            let mut fixture = plain_two_shards(&[(before, &rate), ("[capacity]", QUEUE)]);
            let (places, now) = (places(&fixture), fixture.now);
            // Here goes one, there go two, and that is all.
            assert_eq!(reasons(&mut fixture, buy(1)), []);
            for _ in 0..2 {
                assert_eq!(fixture.shard.shared().take_rates(now, places), Ok(()));
            }
            let sent = fixture.sent().0;
            let fourth = reasons(&mut fixture, buy(2));
            assert_eq!(fixture.sent().0, sent);
            if action == "reject" {
                assert_eq!(fourth, [Reason::RateLimit]);
                pass(&mut fixture, 100);
                assert_eq!(reasons(&mut fixture, buy(3)), []);
                assert_eq!(fixture.sent().0, sent + 1);
            } else {
                assert_eq!(fourth, []);
                // The other shard is there first.
                let now = fixture.now + Duration::from_millis(100);
                assert_eq!(fixture.shard.shared().take_rates(now, places), Ok(()));
                pass(&mut fixture, 100);
                assert_eq!(fixture.sent().0, sent);
                pass(&mut fixture, 99);
                assert_eq!(fixture.sent().0, sent);
                pass(&mut fixture, 1);
                assert_eq!(fixture.sent().0, sent + 1);
            }
            fixture.shard.shard().orders().audit().expect("all is counted");
            assert_replays(fixture);
        }
    }
}

/// A shard that starts again does not know what the others had sent: the last order has used up the rate.
#[test]
fn a_restart_gives_no_session_more_than_its_rate() {
    let rate = "user = \"trader\"\nmax_orders_per_second = 1\nmax_orders_at_once = 30\nrate_action = \"reject\"\n";
    let rate = ("user = \"trader\"\n", rate);
    for (mut fixture, left) in [(plain_two_shards(&[rate]), 0), (Fixture::changed(&[rate]), 28)] {
        for number in 1..=2 {
            assert_eq!(reasons(&mut fixture, buy(number)), []);
        }
        let last = fixture.now;
        let fixture = fixture.restart();
        let places = places(&fixture);
        let taken = (0..40).filter(|_| fixture.shard.shared().take_rates(last, places).is_ok());
        assert_eq!(taken.count(), left);
    }
}

#[test]
fn open_orders_and_notional_of_a_session_are_those_of_all_shards_together() {
    let limits = "max_open_orders = 3\nmax_open_notional = \"5000\"\n";
    let before = "owner = 2\nmax_open_orders = 100\n";
    let mut fixture = plain_two_shards(&[(before, &format!("owner = 2\n{limits}"))]);
    let places = places(&fixture);
    let elsewhere = |notional, orders| Need {
        stake: Stake {
            notional,
            orders,
            ..Stake::NONE
        },
        reduces: false,
    };
    // A lot at 100 is 100; in 1e-4.
    let lots = |number, count| NewOrder {
        quantity: Quantity(count),
        ..buy(number)
    };
    fixture
        .shard
        .shared()
        .reserve(places, &elsewhere(0, 2))
        .expect("two are open there");
    assert_eq!(reasons(&mut fixture, lots(1, 1)), []);
    assert_eq!(reasons(&mut fixture, lots(2, 1)), [Reason::MaxOpenOrders]);
    let ended = SessionStake {
        notional: 0,
        orders: -2,
    };
    fixture.shard.shared().settle_session(places.session, &ended);
    assert_eq!(reasons(&mut fixture, lots(3, 1)), []);
    let notional = 48 * 100 * 10_000;
    fixture
        .shard
        .shared()
        .reserve(places, &elsewhere(notional, 0))
        .expect("so much is open there");
    assert_eq!(reasons(&mut fixture, lots(4, 1)), [Reason::SharedLimit]);
    let ended = SessionStake {
        notional: -notional,
        orders: 0,
    };
    fixture.shard.shared().settle_session(places.session, &ended);
    assert_eq!(reasons(&mut fixture, lots(5, 48)), []);
    assert_eq!(reasons(&mut fixture, lots(6, 1)), [Reason::SharedLimit]);
    fixture.shard.shard().orders().audit().expect("all is counted");
    assert_replays(fixture);
}
