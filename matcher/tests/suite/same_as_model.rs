//! Whatever happens, the matcher reports what the naive one reports, and their books are equal.

use crate::model::Model;
use matcher::{BookIndex, Capacity, Matcher, NewOrder, OwnerId, Priority, Replace, Report, SelfMatch, Sweep};
use proptest::prelude::*;
use std::collections::BTreeMap;
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

#[derive(Clone, Debug)]
enum Event {
    Add(NewOrder),
    Gather(NewOrder),
    Cancel(OrderId),
    Reduce(OrderId, Quantity),
    Replace(Replace),
    CancelOwner(BookIndex, OwnerId),
    Sweep(Sweep, OwnerId),
}

/// Small, so that it is full now and then.
const CAPACITY: Capacity = Capacity {
    books: 2,
    orders: 24,
    levels: 12,
};
/// Few enough that live ids are often used again.
const IDS: u64 = 60;

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

fn new_order() -> impl Strategy<Value = NewOrder> {
    let kind = prop_oneof![8 => Just(OrderType::Limit), 1 => Just(OrderType::Market)];
    let time_in_force = prop_oneof![4 => Just(TimeInForce::Day), 1 => Just(TimeInForce::ImmediateOrCancel)];
    (id(), book(), owner(), side(), kind, time_in_force, price(), quantity()).prop_map(
        |(id, book, owner, side, order_type, time_in_force, price, quantity)| NewOrder {
            id,
            book,
            owner,
            side,
            order_type,
            time_in_force,
            price,
            quantity,
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
    (0_u32..2, id(), owner(), side(), price(), 1_u64..60, before).prop_map(
        |(book, taker, owner, side, limit, quantity, before)| Sweep {
            book: BookIndex(book),
            taker,
            owner,
            side,
            limit,
            quantity: Quantity(quantity),
            before,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => new_order().prop_map(Event::Add),
        1 => new_order().prop_map(Event::Gather),
        6 => id().prop_map(Event::Cancel),
        4 => (id(), quantity()).prop_map(|(id, quantity)| Event::Reduce(id, quantity)),
        6 => replace().prop_map(Event::Replace),
        1 => (0_u32..2, owner()).prop_map(|(book, owner)| Event::CancelOwner(BookIndex(book), owner)),
        2 => (sweep(), owner()).prop_map(|(sweep, owner)| Event::Sweep(sweep, owner)),
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
            }
            Report::Rested(order) => {
                self.0.insert(order.id, order.leaves.0);
            }
            Report::Canceled { id, quantity, .. } => {
                // An incoming order that never rested is not in the ledger.
                if self.0.contains_key(&id) {
                    self.subtract(id, quantity);
                    self.expect(id, Quantity::ZERO);
                }
            }
            Report::Reduced { id, quantity, leaves } => {
                self.subtract(id, quantity);
                self.expect(id, leaves);
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
            Report::Accepted { .. } | Report::Rejected(_) => {}
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
            Event::Add(order) => {
                matcher.add(order, sink);
                model.add(order);
            }
            Event::Gather(order) => {
                matcher.add_without_trading(order, sink);
                model.add_without_trading(order);
            }
            Event::Cancel(id) => {
                matcher.cancel(*id, Reason::Requested, sink);
                model.cancel(*id, Reason::Requested);
            }
            Event::Reduce(id, quantity) => {
                matcher.reduce(*id, *quantity, sink);
                model.reduce(*id, *quantity);
            }
            Event::Replace(replace) => {
                matcher.replace(replace, sink);
                model.replace(replace);
            }
            Event::CancelOwner(book, owner) => {
                matcher.cancel_where(*book, Reason::MassCanceled, |_, other| other == *owner, sink);
                model.cancel_where(*book, Reason::MassCanceled, *owner);
            }
            Event::Sweep(sweep, owner) => {
                let left = matcher.sweep(sweep, |_, other| other == *owner, sink);
                assert_eq!(left, model.sweep(sweep, *owner));
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
                assert_eq!(
                    self.matcher.orders(book, side).collect::<Vec<_>>(),
                    self.model.side(book, side)
                );
            }
        }
        for order in &self.model.orders {
            assert_eq!(self.matcher.order(order.id), Some(*order));
            assert_eq!(self.ledger.0[&order.id], order.leaves.0);
        }
        assert_eq!(self.ledger.0.len(), self.model.orders.len());
        assert_eq!(self.matcher.order_count(), self.model.orders.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn it_reports_what_the_model_reports(
        events in prop::collection::vec(event(), 1..250),
        self_match in prop_oneof![Just(SelfMatch::Allow), Just(SelfMatch::CancelNewest)],
    ) {
        let mut pair = Pair {
            matcher: Matcher::new(CAPACITY, self_match),
            model: Model::new(CAPACITY, self_match),
            ledger: Ledger::default(),
        };
        for event in &events {
            pair.apply(event);
        }
    }
}
