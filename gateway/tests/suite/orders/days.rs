//! The end of a trading day.

use super::{Logon, OF_ORDER, ORDER, Trader, told};
use crate::fixture::{FIX, Fixture, START};
use gateway::replay;
use types::{Duration, ExecType, Reason, ShardId, Timestamp, TradingDay};

const NEXT_DAY: TradingDay = TradingDay(20_261_201);
const MORNING: Timestamp = Timestamp(1_796_108_400_000_000_000);

fn working(trader: &mut Trader, id: &str, fields: &str) {
    assert_eq!(
        trader.send("D", &format!("11={id}|{ORDER}{fields}")),
        [""; 0],
        "{fields}"
    );
    let number = trader.number();
    trader.venue(number, ExecType::New, Reason::None, [0, 10, 0]);
}

#[test]
fn day_orders_end_and_those_that_are_good_for_longer_live_on() {
    let mut trader = Trader::new();
    working(&mut trader, "DAY", "");
    working(&mut trader, "GTC", "59=1|");
    working(&mut trader, "GTD", "59=6|432=20261202|");
    working(&mut trader, "PAST", "59=6|126=20261130-23:00:00|");
    trader.fixture.shard.set_now(MORNING);
    trader.fixture.now = MORNING;
    trader.fixture.shard.roll(NEXT_DAY);
    let ended = trader.fixture.fix_messages();
    assert_eq!(
        told(&ended, "35 11 150 39 151 58"),
        [
            "35=8|11=DAY|150=C|39=C|151=0|58=trading day ended",
            "35=8|11=PAST|150=C|39=C|151=0|58=order has expired"
        ]
    );
    let open = trader.send("AF", "584=M|585=7|");
    assert_eq!(told(&open, "11 39"), ["11=GTC|39=0", "11=GTD|39=0"]);
}

#[test]
fn the_ids_of_ended_orders_may_come_again_and_those_of_living_ones_still_name_them() {
    let mut trader = Trader::new();
    working(&mut trader, "DAY", "");
    working(&mut trader, "GTC", "59=1|");
    trader.fixture.shard.set_now(MORNING);
    trader.fixture.now = MORNING;
    trader.fixture.shard.roll(NEXT_DAY);
    trader.fixture.fix_messages();
    trader
        .fixture
        .shard
        .price(crate::fixture::ALFA, &crate::fixture::alfa(MORNING));
    trader.order("DAY");
    let duplicate = trader.send("D", &format!("11=GTC|{ORDER}"));
    assert_eq!(told(&duplicate, "11 39 103"), ["11=GTC|39=8|103=6"]);
    let cancel = trader.cancel("C", "GTC");
    let canceled = trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 0]);
    assert_eq!(told(&canceled, "11 41 150 39"), ["11=C|41=GTC|150=4|39=4"]);
    let late = trader.send("F", &format!("11=E|41=C|{OF_ORDER}"));
    assert_eq!(told(&late, "11 41 39 102"), ["11=E|41=C|39=4|102=0"]);
}

#[test]
fn a_new_session_day_frees_the_ids_of_what_is_over_and_an_interruption_does_not() {
    let mut trader = Trader {
        fixture: Fixture::new(),
    };
    trader.fixture.shard.hours(FIX, Some(START));
    let log_on = |trader: &mut Trader| {
        let answer = trader.fixture.fix(&Logon);
        assert_eq!(told(&answer, "35"), ["35=A"]);
    };
    log_on(&mut trader);
    let done = trader.working("DONE");
    trader.venue(done, ExecType::Fill, Reason::None, [10, 0, 10]);
    let living = trader.working("GTC");
    // An interruption: the day goes on.
    trader.fixture.shard.hours(FIX, None);
    trader.lose();
    trader.fixture.shard.hours(FIX, Some(START));
    trader.fixture.shard.connect(FIX);
    log_on(&mut trader);
    let used = trader.send("D", &format!("11=DONE|{ORDER}"));
    assert_eq!(told(&used, "11 39 103"), ["11=DONE|39=8|103=6"]);
    // The day ends while the client is there: until it is gone it is the old one.
    let tomorrow = START + Duration::from_secs(3_600);
    trader.fixture.shard.hours(FIX, Some(tomorrow));
    trader.fixture.fix_messages();
    trader.lose();
    trader.fixture.fix_sequence = 1;
    trader.fixture.shard.connect(FIX);
    log_on(&mut trader);
    trader.order("DONE");
    let used = trader.send("D", &format!("11=GTC|{ORDER}"));
    assert_eq!(told(&used, "11 39 103"), ["11=GTC|39=8|103=6"]);
    assert_ne!(done, living);
    let (config, _folder) = trader.fixture.stop();
    replay::verify(&config, ShardId(0)).expect("it replays");
}
