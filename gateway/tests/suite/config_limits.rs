//! Limits of the config that change between two starts, and limits that were left out and are set later.

use crate::fixture::{ALFA, Fixture, buy};
use gateway::control::{Action, Order};
use gateway::replay;
use orders::{Limit, LimitScope, LimitValue};
use types::{AccountId, ExecType, InstrumentId, NewOrder, Notional, Price, Quantity, Reason, Request, ShardId};

const ACCOUNT: LimitScope = LimitScope::Account(AccountId(1));
const BETA: InstrumentId = InstrumentId(2);

fn lots(number: u64, instrument: InstrumentId, price: &str, lots: u64) -> Request {
    Request::New(NewOrder {
        instrument,
        price: Price::parse(price.as_bytes()).expect("a price"),
        quantity: Quantity(lots),
        ..buy(number)
    })
}

/// Why an order for so many lots of ALFA is refused.
fn refusal(fixture: &mut Fixture, number: u64, count: u64) -> Option<Reason> {
    refusal_of(fixture, &lots(number, ALFA, "100", count))
}

fn refusal_of(fixture: &mut Fixture, request: &Request) -> Option<Reason> {
    // A client that comes again hears what it has heard before.
    let reports = fixture.native(request).into_iter();
    let mut about_it = reports.filter(|report| report.client_order_id == request.client_order_id());
    about_it.next_back().map(|report| report.reason)
}

fn set(fixture: &mut Fixture, number: u64, scope: LimitScope, limit: Limit, value: LimitValue) {
    fixture.shard.control(&Order {
        number,
        operator: 1,
        action: Action::SetLimit { scope, limit, value },
    });
}

fn limit(fixture: &Fixture, scope: LimitScope, limit: Limit) -> Option<LimitValue> {
    fixture.shard.shard().orders().limit(scope, limit)
}

#[test]
fn a_limit_that_the_config_changed_holds_from_the_next_start_on_and_what_was_decided_before_stays() {
    let mut fixture = Fixture::new();
    assert_eq!(refusal(&mut fixture, 1, 300), None);
    let less = [("max_quantity_lots = 500", "max_quantity_lots = 200")];
    let mut fixture = fixture.restart_with(&less);
    assert_eq!(fixture.shard.shard().orders().open_orders(), 1);
    assert_eq!(refusal(&mut fixture, 2, 201), Some(Reason::MaxQuantity));
    assert_eq!(refusal(&mut fixture, 3, 200), None);
    // And back, so that the journal has three configs.
    let mut fixture = fixture.restart_with(&[("max_quantity_lots = 500", "max_quantity_lots = 500")]);
    assert_eq!(refusal(&mut fixture, 4, 300), None);
    let (config, folder) = fixture.stop();
    let summary = replay::verify(&config, ShardId(0)).expect("it replays");
    // Each limit of the journal is its own, whatever the config says that it is replayed by.
    let other = crate::fixture::config_in(folder.path(), &less);
    assert_eq!(replay::verify(&other, ShardId(0)).expect("it replays"), summary);
}

#[test]
fn an_operators_limit_stays_until_the_config_says_something_new_about_it() {
    let mut fixture = Fixture::new();
    set(&mut fixture, 1, ACCOUNT, Limit::MaxQuantity, LimitValue::Count(50));
    set(
        &mut fixture,
        2,
        LimitScope::Instrument(ALFA),
        Limit::MaxQuantity,
        LimitValue::Count(60),
    );
    let mut fixture = fixture.restart();
    assert_eq!(refusal(&mut fixture, 1, 51), Some(Reason::MaxQuantity));
    // Another limit of the same account, and the class's of the instrument.
    let others = [
        ("max_notional = \"1000000\"", "max_notional = \"900000\""),
        ("max_quantity_lots = 500", "max_quantity_lots = 400"),
    ];
    let fixture = fixture.restart_with(&others);
    assert_eq!(
        limit(&fixture, ACCOUNT, Limit::MaxQuantity),
        Some(LimitValue::Count(50))
    );
    assert_eq!(
        limit(&fixture, ACCOUNT, Limit::MaxNotional),
        Some(LimitValue::Amount(Notional(900_000_000_000_000)))
    );
    assert_eq!(
        limit(&fixture, LimitScope::Instrument(ALFA), Limit::MaxQuantity),
        Some(LimitValue::Count(60))
    );
    assert_eq!(
        limit(&fixture, LimitScope::Instrument(BETA), Limit::MaxQuantity),
        Some(LimitValue::Count(400))
    );
    // The very limits.
    let these = [
        others[0],
        others[1],
        ("max_quantity_lots = 1_000", "max_quantity_lots = 70"),
        (
            "[capacity]",
            "[risk.instruments.ALFA]\nmax_quantity_lots = 65\n[capacity]",
        ),
    ];
    let mut fixture = fixture.restart_with(&these);
    assert_eq!(refusal(&mut fixture, 2, 66), Some(Reason::MaxQuantity));
    assert_eq!(refusal(&mut fixture, 3, 65), None);
    assert_eq!(
        limit(&fixture, ACCOUNT, Limit::MaxQuantity),
        Some(LimitValue::Count(70))
    );
    // What the config no longer has of the instrument is its class's.
    let mut fixture = fixture.restart_with(&these[..3]);
    assert_eq!(refusal(&mut fixture, 4, 70), None);
    assert_eq!(refusal(&mut fixture, 5, 71), Some(Reason::MaxQuantity));
    let (config, _folder) = fixture.stop();
    replay::verify(&config, ShardId(0)).expect("it replays");
}

#[test]
fn a_start_with_the_same_config_says_nothing_of_limits() {
    let fixture = Fixture::new().restart().restart();
    let (config, _folder) = fixture.stop();
    let directory = config.journal.of_shard(ShardId(0)).directory;
    let mut reader = journal::JournalReader::open(&directory).expect("a journal");
    let (mut starts, mut said, mut said_after_first) = (0, 0, 0);
    while let Some(record) = reader.next_record().expect("it can be read") {
        match proto::journal::Kind::from_u16(record.kind) {
            Some(proto::journal::Kind::Start) => starts += 1,
            Some(proto::journal::Kind::ConfigLimits) => {
                said += 1;
                said_after_first += u32::from(starts > 1);
            }
            _ => {}
        }
    }
    // The firm, a class, an account, two sessions.
    assert_eq!((starts, said, said_after_first), (3, 5, 0));
}

#[test]
fn a_limit_that_spans_shards_is_the_configs_again_once_it_says_something_new() {
    let mut fixture = Fixture::new();
    let tight = LimitValue::Amount(Notional(500_000_000_000));
    set(&mut fixture, 1, ACCOUNT, Limit::MaxOpenNotional, tight);
    let mut fixture = fixture.restart();
    assert_eq!(refusal(&mut fixture, 1, 6), Some(Reason::SharedLimit));
    let mut fixture = fixture.restart_with(&[("max_open_notional = \"1000000\"", "max_open_notional = \"700\"")]);
    assert_eq!(refusal(&mut fixture, 2, 6), None);
    assert_eq!(refusal(&mut fixture, 3, 2), Some(Reason::SharedLimit));
    let (config, _folder) = fixture.stop();
    replay::verify(&config, ShardId(0)).expect("it replays");
}

/// What is open and what traded before the limit was set counts, by an operator or by the config.
#[test]
fn a_limit_that_spans_shards_and_was_left_out_counts_what_was_before_it() {
    let firm = LimitScope::Firm;
    for by_config in [false, true] {
        let mut fixture = Fixture::new();
        assert_eq!(refusal(&mut fixture, 1, 10), None);
        fixture.venue(ExecType::New, 0, 10, 0);
        fixture.venue(ExecType::Fill, 4, 6, 4);
        let mut fixture = if by_config {
            let firm = "[risk.firm]\nmax_open_orders = 2\nmax_open_notional = \"2500\"\n[capacity]";
            let account = "max_open_notional = \"1000000\"\nmax_gross_notional = \"2000\"";
            fixture.restart_with(&[("[capacity]", firm), ("max_open_notional = \"1000000\"", account)])
        } else {
            let amount = |units: i128| LimitValue::Amount(Notional(units * 1_000_000_000));
            set(&mut fixture, 1, firm, Limit::MaxOpenOrders, LimitValue::Count(2));
            set(&mut fixture, 2, firm, Limit::MaxOpenNotional, amount(2_500));
            set(&mut fixture, 3, ACCOUNT, Limit::MaxGross, amount(2_000));
            fixture
        };
        // Four are held and six open: 1000, and ten more are 2000.
        assert_eq!(refusal(&mut fixture, 2, 11), Some(Reason::GrossLimit), "{by_config}");
        assert_eq!(refusal(&mut fixture, 3, 10), None, "{by_config}");
        set(&mut fixture, 4, ACCOUNT, Limit::MaxGross, LimitValue::None);
        assert_eq!(refusal(&mut fixture, 4, 1), Some(Reason::FirmLimit), "{by_config}");
        let mut fixture = fixture.restart();
        assert_eq!(refusal(&mut fixture, 5, 1), Some(Reason::FirmLimit), "{by_config}");
        set(&mut fixture, 5, firm, Limit::MaxOpenOrders, LimitValue::Count(9));
        assert_eq!(refusal(&mut fixture, 6, 6), Some(Reason::FirmLimit), "{by_config}");
        assert_eq!(refusal(&mut fixture, 7, 5), None, "{by_config}");
        fixture.shard.shard().orders().audit().expect("all is counted");
        let (config, _folder) = fixture.stop();
        replay::verify(&config, ShardId(0)).expect("it replays");
    }
}
