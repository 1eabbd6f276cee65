//! Self-match prevention that is left to the venue, `decrement`: gateway and exchange take the same orders for one owner's.

use crate::market::Market;
use crate::trader::Trader;
use types::{AccountId, Quantity, Reason, Side};

const ALFA: u32 = 1;

#[test]
fn what_the_venue_would_not_decrement_does_not_reach_it() {
    let market = Market::new(1, "ltp");
    market.change("exchange.toml", "self_match = \"allow\"", "self_match = \"decrement\"");
    for (from, to) in [
        ("name = \"sim\"\n", "name = \"sim\"\ndecrements = true\n"),
        (
            "accounts = [2]\nowner = 2\n",
            "accounts = [2, 3]\nowner = 3\nself_match = \"decrement\"\n",
        ),
    ] {
        market.change("gateway.toml", from, to);
    }
    let mut exchange = market.exchange("exchange");
    let mut gateway = market.gateway("gateway");
    let (mut maker, mut taker) = (
        Trader::new("maker", 3, market.native[0]),
        Trader::new("taker", 2, market.native[0]),
    );
    maker.connect();
    taker.connect();
    let resting = maker.order(Side::Sell, ALFA, "101.40");
    maker.wait("it rests", Trader::is_answered);

    // The exchange knows an owner by the account: these two would trade.
    let other = taker.order(Side::Buy, ALFA, "101.40");
    taker.wait("it is refused", Trader::is_answered);
    assert_eq!(taker.orders[&other].refused, Reason::SelfMatch);
    let below = taker.order(Side::Buy, ALFA, "101.39");
    taker.wait("it rests", Trader::is_answered);
    assert_eq!(taker.orders[&below].refused, Reason::None, "it meets nothing");

    let same = taker.order_with(Side::Buy, ALFA, "101.40", |order| {
        (order.account, order.quantity) = (AccountId(3), Quantity(4));
    });
    maker.wait("four lots are off", |maker| maker.orders[&resting].leaves == 6);
    taker.wait("it is over", |taker| taker.is_answered() && taker.open() == 1);
    assert_eq!(taker.orders[&same].refused, Reason::None);
    assert_eq!((maker.traded(), taker.traded()), (0, 0));
    drop((maker, taker));
    gateway.stop();
    exchange.stop();
    market.assert_replay_is_identical(0);
}
