//! Limits held against the live book of the feed, in a shard and again in a replay of its journal.

use crate::first_stage::{assert_replays, essence};
use crate::fixture::*;
use types::{Duration, ExecType, NewOrder, Price, Reason, Request};

#[test]
fn the_book_that_bounds_a_price_replays() {
    let limit = "collar = { basis_points = 1000 }\nbook = { ticks = 3, missing = \"refuse\" }";
    let mut fixture = Fixture::changed(&[
        ("collar = { basis_points = 1000 }", limit),
        ("reference_missing = \"refuse\"", "reference_missing = \"master\""),
    ]);
    let at = |number, price: &[u8]| NewOrder {
        price: Price::parse(price).expect("a price"),
        ..buy(number)
    };
    let refused = |number, reason| vec![(ExecType::Rejected, number, reason)];
    // The best offer is 100.01.
    assert_eq!(essence(&fixture.native(&Request::New(at(1, b"100.04")))), []);
    let through = fixture.native(&Request::New(at(2, b"100.05")));
    assert_eq!(essence(&through), refused(2, Reason::ThroughBook));
    let mut book = alfa(fixture.now);
    book.ask.price = Price::parse(b"100.02").expect("a price");
    fixture.shard.price(ALFA, &book);
    assert_eq!(essence(&fixture.native(&Request::New(at(3, b"100.05")))), []);
    // The feed says that nobody offers.
    book.ask.quantity = types::Quantity::ZERO;
    fixture.shard.price(ALFA, &book);
    let missing = fixture.native(&Request::New(at(4, b"100.00")));
    assert_eq!(essence(&missing), refused(4, Reason::NoBook));
    fixture.shard.price(ALFA, &alfa(fixture.now));
    fixture.shard.set_now(fixture.now + Duration::from_millis(60_001));
    let stale = fixture.native(&Request::New(at(5, b"100.00")));
    assert_eq!(stale.first().map(|report| report.reason), Some(Reason::NoBook));
    assert_replays(fixture);
}
