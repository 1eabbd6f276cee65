//! Order types that the venue lacks: what the gateway holds, what it sends for it, and what the client hears, live and in a
//! replay of the journal.

use crate::first_stage::{assert_replays, essence};
use crate::fix::{Logon, field, order};
use crate::fixture::*;
use gateway::control::{Action, Order};
use orders::KillScope;
use proto::fix::{NewOrderSingle, OrderFields};
use types::{
    AccountId, Bbo, CancelOrder, ClientOrderId, Duration, ExecReport, ExecType, MassCancel, NewOrder, OrderTerms,
    OrderType, Price, Quantity, Reason, ReplaceOrder, Request, Side, TimeInForce, TradingDay,
};

pub(crate) const TYPES: &str = "name = \"sim\"
order_types = { stop = \"emulate\", stop_limit = \"emulate\", iceberg = \"emulate\", peg_primary = \"emulate\", \
     peg_mid = \"refuse\" }";

pub(crate) const LIMITS: &str = "[first_stage]
own_cancel_wait_ms = 100
waiting_orders = 2
held_orders = 3
peg_interval_ms = 50
[capacity]";

/// What makes a venue have market and limit orders and nothing else.
pub(crate) const PARTS: [(&str, &str); 2] = [("name = \"sim\"", TYPES), ("[capacity]", LIMITS)];

/// A fixture with such a venue.
pub(crate) fn plain_venue() -> Fixture {
    let mut fixture = Fixture::changed(&PARTS);
    fixture.fix(&Logon);
    fixture
}

pub(crate) fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).expect("a price")
}

/// A native buy of 10 that becomes a market order at 100.03.
pub(crate) fn stop(number: u64) -> NewOrder {
    NewOrder {
        order_type: OrderType::Stop,
        price: Price::NULL,
        terms: OrderTerms {
            stop_price: price("100.03"),
            ..OrderTerms::NONE
        },
        ..buy(number)
    }
}

/// A native buy of 10 at 100 that shows 4.
pub(crate) fn iceberg(number: u64) -> NewOrder {
    NewOrder {
        terms: OrderTerms {
            display: Quantity(4),
            ..OrderTerms::NONE
        },
        ..buy(number)
    }
}

/// A native buy of 10 at the best bid.
pub(crate) fn peg(number: u64) -> NewOrder {
    NewOrder {
        order_type: OrderType::PegPrimary,
        price: price("100.02"),
        ..buy(number)
    }
}

pub(crate) fn cancel(number: u64, orig: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: ClientOrderId(orig),
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
    })
}

fn replace(number: u64, orig: &NewOrder, price: Price, lots: u64) -> Request {
    Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(number),
        orig_client_order_id: orig.client_order_id,
        instrument: ALFA,
        session: NATIVE,
        side: Side::Buy,
        price,
        quantity: Quantity(lots),
        terms: orig.terms,
    })
}

impl Fixture {
    /// The feed says that ALFA traded at a price, a moment later. Returns whether the shard had anything to do.
    pub(crate) fn trade_at(&mut self, last: &str) -> bool {
        self.book(|book| book.last = price(last))
    }

    /// ALFA is bid at a price, a moment later.
    fn bid_at(&mut self, bid: &str, lots: u64) -> bool {
        self.book(|book| (book.bid.price, book.bid.quantity) = (price(bid), Quantity(lots)))
    }

    fn book(&mut self, change: impl FnOnce(&mut Bbo)) -> bool {
        self.now = self.now + Duration::from_millis(1);
        self.shard.set_now(self.now);
        let mut book = alfa(self.now);
        change(&mut book);
        self.shard.price(ALFA, &book);
        self.shard.turn()
    }

    fn later(&mut self, ms: u64) -> bool {
        self.now = self.now + Duration::from_millis(ms);
        self.shard.set_now(self.now);
        self.shard.turn()
    }

    /// The order that went to the venue last, and how many messages did.
    pub(crate) fn child(&self) -> (u64, NewOrder) {
        let (count, Some(Request::New(child))) = self.sent() else {
            panic!("an order is the last")
        };
        (count, child)
    }

    fn open_buy(&self) -> Option<(Quantity, Quantity)> {
        let exposure = self.shard.shard().orders().exposure(AccountId(1), ALFA)?;
        Some((exposure.open_buy, exposure.bought))
    }
}

fn quantities(reports: &[ExecReport]) -> Vec<(ExecType, u64, u64)> {
    let of = |report: &ExecReport| (report.exec_type, report.cumulative.0, report.leaves.0);
    reports.iter().map(of).collect()
}

#[test]
fn a_stop_is_held_until_a_trade_meets_its_price() {
    let mut fixture = plain_venue();
    let told = fixture.native(&Request::New(stop(1)));
    assert_eq!(essence(&told), [(ExecType::New, 1, Reason::Held)]);
    assert_eq!(
        fixture.open_buy(),
        Some((Quantity(10), Quantity(0))),
        "it counts from acceptance"
    );
    assert!(!fixture.trade_at("100.02"), "a tick that asks for nothing is no input");
    assert_eq!(fixture.sent().0, 0);
    assert!(fixture.trade_at("100.04"));
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Triggered, 1, Reason::Held)]
    );
    let (count, child) = fixture.child();
    assert_eq!(
        (count, child.order_type, child.quantity),
        (1, OrderType::Market, Quantity(10))
    );
    assert_eq!((child.price, child.terms), (Price::NULL, OrderTerms::NONE));
    fixture.venue(ExecType::New, 0, 10, 0);
    assert_eq!(fixture.native_reports(), [], "the client knows that it was accepted");
    fixture.venue(ExecType::Fill, 4, 6, 4);
    fixture.venue(ExecType::Fill, 6, 0, 10);
    assert_eq!(
        quantities(&fixture.native_reports()),
        [(ExecType::Fill, 4, 6), (ExecType::Fill, 10, 0)]
    );
    assert_eq!(fixture.open_buy(), Some((Quantity(0), Quantity(10))));
    assert_eq!(fixture.shard.shard().orders().held(), 0);
    assert_replays(fixture);
}

#[test]
fn a_stop_whose_price_was_traded_before_goes_at_once_and_a_stale_trade_moves_nothing() {
    let mut fixture = plain_venue();
    fixture.trade_at("100.05");
    fixture.native(&Request::New(stop(1)));
    assert!(fixture.shard.turn());
    assert_eq!(fixture.child().0, 1);
    let mut fixture = plain_venue();
    fixture.native(&Request::New(stop(1)));
    let mut book = alfa(fixture.now);
    book.last = price("100.05");
    fixture.shard.price(ALFA, &book);
    fixture.later(60_001);
    assert_eq!(fixture.sent().0, 0, "the book is older than reference_max_age_ms");
    assert_replays(fixture);
}

#[test]
fn a_stop_limit_by_fix_is_told_held_and_becomes_a_limit_order() {
    let mut fixture = plain_venue();
    let stop_limit = NewOrderSingle {
        ord_type: b'4',
        fields: OrderFields {
            stop_price: price("100.03"),
            ..OrderFields::NONE
        },
        ..order("A-1", "ALFA")
    };
    let told = fixture.fix(&stop_limit);
    assert_eq!(
        [11, 150, 39, 58].map(|tag| field(&told[0], tag).unwrap_or_default()),
        ["A-1", "0", "0", Reason::Held.text()]
    );
    assert!(fixture.trade_at("100.03"));
    let (_, child) = fixture.child();
    assert_eq!((child.order_type, child.price), (OrderType::Limit, price("100")));
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.venue(ExecType::Fill, 10, 0, 10);
    let told = fixture.fix_messages();
    assert_eq!(
        [11, 150, 39, 14, 6].map(|tag| field(told.last().expect("a fill"), tag).unwrap_or_default()),
        ["A-1", "F", "2", "10", "100"]
    );
    assert_replays(fixture);
}

#[test]
fn an_iceberg_shows_one_portion_after_the_other_and_is_one_order_to_its_client() {
    let mut fixture = plain_venue();
    assert_eq!(
        essence(&fixture.native(&Request::New(iceberg(1)))),
        [(ExecType::New, 1, Reason::Held)]
    );
    let mut numbers = vec![];
    for (count, lots) in [(1, 4), (2, 4), (3, 2)] {
        let (sent, child) = fixture.child();
        assert_eq!(
            (sent, child.quantity, child.terms),
            (count, Quantity(lots), OrderTerms::NONE)
        );
        numbers.push(child.client_order_id);
        fixture.venue(ExecType::New, 0, lots, 0);
        fixture.venue(ExecType::Fill, 1, lots - 1, 1);
        assert_eq!(
            fixture.sent().0,
            count,
            "the next comes when this one has traded in full"
        );
        fixture.venue(ExecType::Fill, lots - 1, 0, lots);
    }
    assert!(numbers.is_sorted());
    let told = quantities(&fixture.native_reports());
    assert_eq!(told.len(), 6);
    assert_eq!((told[0], told[5]), ((ExecType::Fill, 1, 9), (ExecType::Fill, 10, 0)));
    assert_eq!(fixture.shard.shard().orders().open_orders(), 0);
    assert_replays(fixture);
}

#[test]
fn a_cancel_of_an_iceberg_goes_for_the_portion_and_what_the_venue_traded_before_counts() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(iceberg(1)));
    let (_, child) = fixture.child();
    fixture.native(&cancel(2, 1));
    let (2, Some(Request::Cancel(sent))) = fixture.sent() else {
        panic!("a cancel is the last")
    };
    assert_eq!(sent.orig_client_order_id, child.client_order_id);
    fixture.native_reports();
    // The portion trades in full before the cancel gets there: no other follows.
    fixture.venue_about(child.client_order_id, ExecType::Fill, Reason::None, 4, 0, 4);
    let told = fixture.native_reports();
    assert_eq!(
        essence(&told),
        [
            (ExecType::Fill, 1, Reason::None),
            (ExecType::Canceled, 2, Reason::Requested)
        ]
    );
    assert_eq!(quantities(&told)[1], (ExecType::Canceled, 4, 0));
    fixture.venue_about(
        sent.client_order_id,
        ExecType::RequestRejected,
        Reason::TooLate,
        0,
        0,
        0,
    );
    assert_eq!((fixture.sent().0, fixture.native_reports()), (2, vec![]));
    assert_eq!(fixture.open_buy(), Some((Quantity(0), Quantity(4))));
    assert_replays(fixture);
}

#[test]
fn a_replace_withdraws_the_portion_first_and_the_next_one_has_the_new_terms() {
    for traded in [0, 4] {
        let mut fixture = plain_venue();
        fixture.native(&Request::New(iceberg(1)));
        fixture.native_reports();
        let (_, child) = fixture.child();
        assert_eq!(fixture.native(&replace(2, &iceberg(1), price("100.01"), 20)), []);
        assert_eq!(
            fixture.open_buy(),
            Some((Quantity(20), Quantity(0))),
            "as it was and as it would be"
        );
        let (2, Some(Request::Cancel(sent))) = fixture.sent() else {
            panic!("a cancel is the last")
        };
        if traded == 0 {
            fixture.venue_about(sent.client_order_id, ExecType::Canceled, Reason::Requested, 0, 0, 0);
        } else {
            fixture.venue_about(child.client_order_id, ExecType::Fill, Reason::None, 4, 0, 4);
            fixture.venue_about(
                sent.client_order_id,
                ExecType::RequestRejected,
                Reason::TooLate,
                0,
                0,
                0,
            );
        }
        let told = fixture.native_reports();
        let last = told.last().expect("it is told");
        assert_eq!((last.exec_type, last.client_order_id.0), (ExecType::Replaced, 2));
        assert_eq!((last.quantity, last.leaves), (Quantity(20), Quantity(20 - traded)));
        let (3, next) = fixture.child() else {
            panic!("one portion follows")
        };
        assert_eq!((next.price, next.quantity), (price("100.01"), Quantity(4)));
        assert_replays(fixture);
    }
}

#[test]
fn a_held_stop_is_replaced_at_once() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(stop(1)));
    let terms = OrderTerms {
        stop_price: price("100.06"),
        ..OrderTerms::NONE
    };
    let changed = NewOrder { terms, ..stop(1) };
    let told = fixture.native(&replace(2, &changed, Price::NULL, 7));
    assert_eq!(essence(&told), [(ExecType::Replaced, 2, Reason::None)]);
    assert_eq!(fixture.open_buy(), Some((Quantity(7), Quantity(0))));
    fixture.trade_at("100.05");
    assert_eq!(fixture.sent().0, 0, "the old stop price counts no more");
    fixture.trade_at("100.06");
    assert_eq!(fixture.child().1.quantity, Quantity(7));
    assert_replays(fixture);
}

#[test]
fn a_pegged_order_follows_the_best_bid_of_others_within_its_limit_and_not_too_often() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(peg(1)));
    assert!(fixture.shard.turn(), "it takes its price from the book");
    let (_, child) = fixture.child();
    assert_eq!(
        (child.order_type, child.price, child.quantity),
        (OrderType::Limit, price("99.99"), Quantity(10))
    );
    fixture.venue(ExecType::New, 0, 10, 0);
    fixture.native_reports();
    assert!(!fixture.bid_at("100.00", 100), "50 ms have not passed");
    assert!(fixture.later(50));
    let (2, Some(Request::Replace(moved))) = fixture.sent() else {
        panic!("a replace is the last")
    };
    assert_eq!((moved.price, moved.quantity), (price("100"), Quantity(10)));
    fixture.venue(ExecType::Replaced, 0, 10, 0);
    assert_eq!(fixture.native_reports(), [], "its client asked for that");
    // Others left: what is bid is its own, and it stays.
    fixture.later(50);
    assert!(!fixture.bid_at("100.00", 10));
    // It goes no further than its limit.
    fixture.later(50);
    assert!(fixture.bid_at("100.05", 100));
    let (3, Some(Request::Replace(moved))) = fixture.sent() else {
        panic!("a replace is the last")
    };
    assert_eq!(moved.price, price("100.02"));
    assert_replays(fixture);
}

#[test]
fn what_ends_many_orders_ends_held_ones() {
    let mass = Request::MassCancel(MassCancel {
        client_order_id: ClientOrderId(9),
        session: NATIVE,
        instrument: None,
    });
    let control = |number, action| Order {
        number,
        operator: 1,
        action,
    };
    type End<'a> = (&'a dyn Fn(&mut Fixture), ExecType, Reason);
    let ends: [End<'_>; 5] = [
        (
            &|fixture| fixture.shard.client(NATIVE, &encoded(&mass)),
            ExecType::Canceled,
            Reason::MassCanceled,
        ),
        (
            &|fixture| fixture.shard.control(&control(1, Action::Kill(KillScope::Firm))),
            ExecType::Canceled,
            Reason::Killed,
        ),
        (
            &|fixture| {
                fixture.shard.control(&control(1, Action::Disable(NATIVE)));
                fixture.shard.disconnect(NATIVE);
                fixture.shard.connect(NATIVE);
            },
            ExecType::Canceled,
            Reason::Disconnected,
        ),
        (
            &|fixture| fixture.shard.roll(TradingDay(20_261_201)),
            ExecType::Expired,
            Reason::DayEnded,
        ),
        (
            &|fixture| {
                fixture.shard.disconnect(NATIVE);
                fixture.shard.connect(NATIVE);
            },
            ExecType::Canceled,
            Reason::Disconnected,
        ),
    ];
    for (end, exec_type, reason) in ends {
        let mut fixture = plain_venue();
        fixture.native(&Request::New(stop(1)));
        end(&mut fixture);
        let told = fixture.native_reports();
        let last = told
            .iter()
            .rfind(|report| report.client_order_id.0 == 1)
            .expect("it is told");
        assert_eq!((last.exec_type, last.reason), (exec_type, reason));
        assert_eq!((fixture.sent().0, fixture.shard.shard().orders().held()), (0, 0));
        assert_replays(fixture);
    }
}

#[test]
fn held_orders_live_on_over_a_restart_and_one_that_goes_on_for_days_over_its_end() {
    let mut fixture = Fixture::changed(&[
        ("name = \"sim\"", TYPES),
        ("[capacity]", LIMITS),
        ("user = \"trader\"", "user = \"trader\"\ncancel_on_disconnect = false"),
    ]);
    let lasting = NewOrder {
        time_in_force: TimeInForce::GoodTillCancel,
        ..stop(1)
    };
    fixture.native(&Request::New(lasting));
    fixture.shard.roll(TradingDay(20_261_201));
    let mut fixture = fixture.restart();
    fixture.native_reports();
    assert_eq!(fixture.shard.shard().orders().held(), 1);
    assert!(fixture.trade_at("100.03"));
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Triggered, 1, Reason::Held)]
    );
    assert_eq!(fixture.child().1.time_in_force, TimeInForce::GoodTillCancel);
    assert_replays(fixture);
}

#[test]
fn a_held_order_that_is_good_till_a_date_ends_then() {
    let mut fixture = plain_venue();
    let dated = NewOrder {
        time_in_force: TimeInForce::GoodTillDate,
        terms: OrderTerms {
            expires: fixture.now + Duration::from_millis(500),
            ..stop(1).terms
        },
        ..stop(1)
    };
    fixture.native(&Request::New(dated));
    assert!(!fixture.later(499));
    assert!(fixture.later(1));
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Expired, 1, Reason::Expired)]
    );
    assert!(!fixture.later(1));
    assert_replays(fixture);
}

#[test]
fn a_stop_that_is_met_while_its_venue_is_down_ends_and_a_portion_waits_for_it() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(stop(1)));
    fixture.native(&Request::New(iceberg(2)));
    let (_, child) = fixture.child();
    fixture.venue(ExecType::New, 0, 4, 0);
    fixture.native_reports();
    fixture.shard.set_venue_up(VENUE, false);
    fixture.trade_at("100.03");
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Canceled, 1, Reason::VenueDown)]
    );
    fixture.venue_about(child.client_order_id, ExecType::Fill, Reason::None, 4, 0, 4);
    assert_eq!(fixture.sent().0, 1);
    fixture.shard.set_venue_up(VENUE, true);
    assert_eq!(fixture.child().0, 2);
    assert_replays(fixture);
}

#[test]
fn a_portion_without_room_on_the_link_waits_for_it() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(iceberg(1)));
    fixture.shard.set_venue_room(VENUE, 8);
    fixture.venue(ExecType::Fill, 4, 0, 4);
    assert_eq!(fixture.sent().0, 1, "what is left is for cancels");
    assert!(!fixture.shard.turn());
    fixture.shard.set_venue_room(VENUE, 9);
    assert!(fixture.shard.turn());
    assert_eq!(fixture.child().0, 2);
    assert_replays(fixture);
}

#[test]
fn what_neither_has_is_refused_and_no_more_are_held_than_may_be() {
    let mut fixture = plain_venue();
    let mid = NewOrder {
        order_type: OrderType::PegMid,
        ..peg(1)
    };
    let refused = |number, reason| vec![(ExecType::Rejected, number, reason)];
    assert_eq!(
        essence(&fixture.native(&Request::New(mid))),
        refused(1, Reason::VenueLacksType)
    );
    for number in 2..=4 {
        fixture.native(&Request::New(stop(number)));
    }
    assert_eq!(
        essence(&fixture.native(&Request::New(stop(5)))),
        refused(5, Reason::TooManyHeld)
    );
    let text = fixture.fix(&NewOrderSingle {
        ord_type: b'P',
        fields: OrderFields {
            peg: Some(OrderType::PegMid),
            ..OrderFields::NONE
        },
        ..order("A-1", "ALFA")
    });
    assert_eq!(field(&text[0], 58), Some(Reason::VenueLacksType.text()));
    assert_replays(fixture);
}

#[test]
fn a_triggered_stop_does_not_trade_with_an_own_order() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(stop(1)));
    let sell = NewOrder {
        side: Side::Sell,
        price: price("100.05"),
        ..buy(2)
    };
    fixture.native(&Request::New(sell));
    fixture.native_reports();
    fixture.trade_at("100.03");
    assert_eq!(
        essence(&fixture.native_reports()),
        [(ExecType::Canceled, 1, Reason::SelfMatch)]
    );
    assert_eq!(fixture.sent().0, 1);
    assert_replays(fixture);
}

pub(crate) fn encoded(request: &Request) -> Vec<u8> {
    let mut buffer = [0; proto::native::MAX_MESSAGE_LENGTH];
    let length = proto::native::encode_request(request, &mut buffer);
    buffer[..length].to_vec()
}

#[test]
fn the_book_that_moved_a_held_order_is_what_the_next_order_is_measured_from() {
    let mut fixture = plain_venue();
    fixture.native(&Request::New(stop(1)));
    // The market is a quarter higher, and the trade meets the stop: the book comes in for that.
    let moved = fixture.book(|book| {
        (book.bid.price, book.ask.price, book.last) = (price("124.99"), price("125.01"), price("125"));
    });
    assert!(moved);
    fixture.native_reports();
    let near = NewOrder {
        price: price("125"),
        ..buy(2)
    };
    assert_eq!(
        fixture.native(&Request::New(near)),
        [],
        "within the collar of what the market is by now"
    );
    let refused = fixture.native(&Request::New(buy(3)));
    assert_eq!(essence(&refused), [(ExecType::Rejected, 3, Reason::PriceCollar)]);
    assert_replays(fixture);
}
