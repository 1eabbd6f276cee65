//! Positions valued anew as the market moves: the limit of the loss follows it where the account does not trade.

use crate::first_stage::assert_replays;
use crate::fixture::*;
use crate::recovery::{came_in, cut, entries};
use gateway::control::{Action, Order};
use gateway::record::Record;
use orders::{Limit, LimitScope, LimitValue};
use types::{
    AccountId, Bbo, Duration, ExecType, InstrumentId, NewOrder, Notional, Price, Quantity, Quote, Reason, Request,
    ShardId, Side, Timestamp,
};

const BETA: InstrumentId = InstrumentId(2);

/// The account may lose 50.
pub(crate) const LOSS: (&str, &str) = (
    "max_open_notional = \"1000000\"\n",
    "max_open_notional = \"1000000\"\nmax_loss = \"50\"\n",
);

fn book(price: i64, time: Timestamp) -> Bbo {
    let quote = Quote {
        price: Price(price * Price::UNIT),
        quantity: Quantity(100),
    };
    Bbo {
        bid: quote,
        ask: quote,
        last: Price(0),
        time,
    }
}

/// The market moves, time passes, and the shard has one turn.
fn later(fixture: &mut Fixture, ms: u64, alfa: i64) {
    fixture.now = fixture.now + Duration::from_millis(ms);
    fixture.shard.set_now(fixture.now);
    fixture.shard.price(ALFA, &book(alfa, fixture.now));
    fixture.shard.price(BETA, &book(50, fixture.now));
    fixture.shard.turn();
    fixture.shard.shard().orders().audit().expect("all is counted");
}

/// Why an order for BETA is refused.
fn refusal(fixture: &mut Fixture, number: u64) -> Option<Reason> {
    let order = NewOrder {
        instrument: BETA,
        price: Price(50 * Price::UNIT),
        quantity: Quantity(1),
        ..buy(number)
    };
    let reports = fixture.native(&Request::New(order)).into_iter();
    let mut refused = reports.filter(|report| report.client_order_id == order.client_order_id);
    refused.next_back().map(|report| report.reason)
}

/// Ten lots of ALFA bought at 100, and a turn.
fn holding(parts: &[(&str, &str)]) -> Fixture {
    let mut fixture = Fixture::changed(parts);
    later(&mut fixture, 0, 100);
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.venue(ExecType::Fill, 10, 0, 10);
    fixture.native_reports();
    fixture
}

/// What the journal of a shard says was marked, in money.
fn marked(directory: &std::path::Path) -> Vec<i64> {
    let prices =
        entries(directory)
            .into_iter()
            .filter_map(|(kind, _, _, payload)| match Record::decode(kind, &payload) {
                Ok(Record::Marked(mark)) => Some(mark.price.0 / Price::UNIT),
                _ => None,
            });
    prices.collect()
}

#[test]
fn a_loss_where_nobody_trades_refuses_orders_elsewhere_and_a_gain_lets_them_pass_again() {
    let mut fixture = holding(&[LOSS]);
    assert_eq!(refusal(&mut fixture, 2), None);
    later(&mut fixture, 1_000, 96);
    assert_eq!(refusal(&mut fixture, 3), None, "40 are lost");
    later(&mut fixture, 1_000, 95);
    assert_eq!(refusal(&mut fixture, 4), Some(Reason::LossLimit), "50 are lost");
    let sell = NewOrder {
        side: Side::Sell,
        price: Price(95 * Price::UNIT),
        ..buy(5)
    };
    assert!(fixture.native(&Request::New(sell)).is_empty(), "it reduces");
    assert_eq!(fixture.shard.shard().orders().open_orders(), 3, "nothing is cancelled");
    later(&mut fixture, 999, 99);
    assert_eq!(
        refusal(&mut fixture, 6),
        Some(Reason::LossLimit),
        "the time is not over"
    );
    later(&mut fixture, 1, 99);
    assert_eq!(refusal(&mut fixture, 7), None);
    // The same price again, and a price that is too old.
    later(&mut fixture, 1_000, 99);
    fixture.now = fixture.now + Duration::from_millis(60_001);
    fixture.shard.set_now(fixture.now);
    fixture.shard.turn();
    let directory = fixture.config.journal.of_shard(ShardId(0)).directory;
    assert_eq!(marked(&directory), [96, 95, 99]);
    assert_replays(fixture);
}

#[test]
fn wherever_the_journal_ends_the_mark_that_it_has_holds() {
    let mut fixture = holding(&[LOSS]);
    later(&mut fixture, 1_000, 95);
    assert_eq!(refusal(&mut fixture, 2), Some(Reason::LossLimit));
    later(&mut fixture, 1_000, 97);
    assert_eq!(refusal(&mut fixture, 3), None);
    let (config, _folder) = fixture.stop();
    let whole = entries(&config.journal.of_shard(ShardId(0)).directory);
    let mut refused = 0;
    for end in 2..=whole.len() {
        let (config, folder) = cut(&config, &whole[..end]);
        let last = marked(&config.journal.of_shard(ShardId(0)).directory).pop();
        let (messages, reports) = came_in(&whole[..end]);
        let mut fixture = Fixture::go_on(&config, folder, messages + 1, reports);
        fixture.shard.price(BETA, &book(50, fixture.now));
        let expected = (last == Some(95)).then_some(Reason::LossLimit);
        refused += u32::from(expected.is_some());
        assert_eq!(refusal(&mut fixture, 9), expected, "cut at record {end}");
        assert_replays(fixture);
    }
    assert!(refused > 2, "{refused}");
}

#[test]
fn a_limit_that_an_operator_sets_is_followed_too() {
    let mut fixture = holding(&[]);
    later(&mut fixture, 1_000, 95);
    fixture.shard.control(&Order {
        number: 1,
        operator: 1,
        action: Action::SetLimit {
            scope: LimitScope::Account(AccountId(1)),
            limit: Limit::MaxLoss,
            value: LimitValue::Amount(Notional(50 * i128::from(Price::UNIT))),
        },
    });
    assert_eq!(refusal(&mut fixture, 2), None, "its last trade values it");
    later(&mut fixture, 1_000, 95);
    assert_eq!(refusal(&mut fixture, 3), Some(Reason::LossLimit));
    let directory = fixture.config.journal.of_shard(ShardId(0)).directory;
    assert_eq!(marked(&directory), [95], "without a limit nothing is marked");
    assert_replays(fixture);
}

#[test]
fn a_turn_looks_at_a_few_positions_and_the_next_goes_on() {
    let account = |id: u32| {
        format!(
            "[[accounts]]\nid = {id}\nmax_quantity_lots = 1_000\nmax_notional = \"1000000\"\nmax_open_orders = 100\n\
             max_open_notional = \"1000000\"\nmax_net_notional = \"1000000\"\n"
        )
    };
    let accounts: String = (1..=12).map(account).collect();
    let one = "[[accounts]]\nid = 1\nmax_quantity_lots = 1_000\nmax_notional = \"1000000\"\nmax_open_orders = 100\n\
               max_open_notional = \"1000000\"\n";
    let all = "accounts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\nowner = 2";
    let mut fixture = Fixture::changed(&[(one, &accounts), ("accounts = [1]\nowner = 2", all)]);
    for id in 1..=12 {
        let order = NewOrder {
            account: AccountId(id),
            ..buy(u64::from(id))
        };
        assert!(fixture.native(&Request::New(order)).is_empty());
    }
    let at_99 = |fixture: &Fixture| {
        let orders = fixture.shard.shard().orders();
        let exposures = (1..=12).filter_map(|id| orders.exposure(AccountId(id), ALFA));
        exposures.filter(|one| one.mark == Price(99 * Price::UNIT)).count()
    };
    for expected in [8, 12, 12] {
        later(&mut fixture, 0, 99);
        assert_eq!(at_99(&fixture), expected);
    }
    assert_replays(fixture);
}
