//! Whatever happens, the matcher reports what the naive one reports, and their books are equal.

use crate::model::Model;
use matcher::{
    Auction, BookIndex, Capacity, Matcher, NewOrder, OwnerId, PegRules, Priority, Replace, Report, SelfMatch, Sweep,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use types::{OrderId, OrderTerms, OrderType, Price, Quantity, Reason, Side, TimeInForce, Timestamp};

#[derive(Clone, Debug)]
enum Event {
    Add(NewOrder, OrderTerms),
    Gather(NewOrder),
    Cancel(OrderId),
    Remove(OrderId),
    Reduce(OrderId, Quantity),
    Replace(Replace, OrderTerms),
    CancelOwner(BookIndex, OwnerId),
    Sweep(Sweep, OwnerId),
    Settle(BookIndex, Option<Price>),
    Expire(Timestamp),
    Call(BookIndex, Auction),
    Uncross(BookIndex, Price),
}

/// Small, so that it is full now and then.
const CAPACITY: Capacity = Capacity {
    books: 2,
    orders: 24,
    levels: 14,
    special: 12,
};
/// Few enough that live ids are often used again.
const IDS: u64 = 60;
/// Prices are around 100, and pegged orders on every other of them.
const PEG_RULES: PegRules = PegRules {
    tick: Price(2),
    lowest: Price(90),
    highest: Price(110),
};

fn id() -> impl Strategy<Value = OrderId> {
    // Ids are numbers without order or density: these are far apart, and some share their low bits.
    (1..IDS).prop_map(|number| OrderId(number.wrapping_mul(0x1234_5678_9abc_def0)))
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

fn price() -> impl Strategy<Value = Price> {
    prop_oneof![
        20 => (95_i64..106).prop_map(Price),
        1 => prop::sample::select(vec![Price(0), Price(-7), Price(i64::MAX), Price(i64::MIN + 1), Price::NULL]),
        1 => any::<i64>().prop_map(Price),
    ]
}

fn quantity() -> impl Strategy<Value = Quantity> {
    prop_oneof![30 => 1_u64..40, 1 => Just(0), 1 => Just(matcher::MAX_QUANTITY + 1)].prop_map(Quantity)
}

fn book() -> impl Strategy<Value = BookIndex> {
    prop_oneof![40 => 0_u32..2, 1 => Just(2)].prop_map(BookIndex)
}

fn owner() -> impl Strategy<Value = OwnerId> {
    (0_u32..4).prop_map(OwnerId)
}

fn order_type() -> impl Strategy<Value = OrderType> {
    prop_oneof![
        20 => Just(OrderType::Limit),
        2 => Just(OrderType::Market),
        3 => Just(OrderType::Stop),
        3 => Just(OrderType::StopLimit),
        3 => Just(OrderType::PegPrimary),
        3 => Just(OrderType::PegMid),
    ]
}

fn time_in_force() -> impl Strategy<Value = TimeInForce> {
    prop_oneof![
        16 => Just(TimeInForce::Day),
        2 => Just(TimeInForce::GoodTillCancel),
        3 => Just(TimeInForce::ImmediateOrCancel),
        3 => Just(TimeInForce::FillOrKill),
        3 => Just(TimeInForce::GoodTillDate),
        1 => Just(TimeInForce::AtTheOpening),
        1 => Just(TimeInForce::AtTheClose),
    ]
}

fn terms() -> impl Strategy<Value = OrderTerms> {
    let some = |values| prop_oneof![3 => Just(0_u64), 1 => values];
    (
        price(),
        some(1_u64..12),
        some(1_u64..12),
        -3_i64..4,
        1_u64..60,
        prop::bool::weighted(0.15),
    )
        .prop_map(
            |(stop_price, display, min_quantity, peg_offset, expires, post_only)| OrderTerms {
                stop_price,
                display: Quantity(display),
                min_quantity: Quantity(min_quantity),
                peg_offset: Price(peg_offset),
                expires: Timestamp(expires),
                post_only,
                ..OrderTerms::NONE
            },
        )
}

/// The terms as far as an order of this kind may have them.
fn fitting(order_type: OrderType, time_in_force: TimeInForce, terms: OrderTerms) -> OrderTerms {
    let is_plain = matches!(order_type, OrderType::Limit | OrderType::Market);
    let is_for_auction = matches!(time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose);
    let may_rest = !matches!(order_type, OrderType::Market | OrderType::Stop) && !time_in_force.is_immediate();
    let mut fitting = OrderTerms::NONE;
    if order_type.is_stop() {
        fitting.stop_price = terms.stop_price;
    }
    if order_type.is_pegged() {
        fitting.peg_offset = terms.peg_offset;
    }
    if time_in_force == TimeInForce::GoodTillDate {
        fitting.expires = terms.expires;
    }
    if may_rest && !is_for_auction {
        fitting.display = terms.display;
        fitting.post_only = terms.post_only && !order_type.is_stop();
    }
    if is_plain && !is_for_auction && !fitting.post_only {
        fitting.min_quantity = terms.min_quantity;
    }
    fitting
}

fn new_order() -> impl Strategy<Value = (NewOrder, OrderTerms)> {
    let parts = (
        id(),
        book(),
        owner(),
        side(),
        order_type(),
        time_in_force(),
        price(),
        quantity(),
    );
    (parts, terms(), prop::bool::weighted(0.95), prop::bool::weighted(0.5)).prop_map(
        |((id, book, owner, side, order_type, time_in_force, price, quantity), terms, fits, has_limit)| {
            let order = NewOrder {
                id,
                book,
                owner,
                side,
                order_type,
                time_in_force,
                price: if order_type.is_pegged() && !has_limit {
                    Price::NULL
                } else {
                    price
                },
                quantity,
            };
            (
                order,
                if fits {
                    fitting(order_type, time_in_force, terms)
                } else {
                    terms
                },
            )
        },
    )
}

fn replace() -> impl Strategy<Value = Replace> {
    let priority = prop_oneof![3 => Just(Priority::KeptWhenReduced), 1 => Just(Priority::Lost)];
    (
        id(),
        prop_oneof![id().prop_map(Some), Just(None)],
        price(),
        quantity(),
        priority,
    )
        .prop_map(|(id, new_id, price, leaves, priority)| Replace {
            id,
            new_id: new_id.unwrap_or(id),
            price,
            leaves,
            priority,
        })
}

fn sweep() -> impl Strategy<Value = Sweep> {
    let before = prop_oneof![id().prop_map(Some), Just(None)];
    (0_u32..2, owner(), side(), price(), 1_u64..60, before).prop_map(|(book, owner, side, limit, quantity, before)| {
        Sweep {
            book: BookIndex(book),
            // No live order's.
            taker: OrderId(1),
            owner,
            side,
            limit,
            quantity: Quantity(quantity),
            before,
        }
    })
}

fn event() -> impl Strategy<Value = Event> {
    let auction = prop_oneof![Just(Auction::Opening), Just(Auction::Closing)];
    prop_oneof![
        28 => new_order().prop_map(|(order, terms)| Event::Add(order, terms)),
        1 => new_order().prop_map(|(order, _)| Event::Gather(order)),
        6 => id().prop_map(Event::Cancel),
        1 => id().prop_map(Event::Remove),
        4 => (id(), quantity()).prop_map(|(id, quantity)| Event::Reduce(id, quantity)),
        8 => (replace(), terms()).prop_map(|(replace, terms)| Event::Replace(replace, terms)),
        1 => (0_u32..2, owner()).prop_map(|(book, owner)| Event::CancelOwner(BookIndex(book), owner)),
        2 => (sweep(), owner()).prop_map(|(sweep, owner)| Event::Sweep(sweep, owner)),
        2 => (0_u32..2, prop::option::of(95_i64..106))
            .prop_map(|(book, price)| Event::Settle(BookIndex(book), price.map(Price))),
        1 => (1_u64..60).prop_map(|now| Event::Expire(Timestamp(now))),
        1 => (0_u32..2, auction).prop_map(|(book, auction)| Event::Call(BookIndex(book), auction)),
        2 => (0_u32..2, prop_oneof![Just(Price::NULL), (95_i64..106).prop_map(Price)])
            .prop_map(|(book, reference)| Event::Uncross(BookIndex(book), reference)),
    ]
}

/// Lots that each order should have open, by the reports alone.
#[derive(Default)]
struct Ledger(BTreeMap<OrderId, u64>);

impl Ledger {
    fn take(&mut self, report: &Report) {
        match *report {
            Report::Trade(trade) => {
                assert!(trade.quantity.0 > 0, "a trade of nothing");
                self.subtract(trade.maker, trade.quantity);
                self.expect(trade.maker, trade.maker_leaves);
                // An order that waited outside of the book, and comes in now.
                if self.0.contains_key(&trade.taker) {
                    self.subtract(trade.taker, trade.quantity);
                    self.expect(trade.taker, trade.taker_leaves);
                }
            }
            Report::AuctionFill(fill) => {
                assert!(fill.quantity.0 > 0, "a trade of nothing");
                self.subtract(fill.id, fill.quantity);
                self.expect(fill.id, fill.leaves);
            }
            Report::Rested(order) => {
                self.0.insert(order.id, order.leaves.0);
            }
            Report::Held { id, leaves } => {
                self.0.insert(id, leaves.0);
            }
            Report::Replenished(order) => {
                assert!(order.shown.0 > 0 && order.shown <= order.leaves);
                self.expect(order.id, order.leaves);
            }
            Report::Canceled { id, quantity, .. } => {
                // An incoming order that never waited is not in the ledger.
                if self.0.contains_key(&id) {
                    self.subtract(id, quantity);
                    self.expect(id, Quantity::ZERO);
                }
            }
            Report::Reduced { id, quantity, leaves } => {
                if self.0.contains_key(&id) {
                    self.subtract(id, quantity);
                    self.expect(id, leaves);
                }
            }
            Report::Replaced {
                old_id,
                id,
                kept_priority,
                leaves,
                ..
            } => {
                assert!(self.0.remove(&old_id).is_some());
                if kept_priority {
                    self.0.insert(id, leaves.0);
                }
            }
            Report::Triggered { .. }
            | Report::Withdrawn { .. }
            | Report::Uncrossed { .. }
            | Report::Accepted { .. }
            | Report::Rejected(_) => {}
        }
    }

    fn subtract(&mut self, id: OrderId, quantity: Quantity) {
        *self.0.get_mut(&id).expect("a report of an order that is not open") -= quantity.0;
    }

    fn expect(&mut self, id: OrderId, leaves: Quantity) {
        assert_eq!(self.0[&id], leaves.0);
        if leaves.0 == 0 {
            self.0.remove(&id);
        }
    }
}

struct Pair {
    matcher: Matcher,
    model: Model,
    ledger: Ledger,
}

impl Pair {
    fn apply(&mut self, event: &Event) {
        let (matcher, model) = (&mut self.matcher, &mut self.model);
        let mut reports = Vec::new();
        let sink = &mut |report| reports.push(report);
        match event {
            Event::Add(order, terms) => {
                // Both ways in are one for an order without terms.
                match *terms == OrderTerms::NONE && order.id.0 % 2 == 0 {
                    true => matcher.add(order, sink),
                    false => matcher.add_with_terms(order, terms, sink),
                }
                model.add(order, terms);
            }
            Event::Gather(order) => {
                matcher.add_without_trading(order, sink);
                model.add_without_trading(order);
            }
            Event::Cancel(id) => {
                matcher.cancel(*id, Reason::Requested, sink);
                model.cancel(*id, Reason::Requested);
            }
            Event::Remove(id) => {
                matcher.remove(*id, Reason::Disconnected, sink);
                model.remove_part(*id, Reason::Disconnected);
            }
            Event::Reduce(id, quantity) => {
                matcher.reduce(*id, *quantity, sink);
                model.reduce(*id, *quantity);
            }
            Event::Replace(replace, terms) => {
                let live = model.live.iter().find(|live| live.order.id == replace.id);
                let terms = live.map_or(OrderTerms::NONE, |live| {
                    fitting(live.order.order_type, live.order.time_in_force, *terms)
                });
                match terms == OrderTerms::NONE && replace.id.0 % 2 == 0 {
                    true => matcher.replace(replace, sink),
                    false => matcher.replace_with_terms(replace, &terms, sink),
                }
                model.replace(replace, &terms);
            }
            Event::CancelOwner(book, owner) => {
                matcher.cancel_where(*book, Reason::MassCanceled, |_, other| other == *owner, sink);
                model.cancel_where(*book, Reason::MassCanceled, *owner);
            }
            Event::Sweep(sweep, owner) => {
                let left = matcher.sweep(sweep, |_, other| other == *owner, sink);
                assert_eq!(left, model.sweep(sweep, *owner));
            }
            Event::Settle(book, printed) => {
                if let Some(price) = *printed {
                    matcher.print(*book, price);
                }
                matcher.settle(*book, sink);
                model.settle(*book, *printed);
            }
            Event::Expire(now) => {
                while matcher.expire(*now, sink) {}
                model.expire(*now);
            }
            Event::Call(book, auction) => {
                matcher.call_auction(*book, *auction, sink);
                model.call_auction(*book, *auction);
            }
            Event::Uncross(book, reference) => {
                assert_eq!(
                    matcher.indicative(*book, *reference),
                    model.indicative(*book, *reference)
                );
                matcher.uncross(*book, *reference, sink);
                model.uncross(*book, *reference);
            }
        }
        assert_eq!(reports, core::mem::take(&mut model.reports), "{event:?}");
        reports.iter().for_each(|report| self.ledger.take(report));
        self.compare();
    }

    fn compare(&self) {
        self.matcher.audit();
        for book in [BookIndex(0), BookIndex(1)] {
            for side in [Side::Buy, Side::Sell] {
                let model = self.model.side(book, side);
                assert_eq!(
                    self.matcher.orders(book, side).collect::<Vec<_>>(),
                    model.iter().map(|live| self.model.resting(live)).collect::<Vec<_>>()
                );
            }
        }
        for live in &self.model.live {
            assert_eq!(self.matcher.order(live.order.id), Some(self.model.resting(live)));
            assert_eq!(self.ledger.0[&live.order.id], live.order.quantity.0);
        }
        assert_eq!(self.ledger.0.len(), self.model.live.len());
        assert_eq!(self.matcher.order_count(), self.model.live.len());
        assert_eq!(self.matcher.special_count(), self.model.special_count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_reports_what_the_model_reports(
        events in prop::collection::vec(event(), 1..250),
        self_match in prop_oneof![
            Just(SelfMatch::Allow),
            Just(SelfMatch::CancelNewest),
            Just(SelfMatch::CancelOldest),
            Just(SelfMatch::CancelBoth),
            Just(SelfMatch::Decrement),
        ],
    ) {
        let mut pair = Pair {
            matcher: Matcher::new(CAPACITY, self_match),
            model: Model::new(CAPACITY, self_match),
            ledger: Ledger::default(),
        };
        pair.matcher.set_peg_rules(BookIndex(1), PEG_RULES);
        pair.model.set_peg_rules(BookIndex(1), PEG_RULES);
        for event in &events {
            pair.apply(event);
        }
    }
}
