//! Crossing: two clients' orders that trade with each other inside the gateway, live and in a replay of the journal.

use crate::first_stage::{assert_replays, essence};
use crate::fix::{Logon, field, order};
use crate::fixture::*;
use gateway::Config;
use gateway::control::{Action, Order};
use orders::KillScope;
use proto::fix::{NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest, OrderFields};
use types::{
    AccountId, Bbo, CancelOrder, ClientOrderId, Duration, ExecReport, ExecType, NewOrder, OrderTerms, OrderType, Price,
    Quantity, Reason, ReplaceOrder, Request, Side, TimeInForce, TradingDay,
};

const STAGE: &str = "[first_stage]
held_orders = 4
[first_stage.crossing]
symbols = [\"ALFA\"]
rest_ms = 20
[feed]
listen = \"127.0.0.1:7110\"
request = \"127.0.0.1:7100\"
[capacity]";

/// Two accounts in the place of one.
pub(crate) const ACCOUNTS: &str = "[[accounts]]
id = 2
max_quantity_lots = 1_000
max_notional = \"1000000\"
max_open_orders = 100
max_open_notional = \"1000000\"
[[accounts]]
id = 1
";

/// What makes clients of two owners and accounts cross; the native one has account 2.
const PARTS: [(&str, &str); 4] = [
    ("[[accounts]]\nid = 1\n", ACCOUNTS),
    ("owner = 1\n", "owner = 1\ncrossing = true\n"),
    (
        "accounts = [1]\nowner = 2\n",
        "accounts = [2, 1]\nowner = 2\ncrossing = true\n",
    ),
    ("[capacity]", STAGE),
];

pub(crate) fn crossing() -> Fixture {
    crossing_with(&[])
}

/// The same with more parts of the config replaced.
pub(crate) fn crossing_with(more: &[(&str, &str)]) -> Fixture {
    let mut fixture = Fixture::changed(&[&PARTS, more].concat());
    fixture.fix(&Logon);
    fixture
}

pub(crate) fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).expect("a price")
}

/// So many ticks above 100.
pub(crate) fn at(ticks: i64) -> Price {
    Price(price("100").0 + ticks * 10_000_000)
}

/// A native buy of account 2.
pub(crate) fn buys(number: u64, lots: u64, at: &str) -> NewOrder {
    NewOrder {
        account: AccountId(2),
        price: price(at),
        quantity: Quantity(lots),
        ..buy(number)
    }
}

/// A FIX order of account 1 that sells 10.
pub(crate) fn sells<'a>(id: &'a str, at: &str) -> NewOrderSingle<'a> {
    NewOrderSingle {
        side: b'2',
        price: price(at),
        ..order(id, "ALFA")
    }
}

/// Of each FIX report: 11, 150, 39, 32, 151, 58.
pub(crate) fn told(messages: &[String]) -> Vec<[&str; 6]> {
    let of = |message| [11, 150, 39, 32, 151, 58].map(|tag| field(message, tag).unwrap_or_default());
    messages.iter().map(|message| of(message)).collect()
}

pub(crate) fn fills(reports: &[ExecReport]) -> Vec<(ExecType, u64, u64, Reason)> {
    let of = |report: &ExecReport| (report.exec_type, report.last_quantity.0, report.leaves.0, report.reason);
    reports.iter().map(of).collect()
}

impl Fixture {
    /// ALFA is at these prices, with so many lots each, a moment later.
    pub(crate) fn market(&mut self, [bid, offer]: [&str; 2], lots: [u64; 2]) {
        self.now = self.now + Duration::from_millis(1);
        self.shard.set_now(self.now);
        let mut book = alfa(self.now);
        (book.bid.price, book.bid.quantity) = (price(bid), Quantity(lots[0]));
        (book.ask.price, book.ask.quantity) = (price(offer), Quantity(lots[1]));
        self.shard.price(ALFA, &book);
    }

    pub(crate) fn pass(&mut self, ms: u64) -> bool {
        self.now = self.now + Duration::from_millis(ms);
        self.shard.set_now(self.now);
        self.shard.turn()
    }

    /// Lots bought and sold, and open to buy and to sell.
    pub(crate) fn held_by(&self, account: u32) -> [u64; 4] {
        let exposure = self.shard.shard().orders().exposure(AccountId(account), ALFA);
        let exposure = exposure.unwrap_or_default();
        [exposure.bought, exposure.sold, exposure.open_buy, exposure.open_sell].map(|lots| lots.0)
    }

    pub(crate) fn crossed(&self) -> [u64; 2] {
        let counters = self.shard.shard().orders().counters();
        [counters.rested, counters.crossed]
    }

    pub(crate) fn new_at_venue(&self) -> (u64, NewOrder) {
        let (count, Some(Request::New(order))) = self.sent() else {
            panic!("an order is the last")
        };
        (count, order)
    }
}

#[test]
fn two_clients_trade_inside_at_the_price_of_the_one_that_rests_and_no_venue_hears_of_it() {
    let mut fixture = crossing();
    let rests = fixture.fix(&sells("A-1", "100"));
    assert_eq!(told(&rests), [["A-1", "0", "0", "", "10", Reason::Crossing.text()]]);
    assert_eq!(fixture.held_by(1), [0, 0, 0, 10], "it counts from acceptance");
    let took = fixture.native(&Request::New(buys(1, 10, "100.01")));
    assert_eq!(
        fills(&took),
        [
            (ExecType::New, 0, 10, Reason::Crossing),
            (ExecType::Fill, 10, 0, Reason::CrossedTaking)
        ]
    );
    assert_eq!(
        took[1].last_price,
        price("100"),
        "the price of the order that was there"
    );
    let sold = fixture.fix_messages();
    assert_eq!(
        told(&sold),
        [["A-1", "F", "2", "10", "0", Reason::CrossedResting.text()]]
    );
    assert_eq!(
        [29, 30, 31, 851].map(|tag| field(&sold[0], tag)),
        [Some("2"), Some("XOFF"), Some("100"), Some("1")]
    );
    let number = |report: &ExecReport| report.exec_id.0.to_string();
    assert_ne!(
        field(&sold[0], 17),
        Some(&*number(&took[1])),
        "each report has its own number"
    );
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 10, 0, 0], [10, 0, 0, 0]]);
    assert_eq!((fixture.sent().0, fixture.crossed()), (0, [1, 1]));
    assert_eq!(fixture.shard.shard().orders().open_orders(), 0);
    assert!(!fixture.pass(100), "nothing is left of it");
    assert_replays(fixture);
}

#[test]
fn what_is_left_goes_to_the_venue_when_the_rest_is_over_and_trades_there() {
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    fixture.native(&Request::New(buys(1, 4, "100")));
    assert_eq!(
        told(&fixture.fix_messages()),
        [["A-1", "F", "1", "4", "6", Reason::CrossedResting.text()]]
    );
    assert!(!fixture.pass(19));
    assert_eq!(fixture.sent().0, 0);
    assert!(fixture.pass(1));
    let (count, child) = fixture.new_at_venue();
    assert_eq!(
        (count, child.side, child.quantity, child.price, child.terms),
        (1, Side::Sell, Quantity(6), price("100"), OrderTerms::NONE)
    );
    assert_eq!(fixture.held_by(1), [0, 4, 0, 6]);
    // It is the venue's from here on: what comes in is not crossed with it.
    fixture.native(&Request::New(buys(2, 1, "100.01")));
    assert_eq!((fixture.sent().0, fixture.crossed()), (2, [1, 1]));
    // A report of the venue says what it says of six lots; the client has an order of ten.
    let number = child.client_order_id;
    let report = |exec_type, last, leaves| ExecReport {
        side: Side::Sell,
        exec_type,
        last_quantity: Quantity(last),
        last_price: if last > 0 { price("100") } else { Price::NULL },
        leaves: Quantity(leaves),
        ..crate::first_stage::report(number, exec_type)
    };
    crate::first_stage::say(&mut fixture, VENUE, &report(ExecType::New, 0, 6));
    assert_eq!(fixture.fix_messages(), [""; 0], "the client knows that it was accepted");
    crate::first_stage::say(&mut fixture, VENUE, &report(ExecType::Fill, 2, 4));
    assert_eq!(told(&fixture.fix_messages()), [["A-1", "F", "1", "2", "4", ""]]);
    // A replace says lots of the whole order: what is at the venue is cancelled, and the rest goes anew.
    fixture.fix(&OrderCancelReplaceRequest {
        cl_ord_id: b"A-2",
        orig_cl_ord_id: b"A-1",
        account: b"",
        time_in_force: 0,
        symbol: b"ALFA",
        side: b'2',
        quantity: 12,
        ord_type: b'2',
        price: price("100"),
        transact_time: fixture.now,
        fields: OrderFields::NONE,
    });
    let (_, Some(Request::Cancel(cancel))) = fixture.sent() else {
        panic!("what is at the venue is withdrawn")
    };
    crate::first_stage::say(
        &mut fixture,
        VENUE,
        &ExecReport {
            client_order_id: cancel.client_order_id,
            ..report(ExecType::Canceled, 0, 0)
        },
    );
    let replaced = fixture.fix_messages();
    assert_eq!([14, 151].map(|tag| field(&replaced[0], tag)), [Some("6"), Some("6")]);
    assert_eq!(
        fixture.new_at_venue().1.quantity,
        Quantity(6),
        "twelve less four here and two there"
    );
    assert_eq!(fixture.held_by(1), [0, 6, 0, 6]);
    assert_replays(fixture);
}

#[test]
fn an_order_that_wants_more_than_rests_goes_on_or_rests_itself() {
    let mut fixture = crossing();
    fixture.native(&Request::New(buys(1, 4, "100")));
    // It reaches the best bid, so it would trade at the venue: it does not rest.
    let reaches = fixture.fix(&sells("A-1", "99.99"));
    assert_eq!(
        told(&reaches)
            .iter()
            .map(|told| [told[1], told[3], told[4]])
            .collect::<Vec<_>>(),
        [["0", "", "10"], ["F", "4", "6"]]
    );
    assert_eq!([6, 31].map(|tag| field(&reaches[1], tag)), [Some("100"), Some("100")]);
    let (count, child) = fixture.new_at_venue();
    assert_eq!((count, child.quantity, child.price), (1, Quantity(6), price("99.99")));
    fixture.native_reports();
    // It does not reach: what is left rests, and trades with the next.
    fixture.native(&Request::New(buys(2, 4, "100")));
    fixture.fix(&sells("A-2", "100"));
    assert_eq!(fixture.crossed(), [3, 2]);
    let next = fixture.native(&Request::New(buys(3, 6, "100")));
    assert_eq!(
        next.last().map(|report| (report.last_quantity, report.leaves)),
        Some((Quantity(6), Quantity(0)))
    );
    assert_eq!(fixture.sent().0, 1);
    // Immediate: what cannot trade here goes on as it is.
    fixture.fix(&sells("A-3", "100"));
    let immediate = NewOrder {
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..buys(4, 12, "100")
    };
    fixture.native(&Request::New(immediate));
    let (count, child) = fixture.new_at_venue();
    assert_eq!(
        (count, child.quantity, child.time_in_force),
        (2, Quantity(2), TimeInForce::ImmediateOrCancel)
    );
    // A market order trades with what rests at any price, as the book bounds it.
    fixture.fix(&sells("A-4", "100.01"));
    let market = NewOrder {
        order_type: OrderType::Market,
        price: Price::NULL,
        ..buys(5, 12, "100")
    };
    let reports = fixture.native(&Request::New(market));
    assert_eq!(reports.last().map(|report| report.last_price), Some(price("100.01")));
    let (count, child) = fixture.new_at_venue();
    assert_eq!(
        (count, child.order_type, child.quantity),
        (3, OrderType::Market, Quantity(2))
    );
    assert_replays(fixture);
}

#[test]
fn nothing_trades_through_the_live_book() {
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    // The best bid is above the order that rests: it would sell below what others pay.
    fixture.market(["100.01", "100.03"], [1, 1]);
    let taken = fixture.native(&Request::New(buys(1, 10, "100.01")));
    assert_eq!(
        (essence(&taken), fixture.sent().0, fixture.crossed()),
        (vec![(ExecType::New, 1, Reason::Crossing)], 0, [2, 0]),
        "it rests at the best bid"
    );
    // The market comes back: the next trades with the one that rests at a price inside.
    fixture.market(["99.99", "100.01"], [1, 1]);
    fixture.native(&Request::New(buys(2, 4, "100")));
    assert_eq!(fixture.crossed()[1], 1);
    // At the touch itself is inside, one tick beyond is not.
    for (bid, offer, crosses) in [
        ("99.98", "100", true),
        ("99.98", "99.99", false),
        ("100", "100.01", true),
    ] {
        let mut fixture = crossing();
        fixture.fix(&sells("A-1", "100"));
        fixture.market([bid, offer], [1, 1]);
        fixture.native(&Request::New(buys(1, 10, "100.02")));
        assert_eq!(fixture.crossed()[1] == 1, crosses, "{bid} {offer}");
        assert_replays(fixture);
    }
    assert_replays(fixture);
}

#[test]
fn without_a_fresh_book_of_two_sides_nothing_is_crossed_and_nothing_rests() {
    type Change = fn(&mut Bbo);
    let changes: [(&str, Change); 4] = [
        ("no bid", |book| book.bid.quantity = Quantity::ZERO),
        ("no offer", |book| book.ask.quantity = Quantity::ZERO),
        ("locked", |book| book.ask.price = book.bid.price),
        ("crossed", |book| book.ask.price = Price(book.bid.price.0 - 10_000_000)),
    ];
    for (what, change) in changes {
        let mut fixture = crossing();
        fixture.fix(&sells("A-1", "100"));
        let mut book = alfa(fixture.now);
        change(&mut book);
        fixture.shard.price(ALFA, &book);
        assert_eq!(
            fixture.native(&Request::New(buys(1, 10, "100"))),
            [],
            "{what}: it is the venue's to answer"
        );
        assert_eq!((fixture.sent().0, fixture.crossed()), (1, [1, 0]), "{what}");
        assert_replays(fixture);
    }
    let mut fixture = crossing_with(&[("reference_missing = \"refuse\"", "reference_missing = \"master\"")]);
    fixture.now = fixture.now + Duration::from_millis(60_001);
    fixture.shard.set_now(fixture.now);
    assert_eq!(fixture.fix(&sells("A-1", "100")), [""; 0], "the book is stale");
    assert_eq!((fixture.sent().0, fixture.crossed()), (1, [0, 0]));
    assert_replays(fixture);
}

#[test]
fn who_does_not_want_it_or_may_not_goes_to_the_venue() {
    // The same account, though of another owner.
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    fixture.native(&Request::New(NewOrder {
        account: AccountId(1),
        ..buys(1, 10, "100.01")
    }));
    assert_eq!((fixture.sent().0, fixture.crossed()), (1, [1, 0]));
    assert_replays(fixture);
    // The same owner: the screen refuses it before.
    let mut fixture = crossing_with(&[("owner = 2\n", "owner = 1\n")]);
    fixture.fix(&sells("A-1", "100"));
    let refused = fixture.native(&Request::New(buys(1, 10, "100")));
    assert_eq!(essence(&refused), [(ExecType::Rejected, 1, Reason::SelfMatch)]);
    assert_replays(fixture);
    // A session that does not, an instrument that is not named, and terms beyond price and quantity.
    let mut fixture = crossing_with(&[("owner = 2\ncrossing = true\n", "owner = 2\n")]);
    fixture.fix(&sells("A-1", "100"));
    fixture.native(&Request::New(buys(1, 10, "100.01")));
    assert_eq!((fixture.sent().0, fixture.crossed()), (1, [1, 0]));
    assert_replays(fixture);
    let mut fixture = crossing_with(&[("symbols = [\"ALFA\"]", "symbols = [\"BETA\"]")]);
    assert_eq!(fixture.fix(&sells("A-1", "100")), [""; 0]);
    assert_eq!(fixture.sent().0, 1);
    assert_replays(fixture);
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    let terms = OrderTerms {
        post_only: true,
        ..OrderTerms::NONE
    };
    fixture.native(&Request::New(NewOrder {
        terms,
        ..buys(1, 10, "100")
    }));
    fixture.native(&Request::New(NewOrder {
        time_in_force: TimeInForce::FillOrKill,
        ..buys(2, 10, "100")
    }));
    assert_eq!((fixture.sent().0, fixture.crossed()), (2, [1, 0]));
    assert_replays(fixture);
}

#[test]
fn an_order_that_rests_ends_here_by_whatever_ends_it() {
    type End = (&'static str, fn(&mut Fixture), &'static str);
    let ends: [End; 4] = [
        (
            "a cancel",
            |fixture| {
                let cancel = OrderCancelRequest {
                    cl_ord_id: b"A-2",
                    orig_cl_ord_id: b"A-1",
                    quantity: 10,
                    side: b'2',
                    symbol: b"ALFA",
                    transact_time: fixture.now,
                };
                let bytes = fixture.fix_bytes(&cancel);
                fixture.shard.client(FIX, &bytes);
            },
            "4",
        ),
        (
            "a kill",
            |fixture| {
                let order = Order {
                    operator: 1,
                    number: 1,
                    action: Action::Kill(KillScope::Account(AccountId(1))),
                };
                fixture.shard.control(&order);
            },
            "4",
        ),
        (
            "the day's end",
            |fixture| fixture.shard.roll(TradingDay(20_261_201)),
            "C",
        ),
        ("a lost session", |fixture| fixture.shard.disconnect(FIX), ""),
    ];
    for (what, end, exec_type) in ends {
        let mut fixture = crossing();
        fixture.fix(&sells("A-1", "100"));
        end(&mut fixture);
        let messages = fixture.fix_messages();
        let last = messages
            .last()
            .and_then(|message| field(message, 150))
            .unwrap_or_default();
        assert_eq!(last, exec_type, "{what}");
        assert_eq!(fixture.shard.shard().orders().open_orders(), 0, "{what}");
        fixture.native(&Request::New(buys(1, 10, "100")));
        fixture.pass(20);
        assert_eq!(fixture.crossed()[1], 0, "{what}");
        assert_eq!(fixture.new_at_venue().1.side, Side::Buy, "{what}");
        assert_replays(fixture);
    }
}

#[test]
fn a_replace_ends_the_rest_and_goes_to_the_venue() {
    let mut fixture = crossing();
    fixture.native(&Request::New(buys(1, 10, "100")));
    let replaced = fixture.native(&Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(2),
        orig_client_order_id: ClientOrderId(1),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
        price: price("99.99"),
        quantity: Quantity(7),
        terms: OrderTerms::NONE,
    }));
    assert_eq!(essence(&replaced), [(ExecType::Replaced, 2, Reason::None)]);
    let (count, child) = fixture.new_at_venue();
    assert_eq!((count, child.price, child.quantity), (1, price("99.99"), Quantity(7)));
    fixture.fix(&sells("A-1", "99.99"));
    assert_eq!(fixture.crossed(), [1, 0]);
    let cancel = CancelOrder {
        client_order_id: ClientOrderId(3),
        orig_client_order_id: ClientOrderId(2),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
    };
    fixture.native(&Request::Cancel(cancel));
    assert!(matches!(fixture.sent(), (3, Some(Request::Cancel(_)))));
    assert_replays(fixture);
}

#[test]
fn an_order_whose_rest_is_over_waits_for_its_link() {
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    fixture.shard.set_venue_room(VENUE, 8);
    fixture.pass(20);
    assert_eq!(fixture.sent().0, 0, "what is left of the link is for cancels");
    // It goes to its venue all the same: nobody trades with it here.
    fixture.native(&Request::New(buys(1, 10, "100")));
    assert_eq!(fixture.crossed()[1], 0);
    fixture.shard.set_venue_room(VENUE, 64);
    assert!(fixture.shard.turn());
    assert_eq!(fixture.new_at_venue().1.side, Side::Sell);
    // One whose venue goes down meanwhile rests on, trades here, and what is left of it waits.
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    fixture.shard.set_venue_up(VENUE, false);
    let refused = fixture.native(&Request::New(buys(1, 10, "100")));
    assert_eq!(essence(&refused), [(ExecType::Rejected, 1, Reason::VenueDown)]);
    fixture.pass(20);
    assert_eq!(fixture.sent().0, 0);
    fixture.shard.set_venue_up(VENUE, true);
    assert_eq!(fixture.sent().0, 1);
    assert_replays(fixture);
}

#[test]
fn one_that_finds_no_place_goes_to_the_venue() {
    let mut fixture = crossing();
    for number in 1..=5 {
        fixture.native(&Request::New(buys(number, 1, "100")));
    }
    assert_eq!((fixture.crossed(), fixture.sent().0), ([4, 0], 1));
    assert_replays(fixture);
}

#[test]
fn a_restart_finds_what_rested_and_sends_it() {
    let mut fixture = crossing();
    fixture.fix(&sells("A-1", "100"));
    fixture.native(&Request::New(buys(1, 4, "100")));
    let mut fixture = fixture.restart();
    // It was lost with its session, as the process that ended lost all.
    assert_eq!(fixture.shard.shard().orders().open_orders(), 0);
    assert_eq!([fixture.held_by(1), fixture.held_by(2)], [[0, 4, 0, 0], [4, 0, 0, 0]]);
    fixture.pass(20);
    assert_eq!(fixture.sent().0, 0);
    assert_replays(fixture);

    let mut fixture = crossing_with(&[("crossing = true\n", "crossing = true\ncancel_on_disconnect = false\n")]);
    fixture.fix(&sells("A-1", "100"));
    let mut fixture = fixture.restart();
    fixture.shard.set_venue_up(VENUE, true);
    fixture.pass(20);
    assert_eq!(fixture.new_at_venue().1.quantity, Quantity(10));
    assert_replays(fixture);
}

#[test]
fn a_config_says_all_of_it_or_does_not_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let refusal = |parts: &[(&str, &str)]| {
        let [text, instruments] = texts(parts);
        std::fs::write(folder.path().join("instruments.csv"), instruments).expect("the folder can be written");
        Config::parse(&text, folder.path())
            .expect_err("it is not right")
            .to_string()
    };
    let all = |more: (&'static str, &'static str)| [&PARTS[..], &[more]].concat();
    for (parts, word) in [
        (
            all((STAGE, "[capacity]")),
            "session 1: crossing needs [first_stage.crossing]",
        ),
        (
            all(("rest_ms = 20", "rest_ms = 0")),
            "crossing needs rest_ms, and held_orders",
        ),
        (
            all(("held_orders = 4\n", "")),
            "crossing needs rest_ms, and held_orders",
        ),
        (
            all((
                "[feed]\nlisten = \"127.0.0.1:7110\"\nrequest = \"127.0.0.1:7100\"\n",
                "",
            )),
            "needs a [feed]",
        ),
        (all(("rest_ms = 20\n", "")), "rest_ms"),
        (
            all(("symbols = [\"ALFA\"]", "symbols = [\"ALFA\", \"OMEGA\"]")),
            "names OMEGA",
        ),
    ] {
        let refusal = refusal(&parts);
        assert!(refusal.contains(word), "{refusal}");
    }
}
