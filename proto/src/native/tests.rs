//! The messages against vectors that another implementation made (`tests/native_sbe.py`), against the documents, and
//! against anything that could come instead of them.

extern crate std;

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;
use types::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, MassCancel, MassStatusRequest, NewOrder, OrderId,
    OrderStatusRequest, OrderTerms, OrderType, Price, Reason, ReplaceOrder, SessionId, ShardId, ShortSale, Side,
    Symbol, TimeInForce, Timestamp, Trigger,
};

use super::*;

const VECTORS: &str = include_str!("../../../tests/vectors/native.json");
const SCHEMA: &str = include_str!("../../../docs/native.xml");
const DOCUMENT: &str = include_str!("../../../docs/native.md");

/// Name and bytes of each vector.
fn vectors() -> Vec<(String, Vec<u8>)> {
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let text = |vector: &serde_json::Value, key| vector[key].as_str().unwrap().to_string();
    let each = vectors.as_array().unwrap().iter();
    each.map(|vector| (text(vector, "name"), bytes(&text(vector, "hex"))))
        .collect()
}

/// Bytes of hexadecimal text, blanks ignored.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

fn limit_order() -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(1001),
        instrument: InstrumentId(7),
        account: AccountId(42),
        session: SessionId(3),
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        price: Price(101_250_000_000),
        quantity: Quantity(250),
        trigger: Trigger::new(1, 123_456),
        terms: OrderTerms::NONE,
    }
}

fn accepted() -> ExecReport {
    ExecReport {
        exec_type: ExecType::New,
        order_id: OrderId::new(ShardId(2), 9),
        client_order_id: ClientOrderId(1001),
        orig_client_order_id: ClientOrderId(0),
        exec_id: ExecId(77),
        instrument: InstrumentId(7),
        account: AccountId(0),
        session: SessionId(3),
        side: Side::Buy,
        price: Price(101_250_000_000),
        quantity: Quantity(250),
        last_price: Price::NULL,
        last_quantity: Quantity::ZERO,
        leaves: Quantity(250),
        cumulative: Quantity::ZERO,
        reason: Reason::None,
    }
}

fn with_terms() -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(1008),
        time_in_force: TimeInForce::GoodTillDate,
        terms: OrderTerms {
            display: Quantity(50),
            expires: Timestamp(1_767_225_600_000_000_000),
            post_only: true,
            ..OrderTerms::NONE
        },
        ..limit_order()
    }
}

fn stop_order() -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(1009),
        side: Side::Sell,
        order_type: OrderType::Stop,
        time_in_force: TimeInForce::GoodTillCancel,
        price: Price::NULL,
        quantity: MAX_QUANTITY,
        trigger: Trigger::NONE,
        terms: OrderTerms {
            stop_price: Price(99_500_000_000),
            ..OrderTerms::NONE
        },
        ..limit_order()
    }
}

fn pegged_order() -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(1010),
        order_type: OrderType::PegPrimary,
        price: Price(101_000_000_000),
        trigger: Trigger::NONE,
        terms: OrderTerms {
            min_quantity: Quantity(100),
            peg_offset: Price(-10_000_000),
            ..OrderTerms::NONE
        },
        ..limit_order()
    }
}

fn replace_with_terms() -> ReplaceOrder {
    ReplaceOrder {
        client_order_id: ClientOrderId(1011),
        orig_client_order_id: ClientOrderId(1009),
        instrument: InstrumentId(7),
        session: SessionId(3),
        side: Side::Sell,
        price: Price::NULL,
        quantity: Quantity(200),
        terms: OrderTerms {
            stop_price: Price(99_000_000_000),
            ..OrderTerms::NONE
        },
    }
}

fn status_of_one() -> OrderStatusRequest {
    OrderStatusRequest {
        client_order_id: ClientOrderId(1001),
        order_id: OrderId::new(ShardId(2), 9),
        instrument: InstrumentId(7),
        session: SessionId(3),
        side: Side::Buy,
        request: 31,
    }
}

/// What each vector means.
fn meanings() -> Vec<Message> {
    let market = NewOrder {
        client_order_id: ClientOrderId(u64::MAX),
        instrument: InstrumentId(u32::MAX),
        account: AccountId(u32::MAX),
        session: SessionId(u16::MAX),
        side: Side::Sell,
        order_type: OrderType::Market,
        time_in_force: TimeInForce::ImmediateOrCancel,
        price: Price::NULL,
        quantity: MAX_QUANTITY,
        trigger: Trigger::NONE,
        terms: OrderTerms::NONE,
    };
    let cancel = CancelOrder {
        client_order_id: ClientOrderId(1002),
        orig_client_order_id: ClientOrderId(1001),
        instrument: InstrumentId(7),
        session: SessionId(3),
        side: Side::Buy,
    };
    let replace = ReplaceOrder {
        client_order_id: ClientOrderId(1003),
        orig_client_order_id: ClientOrderId(1001),
        instrument: InstrumentId(7),
        session: SessionId(3),
        side: Side::Sell,
        price: Price(-250_000_000),
        quantity: Quantity(300),
        terms: OrderTerms::NONE,
    };
    let mass = |client_order_id, instrument| MassCancel {
        client_order_id: ClientOrderId(client_order_id),
        session: SessionId(3),
        instrument,
    };
    let fill = ExecReport {
        exec_type: ExecType::Fill,
        exec_id: ExecId(78),
        price: Price::NULL,
        last_price: Price(101_240_000_000),
        last_quantity: Quantity(100),
        leaves: Quantity(150),
        cumulative: Quantity(100),
        ..accepted()
    };
    let refused = ExecReport {
        exec_type: ExecType::Rejected,
        order_id: OrderId::new(ShardId(2), 10),
        client_order_id: ClientOrderId(1006),
        exec_id: ExecId(79),
        side: Side::Sell,
        price: Price::NULL,
        quantity: Quantity(5),
        leaves: Quantity::ZERO,
        reason: Reason::PriceCollar,
        ..accepted()
    };
    let reject = Reject {
        template: 1,
        number: 1007,
        reason: Reason::InvalidQuantity,
        detail: Some(DecodeError::InvalidQuantity),
    };
    let definition = InstrumentDefinition {
        instrument: InstrumentId(7),
        symbol: Symbol::new(b"TICK").unwrap(),
        tick_size: Price(10_000_000),
        lot_size: 100,
        reference_price: Price(101_000_000_000),
        remaining: 1,
    };
    vec![
        Message::Request(Request::New(limit_order())),
        Message::Request(Request::New(market)),
        Message::Request(Request::Cancel(cancel)),
        Message::Request(Request::Replace(replace)),
        Message::Request(Request::MassCancel(mass(1004, Some(InstrumentId(7))))),
        Message::Request(Request::MassCancel(mass(1005, None))),
        Message::InstrumentRequest(Some(InstrumentId(7))),
        Message::InstrumentRequest(None),
        Message::Request(Request::New(with_terms())),
        Message::Request(Request::New(stop_order())),
        Message::Request(Request::New(pegged_order())),
        Message::Request(Request::Replace(replace_with_terms())),
        Message::Request(Request::Status(status_of_one())),
        Message::Request(Request::MassStatus(MassStatusRequest {
            session: SessionId(3),
            instrument: None,
            request: 32,
        })),
        Message::Report(accepted()),
        Message::Report(fill),
        Message::Report(refused),
        Message::Reject(reject),
        Message::InstrumentDefinition(definition),
        Message::RequestsReceived((1 << 40) + 5),
    ]
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = [0xff; MAX_MESSAGE_LENGTH];
    let length = encode(message, &mut out);
    out[..length].to_vec()
}

#[test]
fn the_vectors_are_what_they_mean() {
    let (vectors, meanings) = (vectors(), meanings());
    assert_eq!(vectors.len(), meanings.len());
    for ((name, bytes), meaning) in vectors.iter().zip(&meanings) {
        assert_eq!(decode(bytes), Ok(*meaning), "{name}");
        assert_eq!(encoded(meaning), *bytes, "{name}");
    }
}

#[test]
fn every_message_has_a_vector_and_the_length_of_its_template() {
    for &template in Template::ALL {
        let of_template = |bytes: &Vec<u8>| Template::of(bytes) == Ok(template);
        let lengths: Vec<_> = vectors()
            .into_iter()
            .map(|(_, bytes)| bytes)
            .filter(of_template)
            .collect();
        assert!(!lengths.is_empty(), "{template:?}");
        assert!(lengths.iter().all(|bytes| bytes.len() == template.length()));
        assert!(template.length() <= MAX_MESSAGE_LENGTH && template.length() % 8 == 0);
        assert_eq!(Template::from_u16(template as u16), Some(template));
    }
}

#[test]
fn the_examples_in_the_document_are_the_vectors() {
    for (name, bytes) in vectors() {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
        let example = format!("Example, {name}:\n\n```\n{}\n```\n", lines.join("\n"));
        assert!(DOCUMENT.contains(&example), "docs/native.md lacks:\n{example}");
    }
}

#[test]
fn schema_and_document_list_every_reason_and_every_detail() {
    for &reason in Reason::ALL {
        let (number, text) = (reason as u16, reason.text());
        let value = format!("<validValue name=\"{reason:?}\">{number}</validValue>");
        assert!(SCHEMA.contains(&value), "docs/native.xml lacks {value}");
        let row = format!("| {number} | {reason:?} | {text} |");
        assert!(DOCUMENT.contains(&row), "docs/native.md lacks {row}");
    }
    for &error in DecodeError::ALL {
        let row = format!("| {} | {} | {:?} |", error as u8, error.text(), error.reason());
        assert!(DOCUMENT.contains(&row), "docs/native.md lacks {row}");
        assert_eq!(DecodeError::from_u8(error as u8), Some(error));
    }
}

#[test]
fn a_message_that_is_cut_or_has_more_behind_it_is_refused() {
    for (name, mut bytes) in vectors() {
        for length in 0..bytes.len() {
            let error = if length < HEADER_LENGTH {
                DecodeError::Truncated
            } else {
                DecodeError::WrongLength
            };
            assert_eq!(decode(&bytes[..length]), Err(error), "{name} cut to {length}");
        }
        bytes.push(0);
        assert_eq!(decode(&bytes), Err(DecodeError::WrongLength), "{name}");
    }
}

#[test]
fn each_part_of_the_header_has_its_error() {
    let bytes = encoded(&Message::Request(Request::New(limit_order())));
    for (offset, error) in [
        (0, DecodeError::WrongBlockLength),
        (2, DecodeError::UnknownTemplate),
        (4, DecodeError::UnknownSchema),
        (6, DecodeError::UnknownVersion),
    ] {
        let mut bytes = bytes.clone();
        bytes[offset] ^= 0x40;
        assert_eq!(decode(&bytes), Err(error));
        assert_eq!(decode_request(&bytes), Err(error));
        assert_eq!(decode_report(&bytes), Err(error));
    }
}

#[test]
fn each_side_takes_only_what_the_other_may_send() {
    for (bytes, message) in vectors().into_iter().map(|(_, bytes)| bytes).zip(meanings()) {
        let unexpected = Err(DecodeError::UnexpectedTemplate);
        match message {
            Message::Request(request) => assert_eq!(decode_request(&bytes), Ok(request)),
            _ => assert_eq!(decode_request(&bytes), unexpected),
        }
        let unexpected = Err(DecodeError::UnexpectedTemplate);
        match message {
            Message::Report(report) => assert_eq!(decode_report(&bytes), Ok(report)),
            _ => assert_eq!(decode_report(&bytes), unexpected),
        }
    }
}

#[test]
fn a_field_that_may_not_have_its_value_is_refused_with_its_error() {
    let order = encoded(&Message::Request(Request::New(limit_order())));
    let long = encoded(&Message::Request(Request::New(with_terms())));
    let report = encoded(&Message::Report(accepted()));
    let null = i64::MIN.to_le_bytes();
    for (message, offset, value, error) in [
        (&order, 12, &[0; 4][..], DecodeError::InvalidQuantity),
        (&order, 12, &[0xff; 4], DecodeError::InvalidQuantity),
        (&order, 16, &null, DecodeError::InvalidPrice),
        (&order, 24, &[0; 8], DecodeError::NoClientOrderId),
        (&order, 38, &[0], DecodeError::InvalidSide),
        (&order, 38, &[3], DecodeError::InvalidSide),
        (&order, 39, &[0x25], DecodeError::UnsupportedTimeInForce),
        (&order, 39, &[0x30], DecodeError::UnsupportedOrderType),
        (&order, 39, &[0x10], DecodeError::InvalidPrice),
        (&long, 12, &[4], DecodeError::UnsupportedInstruction),
        (&long, 12, &[16], DecodeError::UnsupportedInstruction),
        (&long, 16, &null, DecodeError::InvalidPrice),
        (&long, 39, &[0x31], DecodeError::InvalidPrice),
        (&long, 39, &[0x70], DecodeError::UnsupportedOrderType),
        (&long, 48, &[0; 8], DecodeError::InvalidQuantity),
        (&long, 52, &[1], DecodeError::InvalidQuantity),
        (&report, 60, &[0], DecodeError::InvalidExecType),
        (&report, 60, &[13], DecodeError::InvalidExecType),
        (&report, 61, &[0], DecodeError::InvalidSide),
    ] {
        let mut bytes = message.clone();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        assert_eq!(decode(&bytes), Err(error), "{value:?} at {offset}");
    }
}

#[test]
fn a_symbol_ends_with_its_padding() {
    let (_, mut bytes) = vectors().into_iter().find(|(name, _)| name == "definition").unwrap();
    bytes[40] = b'X';
    assert_eq!(decode(&bytes), Err(DecodeError::InvalidSymbol));
    bytes[32..48].fill(0);
    assert_eq!(decode(&bytes), Err(DecodeError::InvalidSymbol));
}

#[test]
fn a_reason_that_is_newer_than_this_list_does_not_lose_the_report() {
    let mut bytes = encoded(&Message::Report(accepted()));
    bytes[58..60].copy_from_slice(&60_000_u16.to_le_bytes());
    assert_eq!(decode_report(&bytes).map(|report| report.reason), Ok(Reason::Venue));
}

#[test]
fn a_reject_names_the_number_and_the_template_as_far_as_they_came() {
    let mut bytes = encoded(&Message::Request(Request::New(limit_order())));
    bytes[38] = 9;
    let reject = |bytes: &[u8]| Reject::new(bytes, decode(bytes).unwrap_err());
    let whole = reject(&bytes);
    assert_eq!((whole.template, whole.number), (1, 1001));
    assert_eq!(
        (whole.reason, whole.detail),
        (Reason::MalformedMessage, Some(DecodeError::InvalidSide))
    );
    assert_eq!((reject(&bytes[..32]).template, reject(&bytes[..32]).number), (1, 1001));
    assert_eq!((reject(&bytes[..31]).template, reject(&bytes[..31]).number), (1, 0));
    assert_eq!((reject(&bytes[..7]).template, reject(&bytes[..7]).number), (0, 0));
    let request = encoded(&Message::InstrumentRequest(Some(InstrumentId(7))));
    let reject = Reject::new(&request, DecodeError::UnexpectedTemplate);
    assert_eq!((reject.template, reject.number), (5, 7));
}

#[test]
#[should_panic(expected = "quantity does not fit")]
fn a_quantity_that_does_not_fit_never_leaves() {
    let quantity = Quantity(MAX_QUANTITY.0 + 1);
    encoded(&Message::Request(Request::New(NewOrder {
        quantity,
        ..limit_order()
    })));
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

fn lots() -> impl Strategy<Value = Quantity> {
    (1..=MAX_QUANTITY.0).prop_map(Quantity)
}

fn price() -> impl Strategy<Value = Price> {
    (i64::MIN + 1..=i64::MAX).prop_map(Price)
}

fn order_type() -> impl Strategy<Value = OrderType> {
    (1_u8..=6).prop_map(|value| OrderType::from_u8(value).unwrap())
}

fn time_in_force() -> impl Strategy<Value = TimeInForce> {
    proptest::sample::select(&[0, 1, 2, 3, 4, 6, 7]).prop_map(|value| TimeInForce::from_u8(value).unwrap())
}

/// Of any kind: which terms go together is not for the wire to say. Most orders have none.
fn terms() -> impl Strategy<Value = OrderTerms> {
    let any_terms = any::<(i64, u64, u64, i64, u64, bool, u8, bool)>().prop_map(|terms| OrderTerms {
        stop_price: Price(terms.0),
        display: Quantity(terms.1),
        min_quantity: Quantity(terms.2),
        peg_offset: Price(terms.3),
        expires: Timestamp(terms.4),
        post_only: terms.5,
        short_sale: [ShortSale::No, ShortSale::Short, ShortSale::Exempt][usize::from(terms.6 % 3)],
        located: terms.7,
    });
    prop_oneof![Just(OrderTerms::NONE), any_terms]
}

prop_compose! {
    fn new_order()(
        client_order_id in 1_u64.., instrument: u32, account: u32, session: u16, side in side(),
        order_type in order_type(), time_in_force in time_in_force(), limit in price(), has_limit: bool,
        quantity in lots(), trigger: u64, terms in terms(),
    ) -> NewOrder {
        let has_limit = match order_type {
            OrderType::Limit | OrderType::StopLimit => true,
            OrderType::Market | OrderType::Stop => false,
            OrderType::PegPrimary | OrderType::PegMid => has_limit,
        };
        NewOrder {
            client_order_id: ClientOrderId(client_order_id),
            instrument: InstrumentId(instrument),
            account: AccountId(account),
            session: SessionId(session),
            side,
            order_type,
            time_in_force,
            price: if has_limit { limit } else { Price::NULL },
            quantity,
            trigger: Trigger(trigger),
            terms,
        }
    }
}

prop_compose! {
    fn request()(
        order in new_order(), orig_client_order_id: u64, kind in 0..6, all: bool, order_id: u64,
    ) -> Request {
        let NewOrder { client_order_id, instrument, session, side, price, quantity, terms, .. } = order;
        let orig_client_order_id = ClientOrderId(orig_client_order_id);
        let one_or_all = (!all && instrument.0 != 0).then_some(instrument);
        match kind {
            0 => Request::New(order),
            1 => Request::Cancel(CancelOrder { client_order_id, orig_client_order_id, instrument, session, side }),
            2 => Request::Replace(ReplaceOrder {
                client_order_id, orig_client_order_id, instrument, session, side, price, quantity, terms,
            }),
            3 => Request::MassCancel(MassCancel { client_order_id, session, instrument: one_or_all }),
            4 => Request::Status(OrderStatusRequest {
                client_order_id, order_id: OrderId(order_id), instrument, session, side, request: order_id,
            }),
            _ => Request::MassStatus(MassStatusRequest { session, instrument: one_or_all, request: order_id }),
        }
    }
}

prop_compose! {
    fn report()(
        exec_type in (1_u8..=11).prop_map(|value| ExecType::from_u8(value).unwrap()),
        ids: (u64, u64, u64), instrument: u32, session: u16, side in side(), price: i64,
        cumulative in 0..=MAX_QUANTITY.0 / 2, leaves in 0..=MAX_QUANTITY.0 / 2, quantity in lots(),
        reason in proptest::sample::select(Reason::ALL),
    ) -> ExecReport {
        let fill = exec_type == ExecType::Fill;
        ExecReport {
            exec_type,
            order_id: OrderId(ids.0),
            client_order_id: ClientOrderId(ids.1),
            orig_client_order_id: ClientOrderId(0),
            exec_id: ExecId(ids.2),
            instrument: InstrumentId(instrument),
            account: AccountId(0),
            session: SessionId(session),
            side,
            price: if fill { Price::NULL } else { Price(price) },
            quantity: if fill { Quantity(cumulative + leaves) } else { quantity },
            last_price: if fill { Price(price) } else { Price::NULL },
            last_quantity: if fill { quantity } else { Quantity::ZERO },
            leaves: Quantity(leaves),
            cumulative: Quantity(cumulative),
            reason,
        }
    }
}

prop_compose! {
    fn definition()(
        numbers: (u32, u32, u32), prices: (i64, i64), symbol in "[!-~]{1,16}",
    ) -> InstrumentDefinition {
        InstrumentDefinition {
            instrument: InstrumentId(numbers.0),
            symbol: Symbol::new(symbol.as_bytes()).unwrap(),
            tick_size: Price(prices.0),
            lot_size: numbers.1,
            reference_price: Price(prices.1),
            remaining: numbers.2,
        }
    }
}

prop_compose! {
    fn reject()(
        template: u16, number: u64, reason in proptest::sample::select(Reason::ALL),
        detail in proptest::option::of(proptest::sample::select(DecodeError::ALL)),
    ) -> Reject {
        Reject { template, number, reason, detail }
    }
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        3 => request().prop_map(Message::Request),
        3 => report().prop_map(Message::Report),
        1 => reject().prop_map(Message::Reject),
        1 => definition().prop_map(Message::InstrumentDefinition),
        1 => any::<u64>().prop_map(Message::RequestsReceived),
        1 => proptest::option::of((1_u32..).prop_map(InstrumentId)).prop_map(Message::InstrumentRequest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_message_comes_back(message in message()) {
        prop_assert_eq!(decode(&encoded(&message)), Ok(message));
    }

    #[test]
    fn a_garbled_message_is_refused_or_is_another_good_one(
        message in message(),
        damage in proptest::collection::vec((0_usize..96, any::<u8>()), 1..6),
        cut in proptest::option::of(0_usize..96),
    ) {
        let mut bytes = encoded(&message);
        for (at, value) in damage {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        bytes.truncate(cut.unwrap_or(96));
        match decode(&bytes) {
            Ok(message) => prop_assert_eq!(decode(&encoded(&message)), Ok(message)),
            Err(error) => {
                let reject = Reject::new(&bytes, error);
                prop_assert_eq!(decode(&encoded(&Message::Reject(reject))), Ok(Message::Reject(reject)));
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..112)) {
        let _ = decode(&bytes);
    }
}
