//! The pre-filter in front of the order logic.

use crate::fix::{Logon, field, order};
use crate::fixture::{ALFA, Fixture, alfa, buy};
use gateway::control::{Action, Order};
use orders::{Limit, LimitScope, LimitValue};
use prefilter::Reasons;
use proto::fix::NewOrderSingle;
use types::{InstrumentId, NewOrder, Price, Quantity, Reason, Request};

fn lots(number: u64, lots: u64) -> Request {
    Request::New(NewOrder {
        quantity: Quantity(lots),
        ..buy(number)
    })
}

fn answer(fixture: &mut Fixture, request: &Request) -> Option<Reason> {
    let reports = fixture.native(request);
    reports.last().map(|report| report.reason)
}

fn one_passes_and_two_are_refused(fixture: &mut Fixture) {
    assert_eq!(answer(fixture, &lots(1, 500)), None);
    assert_eq!(answer(fixture, &lots(2, 501)), Some(Reason::MaxQuantity));
    let unknown = NewOrder {
        instrument: InstrumentId(7),
        ..buy(3)
    };
    assert_eq!(answer(fixture, &Request::New(unknown)), Some(Reason::UnknownInstrument));
}

#[test]
fn what_it_refuses_is_answered_with_the_reason_and_counted() {
    let mut fixture = Fixture::new();
    one_passes_and_two_are_refused(&mut fixture);
    let counters = fixture.shard.filter_counters();
    assert_eq!((counters.received, counters.passed, counters.refused), (3, 1, 2));
    let of = |reason: Reasons| counters.reasons[reason.0.trailing_zeros() as usize];
    assert_eq!((of(Reasons::QTY), of(Reasons::SYMBOL)), (1, 1));
}

#[test]
fn an_order_of_a_fix_client_goes_through_it_too() {
    let mut fixture = Fixture::new();
    fixture.fix(&Logon);
    let answer = fixture.fix(&NewOrderSingle {
        quantity: 501,
        ..order("A-1", "ALFA")
    });
    assert_eq!(field(&answer[0], 39), Some("8"), "{answer:?}");
    let counters = fixture.shard.filter_counters();
    assert_eq!((counters.received, counters.refused), (1, 1));
}

#[test]
fn a_limit_that_is_changed_holds_for_the_next_order() {
    let mut fixture = Fixture::new();
    let set = |fixture: &mut Fixture, number, lots| {
        fixture.shard.control(&Order {
            number,
            operator: 1,
            action: Action::SetLimit {
                scope: LimitScope::Instrument(ALFA),
                limit: Limit::MaxQuantity,
                value: LimitValue::Count(lots),
            },
        });
    };
    set(&mut fixture, 1, 10);
    assert_eq!(answer(&mut fixture, &lots(1, 11)), Some(Reason::MaxQuantity));
    set(&mut fixture, 2, 600);
    assert_eq!(answer(&mut fixture, &lots(2, 600)), None);
    assert_eq!(fixture.shard.filter_counters().refused, 1);
}

#[test]
fn an_instrument_may_have_any_number_and_none_is_taken_for_another() {
    let (last, sparse) = (InstrumentId(u32::MAX), InstrumentId(4_000_000_000));
    let mut fixture = Fixture::changed(&[
        ("1,ALFA", "4294967295,ALFA"),
        ("2,BETA", "4000000000,BETA"),
        ("reference_missing = \"refuse\"", "reference_missing = \"master\""),
    ]);
    fixture.shard.price(last, &alfa(fixture.now));
    let of = |number, instrument, price: &[u8], lots| {
        Request::New(NewOrder {
            instrument,
            price: Price::parse(price).expect("a price"),
            quantity: Quantity(lots),
            ..buy(number)
        })
    };
    // Of the first by its feed, of the other by the master.
    let cases = [
        (last, b"109".as_slice(), 1, None),
        (last, b"111", 1, Some(Reason::PriceCollar)),
        (last, b"100", 501, Some(Reason::MaxQuantity)),
        (sparse, b"54", 1, None),
        (sparse, b"56", 1, Some(Reason::PriceCollar)),
        (InstrumentId(0), b"100", 1, Some(Reason::UnknownInstrument)),
        (InstrumentId(1), b"100", 1, Some(Reason::UnknownInstrument)),
        (InstrumentId(u32::MAX - 1), b"100", 1, Some(Reason::UnknownInstrument)),
    ];
    for (number, (instrument, price, lots, reason)) in (1..).zip(cases) {
        let order = of(number, instrument, price, lots);
        assert_eq!(answer(&mut fixture, &order), reason, "{order:?}");
    }
    assert_eq!(fixture.shard.filter_counters().passed, 4);
}

/// The RTL in simulation before the shard's own filter.
#[cfg(feature = "rtl-sim")]
mod rtl {
    use super::*;

    fn fixture() -> Fixture {
        Fixture::with(
            "[risk.classes.default]",
            "[prefilter]\nbackend = \"rtl\"\non_fault = \"reject\"\n[risk.classes.default]",
        )
    }

    #[test]
    fn it_refuses_what_the_software_would_and_a_replay_decides_the_same() {
        let mut fixture = fixture();
        one_passes_and_two_are_refused(&mut fixture);
        let software = *fixture.shard.filter_counters();
        assert_eq!(
            (software.received, software.refused),
            (1, 0),
            "the others never came to it"
        );
        let mut fixture = fixture.restart();
        assert_eq!(answer(&mut fixture, &lots(4, 501)), Some(Reason::MaxQuantity));
        assert_eq!(answer(&mut fixture, &lots(5, 1)), None);
    }

    #[test]
    fn a_limit_that_is_changed_holds_for_the_next_order_and_over_a_restart() {
        let mut fixture = fixture();
        fixture.shard.control(&Order {
            number: 1,
            operator: 1,
            action: Action::SetLimit {
                scope: LimitScope::Instrument(ALFA),
                limit: Limit::MaxQuantity,
                value: LimitValue::Count(10),
            },
        });
        assert_eq!(answer(&mut fixture, &lots(1, 11)), Some(Reason::MaxQuantity));
        let mut fixture = fixture.restart();
        assert_eq!(answer(&mut fixture, &lots(2, 11)), Some(Reason::MaxQuantity));
        assert_eq!(answer(&mut fixture, &lots(3, 10)), None);
        assert_eq!(fixture.shard.filter_counters().refused, 0);
    }
}
