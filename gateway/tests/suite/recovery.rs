//! Replay: the same inputs give the same outputs, and a change is found.

use crate::fixture::{Fixture, buy};
use gateway::replay::{self, ReplayError};
use types::{ExecType, NewOrder, Quantity, Request, ShardId};

fn busy(fixture: &mut Fixture) {
    for number in 1..=20 {
        fixture.native(&Request::New(buy(number)));
        fixture.venue(ExecType::New, 0, 10, 0);
        if number % 3 == 0 {
            fixture.venue(ExecType::Fill, 10, 0, 10);
        }
    }
    fixture.native(&Request::New(NewOrder {
        quantity: Quantity(501),
        ..buy(21)
    }));
}

#[test]
fn a_journal_replays_to_the_same_bytes() {
    let mut fixture = Fixture::new();
    busy(&mut fixture);
    let (config, _folder) = fixture.stop();
    let first = replay::verify(&config, ShardId(0)).expect("it replays");
    let second = replay::verify(&config, ShardId(0)).expect("it replays");
    assert_eq!(first, second);
    assert!(first.outputs > 40, "{first:?}");
    assert_eq!(first.cut_off, 0);
}

#[test]
fn another_limit_is_another_config() {
    let mut fixture = Fixture::new();
    busy(&mut fixture);
    let (mut config, _folder) = fixture.stop();
    config.fingerprint ^= 1;
    assert!(matches!(
        replay::verify(&config, ShardId(0)),
        Err(ReplayError::OtherConfig { .. })
    ));
}

#[test]
fn a_replay_that_decides_otherwise_is_found() {
    let mut fixture = Fixture::new();
    busy(&mut fixture);
    let (mut config, _folder) = fixture.stop();
    // The same fingerprint, another limit: as if the code had changed.
    config.orders[0].classes[0].max_quantity = Quantity(5);
    let error = replay::verify(&config, ShardId(0)).expect_err("every order is refused now");
    assert!(matches!(error, ReplayError::Diverged(_)), "{error}");
}
