//! The native client's side.

use crate::fixture::{ALFA, Fixture, NATIVE, buy};
use proto::native;
use types::{
    CancelOrder, ClientOrderId, ExecType, InstrumentId, MassCancel, NewOrder, OrderTerms, Price, Quantity, Reason,
    ReplaceOrder, Request, SessionId, Side,
};

fn cancel(number: u64, orig: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: ClientOrderId(orig),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
    })
}

#[test]
fn an_order_goes_out_and_its_reports_come_back() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.native(&Request::New(buy(1))), []);
    let (count, request) = fixture.sent();
    let Some(Request::New(out)) = request else {
        panic!("{request:?}")
    };
    assert_eq!(
        (count, out.session, out.price, out.quantity),
        (1, SessionId(9), buy(1).price, Quantity(10))
    );
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.venue(ExecType::Fill, 4, 6, 4);
    let reports = fixture.native_reports();
    let seen = reports
        .iter()
        .map(|report| (report.exec_type, report.leaves.0, report.cumulative.0))
        .collect::<Vec<_>>();
    assert_eq!(seen, [(ExecType::New, 10, 0), (ExecType::Fill, 6, 4)]);
    assert!(
        reports
            .iter()
            .all(|report| report.client_order_id == ClientOrderId(1) && report.order_id.0 == out.client_order_id.0)
    );
}

#[test]
fn every_refusal_has_its_reason() {
    let mut fixture = Fixture::new();
    let price = |text: &[u8]| Price::parse(text).expect("a price");
    let cases = [
        (
            NewOrder {
                quantity: Quantity(501),
                ..buy(1)
            },
            Reason::MaxQuantity,
        ),
        (
            NewOrder {
                quantity: Quantity(500),
                price: price(b"105"),
                ..buy(2)
            },
            Reason::None,
        ),
        (
            NewOrder {
                price: price(b"110.01"),
                ..buy(3)
            },
            Reason::PriceCollar,
        ),
        (
            NewOrder {
                price: price(b"100.001"),
                ..buy(4)
            },
            Reason::InvalidPrice,
        ),
        (
            NewOrder {
                instrument: InstrumentId(7),
                ..buy(5)
            },
            Reason::UnknownInstrument,
        ),
        (
            NewOrder {
                instrument: InstrumentId(2),
                ..buy(6)
            },
            Reason::NoReferencePrice,
        ),
        (
            NewOrder {
                account: types::AccountId(9),
                ..buy(7)
            },
            Reason::UnknownAccount,
        ),
        (buy(7), Reason::DuplicateClientOrderId),
        (
            NewOrder {
                side: Side::Sell,
                ..buy(8)
            },
            Reason::SelfMatch,
        ),
    ];
    for (order, reason) in cases {
        let reports = fixture.native(&Request::New(order));
        let refused = reports.first().map_or(Reason::None, |report| report.reason);
        assert_eq!(refused, reason, "{order:?}");
        assert!(
            reports
                .iter()
                .all(|report| report.exec_type == ExecType::Rejected && report.order_id.0 != 0)
        );
    }
    assert_eq!(fixture.sent().0, 1, "one of them was good");
}

#[test]
fn a_cancel_and_a_replace_are_answered_by_the_venue() {
    let mut fixture = Fixture::new();
    fixture.native(&Request::New(buy(1)));
    fixture.venue(ExecType::New, 0, 10, 0);
    let replace = Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(2),
        orig_client_order_id: ClientOrderId(1),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
        price: buy(1).price,
        quantity: Quantity(8),
        terms: OrderTerms::NONE,
    });
    assert_eq!(fixture.native(&replace).len(), 1, "the order was accepted");
    fixture.venue(ExecType::Replaced, 0, 8, 0);
    let reports = fixture.native(&cancel(3, 2));
    assert_eq!(reports[0].exec_type, ExecType::Replaced);
    assert_eq!(
        (reports[0].client_order_id, reports[0].orig_client_order_id),
        (ClientOrderId(2), ClientOrderId(0))
    );
    fixture.venue(ExecType::Canceled, 0, 0, 0);
    let reports = fixture.native_reports();
    assert_eq!(
        (reports[0].exec_type, reports[0].client_order_id),
        (ExecType::Canceled, ClientOrderId(3))
    );
    let reports = fixture.native(&cancel(4, 2));
    assert_eq!(
        (reports[0].exec_type, reports[0].reason),
        (ExecType::RequestRejected, Reason::TooLate)
    );
}

#[test]
fn a_mass_cancel_cancels_every_order_of_the_session() {
    let mut fixture = Fixture::new();
    for number in 1..=3 {
        fixture.native(&Request::New(buy(number)));
        fixture.venue(ExecType::New, 0, 10, 0);
    }
    let mass = MassCancel {
        client_order_id: ClientOrderId(4),
        session: NATIVE,
        instrument: None,
    };
    let reports = fixture.native(&Request::MassCancel(mass));
    assert_eq!(
        reports.last().map(|report| report.exec_type),
        Some(ExecType::MassCancelAccepted)
    );
    let (count, last) = fixture.sent();
    assert_eq!(count, 6, "three orders, three cancels");
    assert!(matches!(last, Some(Request::Cancel(_))), "{last:?}");
}

#[test]
fn an_order_of_another_session_is_refused_by_a_reject() {
    let mut fixture = Fixture::new();
    let order = NewOrder {
        session: SessionId(1),
        ..buy(1)
    };
    let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
    let length = native::encode_request(&Request::New(order), &mut buffer);
    fixture.shard.client(NATIVE, &buffer[..length]);
    let messages = fixture.native_messages();
    let [native::Message::Reject(reject)] = messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!((reject.reason, reject.number), (Reason::WrongSession, 1));
}

#[test]
fn garbage_is_answered_and_harms_nothing() {
    let mut fixture = Fixture::new();
    for garbage in [&b""[..], b"x", &[0; 48], &[0xff; 64]] {
        fixture.shard.client(NATIVE, garbage);
        assert!(matches!(fixture.native_messages()[..], [native::Message::Reject(_)]));
    }
    fixture.native(&Request::New(buy(1)));
    assert_eq!(fixture.sent().0, 1);
}

#[test]
fn the_instrument_map_is_told() {
    let mut fixture = Fixture::new();
    let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
    let length = native::encode_instrument_request(None, &mut buffer);
    fixture.shard.client(NATIVE, &buffer[..length]);
    let messages = fixture.native_messages();
    let symbols = messages
        .iter()
        .map(|message| match message {
            native::Message::InstrumentDefinition(definition) => {
                (definition.symbol.as_str().to_owned(), definition.remaining)
            }
            other => panic!("{other:?}"),
        })
        .collect::<Vec<_>>();
    assert_eq!(symbols, [("ALFA".to_owned(), 1), ("BETA".to_owned(), 0)]);
}
