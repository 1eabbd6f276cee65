//! What is closed to single accounts and sessions, by an operator and by the config: over restarts, and what replays.

use crate::fixture::{ALFA, Fixture, NATIVE, buy};
use gateway::control::{Action, Order, Refusal};
use gateway::harness::Harness;
use gateway::replay;
use latency::clock::Clock;
use orders::{Limit, LimitError, LimitScope, LimitValue, Party, Traded};
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecType, InstrumentId, LimitClass, NewOrder, Quantity, Reason,
    ReplaceOrder, Request, ShardId,
};

const ACCOUNT: Party = Party::Account(AccountId(1));
const SESSION: Party = Party::Session(NATIVE);
const CLASS: Traded = Traded::Class(LimitClass(0));
const SYMBOL: Traded = Traded::Instrument(ALFA);
const SYMBOL_OF_ACCOUNT: (&str, &str) = (
    "max_open_notional = \"1000000\"",
    "max_open_notional = \"1000000\"\nrestricted_symbols = [\"ALFA\"]",
);

const fn action(party: Party, traded: Traded, closes: bool) -> Action {
    Action::SetLimit {
        scope: LimitScope::Trade(party, traded),
        limit: Limit::Restricted,
        value: LimitValue::Switch(closes),
    }
}

fn set(fixture: &mut Fixture, number: u64, party: Party, traded: Traded, closes: bool) {
    let action = action(party, traded, closes);
    fixture.shard.check(&action).expect("it can be obeyed");
    fixture.shard.control(&Order {
        number,
        operator: 1,
        action,
    });
}

fn answer(fixture: &mut Fixture, request: &Request) -> Option<Reason> {
    // A client that comes again hears what it has heard before.
    let reports = fixture.native(request).into_iter();
    let mut about_it = reports.filter(|report| report.client_order_id == request.client_order_id());
    about_it.next_back().map(|report| report.reason)
}

/// Why an order of the native session is refused.
fn refusal(fixture: &mut Fixture, number: u64) -> Option<Reason> {
    answer(fixture, &Request::New(buy(number)))
}

fn assert_replays(fixture: Fixture) {
    let (config, _folder) = fixture.stop();
    replay::verify(&config, ShardId(0)).expect("it replays");
}

#[test]
fn what_an_operator_closes_is_closed_for_the_next_order_and_over_restarts_until_it_is_opened() {
    for (party, traded) in [(ACCOUNT, CLASS), (ACCOUNT, SYMBOL), (SESSION, CLASS), (SESSION, SYMBOL)] {
        let mut fixture = Fixture::new();
        assert_eq!(refusal(&mut fixture, 1), None);
        fixture.venue(ExecType::New, 0, 10, 0);
        assert_eq!(refusal(&mut fixture, 2), None);
        set(&mut fixture, 1, party, traded, true);
        assert_eq!(
            refusal(&mut fixture, 3),
            Some(Reason::Restricted),
            "{party:?} {traded:?}"
        );
        // What is open is made less, and cancelled, and not more.
        let NewOrder {
            instrument,
            session,
            side,
            price,
            quantity,
            terms,
            ..
        } = buy(1);
        let replaced = |number, quantity| {
            Request::Replace(ReplaceOrder {
                client_order_id: ClientOrderId(number),
                orig_client_order_id: ClientOrderId(1),
                instrument,
                session,
                side,
                price,
                quantity,
                terms,
            })
        };
        let more = answer(&mut fixture, &replaced(5, Quantity(quantity.0 + 1)));
        assert_eq!(more, Some(Reason::Restricted));
        let less = answer(&mut fixture, &replaced(6, Quantity(quantity.0 - 1)));
        assert!(matches!(less, None | Some(Reason::None)), "{less:?}");
        let cancel = Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(7),
            orig_client_order_id: ClientOrderId(2),
            instrument,
            session,
            side,
        });
        let canceled = answer(&mut fixture, &cancel);
        assert!(matches!(canceled, None | Some(Reason::None)), "{canceled:?}");
        let mut fixture = fixture.restart().restart();
        assert_eq!(
            refusal(&mut fixture, 8),
            Some(Reason::Restricted),
            "{party:?} {traded:?}"
        );
        set(&mut fixture, 2, party, traded, false);
        assert_eq!(refusal(&mut fixture, 9), None, "{party:?} {traded:?}");
        let mut fixture = fixture.restart();
        assert_eq!(refusal(&mut fixture, 10), None, "{party:?} {traded:?}");
        assert_replays(fixture);
    }
}

#[test]
fn what_the_config_closes_or_opens_between_two_starts_is_an_input_and_an_operators_stays_until_then() {
    let mut fixture = Fixture::new();
    assert_eq!(refusal(&mut fixture, 1), None);
    let mut fixture = fixture.restart_with(&[SYMBOL_OF_ACCOUNT]);
    assert_eq!(refusal(&mut fixture, 2), Some(Reason::Restricted));
    // The config says what it said before, so the operator's holds.
    set(&mut fixture, 1, ACCOUNT, SYMBOL, false);
    let mut fixture = fixture.restart();
    assert_eq!(refusal(&mut fixture, 3), None);
    // It says it no more, and then again.
    let mut fixture = fixture.restart_with(&[("[capacity]", "[capacity]")]);
    assert_eq!(refusal(&mut fixture, 4), None);
    set(&mut fixture, 2, SESSION, CLASS, true);
    let mut fixture = fixture.restart_with(&[SYMBOL_OF_ACCOUNT]);
    set(&mut fixture, 3, SESSION, CLASS, false);
    assert_eq!(refusal(&mut fixture, 5), Some(Reason::Restricted));
    let (config, folder) = fixture.stop();
    let summary = replay::verify(&config, ShardId(0)).expect("it replays");
    // What is closed is the journal's, whatever the config says that it is replayed by.
    let other = crate::fixture::config_in(folder.path(), &[]);
    assert_eq!(replay::verify(&other, ShardId(0)).expect("it replays"), summary);
}

#[test]
fn a_full_table_refuses_with_its_reason_and_what_is_opened_makes_room_over_a_restart_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = crate::fixture::config_in(folder.path(), &[]);
    config.orders[0].capacity.restrictions = 2;
    let open = || Harness::open(&config, Clock::start()).expect("the shard starts");
    let order = |number, party, traded, closes| Order {
        number,
        operator: 1,
        action: action(party, traded, closes),
    };
    let mut shard = open();
    shard.control(&order(1, ACCOUNT, SYMBOL, true));
    shard.control(&order(2, SESSION, CLASS, true));
    shard.into_journal().close().expect("the journal closes");
    let mut shard = open();
    let more = action(SESSION, SYMBOL, true);
    let refused = Err(Refusal::Limit(LimitError::NoRoom));
    assert_eq!(shard.check(&more), refused);
    // One that comes all the same closes nothing and harms nothing.
    shard.control(&order(3, SESSION, SYMBOL, true));
    assert_eq!(shard.check(&more), refused);
    assert_eq!(
        shard.check(&action(ACCOUNT, SYMBOL, true)),
        Ok(()),
        "it is closed already"
    );
    let nobody = action(ACCOUNT, Traded::Instrument(InstrumentId(9)), true);
    assert_eq!(shard.check(&nobody), Err(Refusal::UnknownScope));
    shard.control(&order(4, SESSION, CLASS, false));
    assert_eq!(shard.check(&more), Ok(()));
    shard.into_journal().close().expect("the journal closes");
    replay::verify(&config, ShardId(0)).expect("it replays");
}
