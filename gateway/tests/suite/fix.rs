//! The FIX client's side.

use crate::fixture::{FIX, Fixture, START};
use crate::resend::LogonWithReset;
use proto::fix::{Body, Encoder, NewOrderSingle, OrderCancelRequest, OrderFields, msg_type, tag};
use types::{ExecType, Price, Request, Trigger};

/// Logon with heartbeats every 30 s.
pub(crate) struct Logon;

impl Body for Logon {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::LOGON
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::ENCRYPT_METHOD, 0);
        encoder.number(tag::HEART_BT_INT, 30);
    }
}

pub(crate) fn order<'a>(cl_ord_id: &'a str, symbol: &'a str) -> NewOrderSingle<'a> {
    NewOrderSingle {
        account: b"1",
        cl_ord_id: cl_ord_id.as_bytes(),
        quantity: 10,
        ord_type: b'2',
        price: Price::parse(b"100").expect("a price"),
        side: b'1',
        symbol: symbol.as_bytes(),
        time_in_force: b'0',
        transact_time: START,
        trigger: Trigger::new(1, 42),
        fields: OrderFields::NONE,
    }
}

pub(crate) fn field(message: &str, tag: u32) -> Option<&str> {
    message
        .split('|')
        .find_map(|field| field.strip_prefix(&format!("{tag}=")))
}

fn logged_on() -> Fixture {
    let mut fixture = Fixture::new();
    let answer = fixture.fix(&Logon);
    assert_eq!(answer.len(), 1, "{answer:?}");
    assert_eq!(field(&answer[0], 35), Some("A"));
    fixture
}

#[test]
fn an_order_by_fix_goes_out_and_its_reports_come_back() {
    let mut fixture = logged_on();
    assert_eq!(fixture.fix(&order("A-1", "ALFA")), Vec::<String>::new());
    let (_, request) = fixture.sent();
    let Some(Request::New(out)) = request else {
        panic!("{request:?}")
    };
    assert_eq!(
        (out.price, out.quantity.0, out.trigger),
        (order("", "").price, 10, Trigger::new(1, 42))
    );
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.venue(ExecType::Fill, 4, 6, 4);
    let reports = fixture.fix_messages();
    let seen = reports
        .iter()
        .map(|report| [35, 11, 150, 39, 14, 151, 55].map(|tag| field(report, tag).unwrap_or_default()))
        .collect::<Vec<_>>();
    assert_eq!(
        seen,
        [
            ["8", "A-1", "0", "0", "0", "10", "ALFA"],
            ["8", "A-1", "F", "1", "4", "6", "ALFA"]
        ]
    );
    assert_eq!(field(&reports[1], 6), Some("100"), "average price");
}

#[test]
fn refusals_by_fix_repeat_what_was_asked() {
    let mut fixture = logged_on();
    let unknown = fixture.fix(&order("A-1", "NOPE"));
    assert_eq!(
        [39, 11, 55, 103].map(|tag| field(&unknown[0], tag)),
        [Some("8"), Some("A-1"), Some("NOPE"), Some("1")]
    );
    let on_close = fixture.fix(&NewOrderSingle {
        ord_type: b'5',
        ..order("A-2", "ALFA")
    });
    assert_eq!(
        [39, 11, 103].map(|tag| field(&on_close[0], tag)),
        [Some("8"), Some("A-2"), Some("11")]
    );
    let again = fixture.fix(&order("A-2", "ALFA"));
    assert_eq!(
        [39, 11, 103].map(|tag| field(&again[0], tag)),
        [Some("8"), Some("A-2"), Some("6")]
    );
    let odd_lot = fixture.fix(&NewOrderSingle {
        quantity: 150,
        ..order("A-3", "BETA")
    });
    assert_eq!([39, 103].map(|tag| field(&odd_lot[0], tag)), [Some("8"), Some("13")]);
    let cancel = OrderCancelRequest {
        cl_ord_id: b"A-4",
        orig_cl_ord_id: b"NEVER",
        quantity: 10,
        side: b'1',
        symbol: b"ALFA",
        transact_time: START,
    };
    let refused = fixture.fix(&cancel);
    let seen = [35, 11, 41, 102, 434].map(|tag| field(&refused[0], tag));
    assert_eq!(seen, [Some("9"), Some("A-4"), Some("NEVER"), Some("1"), Some("1")]);
    assert_eq!(fixture.sent().0, 0, "nothing of this reached the venue");
}

/// A request that may have been sent before under another number.
struct PossResend<'a>(NewOrderSingle<'a>);

impl Body for PossResend<'_> {
    fn msg_type(&self) -> &'static [u8] {
        self.0.msg_type()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.flag(tag::POSS_RESEND, true);
        self.0.encode(encoder);
    }
}

#[test]
fn a_possible_resend_of_an_order_that_was_seen_is_ignored() {
    let mut fixture = logged_on();
    fixture.fix(&order("A-1", "ALFA"));
    assert_eq!(fixture.sent().0, 1);
    assert_eq!(
        fixture.fix(&PossResend(order("A-1", "ALFA"))),
        Vec::<String>::new(),
        "its first answer was given"
    );
    assert_eq!(fixture.sent().0, 1);
    fixture.fix(&PossResend(order("A-2", "ALFA")));
    assert_eq!(fixture.sent().0, 2, "one that was not seen is an order");
    fixture.fix(&order("A-3", "ALFA"));
    assert_eq!(fixture.sent().0, 3, "its number was used up");
}

#[test]
fn orders_that_come_early_are_taken_in_order_once_the_gap_is_filled() {
    let mut fixture = logged_on();
    let [first, second, third] = [("A-1", 10), ("A-2", 20), ("A-3", 30)].map(|(id, quantity)| {
        fixture.fix_bytes(&NewOrderSingle {
            quantity,
            ..order(id, "ALFA")
        })
    });
    fixture.shard.client(FIX, &third);
    fixture.shard.client(FIX, &second);
    let asked = fixture.fix_messages();
    assert_eq!(
        [35, 7, 16].map(|tag| field(&asked[0], tag)),
        [Some("2"), Some("2"), Some("0")]
    );
    assert_eq!((asked.len(), fixture.sent().0), (1, 0));
    fixture.shard.client(FIX, &first);
    let (count, last) = fixture.sent();
    let Some(Request::New(last)) = last else {
        panic!("{last:?}")
    };
    assert_eq!((count, last.quantity.0), (3, 30), "in the order of their numbers");
}

#[test]
fn a_possible_resend_after_a_reset_is_told_that_it_was_seen() {
    let mut fixture = logged_on();
    fixture.fix(&order("A-1", "ALFA"));
    fixture.restart_fix_sequence();
    let answer = fixture.fix(&LogonWithReset);
    assert_eq!(
        [35, 34, 141].map(|tag| field(&answer[0], tag)),
        [Some("A"), Some("1"), Some("Y")]
    );
    // Its first answer cannot be asked for any more.
    let refused = fixture.fix(&PossResend(order("A-1", "ALFA")));
    assert_eq!(
        [39, 11, 103].map(|tag| field(&refused[0], tag)),
        [Some("8"), Some("A-1"), Some("6")]
    );
    assert_eq!(fixture.sent().0, 1, "it is not executed again");
    assert_eq!(fixture.fix(&PossResend(order("A-1", "ALFA"))), Vec::<String>::new());
    fixture.fix(&order("A-2", "ALFA"));
    assert_eq!(fixture.fix(&PossResend(order("A-2", "ALFA"))), Vec::<String>::new());
}
